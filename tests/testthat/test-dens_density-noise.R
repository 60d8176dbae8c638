# Densities matched to estimates of several parts, with noise of any covariance:
# smoothing, stacks.

# A fit that has these parts.
with_parts <- function(fit, parts) {
  fit$parts <- parts
  fit$norm2 <- norm2_parts(parts, fit$kernel)
  fit
}

random_covariance <- function(d, scale = 1) {
  scale * crossprod(matrix(stats::rnorm(d * (d + 2)), ncol = d)) / d
}

# A weighted sum of points, points with covariances, one with variances.
noisy_parts <- function(x, kernel) {
  n <- nrow(x)
  d <- ncol(x)
  part <- \(x, weights, noise) list(sample = points_sample(x, kernel),
                                    weights = weights, noise = noise)
  list(part(x, stats::rnorm(n) / n, NULL),
       part(0.6 * x, rep(0.5 / n, n), random_covariance(d)),
       part(0.2 * x, rep(0.3 / n, n), random_covariance(d, 0.1)),
       part(x[1, , drop = FALSE], 0.2, seq(0.1, 0.5, length.out = d)))
}

# J term by term: E k(X, Y) is the density of X - Y, which is normal, at 0 of
# Theta added to its covariance, times (2 pi)^(d/2) |Theta|^(1/2).
noisy_match_R <- function(parts, q, theta) {
  d <- ncol(q$means)
  theta <- rep_len(theta, d)
  covariance <- \(j) matrix(q$covariances[, , j], d)
  bump <- function(u, s) {
    s <- s + diag(theta^2, d)
    prod(theta) * exp(-sum(u * solve(s, u)) / 2) / sqrt(det(s))
  }
  m <- length(q$weights)
  gram <- matrix(0, m, m)
  g <- numeric(m)
  for (j in seq_len(m)) {
    for (l in seq_len(m)) {
      gram[j, l] <- bump(q$means[j, ] - q$means[l, ],
                         covariance(j) + covariance(l))
    }
    for (part in parts) {
      noise <- part$noise
      if (is.null(noise)) noise <- numeric(d)
      if (!is.matrix(noise)) noise <- diag(noise, d)
      for (i in seq_along(part$weights)) {
        g[j] <- g[j] + part$weights[i] *
          bump(part$sample$x[i, ] - q$means[j, ], covariance(j) + noise)
      }
    }
  }
  list(g = g, gram = gram,
       objective = sum(q$weights * (gram %*% q$weights)) -
         2 * sum(q$weights * g))
}

# With a plain part in any place, without one, with variances.
choices <- list(1:4, c(3, 1), 2L, c(2, 4))

# --- Objective and gradient --------------------------------------------------

test_that("J of several parts is that of the sums, and the distance", {
  skip_on_cran()
  set.seed(60)
  # Sums of terms of at most 1: largest 2e-16.
  near <- \(a, b) for (name in c("g", "gram", "objective")) {
    expect_lt(max(abs(a[[name]] - b[[name]])), 1e-14)
  }
  for (d in c(1, 3)) {
    x <- matrix(rnorm(9 * d), 9)
    for (theta in list(1.3, seq(0.5, 2, length.out = d))) {
      kernel <- kernel_rbf(theta)
      parts <- noisy_parts(x, kernel)
      for (use in choices) {
        fit <- with_parts(kme(x, kernel), parts[use])
        round <- random_mixture(4, d)
        want <- noisy_match_R(parts[use], isotropic(round), theta)
        near(matcher(fit)(round), want)
        near(matcher(fit)(isotropic(round)), want)
        full <- isotropic(round)
        full$covariances <- array(replicate(4, random_covariance(d)),
                                  c(d, d, 4))
        near(matcher(fit)(full), noisy_match_R(parts[use], full, theta))
        for (q in list(round, full)) {
          risk <- kme_risk(fit, if (is.null(q$covariances)) isotropic(q) else q)
          expect_lt(abs(fit$norm2 + matcher(fit)(q)$objective - risk), 1e-13)
        }
      }
    }
  }
})

test_that("the gradient of several parts is that of differences", {
  set.seed(61)
  d <- 3
  m <- 3
  x <- matrix(rnorm(150 * d), 150)
  for (theta in list(1.3, c(0.5, 1, 2))) {
    kernel <- kernel_rbf(theta)
    parts <- noisy_parts(x, kernel)
    for (use in choices) {
      fit <- with_parts(kme(x, kernel), parts[use])
      q <- random_mixture(m, d)
      u <- free_parameters(q)
      free <- free_matcher(fit, m)
      found <- free(u)
      at <- matcher(fit)(q)
      expect_near(found[1], at$objective, 1e-13)
      expect_equal(found[-1], c(
        q$weights * (at$to_weights - sum(q$weights * at$to_weights)),
        at$to_means, q$variances * at$to_variances
      ), tolerance = 1e-12)
      differences <- differences_R(\(u) free(u)[1], u, 1e-3)
      # Rounding 1e-16 / 1e-3, fifth derivatives times 1e-12 / 30: 1e-13 seen.
      expect_lt(max(abs(found[-1] - differences)), 1e-11)
    }
  }
})

test_that("a covariance that is diagonal is the noise of MKME and MMKME", {
  set.seed(63)
  x <- scale(as.matrix(iris[, 1:3]))
  start <- random_mixture(4, 3)
  fit <- \(...) round_density(x, start = start, ...)
  for (marginal in list(kme(x, kernel_rbf(1.5), "mkme", noise = 0.3),
                        kme(x, kernel_rbf(1.5), "mmkme",
                            noise = c(0.1, 0, 0.4)))) {
    turned <- with_parts(marginal, list(list(
      sample = marginal$sample, weights = marginal$weights,
      noise = diag(effective_noise(marginal))
    )))
    expect_near(turned$norm2, marginal$norm2, 1e-13)
    names <- c("g", "gram", "objective", "to_weights", "to_means",
               "to_variances")
    expect_near(matcher(turned)(start)[names],
                matcher(marginal)(start)[names], 1e-12)
    for (more in list(list(), list(shape = "isotropic", optimize = "all",
                                   steps = 20))) {
      a <- do.call(fit, c(list(estimator = marginal), more))
      b <- do.call(fit, c(list(estimator = turned), more))
      # Where nearly nothing is left to match, rounding sets weights apart.
      expect_near(b$objective, a$objective, 1e-10)
      expect_near(b$weights, a$weights, 1e-5)
      expect_near(b$means, a$means, 1e-5)
    }
  }
})

test_that("the sums over parts do not depend on threads", {
  set.seed(64)
  x <- matrix(rnorm(4000 * 4), 4000)
  kernel <- kernel_rbf(2)
  fit <- with_parts(kme(x, kernel), noisy_parts(x, kernel))
  q <- random_mixture(5, 4)
  all <- \() list(matcher(fit)(q), free_matcher(fit, 5)(free_parameters(q)))
  one <- with_threads(1, all())
  expect_identical(with_threads(2, all()), one)
  expect_identical(with_threads(4, all()), one)
})

# --- Smoothing and stacks ----------------------------------------------------

new_estimators <- list(smooth = est_smooth(), stack = est_stack())

test_that("smoothing and stacks are matched in every way there is", {
  skip_on_cran()
  air <- stats::na.omit(airquality[, 1:4])
  ways <- list(
    list(m = 3), list(m = 3, optimize = "all"), list(m = 2:3, validate = 0.5),
    list(m = 3, shape = "isotropic"), list(m = 3, bandwidths = 1:2),
    list(m = 3, optimize = "all", validate = 0),
    list(m = 3, optimize = "all", steps = 20)
  )
  for (x in list(faithful[1:150, ], iris[, 1:4], air)) {
    for (estimator in new_estimators) {
      # What does not depend on the data is tried once.
      for (way in ways[if (ncol(x) == 2L) seq_along(ways) else 1:2]) {
        set.seed(65)
        fit <- do.call(kme_density, c(list(x, estimator = estimator,
                                           nstart = 3), way))
        expect_identical(fit$estimator$name, estimator$name)
        expect_lte(fit$objective, fit$start$objective)
        q <- fit[c("weights", "means")]
        q$covariances <- marginal_mixture(fit)$covariances
        # Differences of squared norms of at most 1.
        expect_lt(abs(fit$distance2 - kme_risk(fit$mean, q)), 1e-12)
      }
    }
  }
})

test_that("estimates are fitted anew to the points that are kept", {
  x <- scale(as.matrix(iris[, 1:4]))
  start <- round_density(x, m = 6, nstart = 5)$start
  for (estimator in new_estimators) {
    first <- \(x) {
      set.seed(67)
      round_density(x, kernel_rbf(2), estimator, m = 6, optimize = "all",
                    start = start, floor = 0.01 / mean(apply(x, 2, var)))
    }
    fit <- first(x)
    moved <- x
    moved[fit$heldout, ] <- 2 * x[fit$heldout, ]
    other <- first(moved)
    expect_identical(other$heldout, fit$heldout)
    expect_near(other$path$objective, fit$path$objective, 1e-10)
    expect_false(isTRUE(all.equal(other$path$heldout, fit$path$heldout)))
    expect_false(isTRUE(all.equal(other$mean$norm2, fit$mean$norm2)))
    # A fit in place of the estimator: its estimator, on the points kept.
    again <- update(fit, estimator = fit$mean)
    expect_identical(again$mean, fit$mean)
    set.seed(67)
    by_fit <- round_density(x, estimator = fit$mean, start = start,
                            optimize = "all", floor = 0.01 /
                              mean(apply(x, 2, var)))
    expect_identical(by_fit$path, fit$path)
  }
})

test_that("other kernels take what they allow", {
  polynomial <- kernel_poly(2)
  fit <- \(estimator, ...) {
    round_density(scale(faithful), polynomial, estimator, nstart = 3, ...)
  }
  for (noisy in list("smooth", "mkme", est_stack(list(est_mkme(0.1))))) {
    expect_error(fit(noisy, m = 2), "'kernel' must be an RBF kernel",
                 class = "kernmean_error_input")
  }
  expect_error(fit(est_smooth(0.1)), "estimator \"smooth\", which has noise",
               class = "kernmean_error_input")
  stack <- fit("stack", m = 3)
  expect_near(stack$distance2, kme_risk(stack$mean, isotropic(stack)), 1e-9)
  expect_true(all(grepl("KME|F-KMSE", stack$mean$candidates$candidate)))
})

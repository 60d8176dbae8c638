# Densities in whitened units, components with covariances, and the choice of
# their number.

# Density of a mixture with covariances, term by term.
full_density_R <- function(q, z) {
  d <- ncol(q$means)
  vapply(seq_len(nrow(z)), \(i) {
    sum(vapply(seq_along(q$weights), \(j) {
      s <- matrix(q$covariances[, , j], d)
      u <- z[i, ] - q$means[j, ]
      q$weights[j] * exp(-sum(u * solve(s, u)) / 2) /
        sqrt(det(2 * pi * s))
    }, numeric(1)))
  }, numeric(1))
}

shapes <- c("full", "common", "isotropic")

seeded <- function(...) {
  set.seed(31)
  kme_density(..., nstart = 5)
}

test_that("any affine map leaves a fit as it is, but for its Jacobian", {
  skip_on_cran()
  # Without ties, which k-means would break by rounding.
  set.seed(30)
  x <- unname(as.matrix(iris[, 1:3])) + rnorm(450, sd = 0.05)
  map <- matrix(c(2, -1, 0.3, 40, 1, 7, 0.1, 5, -0.2), 3)
  moved <- x %*% map + rep(c(100, -3, 0), each = 150)
  new <- x[1:9, ] + 0.1
  new_moved <- new %*% map + rep(c(100, -3, 0), each = 9)
  jacobian <- log(abs(det(map)))
  for (shape in shapes) {
    for (m in list(4, "validate")) {
      a <- seeded(x, m = m, shape = shape)
      b <- seeded(moved, m = m, shape = shape)
      # Rounding of the whitening: largest 4e-13.
      expect_near(predict(b, type = "log"),
                  predict(a, type = "log") - jacobian, 1e-10)
      expect_near(predict(b, new_moved, "log"),
                  predict(a, new, "log") - jacobian, 1e-10)
      expect_near(b$means,
                  a$means %*% map + rep(c(100, -3, 0), each = a$m), 1e-10)
      expect_near(b$distance2, a$distance2, 1e-7)
      expect_equal(b$sizes$log_density, if (!is.null(a$sizes)) {
        a$sizes$log_density - jacobian
      }, tolerance = 1e-10)
    }
  }
  # The descent, stopped by points held out.
  a <- seeded(x, m = 3, optimize = "all")
  b <- seeded(moved, m = 3, optimize = "all")
  expect_near(b$path$heldout[1:2], a$path$heldout[1:2] + jacobian, 1e-8)
})

test_that("the weights of components with covariances are the best", {
  x <- as.matrix(iris[, 1:3])
  for (scale in list("whiten", TRUE, FALSE)) {
    fit <- seeded(x, m = 5, scale = scale)
    # In the units of the kernel, from the fields.
    found <- matcher(fit$mean)(scale_mixture(fit$kernel, fit))
    expect_lt(fit$objective - best_weights(found$gram, found$g),
              1e-7 * max(found$gram))
    expect_near(fit$distance2, kme_risk(fit$mean, fit), 1e-8)
  }
})

test_that("clusters are shrunk to their pooled covariance", {
  set.seed(33)
  x <- rbind(matrix(rnorm(80), 40), 20 + matrix(rnorm(60, sd = 3), 30))
  fit <- kme_density(x, m = 2, scale = FALSE)
  one <- crossprod(scale(x[1:40, ], scale = FALSE))
  two <- crossprod(scale(x[41:70, ], scale = FALSE))
  pooled <- (one + two) / 70
  at <- order(fit$means[, 1])
  expect_equal(fit$start$weights[at], c(40, 30) / 70)
  expect_near(fit$covariances[, , at[1]], (one + 3 * pooled) / 43, 1e-10)
  expect_near(fit$covariances[, , at[2]], (two + 3 * pooled) / 33, 1e-10)
  common <- kme_density(x, m = 2, scale = FALSE, shape = "common")
  at <- order(common$means[, 1])
  factor <- (sum(diag(solve(pooled, two))) / 2 + 3) / 33
  expect_near(common$covariances[, , at[2]], factor * pooled, 1e-10)
  # One component is the normal of the moments.
  single <- kme_density(x, m = 1)
  expect_near(single$means[1, ], colMeans(x), 1e-12)
  expect_near(single$covariances[, , 1], cov(x) * 69 / 70, 1e-10)
})

test_that("the density is that of the components in the user's units", {
  set.seed(34)
  z <- as.matrix(iris[seq(1, 150, 7), 1:4]) + 0.1
  for (shape in shapes) {
    for (scale in list("whiten", TRUE)) {
      fit <- seeded(iris[, 1:4], m = 3, shape = shape, scale = scale)
      all <- marginal_mixture(fit)
      expect_near(unname(predict(fit, z)), full_density_R(all, z), 1e-9)
      expect_equal(component_sds(fit),
                   sqrt(t(apply(all$covariances, 3, diag))))
      some <- marginal_mixture(fit, c(3, 1))
      expect_equal(some$means, fit$means[, c(3, 1)])
      expect_near(some$covariances, all$covariances[c(3, 1), c(3, 1), ], 1e-12)
    }
  }
  expect_identical(mixture_log(full_mixture(3, 2), rbind(c(1e200, 0))), -Inf)
})

test_that("simulated points have the moments of the density", {
  skip_on_cran()
  for (shape in shapes) {
    fit <- seeded(faithful, m = 3, shape = shape)
    q <- marginal_mixture(fit)
    mean <- colSums(q$weights * q$means)
    u <- q$means - rep(mean, each = 3)
    covariance <- crossprod(u, q$weights * u) +
      apply(q$covariances * rep(q$weights, each = 4), 1:2, sum)
    z <- simulate(fit, 20000, seed = 35)
    expect_identical(colnames(z), colnames(faithful))
    sd <- sqrt(diag(covariance))
    # Four standard errors; standardized fourth moments are below 6.
    expect_lt(max(abs(colMeans(z) - mean) / sd), 4 / sqrt(20000))
    expect_lt(max(abs(cov(z) - covariance) / outer(sd, sd)),
              4 * sqrt(6 / 20000))

  }
  # No eruption takes less than no time.
  expect_gt(min(simulate(seeded(faithful), 1e4, seed = 36)[, 1]), 0)
})

test_that("the number of components is that of largest held-out log density", {
  skip_on_cran()
  x <- scale(as.matrix(faithful))
  set.seed(37)
  fit <- kme_density(x, m = c(1, 2, 5), nstart = 5)
  # By hand: two rounds of five folds, so that 300 points are looked at.
  set.seed(37)
  folds <- unlist(lapply(1:2, \(i) split(1:272, make_folds(272, 5, "drawn"))),
                  recursive = FALSE)
  z <- fit$sample$x
  parts <- expand.grid(widen = c(1, 1.25, 1.5), m = c(1, 2, 5))
  value <- 0 * parts$m
  for (m in c(1, 2, 5)) {
    for (out in folds) {
      start <- cluster_start(z[-out, ], list(
        shape = "full", m = m, nstart = 5, lowest = fit$floor, widen = 1
      ))
      for (widen in c(1, 1.25, 1.5)) {
        q <- start
        q$covariances <- widen * q$covariances
        at <- parts$m == m & parts$widen == widen
        value[at] <- value[at] + sum(log(full_density_R(q, z[out, ])))
      }
    }
  }
  value <- value / 544 - log(abs(det(cov(x)))) / 2
  first <- fit$sizes[fit$sizes$toward == 0, ]
  expect_near(first$log_density, value, 1e-9)
  best <- parts[which.max(value), ]
  expect_equal(c(fit$m, fit$widen), c(best$m, best$widen))
  last <- fit$sizes[fit$sizes$m == fit$m & fit$sizes$widen == fit$widen, ]
  expect_identical(last$toward, c(0, 0.5, 1))
  expect_identical(fit$toward, last$toward[which.max(last$log_density)])
  expect_identical(candidate_sizes(45), c(1L, 2L, 3L, 4L, 6L, 8L))
  expect_identical(candidate_sizes(3), 1L)
  # A mixture of three is seen as one of three.
  set.seed(38)
  three <- rbind(cbind(rnorm(90), rnorm(90)), cbind(rnorm(90, 8), rnorm(90)),
                 cbind(rnorm(90), rnorm(90, 8)))
  expect_identical(kme_density(three, nstart = 5)$m, 3L)
})

test_that("weights go part of the way where that is chosen", {
  skip_on_cran()
  x <- as.matrix(iris[, 1:4])
  seen <- c()
  for (seed in 1:6) {
    set.seed(seed)
    fit <- kme_density(x[sample(150, 70), ], nstart = 5, m = c(3, 6))
    last <- match_weights(matcher(fit$mean)(
      scale_mixture(fit$kernel, fit$start)), matcher(fit$mean))
    expect_equal(fit$weights, (1 - fit$toward) * fit$start$weights +
                   fit$toward * last$weights, tolerance = 1e-6)
    expect_lte(fit$objective, fit$start$objective * (1 - 1e-12) + 1e-12)
    seen <- c(seen, fit$toward)
  }
  expect_gt(max(seen), 0)
})

test_that("points that cannot be whitened are scaled, and it is said", {
  set.seed(39)
  x <- matrix(rnorm(60), 20)
  for (y in list(cbind(x, x[, 1] + x[, 2]), cbind(x, 1), x[1:4, ])) {
    expect_warning(fit <- kme_density(y, m = 2),
                   class = "kernmean_warning_whiten")
    expect_identical(fit$shape, "isotropic")
    expect_true(fit$kernel$scaling$type)
    expect_equal(fit$arguments$scale, NULL)
    expect_silent(update(fit, m = 1))
  }
  expect_silent(kme_density(cbind(x, 1), m = 2, scale = TRUE))
  expect_silent(kme_density(x, kernel_rbf(1:3), m = 2))
})

# Density estimation by kernel mean matching. The closed forms are tested
# against the reference values and kme_risk(), which is R code of its own. Here
# the components are round and the points as they are given; the rest is in
# test-dens_density-shape.R.

# --- Objective, gradient, density --------------------------------------------

test_that("G, g, J and the likelihood are the reference values", {
  A <- reference_data("A")
  q <- reference_mixture()
  for (kernel in c("rbf", "lin", "poly2", "poly3")) {
    found <- matcher(kme(A, reference_kernel(paste0("A_", kernel))))(q)
    case <- paste0("A_density_", kernel)
    expect_equal(as.vector(found$gram), reference_value(case, "G"),
                 tolerance = 1e-12, info = case)
    expect_equal(found$g, reference_value(case, "g"), tolerance = 1e-12,
                 info = case)
    expect_equal(found$objective, reference_value(case, "J"),
                 tolerance = 1e-12, info = case)
  }
  expect_near(-mean(mixture_log(q, A)),
              reference_value("A_density", "nll"), 1e-12)
})

test_that("squared norm plus J is the distance to the mixture's embedding", {
  skip_on_cran()
  set.seed(1)
  for (d in c(1, 3, 9)) {
    x <- matrix(rnorm(70 * d), 70)
    round <- random_mixture(5, d)
    for (fit in matched(x)) {
      for (q in list(round, isotropic(round), full_mixture(4, d))) {
        found <- matcher(fit)(q)
        risk <- kme_risk(fit, if (is.null(q$covariances)) isotropic(q) else q)
        # Differences of numbers of the size of the norms: largest 3e-13.
        expect_lt(abs(fit$norm2 + found$objective - risk) /
                    (fit$norm2 + abs(found$objective)), 1e-11,
                  label = paste(format_kernel(fit$kernel), fit$estimator$label))
        expect_equal(found$objective, sum(
          q$weights * (found$gram %*% q$weights - 2 * found$g)
        ), tolerance = 1e-10)
        expect_near(found$gram, t(found$gram), 1e-13)
      }
      parts <- c("g", "gram", "objective")
      expect_near(matcher(fit)(isotropic(round))[parts],
                  matcher(fit)(round)[parts], 1e-10)
    }
  }
})

test_that("the gradient is that of differences", {
  set.seed(2)
  d <- 4
  m <- 3
  x <- matrix(rnorm(130 * d), 130)
  q <- random_mixture(m, d)
  u <- c(q$weights, q$means, q$variances)
  for (fit in matched(x)) {
    match <- matcher(fit)
    at <- \(u) match(list(weights = u[seq_len(m)],
                          means = matrix(u[m + seq_len(m * d)], m),
                          variances = u[m + m * d + seq_len(m)]))
    found <- at(u)
    gradient <- c(found$to_weights, found$to_means, found$to_variances)
    differences <- differences_R(\(u) at(u)$objective, u, 1e-4)
    # Rounding of J over the step, 1e-16 / 1e-4: largest 1e-11.
    expect_lt(max(abs(gradient - differences)) / max(abs(gradient)), 1e-9,
              label = paste(format_kernel(fit$kernel), fit$estimator$label))
  }
})

test_that("the log density is that of the sum over components", {
  set.seed(3)
  q <- random_mixture(6, 3)
  q$weights[2] <- 0
  q$weights <- q$weights / sum(q$weights)
  z <- matrix(rnorm(300, sd = 2), 100)
  expect_near(exp(mixture_log(q, z)), density_R(q, z), 1e-13)
  # Far out, where the density itself is 0 or the distance overflows.
  far <- rbind(c(1e3, 0, 0), c(-1e200, 0, 0))
  value <- mixture_log(q, far)
  expect_equal(value[1], max(log(q$weights) - 1.5 * log(2 * pi * q$variances) -
                               rowSums((q$means - rep(far[1, ], each = 6))^2) /
                               (2 * q$variances)), tolerance = 1e-12)
  expect_identical(value[2], -Inf)
})

test_that("results do not depend on threads, and hardly on instructions", {
  set.seed(4)
  x <- matrix(rnorm(4000 * 6), 4000)
  q <- random_mixture(12, 6)
  fits <- list(kme(x, kernel_rbf(2)), kme(x, kernel_poly(3)))
  all <- \() c(lapply(fits, \(fit) matcher(fit)(q)), list(mixture_log(q, x)),
               list(free_matcher(fits[[1]], 12)(free_parameters(q))))
  one <- with_threads(1, all())
  expect_identical(with_threads(2, all()), one)
  expect_identical(with_threads(4, all()), one)
  for (level in isa_levels()) {
    expect_near(with_isa(level, all()), one, 1e-12)
  }
})

# --- The weights -------------------------------------------------------------

test_that("the weights are the best on the simplex, by enumeration", {
  set.seed(5)
  x <- matrix(rnorm(160), 80)
  zeros <- 0
  for (kernel in list(kernel_rbf(), kernel_rbf(0.5), kernel_poly(3))) {
    for (estimator in c("kme", "fkmse")) {
      start <- random_mixture(6, 2)
      fit <- round_density(x, kernel = kernel, estimator = estimator,
                         start = start)
      found <- matcher(fit$mean)(fit)
      scale <- max(abs(found$gram))
      # The ridge moves J by up to 1e-8 of its scale.
      expect_lt(fit$objective - best_weights(found$gram, found$g),
                1e-7 * scale)
      expect_gte(min(fit$weights), 0)
      expect_near(sum(fit$weights), 1, 1e-14)
      expect_identical(fit$means, start$means)
      zeros <- zeros + sum(fit$weights == 0)
    }
  }
  expect_gt(zeros, 0) # the constraint was at work
})

test_that("where G is singular the start is not left without gain", {
  set.seed(6)
  x <- scale(matrix(rexp(300), 100))
  fit <- round_density(x, m = 8, kernel = kernel_linear())
  # k-means and its shares have the mean of the sample.
  expect_near(fit$weights, fit$start$weights, 1e-6)
  expect_lt(fit$distance2, 1e-12)
})

# --- All parameters ----------------------------------------------------------

test_that("without validation J never rises", {
  skip_on_cran()
  set.seed(7)
  x <- scale(as.matrix(iris[, 1:4]))
  for (kernel in list(kernel_rbf(), kernel_rbf(0.7), kernel_linear(),
                      kernel_poly(2), kernel_poly(3))) {
    for (estimator in c("kme", "skmse", "fkmse")) {
      fit <- round_density(x, kernel, estimator, m = 4, optimize = "all",
                         validate = 0, nstart = 5)
      expect_false(is.unsorted(-fit$path$objective))
      expect_identical(fit$objective, min(fit$path$objective))
      expect_gte(min(fit$variances), fit$floor * (1 - 1e-12))
    }
  }
  gain <- 1 - fit$distance2 / (fit$mean$norm2 + fit$start$objective)
  expect_gt(gain, 0.5)
})

test_that("the end is a stationary point", {
  set.seed(8)
  x <- scale(faithful)
  fit <- round_density(x, kernel_rbf(1), m = 3, optimize = "all", validate = 0)
  start <- round_density(x, kernel_rbf(1), m = 3, start = fit$start)
  slope <- \(q) {
    f <- matcher(fit$mean)(q)
    c(f$weights * (f$to_weights - sum(f$weights * f$to_weights)), f$to_means,
      f$variances * f$to_variances)
  }
  # An interior optimum; the slope falls by orders of magnitude.
  expect_gt(min(fit$variances), 1.01 * fit$floor)
  expect_lt(max(abs(slope(fit))), 1e-3 * max(abs(slope(start))))
})

test_that("validation stops at the first look that is as good as the best", {
  skip_on_cran()
  x <- scale(faithful)
  seen <- character()
  for (seed in 1:8) {
    set.seed(seed)
    fit <- round_density(x, m = 4, optimize = "all", nstart = 5)
    expect_length(unique(fit$heldout), 54L)
    # The same by hand: the first fit again, from the same start.
    set.seed(seed)
    plan <- list(estimator = est_kme(), optimize = "all", toward = 1,
                 direct = FALSE, shape = "isotropic", m = 4, nstart = 5,
                 widen = 1, lowest = fit$floor)
    expect_identical(cluster_start(x, plan)$weights, fit$start$weights)
    expect_identical(sort(sample.int(272, 54)), fit$heldout)
    kept <- x[-fit$heldout, ]
    out <- x[fit$heldout, ]
    start <- cluster_start(kept, plan)
    mean <- kme(kept, fit$kernel)
    looks <- c(list("start", "weights"), as.list(as.integer(
      fit$path$step[-(1:2)]
    )))
    logs <- vapply(looks, \(until) {
      q <- fit_points(points_sample(kept, fit$kernel), start, plan,
                      until = until)$best
      log(density_R(q, out))
    }, numeric(54))
    expect_near(-colMeans(logs), fit$path$heldout, 1e-10)
    behind <- logs[, which.max(colMeans(logs))] - logs
    good <- colMeans(logs) >= mean(logs[, 1]) &
      colMeans(behind) <= apply(behind, 2, sd) / sqrt(54)
    expect_identical(format(fit$steps), fit$path$step[which(good)[1]])
    # And the fit to all points goes as far.
    q <- fit_points(points_sample(x, fit$kernel), fit$start, plan,
                    until = fit$steps)$best
    expect_identical(unname(fit$means), unname(q$means))
    seen <- c(seen, class(fit$steps))
  }
  expect_setequal(seen, c("integer", "character"))
})

test_that("a mixture that was drawn from is recovered", {
  skip_on_cran()
  set.seed(11)
  truth <- list(weights = c(0.5, 0.3, 0.2),
                means = rbind(c(0, 0), c(5, 0), c(0, 6)),
                variances = c(0.5, 1, 0.25))
  drawn <- sample.int(3, 4000, TRUE, truth$weights)
  x <- truth$means[drawn, ] +
    sqrt(truth$variances[drawn]) * matrix(rnorm(8000), 4000)
  for (optimize in c("weights", "all")) {
    for (estimator in c("kme", "skmse", "mkme")) {
      fit <- round_density(x, kernel_rbf(1.5), estimator, m = 3, nstart = 5,
                         optimize = optimize)
      order <- order(-fit$weights)
      # Four standard errors of a mean of 800 points and of a share.
      expect_lt(max(abs(fit$means[order, ] - truth$means)), 0.15)
      expect_lt(max(abs(fit$weights[order] - truth$weights)), 0.035)
      expect_lt(max(abs(fit$variances[order] / truth$variances - 1)), 0.2)
    }
  }
})

test_that("the bandwidth is the best of those tried on the points held out", {
  x <- scale(faithful)
  median <- kme(x)$kernel$bandwidth
  set.seed(12)
  fit <- round_density(x, m = 5, bandwidths = "validate", validate = 0.5)
  expect_length(fit$heldout, 136L)
  expect_near(fit$bandwidths$bandwidth^2, median^2 * 4^seq(-2, 1, 0.5), 1e-12)
  set.seed(12)
  clusters <- \(x) cluster_start(x, list(
    shape = "isotropic", m = 5, nstart = 50, lowest = fit$floor, widen = 1
  ))
  clusters(x)
  rows <- sort(sample.int(272, 136))
  start <- clusters(x[-rows, ])
  by_hand <- vapply(fit$bandwidths$bandwidth, \(theta) {
    q <- round_density(x[-rows, ], kernel_rbf(theta), m = 5, start = start)
    -mean(log(density_R(q, x[rows, ])))
  }, numeric(1))
  expect_near(fit$bandwidths$heldout, by_hand, 1e-8)
  expect_identical(fit$kernel$bandwidth,
                   fit$bandwidths$bandwidth[which.min(by_hand)])
  expect_identical(fit$mean$n, 272L)
  # One component does not depend on the bandwidth: the median then.
  fit <- round_density(x, m = 1, bandwidths = "validate")
  expect_near(fit$kernel$bandwidth, median, 1e-12)
})

# --- Data --------------------------------------------------------------------

test_that("points come as matrix, data frame, vector, formula or gram", {
  fit <- \(...) {
    set.seed(13)
    round_density(..., m = 4, optimize = "all", nstart = 5)
  }
  parts <- c("weights", "variances", "objective")
  x <- as.matrix(faithful)
  one <- fit(x)
  expect_identical(fit(faithful)[parts], one[parts])
  expect_identical(fit(~ eruptions + waiting, faithful)[parts], one[parts])
  expect_near(fit(gram(x, scale = FALSE))[parts], one[parts], 1e-6)
  expect_identical(colnames(one$means), colnames(x))
  line <- fit(faithful$waiting)
  expect_identical(fit(faithful["waiting"])[parts], line[parts])
  expect_identical(predict(line, 60), predict(line, matrix(60)))
  expect_identical(predict(one, faithful[1:3, 2:1]), predict(one)[1:3])
})

test_that("an estimate that is there already can be matched", {
  x <- scale(faithful)
  estimate <- kme(x, kernel_rbf(0.8), "fkmse", lambda = 0.2)
  set.seed(14)
  a <- round_density(x, m = 3, estimator = estimate)
  expect_identical(a$mean, estimate)
  expect_identical(a$kernel, estimate$kernel)
  all <- update(a, optimize = "all")
  expect_identical(all$mean, estimate)
  expect_error(update(a, x = x / 2), "'estimator' must be a fit of kme",
               class = "kernmean_error_input")
  other <- update(a, estimator = kme(x, kernel_rbf(2)), m = 2)
  expect_identical(other$kernel$bandwidth, 2)
  weighted <- kme(x, weights = rep(c(0, 2), 136) / 272)
  half <- round_density(x, m = 2, estimator = weighted)
  plain <- round_density(x, start = half$start)
  expect_gt(abs(half$objective - plain$objective), 1e-6)
})

test_that("degenerate samples that have a density are fitted", {
  set.seed(15)
  x <- cbind(rnorm(40), 3)
  fit <- round_density(x, m = 3, optimize = "all") # a constant column
  expect_near(fit$means[, 2], rep(3, 3), 1e-3)
  twice <- x[c(1:5, 1:5, 1), ]
  fit <- round_density(twice, m = 5) # as many components as distinct points
  expect_identical(fit$start$weights, c(3, 2, 2, 2, 2) / 11)
  expect_identical(fit$start$means, twice[1:5, ])
  expect_identical(fit$variances, rep(fit$floor, 5))
  # Far from 0, and in other units
  shifted <- round_density(faithful$waiting + 1e6, m = 3, start = list(
    weights = rep(1, 3) / 3, means = matrix(1e6 + c(50, 70, 90)),
    variances = rep(30, 3)
  ))
  near <- round_density(faithful$waiting, start = list(
    weights = rep(1, 3) / 3, means = matrix(c(50, 70, 90)),
    variances = rep(30, 3)
  ))
  expect_near(shifted$weights, near$weights, 1e-6)
})

# --- Methods -----------------------------------------------------------------

test_that("the density integrates to one", {
  set.seed(16)
  for (optimize in c("weights", "all")) {
    fit <- round_density(faithful$waiting, m = 5, optimize = optimize)
    total <- stats::integrate(\(z) predict(fit, z), -100, 250,
                              subdivisions = 500L, rel.tol = 1e-10)
    expect_near(total$value, 1, 1e-8)
  }
  fit <- round_density(scale(faithful), m = 5)
  z <- random_points(100, 2)
  expect_near(predict(fit, z, type = "log"), log(density_R(fit, z)), 1e-11)
  expect_equal(predict(fit), exp(predict(fit, type = "log")))
  # Weights, means, variances.
  likelihood <- logLik(fit)
  expect_near(c(likelihood), sum(log(predict(fit))), 1e-12)
  expect_identical(attr(likelihood, "df"), 4L + 10L + 5L)
})

test_that("update() fits again", {
  set.seed(19)
  fit <- round_density(~ eruptions + waiting, faithful, m = 3, nstart = 5)
  more <- update(fit, m = 5)
  expect_identical(more$m, 5L)
  expect_identical(more$kernel, fit$kernel)
  expect_identical(update(fit, start = more)$m, 5L)
  from <- update(fit, start = fit, optimize = "all", validate = 0)
  expect_equal(from$start[1:3], fit[c("weights", "means", "variances")])
  expect_lte(from$objective, fit$objective)
  expect_identical(update(from, optimize = "weights")$validate, 0)
  expect_identical(update(from, estimator = "skmse")$validate, 0)
  part <- update(fit, data = faithful[1:100, ])
  expect_identical(part$n, 100L)
  expect_identical(part$layout, fit$layout)
})

test_that("fits print what was found", {
  set.seed(21)
  fit <- round_density(scale(faithful), start = list(
    weights = c(0.4, 0.6), means = rbind(c(-1.2, -1.2), c(0.7, 0.7)),
    variances = c(0.2, 0.2)
  ), kernel = kernel_rbf(1))
  expect_snapshot({
    fit
    summary(fit)
  })
})

test_that("what cannot be fitted is refused", {
  skip_on_cran()
  x <- scale(faithful)
  g <- gram(x)
  estimate <- kme(x)
  fit <- round_density(x, m = 2)
  start <- fit$start
  target <- kme(x, estimator = "skmse", target = kme(x + 1, estimate$kernel))
  expect_snapshot(writeLines(refusals(expression(
    kme_density(), kme_density("a"), kme_density(x, m = 0), kme_density(x, 3),
    kme_density(x[1:8, ], m = 10), kme_density(x[c(1, 1, 1), ], m = 1),
    kme_density(replace(x, 3, NA)), kme_density(x, kernel_laplace(), m = 2),
    kme_density(x, kernel_rbf("fuse")), kme_density(x, kernel_poly(2), "mkme"),
    kme_density(x, estimator = "mean"), kme_density(x, m = 2, optimise = "all"),
    kme_density(x, estimator = "skmse", lambda = 1),
    kme_density(x, estimator = est_skmse),
    kme_density(x, m = 2, optimize = "means"), kme_density(x, nstart = 0),
    kme_density(x, validate = 0),
    kme_density(x, m = "all"), kme_density(x, m = 2, shape = "round"),
    kme_density(x, m = 2, scale = "all"),
    kme_density(x, m = 2, shape = "full", optimize = "all"),
    kme_density(cbind(x, x), m = 2, scale = "whiten"),
    kme_density(x, start = fit, shape = "full"),
    kme_density(x, start = list(weights = 1, means = x[1, , drop = FALSE],
                                covariances = matrix(1, 2, 2))),
    kme_density(x, m = 2, optimize = "all", validate = 1),
    kme_density(x, m = 2, bandwidths = "validate", validate = 0),
    kme_density(x, bandwidths = 1), kme_density(g, bandwidths = 1:2),
    kme_density(x, estimator = estimate, bandwidths = 1:2),
    kme_density(x, kernel_poly(2), bandwidths = 1:2),
    kme_density(x[1:12, ], m = 11, optimize = "all"),
    kme_density(x[1:2, ], m = 1, estimator = "skmse", optimize = "all"),
    kme_density(gram(x, kernel_poly(2)), m = 2, estimator = estimate),
    kme_density(x, start = list(weights = 1, means = x[1:2, ], variances = 1)),
    kme_density(x, m = 2, floor = 0), kme_density(x, m = 2, floor = 1e306),
    kme_density(x, start = replace(start, "variances", list(c(1, 1e-300)))),
    kme_density(x, m = 3, start = start), kme_density(x, start = 1:3),
    kme_density(x, start = start[1:2]), kme_density(x[, 1], start = start),
    kme_density(x, start = replace(start, "weights", list(c(1, 1)))),
    kme_density(as_gram(g$K), m = 2), kme_density(g, kernel_rbf(), m = 2),
    kme_density(x[1:9, ], m = 2, estimator = estimate),
    kme_density(x, m = 2, estimator = target),
    kme_density(x, estimator = \(sample) 1:3, m = 2),
    kme_density(x, m = 2, optimize = "all",
                estimator = kme(x, weights = rep(1 / 272, 272))),
    kme_density(y ~ a, data.frame(y = 1, a = 2)),
    kme(x, kernel_rbf("validate")), predict(fit, x[, 1]),
    predict(fit, type = "prob"), simulate(fit, 0), simulate(fit, 2, seed = "a"),
    simulate(fit, 2, points = 3), summary(fit, 2), logLik(fit, 2), coef(fit, 2),
    plot(fit, columns = 3), plot(fit, 1), plot(fit, type = "path"),
    update(fit, x = 1:3, m = 4), update(fit, lambda = 1),
    update(fit, estimator = estimate, x = x / 2)
  ))))
  expect_snapshot(writeLines(refusals(expression(
    kme_density(1e200 * x, m = 2),
    kme_density(1e60 * x, kernel_poly(3), m = 2, scale = FALSE),
    kme_density(x, kernel_rbf(1e-160), m = 2),
    kme_density(c(0, 1e-300, 1, 2, 1e-301), m = 4, scale = FALSE)
  ), "kernmean_error_numeric")))
})

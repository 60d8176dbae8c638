# Densities from sketches.

set.seed(1)
x <- rbind(random_points(200, 2, 1), random_points(100, 2, 2) / 2 + 3)
rbf <- kernel_rbf(1.2)
own <- kme_landmarks(x, 25, rbf)
sketch <- kme_sketch(x, own)
begin <- list(weights = c(0.5, 0.5), means = rbind(c(0, 0), c(3, 3)),
              covariances = array(diag(2), c(2, 2, 2)))

# J of weights on the landmarks: the embedding of the mixture is known there.
test_that("what is matched is the estimate on the landmarks", {
  for (estimator in list("kme", "skmse", est_fkmse(0.5),
                         est_fkmse(select = "printed"))) {
    fit <- kme_density(sketch, start = begin, estimator = estimator)
    mean <- kme(sketch, estimator = estimator)
    expect_equal(fit$mean$weights, mean$weights)
    same <- kme_density(landmark_x(own), start = begin,
                        estimator = kme(landmark_x(own), rbf,
                                        weights = mean$weights))
    expect_near(fit$weights, same$weights, 1e-6)
    expect_near(fit$objective, same$objective, 1e-9)
    # The best of all weights: a line through them.
    value <- \(w) {
      q <- list(weights = c(w, 1 - w), means = begin$means,
                covariances = begin$covariances)
      kme_risk(mean, q)
    }
    best <- optimize(value, c(0, 1), tol = 1e-9)
    expect_near(fit$weights[1], best$minimum, 1e-5)
    expect_near(fit$distance2, best$objective, 1e-6)
  }
})

test_that("with all rows as landmarks it is the fit to the points", {
  some <- x[c(1:40, 201:220), ]
  all <- kme_sketch(some, kme_landmarks(some, 60, kernel_rbf(0.3)))
  a <- kme_density(all, start = begin)
  b <- kme_density(some, kernel_rbf(0.3), start = begin, scale = FALSE)
  expect_near(a$weights, b$weights, 1e-6)
  expect_near(a$distance2, b$distance2, 1e-7)
  round <- begin[c("weights", "means")]
  round$variances <- c(1, 1)
  a <- kme_density(all, start = round, optimize = "all", steps = 8)
  b <- kme_density(some, kernel_rbf(0.3), start = round, scale = FALSE,
                   optimize = "all", steps = 8)
  expect_near(a$means, b$means, 1e-5)
  expect_near(a$variances, b$variances, 1e-5)
})

test_that("the start stands for the points", {
  set.seed(2)
  mean <- kme(sketch)
  points <- points_for_mean(mean)
  expect_identical(nrow(points), 5000L)
  expect_true(all(points[, 1] %in% landmark_x(own)[, 1]))
  p <- tabulate(match(points[, 1], landmark_x(own)[, 1]), 25) / 5000
  K <- gram_R(rbf, landmark_x(own), landmark_x(own))
  value <- \(p) sum(p * (K %*% p)) - 2 * sum(p * mean$fitted)
  # No distribution on one landmark or on two is nearer than the one found, but
  # for its rounding to 1/5000.
  nearest <- value(p)
  for (i in 1:25) {
    for (share in c(0.02, 0.1, 1)) {
      moved <- (1 - share) * p + share * (seq_len(25) == i)
      expect_gt(value(moved), nearest - 1e-6)
    }
  }
  set.seed(2)
  fit <- kme_density(sketch, m = 2)
  order <- order(fit$means[, 1])
  expect_near(fit$weights[order], c(2, 1) / 3, 0.1)
  expect_equal(fit$means[order, ], begin$means, tolerance = 0.2,
               ignore_attr = TRUE)
  set.seed(2)
  expect_identical(kme_density(sketch, m = 2)$means, fit$means)
  set.seed(2)
  points <- kme_density(x, m = 2)
  expect_near(mean(predict(fit, x, type = "log")),
              mean(predict(points, type = "log")), 0.02)
})

test_that("units are those of the landmarks", {
  set.seed(3)
  scaled <- kme_landmarks(x, 25, scale = "whiten")
  fit <- kme_density(kme_sketch(x, scaled), m = 2)
  expect_equal(dim(fit$covariances), c(2L, 2L, 2L))
  set.seed(4)
  drawn <- simulate(fit, 4000)
  expect_near(colMeans(drawn), colMeans(x), 0.1)
  expect_near(cov(drawn), cov(x), 0.15)
})

test_that("a fit prints, updates and draws without rows", {
  set.seed(5)
  fit <- kme_density(sketch, m = 2, nstart = 5)
  expect_output(print(fit), "300 rows in a sketch of 25 landmarks")
  expect_equal(fit$n, 300)
  expect_identical(update(fit, m = 3)$m, 3L)
  set.seed(5)
  again <- kme_density(sketch, m = 2, nstart = 5, estimator = kme(sketch))
  expect_equal(again$means, fit$means)
  pdf(NULL)
  on.exit(dev.off())
  expect_equal(dim(plot(fit, n = 20)$z), c(20L, 20L))
  expect_identical(nrow(plot(fit, columns = 1, n = 30)), 30L)
})

test_that("what rows are needed for is refused", {
  fit <- kme_density(sketch, start = begin)
  refused(predict(fit), "'newdata' must be given")
  refused(logLik(fit), "not to a sketch")
  refused(kme_density(sketch), "'m' must be a whole number for a sketch")
  refused(kme_density(sketch, m = "validate"), "takes rows to be held out")
  refused(kme_density(sketch, m = 2:3), "takes rows to be held out")
  refused(kme_density(sketch, m = 2, validate = 0.2), "must be 0 for a sketch")
  refused(kme_density(sketch, m = 2, scale = TRUE), "'scale' must not be given")
  refused(kme_density(sketch, m = 2, bandwidths = 1:2), "'bandwidths' must not")
  refused(kme_density(sketch, m = 2, estimator = "smooth"), "sums over rows")
  refused(kme_density(sketch, m = 2, estimator = kme(x, rbf)),
          "a fit of kme\\(\\) to 'x'")
  refused(kme_density(sketch, m = 26), "distinct points that stand for")
})

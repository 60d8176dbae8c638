# Smoothing about the mean: twins that fit every estimate left out anew, limits,
# and maps of the data that must not matter.

rbf <- kernel_rbf(1.3)

smoothed <- function(x, theta, ..., kernel = kernel_rbf(theta)) {
  kme(x, kernel, est_smooth(..., guard = FALSE))
}

# All that a fit says, against the twin; `tolerance` of the numbers, and of what
# depends on which h is chosen nothing but that.
expect_twin <- function(fit, x, theta, fold = folds_R(nrow(x)),
                        tolerance = 1e-10) {
  scores <- smooth_scores_R(x, theta, fold = fold)
  expect_equal(fit$score$h, scores$h)
  expect_near(fit$score$score, scores$score, tolerance)
  expect_near(fit$score$c, scores$c, tolerance)
  best <- scores[which.min(scores$score), ]
  expect_equal(fit$h, best$h)
  expect_near(fit$c, best$c, tolerance)
  expect_near(fit$minimum, best$score, tolerance)
  expect_near(fit$reference, 1 - 2 * scores$A[1] + scores$B[1], tolerance)
  expect_near(unname(fit$covariance), lw_covariance_R(x, theta), tolerance)
  expect_mean(fit, smooth_R(x, theta, best$h, best$c), theta, tolerance)
}

expect_mean <- function(fit, mean, theta, tolerance = 1e-10) {
  x <- unname(fit$sample$x)
  z <- random_points(6, ncol(x), 77) + colMeans(x)[1]
  expect_near(unname(predict(fit, z)), mean_at_R(mean, z, theta), tolerance)
  expect_near(unname(fit$fitted), mean_at_R(mean, x, theta), tolerance)
  expect_near(fit$norm2, mean_inner_R(mean, mean, theta), tolerance)
}

as_normal <- function(m, S) {
  list(weights = 1, means = matrix(m, 1), covariances = S)
}

# --- The twin ----------------------------------------------------------------

test_that("scores, choice and embedding are those of the naive twin", {
  skip_on_cran()
  for (case in list(list(5, 1, 0.8), list(9, 2, c(0.7, 2)), list(12, 3, 1.5),
                    list(12, 2, 0.4), list(7, 3, c(1, 0.5, 3)))) {
    x <- random_points(case[[1]], case[[2]]) + 2
    expect_twin(smoothed(x, case[[3]]), x, case[[3]])
  }
  # A heavy tail spreads the estimate: c is at most 1.
  x <- rbind(random_points(14, 1) * 0.2, -3, 4)
  expect_twin(smoothed(x, 0.5), x, 0.5)
})

test_that("with folds the points of a fold are left out together", {
  x <- random_points(11, 2)
  for (folds in c(3, 4, 10, 11)) {
    expect_twin(smoothed(x, 1, folds = folds), x, 1, folds_R(11, folds))
  }
  # No more folds than points.
  for (folds in c(11, 12, Inf)) {
    expect_identical(smoothed(x, 1, folds = folds)$score, smoothed(x, 1)$score)
  }
})

test_that("beyond 60 points there are 20 folds", {
  skip_on_cran()
  x <- random_points(70, 2)
  expect_twin(smoothed(x, 0.9), x, 0.9)
  expect_equal(smoothed(x, 0.9)$folds, 20)
  expect_equal(smoothed(x[1:61, ], 0.9)$folds, 20)
  expect_equal(smoothed(x[1:60, ], 0.9)$folds, 60)
  expect_equal(smoothed(x[1:60, ], 0.9)$score,
               smoothed(x[1:60, ], 0.9, folds = 60)$score)
})

test_that("what is given of h and c is not chosen", {
  x <- random_points(10, 2)
  fit <- smoothed(x, 1, h = 0.37)
  want <- smooth_scores_R(x, 1, 0.37)
  expect_equal(fit$h, 0.37)
  expect_near(fit$c, want$c, 1e-10)
  expect_near(fit$minimum, want$score, 1e-10)
  expect_mean(fit, smooth_R(x, 1, 0.37, want$c), 1)
  fit <- smoothed(x, 1, c = 0.7)
  want <- smooth_scores_R(x, 1, c = 0.7)
  expect_near(fit$score$score, want$score, 1e-10)
  expect_equal(fit$c, 0.7)
  expect_equal(fit$h, want$h[which.min(want$score)])
  fit <- smoothed(x, c(1, 2), h = 0.2, c = 0.9)
  expect_mean(fit, smooth_R(x, c(1, 2), 0.2, 0.9), c(1, 2))
  expect_near(fit$weights, rep(0.09, 10), 1e-14)
})

# --- Geometry ----------------------------------------------------------------

test_that("inner products with other means are those of the twin", {
  x <- random_points(8, 2)
  y <- random_points(6, 2) + 1
  theta <- c(0.9, 1.6)
  k <- kernel_rbf(theta)
  w <- c(2, -1, 0.5, 0, 1, 1)
  fits <- list(
    smoothed(x, theta, h = 0.3, c = 1), smoothed(y, theta, h = 0.7, c = 0.8),
    smoothed(y, theta, h = 1, c = 1), kme(y, k, weights = w),
    kme(x, k, est_mkme(0.4)), kme(x, k, est_mmkme(c(0.3, 1.2))),
    kme(x, k, "fkmse", lambda = 0.5)
  )
  twins <- list(
    smooth_R(x, theta, 0.3), smooth_R(y, theta, 0.7, 0.8),
    smooth_R(y, theta, 1), list(part_R(y, w)), twin_noise(0.4)(x, theta),
    twin_noise(c(0.3, 1.2))(x, theta), twin_fkmse(0.5)(x, theta)
  )
  q <- length(fits)
  want <- matrix(0, q, q)
  for (a in seq_len(q)) {
    for (b in seq_len(q)) {
      want[a, b] <- mean_inner_R(twins[[a]], twins[[b]], theta)
      expect_near(kme_inner(fits[[a]], fits[[b]]), want[a, b], 1e-10)
    }
  }
  expect_near(kme_inner(fits), want, 1e-10)
  apart <- outer(diag(want), diag(want), `+`) - 2 * want
  expect_lt(max(abs(kme_distance(fits)^2 - apart)), 1e-12)
  for (a in seq_len(q - 1)) {
    expect_lt(abs(kme_distance(fits[[a]], fits[[q]])^2 - apart[a, q]), 1e-12)
  }
})

test_that("values, norm and inner products of one fit agree", {
  x <- random_points(30, 3)
  fit <- smoothed(x, 0.8)
  expect_gt(fit$h, 0)
  expect_equal(predict(fit), unname(fit$fitted))
  expect_near(predict(fit, x), predict(fit), 1e-12)
  expect_near(kme_inner(fit, fit), fit$norm2, 1e-12)
  expect_identical(kme_distance(fit, fit), 0)
  plain <- kme(x, kernel_rbf(0.8))
  expect_near(kme_inner(plain, fit), mean(fit$fitted), 1e-12)
  expect_near(sum(fit$weights), fit$c, 1e-12)
  refused(coef(fit), "as_weights")
  # Rows of new points do not see each other.
  z <- random_points(5, 3)
  expect_near(predict(fit, z)[2], predict(fit, z[2, , drop = FALSE]), 1e-13)
})

test_that("the risk is that of the mixture the estimate is", {
  x <- random_points(7, 2)
  theta <- 1.1
  truth <- list(weights = c(0.4, 0.6), means = rbind(c(0, 1), c(-1, 0.5)),
                covariances = array(c(1, 0.3, 0.3, 2, 0.5, 0, 0, 0.2),
                                    c(2, 2, 2)))
  fit <- smoothed(x, theta, h = 0.4, c = 0.9)
  twin <- smooth_R(x, theta, 0.4, 0.9)
  parts <- lapply(1:2, \(j) {
    part_R(truth$means[j, , drop = FALSE], truth$weights[j],
           truth$covariances[, , j])
  })
  want <- mean_inner_R(twin, twin, theta) - 2 *
    mean_inner_R(twin, parts, theta) + mean_inner_R(parts, parts, theta)
  expect_near(kme_risk(fit, truth), want, 1e-10)
  # As a mixture of n normal distributions, itself the truth.
  fit <- smoothed(x, theta, h = 0.4, c = 1)
  points <- smooth_R(x, theta, 0.4)[[1]]
  itself <- list(weights = points$weights, means = points$points,
                 covariances = array(points$noise, c(2, 2, 7)))
  expect_lt(kme_risk(fit, itself), 1e-14)
})

# --- Limits ------------------------------------------------------------------

test_that("without smoothing it is the KME, or S-KMSE", {
  x <- random_points(13, 2)
  plain <- kme(x, rbf)
  fit <- smoothed(x, 1.3, h = 0, c = 1)
  expect_equal(fit$weights, plain$weights)
  expect_near(fit$fitted, plain$fitted, 1e-13)
  expect_near(fit$norm2, plain$norm2, 1e-13)
  expect_lt(kme_distance(fit, plain), 1e-7)
  expect_near(fit$minimum, fit$reference, 1e-13)
  # c = A/B is the share 1 - alpha of the leave-one-out score in closed form.
  shrunk <- kme(x, rbf, "skmse")
  fit <- smoothed(x, 1.3, h = 0)
  expect_near(fit$c, 1 - shrunk$alpha, 1e-12)
  expect_near(fit$minimum, shrunk$minimum, 1e-12)
  expect_near(fit$reference, shrunk$reference, 1e-12)
  expect_lt(kme_distance(fit, shrunk), 1e-7)
  expect_near(smoothed(x, 1.3)$score$c[1], 1 - shrunk$alpha, 1e-12)
})

test_that("smoothed all the way it is the embedding of a normal law", {
  for (theta in list(1.3, c(0.5, 2, 1))) {
    x <- random_points(11, 3)
    fit <- smoothed(x, theta, h = 1, c = 1)
    normal <- as_normal(colMeans(x), lw_covariance_R(x, theta))
    expect_lt(kme_risk(fit, normal), 1e-14)
  }
})

# --- What must not matter ----------------------------------------------------

same_choice <- function(a, b, tolerance = 1e-9) {
  expect_equal(a$h, b$h)
  for (field in c("c", "minimum", "reference", "norm2", "fitted", "weights")) {
    expect_near(a[[field]], b[[field]], tolerance)
  }
  expect_near(a$score, b$score, tolerance)
}

test_that("affine maps change nothing if the kernel is mapped alike", {
  x <- random_points(12, 3)
  z <- random_points(4, 3)
  fit <- smoothed(x, 0.9)
  expect_gt(fit$h, 0)
  moved <- smoothed(-2.5 * x + 7, 2.5 * 0.9)
  same_choice(moved, fit)
  expect_near(predict(moved, -2.5 * z + 7), predict(fit, z), 1e-9)
  expect_near(moved$covariance, 6.25 * fit$covariance, 1e-10)
  turn <- qr.Q(qr(random_points(3, 3, 5)))
  turned <- smoothed(x %*% turn, 0.9)
  same_choice(turned, fit)
  expect_near(predict(turned, z %*% turn), predict(fit, z), 1e-9)
  by <- c(100, 0.01, 3)
  scaled <- smoothed(sweep(x, 2, by, "*"), by * 0.9)
  same_choice(scaled, fit)
  expect_near(predict(scaled, sweep(z, 2, by, "*")), predict(fit, z), 1e-9)
})

test_that("the units of a kernel are those of data scaled by hand", {
  x <- random_points(14, 2) %*% matrix(c(3, 1, 0, 0.2), 2)
  z <- x[1:3, ] + 0.1
  for (scale in list(TRUE, "whiten")) {
    fit <- kme(x, rbf, est_smooth(guard = FALSE), scale = scale)
    root <- if (isTRUE(scale)) diag(1 / apply(x, 2, stats::sd)) else {
      # Up to a rotation, which an isotropic kernel does not see.
      solve(chol(stats::cov(x)))
    }
    by_hand <- smoothed(x %*% root, 1.3)
    same_choice(fit, by_hand)
    expect_near(predict(fit, z), predict(by_hand, z %*% root), 1e-9)
  }
})

test_that("points of a gram are points", {
  x <- random_points(14, 2)
  fit <- smoothed(x, 1.3)
  bare <- est_smooth(guard = FALSE)
  on_gram <- kme(gram(x, rbf), estimator = bare)
  same_choice(on_gram, fit, 1e-12)
  frame <- data.frame(u = x[, 1], v = x[, 2])
  same_choice(kme(~ u + v, frame, kernel = rbf, estimator = bare), fit,
              1e-12)
})

# --- Degenerate samples ------------------------------------------------------

test_that("constant columns are not there", {
  x <- random_points(10, 2)
  fit <- smoothed(x, c(1, 2))
  wide <- smoothed(cbind(x[, 1], 5, x[, 2], 0), c(1, 3, 2, 0.1))
  same_choice(wide, fit, 1e-12)
  expect_near(unname(wide$covariance)[c(1, 3), c(1, 3)],
              unname(fit$covariance), 1e-12)
  expect_identical(unname(wide$covariance)[c(2, 4), ], matrix(0, 2, 4))
  expect_twin(wide, cbind(x[, 1], 5, x[, 2], 0), c(1, 3, 2, 0.1))
})

test_that("a column that one point alone changes is constant without it", {
  x <- cbind(random_points(9, 2), 0)
  x[4, 3] <- 2
  expect_twin(smoothed(x, 1), x, 1)
  x <- cbind(x, rep(c(1, 1, 1.5), 3))
  expect_twin(smoothed(x, c(1, 0.5, 2, 1), folds = 3), x, c(1, 0.5, 2, 1),
              folds_R(9, 3))
  # All that varies is in one point.
  x <- matrix(1, 5, 3)
  x[2, ] <- c(0, 1, 3)
  expect_twin(smoothed(x, 1), x, 1)
})

test_that("more columns than points are no matter", {
  skip_on_cran()
  x <- random_points(8, 30)
  expect_twin(smoothed(x, 6), x, 6)
  theta <- seq(4, 9, length.out = 30)
  expect_twin(smoothed(x, theta), x, theta)
  # A column of its own for some points: without them it is constant, and no
  # linear map of the columns tells.
  x[, 30] <- 0
  x[3, 30] <- 1
  x[, 29] <- 0
  x[c(2, 5), 29] <- c(-1, 2)
  expect_twin(smoothed(x, 5), x, 5)
  expect_twin(smoothed(x, 5, folds = 3), x, 5, folds_R(8, 3))
})

test_that("equal points are their KME", {
  for (n in c(2, 5, 70)) {
    fit <- smoothed(matrix(1:3, n, 3, byrow = TRUE), 1)
    expect_equal(fit$h, 0)
    expect_equal(fit$c, 1)
    expect_near(fit$norm2, 1, 1e-13)
    expect_equal(fit$minimum, 0)
    expect_identical(unname(fit$covariance), matrix(0, 3, 3))
  }
})

test_that("values of h whose norm underflows are no choice", {
  # s = 1e12 in 80 columns: (1 + 2 h s)^(-40) < 1e-400 for all h > 0.
  x <- random_points(6, 80)
  x <- x[c(1:6, 1:6), ]
  fit <- smoothed(x, 1e-6)
  expect_equal(fit$h, 0)
  expect_null(fit$score)
  # Of the other 11 points one is equal.
  expect_near(fit$c, (1 / 11) / ((5 * 4 + 1) / 121), 1e-12)
  expect_true(all(is.finite(fit$fitted)))
  # Without a point equal to it any estimate but 0 is worse than 0, but 0 is
  # what h > 0 would make of them, not what is asked for.
  alone <- smoothed(x[1:6, ], 1e-6, c = 1)
  expect_equal(c(alone$h, alone$c), c(0, 1))
  expect_equal(alone$minimum, 1 + 1 / 5)
  # None is left: that is said.
  for (folds in list(NULL, 3)) {
    expect_warning(given <- smoothed(x, 1e-6, h = 0.5, folds = folds),
                   class = "kernmean_warning_smooth")
    expect_equal(given$fitted, kme(x, kernel_rbf(1e-6))$fitted)
    expect_equal(c(given$h, given$c), c(0, 1))
  }
})

# --- Weights on the points ---------------------------------------------------

test_that("weights on the points are the nearest combination", {
  x <- random_points(9, 2)
  fit <- smoothed(x, 0.6, h = 0.5, c = 0.9)
  w <- as_weights(fit)
  nearest <- kme(x, kernel_rbf(0.6), weights = w)
  # What is left is orthogonal to the features of all points.
  expect_near(nearest$fitted, fit$fitted, 1e-9)
  expect_near(kme_distance(fit, nearest)^2, fit$norm2 - nearest$norm2, 1e-8)
  for (other in list(w + 0.01, w * 1.02, fit$weights)) {
    expect_gt(kme_distance(fit, kme(x, kernel_rbf(0.6), weights = other)),
              kme_distance(fit, nearest))
  }
  plain <- as_weights(smoothed(x, 0.6, h = 0, c = 0.9))
  expect_near(plain, rep(0.1, 9), 1e-9)
})

# --- update() ----------------------------------------------------------------

test_that("update() keeps what was given of h, c and the folds", {
  x <- random_points(12, 2)
  fit <- smoothed(x, 0.9)
  same_choice(update(fit), fit, 1e-14)
  same_choice(update(fit, h = 0.3), smoothed(x, 0.9, h = 0.3), 1e-14)
  same_choice(update(fit, folds = 4), smoothed(x, 0.9, folds = 4), 1e-14)
  both <- update(update(fit, h = 0.3), c = 0.5)
  same_choice(both, smoothed(x, 0.9, h = 0.3, c = 0.5), 1e-14)
  same_choice(update(both, h = NULL), smoothed(x, 0.9, c = 0.5), 1e-14)
  same_choice(update(fit, x = x[1:7, ]), smoothed(x[1:7, ], 0.9), 1e-14)
  other <- update(both, estimator = "kme")
  expect_equal(other$fitted, kme(x, kernel_rbf(0.9))$fitted)
  expect_equal(update(other, estimator = "smooth")$score, fit$score)
})

test_that("the number of threads does not change a bit", {
  x <- random_points(150, 5)
  old <- kernmean_threads()
  on.exit(kernmean_threads(old))
  fits <- lapply(c(1, 2), \(threads) {
    kernmean_threads(threads)
    smoothed(x, 1.5)
  })
  expect_identical(fits[[1]]$score, fits[[2]]$score)
  expect_identical(fits[[1]]$fitted, fits[[2]]$fitted)
})

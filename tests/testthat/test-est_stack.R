# Stacking: twins that fit every candidate anew without the points left out, the
# program that its shares solve, and limits.

rbf <- kernel_rbf(1.3)

# Without a guard, whose tests stand in test-est_guard.R.
stacked <- function(x, theta, ...) {
  kme(x, kernel_rbf(theta), est_stack(..., guard = FALSE))
}

# Candidates that know no points, and their twins; lambdas from one that leaves
# the KME to one that leaves little.
own_candidates <- function() {
  list(est_kme(), est_skmse(lambda = 0.1), est_fkmse(lambda = 1e-4),
       est_fkmse(lambda = 0.2), est_fkmse(lambda = 30),
       est_smooth(h = 0.3, c = 1), est_smooth(h = 0.9, c = 0.8),
       est_mkme(noise = 0.3), est_mmkme(noise = c(0.1, 0.6)))
}
own_twins <- function() {
  list(twin_kme(), twin_skmse(0.1), twin_fkmse(1e-4), twin_fkmse(0.2),
       twin_fkmse(30), twin_smooth(0.3), twin_smooth(0.9, 0.8),
       twin_noise(0.3), twin_noise(c(0.1, 0.6)))
}

# The candidates of default as a list.
seven <- function(x, theta) {
  K <- kernel_R(x, x, theta, "rbf")
  top <- eigen(K, symmetric = TRUE, only.values = TRUE)$values[1]
  c(list(est_kme()), lapply(c(0.003, 0.03, 0.3) * top, est_fkmse),
    lapply(c(0.15, 0.4, 0.8), \(h) est_smooth(h = h, c = 1)))
}

# What does not amplify rounding to 1e-10; the shares, which the ridge of 1e-9
# lets it amplify, by what they are for.
expect_stack <- function(fit, x, theta, candidates = seven_R(x, theta),
                         fold = folds_R(nrow(x))) {
  want <- stack_R(x, theta, candidates, fold)
  shares <- fit$candidates$share
  expect_near(fit$candidates$score, want$score, 1e-10)
  expect_near(fit$candidates$mass, want$mass, 1e-10)
  expect_near(fit$reference, want$reference, 1e-10)
  expect_near(fit$minimum, want$minimum, 1e-10)
  expect_near(fit$minimum, 1 + stack_value_R(shares, want$G, want$g), 1e-10)
  expect_true(all(shares >= 0))
  expect_lte(sum(shares * want$mass), 1 + 1e-12)
  expect_lt(below_R(shares, want$G, want$g, want$mass), 1e-9)
  expect_near(shares, want$shares, 1e-4)
  mean <- mean_sum_R(lapply(candidates, \(a) a(x, theta)), shares)
  z <- random_points(6, ncol(x), 77)
  expect_near(unname(predict(fit, z)), mean_at_R(mean, z, theta), 1e-10)
  expect_near(unname(fit$fitted), mean_at_R(mean, x, theta), 1e-10)
  expect_near(fit$norm2, mean_inner_R(mean, mean, theta), 1e-10)
  # Given from the shares of the fit, not of the twin: its weights too.
  weights <- Reduce(`+`, lapply(mean, \(part) part$weights))
  expect_near(fit$weights, weights, 1e-10)
  want
}

# --- The twin ----------------------------------------------------------------

test_that("the seven candidates are stacked as by the naive twin", {
  skip_on_cran()
  for (case in list(list(8, 1, 0.6), list(12, 2, c(0.7, 2)), list(9, 3, 1.2),
                    list(6, 2, 0.3))) {
    x <- random_points(case[[1]], case[[2]])
    fit <- stacked(x, case[[3]])
    expect_stack(fit, x, case[[3]])
    expect_identical(nrow(fit$candidates), 7L)
    listed <- stacked(x, case[[3]], seven(x, case[[3]]))
    expect_near(listed$candidates$score, fit$candidates$score, 1e-12)
    expect_near(listed$minimum, fit$minimum, 1e-10)
  }
})

test_that("a list of one's own is stacked as by the naive twin", {
  skip_on_cran()
  x <- random_points(10, 2)
  expect_stack(stacked(x, 0.8, own_candidates()), x, 0.8, own_twins())
  expect_stack(stacked(x, c(0.5, 1), own_candidates(), folds = 4), x,
               c(0.5, 1), own_twins(), folds_R(10, 4))
  expect_stack(stacked(x, 0.8, own_candidates()[c(3, 5)]), x, 0.8,
               own_twins()[c(3, 5)])
  expect_stack(stacked(x, 0.8, own_candidates()[6:7], folds = 3), x, 0.8,
               own_twins()[6:7], folds_R(10, 3))
})

test_that("weights and smoothing alone are stacked without refits", {
  x <- random_points(11, 2, 1)
  candidates <- list(est_kme(), est_smooth(h = 0.3, c = 0.7), est_fkmse(2),
                     est_smooth(h = 1, c = 0.9), est_fkmse(1e-3))
  twins <- list(twin_kme(), twin_smooth(0.3, 0.7), twin_fkmse(2),
                twin_smooth(1, 0.9), twin_fkmse(1e-3))
  fit <- stacked(x, 2, candidates)
  expect_stack(fit, x, 2, twins)
  # Both kinds have shares: what they have in common counts.
  expect_true(all(fit$candidates$share[c(1, 3, 4)] > 0.1))
  expect_stack(stacked(x, 2, candidates, folds = 4), x, 2, twins,
               folds_R(11, 4))
  # At h = 1 one point stands for all.
  expect_near(stacked(x, 2, candidates, c(0.1, 0.2, 0, 0.5, 0))$weights,
              rep((0.1 + 0.14 + 0.45) / 11, 11), 1e-13)
})

test_that("beyond 60 points there are 20 folds", {
  skip_on_cran()
  x <- random_points(63, 2)
  fit <- stacked(x, 0.7)
  expect_stack(fit, x, 0.7)
  expect_equal(fit$folds, 20)
  expect_equal(stacked(x[1:60, ], 0.7)$folds, 60)
})

# --- Limits ------------------------------------------------------------------

test_that("one candidate is scaled to its smallest score", {
  x <- random_points(12, 2)
  for (h in c(0, 0.3)) {
    fit <- stacked(x, 1, list(est_smooth(h = h, c = 1)))
    alone <- kme(x, kernel_rbf(1), est_smooth(h = h, guard = FALSE))
    # The ridge of the program is 1e-9.
    expect_near(fit$candidates$share, alone$c, 1e-8)
    expect_near(fit$minimum, alone$minimum, 1e-12)
    expect_lt(kme_distance(fit, alone), 1e-8)
  }
  fit <- stacked(x, 1, list(est_kme()))
  shrunk <- kme(x, kernel_rbf(1), "skmse")
  expect_near(fit$candidates$share, 1 - shrunk$alpha, 1e-8)
})

test_that("the mass of the whole is at most 1, and 1 where that binds", {
  # Far apart: what is best is less than the KME.
  x <- random_points(10, 3)
  loose <- stacked(x, 0.5)$candidates
  expect_lt(sum(loose$share * loose$mass), 0.999)
  # A heavy tail spreads what is smoothed: more of it would be better.
  x <- rbind(random_points(14, 1) * 0.2, -3, 4)
  fit <- stacked(x, 0.5, list(est_smooth(h = 0.07, c = 0.8),
                              est_smooth(h = 0.4, c = 0.5)))
  tight <- fit$candidates
  expect_near(tight$mass, c(0.8, 0.5), 1e-12)
  expect_near(sum(tight$share * tight$mass), 1, 1e-9)
  expect_near(sum(fit$weights), 1, 1e-9)
  expect_stack(fit, x, 0.5, list(twin_smooth(0.07, 0.8), twin_smooth(0.4, 0.5)))
  # F-KMSE has a mass below 1, and may have a share above it.
  fit <- stacked(x, 0.5, list(est_fkmse(1), est_fkmse(5)))
  tight <- fit$candidates
  expect_true(all(tight$mass < 1))
  expect_gt(sum(tight$share), 1)
  expect_lt(sum(tight$share * tight$mass), 0.999)
  expect_stack(fit, x, 0.5, list(twin_fkmse(1), twin_fkmse(5)))
})

test_that("the score is nowhere above that of a candidate or of 0", {
  for (theta in c(0.2, 1, 5)) {
    fit <- stacked(random_points(20, 2), theta)
    expect_true(all(fit$minimum <= c(fit$candidates$score, 1) + 1e-8))
    expect_near(fit$candidates$score[1], fit$reference, 1e-12)
  }
})

test_that("given shares choose nothing", {
  x <- random_points(9, 2)
  theta <- 0.8
  shares <- c(0.2, 0, 0.1, 0.1, 0, 0.3, 0.05, 0.1, 0.1)
  fit <- stacked(x, theta, own_candidates(), shares = shares)
  expect_near(fit$candidates$share, shares, 1e-14)
  means <- lapply(own_twins(), \(twin) twin(x, theta))
  z <- random_points(4, 2, 3)
  expect_near(predict(fit, z),
              mean_at_R(mean_sum_R(means, shares), z, theta), 1e-12)
  # The same shares as those chosen.
  chosen <- stacked(x, theta)
  given <- stacked(x, theta, seven(x, theta), chosen$candidates$share)
  expect_near(given$fitted, chosen$fitted, 1e-13)
  expect_near(given$norm2, chosen$norm2, 1e-12)
  expect_near(given$weights, chosen$weights, 1e-13)
  nothing <- stacked(x, theta, list(est_kme()), shares = 0)
  expect_equal(nothing$fitted, numeric(9))
  expect_equal(nothing$norm2, 0)
})

# --- Geometry ----------------------------------------------------------------

test_that("values, norms, weights and products are sums over candidates", {
  x <- random_points(11, 2)
  theta <- c(0.6, 1.1)
  k <- kernel_rbf(theta)
  shares <- c(0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05)
  fit <- stacked(x, theta, own_candidates(), shares = shares)
  alone <- lapply(own_candidates(), \(estimator) kme(x, k, estimator))
  inner <- kme_inner(alone)
  expect_near(fit$norm2, drop(shares %*% inner %*% shares), 1e-12)
  expect_near(kme_inner(fit, fit), fit$norm2, 1e-12)
  expect_identical(kme_distance(fit, fit), 0)
  sum_of <- \(f) drop(vapply(alone, f, numeric(11)) %*% shares)
  expect_near(fit$weights, sum_of(\(a) a$weights), 1e-12)
  expect_near(fit$fitted, sum_of(\(a) a$fitted), 1e-12)
  expect_near(predict(fit, x), predict(fit), 1e-12)
  other <- kme(random_points(5, 2), k, est_smooth(h = 0.5, c = 1))
  expect_near(kme_inner(fit, other),
              sum(shares * vapply(alone, kme_inner, 1, other)), 1e-12)
  expect_equal(kme_inner(list(fit, other, alone[[6]]))[1, ],
               c(fit$norm2, kme_inner(fit, other), drop(inner[6, ] %*% shares)),
               tolerance = 1e-12)
  expect_near(kme_distance(list(fit, other))[1, 2],
              kme_distance(fit, other), 1e-12)
  mixture <- list(weights = 1, means = c(0, 0.3),
                  covariances = matrix(c(1, 0.2, 0.2, 0.5), 2))
  normal <- list(part_R(matrix(c(0, 0.3), 1), 1, mixture$covariances))
  mean <- mean_sum_R(lapply(own_twins(), \(twin) twin(x, theta)), shares)
  expect_equal(kme_risk(fit, mixture), mean_inner_R(mean, mean, theta) - 2 *
                 mean_inner_R(mean, normal, theta) +
                 mean_inner_R(normal, normal, theta), tolerance = 1e-10)
})

test_that("weights on the points are the nearest combination", {
  x <- random_points(9, 2)
  k <- kernel_rbf(0.5)
  fit <- stacked(x, 0.5, seven(x, 0.5), c(0.1, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1))
  nearest <- kme(x, k, weights = as_weights(fit))
  expect_near(nearest$fitted, fit$fitted, 1e-9)
  expect_near(kme_distance(fit, nearest)^2, fit$norm2 - nearest$norm2, 1e-8)
  expect_gt(kme_distance(fit, kme(x, k, weights = fit$weights)),
            kme_distance(fit, nearest))
  # Where it is one, itself.
  plain <- stacked(x, 0.5, list(est_kme(), est_fkmse(0.1)))
  expect_near(as_weights(plain), plain$weights, 1e-12)
  k <- kernel_R(x, x, 0.5, "rbf")
  expect_near(plain$fitted, drop(k %*% plain$weights), 1e-12)
})

# --- What must not matter ----------------------------------------------------

test_that("affine maps change nothing if the kernel is mapped alike", {
  x <- random_points(12, 2)
  z <- random_points(4, 2)
  fit <- stacked(x, 0.6)
  turn <- qr.Q(qr(random_points(2, 2, 5)))
  by <- c(100, 0.01)
  moved <- list(
    list(stacked(-2.5 * x + 7, 1.5), -2.5 * z + 7),
    list(stacked(x %*% turn, 0.6), z %*% turn),
    list(stacked(sweep(x, 2, by, "*"), by * 0.6), sweep(z, 2, by, "*")),
    list(stacked(cbind(x, 3), c(0.6, 0.6, 1)), cbind(z, 3)),
    list(kme(gram(x, kernel_rbf(0.6)), estimator = est_stack(guard = FALSE)), z)
  )
  for (case in moved) {
    expect_near(case[[1]]$minimum, fit$minimum, 1e-10)
    expect_near(case[[1]]$candidates$score, fit$candidates$score, 1e-10)
    # Shares: rounding over the ridge, 1e-16/1e-9, and some.
    expect_near(case[[1]]$candidates$share, fit$candidates$share, 1e-4)
    expect_near(predict(case[[1]], case[[2]]), predict(fit, z), 1e-5)
  }
})

# --- update() ----------------------------------------------------------------

test_that("update() keeps the candidates, their shares and the folds", {
  x <- random_points(12, 2)
  own <- list(est_kme(), est_fkmse(0.1))
  fit <- stacked(x, 0.6, own)
  same <- function(a, b) {
    expect_equal(a$candidates, b$candidates)
    expect_equal(a$fitted, b$fitted)
    expect_equal(a$folds, b$folds)
  }
  same(update(fit), fit)
  same(update(fit, folds = 3), stacked(x, 0.6, own, folds = 3))
  given <- update(fit, shares = c(0.3, 0.4))
  same(given, stacked(x, 0.6, own, shares = c(0.3, 0.4)))
  same(update(given, shares = NULL), fit)
  same(update(fit, candidates = own_candidates()),
       stacked(x, 0.6, own_candidates()))
  same(update(fit, candidates = NULL), stacked(x, 0.6))
  same(update(given, kernel = kernel_rbf(2)),
       stacked(x, 2, own, shares = c(0.3, 0.4)))
  same(update(fit, x = x[1:8, ]), stacked(x[1:8, ], 0.6, own))
})

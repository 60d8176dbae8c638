# What rkhs_iv() and rkhs_iv_nested() refuse, and what they do not.

s <- iv_sample(20, 3)
a <- s$a
b <- s$b
c <- s$c
d <- s$d
y <- s$y
w <- s$w
rbf <- kernel_rbf(1)
holes <- replace(d, 3, NA)
frame <- data.frame(y, a, d, f = factor(rep_len(1:4, 20)))

test_that("bad blocks and outcomes are refused", {
  expect_snapshot(writeLines(refusals(expression(
    iv(a, y),
    iv(a[-1, ], y, d, rbf),
    iv(a, y[-1], d, rbf),
    iv(a, letters[1:20], d, rbf),
    iv(a, cbind(y, y), d, rbf),
    iv(a, replace(y, 2, NA), d, rbf),
    iv(a, y, holes, rbf),
    iv(a[0, ], y[0], d[0, ], rbf),
    iv_nested(a, b, c, d),
    iv_nested(a, b[-1, ], c, d, y),
    iv_nested(a, b, c, d, y, w = w[-1]),
    iv_nested(a, b, c, d, y, w = factor(w > 1))
  ))))
})

test_that("bad subsets and folds are refused", {
  skip_on_cran()
  half <- rep(0:1, 10)
  expect_snapshot(writeLines(refusals(expression(
    iv_nested(a, b, c, d, y, subset = rep(1, 20)),
    iv_nested(a, b, c, d, y, subset = half, folds = rep(0:1, 10)),
    iv_nested(a, b, c, d, y, subset = half, folds = half + (1:20 == 1)),
    iv(a, y, d, rbf, folds = 21), iv(a, y, d, rbf, folds = 1),
    iv(a, y, d, rbf, folds = 1:3), iv(a, y, d, rbf, folds = rep("one", 20))
  ))))
})

test_that("bad penalties and choices are refused", {
  skip_on_cran()
  expect_snapshot(writeLines(refusals(expression(
    iv(a, y, d, rbf, mu = base::c(1, 0)), iv(a, y, d, rbf, lambda = -1),
    iv(a, y, d, rbf, select = "cv", mu = 1),
    iv(a, y, d, rbf, tol_learner = -1), iv(a, y, d, rbf, tol_instrument = 1),
    iv(a, y, d, rbf, preset = "other"),
    iv(a, y, d, rbf, preset = "nnpiv", mu = 1),
    iv_nested(a, b, c, d, y, mu_g = 1:2, mu_h = base::c(1, 3)),
    iv(a, y, d, rbf, preset = list(alpha_scale = base::c(1, 0)))
  ))))
})

test_that("bad kernels and approximations are refused", {
  f <- frame$f
  expect_snapshot(writeLines(refusals(expression(
    iv(a, y, d, "rbf"), iv(a, y, d, kernel_rbf), iv(a, y, d, kernel_energy()),
    iv(a, y, d, list(rbf, rbf)), iv(a, y, d, list(x = rbf, x = rbf)),
    iv(a, y, d, list(x = "rbf")),
    iv_nested(a, b, c, d, y, kernel = list(x = rbf)),
    iv(gram(a, rbf), y, gram(d, rbf), rbf),
    iv(gram(a, rbf), y, gram(d, rbf), scale = TRUE),
    iv(a, y, d, rbf, landmarks = 21), iv(a, y, d, rbf, landmarks = 0),
    iv(a, y, d, rbf, landmarks = base::c(1, 1)),
    iv(a, y, d, rbf, landmarks = 3, features = 3),
    iv(a, y, d, kernel_laplace(1), features = 5)
  ))))
})

test_that("unknown arguments are named", {
  expect_snapshot(writeLines(refusals(expression(
    iv(a, y, d, rbf, mue = 1),
    iv(a, y, d, gamma = 2),
    iv(a, y, d, rbf, "norm", 1, 1, 7),
    iv(a, y, d, rbf, lambda = 1, mu = 1, weights = y),
    iv(y ~ a1 | d1, frame, mue = 1),
    rkhs_iv(a, y, d, rbf, landmarks = 3),
    iv_nested(a, b, c, d, y, intercept = TRUE, w = y)
  ))))
})

test_that("formulas of another shape are refused", {
  holes <- replace(frame, "d1", list(replace(frame$d1, 4, NA)))
  expect_snapshot(writeLines(refusals(expression(
    rkhs_iv(y ~ a1, frame), rkhs_iv(~ a1 | d1, frame),
    rkhs_iv(y ~ a1 * a2 | d1, frame), rkhs_iv(y ~ a1 | d1 + offset(d2), frame),
    rkhs_iv(y ~ . | d1, frame), rkhs_iv(y ~ y | d1, frame),
    rkhs_iv(f ~ a1 | d1, frame), rkhs_iv(y ~ a1 | d1, holes)
  ))))
})

test_that("bad new data is refused", {
  fit <- iv(a, y, d, rbf, lambda = 1, mu = 1)
  both <- iv_nested(a, b, c, d, y, kernel = rbf, lambda_c = 1,
                         lambda_d = 1, mu_g = 1, mu_h = 1)
  layout <- iv(y ~ a1 + a2 | d1, frame, lambda = 1, mu = 1)
  expect_snapshot(writeLines(refusals(expression(
    predict(fit, a[, 1]),
    predict(fit, d),
    predict(fit, replace(a, 1, NA)),
    predict(fit, a, type = "h"),
    predict(both, a),
    predict(both, list(x = a)),
    predict(both, list(a = a, b = b[-1, ])),
    predict(layout, frame["a1"]),
    update(fit, nu = 1),
    update(fit, mu = 0)
  ))))
})

# --- What is legal -----------------------------------------------------------

test_that("one row and two are enough for a fit with given penalties", {
  for (n in 1:2) {
    x <- a[seq_len(n), , drop = FALSE]
    z <- d[seq_len(n), , drop = FALSE]
    for (penalty in base::c("norm", "l2")) {
      fit <- quietly(iv(x, y[seq_len(n)], z, rbf, penalty, lambda = 1,
                             mu = 0.5))
      problem <- iv_problem(list(a = gram_R(rbf, x), d = gram_R(rbf, z)),
                            y[seq_len(n)])
      slow <- solve_R(problem, actions_R(problem, 0, 1), penalty, 0.5)
      expect_near(unname(fitted(fit)), unname(slow$g), 1e-10)
    }
  }
})

test_that("rows of weight zero and moments that share rows are legal", {
  fit <- iv_nested(a, b, c, d, y, w = 0 * w, kernel = rbf, lambda_c = 1,
                        lambda_d = 1, mu_g = 1, mu_h = 1)
  # h(b) - 0 g(a) says nothing of g, and h is 0.
  alone <- iv(a, y, d, rbf, lambda = 1, mu = 1)
  expect_near(unname(fit$fitted.values[, "g"]), unname(fitted(alone)), 1e-10)
  expect_lt(max(abs(fit$fitted.values[, "h"])), 1e-12)
  nested <- \(...) {
    iv_nested(a, b, c, d, y, ..., kernel = rbf, lambda_c = 1, lambda_d = 1,
              mu_g = 1, mu_h = 1)$fitted.values
  }
  # No w is 1 for all rows.
  expect_near(nested(), nested(w = rep(1, 20)), 1e-12)
  # Logical, or integer.
  one <- s$s == 1
  expect_identical(nested(subset = s$s), nested(subset = one))
  expect_identical(nested(subset = s$s),
                   nested(subset = list(d = one, c = !one)))
  expect_identical(nested(), nested(subset = list(d = rep(1, 20),
                                                  c = rep(1, 20))))
})

test_that("units far apart are warned of unless 'scale' is given", {
  x <- cbind(a[, 1], 100 * a[, 2])
  fit <- \(...) iv(x, y, d, ..., lambda = 1, mu = 1)
  expect_warning(fit(rbf), class = "kernmean_warning_units")
  expect_no_warning(fit(rbf, scale = FALSE))
  expect_no_warning(fit(rbf, scale = TRUE))
  # Without a kernel, columns are divided by their standard deviations.
  expect_no_warning(mine <- fit())
  each <- cbind(a[, 1], a[, 2])
  expect_near(unname(fitted(mine)),
              unname(fitted(iv(each, y, d, lambda = 1, mu = 1))), 1e-9)
  theta <- mine$kernels$x$bandwidth
  z <- scale(each)
  expect_near(theta, sqrt(median(dist(z)^2)), 1e-10)
  expect_equal(unname(predict(mine, x[1:3, ])),
               unname(drop(gram_R(kernel_rbf(theta), z[1:3, ], z) %*%
                             as_weights(mine))), tolerance = 1e-9)
})

test_that("constant columns change nothing, a constant treatment is one", {
  fit <- iv(a, y, d, lambda = 1, mu = 1)
  wide <- iv(cbind(a, 3), y, cbind(d, -2), lambda = 1, mu = 1)
  expect_near(unname(fitted(wide)), unname(fitted(fit)), 1e-10)
  # The ridge solution of y on the constant function k(x, x) = 1.
  flat <- iv(rep(1, 20), y, d, rbf, lambda = 1, mu = 0.5)
  P <- action_R(gram_R(rbf, d), 1)
  expect_near(unname(fitted(flat)), rep(sum(P %*% y) / (sum(P) + 0.5), 20),
              1e-10)
})

test_that("penalties that cannot be, weights and folds that are NA", {
  nested <- \(...) iv_nested(a, b, c, d, y, ...)
  refused(nested(lambda_c = -1, mu_g = 1, mu_h = 1), "'lambda_c' must be")
  refused(nested(w = replace(w, 4, NA)), "'w' must have no missing")
  refused(iv_nested(a, b, c, d, replace(y, 4, NA)),
          "1 NA, in rows of the first moment, which 'subset' says")
  refused(nested(mu_g = 1), "'mu_h' must be")
  refused(nested(preset = "nnpiv", mu_g = 1, mu_h = 1),
          "'mu_g' must not be given when 'preset'")
  refused(iv(a, y, d, preset = list(alpha_scale = 2), select = "cv"),
          "'select' must not be \"cv\"")
  refused(iv(a, y, d, rbf, mu = 0), "'mu' must be positive")
  refused(iv(a, y, d, rbf, folds = replace(1:20, 3, NA)),
          "'folds' must have no missing")
})

test_that("penalties whose ratio is no number are refused", {
  set.seed(1)
  v <- \() rnorm(9)
  refused(rkhs_iv_nested(v(), v(), v(), v(), v(), mu_g = 1e-160, mu_h = 1e160),
          "'mu_h' must be as many")
  expect_error(rkhs_iv_nested(v(), v(), v(), v(), v(), mu_g = 1e160,
                              mu_h = 1e-160),
               "the penalty 1e-160 is lost", class = "kernmean_error_numeric")
})

# Instrumental-variable fits as data frames.

s <- iv_sample(40)
level <- factor(rep_len(c("a", "b", "c"), 40))
data <- data.frame(dose = s$a[, 1], s$d, level, y = s$y)
quick <- list(lambda_c = 1, lambda_d = 1, mu_g = 1, mu_h = 2)
nest <- \(...) {
  do.call(rkhs_iv_nested, c(list(s$a, s$b, s$c, s$d, s$y, s$w, s$s, ...),
                            quick))
}
formula <- iv(y ~ dose + level | d1 + level, data)
nested <- nest()

test_that("a moment has its row, of its rows alone", {
  skip_if_not_installed("generics")
  row <- generics::tidy(formula)
  r <- s$y - fitted(formula)
  expect_equal(row$rms^2, mean(r^2))
  expect_equal(row$mean, mean(r))
  expect_identical(row$criterion, unname(formula$criterion))
  expect_equal(row$share, row$criterion / mean(r^2))
  expect_identical(c(row$lambda, row$mu), unname(c(formula$lambda,
                                                   formula$mu)))
  rows <- generics::tidy(nested)
  expect_identical(rows$nobs, c(sum(s$s), sum(1 - s$s)))
  expect_equal(rows$rms[2]^2, mean(nested$residuals[s$s == 0, "second"]^2))
  expect_identical(rows$mu, c(1, 2))
  apart <- nested
  apart$lambda[] <- c(3, 4)
  expect_identical(generics::tidy(apart)$lambda, c(4, 3))
})

test_that("all fits have one row in one table", {
  skip_if_not_installed("generics")
  set.seed(1)
  fits <- list(formula, nested,
               iv(s$a, s$y, s$d, features = 30, mu = 1, penalty = "l2"))
  table <- do.call(rbind, lapply(fits, generics::glance))
  expect_identical(table$nobs, rep(40L, 3))
  expect_identical(table$penalty, c("norm", "norm", "l2"))
  expect_identical(table$mu, vapply(fits, \(f) f$mu[[1]], 1))
  expect_identical(table$mu_h, c(NA, 2, NA))
  expect_identical(table$lambda[2], 1)
  expect_identical(table$approximation, c("none", "none", "features"))
  expect_identical(table$score, c(formula$cv$score[formula$cv$chosen], NA, NA))
  expect_identical(table$folds, c(6L, NA, NA))
  expect_identical(table$intercept[1], mean(s$y))
})

test_that("points have the outcome, all blocks once, and what is fitted", {
  skip_if_not_installed("generics")
  table <- as.data.frame(formula)
  expect_identical(rownames(table), names(fitted(formula)))
  rownames(table) <- NULL
  expect_identical(table, data.frame(
    y = s$y, data[c("dose", "level", "d1")], .fitted = unname(fitted(formula)),
    .resid = unname(residuals(formula))
  ))
  table <- generics::augment(nested)
  expect_identical(names(table), c(
    "y", "a1", "a2", "b1", "b2", "c1", "c2", "d1", "d2", ".fitted_g",
    ".fitted_h", ".resid_first", ".resid_second"
  ))
  expect_identical(table$.fitted_h, unname(nested$fitted.values[, "h"]))
  # One name for two columns, and none.
  fit <- rkhs_iv(cbind(v = s$a[, 1]), s$y, cbind(v = s$d[, 1]), lambda = 1,
                 mu = 1)
  expect_identical(as.data.frame(fit)[1:3],
                   data.frame(y = s$y, v = s$a[, 1], v.1 = s$d[, 1]))
  fit <- rkhs_iv(unname(s$a), s$y, level, lambda = 1, mu = 1)
  expect_identical(names(as.data.frame(fit))[1:4], c("y", "x1", "x2", "z"))
  # Of kernel values there is nothing to be shown.
  bare <- rkhs_iv(as_gram(gram_R(kernel_rbf(1), s$a)), s$y, level, lambda = 1,
                  mu = 1)
  expect_identical(names(as.data.frame(bare)),
                   c("y", "z", ".fitted", ".resid"))
})

test_that("what does not fit is refused", {
  skip_if_not_installed("generics")
  expect_snapshot(writeLines(refusals(expression(
    generics::tidy(nested, "u"), generics::augment(nested, data[1:3, ]),
    generics::augment(nested, newdata = s$a),
    generics::augment(formula, data, newdata = data),
    generics::glance(nested, 1)
  ))))
})

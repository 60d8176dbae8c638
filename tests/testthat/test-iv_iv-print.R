# What print() and summary() of instrumental-variable fits say.

s <- iv_sample(40)
frame <- data.frame(y = s$y, s$a, s$d, f = factor(rep_len(c("u", "v"), 40)))
line <- kernel_poly(1)
shown <- function(...) expect_snapshot(print(..., digits = 3))

test_that("print says what was solved, with which penalties and ranks", {
  shown(iv(s$a, s$y, s$d, kernel_rbf(1), lambda = 1, mu = 2))
  shown(iv(y ~ a1 + d2 | d1 + d2, frame, lambda = 1, mu = 2,
                intercept = TRUE))
  shown(iv(y ~ a1 | f, frame, kernel = line, penalty = "l2", mu = 0.5))
  shown(iv(s$a, s$y, s$d, kernel_rbf(1), lambda = 1, mu = 2,
                landmarks = 1:10))
  shown(iv_nested(
    s$a, s$b, s$c, s$d, s$y, s$w, s$s, line, lambda_c = 1, lambda_d = 2,
    mu_g = 3, mu_h = 4
  ))
  shown(iv_nested(s$a, s$b, s$c, s$d, s$y, kernel = line,
                       preset = list(alpha_scale = 2)))
})

test_that("print says how penalties were chosen", {
  # Widely apart, and far from ties.
  mu <- c(0.01, 1, 100)
  shown(quietly(iv(s$a, s$y, s$d, line, lambda = 1, mu = mu)))
  shown(quietly(iv_nested(s$a, s$b, s$c, s$d, s$y, kernel = line,
                               lambda_c = 1, lambda_d = 1, mu_g = mu,
                               mu_h = mu, folds = 4)))
})

test_that("print and summary say how strong the instruments are", {
  fit <- quietly(rkhs_iv(mpg ~ hp + wt | disp + wt, mtcars, lambda = 1, mu = 2,
                         controls = ~ factor(am), weights = ~qsec,
                         clusters = ~carb))
  shown(fit)
  expect_snapshot(print(summary(fit), digits = 3))
})

test_that("summary has the residual moments", {
  fit <- iv_nested(
    s$a, s$b, s$c, s$d, s$y, s$w, s$s, line, lambda_c = 1, lambda_d = 2,
    mu_g = 3, mu_h = 4
  )
  moments <- summary(fit)$moments
  # Each over the rows of its own moment.
  expect_identical(moments$rows, c(sum(s$s), sum(1 - s$s)))
  r <- residuals(fit)
  expect_equal(moments$mean, c(mean(r[s$s == 1, 1]), mean(r[s$s == 0, 2])))
  expect_equal(moments[["r'Pr/n"]], unname(fit$criterion))
  shown(summary(fit))
  fit <- quietly(iv(s$a, s$y, s$d, line, lambda = 1,
                         mu = c(0.01, 1, 100)))
  expect_equal(summary(fit)$moments$mean, mean(residuals(fit)))
  shown(summary(fit))
})

# Strength given exogenous columns, and what instruments of few values tell.

said <- function(code) {
  words <- list()
  value <- withCallingHandlers(code, kernmean_warning = \(w) {
    kind <- sub("kernmean_warning_", "", class(w)[1L])
    words[[kind]] <<- c(words[[kind]], conditionMessage(w))
    invokeRestart("muffleWarning")
  })
  list(value = value, words = words)
}

# x by z given a parabola of w; z of strength a.
given_data <- function(seed, a, n = 400) {
  set.seed(seed)
  u <- rnorm(n)
  w <- rnorm(n)
  z <- rnorm(n)
  data.frame(w, z, x = a * z + u + rnorm(n) + w^2 - 1, y = w + 2 * u + rnorm(n))
}

# All pairs of a binary z and w of five values, equally often.
crossed <- function(seed = 1, each = 30, effect = 1) {
  set.seed(seed)
  d <- expand.grid(z = 0:1, w = c(-2, -1, 0, 1, 2.5), i = seq_len(each))
  u <- rnorm(nrow(d))
  d$x <- d$z + d$w^2 + u + rnorm(nrow(d))
  d$y <- effect * d$x + sin(d$w) + u + rnorm(nrow(d))
  d
}

test_that("strength given few values is that of their analysis of variance", {
  d <- crossed()
  fit <- said(rkhs_iv(y ~ x + w | z + w, d))$value
  stage <- anova(lm(x ~ factor(w), d), lm(x ~ factor(w) + z, d))
  expect_equal(fit$strength$F_linear, stage$F[2], tolerance = 0.05)
  # Without a ridge exactly, as leverages are equal; 1 counts as no column.
  none <- said(rkhs_iv(y ~ x + w | z + w, d, lambda = 0, method = "weak"))$value
  expect_equal(none$strength$F_linear, stage$F[2] * 295 / 294,
               tolerance = 1e-8)
  expect_equal(none$strength$df, 1, tolerance = 1e-8)
  expect_identical(none$strength$span, 1L)
  expect_identical(attr(none$strength, "given"), "w")
  expect_named(attr(none$strength, "columns"), "x")
  # As columns, whatever they are called, as a factor, and in three parts.
  by_columns <- said(rkhs_iv(cbind(d$w, d$x), d$y,
                             cbind(a = d$w, b = d$z)))$value
  expect_equal(by_columns$strength$F, fit$strength$F, tolerance = 1e-8)
  three <- said(rkhs_iv(y ~ w | x | z, d))
  expect_equal(three$value$strength$F, fit$strength$F, tolerance = 1e-8)
  expect_null(three$words$formula)
  level <- said(rkhs_iv(y ~ x + f | z + f, cbind(d, f = factor(d$w)),
                        lambda = 0, method = "weak"))$value
  expect_equal(level$strength$F_linear, none$strength$F_linear,
               tolerance = 1e-8)
  # None of the columns, or all of them, on both sides: as it was.
  expect_null(attr(quietly(rkhs_iv(y ~ x | z, d))$strength, "given"))
  expect_null(attr(quietly(rkhs_iv(y ~ x + w | x + w, d))$strength, "given"))
})

test_that("the middle part of a formula is of endogenous columns", {
  d <- crossed()
  found <- said(rkhs_iv(y ~ w | x + w | z, d))
  expect_match(found$words$formula, "'w' of it stands in another part")
})

test_that("noise is warned of, a valid instrument is not", {
  one <- function(a) {
    vapply(1:12, \(s) {
      found <- said(rkhs_iv(y ~ x + w | z + w, given_data(s, a), mu = 1))
      paste(found$words$weak, collapse = "")
    }, "")
  }
  expect_true(all(grepl("weak", one(0))))
  expect_lte(sum(nzchar(one(1))), 1)
  # Not weak, but not strong either: F of about 6.
  short <- vapply(1:10, \(s) {
    d <- given_data(100 + s, 0)
    d$z <- as.numeric(d$z > 0)
    d$x <- d$x + 0.4 * d$z
    words <- said(rkhs_iv(y ~ x + w | z + w, d, mu = 1))$words
    paste(words$weak, collapse = "")
  }, "")
  expect_true(any(grepl("not strong .* intervals may be too short", short)))
})

test_that("no instrument of its own, and fewer than regressors, say nothing", {
  d <- crossed()
  none <- said(rkhs_iv(y ~ x + w | w, d))
  expect_match(none$words$weak, "identify about 0 numbers|not identified")
  expect_identical(none$value$strength$F, 0)
  d$x2 <- d$x + rnorm(300)
  two <- said(rkhs_iv(y ~ x + x2 | z, d))
  expect_match(two$words$weak, "identify about 1 number, and 2 are needed")
  expect_lt(two$value$linear, Inf)
})

test_that("each column has the F that it has alone", {
  d <- given_data(5, 1, 200)
  d$z2 <- rnorm(200)
  d$x2 <- d$z2 / 2 + d$y / 3
  of <- \(x) said(rkhs_iv(d[x], d$y, d[c("z", "z2")], lambda = 1,
                          method = "weak"))$value$strength
  both <- of(c("x", "x2"))
  alone <- c(of("x")$F_linear, of("x2")$F_linear)
  expect_equal(unname(attr(both, "columns")), alone, tolerance = 1e-8)
  expect_lte(both$F_linear, min(alone))
})

test_that("a binary instrument has a line, which is two-stage least squares", {
  d <- crossed(each = 60)
  d <- d[-sample(600, 130), ]
  found <- said(rkhs_iv(y ~ x + w | z + w, d))
  fit <- found$value
  expect_match(found$words$line, "about 1 number: a straight line in 'x', w")
  expect_identical(fit$linear, Inf)
  expect_null(fit$cv)
  expect_true(anyNA(fit$error$overid))
  # The functions of five values are their indicators.
  dummies <- model.matrix(~ factor(w), d)[, -1]
  z <- cbind(1, d$z, dummies)
  x <- cbind(1, d$x, dummies)
  projected <- z %*% solve(crossprod(z), crossprod(z, x))
  bread <- solve(crossprod(projected, x))
  beta <- bread %*% crossprod(projected, d$y)
  error <- drop(d$y - x %*% beta)
  meat <- crossprod(projected * error)
  se <- sqrt((bread %*% meat %*% bread)[2, 2])
  shown <- quietly(kme_effect(fit, of = "x"))
  expect_equal(coef(shown)[[1]], beta[2], tolerance = 1e-3)
  expect_equal(sqrt(vcov(shown)[1]), se, tolerance = 0.02)
  expect_equal(unname(diff(predict(fit, data.frame(x = 0:1, w = 1)))), beta[2],
               tolerance = 5e-3)
  # Of new rows it has the values of old ones, and intervals.
  expect_equal(predict(fit, d), fitted(fit), tolerance = 1e-8)
  expect_true(all(is.finite(predict(fit, d[1:3, ], interval = TRUE))))
  again <- quietly(update(fit, data = d))
  expect_equal(fitted(again), fitted(fit))
  # A curve that is asked for is a curve, with a word.
  curve <- said(rkhs_iv(y ~ x + w | z + w, d, linear = 0))
  expect_match(curve$words$line, "comes from the penalty")
  expect_identical(curve$value$linear, 0)
  # Without exogenous columns it is Wald's.
  fit <- said(rkhs_iv(y ~ x | z, d))$value
  expect_equal(coef(fit)[["x"]], cov(d$y, d$z) / cov(d$x, d$z),
               tolerance = 1e-3)
})

test_that("policies and targets of a fit with functions of exogenous columns", {
  d <- crossed(2)
  d$f <- factor(rep(c("a", "b", "c"), 100))
  for (fit in list(
    said(rkhs_iv(y ~ x + w | z + w, d))$value,
    said(rkhs_iv(y ~ x + w + f | z + w + f, d))$value,
    said(rkhs_iv(y ~ x + w | z + w, d, controls = ~ f, weights = i))$value
  )) {
    expect_equal(unname(predict(fit, d)), unname(fitted(fit)),
                 tolerance = 1e-8)
    weights <- if (is.null(fit$arguments$weights)) rep(1, 300) else d$i
    up <- quietly(kme_effect(fit, policy = \(data) {
      data$w <- data$w + 1
      data
    }))
    moved <- transform(d, w = w + 1)
    expect_equal(up$plugin, weighted.mean(quietly(predict(fit, moved)) -
                                            predict(fit, d), weights),
                 tolerance = 0.01)
    # Controls are at their means there.
    at <- quietly(kme_effect(fit, target = d[1:30, ]))
    plain <- d[1:30, c("x", "w", if (ncol(fit$blocks$x$sample$x) > 2) "f")]
    expect_equal(at$plugin, mean(quietly(predict(fit, plain))),
                 tolerance = 0.01)
  }
  fit <- said(rkhs_iv(y ~ x + w | z + w, d))$value
  expect_error(quietly(kme_effect(fit, of = "w")), "exogenous column",
               class = "kernmean_error_input")
  both <- quietly(kme_effect(fit, policy = list(\(a) replace(a, 1, 0),
                                                \(a) replace(a, 1, 1))))
  expect_equal(coef(both)[[1]], coef(quietly(kme_effect(fit, of = 1)))[[1]],
               tolerance = 0.01)
})

test_that("a treatment of two values is a line, of factors and numbers alike", {
  set.seed(4)
  n <- 400
  z <- rnorm(n)
  u <- rnorm(n)
  t <- as.numeric(z + u + rnorm(n) > 0)
  y <- t + u + rnorm(n)
  found <- said(rkhs_iv(t, y, z))
  expect_null(found$words$line)
  expect_identical(found$value$linear, Inf)
  by_level <- said(rkhs_iv(factor(t), y, z))$value
  at <- \(fit, ends) diff(unname(predict(fit, ends)))
  expect_equal(at(by_level, factor(0:1)), at(found$value, 0:1),
               tolerance = 1e-4)
  expect_equal(unname(coef(by_level)[2]), unname(coef(found$value)[2]) *
                 if (grepl("0", names(coef(by_level))[2])) -1 else 1,
               tolerance = 1e-4)
  wald <- cov(y, z) / cov(t, z)
  expect_lt(abs(at(found$value, 0:1) - wald), 0.25)
})

test_that("where exogenous columns stay, the other instruments alone tell", {
  # The functional of residuals on the functions of w, by matrices: straight
  # kernels, whose functions are w itself.
  d <- given_data(3, 1, 200)
  fit <- quietly(rkhs_iv(y ~ x + w | z + w, d, kernel = kernel_poly(1),
                         lambda = 0, mu = 1e-7, method = "weak", linear = 0,
                         control = iv_control(correct = 0, scale = TRUE)))
  found <- quietly(kme_effect(fit, of = "x"))
  z <- resid(lm(z ~ w, d))
  expect_equal(coef(found)[[1]], sum(z * d$y) / sum(z * d$x), tolerance = 1e-5)
})

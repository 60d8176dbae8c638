# What update() and predict() take over from a fit, and what does not depend on
# units.

s <- iv_sample(40)
narrow <- kernel_rbf(0.5)
frame <- data.frame(y = s$y, u = exp(s$a[, 1]), v = s$a[, 2], z = s$d[, 1],
                    level = factor(rep_len(c("p", "q", "r"), 40)))

test_that("update() keeps the kernel and the units of a gram", {
  g <- gram(100 * s$a, kernel_rbf(0.7), scale = TRUE)
  fit <- iv(g, s$y, s$d, mu = 1, lambda = 1)
  expect_identical(fitted(update(fit, mu = 2)),
                   fitted(iv(g, s$y, s$d, mu = 2, lambda = 1)))
  other <- update(fit, kernel = list(x = kernel_rbf(0.3)))
  want <- iv(gram(100 * s$a, kernel_rbf(0.3), scale = TRUE), s$y, s$d,
                  mu = 1, lambda = 1)
  expect_near(fitted(other), fitted(want), 1e-10)
})

test_that("update(data =) reads the formula in new data, with its names", {
  fit <- iv(y ~ log(u) + level | z, frame, mu = 1)
  rows <- 5:30
  again <- update(fit, data = frame[rows, ])
  want <- iv(y ~ log(u) + level | z, frame[rows, ], mu = 1)
  expect_equal(fitted(again), fitted(want))
  expect_identical(names(fitted(again)), as.character(rows))
  expect_identical(formula(again), formula(fit))
  expect_error(predict(fit, 1), class = "kernmean_error_input")
})

test_that("penalties of g and h are paired as they are given", {
  nested <- \(...) iv_nested(s$a, s$b, s$c, s$d, s$y, ..., kernel = narrow)
  refused(nested(mu_g = c(1, 2), mu_h = c(20, 10)), "'mu_h' must be as many")
  refused(nested(mu_g = c(1, 1, 2), mu_h = c(3, 6, 6)), "'mu_h' must be")
  fit <- suppressWarnings(nested(mu_g = c(2, 1), mu_h = c(6, 3)))
  expect_equal(fit$mu[["mu_h"]], 3 * fit$mu[["mu_g"]])
})

test_that("the units of y change nothing but those of g", {
  fit <- iv(s$a, s$y, s$d, folds = rep_len(1:5, 40))
  for (unit in c(1e-80, 1e-6, 1e80)) {
    other <- iv(s$a, unit * s$y, s$d, folds = rep_len(1:5, 40))
    expect_near(other$mu, fit$mu, 1e-12)
    expect_near(fitted(other) / unit, fitted(fit), 1e-10)
  }
})

test_that("a function that is 0 is no far point, and values need no points", {
  zero <- iv(s$a, numeric(40), s$d, mu = 1)
  expect_silent(expect_identical(predict(zero, s$a[1, , drop = FALSE]), 0))
  fit <- iv(as_gram(gram_R(narrow, s$a)), s$y, s$d, mu = 1)
  expect_identical(predict(fit, matrix(0, 1, 40)), 0)
  far <- iv(s$a, s$y, s$d, mu = 1)
  expect_warning(predict(far, s$a[1, , drop = FALSE] + 1e3), "far from")
})

test_that("landmarks refuse what is no kernel", {
  for (f in list(\(x, y) 1 - abs(outer(x[, 1], y[, 1], `-`)),
                 \(x, y) outer(x[, 1], y[, 1]^2 + 1))) {
    expect_error(iv(s$a, s$y, s$d, kernel_function(f), mu = 1,
                         landmarks = 30), class = "kernmean_error_input")
  }
})

test_that("a penalty below rounding is refused, not solved", {
  for (mu in list(1e-14, c(1e-14, 1))) {
    expect_error(iv(s$a, s$y, s$d, kernel_rbf(3), lambda = 1e-6, mu = mu),
                 class = "kernmean_error_numeric")
  }
})

test_that("a factor has weights with landmarks, too", {
  fit <- iv(frame$level, s$y, s$d, mu = 1, landmarks = 10)
  expect_length(as_weights(fit), 40L)
  one <- iv(frame["level"], s$y, s$d, mu = 1)
  expect_equal(predict(one, frame["level"]), fitted(one), ignore_attr = TRUE,
               tolerance = 1e-12)
})

test_that("update() keeps what was centered, and landmarks", {
  fit <- quietly(iv(s$a, s$y, s$d, narrow, landmarks = 12))
  expect_near(fitted(update(fit, mu = fit$mu)), fitted(fit), 1e-12)
  expect_identical(update(fit, mu = 1)$landmarks, fit$landmarks)
  # Of other points there are others, as many.
  half <- update(update(fit, mu = 1), x = s$a[1:20, ], z = s$d[1:20, ],
                 y = s$y[1:20])
  expect_true(length(half$landmarks) == 12L && all(half$landmarks <= 20L))
  off <- update(fit, mu = fit$mu, intercept = FALSE)
  expect_identical(off$intercept, 0)
  nested <- quietly(iv_nested(s$a, s$b, s$c, s$d, s$y, kernel = narrow,
                                   subset = s$s, folds = 3))
  expect_equal(nested$intercept, mean(s$y[s$s == 1]))
  again <- update(nested, mu_g = nested$mu[[1]], mu_h = nested$mu[[2]])
  expect_near(fitted(again), fitted(nested), 1e-12)
  moved <- quietly(update(nested, y = s$y + 7))
  expect_near(fitted(moved), fitted(nested) + 7, 1e-8)
})

test_that("outcomes of rows outside the first moment are not looked at", {
  fit <- \(y) iv_nested(s$a, s$b, s$c, s$d, y, subset = s$s, mu_g = 1,
                             mu_h = 1, kernel = narrow)
  blank <- fit(replace(s$y, s$s == 0, NA))
  expect_identical(fitted(blank), fitted(fit(s$y)))
  expect_identical(which(is.na(residuals(blank)[, "first"])), which(s$s == 0),
                   ignore_attr = TRUE)
  expect_error(fit(replace(s$y, which(s$s == 1)[1], NA)),
               class = "kernmean_error_input")
})

test_that("what a formula user may get wrong is said", {
  holes <- replace(frame, cbind(c(2, 7), 1), NA)
  out <- iv(y ~ v | z, holes, mu = 1, na.action = na.exclude)
  expect_identical(length(residuals(out)), 40L)
  expect_identical(which(is.na(fitted(out))), c(2L, 7L), ignore_attr = TRUE)
  expect_output(print(out), "38 rows\n.*2 rows with missing values dropped")
  refused <- c(y ~ v | . - w + z, y ~ v - 1 | z, y ~ v | z + 0, y ~ v * u | z,
               y ~ v + u | -v + . + z, y ~ v + u | . - v + log(.))
  for (f in refused) {
    expect_error(iv(f, frame, mu = 1), class = "kernmean_error_input")
  }
  own <- iv(y ~ v | v, frame, mu = 1)
  expect_output(print(own), "endogeneity is not accounted for")
  fit <- iv(y ~ level + v | z, frame, mu = 1)
  new <- transform(frame[1:3, ], level = as.character(level))
  expect_near(predict(fit, new), fitted(fit)[1:3], 1e-12)
  expect_warning(iv(y ~ v | z, frame, kernel = kernel_linear(), mu = 1),
                 class = "kernmean_warning_linear")
  expect_warning(iv(s$a, s$y, rep(1, 40), mu = 1),
                 class = "kernmean_warning_instruments")
})

test_that("a rule that takes the largest penalty says so", {
  set.seed(4)
  expect_warning(
    fit <- iv(s$a, rnorm(40), s$d, folds = rep_len(1:6, 40), rule = "1se"),
    class = "kernmean_warning_border"
  )
  expect_true(fit$cv$chosen[nrow(fit$cv)])
})

test_that("terms after the bar keep their parentheses", {
  same <- c(y ~ v + u | . - v + (z > 0), y ~ v + u | u + (z > 0),
            y ~ v + (u > 1) | . - v + z, y ~ v + (u > 1) | (u > 1) + z,
            y ~ v + u | . - (v + u) + z, y ~ v + u | z,
            y ~ v + u | z + . - v, y ~ v + u | z + u)
  values <- lapply(same, \(f) fitted(iv(f, frame, mu = 1)))
  expect_equal(values[c(TRUE, FALSE)], values[c(FALSE, TRUE)],
               tolerance = 1e-12)
})

test_that("update() of a gram and a factor takes one kernel for the gram", {
  g <- gram(s$a, kernel_rbf(0.7))
  fit <- iv(g, s$y, frame$level, mu = 1, lambda = 1)
  want <- iv(gram(s$a, kernel_rbf(2)), s$y, frame$level, mu = 1,
                  lambda = 1)
  expect_near(fitted(update(fit, kernel = kernel_rbf(2))), fitted(want), 1e-10)
  fit <- iv(y ~ v | z, frame, mu = 1)
  expect_error(update(fit, data = frame, y = s$y),
               class = "kernmean_error_input")
})

test_that("a nested fit by formula is that of its blocks", {
  set.seed(1)
  n <- 60
  d <- data.frame(matrix(rnorm(5 * n), n, dimnames = list(NULL, letters[1:5])),
                  g = gl(2, 1, n), s = rep(0:1, each = n / 2), w = runif(n))
  d$y <- ifelse(d$s == 1, d$a^2 + d$e, NA)
  blocks <- \(d) list(a = d$a, b = d[c("b", "g")], c = d[c("b", "g", "c")],
                      d = log(d$d + 9), y = d$y, w = d$w, subset = d$s)
  penalties <- list(mu_g = 0.1, mu_h = 0.2)
  want <- do.call(rkhs_iv_nested, c(blocks(d), penalties))
  fit <- do.call(rkhs_iv_nested, c(
    y ~ a | b + g | . + c | log(d + 9), list(d, w = d$w, subset = d$s),
    penalties
  ))
  named <- rkhs_iv_nested(y ~ a | b + g | b + g + c | log(d + 9), d, w = w,
                          subset = s, mu_g = 0.1, mu_h = 0.2)
  for (one in list(fit, named)) {
    expect_identical(unname(fitted(one)), unname(fitted(want)))
    expect_identical(one$criterion, want$criterion)
  }
  expect_identical(deparse1(formula(fit)),
                   "y ~ a | b + g | b + g + c | log(d + 9)")
  expect_match(capture.output(named), "E[h(b, g) - w g(a) | b, g, c] = 0",
               fixed = TRUE, all = FALSE)
  new <- d[5:1, ]
  expect_identical(unname(predict(named, new)),
                   unname(predict(want, blocks(new)[c("a", "b")])))
  expect_identical(predict(named, list(a = new$a))[, "g"],
                   unname(predict(named, new)[, "g"]))
  refused(predict(named, new["c"]), "missing: 'a'")
  expect_identical(score(named, d[1:40, ]), score(want, blocks(d[1:40, ])))
  again <- update(named, data = d[1:40, ])
  expect_identical(unname(fitted(again)),
                   unname(fitted(do.call(update, c(list(want),
                                                   blocks(d[1:40, ]))))))
  columns <- fit_columns(named, new, data.frame(predict(named, new)))
  expect_identical(unclass(columns), unclass(new), ignore_attr = TRUE)
  d$a[3] <- NA
  refused(update(named, data = d), "'a' must have no missing")
  left <- rkhs_iv_nested(y ~ a | b | c | d, d[d$s == 1, ], na.action = na.omit,
                         mu_g = 1, mu_h = 1)
  expect_identical(left$n, sum(d$s == 1) - sum(d$s[3] == 1))
  refused(rkhs_iv_nested(y ~ a | b | c, d), "blocks in this order")
  refused(rkhs_iv_nested(y ~ a | . | b | c, d), "must name its regressors")
  refused(rkhs_iv_nested(y ~ a | b | . - c | d, d), "not 'c'")
  refused(rkhs_iv_nested(y ~ a | b | c | d, d, y = 1), "'y' must not be given")
})

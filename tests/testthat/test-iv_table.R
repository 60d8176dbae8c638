# Coefficients of instrumental-variable fits.

table_data <- function(n = 80) {
  set.seed(7)
  u <- rnorm(n)
  d <- data.frame(z = rnorm(n), v = c(-1, 0, 0.5, 2), k = rnorm(n),
                  times = rep(1:2, each = n / 2),
                  id = rep(seq_len(n / 4), each = 4),
                  g = factor(rep(c("a", "b"), n / 2)))
  d$x <- 10 + 3 * (d$z + u + rnorm(n) / 2)
  d$y <- sin(d$x / 3) + d$v + d$k / 2 + (d$g == "b") + u
  d
}

test_that("the line is the least squares of the fit that intervals are of", {
  d <- table_data()
  middle <- \(fit) rowMeans(quietly(predict(fit, interval = TRUE))[, 2:3])
  # The slope of x given all functions of the four values of v.
  line <- function(fit, times = rep(1, 80)) {
    m <- middle(fit)
    d$times <- times
    slope <- coef(lm(m ~ x + factor(v), d, weights = times))[["x"]]
    rest <- coef(lm(m - slope * x ~ v, d, weights = times))
    c(rest[[1]], slope, rest[[2]])
  }
  plain <- quietly(rkhs_iv(y ~ x + v | z + v, d, linear = 1))
  expect_equal(unname(coef(plain)), line(plain), tolerance = 1e-6)
  expect_named(coef(plain), c("(Intercept)", "x", "v"))
  # In other units, of other scales; weights are in the least squares.
  moved <- transform(d, x = 1000 * x - 7, v = 2 * v)
  more <- quietly(rkhs_iv(y ~ x + v | z + v, moved, linear = 1))
  expect_equal(coef(more)[-1] * c(1000, 2), coef(plain)[-1], tolerance = 1e-6)
  expect_equal(vcov(more)[2, 2] * 1e6, vcov(plain)[2, 2], tolerance = 1e-6)
  heavy <- quietly(rkhs_iv(y ~ x + v | z + v, d, linear = 1, weights = times))
  expect_equal(unname(coef(heavy)), line(heavy, d$times), tolerance = 1e-6)
  white <- quietly(rkhs_iv(y ~ x + v | z + v, d, linear = 1,
                           control = iv_control(scale = "whiten")))
  expect_equal(unname(coef(white)), line(white), tolerance = 1e-6)
  mixed <- quietly(rkhs_iv(y ~ x + g | z + g, d, linear = 1))
  expect_equal(unname(coef(mixed)[2]),
               unname(coef(lm(middle(mixed) ~ x + g, d))[2]), tolerance = 1e-6)
  expect_equal(abs(unname(coef(mixed)[3])),
               abs(unname(coef(lm(middle(mixed) ~ x + g, d))[3])),
               tolerance = 1e-6)
})

test_that("a line with controls is two-stage least squares, errors and all", {
  d <- table_data()
  d$z <- as.numeric(d$z > 0)
  for (clusters in list(NULL, d$id)) {
    fit <- quietly(rkhs_iv(y ~ x | z, d, controls = ~ k + g,
                           clusters = clusters,
                           control = iv_control(correct = 0)))
    expect_identical(fit$linear, Inf)
    x <- model.matrix(~ x + k + g, d)
    z <- model.matrix(~ z + k + g, d)
    bread <- solve(crossprod(z, x))
    beta <- drop(bread %*% crossprod(z, d$y))
    scores <- z * drop(d$y - x %*% beta)
    if (length(clusters)) scores <- rowsum(scores, clusters)
    expect_equal(coef(fit), beta, tolerance = 1e-3)
    # With the degrees of freedom of two controls.
    expect_equal(vcov(fit),
                 bread %*% crossprod(scores) %*% t(bread) / (1 - 2 / 80),
                 tolerance = 5e-3, ignore_attr = TRUE)
    freedom <- if (length(clusters)) 19 else Inf
    expect_equal(confint(fit)[, 2],
                 coef(fit) + qt(0.975, freedom) * sqrt(diag(vcov(fit))))
  }
  expect_identical(confint(fit, "k"), confint(fit)["k", , drop = FALSE])
  skip_if_not_installed("generics")
  rows <- generics::tidy(fit, conf.int = TRUE)
  expect_identical(rows$term, names(coef(fit)))
  expect_identical(rows$conf.high, unname(confint(fit)[, 2]))
})

test_that("names of controls are theirs, and classic fits have no errors", {
  d <- table_data()
  names(d)[names(d) == "k"] <- "gb"
  fit <- quietly(rkhs_iv(y ~ x | z, d, controls = ~ g + gb))
  expect_named(coef(fit), c("(Intercept)", "x", "gb", "gb.1"))
  expect_equal(unname(predict(fit, d)), unname(fitted(fit)), tolerance = 1e-8)
  classic <- quietly(rkhs_iv(y ~ x | z, d, method = "classic"))
  for (verb in list(coef, vcov, confint)) {
    expect_error(verb(classic), "must have", class = "kernmean_error_input")
  }
  expect_length(as_weights(classic), 80L)
  expect_identical(as_weights(fit), fit$functions$g$weights)
})

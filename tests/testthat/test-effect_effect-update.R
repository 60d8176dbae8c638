small_doses <- function() {
  set.seed(1)
  data <- data.frame(x = rnorm(100), arm = rep(0:1, 50))
  data$dose <- data$x + rnorm(100)
  data$y <- data$dose + rnorm(100)
  data
}

test_that("update() of a formula keeps the names of outcome and treatment", {
  data <- small_doses()
  slope <- kme_effect(y ~ dose, ~ x, data)
  again <- update(slope, control = list(lambda = 0.1))
  expect_identical(again$names, c("y", "dose"))
  w <- kme_weights(arm ~ x, data)
  expect_identical(update(w, estimand = "att")$names, "arm")
})

test_that("a policy given to update() calls the treatment by its name", {
  data <- small_doses()
  more <- \(data) transform(data, dose = dose / 2)
  asked <- kme_effect(y ~ dose, ~ x, data, policy = more)
  changed <- update(kme_effect(y ~ dose, ~ x, data), policy = more)
  expect_equal(coef(changed), coef(asked))
  expect_equal(vcov(changed), vcov(asked))
  expect_equal(coef(update(changed, policy = NULL)),
               coef(kme_effect(y ~ dose, ~ x, data)))
})

test_that("what is extrapolated is told", {
  data <- small_doses()
  far <- \(d) transform(d, dose = dose + 10)
  expect_warning(kme_effect(y ~ dose, ~ x, data, policy = far),
                 "100% of the rows of 'policy'",
                 class = "kernmean_warning_overlap")
  data$dose <- rep_len(1:3, nrow(data))
  expect_warning(kme_effect(y ~ dose, ~ x, data), "3 different values only",
                 class = "kernmean_warning_levels")
  data$arm <- rep_len(0:1, nrow(data))
  data$level <- data$arm * rep_len(c(0, 0, 1, 1), nrow(data))
  expect_warning(
    expect_warning(kme_weights(arm ~ x + level, data, means = FALSE),
                   "all rows of '0' have the same 'level'",
                   class = "kernmean_warning_overlap"),
    "overlap little", class = "kernmean_warning_overlap"
  )
})

test_that("errors of few clusters have quantiles of t; residuals", {
  data <- small_doses()
  data$id <- rep_len(1:6, nrow(data))
  fit <- kme_effect(y ~ dose, ~ x, data, clusters = ~id)
  far <- qt(0.95, 5) * sqrt(vcov(fit)[1L])
  ends <- confint(fit, level = 0.9)
  expect_equal(ends[1:2], coef(fit)[[1L]] + c(-far, far))
  expect_equal(colnames(ends), c("5 %", "95 %"))
  expect_equal(unname(residuals(fit)), fit$fits[[1L]]$residuals)
  expect_equal(fitted(fit) + residuals(fit), fit$y)
  expect_error(kme_effect(y ~ dose, ~ x, data, clusters = ~ id + x),
               "one column", class = "kernmean_error_input")
  expect_error(kme_effect(y ~ dose, ~ x, data, scale = TRUE),
               "control = list\\(scale = \\)", class = "kernmean_error_input")
})

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
  expect_identical(again$names, c(y = "y", treat = "dose"))
  w <- kme_weights(arm ~ x, data)
  expect_identical(update(w, estimand = "att")$treat_name, "arm")
})

test_that("a policy given to update() calls the treatment by its name", {
  data <- small_doses()
  more <- \(data) transform(data, dose = dose + 1)
  asked <- kme_effect(y ~ dose, ~ x, data, policy = more)
  changed <- update(kme_effect(y ~ dose, ~ x, data), policy = more)
  expect_equal(coef(changed), coef(asked))
  expect_equal(vcov(changed), vcov(asked))
  expect_equal(coef(update(changed, policy = NULL)),
               coef(kme_effect(y ~ dose, ~ x, data)))
})

# What smm() and its methods refuse, and what they do not.

two <- kinds_of_bags(12, 5)
bags <- two$bags
y <- class_of(two$kind)
value <- two$kind + (1:12) / 10
x <- pooled(bags)
id <- bag_ids(bags)
data <- data.frame(x, id, y = y[match(id, names(bags))])
g <- bag_gram(bags)

test_that("bad answers are refused", {
  skip_on_cran()
  skip_if_not_installed("kernlab")
  holes <- replace(y, 2, NA)
  named <- stats::setNames(value, c(names(bags)[-1], "other"))
  expect_snapshot(writeLines(refusals(expression(
    smm(), smm(bags, y[-1]), smm(bags, c(y, y)), smm(bags, holes),
    smm(bags, replace(value, 3, Inf)), smm(bags, rep("one", 12)),
    smm(bags, rep(c("x", "y"), c(11, 1))), smm(bags, as.list(y)),
    smm(bags, data.frame(y)), smm(bags, named),
    smm(x, rev(value), id = factor(id, names(bags)[12:1])),
    smm(bags[1:2], value[1:2], type = "ridge"), smm(bags[1]),
    smm(bags, y, type = "regression"), smm(bags, y, type = "ridge"),
    smm(bags, type = "classification"), smm(bags, y, type = "novelty"),
    smm(bags, y, type = "other")
  ))))
  refused(smm(bags, addNA(holes)), "no missing values, not 1 NA")
  spare <- factor(y, c("x", "y", "z"))
  expect_warning(fit <- smm(g, spare, cost = 1), "without bags")
  expect_identical(fit$levels, c("x", "y"))
  expect_warning(fit <- smm(g, two$kind, cost = 1),
                 "two values only")
  expect_identical(fit$type, "regression")
  expect_no_warning(smm(g, two$kind, type = "ridge"))
})

test_that("bad parameters are refused", {
  skip_on_cran()
  skip_if_not_installed("kernlab")
  split <- rep(1:2, each = 6)
  apart <- as.integer(y)
  expect_snapshot(writeLines(refusals(expression(
    smm(bags, y, cost = 0), smm(bags, y, cost = "cv"), smm(bags, y, nu = 0.1),
    smm(bags, y, epsilon = 0.1), smm(bags, nu = 2), smm(bags, cost = 1),
    smm(bags, value, nu = 0.1), smm(bags, value, epsilon = -1),
    smm(bags, value, type = "ridge", ridge = 0),
    smm(bags, value, type = "ridge", ridge = 1:2),
    smm(bags, value, type = "ridge", cost = 1),
    smm(bags, y, bandwidth = "mean"), smm(bags, y, bandwidth = -1),
    smm(bags, y, kernel = kernel_rbf(1), bandwidth = 2),
    smm(bags, y, kernel = kernel_linear(), bandwidth = "cv"),
    smm(bags, y, bandwidth2 = "cv"), smm(bags, y, bandwidth2 = 1),
    smm(bags, y, folds = 1), smm(bags, y, folds = 1:3),
    smm(bags, y, folds = rep(1, 12)), smm(bags, y, folds = c(split[-1], NA)),
    smm(bags, y, folds = apart), smm(bags, y, progress = NA),
    smm(bags, y, gamma = 1), smm(g, y, kernel = kernel_rbf(1)),
    smm(g, y, level2 = "rbf"), smm(gram(x), y),
    smm(bags, y, kernel = kernel_energy())
  ))))
})

test_that("bad formulas are refused", {
  mixed <- replace(data, "y", list(data$y[c(2:60, 1)]))
  expect_snapshot(writeLines(refusals(expression(
    smm(y ~ X1, data), smm(y ~ X1, mixed, id = id),
    smm(y ~ X1, data, id = id, y = y),
    smm(y ~ 1, data, id = id)
  ))))
})

test_that("bad new bags and types of answers are refused", {
  skip_if_not_installed("kernlab")
  fit <- smm(g, y, cost = 1)
  novel <- smm(g, nu = 0.2)
  ridge <- smm(g, value, type = "ridge")
  formula <- smm(y ~ X1 + X2, data, id = id, cost = 1, bandwidth = "median")
  expect_snapshot(writeLines(refusals(expression(
    predict(fit, bags, type = "value"), predict(novel, bags, type = "value"),
    predict(fit, bags, type = "posterior"), predict(fit, x),
    predict(fit, bags, "class", 1), predict(formula, data["X1"]),
    predict(formula, data[c("X1", "X2")]), predict(fit, list(x[0, ])),
    predict(fit, list(x[, 1])), residuals(fit), fitted(fit, 1), summary(fit, 1)
  ))))
})

test_that("changes that make no sense are refused", {
  skip_if_not_installed("kernlab")
  fit <- smm(bags, y, cost = 1, bandwidth = "median")
  expect_snapshot(writeLines(refusals(expression(
    update(fit, 1), update(fit, y ~ x), update(fit, nu = 0.1),
    update(fit, type = "ridge"), update(fit, bandwidth2 = 1)
  ))))
})

test_that("answers whose squares overflow are refused", {
  for (type in c("regression", "ridge")) {
    expect_error(smm(bags, value * 1e160, type = type), "squares of 'y'",
                 class = "kernmean_error_numeric")
  }
})

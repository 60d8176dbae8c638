# What print() and summary() say of machines.

two <- kinds_of_bags(20, 6)
three <- kinds_of_bags(30, 6, 3)
value <- value_of(two$kind)
rbf <- kernel_rbf(1.5)

test_that("prints tell the machine, its choice and its errors", {
  skip_on_cran()
  skip_if_not_installed("kernlab")
  folds <- rep(1:5, 4)
  expect_snapshot({
    smm(two$bags, class_of(two$kind), kernel = rbf, cost = 2, level2 = "rbf")
    smm(two$bags, class_of(two$kind), cost = c(1, 100), folds = folds)
    smm(three$bags, class_of(three$kind), kernel = rbf, cost = 1,
        estimator = "skmse")
    smm(two$bags, value, kernel = rbf, cost = c(1, 10), folds = folds)
    smm(two$bags, kernel = rbf, nu = 0.2, folds = folds)
    smm(two$bags, level2 = "laplace", folds = folds)
  })
})

test_that("ridge regression needs no folds", {
  expect_snapshot({
    smm(two$bags, value, kernel = rbf, type = "ridge")
    summary(smm(two$bags, value, type = "ridge", ridge = 0.1))
  })
})

test_that("a summary has the table of classes and what was tried", {
  skip_if_not_installed("kernlab")
  fit <- smm(three$bags, class_of(three$kind), cost = c(1, 10),
             bandwidth = c(0.5, 1), folds = rep(1:5, 6))
  expect_snapshot(summary(fit))
})

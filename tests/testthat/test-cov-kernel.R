# kme_cov(kernel = ): one kernel for every variable that has none of its own.

test_that("'kernel' is the kernel of each variable", {
  x <- random_points(12, 2)
  y <- random_points(12, 1, 3)
  rbf <- kernel_rbf(1.3)
  expect_identical(kme_cov(x, kernel = rbf)$values,
                   kme_cov(x, kernel_x = rbf)$values)
  expect_identical(kme_cov(x, y, kernel = rbf)$values,
                   kme_cov(x, y, rbf, rbf)$values)
  expect_identical(kme_cov(list(x, y, x), kernel = rbf)$norm2,
                   kme_cov(list(x, y, x), kernel_x = rbf)$norm2)
  classes <- factor(rep(1:3, 4))
  expect_identical(kme_cov(x, classes, kernel = rbf)$values,
                   kme_cov(x, classes, rbf)$values)
  expect_identical(kme_cov(gram(x, rbf), y, kernel = rbf)$values,
                   kme_cov(gram(x, rbf), y, kernel_y = rbf)$values)
  expect_error(kme_cov(x, y, rbf, kernel = rbf), "must not be given",
               class = "kernmean_error_input")
  expect_error(kme_cov(x, kernel = 2), "'kernel' must be a kernel",
               class = "kernmean_error_input")
})

test_that("update() takes one kernel for all", {
  x <- random_points(12, 2)
  y <- random_points(12, 1, 3)
  rbf <- kernel_rbf(0.9)
  expect_identical(update(kme_cov(x, y), kernel = rbf)$values,
                   kme_cov(x, y, kernel = rbf)$values)
  expect_identical(update(kme_cov(x), kernel = rbf)$values,
                   kme_cov(x, kernel = rbf)$values)
  expect_identical(update(kme_cov(list(a = x, b = y)), kernel = rbf)$values,
                   kme_cov(list(a = x, b = y), kernel = rbf)$values)
  classes <- factor(rep(1:3, 4))
  expect_identical(update(kme_cov(x, classes), kernel = rbf)$values,
                   kme_cov(x, classes, kernel = rbf)$values)
})

test_that("an operator that is exactly 0 has norm 0", {
  linear <- kernel_linear()
  fit <- kme_cov(c(1, -1, 0, 0), c(0, 0, 1, -1), linear, linear)
  expect_identical(c(fit$norm2, fit$rank), c(0, 0))
  expect_error(kme_cov(1e-90 * random_points(9, 2), kernel = linear),
               "underflow", class = "kernmean_error_numeric")
})

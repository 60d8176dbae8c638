# kme_cov(kernel = ): one kernel for every variable that has none of its own.

test_that("'kernel' is the kernel of each variable, also of update()", {
  x <- random_points(12, 2)
  y <- random_points(12, 1, 3)
  classes <- factor(rep(1:3, 4))
  rbf <- kernel_rbf(1.3)
  cases <- list(list(list(x), list(kernel_x = rbf)),
                list(list(x, y), list(rbf, rbf)),
                list(list(list(x, y, x)), list(kernel_x = rbf)),
                list(list(x, classes), list(rbf)),
                list(list(gram(x, rbf), y), list(kernel_y = rbf)))
  fields <- c("values", "norm2")
  for (case in cases) {
    fit <- do.call(kme_cov, c(case[[1]], kernel = list(rbf)))
    want <- do.call(kme_cov, c(case[[1]], case[[2]]))
    expect_identical(fit[fields], want[fields])
    changed <- update(do.call(kme_cov, case[[1]]), kernel = rbf)
    expect_identical(changed[fields], want[fields])
  }
  refused(kme_cov(x, y, rbf, kernel = rbf), "must not be given")
  refused(kme_cov(x, kernel = 2), "'kernel' must be a kernel")
})

test_that("an operator that is exactly 0 has norm 0", {
  linear <- kernel_linear()
  fit <- kme_cov(c(1, -1, 0, 0), c(0, 0, 1, -1), linear, linear)
  expect_identical(c(fit$norm2, fit$rank), c(0, 0))
  expect_error(kme_cov(1e-90 * random_points(9, 2), kernel = linear),
               "underflow", class = "kernmean_error_numeric")
})

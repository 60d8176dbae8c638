# What smoothing and stacking print and draw.

x <- cbind(a = c(0, 1, 3, 4.5, 2), b = c(1, 0, 2, 2, 0.5))
rbf <- kernel_rbf(2)
two <- list(est_kme(), half = est_smooth(h = 0.5, c = 1))

test_that("fits print what was chosen and what it is worth", {
  expect_snapshot({
    kme(x, rbf, "smooth")
    kme(x, rbf, est_smooth(folds = 3))
    kme(x, rbf, est_smooth(h = 0.3))
    kme(x, rbf, est_smooth(h = 1, c = 1))
    kme(x, rbf, est_smooth(h = 0, c = 1))
    kme(x[1:2, ], rbf, "smooth")
    kme(x[c(1, 1, 1), ], rbf, "smooth")
    kme(x, rbf, "stack")
    kme(x, rbf, est_stack(two))
    kme(x, rbf, est_stack(two, shares = c(0.25, 0.5)))
    kme(x, rbf, est_stack(two, shares = c(0, 0)))
    summary(kme(x, rbf, "smooth"))
  })
})

test_that("the curve over h is what is drawn", {
  fit <- kme(x, rbf, "smooth")
  expect_identical(on_device(plot(fit)), fit$score)
  expect_named(on_device(plot(kme(x, rbf, "stack"))), c("x", "y", "z"))
  expect_error(on_device(plot(kme(x, rbf, est_smooth(0.2, 1)), "selection")),
               class = "kernmean_error_input")
})

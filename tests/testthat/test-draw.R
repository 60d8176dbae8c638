# The kit of all plots.

test_that("graphical parameters are known, other names are refused", {
  expect_silent(check_graphics(list(col = 1, xlim = 0:1, breaks = 3, cex = 2)))
  expect_error(check_graphics(list(colr = 1)), "did you mean 'col",
               class = "kernmean_error_input")
  expect_error(check_graphics(list(1)), "must be named",
               class = "kernmean_error_input")
  fit <- kme(c(1, 2, 4), kernel_rbf(1), "skmse")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_error(plot(fit, lambda = 2), "no graphical parameter",
               class = "kernmean_error_input")
})

test_that("the second argument of plot() is the type", {
  types <- c("one", "two")
  expect_identical(plot_type(types, NULL, NULL), "one")
  expect_identical(plot_type(types, NULL, NULL, "two"), "two")
  expect_identical(plot_type(types, "tw", NULL), "two")
  expect_identical(plot_type(types, NULL, "one", "two"), "one")
  expect_error(plot_type(types, "one", "two"), "by position",
               class = "kernmean_error_input")
  expect_error(plot_type(types, 3, NULL), "must be one of",
               class = "kernmean_error_input")
})

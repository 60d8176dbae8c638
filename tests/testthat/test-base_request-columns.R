# What columns may be: numbers, whatever class they have; no lists.

test_that("columns with units, dates and tibbles count as their numbers", {
  a <- c(2, 5, 3, 8, 1, 9)
  b <- c(1, 4, 1, 5, 9, 2)
  want <- kme(cbind(a, b))$weights
  fitted <- kme(cbind(a, b))$fitted
  metres <- structure(a, class = "units", units = structure(
    list(numerator = "m", denominator = character()), class = "symbolic_units"
  ))
  frames <- list(
    units = data.frame(a = I(metres), b), dates = data.frame(
      a = as.Date("2020-01-01") + a, b
    ), whole = data.frame(a = as.integer(a), b),
    tibble = structure(data.frame(a, b), class = c("tbl_df", "tbl",
                                                   "data.frame"))
  )
  class(frames$units$a) <- "units"
  for (name in names(frames)) {
    fit <- kme(frames[[name]])
    expect_identical(fit$weights, want, label = name)
    expect_near(fit$fitted, fitted, 1e-12)
  }
  expect_near(kme(metres)$fitted, kme(a)$fitted, 1e-12)
})

test_that("lists, characters and complex numbers are refused by name", {
  x <- data.frame(a = 1:3)
  x$z <- list(1, 2, 3)
  refused(kme(x), "column 'z' of 'x' must be numeric, not a list")
  refused(kme("letters"), "'x' must be .*, not \"letters\"")
  refused(kme(1i * 1:3), "'x' must be .* \\(complex\\)")
  refused(kme(numeric()), "at least one row")
})

test_that("estimators are named in letters of either case, other words not", {
  x <- c(1, 3, 2, 7)
  expect_identical(kme(x, estimator = "S-KMSE")$weights,
                   kme(x, estimator = "skmse")$weights)
  refused(kernel_laplace(norm = "l1"), "'norm' must be one of")
})

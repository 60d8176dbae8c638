# Words and numbers of print().

test_that("lines are filled with whole words, the same in every locale", {
  words <- c("two words", "a (9)", "b", "c (10)")
  expect_identical(fill_lines(words, 80L), "two words a (9) b c (10)")
  expect_identical(fill_lines(words, 17L, exdent = 2L),
                   c("two words a (9) b", "  c (10)"))
  expect_identical(fill_lines(words, 16L, exdent = 2L),
                   c("two words a (9)", "  b c (10)"))
  expect_identical(fill_lines(words, 1L), words)
})

test_that("long kernels print within 80 columns, short ones on one line", {
  x <- random_points(12, 5)
  theta <- c(1.2345, 2.3456, 3.4567, 4.5678, 5.6789) * 1e3
  for (kernel in list(kernel_matern(5 / 2), kernel_matern(3 / 2, theta[1:4]),
                      kernel_laplace(theta), kernel_function(tcrossprod),
                      kernel_rbf(\(x) theta))) {
    lines <- utils::capture.output(print(kernel))
    expect_lte(max(nchar(lines)), 80L)
  }
  expect_length(utils::capture.output(print(kernel_rbf())), 1L)
  fits <- list(
    kme(x, kernel_matern(5 / 2)), gram(x, kernel_matern(5 / 2)),
    kme_pca(x, kernel_matern(5 / 2), 2), kme_cov(x, kernel = kernel_matern(2.5))
  )
  for (fit in fits) {
    expect_lte(max(nchar(utils::capture.output(print(fit)))), 80L)
  }
})

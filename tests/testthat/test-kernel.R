# Kernel objects: formulas, bandwidths, printing.

test_that("kernels print their formula and bandwidth", {
  expect_snapshot({
    kernel_rbf()
    kernel_rbf(2)
    kernel_rbf(c(1, 2.5))
    kernel_rbf(1:9)
    kernel_rbf(\(x) 1)
    kernel_laplace(0.5)
    kernel_laplace(norm = "L2")
    kernel_matern(1 / 2)
    kernel_matern(3 / 2)
    kernel_matern(5 / 2, 3)
    kernel_poly()
    kernel_poly(3, 0.5)
    kernel_linear()
    kernel_energy()
    kernel_function(tcrossprod)
  })
})

test_that("a kernel keeps what was given and a fit holds the number", {
  expect_identical(kernel_rbf()$bandwidth, "median")
  expect_identical(kernel_rbf(2L)$bandwidth, 2)
  expect_identical(kernel_poly(3)$degree, 3L)
  x <- random_points(10, 2)
  fit <- kme(x, kernel_rbf())
  expect_type(fit$kernel$bandwidth, "double")
  expect_identical(kme(x, kernel_rbf(c(1, 2)))$kernel$bandwidth, c(1, 2))
  # The fitted kernel is a kernel: it chooses nothing again.
  expect_near(kernel_matrix(x[1:3, ], kernel = fit$kernel),
              kernel_matrix(x, kernel = fit$kernel)[1:3, 1:3], 1e-14)
})

test_that("one bandwidth is the same bandwidth for each column", {
  x <- random_points(10, 3)
  for (kernel in list(kernel_rbf, kernel_laplace,
                      \(b) kernel_matern(5 / 2, b))) {
    expect_near(kernel_matrix(x, kernel = kernel(0.7)),
                kernel_matrix(x, kernel = kernel(rep(0.7, 3))), 1e-14)
    each <- c(0.5, 1, 2)
    expect_near(kernel_matrix(x, kernel = kernel(each)),
                kernel_matrix(x %*% diag(1 / each), kernel = kernel(1)), 1e-13)
  }
})

test_that("Matern 1/2 is the L2 Laplace kernel; degree 1 and offset 0 linear", {
  x <- random_points(10, 2)
  expect_identical(kernel_matrix(x, kernel = kernel_matern(1 / 2, 2)),
                   kernel_matrix(x, kernel = kernel_laplace(2, "L2")))
  expect_identical(kernel_matrix(x, kernel = kernel_poly(1, 0)),
                   kernel_matrix(x, kernel = kernel_linear()))
  expect_near(kernel_matrix(x, kernel = kernel_linear()), tcrossprod(x), 1e-14)
})

test_that("the energy kernel is negative distance, for matrices only", {
  x <- random_points(6, 2)
  k <- kernel_matrix(x, kernel = kernel_energy())
  expect_equal(k, -as.matrix(stats::dist(x)), tolerance = 1e-13,
               ignore_attr = TRUE)
  expect_error(kme(x, kernel_energy()), class = "kernmean_error_input")
  expect_error(kme(gram(x, kernel_energy())), class = "kernmean_error_input")
  # Conditionally definite: e'Ke < 0.
  expect_error(gram_spectrum(gram(x, kernel_energy())),
               class = "kernmean_error_input")
})

test_that("polynomial kernels of high degree overflow with an error", {
  # |x|^2 is about 1e10.
  x <- 1e5 * random_points(5, 2)
  expect_error(kme(x, kernel_poly(40)), class = "kernmean_error_numeric")
  expect_error(kernel_matrix(x, kernel = kernel_poly(40)),
               class = "kernmean_error_numeric")
  expect_true(all(is.finite(kernel_matrix(x, kernel = kernel_poly(20)))))
})

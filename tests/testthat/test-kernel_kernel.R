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

# --- Sums of products ---------------------------------------------------------

flowers <- as.matrix(iris[c(1:40, 61:95), 1:4])

test_that("kernels add and multiply as their matrices, over their columns", {
  petals <- c("Petal.Width", "Petal.Length")
  a <- kernel_rbf(0.8, columns = petals)
  b <- kernel_linear(columns = 1L)
  c <- kernel_matern(1.5, 2)
  of <- \(k, x = flowers) kernel_matrix(x, kernel = k)
  plain <- of(kernel_rbf(0.8), flowers[, petals])
  expect_identical(of(a), plain)
  expect_equal(of(a + b), plain + of(b), tolerance = 1e-14)
  expect_equal(of(b * a), plain * tcrossprod(flowers[, 1L]), tolerance = 1e-14)
  # Distributive, with numbers on either side.
  expect_equal(of(2 * (a + b) * (c + a * 3)),
               2 * (of(a) + of(b)) * (of(c) + 3 * of(a)), tolerance = 1e-14)
  # RBF kernels multiply to one: here the bandwidth is 1/sqrt(1/4 + 1/9).
  expect_equal(of(kernel_rbf(2) * kernel_rbf(3)),
               of(kernel_rbf(1 / sqrt(1 / 4 + 1 / 9))), tolerance = 1e-13)
  # More features than are summed in one pass, and points far from the center.
  wide <- random_points(50, 80)
  expect_equal(of(kernel_rbf(9, columns = 1:70) + kernel_rbf(9), wide),
               of(kernel_rbf(9), wide[, 1:70]) + of(kernel_rbf(9), wide),
               tolerance = 1e-14)
})

test_that("each part has the median of its own columns, in units of scale", {
  sum <- kernel_rbf(columns = 3:4) + kernel_laplace(columns = "Sepal.Width")
  fit <- kme(flowers, sum, scale = TRUE)
  z <- scale(flowers)
  expect_equal(fit$kernel$parts[[1L]]$bandwidth,
               kme(z[, 3:4])$kernel$bandwidth)
  expect_equal(fit$kernel$parts[[2L]]$bandwidth,
               kme(z[, 2L], kernel_laplace())$kernel$bandwidth)
  want <- rowMeans(kernel_matrix(z[, 3:4], kernel = kernel_rbf())) +
    rowMeans(kernel_matrix(z[, 2L], kernel = kernel_laplace()))
  expect_equal(predict(fit), want)
  # Columns are found by name, and a saved fit is a fit.
  file <- tempfile()
  on.exit(unlink(file))
  saveRDS(fit, file)
  expect_equal(predict(readRDS(file), iris[c(1:40, 61:95), 4:1]), want)
  # The units of each part alone are looked at.
  apart <- flowers %*% diag(c(1, 1, 1, 1000))
  expect_silent(kme(apart, kernel_rbf(columns = 1:3) + kernel_rbf(columns = 4)))
  of_both <- kernel_rbf(columns = 3:4) + kernel_rbf(columns = 1)
  expect_warning(kme(apart, of_both), class = "kernmean_warning_units")
})

test_that("uses of kernels see a sum as they see its matrix", {
  sum <- kernel_rbf(1, columns = 1:2) + 2 * kernel_rbf(2, columns = 3:4)
  K <- kernel_matrix(flowers, kernel = sum)
  of <- \(f, ...) list(f(flowers, sum, ...), f(as_gram(K), ...))
  fits <- of(kme, estimator = "skmse")
  expect_equal(fits[[1L]]$lambda, fits[[2L]]$lambda)
  components <- of(kme_pca, ncomp = 3)
  expect_equal(components[[1L]]$values, components[[2L]]$values)
  expect_equal(predict(components[[1L]], flowers[1:5, ]),
               predict(components[[1L]])[1:5, ], ignore_attr = TRUE)
  first <- seq_len(nrow(flowers)) <= 40
  square <- \(i, j) mean(K[i, j])
  test <- mmd_set(flowers[first, ], flowers[!first, ], kernel = sum, B = 99)
  expect_equal(test$statistic[[1L]], square(first, first) +
                 square(!first, !first) - 2 * square(first, !first))
  sketch <- kme_sketch(flowers, kme_landmarks(flowers, sum, m = 75))
  expect_equal(predict(kme(sketch), flowers), rowMeans(K), tolerance = 1e-6)
  bags <- bag_gram(split(as.data.frame(flowers), first), sum)
  expect_equal(as.matrix(bags$K)[1L, 2L], square(first, !first))
  # k(x, x) = 3, and k >= 0: intervals hold as for any such kernel.
  expect_equal(common_diagonal(fits[[1L]]$sample), 3)
  narrow <- kernel_rbf(1, columns = 1:2) + 2 * kernel_rbf(3, columns = 3:4)
  for (other in list(2 * sum, narrow, kernel_rbf(1, columns = 1:2))) {
    expect_error(kme_distance(fits[[1L]], kme(flowers, other)), "same kernel")
  }
  again <- kme(flowers, fits[[1L]]$kernel)
  expect_lt(kme_distance(kme(flowers, sum), again), 1e-6)
})

test_that("a sum of kernels of a Gaussian mixture is the sum of closed forms", {
  mixture <- list(weights = c(0.3, 0.7), means = rbind(1:4, c(2, 2, 1, 1)),
                  covariances = array(c(cov(flowers), diag(4)), c(4, 4, 2)))
  seen <- list(weights = mixture$weights, means = mixture$means[, c(3, 1)],
               covariances = mixture$covariances[c(3, 1), c(3, 1), ])
  parts <- list(kernel_rbf(2), kernel_poly(2))
  sum <- fit_kernel(2 * kernel_rbf(2, columns = c(3, 1)) + kernel_poly(2),
                    flowers)
  z <- unname(flowers[1:6, ])
  expect_equal(mixture_at(mixture, sum, z),
               2 * mixture_at(seen, parts[[1L]], z[, c(3, 1)]) +
                 mixture_at(mixture, parts[[2L]], z))
  expect_equal(mixture_inner(mixture, mixture, sum),
               2 * mixture_inner(seen, seen, parts[[1L]]) +
                 mixture_inner(mixture, mixture, parts[[2L]]))
})

test_that("sums print their parts, and say what they cannot do", {
  sum <- kernel_rbf(2, columns = c("a", "b")) + 3 * kernel_linear(columns = 3) *
    kernel_matern()
  expect_snapshot({
    sum
    kme(flowers, kernel_rbf(1.5, columns = 1:2))$kernel
    2 * kme(flowers, kernel_rbf(1.5, columns = 1:2))$kernel
    kme(flowers, kernel_rbf(1.5, columns = 1:2), scale = TRUE)$kernel
  })
  both <- kernel_rbf(1) + kernel_rbf(2)
  expect_snapshot(error = TRUE, {
    kernel_rbf() + 1
    -1 * kernel_rbf()
    kernel_rbf() + kernel_energy()
    kernel_rbf() * kme(flowers, scale = TRUE)$kernel
    kernel_rbf(columns = c("a", "a"))
    kernel_rbf(columns = NA)
    kme(flowers, sum)
    kme(unname(flowers), sum)
    kme(cbind(a = 1:3, a = 3:1, b = 1:3), sum)
    kme(flowers, kernel_rbf(columns = 5))
    kme(flowers, kernel_rbf(columns = 1:2), scale = "whiten")
    kme(flowers, both, "mkme")
    kme_density(flowers, both)
    kme_density(flowers, kernel_rbf(columns = 1:2))
    preimage(kme_pca(flowers, both))
    mmd_test(flowers[1:30, ], flowers[31:75, ], kernel = both,
             bandwidths = "fuse")
    hsic_test(iris[, 4:5], iris[, 1:2], kernel_x = both)
  })
})

test_that("what the package asks of kernels is in the table of families", {
  asked <- character()
  look <- function(code) {
    if (is.call(code)) {
      if (identical(code[[1L]], quote(kernel_has))) {
        asked <<- c(asked, Filter(is.character, as.list(code)))
      }
      lapply(Filter(is.language, as.list(code)), look)
    }
  }
  space <- asNamespace("kernmean")
  for (name in ls(space)) {
    if (is.function(space[[name]])) look(body(space[[name]]))
  }
  known <- unlist(lapply(kernel_families, \(family) {
    c(family$has, names(family$up_to))
  }))
  expect_setequal(unlist(asked), c(known, "scaling"))
})

test_that("a sum has what all its parts have, a product no closed form", {
  one <- kernel_rbf(1)
  sum <- one + 2 * kernel_poly(3)
  expect_true(kernel_has(sum, "closed form"))
  expect_false(kernel_has(sum, "flat diagonal"))
  expect_false(kernel_has(one + kernel_poly(4), "closed form"))
  expect_false(kernel_has(one * kernel_rbf(2), "closed form"))
  expect_identical(flat_diagonal(one * kernel_rbf(2) + 3 * one), 4)
  expect_false(kernel_has(sum, "Gaussian form"))
  expect_false(kernel_has(NULL, "distances"))
  expect_true(kernel_has(kme(1:9, scale = TRUE)$kernel, "scaling"))
})

# Leading eigenpairs of a centered Gram matrix: block Krylov iteration against
# LAPACK's full decomposition of the matrix formed.

centered <- function(x, kernel = NULL, center = "kme") {
  center <- read_center(center)
  sample <- read_sample(x, kernel, default = center_kernel(center),
                        scale = FALSE)
  centered_sample(sample, center)
}

# Largest difference of the values on the scale of the first, and |K^c v - g v|
# for the pairs found, and |V'V - I|.
pair_errors <- function(sample, found) {
  k <- centered_matrix(sample)
  want <- eigen(k, symmetric = TRUE, only.values = TRUE)$values
  p <- length(found$values)
  v <- found$vectors
  c(
    values = max(abs(found$values - want[seq_len(p)])) / want[1L],
    residual = max(sqrt(colSums((k %*% v - v * rep(found$values,
                                                   each = nrow(v)))^2))) /
      want[1L],
    basis = max(abs(crossprod(v) - diag(p)))
  )
}

# The solver's promise is a residual of 1e-10 of the largest value (5e-11 was
# the largest seen), so values to its square over a gap, 1e-13 or so.
expect_pairs <- function(sample, p, label) {
  found <- krylov_spectrum(sample, p)
  errors <- pair_errors(sample, found)
  expect_lt(errors[["values"]], 1e-12, label = label)
  expect_lt(errors[["residual"]], 1.1e-10, label = label)
  expect_lt(errors[["basis"]], 1e-9, label = label)
  expect_identical(found$vectors, fix_signs(found$vectors), label = label)
  invisible(found)
}

# A Gram matrix with these eigenvalues once centered, and a constant besides.
gram_with <- function(values, seed) {
  n <- length(values) + 1L
  set.seed(seed)
  q <- qr.Q(qr(cbind(1, matrix(stats::rnorm(n * length(values)), n))))[, -1]
  k <- q %*% (values * t(q)) + 0.7
  as_gram((k + t(k)) / 2)
}

test_that("few components of points are those of the full decomposition", {
  skip_on_cran()
  x <- random_points(900, 6)
  decaying <- random_points(900, 12) %*% diag(0.6^(0:11))
  expect_pairs(centered(x), 20L, "normal points")
  expect_pairs(centered(x, center = "skmse"), 7L, "shrinkage centering")
  expect_pairs(centered(x, center = kme(x[1:50, ], kme(x)$kernel)), 16L,
               "centered by another embedding")
  expect_pairs(centered(decaying), 33L, "a fast spectrum")
  expect_pairs(centered(x, kernel_rbf(0.3)), 5L, "a slow spectrum")
  expect_pairs(centered(x, kernel_laplace()), 10L, "Laplace")
})

test_that("a stored matrix, an R function and points give the same pairs", {
  x <- random_points(700, 3)
  points <- krylov_spectrum(centered(x, kernel_rbf(1)), 8L)
  stored <- krylov_spectrum(centered(gram(x, kernel_rbf(1))), 8L)
  own <- kernel_function(\(a, b) kernel_matrix(a, b, kernel_rbf(1)))
  called <- krylov_spectrum(centered(x, own), 8L)
  expect_near(stored$values, points$values, 1e-12)
  expect_near(stored$vectors, points$vectors, 1e-7)
  expect_near(called$values, points$values, 1e-12)
  square <- sum(centered_matrix(centered(x, kernel_rbf(1)))^2)
  expect_near(stored$square, square, 1e-12)
  expect_near(stored$total,
              sum(diag(centered_matrix(centered(x, kernel_rbf(1))))), 1e-12)
})

test_that("all of a multiple eigenvalue is found, larger than a block too", {
  skip_on_cran()
  for (m in c(12, 24, 40)) {
    for (tail in c(0, 0.3)) {
      values <- c(rep(1, m), rep(0.5, 17), tail * (1:(642 - m))^-0.3)
      sample <- centered(gram_with(values, m))
      for (p in c(20L, 50L)) {
        found <- krylov_spectrum(sample, p)
        expect_equal(found$values, values[seq_len(p)], tolerance = 1e-12,
                     info = paste(m, tail, p))
      }
      expect_lt(pair_errors(sample, found)[["residual"]], 1e-10)
    }
  }
})

test_that("a nearly flat spectrum is found", {
  skip_on_cran()
  values <- c(rep(1, 10), rep(0.999, 30), 0.99 * (1:560)^-0.01)
  expect_pairs(centered(gram_with(values, 3)), 20L, "nearly flat")
})

test_that("beyond the rank the values are rounding", {
  x <- random_points(600, 3)
  found <- krylov_spectrum(centered(x, kernel_linear()), 20L)
  expect_near(found$values[1:3], stats::prcomp(x)$sdev^2 * 599, 1e-12)
  expect_lt(max(abs(found$values[-(1:3)])), 1e-12 * found$values[1])
  kept <- centered_spectrum(centered(random_points(1300, 3), kernel_poly(2)),
                           12L)$values
  expect_identical(sum(kept > 0), 9L)
})

test_that("restarts keep what was found", {
  skip_on_cran()
  # 60 values are asked of a slow spectrum: more blocks than the basis holds.
  values <- (1:799)^-0.5
  found <- krylov_spectrum(centered(gram_with(values, 8)), 60L)
  expect_gt(16 * found$products, 400)
  expect_near(found$values, values[1:60], 1e-12)
})

test_that("the bits do not depend on the number of threads", {
  sample <- centered(random_points(2100, 4))
  one <- with_threads(1, krylov_spectrum(sample, 12L))
  expect_identical(with_threads(2, krylov_spectrum(sample, 12L)), one)
  expect_identical(with_threads(3, krylov_spectrum(sample, 12L)), one)
})

test_that("every set of instructions finds the same values", {
  sample <- centered(random_points(650, 5))
  best <- krylov_spectrum(sample, 10L)
  for (level in isa_levels()) {
    found <- with_isa(level, krylov_spectrum(sample, 10L))
    expect_near(found$values, best$values, 1e-12)
    expect_near(found$square, best$square, 1e-12)
  }
})

test_that("the leading pairs of a small matrix are those of the whole", {
  for (n in c(4, 9, 60, 150)) {
    k <- rbf_gram(n)
    p <- n %/% 4
    found <- .Call(C_r_eigen, k, p)
    whole <- .Call(C_r_eigen, k, nrow(k))
    expect_near(found$values, whole$values[seq_len(p)], 1e-13)
    expect_near(found$vectors, whole$vectors[, seq_len(p), drop = FALSE], 1e-9)
  }
  ties <- as.matrix(gram_with(rep(c(3, 1), c(7, 52)), 1))
  found <- .Call(C_r_eigen, ties, 8L)
  expect_near(crossprod(found$vectors), diag(8), 1e-12)
  huge <- .Call(C_r_eigen, ties * 1e300, 3L)$values / 1e300
  expect_near(huge, .Call(C_r_eigen, ties, 3L)$values, 1e-13)
})

test_that("equal eigenvalues are no obstacle to leading pairs", {
  # Inverse iteration by LAPACK's dstein fails on most of these.
  for (n in c(40, 100, 171)) {
    found <- .Call(C_r_eigen, diag(n), n %/% 4)
    expect_near(found$values, rep(1, n %/% 4), 1e-13)
    expect_near(crossprod(found$vectors), diag(n %/% 4), 1e-12)
  }
  x <- random_points(1300, 50)
  found <- krylov_spectrum(centered(x, kernel_laplace(1)), 5L)
  expect_near(found$values, rep(1, 5), 1e-6)
})

test_that("the matrix is stored where its values cost more than memory", {
  expect_false(stores_matrix(2000, 16))
  expect_true(stores_matrix(2000, 17))
  expect_false(stores_matrix(20000, 20))
  old <- options(kernmean.memory = 1e9)
  on.exit(options(old))
  expect_true(stores_matrix(7000, 65))
  expect_false(stores_matrix(9000, 65))
  x <- random_points(900, 20)
  kernel <- kernel_rbf(4)
  stored <- krylov_spectrum(centered(x, kernel), 6L)
  options(kernmean.memory = 12e6) # enough for the basis, not for both
  expect_near(krylov_spectrum(centered(x, kernel), 6L)$values,
              stored$values, 1e-12)
})

test_that("a basis that does not fit is refused before it is allocated", {
  sample <- centered(random_points(3000, 2))
  old <- options(kernmean.memory = 1e7)
  on.exit(options(old))
  expect_error(krylov_spectrum(sample, 500L), "fewer components",
               class = "kernmean_error_memory")
})

test_that("small and large n take different ways to the same result", {
  x <- random_points(1250, 3)
  sample <- centered(x, kernel_rbf(1))
  fast <- centered_spectrum(sample, 6L)
  slow <- dense_spectrum(sample, 6L)
  expect_false(is.null(fast$products))
  expect_near(fast$values, slow$values, 1e-12)
  expect_near(fast$vectors, slow$vectors, 1e-8)
  expect_near(fast[c("total", "square")], slow[c("total", "square")], 1e-12)
})

test_that("values too small or too large for their squares go another way", {
  x <- random_points(1250, 2)
  tiny <- centered_spectrum(centered(1e-90 * x, kernel_linear()), 2L)
  expect_near(tiny$values, 1e-180 * stats::prcomp(x)$sdev^2 * 1249, 1e-10)
  large <- centered_spectrum(centered(1e90 * x, kernel_linear()), 2L)
  expect_near(large$values, 1e180 * stats::prcomp(x)$sdev^2 * 1249, 1e-10)
})

test_that("the iteration answers an interrupt", {
  sample <- centered(random_points(6000, 4))
  expect_false(finishes(krylov_spectrum(sample, 20L)))
})

# The bandwidth rule: the exact median of all pairwise distances, and the
# sampled one, against sorting all of them.

median_R <- function(x, norm = "L2") {
  d <- as.vector(stats::dist(x, if (norm == "L2") "euclidean" else "manhattan"))
  if (norm == "L2") d <- d^2
  c(stats::median(d), if (any(d > 0)) min(d[d > 0]) else 0)
}

# The core's median; center 0 so that distances of integers stay exact.
median_core <- function(x, norm = "L2") {
  kernel <- new_kernel(if (norm == "L2") "sqdist" else "l1dist", "")
  source <- native_source(kernel, x, center = numeric(ncol(x)))
  .Call(C_r_kernel_median, source)
}

expect_median <- function(x, norm = c("L2", "L1"), tolerance = 1e-13) {
  for (one in norm) {
    expect_near(median_core(x, one), median_R(x, one), tolerance)
  }
}

test_that("the median is that of all pairs, odd and even in number", {
  for (n in c(2:9, 63:66, 130, 300)) {
    for (d in c(1, 3, 20)) {
      expect_median(random_points(n, d))
    }
  }
})

test_that("the median is the same for every level of instructions", {
  for (level in isa_levels()) {
    with_isa(level, expect_median(random_points(200, 3)))
  }
})

test_that("the median of integers with ties is exact to the bit", {
  set.seed(2)
  for (n in c(2, 3, 4, 5, 50, 131, 300)) {
    for (top in c(1, 3, 100)) {
      x <- matrix(as.double(sample(0:top, 3 * n, TRUE)), n)
      # sqrt() and squaring in the twin cost at most a rounding, undone here.
      expect_identical(median_core(x), round(2 * median_R(x)) / 2)
      expect_identical(median_core(x, "L1"), median_R(x, "L1"))
    }
  }
})

test_that("the mean of the two middle distances is taken across a gap", {
  # 6 and 3 points in two clusters: 18 of the 36 pairs within, 18 across.
  x <- matrix(c(seq(0, 0.01, length.out = 6), 1000 + c(0, 0.002, 0.004)))
  expect_median(x)
  x <- matrix(c(0, 1e-9, 2e-9, 1))
  expect_median(x)
})

test_that("the median is right when nearly all distances agree", {
  x <- diag(60)
  expect_median(x)
  x[1] <- 1 + 1e-12
  expect_median(x)
  x <- rbind(matrix(0, 150, 2), random_points(20, 2))
  expect_median(x)
})

test_that("the median is right for more pairs than are held at once", {
  # A sample of pairs brackets the middle; what is inside is kept or tabulated.
  for (d in c(1, 3)) {
    expect_median(random_points(1500, d))
  }
  set.seed(5)
  for (top in c(1, 2, 9)) {
    x <- matrix(as.double(sample(0:top, 1500, TRUE)))
    expect_identical(median_core(x, "L1"), median_R(x, "L1"))
    expect_identical(median_core(x), round(median_R(x)))
  }
})

test_that("the median is right where exactly half of many pairs are 0", {
  # Clusters of a and b equal points, (a - b)^2 = a + b.
  for (sizes in list(c(528, 496), c(946, 903))) {
    x <- matrix(rep(c(0, 1), sizes))
    expect_identical(median_core(x), c(0.5, 1))
    expect_identical(median_core(3 * x, "L1"), c(1.5, 3))
  }
})

test_that("the median is right where the sample of pairs misleads", {
  # Found by search: the middle lies outside the bracket of the sample, above it
  # twice and below it once.
  for (seed in c(1954, 4123, 5466)) {
    expect_median(random_points(514, 1, seed))
  }
})

test_that("equal points have median 0 and no smallest positive distance", {
  for (n in c(2, 3, 70)) {
    expect_identical(median_core(matrix(3, n, 2)), c(0, 0))
  }
  x <- rbind(matrix(3, 70, 2), c(3, 7))
  expect_identical(median_core(x), c(0, 16))
  expect_identical(median_core(x, "L1"), c(0, 4))
})

test_that("the sampled median is that of the pairs R's generator draws", {
  skip_on_cran()
  n <- 40
  x <- random_points(n, 2)
  source <- native_source(new_kernel("sqdist", ""), x)
  for (pairs in c(1, 2, 1001, 70000)) {
    set.seed(pairs)
    found <- .Call(C_r_kernel_sampled_median, source, pairs)
    after <- stats::runif(1)
    set.seed(pairs)
    drawn <- vapply(seq_len(pairs), function(i) {
      first <- sample.int(n, 1L)
      second <- sample.int(n - 1L, 1L)
      c(first, second + (second >= first))
    }, integer(2))
    distance <- (x[drawn[1, ], 1] - x[drawn[2, ], 1])^2 +
      (x[drawn[1, ], 2] - x[drawn[2, ], 2])^2
    expect_near(found, c(stats::median(distance), min(distance)), 1e-13)
    expect_identical(after, stats::runif(1))
  }
})

test_that("more than 20,000 points take the sampled median; print says so", {
  skip_on_cran()
  x <- random_points(20001, 1)
  set.seed(1)
  kernel <- fit_kernel(kernel_rbf(), x)
  # The median of |x - y| is sqrt(2) qnorm(0.75).
  expect_near(kernel$bandwidth, sqrt(2) * stats::qnorm(0.75), 0.02)
  expect_output(print(kernel), "1,000,000 random pairs", fixed = TRUE)
  set.seed(1)
  expect_identical(fit_kernel(kernel_rbf(), x)$bandwidth, kernel$bandwidth)
})

test_that("the median bandwidth is the root of the median squared distance", {
  x <- random_points(31, 3)
  expect_near(fit_kernel(kernel_rbf(), x)$bandwidth,
              sqrt(median_R(x)[1]), 1e-13)
  for (kernel in list(kernel_laplace(norm = "L2"), kernel_matern(1 / 2),
                      kernel_matern(3 / 2), kernel_matern(5 / 2))) {
    expect_identical(fit_kernel(kernel, x)$bandwidth,
                     fit_kernel(kernel_rbf(), x)$bandwidth)
  }
  expect_near(fit_kernel(kernel_laplace(), x)$bandwidth,
              median_R(x, "L1")[1], 1e-13)
})

test_that("a zero median falls back to the smallest distance, with a warning", {
  x <- c(0, 0, 0, 0, 0, 0, 3, 10)
  expect_warning(k <- fit_kernel(kernel_rbf(), cbind(x)),
                 class = "kernmean_warning")
  expect_identical(k$bandwidth, 3)
  expect_output(print(k), "bandwidth 3, the smallest positive distance")
  expect_warning(k <- fit_kernel(kernel_laplace(), cbind(x, x)),
                 class = "kernmean_warning")
  expect_identical(k$bandwidth, 6)
})

test_that("equal points, or one point, have bandwidth 1 without a warning", {
  expect_silent(k <- fit_kernel(kernel_rbf(), matrix(7, 5, 2)))
  expect_identical(k$bandwidth, 1)
  expect_output(print(k), "bandwidth 1, all points are equal")
  expect_silent(k <- fit_kernel(kernel_rbf(), matrix(7, 1, 2)))
  expect_identical(k$bandwidth, 1)
})

test_that("the median bandwidth scales with the data, however large or small", {
  x <- random_points(12, 2)
  theta <- fit_kernel(kernel_rbf(), x)$bandwidth
  for (scale in 2^c(-900, -520, -30, 30, 520, 900)) {
    expect_equal(fit_kernel(kernel_rbf(), x * scale)$bandwidth / scale, theta,
                 tolerance = 1e-12, info = format(scale))
    expect_equal(kme(x * scale)$norm2, kme(x)$norm2, tolerance = 1e-12,
                 info = format(scale))
  }
})

test_that("a bandwidth may be a function of the data", {
  x <- random_points(20, 3)
  spread <- \(x) apply(x, 2, stats::sd)
  k <- fit_kernel(kernel_rbf(spread), x)
  expect_identical(k$bandwidth, spread(x))
  expect_near(kernel_matrix(x, kernel = kernel_rbf(spread)),
              kernel_matrix(x, kernel = kernel_rbf(spread(x))), 0)
  expect_near(kernel_matrix(x, kernel = kernel_rbf(\(x) 2)),
              kernel_matrix(x, kernel = kernel_rbf(2)), 0)
})

test_that("distances at the end of the number range are answered", {
  expect_equal(kme(c(0, 1e-300))$kernel$bandwidth, 1e-300)
  source <- native_source(new_kernel("sqdist", ""), cbind(c(1, 2, 3)))
  source[[1]][[5]] <- Inf
  source[[2]] <- cbind(c(0, 1, 2))
  found <- .Call(C_r_kernel_median, source)
  expect_false(is.finite(found[1]))
})

# The bandwidth rule: the exact median of all pairwise distances, and the
# sampled one, against sorting all of them.

median_R <- function(x, norm = "L2") {
  d <- as.vector(stats::dist(x, if (norm == "L2") "euclidean" else "manhattan"))
  if (norm == "L2") d <- d^2
  middle <- stats::median(d)
  c(middle, if (middle > 0 || all(d == 0)) middle else stats::median(d[d > 0]))
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
    expect_identical(median_core(x), c(0.5, 0.5))
    expect_identical(median_core(3 * x, "L1"), c(1.5, 1.5))
  }
})

test_that("the median is right where the sample of pairs misleads", {
  # Found by search: the middle lies outside the bracket of the sample, above it
  # twice and below it once.
  for (seed in c(1954, 4123, 5466)) {
    expect_median(random_points(514, 1, seed))
  }
})

test_that("where the median is 0 that of the positive distances is exact", {
  # Odd and even in number, one of them, and more than are held at once.
  for (zeros in c(5, 40, 700, 1300)) {
    for (others in c(1, 2, 3, 20, 200)) {
      if (others > 0.3 * zeros) next
      x <- rbind(matrix(0, zeros, 2), random_points(others, 2))
      expect_identical(median_core(x)[1L], 0)
      expect_median(x)
    }
  }
  # Their median is itself a value that many pairs have.
  x <- matrix(rep(c(0, 1, 5), c(1200, 100, 50)))
  expect_identical(median_core(x), c(0, 1))
  for (level in isa_levels()) with_isa(level, expect_median(x))
})

test_that("equal points have median 0 and no positive distance", {
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
    expect_near(found, rep(stats::median(distance), 2), 1e-13)
    expect_identical(after, stats::runif(1))
  }
  x <- matrix(rep(c(0, 1, 3, 7), c(37, 1, 1, 1)))
  source <- native_source(new_kernel("l1dist", ""), x, center = 0)
  for (pairs in c(999, 1000)) {
    set.seed(pairs)
    found <- .Call(C_r_kernel_sampled_median, source, pairs)
    set.seed(pairs)
    distance <- replicate(pairs, {
      first <- sample.int(n, 1L)
      second <- sample.int(n - 1L, 1L)
      abs(x[first] - x[second + (second >= first)])
    })
    expect_identical(found, c(0, stats::median(distance[distance > 0])))
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

test_that("a median of 0 leaves the median of the positive distances", {
  # Six times 3, six times 10, and 7; the squares 9, 49 and 100.
  x <- c(0, 0, 0, 0, 0, 0, 3, 10)
  expect_silent(k <- fit_kernel(kernel_rbf(), cbind(x)))
  expect_near(k$bandwidth, 7, 1e-15)
  expect_output(print(k), "bandwidth 7, the median of the positive distances")
  expect_identical(fit_kernel(kernel_laplace(), cbind(x, x))$bandwidth, 14)
  # Two values that are close do not decide.
  set.seed(1)
  x <- c(rep(0, 80), stats::rexp(19))
  x[100] <- x[99] + 1e-7
  away <- stats::dist(x)
  expect_near(kme(x)$kernel$bandwidth, stats::median(away[away > 0]), 1e-12)
  # Gower's distance, of a factor and of numbers that are mostly 0.
  data <- data.frame(f = factor(rep(c("a", "b"), c(90, 10))), x)
  k <- fit_units(kernel_gower(), data)
  away <- stats::dist(k$x, "manhattan")
  expect_identical(stats::median(away), 0)
  expect_near(k$kernel$bandwidth, stats::median(away[away > 0]), 1e-12)
})

test_that("many bandwidths lie between quantiles of the positive distances", {
  x <- cbind(c(rep(0, 50), 1:10))
  away <- stats::dist(x)
  ends <- stats::quantile(away[away > 0], c(0.05, 0.95), names = FALSE)
  expect_near(range(fuse_bandwidths(x)), ends * c(0.5, 2), 1e-12)
  # A few zeros change nothing.
  x <- cbind(c(0, 0, 1:10))
  ends <- stats::quantile(stats::dist(x), c(0.05, 0.95), names = FALSE)
  expect_near(range(fuse_bandwidths(x)), ends * c(0.5, 2), 1e-12)
  expect_identical(positive_distances(c(0, 0, 0)), 1)
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

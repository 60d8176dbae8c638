# Counts whose products an integer does not hold: 46341^2 > 2^31 > 46340^2.

border <- c(46340L, 46341L)

# Sums of `labelings` labelings of samples of these sizes, with those of kernel
# values as large as the numbers of pairs.
large_sums <- function(sizes, labelings = 3L) {
  row <- \(v) matrix(v, labelings, length(v), byrow = TRUE)
  n <- as.double(sizes)
  pairs <- utils::combn(length(sizes), 2L)
  list(within = row(0.5 * n^2), trace = row(n),
       cross = row(0.25 * n[pairs[1L, ]] * n[pairs[2L, ]]),
       sizes = row(sizes), moments = c(1, 1) * sum(n)^2)
}

as_doubles <- function(sums) {
  storage.mode(sums$sizes) <- "double"
  sums
}

test_that("statistics of sums are those of sizes as doubles at the border", {
  shares <- est_share(est_skmse())
  for (n in border) {
    for (sizes in list(c(n, n), c(2L, n), c(n, n, n), c(n, 2L, 3L, n))) {
      sums <- large_sums(sizes)
      expect_type(sums$sizes, "integer")
      biased <- \(sums) mmd_values(sums, "biased")
      of <- list(biased, \(sums) mmd_values(sums, "unbiased"),
                 \(sums) shrunk_values(sums, shares),
                 \(sums) mmd_of_pairs(observed_sums(sums), biased),
                 \(sums) between_share(list(sums)))
      for (f in of) {
        expect_silent(value <- f(sums))
        expect_true(all(is.finite(value)))
        expect_identical(value, f(as_doubles(sums)))
      }
    }
    two <- large_sums(c(n, n))
    # Half the value within samples, a quarter between them.
    expect_equal(biased(two), rep(0.5, 3))
    expect_silent(fused <- fused_values(list(two, two)))
    expect_identical(fused, fused_values(lapply(list(two, two), as_doubles)))
    expect_true(all(is.finite(fused)))
  }
})

test_that("moments over permutations hold for large counts", {
  set.seed(1)
  for (sizes in list(c(20L, 30L), c(46340L, 46340L), c(46341L, 46341L))) {
    n <- sum(sizes)
    rows <- n / 2 + stats::rnorm(n)
    law <- \(sizes) list(
      labeled_moments(rows, rep(1, n), sizes, 0.3 * n^2, "biased"),
      labeled_moments(rows, rep(1, n), sizes, 0.3 * n^2, "unbiased")
    )
    expect_silent(found <- law(sizes))
    expect_true(all(is.finite(unlist(found))))
    expect_identical(found, law(as.double(sizes)))
  }
})

test_that("distances of group means divide by products of sizes", {
  for (n in border) {
    sums <- matrix(as.double(n)^2, 2L, 2L)
    expect_silent(means <- block_means(sums, c(a = n, b = n)))
    expect_identical(means, matrix(1, 2L, 2L))
  }
})

test_that("labels of many points are counted as they are", {
  for (n in border) {
    units <- list(sizes = c(n, n))
    set.seed(2)
    labels <- in_label_chunks(units, list(B = 3L), FALSE, FALSE, identity)[[1L]]
    expect_equal(labels$count, 4)
    expect_length(labels$subsets, 8 * 4 * ceiling(2 * n / 64))
    # Of each labeling n points are in the first sample, also counted in pairs.
    points <- .Call(C_r_subset_sums, labels$subsets, labels$count,
                    matrix(c(1, n), 2L * n, 2L, byrow = TRUE))
    expect_identical(points, matrix(c(1, n) * n, 4L, 2L, byrow = TRUE))
  }
})

test_that("tests of sketches with bins take large samples", {
  set.seed(3)
  n <- border[2L]
  x <- matrix(stats::rnorm(n))
  y <- matrix(stats::rnorm(n, 0.1))
  landmarks <- kme_landmarks(x[1:200, , drop = FALSE], 10, kernel_rbf(1))
  sketch <- \(z) kme_sketch(z, landmarks, bin = 463)
  for (null in c("permutation", "spectrum")) {
    test <- mmd_set(sketch(x), sketch(y), null = null, B = 99)
    expect_true(is.finite(test$statistic) && test$p.value < 0.05)
    # Bins that are not full are left out: 46300 of 46341 points.
    expect_gte(min(test$sizes), 46300)
  }
})

test_that("what has no room is refused before anything is allocated", {
  old <- options(kernmean.memory = Inf)
  on.exit(options(old))
  largest <- .Machine$integer.max
  x <- matrix(as.double(1:8))
  many <- factor(rep(seq_len(70000L), each = 2L))
  refused <- function(call, memory = Inf) {
    options(kernmean.memory = memory)
    expect_error(call, class = "kernmean_error_memory")
  }
  before <- gc(reset = TRUE)["Vcells", "used"]
  # By their number alone.
  refused(mmd_test(x, x + 1, kernel_rbf(1), B = largest))
  refused(hsic_test(x, x^2, kernel = kernel_rbf(1), B = largest))
  refused(mmd_test(x, x + 1, kernel_rbf(1), B = largest, filter = "tikhonov"))
  refused(hsic_test(x, x^2, kernel = kernel_rbf(1), B = largest,
                    filter = "tikhonov"))
  refused(mmd_test(seq_along(many) ~ many))
  # By the memory that they take.
  refused(mmd_set(x, x + 1, kernel_rbf(1), B = 1e8, null = "spectrum"), 1e9)
  refused(mmd_test(x, x + 1, kernel_rbf(1), B = 1e9), 1e10)
  refused(hsic_test(x, x^2, kernel = kernel_rbf(1), B = 1e9), 1e10)
  refused(check_label_memory(list(sizes = border), 1e9), 1e10)
  # Of what was refused the least has 1e9 cells.
  expect_lt(gc()["Vcells", "max used"] - before, 1e8)
})

# Pivoted Cholesky factors K ~ FF' of Gram matrices, of points and of stored
# matrices: by their identities and against one pivot at a time.

pivoted <- function(source, most, tolerance = 1e-13, partial = FALSE) {
  .Call(C_r_pivoted, source, tolerance, as.integer(most), partial)
}

of_matrix <- function(k, most = nrow(k), ...) {
  pivoted(native_source(NULL, k), most, ...)
}

# The point of largest residual, again and again: its rank.
greedy_rank_R <- function(k, tolerance = 1e-13) {
  left <- diag(k)
  f <- matrix(0, nrow(k), 0)
  while (sum(left) > tolerance * sum(diag(k))) {
    p <- which.max(left)
    column <- (k[, p] - drop(f %*% f[p, ])) / sqrt(left[p])
    f <- cbind(f, column * (left > 0))
    left <- pmax(left - column^2, 0)
    left[p] <- 0
  }
  ncol(f)
}

# A matrix is known as exactly as its largest values; the trace that is left
# bounds every entry of K - FF', which is positive semi-definite. 1e-14: some
# eps for products of as many terms as the rank.
expect_factor <- function(made, k, label = NULL) {
  n <- nrow(k)
  rank <- length(made$pivots)
  trace <- sum(diag(k))
  expect_identical(dim(made$factor), c(n, rank), label = label)
  expect_lte(max(abs(tcrossprod(made$factor) - k)),
             made$left + 1e-14 * max(abs(k)), label = label)
  expect_lte(made$left, 1e-13 * trace, label = label)
  expect_lte(abs(trace - sum(made$factor^2) - made$left), 1e-14 * trace,
             label = label)
  expect_false(anyDuplicated(made$pivots) > 0, label = label)
  at <- made$factor[made$pivots, , drop = FALSE]
  expect_true(all(at[upper.tri(at)] == 0), label = label)
  expect_true(all(diag(at) > 0), label = label)
}

test_that("FF' is the Gram matrix, of every kernel at every level", {
  skip_on_cran()
  for (n in c(1L, 2L, 24L, 25L, 49L, 130L)) {
    x <- random_points(n, 3)
    kernels <- native_kernels(3)
    for (name in setdiff(names(kernels), c("energy", "sqdist", "l1dist"))) {
      source <- native_source(kernels[[name]], x)
      for (level in isa_levels()) {
        with_isa(level, {
          k <- .Call(C_r_kernel_store, source)
          label <- paste(name, n, level)
          made <- pivoted(source, n)
          expect_factor(made, k, label)
          expect_identical(of_matrix(k), made, label = label)
        })
      }
    }
  }
})

test_that("ranks are about those of one pivot at a time", {
  for (d in 1:3) {
    x <- random_points(400, d)
    for (points in list(x, x[order(x[, 1L]), , drop = FALSE])) {
      source <- native_source(kernel_rbf(1.5), points)
      made <- pivoted(source, 400)
      k <- .Call(C_r_kernel_store, source)
      expect_factor(made, k)
      # Seen: 2 more of 26, and 2% more or less of 366.
      want <- greedy_rank_R(k)
      expect_lte(abs(length(made$pivots) - want), max(3, 0.04 * want))
    }
  }
})

test_that("of a matrix of low rank no more is found", {
  n <- 150L
  x <- random_points(n, 3)
  rank_of <- function(k) {
    made <- of_matrix(k)
    expect_factor(made, k)
    length(made$pivots)
  }
  expect_identical(length(pivoted(native_source(kernel_linear(), x), n)$pivots),
                   3L)
  expect_identical(rank_of(tcrossprod(x)), 3L)
  expect_identical(rank_of(1e200 * tcrossprod(x)), 3L)
  expect_identical(rank_of(1e-200 * tcrossprod(x)), 3L)
  # One point far from all others leaves no rounding that counts.
  expect_lte(rank_of(tcrossprod(rbind(x[-1, ], 1e6))), 3L)
  expect_identical(rank_of(matrix(2, n, n)), 1L)
  levels <- outer(rep(1:7, length.out = n), rep(1:7, length.out = n), `==`)
  expect_identical(rank_of(levels + 0), 7L)
  expect_identical(rank_of(diag(n)), n)
  # Equal points.
  again <- x[rep(1:40, length.out = n), ]
  source <- native_source(kernel_laplace(1), again)
  expect_identical(length(pivoted(source, n)$pivots), 40L)
  # Points that the kernel does not see: none.
  zero <- of_matrix(matrix(0, n, n))
  expect_identical(zero, list(factor = matrix(0, n, 0), pivots = integer(0),
                              left = 0))
})

test_that("columns that are not enough give nothing, and enough are enough", {
  x <- random_points(300, 2)
  source <- native_source(kernel_rbf(1), x)
  made <- pivoted(source, 300)
  rank <- length(made$pivots)
  expect_lt(rank, 200)
  expect_null(pivoted(source, rank - 1L))
  expect_null(pivoted(source, 1))
  expect_null(pivoted(source, 0))
  expect_identical(length(pivoted(source, rank)$pivots), rank)
  # What a larger tolerance leaves, it leaves.
  rough <- pivoted(source, 300, 1e-4)
  expect_lt(length(rough$pivots), rank / 2)
  expect_lte(rough$left, 1e-4 * 300)
  expect_gt(rough$left, 1e-6 * 300)
  k <- .Call(C_r_kernel_store, source)
  expect_near(sum(diag(k - tcrossprod(rough$factor))), rough$left, 1e-9)
  # Not positive semi-definite: not a factor, and no endless loop.
  expect_null(of_matrix(-diag(3)))
  expect_null(of_matrix(matrix(NaN, 3, 3)))
})

test_that("factors are the same for any number of threads", {
  skip_on_cran()
  x <- random_points(900, 4)
  for (source in list(native_source(kernel_rbf(2), x),
                      native_source(NULL, fold_store(kernel_rbf(2), x)))) {
    one <- with_threads(1, pivoted(source, 900))
    centered <- with_threads(1, .Call(C_r_lowrank, source, 900L))
    expect_gt(length(one$pivots), 500)
    for (threads in 2:3) {
      expect_identical(with_threads(threads, pivoted(source, 900)), one)
      expect_identical(with_threads(threads, .Call(C_r_lowrank, source, 900L)),
                       centered)
    }
    # The same factor, turned and centered.
    expect_equal(centered, t(scale(one$factor, scale = FALSE)),
                 tolerance = 1e-12, ignore_attr = TRUE)
  }
})

test_that("long factors stop on interrupt", {
  skip_on_cran()
  source <- native_source(kernel_laplace(1), random_points(4000, 10))
  expect_false(finishes(pivoted(source, 4000)))
  expect_length(pivoted(native_source(kernel_rbf(1), diag(2)), 2)$pivots, 2L)
})

test_that("where columns are not enough, so many are to be had", {
  x <- random_points(300, 2)
  kernel <- kernel_rbf(1)
  k <- gram_R(kernel, x)
  for (source in list(native_source(kernel, x), native_source(NULL, k))) {
    all <- pivoted(source, 300)
    for (most in c(1L, 7L, 48L, 50L, 100L)) {
      expect_null(pivoted(source, most))
      made <- pivoted(source, most, partial = TRUE)
      expect_identical(dim(made$factor), c(300L, most))
      beyond <- k - tcrossprod(made$factor)
      # Differences of numbers of size 1, 300 of them.
      expect_lt(abs(made$left - sum(diag(beyond))), 1e-13 * 300)
      expect_identical(made$pivots[1], all$pivots[1])
      # Positive semi-definite, and 0 at the pivots.
      expect_gt(min(eigen(beyond, TRUE, TRUE)$values), -1e-12)
      expect_lt(max(abs(beyond[made$pivots, ])), 1e-12)
    }
    expect_identical(pivoted(source, 300, partial = TRUE), all)
    none <- pivoted(source, 0, partial = TRUE)
    expect_identical(none, list(factor = matrix(0, 300, 0),
                                pivots = integer(0), left = 300))
  }
  # What is not positive semi-definite has no such factor either.
  expect_null(pivoted(native_source(NULL, -diag(3)), 3, partial = TRUE))
  expect_null(pivoted(native_source(NULL, matrix(NaN, 3, 3)), 3,
                      partial = TRUE))
})

# Sums of kernel values over blocks of points, against products with indicators.

# sum_ij u_i v_j K_ij over the blocks of these sizes.
block_sums_R <- function(k, rows, columns) {
  indicators <- \(sizes) {
    outer(rep(seq_along(sizes), sizes), seq_along(sizes), "==") + 0
  }
  crossprod(indicators(rows), k %*% indicators(columns))
}

sums_of <- function(source, sizes, weights = NULL, columns = NULL,
                    column_weights = NULL, moments = FALSE) {
  .Call(C_r_block_sums, source, sizes, weights, columns, column_weights,
        moments)
}

# Sizes of blocks of n points; empty ones too.
size_lists <- function(n) {
  random <- tabulate(sort(sample(9L, n, TRUE)), 9L)
  few <- tabulate(sort(sample(9L, n, TRUE, c(50, rep(1, 8)))), 9L)
  list(n, rep(1L, n), c(0L, n, 0L), random, few,
       c(rep(5L, n %/% 5L), n %% 5L))
}

rbf <- kernel_rbf(1.5)

test_that("sums over blocks are those of the weighted matrix", {
  skip_on_cran()
  set.seed(1)
  for (n in c(1L, 31L, 64L, 65L, 200L)) {
    x <- random_points(n, 3)
    w <- random_points(n, 1)[, 1]
    k <- gram_R(rbf, x)
    source <- native_source(rbf, x)
    for (sizes in size_lists(n)) {
      want <- block_sums_R(k * outer(w, w), sizes, sizes)
      terms <- max(block_sums_R(k * outer(abs(w), abs(w)), sizes, sizes))
      for (level in isa_levels()) {
        run <- \(source, w, moments = TRUE) {
          with_isa(level, sums_of(source, sizes, w, moments = moments))
        }
        got <- run(source, w)
        # 2e-16 seen
        expect_lt(max(abs(got$sums - want)), 1e-14 * terms)
        expect_identical(got$sums, t(got$sums))
        expect_near(got$moments, c(sum(k), sum(k^2)), 1e-13)
        stored <- run(native_source(NULL, k), w)
        expect_lt(max(abs(stored$sums - want)), 1e-14 * terms)
        expect_identical(with_threads(1, run(source, w)), got)
        expect_identical(run(source, w, FALSE),
                         list(sums = got$sums, moments = NULL))
        expect_identical(run(source, rep(1, n)), run(source, NULL))
      }
    }
  }
})

test_that("so are those of the blocks of two samples", {
  skip_on_cran()
  set.seed(2)
  for (n in c(1L, 65L, 200L)) {
    for (m in c(1L, 64L, 150L)) {
      x <- random_points(n, 3)
      y <- random_points(m, 3) + 0.2
      u <- random_points(n, 1)[, 1]
      v <- random_points(m, 1)[, 1]
      k <- gram_R(rbf, x, y)
      source <- native_source(rbf, x, y)
      columns <- size_lists(m)
      for (rows in size_lists(n)) {
        for (other in columns) {
          want <- block_sums_R(k * outer(u, v), rows, other)
          size <- max(block_sums_R(k * outer(abs(u), abs(v)), rows, other))
          got <- sums_of(source, rows, u, other, v, TRUE)
          # 3e-16 seen
          expect_lt(max(abs(got$sums - want)), 1e-14 * size)
          expect_near(got$moments, c(sum(k), sum(k^2)), 1e-13)
        }
      }
    }
  }
})

test_that("walks of many panels: the same bits for any number of threads", {
  skip_on_cran()
  set.seed(3)
  sizes <- sample(c(0L, 1L, 2L, 30L, 90L, 200L), 80L, TRUE)
  others <- sample(c(1L, 7L, 120L), 60L, TRUE)
  x <- random_points(sum(sizes), 2)
  y <- random_points(sum(others), 2)
  alone <- sums_of(native_source(rbf, x), sizes)
  both <- sums_of(native_source(rbf, x, y), sizes, NULL, others)
  expect_near(alone$sums, block_sums_R(gram_R(rbf, x), sizes, sizes), 1e-13)
  expect_near(both$sums, block_sums_R(gram_R(rbf, x, y), sizes, others), 1e-13)
  with_threads(1, {
    expect_identical(sums_of(native_source(rbf, x), sizes), alone)
    expect_identical(sums_of(native_source(rbf, x, y), sizes, NULL, others),
                     both)
  })
})

test_that("a row of sums does not depend on the other blocks of rows", {
  set.seed(4)
  sizes <- c(3L, 40L, 1L, 100L, 64L, 32L, 5L, 260L)
  others <- c(50L, 1L, 90L, 2000L)
  x <- random_points(sum(sizes), 4)
  y <- random_points(sum(others), 4)
  u <- random_points(sum(sizes), 1)[, 1]
  v <- random_points(sum(others), 1)[, 1]
  ends <- cumsum(sizes)
  for (level in isa_levels()) {
    all <- with_isa(level, {
      sums_of(native_source(rbf, x, y), sizes, u, others, v)$sums
    })
    for (b in seq_along(sizes)) {
      i <- ends[b] - sizes[b] + seq_len(sizes[b])
      source <- native_source(rbf, x[i, , drop = FALSE], y)
      own <- with_isa(level, sums_of(source, sizes[b], u[i], others, v)$sums)
      expect_identical(own[1L, ], all[b, ])
    }
  }
})

# --- Sums of each row --------------------------------------------------------

rows_of <- function(source, sizes) .Call(C_r_block_rows, source, sizes)

test_that("sums of each row over blocks are those of the matrix", {
  skip_on_cran()
  for (n in c(1L, 31L, 64L, 65L, 200L)) {
    x <- random_points(n, 3)
    for (kernel in native_kernels(3)[c("rbf", "poly3", "energy")]) {
      k <- gram_R(kernel, x)
      source <- native_source(kernel, x)
      for (sizes in size_lists(n)) {
        blocks <- seq_along(sizes)
        indicators <- outer(rep(blocks, sizes), blocks, "==")
        want <- k %*% indicators
        error <- \(got) max(abs(got - want)) / max(abs(k) %*% indicators, 1)
        levels <- vapply(isa_levels(), \(level) {
          error(with_isa(level, rows_of(source, sizes)))
        }, 0)
        expect_lt(max(levels), 1e-13)
        expect_lt(error(rows_of(native_source(NULL, k), sizes)), 1e-14)
      }
    }
  }
})

test_that("rows in walks of many rounds: the same bits for any threads", {
  skip_on_cran()
  set.seed(5)
  # 2, 3, 64 and 67 panels, and so many that a share has several.
  for (n in c(128L, 129L, 4096L, 4230L, 9000L)) {
    x <- random_points(n, 2)
    sizes <- tabulate(sample(12L, n, TRUE, c(40, 1:11)), 12L)
    source <- native_source(rbf, x)
    got <- rows_of(source, sizes)
    expect_near(rowSums(got), drop(.Call(C_r_kernel_rows, source)), 1e-13)
    block <- rep(seq_along(sizes), sizes)
    by_blocks <- sums_of(source, sizes)$sums
    expect_near(unname(rowsum(got, block)), by_blocks, 1e-13)
    at <- sample(n, 20)
    want <- gram_R(rbf, x[at, ], x) %*% outer(block, seq_along(sizes), "==")
    expect_near(got[at, ], want, 1e-13)
    with_threads(1, expect_identical(rows_of(source, sizes), got))
  }
})

# Sizes at which counts are more than an integer, or a matrix, holds.

with_memory <- function(bytes, code) {
  old <- options(kernmean.memory = bytes)
  on.exit(options(old))
  code
}

test_that("a matrix of more than 2^31 cells is a question of memory alone", {
  for (n in list(46340L, 46341L, 46341)) {
    with_memory(Inf, expect_silent(check_memory(n, n)))
    bytes <- 8 * as.double(n)^2
    with_memory(bytes, expect_silent(check_memory(n, n)))
    with_memory(bytes - 1, expect_error(
      check_memory(n, n), paste0("of ", n, " x ", n, " doubles needs 17.2 GB"),
      class = "kernmean_error_memory"
    ))
  }
})

test_that("more rows or columns than a matrix can have are refused for that", {
  most <- .Machine$integer.max
  with_memory(Inf, {
    expect_silent(check_memory(most, most))
    for (size in list(c(most + 1, 1), c(1, most + 1))) {
      expect_error(check_memory(size[1L], size[2L]),
                   "more rows or columns than the 2147483647",
                   class = "kernmean_error_memory")
    }
  })
})

test_that("rows that are put together are counted as numbers", {
  parts <- list(matrix(1:4, 2), matrix(5:6, 1))
  expect_identical(bind_rows(parts), do.call(rbind, parts))
  # Columns of no memory: the rows alone are too many.
  none <- matrix(numeric(), 2^30, 0L)
  expect_error(bind_rows(list(none, none)), "more rows or columns",
               class = "kernmean_error_memory")
})

test_that("the sizes of bags and blocks add up to the points or are refused", {
  source <- native_source(kernel_rbf(1), matrix(c(1, 2, 3)))
  sums <- \(sizes) .Call(C_r_block_rows, source, sizes)
  expect_equal(dim(sums(c(1L, 2L))), c(3, 2))
  expect_error(sums(c(1L, 1L)), "do not add up")
  expect_error(sums(c(3L, 3L)), "do not add up")
})

test_that("draws, features and grids without room are refused", {
  set.seed(1)
  x <- random_points(30, 2)
  density <- kme_density(x, kernel_rbf(1), m = 1L)
  fit <- kme(x, kernel_rbf(1))
  with_memory(1e9, {
    expect_error(simulate(density, .Machine$integer.max),
                 class = "kernmean_error_memory")
    expect_error(rkhs_iv(x, x[, 1], x, control = iv_control(features = 1e8)),
                 class = "kernmean_error_memory")
    expect_error(surface_of(identity, x, 1e5), class = "kernmean_error_memory")
  })
})

test_that("all labelings without room are refused", {
  # 2^12 labelings in 12 blocks of two, among points that do not move.
  still <- 3000L
  sizes <- c(12L, 12L + still)
  blocks <- c(1:12, 1:12, 12L + seq_len(still))
  with_memory(1e8, expect_error(all_labelings(sizes, blocks),
                                class = "kernmean_error_memory"))
})

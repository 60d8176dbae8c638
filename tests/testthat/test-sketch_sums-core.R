# The entry points of sketches against plain R: sums of kernel values over rows,
# and randomly pivoted Cholesky draw by draw.

# list(spec, S, X); the landmarks alone decide where points are centered.
sketch_source <- function(kernel, s, x) {
  native_source(kernel, x, s)[c(1L, 3L, 2L)]
}

sums_of <- function(source, weights = NULL, second = TRUE) {
  .Call(C_r_sketch_sums, source, weights, second)
}

# Largest difference on the scale of the terms: `of` are the values, signs off.
error_of <- function(got, want, of) max(abs(got - want)) / max(of, 1e-300)

one_kernel <- kernel_rbf(1.5)

test_that("sums over rows are those of the kernel matrix", {
  # Borders of tiles (32 x 64), of packs (8, 24) and of panels (2048 rows of
  # second sums here): fewer rows than landmarks and more, one.
  cases <- list(c(1, 1), c(1, 33), c(7, 64), c(24, 31), c(25, 200), c(64, 1),
                c(65, 2049), c(97, 96), c(200, 70))
  for (case in cases) {
    s <- random_points(case[1], 3)
    x <- random_points(case[2], 3, seed = 7)
    w <- random_points(case[2], 1, seed = 8)[, 1] # of both signs
    k <- kernel_matrix(s, x, one_kernel)
    other_s <- random_points(30, 2)
    other_x <- random_points(case[2], 2, seed = 9)
    l <- kernel_matrix(other_s, other_x, kernel_laplace(2))
    source <- sketch_source(one_kernel, s, x)
    other <- sketch_source(kernel_laplace(2), other_s, other_x)
    for (weights in list(NULL, w)) {
      each <- if (is.null(weights)) rep(1, case[2]) else weights
      of <- rowSums(k %*% diag(abs(each), case[2]))
      got <- sums_of(source, weights)
      # 4e-16 seen, of matrices whose values are good to 1e-15
      expect_lt(error_of(got$first, k %*% each, of), 1e-14)
      expect_lt(error_of(got$second, k %*% (each * t(k)), of), 1e-14)
      expect_identical(got$second, t(got$second))
      alone <- sums_of(source, weights, FALSE)
      expect_null(alone$second)
      expect_lt(error_of(alone$first, got$first, of), 1e-14)
      cross <- .Call(C_r_sketch_cross, source, other, weights)
      expect_lt(error_of(cross, k %*% (each * t(l)), of), 1e-14)
    }
  }
  # First sums: panels of 24,576 rows at most.
  s <- random_points(10, 2)
  x <- random_points(24600, 2)
  sums <- sums_of(sketch_source(one_kernel, s, x), NULL, FALSE)$first
  want <- rowSums(kernel_matrix(s, x, one_kernel))
  expect_near(sums, want, 1e-14)
})

test_that("sums are right for every kernel of the core", {
  s <- random_points(40, 3)
  x <- random_points(100, 3, seed = 7)
  w <- random_points(100, 1, seed = 8)[, 1]
  for (kernel in native_kernels(3)) {
    for (level in isa_levels()) {
      k <- gram_R(kernel, s, x)
      got <- with_isa(level, sums_of(sketch_source(kernel, s, x), w))
      of <- max(abs(k)) * sum(abs(w))
      expect_lt(error_of(got$first, k %*% w, of), 1e-14)
      of <- max(k^2) * sum(abs(w))
      expect_lt(error_of(got$second, k %*% (w * t(k)), of), 1e-14)
    }
  }
  # Far from the center by differences: 1e3 eps on the distances.
  k <- gram_R(one_kernel, s, x)
  source <- sketch_source(one_kernel, s + 1e3, x + 1e3)
  source[[1L]][[4L]] <- numeric(3)
  expect_lt(error_of(sums_of(source, w)$first, k %*% w, sum(abs(w))), 1e-12)
})

test_that("no rows have no sums, and bins may be empty", {
  s <- random_points(5, 2)
  none <- sketch_source(one_kernel, s, s)
  none[[3L]] <- s[0L, , drop = FALSE]
  expect_identical(sums_of(none),
                   list(first = numeric(5), second = matrix(0, 5, 5)))
  expect_identical(.Call(C_r_sketch_cross, none, none, NULL), matrix(0, 5, 5))
  expect_identical(.Call(C_r_sketch_bins, none, integer()), matrix(0, 5, 0))
  expect_identical(.Call(C_r_sketch_bins, none, c(0L, 0L)), matrix(0, 5, 2))
  # Within a worker's rows, across many of them and across panels.
  for (n in c(1L, 64L, 500L, 24600L)) {
    x <- random_points(n, 2, seed = 7)
    k <- kernel_matrix(s, x, one_kernel)
    sizes <- list(n, c(0L, n, 0L), rep(1L, n), c(rep(7L, n %/% 7L), n %% 7L))
    if (n > 500L) sizes <- c(sizes[-3L], list(c(3L, 0L, n - 10L, 7L)))
    for (each in sizes) {
      bins <- factor(rep(seq_along(each), each), seq_along(each))
      want <- matrix(0, 5, length(each))
      filled <- each > 0
      want[, filled] <- t(rowsum(t(k), bins))
      got <- .Call(C_r_sketch_bins, sketch_source(one_kernel, s, x), each)
      expect_lt(error_of(got, want, max(want)), 1e-14)
    }
  }
})

test_that("threads do not change a bit, other rows little", {
  s <- random_points(60, 3)
  x <- random_points(7000, 3, seed = 7)
  w <- random_points(7000, 1, seed = 8)[, 1]
  source <- sketch_source(one_kernel, s, x)
  sizes <- rep(70L, 100L)
  all_of <- function() {
    list(sums_of(source, w), sums_of(source, NULL, FALSE),
         .Call(C_r_sketch_cross, source, source, w),
         .Call(C_r_sketch_bins, source, sizes))
  }
  got <- with_threads(2, all_of())
  expect_identical(with_threads(1, all_of()), got)
  # What is beside the diagonal is multiplied once.
  expect_near(got[[3L]], got[[1L]]$second, 1e-13)
  cut <- 2345L
  parts <- lapply(list(seq_len(cut), (cut + 1L):7000L), \(i) {
    sums_of(sketch_source(one_kernel, s, x[i, ]))
  })
  whole <- sums_of(source)
  for (name in names(whole)) {
    expect_near(parts[[1L]][[name]] + parts[[2L]][[name]], whole[[name]], 1e-13)
  }
})

test_that("a pass can be interrupted", {
  skip_on_cran()
  s <- random_points(500, 3)
  # R looks at the clock in every fifth of the looks for interrupts.
  x <- random_points(1.6e6, 3, seed = 7)
  source <- sketch_source(one_kernel, s, x)
  with_threads(1, {
    expect_false(finishes(sums_of(source)))
    expect_false(finishes(sums_of(source, NULL, FALSE)))
    expect_false(finishes(.Call(C_r_sketch_cross, source, source, NULL)))
    expect_false(finishes(.Call(C_r_sketch_bins, source, rep(400L, 4000L))))
  })
})

# Randomly pivoted Cholesky by the residual matrix itself, with `block`
# proposals at a time; numbers are drawn in the order of the core.
pivots_R <- function(k, m, block) {
  least <- nrow(k) * .Machine$double.eps * max(diag(k))
  pivots <- integer()
  left <- k
  repeat {
    d <- pmax(diag(left), 0)
    if (sum(d) == 0 || length(pivots) == m) break
    proposals <- vapply(seq_len(block), \(q) {
      which(cumsum(d) > runif(1) * sum(d))[1]
    }, 1L)
    over <- FALSE
    for (q in seq_len(block)) {
      if (length(pivots) == m) break
      s <- proposals[q]
      if (q > 1 && !(runif(1) * d[s] < left[s, s])) next
      over <- !(left[s, s] > least)
      if (over) break
      pivots <- c(pivots, s)
      left <- left - tcrossprod(left[, s]) / left[s, s]
      left[s, ] <- left[, s] <- 0
    }
    if (over) break
  }
  list(pivots = pivots, left = sum(pmax(diag(left), 0)) / sum(diag(k)))
}

test_that("pivots are those of the residuals, draw by draw", {
  x <- random_points(150, 2)
  for (kernel in list(kernel_rbf(0.7), kernel_poly(3, 0.5))) {
    k <- gram_R(kernel, x)
    sources <- list(native_source(kernel, x), native_source(NULL, k))
    for (source in sources) {
      for (block in c(1L, 16L)) {
        for (seed in 1:3) {
          set.seed(seed)
          got <- .Call(C_r_random_pivots, source, 9L, block)
          after <- runif(1)
          set.seed(seed)
          want <- pivots_R(k, 9, block)
          expect_identical(got$pivots, want$pivots)
          # Differences of residuals of size 1
          expect_near(got$left, want$left, 1e-11)
          expect_identical(runif(1), after)
        }
      }
    }
  }
})

test_that("pivots end where nothing is left", {
  x <- random_points(6, 2)[rep(1:6, 20), ]
  for (block in c(1L, 16L)) {
    set.seed(block)
    got <- .Call(C_r_random_pivots, native_source(one_kernel, x), 50L, block)
    expect_setequal((got$pivots - 1) %% 6, 0:5)
    expect_length(got$pivots, 6)
    expect_lt(got$left, 1e-13)
    zero <- native_source(kernel_linear(), matrix(0, 4, 2))
    expect_identical(.Call(C_r_random_pivots, zero, 3L, block),
                     list(pivots = integer(), left = 0))
  }
  many <- native_source(one_kernel, random_points(3000, 3))
  draw <- \() .Call(C_r_random_pivots, many, 200L, 16L)
  set.seed(1)
  got <- with_threads(2, draw())
  set.seed(1)
  expect_identical(with_threads(1, draw()), got)
})

# The folds over tiles against their slow twins: every kernel, shapes around
# the sizes of tiles and vector registers, every level of instructions.
# Largest errors seen are beside each tolerance.

sizes <- c(1L, 2L, 7L, 8L, 9L, 63L, 64L, 65L, 130L)
columns <- c(1L, 2L, 3L, 20L)

# Points and twins of a kernel: x of n rows, y of m rows, K of x and of x, y.
# Each twin is made once for all tests.
shape <- local({
  made <- list()
  function(name, n, d, m) {
    key <- paste(name, n, d, m)
    if (is.null(made[[key]])) {
      x <- random_points(n, d)
      y <- random_points(m, d, seed = m)
      kernel <- native_kernels(d)[[name]]
      made[[key]] <<- list(kernel = kernel, x = x, y = y,
                           k = gram_R(kernel, x), kxy = gram_R(kernel, x, y))
    }
    made[[key]]
  }
})

# `error(case, level)` stays below the tolerance for every kernel and shape.
expect_small <- function(error, tolerance, sizes, columns, m = 66L) {
  shapes <- expand.grid(n = sizes, d = columns, m = m,
                        name = names(native_kernels(1)),
                        stringsAsFactors = FALSE)
  for (level in isa_levels()) {
    errors <- with_threads(1, with_isa(level, vapply(
      seq_len(nrow(shapes)), \(i) {
        error(shape(shapes$name[i], shapes$n[i], shapes$d[i], shapes$m[i]))
      }, numeric(1)
    )))
    worst <- which.max(replace(errors, is.na(errors), Inf))
    expect_lt(errors[worst], tolerance, label = paste0(
      "error at level ", level, ": ",
      paste(names(shapes), unlist(shapes[worst, ]), collapse = ", ")
    ))
  }
}

test_that("the stored matrix is its twin, for every kernel, shape and level", {
  skip_on_cran()
  expect_small(\(case) {
    k <- fold_store(case$kernel, case$x)
    if (identical(k, t(k))) relative_error(k, case$k) else Inf
  }, 2e-14, sizes, columns)
})

test_that("the diagonal is that of the stored matrix", {
  expect_small(\(case) {
    relative_error(fold_diagonal(case$kernel, case$x), diag(case$k))
  }, 2e-14, sizes, columns)
})

test_that("row sums are those of the twin", {
  expect_small(\(case) {
    max(
      relative_error(fold_rows(case$kernel, case$x), rowSums(case$k)),
      relative_error(fold_rows(case$kernel, case$x, case$y), rowSums(case$kxy))
    )
  }, 2e-14, sizes, columns)
})

test_that("a matrix times a block of vectors is that of the twin", {
  skip_on_cran()
  expect_small(\(case) {
    n <- nrow(case$x)
    source <- native_source(case$kernel, case$x)
    between <- native_source(case$kernel, case$x, case$y)
    errors <- vapply(c(1L, 2L, 3L, 8L, 9L), function(p) {
      v <- random_points(n, p)
      w <- random_points(66, p)
      max(
        relative_error(.Call(C_r_kernel_apply, source, v),
                       case$k %*% v),
        relative_error(.Call(C_r_kernel_apply, between, w),
                       case$kxy %*% w)
      )
    }, numeric(1))
    one <- fold_apply(case$kernel, case$x, NULL, case$x[, 1])
    max(errors, relative_error(one, drop(case$k %*% case$x[, 1])))
  }, 1e-12, sizes, c(1L, 2L, 20L))
})

test_that("quadratic forms are those of the twin, for blocks of vectors", {
  skip_on_cran()
  # Terms cancel, so the error is on the scale of their absolute values.
  scaled <- function(got, u, k, v) {
    terms <- colSums(abs(u) * (abs(k) %*% abs(v)))
    max(abs(got - colSums(u * (k %*% v))) / pmax(terms, 1e-300))
  }
  expect_small(\(case) {
    source <- native_source(case$kernel, case$x)
    between <- native_source(case$kernel, case$x, case$y)
    errors <- vapply(c(1L, 2L, 5L, 9L), function(p) {
      u <- random_points(nrow(case$x), p)
      v <- random_points(66, p)
      max(
        scaled(.Call(C_r_kernel_quad, source, u, u), u, case$k, u),
        scaled(.Call(C_r_kernel_quad, between, u, v), u, case$kxy,
               v)
      )
    }, numeric(1))
    max(errors, scaled(fold_quad(case$kernel, case$x, case$x[, 1]),
                       case$x[, 1, drop = FALSE], case$k,
                       case$x[, 1, drop = FALSE]))
  }, 1e-13, sizes[-1], c(1L, 2L, 20L))
})

test_that("a stored matrix takes the same folds as points", {
  for (n in c(1L, 9L, 65L, 130L)) {
    k <- gram_R(kernel_matern(3 / 2, 2), random_points(n, 2))
    v <- random_points(n, 3)
    w <- random_points(n, 9)
    source <- native_source(NULL, k)
    for (level in isa_levels()) {
      with_isa(level, {
        expect_identical(.Call(C_r_kernel_store, source), k)
        expect_identical(.Call(C_r_kernel_diagonal, source), diag(k))
        expect_lt(relative_error(.Call(C_r_kernel_rows, source), rowSums(k)),
                  2e-14)
        expect_lt(relative_error(.Call(C_r_kernel_apply, source, v), k %*% v),
                  1e-13)
        expect_lt(relative_error(.Call(C_r_kernel_apply, source, w), k %*% w),
                  1e-13)
        expect_lt(relative_error(.Call(C_r_kernel_quad, source, v, v),
                                 colSums(v * (k %*% v))), 1e-13)
      })
    }
  }
})

test_that("points are centered first, for kernels that see it too", {
  x <- random_points(70, 3)
  y <- random_points(9, 3)
  center <- c(1, -2, 0.5)
  moved <- \(x) x - rep(center, each = nrow(x))
  for (name in c("linear", "poly3")) {
    kernel <- native_kernels(3)[[name]]
    source <- native_source(kernel, x, center = center)
    for (level in isa_levels()) {
      with_isa(level, {
        expect_identical(.Call(C_r_kernel_store, source),
                         fold_store(kernel, moved(x)))
        expect_identical(.Call(C_r_kernel_diagonal, source),
                         fold_diagonal(kernel, moved(x)))
        between <- native_source(kernel, x, y, center = center)
        expect_identical(.Call(C_r_kernel_store, between),
                         fold_store(kernel, moved(x), moved(y)))
      })
    }
    expect_identical(.Call(C_r_lowrank, source, 70L),
                     .Call(C_r_lowrank, native_source(kernel, moved(x)), 70L))
  }
})

test_that("a centered matrix is its twin, by any mean and by its own", {
  for (n in c(1L, 9L, 65L, 130L)) {
    x <- random_points(n, 2)
    k <- fold_store(kernel_rbf(1.2), x)
    at <- random_points(n, 1)[, 1]
    for (source in list(native_source(kernel_rbf(1.2), x),
                        native_source(NULL, k))) {
      found <- .Call(C_r_centered, source, at, 0.3)
      expect_equal(found, list(k = k - (outer(at, at, `+`) - 0.3), at = at,
                               norm2 = 0.3), tolerance = 1e-14)
      own <- .Call(C_r_centered, source, NULL, NULL)
      expect_near(own$k, center_R(k), 1e-13)
      expect_identical(own$k, t(own$k))
      expect_near(own$at, rowMeans(k), 1e-14)
      expect_near(own$norm2, mean(k), 1e-14)
    }
  }
})

test_that("a stationary kernel is exactly 1 at distance 0, never above", {
  skip_on_cran()
  for (level in isa_levels()) {
    with_isa(level, for (d in columns) {
      x <- 1e3 * random_points(70, d)
      x <- rbind(x, x[1:9, , drop = FALSE])
      twins <- cbind(1:9, 71:79)
      kernels <- native_kernels(d)
      for (name in c("rbf", "rbf_each", "laplace_l1", "laplace_l2", "matern32",
                     "matern52")) {
        k <- fold_store(kernels[[name]], x)
        expect_identical(diag(k), rep(1, 79), info = name)
        expect_identical(k[twins], rep(1, 9), info = name)
        expect_identical(fold_diagonal(kernels[[name]], x), rep(1, 79),
                         info = name)
        # Near the center an RBF kernel may be evaluated by inner products.
        near <- x / 1e3 + 1e-9 * random_points(79, d, seed = 1)
        expect_lte(max(fold_store(kernels[[name]], near, x / 1e3)), 1)
      }
      for (name in c("energy", "sqdist", "l1dist")) {
        expect_true(all(fold_store(kernels[[name]], x)[twins] == 0),
                    info = name)
      }
    })
  }
})

test_that("blocks of very many vectors take less memory, not other values", {
  skip_on_cran()
  x <- random_points(600, 2)
  source <- native_source(kernel_rbf(1), x)
  k <- gram_R(kernel_rbf(1), x)
  for (p in c(450, 1800)) {
    v <- random_points(600, p)
    applied <- .Call(C_r_kernel_apply, source, v)
    expect_lt(relative_error(applied, k %*% v), 1e-13)
    expect_identical(
      with_threads(1, .Call(C_r_kernel_apply, source, v)), applied
    )
    quad <- .Call(C_r_kernel_quad, source, v, v)
    expect_lt(relative_error(quad, colSums(v * (k %*% v))), 1e-13)
  }
})

test_that("results are the same to the bit for 1, 2 and 4 threads", {
  skip_on_cran()
  x <- random_points(900, 5)
  y <- random_points(700, 5)
  v <- random_points(900, 3)
  w <- random_points(700, 3)
  all_folds <- function() {
    lapply(native_kernels(5), function(kernel) {
      source <- native_source(kernel, x)
      between <- native_source(kernel, x, y)
      list(
        fold_store(kernel, x), fold_store(kernel, x, y), fold_rows(kernel, x),
        fold_rows(kernel, x, y), .Call(C_r_kernel_apply, source, v),
        .Call(C_r_kernel_apply, between, w),
        .Call(C_r_kernel_quad, source, v, v),
        .Call(C_r_kernel_moments, source, v),
        .Call(C_r_kernel_quad, between, v, w), fold_diagonal(kernel, x)
      )
    })
  }
  one <- with_threads(1, all_folds())
  expect_identical(with_threads(2, all_folds()), one)
  expect_identical(with_threads(4, all_folds()), one)
})

test_that("a fit is the same to the bit for 1, 2 and 4 threads", {
  x <- random_points(400, 4)
  target <- kme(random_points(300, 4), kernel_rbf(2))
  fits <- function() {
    list(
      kme(x), kme(x, kernel_laplace()), kme(x, estimator = "skmse"),
      kme(x, kernel_rbf(2), "skmse", target = target),
      kme(x, estimator = "fkmse"), kme(x, estimator = "fkmse", lambda = 1),
      kme(x, estimator = "fkmse", select = "gcv"),
      kme(x, kernel_rbf(2), "fkmse", target = target),
      predict(kme(x), x[1:150, ])
    )
  }
  one <- with_threads(1, fits())
  expect_identical(with_threads(2, fits()), one)
  expect_identical(with_threads(4, fits()), one)
})

test_that("a row's result does not depend on the other rows", {
  skip_on_cran()
  x <- random_points(150, 3)
  y <- random_points(131, 3)
  v <- random_points(131, 2)
  rows <- list(1:9, 60:68, 1:150, 150:1, 77, c(130, 2, 65))
  for (level in isa_levels()) {
    with_threads(1, with_isa(level, for (kernel in native_kernels(3)) {
      apply_to <- \(i) {
        source <- native_source(kernel, x[i, , drop = FALSE], y)
        .Call(C_r_kernel_apply, source, v)
      }
      sums <- fold_rows(kernel, x, y)
      applied <- apply_to(1:150)
      stored <- fold_store(kernel, x, y)
      for (i in rows) {
        part <- x[i, , drop = FALSE]
        expect_identical(fold_rows(kernel, part, y), sums[i])
        expect_identical(apply_to(i), applied[i, , drop = FALSE])
        expect_identical(fold_store(kernel, part, y),
                         stored[i, , drop = FALSE])
      }
    }))
  }
})

test_that("row sums and forms of one walk are those of two", {
  set.seed(1)
  for (n in c(1, 70, 300)) {
    v <- random_points(n, 3)
    for (kernel in native_kernels(2)) {
      source <- native_source(kernel, random_points(n, 2))
      expect_identical(.Call(C_r_kernel_moments, source, v),
                       list(rows = .Call(C_r_kernel_rows, source),
                            forms = .Call(C_r_kernel_quad, source, v, v)))
    }
  }
})

test_that("the exponential is within 2 units in the last place", {
  set.seed(1)
  x <- c(-10^seq(-320, 0, length.out = 5000), -stats::runif(2e5, 0, 708.39),
         -stats::runif(1e5), seq(-708.39, 0, length.out = 2e5), -0, 0)
  want <- exp(x)
  unit <- 2^(floor(log2(want)) - 52)
  for (level in isa_levels()) {
    got <- with_isa(level, .Call(C_r_exp, x))
    # Largest seen: 1.
    expect_lte(max(abs(got - want) / unit), 2, label = paste("level", level))
    expect_true(all(got[x == 0] == 1))
  }
})

test_that("the exponential is 0 below the smallest normal number", {
  x <- c(-708.4, -709, -745, -745.2, -1e3, -1e10, -1e300,
         -.Machine$double.xmax, -Inf)
  for (level in isa_levels()) {
    expect_identical(with_isa(level, .Call(C_r_exp, x)), numeric(length(x)))
    # What is no number stays none.
    expect_identical(is.nan(with_isa(level, .Call(C_r_exp, c(NaN, -1)))),
                     c(TRUE, FALSE))
    # In vectors of any length, so that no element is left to a remainder loop.
    for (n in 1:17) {
      got <- with_isa(level, .Call(C_r_exp, rep(c(-1e3, 0), length.out = n)))
      expect_identical(got, rep(c(0, 1), length.out = n))
    }
  }
})

test_that("points far apart have kernel value 0, not NaN", {
  x <- cbind(c(0, 1, 1e3, 1e150, -1e150, 1e200))
  for (level in isa_levels()) {
    for (name in c("rbf", "laplace_l1", "laplace_l2", "matern32",
                   "matern52")) {
      kernel <- native_kernels(1)[[name]]
      k <- with_isa(level, fold_store(kernel, x))
      expect_identical(k[3:6, 3:6], diag(4), info = paste(name, level))
      # New points far from a sample that lies near its center.
      near <- cbind(c(-1, 0, 1))
      far <- cbind(c(1e3, 1e150, -1e150, 1e200, -1e300, 1.7e308))
      k <- with_isa(level, fold_store(kernel, far, near))
      expect_identical(k, matrix(0, 6, 3), info = paste(name, level))
    }
  }
})

test_that("an offset of the data changes stationary kernels by rounding", {
  x <- random_points(40, 3)
  for (name in c("rbf", "laplace_l1", "laplace_l2", "matern32", "energy")) {
    kernel <- native_kernels(3)[[name]]
    # An offset of 1e6 leaves 1e-10 of each coordinate: seen 2e-10.
    expect_equal(fold_store(kernel, x + 1e6), fold_store(kernel, x),
                 tolerance = 1e-9, info = name)
  }
})

test_that("the level of instructions is set, asked for and restored", {
  before <- .Call(C_r_isa, NULL)
  expect_identical(.Call(C_r_isa, 0L), before)
  expect_identical(.Call(C_r_isa, NULL), 0L)
  .Call(C_r_isa, 2L)
  expect_identical(.Call(C_r_isa, NULL), max(isa_levels()))
  .Call(C_r_isa, before)
  expect_identical(.Call(C_r_isa, NULL), before)
})

test_that("R CMD check allows 2 threads", {
  skip_if_not(.Call(C_r_openmp), "OpenMP")
  before <- kernmean_threads(4)
  old <- Sys.getenv("_R_CHECK_LIMIT_CORES_", NA)
  on.exit({
    kernmean_threads(before)
    if (is.na(old)) {
      Sys.unsetenv("_R_CHECK_LIMIT_CORES_")
    } else {
      Sys.setenv("_R_CHECK_LIMIT_CORES_" = old)
    }
  })
  expect_identical(kernmean_threads(), 4L)
  Sys.setenv("_R_CHECK_LIMIT_CORES_" = "TRUE")
  .onLoad("", "kernmean")
  expect_identical(kernmean_threads(), 2L)
  kernmean_threads("default")
  expect_identical(kernmean_threads(), 2L)
})

test_that("nothing writes to its arguments", {
  x <- random_points(20, 2)
  v <- random_points(20, 2)
  k <- gram_R(kernel_rbf(1), x)
  same <- list(x = x + 0, v = v + 0, k = k + 0)
  source <- native_source(kernel_rbf(1), x)
  .Call(C_r_kernel_apply, source, v)
  .Call(C_r_kernel_quad, source, v, v)
  .Call(C_r_kernel_median, native_source(new_kernel("sqdist", ""), x))
  t <- .Call(C_r_tridiag, k)
  kept <- lapply(t, \(part) part + 0)
  .Call(C_r_tridiag_apply, t$reflectors, t$tau, x[, 1])
  .Call(C_r_tridiag_solve, t$diagonal, t$off, 0.5, x[, 1])
  .Call(C_r_tridiag_spectrum, t$diagonal, t$off, TRUE)
  .Call(C_r_eigen, k, nrow(k))
  solve_factored(cholesky(k, 1), x[, 1])
  expect_identical(list(x = x, v = v, k = k), same)
  expect_identical(t, kept)
})

test_that("the glue refuses what would read out of bounds", {
  x <- random_points(6, 2)
  k <- diag(6)
  outside <- cbind(c(1:5, 7L))
  expect_internal <- \(call) expect_error(call, "internal error")
  two <- diag(2) == 1
  for (orders in list(outside, outside - 1L, cbind(c(1:5, NA)))) {
    expect_internal(.Call(C_r_subsets, orders, 1L, c(4L, 2L), two, NULL, FALSE))
    expect_internal(.Call(C_r_permuted_forms, k, k, orders))
    expect_internal(.Call(C_r_permuted_products, t(x), t(x), orders))
    expect_internal(.Call(C_r_permuted_sums, x[, 1], x[, 2], orders))
    expect_internal(.Call(C_r_permuted_tensor, list(k, k),
                          list(rowMeans(k), rowMeans(k)), orders))
  }
  one <- two[, 1, drop = FALSE]
  expect_internal(.Call(C_r_subsets, NULL, 1L, c(4L, 2L), one, NULL, FALSE))
  expect_internal(.Call(C_r_subsets, NULL, 1L, c(7L, -1L), two, NULL, FALSE))
  expect_internal(.Call(C_r_subsets, NULL, 1L, c(4, 2), two, NULL, FALSE))

  spec <- native_source(kernel_rbf(1), x)[[1]]
  bare <- list("rbf", 0L, 0, numeric(0), numeric(0))
  for (source in list(list(spec, x[0, ], NULL), list(spec, x, x[0, ]),
                      list(bare, x[, 0], NULL))) {
    expect_internal(.Call(C_r_kernel_rows, source))
  }
  expect_internal(.Call(C_r_column_ranges, x[0, ]))
})

test_that("the glue refuses a matrix where it needs points", {
  x <- random_points(6, 2)
  stored <- native_source(NULL, diag(6))
  expect_internal <- \(call) expect_error(call, "internal error")
  weights <- rep(1 / 6, 6)
  expect_internal(.Call(C_r_match, stored, weights, numeric(0), TRUE, 1,
                        matrix(0, 1, 0), 1))
  expect_internal(.Call(C_r_match_free, stored, weights, numeric(0), TRUE,
                        1L, c(0, 0)))
  expect_internal(.Call(C_r_kernel_median, stored))
  expect_internal(.Call(C_r_kernel_sampled_median, stored, 10))
  distance <- new_kernel("sqdist", "")
  single <- native_source(distance, x[1, , drop = FALSE])
  expect_internal(.Call(C_r_kernel_median, single))
  expect_internal(.Call(C_r_kernel_sampled_median, single, 10))
  expect_internal(
    .Call(C_r_kernel_sampled_median, native_source(distance, x), 0)
  )
})

test_that("products with a factor of rank 0 are 0", {
  a <- t(random_points(6, 2))
  none <- matrix(0, 0, 6)
  orders <- cbind(1:6, 6:1)
  for (pair in list(list(a, none), list(none, a), list(none, none))) {
    expect_identical(
      .Call(C_r_permuted_products, pair[[1]], pair[[2]], orders), c(0, 0)
    )
  }
})

test_that("a long fold stops on interrupt and the next call works", {
  skip_on_cran()
  x <- random_points(30000, 20)
  v <- random_points(30000, 1)
  source <- native_source(kernel_rbf(5), x)
  distance <- native_source(new_kernel("sqdist", ""), x)
  expect_false(finishes(.Call(C_r_kernel_rows, source)))
  between <- native_source(kernel_rbf(5), x, x)
  expect_false(finishes(.Call(C_r_kernel_rows, between)))
  expect_false(finishes(.Call(C_r_kernel_apply, source, v)))
  expect_false(finishes(.Call(C_r_kernel_quad, source, v, v)))
  expect_false(finishes(.Call(C_r_kernel_median, distance)))
  expect_false(finishes(.Call(C_r_kernel_sampled_median, distance, 5e7)))
  few <- x[1:30, ]
  expect_near(kme(few, kernel_rbf(5))$rho,
              mean(gram_R(kernel_rbf(5), few)), 1e-13)
})

test_that("long work on a matrix stops on interrupt", {
  skip_on_cran()
  k <- crossprod(random_points(1500, 1500))
  expect_false(finishes(.Call(C_r_tridiag, k)))
  u <- random_points(1500, 1500)
  gamma <- sort(stats::runif(1500), decreasing = TRUE)
  path <- exp(seq(-9, 9, length.out = 4000))
  expect_false(finishes(
    .Call(C_r_score_loocv, gamma, u, colSums(u), diag(k), NULL, 0, path)
  ))
  expect_equal(gram_spectrum(as_gram(diag(3)))$values, rep(1, 3))
})

test_that("forked workers give identical results and do not hang", {
  skip_on_os("windows")
  x <- random_points(600, 5)
  work <- function() {
    g <- gram(x)
    list(kme(x)$norm2, kme(x, estimator = "skmse")$alpha,
         gram_spectrum(g, "projections"), kme(g, estimator = "fkmse")$weights)
  }
  # The parent has run on several threads before it forks.
  here <- with_threads(2, work())
  jobs <- lapply(1:2, \(i) parallel::mcparallel(work()))
  names(jobs) <- vapply(jobs, \(job) as.character(job$pid), character(1))
  found <- list()
  for (second in 1:60) {
    waiting <- jobs[setdiff(names(jobs), names(found))]
    if (length(waiting)) {
      found <- c(found, parallel::mccollect(waiting, FALSE, timeout = 1))
    }
  }
  for (job in jobs[setdiff(names(jobs), names(found))]) {
    tools::pskill(job$pid)
  }
  expect_length(found, 2L)
  for (there in found) {
    expect_identical(there, here)
  }
})

# The folds over tiles against their slow twins: every kernel, shapes around
# the sizes of tiles and vector registers, every level of instructions.
# Largest errors seen are beside each tolerance.

sizes <- c(1L, 2L, 7L, 8L, 9L, 63L, 64L, 65L, 130L)
columns <- c(1L, 2L, 3L, 20L)

# The largest error of `error(kernel, n, d)` over kernels and shapes, named.
worst_error <- function(error, sizes, columns) {
  shapes <- expand.grid(n = sizes, d = columns)
  found <- unlist(lapply(seq_len(nrow(shapes)), function(i) {
    n <- shapes$n[i]
    d <- shapes$d[i]
    vapply(native_kernels(d), \(k) error(k, n, d), numeric(1)) |>
      (\(e) setNames(e, paste0(names(e), ", n = ", n, ", d = ", d)))()
  }))
  found[which.max(ifelse(is.na(found), Inf, found))]
}

setNames <- stats::setNames

expect_error_below <- function(found, tolerance, level) {
  expect_lt(found, tolerance,
            label = paste0("error at level ", level, ", ", names(found)))
}

test_that("the vectorised twin is the twin that goes pair by pair", {
  x <- random_points(5, 3)
  y <- random_points(4, 3)
  kernels <- native_kernels(3)
  for (name in setdiff(names(kernels), c("sqdist", "l1dist"))) {
    k <- kernels[[name]]
    theta <- if (is.null(k$bandwidth)) 1 else k$bandwidth
    slow <- kernel_R(x, y, theta, k$family, k$degree, k$offset)
    expect_equal(gram_R(k, x, y), slow, tolerance = 1e-14, info = name)
  }
})

test_that("the stored matrix is its twin, for every kernel, shape and level", {
  error <- function(kernel, n, d) {
    x <- random_points(n, d)
    k <- fold_store(kernel, x)
    if (!identical(k, t(k))) {
      return(Inf)
    }
    relative_error(k, gram_R(kernel, x))
  }
  for (level in isa_levels()) {
    worst <- with_isa(level, worst_error(error, sizes, columns))
    expect_error_below(worst, 2e-14, level)
  }
})

test_that("a rectangular matrix is its twin, on both sides of a tile", {
  error <- function(kernel, n, d) {
    x <- random_points(n, d)
    errors <- vapply(c(1L, 9L, 64L, 65L), function(m) {
      y <- random_points(m, d, seed = m)
      relative_error(fold_store(kernel, x, y), gram_R(kernel, x, y))
    }, numeric(1))
    max(errors)
  }
  for (level in isa_levels()) {
    worst <- with_isa(level, worst_error(error, sizes, c(1L, 3L)))
    expect_error_below(worst, 2e-14, level)
  }
})

test_that("the diagonal is that of the stored matrix", {
  error <- function(kernel, n, d) {
    x <- random_points(n, d)
    relative_error(fold_diagonal(kernel, x), diag(gram_R(kernel, x)))
  }
  for (level in isa_levels()) {
    worst <- with_isa(level, worst_error(error, sizes, columns))
    expect_error_below(worst, 2e-14, level)
  }
})

test_that("a stationary kernel is exactly 1 at distance 0", {
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
      }
      for (name in c("energy", "sqdist", "l1dist")) {
        expect_true(all(fold_store(kernels[[name]], x)[twins] == 0),
                    info = name)
      }
    })
  }
})

test_that("no value of a stationary kernel is above 1", {
  # Near the centre an RBF kernel may be evaluated by inner products.
  for (level in isa_levels()) {
    with_isa(level, for (d in columns) {
      x <- random_points(70, d)
      near <- x + 1e-9 * random_points(70, d, seed = 1)
      for (kernel in native_kernels(d)[c("rbf", "rbf_each", "laplace_l1",
                                         "laplace_l2", "matern32",
                                         "matern52")]) {
        k <- fold_store(kernel, rbind(x, x[1:9, , drop = FALSE]))
        expect_lte(max(k), 1)
        expect_identical(diag(k), rep(1, 79))
        expect_equal(k[cbind(1:9, 71:79)], rep(1, 9), tolerance = 1e-13)
        expect_lte(max(fold_store(kernel, near, x)), 1)
      }
    })
  }
})

test_that("row sums are those of the twin", {
  error <- function(kernel, n, d) {
    x <- random_points(n, d)
    y <- random_points(67, d, seed = 1)
    max(
      relative_error(fold_rows(kernel, x), rowSums(gram_R(kernel, x))),
      relative_error(fold_rows(kernel, x, y), rowSums(gram_R(kernel, x, y)))
    )
  }
  for (level in isa_levels()) {
    worst <- with_isa(level, worst_error(error, sizes, columns))
    expect_error_below(worst, 2e-14, level)
  }
})

test_that("a matrix times a block of vectors is that of the twin", {
  error <- function(kernel, n, d) {
    x <- random_points(n, d)
    y <- random_points(66, d, seed = 1)
    k <- gram_R(kernel, x)
    kxy <- gram_R(kernel, x, y)
    spec <- native_kernel(kernel, x)
    errors <- vapply(c(1L, 2L, 3L, 8L, 9L), function(p) {
      v <- random_points(n, p)
      w <- random_points(66, p)
      max(
        relative_error(.Call(C_r_kernel_apply, spec, x, NULL, v), k %*% v),
        relative_error(.Call(C_r_kernel_apply, spec, x, y, w), kxy %*% w)
      )
    }, numeric(1))
    max(errors, relative_error(
      fold_apply(kernel, x, NULL, x[, 1]), drop(k %*% x[, 1])
    ))
  }
  for (level in isa_levels()) {
    worst <- with_isa(level, worst_error(error, sizes, c(1L, 2L, 20L)))
    expect_error_below(worst, 1e-12, level)
  }
})

test_that("quadratic forms are those of the twin, for blocks of vectors", {
  error <- function(kernel, n, d) {
    x <- random_points(n, d)
    y <- random_points(66, d, seed = 1)
    k <- gram_R(kernel, x)
    kxy <- gram_R(kernel, x, y)
    spec <- native_kernel(kernel, x)
    errors <- vapply(c(1L, 2L, 5L, 9L), function(p) {
      u <- random_points(n, p)
      v <- random_points(66, p)
      # Terms cancel, so the error is on the scale of their absolute values.
      terms <- colSums(abs(u) * (abs(k) %*% abs(u)))
      cross <- pmax(colSums(abs(u) * (abs(kxy) %*% abs(v))), 1e-300)
      max(
        abs(.Call(C_r_kernel_quad, spec, x, NULL, u, u) -
              colSums(u * (k %*% u))) / terms,
        abs(.Call(C_r_kernel_quad, spec, x, y, u, v) -
              colSums(u * (kxy %*% v))) / cross
      )
    }, numeric(1))
    max(errors)
  }
  for (level in isa_levels()) {
    worst <- with_isa(level, worst_error(error, sizes[-1], c(1L, 2L, 20L)))
    expect_error_below(worst, 1e-13, level)
  }
})

test_that("results are the same to the bit for 1, 2 and 4 threads", {
  x <- random_points(900, 5)
  y <- random_points(700, 5)
  v <- random_points(900, 3)
  w <- random_points(700, 3)
  all_folds <- function() {
    lapply(native_kernels(5), function(kernel) {
      spec <- native_kernel(kernel, x)
      list(
        fold_store(kernel, x), fold_store(kernel, x, y), fold_rows(kernel, x),
        fold_rows(kernel, x, y), .Call(C_r_kernel_apply, spec, x, NULL, v),
        .Call(C_r_kernel_apply, spec, x, y, w),
        .Call(C_r_kernel_quad, spec, x, NULL, v, v),
        .Call(C_r_kernel_quad, spec, x, y, v, w), fold_diagonal(kernel, x)
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
  x <- random_points(150, 3)
  y <- random_points(131, 3)
  v <- random_points(131, 2)
  rows <- list(1:9, 60:68, 1:150, 150:1, 77, c(130, 2, 65))
  for (level in isa_levels()) {
    with_isa(level, for (kernel in native_kernels(3)) {
      spec <- native_kernel(kernel, y)
      apply_to <- \(i) {
        .Call(C_r_kernel_apply, spec, x[i, , drop = FALSE], y, v)
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
    })
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
      # New points far from a sample that lies near its centre.
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

test_that("the limit on threads is set, asked for and restored", {
  before <- kernmean_threads()
  expect_identical(kernmean_threads(3), before)
  expect_identical(kernmean_threads(), 3L)
  expect_identical(kernmean_threads("default"), 3L)
  expect_gte(kernmean_threads(), 1L)
  expect_invisible(kernmean_threads(before))
  expect_visible(kernmean_threads())
})

test_that("nothing writes to its arguments", {
  x <- random_points(20, 2)
  v <- random_points(20, 2)
  k <- gram_R(kernel_rbf(1), x)
  same <- list(x = x + 0, v = v + 0, k = k + 0)
  spec <- native_kernel(kernel_rbf(1), x)
  .Call(C_r_kernel_apply, spec, x, NULL, v)
  .Call(C_r_kernel_quad, spec, x, NULL, v, v)
  .Call(C_r_kernel_median, native_kernel(new_kernel("sqdist", ""), x), x)
  t <- .Call(C_r_tridiag, k)
  kept <- lapply(t, \(part) part + 0)
  .Call(C_r_tridiag_apply, t$reflectors, t$tau, x[, 1])
  .Call(C_r_tridiag_solve, t$diagonal, t$off, 0.5, x[, 1])
  .Call(C_r_tridiag_spectrum, t$diagonal, t$off, TRUE)
  .Call(C_r_eigen, k)
  .Call(C_r_cholesky_solve, .Call(C_r_cholesky, k, 1), x[, 1])
  expect_identical(list(x = x, v = v, k = k), same)
  expect_identical(t, kept)
})

# Did `code` get to its end under a limit of 0.02 s? A routine that asks for no
# interrupt does, and the limit strikes later.
finishes <- function(code) {
  done <- FALSE
  on.exit(setTimeLimit())
  message <- tryCatch({
    setTimeLimit(elapsed = 0.02, transient = TRUE)
    force(code)
    done <- TRUE
    ""
  }, error = conditionMessage)
  expect_match(message, "time limit")
  done
}

test_that("a long fold stops on interrupt and the next call works", {
  skip_on_cran()
  x <- random_points(30000, 20)
  v <- random_points(30000, 1)
  spec <- native_kernel(kernel_rbf(5), x)
  distance <- native_kernel(new_kernel("sqdist", ""), x)
  expect_false(finishes(.Call(C_r_kernel_rows, spec, x, NULL)))
  expect_false(finishes(.Call(C_r_kernel_rows, spec, x, x)))
  expect_false(finishes(.Call(C_r_kernel_apply, spec, x, NULL, v)))
  expect_false(finishes(.Call(C_r_kernel_quad, spec, x, NULL, v, v)))
  expect_false(finishes(.Call(C_r_kernel_median, distance, x)))
  expect_false(finishes(kme(x, kernel_rbf(5))))
  few <- x[1:30, ]
  expect_equal(kme(few, kernel_rbf(5))$rho,
               mean(gram_R(kernel_rbf(5), few)), tolerance = 1e-13)
})

test_that("an interrupted median leaves the generator as it was left", {
  skip_on_cran()
  x <- random_points(1000, 20)
  distance <- native_kernel(new_kernel("sqdist", ""), x)
  expect_false(finishes(.Call(C_r_kernel_sampled_median, distance, x, 5e7)))
  expect_length(stats::runif(3), 3)
})

test_that("long work on a matrix stops on interrupt", {
  skip_on_cran()
  k <- crossprod(random_points(1500, 1500))
  expect_false(finishes(.Call(C_r_tridiag, k)))
  u <- random_points(1500, 1500)
  gamma <- sort(stats::runif(1500), decreasing = TRUE)
  path <- exp(seq(-9, 9, length.out = 400))
  expect_false(finishes(
    .Call(C_r_score_loocv, gamma, u, diag(k), NULL, 0, path)
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

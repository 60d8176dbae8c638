# Spectra against eigen(), and by their identities.

matrices <- function() {
  x <- random_points(40, 3)
  block <- crossprod(random_points(6, 4))
  centered <- scale(random_points(20, 4), scale = FALSE)
  list(
    rbf = rbf_gram(50, 2), rbf_wide = rbf_gram(30, 1, theta = 5),
    large = rbf_gram(130, 3), tile = rbf_gram(64, 2), over = rbf_gram(65, 2),
    low_rank = tcrossprod(x), one_column = tcrossprod(x[, 1]),
    centered = tcrossprod(centered), identity = diag(20),
    ones = matrix(1, 15, 15), zero = matrix(0, 10, 10),
    diagonal = diag(c(5, 3, 3, 1, 0, 0)),
    blocks = kronecker(diag(5), block), duplicates = rbf_gram(20)[
      c(1:20, 1:20), c(1:20, 1:20)],
    circulant = stats::toeplitz(c(4, 1, 0.5, 0.2, 0.5, 1)),
    n1 = matrix(2.5), n1_zero = matrix(0), n2 = matrix(c(2, 1, 1, 3), 2),
    n2_identity = diag(2), n2_ones = matrix(1, 2, 2), n3 = rbf_gram(3),
    n4 = rbf_gram(4)
  )
}

size_of <- function(k) max(abs(k), 1e-300) * nrow(k)

reduced <- function(k) {
  n <- nrow(k)
  t <- .Call(C_r_tridiag, k)
  t$Q <- apply(diag(n), 2, \(e) {
    .Call(C_r_tridiag_apply, t$reflectors, t$tau, e)
  })
  dim(t$Q) <- c(n, n)
  t$T <- diag(t$diagonal, n)
  inside <- seq_len(n - 1L)
  t$T[cbind(inside, inside + 1L)] <- t$off
  t$T[cbind(inside + 1L, inside)] <- t$off
  t
}

test_that("K = QTQ' with orthogonal Q whose first column is e/sqrt(n)", {
  cases <- matrices()
  for (name in names(cases)) {
    k <- cases[[name]]
    n <- nrow(k)
    t <- reduced(k)
    # Largest seen: 3e-15 n |K|.
    expect_lte(max(abs(t$Q %*% t$T %*% t(t$Q) - k)), 1e-13 * size_of(k),
               label = name)
    expect_lte(max(abs(crossprod(t$Q) - diag(n))), 1e-13, label = name)
    expect_equal(t$Q[, 1], rep(1 / sqrt(n), n), tolerance = 1e-14, info = name)
    expect_length(t$off, n - 1L)
  }
})

test_that("so for every level of instructions, in sizes around a panel's", {
  skip_on_cran()
  for (level in isa_levels()) {
    with_isa(level, for (n in c(2, 5, 31, 32, 33, 64, 65, 100, 201)) {
      k <- rbf_gram(n, 3, theta = 2)
      t <- reduced(k)
      expect_lte(max(abs(t$Q %*% t$T %*% t(t$Q) - k)), 1e-13 * size_of(k),
                 label = paste(n, level))
      expect_lte(max(abs(crossprod(t$Q) - diag(n))), 1e-13,
                 label = paste(n, level))
      found <- .Call(C_r_tridiag_spectrum, t$diagonal, t$off, TRUE)
      expect_lte(max(abs(found$values - eigen(k, TRUE, TRUE)$values)),
                 1e-13 * size_of(k), label = paste(n, level))
      expect_near(sum(found$first^2 * found$values), mean(k) * n, 1e-12)
    })
  }
})

# Of Lanczos' iteration, which found two eigenvalues twice. Sweeps leave an
# off-diagonal between them of one rounding.
test_that("eigenvalues that are equal but for rounding are found", {
  diagonal <- c(
    0.060887646903125543, 7.54574697644225, 7.3513211929874167,
    0.15114863747364593, 0.11558284452433805, 0.099002202441773129,
    0.023311978361331906, 0.00060209578949978236, 7.8851059163778139,
    7.1252730651958078, 0.0095340155397088903, 0.00038787194640780762,
    0.01124961549871707, 0.13434512263820991, 7.9255884533831322
  )
  off <- c(
    0.67366963765304, 0.61412047637007794, 0.66762088201815029,
    0.040166890451490647, 0.0043722967882355345, 0.046575400351027169,
    0.00012967953390111779, 0.049794937740658331, 0.48931977497613627,
    0.24882125455056978, 0.00053429761554645299, 1.4063960529062444e-05,
    0.038049958896357795, 0.078723093748920933
  )
  t <- diag(diagonal)
  t[cbind(1:14, 2:15)] <- t[cbind(2:15, 1:14)] <- off
  want <- eigen(t, symmetric = TRUE, only.values = TRUE)$values
  for (first in c(FALSE, TRUE)) {
    got <- .Call(C_r_tridiag_spectrum, diagonal, off, first)$values
    expect_lte(max(abs(got - want)), 1e-14 * want[1])
  }
})

test_that("eigenvalues and projections have the moments 1_n'K^p 1_n", {
  cases <- matrices()
  for (name in names(cases)) {
    k <- cases[[name]]
    n <- nrow(k)
    t <- .Call(C_r_tridiag, k)
    s <- .Call(C_r_tridiag_spectrum, t$diagonal, t$off, TRUE)
    expect_true(all(s$first >= 0), label = name)
    v <- rep(1 / n, n)
    power <- v
    for (p in 0:4) {
      expect_lte(abs(sum(s$values^p * s$first^2) / n - sum(v * power)),
                 1e-12 * size_of(k)^p / n, label = paste(name, p))
      power <- drop(k %*% power)
    }
  }
})

test_that("an eigenspace gets the squared norm of the projection on it", {
  skip_on_cran()
  for (name in c("diagonal", "blocks", "identity", "ones", "circulant")) {
    k <- matrices()[[name]]
    full <- eigen(k, symmetric = TRUE)
    s <- spectrum(as_gram(k), "projections")
    space <- \(values) round(values / full$values[1], 8)
    want <- tapply(colMeans(full$vectors)^2, space(full$values), sum)
    got <- tapply(s$projections^2, space(s$values), sum)
    expect_equal(c(got), c(want), tolerance = 1e-10, info = name)
  }
})

test_that("(T + lambda I) is solved as by solve()", {
  for (k in list(rbf_gram(20), diag(5), matrix(2.5), rbf_gram(2),
                 matrix(0, 4, 4))) {
    n <- nrow(k)
    t <- reduced(k)
    b <- random_points(n, 1)[, 1]
    for (lambda in c(1e-3, 1, 1e5)) {
      expect_near(.Call(C_r_tridiag_solve, t$diagonal, t$off, lambda, b),
                  drop(solve(t$T + lambda * diag(n), b)), 1e-11)
    }
  }
})

test_that("eigenvectors are positive at their first largest entry", {
  cases <- matrices()
  for (name in names(cases)) {
    u <- .Call(C_r_eigen, cases[[name]], nrow(cases[[name]]))$vectors
    at <- apply(abs(u), 2, \(v) which(v > max(v) * (1 - 1e-8))[1])
    expect_true(all(u[cbind(at, seq_along(at))] > 0), label = name)
  }
})

test_that("a Cholesky factor is kept and replaced with lambda", {
  g <- as_gram(rbf_gram(10))
  for (lambda in c(0.1, 2)) {
    lower <- cholesky_factor(g, lambda)
    expect_near(tcrossprod(lower), g$K + lambda * diag(10), 1e-13)
    expect_identical(g$cholesky, list(lambda = lambda, lower = lower))
    expect_identical(cholesky_factor(g, lambda), lower)
  }
  # There is none of a matrix that is not positive definite.
  singular <- as_gram(matrix(1, 3, 3))
  expect_null(cholesky_factor(singular, 0))
  expect_null(singular$cholesky)
})

test_that("the three routes to the spectrum agree", {
  for (k in matrices()) {
    values <- lapply(c("values", "projections", "vectors"), \(what) {
      spectrum(as_gram(k), what)$values
    })
    expect_near(values[[1]], values[[2]], 1e-12 * nrow(k))
    expect_near(values[[1]], values[[3]], 1e-12 * nrow(k))
    expect_true(all(values[[1]] >= 0))
  }
})

test_that("eigenvalues that are rounding are 0 exactly", {
  # Rank 3 of 40, 1 of 15, 0 of 10.
  cases <- matrices()
  ranks <- c(low_rank = 3, one_column = 1, ones = 1, zero = 0, identity = 20,
             duplicates = 20)
  for (name in names(ranks)) {
    for (what in c("values", "projections", "vectors")) {
      s <- spectrum(as_gram(cases[[name]]), what)
      expect_identical(sum(s$values > 0), as.integer(ranks[[name]]),
                       info = paste(name, what))
    }
  }
})

test_that("a spectrum scales with its matrix, however large or small", {
  k <- rbf_gram(20)
  one <- spectrum(as_gram(k), "projections")
  for (scale in 2^c(-500, -100, 100, 500)) {
    s <- spectrum(as_gram(k * scale), "projections")
    full <- spectrum(as_gram(k * scale), "vectors")
    expect_equal(s$values / scale, one$values, tolerance = 1e-12,
                 info = format(scale))
    expect_equal(sum(s$values * s$projections^2) / scale, mean(k),
                 tolerance = 1e-12, info = format(scale))
    expect_equal(full$values / scale, one$values, tolerance = 1e-12,
                 info = format(scale))
  }
})

test_that("clipping sets small values to 0 and refuses clearly negative ones", {
  expect_identical(clip_values(c(2, 1e-17, -1e-17)), c(2, 0, 0))
  expect_identical(clip_values(c(2, 1e-9, -1e-9)), c(2, 1e-9, 0))
  expect_identical(clip_values(c(0, 0)), c(0, 0))
  for (values in list(c(2, -1e-7), c(0, -1e-300), -1)) {
    expect_error(clip_values(values), class = "kernmean_error_input")
  }
})

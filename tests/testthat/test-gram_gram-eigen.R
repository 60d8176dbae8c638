# Eigenpairs against LAPACK's dsyevr, which is what eigen() calls, on spectra
# that are hard to find.

orthogonal <- function(n) {
  qr.Q(qr(matrix(random_points(n, n), n)))
}

with_values <- function(values) {
  u <- orthogonal(length(values))
  k <- u %*% (values * t(u))
  (k + t(k)) / 2
}

wilkinson <- function(n) {
  k <- diag(abs(seq_len(n) - (n + 1) / 2), n)
  inside <- seq_len(n - 1L)
  k[cbind(inside, inside + 1L)] <- k[cbind(inside + 1L, inside)] <- 1
  k
}

adversaries <- function() {
  line <- seq_len(150) / 150
  list(
    identity = diag(70), zero = matrix(0, 50, 50), ones = matrix(1, 97, 97),
    diagonal = diag(10^-seq(0, 16, length.out = 96)),
    clusters = kronecker(diag(20), matrix(1, 7, 7)),
    tight = with_values(rep(c(1, 1 + 1e-13, 0.5, 0), c(30, 30, 20, 49))),
    projection = with_values(rep(1:0, c(150, 151))),
    rank_one = tcrossprod(random_points(121, 1)),
    noise_floor = rbf_gram(200, 1), wide = rbf_gram(150, 2, theta = 1e3),
    narrow = rbf_gram(150, 2, theta = 1e-3),
    duplicates = rbf_gram(80, 3)[rep(1:80, 2), rep(1:80, 2)],
    brownian = outer(line, line, pmin), wilkinson = wilkinson(121),
    graded = with_values(10^-seq(0, 16, length.out = 145)),
    circulant = stats::toeplitz(exp(-pmin(0:143, 144 - 0:143) / 5)),
    indefinite = with_values(c(3:-3, numeric(137))),
    huge = 1e300 * rbf_gram(60, 2), tiny = 1e-300 * rbf_gram(60, 2)
  )
}

# In units of n eps |K| and of n eps: what is above them is wrong.
errors_of <- function(found, k) {
  n <- nrow(k)
  unit <- n * .Machine$double.eps
  size <- max(abs(found$values), .Machine$double.xmin)
  off <- (k / size) %*% found$vectors -
    found$vectors * rep(found$values / size, each = n)
  c(residual = max(abs(off)) / unit,
    orthogonality = max(abs(crossprod(found$vectors) -
                              diag(ncol(found$vectors)))) / unit)
}

# Those of dsyevr for matrices of this spectrum that are not diagonal: k turned
# by reflectors, the largest of some, for equal eigenvalues leave it to chance.
turned_errors <- function(k) {
  n <- nrow(k)
  set.seed(6)
  found <- replicate(12, {
    v <- rnorm(n)
    h <- diag(n) - 2 * tcrossprod(v) / sum(v^2)
    turned <- h %*% k %*% h
    turned <- (turned + t(turned)) / 2
    errors_of(eigen(turned, symmetric = TRUE), turned)
  })
  apply(found, 1L, max)
}

eigenpairs <- function(k, count = nrow(k)) {
  .Call(C_r_eigen, k, as.integer(count))
}

test_that("hard spectra are found as well as by dsyevr", {
  skip_on_cran()
  cases <- adversaries()
  for (name in names(cases)) {
    k <- cases[[name]]
    n <- nrow(k)
    found <- eigenpairs(k)
    best <- eigen(k, symmetric = TRUE)
    # A matrix that is diagonal (to rounding) costs dsyevr nothing; here the
    # first reflector turns it like any other.
    diagonal <- max(abs(k - diag(diag(k)))) <= .Machine$double.eps
    limit <- pmax(4 * if (diagonal) turned_errors(k) else errors_of(best, k),
                  c(1, 5))
    expect_true(all(errors_of(found, k) <= limit), label = name)
    expect_lte(max(abs(found$values - best$values)),
               4 * n * .Machine$double.eps * max(abs(best$values)),
               label = name)
    expect_false(is.unsorted(rev(found$values)), label = name)
  }
})

test_that("sizes around the edges of blocks, at every level", {
  skip_on_cran()
  sizes <- c(1:3, 7:9, 23:26, 31:33, 47:50, 63:65, 72:74, 95:98, 121, 191:194)
  for (level in isa_levels()) {
    with_isa(level, for (n in sizes) {
      k <- rbf_gram(n, 3)
      found <- eigenpairs(k)
      # Largest seen: 2 and 3.
      expect_lte(max(errors_of(found, k)), 20, label = paste(n, level))
    })
  }
})

test_that("panels of every width give the same vectors", {
  skip_on_cran()
  k <- rbf_gram(420, 30)
  whole <- eigenpairs(k)
  for (count in c(1, 23, 24, 25, 100, 192, 193, 419)) {
    some <- eigenpairs(k, count)
    expect_lte(max(errors_of(some, k)), 20, label = count)
    expect_near(some$values, whole$values[seq_len(count)], 1e-13)
  }
})

test_that("some eigenpairs of a tight cluster are its first ones", {
  for (n in c(12, 20, 61)) {
    for (spread in c(1e-13, 1e-12)) {
      k <- with_values(1 + spread * random_points(n, 1)[, 1])
      for (count in unique(c(3, n %/% 4))) {
        some <- eigenpairs(k, count)
        expect_lte(max(abs(some$values - eigenpairs(k)$values[seq_len(count)])),
                   2 * n * .Machine$double.eps, label = paste(n, spread, count))
        expect_lte(max(errors_of(some, k)), 20, label = paste(n, spread, count))
      }
    }
  }
})

test_that("a zero diagonal does not hide large or small entries", {
  for (n in c(3, 30, 60)) {
    k <- matrix(random_points(n, n), n)
    k <- k + t(k)
    diag(k) <- 0
    one <- eigenpairs(k)$values
    for (unit in c(1e160, 1e-150, 1e300, 1e-300)) {
      found <- eigenpairs(k * unit)
      expect_near(found$values / unit, one, 1e-13)
      expect_lte(max(errors_of(found, k * unit)), 20, label = paste(n, unit))
    }
  }
})

test_that("threads do not change a bit", {
  skip_on_cran()
  k <- rbf_gram(330, 4)
  one <- with_threads(1, eigenpairs(k))
  for (threads in c(2, 4)) {
    expect_identical(with_threads(threads, eigenpairs(k)), one)
  }
})

test_that("half the eigenvalues are equal: all pairs, where dstemr fails", {
  k <- with_values(rep(1:0, c(150, 151)))
  expect_lte(max(errors_of(eigenpairs(k), k)), 5)
  some <- eigenpairs(k, 40)
  expect_near(some$values, rep(1, 40), 1e-13)
  # dstemr's vectors of one part of a cluster: 80 seen, 1e-11 at most.
  expect_lte(max(errors_of(some, k)), 150)
})

test_that("a decomposition stops on interrupt and the next one works", {
  skip_on_cran()
  k <- unname(exp(-as.matrix(stats::dist(random_points(1500, 3)))^2 / 2))
  expect_false(finishes(eigenpairs(k)))
  small <- k[1:100, 1:100]
  expect_lte(max(errors_of(eigenpairs(small), small)), 20)
})

# Only the eigenpairs that are more than rounding, against all of them.

range_of <- \(k) .Call(C_r_range, k)

# Matrices of low and of full rank, and some that only look like these.
ranges <- function(n = 240L) {
  points <- random_points(n, 4)
  line <- rbf_gram(n, 1)
  off <- diag(n) - 1 / n
  hidden <- tcrossprod(points)
  # No pivot among 50 equal points can see this.
  hidden[1:50, ] <- hidden[rep(1, 50), ]
  hidden[, 1:50] <- hidden[, rep(1, 50)]
  hidden[40, 30] <- hidden[30, 40] <- hidden[30, 40] + 1e-7
  list(
    line = line, plane = rbf_gram(n, 2), linear = tcrossprod(points),
    cubic = (tcrossprod(points) + 1)^3, centered = off %*% line %*% off,
    duplicates = rbf_gram(60, 5)[rep(1:60, 4), rep(1:60, 4)],
    ones = matrix(1, n, n), small = 1e-200 * line, large = 1e200 * line,
    zero = matrix(0, n, n), digits = round(line, 8), hidden = hidden,
    full = rbf_gram(n, 20), identity = diag(n), few = rbf_gram(30, 1),
    single = matrix(2)
  )
}

test_that("the range is what all eigenpairs say that it is", {
  skip_on_cran()
  cases <- ranges()
  ranks <- integer()
  for (name in names(cases)) {
    k <- cases[[name]]
    n <- nrow(k)
    all <- .Call(C_r_eigen, k, n)
    found <- range_of(k)
    top <- max(all$values, .Machine$double.xmin)
    rounding <- n * .Machine$double.eps * top
    u <- found$vectors
    ranks[name] <- ncol(u)
    # An eigenvalue at the border may be on either side of it; seen .02.
    expect_lte(max(abs(pmax(found$values, 0) - pmax(all$values, 0))),
               1.1 * rounding, label = name)
    # Seen 3e-13 by dstemr, 1e-14 by a factor; what is left out is rounding.
    expect_lte(max(abs(crossprod(u) - diag(ncol(u)))), n * 2e-15, label = name)
    lost <- k / top - u %*% (found$values[seq_len(ncol(u))] / top * t(u))
    positive <- all$values > rounding
    rest <- all$vectors[, !positive] %*%
      (all$values[!positive] / top * t(all$vectors[, !positive]))
    expect_lte(max(abs(lost - if (ncol(u) < n) rest else 0)),
               1.1 * rounding / top, label = name)
  }
  expect_identical(ranks[c("linear", "cubic", "duplicates", "ones")],
                   c(linear = 4L, cubic = 35L, duplicates = 60L, ones = 1L))
  expect_lt(ranks[["plane"]], 150)
  expect_true(all(ranks[c("full", "identity")] == 240))
  # Found by all eigenpairs, as columns of a factor do not tell of it.
  expect_identical(ranks[["hidden"]], 5L)
})

test_that("scores and weights by the range are those of all eigenpairs", {
  skip_on_cran()
  cases <- ranges()[c("line", "plane", "linear", "cubic", "centered",
                      "duplicates", "ones", "digits")]
  for (name in names(cases)) {
    k <- cases[[name]]
    w <- random_points(nrow(k), 1)[, 1]
    target <- list(at = drop(k %*% w), norm2 = sum(w * (k %*% w)))
    some <- as_gram(k)
    every <- as_gram(k)
    top <- gram_spectrum(every, "vectors")$values[1L]
    lambda <- top * 10^(-10:4)
    for (f in list(NULL, target)) {
      expect_near(score_function(some, "loocv", f)(lambda),
                  score_function(every, "loocv", f)(lambda),
                  1e-11 * (max(diag(k)) + max(f$norm2, 0)))
      # Parts of f over lambda cancel; seen a half of this.
      for (l in lambda[c(4, 7, 10)]) {
        off <- fkmse_weights(some, l, f, rowMeans(k)) -
          fkmse_weights(every, l, f, rowMeans(k))
        expect_lte(max(abs(off)), (if (is.null(f)) 1e-16 else 1e-13) *
                     (1 + max(abs(c(top, f$at))) / l))
      }
    }
    expect_lt(ncol(some$range), nrow(k))
    expect_null(every$range)
  }
})

test_that("scores by the range are those of refits without the point", {
  skip_on_cran()
  k <- rbf_gram(201, 1)
  g <- as_gram(k)
  w <- random_points(201, 1)[, 1]
  target <- list(at = drop(k %*% w), norm2 = sum(w * (k %*% w)))
  expect_near(score_function(g, "loocv", NULL)(c(1e-4, 0.1)),
              c(fkmse_loocv_R(k, 1e-4), fkmse_loocv_R(k, 0.1)), 1e-11)
  expect_near(score_function(g, "loocv", target)(0.1),
              fkmse_loocv_R(k, 0.1, target$at, target$norm2),
              1e-11 * target$norm2)
  expect_lt(ncol(g$range), 50)
})

test_that("the range does not depend on the number of threads", {
  skip_on_cran()
  k <- rbf_gram(400, 2)
  one <- with_threads(1, range_of(k))
  two <- with_threads(2, range_of(k))
  expect_lt(ncol(one$vectors), 200)
  expect_identical(one, two)
})

test_that("a small lambda divides no rounding", {
  set.seed(7)
  n <- 100
  q <- qr.Q(qr(matrix(rnorm(n^2), n)))
  b <- rnorm(n)
  solved <- \(values, lambda) {
    k <- tcrossprod(q * rep(sqrt(values), each = n))
    list(k = k, x = solve_spectrum(new_gram(k), b, lambda, 0.5))
  }
  # All eigenvalues are large, so that the inverse is exact up to rounding.
  full <- solved(runif(n, 1, 2), 1e-12)
  expect_near(full$x, solve(full$k, b + 0.5 * rowSums(full$k)), 1e-12)
  # b in the range of a K of rank 20: nothing is left to divide.
  b <- drop(q[, 1:20] %*% rnorm(20))
  low <- solved(rep(c(1.5, 0), c(20, 80)), 1e-12)
  want <- q[, 1:20] %*% crossprod(q[, 1:20], b / 1.5 + 0.5)
  expect_near(low$x, drop(want), 1e-3)
})

test_that("an indefinite matrix has no range, and NaN no eigenvalues", {
  k <- matrix(1, 200, 200)
  k[2, 2] <- k[3, 3] <- 0.5
  k[2, 3] <- k[3, 2] <- 1.5
  expect_lt(min(.Call(C_r_range, k)$values), -0.9)
  expect_error(.Call(C_r_eigen, matrix(c(1, NaN, NaN, 1), 2), 2L),
               class = "kernmean_error_numeric")
})

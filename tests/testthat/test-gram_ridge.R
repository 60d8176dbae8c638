# Ridge regressions in the axes of their normal matrix against normal equations
# solved anew, and fits without a unit against refits without its rows.

# A ridge regression of n rows with outcomes in r axes, the first `free` of them
# without penalty, and a functional of N rows; rank: of the rows.
random_ridge <- function(n = 40, N = 30, r = 6, free = 1, rank = r) {
  x <- matrix(rnorm(n * rank), n) %*% matrix(rnorm(rank * r), rank)
  weights <- runif(n, 0.3, 3)
  pairs <- eigen(crossprod(x, x * weights) / n, symmetric = TRUE)
  z <- x %*% pairs$vectors
  y <- rnorm(n)
  b <- matrix(rnorm(N * r), N) %*% pairs$vectors
  # What the rows do not have in the null space, the functional has not either.
  b[, -seq_len(rank)] <- 0
  upsilon <- runif(N, 0.5, 2)
  list(ridge = new_ridge(pmax(pairs$values, 0), crossprod(z, weights * y) / n,
                         z, free, weights),
       functional = new_functional(b, upsilon / mean(upsilon)), y = y)
}

# The same values by normal equations without rows i of the source and j of the
# functional; sums are divided by the numbers of all rows.
ridge_R <- function(p, lambda, i = 0L, j = 0L) {
  r <- p$ridge
  b <- p$functional$b
  n <- nrow(r$z)
  kept <- setdiff(seq_len(n), i)
  others <- setdiff(seq_len(nrow(b)), j)
  z <- r$z[kept, , drop = FALSE]
  penalty <- ifelse(seq_along(r$values) > r$free, lambda, 0)
  normal <- crossprod(z, z * r$weights[kept]) / n + diag(penalty)
  g <- solve(normal, crossprod(z, r$weights[kept] * p$y[kept]) / n)
  alpha <- solve(normal, crossprod(b[others, , drop = FALSE],
                                   p$functional$weights[others]) / nrow(b))
  lapply(list(alpha = r$z %*% alpha, residuals = p$y - r$z %*% g,
              of_alpha = b %*% alpha, of_g = b %*% g), drop)
}

expect_refits <- function(p, unit, functional_unit, lambda = c(0.02, 1),
                          tolerance = 1e-10) {
  got <- ridge_left_out(p$ridge, p$functional, lambda, p$y, unit,
                        functional_unit)
  want <- lapply(got, \(v) NA * v)
  for (u in unique(c(unit, functional_unit))) {
    i <- which(unit == u)
    j <- which(functional_unit == u)
    for (l in seq_along(lambda)) {
      refit <- ridge_R(p, lambda[l], i, j)
      for (name in c("alpha", "residuals")) {
        want[[name]][i, l] <- refit[[name]][i]
      }
      for (name in c("of_alpha", "of_g")) {
        want[[name]][j, l] <- refit[[name]][j]
      }
    }
  }
  for (name in names(want)) expect_near(got[[name]], want[[name]], tolerance)
}

set.seed(1)

test_that("solutions are those of the normal equations", {
  p <- random_ridge()
  got <- ridge_values(p$ridge, p$functional, c(0.02, 1), p$y)
  for (l in 1:2) {
    want <- ridge_R(p, c(0.02, 1)[l])
    for (name in names(want)) {
      expect_near(got[[name]][, l], want[[name]], 1e-10)
    }
  }
})

test_that("an axis without eigenvalue and penalty is left out", {
  r <- new_ridge(c(2, 1, 0), c(2, 3, 0), free = 1)
  expect_identical(ridge_inverse(r, 0), cbind(c(1 / 2, 1, 0)))
  expect_identical(ridge_inverse(r, c(1, Inf)),
                   cbind(c(1 / 2, 1 / 2, 1), c(1 / 2, 0, 0)))
  expect_identical(ridge_solve(r, 1), cbind(c(1, 3 / 2, 0)))
  expect_identical(ridge_solve(r, 1, c(0, 0, 4)), cbind(c(0, 0, 4)))
})

test_that("a debiased functional is that of g and mean(alpha residuals)", {
  p <- random_ridge()
  r <- p$ridge
  target <- p$functional$target
  found <- ridge_debiased(r, target, 0.3, 0.1)
  of_g <- sum(target * found$g)
  alpha <- r$z %*% found$alpha
  residuals <- p$y - r$z %*% found$g
  expect_near(sum(found$effective * r$right),
              of_g + mean(r$weights * alpha * residuals), 1e-12)
  hat <- r$z %*% solve(crossprod(r$z, r$z * r$weights) +
                         nrow(r$z) * diag(c(0, rep(0.1, 5))),
                       t(r$z * r$weights))
  expect_near(found$edf, sum(diag(hat)), 1e-10)
})

test_that("fits without a unit are refits: rows, unequal and unsorted units", {
  p <- random_ridge()
  expect_refits(p, 1:40, c(40:16, -(1:5)))
  expect_refits(p, sample(40), sample(40, 30))
  unit <- sample(rep(1:7, c(1, 1, 2, 3, 5, 12, 16)))
  expect_refits(p, unit, sample(9, 30, TRUE))
  # Of letters, and one that has rows of the functional alone.
  expect_refits(p, letters[unit], sample(letters[1:9], 30, TRUE))
})

test_that("large units are left out as small ones are, by either side", {
  # More rows than a small unit has: fewer than axes, more, and none.
  p <- random_ridge(n = 90, N = 700, r = 25)
  unit <- sample(rep(1:4, c(20, 40, 25, 5)))
  expect_refits(p, unit, sample(c(1:5), 700, TRUE))
  p <- random_ridge(n = 90, N = 5, r = 25)
  expect_refits(p, unit, rep(9, 5))
  # Many units: several products.
  p <- random_ridge(n = 600, N = 600, r = 3)
  unit <- sample(c(rep(1:190, each = 3), rep(191, 30)))
  expect_refits(p, unit, unit)
})

test_that("features may be dependent, also without the unit", {
  p <- random_ridge(r = 8, rank = 3)
  unit <- sample(rep(1:8, 5))
  expect_refits(p, unit, unit[1:30], tolerance = 1e-9)
  p <- random_ridge(n = 90, r = 40, rank = 3)
  expect_refits(p, rep(1:3, 30), rep(1:3, 10), tolerance = 1e-9)
})

test_that("where others say nothing of a direction, values along it are 0", {
  z <- cbind(rep(0:1, c(18, 22)), rnorm(40))
  z[, 2] <- z[, 2] - ave(z[, 2], z[, 1])
  norm <- sqrt(colMeans(z^2))
  z <- z / rep(norm, each = 40)
  for (size in list(rep(1:2, c(18, 22)), c(rep(1:6, 3), rep(7:8, 11)),
                    c(rep(1, 18), rep(2:3, 11)))) {
    p <- list(ridge = new_ridge(c(1, 1), crossprod(z, 1:40) / 40, z, 1,
                                rep(1, 40)),
              functional = new_functional(z, rep(1, 40)), y = as.double(1:40))
    left <- ridge_left_out(p$ridge, p$functional, 0.1, p$y, size, size)
    expect_true(all(vapply(left, \(v) all(is.finite(v)), NA)))
  }
  # A row that alone has a level.
  z <- cbind(c(1, numeric(39)), c(0, rnorm(39))) * sqrt(40)
  p$ridge <- new_ridge(colMeans(z^2), crossprod(z, 1:40) / 40, z, 1, rep(1, 40))
  p$functional <- new_functional(z, rep(1, 40))
  left <- ridge_left_out(p$ridge, p$functional, 0.1, p$y, 1:40, 1:40)
  expect_identical(c(left$alpha[1], left$residuals[1]), numeric(2))
})

test_that("the results have the same bits on any number of threads", {
  p <- random_ridge(n = 300, N = 300, r = 30)
  unit <- sample(c(rep(1:60, 3), rep(61:63, 40)))
  on_threads <- \(threads) with_threads(threads, ridge_left_out(
    p$ridge, p$functional, 10^(-3:2), p$y, unit, unit
  ))
  expect_identical(on_threads(2), on_threads(1))
})

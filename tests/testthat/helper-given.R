# Slow twins of the regressions and statistics given covariates.

# The weights beta(x) of a conditional kernel mean, from kernel values of
# covariates: K of the rows, k of new rows (a row each), with row weights w.
given_weights_R <- function(K, k, lambda, w = rep(1, nrow(K))) {
  n <- nrow(K)
  W <- diag(w / mean(w)) / n
  A <- diag(n) - matrix(1, n, n) %*% W
  Kc <- A %*% K %*% t(A)
  kc <- (k - matrix(1, nrow(k), n) %*% W %*% K) %*% t(A)
  beta <- kc %*% solve(W %*% Kc + lambda * diag(n), W %*% A)
  rep(diag(W), each = nrow(k)) + beta
}

# sum_ij (EE')_ij (OO')_ij C_ij / sum_i (EE')_ii (OO')_ii
form_ratio_R <- function(e, o, c) {
  sum(tcrossprod(e) * tcrossprod(o) * c) /
    sum(diag(tcrossprod(e)) * diag(tcrossprod(o)))
}

# Data sets of the reference values.
given_reference <- function(name) {
  switch(
    name,
    lin1 = {
      set.seed(101)
      z <- rnorm(60)
      list(x = z + rnorm(60), y = z + rnorm(60), z = z)
    },
    wiggle = {
      set.seed(102)
      z <- runif(80, -3, 3)
      list(x = sin(3 * z) + 0.3 * rnorm(80), y = sin(3 * z) + 0.3 * rnorm(80),
           z = z)
    },
    square = {
      set.seed(103)
      z <- rnorm(80)
      e <- rnorm(80)
      list(x = z + e, y = z + 0.6 * (e^2 - 1) + 0.7 * rnorm(80), z = z)
    },
    group3 = {
      set.seed(105)
      z <- matrix(rnorm(300), 100)
      g <- rbinom(100, 1, plogis(z[, 1] + z[, 2]))
      list(x = factor(g), y = z[, 1] + z[, 2]^2 / 2 + 0.6 * g +
             0.5 * rnorm(100), z = z)
    }
  )
}

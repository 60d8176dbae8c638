# Slow twins of smoothers, on stored Gram matrices.

# Rows of features, whose inner products are K, and the matrix that turns their
# coefficients into those of kernel sections.
root_features_R <- function(K) {
  e <- eigen(K, symmetric = TRUE)
  kept <- e$values > 1e-12 * e$values[1]
  scaled <- \(power) e$vectors[, kept] %*% diag(e$values[kept]^power, sum(kept))
  list(f = scaled(0.5), back = scaled(-0.5))
}

# The intercept b and the coefficients c with the smallest sum over the rows
# `keep` of w (y - b - K c)^2/n + penalty c'Kc, for weights w of mean 1.
intercept_R <- function(K, y, penalty, w, keep = seq_along(y)) {
  root <- root_features_R(K)
  a <- cbind(1, root$f)
  moment <- \(z) crossprod(a[keep, ], w[keep] * z) / (length(y) * mean(w))
  penalties <- diag(c(0, rep(penalty, ncol(root$f))))
  theta <- solve(moment(a[keep, ]) + penalties, moment(y[keep]))
  list(b = theta[1], c = drop(root$back %*% theta[-1]),
       values = drop(a %*% theta))
}

# The squared residual of each row from the refit without its unit.
squares_left_out_R <- function(K, y, penalty, w, unit) {
  vapply(seq_along(y), \(i) {
    (y[i] - intercept_R(K, y, penalty, w, which(unit != unit[i]))$values[i])^2
  }, 0)
}

# Fits to sketches and their twins: the same fits to all rows, from the n x n
# projected Gram matrix Phi Phi' (helper-sketch.R has Phi slowly).

# Phi, n x r, in the coordinates of the landmarks, from R's own algebra.
features_R <- function(landmarks, x, k) {
  k(unname(as.matrix(x)), landmark_x(landmarks)) %*% landmarks$root
}

# The larger of the differences of two sets of columns up to their signs, on the
# scale of the largest entry.
up_to_signs <- function(a, b) {
  turned <- sign(colSums(a * b))
  max(abs(a - b * rep(turned, each = nrow(b)))) / max(abs(b))
}

# K^c from the weights b of the mean that centers, or L^c of new points: columns
# and rows minus their weighted means, in matrices.
centered_R <- function(K, b, L = K) {
  n <- nrow(K)
  e <- function(m) matrix(1, m, 1)
  (L - e(nrow(L)) %*% t(b) %*% K) %*% (diag(n) - b %*% t(e(n)))
}

# Features of (x'y + 1)^2 for two columns.
poly_features_R <- function(x) {
  cbind(1, sqrt(2) * x, x^2, sqrt(2) * x[, 1] * x[, 2])
}

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

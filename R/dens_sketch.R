# Densities from sketches: what is matched is the estimate of the mean, weights
# on the landmarks, and the start is that of points which stand for it.

points_for_start <- 5000

# Landmarks as often as a distribution p on them says that is nearest to the
# mean: p >= 0 and sum p = 1 minimize |mu - sum_j p_j phi(s_j)|^2, with a ridge
# that rounding takes. They are drawn systematically, by one random number.
points_for_mean <- function(mean) {
  x <- mean$sample$x
  m <- nrow(x)
  k <- sample_matrix(mean$sample)
  diag(k) <- diag(k) + 1e-8 * mean(diag(k))
  p <- if (m == 1L) 1 else
    simplex_weights(k, mean$fitted, max(abs(k)),
                    "the weights of the landmarks that are nearest to the mean")
  p <- pmax(p, 0)
  ends <- floor(points_for_start * cumsum(p) / sum(p) + stats::runif(1L))
  take_rows(x, rep(seq_len(m), diff(c(0, ends))))
}

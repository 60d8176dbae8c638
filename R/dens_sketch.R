# Densities from sketches: a mixture is matched to weights on the landmarks. It
# starts from clusters of points, which points_for_mean() makes of the
# landmarks.

points_for_start <- 5000

# Points that represent a mean: its landmarks, repeated in proportion to the
# distribution p on them that is nearest to the mean. p >= 0 with sum p = 1
# minimizes |mu - sum_j p_j phi(s_j)|^2 plus a ridge of the size of rounding.
# Points are drawn systematically, by one random number.
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

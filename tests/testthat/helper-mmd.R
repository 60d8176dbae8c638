# Slow twins of the two-sample tests: one labeling at a time, from a stored
# Gram matrix.

# order: the points, the first m of them the first sample.
mmd_R <- function(K, order, m, statistic = "biased") {
  x <- order[seq_len(m)]
  y <- order[-seq_len(m)]
  n <- length(y)
  off <- \(i) sum(K[i, i]) - sum(diag(K)[i])
  if (statistic == "biased") {
    mean(K[x, x]) + mean(K[y, y]) - 2 * mean(K[x, y])
  } else {
    off(x) / (m * (m - 1)) + off(y) / (n * (n - 1)) - 2 * mean(K[x, y])
  }
}

# Several samples: the sum over pairs weighted by m_g m_h / N.
mmd_groups_R <- function(K, order, sizes, pair) {
  points <- split(order, rep(seq_along(sizes), sizes))
  total <- 0
  for (g in seq_along(sizes)) {
    for (h in seq_len(g - 1L)) {
      total <- total + sizes[g] * sizes[h] / sum(sizes) *
        pair(K, points[[h]], points[[g]])
    }
  }
  total
}

skmse_distance_R <- function(K, x, y, select) {
  shrink <- \(i) 1 - skmse_alpha_R(K[i, i], select)
  a <- shrink(x)
  b <- shrink(y)
  a^2 * mean(K[x, x]) + b^2 * mean(K[y, y]) - 2 * a * b * mean(K[x, y])
}

fkmse_distance_R <- function(K, x, y, lambda) {
  a <- fkmse_weights_R(K[x, x], lambda)
  b <- fkmse_weights_R(K[y, y], lambda)
  sum(a * (K[x, x] %*% a)) + sum(b * (K[y, y] %*% b)) -
    2 * sum(a * (K[x, y] %*% b))
}

# An estimator of the user's: points count by how near they are to the others.
near <- function(sample) {
  at <- rowMeans(as.matrix(sample))
  at / sum(at)
}
near_distance_R <- function(K, x, y) {
  weights <- \(i) rowMeans(K[i, i, drop = FALSE]) / sum(K[i, i]) * length(i)
  w <- c(weights(x), -weights(y))
  sum(w * (K[c(x, y), c(x, y)] %*% w))
}

# MMD-FUSE as in Biggs et al. (2023).
fuse_R <- function(x, order, m) {
  distance <- as.matrix(stats::dist(x))
  ends <- stats::quantile(distance[lower.tri(distance)], c(0.05, 0.95))
  theta <- seq(ends[1] / 2, 2 * ends[2], length.out = 10)
  n <- nrow(x)
  smaller <- min(m, n - m)
  z <- vapply(theta, \(t) {
    K <- exp(-distance^2 / (2 * t^2))
    sigma <- sqrt(mean(K[row(K) != col(K)]^2))
    sqrt(smaller * (smaller - 1)) * mmd_R(K, order, m, "unbiased") / sigma
  }, numeric(1))
  log(mean(exp(z)))
}

# The 99.9% binomial band of the number of rejections at level 0.05.
in_band <- function(rejections, count) {
  rejections >= stats::qbinom(0.0005, count, 0.05) &&
    rejections <= stats::qbinom(0.9995, count, 0.05)
}

# The test, of the plain statistic alone unless said, with settings of
# test_control() as arguments.
mmd_set <- function(..., filter = "none", null = NULL, statistic = NULL,
                    permutations = NULL, bins = NULL) {
  control <- test_control(null, statistic, permutations, bins)
  do.call(mmd_test, c(list(...), list(filter = filter, control = control)),
          quote = TRUE)
}

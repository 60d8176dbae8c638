# The statistics behind mmd_test(), whatever the estimator, and their null
# distributions.

# list(values: the statistic as observed, then of the draws; scale: the size of
# its terms, see permutation_p(); pairs: of several samples MMD^2 of each pair;
# share: of the total that lies between the samples; height: the factor of
# statistics and pairs; settled: the estimator's choices; and where the
# statistic is made of sums, source, sums and alpha; of filters see
# filtered_statistics()).
mmd_statistics <- function(samples, options, scheme) {
  sample <- walkable_sample(samples$sample)
  if (is_average(options$estimator)) {
    sample <- center_linear(sample)
  } else {
    check_definite(sample$kernel)
  }
  if (needs_gram(options$estimator)) {
    sample <- form_sample(sample)
  }
  settled <- est_settle(options$estimator, sample, "the pooled sample")
  samples$sample <- settled_sample(sample, settled)
  found <- if (!is.null(options$filter)) {
    filtered_statistics(samples, options, scheme, settled$height)
  } else if (has_sums(settled$estimator)) {
    sums_statistics(samples, options, scheme, settled$estimator)
  } else {
    mean_statistics(samples, options, scheme, settled$estimator)
  }
  if (!is_average(options$estimator) && is_linear(sample$kernel) &&
        knows_points(sample)) {
    found$share <- linear_share(sample$x, samples$groups)
  }
  # Of a filter only the plain statistic has one, and it is in its values.
  height <- if (is.null(options$filter)) settled$height else 1
  c(found, list(height = height, settled = settled))
}

# --- Any estimator -----------------------------------------------------------

# The distances of the means that it gives for each labeling.
mean_statistics <- function(samples, options, scheme, estimator) {
  # What takes no weights and no matrix takes points alone.
  sample <- if (has_weights(estimator) || needs_gram(estimator)) {
    form_sample(samples$sample)
  } else {
    without_gram(samples$sample)
  }
  # The points of the units that an order gives to each group.
  units <- if (is.null(scheme$clusters)) seq_len(sample$n) else scheme$clusters
  members <- split(seq_len(sample$n), units)
  group <- rep(seq_along(scheme$sizes), scheme$sizes)
  points <- \(order) {
    lapply(split(order, group), \(i) unlist(members[i], use.names = FALSE))
  }
  statistic <- \(order) {
    points <- points(order)
    sum_pairs(mean_distances(sample, points, estimator), t(lengths(points)))
  }
  values <- refitted_draws(
    statistic, length(members), scheme, estimator, sum(samples$sizes^3) / 3,
    options$progress
  )
  observed <- points(seq_along(members))
  list(values = values,
       share = between_share(list(plain_sums(sample, observed))),
       pairs = if (length(observed) > 2L) {
         mean_distances(sample, observed, estimator)[1L, ]
       })
}

# The share between groups for a linear kernel, whose sums that are not centered
# lose it where the points are far from 0.
linear_share <- function(x, groups) {
  z <- x - rep(colMeans(x), each = nrow(x))
  total <- sum(z^2)
  between <- sum(rowsum(z, as.integer(groups))^2 / tabulate(groups))
  if (total > 0) between / total else 0
}

# The sums of the Gram matrix over the points of each group, one row.
plain_sums <- function(sample, points) {
  sorted <- sample_take(sample, unlist(points))
  sizes <- lengths(points)
  sums <- .Call(C_r_block_sums, sample_source(sorted), unname(sizes), NULL,
                NULL, NULL, FALSE)$sums
  check_overflow(sorted$kernel, sums)
  trace <- rowsum(sample_diagonal(sorted), rep(seq_along(sizes), sizes))
  list(own = t(diag(sums)), cross = t(sums[upper.tri(sums)]),
       trace = t(trace), sizes = t(sizes))
}

# The squared distances of the means of the groups, one row.
mean_distances <- function(sample, points, estimator) {
  if (!has_weights(estimator)) {
    parts <- lapply(points, \(i) est_parts(estimator, sample_take(sample, i)))
    inner <- inner_matrix(parts, sample$kernel)
    return(pair_distances(t(diag(inner)), \(g, h, pair) inner[g, h]))
  }
  k <- sample_matrix(sample)
  weights <- lapply(points, \(i) est_weights(estimator, sample_take(sample, i)))
  inner <- \(g, h, pair) {
    sum(weights[[g]] * (k[points[[g]], points[[h]]] %*% weights[[h]]))
  }
  norm2 <- vapply(seq_along(points), \(g) inner(g, g), numeric(1))
  pair_distances(t(norm2), inner)
}

# --- Null distributions ------------------------------------------------------

# list(p, draws, gamma)
mmd_null <- function(samples, options, scheme, found) {
  if (options$null == "gamma") {
    square <- found$sums$moments[2L]
    return(permutation_gamma(found$values[1L], found$source, samples$sizes,
                             square))
  }
  values <- if (options$null == "spectrum") {
    c(found$values[1L], spectrum_draws(samples, options, scheme$B))
  } else {
    found$values
  }
  permutation_null(values, found$scale, scheme)
}

# Draws of sum_l gamma_l/N (Z_l^2 - unbiased), chi-squared with groups - 1
# degrees of freedom, in the units of the statistic.
spectrum_draws <- function(samples, options, B) {
  values <- null_spectrum(samples$sample, samples)
  values <- values[values > 0]
  check_memory(B, length(values), "take fewer draws", copies = 3,
               what = "the chi-squared numbers of all draws,")
  freedom <- length(samples$sizes) - 1
  n <- sum(samples$sizes)
  unit <- if (freedom == 1) prod(samples$sizes) else n
  squares <- matrix(stats::rchisq(as.double(B) * length(values), freedom), B)
  if (options$statistic == "unbiased") {
    squares <- squares - freedom
  }
  drop(squares %*% values) / unit
}

# The eigenvalues gamma_l.
null_spectrum <- function(sample, samples) UseMethod("null_spectrum")
null_spectrum.kernmean_sample <- function(sample, samples) {
  sample <- center_linear(sample)
  check_memory(sample$n, sample$n, "use fewer rows", copies = 2)
  centered <- center_source(sample_source(sample))
  clip_values(spectrum_values(centered$k), max(abs(centered$at)),
              "the centered Gram matrix")
}

# A gamma law with the mean and variance of the biased statistic over all
# permutations; none if the statistic is constant.
permutation_gamma <- function(observed, source, sizes, square) {
  rows <- source$rows[, 1L]
  diagonal <- source$diagonal[, 1L]
  moments <- biased_moments(rows, diagonal, sizes, square)
  variance <- moments[["second"]] - moments[["mean"]]^2
  if (all(rows == rows[1L]) && all(diagonal == rows[1L] / length(rows))) {
    return(list(p = 1))
  }
  if (is_rounding(variance, moments[["second"]], square, sizes)) {
    stop_kernmean(
      "numeric", "the kernel values differ too little from each other for ",
      "null = \"gamma\"; take a smaller bandwidth or center the columns"
    )
  }
  gamma_null(observed, moments[["mean"]], variance)
}

# Is a variance over permutations, a difference of terms as large as
# `second` and, before centering, as the mean square of the kernel values, no
# more than rounding?
is_rounding <- function(variance, second, square, sizes) {
  n <- sum(sizes)
  size <- second + sum(1 / sizes)^2 * square / n^2
  !is.finite(size) || !(variance > 64 * n * .Machine$double.eps * size)
}

# Mean and second moment of the biased statistic of two samples over all
# permutations, from the row sums, the diagonal and the sum of squares of K.
biased_moments <- function(rows, diagonal, sizes, square) {
  n <- sum(sizes)
  falling <- cumprod(n - 0:3)
  centered <- diagonal - 2 * rows / n + sum(rows) / n^2
  t <- sum(centered)
  d <- sum(centered^2)
  f <- square - 2 * sum(rows^2) / n + sum(rows)^2 / n^2
  p2 <- sum(1 / sizes)
  p4 <- sum(1 / sizes^3)
  second <- d * p4 / n + 4 * d * p4 / falling[2L] +
    (t^2 + 2 * f - 3 * d) * (p2^2 - p4) / falling[2L] +
    (12 * d - 2 * t^2 - 4 * f) * (2 * p4 - p2^2) / falling[3L] +
    (t^2 + 2 * f - 6 * d) * (3 * p2^2 - 6 * p4) / falling[4L]
  c(mean = p2 * t / (n - 1), second = second)
}

# Standard deviation of the unbiased statistic of two samples over all
# permutations (its mean is 0); NA where it cannot be told from rounding.
unbiased_deviation <- function(rows, diagonal, sizes, square) {
  n <- sum(sizes)
  rows <- rows - diagonal
  s <- sum(rows)
  s2 <- square - sum(diagonal^2)
  r2 <- sum(rows^2)
  m1 <- as.double(sizes[1L])
  m2 <- as.double(sizes[2L])
  v <- (1 / (m1 * (m1 - 1)) + 1 / (m2 * (m2 - 1)) + 2 / (m1 * m2)) /
    (n * (n - 1))
  variance <- 2 * v * s2 - 4 * v * (r2 - s2) / (n - 2) +
    2 * v * (s^2 - 4 * r2 + 2 * s2) / ((n - 2) * (n - 3))
  if (is_rounding(variance, 0, square, sizes)) NA else sqrt(variance)
}

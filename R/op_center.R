# The shelf op_: operators: centring, components, covariance, discriminants.
#
# Offers from op_center.R: centered_spectrum, new_centered.
# Offers from op_pca.R: check_rows_kept, component_labels.
# Offers from op_fda.R: calibration_table.
#
# Kernel PCA, covariance operators and the discriminants of sketches work on
# features that are centered at an embedding mu. With m_i = mu(x_i), K^c_ij =
# <phi(x_i) - mu, phi(x_j) - mu> = K_ij - m_i - m_j + |mu|^2, and for new points
# L^c_zj = L_zj - m_j - mu(z) + |mu|^2. Any fit of kme() can be mu, because only
# its values and its norm are used.
#

# A centered sample.
#   sample  the sample that fits keep
#   work    the same sample with its gram, if that was formed on the way
#   n       number of points
#   mean    the fit mu, NULL where only its values are known
#   at      its values m at the points
#   norm2   |mu|^2
new_centered <- function(sample, at, norm2, mean = NULL, work = sample) {
  list(sample = sample, work = work, n = sample$n, mean = mean, at = at,
       norm2 = norm2)
}

# The sample centered by `center`, an estimator or a fit. If `center` is the
# average and the kernel is linear, the points are moved so that their mean is
# the origin, and m and |mu|^2 are computed after that: no digits are lost in
# differences of large numbers.
centered_sample <- function(sample, center) {
  work <- walkable_sample(sample)
  if (inherits(center, "kme")) {
    mean <- center
    at <- check_target(mean, sample_support(sample), "center")$at
  } else {
    if (needs_gram(center)) work <- form_sample(work)
    mean <- estimate_mean(work, center)
    mean$sample <- sample_support(sample)
    at <- mean$fitted
  }
  norm2 <- mean$norm2
  if (is_average(center)) {
    sample <- center_linear(sample)
    if (!is.null(sample$origin)) {
      work <- sample
      at <- sample_rows(sample) / sample$n
      norm2 <- mean.default(at)
    }
  }
  new_centered(sample, at, norm2, mean, work)
}

# The argument `center` of a door: a fit, or an estimator.
read_center <- function(center, argument = "center") {
  if (inherits(center, "kme")) center else
    read_estimator(center, argument = argument)
}

# The kernel that `center` brings along for points without one, or NULL.
center_kernel <- function(center) {
  if (inherits(center, "kme")) center$kernel else estimator_kernel(center)
}

# The fields that a fit keeps, so that centered_apply() and the other functions
# of new points can take the fit in place of a centered sample.
centered_fields <- function(centered) {
  list(sample = sample_support(centered$sample), mean = centered$mean,
       at = centered$at, norm2 = centered$norm2)
}

# K^c as a matrix with exactly equal halves.
centered_matrix <- function(centered) {
  n <- centered$sample$n
  check_memory(n, n,
               "use fewer rows, or few components (ncomp) of kme_pca()",
               copies = 3)
  center_gram(sample_source(work_sample(centered)), centered$at,
              centered$norm2)$k
}

# The sample that kernel values are read from: `work`, or in a finished fit,
# which has no `work`, the sample that it keeps.
work_sample <- function(centered) centered$work %||% centered$sample

# The n values of the diagonal of K^c.
centered_diagonal <- function(centered) {
  sample_diagonal(work_sample(centered)) - 2 * centered$at + centered$norm2
}

# --- New points ------------------------------------------------------------
# `object` is a centered sample, or a fit that keeps its fields.

# The values of mu at new points.
centered_mean_at <- function(object, new) {
  weights <- weights_on(object$mean, object$sample)
  if (!is.null(weights)) {
    return(drop(sample_at(object$sample, new, weights)))
  }
  parts_at(merge_parts(embedding_parts(object$mean)), object$sample$kernel, new)
}

# A list for new points z: `scores`, the m x p matrix L^c V with the entries
# sum_j V_jl <phi(z) - mu, phi(x_j) - mu>, and `mean_at`, the values mu(z). If
# mu is a weighted sum over the sample, one pass over the kernel values gives
# both.
centered_apply <- function(object, new, v) {
  weights <- weights_on(object$mean, object$sample)
  values <- sample_at(object$sample, new, cbind(v, weights))
  if (is.null(weights)) {
    mean_at <- centered_mean_at(object, new)
  } else {
    mean_at <- values[, ncol(values)]
    values <- take_columns(values, seq_len(ncol(v)))
  }
  mass <- center_mass(object, v)
  down <- drop(crossprod(v, object$at)) - object$norm2 * mass
  scores <- values - outer(mean_at, mass) - rep(down, each = new$m)
  dimnames(scores) <- list(new$names, colnames(v))
  list(scores = scores, mean_at = mean_at)
}

# The function of a column v of V, sum_j v_j (phi(x_j) - mu), subtracts mu times
# the sum of v; these sums are returned. They are 0 for a sketch, whose
# functions are sums over landmarks without centering.
center_mass <- function(object, v) {
  if (is.null(object$sample$sketch)) colSums(v) else numeric(ncol(v))
}

# The rows of L^c for some of the new points; `at` holds mu(z) for all of them.
centered_cross <- function(object, new, at, rows) {
  sample_cross(object$sample, new, rows) -
    outer(at[rows] - object$norm2, object$at, `+`)
}

# --- Spectrum ----------------------------------------------------------------

# Eigenpairs of K^c, all or the leading ones.
#   values   decreasing
#   vectors  n x r matrix
#   total    tr K^c
#   square   |K^c|_F^2
#   products how many blocks of products the iteration took; NULL where there
#            was no iteration
new_centered_spectrum <- function(pairs, total, square) {
  list(values = pairs$values, vectors = pairs$vectors, total = total,
       square = square, products = pairs$products)
}

# The spectrum of K^c: the leading `ncomp` pairs of a large matrix by block
# Krylov iteration, which never forms K^c. Eigenvalues are set to 0 if they are
# no larger than the rounding error of the largest one, or of the terms whose
# difference is K^c.
centered_spectrum <- function(centered, ncomp = NULL) {
  # The iteration is faster when n is a few times the size of its basis.
  few <- !is.null(ncomp) && centered$n >= max(1200, 5 * ncomp)
  spectrum <- (if (few) krylov_spectrum(centered, ncomp)) %||%
    dense_spectrum(centered, ncomp)
  values <- spectrum$values
  scale <- max(values[1L], abs(centered$at), centered$norm2)
  spectrum$values[values < rounding_of(centered$n, scale)] <- 0
  spectrum
}

# The leading pairs by iteration, NULL where squares of the entries over- or
# underflow, or where it does not converge.
krylov_spectrum <- function(centered, ncomp) {
  n <- centered$n
  # Memory is needed for the basis, the vectors that survive a restart, blocks,
  # sums, and small matrices.
  basis <- max(400, 2 * ncomp + 160)
  check_memory(n + 3 * basis, basis + ncomp + 256,
               "ask for fewer components (ncomp)", what = "a basis")
  source <- product_source(work_sample(centered))
  square <- .Call(C_r_centered_square, source, centered$at, centered$norm2)
  if (!is.finite(square) || square < .Machine$double.xmin / 1e-16) {
    return(NULL)
  }
  pairs <- .Call(C_r_krylov, source, centered$at, centered$norm2, square, ncomp)
  if (!is.null(pairs)) {
    new_centered_spectrum(pairs, sum(centered_diagonal(centered)), square)
  }
}

dense_spectrum <- function(centered, ncomp) {
  k <- centered_matrix(centered)
  pairs <- if (is.null(ncomp)) .Call(C_r_range, k) else
    .Call(C_r_eigen, k, min(ncomp, nrow(k)))
  new_centered_spectrum(pairs, sum(diag(k)), sum(k^2))
}

# The spectrum of K^c without the values that are 0.
positive_pairs <- function(centered) {
  s <- centered_spectrum(centered)
  kept <- which(s$values > 0)
  s$values <- s$values[kept]
  s$vectors <- take_columns(s$vectors, kept)
  s
}

# The source for many products with K, whose values are stored where reading
# them costs less than computing them again.
product_source <- function(sample) {
  if (!stores_gram(sample) && stores_matrix(sample$n, NCOL(sample$x))) {
    native_source(NULL, sample_matrix(sample))
  } else {
    sample_source(sample)
  }
}

# Does reading n^2 stored values cost less than computing them from d columns? A
# larger matrix needs more columns for that.
stores_matrix <- function(n, d) {
  bytes <- 8 * n^2
  d > (if (bytes <= 2^28) 16 else 64) && bytes < memory_available() / 2
}

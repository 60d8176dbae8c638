# The shelf op_: operators: centring, components, covariance, discriminants.
#
# Offers from op_center.R: centered_spectrum.
# Offers from op_pca.R: check_rows_kept, component_labels.
# Offers from op_calibrate.R: calibration_table, class_probability,
#   fit_sigmoids.
#
# What kernel PCA, covariance operators and discriminants share: a sample whose
# features are centered by an embedding mu. With m_i = mu(x_i),
#   K^c_ij = <phi(x_i) - mu, phi(x_j) - mu> = K_ij - m_i - m_j + |mu|^2,
# for new points L^c_zj = L_zj - m_j - mu(z) + |mu|^2. mu may be any fit of
# kme(): only its values and its norm enter.
#

# list(sample, work: the sample with what was formed on the way, n, mean: the
# fit mu, at: its values m, norm2: |mu|^2). `center` is an estimator or a fit.
# Of the average a linear kernel has its origin, for m and |mu|^2 too, at the
# mean of the points, where differences of large numbers lose nothing.
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
  list(sample = sample, work = work, n = sample$n, mean = mean, at = at,
       norm2 = norm2)
}

# `center` of a door: a fit, or what read_estimator() takes.
read_center <- function(center, argument = "center") {
  if (inherits(center, "kme")) center else
    read_estimator(center, argument = argument)
}

# The kernel that `center` brings along for points without one, or NULL.
center_kernel <- function(center) {
  if (inherits(center, "kme")) center$kernel else estimator_kernel(center)
}

# What a fit keeps of a centered sample.
centered_fields <- function(centered) {
  c(list(sample = sample_support(centered$sample)),
    centered[c("mean", "at", "norm2")])
}

# K^c as a matrix, of exactly equal halves.
centered_matrix <- function(centered) {
  n <- centered$sample$n
  check_memory(n, n,
               "use fewer rows, or few components (ncomp) of kme_pca()",
               copies = 3)
  center_gram(sample_source(work_sample(centered)), centered$at,
              centered$norm2)$k
}

# The sample for work on its values: of a fit, the one it keeps.
work_sample <- function(centered) centered$work %||% centered$sample

# The diagonal of K^c.
centered_diagonal <- function(centered) {
  sample_diagonal(work_sample(centered)) - 2 * centered$at + centered$norm2
}

# --- New points ------------------------------------------------------------
# `object` is a centered sample, or a fit that keeps its fields.

# mu at new points.
centered_mean_at <- function(object, new) {
  weights <- weights_on(object$mean, object$sample)
  if (!is.null(weights)) {
    return(drop(sample_at(object$sample, new, weights)))
  }
  parts_at(merge_parts(embedding_parts(object$mean)), object$sample$kernel, new)
}

# list(scores: L^c V for V of n rows, m x p, sum_j V_jl <phi(z) - mu, phi(x_j) -
# mu>; mean_at: mu(z)), by one fold where mu is a sum over the sample.
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

# How much of mu is in each column of V: functions of a sketch are sums over the
# landmarks as they are.
center_mass <- function(object, v) {
  if (is.null(object$sample$sketch)) colSums(v) else numeric(ncol(v))
}

# L^c of some of the new points, whose mean embedding is `at`.
centered_cross <- function(object, new, at, rows) {
  sample_cross(object$sample, new, rows) -
    outer(at[rows] - object$norm2, object$at, `+`)
}

# --- Spectrum ----------------------------------------------------------------

# Eigenpairs of K^c: list(values, vectors, total = tr K^c, square = |K^c|_F^2).
# All of them, or the leading `ncomp`: of a large matrix by block Krylov
# iteration, which never forms K^c. Values that are rounding of the largest, or
# of what they are differences of, are 0.
centered_spectrum <- function(centered, ncomp = NULL) {
  # From here on the iteration is the faster one: a few times its basis.
  few <- !is.null(ncomp) && centered$n >= max(1200, 5 * ncomp)
  spectrum <- (if (few) krylov_spectrum(centered, ncomp)) %||%
    dense_spectrum(centered, ncomp)
  values <- spectrum$values
  scale <- max(values[1L], abs(centered$at), centered$norm2)
  spectrum$values[values < rounding_of(centered$n, scale)] <- 0
  spectrum
}

# NULL where squares of the entries over- or underflow, or the iteration does
# not converge.
krylov_spectrum <- function(centered, ncomp) {
  n <- centered$n
  # Basis, what survives a restart, blocks, accumulators, small matrices.
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
    c(pairs, list(total = sum(centered_diagonal(centered)), square = square))
  }
}

dense_spectrum <- function(centered, ncomp) {
  k <- centered_matrix(centered)
  n <- centered$n
  ncomp <- ncomp %||% n
  # Beyond a quarter all of them take less time.
  pairs <- .Call(C_r_eigen, k, if (4 * ncomp <= n) ncomp else n)
  if (length(pairs$values) > ncomp) {
    kept <- seq_len(ncomp)
    pairs <- list(values = pairs$values[kept],
                  vectors = take_columns(pairs$vectors, kept))
  }
  c(pairs, list(total = sum(diag(k)), square = sum(k^2)))
}

# The eigenpairs of K^c that are more than rounding.
positive_pairs <- function(centered) {
  s <- centered_spectrum(centered)
  kept <- s$values > 0
  list(values = s$values[kept], vectors = take_columns(s$vectors, kept))
}

# The source for many products with K: stored where a look at memory costs less
# than its values.
product_source <- function(sample) {
  if (!stores_gram(sample) && stores_matrix(sample$n, NCOL(sample$x))) {
    native_source(NULL, sample_matrix(sample))
  } else {
    sample_source(sample)
  }
}

# The larger the matrix is, the more columns it takes.
stores_matrix <- function(n, d) {
  bytes <- 8 * n^2
  d > (if (bytes <= 2^28) 16 else 64) && bytes < memory_available() / 2
}

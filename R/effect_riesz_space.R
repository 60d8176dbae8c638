# The spaces of Riesz regressions: points of all rows with a kernel, and
# functionals as rows of features. A space is list(sample: of all rows; like:
# the covariates as they came; columns: these as numbers; pool: those of a
# target; dose: is a treatment the first column?; means: are means of columns
# matched exactly?; approximation: landmarks or features, numbers).

# Points of raw columns with the kernel of the request, its bandwidth that of
# the pooled rows: twice the median distance of standardized columns by default.
riesz_sample <- function(x, kernel, scale, pool = NULL) {
  pooled <- rbind(x, pool)
  own <- is.null(kernel)
  if (own) {
    kernel <- kernel_rbf()
    scale <- scale %||% TRUE
  }
  check_definite(kernel)
  sample <- fit_sample(pooled, kernel, scale)
  if (own) {
    sample$kernel$bandwidth <- 2 * sample$kernel$bandwidth
    sample$kernel$rule <- paste("twice", sample$kernel$rule)
  }
  if (is.null(pool)) sample else sample_take(sample, seq_len(nrow(x)))
}

skew_limit <- 2

warn_skewed <- function(x) {
  z <- column_spreads(x)$z
  skew <- colMeans(z^3) / pmax(colMeans(z^2), 1e-300)^1.5
  two <- apply(x, 2L, \(column) length(unique(column)) < 3L)
  far <- abs(skew) > skew_limit & !two
  if (any(far)) {
    warn_kernmean(
      "the distribution of ", quoted(colnames(x)[far]), " is skewed (",
      format_number(max(abs(skew[far])), 2L), "), and kernels see little of ",
      "its long tail; take logarithms or normal scores", kind = "skewed"
    )
  }
}

# Columns without penalty of points.
free_columns <- function(space, z) {
  z <- unname(z)
  cbind(rep(1, nrow(z)), if (space$means) z, if (space$means && space$dose) {
    z[, 1L] * take_columns(z, -1L)
  })
}

# The map of some rows of the space, its centers drawn among them.
space_map <- function(space, rows) {
  sample <- sample_take(space$sample, rows)
  count <- space$approximation$landmarks
  if (!is.null(count)) {
    centers <- sort(sample.int(sample$n, min(count, sample$n)))
    return(landmark_map(sample, centers, "x"))
  }
  if (!is.null(space$approximation$features)) {
    return(fourier_map(list(sample = sample), space$approximation$features,
                       "x"))
  }
  exact_map(sample, "x")
}

# A functional is list(z: points), list(z, without: points, of which the
# values are taken away), list(z, along: a direction of the points, in which
# derivatives are taken) or list(at: values of an embedding at all points of
# the space, mean: of its columns without penalty).
functional_rows <- function(space, map, rows, functional) {
  small <- small_map(map)
  at <- \(z) point_features(small, map$sample, list(z = z))
  if (!is.null(functional$at)) {
    if (map$kind == "fourier") {
      stop_input("'features' must be NULL for a target that is no sample of ",
                 "rows, and for weights of a numeric treatment; 'landmarks' ",
                 "are for any")
    }
    k <- matrix(functional$at[rows][map$centers], 1L)
    return(list(m = section_features(small, k), m_h = t(functional$mean)))
  }
  z <- functional$z
  check_memory(nrow(z), map$r, "use landmarks = or features =", copies = 2)
  if (!is.null(functional$along)) {
    # A constant has none.
    return(list(m = feature_slopes(small, map$sample, z, functional$along),
                m_h = 0 * free_columns(space, z)))
  }
  of <- \(z) list(m = at(z), m_h = free_columns(space, z))
  if (is.null(functional$without)) of(z) else
    Map(`-`, of(z), of(functional$without))
}

# Derivatives of features along a direction of the points.
feature_slopes <- function(map, sample, z, along) {
  if (map$kind == "fourier") {
    turned <- drop(product(t(along), map$omega))
    waves <- sin(product(cbind(unname(z), 1), rbind(map$omega, map$offset)))
    return(-sqrt(2 / map$r) * waves * rep(turned, each = nrow(z)))
  }
  section_features(map, section_slopes(
    sample$kernel, z, take_rows(sample$x, map$centers), along
  ))
}

check_slopes <- function(kernel) {
  if (!kernel_has(kernel, "derivatives")) {
    stop_input("'kernel' must have derivatives, as kernel_rbf(), ",
               "kernel_matern() and kernel_poly() have, not be the ",
               format_kernel(kernel))
  }
}

# d k(z + t along, s)/dt at 0 for each pair of rows.
section_slopes <- function(kernel, z, s, along) {
  of <- \(points, weights) drop(product(points, as.matrix(along * weights)))
  if (kernel_has(kernel, "inner products")) {
    powers <- if (kernel$degree == 1) 1 else kernel$degree *
      fold_store(kernel_poly(kernel$degree - 1L, kernel$offset), z, s)
    return(powers * matrix(of(s, 1), nrow(z), nrow(s), byrow = TRUE))
  }
  theta2 <- rep_len(kernel$bandwidth, ncol(z))^2
  steps <- outer(of(z, 1 / theta2), of(s, 1 / theta2), \(a, b) b - a)
  if (kernel_has(kernel, "Gaussian form")) {
    return(fold_store(kernel, z, s) * steps)
  }
  # With a = sqrt(2 nu) r: nu = 3/2 or 5/2.
  smooth <- kernel$family == "matern52"
  falls <- fold_store(
    kernel_matern(1 / 2, kernel$bandwidth / sqrt(if (smooth) 5 else 3)), z, s
  )
  steps * falls * if (smooth) {
    5 / 3 * (1 - log(pmax(falls, .Machine$double.xmin)))
  } else {
    3
  }
}

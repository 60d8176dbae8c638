# The spaces of Riesz regressions, and functionals as rows of features.

# The points of all rows with their kernel.
#   sample     the points, as a sample
#   like       the covariates as they came
#   columns    these as numbers
#   pool       those of a target that is a sample of rows, or NULL
#   dose       is a treatment the first column of the points?
#   means      are the means of the columns matched exactly?
#   approximation   `landmarks` or `features`, a number, or NULL; `least`, the
#                   smallest penalty
new_space <- function(sample, like = NULL, columns = NULL, pool = NULL,
                      dose = FALSE, means = FALSE, approximation = NULL) {
  list(sample = sample, like = like, columns = columns, pool = pool,
       dose = dose, means = means, approximation = approximation)
}

# The average that a functional takes of functions in a space.
#   z          points, a row for each row that it is averaged over
#   without    points, whose values are taken away from those at z
#   along      a direction of the points, in which derivatives at z are taken
#   rows       the rows of the sample that z belong to; NULL: other rows
# or, where it is no mean over rows,
#   at         the values of an embedding at all points of the space
#   mean       the mean of the columns without penalty
#   center     the mean of the points, NULL where it is not known
new_average <- function(z = NULL, without = NULL, along = NULL, rows = NULL,
                        at = NULL, mean = NULL, center = NULL) {
  list(z = z, without = without, along = along, rows = rows, at = at,
       mean = mean, center = center)
}

# The sample of the raw columns x with the kernel of the request. The bandwidth
# is chosen from the rows of x and of `pool`; by default it is twice the median
# distance of standardized columns.
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

# The columns without penalty at points z: the constant 1 and, if means are
# matched, the coordinates and their products with the dose.
free_columns <- function(space, z) {
  z <- unname(z)
  cbind(rep(1, nrow(z)), if (space$means) z, if (space$means && space$dose) {
    z[, 1L] * take_columns(z, -1L)
  })
}

# The feature map for some rows of the space; centers are drawn among these
# rows.
space_map <- function(space, rows) {
  sample <- sample_take(space$sample, rows)
  count <- space$approximation$landmarks
  if (!is.null(count)) {
    centers <- sort(sample.int(sample$n, min(count, sample$n)))
    return(landmark_map(sample, centers, "x"))
  }
  if (!is.null(space$approximation$features)) {
    return(fourier_map(sample, space$approximation$features, "x"))
  }
  # With all that is left of K, one eigenvalue of K/n is a hundredth of the
  # smallest penalty at most. Few rows cost little in full.
  exact_map(sample, "x", if (sample$n > most_in_full)
    space$approximation$least / 100 else 0)
}

most_in_full <- 1000L

# A list of m and m_h, the functional of the features of a map and of the
# columns without penalty, with a line for each row of the average; `own` are
# the lines of the rows of the map, whose features are f, where these are in it.
functional_rows <- function(space, map, rows, average, f) {
  small <- small_map(map)
  if (!is.null(average$at)) {
    if (map$kind == "fourier") {
      stop_input("'features' must be NULL for a target that is no sample of ",
                 "rows, and for weights of a numeric treatment; 'landmarks' ",
                 "are for any")
    }
    k <- matrix(average$at[rows][map$centers], 1L)
    return(list(m = section_features(small, k), m_h = t(average$mean)))
  }
  z <- average$z
  check_memory(nrow(z), map$r, "use landmarks = or features =", copies = 2)
  if (!is.null(average$along)) {
    # The derivative of a constant is 0.
    return(list(m = feature_slopes(small, map$sample, z, average$along),
                m_h = 0 * free_columns(space, z)))
  }
  features_at <- \(z) point_features(small, map$sample, list(z = z))
  m_h <- free_columns(space, z)
  if (!is.null(average$without)) {
    return(list(m = features_at(z) - features_at(average$without),
                m_h = m_h - free_columns(space, average$without)))
  }
  own <- match(rows, average$rows)
  if (anyNA(own)) {
    return(list(m = features_at(z), m_h = m_h))
  }
  m <- matrix(0, nrow(z), map$r)
  m[own, ] <- f
  m[-own, ] <- features_at(take_rows(z, -own))
  list(m = m, m_h = m_h, own = own)
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

# d k(z + u along, s)/du at u = 0 for each pair of rows z and s.
section_slopes <- function(kernel, z, s, along) {
  if (kernel_has(kernel, "parts")) {
    # Parts of other columns than the direction has are constant along it.
    moved <- Filter(\(part) any(along[part$at] != 0), kernel$parts)
    return(Reduce(`+`, lapply(moved, \(part) {
      part$times * section_slopes(part, take_columns(z, part$at),
                                  take_columns(s, part$at), along[part$at])
    }), matrix(0, nrow(z), nrow(s))))
  }
  along_line <- \(points, weights) {
    drop(product(points, as.matrix(along * weights)))
  }
  if (kernel_has(kernel, "inner products")) {
    powers <- if (kernel$degree == 1) 1 else kernel$degree *
      fold_store(kernel_poly(kernel$degree - 1L, kernel$offset), z, s)
    return(powers * matrix(along_line(s, 1), nrow(z), nrow(s), byrow = TRUE))
  }
  theta2 <- rep_len(kernel$bandwidth, ncol(z))^2
  steps <- outer(along_line(z, 1 / theta2), along_line(s, 1 / theta2),
                 \(a, b) b - a)
  if (kernel_has(kernel, "Gaussian form")) {
    return(fold_store(kernel, z, s) * steps)
  }
  # A Matern kernel with nu = 3/2 or 5/2 has a slope that follows from exp(-a),
  # `falls`, with a = sqrt(2 nu) r.
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

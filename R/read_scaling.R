# The units of columns. A fitted kernel carries in its field `scaling` the
# record that turns the user's points into those that it takes, or NULL for
# none; see new_scaling(). The scaled points are (x - center)/factor, or
# (x - center) W.

#' Units of the columns
#'
#' What the argument `scale` of the functions of this package does to the
#' columns of a sample, so that one bandwidth measures them alike.
#'
#' \describe{
#'   \item{`FALSE`}{Columns are taken as they are.}
#'   \item{`TRUE`}{Columns less their means, divided by their standard
#'     deviations.}
#'   \item{`"whiten"`}{\eqn{W(x - \bar x)}{W(x - mean)}, with \eqn{W =
#'     D^{-1}R^{-1/2}}{W = R^(-1/2) D^(-1)} from the standard deviations D and
#'     the correlations R: Euclidean distances become Mahalanobis distances.
#'     Directions in which nothing varies, to 1e-10 of the largest standard
#'     deviation, are left out; points that span n - 1 dimensions are refused,
#'     as all their whitened distances are equal.}
#' }
#' Bandwidths, noise and the offset of a polynomial are in these units. Means
#' and standard deviations (or W) are those of the sample, for tests of the
#' pooled one; `fit$kernel$scaling` holds them for new points.
#'
#' Without `scale`, columns whose standard deviations differ more than tenfold
#' are a warning of class `kernmean_warning_units` (not for kernels with a
#' bandwidth for each column, or of your own); `scale = FALSE` says that they
#' are as they should be.
#'
#' @section Columns of all kinds: Logical values are 0 and 1; dates, times and
#' durations are days, whatever their unit; \pkg{bit64}'s integers are read
#' exactly, sparse matrices of \pkg{Matrix} as dense ones. In new data of a
#' formula a date or time stays one. What comes round
#' again, as the hour h of a day, is two columns, `cbind(cos(2 * pi * h / 24),
#' sin(2 * pi * h / 24))`. Factors count by equal or different levels, ordered
#' factors by the places of their levels, see [kernel_gower()]; both are refused
#' where a kernel of numbers is needed, for which `as.integer()` makes these
#' places of an ordered factor.
#' @docType methods
#' @name units
#' @seealso [glossary]; [gram()], [kernel_rbf()].
#' @examples
#' kme(iris[, 1:4], scale = "whiten")
NULL

# The argument `scale` of a door is NULL where it was not given.
a_scale <- new_kind("FALSE, TRUE or \"whiten\"", \(x) {
  isTRUE(x) || isFALSE(x) || identical(x, "whiten")
})

asks_scale <- function(scale) !is.null(scale) && !isFALSE(scale)

# The scaling of columns by those of x.
#   type     TRUE, or "whiten"
#   center   d means
#   factor   d standard deviations; for "whiten" a d x d root W of the inverse
#            covariance
#   back     the inverse of W
#   rank     the rank of W
#   columns  the names of the columns
new_scaling <- function(x, scale, name) {
  spreads <- column_spreads(x)
  # Equal values differ from their mean by rounding only.
  spread <- ifelse(is_constant(x), 1, spreads$spread)
  scaling <- list(type = scale, center = spreads$unit * spreads$center,
                  factor = spreads$unit * spread)
  if (identical(scale, "whiten")) {
    root <- whitening(spreads$z / rep(spread, each = nrow(x)), name)
    scaling$back <- root$back * rep(scaling$factor, each = ncol(x))
    scaling$factor <- root$w / scaling$factor
    scaling$rank <- root$rank
  }
  scaling$columns <- colnames(x)
  scaling
}

# The columns less their means (z), the means (center) and the standard
# deviations (spread), each in a unit of the column, a power of two, so that no
# square over- or underflows.
column_spreads <- function(x) {
  ends <- .Call(C_r_column_ranges, x)
  unit <- vapply(pmax(-ends[1L, ], ends[2L, ]), power_below, 1)
  z <- x / rep(unit, each = nrow(x))
  center <- colMeans(z)
  z <- z - rep(center, each = nrow(x))
  list(z = z, unit = unit, center = center,
       spread = sqrt(colSums(z^2) / max(1, nrow(x) - 1)))
}

# The largest power of two up to x, `zero` for 0.
power_below <- function(x, zero = 1) {
  if (x > 0) max(2^min(floor(log2(x)), 1023), .Machine$double.xmin) else zero
}

is_constant <- function(x) {
  ends <- .Call(C_r_column_ranges, x)
  ends[1L, ] == ends[2L, ]
}

dependent_below <- 1e-10

# Two symmetric roots, `w` of the inverse of the correlation matrix of the
# standardized columns z, and `back` of the correlation matrix. Both are 0 in
# directions in which nothing varies but by rounding; `rank` counts the others.
whitening <- function(z, name) {
  n <- nrow(z)
  check_result(z, "the standardized points", quoted(name))
  s <- svd(z, nu = 0L)
  kept <- s$d > dependent_below * s$d[1L]
  rank <- sum(kept)
  if (rank >= n - 1L) {
    stop_input(
      "'scale' must not be \"whiten\" for ", count_of(n, "point"), " in ",
      count_of(ncol(z), "column"), " of '", name, "', all as far from each ",
      "other once they are whitened; take scale = TRUE"
    )
  }
  v <- take_columns(s$v, kept)
  spread <- s$d[kept] / sqrt(n - 1)
  list(w = v %*% (t(v) / spread), back = v %*% (t(v) * spread), rank = rank)
}

# The scaling of kernel_gower(). It divides each column by its mean distance
# over all pairs of different points, and leaves out a column whose distances
# are all 0. For a data frame it also says which columns are `nominal`, and has
# what frame_levels() returns.
gower_scaling <- function(x) {
  found <- if (is.data.frame(x)) frame_levels(x)
  x <- place_levels(x, found$places)
  mean_distance <- vapply(seq_len(ncol(x)), \(j) column_distance(x[, j]), 1)
  scaling <- list(type = "gower", center = numeric(ncol(x)),
                  factor = ifelse(mean_distance > 0, mean_distance, Inf),
                  columns = colnames(x))
  if (is.data.frame(x)) {
    scaling$nominal <- vapply(x, is_nominal, NA)
    scaling[names(found)] <- found
    check_memory(nrow(x), sum(lengths(scaling$levels)), "use fewer levels",
                 copies = 2)
  }
  scaling
}

# The levels of the nominal factors of a data frame, and `places`, the levels of
# its ordered factors; both by column.
frame_levels <- function(x) {
  list(levels = lapply(Filter(is_nominal, x), \(z) levels(as_factor(z))),
       places = lapply(Filter(is.ordered, x), levels))
}

# Gini's mean difference of numbers, or the share of pairs whose levels differ.
column_distance <- function(x) {
  n <- length(x)
  pairs <- max(1, n * (n - 1))
  if (is_nominal(x)) {
    counts <- as.double(table(x))
    return(1 - sum(counts * (counts - 1)) / pairs)
  }
  unit <- power_below(max(abs(x)))
  z <- sort(x) / unit
  unit * (2 * sum((2 * seq_len(n) - n - 1) * (z - z[1L])) / pairs)
}

# The points as kernel_gower() takes them: numbers, divided by their mean
# distance, and then indicators of levels, halved so that the absolute
# differences of two points add up to the distance of their levels. A level that
# was not seen before is as far from all others.
mixed_points <- function(scaling, x) {
  nominal <- scaling$nominal
  numbers <- as.matrix(place_levels(x, scaling$places)[!nominal])
  numbers <- numbers / rep(scaling$factor[!nominal], each = nrow(x))
  codes <- Map(\(z, levels, a) {
    code <- outer(as.character(z), levels, `==`) + 0
    code[rowSums(code) == 0, ] <- -1 / length(levels)
    code / (2 * a)
  }, x[nominal], scaling$levels, scaling$factor[nominal])
  z <- unname(cbind(numbers, do.call(cbind, codes)))
  dimnames(z) <- list(
    given_rows(x),
    c(names(x)[!nominal], paste0(rep(names(codes), lengths(scaling$levels)),
                                 ".", unlist(scaling$levels), recycle0 = TRUE))
  )
  z
}

# Points in the units of the user are taken to those of the kernel, and back.
scale_points <- function(kernel, x) {
  scaling <- kernel$scaling
  if (is.null(scaling)) {
    return(x)
  }
  if (!is.null(scaling$levels)) {
    return(mixed_points(scaling, x))
  }
  z <- x - rep(scaling$center, each = nrow(x))
  z[] <- if (is.matrix(scaling$factor)) z %*% scaling$factor else
    z / rep(scaling$factor, each = nrow(x))
  check_finite(z, "the scaled points")
}

unscale_points <- function(kernel, z) {
  scaling <- kernel$scaling
  if (is.null(scaling)) {
    return(z)
  }
  z[] <- if (is.matrix(scaling$factor)) z %*% scaling$back else
    z * rep(scaling$factor, each = nrow(z))
  z + rep(scaling$center, each = nrow(z))
}

# A step of 1 along a column of the user (the first one), in the units of the
# kernel.
first_direction <- function(kernel, d, column = 1L) {
  factor <- kernel$scaling$factor
  if (is.matrix(factor)) factor[column, ] else
    replace(numeric(d), column, if (is.null(factor)) 1 else 1 / factor[column])
}

# The mixture of the user in the units of the kernel. Its covariances are
# converted; variances, if it has these instead, are in these units already.
scale_mixture <- function(kernel, mixture) {
  if (is.null(kernel$scaling)) {
    return(mixture)
  }
  mixture$means <- scale_points(kernel, mixture$means)
  if (!is.null(mixture$covariances)) {
    factor <- kernel$scaling$factor
    map <- if (is.matrix(factor)) factor else diag(1 / factor, length(factor))
    mixture$covariances <- map_covariances(mixture$covariances, map)
  }
  mixture
}

# The covariances, d x d x m, of points that are multiplied by the d x d matrix
# `map`.
map_covariances <- function(covariances, map) {
  covariances[] <- apply(covariances, 3L, \(s) {
    crossprod(map, matrix(s, nrow(map)) %*% map)
  })
  covariances
}

most_units_apart <- 10

# Warns if the columns differ much in their spread: a kernel with one bandwidth,
# or none, sees little but the columns that vary most.
warn_units <- function(x, name) {
  spreads <- if (nrow(x) > 1L) .Call(C_r_column_spreads, x)
  varying <- spreads[is.finite(spreads)]
  factor <- if (length(varying) > 1L) exp(max(varying) - min(varying)) else 1
  if (factor > most_units_apart) {
    top <- which.max(spreads)
    column <- if (is.null(colnames(x))) paste("column", top) else
      paste0("'", colnames(x)[top], "'")
    warn_kernmean(
      "the standard deviations of the columns of '", name, "' differ by a ",
      "factor of ", format_number(factor, 2L), ", and ", column, ", the ",
      "largest, outweighs the others: 'scale = TRUE' divides each by its own ",
      "('scale = FALSE' says that the units are as they should be)",
      kind = "units"
    )
  }
}

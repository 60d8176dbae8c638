#' Matrix of kernel values
#'
#' The values of a kernel at all pairs of rows of two data sets.
#'
#' @param x A numeric matrix or data frame, points in rows (n rows, d columns);
#'   a vector is one column.
#' @param y The same for the second set (m rows); `x` itself when missing.
#' @param kernel A kernel, such as [kernel_rbf()]; without `y` by name.
#' @param ... Must be empty.
#' @param scale `FALSE`, `TRUE` or `"whiten"`: the units of the columns, see
#'   [gram()]; those of `x` decide.
#' @return The plain n by m matrix \eqn{k(x_i, y_j)}{k(x_i, y_j)}, with the row
#'   names of `x` and `y`. A bandwidth that is to be chosen is chosen from `x`
#'   alone; `fit$kernel` of a fit holds a kernel whose bandwidth is a number.
#'
#' @details Time O(nmd), half of that when `y` is missing; memory is the result.
#' A matrix that would not fit is refused before it is allocated (the limit is
#' what the system has free, or `options(kernmean.memory = bytes)`). Most uses
#' need no matrix: [kme()] and its methods sum over tiles of it.
#' @seealso [glossary]
#' @examples
#' x <- as.matrix(iris[, 1:4])
#' K <- kernel_matrix(x, kernel = kernel_rbf())
#' K[1:3, 1:3]
#' image(K, useRaster = TRUE)
#' @export
kernel_matrix <- function(x, y = x, kernel = kernel_rbf(), ...,
                          scale = FALSE) {
  asked <- request(kernel_matrix_arguments)
  x <- read_points(asked$x)
  y <- if (!is.null(asked$y)) check_newdata(asked$y, x, "y")
  units <- fit_units(kernel_of(x, asked$kernel), x, asked$scale)
  k <- fold_store(units$kernel, units$x,
                  if (!is.null(y)) scale_points(units$kernel, y))
  names <- list(rownames(x), rownames(y %||% x))
  if (length(unlist(names))) dimnames(k) <- names
  k
}

kernel_matrix_arguments <- door_table(
  "kernel_matrix", x = anything, y = unless_given(anything),
  kernel = unless_given(a_kernel), scale = unless_given(a_scale)
)

# --- Kernels fitted to data ----------------------------------------------

# The kernel fitted to points, and the points in its units.
#   kernel  its bandwidth a number, with the scaling that `scale` asks for, or
#           the scaling that it had
#   x       n x d matrix, the points as the kernel takes them
#   raw     the points in the units of the user, NULL where these are x
new_units <- \(kernel, x, raw) list(kernel = kernel, x = x, raw = raw)

fit_units <- function(kernel, x, scale = NULL, name = "x") {
  if (kernel_has(kernel, "factors")) {
    if (asks_scale(scale)) {
      stop_input("'scale' must be FALSE for kernel_gower(), which has units ",
                 "of its own")
    }
    scale <- NULL
    if (!kernel_has(kernel, "scaling")) kernel$scaling <- gower_scaling(x)
  }
  if (kernel_has(kernel, "scaling")) {
    check_scaled_kernel(kernel, x, scale, name)
  } else if (asks_scale(scale)) {
    for (part in if (identical(scale, "whiten")) kernel_parts(kernel)) {
      if (length(part$bandwidth) > 1L || !is.null(part$columns)) {
        stop_input("'kernel' must have one bandwidth, for all columns, for ",
                   "scale = \"whiten\", which turns the axes")
      }
    }
    kernel$scaling <- new_scaling(x, scale, name)
  }
  z <- scale_points(kernel, x)
  kernel <- fit_kernel(kernel, z, name)
  scaled <- kernel_has(kernel, "scaling")
  if (is.null(scale) && !scaled && !kernel_has(kernel, "function")) {
    parts <- kernel_parts(kernel)
    parts <- parts[lengths(lapply(parts, `[[`, "bandwidth")) <= 1L]
    for (at in unique(lapply(parts, `[[`, "at"))) {
      warn_units(if (is.null(at)) x else take_columns(x, at), name)
    }
  }
  new_units(kernel, z, if (scaled) x)
}

check_scaled_kernel <- function(kernel, x, scale, name) {
  scaling <- kernel$scaling
  if (!is.null(scale) && !identical(scale, scaling$type)) {
    stop_input("'scale' must be ", deparse(scaling$type), " with the ",
               "kernel of a fit that was scaled so, not ", deparse(scale))
  }
  d <- length(scaling$center)
  nominal <- if (is.data.frame(x)) unname(vapply(x, is_nominal, NA))
  ordered <- if (is.data.frame(x)) names(Filter(is.ordered, x))
  if (ncol(x) != d || differ_in_names(scaling$columns, colnames(x)) ||
        !identical(nominal, unname(scaling$nominal)) ||
        !identical(ordered, names(scaling$places))) {
    stop_input("'", name, "' must have the ", count_of(d, "column"),
               " that the kernel was scaled for, in their order and with its ",
               "factors: ", shorten(scaling$columns))
  }
}

# Do the names of columns a and b differ, where both are given? A single column
# may have any name.
differ_in_names <- function(a, b) {
  length(a) > 1L && length(b) && !identical(a, b)
}

most_points_for_exact_median <- 20000
median_pairs <- 1e6

# The kernel with its bandwidth as a number, chosen from x where it must be.
fit_kernel <- function(kernel, x, name = "x") {
  if (kernel_has(kernel, "parts")) {
    return(fit_sum(kernel, x, name))
  }
  bandwidth <- kernel$bandwidth
  if (is.null(bandwidth)) {
    return(kernel)
  }
  if (is.character(bandwidth)) {
    return(median_bandwidth(kernel, x, name))
  }
  if (is.function(bandwidth)) {
    bandwidth <- bandwidth(x)
    take(bandwidth, several_positive, "bandwidth(x)")
    kernel$rule <- "a function of the data"
  }
  if (!length(bandwidth) %in% c(1L, ncol(x))) {
    stop_input(
      "'bandwidth' must be one number or ", ncol(x),
      ", one for each column, not ", length(bandwidth), " numbers"
    )
  }
  if (length(bandwidth) > 1L) {
    bandwidth <- in_order(bandwidth, colnames(x), "bandwidth", "the columns")
  }
  kernel$bandwidth <- unname(bandwidth)
  kernel
}

median_bandwidth <- function(kernel, x, name = "x") {
  kernel$rule <- "all points are equal"
  kernel$bandwidth <- 1
  unit <- power_of_two(x)
  if (nrow(x) == 1L || unit == 0) {
    return(kernel)
  }
  l1 <- kernel$family %in% c("laplace_l1", "gower")
  source <- native_source(new_kernel(if (l1) "l1dist" else "sqdist", "", unit),
                          x)
  exact <- nrow(x) <= most_points_for_exact_median
  # The core returns two medians: of all distances, and of the positive ones.
  distances <- if (exact) {
    .Call(C_r_kernel_median, source)
  } else {
    .Call(C_r_kernel_sampled_median, source, median_pairs)
  }
  distances <- unit * if (l1) distances else sqrt(distances)
  if (!is.finite(distances[1L])) {
    stop_kernmean("numeric", "distances overflow; rescale the columns of '",
                  name, "'")
  }
  if (distances[2L] > 0) {
    kernel$bandwidth <- distances[2L]
    kernel$rule <- paste0(if (distances[1L] > 0) "the median distance" else
      "the median of the positive distances", if (!exact) {
        paste(" of", format_count(median_pairs), "random pairs")
      })
  }
  kernel
}

# The distances from which a rule makes bandwidths: without the zeros if the
# median is 0, and 1 if no distance is left.
positive_distances <- function(distances) {
  if (isTRUE(sum(distances == 0) > length(distances) / 2)) {
    distances <- distances[distances > 0]
  }
  if (length(distances)) distances else 1
}

# The largest power of two up to half the range of the widest column; in this
# unit no squared distance over- or underflows. It is 0 if all points are equal.
power_of_two <- function(x) {
  ends <- .Call(C_r_column_ranges, x)
  power_below(max(ends[2L, ] / 2 - ends[1L, ] / 2), 0)
}

# The numbers of the columns of x that a part of a kernel takes.
columns_at <- function(columns, x, name) {
  if (is.null(columns)) {
    return(seq_len(ncol(x)))
  }
  known <- if (is.character(columns)) colnames(x) else seq_len(ncol(x))
  wrong <- setdiff(columns, setdiff(known, known[duplicated(known)]))
  if (length(wrong)) {
    stop_input("'columns' of a kernel must each be one of the columns of '",
               name, "' (", if (is.null(known)) "which have no names" else
                 shorten(known, 8L), "), not ", describe(wrong[1L]))
  }
  match(columns, known)
}

fit_sum <- function(kernel, x, name) {
  kernel$parts <- lapply(kernel$parts, \(part) {
    part$at <- columns_at(part$columns, x, name)
    fit_kernel(part, take_columns(x, part$at), name)
  })
  kernel
}

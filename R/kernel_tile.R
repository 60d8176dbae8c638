# The border to the folds of the core (core/tile.c). A fold goes through the
# tiles of a Gram matrix and keeps sums over them, or stores the values. Without
# y it takes the pairs of points of x, each pair once. Without a kernel (NULL) x
# is a Gram matrix itself. The folds of a kernel that is an R function run in R,
# over blocks of rows.

# The source: two sets of points with their kernel, as the core takes them
# (km_source), by position.
#   kernel  NULL where x holds kernel values, else family, degree, offset,
#           center and scale of the columns, and for a sum the families,
#           degrees, offsets, numbers of columns and factors of its parts
#   x       n x d matrix of points, or n x n matrix of kernel values
#   y       m x d matrix of points, NULL for x itself
new_native_source <- function(kernel, x, y = NULL) list(kernel, x, y)

# The source of points and a fitted kernel; the core centers and scales the
# columns while it packs them. `center` is the point that becomes the origin:
# this gives another polynomial kernel and does not change the others.
native_source <- function(kernel, x, y = NULL, center = NULL) {
  if (is.null(kernel)) {
    return(new_native_source(NULL, x))
  }
  if (kernel_has(kernel, "parts")) {
    return(sum_source(kernel, x, y, center))
  }
  kernel <- unclass(kernel)
  points <- if (is.null(y)) x else y
  d <- ncol(points)
  scale <- rep_len(if (is.null(kernel$bandwidth)) 1 else 1 / kernel$bandwidth,
                   d)
  if (kernel$family == "poly") {
    center <- center %||% numeric(d)
  } else {
    ends <- .Call(C_r_column_ranges, points)
    if (is.null(center)) center <- exact_center(ends[1L, ], ends[2L, ])
    if (kernel$family == "energy") {
      ends <- .Call(C_r_column_ranges, rbind(x, y))
    }
    check_reach(kernel, ends, center, scale)
  }
  family <- switch(kernel$family, gower = "laplace_l1", kernel$family)
  new_native_source(list(family, as.integer(kernel$degree),
                         as.double(kernel$offset), center, scale), x, y)
}

# The source of a sum of products: its points have the columns of each part, one
# part after the other.
sum_source <- function(kernel, x, y, center) {
  each <- lapply(kernel$parts, \(part) {
    native_source(part, take_columns(x, part$at),
                  take_columns(y, part$at), center[part$at])
  })
  joined <- lapply(1:5, \(field) {
    unlist(lapply(each, \(source) source[[1L]][[field]]))
  })
  columns <- \(set) do.call(cbind, lapply(each, `[[`, set))
  parts <- c(joined[1:3], list(part_widths(kernel$parts),
                               part_times(kernel$parts)))
  new_native_source(c(list("sum", 1L, 0), joined[4:5], list(parts)),
                    columns(2L), columns(3L))
}

# The center of columns with these ends. Centering changes no stationary kernel,
# but it saves digits: a column that lies far from 0 for its width is centered
# where differences are exact (Sterbenz: all values lie between half and twice
# the center). The center of any other column is 0.
exact_center <- function(low, high) {
  far <- low > 0 & high <= 3 * low | high < 0 & low >= 3 * high
  center <- numeric(length(low))
  center[far] <- low[far] / 2 + high[far] / 2
  center
}

# Scaled coordinates of the second set must be finite. Those of the first may
# overflow: then distances are infinite and kernel values 0. The energy kernel
# takes the root of squares, which must be finite in both sets.
check_reach <- function(kernel, ends, center, scale) {
  reach <- abs(ends - rep(center, each = 2L)) * rep(scale, each = 2L)
  most <- if (kernel$family == "energy") 1e150 else .Machine$double.xmax
  if (!isTRUE(all(reach <= most))) {
    stop_kernmean("numeric", "scaled coordinates overflow; rescale the ",
                  "columns of 'x'")
  }
}

fold_store <- function(kernel, x, y = NULL, center = NULL) {
  m <- if (is.null(y)) nrow(x) else nrow(y)
  check_memory(nrow(x), m, "use fewer rows, or kme() with the estimator ",
               "\"kme\" or \"skmse\", which stores no matrix")
  fold(kernel, x, y, center, identity, rbind, \(source) {
    .Call(C_r_kernel_store, source)
  })
}

fold_rows <- function(kernel, x, y = NULL, center = NULL) {
  fold(kernel, x, y, center, rowSums, c, \(source) {
    .Call(C_r_kernel_rows, source)
  })
}

fold_diagonal <- function(kernel, x, center = NULL) {
  value <- flat_diagonal(kernel)
  if (!is.null(value)) {
    return(rep(value, nrow(x)))
  }
  if (kernel_has(kernel, "function")) {
    return(vapply(seq_len(nrow(x)), \(i) {
      drop(call_kernel(kernel, take_rows(x, i), NULL))
    }, 1))
  }
  source <- native_source(kernel, x, NULL, center)
  check_overflow(kernel, .Call(C_r_kernel_diagonal, source))
}

# K v, as a vector if it has one column or one row.
fold_apply <- function(kernel, x, y = NULL, v, center = NULL) {
  drop(fold(kernel, x, y, center, \(k) k %*% v, rbind, \(source) {
    .Call(C_r_kernel_apply, source, as.matrix(v))
  }))
}

# The result of `native` on the source. A kernel that is an R function is called
# for blocks of rows, about a million values at a time: `consume` turns the
# values of a block into its result, and `combine` joins the results.
fold <- function(kernel, x, y, center, consume, combine, native) {
  if (!kernel_has(kernel, "function")) {
    source <- native_source(kernel, x, y, center)
    return(check_overflow(kernel, native(source)))
  }
  y <- y %||% x
  size <- max(1, floor(2^20 / nrow(y)))
  parts <- lapply(row_panels(seq_len(nrow(x)), size), \(rows) {
    consume(call_kernel(kernel, take_rows(x, rows), y))
  })
  unname(do.call(combine, parts))
}

# The rows in blocks of at most `size`, as a list.
row_panels <- function(rows, size) {
  # A single block is not copied.
  if (length(rows) <= size) {
    return(list(rows)[length(rows) > 0L])
  }
  starts <- seq(1, length(rows), by = size)
  lapply(starts, \(start) rows[start:min(start + size - 1, length(rows))])
}

# The matrix of means over blocks, from their sums and their numbers of rows and
# columns. A product of two sizes may exceed the largest integer.
block_means <- function(sums, rows, columns = rows) {
  sums / outer(as.double(rows), as.double(columns))
}

call_kernel <- function(kernel, x, y) {
  y <- y %||% x
  k <- kernel$fun(x, y)
  if (inherits(k, "Matrix")) k <- as.matrix(k)
  if (!is.numeric(k) || length(k) != as.double(nrow(x)) * nrow(y) ||
        (is.matrix(k) && nrow(k) != nrow(x))) {
    stop_input(
      "the kernel function must return a numeric ", nrow(x), " x ", nrow(y),
      " matrix, not ", describe(k)
    )
  }
  check_finite(k, "the value of the kernel function")
  matrix(as.double(k), nrow(x), nrow(y))
}

# The values, if they are finite; only unbounded kernels can overflow.
check_overflow <- function(kernel, values, of = "'x'") {
  if (!kernel_has(kernel, "flat diagonal") && !is_finite(values)) {
    stop_kernmean("numeric",
                  "kernel values overflow; rescale the columns of ", of)
  }
  values
}

# The border to the core's folds over the tiles of a Gram matrix (core/tile.c).
# `y = NULL` is the symmetric walk over x. Without a kernel (NULL) x is a Gram
# matrix itself. A kernel that is an R function takes the same folds block of
# rows by block of rows, in R.

# What the core takes for a sample (km_source): list(kernel, x, y). The points
# are centered and scaled as they are packed. `center`, if given, is where the
# origin is moved to: that makes another polynomial kernel, others see none.
native_source <- function(kernel, x, y = NULL, center = NULL) {
  if (is.null(kernel)) {
    return(list(NULL, x, NULL))
  }
  if (kernel_has(kernel, "parts")) {
    return(sum_source(kernel, x, y, center))
  }
  points <- y %||% x
  d <- ncol(points)
  scale <- rep_len(if (is.null(kernel$bandwidth)) 1 else 1 / kernel$bandwidth,
                   d)
  if (kernel$family == "poly") {
    center <- center %||% numeric(d)
  } else {
    ends <- .Call(C_r_column_ranges, points)
    center <- center %||% exact_center(ends[1L, ], ends[2L, ])
    if (kernel$family == "energy") {
      ends <- .Call(C_r_column_ranges, rbind(x, y))
    }
    check_reach(kernel, ends, center, scale)
  }
  family <- switch(kernel$family, gower = "laplace_l1", kernel$family)
  list(list(family, as.integer(kernel$degree), as.double(kernel$offset),
            center, scale), x, y)
}

# That of a sum of products: the columns of each part, one part after the other.
sum_source <- function(kernel, x, y, center) {
  each <- lapply(kernel$parts, \(part) {
    native_source(part, take_columns(x, part$at),
                  take_columns(y, part$at), center[part$at])
  })
  of <- \(what) unlist(lapply(each, \(source) source[[1L]][[what]]))
  bind <- \(what) do.call(cbind, lapply(each, `[[`, what))
  list(list("sum", 1L, 0, of(4L), of(5L),
            list(of(1L), of(2L), of(3L), part_widths(kernel$parts),
                 part_times(kernel$parts))),
       bind(2L), bind(3L))
}

# The same source with other bandwidths.
rescale_source <- function(source, bandwidth) {
  source[[1L]][[5L]] <- rep_len(1 / bandwidth, ncol(source[[2L]]))
  source
}

# No stationary kernel can see a centering, but rounding can: a column that lies
# far from 0 for its width is centered where the differences are exact
# (Sterbenz: between half and twice the center), any other is left as it is.
exact_center <- function(low, high) {
  far <- low > 0 & high <= 3 * low | high < 0 & low >= 3 * high
  center <- numeric(length(low))
  center[far] <- low[far] / 2 + high[far] / 2
  center
}

# Scaled coordinates must be numbers (those of a first set may overflow: its
# distances do then, and its kernel values are 0); so must the squares that the
# energy kernel takes the root of, in both sets.
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

# K v; a vector if it is one column or one row.
fold_apply <- function(kernel, x, y = NULL, v, center = NULL) {
  drop(fold(kernel, x, y, center, \(k) k %*% v, rbind, \(source) {
    .Call(C_r_kernel_apply, source, as.matrix(v))
  }))
}

# What the core gives; or of a kernel that is an R function what `combine` makes
# of what `consume` makes of the values of rows, about a million at a time.
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

# Rows, so many at a time.
row_panels <- function(rows, size) {
  # All at once without a copy.
  if (length(rows) <= size) {
    return(list(rows)[length(rows) > 0L])
  }
  starts <- seq(1, length(rows), by = size)
  lapply(starts, \(start) rows[start:min(start + size - 1, length(rows))])
}

# Means over blocks of rows and columns. The product of two sizes may be more
# than an integer holds.
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

# Only kernels that are not bounded can overflow.
check_overflow <- function(kernel, values, of = "'x'") {
  if (!kernel_has(kernel, "flat diagonal") && !is_finite(values)) {
    stop_kernmean("numeric",
                  "kernel values overflow; rescale the columns of ", of)
  }
  values
}

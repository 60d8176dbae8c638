# Folds over the tiles of a Gram matrix (core/tile.c). `y = NULL` is the
# symmetric walk over x. A kernel that is an R function takes the same folds
# block of rows by block of rows, in R.

# Codes of km_family, in the order of core/kernel.h.
families <- c(
  "rbf", "laplace_l1", "laplace_l2", "matern32", "matern52", "poly", "energy",
  "sqdist", "l1dist"
)

# What the core needs to know of a kernel: the points are centred and scaled
# first. `points` is the second set, `x` the first one where there are two.
native_kernel <- function(kernel, points, x = NULL) {
  d <- ncol(points)
  scale <- if (is.null(kernel$bandwidth)) 1 else 1 / kernel$bandwidth
  scale <- rep_len(scale, d)
  centre <- numeric(d)
  if (kernel$family != "poly") {
    ends <- .Call(C_r_column_ranges, points)
    centre <- exact_centre(ends)
    check_reach(kernel, ends, centre, scale)
    if (kernel$family == "energy" && !is.null(x)) {
      check_reach(kernel, .Call(C_r_column_ranges, x), centre, scale)
    }
  }
  list(
    match(kernel$family, families) - 1L, as.integer(kernel$degree),
    as.double(kernel$offset), centre, scale
  )
}

# No stationary kernel can see a centring, but rounding can: a column that lies
# far from 0 for its width is centred where the differences are exact (Sterbenz:
# between half and twice the centre), any other is left as it is.
exact_centre <- function(ends) {
  far <- ends[1L, ] > 0 | ends[2L, ] < 0
  narrow <- pmax(abs(ends[1L, ]), abs(ends[2L, ])) <=
    3 * pmin(abs(ends[1L, ]), abs(ends[2L, ]))
  ifelse(far & narrow, ends[1L, ] / 2 + ends[2L, ] / 2, 0)
}

# Scaled coordinates must be numbers (those of a first set may overflow: its
# distances do then, and its kernel values are 0); so must the squares that the
# energy kernel takes the root of, in both sets.
check_reach <- function(kernel, ends, centre, scale) {
  reach <- abs((ends - rep(centre, each = 2L)) * rep(scale, each = 2L))
  most <- if (kernel$family == "energy") 1e150 else .Machine$double.xmax
  if (!all(reach <= most)) {
    stop_kernmean(
      "numeric", "scaled coordinates overflow; rescale the columns of 'x'"
    )
  }
}

# What the core takes the values of a Gram matrix from (core/source.h): a kernel
# and one or two sets of points, centred at `centre` if that is given; or a
# symmetric matrix.
native_source <- function(kernel, x, y = NULL, centre = NULL) {
  spec <- if (is.null(y)) {
    native_kernel(kernel, x)
  } else {
    native_kernel(kernel, y, x)
  }
  if (!is.null(centre)) spec[[4L]] <- as.double(centre)
  list(spec, x, y)
}

native_matrix <- function(k) {
  list(NULL, k, NULL)
}

fold_store <- function(kernel, x, y = NULL) {
  m <- if (is.null(y)) nrow(x) else nrow(y)
  check_memory(
    nrow(x), m, "use fewer rows, or kme() and predict(), which store no matrix"
  )
  if (kernel$family == "function") {
    return(fold_function(kernel, x, y, identity, rbind))
  }
  check_overflow(kernel, .Call(C_r_kernel_store, native_source(kernel, x, y)))
}

fold_rows <- function(kernel, x, y = NULL) {
  if (kernel$family == "function") {
    return(fold_function(kernel, x, y, rowSums, c))
  }
  check_overflow(kernel, .Call(C_r_kernel_rows, native_source(kernel, x, y)))
}

# K v; a vector if it is one column or one row.
fold_apply <- function(kernel, x, y = NULL, v) {
  if (kernel$family == "function") {
    return(drop(fold_function(kernel, x, y, \(k) k %*% v, rbind)))
  }
  source <- native_source(kernel, x, y)
  values <- .Call(C_r_kernel_apply, source, as.matrix(v))
  check_overflow(kernel, drop(values))
}

# v'Kv
fold_quad <- function(kernel, x, v) {
  if (kernel$family == "function") {
    return(sum(v * fold_apply(kernel, x, NULL, v)))
  }
  v <- as.matrix(v)
  source <- native_source(kernel, x)
  check_overflow(kernel, .Call(C_r_kernel_quad, source, v, v))
}

fold_diagonal <- function(kernel, x) {
  if (kernel$family == "function") {
    value <- \(i) call_kernel(kernel, x[i, , drop = FALSE], NULL)
    return(vapply(seq_len(nrow(x)), \(i) drop(value(i)), numeric(1)))
  }
  .Call(C_r_kernel_diagonal, native_source(kernel, x))
}

# Rows of a block: about 4 million kernel values at a time.
fold_function <- function(kernel, x, y, consume, combine) {
  y <- if (is.null(y)) x else y
  rows <- max(1, floor(2^22 / nrow(y)))
  starts <- seq(1, nrow(x), by = rows)
  parts <- lapply(starts, \(start) {
    block <- x[start:min(start + rows - 1, nrow(x)), , drop = FALSE]
    consume(call_kernel(kernel, block, y))
  })
  unname(do.call(combine, parts))
}

call_kernel <- function(kernel, x, y) {
  y <- if (is.null(y)) x else y
  k <- kernel$fun(x, y)
  if (!is.matrix(k) && inherits(k, "Matrix")) {
    k <- as.matrix(k)
  }
  if (!is.numeric(k) || length(k) != nrow(x) * nrow(y) ||
        (is.matrix(k) && nrow(k) != nrow(x))) {
    stop_input(
      "the kernel function must return a numeric ", nrow(x), " x ", nrow(y),
      " matrix, not ", describe(k)
    )
  }
  check_finite(k, "the value of the kernel function")
  matrix(as.double(k), nrow(x), nrow(y))
}

# Only the kernels that are not bounded can overflow.
check_overflow <- function(kernel, values) {
  bounded <- !kernel$family %in% c("poly", "energy")
  if (bounded || is.finite(sum(values)) || all(is.finite(values))) {
    return(values)
  }
  stop_kernmean(
    "numeric", "kernel values overflow; rescale the columns of 'x'"
  )
}

# Folds over the tiles of a Gram matrix (core/tile.c). `y = NULL` is the
# symmetric walk over x. A kernel that is an R function takes the same folds
# block of rows by block of rows, in R.

# Codes of km_family, in the order of core/kernel.h.
families <- c(
  "rbf", "laplace_l1", "laplace_l2", "matern32", "matern52", "poly", "energy",
  "sqdist", "l1dist"
)

# What the core needs to know: points are centred, then scaled.
native_kernel <- function(kernel, points) {
  d <- ncol(points)
  centre <- if (kernel$family == "poly") {
    numeric(d)
  } else {
    vapply(seq_len(d), \(l) exact_centre(points[, l]), numeric(1))
  }
  scale <- if (is.null(kernel$bandwidth)) 1 else 1 / kernel$bandwidth
  list(
    match(kernel$family, families) - 1L, as.integer(kernel$degree),
    as.double(kernel$offset), centre, rep_len(scale, d)
  )
}

# No stationary kernel can see a centring, but rounding can: a column that lies
# far from 0 for its width is centred where the differences are exact (Sterbenz:
# between half and twice the centre), any other is left as it is.
exact_centre <- function(column) {
  ends <- range(column)
  near <- min(abs(ends))
  if (ends[1L] < 0 && ends[2L] > 0 || max(abs(ends)) > 3 * near) {
    return(0)
  }
  ends[1L] / 2 + ends[2L] / 2
}

fold_store <- function(kernel, x, y = NULL) {
  m <- if (is.null(y)) nrow(x) else nrow(y)
  check_memory(
    nrow(x), m, "use fewer rows, or kme() and predict(), which store no matrix"
  )
  if (kernel$family == "function") {
    return(fold_function(kernel, x, y, identity, rbind))
  }
  spec <- native_kernel(kernel, if (is.null(y)) x else y)
  check_overflow(kernel, .Call(C_r_kernel_store, spec, x, y))
}

fold_rows <- function(kernel, x, y = NULL) {
  if (kernel$family == "function") {
    return(fold_function(kernel, x, y, rowSums, c))
  }
  spec <- native_kernel(kernel, if (is.null(y)) x else y)
  check_overflow(kernel, .Call(C_r_kernel_rows, spec, x, y))
}

# K v for a vector v, as a vector.
fold_apply <- function(kernel, x, y = NULL, v) {
  if (kernel$family == "function") {
    return(fold_function(kernel, x, y, \(k) drop(k %*% v), c))
  }
  spec <- native_kernel(kernel, if (is.null(y)) x else y)
  values <- .Call(C_r_kernel_apply, spec, x, y, as.matrix(v))
  check_overflow(kernel, drop(values))
}

# v'Kv
fold_quad <- function(kernel, x, v) {
  if (kernel$family == "function") {
    return(sum(v * fold_apply(kernel, x, NULL, v)))
  }
  v <- as.matrix(v)
  spec <- native_kernel(kernel, x)
  check_overflow(kernel, .Call(C_r_kernel_quad, spec, x, NULL, v, v))
}

fold_diagonal <- function(kernel, x) {
  if (kernel$family == "function") {
    value <- \(i) call_kernel(kernel, x[i, , drop = FALSE], NULL)
    return(vapply(seq_len(nrow(x)), \(i) drop(value(i)), numeric(1)))
  }
  .Call(C_r_kernel_diagonal, native_kernel(kernel, x), x)
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

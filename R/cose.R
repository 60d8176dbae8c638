# Covariance operator shrinkage (COSE): an operator sum_i beta_i phi_i (x) psi_i
# is the mean of the features of a product kernel, so an estimator of means on H
# = K_X^c o K_Y^c, the centered Gram matrices multiplied entry by entry, gives
# its weights beta.

# The estimator of an operator that a door was given by name, as an object or as
# a function.
read_operator <- function(x, argument) {
  est_operator(read_estimator(x, argument = argument), argument)
}

# "empirical", "simple shrinkage (S-COSE)", "own weights"
operator_words <- function(estimator) {
  if (is_average(estimator)) {
    "empirical"
  } else {
    c(operator_title(estimator), estimator$label)[1L]
  }
}

# The product, entry by entry, of the centered Gram matrices; K^c o K^c for one.
centered_product <- function(samples) {
  n <- samples[[1L]]$sample$n
  check_memory(n, n, "use fewer rows", copies = 4 + length(samples))
  h <- centered_matrix(samples[[1L]])
  for (sample in samples[-1L]) h <- h * centered_matrix(sample)
  if (length(samples) == 1L) h^2 else h
}

# Products of the values of two factors must be numbers; `zero`: they may be 0.
check_squares <- function(size, zero = FALSE) {
  if (!is.finite(size) || size < .Machine$double.xmin && !zero) {
    stop_kernmean(
      "numeric", "products of kernel values ",
      if (is.finite(size)) "underflow" else "overflow", "; rescale the columns"
    )
  }
}

# The weights from h: list(weights, norm2 = beta'h beta, lambda, and alpha,
# score, minimum, reference, border, select, candidates, folds where the
# estimator has them).
operator_weights <- function(h, estimator) {
  fit <- est_fit(estimator, gram_sample(new_gram(h)))
  fields <- c("weights", "norm2", "lambda", "alpha", "score", "minimum",
              "reference", "border", "select", "candidates", "folds")
  fit[intersect(fields, names(fit))]
}

# --- Spectrum of the operator ----------------------------------------------

# Eigenpairs of sum_i beta_i phi_i (x) phi_i from those of K^c, values > 0:
# list(values, decreasing; vectors, n x r: the weights V of unit-norm
# eigenfunctions sum_i V_ij phi_i). Weights may be negative, values too.
operator_spectrum <- function(values, vectors, weights) {
  if (length(values) == 0L) {
    return(list(values = numeric(), vectors = vectors))
  }
  half <- vectors * rep(sqrt(values), each = nrow(vectors))
  k <- cross(half, weights * half)
  found <- .Call(C_r_eigen, k, ncol(k))
  inverse <- vectors * rep(1 / sqrt(values), each = nrow(vectors))
  list(values = found$values,
       vectors = fix_signs(product(inverse, found$vectors)))
}

# Singular values and functions of sum_i beta_i phi_i (x) psi_i from the
# eigenpairs x of K_X^c and y of K_Y^c: list(values; left, right: n x r). The
# sign of a pair is that of the left one.
operator_svd <- function(x, y, weights) {
  n <- length(weights)
  if (length(x$values) == 0L || length(y$values) == 0L) {
    return(list(values = numeric(), left = matrix(0, n, 0L),
                right = matrix(0, n, 0L)))
  }
  roots <- lapply(list(x, y), \(pairs) rep(sqrt(pairs$values), each = n))
  found <- svd(cross(x$vectors * roots[[1L]],
                     weights * (y$vectors * roots[[2L]])))
  # Below it is what products that are 0 leave.
  rounding <- n * .Machine$double.eps * max(abs(weights)) *
    sqrt(max(x$values) * max(y$values))
  found$d[found$d <= rounding] <- 0
  left <- product(x$vectors / roots[[1L]], found$u)
  right <- product(y$vectors / roots[[2L]], found$v)
  fixed <- fix_signs(left)
  turned <- ifelse(colSums(fixed * left) < 0, -1, 1)
  list(values = found$d, left = fixed, right = right * rep(turned, each = n))
}

# A spectrum without the values that are rounding.
leading_values <- function(found) {
  values <- found$values
  n <- nrow(found[[2L]])
  kept <- abs(values) > n * .Machine$double.eps * max(abs(values), 0)
  functions <- lapply(found[-1L], \(v) {
    matrix(v[, kept], n, dimnames = list(
      NULL, sprintf("%s%d", if (length(found) > 2L) "SV" else "PC",
                    seq_len(sum(kept)))
    ))
  })
  c(list(values = values[kept], rank = sum(kept)), functions)
}

# Covariance operator shrinkage (COSE). An operator sum_i beta_i phi_i (x) psi_i
# is the mean of the features of a product kernel, so that an estimator of means
# on H = K_X^c o K_Y^c, the centered Gram matrices multiplied entry by entry,
# gives its weights beta.

# The estimator of an operator, which a door was given by name, as an object or
# as a function.
read_operator <- function(x, argument) {
  est_operator(read_estimator(x, argument = argument), argument)
}

# "Kernel PCA (S-COSE)", or the title alone for the empirical operator.
operator_title <- function(title, estimator) {
  if (is_average(estimator)) title else
    paste0(title, " (", operator_label(estimator), ")")
}

# H, the entrywise product of the centered Gram matrices, or K^c o K^c for one.
centered_product <- function(samples) {
  n <- samples[[1L]]$sample$n
  check_memory(n, n, "use fewer rows", copies = 4 + length(samples))
  h <- centered_matrix(samples[[1L]])
  for (sample in samples[-1L]) h <- h * centered_matrix(sample)
  if (length(samples) == 1L) h^2 else h
}

# Stops if products of kernel values overflow or underflow. `size` is a sum of
# such products; with `zero` it may be 0.
check_squares <- function(size, zero = FALSE) {
  if (!is.finite(size) || size < .Machine$double.xmin && !zero) {
    stop_kernmean(
      "numeric", "products of kernel values ",
      if (is.finite(size)) "underflow" else "overflow", "; rescale the columns"
    )
  }
}

# The fields of the estimator's fit to H that become fields of the operator: the
# weights beta, norm2 = beta'H beta, and what the estimator has chosen.
operator_weights <- function(h, estimator) {
  fit <- est_fit(estimator, gram_sample(new_gram(h)))
  fields <- c("weights", "norm2", "lambda", "alpha", "score", "minimum",
              "reference", "border", "select", "candidates", "folds", "guard")
  fit[intersect(fields, names(fit))]
}

# Shrinkage leaves the share 1 - alpha of the operator; NULL means that there is
# no shrinkage.
share_left <- \(shrinkage) if (is.null(shrinkage)) 1 else 1 - shrinkage$alpha

# --- Spectrum of the operator ----------------------------------------------

# The spectrum of sum_i beta_i phi_i (x) phi_i from the positive eigenpairs of
# K^c. With negative weights there may be negative values.
operator_spectrum <- function(pairs, weights) {
  values <- numeric()
  vectors <- pairs$vectors
  if (length(pairs$values)) {
    root <- rep(sqrt(pairs$values), each = nrow(vectors))
    half <- vectors * root
    eigen <- .Call(C_r_eigen, cross(half, weights * half), ncol(half))
    values <- eigen$values
    vectors <- fix_signs(product(vectors * (1 / root), eigen$vectors))
  }
  leading_values(list(values = values, vectors = vectors))
}

# The spectrum of sum_i beta_i phi_i (x) psi_i from the eigenpairs x of K_X^c
# and y of K_Y^c.
operator_svd <- function(x, y, weights) {
  n <- length(weights)
  if (length(x$values) == 0L || length(y$values) == 0L) {
    none <- matrix(0, n, 0L)
    return(leading_values(list(values = numeric(), left = none, right = none)))
  }
  roots <- lapply(list(x, y), \(pairs) rep(sqrt(pairs$values), each = n))
  svd <- svd(cross(x$vectors * roots[[1L]],
                   weights * (y$vectors * roots[[2L]])))
  # Singular values up to this size may be the rounding errors of a product that
  # is 0.
  rounding <- n * .Machine$double.eps * max(abs(weights)) *
    sqrt(max(x$values) * max(y$values))
  svd$d[svd$d <= rounding] <- 0
  leading_values(paired_functions(svd, x$vectors / roots[[1L]],
                                  y$vectors / roots[[2L]]))
}

# Singular values and functions from singular vectors, which are coordinates on
# the columns of `left` and `right`. The left function decides the sign of a
# pair.
paired_functions <- function(svd, left, right) {
  left <- product(left, svd$u)
  list(values = svd$d, left = fix_signs(left),
       right = fix_signs(product(right, svd$v), left))
}

# The spectrum of an operator, without the values up to `least`. By default
# values are left out that are no larger than the rounding error of the largest.
#   values       by decreasing size
#   rank         r, their number
#   vectors      n x r matrix: the weights of unit-norm eigenfunctions, sum_i
#                V_ij phi_i; or instead, for two variables,
#   left, right  n x r matrices: those of singular functions
leading_values <- function(spectrum, least = NULL) {
  values <- spectrum$values
  least <- least %||%
    (nrow(spectrum[[2L]]) * .Machine$double.eps * max(abs(values), 0))
  kept <- abs(values) > least
  rank <- sum(kept)
  name <- if (length(spectrum) > 2L) "SV" else "PC"
  functions <- lapply(spectrum[-1L], \(v) {
    matrix(v[, kept], nrow(v), dimnames = list(
      NULL, paste0(name, seq_len(rank), recycle0 = TRUE)
    ))
  })
  c(list(values = values[kept], rank = rank), functions)
}

# The spectrum with its leading `ncomp` components, and a warning if there are
# fewer. `what` names the operator in the warning.
keep_components <- function(spectrum, ncomp, what) {
  if (is.null(ncomp)) {
    return(spectrum)
  }
  warn_components(ncomp, spectrum$rank, what)
  kept <- seq_len(min(ncomp, spectrum$rank))
  spectrum$values <- spectrum$values[kept]
  for (name in intersect(c("vectors", "left", "right"), names(spectrum))) {
    spectrum[[name]] <- take_columns(spectrum[[name]], kept)
  }
  spectrum
}

warn_components <- function(ncomp, rank, what) {
  if (!is.null(ncomp) && ncomp > rank) {
    warn_kernmean("'ncomp' is ", ncomp, ", more than the rank of ", what, ", ",
                  rank, ": so many components are kept")
  }
}

# The numbers of the leading components that an argument asks for among p; NULL
# asks for all.
leading_components <- function(asked, p, name = "ncomp") {
  if (is.null(asked)) {
    return(seq_len(p))
  }
  asked <- take(asked, count(), name)
  if (asked > p) {
    stop_input("'", name, "' must be at most ", p, ", the components of the ",
               "fit, not ", asked)
  }
  seq_len(asked)
}

# The columns of v with signs that do not depend on the LAPACK at hand: the
# first entry within 1e-8 of the largest in absolute value is positive
# (km_eigen's rule). If `by` is given, its columns decide the signs instead.
fix_signs <- function(v, by = v) {
  largest <- apply(by, 2, \(u) {
    u[which(abs(u) >= (1 - 1e-8) * max(abs(u)))[1L]]
  })
  v * rep(ifelse(largest < 0, -1, 1), each = nrow(v))
}

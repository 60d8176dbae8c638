# What kernel PCA, covariance operators and discriminants share: a sample whose
# features are centred by an embedding mu. With m_i = mu(x_i),
#   K^c_ij = <phi(x_i) - mu, phi(x_j) - mu> = K_ij - m_i - m_j + |mu|^2,
# for new points L^c_zj = L_zj - m_j - mu(z) + |mu|^2. mu may be any fit of
# kme(): only its values and its norm enter.

# The sample: list(n, x, gram, kernel, mean, at, norm2). `gram` is the one given
# or formed on the way; `mean` the fit mu, `at` its values m, `norm2` = |mu|^2.
# `given` says whether the user gave the gram. kernel = NULL: none was given.
centred_sample <- function(x, kernel, center) {
  named <- !inherits(center, "kme")
  if (named) center <- check_estimator(center, "center")
  given <- inherits(x, "gram")
  if (given) {
    if (!is.null(kernel)) {
      stop_input("'kernel' must not be given when 'x' is a gram")
    }
    check_definite(x$kernel)
  } else {
    if (is.null(kernel) && !named) kernel <- center$kernel
    if (is.null(kernel)) kernel <- kernel_rbf()
    check_definite(kernel)
    if (kernel$family == "function" || identical(center, "fkmse")) {
      x <- gram(x, kernel)
    }
  }
  if (named) {
    arguments <- list(x, estimator = center)
    if (!inherits(x, "gram")) arguments$kernel <- kernel
    mean <- do.call(kme.default, arguments)
    sample <- mean[c("n", "x", "gram", "kernel")]
    at <- mean$fitted
    norm2 <- mean$norm2
    if (!given) mean["gram"] <- list(NULL)
  } else {
    mean <- center
    sample <- check_sample(x, if (inherits(x, "gram")) NULL else kernel, NULL,
                           "kme")[c("n", "x", "gram", "kernel")]
    target <- check_target(mean, sample, "center")
    at <- target$at
    norm2 <- target$norm2
  }
  c(sample, list(given = given, mean = mean, at = at, norm2 = norm2))
}

# K^c as a matrix, of exactly equal halves.
centred_matrix <- function(sample) {
  check_memory(sample$n, sample$n,
               "use fewer rows, or few components (ncomp) of kme_pca()",
               copies = 3)
  source <- if (!is.null(sample$gram)) {
    native_matrix(sample$gram$K)
  } else if (sample$kernel$family == "function") {
    native_matrix(fold_store(sample$kernel, sample$x))
  } else {
    native_source(sample$kernel, sample$x)
  }
  centred <- .Call(C_r_centred, source, sample$at, sample$norm2)$k
  if (!is.finite(sum(diag(centred)))) {
    stop_kernmean("numeric", "kernel values overflow when they are centred; ",
                  "rescale them or the columns of 'x'")
  }
  centred
}

# The diagonal of K^c; `k` that of K.
centred_diagonal <- function(sample) {
  k <- if (is.null(sample$gram)) {
    fold_diagonal(sample$kernel, sample$x)
  } else {
    diag(sample$gram$K)
  }
  k - 2 * sample$at + sample$norm2
}

# --- New points ------------------------------------------------------------
# `object` is a list with n, x, gram, kernel, mean, at, norm2 (and terms, from a
# formula): a centred sample, or a fit that keeps its fields.

# newdata as list(z) of points or, where points are not known, as list(values),
# the m x n kernel values of the new points and the sample.
centred_newdata <- function(object, newdata) {
  if (is.null(object$x)) {
    values <- check_kernel_values(newdata, object$gram)
    return(list(values = values, names = rownames(values)))
  }
  z <- read_newdata(object, newdata)
  list(z = z, names = rownames(z))
}

# mu at new points.
centred_mean_at <- function(object, new) {
  if (is.null(new$z)) {
    return(drop(new$values %*% own_weights(object)))
  }
  parts_at(embedding_parts(object$mean), object$kernel, new$z)
}

# The weights of mu where it is a sum over the points of the sample, else NULL.
own_weights <- function(object) {
  parts <- merge_parts(embedding_parts(object$mean))
  part <- parts[[1L]]
  own <- length(parts) == 1L && is.null(part$mixture) && is.null(part$noise) &&
    identical(part$x, object$x)
  if (own) part$weights
}

# list(value: L^c V for V of n rows, m x p, sum_j V_jl <phi(z) - mu, phi(x_j) -
# mu>; mean_at: mu(z)), by one fold where mu is a sum over the sample.
centred_apply <- function(object, new, v) {
  v <- as.matrix(v)
  weights <- own_weights(object)
  both <- cbind(v, weights)
  own <- if (is.null(new$z)) {
    new$values %*% both
  } else {
    matrix(fold_apply(object$kernel, new$z, object$x, both), ncol = ncol(both))
  }
  if (is.null(weights)) {
    mean_at <- centred_mean_at(object, new)
  } else {
    mean_at <- own[, ncol(both)]
    own <- own[, seq_len(ncol(v)), drop = FALSE]
  }
  down <- drop(crossprod(v, object$at)) - object$norm2 * colSums(v)
  list(value = own - outer(mean_at, colSums(v)) - rep(down, each = nrow(own)),
       mean_at = mean_at)
}

# --- Spectrum ----------------------------------------------------------------

# Eigenpairs of K^c: list(values, vectors, total = tr K^c, square = |K^c|_F^2).
# All of them, or the leading `ncomp`: of a large matrix by block Krylov
# iteration, which never forms K^c. Values that are rounding of the largest, or
# of what they are differences of, are 0.
centred_spectrum <- function(sample, ncomp = NULL) {
  found <- NULL
  if (!is.null(ncomp) && sample$n >= krylov_least(ncomp)) {
    found <- krylov_spectrum(sample, ncomp)
  }
  if (is.null(found)) {
    found <- dense_spectrum(sample, ncomp)
  }
  values <- found$values
  scale <- max(values[1L], abs(sample$at), sample$norm2)
  found$values[values < rounding_of(sample$n, scale)] <- 0
  found
}

# Rows from which on the iteration is the faster one: a few times its basis.
krylov_least <- function(ncomp) {
  max(1200, 5 * ncomp)
}

# NULL where squares of the entries over- or underflow, or the iteration does
# not converge.
krylov_spectrum <- function(sample, ncomp) {
  # Basis, what survives a restart, blocks, accumulators, small matrices.
  basis <- max(400, 2 * ncomp + 160)
  check_memory(sample$n + 3 * basis, basis + ncomp + 256,
               "ask for fewer components (ncomp)", what = "a basis")
  source <- if (!is.null(sample$gram)) {
    native_matrix(sample$gram$K)
  } else if (stores_matrix(sample$n, ncol(sample$x))) {
    native_matrix(fold_store(sample$kernel, sample$x))
  } else {
    native_source(sample$kernel, sample$x)
  }
  square <- .Call(C_r_centred_square, source, sample$at, sample$norm2)
  if (!is.finite(square) || square < .Machine$double.xmin / 1e-16) {
    return(NULL)
  }
  found <- .Call(C_r_krylov, source, sample$at, sample$norm2, square, ncomp)
  if (!is.null(found)) {
    found$total <- sum(centred_diagonal(sample))
    found$square <- square
  }
  found
}

# Is it worth to store the matrix, because a look at memory costs less than its
# values? The larger it is, the more columns that takes.
stores_matrix <- function(n, d) {
  bytes <- 8 * n^2
  d > (if (bytes <= 2^28) 16 else 64) && bytes < memory_available() / 2
}

dense_spectrum <- function(sample, ncomp) {
  k <- centred_matrix(sample)
  found <- if (!is.null(ncomp) && 4 * ncomp <= sample$n) {
    .Call(C_r_eigen_leading, k, ncomp)
  }
  if (is.null(found)) {
    found <- .Call(C_r_eigen, k)
    kept <- seq_len(if (is.null(ncomp)) sample$n else ncomp)
    found <- list(values = found$values[kept],
                  vectors = found$vectors[, kept, drop = FALSE])
  }
  c(found, list(total = sum(diag(k)), square = sum(k^2)))
}

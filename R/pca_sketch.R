# Kernel PCA of a sketch, and what all operators of a sketch share. In feature
# coordinates an operator is an r x r matrix, and its eigenfunction with the
# coordinates u has the weights Wu on the landmarks.

# C^c = C - mu m' - m mu' + mm', m the coordinates of the mean that centers.
centered_moments <- function(centered, what) {
  sample <- centered$sample
  mean <- mean_coordinates(centered)
  own <- sample$moments$mean
  second_moments(sample, what) - (outer(own, mean) + outer(mean, own)) +
    outer(mean, mean)
}

# The mean of (K^c_ii)^2 over the rows, K^c_ii = u - 2 phi'm + |m|^2 with u =
# |phi|^2:
#   mean u^2 - 4 m'(mean u phi) + 4 m'Cm + 2 |m|^2 tr C - 4 |m|^2 m'mu + |m|^4.
# `wanted`: what to say to whom it takes.
fourth_moment <- function(centered, wanted) {
  moments <- centered$sample$moments
  if (is.null(moments$square)) {
    stop_input(wanted, " for a sketch without fourth moments; ",
               "kme_sketch(moments = 4) keeps them")
  }
  m <- mean_coordinates(centered)
  norm2 <- sum(m^2)
  c <- moments$covariance
  value <- moments$square - 4 * sum(m * moments$along) +
    4 * sum(m * product(c, m)) + 2 * norm2 * sum(diag(c)) -
    4 * norm2 * sum(m * moments$mean) + norm2^2
  max(0, value)
}

# What rounding leaves in W_S'AW_T where the entries of A have a relative error
# of some eps: the spectral norm of W_S'E W_T, |E|_F = eps |A|_F. `value` is
# W_S'AW_T, and the columns of W = E diag(s)^(-1/2) have the squares 1/s.
sketch_rounding <- function(value, root_x, root_y = root_x) {
  s <- 1 / column_dots(root_x)
  t <- 1 / column_dots(root_y)
  few_roundings * .Machine$double.eps *
    sqrt(sum(outer(s, t) * value^2) / (min(s) * min(t)))
}

few_roundings <- 8

# Eigenpairs of an operator of a sketch that are more than rounding:
# list(values, vectors: weights of unit-norm functions on the landmarks, rank).
sketch_pairs <- function(centered, operator, what) {
  root <- centered$sample$root
  found <- .Call(C_r_eigen, operator, ncol(operator))
  least <- max(
    sketch_rounding(second_moments(centered$sample, what), root),
    rounding_of(ncol(operator), max(found$values[1L], centered$norm2))
  )
  check_result(least, "the rounding of the covariance")
  kept <- found$values > least
  if (!any(kept)) {
    stop_input("'x' must have rows that differ: their covariance on the ",
               "landmarks is 0")
  }
  list(values = found$values[kept],
       vectors = fix_signs(product(root, found$vectors[, kept, drop = FALSE])),
       rank = sum(kept))
}

# The shrinkage of the operator, NULL for the empirical one.
sketch_shrinkage <- function(centered, operator, estimator, argument) {
  if (is.null(est_share(estimator))) {
    stop_input(
      "'", argument, "' must be \"kme\" or \"skmse\" for a sketch, not ",
      estimator_word(estimator), ", which has a weight for each row: a sketch ",
      "keeps sums over rows, and not the rows"
    )
  }
  if (is_average(estimator)) {
    return(NULL)
  }
  rho <- sum(operator^2)
  check_squares(rho)
  varrho <- fourth_moment(centered, paste0("'", argument,
                                           "' must not be \"skmse\""))
  est_shrink(estimator, list(n = centered$sample$size, rho = rho,
                             varrho = max(rho, varrho)))
}

# --- Kernel PCA --------------------------------------------------------------

pca_components.sketch_sample <- function(sample, centered, ncomp, covariance) {
  operator <- centered_moments(centered, "components")
  shrinkage <- sketch_shrinkage(centered, operator, covariance, "covariance")
  share <- if (is.null(shrinkage)) 1 else 1 - shrinkage$alpha
  found <- sketch_pairs(centered, operator, "components")
  warn_components(ncomp, found$rank, "the covariance of the sketch")
  kept <- seq_len(min(ncomp, found$rank))
  list(
    values = share * found$values[kept],
    vectors = found$vectors[, kept, drop = FALSE], scores = NULL,
    total = share * sum(diag(operator)), rank = found$rank,
    shrinkage = shrinkage
  )
}


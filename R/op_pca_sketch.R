# Kernel PCA of a sketch, and functions for all operators of sketches. In
# feature coordinates an operator is an r x r matrix, and its eigenfunction with
# the coordinates u has the weights Wu on the landmarks.

# The r x r matrix C^c = C - mu m' - m mu' + mm', where m holds the coordinates
# of the centering mean. `what` names, in an error, the result that needs the
# matrix.
centered_moments <- function(centered, what) {
  center_moments(second_moments(centered$sample, what), centered)
}

# The same matrix for the second moments of two variables.
center_moments <- function(moments, x, y = x) {
  m_x <- mean_coordinates(x)
  m_y <- mean_coordinates(y)
  moments - (outer(x$sample$moments$mean, m_y) +
               outer(m_x, y$sample$moments$mean)) + outer(m_x, m_y)
}

# The mean of (K^c_ii)^2 over the rows, K^c_ii = u - 2 phi'm + |m|^2 with u =
# |phi|^2:
#   mean u^2 - 4 m'(mean u phi) + 4 m'Cm + 2 |m|^2 tr C - 4 |m|^2 m'mu + |m|^4.
# `wanted` begins the error for a sketch without fourth moments.
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

# A bound of the rounding error in `value` = W_S'AW_T, if the entries of A have
# a relative error of a few eps: the largest spectral norm of W_S'E W_T for an
# error E with |E|_F = eps |A|_F. The columns of W, eigenvectors divided by the
# roots of their eigenvalues s, have the squared norms 1/s.
sketch_rounding <- function(value, root_x, root_y = root_x) {
  s <- 1 / column_dots(root_x)
  t <- 1 / column_dots(root_y)
  few_roundings * .Machine$double.eps *
    sqrt(sum(outer(s, t) * value^2) / (min(s) * min(t)))
}

few_roundings <- 8

# The shrunk operator of one variable: its spectrum, with weights on the
# landmarks, its trace and squared norm, the matrix `operator`, and `shrinkage`,
# NULL for the empirical operator. Errors name the result that needs the
# operator, `what`, and the `argument` that gave the estimator.
sketch_covariance <- function(centered, estimator, what, argument) {
  operator <- centered_moments(centered, what)
  shrinkage <- sketch_shrinkage(centered, operator, estimator, argument)
  root <- centered$sample$root
  eigen <- .Call(C_r_eigen, operator, ncol(operator))
  least <- max(
    sketch_rounding(second_moments(centered$sample, what), root),
    rounding_of(ncol(operator), max(eigen$values[1L], centered$norm2))
  )
  check_result(least, "the rounding of the covariance")
  if (eigen$values[1L] <= least) {
    stop_input("'x' must have rows that differ: their covariance on the ",
               "landmarks is 0")
  }
  vectors <- fix_signs(product(root, eigen$vectors))
  share <- share_left(shrinkage)
  fit <- leading_values(list(values = eigen$values, vectors = vectors), least)
  fit$values <- share * fit$values
  c(fit, list(trace = share * sum(diag(operator)),
              norm2 = share^2 * sum(operator^2), operator = share * operator,
              shrinkage = shrinkage))
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
  fit <- sketch_covariance(centered, covariance, "components", "covariance")
  fit <- keep_components(fit, ncomp, "the covariance of the sketch")
  new_components(fit$values, fit$vectors, NULL, fit$trace, fit$rank,
                 fit$shrinkage)
}

# The coordinates of the mean by which an operator is centered, W'K_SS beta =
# W'mu~(S).
mean_coordinates <- function(centered) {
  drop(cross(centered$sample$root, centered$at))
}

# Ridge regression in the axes (eigenvectors) of its normal matrix, where a
# penalty is added to each eigenvalue, so that many penalties cost little more
# than one. Effects, instruments and bags all solve their regressions here.

# A ridge regression.
#   values   r eigenvalues of the normal matrix, by axis
#   right    r numbers: the right side of the normal equations in the axes
#   z        n x r matrix: the rows in the axes, where rows are needed
#   free     how many axes, the first ones, bear no penalty
#   weights  n positive weights of the rows; the normal matrix is the mean of
#            weights * z z' over the rows
new_ridge <- function(values, right = NULL, z = NULL, free = 0L,
                      weights = NULL) {
  list(values = values, right = drop(right), z = z, free = free,
       weights = weights)
}

# A linear functional of functions in the axes of a ridge regression, averaged
# over N rows with weights of mean 1.
#   b        N x r matrix: the functional of each axis
#   weights  N weights
#   target   r numbers: the weighted mean of the rows of b
new_functional <- function(b, weights) {
  list(b = b, weights = weights,
       target = drop(cross(b, as.matrix(weights))) / nrow(b))
}

# The inverse of the normal matrix with each of L penalties, r x L. It is 0 on
# an axis that has neither an eigenvalue nor a penalty.
ridge_inverse <- function(r, lambda) ridge_solve(r, lambda, 1)

# The coefficients in the axes, r x L, for a right side of r numbers.
ridge_solve <- function(r, lambda, right = r$right) {
  penalty <- matrix(lambda, length(r$values), length(lambda), byrow = TRUE)
  penalty[seq_len(r$free), ] <- 0
  shifted <- r$values + penalty
  ifelse(shifted > 0, right / shifted, 0)
}

# The parts of a debiased functional, the functional of a regression g plus the
# mean of its representer alpha times the residuals, with the penalties mu of g
# and lambda of alpha; `target` is the mean of the functional of each axis.
# Returns the coefficients of g and of alpha; those of the `effective` weights,
# with which the debiased functional is a mean of outcomes; and edf, the degrees
# of freedom of g.
ridge_debiased <- function(r, target, lambda, mu) {
  by_lambda <- drop(ridge_inverse(r, lambda))
  by_mu <- drop(ridge_inverse(r, mu))
  list(g = by_mu * r$right, alpha = by_lambda * target,
       effective = (by_lambda + by_mu - r$values * by_lambda * by_mu) * target,
       edf = sum(r$values * by_mu))
}

# The values of a fit to all rows, a column for each of L penalties: alpha and
# the residuals of g at the n rows, and the functional of both at its N rows.
ridge_values <- function(r, functional, lambda, y) {
  alpha <- ridge_solve(r, lambda, functional$target)
  g <- ridge_solve(r, lambda)
  list(alpha = product(r$z, alpha), residuals = y - product(r$z, g),
       of_alpha = product(functional$b, alpha),
       of_g = product(functional$b, g))
}

# The same values, each from the fit without the unit of its row. `unit` and
# `functional_unit` are codes of the n and of the N rows. In a direction of
# which the other units know nothing, alpha and the residuals are 0.
ridge_left_out <- function(r, functional, lambda, y, unit, functional_unit) {
  # Rows that stand in the order of their units are not copied.
  units <- unique(c(functional_unit, unit))
  codes <- match(unit, units)
  functional_codes <- match(functional_unit, units)
  rows <- order(codes)
  others <- order(functional_codes)
  sorted <- \(x, places) if (is.unsorted(places)) take_rows(x, places) else x
  values <- ridge_values(r, functional, lambda, y)
  places <- list(rows, rows, others, others)
  left <- .Call(
    C_r_left_out, sorted(r$z, rows), r$weights[rows],
    tabulate(codes, length(units)), sorted(functional$b, others),
    nrow(r$z) / nrow(functional$b) * functional$weights[others],
    tabulate(functional_codes, length(units)),
    ridge_inverse(r, lambda) / nrow(r$z), Map(sorted, values, places)
  )
  Map(\(x, places) sorted(x, order(places)), left, places)
}

# Two-sample tests of a matrix of distances.

#' @section Distances:
#' A `dist` object with the `groups` of its points is tested by the kernel
#' \eqn{-D_{ij}}{-D_ij}, which makes the energy test: of `dist(x)` it is that of
#' `x` with [kernel_energy()]. The statistic tells all distributions apart only
#' where the distances are of (strong) negative type, as Euclidean ones are; a
#' warning of class `kernmean_warning_type` says where \eqn{-HDH/2}{-HDH/2},
#' \eqn{H = I - 11'/N}{H = I - 11'/N}, has eigenvalues below -1e-8 of the
#' largest. Then permutations are exact still, but the statistic may be 0 or
#' negative where distributions differ, and `null = "spectrum"` is refused. So
#' are estimators other than the KME, and filters, which need a positive
#' definite kernel.
#' @rdname mmd_test
#' @export
mmd_test.dist <- function(x, groups, ...) {
  if (missing(groups)) {
    stop_input("'groups' must be given with a dist object: the group of each ",
               "point")
  }
  label <- paste(deparse1(substitute(x)), "by", deparse1(substitute(groups)))
  check_named(..., refused = c("y", "kernel"))
  sample <- dist_sample(x)
  if (!is.atomic(groups) || length(groups) != sample$n || anyNA(groups)) {
    stop_input(
      "'groups' must have one value for each of the ", sample$n, " points, ",
      "none missing, not ", describe(groups)
    )
  }
  test_samples(pool_groups(sample, groups, label, "x"), ...)
}

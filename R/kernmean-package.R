#' Kernel means: better estimates, and what stands on them
#'
#' The mean of a distribution \eqn{P}{P} in a reproducing kernel Hilbert space,
#' \eqn{\mu_P = E\,k(X, \cdot)}{mu_P = E k(X, .)}, is estimated by the average
#' of \eqn{k(x_i, \cdot)}{k(x_i, .)} in most software. Shrinking that average
#' has a smaller risk. [kme()] computes the average, the shrinkage estimators
#' and the marginalized ones, which [est_kme()] and its relatives make objects;
#' [mmd_test()] and [hsic_test()] test with them whether samples come from one
#' distribution and whether variables are independent; [kme_pca()] finds
#' principal components, [kme_cov()] covariance operators, [kme_fda()]
#' discriminants, all with shrinkage, and [shrink_gram()] regularizes a Gram
#' matrix; [kme_density()] estimates densities by matching kernel means;
#' [rkhs_iv()] and [rkhs_iv_nested()] functions with instrumental variables;
#' kernels are made by [kernel_rbf()] and its relatives; [gram()] keeps a Gram
#' matrix and what has been computed of its spectrum.
#'
#' Conditions that the package signals have the class `kernmean_error` and one
#' of `kernmean_error_input` (an argument is not what it must be),
#' `kernmean_error_memory` (a matrix would not fit), `kernmean_error_numeric` (a
#' computation failed) and `kernmean_error_data` (a data set's file is missing
#' or not what it should be); warnings have the class `kernmean_warning`.
#'
#' @references
#' Muandet, K., Fukumizu, K., Sriperumbudur, B., Gretton, A. and Schölkopf, B.
#' (2014). Kernel mean estimation and Stein effect. *Proceedings of the 31st
#' International Conference on Machine Learning*, 10--18.
#' \doi{10.48550/arXiv.1306.0842}
#'
#' @useDynLib kernmean, .registration = TRUE, .fixes = "C_"
#' @importFrom grDevices hcl.colors
#' @importFrom graphics abline box contour image legend lines mtext points rug
#' @importFrom stats coef model.frame optimize predict quantile terms update
#' @keywords internal
"_PACKAGE"

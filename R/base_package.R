# The shelf base_: doors as tables of arguments, fits with four verbs, errors,
# words, folds and grids.
#
# Offers from base_condition.R: hold_warnings, stop_input, stop_kernmean,
#   user_call, warn_kernmean, without_warning.
# Offers from base_describe.R: %||%, count_of, describe,
#   describe_covariance, digits_shown, element_label, format_bytes,
#   format_count, format_number, format_several, label_of, quoted, rows_of,
#   say, shorten.
# Offers from base_request.R: anything, apply_rules, center_columns,
#   change_request, check_dots, check_given, check_order, check_pick,
#   check_result, choice, count, door_table, flag, given_rows, in_order,
#   is_a, is_finite, is_number, is_plain_list, is_several, maybe, names2,
#   need_package, new_kind, number, numbers, printed_digits,
#   program_solution, quote_words, request, stop_unused, stored, take,
#   take_columns, take_frame, take_rows, times_columns, unit_names,
#   unless_given, when, with_seed.
# Offers from base_memory.R: check_memory, memory_available.
# Offers from base_fit.R: coefficient_ends, coefficient_rows,
#   error_freedom, fit_columns, fit_frame, fit_picture, fit_rows,
#   fit_sample_of, fit_values, has_none, interval_table, kernel_columns,
#   level_names, most_printed, named_columns, named_frame, new_fit,
#   one_number, one_word, prefixed, same_version.
# Offers from base_threads.R: on_one_thread.
# Offers from base_dense.R: cholesky, column_dots, column_quantiles, cross,
#   inverse_lower, product, row_max, solve_factored, solve_lower, tcross.
# Offers from base_tune.R: cluster_folds, lapply_shown, make_folds,
#   mean_losses, progress_bar, shown_from, tried_of, tune_grid, wider_grid.

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
#' @section What all functions have in common:
#' Data are vectors, matrices or data frames (tibbles and data tables, too) of
#' numbers; dates and columns with units count as the numbers that they hold,
#' factors as levels where the help says so. Columns that are lists, and
#' characters, complex or infinite numbers, are errors. So are missing values,
#' which a kernel has no place for: `na.action = na.omit` in formulas drops
#' their rows, and `vignette("kernmean")` shows how they are imputed.
#'
#' An argument is one value unless its help says that it takes several. Words
#' that are values, such as `norm = "L1"`, keep the case they have in the help,
#' and a beginning that only one of them has is enough; estimators and estimands
#' may be in either case, `"S-KMSE"` as well as `"skmse"`.
#'
#' @references
#' Muandet, K., Fukumizu, K., Sriperumbudur, B., Gretton, A. and Schölkopf, B.
#' (2014). Kernel mean estimation and Stein effect. *Proceedings of the 31st
#' International Conference on Machine Learning*, 10--18.
#' \doi{10.48550/arXiv.1306.0842}
#'
#' @seealso [glossary]
#' @useDynLib kernmean, .registration = TRUE, .fixes = "C_"
#' @importFrom grDevices hcl.colors
#' @importFrom graphics abline box contour image legend lines mtext points rug
#' @importFrom stats coef model.frame optimize predict quantile terms update
#' @keywords internal
"_PACKAGE"

#' Glossary
#'
#' The words of these help pages that come from papers on kernels.
#'
#' \describe{
#'   \item{adversary}{The function of the instruments that a residual is tested
#'     against; see [rkhs_iv()].}
#'   \item{bag}{A sample that is one observation: the cells of a patient, the
#'     words of a text; see [bag_gram()].}
#'   \item{bandwidth}{\eqn{\theta}{theta}, the length, in units of the data,
#'     over which a kernel falls off: points much closer than it are alike,
#'     points much farther apart have nothing in common; see [kernel_rbf()]. The
#'     *median distance*, `"median"`, is the median of the distances between all
#'     points: a rule of thumb that does not look at labels.}
#'   \item{BHEP}{The test for normality of Baringhaus, Henze, Epps and Pulley:
#'     the MMD between standardized points and the normal law; see [mmd_gof()].}
#'   \item{bins}{Groups of rows that a sketch keeps sums of, so that a test can
#'     permute bins in place of rows; see [kme_sketch()].}
#'   \item{centering}{Taking a kernel mean off all features, so that their
#'     average is 0, as the mean of columns is taken off before principal
#'     components are found; `center` says which mean.}
#'   \item{COSE}{Covariance operator shrinkage estimator: S-COSE is S-KMSE,
#'     F-COSE is F-KMSE, of the mean of products of features; see [kme_cov()].}
#'   \item{covariance operator}{What the covariance matrix is for columns, for
#'     the features \eqn{k(x, \cdot)}{k(x, .)}; of two variables a
#'     *cross-covariance operator*, 0 if and only if they are independent (for
#'     kernels such as the Gaussian).}
#'   \item{embedding}{The kernel mean as a picture of its distribution: a
#'     function on the space of the data, large where there is much mass
#'     nearby.}
#'   \item{estimator}{How the kernel mean is computed from a sample; see
#'     [estimators].}
#'   \item{\eqn{\gamma_1}{gamma_1}}{The largest eigenvalue of the Gram matrix, a
#'     scale for ridges and for rounding: `lambda` of 0.03 gamma_1 is 3% of it.}
#'   \item{given z}{Among rows alike in z: conditional independence and
#'     comparisons, see [given]; the distribution of y given x, see
#'     [kme_given].}
#'   \item{Gram matrix}{K, with \eqn{K_{ij} = k(x_i, x_j)}{K_ij =
#'     k(x_i, x_j)}: the kernel values of all pairs of points; see [gram()].}
#'   \item{guard}{What draws an estimate that was chosen by leaving points out
#'     back to the average, as far as its gain may be chance; see [estimators].}
#'   \item{HSIC}{Hilbert-Schmidt independence criterion: the squared size of the
#'     cross-covariance operator of two variables; see [hsic_test()].}
#'   \item{kernel}{A function k(x, y), the likeness of two points, which is an
#'     inner product of two features; *RBF* (radial basis function) or Gaussian:
#'     \eqn{\exp(-\|x - y\|^2/(2\theta^2))}{exp(-|x - y|^2/(2 theta^2))}.}
#'   \item{KME}{Kernel mean embedding \eqn{\mu_P = E\,k(X, \cdot)}{mu_P = E k(X,
#'     .)}; of a sample, and as the name of an estimator, the plain average
#'     \eqn{\hat\mu}{mu^} of \eqn{k(x_i, \cdot)}{k(x_i, .)}; see [kme()].}
#'   \item{landmarks}{A few points that stand for all: functions are sums over
#'     them, so that cost grows with their number and not with that of the rows
#'     (Nyström's method); see [kme_landmarks()].}
#'   \item{level 2}{The kernel between distributions (`level2`), on the
#'     embeddings that the kernel between points gives; see [bag_gram()].}
#'   \item{loocv, gcv, plugin}{Rules that choose how much is shrunk, as values
#'     of `select`: the error with each point left out (leave-one-out
#'     cross-validation), its short cut (generalized cross-validation), or
#'     estimates put into the formula of the best amount; see [estimators].}
#'   \item{median heuristic}{See bandwidth.}
#'   \item{MMD}{Maximum mean discrepancy: \eqn{\|\mu_P - \mu_Q\|}{|mu_P -
#'     mu_Q|}, the distance of two embeddings, 0 if and only if the
#'     distributions are the same (for kernels such as the Gaussian); see
#'     [mmd_test()] and [kme_distance()].}
#'   \item{null distribution}{That of a statistic if nothing differs or depends,
#'     by `B` permutations of the labels unless [test_control()] says otherwise;
#'     the p-value is the share of it that is as large as what was seen.}
#'   \item{pre-image}{A point whose feature lies near a function of kernels; see
#'     [preimage()].}
#'   \item{Riesz representer}{The function \eqn{\alpha}{alpha} with which a
#'     linear functional of a regression, such as its mean over other rows, is a
#'     weighted mean of outcomes; see [kme_effect()].}
#'   \item{ridge}{A positive number, such as \eqn{\lambda}{lambda}, added to
#'     eigenvalues before they are divided by, so that small ones do little.}
#'   \item{RKHS}{Reproducing kernel Hilbert space: the functions that are sums
#'     and limits of \eqn{k(x, \cdot)}{k(x, .)}, the *features* of points x,
#'     with the inner product in which \eqn{\langle f, k(x, \cdot)\rangle =
#'     f(x)}{<f, k(x, .)> = f(x)}.}
#'   \item{shrinkage}{Drawing an estimate towards 0 or a target: some bias for
#'     less variance. S-KMSE (simple) multiplies the average by one number,
#'     F-KMSE (flexible) gives each point a weight, MKME and MMKME
#'     (marginalized) spread each point out, *smoothing* takes each point
#'     together with its neighbors, a *stack* combines some; see [estimators].}
#'   \item{sketch}{Sums of features over rows, whose size does not grow with
#'     their number, and which add up over parts of the data; see
#'     [kme_sketch()].}
#'   \item{spectral filter}{Weights on the eigenvalues of an operator by which a
#'     test looks at small eigenvalues too; see [test_filter()].}
#'   \item{target}{What an estimate is shrunk towards: 0, or an embedding that
#'     is known.}
#'   \item{\eqn{\varrho}{varrho},
#'     \eqn{\rho}{rho}}{\eqn{\mathrm{tr}(K)/n}{tr(K)/n}, the mean of k(x, x)
#'     over the points (1 for the Gaussian kernel), and
#'     \eqn{\|\hat\mu\|^2}{|mu^|^2}, the mean of all entries of K: their
#'     difference is the variance of a feature.}
#'   \item{V- and U-statistic}{Means over all pairs of points, those of a point
#'     with itself counted (`"biased"`) or left out (`"unbiased"`).}
#'   \item{whitened}{Turned and scaled so that columns have variance 1 and no
#'     correlation; see [units].}
#'   \item{witness}{\eqn{\hat\mu_x - \hat\mu_y}{mu_x - mu_y}, the function that
#'     tells two samples apart best: positive where the first is denser; see
#'     [plot()][plot.kernmean_fit].}
#' }
#' @docType methods
#' @name glossary
#' @seealso [kme()], where to begin; `vignette("kernmean")`.
NULL

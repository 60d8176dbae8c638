#' Kernel mean estimators
#'
#' The mean embedding of the distribution a sample came from, estimated by the
#' average (KME), by a shrinkage estimator with smaller risk (S-KMSE, F-KMSE),
#' by the mean over noisy copies of the points (MKME, MMKME, smoothing), or by a
#' combination of several of these (stack).
#'
#' An estimate is \eqn{\tilde\mu = \sum_i \beta_i k(x_i, \cdot)}{mu = sum_i
#' beta_i k(x_i, .)}, plus a share of the target if there is one; of smoothing
#' and stacks a sum over moved and noisy points. [estimators] has the formula of
#' each, how its parameters are selected, and which one to take.
#'
#' `coef()` gives the weights where the estimate is nothing but weights on its
#' points, so that K `coef(fit)` is `predict(fit)`; it refuses noise and
#' targets, of which [as_weights()] has the nearest. `predict()` gives the
#' embedding at new points (a fit on [as_gram()] takes their m by n kernel
#' values), [plot()][plot.kernmean_fit] the selection curve or the
#' embedding. `update()` fits again with other arguments: on the same points
#' unless `x` (or `data`) is given; another estimator drops the rule of
#' selection and own weights.
#'
#' @section Cost:
#' KME and S-KMSE sum over tiles of the Gram matrix, which is never stored:
#' O(n^2 d/2) time, O(n) memory. F-KMSE and stacks store it (8n^2 bytes) and
#' take O(n^3) time; a `gram` in place of data keeps matrix and spectrum for the
#' next call. See [estimators] for each. `predict()` takes O(nmd) time and O(n +
#' m) memory.
#'
#' @param x The sample, points in rows: a numeric matrix, a data frame (factors
#'   among its columns, as which characters are read, with a warning of class
#'   `kernmean_warning_text` where most of these are numbers or dates:
#'   [kernel_gower()]), or a vector (one column); a [gram()]
#'   (of kernel values [as_gram()]); a [kme_sketch()]; or a formula without
#'   response, `~ a + b`.
#' @param kernel A kernel, such as [kernel_rbf()]; must not be given with a
#'   `gram` or a sketch, and is the target's by default if that is a fit.
#' @param estimator The name of an estimator, an object such as [est_skmse()],
#'   or a function of your own: see [estimators].
#' @param ... For an estimator given by name, arguments of what makes it:
#'   `lambda`, `select`, `target`, `noise`, `h`, `c`, `folds`, `candidates`,
#'   `shares` or `guard`, see [estimators]; in the formula method, arguments of
#'   the default method.
#' @param weights Weights of your own, one for each point, taken as they are
#'   (not normalized); for `estimator = "kme"` only. With a formula they are
#'   looked up in `data`, one for each of its rows. Without, a result of
#'   [kme_weights()] stands for its weights, divided by their sum.
#' @param scale The units of the columns: `FALSE`, as they are; `TRUE`, divided
#'   by their standard deviations; `"whiten"`, by the root of their covariance,
#'   see [units]. Not with a `gram`, which has its own.
#' @param formula A formula without response (with one, `y ~ a + b`, the result
#'   is a conditional kernel mean, [kme_given]). Its terms are evaluated once; a
#'   data frame is all of its columns.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default, `na.action = na.omit` drops their rows, which the
#'   field `na.action` then has and `print()` counts.
#'
#' @return An object of class `kme`, a list with
#' \item{weights}{the n weights \eqn{\beta}{beta}, in all `parts` together; of a
#'   sketch those of its landmarks}
#' \item{lambda, alpha}{amount of shrinkage, 0 for KME, MKME and MMKME; `alpha`
#'   for S-KMSE only}
#' \item{harmless}{for S-KMSE: \eqn{\alpha}{alpha} up to which the risk is no
#'   larger than that of the average, an estimate of
#'   \eqn{2\Delta/(\Delta + \|f^* - \mu\|^2)}{2D/(D + |f - mu|^2)},
#'   \eqn{\Delta = E\|\hat\mu - \mu\|^2}{D = E|mu^ - mu|^2} (Theorem 1 of
#'   Muandet et al.; the least risk is at half of it):
#'   \eqn{2(\varrho - \rho)/((n - 1)\|f^* - \hat\mu\|^2)}{2 (varrho -
#'   rho)/((n - 1) |f - mu^|^2)}, at most 1}
#' \item{noise}{for MKME the variance \eqn{\sigma^2}{sigma^2}, for MMKME the
#'   variances \eqn{e_l}{e_l}, named by the columns, or the covariances given}
#' \item{fitted, norm2}{the embedding at the n points; its squared norm}
#' \item{rho, varrho}{\eqn{\rho}{rho} and \eqn{\varrho}{varrho} of [estimators]}
#' \item{h, c, covariance}{for smoothing only; the covariance is \eqn{S}}
#' \item{guard}{where there is one, see [estimators]}
#' \item{candidates, settled}{for a stack only: a data frame of the candidates,
#'   their `share`, that before the guard (`unguarded`), `score` and `mass`; its
#'   estimator with all that was chosen given}
#' \item{parts}{what smoothing and stacks are sums over: a list of lists with
#'   `sample`, `noise` (`NULL`, variances or a covariance) and `weights`}
#' \item{folds}{in how many folds points were left out by smoothing and stacks}
#' \item{score}{data frame of the selection curve, `lambda` (or `noise`, or `h`
#'   and `c`) and `score`, or `NULL`}
#' \item{minimum, reference}{the score at what was selected, and that of the KME
#'   where the score is a leave-one-out score}
#' \item{border}{is what was selected on the border of the range searched?}
#' \item{kernel}{the kernel with its bandwidth as a number}
#' \item{sample}{the sample: a list with the points `x` (`NULL` for kernel
#'   values), the `gram` if one was given, and its `kernel`}
#' \item{estimator, share}{the estimator as an object; the share of the target}
#' \item{select, n, arguments}{the rule of selection; the number of points; what
#'   was asked for}
#'
#' @references
#' Muandet, K., Sriperumbudur, B., Fukumizu, K., Gretton, A. and Schölkopf, B.
#' (2016). Kernel mean shrinkage estimators. *Journal of Machine Learning
#' Research* 17(48), 1--41. [estimators] has those of each estimator.
#' @seealso [glossary]; [kme_inner()], [kme_distance()], [kme_risk()];
#'   [as_weights()]; [confint.kme()].
#' @examples
#' x <- scale(iris[1:50, 1:4])
#' fit <- kme(x, kernel_rbf(), "fkmse")
#' fit
#' plot(fit)
#'
#' # The embedding at new points, and the same fit with less work
#' predict(fit, x[1:3, ])
#' update(fit, select = "gcv")
#'
#' # Shrinkage towards a normal distribution
#' normal <- list(weights = 1, means = matrix(0, 1, 4), covariances = diag(4))
#' kme(x, estimator = "skmse", target = normal)
#' kme(~ Sepal.Length + Sepal.Width, iris, estimator = "skmse")
#'
#' # The combination of several: no choice, and rarely far from the best
#' kme(x, kernel_rbf(1), "stack")
#'
#' # Noisy copies of the points, as noisy in each column as the data ask for
#' kme(x, estimator = "mmkme")$noise
#' @export
kme <- function(x, ...) {
  UseMethod("kme")
}

#' @rdname kme
#' @export
kme.default <- function(x, kernel = kernel_rbf(), estimator = "kme", ...,
                        weights = NULL, scale = FALSE) {
  asked <- request(kme_arguments, dots = TRUE)
  estimator <- read_estimator(estimator, ...)
  sample <- read_sample(x, asked$kernel, weights, estimator_kernel(estimator),
                        asked$scale)
  estimate_mean(sample, estimator, stored(asked))
}

kme_arguments <- door_table(
  "kme.default", x = anything, kernel = unless_given(a_kernel),
  estimator = anything, weights = anything, scale = unless_given(a_scale),
  aside = c("x", "estimator", "weights"), units = c("x", "weights")
)

#' @rdname kme
#' @export
kme.formula <- function(formula, data = NULL, subset, na.action, ...,
                        weights = NULL) {
  if (length(given_formula(environment())) == 3L) {
    read <- read_sides(c(y = "variable", x = "levels"), "weights")
    if (any(read$names$x %in% read$names$y)) refuse_same_sides()
    fit <- kme_given(read$y, read$x, ..., weights = read$weights)
    fit$y$name <- shorten(read$names$y, sep = " + ")
    return(keep_layout(fit, read))
  }
  read <- read_sides(c(x = "terms"), "weights")
  keep_layout(kme.default(read$x, ..., weights = read$weights), read)
}

# The fit of an estimator to a sample, for doors that need one on the way too.
estimate_mean <- function(sample, estimator, arguments = list()) {
  check_estimator(sample, estimator)
  new_kme(est_fit(estimator, sample), sample, estimator, arguments)
}

# Stops if what is known of the sample does not allow the estimator.
check_estimator <- function(sample, estimator) UseMethod("check_estimator")
check_estimator.kernmean_sample <- \(sample, estimator) NULL

# The fit of an estimate. The estimator keeps the target as it was read.
new_kme <- function(fit, sample, estimator, arguments) {
  check_result(fit[c("weights", "fitted", "norm2", "rho", "varrho", "minimum",
                     "reference")], "a norm or a score of the estimate")
  if ("target" %in% names(fit)) {
    estimator["target"] <- fit["target"]
    fit["target"] <- NULL
  }
  new_fit("kme", c(fit, list(
    sample = sample_support(sample), kernel = sample$kernel, n = sample$n,
    estimator = estimator, arguments = arguments
  )))
}

#' Covariance and cross-covariance operators
#'
#' The covariance operator of one variable, the cross-covariance operator of
#' two, or the tensor of more, from centered kernel features; as it is or shrunk
#' (COSE), with its spectrum.
#'
#' With centered features \eqn{\tilde\phi(x) = \phi(x) - \mu_X}{phi~(x) = phi(x)
#' - mu_X} of x and \eqn{\tilde\psi(y)}{psi~(y)} of y, the operator is
#' \eqn{\Sigma_\beta = \sum_i \beta_i \tilde\phi(x_i) \otimes
#' \tilde\psi(y_i)}{Sigma = sum_i beta_i phi~(x_i) (x) psi~(y_i)}, the mean of
#' the features of a product kernel. Its weights are those of the mean
#' [estimators] on \eqn{H = K_X^c \circ K_Y^c}{H = Kc_X o Kc_Y}, the centered
#' Gram matrices multiplied entry by entry (more factors for more variables):
#' \describe{
#'   \item{`"kme"`}{\eqn{\beta = 1/n}{beta = 1/n}, the empirical operator.}
#'   \item{`"skmse"`}{S-COSE, \eqn{\beta = (1 - \alpha)/n}{beta = (1 -
#'     alpha)/n}: eigenfunctions do not change.}
#'   \item{`"fkmse"`}{F-COSE, \eqn{\beta = (H + \lambda I)^{-1}H1_n}{beta = (H +
#'     lambda I)^(-1) H 1_n}: weights may be negative, and so may eigenvalues.}
#' }
#' The squared Hilbert-Schmidt norm is \eqn{\beta'H\beta}{beta'H beta}; of the
#' empirical cross-covariance it is the biased statistic of [hsic_test()].
#'
#' @section Spectrum:
#' With \eqn{K^c = U\Gamma U'}{Kc = U G U'}: for one variable
#' \eqn{\Gamma^{1/2}U' \mathrm{diag}(\beta) U\Gamma^{1/2} = WDW'}{G^(1/2) U'
#' diag(beta) U G^(1/2) = W D W'} gives the eigenvalues D and the eigenfunctions
#' \eqn{\sum_i V_{ij}\tilde\phi(x_i)}{sum_i V_ij phi~(x_i)}, \eqn{V =
#' U\Gamma^{-1/2}W}{V = U G^(-1/2) W}, of norm 1; for two, the singular value
#' decomposition of \eqn{\Gamma_X^{1/2}U_X' \mathrm{diag}(\beta)
#' U_Y\Gamma_Y^{1/2}}{G_X^(1/2) U_X' diag(beta) U_Y G_Y^(1/2)} gives singular
#' values and functions in the same way. Functions are positive at the first
#' point of largest weight; values below n times the precision of the largest
#' are dropped. Tensors of more than two variables have no spectrum here. With a
#' linear kernel the values are those of [cov()] times (n - 1)/n.
#'
#' A variable that has numeric columns and factors has the product of a kernel
#' of its numeric columns, which must have a bandwidth, and of 1 for equal, 0
#' for different levels of each factor.
#'
#' @section Sketches:
#' With a [kme_sketch()] of one variable or two as `x`, `vectors`, `left` and
#' `right` are weights on the landmarks; the estimator is `"kme"`, or for one
#' variable `"skmse"`, which needs `moments = 4`. O(m^3) time for m landmarks.
#' @section Cost:
#' All values are computed, whatever `ncomp`: an eigendecomposition of each
#' centered Gram matrix, about 6n^3 flops, and one of the rank's size; with
#' F-COSE another of H. Some six n by n matrices. `predict()` takes O(nm(d + r))
#' time for m points in d columns and r components.
#'
#' @inheritParams kme
#' @param x The variable: a numeric vector, matrix or data frame (one variable
#'   of several columns, factors among them), a factor, or a [gram()]; a plain
#'   list of two or more such variables, with `y` missing; or a [kme_sketch()].
#' @param y The second variable, of as many values; missing for the covariance
#'   operator of x.
#' @param kernel_x,kernel_y Kernels, see [kernel_rbf()], positive definite;
#'   bandwidths are chosen from each variable. For a list, `kernel_x` is one
#'   kernel for all or a list of kernels.
#' @param estimator KME, S-KMSE, F-KMSE, a stack of these, without target, or a
#'   function of your own, see [estimators].
#' @param ncomp Number of components to keep, all by default.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method.
#' @param kernel One kernel for all variables that have none of their own, in
#'   place of `kernel_x` and `kernel_y`.
#' @param center What features are centered by: an estimator of their mean (see
#'   [estimators]), a fit of [kme()] for one variable, or a list of these, one
#'   for each variable.
#' @param scale As in [kme()], for each variable by itself; factors and grams
#'   have none.
#' @param formula `y ~ a + b`: the cross-covariance of y and (a, b), the sum on
#'   each side being one variable; `. ~ g` has all other columns on its left.
#'   Without a left side each term is a variable: `~ a`, `~ a + b`.
#'
#' @return An object of class `kme_cov`, a list with
#' \item{values}{eigenvalues (one variable) or singular values (two) in
#'   decreasing order; `NULL` for more}
#' \item{vectors}{one variable: n x r, the weights V of the eigenfunctions}
#' \item{left, right}{two variables: n x r, the weights of the singular
#'   functions of x and y}
#' \item{rank, trace}{number of values before `ncomp`; for one variable the sum
#'   of all eigenvalues}
#' \item{norm2}{the squared Hilbert-Schmidt norm}
#' \item{operator}{of a sketch only: the operator as a matrix}
#' \item{weights, lambda, alpha, score, minimum, reference, border, estimator,
#'   select, n, arguments}{as in [kme()]}
#' \item{variables}{for each variable a list with its `name`, for a factor its
#'   `levels`, its `sample`, and the centering `mean` with its values `at` the
#'   points and its squared norm `norm2`}
#' \item{several, terms}{were the variables given as a list? The terms of a
#'   formula}
#'
#' @section Methods:
#' `coef()` gives the weights \eqn{\beta}{beta}, `summary()` the leading values
#' with their shares of the trace (or of the squared norm), `update()` fits
#' again with other arguments.
#'
#' `predict(type = "scores")` gives the m x r values of the eigenfunctions (or
#' of the left or right singular functions) at new points; `newdata` holds
#' values of that variable, or a list of the values of all. `type = "value"`
#' evaluates the operator itself, \eqn{\sum_i \beta_i \prod_l k_l^c(z_l,
#' x_{il})}{sum_i beta_i prod_l kc_l(z_l, x_il)}: `newdata` is a list of the
#' variables, rows belong together; for one variable a list of two, for pairs,
#' or one set of points. Fits by formula also take a data frame; where a
#' variable is an [as_gram()], its new values are kernel values, m by n.
#'
#' `plot(fit, type)` draws the `"spectrum"`, the `"selection"` curve, `"scores"`
#' on the two leading functions in the colors of `groups`, or the `"weights"`.
#'
#' @references
#' Muandet, K., Fukumizu, K., Sriperumbudur, B., Gretton, A. and Schölkopf, B.
#' (2014). Kernel mean estimation and Stein effect. *Proceedings of the 31st
#' International Conference on Machine Learning*. Section on covariance
#' operators. \doi{10.48550/arXiv.1306.0842}
#' @seealso [hsic_test()] for a test that the cross-covariance is 0; [kme()].
#' @examples
#' fit <- kme_cov(scale(iris[, 1:4]), estimator = "skmse", ncomp = 5)
#' fit
#' summary(fit)
#' plot(fit, "scores", groups = iris$Species)
#'
#' # What depends on what in two variables; one of them a factor
#' cross <- kme_cov(iris[, 1:2], iris[, 3:4], estimator = "skmse")
#' plot(cross, "scores")
#' kme_cov(Petal.Width ~ Species, iris)
#' predict(cross, iris[1:3, 3:4], side = "right", ncomp = 2)
#' @export
kme_cov <- function(x, ...) {
  UseMethod("kme_cov")
}

#' @rdname kme_cov
#' @export
kme_cov.default <- function(x, y, kernel_x = kernel_rbf(),
                            kernel_y = kernel_rbf(), estimator = "kme",
                            ncomp = NULL, ..., kernel = NULL, center = "kme",
                            scale = FALSE) {
  asked <- request(kme_cov_arguments)
  data <- list(x = x)
  if (!missing(y)) data["y"] <- list(y)
  several <- missing(y) && is_plain_list(x)
  centers <- read_centers(asked$center, length(if (several) x else data))
  given <- list(x = asked$kernel_x, y = asked$kernel_y)
  variables <- read_variables(data, given, kernel,
                              lapply(centers, center_kernel), alone = TRUE,
                              scale = asked$scale)
  check_operator(variables, asked$ncomp)
  fit <- fit_cov(variables, centers, asked$estimator)
  arguments <- stored(asked)
  if (!is.null(kernel)) {
    arguments[paste0("kernel_", names(data))] <- list(kernel)
  }
  new_kme_cov(fit, asked$estimator, asked$ncomp, arguments, several)
}

kme_cov_arguments <- door_table(
  "kme_cov.default", x = anything, kernel_x = unless_given(anything),
  kernel_y = unless_given(anything), estimator = read_operator,
  ncomp = maybe(count()), kernel = maybe(a_kernel), center = anything,
  scale = unless_given(a_scale), aside = c("x", "kernel"),
  rules = list(when("kernel", kernel_x = NULL, kernel_y = NULL))
)

#' @rdname kme_cov
#' @export
kme_cov.formula <- function(formula, data = NULL, subset, na.action, ...) {
  check_formula(formula, data)
  found <- formula_variables(match.call(expand.dots = FALSE), formula, data,
                             missing(na.action), parent.frame(), least = 1L)
  variables <- found$variables
  fit <- do.call(kme_cov.default, c(
    list(if (length(variables) == 1L) variables[[1L]] else variables),
    side_kernels(list(...), variables)
  ), quote = TRUE)
  fit$variables <- name_variables(fit$variables, names(variables))
  fit$terms <- keep_constants(found$terms, data)
  fit
}

# --- Arguments -------------------------------------------------------------

# What each of d variables is centered by.
read_centers <- function(center, d) {
  if (inherits(center, "kme") && d > 1L) {
    stop_input(
      "'center' must be an estimator or a list of ", d, " estimators or fits, ",
      "one for each variable, not one fit"
    )
  }
  if (!is_several(center) || is.object(center)) {
    return(rep(list(read_center(center)), d))
  }
  if (length(center) != d) {
    stop_input("'center' must have one entry for each of ", d, " variable",
               if (d > 1L) "s", ", not ", length(center))
  }
  lapply(unname(center), read_center)
}

check_operator <- function(variables, ncomp) {
  n <- check_lengths(variables)
  if (n < 2L) {
    stop_input("'", variables[[1L]]$name, "' must have at least 2 rows, not ",
               n)
  }
  for (variable in variables) {
    if (!is_definite(variable$sample$kernel)) {
      stop_input(
        "'", variable$name, "' must have a positive definite kernel, not ",
        "kernel_energy(), which is for tests of plain kernel means only"
      )
    }
  }
  if (!is.null(ncomp) && length(variables) > 2L) {
    stop_input("'ncomp' must be NULL for more than two variables, whose ",
               "tensor has no spectrum")
  }
}

# --- The operator ------------------------------------------------------------

fit_cov <- function(variables, centers, estimator) {
  samples <- Map(\(variable, center) centered_sample(variable$sample, center),
                 variables, centers)
  h <- centered_product(samples)
  # Where no point is away from all means the operator is 0.
  away <- Reduce(pmin, lapply(samples, centered_diagonal))
  check_squares(sum(diag(h)), all(away <= 0))
  fit <- operator_weights(h, estimator)
  one <- length(samples) == 1L
  if (one) {
    fit$trace <- sum(fit$weights * centered_diagonal(samples[[1L]]))
  }
  if (length(samples) <= 2L) {
    pairs <- lapply(samples, positive_pairs)
    fit <- c(fit, if (one) {
      leading_values(operator_spectrum(pairs[[1L]]$values, pairs[[1L]]$vectors,
                                       fit$weights))
    } else {
      leading_values(operator_svd(pairs[[1L]], pairs[[2L]], fit$weights))
    })
  }
  fit$variables <- Map(\(variable, sample) {
    c(variable[names(variable) != "sample"], centered_fields(sample))
  }, variables, samples)
  fit
}

# The variables of a fit under other names.
name_variables <- function(variables, names) {
  variables <- Map(\(variable, name) {
    variable$name <- name
    variable
  }, variables, names)
  stats::setNames(variables, names)
}

new_kme_cov <- function(fit, estimator, ncomp, arguments, several) {
  if (!is.null(ncomp)) {
    if (ncomp > fit$rank) {
      warn_kernmean("'ncomp' is ", ncomp, ", more than the rank of the ",
                    "operator; ", fit$rank, " components were kept")
    }
    kept <- seq_len(min(ncomp, fit$rank))
    fit$values <- fit$values[kept]
    for (name in intersect(c("vectors", "left", "right"), names(fit))) {
      fit[[name]] <- fit[[name]][, kept, drop = FALSE]
    }
  }
  new_fit("kme_cov", c(fit, list(
    estimator = estimator, n = fit$variables[[1L]]$sample$n, several = several,
    arguments = arguments
  )))
}

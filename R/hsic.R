#' Kernel independence tests
#'
#' Tests whether two or more variables, of any number of columns each, are
#' independent, by the Hilbert-Schmidt independence criterion (HSIC).
#'
#' With the Gram matrices \eqn{K} and \eqn{L} of the n values of x and y,
#' centered to \eqn{\bar K = HKH}{Kc = HKH} and \eqn{\bar L = HLH}{Lc = HLH},
#' \eqn{H = I - ee'/n}{H = I - ee'/n}, the statistic is
#' \describe{
#'   \item{`"biased"`}{\eqn{\mathrm{tr}(\bar K \bar L)/n^2}{tr(Kc Lc)/n^2}
#'     (Gretton et al. 2005). With [kernel_energy()] on both sides, n times it
#'     is the statistic of the distance covariance test.}
#'   \item{`"unbiased"`}{with \eqn{\tilde K, \tilde L}{K~, L~}, the matrices
#'     with 0 on the diagonal, \eqn{(\mathrm{tr}(\tilde K\tilde L) + e'\tilde K
#'     e \, e'\tilde L e/((n-1)(n-2)) - 2 e'\tilde K\tilde L e/(n-2))/(n(n-3))}{
#'     (tr(K~L~) + e'K~e e'L~e/((n-1)(n-2)) - 2 e'K~L~e/(n-2))/(n(n-3))} (Song
#'     et al. 2012), for n of at least 4.}
#' }
#' More than two variables are tested for joint independence by dHSIC (Pfister
#' et al. 2018): \eqn{n^{-2}\sum_{ij}\prod_l K^l_{ij} + \prod_l \bar k^l - (2/n)
#' \sum_i \prod_l \bar k^l_i}{sum_ij prod_l K^l_ij/n^2 + prod_l mean(K^l) -
#' (2/n) sum_i prod_l rowMeans(K^l)_i}.
#'
#' @section Estimators:
#' `"mkme"` and `"mmkme"` put the marginalized kernel in place of each kernel
#' (Xia et al., eq. 34): an RBF kernel with squared bandwidths \eqn{\theta^2 +
#' 2e_l}{theta^2 + 2 e_l} and a constant, the variances e chosen from each
#' variable by itself, or given: [est_mkme()] holds one for all variables,
#' [est_mmkme()] one for all columns or one for each column of every variable,
#' which then must have as many. What their equations 32 and 33 call an unbiased
#' estimator is the biased one above.
#'
#' `"skmse"` and `"fkmse"` shrink the cross-covariance operator (S-COSE, F-COSE;
#' Ramdas and Wehbe 2015): \eqn{\beta'M\beta}{beta'M beta} with \eqn{M = \bar K
#' \circ \bar L}{M = Kc o Lc}, entry by entry, and \eqn{1_n = e/n}{1_n = e/n}.
#' For S-COSE \eqn{\beta = (1 - \alpha) 1_n}{beta = (1 - alpha) 1_n}:
#' \eqn{(1 - \alpha)^2}{(1 - alpha)^2}
#' times the biased HSIC, where each permutation has an \eqn{\alpha}{alpha} of
#' its own, that of S-KMSE ([kme()]) from \eqn{\rho = \mathrm{mean}(M)}{rho =
#' mean(M)} and \eqn{\varrho = \mathrm{tr}(M)/n}{varrho = tr(M)/n}. By
#' leave-one-out, the default, it is 1 for many permutations of independent
#' data; that has cost power in some settings and gained in others, and
#' `est_skmse(select = "plugin")` shrinks less. For F-COSE
#' \eqn{\beta = (M + \lambda I)^{-1} M 1_n}{beta = (M + lambda I)^(-1) M 1_n}.
#' Unless it is given, \eqn{\lambda}{lambda} is the geometric mean of those that
#' are selected, as by [kme()], for x paired with itself and for y paired with
#' itself: so it does not depend on how x and y are paired, and the permutation
#' test keeps its level exactly. It is often so small that F-COSE is nearly the
#' plain test. An estimator of your own, [est_function()], gives the weights
#' \eqn{\beta}{beta} from M, afresh for each permutation. Operators are shrunk
#' towards 0: an estimator with a target is refused.
#'
#' @section Null distributions:
#' `"permutation"` is exact whatever the distributions: all that is chosen from
#' the data is chosen without a look at the pairing. The p-value is (1 + number
#' of draws with a statistic at least as large)/(B + 1), or with `permutations =
#' "all"` the share among all (with `blocks`, all within the blocks). Each
#' permutation of y is drawn as by
#' [sample.int()]; with more variables, those of the second, the third and so on
#' in turn. `"gamma"` takes a gamma law with the mean and variance of the biased
#' statistic under independence as Gretton et al. (2007) approximate them: an
#' approximation for large samples, and no guarantee of the level.
#'
#' @section Factors:
#' A variable that has numeric columns and factors (a data frame, or a sum in a
#' formula) has the product of a kernel of its numeric columns, which must have
#' a bandwidth, and of 1 for equal, 0 for different levels of each factor. It
#' takes no marginalized estimator.
#'
#' @section Cost:
#' If the Gram matrices have low rank, as with smooth kernels on few columns,
#' or with factors, they are replaced by incomplete Cholesky factors that leave
#' \eqn{10^{-13}}{1e-13} of the trace; where the product of the two ranks p and
#' q is less than 4n, this takes O(Bnpq) time and O(n^1.5) memory, and no n by
#' n matrix is formed. Otherwise \eqn{Bn^2/2}{Bn^2/2} operations and two
#' stored matrices, \eqn{16n^2}{16n^2} bytes (dHSIC: one for each variable).
#' `estimator = "fkmse"` factors a matrix for each permutation,
#' \eqn{O(Bn^3)}{O(Bn^3)}; a warning says when that exceeds \eqn{10^{11}}{1e11}
#' flops. Permutations are drawn in chunks of 4 MB, or of 64.
#'
#' @param x The first variable: a numeric vector, matrix or data frame (one
#'   variable of several columns, factors among them), a factor, or a [gram()];
#'   or a plain list of two or more such variables, with `y` missing.
#' @param y The second variable, of as many values (in `plot()`, see `type`).
#' @param kernel_x,kernel_y Kernels, see [kernel_rbf()]; bandwidths are chosen
#'   from each variable. For a list, `kernel_x` is one kernel for all or a list
#'   of kernels. Factors (ordered ones too) and logical vectors have the kernel
#'   1 for equal values, 0 for others, and a `gram` has its own; their kernels
#'   must not be given.
#' @param estimator The estimator of the kernel means or of the operator:
#'   `"kme"`, `"skmse"`, `"fkmse"`, `"mkme"` or `"mmkme"`, an object such as
#'   [est_skmse()], which holds its own arguments, or a function of your own,
#'   see Estimators and [est_kme()].
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method, in `plot()`, passed to [hist()], in `update()`, the arguments to
#'   change.
#' @param kernel One kernel for all variables that have none of their own, in
#'   place of `kernel_x` and `kernel_y`.
#' @param B Number of permutations; not used for `"gamma"`.
#' @param null `"permutation"` or, for two variables, `"gamma"`.
#' @param statistic `"biased"` or `"unbiased"`; dHSIC, estimators that shrink
#'   and the gamma null are made of the biased one.
#' @param permutations `NULL` for `B` random ones, `"all"` (at most 10^5: up to
#'   8 points), or a matrix with a permutation of the n values of y in each
#'   column. If a column is the identity, the observed statistic is not counted
#'   again.
#' @param blocks One value for each point; values of y change places within a
#'   block only (repeated measures, strata, sites). In the formula method it may
#'   be a variable of `data`.
#' @param progress Show a progress bar?
#' @param object A test.
#' @param type What to draw, `"null"` only; in `plot()` it may also be given as
#'   the second argument, `y`.
#' @param formula `y ~ a + b`: tests y against (a, b), the sum on each side
#'   being one variable; `. ~ g` has all other columns on its left. Without a
#'   left side each term is a variable: `~ y + a + b` tests joint independence.
#'   Terms are vectors, matrices such as `cbind(a, b)`, or factors; numbers and
#'   factors in one sum make one variable, see Factors.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#'
#' @return An object of class `c("hsic_test", "htest")`, a list with
#' `statistic`, `parameter`, `p.value`, `estimate` (the bandwidths),
#' `alternative`, `method`, `data.name` as usual for tests, and
#' \item{replicates}{the statistic of each permutation; `NULL` for `"gamma"`}
#' \item{gamma}{shape and scale, for `null = "gamma"`}
#' \item{null, type, estimator}{the null distribution, `"biased"` or
#'   `"unbiased"`, and the estimator as an object}
#' \item{lambda}{the amount of shrinkage, where there is one}
#' \item{alpha}{the shrinkage of the observed statistic, for S-COSE}
#' \item{noise}{the variances of each variable, for `"mkme"` and `"mmkme"`}
#' \item{kernel}{those of the variables, a named list; `NULL` for a factor}
#' \item{variables}{the variables, each with its name and its sample}
#' \item{ranks}{of the two factors, where the Gram matrices have low rank}
#' \item{arguments}{what was asked for}
#' Every test of this package has these fields in this order, with those of
#' [mmd_test()]; fields that do not apply are `NULL`.
#'
#' `summary()` shows kernels, shrinkage and the null distribution. In other
#' software: the bandwidth of the package dHSIC is
#' \eqn{\theta/\sqrt2}{theta/sqrt(2)}.
#'
#' `plot()` shows the null distribution with the observed value and returns the
#' draws, invisibly. `update()` tests again with other arguments: on the same
#' variables unless `x` (or `y`) is given; other data of a test by formula take
#' a new call.
#'
#' @references
#' Gretton, A., Bousquet, O., Smola, A. and Schölkopf, B. (2005). Measuring
#' statistical dependence with Hilbert-Schmidt norms. *Algorithmic Learning
#' Theory*. \doi{10.1007/11564089_7}
#'
#' Gretton, A., Fukumizu, K., Teo, C. H., Song, L., Schölkopf, B. and Smola, A.
#' (2007). A kernel statistical test of independence. *Advances in Neural
#' Information Processing Systems* 20.
#'
#' Song, L., Smola, A., Gretton, A., Bedo, J. and Borgwardt, K. (2012). Feature
#' selection via dependence maximization. *Journal of Machine Learning Research*
#' 13, 1393--1434.
#'
#' Pfister, N., Bühlmann, P., Schölkopf, B. and Peters, J. (2018). Kernel-based
#' tests for joint independence. *Journal of the Royal Statistical Society B*
#' 80(1), 5--31. \doi{10.1111/rssb.12235}
#'
#' Ramdas, A. and Wehbe, L. (2015). Nonparametric independence testing for small
#' sample sizes. *International Joint Conference on Artificial Intelligence*.
#' \doi{10.48550/arXiv.1406.1922}
#'
#' Xia, X. et al. Kernel mean estimation by marginalized corrupted
#' distributions. \doi{10.48550/arXiv.2107.04855}
#' @seealso [mmd_test()] for differences between samples.
#' @family tests
#' @examples
#' set.seed(1)
#' x <- runif(60, -1, 1)
#' y <- x^2 + rnorm(60, sd = 0.2)
#' test <- hsic_test(x, y)
#' test
#'
#' # Several columns against a factor; three variables
#' hsic_test(iris[1:50, 1:2], iris[1:50, 3:4], estimator = "skmse", B = 199)
#' hsic_test(iris[, 1:2], iris$Species, B = 199)
#' hsic_test(~ Sepal.Length + Sepal.Width + Species, iris, B = 199)
#'
#' plot(test)
#' @export
hsic_test <- function(x, ...) {
  UseMethod("hsic_test")
}

#' @rdname hsic_test
#' @export
hsic_test.default <- function(x, y, kernel_x = kernel_rbf(),
                              kernel_y = kernel_rbf(), estimator = "kme", ...,
                              kernel = NULL, B = 999,
                              null = c("permutation", "gamma"),
                              statistic = c("biased", "unbiased"),
                              permutations = NULL, blocks = NULL,
                              progress = interactive()) {
  check_dots(...)
  if (missing(x)) {
    stop_input("'x' must be given: the first variable")
  }
  label <- c(x = deparse1(substitute(x)),
             y = if (!missing(y)) deparse1(substitute(y)))
  data <- list(x = x)
  if (!missing(y)) {
    data["y"] <- list(y)
  }
  test_variables(
    data, label, if (!missing(kernel_x)) kernel_x,
    if (!missing(kernel_y)) kernel_y, estimator, kernel = kernel, B = B,
    null = null, statistic = statistic, permutations = permutations,
    blocks = blocks, progress = progress
  )
}

#' @rdname hsic_test
#' @export
hsic_test.formula <- function(formula, data = NULL, subset, na.action, ...,
                              blocks = NULL) {
  check_subset(subset)
  check_named(..., refused = c("x", "y"))
  found <- formula_variables(match.call(expand.dots = FALSE), formula, data,
                             missing(na.action), parent.frame(), least = 2L,
                             extra = "blocks")
  test_variables(list(x = found$variables),
                 paste(names(found$variables), collapse = " and "),
                 blocks = found$extra$blocks, ...)
}

# The test of data, list(x, y) or list(x: a list of variables), that `label`
# names; NULL for a kernel is the default.
test_variables <- function(data, label, kernel_x = NULL, kernel_y = NULL,
                           estimator = est_kme(), ..., kernel = NULL, B = 999,
                           null = hsic_nulls, statistic = "biased",
                           permutations = NULL, blocks = NULL,
                           progress = interactive()) {
  check_dots(...)
  options <- read_options(estimator, null, hsic_nulls, statistic, progress)
  options$operator <- !is_unshrunk(options$estimator)
  if (options$operator) {
    options$estimator <- est_operator(options$estimator, "estimator")
  }
  variables <- read_variables(data, list(x = kernel_x, y = kernel_y), kernel)
  n <- check_lengths(variables)
  check_several(variables, options, permutations)
  scheme <- check_permutations(permutations, rep(1L, n), B, blocks,
                               options$null)
  check_points(n, options)
  arguments <- list(
    label = label, kernel_x = kernel_x, kernel_y = kernel_y,
    estimator = options$estimator, kernel = kernel, B = B,
    null = options$null, statistic = options$statistic,
    permutations = permutations, blocks = blocks, progress = progress
  )
  new_hsic_test(variables, options, scheme,
                hsic_statistics(variables, options, scheme), arguments)
}

# --- Arguments -------------------------------------------------------------

hsic_nulls <- c("permutation", "gamma")

check_points <- function(n, options) {
  least <- if (options$null == "gamma") {
    6
  } else if (options$statistic == "unbiased") {
    4
  } else {
    2
  }
  if (n < least) {
    stop_input(
      "'x' must have at least ", least, " rows",
      if (options$null == "gamma") " for null = \"gamma\"",
      if (options$statistic == "unbiased") " for statistic = \"unbiased\"",
      ", not ", n
    )
  }
}

# dHSIC is the biased statistic of averages, and its permutation null.
check_several <- function(variables, options, permutations) {
  if (length(variables) == 2L) {
    return()
  }
  only <- function(ok, name, value, why = NULL) {
    must_be(ok, name, value, paste0("for more than two variables", why))
  }
  only(!options$operator, "estimator", "\"kme\", \"mkme\" or \"mmkme\"",
       ": dHSIC is made of averages, and of no operator that could be shrunk")
  only(options$statistic == "biased", "statistic", "\"biased\"")
  only(options$null == "permutation", "null", "\"permutation\"")
  only(is.null(permutations), "permutations", "NULL")
  for (variable in variables) {
    if (!is_definite(variable$sample$kernel)) {
      stop_input(
        "'", variable$name, "' must have a positive definite kernel where ",
        "there are more than two variables, not kernel_energy()"
      )
    }
  }
}

# --- The object ------------------------------------------------------------

new_hsic_test <- function(variables, options, scheme, found, arguments) {
  several <- length(variables) > 2L
  height <- found$height
  law <- found$law
  kernels <- lapply(variables, \(variable) {
    if (!is_factor_variable(variable)) variable$sample$kernel
  })
  new_test(
    "hsic_test",
    statistic = stats::setNames(height * found$observed,
                                if (several) "dHSIC" else "HSIC"),
    parameter = if (is.null(law$gamma)) {
      c(n = variables[[1L]]$sample$n, B = scheme$B)
    } else {
      law$gamma
    },
    p.value = law$p, estimate = bandwidth_estimates(kernels),
    alternative = "the variables are dependent",
    method = test_title(
      if (several) "joint independence" else "independence",
      c(if (several) "dHSIC" else "HSIC", hsic_label(options),
        if (!several) options$statistic),
      options, scheme, "all permutations"
    ),
    data.name = paste(arguments$label, collapse = " and "),
    replicates = if (!is.null(law$draws)) height * law$draws,
    gamma = law$gamma, null = options$null, type = options$statistic,
    estimator = options$estimator, lambda = found$estimator$lambda,
    alpha = found$alpha, noise = found$noise, kernel = kernels,
    variables = variables, ranks = found$ranks, arguments = arguments
  )
}

# Those that are one number, named.
bandwidth_estimates <- function(kernels) {
  each <- lapply(kernels, \(kernel) kernel$bandwidth)
  single <- unlist(each[lengths(each) == 1L])
  if (length(single)) {
    stats::setNames(single, paste("bandwidth of", names(single)))
  }
}

hsic_label <- function(options) {
  if (options$operator) {
    operator_label(options$estimator)
  } else {
    options$estimator$label
  }
}

# --- Methods ---------------------------------------------------------------

#' @export
summary.hsic_test <- function(object, ...) {
  check_dots(...)
  test_summary(object)
}

#' @rdname hsic_test
#' @export
plot.hsic_test <- function(x, y, type = "null", ...) {
  plot_type("null", if (!missing(y)) y, if (!missing(type)) type)
  plot_null(x, ...)
}

#' @rdname hsic_test
#' @export
update.hsic_test <- function(object, ...) {
  changes <- list(...)
  check_changes(changes)
  arguments <- object$arguments
  variables <- object$variables
  several <- !"y" %in% names(arguments$label)
  fitted <- !vapply(variables, \(v) is.null(variable_kernel(v)), NA)
  arguments <- spread_kernel(arguments, fitted, several)
  changes <- spread_kernel(changes, !vapply(variables, is_factor_variable, NA),
                           several)
  data <- changed_data(changes, arguments$label)
  arguments$label <- new_label(arguments$label, substitute(list(...)), data)
  # A gram stays one unless another kernel is to come.
  rekernel <- paste0("kernel_", c("x", "y")) %in% names(changes)
  inputs <- Map(variable_input, variables, if (several) rekernel[1L] else
    rekernel)
  arguments$data <- if (several) {
    list(x = inputs)
  } else {
    stats::setNames(inputs, c("x", "y"))
  }
  arguments <- merge_changes(arguments, changes[!names(changes) %in% data])
  arguments$data[data] <- changes[data]
  do.call(test_variables, arguments)
}

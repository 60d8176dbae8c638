#' Kernel independence tests
#'
#' Tests whether two or more variables, of any number of columns each, are
#' independent, by the Hilbert-Schmidt independence criterion (HSIC).
#'
#' With the Gram matrices \eqn{K} and \eqn{L} of the n values of x and y,
#' centred to \eqn{\bar K = HKH}{Kc = HKH} and \eqn{\bar L = HLH}{Lc = HLH},
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
#' variable by itself. What their equations 32 and 33 call an unbiased estimator
#' is the biased one above.
#'
#' `"skmse"` and `"fkmse"` shrink the cross-covariance operator (S-COSE, F-COSE;
#' Ramdas and Wehbe 2015): \eqn{\beta'M\beta}{beta'M beta} with \eqn{M = \bar K
#' \circ \bar L}{M = Kc o Lc}, entry by entry, and \eqn{1_n = e/n}{1_n = e/n}.
#' For S-COSE \eqn{\beta = (1 - \alpha) 1_n}{beta = (1 - alpha) 1_n}:
#' \eqn{(1 - \alpha)^2}{(1 - alpha)^2}
#' times the biased HSIC, where each permutation has an \eqn{\alpha}{alpha} of
#' its own, from \eqn{\rho = \mathrm{mean}(M)}{rho = mean(M)} and \eqn{\varrho =
#' \mathrm{tr}(M)/n}{varrho = tr(M)/n}: \eqn{(\varrho - \rho)/((\varrho -
#' \rho) + (n-1)\rho)}{(varrho - rho)/((varrho - rho) + (n-1) rho)} for
#' `"plugin"`, \eqn{n(\varrho - \rho)/((n-1)^2\rho + \varrho - \rho)}{
#' n (varrho - rho)/((n-1)^2 rho + varrho - rho)}, at most 1, for `"loocv"`. The
#' latter is 1 for many permutations of independent data; it has cost power in
#' some settings and gained in others. For F-COSE
#' \eqn{\beta = (M + \lambda I)^{-1} M 1_n}{beta = (M + lambda I)^(-1) M 1_n}.
#' Unless `lambda` is given, it is the geometric mean of those that are
#' selected, as by [kme()], for x paired with itself and for y paired with
#' itself: so it does not depend on how x and y are paired, and the permutation
#' test keeps its level exactly. It is often so small that F-COSE is nearly the
#' plain test.
#'
#' @section Null distributions:
#' `"permutation"` is exact whatever the distributions: all that is chosen from
#' the data is chosen without a look at the pairing. The p-value is (1 + number
#' of draws with a statistic at least as large)/(B + 1), or with `permutations =
#' "all"` the share among all. Each permutation of y is drawn as by
#' [sample.int()]; with more variables, those of the second, the third and so on
#' in turn. `"gamma"` takes a gamma law with the mean and variance of the biased
#' statistic under independence as Gretton et al. (2007) approximate them: an
#' approximation for large samples, and no guarantee of the level.
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
#' operations. Permutations are drawn in chunks of 4 MB, or of 64.
#'
#' @param x The first variable: a numeric vector, matrix or data frame (one
#'   variable of several columns), a factor, or a [gram()]; or a plain list of
#'   two or more such variables, with `y` missing.
#' @param y The second variable, of as many values.
#' @param kernel_x,kernel_y Kernels, see [kernel_rbf()]; bandwidths are chosen
#'   from each variable. For a list, `kernel_x` is one kernel for all or a list
#'   of kernels. Factors (ordered ones too) and logical vectors have the kernel
#'   1 for equal values, 0 for others, and a `gram` has its own; their kernels
#'   must not be given.
#' @param estimator The estimator of the kernel means, see Estimators.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method, in `plot()`, passed to [hist()].
#' @param B Number of permutations; not used for `"gamma"`.
#' @param null `"permutation"` or, for two variables, `"gamma"`.
#' @param statistic `"biased"` or `"unbiased"`; dHSIC, `"skmse"`, `"fkmse"` and
#'   the gamma null are made of the biased one.
#' @param select For `"skmse"`: `"plugin"` or `"loocv"`. For `"fkmse"`:
#'   `"loocv"`, `"gcv"` or `"printed"`, see [kme()].
#' @param lambda The shrinkage itself for `"skmse"` (\eqn{\alpha = \lambda/(1 +
#'   \lambda)}{alpha = lambda/(1 + lambda)}, then the same for all permutations)
#'   and `"fkmse"`.
#' @param permutations `NULL` for `B` random ones, `"all"` (at most 10^5: up to
#'   8 points), or a matrix with a permutation of the n values of y in each
#'   column. If a column is the identity, the observed statistic is not counted
#'   again.
#' @param blocks One value for each point; values of y change places within a
#'   block only (repeated measures, strata, sites). In the formula method it may
#'   be a variable of `data`.
#' @param progress Show a progress bar?
#' @param formula `~ a + b` or `a ~ b`, each term a variable (a matrix, a factor
#'   or a vector).
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#'
#' @return An object of class `c("hsic_test", "htest")`, a list with
#' `statistic`, `parameter`, `p.value`, `alternative`, `method`, `data.name` as
#' usual for tests, and
#' \item{replicates}{the statistic of each permutation; `NULL` for `"gamma"`}
#' \item{gamma}{shape and scale, for `null = "gamma"`}
#' \item{kernels, bandwidths}{of each variable, `NULL` where there is none}
#' \item{noise}{the variances of each variable, for `"mkme"` and `"mmkme"`}
#' \item{alpha}{the shrinkage of the observed statistic, for `"skmse"`}
#' \item{lambda}{the one in use, for `"fkmse"`}
#' \item{ranks}{of the two factors, where the Gram matrices have low rank}
#'
#' `estimate` holds the bandwidths; `summary()` shows kernels, shrinkage and the
#' null distribution. In other software: the bandwidth of the package dHSIC is
#' \eqn{\theta/\sqrt2}{theta/sqrt(2)}.
#'
#' `plot()` shows the null distribution with the observed value and returns the
#' draws, invisibly.
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
                              kernel_y = kernel_rbf(),
                              estimator = c("kme", "skmse", "fkmse", "mkme",
                                            "mmkme"),
                              ..., B = 999, null = c("permutation", "gamma"),
                              statistic = c("biased", "unbiased"),
                              select = NULL, lambda = NULL,
                              permutations = NULL, blocks = NULL,
                              progress = interactive()) {
  check_dots(...)
  options <- check_hsic_options(
    estimator, null, statistic, select, lambda, progress
  )
  given_x <- if (missing(kernel_x)) NULL else kernel_x
  given_y <- if (missing(kernel_y)) NULL else kernel_y
  if (missing(x)) {
    stop_input("'x' must be given: the first variable")
  }
  if (missing(y)) {
    data_name <- attr(x, "kernmean_data_name")
    if (is.null(data_name)) data_name <- deparse1(substitute(x))
    variables <- read_list(x, given_x, given_y)
  } else {
    data_name <- paste(deparse1(substitute(x)), "and", deparse1(substitute(y)))
    if (is_several(x)) {
      stop_input("'y' must be missing when 'x' is a list of variables")
    }
    variables <- list(
      x = read_variable(x, given_x, "x", "kernel_x"),
      y = read_variable(y, given_y, "y", "kernel_y")
    )
  }
  n <- check_lengths(variables)
  check_several(variables, options, permutations)
  scheme <- check_pairings(permutations, n, B, blocks, options)
  check_points(n, options)
  run_hsic(variables, options, scheme, data_name)
}

#' @rdname hsic_test
#' @export
hsic_test.formula <- function(formula, data = NULL, subset, na.action, ...,
                              blocks = NULL) {
  check_subset(subset)
  frame <- formula_frame(match.call(expand.dots = FALSE), formula,
                         missing(na.action), parent.frame())
  if (any(attr(attr(frame, "terms"), "order") > 1L)) {
    stop_input("'formula' must have no interactions; each term is a variable")
  }
  check_left(attr(frame, "terms"))
  blocks <- frame[["(blocks)"]]
  frame[["(blocks)"]] <- NULL
  if (ncol(frame) < 2L) {
    stop_input("'formula' must have at least 2 variables, as ~ a + b, not ",
               ncol(frame))
  }
  variables <- as.list(frame)
  attr(variables, "kernmean_data_name") <- paste(names(frame),
                                                 collapse = " and ")
  hsic_test.default(variables, blocks = blocks, ...)
}

#' @export
summary.hsic_test <- function(object, ...) test_summary(object)

#' @rdname hsic_test
#' @export
plot.hsic_test <- function(x, y, ...) {
  if (!missing(y)) {
    stop_input("'y' must be missing")
  }
  plot_null(x, ...)
}

# --- Arguments -------------------------------------------------------------

check_hsic_options <- function(estimator, null, statistic, select, lambda,
                               progress) {
  estimator <- check_estimator(estimator)
  null <- check_choice(null, c("permutation", "gamma"), "null")
  statistic <- check_choice(statistic, c("biased", "unbiased"), "statistic")
  shrunk <- estimator %in% c("skmse", "fkmse")
  if (shrunk && statistic != "biased") {
    stop_input("'statistic' must be \"biased\" for estimator \"", estimator,
               "\", not \"unbiased\"")
  }
  if (null == "gamma" && estimator != "kme") {
    stop_input("'estimator' must be \"kme\" for null = \"gamma\", not \"",
               estimator, "\"")
  }
  if (null == "gamma" && statistic != "biased") {
    stop_input("'statistic' must be \"biased\" for null = \"gamma\", not ",
               "\"unbiased\"")
  }
  if (shrunk) {
    if (is.null(lambda)) {
      choices <- list(skmse = c("plugin", "loocv"),
                      fkmse = c("loocv", "gcv", "printed"))[[estimator]]
      select <- check_choice(if (is.null(select)) choices else select, choices,
                             "select")
    } else {
      lambda <- check_number(lambda, "lambda", finite = FALSE)
      if (!is.null(select)) {
        stop_input("'select' must be NULL when 'lambda' is given")
      }
    }
  } else {
    for (name in c("select", "lambda")) {
      if (!is.null(get(name))) {
        stop_input("'", name, "' must be NULL unless the estimator is ",
                   "\"skmse\" or \"fkmse\", not ", describe(get(name)))
      }
    }
  }
  list(estimator = estimator, null = null, statistic = statistic,
       select = select, lambda = lambda,
       progress = check_flag(progress, "progress"))
}

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

# dHSIC is the biased statistic and its permutation null.
check_several <- function(variables, options, permutations) {
  if (length(variables) == 2L) {
    return()
  }
  only <- function(ok, name, value) {
    if (!ok) {
      stop_input("'", name, "' must be ", value, " for more than two variables")
    }
  }
  only(!options$estimator %in% c("skmse", "fkmse"), "estimator",
       "\"kme\", \"mkme\" or \"mmkme\"")
  only(options$statistic == "biased", "statistic", "\"biased\"")
  only(options$null == "permutation", "null", "\"permutation\"")
  only(is.null(permutations), "permutations", "NULL")
  for (variable in variables) {
    if (identical(variable$kernel$family, "energy")) {
      stop_input(
        "'", variable$name, "' must have a positive definite kernel where ",
        "there are more than two variables, not kernel_energy()"
      )
    }
  }
}

# As of check_permutations(), with `complete`: is the identity among them?
check_pairings <- function(permutations, n, B, blocks, options) {
  if (options$null == "gamma" &&
        !(is.null(permutations) && is.null(blocks))) {
    stop_input(
      "'permutations' and 'blocks' must be NULL for null = \"gamma\""
    )
  }
  scheme <- check_permutations(permutations, n, B, blocks)
  if (scheme$all && !is.null(blocks)) {
    stop_input("'blocks' must be NULL for permutations = \"all\"")
  }
  if (scheme$all) {
    if (factorial(n) > most_pairings) {
      stop_input(
        "'permutations' must not be \"all\" for ", n, " points; the ",
        "permutations of at most 8 are enumerated"
      )
    }
    scheme$matrix <- all_permutations(n)
    scheme$B <- ncol(scheme$matrix)
  }
  scheme$complete <- !is.null(scheme$matrix) &&
    any(colSums(scheme$matrix != seq_len(n)) == 0)
  scheme
}

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
#' `"smooth"` smooths each variable about its own mean, with h chosen from it by
#' itself (or given), at most 0.9; a factor c changes nothing: drawing the
#' points to their mean and adding the same noise in all permutations makes
#' another RBF kernel, wider along the axes in which the variable varies. Of
#' variables that are nearly normal h is large and the kernel nearly linear:
#' with 40 points (300 data sets, `B = 99`) it found y = 0.4 x + e in 0.58 where
#' the KME did in 0.41, but x^2 + 2e in 0.24 (0.49) and sin(3x) + 0.7e in 0.09
#' (0.33). `"stack"` is one of the KME and F-COSE: shares and
#' \eqn{\lambda}{lambda} are chosen for x paired with itself and for y paired
#' with itself; the test takes the mean of the shares and the geometric mean of
#' \eqn{\lambda}{lambda}.
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
#' approximation for large samples, and no guarantee of the level. With few
#' points and heavy tails it is liberal: of 4,000 independent pairs at the
#' nominal 0.05, 25 points each, it rejects 0.055 of normal, 0.065 of t
#' variables with 3 degrees of freedom and 0.08 of Cauchy variables; of 50
#' points 0.05, 0.06 and 0.06.
#'
#' @section Clusters:
#' Points that come in clusters (the visits of a patient, the pupils of a class)
#' are not independent of each other, and permutations of them have no level.
#' With `clusters` the values of y move as whole clusters, points keeping their
#' order in them, between clusters of the same size (and block). Where y, or
#' else x, is constant within every cluster, as a treatment of whole clusters
#' is, its values move between clusters of any size (for the biased statistic of
#' two variables and estimators that are averages; sizes then count as a part of
#' what does not move): \eqn{\sum_{ij} \bar K_{ij} \bar L_{p(i)p(j)}}{sum_ij
#' Kc_ij Lc_p(i)p(j)} is the statistic for any map p of points, as the rows of
#' \eqn{ \bar K}{Kc} sum to 0. If no two clusters can change places, an error
#' says so.
#'
#' @section Many bandwidths:
#' `bandwidths = "fuse"` combines five bandwidths of [kernel_rbf()] for each
#' numeric variable in one statistic, as [mmd_test()] does for two samples: in a
#' geometric sequence from half the 5% to twice the 95% quantile of the
#' distances (of 2,000 points drawn at random, if there are more). For each pair
#' of bandwidths a and b, HSIC is studentized by its mean and standard deviation
#' over all permutations, which have closed forms (Kazi-Aoual et al. 1995), and
#' the statistic is \eqn{\log \mathrm{mean}_{ab} \exp z_{ab}}{log mean_ab
#' exp(z_ab)}. One permutation p-value answers for all, at its exact level. The
#' form is that of MMD-FUSE (Biggs et al. 2023), the idea to combine many
#' bandwidths of HSIC without splitting the data that of HSICAgg (Albert et al.
#' 2022), whose statistic is another; that the two go well together was measured
#' here only. Numbers are bandwidths of your own, for all numeric variables; a
#' list of two has those of x and of y. A factor or a `gram` keeps its kernel.
#'
#' What the median misses: dependence that changes on a scale far below the
#' distances of points. The power at level 0.05 for 100 points (200 data sets,
#' `B = 99`), median and `"fuse"`: a linear dependence 0.55 and 0.64; quadratic
#' 0.93 and 0.96; a circle 0.76 and 0.96; y = sin(2 pi w x) with noise for w = 2
#' periods 0.72 and 1, for 4 periods 0.21 and 1, for 8 periods 0.09 and 1;
#' linear in four columns 0.99 and 1. It takes 25 times the time.
#'
#' @section Size of the effect:
#' `estimate` is for two variables \eqn{\mathrm{HSIC}_{xy}/\sqrt{
#' \mathrm{HSIC}_{xx} \mathrm{HSIC}_{yy}}}{HSIC_xy/sqrt(HSIC_xx HSIC_yy)} of the
#' biased HSIC, whatever the estimator and the statistic, in the kernels in use
#' (`"mkme"`, `"mmkme"` and `"smooth"` make other ones), between 0 and 1: the
#' alignment of the centered Gram matrices. It is 1 for a variable with itself,
#' with [kernel_energy()] the square of the distance correlation, and positive
#' for independent variables, the more so the fewer the points and the smaller
#' the bandwidths: it is to be read beside the p-value, and compared for the
#' same kernels and n. Of many bandwidths it is that of the average kernels. It
#' costs the norms of the matrices, \eqn{O(n^2)}{O(n^2)}.
#'
#' @section Factors:
#' A variable that has numeric columns and factors (a data frame, or a sum in a
#' formula) has the product of a kernel of its numeric columns, which must have
#' a bandwidth, and of 1 for equal, 0 for different levels of each factor. It
#' takes no marginalized estimator and no smoothing.
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
#' flops. Permutations are drawn in chunks of 4 MB, or of 64. Many bandwidths
#' store a matrix for each, and take \eqn{Bn^2/2}{Bn^2/2} operations for each
#' pair. `B = NULL` is as many permutations as one processor does in about a
#' second with whole matrices, in thousands between 999 and 9,999, by the sizes
#' alone: it was measured once. For two variables these are 9,999 up to 290
#' points, 2,999 at 500 and 999 above 680.
#'
#' @param x The first variable: a numeric vector, matrix or data frame (one
#'   variable of several columns, factors among them), a factor, distances
#'   (`dist`; the energy kernel), or a [gram()];
#'   or a plain list of two or more such variables, with `y` missing; or a
#'   [kme_sketch()] of two variables, see Sketches.
#' @param y The second variable, of as many values.
#' @param kernel_x,kernel_y Kernels, see [kernel_rbf()]; bandwidths are chosen
#'   from each variable. For a list, `kernel_x` is one kernel for all or a list
#'   of kernels. Factors (ordered ones too) and logical vectors have the kernel
#'   1 for equal values, 0 for others, and a `gram` has its own; their kernels
#'   must not be given.
#' @param estimator The estimator of the kernel means or of the operator:
#'   `"kme"`, `"skmse"`, `"fkmse"`, `"mkme"`, `"mmkme"`, `"smooth"` or
#'   `"stack"`, an object such as [est_skmse()], which holds its own arguments,
#'   or a function of your own, see Estimators and [est_kme()].
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method, in `plot()`, passed to [hist()], in `update()`, the arguments to
#'   change.
#' @param kernel One kernel for all variables that have none of their own, in
#'   place of `kernel_x` and `kernel_y`.
#' @param bandwidths `NULL` for the bandwidths of the kernels, `"fuse"` for many
#'   in one statistic, or at least two of your own (a list of two for x and y),
#'   see Many bandwidths.
#' @param filter,ratio,order,factors `"none"`, or the spectral filter of further
#'   statistics, `"tikhonov"` (`TRUE`), `"iterated"`, `"showalter"` or
#'   `"cutoff"`, with their ratios (`NULL` for 1, 0.1, 0.01 and 0.001), their
#'   orders (`NULL` for 0, HSIC itself, and 1) and multiples of the bandwidths,
#'   in one exact p-value, see [test_filter()]. They see dependence along
#'   directions of little variance, as on a circle.
#' @param B Number of permutations, `NULL` for as many as about a second allows,
#'   999 to 9,999, see Cost; not used for `"gamma"`.
#' @param null `"permutation"` or, for two variables, `"gamma"`; for a sketch
#'   `"spectrum"`.
#' @param statistic `"biased"` or `"unbiased"`; dHSIC, estimators that shrink
#'   and the gamma null are made of the biased one.
#' @param permutations `NULL` for `B` random ones, `"all"` (at most 10^5: up to
#'   8 points), a matrix with a permutation of the n values of y in each column,
#'   or a set or design of package permute, see [mmd_test()]. If a column is the
#'   identity, the observed statistic is not counted again.
#' @param blocks One value for each point; values of y change places within a
#'   block only (repeated measures, strata, sites). In the formula method it may
#'   be a variable of `data`.
#' @param clusters One value for each point; whole clusters change places, see
#'   Clusters. In the formula method it may be a variable of `data`.
#' @param scale `FALSE`, `TRUE` or `"whiten"`: the units of the columns of each
#'   numeric variable, see [gram()].
#' @param progress Show a progress bar?
#' @param object A test.
#' @param formula `y ~ a + b`: tests y against (a, b), the sum on each side
#'   being one variable; `. ~ g` has all other columns on its left (but those of
#'   `blocks` and `clusters`). `kernel_x` and `kernel_y` are for the left and
#'   the right side. Without a left side each term is a variable: `~ y + a + b`
#'   tests joint independence. Terms are vectors, matrices such as `cbind(a,
#'   b)`, or factors; numbers and factors in one sum make one variable, see
#'   Factors.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#'
#' @return An object of class `c("hsic_test", "htest")`, a list with
#' `statistic`, `parameter` (n, `B` and the bandwidths that are one number),
#' `p.value`, `estimate` (`normalized HSIC`, see Size of the effect; `NULL` for
#' more than two variables), `alternative`, `method`, `data.name` as usual for
#' tests, and
#' \item{replicates}{the statistic of each permutation; `NULL` for `"gamma"`}
#' \item{gamma}{shape and scale, for `null = "gamma"`}
#' \item{null, type, estimator}{the null distribution, `"biased"` or
#'   `"unbiased"`, and the estimator as an object}
#' \item{lambda}{the amount of shrinkage, where there is one}
#' \item{alpha}{the shrinkage of the observed statistic, for S-COSE}
#' \item{noise}{the variances of each variable, for `"mkme"` and `"mmkme"`}
#' \item{smoothing, candidates}{h of each variable for `"smooth"`, the shares of
#'   `"stack"`}
#' \item{kernel}{those of the variables, a named list; `NULL` for a factor}
#' \item{variables}{the variables, each with its name and its sample}
#' \item{ranks}{of the two factors, where the Gram matrices have low rank}
#' \item{arguments}{what was asked for}
#' \item{statistics}{a data frame with a row for each statistic of a filter, see
#'   [mmd_test()]}
#' Every test of this package has these fields in this order, with those of
#' [mmd_test()]; fields that do not apply are `NULL`.
#'
#' `summary()` shows kernels, shrinkage, the null distribution and the
#' Monte-Carlo error of the p-value. In other
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
#' Kazi-Aoual, F., Hitier, S., Sabatier, R. and Lebreton, J.-D. (1995). Refined
#' approximations to permutation tests for multivariate inference.
#' *Computational Statistics & Data Analysis* 20(6), 643--656.
#'
#' Biggs, F., Schrab, A. and Gretton, A. (2023). MMD-FUSE: learning and
#' combining kernels for two-sample testing without data splitting.
#' \doi{10.48550/arXiv.2306.08777}
#'
#' Albert, M., Laurent, B., Marrel, A. and Meynaoui, A. (2022). Adaptive test of
#' independence based on HSIC measures. *Annals of Statistics* 50(2), 858--879.
#' \doi{10.1214/21-AOS2129}
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
#' # Many bandwidths; visits of patients
#' hsic_test(x, sin(8 * x), bandwidths = "fuse", B = 199)
#' patient <- rep(1:15, each = 4)
#' hsic_test(x, y, clusters = patient, B = 199)
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
                              kernel = NULL, bandwidths = NULL,
                              filter = "none", B = 999, blocks = NULL,
                              clusters = NULL, scale = FALSE,
                              control = test_control(),
                              progress = interactive()) {
  asked <- request(hsic_arguments)
  if (!inherits(x, "test_variables")) {
    data <- list(x = x)
    label <- c(x = deparse1(substitute(x)))
    if (!missing(y)) {
      data["y"] <- list(y)
      label[["y"]] <- deparse1(substitute(y))
    }
    x <- test_variables(data, label)
  } else if (!missing(y)) {
    stop_input("'y' must not be given; it comes with the data")
  }
  test_dependence(x, asked)
}

# Those of both variables, or a list of those of x and of y.
bandwidth_sets <- function(value, name) {
  if (is.list(value) && length(value) != 2L) {
    stop_input("'bandwidths' must hold those of 'x' and of 'y' if it is a ",
               "list, not ", describe(value))
  }
  for (set in if (is.list(value)) value else list(value)) {
    check_bandwidth_set(set, "fuse")
  }
  value
}

hsic_arguments <- test_table(
  "hsic_test.default", x = anything, kernel_x = unless_given(anything),
  kernel_y = unless_given(anything), kernel = maybe(a_kernel),
  bandwidths = bandwidth_sets, filter = a_filter(0:1), aside = c("x", "progress"),
  rules = list(
    when("bandwidths", kernel = NULL, kernel_x = NULL, kernel_y = NULL,
         filter = NULL),
    when("kernel", kernel_x = NULL, kernel_y = NULL)
  )
)

# Of each variable by itself, which shrinks no operator.
by_variable <- new_kind("\"kme\", \"mkme\", \"mmkme\" or \"smooth\"",
                        \(x) !on_operator(x))

hsic_rules <- c(
  list(
    when("bandwidths", estimator = an_average, statistic = "biased",
         null = "permutation"),
    when(\(a) a$several, estimator = by_variable, statistic = "biased",
         null = "permutation", permutations = NULL, bandwidths = NULL,
         reason = "for more than two variables"),
    when("filter", estimator = by_variable),
    when(\(a) TRUE, bins = NULL, reason = "for a test of independence")
  ),
  filter_rules
)

# What the methods hand on: list(data: list(x, y) or list(x: a list of
# variables), label: what they are called, with the names x and y where these
# may be given anew; none for a formula).
test_variables <- function(data, label) {
  structure(list(data = data, label = label), class = "test_variables")
}

#' @rdname hsic_test
#' @export
hsic_test.formula <- function(formula, data = NULL, subset, na.action, ...,
                              blocks = NULL, clusters = NULL) {
  check_formula(formula, data)
  frame <- formula_variables(match.call(expand.dots = FALSE), formula, data,
                             missing(na.action), parent.frame(), least = 2L,
                             extra = c("blocks", "clusters"))
  label <- paste(names(frame$variables), collapse = " and ")
  hsic_test.default(test_variables(list(x = frame$variables), label), ...,
                    blocks = frame$extra$blocks,
                    clusters = frame$extra$clusters)
}

test_dependence <- function(data, asked) UseMethod("test_dependence")
test_dependence.test_variables <- function(data, asked) {
  kernels <- Filter(Negate(is.null), asked[c("kernel_x", "kernel_y")])
  if (is.null(names(data$label))) {
    kernels <- side_kernels(kernels, data$data$x)
  }
  variables <- read_variables(
    data$data, list(x = kernels$kernel_x, y = kernels$kernel_y), asked$kernel,
    scale = asked$scale
  )
  n <- check_lengths(variables)
  asked$several <- length(variables) > 2L
  options <- open_control(asked, c("permutation", "gamma"), hsic_rules)
  options$operator <- on_operator(options$estimator)
  if (options$operator) {
    options$estimator <- est_operator(options$estimator, "estimator")
  }
  least <- if (options$null == "gamma") 6L else if (
    options$statistic == "unbiased" || !is.null(options$bandwidths)
  ) 4L else 2L
  if (n < least) {
    stop_input("'x' must have at least ", least, " rows for this test, not ", n)
  }
  filter <- options$filter
  if (asked$several || !is.null(filter) && filter$name != "none") {
    for (variable in variables) check_definite(variable$sample$kernel)
  }
  if (!is.null(filter) && !identical(filter$factors, 1) &&
        !any(vapply(variables, varies_bandwidth, NA))) {
    stop_input("'factors' must be NULL where no variable has a bandwidth of ",
               "numbers alone")
  }
  if (is_single(filter)) {
    variables <- lapply(variables, vary_bandwidth, filter$factors)
    options["filter"] <- list(without_factor(filter))
  }
  if (!is.null(options$bandwidths)) {
    variables <- spread_bandwidths(variables, options$bandwidths)
  }
  units <- exchange_units(variables, options)
  scheme <- check_permutations(options$permutations, units, options$B,
                               options$null)
  scheme$moved <- units$moved
  new_hsic_test(variables, options, scheme,
                hsic_statistics(variables, options, scheme), stored(asked),
                data)
}

# --- The object ------------------------------------------------------------

# data: as of test_variables(), of which the label is kept.
new_hsic_test <- function(variables, options, scheme, found, arguments, data) {
  several <- length(variables) > 2L
  law <- found$law
  kernels <- lapply(variables, \(variable) {
    if (!is_factor_variable(variable)) variable$sample$kernel
  })
  name <- if (several) "dHSIC" else if (is.null(options$bandwidths)) "HSIC" else
    "fused HSIC"
  filtered <- isTRUE(found$table$order[1L] > 0L)
  estimator <- options$estimator
  data["data"] <- NULL
  new_test(
    "hsic_test",
    statistic = stats::setNames(
      found$height * found$observed,
      if (isTRUE(found$several)) "max z" else
        paste0(if (filtered) "filtered ", name)
    ),
    parameter = c(
      if (!is.null(law$gamma)) law$gamma else c(
        n = variables[[1L]]$sample$n,
        if (!is.null(scheme$clusters)) c(clusters = length(scheme$sizes)),
        B = scheme$B
      ), single_bandwidths(kernels)
    ),
    p.value = law$p,
    estimate = if (!several) c("normalized HSIC" = found$share),
    alternative = "the variables are dependent",
    method = test_title(
      if (several) "joint independence" else "independence",
      c(name, filter_label(options$filter),
        if (options$operator) operator_label(estimator) else estimator$label,
        if (!several) options$statistic),
      options, scheme, "all permutations"
    ),
    data.name = paste(data$label, collapse = " and "),
    replicates = if (!is.null(law$draws)) found$height * law$draws,
    gamma = law$gamma, null = options$null, type = options$statistic,
    estimator = estimator, lambda = found$estimator$lambda,
    alpha = found$alpha, noise = found$noise, smoothing = found$smoothing,
    candidates = found$candidates, kernel = kernels, variables = variables,
    ranks = found$ranks, arguments = arguments, statistics = found$table,
    left = found$left, origin = data
  )
}

# Those that are one number, named; of columns and factors that of the columns.
single_bandwidths <- function(kernels) {
  each <- lapply(kernels, \(kernel) {
    columns <- length(kernel$bandwidth) - length(kernel$equal)
    unique(utils::head(kernel$bandwidth, columns))
  })
  single <- unlist(each[lengths(each) == 1L])
  if (length(single)) {
    stats::setNames(single, paste("bandwidth of", names(single)))
  }
}

# --- What it can do ----------------------------------------------------------

fit_picture.hsic_test <- function(x, type = NULL, breaks = 30, freq = FALSE) {
  check_type(type, "null")
  picture_null(x, breaks, freq)
}

fit_request.hsic_test <- function(x, changes) {
  label <- x$origin$label
  data <- changed_data(changes, label)
  label <- new_label(label, attr(changes, "call"), data)
  change_variables(x$origin, x, changes, data, label)
}

# The request of the test with changes, of which some are data; origin: as of
# test_variables(), without the data.
change_variables <- function(origin, test, changes, data, label) {
  UseMethod("change_variables")
}
change_variables.test_variables <- function(origin, test, changes, data,
                                            label) {
  variables <- test$variables
  several <- !"y" %in% names(label)
  own <- vapply(variables, \(v) is.null(variable_kernel(v)), NA)
  arguments <- spread_kernel(test$arguments, !own, several)
  # A formula has sides, a list has none.
  if (is.null(names(label))) {
    arguments <- side_kernels(arguments, variables)
    changes <- side_kernels(changes, variables)
  }
  changes <- spread_kernel(changes, vapply(variables, takes_kernel, NA),
                           several)
  changes <- keep_all_units(changes, variables, several)
  # A gram stays one unless another kernel is to come.
  names <- if (several) rep("kernel_x", length(variables)) else
    c("kernel_x", "kernel_y")
  inputs <- Map(variable_input, variables, names %in% names(changes))
  values <- if (several) list(x = inputs) else
    stats::setNames(inputs, c("x", "y"))
  values[data] <- changes[data]
  asked <- change_request(arguments, changes[!names(changes) %in% data])
  asked$x <- test_variables(values, label)
  asked
}

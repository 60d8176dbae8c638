#' Kernel independence tests
#'
#' Tests whether two or more variables, of any number of columns each, are
#' independent, by the Hilbert-Schmidt independence criterion (HSIC).
#'
#' With the Gram matrices \eqn{K} and \eqn{L} of the n values of x and y,
#' centered to \eqn{\bar K = HKH}{Kc = HKH} and \eqn{\bar L = HLH}{Lc = HLH},
#' \eqn{H = I - ee'/n}{H = I - ee'/n}, the biased statistic is
#' \eqn{\mathrm{tr}(\bar K \bar L)/n^2}{tr(Kc Lc)/n^2} (Gretton et al. 2005);
#' with [kernel_energy()] on both sides, n times it is that of the distance
#' covariance test. The unbiased one is that of Song et al. (2012). More than
#' two variables are tested for joint independence by dHSIC (Pfister et al.
#' 2018).
#'
#' @section Estimators:
#' `"mkme"`, `"mmkme"` and `"smooth"` put another kernel in place of each
#' variable's, with noise or h chosen from it by itself. `"skmse"` and
#' `"fkmse"` shrink the cross-covariance operator (S-COSE, F-COSE; Ramdas and
#' Wehbe 2015): \eqn{\beta'M\beta}{beta'M beta} with \eqn{M = \bar K \circ \bar
#' L}{M = Kc o Lc}, entry by entry. S-COSE chooses its shrinkage for each
#' permutation; \eqn{\lambda}{lambda} of F-COSE and the shares of `"stack"` are
#' chosen without a look at the pairing. An estimator with a target is refused.
#'
#' @section Null distributions:
#' Permutations are exact whatever the distributions of independent pairs.
#' `test_control(null = "gamma")` takes the gamma law of Gretton et al. (2007)
#' for the biased statistic: liberal with few points and heavy tails.
#'
#' @section Blocks:
#' With `blocks` the test asks for dependence *within* blocks (clinics, species,
#' subjects), whatever x and y do between them: as `lm(y ~ x + block)` does for
#' lines, \eqn{HKH}{HKH} and \eqn{HLH}{HLH} with H the identity less the means
#' of blocks are the centered matrices of every statistic, filter and estimator.
#' With [kernel_linear()] `normalized HSIC` is the squared partial correlation
#' given the blocks. Values of y change places within blocks, which leaves H as
#' it is: p-values are exact. More than two variables have \eqn{1 + HKH/m}{1 +
#' HKH/m}, m the mean diagonal, in dHSIC.
#'
#' Two variables have two further statistics in the same p-value, unless
#' `filter = "none"` or both kernels are linear: HSIC of the values less block
#' means (kernels of columns that are centered before; see [mmd_test()] for
#' their bandwidths), and *linear HSIC*, of points with linear kernels, whose z
#' counts 1.5 times, so that the test is nearly as powerful on lines as `lm()`
#' is (see `vignette("tests")`).
#'
#' @section Clusters:
#' Points that come in clusters (the visits of a patient) cannot change places
#' one by one. With `clusters` the values of y move as whole clusters, points
#' keeping their order, between clusters of the same size (and block). A warning
#' (class `kernmean_warning_alone`) counts those that have no partner, and says
#' what p-value that leaves. Where y, or else x, is constant within every
#' cluster, as a treatment is, its values move between clusters of any size (for
#' the biased statistic of two variables, the KME, and no filter). Its bandwidth
#' and units are then those of one value for each cluster, and there is a second
#' statistic in the same p-value, unless `filter = "none"`: the *HSIC of cluster
#' means* of the other variable (of its columns, with a bandwidth of their own;
#' of factors and kernel values the means of features). It sees what differs
#' between clusters beside much noise within. Linear HSIC of these means is a
#' third one, and within `blocks` the means less those of their block a fourth.
#'
#' @section Many bandwidths:
#' `bandwidths = "fuse"` combines five bandwidths of [kernel_rbf()] for each
#' numeric variable, in a geometric sequence from half the 5% to twice the 95%
#' quantile of the distances. HSIC of each pair a, b of bandwidths is
#' studentized over all permutations (Kazi-Aoual et al. 1995); the statistic is
#' \eqn{\log \mathrm{mean}_{ab} \exp z_{ab}}{log mean_ab exp(z_ab)} (Biggs et
#' al. 2023). It sees dependence on scales far below the distances of points.
#'
#' @section The joint test:
#' Two variables of at most 1,000 points, of which one has a [kernel_rbf()] with
#' a bandwidth by rule and the other too or is a factor, are tested by three
#' statistics with one p-value, those of `test_filter(ratio = 0.1, order = c(0,
#' 1, "fused"))`: HSIC, order 1 (a circle, noise as wide as x, common tails) and
#' the fused HSIC of many bandwidths (waves). It is printed which was largest.
#' Over eight kinds of dependence the power is 0.68 on average, 0.41 of HSIC,
#' 0.61 of the fused one, the best alone; what it costs is where HSIC is at its
#' best, lines. `filter = "none"` is HSIC alone, as are a kernel or estimator of
#' your own, clusters, a `statistic` and another null; `filter = TRUE` has three
#' further ratios (columns of low variance), at any size.
#'
#' @section Cost:
#' \eqn{Bn^2/2}{Bn^2/2} operations (some ten times in the joint test: about 1 s
#' for 1,000 points) and a stored matrix for each variable, five where
#' bandwidths are fused. Of two
#' Gram matrices of low ranks p and q (smooth kernels on few columns, factors)
#' factors take their place: O(Bnpq) time and O(n^1.5) memory. `"fkmse"` factors
#' a matrix for each permutation, \eqn{O(Bn^3)}{O(Bn^3)}.
#'
#' @param x,y The two variables, of as many values: numeric vectors, matrices or
#'   data frames (one variable of several columns), factors (as which characters
#'   are read), distances (`dist`)
#'   or [gram()]s. Without `y`, `x` is a plain list of variables or a
#'   [kme_sketch()] of two.
#' @param kernel_x,kernel_y Kernels, see [kernel_rbf()]. For a list, `kernel_x`
#'   is one kernel for all or a list of kernels. Factors have the kernel 1 for
#'   equal values, 0 for others; ordered factors, and numbers and factors in one
#'   variable, have [kernel_gower()].
#' @param estimator A name or an object, see [est_kme()].
#' @param ... Must be empty; in the other methods, arguments of the default
#'   method.
#' @param kernel One kernel for all variables that have none of their own.
#' @param bandwidths `"fuse"`, or at least two of your own, see Many bandwidths.
#' @param filter `NULL` by rule, see The joint test, `"none"` for HSIC alone,
#'   `TRUE`, the name of a spectral filter or [test_filter()].
#' @param B Number of permutations; `NULL` is 399 with a filter or in the joint
#'   test, else 999, or all labelings if these are no more than 2,000.
#' @param blocks One value for each point, or a variable of `data` (`id`, `"id"`
#'   or `~ id`): what is given (strata, subjects). Dependence within blocks is
#'   tested, and values of y change places within a block only, see Blocks.
#'   `interaction(a, b)` crosses two; a number is as many blocks as it has
#'   values.
#' @param clusters One value for each point, or a variable; whole clusters
#'   change places.
#' @param scale The [units] of the columns of each numeric variable.
#' @param control See [test_control()].
#' @param progress Show a progress bar?
#' @param formula `y ~ a + b`: tests y against (a, b), the sum on each side
#'   being one variable; `y ~ a | z` given z, see [given]; `. ~ g` has all other
#'   columns on its left, but those of `blocks` and `clusters`. Without a left
#'   side each term is a variable: `~ y + a + b` tests joint independence.
#'   `kernel_x` is for the left side, here y, `kernel_y` for the right.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#'
#' @return An object of class `c("hsic_test", "kernmean_fit", "htest")` with the
#' fields of [mmd_test()] in the same order, those that do not apply `NULL`;
#' of its own are
#' \item{estimate}{`normalized HSIC` of two variables,
#'   \eqn{\mathrm{HSIC}_{xy}/\sqrt{\mathrm{HSIC}_{xx}
#'   \mathrm{HSIC}_{yy}}}{HSIC_xy/sqrt(HSIC_xx HSIC_yy)} of the biased HSIC,
#'   from 0 to 1, with [kernel_energy()] the square of the distance correlation;
#'   positive for independent variables, too}
#' \item{kernel, variables}{of each variable, named; the kernel of a factor is
#'   `NULL`}
#' \item{noise, smoothing, lambda, alpha}{what the estimator chose}
#' \item{ranks}{of the two factors, where the Gram matrices have low rank}
#' \item{statistics}{a row for each statistic of a filter}
#'
#' @references
#' Gretton, A. et al. (2005). Measuring statistical dependence with
#' Hilbert-Schmidt norms. \doi{10.1007/11564089_7}
#'
#' Gretton, A. et al. (2007). A kernel statistical test of independence.
#' *Advances in Neural Information Processing Systems* 20.
#'
#' Kazi-Aoual, F. et al. (1995). Refined approximations to permutation tests for
#' multivariate inference. *Computational Statistics & Data Analysis* 20.
#'
#' Biggs, F., Schrab, A. and Gretton, A. (2023). MMD-FUSE.
#' \doi{10.48550/arXiv.2306.08777}
#'
#' Song, L. et al. (2012). Feature selection via dependence maximization.
#' *JMLR* 13.
#'
#' Pfister, N. et al. (2018). Kernel-based tests for joint independence.
#' \doi{10.1111/rssb.12235}
#'
#' Ramdas, A. and Wehbe, L. (2015). Nonparametric independence testing for small
#' sample sizes. \doi{10.48550/arXiv.1406.1922}
#'
#' Xia, X. et al. (2021). Kernel mean estimation by marginalized corrupted
#' distributions. Equations 32 to 34 (marginalized estimators).
#' \doi{10.48550/arXiv.2107.04855}
#' @seealso [glossary]; [mmd_test()] for differences between samples;
#'   `vignette("tests")`.
#' @examples
#' set.seed(1)
#' x <- runif(60, -1, 1)
#' y <- x^2 + rnorm(60, sd = 0.2)
#' test <- hsic_test(x, y)
#' test
#' plot(test)
#'
#' # Columns against a factor; three variables; visits of patients
#' hsic_test(iris[, 1:2], iris$Species, B = 199)
#' hsic_test(~ Sepal.Length + Sepal.Width + Species, iris, B = 199)
#' hsic_test(x, y, clusters = rep(1:15, each = 4), B = 199)
#' @export
hsic_test <- function(x, ...) {
  UseMethod("hsic_test")
}

#' @rdname hsic_test
#' @export
hsic_test.default <- function(x, y, kernel_x = kernel_rbf(),
                              kernel_y = kernel_rbf(), estimator = "kme", ...,
                              kernel = NULL, bandwidths = NULL,
                              filter = NULL, B = NULL, blocks = NULL,
                              clusters = NULL, scale = FALSE,
                              control = test_control(),
                              progress = interactive()) {
  asked <- request(hsic_arguments)
  if (!inherits(x, "test_variables")) {
    data <- list(x = x)
    label <- c(x = label_of(substitute(x)))
    if (!missing(y)) {
      data["y"] <- list(y)
      label[["y"]] <- label_of(substitute(y))
    }
    x <- test_variables(data, label)
  } else if (!missing(y)) {
    stop_input("'y' must not be given; it comes with the data")
  }
  test_dependence(x, asked)
}

hsic_arguments <- test_table(
  "hsic_test.default", x = anything, kernel_x = unless_given(anything),
  kernel_y = unless_given(anything), kernel = maybe(a_kernel),
  bandwidths = bandwidth_set("fuse"), filter = a_filter(0:1, "fused", "fused"),
  aside = c("x", "progress"),
  rules = list(
    when("bandwidths", kernel = NULL, kernel_x = NULL, kernel_y = NULL,
         filter = unfiltered),
    when("kernel", kernel_x = NULL, kernel_y = NULL)
  )
)

# This kind takes the estimators that are fitted to each variable separately,
# and refuses those that shrink an operator.
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

# The variables as the methods pass them on. `data` has x and y, or a list of
# variables as x. `label` has what they are called: with the names x and y if
# update() may replace the data, and without names for a formula.
test_variables <- function(data, label) {
  structure(list(data = data, label = label), class = "test_variables")
}

#' @rdname hsic_test
#' @export
hsic_test.formula <- function(formula, data = NULL, subset, na.action, ...,
                              blocks = NULL, clusters = NULL) {
  known <- names(formals(hsic_test.default))
  unused <- setdiff(...names(), c(known, ""))
  # The names are checked before their values: a misspelled `blocks` may be a
  # column of `data`.
  if (length(unused)) stop_unused(unused, known, test_hints)
  if (has_given()) {
    read <- read_given(c(y = "variable", x = "variable"))
    if (is.null(read$strata)) {
      return(test_read("independence", read, ...))
    }
    variables <- stats::setNames(read[c("y", "x")], read$labels[c("y", "x")])
    read$blocks <- read$strata
  } else {
    read <- read_sides("variables", c("blocks", "clusters"), least = 2L)
    variables <- read[names(read$names)]
  }
  label <- paste(names(variables), collapse = " and ")
  test <- do.call(hsic_test.default, c(
    list(test_variables(list(x = variables), label)),
    side_kernels(list(...), variables),
    Filter(length, read[c("blocks", "clusters")])
  ), quote = TRUE)
  name_given(test, read)
}

test_dependence <- function(data, asked) UseMethod("test_dependence")
test_dependence.test_variables <- function(data, asked) {
  variables <- read_variables(
    data$data, list(x = asked$kernel_x, y = asked$kernel_y), asked$kernel,
    scale = asked$scale
  )
  n <- check_lengths(variables)
  asked$several <- length(variables) > 2L
  options <- open_control(asked, c("permutation", "gamma"), hsic_rules)
  options$operator <- on_operator(options$estimator)
  if (options$operator) {
    options$estimator <- est_operator(options$estimator, "estimator")
  }
  options <- settle_joint(options, variables, asked)
  check_hsic(options, variables, n)
  filter <- options$filter
  if (is_single(filter)) {
    variables <- lapply(variables, vary_bandwidth, filter$factors)
    options["filter"] <- list(without_factor(filter))
  }
  units <- exchange_units(variables, options)
  warn_alone(units$given)
  refit <- \(variable, x) {
    vary_bandwidth(refit_variable(variable, x),
                   if (is_single(filter)) filter$factors else 1)
  }
  variables <- fit_moved(variables, units, refit)
  if (!is.null(options$bandwidths)) {
    variables <- spread_bandwidths(variables, options$bandwidths, units)
  }
  options$views <- hsic_views(variables, options, units, refit)
  if (length(options$views) && is.null(options$filter)) {
    options$filter <- plain_filter
  }
  scheme <- check_permutations(options, units)
  new_hsic_test(variables, options, scheme,
                find_dependence(variables, options, scheme), stored(asked),
                data)
}

# Stops if the options do not fit the variables, which have n values each.
check_hsic <- function(options, variables, n) {
  least <- if (options$null == "gamma") 6L else if (
    options$statistic == "unbiased" || !is.null(options$bandwidths)
  ) 4L else 2L
  if (n < least) {
    stop_input("'x' must have at least ", least, " rows for this test, not ", n)
  }
  filter <- options$filter
  if (options$several || isTRUE(filter$name != "none")) {
    for (variable in variables) check_definite(variable$sample$kernel)
  }
  if (!is.null(filter) && !identical(filter$factors, 1) &&
        !any(vapply(variables, varies_bandwidth, NA))) {
    stop_input("'factors' must be NULL where no variable has a bandwidth of ",
               "numbers alone")
  }
}

joint_most_points <- 1000

# Returns the options with `fused`, TRUE if the fused statistic is one of
# several. If the user sets no filter, bandwidths, clusters or statistic, two
# variables of few values are tested by all statistics, provided that each is a
# factor or has a bandwidth chosen by rule, and that they are not both factors.
settle_joint <- function(options, variables, asked) {
  n <- variables[[1L]]$sample$n
  points <- vapply(variables, takes_bandwidths, NA)
  can <- length(variables) == 2L && any(points) && n > 3L &&
    is_average(options$estimator) &&
    !any(vapply(variables, is_mixed_variable, NA))
  ruled <- \(v) is_factor_variable(v) ||
    takes_bandwidths(v) && !is.null(v$sample$kernel$rule)
  if (can && !options$alone && is.null(c(
    options$filter, options$bandwidths, options$clusters,
    asked$control$statistic
  )) && options$null == "permutation" &&
        n <= joint_most_points && all(vapply(variables, ruled, NA))) {
    options$filter <- take(test_filter(ratio = 0.1, order = c(0:1, "fused")),
                           hsic_arguments$kinds$filter, "filter")
    if (is.null(asked$B)) options$B <- 399L
  }
  order <- options$filter$order
  options$fused <- can && "fused" %in% order
  if (!is.null(order)) {
    options$filter$order <- as.integer(setdiff(order, "fused"))
    if (!options$fused && !length(options$filter$order)) {
      stop_input("'order' must not be \"fused\" alone but for averages of two ",
                 "variables, one of them of points with kernel_rbf()")
    }
  }
  options
}

# --- The object ------------------------------------------------------------

# Makes the test from a dependence, see new_dependence(). `data` is made by
# test_variables(), and the test keeps its label but not the data in it.
new_hsic_test <- function(variables, options, scheme, dependence, arguments,
                          data) {
  several <- length(variables) > 2L
  null <- dependence$null
  kernels <- lapply(variables, \(variable) {
    if (!is_factor_variable(variable)) variable$sample$kernel
  })
  estimator <- options$estimator
  data["data"] <- NULL
  new_test(
    "hsic_test", options, dependence$statistic, null,
    parameter = c(
      null$gamma %||% c(
        n = variables[[1L]]$sample$n,
        clusters = if (!is.null(scheme$clusters)) length(scheme$sizes),
        blocks = if (!is.null(scheme$given)) max(scheme$given),
        B = scheme$B
      ), single_bandwidths(kernels)
    ),
    estimate = if (!several) c("normalized HSIC" = dependence$share),
    alternative = "the variables are dependent",
    method = test_title(
      if (several) "joint independence" else "independence",
      c(hsic_name(options), filter_label(options$filter),
        if (isTRUE(options$fused) && length(options$filter$order)) "fused",
        if (options$operator) operator_label(estimator) else estimator$label,
        if (!several) options$statistic),
      options, scheme
    ),
    data.name = paste(data$label, collapse = " and "),
    lambda = dependence$estimator$lambda,
    alpha = dependence$alpha, noise = dependence$noise,
    smoothing = dependence$smoothing, candidates = dependence$candidates,
    kernel = kernels, variables = variables, ranks = dependence$ranks,
    arguments = arguments, origin = data
  )
}

# Returns the bandwidths of those kernels that have a single one, with names.
single_bandwidths <- function(kernels) {
  each <- lapply(kernels, \(kernel) unique(kernel$bandwidth))
  single <- unlist(each[lengths(each) == 1L])
  if (length(single)) {
    stats::setNames(single, paste("bandwidth of", names(single)))
  }
}

# --- Methods -----------------------------------------------------------------

fit_picture.hsic_test <- function(x, type = NULL) {
  picture_null(x, check_null_type(type, x))
}

fit_request.hsic_test <- function(x, changes) {
  label <- x$origin$label
  data <- changed_data(changes, label)
  label <- new_label(label, attr(changes, "call"), data)
  change_variables(x$origin, x, changes, data, label)
}

# Returns the request of update(). `data` names those changes that replace data;
# `origin` is what test_variables() returned, without the data.
change_variables <- function(origin, test, changes, data, label) {
  UseMethod("change_variables")
}
change_variables.test_variables <- function(origin, test, changes, data,
                                            label) {
  variables <- test$variables
  several <- !"y" %in% names(label)
  takes <- vapply(variables, \(variable) {
    takes_kernel(variable) && !is.null(variable_kernel(variable))
  }, NA)
  arguments <- change_kernels(test$arguments, variables, several, takes)
  # A test by formula keeps its variables as a list, so that kernels for its two
  # sides must become a list, too.
  if (is.null(names(label))) changes <- side_kernels(changes, variables)
  changes <- change_kernels(changes, variables, several)
  # A gram stays a gram unless another kernel is given.
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

#' Kernel two-sample tests
#'
#' Tests whether two or more samples come from the same distribution, by the
#' distance of their kernel means (maximum mean discrepancy, MMD).
#'
#' With \eqn{\hat\mu_x}{mu_x} and \eqn{\hat\mu_y}{mu_y} the kernel means of
#' samples of m and n points, N = m + n, the statistic is
#' \describe{
#'   \item{`"V"`}{\eqn{\|\hat\mu_x - \hat\mu_y\|^2 = S_{xx}/m^2 + S_{yy}/n^2 - 2
#'     S_{xy}/(mn)}{|mu_x - mu_y|^2 = S_xx/m^2 + S_yy/n^2 - 2 S_xy/(mn)}, with
#'     \eqn{S}{S} the sums of kernel values over pairs;}
#'   \item{`"U"`}{the unbiased \eqn{S^\circ_{xx}/(m(m-1)) +
#'     S^\circ_{yy}/(n(n-1)) - 2S_{xy}/(mn)}{S'_xx/(m(m-1)) + S'_yy/(n(n-1)) - 2
#'     S_xy/(mn)}, \eqn{S^\circ}{S'} without the pairs of a point with itself.}
#' }
#' More than two samples are compared by \eqn{\sum_{g<h} (m_g m_h/N)
#' \mathrm{MMD}^2_{gh}}{the sum over g < h of (m_g m_h/N) MMD^2_gh}, for `"V"`
#' the sum of \eqn{m_g \|\hat\mu_g - \hat\mu\|^2}{m_g |mu_g - mu|^2}.
#'
#' @section Estimators:
#' `"mkme"` and `"mmkme"` put the marginalized kernel in place of the kernel
#' (Xia et al., eq. 30): an RBF kernel with squared bandwidths \eqn{\theta^2 +
#' 2e_l}{theta^2 + 2 e_l} times a constant; its variances e come from the pooled
#' sample or from `noise`. `"skmse"` and `"fkmse"` compare the shrunk means:
#' S-KMSE chooses its factors afresh for each permutation, F-KMSE takes
#' \eqn{\lambda}{lambda} of the pooled sample.
#'
#' @section Null distributions:
#' `"permutation"` is exact whatever the distribution: everything that is
#' chosen from the data (bandwidth, noise, \eqn{\lambda}{lambda}) is chosen
#' from the pooled sample by rules that do not see the labels (a `bandwidth` of
#' your own that is a function must not depend on the order of the rows). The
#' p-value is (1 + number of draws with a statistic at least as large)/(B + 1);
#' with `permutations = "all"` it is the share among all labellings. Each
#' permutation is drawn as by [sample.int()] and its first m entries are the
#' first sample.
#'
#' `"spectrum"` draws from the weighted sum of chi-squared variables with the
#' eigenvalues of the centred pooled Gram matrix (Gretton et al. 2009), and
#' `"gamma"` (two samples, `"V"`) takes a gamma law with the exact mean and
#' variance of the statistic over all permutations. Both are approximations, the
#' first for large samples only (at m = n = 20 in 20 columns its level is 0.02
#' at a nominal 0.05).
#'
#' With more than 20,000 points in all (and no `blocks` or `permutations`, not
#' for `"fkmse"`, and unless the smallest sample is tiny), permutations move
#' bins of points: each sample is cut at random into bins of the same size, the
#' m points of the smallest sample over `bins`, rounded down; points left over
#' keep their label, and bins change places. These are permutations too, so the
#' level stays exact, at some loss of power, and one pass over the kernel
#' values serves all of them.
#'
#' @section Many bandwidths:
#' `kernel_rbf("fuse")` combines ten bandwidths in one statistic (MMD-FUSE,
#' Biggs et al. 2023): spaced evenly from half the 5% to twice the 95% quantile
#' of the pooled distances (of 2,000 points drawn at random, if there are more),
#' \eqn{\log \mathrm{mean}_k
#' \exp(\lambda U_k/\sigma_k)}{log mean_k exp(lambda U_k/sigma_k)} with
#' \eqn{\lambda = \sqrt{m(m-1)}}{lambda = sqrt(m(m - 1))}, m the smaller sample,
#' and \eqn{\sigma_k^2}{sigma_k^2} the mean squared kernel value of two
#' different points. One permutation p-value answers for all.
#'
#' @section Cost:
#' 2,048 permutations at a time are one walk over the tiles of the pooled Gram
#' matrix, which is not stored: O(N^2 (d + B/30)) time, N B/8 bytes.
#' `"spectrum"` stores it and takes 4N^3/3 flops. `estimator = "fkmse"` solves
#' two systems for each permutation, O(B (m^3 + n^3)); a warning says when that
#' exceeds 10^11 flops.
#'
#' @param x The first sample: a numeric vector, matrix or data frame, points in
#'   rows; or the [gram()] of the pooled sample.
#' @param y The second sample, with the columns of `x` (matched by name where
#'   both have names).
#' @param groups With a `gram`: the group of each point, a factor or a vector.
#' @param formula `response ~ group`, with a numeric response (several:
#'   `cbind(a, b) ~ group`, all other columns: `. ~ group`) and two or more
#'   groups. Rows are sorted by group; a kernel must be given by name.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#' @param kernel A kernel; [kernel_energy()] gives the energy test. A bandwidth
#'   is chosen from the pooled sample.
#' @param estimator The estimator of the kernel means, see [kme()].
#' @param ... Must be empty; in the other methods, arguments of the default
#'   method.
#' @param B Number of permutations (draws for `null = "spectrum"`); not used for
#'   `"gamma"`.
#' @param null `"permutation"`, `"spectrum"` or `"gamma"`.
#' @param statistic `"V"` or `"U"`; `"V"` only for `"skmse"` and `"fkmse"`,
#'   `"U"` only for `kernel_rbf("fuse")`.
#' @param select,lambda For `"skmse"` and `"fkmse"`: how the shrinkage is
#'   selected, or its amount, see [kme()].
#' @param noise For `"mkme"` and `"mmkme"`: the variances, instead of a
#'   selection.
#' @param permutations `NULL` for `B` random ones, `"all"` for all labellings
#'   (at most 10^5), or a matrix with a permutation of the N points in each
#'   column, its first m entries the first sample. If a column leaves the
#'   labels as they are, the observed statistic is not counted again. With
#'   `blocks`, `"all"` means all labellings within the blocks.
#' @param blocks One value for each point, those of `x` first (in the formula
#'   method it may be a variable of `data`); points change places within a block
#'   only (pairs, repeated measures, strata, sites).
#' @param bins Bins in the smallest sample, see Null distributions; `NULL` for
#'   25 above 20,000 points and single points below.
#' @param progress Show a progress bar?
#'
#' @return An object of class `c("mmd_test", "htest")`, a list with `statistic`,
#' `parameter`, `p.value`, `estimate`, `alternative`, `method`, `data.name` as
#' usual for tests (`estimate` the root of the statistic, 0 if that is negative,
#' and the bandwidth), and
#' \item{replicates}{the statistic of each draw; `NULL` for `"gamma"`}
#' \item{gamma}{shape and scale, for `null = "gamma"`}
#' \item{kernel}{the kernel, its bandwidth a number}
#' \item{lambda, noise}{the shrinkage and the variances used, where they are}
#' \item{pairs}{for more than two samples, \eqn{\mathrm{MMD}^2}{MMD^2} of each
#'   pair}
#' \item{sizes, x, gram, groups}{the pooled sample}
#' \item{unbiased}{for two samples and permutations of points: the U-statistic
#'   and its exact standard deviation over all permutations, from which
#'   `summary()` gives a z-value}
#'
#' `plot()` shows the null distribution with the observed value, or the witness
#' function, see [plot.mmd_test()].
#'
#' @references
#' Gretton, A., Borgwardt, K. M., Rasch, M. J., Schölkopf, B. and Smola, A.
#' (2012). A kernel two-sample test. *Journal of Machine Learning Research* 13,
#' 723--773.
#'
#' Gretton, A., Fukumizu, K., Harchaoui, Z. and Sriperumbudur, B. K. (2009). A
#' fast, consistent kernel two-sample test. *Advances in Neural Information
#' Processing Systems* 22.
#'
#' Xia, X., Shan, S., Gong, M., Wang, N., Gao, F., Wei, H. and Liu, T. (2021).
#' Kernel mean estimation by marginalized corrupted distributions.
#' \doi{10.48550/arXiv.2107.04855}
#'
#' Biggs, F., Schrab, A. and Gretton, A. (2023). MMD-FUSE: learning and
#' combining kernels for two-sample testing without data splitting.
#' \doi{10.48550/arXiv.2306.08777}
#'
#' Domingo-Enrich, C., Dwivedi, R. and Mackey, L. (2023). Compress then test:
#' powerful kernel testing in near-linear time. \doi{10.48550/arXiv.2301.05974}
#' @seealso [hsic_test()] for independence; [kme_distance()].
#' @family tests
#' @examples
#' set.seed(1)
#' test <- mmd_test(rnorm(40), rnorm(40, sd = 2))
#' test
#' summary(test)
#'
#' # Three species, and the energy test
#' mmd_test(cbind(Sepal.Length, Sepal.Width) ~ Species, iris, B = 199)
#' mmd_test(Sepal.Width ~ Species, iris, kernel = kernel_energy(), B = 199)
#'
#' # Pairs: all ways to exchange the two values within a subject
#' mmd_test(extra ~ group, sleep, blocks = ID, permutations = "all")
#'
#' # Many bandwidths, one p-value
#' mmd_test(rnorm(40), rnorm(40, sd = 2), kernel_rbf("fuse"), B = 199)
#'
#' plot(test)
#' plot(test, "witness")
#' @export
mmd_test <- function(x, ...) {
  UseMethod("mmd_test")
}

#' @rdname mmd_test
#' @export
mmd_test.default <- function(x, y, kernel = kernel_rbf(),
                             estimator = c("kme", "skmse", "fkmse", "mkme",
                                           "mmkme"),
                             ..., B = 999,
                             null = c("permutation", "spectrum", "gamma"),
                             statistic = c("V", "U"), select = NULL,
                             lambda = NULL, noise = NULL, permutations = NULL,
                             blocks = NULL, bins = NULL,
                             progress = interactive()) {
  check_dots(...)
  data_name <- attr(x, "kernmean_data_name")
  if (is.null(data_name)) {
    data_name <- paste(deparse1(substitute(x)), "and", deparse1(substitute(y)))
  }
  if (missing(y)) {
    stop_input("'y' must be given: the second sample",
               if (is.list(x)) "; for values and groups use a formula")
  }
  if (is.factor(y) || is.character(y)) {
    stop_input(
      "'y' must be the second sample, not ", describe(y),
      "; for values and groups use a formula, values ~ groups"
    )
  }
  options <- check_mmd_options(
    check_kernel(kernel), estimator, null, if (!missing(statistic)) statistic,
    select, lambda, noise, bins, progress
  )
  samples <- pool_samples(x, y, options$kernel)
  scheme <- check_scheme(samples, options, permutations, B, blocks)
  run_mmd(samples, options, scheme, data_name)
}

#' @rdname mmd_test
#' @export
mmd_test.gram <- function(x, groups, ...) {
  if (missing(groups)) {
    stop_input("'groups' must be given with a gram: the group of each point")
  }
  name <- paste(deparse1(substitute(x)), "by", deparse1(substitute(groups)))
  check_named(..., refused = c("y", "kernel"))
  n <- nrow(x$K)
  if (!is.atomic(groups) || length(groups) != n || anyNA(groups)) {
    stop_input(
      "'groups' must have one value for each of the ", n, " points, none ",
      "missing, not ", describe(groups)
    )
  }
  grouped_test(list(gram = x), groups, name, ...)
}

#' @rdname mmd_test
#' @export
mmd_test.formula <- function(formula, data = NULL, subset, na.action, ...,
                             blocks = NULL) {
  if (length(formula) != 3L) {
    stop_input("'formula' must be of the form response ~ group")
  }
  check_subset(subset)
  check_named(..., refused = c("x", "y"))
  if (identical(formula[[2L]], quote(.))) {
    all <- setdiff(names(data), all.vars(formula[[3L]]))
    formula[[2L]] <- as.call(lapply(c("cbind", all), as.name))
  }
  frame <- formula_frame(match.call(expand.dots = FALSE), formula,
                         missing(na.action), parent.frame())
  blocks <- frame[["(blocks)"]]
  frame[["(blocks)"]] <- NULL
  if (ncol(frame) != 2L) {
    stop_input(
      "'formula' must have one grouping variable on its right, not ",
      ncol(frame) - 1L
    )
  }
  group <- frame[[2L]]
  if (anyNA(group)) {
    stop_input("the grouping variable '", names(frame)[2L],
               "' must have no missing values, not ", sum(is.na(group)), " NA")
  }
  x <- check_data(frame[[1L]], names(frame)[1L])
  rownames(x) <- NULL
  if (is.null(colnames(x)) && ncol(x) == 1L) {
    colnames(x) <- names(frame)[1L]
  }
  grouped_test(list(x = x), group, paste(names(frame), collapse = " by "),
               blocks = blocks, ...)
}

# Arguments of the default method, by name, none of those that the data stand
# for.
check_named <- function(..., refused) {
  names <- ...names()
  if (...length() > 0L && (is.null(names) || !all(nzchar(names)))) {
    stop_input("the arguments of the test must be named, as in B = 999")
  }
  wrong <- intersect(names, refused)
  if (length(wrong)) {
    stop_input("'", wrong[1L], "' must not be given; it comes with the data")
  }
}

# Sorts the points by group and goes through the door of the default method.
grouped_test <- function(points, groups, data_name, ...) {
  values <- length(unique(groups))
  if (is.numeric(groups) && 2 * values > length(groups)) {
    stop_input(
      "the groups must have at least 2 points each, not come from numbers ",
      "with ", values, " values; hsic_test() tests for dependence on them"
    )
  }
  groups <- droplevels(as.factor(groups))
  order <- order(as.integer(groups))
  pooled <- structure(
    list(points = points, order = order, groups = groups[order]),
    class = "kernmean_pooled", kernmean_data_name = data_name
  )
  mmd_test.default(pooled, NULL, ...)
}

# --- The object ------------------------------------------------------------

new_mmd_test <- function(samples, options, fitted, scheme, source, found,
                         data_name) {
  sizes <- samples$sizes
  names(sizes) <- levels(samples$groups)
  observed <- found$values[1L]
  law <- null_law(samples, options, scheme, source, found)
  height <- fitted$height
  several <- length(sizes) > 2L
  kernel <- samples$kernel
  kernel$bandwidth <- if (options$fuse) fitted$bandwidths else kernel$bandwidth
  new_test(
    "mmd_test",
    statistic = stats::setNames(height * observed, if (options$fuse) {
      "fused MMD^2"
    } else if (several) {
      "sum of MMD^2"
    } else {
      "MMD^2"
    }),
    parameter = if (options$null == "gamma") law$gamma else c(
      if (several) c(groups = length(sizes), N = sum(sizes)) else
        c(m = sizes[[1L]], n = sizes[[2L]]), B = scheme$B
    ),
    p.value = law$p,
    estimate = c(
      "distance of the kernel means" = if (!several && !options$fuse) {
        sqrt(max(0, height * observed))
      },
      bandwidth = if (length(kernel$bandwidth) == 1L) kernel$bandwidth
    ),
    alternative = "the distributions differ",
    method = mmd_title(options, scheme, source, several),
    data.name = data_name,
    replicates = if (!is.null(law$draws)) height * law$draws,
    gamma = law$gamma, null = options$null, estimator = options$estimator,
    type = options$statistic, select = options$select,
    lambda = if (is.null(fitted$lambda)) options$lambda else fitted$lambda,
    noise = fitted$noise, kernel = kernel, sizes = sizes, x = samples$x,
    gram = samples$gram, groups = samples$groups,
    pairs = if (several) pair_estimates(samples, source, fitted, options),
    unbiased = unbiased_summary(found$sums, source, sizes, options, scheme,
                                height)
  )
}

# list(p, draws, gamma): the p-value, and what it came from.
null_law <- function(samples, options, scheme, source, found) {
  observed <- found$values[1L]
  if (options$null == "gamma") {
    if (length(samples$sizes) != 2L) {
      stop_input("there must be two samples for null = \"gamma\", not ",
                 length(samples$sizes))
    }
    square <- found$sums$moments[2L]
    law <- gamma_law(source, samples$sizes, square)
    p <- if (is.null(law)) {
      1
    } else {
      stats::pgamma(observed, law[["shape"]], scale = law[["scale"]],
                    lower.tail = FALSE)
    }
    return(list(p = p, gamma = law))
  }
  draws <- if (options$null == "spectrum") {
    spectrum_draws(samples, options, scheme$B)
  } else {
    found$values[-1L]
  }
  list(p = permutation_p(observed, draws, found$scale, scheme$complete),
       draws = draws)
}

mmd_title <- function(options, scheme, source, several) {
  null <- if (options$null == "spectrum") {
    "spectrum null"
  } else if (options$null == "gamma") {
    "gamma null"
  } else if (scheme$all) {
    "all labellings"
  } else if (!is.null(source$bin)) {
    paste0("permutations of bins of ", source$bin, " point",
           if (source$bin > 1L) "s")
  } else if (!is.null(scheme$blocks)) {
    "permutations within blocks"
  } else {
    "permutation null"
  }
  paste0(
    "Kernel ", if (several) "k-sample" else "two-sample", " test (MMD, ",
    estimator_names[[options$estimator]], ", ",
    if (options$fuse) "fused " else "", options$statistic, "-statistic), ", null
  )
}

# MMD^2 of each pair of several samples, by the same statistic.
pair_estimates <- function(samples, source, fitted, options) {
  if (options$estimator == "fkmse") {
    return(NULL)
  }
  sizes <- samples$sizes
  sums <- labelled_sums(source, list(B = 0L), TRUE, FALSE)[[1L]]
  each <- utils::combn(length(sizes), 2L)
  labels <- levels(samples$groups)
  values <- vapply(seq_len(ncol(each)), \(p) {
    these <- each[, p]
    two <- list(own = sums$own[, these, drop = FALSE],
                trace = sums$trace[, these, drop = FALSE],
                cross = sums$cross[, p, drop = FALSE])
    fitted$height * one_statistic(two, sizes[these], options)
  }, numeric(1))
  names(values) <- apply(each, 2L, \(p) paste(labels[p], collapse = " - "))
  values
}

# The U-statistic and its exact deviation over permutations of points.
unbiased_summary <- function(sums, source, sizes, options, scheme, height) {
  plain <- options$null == "permutation" && !options$fuse &&
    length(sizes) == 2L && options$estimator %in% c("kme", "mkme", "mmkme") &&
    is.null(source$bin) && is.null(scheme$blocks)
  if (!plain) {
    return(NULL)
  }
  first <- lapply(sums[c("own", "cross", "trace")], \(a) a[1L, , drop = FALSE])
  deviation <- u_deviation(source$rows[, 1L], source$diagonal[, 1L],
                           unname(sizes), sums$moments[2L])
  if (!is.na(deviation)) {
    height * c(statistic = u_statistic(first, sizes), deviation = deviation)
  }
}

# --- Methods ---------------------------------------------------------------

#' @export
summary.mmd_test <- function(object, ...) test_summary(object)

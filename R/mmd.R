#' Kernel two-sample tests
#'
#' Tests whether two or more samples come from the same distribution, by the
#' distance of their kernel means (maximum mean discrepancy, MMD).
#'
#' With \eqn{\hat\mu_x}{mu_x} and \eqn{\hat\mu_y}{mu_y} the kernel means of
#' samples of m and n points, N = m + n, the statistic is
#' \describe{
#'   \item{`"biased"`}{\eqn{\|\hat\mu_x - \hat\mu_y\|^2 = S_{xx}/m^2 +
#'     S_{yy}/n^2 - 2 S_{xy}/(mn)}{|mu_x - mu_y|^2 = S_xx/m^2 + S_yy/n^2 - 2
#'     S_xy/(mn)}, with \eqn{S}{S} the sums of kernel values over pairs;}
#'   \item{`"unbiased"`}{\eqn{S^\circ_{xx}/(m(m-1)) + S^\circ_{yy}/(n(n-1)) -
#'     2S_{xy}/(mn)}{S'_xx/(m(m-1)) + S'_yy/(n(n-1)) - 2 S_xy/(mn)},
#'     \eqn{S^\circ}{S'} without the pairs of a point with itself: its mean
#'     over all permutations is 0. The two are also known as the V- and the
#'     U-statistic.}
#' }
#' For samples of one size they nearly agree. Otherwise the biased statistic
#' has more power where the smaller sample is the wider one, the unbiased where
#' the larger one is: of 15 and 60 normal points in 5 columns, standard
#' deviation 1.3 against 1, level 0.05, 0.34 (biased) and 0.20 in the first
#' case, 0.04 and 0.10 in the second; a shift of the mean by 0.7 in one column
#' is found by both in 0.53 (500 data sets, `B = 199`).
#'
#' More than two samples are compared by \eqn{\sum_{g<h} (m_g m_h/N)
#' \mathrm{MMD}^2_{gh}}{the sum over g < h of (m_g m_h/N) MMD^2_gh}, for
#' `"biased"` the sum of \eqn{m_g \|\hat\mu_g - \hat\mu\|^2}{m_g |mu_g - mu|^2}.
#'
#' @section Estimators: `"mkme"` and `"mmkme"` put the marginalized kernel in
#' place of the kernel (Xia et al., eq. 30): an RBF kernel with squared
#' bandwidths \eqn{\theta^2 + 2e_l}{theta^2 + 2 e_l} times a constant; its
#' variances e come from the pooled sample or from `noise` of [est_mkme()].
#' `"skmse"` and `"fkmse"` compare the shrunk means: S-KMSE chooses its factors
#' afresh for each permutation, F-KMSE takes \eqn{\lambda}{lambda} of the pooled
#' sample. An estimator of your own, [est_function()], gives the weights of both
#' means afresh for each permutation. `"smooth"` and `"stack"` take h, c and the
#' shares of the candidates from the pooled sample (more than 60 points in folds
#' of the sorted points, which do not depend on the order of the rows; each
#' point of a matrix of kernel values by itself), and the means and covariances
#' of each sample afresh for each permutation: of 20 and 20 points in two
#' columns (150 data sets) they found a shift by 0.7 in 0.52 and 0.53, the KME
#' in 0.50, but a standard deviation of 2 in place of 1 in 0.25 and 0.26, the
#' KME in 0.38. Means are shrunk towards 0: an estimator with a target is
#' refused.
#'
#' @section Null distributions:
#' `"permutation"` is exact whatever the distribution: everything that is
#' chosen from the data (bandwidth, noise, \eqn{\lambda}{lambda}) is chosen
#' from the pooled sample by rules that do not see the labels (a `bandwidth` of
#' your own that is a function must not depend on the order of the rows). The
#' p-value is (1 + number of draws with a statistic at least as large)/(B + 1);
#' with `permutations = "all"` it is the share among all labelings. Each
#' permutation is drawn as by [sample.int()] and its first m entries are the
#' first sample.
#'
#' `"spectrum"` draws from the weighted sum of chi-squared variables with the
#' eigenvalues of the centered pooled Gram matrix (Gretton et al. 2009), and
#' `"gamma"` (two samples, `"biased"`) takes a gamma law with the exact mean and
#' variance of the statistic over all permutations. Both are approximations, the
#' first for large samples only (at m = n = 20 in 20 columns its level is 0.02
#' at a nominal 0.05).
#'
#' With more than 20,000 points in all (and no `blocks`, `clusters` or
#' `permutations`, not for `"fkmse"` or an estimator of your own, and unless the
#' smallest sample is tiny), permutations move bins of points: each sample is
#' cut at random into bins of the same size, the m points of the smallest sample
#' over `bins`, rounded down; points left over keep their label, and bins change
#' places. These are permutations too, so the level stays exact, at some loss of
#' power, and one pass over the kernel values serves all of them.
#'
#' @section Pairs and clusters:
#' What is permuted must be what could have been labeled otherwise. Points of
#' pairs, subjects or strata that have points in several samples change places
#' within their `blocks`. Points that come in clusters, each of which lies in
#' one sample (the pupils of a class, the cells of an animal), keep together:
#' with `clusters` the labels of whole clusters are permuted, so many of each
#' sample as there are, and with `blocks` too those of the clusters of a block.
#' Clusters may have different sizes; the samples of a draw have the sizes that
#' it gives them. The level is exact if clusters are exchangeable, their sizes
#' included: for 12 clusters of 7 normal points, with effects of clusters of
#' twice the standard deviation of the points, 1,000 data sets gave at the
#' nominal 0.05 0.048, and 0.584 without `clusters`. Fewer than 20
#' labelings, a warning says, cannot give a small p-value.
#'
#' @section Sizes of effects:
#' `estimate` holds for two samples the distance MMD, and for any number the
#' share of the total that lies between the samples, a kernel \eqn{R^2}{R^2}:
#' \deqn{\frac{\sum_g m_g \|\hat\mu_g - \hat\mu\|^2}{\sum_i \|\phi(z_i) -
#' \hat\mu\|^2},}{sum_g m_g |mu_g - mu|^2 / sum_i |phi(z_i) - mu|^2,} with
#' \eqn{\hat\mu}{mu} the mean of all N points, \eqn{\phi(z_i)}{phi(z_i)} the
#' feature of one: 0 for samples with the same means, 1 where only the sample
#' makes points differ; with [kernel_linear()] it is \eqn{R^2}{R^2} of an
#' analysis of variance, with [kernel_energy()] that of energy statistics. Its
#' mean over all permutations of points is (groups - 1)/(N - 1). It is of plain
#' means whatever the estimator and the statistic, in the kernel in use (the
#' marginalized one; of many bandwidths, their average; smoothing and stacks do
#' not change it), and depends on the
#' bandwidth: a small one lets every point differ from every other.
#'
#' @section Many bandwidths:
#' `bandwidths = "fuse"` combines ten bandwidths of [kernel_rbf()] in one
#' statistic (MMD-FUSE, Biggs et al. 2023), spaced evenly from half the 5% to
#' twice the 95% quantile of the pooled distances (of 2,000 points drawn at
#' random, if there are more); numbers are bandwidths of your own. The statistic
#' of the unbiased \eqn{U_k}{U_k} is
#' \eqn{\log \mathrm{mean}_k
#' \exp(\lambda U_k/\sigma_k)}{log mean_k exp(lambda U_k/sigma_k)} with
#' \eqn{\lambda = \sqrt{m(m-1)}}{lambda = sqrt(m(m - 1))}, m the smaller sample,
#' and \eqn{\sigma_k^2}{sigma_k^2} the mean squared kernel value of two
#' different points. One permutation p-value answers for all of them.
#'
#' What the median misses: differences on a scale far below the distances of
#' points. What it does better: those that fill the sample. The power at level
#' 0.05 of two samples of 100 points (300 data sets, `B = 99`), median and
#' `"fuse"`: a uniform against a density with 4 waves 0.03 and 0.74, with 8
#' waves 0.07 and 0.76; a normal against two modes 0.28 and 0.69; normals
#' shifted by 0.4 0.69 and 0.46, with standard deviation 1.5 0.77 and 0.58, in
#' ten columns shifted by 0.2 each 0.85 and 0.62.
#'
#' @section Filters, many groups, models:
#' Differences along directions of little variance, or of covariances, which the
#' MMD does not see, are those of `filter = TRUE`: nine statistics and one exact
#' p-value, see [test_filters]. With `control` or `pairwise` each group is
#' compared with one other, or each with each, see [mmd_comparisons]. With a
#' model in place of `y` the sample is tested against it, see [mmd_model].
#'
#' @section Cost:
#' 2,048 permutations at a time are one walk over the tiles of the pooled Gram
#' matrix, which is not stored: O(N^2 (d + B/30)) time, N B/8 bytes. Of clusters
#' the sums over pairs of them are stored, and take the place of points.
#' `B = NULL` is as many permutations as one processor draws in about a second,
#' in thousands between 999 and 9,999, by the sizes of the samples (clusters,
#' bins), the number of groups and bandwidths and the kind of estimator alone:
#' it was measured once, no clock is looked at. For two samples these are 9,999
#' up to 800 points in all, 1,999 at 2,000 and 999 above 2,460.
#' `"spectrum"` stores it and takes 4N^3/3 flops. `estimator = "fkmse"` solves
#' two systems for each permutation, O(B (m^3 + n^3)), on the stored matrix; a
#' warning says when that exceeds 10^11 flops.
#'
#' @param x The first sample: a numeric vector, matrix or data frame of numeric
#'   columns, points in rows; or the [gram()] or the distances (`dist`, see
#'   [mmd_comparisons]) of the pooled sample; or a
#'   [kme_sketch()], see Sketches. Factors among columns take [hsic_test()] of
#'   the group and the columns.
#' @param y The second sample, with the columns of `x` (matched by name where
#'   both have names); for a sketch without groups another one, or rows.
#' @param groups With a `gram` or a `dist` object: the group of each point, a
#'   factor or a vector.
#' @param formula `response ~ group`, with a numeric response (several:
#'   `cbind(a, b) ~ group`, all other columns but those of `blocks` and
#'   `clusters`: `. ~ group`) and two or more groups. Rows are sorted by group;
#'   a kernel must be given by name.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#' @param kernel A kernel; [kernel_energy()] gives the energy test. A bandwidth
#'   is chosen from the pooled sample.
#' @param estimator The estimator of the kernel means: `"kme"`, `"skmse"`,
#'   `"fkmse"`, `"mkme"`, `"mmkme"`, `"smooth"` or `"stack"`, an object such as
#'   [est_skmse()], which
#'   holds its own arguments, or a function of your own, see [est_kme()].
#' @param ... Must be empty; in the other methods, arguments of the default
#'   method; in `update()`, the arguments to change.
#' @param bandwidths `NULL` for the one bandwidth of the kernel, `"fuse"` for
#'   ten RBF bandwidths in one statistic, or at least two of your own, see Many
#'   bandwidths.
#' @param filter,ratio,order,factors `"none"`, or the spectral filter of further
#'   statistics, `"tikhonov"` (`TRUE`), `"iterated"`, `"showalter"` or
#'   `"cutoff"`, with their ratios (`NULL` for 1, 0.1, 0.01 and 0.001), their
#'   orders (`NULL` for 0, 1 and 2) and multiples of the bandwidth, see
#'   [test_filters]. For permutations and estimators that are averages.
#' @param model In place of `y`, a model that the sample is tested against:
#'   `"normal"`, a Gaussian mixture or a function that simulates, see
#'   [mmd_model]; `y` may be one too.
#' @param control,pairwise,adjust A group that all others are compared with, by
#'   name, or `TRUE` for all pairs, and the adjustment of their p-values, one of
#'   [p.adjust.methods], see [mmd_comparisons].
#' @param B Number of permutations (draws for `null = "spectrum"`), `NULL` for
#'   as many as about a second allows, 999 to 9,999, see Cost; not used for
#'   `"gamma"`.
#' @param null `"permutation"`, `"spectrum"` or `"gamma"`; for sketches
#'   `"permutation"` or `"spectrum"`, and `NULL` for the first that they allow.
#' @param statistic `"biased"` or `"unbiased"`. Estimators that shrink have the
#'   biased statistic only, many bandwidths the unbiased one, which is the
#'   default for filters.
#' @param permutations `NULL` for `B` random ones, `"all"` for all labelings (at
#'   most 10^5), or a matrix with a permutation of the N rows of the data in
#'   each column, its first m entries the first sample (of a formula the first
#'   group, wherever its rows stand). If a column leaves the labels as they are,
#'   the observed statistic is not counted again. With `blocks`, `"all"` means
#'   all labelings within the blocks. Of package permute a set (class
#'   `permutationMatrix`; also a matrix of N columns and another number of
#'   rows), or a design of `permute::how()`, of which `B` are drawn, or all that
#'   it has: a row p puts row `p[i]` of the data in the place of row i. Not with
#'   `control` or `pairwise`.
#' @param blocks One value for each point, those of `x` first (in the formula
#'   method it may be a variable of `data`); points change places within a block
#'   only (pairs, repeated measures, strata, sites).
#' @param clusters One value for each point, those of `x` first (in the formula
#'   method it may be a variable of `data`); whole clusters change places, see
#'   Pairs and clusters. Not for other nulls than permutations, `bins` and given
#'   permutations; `"all"` then means all labelings of the clusters.
#' @param bins Bins in the smallest sample, see Null distributions; `NULL` for
#'   25 above 20,000 points and single points below.
#' @param scale `FALSE`, `TRUE` or `"whiten"`: the units of the columns, see
#'   [gram()]; they come from the pooled sample.
#' @param progress Show a progress bar?
#' @param object A test.
#'
#' @return An object of class `c("mmd_test", "htest")`, a list with `statistic`,
#' `parameter`, `p.value`, `estimate`, `alternative`, `method`, `data.name` as
#' usual for tests, and further fields. `parameter` has the sizes, `B` and the
#' bandwidth, if it is one number; `estimate` for two samples the root of the
#' statistic, 0 if that is negative, as `MMD`, then `kernel R^2`, see Sizes of
#' effects, and last the bandwidth again, which is not printed. The others are
#' \item{replicates}{the statistic of each draw; `NULL` for `"gamma"`}
#' \item{gamma}{shape and scale, for `null = "gamma"`}
#' \item{null, type, estimator}{the null distribution, `"biased"` or
#'   `"unbiased"`, and the estimator as an object}
#' \item{lambda, alpha, noise}{the shrinkage, its share in the mean of each
#'   sample as observed (S-KMSE), and the variances used, where there are any}
#' \item{smoothing, candidates}{h and c of `"smooth"`, the shares of `"stack"`}
#' \item{kernel}{the kernel, its bandwidth a number, or the many bandwidths}
#' \item{sample, groups, sizes}{the pooled sample, sorted by group (its points
#'   are `sample$x`, in the units of the kernel; of sketches the landmarks), the
#'   group of each point, and the size of each}
#' \item{pairs}{for more than two samples, \eqn{\mathrm{MMD}^2}{MMD^2} of each
#'   pair; `summary()` prints the distances}
#' \item{unbiased}{for two samples and permutations of points: the unbiased
#'   statistic and its exact standard deviation over all permutations, from
#'   which `summary()` gives a z-value}
#' \item{arguments}{what was asked for}
#' \item{statistics}{a data frame with a row for each statistic of a filter or
#'   of many bandwidths by `factors`: what it is, its value, its standardized
#'   value `z`, its own p-value, and whether it was the `maximum`}
#' \item{left}{what the features of many points leave of the mean of k(x, x),
#'   see [test_filters]} Every test of this package has these fields in this
#'   order (and `variables` and `ranks`, see [hsic_test()]); those that do not
#'   apply are `NULL`.
#'
#' `summary()` adds the kernel, what was chosen, the null distribution and the
#' Monte-Carlo error of the p-value, \eqn{\sqrt{p(1 - p)/(B + 1)}}{sqrt(p(1 -
#' p)/(B + 1))}, where permutations are random.
#' `plot()` shows the null distribution with the observed value, or the witness
#' function, see [plot.mmd_test()]. `update()` tests again with other arguments:
#' on the same data unless `x` or `y` is given; other data of a test by formula
#' or of a `gram` take a new call.
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
#' # Clusters: litters, each of which had one treatment
#' litter <- rep(1:12, each = 5)
#' z <- rnorm(12)[litter] + rnorm(60)
#' mmd_test(z ~ litter > 6, clusters = litter)
#'
#' # Many bandwidths, one p-value
#' mmd_test(rnorm(40), rnorm(40, sd = 2), bandwidths = "fuse", B = 199)
#'
#' # The same data, means shrunk by a given amount
#' update(test, estimator = est_skmse(lambda = 0.1))
#'
#' plot(test)
#' plot(test, "witness")
#' @export
mmd_test <- function(x, ...) {
  UseMethod("mmd_test")
}

#' @rdname mmd_test
#' @export
mmd_test.default <- function(x, y, kernel = kernel_rbf(), estimator = "kme",
                             ..., bandwidths = NULL, filter = "none",
                             ratio = NULL, order = NULL, factors = NULL,
                             model = NULL, control = NULL, pairwise = FALSE,
                             adjust = "holm", B = NULL,
                             null = c("permutation", "spectrum", "gamma"),
                             statistic = c("biased", "unbiased"),
                             permutations = NULL, blocks = NULL,
                             clusters = NULL, bins = NULL, scale = FALSE,
                             progress = interactive()) {
  refuse_paired(...)
  check_dots(...)
  label <- c(x = deparse1(substitute(x)), y = deparse1(substitute(y)))
  if (!is.null(model) || !missing(y) && is_model(y)) {
    if (!is.null(model)) {
      if (!missing(y)) {
        stop_input("'y' must not be given with 'model', which takes its place")
      }
      label[["y"]] <- deparse1(substitute(model))
      y <- model
    }
    given <- Filter(Negate(is.null), as.list(match.call())[-1L])
    given <- setdiff(names(given), c("x", "y", "model", "progress"))
    return(test_model(
      x, y, stats::setNames(label, c("x", "model")),
      if (!missing(kernel)) kernel, estimator, B,
      if (!missing(null)) null, if (!missing(statistic)) statistic,
      if (!missing(scale)) scale, progress, given
    ))
  }
  if (missing(y)) {
    stop_input("'y' must be given: the second sample",
               if (is.list(x)) "; for values and groups use a formula")
  }
  if (is.character(y) && length(y) == 1L) {
    stop_input("'y' must be the second sample or a model (\"normal\", a ",
               "mixture or a function that simulates), not \"", y, "\"")
  }
  if (is.factor(y) || is.character(y)) {
    stop_input(
      "'y' must be the second sample, not ", describe(y),
      "; for values and groups use a formula, values ~ groups"
    )
  }
  if (inherits(y, "kme_sketch")) {
    stop_input("'y' must not be a sketch where 'x' holds points; give the ",
               "sketch first, as in mmd_test(y, x)")
  }
  test_samples(
    pool_pair(x, y, label), if (!missing(kernel)) kernel, estimator,
    bandwidths = bandwidths, filter = filter, ratio = ratio, order = order,
    factors = factors, control = control, pairwise = pairwise, adjust = adjust,
    B = B, null = null, statistic = if (!missing(statistic)) statistic,
    permutations = permutations, blocks = blocks, clusters = clusters,
    bins = bins, scale = if (!missing(scale)) scale, progress = progress
  )
}

# Pairs are blocks.
refuse_paired <- function(...) {
  if ("paired" %in% ...names()) {
    stop_input(
      "'paired' is no argument of mmd_test(): pairs are given by 'blocks', as ",
      "in mmd_test(x, y, blocks = c(id_x, id_y)) or mmd_test(extra ~ group, ",
      "sleep, blocks = ID)"
    )
  }
}

#' @rdname mmd_test
#' @export
mmd_test.gram <- function(x, groups, ...) {
  if (missing(groups)) {
    stop_input("'groups' must be given with a gram: the group of each point")
  }
  label <- paste(deparse1(substitute(x)), "by", deparse1(substitute(groups)))
  check_named(..., refused = c("y", "kernel"))
  n <- nrow(x$K)
  if (!is.atomic(groups) || length(groups) != n || anyNA(groups)) {
    stop_input(
      "'groups' must have one value for each of the ", n, " points, none ",
      "missing, not ", if (is.atomic(groups)) {
        paste(length(groups), "values,", sum(is.na(groups)), "missing")
      } else {
        describe(groups)
      }
    )
  }
  test_samples(pool_groups(gram_sample(x), groups, label, "x"), ...)
}

#' @rdname mmd_test
#' @export
mmd_test.formula <- function(formula, data = NULL, subset, na.action, ...,
                             blocks = NULL, clusters = NULL) {
  check_formula(formula, data)
  if (length(formula) != 3L) {
    stop_input("'formula' must be of the form response ~ group")
  }
  check_named(..., refused = c("x", "y"))
  if ("model" %in% ...names()) {
    stop_input("'model' must not be given with a formula; a test against a ",
               "model takes the points, as in mmd_test(x, \"normal\")")
  }
  check_dot(formula)
  if (identical(formula[[2L]], quote(.))) {
    used <- c(all.vars(substitute(blocks)), all.vars(substitute(clusters)))
    formula[[2L]] <- as.call(c(quote(cbind),
                               left_columns(formula, data, used)))
  }
  check_bound(formula, data)
  frame <- formula_frame(match.call(expand.dots = FALSE), formula, data,
                         missing(na.action), parent.frame())
  check_left(attr(frame, "terms"))
  units <- list(blocks = frame[["(blocks)"]], clusters = frame[["(clusters)"]])
  frame <- frame[!names(frame) %in% c("(blocks)", "(clusters)")]
  if (ncol(frame) != 2L) {
    stop_input(
      "'formula' must have one grouping variable on its right (interaction(a, ",
      "b) makes one of two), not ",
      ncol(frame) - 1L
    )
  }
  group <- frame[[2L]]
  if (anyNA(group)) {
    stop_input("the grouping variable '", names(frame)[2L],
               "' must have no missing values, not ", sum(is.na(group)), " NA")
  }
  x <- check_data(plain_term(frame[[1L]]), names(frame)[1L])
  rownames(x) <- NULL
  if (is.null(colnames(x)) && ncol(x) == 1L) {
    colnames(x) <- names(frame)[1L]
  }
  label <- paste(names(frame), collapse = " by ")
  test_samples(pool_groups(points_sample(x, NULL), group, label,
                           names(frame)[1L]),
               blocks = units$blocks, clusters = units$clusters, ...)
}

# In cbind() a factor would become the numbers of its levels.
check_bound <- function(formula, data) {
  left <- formula[[2L]]
  if (!is.call(left) || !identical(left[[1L]], quote(cbind))) {
    return(invisible())
  }
  for (part in as.list(left)[-1L]) {
    if (is.factor(read_formula(eval(part, data, environment(formula))))) {
      stop_input("'formula' must have numeric columns only on its left; '",
                 deparse1(part), "' is a factor", mixed_hint)
    }
  }
}

# Arguments of the default method, by name, none of those that the data stand
# for.
check_named <- function(..., refused) {
  refuse_paired(...)
  names <- ...names()
  if (...length() > 0L && (is.null(names) || !all(nzchar(names)))) {
    stop_input("the arguments of the test must be named, as in B = 999")
  }
  wrong <- intersect(names, refused)
  if (length(wrong)) {
    stop_input("'", wrong[1L], "' must not be given; it comes with the data")
  }
}

# The test of a pooled sample, see pool_pair(); NULL for `kernel` and
# `statistic` is the default.
test_samples <- function(pooled, kernel = NULL, estimator = est_kme(), ...,
                         bandwidths = NULL, filter = "none", ratio = NULL,
                         order = NULL, factors = NULL, control = NULL,
                         pairwise = FALSE, adjust = "holm", B = NULL,
                         null = mmd_nulls, statistic = NULL,
                         permutations = NULL, blocks = NULL, clusters = NULL,
                         bins = NULL, scale = NULL,
                         progress = interactive()) {
  check_dots(...)
  asked <- read_filter(filter, ratio, order, factors, 0:2)
  options <- read_mmd_options(kernel, estimator, bandwidths, asked, null,
                              statistic, bins, progress)
  options$compared <- !is.null(control) || check_flag(pairwise, "pairwise")
  samples <- read_samples(pooled, options, scale)
  if (is_single(asked)) {
    check_factors(samples$sample, asked$factors)
    samples$sample <- times_bandwidth(samples$sample, asked$factors)
    options["filter"] <- list(without_factor(asked))
  }
  arguments <- list(
    pooled = pooled[c("order", "label", "name")], kernel = kernel,
    estimator = options$estimator, bandwidths = bandwidths,
    filter = asked$name, ratio = ratio, order = order, factors = factors,
    control = control, pairwise = pairwise, adjust = adjust, B = B,
    null = options$null, statistic = statistic, permutations = permutations,
    blocks = blocks, clusters = clusters, bins = options$bins, scale = scale,
    progress = progress
  )
  if (options$compared) {
    given <- c("control", "pairwise", "adjust", "B", "permutations", "blocks",
               "clusters", "bins")
    return(compare_samples(samples, options, arguments[given], arguments))
  }
  scheme <- read_scheme(samples, options, arguments)
  new_mmd_test(samples, options, scheme,
               mmd_statistics(samples, options, scheme), arguments)
}

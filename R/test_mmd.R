#' Kernel two-sample test
#'
#' Tests whether two samples come from the same distribution, by the distance
#' of their kernel means (maximum mean discrepancy, MMD).
#'
#' With \eqn{\hat\mu_x}{mu_x} and \eqn{\hat\mu_y}{mu_y} the kernel means of
#' samples of m and n points, N = m + n, and S the sums of kernel values over
#' pairs, the biased statistic is
#' \deqn{\|\hat\mu_x - \hat\mu_y\|^2 = S_{xx}/m^2 + S_{yy}/n^2 -
#'   2 S_{xy}/(mn);}{|mu_x - mu_y|^2 = S_xx/m^2 + S_yy/n^2 - 2 S_xy/(mn);} the
#' unbiased one leaves out the pairs of a point with itself, \eqn{S^\circ_{xx}/
#' (m(m-1)) + S^\circ_{yy}/(n(n-1)) - 2S_{xy}/(mn)}{S'_xx/(m(m-1)) +
#' S'_yy/(n(n-1)) - 2 S_xy/(mn)}: its mean over all permutations is 0.
#'
#' The test by permutations is exact whatever the distribution of independent
#' points (else see `blocks` and `clusters`): bandwidth, noise and
#' \eqn{\lambda}{lambda} are chosen from the pooled sample by rules that do not
#' see the labels. The p-value is (1 + number of draws with a statistic at least
#' as large)/(B + 1). Which of the N points are in the smaller of two samples is
#' drawn as by `sample.int(N, m)`; for more samples all are drawn, as by
#' [sample.int()]; both with the `sample.kind` "Rejection" of [RNGkind()],
#' whichever is set.
#'
#' Of more than two groups, by a formula, a `gram` or a `dist` object, the
#' statistic is \eqn{\sum_{g<h} (m_g m_h/N) \mathrm{MMD}^2_{gh}}{the sum over g
#' < h of (m_g m_h/N) MMD^2_gh}. All [estimators] without target are taken: how
#' each sees a permutation stands there.
#' @section Which statistics:
#' The MMD alone sees shifts best, and little else: neither correlation nor
#' spread in many columns. So the test of points with the KME, a kernel whose
#' values k(x, x) are 1, permutations, and nothing else asked for, is a joint
#' one of seven statistics, to 3,000 points that of
#' `test_filter(ratio = c(0.1, 0.001), order = c(0, 1, "gpk", "moments"))`: the
#' MMD, shifts along directions in which the points vary little, sums within
#' samples and moments. These have the power of all statistics together in a
#' few columns. Where there are more columns than a quarter of the points, to
#' 400 points, the test is that of `filter = TRUE`, whose spectral profiles see
#' more there and take most of its time. `print()` says which statistic was the
#' largest. With more points than 3,000, of a `gram`
#' or a `dist` object, with other estimators or null distributions, many
#' bandwidths, bins or an explicit `statistic` it is the MMD alone, as it is by
#' `filter = "none"`; with `blocks` or factors among columns it is one of a few
#' statistics, see below. `estimate` has the MMD in any case.
#' @section Pairs and clusters:
#' Points of pairs, subjects or strata that have points in several samples
#' change places within their `blocks`. Points that come in clusters, each of
#' which lies in one sample (the pupils of a class), keep together: the labels
#' of whole `clusters` are permuted, with `blocks` too within these.
#'
#' Blocks are given, too: the test asks for differences within them, and what
#' differs between blocks is taken away. With H the identity less the means of
#' blocks, HKH stands in place of K in every statistic, filter, estimator and
#' picture: features less the means of their blocks. Of two samples
#' \eqn{\mathrm{MMD}^2}{MMD^2} is \eqn{w'HKHw}{w'HKHw}, w = 1/m on x and -1/n on
#' y, the stratified MMD; with [kernel_linear()] and a binary outcome that is
#' the statistic of Mantel and Haenszel. `r.squared` is the share of what varies
#' within blocks. HKH is not stored where points are known and nothing but sums
#' is asked for. Permutations within blocks leave H as it is: the level is
#' exact. S-KMSE shrinks features that are centered, often to nothing.
#'
#' With `blocks` the plain statistic is one of three, unless the kernel is
#' linear, for which all are the same. \eqn{\mathrm{MMD}^2}{MMD^2} *of points
#' less block means*, whose columns are centered before the kernel sees them,
#' sees shifts that are small beside the differences of subjects; the plain one
#' sees changes of scale; *linear* \eqn{\mathrm{MMD}^2}{MMD^2}, of points, sees
#' what a linear model with blocks would. The largest one, each standardized
#' over all draws, is the statistic `max z`, see [test_filter()]. The bandwidth
#' of the second is to that of the points as the median distances are. For sums
#' of kernels and [kernel_function()], and where only kernel values are known,
#' its kernel is an RBF kernel, at the median, of the distances of features less
#' the means of their blocks. These statistics join those of filters that have
#' order 0. `filter = "none"` is the plain statistic alone, as are `bandwidths =
#' "fuse"` and estimators other than the KME.
#'
#' `print()` says where the statistic is below 99% of the draws: then the points
#' that change places are less alike than those of different samples, as in
#' pairs that `blocks` were not told of.
#'
#' A single point may be a sample: it is tested against the others by the plain
#' biased statistic alone (p is at least 1/N).
#'
#' @section Numbers and factors:
#' Of columns some of which are factors the kernel is [kernel_gower()], and of
#' two statistics, the other of a kernel that sees interactions, the largest
#' decides; that page says what each sees. `filter = "none"` is the first alone.
#'
#' @section Many bandwidths:
#' `bandwidths = "fuse"` combines ten bandwidths of [kernel_rbf()], evenly from
#' half the 5% to twice the 95% quantile of the pooled distances (MMD-FUSE):
#' \eqn{\log \mathrm{mean}_k \exp(\lambda U_k/\sigma_k)}{log mean_k exp(lambda
#' U_k/sigma_k)} with the unbiased \eqn{U_k}{U_k}, \eqn{\lambda =
#' \sqrt{m(m-1)}}{lambda = sqrt(m(m - 1))} of the smaller sample and the mean
#' squared kernel value \eqn{\sigma_k^2}{sigma_k^2}.
#' @section PERMANOVA:
#' `r.squared` is the \eqn{R^2}{R^2} of `vegan::adonis2(D ~ group)` on the
#' distances of the kernel, \eqn{D_{ij}^2 = k(x_i, x_i) + k(x_j, x_j) - 2 k(x_i,
#' x_j)}{D_ij^2 = k(x_i, x_i) + k(x_j, x_j) - 2 k(x_i, x_j)}, which for
#' [kernel_linear()] are those of `dist()`; of a `dist` object d, on the roots
#' of its distances. So it is `mmd_test(d^2, groups)` whose `r.squared` is that
#' of `adonis2(d ~ groups)`. It depends on the bandwidth: for `. ~ Species` in
#' `iris` it is 0.58 at half the median distance, 0.78 at the median distance,
#' 0.84 at twice that and 0.87 for the linear kernel, in both packages. So there
#' is no size of it that is large: as a rule of thumb compare shares at the same
#' bandwidth, and take that of the linear kernel for the usual share of
#' variance. Under the null hypothesis of `groups` samples its mean is (groups -
#' 1)/(N - 1).
#' @section Cost:
#' 2,048 permutations at a time are one walk over the tiles of the pooled Gram
#' matrix, which is not stored: O(N^2 (d + B/30)) time, N B/8 bytes. Of clusters
#' and bins the sums over pairs take the place of points. Estimators that are
#' fitted to each labeling, as `"fkmse"`, take O(B (m^3 + n^3)). The matrix of a
#' [kernel_function()] is stored, 8N^2 bytes, and checked as by [gram()].
#'
#' @param x The first sample: a numeric vector, matrix or data frame (factors,
#'   or characters, among its columns: [kernel_gower()]), points in rows; or the
#'   [gram()] or the distances (`dist`, with the kernel \eqn{-D_{ij}}{-D_ij} of
#'   the energy test) of the pooled sample; or a sketch, see
#'   [mmd_test.kme_sketch()].
#' @param y The second sample, with the columns of `x`.
#' @param groups With a `gram` or a `dist` object: the group of each point, a
#'   factor or a vector.
#' @param formula `response ~ group`, `cbind(a, b) ~ group`, `table ~ group`
#'   with a data frame of that name, `distances ~ group`, or `. ~ group` for
#'   all other columns but those of `blocks` and `clusters`; or the other way
#'   round, `group ~ a + b`, where the group is a factor, characters or logical
#'   values. `response ~ group | z` compares groups with z alike, see [given].
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default; of rows that `na.omit` drops the field `na.action` has
#'   the numbers, and `print()` their count.
#' @param kernel A kernel; [kernel_energy()] gives the energy test. A bandwidth
#'   is chosen from the pooled sample.
#' @param estimator The estimator of the kernel means, see [est_kme()].
#' @param ... Must be empty; in the other methods, arguments of the default
#'   method.
#' @param bandwidths `NULL` for the one bandwidth of the kernel, `"fuse"` for
#'   ten RBF bandwidths in one statistic, or at least two of your own.
#' @param filter Several statistics with one p-value: `TRUE`, the name of a
#'   spectral filter, or [test_filter()]; `"none"` is the MMD alone; `NULL` is a
#'   rule, see Which statistics.
#' @param B Number of permutations (of draws of another null distribution);
#'   `NULL` is 399 for several statistics, else 999, or all labelings if these
#'   are no more than 2,000.
#' @param blocks,clusters One value for each point, those of `x` first, or
#'   variables of `data` (`id`, `"id"` or `~ id`), see Pairs and clusters.
#' @param scale `FALSE`, `TRUE` or `"whiten"`: the units of the columns, see
#'   [units].
#' @param control What experts set, see [test_control()].
#' @param progress Show a progress bar?
#'
#' @return An object of class `c("mmd_test", "kernmean_fit", "htest")`, a list
#' with `statistic`, `parameter` (sizes, `B` and the bandwidth, if it is one
#' number), `p.value`, `estimate`, `alternative`, `method`, `data.name` as
#' usual, and fields that all tests of this package have, `NULL` where they do
#' not apply. `estimate` has for two samples the `MMD`, the root of the
#' statistic (0 if that is negative), and the share of the total that lies
#' between the samples, `r.squared`, \eqn{\sum_g m_g \|\hat\mu_g -
#' \hat\mu\|^2 / \sum_i \|\phi(z_i) - \hat\mu\|^2}{sum_g m_g |mu_g - mu|^2 /
#' sum_i |phi(z_i) - mu|^2} of plain means; and the bandwidth.
#' \item{replicates, gamma}{the statistic of each draw; shape and scale of a
#'   gamma law}
#' \item{null, type, estimator}{the null distribution, `"biased"` or
#'   `"unbiased"`, and the estimator}
#' \item{lambda, alpha, noise, smoothing, candidates}{what the estimator chose}
#' \item{kernel}{with its bandwidth a number, or the many}
#' \item{sample, groups, sizes}{the pooled sample, sorted by group}
#' \item{pairs}{for more than two samples, \eqn{\mathrm{MMD}^2}{MMD^2} of each
#'   pair}
#' \item{unbiased}{for two samples: the unbiased statistic and its exact
#'   standard deviation over all permutations}
#' \item{statistics, left}{see [test_filter()]}
#' \item{views}{samples of the points less the means of their blocks, with the
#'   linear or the ANOVA kernel, by the names of their statistics}
#' \item{spectra}{with profiles: the eigenvalues of each group's covariance,
#'   and the 5% and 95% quantiles of the draws'}
#' \item{arguments, origin}{what was asked for, and what the data are called}
#'
#' [plot()][plot.mmd_test] shows the null distribution or the witness function,
#' and `update()` tests again, on the same data unless `x` or `y` is given.
#'
#' @references
#' Gretton, A., Borgwardt, K. M., Rasch, M. J., Schölkopf, B. and Smola, A.
#' (2012). A kernel two-sample test. *Journal of Machine Learning Research* 13,
#' 723--773.
#'
#' Biggs, F., Schrab, A. and Gretton, A. (2023). MMD-FUSE: learning and
#' combining kernels for two-sample testing without data splitting.
#' \doi{10.48550/arXiv.2306.08777}
#'
#' Xia, X. et al. (2021). Kernel mean estimation by marginalized corrupted
#' distributions. Equations 29 to 31 (marginalized estimators).
#' \doi{10.48550/arXiv.2107.04855}
#' @seealso [glossary]; [mmd_pairwise()], [mmd_gof()], [hsic_test()];
#'   [kme_distance()].
#' @examples
#' set.seed(1)
#' test <- mmd_test(rnorm(40), rnorm(40, sd = 2))
#' summary(test)
#' plot(test, "witness")
#'
#' # Three species, and the energy test
#' mmd_test(cbind(Sepal.Length, Sepal.Width) ~ Species, iris, B = 199)
#' mmd_test(Sepal.Width ~ Species, iris, kernel = kernel_energy(), B = 199)
#'
#' # Pairs: all ways to exchange the two values within a subject; the paired
#' # t-test has p = 0.003
#' mmd_test(extra ~ group, sleep, blocks = ID)
#'
#' # The same data with many bandwidths
#' update(test, bandwidths = "fuse")
#' @export
mmd_test <- function(x, ...) {
  UseMethod("mmd_test")
}

#' @rdname mmd_test
#' @export
mmd_test.default <- function(x, y, kernel = kernel_rbf(), estimator = "kme",
                             ..., bandwidths = NULL, filter = NULL, B = NULL,
                             blocks = NULL, clusters = NULL, scale = FALSE,
                             control = test_control(),
                             progress = interactive()) {
  check_given(x)
  asked <- request(mmd_arguments)
  if (!inherits(x, "pooled_samples")) {
    if (missing(y)) {
      stop_input("'y' must be given: the second sample",
                 if (is.list(x)) "; for values and groups use a formula")
    }
    if (is_grouping(y) && !is_grouping(x)) {
      stop_input("'y' must be the second sample, not ", describe(y),
                 "; for values and groups use a formula, values ~ groups")
    }
    x <- pool_pair(x, y, c(x = label_of(substitute(x)),
                           y = label_of(substitute(y))))
  } else if (!missing(y)) {
    stop_input("'y' must not be given; it comes with the data")
  }
  test_pooled(x, asked)
}

open_rbf <- new_kind("kernel_rbf()", \(x) {
  is.null(x) ||
    kernel_has(x, "Gaussian form") && identical(x$bandwidth, "median")
})

mmd_arguments <- test_table(
  "mmd_test.default", kernel = unless_given(a_kernel),
  bandwidths = bandwidth_set("fuse"), filter = a_filter(
    0:2, c("gpk", "moments", "one-sided", "profile"), c("gpk", "profile")
  ),
  rules = list(when("bandwidths", kernel = open_rbf, filter = unfiltered))
)

mmd_rules <- c(
  list(
    when("bandwidths", estimator = an_average, statistic = "unbiased",
         null = "permutation"),
    when(\(a) !has_sums(a$estimator), bins = NULL,
         reason = "for an estimator that is fitted to each labeling"),
    when(\(a) any(a$filter$order > 0L), reason = "for a filter",
         estimator = new_kind("an average, \"kme\", \"mkme\" or \"mmkme\"",
                              \(x) is_unshrunk(x)))
  ),
  filter_rules
)

# The options of a test of samples.
mmd_options <- function(asked, nulls = c("permutation", "spectrum", "gamma"),
                        rules = mmd_rules) {
  open_control(asked, nulls, rules,
               if (is.list(asked$filter)) "unbiased" else "biased")
}

most_points_with_profiles <- 400

# Returns the filter of the joint test by default. The kernel mean, order 1 on
# two scales, sums within samples and moments have the power of all other
# statistics together in few columns. In many columns the profiles see more than
# these do; they take work for each draw.
usual_filter <- function(sample) {
  many <- 4 * NCOL(sample$x) > sample$n
  filter <- if (many && sample$n <= most_points_with_profiles) TRUE else
    test_filter(ratio = c(0.1, 0.001), order = c(0:1, "gpk", "moments"))
  take(filter, mmd_arguments$kinds$filter, "filter")
}

# Returns the options, with the joint test of usual_filter() if the user set
# nothing else. Blocks and mixed columns get another view instead, see
# view_names(). `least` is the size of the smallest sample.
settle_statistics <- function(options, asked, sample, least) {
  if (is.null(c(options$filter, options$bandwidths, options$bins,
                options$blocks, asked$control$statistic)) && !options$alone &&
        !any(sample$kernel$scaling$nominal) &&
        options$null == "permutation" && is_average(options$estimator) &&
        !stores_gram(sample) && kernel_has(sample$kernel, "flat diagonal") &&
        sample$n <= filter_most_points && least > 1L) {
    options$filter <- usual_filter(sample)
    options$statistic <- "unbiased"
    if (is.null(asked$B)) options$B <- 399L
  }
  options
}

# The test of pooled samples or sketches, see pool_samples().
test_pooled <- function(pooled, asked) UseMethod("test_pooled")
test_pooled.pooled_samples <- function(pooled, asked) {
  options <- mmd_options(asked)
  samples <- read_samples(pooled, options)
  check_two(samples, options)
  options <- settle_statistics(options, asked, samples$sample,
                               min(samples$sizes))
  options["filter"] <- list(without_factor(options$filter))
  units <- sample_units(samples$sizes, options$blocks, options$clusters,
                        samples$order)
  samples$origin$blocks <- units$given
  warn_alone(units$given)
  scheme <- check_permutations(options, units, samples$order)
  scheme$bins <- count_bins(options, samples$sizes)
  samples$views <- sample_views(samples, view_names(samples, options))
  if (!is.null(scheme$bins)) {
    scheme$words <- bin_words(min(samples$sizes) %/% scheme$bins)
  }
  new_mmd_test(samples, options, scheme,
               compare_samples(samples, options, scheme), stored(asked))
}

# --- The samples -------------------------------------------------------------

# The samples as the methods hand them on, "pooled samples":
#   sample    sorted by group; its kernel is fitted later unless it is a gram
#   groups    of the points, in this order
#   order     the rows of the data that the points come from; NULL for 1, 2, ...
#   label     what the data are called, with the names x and y where update()
#             may change these
#   name      what the points are called
pool_samples <- function(sample, groups, order, label, name) {
  structure(list(sample = sample, groups = groups, order = order,
                 label = label, name = name), class = "pooled_samples")
}

pool_pair <- function(x, y, label) {
  x <- read_points(x)
  # The names of x and y may differ if both have one column.
  if (is.matrix(x) && ncol(x) == 1L && identical(ncol(y), 1L)) {
    y <- unname(check_data(y, "y"))
  }
  if (!is.null(dim(y)) && ncol(y) != ncol(x)) {
    stop_input("'y' must have the columns of 'x', ", ncol(x), ", not ", ncol(y))
  }
  y <- check_newdata(y, x, "y")
  both <- bind_rows(list(x, y))
  rownames(both) <- NULL
  groups <- structure(rep(1:2, c(nrow(x), nrow(y))), levels = c("x", "y"),
                      class = "factor")
  pool_samples(points_sample(both, NULL), groups, NULL, label, "x")
}

pool_groups <- function(x, groups, label, name) {
  if (missing(groups)) {
    stop_input("'groups' must be given: the group of each point")
  }
  check_order(list(x = x, groups = groups))
  sample <- as_sample(x)
  groups <- check_factor(check_each(groups, sample$n, "groups"))
  order <- order(as.integer(groups))
  if (is.unsorted(order)) sample <- sample_take(sample, order)
  pool_samples(sample, groups[order], order, label, name)
}

#' @rdname mmd_test
#' @export
mmd_test.gram <- function(x, groups, ...) {
  label <- paste(label_of(substitute(x)), "by", label_of(substitute(groups)))
  mmd_test.default(pool_groups(x, groups, label, "x"), ...)
}

#' @rdname mmd_test
#' @export
mmd_test.dist <- mmd_test.gram

#' @rdname mmd_test
#' @export
mmd_test.formula <- function(formula, data = NULL, subset, na.action, ...,
                             blocks = NULL, clusters = NULL) {
  if (!has_given()) {
    return(test_formula(mmd_test.default, ...))
  }
  read <- read_given(c(y = "named", x = "variable"))
  read$x <- check_groups_given(read$x, read$labels[["x"]])
  if (is.null(read$strata)) {
    return(test_read("two-sample", read, ...))
  }
  of_groups <- read
  of_groups$names <- list(x = read$names$y, groups = read$names$x)
  of_groups[c("x", "groups", "blocks")] <- read[c("y", "x", "strata")]
  test_groups(mmd_test.default, of_groups, ...)
}

# Reads the formula of the method that calls this function, and tests its
# samples by the function `.door`.
test_formula <- function(.door, ...) {
  read <- read_sides(c(x = "named", groups = "groups"), c("blocks", "clusters"),
                     example = "response ~ group", frame = parent.frame())
  test_groups(.door, read, ...)
}

# The test of the samples of a reading with the sides x and groups.
test_groups <- function(.door, read, ...) {
  words <- read$names$x
  x <- read$x
  bound <- if (length(words) > 1L) words else bound_parts(str2lang(words))
  name <- if (length(words) > 1L || length(bound) > 4L) {
    paste0("cbind(", shorten(as.character(bound)), ")")
  } else {
    words
  }
  if (!inherits(x, "dist")) x <- side_sample(x, name, length(words) > 1L)
  pooled <- pool_groups(x, read$groups, paste(name, "by", read$names$groups),
                        name)
  test <- .door(pooled, ..., blocks = read$blocks, clusters = read$clusters)
  name_given(test, read)
}

# The sample of the points that are a side of a formula. In a sum of columns
# TRUE and FALSE are numbers.
side_sample <- function(x, name, sum) {
  if (sum && is.data.frame(x)) {
    x[] <- lapply(x, \(column) if (is.logical(column)) column + 0 else column)
  }
  if (has_levels(x)) x <- stats::setNames(list2DF(list(x)), name)
  x <- read_points(x, name)
  rownames(x) <- NULL
  if (is.null(colnames(x)) && ncol(x) == 1L) colnames(x) <- name
  points_sample(x, NULL)
}

gram_rules <- list(when(\(a) TRUE, kernel = NULL, bandwidths = NULL,
                        scale = unscaled,
                        reason = "for a gram, which has a kernel"))

# The samples of a test: the fields of the pooled samples, with the kernel
# fitted, the `sizes` of the groups, and many `bandwidths` or NULL; `origin` is
# for update().
read_samples <- function(pooled, options) {
  sample <- pooled$sample
  sizes <- tabulate(pooled$groups, nlevels(pooled$groups))
  if (length(sizes) < 2L || sum(sizes) < 3L) {
    stop_input("there must be two samples or more, of at least 3 points in ",
               "all, not of ", shorten(sizes, 8L))
  }
  alone <- levels(pooled$groups)[sizes == 1L]
  if (length(alone) && (options$statistic == "unbiased" ||
                          !is_unshrunk(options$estimator))) {
    stop_input("there must be at least 2 points in each sample for filters, ",
               "the unbiased statistic and estimators that shrink, not one in ",
               quoted(alone))
  }
  bandwidths <- options$bandwidths
  if (stores_gram(sample)) {
    apply_rules(options, gram_rules, attr(options, "given"))
  } else {
    # Many bandwidths are chosen below, when the columns are scaled; until then
    # kernel_rbf(1) stands in for them.
    kernel <- if (!is.null(bandwidths)) kernel_rbf(1) else options$kernel
    sample <- fit_sample(sample$x, kernel_of(sample$x, kernel), options$scale,
                         pooled$name)
  }
  if (is_single(options$filter)) {
    check_factors(sample, options$filter$factors)
    sample <- times_bandwidth(sample, options$filter$factors)
  }
  if (!is.null(bandwidths)) {
    if (is.character(bandwidths)) bandwidths <- fuse_bandwidths(sample$x)
    sample$kernel$bandwidth <- bandwidths
  }
  order <- pooled$order %||% seq_along(pooled$groups)
  list(sample = sample, groups = pooled$groups, sizes = sizes, order = order,
       bandwidths = bandwidths, origin = pooled[c("label", "order", "name")])
}

# Stops on options that are only for two samples, and on too many samples.
check_two <- function(samples, options) {
  count <- length(samples$sizes)
  check_memory(choose(count, 2) + count, count, "use fewer groups",
               what = "a table of all pairs of groups,")
  if (count > 2L && (!is.null(options$bandwidths) || options$null == "gamma")) {
    stop_input("there must be two samples for many bandwidths or null = ",
               "\"gamma\", not ", count)
  }
}

fuse_most_points <- 2000

# Ten bandwidths between half the 5% and twice the 95% quantile of distances.
fuse_bandwidths <- function(x) {
  if (nrow(x) > fuse_most_points) {
    x <- take_rows(x, sample.int(nrow(x), fuse_most_points))
  }
  # Sorting is faster without the class of the distances.
  distances <- positive_distances(as.vector(stats::dist(x)))
  ends <- quantile(distances, c(0.05, 0.95), names = FALSE)
  check_result(ends, "a distance")
  if (ends[1L] == 0) ends[1L] <- ends[2L] / 100
  seq(ends[1L] / 2, 2 * ends[2L], length.out = 10L)
}

# --- Units of exchange -------------------------------------------------------

# The units of samples; order: see read_units().
sample_units <- function(sizes, blocks, clusters, order = seq_len(sum(sizes))) {
  units <- read_units(blocks, clusters, order, sizes)
  group <- rep(seq_along(sizes), sizes)
  if (!is.null(clusters)) {
    group <- by_cluster(group, units$clusters)
    if (is.null(group)) {
      stop_input("'clusters' must lie in one sample each; for clusters with ",
                 "points in several give 'blocks', whose points change places")
    }
    units$sizes <- tabulate(group, length(sizes))
    units$blocks <- cluster_blocks(units)
    # At least two points must stay in each sample, however clusters change
    # places.
    if (min(units$sizes) == 1L && min(tabulate(units$clusters)) == 1L) {
      stop_input("'clusters' must leave at least 2 points in each sample ",
                 "however they change places; take together those of one point")
    }
  }
  if (!is.null(blocks) &&
        !anyDuplicated(unique(cbind(units$blocks, group))[, 1L])) {
    stop_input("'blocks' must hold points of different samples in some block; ",
               "what lies in one sample and moves as a whole is given as ",
               "'clusters'")
  }
  units
}

# Are permutations drawn at random among all, without blocks or clusters?
draws_among_all <- function(options) {
  options$null == "permutation" &&
    is.null(c(options$permutations, options$blocks, options$clusters))
}

most_points_without_bins <- 20000
usual_bins <- 25L
most_bins <- 2000

# The number of bins of the smallest sample, or NULL for none. Without `bins`
# there are bins only if the samples are large, and if all of them together make
# at most `most_bins` bins of the size that the smallest sample sets.
count_bins <- function(options, sizes) {
  least <- min(sizes)
  bins <- options$bins
  if (is.null(bins)) {
    size <- least %/% usual_bins
    large <- sum(sizes) > most_points_without_bins && size > 1 &&
      sum(sizes) / size <= most_bins
    usual <- large && draws_among_all(options) && has_sums(options$estimator)
    return(if (usual) usual_bins)
  }
  if (bins > least) {
    stop_input("'bins' must be at most ", least, ", the points of the ",
               "smallest sample, not ", bins)
  }
  # A bin of one point is the point itself, so there is no need for bins.
  if (least %/% bins > 1L) bins
}

# --- The statistics ----------------------------------------------------------

# The comparison of samples, see new_comparison().
compare_samples <- function(samples, options, scheme) {
  sample <- walkable_sample(samples$sample)
  average <- is_average(options$estimator)
  if (average) {
    sample <- center_linear(sample)
  } else {
    check_definite(sample$kernel)
  }
  if (needs_gram(options$estimator)) {
    sample <- form_sample(sample)
  }
  settled <- est_settle(order_noise(options$estimator, samples$order), sample,
                        "the pooled sample")
  blocks <- samples$origin$blocks
  samples$sample <- given_blocks(settled_sample(sample, settled), blocks)
  compare <- if (length(c(options$filter, samples$views))) {
    compare_jointly
  } else if (has_sums(settled$estimator)) {
    compare_sums
  } else {
    compare_fits
  }
  comparison <- compare(samples, options, scheme, settled)
  # If points are far from 0, the share is lost in sums that are not centered,
  # so it is computed from centered points.
  if (!average && kernel_has(sample$kernel, "linear form") &&
        knows_points(sample)) {
    samples$sample <- given_blocks(center_linear(without_gram(sample)), blocks)
    source <- label_source(samples, new_layout(samples$sizes))
    comparison$share <- compare_plain(source)$share
  }
  comparison$settled <- settled
  comparison
}

# --- The object --------------------------------------------------------------

new_mmd_test <- function(samples, options, scheme, comparison, arguments,
                         null = mmd_null(samples, options, scheme,
                                         comparison)) {
  labels <- levels(samples$groups)
  sizes <- stats::setNames(samples$sizes, labels)
  several <- length(sizes) > 2L
  bandwidth <- named_bandwidth(samples$sample$kernel)
  settled <- comparison$settled
  chosen <- settled$chosen
  new_test(
    "mmd_test", options, comparison$statistic, null,
    parameter = c(
      if (options$null == "gamma") null$gamma else
        mmd_counts(sizes, scheme, samples$bins), bandwidth
    ),
    estimate = c(
      MMD = if (!several && is.null(samples$bandwidths)) {
        sqrt(max(0, comparison$plain))
      },
      r.squared = comparison$share, bandwidth
    ),
    alternative = "the distributions differ",
    method = test_title(
      if (several) "k-sample" else "two-sample",
      mmd_words(options, names(samples$views)), options, scheme
    ),
    data.name = name_samples(samples$origin$label, sizes),
    lambda = c(chosen$lambda, settled$estimator$lambda)[1L],
    alpha = if (!is.null(comparison$alpha)) {
      stats::setNames(comparison$alpha, labels)
    },
    noise = chosen$noise, smoothing = unlist(chosen[c("h", "c", "guard")]),
    candidates = chosen$candidates, kernel = samples$sample$kernel,
    sample = samples$sample, groups = samples$groups, sizes = sizes,
    pairs = if (several) stats::setNames(
      comparison$pairs, utils::combn(labels, 2L, paste, collapse = " - ")
    ),
    unbiased = unbiased_summary(comparison, samples, options, scheme),
    arguments = arguments, views = samples$views, origin = samples$origin
  )
}

# The parameters of a test that are counts.
mmd_counts <- function(sizes, scheme, bins) {
  c(if (length(sizes) > 2L) c(groups = length(sizes), N = sum(sizes)) else
      c(m = sizes[[1L]], n = sizes[[2L]]),
    clusters = if (!is.null(scheme$clusters)) sum(scheme$sizes),
    blocks = if (!is.null(scheme$given)) max(scheme$given),
    bins = bins, B = scheme$B)
}

bin_words <- \(size) paste("of bins of", count_of(size, "point"))

# The words for the method in the title, without those on permutations.
mmd_words <- function(options, views = NULL) {
  order <- options$filter$order
  c(if (!c(order, 0L)[1L] %in% 0:2) order else
    if (is.null(options$bandwidths)) "MMD" else "fused MMD",
    if (length(views)) paste("also", trimws(sub("MMD^2", "", views,
                                                fixed = TRUE))),
    filter_label(options$filter), options$estimator$label, options$statistic)
}

# "x (n = 13) and y (n = 9)", "extra by group: 1 (n = 10), 2 (n = 10)"
name_samples <- function(label, sizes) {
  pair <- length(label) == 2L
  each <- paste0(if (pair) label else names(sizes), " (n = ", sizes, ")")
  if (pair) paste(each, collapse = " and ") else
    paste0(label, ": ", shorten(each, 8L))
}

# The unbiased statistic of two samples and its exact standard deviation over
# all permutations of points.
unbiased_summary <- function(comparison, samples, options, scheme) {
  source <- comparison$source
  sizes <- samples$sizes
  if (is.null(source) || length(sizes) > 2L || min(sizes) < 2L ||
        ncol(source$rows) > 1L || options$null != "permutation" ||
        !is_unshrunk(options$estimator) ||
        !is.null(c(source$weights, source$bin, samples$bins, scheme$blocks)) ||
        !is.null(scheme$matrix) && !scheme$all) {
    return(NULL)
  }
  variance <- labeled_moments(source$rows[, 1L], source$diagonal[, 1L], sizes,
                              comparison$sums$moments[2L], "unbiased")$variance
  if (!is.na(variance)) {
    comparison$settled$height * c(
      statistic = mmd_values(observed_sums(comparison$sums), "unbiased"),
      deviation = sqrt(variance)
    )
  }
}

# --- Methods -----------------------------------------------------------------

# The group of each point in the order of the data, and the witness of two
# samples.
fit_values.mmd_test <- function(x, newdata = NULL) {
  if (!is.null(newdata)) {
    stop_input("'newdata' must be NULL for a test, which is of its points")
  }
  if (is.null(x$groups)) {
    return(NULL)
  }
  added <- data.frame(.group = x$groups)
  if (length(x$sizes) == 2L && is.null(x$arguments$bandwidths)) {
    added$.witness <- witness_values(x, 1:2)$at_points()
  }
  take_rows(added, data_order(x))
}

fit_sample_of.mmd_test <- \(x) sample_take(x$sample, data_order(x))

data_order <- function(test) {
  order <- test$origin$order
  if (is.null(order)) seq_along(test$groups) else order(order)
}

# Returns the weights of the witness function of two sets of groups. The
# argument `side` has 1, 2 or 0 (in neither set) for each group. The result has
# the `weights`; `shown`, the points to be drawn; `side`, 1 or 2 for each of
# these, or NULL if they belong to no group; and `grid`, FALSE if the columns
# are no axes.
witness_weights <- function(sample, test, side) UseMethod("witness_weights")
witness_weights.kernmean_sample <- function(sample, test, side) {
  side <- side[as.integer(test$groups)]
  sizes <- tabulate(side, 2L)
  shown <- which(side > 0L)
  list(weights = c(0, 1 / sizes[1L], -1 / sizes[2L])[side + 1L],
       shown = shown, side = side[shown])
}

# The witness with functions for its values: at(), for new points, and
# at_points(), for those of the sample.
witness_values <- function(test, side) {
  sample <- largest_sample(test)
  witness <- witness_weights(sample, test, side)
  weights <- witness$weights
  if (!is.null(test$origin$blocks)) {
    weights <- drop(center_blocks(matrix(weights), test$origin$blocks))
  }
  c(witness, if (!is.null(test$statistics)) filtered_witness(test, weights) else
    list(at = \(new) drop(sample_at(sample, new, weights)),
         at_points = \() sample_apply(sample, weights)))
}

# Data may be replaced if the call named them; else the test keeps its own.
fit_request.mmd_test <- function(x, changes) {
  data <- changed_data(changes, x$origin$label)
  arguments <- x$arguments
  # A kernel takes the place of many bandwidths.
  if (!is.null(changes$kernel)) arguments["bandwidths"] <- NULL
  asked <- change_request(arguments, changes[!names(changes) %in% data])
  rekernel <- !is.null(c(asked$kernel, asked$bandwidths))
  if (!length(data) && !"scale" %in% names(changes)) {
    asked$kernel <- keep_units(asked$kernel, x$sample)
    if (kernel_has(asked$kernel, "scaling")) asked$scale <- NULL
  }
  asked$x <- repool(x$sample, x, changes, data, rekernel)
  asked
}

# Returns the argument `x` of the door for a test with other data or, if
# `rekernel`, with another kernel.
repool <- function(sample, test, changes, data, rekernel) UseMethod("repool")
repool.kernmean_sample <- function(sample, test, changes, data, rekernel) {
  origin <- test$origin
  if (length(data)) {
    points <- sample_raw(sample)
    samples <- lapply(split(seq_len(sample$n), test$groups), \(rows) {
      take_rows(points, rows)
    })
    samples[data] <- changes[data]
    label <- new_label(origin$label, attr(changes, "call"), data)
    return(pool_pair(samples$x, samples$y, label))
  }
  if (!stores_gram(sample) || rekernel) {
    sample_points(sample, "'kernel' and 'bandwidths' must be NULL for a gram ",
                  "whose points are not known")
    sample <- points_sample(sample_raw(sample), NULL)
  }
  pool_samples(sample, test$groups, origin$order, origin$label, origin$name)
}

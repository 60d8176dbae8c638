# Spectral filters. Let K^c = HKH = U diag(gamma) U' be the centered Gram matrix
# of n points, l = gamma/n the eigenvalues of their covariance operator S, and
# g_tau(l) a filter, which is about 1/l. Then M = n U diag(l g_tau(l)) U' is the
# Gram matrix of the points g_tau(S)^(1/2) (phi(x_i) - mean). This file reads
# the argument `filter` and computes M.

# --- Arguments ---------------------------------------------------------------

usual_ratios <- c(1, 0.1, 0.01, 0.001)

#' Spectral filters of kernel tests
#'
#' What the argument `filter` of [mmd_test()], [mmd_pairwise()] and
#' [hsic_test()] asks for: statistics that see differences along directions in
#' which the points vary little, differences of covariances, and those on other
#' scales, with one exact p-value for all of them. A name is the filter of that
#' name, and `filter = TRUE` is `test_filter()`, for two samples or more with
#' `"profile"` and `"gpk"` beside it, for two variables with `"fused"`.
#'
#' The distance of kernel means weighs a difference along an axis of the
#' features by their variance along it, and is blind where that is small. With
#' \eqn{S}{S} the covariance operator of all n points about their mean, the
#' filter \eqn{g_\tau(l) \approx 1/l}{g(l), about 1/l,} of its eigenvalues l
#' makes up for it. From the spectrum \eqn{\gamma}{gamma} and U of the centered
#' Gram matrix, \eqn{l = \gamma/n}{l = gamma/n} and \eqn{\tau}{tau} = `ratio`
#' times the largest l,
#' \deqn{M = n U \mathrm{diag}(l g_\tau(l)) U',}{M = n U diag(l g(l)) U',} and
#' the statistics are those of the plain test with other matrices for K:
#' \describe{
#'   \item{order 0}{K: the plain statistic.}
#'   \item{order 1}{M: for two samples \eqn{\|g_\tau(S)^{1/2}(\hat\mu_x -
#'     \hat\mu_y)\|^2}{|g(S)^(1/2) (mu_x - mu_y)|^2}; for independence, M of
#'     each variable with the same ratio, \eqn{\mathrm{tr}(M_x M_y)/n^2 =
#'     \|g_\tau(S_x)^{1/2} C_{xy} g_\tau(S_y)^{1/2}\|^2}{tr(M_x M_y)/n^2 =
#'     |g(S_x)^(1/2) C_xy g(S_y)^(1/2)|^2}.}
#'   \item{order 2}{\eqn{M \circ M}{M o M}, entry by entry (not for
#'     independence): \eqn{\|g_\tau(S)^{1/2}(\hat C_x - \hat
#'     C_y)g_\tau(S)^{1/2}\|^2}{|g(S)^(1/2) (C_x - C_y) g(S)^(1/2)|^2} with the
#'     second moments about the pooled mean.}
#'   \item{order `"profile"`}{of samples of points or a gram, whatever the
#'     filter: with \eqn{\lambda_i(x)}{l_i(x)} the eigenvalues of the covariance
#'     operator of a sample about its own mean, \eqn{e_i = \log((\lambda_i(x) +
#'     \tau)/(\lambda_i(y) + \tau))}{e_i = log((l_i(x) + tau)/(l_i(y) + tau))}
#'     less its mean over the draws: \eqn{\sum_i e_i^2}{sum_i e_i^2} at the
#'     largest ratio (`profile`: spread, correlation, clusters), and
#'     \eqn{\sum_i e_i^2/v_i}{sum_i e_i^2/v_i} with \eqn{v_i}{v_i} the mean of
#'     \eqn{e_i^2}{e_i^2} at the smallest (`profile (standardized)`: many axes
#'     that each differ a little, as in more columns than points). They see no
#'     shift, and no covariances of equal eigenvalues.}
#'   \item{order `"gpk"`}{the generalized permutation kernel statistic (`within
#'     sums`): the sums w of K within each sample, without the diagonal, as
#'     \eqn{(w - \bar w)'V^+(w - \bar w)}{(w - mean)'V^+(w - mean)} with mean
#'     and covariance V over the draws: points of one sample closer together and
#'     those of the other farther apart do not cancel out.}
#'   \item{order `"moments"`}{in the same form: `within sums of squares` of the
#'     centered K, entry by entry; `two moments`, the logarithms of the mean
#'     diagonal and of the mean square of the blocks of the centered K; and
#'     (its root) `leverages`, the mean diagonal of M in each sample at the
#'     smallest ratio. By default they stand in for profiles, which take long.}
#'   \item{order `"one-sided"`}{only where asked for, of two samples of points
#'     or a gram, at a ridge whatever the filter: \eqn{\|(\hat C_x +
#'     \tau)^{-1/2}(\hat C_x - \hat C_y)(\hat C_x + \tau)^{-1/2}\|^2}{|(C_x +
#'     tau)^(-1/2) (C_x - C_y) (C_x + tau)^(-1/2)|^2} (`one-sided x`), and by
#'     that of the second sample (`one-sided y`): what is wide in one sample and
#'     narrow in the other.}
#'   \item{order `"fused"`}{of two variables, whatever the filter: the HSIC of
#'     many bandwidths that `bandwidths = "fuse"` of [hsic_test()] has.}
#' } A ratio that grows gives the plain statistic (of centered features, up to
#' scale), one that shrinks the projection on all axes. In two-sample tests the
#' unbiased forms are the default: the biased one of order 2 rewards labelings
#' that put points far out into the smaller sample. More than two samples are
#' compared by the weighted sum over pairs; more than two variables have
#' \eqn{1 + M/\bar m}{1 + M/m} in place of each matrix of dHSIC,
#' \eqn{\bar m}{m} the mean of the diagonal.
#'
#' @section One p-value: S, its filter and the bandwidth do not depend on labels
#' (or on the pairing of variables), and all statistics have the same
#' permutations. Of several, each is standardized by its mean and standard
#' deviation over all draws, the observed one included, and the largest is the
#' statistic of the test, `max z`, whose p-value is exact too. Beside profiles,
#' sums within samples and moments, which see no shifts, the z of orders 0 and 1
#' count 1.3 times, by a rule that was chosen on other data. No z of B draws is
#' above \eqn{B/\sqrt{B + 1}}{B/sqrt(B + 1)}, 1.3 times that with this rule:
#' `max z` is no effect size. A statistic that no permutation changes counts as
#' 0. The p-values of single statistics stand in the table `statistics` of the
#' test, which `as.data.frame()` gives and `summary()` prints; the smallest of
#' them is no p-value. `plot(test)` draws the z of all statistics over `z.05` to
#' `z.95`, what 90% of the draws have, and `plot(test, "witness")` where the
#' samples differ by the largest (of profiles, sums within samples and moments,
#' by the MMD).
#'
#' @section Cost:
#' An n by n matrix is inverted for each ratio (Tikhonov and its iteration) or
#' decomposed once, \eqn{O(n^3)}{O(n^3)}; each statistic then takes what the
#' plain one takes; at most four n by n matrices are in memory. `"profile"`
#' takes the eigenvalues of each draw and sample, 4/3 m^3 flops, and
#' `"one-sided"` eigenvectors as well. With more than
#' 3,000 points features take the place of the matrix: columns of a pivoted
#' Cholesky factor of K until the trace that is left, divided by n (`left` in
#' the test), is a tenth of the smallest \eqn{\tau}{tau}, at most 1,000 columns
#' r; then a statistic takes \eqn{O(n^2 r)}{O(n^2 r)}.
#'
#' @param name `"tikhonov"`, \eqn{l g = l/(l + \tau)}{l g = l/(l + tau)};
#'   `"iterated"`, \eqn{l(l + 2\tau)/(l + \tau)^2}{l(l + 2 tau)/(l + tau)^2};
#'   `"showalter"`, \eqn{1 - \exp(-l/\tau)}{1 - exp(-l/tau)}; `"cutoff"`, 1
#'   for \eqn{l \ge \tau}{l >= tau}, else 0; or `"none"`, for `factors` alone.
#' @param ratio Positive numbers; `NULL` is 1, 0.1, 0.01 and 0.001, or 1 for
#'   `"one-sided"` without orders 1 and 2 (at least 10^-5 with it).
#' @param order Some of 0, 1, 2, `"gpk"`, `"moments"`, `"one-sided"`,
#'   `"profile"` and `"fused"`; `NULL` is all numbers that the test knows.
#' @param factors Multiples of the bandwidth of the kernel, for each of which
#'   all statistics are computed; `NULL` is 1. Of two variables each factor of x
#'   goes with each of y (`factor_x`, `factor_y` in the table), as waves are
#'   narrow in x alone; of more, all have the same.
#' @return An object of class `"test_filter"`, a list of the four.
#'
#' @references
#' Hagrass, O., Sriperumbudur, B. K. and Li, B. (2024). Spectral regularized
#' kernel two-sample tests. *Annals of Statistics* 52(3).
#' \doi{10.48550/arXiv.2212.09201}
#'
#' Fukumizu, K., Gretton, A., Sun, X. and Schölkopf, B. (2008). Kernel measures
#' of conditional dependence. *Advances in Neural Information Processing
#' Systems* 20 (the Tikhonov filter for independence).
#'
#' Santoro, L. V., Waghmare, K. G. and Panaretos, V. M. (2025). From two sample
#' testing to singular Gaussian discrimination (covariances of features).
#' \doi{10.48550/arXiv.2505.04613}
#'
#' Song, H. and Chen, H. (2023). Generalized kernel two-sample tests.
#' *Biometrika* 111(3). \doi{10.1093/biomet/asad068}
#' @seealso [glossary]; [test_control()]; `vignette("tests")` has powers.
#' @examples
#' # Two samples of the same means and variances, one of them correlated
#' set.seed(1)
#' x <- matrix(rnorm(40 * 5), 40)
#' y <- sqrt(0.5) * matrix(rnorm(25 * 5), 25) + sqrt(0.5) * rnorm(25)
#' mmd_test(x, y, filter = "none", B = 199)$p.value
#' test <- mmd_test(x, y, filter = TRUE, B = 199)
#' summary(test)
#'
#' # A circle
#' angle <- runif(60, 0, 2 * pi)
#' a <- cos(angle) + rnorm(60, sd = 0.2)
#' b <- sin(angle) + rnorm(60, sd = 0.2)
#' as.data.frame(hsic_test(a, b, filter = TRUE, B = 199))
#'
#' # Waves, narrow in one variable
#' u <- runif(80, -1, 1)
#' v <- sin(6 * pi * u) + rnorm(80, sd = 0.4)
#' wide <- test_filter("none", factors = c(1, 1 / 4, 1 / 16))
#' hsic_test(u, v, filter = wide, B = 199)
#' @export
test_filter <- function(name = "tikhonov", ratio = NULL, order = NULL,
                        factors = NULL) {
  structure(request(filter_arguments)[TRUE], class = "test_filter")
}

# This kind takes positive numbers and drops duplicates.
distinct_positive <- several_positive
distinct_positive$as <- \(x) unique(as.double(x))

# These statistics compare covariances that are whitened by the covariance of
# the first sample, or by that of the second.
one_sided <- paste("one-sided", c("x", "y"))

all_orders <- c(0:2, "profile", "gpk", "moments", "one-sided", "fused")

some_orders <- new_kind(paste0(
  "some of 0, 1, 2, ", paste0("\"", all_orders[-(1:3)], "\"", collapse = ", ")
), \(x) {
  is.atomic(x) && length(x) > 0L && all(x %in% all_orders)
}, \(x) sort(unique(if (is.numeric(x)) as.integer(x) else x)))

filter_arguments <- door_table(
  "test_filter", name = choice("tikhonov", "iterated", "showalter", "cutoff",
                               "none"),
  ratio = maybe(distinct_positive), order = maybe(some_orders),
  factors = maybe(distinct_positive),
  rules = list(when(c(name = "none"), ratio = NULL, order = NULL))
)

#' @export
print.test_filter <- function(x, ...) {
  print.test_control(x)
  if (is.null(c(x$ratio, x$order)) && x$name != "none") {
    say("by rule: ratio = c(1, 0.1, 0.01, 0.001); order = 0:2 or 0:1")
  }
  invisible(x)
}

# The kind of the argument `filter` of a test. The test uses `orders` by default
# (0 is the plain statistic), accepts those in `also` as well, and adds `joint`
# for filter = TRUE. The kind returns a test_filter; FALSE for "none", for which
# open_control() sets `alone`; or NULL for NULL, so that the test decides.
a_filter <- function(orders, also = NULL, joint = NULL) {
  \(value, name) {
    if (isFALSE(value) || is.null(value) || identical(value, "none")) {
      return(if (!is.null(value)) FALSE)
    }
    if (is.character(value) && all(value %in% all_orders)) {
      stop_input("'", name, "' must be a filter, not an order, which is set ",
                 "by test_filter(order = ", deparse1(value), ")")
    }
    if (isTRUE(value)) value <- test_filter(order = c(orders, joint))
    if (!inherits(value, "test_filter")) {
      value <- test_filter(take(value, filter_arguments$kinds$name, name))
    }
    plain <- value$name == "none"
    if (plain && is.null(value$factors)) {
      return(FALSE)
    }
    value$order <- value$order %||% if (plain) 0L else orders
    orders <- c(orders, also)
    if (!all(value$order %in% orders)) {
      stop_input("'order' must be some of ", paste(orders, collapse = ", "),
                 " for this test, not ", paste(value$order, collapse = ", "))
    }
    if (is.null(value$ratio) && any(value$order > 0L)) {
      value$ratio <- if (identical(value$order, "one-sided")) 1 else
        usual_ratios
    }
    value$factors <- value$factors %||% 1
    value
  }
}

unfiltered <- new_kind("\"none\"", \(x) !is.list(x))

# These rules say which settings go with filters and with multiples of the
# bandwidth.
filter_rules <- list(
  when("filter", null = "permutation"),
  when(\(a) !identical(a$filter$factors, 1) && !is.null(a$filter),
       estimator = an_average, reason = "where 'factors' are given")
)

# Words for the filter in the title of a test. Only statistics of orders 1 and 2
# use a filter.
filter_label <- function(filter) {
  count <- length(filter$factors)
  named <- if (any(filter$order %in% 1:2)) filter$name else "none"
  c(switch(named, tikhonov = "Tikhonov filter",
           iterated = "iterated Tikhonov filter",
           showalter = "Showalter filter", cutoff = "cutoff filter"),
    if (count > 1L) paste(count, "bandwidths"))
}

# The sample with its bandwidth multiplied by a factor.
times_bandwidth <- function(sample, factor) {
  if (factor == 1) {
    return(sample)
  }
  kernel <- sample$kernel
  kernel$bandwidth <- factor * kernel$bandwidth
  if (!is.null(kernel$rule)) {
    kernel$rule <- paste(format_number(factor, 3L), "times", kernel$rule)
  }
  given_blocks(points_sample(sample$x, kernel, raw = sample_raw(sample)),
               sample$blocks)
}

# Is there exactly one factor, which is not 1? Then the test only takes a kernel
# with another bandwidth.
is_single <- function(filter) {
  length(filter$factors) == 1L && !identical(filter$factors, 1)
}

# Returns the filter without its single factor, which the kernel already
# contains, or NULL if the filter does nothing else.
without_factor <- function(filter) {
  if (!is_single(filter)) {
    return(filter)
  }
  filter$factors <- 1
  if (filter$name != "none") filter
}

# --- The spectrum ------------------------------------------------------------

filter_most_points <- 3000
filter_most_columns <- 1000L
filter_first_columns <- 64L

# Returns the centered matrix K^c as `k`, and as `scale` the size of the terms
# whose difference it is, by which rounding is judged.
centered_values <- function(sample, copies = 2) {
  check_memory(sample$n, sample$n, "use fewer rows", copies = copies)
  centered <- center_gram(sample_source(sample))
  list(k = centered$k, scale = max(abs(centered$at)))
}

filterable_sample <- function(sample) walkable_sample(center_linear(sample))

# The spectrum of a centered Gram matrix:
#   values    the eigenvalues l > 0 of the covariance, decreasing
#   vectors   their eigenvectors, an n x r matrix
#   left      the trace of the covariance that a factor of low rank leaves out
new_spectrum <- function(values, vectors, left = 0) {
  list(values = values, vectors = vectors, left = left)
}

# The spectrum of a sample. It is exact up to 3,000 points; larger samples use a
# factor of low rank. `least` is the smallest ratio of the filter.
filter_spectrum <- function(sample, least) {
  if (!is.null(sample$spectrum)) {
    return(sample$spectrum)
  }
  if (sample$n > filter_most_points) {
    return(factor_spectrum(sample, least))
  }
  centered <- centered_values(sample, 4)
  pairs <- .Call(C_r_range, centered$k)
  values <- clip_values(pairs$values, centered$scale,
                        "the centered Gram matrix")
  kept <- seq_len(sum(values > 0))
  new_spectrum(values[kept] / sample$n, take_columns(pairs$vectors, kept))
}

# The spectrum by a pivoted factor of K. The pivots depend on the order of the
# rows, so the rows are sorted by their values, without a look at the labels.
# The factor may leave out a tenth of the smallest tau of the trace. Since tau
# is a multiple of the largest eigenvalue, a first factor of few columns
# estimates that.
factor_spectrum <- function(sample, least) {
  if (stores_gram(sample)) {
    check_memory(sample$n, sample$n, "use fewer rows", copies = 1)
  }
  by <- own_order(sample)
  source <- sample_source(sample_take(sample, by))
  trace <- sum(abs(sample_diagonal(sample)))
  first <- pivoted_factor(source, 1e-13, filter_first_columns)
  top <- spectrum_values(cross(center_columns(first$factor)))[1L]
  tolerance <- max(1e-13, least * top / (10 * trace))
  pivoted <- if (first$left <= tolerance * trace) first else
    pivoted_factor(source, tolerance, filter_most_columns)
  features <- center_columns(pivoted$factor)
  inner <- .Call(C_r_eigen, cross(features), ncol(features))
  gamma <- clip_values(inner$values, trace / sample$n)
  kept <- seq_len(sum(gamma > 0))
  roots <- rep(sqrt(gamma[kept]), each = ncol(features))
  vectors <- product(take_rows(features, order(by)),
                     take_columns(inner$vectors, kept) / roots)
  new_spectrum(gamma[kept] / sample$n, vectors, pivoted$left / sample$n)
}

# Returns l g_tau(l), where tau is the ratio times the largest eigenvalue.
spectrum_gain <- function(spectrum, ratio, name) {
  l <- spectrum$values
  tau <- ratio * max(l, 0)
  switch(
    name,
    tikhonov = l / (l + tau),
    iterated = l * (l + 2 * tau) / (l + tau)^2,
    showalter = -expm1(-l / tau),
    cutoff = as.double(l >= tau * (1 - 1e-10))
  )
}

# The n x r matrix R with M = RR'.
filter_root <- function(spectrum, ratio, name) {
  gained_root(spectrum, spectrum_gain(spectrum, ratio, name))
}

gained_root <- function(spectrum, gain) {
  n <- nrow(spectrum$vectors)
  kept <- which(gain > 0)
  if (!length(kept)) {
    return(matrix(0, n, 1L))
  }
  take_columns(spectrum$vectors, kept) * rep(sqrt(n * gain[kept]), each = n)
}

# --- Without the spectrum ----------------------------------------------------

# Below this ratio the resolvent loses too many digits; use the
# eigendecomposition.
inverse_least <- 1e-6

# Returns `at`, a function that makes M for a ratio, and the trace that is
# `left` out, see new_spectrum(). Inverses take half the time of an
# eigendecomposition: M = n (I - A) for the Tikhonov filter and n (I - A^2) for
# the iterated one, with A = n tau (K^c + n tau I)^{-1}. For `centered` see
# checked_centered().
filter_matrices <- function(sample, filter,
                            centered = checked_centered(sample)) {
  n <- sample$n
  least <- min(filter$ratio)
  inverse <- n <= filter_most_points && least >= inverse_least &&
    filter$name %in% c("tikhonov", "iterated")
  if (!inverse) {
    check_memory(n, n, "use fewer rows", copies = 4)
    spectrum <- filter_spectrum(sample, least)
    return(list(left = spectrum$left, at = \(ratio) {
      tcross(filter_root(spectrum, ratio, filter$name))
    }))
  }
  k <- centered$k
  if (centered$top == 0) {
    return(list(left = 0, at = \(ratio) k))
  }
  list(left = 0, at = \(ratio) {
    shift <- ratio * centered$top
    if (filter$name == "tikhonov") {
      return(resolvent(k, shift, -n * shift, n))
    }
    m <- -cross(resolvent(k, shift, shift * sqrt(n), 0))
    diag(m) <- diag(m) + n
    m
  })
}

# Returns K^c as `k` and its largest eigenvalue as `top`; both are 0 if K^c is
# only rounding. A given Gram matrix may have clearly negative eigenvalues, and
# then clip_values() stops.
checked_centered <- function(sample) {
  centered <- centered_values(sample, 4)
  k <- centered$k
  top <- largest_value(k)
  if (top < rounding_of(sample$n, max(top, centered$scale))) {
    return(list(k = 0 * k, top = 0))
  }
  if (stores_gram(sample) &&
        is.null(cholesky(k, sqrt(.Machine$double.eps) * top))) {
    clip_values(spectrum_values(k), name = "the centered Gram matrix")
  }
  list(k = k, top = top)
}

# The largest eigenvalue of a positive semi-definite matrix. For a large matrix
# it comes from an iteration, as in krylov_spectrum().
largest_value <- function(k) {
  n <- nrow(k)
  size <- max(abs(k))
  pairs <- if (n >= 1000 && size > 0 && is.finite(size)) {
    # Squares of the values must not underflow.
    unit <- power_below(size)
    .Call(C_r_krylov, native_source(NULL, k / unit), numeric(n), 0,
          sum((k / unit)^2), 1L)
  }
  max(0, if (is.null(pairs)) spectrum_values(k)[1L] else unit * pairs$values)
}

# A test has this filter if it combines the plain statistic with other views of
# the points.
plain_filter <- list(name = "none", order = 0L, factors = 1)

# May statistics of other views of the points stand beside the plain one?
takes_views <- function(options) {
  !options$alone && options$null == "permutation" &&
    is_average(options$estimator) && is.null(options$bandwidths) &&
    0L %in% (options$filter %||% plain_filter)$order
}

# Returns times (K + shift I)^{-1} + plus I. Only the lower half of K is read.
# The result is NULL if K + shift I is not positive definite.
resolvent <- function(k, shift, times, plus) {
  .Call(C_r_resolvent, k, shift, times, plus)
}

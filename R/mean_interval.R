# How far a kernel mean may be from the true one: the radius of a ball around it
# that holds the true one, by the limiting distribution of the distance or by a
# bound for every n. The methods for sketches are here, too, also those for
# intervals point by point (mean_interval_value.R).

#' Confidence radius of a kernel mean
#'
#' How far the mean embedding of the distribution may be from that of the
#' sample, in the norm of the space.
#'
#' With \eqn{\hat\mu}{mu^} the average of n independent points of a distribution
#' with embedding \eqn{\mu}{mu}, the radius r has \eqn{\|\hat\mu - \mu\| \le
#' r}{|mu^ - mu| <= r} with probability \eqn{1 - \delta}{1 - delta}, `level`.
#' Then, at once for all f of the space, \eqn{|E f(X) - \frac1n\sum_i f(x_i)|
#' \le r\,\|f\|}{|E f(X) - 1/n sum_i f(x_i)| <= r |f|}.
#' \describe{
#'   \item{`"spectrum"`}{the law in the limit of large n: \eqn{n\|\hat\mu -
#'     \mu\|^2}{n |mu^ - mu|^2} becomes \eqn{\sum_l \lambda_l Z_l^2}{sum_l
#'     lambda_l Z_l^2}, \eqn{\lambda_l}{lambda_l} the eigenvalues of the
#'     covariance operator, estimated from the centered Gram matrix; its
#'     quantile by 10,000 draws of R's generator. Too small a radius with fewer
#'     than 20 points, or where few points are within a bandwidth.}
#'   \item{`"bound"`}{valid for every n, and 3 to 4 times as large at the median
#'     bandwidth. For n of at most 300, \eqn{r = \sqrt{\kappa/n} +
#'     \sqrt{2\kappa\log(1/\delta)/n}}{r = sqrt(kappa/n) + sqrt(2 kappa
#'     log(1/delta)/n)} (McDiarmid); above, if \eqn{k \ge 0}{k >= 0}, \eqn{r =
#'     \sqrt{2\hat v \log(4/\delta)/n} + \frac{16}{3}
#'     \sqrt\kappa\log(4/\delta)/n}{r = sqrt(2 v^ log(4/delta)/n) + 16/3
#'     sqrt(kappa) log(4/delta)/n} (Wolfer and Alquier), with \eqn{\hat v =
#'     \kappa - \frac{1}{n(n-1)}\sum_{i \ne j} k(x_i, x_j)}{v^ = kappa -
#'     1/(n(n-1)) sum_{i != j} k(x_i, x_j)}.}
#' }
#' Both take kernels with \eqn{k(x, x) = \kappa}{k(x, x) = kappa} for all x, and
#' the plain kernel mean only: other estimates are biased by intent. Of a
#' [kme_sketch()] of rows without weights the radius is one for the projections
#' on the span of the landmarks; `"spectrum"` needs second moments.
#'
#' @section Intervals for values:
#' `predict(fit, newdata, interval = TRUE)` has intervals for \eqn{m = E k(X,
#' z)}{m = E k(X, z)}, for each z by itself. Where \eqn{0 \le k \le \kappa}{0 <=
#' k <= kappa} the first two methods hold for every n, with the probability
#' \eqn{1 - \delta}{1 - delta} or more, and stay within the range of the kernel.
#' With \eqn{y_i = k(x_i, z)/\kappa}{y_i = k(x_i, z)/kappa} and \eqn{\bar
#' y}{mean(y)} their mean (\eqn{(k + \kappa)/(2\kappa)}{(k + kappa)/(2 kappa)}
#' for kernels with negative values), in units of \eqn{\kappa}{kappa}:
#' \describe{
#'   \item{`"betting"`}{the default. The lower end is the least m with
#'     \eqn{\sum_j w_j \prod_i (1 - f_j + f_j y_i/m) < 2/\delta}{sum_j w_j
#'     prod_i (1 - f_j + f_j y_i/m) < 2/delta}, \eqn{f_j = \min(1, 2^j
#'     \sqrt{2\log(2/(w_j\delta))\, m/(n(1 - m))})}{f_j = min(1, 2^j sqrt(2
#'     log(2/(w_j delta)) m/(n(1 - m))))}, \eqn{w = (8, 4, 2, 1, 1)/16}{w = (8,
#'     4, 2, 1, 1)/16}: what bets of the shares \eqn{f_j}{f_j} make of 1, which
#'     has the mean 1 at the true m (Waudby-Smith and Ramdas; the shares are
#'     ours). The upper end is that of \eqn{1 - y_i}{1 - y_i}.}
#'   \item{`"chernoff"`}{by the mean alone: \eqn{n\,\mathrm{kl}(\bar y, m) \le
#'     \log(2/\delta)}{n kl(mean(y), m) <= log(2/delta)}, \eqn{\mathrm{kl}(p, q)
#'     = p\log(p/q) + (1 - p)\log((1 - p)/(1 - q))}{kl(p, q) = p log(p/q) + (1 -
#'     p) log((1 - p)/(1 - q))} (Chernoff; Hoeffding, Theorem 1). The default
#'     for sketches, which know the mean up to \eqn{\sqrt{r\,r(z)}}{sqrt(r
#'     r(z))}, r and r(z) what projection takes of mean k(x, x) and of k(z, z):
#'     the ends go so much further.}
#'   \item{`"normal"`}{\eqn{\hat\mu(z) \pm z_{1-\delta/2}\, s(z)/\sqrt n}{mu^(z)
#'     +- z_{1-delta/2} s(z)/sqrt(n)}, \eqn{s(z)}{s(z)} the standard deviation
#'     of the \eqn{k(x_i, z)}{k(x_i, z)}: right for large n. Where few points
#'     are within a bandwidth of z it may never hold the value. Kernels that are
#'     not bounded, such as linear and polynomial ones, have no other: it is an
#'     approximation, and too short with few points or where a few values are
#'     much larger than the rest.}
#' }
#' `"betting"` was in no case wider than `"chernoff"`, and had 0.43 to 0.94 of
#' its width with bandwidths of one or two standard deviations; there it was 1.4
#' to 2 times as wide as `"normal"` in the mass, from 20 points on.
#' `vignette("shrinkage", package = "kernmean")` has the coverage of all. Of
#' kernels that are functions or matrices the bounds are what the sample shows:
#' the same k(x, x) for all x, and no negative values.
#'
#' The estimate at a point of the sample counts the point itself, k(x, x)/n,
#' which says nothing of the others. Without `newdata` each is left out of its
#' own interval, for which the n - 1 others are independent of it; the column
#' `fit` stays the estimate. A row of `newdata` that equals a point of the
#' sample may have been taken from it, or not, as the values that a count can
#' have: the interval holds in both cases, its lower end without one such point,
#' its upper end with all. Intervals by the normal law, of sketches, which do
#' not know their rows, and the band of `plot()` count all points.
#'
#' @section Cost:
#' `"bound"` is free. `"spectrum"` takes the eigenvalues of an n by n matrix,
#' 4n^3/3 flops and 16n^2 bytes; beyond 3,000 points those of a pivoted Cholesky
#' factor of r columns, at most 1,000 or what leaves a thousandth of the trace:
#' O(nr(r + d)) time and 24nr bytes. Intervals at m points by bets take 480nm
#' flops, and panels of 4 million kernel values (0.06 s for m = 100 and n =
#' 10,000 on one thread); those of sketches the time of `predict()`; those by
#' the normal law twice that, or 8 to 20 times for kernels taken by their
#' values.
#' @param object A fit of [kme()] with estimator `"kme"` and without `weights`.
#' @param parm Must be missing: there is one parameter.
#' @param level The probability, between 0 and 1.
#' @param ... Must be empty.
#' @param method `"spectrum"` or `"bound"`.
#' @param x An object of class `kme_confint`.
#' @param digits Significant digits.
#'
#' @return An object of class `kme_confint`, a list with `radius`, which
#'   `as.numeric()` gives; `level`; `method`; `formula`, `"limit"`,
#'   `"McDiarmid"` or `"variance"`; `n`; `kappa`; `variance`, \eqn{\hat v}{v^}
#'   (`NA` for one point); `norm`, that of the KME; `draws`, how many made the
#'   quantile, 0 for none; `left`, see Cost; and what `print()` says of the
#'   sample, `data` and `kernel`.
#' @references
#' Wolfer, G. and Alquier, P. (2025). Variance-aware estimation of kernel mean
#' embedding. *Journal of Machine Learning Research* 26, 1--48.
#' \doi{10.48550/arXiv.2210.06672}
#'
#' McDiarmid, C. (1989). On the method of bounded differences. *Surveys in
#' Combinatorics*, 148--188. \doi{10.1017/CBO9781107359949.008}
#'
#' Waudby-Smith, I. and Ramdas, A. (2024). Estimating means of bounded random
#' variables by betting. *Journal of the Royal Statistical Society B* 86, 1--27.
#' \doi{10.1093/jrsssb/qkad009}
#'
#' Chernoff, H. (1952). A measure of asymptotic efficiency for tests of a
#' hypothesis based on the sum of observations. *Annals of Mathematical
#' Statistics* 23, 493--507. \doi{10.1214/aoms/1177729330}
#'
#' Hoeffding, W. (1963). Probability inequalities for sums of bounded random
#' variables. *Journal of the American Statistical Association* 58, 13--30.
#' \doi{10.1080/01621459.1963.10500830}
#'
#' Gretton, A., Fukumizu, K., Harchaoui, Z. and Sriperumbudur, B. (2009). A
#' fast, consistent kernel two-sample test. *Advances in Neural Information
#' Processing Systems* 22 (the law by the spectrum).
#' @seealso [glossary]; [kme()], whose `predict()` has intervals of its values.
#' @examples
#' fit <- kme(faithful$waiting, kernel_rbf(3))
#' set.seed(1)
#' ball <- confint(fit)
#' ball
#' confint(fit, level = 0.99, method = "bound")
#' # Might a normal distribution be as near as that?
#' normal <- list(weights = 1, means = mean(faithful$waiting),
#'                covariances = var(faithful$waiting))
#' sqrt(kme_risk(fit, normal)) <= as.numeric(ball)
#'
#' # Point by point
#' predict(fit, c(50, 65, 80), interval = TRUE)
#' plot(fit, interval = TRUE)
#' @export
confint.kme <- function(object, parm, level = 0.95, ...,
                        method = c("spectrum", "bound")) {
  check_dots(...)
  if (!missing(parm)) {
    stop_input("'parm' must be missing: a kernel mean is one parameter")
  }
  level <- take(level, a_level)
  method <- take(method, choice("spectrum", "bound"))
  check_plain_mean(object, "a confidence radius")
  sample <- radius_sample(object$sample)
  kappa <- constant_diagonal(sample)
  n <- as.double(object$n)
  variance <- if (n > 1) max(0, n * (kappa - object$rho) / (n - 1)) else
    NA_real_
  ball <- if (method == "bound") {
    bound_radius(sample, n, kappa, variance, 1 - level)
  } else {
    spectrum_radius(sample, n, kappa, level)
  }
  structure(
    c(ball, list(level = level, method = method, n = n, kappa = kappa,
                 variance = variance, norm = sqrt(object$rho),
                 data = describe_sample(object$sample),
                 kernel = object$kernel)),
    class = "kme_confint"
  )
}

# For more points than this the bound that uses the variance is taken.
most_mcdiarmid <- 300

# The number of points, and whether k may be negative, decide between the two
# bounds, not the length of the radius. rest: 1 - level.
bound_radius <- function(sample, n, kappa, variance, rest) {
  aware <- n > most_mcdiarmid && is_nonnegative(sample)
  radius <- if (aware) {
    size <- log(4 / rest)
    sqrt(2 * variance * size / n) + 16 / 3 * sqrt(kappa) * size / n
  } else {
    sqrt(kappa / n) + sqrt(2 * kappa * log(1 / rest) / n)
  }
  list(radius = radius, formula = if (aware) "variance" else "McDiarmid",
       draws = 0L, left = 0)
}

spectrum_radius <- function(sample, n, kappa, level) {
  if (n < 2) {
    stop_input("'object' must be a fit of at least 2 points for method = ",
               "\"spectrum\"; method = \"bound\" takes one")
  }
  spectrum <- radius_spectrum(sample)
  values <- spectrum$values[spectrum$values > 0]
  # A smaller value is rounding of kernel values.
  if (sum(values) + spectrum$left <= 64 * .Machine$double.eps * kappa) {
    warn_kernmean(
      "the points are all alike for this kernel: their spread, and with it ",
      "the radius, is estimated as 0; method = \"bound\" holds for every n",
      kind = "spread"
    )
  }
  law <- chisq_sum_quantile(values, level)
  list(radius = sqrt((law$quantile + spectrum$left) / n), formula = "limit",
       draws = law$draws, left = spectrum$left)
}

quantile_draws <- 10000L

# The quantile of sum_l values_l Z_l^2 for standard normal Z_l and positive,
# decreasing values; and the number of draws that it comes from, 0 if it is
# exact.
chisq_sum_quantile <- function(values, level) {
  count <- length(values)
  if (!count || values[1L] - values[count] <= 1e-10 * values[1L]) {
    exact <- if (count) mean(values) * stats::qchisq(level, count) else 0
    return(list(quantile = exact, draws = 0L))
  }
  # The smallest values add nearly a constant, their sum.
  constant <- rev(cumsum(rev(values^2))) <= 1e-6 * sum(values^2)
  total <- rep(sum(values[constant]), quantile_draws)
  for (panel in row_panels(which(!constant), 100)) {
    normal <- matrix(stats::rnorm(quantile_draws * length(panel)),
                     quantile_draws)
    total <- total + drop(product(normal^2, values[panel]))
  }
  list(quantile = stats::quantile(total, level, names = FALSE),
       draws = quantile_draws)
}

# --- What samples know -------------------------------------------------------

# The sample whose features the estimate averages.
radius_sample <- function(sample) {
  if (is.null(sample$sketch)) {
    return(sample)
  }
  if (sample$sketch$weighted) {
    stop_input("'object' must be a fit of a sketch of rows without weights: ",
               "the law of their mean is not known")
  }
  sketch_sample(sample$sketch, sample$variable, sample$group)
}

# The value kappa = k(x, x) of all x, or an error.
constant_diagonal <- function(sample) {
  kappa <- common_diagonal(sample)
  if (is.null(kappa)) {
    stop_input("'object' must have a kernel with the same k(x, x) for all x, ",
               "such as kernel_rbf(): a radius takes the norm of every point ",
               "to be known; predict(interval = TRUE) takes any kernel")
  }
  kappa
}

# The share of the trace that a low-rank factor may leave out.
factor_leaves <- 1e-3

# The eigenvalues `values` of the covariance operator, and `left`, the part of
# its trace that is not among them.
radius_spectrum <- function(sample) {
  if (!is.null(sample$sketch)) {
    second_moments(sample, "method = \"spectrum\"")
    all <- list(sizes = sample$size, parts = list(sample))
    return(list(values = null_spectrum(sample, all) / sample$size, left = 0))
  }
  n <- sample$n
  sample <- walkable_sample(sample)
  if (n <= filter_most_points) {
    return(list(values = null_spectrum(sample) / n, left = 0))
  }
  check_memory(n, filter_most_columns, "use fewer rows or a kme_sketch()",
               copies = 3, what = "the features")
  pivoted <- pivoted_factor(sample_source(sample), factor_leaves,
                            filter_most_columns)
  list(values = spectrum_values(cross(center_columns(pivoted$factor))) / n,
       left = pivoted$left / n)
}

# A sketch knows rows by their projections on landmarks. At a point with the
# residual r(z) the mean of k differs from the mean of the projections by at
# most r(z) times the root of what the projections lose.
bounded_ends.landmark_sample <- function(sample, new, value, range, method,
                                         rest, own) {
  if (identical(method, "betting")) {
    stop_input("'method' must be \"chernoff\" or \"normal\" for a sketch, ",
               "which keeps no rows")
  }
  rows <- radius_sample(sample)
  moments <- rows$moments
  lost <- if (is.na(moments$lost)) moments$trace - moments$rho else moments$lost
  left <- over_panels(sample, new, \(values, at) {
    range[2L] - rowSums(product(values, rows$root)^2)
  })
  slack <- sqrt(max(lost, 0) * pmax(left, 0))
  unit <- range[2L] - range[1L]
  cbind(chernoff_end((value - slack - range[1L]) / unit, rows$n, rest),
        1 - chernoff_end((range[2L] - value - slack) / unit, rows$n, rest))
}

section_variance.landmark_sample <- function(sample, new, mean) {
  rows <- radius_sample(sample)
  covariance <- second_moments(rows, "an interval") -
    tcross(rows$moments$mean)
  over_panels(sample, new, \(values, at) {
    features <- cross(rows$root, t(values))
    column_dots(features, product(covariance, features))
  }) * rows$n / (rows$n - 1)
}

# --- The object --------------------------------------------------------------

#' @rdname confint.kme
#' @export
print.kme_confint <- function(x, digits = digits_shown(), ...) {
  digits <- take(digits, printed_digits)
  shown <- \(value) format(value, digits = digits)
  say(
    paste0(shown(100 * x$level), "% confidence radius of a kernel mean"),
    x$data, kernel_lines(x$kernel),
    switch(x$formula,
      limit = paste0("spectrum: the law of large n, ", if (x$draws > 0) {
        paste(format_count(x$draws), "draws")
      } else {
        "exact quantile"
      }),
      McDiarmid = paste0(
        "bound for every n: McDiarmid's inequality", if (x$n > most_mcdiarmid)
          " (the kernel has negative values)"
      ),
      variance = paste("bound for every n: variance-aware, variance",
                       shown(x$variance))
    ),
    if (x$left > 0) {
      paste0(format(100 * x$left / x$kappa, digits = 2L),
             "% of mean k(x, x) beyond the factor of K, taken as a constant")
    },
    paste("radius", shown(x$radius), "around the KME, whose norm is",
          shown(x$norm)),
    paste("|E f(X) - sum f(x_i)/n| <=", shown(x$radius), "|f| for all",
          "functions f of the space")
  )
  invisible(x)
}

#' @rdname confint.kme
#' @export
as.double.kme_confint <- function(x, ...) {
  check_dots(...)
  x$radius
}

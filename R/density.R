#' Density estimation by kernel mean matching
#'
#' A mixture of isotropic normals whose embedding is nearest to an estimate of
#' the kernel mean.
#'
#' The model is \eqn{Q = \sum_{j=1}^m \pi_j N(\theta_j, \sigma_j^2 I)}{Q = sum_j
#' pi_j N(theta_j, sigma_j^2 I)}. With \eqn{\tilde\mu}{mu} any estimate of the
#' kernel mean ([kme()]) and \eqn{\mu_Q}{mu_Q} the embedding of Q,
#' \deqn{\|\tilde\mu - \mu_Q\|^2 = \|\tilde\mu\|^2 + J, \quad J = \pi'G\pi -
#' 2\pi'g,}{|mu - mu_Q|^2 = |mu|^2 + J, J = pi'G pi - 2 pi'g,} where
#' \eqn{G_{jl}}{G_jl} is the inner product of the embeddings of two components
#' and \eqn{g_j}{g_j} that of a component and \eqn{\tilde\mu}{mu}, both in
#' closed form for RBF kernels (with one bandwidth, or one for each column) and
#' for polynomial kernels up to degree 3.
#'
#' The start is the best of `nstart` runs of [stats::kmeans()] from random
#' centers: \eqn{\theta_j}{theta_j} the centers, \eqn{\sigma_j^2}{sigma_j^2} the
#' mean squared deviation of a coordinate in the cluster, at least `floor` times
#' the mean variance of the columns, \eqn{\pi_j}{pi_j} the share of the cluster.
#' \describe{
#'   \item{`optimize = "weights"`}{minimizes J over \eqn{\pi}{pi} by quadratic
#'     programming ([quadprog::solve.QP()]), with a ridge towards the start of
#'     1e-8 times the mean of the diagonal of G: where G is singular the
#'     solution next to the start is taken. Weights below 1e-8 are set to 0.}
#'   \item{`optimize = "all"`}{goes on from there over \eqn{\pi}{pi},
#'     \eqn{\theta}{theta} and \eqn{\log\sigma^2}{log sigma^2} together by
#'     L-BFGS-B ([stats::optim()], analytic gradient, at most 500 iterations,
#'     \eqn{\sigma_j^2}{sigma_j^2} never below the floor, or the start's
#'     where that is lower).}
#' }
#'
#' Matching the embedding to the end fits it too closely: beyond some point the
#' density gets worse, for the points fitted as well as for new ones. So with
#' `optimize = "all"` a share `validate` of the points, drawn at random, is held
#' out of a first fit, and their log density is looked at: at the start, at the
#' optimal weights, and after every 10 steps (evaluations of J that are below
#' all before). The fit to all points then takes as many steps as the first look
#' that is not worse than the start and within one standard error of the best
#' look (that of the differences point by point; with one point held out the
#' best is taken): the best of many looks at few points is best by chance. (The
#' median distance and the floor of the variances are those of all points in
#' both fits.) `validate = 0` goes on to convergence, or 500 iterations.
#'
#' A linear kernel sees the mean of a distribution only, polynomial kernels its
#' first moments: many mixtures match equally well. With the linear kernel and
#' the KME the start matches already, and it is returned. Polynomials of columns
#' far from 0 see little but how far they are: center the columns. MKME and
#' MMKME need the RBF kernel.
#'
#' With `bandwidths` several RBF kernels are compared by the mean log density of
#' a share `validate` of the points that is held out of these fits; what is
#' returned is fitted to all points. `"validate"` chooses the squared bandwidth
#' among that of `kernel` (the squared median distance by default) times
#' \eqn{4^{-2}, 4^{-1.5}, \ldots, 4}{4^(-2), 4^(-1.5), ..., 4}. Of bandwidths
#' that are equally good the first one is taken, with `"validate"` the one
#' nearest to that of `kernel`.
#'
#' The points held out and the starts of k-means are random: call [set.seed()]
#' first for the same result again. Few points held out are a rough guide:
#' another draw may stop elsewhere, or choose another bandwidth.
#'
#' Estimates that shrink towards 0 have less mass than a density: matched to the
#' end, with `validate = 0`, the rest may go to a component far wider than the
#' data.
#'
#' The fit does not maximize the likelihood, so AIC and BIC are no guide to the
#' number of components, and optimal weights may have a lower likelihood than
#' the start (with heavy tails, or a kernel that sees only moments, much lower:
#' `print()` has both). Compare them by the log density of points that were held
#' out, as in the last example.
#'
#' The density is on the scale of the data as they are given and the components
#' are as wide in each column: [scale()] columns of different units first.
#'
#' @section Cost:
#' J and its gradient take 6nmd flops (9nmd if bandwidths or noise differ by
#' column) and nm exponentials, and O(m^2 d) for G;
#' memory is O(nd) beyond what the estimate takes (see [kme()]: F-KMSE stores
#' the Gram matrix). Twice as many threads halve that for large n. k-means takes
#' O(nmd) for each of its iterations and starts. The density of N new points
#' takes O(Nmd).
#'
#' @param x The points: a numeric matrix, a data frame of numeric columns or a
#'   vector (one column); a [gram()] of points; or a formula without response.
#' @param kernel An RBF kernel, or a linear or polynomial kernel up to degree 3;
#'   must not be given with a `gram` or a fit of [kme()].
#' @param estimator What is matched: the name of an estimator, an object such as
#'   [est_skmse()] or a function of your own (see there), or a fit of [kme()] on
#'   the points of `x`; without target, as the mixture is matched to weights on
#'   the points.
#' @param m Number of components, at most the number of distinct points; that of
#'   `start` where it is given.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method.
#' @param bandwidths `NULL` for the bandwidth of `kernel`; `"validate"`, or at
#'   least two positive numbers, for the best of several. Not with a `gram` or a
#'   fit of [kme()].
#' @param optimize `"weights"`, or `"all"` for means and variances too.
#' @param nstart Number of random starts of k-means.
#' @param validate Share of the points held out to stop `optimize = "all"` and
#'   to choose among `bandwidths`, a number from 0 up to 0.9. `NULL` is 0.2
#'   where there is something to decide, else 0, which is then the only value.
#' @param start Where to start instead: a fit of `kme_density()`, or a list with
#'   `weights` (m numbers that sum to 1), `means` (m by d) and `variances` (m
#'   positive numbers). A start found with the points that are held out flatters
#'   them: the fit then stops early, or at once.
#' @param floor Smallest variance of a component, as a share of the mean
#'   variance of the columns, a positive number.
#' @param formula A formula without response.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default, `na.action = na.omit` drops their rows.
#'
#' @return An object of class `kme_density`, a list with
#' \item{weights, means, variances}{\eqn{\pi}{pi} (m), \eqn{\theta}{theta} (m by
#'   d) and \eqn{\sigma^2}{sigma^2} (m)}
#' \item{objective}{J}
#' \item{distance2}{\eqn{\|\tilde\mu - \mu_Q\|^2}{|mu - mu_Q|^2}}
#' \item{start}{the start, a list with `weights`, `means`, `variances` and
#'   `objective`}
#' \item{path}{for `optimize = "all"` a data frame: `step` (`"start"`,
#'   `"weights"`, then the number of steps) and `objective`; with validation
#'   those of the first fit, and `heldout`, the mean negative log density of the
#'   points held out}
#' \item{steps}{where in the path the fit stopped: `"start"`, `"weights"` or the
#'   number of steps (the fit to all points may have converged in fewer); `NULL`
#'   for `optimize = "weights"`}
#' \item{heldout}{the rows held out, or `NULL`}
#' \item{bandwidths}{a data frame of the bandwidths tried and their `heldout`,
#'   or `NULL`}
#' \item{mean}{the estimate that was matched, a fit of [kme()]}
#' \item{kernel}{the kernel with its bandwidth as a number}
#' \item{sample}{the sample: a list with the points `x`, the `gram` if one was
#'   given, and its `kernel`}
#' \item{n, m}{the number of points and that of components}
#' \item{estimator}{the estimator as an object, see [est_kme()]}
#' \item{optimize, validate, floor}{what was asked for; `floor` as a variance}
#' \item{terms, arguments}{the terms of a formula; all arguments}
#'
#' @section Methods:
#' `predict()` gives the density or its logarithm, at the sample without
#' `newdata`. `logLik()` is the sum of the log densities of the sample with
#' m(d + 2) - 1 degrees of freedom; the fit does not maximize it. `simulate()`
#' draws `nsim` points, a matrix. `summary()` lists the components.
#' [plot()][plot.kme_density] draws the density. `update()` fits again with
#' other arguments, on the same points with the same bandwidth unless `x` (or
#' `data` for a fit by formula), `kernel` or `bandwidths` is given.
#'
#' @references
#' Song, L., Zhang, X., Smola, A., Gretton, A. and Schölkopf, B. (2008).
#' Tailoring density estimation via reproducing kernel moment matching.
#' *Proceedings of the 25th International Conference on Machine Learning*,
#' 992--999. \doi{10.1145/1390156.1390281}
#'
#' Muandet, K., Fukumizu, K., Sriperumbudur, B., Gretton, A. and Schölkopf, B.
#' (2014). Kernel mean estimation and Stein effect. *Proceedings of the 31st
#' International Conference on Machine Learning*. Section 4.2.
#' \doi{10.48550/arXiv.1306.0842}
#' @seealso [plot.kme_density()]; [kme()] and [est_kme()] for the estimators.
#' @family densities
#' @examples
#' set.seed(1)
#' fit <- kme_density(faithful$waiting, m = 3, estimator = "skmse")
#' fit
#' plot(fit)
#' predict(fit, c(50, 60, 80))
#' simulate(fit, 3)
#'
#' # Means and variances too, in two columns; a fifth of the points decides when
#' # to stop
#' fit <- kme_density(scale(faithful), m = 4, optimize = "all")
#' summary(fit)
#' plot(fit)
#'
#' # How many components? By the log density of points that are held out.
#' x <- scale(faithful)
#' out <- sample(nrow(x), 70)
#' sapply(1:5, \(m) {
#'   mean(predict(kme_density(x[-out, ], m = m), x[out, ], "log"))
#' })
#' @export
kme_density <- function(x, ...) {
  UseMethod("kme_density")
}

#' @rdname kme_density
#' @export
kme_density.default <- function(x, kernel = kernel_rbf(), estimator = "kme",
                                m = 10, ..., bandwidths = NULL,
                                optimize = c("weights", "all"), nstart = 50,
                                validate = NULL, start = NULL, floor = 0.01) {
  check_dots(...)
  if (missing(x)) stop_input("'x' must be given: the sample")
  given <- if (!missing(kernel)) {
    check_kernel(kernel, hint = if (is.numeric(kernel)) {
      "; the number of components is given by name, as in m = 3"
    } else {
      estimator_hint(kernel)
    })
  }
  optimize <- check_choice(optimize, c("weights", "all"), "optimize")
  nstart <- check_count(nstart, "nstart")
  floor <- check_number(floor, "floor", positive = TRUE)
  check_bandwidth_set(bandwidths, "validate")
  if (!inherits(estimator, "kme")) estimator <- read_estimator(estimator)
  sample <- density_sample(x, given, estimator, bandwidths)
  kernels <- candidate_kernels(bandwidths, sample$kernel)
  share <- check_validate(validate, optimize, estimator, !is.null(bandwidths))
  lowest <- floor * check_spread(sample$x)
  if (!in_reach(lowest)) {
    stop_input("'floor' must be a share of the variance such as 0.01, not ",
               format_number(floor))
  }
  first <- check_start(start, sample$x)
  count <- check_mixture_size(m, missing(m), first)
  plan <- list(
    estimator = estimator, kernels = kernels, optimize = optimize,
    lowest = lowest,
    begin = \(x, ...) {
      if (is.null(first)) kmeans_start(x, count, nstart, lowest, ...) else first
    }
  )
  found <- fit_density(sample, plan, share)
  new_kme_density(found, plan, share, list(
    m = count, kernel = given, bandwidths = bandwidths, estimator = estimator,
    optimize = optimize, nstart = nstart, validate = validate, start = first,
    floor = floor
  ))
}

#' @rdname kme_density
#' @export
kme_density.formula <- function(formula, data = NULL, subset, na.action, ...) {
  check_subset(subset)
  sample <- formula_sample(match.call(expand.dots = FALSE), formula, data,
                           missing(na.action), parent.frame())
  fit <- kme_density.default(sample$x, ...)
  fit$terms <- sample$terms
  fit
}

new_kme_density <- function(found, plan, share, arguments) {
  sample <- found$sample
  columns <- colnames(sample$x)
  named <- \(q) {
    if (!is.null(columns)) colnames(q$means) <- columns
    q[c("weights", "means", "variances", "objective")]
  }
  structure(
    c(
      named(found$best),
      list(
        distance2 = max(0, found$mean$norm2 + found$best$objective),
        start = named(found$start), path = found$path, steps = found$steps,
        heldout = found$heldout, bandwidths = found$bandwidths,
        mean = found$mean, kernel = sample$kernel, sample = sample,
        n = sample$n, m = length(found$best$weights),
        estimator = found$mean$estimator, optimize = plan$optimize,
        validate = share, floor = plan$lowest, terms = NULL,
        arguments = arguments
      )
    ),
    class = "kme_density"
  )
}

# --- Arguments ---------------------------------------------------------------

# The share of the points that is held out; `searched`: is a bandwidth to be
# chosen?
check_validate <- function(validate, optimize, estimator, searched) {
  if (is.null(validate)) {
    validate <- if (optimize == "all" || searched) 0.2 else 0
  }
  validate <- check_number(validate, "validate")
  if (validate > 0.9) {
    stop_input("'validate' must be a share of the points up to 0.9, not ",
               format_number(validate))
  }
  if (validate > 0 && optimize == "weights" && !searched) {
    stop_input("'validate' must be 0 for optimize = \"weights\", which runs ",
               "to its end; choose optimize = \"all\"")
  }
  if (validate == 0 && searched) {
    stop_input("'validate' must be positive to choose among 'bandwidths'")
  }
  if (validate > 0 && !is.null(estimator$sample$weights)) {
    stop_input("'validate' must be 0 where 'estimator' is a fit with weights ",
               "of its own")
  }
  validate
}

# The points with their kernel; a fit in place of an estimator brings its own.
density_sample <- function(x, kernel, estimator, bandwidths) {
  fitted <- inherits(estimator, "kme")
  if (!is.null(bandwidths) && (fitted || brings_kernel(x))) {
    stop_input("'bandwidths' must be NULL when ",
               if (fitted) "'estimator' is a fit" else "'x' is a gram",
               ", which has its own kernel")
  }
  sample <- if (fitted && !brings_kernel(x)) {
    points_sample(check_data(x), estimator$kernel)
  } else {
    read_sample(x, kernel, default = if (is.numeric(bandwidths)) {
      kernel_rbf(bandwidths[1L])
    })
  }
  sample_points(sample, "'x' must hold points, not a matrix of kernel values")
  own <- if (fitted) estimator$estimator else estimator
  if (!is.null(own$target)) {
    stop_input("'estimator' must have no target: a mixture is matched to ",
               "weights on the points")
  }
  if (fitted) check_fit(estimator, sample, kernel)
  check_density_kernel(sample$kernel, own, !is.null(bandwidths))
  sample
}

# A fit must be one to the points, with the kernel that they have.
check_fit <- function(fit, sample, kernel) {
  if (!identical(unname(fit$sample$x), unname(sample$x))) {
    stop_input("'estimator' must be a fit of kme() on the points of 'x'")
  }
  if (!is.null(kernel)) {
    stop_input("'kernel' must not be given when 'estimator' is a fit, which ",
               "has its own")
  }
  if (!same_kernel(fit$kernel, sample$kernel, ncol(sample$x))) {
    stop_input("'estimator' must be a fit with the kernel of the gram, ",
               format_kernel(sample$kernel), ", not ",
               format_kernel(fit$kernel))
  }
}

check_density_kernel <- function(kernel, estimator, searched) {
  check_closed_form(kernel)
  if (searched && !(is_rbf(kernel) && length(kernel$bandwidth) == 1L)) {
    stop_input("'kernel' must be an RBF kernel with one bandwidth when ",
               "'bandwidths' is given, not ", format_kernel(kernel))
  }
  if (!is_rbf(kernel) && "noise" %in% names(estimator)) {
    stop_input("'kernel' must be an RBF kernel for the density by estimator ",
               "\"", estimator$name, "\", which has noise, not ",
               format_kernel(kernel))
  }
}

# The kernels to choose from, first the one to be taken where all are as good;
# one if there is nothing to choose.
candidate_kernels <- function(bandwidths, kernel) {
  if (is.character(bandwidths)) {
    bandwidths <- kernel$bandwidth * 2^c(0, -0.5, 0.5, -1, 1, -1.5, -2)
  }
  if (!all(in_reach(c(kernel$bandwidth, bandwidths)^2))) {
    stop_kernmean("numeric", "squared bandwidths over- or underflow; ",
                  "rescale the columns of 'x'")
  }
  if (is.null(bandwidths)) {
    return(list(kernel))
  }
  lapply(bandwidths, \(bandwidth) {
    kernel$bandwidth <- bandwidth
    kernel$rule <- paste0("held-out likelihood",
                          if (bandwidth == min(bandwidths)) {
                            ", the smallest tried"
                          } else if (bandwidth == max(bandwidths)) {
                            ", the largest tried"
                          })
    kernel
  })
}

# The mean variance of the columns.
check_spread <- function(x) {
  n <- nrow(x)
  spread <- if (n > 1L) mean(scale(x, scale = FALSE)^2) * n / (n - 1) else 0
  if (spread == 0 && all(x == rep(x[1L, ], each = n))) {
    stop_input("'x' must have at least two distinct points")
  }
  if (!in_reach(spread)) {
    stop_kernmean("numeric", "variances over- or underflow; rescale the ",
                  "columns of 'x'")
  }
  spread
}

# Squares and inverses must be numbers too.
in_reach <- function(variance) variance > 1e-140 & variance < 1e140

# list(weights, means, variances) of the user's start, or NULL.
check_start <- function(start, x) {
  if (is.null(start)) {
    return(NULL)
  }
  fields <- c("weights", "means", "variances")
  if (!is.list(start) || !all(fields %in% names(start))) {
    missing <- if (is.list(start)) setdiff(fields, names(start))
    stop_input(
      "'start' must be a fit of kme_density() or a list with the names ",
      "weights, means and variances, ", if (is.null(missing)) {
        paste("not", describe(start))
      } else {
        paste0("which lacks ", toString(missing))
      }
    )
  }
  weights <- check_shares(start[["weights"]], "start$weights")
  means <- check_newdata(start[["means"]], x, "start$means")
  if (nrow(means) != length(weights)) {
    stop_input("'start$means' must have ", length(weights), " rows, one for ",
               "each component, not ", nrow(means))
  }
  variances <- start[["variances"]]
  if (!is.numeric(variances) || length(variances) != length(weights) ||
        !all(is.finite(variances) & in_reach(variances))) {
    stop_input("'start$variances' must be ", length(weights),
               " positive numbers, one for each component")
  }
  ends <- .Call(C_r_column_ranges, rbind(means, x))
  if (!in_reach(max(ends[2L, ] - ends[1L, ])^2)) {
    stop_kernmean("numeric", "distances overflow; 'start$means' must be near ",
                  "the points")
  }
  list(weights = weights, means = unname(means),
       variances = as.double(variances))
}

# The number of components, of the start if there is one.
check_mixture_size <- function(m, absent, start) {
  m <- check_count(m, "m")
  if (is.null(start)) {
    return(m)
  }
  if (!absent && m != length(start$weights)) {
    stop_input("'m' must be the number of components of 'start', ",
               length(start$weights), ", not ", m)
  }
  length(start$weights)
}

#' Density estimation by kernel mean matching
#'
#' A mixture of normals whose embedding is near an estimate of the kernel mean:
#' clusters of the points, of which by default the weights alone move.
#'
#' The model is \eqn{Q = \sum_{j=1}^m \pi_j N(\theta_j, C_j)}{Q = sum_j pi_j
#' N(theta_j, C_j)}. With \eqn{\tilde\mu}{mu} any estimate of the kernel mean
#' and \eqn{\mu_Q}{mu_Q} the embedding of Q, \deqn{\|\tilde\mu - \mu_Q\|^2 =
#' \|\tilde\mu\|^2 + J, \quad J = \pi'G\pi - 2\pi'g,}{|mu - mu_Q|^2 = |mu|^2 +
#' J, J = pi'G pi - 2 pi'g,} in closed form. The start is the best of `nstart`
#' runs of [stats::kmeans()]: the centers, the shares, and \eqn{C_j}{C_j} by
#' `shape`:
#' \describe{
#'   \item{`"full"`}{\eqn{(S_j + aW)/(n_j + a)}{(S_j + a W)/(n_j + a)}, with
#'     \eqn{S_j}{S_j} the scatter of the cluster, W the pooled covariance within
#'     clusters and a = d + 1.}
#'   \item{`"common"`}{\eqn{\sigma_j^2 W}{sigma_j^2 W}.}
#'   \item{`"isotropic"`}{\eqn{\sigma_j^2 I}{sigma_j^2 I}.}
#' }
#' `optimize = "weights"` then minimizes J over \eqn{\pi}{pi} by a quadratic
#' program; `"all"`, for isotropic components, goes on over \eqn{\pi}{pi},
#' \eqn{\theta}{theta} and \eqn{\log\sigma^2}{log sigma^2} by L-BFGS-B. Both the
#' points held out and the starts of k-means are random: call [set.seed()]
#' first.
#'
#' Matching to the end fits the embedding too closely, and the density gets
#' worse; so points are held out of a first fit, and their log density decides:
#' * `m = "validate"` tries 1, 2, 3, 4, 6, 8, 12, ... up to n/5 components until
#'   three sizes in a row bring no gain, each with a factor of 1, 1.25 or 1.5 on
#'   the covariances, and then how far the weights go from the shares of the
#'   clusters to the best ones: not at all, half of the way or all of it.
#' * `optimize = "all"` looks after every 10 steps, and the fit to all points
#'   takes as many as the first look that is within one standard error of the
#'   best. Often that is the start. `validate = 0` goes on to convergence.
#' * `bandwidths = "validate"` compares that of `kernel` times 1/4 to 2; of
#'   bandwidths as good as each other the nearest to that of `kernel` is taken.
#'
#' With `steps` nothing is held out: weights (as a softmax), means and log
#' variances take that many steps of BFGS. This is the protocol of a study, not
#' a way to a good density: `vignette("density-study", package = "kernmean")`.
#' The fit does not maximize the likelihood: compare fits by the log density of
#' points held out. `vignette("density", package = "kernmean")` has comparisons.
#'
#' Where `scale` is not given and the points cannot be whitened, `scale = TRUE`
#' and `shape = "isotropic"` are taken with a warning of class
#' `kernmean_warning_whiten`.
#' Of a [kme_sketch()] that is matched, the sample and its clusters are the
#' landmarks, counted by a distribution on them that is nearest to the estimate.
#'
#' @section Cost:
#' O(nmd^2 + m^2 d^3) for J; `m = "validate"` takes about five fits for each
#' size. With isotropic components J and its gradient take 6nmd flops and nm
#' exponentials. Memory is O(nd) beyond what the estimate takes, see [kme()].
#'
#' @inheritParams kme
#' @param x The points: a matrix, a data frame of numeric columns or a vector; a
#'   [gram()] of points; a [kme_sketch()]; or a formula without response.
#' @param kernel An RBF kernel, or a linear or polynomial kernel up to degree 3;
#'   must not be given with a `gram` or a fit of [kme()].
#' @param estimator What is matched: an estimator without target, see
#'   [estimators], or a fit of [kme()] on the points of `x`.
#' @param m Number of components, at most that of distinct points; `"validate"`,
#'   or several numbers, for the best of several.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method.
#' @param shape What components look like; by default `"full"`, with `optimize =
#'   "all"` or without whitening `"isotropic"`, or that of `start`.
#' @param bandwidths `NULL` for the bandwidth of `kernel`; `"validate"`, or at
#'   least two positive numbers, for the best of several.
#' @param optimize `"weights"`, or `"all"` for means and variances too.
#' @param nstart Number of random starts of k-means.
#' @param validate Share of the points held out, from 0 up to 0.9; `NULL` is 0.2
#'   where there is something to decide.
#' @param start `"kmeans"` for the clusters as they are; a fit of
#'   `kme_density()`; a list with `weights`, `means` (m by d) and `covariances`
#'   (d x d x m) or `variances` (m, in scaled units); or `NULL`.
#' @param floor Smallest variance of a component, as a share of the mean
#'   variance of the scaled columns; `NULL` is 1e-6 with `steps`, else 0.01 for
#'   isotropic components and 1e-4 for others.
#' @param steps For `optimize = "all"` the number of steps; `NULL`: until the
#'   points held out, or convergence, stop them.
#'
#' @return An object of class `kme_density`, a list with
#' \item{weights, means}{\eqn{\pi}{pi} (m) and \eqn{\theta}{theta} (m by d)}
#' \item{covariances, variances}{\eqn{C_j}{C_j} (d x d x m) in the units of `x`;
#'   or, of isotropic components, \eqn{\sigma^2}{sigma^2} in those of the
#'   kernel}
#' \item{objective, distance2}{J and \eqn{\|\tilde\mu - \mu_Q\|^2}{|mu -
#'   mu_Q|^2}}
#' \item{start}{the start, a list with `weights`, `means`, `covariances` or
#'   `variances`, and `objective`}
#' \item{sizes}{where m was chosen, a data frame of what was tried: `m`,
#'   `widen`, `toward`, `log_density` and `chosen`}
#' \item{widen, toward}{the factor on the covariances and the share of the way
#'   to the best weights that were taken}
#' \item{path}{for `optimize = "all"` a data frame of `step`, `objective` and,
#'   with validation, `heldout`, the mean negative log density held out}
#' \item{steps}{where in the path the fit stopped}
#' \item{heldout}{the rows held out, or `NULL`}
#' \item{bandwidths}{a data frame of the bandwidths tried, or `NULL`}
#' \item{mean}{the estimate that was matched, a fit of [kme()]}
#' \item{kernel, sample, n, estimator, terms, arguments}{as in [kme()]}
#' \item{m, shape, optimize, validate, floor}{what was taken; `floor` as a
#'   variance}
#'
#' @section Methods:
#' `predict()` gives the density or its logarithm in the units of `x`, `coef()`
#' the matrix of weights and means, `logLik()` the log likelihood, `simulate()`
#' a matrix of `nsim` points, `summary()` the components, and
#' [plot()][plot.kernmean_fit] the density.
#' @references
#' Song, L., Zhang, X., Smola, A., Gretton, A. and Schölkopf, B. (2008).
#' Tailoring density estimation via reproducing kernel moment matching.
#' *Proceedings of the 25th International Conference on Machine Learning*,
#' 992--999. \doi{10.1145/1390156.1390281}
#' @seealso [kme()]; [estimators]; [units].
#' @examples
#' set.seed(1)
#' fit <- kme_density(faithful)
#' fit
#' plot(fit)
#' predict(fit, data.frame(eruptions = c(2, 3), waiting = c(50, 80)))
#' simulate(fit, 3)
#'
#' # What was tried, and other shapes
#' fit$sizes
#' max(update(fit, shape = "common")$sizes$log_density)
#'
#' # Means and variances too; points held out decide when to stop
#' kme_density(faithful, m = 4, optimize = "all")
#'
#' # Weights that match a shrunk estimate to the end
#' kme_density(faithful$waiting, m = 3, estimator = "skmse")
#' @export
kme_density <- function(x, ...) {
  UseMethod("kme_density")
}

#' @rdname kme_density
#' @export
kme_density.default <- function(x, kernel = kernel_rbf(), estimator = "kme",
                                m = "validate", ..., scale = "whiten",
                                shape = c("full", "common", "isotropic"),
                                bandwidths = NULL,
                                optimize = c("weights", "all"), nstart = 50,
                                validate = NULL, start = NULL, floor = NULL,
                                steps = NULL) {
  asked <- request(kme_density_arguments)
  optimize <- asked$optimize
  matched <- asked$estimator
  sketched <- inherits(x, "kme_sketch")
  if (sketched) {
    of_rows <- as_sample(x)
    matched <- density_mean(of_rows, matched)
    sample <- sample_support(of_rows)
    points <- points_for_mean(matched)
  } else {
    sample <- density_sample(x, asked$kernel, matched, bandwidths, asked$scale)
    points <- sample$x
  }
  kernels <- candidate_kernels(bandwidths, sample$kernel)
  first <- check_start(start, sample)
  sizes <- if (sketched) sketch_size(asked$m, first) else
    read_sizes(m, !is_given(asked, "m"), first, sample$n)
  share <- if (sketched) 0 else check_validate(asked$validate, matched, c(
    m = length(sizes) > 1L, bandwidths = !is.null(bandwidths),
    optimize = optimize == "all" && is.null(steps)
  ), steps)
  look <- read_shape(asked$shape, optimize, first, sample)
  share_kept <- asked$floor
  if (is.null(share_kept)) {
    share_kept <- least_variance[[if (is.null(steps)) look else "steps"]]
  }
  lowest <- share_kept * check_spread(points)
  if (!in_reach(lowest)) {
    stop_input("'floor' must be a share of the variance such as 0.01, not ",
               format_number(floor))
  }
  direct <- sketched || identical(start, "kmeans") || !is.null(steps)
  how <- list(shape = look, m = sizes[1L], nstart = asked$nstart,
              lowest = lowest, widen = 1)
  if (sketched && is.null(first)) {
    first <- cluster_start(points, how, " that stand for the mean")
  }
  plan <- list(
    estimator = matched, kernels = kernels, optimize = optimize,
    steps = asked$steps, sizes = sizes, stop_early = identical(m, "validate"),
    first = first, direct = identical(start, "kmeans") || !is.null(steps),
    widenings = if (direct) 1 else widenings, shape = how, toward = 1,
    weigh = !sketched && optimize == "weights" && is.null(bandwidths),
    lowest = lowest
  )
  arguments <- stored(asked)
  if (length(sizes) == 1L) arguments$m <- sizes
  new_kme_density(fit_density(sample, plan, share), plan, share, arguments)
}

kme_density_arguments <- door_table(
  "kme_density.default", x = anything, kernel = unless_given(a_kernel),
  estimator = \(value, name) {
    if (inherits(value, "kme")) value else read_estimator(value)
  },
  m = unless_given(anything), scale = unless_given(a_scale),
  shape = unless_given(choice("full", "common", "isotropic")),
  bandwidths = \(value, name) {
    check_bandwidth_set(value, "validate")
    value
  },
  optimize = choice("weights", "all"), nstart = count(),
  validate = maybe(number(0, 0.9)), start = anything,
  floor = maybe(number(open = TRUE)), steps = maybe(count()),
  rules = list(
    when(c(optimize = "weights"), steps = NULL),
    when(\(asked) inherits(asked$x, "kme_sketch"), kernel = NULL, scale = NULL,
         bandwidths = NULL, reason = "when 'x' is a sketch"),
    when(\(asked) inherits(asked$x, "kme_sketch"),
         validate = new_kind("0", \(x) is.null(x) || x == 0),
         reason = "for a sketch, which has no rows to be held out")
  ),
  aside = "x"
)

#' @rdname kme_density
#' @export
kme_density.formula <- function(formula, data = NULL, subset, na.action, ...) {
  check_formula(formula, data)
  sample <- formula_sample(match.call(expand.dots = FALSE), formula, data,
                           missing(na.action), parent.frame())
  fit <- kme_density.default(sample$x, ...)
  fit$terms <- sample$terms
  fit
}

least_variance <- c(full = 1e-4, common = 1e-4, isotropic = 0.01, steps = 1e-6)

new_kme_density <- function(found, plan, share, arguments) {
  sample <- found$sample
  found <- in_user_units(found, log_jacobian(sample$kernel))
  new_fit("kme_density", c(user_mixture(found$best, sample), list(
    shape = plan$shape$shape,
    distance2 = max(0, found$mean$norm2 + found$best$objective),
    start = user_mixture(found$start, sample), path = found$path,
    steps = found$steps, heldout = found$heldout, sizes = found$sizes,
    widen = found$widen, toward = found$toward, bandwidths = found$bandwidths,
    mean = found$mean, kernel = sample$kernel, sample = sample,
    n = found$mean$n, m = length(found$best$weights),
    estimator = found$mean$estimator, optimize = plan$optimize,
    validate = share, floor = plan$lowest, terms = NULL, arguments = arguments
  )))
}

shape_words <- c(full = "each of its own shape", common = "of one shape",
                 isotropic = "round")

# The log densities of points held out, likewise.
in_user_units <- function(found, jacobian) {
  for (part in intersect(c("path", "bandwidths"), names(found))) {
    if (!is.null(found[[part]]$heldout)) {
      found[[part]]$heldout <- found[[part]]$heldout - jacobian
    }
  }
  if (!is.null(found$sizes)) {
    found$sizes$log_density <- found$sizes$log_density + jacobian
  }
  found
}

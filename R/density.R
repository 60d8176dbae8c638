#' Density estimation by kernel mean matching
#'
#' A mixture of normals whose embedding is near an estimate of the kernel mean:
#' clusters of the points, of which by default the weights alone move, towards
#' those that are nearest.
#'
#' The model is \eqn{Q = \sum_{j=1}^m \pi_j N(\theta_j, C_j)}{Q = sum_j pi_j
#' N(theta_j, C_j)}. With \eqn{\tilde\mu}{mu} any estimate of the kernel mean
#' ([kme()]) and \eqn{\mu_Q}{mu_Q} the embedding of Q,
#' \deqn{\|\tilde\mu - \mu_Q\|^2 = \|\tilde\mu\|^2 + J, \quad J = \pi'G\pi -
#' 2\pi'g,}{|mu - mu_Q|^2 = |mu|^2 + J, J = pi'G pi - 2 pi'g,} where
#' \eqn{G_{jl}}{G_jl} is the inner product of the embeddings of two components
#' and \eqn{g_j}{g_j} that of a component and \eqn{\tilde\mu}{mu}, both in
#' closed form for RBF kernels (with one bandwidth, or one for each column) and
#' for polynomial kernels up to degree 3.
#'
#' The start is the best of `nstart` runs of [stats::kmeans()] from random
#' centers: \eqn{\theta_j}{theta_j} the centers, \eqn{\pi_j}{pi_j} the share of
#' the cluster, and \eqn{C_j}{C_j} by `shape`, in the units of the kernel:
#' \describe{
#'   \item{`"full"`}{\eqn{(S_j + aW)/(n_j + a)}{(S_j + a W)/(n_j + a)}, with
#'     \eqn{S_j}{S_j} the scatter of the \eqn{n_j}{n_j} points of the cluster, W
#'     the pooled covariance within clusters and \eqn{a = d + 1}: a cluster of
#'     few points has nearly the common shape. The clusters are found in the
#'     metric of W, in three rounds. No eigenvalue is below the floor.}
#'   \item{`"common"`}{\eqn{\sigma_j^2 W}{sigma_j^2 W}, with the same clusters,
#'     \eqn{\sigma_j^2}{sigma_j^2} the mean over the directions in which the
#'     former differs from W.}
#'   \item{`"isotropic"`}{\eqn{\sigma_j^2 I}{sigma_j^2 I}, with
#'     \eqn{\sigma_j^2}{sigma_j^2} the mean squared deviation of a coordinate in
#'     the cluster, at least the floor.}
#' }
#' \describe{
#'   \item{`optimize = "weights"`}{minimizes J over \eqn{\pi}{pi} by quadratic
#'     programming ([quadprog::solve.QP()]), with a ridge towards the start of
#'     1e-8 times the mean of the diagonal of G: where G is singular the
#'     solution next to the start is taken. Weights below 1e-8 are set to 0.}
#'   \item{`optimize = "all"`}{for isotropic components: goes on from there over
#'     \eqn{\pi}{pi}, \eqn{\theta}{theta} and \eqn{\log\sigma^2}{log sigma^2}
#'     together by L-BFGS-B ([stats::optim()], analytic gradient, at most 500
#'     iterations, \eqn{\sigma_j^2}{sigma_j^2} never below the floor, or the
#'     start's where that is lower); with `start = "kmeans"` from the clusters
#'     themselves; with `steps` that many iterations of BFGS, see there.}
#' }
#'
#' @section Number of components:
#' `m = "validate"` tries 1, 2, 3, 4, 6, 8, 12, ... up to n/5 components until
#' three sizes in a row have brought no gain; several numbers are all tried. The
#' points are divided at random into `1/validate` parts, small samples several
#' times, until 300 points are looked at, and each part is held out of a fit to
#' the others (clusters of at most 10 starts). What has the largest mean log
#' density of the points held out is taken: first the size and a factor of 1,
#' 1.25 or 1.5 on the covariances, with the shares of the clusters as weights
#' (clusters cut off their tails, so that components in their place must be
#' wider); then, with `optimize = "weights"` and the bandwidth of `kernel`, how
#' far the weights go from these shares to the best ones: not at all, half of
#' the way or all of it. J falls all the way; the density is often best on it.
#' Where the shares are kept (`toward` is 0), the density is that of the
#' clusters, and the embedding only measures how near it is.
#'
#' On six data sets (the table is in `vignette("density", package =
#' "kernmean")`) the result is above one normal on all, above mixtures by
#' maximum likelihood (mclust) on four, 0.01 below them on faithful and 0.6
#' below on 569 points in 10 columns, wdbc: with many points and clusters that
#' overlap, the likelihood knows more than clusters by distance do. Take mclust
#' then.
#'
#' @section Where to stop:
#' Matching the embedding to the end fits it too closely: beyond some point the
#' density gets worse, for the points fitted as well as for new ones. So with
#' `optimize = "all"` a share `validate` of the points, drawn at random, is held
#' out of a first fit, and their log density is looked at: at the start, at the
#' optimal weights, and after every 10 steps (evaluations of J that are below
#' all before). The fit to all points then takes as many steps as the first look
#' that is not worse than the start and within one standard error of the best
#' look (that of the differences point by point; with one point held out the
#' best is taken): the best of many looks at few points is best by chance. Often
#' that is the start: then `optimize = "all"` returns the clusters of k-means,
#' and `print()` says so. (The median distance, the scaling and the floor of the
#' variances are those of all points in both fits.) `validate = 0` goes on to
#' convergence, or 500 iterations.
#'
#' @section A number of steps:
#' With `optimize = "all"` and `steps` nothing is held out and no quadratic
#' program comes first. From the clusters themselves (their shares, centers and
#' own variances; or from `start`), u is moved by `steps` iterations of BFGS,
#' `optim(u, J, method = "BFGS", control = list(maxit = steps, reltol = 0))`
#' with the analytic gradient and J as it is, where
#' \deqn{u = (\eta, \theta, \log\sigma^2), \quad \pi_j = e^{\eta_j} / \sum_l
#' e^{\eta_l},}{u = (eta, theta, log sigma^2), pi_j = exp(eta_j)/sum_l
#' exp(eta_l),} starting with \eqn{\eta_j = \log \pi_j}{eta_j = log pi_j}. (As
#' [stats::optim()] counts, its first iteration is the gradient at the start: 1
#' and 2 are the same.) Each step lowers J, so that more steps mean a closer
#' match; `path` has J at every tenth.
#'
#' This is not a way to a good density. It is the protocol under which Table 1
#' of Muandet et al. (2014) comes true for the RBF kernel: after 100 steps
#' S-KMSE is clearly better than the KME on 12 of 15 data sets, and F-KMSE on
#' all. Shrinkage slows the overfitting of the match, and it is the mass below 1
#' that does so: the KME with the mass of F-KMSE gains as much. More steps
#' overfit more, and the fits are mostly worse than the clusters they start
#' from, here on 14 of 15; `vignette("density-study", package = "kernmean")` has
#' the figures.
#'
#' @section Kernels:
#' A linear kernel sees the mean of a distribution only, polynomial kernels its
#' first moments: many mixtures match equally well. With the linear kernel and
#' the KME the start matches already, and it is returned. Polynomials of columns
#' far from 0 see little but how far they are: center the columns. MKME, MMKME
#' and smoothing need the RBF kernel; a stack has the candidates that the kernel
#' allows.
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
#' out.
#'
#' @section Sketches:
#' With a [kme_sketch()] as `x` an estimate of [kme()] from its sums is matched,
#' weights on the landmarks. `m` must be a number: to choose it, or where to
#' stop, takes rows to be held out, and `optimize = "all"` takes `steps`, or
#' goes on to convergence. The start is that of 5,000 points, the landmarks as
#' often as a distribution p on them says that is nearest to the estimate
#' (\eqn{p \ge 0}{p >= 0} and \eqn{\sum p = 1}{sum p = 1} minimize \eqn{\|
#' \tilde\mu - \sum_j p_j k(s_j, \cdot)\|^2}{|mu - sum_j p_j k(s_j, .)|^2}).
#' Units are those of the landmarks: whiten there, `kme_landmarks(x, scale =
#' "whiten")`. O(m^3) time for m landmarks, and what the fit to m points takes.
#'
#' @section Units:
#' The density, the means, the covariances and simulated points are in the units
#' of `x`; the Jacobian of the scaling is in the density. With `scale =
#' "whiten"` any invertible affine map of the points gives the same density, but
#' for its Jacobian and rounding; with `TRUE`, any other units of the columns.
#' Where `scale` is not given and the points cannot be whitened (they do not
#' span all directions, or hardly outnumber the columns), `scale = TRUE` and
#' `shape = "isotropic"` are taken with a warning of class
#' `kernmean_warning_whiten`; with a kernel of several bandwidths, `FALSE`.
#' Bandwidths and noise that are given as numbers are in scaled units.
#'
#' Normal components reach beyond the range of the points: `summary()` says how
#' much of the density does.
#'
#' @section Cost:
#' With covariances of their own, components take O(nmd^2 + m^2 d^3) for J and
#' O(Nmd^2) for N new points, `m = "validate"` about as much as five fits (more
#' for small samples) for each size. With isotropic components J and its
#' gradient take 6nmd flops (9nmd if bandwidths or noise differ by column, or
#' with smoothing) and nm exponentials, and O(m^2 d) for G; in a stack each
#' smoothing with a share takes that once more. Memory is O(nd) beyond what the
#' estimate takes (see [kme()]: F-KMSE and stacks store the Gram matrix). Twice
#' as many threads halve that for large n. k-means takes O(nmd) for each of its
#' iterations and starts. The density of N new points takes O(Nmd).
#'
#' @param x The points: a numeric matrix, a data frame of numeric columns or a
#'   vector (one column); a [gram()] of points; a [kme_sketch()], see Sketches;
#'   or a formula without response.
#' @param kernel An RBF kernel, or a linear or polynomial kernel up to degree 3;
#'   must not be given with a `gram` or a fit of [kme()].
#' @param estimator What is matched: the name of an estimator, an object such as
#'   [est_skmse()] or a function of your own (see there), or a fit of [kme()] on
#'   the points of `x`; without target, as the mixture is matched to weights on
#'   the points.
#' @param m Number of components, at most the number of distinct points;
#'   `"validate"`, or several numbers, for the best of several (see below); that
#'   of `start` where it is given.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method.
#' @param scale Units in which the kernel sees the columns: `"whiten"`, those of
#'   their covariance; `TRUE`, their standard deviations; or `FALSE`, as they
#'   are (see the section on units). Not with a `gram` or a fit of [kme()].
#' @param shape What components look like, see there. The default is `"full"`,
#'   or `"isotropic"` with `optimize = "all"`, or where the points cannot be
#'   whitened, or the shape of `start`.
#' @param bandwidths `NULL` for the bandwidth of `kernel`; `"validate"`, or at
#'   least two positive numbers, for the best of several. Not with a `gram` or a
#'   fit of [kme()].
#' @param optimize `"weights"`, or `"all"` for means and variances too.
#' @param nstart Number of random starts of k-means.
#' @param validate Share of the points held out to choose `m`, to stop `optimize
#'   = "all"` without `steps` and to choose among `bandwidths`: a number from 0
#'   up to 0.9. `NULL` is 0.2 where there is something to decide, else 0, which
#'   is then the only value.
#' @param start Where to start. `"kmeans"`: the clusters themselves, their
#'   shares and own covariances, with no factor on these (`m = "validate"`) and
#'   no quadratic program before all parameters move (`optimize = "all"`);
#'   `NULL` leaves both open, and is `"kmeans"` with `steps`. Or instead of
#'   clusters a fit of `kme_density()`, or a list with `weights` (m numbers that
#'   sum to 1), `means` (m by d, in the units of `x`) and `covariances` (d x d x
#'   m, likewise) or `variances` (m positive numbers, in scaled units). A start
#'   found with the points that are held out flatters them: the fit then stops
#'   early, or at once.
#' @param floor Smallest variance of a component, as a share of the mean
#'   variance of the scaled columns, a positive number; `NULL` is 1e-6 with
#'   `steps`, else 0.01 for isotropic components and 1e-4 for others.
#' @param steps For `optimize = "all"` the number of steps that all parameters
#'   take from the start itself, a whole number of at least 1; `NULL`: until
#'   the points held out, or convergence, stop them.
#' @param formula A formula without response.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default, `na.action = na.omit` drops their rows.
#'
#' @return An object of class `kme_density`, a list with
#' \item{weights, means}{\eqn{\pi}{pi} (m) and \eqn{\theta}{theta} (m by d)}
#' \item{covariances}{\eqn{C_j}{C_j} (d x d x m), in the units of `x`; or}
#' \item{variances}{of isotropic components: \eqn{\sigma^2}{sigma^2} (m), in the
#'   units of the kernel}
#' \item{shape}{that of the components}
#' \item{objective}{J}
#' \item{distance2}{\eqn{\|\tilde\mu - \mu_Q\|^2}{|mu - mu_Q|^2}}
#' \item{start}{the start, a list with `weights`, `means`, `covariances` or
#'   `variances`, and `objective`}
#' \item{sizes}{where m was chosen, a data frame of what was tried: `m`, the
#'   factor `widen` on the covariances, `toward` (how far the weights go from
#'   the shares to the best ones), `log_density`, the mean of the points held
#'   out, and `chosen`}
#' \item{widen, toward}{those taken}
#' \item{path}{for `optimize = "all"` a data frame: `step` (`"start"`,
#'   `"weights"` where these were optimized first, then the number of steps) and
#'   `objective`; with validation those of the first fit, and `heldout`, the
#'   mean negative log density of the points held out}
#' \item{steps}{where in the path the fit stopped: `"start"`, `"weights"` or the
#'   number of steps (the fit to all points may have converged in fewer; with
#'   `steps` given, fewer only where it converged); `NULL` for `optimize =
#'   "weights"`}
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
#' `newdata`. `coef()` is the matrix of weights and means. `logLik()` is the sum
#' of the log densities of the sample, with as many degrees of freedom as the
#' mixture has free numbers; the fit does not maximize it, and so `AIC()` and
#' `BIC()` are refused. `nobs()` is the number of points. `simulate()` draws
#' `nsim` points, a matrix. `summary()` lists the components (`sd` is the root
#' of the mean variance of the columns) and the shares beyond the range of the
#' points.
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
#' fit <- kme_density(faithful)
#' fit
#' plot(fit)
#' predict(fit, data.frame(eruptions = c(2, 3), waiting = c(50, 80)))
#' summary(fit)
#' simulate(fit, 3)
#'
#' # What was tried, and other shapes
#' fit$sizes
#' max(update(fit, shape = "common")$sizes$log_density)
#'
#' # Means and variances too, from the clusters on; points held out decide when
#' # to stop
#' kme_density(faithful, m = 4, optimize = "all")
#'
#' # 100 steps from the clusters, whatever the density does
#' kme_density(faithful, m = 4, optimize = "all", steps = 100)
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

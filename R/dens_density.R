#' Density estimation by kernel mean matching
#'
#' A mixture of normals whose embedding is near an estimate of the kernel mean.
#'
#' The model is \eqn{Q = \sum_{j=1}^m \pi_j N(\theta_j, C_j)}{Q = sum_j pi_j
#' N(theta_j, C_j)}. With \eqn{\tilde\mu}{mu} any estimate of the kernel mean
#' and \eqn{\mu_Q}{mu_Q} the embedding of Q, \deqn{\|\tilde\mu - \mu_Q\|^2 =
#' \|\tilde\mu\|^2 + J, \quad J = \pi'G\pi - 2\pi'g,}{|mu - mu_Q|^2 = |mu|^2 +
#' J, J = pi'G pi - 2 pi'g,} in closed form. The start is the best of `nstart`
#' runs of [stats::kmeans()], with \eqn{C_j}{C_j} by `shape`: `"full"`, the
#' covariance of the cluster shrunk to the pooled W; `"common"`,
#' \eqn{\sigma_j^2 W}{sigma_j^2 W}; or `"isotropic"`, \eqn{\sigma_j^2 I}{
#' sigma_j^2 I}. `optimize = "weights"` then minimizes J over \eqn{\pi}{pi};
#' `"all"`, for isotropic components, goes on over all parameters by L-BFGS-B.
#' Points held out and k-means are random: call [set.seed()] first.
#'
#' A match to convergence makes the density worse. So points are held out of a
#' first fit, and their log density decides:
#' * `m = "validate"` tries 1, 2, 3, 4, 6, 8, 12, ... up to n/5 components until
#'   three sizes in a row bring no gain, each with 1, 1.25 or 1.5 times the
#'   covariances; then it chooses whether weights stay the shares of the
#'   clusters, go half of the way to the optimal ones, or all of it.
#' * `optimize = "all"` looks at the fit after every 10 steps, and the fit to
#'   all points stops at the first look within one standard error of the best,
#'   often at the start. `validate = 0` goes on to convergence.
#' * `bandwidths = "validate"` compares the bandwidth of `kernel` times 1/4 to
#'   2.
#'
#' With `steps` no points are held out, and that many steps of BFGS are taken,
#' the protocol of the papers. Their study, which judges estimators of the
#' kernel mean by densities of 15 UCI data sets, is repeated in
#' `vignette("density-study", package = "kernmean")`. The likelihood is not
#' maximized: compare fits by the log density of points held out, as in
#' `vignette("density", package = "kernmean")`. There kernel density estimates
#' are better in one column, and mixtures by maximum likelihood on some data
#' sets.
#'
#' If points cannot be whitened, the defaults are `scale = TRUE` and
#' `shape = "isotropic"`, with a warning of class `kernmean_warning_whiten`.
#' A [kme_sketch()] is matched on its landmarks.
#'
#' @section Cost:
#' J takes O(nmd^2 + m^2 d^3) time, and `m = "validate"` about five fits for
#' each size. Memory is O(nd) beyond what the estimate takes, see [kme()].
#'
#' @inheritParams kme
#' @param x The points: a matrix, a data frame of numeric columns or a vector; a
#'   [gram()] of points; a [kme_sketch()]; or a formula without response.
#' @param kernel An RBF kernel, or a linear or polynomial kernel up to degree 3.
#' @param estimator The estimate that is matched: by an estimator without
#'   target, see [estimators], or a fit of [kme()] to `x`, with its own kernel.
#' @param m Number of components; several numbers, or `"validate"`, for the best
#'   of them.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method.
#' @param shape The shape of components. The default is that of `start`, else
#'   `"full"`, or `"isotropic"` with `optimize = "all"` or without whitening.
#' @param bandwidths `NULL` for the bandwidth of `kernel`; several numbers, or
#'   `"validate"`, for the best of them.
#' @param optimize `"weights"`, or `"all"` for means and variances too.
#' @param nstart Number of random starts of k-means.
#' @param validate Share of the points held out if there is something to decide,
#'   from 0 to 0.9; `NULL` is 0.2.
#' @param start `"kmeans"` for the clusters as they are; a fit of
#'   `kme_density()`; a list with `weights`, `means` (m by d) and `covariances`
#'   (d x d x m) or `variances` (m, in scaled units); or `NULL`.
#' @param floor Smallest variance of a component, as a share of the mean
#'   variance of the scaled columns; `NULL` is 1e-4, for isotropic components
#'   0.01, with `steps` 1e-6.
#' @param steps For `optimize = "all"` the number of steps, or `NULL`.
#'
#' @return An object of class `kme_density`, a list with
#' \item{weights, means}{\eqn{\pi}{pi} (m) and \eqn{\theta}{theta} (m by d)}
#' \item{covariances, variances}{\eqn{C_j}{C_j} (d x d x m); or, of isotropic
#'   components, \eqn{\sigma^2}{sigma^2} in the units of the kernel}
#' \item{objective, distance2}{J and \eqn{\|\tilde\mu - \mu_Q\|^2}{|mu -
#'   mu_Q|^2}}
#' \item{start}{the start, with these fields}
#' \item{sizes, widen, toward}{a data frame of what was tried to choose m; the
#'   chosen factor on the covariances, and the share of the way to the optimal
#'   weights}
#' \item{path, steps}{for `optimize = "all"`, J and the mean negative log
#'   density held out at each look; where the fit stopped}
#' \item{heldout, bandwidths}{the rows held out; the bandwidths that were tried}
#' \item{mean}{the estimate that was matched, a fit of [kme()]}
#' \item{kernel, sample, n, estimator, layout, arguments}{as in [kme()]}
#' \item{m, shape, optimize, validate, floor}{the values that were used, `floor`
#'   as a variance}
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
#' @seealso [glossary]; [kme()]; [estimators]; [units].
#' @examples
#' set.seed(1)
#' fit <- kme_density(faithful)
#' fit
#' plot(fit)
#' predict(fit, data.frame(eruptions = c(2, 3), waiting = c(50, 80)))
#' simulate(fit, 3)
#'
#' # The numbers of components that were tried
#' fit$sizes
#'
#' # Means and variances too; points held out decide when to stop
#' kme_density(faithful, m = 4, optimize = "all")
#'
#' # A shrunk estimate
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
  matched <- asked$estimator
  sample <- density_sample(asked)
  sketched <- inherits(x, "kme_sketch")
  points <- sample$x
  if (sketched) {
    if (!inherits(matched, "kme")) {
      matched <- estimate_mean(as_sample(x), matched)
    }
    points <- points_for_mean(matched)
  }
  plan <- new_density_plan(asked, sample, matched)
  share <- if (sketched) 0 else check_validate(asked, plan)
  plan$lowest <- plan$lowest * check_spread(points)
  if (sketched && is.null(plan$first)) {
    plan$first <- cluster_start(points, plan, " that stand for the mean")
  }
  arguments <- stored(asked)
  if (length(plan$sizes) > 1L) {
    plan <- choose_size(sample, plan, share)
  } else {
    arguments$m <- plan$sizes
  }
  new_kme_density(fit_density(sample, plan, share), plan, share, arguments)
}

# The argument `estimator`: an estimator, or a fit whose mean is to be matched.
an_estimate <- function(value, name) {
  if (inherits(value, "kme")) value else read_estimator(value)
}

is_of_sketch <- \(asked) inherits(asked$x, "kme_sketch")

kme_density_arguments <- door_table(
  "kme_density.default", x = anything, kernel = unless_given(a_kernel),
  estimator = an_estimate, m = unless_given(anything),
  scale = unless_given(a_scale),
  shape = unless_given(choice("full", "common", "isotropic")),
  bandwidths = bandwidth_set("validate"),
  optimize = choice("weights", "all"), nstart = count(),
  validate = maybe(number(0, 0.9)),
  start = maybe(new_kind("a fit of kme_density() or a list", is.list),
                "kmeans"),
  floor = maybe(number(0, 1, open = TRUE)), steps = maybe(count()),
  rules = list(
    when(c(optimize = "weights"), steps = NULL),
    when(c(optimize = "all"), shape = "isotropic"),
    when(\(asked) inherits(asked$estimator, "kme"), kernel = NULL,
         scale = NULL, bandwidths = NULL,
         reason = "when 'estimator' is a fit, which has its own"),
    when(\(asked) brings_kernel(asked$x), bandwidths = NULL,
         reason = "when 'x' has a kernel of its own"),
    when(is_of_sketch, kernel = NULL, scale = NULL,
         reason = "when 'x' is a sketch"),
    when(is_of_sketch, validate = new_kind("0", \(x) is.null(x) || x == 0),
         reason = "for a sketch, which has no rows to be held out")
  ),
  aside = "x"
)

#' @rdname kme_density
#' @export
kme_density.formula <- function(formula, data = NULL, subset, na.action, ...) {
  read <- read_sides(c(x = "terms"))
  keep_layout(kme_density.default(read$x, ...), read)
}

# The fit of kme_density(), from what fit_density() found; ?kme_density has its
# fields.
new_kme_density <- function(fit, plan, share, arguments) {
  sample <- fit$sample
  sizes <- plan$tried
  # Held-out log densities are turned from the units of the kernel into those of
  # the user.
  jacobian <- log_jacobian(sample$kernel, ncol(sample$x))
  for (part in c("path", "bandwidths")) {
    if (!is.null(fit[[part]]$heldout)) {
      fit[[part]]$heldout <- fit[[part]]$heldout - jacobian
    }
  }
  if (!is.null(sizes)) sizes$log_density <- sizes$log_density + jacobian
  new_fit("kme_density", c(user_mixture(fit$best, sample), list(
    shape = plan$shape, distance2 = max(0, fit$mean$norm2 + fit$best$objective),
    start = user_mixture(fit$start, sample), path = fit$path,
    steps = fit$steps, heldout = fit$heldout, sizes = sizes,
    widen = plan$widen, toward = plan$toward, bandwidths = fit$bandwidths,
    mean = fit$mean, kernel = sample$kernel, sample = sample, n = fit$mean$n,
    m = length(fit$best$weights), estimator = fit$mean$estimator,
    optimize = plan$optimize, validate = share, floor = plan$lowest,
    layout = NULL, arguments = arguments
  )))
}

shape_words <- c(full = "each of its own shape", common = "of one shape",
                 isotropic = "isotropic")

# --- Methods -----------------------------------------------------------------

#' @rdname kme_density
#' @param object A fit.
#' @param newdata New points, `NA` for those with missing values; without it,
#'   the sample.
#' @param type `"density"`, or `"log"` for its logarithm.
#' @export
predict.kme_density <- function(object, newdata = NULL,
                                type = c("density", "log"), ...) {
  check_dots(...)
  type <- take(type, choice("density", "log"))
  gaps <- if (!is.null(newdata)) predict_gaps(object, newdata, type)
  if (!is.null(gaps)) return(gaps)
  new <- if (is.null(newdata)) {
    check_rows_kept(object$sample)
    own_points(object$sample)
  } else {
    sample_newdata(object$sample, newdata, object$layout)
  }
  value <- density_log(object, new$z)
  stats::setNames(if (type == "log") value else exp(value), new$names)
}

# The log density in the units of the user at points z, which are in the units
# of the kernel.
density_log <- function(object, z) {
  mixture_log(scale_mixture(object$kernel, object), z) +
    log_jacobian(object$kernel, ncol(z))
}

#' @importFrom stats fitted
#' @export
fitted.kme_density <- function(object, ...) {
  check_dots(...)
  predict(object)
}

#' @importFrom stats logLik
#' @export
logLik.kme_density <- function(object, ...) {
  check_dots(...)
  if (!nrow(known_rows(object$sample))) {
    stop_input("'object' must be a fit to points for a likelihood, not to a ",
               "sketch, which keeps sums over rows and not the rows")
  }
  structure(
    sum(density_log(object, object$sample$x)),
    df = free_numbers(object), nobs = object$n, class = "logLik"
  )
}

# The number of free parameters.
free_numbers <- function(object) {
  d <- ncol(object$means)
  m <- as.double(object$m) # without names
  entries <- d * (d + 1) / 2
  spread <- c(isotropic = m, common = m + entries - 1, full = m * entries)
  as.integer(m - 1 + m * d + spread[[object$shape]])
}

#' @rdname kme_density
#' @importFrom stats AIC coef residuals
#' @export
coef.kme_density <- function(object, ...) {
  check_dots(...)
  cbind(weight = object$weights, named_means(object))
}

named_means <- \(object) as.matrix(named_frame(object$means))

# The mixture on some of the columns, with covariances, in the units of the
# user.
marginal_mixture <- function(object, columns = seq_len(ncol(object$means))) {
  k <- length(columns)
  covariances <- if (is.null(object$covariances)) {
    back <- scaling_back(object$kernel, ncol(object$means))
    outer(crossprod(take_columns(back, columns)), object$variances)
  } else {
    object$covariances[columns, columns, , drop = FALSE]
  }
  new_mixture(object$weights, take_columns(object$means, columns),
              covariances = array(covariances, c(k, k, object$m)))
}

# The standard deviations of the components, in the units of the user, m x d
# matrix.
component_sds <- function(object) {
  q <- marginal_mixture(object)
  sds <- vapply(seq_len(ncol(q$means)), component_sd, numeric(object$m), q = q)
  matrix(sds, object$m)
}

#' @importFrom stats nobs
#' @rdname kme_density
#' @param nsim Number of points to draw.
#' @param seed `NULL`, or a seed, as of [stats::simulate()].
#' @importFrom stats simulate
#' @export
simulate.kme_density <- function(object, nsim = 1, seed = NULL, ...) {
  check_dots(...)
  nsim <- take(nsim, count())
  seed <- take(seed, maybe(count(-.Machine$integer.max)))
  points <- with_seed(seed, draw_density(object, nsim))
  if (!is.null(seed)) {
    attr(points, "seed") <- structure(seed, kind = as.list(RNGkind()))
  }
  points
}

draw_density <- function(object, nsim) {
  d <- ncol(object$means)
  check_memory(nsim, d, "draw fewer points", copies = 4, what = "a sample")
  q <- scale_mixture(object$kernel, object)
  roots <- if (is.null(q$covariances)) {
    lapply(sqrt(q$variances), diag, d)
  } else {
    lapply(components_of(q), \(part) chol(part$cov))
  }
  points <- unscale_points(object$kernel, draw_mixture(q, nsim, roots))
  dimnames(points) <- list(NULL, colnames(object$means))
  points
}

fit_request.kme_density <- function(x, changes) {
  new <- names(changes)
  moved <- "x" %in% new || "data" %in% new && !is.null(x$layout)
  before <- x$arguments
  if ("m" %in% new && !is.character(before$start)) x$arguments$start <- NULL
  if (is.list(changes$start)) x$arguments[c("m", "shape")] <- NULL
  # As long as the points stay the same, the bandwidth that was chosen is kept.
  if (!moved || !is.null(changes$kernel)) x$arguments["bandwidths"] <- NULL
  asked <- fit_request.default(x, changes)
  kept <- attr(asked, "kept")
  if (!moved && !is.null(changes$bandwidths)) {
    asked$x <- sample_input(x$sample, rekernel = TRUE)
    if (is.null(changes$kernel)) {
      asked$kernel <- kernel_for(asked$x, before$kernel, x$sample)
    }
  }
  structure(asked, kept = c(kept, if (!moved && !any(
    c("kernel", "bandwidths") %in% new)) "bandwidths"))
}

# --- print -------------------------------------------------------------------

fit_lines.kme_density <- function(x, digits) {
  c(
    paste0("Density by kernel mean matching, ",
           count_of(x$m, "normal component"),
           if (x$m > 1L) paste0(", ", shape_words[[x$shape]])),
    paste0(describe_sample(x$sample), ", ", x$estimator$label,
           guard_words(x$mean$guard)),
    sample_kernel_lines(x$sample),
    strwrap(c(
      describe_fit(x),
      paste("distance to the kernel mean",
            format_number(sqrt(x$distance2), digits)),
      if (nrow(known_rows(x$sample))) {
        paste("mean log density of the sample",
              format_number(mean(density_log(x, x$sample$x)), digits))
      }
    ), 80L, exdent = 2L)
  )
}

# Lines of print() on what was optimized, and on what was decided by the points
# held out.
describe_fit <- function(object) {
  start <- object$arguments$start
  steps <- object$steps
  sizes <- object$sizes
  looks <- object$path$heldout
  c(
    paste0(
      if (is.list(start)) "given start" else "start by k-means",
      if (is.numeric(steps)) {
        paste(" and", count_of(steps, "step"), "of all parameters")
      } else {
        weight_words[2 * (if (identical(steps, "start")) 0 else
          object$toward) + 1]
      }
    ),
    if (!is.null(sizes)) {
      paste0("chosen by points held out: ", count_of(object$m, "component"),
             " of up to ", max(sizes$m), if (object$widen > 1) {
               paste0(", variances times ", format_number(object$widen))
             }, ", log density ",
             format_number(sizes$log_density[sizes$chosen]))
    },
    if (!is.null(object$heldout)) {
      score <- if (is.null(looks)) min(object$bandwidths$heldout) else
        looks[stop_row(object)]
      paste0("decided by ", count_of(length(object$heldout), "point"),
             " held out: log density ", format_number(-score))
    }
  )
}

# Words for how far the weights are moved to the optimal ones: not at all, half
# of the way or all of it.
weight_words <- c(", its own weights",
                  ", weights half of the way to the optimal ones",
                  ", optimal weights")

# The row of the path where the fit stopped.
stop_row <- function(object) match(format(object$steps), object$path$step)

fit_summary.kme_density <- function(x) {
  components <- fit_rows(x)[order(-x$weights), ]
  c(list(components = components), if (nrow(known_rows(x$sample))) {
    likelihood <- logLik(x)
    list(likelihood = paste(
      "log-likelihood", format_number(c(likelihood)), "on",
      attr(likelihood, "df"), "degrees of freedom"
    ))
  })
}

fit_rows.kme_density <- function(x, ...) {
  check_dots(...)
  columns <- colnames(named_means(x))
  numbers <- cbind(x$means, component_sds(x))
  colnames(numbers) <- if (length(columns) == 1L) c("mean", "sd") else
    c(paste0("mean.", columns), paste0("sd.", columns))
  data.frame(component = seq_len(x$m), weight = x$weights, numbers,
             check.names = FALSE, row.names = NULL)
}

fit_facts.kme_density <- function(x) {
  c(list(
    nobs = x$n, m = x$m, shape = one_word(x$shape),
    logLik = if (nrow(known_rows(x$sample))) as.numeric(logLik(x)),
    df = free_numbers(x), objective = x$objective,
    distance = sqrt(x$distance2), estimator = x$estimator$name
  ), kernel_columns(x$kernel))
}

fit_values.kme_density <- function(x, newdata = NULL) {
  data.frame(.density = unname(predict(x, newdata)))
}

fit_frame.kme_density <- \(x) fit_rows(x)

fit_picture.kme_density <- function(object, type = NULL, columns = NULL,
                                    n = 200, breaks = NULL) {
  if (check_type(type, c("density", "path")) == "path") {
    return(picture_path(object))
  }
  n <- take(n, count(2L))
  x <- known_rows(object$sample)
  columns <- if (is.null(columns)) {
    seq_len(min(2L, ncol(x)))
  } else {
    labels <- colnames(x) %||% seq_len(ncol(x))
    check_pick(columns, labels, "columns", 1:2)
  }
  marginal <- c(list(x = take_columns(x, columns)),
                marginal_mixture(object, columns))
  title <- paste("Density matched to the", object$estimator$label)
  if (length(columns) == 1L) {
    picture_density_curve(marginal, n, title, breaks)
  } else {
    picture_density_contours(marginal, n, title)
  }
}

# The densities of components, times their weights, at the points z of one or
# two columns, points x m matrix.
component_values <- function(q, z) {
  values <- vapply(components_of(q), \(part) {
    part$weight * exp(component_log(part, z))
  }, numeric(nrow(z)))
  matrix(values, nrow(z))
}

component_sd <- function(q, column) sqrt(q$covariances[column, column, ])

picture_density_curve <- function(q, n, title, breaks) {
  x <- drop(q$x)
  rows <- length(x) > 0L
  sd <- component_sd(q, 1L)
  ends <- range(if (rows) padded_range(x), q$means - 2 * sd, q$means + 2 * sd)
  z <- seq(ends[1L], ends[2L], length.out = n)
  each <- component_values(q, matrix(z))
  value <- rowSums(each)
  bars <- if (rows) {
    breaks <- breaks %||% min(grDevices::nclass.FD(x), n)
    graphics::hist(x, breaks, plot = FALSE)
  }
  several <- ncol(each) > 1L
  labels <- c("density", if (several) "components")
  colors <- c("#0072B2", "#56B4E9")[seq_along(labels)]
  new_picture(
    title, axis_names(q$x), "Density",
    list(
      if (rows) histogram_layer(bars, FALSE, "grey80", "white"),
      if (several) new_layer("line", x = rep(c(z, NA), ncol(each)),
                             y = as.vector(rbind(each, NA)),
                             col = colors[2L],
                             level = labels[2L]),
      new_layer("line", x = z, y = value, level = labels[1L],
                lwd = 2, col = colors[1L]),
      if (rows) new_layer("rug", x = x)
    ),
    data.frame(z = z, density = value), xlim = ends,
    ylim = c(0, max(bars$density, value)),
    key = key_entries(labels, colors, "line", lwd = 2:1)[seq_along(labels), ]
  )
}

picture_density_contours <- function(q, n, title) {
  # surface_of() pads the range that it is given.
  frame <- vapply(1:2, \(j) {
    sd <- component_sd(q, j)
    range(q$x[, j], q$means[, j] - sd, q$means[, j] + sd)
  }, numeric(2))
  surface <- surface_of(\(z) rowSums(component_values(q, z)), frame, n)
  angle <- seq(0, 2 * pi, length.out = 100)
  circle <- rbind(cos(angle), sin(angle))
  ellipses <- lapply(seq_along(q$weights), \(j) {
    line <- t(chol(q$covariances[, , j])) %*% circle + q$means[j, ]
    new_layer("line", x = line[1L, ], y = line[2L, ],
              col = accent, lwd = 0.5 + 2 * q$weights[j] / max(q$weights))
  })
  centers <- new_layer("points", x = q$means[, 1L], y = q$means[, 2L],
                       pch = 3, col = accent, bg = accent)
  picture_surface(title, q$x, surface, "density", c(ellipses, list(centers)))
}

picture_path <- function(object) {
  path <- object$path
  if (is.null(path)) {
    stop_input("'type' must not be \"path\" unless the fit has optimize = ",
               "\"all\"")
  }
  heldout <- !is.null(path$heldout)
  value <- if (heldout) -path$heldout else path$objective
  step <- suppressWarnings(as.numeric(path$step))
  step[is.na(step)] <- 0
  at <- stop_row(object)
  # If the descent began at the optimal weights, the line begins there, too,
  # since no step of the descent leads to them from the start.
  line <- path$step != "start" | !"weights" %in% path$step
  labels <- c("start", "returned")
  new_picture(
    "Where the fit stopped", "steps",
    if (heldout) "held-out log density" else "J",
    list(
      across_layer(h = value[1L], level = labels[1L]),
      new_layer("line", x = step[line], y = value[line], lwd = 2,
                main = TRUE),
      mark_layer(step[at], value[at], labels[2L])
    ),
    path, ylim = range(value), whole = "x",
    key = rbind(key_entries(labels[1L], "grey40", "line", lty = 2L),
                key_entries(labels[2L], accent))
  )
}

# Methods of kme_density().

#' @rdname kme_density
#' @param object A fit.
#' @param newdata New points, with the columns of `x`, matched by name where
#'   both have names; without it, the sample.
#' @param type `"density"`, or `"log"` for its logarithm.
#' @export
predict.kme_density <- function(object, newdata, type = c("density", "log"),
                                ...) {
  check_dots(...)
  type <- check_choice(type, c("density", "log"), "type")
  new <- if (missing(newdata)) {
    density_points(object$sample)
  } else {
    sample_newdata(object$sample, newdata, object$terms)
  }
  value <- density_log(object, new$z)
  stats::setNames(if (type == "log") value else exp(value), new$names)
}

# The points of the sample as new ones, where there are rows.
density_points <- function(sample) UseMethod("density_points")
density_points.kernmean_sample <- \(sample) own_points(sample)

# The log density, in the units of the user, at points in those of the kernel,
# with the weights and components of `q`.
density_log <- function(object, z, q = object) {
  q <- kernel_mixture(q, object$kernel)
  mixture_log(q, z) + log_jacobian(object$kernel)
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

# Weights, means, and the covariances of the shape.
free_numbers <- function(object) {
  d <- ncol(object$means)
  m <- as.double(object$m) # without names
  matrix <- d * (d + 1) / 2
  spread <- c(isotropic = m, common = m + matrix - 1, full = m * matrix)
  as.integer(m - 1 + m * d + spread[[object$shape]])
}

#' @importFrom stats AIC
#' @rdname kme_density
#' @importFrom stats coef
#' @export
coef.kme_density <- function(object, ...) {
  check_dots(...)
  cbind(weight = object$weights, named_means(object))
}

named_means <- function(object) {
  means <- object$means
  if (is.null(colnames(means))) {
    colnames(means) <- if (ncol(means) == 1L) "x" else
      paste0("x", seq_len(ncol(means)))
  }
  means
}

# The mixture on some of the columns, in the units of the user: list(weights,
# means: m x k, covariances: k x k x m).
marginal_mixture <- function(object, columns = seq_len(ncol(object$means))) {
  k <- length(columns)
  covariances <- if (is.null(object$covariances)) {
    back <- scaling_back(object$kernel, ncol(object$means))
    outer(crossprod(back[, columns, drop = FALSE]), object$variances)
  } else {
    object$covariances[columns, columns, , drop = FALSE]
  }
  list(weights = object$weights, means = object$means[, columns, drop = FALSE],
       covariances = array(covariances, c(k, k, object$m)))
}

# The standard deviations of the components, in the units of the user: m x d.
component_sds <- function(object) {
  d <- ncol(object$means)
  if (is.null(object$covariances)) {
    back <- scaling_back(object$kernel, d)
    return(sqrt(outer(object$variances, colSums(back^2))))
  }
  variances <- apply(object$covariances, 3L, \(s) diag(matrix(s, d)))
  sqrt(t(matrix(variances, d)))
}

# The share of the density beyond the range of the sample, for each column.
share_outside <- function(object) {
  x <- known_rows(object$sample)
  if (!nrow(x)) {
    return(NULL)
  }
  sd <- component_sds(object)
  shares <- vapply(seq_len(ncol(x)), \(l) {
    above <- stats::pnorm(max(x[, l]), object$means[, l], sd[, l],
                          lower.tail = FALSE)
    below <- stats::pnorm(min(x[, l]), object$means[, l], sd[, l])
    sum(object$weights * (below + above))
  }, numeric(1))
  stats::setNames(shares, colnames(named_means(object)))
}

#' @importFrom stats nobs
#' @rdname kme_density
#' @param nsim Number of points to draw.
#' @param seed `NULL`, or what [set.seed()] is called with first; the state of
#'   the generator is then put back, and the attribute `"seed"` of the points
#'   holds it, as in [stats::simulate()].
#' @importFrom stats simulate
#' @export
simulate.kme_density <- function(object, nsim = 1, seed = NULL, ...) {
  check_dots(...)
  nsim <- check_count(nsim, "nsim")
  if (!is.null(seed)) {
    check_count(seed, "seed", -.Machine$integer.max)
    if (!exists(".Random.seed", globalenv(), inherits = FALSE)) stats::runif(1L)
    state <- get(".Random.seed", globalenv(), inherits = FALSE)
    on.exit(assign(".Random.seed", state, globalenv()))
    set.seed(seed)
  }
  d <- ncol(object$means)
  check_memory(nsim, d, "draw fewer points", copies = 4, what = "a sample")
  which <- sample.int(object$m, nsim, replace = TRUE, prob = object$weights)
  noise <- matrix(stats::rnorm(as.double(nsim) * d), nsim)
  q <- kernel_mixture(object, object$kernel)
  if (is.null(q$covariances)) {
    noise <- sqrt(q$variances[which]) * noise
  } else {
    for (j in unique(which)) {
      noise[which == j, ] <- noise[which == j, , drop = FALSE] %*%
        chol(component(q, j)$cov)
    }
  }
  points <- unscale_points(object$kernel, q$means[which, , drop = FALSE] +
                             noise)
  dimnames(points) <- if (!is.null(colnames(object$means))) {
    list(NULL, colnames(object$means))
  }
  if (!is.null(seed)) {
    attr(points, "seed") <- structure(seed, kind = as.list(RNGkind()))
  }
  points
}

fit_request.kme_density <- function(x, changes) {
  new <- names(changes)
  moved <- "x" %in% new || "data" %in% new && !is.null(x$terms)
  stored <- x$arguments
  if ("m" %in% new && !is.character(stored$start)) x$arguments$start <- NULL
  if (!is.null(changes$start) && !is.character(changes$start)) {
    x$arguments[c("m", "shape")] <- NULL
  }
  fitted <- inherits(stored$estimator, "kme") && !"estimator" %in% new
  if (fitted && moved) {
    stop_input("'estimator' must be given with new points, as that of the fit ",
               "is a fit on the old ones")
  }
  # On the same points the bandwidth that was chosen stays.
  if (!moved || brings_kernel(changes$x) || !is.null(changes$kernel)) {
    x$arguments["bandwidths"] <- NULL
  }
  asked <- fit_request.default(x, changes)
  kept <- attr(asked, "kept")
  if (!moved && !is.null(changes$bandwidths)) {
    asked$x <- sample_input(x$sample, rekernel = TRUE)
    if (is.null(changes$kernel)) {
      asked$kernel <- kernel_for(asked$x, stored$kernel, x$sample)
    }
  }
  if (fitted && is.null(changes$kernel) ||
        inherits(changes$estimator, "kme")) {
    asked$kernel <- NULL
  }
  if (inherits(asked$estimator, "kme")) asked$scale <- NULL
  # Nothing is left to decide.
  weights <- !identical(asked$optimize, "all")
  if ((weights || !is.null(asked$steps)) && is.numeric(asked$m) &&
        is.null(asked$bandwidths) && !"validate" %in% new) {
    asked$validate <- NULL
  }
  structure(asked, kept = c(kept, if (!moved && !any(
    c("kernel", "bandwidths") %in% new)) "bandwidths"))
}

# --- print -------------------------------------------------------------------

fit_lines.kme_density <- function(x, digits) {
  number <- \(value) format(value, digits = digits)
  c(
    paste0("Density by kernel mean matching, ",
           count_of(x$m, "normal component"),
           if (x$m > 1L) paste0(", ", shape_words[[x$shape]])),
    paste0(describe_sample(x$sample), ", ", x$estimator$label),
    kernel_lines(x$kernel), sample_note(x$sample),
    strwrap(c(
      describe_fit(x),
      paste0("distance to the kernel mean ", number(sqrt(x$distance2)),
             ", at the start ", number(sqrt(start_distance2(x)))),
      describe_density(x$sample, x, number)
    ), 80L, exdent = 2L)
  )
}

describe_density <- function(sample, object, number) {
  UseMethod("describe_density")
}
describe_density.kernmean_sample <- function(sample, object, number) {
  mean_at <- \(...) number(mean(density_log(object, sample$x, ...)))
  paste0("mean log density of the sample ", mean_at(), ", at the start ",
         mean_at(object$start))
}

start_distance2 <- function(object) {
  max(0, object$mean$norm2 + object$start$objective)
}

# What was optimized, and what the points held out decided.
describe_fit <- function(object) {
  given <- object$arguments$start
  clusters <- is.null(given) || is.character(given)
  begun <- if (clusters) "k-means" else "the given start"
  steps <- object$steps
  what <- if (identical(steps, "start")) {
    paste("the start itself,", begun)
  } else if (!is.null(object$arguments$steps)) {
    paste("all parameters,", count_of(steps, "gradient step"), "from",
          if (clusters) "the clusters" else begun)
  } else if (is.null(steps) || identical(steps, "weights")) {
    paste(if (object$shape == "isotropic") "means and variances of" else
      "means and covariances of", begun, "and", describe_weights(object))
  } else {
    paste0("all parameters, ", count_of(steps, "step"), " from ", begun,
           if (!is.character(given)) " and optimal weights")
  }
  empty <- sum(object$weights < 1e-8)
  c(
    paste0(what, if (empty > 0L) paste0(" (", empty, " of ", object$m, " 0)")),
    if (!is.null(object$sizes)) describe_sizes(object),
    if (!is.null(object$heldout)) describe_heldout(object)
  )
}

describe_weights <- function(object) {
  if (object$toward == 1) {
    "optimal weights"
  } else if (object$toward == 0) {
    "its shares as weights"
  } else {
    paste0("weights ", format_number(100 * object$toward),
           "% of the way from its shares to the optimal ones")
  }
}

describe_sizes <- function(object) {
  sizes <- object$sizes
  tried <- unique(sizes$m)
  paste0(
    "chosen by points held out: ", count_of(object$m, "component"), " of ",
    if (length(tried) > 1L) paste(min(tried), "to") else "", " ", max(tried),
    ", ", if (object$widen > 1) {
      paste0("variances times ", format_number(object$widen), ", ")
    }, "log density ", format_number(sizes$log_density[sizes$chosen])
  )
}

describe_heldout <- function(object) {
  path <- object$path
  score <- if (is.null(path$heldout)) {
    min(object$bandwidths$heldout)
  } else {
    path$heldout[stop_row(object)]
  }
  paste0(
    "decided by ", count_of(length(object$heldout), "point"),
    " held out: log density ", format_number(-score),
    if (!is.null(path$heldout)) {
      paste0(" (start ", format_number(-path$heldout[1L]), ")")
    }
  )
}

# The row of the path where the fit stopped.
stop_row <- function(object) match(format(object$steps), object$path$step)

fit_summary.kme_density <- function(x) {
  order <- order(-x$weights)
  means <- named_means(x)
  sds <- component_sds(x)
  colnames(sds) <- paste("sd", colnames(means))
  # One number where it is the same in all columns.
  if (all(sds == sds[, 1L])) sds <- cbind(sd = sds[, 1L])
  components <- data.frame(weight = x$weights, means, sds,
                           check.names = FALSE)[order, ]
  rownames(components) <- seq_len(x$m)
  outside <- share_outside(x)
  likelihood <- if (!is.null(outside)) logLik(x)
  c(
    list(components = structure(components, title = paste0(
      "Components: weight, means, standard deviation",
      if (ncol(sds) > 1L) "s"
    ))),
    if (!is.null(outside)) list(
      likelihood = paste0("log-likelihood ", format_number(c(likelihood)),
                          " on ", attr(likelihood, "df"),
                          " degrees of freedom"),
      outside = structure(outside, title = paste(
        "Share of the density beyond the range of the data"
      ))
    )
  )
}

fit_rows.kme_density <- function(x, ...) {
  check_dots(...)
  columns <- names(named_frame(x$means))
  each <- \(values, what) {
    colnames(values) <- if (ncol(values) == 1L) what else
      paste0(what, ".", columns)
    values
  }
  data.frame(
    component = seq_len(x$m), weight = x$weights, each(x$means, "mean"),
    each(component_sds(x), "sd"), check.names = FALSE, row.names = NULL
  )
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
  value <- if (is.null(newdata)) predict(x) else predict(x, newdata)
  data.frame(.density = unname(value))
}

#' @export
as.data.frame.kme_density <- function(x, row.names = NULL, optional = FALSE,
                                      ...) {
  check_dots(...)
  name_frame(fit_rows(x), row.names)
}

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
  z <- if (missing(newdata)) object$x else read_newdata(object, newdata)
  value <- mixture_log(object, z)
  stats::setNames(if (type == "log") value else exp(value), rownames(z))
}

#' @importFrom stats logLik
#' @export
logLik.kme_density <- function(object, ...) {
  structure(
    sum(mixture_log(object, object$x)),
    df = object$m * (ncol(object$x) + 2L) - 1L, nobs = object$n,
    class = "logLik"
  )
}

#' @importFrom stats nobs
#' @export
nobs.kme_density <- function(object, ...) object$n

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
  d <- ncol(object$x)
  component <- sample.int(object$m, nsim, replace = TRUE, prob = object$weights)
  noise <- matrix(stats::rnorm(nsim * d), nsim)
  points <- object$means[component, , drop = FALSE] +
    sqrt(object$variances[component]) * noise
  colnames(points) <- colnames(object$x)
  if (!is.null(seed)) {
    attr(points, "seed") <- structure(seed, kind = as.list(RNGkind()))
  }
  points
}

#' @rdname kme_density
#' @export
update.kme_density <- function(object, ...) {
  found <- change_arguments(object, list(...))
  changes <- found$changes
  arguments <- found$arguments
  if ("m" %in% names(changes)) arguments$start <- NULL
  if (!is.null(changes$start)) arguments$m <- NULL
  fitted <- inherits(arguments$estimator, "kme") &&
    !"estimator" %in% names(changes)
  if (fitted && !found$same_columns) {
    stop_input("'estimator' must be given with new points, as that of the fit ",
               "is a fit on the old ones")
  }
  if (fitted && is.null(changes$kernel)) arguments["kernel"] <- NULL
  if (inherits(changes$estimator, "kme")) arguments["kernel"] <- NULL
  arguments <- merge_changes(arguments, changes)
  # Nothing is left to decide.
  if (identical(arguments$optimize, "weights") &&
        !identical(arguments$kernel$bandwidth, "validate") &&
        !"validate" %in% names(changes)) {
    arguments$validate <- NULL
  }
  fit <- do.call(kme_density.default, arguments)
  if (found$same_columns) {
    fit$terms <- object$terms
  }
  fit
}

# --- print -------------------------------------------------------------------

#' @rdname kme_density
#' @param digits Significant digits.
#' @export
print.kme_density <- function(x, digits = max(3L, getOption("digits") - 3L),
                              ...) {
  number <- \(value) format(value, digits = digits)
  cat("Density by kernel mean matching, ", x$m, " normal component",
      if (x$m > 1L) "s", "\n", sep = "")
  cat(describe_sample(x), ", ", estimator_names[[x$estimator]], "\n", sep = "")
  cat(strwrap(c(
    format_kernel(x$kernel), describe_fit(x),
    paste0("distance to the kernel mean ", number(sqrt(x$distance2)),
           ", at the start ", number(sqrt(start_distance2(x)))),
    paste0("mean log density of the sample ", number(mean(mixture_log(x, x$x))),
           ", at the start ", number(mean(mixture_log(x$start, x$x))))
  ), 80L, exdent = 2L), sep = "\n")
  invisible(x)
}

start_distance2 <- function(object) {
  max(0, object$mean$norm2 + object$start$objective)
}

# What was optimised, and what the points held out decided.
describe_fit <- function(object) {
  begun <- if (is.null(object$arguments$start)) "k-means" else "the given start"
  steps <- object$steps
  what <- if (identical(steps, "start")) {
    paste("the start itself,", begun)
  } else if (is.null(steps) || identical(steps, "weights")) {
    paste("means and variances of", begun, "and optimal weights")
  } else {
    paste("all parameters,", steps, if (steps == 1L) "step" else "steps",
          "from", begun, "and optimal weights")
  }
  empty <- sum(object$weights < 1e-8)
  c(
    paste0(what, if (empty > 0L) paste0(" (", empty, " of ", object$m, " 0)")),
    if (!is.null(object$heldout)) describe_heldout(object)
  )
}

describe_heldout <- function(object) {
  count <- length(object$heldout)
  path <- object$path
  score <- if (is.null(path)) {
    min(object$bandwidths$heldout)
  } else {
    path$heldout[stop_row(object)]
  }
  paste0(
    "decided by ", count, if (count == 1L) " point" else " points",
    " held out: log density ", format_number(-score),
    if (!is.null(path)) paste0(" (start ", format_number(-path$heldout[1L]),
                               ")")
  )
}

# The row of the path where the fit stopped.
stop_row <- function(object) match(format(object$steps), object$path$step)

#' @rdname kme_density
#' @export
summary.kme_density <- function(object, ...) {
  check_dots(...)
  order <- order(-object$weights)
  means <- object$means
  if (is.null(colnames(means))) {
    colnames(means) <- if (ncol(means) == 1L) "x" else
      paste0("x", seq_len(ncol(means)))
  }
  components <- data.frame(
    weight = object$weights, sd = sqrt(object$variances), means,
    check.names = FALSE
  )[order, ]
  rownames(components) <- seq_len(object$m)
  structure(list(fit = object, components = components),
            class = "summary.kme_density")
}

most_columns_shown <- 5L

#' @export
print.summary.kme_density <- function(x, digits = max(3L, getOption("digits") -
                                                        3L), ...) {
  print(x$fit, digits = digits)
  more <- ncol(x$components) - 2L - most_columns_shown
  shown <- x$components[seq_len(min(ncol(x$components),
                                    2L + most_columns_shown))]
  cat("\nComponents: weight, standard deviation, means",
      if (more > 0L) paste0(" (", more, " more columns in its field means)"),
      "\n", sep = "")
  print(shown, digits = digits)
  likelihood <- logLik(x$fit)
  cat("\nlog-likelihood ", format(c(likelihood), digits = digits), " on ",
      attr(likelihood, "df"), " degrees of freedom\n", sep = "")
  invisible(x)
}

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
    own_points(object$sample)
  } else {
    sample_newdata(object$sample, newdata, object$terms)
  }
  value <- mixture_log(object, new$z)
  stats::setNames(if (type == "log") value else exp(value), new$names)
}

#' @importFrom stats logLik
#' @export
logLik.kme_density <- function(object, ...) {
  check_dots(...)
  structure(
    sum(mixture_log(object, object$sample$x)),
    df = object$m * (ncol(object$means) + 2L) - 1L, nobs = object$n,
    class = "logLik"
  )
}

#' @importFrom stats nobs
#' @export
nobs.kme_density <- function(object, ...) {
  check_dots(...)
  object$n
}

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
  component <- sample.int(object$m, nsim, replace = TRUE, prob = object$weights)
  noise <- matrix(stats::rnorm(nsim * d), nsim)
  points <- object$means[component, , drop = FALSE] +
    sqrt(object$variances[component]) * noise
  colnames(points) <- colnames(object$means)
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
  moved <- "x" %in% names(changes)
  fitted <- inherits(arguments$estimator, "kme") &&
    !"estimator" %in% names(changes)
  if (fitted && moved) {
    stop_input("'estimator' must be given with new points, as that of the fit ",
               "is a fit on the old ones")
  }
  # On the same points the bandwidth that was chosen stays.
  if (!moved || brings_kernel(changes$x) || !is.null(changes$kernel)) {
    arguments["bandwidths"] <- NULL
  }
  if (!moved && !is.null(changes$bandwidths)) {
    arguments$x <- sample_input(object$sample, rekernel = TRUE)
    arguments["kernel"] <- list(
      kernel_for(arguments$x, object$arguments$kernel, object$sample)
    )
  }
  if (fitted && is.null(changes$kernel) ||
        inherits(changes$estimator, "kme")) {
    arguments["kernel"] <- NULL
  }
  arguments <- merge_changes(arguments, changes)
  # Nothing is left to decide.
  if (identical(arguments$optimize, "weights") &&
        is.null(arguments$bandwidths) && !"validate" %in% names(changes)) {
    arguments$validate <- NULL
  }
  found$arguments <- arguments
  fit <- refit(kme_density.default, object, found)
  if (!moved && !any(c("kernel", "bandwidths") %in% names(changes))) {
    fit$arguments["bandwidths"] <- list(object$arguments$bandwidths)
  }
  fit
}

# --- print -------------------------------------------------------------------

#' @rdname kme_density
#' @param digits Significant digits.
#' @export
print.kme_density <- function(x, digits = digits_shown(), ...) {
  number <- \(value) format(value, digits = digits)
  points <- x$sample$x
  say(
    paste0("Density by kernel mean matching, ",
           count_of(x$m, "normal component")),
    paste0(describe_sample(x$sample), ", ", x$estimator$label),
    kernel_lines(x$kernel),
    strwrap(c(
      describe_fit(x),
      paste0("distance to the kernel mean ", number(sqrt(x$distance2)),
             ", at the start ", number(sqrt(start_distance2(x)))),
      paste0("mean log density of the sample ",
             number(mean(mixture_log(x, points))), ", at the start ",
             number(mean(mixture_log(x$start, points))))
    ), 80L, exdent = 2L)
  )
  invisible(x)
}

start_distance2 <- function(object) {
  max(0, object$mean$norm2 + object$start$objective)
}

# What was optimized, and what the points held out decided.
describe_fit <- function(object) {
  begun <- if (is.null(object$arguments$start)) "k-means" else "the given start"
  steps <- object$steps
  what <- if (identical(steps, "start")) {
    paste("the start itself,", begun)
  } else if (is.null(steps) || identical(steps, "weights")) {
    paste("means and variances of", begun, "and optimal weights")
  } else {
    paste("all parameters,", count_of(steps, "step"), "from", begun,
          "and optimal weights")
  }
  empty <- sum(object$weights < 1e-8)
  c(
    paste0(what, if (empty > 0L) paste0(" (", empty, " of ", object$m, " 0)")),
    if (!is.null(object$heldout)) describe_heldout(object)
  )
}

describe_heldout <- function(object) {
  path <- object$path
  score <- if (is.null(path)) {
    min(object$bandwidths$heldout)
  } else {
    path$heldout[stop_row(object)]
  }
  paste0(
    "decided by ", count_of(length(object$heldout), "point"),
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
print.summary.kme_density <- function(x, digits = digits_shown(), ...) {
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

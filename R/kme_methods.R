# What a fit of kme() can do.

#' @export
coef.kme <- function(object, ...) {
  check_dots(...)
  object$weights
}

#' @rdname kme
#' @param object A fit.
#' @param newdata New points, with the columns of `x`, matched by name where
#'   both have names; without it, the embedding at the points of the sample.
#' @export
predict.kme <- function(object, newdata, ...) {
  check_dots(...)
  if (missing(newdata)) {
    return(stats::setNames(object$fitted, sample_names(object$sample)))
  }
  new <- sample_newdata(object$sample, newdata, object$terms)
  value <- parts_at(merge_parts(embedding_parts(object)), object$kernel, new)
  stats::setNames(value, new$names)
}

#' @rdname kme
#' @export
update.kme <- function(object, ...) {
  found <- change_arguments(object, list(...))
  own <- names(found$changes) %in% c("estimator", registered_arguments())
  mine <- found$changes[own]
  found$changes <- found$changes[!own]
  if (!"estimator" %in% names(mine)) {
    found$arguments["weights"] <- list(object$sample$weights)
  }
  found$arguments$estimator <- change_estimator(object$estimator, mine)
  refit(kme.default, object, found)
}

# What update() of a fit with sample, terms and arguments goes by: list(changes,
# arguments with the points of the fit unless they change, same_columns).
change_arguments <- function(object, changes) {
  check_changes(changes)
  arguments <- object$arguments
  sample <- object$sample
  same_columns <- !"x" %in% names(changes)
  if ("data" %in% names(changes) && !is.null(object$terms)) {
    changes$x <- read_terms(object$terms, changes$data, "data")
    changes$data <- NULL
  }
  if ("x" %in% names(changes)) {
    arguments["kernel"] <- list(
      kernel_for(changes$x, arguments$kernel, sample)
    )
  } else {
    arguments$x <- sample_input(
      sample, any(c("kernel", "scale") %in% names(changes))
    )
    # In other units the bandwidth is another.
    if (!"scale" %in% names(changes)) {
      arguments["kernel"] <- list(sample_kernel(sample))
    } else if (stores_gram(sample)) {
      arguments$kernel <- open_kernel(sample$kernel)
    }
    if ("kernel" %in% names(changes) && !"scale" %in% names(changes)) {
      changes["kernel"] <- list(keep_units(changes$kernel, sample))
    }
  }
  if (brings_kernel(if (same_columns) arguments$x else changes$x) ||
        is_scaled(changes$kernel)) {
    arguments["scale"] <- NULL
  }
  list(changes = changes, arguments = arguments, same_columns = same_columns)
}

# The fit of a door to what change_arguments() found, with what was asked for: a
# bandwidth that was chosen is taken over with its points, and chosen anew with
# others.
refit <- function(door, object, found) {
  arguments <- merge_changes(found$arguments, found$changes)
  if (!found$same_columns) {
    return(do.call(door, arguments))
  }
  fit <- without_warning("units", do.call(door, arguments))
  if (!is.null(object$terms)) fit$terms <- object$terms
  kept <- if (!"kernel" %in% names(found$changes)) c("kernel", "scale")
  for (name in setdiff(kept, names(found$changes))) {
    fit$arguments[name] <- list(object$arguments[[name]])
  }
  fit
}

# The changes over the arguments of a fit.
merge_changes <- function(arguments, changes) {
  arguments[names(changes)] <- changes
  arguments[!vapply(arguments, is.null, logical(1))]
}

check_changes <- function(changes) {
  if (inherits(changes[1L][[1L]], "formula") || "formula" %in% names(changes)) {
    stop_input("update() keeps the formula of a fit; a new formula takes a ",
               "new call")
  }
  if (length(changes) && (is.null(names(changes)) ||
                            !all(nzchar(names(changes))))) {
    stop_input("the arguments of update() must be named")
  }
}

mean_title <- function(object) {
  if (is.null(object$sample$weights)) {
    estimator_title(object$estimator)
  } else {
    "Kernel mean with given weights"
  }
}

# "kernel mean, simple shrinkage (S-KMSE), lambda = 0.12": a mean that centers.
describe_mean <- function(object, digits) {
  title <- mean_title(object)
  paste0(
    tolower(substr(title, 1L, 1L)), substring(title, 2L),
    if ("lambda" %in% names(object$estimator)) {
      paste0(", lambda = ", format(object$lambda, digits = digits))
    } else if (!is.null(object$h)) {
      paste0(", h = ", format(object$h, digits = digits), ", c = ",
             format(object$c, digits = digits))
    }
  )
}

#' @rdname kme
#' @param digits Significant digits.
#' @export
print.kme <- function(x, digits = digits_shown(), ...) {
  say(
    mean_title(x), describe_sample(x$sample), kernel_lines(x$kernel),
    sample_note(x$sample),
    est_lines(x$estimator, x, digits),
    paste0("squared norm ", format(x$norm2, digits = digits),
           if (!is.null(x$sample$weights) || !is.null(x$candidates)) {
             paste0(", sum of weights ", format(sum(x$weights),
                                                digits = digits))
           })
  )
  invisible(x)
}

#' @rdname kme
#' @export
summary.kme <- function(object, ...) {
  check_dots(...)
  structure(list(fit = object), class = "summary.kme")
}

#' @export
print.summary.kme <- function(x, digits = digits_shown(), ...) {
  fit <- x$fit
  print(fit, digits = digits)
  cat("rho = |KME|^2 = ", format(fit$rho, digits = digits),
      ", varrho = mean k(x, x) = ", format(fit$varrho, digits = digits),
      "\n", sep = "")
  if (!is.null(fit$noise)) {
    cat("\nNoise (variances):\n")
    print(fit$noise, digits = digits)
    return(invisible(x))
  }
  if (!is.null(fit$covariance)) {
    cat("\nNoise (standard deviations):\n")
    print(sqrt(fit$h * diag(fit$covariance)), digits = digits)
    return(invisible(x))
  }
  print_weights(fit, digits)
  invisible(x)
}

# The weights of a summary, in units of 1/n.
print_weights <- function(fit, digits) {
  own <- length(fit$weights) == fit$n
  cat("\nWeights", if (own) " times n" else " on the landmarks", ":\n",
      sep = "")
  print(quantile((if (own) fit$n else 1) * fit$weights), digits = digits)
  cat(sum(fit$weights < 0), " negative; sum ",
      format(sum(fit$weights), digits = digits), "\n", sep = "")
}

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
#' @param interval `TRUE` for a confidence interval at each point, of the plain
#'   kernel mean only, see [confint.kme()]: a matrix with the columns `fit`,
#'   `lower` and `upper`.
#' @param level The probability of each interval.
#' @export
predict.kme <- function(object, newdata, ..., interval = FALSE, level = 0.95) {
  check_dots(...)
  interval <- check_flag(interval, "interval")
  level <- check_confidence(level)
  if (interval) check_plain_mean(object, "an interval")
  if (missing(newdata)) {
    new <- if (interval) own_points(object$sample)
    value <- unname(object$fitted)
    names <- sample_names(object$sample)
  } else {
    new <- sample_newdata(object$sample, newdata, object$terms)
    value <- parts_at(merge_parts(embedding_parts(object)), object$kernel, new)
    names <- new$names
  }
  if (!interval) {
    return(stats::setNames(value, names))
  }
  half <- stats::qnorm((1 + level) / 2) *
    sqrt(section_variance(object$sample, new, value) / object$n)
  check_result(half, "the variance of a kernel value")
  matrix(c(value, value - half, value + half), ncol = 3L,
         dimnames = list(names, c("fit", "lower", "upper")))
}

check_confidence <- function(level) {
  if (!is.numeric(level) || length(level) != 1L || is.na(level) ||
        level <= 0 || level >= 1) {
    stop_input("'level' must be a number between 0 and 1, not ",
               describe(level))
  }
  as.double(level)
}

# Only of the average is it known how far it may be from what it estimates.
check_plain_mean <- function(object, what) {
  if (!is_average(object$estimator)) {
    stop_input("'object' must be the KME for ", what, ", not estimator ",
               estimator_word(object$estimator), ", which is biased by intent ",
               "(print() shows its distance to the KME); update(object, ",
               "estimator = \"kme\") is the KME")
  }
  own <- object$sample$weights
  if (!is.null(own) && max(abs(length(own) * own - 1)) > 1e-8) {
    stop_input("'object' must be a fit without 'weights' for ", what, ": the ",
               "law of a mean with weights of your own is not known")
  }
}

# The variance of k(x_i, z) over the sample, divisor n - 1, at new points, where
# its mean is known.
section_variance <- function(sample, new, mean) {
  UseMethod("section_variance")
}
section_variance.kernmean_sample <- function(sample, new, mean) {
  n <- sample$n
  if (n < 2L) {
    stop_input("'object' must be a fit of at least 2 points for an interval")
  }
  squared <- if (is.null(new$values)) squared_kernel(sample$kernel)
  if (is.null(squared)) {
    return(over_panels(sample, new, \(values, at) {
      rowSums((values - mean[at])^2)
    }) / (n - 1))
  }
  sample$kernel <- squared
  squares <- drop(sample_at(sample, new, rep(1 / n, n)))
  pmax(0, squares - mean^2) * n / (n - 1)
}

# What use(values, rows) makes of the kernel values of new points and the
# sample, some rows at a time: one number for each.
over_panels <- function(sample, new, use) {
  size <- max(1, floor(2^22 / sample$n))
  unlist(lapply(row_panels(seq_len(new$m), size), \(rows) {
    use(sample_cross(sample, new, rows), rows)
  }))
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
    return(do.call(door, arguments, quote = TRUE))
  }
  fit <- without_warning("units", do.call(door, arguments, quote = TRUE))
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

# own: arguments of the doors within that are not for users.
check_changes <- function(changes, own = NULL) {
  if (inherits(changes[1L][[1L]], "formula") || "formula" %in% names(changes)) {
    stop_input("update() keeps the formula of a fit; a new formula takes a ",
               "new call")
  }
  if (length(changes) && (is.null(names(changes)) ||
                            !all(nzchar(names(changes))))) {
    stop_input("the arguments of update() must be named")
  }
  inner <- intersect(own, names(changes))
  if (length(inner)) {
    stop_input("unused argument: '", inner[1L], "'")
  }
  for (name in names(changes)) {
    # As a call of its own it would be evaluated.
    if (is.language(changes[[name]]) && !inherits(changes[[name]], "formula")) {
      stop_input("'", name, "' must be a value, not ",
                 describe(changes[[name]]))
    }
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
  digits <- check_digits(digits)
  say(
    mean_title(x), describe_sample(x$sample), kernel_lines(x$kernel),
    sample_note(x$sample),
    est_lines(x$estimator, x, digits),
    paste0("squared norm ", format(x$norm2, digits = digits),
           distance_words(x, digits),
           if (!is.null(x$sample$weights) || !is.null(x$candidates)) {
             paste0(", sum of weights ", format(sum(x$weights),
                                                digits = digits))
           })
  )
  invisible(x)
}

# ", distance to the KME 0.2" of an estimate that is another one.
distance_words <- function(object, digits) {
  if (!is_average(object$estimator) || !is.null(object$sample$weights)) {
    found <- plain_distance(object)
    paste0(", distance to the KME ", if (found$rounding) "< ",
           format(found$distance, digits = if (found$rounding) 1L else digits))
  }
}

# list(distance: to the plain mean, rounding: is that all that it can be told
# from?): |mu~|^2 - 2 <mu~, mu^> + |mu^|^2, where the inner product is the mean
# of the estimate over the sample.
plain_distance <- function(object) {
  sample <- object$sample
  average <- plain_weights(sample)
  if (identical(weights_on(object, sample), average)) {
    return(list(distance = 0, rounding = FALSE))
  }
  square <- object$norm2 - 2 * sum(average * object$fitted) + object$rho
  least <- 1e-11 * (object$norm2 + object$rho)
  list(distance = sqrt(max(square, least)), rounding = square < least)
}

#' @rdname kme
#' @export
summary.kme <- function(object, ...) {
  check_dots(...)
  structure(list(fit = object), class = "summary.kme")
}

#' @export
print.summary.kme <- function(x, digits = digits_shown(), ...) {
  digits <- check_digits(digits)
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

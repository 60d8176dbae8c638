# The methods of a fit of kme().

#' @export
coef.kme <- function(object, ...) {
  if (...length()) check_dots(...)
  weights <- weights_or_na(object)
  if (anyNA(weights)) {
    stop_input("'object' must be weights on its points, without noise or a ",
               "target of its own; as_weights() has the nearest")
  }
  weights
}

# The weights of an estimate that has weights and nothing else, else NA.
weights_or_na <- function(object) {
  weights <- weights_on(object, object$sample)
  weights %||% NA_real_
}

#' @rdname kme
#' @param object A fit.
#' @param newdata New points, with the columns of `x`, matched by name where
#'   both have names; without it, the embedding at the points of the sample.
#'   Values at points with missing values are `NA`.
#' @param interval `TRUE` for a confidence interval at each point, of the plain
#'   kernel mean only, see [confint.kme()]: a matrix with the columns `fit`,
#'   `lower` and `upper`.
#' @param level The probability of each interval.
#' @param method `"betting"` or `"chernoff"`, which hold for every n, for
#'   bounded kernels, or `"normal"`; `NULL`: the first that the fit allows.
#' @export
predict.kme <- function(object, newdata, ..., interval = FALSE, level = 0.95,
                        method = NULL) {
  check_dots(...)
  interval <- take(interval, flag)
  level <- take(level, a_level)
  if (!interval && !is.null(method)) {
    stop_input("'method' must be NULL unless interval = TRUE")
  }
  own <- missing(newdata)
  gaps <- if (!own) predict_gaps(object, newdata, interval = interval,
                                 level = level, method = method)
  if (!is.null(gaps)) return(gaps)
  if (own) {
    new <- if (interval) own_points(object$sample)
    value <- unname(object$fitted)
    names <- sample_names(object$sample)
  } else {
    new <- sample_newdata(object$sample, newdata, object$layout)
    value <- parts_at(merge_parts(embedding_parts(object)), object$kernel, new)
    names <- new$names
  }
  if (!interval) {
    return(stats::setNames(value, names))
  }
  ends <- value_ends(object, new, value, level, method, if (own) TRUE)
  matrix(c(value, ends), ncol = 3L,
         dimnames = list(names, c("fit", "lower", "upper")))
}

fit_request.kme <- function(x, changes) {
  estimates <- names(changes) %in% c("estimator", registered_arguments())
  if (!"estimator" %in% names(changes)) {
    weights <- x$sample$weights
    if (!is.null(weights) && any(c("x", "data") %in% names(changes)) &&
          !"weights" %in% names(changes)) {
      stop_input("'weights' must be given with new data, of which they are")
    }
    x$arguments["weights"] <- list(weights)
  }
  asked <- fit_request.default(x, changes[!estimates])
  asked$estimator <- change_estimator(x$estimator, changes[estimates])
  asked
}

mean_title <- function(object) {
  if (is.null(object$sample$weights)) {
    kind <- object$estimator$kind
    paste0("Kernel mean", if (!is.null(kind)) paste0(", ", kind), " (",
           object$estimator$label, ")")
  } else {
    "Kernel mean with given weights"
  }
}

# The words for a mean that centers, such as "kernel mean, simple shrinkage
# (S-KMSE), lambda = 0.12".
describe_mean <- function(object, digits) {
  title <- mean_title(object)
  paste0(
    tolower(substr(title, 1L, 1L)), substring(title, 2L),
    if ("lambda" %in% names(object$estimator)) {
      paste0(", lambda = ", format(object$lambda, digits = digits))
    } else if (!is.null(object[["h"]])) {
      paste0(", h = ", format(object[["h"]], digits = digits), ", c = ",
             format(object$c, digits = digits))
    },
    guard_words(object$guard)
  )
}

fit_lines.kme <- function(x, digits) {
  c(
    mean_title(x), describe_sample(x$sample), sample_kernel_lines(x$sample),
    est_lines(x$estimator, x, digits),
    paste0("squared norm ", format(x$norm2, digits = digits),
           distance_words(x, digits),
           if (!is.null(x$sample$weights) || !is.null(x$candidates)) {
             paste0(", sum of weights ", format(sum(x$weights),
                                                digits = digits))
           })
  )
}

# ", distance to the KME 0.2" for an estimate that is not the KME.
distance_words <- function(object, digits) {
  if (!is_average(object$estimator) || !is.null(object$sample$weights)) {
    apart <- plain_distance(object)
    paste0(", distance to the KME ", if (apart$rounding) "< ",
           format(apart$distance, digits = if (apart$rounding) 1L else digits))
  }
}

# The distance of the estimate to the plain mean, and `rounding`: is the
# distance no more than rounding? Its square is |mu~|^2 - 2 <mu~, mu^> +
# |mu^|^2, where the inner product is the mean of the estimate over the sample.
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

fit_summary.kme <- function(x) {
  c(
    list(norms = paste0("rho = |KME|^2 = ", format_number(x$rho),
                        ", varrho = mean k(x, x) = ", format_number(x$varrho))),
    if (!is.null(x$harmless)) list(harmless = paste0(
      "no more risk than the average: alpha up to ", format_number(x$harmless),
      " (Theorem 1 of Muandet et al., plug-in)"
    )),
    if (is_each(x$noise)) {
      NULL
    } else if (is.matrix(x$noise)) {
      list("Noise (covariance)" = x$noise)
    } else if (!is.null(x$noise)) {
      list("Noise (variances)" = x$noise)
    } else if (!is.null(x$covariance)) {
      list("Noise (standard deviations)" = sqrt(x$h * diag(x$covariance)))
    } else if (!anyNA(weights_or_na(x))) {
      weights_summary(x)
    }
  )
}

# The parts of a summary on the weights, in units of 1/n.
weights_summary <- function(x) {
  weights <- coef(x)
  of_points <- length(weights) == x$n
  list(
    weights = structure(
      quantile(if (of_points) x$n * weights else weights),
      title = paste("Weights", if (of_points) "times n" else "on the landmarks")
    ),
    signs = paste0(sum(weights < 0), " negative; sum ",
                   format_number(sum(weights)))
  )
}

fit_facts.kme <- function(x) {
  c(list(
    nobs = x$n, estimator = if (is.null(x$sample$weights)) x$estimator$name else
      NA_character_,
    select = one_word(x$select), lambda = x$lambda, alpha = x$alpha,
    noise = x$noise, h = x[["h"]], c = x[["c"]], folds = x$folds,
    score = x$minimum, reference = x$reference, border = isTRUE(x$border),
    guard = x$guard$share, saved = x$guard$saved, norm2 = x$norm2
  ), kernel_columns(x$kernel))
}

fit_rows.kme <- function(x, ...) {
  check_dots(...)
  data.frame(row = point_labels(x$sample), weight = weights_or_na(x))
}

fit_values.kme <- function(x, newdata = NULL) {
  if (is.null(newdata)) {
    data.frame(.weight = weights_or_na(x), .fitted = unname(x$fitted))
  } else {
    data.frame(.fitted = unname(predict(x, newdata)))
  }
}

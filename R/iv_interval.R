# Intervals of coefficients, and an interval of the slope of a straight line
# that holds however weak the instruments are.

#' Intervals of instrumental-variable estimates
#'
#' Intervals of the coefficients of a fit of [rkhs_iv()] (the straight line
#' nearest to g, and the linear controls), or of an average derivative by
#' [kme_effect()].
#'
#' With `linear = Inf` the coefficients and their errors are those of a straight
#' line alone, without the curve that a fit may have beside it. Otherwise they
#' belong to the fit around which `predict(interval = TRUE)` has its intervals,
#' whose penalty is smaller than that of the curve that is shown. The slopes of
#' endogenous columns are those of a least squares of its values of g on these
#' columns and on functions of the exogenous columns (the functions that the
#' strength of the instruments is given, see [rkhs_iv()]); the slopes of
#' exogenous columns are those in what is left. Factors count by the indicators
#' of all levels but the first, as in [stats::lm()]. `"wald"` has 1.96 standard
#' errors to either side (with clusters the quantile of t), which holds where
#' the instruments are strong.
#'
#' `"ar"`, the interval of Anderson and Rubin, holds for instruments of any
#' strength, if g is a straight line in the one endogenous column x. It consists
#' of all \eqn{\beta}{beta} for which the residuals \eqn{r = y - x\beta}{r = y -
#' x beta}, given exogenous columns and controls, are nearly orthogonal to the
#' features of the instruments: \eqn{r'Pr/\sum_i P_{ii} r_i^2}{r'Pr / sum_i P_ii
#' r_i^2} is below the quantile of a gamma law with mean 1 and the variance of
#' the ratio, \eqn{2 \sum w^2 / (\sum w)^2}{2 sum w^2 / (sum w)^2}. Here w are
#' the eigenvalues of \eqn{\sum_i r_i^2 l_i l_i'}{sum_i r_i^2 l_i l_i'}, and
#' \eqn{l_i}{l_i} are the rows of L, \eqn{P = LL'}{P = LL'}; with clusters, the
#' sums of \eqn{r_i l_i}{r_i l_i} over each cluster take their place. The
#' interval is unbounded where the instruments do not rule out any slope, and
#' empty where they rule out every slope; a warning of class
#' `kernmean_warning_interval` says so. Cost: one pass over the rows.
#'
#' @param object A fit of [rkhs_iv()] by method "weak", or an effect of one.
#' @param parm Names or numbers of the coefficients; all by default.
#' @param level The confidence level.
#' @param ... Must be empty.
#' @param method `"wald"` or `"ar"`.
#' @return A matrix with the ends of the intervals, a row for each coefficient;
#'   `"ar"` has one row.
#' @references Anderson, T. W. and Rubin, H. (1949). Estimation of the
#'   parameters of a single equation in a complete system of stochastic
#'   equations. *Annals of Mathematical Statistics* 20, 46-63.
#'   \doi{10.1214/aoms/1177730090}
#' @seealso [glossary]; [rkhs_iv()], [kme_effect()]
#' @examples
#' set.seed(1)
#' n <- 300
#' z <- rbinom(n, 1, 0.5)
#' u <- rnorm(n)
#' x <- z / 2 + u + rnorm(n)
#' fit <- rkhs_iv(x, x + u, z, linear = Inf)
#' coef(fit)
#' rbind(confint(fit, "x"), confint(fit, method = "ar"))
#' @export
confint.rkhs_iv <- function(object, parm, level = 0.95, ...,
                            method = c("wald", "ar")) {
  check_dots(...)
  method <- take(method, choice("wald", "ar"))
  effect <- inherits(object, "kme_effect")
  fit <- if (effect) object$fit else object
  if (is.null(same_version(object)$vcov) || method == "ar" &&
        is_nested_fit(fit)) {
    has_none(fit, "confidence intervals (method = \"weak\" has them)", "object")
  }
  if (method == "wald") {
    return(coefficient_ends(object, if (!missing(parm)) parm, level))
  }
  level <- take(level, number(0, 1, open = TRUE))
  if (effect && object$functional != "derivative") {
    stop_input("'method' must be \"wald\" but for an average derivative")
  }
  ends <- line_interval(fit, level, if (effect) object$cluster)
  names <- names(block_frame(fit, "x"))
  of <- if (effect) {
    names[check_pick(object$arguments$of %||% 1L, names, "of")]
  } else if (!missing(parm)) {
    take(parm, new_kind("a name", is.character))
  }
  if (!all(of %in% rownames(ends))) {
    stop_input("'method' must be \"wald\" for ", quoted(of), ", as \"ar\" is ",
               "of ", quoted(rownames(ends)), " alone")
  }
  if (effect) rownames(ends) <- object$functional
  structure(ends, dimnames = list(rownames(ends), level_names(level)))
}

#' @rdname confint.rkhs_iv
#' @export
confint.kme_effect_iv <- confint.rkhs_iv

# The task of a fit, as one of method "weak", with its maps and, unless the fit
# is nested, the coefficients of the features on the design.
weak_task <- function(fit) {
  asked <- fit$arguments
  task <- with_design(
    fitted_task(fit), asked$controls, read_row_weights(asked$weights, fit$n),
    asked$clusters, c(fit$correct, 0)[1L], c(fit$linear, 0)[1L]
  )
  task$maps <- if (is.null(fit$maps)) make_maps(task) else
    Map(\(map, name) c(map, fit$blocks[[name]]["sample"]), fit$maps,
        task$called)
  if (is_nested_fit(fit)) {
    return(task)
  }
  if (!is.null(fit$error$given)) {
    task <- given_task(task, exogenous_columns(task$blocks))
  }
  task$unit <- block_trace(task, "a") / fit$n
  task$partial <- partial_out(task)
  task
}

# Returns Anderson and Rubin's interval of the slope beta of a straight line in
# the one endogenous column, a matrix of one row. Let r = y - beta x, given
# exogenous columns and controls. The interval has those beta for which r'Pr
# over its mean is not too large by the gamma law with its moments.
line_interval <- function(fit, level, clusters) {
  task <- line_task(fit, clusters)
  unit <- power_below(max(abs(task$y)))
  angles <- ratio_angles(line_sums(task, unit),
                         1 - ncol(task$design) / length(task$y), level)
  counted <- counted_columns(task$blocks[[task$called[["a"]]]])
  per <- drop(product(counted$moves, attr(task$straight, "slopes")))
  column <- which.max(abs(per))
  ends <- sort(unit * per[[column]] * angles$ends)
  said <- if (angles$open) {
    paste0("unbounded: the instruments do not rule out any slope", if (
      length(ends)
    ) paste(" but", paste(format_number(ends), collapse = " to ")))
  } else if (!length(ends)) {
    "empty: the instruments rule out any straight line"
  }
  if (length(said)) {
    warn_kernmean("the Anderson-Rubin interval is ", said, kind = "interval")
  }
  matrix(if (angles$open) c(-Inf, Inf) else if (length(ends)) range(ends) else
    c(NA, NA), 1L, dimnames = list(colnames(counted$values)[column], NULL))
}

# The task of a fit with one endogenous column. Functions of the exogenous
# columns are partialled out.
line_task <- function(fit, clusters) {
  task <- weak_task(fit)
  if (!is.null(clusters)) task$clusters <- factor(clusters)
  columns <- exogenous_columns(task$blocks)
  if (!is.null(columns) && !length(columns$alone)) {
    stop_input("'method' must be \"wald\" without instruments that are no ",
               "regressors")
  }
  if (!is.null(columns) && is.null(task$given)) {
    task <- given_task(task, columns)
  }
  if (ncol(task$straight) != 1L) {
    stop_input("'method' must be \"wald\" but for one endogenous column of ",
               "numbers, or of two levels, not ", ncol(task$straight))
  }
  if (is.null(columns)) with_moments(task) else partialled(task)
}

# r'Pr and its law are polynomials of beta. Their coefficients are these sums
# over rows, or clusters: L'y and L'x, and the products of what each row adds to
# them.
line_sums <- function(task, unit) {
  target <- task_targets(task, seq_along(task$y))
  out <- qr.coef(qr(target[, -1L, drop = FALSE]), target[, 1L])
  added <- if (is.null(task$clusters)) identity else
    \(m) as.matrix(rowSums(m))
  over_rows(task, action_root(task, task$whole, "d"), seq_along(task$y),
            \(z, t, x, half, i) {
    y <- added(x * rep(drop(product(t, c(1, -out) / unit)), each = nrow(x)))
    x <- added(x * rep(z[, 1L], each = nrow(x)))
    both <- tcross(x, y)
    list(all = cbind(rowSums(y), rowSums(x)), yy = tcross(y),
         xy = both + t(both), xx = tcross(x))
  })
}

# Finds the slopes where the p-value is 1 - level, on the circle of angles with
# beta = best + far tan(angle). `ends` are these slopes, and `open` says that
# the interval goes to infinity. `free` is the share of degrees of freedom that
# is left.
ratio_angles <- function(sums, free, level) {
  best <- sum(sums$all[, 1L] * sums$all[, 2L]) / sum(sums$all[, 2L]^2)
  far <- sqrt(sum(diag(sums$yy)) / sum(diag(sums$xx)))
  above <- \(angle) {
    a <- cos(angle)
    b <- best * a + far * sin(angle)
    law <- (a^2 * sums$yy - a * b * sums$xy + b^2 * sums$xx) / free
    mean <- sum(diag(law))
    shape <- mean^2 / (2 * sum(law^2))
    ratio <- sum((a * sums$all[, 1L] - b * sums$all[, 2L])^2) / mean
    stats::pgamma(ratio, shape, shape, lower.tail = FALSE) - (1 - level)
  }
  angles <- seq(-pi / 2, pi / 2, length.out = 801L)
  values <- vapply(angles, above, 0)
  turns <- which(diff(values > 0) != 0)
  ends <- vapply(turns, \(i) {
    stats::uniroot(above, angles[i + 0:1], tol = 1e-10)$root
  }, 0)
  list(ends = best + far * tan(ends), open = values[1L] > 0)
}

# The methods of fits of rkhs_iv() and rkhs_iv_nested(): values, scores,
# updates, words and pictures.

#' Values of the functions of an instrumental-variable fit
#'
#' The estimated function at new points, `g` of [rkhs_iv()], `g` and `h` of
#' [rkhs_iv_nested()].
#'
#' New points are measured by the bandwidths and units of the fit. Far from all
#' points of the sample the functions of kernels with a bandwidth tend to the
#' intercept, with method `"weak"` to a straight line, which a warning says.
#' Intervals are pointwise, around a fit with a smaller penalty, see
#' [rkhs_iv()]; that fit is their middle, and `fit` may lie outside.
#'
#' @param object A fit.
#' @param newdata New points, with the columns of `x` by name; for a fit by
#'   formula a data frame with the regressors; for a fit on a [gram()] without
#'   points their kernel values with the sample. For a nested fit a list with
#'   `a`, `b` or both of these, or of a formula a data frame with the columns of
#'   both. Without it, the points of the sample.
#' @param ... Must be empty.
#' @param interval Give intervals?
#' @param level Their level.
#' @return `rkhs_iv()`: the values of g and of the linear controls (at their
#'   means where `newdata` has none of them), with the names of the rows; with
#'   `interval` a matrix with the columns `fit`, `lwr` and `upr`. A nested fit:
#'   a matrix with the columns `g` and `h`, or one of them.
#' @details Cost: the kernel values of the new points and at most r points of
#'   the sample, r the rank of the block (m landmarks or features).
#' @seealso [glossary]
#' @examples
#' fit <- rkhs_iv(faithful$waiting, faithful$eruptions, faithful$waiting)
#' predict(fit, c(50, 60, 70))
#' @export
predict.rkhs_iv <- function(object, newdata, ..., interval = FALSE,
                            level = 0.95) {
  check_dots(...)
  same_version(object)
  interval <- take(interval, flag)
  level <- take(level, number(0, 1, open = TRUE))
  if (interval && is.null(object$error)) {
    stop_input("'interval' must be FALSE but for fits of rkhs_iv() with ",
               "method = \"weak\"")
  }
  if (missing(newdata)) {
    values <- fitted(object)
    return(if (!interval) values else stats::napredict(
      object$na.action, iv_interval(
        object, level, object$fitted.values,
        own_points(object$blocks$x$sample),
        new_design(object, object$arguments$controls, object$n)
      )
    ))
  }
  if (is_nested_fit(object)) {
    return(nested_values(object, newdata))
  }
  data <- regressor_data(object, newdata)
  new <- block_newdata(object$blocks$x, data$x, "x")
  values <- point_values(object, "g", new)
  design <- new_design(object, data$controls, length(values))
  values <- values + control_values(object, design)
  if (!is.null(data$rows)) names(values) <- data$rows
  if (interval) iv_interval(object, level, values, new, design) else values
}

# The regressors x and the controls in new data, and the names of its rows.
regressor_data <- function(object, newdata) {
  if (is.null(object$layout)) {
    return(list(x = newdata))
  }
  if (!is.data.frame(newdata)) {
    stop_input("'newdata' must be a data frame for a fit by formula, not ",
               describe(newdata))
  }
  list(x = read_again(object$layout, newdata, "x"),
       controls = control_data(object, newdata),
       rows = if (.row_names_info(newdata) > 0L) row.names(newdata))
}

# The part of the values that the controls add, for rows of the design; it is 0
# if there are no controls.
control_values <- function(object, design) {
  if (!length(object$controls)) {
    return(0)
  }
  drop(product(take_columns(design, -1L), as.matrix(object$controls)))
}

# The controls in new data, NULL where it has none of them.
control_data <- function(object, newdata) {
  layout <- object$layout
  used <- unlist(lapply(layout$controls$calls, all.vars))
  if (any(used %in% names(newdata))) {
    return(read_again(layout, newdata, "controls"))
  }
  known <- unlist(lapply(layout, \(side) lapply(side$calls, all.vars)))
  unknown <- setdiff(names(newdata), known)
  if (length(used) && length(unknown)) {
    warn_kernmean("controls are at their means: 'newdata' has none of ",
                  quoted(used), ", but ", quoted(unknown))
  }
  NULL
}

# Returns the values at new points and the ends of their pointwise intervals, a
# matrix of the columns fit, lwr and upr. The intervals are not centered at
# these values but at those of a fit with less penalty, to which the errors
# belong.
iv_interval <- function(object, level, values, new, design) {
  error <- object$error
  warn_intervals(object$strength)
  sample <- object$blocks$x$sample
  half <- stats::qt((1 + level) / 2, error_freedom(object))
  ends <- lapply(row_panels(seq_along(values), 4096), \(i) {
    part <- lapply(new[intersect(c("z", "values"), names(new))], \(m) {
      take_rows(m, i)
    })
    at <- given_design(error$given, object$blocks$x, part$z,
                       take_rows(design, i))
    phi <- point_features(error$map, sample, part)
    if (length(error$slopes)) phi <- cbind(product(part$z, error$slopes), phi)
    phi <- cbind(at, phi - product(at, error$partial))
    middle <- product(phi, as.matrix(c(error$mean, error$theta)))
    squares <- rowSums(product(phi, error$covariance) * phi)
    width <- half * error$unit * sqrt(pmax(squares, 0))
    cbind(middle - width, middle + width)
  })
  ends <- do.call(rbind, ends)
  structure(cbind(fit = unname(values), lwr = ends[, 1L], upr = ends[, 2L]),
            dimnames = list(names(values), c("fit", "lwr", "upr")))
}

nested_values <- function(object, newdata) {
  if (!is.null(object$layout) && is.data.frame(newdata)) {
    newdata <- moment_data(object$layout, newdata, "newdata", c("a", "b"))
  }
  inputs <- intersect(c("a", "b"), names(newdata))
  if (!is_plain_list(newdata) || !length(inputs) ||
        length(inputs) != length(newdata)) {
    stop_input("'newdata' must be list(a = , b = ) or one of them, not ",
               describe(newdata))
  }
  functions <- c(a = "g", b = "h")[inputs]
  values <- Map(iv_values, list(object), functions, newdata[inputs])
  if (length(unique(lengths(values))) > 1L) {
    stop_input("'newdata' must have as many rows in 'a' as in 'b', not ",
               paste(lengths(values), collapse = " and "))
  }
  do.call(cbind, stats::setNames(values, functions))
}

# The name of the block that a function takes.
function_block <- function(object, f) {
  names(object$blocks)[match(f, names(object$functions))]
}

# New data of a block, whose factors must have no other levels than those of the
# fit.
block_newdata <- function(block, newdata, name) {
  factor <- is_factor_variable(block)
  if (factor && is.data.frame(newdata) && ncol(newdata) == 1L) {
    newdata <- newdata[[1L]]
  }
  new <- variable_newdata(block, newdata, name)
  if (factor) seen_levels(newdata, block$levels, name)
  known <- mixed_levels(block)
  Map(seen_levels, newdata[names(known)], known, names(known))
  new
}

# The values of the function f at new data of its block.
iv_values <- function(object, f, newdata) {
  name <- function_block(object, f)
  point_values(object, f, block_newdata(object$blocks[[name]], newdata, name))
}

# The values of the function f at new points of its block.
point_values <- function(object, f, new) {
  block <- object$blocks[[function_block(object, f)]]
  part <- object$functions[[f]]
  values <- function_at(part, block$sample, new)
  if (!is.null(part$free)) {
    values <- values + drop(product(given_features(part$free, block, new$z),
                                    as.matrix(part$free$weights)))
  }
  warn_far(part, block, new)
  stats::setNames(values + object$intercept, new$names)
}

# Warns of new points at which all kernel values are nearly 0.
warn_far <- function(part, block, new) {
  if (any(part$weights != 0) && knows_points(block$sample) &&
        kernel_has(block$sample$kernel, "unit diagonal")) {
    far <- sum(fold_apply(block$sample$kernel, new$z,
                          take_rows(block$sample$x, part$centers),
                          matrix(1, length(part$centers))) < 0.01)
    if (far > 0L) {
      warn_kernmean(
        "for ", far, " of ", new$m, " new points all kernel values ",
        "are nearly 0: they are far from the sample, which says nothing of ",
        "them, and values return to the ",
        if (any(part$slopes != 0)) "straight line of the fit" else "intercept"
      )
    }
  }
}

#' Fitted values of an instrumental-variable fit
#'
#' The functions at the points of the sample, or the adversary's.
#'
#' The adversary of [rkhs_iv()] is the function of the instruments that is
#' farthest from orthogonal to the residuals \eqn{v = g - y}: it maximizes
#' \eqn{\mathrm{mean}(2vf - f^2) - \lambda\|f\|^2/n}{mean(2 v f - f^2) - lambda
#' |f|^2/n}, and its values are \eqn{Pv}. Where it is far from 0 the moment
#' condition fails. A nested fit has one for each moment, the second of \eqn{v
#' = h - wg}{v = h - w g}; with `subset` it is that of the moment's rows, shown
#' for all.
#'
#' @param object A fit of [rkhs_iv()] or [rkhs_iv_nested()].
#' @param type `"function"`, or `"adversary"`.
#' @param ... Must be empty.
#' @return `"function"`: the values of g, for nested fits a matrix with the
#'   columns `g` and `h`. `"adversary"`: a matrix with the column `first`, for
#'   nested fits also `second`.
#' @references
#' Meza, I. and Singh, R. (2021). Nested nonparametric instrumental variable
#' regression. \doi{10.48550/arXiv.2112.14249}
#' @seealso [glossary]
#' @examples
#' fit <- rkhs_iv(faithful$waiting, faithful$eruptions, faithful$waiting)
#' plot(faithful$waiting, fitted(fit, type = "adversary"))
#' @export
fitted.rkhs_iv <- function(object, type = c("function", "adversary"), ...) {
  check_dots(...)
  same_version(object)
  type <- take(type, choice("function", "adversary"))
  stats::napredict(object$na.action, if (type == "function") {
    object$fitted.values
  } else {
    object$adversary
  })
}

#' Score of a fit on new data
#'
#' How well a fit satisfies its moment conditions on data that it has not seen:
#' the held-out criterion of cross-validation, 0 at best.
#'
#' With the residuals r of t new rows, \eqn{r'Pr/t^2}, P made anew from the
#' instruments of these rows with the kernel of the fit and its ridge for t rows
#' (\eqn{\lambda t/n}{lambda t/n}; with a preset by its rules, whose criterion
#' of Estimator 1 is multiplied by \eqn{2t\delta_t^2}{2 t delta_t^2}); for
#' nested fits the sum over both moments. It compares fits on the same new rows:
#' its level depends on their number and on P. Fits with landmarks or random
#' features have the exact P here. Of method `"weak"` P is that of residuals of
#' the controls and a constant, and rows have no weights.
#'
#' @param object A fit of [rkhs_iv()] or [rkhs_iv_nested()].
#' @param newdata `list(x = , y = , z = )`, with `controls` where the fit has
#'   them; for a fit by formula a data frame
#'   with all of its variables; else for a nested fit `list(a = , b = , c = ,
#'   d = , y = )`, and where the fit has them `w` and `subset`.
#' @param ... Must be empty.
#' @return One number, at least 0.
#' @details \eqn{O(t^3)} time and \eqn{16t^2} bytes.
#' @seealso [glossary]; [rkhs_iv()]; [predict.rkhs_iv()]
#' @examples
#' set.seed(1)
#' n <- 300
#' z <- rnorm(n)
#' e <- rnorm(n)
#' x <- z + e / 2
#' y <- sin(2 * x) + e + rnorm(n) / 2
#' data <- data.frame(x, y, z)
#' fit <- rkhs_iv(y ~ x | z, data[1:200, ])
#' flat <- update(fit, mu = 1e6)
#' c(fit = score(fit, data[201:300, ]), flat = score(flat, data[201:300, ]))
#' @export
score <- function(object, newdata, ...) {
  check_given(object)
  UseMethod("score")
}

#' @export
score.default <- function(object, newdata, ...) {
  check_dots(...)
  take(object, an_iv_fit)
  same_version(object)
  check_given(newdata)
  nested <- is_nested_fit(object)
  data <- score_data(object, newdata)
  values <- if (nested) predict(object, data[c("a", "b")]) else
    cbind(g = iv_values(object, "g", data$x))
  n <- nrow(values)
  # A constant and the controls are taken out, as in the fit.
  design <- if (identical(object$method, "weak")) {
    new_design(object, data$controls, n)
  }
  values <- values + control_values(object, design)
  rows <- moment_rows(data$subset, n)
  y <- check_outcome(needed_outcome(data$y, rows), n, "newdata$y", NULL)
  w <- if (is.null(object$w)) 1 else
    check_outcome(data$w, n, "newdata$w", NULL)
  residuals <- list(d = values[, "g"] - y,
                    c = if (nested) values[, "h"] - w * values[, "g"])
  task <- fitted_task(object)
  parts <- vapply(names(task$rows), \(of) {
    name <- task$called[[of]]
    new <- block_newdata(object$blocks[[name]], data[[name]], name)
    if (is.null(new$z)) {
      stop_input("'object' must be a fit on points for a score, not on a ",
                 "matrix of kernel values")
    }
    if (new$m != n) {
      stop_input("'newdata' must have as many rows in '", name, "' as in the ",
                 "others, ", n, ", not ", new$m)
    }
    here <- rows[[of]]
    n / sum(here) * explained_square(
      task, of, take_rows(new$z, here), design,
      as.matrix(residuals[[of]][here])
    )
  }, 0)
  max(0, penalty_rule(task, n)$score * sum(parts) / n^2)
}

# r'Pr of the residuals r of some rows, whose instruments have the points z.
explained_square <- function(task, of, z, design, r) {
  t <- nrow(z)
  check_memory(t, t, "score fewer rows", copies = 2)
  gram <- fold_store(task$blocks[[task$called[[of]]]]$sample$kernel, z, z)
  if (!is.null(design)) {
    out <- qr(design)
    gram <- qr.resid(out, t(qr.resid(out, gram)))
  }
  gram <- (gram + t(gram)) / 2
  sum(product(gram, r) * solve_action(task, gram, t, of, r))
}

# The rows of each moment.
moments_of <- \(fit) fit$rows %||% list(d = !logical(fit$n))

# The task of a fit.
fitted_task <- function(fit) {
  rows <- moments_of(fit)
  asked <- fit$arguments
  control <- asked[["control"]]
  control$landmarks <- fit$landmarks
  new_iv_task(
    fit$method, fit$called, fit$blocks, fit$y, rows, fit$penalty,
    stats::setNames(as.list(rev(fit$lambda)), names(rows)), control,
    asked$preset, w = fit$w
  )
}

an_iv_fit <- is_a("rkhs_iv", "a fit of rkhs_iv() or rkhs_iv_nested()")

# New data for a score: its blocks, y and what else the fit has, by name.
score_data <- function(object, newdata) {
  if (!is.null(object$layout) && is.data.frame(newdata)) {
    return(moment_data(object$layout, newdata, "newdata"))
  }
  needed <- c(names(object$blocks), "y", if (!is.null(object$w)) "w",
              if (length(object$controls)) "controls")
  if (!is_plain_list(newdata) || !all(needed %in% names(newdata))) {
    stop_input("'newdata' must be list(", paste(needed, "=", collapse = ", "),
               "), or for a fit by formula a data frame, not ",
               describe(newdata))
  }
  newdata[c(needed, intersect("subset", names(newdata)))]
}

fit_request.rkhs_iv <- function(x, changes) {
  blocks <- names(x$blocks)
  if ("data" %in% names(changes) && !is.null(x$layout)) {
    changes <- formula_changes(x, changes)
  }
  settings <- intersect(names(changes), names(formals(iv_control)))
  changes[["control"]] <- changed_control(x, changes, settings)
  changes[settings] <- NULL
  kernels <- block_kernels(changes$kernel,
                           !vapply(x$blocks, takes_kernel, NA))
  anew <- lengths(kernels) > 0L
  # A gram with points keeps its units when its kernel changes.
  if (any(anew) && !"scale" %in% settings) {
    changes$kernel <- Map(keep_units, kernels,
                          lapply(x$blocks, `[[`, "sample"))
  }
  asked <- x$arguments
  asked[blocks] <- Map(variable_input, x$blocks, anew)
  asked$y <- x$y
  # The method of a fit stays, unless another penalty or a preset decides.
  if (!is_nested_fit(x) && !any(c("penalty", "preset") %in% names(changes))) {
    asked$method <- if (is.null(x$method)) "classic" else
      if (x$method == "weak") "weak" else asked$method
  }
  change_request(asked, changes)
}

# Replaces `data` among the changes by what the formula of a fit reads from it.
formula_changes <- function(x, changes) {
  data <- changes$data
  known <- c(names(x$blocks), "y")
  if (!is.list(data) || any(known %in% names(changes))) {
    stop_input("'data' must be a data frame with all columns of the ",
               "formula, without ", quoted(known, 5L))
  }
  changes$data <- NULL
  read <- moment_data(x$layout, data, "data")
  names(read$y) <- row.names(data)
  c(changes, read[setdiff(names(read), names(changes))])
}

# Returns the settings of iv_control() after changes. These may name single
# settings, `settings`. Landmarks stay the same unless the points change, and a
# fit that was centered stays centered.
changed_control <- function(x, changes, settings) {
  control <- changes[["control"]]
  if (is.null(control)) {
    control <- x$arguments[["control"]]
    control <- control %||% iv_control()
    if (!is.null(x$landmarks)) {
      moved <- any(names(x$blocks) %in% names(changes))
      control$landmarks <- if (moved) length(x$landmarks) else x$landmarks
    }
    if (x$centered && any(c("mu", "mu_g") %in% names(changes)) &&
          !any(c("preset", "w") %in% names(changes))) {
      control$intercept <- TRUE
    }
  }
  control[settings] <- changes[settings]
  do.call(iv_control, control)
}

# Reads the sides and units of a formula in other data, and returns them by
# name.
moment_data <- function(layout, data, label, sides = names(layout)) {
  values <- sapply(sides, \(side) read_again(layout, data, side, label),
                   simplify = FALSE)
  if (!is.null(values$y)) values$y <- as.vector(values$y)
  Filter(length, values)
}

# --- Words and tables --------------------------------------------------------

fit_lines.rkhs_iv <- function(x, digits) {
  nested <- is_nested_fit(x)
  weak <- !is.null(x$strength)
  number <- \(value) format_number(unname(value), digits)
  labels <- iv_names(x)
  blocks <- Map(\(block, name) {
    label <- paste0(name, " (", describe_variable(block), ", rank ",
                    x$rank[[name]], ")")
    if (is_factor_variable(block)) label else
      c(variable_lines(block, label), learned_line(x$columns[[name]]))
  }, x$blocks, names(x$blocks))
  preset <- x$arguments$preset
  c(
    paste0(if (nested) "Nested kernel" else "Kernel",
           " instrumental variables, ",
           c(norm = "RKHS-norm", l2 = "empirical-L2")[[x$penalty]], " penalty"),
    strwrap(moment_lines(x, lapply(labels, paste, collapse = ", ")), 80L,
            exdent = 2L),
    row_line(x),
    unlist(blocks, use.names = FALSE),
    strwrap(penalty_line(x, number), 80L, exdent = 2L),
    if (!is.null(preset)) {
      paste0("delta = ", number(preset_delta(preset, x$n)), ", alpha = ",
             number(x$alpha_scale), " delta^4")
    },
    if (weak) weak_lines(x, number, setdiff(labels$x, labels$z)),
    if (length(x$coefficients) < 2L) paste("intercept", number(x$intercept)),
    if (!nested && all(labels$x %in% labels$z)) {
      "every regressor is an instrument: endogeneity is not accounted for"
    },
    paste0("r'Pr/n = ", paste(number(x$criterion), collapse = " and ")),
    if (!weak) paste("no standard errors:", if (nested) {
      "kme_effect() has those of averages of g and h"
    } else {
      "method = \"weak\" of rkhs_iv() has them"
    })
  )
}

# The moment conditions, by the labels of the blocks.
moment_lines <- function(x, labels) {
  nested <- is_nested_fit(x)
  paste0(
    "E[", c(labels$y, if (nested) paste0("h(", labels$b, ")")), " - ",
    c("", if (!is.null(x$w)) "w "), "g(", labels[[2L]], ") | ",
    if (nested) c(labels$d, labels$c) else labels$z, "] = 0"
  )
}

row_line <- function(x) {
  paste0(
    count_of(x$n, "row"), if (!all(unlist(x$rows))) {
      paste0(", ", sum(x$rows$d), " of the first moment and ", sum(x$rows$c),
             " of the second")
    }, switch(
      iv_approximation(x),
      landmarks = paste0(", ", count_of(length(x$landmarks), "landmark")),
      features = paste0(", ", x$arguments[["control"]]$features,
                        " random Fourier features")
    )
  )
}

# The penalties, and how mu was chosen.
penalty_line <- function(x, number) {
  cv <- x$cv
  several <- \(values) {
    paste(names(values), "=", number(values), collapse = ", ")
  }
  paste0(several(x$lambda), "; ", several(x$mu), if (!is.null(cv)) {
    paste0(" (", folds_of(cv), "-fold cross-validation, ",
           if (attr(cv, "deals") > 1L) paste0(attr(cv, "deals"), " deals, "),
           c(paired = "largest within one standard error of a difference",
             "1se" = "largest within one standard error",
             min = "minimum")[[x$rule]],
           if (cv$chosen[which.max(cv$mu)]) ", the largest value tried", ")")
  })
}

# The lines that only fits of method "weak" have: controls, rows, the strength
# of the instruments and the settings that follow from it.
weak_lines <- function(x, number, endogenous) {
  strength <- x$strength
  overid <- x$error$overid
  strwrap(c(
    if (!is.null(x$layout) && length(endogenous)) {
      paste("endogenous:", paste(endogenous, collapse = ", "))
    },
    if (length(x$coefficients) > 1L) paste0(
      if (x$linear < Inf) "nearest ", "straight line (standard errors): ",
      shorten(paste0(names(x$coefficients), " ", number(x$coefficients), " (",
                     number(sqrt(diag(x$vcov))), ")"), most_printed)
    ),
    if (x$error$clusters) count_of(x$error$clusters, "cluster"),
    if (!is.null(x$arguments$weights)) "rows are weighted",
    paste0(
      "first stage: R^2 ", number(strength$r.squared), ", ",
      strength_words(strength, number), ", ", number(strength$df),
      " directions"
    ),
    if (identical(attr(strength, "line"), "instruments") && length(attr(
      strength, "columns"
    )) <= strength$span) {
      paste0("the instruments identify about ",
             count_of(strength$span, "number"),
             ": a straight line; a curve would come from the penalty")
    },
    paste0(
      "for weak instruments: bias correction ", number(x$correct),
      " (of 1), straight part ", if (x$linear == Inf) "not penalized" else
        number(x$linear), ", ", number(100 * x$keep), "% of g kept"
    ),
    if (!anyNA(overid)) {
      paste0("test of overidentification: r'Pr is ",
             number(overid[["statistic"]]), " times its mean under valid ",
             "instruments, p = ", number(overid[["p.value"]]))
    }
  ), 80L, exdent = 2L)
}

is_nested_fit <- \(x) inherits(x, "rkhs_iv_nested")

# Returns the names of the outcome and of the terms of each block, as the
# formula has them.
iv_names <- function(x) {
  if (is.null(x$layout)) {
    return(as.list(stats::setNames(nm = c("y", names(x$blocks)))))
  }
  lapply(x$layout, `[[`, "names")
}

iv_approximation <- function(x) {
  if (!is.null(x$landmarks)) "landmarks" else
    if (is.null(x$functions$g$weights)) "features" else "none"
}

moment_names <- function(x) {
  if (is_nested_fit(x)) {
    c("y - g(a)", if (is.null(x$w)) "h(b) - g(a)" else "h(b) - w g(a)")
  } else {
    "y - g(x)"
  }
}

# The number of folds of each deal.
folds_of <- \(cv) nrow(attr(cv, "folds")) %/% attr(cv, "deals")

# Returns a row for each coefficient or, if the fit has no errors, for each
# moment.
fit_rows.rkhs_iv <- function(x, ...) {
  if (!is.null(x$vcov)) {
    return(coefficient_rows(x, ...))
  }
  check_dots(...)
  moment_table(x)
}

# A data frame with a row for each moment.
moment_table <- function(x) {
  residuals <- as.matrix(x$residuals)
  rows <- moments_of(x)
  each <- \(f) vapply(seq_along(rows), \(l) f(residuals[rows[[l]], l]), 0)
  rms <- each(\(r) sqrt(mean(r^2)))
  share <- ifelse(rms == 0, 0, x$criterion / rms^2)
  check_result(share, "the share of residuals that instruments explain", "'y'")
  data.frame(
    moment = moment_names(x), nobs = vapply(rows, sum, 0), mean = each(mean),
    rms = rms, criterion = unname(x$criterion), share = share,
    # `lambda` has the second moment first.
    lambda = rev(unname(x$lambda)), mu = unname(x$mu), row.names = NULL
  )
}

fit_summary.rkhs_iv <- function(x) {
  table <- moment_table(x)
  moments <- table[c("nobs", "mean", "rms", "criterion", "share")]
  names(moments) <- c("rows", "mean", "root mean square", "r'Pr/n", "r'Pr/r'r")
  row.names(moments) <- table$moment
  cv <- x$cv
  strength <- x$strength
  if (!is.null(strength)) {
    names(strength) <- c("F, features", "F, linear part", "directions",
                         "identified", "R^2", "p, features", "p, linear part")
    strength <- structure(strength, title = "First stage")
  }
  if (!is.null(cv)) {
    shown <- union(which.min(cv$score), which(cv$chosen) + (-2:2))
    # The standard error that is shown is the one that the rule uses.
    cv <- structure(cv[sort(intersect(shown, seq_len(nrow(cv)))), c(
      "mu", "score", if (x$rule == "paired") "se_above" else "se", "chosen"
    )], title = paste0("Held-out criterion, ", nrow(cv), " penalties"))
  }
  list(coefficients = if (!is.null(x$vcov)) {
    structure(coefficient_rows(x), title = "Straight line and controls")
  }, moments = structure(moments, title = "Residuals by moment"),
       strength = strength, cv = cv)
}

fit_facts.rkhs_iv <- function(x) {
  lambda <- rev(x$lambda)
  c(list(
    nobs = x$n, penalty = x$penalty, lambda = lambda[1L],
    lambda_c = lambda[-1L], mu = x$mu[1L], mu_h = x$mu[-1L],
    criterion = x$criterion[1L], criterion_c = x$criterion[-1L],
    rank = x$rank[1L], rank_instruments = x$rank[length(x$rank)],
    approximation = iv_approximation(x), intercept = x$intercept,
    score = x$cv$score[x$cv$chosen],
    folds = if (is.null(x$cv)) NA_integer_ else folds_of(x$cv),
    border = !is.null(attr(x$cv, "border"))
  ), first = sapply(
    c("F", "F_linear", "df", "span", "r.squared", "p.value", "p_linear"),
    \(name) x$strength[[name]], simplify = FALSE
  ), list(
    correct = x$correct, linear = x$linear, keep = x$keep,
    overid.statistic = x$error$overid["statistic"],
    overid.p.value = x$error$overid["p.value"]
  ), kernel_columns(x$kernels[[1L]]))
}

fit_values.rkhs_iv <- function(x, newdata = NULL) {
  fitted <- if (is.null(newdata)) x$fitted.values else predict(x, newdata)
  residuals <- if (is.null(newdata)) x$residuals
  if (!is_nested_fit(x)) {
    return(named_frame(cbind(.fitted = fitted, .resid = residuals)))
  }
  fitted <- prefixed(fitted, ".fitted_")
  if (is.null(residuals)) fitted else
    cbind(fitted, prefixed(residuals, ".resid_"))
}

# The outcome and the columns of all blocks that have points; columns that two
# blocks share are there once.
fit_columns.rkhs_iv <- function(x, newdata, added) {
  known <- names(Filter(\(block) knows_points(block$sample), x$blocks))
  frames <- if (is.null(newdata)) {
    y <- stats::setNames(list(unname(x$y)), iv_names(x)$y)
    c(list(y), lapply(known, block_frame, object = x))
  } else {
    parts <- if (is_nested_fit(x) && is_plain_list(newdata)) newdata else
      stats::setNames(list(newdata), names(x$blocks)[1L])
    parts <- parts[names(parts) %in% known]
    Map(part_frame, parts, names(parts))
  }
  columns <- unlist(lapply(unname(frames), as.list), recursive = FALSE)
  columns <- columns[!duplicated(Map(list, columns, names(columns)))]
  names(columns) <- make.unique(names(columns))
  frame <- list2DF(columns, nrow(added))
  if (.row_names_info(added) > 0L) row.names(frame) <- row.names(added)
  frame
}

# The columns of a block with points as a data frame, as iv_names() has them.
block_frame <- function(object, name) {
  block_columns(object$blocks[[name]], if (is_factor_variable(
    object$blocks[[name]]
  )) iv_names(object)[[name]] else name)
}

# --- Pictures ----------------------------------------------------------------

#' Plots of an instrumental-variable fit
#'
#' The estimated function along one column, or the held-out criterion of the
#' penalties.
#'
#' `"fit"` draws g, of a nested fit also h in a figure of its own, along one
#' column over its range, the other columns at their medians and factors at
#' their most frequent level. The points are the rows of the moment: y against
#' the column for g, w g(a) for h. Columns are those of the fit, `log(x)` of a
#' formula with that term, in their own units. Along a factor each level has a
#' bar, and its points side by side. Where regressors are endogenous, or others
#' matter, too, the function need not run through the middle of the points.
#' The band has the pointwise 95% intervals of `predict(interval = TRUE)`, which
#' need not hold the curve, see [rkhs_iv()]. Controls are at their means.
#'
#' `"cv"` draws the held-out criterion against \eqn{\mu}{mu} (of nested fits
#' \eqn{\mu_g}{mu_g}) with one standard error over folds to either side, its
#' minimum and the value that was chosen; for `rule = "1se"` also, dashed, what
#' a score may be at most. For `rule = "paired"` the bars are standard errors of
#' differences to the minimum, and dashed is what a bar must reach. It shows the
#' neighborhood of the minimum (`ylim` shows more).
#'
#' ```
#' plot(x, type = c("fit", "cv"), what = c("g", "h"),
#'      column = NULL, n = 200, ...)
#' ```
#'
#' @usage NULL
#' @param x A fit of [rkhs_iv()] or [rkhs_iv_nested()].
#' @param type `"fit"` or `"cv"`.
#' @param what `"g"`, `"h"` or both: the functions of a nested fit.
#' @param column The column along which to draw, by name or number; for g and h
#'   the same, or `list(g = , h = )`. By default the first that is numeric.
#' @param n Points on the curve.
#' @param ... Graphical parameters, see [plot.kernmean_fit()].
#' @return What was drawn, invisibly: a data frame of the points along the
#'   curve, all columns as they were taken, with the values of the function in
#'   `.fitted` and the ends of the intervals; for g and h a list of two; or the
#'   field `cv`.
#' @seealso [glossary]; [predict.rkhs_iv()] for values anywhere else
#' @docType methods
#' @name plot.rkhs_iv
#' @examples
#' set.seed(1)
#' n <- 300
#' z <- rnorm(n)
#' e <- rnorm(n)
#' age <- runif(n, 20, 60)
#' x <- z + e + rnorm(n)
#' y <- sin(x) + age / 20 + 2 * e + rnorm(n)
#' fit <- rkhs_iv(y ~ x + age | z + age)
#' plot(fit)
#' plot(fit, column = "age")
#' plot(fit, "cv")
NULL

fit_picture.rkhs_iv <- function(object, type = NULL, what = NULL, column = NULL,
                                n = 200) {
  if (check_type(type, c("fit", "cv")) == "cv") {
    return(picture_held_out(object))
  }
  n <- take(n, count(2L))
  functions <- names(object$functions)
  if (!is.null(what)) {
    functions <- functions[check_pick(what, functions, "what", 1:2)]
  }
  panels <- lapply(stats::setNames(nm = functions), \(f) {
    picture_function(object, f, if (is.list(column)) column[[f]] else column, n)
  })
  notes <- unique(lapply(panels, `[[`, "note"))
  new_panels(panels, "Instrumental-variable estimates", free = "free",
             note = if (length(notes) == 1L) notes[[1L]])
}

# A function along one column.
picture_function <- function(object, f, column, n) {
  name <- function_block(object, f)
  if (!knows_points(object$blocks[[name]]$sample)) {
    stop_input("'type' must not be \"fit\" for ", f, ", as '", name, "' is a ",
               "gram without points, which has no columns to draw along")
  }
  data <- block_frame(object, name)
  j <- if (is.null(column)) {
    c(which(vapply(data, is.numeric, NA)), 1L)[[1L]]
  } else {
    check_pick(column, names(data), "column")
  }
  rows <- moments_of(object)[[if (f == "g") "d" else "c"]]
  x <- data[[j]]
  levels <- if (!is.numeric(x)) levels(droplevels(as_factor(x)))
  along <- if (is.null(levels)) seq(min(x), max(x), length.out = n) else
    factor(levels, levels)
  middle <- lapply(data, middle_value)
  frame <- slice_values(object, f, data.frame(replace(middle, j, list(along)),
                                              check.names = FALSE))
  label <- names(data)[j]
  ylab <- if (f == "g") iv_names(object)$y else
    paste0(if (!is.null(object$w)) "w ", "g(a)")
  y <- unname(function_outcome(object, f))
  layers_of <- if (is.null(levels)) curve_layers else level_layers
  drawn <- layers_of(frame, along, x[rows], y[rows])
  color <- level_palette[1L]
  new_picture(
    paste("Instrumental-variable estimate of", f), label, ylab, drawn$layers,
    frame,
    key = if (!is.null(frame$.lower)) rbind(
      key_entries(f, color, "line", lwd = 2),
      key_entries("95% intervals", drawn$shade, drawn$key)
    ),
    note = if (length(middle) > 1L) list(
      text = paste0("at ", shorten(paste(
        names(data)[-j], "=", vapply(middle[-j], \(x) {
          if (is.numeric(x)) format_number(x, 3L) else as.character(x)
        }, "")
      ), 3L)), color = "grey30"
    ),
    xlim = if (!is.null(levels)) c(0.5, length(levels) + 0.5),
    ticks_x = if (!is.null(levels)) {
      list(at = seq_along(levels), labels = levels)
    },
    panel = paste0(f, ": ", ylab, " against ", label)
  )
}

# The median of a column, or its most frequent level.
middle_value <- function(x) {
  if (is.numeric(x)) stats::median(x) else
    factor(names(which.max(table(as_factor(x)))))
}

# The outcome that a function is compared with: y for g, and w g for h.
function_outcome <- function(object, f) {
  if (f == "g") object$y else (object$w %||% 1) * object$fitted.values[, "g"]
}

# Returns a data frame of points of a function, with its values there and the
# ends of their intervals, if the fit has intervals.
slice_values <- function(object, f, frame) {
  name <- function_block(object, f)
  new <- block_newdata(object$blocks[[name]], frame, name)
  value <- suppressWarnings(point_values(object, f, new))
  frame$.fitted <- unname(value)
  if (!is.null(object$error)) {
    ends <- suppressWarnings(iv_interval(
      object, 0.95, value, new, new_design(object, NULL, length(value))
    ))
    frame[c(".lower", ".upper")] <- list(ends[, "lwr"], ends[, "upr"])
  }
  frame
}

# The layers of a function along a column of numbers: its band, the points x and
# y, and the curve.
curve_layers <- function(frame, along, x, y) {
  shade <- tint(level_palette[1L])
  list(shade = shade, key = "box", layers = list(
    if (!is.null(frame$.lower)) {
      new_layer("ribbon", x = along, y0 = frame$.lower, y1 = frame$.upper,
                col = shade)
    },
    points_layer(cbind(x, y), color = "grey65"),
    new_layer("line", x = along, y = frame$.fitted, col = level_palette[1L],
              lwd = 2, main = TRUE)
  ))
}

# The layers along a factor: a bar at each level, over its points side by side.
# The places of the points come from multiples of sqrt(2); points_layer() takes
# a share of the points by another irrational, so that the two do not interfere.
level_layers <- function(frame, along, x, y) {
  level <- match(as.character(x), levels(along))
  place <- stats::ave(level, level, FUN = seq_along)
  x <- level + 0.6 * ((sqrt(2) * place) %% 1 - 0.5)
  at <- seq_along(along)
  list(shade = "grey30", key = "line", layers = list(
    points_layer(cbind(x, y), color = "grey65"),
    if (!is.null(frame$.lower)) span_layer(at, frame$.lower, frame$.upper),
    lying_layer(frame$.fitted, at - 0.4, at + 0.4, col = level_palette[1L],
                lwd = 2, main = TRUE)
  ))
}

picture_held_out <- function(object) {
  cv <- tried_of(object, "type")
  best <- which.min(cv$score)
  marks <- unique(c(which(cv$chosen), best))
  labels <- c(paste0(names(object$mu)[1L], " = ",
                     format(cv$mu[marks[1L]], digits = 3),
                     if (length(marks) == 1L) ", the minimum"), "minimum")
  key <- key_entries(labels, c(accent, "black"), pch = c(21L, 24L))
  key <- key[seq_along(marks), ]
  # By the paired rule, the bars are those of the differences to the minimum.
  paired <- object$rule == "paired"
  se <- if (paired) cv$se_above else cv$se
  limit <- switch(object$rule, paired = "bars: 1 se of the difference",
                  "1se" = "minimum + 1 se")
  # The criterion may fall by orders of magnitude from the smallest penalties
  # on, so the picture shows the neighborhood of the minimum.
  width <- ifelse(is.na(cv$se), 0, cv$se)
  top <- min(max(cv$score + width),
             max(3 * cv$score[best], cv$score[best] + 4 * width[best]))
  bottom <- min((cv$score - width)[cv$score <= top])
  new_picture(
    paste0("Held-out criterion (", folds_of(cv),
           "-fold cross-validation)"),
    if (is_nested_fit(object)) "mu_g" else expression(mu), "criterion",
    list(
      error_layer(cv$mu, cv$score, se),
      if (!is.null(limit)) {
        across_layer(h = cv$score[best] + if (paired) 0 else se[best],
                     level = limit)
      },
      new_layer("line", x = cv$mu, y = cv$score, lwd = 2, main = TRUE),
      mark_layer(cv$mu[marks], cv$score[marks], key$label, key$color, key$pch)
    ),
    cv, ylim = c(bottom, if (top > bottom) top else bottom + 1), log = "x",
    key = rbind(key, if (!is.null(limit)) key_entries(limit, "grey40", "line",
                                                      lty = 2L))
  )
}

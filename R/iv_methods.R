# What a fit of rkhs_iv() or rkhs_iv_nested() can do.

#' Values of the functions of an instrumental-variable fit
#'
#' The estimated function at new points, `g` of [rkhs_iv()], `g` and `h` of
#' [rkhs_iv_nested()].
#'
#' New points are measured by the bandwidths and units of the fit. Far from all
#' points of the sample the functions of kernels with a bandwidth tend to the
#' intercept, 0 where there is none.
#'
#' @param object A fit.
#' @param newdata New points, with the columns of `x` by name; for a fit by
#'   formula a data frame with the regressors; for a fit on a [gram()] without
#'   points their kernel values with the sample. For a nested fit a list with
#'   `a`, `b` or both of these. Without it, the points of the sample.
#' @param ... Must be empty.
#' @return `rkhs_iv()`: the values of g, with the names of the rows. A nested
#'   fit: a matrix with the columns `g` and `h`, or one of them.
#' @details Cost: the kernel values of the new points and at most r points of
#'   the sample, r the rank of the block (m landmarks or features).
#' @examples
#' fit <- rkhs_iv(faithful$waiting, faithful$eruptions, faithful$waiting)
#' predict(fit, c(50, 60, 70))
#' @export
predict.rkhs_iv <- function(object, newdata, ...) {
  check_dots(...)
  same_version(object)
  if (missing(newdata)) {
    return(fitted(object))
  }
  rows <- NULL
  if (!is.null(object$terms)) {
    if (!is.data.frame(newdata)) {
      stop_input("'newdata' must be a data frame for a fit by formula, not ",
                 describe(newdata))
    }
    if (.row_names_info(newdata) > 0L) rows <- row.names(newdata)
    newdata <- iv_term(object$terms, newdata, 1L)
  }
  values <- iv_values(object, "g", newdata)
  if (!is.null(rows)) names(values) <- rows
  values
}

# The block that a function is of.
function_block <- function(object, f) {
  names(object$blocks)[match(f, names(object$functions))]
}

# The values of a function at new data of its block, which must not have levels
# of factors that it knows nothing of.
iv_values <- function(object, f, newdata) {
  name <- function_block(object, f)
  block <- object$blocks[[name]]
  factor <- is_factor_variable(block)
  if (factor && is.data.frame(newdata) && ncol(newdata) == 1L) {
    newdata <- newdata[[1L]]
  }
  new <- variable_newdata(block, newdata, name)
  known <- if (factor) stats::setNames(list(block$levels), name) else
    block$mixed$levels
  for (column in names(known)) {
    unseen <- setdiff(as.character(if (factor) newdata else newdata[[column]]),
                      known[[column]])
    if (length(unseen)) {
      stop_input("'newdata' must have levels of '", column, "' that the fit ",
                 "has seen, not ", quoted(unseen))
    }
  }
  part <- object$functions[[f]]
  values <- function_at(part, block$sample, new)
  lost <- sum(values == 0)
  if (lost > 0L && any(part$weights != 0) && knows_points(block$sample) &&
        has_unit_diagonal(block$sample$kernel)) {
    warn_kernmean(
      "for ", lost, " of ", length(values), " new points all kernel values ",
      "are 0: they are far from the sample, which says nothing of them"
    )
  }
  stats::setNames(values + object$intercept, new$names)
}

#' @rdname predict.rkhs_iv
#' @export
predict.rkhs_iv_nested <- function(object, newdata, ...) {
  check_dots(...)
  same_version(object)
  if (missing(newdata)) {
    return(object$fitted.values)
  }
  given <- names(newdata)
  if (!is_plain_list(newdata) || !length(given) ||
        !all(given %in% c("a", "b")) || anyDuplicated(given)) {
    stop_input("'newdata' must be list(a = , b = ), the inputs of g and h, or ",
               "one of them, not ", describe(newdata))
  }
  functions <- c("g", "h")[c("a", "b") %in% given]
  values <- Map(iv_values, list(object), functions,
                newdata[intersect(c("a", "b"), given)])
  if (length(unique(lengths(values))) > 1L) {
    stop_input("'newdata' must have as many rows in 'a' as in 'b', not ",
               paste(lengths(values), collapse = " and "))
  }
  do.call(cbind, stats::setNames(values, functions))
}

fit_request.rkhs_iv <- function(x, changes) {
  names <- names(x$blocks)
  if ("data" %in% names(changes) && !is.null(x$terms)) {
    data <- changes$data
    if (!is.list(data) || any(c("x", "y", "z") %in% names(changes))) {
      stop_input("'data' must be a data frame with all columns of the ",
                 "formula, without 'x', 'y' or 'z'")
    }
    changes$data <- NULL
    changes[c("x", "z")] <- lapply(1:2, \(l) iv_term(x$terms, data, l, "data"))
    y <- eval(attr(x$terms, "predvars")[[2L]], data, environment(x$terms))
    changes$y <- stats::setNames(as.vector(y), row.names(data))
  }
  # What iv_control() sets may be changed by itself. The same points have the
  # same landmarks, and what was centered stays so.
  own <- names(changes) %in% names(formals(iv_control))
  set <- changes[own]
  changes <- changes[!own]
  control <- changes$control
  if (is.null(control)) {
    control <- x$arguments$control
    if (is.null(control)) control <- iv_control()
    if (!is.null(x$landmarks)) {
      control$landmarks <- if (any(names %in% names(changes)))
        length(x$landmarks) else x$landmarks
    }
    if (x$centered && any(c("mu", "mu_g") %in% names(changes)) &&
          !any(c("preset", "w") %in% names(changes))) {
      control$intercept <- TRUE
    }
  }
  control[names(set)] <- set
  changes$control <- do.call(iv_control, control)
  kernel <- changes$kernel
  listed <- is_plain_list(kernel)
  takes <- vapply(x$blocks, takes_kernel, NA)
  anew <- takes & if (listed) names %in% names(kernel) else !is.null(kernel)
  # Other kernels for the points of a gram keep their units.
  if (any(anew) && !"scale" %in% names(set)) {
    kernels <- block_kernels(kernel, names)
    if (!listed) kernels[!takes] <- list(NULL)
    samples <- lapply(x$blocks[anew], `[[`, "sample")
    kernels[anew] <- Map(keep_units, kernels[anew], samples)
    changes$kernel <- kernels
  }
  asked <- x$arguments
  asked[names] <- Map(variable_input, x$blocks, anew)
  asked$y <- x$y
  structure(change_request(asked, changes),
            fields = if (!any(names %in% names(changes))) "na.action")
}

#' @export
coef.rkhs_iv <- function(object, ...) {
  check_dots(...)
  if (is.null(object$coefficients$g)) {
    stop_input("'object' must not be a fit with random features, whose ",
               "functions have no weights of points; predict() has values")
  }
  if (length(object$coefficients) == 1L) object$coefficients$g else
    object$coefficients
}

#' @export
fitted.rkhs_iv <- function(object, ...) {
  check_dots(...)
  stats::naresid(object$na.action, object$fitted.values)
}

#' @export
residuals.rkhs_iv <- function(object, ...) {
  check_dots(...)
  stats::naresid(object$na.action, object$residuals)
}

# Of the terms alone it would be the sum of both sides of the bar.
#' @importFrom stats formula
#' @export
formula.rkhs_iv <- function(x, ...) {
  layout <- x$terms
  if (is.null(layout)) {
    stop_input("'x' must be a fit by formula, not of ",
               quoted(names(x$blocks)))
  }
  variables <- as.list(attr(layout, "variables"))[-1L]
  sides <- lapply(attr(layout, "groups"), \(group) sum_of(variables[group]))
  stats::as.formula(
    call("~", variables[[1L]], call("|", sides[[1L]], sides[[2L]])),
    environment(layout)
  )
}

# --- Words and tables --------------------------------------------------------

fit_lines.rkhs_iv <- function(x, digits) {
  number <- \(value) format_number(unname(value), digits)
  several <- \(values) {
    paste(names(values), "=", number(values), collapse = ", ")
  }
  groups <- attr(x$terms, "groups")
  names <- iv_names(x)
  blocks <- Map(\(block, name) {
    label <- paste0(name, " (", describe_variable(block), ", rank ",
                    x$rank[[name]], ")")
    c(variable_lines(block, label), if (is_factor_variable(block)) label)
  }, x$blocks, names(x$blocks))
  used <- iv_approximation(x)
  cv <- x$cv
  c(
    paste0(if (is_nested_fit(x)) "Nested kernel" else "Kernel",
           " instrumental variables, ",
           c(norm = "RKHS-norm", l2 = "empirical-L2")[[x$penalty]], " penalty"),
    if (is_nested_fit(x)) {
      c("E[y - g(a) | d] = 0",
        paste0("E[h(b) - ", if (!is.null(x$w)) "w ", "g(a) | c] = 0"))
    } else {
      strwrap(paste0("E[", names$y, " - g(", names$x, ") | ", names$z, "] = 0"),
              80L, exdent = 2L)
    },
    paste0(
      count_of(x$n, "row"), if (length(x$na.action)) {
        paste0(" (", length(x$na.action), " with missing values left out)")
      }, if (!all(unlist(x$rows))) {
        paste0(", ", sum(x$rows$d), " of the first moment and ", sum(x$rows$c),
               " of the second")
      }, if (used == "landmarks") {
        paste0(", ", count_of(length(x$landmarks), "landmark"))
      } else if (used == "features") {
        paste0(", ", x$arguments$control$features, " random Fourier features")
      }
    ),
    unlist(blocks, use.names = FALSE),
    strwrap(paste0(several(x$lambda), "; ", several(x$mu), if (!is.null(cv)) {
      paste0(" (", nrow(attr(cv, "folds")), "-fold cross-validation, ",
             c(paired = "one paired standard error", "1se" =
                 "one standard error", min = "minimum")[[x$rule]],
             if (cv$chosen[which.max(cv$mu)]) ", the largest value tried", ")")
    }), 80L, exdent = 2L),
    if (!is.null(x$arguments$preset)) preset_line(x$arguments$preset, x$n),
    if (x$centered) {
      paste0("intercept ", number(x$intercept), ", the mean of y")
    } else {
      "no intercept (y is not centered)"
    },
    if (!is.null(groups) && all(groups[[1L]] %in% groups[[2L]])) {
      "every regressor is an instrument: endogeneity is not accounted for"
    },
    paste0("r'Pr/n = ", paste(number(x$criterion), collapse = " and ")),
    "no standard errors or tests of weak instruments exist for this estimator"
  )
}

is_nested_fit <- \(x) inherits(x, "rkhs_iv_nested")

# What a formula calls the outcome and the terms of each block.
iv_names <- function(x) {
  if (is.null(x$terms)) {
    return(list(y = "y", x = "x", z = "z"))
  }
  names <- vapply(as.list(attr(x$terms, "variables"))[-1L], deparse1, "")
  of <- lapply(attr(x$terms, "groups"), \(g) paste(names[g], collapse = ", "))
  list(y = names[1L], x = of[[1L]], z = of[[2L]])
}

iv_approximation <- function(x) {
  if (!is.null(x$landmarks)) "landmarks" else
    if (is.null(x$functions$g$weights)) "features" else "none"
}

preset_line <- function(preset, n) {
  paste0(
    "delta = ", format_number(preset$delta_scale), " n^-",
    format_number(preset$delta_exp), " = ",
    format_number(preset_delta(preset, n)), ", alpha = ",
    if (is.null(preset$alpha_scale)) "alpha_scale" else
      format_several(preset$alpha_scale), " delta^4"
  )
}

# A row for each moment, over its rows.
moment_table <- function(x) {
  residuals <- as.matrix(x$residuals)
  rows <- if (is.null(x$rows)) list(rep(TRUE, x$n)) else x$rows
  each <- \(f) vapply(seq_along(rows), \(l) f(residuals[rows[[l]], l]), 0)
  rms <- each(\(r) sqrt(mean(r^2)))
  share <- ifelse(rms == 0, 0, x$criterion / rms^2)
  check_result(share, "the share of residuals that instruments explain", "'y'")
  data.frame(
    moment = if (is_nested_fit(x)) {
      c("y - g(a)", if (is.null(x$w)) "h(b) - g(a)" else "h(b) - w g(a)")
    } else {
      "y - g(x)"
    },
    nobs = vapply(rows, sum, 0), mean = each(mean), rms = rms,
    criterion = unname(x$criterion), share = share,
    # Of the first moment first.
    lambda = rev(unname(x$lambda)), mu = unname(x$mu), row.names = NULL
  )
}

fit_summary.rkhs_iv <- function(x) {
  table <- moment_table(x)
  moments <- table[c("nobs", "mean", "rms", "criterion", "share")]
  names(moments) <- c("rows", "mean", "root mean square", "r'Pr/n", "r'Pr/r'r")
  row.names(moments) <- table$moment
  cv <- x$cv
  c(list(moments = structure(moments, title = "Residuals by moment")),
    if (!is.null(cv)) {
      around <- which(cv$chosen) + (-2:2)
      shown <- cv[sort(union(which.min(cv$score),
                             intersect(around, seq_len(nrow(cv))))), ]
      # The error that the rule goes by.
      error <- if (x$rule == "paired") "se_above" else "se"
      shown <- shown[c("mu", "score", error, "chosen")]
      list(cv = structure(shown, title = paste0(
        "Held-out criterion, ", nrow(cv), " penalties"
      )))
    })
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
    folds = if (is.null(x$cv)) NA_integer_ else nrow(attr(x$cv, "folds")),
    border = !is.null(attr(x$cv, "border"))
  ), kernel_columns(x$kernels[[1L]]))
}

fit_rows.rkhs_iv <- function(x, matrix = c("moments", "weights", "cv"), ...) {
  check_dots(...)
  switch(
    take(matrix, choice("moments", "weights", "cv")),
    moments = moment_table(x), cv = data.frame(check_cv(x, "matrix")),
    weights = {
      weights <- coef(x)
      if (!is.list(weights)) weights <- list(g = weights)
      rows <- rownames(as.matrix(x$fitted.values))
      if (is.null(rows)) rows <- seq_len(x$n)
      data.frame(term = rep(names(weights), each = x$n),
                 row = rep(rows, length(weights)),
                 weight = unlist(weights, use.names = FALSE))
    }
  )
}

check_cv <- function(x, name) {
  if (is.null(x$cv)) {
    stop_input("'", name, "' must not be \"cv\" unless the penalty was chosen ",
               "by cross-validation")
  }
  x$cv
}

#' @exportS3Method generics::augment
augment.rkhs_iv <- function(x, data = NULL, ..., newdata = NULL) {
  check_dots(...)
  same_version(x, "x")
  known <- names(Filter(\(block) knows_points(block$sample), x$blocks))
  if (!is.null(newdata)) {
    if (!is.null(data)) {
      stop_input("'data' must be NULL where 'newdata' is given")
    }
    found <- predict(x, newdata)
    parts <- if (is.matrix(found)) newdata else list(x = newdata)
    parts <- parts[names(parts) %in% known]
    frames <- Map(part_frame, parts, names(parts))
    frame <- bind_frames(frames, NROW(found), rownames(as.matrix(found)))
    return(add_columns(frame, iv_columns(found)))
  }
  frame <- if (is.null(data)) {
    y <- stats::setNames(list2DF(list(unname(x$y))), iv_names(x)$y)
    bind_frames(
      c(list(y), sapply(known, \(name) block_frame(x, name), simplify = FALSE)),
      x$n, rownames(as.matrix(x$fitted.values))
    )
  } else {
    check_sample_rows(data, x$n)
  }
  add_columns(frame, iv_columns(x$fitted.values, x$residuals))
}

fit_frame.rkhs_iv <- function(x) augment.rkhs_iv(x)

iv_columns <- function(fitted, residuals = NULL) {
  if (!is.matrix(fitted)) {
    return(data.frame(cbind(.fitted = fitted, .resid = residuals),
                      row.names = NULL))
  }
  added <- prefixed(fitted, ".fitted_")
  if (is.null(residuals)) added else
    cbind(added, prefixed(residuals, ".resid_"))
}

# The columns of a block with points as a data frame, in the units of the user.
block_frame <- function(object, name) {
  block <- object$blocks[[name]]
  if (is_mixed_variable(block)) {
    return(block$mixed$frame)
  }
  if (is_factor_variable(block)) {
    label <- if (is.null(object$terms)) name else iv_names(object)[[name]]
    return(stats::setNames(data.frame(variable_input(block)), label))
  }
  part_frame(sample_raw(block$sample), name)
}

# Points of a block; columns without a name are called by it.
part_frame <- function(part, name) {
  if (is.data.frame(part)) {
    return(part)
  }
  if (!is.matrix(part)) {
    return(stats::setNames(list2DF(list(unname(part))), name))
  }
  own <- colnames(part)
  labels <- paste0(name, if (ncol(part) > 1L) seq_len(ncol(part)))
  stats::setNames(as.data.frame(unname(part)), if (is.null(own)) labels else
    ifelse(nzchar(own), own, labels))
}

# One data frame of several. What two of them share is there once, other columns
# of the same name have that of their frame before it.
bind_frames <- function(frames, n, rows) {
  whole <- blank_frame(n, rows)
  for (l in seq_along(frames)) {
    for (name in names(frames[[l]])) {
      column <- frames[[l]][[name]]
      if (!name %in% names(whole)) {
        whole[[name]] <- column
      } else if (!identical(whole[[name]], column)) {
        whole[[paste0(names(frames)[l], ".", name)]] <- column
      }
    }
  }
  whole
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
#' There is no confidence band (see [rkhs_iv()]).
#'
#' `"cv"` draws the held-out criterion against \eqn{\mu}{mu} (of nested fits
#' \eqn{\mu_g}{mu_g}) with one standard error over folds to either side, its
#' minimum and the value that was chosen; for `rule = "1se"` also, dashed, what
#' a score may be at most. For `rule = "paired"` the bars are standard errors of
#' differences to the minimum, and dashed is what a bar must reach. It shows the
#' neighborhood of the minimum (`ylim` shows more).
#'
#' ```
#' plot(x, type = c("fit", "cv"), what = c("g", "h"), column = NULL, n = 200,
#'      ...)
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
#'   `.fitted`; for g and h a list of two; or the field `cv`.
#' @seealso [predict.rkhs_iv()] for values anywhere else
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
  known <- names(object$functions)
  if (!is.null(what)) known <- known[check_pick(what, known, "what", 1:2)]
  panels <- lapply(stats::setNames(nm = known), \(f) {
    picture_function(object, f, if (is.list(column)) column[[f]] else column, n)
  })
  if (length(panels) == 1L) {
    return(panels[[1L]])
  }
  notes <- unique(lapply(unname(panels), `[[`, "note"))
  list(panels = unname(panels), title = "Instrumental-variable estimates",
       xlab = "", ylab = "", free = TRUE,
       note = if (length(notes) == 1L) notes[[1L]],
       value = lapply(panels, `[[`, "value"))
}

# A function along one column.
picture_function <- function(object, f, column, n) {
  name <- function_block(object, f)
  block <- object$blocks[[name]]
  if (!knows_points(block$sample)) {
    stop_input("'type' must not be \"fit\" for ", f, ", as '", name, "' is a ",
               "gram without points, which has no columns to draw along")
  }
  data <- block_frame(object, name)
  j <- if (is.null(column)) {
    c(which(vapply(data, is.numeric, NA)), 1L)[[1L]]
  } else {
    check_pick(column, names(data), "column")
  }
  along <- data[[j]]
  graded <- is.numeric(along)
  levels <- if (!graded) levels(droplevels(as.factor(along)))
  at <- if (graded) seq(min(along), max(along), length.out = n) else
    factor(levels, levels)
  frame <- lapply(data, \(x) rep(middle_of(x), length(at)))
  frame[[j]] <- at
  frame <- list2DF(frame)
  new <- frame
  if (!is_mixed_variable(block) && !is_factor_variable(block)) {
    new <- as.matrix(frame)
    dimnames(new) <- list(NULL, colnames(sample_raw(block$sample)))
  }
  value <- unname(suppressWarnings(iv_values(object, f, new)))
  # The rows of the moment of the function.
  rows <- object$rows[[if (f == "g") "d" else "c"]]
  shown <- if (is.null(rows)) seq_along(along) else which(rows)
  w <- object$w
  y <- if (f == "g") object$y else
    (if (is.null(w)) 1 else w) * object$fitted.values[, "g"]
  y <- unname(y)[shown]
  ylab <- if (f == "g") iv_names(object)$y else
    paste0(if (!is.null(w)) "w ", "g(a)")
  layers <- if (graded) {
    list(points_layer(cbind(along[shown], y), color = "grey65"),
         curve_layer(at, value))
  } else {
    level_layers(match(as.character(along[shown]), levels), y, value)
  }
  label <- names(data)[j]
  new_picture(
    paste("Instrumental-variable estimate of", f), label, ylab, layers,
    cbind(frame, .fitted = value), note = others_note(frame[-j]),
    xlim = if (!graded) c(0.5, length(levels) + 0.5),
    ticks = if (!graded) list(at = seq_along(levels), labels = levels),
    panel = paste0(f, ": ", ylab, " against ", label)
  )
}

# The median, or the most frequent level.
middle_of <- function(x) {
  if (is.numeric(x)) {
    return(stats::median(x))
  }
  counts <- table(as.factor(x))
  factor(names(counts)[which.max(counts)])
}

# What the columns that are not drawn are at.
others_note <- function(others) {
  if (length(others)) {
    values <- vapply(others, \(x) {
      if (is.numeric(x)) format_number(x[1L], 3L) else as.character(x[1L])
    }, "")
    list(text = paste0("at ", shorten(paste(names(others), "=", values), 3L)),
         color = "grey30")
  }
}

curve_layer <- function(x, y) {
  new_layer("line", x = x, y = y,
            col = level_palette[1L], lwd = 2, main = TRUE)
}

# Bars at the levels over their points, which are side by side.
level_layers <- function(level, y, value) {
  rank <- stats::ave(level, level, FUN = seq_along)
  # Another irrational than that by which points_layer() takes a share.
  beside <- 0.6 * ((sqrt(2) * rank) %% 1 - 0.5)
  at <- seq_along(value)
  list(
    points_layer(cbind(level + beside, y), color = "grey65"),
    curve_layer(as.vector(rbind(at - 0.4, at + 0.4, NA)),
                as.vector(rbind(value, value, NA)))
  )
}

picture_held_out <- function(object) {
  cv <- check_cv(object, "type")
  best <- which.min(cv$score)
  chosen <- which(cv$chosen)
  marks <- unique(c(chosen, best))
  nested <- is_nested_fit(object)
  labels <- c(paste0(names(object$mu)[1L], " = ",
                     format(cv$mu[chosen], digits = 3),
                     if (chosen == best) ", the minimum"),
              "minimum")[seq_along(marks)]
  colors <- c(accent, "black")[seq_along(marks)]
  symbols <- c(21L, 24L)[seq_along(marks)]
  # The bars of the paired rule are those of differences to the minimum.
  paired <- object$rule == "paired"
  se <- if (paired) cv$se_above else cv$se
  limit <- if (object$rule != "min") {
    cv$score[best] + if (paired) 0 else se[best]
  }
  limit_label <- if (paired) "bars: 1 se of the difference" else
    "minimum + 1 se"
  new_picture(
    paste0("Held-out criterion (", nrow(attr(cv, "folds")),
           "-fold cross-validation)"),
    if (nested) "mu_g" else expression(mu), "criterion",
    list(
      error_layer(cv$mu, cv$score, se),
      if (!is.null(limit)) across_layer(h = limit, level = limit_label),
      new_layer("line", x = cv$mu, y = cv$score, lwd = 2, main = TRUE),
      mark_layer(cv$mu[marks], cv$score[marks], labels, colors, symbols)
    ),
    cv, ylim = held_out_window(cv, best), log = "x",
    key = rbind(key_entries(labels, colors, pch = symbols),
                if (!is.null(limit)) key_entries(limit_label, "grey40", "line",
                                                 lty = 2L))
  )
}

# From the smallest penalties on the criterion may fall by orders of magnitude.
held_out_window <- function(cv, best) {
  se <- ifelse(is.na(cv$se), 0, cv$se)
  top <- min(max(cv$score + se),
             max(3 * cv$score[best], cv$score[best] + 4 * se[best]))
  bottom <- min((cv$score - se)[cv$score <= top])
  c(bottom, if (top > bottom) top else bottom + 1)
}

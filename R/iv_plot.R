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
#' @family instrumental variables
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
  n <- check_count(n, "n", 2L)
  known <- names(object$functions)
  if (!is.null(what) && !identical(what, "both")) {
    known <- known[check_pick(what, known, "what", 1:2)]
  }
  wanted <- stats::setNames(nm = known)
  columns <- lapply(wanted, \(f) if (is.list(column)) column[[f]] else column)
  panels <- Map(\(f, column) picture_function(object, f, column, n), wanted,
                columns)
  if (length(panels) == 1L) {
    return(panels[[1L]])
  }
  notes <- unique(lapply(unname(panels), `[[`, "note"))
  list(panels = unname(panels), title = "Instrumental-variable estimates",
       xlab = "", ylab = "", free = TRUE,
       note = if (length(notes) == 1L) notes[[1L]],
       value = lapply(panels, `[[`, "value"))
}

# --- Blocks in the units of the user -----------------------------------------

# The block that a function is of.
function_block <- function(object, f) {
  names(object$blocks)[match(f, names(object$functions))]
}

# The columns of a block with points as a data frame; those without a name are
# called by the block.
block_frame <- function(object, name) {
  block <- object$blocks[[name]]
  if (is_mixed_variable(block)) {
    return(block$mixed$frame)
  }
  if (is_factor_variable(block)) {
    label <- iv_label(object, name)
    return(stats::setNames(data.frame(variable_input(block)),
                           if (is.null(label)) name else label))
  }
  name_columns(sample_raw(block$sample), name)
}

name_columns <- function(x, name) {
  own <- colnames(x)
  labels <- paste0(name, if (ncol(x) > 1L) seq_len(ncol(x)))
  frame <- as.data.frame(unname(x))
  names(frame) <- if (is.null(own)) labels else ifelse(nzchar(own), own, labels)
  frame
}

# What the formula calls the outcome, or the only term of a block.
iv_label <- function(object, name) {
  layout <- object$terms
  if (is.null(layout)) {
    return(NULL)
  }
  at <- if (name == "y") 1L else
    attr(layout, "groups")[[match(name, names(object$blocks))]]
  deparse1(attr(layout, "variables")[[at + 1L]])
}

# The values of a function at the rows of such a frame.
function_along <- function(object, f, frame) {
  name <- function_block(object, f)
  block <- object$blocks[[name]]
  new <- if (is_mixed_variable(block)) {
    frame
  } else if (is_factor_variable(block)) {
    frame[[1L]]
  } else {
    x <- as.matrix(frame)
    dimnames(x) <- list(NULL, colnames(sample_raw(block$sample)))
    x
  }
  values <- function_at(object$functions[[f]], block$sample,
                        variable_newdata(block, new, name))
  values + object$intercept
}

# --- Along one column --------------------------------------------------------

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
  along <- data[[j]]
  graded <- is.numeric(along)
  at <- if (graded) {
    seq(min(along), max(along), length.out = n)
  } else {
    levels <- levels(droplevels(as.factor(along)))
    factor(levels, levels)
  }
  frame <- lapply(data, \(x) rep(middle_of(x), length(at)))
  frame[[j]] <- at
  frame <- list2DF(frame)
  value <- function_along(object, f, frame)
  points <- moment_points(object, f, along)
  layers <- if (graded) {
    list(points_layer(cbind(points$x, points$y), color = "grey65"),
         curve_layer(at, value))
  } else {
    level_layers(points, levels, value)
  }
  label <- names(data)[j]
  new_picture(
    paste("Instrumental-variable estimate of", f), label, points$label, layers,
    cbind(frame, .fitted = value), note = others_note(frame[-j]),
    xlim = if (!graded) c(0.5, length(levels) + 0.5),
    ticks = if (!graded) list(at = seq_along(levels), labels = levels),
    panel = paste0(f, ": ", points$label, " against ", label)
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
  if (!length(others)) {
    return(NULL)
  }
  values <- vapply(others, \(x) if (is.numeric(x)) {
    format_number(x[1L], 3L)
  } else {
    as.character(x[1L])
  }, "")
  list(text = paste0("at ", shorten(paste(names(others), "=", values), 3L)),
       color = "grey30")
}

# The rows of the moment of a function: list(x, y, label).
moment_points <- function(object, f, along) {
  if (f == "g") {
    y <- object$y
    label <- iv_label(object, "y")
    if (is.null(label)) label <- "y"
  } else {
    g <- object$fitted.values[, "g"]
    y <- if (is.null(object$w)) g else object$w * g
    label <- if (is.null(object$w)) "g(a)" else "w g(a)"
  }
  rows <- object$rows[[c(g = "d", h = "c")[[f]]]]
  shown <- if (is.null(rows)) seq_along(y) else which(rows)
  list(x = along[shown], y = unname(y[shown]), label = label)
}

curve_layer <- function(x, y) {
  new_layer("line", x = x, y = y,
            col = level_palette[1L], lwd = 2, main = TRUE)
}

# Bars at the levels over their points, which are side by side.
level_layers <- function(points, levels, value) {
  level <- match(as.character(points$x), levels)
  rank <- stats::ave(level, level, FUN = seq_along)
  # Another irrational than that by which points_layer() takes a share.
  beside <- 0.6 * ((sqrt(2) * rank) %% 1 - 0.5)
  at <- seq_along(levels)
  list(
    points_layer(cbind(level + beside, points$y), color = "grey65"),
    curve_layer(as.vector(rbind(at - 0.4, at + 0.4, NA)),
                as.vector(rbind(value, value, NA)))
  )
}

# --- Held-out criterion ------------------------------------------------------

picture_held_out <- function(object) {
  cv <- object$cv
  if (is.null(cv)) {
    stop_input("'type' must not be \"cv\" unless the penalty was chosen by ",
               "cross-validation")
  }
  best <- which.min(cv$score)
  chosen <- which(cv$chosen)
  nested <- length(object$mu) > 1L
  name <- if (nested) "mu_g" else "mu"
  labels <- c(paste0(name, " = ", format(cv$mu[chosen], digits = 3),
                     if (chosen == best) ", the minimum"),
              if (chosen != best) "minimum")
  marks <- c(chosen, if (chosen != best) best)
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
  dashed <- if (!is.null(limit)) across_layer(h = limit, level = limit_label)
  new_picture(
    paste0("Held-out criterion (", nrow(attr(cv, "folds")),
           "-fold cross-validation)"),
    if (nested) name else expression(mu), "criterion",
    list(
      error_layer(cv$mu, cv$score, se),
      dashed,
      new_layer("line", x = cv$mu, y = cv$score, lwd = 2,
                main = TRUE),
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
  shown <- cv$score <= top
  bottom <- min((cv$score - se)[shown])
  c(bottom, if (top > bottom) top else bottom + 1)
}

#' Plots of a kernel mean
#'
#' The selection curve, the embedding itself, or the weights.
#'
#' `"selection"` draws the score against \eqn{\lambda}{lambda} with the chosen
#' value marked and, where the score is a leave-one-out score, that of the KME
#' as a dashed line; it shows the neighbourhood of the minimum (`xlim` and
#' `ylim` show more). For MKME the score is drawn against the variance
#' \eqn{\sigma^2}{sigma^2}. `"noise"` draws the variances of MMKME as bars, for
#' an RBF kernel relative to \eqn{\theta_l^2}{theta_l^2}. `"embedding"` draws
#' \eqn{\tilde\mu(z)}{mu(z)} as a curve for one column (with the KME dashed, if
#' the fit is another estimate) and as contours with the points for two.
#' `"weights"` draws \eqn{n\beta_i}{n beta_i} in increasing order; the KME is
#' the line at 1.
#'
#' @param x A fit of [kme()].
#' @param y Must be missing, or the `type`.
#' @param type What to draw, also as the second argument; by default the first
#'   that applies.
#' @param n Points on an axis of the grid for the embedding.
#' @param ... Passed to [plot.default()] (`"embedding"` in two columns: titles,
#'   labels and limits to [image()], the rest to [contour()]).
#' @return What was drawn, invisibly: a data frame with `lambda` (or `noise`)
#'   and `score`, `noise` and `relative`, `z` and `value`, or `rank` and
#'   `weight`; for two columns `list(x, y, z)` as of [contour()].
#' @family kernel means
#' @examples
#' fit <- kme(scale(faithful), kernel_rbf(0.5), "fkmse")
#' plot(fit)
#' plot(fit, type = "embedding")
#' plot(kme(faithful$waiting, kernel_rbf(3), "fkmse", lambda = 1),
#'      type = "embedding")
#' @export
plot.kme <- function(x, y,
                     type = c("selection", "noise", "embedding", "weights"),
                     n = 100, ...) {
  types <- c("selection", "noise", "embedding", "weights")
  type <- if (!missing(y)) {
    check_choice(y, types, "type")
  } else if (missing(type)) {
    default_plot(x)
  } else {
    check_choice(type, types, "type")
  }
  n <- check_count(n, "n", 2L)
  switch(type,
    selection = plot_selection(x, ...),
    noise = plot_noise(x, ...),
    embedding = plot_embedding(x, n, ...),
    weights = plot_weights(x, ...)
  )
}

default_plot <- function(object) {
  if (!is.null(object$score)) {
    "selection"
  } else if (object$estimator == "mmkme") {
    "noise"
  } else if (!is.null(object$x) && ncol(object$x) <= 2L) {
    "embedding"
  } else {
    "weights"
  }
}

check_no_y <- function(absent) {
  if (!absent) {
    stop_input(
      "'y' must be missing; what to draw is an argument by name, as in ",
      "plot(x, type = \"weights\")"
    )
  }
}

# Draws with defaults that the caller's dots override.
draw <- function(f, defaults, ...) {
  do.call(f, utils::modifyList(defaults, list(...)), quote = TRUE)
}

plot_selection <- function(object, ...) {
  curve <- object$score
  if (is.null(curve)) {
    stop_input(
      "'type' must not be \"selection\" for a fit that selected nothing ",
      "along a curve"
    )
  }
  window <- selection_window(object)
  name <- names(curve)[1L]
  draw(graphics::plot, list(
    x = curve[[1L]], y = curve$score, log = "x", type = "l", lwd = 2,
    xlim = window$x, ylim = window$y, ylab = "score",
    xlab = if (name == "noise") expression(sigma^2) else expression(lambda),
    main = paste0("Selection score (", select_title[[object$select]], ")")
  ), ...)
  if (!is.null(object$reference)) {
    abline(h = object$reference, lty = 2, col = "grey40")
  }
  at <- min(max(object[[name]], min(curve[[1L]])), max(curve[[1L]]))
  abline(v = at, lty = 3)
  points(at, object$minimum, pch = 19, col = "#D55E00")
  legend(
    "topleft", bty = "n", inset = 0.02, cex = 0.9,
    legend = c(
      paste("chosen:", if (name == "noise") "noise" else "lambda", "=",
            format(object[[name]], digits = 3)),
      if (!is.null(object$reference)) paste(
        "score of the", if (inherits(object, "kme")) "KME" else
          "empirical operator"
      )
    ),
    pch = c(19, NA), col = c("#D55E00", "grey40"), lty = c(NA, 2)
  )
  invisible(curve)
}

# The neighbourhood of the minimum, list(x, y): up to a few times what it gains,
# and some decades of lambda; the curve leaves it where it shrinks far too much.
selection_window <- function(object) {
  curve <- object$score
  base <- if (is.null(object$reference)) curve$score[1L] else object$reference
  gain <- base - object$minimum
  if (gain <= 1e-8 * abs(base)) {
    y <- range(curve$score, base)
    # Noise with a polynomial kernel has no largest score.
    top <- if (base > 0) min(y[2L], 3 * base) else y[2L]
    return(list(x = range(curve[[1L]]), y = c(y[1L], top)))
  }
  y <- object$minimum + c(-0.3, 4) * gain
  inside <- curve[[1L]][curve$score <= y[2L]]
  ends <- range(curve[[1L]])
  chosen <- min(object[[names(curve)[1L]]], ends[2L])
  list(
    x = c(max(ends[1L], 1e-5 * chosen),
          min(ends[2L], 10 * max(inside, chosen))),
    y = y
  )
}

# The variances column by column.
plot_noise <- function(object, ...) {
  if (object$estimator != "mmkme") {
    stop_input(
      "'type' must not be \"noise\" unless the fit is MMKME, with a variance ",
      "for each column"
    )
  }
  noise <- object$noise
  theta <- object$kernel$bandwidth
  shown <- if (is.null(theta)) noise else noise / theta^2
  labels <- names(noise)
  draw(graphics::barplot, list(
    height = unname(shown), col = "#56B4E9", border = NA,
    ylim = c(0, if (any(shown > 0)) 1.05 * max(shown) else 1),
    names.arg = if (is.null(labels)) seq_along(noise) else labels,
    las = if (sum(nchar(labels)) > 40 || length(noise) > 12) 2 else 1,
    cex.names = if (length(noise) > 12) 0.7 else 1,
    ylab = if (is.null(theta)) "variance" else "variance / theta^2",
    main = "Noise by column (MMKME)"
  ), ...)
  abline(h = 0)
  invisible(data.frame(noise = noise, relative = shown))
}

plot_embedding <- function(object, n, ...) {
  d <- ncol(object$x)
  if (is.null(d) || d > 2L) {
    stop_input(
      "'type' must not be \"embedding\" unless the fit has one or two columns",
      if (!is.null(d)) paste0(", not ", d)
    )
  }
  if (d == 1L) plot_curve(object, n, ...) else plot_contours(object, n, ...)
}

padded_range <- function(x) {
  width <- diff(range(x))
  range(x) + c(-1, 1) * (if (width > 0) 0.15 * width else 1)
}

axis_names <- function(x) {
  if (!is.null(colnames(x))) {
    colnames(x)
  } else if (ncol(x) == 1L) {
    "x"
  } else {
    c("x[1]", "x[2]")
  }
}

plot_curve <- function(object, n, ...) {
  z <- seq(padded_range(object$x)[1], padded_range(object$x)[2], length.out = n)
  value <- predict(object, matrix(z, dimnames = list(NULL, colnames(object$x))))
  plain <- object$estimator == "kme"
  mean <- if (!plain) fold_rows(object$kernel, matrix(z), object$x) / object$n
  draw(graphics::plot, list(
    x = z, y = value, type = "l", lwd = 2, las = 1,
    ylim = range(0, value, mean), xlab = axis_names(object$x),
    ylab = "embedding", main = estimator_title(object)
  ), ...)
  if (!plain) {
    lines(z, mean, lty = 2, col = "grey40")
    legend("topright", c("estimate", "KME"), lty = 1:2, lwd = 2:1,
           col = c("black", "grey40"), bty = "n")
  }
  rug(object$x)
  invisible(data.frame(z = z, value = unname(value)))
}

plot_contours <- function(object, n, ...) {
  at <- \(z) {
    colnames(z) <- colnames(object$x)
    predict(object, z)
  }
  surface <- draw_surface(object$x, at, n, estimator_title(object), ...,
                          colours = blues)
  draw_points(object$x, "#D55E00")
  box()
  invisible(surface)
}

# The image and contours of the function `at` over the plane of the points x.
# colours(value) gives the range of values and the colours for it. Of the
# caller's dots, titles and limits are for the frame, the rest for the contours.
draw_surface <- function(x, at, n, title, ..., colours) {
  dots <- list(...)
  framed <- names(dots) %in% c("main", "sub", "xlab", "ylab", "xlim", "ylim",
                               "asp", "las", "axes", "ann", "xaxt", "yaxt",
                               "bty", "cex.main", "cex.lab", "cex.axis",
                               "col.main", "font.main")
  axes <- lapply(1:2, \(j) {
    ends <- padded_range(x[, j])
    seq(ends[1], ends[2], length.out = n)
  })
  value <- matrix(at(as.matrix(expand.grid(axes))), n, n)
  names <- axis_names(x)
  scale <- colours(value)
  do.call(draw, c(list(image, list(
    x = axes[[1]], y = axes[[2]], z = value, las = 1, xlab = names[1],
    ylab = names[2], zlim = scale[[1L]], col = scale[[2L]], main = title,
    useRaster = TRUE
  )), dots[framed]), quote = TRUE)
  do.call(draw, c(list(contour, list(
    x = axes[[1]], y = axes[[2]], z = value, add = TRUE, col = "grey20",
    labcex = 0.8
  )), dots[!framed]), quote = TRUE)
  list(x = axes[[1]], y = axes[[2]], z = value)
}

blues <- \(value) list(range(value), hcl.colors(64, "Blues 3", rev = TRUE))

most_points_drawn <- 2000

# Points with a white rim, in an order in which no group covers another; of
# many an even share.
draw_points <- function(x, colour) {
  n <- nrow(x)
  shown <- order((0.618034 * seq_len(n)) %% 1)
  shown <- shown[seq_len(min(n, most_points_drawn))]
  points(x[shown, , drop = FALSE], pch = 21, col = "white",
         cex = if (length(shown) > 300) 0.5 else 0.8,
         bg = rep_len(colour, n)[shown])
}

# --- Points in groups ------------------------------------------------------

okabe_ito <- c("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7",
               "#56B4E9", "#F0E442", "#000000")

level_colours <- function(count) {
  if (count <= length(okabe_ito)) {
    okabe_ito[seq_len(count)]
  } else {
    hcl.colors(count, "viridis")
  }
}

# The group of each of n points as a factor, or NULL.
check_group <- function(group, n) {
  if (is.null(group)) {
    return(NULL)
  }
  if (!is.atomic(group) || length(group) != n || anyNA(group)) {
    stop_input(
      "'group' must have one value for each of the ", n, " points, none ",
      "missing, not ",
      if (anyNA(group)) {
        paste(sum(is.na(group)), "NA")
      } else {
        paste0(describe(group), if (is.factor(group)) {
          paste(" of length", length(group))
        })
      }
    )
  }
  droplevels(as.factor(group))
}

# The points xy in the colours of their groups (a factor or NULL) with a legend;
# of the caller's dots, `col`, `pch`, `cex` and the like are for the points, the
# rest for the frame. lines_at: where dotted lines cross.
draw_groups <- function(xy, group, defaults, dots, lines_at = c(NA, NA)) {
  frame <- dots[!names(dots) %in% point_style]
  do.call(draw, c(list(graphics::plot, c(
    list(x = unname(xy), type = "n", las = 1), defaults
  )), frame), quote = TRUE)
  abline(v = lines_at[1L], h = lines_at[2L], lty = 3, col = "grey60")
  group_points(xy, group, dots)
  if (!is.null(group) && is.null(dots[["col"]])) {
    level_legend(levels(group), xy)
  }
}

point_style <- c("col", "pch", "cex", "bg", "lwd")

group_points <- function(xy, group, dots) {
  colours <- level_colours(max(1L, nlevels(group)))
  colour <- if (is.null(group)) colours else colours[as.integer(group)]
  own <- dots[names(dots) %in% point_style]
  if (length(own)) {
    do.call(points, c(list(xy), utils::modifyList(
      list(pch = 19, col = colour), own
    )))
  } else {
    draw_points(xy, colour)
  }
}

# In the corner where the fewest points are; of many levels a few.
level_legend <- function(labels, xy, pch = 21, places = names(corners)) {
  usr <- graphics::par("usr")
  unit <- cbind((xy[, 1L] - usr[1L]) / (usr[2L] - usr[1L]),
                (xy[, 2L] - usr[3L]) / (usr[4L] - usr[3L]))
  corners <- list(topright = c(1, 1), topleft = c(0, 1),
                  bottomright = c(1, 0), bottomleft = c(0, 0))
  crowd <- vapply(corners[places], \(corner) {
    sum(abs(unit[, 1L] - corner[1L]) < 0.3 & abs(unit[, 2L] - corner[2L]) < 0.3)
  }, numeric(1))
  count <- length(labels)
  shown <- if (count <= length(okabe_ito)) {
    seq_len(count)
  } else {
    unique(round(seq(1, count, length.out = 5L)))
  }
  legend(names(which.min(crowd)), labels[shown], pch = pch,
         pt.bg = level_colours(count)[shown], col = "white", bg = "white",
         box.col = "grey60", inset = 0.02, cex = 0.9)
}

plot_weights <- function(object, ...) {
  weights <- sort(object$n * object$weights)
  draw(graphics::plot, list(
    x = seq_along(weights), y = weights, las = 1,
    type = if (length(weights) > 200) "l" else "h",
    ylim = range(0, 1, weights), xlab = "rank", ylab = "n times weight",
    main = estimator_title(object)
  ), ...)
  abline(h = 1, lty = 2, col = "grey40")
  invisible(data.frame(rank = seq_along(weights), weight = weights / object$n))
}

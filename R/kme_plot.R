#' Plots of a kernel mean
#'
#' The selection curve, the embedding itself, or the weights.
#'
#' `"selection"` draws the score against \eqn{\lambda}{lambda} with the chosen
#' value marked and, where the score is a leave-one-out score, that of the KME
#' as a dashed line; it shows the neighborhood of the minimum (`xlim` and
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
  type <- plot_type(c("selection", "noise", "embedding", "weights"),
                    if (!missing(y)) y, if (!missing(type)) type,
                    default_plot(x))
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
  } else if (has_column_noise(object)) {
    "noise"
  } else if (knows_points(object$sample) && ncol(object$sample$x) <= 2L) {
    "embedding"
  } else {
    "weights"
  }
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

# The neighborhood of the minimum, list(x, y): up to a few times what it gains,
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

has_column_noise <- function(object) {
  !is.null(object$noise) && object$estimator$by_column
}

# The variances column by column.
plot_noise <- function(object, ...) {
  if (!has_column_noise(object)) {
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
  d <- ncol(object$sample$x)
  if (is.null(d) || d > 2L) {
    stop_input(
      "'type' must not be \"embedding\" unless the fit has one or two columns",
      if (!is.null(d)) paste0(", not ", d)
    )
  }
  if (d == 1L) plot_curve(object, n, ...) else plot_contours(object, n, ...)
}

plot_curve <- function(object, n, ...) {
  x <- object$sample$x
  z <- seq(padded_range(x)[1], padded_range(x)[2], length.out = n)
  value <- predict(object, matrix(z, dimnames = list(NULL, colnames(x))))
  average <- rep(1 / object$n, object$n)
  plain <- identical(object$weights, average) && is.null(object$noise)
  mean <- if (!plain) {
    drop(sample_at(object$sample, new_points(matrix(z)), average))
  }
  draw(graphics::plot, list(
    x = z, y = value, type = "l", lwd = 2, las = 1,
    ylim = range(0, value, mean), xlab = axis_names(x),
    ylab = "embedding", main = mean_title(object)
  ), ...)
  if (!plain) {
    lines(z, mean, lty = 2, col = "grey40")
    legend("topright", c("estimate", "KME"), lty = 1:2, lwd = 2:1,
           col = c("black", "grey40"), bty = "n")
  }
  rug(x)
  invisible(data.frame(z = z, value = unname(value)))
}

plot_contours <- function(object, n, ...) {
  x <- object$sample$x
  at <- \(z) {
    colnames(z) <- colnames(x)
    predict(object, z)
  }
  surface <- draw_surface(x, at, n, mean_title(object), ...,
                          colors = blues)
  draw_points(x, "#D55E00")
  box()
  invisible(surface)
}

# --- Points in groups ------------------------------------------------------

plot_weights <- function(object, ...) {
  weights <- sort(object$n * object$weights)
  draw(graphics::plot, list(
    x = seq_along(weights), y = weights, las = 1,
    type = if (length(weights) > 200) "l" else "h",
    ylim = range(0, 1, weights), xlab = "rank", ylab = "n times weight",
    main = mean_title(object)
  ), ...)
  abline(h = 1, lty = 2, col = "grey40")
  invisible(data.frame(rank = seq_along(weights), weight = weights / object$n))
}

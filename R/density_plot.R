#' Plot of a density by kernel mean matching
#'
#' The curve over a histogram for one column, contours with the components for
#' two.
#'
#' In one column the density is drawn over the histogram of the sample, the
#' components (times their weights) as thin curves. In two columns it is drawn
#' as contours with the points and, for each component, a circle (an ellipse
#' where the axes have other scales) of one standard deviation, its line the
#' wider the greater the weight. Of more columns `columns` says which one or two
#' are drawn: their marginal density, which is a mixture of the same weights and
#' variances.
#'
#' `"path"` draws for `optimize = "all"` what decided where to stop, step by
#' step: the mean log density of the points held out, or J.
#'
#' @param x A fit of [kme_density()].
#' @param y Must be missing, or the `type`.
#' @param type `"density"` or `"path"`, also as the second argument.
#' @param ... Passed to the plot of [hist()] (one column; `breaks` to `hist()`
#'   itself); for two columns titles, labels and limits to [image()], the rest
#'   to [contour()]; for the path to [plot.default()].
#' @param columns One or two columns, by number or name; by default the first
#'   two, or the only one.
#' @param n Points on an axis of the grid.
#' @return What was drawn, invisibly: a data frame with `z` and `density`;
#'   `list(x, y, z)` as of [contour()]; the `path`.
#' @family densities
#' @examples
#' fit <- kme_density(scale(iris[, 1:4]), m = 5)
#' plot(fit, columns = 3)
#' plot(fit, columns = c("Sepal.Length", "Petal.Length"))
#' @export
plot.kme_density <- function(x, y, type = c("density", "path"), ...,
                             columns = NULL, n = 200) {
  type <- plot_type(c("density", "path"), if (!missing(y)) y,
                    if (!missing(type)) type)
  if (type == "path") {
    return(plot_path(x, ...))
  }
  n <- check_count(n, "n", 2L)
  points <- x$sample$x
  columns <- check_shown(columns, points)
  marginal <- list(
    x = points[, columns, drop = FALSE], weights = x$weights,
    means = x$means[, columns, drop = FALSE], variances = x$variances
  )
  title <- paste("Density matched to the", x$estimator$label)
  if (length(columns) == 1L) {
    plot_density_curve(marginal, n, title, ...)
  } else {
    plot_density_contours(marginal, n, title, ...)
  }
}

# One or two columns of x as numbers.
check_shown <- function(columns, x) {
  if (is.null(columns)) {
    return(seq_len(min(2L, ncol(x))))
  }
  at <- if (is.character(columns)) match(columns, colnames(x)) else columns
  ok <- is.numeric(at) && length(at) %in% 1:2 && all(at %in% seq_len(ncol(x)))
  if (!ok || anyDuplicated(at)) {
    stop_input("'columns' must be one or two different columns of the fit, by ",
               "number up to ", ncol(x), " or by name, not ",
               if (is.numeric(columns) && length(columns) %in% 1:3) {
                 toString(columns)
               } else {
                 describe(columns)
               })
  }
  as.integer(at)
}

# Where the density is to be seen: around the points and the components.
shown_range <- function(x, means, sd) {
  range(padded_range(x), means - 2 * sd, means + 2 * sd)
}

plot_density_curve <- function(q, n, title, ...) {
  x <- drop(q$x)
  ends <- shown_range(x, q$means, sqrt(q$variances))
  z <- seq(ends[1L], ends[2L], length.out = n)
  each <- vapply(seq_along(q$weights), \(j) {
    q$weights[j] * stats::dnorm(z, q$means[j], sqrt(q$variances[j]))
  }, numeric(length(z)))
  value <- exp(mixture_log(q, matrix(z)))
  dots <- list(...)
  breaks <- dots$breaks
  if (is.null(breaks)) breaks <- min(grDevices::nclass.FD(x), n)
  bars <- graphics::hist(x, breaks = breaks, plot = FALSE)
  do.call(draw, c(list(graphics::plot, list(
    x = bars, freq = FALSE, col = "grey90", border = "white", las = 1,
    xlim = ends, ylim = c(0, max(bars$density, value)),
    xlab = axis_names(q$x), main = title
  )), dots[names(dots) != "breaks"]), quote = TRUE)
  graphics::matlines(z, each, lty = 1, col = "#56B4E9")
  lines(z, value, lwd = 2, col = "#0072B2")
  rug(x)
  invisible(data.frame(z = z, density = value))
}

plot_density_contours <- function(q, n, title, ...) {
  sd <- sqrt(q$variances)
  # draw_surface() pads the range that it is given.
  frame <- vapply(1:2, \(j) {
    range(q$x[, j], q$means[, j] - sd, q$means[, j] + sd)
  }, numeric(2))
  colnames(frame) <- colnames(q$x)
  surface <- draw_surface(frame, \(z) exp(mixture_log(q, z)), n, title, ...,
                          colors = blues)
  draw_points(q$x, "#D55E00")
  angle <- seq(0, 2 * pi, length.out = 100)
  for (j in seq_along(sd)) {
    lines(q$means[j, 1] + sd[j] * cos(angle), q$means[j, 2] +
            sd[j] * sin(angle), lwd = 0.5 + 3 * q$weights[j] / max(q$weights))
  }
  points(q$means, pch = 3)
  box()
  invisible(surface)
}

plot_path <- function(object, ...) {
  path <- object$path
  if (is.null(path)) {
    stop_input("'type' must not be \"path\" unless the fit has optimize = ",
               "\"all\"")
  }
  heldout <- !is.null(path$heldout)
  value <- if (heldout) -path$heldout else path$objective
  step <- suppressWarnings(as.numeric(path$step))
  step[is.na(step)] <- 0
  draw(graphics::plot, list(
    x = step[-1L], y = value[-1L], type = "l", lwd = 2, ylim = range(value),
    xlab = "steps (dashed: the start, point: what was returned)",
    ylab = if (heldout) "log density of the points held out" else "J",
    main = "Where the fit stopped"
  ), ...)
  abline(h = value[1L], lty = 2, col = "grey40")
  at <- stop_row(object)
  points(step[at], value[at], pch = 19, col = "#D55E00")
  invisible(path)
}

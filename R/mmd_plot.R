#' Plots of a two-sample test
#'
#' The null distribution with the observed statistic, or the witness function
#' that shows where two samples differ.
#'
#' `"null"` draws a histogram of the draws (a curve for `null = "gamma"`) with
#' the observed statistic. `"witness"` draws \eqn{\hat\mu_x(z) -
#' \hat\mu_y(z)}{mu_x(z) - mu_y(z)} of the plain kernel means whatever the
#' estimator of the test, positive where the first sample is denser:
#' a curve for one column and contours for two; otherwise the points along the
#' two leading kernel principal axes of the pooled sample (of 1,000 points at
#' most, evenly spaced), filled blue where it is positive and red where it is
#' negative, with the rim in the color of the sample.
#'
#' @param x A test of [mmd_test()].
#' @param y,type `"null"` or `"witness"`, by name or as the second argument.
#' @param n Points on an axis of the grid for the witness function.
#' @param ... Passed to [hist()] or [plot.default()].
#' @return What was drawn, invisibly: the draws; a data frame with `z` and
#'   `value`; `list(x, y, z)` as of [contour()]; or a data frame with `PC1`,
#'   `PC2`, `group`, `value`.
#' @family tests
#' @examples
#' set.seed(1)
#' test <- mmd_test(rnorm(100), rnorm(100, sd = 2))
#' plot(test)
#' plot(test, "witness")
#' plot(mmd_test(iris[1:50, 1:4], iris[51:100, 1:4], B = 99), "witness")
#' @export
plot.mmd_test <- function(x, y, type = c("null", "witness"), n = 100, ...) {
  type <- plot_type(c("null", "witness"), if (!missing(y)) y,
                    if (!missing(type)) type)
  if (type == "null") {
    return(plot_null(x, ...))
  }
  n <- check_count(n, "n", 2L)
  plot_witness(x, n, ...)
}

plot_witness <- function(test, n, ...) {
  if (length(test$sizes) != 2L) {
    stop_input("'type' must not be \"witness\" for more than two samples")
  }
  if (!is.null(test$arguments$bandwidths)) {
    stop_input("'type' must not be \"witness\" for many bandwidths")
  }
  sample <- test$sample
  group <- as.integer(test$groups)
  weights <- c(1, -1)[group] / unname(test$sizes)[group]
  if (!knows_points(sample) || ncol(sample$x) > 2L) {
    return(plot_witness_points(test, weights, ...))
  }
  x <- sample$x
  at <- \(z) drop(sample_at(sample, new_points(z), weights))
  if (ncol(x) == 1L) {
    ends <- padded_range(x)
    z <- seq(ends[1L], ends[2L], length.out = n)
    value <- at(matrix(z))
    draw(graphics::plot, list(
      x = z, y = value, type = "l", lwd = 2, las = 1, xlab = axis_names(x),
      ylab = "witness", main = "Witness function"
    ), ...)
    abline(h = 0, lty = 2, col = "grey40")
    for (g in 1:2) {
      rug(x[group == g], side = c(1, 3)[g], col = level_colors(2L)[g])
    }
    sizes_legend(test)
    return(invisible(data.frame(z = z, value = value)))
  }
  surface <- draw_surface(x, at, n, "Witness function", ...,
                          colors = diverging)
  draw_points(x, level_colors(2L)[group])
  box()
  sizes_legend(test)
  invisible(surface)
}

sizes_legend <- function(test) {
  legend("topright", names(test$sizes), pch = 21, pt.bg = level_colors(2L),
         col = "white", bg = "white", box.col = "grey60", inset = 0.02,
         cex = 0.9)
}

most_points_on_axes <- 1000L

# The points along the leading kernel principal axes of the pooled sample.
plot_witness_points <- function(test, weights, ...) {
  sample <- test$sample
  n <- sample$n
  shown <- unique(round(seq(1, n, length.out = min(n, most_points_on_axes))))
  part <- walkable_sample(sample_take(sample, shown))
  value <- if (knows_points(sample)) {
    drop(sample_at(sample, new_points(part$x), weights))
  } else {
    sample_apply(sample, weights)[shown]
  }
  # Centered by hand: a mean has no norm in the space of the energy kernel.
  rows <- sample_rows(part) / part$n
  s <- centered_spectrum(list(sample = part, n = part$n, at = rows,
                             norm2 = mean(rows)), 2L)
  scores <- s$vectors * rep(sqrt(s$values), each = part$n)
  group <- test$groups[shown]
  scale <- diverging(value)
  shade <- scale[[2L]][1 + round(32 * (1 + value / scale[[1L]][2L]))]
  draw(graphics::plot, list(
    x = scores, xlab = "kernel PC1", ylab = "kernel PC2", las = 1,
    pch = c(21, 24)[as.integer(group)], bg = shade, lwd = 1.5,
    col = level_colors(2L)[as.integer(group)],
    main = "Witness function on kernel principal axes"
  ), ...)
  legend("topright", names(test$sizes), pch = c(21, 24), pt.bg = "white",
         col = level_colors(2L), pt.lwd = 1.5, bg = "white",
         box.col = "grey60", inset = 0.02, cex = 0.9)
  invisible(data.frame(PC1 = scores[, 1L], PC2 = scores[, 2L], group = group,
                       value = value))
}

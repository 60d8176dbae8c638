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
#' negative, with the rim in the colour of the sample.
#'
#' @param x A test of [mmd_test()].
#' @param y Must be missing.
#' @param type `"null"` or `"witness"`, also as the second argument.
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
  types <- c("null", "witness")
  type <- check_choice(if (missing(y)) type else y, types, "type")
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
  if (names(test$statistic) == "fused MMD^2") {
    stop_input("'type' must not be \"witness\" for many bandwidths")
  }
  weights <- ifelse(as.integer(test$groups) == 1L, 1, -1) /
    rep(test$sizes, test$sizes)
  d <- ncol(test$x)
  if (is.null(d) || d > 2L) {
    return(plot_witness_points(test, weights, ...))
  }
  at <- \(z) fold_apply(test$kernel, z, test$x, weights)
  colours <- group_colours[as.integer(test$groups)]
  if (d == 1L) {
    ends <- padded_range(test$x)
    z <- seq(ends[1L], ends[2L], length.out = n)
    value <- at(matrix(z))
    draw(graphics::plot, list(
      x = z, y = value, type = "l", lwd = 2, las = 1,
      xlab = axis_names(test$x),
      ylab = "witness", main = "Witness function"
    ), ...)
    abline(h = 0, lty = 2, col = "grey40")
    for (g in 1:2) {
      rug(test$x[as.integer(test$groups) == g], side = c(1, 3)[g],
          col = group_colours[g])
    }
    group_legend(test)
    return(invisible(data.frame(z = z, value = value)))
  }
  surface <- draw_surface(test$x, at, n, "Witness function", ...,
                          colours = diverging)
  draw_points(test$x, colours)
  box()
  group_legend(test)
  invisible(surface)
}

group_colours <- c("#0072B2", "#D55E00")

group_legend <- function(test) {
  legend("topright", names(test$sizes), pch = 21, pt.bg = group_colours,
         col = "white", bg = "white", box.col = "grey60", inset = 0.02,
         cex = 0.9)
}

most_points_on_axes <- 1000L

# The points along the leading kernel principal axes of the pooled sample.
plot_witness_points <- function(test, weights, ...) {
  n <- sum(test$sizes)
  shown <- unique(round(seq(1, n, length.out = min(n, most_points_on_axes))))
  if (is.null(test$x)) {
    value <- drop(test$gram$K %*% weights)[shown]
    k <- test$gram$K[shown, shown]
  } else {
    x <- test$x[shown, , drop = FALSE]
    value <- fold_apply(test$kernel, x, test$x, weights)
    k <- fold_store(test$kernel, x)
  }
  s <- centred_spectrum(list(n = nrow(k), gram = new_gram(k), at = rowMeans(k),
                             norm2 = mean(k)), 2L)
  scores <- s$vectors * rep(sqrt(s$values), each = nrow(k))
  group <- test$groups[shown]
  scale <- diverging(value)
  shade <- scale[[2L]][1 + round(32 * (1 + value / scale[[1L]][2L]))]
  draw(graphics::plot, list(
    x = scores, xlab = "kernel PC1", ylab = "kernel PC2", las = 1,
    pch = c(21, 24)[as.integer(group)], bg = shade, lwd = 1.5,
    col = group_colours[as.integer(group)],
    main = "Witness function on kernel principal axes"
  ), ...)
  legend("topright", names(test$sizes), pch = c(21, 24), pt.bg = "white",
         col = group_colours, pt.lwd = 1.5, bg = "white", box.col = "grey60",
         inset = 0.02, cex = 0.9)
  invisible(data.frame(PC1 = scores[, 1L], PC2 = scores[, 2L], group = group,
                       value = value))
}

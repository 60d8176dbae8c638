#' Plots of kernel Fisher discriminants
#'
#' The regions of the classes in the plane, or the scores of the sample.
#'
#' `"regions"`, for fits on points in two columns, fills the plane with a tint
#' of the class that [predict()] gives there; the lines between are where the
#' two largest posterior probabilities are equal. `"scores"` draws the scores of
#' the sample, by class: a histogram for one axis, with a line where the class
#' changes, and the first two axes otherwise. Scores of the sample lie closer
#' together than those of new points will; the leave-one-out error in the title
#' does not suffer from that.
#'
#' @param x A fit of [kme_fda()].
#' @param y Must be missing, or the `type`.
#' @param type `"regions"` or `"scores"`, also as the second argument; by
#'   default the first that applies.
#' @param n Points on an axis of the grid for the regions.
#' @param ... Passed to [plot.default()]; `col`, `pch`, `cex`, `bg` and `lwd`
#'   are for the points.
#' @return What was drawn, invisibly: `list(x, y, z)` with the matrix `z` of the
#'   numbers of the classes, or a data frame of the scores and `class`.
#' @family operators
#' @examples
#' plot(kme_fda(Species ~ Petal.Length + Petal.Width, iris))
#' plot(kme_fda(iris[, 1:4], iris$Species))
#' plot(kme_fda(iris[, 1:4], iris$Species == "virginica"))
#' @export
plot.kme_fda <- function(x, y, type = c("regions", "scores"), n = 100, ...) {
  plane <- knows_points(x$sample) && ncol(x$sample$x) == 2L
  type <- plot_type(c("regions", "scores"), if (!missing(y)) y,
                    if (!missing(type)) type,
                    if (plane) "regions" else "scores")
  n <- check_count(n, "n", 2L)
  if (type == "scores") {
    return(plot_discriminants(x, ...))
  }
  if (!plane) {
    stop_input("'type' must not be \"regions\" unless the fit has two columns",
               if (knows_points(x$sample)) paste0(", not ",
                                                  ncol(x$sample$x)))
  }
  plot_regions(x, n, ...)
}

fda_title <- function(object) {
  paste0("Kernel Fisher discriminants (leave-one-out error ",
         format(object$error, digits = 2), ")")
}

plot_regions <- function(object, n, ...) {
  dots <- list(...)
  x <- object$sample$x
  axes <- lapply(1:2, \(j) {
    name <- c("xlim", "ylim")[j]
    ends <- dots[[name]]
    if (is.null(ends)) ends <- padded_range(x[, j])
    if (!is.numeric(ends) || length(ends) != 2L ||
          !all(is.finite(ends)) || ends[1L] == ends[2L]) {
      stop_input("'", name, "' must be two different numbers, not ",
                 paste(format(ends), collapse = ", "))
    }
    seq(min(ends), max(ends), length.out = n)
  })
  values_at <- \(z) {
    scores <- fda_scores(object, new_points(z, NULL))
    fda_values(fda_distance(scores, object$means), object$sigma2, object$prior)
  }
  value <- values_at(as.matrix(expand.grid(axes)))
  best <- max.col(value, "first")
  labels <- names(object$counts)
  classes <- length(labels)
  names <- axis_names(x)
  do.call(draw, c(list(graphics::plot, list(
    x = range(axes[[1L]]), y = range(axes[[2L]]), type = "n", las = 1,
    xaxs = "i", yaxs = "i", xlab = names[1L], ylab = names[2L],
    main = fda_title(object)
  )), dots[!names(dots) %in% point_style]))
  z <- matrix(best, n, n)
  image(axes[[1L]], axes[[2L]], z, add = TRUE, useRaster = TRUE,
        zlim = c(0.5, classes + 0.5), col = tint(level_colors(classes)))
  for (pair in utils::combn(classes, 2L, simplify = FALSE)) {
    draw_border(axes, value, pair, values_at)
  }
  group_points(x, droplevels(object$grouping), dots)
  box()
  level_legend(labels, x)
  invisible(list(x = axes[[1L]], y = axes[[2L]], z = z))
}

# The line where two classes meet, as far as no other class is ahead there.
draw_border <- function(axes, value, pair, values_at) {
  ahead <- value[, pair[1L]] - value[, pair[2L]]
  if (!all(is.finite(ahead))) {
    return(invisible())
  }
  ahead <- matrix(ahead, length(axes[[1L]]))
  for (line in grDevices::contourLines(axes[[1L]], axes[[2L]], ahead,
                                       levels = 0)) {
    there <- values_at(cbind(line$x, line$y))
    third <- !max.col(there, "first") %in% pair
    line$x[third] <- NA
    lines(line$x, line$y, col = "grey20")
  }
}

plot_discriminants <- function(object, ...) {
  scores <- object$scores
  if (ncol(scores) == 1L) {
    plot_one_axis(object, ...)
  } else {
    draw_groups(scores[, 1:2], droplevels(object$grouping), list(
      xlab = "LD1", ylab = "LD2", main = fda_title(object)
    ), list(...))
  }
  invisible(data.frame(scores, class = object$grouping))
}

# Bars of the classes one above the other, on the same breaks.
plot_one_axis <- function(object, ...) {
  score <- object$scores[, 1L]
  labels <- names(object$counts)
  colors <- level_colors(length(labels))
  breaks <- pretty(score, max(10, min(40, 2 * sqrt(length(score)))))
  counts <- vapply(labels, \(label) {
    own <- object$grouping == label
    graphics::hist(score[own], breaks, plot = FALSE)$counts
  }, integer(length(breaks) - 1L))
  top <- max(rowSums(counts))
  draw(graphics::plot, list(
    x = range(breaks), y = c(0, 1.25 * top), type = "n", las = 1, yaxs = "i",
    xlab = "LD1", ylab = "points", main = fda_title(object)
  ), ...)
  below <- numeric(length(breaks) - 1L)
  for (c in seq_along(labels)) {
    shown <- counts[, c] > 0
    graphics::rect(breaks[-length(breaks)][shown], below[shown],
                   breaks[-1L][shown], (below + counts[, c])[shown],
                   col = colors[c], border = "white")
    below <- below + counts[, c]
  }
  abline(v = class_changes(object, range(breaks)), lty = 2)
  level_legend(labels, cbind(breaks[-1L], rowSums(counts)), 22,
               c("topright", "topleft"))
}

# Where the class changes along the only axis.
class_changes <- function(object, ends) {
  at <- matrix(seq(ends[1L], ends[2L], length.out = 2001L))
  value <- fda_values(fda_distance(at, object$means), object$sigma2,
                      object$prior)
  step <- which(diff(max.col(value, "first")) != 0)
  (at[step] + at[step + 1L]) / 2
}

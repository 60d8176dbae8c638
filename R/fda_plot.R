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
#' @param y Must be missing.
#' @param type `"regions"` or `"scores"`; by default the first that applies.
#' @param n Points on an axis of the grid for the regions.
#' @param ... Passed to [plot.default()].
#' @return What was drawn, invisibly: `list(x, y, z)` with the matrix `z` of the
#'   numbers of the classes, or a data frame of the scores and `class`.
#' @family operators
#' @examples
#' plot(kme_fda(Species ~ Petal.Length + Petal.Width, iris))
#' plot(kme_fda(iris[, 1:4], iris$Species))
#' plot(kme_fda(iris[, 1:4], iris$Species == "virginica"))
#' @export
plot.kme_fda <- function(x, y, type = c("regions", "scores"), n = 100, ...) {
  check_no_y(missing(y))
  plane <- !is.null(x$x) && ncol(x$x) == 2L
  type <- if (missing(type)) {
    if (plane) "regions" else "scores"
  } else {
    check_choice(type, c("regions", "scores"), "type")
  }
  n <- check_count(n, "n", 2L)
  if (type == "scores") {
    return(plot_discriminants(x, ...))
  }
  if (!plane) {
    stop_input("'type' must not be \"regions\" unless the fit has two columns",
               if (!is.null(x$x)) paste0(", not ", ncol(x$x)))
  }
  plot_regions(x, n, ...)
}

# Okabe-Ito.
class_colours <- c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00",
                   "#56B4E9", "#999999", "#000000")

# A colour for each class, and for each point.
fda_colours <- function(object) {
  classes <- rep_len(class_colours, length(object$counts))
  of <- match(object$grouping, names(object$counts))
  list(classes = classes, of = of, points = classes[of],
       pch = rep_len(c(21, 24, 22, 23, 25), length(classes)))
}

fda_title <- function(object) {
  paste0("Kernel Fisher discriminants (leave-one-out error ",
         format(object$error, digits = 2), ")")
}

# In the corner with the fewest of the points p.
fda_legend <- function(object, look, p, fill = look$pch) {
  usr <- graphics::par("usr")
  share <- cbind((p[, 1L] - usr[1L]) / (usr[2L] - usr[1L]),
                 (p[, 2L] - usr[3L]) / (usr[4L] - usr[3L]))
  corners <- c("topright", "topleft", "bottomright", "bottomleft")
  taken <- c(sum(share[, 1L] > 0.7 & share[, 2L] > 0.7),
             sum(share[, 1L] < 0.3 & share[, 2L] > 0.7),
             sum(share[, 1L] > 0.7 & share[, 2L] < 0.3),
             sum(share[, 1L] < 0.3 & share[, 2L] < 0.3))
  legend(corners[which.min(taken)], names(object$counts), pch = fill,
         pt.bg = look$classes, col = "white", bg = "white",
         box.col = "grey60", inset = 0.02, cex = 0.9, pt.cex = 1.2)
}

plot_regions <- function(object, n, ...) {
  axes <- lapply(1:2, \(j) {
    ends <- padded_range(object$x[, j])
    seq(ends[1L], ends[2L], length.out = n)
  })
  values_at <- \(z) {
    colnames(z) <- colnames(object$x)
    scores <- fda_scores(object, list(z = z))
    fda_values(fda_distance(scores, object$means), object$sigma2, object$prior)
  }
  value <- values_at(as.matrix(expand.grid(axes)))
  best <- max.col(value, "first")
  look <- fda_colours(object)
  classes <- length(look$classes)
  names <- axis_names(object$x)
  draw(graphics::plot, list(
    x = range(axes[[1L]]), y = range(axes[[2L]]), type = "n", las = 1,
    xaxs = "i", yaxs = "i", xlab = names[1L], ylab = names[2L],
    main = fda_title(object)
  ), ...)
  z <- matrix(best, n, n)
  image(axes[[1L]], axes[[2L]], z, add = TRUE, useRaster = TRUE,
        zlim = c(0.5, classes + 0.5), col = tint(look$classes))
  for (pair in utils::combn(classes, 2L, simplify = FALSE)) {
    draw_border(axes, value, pair, values_at)
  }
  draw_points(object$x, look$points)
  box()
  fda_legend(object, look, object$x, 21)
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

# A colour with three parts of white.
tint <- function(colour) {
  mixed <- (grDevices::col2rgb(colour) + 3 * 255) / 4
  grDevices::rgb(t(mixed), maxColorValue = 255)
}

plot_discriminants <- function(object, ...) {
  look <- fda_colours(object)
  scores <- object$scores
  if (ncol(scores) == 1L) {
    plot_one_axis(object, look, ...)
  } else {
    draw(graphics::plot, list(
      x = scores[, 1L], y = scores[, 2L], pch = look$pch[look$of],
      col = "white", bg = look$points, las = 1, xlab = "LD1", ylab = "LD2",
      main = fda_title(object)
    ), ...)
    fda_legend(object, look, scores)
  }
  invisible(data.frame(scores, class = object$grouping))
}

# Bars of the classes one above the other, on the same breaks.
plot_one_axis <- function(object, look, ...) {
  score <- object$scores[, 1L]
  breaks <- pretty(score, max(10, min(40, 2 * sqrt(length(score)))))
  counts <- vapply(seq_along(look$classes), \(c) {
    graphics::hist(score[look$of == c], breaks, plot = FALSE)$counts
  }, integer(length(breaks) - 1L))
  top <- max(rowSums(counts))
  draw(graphics::plot, list(
    x = range(breaks), y = c(0, 1.1 * top), type = "n", las = 1, yaxs = "i",
    xlab = "LD1", ylab = "points", main = fda_title(object)
  ), ...)
  below <- numeric(nrow(counts))
  for (c in seq_along(look$classes)) {
    shown <- counts[, c] > 0
    graphics::rect(breaks[-length(breaks)][shown], below[shown],
                   breaks[-1L][shown], (below + counts[, c])[shown],
                   col = look$classes[c], border = "white")
    below <- below + counts[, c]
  }
  abline(v = class_changes(object, range(breaks)), lty = 2)
  fda_legend(object, look, cbind(breaks[-1L], rowSums(counts)), 22)
}

# Where the class changes along the only axis.
class_changes <- function(object, ends) {
  at <- matrix(seq(ends[1L], ends[2L], length.out = 2001L))
  value <- fda_values(fda_distance(at, object$means), object$sigma2,
                      object$prior)
  step <- which(diff(max.col(value, "first")) != 0)
  (at[step] + at[step + 1L]) / 2
}

#' Plots of comparisons of groups
#'
#' The distances of groups with their p-values: as a matrix, as bars against a
#' control, or as a dendrogram.
#'
#' `"matrix"` draws the distance of each pair as the color of a tile (of each
#' group to the control, as a bar, the largest first, in color where the
#' adjusted p-value is at most 0.05). Up to twelve groups the adjusted p-values
#' stand in the tiles or over the bars, up to forty stars for values of at most
#' 0.05, 0.01 and 0.001, as far as there is room. `"dendrogram"` joins groups at
#' the average distance of their members ([stats::hclust()] of [as.dist()] of
#' the comparisons, `method = "average"`); of all pairs only.
#'
#' ```
#' plot(x, type = c("matrix", "dendrogram"), ...)
#' ```
#'
#' @usage NULL
#' @param x Comparisons of [mmd_test()] with `control` or `pairwise`.
#' @param type `"matrix"` or `"dendrogram"`.
#' @param ... Graphical parameters, see [plot.kernmean_fit()].
#' @return What was drawn, invisibly: a matrix of distances, a data frame (the
#'   rows of the comparisons in the order of the bars), or an object of class
#'   `hclust`.
#' @family tests
#' @name plot.mmd_comparisons
#' @examples
#' some <- subset(chickwts, feed != "linseed")
#' all <- mmd_test(weight ~ feed, some, pairwise = TRUE, B = 199)
#' plot(all)
#' plot(all, "dendrogram")
#' plot(update(all, control = "casein"))
NULL

fit_picture.mmd_comparisons <- function(object, type = NULL) {
  type <- check_type(type, c("matrix", "dendrogram"))
  x <- object
  if (type == "dendrogram") {
    check_all_pairs(x, "'x' of a dendrogram")
    picture_dendrogram(x)
  } else if (is.null(x$control)) {
    picture_pairs(x)
  } else {
    picture_control(x)
  }
}

# --- Tiles -------------------------------------------------------------------

most_numbers <- 12L
most_stars <- 40L

# What stands for adjusted p-values, where there are so many names along an
# axis.
p_marks <- function(p, count) {
  if (count <= most_numbers) {
    ifelse(p < 0.001, "<.001", sub("^0[.]", ".", formatC(p, 3L, format = "f")))
  } else if (count <= most_stars) {
    c("***", "**", "*", "")[findInterval(p, c(0.001, 0.01, 0.05),
                                         left.open = TRUE) + 1L]
  } else {
    rep("", length(p))
  }
}

marks_note <- function(x, count) {
  if (count > most_stars) {
    return(NULL)
  }
  list(text = paste0(
    if (count <= most_numbers) "p-values" else
      "*, **, ***: p-values of at most 0.05, 0.01, 0.001",
    if (x$adjust == "none") ", not adjusted" else
      paste0(", adjusted (", x$adjust, ")")
  ), color = "grey30")
}

picture_pairs <- function(x) {
  distance <- as.matrix(x)
  count <- nrow(distance)
  labels <- rownames(distance)
  shown <- distance
  diag(shown) <- NA
  fill <- measured_fill(c(0, if (any(distance > 0)) max(distance) else 1),
                        "distance")
  fill$colors <- blues(0)$colors
  # The first group is on top.
  at <- seq_len(count)
  cells <- which(row(shown) != col(shown), arr.ind = TRUE)
  share <- shown[cells] / max(fill$limits[2L], .Machine$double.xmin)
  ticks <- list(at = at, labels = labels)
  new_picture(
    "Distances of groups", "", "",
    list(
      new_layer("image", x = at, y = at, z = shown[, rev(at), drop = FALSE],
                zlim = fill$limits, col = fill$colors,
                main = TRUE),
      new_layer("text", x = cells[, 1L], y = count + 1L - cells[, 2L],
                labels = p_marks(as.matrix(x, "p.adjusted")[cells], count),
                col = ifelse(share > 0.55, "white", "black"), width = 0.9)
    ),
    distance, xlim = c(0.5, count + 0.5), ylim = c(0.5, count + 0.5),
    flush = TRUE, ticks = ticks,
    ticks_y = list(at = at, labels = rev(labels)),
    note = marks_note(x, count), fill = fill, bar = TRUE
  )
}

# --- Bars --------------------------------------------------------------------

picture_control <- function(x) {
  table <- x$table[order(-x$table$distance), ]
  count <- nrow(table)
  at <- seq_len(count)
  found <- table$p.adjusted <= usual_level
  words <- paste(if (x$adjust == "none") "p" else "adjusted p",
                 c("at most 0.05", "above 0.05"))
  colors <- c(level_colors(1L), "grey75")
  bars <- lapply(1:2, \(side) {
    these <- found == (side == 1L)
    if (any(these)) {
      new_layer("bars", x0 = at[these] - 0.4, y0 = numeric(sum(these)),
                x1 = at[these] + 0.4, y1 = table$distance[these],
                col = colors[side], border = NA,
                level = words[side])
    }
  })
  new_picture(
    paste0("Distances from '", x$control, "'"), "", "distance",
    c(bars, list(
      new_layer("text", x = at, y = table$distance,
                labels = p_marks(table$p.adjusted, count),
                col = "black", width = 1, over = TRUE),
      across_layer(h = 0, lty = 1, col = "grey60")
    )),
    table, xlim = c(0.4, count + 0.6),
    ylim = c(0, if (any(table$distance > 0)) 1.08 * max(table$distance) else 1),
    ticks = list(at = at, labels = table$group1),
    note = marks_note(x, count),
    key = key_entries(words, colors, "box")
  )
}

# --- Dendrogram --------------------------------------------------------------

picture_dendrogram <- function(x) {
  if (length(x$sizes) < 2L) {
    stop_input("'x' must have at least 2 groups")
  }
  tree <- stats::hclust(as.dist.mmd_comparisons(x), "average")
  ticks <- list(at = seq_along(tree$order), labels = tree$labels[tree$order])
  new_picture(
    "Groups joined at their average distance", "", "distance",
    list(do.call(new_layer, c(list("line"), tree_lines(tree),
                              list(main = TRUE))),
         across_layer(h = 0, lty = 1, col = "grey60")),
    tree, xlim = c(0.5, length(tree$order) + 0.5),
    ylim = c(0, max(tree$height, .Machine$double.xmin)), ticks = ticks
  )
}

# The lines of a tree of hclust(): from one branch over its fork to the other,
# with breaks between the forks.
tree_lines <- function(tree) {
  leaf <- order(tree$order)
  forks <- nrow(tree$merge)
  middle <- numeric(forks)
  x <- y <- vector("list", forks)
  for (f in seq_len(forks)) {
    branch <- tree$merge[f, ]
    at <- ifelse(branch < 0, leaf[abs(branch)], middle[abs(branch)])
    from <- ifelse(branch < 0, 0, tree$height[abs(branch)])
    middle[f] <- mean(at)
    x[[f]] <- c(at[1L], at[1L], at[2L], at[2L], NA)
    y[[f]] <- c(from[1L], tree$height[f], tree$height[f], from[2L], NA)
  }
  list(x = unlist(x), y = unlist(y))
}

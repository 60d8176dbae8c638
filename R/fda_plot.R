fit_picture.kme_fda <- function(object, type = NULL, n = 100, newdata = NULL,
                                xlim = NULL, ylim = NULL) {
  sample <- object$sample
  plane <- knows_points(sample) && ncol(sample$x) == 2L
  type <- check_type(type, c("regions", "scores"),
                     if (plane) "regions" else "scores")
  if (type == "scores") {
    picture <- picture_discriminants(object, newdata)
    if (!is.null(xlim)) picture$xlim <- xlim
    if (!is.null(ylim)) picture$ylim <- ylim
    return(picture)
  }
  if (!plane) {
    stop_input("'type' must not be \"regions\" unless the fit has two columns")
  }
  picture_regions(object, check_count(n, "n", 2L), newdata, list(xlim, ylim))
}

fda_title <- function(object) {
  paste0("Kernel Fisher discriminants", if (!is.null(object$error)) {
    paste0(" (leave-one-out error ", format(object$error, digits = 2), ")")
  })
}

# The points of a sample that may be drawn, in the units of the user.
known_rows <- function(sample) UseMethod("known_rows")
known_rows.kernmean_sample <- \(sample) sample_raw(sample)

# list(x, group): the points that are drawn, with their classes where these are
# known.
fda_points <- function(object, newdata) {
  if (is.null(newdata)) {
    x <- known_rows(object$sample)
    # A class without points keeps its color, and its place in the legend.
    return(list(x = x, group = if (nrow(x)) {
      factor(object$grouping, names(object$counts))
    }))
  }
  new <- sample_newdata(object$sample, newdata, object$terms)
  list(x = unscale_points(object$kernel, new$z), group = NULL)
}

picture_regions <- function(object, n, newdata, limits) {
  shown <- fda_points(object, newdata)
  x <- rbind(unname(sample_raw(object$sample)), unname(shown$x))
  axes <- lapply(1:2, \(j) {
    ends <- if (is.null(limits[[j]])) padded_range(x[, j]) else limits[[j]]
    seq(min(ends), max(ends), length.out = n)
  })
  values_at <- \(z) {
    scores <- fda_scores(object, raw_points(object$sample, z))
    fda_values(fda_distance(scores, object$means), object$sigma2, object$prior)
  }
  check_memory(n, n, "take a smaller 'n'", copies = 16, what = "a grid")
  value <- values_at(as.matrix(expand.grid(axes)))
  best <- max.col(value, "first")
  labels <- names(object$counts)
  classes <- length(labels)
  names <- axis_names(sample_raw(object$sample))
  z <- matrix(best, n, n)
  borders <- lapply(utils::combn(classes, 2L, simplify = FALSE), \(pair) {
    border_layer(axes, value, pair, values_at)
  })
  new_picture(
    fda_title(object), names[1L], names[2L],
    c(list(new_layer("image", x = axes[[1L]], y = axes[[2L]], z = z,
                     zlim = c(0.5, classes + 0.5),
                     col = tint(level_colors(classes)),
                     level = factor(labels[best], labels))),
      borders, if (nrow(shown$x)) list(points_layer(
        shown$x, shown$group, color = "grey20", main = TRUE
      ))),
    list(x = axes[[1L]], y = axes[[2L]], z = z),
    xlim = range(axes[[1L]]), ylim = range(axes[[2L]]), flush = TRUE,
    key = level_entries(labels)
  )
}

# The line where two classes meet, as far as no other class is ahead there.
border_layer <- function(axes, value, pair, values_at) {
  ahead <- value[, pair[1L]] - value[, pair[2L]]
  if (!all(is.finite(ahead)) || all(ahead == ahead[1L])) {
    return(NULL)
  }
  ahead <- matrix(ahead, length(axes[[1L]]))
  found <- grDevices::contourLines(axes[[1L]], axes[[2L]], ahead, levels = 0)
  if (!length(found)) {
    return(NULL)
  }
  parts <- lapply(found, \(line) {
    there <- values_at(cbind(line$x, line$y))
    line$x[!max.col(there, "first") %in% pair] <- NA
    # A break before the next line.
    cbind(c(line$x, NA), c(line$y, NA))
  })
  line <- do.call(rbind, parts)
  new_layer("line", x = line[, 1L], y = line[, 2L],
            col = "grey20")
}

picture_discriminants <- function(object, newdata) {
  labels <- names(object$counts)
  bare <- is.null(newdata) && is.null(object$scores)
  if (!is.null(newdata)) {
    found <- predict(object, newdata)
    scores <- found$x
    group <- found$class
  } else {
    scores <- if (bare) object$means else object$scores
    group <- if (bare) factor(labels, object$lev) else object$grouping
  }
  value <- data.frame(scores, class = group)
  if (ncol(scores) == 1L) {
    return(if (bare) picture_class_curves(object, value) else
      picture_one_axis(object, value))
  }
  groups_picture(fda_title(object), scores[, 1:2], factor(group, labels),
                 c("LD1", "LD2"), value)
}

# The normal curves of the classes, times their prior probabilities.
picture_class_curves <- function(object, value) {
  labels <- names(object$counts)
  colors <- level_colors(length(labels))
  sd <- sqrt(object$sigma2)
  score <- seq(min(object$means) - 3 * sd, max(object$means) + 3 * sd,
               length.out = 401L)
  heights <- lapply(seq_along(labels), \(c) {
    object$prior[c] * stats::dnorm(score, object$means[c, 1L], sd)
  })
  lines <- lapply(seq_along(labels), \(c) {
    new_layer("line", x = score, y = heights[[c]], level = labels[c],
              col = colors[c], lwd = 2)
  })
  changes <- class_changes(object, range(score))
  new_picture(
    fda_title(object), "LD1", "prior times density",
    c(lines, list(if (length(changes)) across_layer(v = changes,
                                                    col = "black"))),
    value, xlim = range(score), ylim = c(0, max(unlist(heights))),
    key = key_entries(labels, colors, "line", lwd = 2)
  )
}

# Bars of the classes one above the other, on the same breaks.
picture_one_axis <- function(object, value) {
  score <- value$LD1
  labels <- names(object$counts)
  colors <- level_colors(length(labels))
  breaks <- pretty(score, max(10, min(40, 2 * sqrt(length(score)))))
  count <- length(breaks) - 1L
  counts <- vapply(labels, \(label) {
    own <- value$class == label
    graphics::hist(score[own], breaks, plot = FALSE)$counts
  }, integer(count))
  counts <- matrix(counts, count)
  below <- numeric(count)
  bars <- list()
  for (c in seq_along(labels)) {
    shown <- counts[, c] > 0
    bars[[c]] <- new_layer(
      "bars", x0 = breaks[-length(breaks)][shown], y0 = below[shown],
      x1 = breaks[-1L][shown], y1 = (below + counts[, c])[shown],
      col = colors[c], border = "white", level = labels[c]
    )
    below <- below + counts[, c]
  }
  changes <- class_changes(object, range(breaks))
  new_picture(
    fda_title(object), "LD1", "points",
    c(bars, list(
      across_layer(h = 0, col = "black", lty = 1),
      if (length(changes)) across_layer(v = changes, col = "black")
    )),
    value, xlim = range(breaks), ylim = c(0, 1.05 * max(below)), whole = "y",
    key = level_entries(labels, "box")
  )
}

# Where the class changes along the only axis.
class_changes <- function(object, ends) {
  at <- matrix(seq(ends[1L], ends[2L], length.out = 2001L))
  value <- fda_values(fda_distance(at, object$means), object$sigma2,
                      object$prior)
  step <- which(diff(max.col(value, "first")) != 0)
  (at[step] + at[step + 1L]) / 2
}

fit_picture.mmd_test <- function(object, type = NULL, n = 100, groups = NULL) {
  type <- check_null_type(type, object, "witness")
  if (type != "witness") {
    return(picture_null(object, type))
  }
  n <- take(n, count(2L))
  if (!is.null(object$arguments$bandwidths)) {
    stop_input("'type' must not be \"witness\" for many bandwidths")
  }
  labels <- names(object$sizes)
  every <- seq_along(labels)
  if (is.null(groups) && length(labels) == 2L) groups <- labels
  if (!is.null(groups)) {
    pair <- check_pick(as.character(groups), labels, "groups", 2L)
    return(picture_witness(object, pair[1L], pair[2L], n))
  }
  # All panels share the key and the range of colors.
  each <- lapply(every, \(g) {
    picture_witness(object, g, every[-g], n, c("the group", "the rest"))
  })
  panels <- unlist(lapply(every, \(g) {
    of <- each[[g]]$panels
    of <- if (is.null(of)) each[g] else
      utils::head(of, max(1L, 6L %/% length(every)))
    lapply(of, \(panel) {
      panel$title <- panel$panel <- paste(c(labels[g], panel$panel),
                                          collapse = "\n")
      panel
    })
  }), FALSE)
  fill <- each[[1L]]$fill
  if (!is.null(fill)) {
    most <- max(vapply(panels, \(panel) panel$fill$limits[2L], 1))
    fill$limits <- fill$at <- c(-most, most)
  }
  list(panels = panels, key = each[[1L]]$key, fill = fill,
       free = each[[1L]]$free,
       title = paste0("Witness functions: each group against the rest",
                      witness_words(object)),
       value = stats::setNames(lapply(each, `[[`, "value"), labels))
}

# The witness of one sample against another, or against all the rest. `sides`
# has the names of the two.
picture_witness <- function(test, first, second, n,
                            sides = names(test$sizes)[c(first, second)]) {
  sample <- largest_sample(test)
  several <- length(test$sizes) > 2L
  side <- replace(integer(length(test$sizes)), first, 1L)
  witness <- witness_values(test, replace(side, second, 2L))
  denser <- paste(sides, witness$what %||% "denser")
  title <- paste0("Witness function", if (several) {
    paste0(": ", paste(sides, collapse = " against "))
  }, witness_words(test))
  if (!is.null(witness$side)) {
    witness$group <- factor(sides[witness$side], sides)
  }
  d <- axes_of(sample)
  if (is.null(d) || isFALSE(witness$grid)) {
    return(witness_points(sample, witness, denser, title))
  }
  if (d > 2L) {
    return(witness_columns(sample, witness, denser, title))
  }
  x <- take_rows(sample_raw(sample), witness$shown)
  draw <- if (d == 1L) witness_curve else witness_surface
  draw(x, \(z) witness$at(raw_points(sample, z)), witness$group, denser, n,
       title)
}

# The colors of a color bar, and the words at its ends.
denser_fill <- function(value, denser) {
  fill <- diverging(value)
  c(fill, list(title = "witness", at = fill$limits, labels = rev(denser)))
}

end_colors <- \(fill) rev(fill$colors[c(8L, length(fill$colors) - 7L)])

# `denser` has the words for where the witness is positive and for where it is
# negative; `group` is the group of each point, or NULL for none.
witness_curve <- function(x, at, group, denser, n, title) {
  ends <- padded_range(x)
  z <- seq(ends[1L], ends[2L], length.out = n)
  value <- at(matrix(z))
  colors <- tint(level_colors(2L))
  rug <- \(x, side, color) new_layer("rug", x = x, side = side, col = color)
  rugs <- if (is.null(group)) list(rug(drop(x), 1, "grey40")) else
    Map(rug, split(x, group), c(1, 3), level_colors(2L))
  new_picture(
    title, axis_names(x), "witness",
    c(list(
      new_layer("ribbon", x = z, y0 = 0 * z, y1 = pmax(value, 0),
                col = colors[1L], level = denser[1L]),
      new_layer("ribbon", x = z, y0 = 0 * z, y1 = pmin(value, 0),
                col = colors[2L], level = denser[2L]),
      new_layer("line", x = z, y = value, lwd = 2, main = TRUE),
      across_layer(h = 0)
    ), unname(rugs)),
    data.frame(z = z, value = value),
    key = key_entries(denser, colors, "box")
  )
}

witness_surface <- function(x, at, group, denser, n, title) {
  surface <- shown <- surface_of(at, x, n)
  # Both means are nearly 0 far from all points, and so is their difference,
  # which is not drawn there.
  shown$z[!near_points(x, surface)] <- NA
  fill <- denser_fill(shown$z, denser)
  labels <- axis_names(x)
  new_picture(
    title, labels[1L], labels[2L],
    c(surface_layers(shown, fill),
      list(points_layer(x, group, color = "grey40"))),
    surface, fill = fill, flush = TRUE,
    key = rbind(if (!is.null(group)) level_entries(levels(group)),
                key_entries(denser, end_colors(fill), "box"))
  )
}

# Says for each point of a grid if a point of x lies within two of Scott's
# bandwidths.
near_points <- function(x, surface) {
  width <- apply(x, 2L, stats::sd) * nrow(x)^(-1 / 6)
  width[is.na(width) | width == 0] <- 1
  z <- as.matrix(expand.grid(unname(surface[1:2])))
  fold_rows(kernel_rbf(width), z, unname(x)) > exp(-2)
}

# A panel for each of the columns along which the witness varies most, with its
# values at the points. The title has the share of the variance of the witness
# that a smooth curve in the column explains.
witness_columns <- function(sample, witness, denser, title) {
  kept <- evenly(length(witness$shown), most_points_drawn)
  rows <- witness$shown[kept]
  group <- witness$group[kept]
  x <- named_frame(take_rows(sample_raw(sample), rows))
  value <- unname(witness$at(new_points(take_rows(sample$x, rows))))
  curves <- lapply(x, stats::lowess, value, iter = 0)
  share <- vapply(curves, \(curve) stats::var(curve$y), 1) /
    max(stats::var(value), .Machine$double.xmin)
  best <- utils::head(order(-share), 6L)
  panels <- lapply(best, \(j) {
    label <- sprintf("%s (%.0f%%)", names(x)[j], 100 * share[j])
    shown <- data.frame(x = x[[j]], value = value)
    shown$group <- group
    new_picture(
      label, "", "witness", list(
        across_layer(h = 0),
        points_layer(cbind(x[[j]], value), group, color = "grey40",
                     main = TRUE),
        new_layer("line", x = curves[[j]]$x, y = curves[[j]]$y, lwd = 2)
      ), shown, panel = label, ylim = range(value, 0)
    )
  })
  list(panels = panels, title = title, xlab = "", free = "free_x",
       ylab = paste0("witness (", denser[1L], " above 0)"),
       key = rbind(if (!is.null(group)) level_entries(levels(group)),
                   key_entries(paste("above 0:", denser[1L]), "black", "none")),
       value = stats::setNames(lapply(panels, `[[`, "value"), names(x)[best]))
}

# The points along the leading kernel principal axes; witness: see
# witness_weights(), with the group of each point.
witness_points <- function(sample, witness, denser, title) {
  axes <- kernel_axes(sample_take(sample, witness$shown))
  value <- witness$at_points()[witness$shown[axes$shown]]
  group <- witness$group[axes$shown]
  fill <- denser_fill(value, denser)
  layer <- points_layer(axes$scores, value, fill, main = TRUE)
  if (!is.null(group)) {
    layer$level <- group
    layer$style$pch <- level_pch(2L)[as.integer(group)]
    layer$style$col <- level_colors(2L)[as.integer(group)]
    layer$style$lwd <- 1.5
  }
  shown <- data.frame(PC1 = axes$scores[, 1L], PC2 = axes$scores[, 2L])
  shown$group <- group
  shown$value <- value
  new_picture(
    title, "kernel PC1", "kernel PC2", list(layer), shown, fill = fill, asp = 1,
    key = rbind(if (!is.null(group)) {
      key_entries(levels(group), level_colors(2L), "ring", level_pch(2L))
    }, key_entries(denser, end_colors(fill), "box"))
  )
}

# The colors of a witness: blue where the first sample is denser, red where the
# second is.
diverging <- function(value) {
  most <- max(abs(value), .Machine$double.xmin, na.rm = TRUE)
  list(limits = c(-most, most),
       colors = hcl.colors(65, "Blue-Red 2", rev = TRUE))
}

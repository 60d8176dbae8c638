fit_picture.mmd_test <- function(object, type = NULL, n = 100, groups = NULL,
                                 breaks = 30, freq = FALSE) {
  if (check_type(type, c("null", "witness")) == "null") {
    return(picture_null(object, breaks, freq))
  }
  test <- object
  n <- take(n, count(2L))
  if (!is.null(test$arguments$bandwidths)) {
    stop_input("'type' must not be \"witness\" for many bandwidths")
  }
  labels <- names(test$sizes)
  pairs <- witness_pairs(groups, labels)
  panels <- lapply(pairs, \(pair) {
    c(picture_witness(test, pair, n), panel = labels[pair[[1L]]])
  })
  if (length(panels) == 1L) {
    return(panels[[1L]])
  }
  # For panels side by side, entries of one key stand for all.
  words <- witness_words
  top <- test$statistics[test$statistics$maximum, ]
  if (identical(top$order, 2L)) attr(words, "what") <- "farther out"
  fills <- lapply(panels, \(p) p$fill)
  fill <- fills[[1L]]
  if (!is.null(fill)) {
    most <- max(vapply(fills, \(f) f$limits[2L], 1))
    fill$limits <- fill$at <- c(-most, most)
    fill$labels <- rev(denser(words))
  }
  key <- panels[[1L]]$key
  key$label <- c(if (nrow(key) > 2L) words, denser(words))
  list(panels = panels, key = key, fill = fill,
       title = "Witness functions: each group against the rest",
       value = stats::setNames(lapply(panels, \(p) p$value), labels))
}

witness_words <- c("the group", "the rest")

# The numbers of the groups to be compared, list(first, second) each.
witness_pairs <- function(groups, labels) {
  if (is.null(groups)) {
    every <- seq_along(labels)
    if (length(every) == 2L) {
      return(list(list(1L, 2L)))
    }
    return(lapply(every, \(g) list(g, setdiff(every, g))))
  }
  list(as.list(check_pick(as.character(groups), labels, "groups", 2L)))
}

# One sample against another, or against all the rest.
picture_witness <- function(test, pair, n) {
  sample <- test$sample
  labels <- names(test$sizes)
  side <- integer(length(labels))
  side[pair[[1L]]] <- 1L
  side[pair[[2L]]] <- 2L
  witness <- witness_values(sample, witness_weights(sample, test, side), test)
  rest <- length(pair[[2L]]) > 1L
  names <- c(labels[pair[[1L]]], if (rest) "the rest" else labels[pair[[2L]]])
  attr(names, "what") <- witness$what
  title <- if (length(labels) == 2L) "Witness function" else
    paste("Witness function:", names[1L],
          if (rest) "against the rest" else paste("and", names[2L]))
  if (!is.null(witness$words)) {
    title <- paste0(title, " (", witness$words, ")")
  }
  if (!is.null(witness$side)) {
    witness$group <- factor(names[witness$side], names)
  }
  d <- ncol(sample$x)
  if (is.null(d) || d > 2L || isFALSE(witness$grid)) {
    return(witness_points(sample, witness, names, title))
  }
  x <- sample_raw(sample)[witness$shown, , drop = FALSE]
  at <- \(z) witness$at(raw_points(sample, z))
  draw <- if (d == 1L) witness_curve else witness_surface
  draw(x, at, witness$group, names, n, title)
}

# Which sample is denser where.
denser <- function(labels) {
  what <- attr(labels, "what")
  paste(labels, if (is.null(what)) "denser" else what)
}

denser_entries <- function(names, colors) {
  key_entries(denser(names), colors, "box")
}

# The colors with their meaning, for a bar.
denser_fill <- function(value, names) {
  fill <- diverging(value)
  fill$title <- "witness"
  fill$at <- fill$limits
  fill$labels <- rev(denser(names))
  fill
}

end_colors <- \(fill) rev(fill$colors[c(8L, length(fill$colors) - 7L)])

# names: of the two samples; group: that of each point, NULL for none; span:
# points that are to be in sight.
witness_curve <- function(x, at, group, names, n, title, span = x) {
  ends <- padded_range(span)
  z <- seq(ends[1L], ends[2L], length.out = n)
  value <- at(matrix(z))
  colors <- tint(level_colors(2L))
  areas <- lapply(1:2, \(g) {
    part <- if (g == 1L) pmax(value, 0) else pmin(value, 0)
    new_layer("area", x = z, y = part, col = colors[g],
              level = denser(names)[g])
  })
  rugs <- if (is.null(group)) {
    list(new_layer("rug", x = drop(x), side = 1, col = "grey40"))
  } else {
    lapply(1:2, \(g) {
      new_layer("rug", x = x[as.integer(group) == g], side = c(1, 3)[g],
                col = level_colors(2L)[g])
    })
  }
  new_picture(
    title, axis_names(x), "witness",
    c(areas, list(
      new_layer("line", x = z, y = value, lwd = 2, main = TRUE),
      across_layer(h = 0)
    ), rugs),
    data.frame(z = z, value = value),
    key = denser_entries(names, colors)
  )
}

witness_surface <- function(x, at, group, names, n, title, span = x) {
  surface <- surface_of(at, span, n)
  fill <- denser_fill(surface$z, names)
  labels <- axis_names(x)
  new_picture(
    title, labels[1L], labels[2L],
    c(surface_layers(surface, fill),
      list(points_layer(x, group, color = "grey40"))),
    surface, fill = fill, flush = TRUE,
    key = rbind(if (!is.null(group)) level_entries(levels(group)),
                denser_entries(names, end_colors(fill)))
  )
}

# The points along the leading kernel principal axes; witness: as of
# witness_weights(), with the group of each point.
witness_points <- function(sample, witness, names, title) {
  rows <- witness$shown
  part <- sample_take(sample, rows)
  axes <- kernel_axes(part)
  value <- if (knows_points(sample)) {
    witness$at(new_points(part$x[axes$shown, , drop = FALSE]))
  } else {
    witness$own()[rows[axes$shown]]
  }
  group <- witness$group[axes$shown]
  fill <- denser_fill(value, names)
  layer <- points_layer(axes$scores, value, fill, main = TRUE)
  if (!is.null(group)) {
    layer$level <- group
    layer$style$pch <- level_pch(2L)[as.integer(group)]
    layer$style$col <- level_colors(2L)[as.integer(group)]
    layer$style$lwd <- 1.5
  }
  found <- data.frame(PC1 = axes$scores[, 1L], PC2 = axes$scores[, 2L])
  found$group <- group
  found$value <- value
  new_picture(
    sub("^Witness function( \\(|$)",
        "Witness function on kernel principal axes\\1", title),
    "kernel PC1", "kernel PC2", list(layer), found, fill = fill,
    key = rbind(if (!is.null(group)) {
      key_entries(levels(group), level_colors(2L), "ring", level_pch(2L))
    }, denser_entries(names, end_colors(fill)))
  )
}

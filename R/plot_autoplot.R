# The pictures of plot() as objects of ggplot2. The package may not be
# installed: the method is registered when ggplot2 is loaded.

#' @rdname plot.kernmean_fit
#' @exportS3Method ggplot2::autoplot
autoplot.kernmean_fit <- function(object, ...) {
  need_package("ggplot2",
               "autoplot() needs the package ggplot2; plot() does not")
  asked <- ask_picture(object, list(...), substitute(list(...))$groups)
  if (length(asked$graphics)) stop_unused(names(asked$graphics), character())
  picture <- asked$picture
  panels <- picture$panels
  if (any(vapply(panels, \(p) !is.null(p$ticks_x), NA))) {
    stop_input("'what' must be \"g\" or \"h\" where a function of levels is ",
               "drawn: facets share the names of their ticks")
  }
  several <- !is.null(panels)
  if (!several) panels <- list(picture)
  first <- panels[[1L]]
  # Panels share the colors and the key of the whole picture, whose labels
  # differ from their own.
  if (several) first[names(picture)] <- picture
  layers <- lapply(seq_along(first$layers), \(i) {
    parts <- lapply(panels, \(panel) {
      data <- layer_frame(panel$layers[[i]])
      if (several) {
        data$panel <- factor(panel$panel, vapply(panels, `[[`, "", "panel"))
        same <- match(data$level, panel$key$label)
        if (length(same) && !is.null(panel$key)) {
          data$level <- first$key$label[same]
        }
      }
      data
    })
    ggplot_layer(first$layers[[i]], do.call(rbind, parts), first)
  })
  title <- first$title
  # ggplot2 does not wrap titles.
  if (is.character(title)) title <- paste(strwrap(title, 45L), collapse = "\n")
  Reduce(`+`, c(layers, ggplot_scales(first), list(
    ggplot2::labs(
      title = title, x = first$xlab, y = first$ylab,
      subtitle = first$note$text, colour = NULL, shape = NULL, linetype = NULL,
      fill = first$fill$title
    ),
    if (several) {
      ggplot2::facet_wrap("panel", scales = c(picture$free, "fixed")[1L])
    } else if (is.null(first$asp)) {
      ggplot2::coord_cartesian(first$xlim, first$ylim,
                               expand = !isTRUE(first$flush))
    } else {
      ggplot2::coord_fixed(first$asp, first$xlim, first$ylim)
    }
  )), ggplot2::ggplot())
}

# Returns aes() for columns that are given by name.
columns_aes <- function(names) do.call(ggplot2::aes, lapply(names, as.name))

# The data of a layer, in rows.
layer_frame <- function(layer) {
  data <- layer$data
  rows <- switch(layer$kind,
    image = , contour = data.frame(
      x = rep(data$x, length(data$y)), y = rep(data$y, each = length(data$x)),
      z = as.vector(data$z)
    ),
    across = data.frame(at = c(data$v, data$h)),
    as.data.frame(data[!vapply(data, is.null, NA)])
  )
  if (!is.null(layer$level)) {
    rows$level <- rep_len(as.character(layer$level), nrow(rows))
  }
  if (is.null(layer$shown)) rows else take_rows(rows, layer$shown)
}

ggplot_layer <- function(layer, data, picture) {
  style <- layer$style
  level <- if (!is.null(layer$level)) "level"
  color <- c(style$col, "black")[1L]
  add <- \(geom, names, ...) geom(columns_aes(names), data, ...)
  # A layer with a level gets color and line type from the scales, another layer
  # gets them here.
  stroke <- function(geom, names, ...) {
    width <- c(style$lwd, 1)[1L] / 2
    if (is.null(level)) {
      add(geom, names, colour = color, linetype = c(style$lty, 1)[1L],
          linewidth = width, ...)
    } else {
      add(geom, c(names, colour = level, linetype = level), linewidth = width,
          ...)
    }
  }
  xy <- c(x = "x", y = "y")
  switch(layer$kind,
    line = stroke(ggplot2::geom_path, xy, na.rm = TRUE),
    across = if (is.null(layer$data$v)) {
      stroke(ggplot2::geom_hline, c(yintercept = "at"))
    } else {
      stroke(ggplot2::geom_vline, c(xintercept = "at"))
    },

    ribbon = add(ggplot2::geom_ribbon,
                 c(x = "x", ymin = "y0", ymax = "y1", fill = level)),
    bars = do.call(add, c(
      list(ggplot2::geom_rect, c(xmin = "x0", ymin = "y0", xmax = "x1",
                                 ymax = "y1", fill = level)),
      list(colour = style$border), if (is.null(level)) list(fill = color)
    )),
    image = if (is.null(level)) {
      add(ggplot2::geom_tile, c(xy, fill = "z"))
    } else {
      add(ggplot2::geom_tile, c(xy, fill = level), alpha = 0.25)
    },
    contour = add(ggplot2::geom_contour, c(xy, z = "z"), colour = color,
                  linewidth = 0.3, breaks = picture$fill$steps, na.rm = TRUE),
    rug = add(ggplot2::geom_rug, c(x = "x"), colour = color,
              sides = if (identical(style$side, 3)) "t" else "b"),
    points = ggplot_points(data, style, level, picture),
    arrows = add(ggplot2::geom_segment,
                 c(x = "x0", y = "y0", xend = "x1", yend = "y1"),
                 colour = color, arrow = ggplot2::arrow(
                   length = ggplot2::unit(0.08, "inches")
                 )),
    text = add(ggplot2::geom_text, c(xy, label = "labels"), colour = style$col,
               size = 3, vjust = if (is.null(style$over)) 0.5 else -0.4)
  )
}

# A level sets the symbol of points, and also their fill, unless the fill shows
# numbers.
ggplot_points <- function(data, style, level, picture) {
  value <- if ("value" %in% names(data)) "value"
  rimmed <- !is.null(level) && !is.null(picture$fill)
  aes <- columns_aes(c(
    x = "x", y = "y", fill = if (is.null(value) && !rimmed) level else value,
    colour = if (rimmed) level, shape = level
  ))
  pch <- style$pch[1L]
  filled <- pch %in% 21:25
  constant <- list(
    size = 2 * c(style$cex, 1)[1L], shape = if (is.null(level)) pch,
    colour = if (!filled) style$bg[1L] else if (!rimmed) "white",
    fill = if (filled && is.null(value) && is.null(level)) style$bg[1L],
    stroke = if (rimmed || pch == 1L) 0.7 else 0.2
  )
  do.call(ggplot2::geom_point, c(list(aes, data),
                                 constant[lengths(constant) > 0L]))
}

ggplot_scales <- function(picture) {
  key <- picture$key
  fill <- picture$fill
  marks <- key$label[key$kind != "box"]
  named <- \(v) stats::setNames(v, key$label)
  pch <- key$pch
  if (!is.null(fill) && !any(key$kind == "ring")) {
    # The fill shows numbers, and so levels have none: symbols that need a fill
    # (21 to 24) are replaced by solid ones.
    at <- match(pch, 21:24, 0L)
    pch[at > 0L] <- c(16L, 15L, 18L, 17L)[at]
  }
  c(
    if (length(marks)) list(
      ggplot2::scale_colour_manual(values = named(key$color), breaks = marks),
      ggplot2::scale_shape_manual(values = named(pch), breaks = marks),
      ggplot2::scale_linetype_manual(values = named(key$lty), breaks = marks)
    ),
    list(
      if (!is.null(fill)) {
        scale <- if (is.null(fill$steps)) ggplot2::scale_fill_gradientn else
          ggplot2::scale_fill_stepsn
        do.call(scale, c(
          list(colours = fill$colors, limits = fill$limits,
               na.value = "transparent"),
          if (!is.null(fill$steps)) list(breaks = fill$steps, labels = \(at) {
            ifelse(seq_along(at) %% 2, tick_labels(at), "")
          }),
          if (!is.null(fill$at)) list(breaks = fill$at, labels = fill$labels)
        ))
      } else if (!is.null(key)) {
        ggplot2::scale_fill_manual(name = NULL, values = named(key$color),
                                   breaks = key$label)
      },
      ggplot_axis(picture, "x", picture$ticks_x, ggplot2::scale_x_continuous,
                  ggplot2::scale_x_log10),
      ggplot_axis(picture, "y", picture$ticks_y, ggplot2::scale_y_continuous,
                  ggplot2::scale_y_log10)
    )
  )
}

ggplot_axis <- function(picture, side, ticks, continuous, log10) {
  if (grepl(side, paste0("", picture$log))) {
    log10()
  } else if (!is.null(ticks)) {
    turned <- side == "x" && sum(nchar(ticks$labels)) > 40L
    continuous(breaks = ticks$at, labels = ticks$labels,
               guide = ggplot2::guide_axis(angle = if (turned) 90 else NULL))
  } else if (side %in% picture$whole) {
    continuous(breaks = \(limits) unique(round(pretty(limits))))
  } else {
    continuous(labels = tick_labels)
  }
}


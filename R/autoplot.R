# The pictures of plot() as objects of ggplot2, which may be absent: methods are
# registered when it is loaded.

#' Plots for ggplot2
#'
#' What `plot()` draws, as an object of ggplot2 that can be themed, changed and
#' saved by its functions.
#'
#' The pictures are those of [plot.kme()], [plot.kme_pca()], [plot.kme_fda()],
#' [plot.kme_density()], [plot.rkhs_iv()], [plot.bag_smm()], [plot.mmd_test()]
#' and of the `plot()` methods of [kme_cov()], [hsic_test()], [gram()] and
#' [kme_landmarks()]: the same data, limits, colors, symbols and titles. What
#' several figures show is one plot with facets. More than twelve levels are not
#' left out of the legend, which is where ggplot2 puts it; add layers, scales
#' and themes with `+` as usual (a scale that is there is replaced).
#'
#' @param object A fit, a test or a gram.
#' @param type As in `plot()` of the class.
#' @param n Points on an axis of a grid.
#' @param ... Must be empty.
#' @param groups,comps,columns,what,column,newdata,interval,level As in `plot()`
#'   of the class.
#' @return An object of class `ggplot`.
#' @name autoplot.kme
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' library(ggplot2)
#' fit <- kme_pca(scale(iris[, 1:4]), ncomp = 2)
#' autoplot(fit, groups = iris$Species) + theme_minimal()
#' autoplot(kme(scale(faithful), kernel_rbf(0.5), "fkmse"))
NULL

#' @rdname autoplot.kme
#' @exportS3Method ggplot2::autoplot
autoplot.kme <- function(object, type = NULL, n = 100, ...,
                         interval = FALSE, level = 0.95) {
  check_dots(...)
  as_ggplot(picture_kme(object, type = type, n = n, interval = interval,
                        level = level))
}

#' @rdname autoplot.kme
#' @exportS3Method ggplot2::autoplot
autoplot.kme_pca <- function(object, type = NULL, comps = NULL, groups = NULL,
                             ..., newdata = NULL) {
  check_dots(...)
  name <- short_name(substitute(groups))
  as_ggplot(picture_pca(object, type = type, comps = comps, groups = groups,
                        name = name, newdata = newdata))
}

#' @rdname autoplot.kme
#' @exportS3Method ggplot2::autoplot
autoplot.kme_cov <- function(object, type = NULL, groups = NULL, ...) {
  check_dots(...)
  name <- short_name(substitute(groups))
  as_ggplot(picture_cov(object, type = type, groups = groups, name = name))
}

#' @rdname autoplot.kme
#' @exportS3Method ggplot2::autoplot
autoplot.kme_fda <- function(object, type = NULL, n = 100, ...,
                             newdata = NULL) {
  check_dots(...)
  as_ggplot(picture_fda(object, type = type, n = n, newdata = newdata))
}

#' @rdname autoplot.kme
#' @exportS3Method ggplot2::autoplot
autoplot.kme_density <- function(object, type = NULL, columns = NULL, n = 200,
                                 ...) {
  check_dots(...)
  as_ggplot(picture_density(object, type = type, columns = columns, n = n))
}

#' @rdname autoplot.kme
#' @exportS3Method ggplot2::autoplot
autoplot.rkhs_iv <- function(object, type = NULL, what = NULL, column = NULL,
                             n = 200, ...) {
  check_dots(...)
  picture <- picture_iv(object, type = type, what = what, column = column,
                        n = n)
  if (any(vapply(picture$panels, \(p) !is.null(p$ticks), NA))) {
    stop_input("'what' must be \"g\" or \"h\" where a function of levels is ",
               "drawn: facets share the names of their ticks")
  }
  as_ggplot(picture)
}

#' @rdname autoplot.kme
#' @exportS3Method ggplot2::autoplot
autoplot.bag_smm <- function(object, type = NULL, ...) {
  check_dots(...)
  as_ggplot(picture_smm(object, type = type))
}

#' @rdname autoplot.kme
#' @exportS3Method ggplot2::autoplot
autoplot.mmd_test <- function(object, type = NULL, n = 100, groups = NULL,
                              ...) {
  check_dots(...)
  as_ggplot(picture_mmd(object, type = type, n = n, groups = groups))
}

#' @rdname autoplot.kme
#' @exportS3Method ggplot2::autoplot
autoplot.mmd_comparisons <- function(object, type = NULL, ...) {
  check_dots(...)
  as_ggplot(picture_comparisons(object, type = type))
}

#' @rdname autoplot.kme
#' @exportS3Method ggplot2::autoplot
autoplot.kme_landmarks <- function(object, type = NULL, ...) {
  check_dots(...)
  as_ggplot(picture_landmarks(object, type = type))
}

#' @rdname autoplot.kme
#' @exportS3Method ggplot2::autoplot
autoplot.hsic_test <- function(object, type = NULL, ...) {
  check_dots(...)
  plot_type("null", NULL, type)
  as_ggplot(picture_null(object))
}

#' @rdname autoplot.kme
#' @exportS3Method ggplot2::autoplot
autoplot.gram <- function(object, type = NULL, ...) {
  check_dots(...)
  as_ggplot(picture_gram(object, type = type))
}

# --- From pictures -----------------------------------------------------------

as_ggplot <- function(picture) {
  if (!requireNamespace("ggplot2", quietly = TRUE)) {
    stop_input("autoplot() needs the package ggplot2; plot() does not")
  }
  tryCatch(build_ggplot(picture), error = \(e) {
    if (inherits(e, "kernmean_error")) stop(e)
    stop_kernmean("graphics", "ggplot2 cannot draw the picture: ",
                  conditionMessage(e))
  })
}

build_ggplot <- function(picture) {
  several <- !is.null(picture$panels)
  panels <- if (several) picture$panels else list(picture)
  first <- panels[[1L]]
  # What panels share: a key with their entries in other words, the colors.
  if (several) first[names(picture)] <- picture
  layers <- lapply(seq_along(first$layers), \(i) {
    parts <- lapply(panels, \(panel) {
      data <- layer_frame(panel$layers[[i]])
      if (several) {
        data$panel <- panel$panel
        same <- match(data$level, panel$key$label)
        if (length(same)) data$level <- first$key$label[same]
      }
      data
    })
    ggplot_layer(first$layers[[i]], do.call(rbind, parts), first)
  })
  title <- first$title
  parts <- c(
    layers, ggplot_scales(first),
    list(
      ggplot2::labs(
        # ggplot2 does not wrap titles.
        title = if (is.character(title)) {
          paste(strwrap(title, 45L), collapse = "\n")
        } else {
          title
        },
        x = first$xlab, y = first$ylab, subtitle = first$note$text,
        colour = NULL, shape = NULL, linetype = NULL, fill = first$fill$title
      ),
      if (several) {
        ggplot2::facet_wrap("panel",
                            scales = if (isTRUE(picture$free)) "free" else
                              "fixed")
      } else {
        ggplot2::coord_cartesian(first$xlim, first$ylim,
                                 expand = !isTRUE(first$flush))
      }
    )
  )
  Reduce(`+`, parts, ggplot2::ggplot())
}

# aes() of the names of columns.
columns_aes <- function(...) {
  do.call(ggplot2::aes, lapply(list(...), as.name))
}

# The data of a layer, in rows.
layer_frame <- function(layer) {
  data <- layer$data
  found <- switch(layer$kind,
    image = , contour = data.frame(
      x = rep(data$x, length(data$y)), y = rep(data$y, each = length(data$x)),
      z = as.vector(data$z)
    ),
    across = data.frame(at = c(data$v, data$h)),
    as.data.frame(data[!vapply(data, is.null, NA)])
  )
  if (!is.null(layer$level)) {
    found$level <- rep_len(as.character(layer$level), nrow(found))
  }
  if (is.null(layer$shown)) found else found[layer$shown, , drop = FALSE]
}

# Rasters want steps that are equal to 1e-8, which those of large numbers are
# not.
geom_cells <- function(data) {
  steps <- lapply(data[c("x", "y")], \(at) diff(sort(unique(at))))
  uneven <- vapply(steps, \(s) any(abs(diff(s)) > 1e-8), NA)
  if (any(uneven)) ggplot2::geom_tile else ggplot2::geom_raster
}

ggplot_layer <- function(layer, data, picture) {
  style <- layer$style
  level <- if (!is.null(layer$level)) "level"
  width <- c(style$lwd, 1)[1L] / 2
  color <- c(style$col, "black")[1L]
  switch(layer$kind,
    line = if (is.null(level)) {
      ggplot2::geom_path(columns_aes(x = "x", y = "y"), data, colour = color,
                         linewidth = width, linetype = c(style$lty, 1)[1L],
                         na.rm = TRUE)
    } else {
      ggplot2::geom_path(
        columns_aes(x = "x", y = "y", colour = level, linetype = level), data,
        linewidth = width, na.rm = TRUE
      )
    },
    spikes = ggplot2::geom_segment(
      columns_aes(x = "x", y = "y", xend = "x"), data, yend = 0
    ),
    area = ggplot2::geom_area(columns_aes(x = "x", y = "y", fill = level), data,
                              position = "identity"),
    ribbon = ggplot2::geom_ribbon(
      columns_aes(x = "x", ymin = "y0", ymax = "y1", fill = level), data
    ),
    bars = ggplot_bars(data, style, level),
    image = if (is.null(level)) {
      geom_cells(data)(columns_aes(x = "x", y = "y", fill = "z"), data)
    } else {
      geom_cells(data)(columns_aes(x = "x", y = "y", fill = level), data,
                       alpha = 0.25)
    },
    contour = ggplot2::geom_contour(columns_aes(x = "x", y = "y", z = "z"),
                                    data, colour = color, linewidth = 0.3),
    across = ggplot_across(data, style, level, !is.null(layer$data$v)),
    rug = ggplot2::geom_rug(
      columns_aes(x = "x"), data, colour = color,
      sides = if (identical(style$side, 3)) "t" else "b"
    ),
    points = ggplot_points(data, style, level, picture),
    text = ggplot2::geom_text(
      columns_aes(x = "x", y = "y", label = "labels"), data,
      colour = style$col, size = 3, vjust = if (isTRUE(style$over)) -0.4 else
        0.5
    )
  )
}

ggplot_across <- function(data, style, level, upright) {
  geom <- if (upright) ggplot2::geom_vline else ggplot2::geom_hline
  at <- if (upright) list(xintercept = "at") else list(yintercept = "at")
  if (!is.null(level)) {
    at <- c(at, colour = level, linetype = level)
    return(geom(do.call(columns_aes, at), data, linewidth = style$lwd / 2))
  }
  geom(do.call(columns_aes, at), data, colour = style$col,
       linetype = style$lty, linewidth = style$lwd / 2)
}

ggplot_bars <- function(data, style, level) {
  names <- list(xmin = "x0", ymin = "y0", xmax = "x1", ymax = "y1")
  border <- if (is.na(style$border)) NA else style$border
  if (is.null(level)) {
    ggplot2::geom_rect(do.call(columns_aes, names), data, fill = style$col,
                       colour = border)
  } else {
    ggplot2::geom_rect(do.call(columns_aes, c(names, fill = level)), data,
                       colour = border)
  }
}

# Levels have a symbol, and a fill where numbers do not have it.
ggplot_points <- function(data, style, level, picture) {
  value <- if ("value" %in% names(data)) "value"
  rimmed <- !is.null(level) && !is.null(picture$fill)
  aes <- do.call(columns_aes, c(
    list(x = "x", y = "y"), fill = if (is.null(value) && !rimmed) level else
      value, colour = if (rimmed) level, shape = level
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

# A square is solid, and so on, where nothing else fills it.
solid_pch <- function(pch) {
  solid <- c(`21` = 16L, `22` = 15L, `23` = 18L, `24` = 17L)
  found <- unname(solid[as.character(pch)])
  ifelse(is.na(found), pch, found)
}

ggplot_scales <- function(picture) {
  key <- picture$key
  fill <- picture$fill
  solid <- !is.null(fill) && !any(key$kind == "ring")
  marks <- key$label[key$kind != "box"]
  named <- \(v) stats::setNames(v, key$label)
  c(
    if (length(marks)) list(
      ggplot2::scale_colour_manual(values = named(key$color), breaks = marks),
      ggplot2::scale_shape_manual(
        values = named(if (solid) solid_pch(key$pch) else key$pch),
        breaks = marks
      ),
      ggplot2::scale_linetype_manual(values = named(key$lty), breaks = marks)
    ),
    list(
      if (!is.null(fill)) {
        do.call(ggplot2::scale_fill_gradientn, c(
          list(colours = fill$colors, limits = fill$limits,
               na.value = "transparent"),
          if (!is.null(fill$at)) list(breaks = fill$at, labels = fill$labels)
        ))
      } else if (!is.null(key)) {
        ggplot2::scale_fill_manual(name = NULL, values = named(key$color),
                                   breaks = key$label)
      }
    ),
    ggplot_axes(picture)
  )
}

ggplot_axes <- function(picture) {
  log <- if (is.null(picture$log)) "" else picture$log
  ticks <- picture$ticks
  whole <- \(limits) unique(round(pretty(limits)))
  list(
    if (grepl("x", log)) {
      ggplot2::scale_x_log10()
    } else if (!is.null(ticks)) {
      turned <- sum(nchar(ticks$labels)) > 40L
      ggplot2::scale_x_continuous(
        breaks = ticks$at, labels = ticks$labels,
        guide = ggplot2::guide_axis(angle = if (turned) 90 else NULL)
      )
    } else if ("x" %in% picture$whole) {
      ggplot2::scale_x_continuous(breaks = whole)
    },
    if (grepl("y", log)) {
      ggplot2::scale_y_log10()
    } else if (!is.null(picture$ticks_y)) {
      ggplot2::scale_y_continuous(breaks = picture$ticks_y$at,
                                  labels = picture$ticks_y$labels)
    } else if ("y" %in% picture$whole) {
      ggplot2::scale_y_continuous(breaks = whole)
    }
  )
}

# Pictures by base graphics.

# Draws a picture in the frame that it takes, and returns its value. `dots` are
# the graphical parameters of the caller.
draw_picture <- function(picture, dots = list(), legend = TRUE) {
  check_graphics(dots)
  legend <- check_legend(legend)
  # main = NULL is no title.
  dots <- dots[names(dots) == "main" | !vapply(dots, is.null, NA)]
  with_graphics(if (is.null(picture$panels)) {
    draw_panel(picture, dots, legend)
  } else {
    draw_panels(picture$panels, dots, legend)
  })
  invisible(picture$value)
}

draw_panel <- function(picture, dots, legend) {
  own <- dots[names(dots) %in% layer_words]
  if (any(c("col", "bg", "pch") %in% names(own)) && has_own_points(picture)) {
    # What they stand for is no longer what the legend says.
    picture$key <- NULL
    picture$bar <- FALSE
  }
  frame <- open_frame(picture, dots[!names(dots) %in% names(own)], legend)
  on.exit(close_frame(frame$before))
  for (layer in picture$layers) {
    draw_layer(layer, if (isTRUE(layer$main)) own else list())
  }
  finish_frame(frame)
}

# Do points in groups take the parameters of the caller?
has_own_points <- function(picture) {
  any(vapply(picture$layers, \(layer) {
    isTRUE(layer$main) && layer$kind == "points"
  }, NA))
}

# In a figure of its own each: of the caller's layout, or else of one for them.
draw_panels <- function(panels, dots, legend) {
  if (all(graphics::par("mfrow") == 1L)) {
    before <- graphics::par(c("mfrow", "cex"))
    wide <- graphics::par("din")[1L] / graphics::par("din")[2L]
    graphics::par(mfrow = if (length(panels) == 2L && wide > 1) {
      c(1, 2)
    } else {
      grDevices::n2mfrow(length(panels), wide)
    })
    on.exit(graphics::par(before))
  }
  for (panel in panels) draw_panel(panel, dots, legend)
}

draw_layer <- function(layer, own) {
  data <- layer$data
  if (layer$kind == "points") {
    return(draw_points(layer, own))
  }
  takes <- switch(layer$kind,
    line = , spikes = c("col", "lty", "lwd", "lend", "ljoin", "lmitre"),
    bars = c("col", "border", "density", "angle", "lty", "lwd"),
    contour = setdiff(layer_words, c("bg", "border", "cex", "pch", "density",
                                     "angle"))
  )
  style <- utils::modifyList(layer$style, own[names(own) %in% takes])
  arguments <- c(data, style)
  switch(layer$kind,
    line = do.call(graphics::lines, arguments),
    spikes = do.call(graphics::lines, c(arguments, list(type = "h"))),
    area = do.call(graphics::polygon, c(
      list(x = c(data$x[1L], data$x, data$x[length(data$x)]),
           y = c(0, data$y, 0), border = NA), style
    )),
    ribbon = do.call(graphics::polygon, c(
      list(x = c(data$x, rev(data$x)), y = c(data$y0, rev(data$y1)),
           border = NA), style
    )),
    bars = do.call(graphics::rect, c(
      unname(data[c("x0", "y0", "x1", "y1")]), style
    )),
    image = do.call(graphics::image, c(arguments, list(
      add = TRUE, useRaster = TRUE
    ))),
    contour = do.call(graphics::contour, c(arguments, list(add = TRUE))),
    across = do.call(graphics::abline, c(
      data[lengths(data) > 0L], style
    )),
    rug = do.call(graphics::rug, c(arguments, list(quiet = TRUE))),
    text = draw_words(layer)
  )
  invisible()
}

# Words at points, or `over` them, as large as fits into so much of x; none
# where that is too small to be read.
draw_words <- function(layer) {
  style <- layer$style
  room <- c(graphics::xinch(1, FALSE), graphics::yinch(1, FALSE))
  wide <- max(graphics::strwidth(layer$data$labels, "inches", 1), 1e-6)
  high <- graphics::strheight("X", "inches", 1)
  cex <- min(0.9, 0.95 * style$width / room[1L] / wide,
             if (!isTRUE(style$over)) 0.7 / room[2L] / high)
  if (cex >= 0.35) {
    graphics::text(
      layer$data$x, layer$data$y, layer$data$labels, cex = cex, col = style$col,
      adj = c(0.5, if (isTRUE(style$over)) -0.4 else 0.5)
    )
  }
}

# A color of the caller's fills the symbols, a symbol of the caller's has the
# color of its point.
draw_points <- function(layer, own) {
  style <- layer$style
  style$cex <- c(style$cex, 1)[1L] *
    min(1, max(0.7, sqrt(min(graphics::par("pin")) / 3)))
  own <- own[names(own) %in% c("col", "pch", "cex", "bg", "lwd")]
  if ("pch" %in% names(own)) {
    style$col <- style$bg
    style$lwd <- 1
  }
  if ("col" %in% names(own) && !"bg" %in% names(own)) own$bg <- own$col
  style <- utils::modifyList(style, own)
  n <- length(layer$data$x)
  shown <- if (is.null(layer$shown)) seq_len(n) else layer$shown
  style <- lapply(style, \(s) if (length(s) == n) s[shown] else s)
  do.call(graphics::points, c(
    list(layer$data$x[shown], layer$data$y[shown]), style
  ))
}

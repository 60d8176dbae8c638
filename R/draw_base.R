# Pictures by base graphics.

# Draws a picture and returns its value. `dots` are the graphical parameters of
# the caller: for the layers that have `main`, for the frame, and for par().
draw_picture <- function(picture, dots = list(), legend = TRUE) {
  panels <- picture$panels
  if (is.null(panels)) {
    panels <- list(picture)
  } else if (all(graphics::par("mfrow") == 1L)) {
    # In a figure of its own each, where the caller has no layout.
    wide <- graphics::par("din")[1L] / graphics::par("din")[2L]
    before <- graphics::par("cex", mfrow = if (length(panels) == 2L) 1:2 else
      grDevices::n2mfrow(length(panels), wide))
    on.exit(graphics::par(before))
  }
  for (panel in panels) draw_panel(panel, dots, legend)
  invisible(picture$value)
}

layer_words <- c(
  "bg", "border", "cex", "col", "lend", "ljoin", "lmitre", "lty", "lwd", "pch",
  "density", "angle", "levels", "nlevels", "labels", "labcex", "drawlabels",
  "method", "vfont"
)
frame_words <- c("title", "sub", "xlab", "ylab", "xlim", "ylim", "log", "asp",
                 "axes", "ann", "frame.plot")

draw_panel <- function(picture, dots, legend) {
  names(dots)[names(dots) == "main"] <- "title"
  own <- dots[names(dots) %in% layer_words]
  picture <- utils::modifyList(picture, dots[names(dots) %in% frame_words])
  settings <- dots[!names(dots) %in% c(layer_words, frame_words)]
  # In small figures what stands around is small, and close.
  small <- min(graphics::par("fin")) < 4
  size <- min(1, max(0.6, min(graphics::par("fin")) / 3))
  settings <- utils::modifyList(
    c(list(las = 1), if (small) list(mgp = size * c(2, 0.6, 0), tcl = -0.3,
                                     cex.main = size, cex.lab = size,
                                     cex.axis = size)),
    settings
  )
  # Margins of next to nothing, to measure what is to stand in them.
  before <- graphics::par(mar = rep(0.01, 4))
  on.exit(close_frame(before))
  before <- c(before, Filter(length, graphics::par(settings)))
  graphics::plot.new()
  key <- fit_key(picture, own, legend)
  open_window(picture, settings)
  frame <- measure_frame(picture, key)
  graphics::par(mar = if (small) frame$need else pmax(frame$need, before$mar))
  open_window(picture, settings)
  # Before the layers: these are clipped after something in the margins.
  draw_frame(picture, frame)
  for (layer in picture$layers) {
    draw_layer(layer, if (isTRUE(layer$main)) own else list())
  }
  if (!isFALSE(picture$axes) && !isFALSE(picture$frame.plot)) graphics::box()
  if (!is.null(key)) {
    pin <- graphics::par("pin")
    draw_key(key, if (key$outside) c(1 + 0.1 / pin[1L], 0) else 0.02)
  }
}

open_window <- function(picture, settings) {
  log <- if (is.null(picture$log)) "" else picture$log
  limits <- picture_limits(picture$layers, log)
  style <- c(if (isTRUE(picture$flush)) "i", "r")
  graphics::plot.window(
    if (is.null(picture$xlim)) limits$x else picture$xlim,
    if (is.null(picture$ylim)) limits$y else picture$ylim,
    log, if (is.null(picture$asp)) NA else picture$asp,
    xaxs = c(settings$xaxs, style)[1L], yaxs = c(settings$yaxs, style)[1L]
  )
}

# The parameters as they were. As the margins were others the coordinates are
# extended, so that what is added to the plot falls into place.
close_frame <- function(before) {
  usr <- graphics::par("usr")
  from <- graphics::par("plt")
  graphics::par(before)
  to <- graphics::par("plt")
  moved <- \(i) {
    usr[i[1L]] + diff(usr[i]) / diff(from[i]) * (to[i] - from[i[1L]])
  }
  if (to[2L] > to[1L] && to[4L] > to[3L]) {
    graphics::par(usr = c(moved(1:2), moved(3:4)))
  }
}

# --- The frame ---------------------------------------------------------------

# Text in lines of at most so many inches, about.
wrapped <- function(text, width, cex, font = 1) {
  if (!is.character(text)) {
    return(text)
  }
  wide <- graphics::strwidth(text, "inches", cex, font)
  long <- which(wide > width)
  text[long] <- vapply(long, \(i) {
    paste(strwrap(text[i], nchar(text[i]) * width / wide[i]), collapse = "\n")
  }, "")
  text
}

# What stands in the margins, and the lines that these need: list(labels, at:
# the lines where they stand; size, turned: of the ticks; title, need).
measure_frame <- function(picture, key) {
  par <- graphics::par(c("mgp", "fin", "mai", "mar", "cex.axis", "cex.lab",
                         "cex.main", "font.main", "las"))
  line <- par$mai[1L] / par$mar[1L]
  high <- \(text, cex) {
    if (length(text)) graphics::strheight(text, "inches", cex) / line else 0
  }
  right <- if (isTRUE(key$outside)) (key$width + 0.15) / line else 0.8
  size <- rep(par$cex.axis, 2L)
  reach <- numeric(2)
  turned <- c(par$las >= 2, par$las %in% 1:2)
  for (side in 1:2) {
    words <- picture[[c("ticks", "ticks_y")[side]]]$labels
    wide <- graphics::strwidth(
      if (is.null(words)) format(graphics::axTicks(side)) else words, "inches",
      par$cex.axis
    )
    if (is.null(words)) {
      reach[side] <- max(wide) / line
    } else {
      if (any(wide > 0.7 * par$fin[side] / length(wide))) turned[side] <- TRUE
      share <- min(1, 0.4 * par$fin[3L - side] / max(wide))
      size[side] <- share * par$cex.axis
      reach[side] <- share * max(wide) / line
    }
  }
  at <- pmax(par$mgp[1L], par$mgp[2L] + reach * turned + 0.5)
  room <- par$fin - line * c(at[2L] + right, 2)
  labels <- lapply(1:2, \(side) {
    wrapped(picture[[c("xlab", "ylab")[side]]], room[side], par$cex.lab)
  })
  rows <- vapply(labels, high, 1, par$cex.lab)
  left <- at[2L] + rows[2L] + 0.4
  title <- wrapped(picture$title, par$fin[1L] - (left + 0.5) * line,
                   par$cex.main, par$font.main)
  note <- if (is.null(picture$note)) 0 else 1.1
  list(labels = labels, at = at + c(1.2 * max(0, rows[1L] - 0.8), 0),
       size = size, turned = turned, title = title, note = note,
       need = c(at[1L] + 1.2 * rows[1L] + 0.4, left,
                note + high(title, par$cex.main) + 1.2, right))
}

draw_frame <- function(picture, frame) {
  for (side in if (!isFALSE(picture$axes)) 1:2) {
    ticks <- picture[[c("ticks", "ticks_y")[side]]]
    if (!is.null(ticks)) {
      graphics::axis(side, ticks$at, ticks$labels, tick = isTRUE(ticks$tick),
                     las = if (frame$turned[side]) 2 else 0,
                     cex.axis = frame$size[side])
    } else if (c("x", "y")[side] %in% picture$whole) {
      at <- graphics::axTicks(side)
      graphics::axis(side, at[at == round(at)])
    } else {
      graphics::axis(side)
    }
  }
  if (isFALSE(picture$ann)) {
    return(invisible())
  }
  graphics::title(xlab = frame$labels[[1L]], line = frame$at[1L])
  graphics::title(ylab = frame$labels[[2L]], line = frame$at[2L])
  graphics::title(frame$title, line = frame$note + 0.6, adj = 0)
  graphics::title(sub = picture$sub)
  note <- picture$note
  if (!is.null(note)) {
    graphics::mtext(note$text, 3, 0.4, adj = 0, col = note$color,
                    cex = 0.9 * graphics::par("cex") * graphics::par("cex.lab"))
  }
}

# --- The legend --------------------------------------------------------------

most_levels <- 12L

# The legend of a picture, NULL for none: its entries, title, place, cex and
# width in inches. Colors of numbers have boxes, the largest number on top.
# Where the caller gives others to the points it would be wrong.
fit_key <- function(picture, own, legend) {
  main <- Find(\(layer) layer$main, picture$layers)
  if (isFALSE(legend) || identical(main$kind, "points") &&
        any(c("col", "bg", "pch") %in% names(own))) {
    return(NULL)
  }
  key <- picture$key
  if (isTRUE(nrow(key) > most_levels)) {
    more <- nrow(key) - most_levels + 1L
    key <- key[seq_len(most_levels), ]
    key$label[most_levels] <- paste("and", more, "more")
    key$kind[most_levels] <- "none"
  }
  fill <- if (isTRUE(picture$bar)) picture$fill
  if (!is.null(fill)) {
    key <- rbind(key, key_entries(rev(fill$labels),
                                  color_of(rev(fill$at), fill), "box"))
  }
  if (is.null(key)) {
    return(NULL)
  }
  outside <- isTRUE(legend) || identical(legend, "outside")
  most <- graphics::par("fin") * c(0.4, 0.6)
  cex <- 0.9 * graphics::par("cex.lab")
  key$label <- wrapped(key$label, most[1L] - 0.5 * cex, cex)
  found <- list(entries = key, cex = cex, outside = outside,
                title = wrapped(fill$title, most[1L] - 0.2, cex),
                place = if (outside) "topleft" else legend)
  size <- function() {
    rect <- draw_key(found, 0, plot = FALSE)$rect
    c(rect$w, rect$h) * graphics::par("pin")
  }
  graphics::plot.window(0:1, 0:1, xaxs = "i", yaxs = "i")
  found$cex <- cex * min(1, most / size())
  found$width <- size()[1L]
  found
}

draw_key <- function(key, inset, plot = TRUE) {
  e <- key$entries
  is <- \(...) e$kind %in% c(...)
  lines <- if (any(is("line"))) {
    # With these legend() leaves room for lines, and draws some.
    list(lty = ifelse(is("line"), e$lty, NA),
         lwd = ifelse(is("line"), e$lwd, NA), seg.len = 1.4)
  }
  do.call(graphics::legend, c(list(
    key$place, e$label, inset = inset, cex = key$cex, title = key$title,
    bg = "white", box.col = "grey60", xpd = NA, plot = plot,
    y.intersp = 0.7 + 0.3 * max(lengths(strsplit(e$label, "\n"))),
    pch = ifelse(is("point", "ring"), e$pch, ifelse(is("box"), 22L, NA)),
    col = ifelse(is("ring", "line"), e$color,
                 ifelse(is("box"), "grey60", "white")),
    pt.bg = ifelse(is("point", "box"), e$color, "white"),
    pt.cex = ifelse(is("box"), 1.7, 1.1) * key$cex / 0.9,
    pt.lwd = ifelse(is("ring"), 1.5, 0.6)
  ), lines))
}

# --- Layers ------------------------------------------------------------------

draw_layer <- function(layer, own) {
  data <- layer$data
  add <- \(f, ...) do.call(f, c(list(...), utils::modifyList(layer$style, own)))
  last <- length(data$x)
  switch(layer$kind,
    points = draw_points(layer, own),
    line = add(graphics::lines, data$x, data$y),
    spikes = add(graphics::lines, data$x, data$y, type = "h"),
    area = add(graphics::polygon, data$x[c(1L, seq_len(last), last)],
               c(0, data$y, 0), border = NA),
    ribbon = add(graphics::polygon, c(data$x, rev(data$x)),
                 c(data$y0, rev(data$y1)), border = NA),
    bars = add(graphics::rect, data$x0, data$y0, data$x1, data$y1),
    image = add(graphics::image, data$x, data$y, data$z, add = TRUE,
                useRaster = TRUE),
    contour = add(graphics::contour, data$x, data$y, data$z, add = TRUE),
    across = add(graphics::abline, h = data$h, v = data$v),
    rug = add(graphics::rug, data$x, quiet = TRUE),
    text = draw_words(layer)
  )
}

# Words at points, or `over` them, as large as fits into so much of x; none
# where that is too small to be read.
draw_words <- function(layer) {
  style <- layer$style
  over <- isTRUE(style$over)
  wide <- max(graphics::strwidth(layer$data$labels, cex = 1))
  cex <- min(0.9, 0.95 * style$width / wide,
             if (!over) 0.7 / graphics::strheight("X", cex = 1))
  if (cex >= 0.35) {
    graphics::text(layer$data$x, layer$data$y, layer$data$labels, cex = cex,
                   col = style$col, adj = c(0.5, if (over) -0.4 else 0.5))
  }
}

# A color of the caller's fills the symbols, a symbol of the caller's has the
# color of its point.
draw_points <- function(layer, own) {
  style <- layer$style
  if ("pch" %in% names(own)) style[c("col", "lwd")] <- list(style$bg, 1)
  if (is.null(own$bg)) own$bg <- own$col
  style <- utils::modifyList(style, own)
  n <- length(layer$data$x)
  shown <- if (is.null(layer$shown)) seq_len(n) else layer$shown
  style <- lapply(style, \(s) if (length(s) == n) s[shown] else s)
  do.call(graphics::points, c(
    list(layer$data$x[shown], layer$data$y[shown]), style
  ))
}

# The frame of a picture: its margins are measured from what stands in them,
# titles are wrapped, letters made smaller before anything is cut.

default_margins <- c(5.1, 4.1, 4.1, 2.1)

# Opens the next figure and draws the axes and titles: list(before: parameters
# to be restored, key: see place_key(), picture, bar: are its colors to have
# one?, box).
open_frame <- function(picture, dots, legend) {
  picture <- overridden(picture, dots)
  settings <- utils::modifyList(
    list(las = 1), dots[names(dots) %in% frame_settings]
  )
  before <- graphics::par(unique(c("mar", names(settings), tightened)))
  opened <- FALSE
  on.exit(if (!opened) graphics::par(before))
  # So that there is room for a figure, whatever the margins.
  graphics::par(mar = numeric(4))
  graphics::plot.new()
  graphics::par(mar = rep(1, 4))
  line <- graphics::par("mai")[1L]
  graphics::par(mar = numeric(4))
  graphics::par(settings)
  small <- is_small(before, line)
  if (small) tighten(names(settings))
  window <- picture_window(picture, dots)
  do.call(graphics::plot.window, window)
  sides <- measure_sides(picture, dots, line)
  bar <- isTRUE(picture$bar) && !isFALSE(legend)
  if (bar) sides$need[4L] <- sum(bar_sizes(picture$fill)) / line + 0.3
  title <- fit_margins(picture, sides, before$mar, line, small)
  do.call(graphics::plot.window, window)
  key <- place_key(picture, legend)
  if (!is.null(key) && key$room > 0) {
    sides$need[4L] <- sides$need[4L] * bar + key$room / line + 0.2
    title <- fit_margins(picture, sides, before$mar, line, small)
    do.call(graphics::plot.window, window)
  }
  if (!isFALSE(dots$axes)) draw_axes(picture, dots, sides)
  if (!isFALSE(dots$ann)) {
    draw_titles(picture, dots, sides, title)
  }
  opened <- TRUE
  list(before = before, key = key, picture = picture, bar = bar,
       box = !isFALSE(dots$axes) && !isFALSE(dots$frame.plot))
}

# Would the default margins leave less than two inches?
is_small <- function(before, line) {
  inside <- graphics::par("fin") - line * c(6.2, 9.2)
  isTRUE(all.equal(before$mar, default_margins)) && any(inside < 2.2)
}

# What is made smaller there, unless it was given.
tightened <- c("mgp", "tcl", "cex.main")

tighten <- function(given) {
  smaller <- list(mgp = c(2, 0.55, 0), tcl = -0.3, cex.main = 1)
  kept <- setdiff(tightened, given)
  if (!identical(graphics::par("mgp"), c(3, 1, 0))) kept <- setdiff(kept, "mgp")
  graphics::par(smaller[kept])
}

# What stands over the layers.
finish_frame <- function(frame) {
  if (frame$box) graphics::box()
  key <- frame$key
  if (frame$bar) draw_bar(frame$picture$fill)
  if (is.null(key)) {
    return(invisible())
  }
  if (key$place == "outside") {
    pin <- graphics::par("pin")
    past <- sum(frame$bar * bar_sizes(frame$picture$fill), gap_outside)
    high <- key_size(key$key, key$cex)[2L]
    draw_key(key$key, "topleft", key$cex, c(1 + past / pin[1L],
                                            min(0, (1 - high) / 2)))
  } else {
    draw_key(key$key, key$place, key$cex)
  }
  invisible()
}

# The parameters as they were. Where the margins were others the coordinates are
# extended to the frame that is restored, so that what is added to the plot
# falls into place.
close_frame <- function(before) {
  usr <- graphics::par("usr")
  from <- graphics::par("plt")
  graphics::par(before)
  to <- graphics::par("plt")
  if (isTRUE(all.equal(from, to, tolerance = 1e-12)) ||
        to[2L] <= to[1L] || to[4L] <= to[3L]) {
    return(invisible())
  }
  moved <- \(i) {
    slope <- diff(usr[i]) / diff(from[i])
    usr[i[1L]] + slope * (to[i] - from[i[1L]])
  }
  graphics::par(usr = c(moved(1:2), moved(3:4)))
  invisible()
}

# The picture with the words of the caller.
overridden <- function(picture, dots) {
  for (name in c("xlab", "ylab", "xlim", "ylim", "log", "asp")) {
    if (!is.null(dots[[name]])) picture[[name]] <- dots[[name]]
  }
  if ("main" %in% names(dots)) picture["title"] <- list(dots$main)
  if (!is.null(picture$ticks) && !is.null(dots$names.arg)) {
    picture$ticks$labels <- dots$names.arg
  }
  picture
}

# The arguments of plot.window().
picture_window <- function(picture, dots) {
  log <- if (is.null(picture$log)) "" else picture$log
  limits <- picture_limits(picture$layers, log)
  style <- if (isTRUE(picture$flush)) "i" else "r"
  list(
    xlim = if (is.null(picture$xlim)) limits$x else picture$xlim,
    ylim = if (is.null(picture$ylim)) limits$y else picture$ylim,
    log = log, asp = if (is.null(picture$asp)) NA else picture$asp,
    xaxs = if (is.null(dots$xaxs)) style else dots$xaxs,
    yaxs = if (is.null(dots$yaxs)) style else dots$yaxs
  )
}

picture_limits <- function(layers, log = "") {
  data <- lapply(layers, \(layer) {
    if (!layer$kind %in% c("across", "rug")) layer$data
  })
  ends <- \(fields, positive) {
    v <- unlist(lapply(data, \(d) d[fields]))
    v <- v[is.finite(v) & (!positive | v > 0)]
    if (length(v)) wide_enough(range(v), positive) else c(1, 10)
  }
  list(x = ends(c("x", "x0", "x1"), grepl("x", log)),
       y = ends(c("y", "y0", "y1"), grepl("y", log)))
}

# Values that are the same but for rounding have the room of equal ones.
wide_enough <- function(ends, log = FALSE) {
  size <- max(abs(ends))
  if (size < 1e-300 && !log) {
    c(0, 0)
  } else if (diff(ends) >= 1e-9 * size) {
    ends
  } else if (log) {
    ends * c(0.5, 2)
  } else {
    rep(ends[1L], 2L)
  }
}

# --- Measures ----------------------------------------------------------------

# The ticks of a side, list(at, labels) of those within the frame.
side_ticks <- function(picture, side) {
  named <- picture[[c("ticks", "ticks_y")[side]]]
  if (!is.null(named)) {
    return(named)
  }
  at <- graphics::axTicks(side)
  if (c("x", "y")[side] %in% picture$whole) {
    at <- unique(round(at))
    usr <- graphics::par("usr")[c(1, 2) + 2 * (side - 1)]
    at <- at[at >= usr[1L] & at <= usr[2L]]
  }
  # As axis() writes them, but all different.
  digits <- getOption("digits")
  while (digits < 15L && anyDuplicated(format(at, digits = digits))) {
    digits <- digits + 1L
  }
  list(at = at, labels = format(at, digits = digits))
}

# Do the labels of a side lie along its axis, by the rule of las?
is_parallel <- function(side, las) {
  if (side == 1L) las %in% c(0, 1) else las %in% c(0, 3)
}

# What the axes and their names take: list(las, cex: of the tick labels of x,
# cex_y: of those of y, if they are names, title: the lines where the names of
# the axes 1 and 2 stand, need: the lines of margin that are wanted at least).
measure_sides <- function(picture, dots, line) {
  mgp <- graphics::par("mgp")
  las <- graphics::par("las")
  cex <- graphics::par("cex.axis")
  x <- y <- list(las = las, cex = cex)
  reach <- numeric(2)
  for (side in 1:2) {
    if (isFALSE(dots$axes) ||
          identical(dots[[c("xaxt", "yaxt")[side]]], "n")) {
      next
    }
    ticks <- side_ticks(picture, side)
    if (side == 1L && !is.null(picture$ticks)) {
      x <- fit_names(ticks$labels, las, cex, is.null(dots$las), line)
    }
    if (side == 2L && !is.null(picture$ticks_y)) {
      # Smaller where there are many.
      room <- 0.7 * graphics::par("fin")[2L] / length(ticks$at)
      y$cex <- cex * max(0.5, min(1, room / (0.8 * line)))
    }
    size <- if (side == 1L) x else y
    reach[side] <- mgp[2L] + if (is_parallel(side, size$las)) {
      size$cex
    } else {
      max(graphics::strwidth(ticks$labels, "inches", size$cex), 0) / line + 0.1
    }
  }
  labels <- lapply(1:2, \(side) {
    label <- picture[[c("xlab", "ylab")[side]]]
    if (has_words(label) && !isFALSE(dots$ann)) {
      wrap_label(label, 0.65 * graphics::par("fin")[side])
    }
  })
  title <- pmax(mgp[1L], reach + c(0.2, 0.2))
  size <- graphics::par("cex.lab")
  need <- ifelse(lengths(labels) > 0L, title + 1.1 * size * lengths(labels),
                 reach + 0.2)
  if (has_words(dots$sub)) need[1L] <- need[1L] + 1.2
  right <- max(0.8, if (is_parallel(1L, x$las)) overhang(picture, x$cex, line))
  c(x, list(cex_y = y$cex, labels = labels, title = title,
            need = c(need, 0, right)))
}

# How far the last label of x reaches over the frame, in lines.
overhang <- function(picture, cex, line) {
  ticks <- side_ticks(picture, 1L)
  usr <- graphics::par("usr")[1:2]
  at <- if (graphics::par("xlog")) log10(ticks$at) else ticks$at
  short <- (usr[2L] - at) / (usr[2L] - usr[1L]) * 0.6 * graphics::par("fin")[1L]
  wide <- graphics::strwidth(ticks$labels, "inches", cex)
  max(0, (wide / 2 - short)[short >= 0]) / line + 0.1
}

# The name of an axis in one line, or in two where it would become too small.
wrap_label <- function(label, width) {
  cex <- graphics::par("cex.lab")
  if (!is.character(label)) {
    return(as.expression(label))
  }
  if (fit_cex(label, width, cex) > 0.75 * cex) label else
    wrap_words(label, width, cex)
}

# Names under bars: side by side where they fit, else turned, and smaller where
# there are many or long ones.
fit_names <- function(labels, las, cex, free, line) {
  fin <- graphics::par("fin")
  wide <- graphics::strwidth(labels, "inches", cex)
  room <- 0.7 * fin[1L] / max(1, length(labels))
  if (is_parallel(1L, las) && free && any(wide > 0.95 * room)) {
    if (all(wide * 0.75 <= 0.95 * room)) {
      return(list(las = las, cex = 0.75 * cex))
    }
    las <- 2
  }
  if (!is_parallel(1L, las)) {
    cex <- cex * max(0.5, min(1, 0.4 * fin[2L] / max(wide), 1.1 * room / line))
  }
  list(las = las, cex = cex)
}

has_words <- function(label) {
  is.language(label) || any(!is.na(label) & nzchar(as.character(label)))
}

# Sets the margins: those of the user, wider where the labels need it; in a
# small figure what they need. The lines of the title, see fit_title().
fit_margins <- function(picture, sides, mar, line, small) {
  fin <- graphics::par("fin")
  for (pass in 1:2) {
    # The title is as wide as the sides leave it.
    need <- sides$need
    need[3L] <- if (pass == 2L) title$need else 0.8
    found <- if (small) need else pmax(mar, need)
    # In a figure that is too small the frame keeps a quarter of it.
    for (pair in list(c(2, 4), c(1, 3))) {
      most <- 0.75 * fin[1L + (pair[1L] == 1)] / line
      if (sum(found[pair]) > most) {
        found[pair] <- found[pair] * most / sum(found[pair])
      }
    }
    graphics::par(mar = found)
    if (pass == 1L) title <- fit_title(picture, found, line)
  }
  title$shift <- max(0, (found[3L] - title$need) / 2)
  title
}

# The title in the lines and of the size that fit between the edges of the
# figure: list(lines, cex, note_cex, need: lines of margin).
fit_title <- function(picture, mar, line) {
  fin <- graphics::par("fin")
  width <- 2 * (fin[1L] / 2 - abs(mar[2L] - mar[4L]) * line / 2) - 0.1
  cex <- graphics::par("cex.main")
  font <- graphics::par("font.main")
  title <- picture$title
  note <- if (!is.null(picture$note)) 1.15 else 0
  note_cex <- if (note) fit_cex(picture$note$text, width, 0.9)
  if (!has_words(title)) {
    return(list(lines = NULL, note_cex = note_cex, need = note + 0.6))
  }
  if (!is.character(title)) {
    return(list(lines = as.expression(title), cex = cex, note_cex = note_cex,
                need = note + 0.8 + 1.3 * cex))
  }
  steps <- rbind(c(1, 1), c(0.85, 1), c(0.85, 2), c(0.7, 2), c(0.7, 3),
                 c(0.55, 4))
  for (i in seq_len(nrow(steps))) {
    size <- cex * steps[i, 1L]
    lines <- wrap_words(title, width, size, font)
    fits <- all(graphics::strwidth(lines, "inches", size, font) <= width)
    if (fits && length(lines) <= steps[i, 2L]) break
  }
  # Lines of about one length.
  narrow <- width
  repeat {
    narrow <- 0.95 * narrow
    fewer <- wrap_words(title, narrow, size, font)
    if (length(fewer) > length(lines) || narrow < 0.4 * width) break
    lines <- fewer
  }
  lines <- cut_text(lines, width, size, font)
  list(lines = lines, cex = size, note_cex = note_cex,
       need = note + 0.8 + 1.1 * size * length(lines))
}

# --- What stands around ------------------------------------------------------

draw_axes <- function(picture, dots, sides) {
  for (side in 1:2) {
    if (identical(dots[[c("xaxt", "yaxt")[side]]], "n")) next
    ends <- dots[[c("xaxp", "yaxp")[side]]]
    if (!is.null(ends)) {
      graphics::par(stats::setNames(list(ends), c("xaxp", "yaxp")[side]))
    }
    named <- side == 1L && !is.null(picture$ticks)
    whole <- c("x", "y")[side] %in% picture$whole
    if (named) {
      graphics::axis(1, picture$ticks$at, picture$ticks$labels,
                     las = sides$las, cex.axis = sides$cex,
                     gap.axis = if (sides$las == 2) 0 else 0.2,
                     tick = isTRUE(picture$ticks$tick))
    } else if (side == 2L && !is.null(picture$ticks_y)) {
      graphics::axis(2, picture$ticks_y$at, picture$ticks_y$labels,
                     cex.axis = sides$cex_y, gap.axis = 0.1, tick = FALSE)
    } else if (whole) {
      graphics::axis(side, side_ticks(picture, side)$at)
    } else {
      graphics::axis(side)
    }
  }
}

draw_titles <- function(picture, dots, sides, title) {
  size <- graphics::par("cex")
  pin <- graphics::par("pin")
  mai <- graphics::par("mai")
  for (side in 1:2) {
    lines <- sides$labels[[side]]
    if (!length(lines)) next
    cex <- graphics::par("cex.lab")
    if (is.character(lines)) {
      width <- pin[side] + 1.9 * min(mai[if (side == 1L) c(2, 4) else c(1, 3)])
      cex <- fit_cex(lines, width, cex)
      lines <- cut_text(lines, width, cex)
    }
    # The first line is the upper one: at the side, the outer one.
    at <- sides$title[side] + 1.1 * cex * (seq_along(lines) - 1)
    if (side == 2L) at <- rev(at)
    # Along the axis whatever las.
    graphics::mtext(
      lines, side, at, cex = cex * size, las = 0,
      col = graphics::par("col.lab"), font = graphics::par("font.lab")
    )
  }
  if (has_words(dots$sub)) {
    graphics::title(sub = dots$sub, line = sides$title[1L] + 1.1)
  }
  at <- title$shift + 0.5
  note <- picture$note
  if (!is.null(note)) {
    graphics::mtext(note$text, 3, at - 0.2, cex = title$note_cex * size,
          col = note$color, las = 0)
    at <- at + 1.15
  }
  for (i in rev(seq_along(title$lines))) {
    graphics::mtext(title$lines[i], 3, at, cex = title$cex * size, las = 0,
          col = graphics::par("col.main"), font = graphics::par("font.main"))
    at <- at + 1.1 * title$cex
  }
}

# The legend of a plot: where it covers nothing, and a bar of colors.

legend_places <- c("topright", "topleft", "bottomright", "bottomleft", "top",
                   "bottom", "left", "right", "center")

# TRUE: a free corner, or else outside.
check_legend <- function(legend) {
  known <- c(legend_places, "outside")
  if (isTRUE(legend) || isFALSE(legend)) {
    return(legend)
  }
  if (!is.character(legend) || length(legend) != 1L || !legend %in% known) {
    stop_input("'legend' must be TRUE, FALSE, \"outside\" or a place such as ",
               "\"topright\", not ", describe(legend),
               if (is.character(legend) && length(legend) == 1L) {
                 near_name(legend, known)
               })
  }
  legend
}

# The corner of the unit square where a box of this size has most room among the
# points xy (two columns); NULL where it would cover one in each corner.
free_corner <- function(xy, width, height, gap = 0.03) {
  xy <- xy[rowSums(xy < -0.05 | xy > 1.05) == 0, , drop = FALSE]
  corners <- list(topright = c(1, 1), topleft = c(0, 1),
                  bottomright = c(1, 0), bottomleft = c(0, 0))
  if (width + gap > 1 || height + gap > 1) {
    return(NULL)
  }
  room <- vapply(corners, \(corner) {
    min(pmax(abs(xy[, 1L] - corner[1L]) / (width + gap),
             abs(xy[, 2L] - corner[2L]) / (height + gap)), Inf)
  }, numeric(1))
  if (max(room) > 1) names(corners)[which.max(room)]
}

# What a legend must not cover, in the coordinates of the user: points, and
# enough of them along lines and around bars.
occupied <- function(picture) {
  parts <- lapply(picture$layers, \(layer) {
    data <- layer$data
    switch(layer$kind,
      points = cbind(data$x, data$y),
      line = , area = along(data$x, data$y),
      ribbon = along(c(data$x, rev(data$x)), c(data$y0, rev(data$y1))),
      spikes = along(rep(data$x, each = 2L),
                     as.vector(rbind(0, data$y))),
      bars = along(rep(c(rbind(data$x0, data$x1)), each = 2L),
                   c(rbind(data$y0, data$y1, data$y1, data$y0)))
    )
  })
  do.call(rbind, parts)
}

# Points along a polygon, breaks left out.
along <- function(x, y, most = 20L) {
  n <- length(x)
  if (n < 2L) {
    return(cbind(x, y))
  }
  share <- seq(0, 1, length.out = max(2L, min(most, 20000L %/% n)))
  from <- rep(seq_len(n - 1L), each = length(share))
  between <- \(v) v[from] + share * (v[from + 1L] - v[from])
  xy <- cbind(between(x), between(y))
  xy[stats::complete.cases(xy), , drop = FALSE]
}

# In shares of the frame.
unit_points <- function(xy) {
  if (is.null(xy)) {
    xy <- matrix(0, 0L, 2L)
  }
  usr <- graphics::par("usr")
  if (graphics::par("xlog")) xy[, 1L] <- log10(pmax(xy[, 1L], 0))
  if (graphics::par("ylog")) xy[, 2L] <- log10(pmax(xy[, 2L], 0))
  unit <- cbind((xy[, 1L] - usr[1L]) / (usr[2L] - usr[1L]),
                (xy[, 2L] - usr[3L]) / (usr[4L] - usr[3L]))
  unit[rowSums(!is.finite(unit)) == 0, , drop = FALSE]
}

# The first levels, as many as there is room for.
most_levels <- 12L

shorten_key <- function(key, most = most_levels) {
  count <- nrow(key)
  if (count <= most) {
    return(key)
  }
  key <- key[seq_len(most), ]
  key$label[most] <- paste("and", count - most + 1L, "more")
  key$kind[most] <- "none"
  key
}

# legend() of the key; list(rect, text), see there.
draw_key <- function(key, place, cex, inset = 0.02, plot = TRUE) {
  is <- \(kind) key$kind %in% kind
  lines <- is("line")
  arguments <- list(
    x = place, inset = inset, legend = key$label, cex = cex, bg = "white",
    box.col = "grey60", xpd = NA, plot = plot,
    pch = ifelse(is(c("point", "ring")), key$pch, ifelse(is("box"), 22L, NA)),
    col = ifelse(is(c("ring", "line")), key$color,
                 ifelse(is("box"), "grey60", "white")),
    pt.bg = ifelse(is(c("point", "box")), key$color, "white"),
    pt.cex = ifelse(is("box"), 1.7, 1.1) * cex / 0.9,
    pt.lwd = ifelse(is("ring"), 1.5, 0.6)
  )
  # With them, legend() leaves room for lines, and draws some.
  if (any(lines)) {
    arguments <- c(arguments, list(lty = ifelse(lines, key$lty, NA),
                                   lwd = ifelse(lines, key$lwd, NA),
                                   seg.len = 1.4))
  }
  do.call(graphics::legend, arguments)
}

# Width and height of the key, as shares of the frame.
key_size <- function(key, cex) {
  rect <- in_unit_frame(draw_key(key, "topright", cex, plot = FALSE)$rect)
  c(rect$w, rect$h)
}

# In the coordinates from 0 to 1 of the same frame.
in_unit_frame <- function(code) {
  before <- graphics::par(c("xlog", "ylog", "usr", "xaxp", "yaxp"))
  graphics::par(xlog = FALSE, ylog = FALSE)
  graphics::par(usr = c(0, 1, 0, 1))
  on.exit({
    graphics::par(before[1:2])
    graphics::par(before[-(1:2)])
  })
  force(code)
}

# Where the legend is to be, list(key, place, cex, room: inches that it takes of
# the right margin). The frame is open as it is without a legend.
place_key <- function(picture, legend) {
  if (isFALSE(legend) || is.null(picture$key)) {
    return(NULL)
  }
  key <- shorten_key(picture$key)
  if (is.character(legend) && legend != "outside") {
    return(list(key = key, place = legend, cex = 0.9, room = 0))
  }
  if (isTRUE(legend)) {
    taken <- unit_points(occupied(picture))
    for (cex in c(0.9, 0.75)) {
      size <- key_size(key, cex)
      place <- if (size[1L] < 0.6) free_corner(taken, size[1L], size[2L])
      if (!is.null(place)) {
        return(list(key = key, place = place, cex = cex, room = 0))
      }
    }
  }
  key_outside(key)
}

gap_outside <- 0.08

# In the right margin, its letters as small as it takes to leave room for the
# points, from where on the labels are wrapped.
key_outside <- function(key) {
  inches <- \(cex) key_size(key, cex) * graphics::par("pin")
  most <- c(0.38 * graphics::par("fin")[1L], 0.95 * graphics::par("fin")[2L])
  for (cex in c(0.9, 0.8, 0.7, 0.6)) {
    size <- inches(cex)
    if (all(size <= most)) break
  }
  if (size[2L] > most[2L]) {
    key <- shorten_key(key, max(2L, floor(nrow(key) * most[2L] / size[2L])))
  }
  excess <- inches(cex)[1L] - most[1L]
  if (excess > 0) {
    widest <- max(graphics::strwidth(key$label, "inches", cex)) - excess
    key$label <- vapply(key$label, \(label) {
      paste(cut_text(wrap_words(label, widest, cex), widest, cex),
            collapse = "\n")
    }, "", USE.NAMES = FALSE)
  }
  list(key = key, place = "outside", cex = cex,
       room = inches(cex)[1L] + gap_outside)
}

# --- A bar of colors ---------------------------------------------------------

# Its widths in inches, from the frame on.
bar_sizes <- function(fill) {
  labels <- max(graphics::strwidth(fill$labels, "inches", 0.8), 0)
  c(gap = 0.08, bar = 0.13, space = 0.05, labels = labels,
    title = if (is.null(fill$title)) 0 else
      2 * graphics::strheight("Xg", "inches", 0.8))
}

draw_bar <- function(fill) {
  pin <- graphics::par("pin")
  x <- 1 + cumsum(bar_sizes(fill)) / pin[1L]
  high <- min(1, 2.5 / pin[2L])
  y <- \(share) 0.5 + high * (share - 0.5)
  count <- length(fill$colors)
  bottom <- y((seq_len(count) - 1L) / count)
  width <- diff(fill$limits)
  at <- y(if (width > 0) (fill$at - fill$limits[1L]) / width else 0.5)
  in_unit_frame({
    graphics::rect(x[["gap"]], bottom, x[["bar"]], y(1), col = fill$colors,
                   border = NA, xpd = NA)
    graphics::rect(x[["gap"]], y(0), x[["bar"]], y(1), border = "grey60",
                   xpd = NA)
    graphics::segments(x[["bar"]], at, x[["bar"]] + 0.03 / pin[1L], at,
                       xpd = NA)
    graphics::text(x[["space"]], at, fill$labels, adj = c(0, 0.5), cex = 0.8,
                   xpd = NA)
    if (!is.null(fill$title)) {
      cex <- fit_cex(fill$title, 0.95 * high * pin[2L], 0.8)
      middle <- 0.4 * x[["labels"]] + 0.6 * x[["title"]]
      graphics::text(middle, 0.5, fill$title, srt = 90, cex = cex, xpd = NA)
    }
  })
}

# --- Words in little room -----------------------------------------------------

# Words in lines of at most this width in inches; a line of the caller's stays
# one.
wrap_words <- function(text, width, cex, font = 1) {
  unlist(lapply(strsplit(text, "\n", fixed = TRUE), \(rows) {
    lapply(rows, \(row) {
      lines <- character()
      for (word in strsplit(row, " ", fixed = TRUE)[[1L]]) {
        last <- length(lines)
        longer <- if (last) paste(lines[last], word)
        if (last && graphics::strwidth(longer, "inches", cex, font) <= width) {
          lines[last] <- longer
        } else {
          lines <- c(lines, word)
        }
      }
      lines
    })
  }))
}

# The size, down to 0.6 of cex, at which the text is no wider.
fit_cex <- function(text, width, cex, font = 1) {
  wide <- max(graphics::strwidth(text, "inches", cex, font))
  if (wide <= width) cex else cex * max(0.6, width / wide)
}

# The text, its end given up to dots where it is wider than that.
cut_text <- function(text, width, cex, font = 1) {
  vapply(text, \(one) {
    if (graphics::strwidth(one, "inches", cex, font) <= width) {
      return(one)
    }
    short <- paste0(substring(one, 1L, seq_len(nchar(one))), "...")
    fits <- graphics::strwidth(short, "inches", cex, font) <= width
    short[max(1L, which(fits))]
  }, "", USE.NAMES = FALSE)
}

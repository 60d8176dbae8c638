# The kit of all plots: defaults that a caller overrides, axes, points in
# groups, surfaces, legends.

# Draws with defaults that the caller's dots override.
draw <- function(f, defaults, ...) {
  dots <- list(...)
  check_graphics(dots)
  do.call(f, utils::modifyList(defaults, dots), quote = TRUE)
}

# What par() sets, and the arguments of the functions that draw.
parameters <- c(
  "adj", "ann", "asp", "bg", "bty", "cex", "cex.axis", "cex.lab", "cex.main",
  "cex.sub", "col", "col.axis", "col.lab", "col.main", "col.sub", "crt",
  "family", "fg", "font", "font.axis", "font.lab", "font.main", "font.sub",
  "lab", "las", "lend", "lheight", "ljoin", "lmitre", "lty", "lwd", "mgp",
  "mkh", "pch", "srt", "tck", "tcl", "xaxp", "xaxs", "xaxt", "xpd", "yaxp",
  "yaxs", "yaxt", "text.col"
)

check_graphics <- function(dots) {
  if (!length(dots)) {
    return(invisible())
  }
  given <- names(dots)
  if (is.null(given) || !all(nzchar(given))) {
    stop_input("graphical parameters must be named, as in col = \"red\"")
  }
  takes <- \(f) names(formals(utils::getS3method(f, "default")))
  known <- c(parameters, unlist(lapply(
    c("plot", "hist", "barplot", "image", "contour", "points"), takes
  )))
  wrong <- setdiff(given, c(known, "freq"))
  if (length(wrong)) {
    stop_input("unused argument: '", wrong[1L], "' is no graphical parameter",
               near_name(wrong[1L], known))
  }
}

# What plot(x, y) is to draw: y is the type by position, as in plot(x, "path").
# NULL: not given.
plot_type <- function(types, y, type, default = types[1L]) {
  if (!is.null(y) && !is.null(type)) {
    stop_input("'y' must be missing when 'type' is given: it is the type by ",
               "position")
  }
  given <- c(y, type)
  if (is.null(given)) default else check_choice(given, types, "type")
}

padded_range <- function(x) {
  width <- diff(range(x))
  range(x) + c(-1, 1) * (if (width > 0) 0.15 * width else 1)
}

axis_names <- function(x) {
  if (!is.null(colnames(x))) {
    colnames(x)
  } else if (ncol(x) == 1L) {
    "x"
  } else {
    c("x[1]", "x[2]")
  }
}

# The image and contours of the function `at` over the plane of the points x.
# colors(value) gives the range of values and the colors for it. Of the
# caller's dots, titles and limits are for the frame, the rest for the contours.
draw_surface <- function(x, at, n, title, ..., colors) {
  dots <- list(...)
  check_graphics(dots)
  framed <- names(dots) %in% c("main", "sub", "xlab", "ylab", "xlim", "ylim",
                               "asp", "las", "axes", "ann", "xaxt", "yaxt",
                               "bty", "cex.main", "cex.lab", "cex.axis",
                               "col.main", "font.main")
  axes <- lapply(1:2, \(j) {
    ends <- padded_range(x[, j])
    seq(ends[1], ends[2], length.out = n)
  })
  value <- matrix(at(as.matrix(expand.grid(axes))), n, n)
  names <- axis_names(x)
  scale <- colors(value)
  do.call(draw, c(list(image, list(
    x = axes[[1]], y = axes[[2]], z = value, las = 1, xlab = names[1],
    ylab = names[2], zlim = scale[[1L]], col = scale[[2L]], main = title,
    useRaster = TRUE
  )), dots[framed]), quote = TRUE)
  do.call(draw, c(list(contour, list(
    x = axes[[1]], y = axes[[2]], z = value, add = TRUE, col = "grey20",
    labcex = 0.8
  )), dots[!framed]), quote = TRUE)
  list(x = axes[[1]], y = axes[[2]], z = value)
}

blues <- \(value) list(range(value), hcl.colors(64, "Blues 3", rev = TRUE))

# Blue where the first sample is denser, red where the second is.
diverging <- function(value) {
  most <- max(abs(value), .Machine$double.xmin)
  list(c(-most, most), hcl.colors(65, "Blue-Red 2", rev = TRUE))
}

most_points_drawn <- 2000

# Points with a white rim, in an order in which no group covers another; of
# many an even share.
draw_points <- function(x, color) {
  n <- nrow(x)
  shown <- order((0.618034 * seq_len(n)) %% 1)
  shown <- shown[seq_len(min(n, most_points_drawn))]
  points(x[shown, , drop = FALSE], pch = 21, col = "white",
         cex = if (length(shown) > 300) 0.5 else 0.8,
         bg = rep_len(color, n)[shown])
}

okabe_ito <- c("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7",
               "#56B4E9", "#F0E442", "#000000")

level_colors <- function(count) {
  if (count <= length(okabe_ito)) {
    okabe_ito[seq_len(count)]
  } else {
    hcl.colors(count, "viridis")
  }
}

# The group of each of n points as a factor, or NULL.
check_groups <- function(groups, n) {
  if (is.null(groups)) {
    return(NULL)
  }
  if (!is.atomic(groups) || length(groups) != n || anyNA(groups)) {
    stop_input(
      "'groups' must have one value for each of the ", n, " points, none ",
      "missing, not ",
      if (anyNA(groups)) {
        paste(sum(is.na(groups)), "NA")
      } else {
        paste0(describe(groups), if (is.factor(groups)) {
          paste(" of length", length(groups))
        })
      }
    )
  }
  droplevels(as.factor(groups))
}

# The points xy in the colors of their groups (a factor or NULL) with a legend;
# of the caller's dots, `col`, `pch`, `cex` and the like are for the points, the
# rest for the frame. lines_at: where dotted lines cross.
draw_groups <- function(xy, group, defaults, dots, lines_at = c(NA, NA)) {
  frame <- dots[!names(dots) %in% point_style]
  do.call(draw, c(list(graphics::plot, c(
    list(x = unname(xy), type = "n", las = 1), defaults
  )), frame), quote = TRUE)
  abline(v = lines_at[1L], h = lines_at[2L], lty = 3, col = "grey60")
  group_points(xy, group, dots)
  if (!is.null(group) && is.null(dots[["col"]])) {
    level_legend(levels(group), xy)
  }
}

point_style <- c("col", "pch", "cex", "bg", "lwd")

group_points <- function(xy, group, dots) {
  colors <- level_colors(max(1L, nlevels(group)))
  color <- if (is.null(group)) colors else colors[as.integer(group)]
  own <- dots[names(dots) %in% point_style]
  if (length(own)) {
    do.call(points, c(list(xy), utils::modifyList(
      list(pch = 19, col = color), own
    )))
  } else {
    draw_points(xy, color)
  }
}

# In the corner where the fewest points are; of many levels a few.
level_legend <- function(labels, xy, pch = 21, places = names(corners)) {
  usr <- graphics::par("usr")
  unit <- cbind((xy[, 1L] - usr[1L]) / (usr[2L] - usr[1L]),
                (xy[, 2L] - usr[3L]) / (usr[4L] - usr[3L]))
  corners <- list(topright = c(1, 1), topleft = c(0, 1),
                  bottomright = c(1, 0), bottomleft = c(0, 0))
  crowd <- vapply(corners[places], \(corner) {
    sum(abs(unit[, 1L] - corner[1L]) < 0.3 & abs(unit[, 2L] - corner[2L]) < 0.3)
  }, numeric(1))
  count <- length(labels)
  shown <- if (count <= length(okabe_ito)) {
    seq_len(count)
  } else {
    unique(round(seq(1, count, length.out = 5L)))
  }
  legend(names(which.min(crowd)), labels[shown], pch = pch,
         pt.bg = level_colors(count)[shown], col = "white", bg = "white",
         box.col = "grey60", inset = 0.02, cex = 0.9)
}

# A color with three parts of white.
tint <- function(color) {
  mixed <- (grDevices::col2rgb(color) + 3 * 255) / 4
  grDevices::rgb(t(mixed), maxColorValue = 255)
}

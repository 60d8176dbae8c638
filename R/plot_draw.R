# The shelf plot_: pictures of fits, as data and drawn.
#
# Offers from plot_draw.R: accent, across_layer, axis_names, check_type,
#   draw_picture, error_layer, groups_picture, histogram_layer,
#   key_entries, level_colors, level_entries, level_palette, level_pch,
#   lying_layer, mark_layer, measured_fill, most_points_drawn, new_layer,
#   new_panels, new_picture, padded_range, picture_limits,
#   picture_sequence, points_layer, span_layer, surface_layers, surface_of,
#   tint.
#
# A picture says as data what a plot shows; plot() draws it (draw_picture()),
# and autoplot() gives it to ggplot2.
#

# A picture.
#   title, xlab, ylab  words
#   layers  a list of layers, of which NULL is dropped
#   value   what plot() returns
# and, if it is not the default, in the dots:
#   xlim, ylim, log, asp  as in plot.default(); by default what the layers take
#   flush   TRUE: no room around the limits
#   whole   which of "x", "y" have ticks at whole numbers only
#   ticks_x, ticks_y  the ticks of the axes, with their places `at` and `labels`
#   note    a line under the title: its text and its color
#   key     the legend, see key_entries()
#   fill    the colors of numbers: limits, colors and title; labels at places
#           `at` of the bar; steps, between which a color is the same
#   bar     TRUE: the colors have a bar in the margin
#   panel   the title of a panel
new_picture <- function(title, xlab, ylab, layers, value, ...) {
  layers <- layers[!vapply(layers, is.null, NA)]
  list(title = title, xlab = xlab, ylab = ylab, layers = layers,
       value = value, ...)
}

# One picture, or several as the panels of one. The dots may hold `free`, the
# axes that panels do not share, and `key`, the legend of all panels.
new_panels <- function(panels, title, xlab = "", ylab = "", ...) {
  if (length(panels) == 1L) panels[[1L]] else
    list(panels = unname(panels), title = title, xlab = xlab, ylab = ylab,
         value = lapply(panels, `[[`, "value"), ...)
}

layer_data <- c("x", "y", "z", "x0", "y0", "x1", "y1", "h", "v", "labels")

# A layer.
#   kind   "points", "line", "bars", ..., see draw_layer()
#   ...    its data, by the names of layer_data, and its style: arguments of
#          graphics, for points one for each or one for all
#   level  the entry or entries of the key that it stands for
#   main   TRUE where the graphical parameters of the caller are for it
new_layer <- function(kind, ..., level = NULL, main = FALSE) {
  parts <- list(...)
  data <- names(parts) %in% layer_data
  list(kind = kind, data = parts[data], style = parts[!data], level = level,
       main = main)
}

# --- From a fit to its picture -----------------------------------------------

#' Plots of fits and tests
#'
#' Each fit and test has pictures: `plot()` draws them with base graphics,
#' `autoplot()` gives the same data, limits, colors and symbols to ggplot2.
#'
#' The `type` is given by name or as the second argument; by default it is the
#' first that applies. What else a picture takes stands in brackets.
#' \describe{
#'   \item{[kme()]}{`"selection"`: the score against \eqn{\lambda}{lambda} (the
#'     noise, h), with the choice marked and the KME dashed. `"embedding"`: a
#'     curve, contours, or the points along two kernel principal axes in the
#'     color of their value (`n` points on an axis; `interval = TRUE`, `level`:
#'     a band of [confidence intervals][confint.kme] for one column).}
#'   \item{[kme_pca()]}{`"scores"` (`comps`, one or two by number; `groups`, a
#'     factor, words, numbers or times; `newdata`; `labels`, words at the points
#'     or `TRUE` for their names; `arrows = TRUE`: the ten largest correlations
#'     of the columns that the kernel sees with both components, in one scale),
#'     `"spectrum"` (`npcs`), also by `screeplot()`. A note says where more than
#'     60% of PC2 is a parabola in PC1: an arch, of points along one curve.}
#'   \item{[kme_cov()]}{`"spectrum"`, `"selection"`.}
#'   \item{[kme_fda()]}{`"regions"` of the classes for two columns (`n`),
#'     `"scores"`: a histogram for one axis, the first two axes otherwise
#'     (`newdata`). The sample's scores lie closer together than new ones
#'     will.}
#'   \item{[kme_density()]}{`"density"` (`columns`, one or two; `n`; `breaks`):
#'     the curve over a histogram with the components, or contours with their
#'     ellipses of one standard deviation. `"path"`: what decided where to
#'     stop.}
#'   \item{[kme_weights()]}{`"balance"`: differences of means (of a numeric
#'     treatment its correlations) before and after; `"weights"`: their
#'     histogram (`breaks`).}
#'   \item{[kme_effect()]}{`"effects"` with intervals (`level`); `"overlap"`:
#'     the effective weights.}
#'   \item{[mmd_test()]}{`"statistics"` of a test of several: the z of each,
#'     over those of 90% of the draws, the largest marked; dashed, what 5% of
#'     the draws' largest exceed. `"null"`: the draws with the statistic.
#'     `"witness"`: \eqn{\hat\mu_x
#'     - \hat\mu_y}{mu_x - mu_y} of the plain kernel means, positive (blue)
#'     where the first sample is denser (`n`; `groups`, two by name); each of
#'     three groups or more against the rest; with a filter that of the largest
#'     statistic. In two columns it is drawn near points, within two of Scott's
#'     bandwidths. Of more columns its values at the points are drawn against
#'     each of the six columns along which a smooth curve has most of their
#'     variance (the share in brackets).}
#'   \item{[smm()]}{`"bags"`: their scores on two kernel principal axes, support
#'     bags with a ring.}
#' }
#' Others: [plot.rkhs_iv()], [mmd_pairwise()], [mmd_gof()], [hsic_test()],
#' [gram()], [kme_landmarks()], [kme_sketch()], [kme_monitor()],
#' [kme_changes()]. Of more than 2,000 points an even share is drawn, of groups
#' twelve are named. Points and lines that are added to a plot of one figure
#' fall into place. Of sketches the landmarks stand for the points.
#' What else a fit holds is in `as.data.frame()`, `tidy()` and its fields.
#'
#' @param x,object A fit, a test, a gram or landmarks.
#' @param ... The `type` and what else the picture takes. For `plot()` also
#'   graphical parameters: those of points, lines and fillings (`col`, `pch`,
#'   `cex`, `lwd`, `levels`, ...) are for what is drawn, the others for the
#'   frame, as in [plot.default()].
#' @param legend `TRUE` for a legend in the right margin, `FALSE` for none, or a
#'   place inside as in [legend()], such as `"topright"`.
#' @param npcs Number of components of a spectrum.
#' @return What was drawn, invisibly: a data frame, or `list(x, y, z)` as of
#'   [contour()]; a list of these for several figures; for `autoplot()` an
#'   object of class `ggplot`.
#' @docType methods
#' @aliases plot.kme plot.kme_pca plot.kme_fda plot.kme_density plot.mmd_test
#'   plot.bag_smm
#' @seealso [glossary]
#' @examples
#' fit <- kme_pca(scale(iris[, 1:4]), ncomp = 2)
#' plot(fit, groups = iris$Species)
#' plot(kme_pca(scale(mtcars[, 1:6])), labels = TRUE, arrows = TRUE)
#' plot(fit, "spectrum", col = "grey40")
#' plot(kme(faithful$waiting, kernel_rbf(3)), interval = TRUE)
#' plot(kme_fda(Species ~ Petal.Length + Petal.Width, iris))
#' set.seed(1)
#' plot(mmd_test(rnorm(50), rnorm(50, sd = 2), B = 99), "witness")
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' ggplot2::autoplot(fit, groups = iris$Species) + ggplot2::theme_minimal()
#' @export
plot.kernmean_fit <- function(x, ..., legend = TRUE) {
  if (!flag$holds(legend)) legend <- take(legend, legend_place)
  asked <- ask_picture(x, list(...), substitute(list(...))$groups)
  draw_picture(asked$picture, asked$graphics, legend)
}

legend_place <- choice("topright", "topleft", "top", "right", "left", "center",
                       "bottomright", "bottomleft", "bottom")
legend_place$words <- paste("TRUE, FALSE or", legend_place$words)

# The picture that the dots ask for, and `graphics`, the other arguments. An
# argument without a name is the type. `groups` is the expression that the
# caller gave; its name becomes the title of the colors.
ask_picture <- function(object, dots, groups) {
  methods <- mget(paste0("fit_picture.", class(object)), topenv(), "function",
                  ifnotfound = list(NULL))
  method <- Find(is.function, methods, nomatch = fit_picture)
  known <- names(formals(method))[-1L]
  names <- names2(dots)
  names[match("", names, 0L)] <- "type"
  names(dots) <- names
  # For the groups iris$Petal.Width the title is Petal.Width.
  name <- sub("^.*\\$", "", label_of(groups))
  if ("name" %in% known && nchar(name) <= 30L && name == make.names(name)) {
    dots$name <- name
  }
  ours <- names(dots) %in% known
  picture <- do.call("fit_picture", c(list(object), dots[ours]), quote = TRUE)
  list(picture = picture, graphics = dots[!ours])
}

# The type of a picture, or the default if it is NULL.
check_type <- function(type, types, default = types[1L]) {
  if (is.null(type)) default else take(type, choice(types))
}

padded_range <- function(x) {
  width <- diff(range(x))
  range(x) + c(-1, 1) * (if (width > 0) 0.15 * width else 1)
}

axis_names <- \(x) colnames(named_columns(x))

# --- Colors and symbols ------------------------------------------------------

# The eight colors of Okabe and Ito, and four of Tol.
level_palette <- c("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7",
                   "#56B4E9", "#F0E442", "#000000", "#999999", "#882255",
                   "#332288", "#999933")
level_symbols <- c(21L, 24L, 22L, 23L, 25L)

level_colors <- \(count) rep_len(level_palette, count)

# Twelve colors and five symbols tell sixty levels apart, as 12 and 5 have no
# common divisor.
level_pch <- \(count) rep_len(level_symbols, count)

accent <- "#D55E00"

# The color of each number in `value`.
color_of <- function(value, fill) {
  share <- (value - fill$limits[1L]) / diff(fill$limits)
  fill$colors[1L + round((length(fill$colors) - 1L) * share)]
}

# The fill of groups that are numbers, with round numbers for the bar.
measured_fill <- function(values, title = NULL) {
  round <- pretty(values, 4L)
  at <- as.numeric(round)
  list(limits = range(at), colors = hcl.colors(64, "viridis"), title = title,
       at = at, labels = trimws(format(round)))
}

# A color mixed with three parts of white.
tint <- function(color) {
  grDevices::adjustcolor(color, 1, 0.25, 0.25, 0.25, c(0.75, 0.75, 0.75, 0))
}

# --- Legends ---------------------------------------------------------------

# Entries of a legend, in rows. The sign of an entry is a "point" filled with
# the color, a "ring" around other colors, a "box", a "line", or "none".
key_entries <- function(labels, color, kind = "point", pch = 21L, lty = 1L,
                        lwd = 1) {
  data.frame(label = as.character(labels), color, kind, pch, lty, lwd)
}

level_entries <- function(labels, kind = "point") {
  count <- length(labels)
  key_entries(labels, level_colors(count), kind, level_pch(count))
}

# --- Layers of several plots -------------------------------------------------

most_points_drawn <- 2000

# The layer of points x, two columns, with a white rim. They are drawn in a
# mixed order, so that no group covers another, and if there are too many, only
# a part of them is drawn. `group` is NULL, a factor, or numbers, whose colors
# are in `fill`.
points_layer <- function(x, group = NULL, fill = NULL,
                         color = level_palette[1L], main = FALSE,
                         thin = FALSE) {
  n <- nrow(x)
  shown <- order((0.618034 * seq_len(n)) %% 1)
  shown <- shown[seq_len(min(n, most_points_drawn))]
  levels <- if (is.factor(group)) group
  value <- if (is.null(levels) && !is.null(group)) as.numeric(group)
  pch <- 21L
  if (!is.null(value)) color <- color_of(value, fill)
  if (!is.null(levels)) {
    pch <- level_pch(nlevels(group))[levels]
    color <- level_colors(nlevels(group))[levels]
  }
  layer <- new_layer(
    "points", x = unname(x[, 1L]), y = unname(x[, 2L]),
    level = levels, main = main, pch = pch, bg = color, col = "white",
    cex = if (length(shown) > 300) 0.6 else 0.9, lwd = 0.6
  )
  if (thin) layer$style[c("pch", "col", "cex")] <- list(20L, color, 0.4)
  layer$data$value <- value
  layer$shown <- shown
  layer
}

# Lines across the frame, at x = v or y = h.
across_layer <- function(h = NULL, v = NULL, col = "grey40", lty = 2, lwd = 1,
                         level = NULL) {
  new_layer("across", h = h, v = v, level = level, col = col, lty = lty,
            lwd = lwd)
}

# A layer of points that stand out from the others.
mark_layer <- function(x, y, level, color = accent, pch = 21L) {
  new_layer("points", x = x, y = y, level = level, pch = pch, bg = color,
            col = "white", cex = 1.3)
}

# Vertical lines from `lower` to `upper`.
span_layer <- function(x, lower, upper, main = FALSE) {
  new_layer("line", x = as.vector(rbind(x, x, NA)),
            y = as.vector(rbind(lower, upper, NA)), col = "grey65", main = main)
}

# Horizontal lines from x0 to x1 at the heights `at`.
lying_layer <- function(at, x0, x1, ...) {
  new_layer("line", x = as.vector(rbind(x0, x1, NA)),
            y = as.vector(rbind(at, at, NA)), ...)
}

# Vertical lines from one standard error below y to one above it.
error_layer <- function(x, y, se) span_layer(x, y - se, y + se)

# The surface of a function `at` over n x n points that cover the points: the
# axes x and y, and the n x n matrix z of values.
surface_of <- function(at, points, n) {
  check_memory(n, n, "take a smaller 'n'", copies = 16, what = "a grid")
  axes <- lapply(1:2, \(j) {
    ends <- padded_range(points[, j])
    seq(ends[1L], ends[2L], length.out = n)
  })
  z <- at(as.matrix(expand.grid(axes)))
  list(x = axes[[1L]], y = axes[[2L]], z = matrix(z, n))
}

# The image of a surface under its contours.
surface_layers <- function(surface, fill) {
  list(
    do.call(new_layer, c("image", surface,
                         list(zlim = fill$limits, col = fill$colors))),
    # A constant surface has no contours.
    if (diff(range(surface$z, na.rm = TRUE)) > 0) {
      do.call(new_layer, c("contour", surface,
                           list(col = "grey20", labcex = 0.7, main = TRUE)))
    }
  )
}

# The picture of points xy, two named columns, in their groups, with the labels
# `words` beside them. `zero` says which dotted lines are drawn at 0.
groups_picture <- function(title, xy, groups, labels, value,
                           zero = c("v", "h"), name = NULL, words = NULL,
                           asp = 1, ...) {
  dotted <- lapply(zero, \(axis) {
    do.call(across_layer, c(stats::setNames(list(0), axis), col = "grey60",
                            lty = 3))
  })
  fill <- if (!is.null(groups) && !is.factor(groups)) {
    measured_fill(groups, name)
  }
  points <- points_layer(xy, groups, fill, main = TRUE)
  shown <- points$shown
  new_picture(
    title, labels[1L], labels[2L],
    c(dotted, list(points, if (!is.null(words)) {
      new_layer("text", x = points$data$x[shown], y = points$data$y[shown],
                labels = words[shown], col = "grey20", over = 0)
    })),
    value, key = if (is.factor(groups)) level_entries(levels(groups)),
    xlim = if (!is.null(words)) padded_range(xy[, 1L]),
    ylim = if (!is.null(words)) padded_range(xy[, 2L]), fill = fill,
    bar = !is.null(fill), asp = asp, ...
  )
}

# The picture of values in their order, such as a spectrum.
picture_sequence <- function(title, y, name, x = seq_along(y)) {
  new_picture(
    title, "index", name,
    list(new_layer("line", x = x, y = y),
         new_layer("points", x = x, y = y, main = TRUE, pch = 20, bg = "black",
                   col = "black", cex = 0.7)),
    y, whole = "x"
  )
}

# A layer of the bars of hist().
histogram_layer <- function(bars, counts, col, border) {
  last <- length(bars$breaks)
  high <- if (counts) bars$counts else bars$density
  new_layer("bars", x0 = bars$breaks[-last], y0 = 0 * high,
            x1 = bars$breaks[-1L], y1 = high,
            col = col, border = border, main = TRUE)
}

# The limits x and y that the layers need.
picture_limits <- function(layers, log = "") {
  data <- lapply(layers, \(layer) {
    if (!layer$kind %in% c("across", "rug")) layer$data
  })
  ends <- function(side) {
    v <- unlist(lapply(data, `[`, paste0(side, c("", 0, 1))))
    v <- v[is.finite(v) & (v > 0 | !grepl(side, log))]
    v <- if (length(v)) range(v) else c(1, 10)
    # If all values agree up to rounding, the limits are widened, since there
    # would be no ticks between them.
    if (diff(v) > 1e-10 * max(abs(v))) v else v + c(-0.5, 0.5) * max(abs(v))
  }
  list(x = ends("x"), y = ends("y"))
}

# --- By base graphics --------------------------------------------------------

# Draws a picture and returns its value. `dots` are the graphical parameters of
# the caller: for the layers that have `main`, for the frame, and for par().
draw_picture <- function(picture, dots = list(), legend = TRUE) {
  panels <- picture$panels
  panels <- panels %||% list(picture)
  # A legend for all panels is drawn in a figure of its own.
  if (is.null(panels[[1L]]$key) && !is.null(picture$key) && !isFALSE(legend)) {
    panels <- c(panels, list(new_picture("", "", "", list(), NULL, axes = FALSE,
                                         key = picture$key)))
  }
  if (length(panels) > 1L && all(graphics::par("mfrow") == 1L)) {
    # Each panel gets a figure of its own, unless the caller has set a layout.
    wide <- graphics::par("din")[1L] / graphics::par("din")[2L]
    before <- graphics::par("cex", mfrow = if (length(panels) == 2L) 1:2 else
      grDevices::n2mfrow(length(panels), wide))
    on.exit(graphics::par(before))
  }
  for (panel in panels) {
    draw_panel(panel, dots, if (length(panel$layers)) legend else "center")
  }
  invisible(picture$value)
}

layer_words <- c(
  "bg", "border", "cex", "col", "lend", "ljoin", "lmitre", "lty", "lwd", "pch",
  "density", "angle", "levels", "nlevels", "labels", "labcex", "drawlabels",
  "method", "vfont"
)
frame_words <- c("title", "xlab", "ylab", "xlim", "ylim", "log", "asp", "axes",
                 "ann")

draw_panel <- function(picture, dots, legend) {
  names(dots)[names(dots) == "main"] <- "title"
  style <- dots[names(dots) %in% layer_words]
  picture <- utils::modifyList(picture, dots[names(dots) %in% frame_words])
  settings <- dots[!names(dots) %in% c(layer_words, frame_words)]
  # In small figures titles and labels are smaller and closer to the axes.
  small <- min(graphics::par("fin")) < 4
  size <- min(1, max(0.6, min(graphics::par("fin")) / 3))
  settings <- utils::modifyList(
    c(list(las = 1), if (small) list(mgp = size * c(2, 0.6, 0), tcl = -0.3,
                                     cex.main = size, cex.lab = size,
                                     cex.axis = size)),
    settings
  )
  # The margins are nearly 0 at first, until the text that goes into them has
  # been measured.
  before <- graphics::par(mar = rep(0.01, 4))
  on.exit(close_frame(before))
  # The parameters are saved before they are set, because one of them may cause
  # an error.
  now <- graphics::par(no.readonly = TRUE)
  # The margins come last, so that they overrule a `mar` among the other
  # parameters.
  before <- c(now[intersect(names(settings), names(now))], before)
  graphics::par(settings)
  graphics::plot.new()
  key <- fit_key(picture, style, legend)
  open_window(picture, settings)
  frame <- measure_frame(picture, key)
  graphics::par(mar = if (small) frame$need else pmax(frame$need, before$mar))
  open_window(picture, settings)
  # The frame is drawn before the layers. If something is drawn in the margins
  # first, layers are clipped at the frame.
  draw_frame(picture, frame)
  for (layer in picture$layers) {
    draw_layer(layer, if (isTRUE(layer$main)) style else list())
  }
  if (!isFALSE(picture$axes)) graphics::box()
  if (!is.null(key)) {
    pin <- graphics::par("pin")
    draw_key(key, if (key$outside) c(1 + 0.1 / pin[1L], 0) else 0.02)
  }
}

open_window <- function(picture, settings) {
  log <- picture$log %||% ""
  limits <- picture_limits(picture$layers, log)
  style <- c(if (isTRUE(picture$flush)) "i", "r")
  graphics::plot.window(
    picture$xlim %||% limits$x,
    picture$ylim %||% limits$y,
    log, picture$asp %||% NA,
    xaxs = c(settings$xaxs, style)[1L], yaxs = c(settings$yaxs, style)[1L]
  )
}

# Resets the graphical parameters. The margins change with them, and so the user
# coordinates are extended: what the user adds to the plot later is in the right
# place.
close_frame <- function(before) {
  usr <- graphics::par("usr")
  from <- graphics::par("plt")
  graphics::par(before)
  to <- graphics::par("plt")
  moved <- \(i) {
    usr[i[1L]] + diff(usr[i]) / diff(from[i]) * (to[i] - from[i[1L]])
  }
  # R itself has warned of limits without any width, which are left as they are.
  wide <- diff(usr)[c(1L, 3L)] != 0
  if (to[2L] > to[1L] && to[4L] > to[3L] && isTRUE(all(wide))) {
    graphics::par(usr = c(moved(1:2), moved(3:4)))
  }
}

# --- The frame ---------------------------------------------------------------

# The text, broken into lines of about `width` inches at most.
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

# The labels of numbers, with enough digits to tell them apart.
tick_labels <- \(at) format(at, digits = 15L, trim = TRUE)

# The ticks of a side: their places `at`, their labels, and `named`: are the
# labels names rather than numbers?
axis_ticks <- function(picture, side) {
  ticks <- picture[[c("ticks_x", "ticks_y")[side]]]
  if (!is.null(ticks)) {
    return(c(ticks, named = TRUE))
  }
  at <- graphics::axTicks(side)
  whole <- at == round(at)
  if (c("x", "y")[side] %in% picture$whole && any(whole)) at <- at[whole]
  list(at = at, labels = tick_labels(at), named = FALSE)
}

# The frame of a picture: labels and the lines `at` where they stand; ticks,
# with their size and whether they are turned; the title and the line of the
# note; and `need`, the lines that the four margins need.
measure_frame <- function(picture, key) {
  par <- graphics::par(c("mgp", "fin", "mai", "mar", "cex.axis", "cex.lab",
                         "cex.main", "font.main", "las"))
  line <- par$mai[1L] / par$mar[1L]
  high <- \(text, cex) {
    sum(graphics::strheight(text, "inches", cex)) / line
  }
  right <- if (isTRUE(key$outside)) (key$width + 0.15) / line else 0.8
  share <- c(1, 1)
  reach <- numeric(2)
  turned <- c(par$las >= 2, par$las %in% 1:2)
  ticks <- lapply(1:2, axis_ticks, picture = picture)
  for (side in 1:2) {
    wide <- graphics::strwidth(ticks[[side]]$labels, "inches", par$cex.axis)
    if (ticks[[side]]$named) {
      if (any(wide > 0.7 * par$fin[side] / length(wide))) turned[side] <- TRUE
      share[side] <- min(1, 0.4 * par$fin[3L - side] / max(wide))
    }
    reach[side] <- share[side] * max(wide) / line
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
       ticks = ticks, size = share * par$cex.axis, turned = turned,
       title = title, note = note,
       need = c(at[1L] + 1.2 * rows[1L] + 0.4, left,
                note + high(title, par$cex.main) + 1.2, right))
}

draw_frame <- function(picture, frame) {
  for (side in if (!isFALSE(picture$axes)) 1:2) {
    ticks <- frame$ticks[[side]]
    graphics::axis(side, ticks$at, ticks$labels, tick = !ticks$named,
                   las = if (frame$turned[side]) 2 else 0,
                   cex.axis = frame$size[side])
  }
  if (isFALSE(picture$ann)) {
    return(invisible())
  }
  graphics::title(xlab = frame$labels[[1L]], line = frame$at[1L])
  graphics::title(ylab = frame$labels[[2L]], line = frame$at[2L])
  graphics::title(frame$title, line = frame$note + 0.6, adj = 0)
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
# There is no legend if the caller gives the points other colors or symbols, for
# which it would be wrong.
fit_key <- function(picture, asked, legend) {
  main <- Find(\(layer) layer$main, picture$layers)
  if (isFALSE(legend) || identical(main$kind, "points") &&
        any(c("col", "bg", "pch") %in% names(asked))) {
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
  outside <- isTRUE(legend)
  most <- graphics::par("fin") *
    if (length(picture$layers)) c(0.4, 0.6) else 0.9
  # The letters of a legend in a panel of its own are as large as on a page with
  # one figure.
  cex <- 0.9 * if (length(picture$layers)) graphics::par("cex.lab") else
    1 / graphics::par("cex")
  key$label <- wrapped(key$label, most[1L] - 0.5 * cex, cex)
  key <- list(entries = key, cex = cex, outside = outside,
              title = wrapped(fill$title, most[1L] - 0.2, cex),
              place = if (outside) "topleft" else legend)
  size <- function() {
    rect <- draw_key(key, 0, plot = FALSE)$rect
    c(rect$w, rect$h) * graphics::par("pin")
  }
  graphics::plot.window(0:1, 0:1, xaxs = "i", yaxs = "i")
  key$cex <- cex * min(1, most / size())
  key$width <- size()[1L]
  key
}

draw_key <- function(key, inset, plot = TRUE) {
  e <- key$entries
  is <- \(...) e$kind %in% c(...)
  lines <- if (any(is("line"))) {
    # These arguments are passed only if there are lines, because legend()
    # leaves room for lines whenever it gets them.
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

draw_layer <- function(layer, asked) {
  data <- layer$data
  style <- utils::modifyList(layer$style, asked)
  add <- \(f, ...) do.call(f, c(list(...), style))
  switch(layer$kind,
    points = draw_points(layer, asked),
    line = add(graphics::lines, data$x, data$y),
    ribbon = add(graphics::polygon, c(data$x, rev(data$x)),
                 c(data$y0, rev(data$y1)), border = NA),
    bars = add(graphics::rect, data$x0, data$y0, data$x1, data$y1),
    image = add(graphics::image, data$x, data$y, data$z, add = TRUE,
                useRaster = TRUE),
    contour = add(graphics::contour, data$x, data$y, data$z, add = TRUE),
    across = add(graphics::abline, h = data$h, v = data$v),
    rug = add(graphics::rug, data$x, quiet = TRUE),
    arrows = add(graphics::arrows, data$x0, data$y0, data$x1, data$y1,
                 length = 0.08),
    text = draw_words(layer)
  )
}

# Draws words at points, or above them if `over` is given (0: centered, -1: to
# the left, 1: to the right), within the frame. If `width` is given, the words
# are as large as fits into this length of the x axis. Words that would be too
# small to read are not drawn.
draw_words <- function(layer) {
  style <- layer$style
  over <- !is.null(style$over)
  wide <- max(graphics::strwidth(layer$data$labels, cex = 1))
  cex <- min(if (is.null(style$width)) 0.7 else 0.9, 0.95 * style$width / wide,
             if (!over) 0.7 / graphics::strheight("X", cex = 1))
  if (cex >= 0.35) {
    x <- layer$data$x
    if (over) {
      half <- graphics::strwidth(layer$data$labels, cex = cex) / 2
      ends <- graphics::par("usr")
      x <- pmax(ends[1L] + half, pmin(x + style$over * half, ends[2L] - half))
    }
    graphics::text(x, layer$data$y, layer$data$labels, cex = cex,
                   col = style$col, adj = c(0.5, if (over) -0.4 else 0.5))
  }
}

# If the caller gives a color, it fills the symbols. If the caller gives a
# symbol, it is drawn in the color of the point.
draw_points <- function(layer, asked) {
  style <- layer$style
  if ("pch" %in% names(asked)) style[c("col", "lwd")] <- list(style$bg, 1)
  asked$bg <- asked$bg %||% asked$col
  style <- utils::modifyList(style, asked)
  n <- length(layer$data$x)
  shown <- layer$shown %||% seq_len(n)
  style <- lapply(style, \(s) if (length(s) == n) s[shown] else s)
  do.call(graphics::points, c(
    list(layer$data$x[shown], layer$data$y[shown]), style
  ))
}

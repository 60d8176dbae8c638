# Pictures: what a plot shows, as data, which plot() draws (draw_picture()) and
# autoplot() gives to ggplot2. A picture is list(title, xlab, ylab, layers,
# value: what plot() returns) and, where it is not the default:
#   xlim, ylim, log, asp  as in plot.default(); by default what the layers take
#   flush   TRUE: no room around the limits
#   whole   which of "x", "y" have ticks at whole numbers only
#   ticks, ticks_y  of the axes, list(at, labels)
#   note    a line under the title, list(text, color)
#   key     the legend, see key_entries()
#   fill    the colors of numbers, list(limits, colors, title, at, labels)
#   bar     TRUE: the colors have a bar in the margin
# or list(panels: pictures, value; free: TRUE for axes that are not shared). A
# layer is a list with its kind, its data, its style (arguments of graphics; of
# points one for each or one for all), `level`, the entry or entries of the key
# that it stands for, and `main`: TRUE where the graphical parameters of the
# caller are for it.

new_picture <- function(title, xlab, ylab, layers, value, ...) {
  layers <- layers[!vapply(layers, is.null, NA)]
  list(title = title, xlab = xlab, ylab = ylab, layers = layers,
       value = value, ...)
}

layer_data <- c("x", "y", "z", "x0", "y0", "x1", "y1", "h", "v", "labels")

new_layer <- function(kind, ..., level = NULL, main = FALSE) {
  given <- list(...)
  data <- names(given) %in% layer_data
  list(kind = kind, data = given[data], style = given[!data], level = level,
       main = main)
}

# --- From a fit to its picture -----------------------------------------------

#' Plots of fits and tests
#'
#' Each fit and test of the package has pictures; the pages of the classes say
#' which.
#'
#' `plot()` draws with base graphics, `autoplot()` gives the same data, limits,
#' colors and symbols to ggplot2, whose themes, scales and layers may then be
#' added with `+`; what several figures show is one plot with facets. Pages of
#' the pictures: [plot.kme()], [plot.kme_pca()], [plot.kme_fda()],
#' [plot.kme_density()], [plot.rkhs_iv()], [plot.bag_smm()], [plot.mmd_test()],
#' [mmd_pairwise()], [mmd_gof()]; and [kme_cov()], [hsic_test()], [gram()],
#' [kme_landmarks()].
#'
#' Of more than 2,000 points an even share is drawn, of groups twelve are named.
#' Points and lines that are added to a plot of one figure fall into place.
#'
#' @param x,object A fit, a test, a gram or landmarks.
#' @param ... The `type` of the picture, by name or as the second argument, and
#'   what else the picture takes. For `plot()` also graphical parameters: those
#'   of points, lines and fillings (`col`, `pch`, `cex`, `lwd`, `levels`, ...)
#'   are for what is drawn, the others for the frame, as in [plot.default()].
#' @param legend `TRUE` for a legend in the right margin, `FALSE` for none, or a
#'   place inside as in [legend()], such as `"topright"`.
#' @return What was drawn, invisibly; for `autoplot()` an object of class
#'   `ggplot`.
#' @examples
#' fit <- kme_pca(scale(iris[, 1:4]), ncomp = 2)
#' plot(fit, groups = iris$Species)
#' plot(fit, "spectrum", col = "grey40")
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' ggplot2::autoplot(fit, groups = iris$Species) + ggplot2::theme_minimal()
#' @export
plot.kernmean_fit <- function(x, ..., legend = TRUE) {
  dots <- split_dots(x, list(...), substitute(list(...))$groups)
  picture <- do.call("fit_picture", c(list(x), dots$picture), quote = TRUE)
  draw_picture(picture, dots$graphics, legend)
}

# list(picture, graphics): the arguments of the picture, of which one without a
# name is the type, and all others. groups: the expression of the caller, whose
# name stands at the colors.
split_dots <- function(object, dots, groups) {
  methods <- mget(paste0("fit_picture.", class(object)), topenv(), "function",
                  ifnotfound = list(NULL))
  known <- names(formals(Find(is.function, methods)))[-1L]
  given <- names(dots)
  if (is.null(given)) given <- character(length(dots))
  given[match("", given, 0L)] <- "type"
  names(dots) <- given
  ours <- given %in% known
  list(picture = c(dots[ours], if ("name" %in% known) {
    list(name = short_name(groups))
  }), graphics = dots[!ours])
}

#' @export
plot.rkhs_iv <- plot.kernmean_fit
#' @export
plot.bag_smm <- plot.kernmean_fit

# NULL: not given.
check_type <- function(type, types, default = types[1L]) {
  if (is.null(type)) default else check_choice(type, types, "type")
}

# The group of each of n points: a factor, numbers, or NULL.
check_groups <- function(groups, n) {
  if (is.null(groups)) {
    return(NULL)
  }
  if (!is.atomic(groups) || length(groups) != n || anyNA(groups)) {
    stop_input("'groups' must have one value for each of the ", n,
               " points, none missing, not ",
               if (is.atomic(groups) && anyNA(groups)) {
                 paste(sum(is.na(groups)), "NA")
               } else {
                 describe(groups)
               })
  }
  if (!is_measured(groups)) {
    return(check_factor(groups))
  }
  check_finite(as.numeric(groups), "groups")
  groups
}

# Numbers and times: they have a color bar, not a legend.
is_measured <- function(x) is.numeric(x) || inherits(x, c("Date", "POSIXct"))

# The numbers of those labels that are named or numbered: so many of them.
check_pick <- function(x, labels, name, count = 1L) {
  at <- if (is.character(x)) match(x, labels) else x
  if (!length(at) %in% count || !all(at %in% seq_along(labels)) ||
        anyDuplicated(at)) {
    stop_input("'", name, "' must be ",
               paste(c("one", "two")[count], collapse = " or "), " of ",
               shorten(paste0("\"", labels, "\""), 12L), ", by name or ",
               "number, not ", if (is.atomic(x)) shorten(x) else describe(x))
  }
  as.integer(at)
}

# "Petal.Width" of iris$Petal.Width; NULL for what has no short name.
short_name <- function(expression) {
  name <- sub("^.*\\$", "", deparse1(expression))
  if (nchar(name) <= 30L && name == make.names(name)) name
}

padded_range <- function(x) {
  width <- diff(range(x))
  range(x) + c(-1, 1) * (if (width > 0) 0.15 * width else 1)
}

axis_names <- function(x) {
  if (!is.null(colnames(x))) {
    colnames(x)
  } else {
    if (ncol(x) == 1L) "x" else c("x[1]", "x[2]")
  }
}

# --- Colors and symbols ------------------------------------------------------

# Okabe and Ito's, and four of Tol's.
level_palette <- c("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7",
                   "#56B4E9", "#F0E442", "#000000", "#999999", "#882255",
                   "#332288", "#999933")
level_symbols <- c(21L, 24L, 22L, 23L, 25L)

level_colors <- \(count) rep_len(level_palette, count)

# Twelve colors and five symbols: sixty levels differ.
level_pch <- \(count) rep_len(level_symbols, count)

accent <- "#D55E00"

blues <- function(value) {
  list(limits = range(value),
       colors = hcl.colors(64, "Blues 3", rev = TRUE))
}

# Blue where the first sample is denser, red where the second is.
diverging <- function(value) {
  most <- max(abs(value), .Machine$double.xmin)
  list(limits = c(-most, most),
       colors = hcl.colors(65, "Blue-Red 2", rev = TRUE))
}

# The color of each of the numbers.
color_of <- function(value, fill) {
  width <- diff(fill$limits)
  share <- if (width > 0) (value - fill$limits[1L]) / width else 0.5
  last <- length(fill$colors) - 1L
  fill$colors[1L + round(last * pmin(pmax(rep_len(share, length(value)), 0),
                                     1))]
}

# The colors of measured groups, with round numbers for the bar.
measured_fill <- function(values, title = NULL) {
  at <- pretty(values, 4L)
  labels <- format(at)
  limits <- range(as.numeric(values))
  at <- as.numeric(at)
  inside <- at >= limits[1L] & at <= limits[2L]
  if (!any(inside)) {
    # Equal ones, to the digits of round numbers.
    at <- limits[1L]
    labels <- format(min(values), digits = 3L)
    inside <- TRUE
  }
  list(limits = limits, colors = hcl.colors(64, "viridis"), title = title,
       at = at[inside], labels = trimws(labels)[inside])
}

# A color with three parts of white.
tint <- function(color) {
  mixed <- (grDevices::col2rgb(color) + 3 * 255) / 4
  grDevices::rgb(t(mixed), maxColorValue = 255)
}

# --- Legends ---------------------------------------------------------------

# One entry each: what it is a sign of is a "point" filled with the color, a
# "ring" around other colors, a "box", or a "line".
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

# Points with a white rim, in an order in which no group covers another; of
# many an even share. `group`: NULL, a factor, or numbers, for which `fill` has
# the colors. x: two columns.
points_layer <- function(x, group = NULL, fill = NULL,
                         color = level_palette[1L], main = FALSE) {
  n <- nrow(x)
  shown <- order((0.618034 * seq_len(n)) %% 1)
  shown <- shown[seq_len(min(n, most_points_drawn))]
  levels <- if (is.factor(group)) as.integer(group)
  value <- if (!is.factor(group) && !is.null(group)) as.numeric(group)
  pch <- 21L
  if (!is.null(value)) color <- color_of(value, fill)
  if (!is.null(levels)) {
    pch <- level_pch(nlevels(group))[levels]
    color <- level_colors(nlevels(group))[levels]
  }
  layer <- new_layer(
    "points", x = unname(x[, 1L]), y = unname(x[, 2L]),
    level = if (!is.null(levels)) group, main = main, pch = pch, bg = color,
    col = "white", cex = if (length(shown) > 300) 0.6 else 0.9, lwd = 0.6
  )
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

# Points that are pointed out.
mark_layer <- function(x, y, level, color = accent, pch = 21L) {
  new_layer("points", x = x, y = y, level = level, pch = pch, bg = color,
            col = "white", cex = 1.3)
}

# Bars of one standard error to either side.
error_layer <- function(x, y, se) {
  new_layer("line", x = as.vector(rbind(x, x, NA)),
            y = as.vector(rbind(y - se, y + se, NA)), col = "grey65")
}

# The values of `at` on a grid of n x n points, list(x, y, z); `axes` are the
# two grids, or points that they are to cover.
surface_of <- function(at, axes, n) {
  check_memory(n, n, "take a smaller 'n'", copies = 16, what = "a grid")
  if (!is.list(axes)) {
    axes <- lapply(1:2, \(j) {
      ends <- padded_range(axes[, j])
      seq(ends[1L], ends[2L], length.out = n)
    })
  }
  z <- at(as.matrix(expand.grid(unname(axes))))
  list(x = axes[[1L]], y = axes[[2L]], z = matrix(z, length(axes[[1L]])))
}

# The image of a surface under its contours.
surface_layers <- function(surface, fill) {
  layer <- \(...) do.call(new_layer, c(surface, list(...)))
  list(
    layer("image", zlim = fill$limits, col = fill$colors),
    # Of a plane there are none.
    if (diff(range(surface$z)) > 0) {
      layer("contour", col = "grey20", labcex = 0.7, main = TRUE)
    }
  )
}

# The points xy, two named columns, in their groups. lines_at: where dotted
# lines cross.
groups_picture <- function(title, xy, groups, labels, value,
                           lines_at = c(NA, NA), name = NULL, ...) {
  dotted <- list(
    if (!is.na(lines_at[1L])) across_layer(v = lines_at[1L], col = "grey60",
                                           lty = 3),
    if (!is.na(lines_at[2L])) across_layer(h = lines_at[2L], col = "grey60",
                                           lty = 3)
  )
  fill <- if (!is.null(groups) && !is.factor(groups)) {
    measured_fill(groups, name)
  }
  new_picture(
    title, labels[1L], labels[2L],
    c(dotted, list(points_layer(xy, groups, fill, main = TRUE))),
    value, key = if (is.factor(groups)) level_entries(levels(groups)),
    fill = fill, bar = !is.null(fill), ...
  )
}

# Values in their order, such as a spectrum.
picture_sequence <- function(title, y, name, x = seq_along(y)) {
  few <- length(y) <= 200L
  new_picture(
    title, "index", name,
    list(new_layer("line", x = x, y = y),
         new_layer("points", x = x, y = y, main = TRUE,
                   pch = 20, bg = "black",
                   col = "black", cex = if (few) 1 else 0.5)),
    y, whole = "x"
  )
}

# The bars of hist().
histogram_layer <- function(bars, counts, col, border) {
  last <- length(bars$breaks)
  high <- if (counts) bars$counts else bars$density
  new_layer("bars", x0 = bars$breaks[-last], y0 = 0 * high,
            x1 = bars$breaks[-1L], y1 = high,
            col = col, border = border, main = TRUE)
}

# What the layers take of both axes.
picture_limits <- function(layers, log = "") {
  data <- lapply(layers, \(layer) {
    if (!layer$kind %in% c("across", "rug")) layer$data
  })
  ends <- function(side) {
    v <- unlist(lapply(data, `[`, paste0(side, c("", 0, 1))))
    v <- v[is.finite(v) & (v > 0 | !grepl(side, log))]
    if (length(v)) range(v) else c(1, 10)
  }
  list(x = ends("x"), y = ends("y"))
}

fit_picture.kme <- function(object, type = NULL, n = 100, interval = FALSE,
                            level = 0.95) {
  type <- check_type(type, c("selection", "embedding"),
                     if (is.null(object$score)) "embedding" else "selection")
  n <- take(n, count(2L))
  level <- take(level, a_level)
  if (take(interval, flag) &&
        (type != "embedding" || !identical(axes_of(object$sample), 1L))) {
    stop_input("'interval' must be FALSE unless the embedding of one column ",
               "is drawn")
  }
  if (type == "selection") picture_selection(object) else
    picture_embedding(object, n, if (interval) level)
}

# --- Selection ---------------------------------------------------------------

picture_selection <- function(object) {
  curve <- object$score
  if (is.null(curve)) {
    stop_input(
      "'type' must not be \"selection\" for a fit that selected nothing ",
      "along a curve"
    )
  }
  window <- selection_window(object)
  name <- names(curve)[1L]
  at <- min(max(object[[name]], min(curve[[1L]])), max(curve[[1L]]))
  chosen <- paste0(name, " = ", format(object[[name]], digits = 3),
                   guard_words(object$guard))
  base <- if (!is.null(object$reference)) {
    if (inherits(object, "kme")) "KME" else "empirical"
  }
  log <- if (min(curve[[1L]]) > 0) "x" else ""
  fine <- smooth_curve(curve[[1L]], curve$score, at, object$minimum, log)
  dashed <- if (!is.null(base)) across_layer(h = object$reference, level = base)
  new_picture(
    paste0("Selection score (", describe_rule(object), ")"),
    switch(name, noise = expression(sigma^2), h = "h", expression(lambda)),
    "score",
    list(new_layer("line", x = fine$x, y = fine$y, lwd = 2,
                   main = TRUE),
         dashed, across_layer(v = at, col = "black", lty = 3),
         mark_layer(at, object$minimum, chosen)),
    curve, xlim = window$x, ylim = window$y, log = log,
    key = rbind(key_entries(chosen, accent),
                if (!is.null(base)) key_entries(base, "grey40", "line",
                                                lty = 2L))
  )
}

# The curve through the values of a grid and its minimum, a spline in x or its
# logarithm.
smooth_curve <- function(x, y, at, minimum, log) {
  logs <- log == "x"
  usable <- is.finite(x) & is.finite(y) & (!logs | x > 0)
  if (sum(usable) < 4L) {
    return(list(x = x, y = y))
  }
  l <- if (logs) base::log(x[usable]) else x[usable]
  y <- y[usable]
  chosen <- if (!logs) at else if (at > 0) base::log(at)
  if (length(chosen) && is.finite(minimum) && min(abs(l - chosen)) > 1e-6) {
    l <- c(l, chosen)
    y <- c(y, minimum)
  }
  order <- order(l)
  l <- l[order]
  y <- y[order]
  fine <- sort(unique(c(l, seq(l[1L], l[length(l)], length.out = 401L))))
  list(x = if (logs) exp(fine) else fine,
       y = stats::splinefun(l, y, "natural")(fine))
}

# The limits x and y of the neighborhood of the minimum: up to a few times its
# gain, and some powers of ten of lambda. Where the estimate is shrunk far too
# much the curve leaves the picture.
selection_window <- function(object) {
  curve <- object$score
  if (min(curve[[1L]]) <= 0) {
    return(list(x = range(curve[[1L]]),
                y = range(curve$score, object$reference)))
  }
  base <- object$reference %||% curve$score[1L]
  gain <- base - object$minimum
  if (gain <= 1e-8 * abs(base)) {
    y <- range(curve$score, base)
    # The score of noise has no upper limit with a polynomial kernel.
    top <- if (base > 0) min(y[2L], 3 * base) else y[2L]
    return(list(x = range(curve[[1L]]), y = c(y[1L], top)))
  }
  y <- object$minimum + c(-0.3, 4) * gain
  inside <- curve[[1L]][curve$score <= y[2L]]
  ends <- range(curve[[1L]])
  chosen <- min(object[[names(curve)[1L]]], ends[2L])
  list(
    x = c(max(ends[1L], 1e-5 * chosen),
          min(ends[2L], 10 * max(inside, chosen))),
    y = y
  )
}

# --- The embedding -----------------------------------------------------------

# The picture of the embedding, over one or two columns or on two axes. level:
# the level of a band around a curve, NULL for none.
picture_embedding <- function(object, n, level = NULL) {
  d <- axes_of(object$sample)
  if (is.null(d) || d > 2L) {
    picture_axes(object)
  } else if (d == 1L) {
    picture_curve(object, n, level)
  } else {
    picture_contours(object, n)
  }
}

picture_curve <- function(object, n, level = NULL) {
  sample <- object$sample
  x <- sample_raw(sample)
  ends <- padded_range(x)
  z <- seq(ends[1L], ends[2L], length.out = n)
  new <- matrix(z, dimnames = list(NULL, colnames(x)))
  value <- unname(predict(object, new))
  average <- plain_weights(sample)
  plain <- identical(object$weights, average) && is.null(object$noise) &&
    is.null(object$parts) || !is.null(level)
  mean <- if (!plain) {
    drop(sample_at(sample, raw_points(sample, matrix(z)), average))
  }
  picture <- new_picture(
    mean_title(object), axis_names(x), "embedding",
    list(new_layer("line", x = z, y = value, lwd = 2,
                   level = if (!plain) "estimate", main = TRUE),
         if (!plain) new_layer("line", x = z, y = mean, level = "KME",
                               lty = 2, col = "grey40"),
         new_layer("rug", x = as.vector(x))),
    data.frame(z = z, value = value), ylim = range(0, value, mean),
    key = if (!plain) key_entries(c("estimate", "KME"), c("black", "grey40"),
                                  "line", lty = 1:2, lwd = 2:1)
  )
  if (is.null(level)) {
    return(picture)
  }
  # Points of a grid are not points of the sample, though some may be equal.
  ends <- value_ends(object, raw_points(sample, matrix(z)), value, level,
                     own = FALSE)
  with_band(picture, ends[, 1L], ends[, 2L], level)
}

# The picture of a curve with a band of intervals under its first layer.
with_band <- function(picture, lower, upper, level) {
  name <- paste0(format(100 * level, digits = 4L), "% intervals")
  color <- tint(level_palette[1L])
  picture$layers[[1L]]$level <- "KME"
  picture$layers <- c(
    list(new_layer("ribbon", x = picture$value$z, y0 = lower, y1 = upper,
                   col = color, level = name)),
    picture$layers
  )
  picture$key <- rbind(key_entries("KME", "black", "line", lwd = 2),
                       key_entries(name, color, "box"))
  picture$ylim <- range(picture$ylim, lower, upper)
  picture$value <- cbind(picture$value, lower = lower, upper = upper)
  picture
}

# New points, given in the units of the user.
raw_points <- function(sample, z) {
  new_points(scale_points(sample$kernel, z), NULL)
}

picture_contours <- function(object, n) {
  x <- sample_raw(object$sample)
  surface <- surface_of(\(z) {
    unname(predict(object, `colnames<-`(z, colnames(x))))
  }, x, n)
  picture_surface(mean_title(object), x, surface, "embedding")
}

# The picture of a surface: filled contours under the points x and other layers.
picture_surface <- function(title, x, surface, name, layers = list()) {
  steps <- pretty(surface$z, 10)
  fill <- list(limits = range(steps), steps = steps, title = name,
               colors = hcl.colors(length(steps) - 1L, "Blues 3", rev = TRUE))
  labels <- axis_names(x)
  points <- if (nrow(x)) points_layer(x, color = "grey20", thin = TRUE)
  new_picture(title, labels[1L], labels[2L],
              c(surface_layers(surface, fill), list(points), layers), surface,
              fill = fill, flush = TRUE)
}

# The picture of the embedding at the points along two kernel principal axes.
picture_axes <- function(object) {
  axes <- kernel_axes(object$sample)
  value <- unname(object$fitted[axes$shown])
  fill <- measured_fill(value, "embedding")
  new_picture(
    mean_title(object), "kernel PC1", "kernel PC2",
    list(points_layer(axes$scores, value, fill, main = TRUE)),
    data.frame(PC1 = axes$scores[, 1L], PC2 = axes$scores[, 2L],
               value = value),
    fill = fill, bar = TRUE, asp = 1
  )
}

most_points_on_axes <- 1000L

# The points along the two leading kernel principal axes of the sample:
# `scores`, the two columns; `shown`, the numbers of the points; `values` and
# `total`, the variances on the axes and in all. Axes along which nothing varies
# are 0.
kernel_axes <- function(sample) {
  n <- sample$n
  shown <- evenly(n, most_points_on_axes)
  part <- walkable_sample(sample_take(sample, shown))
  # The mean is given as its values, as it has no norm in the space of the
  # energy kernel.
  rows <- sample_rows(part) / part$n
  s <- centered_spectrum(new_centered(part, rows, mean(rows)), 2L)
  values <- c(s$values, 0, 0)[1:2]
  scores <- take_columns(cbind(s$vectors, 0, 0), 1:2) *
    rep(sqrt(values), each = part$n)
  colnames(scores) <- c("PC1", "PC2")
  list(scores = scores, shown = shown, values = values, total = s$total)
}

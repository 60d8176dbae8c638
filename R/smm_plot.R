fit_picture.bag_smm <- function(object, type = NULL) {
  type <- check_type(type, c("bags", "cv"))
  if (type == "bags") picture_of_bags(object) else picture_tried(object)
}

# "Support measure machine (cross-validated error 0.12)"
plot_heading <- function(object) {
  best <- chosen_loss(object)
  note <- switch(object$type, classification = "cross-validated error ",
                 regression = "cross-validated rmse ", novelty = "nu = ",
                 ridge = "leave-one-out rmse ")
  if (object$type == "novelty") best <- object$nu
  paste0(smm_title[[object$type]], if (length(best)) {
    paste0(" (", note, format(best, digits = 2), ")")
  })
}

# --- Bags --------------------------------------------------------------------

picture_of_bags <- function(object) {
  axes <- bag_axes(object$gram)
  value <- data.frame(axes$scores, row.names = rownames(axes$scores))
  value$y <- unname(object$y)
  value$.fitted <- unname(object$fitted)
  rings <- object$type != "ridge"
  support <- rownames(value) %in% object$support
  if (rings) value$support <- support
  group <- if (is.null(value$y)) value$.fitted else value$y
  picture <- groups_picture(plot_heading(object), axes$scores, group,
                            component_labels(axes, colnames(axes$scores)),
                            value, lines_at = c(0, 0), name = "y")
  if (rings && any(support)) ring_points(picture, support, "support bag") else
    picture
}

# The bags along their kernel principal axes, in the form of kme_pca(); axes
# along which nothing varies are 0.
bag_axes <- function(g) {
  centered <- centered_sample(read_sample(g), est_kme())
  s <- centered_spectrum(centered, min(2L, centered$n))
  scores <- matrix(0, centered$n, 2L,
                   dimnames = list(rownames(g$K), c("PC1", "PC2")))
  values <- numeric(2)
  found <- which(s$values > 0)
  found <- found[found <= 2L]
  values[found] <- s$values[found]
  scores[, found] <- s$vectors[, found] *
    rep(sqrt(values[found]), each = centered$n)
  list(scores = scores, values = values, total = s$total)
}

# The picture with rings around some of the points of its last layer, and an
# entry of the key, the first so that many classes do not drop it.
ring_points <- function(picture, which, label) {
  points <- picture$layers[[length(picture$layers)]]
  inside <- points$shown[which[points$shown]]
  rings <- new_layer(
    "points", x = points$data$x[inside], y = points$data$y[inside],
    pch = 1L, col = "grey20", bg = "grey20", cex = 1.7 * points$style$cex,
    level = label
  )
  picture$layers <- c(picture$layers, list(rings))
  picture$key <- rbind(key_entries(label, "grey20", "ring", 1L), picture$key)
  picture
}

# --- What was tried ----------------------------------------------------------

picture_tried <- function(object) {
  cv <- object$cv
  several <- Filter(\(name) length(unique(cv[[name]])) > 1L,
                    c("cost", "nu", "bandwidth2", "bandwidth"))
  if (!length(several)) {
    ridge <- object$type == "ridge"
    stop_input("'type' must not be \"cv\" unless ", if (ridge) {
      "several bandwidths were tried; 'ridge' is chosen for each by itself"
    } else {
      "there were several values to choose among"
    })
  }
  along <- several[1L]
  widths <- rev(several[-1L])
  curves <- if (length(widths)) split(cv, cv[rev(widths)], drop = TRUE) else
    list(cv)
  curves <- lapply(unname(curves), \(part) part[order(part[[along]]), ])
  labels <- if (length(widths)) {
    vapply(curves, \(part) toString(paste(widths, number_in(part, widths))), "")
  }
  # From dark to light, none too light to be a line.
  colors <- if (length(widths)) {
    utils::head(hcl.colors(length(curves) + 1L, "viridis"), -1L)
  } else {
    "black"
  }
  best <- cv[cv$chosen, ]
  rows <- if (length(widths)) best else cv
  named <- c(along, widths)
  chosen <- toString(paste(named, "=", number_in(best, named)))
  limit <- if (object$type == "novelty") {
    consistent_limit(sort(unique(cv$nu)), object$n, along)
  }
  new_picture(
    plot_heading(object), along,
    switch(object$type,
      classification = "share of wrong classes",
      regression = "mean squared error / variance of y",
      novelty = "share of bags refused",
      ridge = "leave-one-out mean squared error"
    ),
    c(list(if (!is.null(cv$se) && !anyNA(rows$se)) {
      error_layer(rows[[along]], rows$score, rows$se)
    }), limit$layer,
      curve_layers(curves, along, colors, labels),
      list(mark_layer(best[[along]], best$score, chosen))),
    cv, log = "x",
    key = rbind(key_entries(chosen, accent), limit$key,
                if (length(widths)) key_entries(labels, colors, "line",
                                                lwd = 2))
  )
}

# The columns of the first row of a table as words.
number_in <- function(table, columns) {
  format_number(unlist(table[1L, columns, drop = FALSE]), 3L)
}

curve_layers <- function(curves, along, colors, labels) {
  pieces <- Map(\(part, i) {
    list(new_layer("line", x = part[[along]], y = part$score,
                   lwd = 2, col = colors[i], level = labels[i],
                   main = TRUE),
         new_layer("points", x = part[[along]], y = part$score,
                   pch = 20, bg = colors[i], col = colors[i]))
  }, curves, seq_along(curves))
  unlist(pieces, recursive = FALSE)
}

# What the choice of nu takes for consistent: list(layer, key).
consistent_limit <- function(nu, m, along) {
  label <- "nu + 2 standard errors"
  limit <- nu + 2 * sqrt(nu * (1 - nu) / m)
  style <- list(col = "grey40", lty = 2)
  layer <- if (along == "nu") {
    new_layer("line", x = nu, y = limit, style = style, level = label)
  } else {
    across_layer(h = limit, level = label)
  }
  list(layer = list(layer),
       key = key_entries(label, "grey40", "line", lty = 2L))
}

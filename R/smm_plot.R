fit_picture.bag_smm <- function(object, type = NULL) {
  type <- check_type(type, c("bags", "cv", "calibration"))
  best <- chosen_loss(object)
  of <- smm_types[[object$type]]
  title <- paste0(of$title, if (length(best)) {
    paste0(" (", of$loss, " ", format(best, digits = 2), " left out)")
  })
  switch(type,
    bags = picture_of_bags(object, title),
    cv = picture_tried(object, title, of$score),
    calibration = picture_calibration(left_out_probability(object, type),
                                      object$y, of$title)
  )
}

# The bags along their kernel principal axes, support bags with a ring.
picture_of_bags <- function(object, title) {
  axes <- bag_axes(object$gram)
  value <- data.frame(axes$scores, row.names = rownames(axes$scores))
  value$y <- unname(object$y)
  value$.fitted <- unname(object$fitted)
  rings <- object$type != "ridge"
  support <- rownames(value) %in% object$support
  if (rings) value$support <- support
  group <- if (is.null(value$y)) value$.fitted else value$y
  picture <- groups_picture(title, axes$scores, group,
                            component_labels(axes, colnames(axes$scores)),
                            value, lines_at = c(0, 0), name = "y")
  if (rings && any(support)) {
    points <- picture$layers[[length(picture$layers)]]
    inside <- points$shown[support[points$shown]]
    label <- "support bag"
    picture$layers <- c(picture$layers, list(new_layer(
      "points", x = points$data$x[inside], y = points$data$y[inside],
      pch = 1L, col = "grey20", bg = "grey20", cex = 1.7 * points$style$cex,
      level = label
    )))
    # The first, so that many classes do not drop it.
    picture$key <- rbind(key_entries(label, "grey20", "ring", 1L), picture$key)
  }
  picture
}

# The scores and shares of kme_pca(); axes along which nothing varies are 0.
bag_axes <- function(g) {
  centered <- centered_sample(read_sample(g), est_kme())
  s <- centered_spectrum(centered, min(2L, centered$n))
  values <- pmax(c(s$values, 0, 0)[1:2], 0)
  scores <- cbind(s$vectors, 0, 0)[, 1:2, drop = FALSE] *
    rep(sqrt(values), each = centered$n)
  dimnames(scores) <- list(rownames(g$K), c("PC1", "PC2"))
  list(scores = scores, values = values, total = s$total)
}

# The score along the first parameter of which several values were tried, a
# curve for each combination of the others.
picture_tried <- function(object, title, score) {
  cv <- tried_of(object, "type")
  several <- Filter(\(name) length(unique(cv[[name]])) > 1L,
                    c("cost", "nu", "bandwidth2", "bandwidth"))
  if (!length(several)) tried_of(NULL, "type")
  along <- several[1L]
  widths <- rev(several[-1L])
  numbers <- \(table, names) format_number(unlist(table[1L, names]), 3L)
  curves <- if (length(widths)) split(cv, cv[rev(widths)], drop = TRUE) else
    list(cv)
  # From dark to light, none too light to be a line.
  colors <- if (length(widths)) {
    utils::head(hcl.colors(length(curves) + 1L, "viridis"), -1L)
  } else {
    "black"
  }
  labels <- vapply(curves, \(part) {
    toString(paste(widths, numbers(part, widths)))
  }, "", USE.NAMES = FALSE)
  drawn <- unlist(Map(\(part, color, label) {
    part <- part[order(part[[along]]), ]
    list(new_layer("line", x = part[[along]], y = part$score, lwd = 2,
                   col = color, level = if (length(widths)) label, main = TRUE),
         new_layer("points", x = part[[along]], y = part$score, pch = 20,
                   bg = color, col = color))
  }, unname(curves), colors, labels), recursive = FALSE)
  best <- cv[cv$chosen, ]
  of_error <- if (length(widths)) best else cv
  shown <- c(along, widths)
  chosen <- toString(paste(shown, "=", numbers(best, shown)))
  limit <- if (object$type == "novelty") "told from other bags"
  drawn <- c(list(if (!is.null(limit)) across_layer(h = 0.5, level = limit)),
             drawn)
  new_picture(
    title, along, score,
    c(list(if (!is.null(cv$se) && !anyNA(of_error$se)) {
      error_layer(of_error[[along]], of_error$score, of_error$se)
    }), drawn, list(mark_layer(best[[along]], best$score, chosen))),
    cv, log = "x",
    key = rbind(key_entries(chosen, accent), if (!is.null(limit)) {
      key_entries(limit, "grey40", "line", lty = 2L)
    }, if (length(widths)) key_entries(labels, colors, "line", lwd = 2))
  )
}

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
  axes <- kernel_axes(as_sample(object$gram))
  shown <- axes$shown
  value <- data.frame(axes$scores, row.names = names(object$gram$sizes)[shown])
  value$y <- unname(object$y)[shown]
  value$.fitted <- unname(object$fitted)[shown]
  rings <- object$type != "ridge"
  support <- rownames(value) %in% object$support
  if (rings) value$support <- support
  group <- value$y %||% value$.fitted
  picture <- groups_picture(title, axes$scores, group,
                            component_labels(axes, colnames(axes$scores)),
                            value, name = "y")
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

# The score along the cost, or the bandwidth where that alone was tried, a curve
# for each value of the other.
picture_tried <- function(object, title, score) {
  cv <- tried_of(object, "type")
  several <- Filter(\(name) length(unique(cv[[name]])) > 1L,
                    c("cost", "bandwidth"))
  if (!length(several)) tried_of(NULL, "type")
  along <- several[1L]
  other <- several[-1L]
  sorted <- cv[order(cv[[along]]), ]
  best <- cv[cv$chosen, ]
  chosen <- toString(paste(several, "=",
                           format_number(unlist(best[several]), 3L)))
  curves <- if (length(other)) split(sorted, sorted[[other]]) else list(sorted)
  colors <- level_colors(length(curves))
  labels <- if (length(other)) {
    paste(other, format_number(as.numeric(names(curves)), 3L))
  }
  drawn <- lapply(seq_along(curves), \(i) {
    new_layer("line", x = curves[[i]][[along]], y = curves[[i]]$score, lwd = 2,
              col = colors[i], level = labels[i], main = TRUE)
  })
  of_error <- if (length(other)) best else cv
  limit <- if (object$type == "novelty") "told from other bags"
  new_picture(
    title, along, score,
    c(list(if (!is.null(cv$se) && !anyNA(of_error$se)) {
      error_layer(of_error[[along]], of_error$score, of_error$se)
    }, if (!is.null(limit)) across_layer(h = 0.5, level = limit)), drawn, list(
      new_layer("points", x = sorted[[along]], y = sorted$score, pch = 20,
                col = "black", bg = "black"),
      mark_layer(best[[along]], best$score, chosen)
    )),
    cv, log = "x",
    key = rbind(key_entries(chosen, accent), if (!is.null(limit)) {
      key_entries(limit, "grey40", "line", lty = 2L)
    }, if (length(other)) key_entries(labels, colors, "line", lwd = 2))
  )
}

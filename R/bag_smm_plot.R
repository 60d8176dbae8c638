# The picture of the bags along their kernel principal axes. Support bags have a
# ring.
fit_picture.bag_smm <- function(object, type = NULL) {
  check_type(type, "bags")
  best <- chosen_loss(object)
  kind <- smm_types[[object$type]]
  title <- paste0(kind$title, if (length(best)) {
    paste0(" (", kind$loss, " ", format(best, digits = 2), " left out)")
  })
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
    # This entry comes first, so that it is not dropped when there are many
    # classes.
    picture$key <- rbind(key_entries(label, "grey20", "ring", 1L), picture$key)
  }
  picture
}

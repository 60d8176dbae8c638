# Plots of a test against a model, and what it is as a data frame.

fit_picture.mmd_model_test <- function(object, type = NULL, n = 100,
                                       breaks = 30, freq = FALSE) {
  if (check_type(type, c("null", "witness")) == "null") {
    picture_null(object, breaks, freq)
  } else {
    picture_misfit(object, check_count(n, "n", 2L))
  }
}

# The kernel mean of the points less that of the model.
picture_misfit <- function(test, n) {
  sample <- test$sample
  part <- law_part(test$model, sample$kernel)
  at <- \(new) {
    drop(sample_at(sample, new, plain_weights(sample))) -
      part_at(part, sample$kernel, new)
  }
  title <- "Witness function"
  names <- c("the points", "the model")
  d <- ncol(sample$x)
  if (d > 2L) {
    return(misfit_points(sample, at, names, title))
  }
  x <- sample_raw(sample)
  draw <- if (d == 1L) witness_curve else witness_surface
  draw(x, \(z) at(raw_points(sample, z)), NULL, names, n, title,
       span = rbind(unname(x), model_span(test$model)))
}

# Points as far out as most of the model; of one that follows the points none.
model_span <- function(law) UseMethod("model_span")
model_span.normal_law <- \(law) NULL
model_span.draws_law <- function(law) {
  unname(apply(law_points(law), 2L, quantile, c(0.005, 0.995), names = FALSE))
}
model_span.mixture_law <- function(law) {
  q <- law$mixture
  means <- q$means[q$weights > 0, , drop = FALSE]
  reach <- 2 * sqrt(apply(q$covariances, 3L, diag))
  reach <- t(matrix(reach, ncol(means)))[q$weights > 0, , drop = FALSE]
  rbind(means - reach, means + reach)
}

# At the points, along their leading kernel principal axes.
misfit_points <- function(sample, at, names, title) {
  axes <- kernel_axes(sample)
  value <- at(new_points(sample$x[axes$shown, , drop = FALSE]))
  fill <- denser_fill(value, names)
  new_picture(
    paste(title, "on kernel principal axes"), "kernel PC1", "kernel PC2",
    list(points_layer(axes$scores, value, fill, main = TRUE)),
    data.frame(PC1 = axes$scores[, 1L], PC2 = axes$scores[, 2L],
               value = value),
    fill = fill, key = denser_entries(names, end_colors(fill))
  )
}

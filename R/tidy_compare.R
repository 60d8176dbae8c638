# Comparisons of groups as data frames, see tidy.R.

#' @exportS3Method generics::tidy
tidy.mmd_comparisons <- function(x, ...) {
  check_dots(...)
  table <- x$table
  data.frame(
    table[c("group1", "group2", "n1", "n2")], estimate = table$distance,
    statistic = table$statistic, p.value = table$p.value,
    adj.p.value = table$p.adjusted
  )
}

#' @exportS3Method generics::glance
glance.mmd_comparisons <- function(x, ...) {
  check_dots(...)
  data.frame(
    groups = length(x$sizes), comparisons = nrow(x$table), nobs = nobs(x),
    B = if (is.null(x$B)) NA_integer_ else x$B, null = x$null, type = x$type,
    estimator = x$estimator$name, adjust = x$adjust,
    control = if (is.null(x$control)) NA_character_ else x$control,
    smallest = min(x$table$p.adjusted), kernel_columns(x$kernel)
  )
}

#' @exportS3Method generics::augment
augment.mmd_comparisons <- function(x, data = NULL, ...) {
  check_dots(...)
  own <- data.frame(.group = x$groups)
  order <- x$arguments$pooled$order
  if (!is.null(data) && !is.null(order)) {
    own <- own[order(order), , drop = FALSE]
  }
  augmented(x$sample, data, NULL, own)
}

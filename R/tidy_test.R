# Tests as data frames, see tidy.R.

# Named numbers as columns.
# Bandwidths of variables are numbered, so that the tables of two tests can be
# bound.
number_columns <- function(x) {
  if (is.null(x)) {
    return(list())
  }
  of <- startsWith(as.character(names(x)), "bandwidth of ")
  names(x)[of] <- paste0("bandwidth.", seq_len(sum(of)))
  if (length(x)) as.list(stats::setNames(x, make.names(names(x)))) else list()
}

# As broom's tidy.htest(), which takes estimates of several kinds for those of
# several groups. Bandwidths are parameters.
tidy_test <- function(x) {
  names <- as.character(names(x$estimate))
  sizes <- x$estimate[!startsWith(names, "bandwidth")]
  others <- number_columns(sizes[-1L])
  names(others)[names(others) == "kernel.R.2"] <- "r.squared"
  as.data.frame(c(
    list(estimate = one_number(unname(sizes)[1L])), others,
    list(statistic = unname(x$statistic), p.value = x$p.value),
    number_columns(x$parameter),
    list(method = x$method, alternative = x$alternative)
  ))
}

#' @exportS3Method generics::tidy
tidy.mmd_test <- function(x, ..., pairs = FALSE) {
  check_dots(...)
  if (check_flag(pairs, "pairs")) pair_frame(x) else tidy_test(x)
}

#' @exportS3Method generics::tidy
tidy.hsic_test <- function(x, ...) {
  check_dots(...)
  tidy_test(x)
}

#' @exportS3Method generics::glance
glance.mmd_test <- function(x, ...) {
  check_dots(...)
  data.frame(
    statistic = unname(x$statistic), p.value = x$p.value, nobs = nobs(x),
    B = if (is.null(x$replicates)) NA_integer_ else length(x$replicates),
    null = x$null, type = x$type, estimator = x$estimator$name,
    lambda = one_number(x$lambda), method = x$method
  )
}

#' @exportS3Method generics::glance
glance.hsic_test <- glance.mmd_test

#' @exportS3Method generics::augment
augment.mmd_test <- function(x, data = NULL, ...) {
  check_dots(...)
  if (is.null(x$groups)) {
    stop_input("'x' must be a test of points; a sketch keeps sums, no rows")
  }
  sample <- x$sample
  own <- data.frame(.group = x$groups)
  if (length(x$sizes) == 2L && is.null(x$arguments$bandwidths)) {
    group <- as.integer(x$groups)
    weights <- c(1, -1)[group] / unname(x$sizes)[group]
    own$.witness <- witness_values(sample, list(weights = weights), x)$own()
  }
  order <- x$arguments$pooled$order
  if (!is.null(data) && !is.null(order)) {
    own <- own[order(order), , drop = FALSE]
  }
  augmented(sample, data, NULL, own)
}

#' @exportS3Method generics::augment
augment.hsic_test <- function(x, ...) {
  stop_input("'x' must be a fit or a test of groups; a test of independence ",
             "has nothing to say of single points")
}

#' @rdname tidy.kme
#' @export
as.data.frame.mmd_test <- function(x, row.names = NULL, optional = FALSE,
                                   ...) {
  check_dots(...)
  with_row_names(if (is.null(x$statistics)) pair_frame(x) else x$statistics,
                 row.names)
}

#' @rdname tidy.kme
#' @export
as.data.frame.hsic_test <- function(x, row.names = NULL, optional = FALSE,
                                    ...) {
  check_dots(...)
  with_row_names(if (is.null(x$statistics)) tidy_test(x) else x$statistics,
                 row.names)
}

# What a test of mmd_test() can do.

# tidy(test, pairs = TRUE) has a row for each pair of groups.
fit_rows.mmd_test <- function(x, ..., pairs = FALSE) {
  check_dots(...)
  if (check_flag(pairs, "pairs")) pair_frame(x) else fit_rows.htest(x)
}

fit_frame.mmd_test <- function(x) {
  if (is.null(x$statistics) && length(x$sizes) > 1L) pair_frame(x) else
    fit_frame.htest(x)
}

pair_frame <- function(x) {
  if (!is.null(x$arguments$bandwidths)) {
    stop_input("'x' must be a test with one kernel for distances of pairs, ",
               "not of many bandwidths")
  }
  names <- utils::combn(names(x$sizes), 2L)
  value <- if (is.null(x$pairs)) x$statistic else x$pairs
  data.frame(group1 = names[1L, ], group2 = names[2L, ],
             estimate = sqrt(pmax(0, unname(value))), statistic = unname(value))
}

# The points as the data have them, and where the samples differ.
fit_values.mmd_test <- function(x, newdata = NULL) {
  if (!is.null(newdata)) {
    stop_input("'newdata' must be NULL for a test, which is of its points")
  }
  if (is.null(x$groups)) {
    return(NULL)
  }
  added <- data.frame(.group = x$groups)
  if (length(x$sizes) == 2L && is.null(x$arguments$bandwidths)) {
    group <- as.integer(x$groups)
    weights <- c(1, -1)[group] / unname(x$sizes)[group]
    added$.witness <- witness_values(x$sample, list(weights = weights), x)$own()
  }
  added[data_order(x), , drop = FALSE]
}

fit_sample_of.mmd_test <- \(x) sample_take(x$sample, data_order(x))

data_order <- function(test) {
  order <- test$arguments$pooled$order
  if (is.null(order)) seq_along(test$groups) else order(order)
}

#' @rdname mmd_test
#' @export
update.mmd_test <- function(object, ...) {
  changes <- list(...)
  check_changes(changes)
  update_samples(object$sample, object, changes, substitute(list(...)))
}

# The test of the sample of another one with changes; call: list(...) of them,
# unevaluated.
update_samples <- function(sample, object, changes, call) {
  UseMethod("update_samples")
}
update_samples.kernmean_sample <- function(sample, object, changes, call) {
  arguments <- object$arguments
  data <- changed_data(changes, arguments$pooled$label)
  # One takes the place of the other.
  if (!is.null(changes$kernel)) arguments["bandwidths"] <- NULL
  if (!is.null(changes$bandwidths)) arguments["kernel"] <- NULL
  arguments <- merge_changes(drop_filter(arguments, changes),
                             changes[!names(changes) %in% data])
  label <- new_label(arguments$pooled$label, call, data)
  arguments$pooled <- if (length(data)) {
    first <- as.integer(object$groups) == 1L
    points <- sample_raw(sample)
    own <- list(x = points[first, , drop = FALSE],
                y = points[!first, , drop = FALSE])
    own[data] <- changes[data]
    pool_pair(own$x, own$y, label)
  } else {
    kernel <- !is.null(arguments$kernel) || !is.null(arguments$bandwidths)
    if (!"scale" %in% names(changes)) {
      arguments$kernel <- keep_units(arguments$kernel, sample)
      if (is_scaled(arguments$kernel)) arguments["scale"] <- list(NULL)
    }
    list(sample = unfitted_sample(sample, kernel),
         groups = object$groups, order = arguments$pooled$order, label = label,
         name = arguments$pooled$name)
  }
  do.call(test_samples, arguments, quote = TRUE)
}

# The sample without its kernel, where it is no gram or has another kernel to
# come.
unfitted_sample <- function(sample, rekernel) {
  if (stores_gram(sample) && !rekernel) {
    return(sample)
  }
  sample_points(sample, "'kernel' and 'bandwidths' must be NULL for a gram ",
                "whose points are not known")
  points_sample(sample_raw(sample), NULL)
}

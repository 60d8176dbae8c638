# What a test of mmd_test() can do.

#' @export
print.mmd_test <- function(x, digits = getOption("digits"), ...) {
  digits <- check_digits(digits)
  print_test(x, digits, maximum_line(x))
}

#' @export
summary.mmd_test <- function(object, ...) {
  check_dots(...)
  test_summary(object)
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

# What a test of hsic_test() can do.

fit_picture.hsic_test <- function(object, type = NULL, breaks = 30,
                                  freq = FALSE) {
  check_type(type, "null")
  picture_null(object, breaks, freq)
}

#' @rdname hsic_test
#' @export
update.hsic_test <- function(object, ...) {
  changes <- list(...)
  check_changes(changes)
  update_variables(object$variables[[1L]]$sample, object, changes,
                   substitute(list(...)))
}

# The test of the variables of another one with changes; sample: that of the
# first variable, call: list(...) of the changes, unevaluated.
update_variables <- function(sample, object, changes, call) {
  UseMethod("update_variables")
}
update_variables.kernmean_sample <- function(sample, object, changes, call) {
  arguments <- object$arguments
  # One takes the place of the other.
  kernels <- c("kernel", "kernel_x", "kernel_y")
  if (any(kernels %in% names(changes))) arguments["bandwidths"] <- list(NULL)
  if (!is.null(changes$bandwidths)) arguments[kernels] <- list(NULL)
  variables <- object$variables
  several <- !"y" %in% names(arguments$label)
  fitted <- !vapply(variables, \(v) is.null(variable_kernel(v)), NA)
  arguments <- spread_kernel(arguments, fitted, several)
  # A formula has sides, a list has none.
  if (is.null(names(arguments$label))) {
    changes <- side_kernels(changes, variables)
  }
  changes <- spread_kernel(changes, vapply(variables, takes_kernel, NA),
                           several)
  changes <- keep_all_units(changes, variables, several)
  data <- changed_data(changes, arguments$label)
  arguments$label <- new_label(arguments$label, call, data)
  # A gram stays one unless another kernel is to come.
  rekernel <- paste0("kernel_", c("x", "y")) %in% names(changes)
  if (several) rekernel[] <- rekernel[1L]
  inputs <- Map(variable_input, variables, rep_len(rekernel,
                                                   length(variables)))
  arguments$data <- if (several) {
    list(x = inputs)
  } else {
    stats::setNames(inputs, c("x", "y"))
  }
  arguments <- merge_changes(drop_filter(arguments, changes),
                             changes[!names(changes) %in% data])
  arguments$data[data] <- changes[data]
  do.call(test_variables, arguments, quote = TRUE)
}

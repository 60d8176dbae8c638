# Tests against a model as data frames: there are no groups and no pairs.

#' @exportS3Method generics::tidy
tidy.mmd_model_test <- function(x, ...) {
  check_dots(...)
  tidy_test(x)
}

#' @exportS3Method generics::augment
augment.mmd_model_test <- function(x, ...) {
  stop_input("'x' must be a fit or a test of groups, not one against a model; ",
             "plot(x, \"witness\") shows where points are too many or too few")
}

#' @rdname tidy.kme
#' @export
as.data.frame.mmd_model_test <- function(x, row.names = NULL, optional = FALSE,
                                         ...) {
  check_dots(...)
  with_row_names(tidy_test(x), row.names)
}

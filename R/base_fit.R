# Fits. Every result inherits from kernmean_fit and answers a few verbs. The
# methods that R users expect are written here once, on these verbs:
#   fit_lines(x, digits)   the lines of print()
#   fit_summary(x)         further parts of summary(): a named list of tables,
#                          vectors and lines, printed under their names
#   fit_facts(x)           a list of single values, the row of glance()
#   fit_rows(x, ...)       a data frame of the parts of the fit, for tidy()
#   fit_values(x, newdata) the columns that augment() adds, with a row for each
#                          point of the fit, or for each new point
#   fit_columns(x, newdata, added) the columns of augment() before `added`
#   fit_frame(x)           as.data.frame(), where it is neither tidy() nor
#                          augment()
#   fit_picture(x, ...)    the picture for plot()
#   fit_request(x, changes) the arguments with which update() calls the door;
#                          attr "call" of the changes has their expressions

fit_lines <- function(x, digits) UseMethod("fit_lines")
fit_lines.default <- \(x, digits) describe(x)
fit_summary <- function(x) UseMethod("fit_summary")
fit_summary.default <- \(x) list()
fit_facts <- function(x) UseMethod("fit_facts")
fit_facts.default <- \(x) has_none(x, "a row of facts")
fit_rows <- function(x, ...) UseMethod("fit_rows")
fit_rows.default <- \(x, ...) has_none(x, "a table of parts")
has_none <- function(x, what, name = "x") {
  stop_input("'", name, "' must have ", what, ", not be ", describe(x))
}
fit_values <- function(x, newdata = NULL) UseMethod("fit_values")
fit_values.default <- \(x, newdata) NULL
fit_columns <- function(x, newdata, added) UseMethod("fit_columns")
fit_frame <- function(x) UseMethod("fit_frame")
fit_picture <- function(x, ...) UseMethod("fit_picture")
fit_picture.default <- \(x, ...) has_none(x, "a plot")
fit_request <- function(x, changes) UseMethod("fit_request")

# The version of the fields. It grows when fields change their meaning.
fit_format <- 3L

new_fit <- function(class, fields, also = NULL) {
  attr(fields, "format") <- fit_format
  class(fields) <- c(class, "kernmean_fit", also)
  fields
}

# The fit, or an error if it was saved by another version of the package and may
# lack fields that methods need.
same_version <- function(x, name = "object") {
  if (!identical(attr(x, "format"), fit_format)) {
    stop_input("'", name, "' must be a fit of this version of kernmean, not ",
               "of another; fit it again")
  }
  x
}

#' @export
print.kernmean_fit <- function(x, digits = digits_shown(), ...) {
  same_version(x, "x")
  lines <- fit_lines(x, take(digits, printed_digits))
  # The lines of a test end with an empty one, and the note stands above it.
  say(if (length(x$na.action)) append(lines, paste(
    rows_of(length(x$na.action)), "with missing values dropped"
  ), length(lines) - !nzchar(lines[length(lines)])) else lines)
  invisible(x)
}

#' @export
summary.kernmean_fit <- function(object, ...) {
  check_dots(...)
  same_version(object)
  class <- paste0("summary.", c(class(object)[1L], "kernmean_fit"))
  structure(c(list(fit = object), fit_summary(object)), class = class)
}

# Prints the fit, and each part of its summary under its name: words as they
# are, other parts as R prints them.
#' @export
print.summary.kernmean_fit <- function(x, digits = digits_shown(), ...) {
  digits <- take(digits, printed_digits)
  print(x$fit, digits = digits)
  for (name in setdiff(names(x), "fit")) {
    part <- x[[name]]
    if (is.character(part) && is.null(dim(part))) {
      say(part)
    } else if (length(part) > 1L) {
      title <- attr(part, "title")
      attr(part, "title") <- NULL
      cat("\n", title %||% name, ":\n", sep = "")
      print_part(part, digits)
    }
  }
  invisible(x)
}

# print() shows at most this many rows or columns of a table.
most_printed <- 10L
print_part <- function(part, digits) {
  along <- if (is.data.frame(part)) 1L else 2L
  more <- if (length(dim(part))) dim(part)[along] - most_printed else 0L
  if (more > 0L) {
    part <- if (along == 1L) take_rows(part, seq_len(most_printed)) else
      take_columns(part, seq_len(most_printed))
  }
  print(part, digits = digits)
  if (more > 0L) cat("and", more, "more\n")
}

# The package modelsummary passes `gof_map` to glance(), and `vcov` and
# `coef_rename` to tidy(), for every fit.
#' @exportS3Method generics::glance
glance.kernmean_fit <- function(x, ...) {
  if (!identical(...names(), "gof_map")) check_dots(...)
  facts <- lapply(fit_facts(same_version(x, "x")), \(value) {
    if (length(value) == 1L) unname(value) else NA_real_
  })
  as.data.frame(facts, optional = TRUE)
}

#' @exportS3Method generics::tidy
tidy.kernmean_fit <- function(x, ..., vcov = NULL, coef_rename) {
  if (!is.null(vcov)) {
    stop_input("'vcov' must be NULL: a fit has errors of its own, or none")
  }
  fit_rows(same_version(x, "x"), ...)
}

# The sample whose points are the rows of augment().
fit_sample_of <- function(x) UseMethod("fit_sample_of")
fit_sample_of.default <- \(x) x$sample

#' @importFrom stats nobs
#' @export
nobs.kernmean_fit <- function(object, ...) {
  check_dots(...)
  object$n %||% fit_facts(object)$nobs
}

# Calls the door, the function that made the fit, again with the stored request
# and the changes. On the same points, what was chosen from them (a bandwidth,
# for example) is kept, but the new fit stores the request as the user made it.
#' @export
update.kernmean_fit <- function(object, ...) {
  call <- substitute(list(...))
  door <- attr(object$arguments, "door")
  known <- if (!is.null(door)) doors[[door]]$known
  if ("subset" %in% setdiff(names(call), known)) {
    stop_input("'subset' must not be given to update(): other rows take a new ",
               "call")
  }
  changes <- list(...)
  # The print of a test shows the expressions of its data.
  attr(changes, "call") <- call
  check_changes(changes)
  if (is.null(door)) has_none(object, "a stored request", "object")
  asked <- fit_request(same_version(object), changes)
  table <- doors[[door]]
  lost <- setdiff(names(which(table$required)), names(asked))
  if (length(lost)) {
    stop_input("'", lost[1L], "' must be given to update(), as the fit does ",
               "not keep it")
  }
  kept <- attr(asked, "kept")
  again <- \() do.call(door, asked, quote = TRUE)
  fit <- if (is.null(kept)) again() else without_warning("units", again())
  for (name in kept) fit$arguments[[name]] <- object$arguments[[name]]
  moved <- any(c("x", "z", "bags") %in% names(changes))
  fields <- intersect(c(attr(asked, "fields"), if (!moved) c(
    "layout", if (!"data" %in% names(changes)) "na.action"
  )), names(object))
  # A gram of bags is an environment, and has these fields already.
  if (is.list(fit)) fit[fields] <- object[fields]
  fit
}

# --- What some fits do not have ----------------------------------------------

# Makes a method that returns what the default method finds in the fit, and
# stops if it finds nothing.
no_field <- function(what) {
  function(object, ...) {
    check_dots(...)
    NextMethod() %||% has_none(object, what, "object")
  }
}
no_method <- \(what) function(object, ...) has_none(object, what, "object")

#' @export
coef.kernmean_fit <- no_field("coefficients")
#' @export
fitted.kernmean_fit <- no_field("fitted values")
#' @export
residuals.kernmean_fit <- no_field("residuals")
#' @export
weights.kernmean_fit <- no_field("weights")
#' @export
anova.kernmean_fit <- no_method("an analysis of variance")
#' @export
logLik.kernmean_fit <- no_method("a likelihood")
#' @export
predict.kernmean_fit <- no_method("values at new points")
#' @export
vcov.kernmean_fit <- function(object, complete = TRUE, ...) {
  check_dots(...)
  same_version(object)$vcov %||% has_none(object, "a covariance", "object")
}
#' @export
confint.kernmean_fit <- function(object, parm, level = 0.95, ...) {
  has_none(object, "confidence intervals", "object")
}
#' @export
simulate.kernmean_fit <- function(object, nsim = 1, seed = NULL, ...) {
  has_none(object, "a law to draw from", "object")
}
#' @export
biplot.kernmean_fit <- function(x, ...) {
  has_none(x, "loadings of columns for a biplot (plot() shows scores)")
}

# The first table of a summary.
#' @export
as.data.frame.summary.kernmean_fit <- function(x, ...) {
  check_dots(...)
  as.data.frame(Find(is.data.frame, unclass(x)) %||% x$fit)
}

# --- Coefficients with errors ------------------------------------------------

# The degrees of freedom of the errors of a fit: the number of its clusters less
# 1, or Inf without clusters.
error_freedom <- \(x) {
  clusters <- x$cluster %||% x$arguments$clusters
  if (is.null(clusters)) Inf else length(unique(clusters)) - 1
}

# A data frame with the intervals of the coefficients of a fit, a row for each.
interval_table <- function(x, level) {
  estimate <- x$coefficients
  error <- sqrt(diag(x$vcov))
  far <- stats::qt((1 + level) / 2, error_freedom(x)) * error
  data.frame(estimate, error, lower = estimate - far, upper = estimate + far,
             row.names = names(estimate))
}

# "2.5 %" and "97.5 %" for the level 0.95.
level_names <- \(level) {
  shares <- c(1 - level, 1 + level) / 2
  paste(format(100 * shares, trim = TRUE, digits = 3L), "%")
}

# The matrix that confint() returns for all coefficients, or for `parm`.
coefficient_ends <- function(x, parm, level) {
  level <- take(level, number(0, 1, open = TRUE))
  ends <- as.matrix(interval_table(x, level)[3:4])
  colnames(ends) <- level_names(level)
  if (is.null(parm)) ends else take_rows(
    ends, check_pick(parm, rownames(ends), "parm", seq_len(nrow(ends)))
  )
}

# The data frame that tidy() returns for coefficients.
coefficient_rows <- function(x, conf.int = FALSE, conf.level = 0.95, ...) {
  check_dots(...)
  conf.int <- take(conf.int, flag)
  level <- take(conf.level, number(0, 1, open = TRUE))
  table <- interval_table(x, level)
  statistic <- table$estimate / table$error
  frame <- data.frame(
    term = row.names(table), estimate = table$estimate,
    std.error = table$error, statistic = statistic,
    p.value = 2 * stats::pt(-abs(statistic), error_freedom(x))
  )
  if (conf.int) {
    frame$conf.low <- table$lower
    frame$conf.high <- table$upper
  }
  frame
}

# --- Pieces of rows and facts ------------------------------------------------

# A number, or NA where there is none or several.
one_number <- function(x) {
  if (is.numeric(x) && length(x) == 1L) unname(as.double(x)) else NA_real_
}

one_word <- function(x) {
  if (is.character(x) && length(x) == 1L) x else NA_character_
}

# The columns of glance() on the kernel of a fit.
kernel_columns <- function(kernel) {
  scale <- kernel$scaling$type
  data.frame(
    kernel = one_word(kernel$title),
    bandwidth = one_number(kernel$bandwidth),
    scale = if (is.null(scale)) "FALSE" else as.character(scale)
  )
}

# The matrix with names for its columns: if it has none, "x", or "x1", "x2", ...
named_columns <- function(x, name = "x") {
  if (is.null(colnames(x)) && ncol(x) > 0L) {
    colnames(x) <- paste0(name, if (ncol(x) > 1L) seq_len(ncol(x)))
  }
  x
}

# The columns as a data frame, with such names if they have none.
named_frame <- function(x, name = "x") {
  if (is.data.frame(x)) {
    return(x)
  }
  x <- named_columns(as.matrix(x), name)
  rows <- rownames(x)
  # A data frame cannot have two rows of the same name.
  rownames(x) <- NULL
  x <- as.data.frame(x)
  if (!is.null(rows) && !anyDuplicated(rows)) rownames(x) <- rows
  x
}

prefixed <- function(x, prefix) {
  # A data frame cannot have two rows of the same name.
  if (anyNA(rownames(x)) || anyDuplicated(rownames(x))) rownames(x) <- NULL
  x <- as.data.frame(x, make.names = FALSE)
  names(x) <- paste0(prefix, names(x))
  x
}

# --- Help of the data frames -------------------------------------------------

#' Results as data frames
#'
#' What fits and tests hold as data frames, by [as.data.frame()] and by the
#' generics `tidy()`, `glance()` and `augment()` of the package generics, which
#' broom and other packages share.
#'
#' As in broom, `tidy()` has a row for each component or term, `glance()` one
#' row, and `augment(x, data = NULL, ..., newdata = NULL)` the points, with what
#' the fit says of them in columns that begin with a dot: `data` is the data
#' frame the fit was made of, `newdata` are new points, as of `predict()`. What
#' does not apply is `NA`, and so is what is not one number. All are plain data
#' frames. `as.data.frame()` is `augment()` without `data` where there are
#' points, else `tidy()`; of tests with several statistics
#' ([test_filter()]) a row for each.
#'
#' `glance()` has `nobs`, the estimator with what was chosen (`select`,
#' `lambda`, `score`, ...), the kernel (`kernel`, `bandwidth`, `scale`) and the
#' numbers that `print()` shows. `tidy()` and `augment()`:
#' \describe{
#'   \item{[kme()]}{`row` and `weight`; `.weight` and `.fitted`, the embedding.
#'     Weights are `coef()`, `NA` where that refuses.}
#'   \item{[kme_pca()]}{by `matrix`, as of [stats::prcomp()]: `"u"` the scores
#'     (`row`, `PC`, `value`), `"v"` the weights, `"d"` `PC`, `std.dev`,
#'     `percent`, `cumulative`; the scores `.fittedPC1`, ...}
#'   \item{[kme_cov()]}{`component`, `value`, `percent`, `cumulative`;
#'     `.weight`.}
#'   \item{[kme_fda()]}{`class`, `n`, `prior`, `error` and mean scores, with
#'     `matrix = "d"` the axes; `.class`, `.posterior_` with the name of each
#'     class (of the sample those of the points left out), and `.LD1`, ...}
#'   \item{[kme_density()]}{`component`, `weight`, `mean` and `sd` of each
#'     column; `.density`.}
#'   \item{[rkhs_iv()], [rkhs_iv_nested()]}{the straight line and the controls,
#'     as of an effect; of nested and classic fits a row for each `moment`;
#'     `.fitted` and `.resid`, for nested fits `.fitted_g`, `.fitted_h`,
#'     `.resid_first`, `.resid_second`.}
#'   \item{[kme_weights()]}{the balance, a row for each group and covariate;
#'     `.weight`.}
#'   \item{[kme_effect()]}{`term`, `estimate`, `std.error`, `statistic`,
#'     `p.value`, with `conf.int = TRUE` (`conf.level`) also `conf.low` and
#'     `conf.high`; `.resid` (the row left out), `.alpha`, `.effective`.}
#'   \item{[bag_gram()]}{its field `shrinkage`, a row for each bag; no points.}
#'   \item{[smm()]}{`machine`, `term` and `estimate`, with `matrix = "cv"` what
#'     was tried; a row for each bag with `.class` and `.decision`, or `.fitted`
#'     and `.resid`, `.loo` of ridge regression, and `.support`.}
#'   \item{[mmd_test()], [hsic_test()]}{one row, `estimate`, `statistic`,
#'     `p.value`, `method`, `alternative`; `.group` and, of two samples,
#'     `.witness`.}
#' }
#'
#' @param x A fit or a test.
#' @param row.names `NULL`, or row names.
#' @param optional,... Must not be given.
#' @return A data frame.
#' @docType methods
#' @seealso [glossary]
#' @name tidy.kme
#' @aliases tidy.kernmean_fit glance.kernmean_fit augment.kernmean_fit
#' @examples
#' fit <- kme_fda(Species ~ Petal.Length + Petal.Width, iris)
#' head(as.data.frame(fit))
#' if (requireNamespace("generics", quietly = TRUE)) {
#'   print(generics::tidy(fit))
#'   print(generics::glance(fit))
#'   # Points that would be put into another class
#'   flowers <- generics::augment(fit, iris)
#'   flowers[flowers$.class != flowers$Species, 4:6]
#' }
NULL

# What the generics of stats say of fits and tests: an answer, or why there is
# none. Without a method their defaults look for a field and return NULL.

#' @export
nobs.kme_sketch <- function(object, ...) object$n

#' @importFrom stats fitted
#' @export
fitted.kme_density <- function(object, ...) {
  check_dots(...)
  predict(object)
}

# Of the terms alone it would be the sum of both sides of the bar.
#' @importFrom stats formula
#' @export
formula.rkhs_iv <- function(x, ...) {
  layout <- x$terms
  if (is.null(layout)) {
    stop_input("'x' must be a fit by formula, not of ",
               shorten(paste0("'", names(x$blocks), "'")))
  }
  variables <- as.list(attr(layout, "variables"))[-1L]
  sides <- lapply(attr(layout, "groups"), \(group) {
    Reduce(\(a, b) call("+", a, b), variables[group])
  })
  stats::as.formula(
    call("~", variables[[1L]], call("|", sides[[1L]], sides[[2L]])),
    environment(layout)
  )
}

#' @importFrom stats logLik residuals
NULL

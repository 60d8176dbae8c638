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

#' @importFrom stats logLik residuals
NULL

# What the generics of stats say of fits and tests: an answer, or why there is
# none. Without a method their defaults look for a field and return NULL.

#' @export
nobs.kme <- function(object, ...) {
  check_object(object, "object")
  check_dots(...)
  object$n
}

#' @export
nobs.kme_sketch <- nobs.kme

#' @export
nobs.kme_pca <- nobs.kme

#' @export
nobs.kme_cov <- nobs.kme

#' @export
nobs.kme_fda <- nobs.kme

#' @export
nobs.mmd_test <- function(object, ...) {
  check_object(object, "object")
  check_dots(...)
  sum(object$sizes)
}

#' @export
nobs.hsic_test <- function(object, ...) {
  check_object(object, "object")
  check_dots(...)
  object$variables[[1L]]$sample$n
}

#' @importFrom stats fitted
#' @export
fitted.kme_density <- function(object, ...) {
  check_object(object, "object")
  check_dots(...)
  predict(object)
}

# A method that refuses; `where` says, by class, who has what may be meant.
refuse <- function(what, where = character()) {
  function(object, ...) {
    hint <- where[intersect(class(object), names(where))]
    stop_input("'object' must have ", what, ", not be ", describe(object),
               if (length(hint)) paste0("; ", hint[[1L]]))
  }
}

own_estimate <- "its field 'estimate' holds the effect sizes"

own_criterion <- "its field 'criterion' is r'Pr/n of each moment"

no_coef <- refuse("coefficients", c(htest = own_estimate))

no_fitted <- refuse("fitted values", c(
  kme_pca = "predict() gives the scores",
  kme_cov = "predict() gives scores, predict(type = \"value\") the operator",
  kme_fda = "predict() gives the classes, its field 'loo' those left out",
  htest = own_estimate
))

no_residuals <- refuse("residuals", c(
  kme_pca = "reconstruction_error() gives the distances of the points",
  kme_fda = "its field 'loo' has the classes of points left out"
))

no_deviance <- refuse("a deviance", c(
  kme_density = "logLik() is the log density of the sample",
  rkhs_iv = own_criterion
))

no_df <- refuse("degrees of freedom of residuals")

no_errors <- "there are none for these estimators"

no_vcov <- refuse("standard errors", c(rkhs_iv = no_errors,
                                       bag_smm = no_errors))

no_loglik <- refuse("a likelihood", c(rkhs_iv = own_criterion))

#' @importFrom stats confint
#' @export
confint.rkhs_iv <- function(object, parm, level = 0.95, ...) {
  no_confint(object)
}

#' @export
confint.bag_smm <- confint.rkhs_iv

no_confint <- refuse("confidence intervals", c(rkhs_iv = no_errors,
                                               bag_smm = no_errors))

# Of the terms alone it would be the sum of both sides of the bar.
#' @importFrom stats formula
#' @export
formula.rkhs_iv <- function(x, ...) {
  check_object(x)
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

#' @export
model.frame.rkhs_iv <- function(formula, ...) {
  no_frame(formula)
}

no_frame <- refuse("a model frame", c(
  rkhs_iv = "as.data.frame() has the columns that it was made of"
))

#' @importFrom stats deviance df.residual logLik residuals vcov
#' @rawNamespace
#' S3method(coef, hsic_test, no_coef)
#' S3method(coef, mmd_comparisons, no_coef)
#' S3method(coef, mmd_test, no_coef)
#' S3method(deviance, hsic_test, no_deviance)
#' S3method(deviance, kme, no_deviance)
#' S3method(deviance, kme_cov, no_deviance)
#' S3method(deviance, kme_density, no_deviance)
#' S3method(deviance, kme_fda, no_deviance)
#' S3method(deviance, kme_pca, no_deviance)
#' S3method(deviance, mmd_comparisons, no_deviance)
#' S3method(deviance, mmd_test, no_deviance)
#' S3method(deviance, rkhs_iv, no_deviance)
#' S3method(deviance, bag_smm, no_deviance)
#' S3method(df.residual, hsic_test, no_df)
#' S3method(df.residual, kme, no_df)
#' S3method(df.residual, kme_cov, no_df)
#' S3method(df.residual, kme_density, no_df)
#' S3method(df.residual, kme_fda, no_df)
#' S3method(df.residual, kme_pca, no_df)
#' S3method(df.residual, mmd_test, no_df)
#' S3method(df.residual, rkhs_iv, no_df)
#' S3method(df.residual, bag_smm, no_df)
#' S3method(fitted, hsic_test, no_fitted)
#' S3method(fitted, kme_cov, no_fitted)
#' S3method(fitted, kme_fda, no_fitted)
#' S3method(fitted, kme_pca, no_fitted)
#' S3method(fitted, mmd_test, no_fitted)
#' S3method(logLik, rkhs_iv, no_loglik)
#' S3method(logLik, bag_smm, no_loglik)
#' S3method(residuals, hsic_test, no_residuals)
#' S3method(residuals, kme, no_residuals)
#' S3method(residuals, kme_cov, no_residuals)
#' S3method(residuals, kme_density, no_residuals)
#' S3method(residuals, kme_fda, no_residuals)
#' S3method(residuals, kme_pca, no_residuals)
#' S3method(residuals, mmd_test, no_residuals)
#' S3method(vcov, rkhs_iv, no_vcov)
#' S3method(vcov, bag_smm, no_vcov)
NULL

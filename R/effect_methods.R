# Methods of effects.

#' @importFrom stats coef vcov confint
#' @export
coef.kme_effect <- function(object, complete = TRUE, ...) {
  check_dots(...)
  same_version(object)$coefficients
}

#' @export
weights.kme_effect <- function(object, ...) {
  check_dots(...)
  stats::naresid(object$na.action, same_version(object)$effective)
}

#' @export
confint.kme_effect <- function(object, parm, level = 0.95, ...) {
  check_dots(...)
  coefficient_ends(same_version(object), if (!missing(parm)) parm, level)
}

# The titles of prints and pictures, by functional.
effect_titles <- c(
  ate = "Average treatment effect", att = "Effect on the treated",
  atc = "Effect on the controls", means = "Mean outcomes of treatments",
  derivative = "Average derivative", policy = "Average effect of a policy",
  target = "Mean over a target population"
)

fit_lines.kme_effect <- function(x, digits) {
  number <- \(value) format_number(value, digits)
  groups <- group_table(x)
  table <- interval_table(x, 0.95)
  names(table) <- c("estimate", "std. error", "2.5 %", "97.5 %")
  c(
    paste(effect_titles[[x$functional]], "by kernel Riesz regression"),
    effect_rows(x),
    if (is.null(x$columns)) kernel_lines(x$kernel) else
      columns_lines(x), "",
    utils::capture.output(print(table, digits = digits)),
    isotropic_lines(x, number), "",
    if (is.null(x$arguments$control$folds)) "leave-one-out ridges:" else
      "ridges by folds:",
    group_lines(groups, lambda = format_number(groups$lambda, 3L),
                mu = format_number(groups$mu, 3L)),
    paste0(naive_words(x, number), "regression alone ",
           paste(number(x$plugin), collapse = ", "))
  )
}

effect_rows <- function(x) {
  treat <- x$treat
  strwrap(toString(c(
    rows_of(x$n),
    if (is.factor(treat)) paste(tabulate(treat), "with", levels(treat)),
    if (!is.null(x$cluster)) count_of(length(unique(x$cluster)), "cluster"),
    if (!is.null(x$s.weights)) "weighted",
    if (!is.null(x$target)) "over a target population",
    if (!is.null(x$covs)) {
      c(count_of(ncol(x$covs), "covariate"),
        describe_factors(frame_levels(x$covs)))
    }
  )), 80L, exdent = 2L)
}

naive_words <- function(x, number) {
  if (length(x$naive)) {
    paste0(if (is.numeric(x$treat)) "slope of a line without covariates" else
      if (x$functional == "means") "means" else "difference of means", " ",
      paste(number(x$naive), collapse = ", "), ", ")
  }
}

fit_summary.kme_effect <- function(x) {
  list(freedom = structure(
    vapply(x$fits, `[[`, 0, "edf"), title = "Degrees of freedom of g"
  ), covariance = if (length(x$coefficients) > 1L) {
    structure(x$vcov, title = "Covariance of the estimates")
  })
}

fit_facts.kme_effect <- function(x) {
  groups <- group_table(x)
  c(list(
    nobs = x$n, functional = x$functional,
    clusters = if (is.null(x$cluster)) NA_integer_ else
      length(unique(x$cluster)),
    effective = sum(groups$effective), imbalance = max(groups$after),
    plugin = one_number(x$plugin)
  ), kernel_columns(x$kernel))
}

fit_rows.kme_effect <- \(x, ...) coefficient_rows(x, ...)

fit_values.kme_effect <- function(x, newdata = NULL) {
  if (!is.null(newdata)) {
    stop_input("'newdata' must be NULL for an effect, which is of its own rows")
  }
  data.frame(.resid = x$residuals, .alpha = rows_of_fits(x, "alpha"),
             .effective = x$effective[, 1L], row.names = names(x$y))
}

fit_columns.kme_effect <- function(x, newdata, added) {
  cbind(stats::setNames(data.frame(unname(x$y), x$treat), x$names), x$covs)
}

fit_request.kme_effect <- function(x, changes) {
  if (is.function(changes$policy)) {
    changes$policy <- named_policy(changes$policy, x$names[2L])
  }
  structure(change_data(x, changes, list(
    x = x$covs, y = x$y, treat = x$treat, target = x$target,
    clusters = x$cluster, weights = x$s.weights
  )), fields = "names")
}

fit_picture.kme_effect <- function(object, type = NULL, level = 0.95) {
  type <- check_type(type, c("effects", "overlap",
                             if (!is.null(object$columns)) "columns"))
  switch(
    type, columns = picture_columns(object),
    effects = picture_effects(object, take(level, number(0, 1, open = TRUE))),
    overlap = picture_weights_of(
      "Effective weights", lapply(object$fits, `[[`, "effective"), "Sturges"
    )
  )
}

picture_effects <- function(x, level) {
  table <- interval_table(x, level)
  picture_lines(
    effect_titles[[x$functional]], paste0(100 * level, "% intervals"),
    row.names(table), table$lower, table$upper, \(at) list(
      across_layer(v = 0),
      points_layer(cbind(table$estimate, at), main = TRUE)
    ), cbind(term = row.names(table), table),
    xlim = range(0, table$lower, table$upper), col = level_palette[1L], lwd = 2
  )
}

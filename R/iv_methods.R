# --- Methods -----------------------------------------------------------------

#' Values of the functions of an instrumental-variable fit
#'
#' The estimated function at new points, `g` of [rkhs_iv()], `g` and `h` of
#' [rkhs_iv_nested()].
#'
#' New points are measured by the bandwidths and units of the fit. Far from all
#' points of the sample the functions of kernels with a bandwidth tend to the
#' intercept, 0 where there is none.
#'
#' @param object A fit.
#' @param newdata New points, with the columns of `x` by name; for a fit by
#'   formula a data frame with the regressors; for a fit on a [gram()] without
#'   points their kernel values with the sample. For a nested fit a list with
#'   `a`, `b` or both of these. Without it, the points of the sample.
#' @param what `"g"`, `"h"` or `"both"`; by default what there are new points
#'   for.
#' @param ... Must be empty.
#' @return `rkhs_iv()`: the values of g, with the names of the rows. A nested
#'   fit: a matrix with the columns `g` and `h`, or one of them.
#' @details Cost: the kernel values of the new points and at most r points of
#'   the sample, r the rank of the block (m landmarks or features).
#' @family instrumental variables
#' @examples
#' fit <- rkhs_iv(faithful$waiting, faithful$eruptions, faithful$waiting)
#' predict(fit, c(50, 60, 70))
#' @export
predict.rkhs_iv <- function(object, newdata, ...) {
  check_dots(...)
  if (missing(newdata)) {
    return(fitted(object))
  }
  rows <- NULL
  block <- object$blocks$x
  if (!is.null(object$terms)) {
    if (!is.data.frame(newdata)) {
      stop_input("'newdata' must be a data frame for a fit by formula, not ",
                 describe(newdata))
    }
    if (.row_names_info(newdata) > 0L) rows <- row.names(newdata)
    newdata <- iv_term(object$terms, newdata, 1L)
  }
  values <- block_values(object$functions$g, block, newdata, "x")
  if (!is.null(rows)) names(values) <- rows
  values + object$intercept
}

# The values of a function at new data of its block, which must not have levels
# of factors that it knows nothing of.
block_values <- function(f, block, newdata, name) {
  if (is_factor_variable(block) && is.data.frame(newdata) &&
        ncol(newdata) == 1L) {
    newdata <- newdata[[1L]]
  }
  known <- if (is_factor_variable(block)) {
    stats::setNames(list(block$levels), name)
  } else {
    block$mixed$levels
  }
  new <- variable_newdata(block, newdata, name)
  for (column in names(known)) {
    given <- if (is_factor_variable(block)) newdata else newdata[[column]]
    unseen <- setdiff(as.character(given), known[[column]])
    if (length(unseen)) {
      stop_input("'newdata' must have levels of '", column, "' that the fit ",
                 "has seen, not ", paste0("'", utils::head(unseen, 3L), "'",
                                          collapse = ", "))
    }
  }
  values <- function_at(f, block$sample, new)
  lost <- sum(values == 0)
  if (lost > 0L && any(f$weights != 0) && knows_points(block$sample) &&
        has_unit_diagonal(block$sample$kernel)) {
    warn_kernmean(
      "for ", lost, " of ", length(values), " new points all kernel values ",
      "are 0: they are far from the sample, which says nothing of them"
    )
  }
  stats::setNames(values, new$names)
}

# Side l of a formula at new data.
iv_term <- function(layout, newdata, l, name = "newdata") {
  # Levels may come as characters.
  terms <- as.list(attr(layout, "predvars"))[attr(layout, "groups")[[l]] + 1L]
  bare <- vapply(Filter(is.name, terms), as.character, "")
  text <- Filter(\(column) is.character(newdata[[column]]), bare)
  newdata[text] <- lapply(newdata[text], factor)
  block <- read_term(layout, newdata, l, name)
  if (is.numeric(block) && is.null(dim(block))) {
    group <- attr(layout, "groups")[[l]]
    label <- deparse1(attr(layout, "variables")[[group + 1L]])
    block <- matrix(block, ncol = 1L, dimnames = list(names(block), label))
  }
  block
}

#' @rdname predict.rkhs_iv
#' @export
predict.rkhs_iv_nested <- function(object, newdata, what = NULL, ...) {
  check_dots(...)
  inputs <- c(g = "a", h = "b")
  if (!is.null(what)) what <- check_choice(what, c("g", "h", "both"), "what")
  if (missing(newdata)) {
    wanted <- if (is.null(what) || what == "both") names(inputs) else what
    return(object$fitted.values[, wanted, drop = FALSE])
  }
  if (!is_plain_list(newdata) || !length(newdata) ||
        !all(names(newdata) %in% inputs) || is.null(names(newdata)) ||
        anyDuplicated(names(newdata))) {
    stop_input("'newdata' must be list(a = , b = ), the inputs of g and h, or ",
               "one of them, not ", describe(newdata))
  }
  wanted <- if (is.null(what)) {
    names(inputs)[inputs %in% names(newdata)]
  } else if (what == "both") {
    names(inputs)
  } else {
    what
  }
  lacking <- setdiff(inputs[wanted], names(newdata))
  if (length(lacking)) {
    stop_input("'newdata' must have '", lacking[1L], "' for the values that ",
               "are asked for")
  }
  values <- lapply(stats::setNames(nm = wanted), \(f) {
    name <- inputs[[f]]
    block_values(object$functions[[f]], object$blocks[[name]], newdata[[name]],
                 name) + object$intercept
  })
  if (length(unique(lengths(values))) > 1L) {
    stop_input("'newdata' must have as many rows in 'a' as in 'b', not ",
               paste(lengths(values), collapse = " and "))
  }
  do.call(cbind, values)
}

#' @rdname rkhs_iv
#' @param object A fit.
#' @export
update.rkhs_iv <- function(object, ...) {
  changes <- list(...)
  check_changes(changes)
  layout <- object$terms
  names <- names(object$blocks)
  if ("data" %in% names(changes) && !is.null(layout)) {
    named <- intersect(c("x", "y", "z"), names(changes))
    if (length(named)) {
      stop_input("'", named[1L], "' must not be given with 'data', whose ",
                 "columns the formula names")
    }
    data <- changes$data
    if (!is.list(data)) {
      stop_input("'data' must be a data frame, not ", describe(data))
    }
    changes$data <- NULL
    changes[c("x", "z")] <- lapply(1:2, \(l) iv_term(layout, data, l, "data"))
    y <- eval(attr(layout, "predvars")[[2L]], data, environment(layout))
    changes$y <- stats::setNames(as.vector(y), row.names(data))
  }
  # The same landmarks for the same points; what was centered stays so.
  asked <- object$arguments$landmarks
  same_points <- !any(c(names, "landmarks") %in% names(changes))
  if (same_points) object$arguments["landmarks"] <- list(object$landmarks)
  if (!any(c("intercept", "preset", "w") %in% names(changes)) &&
        any(c("mu", "mu_g") %in% names(changes)) && object$centered) {
    changes$intercept <- TRUE
  }
  rekernel <- changed_kernels(object, changes$kernel)
  arguments <- c(Map(variable_input, object$blocks, rekernel),
                 list(y = object$y), object$arguments)
  if (!"scale" %in% names(changes)) {
    # Other kernels for the points of a gram keep their units.
    kept <- rekernel & vapply(object$blocks, \(b) {
      stores_gram(b$sample) && knows_points(b$sample)
    }, NA)
    if (any(kept)) {
      kernels <- block_kernels(changes$kernel, names)
      own <- !vapply(object$blocks, takes_kernel, NA)
      if (!is_plain_list(changes$kernel)) kernels[own] <- list(NULL)
      kernels[kept] <- Map(\(kernel, b) keep_units(kernel, b$sample),
                           kernels[kept], object$blocks[kept])
      changes$kernel <- kernels
    }
  }
  door <- if (inherits(object, "rkhs_iv_nested")) rkhs_iv_nested else
    rkhs_iv.default
  fit <- do.call(door, merge_changes(arguments, changes), quote = TRUE)
  if (same_points) fit$arguments["landmarks"] <- list(asked)
  if (!any(c("x", "z") %in% names(changes)) || "data" %in% ...names()) {
    fit$terms <- layout
    if (!"data" %in% ...names()) fit$na.action <- object$na.action
  }
  fit
}

# Which blocks get another kernel?
changed_kernels <- function(object, kernel) {
  names <- names(object$blocks)
  given <- if (is_plain_list(kernel)) {
    names %in% names(kernel)
  } else {
    rep(!is.null(kernel), length(names))
  }
  stats::setNames(given & vapply(object$blocks, takes_kernel, NA), names)
}

#' @export
coef.rkhs_iv <- function(object, ...) {
  check_dots(...)
  if (is.null(object$coefficients$g)) {
    stop_input("'object' must not be a fit with random features, whose ",
               "functions have no weights of points; predict() has values")
  }
  if (length(object$coefficients) == 1L) object$coefficients$g else
    object$coefficients
}

#' @export
fitted.rkhs_iv <- function(object, ...) {
  check_dots(...)
  stats::naresid(object$na.action, object$fitted.values)
}

#' @export
residuals.rkhs_iv <- function(object, ...) {
  check_dots(...)
  stats::naresid(object$na.action, object$residuals)
}

#' @export
nobs.rkhs_iv <- function(object, ...) {
  check_dots(...)
  object$n
}

#' @rdname rkhs_iv
#' @param digits Significant digits.
#' @export
print.rkhs_iv <- function(x, digits = digits_shown(), ...) {
  digits <- check_digits(digits)
  number <- \(value) format_number(unname(value), digits)
  nested <- inherits(x, "rkhs_iv_nested")
  say(
    paste0(if (nested) "Nested kernel" else "Kernel", " instrumental variables",
           ", ", c(norm = "RKHS-norm", l2 = "empirical-L2")[[x$penalty]],
           " penalty"),
    if (nested) c("E[y - g(a) | d] = 0", paste0(
      "E[h(b) - ", if (!is.null(x$w)) "w ", "g(a) | c] = 0"
    )) else iv_moment(x),
    paste0(count_of(x$n, "row"), if (length(x$na.action)) paste0(
      " (", length(x$na.action), " with missing values left out)"
    ), iv_rows(x), iv_approximation(x)),
    block_lines(x),
    strwrap(paste0(
      paste(names(x$lambda), "=", number(x$lambda), collapse = ", "), "; ",
      paste(names(x$mu), "=", number(x$mu), collapse = ", "), iv_choice(x)
    ), 80L, exdent = 2L),
    if (!is.null(x$arguments$preset)) preset_line(x$arguments$preset, x$n),
    if (x$centered) {
      paste0("intercept ", number(x$intercept), ", the mean of y")
    } else {
      "no intercept (y is not centered)"
    },
    if (own_instruments(x)) paste("every regressor is an instrument:",
                                  "endogeneity is not accounted for"),
    paste0("r'Pr/n = ", paste(number(x$criterion), collapse = " and ")),
    "no standard errors or tests of weak instruments exist for this estimator"
  )
  invisible(x)
}

iv_moment <- function(x) {
  layout <- x$terms
  if (is.null(layout)) {
    return("E[y - g(x) | z] = 0")
  }
  names <- vapply(as.list(attr(layout, "variables"))[-1L], deparse1, "")
  of <- \(l) paste(names[attr(layout, "groups")[[l]]], collapse = ", ")
  strwrap(paste0("E[", names[1L], " - g(", of(1L), ") | ", of(2L), "] = 0"),
          80L, exdent = 2L)
}

# Are all regressors of a formula among its instruments?
own_instruments <- function(x) {
  groups <- attr(x$terms, "groups")
  !is.null(groups) && all(groups[[1L]] %in% groups[[2L]])
}

iv_rows <- function(x) {
  if (is.null(x$rows) || all(x$rows$d) && all(x$rows$c)) {
    return(NULL)
  }
  paste0(", ", sum(x$rows$d), " of the first moment and ", sum(x$rows$c),
         " of the second")
}

iv_approximation <- function(x) {
  f <- x$functions$g
  if (!is.null(x$arguments$landmarks)) {
    paste0(", ", count_of(length(f$centers), "landmark"))
  } else if (!is.null(x$arguments$features)) {
    paste0(", ", x$arguments$features, " random Fourier features")
  }
}

block_lines <- function(x) {
  unlist(Map(\(block, name) {
    label <- paste0(name, " (", describe_variable(block), ", rank ",
                    x$rank[[name]], ")")
    lines <- variable_lines(block, label)
    if (is.null(lines)) label else lines
  }, x$blocks, names(x$blocks)), use.names = FALSE)
}

iv_choice <- function(x) {
  cv <- x$cv
  if (is.null(cv)) {
    return(NULL)
  }
  last <- cv$chosen[which.max(cv$mu)]
  paste0(" (", nrow(attr(cv, "folds")), "-fold cross-validation, ",
         c(paired = "one paired standard error", "1se" = "one standard error",
           min = "minimum")[[x$rule]],
         if (last) ", the largest value tried", ")")
}

#' @rdname rkhs_iv
#' @export
summary.rkhs_iv <- function(object, ...) {
  check_dots(...)
  residuals <- as.matrix(object$residuals)
  rows <- if (is.null(object$rows)) {
    list(rep(TRUE, object$n))
  } else {
    object$rows
  }
  moments <- data.frame(
    rows = vapply(rows, sum, numeric(1)),
    mean = vapply(seq_along(rows), \(l) mean(residuals[rows[[l]], l]), 0),
    sd = vapply(seq_along(rows), \(l) {
      sqrt(mean(residuals[rows[[l]], l]^2))
    }, 0),
    criterion = unname(object$criterion)
  )
  names(moments)[3:4] <- c("root mean square", "r'Pr/n")
  moments$share <- moments[["r'Pr/n"]] / moments[["root mean square"]]^2
  moments$share[moments[["root mean square"]] == 0] <- 0
  check_result(moments$share, "the share of residuals that instruments explain",
               "'y'")
  names(moments)[5L] <- "r'Pr/r'r"
  row.names(moments) <- if (nrow(moments) > 1L) {
    c("y - g(a)", if (is.null(object$w)) "h(b) - g(a)" else "h(b) - w g(a)")
  } else {
    "y - g(x)"
  }
  structure(list(fit = object, moments = moments),
            class = "summary.rkhs_iv")
}

#' @export
print.summary.rkhs_iv <- function(x, digits = digits_shown(), ...) {
  digits <- check_digits(digits)
  print(x$fit, digits = digits)
  cat("\nResiduals by moment:\n")
  print(x$moments, digits = digits)
  cv <- x$fit$cv
  if (!is.null(cv)) {
    cat("\nHeld-out criterion, ", nrow(cv), " penalties:\n", sep = "")
    around <- which(cv$chosen) + (-2:2)
    shown <- cv[unique(sort(c(which.min(cv$score),
                              around[around >= 1 & around <= nrow(cv)]))), ]
    mark <- ifelse(shown$chosen, "<- chosen", "")
    # The error that the rule goes by.
    error <- if (x$fit$rule == "paired") "se_above" else "se"
    shown <- data.frame(lapply(shown[c("mu", "score", error)], format,
                               digits = digits),
                        " " = mark, check.names = FALSE)
    print(shown, row.names = FALSE, right = TRUE)
  }
  invisible(x)
}

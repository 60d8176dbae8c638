# Methods of smm.

#' Classes, values and decision values of new bags
#'
#' What a support measure machine, or a ridge regression on bags, says of new
#' bags.
#'
#' @param object A fit of [smm()].
#' @param newdata New bags, as for `predict()` of [bag_gram()]: a list, points
#'   with `id`, or a data frame with the column that tells them apart; for a fit
#'   on a `bag_gram`, a matrix of its kernel values too. Without it, the bags of
#'   the fit.
#' @param type `"class"`: of a classification, or `normal` and `novel`;
#'   `"value"`: of a regression; `"decision"`: the decision values f. `NULL` for
#'   the first that there is.
#' @param ... Must be empty.
#' @param id The bag of each row of `newdata`.
#' @param decision Decision values of bags, the larger the more normal. (Those
#'   of two classes are larger for the second level: the anomalous class must be
#'   the first.)
#' @param anomalous Is each of them anomalous? Logical values, or numbers 0 and
#'   1.
#' @return `predict()`: a factor or numbers, named by the bags. Decision values:
#'   of two classes, of novelty and of regression a named vector; of more
#'   classes a matrix with a column for each pair, `b/a`, positive for b. For
#'   two classes they are positive for the second level. Those of a support
#'   vector regression are in standard deviations of y from its mean. A bag is
#'   novel where f is below -0.001, the tolerance of the solver: bags on the
#'   border have values of 0 to that.
#'
#'   `smm_auc()`: the area under the ROC curve, one number: the share of pairs
#'   of an anomalous and a normal bag in which the anomalous one has the smaller
#'   decision value, ties counted as one half.
#' @seealso [smm()]
#' @examplesIf requireNamespace("kernlab", quietly = TRUE)
#' # Groups of flowers; a strange one is mixed of two species
#' set.seed(1)
#' x <- as.matrix(iris[1:4])
#' group <- \(rows) x[sample(rows, 8), ]
#' normal <- replicate(30, group(51:100), simplify = FALSE)
#' fit <- smm(normal[1:20], level2 = "rbf", nu = 0.1)
#' new <- c(normal[21:30], replicate(10, group(51:150), simplify = FALSE))
#' names(new) <- paste0(rep(c("plain", "mixed"), each = 10), 1:10)
#' predict(fit, new)
#' smm_auc(predict(fit, new, "decision"), rep(c(FALSE, TRUE), each = 10))
#' @export
predict.bag_smm <- function(object, newdata, type = NULL, ..., id = NULL) {
  check_dots(...)
  own <- if (object$type %in% c("regression", "ridge")) "value" else "class"
  type <- if (is.null(type)) own else
    check_choice(type, c("class", "value", "decision"), "type")
  if (type != "decision" && type != own) {
    stop_input("'type' must be \"", own, "\" or \"decision\" for a fit of ",
               "type \"", object$type, "\", not \"", type, "\"")
  }
  decision <- if (missing(newdata)) {
    object$decision
  } else {
    smm_decision(object, newdata, id)
  }
  if (type == "decision") {
    if (ncol(decision) > 1L) {
      return(decision)
    }
    return(stats::setNames(decision[, 1L], rownames(decision)))
  }
  smm_answer(object, decision)
}

smm_decision <- function(object, newdata, id = NULL) {
  values <- if (is.null(id)) {
    read_kernel_values(object$gram, newdata)$values
  } else {
    predict(object$gram, newdata, id = id)
  }
  machine_values(object, values)
}

#' @rdname predict.bag_smm
#' @export
smm_auc <- function(decision, anomalous) {
  decision <- drop(decision)
  if (!is.numeric(decision) || length(dim(decision)) > 0L ||
        !length(decision)) {
    stop_input("'decision' must be a vector of decision values, not ",
               describe(decision))
  }
  check_finite(decision, "decision")
  ok <- (is.logical(anomalous) || is.numeric(anomalous)) &&
    length(anomalous) == length(decision) && !anyNA(anomalous) &&
    all(anomalous %in% 0:1)
  if (!ok) {
    stop_input("'anomalous' must be TRUE or FALSE for each of the ",
               count_of(length(decision), "decision value"), ", not ",
               describe(anomalous))
  }
  anomalous <- as.logical(anomalous)
  strange <- sum(anomalous)
  usual <- sum(!anomalous)
  if (strange == 0L || usual == 0L) {
    stop_input("'anomalous' must have anomalous and normal bags, not all ",
               if (usual) "FALSE" else "TRUE")
  }
  above <- sum(rank(-decision)[anomalous]) - strange * (strange + 1) / 2
  above / strange / usual
}

smm_title <- c(
  classification = "Support measure machine, classification",
  regression = "Support measure machine, regression",
  novelty = "One-class support measure machine",
  ridge = "Kernel ridge regression on distributions"
)

#' @export
print.bag_smm <- function(x, digits = digits_shown(), ...) {
  digits <- check_digits(digits)
  say(smm_title[[x$type]], bag_lines(x$gram, digits),
      describe_machine(x, digits), describe_losses(x, digits))
  invisible(x)
}

describe_machine <- function(object, digits) {
  number <- \(x) format(x, digits = digits)
  name <- smm_parameters[[object$type]][1L]
  how <- if (length(object$arguments[[name]]) == 1L) {
    " (given)"
  } else if (object$type == "ridge") {
    " (exact leave-one-out)"
  } else if (!length(object$folds)) {
    NULL
  } else {
    paste0(" (", max(object$folds), "-fold cross-validation)")
  }
  par <- switch(object$type,
    classification = paste("cost", number(object$cost)),
    regression = paste0("cost ", number(object$cost), ", epsilon ",
                        number(object$epsilon)),
    novelty = paste("nu", number(object$nu)),
    ridge = paste("ridge", number(object$ridge))
  )
  paste0(par, how)
}

describe_losses <- function(object, digits) {
  number <- \(x) format(x, digits = digits)
  best <- object$cv[object$cv$chosen, ]
  support <- paste(length(object$support), "of", object$n,
                   "bags are support bags")
  y <- object$y
  switch(object$type,
    classification = c(
      paste0("classes ", shorten(paste0("'", object$levels, "'"), 6L), "; ",
             support),
      paste0("wrong in the fit: ", number(mean(object$fitted != y)),
             if (!is.null(best)) paste0(", cross-validated: ",
                                        number(best$score)))
    ),
    regression = c(
      support,
      paste0("root mean squared error in the fit: ",
             number(sqrt(mean((object$fitted - y)^2))),
             if (!is.null(best)) paste0(
               ", cross-validated: ",
               number(object$problem$unit * sqrt(best$score))
             ))
    ),
    novelty = c(
      support,
      paste0("refused in the fit: ", number(mean(object$fitted == "novel")),
             if (!is.null(best)) paste0(", cross-validated: ",
                                        number(best$score)))
    ),
    ridge = c(
      paste0("root mean squared error in the fit: ",
             number(sqrt(mean((object$fitted - y)^2))), ", leave-one-out: ",
             number(sqrt(mean((object$loo - y)^2)))),
      paste("standard deviation of y:", number(stats::sd(y)))
    )
  )
}

#' @export
summary.bag_smm <- function(object, ...) {
  check_dots(...)
  structure(list(
    fit = object, cv = object$cv,
    confusion = if (object$type == "classification") {
      table(predicted = object$fitted, true = object$y)
    },
    support = if (object$type == "classification") {
      table(object$y[object$support])
    }
  ), class = "summary.bag_smm")
}

#' @export
print.summary.bag_smm <- function(x, digits = digits_shown(), ...) {
  digits <- check_digits(digits)
  print(x$fit, digits = digits)
  if (!is.null(x$confusion)) {
    cat("\nClasses of the bags in the fit:\n")
    print(x$confusion)
    cat("\nSupport bags by class:\n")
    print(c(x$support))
  }
  if (!is.null(x$cv)) {
    cat("\nWhat was tried:\n")
    shown <- x$cv
    for (name in intersect(c("cost", "nu"), names(shown))) {
      shown[[name]] <- format_number(shown[[name]], digits)
    }
    shown$chosen <- ifelse(shown$chosen, "<-", "")
    names(shown)[names(shown) == "chosen"] <- ""
    print(shown, digits = digits, row.names = FALSE)
  }
  invisible(x)
}

#' @export
fitted.bag_smm <- function(object, ...) {
  check_dots(...)
  object$fitted
}

#' @export
residuals.bag_smm <- function(object, ...) {
  check_dots(...)
  if (!is.numeric(object$y)) {
    stop_input("'object' must be a regression to have residuals, not of type ",
               "\"", object$type, "\"")
  }
  object$y - object$fitted
}

#' @export
coef.bag_smm <- function(object, ...) {
  check_dots(...)
  object$coefficients
}

#' @export
nobs.bag_smm <- function(object, ...) object$n

#' @export
update.bag_smm <- function(object, ...) {
  changes <- list(...)
  check_changes(changes)
  g <- object$gram
  own <- names(changes) %in% names(formals(smm.default))
  arguments <- object$arguments
  # As for bag_gram(): the width of one level 2 is not that of another.
  if ("level2" %in% names(changes)) arguments["bandwidth2"] <- list(NULL)
  arguments[names(changes)[own]] <- changes[own]
  same_bags <- !any(c("bags", "id") %in% names(changes))
  if (same_bags) {
    if (!"y" %in% names(changes)) arguments["y"] <- list(object$y)
    # The same folds, to compare by.
    same_y <- !any(c("y", "type") %in% names(changes))
    if (!"folds" %in% names(changes) && same_y && !is.null(object$folds)) {
      arguments$folds <- unname(object$folds)
    }
  }
  if ("type" %in% names(changes)) {
    # Those of another type go with it.
    gone <- setdiff(c("cost", "nu", "epsilon", "ridge"), names(changes))
    arguments[gone] <- NULL
  }
  brought <- object$on_gram || stores_gram(g$embedding$sample)
  others <- changes[!own | names(changes) == "bags"]
  plan <- if (same_bags && object$on_gram && !length(others)) {
    list(bags = g)
  } else if (same_bags) {
    # The kernel is chosen again, unless it came with the bags.
    again_bags(g, changed_bags(g, others),
               c(names(others), if (!brought) "kernel"))
  } else {
    changed_bags(g, others)
  }
  plan[names(arguments)] <- NULL
  fit <- without_warning("units", do.call(
    smm.default, Filter(Negate(is.null), c(plan, arguments)), quote = TRUE
  ))
  if (same_bags) {
    keep_layout(fit$gram, g)
    fit["terms"] <- list(object$terms)
  }
  fit
}

# Bags and the machines on them as data frames, see tidy.R.

# --- bag_gram() --------------------------------------------------------------

#' @exportS3Method generics::tidy
tidy.bag_gram <- function(x, ...) {
  check_dots(...)
  data.frame(bag = names(x$sizes), x$shrinkage, row.names = NULL,
             check.names = FALSE)
}

#' @exportS3Method generics::glance
glance.bag_gram <- function(x, ...) {
  check_dots(...)
  data.frame(nobs = length(x$sizes), bag_columns(x))
}

#' @rdname tidy.kme
#' @export
as.data.frame.bag_gram <- function(x, row.names = NULL, optional = FALSE, ...) {
  check_dots(...)
  with_row_names(tidy.bag_gram(x), row.names)
}

# The columns of glance() that say how bags were compared.
bag_columns <- function(g) {
  level <- g$level2
  data.frame(
    points = sum(g$sizes), estimator = g$estimator$name,
    target = one_word(g$target), level2 = level$type,
    bandwidth2 = one_number(level$bandwidth),
    kernel_columns(g$embedding$sample$kernel)
  )
}

# --- smm() -------------------------------------------------------------------

#' @exportS3Method generics::tidy
tidy.bag_smm <- function(x, matrix = c("coefficients", "cv"), ...) {
  check_dots(...)
  if (check_choice(matrix, c("coefficients", "cv"), "matrix") == "cv") {
    if (is.null(x$cv)) {
      stop_input("'matrix' must not be \"cv\" unless there were several ",
                 "values to choose among")
    }
    return(x$cv)
  }
  machines <- colnames(x$coefficients)
  if (is.null(machines)) machines <- NA_character_
  pieces <- lapply(seq_along(machines), \(p) {
    weight <- x$coefficients[, p]
    used <- weight != 0
    data.frame(machine = machines[p],
               term = c("(Intercept)", rownames(x$coefficients)[used]),
               estimate = c(x$intercept[p], weight[used]), row.names = NULL)
  })
  do.call(rbind, pieces)
}

#' @exportS3Method generics::glance
glance.bag_smm <- function(x, ...) {
  check_dots(...)
  data.frame(
    nobs = x$n, type = x$type,
    classes = if (x$type == "classification") length(x$levels) else NA_integer_,
    support = length(x$support), cost = one_number(x$cost),
    nu = one_number(x$nu), epsilon = one_number(x$epsilon),
    ridge = one_number(x$ridge), error = fit_error(x),
    score = one_number(x$cv$score[x$cv$chosen]),
    folds = if (is.null(x$folds)) NA_integer_ else max(x$folds),
    bag_columns(x$gram)
  )
}

# What print() says of the bags of the fit: the share of wrong classes or of
# refused bags, the root mean squared error.
fit_error <- function(object) {
  switch(object$type,
    classification = mean(object$fitted != object$y),
    novelty = mean(object$fitted == "novel"),
    sqrt(mean((object$fitted - object$y)^2))
  )
}

#' @exportS3Method generics::augment
augment.bag_smm <- function(x, data = NULL, ..., newdata = NULL, id = NULL) {
  check_dots(...)
  if (is.null(newdata)) {
    if (!is.null(id)) {
      stop_input("'id' must be NULL unless 'newdata' is given")
    }
    g <- x$gram
    frame <- if (is.null(data)) {
      own <- data.frame(bag = names(g$sizes), n = unname(g$sizes))
      own$y <- unname(x$y)
      own
    } else {
      check_sample_rows(data, x$n)
    }
    added <- answer_columns(x, x$fitted, x$decision)
    if (is.numeric(x$y)) added$.resid <- unname(x$y - x$fitted)
    if (!is.null(x$loo)) added$.loo <- unname(x$loo)
    added$.support <- names(g$sizes) %in% x$support
    return(add_columns(frame, added))
  }
  if (!is.null(data)) {
    stop_input("'data' must be NULL where 'newdata' is given")
  }
  decision <- smm_decision(x, newdata, id)
  bags <- rownames(decision)
  if (is.null(bags)) bags <- as.character(seq_len(nrow(decision)))
  data.frame(bag = bags,
             answer_columns(x, smm_answer(x, decision), decision),
             check.names = FALSE)
}

# What a machine says of bags: `.class` or `.fitted`, and the decision values,
# those of several machines with their names.
answer_columns <- function(object, answer, decision) {
  values <- is.numeric(answer)
  found <- data.frame(unname(answer))
  names(found) <- if (values) ".fitted" else ".class"
  if (values) {
    return(found)
  }
  decision <- unname_rows(decision)
  if (ncol(decision) == 1L) {
    found$.decision <- decision[, 1L]
    return(found)
  }
  data.frame(found, prefixed(decision, ".decision_"), check.names = FALSE)
}

unname_rows <- function(x) {
  rownames(x) <- NULL
  x
}

#' @rdname tidy.kme
#' @export
as.data.frame.bag_smm <- function(x, row.names = NULL, optional = FALSE, ...) {
  check_dots(...)
  with_row_names(augment.bag_smm(x), row.names)
}

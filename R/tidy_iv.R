# Instrumental-variable fits as data frames, see tidy.R.

#' @exportS3Method generics::tidy
tidy.rkhs_iv <- function(x, matrix = c("moments", "weights", "cv"), ...) {
  check_dots(...)
  switch(check_choice(matrix, c("moments", "weights", "cv"), "matrix"),
    moments = moment_frame(x), weights = weight_frame(x), cv = cv_frame(x)
  )
}

moment_frame <- function(x) {
  table <- summary(x)$moments
  data.frame(moment = row.names(table), nobs = table$rows, mean = table$mean,
             rms = table[["root mean square"]], criterion = table[["r'Pr/n"]],
             share = table[["r'Pr/r'r"]], lambda = moment_lambda(x),
             mu = unname(x$mu))
}

# The ridges of the first and the second moment.
moment_lambda <- function(x) {
  unname(if (length(x$lambda) > 1L) x$lambda[c("lambda_d", "lambda_c")] else
    x$lambda)
}

weight_frame <- function(x) {
  weights <- coef(x)
  if (!is.list(weights)) weights <- list(g = weights)
  rows <- rownames(as.matrix(x$fitted.values))
  if (is.null(rows)) rows <- seq_len(x$n)
  data.frame(term = rep(names(weights), each = x$n),
             row = rep(rows, length(weights)),
             weight = unlist(weights, use.names = FALSE))
}

cv_frame <- function(x) {
  if (is.null(x$cv)) {
    stop_input("'matrix' must not be \"cv\" unless the penalty was chosen by ",
               "cross-validation")
  }
  data.frame(x$cv)
}

#' @exportS3Method generics::glance
glance.rkhs_iv <- function(x, ...) {
  check_dots(...)
  number <- \(values, i) unname(values[i])
  lambda <- moment_lambda(x)
  used <- Filter(\(name) !is.null(x$arguments[[name]]),
                 c("landmarks", "features"))
  data.frame(
    nobs = x$n, penalty = x$penalty, lambda = number(lambda, 1L),
    lambda_c = number(lambda, 2L), mu = number(x$mu, 1L),
    mu_h = number(x$mu, 2L), criterion = number(x$criterion, 1L),
    criterion_c = number(x$criterion, 2L), rank = number(x$rank, 1L),
    rank_instruments = number(x$rank, length(x$rank)),
    approximation = c(used, "none")[[1L]], intercept = x$intercept,
    score = one_number(x$cv$score[x$cv$chosen]),
    folds = if (is.null(x$cv)) NA_integer_ else nrow(attr(x$cv, "folds")),
    border = !is.null(attr(x$cv, "border")),
    kernel_columns(x$kernels[[1L]])
  )
}

#' @exportS3Method generics::augment
augment.rkhs_iv <- function(x, data = NULL, ..., newdata = NULL) {
  check_dots(...)
  if (is.null(newdata)) {
    frame <- if (is.null(data)) iv_frame(x) else check_sample_rows(data, x$n)
    return(add_columns(frame, iv_columns(x$fitted.values, x$residuals)))
  }
  if (!is.null(data)) {
    stop_input("'data' must be NULL where 'newdata' is given")
  }
  found <- predict(x, newdata)
  parts <- if (is.matrix(found)) newdata else list(x = newdata)
  shown <- block_has_points(x)[names(parts)]
  frame <- bind_frames(Map(part_frame, parts, names(parts))[shown],
                       NROW(found), rownames(as.matrix(found)))
  add_columns(frame, iv_columns(found))
}

#' @rdname tidy.kme
#' @export
as.data.frame.rkhs_iv <- function(x, row.names = NULL, optional = FALSE, ...) {
  check_dots(...)
  with_row_names(augment.rkhs_iv(x), row.names)
}

iv_columns <- function(fitted, residuals = NULL) {
  if (!is.matrix(fitted)) {
    return(data.frame(cbind(.fitted = fitted, .resid = residuals),
                      row.names = NULL))
  }
  rownames(fitted) <- rownames(residuals) <- NULL
  colnames(fitted) <- paste0(".fitted_", colnames(fitted))
  if (!is.null(residuals)) {
    colnames(residuals) <- paste0(".resid_", colnames(residuals))
  }
  data.frame(cbind(fitted, residuals))
}

# --- The data of a fit -------------------------------------------------------

block_has_points <- function(x) {
  vapply(x$blocks, \(block) knows_points(block$sample), NA)
}

# The outcome and the columns of all blocks.
iv_frame <- function(x) {
  shown <- names(x$blocks)[block_has_points(x)]
  outcome <- iv_label(x, "y")
  y <- stats::setNames(list2DF(list(unname(x$y))),
                       if (is.null(outcome)) "y" else outcome)
  bind_frames(c(list(y), lapply(stats::setNames(nm = shown), \(name) {
    block_frame(x, name)
  })), x$n, rownames(as.matrix(x$fitted.values)))
}

# One data frame of several. What two of them share is there once, other columns
# of the same name have that of their frame before it.
bind_frames <- function(frames, n, rows) {
  whole <- blank_frame(n, rows)
  for (l in seq_along(frames)) {
    for (name in names(frames[[l]])) {
      column <- frames[[l]][[name]]
      if (!name %in% names(whole)) {
        whole[[name]] <- column
      } else if (!identical(whole[[name]], column)) {
        whole[[paste0(names(frames)[l], ".", name)]] <- column
      }
    }
  }
  whole
}

# New points of a block.
part_frame <- function(part, name) {
  if (is.data.frame(part)) {
    return(part)
  }
  if (is.matrix(part)) {
    return(name_columns(part, name))
  }
  stats::setNames(list2DF(list(unname(part))), name)
}

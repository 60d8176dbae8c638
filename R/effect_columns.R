# Which columns matter for an effect: the kernel of its regressions, chosen by
# left-out losses.

# The choice of choose_kernel() for the regressions of an effect, or NULL if
# there is nothing to choose: a kernel that was given or that came with the
# target, a single column, columns whose axes are turned.
effect_choice <- function(space, asked, treat, y, weights, clusters) {
  sample <- space$sample
  if (!asked$learn || !is.null(asked$kernel) || ncol(sample$x) < 2L ||
        inherits(asked$target, "kme") || identical(asked$scale, "whiten")) {
    return(NULL)
  }
  n <- sample$n
  rows <- if (is.factor(treat)) learning_rows(n, treat) else learning_rows(n)
  pool <- if (!is.null(space$pool)) {
    scale_points(sample$kernel, space$pool)
  }
  others <- learning_rows(NROW(pool))
  points <- points_sample(rbind(take_rows(sample$x, rows),
                                take_rows(pool, others)), sample$kernel)
  responses <- effect_responses(y[rows], treat[rows], weights[rows])
  weights <- c(weights[rows], rep(1, length(others)))
  # The rows of a target are a response, too: their odds are a part of alpha.
  if (length(others)) {
    here <- rep(0:1, c(length(rows), length(others)))
    responses <- c(responses, list(new_response(
      seq_along(here), standard_response(here, weights)
    )))
  }
  unit <- (clusters %||% seq_len(n))[rows]
  choice <- choose_kernel(points, responses, weights,
                          c(unit, max(unit) + seq_along(others)),
                          !is.null(asked$features))
  c(choice, units = length(unique(unit)))
}

# The outcome in each arm, in units of its standard deviation within arms, and
# the treatment.
effect_responses <- function(y, treat, weights = rep(1, length(y))) {
  if (!is.factor(treat)) {
    return(list(
      new_response(seq_along(y), standard_response(y, weights), outcome = TRUE),
      new_response(seq_along(y), standard_response(treat, weights),
                   columns = -1L)
    ))
  }
  indicators <- outer(as.character(treat), levels(treat), `==`) + 0
  arms <- colSums(weights * indicators)
  means <- colSums(weights * indicators * y) / arms
  within <- in_deviations(y - means[treat], weights)
  # One of two levels says all.
  told <- if (length(arms) == 2L) 2L else seq_along(arms)
  c(Map(\(level, arm) {
    rows <- which(treat == level)
    new_response(rows, within[rows], arm / sum(arms), outcome = TRUE)
  }, levels(treat), arms, USE.NAMES = FALSE), lapply(told, \(j) {
    new_response(seq_along(y), standard_response(indicators[, j], weights),
                 1 / length(told))
  }))
}

# The estimates with the best of some kernels whose standard errors are not
# `most_error` times those with the last one, the isotropic kernel. A narrow
# kernel may have a smaller loss where it does not reach the other arm. The
# warnings are those of the kernel that is taken. `columns` says which that is.
best_estimate <- function(estimate, space, choice) {
  kernels <- choice$kernels
  # All kernels have the same random landmarks or features.
  seed <- get0(".Random.seed", globalenv(), inherits = FALSE)
  try_kernel <- \(kernel) {
    if (!is.null(seed)) assign(".Random.seed", seed, globalenv())
    space$sample <- with_kernel(space$sample, kernel)
    hold_warnings(estimate(space))
  }
  errors <- \(found) sqrt(diag(found$value$vcov))
  last <- kernels[[length(kernels)]]
  isotropic <- try_kernel(last)
  for (at in seq_along(kernels)) {
    found <- if (at == length(kernels)) isotropic else
      try_kernel(kernels[[at]])
    if (isTRUE(all(errors(found) <= most_error * errors(isotropic)))) break
  }
  for (held in found$warnings) warning(held)
  c(found$value, list(columns = effect_columns(
    choice, names(kernels)[at], found$value, list(
      coefficients = isotropic$value$coefficients, errors = errors(isotropic)
    ), space
  )))
}

most_error <- 1.5

# The part of a fit on the columns of its kernel.
#   kernel     the name of the kernel that was taken
#   losses     a row for each kernel: its left-out loss, and by how many
#              standard errors that is below the first one's
#   relevance  a number for each column, at most 1
#   isotropic  the estimates and errors with the isotropic kernel
effect_columns <- function(choice, taken, found, isotropic, space) {
  relevance <- stats::setNames(choice$slopes, c(if (space$dose) "treat",
                                                colnames(space$columns)))
  warn_columns(found, isotropic, choice$units / length(relevance))
  list(kernel = taken, losses = choice$table, relevance = relevance,
       isotropic = isotropic)
}

# Warns if the choice of the kernel moves an estimate, and there are few rows,
# or clusters, for each column from which it is made.
warn_columns <- function(found, isotropic, rows) {
  moved <- abs(found$coefficients - isotropic$coefficients) /
    sqrt(diag(found$vcov))
  if (rows <= fewest_rows_of_column && any(moved > small_move, na.rm = TRUE)) {
    at <- which.max(moved)
    warn_kernmean(
      "the kernel is chosen from ", format_number(rows, 2L), " rows for each ",
      "column, and moves the estimate from ",
      format_number(isotropic$coefficients[[at]], 3L), " to ",
      format_number(found$coefficients[[at]], 3L), "; its interval may be too ",
      "short", kind = "columns"
    )
  }
}

fewest_rows_of_column <- 15
small_move <- 0.25

# --- Prints and pictures -----------------------------------------------------

# The lines of print() on the kernel that was chosen.
columns_lines <- function(x) {
  taken <- x$columns$kernel
  losses <- x$columns$losses
  if (taken == "isotropic") {
    better <- losses$gain > least_gain & losses$loss < losses$loss[1L]
    return(c(kernel_lines(x$kernel), if (any(better)) {
      paste("kernels that predict better have standard errors more than",
            most_error, "times as large")
    } else {
      paste0("predict no better: ", toString(losses$kernel[-1L]))
    }))
  }
  loss <- format_number(losses$loss[match(c(taken, "isotropic"),
                                          losses$kernel)], 3L)
  strwrap(c(
    toString(c(kernel_words[[taken]], describe_scaling(x$kernel))),
    paste0("left-out loss ", loss[1L], " of the variance, with one bandwidth ",
           loss[2L]),
    if (startsWith(taken, "learned")) {
      relevant_words(column_relevance(x))
    }
  ), 80L, exdent = 2L)
}

# The relevances, largest first, with the user's name of a numeric treatment.
column_relevance <- function(x) {
  relevance <- x$columns$relevance
  if (is.numeric(x$treat)) names(relevance)[1L] <- x$names[2L]
  sort(relevance, decreasing = TRUE)
}

kernel_words <- c(
  learned = "Gaussian kernel with learned widths",
  additive = "sum of a Gaussian kernel of each column (0.9) and of all (0.1)",
  "learned additive" = paste("sum of a Gaussian kernel of each column (0.9)",
                              "and of all (0.1) with learned weights")
)

# The estimates with one bandwidth, where another kernel was taken.
isotropic_lines <- function(x, number) {
  plain <- x$columns$isotropic
  if (!is.null(plain) && x$columns$kernel != "isotropic") {
    strwrap(paste0("with one bandwidth for all columns: ", paste0(
      if (length(x$coefficients) > 1L) paste0(names(x$coefficients), " "),
      number(plain$coefficients), " (", number(plain$errors), ")",
      collapse = ", "
    )), 80L, exdent = 2L)
  }
}

most_columns <- 25L

# The picture of the relevance of each column, or of the most relevant ones.
picture_columns <- function(x) {
  relevance <- utils::head(column_relevance(x), most_columns)
  picture_lines(
    "Relevance of columns",
    "root mean squared derivative, relative to the largest",
    names(relevance), 0, unname(relevance), \(at) list(
      points_layer(cbind(unname(relevance), at), main = TRUE)
    ), data.frame(column = names(relevance), relevance = unname(relevance)),
    xlim = c(0, 1), col = level_palette[1L], lwd = 2
  )
}

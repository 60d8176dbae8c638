# Which columns matter: the widths of Gaussian kernels of the regressors and of
# the instruments, learned where both have exogenous columns.

# Returns the task with learned kernels in its blocks x and z, unless the user
# gave a kernel or left-out losses favor one bandwidth. `columns` has a list for
# each block whose kernel was chosen:
#   kernel     "learned" or "isotropic"
#   losses     a row for each kernel, see choose_kernel()
#   relevance  a number for each column, at most 1
learn_kernels <- function(task) {
  shared <- exogenous_columns(task$blocks)
  n <- length(task$y)
  rows <- learning_rows(n)
  unit <- as.integer(task$clusters %||% seq_len(n))[rows]
  if (!task$control$learn || is.null(shared) ||
        length(unique(unit)) < fewest_units) {
    return(task)
  }
  weights <- task$weights[rows]
  y <- stats::lm.wfit(task$design, task$y, task$weights)$residuals
  y[abs(y) <= n * .Machine$double.eps * max(abs(task$y))] <- 0
  responses <- list(outcome_response(standard_response(y[rows], weights)))
  for (name in c("x", "z")) {
    block <- task$blocks[[name]]
    points <- points_sample(take_rows(block$sample$x, rows),
                            block$sample$kernel)
    if (is_open_block(block)) {
      found <- learned_block(points, responses, weights, unit,
                             shared$own[[name]], name == "x")
      points <- with_kernel(points, found$kernel)
      task$blocks[[name]]$sample <- with_kernel(block$sample, found$kernel)
      names(found$columns$relevance) <- names(block_columns(block, name))
      task$columns[[name]] <- found$columns
    }
    # The instruments are to predict the features of x, too.
    if (name == "x") {
      responses[[2L]] <- outcome_response(
        principal_features(points, weights, unit)
      )
    }
  }
  task
}

# Fewer rows, or clusters, do not tell by how much losses differ.
fewest_units <- 50L

outcome_response <- \(y) new_response(seq_len(NROW(y)), y, outcome = TRUE)

# Has the block several numeric columns, and did the user leave its kernel open?
is_open_block <- function(block) {
  isTRUE(block$free) && takes_kernel(block) && ncol(block$sample$x) > 1L &&
    !identical(block$scale, "whiten")
}

# Chooses the kernel of a block: the one that it has, or a Gaussian kernel with
# learned widths. No column has more weight than those that are the block's
# `own`. Each of them has this weight if they are endogenous: what they tell may
# be hidden by the errors of y. Of instruments it is the strongest, whatever
# little it tells.
learned_block <- function(points, responses, weights, unit, own, endogenous) {
  x <- points$x
  same <- with_kernel(points, weighted_kernel(x, rep(1, ncol(x))))
  found <- choose_kernel(same, responses, weights, unit, gaussian = TRUE)
  name <- names(found$kernels)[1L]
  kernel <- points$kernel
  if (name == "learned") {
    width <- found$kernels$learned$bandwidth
    w <- min(width) / width
    w[own] <- if (endogenous) 1 else w[own] / max(w[own], 0)
    kernel <- weighted_kernel(x, w)
    # The median distance is the bandwidth of these blocks; smoothers have
    # twice that.
    kernel$bandwidth <- kernel$bandwidth / 2
    kernel$rule <- "learned"
  }
  list(kernel = kernel, columns = list(
    kernel = name, losses = found$table, relevance = found$slopes
  ))
}

# The line of print() on the columns of a block.
learned_line <- function(found) {
  if (identical(found$kernel, "learned")) {
    strwrap(relevant_words(found$relevance), 80L, indent = 2L, exdent = 4L)
  }
}

# The shelf iv_: instrumental variables.
#
# The task of an instrumental-variable fit: what is asked for, and what the
# steps of iv_fit.R have found so far.

# A task has the class iv_classic (the estimators as published) or iv_weak (with
# the correction of iv_weak.R). A request sets
#   called     the user's names of the blocks a, d, and in nested fits b, c
#   blocks     the variables, by the user's names
#   y, w       the outcome, and the multiplier of a nested fit (NULL: 1)
#   rows       the rows of the moments d and c, logical vectors
#   penalty    "norm" or "l2"
#   lambda     the ridges of the instruments d and c: a number or "gcv"; NA
#              where a preset has the rule
#   mu         the penalties to choose among, or NULL for a grid
#   ratio      mu_h/mu_g; NULL is the ratio of the traces
#   control    the settings of iv_control()
#   preset     the numbers of the authors' rules, or NULL
#   center     is the mean of y taken out?
#   in_blocks  are folds of rows next to each other?
#   drawn      how many landmarks were drawn; NULL where their rows were given
#   outcome, arguments   y and the request as the fit stores them
# and with_design() for the method "weak"
#   design     1 and the controls, see read_design()
#   straight   the linear columns of the learner, see straight_columns()
#   weights    of rows, with mean 1
#   clusters   of rows, or NULL
#   columns    what learn_kernels() found, if it looked for kernels
#   correct, linear, keep   alpha, the scale of the linear columns and the share
#              of theta that is kept; NULL by the strength of the instruments
# The steps of a fit add
#   maps       the feature map of each block
#   whole      the moments of all rows, see row_moments()
#   parts      those of cells of rows, which the method "weak" keeps
#   first_stage   for each ridge that was chosen the scores of first_stage()
#   given      functions of exogenous columns in the design, see add_given()
#   apart      the task that has these functions where this one does not
#   partial    the coefficients of the features on the design, by block
#   strength   see new_strength()
#   unit       tr K/n of the learner
new_iv_task <- function(method, called, blocks, y, rows, penalty, lambda,
                        control, preset = NULL, mu = NULL, ratio = 1, w = NULL,
                        center = FALSE, in_blocks = FALSE, drawn = NULL,
                        outcome = NULL, arguments = NULL) {
  structure(list(
    called = called, blocks = blocks, y = y, w = w, rows = rows,
    penalty = penalty, lambda = lambda, mu = mu, ratio = ratio,
    control = control, preset = preset, center = center, in_blocks = in_blocks,
    drawn = drawn, outcome = outcome, arguments = arguments,
    straight = matrix(0, length(y), 0L)
  ), class = paste0("iv_", method))
}

is_nested <- \(task) "b" %in% names(task$called)
is_norm <- \(task) task$penalty == "norm"

preset_delta <- \(preset, n) preset$delta_scale * n^-preset$delta_exp

# The weights of rows i.
row_weights <- \(task, i) if (is.null(task$weights)) rep(1L, length(i)) else
  task$weights[i]

# The most features of a block.
map_width <- \(task) max(vapply(task$maps, `[[`, 1, "r"))

# tr K of a block, which is n for kernels with k(x, x) = 1.
block_trace <- \(task, of) sum(sample_diagonal(task$maps[[of]]$sample))

# Penalties in units of the matrix grow with the number of rows. For n rows this
# returns the ridge of a moment, `lambda`; the factor of values of the grid,
# which are for all rows, or of an alpha_scale, `mu`; and the factor by which
# the authors multiply the criterion, `score`.
penalty_rule <- function(task, n, of = "d") {
  norm <- is_norm(task)
  if (is.null(task$preset)) {
    return(list(lambda = task$lambda[[of]] * n / sum(task$rows[[of]]),
                mu = if (norm) n / length(task$y) else 1, score = 1))
  }
  delta <- preset_delta(task$preset, n)
  first <- norm && !is_nested(task)
  score <- if (first) 2 * n * delta^2 else 1
  list(lambda = if (first) n * delta^2 else as.double(norm),
       mu = delta^4 / score, score = score)
}

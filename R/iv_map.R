# Feature maps of the blocks of an instrumental-variable fit.

# Makes the maps of the blocks of a task, by the names that it has for them.
make_maps <- function(task, blocks = task$blocks) {
  stats::setNames(Map(\(block, of, name) {
    # Without a ridge, instruments act by a projection; if points come in
    # groups, it is the projection on the groups.
    grouped <- identical(task$lambda[[of]], 0)
    block_map(block, name, task$control, grouped)
  }, blocks[task$called], names(task$called), task$called), names(task$called))
}

block_map <- function(block, name, control, grouped) {
  sample <- block$sample
  if (length(c(control$landmarks, control$features)) &&
        is_factor_variable(block)) {
    # A factor has no need of approximation: its indicators are its features,
    # and the first point of each level stands for it.
    return(new_map("indicator", sample, ncol(sample$x), centers = match(
      seq_len(ncol(sample$x)), max.col(sample$x, "first")
    )))
  }
  if (!is.null(control$landmarks)) {
    return(landmark_map(sample, control$landmarks, name))
  }
  if (!is.null(control$features)) {
    return(fourier_map(sample, control$features, name))
  }
  groups <- if (grouped) equal_points(sample)
  # The indicators of the groups span the same functions as any kernel that
  # tells points apart.
  if (is.null(groups)) exact_map(sample, name) else
    new_map("group", sample, max(groups), groups = groups)
}

# Returns the group of each point, in the order of their first points, or NULL
# if the kernel does not tell points apart, or if there are more groups than
# half of the points.
equal_points <- function(sample) {
  if (!knows_points(sample) ||
        !kernel_has(sample$kernel, "unit diagonal")) {
    return(NULL)
  }
  code <- rep(1, sample$n)
  for (j in seq_len(ncol(sample$x))) {
    column <- sample$x[, j]
    code <- (code - 1) * sample$n + match(column, unique(column))
    code <- match(code, unique(code))
  }
  if (max(code) <= sample$n / 2) code
}

# The columns of a block in the units of the user. A column without a name is
# called `name`.
block_columns <- function(block, name) {
  part_frame(if (is_factor_variable(block)) variable_input(block) else
    sample_raw(block$sample), name)
}

# The points of a block as a data frame.
part_frame <- function(part, name) {
  if (is.factor(part)) stats::setNames(data.frame(part), name) else
    named_frame(part, name)
}

# Filtered independence statistics: HSIC of the matrices M of filter.R, each of
# its own variable, which no permutation changes.

# As of hsic_statistics(), of all statistics that are asked for: observed and
# the draws are those of the only one, or the largest standardized one; `table`:
# as of statistics_table().
filtered_dependence <- function(variables, options, scheme) {
  filter <- options$filter
  check_variable_factors(variables, filter$factors)
  if (filter$name != "none") {
    for (variable in variables) check_definite(variable$sample$kernel)
  }
  settled <- settle_variables(variables, options)
  samples <- settled$samples
  several <- length(samples) > 2L
  plain <- plain_source(samples, options, scheme)
  table <- list_statistics(filter)
  check_memory(scheme$B + 1, nrow(table), "take fewer draws", copies = 4,
               what = "a table of the statistics of all draws,")
  drawn <- draw_orders(scheme, plain)
  bar <- progress_bar(options$progress)
  on.exit(bar$close())
  values <- matrix(0, scheme$B + 1, nrow(table))
  scale <- numeric(nrow(table))
  compute <- function(source, a, times = 1) {
    statistic <- statistic_function(source, options)
    values[, a] <<- times * unlist(lapply(drawn, statistic))
    check_values(values[1L, a])
    check_size(source, values[, a])
    scale[a] <<- times * source$scale
    bar$at(a / nrow(table))
  }
  at <- 0L
  left <- 0
  for (factor in filter$factors) {
    own <- if (factor == 1) samples else
      lapply(variables, \(variable) vary_bandwidth(variable, factor)$sample)
    if (0L %in% filter$order) {
      compute(if (factor == 1) plain else plain_source(own, options, scheme),
              at <- at + 1L, settled$height)
    }
    if (1L %in% filter$order) {
      matrices <- lapply(own, \(sample) {
        dependence_matrices(filterable_sample(sample), filter)
      })
      left <- max(left, vapply(matrices, `[[`, 1, "left"))
      for (ratio in filter$ratio) {
        m <- lapply(matrices, \(one) one$at(ratio))
        compute(if (several) filtered_tensor(m) else
          filtered_pair(m, scheme), at <- at + 1L)
      }
    }
  }
  found <- joint_statistic(values, scale, scheme, table,
                           if (several) "dHSIC" else "HSIC", NULL)
  joint <- found$values
  if (is.null(scheme$matrix) || scheme$all) check_varies(joint)
  list(
    observed = joint[1L],
    law = permutation_null(joint, found$scale, scheme),
    estimator = settled$estimator, height = 1, noise = settled$noise,
    smoothing = settled$smoothing, several = found$several,
    share = if (!several) plain$share(), ranks = plain$ranks,
    left = if (left > 0) left, table = found$table
  )
}

plain_source <- function(samples, options, scheme) {
  if (length(samples) > 2L) {
    tensor_source(samples)
  } else {
    pair_source(samples[[1L]], samples[[2L]], options, scheme)
  }
}

# Chunks of permutations of points, drawn once for all statistics: first the
# identity, which is the data.
draw_orders <- function(scheme, source) {
  units <- length(scheme$sizes)
  points <- point_permutations(scheme)
  size <- max(64, floor(chunk_integers / source$n / source$moved))
  check_memory(source$n, scheme$B / 2 * source$moved, "use fewer permutations",
               what = "the permutations")
  chunks <- in_chunks(scheme$B, size, FALSE, \(start, count) {
    points(drawn_chunk(units, scheme, start, count, source$moved))
  })
  c(list(points(matrix(seq_len(units), units, source$moved))), chunks)
}

# list(left: see filter_spectrum(), at: M of each ratio as a function of it).
dependence_matrices <- function(sample, filter) {
  if (sample$n <= filter_most_points) {
    made <- filter_matrices(sample, filter$ratio, filter$name)
    return(list(left = 0, at = made))
  }
  check_memory(sample$n, sample$n, "use fewer rows", copies = 4)
  spectrum <- filter_spectrum(sample, min(filter$ratio))
  list(left = spectrum$left,
       at = \(ratio) tcross(filter_root(spectrum, ratio, filter$name)))
}

# What statistic_function() takes of two matrices M.
filtered_pair <- function(m, scheme) {
  n <- nrow(m[[1L]])
  parts <- lapply(unname(m), \(m) new_part(m, diag(m), norm(m, "F"), max(m)))
  norms <- parts[[1L]]$norm * parts[[2L]]$norm
  parts <- cluster_parts(parts, scheme)
  list(x = parts[[1L]], y = parts[[2L]], n = n,
       forms = part_forms(parts[[1L]], parts[[2L]], FALSE, norms),
       scale = norms / n^2, moved = 1L)
}

# Of more variables, 1 + M / mean(diag M) in place of each: products of M alone,
# whose rows sum to 0, would see no dependence of two that leaves a third alone.
filtered_tensor <- function(m) {
  n <- nrow(m[[1L]])
  own <- vapply(m, \(m) mean(diag(m)), 1)
  k <- Map(\(m, own) if (own > 0) 1 + m / own else 1 + m, unname(m), own)
  list(k = k, rows = lapply(k, \(k) rep(1, n)), n = n, moved = length(k) - 1L,
       means = 1, scale = 1e-3 * 2^length(k), constant = any(own == 0))
}

# --- Bandwidths --------------------------------------------------------------

# Has a variable a bandwidth that factors can multiply?
varies_bandwidth <- function(variable) {
  !is_factor_variable(variable) && !is_mixed_variable(variable) &&
    knows_points(variable$sample) && !is.null(variable$sample$kernel$bandwidth)
}

vary_bandwidth <- function(variable, factor) {
  if (varies_bandwidth(variable)) {
    variable$sample <- times_bandwidth(variable$sample, factor)
  }
  variable
}

check_variable_factors <- function(variables, factors) {
  varies <- vapply(variables, varies_bandwidth, NA)
  if (!identical(factors, 1) && !any(varies)) {
    stop_input("'factors' must be NULL where no variable has a bandwidth of ",
               "numbers alone")
  }
}

# The penalties of instrumental-variable fits: grids, the authors' rules, folds,
# and the held-out criterion.

# The search of each method: the values that are tried (grid), whether more are
# tried if the best is at an end (wider), how many times the rows are dealt to
# folds (deals), and whether each fold gets a share of each level of the
# instruments (by_level).
iv_searches <- list(
  iv_weak = list(grid = 10^seq(-6, 2, length.out = 41), wider = FALSE,
                 deals = 5L, by_level = TRUE),
  iv_classic = list(grid = 10^seq(-5, 0, length.out = 30), wider = TRUE,
                    deals = 1L, by_level = FALSE)
)

authors_grid <- 10^seq(-1, 4, length.out = 30)

# The penalties of the authors' code. In units of the matrix, delta =
# delta_scale n^-delta_exp and alpha = alpha_scale delta^4:
#   rkhs_iv(), "norm"         lambda = n delta^2, mu = alpha / (2 n delta^2)
#   rkhs_iv_nested(), "norm"  both lambda = 1, both mu = alpha
#   "l2"                      lambda = 0, mu = alpha
# n is that of the rows at hand: of a fold's complement for its fit, of the fold
# for its criterion. alpha_scale NULL: 60 for Estimator 1, 1 for the others.
# gamma, of exp(-gamma |x - y|^2), is a number or "auto", see nnpiv_kernel().
nnpiv_preset <- list(delta_scale = 5, delta_exp = 0.4, alpha_scale = NULL,
                     gamma = 2)

# The kernel exp(-gamma |x - y|^2). With "auto", 1/(2 gamma) is the median
# distance of all pairs, among them those of a point with itself.
nnpiv_kernel <- function(gamma) {
  if (!identical(gamma, "auto")) {
    return(kernel_rbf(sqrt(1 / (2 * gamma))))
  }
  kernel_rbf(nnpiv_bandwidth)
}

# Warns if a fixed gamma does not suit the units of the columns.
warn_gamma <- function(block, gamma, name) {
  if (is_factor_variable(block)) {
    return(invisible())
  }
  x <- block$sample$x
  some <- unique(round(seq(1, nrow(x), length.out = 1000)))
  middle <- fit_kernel(kernel_rbf(), take_rows(x, some))$bandwidth
  if (gamma * middle^2 > log(1e3)) {
    warn_kernmean(
      "the authors' kernel, exp(-", format_number(gamma), " |x - y|^2), is ",
      "below 0.001 for half of the pairs of '", name, "': scale its columns, ",
      "or take preset = list(gamma = \"auto\")", kind = "units"
    )
  }
}

nnpiv_bandwidth <- function(x) {
  n <- nrow(x)
  check_memory(n, n, "give a kernel", copies = 3,
               what = "the authors' bandwidth")
  middle <- stats::median(as.matrix(stats::dist(x)))
  if (middle <= 0) {
    stop_input("the authors' bandwidth, from the median distance, must be ",
               "positive; at least half of the distances are 0: give a kernel")
  }
  sqrt(middle)
}

# Returns the values to choose among. The attribute "wider" has further values
# beyond either end.
penalty_values <- function(task) {
  select <- !is.null(task$control$select)
  values <- sort(unique(task$mu))
  if (!length(values)) {
    if (is.null(task$preset)) {
      search <- iv_searches[[class(task)]]
      values <- search$grid * if (is_norm(task)) block_trace(task, "a") else 1
      return(structure(values, wider = if (search$wider) wider_grid(values) else
        list()))
    }
    # The authors extend the grid only in nested fits, and by one value.
    values <- if (!select) if (is_norm(task) && !is_nested(task)) 60 else 1 else
      structure(authors_grid, wider = if (is_nested(task)) {
        wider_grid(authors_grid, 1L)
      })
  }
  if (select && length(values) == 1L) {
    stop_input("'select' must not be \"cv\" where one penalty is given")
  }
  values
}

# A penalty: its value among those that were tried, mu in the units of the fit,
# and the table of the cross-validation, which is the field `cv` of fits.
new_penalty <- function(value, mu, cv = NULL) {
  list(value = value, mu = mu, cv = cv)
}

# Chooses the penalty of a fit. There is nothing to choose if a line takes all
# that the instruments tell, so that there is no curve.
choose_penalty <- function(task, values, folds) {
  unit <- penalty_rule(task, task$whole$n)$mu
  if (is.null(task$mu) && has_no_curve(task)) {
    values <- task$unit * length(task$y)
  }
  if (length(values) == 1L) {
    return(new_penalty(values, values * unit))
  }
  # With weak instruments the mean of several deals would shrink too little, so
  # only the first deal is used.
  if (!is.null(task$strength) && is_weak(task$strength)) {
    attr(folds, "deals") <- attr(folds, "deals")[1L]
  }
  search <- tune_grid(
    values, \(values) held_out_scores(task, folds, values), task$control$rule,
    attr(values, "wider"), 1e-24 * mean(task$y[task$rows$d]^2), deals_of(folds)
  )
  warn_border(task, search, is.null(attr(values, "wider")))
  new_penalty(search$value, search$value * unit, structure(
    data.frame(mu = search$table$value * unit, search$table[-1L]),
    folds = search$scores, border = search$border, deals = deals_of(folds)
  ))
}

# Warns if the best penalty is at an end of the values, which were `given` by
# the user or are a grid.
warn_border <- function(task, search, given) {
  end <- search$border
  largest <- search$highest || identical(end, "largest")
  if (!(largest || length(end)) || largest && !tells_curve(task$strength)) {
    return(invisible())
  }
  warn_kernmean(
    if (length(end)) "the held-out criterion is smallest at" else
      paste0("rule = \"", task$control$rule, "\" takes"),
    " the ", c(end, "largest")[1L], " penalty that was ",
    if (given) "given; try more values" else "tried",
    if (!identical(end, "smallest")) {
      paste(": the instruments hardly tell the function from a", if (
        isTRUE(task$linear > task$unit)
      ) "straight line" else
        "constant, which does not mean that there is no effect")
    }, kind = "border"
  )
}

# --- Folds -------------------------------------------------------------------

deals_of <- \(folds) max(1L, length(attr(folds, "deals")))

# Rows are dealt several times only if there are at most this many features,
# because each fold of each deal takes a decomposition.
most_dealt <- 300L

# Returns the fold of each row, a factor. It is NA in folds that the authors
# leave out because they lack rows of a moment. If rows are dealt several times,
# the factor has cells instead. A fold of any deal consists of cells, whose
# moments add up to its moments, and the attribute "deals" has the fold of each
# cell for each deal.
iv_folds <- function(task) {
  folds <- task$control$folds
  if (length(folds) > 1L) {
    return(check_folds(task, given_folds(task, folds), TRUE))
  }
  units <- task$clusters %||% seq_along(task$y)
  size <- length(unique(units))
  blocks <- identical(folds, "blocks") || task$in_blocks
  count <- if (is_number(folds)) take(folds, count(2L)) else min(6L, size)
  deals <- iv_searches[[class(task)]]$deals
  # A cell must have at least two units.
  if (blocks || map_width(task) > most_dealt || size < 2L * deals * count) {
    deals <- 1L
  }
  cells <- deals * count
  dealt <- if (!is.null(task$clusters)) cluster_folds(units, cells) else
    make_folds(length(task$y), cells, if (blocks) "blocks" else "hashed",
               fold_strata(task, count))
  dealt <- factor(dealt, seq_len(cells))
  if (deals > 1L) {
    cell <- seq_len(cells) - 1L
    attr(dealt, "deals") <- lapply(seq_len(deals) - 1L, \(deal) {
      (cell + deal * (cell %/% count)) %% count + 1L
    })
    return(dealt)
  }
  kept <- check_folds(task, dealt, FALSE)
  if (blocks) warn_sorted(dealt, task)
  kept
}

# The folds that a user gives, in the order in which they come.
given_folds <- function(task, folds) {
  folds <- read_folds(folds, length(task$y), "rows")
  folds <- factor(folds, unique(folds))
  units <- task$clusters %||% seq_along(task$y)
  if (anyDuplicated(unique(data.frame(units, folds))$units)) {
    stop_input("'folds' must keep the rows of each cluster together")
  }
  folds
}

# The strata of which each fold gets a share: the subsets of a nested fit, or
# those levels of an instrument that have two rows for each fold.
fold_strata <- function(task, count) {
  by_level <- iv_searches[[class(task)]]$by_level
  if (by_level && is_factor_variable(task$blocks$z)) {
    level <- max.col(task$blocks$z$sample$x, "first")
    return(level * (tabulate(level)[level] >= 2 * count))
  }
  if (is.null(task$preset)) Reduce(\(d, c) d + 2L * c, task$rows) else
    rep(1L, length(task$y))
}

# Returns those folds that have rows of each moment and leave some outside.
# Other folds are an error, unless they follow from the authors' rules, which
# leave them out.
check_folds <- function(task, folds, given) {
  lacks <- lapply(task$rows, \(r) table(folds[r]) %in% c(0L, sum(r)))
  bad <- levels(folds)[Reduce(`|`, lacks)]
  if (length(bad) && (given || is.null(task$preset) ||
                        length(bad) == nlevels(folds))) {
    stop_input("'folds' must have rows of each moment in each fold and ",
               "outside it; they are lacking for fold '", bad[1L], "' of ",
               nlevels(folds), ", for ", count_of(length(folds), "row"))
  }
  factor(folds, setdiff(levels(folds), bad))
}

# If rows are sorted, folds of rows next to each other are not alike. A warning
# says so if the means of some column differ between folds by an F test at this
# level.
sorted_below <- 1e-6

warn_sorted <- function(folds, task) {
  columns <- c(list(y = cbind(task$y)),
               lapply(task$maps, \(map) sample_raw(map$sample)))
  p <- unlist(Map(\(x, block) {
    rows <- task$rows[[if (block %in% c("b", "c")) "c" else "d"]]
    folds <- droplevels(folds[rows])
    between <- nlevels(folds) - 1
    within <- sum(rows) - 1 - between
    if (!is.null(x) && within > 0) {
      x <- scale(take_rows(data.matrix(x), rows))
      explained <- colSums(rowsum(x, folds)^2 / tabulate(folds))
      left <- pmax(sum(rows) - 1 - explained, 0)
      stats::pf(explained / between / (left / within), between, within,
                lower.tail = FALSE)
    }
  }, columns, names(columns)))
  if (min(1, p, na.rm = TRUE) * length(p) < sorted_below) {
    warn_kernmean(
      "the folds of rows next to each other are not alike (rows in some ",
      "order?), and penalties chosen by them may be too large; random ones ",
      "are folds = sample(rep_len(1:", nlevels(folds), ", ", length(folds),
      "))", kind = "folds"
    )
  }
}

# --- Cross-validation --------------------------------------------------------

# Does a preset have bandwidths, or maps, that depend on the rows?
has_own_maps <- function(task) {
  !is.null(task$preset) &&
    (length(c(task$control$landmarks, task$control$features)) > 0L ||
       any(vapply(task$blocks, \(block) isTRUE(block$auto), NA)))
}

# Returns the task with such bandwidths and maps made from the rows outside a
# fold.
task_without <- function(task, rows) {
  others <- setdiff(seq_along(task$y), rows)
  blocks <- lapply(task$blocks, \(block) {
    if (isTRUE(block$auto)) {
      x <- block$sample$x
      kernel <- block$sample$kernel
      kernel$bandwidth <- nnpiv_bandwidth(take_rows(x, others))
      block$sample <- points_sample(x, kernel)
    }
    block
  })
  kept <- task$control$landmarks
  if (!is.null(task$drawn)) {
    task$control$landmarks <- others[sample.int(
      length(others), min(task$drawn, length(others))
    )]
  } else if (!is.null(kept)) {
    task$control$landmarks <- intersect(kept, others)
  }
  task$maps <- make_maps(task, blocks)
  task
}

# Returns the held-out criteria of the values of a grid, in columns, for each
# fold of each deal. One decomposition for each fold serves all values. It is
# made from the moments of the fold and of the rows outside it.
held_out_scores <- function(task, folds, grid) {
  each <- split(seq_along(task$y), folds)
  cells <- unlist(lapply(
    attr(folds, "deals") %||% list(seq_along(each)),
    \(deal) split(seq_along(each), deal)
  ), recursive = FALSE)
  scores <- lapply_shown(cells, \(k) {
    held_out_score(task, unlist(each[k]), task$parts[k], grid)
  }, task$control$progress && length(task$y) >= shown_from)
  check_result(do.call(rbind, unname(scores)), "a held-out criterion",
               "'y' and of the blocks")
}

# Returns r'Pr/t^2 of the t rows of a fold for each value of the grid, with P
# made from these rows. `parts` has the moments of the rows if these are known.
held_out_score <- function(task, rows, parts, grid) {
  anew <- has_own_maps(task)
  if (anew) task <- task_without(task, rows)
  held <- if (length(parts)) Reduce(moments_with, parts) else
    row_moments(task, rows)
  train <- if (!anew) moments_with(task$whole, held, `-`) else
    row_moments(task, setdiff(seq_along(task$y), rows))
  system <- iv_system(task, train, replace(task$rows$d, rows, FALSE))
  theta <- iv_solve(system, grid * penalty_rule(task, train$n)$mu)$theta
  squares <- lapply(names(task$rows), \(of) {
    right <- product(held[[of]]$with, rbind(
      theta$g, if (of == "c") theta$h, -1,
      matrix(system$mean, length(system$mean), length(grid))
    ))
    colSums(action_root(task, held, of)$times(right)^2)
  })
  penalty_rule(task, held$n)$score * Reduce(`+`, squares) / held$n^2
}

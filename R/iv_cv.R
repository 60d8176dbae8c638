# Cross-validation of the penalties of g and h: one decomposition a fold for all
# values, from the moments of the fold and of the rows outside it.

own_grid <- 10^seq(-5, 0, length.out = 30)
authors_grid <- 10^seq(-1, 4, length.out = 30)

# The fold of each row, a factor; NA in folds that the authors leave out, which
# lack rows of a moment.
iv_folds <- function(folds, task, authors) {
  rows <- task$rows
  n <- length(task$y)
  if (length(folds) > 1L) {
    of <- given_folds(folds, n, "rows")
    # In the order in which they come.
    of <- factor(of, unique(of))
    bad <- lacking_folds(of, rows)
    if (length(bad)) {
      stop_input("'folds' must have rows of both moments in each fold and ",
                 "outside it; they are lacking for fold '", bad[1L], "'")
    }
    return(of)
  }
  count <- check_count(folds, "folds", 2L)
  if (n < count) {
    stop_input("'folds' must be at most the number of rows, ", n, ", not ",
               count)
  }
  strata <- if (is.null(rows$c) || authors) rep(1L, n) else rows$d + 2L * rows$c
  of <- factor(make_folds(n, count, "blocks", strata), seq_len(count))
  bad <- lacking_folds(of, rows)
  if (length(bad) == count || length(bad) && !authors) {
    stop_input("'folds' must be so few that each has rows of both moments, ",
               "not ", count, " for ", sum(rows$d), " and ", sum(rows$c),
               " rows")
  }
  warn_sorted(of, task)
  factor(of, setdiff(levels(of), bad))
}

# The folds that have, or leave, no row of a moment.
lacking_folds <- function(of, rows) {
  lacks <- lapply(Filter(length, rows), \(r) table(of[r]) %in% c(0L, sum(r)))
  levels(of)[Reduce(`|`, lacks)]
}

# Rows in an order make folds of rows next to each other that are not alike.
sorted_below <- 1e-6

warn_sorted <- function(of, task) {
  # Of each moment its own rows.
  columns <- c(list(y = matrix(task$y, dimnames = list(NULL, "y"))),
               lapply(task$maps, \(map) sample_raw(map$sample)))
  columns <- Filter(Negate(is.null), columns)
  p <- unlist(unname(Map(\(x, name) {
    rows <- task$rows[[switch(name, c = , b = "c", "d")]]
    apply(x[rows, , drop = FALSE], 2L, fold_p_value, of = of[rows])
  }, columns, names(columns))))
  worst <- which.min(p)
  if (p[worst] < sorted_below / length(p)) {
    column <- c(names(p)[worst], "")[1L]
    warn_kernmean(
      "the folds of rows next to each other are not alike",
      if (nzchar(column)) paste0(" in '", column, "'"), " (rows in some ",
      "order?), and penalties chosen by them may be too large; random ones ",
      "are folds = sample(rep_len(1:", nlevels(of), ", ", length(of), "))",
      kind = "folds"
    )
  }
}

# Of the F test that a column has the same mean in all folds.
fold_p_value <- function(x, of) {
  x <- x / power_below(max(abs(x)))
  x <- x - mean(x)
  of <- droplevels(of)
  between <- sum(rowsum(x, of)^2 / tabulate(of))
  k <- nlevels(of)
  free <- length(x) - k
  if (free < 1L || between <= 0) {
    return(1)
  }
  stats::pf(between / (k - 1) / (max(sum(x^2) - between, 0) / free), k - 1,
            free, lower.tail = FALSE)
}

# Held-out criteria: folds in rows, values in columns. `whole`: the moments of
# all rows.
held_out_scores <- function(task, whole, rules, folds, grid, ratio, center,
                            progress) {
  n <- length(task$y)
  scores <- lapply_shown(split(seq_len(n), folds), \(rows) {
    held <- row_moments(task, rows)
    train <- moments_without(whole, held)
    kept <- replace(task$rows$d, rows, FALSE)
    mean <- if (center) mean(task$y[kept]) else 0
    system <- iv_system(task, train, ridges_of(rules, train), ratio)
    solved <- solve_system(system, rules$mu(grid, train$n), mean)
    held_out_score(task, held, solved$theta, rules, mean)
  }, progress && n >= shown_from)
  check_result(do.call(rbind, scores), "a held-out criterion",
               "'y' and of the blocks")
}

# list(d, c): the ridges for the numbers of rows in the moments.
ridges_of <- function(rules, moments) {
  parts <- Filter(Negate(is.null), moments[c("d", "c")])
  Map(\(moment, of) rules$lambda(moment$n, of), parts, names(parts))
}

# r'Pr/t^2 of a fold of t rows for each column of theta, P made anew from it.
held_out_score <- function(task, held, theta, rules, mean) {
  part <- \(of, coefficients, target) {
    moment <- held[[of]]
    left <- target - product(moment$with, coefficients)
    root <- apply_root(moment$gram, rules$lambda(moment$n, of),
                       instrument_tolerance(task, moment$n), left)
    held$n / moment$n * colSums(root[[2L]]^2)
  }
  target <- held$d$target
  total <- part("d", theta$g, target[, 1L] - mean * target[, 2L])
  if (is_nested(task)) {
    total <- total + part("c", rbind(theta$g, theta$h), 0)
  }
  rules$score(held$n) * total / held$n^2
}

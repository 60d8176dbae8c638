# Cross-validation of the penalties of g and h: one decomposition a fold for all
# values, from the moments of the fold and of the rows outside it.

own_grid <- 10^seq(-5, 0, length.out = 30)
authors_grid <- 10^seq(-1, 4, length.out = 30)
extended_by <- 10L

# Fold numbers of all rows: contiguous, within each of the groups of rows that a
# subset makes.
contiguous_folds <- function(n, folds, strata = rep(1L, n)) {
  of <- integer(n)
  for (rows in split(seq_len(n), strata)) {
    of[rows] <- rep(seq_len(folds), length(rows) %/% folds +
                      (seq_len(folds) <= length(rows) %% folds))
  }
  of
}

# What the argument says: list(of: the number of the fold of each row, names).
check_folds <- function(folds, task, authors) {
  n <- length(task$y)
  rows <- task$rows
  if (length(folds) > 1L) {
    if (!is.atomic(folds) || length(folds) != n || anyNA(folds)) {
      stop_input("'folds' must be a number of folds, or the fold of each of ",
                 "the ", n, " rows, none missing, not ", describe(folds))
    }
    folds <- as.character(check_factor(folds, "folds"))
    names <- unique(folds)
    of <- match(folds, names)
    if (length(names) < 2L) {
      stop_input("'folds' must have at least 2 folds, not only '", names, "'")
    }
    bad <- lacking_folds(of, rows)
    if (length(bad)) {
      stop_input("'folds' must have rows of both moments in each fold and ",
                 "outside it; they are lacking for fold '", names[bad[1L]], "'")
    }
    return(list(of = of, names = names))
  }
  count <- check_count(folds, "folds", 2L)
  if (n < count) {
    stop_input("'folds' must be at most the number of rows, ", n, ", not ",
               count)
  }
  whole <- is.null(rows$c) || authors
  strata <- if (whole) rep(1L, n) else rows$d + 2L * rows$c
  of <- contiguous_folds(n, count, strata)
  bad <- lacking_folds(of, rows)
  # The authors leave these folds out.
  if (length(bad) == count || length(bad) && !authors) {
    stop_input("'folds' must be so few that each has rows of both moments, ",
               "not ", count, " for ", sum(rows$d), " and ", sum(rows$c),
               " rows")
  }
  warn_sorted(of, task)
  of[of %in% bad] <- 0L
  list(of = of, names = as.character(setdiff(seq_len(count), bad)))
}

# Rows in an order make folds of rows next to each other that are not alike.
sorted_below <- 1e-6

warn_sorted <- function(of, task) {
  # Of each moment its own rows.
  columns <- c(list(y = matrix(task$y, dimnames = list(NULL, "y"))),
               lapply(task$maps, \(map) sample_raw(map$sample)))
  columns <- Filter(Negate(is.null), columns)
  p <- Map(\(x, name) {
    rows <- task$rows[[switch(name, c = , b = "c", "d")]]
    apply(x[rows, , drop = FALSE], 2L, fold_p_value, of = of[rows])
  }, columns, names(columns))
  least <- vapply(p, min, numeric(1))
  if (min(least) < sorted_below / sum(lengths(p))) {
    worst <- which.min(least)
    column <- colnames(columns[[worst]])[which.min(p[[worst]])]
    warn_kernmean(
      "the folds of rows next to each other are not alike",
      if (!is.null(column)) paste0(" in '", column, "'"), " (rows in some ",
      "order?), and penalties chosen by them may be too large; random ones ",
      "are folds = sample(rep_len(1:", max(of), ", ", length(of), "))",
      kind = "folds"
    )
  }
}

# Of the F test that a column has the same mean in all folds.
fold_p_value <- function(x, of) {
  x <- x / power_below(max(abs(x)))
  x <- x - mean(x)
  of <- match(of, unique(of))
  size <- tabulate(of)
  between <- sum(rowsum(x, of)^2 / size)
  within <- sum(x^2) - between
  k <- length(size)
  free <- length(x) - k
  if (free < 1L || between <= 0) {
    return(1)
  }
  stats::pf(between / (k - 1) / (max(within, 0) / free), k - 1, free,
            lower.tail = FALSE)
}

# The folds that have, or leave, no row of a moment.
lacking_folds <- function(of, rows) {
  lacks <- vapply(seq_len(max(of)), \(f) {
    own <- of == f
    any(vapply(rows, \(r) {
      !is.null(r) && (!any(r[own]) || !any(r[!own]))
    }, NA))
  }, NA)
  which(lacks)
}

# Held-out criteria: folds in rows, values in columns. `whole`: the moments of
# all rows.
held_out_scores <- function(task, whole, rules, folds, grid, ratio, center,
                            progress) {
  bar <- progress_bar(progress && length(task$y) >= shown_from)
  on.exit(bar$close())
  found <- matrix(0, length(folds$names), length(grid),
                  dimnames = list(folds$names, NULL))
  numbers <- sort(setdiff(folds$of, 0L))
  for (f in seq_along(numbers)) {
    rows <- which(folds$of == numbers[f])
    held <- row_moments(task, rows)
    train <- moments_without(whole, held)
    kept <- replace(task$rows$d, rows, FALSE)
    mean <- if (center) mean(task$y[kept]) else 0
    system <- iv_system(task, train, ridges_of(rules, train), ratio)
    solved <- solve_system(system, rules$mu(grid, train$n), mean)
    found[f, ] <- held_out_score(task, held, solved$theta, rules, mean)
    bar$at(f / length(numbers))
  }
  found
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

# list(value: that of the grid, table, scores; border: the end that the minimum
# is at, or NULL; extended: was the grid?; highest: is the value the largest?).
# `wider`: values that are added where the minimum is at an end: list(below,
# above). size: mean square of the outcome, below whose rounding all scores are
# equal.
choose_penalty <- function(grid, scores, rule, wider, size) {
  of <- \(values) {
    scores <- scores(values)
    list(values = values, scores = scores, score = colMeans(scores))
  }
  found <- of(c(wider$below, grid, wider$above))
  check_result(found$scores, "a held-out criterion", "'y' and of the blocks")
  shown <- length(wider$below) + seq_along(grid)
  best <- shown[which.min(found$score[shown])]
  extended <- length(wider$below) && best == shown[1L] ||
    length(wider$above) && best == shown[length(shown)]
  if (extended) {
    shown <- if (best == shown[1L]) {
      seq_len(max(shown))
    } else {
      seq(min(shown), length(found$values))
    }
    best <- shown[which.min(found$score[shown])]
  }
  folds <- nrow(found$scores)
  unit <- max(found$scores)
  # One fold says nothing of its error.
  error <- \(scores) if (folds > 1L && unit > 0) {
    unit * apply(scores / unit, 2L, stats::sd) / sqrt(folds)
  } else {
    numeric(ncol(scores))
  }
  se <- error(found$scores)
  above <- error(found$scores - found$scores[, best])
  most <- found$score[best] +
    switch(rule, min = 0, paired = above, "1se" = se[best])
  chosen <- if (rule == "min") {
    best
  } else {
    max(shown[(found$score <= most)[shown]])
  }
  scores <- found$score[shown]
  flat <- max(scores) - min(scores) <= 1e-12 * max(scores) ||
    max(scores) <= 1e-24 * size
  end <- if (length(shown) > 1L && !flat) {
    c("smallest", "largest")[match(best, range(shown))]
  } else {
    NA
  }
  list(
    value = found$values[chosen],
    table = data.frame(value = found$values[shown], score = found$score[shown],
                       se = se[shown], se_above = above[shown],
                       chosen = shown == chosen),
    scores = found$scores[, shown, drop = FALSE],
    border = if (!is.na(end)) end, extended = extended,
    highest = !flat && length(shown) > 1L && chosen == max(shown)
  )
}

# Values by which our own grid can grow at either end, in its own steps.
wider_grid <- function(grid) {
  step <- grid[2L] / grid[1L]
  list(below = grid[1L] * step^-rev(seq_len(extended_by)),
       above = grid[length(grid)] * step^seq_len(extended_by))
}

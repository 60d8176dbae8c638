# Choosing: folds, the table of a grid and the rules that take one of its
# values, and the progress of a long search.

# --- Folds -----------------------------------------------------------------

# The fold of each of n units. how: "drawn" at random; "hashed", in a fixed
# order that has nothing to do with that of the units; "blocks" of neighbors;
# "turns", the folds in turn, one unit after the other. The sizes of folds
# differ by at most one within each stratum, and also in total where folds are
# drawn or hashed.
make_folds <- function(n, count, how, strata = rep(1L, n)) {
  count <- min(count, n)
  turns <- rep_len(seq_len(count), n)
  if (how == "turns") {
    return(turns)
  }
  units <- split(seq_len(n), strata)
  of <- integer(n)
  if (how != "blocks") {
    key <- if (how == "hashed") .Call(C_r_sequence, n)
    of[unlist(lapply(units, \(i) {
      i[if (is.null(key)) sample.int(length(i)) else order(key[i])]
    }))] <- turns
  } else {
    for (i in units) of[i] <- sort(rep_len(turns, length(i)))
  }
  of
}

# The fold of each unit, by whole clusters, whose codes begin at 1. The largest
# cluster comes first, and each goes to the smallest fold.
cluster_folds <- function(clusters, count) {
  sizes <- tabulate(clusters)
  if (length(sizes) < count) {
    stop_input("'folds' must be at most ", length(sizes), ", the number of ",
               "clusters, not ", count)
  }
  rows <- integer(count)
  of <- integer(length(sizes))
  for (cluster in order(-sizes, .Call(C_r_sequence, length(sizes)))) {
    of[cluster] <- which.min(rows)
    rows[of[cluster]] <- rows[of[cluster]] + sizes[cluster]
  }
  of[clusters]
}

# --- A grid ----------------------------------------------------------------

# The mean loss of each candidate and its standard error (0 for a single unit).
# losses: units x candidates; their squares, once they are divided by `unit`, do
# not overflow. deals: how many times the data are in the rows; n rows count as
# n/deals.
mean_losses <- function(losses, unit = max(abs(losses)), deals = 1L) {
  n <- nrow(losses)
  data.frame(
    score = colMeans(losses),
    se = if (n > 1L && unit > 0) {
      unit * apply(losses / unit, 2L, stats::sd) / sqrt(n / deals)
    } else {
      0
    }
  )
}

# Chooses one of some increasing values by a rule: "min", the value with the
# smallest mean loss; or the largest value whose mean loss exceeds the smallest
# by at most one standard error, of the smallest mean loss ("1se") or of the
# difference ("paired"), or the largest such value with a smaller loss than both
# of its neighbors, or else the one of "min" ("valley"). losses: a function of
# values that returns a matrix as for mean_losses(). wider: the values of
# wider_grid(), which are added if the best value is an end of the grid. Losses
# up to `zero` are rounding. Returns the value; the table of all values; scores,
# their losses; border, the end at which the minimum lies, or NULL; extended,
# whether values were added; highest, whether the chosen value is the largest.
tune_grid <- function(values, losses, rule, wider = NULL, zero = 0,
                      deals = 1L) {
  shown <- length(wider$below) + seq_along(values)
  values <- c(wider$below, values, wider$above)
  losses <- losses(values)
  means <- mean_losses(losses, deals = deals)
  least <- \() shown[which.min(means$score[shown])]
  best <- least()
  beyond <- c(if (best == shown[1L]) seq_along(wider$below),
              if (best == max(shown)) max(shown) + seq_along(wider$above))
  shown <- sort(c(shown, beyond))
  best <- least()
  means$se_above <- mean_losses(losses - losses[, best], max(losses), deals)$se
  limit <- means$score[best] + switch(rule, min = 0, "1se" = means$se[best],
                                      means$se_above)
  near <- shown[(means$score <= limit)[shown]]
  chosen <- switch(rule, min = best, valley = max(best, intersect(
    near, shown[is_valley(means$score[shown])]
  )), max(near))
  table <- data.frame(value = values, means,
                      chosen = seq_along(values) == chosen)[shown, ]
  rownames(table) <- NULL
  most <- max(table$score)
  flat <- most - min(table$score) <= 1e-12 * most || most <= zero ||
    length(shown) == 1L
  list(
    value = values[chosen], table = table,
    scores = take_columns(losses, shown),
    border = if (!flat && best %in% range(shown)) {
      if (best == shown[1L]) "smallest" else "largest"
    },
    extended = length(beyond) > 0L, highest = !flat && chosen == max(shown)
  )
}

# Is each number smaller than both of its neighbors?
is_valley <- function(x) c(FALSE, diff(x) < 0) & c(diff(x) > 0, FALSE)

# The table of the values that were tried for a fit. If there is none the error
# names the argument that asks for it.
tried_of <- function(x, name) {
  if (is.null(x$cv)) {
    stop_input("'", name, "' must not be \"cv\" unless several values were ",
               "tried")
  }
  x$cv
}

# The values by which a grid can grow in its own steps, below and above it.
wider_grid <- function(grid, by = 10L) {
  step <- grid[2L] / grid[1L]
  list(below = grid[1L] * step^-rev(seq_len(by)),
       above = grid[length(grid)] * step^seq_len(by))
}

# --- Progress --------------------------------------------------------------

# A progress bar with two functions: at(share) moves it, close() ends it. Both
# do nothing if progress is FALSE.
progress_bar <- function(progress) {
  if (!progress) {
    return(list(at = \(share) NULL, close = \() NULL))
  }
  bar <- utils::txtProgressBar(style = 3)
  list(at = \(share) utils::setTxtProgressBar(bar, share),
       close = \() close(bar))
}

# lapply() that shows how far it has come.
lapply_shown <- function(x, f, progress) {
  bar <- progress_bar(progress)
  on.exit(bar$close())
  results <- stats::setNames(vector("list", length(x)), names(x))
  for (i in seq_along(x)) {
    results[i] <- list(f(x[[i]]))
    bar$at(i / length(x))
  }
  results
}

# A search over at least this many rows takes more than a second.
shown_from <- 800L

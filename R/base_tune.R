# Choosing: folds, the table of a grid and the rules by which one of its values
# is taken, the search along a curve, and how far a long one has come.

# --- Folds -----------------------------------------------------------------

# The number of the fold of each of n units, as the strata have them: "drawn" at
# random, or "hashed", by a fixed order that has nothing to do with that of the
# units, where a stratum goes on with the fold at which the one before stopped,
# so that sizes differ by one; "blocks" of units next to each other; "turns",
# one after the other.
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

# Whole clusters, codes from 1, the largest first to the fold that has the
# fewest.
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

# The mean loss of candidates and its standard error, of which one unit says
# nothing. Losses: units in rows, candidates in columns; in units of `unit`
# their squares are numbers.
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

# One of values that grow, by their losses, a function as of mean_losses(), and
# a rule: "min", the best; the largest that is no worse than the best by more
# than a standard error, that of the best one's score ("1se"), or that of the
# difference ("paired"). `wider`, list(below, above): values that come into view
# where the best is an end. Losses up to `zero` are rounding. list(value, table,
# scores: the losses; border: the end that the minimum is at, or NULL; extended:
# was the grid?; highest: is the value the largest?).
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
  limit <- means$score[best] + switch(rule, min = 0, paired = means$se_above,
                                      "1se" = means$se[best])
  chosen <- if (rule == "min") best else
    max(shown[(means$score <= limit)[shown]])
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

# What was tried for a fit, or an error that names the argument that asks for
# it.
tried_of <- function(x, name) {
  if (is.null(x$cv)) {
    stop_input("'", name, "' must not be \"cv\" unless several values were ",
               "tried")
  }
  x$cv
}

# Values by which an even grid can grow at either end, in its own steps.
wider_grid <- function(grid, by = 10L) {
  step <- grid[2L] / grid[1L]
  list(below = grid[1L] * step^-rev(seq_len(by)),
       above = grid[length(grid)] * step^seq_len(by))
}

# --- A curve ---------------------------------------------------------------

# --- Progress --------------------------------------------------------------

# Shows how far a long run has come; returns list(at(share), close()).
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

# Rows from which on a search takes more than a second.
shown_from <- 800L

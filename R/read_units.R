# The units of rows: outcomes, weights and clusters, a value for each row.

check_outcome <- function(y, n, name = "y", hint = na_hint) {
  y <- plain_term(y)
  if (!is.numeric(y) || is.object(y) && !stats::is.ts(y) || NCOL(y) != 1L) {
    stop_input("'", name, "' must be a numeric vector, not ", describe(y))
  }
  if (length(y) != n) {
    stop_input("'", name, "' must have one number for each of the ", n,
               " rows, not ", length(y))
  }
  check_finite(y, name, hint)
  stats::setNames(as.double(y), if (is.null(dim(y))) names(y) else rownames(y))
}

# Weights of rows, which must be positive, divided by their mean.
read_row_weights <- function(weights, n) {
  if (is.null(weights)) {
    return(rep(1, n))
  }
  weights <- check_outcome(weights, n, "weights", NULL)
  if (any(weights <= 0)) {
    stop_input("'weights' must be positive numbers, not ",
               format_number(min(weights)))
  }
  unname(weights / mean(weights))
}

# Clusters as a factor of at least two levels, NULL for none.
read_clusters <- function(clusters, n) {
  if (is.null(clusters)) {
    return(NULL)
  }
  clusters <- factor(number_codes(check_each(clusters, n, "clusters", "rows")))
  if (nlevels(clusters) < 2L) {
    stop_input("'clusters' must hold at least two clusters, not one")
  }
  clusters
}

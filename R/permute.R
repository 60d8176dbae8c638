# Permutations that users bring: matrices, and designs of package permute.

# Permutations that were given, list(matrix: one in each column, of which the
# first entries are the first group; rows: did they come as rows?). A column p
# says that the data's points p[1], p[2], ... come first; a row p, as package
# permute has them, that point p[i] takes the place of point i.
given_permutations <- function(permutations, n, B, order) {
  rows <- inherits(permutations, c("how", "permutationMatrix")) ||
    is.matrix(permutations) && ncol(permutations) == n &&
      nrow(permutations) != n
  if (inherits(permutations, "how")) {
    permutations <- shuffled(permutations, n, B)
  }
  found <- check_matrix(
    if (rows) t(unclass_matrix(permutations)) else permutations, n, permutations
  )
  if (!is.null(order)) {
    if (rows) found <- found[order, , drop = FALSE]
    found[] <- match(found, order)
  }
  list(matrix = found, rows = rows)
}

# B permutations of a design, or all that there are; one a row.
shuffled <- function(design, n, B) {
  if (!requireNamespace("permute", quietly = TRUE)) {
    stop_input("'permutations' must be a matrix where the package permute is ",
               "not installed, which draws from an object of class 'how'")
  }
  tryCatch(
    permute::shuffleSet(n, nset = B, control = design, quietly = TRUE),
    error = \(e) {
      stop_input("'permutations' must be a design for ", n, " points; permute ",
                 "says: ", conditionMessage(e))
    }
  )
}

check_matrix <- function(permutations, n, given) {
  ok <- is.matrix(permutations) && is.numeric(permutations) &&
    nrow(permutations) == n && ncol(permutations) >= 1L &&
    all(permutations %in% seq_len(n)) &&
    !any(apply(permutations, 2, anyDuplicated))
  if (!ok) {
    stop_input(
      "'permutations' must be NULL, \"all\", a design of permute::how() or a ",
      "matrix of ", n, " rows, each column a permutation of 1, ..., ", n,
      " (or of ", n, " columns and as many permutations as rows), not ",
      describe(given)
    )
  }
  storage.mode(permutations) <- "integer"
  permutations
}

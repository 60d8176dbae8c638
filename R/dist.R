# Distances as data: a sample of which only D_ij is known, with the kernel -D_ij
# of the energy statistics.

dist_sample <- function(x, name = "x") {
  n <- attr(x, "Size")
  if (!is.numeric(x) || length(n) != 1L || length(x) != n * (n - 1) / 2) {
    stop_input("'", name, "' must be a dist object with a distance for each ",
               "pair of points, not ", length(x), " values")
  }
  check_finite(x, name)
  if (any(x < 0)) {
    stop_input("'", name, "' must hold distances, none negative, not ",
               sum(x < 0), " negative ones")
  }
  check_memory(n, n, "use fewer points", copies = 3)
  k <- -as.matrix(x)
  kernel <- new_kernel("energy", "-D_ij, the distances given",
                       title = "energy kernel of the distances given")
  warn_not_negative(k, name)
  gram_sample(new_gram(unname(k), kernel))
}

as_sample.dist <- dist_sample

dist_slack <- 1e-8

# Are all eigenvalues of HKH, K = -D, at least -1e-8 of the largest? Where the
# matrix plus 1e-8 of its largest diagonal entry, which no eigenvalue is below,
# has a Cholesky factor, they are.
warn_not_negative <- function(k, name) {
  centered <- center_matrix(k)$k
  top <- max(diag(centered))
  if (max(abs(k)) == 0 ||
        top > 0 && !is.null(cholesky(centered, dist_slack * top))) {
    return(invisible())
  }
  values <- spectrum_values(centered)
  if (min(values) < -dist_slack * max(values)) {
    warn_kernmean(
      "the distances '", name, "' are not of negative type: -HDH/2 has ",
      "eigenvalues from ", format_number(min(values) / 2, 3L), " to ",
      format_number(max(values) / 2, 3L), "; p-values of permutations stay ",
      "exact, but the statistic may be 0 or less where distributions differ",
      kind = "type"
    )
  }
}

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
  kernel <- new_kernel("energy", "-D_ij, the distances given",
                       title = "energy kernel of the distances given")
  gram_sample(new_gram(unname(-as.matrix(x)), kernel))
}

as_sample.dist <- dist_sample

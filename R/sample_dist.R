# Distances as data: a sample that knows only the distances D_ij, with the
# kernel -D_ij of the energy statistics.

dist_sample <- function(x, name = "x") {
  distances <- read_distances(x, name)
  kernel <- new_kernel("energy", "-D_ij, the distances given",
                       title = "energy kernel of the distances given")
  gram_sample(new_gram(-distances, kernel))
}

as_sample.dist <- dist_sample

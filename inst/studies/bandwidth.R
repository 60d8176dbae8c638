# What the median bandwidth misses: power of mmd_test() and hsic_test() with the
# one bandwidth of the median, with many (bandwidths = "fuse"), and with the
# energy kernel, which has none, on differences and dependence at a large and at
# a fine scale.

usage <- "Usage: Rscript bandwidth.R [options]

  --reps N            data sets for each cell (200)
  --permutations B    (199)
  --out DIR           folder for the table (.)
  --cores N           processes, with the package future.apply (1); the
                      results do not depend on it
  --quick             the smallest form: 5 data sets
  --help              this text"

study_name <- "bandwidth.R"
here <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(here[1]), "common.R"))

# Points of a density 1 + sin(2 pi f u) on [0, 1], by rejection.
wave <- function(n, f) {
  u <- numeric(0)
  while (length(u) < n) {
    v <- stats::runif(2 * n)
    u <- c(u, v[2 * stats::runif(2 * n) < 1 + sin(2 * pi * f * v)])
  }
  u[seq_len(n)]
}

clusters <- function(n, sd) {
  sites <- as.matrix(expand.grid(1:3, 1:3))
  sites[sample.int(9, n, TRUE), ] + matrix(stats::rnorm(2 * n, sd = sd), n)
}

# Two samples, or two variables, of n each.
cells <- list(
  list(test = "mmd", n = 100, name = "normal, 2 columns: mean + 0.4 in one",
       make = function(n) {
         y <- matrix(stats::rnorm(2 * n), n)
         list(matrix(stats::rnorm(2 * n), n), y + rep(c(0.4, 0), each = n))
       }),
  list(test = "mmd", n = 100, name = "uniform against waves, 6 a unit",
       make = function(n) list(stats::runif(n), wave(n, 6))),
  list(test = "mmd", n = 100, name = "9 clusters, sd 0.1 against 0.2",
       make = function(n) list(clusters(n, 0.1), clusters(n, 0.2))),
  list(test = "mmd", n = 100, name = "no difference",
       make = function(n) list(clusters(n, 0.1), clusters(n, 0.1))),
  list(test = "hsic", n = 100, name = "y = 0.35 x + noise", make = function(n) {
    x <- stats::rnorm(n)
    list(x, 0.35 * x + stats::rnorm(n))
  }),
  list(test = "hsic", n = 100, name = "y = sin(6 pi x) + noise / 3",
       make = function(n) {
         x <- stats::runif(n, -1, 1)
         list(x, sin(6 * pi * x) + stats::rnorm(n) / 3)
       }),
  list(test = "hsic", n = 100, name = "y independent of x", make = function(n) {
    list(stats::runif(n), stats::rnorm(n))
  })
)

ways <- list(
  median = list(), many = list(bandwidths = "fuse"),
  energy = list(kernel = kernel_energy())
)

run_cell <- function(cell, reps, permutations, cores) {
  set.seed(seed_of(cell$name))
  seeds <- draw_seeds(reps)
  test <- list(mmd = mmd_test, hsic = hsic_test)[[cell$test]]
  rejected <- over(seeds, function(seed) {
    set.seed(seed)
    data <- cell$make(cell$n)
    vapply(ways, function(way) {
      do.call(test, c(data, way, B = permutations))$p.value <= 0.05 + 1e-12
    }, NA)
  }, cores)
  power <- colMeans(do.call(rbind, rejected))
  data.frame(test = cell$test, n = cell$n, alternative = cell$name, t(power),
             reps = reps)
}

main <- function() {
  chosen <- read_options(
    commandArgs(TRUE),
    list(reps = "200", permutations = "199", out = ".", cores = "1",
         quick = FALSE), usage
  )
  reps <- if (chosen$quick) 5 else whole_number(chosen$reps, "--reps", 1)
  permutations <- whole_number(chosen$permutations, "--permutations", 19)
  cores <- whole_number(chosen$cores, "--cores", 1)
  out <- output_folder(chosen$out)
  use_one_thread()
  found <- do.call(rbind, lapply(cells, run_cell, reps, permutations,
                                 start_processes(cores)))
  say("Share of ", reps, " data sets in which the test rejects at level 0.05, ",
      permutations, " permutations.")
  print(found, digits = 3, row.names = FALSE)
  write_table(found, out, "bandwidth.csv")
}

main()

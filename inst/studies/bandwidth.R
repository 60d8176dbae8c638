# bandwidths  What the median bandwidth misses: power of mmd_test() and
#             hsic_test() with the one bandwidth of the median, with many
#             (bandwidths = "fuse"), and with the energy kernel, which has none,
#             on differences and dependence at a large and at a fine scale.
# kernels     Mean power of the kernels, each at its median bandwidth, over
#             eleven differences and eleven kinds of dependence.

usage <- "Usage: Rscript bandwidth.R [options]

  --part bandwidths|kernels|all
                      what to run (all)
  --reps N            data sets for each cell (200)
  --permutations B    (199)
  --out DIR           folder for the table (.)
  --cores N           processes, with the package future.apply (1); the
                      results do not depend on it
  --quick             the smallest form: few cells
  --help              this text"

study_name <- "bandwidth.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

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

# Kernels ---------------------------------------------------------------------

normal <- function(n, d = 1, ...) matrix(stats::rnorm(n * d, ...), n)

# From n normal points in d columns, and those of the second sample.
differs <- function(name, d, second) {
  list(test = "mmd", n = 50, name = name, make = function(n) {
    list(normal(n, d), second(n))
  })
}

depends <- function(name, make) {
  list(test = "hsic", n = 50, name = name, make = make)
}

wave_of <- function(periods, noise) {
  function(n) {
    x <- stats::runif(n, -1, 1)
    list(x, sin(pi * periods * x) + stats::rnorm(n, sd = noise))
  }
}

# Chosen before the first run, for powers that are neither 0 nor 1.
kernel_cells <- list(
  differs("mean + 0.5, 1 of 2 columns", 2, function(n) {
    normal(n, 2) + rep(c(0.5, 0), each = n)
  }),
  differs("mean + 0.2, 10 columns", 10, function(n) normal(n, 10, mean = 0.2)),
  differs("sd x 1.5, 1 column", 1, function(n) normal(n, sd = 1.5)),
  differs("sd x 1.2, 5 columns", 5, function(n) normal(n, 5, sd = 1.2)),
  differs("sd x 2, 1 of 5 columns", 5, function(n) {
    cbind(normal(n, sd = 2), normal(n, 4))
  }),
  differs("30% shifted by 2", 1, function(n) {
    normal(n) + 2 * (stats::runif(n) < 0.3)
  }),
  differs("t, 2 degrees of freedom", 1, function(n) stats::rt(n, 2)),
  differs("exponential - 1", 1, function(n) stats::rexp(n) - 1),
  differs("two modes, variance 1", 1, function(n) {
    normal(n, sd = 0.5) + sqrt(0.75) * sample(c(-1, 1), n, TRUE)
  }),
  differs("correlation 0.7", 2, function(n) {
    x <- normal(n, 2)
    cbind(x[, 1], 0.7 * x[, 1] + sqrt(0.51) * x[, 2])
  }),
  list(test = "mmd", n = 50, name = "uniform against waves, 2 a unit",
       make = function(n) list(stats::runif(n), wave(n, 2))),
  depends("y = 0.35 x + noise", function(n) {
    x <- stats::rnorm(n)
    list(x, 0.35 * x + stats::rnorm(n))
  }),
  depends("y = 0.5 x^2 + noise", function(n) {
    x <- stats::rnorm(n)
    list(x, 0.5 * x^2 + stats::rnorm(n))
  }),
  depends("circle", function(n) {
    at <- stats::runif(n, 0, 2 * pi)
    list(cos(at) + stats::rnorm(n, sd = 0.3), sin(at) +
           stats::rnorm(n, sd = 0.3))
  }),
  depends("sine, 2 periods", wave_of(2, 1)),
  depends("sine, 4 periods", wave_of(4, 1 / 3)),
  depends("y = x * noise", function(n) {
    x <- stats::rnorm(n)
    list(x, x * stats::rnorm(n))
  }),
  depends("step of 0.8", function(n) {
    x <- stats::rnorm(n)
    list(x, 0.8 * (x > 0) + stats::rnorm(n))
  }),
  depends("linear, t with 2 degrees of freedom", function(n) {
    x <- stats::rt(n, 2)
    list(x, 0.35 * x + stats::rt(n, 2))
  }),
  depends("y = x1 x2 + noise", function(n) {
    x <- normal(n, 2)
    list(x, x[, 1] * x[, 2] + stats::rnorm(n))
  }),
  depends("1 of 4 columns", function(n) {
    x <- normal(n, 4)
    list(x, 0.5 * x[, 1] + stats::rnorm(n))
  }),
  depends("y = exp(0.4 x + noise)", function(n) {
    x <- stats::rnorm(n)
    list(x, exp(0.4 * x + stats::rnorm(n)))
  })
)

kernel_ways <- lapply(list(
  rbf = kernel_rbf(), laplace_L1 = kernel_laplace(),
  laplace_L2 = kernel_laplace(norm = "L2"), matern32 = kernel_matern(3 / 2),
  energy = kernel_energy()
), function(kernel) list(kernel = kernel))

# -----------------------------------------------------------------------------

run_cell <- function(cell, ways, reps, permutations, cores) {
  set.seed(seed_of(cell$name))
  seeds <- draw_seeds(reps)
  test <- list(mmd = mmd_test, hsic = hsic_test)[[cell$test]]
  rejected <- over(seeds, function(seed) {
    set.seed(seed)
    data <- cell$make(cell$n)
    vapply(ways, function(way) {
      asked <- c(data, way, filter = "none", B = permutations)
      do.call(test, asked)$p.value <= 0.05 + 1e-12
    }, NA)
  }, cores)
  power <- colMeans(do.call(rbind, rejected))
  data.frame(test = cell$test, n = cell$n, alternative = cell$name, t(power),
             reps = reps)
}

main <- function() {
  chosen <- read_options(
    commandArgs(TRUE),
    list(part = "all", reps = "200", permutations = "199", out = ".",
         cores = "1", quick = FALSE), usage
  )
  part <- one_of(chosen$part, "--part", c("bandwidths", "kernels", "all"))
  reps <- whole_number(chosen$reps, "--reps", 1)
  permutations <- whole_number(chosen$permutations, "--permutations", 19)
  cores <- whole_number(chosen$cores, "--cores", 1)
  out <- output_folder(chosen$out)
  use_one_thread()
  cores <- start_processes(cores)
  say("Share of ", reps, " data sets in which the test rejects at level 0.05, ",
      permutations, " permutations.")
  key <- c("test", "n", "alternative")
  run <- function(cells, ways) {
    do.call(rbind, lapply(cells, run_cell, ways, reps, permutations, cores))
  }
  if (part != "kernels") {
    found <- run(if (chosen$quick) cells[1] else cells, ways)
    print(found, digits = 3, row.names = FALSE)
    write_table(found, out, "bandwidth.csv", key)
  }
  if (part != "bandwidths") {
    few <- match(c("mmd", "hsic"), vapply(kernel_cells, `[[`, "", "test"))
    found <- run(if (chosen$quick) kernel_cells[few] else kernel_cells,
                 kernel_ways)
    print(found, digits = 3, row.names = FALSE)
    powers <- found[names(kernel_ways)]
    for (test in unique(found$test)) {
      mine <- powers[found$test == test, ]
      say(test, ", mean power in %: ", paste(
        sprintf("%s %.1f", names(mine), 100 * colMeans(mine)), collapse = ", "
      ), ". Laplace (L1) above RBF in ", sum(mine$laplace_L1 > mine$rbf),
      ", below in ", sum(mine$laplace_L1 < mine$rbf), " of ", nrow(mine), ".")
    }
    write_table(found, out, "bandwidth-kernels.csv", key)
  }
}

main()

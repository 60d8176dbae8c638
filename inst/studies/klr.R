# The eight simulated designs of Santoro, Waghmare and Panaretos (2025, arXiv
# 2508.07982): two samples of 100 points in 250 to 1,000 columns. Power at the
# level 0.05 of the joint test (filter = TRUE), of the MMD and of its other
# statistics without a ratio or with one alone, and of both one-sided ones,
# beside the figures that the paper prints for the likelihood ratio of centered
# embeddings (KLR0) and the aggregated MMD.
#
# All tests of a pair of samples see the same permutations. The p-values of the
# package are exact; those of KLR0 are not: the paper prints levels of 0 to
# 0.08.

usage <- "Usage: Rscript klr.R [options]

  --reps N            pairs of samples of each design (100)
  --permutations B    (199)
  --from DIR          show the table in DIR, compute nothing
  --out DIR           folder for the table (.)
  --cores N           processes, with the package future.apply (1); the
                      results do not depend on it
  --quick             the smallest form: three pairs of samples of each design
  --help              this text"

study_name <- "klr.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

# Designs ---------------------------------------------------------------------

n <- 100

normal <- function(d) matrix(stats::rnorm(n * d), n)

# Of variance 1 and correlation rho^|i - j|.
autoregressive <- function(rho, d = 500) {
  x <- normal(d)
  for (j in seq_len(d)[-1]) {
    x[, j] <- rho * x[, j - 1] + sqrt(1 - rho^2) * x[, j]
  }
  x
}

equicorrelated <- function(rho, d = 500) {
  sqrt(1 - rho) * normal(d) + sqrt(rho) * stats::rnorm(n)
}

# About a sphere of that radius.
sphere <- function(radius, d = 250) {
  x <- normal(d)
  radius * x / sqrt(rowSums(x^2)) + 0.02 * normal(d)
}

uniform <- function(d) matrix(stats::runif(n * d), n)

# Shorter by `cut` at both ends of the first `columns` sides.
hypercube <- function(cut, columns = 30, d = 500) {
  x <- uniform(d)
  x[, seq_len(columns)] <- cut + (1 - 2 * cut) * x[, seq_len(columns)]
  x
}

# Some columns are one variable of variance 3.
spiked <- function(columns = 5, d = 500) {
  x <- normal(d)
  x[, seq_len(columns)] <- sqrt(3) * stats::rnorm(n)
  x
}

laplace <- function(d) normal(d) * sqrt(2 * stats::rexp(n * d))

shifted <- function(x, shift, columns) {
  x[, seq_len(columns)] <- x[, seq_len(columns)] + shift
  x
}

designs <- list(
  "AR(1)" = function() {
    list(autoregressive(0.5), autoregressive(0.6))
  },
  "equicorrelation" = function() {
    list(equicorrelated(0.5), equicorrelated(0.525))
  },
  "spheres" = function() list(sphere(1), sphere(1.015)),
  "hypercube" = function() list(uniform(500), hypercube(0.1)),
  "spiked" = function() list(normal(500), spiked()),
  "sparse mean" = function() {
    list(normal(500), shifted(normal(500), 0.3, 20))
  },
  "mixture" = function() {
    list(normal(1000), shifted(normal(1000), rep(c(-4, 4), each = n / 2), 1))
  },
  "Laplace mean" = function() {
    list(laplace(500), shifted(laplace(500), 1, 4))
  }
)

words <- c(
  "AR(1)" = "correlation 0.5 or 0.6 to the power |i - j|, 500 columns",
  "equicorrelation" = "correlation 0.5 or 0.525 of all pairs, 500 columns",
  "spheres" = "near spheres of radius 1 or 1.015, 250 columns",
  "hypercube" = "uniform; 30 sides of 500 shorter by 0.1 at both ends",
  "spiked" = "5 of 500 columns are one variable of variance 3",
  "sparse mean" = "20 of 500 columns shifted by 0.3",
  "mixture" = "two halves, one column of 1,000 shifted by -4 or 4",
  "Laplace mean" = "4 of 500 columns, of Laplace laws, shifted by 1"
)

# Tests -----------------------------------------------------------------------

# p-values by name: of tests, and of statistics of the joint one.
p_values <- function(x, y, permutations, seed) {
  run <- function(filter) {
    set.seed(seed)
    mmd_test(x, y, filter = filter, B = permutations)
  }
  joint <- run(TRUE)
  rows <- joint$statistics
  alone <- !rows$order %in% 1:2
  sides <- run(test_filter(order = "one-sided"))
  c(joint = joint$p.value,
    stats::setNames(rows$p.value[alone], rows$statistic[alone]),
    "one-sided" = sides$p.value)
}

# A row for each pair of samples.
one_design <- function(design, reps, permutations, cores) {
  message(design)
  rows <- over(seq_len(reps), function(set) {
    set.seed(seed_of(design, set))
    both <- designs[[design]]()
    p <- p_values(both[[1]], both[[2]], permutations,
                  seed_of("draws", design, set))
    data.frame(design = design, set = set, t(p), check.names = FALSE)
  }, cores)
  do.call(rbind, rows)
}

# The table -------------------------------------------------------------------

printed <- read_table(file.path(here, "printed", "santoro2025.csv"))

show <- function(table) {
  tests <- setdiff(names(table), c("design", "set"))
  rejected <- rejects(as.matrix(table[tests]))
  at <- factor(table$design, unique(table$design))
  power <- rowsum(rejected + 0, at) / as.vector(table(at))
  beside <- printed[match(rownames(power), printed$design), -1]
  cells <- t(cbind(power, as.matrix(beside)))
  heads <- letters[seq_len(ncol(cells))]
  title <- paste(paste0(heads, ": ", words[rownames(power)]),
                 collapse = "\n  ")
  shown <- matrix(sprintf("%.2f", cells), nrow(cells),
                  dimnames = list(format(rownames(cells), width = 28), heads))
  say("Power at level ", nominal, " of samples of ", n, " points, ",
      max(table$set), " pairs (standard error at most ",
      sprintf("%.2f", 0.5 / sqrt(max(table$set))),
      "); below, as printed, of 200.")
  print_block(title, shown, 6)
  say("The joint test against KLR0: at least the printed power in ",
      sum(power[, "joint"] >= beside$KLR0), " of ", nrow(power), " designs.")
}

main <- function(args) {
  chosen <- read_options(args, list(
    reps = "100", permutations = "199", from = "", out = ".", cores = "1",
    quick = FALSE
  ), usage)
  if (nzchar(chosen$from)) {
    return(show(read_table(file.path(chosen$from, "klr.csv.gz"))))
  }
  reps <- if (chosen$quick) 3 else whole_number(chosen$reps, "--reps", 2)
  permutations <- whole_number(chosen$permutations, "--permutations", 19)
  cores <- start_processes(whole_number(chosen$cores, "--cores", 1))
  out <- output_folder(chosen$out)
  use_one_thread()
  all <- do.call(rbind, lapply(names(designs), one_design, reps, permutations,
                               cores))
  show(all)
  write_table(all, out, "klr.csv.gz", c("design", "set"))
}

main(commandArgs(trailingOnly = TRUE))

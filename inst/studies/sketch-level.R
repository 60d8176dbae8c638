# Level of the tests of sketches: how often they reject at the nominal 0.05 if
# there is nothing to find.
#
#   bins      mmd_test() by permutations of bins, of samples of one size and of
#             others: exact, if the landmarks come from all rows, or from others
#   spectrum  mmd_test() by the eigenvalues of the covariance: samples of one
#             size and of others, three groups, rows with weights
#   reference both with landmarks from the first sample alone, as those may be
#             of a reference that is kept for samples to come: then the rows
#             of that sample are not quite like others, to their features
#   hsic      hsic_test() of two independent variables, rows with weights too
#
# Points are normal; weights are exponential, and know nothing of the points.

usage <- "Usage: Rscript sketch-level.R [options]

  --reps N            data sets for each cell (2000)
  --permutations B    permutations, or draws (199)
  --out DIR           folder for the table (.)
  --cores N           processes, with the package future.apply (1); the
                      results do not depend on it
  --quick             the smallest form of all: one test
  --help              this text"

study_name <- "sketch-level.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

nominal <- 0.05
landmarks <- 50

draw_normal <- function(n, d) matrix(stats::rnorm(n * d), n)

# The sketch of samples of these sizes, by default on landmarks from all rows.
sketch_groups <- function(sizes, d, ..., weighted = FALSE) {
  n <- sum(sizes)
  groups <- rep(seq_along(sizes), sizes)
  kme_sketch(draw_normal(n, d), landmarks, groups = groups,
             weights = if (weighted) stats::rexp(n), ...)
}

# The sketches of a reference, whose landmarks are of it, and of other rows.
compare_reference <- function(sizes, d, null, B, kernel) {
  reference <- kme_sketch(draw_normal(sizes[1], d), landmarks, kernel, bin = 10)
  mmd_test(reference, draw_normal(sizes[2], d),
           control = test_control(null = null), B = B)
}

sketch_pair <- function(n, d, weighted = FALSE) {
  x <- draw_normal(n, d)
  y <- draw_normal(n, d)
  kme_sketch(x, lapply(list(x, y), kme_landmarks, m = landmarks), y = y,
             weights = if (weighted) stats::rexp(n))
}

# The cells: data sets of one give the p-value of one test.
cells <- function(B) {
  bins <- function(sizes, d, bin) {
    \() mmd_test(sketch_groups(sizes, d, bin = bin), B = B)
  }
  spectrum <- function(sizes, d, weighted = FALSE) {
    \() mmd_test(sketch_groups(sizes, d, weighted = weighted), B = B)
  }
  reference <- function(sizes, d, null, kernel = kernel_rbf()) {
    \() compare_reference(sizes, d, null, B, kernel)
  }
  hsic <- function(...) \() hsic_test(sketch_pair(...), B = B)
  list(
    "bins of 20, 300 and 300, d = 2" = bins(c(300, 300), 2, 20),
    "bins of 2, 30 and 300, d = 2" = bins(c(30, 300), 2, 2),
    "bins of 5, 30 and 300, d = 2" = bins(c(30, 300), 2, 5),
    "bins of 5, 30, 100, 200, d = 10" = bins(c(30, 100, 200), 10, 5),
    "spectrum, 150 and 150, d = 2" = spectrum(c(150, 150), 2),
    "spectrum, 30 and 300, d = 2" = spectrum(c(30, 300), 2),
    "spectrum, 10 and 290, d = 2" = spectrum(c(10, 290), 2),
    "spectrum, 10 and 290, d = 10" = spectrum(c(10, 290), 10),
    "spectrum, 50, 100, 150, d = 2" = spectrum(c(50, 100, 150), 2),
    "spectrum, 150 and 150, weights, d = 2" = spectrum(c(150, 150), 2, TRUE),
    "spectrum, 10 and 290, weights, d = 2" = spectrum(c(10, 290), 2, TRUE),
    "reference, bins, 300 and 60, d = 2" = reference(c(300, 60), 2,
                                                     "permutation"),
    "reference, bins, 300 and 60, d = 10" = reference(c(300, 60), 10,
                                                      "permutation"),
    "reference, bins, 3000 and 600, d = 10" = reference(c(3000, 600), 10,
                                                        "permutation"),
    "reference, spectrum, 300 and 60, d = 10" = reference(c(300, 60), 10,
                                                          "spectrum"),
    "reference, bins, 60 and 300, d = 10" = reference(c(60, 300), 10,
                                                      "permutation"),
    "reference, bins, theta = 2, 60 and 300, d = 10" =
      reference(c(60, 300), 10, "permutation", kernel_rbf(2)),
    "reference, bins, theta = 1, 60 and 300, d = 10" =
      reference(c(60, 300), 10, "permutation", kernel_rbf(1)),
    "hsic, 100, 1 and 1 columns" = hsic(100, 1),
    "hsic, 300, 1 and 1 columns" = hsic(300, 1),
    "hsic, 300, 3 and 3 columns" = hsic(300, 3),
    "hsic, 300, weights, 1 and 1 columns" = hsic(300, 1, TRUE)
  )
}

# The share of data sets that a cell rejects, with seeds of its own.
level_of <- function(name, run, reps, cores) {
  set.seed(seed_of(name))
  seeds <- draw_seeds(reps)
  p <- unlist(over(seq_len(reps), function(r) {
    set.seed(seeds[r])
    run()$p.value
  }, cores))
  # p-values are multiples of 1/(B + 1).
  rejected <- sum(p <= nominal + 1e-12)
  data.frame(test = name, reps = reps, rejected = rejected,
             rate = rejected / reps)
}

main <- function(args) {
  chosen <- read_options(args, list(
    reps = "2000", permutations = "199", out = ".", cores = "1", quick = FALSE
  ), usage)
  quick <- chosen$quick
  reps <- whole_number(chosen$reps, "--reps", 2)
  B <- whole_number(chosen$permutations, "--permutations", 19)
  cores <- start_processes(whole_number(chosen$cores, "--cores", 1))
  out <- output_folder(chosen$out)
  use_one_thread()
  band <- stats::qbinom(c(0.0005, 0.9995), reps, nominal) / reps
  say("Rejections at the nominal level ", nominal, " where nothing is to be ",
      "found: ", reps, " data sets, ", B, " permutations or draws, ", landmarks,
      " landmarks. 99.9% band of a level of ", nominal, ": ",
      sprintf("%.4f to %.4f.", band[1], band[2]))
  cat("\n")
  all <- cells(B)
  if (quick) all <- all[1]
  results <- do.call(rbind, Map(\(name, run) {
    row <- level_of(name, run, reps, cores)
    row$verdict <- if (row$rate < band[1]) "below" else
      if (row$rate > band[2]) "ABOVE" else "in the band"
    cat(sprintf("%-47s %.4f  %s\n", name, row$rate, row$verdict))
    row
  }, names(all), all))
  rownames(results) <- NULL
  cat("\n")
  write_table(results, out, "sketch-level.csv", "test")
}

main(commandArgs(trailingOnly = TRUE))

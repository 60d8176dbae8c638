# Rscript bench/smooth.R
# Smoothing about the mean and stacking: the selection against as many S-KMSE
# fits as it scores estimates and against the naive twin of the tests, the stack
# against an F-KMSE selection, as ratios in one run; bags; memory.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
source(file.path(dirname(here), "..", "tests", "testthat", "helper-smooth.R"))
set.seed(1)

normal <- function(n, d) matrix(rnorm(n * d), n)
smallest <- function(seconds) apply(seconds, 1, min)

n <- 500
d <- 20
theta <- 5
kernel <- kernel_rbf(theta)
x <- normal(n, d)
part <- x[seq_len(475), ]

heading("Selection of smoothing, n = 500, d = 20: 14 values of h, 20 folds")
seconds <- smallest(in_turn(
  3, kme(x, kernel, "smooth"),
  for (i in seq_len(280)) kme(part, kernel, "skmse")
))
row("kme(x, k, \"smooth\")", seconds[1])
row("280 S-KMSE fits of 475 points", seconds[2])
bar("smoothing / S-KMSE fits", seconds[1] / seconds[2], 1.5, at_least = FALSE)
for (threads in 1:2) {
  row(paste("the same,", threads, "threads"),
      with_threads(threads, best_short(kme(x, kernel, "smooth"), 3)))
}
# Each value of h takes the twin as long.
value <- 0.3
naive <- 14 * system.time(
  twin <- smooth_scores_R(x, rep(theta, d), value)
)[["elapsed"]]
score <- kme(x, kernel, "smooth")$score
stopifnot(abs(score$score[score$h == value] - twin$score) < 1e-10)
row("naive R, 14 times one value of h", naive)
bar("naive R / smoothing", naive / seconds[1], 50)

heading("Stack of seven candidates, n = 500, d = 20, 20 folds")
seconds <- smallest(in_turn(
  7, kme(x, kernel, "stack"), kme(x, kernel, "fkmse")
))
row("kme(x, k, \"stack\")", seconds[1])
row("kme(x, k, \"fkmse\"), loocv", seconds[2])
bar("stack / F-KMSE", seconds[1] / seconds[2], 3, at_least = FALSE)

heading("The guard of a stack, n = 50, d = 5")
few <- normal(50, 5)
seconds <- smallest(in_turn(
  5, for (i in 1:40) kme(few, kernel_rbf(2), est_stack()),
  for (i in 1:40) kme(few, kernel_rbf(2), est_stack(guard = FALSE))
))
bar("with / without", seconds[1] / seconds[2], 1.1, at_least = FALSE)

heading("200 bags of 20 points, d = 5, each by itself (not barred)")
bags <- normal(4000, 5)
id <- rep(seq_len(200), each = 20)
for (estimator in c("kme", "fkmse", "smooth", "stack")) {
  for (threads in 1:2) {
    row(sprintf("estimator = \"%s\", %d threads", estimator, threads),
        with_threads(threads, best(bag_gram(bags, kernel_rbf(2), estimator,
                                            id = id, scale = FALSE), 2)))
  }
}

heading("Memory")
extra_of <- function(estimator, n) {
  extra <- peak_memory(
    sprintf("x <- matrix(rnorm(%d * 5), %d)", n, n),
    sprintf("f <- kme(x, kernel_rbf(2), \"%s\")", estimator)
  )
  cat(sprintf("  %s, n = %d: extra peak memory %.0f MB (n x n: %.0f MB)\n",
              estimator, n, extra, 8e-6 * n^2))
  extra * 1e6 / (8 * n^2)
}
bar("smoothing / an n x n matrix", extra_of("smooth", 3000), 0.25,
    at_least = FALSE)
# One n x n is the matrix itself.
bar("stack / an n x n matrix", extra_of("stack", 3000), 1.5, at_least = FALSE)

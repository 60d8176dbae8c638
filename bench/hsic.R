# Rscript bench/hsic.R [gathers]
# Speed of hsic_test() against its peers, as ratios in one run, draws of the
# permutations included, on all threads and on one (which is what counts where
# other work takes the processors). With the argument also n = 20000, d = 5,
# which stores two matrices of 3.2 GB.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
set.seed(1)

B <- 999
points <- function(n, d) matrix(rnorm(n * d), n)
ours <- function(x, y, times = 5) {
  kernel <- kernel_rbf(sqrt(2 * ncol(x)))
  best(hsic_test(x, y, kernel, kernel, B = B), times)
}
compare <- function(peer, theirs, seconds, asked) {
  row(peer, theirs)
  bar(paste(peer, "/ hsic_test"), theirs / seconds, asked)
}
dcov <- function(x, y, times = 1) {
  measured("energy", best(energy::dcov.test(x, y, R = B), times))
}

heading("n = 500, B = 999")
for (d in c(5, 1)) {
  x <- points(500, d)
  y <- points(500, d)
  row(sprintf("hsic_test, d = %d, one thread", d), with_threads(1, ours(x, y)))
  seconds <- ours(x, y)
  row(sprintf("hsic_test, d = %d", d), seconds)
  compare("energy::dcov.test", dcov(x, y, 3), seconds, 3)
  if (d == 5) {
    # A tenth of the permutations: the time is proportional to them.
    theirs <- measured("dHSIC", 10 * system.time(
      dHSIC::dhsic.test(x, y, B = 100, method = "permutation")
    )[["elapsed"]])
    compare("dHSIC::dhsic.test (10 x B = 100)", theirs, seconds, 50)
  }
}

heading("n = 200, B = 999: many bandwidths, clusters")
x <- points(200, 1)
y <- points(200, 1)
row("hsic_test, median", best_short(hsic_test(x, y, filter = "none", B = B), 3))
row("hsic_test, joint", best(hsic_test(x, y, B = B), 3))
row("hsic_test, bandwidths = \"fuse\", 25 pairs",
    best(hsic_test(x, y, bandwidths = "fuse", B = B), 3))
row("hsic_test, 40 clusters of 5",
    best_short(hsic_test(x, y, clusters = rep(1:40, 5), B = B), 3))

heading("n = 2000, B = 999")
x <- points(2000, 5)
y <- points(2000, 5)
theirs <- measured(
  "energy", system.time(energy::dcov.test(x, y, R = B))[["elapsed"]]
)
row("hsic_test, d = 5 (gathers), one thread", with_threads(1, ours(x, y, 2)))
seconds <- ours(x, y, 3)
row("hsic_test, d = 5 (gathers)", seconds)
compare("energy::dcov.test", theirs, seconds, 12)
x1 <- x[, 1, drop = FALSE]
y1 <- y[, 1, drop = FALSE]
row("hsic_test, d = 1 (low rank), one thread", with_threads(1, ours(x1, y1)))
seconds <- ours(x1, y1)
row("hsic_test, d = 1 (low rank)", seconds)
# Distances of one column cost energy no less after they are computed.
compare("energy::dcov.test", theirs, seconds, 50)
row("of which drawing the permutations",
    best(kernmean:::draw_permutations(2000, B)))

heading("n = 20000, B = 999")
x <- points(20000, 1)
y <- points(20000, 1)
row("hsic_test, d = 1 (low rank)", ours(x, y, 1))
setup <- "set.seed(1); x <- matrix(rnorm(20000)); k <- kernel_rbf(1.4)"
extra <- peak_memory(setup, "fit <- hsic_test(x, rev(x), k, k, B = 999)")
cat(sprintf("  extra peak memory %.0f MB (a matrix would be 3200 MB)\n", extra))
if ("gathers" %in% commandArgs(TRUE)) {
  x <- points(20000, 5)
  y <- points(20000, 5)
  kernel <- kernel_rbf(3)
  row("hsic_test, d = 5 (gathers)",
      system.time(hsic_test(x, y, kernel, kernel, B = B))[["elapsed"]])
}

heading("30 points, B = 199, 1 thread, in turn")
x <- rnorm(30)
y <- rnorm(30)
energy <- kernel_energy()
found <- with_threads(1, apply(in_turn(
  30, for (i in 1:10) hsic_test(x, y, energy, energy, B = 199),
  if (has("energy")) for (i in 1:10) energy::dcov.test(x, y, R = 199)
), 1, median)) / 10
row("hsic_test", found[1])
theirs <- measured("energy", found[2])
row("energy::dcov.test", theirs)
bar("hsic_test / energy", found[1] / theirs, 1, at_least = FALSE)

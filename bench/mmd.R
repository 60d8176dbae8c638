# Rscript bench/mmd.R
# Permutation tests of two samples: mmd_test() against energy::eqdist.etest()
# and against the matrix product by hand, draws of the permutations included, as
# ratios in one run. Run it under each BLAS; the table names it.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
set.seed(1)

d <- 10
points <- function(n) matrix(rnorm(n * d), n)
kernel <- kernel_rbf(4)

# What one would write without the package: K once, the labels of all
# permutations in one matrix Z, and the diagonal of Z'KZ.
by_hand <- function(x, y, B) {
  pooled <- rbind(x, y)
  m <- nrow(x)
  n <- nrow(pooled)
  squares <- rowSums(pooled^2)
  K <- exp(-(outer(squares, squares, "+") - 2 * tcrossprod(pooled)) / 32)
  Z <- vapply(seq_len(B), \(b) {
    z <- numeric(n)
    z[sample.int(n)[seq_len(m)]] <- 1
    z
  }, numeric(n))
  forms <- colSums(Z * (K %*% Z))
  reach <- drop(rowSums(K) %*% Z)
  forms / m^2 + (sum(K) - 2 * reach + forms) / (n - m)^2 -
    2 * (reach - forms) / (m * (n - m))
}

heading("1,000 + 1,000 points, d = 10, B = 999")
x <- points(1000)
y <- points(1000)
ours <- vapply(1:2, \(t) {
  with_threads(t, best_short(mmd_test(x, y, kernel, filter = "none", B = 999)))
}, numeric(1))
row("mmd_test, 1 thread", ours[1])
row("mmd_test, 2 threads", ours[2])
row("of that, the draws",
    best_short(kernmean:::draw_permutations(c(1000, 1000), 999)))
row("mmd_test, median bandwidth, 2 threads",
    best_short(mmd_test(x, y, filter = "none", B = 999)))
hand <- best(by_hand(x, y, 999), 3)
row("K and K %*% Z by hand", hand)
bar("by hand / mmd_test, 2 threads", hand / ours[2], 1)
theirs <- measured("energy", best(
  energy::eqdist.etest(rbind(x, y), c(1000, 1000), R = 999), 1
))
row("energy::eqdist.etest", theirs)
bar("energy / mmd_test, 1 thread", theirs / ours[1], 30)
bar("energy / mmd_test, 2 threads", theirs / ours[2], 30)
for (name in c("mmkme", "skmse")) {
  row(paste0("mmd_test, estimator \"", name, "\""),
      best_short(mmd_test(x, y, kernel, name, filter = "none", B = 999), 3))
}
row("mmd_test, bandwidths = \"fuse\"",
    best_short(mmd_test(x, y, bandwidths = "fuse", B = 999), 3))
labels <- 2000 * 1000 / 8 / 1e6
memory <- peak_memory(
  "x <- matrix(rnorm(1e4), 1000); y <- x + 1; k <- kernel_rbf(4)",
  "invisible(mmd_test(x, y, k, filter = FALSE, B = 999))"
)
cat(sprintf("  extra peak memory %.1f MB (labels %.2f MB, K would be 32 MB)\n",
            memory, labels))

heading("10,000 + 10,000 points, d = 10, all 999 permutations")
x <- points(10000)
y <- points(10000)
large <- best(mmd_test(x, y, kernel, filter = "none", B = 999), 2)
row("mmd_test", large)
bar("energy at 2,000 points / mmd_test at 20,000", theirs / large, 1)
row("mmd_test, bins = 25",
    best(mmd_test(x, y, kernel, control = test_control(bins = 25), B = 999), 3))

heading("25,000 + 25,000 points, d = 10, bins by default")
x <- points(25000)
y <- points(25000)
row("mmd_test", best(mmd_test(x, y, kernel, filter = "none", B = 999), 2))
row("kme(), one fold over the same tiles",
    best(kme(rbind(x, y), kernel), 2))

heading("1,000 + 1,000 points in clusters of 10, d = 10, B = 999")
x <- points(1000)
y <- points(1000)
id <- rep(1:200, each = 10)
row("mmd_test, clusters", best_short(
  mmd_test(x, y, kernel, clusters = id, filter = "none", B = 999), 3
))

heading("500 + 500 points, d = 10, B = 999, 1 thread, in turn")
x <- points(500)
y <- points(500)
found <- with_threads(1, apply(in_turn(
  15, mmd_test(x, y, kernel, filter = "none", B = 999),
  kernmean:::draw_permutations(c(500, 500), 999),
  for (b in 1:999) sample.int(1000)
), 1, median))
row("mmd_test", found[1])
row("of that, the draws", found[2])
row("draws of all points by sample.int()", found[3])
bar("draws / mmd_test", found[2] / found[1], 0.5, at_least = FALSE)
bar("with draws of all points / mmd_test",
    1 + (found[3] - found[2]) / found[1], 1.5)

heading("30 + 30 points, B = 199, in turn")
x <- points(30)
y <- points(30)
both <- rbind(x, y)
energy <- kernel_energy()
# Seconds of a call, on one thread, on two, and of energy.
small <- function() {
  times <- in_turn(
    30,
    with_threads(1, for (i in 1:10) mmd_test(x, y, energy, B = 199)),
    with_threads(2, for (i in 1:10) mmd_test(x, y, energy, B = 199)),
    if (has("energy")) {
      for (i in 1:10) energy::eqdist.etest(both, c(30, 30), R = 199)
    }
  )
  apply(times, 1, median) / 10
}
alone <- small()
busy <- with_busy(small())
row("mmd_test, 1 thread", alone[1])
row("mmd_test, 2 threads", alone[2])
bar("2 threads / 1", alone[2] / alone[1], 1.1, at_least = FALSE)
bar("2 threads / 1, beside a busy process", busy[2] / busy[1], 1.1,
    at_least = FALSE)
theirs <- measured("energy", alone[3])
row("energy::eqdist.etest", theirs)
bar("mmd_test / energy", alone[1] / theirs, 1, at_least = FALSE)

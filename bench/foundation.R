# Rscript bench/foundation.R
# Speed and memory of kernel matrices, S-KMSE and F-KMSE against their peers, as
# ratios in one run. Run it under each BLAS; the table names it.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
set.seed(1)

x <- matrix(rnorm(5000 * 20), 5000)
theta <- 5
kernel <- kernel_rbf(theta)

heading("kernel_matrix, RBF, n = 5000, d = 20")
ours <- vapply(1:2, \(t) {
  with_threads(t, best(kernel_matrix(x, kernel = kernel)))
}, numeric(1))
row("kernel_matrix, 1 thread", ours[1])
row("kernel_matrix, 2 threads", ours[2])
theirs <- measured("kernlab", {
  peer <- kernlab::rbfdot(1 / (2 * theta^2))
  best(kernlab::kernelMatrix(peer, x))
})
row("kernlab::kernelMatrix", theirs)
bar("kernlab / 1 thread", theirs / ours[1], 4)
bar("kernlab / 2 threads", theirs / ours[2], 7)
sklearn <- python(c(
  "import numpy, time", "from sklearn.metrics.pairwise import rbf_kernel",
  "x = numpy.random.default_rng(1).normal(size=(5000, 20))", "best = 1e9",
  "for i in range(8):",
  "    start = time.perf_counter(); k = rbf_kernel(x, gamma=0.02)",
  "    best = min(best, time.perf_counter() - start); del k",
  "print(best)"
))
row("scikit-learn rbf_kernel", sklearn)
bar("scikit-learn / 2 threads", sklearn / ours[2], 1)

heading("S-KMSE from data, numeric bandwidth, n = 5000, d = 20")
shrunk <- vapply(1:2, \(t) {
  with_threads(t, best_short(kme(x, kernel, "skmse")))
}, numeric(1))
row("kme(x, kernel, \"skmse\"), 1 thread", shrunk[1])
row("kme(x, kernel, \"skmse\"), 2 threads", shrunk[2])
theirs <- measured("kernlab", best(mean(kernlab::kernelMatrix(peer, x))))
row("kernlab::kernelMatrix and its mean", theirs)
bar("kernlab / 1 thread", theirs / shrunk[1], 30)
bar("kernlab / 2 threads", theirs / shrunk[2], 60)
setup <- "set.seed(1); x <- matrix(rnorm(5000 * 20), 5000)"
extra <- peak_memory(setup, "fit <- kme(x, kernel_rbf(5), 'skmse')")
bar("extra peak memory, MB", extra, 20, at_least = FALSE)
median_time <- best_short(kme(x, kernel_rbf(), "skmse"), 3)
row("the same with the median bandwidth", median_time)

heading("S-KMSE, n = 50000, d = 10, against a loop that only evaluates")
large <- matrix(rnorm(50000 * 10), 50000)
limit <- bare_loop(dirname(here))
for (t in 1:2) {
  seconds <- with_threads(t, best(kme(large, kernel_rbf(4), "skmse"), 3))
  row(sprintf("kme, %d thread%s", t, if (t > 1) "s" else ""), seconds)
  bare <- limit(50000, 10, t)
  row("bare loop", bare)
  bar("kme / bare loop", seconds / bare, 1.2, at_least = FALSE)
}
setup <- "set.seed(1); x <- matrix(rnorm(50000 * 10), 50000)"
extra <- peak_memory(setup, "fit <- kme(x, kernel_rbf(4), 'skmse')")
cat(sprintf("  extra peak memory %.0f MB (the data: 4 MB; K would be 20 GB)\n",
            extra))

heading("exp of the core, nanoseconds a value, one thread")
most <- c(baseline = 3.5, AVX2 = 0.9, "AVX-512" = 0.45)
for (level in 0:2) {
  ns <- limit("exp", level, 1)
  if (length(ns)) bar(names(most)[level + 1], ns, most[[level + 1]], FALSE)
}

heading("F-KMSE from data, n = 2000, d = 20")
y <- matrix(rnorm(2000 * 20), 2000)
K <- kernel_matrix(y, kernel = kernel)
dense <- best(eigen(K, symmetric = TRUE), 3)
row("eigen(K, symmetric = TRUE)", dense)
openblas <- grepl("openblas", extSoftVersion()[["BLAS"]])
gcv <- best(kme(y, kernel, "fkmse", select = "gcv"))
row("kme fkmse, gcv", gcv)
bar("gcv / eigen", gcv / dense, if (openblas) 0.3 else 0.1, at_least = FALSE)
loocv <- best(kme(y, kernel, "fkmse", select = "loocv"), 3)
row("kme fkmse, loocv", loocv)
bar("loocv / eigen", loocv / dense, 1.2, at_least = FALSE)
row("kme fkmse, lambda given",
    best(kme(y, kernel, "fkmse", lambda = 1), 3))

heading("Growth with n, d = 10: time as n^2, memory as n")
cat(sprintf("  %7s %12s %10s %12s %10s %11s\n", "n", "skmse (s)", "/ n^2 (ns)",
            "predict (s)", "/ n^2 (ns)", "memory (MB)"))
for (n in 1000 * 2^(0:6)) {
  z <- large[rep_len(seq_len(50000), n), , drop = FALSE]
  fit <- kme(z, kernel_rbf(4), "skmse")
  times <- if (n > 2e4) 1 else 3
  seconds <- best_short(kme(z, kernel_rbf(4), "skmse"), times)
  ahead <- best_short(predict(fit, z + 1), times)
  setup <- sprintf("set.seed(1); x <- matrix(rnorm(%d * 10), %d)", n, n)
  extra <- peak_memory(setup, "fit <- kme(x, kernel_rbf(4), 'skmse')")
  cat(sprintf("  %7d %12.4f %10.3f %12.4f %10.3f %11.1f\n", n, seconds,
              1e9 * seconds / n^2, ahead, 1e9 * ahead / n^2, extra))
}

heading("Sums and products of kernels, n = 5000, one thread")
for (d in c(2, 20)) {
  z <- x[, seq_len(d)]
  kernels <- list(kernel_rbf(sqrt(d)),
                  kernel_rbf(sqrt(d)) + kernel_rbf(2 * sqrt(d)),
                  kernel_rbf(sqrt(d)) * kernel_rbf(2 * sqrt(d)))
  # Processor time, turn by turn: others may work beside it.
  each <- with_threads(1, replicate(8, vapply(kernels, \(k) {
    sum(system.time(for (i in 1:4) kme(z, k))[1:2]) / 4
  }, 0)))
  seconds <- apply(each, 1, min)
  row(sprintf("kme, RBF, d = %d", d), seconds[1])
  bar("the sum of two / one", seconds[2] / seconds[1], 2.2, at_least = FALSE)
  bar("the product of two / one", seconds[3] / seconds[1], 2.2, FALSE)
}

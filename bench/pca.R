# Rscript bench/pca.R [--large]
# Kernel PCA: kme_pca() against kernlab::kpca() and scikit-learn's KernelPCA as
# ratios in one run, from data, at equal accuracy of the eigenvalues. Run it
# under each BLAS; the table names it. --large adds n = 20,000 with the matrix
# stored (3.2 GB) and n = 50,000 without.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
large <- "--large" %in% commandArgs(trailingOnly = TRUE)

# Milliseconds of scikit-learn on the same points (its best of 5, after one that
# warms up), and its eigenvalues.
sklearn <- function(x, gamma, ncomp) {
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  write.table(x, file, sep = ",", row.names = FALSE, col.names = FALSE)
  python(c(
    "import numpy as np, time", "from sklearn.decomposition import KernelPCA",
    sprintf("x = np.loadtxt('%s', delimiter=',')", file),
    sprintf(paste("make = lambda: KernelPCA(%d, kernel='rbf', gamma=%.17g,",
                  "eigen_solver='arpack').fit(x)"), ncomp, gamma),
    "make()", "times = []",
    "for _ in range(5):", "  t = time.perf_counter(); f = make()",
    "  times.append(time.perf_counter() - t)",
    "print(1000 * min(times))",
    "for v in f.eigenvalues_: print('%.17g' % v)"
  ))
}

# Scores of 10 new points: kernlab evaluates the n x n matrix again.
compare_predict <- function(fit, peer) {
  z <- fit$sample$x[1:10, ] + 0.1
  mine <- best_short(predict(fit, z))
  its <- measured("kernlab", best(kernlab::predict(peer, z), 1))
  row("predict on 10 points, kme_pca", mine)
  row("predict on 10 points, kernlab", its)
  bar("kernel values, kernlab / kme_pca", (fit$n^2 + 10 * fit$n) / (10 * fit$n),
      1000)
  bar("time, kernlab / kme_pca", its / mine, 1000)
}

compare_values <- function(fit, reference) {
  difference <- if (anyNA(reference)) {
    reference
  } else {
    max(abs(fit$values / reference - 1))
  }
  bar("largest difference of eigenvalues, relative", difference, 1e-8,
      at_least = FALSE)
}

compare <- function(label, x, ncomp = 20) {
  heading(label)
  theta <- kme(x)$kernel$bandwidth
  kernel <- kernel_rbf(theta)
  gamma <- 1 / (2 * theta^2)
  seconds <- vapply(1:2, \(t) {
    with_threads(t, best_short(kme_pca(x, kernel, ncomp), 5))
  }, numeric(1))
  fit <- kme_pca(x, kernel, ncomp)
  row("kme_pca, 1 thread", seconds[1])
  row("kme_pca, 2 threads", seconds[2])
  row("kme_pca, 2 threads, median bandwidth",
      best_short(kme_pca(x, ncomp = ncomp), 3))
  ours <- min(seconds)
  openblas <- grepl("openblas", extSoftVersion()[["BLAS"]])
  theirs <- measured("kernlab", system.time(
    peer <- kernlab::kpca(x, kernel = "rbfdot", kpar = list(sigma = gamma),
                          features = ncomp)
  )[["elapsed"]])
  row("kernlab::kpca", theirs)
  bar("kernlab / kme_pca", theirs / ours, if (openblas) 25 else 100)
  compare_values(fit, measured("kernlab", unname(kernlab::eig(peer))))
  compare_predict(fit, peer)
  found <- sklearn(x, gamma, ncomp)
  theirs <- if (anyNA(found)) found else found[1L] / 1000
  row("sklearn KernelPCA, arpack", theirs)
  bar("kme_pca / scikit-learn", ours / theirs, if (openblas) 1.3 else 0.6,
      at_least = FALSE)
  compare_values(fit, if (anyNA(found)) found else found[-1L] / nrow(x))
}

set.seed(1)
n <- 2000
normal <- matrix(rnorm(n * 20), n)
compare("n = 2,000, d = 20, 20 components: normal points", normal)
compare("n = 2,000, d = 20: a fast spectrum, sd 1/1, ..., 1/20",
        normal %*% diag(1 / (1:20)))
compare("n = 2,000, d = 20: a slow spectrum, sd 1 in 20 columns, Laplace tails",
        matrix(rexp(n * 20) * sample(c(-1, 1), n * 20, TRUE), n))
corners <- as.matrix(expand.grid(rep(list(c(-1, 1)), 11)))
dimnames(corners) <- NULL
compare("n = 2,048: corners of a cube, eigenvalues of multiplicity 11 and 55",
        corners)

if (large) {
  heading("predict, n = 10,000, d = 20")
  x <- matrix(rnorm(10000 * 20), 10000)
  fit <- kme_pca(x, kernel_rbf(6), 20)
  # kernlab's own fit would take an hour: its object with our components.
  peer <- measured("kernlab", methods::new(
    methods::getClass("kpca", where = asNamespace("kernlab")),
    pcv = fit$vectors, xmatrix = x, kernelf = kernlab::rbfdot(1 / 72)
  ))
  compare_predict(fit, peer)

  heading("n = 20,000, d = 10, 20 components")
  x <- matrix(rnorm(20000 * 10), 20000)
  row("from points, K not stored",
      system.time(a <- kme_pca(x, kernel_rbf(4), 20))[["elapsed"]])
  row("gram()", system.time(g <- gram(x, kernel_rbf(4)))[["elapsed"]])
  row("from the gram, K stored once",
      system.time(b <- kme_pca(g, ncomp = 20))[["elapsed"]])
  bar("largest difference of eigenvalues, relative",
      max(abs(a$values / b$values - 1)), 1e-8, at_least = FALSE)
  rm(g, b)
  heading("n = 50,000, d = 10, 20 components, K not stored")
  x <- matrix(rnorm(50000 * 10), 50000)
  row("kme_pca",
      system.time(kme_pca(x, kernel_rbf(4), 20))[["elapsed"]])
  peak <- peak_memory("x <- matrix(rnorm(50000 * 10), 50000)",
                      "fit <- kme_pca(x, kernel_rbf(4), 20)")
  cat(sprintf("  peak memory beyond the data %.0f MB; K would take %.0f MB\n",
              peak, 8 * 50000^2 / 1e6))
}

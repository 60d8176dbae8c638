# Rscript bench/python.R
# The same work beside scikit-learn and numpy, where python3 has them, each on
# one thread: processor seconds, the best of three. Python and R may be bound to
# one BLAS (Debian's alternatives) or to two; Python says which it has.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
Sys.setenv(OMP_NUM_THREADS = 1, OPENBLAS_NUM_THREADS = 1)
source(file.path(dirname(here), "helpers.R"))
kernmean_threads(1)
set.seed(1)

# Seconds of an expression in each language. `setup`: lines of Python, in which
# x and y are the points.
folder <- tempfile()
dir.create(folder)
save_points <- function(name, points) {
  write.table(points, file.path(folder, name), sep = ",", row.names = FALSE,
              col.names = FALSE)
}
in_python <- function(points, setup, timed) {
  for (name in names(points)) save_points(name, points[[name]])
  python(c(
    "import numpy as np, time",
    "from sklearn.metrics.pairwise import rbf_kernel, euclidean_distances",
    "from sklearn.decomposition import KernelPCA",
    "from sklearn.kernel_ridge import KernelRidge",
    sprintf("%s = np.loadtxt('%s', delimiter=',', ndmin=2)", names(points),
            file.path(folder, names(points))),
    setup, "def run():", paste0("  ", timed), "  return value", "times = []",
    "for _ in range(4):", "  start = time.process_time()", "  found = run()",
    "  times.append(time.process_time() - start)", "print(min(times[1:]))",
    "for v in np.ravel(found)[:3]: print('%.17g' % v)"
  ))
}
in_r <- function(f) {
  f()
  min(vapply(1:3, \(i) {
    gc(FALSE)
    sum(system.time(f(), gcFirst = FALSE)[c("user.self", "sys.self")])
  }, 1))
}

# most: how many times slower than Python we may be. same: the first numbers
# that Python must have found.
beside <- function(task, f, theirs, most, same = NULL) {
  heading(task)
  if (is.na(theirs[1L])) {
    cat("  skipped: ", reason_of(theirs), "\n", sep = "")
    return(invisible())
  }
  if (length(same)) {
    found <- theirs[1L + seq_along(same)]
    stopifnot(max(abs(found / same - 1)) < 1e-6)
  }
  ours <- in_r(f)
  row("kernmean", ours)
  row("Python", theirs[1L])
  bar("kernmean / Python", ours / theirs[1L], most, at_least = FALSE)
}

x <- matrix(rnorm(5000 * 20), 5000)
theta <- 5
kernel <- kernel_rbf(theta)
gamma <- sprintf("gamma = %.17g", 1 / (2 * theta^2))
k <- exp(-as.matrix(dist(x[1:3, ]))^2 / (2 * theta^2))
beside(
  "RBF Gram matrix, n = 5,000, d = 20",
  \() kernel_matrix(x, kernel = kernel),
  in_python(list(x = x), gamma, "value = rbf_kernel(x, gamma=gamma)"), 1,
  k[, 1]
)
beside(
  "Kernel mean at its own points",
  \() kme(x, kernel),
  in_python(list(x = x), gamma,
            "value = rbf_kernel(x, gamma=gamma).mean(axis=0)"), 1,
  unname(kme(x, kernel)$fitted[1:3])
)

some <- x[1:2000, ]
fit <- kme_pca(some, kernel, ncomp = 20)
beside(
  "Kernel PCA, n = 2,000, 20 components",
  \() kme_pca(some, kernel, ncomp = 20),
  in_python(list(x = some), gamma, paste0(
    "value = KernelPCA(20, kernel='rbf', gamma=gamma, eigen_solver='arpack')",
    ".fit(x).eigenvalues_ / len(x)"
  )), 1, fit$values[1:3]
)

# F-KMSE with a given ridge is the kernel ridge regression of its row means.
response <- kme(some, kernel)$fitted
beside(
  "Kernel ridge regression, n = 2,000, one ridge",
  \() kme(some, kernel, est_fkmse(lambda = 0.01)),
  in_python(list(x = some, y = cbind(response)), gamma, paste0(
    "value = KernelRidge(alpha=20, kernel='rbf', gamma=gamma)",
    ".fit(x, y).dual_coef_"
  )), 1
)

one <- matrix(rnorm(1000 * 10), 1000)
two <- matrix(rnorm(1000 * 10, 0.1), 1000)
by_numpy <- in_python(list(x = one, y = two), c(
  "rng = np.random.default_rng(1)", "labels = np.repeat([1.0, -1.0], 1000)"
), c(
  "z = np.vstack((x, y))",
  "d = euclidean_distances(z)",
  "width = np.median(d[np.triu_indices(len(z), 1)])",
  "k = rbf_kernel(z, gamma=1 / (2 * width**2))",
  "moved = [labels] + [rng.permutation(labels) for _ in range(999)]",
  "u = np.array(moved).T / 1000", "t = np.sum(u * (k @ u), axis=0)",
  "value = [np.mean(t >= t[0])]"
))
beside("MMD test, 1,000 + 1,000 points, B = 999: the default",
       \() mmd_test(one, two), by_numpy, 3)
beside("The same without a filter", \() mmd_test(one, two, filter = "none"),
       by_numpy, 1)
unlink(folder, recursive = TRUE)

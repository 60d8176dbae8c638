# Rscript bench/sketch.R [rows]
# Sketches of 1e6 rows in 10 columns through 500 landmarks, from a matrix:
# against the bare rectangular fold of bench/limit.c, against products by the
# BLAS of R, kernlab::kernelMatrix() and scikit-learn, as ratios in one run; and
# randomly pivoted Cholesky against plain R and against exact pivots. Run it
# under each BLAS; the table names it.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
internal <- asNamespace("kernmean")
n <- as.double(commandArgs(trailingOnly = TRUE))
n <- if (length(n)) n[1] else 1e6
d <- 10
m <- 500
theta <- 4
panel <- 2048
threads <- kernmean_threads()
limit <- limit_program(dirname(here))

# Of what takes long: one run.
once <- function(expression) system.time(expression)[["elapsed"]]

set.seed(1)
x <- matrix(rnorm(n * d), n)
kernel <- kernel_rbf(theta)
landmarks <- kme_landmarks(x[sample.int(n, m), ], m, kernel,
                           method = "uniform")
s <- landmarks$variable$sample$x # in their order
sketch <- function(second) {
  kme_sketch(x, landmarks, moments = 1 + second, progress = FALSE)
}

heading(sprintf("kme_sketch(), n = %g, d = %d, m = %d", n, d, m))
source <- internal$landmark_source(landmarks, x)
core <- function(second) .Call(internal$C_r_sketch_sums, source, NULL, second)
# Rows of the kernel matrix of a panel, for products that the BLAS of R takes:
# of one panel again and again.
values <- kernel_matrix(x[seq_len(panel), ], s, kernel)
values <- matrix(values, panel)
panels <- if (fast_blas) ceiling(n / panel) else 4
bare <- NULL
times <- NULL
for (round in 1:3) {
  bare <- c(bare, limit(format(n, scientific = FALSE), m, d, threads))
  times <- cbind(times, in_turn(
    1, core_first = core(FALSE), first = sketch(FALSE),
    core_second = core(TRUE), second = sketch(TRUE),
    crossprod = for (i in seq_len(panels)) crossprod(values)
  ))
}
times["crossprod", ] <- times["crossprod", ] * n / panel / panels
least <- apply(times, 1, min)
fold <- min(bare)
by_blas <- fold + least[["crossprod"]]
row("bare rectangular fold", fold)
row("first sums, in C", least[["core_first"]])
row("kme_sketch(moments = 1)", least[["first"]])
bar("kme_sketch / bare fold", median(times["first", ] / bare), 1.3,
    at_least = FALSE)
row("bare fold and crossprod() of the panels", by_blas,
    if (!fast_blas) "(crossprod: from 4 panels)" else "")
row("first and second sums, in C", least[["core_second"]],
    share_of(limit("products", threads), n * m^2, least[["core_second"]]))
row("kme_sketch()", least[["second"]])
bar("kme_sketch / bare fold and crossprod",
    median(times["second", ] / (bare + times["crossprod", ])),
    if (fast_blas) 1.5 else 1, at_least = FALSE)
bins <- once(kme_sketch(x, landmarks, moments = 1, bin = 1000,
                        progress = FALSE))
row("kme_sketch(moments = 1, bin = 1000)", bins)

heading("kernlab::kernelMatrix() by chunks of 2,048 rows (from 30 of them)")
chunks <- 30
by_kernlab <- function(second) {
  peer <- kernlab::rbfdot(1 / (2 * theta^2))
  first <- 0
  products <- 0
  for (chunk in seq_len(chunks)) {
    rows <- (chunk - 1) * panel + seq_len(panel)
    k <- kernlab::kernelMatrix(peer, x[rows, ], s)
    first <- first + colSums(k)
    if (second) products <- products + crossprod(k)
  }
  list(first, products)
}
whole <- n / panel / chunks
theirs <- measured("kernlab", whole * once(by_kernlab(FALSE)))
row("first sums", theirs)
bar("kernlab / kme_sketch, first sums", theirs / least[["first"]], 10)
theirs <- measured("kernlab", whole * once(found <- by_kernlab(TRUE)))
row("first and second sums", theirs)
bar("kernlab / kme_sketch, second sums", theirs / least[["second"]], 10)
if (has("kernlab")) {
  part <- internal$landmark_sums(landmarks, x[seq_len(chunks * panel), ], NULL,
                                 TRUE)
  stopifnot(max(abs(part$first / found[[1]] - 1)) < 1e-11,
            max(abs(part$second / found[[2]] - 1)) < 1e-11)
}

heading("20 components: scikit-learn's Nystroem and IncrementalPCA")
part <- min(n, 1e5)
sklearn <- python(c(
  "import numpy as np, time",
  "from sklearn.kernel_approximation import Nystroem",
  "from sklearn.decomposition import IncrementalPCA",
  sprintf("x = np.random.default_rng(1).normal(size=(%d, %d))", part, d),
  sprintf("make = Nystroem(gamma=%.17g, n_components=%d, random_state=1)",
          1 / (2 * theta^2), m),
  "make.fit(x[:20000])", "start = time.perf_counter()",
  "pca = IncrementalPCA(20)", "for i in range(0, len(x), 10000):",
  "  pca.partial_fit(make.transform(x[i:i + 10000]))",
  "print(time.perf_counter() - start)"
))
theirs <- sklearn * n / part
row("Nystroem and IncrementalPCA", theirs,
    sprintf("(from %g rows, 10,000 at a time)", part))
ours <- once(fit <- kme_pca(sketch(TRUE), ncomp = 20))
row("kme_sketch() and kme_pca()", ours)
bar("scikit-learn / kernmean", theirs / ours, 1)

heading("Peak memory beside the data, MB")
for (rows in c(n, 3 * n)) {
  extra <- peak_memory(
    # No copy at any time: it would count.
    c(sprintf("set.seed(1); x <- rnorm(%.0f); dim(x) <- c(%.0f, %d)", rows * d,
              rows, d),
      sprintf("l <- kme_landmarks(x[1:%d, ], %d, kernel_rbf(%g), ", m, m,
              theta), "method = 'uniform')"),
    "s <- kme_sketch(x, l, progress = FALSE)"
  )
  bar(sprintf("kme_sketch(), n = %g", rows), extra, 100, at_least = FALSE)
}

# Cholesky in plain R, a pivot after the other; pick(d): the next one.
plain <- function(x, m, pick) {
  norms <- rowSums(x^2)
  f <- matrix(0, nrow(x), m)
  left <- rep(1, nrow(x))
  for (j in seq_len(m)) {
    p <- pick(left)
    g <- exp(-(norms + norms[p] - 2 * drop(x %*% x[p, ])) / (2 * theta^2))
    g <- g - drop(f %*% f[p, ])
    f[, j] <- g / sqrt(g[p])
    left <- pmax(left - f[, j]^2, 0)
    left[p] <- 0
  }
  mean(left)
}

heading("Randomly pivoted Cholesky, 20,000 points, d = 10, m = 500")
pilot <- x[seq_len(min(n, 20000)), ]
source <- internal$native_source(kernel, pilot)
pivots <- function() .Call(internal$C_r_random_pivots, source, m, 16L)
ours <- best(pivots(), 5)
row("random pivots, in C", ours)
row("kme_landmarks()", best(kme_landmarks(pilot, m, kernel), 3))
hand <- once(one <- plain(pilot, m, \(left) {
  sample.int(length(left), 1, prob = left)
}))
row("plain R", hand)
bar("plain R / kme_landmarks",
    hand / best(kme_landmarks(pilot, m, kernel), 3), 10)
bar("plain R / random pivots in C", hand / ours, 10)
random <- mean(replicate(5, pivots()$left))
exact <- plain(pilot, m, which.max)
cat(sprintf("  trace lost: random %.4f (plain R %.4f), exact pivots %.4f\n",
            random, one, exact))
bar("trace lost, random / exact pivots", random / exact, 1.05,
    at_least = FALSE)

# Sizes of clusters that fall by a fifth from one to the next.
clustered <- function(n) {
  centers <- matrix(runif(40 * d, -25, 25), 40)
  from <- sample.int(40, n, TRUE, prob = 0.8^(1:40))
  centers[from, ] + matrix(rnorm(n * d, sd = 0.5), n)
}
lost <- rowMeans(replicate(5, {
  z <- clustered(5000)
  source <- internal$native_source(kernel, z)
  uniform <- kme_landmarks(z, 40, kernel, method = "uniform")
  c(random = .Call(internal$C_r_random_pivots, source, 40L, 16L)$left,
    uniform = uniform$lost, exact = plain(z, 40, which.max))
}))
cat("  40 of 5,000 points in 40 clusters, trace lost: ",
    paste(names(lost), format(lost, digits = 3), collapse = ", "), "\n",
    sep = "")
bar("random / uniform", lost[["random"]] / lost[["uniform"]], 1,
    at_least = FALSE)
bar("random / exact pivots", lost[["random"]] / lost[["exact"]], 1.05,
    at_least = FALSE)

# Rscript bench/filters.R
# Two-sample tests with filters, against energy::eqdist.etest() and against one
# eigendecomposition with as many quadratic forms; many groups against a
# control, against a loop of tests; tests of normality against one fold; as
# ratios in one run. Run it under each BLAS; the table names it.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
set.seed(1)

points <- function(n, d) matrix(rnorm(n * d), n)
inside <- function(name) get(name, asNamespace("kernmean"))
call_of <- function(name, ...) .Call(inside(paste0("C_r_", name)), ...)

heading("500 + 500 points, d = 10, B = 999, nine statistics")
x <- points(500, 10)
y <- points(500, 10)
n <- 1000L
k <- scale(exp(-as.matrix(dist(rbind(x, y)))^2 / 40), TRUE, FALSE)
stored <- inside("native_source")(NULL, unname(tcrossprod(k)))
labels <- call_of("subsets", NULL, 999L, c(500L, 500L),
                  matrix(c(TRUE, FALSE), 1), NULL, TRUE)
times <- in_turn(
  3,
  mmd_test(x, y, filter = "tikhonov", B = 999),
  call_of("eigen", stored[[2]], n),
  for (i in 1:9) call_of("subset_forms", stored, labels, 1000, NULL),
  mmd_test(x, y, B = 999)
)
least <- apply(times, 1, min)
row("mmd_test, filter = \"tikhonov\"", least[1])
row("eigendecomposition", least[2])
row("nine passes over labels", least[3])
row("mmd_test, no filter", least[4])
bar("mmd_test / (eigendecomposition + nine passes)",
    least[1] / (least[2] + least[3]), 1.3, FALSE)
row("mmd_test, filter = \"tikhonov\", 1 thread",
    with_threads(1, best(mmd_test(x, y, filter = "tikhonov", B = 999), 3)))
theirs <- measured("energy", min(in_turn(
  1, energy::eqdist.etest(rbind(x, y), c(500, 500), R = 999)
)))
row("energy::eqdist.etest", theirs)
bar("energy / mmd_test", theirs / least[1], 5)
for (name in c("showalter", "cutoff")) {
  row(paste0("mmd_test, filter = \"", name, "\""),
      best(mmd_test(x, y, filter = name, B = 999), 2))
}
memory <- peak_memory(
  "x <- matrix(rnorm(5e3), 500); y <- matrix(rnorm(5e3), 500)",
  "invisible(mmd_test(x, y, filter = 'tikhonov', B = 999))"
)
cat(sprintf("  extra peak memory %.1f MB, N x N is %.1f MB\n", memory,
            8e-6 * n^2))
bar("peak memory / one N x N matrix", memory / (8e-6 * n^2), 4, FALSE)

heading("200 groups of 50 against a control of 5,000, d = 20, B = 999")
x <- points(15000, 20)
g <- factor(rep(c("control", sprintf("g%03d", 1:200)), c(5000, rep(50, 200))))
data <- data.frame(x, g = g)
form <- reformulate("g", sprintf("cbind(%s)", toString(names(data)[1:20])))
sizes <- as.integer(table(g))
source_all <- inside("native_source")(kernel_rbf(6), x)
at <- c(which(g == "control"), which(g == "g001"))
few <- 3
times <- in_turn(
  2,
  mmd_pairwise(form, data, reference = "control", B = 999),
  for (i in seq_len(few)) {
    mmd_test(form, droplevels(data[at, ]), B = 999)
  },
  call_of("block_rows", source_all, sizes),
  call_of("kernel_rows", source_all)
)
least <- apply(times, 1, min)
row("mmd_test, control =", least[1])
row("of that, sums of each row over the groups", least[3])
row("sums of each row alone", least[4])
row("a loop of 200 tests, from 3", 200 / few * least[2])
bar("loop / mmd_test", 200 / few * least[2] / least[1], 50)
members <- replicate(999, sample.int(15000, 50))
row("200 times 999 forms of 50 points",
    best(for (i in 1:20) call_of("small_forms", source_all, members), 3) * 10)

heading("\"normal\", n = 20,000, d = 3")
x <- points(20000, 3)
# A null of few draws: what is kept does not matter here.
first <- suppressMessages(mmd_gof(x, "normal", B = 4))
fold <- inside("native_source")(kernel_rbf(0.6), x)
times <- in_turn(3, mmd_gof(x, "normal", draws = first),
                 call_of("kernel_rows", fold))
least <- apply(times, 1, min)
row("mmd_gof with draws that were kept", least[1])
row("one fold", least[2])
bar("mmd_gof / one fold", least[1] / least[2], 1.2, FALSE)

# Rscript bench/busy.R [pattern]
# A busy machine: what each benchmark takes alone and beside a process that
# keeps one core busy, medians of bursts that take turns, and the ratio. Only on
# a machine that is quiet otherwise do the times alone mean what they say.
# (KERNMEAN_BUSY=1 shows the same in the rows of every other benchmark.)
# The argument chooses the benchmarks whose names match.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
set.seed(1)

points <- function(n, d) matrix(rnorm(n * d), n)
x <- points(2000, 20)
large <- points(5000, 20)
kernel <- kernel_rbf(6)
a <- points(1000, 10)
b <- points(1000, 10)
u <- points(500, 5)
v <- points(500, 5)
p <- points(2000, 5)
q <- points(2000, 5)
five <- kernel_rbf(sqrt(10))
one <- kernel_rbf(sqrt(2))
start <- kme_density(p, m = 5, scale = FALSE, shape = "isotropic")
classes <- data.frame(rbind(a[1:300, ], b[1:300, ] + 0.3))
classes$class <- rep(c("a", "b"), each = 300)
g <- gram(x, kernel)

jobs <- list(
  "kme_pca, n = 2,000" = \() kme_pca(x, kernel, 20),
  "kme skmse, n = 2,000" = \() kme(x, kernel, "skmse"),
  "kme skmse, n = 5,000" = \() kme(large, kernel, "skmse"),
  "kme skmse, n = 5,000, median" = \() kme(large, kernel_rbf(), "skmse"),
  "kme mmkme, n = 2,000" = \() kme(x, kernel, "mmkme"),
  "kme fkmse gcv, n = 2,000" = \() kme(x, kernel, "fkmse", select = "gcv"),
  "kme fkmse loocv, n = 2,000" = \() kme(x, kernel, "fkmse"),
  "gram, n = 2,000" = \() gram(x, kernel),
  "gram, n = 5,000" = \() gram(large, kernel),
  "shrink_gram, n = 2,000" = \() shrink_gram(g),
  "mmd_test, 1,000 + 1,000" = \() mmd_test(a, b, kernel, filter = "none",
                                         B = 999),
  "hsic_test, n = 500, gathers" = \() hsic_test(u, v, five, five, B = 999),
  "hsic_test, n = 2,000, gathers" = \() hsic_test(p, q, five, five, B = 999),
  "hsic_test, n = 2,000, low rank" = \() {
    hsic_test(p[, 1], q[, 1], one, one, B = 999)
  },
  "kme_density, n = 2,000" = \() {
    kme_density(p, estimator = start$mean, optimize = "all", validate = 0,
                start = start[c("weights", "means", "variances")])
  },
  "kme_fda, n = 600" = \() kme_fda(class ~ ., classes)
)

pattern <- c(commandArgs(trailingOnly = TRUE), "")[1]
for (name in grep(pattern, names(jobs), value = TRUE)) {
  heading(name)
  found <- beside_busy(jobs[[name]])
  row("alone", found$alone)
  row("beside a busy process", found$beside)
  bar("beside / alone", found$beside / found$alone, 2.2, at_least = FALSE)
}

# Rscript bench/readme.R [FILE.csv]
# The ratios of time in the table of vignettes/measured.Rmd: processor seconds
# of one call on one thread, of kernmean and of the package that one would
# otherwise use.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
kernmean_threads(1)
set.seed(1)

used <- function(expression) {
  gc(FALSE)
  sum(system.time(expression, gcFirst = FALSE)[c("user.self", "sys.self")])
}
beside <- function(task, ours, package, theirs) {
  theirs <- measured(package, theirs)
  data.frame(task = task, package = package, seconds = ours, peer = theirs,
             ratio = theirs / ours)
}

# `times`: short calls are repeated. The filters of the default take most of its
# time, so that there are rows with and without them.
two_samples <- function(n, times = 1, ..., words = "") {
  x <- matrix(rnorm(n * 10), n)
  y <- matrix(rnorm(n * 10, 0.1), n)
  again <- function(f) used(for (i in seq_len(times)) f()) / times
  beside(
    sprintf("two samples of %s, d = 10, B = 999%s", format(n, big.mark = ","),
            words),
    again(\() mmd_test(x, y, ..., B = 999)), "energy",
    again(\() energy::eqdist.etest(rbind(x, y), c(n, n), R = 999))
  )
}
filtered <- ", filters of the default"
small <- do.call(rbind, lapply(c(10, 25, 50, 100), two_samples, times = 50,
                               filter = "none"))
by_default <- do.call(rbind, lapply(c(50, 100, 1000), two_samples, times = 3,
                                    words = filtered))

x <- matrix(rnorm(1000 * 10), 1000)
y <- matrix(rnorm(1000 * 10, 0.1), 1000)
samples <- two_samples(1000, filter = "none")
peer <- measured("energy", used(energy::dcov.test(x, y, R = 999)))
task <- "independence, n = 1,000, d = 10, B = 999"
independence <- rbind(
  beside(task, used(hsic_test(x, y, filter = "none", B = 999)), "energy", peer),
  beside(paste0(task, filtered), used(hsic_test(x, y, B = 999)), "energy", peer)
)
theta <- 4
components <- beside(
  "20 components, n = 1,000, d = 10",
  used(kme_pca(x, kernel_rbf(theta), ncomp = 20)), "kernlab",
  used(kernlab::kpca(x, kernel = "rbfdot", features = 20,
                     kpar = list(sigma = 1 / (2 * theta^2))))
)
table <- rbind(samples, small, by_default, independence, components)
table[3:5] <- lapply(table[3:5], signif, 2)
print(table, row.names = FALSE)
file <- commandArgs(TRUE)
if (length(file) == 1) write.csv(table, file, row.names = FALSE)

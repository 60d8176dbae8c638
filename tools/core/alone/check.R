# The numbers of means.c and means.py against kernmean's in R.
#
#   Rscript tools/core/alone/check.R OUTPUT...

library(kernmean)
state <- 1
step <- function(i) {
  state <<- (state * 16807) %% 2147483647
  state / 2147483647
}
m <- 40
n <- 100
x <- matrix(vapply(seq_len(2 * n), step, 0), n) + 0.05 * (seq_len(n) > m)
draws <- vapply(1:199, function(c) {
  pool <- seq_len(n)
  for (i in seq_len(m)) {
    j <- i + floor(step() * (n - i + 1))
    pool[c(i, j)] <- pool[c(j, i)]
  }
  pool
}, numeric(n))
kernel <- kernel_rbf(0.5)
test <- mmd_test(x[1:m, ], x[-(1:m), ], kernel = kernel, filter = "none",
                 control = test_control(permutations = draws))
wanted <- c(weight = kme(x, kernel, estimator = "skmse")$weights[1],
            statistic = test$statistic[[1]], p.value = test$p.value)
print(wanted, digits = 17)
for (file in commandArgs(TRUE)) {
  out <- read.table(file, row.names = 1)
  error <- max(abs(out[names(wanted), 1] / wanted - 1))
  cat(basename(file), "relative error", format(error, digits = 2), "\n")
  stopifnot(error < 1e-12)
}

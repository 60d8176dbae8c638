# Rscript bench/gof.R
# The null distribution of "normal": all draws in one call of C, beside the
# statistic of one sample after the other in R, which stays in the package for
# large n, and beside energy::mvnorm.test() where that is installed. Processor
# time of a test with B = 999, and its ratio to the first.

suppressMessages(library(kernmean))
kernmean_threads(1)
model_statistic <- getFromNamespace("model_statistic", "kernmean")
least <- function(f) min(replicate(3, sum(system.time(f())[1:2])))
rows <- list()
for (d in c(1, 4)) {
  for (n in c(30, 100, 300)) {
    set.seed(1)
    x <- matrix(rnorm(n * d), n)
    law <- list(kind = "normal", d = d)
    asked <- list(statistic = "biased", estimator = est_kme())
    times <- c(
      package = least(\() mmd_gof(x, "normal", B = 999)),
      one_by_one = 9.99 * least(\() replicate(100, {
        model_statistic(matrix(rnorm(n * d), n), law, asked)$value
      })),
      energy = if (requireNamespace("energy", quietly = TRUE)) {
        least(\() energy::mvnorm.test(x, R = 999))
      } else {
        NA
      }
    )
    rows[[length(rows) + 1L]] <- data.frame(
      n, d, t(1000 * times), ratio = times[[2L]] / times[[1L]],
      energy_ratio = times[[3L]] / times[[1L]]
    )
  }
}
print(do.call(rbind, rows), digits = 3)
cat("milliseconds; the bar of 30 points in one column is 5\n")

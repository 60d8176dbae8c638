# The same test by kernmean in R: the same draws, so the same p-value.
library(twosample)
set.seed(1)
x <- matrix(rnorm(80), 40)
y <- matrix(rnorm(120, 0.3), 60)
set.seed(2)
own <- two_sample(x, y, bandwidth = 1.5)
set.seed(2)
test <- kernmean::mmd_test(x, y, kernel = kernmean::kernel_rbf(1.5), B = 999,
                           filter = "none")
error <- abs(own$statistic - test$statistic[[1]])
cat("statistic", own$statistic, "error", error, "p", own$p.value, "\n")
stopifnot(error < 1e-14, identical(own$p.value, test$p.value),
          own$p.value > 1 / 1000, own$p.value < 1)

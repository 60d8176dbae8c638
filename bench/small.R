# Rscript bench/small.R [LIBRARY ...]
# What small calls cost beside the mathematics done by hand: processor time of
# 20 points in 4 columns. Other states, installed in the libraries named, are
# measured in the same run, turn by turn; the least of all.

measure <- '
  suppressMessages(library(kernmean))
  set.seed(1)
  x <- matrix(rnorm(80), 20)
  y <- matrix(rnorm(80), 20)
  kernel <- kernel_rbf(2)
  fit <- kme(x, kernel)
  us <- function(call, times) {
    for (i in 1:5) eval(call)
    each <- replicate(4, {
      from <- proc.time()
      for (i in seq_len(times)) eval(call)
      sum((proc.time() - from)[1:2]) / times
    })
    1e6 * min(each)
  }
  calls <- alist(
    by_hand = {
      square <- rowSums(x^2)
      colMeans(exp((2 * tcrossprod(x) - outer(square, square, "+")) / 8))
    },
    kme = kme(x, kernel), kme_median = kme(x), coef = coef(fit),
    predict = predict(fit, y),
    mmd = mmd_test(x, y, kernel, filter = "none", B = 99),
    hsic = hsic_test(x[, 1], x[, 2], filter = "none", B = 99)
  )
  times <- c(2000, 400, 200, 2000, 400, 60, 60)
  cat(mapply(us, calls, times))
'
libraries <- c("", commandArgs(TRUE))
names <- c("by_hand", "kme", "kme_median", "coef", "predict", "mmd", "hsic")
one <- function(library) {
  paths <- c(if (nzchar(library)) library, Sys.getenv("R_LIBS"))
  found <- system2(
    file.path(R.home("bin"), "Rscript"), c("-e", shQuote(measure)),
    stdout = TRUE, env = c(paste0("R_LIBS=", paste(paths, collapse = ":")),
                           "OMP_NUM_THREADS=1")
  )
  scan(text = found, quiet = TRUE)
}
turns <- replicate(3, vapply(libraries, one, numeric(length(names))))
least <- apply(turns, 1:2, min)
dimnames(least) <- list(names, c("this", libraries[-1L]))
cat("microseconds of processor time\n")
print(round(least, 1))
cat("kme(x, kernel) takes", format(least["kme", 1] / least["by_hand", 1],
                                   digits = 2), "times colMeans() by hand\n")
if (length(libraries) > 1L) {
  cat("ratios of this state to the others\n")
  print(round(least[, 1] / least[, -1L, drop = FALSE], 2))
}

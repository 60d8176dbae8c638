library(testthat)
library(kernmean)

# In a minute: whether the core computes here as elsewhere, and most doors once.
# All files where a variable of tests/README.md is set.
all <- any(Sys.getenv(c("NOT_CRAN", "KERNMEAN_EXTENDED_TESTS")) == "true")
some <- c("bags", "cov", "days", "dense", "density", "evidence", "fda", "fkmse",
          "gof", "gram", "gram-eigen", "hsic", "hsic_sketch", "iv", "kernel",
          "kme", "landmarks", "mmd", "pairwise", "pca", "riesz", "sample",
          "scaling", "shrink", "sketch", "smm", "stream", "test", "threads",
          "tile-blocks", "tile-small")
test_check("kernmean", filter = if (!all) {
  paste0("^(", paste(some, collapse = "|"), ")$")
})

library(testthat)
library(kernmean)

# In a minute: whether the core computes here as elsewhere, and most doors once.
# All files where a variable of tests/README.md is set.
all <- any(Sys.getenv(c("NOT_CRAN", "KERNMEAN_EXTENDED_TESTS")) == "true")
some <- c("bag_bags", "op_cov", "stream_days", "base_dense", "dens_density",
          "stream_evidence", "op_fda", "est_fkmse", "test_gof", "gram_gram",
          "gram_gram-eigen", "test_hsic", "test_hsic_sketch", "iv_iv",
          "kernel_kernel", "mean_kme", "sketch_landmarks", "test_mmd",
          "test_pairwise", "op_pca", "effect_riesz", "sample_sample",
          "read_scaling", "gram_shrink", "sketch_sketch", "bag_smm",
          "sketch_source", "test_test", "base_threads", "kernel_tile-blocks",
          "kernel_tile-small")
test_check("kernmean", filter = if (!all) {
  paste0("^(", paste(some, collapse = "|"), ")$")
})

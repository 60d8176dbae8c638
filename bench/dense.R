# Rscript bench/dense.R
# A Cholesky factor with one solve, and a product, against base R. Run it under
# each BLAS; the share is that of the FMA peak that bench/limit.c prints, in
# GF/s, if it is given as KERNMEAN_PEAK.

here <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(here), "helpers.R"))

internal <- asNamespace("kernmean")
peak <- as.numeric(Sys.getenv("KERNMEAN_PEAK", NA))

share <- function(label, flops, seconds) {
  row(sprintf("%s, %.0f GF/s%s", label, flops / seconds / 1e9,
              if (is.na(peak)) "" else {
                sprintf(" (%.0f%%)", flops / seconds / 1e7 / peak)
              }), seconds)
}

matrix_of <- function(n) {
  set.seed(1)
  kernel_matrix(matrix(rnorm(n * 10), n), kernel = kernel_rbf()) + diag(n)
}

compare_solve <- function(n) {
  heading("n = ", n)
  k <- matrix_of(n)
  b <- rnorm(n)
  mine <- best(internal$solve_factored(internal$cholesky(k), b), 3)
  its <- best({
    r <- chol(k)
    backsolve(r, backsolve(r, b, transpose = TRUE))
  }, 3)
  share("factor and solve", n^3 / 3, mine)
  row("chol() and backsolve() twice", its)
  # Under a fast BLAS 1 / 1.3 is asked for.
  bar("time, theirs / ours", its / mine, 8)
}

compare_product <- function(n) {
  k <- matrix_of(n)
  mine <- best(internal$product(k, k), 3)
  its <- best(k %*% k, 1)
  share("product", 2 * n^3, mine)
  row("%*%", its)
}

compare_solve(2000)
compare_product(2000)
compare_solve(4000)

# Rscript bench/dense.R [n ...]
# A Cholesky factor with one solve, and a product, against base R in the same
# run, with the share of what two cores can multiply and add. n: by default
# 2000. Run it under each BLAS; the first line names it.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))

internal <- asNamespace("kernmean")
sizes <- as.integer(commandArgs(trailingOnly = TRUE))
if (length(sizes) == 0) sizes <- 2000L
limit <- limit_program(dirname(here))("products", 2)

compare <- function(n) {
  heading("n = ", n)
  set.seed(1)
  k <- kernel_matrix(matrix(rnorm(n * 10), n), kernel = kernel_rbf()) + diag(n)
  k <- matrix(k, n)
  b <- rnorm(n)
  rounds <- if (n > 2000 && !fast_blas) 1 else 4
  times <- in_turn(
    rounds,
    factor = internal$solve_factored(internal$cholesky(k), b),
    chol = {
      r <- chol(k)
      backsolve(r, backsolve(r, b, transpose = TRUE))
    },
    product = internal$product(k, k),
    `%*%` = k %*% k
  )
  least <- apply(times, 1, min)
  row("factor and solve", least[["factor"]],
      share_of(limit, n^3 / 3, least[["factor"]]))
  row("chol() and backsolve() twice", least[["chol"]])
  bar("factor and solve, time to theirs",
      median(times["factor", ] / times["chol", ]),
      if (fast_blas) 1.3 else 1 / 8, at_least = FALSE)
  row("product", least[["product"]],
      share_of(limit, 2 * n^3, least[["product"]]))
  row("%*%", least[["%*%"]])
}

cat("BLAS:", extSoftVersion()[["BLAS"]], "\n")
for (n in sizes) compare(n)

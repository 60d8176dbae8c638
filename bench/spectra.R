# Rscript bench/spectra.R [n ...]
# Eigendecompositions against eigen(symmetric = TRUE) as ratios in one run, and
# what stands on them: F-KMSE selected by exact leave-one-out from data, in 1,
# 2, 3 and 20 columns, of which the first have few eigenvalues that are more
# than rounding, kernel PCA, shrink_gram(). Beside the first the share of what
# two cores can multiply and add. n: by default 1000 and 2000. Run it under each
# BLAS; the first line names it.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
internal <- asNamespace("kernmean")
sizes <- as.integer(commandArgs(trailingOnly = TRUE))
if (length(sizes) == 0) sizes <- c(1000L, 2000L)
limit <- limit_program(dirname(here))("products", 2)

compare <- function(n) {
  heading("n = ", n)
  set.seed(1)
  x <- matrix(rnorm(5 * n), n)
  k <- matrix(kernel_matrix(x, kernel = kernel_rbf()), n)
  times <- in_turn(
    if (n > 2000 && !fast_blas) 1 else 4,
    its = eigen(k, symmetric = TRUE),
    mine = .Call(internal$C_r_eigen, k, n),
    flexible = kme(x, estimator = "fkmse")
  )
  least <- apply(times, 1, min)
  row("eigen(symmetric = TRUE)", least[["its"]])
  # The reduction, and the reflectors of both its steps.
  flops <- (4 / 3 + 2 + 2) * n^3
  row("all eigenpairs", least[["mine"]],
      share_of(limit, flops, least[["mine"]]))
  bar("all eigenpairs, time to eigen()'s",
      median(times["mine", ] / times["its", ]),
      if (fast_blas) 1.3 else 1 / 6, at_least = FALSE)
  row("kme(x, estimator = \"fkmse\")", least[["flexible"]])
  bar("F-KMSE from data, time to eigen()'s",
      median(times["flexible", ] / times["its", ]),
      if (fast_blas) 1.3 else 0.2, at_least = FALSE)
  for (d in c(1, 2, 3, 20)) {
    points <- matrix(rnorm(d * n), n)
    narrow <- matrix(kernel_matrix(points, kernel = kernel_rbf("median")), n)
    rank <- ncol(.Call(internal$C_r_range, narrow)$vectors)
    few <- in_turn(3, all = .Call(internal$C_r_eigen, narrow, n),
                   few = .Call(internal$C_r_range, narrow),
                   flexible = kme(points, kernel_rbf("median"), "fkmse"))
    row(paste0("F-KMSE, ", d, " columns, rank ", rank),
        min(few["flexible", ]))
    bar("its eigenpairs, time to that of all",
        median(few["few", ] / few["all", ]),
        c(0.02, 0.1, 0.6, 1.1)[match(d, c(1, 2, 3, 20))], at_least = FALSE)
  }
  row("values alone", best(.Call(internal$C_r_tridiag, k), 3))
  row("50 leading eigenpairs", best(.Call(internal$C_r_eigen, k, 50L), 3))
  row("shrink_gram(K)", best(shrink_gram(k), 3))
  row("kme_pca(x, ncomp = 20)", best(kme_pca(x, ncomp = 20), 3))
}

cat("BLAS:", extSoftVersion()[["BLAS"]], "\n")
for (n in sizes) compare(n)

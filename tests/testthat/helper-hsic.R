# Slow twins of the independence statistics, as the papers print them.

center_R <- function(K) {
  H <- diag(nrow(K)) - 1 / nrow(K)
  H %*% K %*% H
}

# tr(KHLH)/n^2, rows and columns of L permuted.
hsic_R <- function(K, L, p = seq_len(nrow(K))) {
  sum(diag(center_R(K) %*% center_R(L)[p, p])) / nrow(K)^2
}

# Song et al. (2012), eq. 5.
hsic_unbiased_R <- function(K, L, p = seq_len(nrow(K))) {
  n <- nrow(K)
  L <- L[p, p]
  diag(K) <- diag(L) <- 0
  (sum(diag(K %*% L)) + sum(K) * sum(L) / ((n - 1) * (n - 2)) -
     2 * sum(K %*% L) / (n - 2)) / (n * (n - 3))
}

# Pfister et al. (2018): the V-statistic, kernel by kernel.
dhsic_R <- function(kernels) {
  n <- nrow(kernels[[1]])
  rows <- lapply(kernels, rowSums)
  sum(Reduce(`*`, kernels)) / n^2 +
    prod(vapply(kernels, sum, numeric(1)) / n^2) -
    2 / n * sum(Reduce(`*`, lapply(rows, `/`, n)))
}

scose_R <- function(K, L, p, select) {
  M <- center_R(K) * center_R(L)[p, p]
  rho <- mean(M)
  varrho <- mean(diag(M))
  n <- nrow(K)
  alpha <- if (select == "loocv") {
    n * (varrho - rho) / ((n - 1)^2 * rho + varrho - rho)
  } else {
    (varrho - rho) / (varrho - rho + (n - 1) * rho)
  }
  beta <- rep((1 - min(1, alpha)) / n, n)
  drop(beta %*% M %*% beta)
}

fcose_R <- function(K, L, p, lambda) {
  n <- nrow(K)
  M <- center_R(K) * center_R(L)[p, p]
  beta <- solve(M + lambda * diag(n), M %*% rep(1 / n, n))
  drop(t(beta) %*% M %*% beta)
}

# Gretton et al. (2007), section 4, for kernels with k(x, x) = 1.
hsic_gamma_R <- function(K, L) {
  m <- nrow(K)
  off <- function(K) (sum(K) - sum(diag(K))) / (m * (m - 1))
  mean <- (1 + off(K) * off(L) - off(K) - off(L)) / m
  B <- (center_R(K) * center_R(L))^2
  variance <- 2 * (m - 4) * (m - 5) / (m * (m - 1) * (m - 2) * (m - 3)) *
    (sum(B) - sum(diag(B))) / (m * (m - 1))
  stats::pgamma(m * hsic_R(K, L), mean^2 / variance,
                scale = variance * m / mean, lower.tail = FALSE)
}

# The Gram matrices in use in a test of points.
used_grams <- function(test, ...) {
  grams <- \(kernel, x) gram_R(kernel, as.matrix(x))
  Map(grams, unname(test$kernel), list(...))
}

# A statistic of each column of permutations.
over_columns <- function(permutations, f) unname(apply(permutations, 2, f))

delta_R <- function(f) outer(as.character(f), as.character(f), `==`) + 0

# The test with settings of test_control() and test_filter() as arguments, the
# plain one without a filter, which has orders 0 and 1.
hsic_set <- function(..., filter = "none", ratio = NULL, order = NULL,
                     factors = NULL, null = NULL, statistic = NULL,
                     permutations = NULL) {
  if (isTRUE(filter)) filter <- "tikhonov"
  if (is.null(order) && !filter %in% "none") order <- 0:1
  do.call(hsic_test, c(list(...), list(
    filter = test_filter(filter, ratio, order, factors),
    control = test_control(null, statistic, permutations)
  )), quote = TRUE)
}

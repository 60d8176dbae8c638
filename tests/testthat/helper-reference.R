# Slow and plain: each formula as the paper (or the specification of the method)
# prints it, and readers of the reference values.

fixture <- function(name) test_path("fixtures", name)

reference_data <- function(name) {
  unname(as.matrix(utils::read.csv(fixture(paste0(name, ".csv")))))
}

reference_value <- local({
  values <- NULL
  function(case, quantity) {
    if (is.null(values)) {
      values <<- utils::read.csv(fixture("values.csv"))
    }
    rows <- values[values$case == case & values$quantity == quantity, ]
    stopifnot(nrow(rows) > 0)
    rows$value[order(rows$index)]
  }
})

# The kernel of a case such as "A_rbf".
reference_kernel <- function(case) {
  data <- sub("_.*", "", case)
  switch(sub(".*_", "", case),
    rbf = kernel_rbf(sqrt(reference_value(data, "theta2_median"))),
    lin = kernel_linear(),
    poly2 = kernel_poly(2),
    poly3 = kernel_poly(3)
  )
}

# --- Estimators --------------------------------------------------------------

skmse_alpha_R <- function(K, select, f = numeric(nrow(K)), f_norm2 = 0) {
  n <- nrow(K)
  rho <- mean(K)
  excess <- mean(diag(K)) - rho
  distance2 <- f_norm2 - 2 * mean(f) + rho
  if (select == "loocv") {
    min(1, max(0, n * excess / ((n - 1)^2 * distance2 + excess)))
  } else {
    excess / (excess + (n - 1) * distance2)
  }
}

fkmse_weights_R <- function(K, lambda, f = numeric(nrow(K))) {
  drop(solve(K + lambda * diag(nrow(K)), rowMeans(K) - f))
}

# mean_i |phi(x_i) - estimate from the other points|^2, each refitted.
# `refit(K, f)` gives the weights on the points kept.
loo_R <- function(K, refit, f = numeric(nrow(K)), f_norm2 = 0, share = 1) {
  errors <- vapply(seq_len(nrow(K)), \(i) {
    kept <- -i
    b <- refit(K[kept, kept, drop = FALSE], f[kept])
    K[i, i] - 2 * sum(K[i, kept] * b) - 2 * share * f[i] +
      sum(b * (K[kept, kept] %*% b)) + 2 * share * sum(b * f[kept]) +
      share^2 * f_norm2
  }, numeric(1))
  mean(errors)
}

fkmse_loocv_R <- function(K, lambda, f = numeric(nrow(K)), f_norm2 = 0) {
  loo_R(K, \(k, f) fkmse_weights_R(k, lambda, f), f, f_norm2)
}

# Theorem 4 of Muandet et al. (2014), in matrices: the point left out stays in
# the expansion, ((n-1)/n K + lambda I)^(-1) (K 1_n - K e_i/n).
fkmse_printed_R <- function(K, lambda) {
  n <- nrow(K)
  mean_all <- rowMeans(K)
  errors <- vapply(seq_len(n), \(i) {
    b <- solve((n - 1) / n * K + lambda * diag(n), mean_all - K[, i] / n)
    K[i, i] - 2 * sum(K[i, ] * b) + sum(b * (K %*% b))
  }, numeric(1))
  mean(errors)
}

# Exact leave-one-out score with the diagonals of A, KA and AKA replaced by
# their means.
fkmse_gcv_R <- function(K, lambda) {
  n <- nrow(K)
  A <- solve(K + lambda * diag(n))
  e <- rep(1, n)
  s <- drop(A %*% e)
  a <- mean(diag(A))
  ka <- mean(diag(K %*% A))
  aka <- mean(diag(A %*% K %*% A))
  g <- drop(K %*% (e - lambda * s))
  r <- lambda * s / a
  t_norm2 <- sum((e - lambda * s) * g)
  ag <- drop(A %*% g)
  inner <- (g + r * ka - diag(K)) / (n - 1)
  norm2 <- (t_norm2 + r^2 * aka + diag(K) + 2 * r * ag - 2 * g - 2 * r * ka) /
    (n - 1)^2
  mean(diag(K) - 2 * inner + norm2)
}

# Squared error against a mixture by simulation-free brute force for d = 1:
# numerical integration over the densities.
integrate_R <- function(f, mixture) {
  total <- 0
  for (c in seq_along(mixture$weights)) {
    sd <- sqrt(mixture$covariances[c])
    m <- mixture$means[c]
    value <- stats::integrate(
      \(z) f(z) * stats::dnorm(z, m, sd), m - 12 * sd, m + 12 * sd,
      rel.tol = 1e-11, subdivisions = 500L
    )$value
    total <- total + mixture$weights[c] * value
  }
  total
}

random_points <- function(n, d, seed = n + 31 * d) {
  set.seed(seed)
  matrix(stats::rnorm(n * d), n, d)
}

rbf_gram <- function(n, d = 2, theta = 1) {
  x <- random_points(n, d)
  kernel_R(x, x, theta, "rbf")
}

# --- Marginalized estimators -------------------------------------------------

# E k(X, Y) for X from N(a, diag(e)) and Y from N(b, diag(f)). For polynomials
# of degree up to 3 a normal variable may be replaced by its mean plus or minus
# its standard deviation, which has the same first three moments.
noisy_pair_R <- function(kernel, a, e, b, f) {
  if (kernel$family == "rbf") {
    v <- kernel$bandwidth^2 + e + f
    return(prod(kernel$bandwidth / sqrt(v) * rep(1, length(a))) *
             exp(-sum((a - b)^2 / v) / 2))
  }
  total <- 0
  left <- signs_R(a, e)
  right <- signs_R(b, f)
  for (i in seq_len(nrow(left))) {
    for (j in seq_len(nrow(right))) {
      total <- total +
        (sum(left[i, ] * right[j, ]) + kernel$offset)^kernel$degree
    }
  }
  total / (nrow(left) * nrow(right))
}

# 2^d points around a, with mean a and variances e.
signs_R <- function(a, e) {
  signs <- as.matrix(expand.grid(rep(list(c(-1, 1)), length(a))))
  unname(sweep(sweep(signs, 2, sqrt(e), "*"), 2, a, "+"))
}

# The matrix of E k(x~_i, y~_j).
noisy_gram_R <- function(kernel, x, e, y, f) {
  k <- matrix(0, nrow(x), nrow(y))
  for (i in seq_len(nrow(x))) {
    for (j in seq_len(nrow(y))) {
      k[i, j] <- noisy_pair_R(kernel, x[i, ], e, y[j, ], f)
    }
  }
  k
}

# mean_i |phi(x_i) - estimate from the other points|^2, each fitted anew.
marginal_loocv_R <- function(kernel, x, e) {
  errors <- vapply(seq_len(nrow(x)), \(i) {
    one <- x[i, , drop = FALSE]
    kept <- x[-i, , drop = FALSE]
    noisy_pair_R(kernel, x[i, ], 0 * e, x[i, ], 0 * e) -
      2 * mean(noisy_gram_R(kernel, one, 0 * e, kept, e)) +
      mean(noisy_gram_R(kernel, kept, e, kept, e))
  }, numeric(1))
  mean(errors)
}

# Theorem 1 of Xia et al. as printed, with the matrix K' = k |x - x'|^2.
theorem1_printed_R <- function(x, theta2, sigma2) {
  d <- ncol(x)
  distances <- unname(as.matrix(stats::dist(x)))^2
  k <- exp(-distances / (2 * theta2))
  (theta2 + d * sigma2) / (2 * theta2) / nrow(x) -
    d * sigma2 / (2 * theta2^2) * drop(solve(k, rowMeans(k * distances)))
}

# --- Intervals of values -----------------------------------------------------
# k: the kernel values of the points, a row for each new point.

normal_ends_R <- function(k, level = 0.95) {
  n <- ncol(k)
  half <- stats::qnorm((1 + level) / 2) * apply(k, 1, stats::sd) / sqrt(n)
  cbind(fit = rowMeans(k), lower = rowMeans(k) - half,
        upper = rowMeans(k) + half)
}

# The m below the mean of x for which five bets on m make less than 2/rest of 1;
# n sets the stakes.
bet_end_R <- function(x, rest, n = length(x)) {
  shares <- c(8, 4, 2, 1, 1) / 16
  stakes <- 2^(0:4) * sqrt(2 * log(2 / (shares * rest)) / n)
  made <- \(m) {
    f <- pmin(1, stakes * sqrt(m / (1 - m)))
    sum(shares * vapply(f, \(f) prod(1 - f + f * x / m), 1))
  }
  ends <- c(0, if (length(x)) mean(x) else 0)
  for (step in 1:24) {
    m <- mean(ends)
    if (m > 0) ends[if (made(m) < 2 / rest) 2L else 1L] <- m
  }
  ends[1L]
}

bets_R <- function(k, rest = 0.05) {
  t(apply(k, 1, \(x) c(bet_end_R(x, rest), 1 - bet_end_R(1 - x, rest))))
}

# Hoeffding (1963), (2.1): the end of n kl(mean, m) <= log(2/rest).
chernoff_R <- function(k, rest = 0.05) {
  n <- ncol(k)
  lower <- \(q) {
    part <- \(p, q) if (p > 0) p * log(p / q) else 0
    over <- \(m) n * (part(q, m) + part(1 - q, 1 - m)) - log(2 / rest)
    # It is infinite at 0, unless q is.
    if (q < 1e-6 || over(q * 1e-9) < 0) {
      return(0)
    }
    stats::uniroot(over, q * c(1e-9, 1), tol = 1e-13)$root
  }
  t(apply(k, 1, \(x) c(lower(mean(x)), 1 - lower(1 - mean(x)))))
}

# Smoothing about the mean and stacking as the specification prints them: every
# estimate left out is fitted anew, every pair of normal distributions is
# integrated by solve() and det().

# --- Embeddings as lists of parts --------------------------------------------
# A part: list(points: n x d, weights: n, noise: d x d), the sum of weights_i
# times the embedding of N(points_i, noise), under kernel_rbf(theta).

part_R <- function(points, weights, noise = diag(0, ncol(points))) {
  list(points = points, weights = weights, noise = noise)
}

# |Theta|^(1/2) |Theta + s|^(-1/2) exp(-(p - z)'(Theta + s)^(-1)(p - z)/2) for
# all rows of p and z.
normal_pairs_R <- function(p, z, s, theta) {
  Theta <- diag(rep_len(theta, ncol(p))^2, ncol(p))
  # det() of 60 columns with small bandwidths underflows; their ratio need not.
  log_det <- \(a) as.numeric(determinant(a)$modulus)
  height <- exp((log_det(Theta) - log_det(Theta + s)) / 2)
  inverse <- solve(Theta + s)
  k <- matrix(0, nrow(p), nrow(z))
  for (i in seq_len(nrow(p))) {
    u <- t(z) - p[i, ]
    k[i, ] <- height * exp(-colSums(u * (inverse %*% u)) / 2)
  }
  k
}

mean_at_R <- function(parts, z, theta) {
  total <- numeric(nrow(z))
  for (a in parts) {
    total <- total +
      drop(a$weights %*% normal_pairs_R(a$points, z, a$noise, theta))
  }
  total
}

mean_inner_R <- function(a, b, theta) {
  total <- 0
  for (p in a) {
    for (q in b) {
      k <- normal_pairs_R(p$points, q$points, p$noise + q$noise, theta)
      total <- total + sum(p$weights * (k %*% q$weights))
    }
  }
  total
}

# sum_a shares_a times embedding a
mean_sum_R <- function(means, shares) {
  parts <- list()
  for (a in seq_along(means)) {
    for (part in means[[a]]) {
      part$weights <- shares[a] * part$weights
      parts <- c(parts, list(part))
    }
  }
  parts
}

# --- Smoothing ---------------------------------------------------------------

# The shrunk covariance of Ledoit and Wolf in units of the bandwidths, of the
# columns that vary, in the units of x.
lw_covariance_R <- function(x, theta) {
  n <- nrow(x)
  s <- matrix(0, ncol(x), ncol(x))
  theta <- rep_len(theta, ncol(x))
  varies <- which(apply(x, 2, \(column) any(column != column[1])))
  d <- length(varies)
  if (d == 0) {
    return(s)
  }
  theta <- theta[varies]
  z <- x[, varies, drop = FALSE]
  for (l in seq_len(d)) {
    z[, l] <- (z[, l] - mean(z[, l])) / theta[l]
  }
  sample <- crossprod(z) / n
  t <- sum(diag(sample)) / d
  delta2 <- sum((sample - t * diag(d))^2)
  apart <- 0
  for (i in seq_len(n)) {
    apart <- apart + sum((z[i, ] %*% t(z[i, ]) - sample)^2)
  }
  b2 <- min(delta2, apart / n^2)
  shrunk <- sample
  # One column is its own multiple of the identity, but for rounding.
  if (d > 1 && delta2 > 0) {
    shrunk <- b2 / delta2 * t * diag(d) + (1 - b2 / delta2) * sample
  }
  s[varies, varies] <- shrunk * outer(theta, theta)
  s
}

smooth_R <- function(x, theta, h, c = 1) {
  m <- colMeans(x)
  n <- nrow(x)
  p <- x
  for (i in seq_len(n)) {
    p[i, ] <- m + sqrt(1 - h) * (x[i, ] - m)
  }
  list(part_R(p, rep(c / n, n), h * lw_covariance_R(x, theta)))
}

smooth_grid_R <- c(0, 0.01, 0.03, 0.07, 0.13, seq(0.2, 1, by = 0.1))

folds_R <- function(n, folds = if (n <= 60) n else 20) {
  (seq_len(n) - 1) %% folds + 1
}

# The data frame of h, c and the score, with A and B.
smooth_scores_R <- function(x, theta, grid = smooth_grid_R,
                            fold = folds_R(nrow(x)), c = NULL) {
  n <- nrow(x)
  rows <- lapply(grid, \(h) {
    A <- 0
    B <- 0
    for (f in unique(fold)) {
      out <- x[fold == f, , drop = FALSE]
      rest <- smooth_R(x[fold != f, , drop = FALSE], theta, h)
      A <- A + sum(mean_at_R(rest, out, theta)) / n
      B <- B + nrow(out) * mean_inner_R(rest, rest, theta) / n
    }
    share <- if (is.null(c)) min(1, max(0, A / B)) else c
    data.frame(h = h, score = 1 - 2 * share * A + share^2 * B, c = share,
               A = A, B = B)
  })
  do.call(rbind, rows)
}

# --- Stacking ----------------------------------------------------------------
# A candidate is a function of points and bandwidths that gives an embedding.

twin_kme <- function() {
  \(x, theta) list(part_R(x, rep(1 / nrow(x), nrow(x))))
}
twin_skmse <- function(lambda) {
  \(x, theta) list(part_R(x, rep(1 / (1 + lambda) / nrow(x), nrow(x))))
}
twin_fkmse <- function(lambda) {
  \(x, theta) {
    list(part_R(x, fkmse_weights_R(kernel_R(x, x, theta, "rbf"), lambda)))
  }
}
twin_smooth <- function(h, c = 1) \(x, theta) smooth_R(x, theta, h, c)
twin_noise <- function(noise) {
  \(x, theta) {
    d <- ncol(x)
    list(part_R(x, rep(1 / nrow(x), nrow(x)), diag(rep_len(noise, d), d)))
  }
}

seven_R <- function(x, theta) {
  K <- kernel_R(x, x, theta, "rbf")
  top <- eigen(K, symmetric = TRUE, only.values = TRUE)$values[1]
  c(list(twin_kme()), lapply(c(0.003, 0.03, 0.3) * top, twin_fkmse),
    lapply(c(0.15, 0.4, 0.8), twin_smooth))
}

# list(G, g, mass, shares, minimum, reference: the KME's score, score: of each
# candidate alone, mean: the embedding)
stack_R <- function(x, theta, candidates = seven_R(x, theta),
                    fold = folds_R(nrow(x))) {
  n <- nrow(x)
  q <- length(candidates)
  G <- matrix(0, q, q)
  g <- numeric(q)
  kme <- 0
  for (f in unique(fold)) {
    out <- x[fold == f, , drop = FALSE]
    kept <- x[fold != f, , drop = FALSE]
    rest <- lapply(candidates, \(fit) fit(kept, theta))
    for (a in seq_len(q)) {
      g[a] <- g[a] + sum(mean_at_R(rest[[a]], out, theta)) / n
      for (b in seq_len(a)) {
        G[a, b] <- G[b, a] <- G[a, b] +
          nrow(out) * mean_inner_R(rest[[a]], rest[[b]], theta) / n
      }
    }
    plain <- twin_kme()(kept, theta)
    kme <- kme + nrow(out) * mean_inner_R(plain, plain, theta) / n -
      2 * sum(mean_at_R(plain, out, theta)) / n
  }
  all <- lapply(candidates, \(fit) fit(x, theta))
  mass <- vapply(all, \(mean) sum(mean[[1]]$weights), 1)
  shares <- stack_shares_R(G, g, mass)
  list(G = G, g = g, mass = mass, shares = shares,
       minimum = 1 + stack_value_R(shares, G, g), reference = 1 + kme,
       score = 1 - 2 * g + diag(G), mean = mean_sum_R(all, shares))
}

stack_value_R <- function(shares, G, g) {
  sum(shares * (G %*% shares)) - 2 * sum(shares * g)
}

stack_shares_R <- function(G, g, mass) {
  q <- length(g)
  unit <- max(abs(G))
  shares <- quadprog::solve.QP(
    G / unit + 1e-9 * diag(q), g / unit, cbind(diag(q), -mass),
    c(numeric(q), -1)
  )$solution
  shares[shares < 1e-8] <- 0
  shares
}

# Shares from far-away starts cannot beat the shares of a fit: by how much does
# the best of a list of feasible ones lie below?
below_R <- function(shares, G, g, mass) {
  q <- length(g)
  value <- stack_value_R(shares, G, g)
  best <- 0
  for (a in seq_len(q)) {
    for (step in c(1e-4, 1e-2, 1)) {
      corner <- (1 - step) * shares
      corner[a] <- corner[a] + step / mass[a]
      for (tried in list(corner, (1 - step) * shares)) {
        best <- max(best, value - stack_value_R(tried, G, g))
      }
    }
  }
  best
}

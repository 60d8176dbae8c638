# Bags: kernels of distributions as they are printed, from kme() of each bag.

# Bags of several sizes in two columns: one of a single point, one of equal
# points.
some_bags <- function(seed = 1) {
  set.seed(seed)
  sizes <- c(a = 5, b = 1, c = 8, d = 3, e = 8, f = 12)
  bags <- lapply(sizes, \(n) {
    matrix(stats::rnorm(2 * n, sd = 1.3), n, 2,
           dimnames = list(NULL, c("u", "v")))
  })
  bags$d[] <- rep(bags$d[1, ], each = 3)
  bags
}

# M bags of n points, of `kinds` kinds that differ in spread.
kinds_of_bags <- function(m, n = 10, kinds = 2, seed = 2) {
  set.seed(seed)
  kind <- rep_len(seq_len(kinds), m)
  bags <- lapply(kind, \(k) matrix(stats::rnorm(2 * n, sd = 0.6 + 0.5 * k), n))
  list(bags = stats::setNames(bags, paste0("b", seq_len(m))), kind = kind)
}

class_of <- function(kind) factor(c("x", "y", "z")[kind])

# Numbers that go with the kinds.
value_of <- function(kind, seed = 32) {
  set.seed(seed)
  kind + stats::rnorm(length(kind), sd = 0.2)
}

pooled <- function(bags) do.call(rbind, unname(bags))
bag_ids <- function(bags) rep(names(bags), vapply(bags, NROW, 1L))

# Fits of each bag alone; one point is its own embedding.
bag_fits_R <- function(bags, kernel, estimator = "kme") {
  lapply(bags, \(x) {
    suppressWarnings(kme(x, kernel, if (NROW(x) == 1L) "kme" else estimator))
  })
}

bags_R <- function(bags, kernel, estimator = "kme") {
  kme_inner(bag_fits_R(bags, kernel, estimator))
}

# New bags in the rows.
new_bags_R <- function(new, bags, kernel, estimator = "kme") {
  fits <- bag_fits_R(bags, kernel, estimator)
  t(vapply(bag_fits_R(new, kernel, estimator), \(a) {
    vapply(fits, \(b) kme_inner(a, b), 1)
  }, numeric(length(bags))))
}

level_R <- function(inner, left, right, type, s = NULL, degree = 2,
                    offset = 1) {
  apart <- outer(left, right, `+`) - 2 * inner
  switch(type,
    linear = inner, cosine = inner / sqrt(outer(left, right)),
    rbf = exp(-apart / (2 * s^2)), laplace = exp(-sqrt(pmax(apart, 0)) / s),
    poly = (inner + offset)^degree
  )
}

# --- Bags that borrow from each other -----------------------------------------

# list(G: the Gram matrix of the KMEs, trace: sum_i k(x_i, x_i), n) of bags.
pool_R <- function(bags, kernel) {
  list(G = unname(bags_R(bags, kernel)), n = unname(vapply(bags, NROW, 1L)),
       trace = unname(vapply(bags, \(x) {
         sum(diag(as.matrix(gram(x, kernel, scale = FALSE))))
       }, 1)))
}

# The weights of bag j on the KMEs of all bags, as the formulas stand.
borrow_R <- function(target, pool, j) {
  G <- pool$G
  n <- pool$n
  m <- length(n)
  u <- (n^2 * diag(G) - pool$trace) / (n * (n - 1))
  own <- as.numeric(seq_len(m) == j)
  if (target == "pooled") {
    f <- (1 - own) / (m - 1)
    apart <- sum((f - own) * (G %*% (f - own)))
    excess <- pool$trace[j] / n[j] - G[j, j]
    # The share of the leave-one-out score, as in skmse_alpha_R().
    alpha <- if (n[j] == 1) 0 else {
      min(1, max(0, n[j] * excess / ((n[j] - 1)^2 * apart + excess)))
    }
    return((1 - alpha) * own + alpha * f)
  }
  if (n[j] == 1) {
    return(own)
  }
  if (target == "neighbours") {
    s2 <- (pool$trace / n - u) / n
    near <- vapply(seq_len(m), \(a) {
      a == j || n[a] > 1 && u[a] + u[j] - 2 * G[a, j] <=
        s2[a] + s2[j] + 1e-12 * max(diag(G))
    }, NA)
    return(near / sum(near))
  }
  right <- G[, j]
  right[j] <- u[j]
  quadprog::solve.QP(G + 1e-10 * max(diag(G)) * diag(m), right,
                     cbind(1, diag(m)), c(1, numeric(m)), meq = 1)$solution
}

targets_R <- function(target, pool) {
  w <- vapply(seq_along(pool$n), \(j) borrow_R(target, pool, j),
              numeric(length(pool$n)))
  list(W = w, inner = t(w) %*% pool$G %*% w)
}

# --- Machines ----------------------------------------------------------------

# f of the C-machine with labels -1 and 1, from its dual.
svc_R <- function(k, y, cost) {
  m <- length(y)
  q <- outer(y, y) * k + 1e-10 * diag(m)
  alpha <- quadprog::solve.QP(q, rep(1, m), cbind(y, diag(m), -diag(m)),
                              c(0, numeric(m), rep(-cost, m)), meq = 1)$solution
  f <- drop(k %*% (alpha * y))
  inside <- alpha > 1e-6 * cost & alpha < (1 - 1e-6) * cost
  f + mean((y - f)[inside])
}

# Ridge regression with a free intercept, from its normal equations: list(alpha,
# c).
ridge_R <- function(k, y, lambda) {
  n <- length(y)
  bordered <- rbind(cbind(k + lambda * diag(n), 1), c(rep(1, n), 0))
  found <- solve(bordered, c(y, 0))
  list(alpha = unname(found[seq_len(n)]), c = unname(found[n + 1]))
}

# Each bag left out, the rest fitted anew.
ridge_loo_R <- function(k, y, lambda) {
  vapply(seq_along(y), \(i) {
    fit <- ridge_R(k[-i, -i], y[-i], lambda)
    fit$c + sum(k[i, -i] * fit$alpha)
  }, 1)
}

auc_R <- function(decision, anomalous) {
  total <- 0
  for (a in decision[anomalous]) {
    for (b in decision[!anomalous]) total <- total + (a < b) + (a == b) / 2
  }
  total / (sum(anomalous) * sum(!anomalous))
}

# --- Probabilities -----------------------------------------------------------

# Platt's targets, and the loss of (A, B) as it is printed.
targets_of <- function(second) {
  ifelse(second, (sum(second) + 1) / (sum(second) + 2),
         1 / (sum(!second) + 2))
}
sigmoid_loss_R <- function(at, f, second) {
  p <- 1 / (1 + exp(at[1] * f + at[2]))
  target <- targets_of(second)
  -sum(target * log(p) + (1 - target) * log(1 - p))
}

# A and B by the logistic regression of R on the same targets.
sigmoid_R <- function(f, second) {
  fit <- stats::glm(targets_of(second) ~ f, stats::quasibinomial(),
                    control = list(epsilon = 1e-14, maxit = 100))
  -unname(rev(stats::coef(fit)))
}

# The criterion of pairwise coupling, r[i, j] that of i against j.
coupling_loss_R <- function(p, r) {
  total <- 0
  for (i in seq_along(p)) {
    for (j in seq_along(p)[-i]) {
      total <- total + (r[j, i] * p[i] - r[i, j] * p[j])^2
    }
  }
  total
}

# Its minimum by softmax and a general method.
couple_R <- function(r) {
  p_of <- \(u) exp(c(u, 0)) / sum(exp(c(u, 0)))
  found <- stats::optim(numeric(nrow(r) - 1), \(u) coupling_loss_R(p_of(u), r),
                        method = "BFGS",
                        control = list(reltol = 1e-16, maxit = 1000))
  p_of(found$par)
}

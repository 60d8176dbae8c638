# Riesz regression by its formulas, with explicit matrices, and problems of it.

# A Riesz regression: n rows of the source, `rows` rows of the functional, the
# last `shared` of which are the first rows of the source.
random_problem <- function(n = 20, rows = 15, shared = 8, r = 4, free = 2) {
  normal <- \(n, k) matrix(rnorm(n * k), n)
  h <- cbind(1, normal(n, free - 1))
  even <- \(w) w / mean(w)
  new_riesz(f = normal(n, r) + 1, h = h, m = normal(rows, r),
            m_h = cbind(1, normal(rows, free - 1)), y = rnorm(n),
            omega = even(runif(n, 0.5, 2)),
            upsilon = even(runif(rows, 0.5, 2)), unit = seq_len(n),
            target_unit = c(-seq_len(rows - shared), seq_len(shared)))
}

# A problem with other parts.
change_problem <- function(p, ...) modifyList(p, list(...))

# alpha and g of a problem at its rows and its functional, fitted without some
# rows of the source and of the functional.
riesz_R <- function(p, lambda, mu = lambda, source = 0L, functional = 0L) {
  n <- nrow(p$f)
  x <- cbind(p$h, p$f)
  m <- cbind(p$m_h, p$m)
  i <- setdiff(seq_len(n), source)
  j <- setdiff(seq_len(nrow(m)), functional)
  penalty <- diag(rep(0:1, c(ncol(p$h), ncol(p$f))))
  kept <- x[i, , drop = FALSE]
  normal <- crossprod(kept, kept * p$omega[i]) / n
  target <- colSums(p$upsilon[j] * m[j, , drop = FALSE]) / nrow(m)
  along <- colSums(p$omega[i] * p$y[i] * kept) / n
  theta <- solve(normal + lambda * penalty, target)
  beta <- solve(normal + mu * penalty, along)
  list(theta = theta, beta = beta, alpha = drop(x %*% theta),
       residuals = p$y - drop(x %*% beta), of_alpha = drop(m %*% theta),
       of_g = drop(m %*% beta))
}

# The same of fits without the unit of each row; units: of both kinds of rows,
# a fixed target in none of them.
riesz_left_out_R <- function(p, lambda, mu, unit = p$unit,
                             target_unit = p$target_unit) {
  left <- riesz_R(p, lambda, mu)
  if (p$fixed) {
    left$of_alpha <- rep(NA, length(unit))
    left$of_g <- left$of_alpha
  }
  for (u in unique(c(unit, target_unit))) {
    i <- which(unit == u)
    j <- which(target_unit == u)
    without <- riesz_R(p, lambda, mu, i, j)
    for (name in c("alpha", "residuals")) left[[name]][i] <- without[[name]][i]
    for (name in c("of_alpha", "of_g")) {
      if (p$fixed) left[[name]][i] <- without[[name]] else
        left[[name]][j] <- without[[name]][j]
    }
  }
  left[c("alpha", "residuals", "of_alpha", "of_g")]
}

# Are the values of ridge_values() those?
expect_values <- function(got, want, tolerance = 1e-10) {
  for (name in names(want)) {
    expect_near(drop(got[[name]]), want[[name]], tolerance)
  }
}

# Two arms, or doses, that depend on two covariates, as does the outcome.
effect_set <- function(n = 60, dose = FALSE) {
  x <- matrix(rnorm(2 * n), n, dimnames = list(NULL, c("a", "b")))
  pull <- 0.7 * x[, 1] + rnorm(n)
  treat <- if (dose) pull else as.integer(pull > 0)
  list(x = x, treat = treat, y = sin(x[, 1]) + x[, 2]^2 / 2 + treat + rnorm(n))
}


# alpha of a target population by the Gram matrices of the source with itself
# and with the target, with a constant: mean 1.
gram_weights_R <- function(K, K_t, lambda) {
  n <- nrow(K)
  center <- diag(n) - 1 / n
  right <- center %*% (rowMeans(K_t) - rowMeans(K))
  1 + drop(n * solve(center %*% K %*% center + n * lambda * diag(n), right))
}

# The problem of an arm with any positive definite K of all rows.
arm_problem_R <- function(K, y, rows, targets, weights) {
  pairs <- eigen(K[rows, rows], symmetric = TRUE)
  kept <- pairs$values > 1e-10
  root <- sqrt(pairs$values[kept])
  vectors <- pairs$vectors[, kept]
  even <- \(w) w / mean(w)
  list(f = vectors %*% diag(root), h = matrix(1, length(rows)),
       m = K[targets, rows] %*% vectors %*% diag(1 / root),
       m_h = matrix(1, length(targets)), y = y[rows],
       omega = even(weights[rows]), upsilon = even(weights[targets]),
       fixed = FALSE)
}

# The debiased mean over the targets of what the rows say, and contributions to
# its error of all rows.
arm_R <- function(K, y, rows, targets, lambda, mu, weights, unit) {
  p <- arm_problem_R(K, y, rows, targets, weights)
  n <- length(rows)
  x <- cbind(p$h, p$f)
  plain <- crossprod(x, x * p$omega) / n
  b <- colMeans(p$upsilon * cbind(p$m_h, p$m))
  fit <- riesz_R(p, lambda, mu)
  again <- solve(plain + mu * diag(rep(0:1, c(1, ncol(p$f)))),
                 b - plain %*% fit$theta)
  a <- fit$alpha + drop(x %*% again)
  left <- riesz_left_out_R(p, lambda, mu, unit[rows], unit[targets])
  u <- numeric(length(y))
  u[rows] <- p$omega * a * left$residuals / n
  of <- p$upsilon * (fit$of_g - mean(p$upsilon * fit$of_g)) / length(targets)
  u[targets] <- u[targets] + of
  list(estimate = mean(p$upsilon * fit$of_g) +
         mean(p$omega * fit$alpha * fit$residuals), u = u, a = a,
       folded = mean(p$upsilon * left$of_g) +
         mean(p$omega * left$alpha * left$residuals))
}

# U'U n/(n - 1) of one sample, of its clusters.
error_R <- function(u, clusters = NULL) {
  if (!is.null(clusters)) u <- tapply(u, clusters, sum)
  sqrt(sum(u^2) * length(u) / (length(u) - 1))
}

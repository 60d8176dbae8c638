# What the tests of densities share: twins, mixtures, and fits of round
# components to points as they are given.

round_density <- function(x, ...) {
  given <- list(...)
  own <- inherits(x, "gram") || any(vapply(given, inherits, NA, "kme"))
  more <- list(
    scale = if (!own) FALSE,
    shape = "isotropic",
    m = if (is.null(given$start)) 10
  )
  more <- more[!vapply(more, is.null, NA) & !names(more) %in% names(given)]
  do.call(kme_density, c(list(x), given, more), quote = TRUE)
}

isotropic <- function(q) {
  d <- ncol(q$means)
  list(weights = q$weights, means = q$means,
       covariances = array(vapply(q$variances, diag, matrix(0, d, d), nrow = d),
                           c(d, d, length(q$weights))))
}

random_mixture <- function(m, d, scale = 1) {
  weights <- stats::rexp(m)
  list(weights = weights / sum(weights),
       means = matrix(stats::rnorm(m * d, sd = scale), m),
       variances = stats::runif(m, 0.2, 1.5) * scale^2)
}

# Any mixture of d columns.
full_mixture <- function(m, d) {
  weights <- stats::rexp(m)
  list(weights = weights / sum(weights), means = matrix(stats::rnorm(m * d), m),
       covariances = array(replicate(m, crossprod(
         matrix(stats::rnorm(d * (d + 3)), ncol = d)) / d), c(d, d, m)))
}

# Density of a mixture, term by term.
density_R <- function(q, z) {
  vapply(seq_len(nrow(z)), \(i) {
    sum(vapply(seq_along(q$weights), \(j) {
      q$weights[j] * prod(stats::dnorm(z[i, ], q$means[j, ],
                                       sqrt(q$variances[j])))
    }, numeric(1)))
  }, numeric(1))
}

# Each kernel with an estimate: what kme_density() can match.
matched <- function(x) {
  each <- seq(0.8, 2, length.out = ncol(x))
  noise <- seq(0, 0.7, length.out = ncol(x))
  weights <- stats::rnorm(nrow(x))
  c(
    lapply(list(kernel_rbf(), kernel_rbf(each), kernel_linear(),
                kernel_poly(1, 2), kernel_poly(2), kernel_poly(3, 0.5)),
           \(kernel) kme(x, kernel)),
    list(kme(x, kernel_rbf(1.3), "mkme", noise = 0.3),
         kme(x, kernel_rbf(each), "mmkme", noise = noise),
         kme(x, kernel_rbf(2), weights = weights),
         kme(x, kernel_poly(3), "fkmse"), kme(x, kernel_poly(2), "skmse"))
  )
}

reference_mixture <- function() {
  list(
    weights = reference_value("A_density", "components_pi"),
    means = matrix(reference_value("A_density", "components_means_rows"), 2,
                   byrow = TRUE),
    variances = reference_value("A_density", "components_s2")
  )
}

# The least J over the simplex by trying every set of positive weights.
best_weights <- function(gram, g) {
  m <- length(g)
  best <- Inf
  for (set in 1:(2^m - 1)) {
    on <- which(bitwAnd(set, 2^(0:(m - 1))) > 0)
    k <- length(on)
    system <- rbind(cbind(gram[on, on, drop = FALSE], 1), c(rep(1, k), 0))
    weights <- solve(system, c(g[on], 1))[seq_len(k)]
    if (all(weights >= 0)) {
      best <- min(best, drop(weights %*% gram[on, on] %*% weights) -
                    2 * sum(weights * g[on]))
    }
  }
  best
}

# The derivative of f at u by differences of fourth order.
differences_R <- function(f, u, step) {
  vapply(seq_along(u), \(i) {
    at <- \(times) f(replace(u, i, u[i] + times * step))
    (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)
  }, numeric(1))
}

# J and its gradient, RBF kernel; u: m log weights (softmax), m x d means by
# columns, m log variances; `noise` one number.
match_R <- function(x, weights, theta, m, noise = 0) {
  d <- ncol(x)
  read <- function(u) {
    pi <- exp(u[seq_len(m)])
    list(pi = pi / sum(pi), means = matrix(u[m + seq_len(m * d)], m),
         v = exp(u[m + m * d + seq_len(m)]))
  }
  # Of components and points: shares times E k(x, Y), Y from N(mean, v I), t =
  # theta^2 + v (at x: and noise), and the derivatives.
  sums <- function(q, points, shares, t) {
    apart2 <- outer(rowSums(q$means^2), rowSums(points^2), `+`) -
      2 * tcrossprod(q$means, points)
    bump <- (theta^2 / t)^(d / 2) * exp(-apart2 / (2 * t)) *
      rep(shares, each = m)
    list(value = rowSums(bump),
         to_means = (bump / t) %*% points - rowSums(bump / t) * q$means,
         to_v = rowSums(bump * (apart2 / t - d) / (2 * t)))
  }
  parts <- function(u) {
    q <- read(u)
    pairs <- sums(q, q$means, q$pi, theta^2 + outer(q$v, q$v, `+`))
    at <- sums(q, x, weights, matrix(theta^2 + q$v + noise, m, nrow(x)))
    to_pi <- 2 * (pairs$value - at$value)
    list(value = sum(q$pi * (pairs$value - 2 * at$value)), gradient = c(
      q$pi * (to_pi - sum(q$pi * to_pi)),
      2 * q$pi * (pairs$to_means - at$to_means),
      2 * q$v * q$pi * (pairs$to_v - at$to_v)
    ))
  }
  list(value = \(u) parts(u)$value, gradient = \(u) parts(u)$gradient,
       read = read)
}

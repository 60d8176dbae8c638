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

# J and its gradient, RBF kernel, term by term; u: m log weights (softmax), m x
# d means by columns, m log variances; `noise` one number.
match_R <- function(x, weights, theta, m, noise = 0) {
  d <- ncol(x)
  read <- function(u) {
    pi <- exp(u[seq_len(m)])
    list(pi = pi / sum(pi), means = matrix(u[m + seq_len(m * d)], m),
         v = exp(u[m + m * d + seq_len(m)]))
  }
  # E k(x, Y) for Y from N(mean, v I), t = theta^2 + v.
  bump <- \(difference, t) {
    (theta^2 / t)^(d / 2) * exp(-sum(difference^2) / (2 * t))
  }
  by_variance <- \(difference, t) {
    bump(difference, t) * (-d / (2 * t) + sum(difference^2) / (2 * t^2))
  }
  parts <- function(u) {
    q <- read(u)
    value <- 0
    to_pi <- to_v <- numeric(m)
    to_means <- matrix(0, m, d)
    for (j in seq_len(m)) {
      for (l in seq_len(m)) {
        apart <- q$means[j, ] - q$means[l, ]
        s <- theta^2 + q$v[j] + q$v[l]
        both <- q$pi[j] * q$pi[l]
        value <- value + both * bump(apart, s)
        to_pi[j] <- to_pi[j] + 2 * q$pi[l] * bump(apart, s)
        to_means[j, ] <- to_means[j, ] - 2 * both * bump(apart, s) * apart / s
        to_v[j] <- to_v[j] + 2 * both * by_variance(apart, s)
      }
      t <- theta^2 + q$v[j] + noise
      for (i in seq_len(nrow(x))) {
        apart <- q$means[j, ] - x[i, ]
        twice <- 2 * weights[i]
        value <- value - twice * q$pi[j] * bump(apart, t)
        to_pi[j] <- to_pi[j] - twice * bump(apart, t)
        to_means[j, ] <- to_means[j, ] +
          twice * q$pi[j] * bump(apart, t) * apart / t
        to_v[j] <- to_v[j] - twice * q$pi[j] * by_variance(apart, t)
      }
    }
    list(value = value, gradient = c(
      q$pi * (to_pi - sum(q$pi * to_pi)), to_means, q$v * to_v
    ))
  }
  list(value = \(u) parts(u)$value, gradient = \(u) parts(u)$gradient,
       read = read)
}

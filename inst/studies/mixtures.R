# The distributions of section 4.1 of Muandet et al. (2014), and the kernels:
# what risk.R and figures.R share.
#
# A distribution is a mixture of four normals in d columns with weights 0.05,
# 0.3, 0.4, 0.25, means uniform on (-10, 10), covariances from the Wishart law
# W(2I, 7), and noise N(0, 0.2 I) on each point.

kernels <- list(LIN = kernel_linear(), POLY2 = kernel_poly(2),
                POLY3 = kernel_poly(3), RBF = kernel_rbf("median"))

# W(2I, 7) as a sum of seven outer products, which is singular for d > 7.
draw_distribution <- function(d) {
  roots <- replicate(4, matrix(stats::rnorm(7 * d, sd = sqrt(2)), 7),
                     simplify = FALSE)
  list(weights = c(0.05, 0.3, 0.4, 0.25),
       means = matrix(stats::runif(4 * d, -10, 10), 4), roots = roots)
}

# The points, and the mixture that they come from, noise included.
draw_sample <- function(d, n) {
  p <- draw_distribution(d)
  component <- sample.int(4, n, replace = TRUE, prob = p$weights)
  x <- p$means[component, , drop = FALSE] +
    matrix(stats::rnorm(n * d, sd = sqrt(0.2)), n)
  scores <- matrix(stats::rnorm(7 * n), n)
  for (c in 1:4) {
    rows <- component == c
    x[rows, ] <- x[rows, ] + scores[rows, , drop = FALSE] %*% p$roots[[c]]
  }
  covariances <- vapply(p$roots, function(root) {
    crossprod(root) + diag(0.2, d)
  }, matrix(0, d, d))
  list(x = x, mixture = list(weights = p$weights, means = p$means,
                             covariances = array(covariances, c(d, d, 4))))
}

# More points of it.
draw_points <- function(mixture, n) {
  d <- ncol(mixture$means)
  component <- sample.int(4, n, replace = TRUE, prob = mixture$weights)
  x <- matrix(stats::rnorm(n * d), n)
  for (c in 1:4) {
    rows <- component == c
    x[rows, ] <- x[rows, , drop = FALSE] %*% chol(mixture$covariances[, , c])
  }
  x + mixture$means[component, , drop = FALSE]
}

# The same for each figure, kernel and number of processes.
draw_samples <- function(d, n, reps) {
  set.seed(20140621 + d)
  lapply(seq_len(reps), function(r) draw_sample(d, n))
}

first_points <- function(sample, n, kernel) {
  gram(sample$x[seq_len(n), , drop = FALSE], kernel)
}

# Three digits, an exponent as 1e-5.
short <- function(values, digits = 3) {
  sub("e([-]?)[+]?0*", "e\\1", formatC(values, digits = digits, format = "g"))
}

# Rscript bench/density.R [--large]
# Density estimation by kernel mean matching: one fit of all parameters, n = 500
# points in d = 20 columns, m = 10 components, against BFGS in R on the same
# objective from the same start, with the gradient by differences and with the
# analytic gradient in plain R (matrix products, no loop over points or
# components). --large lets the gradient by differences run for 500 iterations
# (minutes); else it stops after 20, and the ratio is a lower bound.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
large <- "--large" %in% commandArgs(trailingOnly = TRUE)

# J and its gradient by softmax weights, means and log variances.
plain <- function(x, theta, m) {
  n <- nrow(x)
  d <- ncol(x)
  theta2 <- theta^2
  lengths_x <- rowSums(x^2)
  unpack <- function(u) {
    pi <- exp(u[1:m] - max(u[1:m]))
    list(pi = pi / sum(pi), means = matrix(u[m + 1:(m * d)], m),
         v = exp(u[m + m * d + 1:m]))
  }
  parts <- function(u) {
    q <- unpack(u)
    lengths <- rowSums(q$means^2)
    t <- theta2 + q$v
    squares <- outer(lengths_x, lengths, "+") - 2 * tcrossprod(x, q$means)
    values <- exp(-squares / rep(2 * t, each = n)) *
      rep((theta2 / t)^(d / 2), each = n) / n
    s <- theta2 + outer(q$v, q$v, "+")
    between <- outer(lengths, lengths, "+") - 2 * tcrossprod(q$means)
    gram <- (theta2 / s)^(d / 2) * exp(-between / (2 * s))
    c(q, list(t = t, squares = squares, values = values, s = s,
              between = between, gram = gram, g = colSums(values)))
  }
  value <- function(u) {
    p <- parts(u)
    drop(p$pi %*% p$gram %*% p$pi) - 2 * sum(p$pi * p$g)
  }
  gradient <- function(u) {
    p <- parts(u)
    to_pi <- 2 * (drop(p$gram %*% p$pi) - p$g)
    a <- outer(p$pi, p$pi) * p$gram / p$s
    moved <- crossprod(p$values, x) - p$g * p$means
    to_means <- -2 * (rowSums(a) * p$means - a %*% p$means) -
      2 * p$pi * moved / p$t
    spread <- colSums(p$values * p$squares)
    to_v <- rowSums(a * (p$between / p$s - d)) -
      p$pi * (spread / p$t - d * p$g) / p$t
    c(p$pi * (to_pi - sum(p$pi * to_pi)), to_means, p$v * to_v)
  }
  list(value = value, gradient = gradient)
}

set.seed(1)
n <- 500
d <- 20
m <- 10
centers <- matrix(2 * rnorm(m * d), m)
x <- centers[sample.int(m, n, TRUE), ] + matrix(rnorm(n * d), n)
first <- kme_density(x, m = m, scale = FALSE, shape = "isotropic")
estimate <- first$mean
theta <- first$kernel$bandwidth
start <- first[c("weights", "means", "variances")]
begin <- c(log(pmax(start$weights, 1e-4 / m)), start$means,
           log(start$variances))
r <- plain(x, theta, m)

heading("Is it the same objective?")
match <- kernmean:::matcher(estimate)
found <- match(start)
cat(sprintf("  difference of J %.0e, of its gradient by the means %.0e\n",
            abs(r$value(c(log(start$weights), begin[-seq_len(m)])) -
                  found$objective),
            max(abs(r$gradient(begin)[m + 1:(m * d)] - found$to_means))))

heading("One value with its gradient")
here_time <- best_short(match(start))
row("kme_density's, in C", here_time)
both <- best_short({
  r$value(begin)
  r$gradient(begin)
})
row("plain R", both)
bar("plain R / C", both / here_time, 5)

# From optimal weights, with the estimate given, so that what is timed is the
# descent; the objective is in units of the squared distance at the start, as
# kme_density() takes it.
fit <- function() {
  kme_density(x, estimator = estimate, start = start, optimize = "all",
              validate = 0)
}
scale <- found$objective + estimate$norm2
descend <- function(gradient, iterations) {
  stats::optim(begin, \(u) (r$value(u) - found$objective) / scale,
               if (gradient) \(u) r$gradient(u) / scale, method = "BFGS",
               control = list(maxit = iterations))
}

heading("All parameters: n = 500, d = 20, m = 10")
describe <- function(label, objective, norm2) {
  cat(sprintf("     %-43s %.6e\n", paste("distance^2 reached,", label),
              objective + norm2))
}
mine <- vapply(1:2, \(t) with_threads(t, best(fit(), 3)), numeric(1))
ours <- min(mine)
result <- fit()
row("kme_density, 1 thread", mine[1],
    paste(utils::tail(result$path$step, 1), "steps"))
row("kme_density, 2 threads", mine[2])
describe("kme_density", result$objective, estimate$norm2)

peer <- descend(TRUE, 500)
its <- best(descend(TRUE, 500), 2)
row("BFGS, analytic gradient in plain R", its,
    sprintf("%d values, %d gradients", peer$counts[1], peer$counts[2]))
describe("BFGS", peer$value * scale + found$objective, estimate$norm2)
bar("time, BFGS with analytic gradient / kme_density", its / ours, 5)

iterations <- if (large) 500 else 20
seconds <- system.time(slow <- descend(FALSE, iterations))[["elapsed"]]
row(sprintf("BFGS, gradient by differences, %d iterations", iterations),
    seconds, if (!large) "(stopped: a lower bound)" else
      sprintf("%d values, %d gradients", slow$counts[1], slow$counts[2]))
describe("by differences", slow$value * scale + found$objective,
         estimate$norm2)
bar("time, BFGS by differences / kme_density", seconds / ours, 100)

# No quadratic program, no units, no tolerance: both take the same steps.
heading("100 steps from the clusters, the estimate given")
stepped <- function() {
  kme_density(x, estimator = estimate, start = start, optimize = "all",
              steps = 100)
}
in_steps <- best(stepped(), 3)
row("kme_density", in_steps)
walk <- function() {
  stats::optim(begin, r$value, r$gradient, method = "BFGS",
               control = list(maxit = 100, reltol = 0))
}
# About half of our time is that of optim() itself.
row("BFGS, analytic gradient in plain R", best(walk(), 2))
describe("kme_density", stepped()$objective, estimate$norm2)
describe("BFGS", walk()$value, estimate$norm2)

heading("The rest of a fit")
row("k-means, 50 starts (stats::kmeans)", best(
  suppressWarnings(stats::kmeans(x, m, 100, 50)), 3))
row("kme_density, optimal weights, start given",
    best_short(kme_density(x, start = start, scale = FALSE)))
row("kme_density, all, validated, k-means included",
    best(kme_density(x, m = m, optimize = "all", scale = FALSE), 3))
z <- matrix(rnorm(1e5 * d), 1e5)
row("log density of 100,000 points", best(predict(first, z, type = "log"), 3))

# Rscript bench/effects.R
# Weights that match embeddings and effects with errors: 10,000 rows with ten
# covariates and 200 landmarks, 2,000 rows exactly, clusters and folds; against
# the products of matrices that they take and against peers in the same run:
# augmented weighting by glm() and lm(), and WeightIt.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
limit <- limit_program(dirname(here))("products", 2)

draw <- function(n) {
  x <- matrix(rnorm(n * 10), n)
  treat <- rbinom(n, 1, plogis(x[, 1] / 2 - x[, 2]^2 / 4))
  list(x = x, treat = treat, y = x[, 1] + treat + rnorm(n),
       frame = data.frame(treat = treat, x = I(x)))
}

augmented <- function(data) {
  t <- data$treat
  p <- fitted(glm(treat ~ x, binomial(), data$frame))
  line <- \(arm) {
    fit <- lm.fit(cbind(1, data$x)[t == arm, ], data$y[t == arm])
    drop(cbind(1, data$x) %*% fit$coefficients)
  }
  y1 <- line(1)
  y0 <- line(0)
  part <- y1 - y0 + t / p * (data$y - y1) - (1 - t) / (1 - p) * (data$y - y0)
  c(mean(part), sd(part) / sqrt(length(t)))
}

# Seconds of a method of WeightIt that needs a package more.
weight_it <- function(data, method, needs) {
  measured(needs, measured("WeightIt", best(suppressWarnings(
    WeightIt::weightit(treat ~ x, data$frame, method = method)
  ), 1)))
}

# With one bandwidth; the choice of a kernel has a section of its own.
effect <- function(data, ...) {
  kme_effect(data$x, data$y, data$treat, control = list(learn = FALSE, ...))
}
matching <- function(data, ...) kme_weights(data$x, treat = data$treat, ...)

# --- Landmarks ----------------------------------------------------------------

set.seed(1)
n <- 10000
m <- 200
large <- draw(n)
f <- matrix(rnorm(n * m), n)
root <- matrix(rnorm(m * m), m)
heading("10,000 rows, ten covariates, 200 landmarks")
times <- in_turn(
  5, weights = matching(large, landmarks = m),
  effect = effect(large, landmarks = m), peer = augmented(large),
  products = {
    f %*% root
    crossprod(f)
  }
)
least <- apply(times, 1, min)
# Of both arms: features of all rows and of their own, all turned, and moments.
flops <- (2 * n * 4 + 2 * n * 2 + n) * m^2
row("kme_weights()", least[["weights"]],
    share_of(limit, flops, least[["weights"]]))
row("kme_effect()", least[["effect"]], share_of(limit, flops,
                                                least[["effect"]]))
row("logistic weights and lines by glm() and lm.fit()", least[["peer"]])
bar("weights and an effect, seconds",
    least[["weights"]] + least[["effect"]], 1.2, at_least = FALSE)
row("WeightIt, entropy balancing", weight_it(large, "ebal", "stats"))

# --- Exactly ------------------------------------------------------------------

exact <- draw(2000)
heading("2,000 rows, ten covariates, exactly")
times <- in_turn(3, weights = matching(exact), effect = effect(exact))
least <- apply(times, 1, min)
row("kme_weights()", least[["weights"]])
row("kme_effect()", least[["effect"]])
bar("the slower one, seconds", max(least), 3, at_least = FALSE)
row("WeightIt, entropy balancing", weight_it(exact, "ebal", "stats"))
energy <- weight_it(exact, "energy", "osqp")
row("WeightIt, energy balancing", energy)
bar("energy balancing, time to kme_weights()'", energy / least[["weights"]], 1)

# The factor stops short of what no penalty notices, and not.
many <- draw(3000)
in_full <- \() {
  assignInNamespace("most_in_full", Inf, "kernmean")
  on.exit(assignInNamespace("most_in_full", 1000L, "kernmean"))
  effect(many)
}
heading("3,000 rows, ten covariates")
times <- in_turn(2, short = fit <<- effect(many),
                 full = whole <<- in_full())
row("kme_effect()", min(times["short", ]))
row("... with all of K", min(times["full", ]))
bar("all of K, time to kme_effect()'",
    median(times["full", ] / times["short", ]), 1.5)
bar("largest difference, in standard errors",
    max(abs(coef(fit) - coef(whole)) / sqrt(diag(vcov(whole)))), 1e-4,
    at_least = FALSE)

# --- The choice of a kernel ---------------------------------------------------

# Two of ten columns matter, so that another kernel is taken; or all do alike.
few <- function(n) {
  x <- matrix(rnorm(n * 10), n)
  wave <- abs(x[, 1]) + x[, 1] * x[, 2] / 2
  treat <- rbinom(n, 1, plogis(wave - 1))
  list(x = x, treat = treat, y = 2 * wave + treat + rnorm(n))
}
plane <- function(n) {
  x <- matrix(rnorm(n * 10), n)
  treat <- rbinom(n, 1, plogis(rowSums(x) / 4))
  list(x = x, treat = treat, y = rowSums(x) * 0.4 + treat + rnorm(n))
}
heading("Ten covariates, the kernel chosen by left-out losses")
chosen <- function(data) {
  suppressWarnings(kme_effect(data$x, data$y, data$treat))
}
for (n in c(500, 2000)) {
  for (kind in c("few", "plane")) {
    data <- get(kind)(n)
    times <- in_turn(if (n > 500) 3 else 9, chosen = chosen(data),
                     one = suppressWarnings(effect(data)))
    row(paste0(n, " rows, ", kind, " (", chosen(data)$columns$kernel, ")"),
        min(times["chosen", ]))
    row("... with one bandwidth", min(times["one", ]))
    bar("the choice, time to that with one bandwidth",
        median(times["chosen", ] / times["one", ]), 3, at_least = FALSE)
  }
}

# --- Clusters -----------------------------------------------------------------

small <- draw(500)
cluster <- rep(1:100, length.out = 500)
heading("500 rows, exactly")
times <- in_turn(
  5, rows = effect(small), clusters = kme_effect(
    small$x, small$y, small$treat, clusters = cluster,
    control = list(learn = FALSE)
  ), folds = effect(small, folds = 5)
)
least <- apply(times, 1, min)
row("kme_effect()", least[["rows"]])
row("... in 100 clusters", least[["clusters"]])
row("... with five folds", least[["folds"]])
bar("100 clusters, time to that of rows",
    median(times["clusters", ] / times["rows", ]), 5, at_least = FALSE)

# --- Clusters left out by systems of equations in R ---------------------------

# ridge_left_out() as it was: for each unit and penalty a system of equations.
left_out_in_R <- function(r, functional, lambda, y, unit, functional_unit) {
  values <- kernmean:::ridge_values(r, functional, lambda, y)
  inverse <- kernmean:::ridge_inverse(r, lambda) / nrow(r$z)
  share <- nrow(r$z) / nrow(functional$b) * functional$weights
  for (u in unique(c(unit, functional_unit))) {
    i <- which(unit == u)
    j <- which(functional_unit == u)
    z <- r$z[i, , drop = FALSE]
    b <- functional$b[j, , drop = FALSE]
    lost <- inverse * drop(crossprod(b, share[j]))
    alpha <- values$alpha[i, , drop = FALSE] - z %*% lost
    g <- values$residuals[i, , drop = FALSE]
    for (l in if (length(i)) seq_along(lambda)) {
      scaled <- z * rep(inverse[, l], each = nrow(z))
      left <- diag(length(i)) - tcrossprod(scaled, z * r$weights[i])
      both <- solve(left, cbind(alpha[, l], g[, l]))
      alpha[, l] <- both[, 1]
      g[, l] <- both[, 2]
    }
    moved <- \(x) b %*% (inverse * crossprod(z, r$weights[i] * x))
    values$alpha[i, ] <- alpha
    values$residuals[i, ] <- g
    values$of_alpha[j, ] <- values$of_alpha[j, ] - b %*% lost + moved(alpha)
    values$of_g[j, ] <- values$of_g[j, ] - moved(g)
  }
  values
}

with_left_out <- function(f, code) {
  before <- kernmean:::ridge_left_out
  assignInNamespace("ridge_left_out", f, "kernmean")
  on.exit(assignInNamespace("ridge_left_out", before, "kernmean"))
  code
}

many <- draw(1000)
many$x <- many$x[, 1:2]
cluster <- rep(1:250, length.out = 1000)
in_clusters <- \() kme_effect(many$x, many$y, many$treat, clusters = cluster)
heading("1,000 rows, two covariates, 250 clusters of four")
stopifnot(all.equal(vcov(in_clusters()),
                    with_left_out(left_out_in_R, vcov(in_clusters()))))
times <- in_turn(5, core = in_clusters(),
                 plain = with_left_out(left_out_in_R, in_clusters()))
least <- apply(times, 1, min)
row("kme_effect()", least[["core"]])
row("... leaving clusters out in R", least[["plain"]])
bar("leaving clusters out in R, time to kme_effect()'",
    median(times["plain", ] / times["core", ]), 3)

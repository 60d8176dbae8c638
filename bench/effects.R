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

effect <- function(data, ...) {
  kme_effect(data$x, data$y, data$treat, control = list(...))
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
    least[["weights"]] + least[["effect"]], 1.5, at_least = FALSE)
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

# --- Clusters -----------------------------------------------------------------

small <- draw(500)
cluster <- rep(1:100, length.out = 500)
heading("500 rows, exactly")
times <- in_turn(
  5, rows = effect(small), clusters = kme_effect(
    small$x, small$y, small$treat, clusters = cluster
  ), folds = effect(small, folds = 5)
)
least <- apply(times, 1, min)
row("kme_effect()", least[["rows"]])
row("... in 100 clusters", least[["clusters"]])
row("... with five folds", least[["folds"]])
bar("100 clusters, time to that of rows",
    median(times["clusters", ] / times["rows", ]), 5, at_least = FALSE)

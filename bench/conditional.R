# Rscript bench/conditional.R
# Tests given covariates, and distributions given covariates, beside what random
# forests take for the same: the generalized covariance measure of two
# regressions, and quantiles. All in one run.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))

rows <- function(n, d) {
  set.seed(1)
  z <- matrix(rnorm(n * d), n, dimnames = list(NULL, paste0("z", seq_len(d))))
  bent <- sin(2 * z[, 1])
  data.frame(y = bent + rnorm(n), x = bent + rnorm(n), z)
}

given <- function(data) {
  formula <- reformulate(paste("x |", paste(names(data)[-(1:2)],
                                            collapse = " + ")), "y")
  environment(formula) <- environment()
  suppressWarnings(hsic_test(formula, data, B = 199))
}

# Out-of-bag residuals of both sides, their products, a normal approximation.
forest_measure <- function(data) {
  residuals <- \(side, other) {
    forest <- ranger::ranger(reformulate(names(data)[-(1:2)], side), data,
                             num.threads = 2)
    data[[side]] - forest$predictions
  }
  products <- residuals("y") * residuals("x")
  2 * pnorm(-sqrt(length(products)) * abs(mean(products)) / sd(products))
}

forest_quantiles <- function(data) {
  forest <- ranger::ranger(y ~ . - x, data, quantreg = TRUE, num.threads = 2)
  predict(forest, data, type = "quantiles", quantiles = c(0.1, 0.5, 0.9))
}

kernel_quantiles <- function(data) {
  fit <- kme(y ~ . - x, data)
  predict(fit, data, type = "quantile", probs = c(0.1, 0.5, 0.9))
}

asked <- data.frame(n = c(1000, 1000, 10000), d = c(1, 5, 1),
                    seconds = c(0.5, 0.5, 10))
for (i in seq_len(nrow(asked))) {
  data <- rows(asked$n[i], asked$d[i])
  heading(sprintf("y and x given z, n = %d, %d columns", asked$n[i],
                  asked$d[i]))
  ours <- best(given(data), 3)
  row("hsic_test(y ~ x | z), B = 199", ours)
  bar("seconds", ours, asked$seconds[i], at_least = FALSE)
  theirs <- measured("ranger", best(forest_measure(data), 3))
  row("GCM by two forests of 500 trees", theirs)
  cat(sprintf("  %-46s %9.2f\n", "ours / theirs", ours / theirs))
  ours <- best(kernel_quantiles(data), 3)
  row("kme(y ~ z) and three quantiles", ours)
  theirs <- measured("ranger", best(forest_quantiles(data), 3))
  row("quantiles by a forest of 500 trees", theirs)
  cat(sprintf("  %-46s %9.2f\n", "ours / theirs", ours / theirs))
}

# The null distribution of a test of normality.

test_that("draws of \"normal\" are those of the statistic of normal samples", {
  for (type in c("biased", "unbiased")) for (d in c(1, 2, 5)) {
    for (n in c(d + 2, 30)) {
      x <- matrix(rnorm(n * d), n)
      control <- test_control(statistic = type)
      asked <- list(statistic = type, estimator = est_kme())
      set.seed(n)
      got <- mmd_gof(x, "normal", B = 19, control = control)$replicates
      after <- runif(1)
      set.seed(n)
      law <- list(kind = "normal", d = d)
      want <- replicate(19, {
        model_statistic(matrix(rnorm(n * d), n), law, asked)$value
      })
      expect_near(got, want, 1e-9)
      expect_identical(after, runif(1))
    }
  }
  # As the paper prints it, in one column.
  set.seed(1)
  got <- mmd_gof(1:8 + 0, "normal", B = 1)$replicates
  set.seed(1)
  z <- rnorm(8)
  z <- (z - mean(z)) / sqrt(mean((z - mean(z))^2))
  beta2 <- (3 * 8 / 4)^(2 / 5) / 2
  expect_near(got, 8 * (
    mean(exp(-beta2 * outer(z, z, `-`)^2 / 2)) -
      2 * mean(exp(-beta2 * z^2 / (2 * (1 + beta2)))) / sqrt(1 + beta2) +
      1 / sqrt(1 + 2 * beta2)
  ), 1e-12)
  set.seed(2)
  one <- mmd_gof(1:8 + 0, "normal", B = 19)
  mmd_gof(1:8 + 0, "normal", B = 19)
  set.seed(2)
  expect_identical(mmd_gof(1:8 + 0, "normal", B = 19), one)
})

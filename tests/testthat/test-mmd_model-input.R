pair <- list(weights = c(0.4, 0.6), means = cbind(c(55, 80)),
             covariances = c(36, 36))
x <- c(60, 70, 80, 52)

refused <- function(call, message) {
  expect_error(call, message, class = "kernmean_error_input")
}

test_that("what does not belong to a test against a model is refused", {
  refused(mmd_test(x, pair, permutations = "all"), "'permutations'.*no labels")
  refused(mmd_test(x, "normal", blocks = 1:4), "'blocks'.*no labels")
  refused(mmd_test(x, pair, bandwidths = "fuse"), "'bandwidths'.*one kernel")
  refused(mmd_test(x, model = pair, filter = TRUE), "'filter'.*unfiltered")
  refused(mmd_test(x, pair, null = "spectrum"), "'null'.*simulated")
  refused(mmd_test(x, "normal", kernel = kernel_rbf(1)), "'kernel' must be NU")
  refused(mmd_test(x, "normal", scale = TRUE), "'scale' must be FALSE")
  refused(mmd_test(x, "normal", estimator = "skmse"), "'estimator'")
  refused(mmd_test(x, pair, estimator = "fkmse", statistic = "unbiased"),
          "'statistic' must be \"biased\"")
  refused(mmd_test(x, pair, estimator = est_skmse(target = pair)), "no target")
  for (kernel in list(kernel_poly(4), kernel_laplace(), kernel_energy(),
                      kernel_function(\(x, y) x %*% t(y)))) {
    refused(mmd_test(x, pair, kernel), "mixture.*give a function of n")
  }
  refused(mmd_test(x, rnorm, kernel_energy(), "skmse"), "positive definite")
  refused(test_model(gram(x), pair, c(x = "x", model = "m")), "points")
})

test_that("models that are none are refused", {
  refused(mmd_test(x, model = "norm"), "'model' must be \"normal\"")
  refused(mmd_test(x, model = 1:3), "not a vector of length 3")
  refused(mmd_test(x, model = faithful), "not a data frame")
  refused(mmd_test(cbind(x, x), pair), "'model\\$means' must be 2 x 2")
  pair$covariances <- c(1, -1)
  refused(mmd_test(x, pair), "number 2 is not")
  pair$weights <- c(0.5, 0.6)
  refused(mmd_test(x, pair), "sum to 1")
})

test_that("what a function returns is looked at", {
  refused(mmd_test(x, \(n) 1:3), "model\\(10000\\) returned a vector of")
  refused(mmd_test(x, \(n) matrix(0, n, 2)), "double matrix of 10000 x 2")
  refused(mmd_test(cbind(x, x), rnorm), "n rows and 2 columns")
  refused(mmd_test(x, \(n) letters), "character")
  refused(mmd_test(x, \(n) data.frame(a = rep("b", n))), "numeric columns")
  refused(mmd_test(x, \(n) iris[1:3, ]), "data frame of 3 x 5")
  refused(mmd_test(x, \(n) c(NA, numeric(n - 1))), "model\\(10000\\).*1 NA")
  refused(mmd_test(x, \(n) rnorm(n) / 0), "Inf")
  refused(mmd_test(x, \(n) NULL), "not NULL|returned NULL")
  refused(mmd_test(x, \(n) stop("no power")), "stopped: no power")
  refused(mmd_test(x, \() 1), "stopped")
  # A function that fails later is caught as well.
  refused(mmd_test(x, \(n) if (n == 4) NA else rnorm(n)), "model\\(4\\)")
  refused(mmd_test(data.frame(a = x, b = 1:4),
                   \(n) data.frame(a = rnorm(n), c = 1)), "missing: 'b'")
  expect_warning(mmd_test(x, \(n) {
    set.seed(1)
    rnorm(n)
  }, B = 3), "sets a seed", class = "kernmean_warning")
})

test_that("samples that cannot be tested are refused", {
  refused(mmd_test(3, pair), "at least 2 points")
  refused(mmd_test(numeric(), pair), "at least one row")
  refused(mmd_test(c(1, NA), pair), "1 NA; na.omit")
  refused(mmd_test(airquality, "normal"), "in 'Ozone', 'Solar.R'")
  refused(mmd_test(iris, "normal"), "'Species' is a factor")
  refused(mmd_test(1:2, "normal"), "at least 3 points")
  refused(mmd_test(matrix(rnorm(40), 4), "normal"), "at least 12 points")
  refused(mmd_test(rep(1, 9), "normal"), "rank 0 in 1 column.*is constant")
  refused(mmd_test(data.frame(a = 1:9, g = 2), "normal"),
          "rank 1 in 2 columns: 'g' is constant")
  set.seed(1)
  z <- cbind(a = rnorm(9), b = rnorm(9), c = rnorm(9))
  refused(mmd_test(cbind(z, e = z[, "a"] - 3 * z[, "c"]), "normal"),
          "rank 3 in 4 columns: 'a', 'c', 'e' are linearly dependent")
  # Near it is not at it.
  near <- cbind(z[, 1], z[, 1] + 1e-5 * z[, 2])
  expect_equal(mmd_test(near, "normal", B = 1)$statistic,
               mmd_test(z[, 1:2], "normal", B = 1)$statistic, tolerance = 1e-8)
})

test_that("a kept null must fit", {
  set.seed(2)
  test <- mmd_test(faithful[1:20, ], "normal", B = 9)
  refused(mmd_test(faithful, "normal", null = test),
          "n = 272, d = 2, not n = 20, d = 2")
  refused(mmd_test(faithful[1:20, 1], "normal", null = test), "d = 1, not n")
  refused(mmd_test(faithful[21:40, ], "normal", null = test, B = 99), "own, 9")
  refused(mmd_test(faithful[21:40, ], "normal", null = test,
                   statistic = "unbiased"), "same statistic")
  other <- mmd_test(x, pair, B = 9)
  refused(mmd_test(x, pair, null = other), "only draws of \"normal\"")
  refused(mmd_test(x, "normal", null = other), "another model")
})

test_that("a fit to the same points is a warning, to others it is a mixture", {
  set.seed(3)
  z <- rbind(faithful[1:60, ])
  fit <- kme_density(z, m = 2)
  expect_warning(mmd_test(z[60:1, ], fit, B = 3, scale = TRUE),
                 "fitted to the points",
                 class = "kernmean_warning_refit")
  new <- faithful[61:100, ]
  test <- mmd_test(new[2:1], fit, B = 3, scale = TRUE)
  mixture <- list(weights = fit$weights, means = fit$means,
                  covariances = fit$covariances)
  expect_equal(test$statistic[[1L]],
               kme_risk(kme(new, scale = TRUE), mixture))
  refused(mmd_test(cbind(p = 1:4, q = 1:4), fit), "columns of the model")
  # Isotropic components, in the units of the user.
  fit <- kme_density(z, m = 2, shape = "isotropic")
  law <- read_law(fit, as.matrix(new))
  q <- law$mixture
  at <- unname(as.matrix(new)[1:5, ])
  density <- rowSums(vapply(1:2, \(c) {
    s <- q$covariances[, , c]
    u <- sweep(at, 2, q$means[c, ])
    q$weights[c] * exp(-rowSums((u %*% solve(s)) * u) / 2) /
      (2 * pi * sqrt(det(s)))
  }, numeric(5)))
  expect_equal(unname(predict(fit, at)), density)
})

test_that("degenerate models are tested all the same", {
  point <- list(weights = c(1, 0), means = cbind(c(5, 1)),
                covariances = c(0, 1))
  set.seed(4)
  # All at one point: every sample is the model, and ties with it.
  expect_equal(mmd_test(rep(5, 6), point, B = 19)$p.value, 1)
  expect_equal(mmd_test(c(5, 5, 5, 5.1), point, B = 19)$p.value, 0.05)
})

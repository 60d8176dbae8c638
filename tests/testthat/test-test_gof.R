# Tests of a sample against a model.

two <- list(weights = c(0.3, 0.7), means = rbind(c(-1, 0), c(1, 2)),
            covariances = array(c(1, 0.5, 0.5, 2, 0.3, 0, 0, 0.3), c(2, 2, 2)))

draw_two <- function(n) {
  which <- sample.int(2L, n, TRUE, two$weights)
  z <- matrix(rnorm(2 * n), n)
  for (c in 1:2) {
    z[which == c, ] <- z[which == c, ] %*% chol(two$covariances[, , c])
  }
  two$means[which, ] + z
}

test_that("the statistic is the risk of each estimator", {
  skip_on_cran()
  set.seed(2)
  x <- draw_two(15)
  for (estimator in c("kme", "skmse", "fkmse", "mkme", "mmkme", "smooth",
                      "stack")) {
    for (kernel in list(kernel_rbf(), kernel_poly(2))) {
      if (estimator %in% c("smooth", "stack") &&
            kernel_has(kernel, "inner products")) next
      test <- mmd_gof(x, two, kernel, estimator, B = 19)
      risk <- kme_risk(kme(x, kernel, estimator), two)
      expect_near(test$statistic[[1L]], risk, 1e-9)
      expect_near(test$estimate[["MMD"]], sqrt(risk), 1e-9)
    }
  }
  own <- mmd_gof(x, two, estimator = \(s) seq_len(s$n) / 120, B = 19)
  expect_equal(own$statistic[[1L]],
               kme_risk(kme(x, weights = seq_len(15) / 120), two))
})

test_that("the unbiased statistic leaves out the pairs of a point and itself", {
  set.seed(3)
  x <- draw_two(9)
  kernel <- kernel_rbf(1.1)
  unbiased <- test_control(statistic = "unbiased")
  test <- mmd_gof(x, two, kernel, control = unbiased, B = 19)
  k <- kernel_matrix(x, kernel = kernel)
  biased <- mmd_gof(x, two, kernel, B = 19)$statistic[[1L]]
  first <- (sum(k) - 9) / 72
  expect_equal(test$statistic[[1L]], biased - mean(k) + first)
  expect_equal(test$type, "unbiased")
})

test_that("units of a mixture are those of the sample", {
  set.seed(4)
  x <- draw_two(25) %*% diag(c(1, 50))
  wide <- two
  wide$means <- two$means %*% diag(c(1, 50))
  wide$covariances[] <- apply(two$covariances, 3L, \(s) {
    diag(c(1, 50)) %*% s %*% diag(c(1, 50))
  })
  for (scale in list(TRUE, "whiten")) {
    a <- mmd_gof(x, wide, scale = scale, B = 19)
    expect_equal(a$statistic[[1L]], kme_risk(kme(x, scale = scale), wide))
    # The unit of a column goes.
    b <- mmd_gof(x %*% diag(c(1, 1 / 50)), two, scale = scale, B = 19)
    expect_equal(a$statistic, b$statistic)
  }
})

test_that("a linear kernel far from the origin keeps its digits", {
  x <- c(1, 2, 4) + 1e8
  model <- list(weights = 1, means = 1e8 + 2, covariances = 1)
  test <- mmd_gof(x, model, kernel_linear(), B = 19)
  expect_near(test$statistic[[1L]], (1 / 3)^2, 1e-7)
})

test_that("draws of a mixture have its moments, singular ones too", {
  law <- read_law(list(
    weights = c(0.25, 0, 0.75), means = rbind(c(0, 0), c(1e6, 0), c(4, 4)),
    covariances = array(c(1, 2, 2, 4, diag(2), diag(2) * 0), c(2, 2, 3))
  ), matrix(0, 1, 2), list())
  set.seed(6)
  z <- law_draw(law, 4000L)
  last <- z[, 1] == 4 & z[, 2] == 4
  expect_lt(abs(sum(last) - 3000), 4 * sqrt(4000 * 0.25 * 0.75))
  expect_near(z[!last, 2], 2 * z[!last, 1], 1e-12)
  m <- sum(!last)
  expect_lt(abs(mean(z[!last, 1])), 4 / sqrt(m))
  expect_lt(abs(var(z[!last, 1]) - 1), 4 * sqrt(2 / m))
})

test_that("a function is compared by its first 10,000 draws", {
  skip_on_cran()
  set.seed(8)
  x <- matrix(runif(24), 12)
  draw <- \(n) matrix(rexp(2 * n), n)
  set.seed(9)
  test <- few_draws(mmd_gof(x, draw, B = 3))
  set.seed(9)
  z <- draw(10000)
  samples <- lapply(1:3, \(b) draw(12))
  kernel <- kme(z)$kernel
  model <- kme(z, kernel)
  square <- \(s) {
    kme(s, kernel)$norm2 - 2 * mean(predict(model, s)) + model$norm2
  }
  expect_equal(test$statistic[[1L]], square(x))
  expect_near(test$replicates, vapply(samples, square, 1), 1e-8)
  expect_equal(test$parameter[["bandwidth"]], kernel$bandwidth)
  expect_equal(test$p.value, (1 + sum(test$replicates >= test$statistic)) / 4)
  set.seed(9)
  other <- few_draws(update(test, x = 2 * x))
  expect_equal(other$statistic[[1L]], square(2 * x))
})

test_that("data frames of a function are matched by name", {
  set.seed(11)
  draw <- \(n) data.frame(b = rnorm(n, 5), a = rexp(n))
  x <- data.frame(a = rexp(20), b = rnorm(20, 5))
  set.seed(12)
  one <- mmd_gof(x, draw, B = 19)
  set.seed(12)
  two <- mmd_gof(x[2:1], draw, B = 19)
  expect_equal(one$statistic, two$statistic)
  # Those of the null distribution, too.
  expect_equal(one$replicates, two$replicates)
})

# --- "normal" ----------------------------------------------------------------

# Henze and Zirkler (1990), as printed.
naive_bhep <- function(x) {
  x <- as.matrix(x)
  n <- nrow(x)
  d <- ncol(x)
  beta <- 1 / sqrt(2) * ((2 * d + 1) * n / 4)^(1 / (d + 4))
  s <- cov(x) * (n - 1) / n
  pairs <- vapply(1:n, \(j) mahalanobis(x, x[j, ], s), numeric(n))
  far <- mahalanobis(x, colMeans(x), s)
  sum(exp(-beta^2 / 2 * pairs)) / n - 2 * (1 + beta^2)^(-d / 2) *
    sum(exp(-beta^2 * far / (2 * (1 + beta^2)))) +
    n * (1 + 2 * beta^2)^(-d / 2)
}

test_that("the statistic of \"normal\" is that of Henze and Zirkler", {
  for (x in list(faithful$waiting[1:40], iris[1:50, 1:4], mtcars)) {
    test <- mmd_gof(x, "normal", B = 19)
    expect_near(test$statistic[["BHEP"]], naive_bhep(x), 1e-10)
    n <- NROW(x)
    expect_equal(test$estimate[["MMD"]]^2 * n, test$statistic[["BHEP"]])
  }
})

test_that("affine maps do not change it", {
  x <- as.matrix(iris[51:100, 1:3])
  bhep <- \(x) mmd_gof(x, "normal", B = 19)$statistic[[1L]]
  set.seed(13)
  turned <- x %*% matrix(rnorm(9), 3) + rep(c(100, -3, 0), each = 50)
  expect_near(bhep(turned), bhep(x), 1e-10)
  # Units that are far apart are no singular covariance.
  units <- x * rep(c(1e-150, 1, 1e150), each = 50)
  expect_near(bhep(units), bhep(x), 1e-10)
  expect_near(bhep(x + 1e6), bhep(x), 1e-6)
})

test_that("draws are treated as the sample is", {
  set.seed(14)
  test <- few_draws(mmd_gof(matrix(rexp(20), 10), "normal", B = 4))
  set.seed(14)
  invisible(rexp(20))
  samples <- lapply(1:4, \(b) matrix(rnorm(20), 10))
  own <- vapply(samples, \(x) {
    few_draws(mmd_gof(x, "normal", draws = test))$statistic
  }, 1)
  expect_equal(test$replicates, own)
  # A mixture: the same rule for the bandwidth of each.
  x <- draw_two(10)
  set.seed(15)
  test <- few_draws(mmd_gof(x, two, B = 3,
                            control = test_control(statistic = "unbiased")))
  set.seed(15)
  samples <- lapply(1:3, \(b) law_draw(test$model, 10L))
  own <- vapply(samples, \(x) {
    few_draws(update(test, x = x, B = 1))$statistic
  }, 1)
  expect_equal(test$replicates, own)
})

test_that("p-values are uniform under the model", {
  skip_on_cran()
  set.seed(17)
  sets <- 70
  p <- c(vapply(seq_len(sets), \(i) {
    few_draws(mmd_gof(rnorm(6, 3, 2), "normal", B = 9))$p.value
  }, 1), vapply(seq_len(sets), \(i) {
    few_draws(mmd_gof(draw_two(5), two, kernel_rbf(1), B = 9))$p.value
  }, 1))
  expect_true(all(abs(10 * p - round(10 * p)) < 1e-9))
  for (level in c(0.1, 0.3, 0.5)) {
    band <- qbinom(c(0.0005, 0.9995), 2 * sets, level)
    expect_gte(sum(p <= level + 1e-9), band[1L])
    expect_lte(sum(p <= level + 1e-9), band[2L])
  }
})

test_that("the null of \"normal\" is kept and lent", {
  set.seed(18)
  first <- mmd_gof(faithful[1:40, ], "normal", B = 49)
  set.seed(19)
  before <- .Random.seed
  second <- mmd_gof(faithful[41:80, ], "normal", draws = first)
  expect_identical(.Random.seed, before)
  expect_identical(second$replicates, first$replicates)
  expect_equal(second$p.value,
               (1 + sum(first$replicates >= second$statistic)) / 50)
  # A test keeps the statistics of its draws, not the samples.
  expect_lt(length(serialize(first, NULL)), 20000)
})

# --- The object --------------------------------------------------------------

test_that("print, summary, update and data frames", {
  set.seed(20)
  test <- mmd_gof(~ waiting, faithful, "normal", B = 19)
  expect_snapshot(print(test))
  pair <- list(weights = c(0.4, 0.6), means = cbind(c(55, 80)),
               covariances = c(36, 36))
  mixed <- mmd_gof(faithful$waiting, pair, B = 19)
  expect_snapshot(summary(mixed))
  other <- update(test, x = faithful$waiting[1:50])
  expect_equal(other$parameter[["n"]], 50)
  expect_match(other$data.name, "faithful$waiting[1:50]", fixed = TRUE)
  refused(update(test, blocks = 1), "unused argument: 'blocks'")
  refused(update(mixed, model = "normal", kernel = kernel_rbf(1)), "'kernel'")
})

test_that("the null distribution is drawn", {
  test <- few_draws(mmd_gof(iris[1:4], "normal", B = 9))
  expect_identical(on_device(plot(test)), test$replicates)
  refused(plot(test, "witness"), "must be \"null\"")
})

# --- What is refused ---------------------------------------------------------

pair <- list(weights = c(0.4, 0.6), means = cbind(c(55, 80)),
             covariances = c(36, 36))
x <- c(60, 70, 80, 52)

test_that("what does not belong to a test against a model is refused", {
  with <- \(...) mmd_gof(x, pair, control = test_control(...))
  refused(with(permutations = "all"), "'permutations'.*drawn from a model")
  refused(with(null = "spectrum"), "'null'.*simulation")
  refused(mmd_gof(x, "normal", kernel = kernel_rbf(1)), "'kernel' must not be")
  refused(mmd_gof(x, "normal", scale = TRUE), "'scale' must be FALSE")
  refused(mmd_gof(x, pair, estimator = "fkmse",
                  control = test_control(statistic = "unbiased")),
          "'statistic' must be \"biased\"")
  refused(mmd_gof(x, pair, estimator = est_skmse(target = pair)), "no target")
  refused(mmd_gof(x, pair, kernel_poly(4)), "mixture.*give a function of n")
  refused(mmd_gof(x, rnorm, kernel_energy(), "skmse"), "positive definite")
  refused(mmd_gof(gram(x), pair), "points")
  refused(mmd_gof(x, "norm"), "'model' must be \"normal\"")
  refused(mmd_gof(x, faithful), "not a data frame")
  refused(mmd_gof(cbind(x, x), pair), "'model\\$means' must be 2 x 2")
})

test_that("what a function returns is looked at", {
  refused(mmd_gof(x, \(n) 1:3), "model\\(10000\\) returned a vector of")
  refused(mmd_gof(x, \(n) matrix(0, n, 2)), "double matrix of 10000 x 2")
  refused(mmd_gof(cbind(x, x), rnorm), "n rows and 2 columns")
  refused(mmd_gof(x, \(n) c(NA, numeric(n - 1))), "model\\(10000\\).*1 NA")
  refused(mmd_gof(x, \(n) NULL), "returned NULL")
  refused(mmd_gof(x, \(n) stop("no power")), "stopped: no power")
  # A function that fails later is caught as well.
  refused(mmd_gof(x, \(n) if (n == 4) NA else rnorm(n)), "model\\(4\\)")
  refused(mmd_gof(data.frame(a = x, b = 1:4),
                   \(n) data.frame(a = rnorm(n), c = 1)), "missing: 'b'")
  expect_warning(mmd_gof(x, \(n) {
    set.seed(1)
    rnorm(n)
  }, B = 19), "sets a seed", class = "kernmean_warning")
})

test_that("samples that cannot be tested are refused", {
  refused(mmd_gof(3, pair), "at least 2 points")
  refused(mmd_gof(c(1, NA), pair), "1 NA")
  refused(mmd_gof(iris, "normal"), "'Species' of 'x' must be numeric, not a")
  refused(mmd_gof(matrix(rnorm(40), 4), "normal"), "at least 12 points")
  refused(mmd_gof(rep(1, 9), "normal"), "not rank 0 of 1")
  # A column without a name.
  refused(mmd_gof(cbind(a = 1:9, 2), "normal"), "not rank 1 of 2")
  set.seed(1)
  z <- cbind(a = rnorm(9), b = rnorm(9), c = rnorm(9))
  refused(mmd_gof(cbind(z, e = z[, "a"] - 3 * z[, "c"]), "normal"),
          "linearly dependent columns.*not rank 3 of 4")
  # Near it is not at it.
  near <- cbind(z[, 1], z[, 1] + 1e-5 * z[, 2])
  expect_near(mmd_gof(near, "normal", B = 19)$statistic,
              mmd_gof(z[, 1:2], "normal", B = 19)$statistic, 1e-8)
})

test_that("draws that are lent must fit", {
  set.seed(2)
  test <- mmd_gof(faithful[1:20, ], "normal", B = 19)
  lend <- \(x, model, ...) mmd_gof(x, model, draws = test, ...)
  refused(lend(faithful, "normal"), "n = 272, d = 2, biased, not .*n = 20")
  refused(lend(faithful[1:20, 1], "normal"), "d = 1, biased, not")
  refused(lend(faithful[21:40, ], "normal", B = 99), "'B' must not be given")
  refused(lend(faithful[21:40, ], "normal",
               control = test_control(statistic = "unbiased")), "unbiased, not")
  refused(lend(1:20, pair), "as of \"normal\"")
})

test_that("a fit to the same points is a warning, to others it is a mixture", {
  set.seed(3)
  z <- rbind(faithful[1:60, ])
  fit <- kme_density(z, m = 2)
  expect_warning(mmd_gof(z[60:1, ], fit, B = 19, scale = TRUE),
                 "fitted to 60 of the 60",
                 class = "kernmean_warning_refit")
  new <- faithful[61:100, ]
  test <- mmd_gof(new[2:1], fit, B = 19, scale = TRUE)
  mixture <- list(weights = fit$weights, means = fit$means,
                  covariances = fit$covariances)
  expect_equal(test$statistic[[1L]],
               kme_risk(kme(new, scale = TRUE), mixture))
  refused(mmd_gof(cbind(p = 1:4, q = 1:4), fit), "columns of the model")
})

test_that("degenerate models are tested all the same", {
  point <- list(weights = c(1, 0), means = cbind(c(5, 1)),
                covariances = c(0, 1))
  set.seed(4)
  # All at one point: every sample is the model, and ties with it.
  expect_equal(mmd_gof(rep(5, 6), point, B = 19)$p.value, 1)
  expect_equal(mmd_gof(c(5, 5, 5, 5.1), point, B = 19)$p.value, 0.05)
})

exponential <- list(fit = mean, simulate = \(n, fit) rexp(n, 1 / fit))

test_that("a family is fitted to the sample and to each simulated one", {
  set.seed(3)
  x <- rexp(12)
  set.seed(4)
  test <- mmd_gof(x, fit = mean, simulate = exponential$simulate, B = 19)
  set.seed(4)
  square <- \(x) {
    z <- rexp(500, 1 / mean(x))
    model <- kme(z)
    kme(x, model$kernel)$norm2 - 2 * mean(predict(model, x)) + model$norm2
  }
  expect_near(test$statistic[[1L]], square(x), 1e-10)
  # Draws have the mean of the sample and then their own.
  draws <- replicate(19, square(rexp(12, 1 / mean(x))))
  expect_near(test$replicates, draws, 1e-8)
  expect_equal(test$p.value,
               (1 + sum(draws >= test$statistic)) / 20)
  # A family of scale: its unit does not matter.
  set.seed(4)
  other <- mmd_gof(1000 * x, fit = mean, simulate = exponential$simulate,
                   B = 19)
  expect_identical(other$p.value, test$p.value)
  set.seed(4)
  by <- mmd_gof(~ x, data.frame(x), fit = mean,
                simulate = exponential$simulate, B = 19)
  expect_identical(by$replicates, test$replicates)
  set.seed(4)
  expect_identical(update(test, B = 19)$replicates, test$replicates)
  expect_match(update(test, model = "normal", B = 19)$method, "normality")
  expect_match(capture.output(test), "fitted anew", all = FALSE)
  # Several columns come as a matrix with names.
  two <- cbind(a = rexp(9), b = rnorm(9))
  test <- mmd_gof(two, fit = colMeans, B = 19, simulate = \(n, fit) {
    cbind(rexp(n, 1 / fit[["a"]]), rnorm(n, fit[["b"]]))
  })
  expect_identical(test$parameter[["d"]], 2)
})

test_that("the level with a fit is that of Lilliefors, and there is power", {
  skip_on_cran()
  set.seed(6)
  test <- \(x) {
    mmd_gof(x, fit = mean, simulate = exponential$simulate, B = 19)$p.value
  }
  null <- replicate(100, test(rexp(20)))
  # 3.5 standard deviations; with parameters that are taken as known 0 and 20.
  expect_lte(abs(sum(null <= 0.05) - 5), 8)
  expect_lte(abs(sum(null <= 0.5) - 50), 18)
  expect_gte(sum(replicate(20, test(abs(rnorm(20, 3)))) <= 0.05), 18)
})

test_that("a model that may have been fitted says so, and parts of one are", {
  set.seed(7)
  x <- rexp(20)
  model <- capture.output(mmd_gof(x, \(n) rexp(n, 1 / mean(x)), B = 19))
  expect_match(paste(model, collapse = " "),
               "no parameter of the model may come from these points")
  expect_no_match(paste(capture.output(mmd_gof(x, "normal", B = 19)),
                        collapse = " "), "parameter of the model")
  expect_snapshot(writeLines(refusals(alist(
    mmd_gof(x), mmd_gof(x, fit = mean), mmd_gof(x, simulate = rexp),
    mmd_gof(x, fit = mean, simulate = \(n, fit) 1),
    mmd_gof(x, fit = mean, simulate = \(n, fit) stop("no")),
    mmd_gof(x, fit = \(x) stop("never"), simulate = exponential$simulate),
    mmd_gof(x, "normal", fit = mean, simulate = exponential$simulate)
  ))))
})

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

test_that("closed forms of a mixture agree with its draws", {
  set.seed(1)
  x <- matrix(rnorm(40), 20)
  n <- 2e5
  z <- draw_two(n)
  some <- 1:200
  rest <- seq(201, n, by = 20)
  for (kernel in list(kernel_rbf(1.3), kernel_rbf(c(0.7, 2)), kernel_poly(2),
                      kernel_poly(3, 0.5), kernel_linear())) {
    test <- mmd_test(x, two, kernel = kernel, B = 1)
    fit <- kme(x, kernel)
    # <mu_x, mu_P> and |mu_P|^2 as means over draws, with their errors.
    at <- predict(fit, z)
    pairs <- kernel_matrix(z[some, ], z[rest, ], kernel)
    expected <- fit$norm2 - 2 * mean(at) + mean(pairs)
    error <- sqrt(4 * var(at) / n + var(rowMeans(pairs)) / length(some) +
                    var(colMeans(pairs)) / length(rest))
    expect_lt(abs(test$statistic - expected), 4 * error)
  }
})

test_that("the statistic is the risk of each estimator", {
  skip_on_cran()
  set.seed(2)
  x <- draw_two(15)
  for (estimator in c("kme", "skmse", "fkmse", "mkme", "mmkme", "smooth",
                      "stack")) {
    for (kernel in list(kernel_rbf(), kernel_poly(2))) {
      if (estimator %in% c("smooth", "stack") && is_poly(kernel)) next
      test <- mmd_test(x, two, kernel, estimator, B = 1)
      risk <- kme_risk(kme(x, kernel, estimator), two)
      expect_equal(test$statistic[[1L]], risk, tolerance = 1e-9)
      expect_equal(test$estimate[["MMD"]], sqrt(risk), tolerance = 1e-9)
    }
  }
  own <- mmd_test(x, two, estimator = \(s) seq_len(s$n) / 120, B = 1)
  expect_equal(own$statistic[[1L]],
               kme_risk(kme(x, weights = seq_len(15) / 120), two))
})

test_that("the unbiased statistic leaves out the pairs of a point and itself", {
  set.seed(3)
  x <- draw_two(9)
  kernel <- kernel_rbf(1.1)
  test <- mmd_test(x, two, kernel, statistic = "unbiased", B = 1)
  k <- kernel_matrix(x, kernel = kernel)
  biased <- mmd_test(x, two, kernel, B = 1)$statistic[[1L]]
  first <- 0
  for (i in 1:9) for (j in 1:9) if (i != j) first <- first + k[i, j] / 72
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
    a <- mmd_test(x, wide, scale = scale, B = 3)
    expect_equal(a$statistic[[1L]], kme_risk(kme(x, scale = scale), wide))
    # Each simulated sample has units of its own: the unit of a column goes.
    set.seed(5)
    a <- mmd_test(x, wide, scale = scale, B = 3)
    set.seed(5)
    b <- mmd_test(x %*% diag(c(1, 1 / 50)), two, scale = scale, B = 3)
    expect_equal(a$statistic, b$statistic)
  }
})

test_that("a linear kernel far from the origin keeps its digits", {
  x <- c(1, 2, 4) + 1e8
  model <- list(weights = 1, means = 1e8 + 2, covariances = 1)
  test <- mmd_test(x, model, kernel_linear(), B = 1)
  expect_equal(test$statistic[[1L]], (1 / 3)^2, tolerance = 1e-7)
})

test_that("draws of a mixture have its moments, singular ones too", {
  law <- read_law(list(
    weights = c(0.25, 0, 0.75), means = rbind(c(0, 0), c(1e6, 0), c(4, 4)),
    covariances = array(c(1, 2, 2, 4, diag(2), diag(2) * 0), c(2, 2, 3))
  ), matrix(0, 1, 2))
  set.seed(6)
  z <- law_draw(law, 4000L)
  last <- z[, 1] == 4 & z[, 2] == 4
  expect_lt(abs(sum(last) - 3000), 4 * sqrt(4000 * 0.25 * 0.75))
  expect_equal(z[!last, 2], 2 * z[!last, 1], tolerance = 1e-12)
  m <- sum(!last)
  expect_lt(abs(mean(z[!last, 1])), 4 / sqrt(m))
  expect_lt(abs(var(z[!last, 1]) - 1), 4 * sqrt(2 / m))
  set.seed(7)
  law <- read_law(two, matrix(0, 1, 2))
  z <- law_draw(law, 20000L)
  mean <- drop(two$weights %*% two$means)
  second <- Reduce(`+`, lapply(1:2, \(c) {
    two$weights[c] * (two$covariances[, , c] + tcrossprod(two$means[c, ]))
  }))
  expect_lt(max(abs(colMeans(z) - mean) / apply(z, 2, sd)), 4 / sqrt(20000))
  products <- cbind(z[, 1]^2, z[, 1] * z[, 2], z[, 2]^2)
  apart <- abs(colMeans(products) - second[c(1, 2, 4)])
  expect_true(all(apart < 4 * apply(products, 2, sd) / sqrt(20000)))
})

test_that("a function is compared by its first 10,000 draws", {
  skip_on_cran()
  set.seed(8)
  x <- matrix(runif(24), 12)
  draw <- \(n) matrix(rexp(2 * n), n)
  set.seed(9)
  test <- mmd_test(x, draw, B = 3)
  set.seed(9)
  z <- draw(10000)
  samples <- lapply(1:3, \(b) draw(12))
  kernel <- kme(z)$kernel
  model <- kme(z, kernel)
  square <- \(s) {
    kme(s, kernel)$norm2 - 2 * mean(predict(model, s)) + model$norm2
  }
  expect_equal(test$statistic[[1L]], square(x))
  expect_equal(test$replicates, vapply(samples, square, 1), tolerance = 1e-8)
  expect_equal(test$parameter[["bandwidth"]], kernel$bandwidth)
  expect_equal(test$p.value, (1 + sum(test$replicates >= test$statistic)) / 4)
  # Other x, the same draws of the model.
  set.seed(10)
  other <- update(test, x = 2 * x)
  expect_identical(other$model$sample, test$model$sample)
  expect_equal(other$statistic[[1L]], square(2 * x))
  # Kernels without a closed form, and the energy distance.
  energy <- update(test, kernel = kernel_energy(), B = 1)
  apart <- \(a, b) mean(sqrt(outer(a[, 1], b[, 1], `-`)^2 +
                               outer(a[, 2], b[, 2], `-`)^2))
  few <- z[1:2000, ]
  rough <- 2 * apart(x, few) - apart(x, x) - apart(few, few)
  expect_equal(energy$statistic[[1L]], rough, tolerance = 0.1)
})

test_that("data frames of a function are matched by name", {
  set.seed(11)
  draw <- \(n) data.frame(b = rnorm(n, 5), a = rexp(n))
  x <- data.frame(a = rexp(20), b = rnorm(20, 5))
  set.seed(12)
  one <- mmd_test(x, draw, B = 3)
  set.seed(12)
  two <- mmd_test(x[2:1], draw, B = 3)
  expect_equal(one$statistic, two$statistic)
  # Those of the null distribution, too.
  expect_equal(one$replicates, two$replicates)
  expect_gt(one$p.value, 0.25)
  expect_equal(unname(colMeans(one$model$sample$x)), c(1, 5), tolerance = 0.05)
})

# --- "normal" ----------------------------------------------------------------

# Henze and Zirkler (1990), as printed, by a double loop.
naive_bhep <- function(x) {
  x <- as.matrix(x)
  n <- nrow(x)
  d <- ncol(x)
  beta <- 1 / sqrt(2) * ((2 * d + 1) * n / 4)^(1 / (d + 4))
  s <- solve(cov(x) * (n - 1) / n)
  first <- 0
  for (j in 1:n) for (k in 1:n) {
    u <- x[j, ] - x[k, ]
    first <- first + exp(-beta^2 / 2 * drop(u %*% s %*% u))
  }
  far <- mahalanobis(x, colMeans(x), cov(x) * (n - 1) / n)
  first / n - 2 * (1 + beta^2)^(-d / 2) *
    sum(exp(-beta^2 * far / (2 * (1 + beta^2)))) +
    n * (1 + 2 * beta^2)^(-d / 2)
}

test_that("the statistic of \"normal\" is that of Henze and Zirkler", {
  for (x in list(faithful$waiting[1:40], iris[1:50, 1:4], mtcars)) {
    test <- mmd_test(x, "normal", B = 1)
    expect_equal(test$statistic[["BHEP"]], naive_bhep(x), tolerance = 1e-10)
    n <- NROW(x)
    expect_equal(test$estimate[["MMD"]]^2 * n, test$statistic[["BHEP"]])
  }
})

test_that("it is the distance of characteristic functions", {
  x <- faithful$eruptions[1:30]
  y <- (x - mean(x)) / sqrt(mean((x - mean(x))^2))
  beta <- 1 / sqrt(2) * (3 * 30 / 4)^(1 / 5)
  apart <- \(t) vapply(t, \(s) {
    Mod(mean(exp(1i * s * y)) - exp(-s^2 / 2))^2 * dnorm(s, sd = beta)
  }, 1)
  expected <- 30 * integrate(apart, -12 * beta, 12 * beta, rel.tol = 1e-10,
                             subdivisions = 1000)$value
  test <- mmd_test(x, "normal", B = 1)
  expect_equal(test$statistic[[1L]], expected, tolerance = 1e-9)
})

test_that("affine maps do not change it", {
  x <- as.matrix(iris[51:100, 1:3])
  bhep <- \(x) mmd_test(x, "normal", B = 1)$statistic[[1L]]
  set.seed(13)
  turned <- x %*% matrix(rnorm(9), 3) + rep(c(100, -3, 0), each = 50)
  expect_equal(bhep(turned), bhep(x), tolerance = 1e-10)
  expect_equal(bhep(x[50:1, 3:1]), bhep(x), tolerance = 1e-10)
  # Units that are far apart are no singular covariance.
  units <- x * rep(c(1e-150, 1, 1e150), each = 50)
  expect_equal(bhep(units), bhep(x), tolerance = 1e-10)
  far <- x + 1e6
  expect_equal(bhep(far), bhep(x), tolerance = 1e-6)
})

test_that("draws are treated as the sample is", {
  set.seed(14)
  test <- mmd_test(matrix(rexp(20), 10), "normal", B = 4)
  set.seed(14)
  invisible(rexp(20))
  samples <- lapply(1:4, \(b) matrix(rnorm(20), 10))
  own <- vapply(samples, \(x) mmd_test(x, "normal", null = test)$statistic, 1)
  expect_equal(test$replicates, own)
  # A mixture: the same rule for the bandwidth of each.
  x <- draw_two(10)
  set.seed(15)
  test <- mmd_test(x, two, B = 3, statistic = "unbiased")
  set.seed(15)
  samples <- lapply(1:3, \(b) law_draw(test$model, 10L))
  own <- vapply(samples, \(x) update(test, x = x, B = 1)$statistic, 1)
  expect_equal(test$replicates, own)
})

test_that("p-values are uniform under the model", {
  skip_on_cran()
  set.seed(17)
  sets <- 70
  p <- c(vapply(seq_len(sets), \(i) {
    mmd_test(rnorm(6, 3, 2), "normal", B = 9)$p.value
  }, 1), vapply(seq_len(sets), \(i) {
    mmd_test(draw_two(5), two, kernel_rbf(1), B = 9)$p.value
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
  first <- mmd_test(faithful[1:40, ], "normal", B = 49)
  set.seed(19)
  before <- .Random.seed
  second <- mmd_test(faithful[41:80, ], "normal", null = first)
  expect_identical(.Random.seed, before)
  expect_identical(second$replicates, first$replicates)
  expect_equal(second$p.value,
               (1 + sum(first$replicates >= second$statistic)) / 50)
  expect_identical(mmd_test(faithful[1:40, ], "normal", null = first)$p.value,
                   first$p.value)
  file <- tempfile()
  on.exit(unlink(file))
  saveRDS(first, file)
  expect_lt(file.size(file), 6000)
  third <- mmd_test(faithful[41:80, ], "normal", null = readRDS(file))
  expect_identical(third$p.value, second$p.value)
  # update() lends on what was lent, unless it is asked for other draws.
  expect_identical(update(second, x = faithful[1:40, ])$p.value, first$p.value)
  expect_length(update(second, B = 9)$replicates, 9L)
  expect_identical(update(first, null = second)$replicates, first$replicates)
})

test_that("a long null distribution is announced", {
  x <- matrix(rnorm(8000), ncol = 1)
  said <- tryCatch(mmd_test(x, "normal"), kernmean_message = identity)
  expect_s3_class(said, "kernmean_message_long")
  expect_match(conditionMessage(said), "999 samples of 8,000 points")
  expect_match(conditionMessage(said), "given as 'null'")
  expect_silent(mmd_test(x[1:50, ], "normal", B = 9, progress = FALSE))
})

# --- The object --------------------------------------------------------------

test_that("print, summary, update and data frames", {
  set.seed(20)
  waiting <- faithful$waiting
  test <- mmd_test(waiting, "normal", B = 19)
  expect_s3_class(test, c("mmd_model_test", "mmd_test", "kernmean_fit", "htest"),
                  exact = TRUE)
  expect_snapshot(print(test))
  pair <- list(weights = c(0.4, 0.6), means = cbind(c(55, 80)),
               covariances = c(36, 36))
  mixed <- mmd_test(waiting, pair, B = 19)
  expect_snapshot(summary(mixed))
  expect_equal(nobs(test), 272)
  expect_equal(as.data.frame(test)$statistic, test$statistic[[1L]])
  expect_equal(update(test, x = waiting[1:50])$parameter[["n"]], 50)
  expect_match(update(test, x = waiting[1:50])$data.name, "waiting[1:50]",
               fixed = TRUE)
  again <- update(test, model = pair)
  expect_equal(again$statistic, mixed$statistic)
  expect_match(again$data.name, "pair, a mixture of 2")
  expect_error(update(test, blocks = 1), "no labels are permuted",
               class = "kernmean_error_input")
  expect_error(update(test, y = 1), "'model' must be",
               class = "kernmean_error_input")
})

test_that("the witness is the difference of the embeddings", {
  set.seed(21)
  x <- draw_two(30)
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  test <- mmd_test(x, two, B = 9)
  drawn <- plot(test, "witness", n = 5)
  z <- as.matrix(expand.grid(drawn$x, drawn$y))
  model <- mixture_at(two, test$kernel, unname(z))
  expect_equal(as.vector(drawn$z),
               unname(predict(kme(x, test$kernel), z)) - model)
  # In sight: the points and both components.
  expect_true(all(range(drawn$y) >= c(-Inf, 2 + 2 * sqrt(0.3))))
  one <- mmd_test(x[, 1], \(n) rnorm(n, 10), B = 9)
  drawn <- plot(one, "witness")
  expect_equal(drawn$value, unname(predict(kme(x[, 1], one$kernel), drawn$z) -
                 predict(kme(one$model$sample$x, one$kernel), drawn$z)))
  expect_gt(max(drawn$z), 12)
  normal <- mmd_test(iris[1:4], "normal", B = 9)
  drawn <- plot(normal, "witness")
  expect_named(drawn, c("PC1", "PC2", "value"))
  # Of standardized points, in the space of N(0, I).
  y <- normal$sample$x
  expect_equal(unname(crossprod(y)), 150 * diag(4))
  theta2 <- normal$kernel$bandwidth^2
  model <- (theta2 / (1 + theta2))^2 * exp(-rowSums(y^2) / (2 * (1 + theta2)))
  own <- rowMeans(kernel_matrix(unname(y), kernel = kernel_rbf(sqrt(theta2))))
  expect_equal(drawn$value, own - unname(model))
  expect_length(plot(normal), 9L)
})

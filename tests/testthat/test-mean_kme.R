# The estimators as a user meets them: limits, invariances, targets, methods.

every_fit <- function(x, kernel, ...) {
  list(
    kme = kme(x, kernel),
    skmse = kme(x, kernel, "skmse"),
    plugin = kme(x, kernel, "skmse", select = "plugin"),
    skmse_given = kme(x, kernel, "skmse", lambda = 0.3),
    fkmse = kme(x, kernel, "fkmse"),
    gcv = kme(x, kernel, "fkmse", select = "gcv"),
    printed = kme(x, kernel, "fkmse", select = "printed"),
    fkmse_given = kme(x, kernel, "fkmse", lambda = 0.3)
  )
}

# Weights are determined to the rounding of K over lambda (the embedding is
# determined much better).
weight_rounding <- function(fit) {
  condition <- fit$n * fit$varrho / fit$lambda
  if (fit$lambda == 0) 1e-13 else 1e-14 * (100 + condition)
}

kernels <- function() {
  list(rbf = kernel_rbf(1.2), laplace = kernel_laplace(2),
       matern = kernel_matern(5 / 2, 1.5), poly = kernel_poly(2),
       linear = kernel_linear())
}

normal <- function(d) {
  list(weights = 1, means = numeric(d), covariances = diag(d))
}

# --- What a fit is -----------------------------------------------------------

test_that("weights, values, norms and rho are those of explicit matrices", {
  skip_on_cran()
  x <- random_points(20, 2)
  z <- random_points(7, 2)
  all_kernels <- kernels()
  for (name in names(all_kernels)) {
    kernel <- all_kernels[[name]]
    k <- gram_R(kernel, x)
    for (fit in every_fit(x, kernel)) {
      w <- fit$weights
      expect_identical(coef(fit), w)
      expect_near(predict(fit), drop(k %*% w), 1e-12)
      expect_near(predict(fit, z), drop(gram_R(kernel, z, x) %*% w), 1e-12)
      expect_near(fit$norm2, sum(w * (k %*% w)), 1e-11)
      expect_near(c(fit$rho, fit$varrho), c(mean(k), mean(diag(k))), 1e-12)
      expect_identical(fit$n, 20L)
    }
  }
})

test_that("weights are those of the formulas", {
  x <- random_points(20, 2)
  for (kernel in kernels()) {
    k <- gram_R(kernel, x)
    for (fit in every_fit(x, kernel)) {
      want <- switch(fit$estimator$name,
        kme = rep(1 / 20, 20),
        skmse = rep((1 - fit$alpha) / 20, 20),
        fkmse = fkmse_weights_R(k, fit$lambda)
      )
      expect_near(fit$weights, want, weight_rounding(fit))
    }
  }
})

test_that("the row order of the sample does not matter", {
  skip_on_cran()
  x <- random_points(25, 2)
  z <- random_points(5, 2)
  set.seed(1)
  order <- sample(25)
  for (kernel in kernels()) {
    fits <- every_fit(x, kernel)
    permuted <- every_fit(x[order, ], kernel)
    for (name in names(fits)) {
      # lambda is found to 1e-6, beta follows; the minimum to its square.
      tolerance <- if (is.null(fits[[name]]$select)) 1e-10 else 1e-5
      expect_equal(permuted[[name]]$weights, fits[[name]]$weights[order],
                   tolerance = tolerance, info = name)
      expect_equal(predict(permuted[[name]], z), predict(fits[[name]], z),
                   tolerance = tolerance, info = name)
      expect_equal(permuted[[name]]$minimum, fits[[name]]$minimum,
                   tolerance = 1e-9, info = name)
    }
  }
})

test_that("rows of new data are predicted independently of each other", {
  x <- random_points(30, 2)
  z <- random_points(70, 2)
  for (fit in every_fit(x, kernel_rbf(1))) {
    whole <- predict(fit, z)
    expect_identical(predict(fit, z[65, , drop = FALSE]), whole[65])
    expect_identical(predict(fit, z[70:1, ]), rev(whole))
  }
})

# --- Limits ------------------------------------------------------------------

test_that("lambda = 0 is the KME and lambda = Inf the target, exactly", {
  x <- random_points(15, 2)
  for (kernel in kernels()) {
    mean <- kme(x, kernel)
    for (estimator in c("skmse", "fkmse")) {
      none <- kme(x, kernel, estimator, lambda = 0)
      expect_identical(none$weights, mean$weights)
      expect_near(none$norm2, mean$norm2, 1e-13)
      all <- kme(x, kernel, estimator, lambda = Inf)
      expect_identical(all$weights, numeric(15))
      expect_identical(all$norm2, 0)
      expect_identical(predict(all, x[1:3, ]), numeric(3))
      expect_identical(c(none$lambda, all$lambda), c(0, Inf))
    }
  }
})

test_that("with a target, lambda = Inf is the target exactly", {
  x <- random_points(15, 2)
  z <- random_points(8, 2)
  kernel <- kernel_rbf(1)
  for (target in list(kme(z, kernel), normal(2))) {
    for (estimator in c("skmse", "fkmse")) {
      fit <- kme(x, kernel, estimator, target = target, lambda = Inf)
      towards <- kme(x, kernel, "skmse", target = target, lambda = Inf)
      expect_near(predict(fit, z), predict(towards, z), 1e-14)
      if (inherits(target, "kme")) {
        expect_near(predict(fit, z), predict(target, z), 1e-14)
        expect_identical(kme_distance(fit, target), 0)
      }
    }
  }
})

test_that("F-KMSE with a target at lambda = 0 adds the projection", {
  x <- random_points(6, 2)
  kernel <- kernel_rbf(1)
  target <- kme(random_points(8, 2), kernel)
  fit <- kme(x, kernel, "fkmse", target = target, lambda = 0)
  # At the points of the sample it takes the values of the KME.
  expect_near(predict(fit), predict(kme(x, kernel)), 1e-8)
  k <- gram_R(kernel, x)
  want <- solve(k, rowMeans(k) - predict(target, x))
  expect_near(fit$weights, want, 1e-8)
})

test_that("F-KMSE needs no well-conditioned K at the smallest lambda", {
  x <- cbind(seq(0, 1, length.out = 60))
  for (lambda in c(1e-17, 1e-15, 1e-13, 1e-10)) {
    for (g in list(gram(x, kernel_rbf(2)), gram(x, kernel_linear()))) {
      cold <- kme(g, estimator = "fkmse", lambda = lambda)
      expect_true(all(is.finite(cold$weights)))
      # sqrt(lambda) bounds what the shrinkage does, 1e-6 the rounding.
      expect_lt(max(abs(predict(cold) - predict(kme(g)))), 1e-6)
      gram_spectrum(g, "vectors")
      warm <- kme(g, estimator = "fkmse", lambda = lambda)
      expect_near(predict(warm), predict(cold), 1e-6)
    }
  }
})

test_that("F-KMSE weights are never longer than those of the KME", {
  # beta = U diag(h) U'1_n with h in [0, 1], however singular K is.
  x <- cbind(seq(0, 1, length.out = 60))
  for (lambda in 10^seq(-18, 2, by = 2)) {
    for (kernel in list(kernel_rbf(2), kernel_linear(), kernel_poly(3))) {
      w <- kme(x, kernel, "fkmse", lambda = lambda)$weights
      expect_lte(sum(w^2), (1 + 1e-6) / 60, label = format(lambda))
    }
  }
})

# --- Special samples ---------------------------------------------------------

test_that("S-KMSE of equal points is the KME", {
  for (kernel in kernels()) {
    for (select in c("loocv", "plugin")) {
      fit <- kme(matrix(2, 6, 2), kernel, "skmse", select = select)
      expect_near(fit$alpha, 0, 1e-14)
      expect_near(fit$weights, rep(1 / 6, 6), 1e-14)
    }
  }
  fit <- kme(rep(0, 4), kernel_linear(), "skmse")
  expect_identical(fit$alpha, 0)
})

test_that("F-KMSE of equal points is nearly the KME for every rule", {
  for (select in c("loocv", "gcv", "printed")) {
    fit <- kme(rep(1, 5), kernel_rbf(1), "fkmse", select = select)
    expect_near(fit$norm2, 1, 1e-6)
    zero <- kme(rep(0, 5), kernel_linear(), "fkmse", select = select)
    expect_identical(zero$weights, rep(0.2, 5))
    expect_output(print(zero), "lambda = 0")
  }
})

test_that("a linear kernel on centered data shrinks to the target entirely", {
  x <- scale(random_points(20, 3), scale = FALSE)
  s <- kme(x, kernel_linear(), "skmse")
  expect_identical(c(s$alpha, s$lambda, s$norm2), c(1, Inf, 0))
  for (select in c("loocv", "gcv", "printed")) {
    f <- kme(x, kernel_linear(), "fkmse", select = select)
    expect_lt(f$norm2, 1e-20)
    expect_lt(max(abs(f$weights)), 1e-4)
    expect_true(f$border)
  }
  # The squared norm is rounding here, of either sign.
  for (seed in 1:10) {
    x <- scale(random_points(20, 3, seed), scale = FALSE)
    expect_gte(kme(x, kernel_linear())$norm2, 0)
  }
})

test_that("two points and one column work for every estimator", {
  k <- exp(-1 / 2)
  for (fit in every_fit(c(0, 1), kernel_rbf(1))) {
    expect_near(fit$rho, (1 + k) / 2, 1e-14)
    expect_near(fit$weights[1], fit$weights[2], 1e-13)
    expect_length(predict(fit, c(3, 4, 5)), 3)
  }
})

test_that("one point is its own mean", {
  fit <- kme(matrix(c(3, 4), 1), kernel_rbf(1))
  expect_identical(c(fit$weights, fit$norm2, fit$n), c(1, 1, 1))
  expect_equal(predict(fit, matrix(c(3, 5), 1)), exp(-1 / 2))
})

test_that("constant columns change nothing for stationary kernels", {
  x <- random_points(15, 2)
  for (kernel in kernels()[c("rbf", "laplace", "matern")]) {
    plain <- every_fit(x, kernel)
    extended <- every_fit(cbind(7, x, -3), kernel)
    for (name in names(plain)) {
      expect_equal(extended[[name]]$norm2, plain[[name]]$norm2,
                   tolerance = 1e-6, info = name)
    }
  }
})

test_that("duplicating every row keeps the KME", {
  x <- random_points(10, 2)
  for (kernel in kernels()) {
    once <- kme(x, kernel)
    twice <- kme(rbind(x, x), kernel)
    expect_near(twice$norm2, once$norm2, 1e-13)
    # Differences of norms: the root of the rounding of their sum.
    expect_lt(kme_distance(once, twice), 1e-6 * sqrt(once$varrho))
    for (fit in every_fit(rbind(x, x), kernel)) {
      expect_near(fit$weights[1:10], fit$weights[11:20], weight_rounding(fit))
    }
  }
})

# --- The user's own weights --------------------------------------------------

test_that("the user's weights are the embedding as it is", {
  x <- random_points(10, 2)
  k <- gram_R(kernel_rbf(1), x)
  set.seed(4)
  w <- stats::rnorm(10)
  for (fit in list(kme(x, kernel_rbf(1), weights = w),
                   kme(gram(x, kernel_rbf(1)), weights = w))) {
    expect_identical(fit$weights, w)
    expect_near(predict(fit), drop(k %*% w), 1e-13)
    expect_near(fit$norm2, sum(w * (k %*% w)), 1e-13)
  }
  expect_identical(kme(x, kernel_rbf(1), weights = -1:8)$weights,
                   as.double(-1:8))
  expect_identical(kme(x, kernel_rbf(1), weights = numeric(10))$norm2, 0)
  equal <- kme(x, kernel_rbf(1), weights = rep(0.1, 10))
  expect_near(equal$norm2, kme(x, kernel_rbf(1))$norm2, 1e-13)
})

# --- Targets -----------------------------------------------------------------

test_that("estimates with a target are those of the formulas", {
  x <- random_points(14, 2)
  z <- random_points(6, 2)
  kernel <- kernel_rbf(1)
  k <- gram_R(kernel, x)
  set.seed(5)
  w <- stats::rnorm(6)
  target <- kme(z, kernel, weights = w)
  at <- drop(gram_R(kernel, x, z) %*% w)
  f_norm2 <- sum(w * (gram_R(kernel, z) %*% w))
  new <- random_points(4, 2, seed = 9)
  f_new <- drop(gram_R(kernel, new, z) %*% w)
  k_new <- gram_R(kernel, new, x)
  for (select in c("loocv", "plugin")) {
    s <- kme(x, kernel, "skmse", select = select, target = target)
    a <- skmse_alpha_R(k, select, at, f_norm2)
    expect_near(s$alpha, a, 1e-12)
    expect_near(predict(s, new), a * f_new + (1 - a) * rowMeans(k_new), 1e-12)
    expect_equal(s$norm2, (1 - a)^2 * mean(k) + 2 * a * (1 - a) * mean(at) +
                   a^2 * f_norm2, tolerance = 1e-12)
  }
  f <- kme(x, kernel, "fkmse", lambda = 0.7, target = target)
  b <- fkmse_weights_R(k, 0.7, at)
  expect_near(f$weights, b, 1e-11)
  expect_near(predict(f, new), f_new + drop(k_new %*% b), 1e-12)
  expect_near(f$norm2, f_norm2 + 2 * sum(b * at) + sum(b * (k %*% b)), 1e-11)
})

test_that("norms of fits with targets are inner products with themselves", {
  x <- random_points(14, 2)
  z <- random_points(6, 2)
  kernel <- kernel_poly(2)
  nested <- kme(z, kernel, "skmse", target = normal(2))
  for (target in list(kme(z, kernel), normal(2), nested)) {
    for (estimator in c("skmse", "fkmse")) {
      fit <- kme(x, kernel, estimator, target = target)
      expect_near(kme_inner(fit, fit), fit$norm2, 1e-10)
      expect_near(predict(fit, x), predict(fit), 1e-11)
    }
  }
})

test_that("the target's kernel is the default kernel", {
  x <- random_points(14, 2)
  target <- kme(random_points(6, 2), kernel_laplace(3))
  fit <- kme(x, estimator = "skmse", target = target)
  expect_identical(fit$kernel$bandwidth, 3)
  expect_identical(fit$kernel$family, "laplace_l1")
  # One bandwidth or the same for each column is one kernel.
  each <- kme(x, kernel_laplace(c(3, 3)), "skmse", target = target)
  expect_near(each$alpha, fit$alpha, 1e-14)
})

# --- update() ----------------------------------------------------------------

test_that("a bandwidth that was chosen is chosen anew for other points", {
  x <- random_points(20, 2)
  other <- 5 * random_points(25, 2, 3)
  for (door in list(kme, kme_pca, kme_cov)) {
    fit <- update(update(door(x)), x = other)
    kernel <- \(fit) {
      if (is.null(fit$kernel)) fit$variables[[1L]]$sample$kernel else fit$kernel
    }
    expect_identical(kernel(fit), fit_kernel(kernel_rbf(), other))
    given <- update(update(door(x, kernel = kernel_rbf(1.5))), x = other)
    expect_identical(kernel(given)$bandwidth, 1.5)
  }
  towards <- kme(x, kernel_rbf(1), "skmse", target = kme(other, kernel_rbf(1)))
  expect_null(update(towards, estimator = "kme")$target)
  classes <- rep(1:2, 10)
  fit <- update(kme_fda(x, classes, bandwidth = "median"), prior = c(0.4, 0.6))
  fit <- update(fit, x = other[1:20, ], grouping = classes)
  expect_identical(fit$kernel, fit_kernel(kernel_rbf(), other[1:20, ]))
})

test_that("a fit survives being saved and loaded", {
  x <- random_points(15, 2)
  z <- random_points(4, 2)
  file <- tempfile(fileext = ".rds")
  on.exit(unlink(file))
  for (fit in list(
    kme(x), kme(x, estimator = "fkmse"), kme(gram(x), estimator = "fkmse"),
    kme(x, kernel_rbf(1), "skmse", target = normal(2)), kme(~ a + b, data.frame(
      a = x[, 1], b = x[, 2]))
  )) {
    saveRDS(fit, file)
    back <- readRDS(file)
    new <- data.frame(a = z[, 1], b = z[, 2])
    new <- if (is.null(fit$layout)) z else new
    expect_identical(predict(back, new), predict(fit, new))
    expect_identical(back$weights, fit$weights)
    expect_equal(kme_distance(back, fit), 0)
    expect_identical(update(back, estimator = "skmse")$alpha,
                     update(fit, estimator = "skmse")$alpha)
    expect_output(print(back))
  }
  g <- gram(x)
  gram_spectrum(g, "vectors")
  saveRDS(g, file)
  back <- readRDS(file)
  expect_identical(mget(ls(back), back), mget(ls(g), g))
  expect_near(kme(back, estimator = "fkmse")$lambda,
              kme(x, estimator = "fkmse")$lambda, 1e-6)
})

test_that("coef() is what predicts, or as_weights() is named", {
  skip_if_not_installed("generics")
  x <- unname(scale(as.matrix(iris[seq(1, 150, 6), 1:4])))
  z <- x[1:5, ] + 0.3
  k <- kernel_rbf(1.5)
  own <- kme(x, k, weights = seq_len(25) / 325)
  plain <- list(
    kme(x, k), own, kme(x, k, "skmse"), kme(x, k, "fkmse"),
    kme(x, k, est_skmse(guard = TRUE)), kme(x, k, est_fkmse(guard = TRUE)),
    kme(x, k, "skmse", target = own), kme(x, k, est_smooth(0, 1)),
    kme(x, kernel_linear(), "mkme"),
    kme(x, k, est_stack(list(est_kme(), est_skmse(0.1), est_fkmse(0.3))))
  )
  for (fit in plain) {
    w <- coef(fit)
    expect_near(drop(gram_R(fit$kernel, x) %*% w), unname(predict(fit)), 1e-12)
    expect_near(drop(gram_R(fit$kernel, z, x) %*% w), unname(predict(fit, z)),
                1e-12)
    expect_identical(unname(as_weights(fit)), w)
    expect_identical(generics::tidy(fit)$weight, w)
    expect_identical(generics::augment(fit)$.weight, w)
    if (is.null(fit$noise) && is.null(fit$covariance)) {
      expect_identical(unclass(summary(fit)$weights)[["100%"]], max(25 * w))
    }
  }
  sketch <- kme_sketch(x, 8, k)
  fit <- kme(sketch, estimator = "skmse")
  at <- fit$sample$x
  expect_near(drop(gram_R(k, z, at) %*% coef(fit)), unname(predict(fit, z)),
              1e-10)
  normal <- list(weights = 1, means = matrix(0, 1, 4), covariances = diag(4))
  for (fit in list(
    kme(x, k, "mkme"), kme(x, k, "mmkme"), kme(x, k, est_smooth(0.4, 1)),
    kme(x, k, est_mkme(guard = TRUE)), kme(x, k, "skmse", target = normal),
    kme(x, k, est_stack(list(est_kme(), est_smooth(0.4, 1)), c(0.5, 0.5)))
  )) {
    refused(coef(fit), "as_weights")
    expect_identical(generics::augment(fit)$.weight, rep(NA_real_, 25))
    expect_null(summary(fit)$weights)
    # At the points the projection is the estimate.
    expect_near(drop(gram_R(k, x) %*% as_weights(fit)), fit$fitted, 1e-9)
  }
})

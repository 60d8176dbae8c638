# Kernel PCA against explicit features, prcomp(), the formulas as printed and
# reference values.

rbf <- kernel_rbf(1.2)
estimators <- c("kme", "skmse", "fkmse")

test_that("components of data A are the reference ones", {
  x <- reference_data("A")
  z <- reference_data("newdata")
  kernel <- reference_kernel("A_rbf")
  lambda <- reference_value("A_rbf", "center_fkmse_lambda")
  centers <- list(kme = "kme", skmse = "skmse",
                  fkmse = kme(x, kernel, "fkmse", lambda = lambda))
  for (name in names(centers)) {
    case <- paste0("A_pca_", name)
    fit <- kme_pca(x, kernel, ncomp = 5, center = centers[[name]])
    expect_near(fit$n * fit$values,
                reference_value(case, "gram_eigenvalues"), 1e-10)
    expect_near(as.vector(abs(predict(fit, z))),
                reference_value(case, "abs_scores_newdata"), 1e-9)
    expect_near(unname(reconstruction_error(fit, z)),
                reference_value(case, "reconstruction_error_newdata"), 1e-9)
  }
})

test_that("kernels with explicit features give the PCA of their features", {
  x <- random_points(25, 2)
  z <- random_points(6, 2)
  cases <- list(list(kernel_poly(2), poly_features_R), list(kernel_linear(), I))
  for (case in cases) {
    f <- unclass(case[[2L]](x))
    for (name in estimators) {
      mean <- kme(x, case[[1L]], name)
      mu <- drop(crossprod(f, mean$weights))
      centered <- f - rep(mu, each = nrow(f))
      axes <- svd(centered)
      fit <- kme_pca(x, case[[1L]], center = name)
      r <- fit$rank
      expect_identical(r, sum(axes$d^2 > 1e-10 * axes$d[1L]^2))
      expect_near(fit$values, axes$d[1:r]^2 / 25, 1e-8)
      fz <- unclass(case[[2L]](z)) - rep(mu, each = nrow(z))
      expect_lte(up_to_signs(predict(fit, z), fz %*% axes$v[, 1:r]), 1e-7)
      left <- fz - fz %*% tcrossprod(axes$v[, 1:2])
      expect_near(unname(reconstruction_error(fit, z, 2)),
                  rowSums(left^2), 1e-8)
    }
  }
})

test_that("V'K^cV = I and the sample's scores are those of its points", {
  x <- random_points(40, 3)
  K <- gram_R(rbf, x)
  for (center in estimators) {
    for (covariance in estimators) {
      fit <- kme_pca(x, rbf, 8, center = center, covariance = covariance)
      Kc <- centered_R(K, kme(x, rbf, center)$weights)
      expect_near(unname(crossprod(fit$vectors, Kc %*% fit$vectors)),
                  diag(8), 1e-10)
      expect_near(unname(fit$scores), unname(Kc %*% fit$vectors), 1e-10)
      expect_near(predict(fit, x), predict(fit), 1e-10)
      expect_identical(predict(fit, ncomp = 3), predict(fit)[, 1:3])
      expect_near(predict(fit, x, 3), predict(fit, x)[, 1:3], 1e-14)
    }
  }
})

test_that("any kernel mean may center", {
  x <- random_points(20, 2)
  z <- random_points(5, 2, seed = 4)
  y <- random_points(9, 2, seed = 5)
  normal <- list(weights = 1, means = c(0, 0), covariances = diag(2))
  b <- stats::runif(20)
  centers <- list(
    kme(y, rbf), kme(x, rbf, weights = b), kme(x, rbf, "mkme"),
    kme(x, rbf, "mmkme", noise = c(0.2, 0.4)),
    kme(x, rbf, "skmse", target = normal),
    kme(x, rbf, "fkmse", lambda = 0.1, target = kme(y, rbf))
  )
  for (mean in centers) {
    fit <- kme_pca(x, rbf, 3, center = mean)
    at <- predict(mean, x)
    Kc <- gram_R(rbf, x) - outer(at, at, "+") + mean$norm2
    e <- eigen(Kc, symmetric = TRUE)
    expect_near(fit$values, e$values[1:3] / 20, 1e-10)
    Lc <- gram_R(rbf, z, x) - outer(predict(mean, z), at, "+") + mean$norm2
    V <- e$vectors[, 1:3] %*% diag(1 / sqrt(e$values[1:3]))
    expect_lte(up_to_signs(predict(fit, z), Lc %*% V), 1e-9)
    expect_identical(fit$mean, mean)
  }
  # Its kernel is taken where none is given.
  expect_identical(kme_pca(x, center = centers[[1L]])$kernel, rbf)
})

test_that("reconstruction errors are not negative and fall to 0", {
  x <- random_points(25, 2)
  z <- random_points(10, 2, seed = 3)
  for (covariance in c("kme", "fkmse")) {
    fit <- kme_pca(x, rbf, covariance = covariance, center = "skmse")
    p <- length(fit$values)
    for (points in list(x, z)) {
      errors <- vapply(seq_len(p), \(k) reconstruction_error(fit, points, k),
                       numeric(nrow(points)))
      expect_true(all(errors >= 0))
      expect_true(all(apply(errors, 1, diff) <= 1e-12))
    }
    expect_lte(max(reconstruction_error(fit)), 1e-8)
    expect_near(reconstruction_error(fit, ncomp = 4),
                reconstruction_error(fit, x, 4), 1e-9)
    # The mean error of the sample is what the components leave of the trace.
    if (covariance == "kme") {
      expect_near(mean(reconstruction_error(fit, ncomp = 4)),
                  fit$total - sum(fit$values[1:4]), 1e-10)
    }
  }
})

test_that("S-COSE has the directions of KPCA and 1 - alpha times its values", {
  x <- random_points(30, 2)
  for (center in estimators) {
    plain <- kme_pca(x, rbf, 5, center = center)
    Kc <- centered_R(gram_R(rbf, x), kme(x, rbf, center)$weights)
    for (select in c("loocv", "plugin")) {
      fit <- update(plain, covariance = est_skmse(select = select))
      alpha <- skmse_alpha_R(Kc * Kc, select)
      expect_near(fit$shrinkage$alpha, alpha, 1e-10)
      expect_near(fit$values, (1 - alpha) * plain$values, 1e-10)
      expect_near(fit$total, (1 - alpha) * plain$total, 1e-10)
      expect_identical(fit$vectors, plain$vectors)
      expect_identical(fit$scores, plain$scores)
      expect_identical(reconstruction_error(fit, x, 3),
                       reconstruction_error(plain, x, 3))
    }
    fit <- update(plain, covariance = est_skmse(lambda = 0.25))
    expect_near(fit$values, 0.8 * plain$values, 1e-14)
    expect_null(fit$shrinkage$select)
  }
})

test_that("F-COSE diagonalises the weighted covariance of the features", {
  x <- random_points(25, 2)
  z <- random_points(6, 2)
  kernel <- kernel_poly(2)
  f <- poly_features_R(x)
  for (center in estimators) {
    mean <- kme(x, kernel, center)
    mu <- drop(crossprod(f, mean$weights))
    centered <- f - rep(mu, each = 25)
    H <- tcrossprod(centered)^2
    for (lambda in c(0.01, 5, 100)) {
      fit <- kme_pca(x, kernel, center = center,
                     covariance = est_fkmse(lambda = lambda))
      b <- fkmse_weights_R(H, lambda)
      expect_near(fit$shrinkage$weights, b, 1e-7)
      e <- eigen(crossprod(centered, b * centered), symmetric = TRUE)
      # Weights that sum to nearly one center the constant feature away.
      kept <- seq_along(fit$values)
      e$values <- e$values[order(-abs(e$values))]
      expect_near(fit$values, e$values[kept], 1e-6)
      expect_lte(max(abs(e$values[-kept]), 0), 1e-10)
      expect_near(fit$total, sum(e$values), 1e-6)
      scores <- (poly_features_R(z) - rep(mu, each = 6)) %*% e$vectors
      expect_lte(up_to_signs(predict(fit, z)[, 1:3], scores[, 1:3]), 1e-5)
    }
  }
  fit <- kme_pca(x, kernel, 2, covariance = "fkmse")
  want <- kme(as_gram(centered_R(gram_R(kernel, x), rep(1 / 25, 25))^2),
              estimator = "fkmse")
  expect_near(fit$shrinkage$lambda, want$lambda, 1e-6)
  expect_near(fit$shrinkage$weights, want$weights, 1e-6)
  expect_identical(fit$shrinkage$select, "loocv")
})

test_that("F-COSE without shrinkage is KPCA, and its values may be negative", {
  x <- random_points(20, 2)
  plain <- kme_pca(x, rbf, 4)
  fit <- kme_pca(x, rbf, 4, covariance = est_fkmse(lambda = 0))
  expect_near(fit$values, plain$values, 1e-10)
  expect_near(fit$vectors, plain$vectors, 1e-8)
  # Two far points leave others weights below 0.
  set.seed(12)
  x <- rbind(matrix(stats::rnorm(40), 20), c(4, 4), c(-4, 4))
  lambda <- 0.01 * max(gram_R(kernel_poly(3), x))^2
  fit <- kme_pca(x, kernel_poly(3), covariance = est_fkmse(lambda = lambda))
  expect_true(any(fit$shrinkage$weights < 0))
  expect_false(is.unsorted(rev(fit$values)))
  expect_true(any(fit$values < 0))
  expect_identical(is.na(unname(summary(fit)$importance[1, ])), fit$values < 0)
  expect_near(sum(fit$values), fit$total, 1e-8)
})

test_that("the values of kme_pca(), kme_cov() and prcomp() have one scale", {
  x <- as.matrix(iris[, 1:4])
  p <- stats::prcomp(x)
  fit <- kme_pca(x, kernel_linear())
  operator <- kme_cov(x, kernel = kernel_linear())
  expect_near(fit$values, p$sdev^2 * 149 / 150, 1e-8)
  expect_near(fit$values, operator$values, 1e-10)
  x <- random_points(30, 2)
  for (center in estimators) {
    for (covariance in estimators) {
      fit <- kme_pca(x, rbf, 6, center = center, covariance = covariance)
      operator <- kme_cov(x, kernel = rbf, estimator = covariance,
                          center = center)
      expect_near(fit$values, operator$values[1:6], 1e-9)
      expect_near(fit$total, operator$trace, 1e-9)
    }
  }
})

test_that("few components are the first of all", {
  x <- random_points(60, 3)
  all <- kme_pca(x, rbf)
  expect_identical(all$rank, length(all$values))
  for (covariance in estimators) {
    all <- kme_pca(x, rbf, covariance = covariance)
    few <- kme_pca(x, rbf, 3, covariance = covariance)
    expect_near(few$values, all$values[1:3], 1e-10)
    expect_near(few$vectors, all$vectors[, 1:3], 1e-7)
    expect_near(few$scores, all$scores[, 1:3], 1e-7)
    expect_near(few$total, all$total, 1e-12)
    expect_near(sum(all$values), all$total, 1e-10)
  }
  expect_identical(kme_pca(x, rbf, 3)$rank, NA_integer_)
})

test_that("more components than the rank are a warning that says what is", {
  x <- random_points(20, 2)
  expect_warning(fit <- kme_pca(x, kernel_linear(), 5),
                 "'ncomp' is 5, more than the rank of .*, 2: so many",
                 class = "kernmean_warning")
  expect_identical(dim(fit$vectors), c(20L, 2L))
  expect_identical(fit$rank, 2L)
  expect_warning(kme_pca(x[, 1], kernel_linear(), 2, covariance = "fkmse"),
                 "rank of .*, 1", class = "kernmean_warning")
  # A centered sample of n points has rank n - 1.
  expect_warning(fit <- kme_pca(x, rbf, 20), "rank of .*, 19")
  expect_no_warning(kme_pca(x, rbf, 19))
})

test_that("a gram in place of data gives the same components", {
  x <- random_points(20, 2)
  z <- random_points(5, 2, seed = 8)
  rownames(z) <- letters[1:5]
  K <- gram_R(rbf, x)
  L <- gram_R(rbf, z, x)
  rownames(L) <- letters[1:5]
  for (center in estimators) {
    for (covariance in estimators) {
      fit <- kme_pca(x, rbf, 4, center = center, covariance = covariance)
      g <- gram(x, rbf)
      on_gram <- kme_pca(g, ncomp = 4, center = center,
                         covariance = covariance)
      on_values <- kme_pca(as_gram(K), ncomp = 4, center = center,
                           covariance = covariance)
      expect_identical(on_gram$sample$gram, g)
      expect_null(fit$sample$gram)
      expect_near(on_gram$scores, fit$scores, 1e-8)
      expect_near(on_values$scores, fit$scores, 1e-8)
      expect_near(predict(on_gram, z), predict(fit, z), 1e-8)
      expect_near(predict(on_values, L), predict(fit, z), 1e-8)
      expect_near(reconstruction_error(on_values, L, diagonal = rep(1, 5)),
                  reconstruction_error(fit, z), 1e-8)
      expect_near(reconstruction_error(on_values),
                  reconstruction_error(fit), 1e-8)
    }
  }
  g <- as_gram(K)
  mean <- kme(g, estimator = "fkmse", lambda = 1)
  fit <- kme_pca(g, ncomp = 2, center = mean)
  want <- kme_pca(x, rbf, 2, center = kme(x, rbf, "fkmse", lambda = 1))
  expect_near(predict(fit, L), predict(want, z), 1e-9)
})

test_that("update() fits again with other arguments", {
  x <- random_points(20, 2)
  y <- random_points(12, 2, seed = 6)
  # All but the arguments, those of the mean among them.
  same <- function(a, b) {
    a$mean <- a$mean$weights
    b$mean <- b$mean$weights
    expect_equal(a[names(a) != "arguments"], b[names(b) != "arguments"])
  }
  g <- gram(x, rbf)
  on_gram <- kme_pca(g, ncomp = 2)
  expect_identical(update(on_gram, center = "skmse")$sample$gram, g)
  same(update(on_gram, kernel = kernel_poly(2)),
       kme_pca(x, kernel_poly(2), 2))
  d <- data.frame(a = x[, 1], b = x[, 2])
})

test_that("bad input is refused", {
  skip_on_cran()
  x <- random_points(8, 2)
  K <- gram_R(rbf, x)
  fit <- kme_pca(x, rbf, 3)
  on_values <- kme_pca(as_gram(K), ncomp = 2)
  normal <- list(weights = 1, means = c(0, 0), covariances = diag(2))
  towards <- kme_pca(x, rbf, 2,
                     center = kme(x, rbf, "skmse", target = normal))
  poly <- kme_pca(x, kernel_poly(2), 2)
  expect_refusals(expression(
    kme_pca(x, rbf, 0), kme_pca(x[1, , drop = FALSE], rbf),
    kme_pca(gram(x, rbf), rbf), kme_pca(x, kernel_energy()), kme_pca(x, "rbf"),
    kme_pca("a"), kme_pca(c(1, NA)),
    kme_pca(x, rbf, center = kme(x, kernel_rbf(2))),
    kme_pca(x, rbf, center = kme(x[, 1], rbf)),
    kme_pca(as_gram(K), center = kme(as_gram(K))),
    kme_pca(x, rbf, center = "median"), kme_pca(x, rbf, covariance = "mkme"),
    kme_pca(x, rbf, lambda = 1), kme_pca(x, rbf, select = "loocv"),
    kme_pca(x, rbf, noise = 1), kme_pca(x, rbf, covariance = "cose"),
    kme_pca(x, rbf, center = est_skmse),
    kme_pca(x, rbf, covariance = est_skmse(target = kme(x, rbf))),
    kme_pca(x, rbf, covariance = \(sample) 1), kme_pca(x, rbf, 2, "skmse"),
    kme_pca(x, rbf, centre = "kme"),
    kme_pca(a ~ b, data.frame(a = 1:3, b = 1:3)), predict(fit, x, 4),
    predict(fit, x, 0), predict(fit, x[, 1]), predict(fit, x, type = "scores"),
    predict(on_values, x), reconstruction_error(fit, x, diagonal = rep(1, 8)),
    reconstruction_error(fit, x, 4), reconstruction_error(on_values, K),
    reconstruction_error(on_values, K, diagonal = c(NA, rep(1, 7))),
    reconstruction_error(on_values, K, diagonal = rep(0.1, 8)),
    preimage(on_values), preimage(fit, tol = 0),
    preimage(fit, maxit = 0), preimage(fit, x, 4), update(fit, "skmse"),
    update(fit, formula = ~ a), update(fit, lambda = 1), plot(fit, comps = 4),
    plot(fit, groups = 1:7), plot(fit, 1:2), summary(fit, 3), screeplot(fit, 4)
  ))
})

test_that("fits and summaries print what was computed", {
  x <- cbind(a = c(0, 1, 3, 4.5, 2), b = c(1, 0, 2, 2, 5))
  rbf <- kernel_rbf(2)
  expect_snapshot({
    kme_pca(x, rbf, 2)
    kme_pca(x, rbf)
    kme_pca(x, rbf, 1, center = "fkmse", covariance = "skmse")
    kme_pca(x, rbf, 2, covariance = est_fkmse(lambda = 0.1))
    kme_pca(x, rbf, 2, covariance = \(sample) 1:5 / 15)
    kme_pca(as_gram(diag(3)), center = "skmse")
    kme_pca(x, rbf, 2, center = kme(x, rbf, weights = 1:5 / 15))
    summary(kme_pca(x, rbf))
    summary(kme_pca(random_points(20, 2), rbf))
  })
})

test_that("what a linear kernel shows does not depend on the origin", {
  set.seed(1)
  x <- matrix(rnorm(240), 60) %*% diag(1:4)
  new <- matrix(rnorm(20), 5)
  y <- rnorm(60)
  g <- rep(1:2, 30)
  # Points and their sums keep 1e-16 of the offset.
  for (offset in c(1e6, 1e8)) {
    away <- x + offset
    fit <- kme_pca(away, kernel_linear(), ncomp = 2)
    classic <- prcomp(x)
    expect_equal(fit$values, classic$sdev[1:2]^2 * 59 / 60,
                 tolerance = 1e-16 * offset)
    expect_near(abs(unname(predict(fit, new + offset))),
                abs(unname(predict(classic, new)[, 1:2])), 1e-15 * offset)
    rest <- rowSums(predict(classic, new)[, 3:4]^2)
    expect_equal(unname(reconstruction_error(fit, new + offset)), rest,
                 tolerance = 1e-15 * offset)
    # The mean that centers is that of the points as they are.
    expect_equal(fit$mean$norm2, sum(colMeans(away)^2))
    sum <- kernel_rbf(2, columns = 1:2) + kernel_linear(columns = 3:4)
    for (kernel in list(kernel_linear(), kernel_poly(1, 3), sum)) {
      results <- \(x, new) list(
        kme_pca(x, kernel, ncomp = 2, covariance = "fkmse")$values,
        predict(kme_pca(x, kernel, ncomp = 2), new),
        kme_cov(x, y, kernel_x = kernel)$values,
        predict(kme_fda(x, g, kernel), new)$x
      )
      expect_equal(results(away, new + offset), results(x, new),
                   tolerance = 1e-15 * offset)
    }
  }
  # Where the mean is shrunk to the origin it does depend on that.
  near <- kme_pca(x, kernel_linear(), center = "skmse")$values
  far <- kme_pca(x + 3, kernel_linear(), center = "skmse")$values
  expect_gt(max(abs(near / far[seq_along(near)] - 1)), 1e-6)
})

test_that("more components than points are as many as there are", {
  x <- matrix(c(1, 2, 4, 7, 11, 3, 1, 8, 2, 5), 5)
  expect_warning(fit <- kme_pca(x, ncomp = 10), "more than the rank")
  expect_identical(dim(fit$scores), c(5L, 4L))
  # One point has no axes, but a picture.
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_error(plot(kme(x[1, , drop = FALSE], kernel_rbf(1))), NA)
})

# Pre-images of kernel PCA by what they must satisfy.

rbf <- kernel_rbf(1.2)

test_that("pre-images do not depend on each other", {
  fit <- kme_pca(random_points(30, 2), rbf, 4, center = "fkmse")
  z <- random_points(40, 2, seed = 9)
  all <- preimage(fit, z)
  for (row in c(3, 17, 40)) {
    expect_near(all[row, , drop = FALSE],
                preimage(fit, z[row, , drop = FALSE]), 1e-10)
  }
})

test_that("a pre-image is a fixed point and a maximum of the projection", {
  skip_on_cran()
  x <- random_points(40, 2)
  y <- random_points(8, 2, seed = 2) + 1
  z <- random_points(10, 2, seed = 3)
  kernel <- kernel_rbf(c(0.9, 1.6))
  centers <- list("kme", "skmse", "fkmse", kme(y, kernel),
                  kme(x, kernel, "skmse", target = kme(y, kernel)))
  for (center in centers) {
    fit <- kme_pca(x, kernel, 4, center = center)
    found <- preimage(fit, z)
    # P(z) = mu + sum s_j v_j as a function of points, from predict() alone.
    sites <- if (inherits(center, "kme")) rbind(x, y) else x
    b <- switch(class(center)[1L],
      character = kme(x, kernel, center)$weights,
      kme = if (identical(center$sample$x, x)) {
        target <- center$estimator$target
        c(center$weights, center$share * target$weights)
      } else {
        c(numeric(40), center$weights)
      }
    )
    Vs <- predict(fit, z) %*% t(fit$vectors)
    for (i in 1:10) {
      c <- b * (1 - sum(Vs[i, ])) + c(Vs[i, ], numeric(nrow(sites) - 40))
      k <- drop(gram_R(kernel, found[i, , drop = FALSE], sites))
      expect_near(found[i, ], colSums(c * k * sites) / sum(c * k), 1e-6)
      best <- gram_R(kernel, x, sites) %*% c
      # Not below the start, and no neighbor is higher.
      expect_gte(sum(c * k), max(best) - 1e-12)
      near <- rep(found[i, ], each = 4) +
        1e-3 * cbind(c(1, -1, 0, 0), c(0, 0, 1, -1))
      expect_true(all(gram_R(kernel, near, sites) %*% c <= sum(c * k)))
    }
  }
})

test_that("with all components a point of the sample is its own pre-image", {
  x <- random_points(15, 2)
  fit <- kme_pca(x, kernel_rbf(0.3))
  expect_near(unname(preimage(fit)), x, 1e-6)
})

test_that("pre-images far from 0 are those near 0", {
  # The shift is exact, and its neighbors are 2.4e-7 apart.
  x <- round(random_points(15, 2) * 1024) / 1024
  near <- kme_pca(x, kernel_rbf(0.3), 6)
  far <- kme_pca(x + 2^30, kernel_rbf(0.3), 6)
  expect_no_warning(z <- preimage(far))
  expect_lte(max(abs(z - 2^30 - preimage(near))), 3e-7)
})

test_that("pre-images that do not converge are counted in one warning", {
  fit <- kme_pca(random_points(20, 2), rbf, 2)
  expect_warning(z <- preimage(fit, random_points(6, 2), maxit = 1),
                 "6 of 6 pre-images did not converge in 1 step",
                 class = "kernmean_warning")
  expect_true(all(is.finite(z)))
  # A projection that is nowhere positive on the sample.
  away <- kme(fit$sample$x, rbf, weights = rep(-1, 20))
  fit <- kme_pca(fit$sample$x, rbf, 1, center = away)
  far <- matrix(c(50, 50), 1)
  expect_warning(z <- preimage(fit, far), "1 of 1")
  expect_true(any(apply(fit$sample$x, 1, \(x) isTRUE(all.equal(x, drop(z))))))
})

test_that("a start where the projection is negative gives way to the next", {
  # -k(0, .) + 2 k(5, .): the sample's first point is taken for the best one.
  object <- list(sample = points_sample(matrix(c(0, 5)), kernel_rbf(1)),
                 at = c(1, 0), kernel = kernel_rbf(1),
                 scores = matrix(0, 2, 1), vectors = matrix(0, 2, 1))
  sites <- list(x = matrix(c(0, 5)), weights = c(-1, 2), origin = 0)
  found <- fixed_points(object, sites, matrix(0, 1, 1), 1e-8, 100)
  expect_identical(found$failed, 0)
  expect_near(drop(found$z), 5, 1e-4)
})

test_that("the noise of a center becomes weights for pre-images", {
  x <- random_points(25, 2)
  noisy <- kme(x, rbf, "mkme", noise = 0.05)
  fit <- kme_pca(x, rbf, 3, center = kme(x, rbf, weights = as_weights(noisy)))
  want <- kme_pca(x, rbf, 3, center = noisy)
  expect_near(fit$at, want$at, 1e-8)
  # The norms differ by what the noise puts out of the span of the sample.
  expect_lt(fit$norm2, want$norm2)
  expect_near(fit$values, want$values, 0.01)
  expect_true(all(is.finite(preimage(fit))))
})

test_that("centers with noise or a mixture have pre-images that are maxima", {
  x <- random_points(60, 2)
  z <- random_points(12, 2, seed = 3)
  mixture <- list(weights = 1, means = t(c(0.5, 0.5)), covariances = diag(2))
  centers <- c(lapply(c("stack", "smooth", "mkme"), \(name) kme(x, rbf, name)),
               list(kme(x, rbf, "skmse", target = mixture)))
  for (center in centers) {
    fit <- kme_pca(x, rbf, 4, center = center)
    found <- preimage(fit, z)
    # <P(z), phi(at)> with the mean as it is.
    value <- \(at) {
      mu <- predict(center, at)
      v <- (gram_R(rbf, at, x) - mu) %*% fit$vectors
      mu + rowSums(predict(fit, z) * v)
    }
    for (step in list(c(1, 0), c(-1, 0), c(0, 1), c(0, -1))) {
      near <- found + rep(1e-2 * step, each = 12)
      expect_true(all(value(near) < value(found)))
    }
  }
})

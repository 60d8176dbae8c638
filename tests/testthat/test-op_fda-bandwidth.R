# The bandwidth of kme_fda(): against refits of every candidate.

factors <- 2^seq(-2, 1, 0.5)
shares <- c(9, 8, 7) / 24

test_that("bandwidths have the scores of refits, and the best is taken", {
  skip_on_cran()
  median <- kme(flowers)$kernel$bandwidth
  for (prior in list(shares, c(0.2, 0.7, 0.1), c(0, 0.5, 0.5))) {
    fit <- kme_fda(flowers, species, prior = prior)
    tried <- fit$bandwidths
    expect_near(tried$factor, factors, 1e-14)
    expect_near(tried$bandwidth, factors * median, 1e-14)
    slow <- vapply(tried$bandwidth, \(theta) {
      fda_score_R(gram_R(kernel_rbf(theta), flowers), species, prior)
    }, numeric(2))
    # Shares of points; logarithms of exponentials of distances to 1e-8.
    expect_near(tried$error, slow[1, ], 1e-12)
    expect_near(tried$log_posterior, slow[2, ], 1e-6)
    best <- order(round(slow[1, ], 9), -slow[2, ])[1]
    expect_identical(which(tried$chosen), best)
    expect_identical(fit$kernel$bandwidth, tried$bandwidth[best])
    alone <- kme_fda(flowers, species, kernel_rbf(tried$bandwidth[best]),
                     prior = prior)
    same <- c("scaling", "means", "svd", "sigma2", "ridge", "loo", "error")
    expect_near(unclass(fit)[same], unclass(alone)[same], 1e-12)
  }
})

test_that("the median is the kernel's own, numbers are taken as they are", {
  median <- kme(flowers)$kernel$bandwidth
  same <- c("scaling", "means", "svd", "sigma2", "loo", "error", "ridge")
  expect_equal(
    unclass(kme_fda(flowers, species, bandwidth = "median"))[same],
    unclass(kme_fda(flowers, species, kernel_rbf(median)))[same],
    tolerance = 1e-14
  )
  one <- kme_fda(flowers, species, bandwidth = 1.5)
  expect_null(one$bandwidths)
  expect_identical(one$scaling,
                   kme_fda(flowers, species, kernel_rbf(1.5))$scaling)
  several <- kme_fda(flowers, species, bandwidth = factors * median)
  expect_near(several$bandwidths, kme_fda(flowers, species)$bandwidths, 1e-12)
})

test_that("units do not matter to a fit that is scaled", {
  z <- flowers[3:12, ] + 0.1
  same <- c("svd", "error", "intensity", "bandwidths", "sigma2")
  expect_same <- \(scale, map) {
    turned <- \(x) x %*% map + rep(c(3, 5, -1, 10), each = nrow(x))
    fit <- kme_fda(flowers, species, scale = scale)
    other <- kme_fda(turned(flowers), species, scale = scale)
    expect_near(unclass(other)[same], unclass(fit)[same], 1e-7)
    expect_near(other$loo, fit$loo, 1e-6)
    expect_near(predict(other, turned(z)), predict(fit, z), 1e-6)
  }
  expect_same(TRUE, diag(c(1e-6, 3, 1e4, 0.7)))
  expect_same("whiten", matrix(c(1, 0.5, 0, 2, 0, 3, 1, 0, -1, 0, 0.2, 0,
                                 1, 1, 1, 1), 4))
})

test_that("update() chooses the bandwidth where something enters it", {
  skip_on_cran()
  fit <- kme_fda(flowers, species)
  theta <- fit$kernel$bandwidth
  prior <- c(0.2, 0.3, 0.5)
  other <- update(fit, prior = prior, ridge = 0.1)
  # Both enter the choice, which is made again.
  chosen <- kme_fda(flowers, species, ridge = 0.1, prior = prior)
  expect_identical(other$bandwidths, chosen$bandwidths)
  expect_near(other$loo, chosen$loo, 1e-12)
  # And again: what was asked for is not lost on the way.
  back <- update(other, prior = NULL, ridge = "shrinkage")
  expect_near(back$loo, fit$loo, 1e-12)

  y <- species == "setosa"
  direct <- kme_fda(flowers, y)
  expect_false(direct$kernel$bandwidth == theta)
  expect_identical(update(other, grouping = y, ridge = "shrinkage",
                          prior = NULL)$bandwidths, direct$bandwidths)
  z <- flowers[-(1:3), ]
  expect_identical(update(fit, x = z, grouping = species[-(1:3)])$bandwidths,
                   kme_fda(z, species[-(1:3)])$bandwidths)
  expect_identical(update(fit, scale = TRUE)$bandwidths,
                   kme_fda(flowers, species, scale = TRUE)$bandwidths)
})

test_that("the ridge is the multiple of least leave-one-out error", {
  fit <- kme_fda(flowers, species)
  base <- kme_fda(flowers, species, ridge = "shrinkage")
  expect_identical(fit$kernel$bandwidth, base$kernel$bandwidth)
  expect_equal(fit$ridges$ridge, c(0.03, 0.1, 0.3, 1, 3) * base$ridge)
  each <- lapply(fit$ridges$ridge, \(ridge) {
    kme_fda(flowers, species, base$kernel, ridge)
  })
  expect_equal(fit$ridges$error, vapply(each, `[[`, 1, "error"))
  true <- cbind(seq_along(species), as.integer(species))
  # As it is before the temperature and the share of the prior.
  posterior <- vapply(each, \(one) {
    odds <- exp(-one$loo$distance / (2 * one$sigma2)) %*% diag(one$prior)
    mean(log((odds / rowSums(odds))[true]))
  }, 1)
  expect_near(fit$ridges$log_posterior, posterior, 1e-9)
  least <- which(fit$ridges$error == min(fit$ridges$error))
  best <- least[which.max(posterior[least])]
  expect_identical(which(fit$ridges$chosen), best)
  expect_near(fit$loo, each[[best]]$loo, 1e-9)
  expect_identical(fit$intensity, base$intensity)
  # For a given kernel it is asked for; a median bandwidth has the plain ridge.
  own <- kme_fda(flowers, species, base$kernel, ridge = "loo")
  expect_near(own$ridges, fit$ridges, 1e-9)
  expect_null(kme_fda(flowers, species, bandwidth = "median")$ridges)
  expect_identical(update(fit), fit)
})

test_that("distances do not depend on which points are treated together", {
  skip_on_cran()
  # 81 classes: 39 points at a time, of a class of 60.
  classes <- c(rep(1, 60), rep(2:81, each = 2))
  n <- length(classes)
  x <- random_points(n, 3) + classes / 20
  turned <- rev(seq_len(n))
  fit <- kme_fda(x, classes, kernel_rbf(1))
  other <- kme_fda(x[turned, ], classes[turned], kernel_rbf(1))
  expect_equal(other$loo$posterior[turned, ], fit$loo$posterior,
               tolerance = 1e-9, ignore_attr = TRUE)
})

# Units of columns: `scale` in all doors, invariances, new points, warnings.

set.seed(11)
n <- 40
x <- cbind(a = rnorm(n), b = 100 * rexp(n), c = 1e-3 * rt(n, 5) + 7)
x[, "b"] <- x[, "b"] + 30 * x[, "a"]
new <- x[1:5, ] * 1.01
units <- c(2.54, 1 / 1000, 60)
offsets <- c(10, -3, 0.5)
rescaled <- \(z) {
  z <- z * rep(units, each = nrow(z)) + rep(offsets, each = nrow(z))
  colnames(z) <- colnames(x)
  z
}
affine <- {
  a <- qr.Q(qr(matrix(rnorm(9), 3))) %*% diag(c(1, 3, 0.2)) %*%
    qr.Q(qr(matrix(rnorm(9), 3)))
  \(z) unname(z) %*% diag(c(1, 0.01, 1000)) %*% a + rep(offsets, each = nrow(z))
}
mixture <- \(map) {
  center <- matrix(colMeans(x), 1)
  # The linear part of the map.
  linear <- map(diag(3)) - map(matrix(0, 3, 3))
  list(weights = 1, means = map(center),
       covariances = crossprod(linear, cov(x) %*% linear))
}

test_that("scale = TRUE is a bandwidth for each column", {
  deviations <- apply(x, 2, sd)
  for (make in list(kernel_rbf, kernel_laplace, \(b) kernel_matern(5 / 2, b))) {
    scaled <- kme(x, make(0.7), scale = TRUE)
    by_column <- kme(x, make(0.7 * deviations))
    # Differences of columns near 7 of width 1e-3 keep 12 digits.
    expect_near(scaled$fitted, by_column$fitted, 1e-11)
    expect_near(predict(scaled, new), predict(by_column, new), 1e-10)
  }
})

test_that("TRUE takes the points of scale(), \"whiten\" Mahalanobis' ones", {
  fit <- kme(x, kernel_linear(), scale = TRUE)
  expect_equal(fit$sample$x, scale(x), ignore_attr = c("scaled:center",
               "scaled:scale"), tolerance = 1e-11)
  expect_identical(fit$sample$raw, x)
  white <- gram(x, kernel_linear(), scale = "whiten")$x
  expect_equal(cov(white), diag(3), tolerance = 1e-10, ignore_attr = TRUE)
  expect_near(rowSums(white^2), mahalanobis(x, colMeans(x), cov(x)), 1e-9)
})

# Everything a user sees, with a map of the points and the scaling that undoes
# it.
shown <- \(map, scale) {
  z <- map(x)
  at <- map(new)
  fit <- kme(z, estimator = "skmse", scale = scale)
  towards <- kme(z, estimator = "skmse", target = mixture(map), scale = scale)
  pca <- kme_pca(z, ncomp = 3, scale = scale)
  operator <- kme_cov(z, rev(x[, 1]), estimator = "fkmse", scale = scale)
  list(
    weights = fit$weights, theta = fit$kernel$bandwidth,
    at = unname(predict(fit, at)), risk = kme_risk(fit, mixture(map)),
    target = towards$weights, pca = pca$values,
    scores = abs(unname(predict(pca, at))),
    error = unname(reconstruction_error(pca, at)), cov = operator$values[1:3],
    kernel = unname(kernel_matrix(z, at, scale = scale)),
    quad = kme(z, kernel_poly(2), scale = scale)$norm2
  )
}

test_that("scale = \"whiten\" does not depend on an affine map", {
  expect_near(shown(affine, "whiten"), shown(identity, "whiten"), 1e-7)
})

test_that("pre-images come back in the units of the user", {
  fit <- kme_pca(x, kernel_rbf(3), scale = TRUE)
  plain <- kme_pca(scale(x), kernel_rbf(3))
  # With all components a projection is the point itself.
  expect_near(preimage(fit, x[1:4, ]), x[1:4, ], 1e-4)
  back <- preimage(plain, scale(x)[1:4, ], ncomp = 2)
  expect_equal(
    preimage(fit, x[1:4, ], ncomp = 2),
    back * rep(apply(x, 2, sd), each = 4) + rep(colMeans(x), each = 4),
    tolerance = 1e-6
  )
  white <- kme_pca(x, kernel_rbf(3), scale = "whiten")
  expect_near(preimage(white, x[1:4, ]), x[1:4, ], 1e-4)
})

test_that("the kernel of a fit takes its units to other points", {
  fit <- kme(x[1:20, ], scale = "whiten")
  other <- kme(x[21:40, ], fit$kernel)
  expect_identical(other$kernel, fit$kernel)
  expect_equal(predict(other, x[1:3, ]),
               rowMeans(kernel_matrix(x[1:3, ], x[21:40, ], fit$kernel)))
  expect_equal(kme_inner(fit, other), mean(predict(fit, x[21:40, ])))
  expect_error(kme_inner(fit, kme(x[21:40, ], scale = "whiten")),
               class = "kernmean_error_input")
})

test_that("update() keeps the units, or takes others with another bandwidth", {
  fit <- kme(x, scale = TRUE)
  again <- expect_silent(update(fit, estimator = "skmse"))
  expect_identical(again$kernel, fit$kernel)
  expect_equal(again$sample$x, fit$sample$x)
  white <- update(again, scale = "whiten")
  expect_equal(white$kernel, kme(x, scale = "whiten")$kernel)
  expect_equal(update(white, scale = TRUE)$kernel, fit$kernel)
  half <- update(fit, x = x[1:20, ])
  expect_equal(half$kernel, kme(x[1:20, ], scale = TRUE)$kernel)

  cross <- kme_cov(x[, 1:2], x[, 2:3], scale = TRUE)
  kernel <- \(fit) fit$variables[[2]]$sample$kernel
  expect_identical(kernel(cross)$scaling$type, TRUE)
  expect_equal(kernel(update(cross, estimator = "skmse")), kernel(cross))
  expect_equal(update(cross, scale = "whiten")$values,
               kme_cov(x[, 1:2], x[, 2:3], scale = "whiten")$values)
})

test_that("directions in which nothing varies are left out", {
  flat <- cbind(x, d = 5, e = x[, 1] + x[, 3])
  expect_near(kme(flat[, -4], scale = "whiten")$fitted,
              kme(x, scale = "whiten")$fitted, 1e-6)
  expect_near(kme(flat[, 1:4], scale = TRUE)$fitted,
              kme(x, scale = TRUE)$fitted, 1e-10)
  fit <- kme(flat, scale = "whiten")
  expect_output(print(fit), "whitened by their\\s+covariance \\(rank 3 of 5\\)")
})

test_that("columns of any size are scaled without overflow", {
  huge <- x * rep(c(1e200, 1e-200, 1), each = n)
  expect_near(kme(huge, scale = TRUE)$fitted,
              kme(x, scale = TRUE)$fitted, 1e-10)
})

test_that("spreads are those of sd(), of any size, and none of constants", {
  spreads <- \(x) .Call(kernmean:::C_r_column_spreads, x)
  sizes <- c(1e300, 1e-300, 1)
  expect_equal(spreads(x * rep(sizes, each = n)),
               log(unname(apply(x, 2, sd))) + log(sizes), tolerance = 1e-14)
  expect_identical(spreads(cbind(0.1, c(2^-1074, 0, 0))),
                   c(-Inf, log(.Machine$double.xmin) + log(sd(c(2^-52, 0, 0)))))
  expect_no_warning(kme(cbind(a = 0.1, x[, 1])))
})

test_that("units tenfold apart are a warning that names column and argument", {
  expect_warning(kme(x), "'scale = TRUE'", class = "kernmean_warning_units")
  doors <- list(
    \(...) gram(x, ...), \(...) kme_pca(x, ...), \(...) kme_cov(x, ...),
    \(...) kme_cov(x[, 1], x, ...), \(...) kernel_matrix(x, ...)
  )
  for (door in doors) {
    expect_warning(door(), class = "kernmean_warning_units")
    for (scale in list(FALSE, TRUE, "whiten")) {
      expect_no_warning(door(scale = scale))
    }
  }
  own <- kernel_function(\(x, y) exp(tcrossprod(x, y) / 1e6))
  expect_no_warning(kme(x, own))
})

test_that("bad scales are refused", {
  fit <- kme(x, scale = TRUE)
  expect_snapshot(error = TRUE, kme(x, scale = "yes"))
  expect_snapshot(error = TRUE, kme(gram(x, scale = TRUE), scale = TRUE))
  expect_snapshot(error = TRUE, kme(x[1:4, ], scale = "whiten"))
  expect_snapshot(error = TRUE, {
    kme(x, kernel_rbf(c(1, 2, 3)), scale = "whiten")
  })
  expect_snapshot(error = TRUE, kme(x, fit$kernel, scale = "whiten"))
  expect_snapshot(error = TRUE, kme(x[, 1:2], fit$kernel))
  expect_snapshot(error = TRUE, kme(x[, 3:1], fit$kernel))
  expect_snapshot(error = TRUE, {
    kme_cov(factor(x[, 1] > 0), factor(x[, 2] > 0), scale = TRUE)
  })
})

test_that("bandwidths with names are those of the columns", {
  by_name <- kme(x, kernel_rbf(c(c = 3, a = 1, b = 2)))
  expect_identical(by_name$kernel$bandwidth, c(1, 2, 3))
  expect_error(kme(x, kernel_rbf(c(a = 1, b = 2, z = 3))),
               class = "kernmean_error_input")
})

test_that("another kernel or other units for a gram of scaled points", {
  y <- x[, 1:2]
  for (scale in list(TRUE, "whiten")) {
    g <- gram(y, scale = scale)
    expect_equal(update(kme(g), kernel = kernel_laplace())$fitted,
                 kme(y, kernel_laplace(), scale = scale)$fitted)
    test <- update(mmd_test(g, rep(1:2, 20), B = 19), kernel = kernel_laplace())
    expect_equal(test$kernel, kme(y, kernel_laplace(), scale = scale)$kernel)
    cross <- update(kme_cov(g, y[, 1]), kernel_x = kernel_laplace())
    expect_equal(cross$values,
                 kme_cov(y, y[, 1], kernel_laplace(), scale = scale)$values)
  }
})

test_that("a kernel that was scaled otherwise brings its scaling", {
  white <- kme(x, scale = "whiten")$kernel
  fit <- update(kme(x, scale = TRUE), kernel = white)
  expect_identical(fit$kernel, white)
  expect_identical(update(fit, estimator = "skmse")$kernel, white)
  test <- mmd_test(x[1:20, ], x[21:40, ], scale = TRUE, B = 19)
  expect_identical(update(test, kernel = white)$kernel, white)
})

test_that("scale = TRUE does not depend on the units of the columns", {
  expect_near(shown(rescaled, TRUE), shown(identity, TRUE), 1e-8)
})

# What print() and summary() show.

x <- cbind(a = c(0, 1, 3, 4.5), b = c(1, 0, 2, 2))
normal <- list(weights = 1, means = c(0, 0), covariances = diag(2))

test_that("fits print estimator, sample, kernel and shrinkage", {
  expect_snapshot({
    kme(x, kernel_rbf(2))
    kme(x, kernel_rbf(2), weights = c(0.4, 0.3, 0.2, 0.1))
    kme(x[, 1], kernel_laplace())
    kme(x, kernel_rbf(2), "skmse")
    kme(x, kernel_rbf(2), "skmse", select = "plugin")
    kme(x, kernel_rbf(2), "skmse", lambda = 0.5)
    kme(x, kernel_rbf(2), "fkmse")
    kme(x, kernel_rbf(2), "fkmse", select = "gcv")
    kme(x, kernel_rbf(2), "fkmse", select = "printed")
    kme(x, kernel_rbf(2), "fkmse", lambda = 0.5)
    kme(x, kernel_rbf(2), "fkmse", lambda = Inf, target = normal)
    kme(x, kernel_rbf(2), "skmse", target = kme(x + 1, kernel_rbf(2)))
    kme(as_gram(diag(3)), estimator = "skmse")
    kme(scale(x, scale = FALSE), kernel_linear(), "skmse")
    kme(rep(1, 3), estimator = "skmse")
  })
})

test_that("the distance to the KME that is printed is kme_distance()", {
  x <- random_points(15, 2)
  rbf <- kernel_rbf(1.5)
  normal <- list(weights = 1, means = c(0, 0), covariances = diag(2))
  other <- kme(x + 1, rbf)
  plain <- \(fit) update(fit, estimator = "kme")
  fits <- c(
    lapply(c("skmse", "fkmse", "mkme", "mmkme", "smooth", "stack"),
           \(estimator) kme(x, rbf, estimator)),
    list(
      kme(x, rbf, "skmse", lambda = 0.4, target = normal),
      kme(x, rbf, "fkmse", lambda = 0.4, target = other),
      kme(x, rbf, "fkmse", lambda = Inf, target = normal),
      kme(x, rbf, weights = c(2, -1, rep(0, 13))),
      kme(x, kernel_poly(3), "mmkme", noise = c(0.5, 0)),
      kme(x, kernel_laplace(1), "stack"),
      kme(as_gram(gram_R(rbf, x)), estimator = "fkmse", lambda = 2),
      kme(x, rbf, est_function(\(sample) rep(0.5 / sample$n, sample$n))),
      kme(kme_sketch(x, 5, kernel = rbf), estimator = "fkmse", lambda = 1)
    )
  )
  for (fit in fits) {
    average <- if (is.null(fit$sample$sketch)) plain(fit) else
      kme(fit$sample$sketch)
    want <- kme_distance(fit, average)
    expect_gt(want, 1e-4)
    found <- plain_distance(fit)
    expect_near(found$distance, want, 1e-6)
    expect_false(found$rounding)
    expect_output(print(fit, digits = 5), fixed = TRUE,
                  paste("distance to the KME", format(want, digits = 5)))
  }
  # Nothing is said of the KME; of what is nearly the KME, no more than that.
  expect_false(any(grepl("distance", utils::capture.output(kme(x, rbf)))))
  expect_output(print(kme(x, rbf, "mkme", noise = 0)),
                "distance to the KME 0$")
  near <- kme(x, rbf, "skmse", lambda = 1e-9)
  expect_true(plain_distance(near)$rounding)
  expect_lt(kme_distance(near, kme(x, rbf)), plain_distance(near)$distance)
  expect_output(print(near), "distance to the KME < [1-9]e-06$")
})

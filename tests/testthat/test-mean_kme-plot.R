# Every plot, on a device that draws nowhere: it runs, and returns what it drew.

x <- random_points(20, 2)
colnames(x) <- c("first", "second")
rbf <- kernel_rbf(1)

test_that("the selection curve is the score at its lambdas", {
  for (fit in list(kme(x, rbf, "skmse"), kme(x, rbf, "fkmse"),
                   kme(x, rbf, "fkmse", select = "gcv"),
                   kme(x, rbf, "fkmse", select = "printed"))) {
    shown <- withVisible(on_device(plot(fit)))
    expect_identical(shown$value, fit$score)
    expect_false(shown$visible)
    expect_identical(on_device(plot(fit, type = "selection")), fit$score)
  }
})

test_that("the curve of one column is predict() on a grid around the points", {
  for (estimator in c("kme", "skmse", "fkmse")) {
    fit <- kme(x[, "first", drop = FALSE], rbf, estimator)
    shown <- on_device(plot(fit, type = "embedding", n = 31))
    expect_identical(dim(shown), c(31L, 2L))
    expect_near(shown$value, unname(predict(fit, shown$z)), 1e-14)
    width <- diff(range(x[, 1]))
    expect_equal(range(shown$z), range(x[, 1]) + c(-0.15, 0.15) * width)
  }
})

test_that("the contours of two columns are predict() on a grid", {
  fit <- kme(x, rbf, "fkmse")
  shown <- on_device(plot(fit, type = "embedding", n = 12))
  expect_identical(lengths(shown), c(x = 12L, y = 12L, z = 144L))
  expect_near(shown$z[3, 7], predict(fit, cbind(shown$x[3], shown$y[7])), 1e-14)
  expect_near(shown$z[12, 1],
              predict(fit, cbind(shown$x[12], shown$y[1])), 1e-14)
})

test_that("the embedding of more columns is drawn on kernel principal axes", {
  wide <- cbind(x, third = random_points(20, 1)[, 1])
  fit <- kme(wide, rbf, "skmse")
  shown <- on_device(plot(fit, "embedding"))
  expect_identical(shown$value, unname(fit$fitted))
  pca <- kme_pca(wide, rbf, ncomp = 2)
  for (j in 1:2) {
    expect_equal(abs(shown[[j]]), unname(abs(pca$scores[, j])))
  }
  # Of a gram of values alike; of many points an even share.
  expect_equal(on_device(plot(kme(gram(wide, rbf), estimator = "skmse"),
                              "embedding")), shown)
  # Points without spread have no axes.
  expect_identical(on_device(plot(kme(matrix(1, 3, 3), rbf)))$PC1, numeric(3))
})

test_that("between its points the selection curve is the score", {
  skip_on_cran()
  K <- gram_R(rbf, x)
  exact <- list(
    skmse = \(l) {
      loo_R(K, \(k, f) rep(1 / (1 + l) / nrow(k), nrow(k)))
    },
    fkmse = \(l) fkmse_loocv_R(K, l),
    mkme = \(l) marginal_loocv_R(rbf, x, rep(l, 2))
  )
  for (estimator in names(exact)) {
    fit <- kme(x, rbf, estimator)
    curve <- picture_selection(fit)$layers[[1]]$data
    window <- selection_window(fit)
    shown <- which(curve$x > window$x[1] & curve$x < window$x[2] &
                     curve$y < window$y[2])
    shown <- shown[seq(1, length(shown), length.out = 25)]
    score <- vapply(curve$x[shown], exact[[estimator]], 1)
    # In units of what the minimum gains; on paper a pixel is about 0.01.
    gain <- fit$reference - fit$minimum
    expect_lt(max(abs(curve$y[shown] - score)) / gain, 0.01, label = estimator)
    # Enough points for the eye.
    expect_lt(max(diff(log10(curve$x))), 0.1)
  }
})

test_that("plots that cannot be drawn are refused", {
  lines <- on_device(refusals(expression(
    plot(kme(x, rbf), type = "selection"), plot(kme(x, rbf), type = "curve"),
    plot(kme(x, rbf), n = 1), plot(kme(x, rbf), interval = TRUE),
    plot(kme(x[, 1], rbf, "fkmse"), "embedding", interval = TRUE),
    plot(kme(x[, 1], rbf), interval = 1),
    plot(kme(x[, 1], rbf), interval = TRUE, level = 2),
    plot(as_gram(matrix(0, 2, 2)))
  )))
  expect_snapshot(writeLines(lines))
})

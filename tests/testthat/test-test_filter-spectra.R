# The spectra of samples in tests with profiles.

x <- random_points(24, 3, 1)
x[15:24, ] <- 1.6 * x[15:24, ]
draws <- draw_columns(24, 19)
test <- mmd_set(x[1:14, ], x[15:24, ], kernel_rbf(2), permutations = draws,
                filter = test_filter(order = "profile"))

test_that("spectra are those of both samples, with 90% of their draws", {
  K <- gram_R(kernel_rbf(2), x)
  labels <- labels_R(rep(1:2, c(14, 10)), draws)
  for (g in 1:2) {
    values <- over_columns(labels, \(z) {
      of <- which(z == g)
      eigen(center_R(K[of, of]), TRUE)$values[1:9] / length(of)
    })
    found <- test$spectra[test$spectra$group == g, ]
    expect_identical(found$axis, 1:9)
    expect_near(found$value, values[, 1], 1e-10)
    band <- apply(values[, -1], 1, quantile, c(0.05, 0.95), names = FALSE)
    expect_near(rbind(found$low, found$high), band, 1e-10)
  }
})

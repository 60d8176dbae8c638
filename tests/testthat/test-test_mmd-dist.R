# dist objects as data.

x <- random_points(30, 2)
g <- rep(c("a", "b", "b"), 10)
d <- dist(x)

test_that("the statistic is that of the energy kernel on the points", {
  for (statistic in c("biased", "unbiased")) {
    set.seed(1)
    got <- mmd_set(d, g, B = 99, statistic = statistic)
    set.seed(1)
    want <- mmd_test(x ~ g, kernel = kernel_energy(), B = 99,
                     control = test_control(statistic = statistic))
    # 1e-15 seen
    expect_lt(abs(got$statistic - want$statistic), 1e-12)
    expect_identical(got$p.value, want$p.value)
    expect_near(got$estimate, want$estimate, 1e-12)
  }
})

test_that("distances that are not of negative type have exact tests", {
  # The complete bipartite graph of 3 and 3 vertices.
  k <- matrix(2, 6, 6)
  k[1:3, 4:6] <- k[4:6, 1:3] <- 1
  bad <- as.dist(k)
  h <- diag(6) - 1 / 6
  values <- eigen(-h %*% as.matrix(bad) %*% h / 2, TRUE)$values
  expect_lt(min(values), -1e-8 * max(values))
  test <- mmd_test(bad, rep(1:2, each = 3), B = 19)
  expect_equal(test$null, "permutation")
})

test_that("what is no matrix of distances is refused", {
  bad <- d
  bad[3] <- NA
  far <- d
  far[1] <- Inf
  below <- d
  below[2:3] <- -1
  expect_snapshot(writeLines(refusals(alist(
    mmd_test(d), mmd_test(d, 1:3), mmd_test(bad, g), mmd_test(below, g),
    mmd_test(d, g, kernel = kernel_rbf()), mmd_test(d, g, scale = TRUE),
    mmd_test(d, g, bandwidths = "fuse"), mmd_test(d, g, estimator = "skmse"),
    hsic_test(bad, x)
  ))))
})

test_that("hsic_test() takes distances, as the energy kernel of the points", {
  y <- x[, 1]^2 + rnorm(30)
  set.seed(1)
  got <- hsic_test(d, dist(y), B = 99)
  set.seed(1)
  want <- hsic_test(x, y, kernel = kernel_energy(), B = 99)
  expect_near(got$statistic, want$statistic, 1e-12)
  expect_identical(got$p.value, want$p.value)
  mixed <- hsic_test(d, factor(g), B = 19)
  expect_equal(mixed$statistic, hsic_test(x, factor(g), B = 19,
                                          kernel_x = kernel_energy())$statistic,
               tolerance = 1e-12)
})

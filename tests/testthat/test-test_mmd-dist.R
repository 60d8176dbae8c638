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

test_that("distances are a side of a formula", {
  data <- data.frame(g = factor(rep(c("a", "b", "b"), 10)), z = x[, 1]^3)
  data$g[3:4] <- NA
  near <- as.dist(as.matrix(d)[-(3:4), -(3:4)])
  kept <- data[-(3:4), ]
  drawn <- function(test) {
    set.seed(1)
    test()[c("statistic", "p.value", "estimate")]
  }
  want <- drawn(\() mmd_test(near, kept$g, B = 99))
  for (formula in list(d ~ g, g ~ d, g ~ dist(x))) {
    expect_identical(drawn(\() mmd_test(formula, data, na.action = na.omit,
                                        B = 99)), want)
  }
  expect_identical(drawn(\() mmd_test(d ~ g, data, subset = -(3:4), B = 99)),
                   want)
  expect_equal(as.matrix(mmd_pairwise(d ~ g, data, na.action = na.omit,
                                      B = 99)),
               as.matrix(mmd_pairwise(near, kept$g, B = 99)))
  expect_identical(drawn(\() hsic_test(d ~ z, data, B = 99)),
                   drawn(\() hsic_test(d, data$z, B = 99)))
  named <- dist(matrix(x, 30, dimnames = list(paste0("p", 1:30), NULL)))
  components <- kme_pca(~ named, subset = 2:30)
  want <- kme_pca(as.dist(as.matrix(named)[-1, -1]))
  expect_identical(components[c("values", "scores")],
                   want[c("values", "scores")])
  expect_identical(rownames(components$scores), paste0("p", 2:30))
  expect_equal(kme_fda(g ~ d, data, na.action = na.omit)$means,
               kme_fda(near, kept$g)$means)
  only <- "distances only as all the points"
  refused(mmd_test(z ~ d, data), only)
  refused(kme_pca(~ d + z, data), paste(only, ".*d \\+ z"))
  refused(smm(z ~ d, data, id = rep(1:15, 2)), only)
  refused(mmd_gof(~ d), only)
  refused(mmd_test(d ~ g, data[-1, ]), "lengths differ")
  refused(predict(components, list(named = named)), "'newdata' must be missing")
})

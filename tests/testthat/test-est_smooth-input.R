# What smoothing and stacking refuse, and in which words.

rbf <- kernel_rbf(1.2)
x <- random_points(12, 2)

test_that("smoothing refuses what it cannot be", {
  one <- x[1, , drop = FALSE]
  K <- as_gram(gram_R(rbf, x))
  mixed <- data.frame(u = x[, 1], f = gl(2, 6))
  lines <- refusals(expression(
    est_smooth(h = -0.1), est_smooth(c = -1), est_smooth(folds = 2),
    kme(x, rbf, "smooth", lambda = 1), kme(x, rbf, "smooth", target = kme(x)),
    kme(x, rbf, "fkmse", h = 0.2),
    kme(x, rbf, "smooth", weights = rep(1 / 12, 12)), kme(one, rbf, "smooth"),
    kme(K, estimator = "smooth"), kme(x, kernel_laplace(), "smooth"),
    as_weights(kme(x, rbf, "smooth"), "taylor"),
    kme_cov(x, estimator = "smooth"), kme_pca(x, covariance = "smooth"),
    mmd_test(K, rep(1:2, 6), estimator = "smooth"),
    mmd_test(x, x + 1, estimator = "smooth",
             control = test_control(statistic = "unbiased")),
    mmd_test(x, x + 1, estimator = "smooth",
             control = test_control(null = "gamma")),
    hsic_test(as_gram(gram_R(rbf, x)), x, estimator = "smooth"),
    bag_gram(list(x, x + 1), kernel_laplace(), "smooth"),
    bag_gram(list(x, x + 1), rbf, "smooth", target = "pooled")
  ), env = environment())
  expect_snapshot(writeLines(lines))
  # One point has nothing to choose from, but can be what is given.
  expect_equal(kme(one, rbf, est_smooth(h = 0.5, c = 1))$fitted, 1)
})

test_that("a stack refuses what it cannot be", {
  two <- list(est_kme(), est_fkmse(0.1))
  normal <- list(weights = 1, means = c(0, 0), covariances = diag(2))
  lines <- refusals(expression(
    est_stack(list()), est_stack(list(est_kme(), 3)), est_stack(list(est_kme)),
    est_stack(list(est_skmse())), est_stack(list(est_kme(), est_fkmse())),
    est_stack(list(est_mkme())), est_stack(list(mine = est_smooth(h = 0.2))),
    est_stack(list(est_smooth(c = 1))), est_stack(list(est_stack(two))),
    est_stack(list(est_skmse(0.1, target = normal))),
    est_stack(two, shares = 0.5), est_stack(shares = c(0.5, 0.5)),
    est_stack(folds = 2), kme(x, rbf, "stack", lambda = 1),
    kme(x, rbf, "stack", target = normal), kme(x, rbf, est_stack(), shares = 1),
    kme(x, rbf, "stack", weights = rep(1 / 12, 12)),
    kme(x[1, , drop = FALSE], rbf, "stack"),
    kme(x, kernel_laplace(), est_stack(list(est_smooth(0.3, 1)))),
    mmd_test(x, x + 1, estimator = "stack",
             control = test_control(statistic = "unbiased")),
    mmd_test(x, x + 1, estimator = "stack",
             control = test_control(null = "gamma")),
    bag_gram(list(x, x + 1), rbf, "stack", target = "pooled")
  ), env = environment())
  expect_snapshot(writeLines(lines))
})

test_that("names find them", {
  expect_identical(read_estimator("SMOOTH"), est_smooth())
  expect_identical(read_estimator("stack"), est_stack())
  expect_identical(kme(x, rbf, "smooth", h = 0.3, c = 1)$estimator,
                   est_smooth(h = 0.3, c = 1))
})

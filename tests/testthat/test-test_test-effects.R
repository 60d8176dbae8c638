# Sizes of effects, how many permutations there are, units of columns.

x <- random_points(9, 2, 1)
y <- random_points(7, 2, 2) + 0.7
pooled <- rbind(x, y)
rbf <- kernel_rbf(1.3)
K <- gram_R(rbf, pooled)

# sum_g m_g |mu_g - mu|^2 / sum_i |phi_i - mu|^2
between_R <- function(K, group) {
  n <- nrow(K)
  center <- center_R(K)
  z <- outer(group, unique(group), "==") + 0
  sum(diag(crossprod(z, center %*% z)) / colSums(z)) / sum(diag(center))
}

test_that("the share is R^2 of PERMANOVA on the distances of the kernel", {
  skip_if_not_installed("generics")
  # 1 - sum_g sum_(i<j in g) d_ij^2/n_g / (sum_(i<j) d_ij^2/N), Anderson (2001),
  # which vegan::adonis2() gives.
  permanova_R <- function(d2, group) {
    within <- vapply(split(seq_along(group), group), \(g) {
      sum(d2[g, g]) / length(g)
    }, 1)
    1 - sum(within) / (sum(d2) / length(group))
  }
  flowers <- as.matrix(iris[1:4])
  distance <- as.matrix(dist(flowers))
  by_species <- \(...) {
    test <- mmd_test(. ~ Species, iris, ..., B = 19)
    share <- test$estimate[["r.squared"]]
    expect_identical(generics::tidy(test)$r.squared, share)
    expect_identical(generics::glance(test)$r.squared, share)
    share
  }
  for (theta in c(0.5, 1, 2) * 2.359787) {
    d2 <- 2 - 2 * exp(-distance^2 / (2 * theta^2))
    expect_near(by_species(kernel = kernel_rbf(theta)),
                permanova_R(d2, iris$Species), 1e-10)
  }
  # The figures of the help, of adonis2() too.
  shares <- vapply(c(0.5, 1, 2) * 2.359787, \(theta) {
    by_species(kernel = kernel_rbf(theta))
  }, 1)
  expect_near(shares, c(0.5754715, 0.7752795, 0.8448304), 1e-6)
  expect_near(by_species(kernel = kernel_linear()), 0.8689444, 1e-7)
  expect_near(mmd_test(dist(flowers), iris$Species, B = 19)$estimate[[1]],
              permanova_R(distance, iris$Species), 1e-10)
})

test_that("the share between groups is that of the kernel means", {
  two <- rep(1:2, c(9, 7))
  share <- \(...) mmd_set(..., B = 19)$estimate[["r.squared"]]
  want <- between_R(K, two)
  expect_near(share(x, y, rbf), want, 1e-12)
  for (estimator in list("skmse", est_fkmse(0.1), \(s) rep(0.5 / s$n, s$n))) {
    expect_near(share(x, y, rbf, estimator), want, 1e-12)
  }
  expect_near(share(x, y, rbf, statistic = "unbiased"), want, 1e-12)
  expect_near(share(x, y, rbf, bins = 3), want, 1e-12)
  expect_near(mmd_set(x, y, rbf, null = "gamma")$estimate[["r.squared"]],
              want, 1e-12)
  expect_equal(share(x, y, rbf, est_mkme(0.2)),
               between_R(gram_R(kernel_rbf(sqrt(1.3^2 + 0.4)), pooled), two),
               tolerance = 1e-12)
  three <- rep(1:3, c(5, 5, 6))
  for (estimator in list("kme", "skmse", est_fkmse(0.1))) {
    expect_near(share(pooled ~ three, kernel = rbf, estimator = estimator),
                between_R(K, three), 1e-12)
  }
  many <- lapply(c(0.5, 2), \(t) gram_R(kernel_rbf(t), pooled))
  expect_near(share(x, y, bandwidths = c(0.5, 2)),
              between_R(many[[1]] + many[[2]], two), 1e-12)
  # By a linear kernel it is R^2 of an analysis of variance.
  far <- 1e3 + pooled[, 1]
  fit <- stats::lm(far ~ factor(three))
  expect_near(share(far ~ three, kernel = kernel_linear()),
              summary(fit)$r.squared, 1e-9)
  # Its mean over all permutations is (groups - 1)/(N - 1).
  few <- mmd_set(pooled[1:7, ] ~ rep(1:2, c(3, 4)), kernel = rbf,
                 permutations = "all")
  expect_equal(mean(few$replicates) * 3 * 4 / 7 /
                 sum(diag(center_R(K[1:7, 1:7]))), 1 / 6, tolerance = 1e-12)
  expect_warning(none <- share(matrix(1, 4, 2), matrix(1, 3, 2)), "nothing")
  expect_identical(none, 0)
  # 4e-15 seen
  expect_lt(share(rep(0:1, c(5, 1)), c(1, 0, 0, 0, 0, 0), rbf), 1e-12)
  expect_equal(share(c(0, 0, 0), c(1, 1, 1), kernel_rbf(1e-2)), 1)
})

test_that("HSIC as a share is in [0, 1], 1 of a variable with itself", {
  share <- \(...) hsic_set(..., B = 19)$estimate[["normalized HSIC"]]
  k <- gram_R(rbf, pooled)
  l <- gram_R(rbf, pooled[, 2, drop = FALSE]^2)
  want <- hsic_R(k, l) / sqrt(hsic_R(k, k) * hsic_R(l, l))
  expect_near(share(pooled, pooled[, 2]^2, kernel = rbf), want, 1e-12)
  for (estimator in list("skmse", est_fkmse(0.1))) {
    expect_equal(share(pooled, pooled[, 2]^2, kernel = rbf,
                       estimator = estimator), want, tolerance = 1e-12)
  }
  expect_near(share(pooled, pooled, statistic = "unbiased"), 1, 1e-12)
  expect_equal(hsic_set(pooled, pooled[, 2]^2, kernel = rbf, null = "gamma")$
                 estimate[[1]], want, tolerance = 1e-12)
  expect_identical(suppressWarnings(share(pooled, rep(1, 16))), 0)
  # By low ranks: the factors leave 1e-13 of the trace.
  u <- random_points(200, 1, 3)
  v <- random_points(200, 1, 4) + u
  wide <- hsic_test(u, v, kernel = kernel_rbf(2), B = 19)
  expect_length(wide$ranks, 2)
  k <- gram_R(kernel_rbf(2), u)
  l <- gram_R(kernel_rbf(2), v)
  expect_near(wide$estimate[[1]],
              hsic_R(k, l) / sqrt(hsic_R(k, k) * hsic_R(l, l)), 1e-9)
  many <- \(x) gram_R(kernel_rbf(0.5), x) + gram_R(kernel_rbf(2), x)
  k <- many(pooled)
  l <- many(pooled[, 1, drop = FALSE])
  expect_near(share(pooled, pooled[, 1], bandwidths = c(0.5, 2)),
              hsic_R(k, l) / sqrt(hsic_R(k, k) * hsic_R(l, l)), 1e-12)
  expect_null(hsic_test(list(x, x, x), B = 19)$estimate)
})

test_that("the summary has the Monte-Carlo error of the p-value", {
  set.seed(6)
  test <- mmd_test(x, y, rbf, filter = "none", B = 99)
  p <- test$p.value
  line <- monte_carlo_line(test)
  expect_match(line, format(sqrt(p * (1 - p) / 100), digits = 2), fixed = TRUE)
  expect_output(print(summary(test)), "Monte-Carlo error of the p-value: 0.0")
  expect_null(monte_carlo_line(mmd_set(x, y, null = "gamma")))
  few <- mmd_set(x[1:4, ], y[1:3, ], permutations = "all")
  expect_null(monte_carlo_line(few))
})

test_that("scaled columns are equivariant, in both tests", {
  orders <- {
    set.seed(8)
    draw_columns(16, 40)
  }
  group <- rep(1:2, c(9, 7))
  run <- \(x, ...) mmd_test(x ~ group,
                            control = test_control(permutations = orders), ...)
  same <- c("statistic", "p.value", "replicates")
  units <- pooled %*% diag(c(1e4, 1e-3)) + 7
  expect_near(run(units, scale = TRUE)[same],
              run(pooled, scale = TRUE)[same], 1e-10)
  affine <- pooled %*% matrix(c(2, 1, -30, 40), 2) - 5
  for (arguments in list(list(), list(bandwidths = "fuse"),
                         list(estimator = "mkme"), list(estimator = "skmse"),
                         list(kernel = kernel_energy()))) {
    tests <- lapply(list(affine, pooled), \(x) {
      do.call(run, c(list(x, scale = "whiten"), arguments))[same]
    })
    # The search for the noise stops at 1e-4 of it.
    expect_near(tests[[1]], tests[[2]], 1e-6)
  }
  # The columns scaled by hand.
  expect_near(run(units, scale = TRUE)$replicates,
              run(scale(pooled))$replicates, 1e-10)
  expect_warning(run(units), "scale = TRUE", class = "kernmean_warning")
  expect_no_warning(run(units, scale = FALSE))
  both <- \(x, ...) hsic_set(x, pooled[, 1]^2, permutations = orders, ...)
  expect_near(both(units, scale = TRUE)[same],
              both(pooled, scale = TRUE)[same], 1e-10)
  expect_near(both(affine, scale = "whiten", bandwidths = "fuse")[same],
              both(pooled, scale = "whiten", bandwidths = "fuse")[same], 1e-8)
})

test_that("the share between groups survives a linear kernel far from 0", {
  set.seed(4)
  x <- rnorm(30, 1e7)
  g <- rep(1:2, 15)
  plain <- summary(stats::lm(x ~ g))$r.squared
  for (estimator in c("kme", "skmse", "fkmse")) {
    test <- mmd_test(x ~ g, kernel = kernel_linear(), estimator = estimator,
                     B = 19)
    expect_equal(test$estimate[["r.squared"]], plain, tolerance = 1e-6,
                 label = estimator)
  }
})

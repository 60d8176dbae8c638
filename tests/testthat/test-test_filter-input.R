# What filtered tests refuse, and what update() drops.

x <- random_points(9, 2, 1)
y <- random_points(6, 2, 2)
g <- rep(1:2, c(9, 6))
# Distances are not definite.
far <- kernel_function(\(x, y) gram_R(kernel_energy(), x, y))

test_that("what is not defined is refused with its reason", {
  factors <- test_filter("none", factors = 1:2)
  lines <- refusals(expression(
    mmd_test(x, y, filter = "foo"), test_filter(ratio = c(1, -1)),
    test_filter(order = 3), test_filter("none", ratio = 0.1),
    test_filter("none", factors = 0),
    mmd_test(x, y, kernel_linear(), filter = factors),
    mmd_test(x, y, kernel_energy(), filter = TRUE),
    mmd_set(x, y, null = "spectrum", filter = TRUE),
    mmd_test(x, y, estimator = "skmse", filter = TRUE),
    mmd_test(x, y, estimator = "mkme", filter = factors),
    mmd_test(x, y, bandwidths = "fuse", filter = TRUE),
    mmd_test(x, y, far, filter = TRUE)
  ))
  expect_snapshot(writeLines(lines))
})

test_that("what is not defined is refused by hsic_test() too", {
  lines <- refusals(expression(
    hsic_test(x, x, filter = "foo"), hsic_set(x, x, filter = TRUE, ratio = 0),
    hsic_set(x, x, filter = TRUE, order = 2), hsic_set(x, x, ratio = 1),
    hsic_set(x, x, order = 1), hsic_set(x, x, factors = -1),
    hsic_set(as_gram(rbf_gram(15)), factor(g), factors = 1:2),
    hsic_test(x, x, kernel_energy(), filter = TRUE),
    hsic_set(x, x, null = "gamma", filter = TRUE),
    hsic_test(x, x, estimator = "skmse", filter = TRUE),
    hsic_test(x, x, bandwidths = "fuse", filter = TRUE),
    hsic_test(x, x, far, filter = TRUE),
    hsic_set(x[1:3, ], x[1:3, ], filter = TRUE, statistic = "unbiased"),
    hsic_set(list(x, x, x), filter = TRUE, statistic = "unbiased")
  ))
  expect_snapshot(writeLines(lines))
})

test_that("update() drops what a change leaves without sense", {
  test <- mmd_test(x, y, filter = test_filter(ratio = 0.1), B = 19)
  expect_null(update(test, filter = "none")$statistics)
  test <- hsic_set(x, x[9:1, ], filter = TRUE, ratio = 0.1, B = 19)
  expect_null(update(test, filter = "none")$statistics)
})

# --- Many points --------------------------------------------------------------

test_that("features give what the matrix gives", {
  skip_on_cran()
  both <- \(run) {
    set.seed(3)
    exact <- run()
    set.seed(3)
    list(exact = exact, features = with_most_points(20, run()))
  }
  a <- random_points(60, 2, 3)
  b <- 1.3 * random_points(40, 2, 4)
  for (filter in c("tikhonov", "cutoff")) {
    # Of rank 5: nothing is left over.
    two <- both(\() mmd_test(a, b, kernel_poly(2), filter = filter, B = 49))
    expect_near(two$features$statistics, two$exact$statistics, 1e-8)
    expect_equal(two$features$p.value, two$exact$p.value)
    pair <- both(\() hsic_test(a[1:40, ], b, kernel = kernel_poly(2),
                               filter = filter, B = 49))
    expect_near(pair$features$statistics, pair$exact$statistics, 1e-8)
  }
  # At most a tenth of the smallest tau is left over, a share 1/10 of l + tau in
  # the gain of a direction.
  two <- both(\() mmd_test(a, b, kernel_rbf(1.2), filter = TRUE, B = 49,
                           control = test_control(statistic = "biased")))
  ratio <- two$features$statistics$value / two$exact$statistics$value
  expect_true(all(abs(ratio - 1) < 0.1))
  expect_near(ratio[1], 1, 1e-10)
})

test_that("features do not see the order of the rows, nor labels by it", {
  x <- rbind(random_points(300, 2, 3), random_points(200, 2, 5) * 1.2)
  # Rows come sorted by group: other labels are another order.
  spectrum <- \(i, gram = FALSE) {
    sample <- points_sample(x[i, ], kernel_rbf(1.5))
    if (gram) sample <- gram_sample(as_gram(sample_matrix(sample)))
    with_most_points(20, tcross(filter_root(filter_spectrum(sample, 0.3), 0.3,
                                            "tikhonov")))
  }
  for (gram in c(FALSE, TRUE)) {
    want <- spectrum(1:500, gram)
    i <- sample(500)
    expect_near(spectrum(i, gram), want[i, i], 1e-10)
  }
})

test_that("the largest eigenvalue does not depend on the unit", {
  k <- tcrossprod(random_points(450, 20, 9))
  want <- eigen(k, TRUE, TRUE)$values[1]
  for (unit in c(1, 2^-600, 2^600)) {
    expect_near(largest_value(k * unit) / unit, want, 1e-12)
  }
})

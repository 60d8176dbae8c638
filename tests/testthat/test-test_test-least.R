# Which p-values can be had: labelings enumerated, symmetry, ties, few draws,
# points that a model was fitted to.

quiet <- \(x) suppressWarnings(x)

test_that("labelings are enumerated where there are no more than B", {
  set.seed(31)
  x <- rnorm(4)
  y <- rnorm(3)
  all <- mmd_test(x, y, control = test_control(permutations = "all"))
  for (B in c(35, 999)) {
    test <- mmd_test(x, y, B = B)
    expect_identical(test$replicates, all$replicates)
    expect_identical(test$p.value, all$p.value)
    expect_match(test$method, "all permutations")
    expect_no_match(paste(capture.output(summary(test)), collapse = " "),
                    "Monte-Carlo")
  }
  expect_length(mmd_test(x, y, B = 34)$replicates, 34)
  expect_length(hsic_test(x, 1:4, B = 24)$replicates |> quiet(), 24)
  # Bins, and weights that see the order, are drawn.
  first <- est_function(\(s) c(1, numeric(s$n - 1)))
  expect_length(mmd_test(x, y, estimator = first)$replicates, 999)
  expect_length(mmd_test(1:6, 7:12, B = 999, control = test_control(bins = 3))
                $replicates, 999)
})

test_that("the smallest p-value counts symmetry and ties", {
  least <- \(...) {
    warned <- expect_warning(test <- list(...)[[1L]],
                             class = "kernmean_warning_few")
    c(test$p.value, as.numeric(sub(".*at least ([0-9.]+).*", "\\1",
                                   conditionMessage(warned))))
  }
  expect_equal(least(mmd_set(1:2, 11:12)), c(1 / 3, 0.33))
  expect_equal(least(mmd_set(1:3, 11:13)), c(0.1, 0.1))
  expect_equal(least(mmd_test(1:3, 11:13, bandwidths = "fuse")), c(0.1, 0.1))
  blocks <- rep(1:4, 2)
  expect_equal(least(mmd_test(
    1:4 * 10, 1:4 * 10 + 1, blocks = blocks,
    control = test_control(statistic = "biased")
  )),
               c(0.125, 0.12))
  # 3 and 4 points have no mirror image. Of five equal ones any four.
  expect_silent(mmd_set(1:3, 11:14))
  expect_equal(least(mmd_set(c(1, 1, 1, 1), c(1, 5, 5, 5))), c(1, 1) / 7,
               tolerance = 0.03)
  expect_equal(least(hsic_test(1:4, 1:4)), c(2 / 24, 0.083))
  expect_silent(mmd_set(1:4, 11:14))
  expect_silent(mmd_set(1:9, 5:13, B = 19))
  expect_equal(least(mmd_set(1:9, 5:13, B = 10))[2], 0.091)
  expect_warning(mmd_gof(1:20 / 7, "normal", B = 9), "at least 0.1 with B = 9")
})

test_that("models are not for the points that they were fitted to", {
  set.seed(32)
  gof <- \(x, fit) mmd_gof(x, fit, B = 19)
  points <- as.matrix(iris[1:100, 1:4])
  fit <- kme_density(points, m = 2)
  expect_warning(gof(points, fit), "fitted to 100 of the 100 points")
  expect_warning(gof(points[50:11, ], fit), "fitted to 40 of the 40",
                 class = "kernmean_warning_refit")
  expect_warning(gof(as.matrix(iris[, 1:4]), fit), "of the 150 points")
  expect_silent(gof(as.matrix(iris[101:150, 1:4]), fit))
  # Minutes, of which other points have as many in common.
  half <- sample(272, 136)
  fit <- kme_density(faithful$waiting[half], m = 2)
  expect_silent(gof(faithful$waiting[-half], fit))
  expect_warning(gof(faithful$waiting[half], fit), "136 of the 136")
})

test_that("only labelings that can be listed are, and of two variables", {
  set.seed(1)
  three <- hsic_test(list(rnorm(6), rnorm(6), rnorm(6)))
  expect_identical(three$parameter[["B"]], 999)
  # 184,756 of them.
  few <- mmd_test(rnorm(10), rnorm(10), B = 190000, filter = "none",
                  kernel = kernel_rbf(1))
  expect_identical(few$parameter[["B"]], 190000)
})

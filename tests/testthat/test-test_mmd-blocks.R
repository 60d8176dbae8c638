# Points less the means of their blocks, and lines, as further views in tests
# with blocks.

set.seed(61)
pair <- rep(1:8, 2)
x <- matrix(rnorm(8, sd = 2) + rnorm(32), 16) + rep(c(0, 1), each = 8)
two <- rep(c("a", "b"), each = 8)
every <- test_control(permutations = "all", statistic = "biased")
centered <- "MMD^2 of points less block means"
run <- \(x, ..., groups = two, blocks = pair) {
  mmd_test(x ~ groups, ..., blocks = blocks, control = every)
}

middle_R <- \(x) sqrt(median(dist(x)^2))

# Each point less the mean of its block.
within_R <- \(x, blocks) x - apply(as.matrix(x), 2, ave, blocks)

test_that("the test is the largest z of the points, those centered, lines", {
  # Blocks of several sizes, three groups.
  three <- rep(c("u", "v", "w"), c(5, 6, 5))
  some <- c(1, 2, 3, 4, 5, 1, 2, 2, 6, 6, 3, 1, 4, 6, 5, 7)
  for (groups in list(two, three)) {
    blocks <- if (identical(groups, two)) pair else some
    test <- run(x, groups = groups, blocks = blocks)
    r <- within_R(x, blocks)
    theta <- c(middle_R(x), middle_R(r))
    expect_near(test$statistics$bandwidth[1:2], theta, 1e-12)
    alone <- Map(\(x, theta) {
      run(x, kernel = kernel_rbf(theta), filter = "none", groups = groups,
          blocks = blocks)
    }, list(x, r), theta)
    alone[[3]] <- run(x, kernel = kernel_linear(), groups = groups,
                      blocks = blocks)
    z <- sapply(alone, \(one) drop(scale(one$replicates)))
    expect_near(test$replicates, pmax(z[, 1], z[, 2], z[, 3]), 1e-8)
    expect_equal(test$statistics$p.value, sapply(alone, `[[`, "p.value"))
    expect_equal(test$p.value, mean(test$replicates >= max(z[1, ]) - 1e-8))
    expect_named(test$views, c(centered, "linear MMD^2"))
  }
})

test_that("shifted blocks leave the centered statistic as it is", {
  base <- run(x)$statistics
  moved <- run(x + 50 * sin(pair))$statistics
  expect_near(moved$value[2], base$value[2], 1e-10)
  expect_false(isTRUE(all.equal(moved$value[1], base$value[1])))
  # A bandwidth of the user is as much of a median distance.
  twice <- run(x, kernel = kernel_rbf(2 * base$bandwidth[1]))$statistics
  expect_near(twice$bandwidth, 2 * base$bandwidth, 1e-12)
})

test_that("of pairs and the linear kernel it is the sign-flip t-test", {
  test <- run(x[, 1], kernel = kernel_linear())
  d <- x[9:16, 1] - x[1:8, 1]
  t <- abs(as.matrix(expand.grid(rep(list(c(1, -1)), 8))) %*% d)
  expect_equal(test$p.value, mean(t >= t[1] - 1e-12))
  expect_near(test$statistic[[1]], mean(d)^2, 1e-12)
  # Points less block means would be the same again.
  expect_null(test$statistics)
})

test_that("kernel values give what points give where they can", {
  K <- tcrossprod(x)
  test <- mmd_test(as_gram(K), two, blocks = pair, control = every)
  expect_near(test$statistics$value[2], run(x)$statistics$value[2], 1e-10)
  expect_equal(mmd_test(gram(x, kernel_rbf()), two, blocks = pair,
                        control = every)$statistics, run(x)$statistics)
  G <- within_R(t(within_R(-as.matrix(dist(x)), pair)), pair)
  square <- outer(diag(G), diag(G), `+`) - 2 * G
  theta <- sqrt(median(square[lower.tri(square)]))
  of_dist <- mmd_test(dist(x), two, blocks = pair, control = every)
  expect_near(of_dist$statistics$bandwidth[2], theta, 1e-12)
  expect_near(of_dist$statistics$value[2],
              mmd_R(exp(-square / (2 * theta^2)), 1:16, 8), 1e-12)
})

test_that("clusters move within blocks, and alone they are not centered", {
  z <- x[rep(1:16, each = 2), ] + 0.1 * cos(1:64)
  cluster <- rep(1:16, each = 2)
  side <- rep(two, each = 2)
  test <- mmd_test(z ~ side, clusters = cluster, blocks = rep(pair, each = 2),
                   control = every)
  expect_length(test$replicates, 2^8)
  r <- within_R(z, rep(pair, each = 2))
  expect_near(test$statistics$value[2],
              mmd_R(gram_R(kernel_rbf(middle_R(r)), r), 1:32, 16), 1e-12)
  expect_null(mmd_test(z ~ side, clusters = cluster, B = 19)$views)
})

test_that("it is one more of the statistics of filters, and of comparisons", {
  test <- run(x, filter = test_filter(ratio = 0.1, order = 0:1))
  expect_equal(test$statistics$statistic[3], centered)
  expect_null(run(x, filter = test_filter(ratio = 0.1, order = 1))$views)
  expect_null(run(x, estimator = "mkme")$statistics)
  expect_null(update(test, filter = "none")$statistics)
  pairs <- mmd_pairwise(x ~ two, blocks = pair, control = every)
  expect_equal(pairs$table$p.value, run(x)$p.value)
})

test_that("the witness is that of the larger one", {
  skip_if_not_installed("generics")
  test <- mmd_test(extra ~ group, sleep, blocks = ID, control = every)
  r <- drop(within_R(sleep$extra, sleep$ID))
  expect_lt(test$p.value, 0.005)
  # Of lines it is one.
  expect_equal(test$statistics$maximum, c(FALSE, TRUE, FALSE))
  test$statistics$maximum <- c(FALSE, FALSE, TRUE)
  line <- -mean(sleep$extra[11:20] - sleep$extra[1:10])
  expect_near(generics::augment(test)$.witness,
              line * (sleep$extra - mean(sleep$extra)), 1e-12)
  test$statistics$maximum <- c(FALSE, TRUE, FALSE)
  k <- gram_R(kernel_rbf(middle_R(r)), matrix(r))
  expect_near(generics::augment(test)$.witness,
              rowMeans(k[, 1:10]) - rowMeans(k[, 11:20]), 1e-12)
  picture <- fit_picture.mmd_test(test, "witness")
  expect_match(picture$title, centered, fixed = TRUE)
  expect_equal(picture$xlab, "extra less block means")
  expect_near(picture$layers[[5]]$data$x, r[1:10], 1e-12)
})

test_that("values that differ only between blocks say nothing", {
  flat <- rep(c(0.1, 0.7, 1e5 + 0.3, 4 / 3), 2)
  each <- rep(1:4, 2)
  groups <- rep(1:2, each = 4)
  for (data in list(flat, as_gram(gram_R(kernel_rbf(1), matrix(flat))))) {
    expect_warning(test <- if (is.numeric(data)) {
      mmd_test(data ~ groups, blocks = each, B = 99)
    } else {
      mmd_test(data, groups, blocks = each, B = 99)
    }, "no permutation changes", class = "kernmean_warning") |>
      suppressWarnings()
    expect_equal(test$p.value, 1)
  }
})

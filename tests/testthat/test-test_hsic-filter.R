# Filtered independence tests against twins that follow the formulas, one
# permutation at a time.

n <- 14
x <- random_points(n, 2, 5)
y <- random_points(n, 1, 6) + 0.6 * abs(x[, 1])
rbf <- kernel_rbf(1.2)
K <- gram_R(rbf, x)
L <- gram_R(rbf, y)

some_draws <- function(n, B = 19, seed = 7) {
  set.seed(seed)
  draw_columns(n, B)
}
draws <- some_draws(n)
fixed <- function(K) function(theta) K

expect_twin <- function(test, gram_x, gram_y, permutations, filter,
                        type = "biased", complete = FALSE, asked = NULL,
                        tolerance = 1e-10) {
  table <- test$statistics
  if (is.null(asked)) asked <- table
  want <- hsic_values_R(gram_x, gram_y, permutations, asked, filter, type)
  expect_aggregated(test, want, complete, tolerance)
}

test_that("T is the norm of a filtered cross-covariance", {
  # Features of (1 + x'y)^2 for x and of (1 + xy)^3 for y.
  of_x <- cbind(sqrt(2) * x, x^2, sqrt(2) * x[, 1] * x[, 2])
  of_y <- cbind(sqrt(3) * y, sqrt(3) * y^2, y^3)
  for (filter in filters_R) {
    moved <- lapply(list(of_x, of_y), \(features) {
      features <- sweep(features, 2, colMeans(features))
      e <- eigen(crossprod(features) / n, TRUE)
      gain <- gain_R(e$values, 0.03 * e$values[1], filter) / e$values
      features %*% e$vectors %*% diag(sqrt(gain))
    })
    test <- hsic_set(x, y, kernel_poly(2), kernel_poly(3), filter = filter,
                      ratio = 0.03, order = 1, permutations = draws)
    expect_near(test$statistic[[1]],
                sum((crossprod(moved[[1]], moved[[2]]) / n)^2), 1e-9)
  }
})

test_that("without a ridge linear kernels give canonical correlations", {
  y <- cbind(y, x[, 2] + random_points(n, 1, 8))
  test <- hsic_set(x, y, kernel = kernel_linear(), filter = "tikhonov",
                    ratio = 1e-8, order = 1, permutations = draws)
  # Off by the ratio, and by rounding errors of eigenvalues over it.
  expect_near(test$statistic[[1]], sum(stats::cancor(x, y)$cor^2), 1e-6)
})

test_that("every statistic is the twin's, for all filters and both types", {
  for (filter in filters_R) {
    for (type in c("biased", "unbiased")) {
      test <- hsic_set(x, y, kernel = rbf, filter = filter,
                        ratio = c(0.3, 0.01), statistic = type,
                        permutations = draws)
      expect_equal(test$statistics$order, c(0, 1, 1))
      expect_equal(test$statistics$ratio, c(NA, 0.3, 0.01))
      expect_twin(test, fixed(K), fixed(L), draws, filter, type)
    }
  }
})

test_that("defaults are Tikhonov, four ratios, orders 0 and 1, biased", {
  for (filter in list(TRUE, "tikhonov")) {
    test <- hsic_set(x, y, filter = filter, permutations = draws)
    used <- used_grams(test, x, y)
    expect_equal(test$statistics$order, c(0, 1, 1, 1, 1))
    expect_equal(test$statistics$ratio, c(NA, 1, 0.1, 0.01, 0.001))
    expect_identical(test$type, "biased")
    expect_twin(test, fixed(used[[1]]), fixed(used[[2]]), draws, "tikhonov")
  }
})

test_that("order 0 is the plain test, and so is no filter", {
  for (type in c("biased", "unbiased")) {
    run <- \(...) {
      set.seed(11)
      hsic_set(x, y, kernel = rbf, statistic = type, B = 60, ...)
    }
    plain <- run()
    expect_null(plain$statistics)
    expect_identical(run(filter = "none")$p.value, plain$p.value)
    zero <- run(filter = TRUE)$statistics[1, ]
    expect_identical(zero$p.value, plain$p.value)
    expect_near(zero$value, plain$statistic[[1]], 1e-12)
  }
})

test_that("each factor of x goes with each of y", {
  factors <- c(0.5, 1, 3)
  pairs <- expand.grid(x = factors, y = factors)
  by_factor <- \(z, thetas) \(pair) gram_R(kernel_rbf(thetas[pair]), z)
  for (filter in c("none", "showalter")) {
    asked <- asked_R(c(1, 0.02), if (filter == "none") 0 else 0:1, 1:9)
    test <- hsic_set(x, y, kernel_rbf(1.2), kernel_rbf(0.8), filter = filter,
                      ratio = if (filter != "none") c(1, 0.02),
                      factors = factors, permutations = draws)
    expect_equal(test$statistics$order, asked$order)
    expect_equal(test$statistics$factor_x, pairs$x[asked$bandwidth])
    expect_twin(test, by_factor(x, 1.2 * pairs$x), by_factor(y, 0.8 * pairs$y),
                draws, filter, asked = asked)
  }
  expect_match(test$statistics$statistic[27],
               "order 1, ratio 0.02, bandwidths x 3 and 3", fixed = TRUE)
  # Only what has a bandwidth, and three variables together.
  group <- factor(rep(1:2, 7))
  test <- hsic_set(group, y, factors = factors, permutations = draws)
  expect_equal(test$statistics$factor_x, c(1, 1, 1))
  expect_equal(test$statistics$factor_y, factors)
  test <- hsic_set(list(x, y, y), factors = factors, B = 19)
  expect_equal(test$statistics$factor, factors)
})

test_that("kernels of every kind, factors and matrices of kernel values", {
  run <- \(x, y, ...) hsic_set(x, y, ..., filter = TRUE,
                                ratio = c(0.2, 0.01), permutations = draws)
  for (kernel in list(kernel_laplace(1.5), kernel_matern(3 / 2, 2),
                      kernel_linear(), kernel_poly(2))) {
    expect_twin(run(x, y, kernel, rbf), fixed(gram_R(kernel, x)), fixed(L),
                draws, "tikhonov", tolerance = 1e-9)
  }
  group <- factor(rep(c("a", "b", "c"), c(6, 5, 3)))
  expect_twin(run(x, group, rbf), fixed(K), fixed(delta_R(group)), draws,
              "tikhonov")
  expect_twin(run(gram(x, rbf), gram(y, rbf)), fixed(K), fixed(L), draws,
              "tikhonov")
  # The kernel of a marginalized estimator.
  theta2 <- 1.2^2 + 2 * 0.2
  k <- 1.2^2 / theta2 * gram_R(kernel_rbf(sqrt(theta2)), x)
  l <- 1.2 / sqrt(theta2) * gram_R(kernel_rbf(sqrt(theta2)), y)
  marginal <- run(x, y, rbf, rbf, est_mmkme(0.2))
  expect_twin(marginal, fixed(k), fixed(l), draws, "tikhonov")
})

test_that("all permutations: the observed one is not counted twice", {
  few <- 1:5
  all <- all_labelings(rep(1L, 5))
  for (type in c("biased", "unbiased")) {
    test <- hsic_set(x[few, ], y[few], kernel = rbf, filter = TRUE,
                      ratio = c(1, 0.01), statistic = type,
                      permutations = "all")
    want <- hsic_values_R(fixed(K[few, few]), fixed(L[few, few]), all,
                          test$statistics, "tikhonov", type)
    found <- aggregated_R(want$values, want$scale, complete = TRUE)
    expect_length(test$replicates, 120)
    expect_near(test$statistics$z, found$z, 1e-8)
    expect_equal(test$statistics$p.value, found$each)
    expect_equal(test$p.value, found$p)
    expect_near(sort(test$replicates), sort(found$top[-1]), 1e-8)
  }
  # A matrix that holds the identity.
  given <- cbind(draws[, 1:4], seq_len(n), draws[, 5:9])
  test <- hsic_set(x, y, kernel = rbf, filter = TRUE, permutations = given)
  expect_twin(test, fixed(K), fixed(L), given, "tikhonov", complete = TRUE)
})

test_that("clusters and blocks", {
  codes <- c(1, 2, 1, 3, 4, 2, 3, 4, 5, 5, 5, 6, 6, 6)
  moves <- all_labelings(rep(1L, 4))
  moves <- cbind(rbind(moves, 5L, 6L), rbind(moves, 6L, 5L))
  points <- apply(moves, 2, \(move) {
    p <- integer(n)
    for (cluster in 1:6) p[codes == cluster] <- which(codes == move[cluster])
    p
  })
  compare <- \(test, points, L) {
    want <- hsic_values_R(fixed(K), fixed(L), points, test$statistics,
                          "tikhonov", test$type)
    found <- aggregated_R(want$values, want$scale, complete = TRUE)
    expect_length(test$replicates, ncol(points))
    expect_equal(test$statistics$p.value, found$each)
    expect_equal(test$p.value, found$p)
    expect_near(sort(test$replicates), sort(found$top[-1]), 1e-8)
  }
  run <- \(y, ...) hsic_set(x, y, kernel = rbf, filter = TRUE,
                             ratio = c(0.1, 0.01), permutations = "all", ...)
  for (type in c("biased", "unbiased")) {
    compare(run(y, clusters = codes, statistic = type), points, L)
  }
  # Values that are constant in clusters keep to clusters of a size too: those
  # of others change their spectrum.
  whole <- y[codes]
  compare(run(whole, clusters = codes), points,
          gram_R(rbf, as.matrix(whole)))
  # Every order within the first 3 points with every one within the other 4.
  few <- 1:7
  orders <- list(all_labelings(rep(1L, 3)), 3L + all_labelings(rep(1L, 4)))
  within <- rbind(orders[[1]][, rep(1:6, each = 24)],
                  orders[[2]][, rep(1:24, 6)])
  test <- hsic_set(x[few, ], y[few], kernel = rbf, filter = TRUE, ratio = 0.1,
                   blocks = rep(1:2, 3:4), permutations = "all")
  given <- \(K) fixed(given_R(K[few, few], rep(1:2, 3:4)))
  want <- hsic_values_R(given(K), given(L), within, test$statistics[1:2, ],
                        "tikhonov")
  found <- aggregated_R(want$values, want$scale, complete = TRUE)
  expect_length(test$replicates, 144)
  expect_equal(test$statistics$p.value[1:2], found$each)
})

test_that("limits: the plain statistic, and a projection", {
  plain <- hsic_set(x, y, kernel = rbf, permutations = draws)
  tau <- 1e8^2 * prod(vapply(list(K, L), \(k) {
    eigen(center_R(k), TRUE)$values[1] / n
  }, 1))
  test <- hsic_set(x, y, kernel = rbf, filter = "tikhonov", ratio = 1e8,
                    order = 1, permutations = draws)
  # What is left of 1 - tau / (l + tau) is right to some 1e8 roundings.
  expect_near(test$statistic[[1]] * tau, plain$statistic[[1]], 1e-6)
  expect_identical(test$p.value, plain$p.value)
  project <- \(k, rank) {
    n * tcrossprod(eigen(center_R(k), TRUE)$vectors[, seq_len(rank)])
  }
  k <- project(gram_R(kernel_poly(2), x), 5)
  l <- project(gram_R(kernel_poly(2), y), 2)
  want <- over_columns(cbind(seq_len(n), draws), \(p) hsic_R(k, l, p))
  for (filter in filters_R) {
    test <- hsic_set(x, y, kernel = kernel_poly(2), filter = filter,
                      ratio = 1e-12, order = 1, permutations = draws)
    # Rounding errors of eigenvalues are no features.
    expect_near(test$statistic[[1]], want[1], 1e-8)
    expect_near(test$replicates, want[-1], 1e-8)
  }
})

test_that("constant statistics, points that are alike, duplicates, few", {
  cut <- hsic_set(x, y, kernel_rbf(0.5), kernel_rbf(0.2), filter = "cutoff",
                   ratio = 1e-12, permutations = draws)
  # Both project on everything: n (1 - 1/n) / n^2 n^2 whatever the order.
  expect_near(cut$statistics$value[2], n - 1, 1e-8)
  expect_equal(cut$statistics$z[2], 0)
  expect_equal(cut$statistics$p.value[2], 1)
  for (filter in filters_R) {
    test <- hsic_set(x, rep(2, n), rbf, rbf, filter = filter,
                      permutations = draws)
    expect_identical(test$p.value, 1)
    expect_true(all(test$statistics$value == 0))
    expect_true(all(test$statistics$z == 0))
  }
})

# dHSIC of 1 + M / mean(diag(M)), rows and columns permuted.
joint_R <- function(kernels, ratio, filter, orders) {
  matrices <- lapply(kernels, \(K) {
    M <- filtered_R(K, ratio, filter)
    1 + M / mean(diag(M))
  })
  dhsic_R(Map(\(M, p) M[p, p], matrices, orders))
}

test_that("three variables: dHSIC of filtered matrices", {
  z <- random_points(n, 1, 9) + 0.5 * x[, 1] * y[, 1]
  k <- list(K, L, gram_R(rbf, z))
  run <- \() {
    set.seed(3)
    few_draws(hsic_set(list(x, y, z), kernel = rbf, filter = "iterated",
              ratio = c(0.1, 0.01), B = 15))
  }
  test <- run()
  set.seed(3)
  drawn <- draw_columns(n, 30)
  same <- rep(list(seq_len(n)), 3)
  orders <- c(list(same), lapply(1:15, \(b) {
    list(seq_len(n), drawn[, 2 * b - 1], drawn[, 2 * b])
  }))
  values <- t(vapply(orders, \(o) c(
    dhsic_R(Map(\(K, p) K[p, p], k, o)),
    joint_R(k, 0.1, "iterated", o), joint_R(k, 0.01, "iterated", o)
  ), numeric(3)))
  found <- aggregated_R(t(values), c(1, 1, 1))
  expect_near(test$statistics$value, values[1, ], 1e-10)
  expect_equal(test$statistics$p.value, found$each)
  expect_near(test$statistics$z, found$z, 1e-10)
  expect_equal(test$p.value, found$p)
  expect_near(test$replicates, found$top[-1], 1e-10)
})

test_that("by default points have the joint test of three statistics", {
  set.seed(4)
  u <- runif(60, -1, 1)
  v <- sin(6 * pi * u) + rnorm(60, sd = 0.3)
  seeded <- \(...) {
    set.seed(5)
    hsic_test(u, v, ..., B = 99)
  }
  test <- seeded()
  fields <- c("statistics", "replicates", "p.value")
  same <- test_filter(ratio = 0.1, order = c(0, 1, "fused"))
  expect_identical(test[fields], seeded(filter = same)[fields])
  all <- seeded(filter = TRUE)$statistics
  expect_identical(nrow(all), 6L)
  expect_identical(test$statistics$value, all$value[c(1, 3, 6)])
  # The parts, from the same permutations.
  parts <- list(seeded(filter = "none"),
                seeded(filter = test_filter(ratio = 0.1, order = 1)),
                seeded(bandwidths = "fuse"))
  expect_near(test$statistics$value, unname(c(
    parts[[1]]$statistic, parts[[2]]$statistics$value, parts[[3]]$statistic
  )), 1e-12)
  want <- rbind(unlist(parts[[1]][c("statistic", "replicates")]),
                unlist(parts[[3]][c("statistic", "replicates")]))
  both <- seeded(filter = test_filter(order = c("0", "fused")))
  found <- aggregated_R(unname(want), c(1, 1))
  expect_near(both$statistics$z, found$z, 1e-10)
  expect_equal(both$p.value, found$p)
  expect_near(both$replicates, found$top[-1], 1e-10)
  expect_match(test$statistics$statistic[test$statistics$maximum], "fused")
  # One alone is the fused test.
  alone <- seeded(filter = test_filter(order = "fused"))
  expect_identical(alone$p.value, parts[[3]]$p.value)
  expect_identical(nrow(alone$statistics), 1L)
  expect_output(print(test), "one p-value for 3 statistics, of which the larg")
})

test_that("what else is asked for has the plain test, and its draws", {
  set.seed(6)
  u <- rnorm(30)
  v <- rnorm(30)
  rows <- \(...) NROW(hsic_test(u, ..., B = 19)$statistics)
  expect_identical(rows(v), 3L)
  expect_identical(rows(factor(v > 0)), 3L)
  expect_identical(rows(v, blocks = rep(1:3, 10)), 5L)
  expect_identical(vapply(list(
    rows(v, filter = "none"), rows(v, kernel = kernel_rbf(1)), rows(dist(v)),
    rows(v, estimator = "mkme"), rows(v, clusters = rep(1:10, 3)),
    rows(v, bandwidths = "fuse"), rows(gram(v)),
    rows(v, control = test_control(null = "gamma")),
    rows(v, control = test_control(statistic = "unbiased"))
  ), identity, 1L), rep(0L, 9))
  expect_identical(NROW(hsic_test(u[1:3], v[1:3], B = 19)$statistics), 0L) |>
    suppressWarnings()
  expect_identical(hsic_test(u, v)$parameter[["B"]], 399)
  expect_identical(hsic_test(u, v, filter = "none")$parameter[["B"]], 999)
  expect_identical(hsic_test(u, v, filter = "cutoff")$parameter[["B"]], 399)
  large <- seq_len(1001)
  expect_identical(NROW(hsic_test(large, rev(large), B = 19)$statistics), 0L)
  # What cannot be fused is left out, or said.
  expect_identical(rows(gram(v), filter = TRUE), 6L)
  expect_identical(NROW(hsic_test(list(u, v, u), filter = TRUE,
                                  B = 19)$statistics), 5L)
  expect_error(rows(factor(v > 0), kernel = kernel_laplace(), filter =
                      test_filter(order = "fused")),
               "'order' must not be \"fused\" alone",
               class = "kernmean_error_input")
})

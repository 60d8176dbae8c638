# Filtered two-sample tests against twins that follow the formulas, one labeling
# at a time; permutations are given, so that nothing depends on a generator.

x <- random_points(15, 2, 3)
x[10:15, 1] <- 2 * x[10:15, 1]
rbf <- kernel_rbf(1.2)
K <- gram_R(rbf, x)
two <- rep(c("a", "b"), c(9, 6))
three <- rep(c("a", "b", "c"), c(6, 5, 4))

some_draws <- function(n, B = 19, seed = 7) {
  set.seed(seed)
  draw_columns(n, B)
}
draws <- some_draws(15)

# The table of a test, with a row for each statistic; its values, p-values and
# maxima must be the twin's over these labels (a column each, observed first).
expect_twin <- function(test, gram, labels, filter, type, complete = FALSE,
                        tolerance = 1e-10) {
  table <- test$statistics
  want <- mmd_values_R(gram, labels, table, filter, type)
  expect_aggregated(test, want, complete, tolerance)
}

rows_of <- function(table) {
  table <- table[c("order", "ratio", "bandwidth")]
  table <- table[do.call(order, table), ]
  rownames(table) <- NULL
  as.list(table)
}

fixed <- function(K) function(theta) K
by_theta <- function(theta) gram_R(kernel_rbf(theta), x)

test_that("T1 and T2 are distances of filtered means and covariances", {
  # Features of (1 + x'y)^2.
  one <- x[, 1]
  other <- x[, 2]
  features <- cbind(1, sqrt(2) * x, x^2, sqrt(2) * one * other)
  features <- sweep(features, 2, colMeans(features))
  e <- eigen(crossprod(features) / 15, TRUE)
  l <- pmax(e$values, 0)
  i <- which(two == "a")
  # g(l) itself, with the division.
  g <- list(
    tikhonov = \(l, tau) 1 / (l + tau),
    iterated = \(l, tau) (1 / (l + tau)) * (1 + tau / (l + tau)),
    showalter = \(l, tau) (1 - exp(-l / tau)) / l,
    cutoff = \(l, tau) (l >= tau) / l
  )
  for (filter in names(g)) {
    used <- l > 1e-10
    root <- sqrt(g[[filter]](l[used], 0.02 * l[1]))
    moved <- features %*% e$vectors[, used] %*% diag(root)
    means <- colMeans(moved[i, ]) - colMeans(moved[-i, ])
    spread <- crossprod(moved[i, ]) / 9 - crossprod(moved[-i, ]) / 6
    test <- mmd_set(x[i, ], x[-i, ], kernel_poly(2),
                    filter = test_filter(filter, ratio = 0.02, order = 1:2),
                    statistic = "biased", permutations = draws)
    expect_near(test$statistics$value, c(sum(means^2), sum(spread^2)), 1e-10)
  }
})

test_that("without a ridge T1 of a linear kernel is Pillai's trace, times N", {
  for (groups in list(two, three)) {
    test <- mmd_test(x ~ groups, kernel = kernel_linear(),
                     filter = test_filter(ratio = 1e-8, order = 1),
                     control = test_control(statistic = "biased",
                                            permutations = draws))
    pillai <- summary(stats::manova(x ~ groups))$stats[1, "Pillai"]
    height <- if (identical(groups, two)) 15^2 / (9 * 6) else 15
    # Off by the ratio.
    expect_equal(test$statistic[[1]], height * pillai, tolerance = 1e-6)
  }
})

test_that("every statistic is the twin's: filters, types, groups", {
  for (groups in list(two, three)) {
    labels <- labels_R(match(groups, unique(groups)), draws)
    for (filter in filters_R) {
      for (type in c("biased", "unbiased")) {
        test <- mmd_test(x ~ groups, kernel = rbf,
                         filter = test_filter(filter, ratio = c(0.3, 0.01)),
                         control = test_control(statistic = type,
                                                permutations = draws))
        expect_equal(rows_of(test$statistics), rows_of(
          asked_R(c(0.3, 0.01), bandwidth = 1.2)
        ))
        expect_twin(test, fixed(K), labels, filter, type)
      }
    }
  }
})

test_that("defaults are Tikhonov, four ratios, orders 0 to 2, unbiased", {
  for (filter in list("tikhonov", test_filter())) {
    test <- mmd_set(x[1:9, ], x[10:15, ], filter = filter,
                    permutations = draws)
    theta <- test$kernel$bandwidth
    expect_equal(rows_of(test$statistics),
                 rows_of(asked_R(bandwidth = theta)))
    expect_identical(test$type, "unbiased")
    expect_twin(test, by_theta, labels_R(rep(1:2, c(9, 6)), draws), "tikhonov",
                "unbiased")
  }
  plain <- mmd_set(x[1:9, ], x[10:15, ], permutations = draws)
  expect_identical(plain$type, "biased")
  expect_null(plain$statistics)
  none <- mmd_set(x[1:9, ], x[10:15, ], filter = "none",
                  permutations = draws)
  expect_identical(none$p.value, plain$p.value)
})

test_that("factors give all statistics anew, with a filter and without", {
  labels <- labels_R(rep(1:2, c(9, 6)), draws)
  for (filter in c("none", "showalter")) {
    test <- mmd_set(x[1:9, ], x[10:15, ], rbf, filter = test_filter(filter,
                    ratio = if (filter != "none") c(1, 0.02), factors = c(0.5,
                    1, 3)), permutations = draws)
    asked <- asked_R(c(1, 0.02), if (filter == "none") 0 else 0:2,
                     1.2 * c(0.5, 1, 3))
    expect_equal(rows_of(test$statistics), rows_of(asked))
    expect_twin(test, by_theta, labels, filter, "unbiased")
  }
  # A bandwidth for each column has no one number.
  each <- mmd_set(x[1:9, ], x[10:15, ], kernel_rbf(c(1, 2)),
                  filter = test_filter(factors = c(1, 2), ratio = 0.1,
                  order = 0:1), permutations = draws)
  values <- lapply(c(1, 2), \(factor) mmd_values_R(
    fixed(gram_R(kernel_rbf(factor * c(1, 2)), x)), labels[, 1, drop = FALSE],
    asked_R(0.1, 0:1), "tikhonov"
  )$values)
  expect_near(each$statistics$value, unlist(values), 1e-10)
})

test_that("kernels of every kind, and matrices of kernel values", {
  labels <- labels_R(rep(1:2, c(9, 6)), draws)
  run <- \(x, kernel, ...) mmd_set(x[1:9, ], x[10:15, ], kernel, ...,
                                   filter = test_filter(ratio = c(0.2, 0.01)),
                                   permutations = draws)
  for (kernel in list(kernel_laplace(1.5), kernel_laplace(2, "L2"),
                      kernel_matern(5 / 2, 1.4), kernel_linear(),
                      kernel_poly(3, 0.5))) {
    expect_twin(run(x, kernel), fixed(gram_R(kernel, x)), labels, "tikhonov",
                "unbiased", tolerance = 1e-9)
  }
  f <- kernel_function(\(x, y) gram_R(rbf, x, y))
  direct <- run(x, rbf)
  of_gram <- mmd_set(gram(x, rbf), two, permutations = draws,
                     filter = test_filter(ratio = c(0.2, 0.01)))
  for (other in list(run(x, f), of_gram)) {
    expect_near(other$statistics$value, direct$statistics$value, 1e-12)
    expect_identical(other$statistics$p.value, direct$statistics$p.value)
    expect_identical(other$p.value, direct$p.value)
  }
})

test_that("marginalized estimators take their own kernel", {
  labels <- labels_R(rep(1:2, c(9, 6)), draws)
  noise <- c(0.2, 0.5)
  cases <- list(list(est_mkme(0.3), 0.3), list(est_mmkme(noise), noise))
  for (case in cases) {
    theta2 <- rep_len(1.2^2 + 2 * case[[2]], 2)
    k <- sqrt(prod(1.2^2 / theta2)) * gram_R(kernel_rbf(sqrt(theta2)), x)
    test <- mmd_set(x[1:9, ], x[10:15, ], rbf, case[[1]],
                    filter = test_filter(ratio = c(0.2, 0.01)),
                    permutations = draws)
    expect_twin(test, fixed(k), labels, "tikhonov", "unbiased")
  }
})

test_that("all labelings: the observed one is not counted twice", {
  few <- c(1:4, 10:12)
  k <- K[few, few]
  ways <- utils::combn(7, 4)
  labels <- apply(ways, 2, \(s) 2 - seq_len(7) %in% s)
  # The twin wants that observed first, and among the draws.
  labels <- cbind(rep(1:2, c(4, 3)), labels)
  for (type in c("biased", "unbiased")) {
    test <- mmd_set(x[1:4, ], x[10:12, ], rbf, filter = "tikhonov",
                    statistic = type, permutations = "all")
    want <- mmd_values_R(fixed(k), labels, test$statistics, "tikhonov", type)
    found <- aggregated_R(want$values, want$scale, complete = TRUE)
    expect_near(test$statistics$value, want$values[, 1], 1e-10)
    expect_equal(test$statistics$p.value, found$each)
    expect_near(test$statistics$z, found$z, 1e-9)
    expect_equal(test$p.value, found$p)
    expect_near(sort(test$replicates), sort(found$top[-1]), 1e-9)
  }
  # A matrix that holds the identity, or moves points within the groups only.
  within <- c(9:1, 15:10)
  for (same in list(1:15, within)) {
    given <- cbind(draws[, 1:7], same, draws[, 8:19])
    test <- mmd_set(x[1:9, ], x[10:15, ], rbf, filter = "tikhonov",
                    permutations = unname(given))
    expect_twin(test, fixed(K), labels_R(rep(1:2, c(9, 6)), given), "tikhonov",
                "unbiased", complete = TRUE)
  }
})

test_that("blocks and clusters", {
  blocks <- c(1, 1, 2, 2, 3, 3, 1, 2, 2, 1, 2, 3, 1, 2, 3)
  ways <- expand.grid(lapply(split(1:15, blocks), \(i) {
    utils::combn(length(i), sum(two[i] == "a"), simplify = FALSE)
  }))
  labels <- apply(ways, 1, \(way) {
    z <- rep(2, 15)
    for (b in 1:3) z[which(blocks == b)[way[[b]]]] <- 1
    z
  })
  observed <- match(two, c("a", "b"))
  run <- \(...) mmd_set(x[1:9, ], x[10:15, ], rbf,
                        filter = test_filter(ratio = 0.05, order = 1:2),
                        permutations = "all", ...)
  compare <- \(test, labels, K) {
    want <- mmd_values_R(fixed(K), cbind(observed, labels), test$statistics,
                         "tikhonov", test$type)
    found <- aggregated_R(want$values, want$scale, complete = TRUE)
    expect_equal(length(test$replicates), ncol(labels))
    expect_near(test$statistics$z, found$z, 1e-10)
    expect_equal(test$statistics$p.value, found$each)
    expect_equal(test$p.value, found$p)
    expect_near(sort(test$replicates), sort(found$top[-1]), 1e-10)
  }
  compare(run(blocks = blocks), labels, given_R(K, blocks))
  # Clusters of different sizes: the sizes of the samples vary.
  clusters <- c(1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 5, 5, 6, 6, 6)
  labels <- apply(utils::combn(6, 3), 2, \(s) 2 - clusters %in% s)
  for (type in c("biased", "unbiased")) {
    compare(few_draws(run(clusters = clusters, statistic = type)), labels, K)
  }
})

test_that("rows, groups and their order change nothing", {
  base <- mmd_test(x ~ three, kernel = rbf, filter = "tikhonov",
                   control = test_control(permutations = draws))
  # Given permutations are of the rows as they come, whatever their group.
  mixed <- c(8, 15, 2, 11, 4, 1, 13, 7, 10, 3, 5, 14, 6, 9, 12)
  moved <- draws
  moved[] <- match(draws, mixed)
  other <- mmd_set(x[mixed, ] ~ three[mixed], kernel = rbf, filter = "tikhonov",
                   permutations = moved)
  expect_near(other$statistics, base$statistics, 1e-10)
  expect_equal(other$p.value, base$p.value)
  # Which group is called the first.
  all <- \(x, y) mmd_set(x, y, rbf, filter = "tikhonov", permutations = "all")
  one <- all(x[1:4, ], x[10:12, ])
  turned <- all(x[12:10, ], x[4:1, ])
  expect_near(turned$statistics, one$statistics, 1e-10)
  expect_equal(turned$p.value, one$p.value)
  # Units, where the bandwidth follows them, and the place.
  run <- \(x) mmd_set(x[1:9, ], x[10:15, ], filter = "tikhonov",
                      permutations = draws)
  expect_near(run(100 * x + 7)$statistics[-4], run(x)$statistics[-4], 1e-8)
})

test_that("at small tau a filter projects on the range of the features", {
  # Rank 5 of 15: the features of a polynomial kernel without its constant.
  k <- gram_R(kernel_poly(2), x)
  e <- eigen(center_R(k), TRUE)
  project <- 15 * tcrossprod(e$vectors[, 1:5])
  labels <- labels_R(rep(1:2, c(9, 6)), draws)
  want <- rbind(apply(labels, 2, \(z) samples_R(project, z, "unbiased")),
                apply(labels, 2, \(z) samples_R(project^2, z, "unbiased")))
  for (filter in filters_R) {
    test <- mmd_set(x[1:9, ], x[10:15, ], kernel_poly(2),
                    filter = test_filter(filter, ratio = 1e-12, order = 1:2),
                    permutations = draws)
    # Rounding errors of eigenvalues are no features.
    expect_near(test$statistics$value, want[, 1], 1e-8)
    expect_equal(test$statistics$p.value,
                 aggregated_R(want, mean(abs(project)) * c(1, 1))$each)
  }
})

test_that("a statistic that does not vary has z = 0 and p = 1", {
  # All directions have the weight 1 of a projection on all of them.
  test <- mmd_set(x[1:9, ], x[10:15, ], rbf, filter = test_filter("cutoff",
                  ratio = c(0.1, 1e-9)), permutations = draws)
  constant <- test$statistics$order > 0 & test$statistics$ratio == 1e-9
  expect_equal(test$statistics$z[constant], c(0, 0))
  expect_equal(test$statistics$p.value[constant], c(1, 1))
  expect_twin(test, fixed(K), labels_R(rep(1:2, c(9, 6)), draws), "cutoff",
              "unbiased")
  alone <- mmd_set(x[1:9, ], x[10:15, ], rbf, filter = test_filter("cutoff",
                   ratio = 1e-9, order = 1:2), permutations = draws)
  expect_identical(alone$p.value, 1)
})

test_that("points that are all alike, duplicates, four points", {
  alike <- matrix(2, 15, 2)
  for (filter in filters_R) {
    test <- mmd_set(alike[1:9, ], alike[10:15, ], rbf, filter = filter,
                    permutations = draws)
    expect_identical(test$p.value, 1)
    expect_true(all(test$statistics$value[test$statistics$order > 0] == 0))
    expect_true(all(test$statistics$p.value == 1))
    expect_true(all(test$statistics$z == 0))
  }
  expect_warning(
    four <- mmd_set(x[1:2, ], x[3:4, ], rbf, filter = "tikhonov",
                    permutations = "all"), "6 ways"
  )
  labels <- cbind(c(1, 1, 2, 2), apply(utils::combn(4, 2), 2, \(s) {
    2 - 1:4 %in% s
  }))
  want <- mmd_values_R(fixed(K[1:4, 1:4]), labels, four$statistics, "tikhonov")
  expect_near(four$statistics$value, want$values[, 1], 1e-10)
  expect_equal(four$p.value,
               aggregated_R(want$values, want$scale, TRUE)$p)
})

test_that("the stream of permutations is that of the plain test", {
  plain <- \(statistic, ...) {
    set.seed(11)
    mmd_set(x[1:9, ], x[10:15, ], rbf, statistic = statistic, B = 60, ...)
  }
  for (statistic in c("biased", "unbiased")) {
    one <- plain(statistic)
    filtered <- plain(statistic, filter = "tikhonov")
    zero <- filtered$statistics[filtered$statistics$order == 0, ]
    expect_identical(zero$p.value, one$p.value)
    expect_near(zero$value, one$statistic[[1]], 1e-12)
    all <- c(one$statistic, one$replicates)
    expect_near(zero$z, (all[[1]] - mean(all)) / stats::sd(all), 1e-10)
  }
})

test_that("scales, formulas and update() keep the filter", {
  set.seed(4)
  test <- mmd_test(x[1:9, ], x[10:15, ],
                   filter = test_filter("iterated", ratio = 0.1),
                   scale = TRUE, B = 30)
  set.seed(4)
  scaled <- scale(x)
  same <- mmd_test(scaled[1:9, ], scaled[10:15, ],
                   filter = test_filter("iterated", ratio = 0.1), B = 30)
  expect_near(test$statistics, same$statistics, 1e-10)
  set.seed(4)
  again <- update(test, filter = test_filter("iterated", ratio = c(0.1, 0.01)))
  expect_identical(again$statistics$ratio[again$statistics$order == 1],
                   c(0.1, 0.01))
  expect_near(again$statistics$value[again$statistics$ratio %in% 0.1],
              test$statistics$value[test$statistics$ratio %in% 0.1], 1e-12)
})

test_that("rounding breaks no ties of the aggregate", {
  # In samples of one size each labeling ties with its complement, also where a
  # small ratio leaves a statistic that hardly varies.
  for (seed in c(5, 41, 60)) {
    set.seed(seed)
    z <- matrix(stats::rnorm(6 * sample(4, 1)), 6)
    theta <- exp(stats::rnorm(1))
    for (filter in filters_R) {
      test <- few_draws(mmd_set(
        z[1:3, , drop = FALSE], z[4:6, , drop = FALSE], kernel_rbf(theta),
        filter = test_filter(filter, ratio = 10^c(0, -2, -4, -6)),
        permutations = "all"
      ))
      half <- test$p.value * 10
      expect_equal(half, round(half))
    }
  }
})

test_that("a test of several statistics draws them, a single one its null", {
  test <- mmd_set(x[1:9, ], x[10:15, ], rbf, filter = "tikhonov", B = 39)
  several <- fit_picture(test)
  expect_identical(on_device(plot(test)), test$statistics)
  bars <- several$layers[[1]]$data
  inside <- test$statistics$z >= bars$x0 & test$statistics$z <= bars$x1
  # Above the band is among the two largest of 40.
  expect_true(all(test$statistics$p.value[!inside] <= 2 / 40 |
                    test$statistics$z[!inside] < 0))
  expect_identical(on_device(plot(test, "null")), test$replicates)
  one <- update(test, filter = test_filter(ratio = 0.1, order = 2))
  expect_identical(on_device(plot(one)), one$replicates)
  expect_error(plot(one, "statistics"), class = "kernmean_error_input")
})

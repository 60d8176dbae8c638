# Clusters: whole clusters change places, against brute force over the ways to
# give them to the samples.

g <- rep(c("a", "b"), c(9, 7))
clusters <- c(1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 5, 5, 5, 6, 6, 6)
x <- random_points(16, 2, 1) + 0.6 * (g == "b")
rbf <- kernel_rbf(1.3)
K <- gram_R(rbf, x)

# statistic(points of the first sample, points of the second) over all ways.
over_ways <- function(statistic, ways = utils::combn(6, 3)) {
  apply(ways, 2, \(s) {
    statistic(which(clusters %in% s), which(!clusters %in% s))
  })
}
statistic_of <- function(type) {
  \(i, j) mmd_R(K, c(i, j), length(i), type)
}
run <- \(...) {
  without_warning("few", mmd_set(x ~ g, kernel = rbf, clusters = clusters, ...))
}

test_that("all labelings of clusters are those of brute force", {
  for (type in c("biased", "unbiased")) {
    test <- run(permutations = "all", statistic = type)
    want <- over_ways(statistic_of(type))
    # 1e-15 seen
    expect_near(sort(test$replicates), sort(want), 1e-12)
    expect_near(test$statistic[[1]], want[1], 1e-12)
    expect_equal(test$p.value, mean(want >= want[1] - 1e-12))
  }
  expect_identical(test$parameter[["clusters"]], 6)
  # Whatever the order of the rows and the names of the clusters.
  mixed <- c(16:9, 1:8)
  moved <- few_draws(mmd_set(
    x[mixed, ] ~ g[mixed], kernel = rbf, clusters = letters[clusters[mixed]],
    permutations = "all", statistic = type
  ))
  expect_near(sort(moved$replicates), sort(want), 1e-12)
  # By two samples and by a gram.
  pair <- few_draws(mmd_set(x[1:9, ], x[10:16, ], rbf, clusters = clusters,
                            permutations = "all", statistic = type))
  of_gram <- few_draws(mmd_set(gram(x, rbf), g, clusters = clusters,
                               permutations = "all", statistic = type))
  expect_near(pair$replicates, test$replicates, 1e-12)
  expect_near(of_gram$replicates, test$replicates, 1e-12)
})

test_that("every estimator moves clusters with the sizes of each draw", {
  cases <- list(
    list(est_skmse(), \(i, j) skmse_distance_R(K, i, j, "loocv")),
    list(est_fkmse(0.1), \(i, j) fkmse_distance_R(K, i, j, 0.1)),
    list(near, \(i, j) near_distance_R(K, i, j))
  )
  for (case in cases) {
    test <- run(estimator = case[[1]], permutations = "all")
    want <- over_ways(case[[2]])
    expect_near(sort(test$replicates), sort(want), 1e-9)
    expect_equal(test$p.value, mean(want >= want[1] - 1e-10))
  }
  fused <- few_draws(mmd_set(x ~ g, bandwidths = c(0.5, 2), clusters = clusters,
                             permutations = "all"))
  want <- over_ways(\(i, j) {
    smaller <- min(length(i), length(j))
    z <- vapply(c(0.5, 2), \(theta) {
      k <- gram_R(kernel_rbf(theta), x)
      sigma <- sqrt(mean(k[row(k) != col(k)]^2))
      sqrt(smaller * (smaller - 1)) *
        mmd_R(k, c(i, j), length(i), "unbiased") / sigma
    }, numeric(1))
    log(mean(exp(z)))
  })
  expect_near(sort(fused$replicates), sort(want), 1e-10)
  wide <- run(estimator = est_mmkme(c(0.2, 0.1)), permutations = "all")
  theta <- sqrt(1.3^2 + 2 * c(0.2, 0.1))
  k <- prod(1.3 / theta) * gram_R(kernel_rbf(theta), x)
  want <- over_ways(\(i, j) mmd_R(k, c(i, j), length(i)))
  expect_near(sort(wide$replicates), sort(want), 1e-10)
})

test_that("several samples and blocks have clusters, too", {
  three <- rep(c("a", "b", "c"), c(5, 5, 6))
  test <- few_draws(mmd_set(x ~ three, kernel = rbf, filter = "none",
                            permutations = "all", clusters = clusters))
  ways <- unique(t(apply(expand.grid(1:3, 1:3, 1:3, 1:3, 1:3, 1:3), 1, c)))
  ways <- ways[apply(ways, 1, \(w) all(tabulate(w, 3) == 2)), ]
  want <- apply(ways, 1, \(w) {
    of <- w[clusters]
    mmd_groups_R(K, order(of), tabulate(of, 3), \(K, i, j) {
      mmd_R(K, c(i, j), length(i))
    })
  })
  expect_length(test$replicates, 90)
  expect_near(sort(test$replicates), sort(want), 1e-12)
  # Clusters 1, 2, 4 in one block, 3, 5, 6 in the other.
  block <- c(1, 1, 2, 1, 2, 2)
  expect_warning(
    test <- mmd_set(x ~ g, kernel = rbf, clusters = clusters,
                    blocks = block[clusters], permutations = "all",
                    filter = "none"),
    "only 9 ways", class = "kernmean_warning"
  )
  ways <- utils::combn(6, 3)
  ways <- ways[, apply(ways, 2, \(s) sum(block[s] == 1) == 2)]
  within <- given_R(K, block[clusters])
  want <- over_ways(\(i, j) mmd_R(within, c(i, j), length(i)), ways)
  expect_near(sort(test$replicates), sort(want), 1e-12)
  expect_match(test$method, "all permutations of clusters")
  set.seed(1)
  few <- suppressWarnings(run(blocks = block[clusters], B = 200,
                              filter = "none"))
  expect_match(few$method, "all permutations of clusters within blocks")
  expect_identical(few$replicates, test$replicates)
})

test_that("clusters of one point are points, and update() keeps clusters", {
  drawn <- \(...) {
    set.seed(4)
    few_draws(mmd_test(x ~ g, kernel = rbf, B = 50, ...))
  }
  expect_near(drawn(clusters = 1:16)$replicates, drawn()$replicates, 1e-12)
  want <- drawn(clusters = clusters)
  plain <- drawn()
  set.seed(4)
  expect_equal(few_draws(update(plain, clusters = clusters))$replicates,
               want$replicates)
  set.seed(4)
  expect_identical(few_draws(update(want))$replicates, want$replicates)
  # By name.
  d <- data.frame(a = x[, 1], b = x[, 2], g, id = clusters)
  set.seed(4)
  by_name <- few_draws(mmd_test(cbind(a, b) ~ g, d, clusters = id,
                                kernel = rbf, B = 50))
  expect_identical(by_name$replicates, want$replicates)
})

test_that("the level is kept with clusters, also of different sizes", {
  skip_on_cran()
  set.seed(21)
  rejected <- sum(replicate(300, {
    id <- rep(1:12, each = 7)
    z <- stats::rnorm(12)[id] + stats::rnorm(84)
    mmd_test(z[1:42], z[43:84], clusters = id, B = 39)$p.value
  }) <= 0.05)
  expect_true(in_band(rejected, 300), label = paste(rejected, "of 300"))
  # Without clusters it is far from kept: the data do have effects. 0.34 of
  # 1,000 are rejected, and of 100 not as few as 0.15 by four standard errors.
  set.seed(21)
  plain <- mean(replicate(100, {
    z <- rep(stats::rnorm(12), each = 7) + stats::rnorm(84)
    mmd_test(z[1:42], z[43:84], B = 39)$p.value
  }) <= 0.05)
  expect_gt(plain, 0.15)
  set.seed(22)
  rejected <- sum(replicate(300, {
    size <- 1 + stats::rpois(12, 4)
    id <- rep(1:12, size)
    z <- stats::rnorm(12)[id] + stats::rnorm(length(id))
    first <- id <= 5
    mmd_set(z[first], z[!first], clusters = id, B = 39,
            statistic = "unbiased")$p.value
  }) <= 0.05)
  expect_true(in_band(rejected, 300), label = paste(rejected, "of 300"))
})

test_that("what clusters cannot be is said", {
  y <- x[10:16, ]
  a <- x[1:9, ]
  lines <- refusals(expression(
    mmd_test(a, y, clusters = rep(1:8, 2)), mmd_test(a, y, clusters = 1:3),
    mmd_set(a, y, clusters = clusters, bins = 3),
    mmd_set(a, y, clusters = clusters, permutations = matrix(1:16)),
    mmd_test(a, y, clusters = clusters, blocks = 1:16),
    mmd_test(a, y, clusters = clusters, blocks = rep(1:2, c(9, 7))),
    mmd_test(a, y, clusters = c(rep(1, 9), 2:8))
  ))
  expect_snapshot(writeLines(lines))
  expect_snapshot(run(permutations = "all", B = 19))
  expect_warning(
    mmd_test(a, y, rbf, clusters = rep(1:4, c(5, 4, 3, 4)), B = 19),
    "only 6 ways", class = "kernmean_warning"
  )
  expect_warning(mmd_test(a, y, clusters = rep(1:2, c(9, 7))),
                 "no permutation changes the statistic")
})

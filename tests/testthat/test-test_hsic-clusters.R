# Clusters of an independence test, against brute force.

codes <- c(1, 2, 1, 3, 4, 2, 3, 4, 5, 5, 6, 6, 6, 7, 7, 7)
n <- length(codes)
x <- random_points(n, 2, 1)
y <- random_points(n, 1, 2) + 0.5 * x[, 1]
rbf <- kernel_rbf(1.3)
K <- gram_R(rbf, x)
L <- gram_R(rbf, y)

# Where the points of each cluster go when clusters move: p(i) is the point of
# the cluster that comes, at the same place.
moved_points <- function(move) {
  p <- integer(n)
  for (cluster in 1:7) {
    p[codes == cluster] <- which(codes == move[cluster])
  }
  p
}

# Clusters 1 to 5 have two points, 6 and 7 three.
sized_moves <- function() {
  two <- all_labelings(rep(1L, 5))
  cbind(rbind(two, 6L, 7L), rbind(two, 7L, 6L))
}

run <- \(...) hsic_set(x, y, kernel = rbf, clusters = codes, ...)

test_that("clusters change places with those of their size", {
  moves <- apply(sized_moves(), 2, moved_points)
  cases <- list(
    list(list(), \(p) hsic_R(K, L, p)),
    list(list(statistic = "unbiased"), \(p) hsic_unbiased_R(K, L, p)),
    list(list(estimator = "skmse"), \(p) scose_R(K, L, p, "loocv")),
    list(list(estimator = est_fkmse(0.1)), \(p) fcose_R(K, L, p, 0.1))
  )
  for (case in cases) {
    test <- do.call(run, c(case[[1]], permutations = "all"))
    want <- over_columns(moves, case[[2]])
    expect_length(test$replicates, 240)
    expect_near(sort(test$replicates), sort(want), 1e-9)
    expect_near(test$statistic[[1]], want[1], 1e-9)
    expect_equal(test$p.value, mean(want >= want[1] * (1 - 1e-9)))
  }
  expect_match(test$method, "all permutations of clusters")
  # Blocks: clusters 1 and 2, 3 to 5, 6 and 7.
  block <- c(1, 1, 2, 2, 2, 3, 3)
  within <- sized_moves()
  within <- within[, apply(within, 2, \(m) all(block[m] == block))]
  test <- run(blocks = block[codes], permutations = "all")
  expect_equal(sort(test$replicates), sort(over_columns(
    apply(within, 2, moved_points),
    \(p) hsic_R(given_R(K, block[codes]), given_R(L, block[codes]), p)
  )), tolerance = 1e-12)
})

test_that("low ranks and dHSIC move the same clusters", {
  id <- rep(1:20, each = 3)
  u <- random_points(60, 1, 3)
  v <- random_points(60, 1, 4)
  points <- \(move) as.vector(rbind(3 * move - 2, 3 * move - 1, 3 * move))
  set.seed(7)
  low <- hsic_test(u, v, kernel = kernel_rbf(5), clusters = id, B = 30)
  expect_length(low$ranks, 2)
  set.seed(7)
  moves <- draw_columns(20, 30)
  used <- used_grams(low, u, v)
  want <- over_columns(apply(moves, 2, points), \(p) {
    hsic_R(used[[1]], used[[2]], p)
  })
  # The factors leave 1e-13 of the trace.
  expect_near(low$replicates, want, 1e-9)
  w <- random_points(60, 2, 5)
  set.seed(8)
  joint <- few_draws(hsic_test(list(u, v, w), clusters = id, B = 11))
  set.seed(8)
  moves <- draw_columns(20, 22)
  k <- used_grams(joint, u, v, w)
  want <- vapply(1:11, \(b) {
    p <- apply(moves[, 2 * b - 1:0], 2, points)
    dhsic_R(list(k[[1]], k[[2]][p[, 1], p[, 1]], k[[3]][p[, 2], p[, 2]]))
  }, numeric(1))
  expect_near(joint$replicates, want, 1e-10)
})

test_that("values that are constant within clusters move between all sizes", {
  skip_on_cran()
  values <- random_points(7, 1, 5)
  whole <- values[codes, , drop = FALSE]
  L <- gram_R(rbf, whole)
  moves <- all_labelings(rep(1L, 7))
  # The values of y as they come, and the statistic of what they then are.
  want <- over_columns(moves, \(move) {
    hsic_R(K, gram_R(rbf, values[move[codes], , drop = FALSE]))
  })
  test <- hsic_set(x, whole, kernel = rbf, clusters = codes,
                    permutations = "all")
  expect_length(test$replicates, 5040)
  expect_near(sort(test$replicates), sort(want), 1e-10)
  expect_near(test$statistic[[1]], hsic_R(K, L), 1e-12)
  expect_equal(test$p.value, mean(want >= want[1] * (1 - 1e-9)))
  expect_near(test$estimate[[1]],
              hsic_R(K, L) / sqrt(hsic_R(K, K) * hsic_R(L, L)), 1e-12)
  # x or y, points or a gram.
  turned <- hsic_set(as_gram(L), x, kernel_y = rbf, clusters = codes,
                      permutations = "all")
  expect_near(sort(turned$replicates), sort(want), 1e-10)
  # A factor, such as the treatment of each cluster.
  arm <- factor(c("a", "b", "a", "b", "a", "b", "b"))
  set.seed(2)
  test <- hsic_test(x, arm[codes], kernel_x = rbf, clusters = codes, B = 40,
                    filter = "none")
  set.seed(2)
  moves <- draw_columns(7, 40)
  expect_equal(test$replicates, over_columns(moves, \(move) {
    hsic_R(K, delta_R(arm[move[codes]]))
  }), tolerance = 1e-12)
  # Other statistics keep to clusters of a size.
  unbiased <- hsic_set(x, whole, kernel = rbf, clusters = codes,
                        statistic = "unbiased", permutations = "all")
  expect_length(unbiased$replicates, 240)
  # Clusters of one size: both ways are one.
  even <- rep(1:8, 2)
  whole <- random_points(8, 1, 6)[even, , drop = FALSE]
  L <- gram_R(rbf, whole)
  set.seed(3)
  a <- hsic_test(x, whole, kernel = rbf, clusters = even, B = 30,
                 filter = "none")
  set.seed(3)
  p <- draw_columns(8, 30)
  expect_equal(a$replicates, over_columns(rbind(p, p + 8L), \(p) {
    hsic_R(K, L, p)
  }), tolerance = 1e-12)
})

test_that("the level is kept with clusters", {
  skip_on_cran()
  band <- stats::qbinom(c(0.0005, 0.9995), 300, 0.05)
  set.seed(31)
  rejected <- sum(replicate(300, {
    id <- rep(1:12, each = 7)
    u <- stats::rnorm(12)[id] + stats::rnorm(84)
    v <- stats::rnorm(12)[id] + stats::rnorm(84)
    hsic_test(u, v, clusters = id, B = 39)$p.value
  }) <= 0.05)
  expect_true(rejected >= band[1] && rejected <= band[2],
              label = paste(rejected, "of 300"))
  rejected <- sum(replicate(300, {
    id <- rep(1:12, 1 + stats::rpois(12, 4))
    u <- stats::rnorm(12)[id] + stats::rnorm(length(id))
    hsic_test(u, stats::rnorm(12)[id], clusters = id, B = 39)$p.value
  }) <= 0.05)
  expect_true(rejected >= band[1] && rejected <= band[2],
              label = paste(rejected, "of 300"))
})

test_that("what clusters cannot be is said", {
  ladder <- rep(1:5, c(1, 2, 3, 4, 6))
  lines <- refusals(expression(
    hsic_test(x, y, clusters = rep(1, n)), hsic_test(x, y, clusters = ladder),
    hsic_test(x, y, clusters = codes, blocks = codes),
    hsic_set(x, y, clusters = codes, null = "gamma"),
    hsic_set(x, y, clusters = codes, permutations = matrix(1:n))
  ))
  expect_snapshot(writeLines(lines))
  # The same values in each.
  expect_warning(hsic_test(uptake ~ conc, CO2, clusters = Plant, B = 99),
                 "no permutation changes the statistic")
})


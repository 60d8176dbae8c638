# What the tests share: their fields, estimators of the user's, update().

x <- random_points(9, 2, 1)
y <- random_points(7, 2, 2) + 0.7
pooled <- rbind(x, y)
group <- rep(c("a", "b"), c(9, 7))
rbf <- kernel_rbf(1.3)
K <- gram_R(rbf, pooled)

# Weights of an operator, whose matrix has row sums of any sign.
near_sum <- function(sample) {
  m <- as.matrix(sample)
  exp(rowSums(m)) / sample$n
}
near_sum_R <- function(M) {
  beta <- exp(rowSums(M)) / nrow(M)
  drop(beta %*% M %*% beta)
}

# The same results, whatever was asked for.
expect_same_test <- function(got, want) {
  fields <- c("statistic", "parameter", "p.value", "replicates", "kernel",
              "data.name", "type", "null")
  expect_near(unclass(got)[fields], unclass(want)[fields], 1e-12)
}

seeded <- function(code, seed = 5) {
  set.seed(seed)
  code
}

test_that("labelings of single points are all permutations", {
  orders <- all_labelings(rep(1L, 5))
  expect_identical(dim(orders), c(5L, 120L))
  expect_identical(orders[, 1], 1:5)
  expect_false(anyDuplicated(t(orders)) > 0)
  within <- all_labelings(rep(1L, 6), c(1, 1, 1, 2, 2, 2))
  expect_identical(ncol(within), 36L)
  expect_true(all(within[1:3, ] <= 3))
  # Features less the means of blocks are those of columns for lines.
  of <- rep(1:2, each = 3)
  centered <- \(z) apply(z[1:6, ], 2, \(v) v - ave(v, of))
  line <- \(x, y, ...) hsic_set(x, y, kernel = kernel_linear(),
                                filter = "none", ...)
  blocks <- line(x[1:6, ], y[1:6, ], permutations = "all", blocks = of)
  given <- line(centered(x), centered(y), permutations = within)
  expect_equal(blocks$p.value, given$p.value)
})

test_that("an estimator of one's own is exact over all labelings", {
  few <- c(1:4, 10:12)
  k <- K[few, few]
  test <- mmd_set(x[1:4, ], y[1:3, ], rbf, near, permutations = "all")
  want <- apply(utils::combn(7, 4), 2, \(i) {
    near_distance_R(k, i, setdiff(1:7, i))
  })
  expect_near(sort(test$replicates), sort(want), 1e-12)
  expect_equal(test$p.value, mean(want >= want[1] - 1e-12))
  L <- gram_R(rbf, x[5:9, ])
  k <- gram_R(rbf, x[1:5, ] + 1)
  test <- hsic_set(x[1:5, ] + 1, x[5:9, ], kernel = rbf, estimator = near_sum,
                    permutations = "all")
  want <- apply(all_labelings(rep(1L, 5)), 2, \(p) {
    near_sum_R(center_R(k) * center_R(L)[p, p])
  })
  expect_near(test$replicates, want, 1e-12)
  expect_equal(test$p.value, mean(want >= want[1] - 1e-12))
})

test_that("one kernel is that of every variable without its own", {
  run <- \(...) seeded(hsic_set(..., B = 19))
  kernel <- kernel_laplace(2)
  expect_identical(run(x, x[, 1], kernel = kernel)$replicates,
                   run(x, x[, 1], kernel, kernel)$replicates)
  expect_identical(run(x, gl(3, 3), kernel = kernel)$replicates,
                   run(x, gl(3, 3), kernel)$replicates)
  d <- data.frame(a = x[, 1], b = x[, 2])
  expect_identical(run(~ a + b, d, kernel = kernel)$replicates,
                   run(d$a, d$b, kernel, kernel)$replicates)
})

test_that("update() keeps groups, blocks and permutations", {
  d <- data.frame(a = pooled[, 1], b = pooled[, 2], g = group,
                  id = rep(1:8, 2))[c(16:1), ]
  two <- \(...) seeded(mmd_set(cbind(a, b) ~ g, d, B = 20, ...))
  blocked <- two(blocks = d$id)
  expect_same_test(seeded(update(blocked)), blocked)
  expect_same_test(seeded(update(blocked, estimator = "skmse")),
                   two(blocks = d$id, estimator = "skmse"))
  free <- two()
  expect_same_test(seeded(update(free, blocks = d$id)), blocked)
  orders <- draw_after(8, 16, 20)
  given <- mmd_set(cbind(a, b) ~ g, d, permutations = orders)
  expect_same_test(update(given), given)
  expect_same_test(update(free, control = test_control(permutations = orders)),
                   given)
})

test_that("update() says what takes a new call", {
  test <- mmd_test(extra ~ group, sleep, B = 19)
  plain <- mmd_test(x, y, B = 19)
  of_gram <- mmd_test(as_gram(K), group, B = 19)
  pair <- hsic_test(~ Sepal.Length + Species, iris, B = 19)
  list_made <- hsic_test(list(x, x), B = 19)
  lines <- refusals(expression(
    update(test, data = sleep), update(test, extra ~ ID), update(test, x = 1),
    update(plain, lambda = 1), update(plain, 99), update(plain, groups = 1),
    update(of_gram, kernel = rbf), update(list_made, y = x), update(pair, b = 3)
  ))
  expect_snapshot(writeLines(lines))
})

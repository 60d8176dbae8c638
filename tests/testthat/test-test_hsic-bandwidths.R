# Many bandwidths in one independence test.

x <- random_points(7, 2, 1)
y <- random_points(7, 1, 2) + x[, 1]
theta <- c(0.5, 2)

# sum_ij k_ij l_p(i)p(j) of a pair of bandwidths over all permutations, as
# z-scores; log mean exp of them over the pairs.
fuse_hsic_R <- function(grams_x, grams_y, orders) {
  z <- lapply(grams_x, \(k) lapply(grams_y, \(l) {
    t <- over_columns(orders, \(p) hsic_R(k, l, p))
    (t - mean(t)) / sqrt(mean((t - mean(t))^2))
  }))
  log(rowMeans(exp(do.call(cbind, unlist(z, FALSE)))))
}
grams <- \(x, set) lapply(set, \(t) gram_R(kernel_rbf(t), x))
orders <- all_labelings(rep(1L, 7))

test_that("mean and variance over all permutations are exact", {
  k <- center_R(gram_R(kernel_rbf(1), x))
  l <- center_R(gram_R(kernel_energy(), y))
  part <- \(m) new_part(m, 1)
  t <- over_columns(orders, \(p) sum(k * l[p, p]))
  got <- form_moments(part(k), part(l))
  expect_near(got$mean, mean(t), 1e-12)
  expect_near(got$variance, mean((t - mean(t))^2), 1e-11)
  # Forms that do not vary have no variance: equal distances.
  same <- diag(7) - 1 / 7
  expect_near(form_moments(part(same), part(l))$variance, 0, 1e-14)
})

test_that("the statistic is that of the twin, whose moments are enumerated", {
  skip_on_cran()
  test <- hsic_set(x, y, bandwidths = theta, permutations = "all")
  want <- fuse_hsic_R(grams(x, theta), grams(y, theta), orders)
  expect_near(sort(test$replicates), sort(want), 1e-9)
  expect_near(test$statistic[["fused HSIC"]], want[1], 1e-9)
  expect_equal(test$p.value, mean(want >= want[1] - 1e-9))
  expect_identical(test$kernel$x$bandwidth, theta)
  # A factor and a gram have their own kernel.
  f <- factor(c(1, 1, 2, 2, 2, 3, 3))
  test <- hsic_set(x, f, bandwidths = theta, permutations = "all")
  want <- fuse_hsic_R(grams(x, theta), list(delta_R(f)), orders)
  expect_near(sort(test$replicates), sort(want), 1e-9)
  expect_null(test$kernel$y)
  energy <- gram(y, kernel_energy())
  test <- hsic_set(x, energy, bandwidths = theta, permutations = "all")
  want <- fuse_hsic_R(grams(x, theta), list(energy$K), orders)
  expect_near(sort(test$replicates), sort(want), 1e-9)
})

test_that("five bandwidths are chosen without a look at the pairing", {
  u <- random_points(60, 2, 3)
  v <- random_points(60, 1, 4)
  test <- hsic_test(u, v, bandwidths = "fuse", B = 19)
  ends <- stats::quantile(dist(u), c(0.05, 0.95), names = FALSE)
  set <- test$kernel$x$bandwidth
  expect_equal(range(set), ends * c(0.5, 2))
  expect_equal(diff(log(set)), rep(diff(log(range(set))) / 4, 4))
  turned <- hsic_test(u, v[60:1, , drop = FALSE], bandwidths = "fuse", B = 19)
  expect_equal(turned$kernel$y$bandwidth, test$kernel$y$bandwidth)
  expect_identical(test$type, "biased")
  expect_match(test$method, "fused HSIC")
})

test_that("clusters and update() go with many bandwidths", {
  skip_on_cran()
  id <- rep(1:6, c(2, 2, 2, 3, 3, 3))
  u <- random_points(15, 1, 5)
  values <- random_points(6, 1, 6)
  v <- values[id, , drop = FALSE]
  test <- hsic_set(u, v, bandwidths = theta, clusters = id,
                    permutations = "all")
  moves <- all_labelings(rep(1L, 6))
  z <- lapply(grams(u, theta), \(k) lapply(theta, \(t) {
    form <- over_columns(moves, \(m) {
      hsic_R(k, gram_R(kernel_rbf(t), values[m[id], , drop = FALSE]))
    })
    # Over all ways in which clusters change places.
    (form - mean(form)) / sqrt(mean((form - mean(form))^2))
  }))
  want <- log(rowMeans(exp(do.call(cbind, unlist(z, FALSE)))))
  expect_near(sort(test$replicates), sort(want), 1e-9)
  run <- \(...) {
    set.seed(9)
    hsic_set(u, v, ..., B = 20)
  }
  fused <- run(bandwidths = "fuse")
  set.seed(9)
  expect_identical(update(fused)$replicates, fused$replicates)
  plain <- run()
  set.seed(9)
  expect_identical(update(plain, bandwidths = "fuse")$replicates,
                   fused$replicates)
  set.seed(9)
  expect_identical(update(fused, kernel = kernel_rbf())$replicates,
                   run(kernel = kernel_rbf())$replicates)
})

test_that("the level is kept, and what the median misses is found", {
  skip_on_cran()
  band <- stats::qbinom(c(0.0005, 0.9995), 300, 0.05)
  set.seed(41)
  rejected <- sum(replicate(300, {
    hsic_test(stats::rexp(20), stats::rt(20, 3), bandwidths = "fuse",
              B = 39)$p.value
  }) <= 0.05)
  expect_true(rejected >= band[1] && rejected <= band[2],
              label = paste(rejected, "of 300"))
  set.seed(42)
  p <- replicate(20, {
    u <- stats::runif(80)
    v <- sin(8 * pi * u) + stats::rnorm(80, sd = 0.5)
    c(median = hsic_set(u, v, B = 39)$p.value,
      fuse = hsic_test(u, v, bandwidths = "fuse", B = 39)$p.value)
  })
  found <- rowSums(p <= 0.05)
  expect_gt(found[["fuse"]], found[["median"]] + 6)
})

test_that("constant variables give p = 1, wrong arguments an answer", {
  one <- hsic_test(rep(1, 7), y, bandwidths = "fuse", B = 19)
  expect_identical(one$p.value, 1)
  f <- factor(c(1, 1, 2, 2, 2, 3, 3))
  lines <- refusals(expression(
    hsic_test(x, y, bandwidths = 1),
    hsic_test(f, f, bandwidths = "fuse"),
    hsic_test(x, y, kernel_rbf(), bandwidths = "fuse"),
    hsic_test(x, y, estimator = "skmse", bandwidths = "fuse"),
    hsic_set(x, y, null = "gamma", bandwidths = "fuse"),
    hsic_test(x, y, filter = TRUE, bandwidths = "fuse"),
    hsic_test(list(x, y, y), bandwidths = "fuse"),
    hsic_test(1:3, 3:1, bandwidths = "fuse")
  ))
  expect_snapshot(writeLines(lines))
})

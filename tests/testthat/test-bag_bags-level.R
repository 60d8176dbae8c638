# Kernels between distributions.

bags <- some_bags()
theta <- kernel_rbf(1.3)

test_that("each level is its formula", {
  inner <- bags_R(bags, theta)
  own <- diag(inner)
  of <- \(level, ...) bag_gram(bags, theta, level2 = level, ...)$K
  expect_near(of("linear"), inner, 1e-13)
  expect_near(of("cosine"), level_R(inner, own, own, "cosine"), 1e-13)
  expect_near(of("rbf", bandwidth2 = 0.3),
              level_R(inner, own, own, "rbf", 0.3), 1e-12)
  # The root of a distance near 0.
  expect_near(of("laplace", bandwidth2 = 0.3),
              level_R(inner, own, own, "laplace", 0.3), 1e-7)
  expect_near(of("poly"), (inner + 1)^2, 1e-13)
  expect_near(of("poly", degree = 3, offset = 0), inner^3, 1e-13)
})

test_that("s is the root of the median of squared distances", {
  for (estimator in c("kme", "skmse")) {
    apart <- kme_distance(bag_fits_R(bags, theta, estimator))
    s <- sqrt(median(apart[upper.tri(apart)]^2))
    for (level in c("rbf", "laplace")) {
      g <- bag_gram(bags, theta, estimator, level)
      expect_near(g$level2$bandwidth, s, 1e-10)
      expect_identical(g$level2$rule, "median distance of the bags")
      expect_identical(bag_gram(bags, theta, estimator, level,
                                bandwidth2 = "median")$K, g$K)
    }
  }
})

test_that("of an even number of pairs s is between two, halved as squares", {
  four <- bag_gram(bags[1:4], theta, level2 = "rbf")
  apart <- kme_distance(bag_fits_R(bags[1:4], theta))^2
  expect_near(four$level2$bandwidth^2, median(apart[upper.tri(apart)]), 1e-12)
})

test_that("all matrices are positive semi-definite to rounding", {
  skip_on_cran()
  many <- kinds_of_bags(30, 6)$bags
  for (target in list(NULL, "pooled", "neighbours", "aggregate")) {
    linear <- bag_gram(many, theta, target = target)
    for (level in c("linear", "cosine", "rbf", "laplace", "poly")) {
      g <- update(linear, level2 = level)
      values <- eigen(g$K, TRUE, TRUE)$values
      expect_gt(min(values), -1e-12 * max(values))
      expect_identical(g$K, t(g$K))
    }
  }
  for (estimator in c("skmse", "fkmse", "mkme")) {
    linear <- suppressWarnings(bag_gram(many, theta, estimator))
    for (level in c("linear", "cosine", "rbf", "laplace", "poly")) {
      g <- update(linear, level2 = level)
      values <- eigen(g$K, TRUE, TRUE)$values
      expect_gt(min(values), -1e-12 * max(values))
    }
  }
})

test_that("bags that are equal have a distance of 0", {
  three <- c(bags["c"], list(again = bags$c[8:1, ]), bags["f"])
  for (level in c("rbf", "laplace", "cosine")) {
    g <- bag_gram(three, theta, level2 = level)
    # The root of rounding, of 2e-8 or so.
    expect_near(g$K["c", "again"], 1, 1e-7)
    expect_near(unname(diag(g$K)), rep(1, 3), 1e-7)
  }
  # Where most pairs are equal the median is that of the others.
  many <- c(rep(bags["c"], 4), bags["f"])
  names(many) <- letters[1:5]
  expect_silent(g <- bag_gram(many, theta, level2 = "rbf"))
  expect_identical(g$level2$rule, "median distance of the bags that differ")
  expect_near(unname(g$K["a", ]), c(1, 1, 1, 1, exp(-0.5)), 1e-7)
  g <- bag_gram(many[1:3], theta, level2 = "rbf")
  expect_identical(g$level2$rule, "all bags are equal")
  expect_near(unname(g$K), matrix(1, 3, 3), 1e-12)
  expect_identical(unname(bag_gram(bags["c"], theta, level2 = "rbf")$K),
                   matrix(1))
})

test_that("an embedding of 0 has no direction", {
  zero <- list(a = matrix(c(-1, 1)), b = matrix(1:2), c = matrix(3))
  g <- bag_gram(zero, kernel_linear(), level2 = "cosine")
  expect_identical(unname(g$K), rbind(0, c(0, 1, 1), c(0, 1, 1)))
  expect_identical(unname(predict(g, list(matrix(c(-2, 2))))), matrix(0, 1, 3))
})

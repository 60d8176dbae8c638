# The groups of a sketch as bags.

two <- kinds_of_bags(12, 10)
names(two$bags) <- sprintf("b%02d", 1:12)
points <- do.call(rbind, two$bags)
id <- rep(names(two$bags), each = 10)
theta <- kernel_rbf(1.5)
# With all points as landmarks nothing is lost of these.
sketch <- kme_sketch(points, points, kernel = theta, groups = id)
new <- kinds_of_bags(3, 10, seed = 9)$bags
y <- class_of(two$kind)

test_that("a sketch with groups is the Gram matrix of its bags", {
  for (level2 in c("linear", "rbf")) {
    for (estimator in c("kme", "skmse")) {
      of <- bag_gram(sketch, estimator = estimator, level2 = level2)
      rows <- bag_gram(two$bags, theta, estimator, level2 = level2)
      expect_equal(of$K, rows$K, tolerance = 1e-6)
      expect_equal(of$sizes, rows$sizes)
      expect_equal(of$shrinkage$lambda, rows$shrinkage$lambda,
                   tolerance = 1e-6)
    }
  }
  few <- kme_sketch(points, points[1:25, ], kernel = theta, groups = id)
  # <mu_a, mu_b> of projected means: k_a'K^-1 k_b.
  k <- gram_R(theta, points[1:25, ], points)
  means <- k %*% indicators_of(id, names(two$bags)) / 10
  inner <- t(means) %*% solve(k[, 1:25], means)
  expect_equal(unname(bag_gram(few)$inner), unname(inner), tolerance = 1e-5)
})

test_that("new bags come as rows, as a list or as a sketch", {
  g <- bag_gram(sketch)
  values <- predict(g, new)
  expect_equal(values, predict(bag_gram(two$bags, theta), new),
               tolerance = 1e-6)
  bound <- do.call(rbind, new)
  of <- rep(names(new), each = 10)
  expect_identical(predict(g, bound, id = of), values)
  expect_identical(predict(g, kme_sketch(bound, sketch, groups = of)), values)
  # In the order and by the names in which they come, as of bags of rows.
  turned <- two$bags[c(11, 2, 10)]
  expect_equal(predict(g, turned), g$K[c(11, 2, 10), ], tolerance = 1e-6)
  expect_identical(rownames(predict(g, unname(two$bags))), as.character(1:12))
  expect_identical(rownames(predict(g, bound, id = rev(of))),
                   rev(unique(of)))
  refused(predict(g, stats::setNames(new, c("a", "a", "b"))), "must differ")
  line <- kme_sketch(points[, 1], 20, kernel = theta, groups = id)
  values <- list(new[[1]][, 1], new[[2]][, 1])
  expect_identical(predict(bag_gram(line), values),
                   predict(bag_gram(line), lapply(values, as.matrix)))
  # The bags of the fit themselves.
  for (level2 in c("linear", "rbf")) {
    g <- bag_gram(sketch, level2 = level2)
    expect_equal(predict(g, two$bags), g$K, tolerance = 1e-6)
    expect_equal(update(bag_gram(sketch), level2 = level2)$K, g$K)
  }
  fit <- smm(sketch, value_of(two$kind), type = "ridge", ridge = 0.1)
  rows <- smm(two$bags, value_of(two$kind), kernel = theta, type = "ridge",
              ridge = 0.1)
  expect_equal(predict(fit, new), predict(rows, new), tolerance = 1e-5)
  expect_equal(update(fit, ridge = 0.2)$ridge, 0.2)
  skip_if_not_installed("kernlab")
  fit <- smm(sketch, y, cost = 1)
  expect_identical(predict(fit, kme_sketch(bound, sketch, groups = of)),
                   predict(fit, new))
})

test_that("what is missing is said", {
  g <- bag_gram(sketch)
  refused(predict(g, points), "come with 'id'")
  refused(predict(g, c(new, list(new[[1]][0, ]))), "rows in each bag")
  refused(bag_gram(kme_sketch(points, 20)), "a sketch with groups")
  refused(bag_gram(sketch, id = id), "'id' not be given")
  refused(bag_gram(sketch, target = "pooled"), "'target' must be NULL")
  refused(bag_gram(sketch, estimator = "mkme"), "'estimator' must be")
  # Rows of as many columns as there are bags are no kernel values.
  three <- lapply(new, \(bag) cbind(bag, bag[, 1]))
  fit <- smm(three, c(1, 2, 4), kernel = theta, type = "ridge", ridge = 1)
  refused(predict(fit, do.call(rbind, three)), "come with 'id'")
  expect_identical(predict(fit, predict(fit$gram, three)), predict(fit, three))
})

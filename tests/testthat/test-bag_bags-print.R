# What print() and summary() say of bags.

bags <- some_bags()
rbf <- kernel_rbf(1.5)

test_that("prints tell bags, estimates and level", {
  frame <- data.frame(pooled(bags), id = bag_ids(bags))
  expect_snapshot({
    bag_gram(bags, rbf)
    bag_gram(id ~ u + v, frame, estimator = "skmse", level2 = "rbf")
    suppressWarnings(bag_gram(bags, rbf, "mkme", "poly", degree = 3))
    bag_gram(bags[c("c", "e")], rbf, "fkmse", "cosine", lambda = 0.1)
    bag_gram(bags, rbf, target = "pooled", level2 = "laplace", bandwidth2 = 0.2)
    bag_gram(bags, rbf, target = "aggregate")
    bag_gram(as_gram(gram_R(rbf, pooled(bags))), id = bag_ids(bags))
    bag_gram(bags["c"], rbf)
  })
})

test_that("a summary has the eigenvalues and a row for each bag", {
  expect_snapshot({
    summary(bag_gram(bags, rbf, "skmse"))
    summary(bag_gram(kinds_of_bags(25)$bags, rbf, target = "neighbours"))
  })
  summary <- summary(bag_gram(bags, rbf, "skmse"))
  expect_identical(summary$shrinkage, bag_gram(bags, rbf, "skmse")$shrinkage)
})

# Bags that borrow from each other, against the formulas as they stand.

bags <- some_bags()
theta <- kernel_rbf(1.3)
pool <- pool_R(bags, theta)
targets <- c("pooled", "neighbours", "aggregate")
# A solution of the quadratic programs is known to the root of the ridge.
tolerance <- c(pooled = 1e-11, neighbours = 1e-12, aggregate = 1e-6)

test_that("each target is its formula", {
  for (target in targets) {
    g <- bag_gram(bags, theta, target = target)
    slow <- targets_R(target, pool)
    near <- tolerance[[target]]
    expect_equal(unname(g$mixing), t(slow$W), tolerance = near, label = target)
    expect_equal(unname(g$inner), slow$inner, tolerance = near, label = target)
    expect_identical(g$inner, t(g$inner))
    expect_near(unname(rowSums(g$mixing)), rep(1, 6), 1e-12)
    expect_gte(min(g$mixing), 0)
    expect_near(g$shrinkage$norm2, unname(diag(slow$inner)), near)
  }
})

test_that("pooled is S-KMSE of kme() towards the mean of the others", {
  g <- bag_gram(bags, theta, target = "pooled")
  others_of <- \(b) {
    others <- bags[names(bags) != b]
    w <- rep(1 / vapply(others, nrow, 1L), vapply(others, nrow, 1L)) / 5
    kme(pooled(others), theta, weights = unname(w))
  }
  of <- lapply(names(bags), \(b) {
    if (b == "b") kme(bags[[b]], theta) else
      kme(bags[[b]], theta, est_skmse(target = others_of(b)))
  })
  names(of) <- names(bags)
  expect_near(g$inner, kme_inner(of), 1e-10)
  own <- names(bags) != "b"
  expect_near(g$shrinkage$alpha[own],
              vapply(of[own], \(fit) fit$alpha, 1) |> unname(), 1e-10)
  # The other choice of S-KMSE is there, too.
  plugin <- bag_gram(bags, theta, est_skmse(select = "plugin"),
                     target = "pooled")
  fit <- kme(bags$a, theta, est_skmse(select = "plugin",
                                      target = others_of("a")))
  expect_near(plugin$shrinkage["a", "alpha"], fit$alpha, 1e-10)
})

test_that("a bag of one point keeps its KME, a single bag too", {
  for (target in c("neighbours", "aggregate")) {
    g <- bag_gram(bags, theta, target = target)
    expect_identical(unname(g$mixing["b", ]), c(0, 1, 0, 0, 0, 0))
    expect_identical(bag_gram(bags["c"], theta, target = target)$K,
                     bag_gram(bags["c"], theta)$K)
  }
  g <- bag_gram(bags, theta, target = "neighbours")
  expect_identical(unname(g$mixing[-2, "b"]), numeric(5))
  expect_error(bag_gram(bags["c"], theta, target = "pooled"),
               "at least 2 for target", class = "kernmean_error_input")
})

test_that("equal bags share, and give one result", {
  set.seed(11)
  twins <- rep(list(matrix(rnorm(12), 6)), 4)
  plain <- bag_gram(twins, theta)
  for (target in targets) {
    g <- bag_gram(twins, theta, target = target)
    expect_near(g$K, plain$K, 1e-8)
  }
  expect_equal(unname(bag_gram(twins, theta, target = "neighbours")$mixing),
               matrix(0.25, 4, 4))
})

test_that("two bags are enough to borrow", {
  for (target in targets) {
    g <- bag_gram(bags[c("c", "e")], theta, target = target)
    two <- pool_R(bags[c("c", "e")], theta)
    expect_near(unname(g$inner),
                targets_R(target, two)$inner, tolerance[[target]])
  }
})

# --- New bags ----------------------------------------------------------------

test_that("a new bag borrows from itself and those of the fit", {
  set.seed(13)
  new <- list(p = matrix(rnorm(12), 6), q = matrix(rnorm(2), 1),
              r = matrix(rnorm(20), 10))
  for (target in targets) {
    g <- bag_gram(bags, theta, target = target)
    found <- predict(g, new)
    for (name in names(new)) {
      wide <- pool_R(c(bags, new[name]), theta)
      w <- borrow_R(target, wide, 7)
      slow <- drop(w %*% wide$G[, 1:6]) %*% t(g$mixing)
      expect_equal(found[name, ], drop(slow),
                   tolerance = tolerance[[target]], label = target)
    }
    # One after the other or at once.
    expect_near(predict(g, new[3]), found[3, , drop = FALSE], 1e-12)
  }
})

test_that("a bag of the fit is known again, in any order of its points", {
  set.seed(14)
  turned <- lapply(bags, \(x) x[sample(nrow(x)), , drop = FALSE])
  for (target in targets) {
    g <- bag_gram(bags, theta, target = target, level2 = "rbf")
    # From the fit itself, to the bit, but for the squared distance.
    expect_near(predict(g, turned), g$K, 1e-12)
    expect_near(predict(g, turned[c(4, 1)]), g$K[c(4, 1), ], 1e-12)
  }
  # A bag with one point moved is another one.
  moved <- bags["c"]
  moved$c[3, 1] <- moved$c[3, 1] + 1e-3
  g <- bag_gram(bags, theta, target = "neighbours")
  wide <- pool_R(c(bags, moved), theta)
  w <- borrow_R("neighbours", wide, 7)
  expect_gt(w[3], 0)
  expect_near(drop(predict(g, moved)),
              drop(drop(w %*% wide$G[, 1:6]) %*% t(g$mixing)), 1e-12)
})

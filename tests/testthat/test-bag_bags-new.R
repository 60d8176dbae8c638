# New bags: kernel values with those of the fit.

bags <- some_bags()
theta <- kernel_rbf(1.3)
set.seed(21)
new <- list(p = matrix(rnorm(14), 7), q = matrix(rnorm(2), 1),
            r = matrix(rnorm(6), 3))
turned <- lapply(bags, \(x) x[sample(nrow(x)), , drop = FALSE])
levels <- c("linear", "cosine", "rbf", "laplace", "poly")
quiet_bags <- \(...) suppressWarnings(bag_gram(...))

test_that("new bags are fitted alone, as those of the fit were", {
  skip_on_cran()
  own <- est_function(\(s) {
    rank(rowMeans(as.matrix(s))) / sum(seq_len(s$n))
  })
  for (estimator in list("kme", "skmse", "fkmse", "mkme", "mmkme", own,
                         est_fkmse(0.1))) {
    g <- quiet_bags(bags, theta, estimator)
    found <- predict(g, new)
    expect_near(found, new_bags_R(new, bags, theta, estimator), 1e-8)
    expect_identical(dimnames(found), list(names(new), names(bags)))
    # None depends on those beside it.
    expect_near(predict(g, new["r"]), found["r", , drop = FALSE], 1e-13)
  }
})

test_that("bags of the fit have its rows, in any order of their points", {
  for (estimator in c("kme", "skmse", "fkmse", "mmkme")) {
    for (level in if (estimator == "mmkme") "rbf" else levels) {
      g <- quiet_bags(bags, theta, estimator, level)
      # A distance of 0 is known to the root of the rounding.
      near <- if (level == "laplace") 1e-6 else 1e-8
      expect_near(predict(g, turned), g$K, near)
      expect_near(predict(g, bags[c(5, 2)]), g$K[c(5, 2), ], near)
    }
  }
  expect_identical(predict(g), as.matrix(g))
})

test_that("levels of new bags are made of their own norms", {
  for (estimator in c("kme", "skmse", "mkme")) {
    norms <- diag(bags_R(new, theta, estimator))
    inner <- new_bags_R(new, bags, theta, estimator)
    for (level in levels) {
      g <- quiet_bags(bags, theta, estimator, level)
      expect_equal(predict(g, new),
                   level_R(inner, norms, diag(g$inner), level,
                           g$level2$bandwidth), tolerance = 1e-7)
    }
  }
  # And k(z, z), which kernel PCA and a kernel mean may ask for.
  g <- bag_gram(bags, theta, "skmse", "poly")
  expect_near(read_kernel_values(g, new)$diagonal,
              (diag(bags_R(new, theta, "skmse")) + 1)^2, 1e-10)
})

test_that("each kernel of points will do", {
  own <- kernel_function(\(x, y) exp(-gram_R(new_kernel("l1dist", ""), x, y)))
  for (kernel in list(own, kernel_poly(2), kernel_laplace(1),
                      kernel_rbf(c(0.5, 2)))) {
    for (estimator in c("kme", "fkmse")) {
      g <- bag_gram(bags, kernel, estimator)
      expect_near(predict(g, new),
                  new_bags_R(new, bags, kernel, estimator), 1e-8)
    }
  }
  g <- bag_gram(bags, kernel_poly(3), est_mmkme(c(0.1, 0.3)))
  fits <- \(x) lapply(x, kme, kernel_poly(3), est_mmkme(c(0.1, 0.3)))
  slow <- t(vapply(fits(new), \(a) vapply(fits(bags), kme_inner, 1, b = a),
                   numeric(6)))
  expect_near(predict(g, new), slow, 1e-10)
})

test_that("new bags come as a list, with an id, or with the column of it", {
  g <- bag_gram(bags, theta)
  found <- predict(g, new)
  x <- pooled(new)
  id <- bag_ids(new)
  expect_identical(predict(g, x, id = id), found)
  expect_identical(predict(g, lapply(new, as.data.frame) |>
                             lapply(setNames, c("u", "v"))), found)
  expect_identical(predict(g, unname(new)),
                   `rownames<-`(found, as.character(1:3)))
  # Rows in another order, with their bags.
  turn <- c(11:1)
  mixed <- predict(g, x[turn, ], id = id[turn])
  expect_identical(rownames(mixed), c("r", "q", "p"))
  expect_near(mixed[names(new), ], found, 1e-13)
  data <- data.frame(u = x[, 1], v = x[, 2], molecule = id)
  train <- data.frame(pooled(bags), molecule = bag_ids(bags))
  expect_identical(predict(bag_gram(train, theta, id = "molecule"), data),
                   found)
  formula <- bag_gram(molecule ~ u + v, train, kernel = theta)
  expect_identical(predict(formula, data), found)
  expect_identical(predict(formula, data[c("v", "molecule", "u")]), found)
  expect_identical(predict(formula, split(data[1:2], id)[names(new)]), found)
  expect_identical(predict(formula, data[1:2], id = id), found)
  # Terms are those of the fit, of new bags too.
  both <- bag_gram(molecule ~ u + I(u * v), train, kernel = theta)
  expect_equal(predict(both, data),
               predict(bag_gram(lapply(bags, \(x) cbind(x[, 1],
                                                         x[, 1] * x[, 2])),
                                theta),
                       lapply(new, \(x) cbind(x[, 1], x[, 1] * x[, 2]))),
               tolerance = 1e-13, ignore_attr = TRUE)
  # A factor of the fit has levels that the new bags need not have.
  train$molecule <- factor(train$molecule)
  data$molecule <- factor(data$molecule)
  expect_equal(predict(bag_gram(molecule ~ u + v, train, kernel = theta),
                       data), found[, sort(names(bags))])
})

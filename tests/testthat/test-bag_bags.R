# Gram matrices of distributions against kme() of each bag.

bags <- some_bags()
theta <- kernel_rbf(1.3)
trimmed <- est_function(\(sample) {
  rank(rowMeans(as.matrix(sample))) / sum(seq_len(sample$n))
}, "ranked")

test_that("the reference values are met", {
  a <- reference_data("A")
  b <- reference_data("B")
  four <- list(a[1:8, ], a[9:25, ], b, a[1, , drop = FALSE])
  value <- \(name) reference_value("bags", name)
  square <- \(name) matrix(value(name), 4)
  theta2 <- value("theta2_median_pooled")
  g <- bag_gram(four)
  expect_near(g$embedding$sample$kernel$bandwidth^2, theta2, 1e-12)
  expect_near(unname(g$inner), square("gram_kme"), 1e-12)
  s <- bag_gram(four, estimator = "skmse")
  # The closed form loses digits of a share that is near 0.
  expect_near(s$shrinkage$alpha, value("skmse_alpha"), 1e-10)
  expect_near(unname(s$inner), square("gram_skmse"), 1e-10)
  # An amount of its own for each bag, told by its size.
  lambda <- value("fkmse_lambda")
  given <- est_function(\(sample) {
    own <- lambda[match(sample$n, vapply(four, nrow, 1L))]
    fkmse_weights_R(as.matrix(sample), own)
  })
  f <- bag_gram(four, estimator = given)
  expect_near(unname(f$inner), square("gram_fkmse"), 1e-9)
  noise <- matrix(value("mkme_sigma2"), ncol(a), 4, byrow = TRUE)
  m <- marginal_bags(g$embedding$sample, g$sizes, noise)
  expect_near(unname(m), square("gram_mkme"), 1e-10)
  p <- bag_gram(four, target = "pooled")
  expect_near(p$shrinkage$alpha, value("skmse_alpha_pooled_target"), 1e-10)
  expect_near(unname(p$inner), square("gram_skmse_pooled_target"), 1e-10)
  s2 <- value("level2_s2")
  r <- bag_gram(four, level2 = "rbf")
  expect_near(r$level2$bandwidth^2, s2, 1e-10)
  expect_near(unname(r$K), square("level2_rbf"), 1e-10)
  expect_near(unname(bag_gram(four, level2 = "cosine")$K),
              square("level2_cosine"), 1e-12)
})

test_that("each estimator is that of the bags one by one", {
  skip_on_cran()
  of <- list("kme", "skmse", "fkmse", "mkme", "mmkme", trimmed,
             est_skmse(select = "plugin"), est_fkmse(0.1),
             est_fkmse(select = "gcv"), est_skmse(0.3))
  for (estimator in of) {
    label <- if (is.list(estimator)) estimator$label else estimator
    g <- suppressWarnings(bag_gram(bags, theta, estimator))
    slow <- bags_R(bags, theta, estimator)
    # Searches for lambda and noise end within their own tolerance.
    expect_equal(g$inner, slow, tolerance = 1e-8, label = label)
    expect_identical(g$K, g$inner)
    expect_identical(g$inner, t(g$inner))
    expect_identical(dimnames(g$K), list(names(bags), names(bags)))
  }
})

test_that("amounts are those of each bag, and kept", {
  shown <- \(name, ...) {
    suppressWarnings(bag_gram(bags, theta, name, ...))$shrinkage
  }
  fits <- \(name) bag_fits_R(bags, theta, name)
  pick <- \(name, field) {
    found <- lapply(fits(name), `[[`, field)
    unname(vapply(found, \(v) if (is.null(v)) 0 else mean(v), 1))
  }
  own <- names(bags) != "b"
  table <- shown("skmse")
  expect_identical(row.names(table), names(bags))
  expect_identical(table$n, unname(vapply(bags, nrow, 1L)))
  expect_equal(table$alpha[own], pick("skmse", "alpha")[own])
  expect_equal(table$lambda, table$alpha / (1 - table$alpha))
  expect_identical(table["b", "alpha"], 0)
  table <- shown("fkmse")
  # A flat minimum: lambda is known to the root of the score's tolerance.
  expect_near(table$lambda[own], pick("fkmse", "lambda")[own], 1e-5)
  table <- shown("mkme")
  expect_near(table$noise[own], pick("mkme", "noise")[own], 1e-5)
  g <- suppressWarnings(bag_gram(bags, theta, "mmkme"))
  expect_identical(dim(g$noise), c(6L, 2L))
  expect_identical(colnames(g$noise), c("u", "v"))
  expect_equal(unname(rowMeans(g$noise)), g$shrinkage$noise)
})

test_that("each kernel of points will do", {
  skip_on_cran()
  own <- kernel_function(\(x, y) 1 / (1 + gram_R(new_kernel("sqdist", ""),
                                                  x, y)))
  for (kernel in c(native_kernels(2)[c("rbf_each", "laplace_l1", "laplace_l2",
                                       "matern32", "matern52", "linear",
                                       "poly2", "poly3")], list(own))) {
    for (estimator in c("kme", "fkmse")) {
      g <- bag_gram(bags, kernel, estimator)
      expect_near(g$inner, bags_R(bags, kernel, estimator), 1e-8)
    }
  }
  for (kernel in native_kernels(2)[c("rbf_each", "linear", "poly2", "poly3")]) {
    for (estimator in list(est_mkme(0.2), est_mmkme(c(0.1, 0.4)))) {
      g <- bag_gram(bags, kernel, estimator)
      # Noise that is given is also that of a bag of one point.
      slow <- kme_inner(lapply(bags, kme, kernel, estimator))
      expect_near(g$inner, slow, 1e-10)
    }
  }
})

test_that("bags of equal points are one point, whatever the estimator", {
  one <- bags
  one$d <- bags$d[1, , drop = FALSE]
  for (estimator in c("kme", "skmse", "mkme")) {
    g <- suppressWarnings(bag_gram(bags, theta, estimator))
    expect_equal(g$inner["d", ],
                 suppressWarnings(bag_gram(one, theta, estimator))$inner["d", ],
                 tolerance = 1e-8)
  }
  # As do all bags: embeddings are kernel values then.
  points <- lapply(1:4, \(i) matrix(c(i, i^2), 1))
  g <- bag_gram(points, theta)
  expect_near(unname(g$K), gram_R(theta, do.call(rbind, points)), 1e-15)
  for (estimator in c("skmse", "fkmse", "mkme", "mmkme")) {
    found <- suppressWarnings(bag_gram(points, theta, estimator))
    expect_near(found$K, g$K, 1e-15)
  }
})

test_that("the order of bags and of points does not matter", {
  set.seed(3)
  turn <- sample(6)
  mixed <- lapply(bags, \(x) x[sample(nrow(x)), , drop = FALSE])[turn]
  for (estimator in c("kme", "skmse", "fkmse", "mkme")) {
    g <- suppressWarnings(bag_gram(bags, theta, estimator, "rbf"))
    again <- suppressWarnings(bag_gram(mixed, theta, estimator, "rbf"))
    expect_near(again$K, g$K[turn, turn], 1e-7)
  }
  for (target in c("pooled", "neighbours", "aggregate")) {
    g <- bag_gram(bags, theta, target = target)
    again <- bag_gram(mixed, theta, target = target)
    expect_near(again$K, g$K[turn, turn], 1e-7)
  }
})

test_that("a result does not depend on threads, to the bit", {
  big <- kinds_of_bags(30, 40)$bags
  for (estimator in list("kme", "fkmse", est_mkme(0.1))) {
    one <- with_threads(1, bag_gram(big, theta, estimator))
    two <- with_threads(2, bag_gram(big, theta, estimator))
    expect_identical(one$K, two$K)
    new <- with_threads(1, predict(one, big[1:3]))
    expect_identical(new, with_threads(2, predict(two, big[1:3])))
  }
})

# --- What bags come as -------------------------------------------------------

test_that("a list, rows with an id, a data frame and a formula are one", {
  g <- bag_gram(bags)
  x <- pooled(bags)
  id <- factor(bag_ids(bags), names(bags))
  data <- data.frame(x, molecule = as.character(id), other = 1)
  same <- \(h) expect_identical(as.matrix(h), as.matrix(g))
  same(bag_gram(lapply(bags, as.data.frame)))
  same(bag_gram(x, id = id))
  same(bag_gram(x, id = as.character(id)))
  same(bag_gram(data[c("u", "v", "molecule")], id = "molecule"))
  same(bag_gram(data[c("u", "v")], id = data$molecule))
  same(bag_gram(molecule ~ u + v, data))
  same(bag_gram(molecule ~ . - other, data))
  same(bag_gram(id ~ u + v, data))
  # Rows of a bag need not stand together; bags come as they come first.
  set.seed(4)
  turn <- sample(nrow(x))
  h <- bag_gram(x[turn, ], id = as.character(id)[turn])
  expect_identical(names(h$sizes), unique(as.character(id)[turn]))
  expect_near(h$K[names(bags), names(bags)], g$K, 1e-12)
  # Levels of a factor have their own order.
  back <- factor(id, rev(levels(id)))
  expect_near(bag_gram(x[turn, ], id = back[turn])$K, g$K[6:1, 6:1], 1e-12)
  # Numbers, one column, vectors.
  lines <- lapply(bags, \(x) x[, 1])
  expect_identical(bag_gram(lines)$K,
                   bag_gram(unlist(lines), id = bag_ids(bags))$K)
  expect_identical(dimnames(bag_gram(unname(bags))),
                   list(as.character(1:6), as.character(1:6)))
  # Columns go by their names.
  bags$c <- bags$c[, 2:1]
  same(bag_gram(bags))
  names(bags)[3] <- ""
  expect_identical(names(bag_gram(bags)$sizes)[3], "3")
})

test_that("a gram of all points, with the bag of each, is as good", {
  set.seed(5)
  turn <- sample(nrow(pooled(bags)))
  x <- pooled(bags)[turn, ]
  id <- bag_ids(bags)[turn]
  points <- gram(x, theta)
  values <- as_gram(points$K)
  for (estimator in c("kme", "skmse", "fkmse")) {
    g <- bag_gram(x, theta, estimator, id = id)
    expect_near(bag_gram(points, estimator = estimator, id = id)$K, g$K, 1e-9)
    h <- bag_gram(values, estimator = estimator, id = id)
    expect_near(h$K, g$K, 1e-9)
  }
  expect_near(predict(bag_gram(points, id = id), bags[2:3]),
              bag_gram(bags, theta)$K[2:3, unique(id)], 1e-12)
  expect_error(predict(h, bags), "kernel values alone",
               class = "kernmean_error_input")
})

test_that("units are those of the pooled points", {
  wide <- lapply(bags, \(x) x * rep(c(1, 50), each = nrow(x)) + 7)
  x <- pooled(wide)
  z <- scale(x)
  white <- scale(x, scale = FALSE) %*% solve(chol(stats::cov(x)))
  id <- factor(bag_ids(bags), names(bags))
  for (estimator in c("kme", "fkmse", "mkme")) {
    make <- \(...) suppressWarnings(bag_gram(..., estimator = estimator))
    g <- make(wide, scale = TRUE)
    expect_near(g$K, make(z, id = id)$K, 1e-7)
    expect_near(predict(g, wide[6:4]), g$K[6:4, ], 1e-7)
    if (estimator != "mkme") {
      # Distances do not know of a rotation.
      g <- make(wide, scale = "whiten")
      expect_near(g$K, make(white, id = id)$K, 1e-7)
      expect_near(predict(g, wide[1:2]), g$K[1:2, ], 1e-7)
    }
  }
  expect_warning(bag_gram(wide), class = "kernmean_warning_units")
  expect_no_warning(bag_gram(wide, scale = FALSE))
})

# --- What takes the result ---------------------------------------------------

test_that("what takes a gram takes bags, and names come out", {
  kinds <- kinds_of_bags(16)
  g <- bag_gram(kinds$bags, level2 = "rbf")
  y <- factor(letters[kinds$kind])
  plain <- as_gram(unname(g$K))
  pca <- kme_pca(g, ncomp = 2)
  expect_identical(rownames(pca$scores), names(kinds$bags))
  expect_equal(unname(pca$scores), unname(kme_pca(plain, ncomp = 2)$scores))
  fda <- kme_fda(g, y)
  expect_equal(fda$error, kme_fda(plain, y)$error)
  fit <- kme(g, estimator = "skmse")
  expect_identical(names(predict(fit)), names(kinds$bags))
  expect_equal(fit$norm2, kme(plain, estimator = "skmse")$norm2)
  set.seed(6)
  hsic <- hsic_test(g, y, B = 19)
  set.seed(6)
  expect_equal(hsic$statistic, hsic_test(plain, y, B = 19)$statistic)
  # New bags, or their kernel values.
  new <- kinds_of_bags(5, seed = 8)$bags
  values <- predict(g, new)
  expect_near(predict(pca, new), predict(pca, values), 1e-12)
  expect_identical(rownames(predict(pca, new)), names(new))
  expect_equal(predict(fda, new)$class, predict(fda, values)$class)
  expect_near(predict(fit, new), predict(fit, values), 1e-12)
})

# --- update() ----------------------------------------------------------------

test_that("update() is the door with other arguments", {
  rbf <- bag_gram(bags, level2 = "rbf", bandwidth2 = 0.2)
  # Arguments of the old level are not those of the new one.
  expect_identical(update(rbf, level2 = "laplace")$level2$rule,
                   "median distance of the bags")
  f <- bag_gram(bags, estimator = "fkmse", lambda = 0.1)
  expect_equal(update(f, lambda = 0.5)$K,
               bag_gram(bags, estimator = "fkmse", lambda = 0.5)$K)
  # Units, and the columns of a formula, stay.
  wide <- lapply(bags, \(x) x * rep(c(1, 50), each = nrow(x)))
  scaled <- bag_gram(wide, scale = TRUE)
  expect_near(update(scaled, estimator = "skmse")$K,
              bag_gram(wide, scale = TRUE, estimator = "skmse")$K, 1e-12)
  data <- data.frame(pooled(bags), id = bag_ids(bags))
  h <- update(bag_gram(id ~ u + v, data), level2 = "poly")
  expect_near(predict(h, data[data$id %in% c("a", "c"), ]),
              h$K[c("a", "c"), ], 1e-12)
})

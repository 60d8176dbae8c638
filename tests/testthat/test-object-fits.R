# Damaged fields of sketches, operators, discriminants and machines: see
# helper-object.R.

x <- as.matrix(iris[c(1:6, 51:56), 1:2])
rownames(x) <- NULL
classes <- factor(rep(c("a", "b"), each = 6))
bags <- split(as.data.frame(x), rep(1:6, each = 2))
shown <- \(object) print(summary(object))

test_that("sketches and landmarks are used whole or not at all", {
  set.seed(1)
  l <- kme_landmarks(x, m = 3)
  expect_whole(l, list(print = print, plot = plot,
                       kme_sketch = \(l) kme_sketch(x, l)),
               2L, 3L, "variable")
  expect_whole(
    kme_sketch(x, l, groups = classes, bin = 2),
    list(print = print, summary = shown, "+" = \(s) s + s, "[" = \(s) s["a"],
         update = \(s) update(s, x, groups = classes), kme = kme,
         kme_sketch = \(s) kme_sketch(x, s),
         mmd_test = \(s) mmd_test(s, B = 19, progress = FALSE)), 3L, 11L,
    c("sums", "bins")
  )
  expect_whole(
    kme_sketch(x, l, groups = classes, weights = 1:12 / 78),
    list(kme_fda = kme_fda, kme_pca = kme_pca), depth = 1L
  )
  two <- suppressWarnings(kme_sketch(x, list(l, kme_landmarks(classes)),
                                     y = classes))
  expect_whole(two, list(kme_cov = kme_cov, hsic_test = \(s) {
    hsic_test(s, B = 19, progress = FALSE)
  }), 1L, 11L)
  expect_whole(suppressWarnings(summary(two)), list(print = print), 1L, 11L)
})

test_that("fits to sketches know what sketch they stand on", {
  set.seed(1)
  s <- kme_sketch(x, 3, groups = classes)
  new <- x[1:2, ]
  expect_whole(kme(s), list(print = print, predict = \(f) predict(f, new)),
               2L, 5L, "sample")
  expect_whole(kme_pca(s), list(print = print,
                                predict = \(f) predict(f, new)), 1L, 11L)
  expect_whole(kme_cov(s), list(print = print, predict = \(f) {
    predict(f, new, "value")
  }), 1L, 11L)
  expect_whole(kme_fda(s), list(print = print, predict = \(f) {
    predict(f, new)
  }), 1L, 11L)
})

test_that("kernel principal components are used whole or not at all", {
  fit <- kme_pca(x, ncomp = 2, covariance = "skmse")
  expect_whole(fit, list(
    print = print, predict = \(f) predict(f, x[1:2, ]), preimage = preimage,
    reconstruction_error = reconstruction_error
  ), 2L, 11L, "shrinkage")
  expect_whole(fit, list(
    summary = shown, coef = coef, update = \(f) update(f, ncomp = 1),
    plot = plot, screeplot = \(f) screeplot(f)
  ), 1L, 11L)
  expect_whole(summary(fit), list(print = print), 1L, 11L)
})

test_that("operators are used whole or not at all", {
  one <- kme_cov(x, estimator = "fkmse")
  two <- kme_cov(x, classes)
  all <- list(
    print = print, predict = \(f) predict(f, type = "value"), coef = coef,
    summary = shown, update = \(f) update(f, center = "skmse"), plot = plot,
    scores = \(f) plot(f, "scores")
  )
  expect_whole(one, c(all, selection = \(f) plot(f, "selection")), 1L, 11L)
  expect_whole(two, all, 1L, 11L)
  expect_whole(two, list(predict = \(f) predict(f, side = "right")), 3L, 1L,
               "variables")
  expect_whole(summary(two), list(print = print), 1L, 11L)
})

test_that("discriminants are used whole or not at all", {
  fit <- kme_fda(x, classes)
  expect_whole(fit, list(print = print, predict = predict, summary = shown),
               2L, 5L, "loo")
  expect_whole(fit, list(
    new = \(f) predict(f, x[1:2, ]), coef = coef,
    update = \(f) update(f, ridge = 0.5), plot = \(f) plot(f, n = 5),
    scores = \(f) plot(f, "scores")
  ), 1L, 11L)
  expect_whole(summary(fit), list(print = print), 1L, 11L)
})

test_that("shrunk grams, grams of bags and radii are whole or refused", {
  shrunk <- shrink_gram(gram(x))
  expect_whole(shrunk, list(print = print, summary = summary, new = \(g) {
    predict(kme(g), as.matrix(g)[1:2, ])
  }), 1L, 11L)
  smooth <- bag_gram(bags, estimator = "smooth")
  expect_whole(smooth, list(print = print, predict = \(g) {
    predict(g, bags[1:2])
  }), 2L, 11L, "embedding")
  pooled <- bag_gram(bags, target = "pooled", level2 = "rbf")
  expect_whole(pooled, list(
    predict = \(g) predict(g, bags[1:2]), summary = shown,
    update = \(g) update(g, level2 = "linear")
  ), 2L, 11L, c("embedding", "level2"))
  expect_whole(confint(kme(x), method = "bound"),
               list(print = print, as.double = as.double), 1L)
})

test_that("machines on bags are used whole or not at all", {
  fit <- smm(bags, 1:6, type = "ridge", bandwidth = "median")
  all <- list(
    print = print, summary = shown, predict = predict, fitted = fitted,
    coef = coef, residuals = residuals, plot = plot,
    update = \(f) update(f, ridge = 1)
  )
  expect_whole(fit, all, 1L, 11L)
  expect_whole(fit, list(new = \(f) predict(f, bags[1:2])), 2L, 1L, "problem")
  skip_if_not_installed("kernlab")
  fit <- smm(bags, rep(c("a", "b"), 3), cost = c(1, 10), folds = 2,
             bandwidth = "median", progress = FALSE)
  expect_whole(fit, c(all[c("print", "predict", "plot")],
                      cv = \(f) plot(f, "cv")), 1L, 11L)
  expect_whole(summary(fit), list(print = print), 1L, 11L)
})

test_that("damage that no check refuses is found", {
  toy <- structure(list(a = 1, b = list(c = 2)), class = "toy")
  faults <- object_faults(toy, list(get = \(x) log(x$a) + x$b$c))
  expect_true(any(startsWith(faults, "a word: get()")))
  expect_true(any(startsWith(faults, "b$c word: get()")))
  expect_true("a number: get(): $ operator is invalid for atomic vectors" %in%
                faults)
  nan <- object_faults(structure(list(a = 1), class = "toy"),
                       list(get = \(x) if (is.null(x$a)) NaN else 0), 1L)
  expect_identical(nan[-2L], c("no field: get(): NaN", "a gone: get(): NaN",
                               "a null: get(): NaN"))
})

# Estimators as objects: names, arguments, the user's own, and that every door
# takes them alike.

rbf <- kernel_rbf(1.2)
x <- random_points(24, 3)
same_fit <- function(a, b) {
  for (field in c("weights", "lambda", "noise", "fitted", "norm2", "minimum")) {
    expect_identical(a[[field]], b[[field]])
  }
}

test_that("a name stands for the object with its defaults", {
  named <- list(kme = est_kme(), skmse = est_skmse(), fkmse = est_fkmse(),
                mkme = est_mkme(), mmkme = est_mmkme())
  for (name in names(named)) {
    same_fit(kme(x, rbf, name), kme(x, rbf, named[[name]]))
    expect_identical(kme(x, rbf, name)$estimator, named[[name]])
  }
  expect_identical(read_estimator("R-KMSE"), est_skmse())
})

test_that("the dots of kme() are arguments of the constructor", {
  target <- kme(x + 1, rbf)
  same_fit(kme(x, rbf, "skmse", lambda = 0.3),
           kme(x, rbf, est_skmse(lambda = 0.3)))
  same_fit(kme(x, rbf, "skmse", select = "plugin", target = target),
           kme(x, rbf, est_skmse(select = "plugin", target = target)))
  same_fit(kme(x, rbf, "fkmse", select = "gcv"),
           kme(x, rbf, est_fkmse(select = "gcv")))
  same_fit(kme(x, rbf, "mmkme", noise = 1:3), kme(x, rbf, est_mmkme(1:3)))
  same_fit(kme(x, rbf, "kme", lambda = NULL), kme(x, rbf))
})

test_that("an estimator prints itself in one line", {
  many <- stats::setNames(1:40 / 7, paste0("column", 1:40))
  expect_snapshot({
    est_kme()
    est_skmse()
    est_skmse(select = "plugin", target = kme(x, rbf))
    est_fkmse(lambda = 1 / 3)
    est_fkmse(select = "gcv")
    est_mkme()
    est_mmkme(noise = c(0.1, 0, 2))
    est_mmkme(noise = many)
    est_function(\(sample) rep(0, sample$n), "nothing")
  })
})

test_that("constructors refuse what they cannot be", {
  lines <- refusals(expression(
    est_skmse(lambda = -1), est_skmse(lambda = 1, select = "loocv"),
    est_skmse(select = "gcv"), est_fkmse(select = "plugin"),
    est_fkmse(select = "gcv", target = kme(x, rbf)), est_mkme(noise = 1:2),
    est_mmkme(noise = c(1, NA)), est_mmkme(noise = 1, select = "loocv"),
    est_mkme(select = "gcv"), est_function(1), est_function(\() 1),
    est_function(mean, 1), kme(x, rbf, est_skmse),
    kme(x, rbf, est_skmse(), lambda = 1), kme(x, rbf, est_skmse(), 3),
    kme(x, rbf, \(s) 1:2), kme(x, rbf, \(s) rep(NA_real_, s$n)),
    kme(x, rbf, \(s) rep(1, s$n), weights = 1:24),
    kme(x, rbf, "mmkme", noise = 1:2), kme(x, rbf, kernal = 2)
  ), env = environment())
  expect_snapshot(writeLines(lines))
})

test_that("a function of the sample is an estimator", {
  k <- gram_R(rbf, x)
  own <- function(sample) rowSums(as.matrix(sample)^2) / sample$n
  weights <- rowSums(k^2) / 24
  z <- random_points(5, 3)
  for (estimator in list(own, est_function(own, "squares"))) {
    fit <- kme(x, rbf, estimator)
    expect_near(fit$weights, weights, 1e-13)
    expect_near(predict(fit, z), drop(gram_R(rbf, z, x) %*% weights), 1e-13)
    expect_near(fit$norm2, drop(weights %*% k %*% weights), 1e-13)
  }
  expect_output(print(fit), "Kernel mean (squares)", fixed = TRUE)
  # A gram, and values of which the points are not known.
  expect_equal(kme(gram(x, rbf), estimator = own)$weights, weights)
  expect_equal(kme(as_gram(k), estimator = own)$weights, weights)
})

test_that("an estimator of the user's own that is one of ours is that one", {
  skip_on_cran()
  ours <- list(
    est_kme(), est_skmse(lambda = 0.2), est_fkmse(lambda = 0.5)
  )
  for (estimator in ours) {
    twin <- est_function(\(sample) {
      kme(as_gram(as.matrix(sample)), estimator = estimator)$weights
    })
    expect_near(kme(x, rbf, twin)$norm2, kme(x, rbf, estimator)$norm2, 1e-10)
    a <- kme_pca(x, rbf, 3, center = estimator)
    b <- kme_pca(x, rbf, 3, center = twin)
    expect_near(b$values, a$values, 1e-9)
    expect_near(b$scores, a$scores, 1e-8)
    a <- kme_pca(x, rbf, 3, covariance = estimator)
    b <- kme_pca(x, rbf, 3, covariance = twin)
    expect_near(b$values, a$values, 1e-9)
    a <- kme_cov(x[, 1:2], x[, 3], kernel = rbf, estimator = estimator)
    b <- kme_cov(x[, 1:2], x[, 3], kernel = rbf, estimator = twin)
    expect_near(b$values[1:5], a$values[1:5], 1e-8)
    draw <- \(f, ...) {
      set.seed(4)
      f(..., B = 39)
    }
    # Of two samples a function's draws would be others.
    given <- draw_columns(24, 39)
    a <- draw(mmd_set, x[1:12, ], x[13:24, ], rbf, estimator,
              permutations = given)
    b <- draw(mmd_set, x[1:12, ], x[13:24, ], rbf, twin, permutations = given)
    expect_near(b$replicates, a$replicates, 1e-9)
    expect_identical(b$p.value, a$p.value)
    a <- draw(hsic_test, x[, 1], x[, 2:3], rbf, rbf, estimator)
    b <- draw(hsic_test, x[, 1], x[, 2:3], rbf, rbf, twin)
    expect_near(b$replicates, a$replicates, 1e-9)
    expect_identical(b$p.value, a$p.value)
    set.seed(2)
    a <- kme_density(x, kernel_rbf(), estimator, m = 3, nstart = 2)
    set.seed(2)
    b <- kme_density(x, kernel_rbf(), twin, m = 3, nstart = 2)
    expect_near(b$weights, a$weights, 1e-6)
  }
})

test_that("update() changes the estimator or its arguments", {
  fit <- kme(x, rbf, "fkmse")
  expect_identical(update(fit, lambda = 0.1)$estimator, est_fkmse(0.1))
  expect_identical(update(fit, select = "gcv")$estimator,
                   est_fkmse(select = "gcv"))
  given <- update(fit, lambda = 0.1)
  expect_identical(update(given, select = "loocv")$lambda, fit$lambda)
  expect_identical(update(given, estimator = "skmse")$estimator, est_skmse())
  # One of the user's own has nothing to change, and says so without a warning.
  own <- kme(x, rbf, \(sample) rep(1, sample$n))
  expect_silent(again <- update(own, x = 2 * x))
  expect_identical(again$estimator, own$estimator)
  expect_error(update(own, lambda = 1), "est_function()", fixed = TRUE,
               class = "kernmean_error_input")
})

test_that("arguments of estimators are refused by other doors, with a hint", {
  y <- x[, 1]
  for (call in expression(
    mmd_test(x, x, lambda = 1), hsic_test(x, y, select = "loocv"),
    kme_pca(x, rbf, lambda = 1), kme_cov(x, y, noise = 1),
    kme_density(x, lambda = 1)
  )) {
    expect_error(eval(call), "est_", class = "kernmean_error_input")
  }
})

test_that("S-KMSE has one share for means and for operators", {
  share <- est_share(est_skmse())
  k <- gram_R(rbf, x)
  expect_equal(share(mean(k), mean(diag(k)), 24), skmse_alpha_R(k, "loocv"))
  expect_identical(share(c(0.2, -1e-20), 1, 10),
                   c(share(0.2, 1, 10), share(0, 1, 10)))
  # All points equal: nothing to shrink.
  expect_identical(share(1, 1, 10), 0)
})

test_that("a target from the points themselves is warned of", {
  expect_warning(kme(x, rbf, "skmse", target = kme(x, rbf)), "leave-one-out",
                 class = "kernmean_warning")
  expect_silent(kme(x, rbf, "skmse", lambda = 1, target = kme(x, rbf)))
  expect_silent(kme(x, rbf, "skmse", target = kme(x + 1, rbf)))
  expect_error(est_skmse(target = 3), "not 3", class = "kernmean_error_input")
})

local({
  set.seed(1)
  x <- matrix(rnorm(24), 12, dimnames = list(NULL, c("a", "b")))
  target <- list(weights = 1, means = matrix(0, 1, 2), covariances = diag(2))
  new <- x[1:2, ]

  test_that("a fit with damaged fields is refused or does what it can", {
    methods <- list(
      print = print, coef = coef, predict = predict,
      predict_new = \(f) predict(f, new), plot = plot,
      plot_weights = \(f) plot(f, type = "weights"), summary = \(f) {
        print(summary(f))
      }, update = \(f) update(f, kernel = kernel_rbf(1)),
      inner = \(f) kme_inner(f, f), frame = as.data.frame, nobs = nobs,
      risk = \(f) kme_risk(f, target)
    )
    fits <- list(
      kme(x, kernel_rbf(2), "skmse", target = target),
      kme(gram(x), estimator = "fkmse"), kme(x, estimator = "mmkme"),
      kme(x, kernel_laplace(), "stack"),
      kme(~ a + b, as.data.frame(x), estimator = "smooth", scale = TRUE)
    )
    expect_whole(kme(x), methods)
    for (fit in fits) {
      # A mixture has no embedding in the space of every kernel.
      closed <- fit$kernel$family == "rbf"
      expect_whole(fit, methods[closed | names(methods) != "risk"], 1L)
    }
    expect_whole(kme(x), list(confint = confint,
                                weights = as_weights))
  })

  test_that("a damaged kernel is refused at every door", {
    doors <- list(
      print = print, matrix = \(k) kernel_matrix(x, kernel = k),
      gram = \(k) gram(x, k), kme = \(k) kme(x, k), pca = \(k) kme_pca(x, k),
      mmd = \(k) mmd_test(x, x + 1, k, B = 9),
      hsic = \(k) hsic_test(x, x + new[1, ], kernel = k, B = 9)
    )
    for (kernel in list(kernel_rbf(), kernel_laplace(2), kernel_poly(),
                        kernel_function(\(x, y) tcrossprod(x, y)),
                        kme(x, scale = "whiten")$kernel)) {
      expect_whole(kernel, doors)
    }
    other <- kernel_rbf(1)
    other$code <- 99L
    expect_error(kernel_matrix(x, kernel = other),
                 class = "kernmean_error_input")
  })

  test_that("a damaged gram or estimator is refused", {
    grams <- list(print = print, plot = plot, kme = kme, matrix = as.matrix,
                  summary = \(g) print(summary(g)), size = dim,
                  spectrum = gram_spectrum,
                  inner = \(g) kme(g, estimator = "skmse"))
    expect_whole(gram(x, kernel_rbf(1), scale = TRUE), grams, 1L)
    estimators <- list(
      print = print, kme = \(e) kme(x, estimator = e),
      mmd = \(e) mmd_test(x, x + 1, estimator = e, B = 9)
    )
    for (estimator in list(est_skmse(), est_fkmse(0.1), est_mmkme(1),
                           est_smooth(0.4, 1),
                           est_stack(list(est_kme(), est_skmse(1))),
                           est_function(\(s) rep(1 / s$n, s$n)))) {
      expect_whole(estimator, estimators)
    }
  })

  test_that("messages say which field must be what, and what came", {
    fit <- kme(x)
    spoilt <- function(field, value) {
      fit[field] <- list(value)
      fit
    }
    deep <- fit
    deep$sample$x <- "a"
    long <- spoilt("weights", rep(1, 13))
    expect_snapshot(cat(refusals(alist(
      print(structure(list(), class = "kme")),
      print(structure(1, class = "kme")),
      predict(spoilt("weights", c(NA, rep(1, 11)))),
      predict(spoilt("norm2", "a")),
      predict(deep), predict(long),
      kme(x, structure(list(), class = "kernmean_kernel"))
    )), sep = "\n"))
  })
})

test_that("what a door gives is whole, whatever the levels and the estimator", {
  d <- data.frame(v = 1:12 + 0.5, g = addNA(factor(rep(c(NA, "a", "b"), 4))))
  k <- kernel_rbf(3)
  for (fit in list(mmd_test(v ~ g, d, kernel = k, B = 19),
                   hsic_test(v ~ g, d, B = 19), kme_cov(d$v, d$g))) {
    expect_output(print(fit))
  }
  mine <- est_skmse()
  class(mine) <- c("est_mine", class(mine))
  expect_equal(kme(d$v, k, mine)$weights, kme(d$v, k, "skmse")$weights)
  five <- matrix(rnorm(60), 20) %*% matrix(rnorm(15), 3)
  expect_output(print(kme(five, scale = "whiten")))
})

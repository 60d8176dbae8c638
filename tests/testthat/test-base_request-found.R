has_nan <- function(x) {
  if (is.list(x)) {
    any(vapply(unclass(x), has_nan, NA))
  } else {
    is.numeric(x) && anyNA(x) && any(is.nan(x))
  }
}

# What tools/fuzz.R found, call by call: each ends in a result without NaN or in
# an error of ours, and R warns of nothing.
local({
  set.seed(3)
  x <- matrix(rnorm(24), 12, dimnames = list(NULL, c("a", "b")))
  g <- rep(1:2, 6)
  d <- data.frame(x, g = gl(2, 6), date = as.Date("2020-01-01") + 1:12)
  gram_x <- gram(x, kernel_rbf(1))
  pca <- kme_pca(x, ncomp = 2)
  test <- mmd_test(x, x + 1, kernel_rbf(1), B = 19)
  several <- hsic_test(list(u = x[, 1], v = x[, 2], w = g), B = 19)
  bags <- factor(c("a", NA, "b"), exclude = NULL)[rep(1:3, 4)]
  tiny <- quietly(rkhs_iv(x[, 1], y = 1e-200 * x[, 2], z = x[, 2]))
  malformed <- structure(1:3, class = "factor")
  integer64 <- structure(1.5e-323, class = "integer64")

  ends_well <- function(call) {
    label <- paste(deparse(call), collapse = " ")
    label <- substr(label, 1L, 80L)
    outcome <- tryCatch(
      if (has_nan(eval(call))) "NaN" else "result",
      kernmean_warning = \(w) "ours", kernmean_error = \(e) "ours",
      warning = conditionMessage, error = conditionMessage
    )
    expect_in_outcomes(outcome, label)
  }

  test_that("numbers that are no numbers, and sizes", {
    for (call in alist(
      gram(matrix(1e300, 1, 3), kernel_laplace(1e-310)),
      gram(x, kernel_poly(1e9, 0)),
      kernel_matrix(x, kernel = kernel_poly(2^30)),
      print(kme(x), digits = integer64), print(kme(x), digits = 0),
      print(test, digits = -2147483647), print(test, digits = "a"),
      kme(data.frame(a = c(1e-300, 1, 1e300), b = 1:3, c = c(5, 1e150, 2)),
          kernel_rbf(1), est_mmkme()),
      kme(matrix(c(1e308, -1e308, 0, 1, 2, 5), 3), scale = "whiten"),
      kme(x, estimator = "\xff"), gram(x, kernel_rbf(1), undefined_function()),
      kme_pca(x, center = `if`), kernel_function(`if`)
    )) {
      utils::capture.output(ends_well(call))
    }
  })

  test_that("formulas", {
    for (call in alist(
      kme(nothing = ~ a, data = d), mmd_test(nothing = a ~ g, data = d),
      kme_pca(~ a + b, a > 0, na.fail), kme(~ a, d, subset = 1:1e9),
      kme(~ a, d, subset = NA_real_), kme(~ a, d, subset = -(1:3)),
      kme(~ a, d, subset = 13), kme(~ date, d, scale = NA),
      mmd_test(cbind(a, zz) ~ g, d), mmd_test(date ~ g, d, scale = NA),
      hsic_test(a ~ b, d, kernel_y = quote(a + b), B = 19),
      kme_cov(~ a + b, d, estimator = stats::na.fail)
    )) ends_well(call)
    expect_length(kme(~ a + b, d, subset = -(1:3))$weights, 9L)
  })

  test_that("grams, groups and new data", {
    for (call in alist(
      predict(kme_density(x, m = 2), new.env()),
      confint(kme_effect(a ~ b, ~ g, d), parm = mean),
      kme_sketch(x, landmarks = stats::dist(x)),
      kme_fda(x, rep(c("\xff", "a"), 6)),
      kme_sketch(x, landmarks = 5, groups = rep(c("\xff", "a"), 6)),
      quietly(hsic_test(shrink_gram(gram_x), g, blocks = 1:12, B = 9)),
      gram_x[NA, ], gram_x["1e10"], gram_x[["K"]][1],
      mmd_test(as_gram(diag(3)), malformed),
      plot(kme_pca(x), groups = quote(a)), plot(kme_pca(x), groups = sum),
      reconstruction_error(pca, ncomp = 1, newdata = table(c("a", "b", "a"))),
      update(test, kernel = 2), update(kme(x), kernel = quote(a + b)),
      as.data.frame(several), iv_control(landmarks = integer64),
      mmd_test(date ~ poly(a, 2), d, B = 19), mmd_test(a ~ cbind(g, g), d),
      kme_density(x, m = "two", start = kme_density(x, m = 2, nstart = 1)),
      smm(list(x, -x), 1:2, folds = structure(1, class = "odd")),
      smm(list(x, -x, x), 1:3, folds = structure(1:3, class = "odd")),
      kme_fda(x, grouping = g, ridge = 1e308),
      smm(list(matrix(1e154 * x[1:4]), x[5:6, 1, drop = FALSE],
               1e153 * x[7:9, 1, drop = FALSE]), 1:3, type = "ridge"),
      summary(tiny),
      kme_cov(a + b ~ g, `names<-`(d, c("a", "b", NA, "date"))),
      bag_gram(bags ~ a, d),
      smm(lapply(1:6, \(i) x[i + 0:4, ]), gl(2, 3), cost = 1e-300,
          kernel = kernel_function(\(x, y) 1e-200 * exp(tcrossprod(x, y))))
    )) {
      grDevices::pdf(NULL)
      ends_well(call)
      grDevices::dev.off()
    }
  })

  test_that("rows whose names are partly missing are augmented", {
    skip_if_not_installed("generics")
    named <- `rownames<-`(x, c("r", NA, letters[1:10]))
    expect_identical(dim(generics::augment(kme_pca(named, ncomp = 1), x)),
                     c(12L, 3L))
  })

  test_that("pictures", {
    far <- x + 1e12
    skip_if_not_installed("ggplot2")
    drawn <- ggplot2::ggplot_build(
      ggplot2::autoplot(kme_density(far, m = 2, nstart = 1))
    )
    expect_s3_class(drawn, "ggplot_built")
  })
})

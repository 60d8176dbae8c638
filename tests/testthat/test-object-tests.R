# Tests, densities, fits with instruments and data sets with damaged fields:
# each method says what is wrong, or does what it can.

local({
  set.seed(1)
  x <- matrix(rnorm(16), 8, dimnames = list(NULL, c("a", "b")))
  y <- matrix(rnorm(14), 7, dimnames = list(NULL, c("a", "b")))
  groups <- gl(3, 5, labels = c("u", "v", "w"))
  both <- rbind(x, y)
  shown <- \(object) print(summary(object))
  quiet <- suppressWarnings
  named <- function(names) {
    sapply(names, get, envir = environment(), simplify = FALSE)
  }

  # Every method looks at its object: without fields, none gets anywhere.
  expect_closed <- function(object, methods) {
    class <- class(object)
    for (bare in list(structure(list(), class = class),
                      structure(1, class = class))) {
      for (method in names(methods)) {
        expect_error(methods[[method]](bare),
                     "must be a whole object of class",
                     class = "kernmean_error_input",
                     label = paste0(method, "() of '", class[1L], "'"))
      }
    }
  }

  # Those of other packages, where these are installed.
  others <- function(generics, picture = TRUE) {
    has <- \(package) requireNamespace(package, quietly = TRUE)
    c(
      if (has("generics")) {
        sapply(generics, getExportedValue, ns = "generics", simplify = FALSE)
      },
      if (picture && has("ggplot2")) list(autoplot = ggplot2::autoplot)
    )
  }

  of_tests <- named(c("print", "summary", "plot", "update", "nobs",
                      "as.data.frame"))

  test_that("a damaged two-sample test is refused", {
    test <- quiet(mmd_test(x, y, B = 3))
    expect_closed(test, c(of_tests, others(c("tidy", "glance", "augment"))))
    expect_closed(summary(test), named("print"))
    expect_whole(test, list(summary = shown), 1L)
    expect_whole(quiet(mmd_test(x, y, filter = TRUE, ratio = 1, B = 2)),
                 list(frame = as.data.frame), 1L)
    expect_whole(quiet(mmd_test(both, "normal", B = 2)),
                 list(update = \(t) update(t, null = t)), 1L)
    several <- quiet(mmd_test(as_gram(tcrossprod(both)), groups, B = 2))
    expect_whole(several, list(frame = as.data.frame), 1L)
    expect_closed(quiet(mmd_test(x, "normal", B = 2)),
                  c(of_tests, others("tidy"),
                    lend = \(t) mmd_test(x, "normal", null = t)))
  })

  test_that("a damaged test of independence is refused", {
    test <- quiet(hsic_test(both, groups, B = 2))
    expect_closed(test, c(of_tests, others(c("tidy", "glance"))))
    expect_whole(test, list(summary = shown), 1L)
    mixed <- quiet(hsic_test(list(a = data.frame(both, groups), b = 1:15,
                                  c = groups), B = 2))
    expect_whole(mixed$variables$a, list(summary = \(variable) {
      mixed$variables$a <- variable
      print(summary(mixed))
    }))
    expect_identical(names(as.data.frame(mixed))[1:3],
                     c("estimate", "statistic", "p.value"))
  })

  test_that("damaged comparisons are refused", {
    all <- quiet(mmd_test(as.data.frame(both)[["a"]] ~ groups, pairwise = TRUE,
                          B = 2))
    expect_closed(all, c(
      named(c("print", "summary", "plot", "update", "nobs", "as.data.frame",
              "as.matrix")),
      as.dist = stats::as.dist, others(c("tidy", "glance", "augment"))
    ))
    expect_closed(summary(all), named("print"))
    expect_whole(all, list(summary = shown, dist = as.dist), 1L)
    expect_whole(quiet(update(all, control = "u")), list(plot = plot), 1L)
  })

  test_that("a damaged density is refused", {
    fit <- kme_density(x, m = 2, nstart = 1)
    expect_closed(fit, c(
      named(c("print", "summary", "plot", "update", "coef", "predict",
              "logLik", "nobs", "simulate", "fitted", "as.data.frame")),
      others(c("tidy", "glance", "augment")),
      model = \(f) mmd_test(y, f, B = 2), risk = \(f) kme_risk(kme(y), f),
      start = \(f) kme_density(x, start = f)
    ))
    expect_closed(summary(fit), named("print"))
    expect_whole(fit, list(summary = shown, simulate = simulate), 1L)
    moved <- kme_density(x, m = 2, nstart = 1, scale = FALSE, steps = 3,
                         optimize = "all")
    expect_whole(moved, list(print = print), 1L)
    expect_whole(moved$start, list(print = \(start) {
      moved$start <- start
      print(moved)
    }))
    expect_error(kme_density(x, estimator = structure(list(), class = "kme")),
                 "'estimator' must be a whole object",
                 class = "kernmean_error_input")
  })

  test_that("a damaged fit with instruments is refused", {
    z <- both[, 1]
    fit <- quiet(rkhs_iv(z, both[, 2], both[15:1, 1], folds = 2))
    expect_closed(fit, c(
      named(c("print", "summary", "plot", "update", "coef", "predict",
              "residuals", "nobs", "fitted", "as.data.frame")),
      formula = stats::formula, others(c("tidy", "glance", "augment"))
    ))
    expect_closed(summary(fit), named("print"))
    expect_whole(fit, list(summary = shown, new = \(f) predict(f, 1:2)), 1L)
    nested <- quiet(rkhs_iv_nested(z, groups, z, both[15:1, 1], both[, 2],
                                   mu_g = 0.1, mu_h = 0.1, features = 3))
    expect_closed(nested, list(predict = predict))
    expect_whole(nested, list(
      print = print, new = \(f) predict(f, list(a = 1:2, b = groups[1:2]))
    ), 1L)
    preset <- preset_nnpiv(alpha_scale = 1)
    door <- \(p) rkhs_iv(1:4, 1:4, 1:4, preset = p, folds = 2)
    expect_closed(preset, list(print = print, door = door))
    expect_whole(preset, list(print = print, door = door))
  })

  test_that("a damaged data set, sample or estimator is refused", {
    data <- structure(list(
      x = cbind(x, c = 1), class = gl(2, 4), name = "wine", columns = "real",
      standardized = FALSE, constant = "c", words = character(),
      source = "https://a.b/c", files = "/c", terms = "free"
    ), class = "uci_data")
    expect_whole(data, list(print = print, frame = as.data.frame))
    expect_whole(kme(x)$sample, list(print = print, matrix = as.matrix))
    expect_closed(kme(x)$sample, list(print = print, matrix = as.matrix))
    expect_closed(est_skmse(), list(print = print))
  })

  test_that("names of rows are as many as rows, and different", {
    frame <- \(names) as.data.frame(kme(x), row.names = names)
    expect_identical(rownames(frame(letters[1:8])), letters[1:8])
    for (names in list("a", rep("a", 8), list(1), NA, sum)) {
      expect_error(frame(names), "'row.names' must be NULL or 8 different",
                   class = "kernmean_error_input")
    }
  })
})

local({
  set.seed(1)
  n <- 12
  d <- data.frame(x = rnorm(n), y = rnorm(n), g = gl(2, n / 2),
                  date = as.Date("2020-01-01") + seq_len(n), s = letters[1:n])
  d$list <- as.list(seq_len(n))
  d$lt <- as.POSIXlt("2020-01-01", tz = "UTC") + seq_len(n)
  d$z <- complex(real = seq_len(n))
  doors <- list(
    kme = kme, kme_pca = kme_pca, kme_cov = kme_cov, kme_fda = kme_fda,
    kme_density = \(...) kme_density(..., m = 2),
    mmd_test = \(...) mmd_set(..., B = 19),
    hsic_test = \(...) hsic_set(..., B = 19), rkhs_iv = rkhs_iv,
    smm = \(...) smm(..., id = rep(1:4, 3)), bag_gram = bag_gram,
    kme_landmarks = \(...) kme_landmarks(..., m = 5),
    kme_sketch = \(...) kme_sketch(..., landmarks = 5)
  )

  outcome <- function(door, ...) {
    tryCatch(suppressWarnings({
      door(...)
      "result"
    }), error = \(e) if (inherits(e, "kernmean_error")) "ours" else
      conditionMessage(e))
  }

  test_that("what R says of a formula or its variables is an error of ours", {
    formulas <- list(
      ~ zz, ~ date, ~ list, ~ lt, ~ z, ~ x + NA, ~ NA, ~ NULL, ~ 3, ~ "x",
      ~ x[1:3], ~ mean(x), ~ sort, ~ quote(x), ~ d$x, ~ stop("no"), ~ .,
      NULL ~ g, list ~ g, lt ~ g, date ~ g, zz ~ g, x ~ list, x ~ y ~ g,
      s ~ g, x ~ zz, g ~ ., x ~ 0, x | g ~ y
    )
    for (name in names(doors)) {
      for (formula in formulas) {
        expect_in_outcomes(outcome(doors[[name]], formula, d),
                           paste(name, deparse1(formula)))
      }
    }
  })

  test_that("data that is no data frame is an error of ours", {
    bad <- list(3, "a", NA, TRUE, as.matrix(d[1:2]), sort, quote(x),
                list(1:3), list(x = 1:3), list(), d[0, ], d[, 0], new.env(),
                structure(list(), class = "data.frame"))
    for (name in names(doors)) {
      for (data in bad) {
        for (formula in list(~ x + y, x ~ g)) {
          expect_in_outcomes(outcome(doors[[name]], formula, data),
                             paste(name, class(data)[1L]))
        }
      }
    }
  })

  test_that("an environment or a list serves as a data frame", {
    fit <- kme(~ x + y, d)
    expect_equal(kme(~ x + y, as.list(d[1:2]))$norm2, fit$norm2)
    expect_equal(kme(~ x + y, list2env(d[1:2]))$norm2, fit$norm2)
    expect_equal(mmd_set(x ~ g, list2env(d[c("x", "g")]), B = 19)$statistic,
                 mmd_set(x ~ g, d, B = 19)$statistic)
  })

  test_that("subset is evaluated once, as are data", {
    set.seed(2)
    rows <- sample(n, 5)
    set.seed(2)
    drawn <- kme(~ x + y, d, subset = sample(n, 5))
    expect_equal(drawn$sample$x, as.matrix(d[rows, c("x", "y")]),
                 ignore_attr = "dimnames")
    count <- 0
    counted <- \(value) {
      count <<- count + 1
      value
    }
    kme(~ x + y, counted(d), subset = counted(1:6))
    expect_equal(count, 2)
    expect_equal(kme(~ x, d, subset = c("2", "3"))$sample$n, 2)
    expect_equal(kme(~ x, d, c(1, 1, 2))$sample$n, 3)
    expect_equal(kme(~ x, d, subset = x > 0)$sample$n, sum(d$x > 0))
  })

  test_that("new data must have a value of each variable for each row", {
    other <- rnorm(n)
    fit <- kme(~ x + other, d)
    expect_length(predict(fit, cbind(d, other = 1)), n)
    expect_error(predict(kme(~ x + exp(other), d), cbind(d, other = 1)[1:3, ]),
                 NA)
    k <- 1:3
    expect_error(predict(kme(~ x + sum(k), d, weights = rep(1, n)), d),
                 class = "kernmean_error_input")
  })

  test_that("messages say what is wrong with the formula", {
    expect_snapshot(cat(refusals(alist(
      kme(~ zz, d), kme(~ list, d), kme(~ x[1:3] + y, d), kme(~ x, 3),
      mmd_test(NULL ~ g, d), hsic_test(y ~ zz, d),
      kme(~ x, d, na.action = "nothing"), kme(~ x, d, subset = c("2", "no")),
      kme(~ x, d, subset = gl(2, 6))
    )), sep = "\n"))
  })
})

test_that("no name of an argument is taken for one of a formula's own", {
  d <- data.frame(x = c(1, 3, 4, 7), g = c(1, 1, 2, 2))
  for (name in c("h", "c")) {
    argument <- stats::setNames(list(1), name)
    for (door in list(kme_pca, kme_density)) {
      refused(do.call(door, c(~ x, list(d), argument)),
              paste0("unused argument: '", name))
    }
    for (door in list(mmd_test, mmd_pairwise)) {
      refused(do.call(door, c(x ~ g, list(d), argument)),
              paste0("unused argument: '", name))
    }
  }
  smooth <- kme(~ x, d, estimator = "smooth", h = 0.2)
  expect_identical(smooth$h, 0.2)
})

test_that("an offset, which no door has, is refused by all", {
  d <- data.frame(x = c(1, 3, 4, 7), y = c(2, 1, 5, 3), g = c(1, 1, 2, 2))
  for (call in expression(
    kme(~ offset(x) + y, d), kme_pca(~ offset(x) + y, d),
    kme_fda(g ~ offset(x) + y, d), hsic_test(y ~ offset(x) + x, d),
    kme_sketch(~ x + offset(y), d), rkhs_iv(y ~ offset(x) + x | g, d)
  )) {
    refused(eval(call), "no .*offset\\(\\)")
  }
})

test_that("tests take their formula by name", {
  d <- data.frame(x = c(1, 3, 4, 7), g = c(1, 1, 2, 2))
  run <- \(...) suppressWarnings(mmd_test(..., B = 19)$statistic)
  expect_identical(run(formula = x ~ g, data = d), run(x ~ g, d))
  refused(mmd_test(), "'x' must be given")
})

test_that("weights of a formula are looked up in its data, as rows are", {
  d <- data.frame(a = c(1, 5, NA, 2), w = c(0.2, 0.3, 0.4, 0.1))
  kept <- c(1, 2, 4)
  want <- kme(d$a[kept], kernel_rbf(1), weights = d$w[kept])
  got <- kme(~ a, d, na.action = na.omit, kernel = kernel_rbf(1), weights = w)
  expect_identical(got$weights, want$weights)
  expect_identical(unname(fitted(got)), unname(fitted(want)))
  refused(kme(~ a, d[kept, ], weights = nosuch), "object 'nosuch' not found")
  # They are no coordinate, and those of other rows are given anew.
  all <- kme(~ ., d[kept, ], weights = w, kernel = kernel_rbf(1))
  expect_identical(colnames(all$sample$x), "a")
  refused(update(all, data = d[1:2, ]), "'weights' must be given with new data")
  expect_identical(update(all, data = d[1:2, ], weights = c(0.5, 2))$weights,
                   c(0.5, 2))
})

test_that("blocks are a column by name, in quotes or as a formula", {
  d <- data.frame(x = c(1, 3, 4, 7, 9, 5), g = rep(1:2, 3), b = gl(3, 2))
  for (test in c(mmd_test, hsic_test, mmd_pairwise)) {
    run <- function(blocks) {
      set.seed(1)
      call <- bquote(test(x ~ g, d, B = 19, blocks = .(blocks)))
      suppressWarnings(as.data.frame(eval(call)))
    }
    expect_identical(run("b"), run(quote(b)))
    expect_identical(run(quote(~ b)), run(quote(b)))
    refused(run(quote(g ~ b)), "must be|'formula'")
    refused(run(""), "must")
  }
})

test_that("na.fail() counts missing values and says where they are", {
  d <- data.frame(a = c(1, NA, 2, 4), g = c(1, 1, 2, 2))
  refused(kme(~ a + g, d, na.action = na.fail), "not 1 NA \\(in 'a'\\)")
  refused(mmd_test(a ~ g, d, na.action = na.fail), "'a' must have no missing")
  refused(kme(~ a, d, na.action = \(x) unname(x)), "'na.action' must be a func")
})

test_that("a time of a formula stays one in new data", {
  d <- data.frame(t = as.POSIXct("2020-01-01", tz = "UTC") + 86400 * (1:9),
                  a = c(2, 7, 1, 8, 2, 8, 1, 8, 2))
  plain <- transform(d, t = as.numeric(t))
  refused <- \(...) {
    expect_error(..., "'t' of 'newdata' must be a date or time, or none",
                 class = "kernmean_error_input")
  }
  fit <- kme(~ t + a, d)
  refused(predict(fit, plain))
  refused(predict(kme(~ t + a, plain, scale = TRUE), d))
  refused(predict(kme(kme_sketch(~ t + a, d, 5)), plain))
  days <- transform(d, t = as.Date(t))
  expect_equal(predict(fit, days), predict(fit, d))
})

test_that("groups stand on either side of a formula", {
  d <- iris[c(1:8, 51:60, 101:109), ]
  d$id <- rep(1:9, 3)
  same <- \(door, ..., least = 1e-12) {
    fits <- lapply(list(...), \(formula) {
      set.seed(1)
      door(formula)
    })
    for (fit in fits[-1L]) expect_equal(fit, fits[[1L]], tolerance = least)
  }
  columns <- paste0("cbind(", paste(names(iris)[1:4], collapse = ", "), ")")
  bound <- stats::as.formula(paste(columns, "~ Species"))
  all <- list(stats::as.formula(paste("Species ~", columns)), bound)
  tests <- list(\(f) mmd_test(f, d, B = 19, blocks = id)$replicates,
                \(f) as.data.frame(mmd_pairwise(f, d, B = 19, blocks = id,
                                                adjust = "none")))
  for (test in tests) {
    same(test, . ~ Species, Species ~ ., bound,
         Species ~ Sepal.Length + Sepal.Width + Petal.Length + Petal.Width,
         as.character(Species) ~ Sepal.Length + Sepal.Width + Petal.Length +
           Petal.Width)
    same(test, log(Petal.Width) ~ Species, Species ~ log(Petal.Width))
  }
  d$id <- NULL
  same(\(f) kme_fda(f, d)$loo, Species ~ ., . ~ Species, bound)
  same(\(f) bag_gram(f, d)$K, Species ~ ., . ~ Species, bound)
  # New data are read by the turned formula.
  fit <- kme_fda(. ~ Species, d)
  expect_identical(predict(fit, d[3:1, ])$class, predict(fit)$class[3:1])
  expect_identical(update(fit, data = d[-1, ])$counts[["setosa"]], 7L)
  bags <- as.data.frame(CO2)[c("Plant", "Type", "conc", "uptake")]
  same(\(f) fitted(smm(f, bags, id = Plant, cost = 1, bandwidth = "median",
                       scale = TRUE)),
       Type ~ conc + uptake, . ~ Type, cbind(conc, uptake) ~ Type)
  same(\(f) fitted(smm(f, bags, id = Plant, type = "ridge", ridge = 1,
                       bandwidth = "median", scale = TRUE)),
       as.numeric(Type) ~ conc + uptake,
       cbind(conc, uptake) ~ as.numeric(Type))
  # Numbers on the right are classes where the left has several columns.
  same(\(f) kme_fda(f, mtcars)$loo, am ~ mpg + wt, cbind(mpg, wt) ~ am)
})

test_that("where either side could be groups the calls are shown", {
  d <- mtcars
  d$few <- rep(1:4, 8)
  for (code in expression(mmd_test(am ~ mpg, d), mmd_pairwise(am ~ mpg, d))) {
    refused(eval(code), "'mpg' is numeric.* factor\\(am\\) ~ mpg or am ~")
  }
  # No value comes once, but the groups would be more than the values.
  for (door in list(mmd_test, mmd_pairwise)) {
    refused(door(am ~ few, d), "as in factor\\(am\\) ~ few or am ~")
    expect_identical(levels(door(few ~ am, d, B = 39)$groups), c("0", "1"))
  }
  refused(kme_fda(few ~ am, d), "as in factor\\(few\\) ~ am or few ~")
  refused(mmd_test(am ~ mpg + wt, d), "one on its left, as factor\\(am\\) is")
  refused(kme_fda(mpg ~ wt, d), "'mpg' is numeric")
  refused(kme_fda(mpg ~ ., d), "in factor\\(mpg\\) ~ \\.$")
  refused(bag_gram(qsec ~ few, d), "or qsec ~ factor\\(few\\)")
  expect_s3_class(bag_gram(qsec ~ few + wt, d), "bag_gram")
  # As it is documented, where that can be.
  expect_identical(levels(mmd_test(mpg ~ cyl, d, B = 19)$groups),
                   c("4", "6", "8"))
  refused(mmd_test(factor(am) ~ wt * mpg, d), "no interactions")
  refused(mmd_test(mpg ~ factor(am) + factor(cyl), d),
          "interaction\\(a, b\\)")
  refused(kme_fda(mpg + wt ~ factor(am), d), "cbind\\(a, b\\)")
  refused(mmd_test(mpg ~ nosuch, d), "'nosuch' not found")
})

test_that("of many columns the names of four are shown", {
  for (door in list(mmd_test, mmd_pairwise)) {
    expect_match(door(. ~ am, mtcars, B = 19, scale = TRUE)$data.name,
                 "cbind(mpg, cyl, disp, hp, ...) by am: 0 (n", fixed = TRUE)
  }
  test <- hsic_test(. ~ factor(am), mtcars, B = 19, scale = TRUE)
  expect_named(test$variables, c("mpg + cyl + disp + hp + ...",
                                 "factor(am)"))
  expect_identical(colnames(test$variables[[1]]$sample$x), names(mtcars)[-9])
  # The first kernel is that of the left side.
  expect_named(Filter(\(k) k$family == "rbf", hsic_test(
    mpg ~ wt, mtcars, kernel_x = kernel_laplace(), B = 9
  )$kernel), "wt")
})

test_that("a formula that comes second is told where it belongs", {
  doors <- list(kme, kme_pca, kme_cov, kme_fda, kme_density, mmd_test,
                mmd_pairwise, mmd_gof, hsic_test, rkhs_iv, rkhs_iv_nested, smm,
                bag_gram, kme_landmarks, kme_sketch)
  for (door in doors) {
    refused(door(iris, Species ~ .), "\\(Species ~ \\., data\\)$")
  }
  refused(iris |> mmd_test(Species ~ .), "mmd_test\\(Species ~ \\., data\\)")
})

# How the terms of a formula are evaluated: once, tables and wide dots too.

local({
  set.seed(3)
  n <- 60
  d <- data.frame(g = rep(c("u", "v"), each = n / 2), t = rep(0:1, n / 2),
                  y = rnorm(n), a = rnorm(n), id = rep(1:12, each = 5))
  d$z <- d$a + rnorm(n)
  d$f <- factor(rep_len(c("p", "q", "r"), n))
  run <- \(door, ...) {
    set.seed(4)
    test <- door(..., B = 19, filter = "none")
    c(test$statistic, test$p.value)
  }

  test_that("each door evaluates each term once", {
    count <- 0
    f <- \(x) {
      count <<- count + 1
      x
    }
    for (call in expression(
      mmd_test(f(y) ~ g, d, B = 19), mmd_test(y ~ f(g), d, B = 19),
      mmd_test(f(g) ~ y + a, d, B = 19), mmd_test(g ~ f(y), d, B = 19),
      mmd_test(cbind(f(y), f) ~ g, d, B = 19),
      mmd_test(g ~ cbind(f(y), a), d, B = 19),
      mmd_pairwise(f(y) ~ g, d, B = 99), hsic_test(y ~ f(g), d, B = 19),
      hsic_test(y + f(a) ~ g, d, B = 19),
      hsic_test(y ~ cbind(f(a), f), d, B = 19), kme(~ f(y) + a, d),
      kme_cov(f(y) ~ a, d), kme_fda(f(g) ~ a, d), kme_fda(g ~ f(a) + y, d),
      kme_fda(f(y) ~ g, d), kme_effect(y ~ f(t), ~ a, d),
      kme_weights(t ~ f(a), d), rkhs_iv(y ~ f(a) | z, d),
      rkhs_iv(y ~ a | z, d, controls = ~ f(t)), bag_gram(f(id) ~ a, d),
      smm(f(id) ~ a, d, id = id, type = "regression"),
      smm(~ a, d, id = f(id)), kme_landmarks(~ f(a) + y, d, 5)
    )) {
      count <- 0
      quietly(suppressWarnings(eval(call)))
      expect_identical(count, 1, label = deparse1(call))
    }
  })

  test_that("a table is a variable of a formula, in data or beside them", {
    skip_if_not_installed("vegan")
    package <- "vegan"
    utils::data("dune", "dune.env", package = package, envir = environment())
    dune <- as.data.frame(scale(dune))
    bound <- cbind(dune, dune.env["Management"])
    want <- run(mmd_test, . ~ Management, bound)
    expect_equal(run(mmd_test, dune ~ Management, dune.env), want)
    within <- data.frame(g = dune.env$Management)
    within$table <- dune
    expect_equal(run(mmd_test, table ~ g, within), want)
    expect_equal(run(mmd_test, . ~ g, within), want)
    expect_equal(run(hsic_test, dune ~ Management, dune.env),
                 run(hsic_test, as.matrix(dune), dune.env$Management))
    fit <- kme(~ dune + A1, dune.env)
    expect_near(fit$norm2, kme(cbind(dune, A1 = dune.env$A1))$norm2, 1e-12)
    inside <- kme_pca(~ table, within)
    expect_near(inside$values, kme_pca(as.matrix(dune))$values, 1e-12)
    expect_near(predict(inside, within[3:1, ]), predict(inside)[3:1, ], 1e-8)
    dune <- dune[20:1, ]
    expect_warning(mmd_test(dune ~ Management, dune.env, B = 19),
                   class = "kernmean_warning_names")
  })

  test_that("a table of numbers and factors is their sum", {
    both <- d[c("a", "f")]
    want <- run(hsic_test, y ~ a + f, d)
    expect_equal(run(hsic_test, y ~ both, d), want)
    expect_equal(run(hsic_test, y ~ cbind(a, f), d), want)
    expect_near(kme(~ cbind(a, f), d)$norm2, kme(both)$norm2, 1e-12)
    fit <- kme_pca(~ cbind(a, f) + y, d, ncomp = 2)
    expect_near(predict(fit, d[5:1, ]), predict(fit)[5:1, ], 1e-8)
    refused(smm(~ both, d, id = id), "column 'f' must be numeric")
  })

  test_that("a dot of many columns is one variable and means the same", {
    m <- matrix(rnorm(40 * 600), 40)
    colnames(m) <- paste0("V", 1:600)
    w <- data.frame(m, d[1:40, c("t", "y", "f")], h = gl(2, 20))
    only <- w[1:600]
    expect_near(kme(~ ., only)$norm2, kme(m)$norm2, 1e-12)
    expect_identical(colnames(kme(~ ., only)$sample$x), colnames(m))
    expect_near(kme(~ . - V3 + exp(V3), only)$norm2,
                kme(cbind(m[, -3], exp(m[, 3])))$norm2, 1e-12)
    fit <- kme(~ ., only)
    expect_near(predict(fit, only[5:1, 600:1]), predict(fit)[5:1], 1e-12)
    mixed <- kme(~ ., w)
    expect_near(mixed$norm2, kme(w)$norm2, 1e-12)
    expect_near(predict(mixed, w[3:1, ]), predict(kme(w), w[3:1, ]), 1e-12)
    two <- \(x) run(mmd_test, x[1:20, ], x[21:40, ])
    expect_equal(run(mmd_test, . ~ h, w[c(1:600, 604)]), two(m))
    expect_equal(run(mmd_test, h ~ . - V3, w[c(1:600, 604)]), two(m[, -3]))
    expect_equal(run(hsic_test, . ~ h, w[c(1:600, 604)]),
                 run(hsic_test, m, w$h))
    expect_equal(run(hsic_test, y ~ . - t - f - h, w),
                 run(hsic_test, w$y, m))
    fda <- kme_fda(h ~ . - t - y - f, w)
    expect_near(fda$svd, kme_fda(m, w$h)$svd, 1e-10)
    expect_near(unname(coef(quietly(kme_effect(y ~ t, ~ . - f - h, w)))),
                unname(coef(quietly(kme_effect(m, w$y, w$t)))), 1e-10)
  })

  test_that("times of all classes, and other numbers, are read", {
    time <- as.POSIXct("2026-01-01", tz = "UTC") + 3600 * seq_len(n)
    d$lt <- as.POSIXlt(time)
    d$ct <- time
    expect_near(kme(~ lt + a, d)$norm2, kme(~ ct + a, d)$norm2, 1e-12)
    fit <- kme(~ lt, d)
    expect_near(predict(fit, d[3:1, ]), predict(fit)[3:1], 1e-12)
    d$money <- structure(d$y, class = "money")
    d$row <- array(d$y, n)
    for (name in c("money", "row")) {
      frame <- stats::setNames(d[c(name, "f")], c("y", "f"))
      expect_near(kme(frame)$norm2, kme(d[c("y", "f")])$norm2, 1e-12)
      expect_near(kme(~ y + f, frame)$norm2, kme(~ y + f, d)$norm2, 1e-12)
    }
  })

  test_that("columns that are lists are refused by their name", {
    d$geometry <- lapply(seq_len(n), \(i) c(i, i))
    for (call in expression(
      mmd_test(. ~ g, d), hsic_test(. ~ y, d), kme(~ ., d), kme_fda(g ~ ., d),
      kme_effect(y ~ t, ~ geometry, d), kme_weights(t ~ geometry, d),
      rkhs_iv(y ~ a | geometry, d), kme_cov(geometry ~ y, d)
    )) {
      refused(eval(call), "'geometry'")
    }
  })

  test_that("sides must differ, and covariates be there", {
    for (call in expression(kme_fda(g ~ g + a, d), bag_gram(id ~ a + id, d),
                            smm(id ~ id + a, d, id = id))) {
      refused(eval(call), "different terms on its two sides")
    }
    refused(kme_effect(y ~ t, ~ 1, d), "covariates")
    refused(kme_weights(t ~ 1, d), "covariates")
  })

  test_that("missing groups are called what the formula calls them", {
    d$plot <- c(NA, d$g[-1])
    d$number <- c(NA, d$t[-1])
    for (call in expression(
      mmd_test(a ~ plot, d), mmd_test(cbind(a, y) ~ number, d),
      mmd_pairwise(a ~ plot, d), kme_fda(plot ~ a, d),
      kme_effect(y ~ plot, ~ a, d), kme_weights(plot ~ a, d)
    )) {
      word <- if (any(grepl("number", deparse1(call)))) "number" else
        "plot|treat"
      refused(eval(call), paste0("'(", word, ")' .*na.omit"))
    }
    expect_equal(run(mmd_test, a ~ plot, d, na.action = na.omit),
                 run(mmd_test, a ~ plot, d[-1, ]))
  })

  test_that("strata are blocks", {
    refused(mmd_test(a ~ g, d, strata = d$id), "is called 'blocks' here")
    refused(mmd_pairwise(a ~ g, d, strata = d$id), "'blocks'")
  })
})

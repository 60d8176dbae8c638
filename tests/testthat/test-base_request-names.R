# Names of columns, rows and levels, and numbers that are text.

local({
  set.seed(5)
  n <- 60
  d <- data.frame(g = rep(c("u", "v"), each = n / 2), t = rep(0:1, n / 2),
                  y = rnorm(n), a = rnorm(n), z = rnorm(n),
                  f = rep_len(c("p", "q", "r"), n))
  twin <- stats::setNames(d, c("g", "t", "y", "a", "a", "f"))
  both <- as.matrix(twin[1:4 + 1])
  colnames(both) <- c("t", "y", "a", "a")

  test_that("two columns of one name are refused by formulas", {
    for (call in expression(
      mmd_test(. ~ g, twin), mmd_test(a ~ g, twin), mmd_pairwise(. ~ g, twin),
      hsic_test(. ~ g, twin), hsic_test(y ~ a, twin), kme(~ ., twin),
      kme_cov(y ~ ., twin), kme_fda(g ~ ., twin), kme_pca(~ a + y, twin),
      kme_effect(a ~ t, ~ y, twin),
      kme_weights(t ~ ., twin), rkhs_iv(y ~ t | a, twin),
      rkhs_iv(y ~ t | t, twin, controls = ~ a),
      predict(kme(~ y + a, d), twin)
    )) {
      refused(eval(call), "the same name, not 'a'")
    }
    # Where a dot leaves out other columns, both are there.
    effect <- quietly(kme_effect(y ~ t, ~ ., twin[-6L]))
    whole <- quietly(kme_effect(d[c("g", "a", "z")], d$y, d$t))
    expect_near(coef(effect), coef(whole), 1e-10)
    expect_near(kme(~ y + t, twin)$norm2, kme(~ y + t, d)$norm2, 1e-12)
    names(twin)[5L] <- ""
    refused(mmd_test(. ~ g, twin), "a name for each column")
    names(twin)[5L] <- NA
    refused(hsic_test(. ~ g, twin), "a name for each column")
  })

  test_that("two columns of one name of a matrix are both used", {
    plain <- unname(both)
    expect_near(kme(both)$norm2, kme(plain)$norm2, 1e-12)
    run <- \(x) {
      set.seed(1)
      mmd_test(x[1:30, ], x[31:60, ], B = 19, filter = "none")$statistic
    }
    expect_identical(run(both), run(plain))
    refused(mmd_test(both[1:30, ], both[31:60, 4:1]), "the same name")
    refused(predict(kme(both), both[, c(3, 1, 2, 4)]), "the same name")
    fit <- quietly(rkhs_iv(d["t"], d$y, d["z"], controls = both[, 3:4]))
    plain <- quietly(rkhs_iv(d["t"], d$y, d["z"], controls = plain[, 3:4]))
    expect_near(fitted(fit), fitted(plain), 1e-10)
    expect_identical(names(fit$controls), c("a", "a.1"))
  })

  test_that("names in another order get a word, whatever has them", {
    m <- as.matrix(d[c("y", "a")])
    rownames(m) <- paste0("row", 1:n)
    other <- \(x) stats::setNames(x, rownames(m))[n:1]
    for (call in expression(
      mmd_test(dist(m), other(d$g), B = 19), mmd_pairwise(gram(m), other(d$f)),
      hsic_test(m, m[n:1, ], B = 19), hsic_test(dist(m), dist(m[n:1, ])),
      hsic_test(list(m, d$y, other(d$z)), B = 19), kme_cov(m, other(d$z)),
      kme(m, weights = other(rep(1 / n, n))), kme_fda(m, other(d$g)),
      kme_effect(m, other(d$z), d$t), kme_weights(m, treat = other(d$t)),
      rkhs_iv(m, other(d$z), m), rkhs_iv(m, d$z, m, clusters = other(d$f)),
      bag_gram(m, id = other(d$f)),
      mmd_test(m[n:1, ] ~ g, `rownames<-`(d, rownames(m)), B = 19)
    )) {
      expect_warning(quietly_but(eval(call), "names"), "in another order",
                     class = "kernmean_warning_names", label = deparse1(call))
    }
    expect_no_warning(mmd_test(dist(m), other(d$g)[n:1], B = 19),
                      class = "kernmean_warning_names")
    expect_no_warning(hsic_test(m, m, B = 19), class = "kernmean_warning_names")
  })

  test_that("characters are factors in every door that takes these", {
    e <- transform(d, g = factor(g), f = factor(f))
    run <- \(d, door, ...) {
      set.seed(1)
      test <- door(..., B = 19)
      c(test$statistic, test$p.value)
    }
    alike <- \(value) expect_equal(value(d), value(e))
    alike(\(d) run(d, hsic_test, y ~ f, d))
    alike(\(d) run(d, hsic_test, d$f, d$y))
    alike(\(d) run(d, hsic_test, list(d$f, d$y, d["g"])))
    alike(\(d) run(d, mmd_test, d[1:30, 3:6], d[31:60, 3:6]))
    alike(\(d) run(d, mmd_test, . ~ g, d))
    alike(\(d) run(d, mmd_test, f ~ g, d))
    alike(\(d) kme_cov(d$f, d$y)$values)
    alike(\(d) kme(d[3:6])$norm2)
    alike(\(d) kme_fda(g ~ a + f, d)$svd)
    alike(\(d) kme_fda(d[c("a", "f")], d$g)$svd)
    alike(\(d) coef(quietly(kme_effect(d[c("a", "f")], d$y, d$t))))
    alike(\(d) fitted(quietly(rkhs_iv(y ~ a + f | z + f, d))))
    alike(\(d) fitted(quietly(rkhs_iv(d["f"], d$y, d["z"]))))
    alike(\(d) {
      set.seed(1)
      kme(kme_sketch(d, kme_landmarks(~ a + f, d, 20)))$norm2
    })
    fit <- kme_pca(~ a + f, d)
    expect_near(predict(fit, e[1:3, ]), predict(fit)[1:3, ], 1e-8)
    fit <- quietly(rkhs_iv(y ~ a + f | z + f, d))
    expect_near(predict(fit, e), unname(fitted(fit)), 1e-10)
  })

  test_that("numbers that are text get a word", {
    d$x <- replace(format(d$y), 7, "n/a")
    d$comma <- sub(".", ",", format(d$a), fixed = TRUE)
    d$day <- format(as.Date("2026-01-01") + seq_len(n))
    for (call in expression(
      kme_pca(~ x + z, d), kme(d[c("x", "z")]), kme(~ comma + z, d),
      mmd_test(x ~ g, d, B = 19), mmd_test(. ~ g, d[c("g", "x", "z")], B = 19),
      mmd_test(d[1:30, 6:7], d[31:60, 6:7], B = 19), kme_cov(y ~ x, d),
      hsic_test(y ~ x, d, B = 19), hsic_test(d$y, d$day, B = 19),
      kme_fda(g ~ x + z, d), kme_effect(y ~ t, ~ x + a, d),
      kme_weights(t ~ day + a, d, means = FALSE), rkhs_iv(y ~ x | z, d),
      rkhs_iv(y ~ a | z, d, controls = ~ x), kme_landmarks(~ x + z, d, 5)
    )) {
      expect_warning(tryCatch(quietly_but(eval(call), "text"),
                              kernmean_error = \(e) NULL),
                     class = "kernmean_warning_text", label = deparse1(call))
    }
    expect_warning(kme(d[c("x", "z")]), "'x' is text.* no numbers are 'n/a'")
    # Groups, and levels that are no numbers, are what they are.
    expect_no_warning(mmd_test(y ~ as.character(t), d, B = 19),
                      class = "kernmean_warning_text")
    expect_no_warning(kme(~ f + z, d), class = "kernmean_warning_text")
  })

  test_that("the order of groups of characters is that of no locale", {
    old <- Sys.getlocale("LC_COLLATE")
    on.exit(Sys.setlocale("LC_COLLATE", old))
    for (locale in c("C", "en_US.UTF-8", "C.UTF-8")) {
      suppressWarnings(Sys.setlocale("LC_COLLATE", locale))
      expect_identical(levels(check_factor(c("b", "B", "a"))), c("B", "a", "b"))
    }
  })

  test_that("indicators of controls meet no other column", {
    d$V1 <- factor(d$t)
    d$V11 <- d$a
    d$k <- "one"
    d$twin <- d$a
    fit <- quietly(rkhs_iv(y ~ z | z, d, controls = ~ V1 + V11))
    expect_near(predict(fit, d), unname(fitted(fit)), 1e-10)
    turned <- transform(d, V1 = as.character(t))[n:1, ]
    expect_near(unname(predict(fit, turned)), unname(fitted(fit)[n:1]), 1e-10)
    plain <- quietly(rkhs_iv(y ~ z | z, d, controls = ~ t + a))
    expect_near(fitted(fit), fitted(plain), 1e-8)
    expect_near(unname(fit$controls), unname(plain$controls), 1e-8)
    more <- \(controls) rkhs_iv(y ~ z | z, d, controls = controls)
    for (controls in c(~ k + a, ~ a + twin)) {
      expect_warning(fit <- quietly_but(more(controls), "controls"),
                     class = "kernmean_warning_controls")
      expect_near(fitted(fit), fitted(quietly(more(~ a))), 1e-10)
      expect_near(predict(fit, d), unname(fitted(fit)), 1e-10)
    }
    poly <- quietly(more(~ poly(a, 2)))
    expect_near(unname(predict(poly, d[1:5, ])), unname(fitted(poly)[1:5]),
                1e-10)
    d$square <- d$a^2
    expect_near(fitted(poly), fitted(quietly(more(~ a + square))), 1e-8)
    for (size in c(1e200, 1e-200)) {
      d$a <- size * d$twin
      refused(more(~ a), "rescale")
    }
  })
})

# What tests say of themselves: titles, tables, hints, pictures; all labelings
# where no B is given.

said <- \(x) paste(capture.output(print(x)), collapse = " ")
oj <- \(...) mmd_test(len ~ supp, ToothGrowth, B = 19, ...)

test_that("a title has the statistics and the filter that were used", {
  of <- \(order) oj(filter = test_filter(order = order))$method
  expect_match(of("profile"), "(profile, KME,", fixed = TRUE)
  expect_match(of("gpk"), "(gpk, KME,", fixed = TRUE)
  expect_match(of(c(0, "gpk")), "(MMD, KME,", fixed = TRUE)
  expect_match(of(1), "(MMD, Tikhonov filter, KME,", fixed = TRUE)
  fused <- hsic_test(mpg ~ hp, mtcars, B = 19,
                     filter = test_filter(order = "fused"))
  expect_named(fused$statistic, "fused HSIC")
  expect_match(fused$method, "(fused HSIC, KME,", fixed = TRUE)
  expect_match(hsic_test(mpg ~ hp, mtcars, B = 19)$method,
               "(HSIC, Tikhonov filter, fused, KME,", fixed = TRUE)
})

test_that("a summary begins with the statistic that decided", {
  test <- oj()
  table <- summary(test)$Statistics
  expect_identical(table$statistic[1L],
                   test$statistics$statistic[test$statistics$maximum])
  expect_false(is.unsorted(-table$z))
  expect_identical(table, test$statistics[rownames(table), names(table)])
})

test_that("a witness of the MMD is called one", {
  words <- \(...) witness_words(oj(filter = test_filter(...)))
  for (order in c("profile", "gpk", "moments")) {
    expect_match(words(order = order), "(of the MMD; profiles", fixed = TRUE)
  }
  expect_identical(words(order = 2, ratio = 1), " (order 2, ratio 1)")
  expect_null(witness_words(oj(filter = "none")))
  several <- mmd_test(. ~ Species, iris, B = 9,
                      filter = test_filter(order = "gpk")) |> suppressWarnings()
  expect_match(fit_picture(several, "witness")$title,
               "against the rest (of the MMD", fixed = TRUE)
})

test_that("arguments that are asked for elsewhere are pointed to", {
  error <- \(code, words) expect_error(code, words, fixed = TRUE)
  error(mmd_test(iris[, 1:4], iris$Species), "use a formula, values ~ groups")
  error(oj(filter = "profile"), "test_filter(order = \"profile\")")
  error(mmd_test(1:9, 2:9, nperm = 9), "'nperm' is called 'B' here")
  error(hsic_test(1:9, 1:9, R = 9), "'R' is called 'B' here")
  error(mmd_test(dist(1:9), rep(1:3, 3), filter = TRUE),
        "distances have no filter")
  expect_match(said(test_filter()), "ratio = c(1, 0.1, 0.01, 0.001)",
               fixed = TRUE)
})

test_that("factors in cbind() are factors, as in a sum", {
  run <- \(f, data = warpbreaks) {
    set.seed(1)
    hsic_test(f, data, B = 19)$replicates
  }
  want <- run(breaks ~ wool + tension)
  expect_identical(run(breaks ~ cbind(wool, tension)), want)
  expect_equal(run(cbind(wool, tension) ~ breaks), run(wool + tension ~ breaks))
  expect_equal(kme_cov(breaks ~ cbind(wool, tension), warpbreaks)$values,
               kme_cov(breaks ~ wool + tension, warpbreaks)$values)
  expect_equal(run(weight ~ cbind(feed), chickwts),
               run(weight ~ feed, chickwts))
  cars <- scale(mtcars)
  expect_equal(run(mpg ~ cbind(hp, wt), as.data.frame(cars)),
               run(mpg ~ hp + wt, as.data.frame(cars)))
})

test_that("without B all of up to 2,000 labelings are taken", {
  sizes <- \(...) c(length(mmd_test(1:6, 7:12 + 0.3, ...)$replicates),
                    length(mmd_test(1:6, 7:12 + 0.3, filter = "none", ...)
                           $replicates))
  expect_identical(sizes(), c(924L, 924L))
  expect_identical(sizes(B = 399), c(399L, 399L))
  pairs <- \(...) mmd_test(extra ~ group, sleep, blocks = ID, ...)
  expect_identical(pairs()$p.value, pairs(
    control = test_control(permutations = "all")
  )$p.value)
  # 3,432 are drawn from; 1,716 pairs of 6 and 7 are what a comparison takes.
  expect_length(mmd_test(1:7, 1:7 + 0.3, filter = "none")$replicates, 999)
  x <- c(1:6, 1:7 + 0.3)
  g <- rep(1:2, 6:7)
  expect_equal(mmd_pairwise(x, g)$table$p.value,
               mmd_test(x ~ factor(g), filter = "none")$p.value)
})

printed <- \(x) paste(utils::capture.output(print(x)), collapse = " ")

test_that("a p-value at its floor says so, in every test", {
  set.seed(3)
  x <- iris[1:50, 1:4]
  y <- iris[51:100, 1:4]
  bins <- kme_sketch(~ Sepal.Length + Sepal.Width, iris, 20, groups = Species,
                     bin = 5)
  for (test in list(mmd_test(x, y), mmd_test(x, y, filter = "none", B = 199),
                    hsic_test(x[, 1], x[, 1] + 0, B = 99),
                    mmd_gof(exp(3 * x[, 1]), "normal", B = 99),
                    mmd_test(bins["setosa"], bins["virginica"], B = 99),
                    mmd_test(dist(iris[1:4]), iris$Species, B = 99))) {
    B <- length(test$replicates)
    expect_identical(test$p.value, 1 / (B + 1))
    expect_match(printed(test), paste0("= ", format(test$p.value, digits = 4),
                                       " (least possible with B = ", B, ")"),
                 fixed = TRUE)
  }
  # Of all labelings the observed one and the one that exchanges both.
  all <- mmd_test(1:6, 101:106)
  expect_near(all$p.value, 2 / 924, 1e-12)
  expect_match(printed(all), "(least possible of all 924 labelings)",
               fixed = TRUE)
  for (test in list(mmd_test(1:6, 3:8),
                    hsic_test(x[, 1], x[, 2], control = test_control("gamma")),
                    mmd_test(x[1:25, ], x[26:50, ], B = 99))) {
    expect_no_match(printed(test), "least")
  }
  expect_identical(names(generics::tidy(all)), names(
    generics::tidy(mmd_test(1:6, 3:8))
  ))
})

test_that("chance is told where it could turn a p-value over .05", {
  test <- mmd_test(1:20, 1:20 + 0.5, B = 99)
  for (p in c(0.03, 0.05, 0.09, 0.2, 0.01)) {
    test$p.value <- p
    error <- sqrt(p * (1 - p) / 100)
    words <- paste0("(Monte-Carlo s.e. ", format(error, digits = 2), ")")
    near <- abs(p - 0.05) < 2 * error && p > 0.01
    expect_identical(grepl(words, printed(test), fixed = TRUE), near)
  }
  all <- mmd_test(1:6, 3:8)
  all$p.value <- 0.05
  expect_no_match(printed(all), "Monte-Carlo")
})

test_that("comparisons say which labelings they took and what they could", {
  x <- c(1:6, 101:106, 201:206)
  pairs <- mmd_pairwise(x, rep(1:3, each = 6))
  expect_match(printed(pairs), "all 924 labelings, p-values of 3 comparisons")
  expect_no_match(printed(pairs), "B =")
  expect_match(printed(pairs), "3 of 3 p-values are the least possible")
  expect_near(pairs$table$p.value, rep(2 / 924, 3), 1e-12)
  # Of all labelings no larger B finds more.
  expect_warning(few <- mmd_pairwise(x[c(1:4, 7:10, 13:16)],
                                     rep(1:3, each = 4)),
                 "at least 0.086, whatever the data$")
  expect_match(printed(few), "all 70 labelings")
  expect_warning(mmd_pairwise(x, rep(1:3, each = 6), B = 19), "with B = 19$")
  set.seed(1)
  some <- mmd_pairwise(c(1:5, 101:106, 201:240), rep(1:3, c(5, 6, 40)))
  expect_match(printed(some), "B = 999 or all labelings")
  same <- mmd_pairwise(c(sin(1:60)), rep(1:3, 20))
  expect_no_match(printed(same), "least|all")
})

test_that("what do.call() hands over is called by a few words", {
  set.seed(2)
  x <- rnorm(400)
  g <- gl(2, 200)
  for (test in list(
    do.call(mmd_test, list(x, x + 1, B = 19)),
    do.call(mmd_test, list(dist(x), g, B = 19)),
    do.call(hsic_test, list(x, x^2, B = 19)),
    do.call(mmd_gof, list(x, "normal", B = 19)),
    suppressWarnings(do.call(mmd_pairwise, list(x, g, B = 19))),
    do.call(update, list(mmd_test(x, x, B = 19), y = x + 1)),
    do.call(mmd_test, list(kme_sketch(x, 20, groups = g, bin = 5), B = 99))
  )) {
    expect_lt(nchar(test$data.name), 120)
  }
  expect_identical(mmd_test(x, x[1:20], B = 19)$data.name,
                   "x (n = 400) and x[1:20] (n = 20)")
  long <- as.call(c(quote(sum), as.list(1:500)))
  expect_match(label_of(long), "^sum\\(1L, 2L.*[.]{3}$")
})

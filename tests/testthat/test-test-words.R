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

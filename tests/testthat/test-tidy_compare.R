# Comparisons of groups as broom has tables.

test_that("comparisons have tidy(), glance() and augment()", {
  skip_if_not_installed("generics")
  set.seed(1)
  order <- sample(90)
  data <- data.frame(x = rnorm(90), g = rep(c("a", "b", "c"), 30))[order, ]
  test <- mmd_test(x ~ g, data, pairwise = TRUE, B = 99)
  table <- as.data.frame(test)
  tidied <- generics::tidy(test)
  expect_named(tidied, c("group1", "group2", "n1", "n2", "estimate",
                         "statistic", "p.value", "adj.p.value"))
  expect_identical(tidied$adj.p.value, table$p.adjusted)
  expect_identical(tidied$estimate, table$distance)
  glanced <- generics::glance(test)
  expect_identical(glanced$nobs, 90L)
  expect_identical(glanced$comparisons, 3L)
  expect_identical(glanced$smallest, min(table$p.adjusted))
  expect_identical(generics::glance(update(test, control = "b"))$control, "b")
  added <- generics::augment(test, data)
  expect_identical(as.character(added$.group), data$g)
  expect_identical(generics::augment(test)$x, data$x[order(data$g)])
  expect_identical(rownames(as.data.frame(test, letters[1:3])), letters[1:3])
})

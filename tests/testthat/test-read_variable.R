# Variables of several columns, factors among them, and what formulas say.

set.seed(5)
n <- 24
d <- data.frame(
  y = rnorm(n), a = rnorm(n), b = runif(n),
  f = factor(sample(c("u", "v", "w"), n, TRUE)), g = sample(c(TRUE, FALSE), n,
                                                            TRUE)
)
same <- \(f) outer(as.character(f), as.character(f), `==`) + 0
k <- \(...) unname(kernel_matrix(cbind(...), kernel = kernel_rbf()))
variable_matrix <- \(fit, l) unname(as.matrix(fit$variables[[l]]$sample))

test_that("the sum on a side of a formula is one variable", {
  sums <- kme_cov(y ~ a + b, d)
  bound <- kme_cov(d$y, d[c("a", "b")])
  expect_equal(sums$values, bound$values)
  expect_named(sums$variables, c("y", "a + b"))
  test <- hsic_set(y ~ a + b, d, B = 19)
  expect_equal(test$statistic[["HSIC"]], bound$norm2)
  # Without a left side each term is one.
  three <- hsic_test(~ y + a + b, d, B = 19)
  expect_equal(three$statistic,
               hsic_test(as.list(d[c("y", "a", "b")]), B = 19)$statistic)
  expect_length(kme_cov(~ y + a + b, d)$variables, 3L)
})

test_that("numbers and factors make one variable with kernel_gower()", {
  frame <- d[c("a", "f", "b", "g")]
  fit <- kme_cov(y ~ a + f + b + g, d)
  expect_near(variable_matrix(fit, 2), gower_matrix(frame), 1e-14)
  expect_identical(fit$values, kme_cov(d$y, frame)$values)
  wide <- kme_cov(d$y, frame, kernel_y = kernel_gower(7))
  expect_near(variable_matrix(wide, 2), gower_matrix(frame, 7), 1e-14)
  only <- kme_cov(y ~ f + g, d)
  expect_near(variable_matrix(only, 2), gower_matrix(d[c("f", "g")]), 1e-14)
  # Units and a kernel for all are those of the others.
  scaled <- kme_cov(y ~ a + b + f, d, scale = TRUE, kernel_x = kernel_rbf(2))
  expect_near(variable_matrix(scaled, 2), gower_matrix(d[c("a", "b", "f")]),
              1e-14)
  all <- hsic_test(list(d$y, frame), kernel = kernel_gower(3), B = 9)
  expect_identical(all$parameter[3:4], c(3, 3), ignore_attr = TRUE)
  # Factors of a filter multiply its bandwidth too.
  factors <- hsic_test(d$y, frame, filter = test_filter("none", factors = 1:2),
                       B = 9)
  both <- with(factors$statistics, factor_x == 2 & factor_y == 2)
  expect_equal(factors$statistics$value[both],
               hsic_test(d$y, frame, B = 9, filter = "none",
                         kernel_x = kernel_rbf(2 * factors$parameter[[3]]),
                         kernel_y = kernel_gower(2 * factors$parameter[[4]])
               )$statistic[[1]])
})

test_that("new values of a mixed variable are read by its columns", {
  fit <- kme_cov(y ~ a + f, d, ncomp = 2)
  expect_equal(predict(fit, d, side = "right"), predict(fit, side = "right"),
               ignore_attr = TRUE)
  # In another order, as characters, with a level that is new.
  some <- data.frame(f = c("w", "new", "u"), a = c(0.1, 0.2, 0.3))
  scores <- predict(fit, list(0, some), side = "right")
  raw <- gower_matrix(d[c("a", "f")], new = some[2:1])
  k2 <- variable_matrix(fit, 2)
  expected <- (raw - rowMeans(raw) - rep(colMeans(k2), each = 3) + mean(k2)) %*%
    fit$right
  expect_equal(scores, expected, ignore_attr = TRUE)
  expect_error(predict(fit, list(0, d["a"]), side = "right"),
               class = "kernmean_error_input")
})

test_that("update() reads mixed variables again", {
  fit <- kme_cov(y ~ a + f, d, estimator = "skmse")
  expect_equal(update(fit, estimator = "kme")$values, kme_cov(y ~ a + f,
                                                              d)$values)
  test <- hsic_test(y ~ a + f, d, B = 19)
  expect_equal(update(test, B = 19)$statistic, test$statistic)
  moved <- update(fit, data = d[1:15, ])
  expect_equal(moved$values,
               kme_cov(y ~ a + f, d[1:15, ], estimator = "skmse")$values)
})

test_that("a dot on the left is all other columns, in calls it is refused", {
  numbers <- d[c("a", "b", "f")]
  dots <- kme_cov(. ~ f, numbers)
  expect_equal(dots$values, kme_cov(numbers[1:2], numbers$f)$values)
  expect_named(dots$variables, c("a + b", "f"))
  expect_equal(kme_cov(f ~ ., numbers)$values, dots$values)
  expect_snapshot(writeLines(refusals(expression(
    kme_cov(scale(.) ~ f, numbers), kme(~ log(.), numbers),
    kme_fda(f ~ scale(.), numbers), mmd_test(scale(.) ~ f, numbers)
  ))))
})

test_that("matrices, scaled terms and missing values keep their meaning", {
  fit <- kme_cov(y ~ scale(a) + poly(b, 2), d)
  expect_near(variable_matrix(fit, 2),
              k(scale(d$a), unclass(poly(d$b, 2))), 1e-12)
  expect_equal(predict(fit, d[1:3, ], side = "right"),
               predict(fit, side = "right")[1:3, ], tolerance = 1e-8,
               ignore_attr = TRUE)
  holes <- replace(d, 2, replace(d$a, 3, NA))
  expect_snapshot(error = TRUE, hsic_test(y ~ a + b, holes))
  left <- hsic_set(y ~ a + b, holes, na.action = na.omit, B = 19)
  expect_equal(left$statistic, hsic_set(y ~ a + b, d[-3, ], B = 19)$statistic)
})

test_that("what makes no mixed variable is refused", {
  frame <- d[c("a", "f")]
  holes <- replace(d, "f", factor(c(NA, d$f[-1])))
  expect_snapshot(writeLines(refusals(expression(
    kme_cov(d$y, frame, kernel_y = kernel_poly()),
    hsic_test(y ~ a + f, d, estimator = "mkme"), hsic_test(y ~ a * f, d),
    hsic_test(y ~ a + f, holes),
    kme_cov(d$y, d[c("f", "g")], kernel_y = kernel_rbf()),
    kme_cov(mpg ~ hp | cyl, mtcars), mmd_test(. - hp ~ am, mtcars),
    hsic_test(mpg ~ hp + offset(wt), mtcars), hsic_test(y + a ~ a, d),
    mmd_test(breaks ~ wool + tension, warpbreaks)
  ))))
})

test_that("formulas mean what their signs say", {
  all <- kme_cov(mpg ~ . - disp - cyl, mtcars, scale = TRUE)
  expect_equal(all$values, kme_cov(mtcars$mpg, mtcars[-(1:3)],
                                   scale = TRUE)$values)
  expect_length(hsic_test(~ . - Species, iris, B = 19)$variables, 4L)
  sums <- kme_cov(a + b ~ y, d)
  expect_equal(sums$values, kme_cov(d[c("a", "b")], d$y)$values)
  expect_equal(predict(sums, d[1:3, ]), predict(sums)[1:3, ],
               tolerance = 1e-8, ignore_attr = TRUE)
})

test_that("each side of a formula has its kernel", {
  one <- hsic_test(y ~ a, d, kernel_x = kernel_linear(), B = 19)
  want <- hsic_test(d$y, d$a, kernel_x = kernel_linear(), B = 19)
  expect_equal(one$statistic, want$statistic)
  two <- kme_cov(y ~ a + b, d, kernel_y = kernel_rbf(3))
  expect_equal(two$values,
               kme_cov(d$y, d[c("a", "b")], kernel_y = kernel_rbf(3))$values)
  expect_identical(
    update(two, estimator = "skmse")$variables[[2]]$sample$kernel$bandwidth, 3
  )
})

test_that("a test of which nothing changes says so", {
  expect_warning(hsic_test(rep(1, 12), 1:12, B = 19), "says nothing")
  expect_warning(mmd_test(rep(0.1, 9), rep(0.1, 8), B = 19), "says nothing")
  expect_warning(mmd_test(1:9, 11:18, kernel_rbf(1e-3), B = 19), "says nothing")
  expect_silent(mmd_test(1:9, 1:9, B = 19))
})

test_that("a variable is not tested against itself", {
  for (formula in list(a ~ a, a ~ a + b, a + b ~ b)) {
    refused(hsic_test(formula, d), "different terms on its two sides")
  }
})

test_that("a dot leaves out what says what changes places", {
  groups <- data.frame(id = rep(1:8, each = 3), g = rep(1:2, each = 12),
                       a = d$a, b = d$b)
  test <- mmd_test(. ~ g, groups, clusters = id, B = 19)
  expect_identical(colnames(test$sample$x), c("a", "b"))
  test <- hsic_test(g ~ ., groups, clusters = id, B = 19)
  expect_named(test$variables, c("g", "a + b"))
  expect_error(mmd_test(. ~ g, groups["g"]), class = "kernmean_error_input")
})

test_that("the kernel of a mixed variable is for the same columns", {
  fit <- kme_cov(y ~ a + f, d)
  kernel <- fit$variables[[2]]$sample$kernel
  again <- kme_cov(y ~ a + f, d, kernel_y = kernel)
  expect_equal(again$values, fit$values)
  refused(kme_cov(y ~ a + b, d, kernel_y = kernel), "2 columns .*: a, f")
  refused(kme_cov(d$y, d["a"], kernel_y = kme(d["f"])$kernel), "its factors")
  changed <- update(hsic_test(d[c("f", "g")], d$y, B = 19),
                    kernel = kernel_rbf(2))
  expect_equal(changed$statistic, hsic_test(d[c("f", "g")], d$y, B = 19,
                                            kernel_y = kernel_rbf(2))$statistic)
})

# Numeric columns and factors together.

set.seed(1)
mixed <- data.frame(
  a = rnorm(30), f = factor(sample(c("u", "v", "w"), 30, TRUE)), b = rexp(30),
  g = factor(sample(letters[1:5], 30, TRUE)), h = rep(c("s", "t"), 15)
)
columns <- mixed[1:4]

test_that("the kernel is that of Gower's distances at their median", {
  for (frame in list(columns, columns[c(2, 4)], columns["f"], columns[1:2],
                     cbind(columns, one = 3, same = factor("k")))) {
    expect_near(unname(kernel_matrix(frame)), gower_matrix(frame), 1e-14)
  }
  expect_near(unname(kernel_matrix(columns, columns[9:1, 4:1])),
              t(gower_matrix(columns, new = columns[9:1, ])), 1e-14)
  # Of numbers alone it is a Laplace kernel; of one column as it is.
  a <- columns$a
  expect_near(kernel_matrix(a, kernel = kernel_gower()),
              exp(-abs(outer(a, a, `-`)) / median(dist(a))), 1e-14)
  # Where most levels are the same the median is 0.
  rare <- data.frame(f = factor(rep(1:2, c(9, 1))))
  expect_near(unname(kernel_matrix(rare)), gower_matrix(rare), 1e-15)
  # 1/a of a share a = 18/90 of pairs with different levels.
  expect_equal(kme(rare)$kernel$bandwidth, 5)
})

grades <- c("low", "middle", "high", "top")

test_that("ordered factors count by the places of their levels", {
  set.seed(3)
  frame <- data.frame(columns[1:2], o = factor(
    sample(grades[c(1, 2, 4)], 30, TRUE), grades, ordered = TRUE
  ))
  numbers <- transform(frame, o = match(o, grades))
  expect_near(kernel_matrix(frame), kernel_matrix(numbers), 1e-15)
  expect_near(unname(kernel_matrix(frame)), gower_matrix(frame), 1e-14)
  value <- \(x) mmd_test(x[1:15, ], x[16:30, ], B = 19)$statistics$value
  expect_identical(value(frame), value(numbers))
  # Without other columns, and as columns bound in a formula.
  apart <- abs(outer(numbers$o, numbers$o, `-`))
  k <- exp(-apart / median(apart[lower.tri(apart)]))
  expect_near(unname(kernel_matrix(frame["o"])), k, 1e-14)
  expect_equal(kme(frame$o)$norm2, mean(k))
  expect_equal(kme_pca(~ o, frame)$values, kme_pca(as_gram(k))$values)
  frame$h <- mixed$h
  one <- mmd_test(o ~ h, frame, filter = "none", B = 19)
  bound <- mmd_test(cbind(o) ~ h, frame, filter = "none", B = 19)
  expect_equal(one$statistic, bound$statistic)
  w <- ifelse(frame$h == "s", 1, -1) / 15
  expect_equal(one$statistic[[1]], drop(w %*% k %*% w))
  y <- mixed$a
  test <- hsic_test(y, frame$o, B = 19)
  h <- diag(30) - 1 / 30
  expect_equal(test$statistic[[1]],
               sum(h %*% kernel_matrix(y, kernel = kernel_rbf()) %*% h * k) /
                 900)
  expect_match(capture.output(test), "ordered: y (4 levels)", fixed = TRUE,
               all = FALSE)
  expect_match(capture.output(kme(frame[1:3])),
               "factors: f (3 levels); ordered: o (4 levels)", fixed = TRUE,
               all = FALSE)
})

test_that("new values of ordered factors are read by their levels", {
  frame <- data.frame(a = columns$a,
                      o = factor(rep(grades[1:3], 10), grades, ordered = TRUE))
  fit <- kme(frame, estimator = "skmse")
  # As characters, in another order of levels, and of levels not in the sample.
  new <- data.frame(a = 1:3, o = c("top", "low", "high"))
  want <- drop(gower_matrix(frame, new = new) %*% fit$weights)
  expect_equal(unname(predict(fit, new)), want)
  turned <- transform(new, o = factor(o, rev(grades), ordered = TRUE))
  expect_equal(unname(predict(fit, turned)), want)
  expect_equal(unname(predict(kme(~ a + o, frame, estimator = "skmse"), new)),
               want)
  expect_error(predict(fit, transform(new, o = "best")),
               "levels of 'o' that the fit has seen, not 'best'",
               class = "kernmean_error_input")
  expect_error(predict(fit, transform(new, o = 1:3)),
               class = "kernmean_error_input")
  # The kernel of a fit is not for numbers, nor for levels without an order.
  for (o in list(1:30, factor(rep(1:3, 10)))) {
    expect_error(kme(data.frame(a = columns$a, o), fit$kernel),
                 class = "kernmean_error_input")
  }
  # Samples of fewer levels, in which those of the first have their places.
  few <- droplevels(frame[frame$o != "middle", ])
  of <- \(y) mmd_test(frame, y, filter = "none", B = 19)$statistic
  expect_identical(of(few), of(frame[frame$o != "middle", ]))
  alone <- kme(frame$o)
  expect_equal(predict(alone, factor("high", rev(grades), ordered = TRUE)),
               predict(alone, data.frame(x = "high")), ignore_attr = TRUE)
  # As a covariate it is the same numbers.
  set.seed(4)
  t <- rbinom(30, 1, 0.5)
  numbers <- transform(frame, o = match(o, grades))
  expect_identical(unname(kme_weights(frame, treat = t)$weights),
                   unname(kme_weights(numbers, treat = t)$weights))
  expect_match(capture.output(kme_weights(frame, treat = t)),
               "ordered: o (4 levels)", fixed = TRUE, all = FALSE)
})

test_that("it is positive definite, and sees no units and no names of levels", {
  for (i in 1:20) {
    n <- 20L
    frame <- data.frame(x = rt(n, 2), y = rpois(n, 1),
                        f = factor(sample.int(1 + i %% 6, n, TRUE)),
                        g = factor(rbinom(n, 1, 0.1)))
    expect_gt(min(eigen(kernel_matrix(frame), TRUE, TRUE)$values), -1e-12)
  }
  other <- transform(columns, a = 5 - 1e4 * a, b = b / 7, g = factor(
    g, rev(levels(g)), c("z", "o", "p", "b", "c")
  ))
  expect_near(unname(kernel_matrix(other)), unname(kernel_matrix(columns)),
              1e-12)
  expect_equal(kernel_matrix(columns[30:1, 4:1])[30:1, 30:1],
               kernel_matrix(columns), tolerance = 1e-13, ignore_attr = TRUE)
})

test_that("fits read new rows by name, with levels that are new", {
  fit <- kme(columns, estimator = "skmse")
  expect_equal(unname(fit$fitted),
               drop(gower_matrix(columns) %*% fit$weights))
  new <- data.frame(g = c("b", "zz"), f = c("new", "u"), b = 0:1, a = 1:2)
  expect_equal(unname(predict(fit, new)),
               drop(gower_matrix(columns, new = new) %*% fit$weights))
  of <- kme(~ a + f + b + g, mixed, estimator = "skmse")
  expect_equal(predict(of, new), predict(fit, new))
  # Characters of a formula are factors, as everywhere in R.
  text <- kme(~ a + as.character(f) + b + g, mixed, estimator = "skmse")
  expect_equal(predict(text, new[1:2, ]), predict(fit, new[1:2, ]))
  expect_identical(as.data.frame(fit)[names(columns)], columns)
  saved <- unserialize(serialize(fit, NULL))
  expect_identical(predict(saved, new), predict(fit, new))
  expect_equal(update(fit, kernel = kernel_gower(2))$fitted,
               kme(columns, kernel_gower(2), estimator = "skmse")$fitted)
  # In the space of another fit.
  half <- kme(columns[1:15, ], fit$kernel, estimator = "kme")
  k <- gower_matrix(columns)
  expect_equal(kme_inner(half, fit), mean(k[1:15, ] %*% fit$weights))
  g <- gram(columns)
  expect_equal(predict(kme(g, estimator = "skmse"), new), predict(fit, new))
  expect_equal(kme_pca(~ a + f + b + g, mixed, ncomp = 2)$values,
               kme_pca(g, ncomp = 2)$values)
})

# 1 + C of a block, as it is written.
block_R <- function(k) {
  h <- diag(nrow(k)) - 1 / nrow(k)
  c <- h %*% k %*% h
  1 + nrow(k) * c / sum(diag(c))
}

test_that("tests of samples take factors among their columns", {
  s <- mixed$h == "s"
  test <- mmd_test(cbind(a, f, b, g) ~ h, mixed, B = 99)
  z <- scale(columns[c(1, 3)])
  blocks <- list(kernel_matrix(z, kernel = kernel_rbf()),
                 outer(columns$f, columns$f, `==`) + 0,
                 outer(columns$g, columns$g, `==`) + 0)
  blocks <- lapply(blocks, block_R)
  for (block in blocks) expect_equal(sum(diag(block - 1)), 30)
  kernels <- list(gower_matrix(columns), Reduce(`*`, blocks))
  w <- ifelse(s, 1, -1) / 15
  expect_equal(test$statistics$value,
               vapply(kernels, \(k) drop(w %*% k %*% w), 1))
  # One p-value: the larger z over the same draws.
  order <- order(mixed$h)
  draws <- replicate(99, sample(30))
  drawn <- test_control(permutations = draws)
  test <- mmd_test(columns[s, ], columns[!s, ], control = drawn)
  values <- vapply(kernels, \(k) {
    k <- k[order, order]
    v <- rep(c(1, -1), each = 15) / 15
    apply(cbind(1:30, draws), 2, \(i) drop(v %*% k[i, i] %*% v))
  }, numeric(100))
  top <- apply(scale(values), 1, max)
  expect_equal(test$statistic[[1]], top[1])
  expect_equal(test$p.value, mean(top >= top[1] - 1e-9))
  # The same data in all forms, and what leaves one block.
  for (other in list(
    mmd_test(h ~ ., mixed, B = 39), mmd_test(. ~ h, mixed, B = 39),
    mmd_test(columns[s, ], columns[!s, ], B = 39),
    mmd_test(gram(columns), mixed$h, B = 39), update(test, B = 39)
  )) {
    expect_equal(other$statistics$value, test$statistics$value)
  }
  one <- mmd_test(f ~ h, mixed, B = 99)
  expect_null(one$statistics)
  expect_equal(one$statistic[[1]],
               drop(w %*% gower_matrix(columns["f"]) %*% w))
  alone <- update(test, filter = "none")
  expect_equal(alone$replicates, values[-1, 1])
  # With one block K_A = 1 + C has the p-value of the block.
  set.seed(2)
  p <- mmd_test(as_gram(kernel_matrix(columns["f"])), mixed$h, B = 99)$p.value
  set.seed(2)
  expect_identical(mmd_test(as_gram(blocks[[2]]), mixed$h, B = 99)$p.value, p)
  pairs <- mmd_pairwise(cbind(a, h = factor(h)) ~ f, mixed, B = 39)
  expect_match(pairs$method, "ANOVA")
})

test_that("shifts that cancel between levels are seen", {
  found <- replicate(15, {
    f <- factor(rep(1:2, 40))
    x <- data.frame(a = rnorm(80) + ifelse(f == 1, 0.9, -0.9) *
                      rep(c(1, -1), each = 40), f)
    test <- mmd_test(x[1:40, ], x[41:80, ], B = 39)
    c(test$p.value, mmd_test(x$a[1:40], x$a[41:80], B = 39)$p.value) <= 0.05
  })
  expect_gte(sum(found[1, ]), 13L)
  expect_lte(sum(found[2, ]), 4L)
})

test_that("what is no mixed sample is refused", {
  fit <- kme(columns)
  holes <- replace(columns, "f", replace(columns$f, 3, NA))
  expect_snapshot(writeLines(refusals(expression(
    kme(columns, kernel_rbf()), kme(columns, scale = TRUE), kme(holes),
    kme(columns, estimator = "mkme"), kernel_gower(-1), kernel_gower(NULL),
    predict(fit, data.frame(a = 1, f = 2, b = 1, g = "a")),
    predict(fit, columns["a"]), kme(columns[1:2], fit$kernel),
    kme(columns[c(1, 3)], kme(columns[1:2])$kernel),
    mmd_test(columns[1:9, ], mixed[10:19, 1:3], B = 39),
    mmd_test(. ~ h, mixed, bandwidths = "fuse"),
    kernel_gower() + kernel_rbf(), kme_density(columns)
  ))))
  expect_snapshot({
    kernel_gower()
    fit
  })
})

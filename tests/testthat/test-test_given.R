# Tests given covariates: reference values, slow twins, exact strata, words.

# The statistics of four data sets, from another implementation in plain R, to
# six digits; its factors of Gram matrices end at 1e-8.
references <- list(
  lin1 = c(2.430462, 1.078730, 5.033005, 0.854723),
  wiggle = c(0.610099, 1.288935, 0.139418, 2.193191),
  square = c(4.369704, 1.961378, 2.056250, 2.154620),
  group3 = c(7.456060, 2.347132, 15.781805, 4.289003)
)
shares <- c(lin1 = 0.158122, wiggle = 0, square = 0.209456, group3 = 0.255400)
r2 <- list(lin1 = c(0.426680, 0.608949), wiggle = c(0.877806, 0.841897),
           square = c(0.423811, 0.474944), group3 = c(0.237888, 0.748054))

test_that("statistics are the reference values", {
  for (name in names(references)) {
    set.seed(1)
    test <- suppressWarnings(hsic_test(y ~ x | z, given_reference(name),
                                       B = 19))
    expect_near(test$statistics$value, references[[name]], 5e-6)
    expect_near(test$given$share, shares[[name]], 5e-6)
    expect_near(test$given$sides$r2, r2[[name]], 5e-6)
  }
})

test_that("statistics are sums over pairs of rows", {
  d <- given_reference("group3")
  z <- new_covariates(named_columns(d$z, "z"))
  bank <- make_bank(z$x)
  options <- list(linear = FALSE)
  x <- given_side(cbind(d$y, d$z[, 3]^2), "x", bank, options)
  y <- given_side(d$x, "y", bank, options)
  near <- near_factor(z$x)
  got <- given_ratios(x$features, x$e, y, list(matrix(1, 100), near))
  want <- c(
    form_ratio_R(x$features, y$features, 1),
    form_ratio_R(x$features, y$features, tcrossprod(near)),
    form_ratio_R(x$e, y$e, 1), form_ratio_R(x$e, y$e, tcrossprod(near))
  )
  expect_near(drop(got), want, 1e-10)
  # Draws stand side by side.
  both <- given_ratios(cbind(x$features, x$features[100:1, ]),
                       cbind(x$e, x$e[100:1, ]), y, list(near), 2L)
  expect_near(both[, 1], got[c(2, 4), ], 1e-12)
  expect_near(both[, 2], drop(given_ratios(
    x$features[100:1, ], x$e[100:1, ], y, list(near)
  )), 1e-12)
})

test_that("sums over pairs of rows are the same in both orders of products", {
  set.seed(2)
  for (n in c(20, 400)) {
    e <- matrix(rnorm(n * 12), n)
    o <- matrix(rnorm(n * 3), n)
    l <- matrix(rnorm(n * 30), n)
    l <- l / sqrt(rowSums(l^2))
    expect_identical(by_pairs(n, 30, 3, 12), n == 20)
    twin <- vapply(1:4, \(k) {
      one <- e[, 3 * k - 2:0]
      sum(tcrossprod(one) * tcrossprod(o) * tcrossprod(l)) /
        sum(rowSums(one^2) * rowSums(o^2))
    }, 0)
    expect_near(drop(form_ratios(e, o, list(l), 4)), twin, 1e-11)
  }
})

test_that("residuals that do not change places give the fit of a second pass", {
  d <- given_reference("square")
  z <- new_covariates(named_columns(as.matrix(d$z), "z"))
  bank <- make_bank(z$x)
  sides <- lapply(d[c("x", "y")], given_side, "v", bank, list(linear = FALSE))
  one <- sides$x$chosen[[1]]
  moved <- sides$x$e[, 1] /
    sqrt(1 - smoother_leverages(one$smoother, one$used))
  again <- sides$x$fitted[, 1] + moved - mean(moved)
  e <- again - smoother_fit(one$smoother, as.matrix(again), one$used)
  f <- sides$x$made(e / sd(e))
  f <- f - smoother_fit(sides$x$smooth$smoother, f, sides$x$smooth$used)
  locals <- list(near_factor(z$x))
  expect_near(
    drop(refitted_ratios(sides$x, sides$y, locals, FALSE, cbind(1:80))),
    drop(given_ratios(f, e, sides$y, locals)), 1e-10
  )
})

test_that("factors of residuals reproduce their kernel", {
  set.seed(2)
  e <- matrix(rnorm(60), 30)
  f <- residual_features(e, 30L)(e)
  kernel <- median_bandwidth(kernel_rbf(), e)
  expect_near(tcrossprod(f), fold_store(kernel, e), 5e-3)
  # The order of rows does not matter.
  rows <- sample(30)
  expect_near(residual_features(e)(e)[rows, ],
              residual_features(e[rows, ])(e[rows, ]), 1e-8)
})

test_that("cells hold rows of like z within levels", {
  set.seed(3)
  z <- new_covariates(data.frame(f = factor(rep(1:3, 40)), v = rnorm(120)))
  cells <- like_cells(z, 8L)
  expect_true(all(tabulate(cells) %in% 8:15))
  expect_true(all(tapply(z$like$f, cells, \(f) length(unique(f))) == 1))
  spans <- tapply(z$like$v, cells, \(v) diff(range(v)))
  expect_lt(median(spans), 1)
})

test_that("factors are given exactly, by all labelings within levels", {
  set.seed(4)
  d <- data.frame(g = factor(rep(1:3, each = 4)), x = rnorm(12), y = rnorm(12))
  d$y <- d$y + d$x
  d$t <- rep(c("a", "b"), 6)
  given <- mmd_test(y ~ t | g, d, filter = "none",
                    control = test_control(permutations = "all"))
  blocks <- mmd_test(y ~ t, d, blocks = g, filter = "none",
                     control = test_control(permutations = "all"))
  expect_identical(given$p.value, blocks$p.value)
  # Enumerated by hand.
  K <- exp(-as.matrix(dist(d$y))^2 / (2 * given$estimate[["bandwidth"]]^2))
  H <- diag(12) - outer(d$g, d$g, `==`) / 4
  K <- H %*% K %*% H
  choices <- combn(4, 2)
  grid <- expand.grid(1:6, 1:6, 1:6)
  statistic <- apply(grid, 1, \(at) {
    a <- unlist(lapply(1:3, \(j) choices[, at[j]] + 4 * (j - 1)))
    s <- replace(rep(-1, 12), a, 1)
    sum(K * outer(s, s))
  })
  s <- ifelse(d$t == "a", 1, -1)
  expect_equal(given$p.value,
               mean(statistic >= sum(K * outer(s, s)) - 1e-10))
  set.seed(5)
  by_formula <- hsic_test(y ~ x | g, d, B = 99)
  set.seed(5)
  expect_identical(by_formula$p.value,
                   hsic_test(y ~ x, d, blocks = g, B = 99)$p.value)
  expect_match(by_formula$data.name, "given g", fixed = TRUE)
  # Few numbers are levels, too, and two factors are crossed.
  d <- d[rep(1:12, 3), ]
  d$h <- rep(1:2, 18)
  expect_equal(hsic_test(y ~ x | g + h, d, B = 19)$parameter[["blocks"]], 6)
})

test_that("dependence that the covariates make is not found, other is", {
  set.seed(6)
  z <- rnorm(150)
  d <- data.frame(z, x = sin(3 * z) + rnorm(150) / 2, y = sin(3 * z))
  d$same <- d$y + rnorm(150) / 2
  d$other <- d$y + (d$x - sin(3 * z))^2
  expect_lt(hsic_test(same ~ x, d, B = 99)$p.value, 0.02)
  expect_gt(suppressWarnings(hsic_test(same ~ x | z, d))$p.value, 0.05)
  expect_lt(suppressWarnings(hsic_test(other ~ x | z, d))$p.value, 0.01)
  linear <- suppressWarnings(hsic_test(other ~ x | z, d,
                                       kernel = kernel_linear()))
  expect_identical(linear$statistics$statistic, given_names[3:4])
})

test_that("groups, several columns, distances and mixed covariates are read", {
  set.seed(7)
  few <- iris[c(1:20, 51:70), ]
  few$Species <- droplevels(few$Species)
  few$w <- rnorm(40)
  test <- mmd_test(Sepal.Length + Sepal.Width ~ Species | w, few, B = 99)
  expect_lt(test$p.value, 0.05)
  expect_match(test$data.name, "by Species given w")
  expect_identical(test$given$sides$column, c(
    "Speciesversicolor", "Sepal.Length", "Sepal.Width"
  ))
  far <- suppressWarnings(mmd_test(dist(few[, 1:4]) ~ Species | w, few, B = 99))
  expect_lt(far$p.value, 0.05)
  mixed <- hsic_test(Sepal.Length ~ Petal.Length | w + Species, few, B = 19)
  expect_identical(dim(mixed$given$residuals$x), c(40L, 1L))
})

test_that("interactions after the bar are those of the kernels", {
  set.seed(1)
  air <- stats::na.omit(airquality)
  p <- \(formula) {
    set.seed(2)
    hsic_test(formula, air, B = 39)$p.value
  }
  sum <- p(Ozone ~ Solar.R | Temp + Month)
  expect_identical(p(Ozone ~ Solar.R | Temp * Month), sum)
  expect_identical(p(air$Ozone ~ air$Solar.R | air$Temp + air$Month), sum)
  # Levels that no row has say nothing.
  two <- subset(iris, Species != "setosa")
  q <- \(data) {
    set.seed(3)
    hsic_test(Sepal.Length ~ Species | Petal.Length, data, B = 19)$statistic
  }
  expect_identical(q(two), q(droplevels(two)))
})

test_that("cells keep equal values together, whatever the order of rows", {
  set.seed(8)
  z <- list(like = data.frame(z = ifelse(stats::runif(100) < 0.6, 0,
                                         stats::rnorm(100)), w = 1))
  z$x <- as.matrix(z$like)
  cells <- like_cells(z, 8)
  expect_length(unique(cells[z$like$z == 0]), 1)
  expect_gte(min(table(cells)), 8)
  rows <- sample(100)
  moved <- like_cells(list(like = z$like[rows, ], x = z$x[rows, ]), 8)
  expect_identical(moved, cells[rows])
})

test_that("the order of rows changes a statistic by rounding alone", {
  set.seed(9)
  n <- 300
  z <- matrix(stats::rnorm(5 * n), n)
  near <- near_factor(z)
  expect_near(rowSums(near^2), rep(1, n), 1e-12)
  rows <- sample(n)
  expect_near(tcross(near_factor(z[rows, ])), tcross(near[rows, ]), 1e-8)
})

test_that("few ways to change places are told, or refused", {
  set.seed(10)
  n <- 40
  d <- data.frame(w = stats::rnorm(n), x = stats::rnorm(n), y = stats::rnorm(n))
  test <- \(k) {
    d$id <- factor(c(seq_len(n - 2 * k), n + rep(seq_len(k), each = 2)))
    hsic_test(y ~ x | w + id, d, B = 99)
  }
  expect_error(test(4), "only 16 ways", class = "kernmean_error_input")
  expect_warning(test(10), class = "kernmean_warning_alone")
})

test_that("rows in time are told in both kinds of test", {
  set.seed(3)
  d <- data.frame(y = cumsum(stats::rnorm(200)), x = cumsum(stats::rnorm(200)),
                  g = factor(rep(1:4, 50)), z = stats::rnorm(200))
  expect_warning(hsic_test(y ~ x | g, d, B = 39),
                 class = "kernmean_warning_alike")
  expect_warning(hsic_test(y ~ x | g + z, d, B = 39),
                 class = "kernmean_warning_alike")
  expect_silent(hsic_test(y ~ x | g, d[sample(200), ], B = 39))
  expect_warning(mmd_test(weight ~ Diet | Time, ChickWeight, B = 39),
                 class = "kernmean_warning_alike")
})

test_that("units far from one change nothing", {
  set.seed(11)
  d <- data.frame(a = stats::rnorm(60), x = stats::rnorm(60))
  d$y <- d$a + stats::rnorm(60)
  p <- \(data) {
    set.seed(12)
    hsic_test(y ~ x | a, data, B = 19)$statistic
  }
  usual <- p(d)
  expect_near(p(transform(d, a = 1e200 * a)), usual, 1e-6)
  expect_near(p(transform(d, a = 1e-200 * a)), usual, 1e-6)
  expect_near(p(transform(d, y = 1e170 * y)), usual, 1e-6)
  expect_silent(hsic_test(y ~ x | a, d, B = 40))
  expect_identical(suppressWarnings(hsic_test(y ~ x | a, d, B = 1))$null |>
                     length(), 1L)
})

test_that("what z explains nearly all of is told", {
  set.seed(4)
  z <- stats::rnorm(100)
  d <- data.frame(z, x = exp(z), y = z + stats::rnorm(100))
  test <- suppressWarnings(hsic_test(y ~ x | z, d, B = 19))
  expect_match(test$given$words, "z explains all but .*% of x", all = FALSE)
})

test_that("bad input is answered in words", {
  set.seed(8)
  d <- data.frame(x = rnorm(40), y = rnorm(40), z = rnorm(40),
                  id = rep(1:8, 5))
  bad <- \(...) expect_error(..., class = "kernmean_error_input")
  bad(hsic_test(y ~ x | x, d), "stands before it")
  bad(hsic_test(y ~ x | z, d, clusters = id), "clusters")
  bad(hsic_test(y ~ x | z, d, estimator = "skmse"), "numeric covariates")
  bad(hsic_test(y ~ x | z, d, kernel = kernel_laplace()), "kernel_rbf")
  bad(hsic_test(y ~ x | z, d[1:15, ]), "at least 20 rows")
  bad(mmd_test(y ~ x | z, d), "groups")
  d$series <- ts(d$y)
  bad(hsic_test(series ~ x | z, d), "time")
  bad(hsic_test(y ~ x, d, control = test_control(cells = 5)), "cells")
  bad(hsic_test(y ~ x | z, d, control = test_control(bins = 5)), "bins")
  bad(test_control(undersmooth = 2), "undersmooth")
  bad(test_control(bank = list(kernel_rbf())), "bank")
  bad(hsic_test(y ~ x | z, replace(d, "z", NA_real_)), "missing")
  bad(hsic_test(y ~ x | z, transform(d, z = replace(z, 1, Inf))), "infinite")
  bad(hsic_test(y ~ x | z, transform(d, x = 2 * z - 1)), "function of what")
  bad(mmd_test(y ~ g | z, transform(d, g = z > 0, z = (z > 0) + z * 1e-9)),
      "function of what")
  bad(hsic_test(y ~ x | z, transform(d, x = 3)), "'x' must vary")
  bad(hsic_test(y ~ x | z | x, d), "one bar")
  bad(hsic_test(y ~ 1 | z, d), "not none")
  bad(hsic_test(y ~ y | z, d), "different terms")
  bad(hsic_test(y ~ x | z, d, subset = z > 1e9), "at least one row")
  bad(mmd_test(y ~ g | z, transform(d, g = ifelse(z > 0, NA, x > 0))),
      "'g' must have no missing")
  bad(hsic_test(y ~ x | z + row, transform(d, row = factor(seq_along(z)))),
      "change places")
  bad(stats::formula(hsic_test(y ~ x | z, d, B = 19)), "do not keep")
  own <- hsic_test(y ~ x | z, d, B = 19, control = test_control(
    bank = list(line = kernel_linear()), cells = 10L, undersmooth = 1
  ))
  expect_identical(unique(own$given$sides$kernel), "line")
})

test_that("warnings say what a small p may be", {
  set.seed(9)
  z <- matrix(rnorm(600), 120)
  f <- sin(3 * rowSums(z) / sqrt(5))
  d <- list(x = f + rnorm(120) / 4, y = f + rnorm(120) / 4, z = z)
  expect_warning(test <- hsic_test(y ~ x | z, d, B = 99),
                 class = "kernmean_warning_strain")
  expect_gt(test$given$strain, 3)
  walk <- \() cumsum(rnorm(200))
  d <- list(x = walk(), y = walk(), z = rnorm(200))
  expect_warning(suppressWarnings(hsic_test(y ~ x | z, d, B = 19),
                                  "kernmean_warning_strain"),
                 class = "kernmean_warning_alike")
})

test_that("reach falls with columns, and half of the rows lose", {
  set.seed(10)
  reach <- vapply(c(1, 3, 10), \(d) reach_of(matrix(rnorm(100 * d), 100)), 0)
  expect_true(all(diff(reach) < 0) && reach[1] > 0.85 && reach[3] < 0.55)
  z <- matrix(rnorm(100), 100)
  kernel <- median_bandwidth(kernel_rbf(), z)
  K <- exp(-as.matrix(dist(z))^2 / (2 * (kernel$bandwidth / 2)^2))
  left <- vapply(1:100, \(i) {
    drop(1 - K[i, -i] %*% solve(K[-i, -i] + diag(99), K[-i, i]))
  }, 0)
  expect_near(reach_of(z), 1 - mean(left), 1e-8)
})

test_that("a test given covariates prints, draws and is tested again", {
  set.seed(11)
  d <- given_reference("square")
  test <- hsic_test(y ~ x | z, d, B = 99)
  expect_snapshot(print(test))
  expect_snapshot(summary(test))
  expect_named(generics::augment(test), c(".resid.x", ".resid.y"))
  again <- update(test, B = 19)
  expect_identical(again$statistics$value, test$statistics$value)
  expect_identical(again$data.name, test$data.name)
  expect_length(again$replicates, 19)
})

# Plots of instrumental-variable fits: what is drawn is what predict() says.

s <- iv_sample(60)
level <- factor(rep_len(c("low", "middle", "high"), 60))
data <- data.frame(s$a, size = exp(s$d[, 2]), level, s$d, y = s$y)
names(data)[1:2] <- c("dose", "other")
fits <- list(
  plain = iv(s$a, s$y, s$d, lambda = 1, mu = 1),
  formula = iv(y ~ dose + log(size) + level | d1 + d2, data, lambda = 1,
                    mu = 0.1),
  level = iv(y ~ level | d1, data, lambda = 1, mu = 0.1),
  cv = iv(s$a, s$y, s$d),
  nested = iv_nested(s$a, s$b, s$c, s$d, s$y, s$w, s$s, lambda_c = 1,
                          lambda_d = 1, mu_g = 1, mu_h = 2)
)

# The data of the layer with the points, and of the curve.
points_of <- \(picture) Find(\(l) l$kind == "points", picture$layers)$data
curve_of <- \(picture) Find(\(l) l$kind == "line", picture$layers)$data

shown <- \(...) on_device(plot(...))

test_that("the curve is the function along one column, others in the middle", {
  for (j in 1:2) {
    picture <- fit_picture(fits$plain, column = j, n = 7)
    at <- matrix(apply(s$a, 2, stats::median), 7, 2, byrow = TRUE)
    at[, j] <- seq(min(s$a[, j]), max(s$a[, j]), length.out = 7)
    want <- unname(predict(fits$plain, at))
    expect_identical(curve_of(picture), list(x = at[, j], y = want))
    expect_identical(points_of(picture), list(x = s$a[, j], y = s$y))
    drawn <- shown(fits$plain, column = colnames(s$a)[j], n = 7)
    expect_identical(names(drawn), c("a1", "a2", ".fitted"))
    expect_identical(unname(as.matrix(drawn)), cbind(at, want,
                                                     deparse.level = 0))
  }
  expect_identical(shown(fits$plain), shown(fits$plain, "fit", column = 1))
})

test_that("it is in the units of the user and with the intercept", {
  wide <- s$a * rep(c(1, 1000), each = 60) + 7
  for (scale in list(TRUE, FALSE, "whiten")) {
    fit <- suppressWarnings(iv(wide, s$y, s$d, kernel_rbf(1), lambda = 1,
                                    mu = 1, scale = scale, intercept = TRUE))
    drawn <- shown(fit, column = 2, n = 5)
    expect_identical(range(drawn$a2), range(wide[, 2]))
    # Some are far from all points.
    want <- suppressWarnings(predict(fit, drawn[1:2]))
    expect_near(drawn$.fitted, unname(want), 1e-12)
  }
})

test_that("columns of a formula are its terms, factors at their mode", {
  fit <- fits$formula
  drawn <- shown(fit, n = 4)
  expect_identical(names(drawn), c("dose", "log(size)", "level", ".fitted"))
  expect_identical(range(drawn$dose), range(data$dose))
  expect_identical(drawn$`log(size)`, rep(stats::median(log(data$size)), 4))
  # All three levels are as frequent: the first one.
  expect_identical(as.character(drawn$level), rep("high", 4))
  new <- \(drawn) data.frame(dose = drawn$dose, size = exp(drawn$`log(size)`),
                             level = drawn$level)
  expect_near(drawn$.fitted, unname(predict(fit, new(drawn))), 1e-12)
  along <- shown(fit, column = "level")
  expect_identical(as.character(along$level), levels(level))
  expect_near(along$.fitted, unname(predict(fit, new(along))), 1e-12)
  picture <- fit_picture(fit)
  expect_identical(c(picture$xlab, picture$ylab), c("dose", "y"))
  expect_identical(picture$note$text, paste0(
    "at log(size) = ", format(stats::median(log(data$size)), digits = 3),
    ", level = high"
  ))
})

test_that("a factor has a bar for each level, and points in its place", {
  picture <- fit_picture(fits$level)
  means <- predict(fits$level, data.frame(level = picture$ticks_x$labels))
  bars <- matrix(curve_of(picture)$y, 3)
  expect_near(bars[1, ], unname(means), 1e-12)
  expect_identical(bars[1, ], bars[2, ])
  points <- points_of(picture)
  at <- round(points$x)
  expect_identical(picture$ticks_x$labels[at], as.character(level))
  expect_lt(max(abs(points$x - at)), 0.4)
  expect_identical(points$y, s$y)
  expect_identical(names(picture$value), c("level", ".fitted"))
})

test_that("a function of a nested fit has the points of its moment", {
  fit <- fits$nested
  drawn <- shown(fit, n = 6)
  expect_identical(names(drawn), c("g", "h"))
  expect_equal(drawn$g$.fitted, unname(predict(
    fit, list(a = as.matrix(drawn$g[1:2]))
  )[, "g"]), tolerance = 1e-12)
  expect_equal(drawn$h$.fitted, unname(predict(
    fit, list(b = as.matrix(drawn$h[1:2]))
  )[, "h"]), tolerance = 1e-12)
  one <- s$s == 1
  expect_identical(points_of(fit_picture(fit, what = "g")),
                   list(x = s$a[one, 1], y = s$y[one]))
  h <- fit_picture(fit, what = "h", column = "b2")
  expect_identical(points_of(h), list(
    x = s$b[!one, 2], y = unname(s$w * fitted(fit)[, "g"])[!one]
  ))
  expect_identical(h$ylab, "w g(a)")
  # Functions along columns of their own.
  drawn <- shown(fit, column = list(h = 2), n = 5)
  expect_length(unique(drawn$g$a1), 5)
  expect_length(unique(drawn$h$b2), 5)
  expect_identical(shown(fit, what = "h", column = 2, n = 5), drawn$h)
})

test_that("the held-out criterion is that of the fit, with its marks", {
  fit <- quietly(update(fits$cv, rule = "1se"))
  cv <- fit$cv
  expect_identical(shown(fit, "cv"), cv)
  picture <- fit_picture(fit, "cv")
  kinds <- vapply(picture$layers, `[[`, "", "kind")
  bars <- matrix(picture$layers[[1L]]$data$y, 3)
  expect_equal(colMeans(bars[1:2, ]), cv$score)
  expect_equal(bars[2, ] - bars[1, ], 2 * cv$se)
  marks <- points_of(picture)
  expect_identical(marks$x, c(fit$mu[["mu"]], cv$mu[which.min(cv$score)]))
  limit <- picture$layers[[which(kinds == "across")]]$data$h
  expect_equal(limit, min(cv$score) + cv$se[which.min(cv$score)])
  expect_true(marks$y[1] <= limit)
  expect_true(all(marks$y >= picture$ylim[1] & marks$y <= picture$ylim[2]))
  # The paired rule takes the last bar that reaches the minimum.
  paired <- fits$cv
  picture <- fit_picture(paired, "cv")
  bars <- matrix(picture$layers[[1L]]$data$y, 3)
  limit <- picture$layers[[which(kinds == "across")]]$data$h
  expect_identical(limit, min(cv$score))
  expect_identical(max(which(bars[1, ] <= limit)), which(paired$cv$chosen))
  # The minimum itself: one mark and no limit.
  picture <- fit_picture(update(fit, rule = "min"), "cv")
  expect_length(points_of(picture)$x, 1L)
  expect_match(picture$key$label, "the minimum")
  # One fold leaves no standard error, one value no width.
  cv$se <- NA_real_
  fit$cv <- cv
  fit$rule <- "min"
  expect_no_error(shown(fit, "cv"))
})

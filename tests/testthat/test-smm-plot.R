# Plots of machines: what is drawn is what the fit says.

theta <- kernel_rbf(1.3)
two <- kinds_of_bags(24, 8)
three <- kinds_of_bags(30, 8, 3)
label <- \(kind) factor(c("x", "y", "z")[kind])
set.seed(61)
value <- two$kind + rnorm(24, sd = 0.2)

shown <- function(...) {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  plot(...)
}
of_kind <- \(picture, kind) Filter(\(l) l$kind == kind, picture$layers)

test_that("bags stand at their scores on two kernel principal axes", {
  skip_if_not_installed("kernlab")
  fit <- smm(three$bags, label(three$kind), kernel = theta, level2 = "rbf",
             cost = 20)
  pca <- kme_pca(fit$gram, ncomp = 2)
  drawn <- shown(fit)
  expect_identical(row.names(drawn), names(three$bags))
  expect_equal(as.matrix(drawn[1:2]), predict(pca), tolerance = 1e-12)
  expect_identical(drawn$y, label(three$kind))
  expect_identical(drawn$.fitted, unname(fitted(fit)))
  expect_identical(drawn$support, names(three$bags) %in% fit$support)
  picture <- fit_picture(fit)
  layers <- of_kind(picture, "points")
  expect_equal(layers[[1]]$data$x, drawn$PC1)
  expect_identical(layers[[1]]$level, drawn$y)
  # Rings are at the support bags, and in the key.
  support <- drawn[drawn$support, ]
  expect_gt(sum(!drawn$support), 0)
  expect_setequal(layers[[2]]$data$x, support$PC1)
  expect_identical(layers[[2]]$style$pch, 1L)
  expect_identical(picture$key$label, c("support bag", "x", "y", "z"))
  expect_identical(picture$xlab, component_labels(pca)[1])
  expect_identical(shown(fit, "bags"), shown(fit, type = "bags"))
})

test_that("numbers have a color bar, novelty its two kinds, ridge no rings", {
  skip_if_not_installed("kernlab")
  fit <- smm(two$bags, value, kernel = theta, cost = 1)
  picture <- fit_picture(fit)
  expect_true(picture$bar)
  expect_equal(of_kind(picture, "points")[[1]]$data$value, value)
  expect_identical(picture$key$label, "support bag")
  fit <- smm(two$bags, kernel = theta, nu = 0.2)
  picture <- fit_picture(fit)
  expect_identical(names(picture$value), c("PC1", "PC2", ".fitted", "support"))
  expect_identical(picture$key$label, c("support bag", "normal", "novel"))
  expect_identical(of_kind(picture, "points")[[1]]$level, unname(fitted(fit)))
})

test_that("a fit without support bags, of ridge or of a tube, has no rings", {
  fit <- smm(two$bags, value, kernel = theta, type = "ridge")
  picture <- fit_picture(fit)
  expect_length(of_kind(picture, "points"), 1L)
  expect_null(picture$key)
  expect_named(picture$value, c("PC1", "PC2", "y", ".fitted"))
  skip_if_not_installed("kernlab")
  flat <- smm(two$bags, value, kernel = theta, cost = 1, epsilon = 9)
  expect_length(of_kind(fit_picture(flat), "points"), 1L)
  expect_false(any(shown(flat)$support))
})

test_that("bags without variance, and a single one, are drawn at 0", {
  same <- rep(list(matrix(1:4, 2)), 4)
  fit <- smm(same, 1:4, type = "ridge", kernel = theta)
  drawn <- shown(fit)
  expect_identical(drawn$PC1, numeric(4))
  line <- smm(list(1, 2, 3, 4), 1:4, kernel = kernel_linear(), type = "ridge")
  drawn <- shown(line)
  expect_equal(abs(drawn$PC1), c(1.5, 0.5, 0.5, 1.5))
  expect_identical(drawn$PC2, numeric(4))
  skip_if_not_installed("kernlab")
  expect_identical(dim(shown(smm(list(1:3), kernel = theta, nu = 0.5))),
                   c(1L, 4L))
})

test_that("of many bags an even share is drawn, with its rings", {
  skip_if_not_installed("kernlab")
  set.seed(62)
  many <- matrix(rnorm(2100))
  fit <- smm(many, id = seq_len(2100), kernel = theta, nu = 0.3)
  layers <- of_kind(fit_picture(fit), "points")
  expect_length(layers[[1]]$shown, 2000L)
  support <- names(fit$gram$sizes) %in% fit$support
  expect_length(layers[[2]]$data$x, sum(support[layers[[1]]$shown]))
})

test_that("what was tried is the table, with its choice", {
  skip_if_not_installed("kernlab")
  folds <- rep(1:4, 6)
  fit <- smm(two$bags, label(two$kind), cost = c(10, 1, 100),
             bandwidth = c(2, 0.5), folds = folds)
  expect_identical(shown(fit, "cv"), fit$cv)
  picture <- fit_picture(fit, "cv")
  curves <- Filter(\(l) isTRUE(l$main), picture$layers)
  expect_length(curves, 2L)
  for (i in 1:2) {
    own <- fit$cv[fit$cv$bandwidth == c(0.5, 2)[i], ]
    expect_identical(curves[[i]]$data, list(x = own$cost, y = own$score))
    expect_match(curves[[i]]$level, paste("bandwidth", c(0.5, 2)[i]))
  }
  best <- fit$cv[fit$cv$chosen, ]
  marked <- Find(\(l) identical(l$style$bg, accent), picture$layers)
  expect_identical(marked$data, list(x = best$cost, y = best$score))
  bars <- of_kind(picture, "line")[[1]]$data
  expect_equal(bars$y[1:2], best$score + c(-1, 1) * best$se)
  # Along the bandwidth where that alone varies, with bars for all.
  one <- smm(two$bags, label(two$kind), cost = 1, bandwidth = c(2, 0.5, 1),
             folds = folds)
  picture <- fit_picture(one, "cv")
  expect_identical(picture$xlab, "bandwidth")
  expect_length(of_kind(picture, "line")[[1]]$data$y, 9L)
  expect_identical(Filter(\(l) isTRUE(l$main), picture$layers)[[1]]$data$x,
                   c(0.5, 1, 2))
  expect_identical(picture$key$label,
                   paste("bandwidth =", format(one$kernel$bandwidth)))
})

test_that("novelty has the limit that it was chosen by", {
  skip_if_not_installed("kernlab")
  fit <- smm(two$bags, kernel = theta, level2 = "rbf", folds = rep(1:4, 6))
  picture <- fit_picture(fit, "cv")
  limit <- Find(\(l) identical(l$level, "nu + 2 standard errors"),
                picture$layers)$data
  nu <- sort(unique(fit$cv$nu))
  expect_equal(limit, list(x = nu, y = nu + 2 * sqrt(nu * (1 - nu) / 24)))
  expect_length(Filter(\(l) isTRUE(l$main), picture$layers), 5L)
  one <- smm(two$bags, kernel = theta, level2 = "rbf", nu = 0.1,
             folds = rep(1:4, 6))
  expect_identical(fit_picture(one, "cv")$xlab, "bandwidth2")
})

test_that("ridge regression has the score of each bandwidth", {
  fit <- smm(two$bags, value, type = "ridge")
  expect_identical(shown(fit, "cv"), fit$cv)
  picture <- fit_picture(fit, "cv")
  expect_identical(picture$xlab, "bandwidth")
  expect_match(picture$title, "leave-one-out rmse")
})

test_that("parameters of the caller are taken, and what makes no sense not", {
  ridge <- smm(two$bags, value, kernel = theta, type = "ridge")
  expect_identical(shown(ridge, col = "red", main = "mine"), shown(ridge))
  skip_if_not_installed("kernlab")
  given <- smm(two$bags, label(two$kind), kernel = theta, cost = 1)
  expect_snapshot(writeLines(refusals(expression(
    plot(given, "cv"), plot(ridge, "cv"), plot(given, "weights")
  ))))
})

test_that("ggplot2 has the same data", {
  skip_on_cran()
  skip_if_not_installed("ggplot2")
  skip_if_not_installed("kernlab")
  fit <- smm(three$bags, label(three$kind), cost = c(1, 10),
             bandwidth = c(0.5, 1), folds = rep(1:3, each = 10))
  drawn <- shown(fit)
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  plot <- ggplot2::autoplot(fit)
  points <- ggplot2::layer_data(plot, 3L)
  expect_setequal(points$x, drawn$PC1)
  expect_identical(points$fill,
                   level_colors(3L)[drawn$y[match(points$x, drawn$PC1)]])
  rings <- ggplot2::layer_data(plot, 4L)
  expect_setequal(rings$x, drawn$PC1[drawn$support])
  expect_identical(unique(rings$shape), 1L)
  ridge <- smm(two$bags, value, type = "ridge")
  for (one in list(plot, ggplot2::autoplot(fit, "cv"),
                   ggplot2::autoplot(ridge), ggplot2::autoplot(ridge, "cv"),
                   ggplot2::autoplot(smm(ridge$gram, value, cost = 1)))) {
    expect_silent(ggplot2::ggplotGrob(one))
  }
  expect_error(ggplot2::autoplot(fit, "scores"),
               class = "kernmean_error_input")
})

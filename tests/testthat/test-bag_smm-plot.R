# Plots of machines: what is drawn is what the fit says.

theta <- kernel_rbf(1.3)
two <- kinds_of_bags(24, 8)
three <- kinds_of_bags(30, 8, 3)

shown <- function(...) {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  plot(...)
}
of_kind <- \(picture, kind) Filter(\(l) l$kind == kind, picture$layers)

test_that("bags stand at their scores on two kernel principal axes", {
  skip_if_not_installed("kernlab")
  fit <- smm(three$bags, class_of(three$kind), kernel = theta, level2 = "rbf",
             cost = 20)
  pca <- kme_pca(fit$gram, ncomp = 2)
  drawn <- shown(fit)
  expect_identical(row.names(drawn), names(three$bags))
  expect_near(as.matrix(drawn[1:2]), predict(pca), 1e-12)
  expect_identical(drawn$y, class_of(three$kind))
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

test_that("what was tried is the table, with its choice", {
  skip_if_not_installed("kernlab")
  folds <- rep(1:4, 6)
  fit <- smm(two$bags, class_of(two$kind), cost = c(10, 1, 100),
             bandwidth = c(2, 0.5), folds = folds)
  expect_identical(shown(fit, "cv"), fit$cv)
  picture <- fit_picture(fit, "cv")
  curves <- Filter(\(l) isTRUE(l$main), picture$layers)
  expect_length(curves, 2L)
  for (i in 1:2) {
    own <- fit$cv[fit$cv$bandwidth == c(0.5, 2)[i], ]
    own <- own[order(own$cost), ]
    expect_identical(curves[[i]]$data, list(x = own$cost, y = own$score))
    expect_match(curves[[i]]$level, paste("bandwidth", c(0.5, 2)[i]))
  }
  best <- fit$cv[fit$cv$chosen, ]
  marked <- Find(\(l) identical(l$style$bg, accent), picture$layers)
  expect_identical(marked$data, list(x = best$cost, y = best$score))
  bars <- of_kind(picture, "line")[[1]]$data
  expect_equal(bars$y[1:2], best$score + c(-1, 1) * best$se)
  # Along the bandwidth where that alone varies, with bars for all.
  one <- smm(two$bags, class_of(two$kind), cost = 1, bandwidth = c(2, 0.5, 1),
             folds = folds)
  picture <- fit_picture(one, "cv")
  expect_identical(picture$xlab, "bandwidth")
  expect_length(of_kind(picture, "line")[[1]]$data$y, 9L)
  expect_identical(Filter(\(l) isTRUE(l$main), picture$layers)[[1]]$data$x,
                   c(0.5, 1, 2))
  expect_identical(picture$key$label,
                   paste("bandwidth =", format(one$kernel$bandwidth)))
})

test_that("ridge regression and novelty have their scores", {
  fit <- smm(two$bags, value_of(two$kind), type = "ridge")
  expect_identical(shown(fit, "cv"), fit$cv)
  expect_identical(fit_picture(fit, "cv")$xlab, "bandwidth")
  skip_if_not_installed("kernlab")
  fit <- smm(two$bags, folds = rep(1:4, 6))
  expect_no_warning(shown(fit, "cv"))
  expect_true("told from other bags" %in% fit_picture(fit, "cv")$key$label)
})

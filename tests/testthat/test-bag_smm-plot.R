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

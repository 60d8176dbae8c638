# The kit of all plots: arguments, colors, frames.


test_that("arguments are of the picture, or parameters of base graphics", {
  fit <- kme(c(1, 2, 4), kernel_rbf(1), "skmse")
  on_device({
    expect_identical(plot(fit, "weights"), plot(fit, type = "weights"))
    expect_identical(plot(fit, "w"), plot(fit, type = "weights"))
    expect_error(plot(fit, 3), "must be one of", class = "kernmean_error_input")
    expect_warning(plot(fit, colr = 1), "\"colr\" is not a graphical")
    expect_error(plot(fit, las = 7), "invalid value")
    expect_error(plot(fit, legend = "corner"), "should be one of")
    # What stops leaves the parameters as they were.
    expect_equal(graphics::par("mar", "las"),
                 list(mar = c(5.1, 4.1, 4.1, 2.1), las = 0))
  })
  asked <- ask_picture(fit, list("weights", n = 3, cex = 2), NULL)
  expect_identical(asked, list(picture = fit_picture(fit, "weights", n = 3),
                               graphics = list(cex = 2)))
})

test_that("twelve levels are named, of more the first ones and how many", {
  x <- cbind(1:30, 1:30)
  labels_of <- function(groups, own = list(), legend = TRUE) {
    picture <- groups_picture("", x, groups, c("a", "b"), NULL)
    on_device({
      graphics::plot.new()
      fit_key(picture, own, legend)$entries$label
    })
  }
  twelve <- factor(rep_len(1:12, 30))
  expect_identical(labels_of(twelve), as.character(1:12))
  expect_identical(labels_of(factor(1:30)), c(1:11, "and 19 more"))
  # Numbers have a scale, the largest on top.
  expect_identical(labels_of(c(1, 2, rep(3, 28))),
                   c("3.0", "2.5", "2.0", "1.5", "1.0"))
  # Of colors of the caller it would be wrong.
  expect_null(labels_of(twelve, list(col = 2)))
  expect_null(labels_of(twelve, legend = FALSE))
})

test_that("limits may lie between whole numbers, and a name be given", {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  fit <- kme_pca(iris[1:4], kernel_rbf(1), ncomp = 1)
  expect_identical(plot(fit, xlim = c(1.1, 1.4)), plot(fit))
  expect_identical(plot(fit, groups = iris$Species, name = "kind"),
                   plot(fit, groups = iris$Species))
})

test_that("plots show the units of the user", {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  for (scale in list(TRUE, "whiten")) {
    fit <- kme(faithful, scale = scale)
    shown <- plot(fit, n = 10)
    expect_true(all(range(shown$y) > 30 & range(shown$y) < 120))
    expect_equal(shown$z[3, 4],
                 unname(predict(fit, cbind(shown$x[3], shown$y[4]))))
    one <- kme(faithful["waiting"], estimator = "skmse", scale = scale)
    curve <- plot(one, "embedding", n = 10)
    expect_equal(curve$value, unname(predict(one, curve$z)))
    expect_gt(min(curve$z), 30)
  }
})

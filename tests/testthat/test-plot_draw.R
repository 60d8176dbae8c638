# The kit of all plots: arguments, colors, frames.


test_that("arguments are of the picture, or parameters of base graphics", {
  fit <- kme(c(1, 2, 4), kernel_rbf(1), "skmse")
  on_device({
    expect_identical(plot(fit, "embedding"), plot(fit, type = "embedding"))
    expect_identical(plot(fit, "e"), plot(fit, type = "embedding"))
    expect_error(plot(fit, 3), "must be one of", class = "kernmean_error_input")
    expect_warning(plot(fit, colr = 1), "\"colr\" is not a graphical")
    expect_error(plot(fit, las = 7), "invalid value")
    expect_error(plot(fit, legend = "corner"), "must be TRUE, FALSE or one of",
                 class = "kernmean_error_input")
    expect_error(plot(fit, mar = 1), "wrong length")
    expect_error(plot(fit, mai = 1), "wrong length")
    plot(fit, mai = c(1, 1, 0.2, 0.2))
    # What stops leaves the parameters as they were, and so do other margins.
    expect_equal(graphics::par("mar", "las"),
                 list(mar = c(5.1, 4.1, 4.1, 2.1), las = 0))
  })
  asked <- ask_picture(fit, list("embedding", n = 3, cex = 2), NULL)
  expect_identical(asked, list(picture = fit_picture(fit, "embedding", n = 3),
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

test_that("words stand at their points, or are refused", {
  x <- scale(mtcars[, 1:4])
  fit <- kme_pca(x, ncomp = 2)
  words <- function(...) {
    layers <- ask_picture(fit, list(...), NULL)$picture$layers
    Find(\(layer) layer$kind == "text", layers)$data
  }
  at <- match(words(labels = TRUE)$labels, rownames(mtcars))
  expect_setequal(at, 1:32)
  expect_identical(words(labels = TRUE)$y, unname(fit$scores[at, 2]))
  own <- words(labels = 32:1, comps = 1)
  expect_identical(own$y, unname(fit$scores[33 - as.integer(own$labels), 1]))
  expect_null(words())
  refused <- \(...) expect_error(..., class = "kernmean_error_input")
  on_device({
    refused(plot(fit, labels = 1:3), "each of the 32 points")
    refused(plot(fit, "spectrum", labels = TRUE), "'labels' must not be given")
    expect_warning(plot(kme(x, kernel_rbf(1)), labels = TRUE),
                   "\"labels\" is not a graphical")
    refused(plot(fit, arrows = TRUE, comps = 1), "'arrows' must be FALSE")
    refused(plot(kme_pca(as_gram(exp(-as.matrix(dist(x))))), arrows = TRUE),
            "'arrows' must be FALSE")
    # Of contours they are those of contour().
    expect_silent(plot(kme(scale(faithful), kernel_rbf(1)), labels = "l",
                       n = 9))
  })
})

test_that("arrows are correlations with the scores", {
  x <- cbind(scale(mtcars[, 1:4]), constant = 1)
  fit <- kme_pca(x, kernel_rbf(2), ncomp = 3)
  r <- attr(on_device(plot(fit, arrows = TRUE, comps = c(3, 1))),
            "correlations")
  expect_equal(r[1:4, ], cor(x[, 1:4], fit$scores[, c(3, 1)]))
  expect_identical(unname(r[5, ]), c(0, 0))
  tips <- Find(\(layer) layer$kind == "arrows",
               fit_picture(fit, arrows = TRUE, comps = c(3, 1))$layers)$data
  # All in one scale, within the points.
  long <- order(-rowSums(r^2))[1:4]
  scales <- c(tips$x1 / r[long, 1], tips$y1 / r[long, 2])
  expect_near(unname(scales), rep(scales[[1]], 8), 1e-12)
  expect_lt(max(abs(tips$x1)), max(abs(fit$scores[, 3])))
  expect_lt(max(abs(tips$y1)), max(abs(fit$scores[, 1])))
  shown <- \(fit) {
    Find(\(layer) layer$kind == "text",
         fit_picture(fit, arrows = TRUE)$layers)$data$labels
  }
  some <- kernel_rbf(2, columns = c("hp", "mpg")) + kernel_linear(columns = 2)
  expect_setequal(shown(kme_pca(x, some)), c("mpg", "cyl", "hp"))
  fit <- kme_pca(scale(mtcars), ncomp = 2)
  r <- sort(rowSums(cor(mtcars, fit$scores)^2), decreasing = TRUE)
  expect_identical(shown(fit), names(r)[1:10])
})

test_that("axes of scores are equal, and an arch is said to be one", {
  note <- \(fit, ...) fit_picture(fit, ...)$note$text
  line <- kme_pca(scale(1:60), ncomp = 3)
  s <- line$scores
  share <- summary(lm(s[, 2] ~ poly(s[, 1], 2)))$r.squared
  expect_gt(share, 0.6)
  expect_identical(note(line), sprintf(
    "an arch: %.0f%% of PC2 is a parabola in PC1", 100 * share
  ))
  expect_null(note(line, comps = 2:3))
  set.seed(3)
  expect_null(note(kme_pca(matrix(rnorm(300), 100))))
  # Any three clusters lie on a parabola.
  expect_null(note(kme_pca(matrix(rnorm(180, sd = 0.1), 60) + c(0, 3, 6))))
  expect_identical(fit_picture(line)$asp, 1)
  expect_null(fit_picture(line, comps = 1)$asp)
})

test_that("a witness of many columns is drawn along those that carry it", {
  set.seed(4)
  x <- cbind(a = rnorm(80), b = rnorm(80), c = rnorm(80), d = rnorm(80))
  x[1:40, c("c", "a")] <- x[1:40, c("c", "a")] + rep(c(4, 1), each = 40)
  groups <- rep(c("left", "right"), each = 40)
  test <- mmd_test(x ~ groups, kernel = kernel_rbf(2), B = 19)
  shown <- on_device(plot(test, "witness"))
  expect_identical(names(shown)[1:2], c("c", "a"))
  k <- gram_R(kernel_rbf(2), x)
  want <- rowMeans(k[, 1:40]) - rowMeans(k[, 41:80])
  expect_near(shown$b$value, want, 1e-12)
  expect_identical(shown$b$x, x[, "b"])
  expect_identical(as.character(shown$b$group), groups)
  # The share is that of a smooth curve.
  curve <- lowess(x[, "c"], want, iter = 0)$y
  expect_identical(fit_picture(test, "witness")$panels[[1]]$panel,
                   sprintf("c (%.0f%%)", 100 * var(curve) / var(want)))
  three <- mmd_test(as.matrix(iris[1:4]) ~ iris$Species, B = 19)
  expect_length(fit_picture(three, "witness")$panels, 6L)
  expect_named(on_device(plot(three, "witness")), levels(iris$Species))
})

test_that("a witness of two columns is drawn where there are points", {
  set.seed(5)
  x <- cbind(rnorm(30), rnorm(30, sd = 9))
  test <- mmd_test(x[1:15, ], x[16:30, ], kernel_rbf(1), B = 19)
  picture <- fit_picture(test, "witness", n = 20)
  expect_false(anyNA(picture$value$z))
  z <- as.matrix(expand.grid(picture$value[1:2]))
  h <- apply(x, 2, sd) / 30^(1 / 6)
  mass <- rowSums(gram_R(kernel_rbf(1), t(t(rbind(z, x)) / h))[1:400, 401:430])
  expect_identical(as.vector(!is.na(picture$layers[[1]]$data$z)),
                   unname(mass > exp(-2)))
  expect_true(any(mass < exp(-2)))
})

# All plots at the sizes of a page, of a column of text and of a panel of four:
# no text is cut, off the page, or over another one.

set.seed(41)
flowers <- scale(iris[, 1:4])
long <- flowers
colnames(long) <- paste("a very long name of column number", 1:4)
many <- matrix(stats::rnorm(50 * 40), 50)
colnames(many) <- paste0("variable_", 1:40)
levels <- factor(c("an extremely long name of the first level", "short",
                   "another name that is rather long")[iris$Species])
months <- factor(month.name[rep_len(1:12, 150)], month.name)
rare <- factor(rep(c("common", "rare"), c(147, 3)))
air <- stats::na.omit(airquality)
flat <- as.matrix(iris[, 3:4])
three <- mmd_test(flat ~ iris$Species, B = 19)
pca <- kme_pca(long, ncomp = 12)
geyser <- kme(scale(faithful), kernel_rbf(0.5), "fkmse")
city <- data.frame(air, month = months[air$Month])
days <- rep_len(1:6, nrow(air))
ozone <- rkhs_iv(Ozone ~ Temp + Wind + month | Solar.R + Wind + month, city,
                 folds = days)
nested <- rkhs_iv_nested(city[c("Temp", "Wind")], city[c("Wind", "month")],
                         air$Wind, air$Solar.R, air$Ozone, w = air$Temp / 70,
                         folds = days)

pictures <- list(
  \() plot(geyser), \() plot(kme(flowers, estimator = "skmse")),
  \() plot(kme(scale(faithful), kernel_rbf(0.5), "mkme")),
  \() plot(kme(long, estimator = "mmkme")),
  \() plot(kme(many, kernel_rbf(9), "mmkme")),
  \() plot(kme(faithful$waiting, kernel_rbf(3), "fkmse"), "embedding"),
  \() plot(kme(long[, 1:2])), \() plot(kme(flowers)),
  \() plot(geyser, "weights"), \() plot(three),
  \() plot(hsic_test(iris[, 2], iris[, 4], null = "gamma")),
  \() plot(three, "witness", groups = c("setosa", "virginica")),
  \() plot(mmd_test(eruptions ~ waiting > 70, faithful, B = 9), "witness"),
  \() plot(mmd_test(flowers ~ rare, B = 9), "witness"),
  \() plot(kme_fda(flat, iris$Species)), \() plot(kme_fda(long, levels)),
  \() plot(kme_fda(flowers, rare)), \() plot(pca, groups = levels),
  \() plot(pca, groups = months), \() plot(pca, groups = iris[, 4]),
  \() plot(pca, comps = 2, groups = iris$Petal.Width),
  \() plot(pca, groups = factor(rep_len(1:30, 150))),
  \() plot(pca, "spectrum"), \() screeplot(pca, type = "lines"),
  \() plot(pca, main = paste("A very long title which says at some length",
                             "what the plot shows and why it matters")),
  \() plot(kme_cov(flowers)),
  \() plot(kme_cov(flowers, estimator = "skmse"), "selection"),
  \() plot(kme_cov(list(ozone_in_new_york = air$Ozone, and_heat = air$Temp)),
           "scores", groups = air$Month),
  \() plot(kme_density(faithful$eruptions, m = 2)),
  \() plot(kme_density(scale(faithful), m = 2), n = 50),
  \() plot(kme_density(scale(faithful), m = 3, optimize = "all"), "path"),
  \() plot(gram(flowers, kernel_rbf())),
  \() plot(ozone), \() plot(ozone, column = "month"), \() plot(ozone, "cv"),
  \() plot(nested, what = "h", column = "month")
)

test_that("no text is cut, off the page or over another one", {
  skip_on_cran()
  for (size in list(c(7, 5), c(3.3, 2.6))) {
    for (picture in pictures) {
      texts <- plot_texts(picture(), size[1], size[2])
      label <- paste(deparse1(body(picture)), "at", toString(size))
      expect_gt(nrow(texts), 4L, label = label)
      expect_identical(off_page(texts, size[1], size[2]), character(),
                       label = label)
      expect_identical(overlaps(texts), character(), label = label)
      expect_false(any(grepl("[.]{3}$", texts$label)), label = label)
      # Of 9 points or so, and in no case below 5.
      expect_gte(min(texts$size), 5, label = label)
    }
  }
})

test_that("panels of four keep their texts apart", {
  skip_on_cran()
  for (start in seq(1, length(pictures), by = 4)) {
    texts <- plot_texts({
      graphics::par(mfrow = c(2, 2))
      for (picture in pictures[start:min(start + 3, length(pictures))]) {
        picture()
      }
    }, 7, 7)
    expect_identical(off_page(texts, 7, 7), character())
    expect_identical(overlaps(texts), character())
    # As many figures as plots: none has opened a page of its own.
    expect_gt(nrow(texts), 20L)
  }
})

test_that("two functions stand side by side", {
  for (size in list(c(7, 5), c(3.3, 2.6))) {
    texts <- plot_texts(plot(nested), size[1], size[2])
    expect_identical(off_page(texts, size[1], size[2]), character())
    expect_identical(overlaps(texts), character())
    expect_false(any(grepl("[.]{3}$", texts$label)))
    # The name of the second axis is right of the middle.
    expect_identical(texts$x0[texts$label %in% c("Temp", "Wind")] > size[1] / 2,
                     c(FALSE, TRUE))
  }
})

test_that("the check of texts finds what is wrong", {
  expect_identical(off_page(plot_texts({
    graphics::plot.new()
    graphics::mtext(strrep("too long ", 20), 3)
  }, 4, 4), 4, 4), strrep("too long ", 20))
  over <- overlaps(plot_texts({
    graphics::plot.new()
    graphics::text(c(0.5, 0.52), 0.5, c("one", "two"))
    graphics::text(0.1, c(0.1, 0.9), "three")
  }, 4, 4))
  expect_identical(over, "one | two")
})

test_that("a plot of three groups fills figures and leaves the layout", {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  settings <- c("mfrow", "cex", "mar", "mgp", "las", "tcl")
  graphics::plot.new()
  before <- graphics::par(settings)
  shown <- plot(three, "witness", n = 12)
  expect_identical(graphics::par(settings), before)
  expect_named(shown, levels(iris$Species))
  for (g in names(shown)) {
    # One against all the rest: the difference of two kernel means.
    own <- iris$Species == g
    kernel <- three$kernel
    if (is.null(kernel)) kernel <- three$sample$kernel
    at <- cbind(shown[[g]]$x[3], shown[[g]]$y[7])
    expect_equal(shown[[g]]$z[3, 7],
                 unname(predict(kme(flat[own, ], kernel), at) -
                          predict(kme(flat[!own, ], kernel), at)))
  }
  pair <- plot(three, "witness", groups = c("virginica", "setosa"), n = 12)
  back <- plot(three, "witness", groups = c("setosa", "virginica"), n = 12)
  expect_equal(pair$z, -back$z)
  expect_error(plot(three, "witness", groups = "setosa"), "must be two of",
               class = "kernmean_error_input")
  expect_error(plot(three, "witness", groups = c("setosa", "iris")),
               class = "kernmean_error_input")
  expect_error(plot(three, groups = c("setosa", "virginica")),
               "but for type \"witness\"", class = "kernmean_error_input")
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

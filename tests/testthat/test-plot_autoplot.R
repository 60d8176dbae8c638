# The pictures of plot() as objects of ggplot2.

x <- iris[, 1:4]
flat <- iris[, 3:4]
rbf <- kernel_rbf(1)

every_autoplot <- function() {
  set.seed(31)
  s <- iv_sample(60)
  nested <- rkhs_iv_nested(s$a, s$b, s$c, s$d, s$y, s$w, s$s)
  list(
    selection = autoplot(kme(x, rbf, "fkmse")),
    curve = autoplot(kme(iris[, 1], rbf)),
    band = autoplot(kme(iris[, 1], rbf), interval = TRUE),
    shrunk = autoplot(kme(iris[, 1], rbf, "skmse"), "embedding"),
    contours = autoplot(kme(flat, rbf), n = 12),
    axes = autoplot(kme(x, rbf)),
    scores = autoplot(kme_pca(x, rbf, ncomp = 2), groups = iris$Species),
    many = autoplot(kme_pca(x, rbf, ncomp = 2), labels = TRUE, arrows = TRUE,
                    groups = factor(rep(letters[1:15], 10))),
    numbers = autoplot(kme_pca(x, rbf, ncomp = 2), groups = iris[, 4]),
    one = autoplot(kme_pca(x, rbf, ncomp = 2), comps = 2),
    spectrum = autoplot(kme_pca(x, rbf, ncomp = 3), "spectrum"),
    values = autoplot(kme_cov(x[1:40, ], kernel_x = rbf)),
    regions = autoplot(kme_fda(flat, iris$Species, rbf), n = 12),
    discriminants = autoplot(kme_fda(x, iris$Species, rbf)),
    bars = autoplot(kme_fda(x, iris$Species == "setosa", rbf)),
    density = autoplot(kme_density(faithful[, 1], m = 2)),
    surface = autoplot(kme_density(flat, m = 2), n = 12),
    null = autoplot(mmd_test(flat[1:50, ], flat[51:100, ], rbf, B = 19)),
    statistics = autoplot(mmd_test(flat[1:50, ], flat[51:100, ], rbf, B = 19,
                                   filter = TRUE)),
    gamma = autoplot(hsic_set(iris[, 1], iris[, 2], null = "gamma")),
    witness = autoplot(mmd_test(flat[1:50, ], flat[51:100, ], rbf, B = 19),
                       "witness", n = 12),
    line = autoplot(mmd_test(flat[1:50, 1], flat[51:100, 1], rbf, B = 19),
                    "witness"),
    points = autoplot(mmd_test(x[1:50, ], x[51:100, ], rbf, B = 19), "witness"),
    groups = autoplot(mmd_test(as.matrix(flat) ~ iris$Species, B = 19),
                      "witness", n = 12),
    columns = autoplot(mmd_test(as.matrix(x) ~ iris$Species, B = 19),
                       "witness"),
    gram = autoplot(gram(x, rbf)),
    estimate = autoplot(rkhs_iv(s$a, s$y, s$d, mu = 1)),
    levels = autoplot(quietly(rkhs_iv(factor(s$s), s$y, s$d, mu = 1))),
    nested = autoplot(nested), second = autoplot(nested, what = "h"),
    held_out = autoplot(rkhs_iv(s$a, s$y, s$d), "cv"),
    smallest = autoplot(nested, "cv")
  )
}

test_that("each class has its pictures, which ggplot2 can build", {
  skip_on_cran()
  skip_if_not_installed("ggplot2")
  autoplot <<- ggplot2::autoplot
  on.exit(rm(autoplot, envir = globalenv()))
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off(), add = TRUE)
  for (plot in every_autoplot()) {
    expect_s3_class(plot, "ggplot")
    expect_silent(built <- ggplot2::ggplot_build(plot))
    expect_gt(length(built$data), 0L)
    expect_silent(ggplot2::ggplotGrob(plot))
  }
})

test_that("the data are those of plot()", {
  skip_on_cran()
  skip_if_not_installed("ggplot2")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  layer <- function(plot, i) ggplot2::layer_data(plot, i)
  fit <- kme_pca(x, rbf, ncomp = 2)
  shown <- plot(fit, groups = iris$Species)
  # Two dotted lines first. The points are drawn in another order.
  points <- layer(ggplot2::autoplot(fit, groups = iris$Species), 3L)
  expect_equal(sort(points$x), sort(shown$PC1))
  order <- match(points$x, shown$PC1)
  expect_equal(points$y, shown$PC2[order])
  expect_identical(points$fill,
                   level_colors(3L)[as.integer(shown$groups)[order]])
  expect_identical(points$shape,
                   level_pch(3L)[as.integer(shown$groups)[order]])
  # Equal axes, and as many kinds as there are groups.
  many <- ggplot2::autoplot(fit, groups = factor(rep(1:15, 10)))
  expect_identical(many$coordinates$ratio, 1)
  kinds <- unique(layer(many, 3L)[c("fill", "shape", "group")])
  expect_identical(nrow(unique(kinds[1:2])), 15L)
  wide <- mmd_test(x[1:50, ], x[51:100, ], rbf, B = 19)
  columns <- plot(wide, "witness")
  points <- layer(ggplot2::autoplot(wide, "witness"), 2L)
  expect_equal(tapply(points$x, points$PANEL, sum), ignore_attr = TRUE,
               vapply(columns, \(panel) sum(panel$x), 1))
  expect_setequal(points$fill, level_colors(2L))
  test <- mmd_test(flat[1:50, ], flat[51:100, ], rbf, B = 19)
  surface <- plot(test, "witness", n = 9)
  expect_equal(layer(ggplot2::autoplot(test, "witness", n = 9), 1L)$y[1:9],
               rep(surface$y[1L], 9))
  fda <- kme_fda(flat, iris$Species, rbf)
  regions <- layer(ggplot2::autoplot(fda, n = 9), 1L)
  expect_identical(regions$fill,
                   level_colors(3L)[as.vector(plot(fda, n = 9)$z)])
})

test_that("bad input is refused", {
  skip_if_not_installed("ggplot2")
  fit <- kme_pca(x, rbf, ncomp = 2)
  expect_error(ggplot2::autoplot(fit, "scres"), class = "kernmean_error_input")
  expect_error(ggplot2::autoplot(fit, colour = 2),
               class = "kernmean_error_input")
  expect_error(ggplot2::autoplot(fit, groups = 1:3),
               class = "kernmean_error_input")
})

test_that("without ggplot2 the package loads, and plot() plots", {
  skip_on_cran()
  # A library without ggplot2: of links to all other packages.
  library <- tempfile()
  dir.create(library)
  on.exit(unlink(library, recursive = TRUE))
  installed <- find.package("kernmean")
  skip_if_not(file.exists(file.path(installed, "Meta", "package.rds")),
              "kernmean is not installed")
  quadprog <- find.package("quadprog")
  if (!file.symlink(installed, file.path(library, "kernmean")) ||
        !file.symlink(quadprog, file.path(library, "quadprog"))) {
    skip("no symbolic links")
  }
  code <- paste(
    ".libPaths(Sys.getenv('R_LIBS'), include.site = FALSE);",
    "assign('.lib.loc', c(Sys.getenv('R_LIBS'), file.path(R.home(),",
    "'library')), environment(.libPaths));",
    "stopifnot(!requireNamespace('ggplot2', quietly = TRUE));",
    "library(kernmean); pdf(NULL); plot(kme(iris[, 1:4], kernel_rbf(1)));",
    "e <- tryCatch(kernmean:::autoplot.kernmean_fit(kme(1:3, kernel_rbf(1))),",
    "error = identity); stopifnot(inherits(e, 'kernmean_error_package'));",
    "cat('well')"
  )
  out <- system2(file.path(R.home("bin"), "Rscript"),
                 c("--vanilla", "-e", shQuote(code)), stdout = TRUE,
                 stderr = TRUE, env = paste0("R_LIBS=", library))
  expect_identical(out[length(out)], "well")
})

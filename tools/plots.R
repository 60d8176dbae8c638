# The contact sheet of tools/plots: Rscript tools/plots.R FILE.png, with
# kernmean and png installed.

library(kernmean)
file <- commandArgs(TRUE)[1]
set.seed(1)

flowers <- scale(iris[, 1:4])
geyser <- scale(faithful)
air <- na.omit(airquality)
months <- factor(month.name[rep_len(1:12, 150)], month.name)
rare <- factor(rep(c("common", "rare"), c(147, 3)))
levels <- factor(c("an extremely long name of a level", "short",
                   "another rather long name")[iris$Species])
three <- mmd_test(as.matrix(iris[, 3:4]) ~ Species, iris, B = 99)
ozone <- Ozone ~ Temp + Wind + season | Solar.R + Wind + season
air$season <- factor(month.name[air$Month], month.name)
days <- rep_len(1:6, nrow(air))
nested <- rkhs_iv_nested(air[c("Temp", "Wind")], air$Wind, air$Wind,
                         air$Solar.R, air$Ozone,
                         control = iv_control(folds = days))
cars <- scale(mtcars[, c("mpg", "disp", "hp", "wt")])

uptake <- split(CO2$uptake, CO2$Plant)
chicks <- smm(Diet ~ Time + weight, ChickWeight, id = Chick, scale = TRUE)

sea <- kme_landmarks(quakes[c("long", "lat")], 60, scale = TRUE)
zones <- kme_sketch(quakes, sea, bin = 20,
                    groups = ifelse(quakes$depth > 300, "deep", "shallow"))

# name = expression; show() is plot() or autoplot().
plots <- expression(
  show(kme(geyser, kernel_rbf(0.5), "fkmse")),
  show(kme(scale(USArrests), estimator = "skmse")),
  show(kme(geyser, kernel_rbf(0.5), "mkme")),
  show(kme(flowers, estimator = "smooth")),
  show(kme(faithful["waiting"], kernel_rbf(3), "fkmse", lambda = 1),
       type = "embedding"),
  show(kme(faithful, kernel_rbf(c(0.3, 4)))),
  show(kme(flowers)),
  show(sea),
  show(kme_landmarks(quakes$depth, 30)),
  show(kme(zones, estimator = "fkmse", select = "gcv"), type = "embedding"),
  show(kme(kme_sketch(quakes$depth, 30), estimator = "skmse"),
       type = "embedding"),
  show(mmd_test(zones, B = 99), type = "witness"),
  show(mmd_test(zones, B = 99)),
  show(mmd_test(breaks ~ wool, warpbreaks)),
  show(hsic_test(iris$Sepal.Width, iris$Petal.Width,
                 control = test_control(null = "gamma"))),
  show(mmd_test(uptake ~ Type, CO2, B = 99), type = "witness"),
  show(mmd_test(as.matrix(iris[51:150, 3:4]) ~
                  droplevels(iris$Species[51:150]), B = 99), type = "witness"),
  show(mmd_test(flowers[51:150, ] ~ droplevels(iris$Species[51:150]), B = 99),
       type = "witness"),
  show(three, type = "witness", groups = c("setosa", "virginica")),
  show(kme_fda(Species ~ Petal.Length + Petal.Width, iris)),
  show(kme_fda(flowers, iris$Species)),
  show(kme_fda(flowers, rare)),
  show(kme_pca(flowers), groups = iris$Species),
  show(kme_pca(flowers), groups = levels),
  show(kme_pca(flowers), groups = months),
  show(kme_pca(flowers), groups = iris$Petal.Width),
  show(kme_pca(cars), groups = mtcars$cyl),
  show(kme_pca(cars), labels = TRUE, arrows = TRUE),
  show(kme_pca(flowers), groups = factor(rep_len(1:18, 150))),
  show(kme_pca(faithful$waiting, ncomp = 1), groups = faithful$eruptions),
  show(kme_pca(flowers, ncomp = 12), type = "spectrum"),
  show(kme_cov(flowers)),
  show(kme_cov(flowers, estimator = "skmse"), type = "selection"),
  show(kme_density(faithful["eruptions"], m = 2)),
  show(kme_density(faithful, m = 3)),
  show(kme_density(geyser, m = 4, optimize = "all"), type = "path"),
  show(gram(flowers, kernel_rbf())),
  show(rkhs_iv(ozone, air, control = iv_control(folds = days))),
  show(rkhs_iv(ozone, air, control = iv_control(folds = days)),
       column = "season"),
  show(rkhs_iv(ozone, air, control = iv_control(folds = days)), "cv"),
  show(nested, what = "h"),
  show(nested, "cv"),
  show(chicks),
  show(smm(uptake, rep(c(1, 2, 4), 4), type = "ridge")),
  show(smm(split(iris$Sepal.Width, rep(1:30, 5)), level2 = "rbf"))
)

draw_one <- function(expression, show) {
  tryCatch(suppressWarnings(eval(expression, list(show = show), globalenv())),
           error = function(e) {
             graphics::plot.new()
             message(deparse1(expression), ": ", conditionMessage(e))
           })
}

resolution <- 80
pages <- tempfile("plots")
dir.create(pages)
sheets <- list()
add <- function(name, width, height, ...) {
  images <- list()
  for (code in list(...)) {
    page <- tempfile(tmpdir = pages, fileext = ".png")
    grDevices::png(page, width, height, "in", res = resolution)
    code()
    grDevices::dev.off()
    images <- c(images, list(png::readPNG(page)))
  }
  sheets[[name]] <<- list(images = images, width = width, height = height)
}
each <- function(show) {
  lapply(plots, function(p) function() draw_one(p, show))
}

do.call(add, c(list("normal", 7, 5), each(graphics::plot)))
do.call(add, c(list("small", 3.3, 2.6), each(graphics::plot)))
fours <- split(seq_along(plots), (seq_along(plots) - 1) %/% 4)
do.call(add, c(list("four", 7, 7), lapply(fours, function(some) {
  function() {
    graphics::par(mfrow = c(2, 2))
    for (i in some) draw_one(plots[[i]], graphics::plot)
  }
})))
add("groups", 9, 4, function() plot(three, "witness"),
    function() plot(nested))
if (requireNamespace("ggplot2", quietly = TRUE)) {
  show <- function(...) print(ggplot2::autoplot(...))
  do.call(add, c(list("ggplot2", 5, 3.6), each(show)))
}

# All of them under each other, each sheet scaled to one width.
wide <- 28
rows <- lapply(sheets, function(sheet) {
  columns <- max(1, floor(wide / sheet$width))
  count <- ceiling(length(sheet$images) / columns)
  list(columns = columns, count = count, height = sheet$height)
})
tall <- sum(vapply(rows, function(r) r$count * r$height + 0.4, 1))
grDevices::png(file, wide, tall, "in", res = resolution)
graphics::par(mar = numeric(4))
graphics::plot.new()
graphics::plot.window(c(0, wide), c(0, tall), xaxs = "i", yaxs = "i")
top <- tall
for (name in names(sheets)) {
  sheet <- sheets[[name]]
  graphics::text(0.1, top - 0.2, name, adj = c(0, 0.5), font = 2, cex = 2)
  top <- top - 0.4
  for (i in seq_along(sheet$images)) {
    x <- ((i - 1) %% rows[[name]]$columns) * sheet$width
    y <- top - (1 + (i - 1) %/% rows[[name]]$columns) * sheet$height
    graphics::rasterImage(sheet$images[[i]], x, y, x + sheet$width,
                          y + sheet$height)
    graphics::rect(x, y, x + sheet$width, y + sheet$height, border = "grey80")
  }
  top <- top - rows[[name]]$count * sheet$height
}
invisible(grDevices::dev.off())
unlink(pages, recursive = TRUE)

# The kit of all plots: pictures, colors, frames.

on_device <- function(code, width = 7, height = 7) {
  grDevices::pdf(NULL, width, height)
  on.exit(grDevices::dev.off())
  force(code)
}

test_that("graphical parameters are known, other names are refused", {
  expect_silent(check_graphics(list(col = 1, xlim = 0:1, breaks = 3, cex = 2)))
  expect_error(check_graphics(list(colr = 1)), "did you mean 'col",
               class = "kernmean_error_input")
  expect_error(check_graphics(list(1)), "must be named",
               class = "kernmean_error_input")
  fit <- kme(c(1, 2, 4), kernel_rbf(1), "skmse")
  on_device({
    expect_error(plot(fit, lambda = 2), "no graphical parameter",
                 class = "kernmean_error_input")
    expect_error(plot(fit, xlim = c(1, 1)), "two different numbers",
                 class = "kernmean_error_input")
    expect_error(plot(fit, legend = "topleftt"), "did you mean 'topleft'",
                 class = "kernmean_error_input")
    expect_error(plot(fit, legend = 2), "must be TRUE, FALSE",
                 class = "kernmean_error_input")
  })
})

test_that("the second argument of plot() is the type", {
  types <- c("one", "two")
  expect_identical(plot_type(types, NULL, NULL), "one")
  expect_identical(plot_type(types, NULL, NULL, "two"), "two")
  expect_identical(plot_type(types, "tw", NULL), "two")
  expect_identical(plot_type(types, NULL, "one", "two"), "one")
  expect_error(plot_type(types, "one", "two"), "by position",
               class = "kernmean_error_input")
  expect_error(plot_type(types, 3, NULL), "must be one of",
               class = "kernmean_error_input")
})

test_that("sixty levels have colors and symbols that differ", {
  style <- paste(level_colors(60), level_pch(60))
  expect_identical(anyDuplicated(style), 0L)
  expect_identical(anyDuplicated(level_colors(12)), 0L)
  # Neighbors differ in both.
  expect_true(all(level_pch(60)[-1] != level_pch(60)[-60]))
})

test_that("numbers have colors by their value, not by their rank", {
  fill <- measured_fill(c(0, 1, 2, 100))
  expect_identical(color_of(c(0, 100), fill), fill$colors[c(1, 64)])
  expect_identical(match(color_of(50, fill), fill$colors), 33L)
  expect_identical(match(color_of(1, fill), fill$colors), 2L)
  expect_true(all(fill$at >= 0 & fill$at <= 100))
  # Equal numbers, and times.
  equal <- measured_fill(rep(0.123456, 3))
  expect_identical(equal$labels, "0.123")
  expect_length(color_of(rep(0.123456, 3), equal), 3L)
  days <- as.Date("2020-01-01") + 0:400
  expect_match(measured_fill(days)$labels, "2020|2021|-")
  # Of the groups of a plot likewise.
  expect_identical(check_groups(c(1.5, 2, 2), 3), c(1.5, 2, 2))
  expect_s3_class(check_groups(c(TRUE, FALSE, TRUE), 3), "factor")
  expect_identical(levels(check_groups(factor(c("a", "b"))[c(2, 2)], 2)), "b")
  expect_error(check_groups(c(1, Inf), 2), class = "kernmean_error_input")
})

test_that("names of groups are those of columns", {
  expect_identical(short_name(quote(iris$Petal.Width)), "Petal.Width")
  expect_identical(short_name(quote(age)), "age")
  expect_null(short_name(quote(iris[, 4])))
  expect_null(short_name(quote(cut(x, 3))))
})

test_that("a legend stands where it covers no point, in the largest corner", {
  skip_on_cran()
  set.seed(11)
  corners <- list(topright = c(1, 1), topleft = c(0, 1),
                  bottomright = c(1, 0), bottomleft = c(0, 0))
  covered <- function(xy, corner, width, height) {
    sum(abs(xy[, 1] - corner[1]) <= width & abs(xy[, 2] - corner[2]) <= height)
  }
  found <- c()
  for (i in 1:300) {
    xy <- matrix(stats::rbeta(2 * sample(1:60, 1), 0.8, 0.8), ncol = 2)
    size <- stats::runif(2, 0.05, 0.6)
    place <- free_corner(xy, size[1], size[2], gap = 0)
    free <- vapply(corners, \(corner) {
      covered(xy, corner, size[1], size[2]) == 0
    }, NA)
    found <- c(found, is.null(place))
    if (is.null(place)) {
      expect_false(any(free))
    } else {
      expect_true(free[[place]])
      # No box of this shape that is free in another corner is larger.
      room <- vapply(corners, \(corner) {
        hit <- Find(\(s) covered(xy, corner, s * size[1], s * size[2]) > 0,
                    seq(1, 25, by = 0.05))
        if (is.null(hit)) 25 else hit
      }, 1)
      expect_gte(room[[place]], max(room) - 0.051)
    }
  }
  # Both cases were seen.
  expect_true(any(found) && !all(found))
  expect_identical(free_corner(matrix(0, 0, 2), 0.3, 0.3), "topright")
  expect_null(free_corner(matrix(0.5, 1, 2), 1, 0.2))
})

test_that("lines and bars are in the way of a legend, too", {
  line <- along(c(0, 1, NA, 3), c(0, 2, NA, 5))
  expect_true(all(line[, 2] == 2 * line[, 1] | line[, 1] == 3))
  expect_gt(nrow(line), 10)
  picture <- new_picture("", "", "", list(
    new_layer("bars", x0 = 0, y0 = 0, x1 = 1, y1 = 10)
  ), NULL)
  taken <- occupied(picture)
  expect_true(any(taken[, 1] == 1 & taken[, 2] > 4 & taken[, 2] < 6))
  expect_true(any(taken[, 2] == 10 & taken[, 1] > 0.4 & taken[, 1] < 0.6))
})

test_that("the legend of a plot covers none of its points", {
  set.seed(12)
  for (size in list(c(7, 7), c(3.3, 2.6), c(5, 3))) {
    for (seed in 1:8) {
      xy <- matrix(stats::rnorm(60), ncol = 2)
      group <- factor(sample(c("first", "second one", "a third"), 30, TRUE))
      picture <- groups_picture("", xy, group, c("a", "b"), NULL)
      on_device({
        frame <- open_frame(picture, list(), TRUE)
        key <- frame$key
        unit <- unit_points(xy)
        if (key$place == "outside") {
          expect_gt(graphics::par("mai")[4], key_size(key$key, key$cex)[1] *
                      graphics::par("pin")[1])
        } else {
          rect <- in_unit_frame(draw_key(key$key, key$place, key$cex,
                                         plot = FALSE)$rect)
          inside <- unit[, 1] >= rect$left &
            unit[, 1] <= rect$left + rect$w & unit[, 2] <= rect$top &
            unit[, 2] >= rect$top - rect$h
          expect_false(any(inside))
        }
        close_frame(frame$before)
      }, size[1], size[2])
    }
  }
})

test_that("legend = says where", {
  group <- factor(c("a", "b", "a"))
  picture <- groups_picture("", cbind(1:3, 1:3), group, c("a", "b"), NULL)
  place <- function(legend) {
    on_device({
      frame <- open_frame(picture, list(), legend)
      list(frame$key$place, graphics::par("mar")[4])
    })
  }
  expect_null(place(FALSE)[[1]])
  expect_identical(place(TRUE), list("topleft", 2.1))
  expect_identical(place("bottom"), list("bottom", 2.1))
  outside <- place("outside")
  expect_identical(outside[[1]], "outside")
  expect_gt(outside[[2]], 2.1)
})

test_that("twelve levels are named, of more the first ones and how many", {
  expect_identical(shorten_key(level_entries(1:12))$label, as.character(1:12))
  key <- shorten_key(level_entries(1:30))
  expect_identical(key$label, c(1:11, "and 19 more"))
})

test_that("words are wrapped, made smaller, and cut only then", {
  on_device({
    graphics::plot.new()
    lines <- wrap_words("some words in a row", 1, 1)
    expect_identical(paste(lines, collapse = " "), "some words in a row")
    expect_true(all(graphics::strwidth(lines, "inches") <= 1))
    expect_identical(wrap_words("one\ntwo", 9, 1), c("one", "two"))
    expect_identical(cut_text("short", 5, 1), "short")
    expect_match(cut_text(strrep("long", 30), 2, 1), "^long.*[.]{3}$")
    expect_lte(graphics::strwidth(cut_text(strrep("long", 30), 2, 1),
                                  "inches"), 2)
    wide <- graphics::strwidth("some words", "inches")
    expect_identical(fit_cex("some words", wide, 1), 1)
    expect_equal(fit_cex("some words", 0.8 * wide, 1), 0.8)
    expect_equal(fit_cex("some words", 0.1 * wide, 1), 0.6)
  })
})

test_that("what is added to a plot falls into place whatever the margins", {
  # A frame with wide margins: the same coordinates before and after.
  group <- factor(c("a rather long name", "another long name"))
  picture <- groups_picture("", cbind(c(1, 1e3), c(2, 7)), group[c(1, 2)],
                            c("a", "b"), NULL)
  for (log in c("", "x")) {
    picture$log <- log
    on_device({
      frame <- open_frame(picture, list(), "outside")
      at <- \() c(graphics::grconvertX(c(2, 900), "user", "inches"),
                  graphics::grconvertY(c(3, 6), "user", "inches"))
      before <- at()
      wide <- graphics::par("mar")
      close_frame(frame$before)
      expect_equal(at(), before)
      expect_identical(graphics::par("mar"), default_margins)
      expect_gt(wide[4], default_margins[4])
    }, 5, 4)
  }
})

test_that("margins of the user are kept, or grow", {
  picture <- groups_picture("T", cbind(1:3, 1:3), NULL, c("a", "b"), NULL)
  margins <- function(mar, size = 7) {
    on_device({
      graphics::par(mar = mar)
      open_frame(picture, list(), TRUE)
      graphics::par("mar")
    }, size, size)
  }
  expect_equal(margins(c(6, 7, 8, 9)), c(6, 7, 8, 9))
  expect_equal(margins(default_margins), default_margins)
  grown <- margins(rep(0.1, 4))
  expect_true(all(grown >= c(3, 3, 1, 0.5)))
  # Of a small figure the default ones become narrower, others do not.
  expect_true(all(margins(default_margins, 2.6)[c(1, 3)] < c(5, 4)))
  expect_equal(margins(c(5, 4, 4, 2), 3), c(5, 4, 4, 2), tolerance = 0.1)
})

test_that("a plot that stops leaves the parameters as they were", {
  on_device({
    before <- graphics::par(c("mar", "mgp", "las", "tcl"))
    picture <- groups_picture("T", cbind(1:3, 1:3), NULL, c("a", "b"), NULL)
    expect_error(draw_picture(picture, list(xlim = "a")),
                 class = "kernmean_error_input")
    expect_error(draw_picture(picture, list(log = "z")))
    expect_identical(graphics::par(names(before)), before)
  })
})

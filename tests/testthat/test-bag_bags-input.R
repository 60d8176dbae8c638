# What bag_gram() refuses, and what it does not.

bags <- some_bags()
x <- pooled(bags)
id <- bag_ids(bags)
data <- data.frame(x, id, level = factor(rep_len(1:3, 37)))
rbf <- kernel_rbf(1)
values <- as_gram(gram_R(rbf, x))
own <- function(sample) rep(1 / sample$n, sample$n)

test_that("bags that are none are refused", {
  empty <- c(bags, list(g = bags$a[0, ]))
  wider <- c(bags, list(g = matrix(1:6, 2)))
  named <- c(bags, list(g = data.frame(u = 1:2, w = 1:2)))
  more <- c(bags, list(g = data.frame(u = 1:2, v = 1:2, w = 1:2)))
  holes <- replace(bags, "c", list(replace(bags$c, 3, NA)))
  factors <- replace(bags, "c", list(data.frame(u = factor(1:3), v = 1:3)))
  twice <- stats::setNames(bags, c("a", "b", "a", "d", "e", "f"))
  words <- list(letters)
  expect_snapshot(writeLines(refusals(expression(
    bag_gram(), bag_gram(NULL), bag_gram(list()), bag_gram(empty),
    bag_gram(wider), bag_gram(named), bag_gram(more), bag_gram(holes),
    bag_gram(factors), bag_gram(twice), bag_gram(words), bag_gram("bags"),
    bag_gram(list(NULL)), bag_gram(bags, id = id)
  ))))
})

test_that("a bad id is refused", {
  missing <- replace(id, 4, NA)
  dots <- id[-1]
  expect_snapshot(writeLines(refusals(expression(
    bag_gram(x), bag_gram(data), bag_gram(x, id = dots),
    bag_gram(x, id = factor(dots)), bag_gram(x, id = missing),
    bag_gram(x, id = 1:37 + 0.5), bag_gram(data, id = "molecule"),
    bag_gram(x, id = "a"), bag_gram(data, id = "id"), bag_gram(values),
    bag_gram(values, rbf, id = id), bag_gram(values, id = id, scale = TRUE),
    bag_gram(values, estimator = "mkme", id = id)
  ))))

  spare <- factor(id, c(letters[1:6], "z"))
  expect_warning(g <- bag_gram(x, id = spare), "without points")
  expect_identical(names(g$sizes), letters[1:6])
})

test_that("bad kernels, estimators, levels and targets are refused", {
  skip_on_cran()
  laplace <- kernel_laplace()
  mean <- kme(x, rbf)
  expect_snapshot(writeLines(refusals(expression(
    bag_gram(bags, "rbf"), bag_gram(bags, "kme"),
    bag_gram(bags, kernel_energy()), bag_gram(bags, rbf, "best"),
    bag_gram(bags, rbf, "kme", "gauss"), bag_gram(bags, laplace, "mkme"),
    bag_gram(bags, kernel_poly(4), "mmkme"),
    bag_gram(bags, rbf, est_skmse(target = mean)),
    bag_gram(bags, rbf, lambda = 1), bag_gram(bags, rbf, "fkmse", lambda = -1),
    bag_gram(bags, rbf, bandwidth2 = 1),
    bag_gram(bags, rbf, level2 = "poly", bandwidth2 = 1),
    bag_gram(bags, rbf, level2 = "rbf", degree = 2),
    bag_gram(bags, rbf, level2 = "cosine", offset = 1),
    bag_gram(bags, rbf, level2 = "rbf", bandwidth2 = 0),
    bag_gram(bags, rbf, level2 = "poly", degree = 1.5),
    bag_gram(bags, rbf, level2 = "poly", offset = -1),
    bag_gram(bags, rbf, target = "other"),
    bag_gram(bags, rbf, "fkmse", target = "pooled"),
    bag_gram(bags, rbf, "kme", target = "pooled"),
    bag_gram(bags, rbf, "skmse", target = "aggregate"),
    bag_gram(bags, rbf, own, target = "neighbours"),
    bag_gram(bags[1], rbf, target = "pooled"), bag_gram(bags, rbf, scale = 2),
    bag_gram(bags, rbf, unknown = 1),
    bag_gram(bags, rbf, est_fkmse(), lambda = 1)
  ))))
  for (width in list(1:2, "mean")) {
    refused(bag_gram(bags, rbf, level2 = "rbf", bandwidth2 = width),
            "'bandwidth2' must be \"median\", \"nearest\" or a positive")
  }
  refused(bag_gram(bags, rbf, "fkmse", noise = 1), "'noise' must not be given")
  refused(bag_gram(bags, rbf, target = base::mean), "'target' must be one of")
})

test_that("points keep columns of one name where a third one is the id", {
  twice <- cbind(data[c("u", "v")], id)
  names(twice)[2] <- "u"
  expect_identical(bag_gram(twice, rbf, id = "id")$K,
                   bag_gram(data[c("u", "v")], rbf, id = id)$K)
})

test_that("bad formulas are refused", {
  holes <- replace(data, "u", list(replace(data$u, 3, NA)))
  expect_snapshot(writeLines(refusals(expression(
    bag_gram(~ u + v, data), bag_gram(id ~ level, data),
    bag_gram(id ~ 1, data),
    bag_gram(id ~ u, data, id = id), bag_gram(id ~ u + v, holes)
  ))))
  g <- bag_gram(id ~ u + v, holes, na.action = na.omit)
  expect_identical(sum(g$sizes), 36L)
  expect_identical(g$K, bag_gram(id ~ u + v, data[-3, ])$K)
})

test_that("bad new bags are refused", {
  g <- bag_gram(bags, rbf)
  column <- bag_gram(data[c("u", "v", "id")], rbf, id = "id")
  formula <- bag_gram(id ~ u + v, data, kernel = rbf)
  empty <- list(bags$a[0, ])
  wide <- list(unname(cbind(bags$a, 1)))
  names <- list(data.frame(u = 1, w = 2))
  expect_snapshot(writeLines(refusals(expression(
    predict(g, x), predict(g, data), predict(g, list()), predict(g, empty),
    predict(g, wide), predict(g, names), predict(g, bags, id = id),
    predict(g, x, id = id[-1]), predict(g, g), predict(g, bags, 1),
    predict(column, data[c("u", "v")]),
    predict(g, x, id = "id"), predict(g, bags, id = "id"),
    predict(formula, data[c("u", "v")]), predict(formula, data[c("u", "id")])
  ))))
  # Columns of a fit without names are matched by their place.
  plain <- bag_gram(lapply(bags, unname), rbf)
  expect_equal(predict(plain, bags), plain$K, tolerance = 1e-13,
               ignore_attr = TRUE)
})

test_that("changes that make no sense are refused", {
  g <- bag_gram(bags, rbf)
  expect_snapshot(writeLines(refusals(expression(
    update(g, 1), update(g, id ~ u), update(g, level2 = "best"),
    update(g, bandwidth2 = 1), update(g, lambda = 1),
    update(g, target = "pooled", estimator = "fkmse")
  ))))
})

# --- What is legal -----------------------------------------------------------

test_that("one bag, and bags of one point alone, are legal", {
  for (level in c("linear", "cosine", "rbf", "laplace", "poly")) {
    expect_identical(dim(bag_gram(bags["c"], rbf, level2 = level)), c(1L, 1L))
  }
  expect_equal(bag_gram(list(3), rbf)$K[1], 1)
  one <- bag_gram(x[1, , drop = FALSE], id = factor("a"))
  expect_identical(names(one$sizes), "a")
  g <- bag_gram(list(1, 1, 1))
  expect_equal(unname(g$K), matrix(1, 3, 3))
})

test_that("a time series, integers and a column of a data frame are points", {
  lines <- list(a = 1:4, b = stats::ts(c(2.5, 3)), c = data.frame(w = 5:6))
  g <- bag_gram(lines, rbf)
  expect_identical(unname(g$sizes), c(4L, 2L, 2L))
  expect_equal(g$K[1, 2], mean(gram_R(rbf, matrix(1:4), matrix(c(2.5, 3)))))
})

test_that("inner products that overflow are an error", {
  huge <- kernel_function(\(x, y) matrix(1e308, nrow(x), nrow(y)))
  expect_error(bag_gram(bags, huge), class = "kernmean_error_numeric")
})

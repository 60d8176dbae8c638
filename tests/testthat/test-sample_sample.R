# Data in all the forms that users have, and what is the same whatever the form.

columns <- function(n = 12) {
  x <- random_points(n, 2)
  colnames(x) <- c("a", "b")
  x
}

same_fit <- function(fit, other, tolerance = 1e-14) {
  expect_near(fit$weights, other$weights, tolerance)
  expect_near(unname(predict(fit)), unname(predict(other)), tolerance)
  expect_near(fit$kernel$bandwidth, other$kernel$bandwidth, tolerance)
}

test_that("a matrix, a data frame and a formula give the same fit", {
  x <- columns()
  d <- as.data.frame(x)
  for (estimator in c("kme", "skmse", "fkmse")) {
    fit <- kme(x, estimator = estimator)
    same_fit(kme(d, estimator = estimator), fit)
    same_fit(kme(~ a + b, d, estimator = estimator), fit)
    same_fit(kme(~ ., d, estimator = estimator), fit)
  }
  # As tibbles and data tables are to those who do not load their packages.
  tibble <- structure(d, class = c("tbl_df", "tbl", "data.frame"))
  same_fit(kme(tibble), kme(x))
  expect_equal(unname(predict(kme(tibble), tibble[2:3, ])),
               unname(predict(kme(x), x[2:3, ])))
  table <- structure(d, class = c("data.table", "data.frame"))
  same_fit(kme(table), kme(x))
})

test_that("a vector is one column, with or without names and classes", {
  v <- c(0.3, 1.1, -2, 0.8)
  fit <- kme(cbind(v))
  for (x in list(v, c(p = 0.3, q = 1.1, r = -2, s = 0.8), array(v, 4),
                 stats::ts(v), data.frame(v), data.frame(other = v),
                 matrix(v, dimnames = list(letters[1:4], NULL)))) {
    same_fit(kme(x), fit)
    expect_identical(dim(kme(x)$sample$x), c(4L, 1L))
  }
  same_fit(kme(~ v), fit)
})

test_that("one column takes new data as vectors, matrices and data frames", {
  fit <- kme(c(0.3, 1.1, -2))
  new <- c(0, 1)
  want <- predict(fit, new)
  expect_length(want, 2)
  expect_equal(predict(fit, cbind(new)), want)
  expect_equal(predict(fit, data.frame(anything = new)), want)
  expect_equal(predict(fit, 0:1), want)
  expect_identical(names(predict(fit, c(first = 0, second = 1))),
                   c("first", "second"))
})

test_that("columns of new data are matched by name, in any order", {
  x <- columns()
  new <- columns(5)
  extra <- data.frame(c = letters[1:5], b = new[, "b"], a = new[, "a"])
  for (fit in list(kme(x), kme(as.data.frame(x)),
                   kme(~ a + b, as.data.frame(x)))) {
    want <- unname(predict(fit, new))
    expect_equal(unname(predict(fit, new[, 2:1])), want)
    expect_equal(unname(predict(fit, as.data.frame(new[, 2:1]))), want)
    expect_equal(unname(predict(fit, extra)), want)
    # Without names on one side, by position.
    expect_equal(unname(predict(fit, unname(new))), want)
  }
  nameless <- kme(unname(x))
  expect_equal(predict(nameless, new[, 2:1]),
               predict(nameless, unname(new[, 2:1])))
  k <- kernel_rbf(1)
  expect_equal(kernel_matrix(x, new[, 2:1], k), kernel_matrix(x, new, k))
})

test_that("formulas transform, interact and subset as in model.frame()", {
  d <- as.data.frame(columns())
  same_fit(kme(~ log(a^2) + b, d), kme(cbind(log(d$a^2), d$b)))
  same_fit(kme(~ a:b, d), kme(d$a * d$b))
  same_fit(kme(~ a * b, d), kme(cbind(d$a, d$b, d$a * d$b)))
  same_fit(kme(~ a + b - 1, d), kme(d))
  same_fit(kme(~ a, d, subset = b > 0), kme(d$a[d$b > 0]))
  e <- d
  e$a[3] <- NA
  same_fit(kme(~ a + b, e, na.action = stats::na.omit), kme(d[-3, ]))
  a <- d$a
  b <- d$b
  same_fit(kme(~ a + b), kme(d))
  kernel <- kernel_rbf(2)
  same_fit(kme(~ a + b, d, kernel = kernel, estimator = "skmse"),
           kme(d, kernel, "skmse"))
})

test_that("new data of a formula is transformed as the sample was", {
  d <- as.data.frame(columns())
  for (formula in list(~ log(a^2) + b, ~ scale(a), ~ poly(b, 2) + a,
                       ~ scale(a) + I(b^2), ~ a * b)) {
    fit <- kme(formula, d)
    expect_equal(unname(predict(fit, d[2:4, ])), unname(predict(fit))[2:4],
                 tolerance = 1e-12, info = deparse1(formula))
  }
  degree <- 2
  curved <- local(kme(~ poly(a, degree), d, kernel = kernel_rbf(1)))
  rm(degree)
  expect_equal(predict(curved, d), curved$fitted, ignore_attr = TRUE)
  moved <- update(kme(~ a + b, d), data = 2 * d)
  expect_equal(moved$fitted, kme(~ a + b, 2 * d)$fitted)
  expect_error(update(moved, data = d["a"]), "'data' must have the variables",
               class = "kernmean_error_input")
  updated <- update(kme(~ scale(a), d), estimator = "skmse")
  expect_near(unname(predict(updated, d[2:4, ])),
              unname(predict(updated))[2:4], 1e-12)
})

test_that("a gram in place of data gives equal fits", {
  skip_on_cran()
  x <- columns()
  new <- columns(3)
  for (kernel in list(kernel_rbf(), kernel_laplace(2), kernel_poly(3))) {
    g <- gram(x, kernel)
    only_k <- as_gram(g$K)
    for (estimator in c("kme", "skmse", "fkmse")) {
      selects <- switch(estimator, kme = list(NULL),
                        skmse = list("loocv", "plugin"),
                        fkmse = list("loocv", "gcv", "printed"))
      for (select in selects) {
        fit <- kme(x, kernel, estimator, select = select)
        held <- kme(g, estimator = estimator, select = select)
        bare <- kme(only_k, estimator = estimator, select = select)
        # lambda is refined to 1e-6 of itself.
        tolerance <- if (estimator == "fkmse") 1e-5 else 1e-12
        same_fit(held, fit, tolerance)
        expect_near(bare$weights, fit$weights, tolerance)
        expect_near(bare$norm2, fit$norm2, tolerance)
        expect_near(bare$minimum, fit$minimum, 1e-10)
        expect_near(unname(predict(held, new)),
                    unname(predict(fit, new)), tolerance)
        values <- kernel_matrix(new, x, fit$kernel)
        expect_near(unname(predict(bare, values)),
                    unname(predict(fit, new)), tolerance)
      }
    }
  }
})

test_that("a target on a gram without points is a fit on that gram", {
  x <- columns()
  g <- as_gram(kernel_matrix(x, kernel = kernel_rbf(1)))
  w <- seq(-0.2, 0.4, length.out = 12)
  for (estimator in c("skmse", "fkmse")) {
    bare <- kme(g, estimator = estimator, target = kme(g, weights = w))
    fit <- kme(x, kernel_rbf(1), estimator,
               target = kme(x, kernel_rbf(1), weights = w))
    expect_near(bare$lambda, fit$lambda, 1e-5)
    expect_near(predict(bare), predict(fit), 1e-5)
    values <- kernel_matrix(x[1:3, ], x, kernel_rbf(1))
    expect_near(predict(bare, values), predict(bare)[1:3], 1e-12)
  }
})

test_that("a kernel function is as the native kernel", {
  x <- columns(30)
  new <- columns(4)
  theta <- 1.3
  # In blocks of rows, of which the last is smaller, if memory were short.
  f <- kernel_function(\(x, y) gram_R(kernel_rbf(theta), x, y))
  native <- kernel_rbf(theta)
  expect_near(kernel_matrix(x, kernel = f),
              kernel_matrix(x, kernel = native), 1e-14)
  expect_near(kernel_matrix(x, new, f), kernel_matrix(x, new, native), 1e-14)
  for (estimator in c("kme", "skmse", "fkmse")) {
    fit <- kme(x, f, estimator)
    want <- kme(x, native, estimator)
    expect_near(fit$weights, want$weights, 1e-5)
    expect_near(unname(predict(fit, new)), unname(predict(want, new)), 1e-5)
    expect_equal(fit$varrho, 1)
    expect_near(kme_inner(fit, fit), fit$norm2, 1e-12)
    expect_near(kme_distance(fit, kme(new, f)),
                kme_distance(want, kme(new, native)), 1e-5)
  }
  w <- seq(-1, 1, length.out = 30)
  expect_near(kme(x, f, weights = w)$norm2,
              kme(x, native, weights = w)$norm2, 1e-13)
})

test_that("a kernel function is called on blocks of rows", {
  # 2^22 values a block: 2,000 rows against 3,000 take two.
  sizes <- integer()
  f <- kernel_function(function(x, y) {
    sizes <<- c(sizes, nrow(x))
    tcrossprod(x, y)
  })
  x <- random_points(2000, 1)
  y <- random_points(3000, 1)
  rows <- fold_rows(f, x, y)
  expect_identical(sum(sizes), 2000L)
  expect_gt(length(sizes), 1L)
  expect_near(rows, drop(x) * sum(y), 1e-12)
})

# --- The verbs ---------------------------------------------------------------

test_that("the verbs do not depend on the kind of sample", {
  skip_on_cran()
  x <- random_points(30, 3)
  new <- random_points(7, 3)
  v <- random_points(30, 2, 5)
  kernels <- c(native_kernels(3)[c("rbf", "laplace_l1", "poly3", "linear")],
               list(own = kernel_function(\(x, y) tcrossprod(x, y)^2)))
  for (kernel in kernels) {
    k <- sample_matrix(points_sample(x, kernel))
    l <- kernel_matrix(new, x, kernel)
    points <- points_sample(x, kernel)
    formed <- form_sample(points)
    values <- gram_sample(as_gram(k))
    for (sample in list(points, formed, values)) {
      expect_near(sample_matrix(sample), k, 0)
      expect_near(as.matrix(sample), k, 0)
      expect_near(sample_rows(sample), rowSums(k), 1e-13)
      expect_near(sample_diagonal(sample), diag(k), 1e-14)
      expect_near(sample_apply(sample, v), k %*% v, 1e-12)
      expect_near(sample_apply(sample, v[, 1]), drop(k %*% v[, 1]), 1e-12)
      expect_near(sample_gram(sample)$K, k, 0)
      z <- if (knows_points(sample)) new else l
      at <- sample_newdata(sample, z)
      expect_near(sample_at(sample, at, v), l %*% v, 1e-12)
      expect_near(sample_cross(sample, at, 3:5), l[3:5, ], 1e-14)
      moments <- sample_moments(sample)
      expect_near(moments$rho, mean(k), 1e-13)
      expect_near(moments$varrho, mean(diag(k)), 1e-14)
      order <- c(5:1, 9, 30)
      expect_near(sample_matrix(sample_take(sample, order)),
                  k[order, order], 1e-14)
    }
    expect_true(stores_gram(formed) && knows_points(formed))
    expect_false(knows_points(values))
    expect_true(same_sample(points, formed))
    expect_false(same_sample(points, values))
  }
})

test_that("a linear kernel may have its origin at the mean of the points", {
  x <- random_points(20, 3) + 5
  sample <- center_linear(points_sample(x, kernel_linear()))
  k <- tcrossprod(scale(x, scale = FALSE))
  expect_near(sample_rows(sample), rowSums(k), 1e-12)
  expect_near(sample_diagonal(sample), diag(k), 1e-13)
  expect_near(sample_apply(sample, x), unname(k %*% x), 1e-12)
  # No other kernel has one, nor has a matrix.
  for (kernel in list(kernel_rbf(1), kernel_poly(2))) {
    expect_null(center_linear(points_sample(x, kernel))$origin)
  }
  expect_null(center_linear(gram_sample(gram(x, kernel_linear())))$origin)
})

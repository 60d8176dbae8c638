# The authors' rules: their kernel, their cross-validation, the adversary, and
# scores of new data, against formulas written out and against refits.

set.seed(2112)
n <- 60
z <- rnorm(n)
e <- rnorm(n)
x <- z + e / 2
y <- sin(2 * x) + e + rnorm(n) / 2
gauss <- \(a, b, gamma) exp(-gamma * outer(a, b, `-`)^2)
auto <- \(v) 1 / (2 * median(as.matrix(dist(v))))

test_that("the preset's kernel is theirs, 2 or \"auto\"", {
  fit <- rkhs_iv(x, y, z, preset = "nnpiv")
  own <- rkhs_iv(x, y, z, kernel_rbf(0.5), preset = list())
  expect_equal(fitted(fit), fitted(own), tolerance = 1e-10)
  expect_equal(1 / (2 * fit$kernels$x$bandwidth^2), 2)
  fit <- rkhs_iv(x, y, z, preset = list(gamma = "auto"))
  expect_equal(1 / (2 * fit$kernels$x$bandwidth^2), auto(x))
  expect_equal(1 / (2 * fit$kernels$z$bandwidth^2), auto(z))
  refused(rkhs_iv(x, y, z, preset = list(gamma = "median")), "nnpiv")
  refused(rkhs_iv(x, y, z, preset = list(gamma = c(1, 2))), "nnpiv")
  refused(rkhs_iv(x, y, z, preset = list(gamma = -1)), "nnpiv")
})

test_that("the adversary maximizes its objective", {
  fit <- rkhs_iv(x, y, z, kernel_rbf(1), lambda = 3, mu = 0.5)
  v <- fitted(fit) - y
  k <- gauss(z, z, 1 / 2)
  weights <- solve(k + diag(3, n), v)
  f <- fitted(fit, type = "adversary")
  expect_equal(dim(f), c(n, 1L))
  expect_equal(unname(f[, "first"]), drop(k %*% weights), tolerance = 1e-8)
  objective <- \(w) {
    values <- drop(k %*% w)
    mean(2 * v * values - values^2) - 3 * sum(w * values) / n
  }
  for (i in 1:20) {
    expect_gt(objective(weights), objective(weights + rnorm(n, sd = 0.01)))
  }
  expect_equal(n * objective(weights), sum(v * f), tolerance = 1e-8)
  # A projection, and two moments on rows of their own.
  group <- factor(rep(1:6, 10))
  fit <- rkhs_iv(x, y, group, penalty = "l2", mu = 0.5)
  expect_equal(unname(fitted(fit, "adversary")[, 1]),
               unname(ave(fitted(fit) - y, group)), tolerance = 1e-8)
  rows <- rep(0:1, 30) == 1
  fit <- rkhs_iv_nested(x, z, z, z, y, subset = rows + 0,
                        kernel = kernel_rbf(1), lambda_c = 2, lambda_d = 3,
                        mu_g = 0.5, mu_h = 0.5)
  values <- fitted(fit)
  f <- fitted(fit, type = "adversary")
  at <- \(rows, v, lambda) {
    drop(gauss(z, z[rows], 1 / 2) %*%
           solve(k[rows, rows] + diag(lambda, sum(rows)), v[rows]))
  }
  expect_equal(unname(f[, "first"]), at(rows, values[, "g"] - y, 3),
               tolerance = 1e-7)
  expect_equal(unname(f[, "second"]),
               at(!rows, values[, "h"] - values[, "g"], 2), tolerance = 1e-7)
})

test_that("a score is r'Pr/t^2 of new rows", {
  old <- 1:40
  new <- 41:60
  fit <- rkhs_iv(x[old], y[old], z[old], kernel_rbf(1), lambda = 3, mu = 0.5,
                 control = iv_control(scale = FALSE))
  r <- y[new] - predict(fit, x[new])
  k <- gauss(z[new], z[new], 1 / 2)
  p <- \(lambda) k %*% solve(k + diag(lambda, 20))
  got <- score(fit, list(x = x[new], y = y[new], z = z[new]))
  expect_equal(got, drop(r %*% p(3 / 2) %*% r) / 400, tolerance = 1e-9)
  # By their rules.
  fit <- rkhs_iv(x[old], y[old], z[old], preset = "nnpiv")
  r <- y[new] - predict(fit, x[new])
  k <- gauss(z[new], z[new], 2)
  lambda <- 20 * (5 * 20^-0.4)^2
  got <- score(fit, list(x = x[new], y = y[new], z = z[new]))
  expect_equal(got, 2 * lambda * drop(r %*% p(lambda) %*% r) / 400,
               tolerance = 1e-9)
  data <- data.frame(x, y, z)
  by_formula <- rkhs_iv(y ~ x | z, data[old, ], preset = "nnpiv")
  expect_equal(score(by_formula, data[new, ]), got, tolerance = 1e-12)
  nested <- rkhs_iv_nested(x[old], z[old], z[old], z[old], y[old],
                           preset = "nnpiv")
  part <- list(a = x[new], b = z[new], c = z[new], d = z[new], y = y[new])
  h <- predict(nested, part[c("a", "b")])
  first <- y[new] - h[, "g"]
  second <- h[, "h"] - h[, "g"]
  forms <- first %*% p(1) %*% first + second %*% p(1) %*% second
  expect_equal(score(nested, part), drop(forms) / 400, tolerance = 1e-9)
  refused(score(y, x), "a fit of rkhs_iv")
  refused(score(fit, x[new]), "list\\(x =, z =, y =\\)")
  refused(score(by_formula, list(1)), "data frame")
  refused(score(by_formula, data[c("x", "z")]), "missing: 'y'")
  refused(score(fit, list(x = x[new], y = y[new], z = z[1:3])), "as many rows")
  refused(score(fit, list(x = x[new], y = NA, z = z[new])), "newdata\\$y")
})

test_that("their cross-validation makes all of a fold anew", {
  folds <- rep(1:4, each = 15)
  alpha <- c(0.1, 3, 60)
  fit <- quietly(rkhs_iv(
    x, y, z, preset = list(gamma = "auto", alpha_scale = alpha),
    control = iv_control(folds = folds)
  ))
  for (fold in 1:4) {
    out <- folds == fold
    scores <- vapply(alpha, \(a) {
      one <- rkhs_iv(x[!out], y[!out], z[!out],
                     preset = list(gamma = "auto", alpha_scale = a))
      score(one, list(x = x[out], y = y[out], z = z[out]))
    }, 0)
    expect_equal(unname(attr(fit$cv, "folds")[fold, ]), scores,
                 tolerance = 1e-8)
  }
  # Landmarks of the other rows: K is that of their projections.
  marks <- c(1, 5, 20, 33, 47, 52)
  fit <- quietly(rkhs_iv(
    x, y, z, preset = list(alpha_scale = alpha),
    control = iv_control(folds = folds, landmarks = marks)
  ))
  out <- folds == 2
  kept <- marks[!out[marks]]
  projected <- \(v) {
    section <- gauss(v, v[kept], 2)
    section %*% solve(gauss(v[kept], v[kept], 2), t(section))
  }
  k_x <- projected(x)
  k_z <- projected(z)
  action <- \(rows) {
    t <- sum(rows)
    lambda <- t * (5 * t^-0.4)^2
    list(p = k_z[rows, rows] %*% solve(k_z[rows, rows] + diag(lambda, t)),
         factor = 2 * lambda, delta = 5 * t^-0.4)
  }
  train <- action(!out)
  held <- action(out)
  scores <- vapply(alpha, \(a) {
    mu <- a * train$delta^4 / train$factor
    # (K P K + mu K) a = K P y in the stable form (P K + mu I) a = P y.
    weights <- solve(train$p %*% k_x[!out, !out] + diag(mu, 45),
                     train$p %*% y[!out])
    r <- y[out] - drop(k_x[out, !out] %*% weights)
    held$factor * drop(r %*% held$p %*% r) / 15^2
  }, 0)
  expect_equal(unname(attr(fit$cv, "folds")[2, ]), scores, tolerance = 1e-6)
})

test_that("nested fits look one value beyond the end of their grid", {
  set.seed(5)
  fit <- quietly(rkhs_iv_nested(
    rnorm(40), rnorm(40), rnorm(40), rnorm(40), rnorm(40), preset = "nnpiv",
    control = iv_control(select = "cv", folds = 4)
  ))
  expect_equal(nrow(fit$cv), 31)
  ratio <- fit$cv$mu[-1] / fit$cv$mu[-31]
  expect_equal(ratio, rep(ratio[1], 30), tolerance = 1e-8)
})

test_that("a gamma that is not for the units of the data is told", {
  expect_warning(rkhs_iv(100 * x, y, z, preset = "nnpiv"),
                 "half of the pairs of 'x'", class = "kernmean_warning")
  expect_no_warning(rkhs_iv(x, y, z, preset = "nnpiv"))
  expect_no_warning(rkhs_iv(100 * x, y, z, preset = list(gamma = "auto")))
  expect_no_warning(rkhs_iv(100 * x, y, z, preset = "nnpiv",
                            control = iv_control(scale = TRUE)))
})

# Covariance and cross-covariance operators, and their shrinkage.

A <- reference_data("A")
cov_value <- function(quantity) reference_value("A_cov", quantity)

# Two dependent variables, three and two columns.
two_variables <- function(n, seed = 1) {
  set.seed(seed)
  x <- matrix(rnorm(3 * n), n)
  list(x = x, y = cbind(x[, 1]^2, x[, 2]) + matrix(rnorm(2 * n, sd = 0.5), n))
}

cov_gram <- function(fit, l = 1, z = NULL) {
  v <- fit$variables[[l]]
  gram_R(v$sample$kernel, if (is.null(z)) v$sample$x else z, v$sample$x)
}

# --- Values ------------------------------------------------------------------

test_that("the shrinkage, spectrum and norm equal the reference values", {
  kernel <- reference_kernel("A_rbf")
  plain <- kme_cov(A, kernel_x = kernel)
  simple <- kme_cov(A, kernel_x = kernel, estimator = "skmse")
  flexible <- kme_cov(A, kernel_x = kernel,
                      estimator = est_fkmse(cov_value("fcose_lambda")))
  expect_near(simple$alpha, cov_value("scose_alpha"), 1e-10)
  expect_near(flexible$weights, cov_value("fcose_weights"), 1e-10)
  expect_near(flexible$norm2, cov_value("hs_norm2_fcose"), 1e-10)
  fits <- list(kme = plain, scose = simple, fcose = flexible)
  for (name in names(fits)) {
    expect_near(fits[[name]]$values[1:5],
                cov_value(paste0("eigenvalues_", name)), 1e-10)
  }
})

test_that("weights are those of the mean estimators on the product matrix", {
  data <- two_variables(20)
  third <- random_points(20, 1)
  for (x in list(data, c(data, list(z = third)))) {
    fits <- lapply(list("kme", "skmse", est_fkmse(0.03)), \(e) {
      kme_cov(x, estimator = e)
    })
    K <- lapply(seq_along(x), \(l) {
      centered_R(cov_gram(fits[[1]], l), rep(1 / 20, 20))
    })
    H <- Reduce(`*`, K)
    alpha <- skmse_alpha_R(H, "loocv")
    expect_equal(fits[[1]]$weights, rep(1 / 20, 20))
    expect_near(fits[[2]]$weights, rep((1 - alpha) / 20, 20), 1e-12)
    expect_near(fits[[3]]$weights, fkmse_weights_R(H, 0.03), 1e-11)
    for (fit in fits) {
      beta <- coef(fit)
      expect_near(fit$norm2, drop(beta %*% H %*% beta), 1e-11)
    }
    chosen <- kme_cov(x, estimator = "fkmse")
    expect_near(chosen$minimum, fkmse_loocv_R(H, chosen$lambda), 1e-9)
    expect_lte(chosen$minimum, chosen$reference)
  }
})

# --- Spectrum ----------------------------------------------------------------

test_that("the operator by its weights is the operator by its eigenpairs", {
  for (kernel in list(kernel_rbf(1.2), kernel_poly(2))) {
    sample <- centered_sample(points_sample(random_points(30, 3), kernel),
                             est_kme())
    K <- centered_matrix(sample)
    pairs <- positive_pairs(sample)
    set.seed(1)
    weights <- stats::rnorm(30)
    found <- operator_spectrum(pairs, weights)
    expect_lt(min(found$values), -0.01 * max(found$values))
    KV <- K %*% found$vectors
    scale <- max(abs(K))
    # Functions have norm 1 to sqrt(eps) where K is singular to rounding.
    expect_lt(max(abs(crossprod(found$vectors, KV) - diag(ncol(KV)))), 1e-7)
    by_pairs <- KV %*% (found$values * t(KV))
    expect_lt(max(abs(by_pairs - K %*% (weights * K))), 1e-11 * scale^2)
    # The paper's problem: K B K V = K V D.
    left <- K %*% (weights * KV)
    expect_lt(max(abs(left - KV * rep(found$values, each = 30))),
              1e-10 * scale^2)
  }
})

test_that("the operator by its weights is the operator by singular functions", {
  data <- two_variables(30)
  data$x <- data$x[, 3]
  fit <- kme_cov(data$x, data$y, estimator = est_fkmse(0.05))
  expect_lt(min(fit$weights), -1e-3)
  K <- lapply(1:2, \(l) centered_R(cov_gram(fit, l), rep(1 / 30, 30)))
  left <- K[[1]] %*% fit$left
  right <- K[[2]] %*% fit$right
  for (norms in list(crossprod(fit$left, left), crossprod(fit$right, right))) {
    expect_lt(max(abs(norms[1:8, 1:8] - diag(8))), 1e-9)
  }
  want <- K[[1]] %*% (fit$weights * K[[2]])
  expect_lt(max(abs(left %*% (fit$values * t(right)) - want)), 1e-12)
  # Weights of functions on directions of small variance are large.
  expect_lt(max(abs(predict(fit) - left)), 1e-8)
  expect_lt(max(abs(predict(fit, side = "right") - right)), 1e-8)
  largest <- apply(fit$left, 2, \(v) v[which.max(abs(v))])
  expect_true(all(largest[1:8] > 0))
})

test_that("the squared norm is the sum of squared values; eigenvalues add up", {
  data <- two_variables(30)
  for (estimator in c("kme", "skmse", "fkmse")) {
    for (center in c("kme", "fkmse")) {
      for (x in list(data$x, data)) {
        fit <- kme_cov(x, estimator = estimator, center = center)
        expect_near(sum(fit$values^2), fit$norm2, 1e-10)
        if (!is.null(fit$vectors)) {
          expect_near(sum(fit$values), fit$trace, 1e-10)
          expect_near(sum(summary(fit)$values$share), 1, 1e-10)
        } else {
          expect_near(tail(summary(fit)$values$cumulative, 1), 1, 1e-10)
        }
      }
    }
  }
})

test_that("with linear kernels values are those of cov()", {
  data <- two_variables(40)
  linear <- kernel_linear()
  fit <- kme_cov(data$x, kernel_x = linear)
  expect_identical(fit$rank, 3L)
  e <- eigen(cov(data$x) * 39 / 40)
  expect_near(fit$values, e$values, 1e-12)
  expect_equal(abs(cor(predict(fit), scale(data$x, scale = FALSE) %*%
                         e$vectors)), diag(3), ignore_attr = TRUE,
               tolerance = 1e-10)
  cross <- kme_cov(data$x, data$y, linear, linear)
  s <- svd(cov(data$x, data$y) * 39 / 40)
  expect_near(cross$values, s$d, 1e-12)
  # The weights give the vectors themselves, x and y with one sign.
  u <- t(data$x) %*% cross$left
  v <- t(data$y) %*% cross$right
  expect_equal(u %*% (cross$values * t(v)), cov(data$x, data$y) * 39 / 40,
               ignore_attr = TRUE, tolerance = 1e-12)
})

test_that("the empirical norm of two variables is the biased HSIC statistic", {
  data <- two_variables(25)
  species <- factor(rep(1:3, length.out = 25))
  for (y in list(data$y, species, gram(data$y, kernel_laplace(2)))) {
    test <- hsic_set(data$x, y, B = 19)
    expect_near(kme_cov(data$x, y)$norm2, test$statistic[[1]], 1e-11)
  }
})

test_that("explicit features of degree 2 give the same operator", {
  data <- list(x = random_points(15, 2, 1), y = random_points(15, 2, 2))
  poly <- kernel_poly(2)
  for (center in c("kme", "skmse")) {
    fit <- kme_cov(data, kernel_x = poly, estimator = est_fkmse(0.5),
                   center = center)
    phi <- Map(\(x, v) {
      f <- poly_features_R(x)
      list(mean = colSums(coef(v$mean) * f), at = f)
    }, data, fit$variables)
    centered <- lapply(phi, \(p) sweep(p$at, 2, p$mean))
    operator <- crossprod(centered$x, fit$weights * centered$y)
    s <- svd(operator)
    expect_near(fit$values, s$d[seq_along(fit$values)], 1e-10)
    z <- random_points(4, 2, 3)
    new <- sweep(poly_features_R(z), 2, phi$x$mean) %*% s$u
    scores <- predict(fit, z)
    expect_identical(colnames(scores)[2], "SV2")
    expect_near(abs(unname(scores)), abs(new[, seq_len(ncol(scores))]), 1e-8)
    other <- sweep(poly_features_R(-z), 2, phi$y$mean)
    value <- rowSums((sweep(poly_features_R(z), 2, phi$x$mean) %*%
                        operator) * other)
    expect_near(predict(fit, list(z, -z), type = "value"), value, 1e-10)
  }
})

test_that("a variable paired with itself has singular values for eigenvalues", {
  x <- random_points(20, 2)
  one <- kme_cov(x, estimator = est_fkmse(0.1))
  two <- kme_cov(x, x, estimator = est_fkmse(0.1))
  expect_near(two$weights, one$weights, 1e-13)
  expect_near(two$values, sort(abs(one$values), decreasing = TRUE), 1e-11)
  expect_near(two$left[, 1:5], two$right[, 1:5], 1e-8)
  expect_near(unname(two$left[, 1:5]), unname(one$vectors[, 1:5]), 1e-8)
  z <- list(x[1:3, ], x[4:6, ])
  value <- predict(one, z, type = "value")
  expect_near(predict(two, z, type = "value"), value, 1e-12)
  pairs <- predict(one, z[[1]]) %*% (one$values * t(predict(one, z[[2]])))
  expect_near(value, diag(pairs), 1e-10)
})

test_that("ncomp keeps the leading components and the totals", {
  data <- two_variables(20)
  for (x in list(data$x, data)) {
    whole <- kme_cov(x)
    few <- kme_cov(x, ncomp = 3)
    expect_identical(few$values, whole$values[1:3])
    expect_identical(predict(few), predict(whole, ncomp = 3))
    expect_identical(few[c("rank", "norm2", "trace")],
                     whole[c("rank", "norm2", "trace")])
    expect_equal(predict(few, x, type = "value"),
                 predict(whole, x, type = "value"))
  }
  expect_warning(many <- kme_cov(data$x, kernel_x = kernel_linear(), ncomp = 9),
                 "more than the rank of the operator, 3",
                 class = "kernmean_warning")
  expect_length(many$values, 3)
})

test_that("constant variables and full shrinkage give the operator 0", {
  zero <- kme_cov(rep(2, 5), 1:5)
  expect_identical(zero$values, numeric())
  expect_identical(c(zero$rank, dim(zero$left)), c(0L, 5L, 0L))
  expect_equal(zero$norm2, 0)
  expect_identical(kme_cov(rep(2, 5))$rank, 0L)
  expect_identical(dim(predict(kme_cov(rep(2, 5)), 1:3)), c(3L, 0L))
  all <- kme_cov(1:5, estimator = est_skmse(Inf))
  expect_identical(all$values, numeric())
  expect_identical(predict(all, 1:3, type = "value"), numeric(3))
})

test_that("values that are rounding do not count in the rank", {
  signs <- cbind(c(1, 1, 1, 1, -1, -1, -1, -1), c(1, 1, -1, -1, 1, 1, -1, -1),
                 c(1, -1, 1, -1, 1, -1, 1, -1))
  turn <- qr.Q(qr(random_points(2, 2)))
  linear <- kernel_linear()
  # Columns are orthogonal: only the first is in both variables.
  fit <- kme_cov(signs[, 1:2] %*% turn, signs[, c(1, 3)] %*% turn, linear,
                 linear)
  expect_identical(c(fit$rank, ncol(fit$left), ncol(fit$right)), c(1L, 1L, 1L))
  expect_near(fit$values, 1, 1e-13)
})

# --- New values --------------------------------------------------------------

test_that("scores of new points are centered kernel values times weights", {
  data <- two_variables(20)
  z <- list(x = random_points(6, 3, 8), y = random_points(6, 2, 9))
  for (center in c("kme", "skmse", "fkmse")) {
    fit <- kme_cov(data, kernel_x = list(kernel_rbf(1.5), kernel_matern(5 / 2)),
                   center = center, ncomp = 4)
    for (l in 1:2) {
      side <- c("left", "right")[l]
      b <- coef(fit$variables[[l]]$mean)
      Lc <- centered_R(cov_gram(fit, l), b, cov_gram(fit, l, z[[l]]))
      got <- predict(fit, z[[l]], side = side)
      expect_near(got, Lc %*% fit[[side]], 1e-10)
      expect_identical(predict(fit, z, side = side), got)
      expect_identical(predict(fit, rev(z), side = side), got)
    }
    one <- kme_cov(data$x, center = center, ncomp = 4)
    b <- coef(one$variables$x$mean)
    Lc <- centered_R(cov_gram(one), b, cov_gram(one, 1, z$x))
    expect_near(predict(one, z$x), Lc %*% one$vectors, 1e-10)
  }
})

test_that("predict() at the sample is predict() without new data", {
  data <- two_variables(20)
  rownames(data$x) <- letters[1:20]
  for (estimator in c("kme", "fkmse")) {
    one <- kme_cov(data$x, estimator = estimator, ncomp = 5)
    two <- kme_cov(data, estimator = estimator, ncomp = 5)
    expect_near(predict(one, data$x), predict(one), 1e-10)
    expect_near(predict(two, data$x), predict(two), 1e-10)
    expect_equal(predict(two, data$y, side = "right"),
                 predict(two, side = "right"), tolerance = 1e-10,
                 ignore_attr = TRUE)
    for (fit in list(one, two)) {
      at <- if (length(fit$variables) == 1) data$x else data
      expect_near(predict(fit, at, type = "value"),
                  predict(fit, type = "value"), 1e-10)
    }
    expect_identical(rownames(predict(one)), letters[1:20])
  }
})

test_that("the value of three factors is the sum over the sample", {
  set.seed(5)
  data <- list(a = random_points(12, 2), b = stats::rnorm(12),
               c = factor(sample(c("u", "v", "w"), 12, TRUE)))
  new <- list(a = random_points(3, 2, 7), b = c(-1, 0, 2),
              c = factor(c("v", "u", "new")))
  for (center in c("kme", "skmse", "fkmse")) {
    fit <- kme_cov(data, estimator = est_fkmse(0.02), center = center)
    expect_null(fit$values)
    labels <- as.character(data$c)
    K <- list(cov_gram(fit, 1), cov_gram(fit, 2), delta_R(data$c))
    L <- list(cov_gram(fit, 1, new$a), cov_gram(fit, 2, matrix(new$b)),
              outer(as.character(new$c), labels, `==`) + 0)
    b <- lapply(fit$variables, \(v) coef(v$mean))
    Lc <- Map(centered_R, K, b, L)
    want <- vapply(1:3, \(z) {
      total <- 0
      for (i in 1:12) {
        total <- total +
          fit$weights[i] * Lc[[1]][z, i] * Lc[[2]][z, i] * Lc[[3]][z, i]
      }
      total
    }, numeric(1))
    expect_near(predict(fit, new, type = "value"), want, 1e-11)
    expect_near(predict(fit, new[c("c", "a", "b")], type = "value"),
                want, 1e-11)
    as_text <- list(new$a, new$b, as.character(new$c))
    expect_near(predict(fit, as_text, type = "value"), want, 1e-11)
  }
})

# --- Readers -----------------------------------------------------------------

test_that("matrices of kernel values and grams are variables", {
  data <- two_variables(15)
  z <- random_points(4, 3, 6)
  rbf <- kernel_rbf(2)
  fit <- kme_cov(data$x, data$y, kernel_x = rbf, center = "skmse")
  values <- kme_cov(as_gram(kernel_matrix(data$x, kernel = rbf)), data$y,
                    center = "skmse")
  g <- kme_cov(gram(data$x, rbf), data$y, center = "skmse")
  expect_near(values$values, fit$values, 1e-10)
  expect_near(g$values, fit$values, 1e-10)
  few <- \(fit, z) predict(fit, z, ncomp = 4)
  expect_near(few(values, kernel_matrix(z, data$x, rbf)), few(fit, z), 1e-8)
  expect_near(few(g, z), few(fit, z), 1e-8)
  expect_null(fit$variables$x$sample$gram)
  expect_near(update(g, kernel_x = kernel_rbf(3))$norm2,
              update(fit, kernel_x = kernel_rbf(3))$norm2, 1e-12)
})

test_that("the center may be a fit, or one for each variable", {
  data <- two_variables(20)
  rbf <- kernel_rbf(1.5)
  mean <- kme(data$x, rbf, "skmse")
  named <- kme_cov(data$x, kernel_x = rbf, center = "skmse")
  expect_near(kme_cov(data$x, center = mean)$values, named$values, 1e-12)
  both <- kme_cov(data$x, data$y, kernel_x = rbf, center = "skmse")
  mixed <- kme_cov(data$x, data$y, center = list(mean, "skmse"))
  listed <- kme_cov(data, center = list(mean, "skmse"))
  expect_near(mixed$values, both$values, 1e-12)
  expect_identical(mixed$values, listed$values)
  noisy <- kme_cov(data$x, center = kme(data$x, rbf, "mkme", noise = 0.5))
  m <- predict(noisy$variables$x$mean)
  K <- gram_R(rbf, data$x) - outer(m, m, `+`) + noisy$variables$x$mean$norm2
  expect_near(noisy$norm2, mean(K^2), 1e-12)
})

test_that("the formula method is the default method on its terms", {
  fit <- kme_cov(Petal.Width ~ Species, iris, estimator = "skmse")
  default <- kme_cov(iris$Petal.Width, iris$Species, estimator = "skmse")
  expect_identical(fit$values, default$values)
  expect_identical(names(fit$variables), c("Petal.Width", "Species"))
  expect_identical(kme_cov(~ Petal.Width + Species, iris,
                           estimator = "skmse")$values, fit$values)
  expect_identical(predict(fit, iris[c(1, 60), ], side = "right"),
                   predict(default, iris$Species[c(1, 60)], side = "right"))
  new <- iris[c(3, 120), ]
  value <- predict(fit, new, type = "value")
  expect_identical(names(value), c("3", "120"))
  expect_equal(unname(value),
               predict(default, list(new$Petal.Width, new$Species),
                       type = "value"))
  setosa <- kme_cov(Petal.Width ~ Sepal.Width, iris,
                    subset = Species == "setosa")
  expect_identical(setosa$values,
                   kme_cov(iris[1:50, 4], iris[1:50, 2])$values)
})

test_that("update() is a fit with the other arguments", {
  data <- two_variables(20)
  same <- \(a, b) {
    fields <- c("values", "weights", "lambda", "norm2")
    expect_near(a[fields], b[fields], 1e-12)
  }
  formula <- kme_cov(~ Petal.Width + Species, iris)
  same(update(formula, data = iris[1:120, ]),
       kme_cov(~ Petal.Width + Species, iris[1:120, ]))
})

test_that("bad input is refused", {
  skip_on_cran()
  x <- random_points(6, 2)
  y <- stats::rnorm(6)
  s <- factor(c(1, 2, 1, 2, 1, 2))
  g <- gram(x, kernel_rbf(1))
  fit <- kme_cov(x)
  cross <- kme_cov(x, s)
  tensor <- kme_cov(list(x, y, s))
  formula <- kme_cov(~ Petal.Width + Species, iris)
  lines <- refusals(expression(
    kme_cov(), kme_cov(x, y[-1]), kme_cov(x, NULL), kme_cov(3),
    kme_cov(list(x)), kme_cov(list(x, y), y),
    kme_cov(list(x, y), kernel_y = kernel_rbf()), kme_cov("a"), kme_cov(kme(x)),
    kme_cov(g, kernel_x = kernel_rbf()), kme_cov(s, kernel_x = kernel_rbf()),
    kme_cov(x, kernel_x = "rbf"), kme_cov(x, kernel_x = kernel_energy()),
    kme_cov(x, estimator = "mkme"), kme_cov(x, estimator = "cose"),
    kme_cov(x, lambda = 1), kme_cov(x, select = "gcv"),
    kme_cov(x, estimator = est_skmse), kme_cov(x, estimator = \(sample) 1:2),
    kme_cov(x, estimator = est_fkmse(target = kme(x))),
    kme_cov(x, center = "mean"), kme_cov(x, y, center = kme(x)),
    kme_cov(x, y, center = list("kme")), kme_cov(x, center = kme(y)),
    kme_cov(x, ncomp = 0), kme_cov(list(x, y, s), ncomp = 2),
    kme_cov(x, y, kernel_rbf(), kernel_rbf(), "kme", 2, "kme"),
    kme_cov(~ Petal.Width * Species, iris), kme_cov(~ 1, iris),
    kme_cov(~ Petal.Width, iris, kernel_rbf()), predict(fit, x[, 1]),
    predict(fit, list(x, x)), predict(fit, x, ncomp = 99),
    predict(fit, list(x, x[1:2, ]), type = "value"),
    predict(cross, y, side = "right"), predict(cross, list(x)),
    predict(cross, factor(NA), side = "right"),
    predict(cross, list(x, s), type = "value", ncomp = 1),
    predict(cross, side = "both"), predict(tensor, list(x, y, s)),
    predict(formula, data.frame(a = 1)), predict(fit, x, "scores", 2, 3),
    update(fit, "skmse"), update(formula, data = data.frame(a = 1)),
    update(fit, select = "gcv"), coef(fit, 2), summary(fit, digits = 3),
    plot(fit, "selection"), plot(fit, "all"), plot(tensor),
    plot(tensor, "spectrum")
  ))
  expect_snapshot(writeLines(lines))
})

# --- Print and plot ----------------------------------------------------------

test_that("fits print operator, variables, kernels, shrinkage and spectrum", {
  x <- cbind(a = c(0, 1, 3, 4.5), b = c(1, 0, 2, 2))
  y <- c(2, 1, 4, 3)
  s <- factor(c("u", "v", "v", "u"))
  rbf <- kernel_rbf(2)
  expect_snapshot({
    kme_cov(x, kernel_x = rbf)
    kme_cov(x, y, rbf, kernel_linear(), "skmse")
    kme_cov(x, s, rbf, estimator = est_fkmse(0.01))
    kme_cov(list(a = x, b = y, s = s), kernel_x = rbf,
            estimator = est_skmse(select = "plugin"))
    kme_cov(x, kernel_x = rbf, center = "skmse",
            estimator = est_function(\(sample) 1:4 / 10, "rising weights"))
    kme_cov(as_gram(diag(4)))
    kme_cov(rep(1, 4), y)
    summary(kme_cov(x, kernel_x = rbf, estimator = est_fkmse(0.01)))
    summary(kme_cov(x, y, kernel_linear(), kernel_linear()))
  })
})

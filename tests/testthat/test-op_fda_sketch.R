# Fisher discriminants of sketches with groups against those of all rows by the
# n x n projected Gram matrix.

rbf <- kernel_rbf(1)
k <- \(a, b) gram_R(rbf, a, b)
g <- rep(c("a", "b", "c"), c(30, 30, 20))
x <- random_points(80, 2, 1) + cbind(c(a = 0, b = 1.2, c = -2)[g],
                                     c(a = 0, b = 1.2, c = 2)[g])
x <- unname(x)
set.seed(1)
own <- kme_landmarks(x, 20, rbf)
sketch <- kme_sketch(x, own, groups = g, moments = 4)
Phi <- features_R(own, x, k)
twin <- as_gram(tcrossprod(Phi))

# The axes as functions: coordinates of the features.
axes_of <- function(sketched, rows, some) {
  list(solve(crossprod(own$root), crossprod(own$root, sketched$scaling)),
       crossprod(Phi[some, ], rows$scaling))
}

expect_twins <- function(a, b, some, tolerance = 1e-8) {
  expect_near(a$svd, b$svd, tolerance)
  expect_near(a$ridge, b$ridge, tolerance)
  expect_near(a$intensity, b$intensity, tolerance)
  expect_lt(up_to_signs(predict(a, x[some, ])$x, b$scores), tolerance)
  expect_lt(up_to_signs(a$means, b$means), tolerance)
  axes <- axes_of(a, b, some)
  expect_lt(up_to_signs(axes[[1]], axes[[2]]), tolerance)
}

# Products of two second moments: 1e-15 times the square of the condition of
# K_SS, some hundred here; 1e-12 seen.
test_that("axes and scores are those of the projected Gram matrix", {
  for (ridge in list("shrinkage", 1e-3, 1, 1e3, Inf)) {
    a <- kme_fda(sketch, ridge = ridge)
    expect_twins(a, kme_fda(twin, g, ridge = ridge), 1:80)
  }
  some <- 1:60
  two <- kme_sketch(x[some, ], own, groups = g[some], moments = 4)
  K <- as_gram(twin$K[some, some])
  for (ridge in list("shrinkage", 0.01)) {
    expect_twins(kme_fda(two, ridge = ridge), kme_fda(K, g[some],
                                                     ridge = ridge), some)
  }
})

test_that("with all rows as landmarks it is the fit to the points", {
  some <- c(1:20, 31:50, 61:70)
  a <- kme_fda(kme_sketch(x[some, ], kme_landmarks(x[some, ], 50,
                                                   kernel_rbf(0.3)),
                          groups = g[some], moments = 4))
  b <- kme_fda(x[some, ], g[some], kernel_rbf(0.3), ridge = "shrinkage")
  expect_near(a$ridge, b$ridge, 1e-7)
  expect_near(a$svd, b$svd, 1e-7)
  expect_lt(up_to_signs(predict(a, x)$x, predict(b, x)$x), 1e-6)
  # At one spread and temperature the posterior probabilities are the same.
  shared <- c("sigma2", "temperature", "mixing")
  a[shared] <- b[shared]
  expect_near(predict(a, x)$posterior, predict(b, x)$posterior, 1e-6)
})

test_that("the spread is that of the rows around their means", {
  fit <- kme_fda(sketch, ridge = 0.1)
  apart <- predict(fit, x)$x - fit$means[g, ]
  expect_near(fit$sigma2, sum(apart^2) / ((80 - 3) * 2), 1e-8)
})

test_that("weights of rows enter shares, moments and n", {
  # Of one size they change nothing.
  fit <- kme_fda(sketch)
  same <- kme_fda(kme_sketch(x, own, groups = g, weights = rep(2.5, 80),
                             moments = 4))
  expect_near(same[c("scaling", "means", "ridge", "prior")],
              fit[c("scaling", "means", "ridge", "prior")], 1e-8)
  w <- rep(1:4, 20)
  fit <- kme_fda(kme_sketch(x, own, groups = g, weights = w), ridge = 0.2)
  n <- sum(w)^2 / sum(w^2)
  size <- n * tapply(w, g, sum) / sum(w)
  expect_equal(fit$prior, c(size / n), ignore_attr = TRUE)
  means <- rowsum(w * Phi, g) / c(tapply(w, g, sum))
  mu <- colSums(w * Phi) / sum(w)
  scatter <- crossprod(Phi - means[g, ], w * (Phi - means[g, ])) * n / sum(w)
  G <- crossprod(Phi, w * Phi) * n / sum(w)
  e <- eigen(G, TRUE)
  half <- e$vectors %*% (sqrt(e$values) * t(e$vectors))
  R <- chol(half %*% scatter %*% half + diag(0.2, ncol(G)))
  D <- half %*% ((t(means) - mu) %*% diag(sqrt(c(size))))
  W <- svd(backsolve(R, D, transpose = TRUE))$u[, 1:2]
  v <- sqrt(n - 3) * half %*% backsolve(R, W)
  axes <- axes_of(fit, list(scaling = matrix(0, 80, 2)), 1:80)[[1]]
  expect_lt(up_to_signs(axes, v), 1e-8)
})

test_that("a fit prints, updates and draws without rows", {
  fit <- kme_fda(sketch)
  expect_output(print(fit), "no leave-one-out error")
  expect_output(print(summary(fit)), "spread of the rows themselves")
  expect_null(fit$loo)
  expect_identical(update(fit, ridge = 1)$ridge, 1)
  prior <- c(a = 0.2, b = 0.3, c = 0.5)
  expect_equal(update(fit, prior = prior)$prior, prior)
  expect_equal(update(fit, prior = prior)$scaling, fit$scaling)
  expect_equal(levels(predict(fit, x)$class), c("a", "b", "c"))
  pdf(NULL)
  on.exit(dev.off())
  expect_equal(dim(plot(fit, n = 20)$z), c(20L, 20L))
  refused(generics::tidy(fit, "calibration"), "leaves no points out")
  expect_equal(plot(fit, "scores")$LD1, unname(fit$means[, 1]))
})

test_that("what rows are needed for is refused", {
  fit <- kme_fda(sketch)
  refused(predict(fit), "'newdata' must be given")
  refused(kme_fda(sketch, g), "'grouping' must be missing")
  refused(kme_fda(sketch, ridge = "loo"), "\"shrinkage\" or a positive number")
  refused(kme_fda(sketch, kernel = rbf), "'kernel' must not be given")
  refused(kme_fda(sketch, bandwidth = 1), "'bandwidth' must not be given")
  refused(kme_fda(kme_sketch(x, own)), "at least 2 groups")
  refused(kme_fda(kme_sketch(x, own, groups = g, moments = 2)),
          "moments = 4")
  refused(kme_fda(kme_sketch(x, own, groups = g, moments = 1), ridge = 1),
          "moments = 2")
  refused(kme_fda(kme_sketch(x, own, groups = c("z", g[-1])), ridge = 1),
          "at least 2 rows in each group, not 1 in 'z'")
  refused(kme_fda(sketch, prior = c(1, 2)), "3 numbers")
})

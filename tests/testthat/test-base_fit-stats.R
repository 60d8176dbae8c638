# What the generics of stats say of fits and tests.

x <- random_points(12, 2, 3)
g <- rep(c("u", "v"), 6)
some <- list(
  kme = kme(x, kernel_rbf(1)), pca = kme_pca(x, kernel_rbf(1), ncomp = 2),
  cov = kme_cov(x, kernel_x = kernel_rbf(1)), fda = kme_fda(x, g),
  mmd = mmd_test(x[1:5, ], x[6:12, ], kernel_rbf(1), B = 19),
  hsic = hsic_test(x[, 1], x[, 2], B = 19),
  iv = rkhs_iv(x[, 1], x[, 2], g == "u", lambda = 1, mu = 1),
  smm = smm(as.list(x[, 1]), x[, 2], type = "ridge")
)

test_that("all fits and tests know the number of their points", {
  for (object in some) expect_identical(as.integer(nobs(object)), 12L)
})

test_that("coefficients are the weights, axes or expansions of a fit", {
  expect_identical(coef(some$kme), some$kme$weights)
  expect_identical(coef(some$fda), some$fda$scaling)
  # The components have norm 1 and their scores are centered sums of sections.
  v <- coef(some$pca)
  k <- gram_R(kernel_rbf(1), x)
  centered <- k - outer(rowMeans(k), rowMeans(k), "+") + mean(k)
  expect_near(unname(crossprod(v, centered %*% v)), diag(2), 1e-10)
  expect_near(unname(centered %*% v), unname(some$pca$scores), 1e-10)
})

test_that("fitted values of a kernel mean and a density are theirs", {
  expect_identical(unname(fitted(some$kme)), unname(predict(some$kme)))
  set.seed(1)
  density <- kme_density(x, m = 2)
  expect_identical(fitted(density), predict(density))
})

test_that("the formula of an instrumental-variable fit has its bar", {
  data <- data.frame(y = x[, 1], a = x[, 2], b = x[, 1]^2, g = g == "u")
  of <- \(formula) rkhs_iv(formula, data, lambda = 1, mu = 1)
  fit <- of(y ~ a + g | b + g)
  expect_identical(deparse1(formula(fit)), "y ~ a + g | b + g")
  expect_identical(fitted(of(formula(fit))), fitted(fit))
  expect_identical(deparse1(formula(of(log(y + 9) ~ a + g | . - a + b))),
                   "log(y + 9) ~ a + g | g + b")
})

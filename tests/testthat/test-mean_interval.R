# Radii and intervals of kernel means.

rbf <- kernel_rbf(1.5)

centered_R <- function(K) {
  h <- diag(nrow(K)) - 1 / nrow(K)
  h %*% K %*% h
}

# P(sum_l values_l Z_l^2 <= q), Imhof (1961).
imhof_R <- function(q, values) {
  at <- \(u) vapply(u, \(u) {
    phase <- 0.5 * sum(atan(values * u)) - 0.5 * q * u
    sin(phase) / (u * prod((1 + values^2 * u^2)^0.25))
  }, 1)
  0.5 - stats::integrate(at, 0, Inf, subdivisions = 2000L,
                         rel.tol = 1e-6)$value / pi
}

# E k(X, z) of standard normal X, RBF kernel.
normal_at <- function(z, theta) {
  wide <- theta^2 + 1
  (theta^2 / wide)^(ncol(z) / 2) * exp(-rowSums(z^2) / (2 * wide))
}

normal <- function(d) {
  list(weights = 1, means = numeric(d), covariances = diag(d))
}

# --- The radius --------------------------------------------------------------

test_that("the radius by the spectrum is the quantile of the limiting law", {
  x <- random_points(40, 2)
  for (kernel in list(rbf, kernel_laplace(c(1, 2)), kernel_matern(5 / 2, 1))) {
    fit <- kme(x, kernel)
    set.seed(1)
    found <- confint(fit)
    K <- gram_R(kernel, x)
    values <- eigen(centered_R(K) / 40, TRUE, TRUE)$values[1:39]
    # Four standard errors of a quantile of 10,000 draws.
    expect_near(imhof_R(40 * found$radius^2, values),
                0.95, 4 * sqrt(0.05 / 0.95 / 1e4))
    expect_near(found$variance, 1 - (sum(K) - 40) / (40 * 39), 1e-12)
    expect_identical(found$draws, 10000L)
  }
  set.seed(1)
  expect_identical(confint(fit), found)
  expect_identical(as.numeric(found), found$radius)
  radius <- \(level) as.numeric(confint(fit, level = level))
  expect_false(is.unsorted(vapply(c(0.5, 0.9, 0.95, 0.99), radius, 1)))
  # Values that were stored, and those of a function.
  K <- gram_R(kernel, x)
  own <- kernel_function(\(a, b) gram_R(kernel, a, b))
  for (other in list(kme(gram(x, kernel)), kme(as_gram(K)), kme(x, own))) {
    set.seed(1)
    expect_near(as.numeric(confint(other)), found$radius, 1e-8)
  }
})

test_that("where all eigenvalues are equal the quantile is exact", {
  sign <- rep(c(-1, 1, 1), 5)
  set.seed(1)
  before <- .Random.seed
  one <- confint(kme(as_gram(3 * tcrossprod(sign))), level = 0.9)
  spread <- 3 * mean((sign - mean(sign))^2)
  expect_equal(one$radius, sqrt(spread * stats::qchisq(0.9, 1) / 15))
  expect_equal(one$kappa, 3)
  all <- confint(kme(as_gram(diag(8))))
  expect_equal(all$radius, sqrt(stats::qchisq(0.95, 7) / 8 / 8))
  pair <- confint(kme(c(0, 1), rbf))
  expect_equal(pair$radius, sqrt((1 - exp(-1 / 4.5)) / 2 / 2 *
                                   stats::qchisq(0.95, 1)))
  expect_identical(pair$draws, 0L)
  expect_identical(.Random.seed, before)
  # One value and many tiny ones: the tiny ones as a constant.
  set.seed(2)
  found <- chisq_sum_quantile(c(1, rep(1e-5, 100)), 0.95)
  expect_near(found$quantile, stats::qchisq(0.95, 1) + 1e-3, 0.05)
})

test_that("the bound is the formula that n and the kernel choose", {
  small <- random_points(40, 2)
  n300 <- random_points(300, 1)
  n301 <- random_points(301, 1)
  mcdiarmid <- \(n, kappa, rest) {
    sqrt(kappa / n) + sqrt(2 * kappa * log(1 / rest) / n)
  }
  aware <- \(K, rest) {
    n <- nrow(K)
    kappa <- K[1, 1]
    v <- kappa - mean(K[row(K) != col(K)])
    sqrt(2 * v * log(4 / rest) / n) + 16 / 3 * sqrt(kappa) * log(4 / rest) / n
  }
  bound <- \(fit, ...) confint(fit, method = "bound", ...)
  expect_equal(bound(kme(small, rbf))$radius, mcdiarmid(40, 1, 0.05))
  expect_equal(bound(kme(small, rbf), level = 0.99)$radius,
               mcdiarmid(40, 1, 0.01))
  expect_identical(bound(kme(n300, rbf))$formula, "McDiarmid")
  fit <- bound(kme(n301, rbf), level = 0.9)
  expect_identical(fit$formula, "variance")
  K <- gram_R(rbf, n301)
  expect_equal(fit$radius, aware(K, 0.1))
  expect_equal(bound(kme(as_gram(2 * K)))$radius, aware(2 * K, 0.05))
  twice <- kernel_function(\(a, b) 2 * gram_R(rbf, a, b))
  expect_equal(bound(kme(n301, twice))$radius, aware(2 * K, 0.05))
  # Negative values: the other one, and it is said.
  waves <- kernel_function(\(a, b) 2 * cos(outer(a[, 1], b[, 1], "-")))
  for (fit in list(kme(n301, waves), kme(gram(n301, waves)))) {
    found <- bound(fit)
    expect_identical(found$formula, "McDiarmid")
    expect_equal(found$radius, mcdiarmid(301, 2, 0.05))
    expect_output(print(found), "negative values")
  }
  expect_equal(bound(kme(1, rbf))$radius, mcdiarmid(1, 1, 0.05))
  expect_identical(bound(kme(1, rbf))$variance, NA_real_)
})

test_that("balls and intervals hold what they are to hold as often", {
  skip_on_cran()
  set.seed(7)
  z <- matrix(c(0.5, -1, 2))
  kernel <- kernel_rbf(2)
  truth <- normal_at(z, 2)
  # |mu|^2 and <mu, mu^>.
  norm2 <- (4 / 6)^0.5
  bound <- as.numeric(confint(kme(1:40, kernel), method = "bound"))
  held <- replicate(200, {
    x <- matrix(stats::rnorm(40))
    fit <- kme(x, kernel)
    error <- sqrt(fit$rho - 2 * mean(normal_at(x, 2)) + norm2)
    radius <- as.numeric(confint(fit))
    at <- predict(fit, z, interval = TRUE, method = "normal")
    c(error <= radius, error <= bound,
      at[2, "lower"] <= truth[2] && truth[2] <= at[2, "upper"])
  })
  fit <- kme(z, kernel)
  expect_equal(fit$rho - 2 * mean(normal_at(z, 2)) + norm2,
               kme_risk(fit, normal(1)))
  held <- rowSums(held)
  expect_gte(held[1], stats::qbinom(1e-4, 200, 0.95))
  expect_lt(held[1], 200)
  expect_identical(held[2], 200)
  expect_gte(held[3], stats::qbinom(1e-4, 200, 0.95))
  expect_lt(held[3], 200)
})

test_that("beyond 3,000 points the spectrum is that of a factor", {
  skip_on_cran()
  # Each point 50 times: the eigenvalues are those of 64 points.
  x <- random_points(64, 2)
  set.seed(1)
  few <- confint(kme(x, rbf))
  set.seed(1)
  many <- confint(kme(x[rep(1:64, 50), ], rbf))
  # A thousandth of the trace may be taken by its mean.
  expect_near(3200 * many$radius^2, 64 * few$radius^2, 1e-3)
  expect_lt(many$left, 1e-3)
  expect_output(print(many), "beyond the factor of K, taken as a constant")
  # What a factor of 1,000 columns leaves is known.
  fit <- kme(random_points(3001, 8), kernel_laplace(2))
  found <- radius_spectrum(fit$sample)
  expect_length(found$values, 1000L)
  expect_gt(found$left, 0.1)
  beyond <- sum(found$values) + found$left - (1 - fit$rho)
  expect_gte(beyond, -1e-12)
  expect_lte(beyond, found$left)
})

# --- Sketches ----------------------------------------------------------------

test_that("a sketch with all points as landmarks knows what the points know", {
  x <- random_points(30, 2)
  sketch <- kme_sketch(x, 30, kernel = kernel_laplace(2))
  fit <- kme(sketch)
  points <- kme(x, kernel_laplace(2))
  z <- random_points(5, 2)
  set.seed(1)
  want <- confint(points)
  set.seed(1)
  got <- confint(fit)
  fields <- c("radius", "level", "formula", "n", "kappa", "variance", "norm")
  expect_near(got[fields], want[fields], 1e-6)
  expect_equal(confint(fit, method = "bound")[fields],
               confint(points, method = "bound")[fields])
  normal <- \(fit) predict(fit, z, interval = TRUE, method = "normal")
  expect_near(normal(fit), normal(points), 1e-6)
  # Of few landmarks: from the features of the rows.
  few <- kme(kme_sketch(x, 4, kernel = rbf))
  landmarks <- few$sample$x
  root <- chol2inv(chol(gram_R(rbf, landmarks)))
  projected <- gram_R(rbf, x, landmarks) %*% root %*%
    t(gram_R(rbf, x, landmarks))
  set.seed(1)
  got <- confint(few)$radius
  set.seed(1)
  values <- eigen(centered_R(projected) / 30, TRUE, TRUE)$values[1:4]
  expect_equal(got, sqrt(chisq_sum_quantile(values, 0.95)$quantile / 30))
  at <- gram_R(rbf, z, landmarks) %*% root %*% t(gram_R(rbf, x, landmarks))
  expect_equal(unname(normal(few)), unname(normal_ends_R(at)))
})

# --- Words -------------------------------------------------------------------

test_that("radii print what they are of and how they were found", {
  x <- cbind(a = c(0, 1, 3, 4.5), b = c(1, 0, 2, 2))
  expect_snapshot({
    set.seed(1)
    confint(kme(x, kernel_rbf(2)))
    confint(kme(x, kernel_rbf(2)), level = 0.999, method = "bound")
    confint(kme(as_gram(diag(3))))
    confint(kme(random_points(301, 1), kernel_rbf(1)), method = "bound")
  })
})

test_that("what has no radius or interval is refused with the reason", {
  x <- random_points(12, 2)
  fit <- kme(x, rbf)
  shrunk <- kme(x, rbf, "skmse")
  noisy <- kme(x, rbf, "mkme", noise = 0.1)
  weighted <- kme(x, rbf, weights = 1:12 / 78)
  single <- kme(x[1, , drop = FALSE], rbf)
  plain <- kme(kme_sketch(x, 4, kernel = rbf, moments = 1))
  counted <- kme(kme_sketch(x, 4, kernel = rbf, weights = 1:12))
  lines <- refusals(expression(
    confint(fit, 1), confint(fit, level = 95),
    confint(fit, method = "bootstrap"), confint(fit, type = "bound"),
    confint(shrunk), confint(weighted), confint(kme(x, kernel_poly(2))),
    confint(single), confint(plain), confint(counted),
    predict(fit, x, interval = "confidence"),
    predict(fit, x, interval = TRUE, level = 1),
    predict(fit, x, interval = TRUE, method = "exact"),
    predict(kme(x, kernel_poly(2)), x, interval = TRUE, method = "betting"),
    predict(shrunk, x, interval = TRUE), predict(weighted, interval = TRUE),
    predict(single, interval = TRUE, method = "normal"),
    predict(plain, x, interval = TRUE, method = "normal"),
    predict(plain, x, interval = TRUE, method = "betting"),
    predict(counted, x, interval = TRUE)
  ))
  expect_snapshot(writeLines(lines))
  # Weights of 1/n are no weights of one's own.
  own <- kme(x, rbf, weights = rep(1 / 12, 12))
  expect_identical(confint(own, method = "bound")$radius,
                   confint(fit, method = "bound")$radius)
  expect_warning(confint(kme(rep(1, 4), rbf)), "all alike",
                 class = "kernmean_warning_spread")
  old <- options(kernmean.memory = 1000)
  on.exit(options(old))
  expect_error(confint(fit), "more than the", class = "kernmean_error_memory")
})

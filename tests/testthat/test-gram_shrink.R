# shrink_gram(): against reference values, and against Lancewicki's shrinkage of
# the sample covariance of explicit features.

a <- reference_data("A")

# Lancewicki's estimator on features in rows: list(lambda, covariance). The
# variances in their direct form, sums over points of squared distances of
# matrices.
direct_R <- function(features) {
  n <- nrow(features)
  p <- ncol(features)
  centered <- scale(features, scale = FALSE)
  s <- stats::cov(features)
  w <- lapply(seq_len(n), \(i) tcrossprod(centered[i, ]))
  spread <- \(w) {
    mean <- Reduce(`+`, w) / n
    n / ((n - 1)^2 * (n - 2)) *
      sum(vapply(w, \(one) sum((one - mean)^2), numeric(1)))
  }
  target <- sum(diag(s)) / p * diag(p)
  towards <- lapply(w, \(one) sum(diag(one)) / p * diag(p))
  variances <- c(S = spread(w), T = spread(towards))
  gain <- variances[["S"]] - variances[["T"]]
  apart <- sum((target - s)^2)
  lambda <- min(max(gain / apart, 0), 1)
  list(lambda = lambda, gain = gain, apart = apart, variances = variances,
       covariance = (1 - lambda) * s + lambda * target)
}

eigenvalues <- function(k) eigen(k, TRUE, only.values = TRUE)$values

test_that("lambda has the reference values", {
  g <- gram(a, reference_kernel("A_rbf"))
  reference <- \(quantity) reference_value("A_shrink", quantity)
  expect_near(shrink_gram(g)$intensity, reference("lambda_p24"), 1e-12)
  expect_near(shrink_gram(g, 1e12)$intensity, reference("lambda_p1e+12"), 1e-12)
  expect_warning(few <- shrink_gram(g, 5), "rank of the centered matrix, 24",
                 class = "kernmean_warning")
  expect_identical(few$intensity, reference("lambda_p5"))
})

test_that("it is the shrinkage of the covariance of explicit features", {
  x <- random_points(14, 4)
  features <- list(
    linear = x,
    # (a'b + 1)^2 = 1 + 2 sum a_i b_i + sum a_i^2 b_i^2 + 2 sum_{i<j} ...
    poly = cbind(1, sqrt(2) * x[, 1:2], x[, 1:2]^2, sqrt(2) * x[, 1] * x[, 2])
  )
  grams <- list(linear = gram(x, kernel_linear()),
                poly = gram(x[, 1:2], kernel_poly(2)))
  for (name in names(features)) {
    z <- features[[name]]
    expect_near(grams[[name]]$K, tcrossprod(z), 1e-13)
    d <- ncol(z)
    wanted <- direct_R(z)
    shrunk <- shrink_gram(grams[[name]], p = d)
    expect_gt(wanted$lambda, 0.01)
    expect_lt(wanted$lambda, 0.99)
    expect_near(shrunk$intensity, wanted$lambda, 1e-12)
    expect_near(shrunk$variances, wanted$variances, 1e-12)
    # n - 1 times the covariance has the eigenvalues of K^ on its d directions.
    # The monomial 1 has variance 0 and p counts it: its value is the target.
    values <- eigenvalues(shrunk$K)
    expect_near(values[seq_len(d)], 13 * eigenvalues(wanted$covariance), 1e-8)
    expect_near(values[(d + 1):14],
                rep(shrunk$intensity * shrunk$target, 14 - d), 1e-8)
  }
})

# The mean of shrink_gram()'s variances over all samples of n points of a law on
# the rows of `points`, the variances of S and T, and what the first exceed the
# second by in theory.
every_sample <- function(points, probability, n) {
  p <- ncol(points)
  drawn <- as.matrix(expand.grid(rep(list(seq_along(probability)), n)))
  weight <- apply(drawn, 1, \(i) prod(probability[i]))
  found <- apply(drawn, 1, \(i) {
    x <- points[i, , drop = FALSE]
    c(shrink_gram(tcrossprod(x), p)$variances, cov(x), sum(diag(cov(x))))
  })
  mean <- drop(found %*% weight)
  variance <- drop((found - mean)^2 %*% weight)
  # The sum of the cumulants kappa_aabb.
  centered <- points - rep(drop(probability %*% points),
                           each = nrow(points))
  covariance <- crossprod(centered, probability * centered)
  kappa <- sum(probability * rowSums(centered^2)^2) -
    sum(diag(covariance))^2 - 2 * sum(covariance^2)
  of_cov <- 2 + seq_len(p^2)
  list(mean = mean[1:2],
       truth = c(S = sum(variance[of_cov]), T = variance[[3 + p^2]] / p),
       bias = -kappa / (n * (n - 1)) * c(S = 1, T = 1 / p))
}

test_that("the bias of both variances is a fourth cumulant's", {
  laws <- list(
    list(rbind(c(0, 0), c(1, -2), c(3, 1)), c(0.5, 0.3, 0.2)),
    # Of kurtosis above and below the normal's, and equal to it.
    list(cbind(c(-1, 0, 1)), c(0.05, 0.9, 0.05)), list(cbind(0:1), c(0.5, 0.5)),
    list(cbind(c(-1, 0, 1)), c(1, 4, 1) / 6)
  )
  biases <- vapply(laws, \(law) {
    exact <- every_sample(law[[1]], law[[2]], 4)
    # Largest error seen: 4e-15.
    expect_equal(exact$mean - exact$truth, exact$bias, tolerance = 1e-12)
    exact$bias[["S"]]
  }, 1)
  expect_equal(sign(zapsmall(biases)), c(1, -1, 1, 0))
})

test_that("Lancewicki's V(S) is equation 23; V(T) needs the mean of the S_i", {
  x <- random_points(9, 3)
  s <- cov(x)
  centered <- scale(x, scale = FALSE)
  each <- lapply(1:9, \(i) tcrossprod(centered[i, ]))
  factor <- 9 / (8^2 * 7)
  own <- shrink_gram(gram(x, kernel_linear()), 3)$variances
  expect_near(factor * sum(vapply(each, \(e) sum((e - 8 / 9 * s)^2), 1)),
              own[["S"]], 1e-13)
  # Equations 25 to 27. With S, as printed, the sum of squares has
  # n (tr S/n)^2 too much.
  about <- \(middle) {
    factor / 3 * sum(vapply(each, \(e) sum(diag(e - middle))^2, 1))
  }
  expect_near(about(8 / 9 * s), own[["T"]], 1e-13)
  expect_near(about(s), own[["T"]] + factor / 3 * sum(diag(s))^2 / 9, 1e-13)
})

test_that("variances are in squared units of K", {
  K <- rbf_gram(10)
  own <- shrink_gram(K)$variances
  expect_identical(shrink_gram(2^500 * K, Inf)$variances,
                   c(S = 2^1000 * own[["S"]], T = 0))
  expect_identical(shrink_gram(matrix(1, 5, 5))$variances, c(S = 0, T = 0))
  expect_output(print(summary(shrink_gram(diag(6)))), "V(S) = 0.2, V(T) = 0",
                fixed = TRUE)
})

test_that("the matrix is (1 - lambda) K + lambda tr(K)/p I, K centered", {
  K <- rbf_gram(10)
  for (p in list(NULL, 30, Inf)) {
    g <- shrink_gram(K, p)
    kc <- center_R(K)
    size <- if (is.null(p)) 9 else p
    expect_identical(g$p, as.double(size))
    expect_equal(g$K, (1 - g$intensity) * kc +
                   g$intensity * sum(diag(kc)) / size * diag(10),
                 tolerance = 1e-13)
    expect_near(g$trace, sum(diag(kc)), 1e-14)
    expect_near(g$target, g$trace / size, 1e-14)
    expect_near(shrink_gram(as_gram(kc), p, centered = TRUE)$K, g$K, 1e-13)
  }
})

test_that("lambda minimizes its estimate of the risk", {
  # Of (1 - l) S + l T it is l^2 |T - S|^2 - 2 l (V(S) - V(T)) and a constant.
  x <- random_points(12, 3)
  risk <- \(l, d) l^2 * d$apart - 2 * l * d$gain
  d <- direct_R(x)
  found <- optimize(risk, 0:1, d, tol = 1e-9)$minimum
  expect_near(shrink_gram(gram(x, kernel_linear()), 3)$intensity, found, 1e-6)
})

test_that("p = Inf is the limit of large p", {
  g <- gram(a, reference_kernel("A_rbf"))
  limit <- shrink_gram(g, Inf)
  expect_identical(limit$target, 0)
  # Both differ by terms of the order of tr^2/p.
  expect_near(limit$intensity, shrink_gram(g, 1e9)$intensity, 1e-7)
  expect_near(limit$K, shrink_gram(g, 1e9)$K, 1e-7)
})

test_that("lambda is 1 where target and covariance do not differ", {
  # Orthonormal features: the centered matrix is a multiple of its projection.
  g <- shrink_gram(diag(6))
  expect_identical(g$intensity, 1)
  expect_near(g$K, diag(6), 1e-15)
  expect_near(gram_spectrum(g)$values, rep(1, 6), 1e-14)
  # One point many times: 0 shrunk towards 0.
  same <- shrink_gram(matrix(1, 5, 5))
  expect_identical(same$intensity, 1)
  expect_equal(same$K, matrix(0, 5, 5))
})

test_that("the spectrum is that of the centered matrix, transformed", {
  K <- center_R(rbf_gram(11))
  for (what in c("values", "projections", "vectors")) {
    for (before in c(TRUE, FALSE)) {
      g <- as_gram(K)
      if (before) gram_spectrum(g, what)
      shrunk <- shrink_gram(g, centered = TRUE)
      expect_identical(shrunk$centered, g)
      # Known of one: known of the other, without a decomposition.
      expect_identical(is.null(shrunk$values), !before)
      s <- gram_spectrum(shrunk, what)
      expect_false(is.null(g$values))
      expect_identical(s$vectors, gram_spectrum(g, what)$vectors)
      expect_near(s$values, eigenvalues(shrunk$K), 1e-12)
    }
  }
  v <- gram_spectrum(shrunk, "vectors")
  anew <- gram_spectrum(as_gram(shrunk$K), "vectors")
  expect_near(v$vectors, anew$vectors, 1e-9)
  expect_near(v$vectors %*% (v$values * t(v$vectors)), shrunk$K, 1e-13)
})

test_that("a warning comes from p below the rank only", {
  x <- random_points(12, 3)
  g <- gram(x, kernel_linear())
  expect_no_warning(shrink_gram(g, 3))
  expect_no_warning(shrink_gram(g, 11))
  expect_warning(shrink_gram(g, 2), "rank of the centered matrix, 3")
  # Far from 0 the centering leaves rounding, which is no rank.
  expect_no_warning(shrink_gram(gram(x + 1000, kernel_linear()), 3))
})

test_that("bad input is refused", {
  K <- rbf_gram(5)
  expect_snapshot(writeLines(refusals(expression(
    shrink_gram(K, 0), shrink_gram(K, centered = NA),
    shrink_gram(K, centered = TRUE), shrink_gram(K, NULL, TRUE),
    shrink_gram(K, rho = 1), shrink_gram(diag(2)), shrink_gram(K[, 1:3]),
    shrink_gram(replace(K, 2, NA)), shrink_gram(gram(1:5, kernel_energy()))
  ))))
})

test_that("far from 0 a shrunk gram has a spectrum", {
  x <- random_points(20, 4)
  near <- shrink_gram(gram(x, kernel_linear()))
  far <- shrink_gram(gram(x + 1e5, kernel_linear()))
  # K is of size 4e10, its rounding about 1e-5.
  expect_near(gram_spectrum(far)$values, gram_spectrum(near)$values, 1e-4)
  expect_no_warning(shrink_gram(gram(x + 1e5, kernel_linear()), 4))
  # In one column and in many, errors of the row means add up to 1.6 n eps K.
  for (d in c(1, 400)) {
    for (seed in 1:20) {
      set.seed(seed)
      x <- matrix(rnorm(60 * d), 60) + 1e5
      g <- gram(x, kernel_linear(), scale = FALSE)
      expect_no_error(gram_spectrum(shrink_gram(g)))
    }
  }
})

test_that("new points of a fit on a shrunk gram have shrunk, centered values", {
  x <- random_points(15, 2)
  z <- random_points(4, 2)
  rbf <- kernel_rbf(1.3)
  shrunk <- shrink_gram(gram(x, rbf))
  values <- kernel_matrix(z, x, rbf)
  # In the feature space: scores of 1 - lambda times the centered features.
  k <- kernel_matrix(x, kernel = rbf)
  center <- \(l) l - rowMeans(l) - rep(colMeans(k), each = nrow(l)) + mean(k)
  wanted <- (1 - shrunk$intensity) * center(values)
  fit <- kme_pca(shrunk, ncomp = 3)
  expect_equal(predict(fit, values), wanted %*% fit$vectors -
                 rep(drop(crossprod(fit$at - fit$norm2, fit$vectors)),
                     each = 4) -
                 outer(rowMeans(wanted), colSums(fit$vectors)),
               ignore_attr = TRUE, tolerance = 1e-10)
  expect_error(reconstruction_error(fit, values, diagonal = rep(1, 4)),
               "must be missing", class = "kernmean_error_input")
  weights <- kme(shrunk, estimator = "fkmse", lambda = 0.1)
  expect_near(predict(weights, values), drop(wanted %*% coef(weights)), 1e-12)
  own <- shrink_gram(center(k), centered = TRUE)
  expect_near(predict(kme(own), center(values)),
              predict(kme(shrunk), values), 1e-12)
})

# The geometry of embeddings: explicit matrices, feature maps, integrals.

rbf <- kernel_rbf(1.1)

weighted <- function(n, d, seed, kernel = rbf) {
  x <- random_points(n, d, seed)
  kme(x, kernel, weights = random_points(n, 1, seed + 1)[, 1])
}

# A mixture with full covariances; component `flat` (if any) is singular.
random_mixture <- function(count, d, seed = 1, flat = 0) {
  set.seed(seed)
  weights <- stats::runif(count)
  covariances <- vapply(seq_len(count), \(c) {
    root <- matrix(stats::rnorm(d * d), d)
    if (c == flat) root[, 1] <- 0
    tcrossprod(root) / 2
  }, matrix(0, d, d))
  list(weights = weights / sum(weights), means = matrix(stats::rnorm(count * d),
       count), covariances = array(covariances, c(d, d, count)))
}

test_that("inner products and distances are those of explicit matrices", {
  for (kernel in list(rbf, kernel_laplace(2), kernel_poly(3), kernel_linear(),
                      kernel_rbf(c(1, 2, 0.5)))) {
    a <- weighted(70, 3, 1, kernel)
    b <- weighted(40, 3, 5, kernel)
    inner <- \(a, b) {
      sum(a$weights * (gram_R(kernel, a$sample$x, b$sample$x) %*% b$weights))
    }
    scale <- sqrt(inner(a, a) * inner(b, b))
    expect_lt(abs(kme_inner(a, b) - inner(a, b)), 1e-12 * scale)
    expect_near(kme_inner(a, a), inner(a, a), 1e-12)
    expect_near(kme_inner(a, b), kme_inner(b, a), 1e-12)
    expect_near(kme_distance(a, b)^2,
                inner(a, a) - 2 * inner(a, b) + inner(b, b), 1e-11)
  }
})

test_that("distances are a metric", {
  fits <- list(
    weighted(20, 2, 1), weighted(30, 2, 4), kme(random_points(9, 2), rbf),
    kme(random_points(20, 2, 1), rbf, "fkmse"),
    kme(random_points(9, 2), rbf, "skmse", target = weighted(5, 2, 7)),
    kme(random_points(9, 2), rbf, "fkmse", target = random_mixture(2, 2))
  )
  d <- outer(seq_along(fits), seq_along(fits),
             Vectorize(\(i, j) kme_distance(fits[[i]], fits[[j]])))
  expect_near(d, t(d), 1e-10)
  expect_true(all(d[upper.tri(d)] > 0))
  for (k in seq_along(fits)) {
    expect_true(all(d <= outer(d[, k], d[k, ], "+") + 1e-9))
  }
  # Cauchy and Schwarz; parallelogram by inner products.
  i <- kme_inner(fits)
  expect_true(all(i^2 <= outer(diag(i), diag(i)) * (1 + 1e-12)))
  expect_near(d^2, outer(diag(i), diag(i), "+") - 2 * i, 1e-9)
})

test_that("the distance of a fit to itself is exactly 0", {
  x <- random_points(25, 2)
  mixture <- random_mixture(2, 2)
  for (estimator in c("kme", "skmse", "fkmse")) {
    fit <- kme(x, rbf, estimator)
    expect_identical(kme_distance(fit, fit), 0)
    if (estimator != "kme") {
      for (target in list(weighted(5, 2, 7), mixture)) {
        fit <- kme(x, rbf, estimator, target = target)
        expect_identical(kme_distance(fit, fit), 0)
      }
    }
  }
  g <- as_gram(gram_R(rbf, x))
  expect_identical(kme_distance(kme(g), kme(g)), 0)
})

test_that("polynomial embeddings are means of explicit features", {
  # (x'y + 1)^2 = sum of products of 1, sqrt(2) x_i, x_i^2, sqrt(2) x_1 x_2.
  features <- \(x) {
    cbind(1, sqrt(2) * x, x^2, sqrt(2) * x[, 1] * x[, 2])
  }
  a <- kme(random_points(12, 2), kernel_poly(2), "fkmse", lambda = 2)
  b <- kme(random_points(7, 2), kernel_poly(2), "skmse")
  fa <- drop(crossprod(features(a$sample$x), a$weights))
  fb <- drop(crossprod(features(b$sample$x), b$weights))
  expect_near(kme_inner(a, b), sum(fa * fb), 1e-12)
  expect_near(kme_distance(a, b), sqrt(sum((fa - fb)^2)), 1e-11)
  z <- random_points(5, 2)
  expect_near(predict(a, z), drop(features(z) %*% fa), 1e-12)
})

test_that("fits on one gram of values are combined, others refused", {
  x <- random_points(10, 2)
  k <- gram_R(rbf, x)
  g <- as_gram(k)
  a <- kme(g, weights = seq(-1, 1, length.out = 10))
  b <- kme(g, estimator = "skmse", target = a)
  w <- b$weights + b$alpha * a$weights
  expect_near(kme_inner(a, b), sum(a$weights * (k %*% w)), 1e-12)
  difference <- a$weights - w
  expect_near(kme_distance(a, b)^2, sum(difference * (k %*% difference)), 1e-12)
  expect_error(kme_inner(a, kme(as_gram(k))), class = "kernmean_error_input")
  expect_error(kme_inner(a, kme(x, rbf)), class = "kernmean_error_input")
})

# --- Lists -------------------------------------------------------------------

test_that("matrices over a list are the numbers of its pairs", {
  x <- random_points(20, 2, 1)
  lists <- list(
    rbf = list(
      plain = kme(x, rbf), shrunk = kme(x, rbf, "fkmse"), weighted(15, 2, 4),
      noisy = kme(x, rbf, "mkme"), other = kme(random_points(9, 2), rbf),
      near = kme(x, rbf, "skmse", target = weighted(15, 2, 4)),
      towards = kme(x, rbf, "fkmse", target = random_mixture(2, 2)),
      also = kme(random_points(6, 2, 8), rbf, "skmse",
                 target = random_mixture(2, 2)),
      each = kme(x, rbf, "mmkme"), again = kme(x, rbf)
    ),
    poly = list(
      weighted(12, 2, 1, kernel_poly(3)), kme(x, kernel_poly(3), "skmse"),
      kme(x, kernel_poly(3), "mkme", noise = 0.3),
      kme(x, kernel_poly(3), "skmse", target = random_mixture(2, 2))
    )
  )
  for (fits in lists) {
    m <- seq_along(fits)
    pairs <- \(f) outer(m, m, Vectorize(\(i, j) f(fits[[i]], fits[[j]])))
    inner <- kme_inner(fits)
    distance <- kme_distance(fits)
    want <- pairs(kme_inner)
    expect_near(unname(inner), want, 1e-12)
    # Rounding of norms in squares of distances.
    expect_lt(max(abs(distance^2 - pairs(kme_distance)^2)),
              1e-13 * max(diag(want)))
    expect_identical(diag(unname(distance)), numeric(length(fits)))
    expect_identical(distance, t(distance))
    expect_identical(inner, t(inner))
    expect_identical(rownames(distance), names(fits))
    expect_identical(colnames(inner), names(fits))
    # In another order.
    back <- rev(m)
    expect_near(kme_distance(fits[back]), distance[back, back], 1e-12)
    expect_near(kme_inner(fits[back]), inner[back, back], 1e-12)
  }
  expect_identical(unname(kme_distance(lists$rbf)["plain", "again"]), 0)
  expect_equal(kme_inner(lists$rbf[1L]),
               matrix(lists$rbf$plain$norm2, dimnames = list("plain", "plain")),
               tolerance = 1e-13)
})

test_that("distances of group means are those of the test of the groups", {
  x <- as.matrix(iris[, 1:4])
  for (kernel in list(kernel_rbf(1.3), kme(x, scale = "whiten")$kernel)) {
    fits <- lapply(split(iris[, 1:4], iris$Species), kme, kernel)
    apart <- kme_distance(fits)
    test <- mmd_test(x ~ iris$Species, kernel = kernel, B = 19)
    pairs <- utils::combn(names(fits), 2L)
    expect_near(apart[t(pairs)]^2, unname(test$pairs), 1e-11)
    expect_identical(names(test$pairs), paste(pairs[1, ], "-", pairs[2, ]))
  }
})

test_that("close fits keep the digits of their distance in a list", {
  x <- random_points(25, 2)
  w <- rep(1 / 25, 25)
  target <- weighted(30, 2, 9)
  fits <- list(
    a = kme(x, rbf, weights = w), far = weighted(10, 2, 3),
    b = kme(x, rbf, weights = w * (1 + 1e-10)),
    s = kme(x, rbf, "skmse", lambda = 0.5, target = target),
    t = kme(x, rbf, "skmse", lambda = 0.5 * (1 + 1e-9), target = target)
  )
  apart <- kme_distance(fits)
  expect_near(apart["a", "b"], 1e-10 * sqrt(fits$a$norm2), 1e-4)
  expect_near(kme_distance(fits$a, fits$b), apart["a", "b"], 1e-4)
  expect_identical(kme_distance(fits$s, fits$s), 0)
  # d alpha = d lambda/(1 + lambda)^2
  expect_near(apart["s", "t"],
              kme_distance(kme(x, rbf), target) * 5e-10 / 2.25, 1e-4)
})

test_that("columns without names go with any, other names do not", {
  fit <- \(columns) {
    kme(matrix(1:6 / 6, 3, dimnames = list(NULL, columns)), rbf)
  }
  expect_identical(dim(kme_inner(list(fit(NULL), fit(c("u", "v"))))), c(2L, 2L))
  expect_error(kme_inner(list(fit(NULL), fit(c("u", "v")), fit(c("v", "u")))),
               class = "kernmean_error_input")
})

test_that("lists that are wrong say where", {
  a <- kme(random_points(5, 2), rbf)
  b <- kme(random_points(5, 2), kernel_rbf(2))
  one <- kme(random_points(5, 1), rbf)
  value <- kme(as_gram(diag(5)))
  expect_snapshot(writeLines(refusals(expression(
    kme_distance(list()), kme_inner(a), kme_distance(a, list(b)),
    kme_distance(list(a, b)), kme_inner(list(u = a, `my fit` = b)),
    kme_distance(list(a, a, one)), kme_inner(list(a, u = 3)),
    kme_inner(list(a, value)), kme_inner(list(a, list(b))),
    kme_inner(list(a), a)
  ))))
})

# --- Risk --------------------------------------------------------------------

test_that("the risk in one dimension is that of numerical integrals", {
  skip_on_cran()
  mixture <- list(weights = c(0.3, 0.7), means = c(-1, 2),
                  covariances = c(0.5, 1.7))
  x <- random_points(8, 1)
  for (kernel in list(kernel_rbf(0.8), kernel_poly(3), kernel_linear())) {
    k <- \(a, b) {
      drop(gram_R(kernel, matrix(a), matrix(b)))
    }
    mean_at <- Vectorize(\(z) integrate_R(\(t) k(t, z), mixture))
    norm2 <- integrate_R(mean_at, mixture)
    for (fit in list(kme(x, kernel), kme(x, kernel, "fkmse", lambda = 1),
                     kme(x, kernel, "skmse", target = mixture))) {
      direct <- fit$norm2 - 2 * integrate_R(\(z) predict(fit, z), mixture) +
        norm2
      # integrate() to 1e-11 of values up to the squared norm.
      expect_lt(abs(kme_risk(fit, mixture) - direct), 1e-9 * max(1, norm2))
    }
  }
})

test_that("the risk of polynomial kernels is that of exact moments", {
  # Gauss-Hermite with 4 nodes is exact for polynomials of degree 7: the nodes
  # and weights of each component replace its density.
  nodes <- sqrt(3 + c(-1, -1, 1, 1) * sqrt(6)) * c(-1, 1, -1, 1)
  share <- c(1, 1, 0, 0) / (4 * (3 - sqrt(6))) +
    c(0, 0, 1, 1) / (4 * (3 + sqrt(6)))
  mixture <- random_mixture(3, 2, flat = 2)
  at <- as.matrix(expand.grid(nodes, nodes))
  w <- apply(expand.grid(share, share), 1, prod)
  points <- lapply(1:3, \(c) {
    s <- eigen(mixture$covariances[, , c], symmetric = TRUE)
    root <- s$vectors %*% diag(sqrt(pmax(s$values, 0)))
    sweep(at %*% t(root), 2, mixture$means[c, ], "+")
  })
  points <- do.call(rbind, points)
  weights <- rep(mixture$weights, each = 16) * w
  expect_near(sum(weights), 1, 1e-12)
  for (kernel in list(kernel_linear(), kernel_poly(1, 2), kernel_poly(2),
                      kernel_poly(3), kernel_poly(3, 0.2))) {
    truth <- kme(points, kernel, weights = weights)
    for (fit in list(kme(random_points(9, 2), kernel),
                     kme(random_points(9, 2), kernel, "skmse"))) {
      expect_near(kme_risk(fit, mixture), kme_distance(fit, truth)^2, 1e-10)
    }
  }
})

test_that("RBF kernels integrate a normal distribution in closed form", {
  # E exp(-(z - X)^2/(2 theta^2)) is a density of N(0, theta^2 + s^2), scaled;
  # independent coordinates multiply.
  theta <- c(0.7, 2)
  s <- c(1.5, 0.4)
  z <- random_points(6, 2)
  mixture <- check_mixture(list(weights = 1, means = c(0, 0),
                                covariances = diag(s^2)), 2L, "mixture")
  want <- 1
  for (l in 1:2) {
    want <- want * sqrt(2 * pi) * theta[l] *
      stats::dnorm(z[, l], 0, sqrt(theta[l]^2 + s[l]^2))
  }
  expect_near(mixture_at(mixture, kernel_rbf(theta), z), want, 1e-13)
  expect_near(mixture_inner(mixture, mixture, kernel_rbf(theta)),
              prod(theta / sqrt(theta^2 + 2 * s^2)), 1e-13)
})

test_that("a singular covariance is that of the remaining coordinates", {
  x <- random_points(10, 2)
  flat <- list(weights = 1, means = c(1, 0.5), covariances = diag(c(2, 0)))
  line <- list(weights = 1, means = 1, covariances = 2)
  # The second coordinate is the point 0.5 in every draw.
  at <- mixture_at(check_mixture(line, 1L, "m"), rbf, x[, 1, drop = FALSE]) *
    gram_R(rbf, x[, 2, drop = FALSE], matrix(0.5))[, 1]
  expect_near(mixture_at(check_mixture(flat, 2L, "m"), rbf, x), at, 1e-13)
  expect_gt(kme_risk(kme(x, rbf), flat), 0)
})

test_that("ways to write one mixture give one risk", {
  fit <- kme(random_points(8, 1), rbf)
  one <- list(weights = 1, means = 0.5, covariances = 2)
  for (other in list(
    list(weights = 1L, means = matrix(0.5), covariances = matrix(2)),
    list(weights = 1, means = data.frame(0.5), covariances = array(2, c(1, 1,
      1))),
    list(covariances = 2, means = 0.5, weights = 1, note = "mine")
  )) {
    expect_identical(kme_risk(fit, other), kme_risk(fit, one))
  }
})

test_that("with covariances of 0 a mixture is a weighted set of points", {
  means <- random_points(3, 2)
  mixture <- list(weights = c(0.2, 0.5, 0.3), means = means,
                  covariances = array(0, c(2, 2, 3)))
  for (kernel in list(rbf, kernel_rbf(c(0.5, 2)), kernel_poly(3),
                      kernel_linear())) {
    points <- kme(means, kernel, weights = mixture$weights)
    fit <- kme(random_points(8, 2), kernel)
    expect_near(kme_risk(fit, mixture), kme_distance(fit, points)^2, 1e-11)
    expect_near(kme_risk(points, mixture), 0, 1e-13)
  }
})

test_that("a kernel as a third argument is answered", {
  for (f in list(kme_inner, kme_distance)) {
    refused(f(faithful, faithful, kernel_rbf(1)), "kme\\(x, kernel\\)")
    refused(f(kme(faithful), kme(faithful), kernel = kernel_rbf(1)), "two fits")
  }
})

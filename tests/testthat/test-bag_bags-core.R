# What the core does for all bags at once: F-KMSE of each, and the inner
# products of marginalized means.

rbf <- kernel_rbf(1.5)

rows_of <- function(sizes) {
  ends <- cumsum(sizes)
  Map(\(end, size) seq(end - size + 1, end), ends, sizes)
}

flexible <- function(source, sizes, lambda = NULL) {
  .Call(C_r_bag_flexible, source, as.integer(sizes), lambda)
}

marginal <- function(source, ...) .Call(C_r_bag_marginal, source, ...)

test_that("F-KMSE of each bag: the least score of its refits", {
  sizes <- c(2L, 66L, 7L, 12L)
  x <- random_points(sum(sizes), 2)
  found <- flexible(native_source(rbf, x), sizes)
  for (b in seq_along(sizes)) {
    i <- rows_of(sizes)[[b]]
    k <- gram_R(rbf, x[i, ])
    score <- \(lambda) fkmse_loocv_R(k, lambda)
    lambda <- found$lambda[b]
    # 4e-16 seen
    expect_near(found$minimum[b], score(lambda), 1e-13)
    expect_near(found$reference[b],
                loo_R(k, \(k, f) rep(1 / nrow(k), nrow(k))), 1e-13)
    # Neither near by nor anywhere in the range is there a smaller one.
    if (!found$border[b]) {
      for (step in c(-0.01, 0.01)) {
        expect_lt(found$minimum[b], score(lambda * exp(step)))
      }
    }
    top <- max(eigen(k, TRUE, TRUE)$values)
    path <- vapply(top * 10^seq(-8, 4, 0.25), score, 1)
    expect_lte(found$minimum[b], min(path) + 1e-13)
    beta <- fkmse_weights_R(k, lambda)
    expect_near(found$weights[i], beta, 1e-10)
    expect_near(found$norm2[b], sum(beta * (k %*% beta)), 1e-10)
  }
})

test_that("it is what kme() selects for the bag alone", {
  skip_on_cran()
  set.seed(1)
  sizes <- c(100L, 3L, 65L, 2L, 1L, 20L, 50L)
  x <- random_points(sum(sizes), 3) + rep(seq_along(sizes), sizes) / 3
  for (kernel in list(rbf, kernel_laplace(1), kernel_linear())) {
    found <- flexible(native_source(kernel, x), sizes)
    stored <- flexible(native_source(NULL, kernel_matrix(x, kernel = kernel)),
                       sizes)
    for (b in which(sizes > 1L)) {
      i <- rows_of(sizes)[[b]]
      fit <- kme(x[i, , drop = FALSE], kernel, "fkmse", scale = FALSE)
      # 2e-15 seen
      expect_near(found$minimum[b], fit$minimum, 1e-12)
      expect_near(stored$minimum[b], fit$minimum, 1e-12)
      expect_near(found$reference[b], fit$reference, 1e-12)
      # Both searches end within some 1e-5 of the logarithm, which may itself
      # be near 0; 2.2e-5 seen.
      expect_near(found$lambda[b] / fit$lambda, 1, 5e-5)
      expect_identical(found$border[b], fit$border)
      given <- kme(x[i, , drop = FALSE], kernel, "fkmse", scale = FALSE,
                   lambda = found$lambda[b])
      expect_near(found$weights[i], given$weights, 1e-9)
      expect_near(found$norm2[b], given$norm2, 1e-9)
    }
    expect_identical(
      lapply(found, \(v) v[5L])[c("lambda", "minimum", "reference", "border")],
      list(lambda = 0, minimum = NaN, reference = NaN, border = FALSE)
    )
    expect_identical(found$weights[rows_of(sizes)[[5L]]], 1)
    expect_identical(with_threads(1, flexible(native_source(kernel, x), sizes)),
                     found)
  }
})

test_that("a bag of a stored matrix does not depend on the others", {
  sizes <- c(40L, 1L, 70L, 9L)
  k <- gram_R(rbf, random_points(sum(sizes), 2))
  all <- flexible(native_source(NULL, k), sizes)
  for (b in seq_along(sizes)) {
    i <- rows_of(sizes)[[b]]
    own <- flexible(native_source(NULL, k[i, i, drop = FALSE]), sizes[b])
    expect_identical(own$weights, all$weights[i])
    expect_identical(own[-1L], lapply(all[-1L], `[`, b))
  }
})

test_that("a given lambda is not searched", {
  sizes <- c(5L, 1L, 30L)
  x <- random_points(sum(sizes), 2)
  source <- native_source(rbf, x)
  for (lambda in c(0, 1e-3, 2, Inf)) {
    found <- flexible(source, sizes, lambda)
    expect_identical(found$lambda, c(lambda, 0, lambda))
    expect_identical(found$minimum, rep(NaN, 3))
    expect_identical(found$border, rep(FALSE, 3))
    for (b in c(1L, 3L)) {
      i <- rows_of(sizes)[[b]]
      fit <- kme(x[i, ], rbf, "fkmse", lambda = lambda)
      expect_near(found$weights[i], fit$weights, 1e-10)
      expect_near(found$norm2[b], fit$norm2, 1e-10)
    }
  }
})

test_that("bags of equal points, and of nothing but zeros", {
  # Equal points: every lambda has the same score, 0 at lambda = 0.
  sizes <- c(4L, 20L, 80L)
  x <- rbind(matrix(1, 4, 2), matrix(2, 20, 2), random_points(80, 2))
  found <- flexible(native_source(rbf, x), sizes)
  expect_near(found$weights[1:24], rep(c(1 / 4, 1 / 20), c(4, 20)), 1e-6)
  expect_lt(max(abs(found$minimum[1:2])), 1e-14)
  # Nothing but zeros: the average, as from kme().
  zero <- flexible(native_source(kernel_linear(), matrix(0, 6, 1)), c(2L, 4L))
  expect_identical(zero$weights, rep(c(1 / 2, 1 / 4), c(2, 4)))
  expect_identical(zero$lambda, c(0, 0))
  expect_identical(zero$minimum, c(0, 0))
})

test_that("a bag whose eigenvalues dstemr does not find is done again", {
  # The projection of test-gram_gram-eigen.R.
  q <- qr.Q(qr(random_points(301, 301)))
  p <- q %*% (rep(1:0, c(150, 151)) * t(q))
  k <- diag(311)
  k[1:10, 1:10] <- gram_R(rbf, random_points(10, 2))
  k[11:311, 11:311] <- (p + t(p)) / 2
  got <- flexible(native_source(NULL, k), c(10L, 301L))
  alone <- kme(as_gram(k[11:311, 11:311]), estimator = "fkmse")
  expect_near(got$minimum[2L], alone$minimum, 1e-12)
  expect_near(got$lambda[2L], alone$lambda, 1e-4)
  expect_near(got$weights[11:311], alone$weights, 1e-4)
})

test_that("a bag's matrix that is not positive semi-definite is an error", {
  k <- diag(6)
  k[5, 6] <- k[6, 5] <- 2
  expect_error(flexible(native_source(NULL, k), c(4L, 2L)),
               class = "kernmean_error_numeric")
})

# Of two lists of bags, by the twin of the marginalized kernel.
marginal_R <- function(kernel, x, e, y, f) {
  one <- \(a, b) {
    mean(noisy_gram_R(kernel, x[[a]], e[, a], y[[b]], f[, b]))
  }
  outer(seq_along(x), seq_along(y), Vectorize(one))
}

as_bags <- function(x, sizes) {
  lapply(rows_of(sizes), \(i) x[i, , drop = FALSE])
}

test_that("inner products of marginalized means are those of the twin", {
  kernel <- kernel_rbf(c(1, 2, 0.5))
  set.seed(2)
  sizes <- c(1L, 70L, 5L, 33L)
  others <- c(2L, 64L, 1L)
  x <- random_points(sum(sizes), 3)
  e <- matrix(rexp(12), 3)
  f <- matrix(rexp(9), 3)
  e[, 3L] <- 0
  # With points that are far apart: by differences, not by products.
  for (apart in c(0, 60)) {
    y <- random_points(sum(others), 3) + apart * (seq_len(67) %in% 41:60)
    both <- native_source(kernel, x, y)
    want <- marginal_R(kernel, as_bags(x, sizes), e, as_bags(y, others), f)
    own <- marginal_R(kernel, as_bags(x, sizes), e, as_bags(x, sizes), e)
    for (level in isa_levels()) {
      alone <- with_isa(level, marginal(native_source(kernel, x), sizes, e,
                                        NULL, NULL))
      # 1e-14 seen
      expect_lt(max(abs(alone / own - 1)), 1e-12)
      expect_identical(alone, t(alone))
      got <- with_isa(level, marginal(both, sizes, e, others, f))
      expect_lt(max(abs(got / want - 1)), 1e-12)
      for (b in seq_along(sizes)) {
        i <- rows_of(sizes)[[b]]
        one <- with_isa(level, marginal(
          native_source(kernel, x[i, , drop = FALSE], y), sizes[b],
          e[, b, drop = FALSE], others, f
        ))
        expect_identical(one[1L, ], got[b, ])
      }
    }
  }
})

test_that("without noise they are means over blocks, at any thread count", {
  set.seed(3)
  sizes <- sample(c(1L, 20L, 50L, 150L), 40L, TRUE)
  x <- random_points(sum(sizes), 2)
  source <- native_source(rbf, x)
  found <- marginal(source, sizes, matrix(0, 2, 40), NULL, NULL)
  sums <- .Call(C_r_block_sums, source, sizes, NULL, NULL, NULL, FALSE)$sums
  expect_near(found, sums / outer(sizes, sizes), 1e-13)
  noise <- matrix(rexp(80), 2)
  found <- marginal(source, sizes, noise, NULL, NULL)
  both <- native_source(rbf, x, x)
  expect_near(marginal(both, sizes, noise, sizes, noise), found, 1e-13)
  with_threads(1, {
    expect_identical(marginal(source, sizes, noise, NULL, NULL), found)
  })
})

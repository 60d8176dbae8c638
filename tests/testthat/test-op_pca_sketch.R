# Kernel PCA of sketches against that of all rows by the n x n projected Gram
# matrix.

rbf <- kernel_rbf(0.8)
k <- \(a, b) gram_R(rbf, a, b)
x <- random_points(80, 2, 1)
set.seed(1)
own <- kme_landmarks(x, 15, rbf)
sketch <- kme_sketch(x, own, moments = 4)
Phi <- features_R(own, x, k)
twin <- as_gram(tcrossprod(Phi))

# Kernel values are rounded to 1e-15, and C to the condition of K_SS times that,
# here 1e3.
test_that("components are those of the projected Gram matrix", {
  # A lambda that is searched for is known to the tolerance of the search.
  searched <- est_fkmse(select = "gcv")
  found <- c(kme_pca(sketch, center = searched)$mean$lambda,
             kme_pca(twin, center = searched)$mean$lambda)
  expect_near(found[1L], found[2L], 1e-4)
  for (center in list("kme", "skmse", est_skmse(0.4), est_fkmse(0.3),
                      est_fkmse(found[1L]))) {
    for (covariance in c("kme", "skmse")) {
      a <- kme_pca(sketch, center = center, covariance = covariance)
      b <- kme_pca(twin, center = center, covariance = covariance)
      expect_identical(a$rank, b$rank)
      expect_lt(max(abs(a$values - b$values)), 1e-11)
      expect_near(a$total, b$total, 1e-11)
      expect_near(a$shrinkage$alpha, b$shrinkage$alpha, 1e-9)
      scores <- predict(a, x)
      expect_lt(up_to_signs(scores[, 1:10], b$scores[, 1:10]), 1e-9)
      error <- reconstruction_error(a, x, ncomp = 3)
      expect_equal(unname(error), unname(
        reconstruction_error(b, twin$K, ncomp = 3, diagonal = rep(1, 80))
      ), tolerance = 1e-9)
    }
  }
})

test_that("eigenfunctions have norm 1 and the sign of their largest weight", {
  fit <- kme_pca(sketch, center = est_skmse(0.4))
  K <- k(landmark_x(own), landmark_x(own))
  expect_equal(crossprod(fit$vectors, K %*% fit$vectors), diag(15),
               tolerance = 1e-10, ignore_attr = TRUE)
  largest <- apply(fit$vectors, 2, \(v) v[which.max(abs(v))])
  expect_true(all(largest > 0))
  few <- kme_pca(sketch, ncomp = 4)
  expect_identical(few$vectors, kme_pca(sketch)$vectors[, 1:4])
  expect_identical(few$rank, 15L)
})

test_that("with all rows as landmarks it is the fit to the points", {
  some <- x[1:25, ]
  a <- kme_pca(kme_sketch(some, kme_landmarks(some, 25, kernel_rbf(0.5)),
                          moments = 4), covariance = "skmse")
  b <- kme_pca(some, kernel_rbf(0.5), covariance = "skmse")
  # The condition of K_SS is 1e4 here.
  expect_near(a$values[1:20], b$values[1:20], 1e-9)
  expect_near(a$total, b$total, 1e-9)
  expect_lt(up_to_signs(predict(a, x, ncomp = 8), predict(b, x, ncomp = 8)),
            1e-8)
  expect_near(reconstruction_error(a, x, ncomp = 5),
              reconstruction_error(b, x, ncomp = 5), 1e-8)
  z <- x[26:40, ]
  expect_near(preimage(a, z, ncomp = 4), preimage(b, z, ncomp = 4), 1e-5)
})

test_that("rows with weights count as often as these say", {
  times <- rep(1:4, 20)
  often <- x[rep(1:80, times), ]
  a <- kme_pca(kme_sketch(x, own, weights = times))
  b <- kme_pca(kme_sketch(often, own))
  expect_near(a$values, b$values, 1e-9)
  expect_lt(up_to_signs(a$vectors[, 1:8], b$vectors[, 1:8]), 1e-9)
  # The moments are those of the weights, n is n_eff.
  s <- sketch_R(x, landmark_x(own), k, times)
  fit <- kme_pca(kme_sketch(x, own, weights = times, moments = 4),
                 covariance = "skmse")
  centered <- s$phi - rep(s$mu, each = 80)
  rho <- sum((crossprod(centered, times * centered) / sum(times))^2)
  varrho <- sum(times * rowSums(centered^2)^2) / sum(times)
  alpha <- min(1, s$size * (varrho - rho) /
                 ((s$size - 1)^2 * rho + varrho - rho))
  expect_near(fit$shrinkage$alpha, alpha, 1e-10)
})

test_that("rounding is no component", {
  wide <- kme_landmarks(x, 60, kernel_rbf(4))
  fit <- kme_pca(kme_sketch(x, wide))
  expect_lte(fit$rank, wide$rank)
  # Those kept are known to two digits at least.
  exact <- kme_pca(x, kernel_rbf(4))$values
  expect_near(fit$values, exact[seq_len(fit$rank)], 1e-6)
  expect_lt(max(abs(fit$values / exact[seq_len(fit$rank)] - 1)), 0.01)
  expect_error(kme_pca(kme_sketch(x[rep(1, 9), ], own)), "rows that differ",
               class = "kernmean_error_input")
})

test_that("a fit prints, updates and draws without rows", {
  fit <- kme_pca(sketch, ncomp = 3)
  expect_output(print(fit), "80 rows in a sketch of 15 landmarks")
  expect_equal(update(fit, center = "skmse"),
               kme_pca(sketch, ncomp = 3, center = "skmse"))
  expect_equal(summary(fit)$importance[2, ], fit$values / fit$total,
               ignore_attr = TRUE)
})

test_that("what rows are needed for is refused", {
  fit <- kme_pca(sketch)
  refused(predict(fit), "'newdata' must be given")
  refused(reconstruction_error(fit), "'newdata' must be given")
  refused(preimage(fit), "'newdata' must be given")
  refused(plot(fit, "scores"), "'newdata' must be given")
  refused(kme_pca(sketch, covariance = "fkmse"), "\"kme\" or \"skmse\"")
  refused(kme_pca(sketch, rbf), "'kernel' must not be given")
  refused(kme_pca(kme_sketch(x, own), covariance = "skmse"), "moments = 4")
  refused(kme_pca(kme_sketch(x, own, moments = 1)), "moments = 2")
  refused(kme_pca(sketch, center = "smooth"), "keeps sums over rows")
})

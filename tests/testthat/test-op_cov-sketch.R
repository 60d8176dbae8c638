# Covariance operators of sketches against those of all rows by the n x n
# projected Gram matrices.

rbf <- kernel_rbf(0.8)
k <- \(a, b) gram_R(rbf, a, b)
x <- random_points(80, 2, 1)
y <- cbind(x[, 1]^2, 0, x[, 2]) + random_points(80, 3, 2) / 3
set.seed(1)
lx <- kme_landmarks(x, 15, rbf)
ly <- kme_landmarks(y, 25, rbf)
sketch <- kme_sketch(x, lx, moments = 4)
both <- kme_sketch(x, list(lx, ly), y = y)
twin_x <- as_gram(tcrossprod(features_R(lx, x, k)))
twin_y <- as_gram(tcrossprod(features_R(ly, y, k)))

# Tolerances as in test-op_pca_sketch.R.
test_that("the operator of one variable is that of the projected Gram matrix", {
  for (estimator in list("kme", "skmse", est_skmse(lambda = 0.3))) {
    for (center in list("kme", "skmse")) {
      a <- kme_cov(sketch, estimator = estimator, center = center)
      b <- kme_cov(twin_x, estimator = estimator, center = center)
      expect_identical(a$rank, b$rank)
      expect_lt(max(abs(a$values - b$values)), 1e-11)
      for (field in c("norm2", "trace", "alpha", "lambda", "minimum")) {
        expect_near(a[[field]], b[[field]], 1e-9)
      }
      expect_lt(up_to_signs(predict(a, x, ncomp = 8), predict(b, ncomp = 8)),
                1e-9)
      expect_near(predict(a, x, type = "value"),
                  predict(b, type = "value"), 1e-9)
      pairs <- predict(a, list(x[1:6, ], x[11:16, ]), type = "value")
      expect_equal(pairs, predict(b, list(twin_x$K[1:6, ], twin_x$K[11:16, ]),
                                  type = "value"), tolerance = 1e-9)
    }
  }
})

test_that("the cross-covariance is that of the projected Gram matrices", {
  for (center in list("kme", "skmse", list(est_fkmse(0.1), "kme"))) {
    a <- kme_cov(both, center = center)
    b <- kme_cov(twin_x, twin_y, center = center)
    expect_identical(a$rank, b$rank)
    expect_lt(max(abs(a$values - b$values)), 1e-11)
    expect_near(a$norm2, b$norm2, 1e-9)
    left <- predict(a, x, ncomp = 6)
    right <- predict(a, y, ncomp = 6, side = "right")
    expect_lt(up_to_signs(left, predict(b, ncomp = 6)), 1e-9)
    expect_lt(up_to_signs(right, predict(b, ncomp = 6, side = "right")), 1e-9)
    # The sign of a pair is one.
    expect_true(all(colSums(left * right) > 0))
    expect_near(predict(a, list(x, y), type = "value"),
                predict(b, type = "value"), 1e-9)
  }
  # The statistic of a test of independence.
  expect_near(kme_cov(both)$norm2,
              unname(hsic_set(twin_x, twin_y, null = "gamma")$statistic), 1e-9)
})

test_that("weights are those of the rows, also of pairs", {
  times <- rep(1:4, 20)
  of <- rep(1:80, times)
  a <- kme_cov(kme_sketch(x, list(lx, ly), y = y, weights = times))
  b <- kme_cov(kme_sketch(x[of, ], list(lx, ly), y = y[of, ]))
  expect_near(a$values, b$values, 1e-9)
  expect_near(a$operator, b$operator, 1e-9)
})

test_that("a formula and factors do as for rows", {
  set.seed(1)
  a <- kme_cov(kme_sketch(Petal.Width ~ Species, iris, landmarks = 40))
  b <- kme_cov(Petal.Width ~ Species, iris)
  # 22 different values: nothing is lost.
  expect_identical(names(a$variables), names(b$variables))
  expect_near(a$values, b$values, 1e-6)
  some <- iris[c(1, 60, 120), ]
  expect_near(predict(a, some, type = "value"),
              predict(b, some, type = "value"), 1e-6)
  expect_near(abs(predict(a, some, side = "right")),
              abs(predict(b, some, side = "right")), 1e-6)
})

test_that("a fit prints, updates and draws without rows", {
  fit <- kme_cov(both, ncomp = 2)
  expect_output(print(fit), "y: lost by projection")
  expect_equal(update(fit, center = "skmse", ncomp = NULL),
               kme_cov(both, center = "skmse"))
  expect_equal(update(fit, x = sketch)$values, kme_cov(sketch)$values[1:2])
})

test_that("what rows are needed for is refused", {
  fit <- kme_cov(both)
  refused(predict(fit), "'newdata' must be given")
  refused(predict(fit, type = "value"), "'newdata' must be given")
  refused(coef(fit), "no rows to be weighed")
  refused(kme_cov(both, estimator = "skmse"), "must be \"kme\"")
  refused(kme_cov(sketch, estimator = "fkmse"), "\"kme\" or \"skmse\"")
  refused(kme_cov(kme_sketch(x, lx), estimator = "skmse"), "moments = 4")
  refused(kme_cov(sketch, y), "'y' must be missing")
  refused(kme_cov(sketch, kernel_x = rbf), "'kernel_x' must not be given")
  refused(kme_cov(sketch, rank = 2), "unused argument")
  expect_warning(kme_cov(sketch, ncomp = 40), "the rank of the operator, 15")
})

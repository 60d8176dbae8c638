# Smoothing and stacking in the functions that take an estimator.

rbf <- kernel_rbf(0.9)
x <- random_points(14, 2)

# All labelings of few points, the first the observed one.
few <- rbind(random_points(4, 2, 8), random_points(3, 2, 10) + 1)
labelings <- utils::combn(7, 4)

# Without a guard, as the twins are.
bare <- list(smooth = est_smooth(guard = FALSE),
             stack = est_stack(guard = FALSE))

test_that("as a center they are the fit of kme()", {
  K <- gram_R(rbf, x)
  z <- random_points(4, 2, 3)
  twins <- list(smooth = smooth_R(x, 0.9, kme(x, rbf, bare$smooth)$h,
                                  kme(x, rbf, bare$smooth)$c))
  shares <- kme(x, rbf, bare$stack)$candidates$share
  twins$stack <- mean_sum_R(lapply(seven_R(x, 0.9), \(a) a(x, 0.9)), shares)
  for (name in names(twins)) {
    at <- mean_at_R(twins[[name]], x, 0.9)
    norm2 <- mean_inner_R(twins[[name]], twins[[name]], 0.9)
    e <- eigen(K - outer(at, at, `+`) + norm2, symmetric = TRUE)
    for (center in list(bare[[name]], kme(x, rbf, bare[[name]]))) {
      fit <- kme_pca(x, rbf, 3, center = center)
      expect_near(fit$values, e$values[1:3] / 14, 1e-9)
      Lc <- gram_R(rbf, z, x) + norm2 -
        outer(mean_at_R(twins[[name]], z, 0.9), at, `+`)
      scores <- Lc %*% e$vectors[, 1:3] %*% diag(1 / sqrt(e$values[1:3]))
      expect_near(abs(unname(predict(fit, z))), abs(scores), 1e-8)
    }
    centered <- kme_cov(x, kernel_x = rbf, center = bare[[name]])
    expect_near(centered$trace, sum(e$values) / 14, 1e-9)
  }
})

test_that("means are shrunk towards them", {
  y <- random_points(9, 2, 5) + 0.5
  shares <- c(0.3, 0.5)
  targets <- list(
    list(kme(y, rbf, est_smooth(h = 0.4, c = 0.9)), smooth_R(y, 0.9, 0.4, 0.9)),
    list(kme(y, rbf, est_stack(list(est_fkmse(0.2), est_smooth(1, 1)), shares)),
         mean_sum_R(list(twin_fkmse(0.2)(y, 0.9), smooth_R(y, 0.9, 1)), shares))
  )
  K <- gram_R(rbf, x)
  for (target in targets) {
    at <- mean_at_R(target[[2]], x, 0.9)
    norm2 <- mean_inner_R(target[[2]], target[[2]], 0.9)
    fit <- kme(x, rbf, "skmse", target = target[[1]])
    alpha <- skmse_alpha_R(K, "loocv", at, norm2)
    expect_near(fit$alpha, alpha, 1e-10)
    whole <- mean_sum_R(list(target[[2]], twin_kme()(x, 0.9)),
                        c(alpha, 1 - alpha))
    expect_near(fit$fitted, mean_at_R(whole, x, 0.9), 1e-10)
    expect_near(fit$norm2, mean_inner_R(whole, whole, 0.9), 1e-10)
    shrunk <- kme(x, rbf, "fkmse", lambda = 0.3, target = target[[1]])
    w <- fkmse_weights_R(K, 0.3, at)
    expect_near(shrunk$weights, w, 1e-10)
    expect_equal(predict(shrunk, y), drop(gram_R(rbf, y, x) %*% w) +
                   mean_at_R(target[[2]], y, 0.9), tolerance = 1e-10)
  }
})

test_that("two samples are compared by means that settled once for both", {
  a <- few[1:4, ]
  b <- few[5:7, ]
  pooled <- kme(few, rbf, bare$smooth)
  test <- mmd_test(a, b, rbf, bare$smooth,
                   control = test_control(permutations = "all"))
  expect_equal(test$smoothing, c(h = pooled$h, c = pooled$c))
  settled <- est_smooth(h = pooled$h, c = pooled$c)
  values <- apply(labelings, 2, \(s) {
    kme_distance(kme(few[s, ], rbf, settled, scale = FALSE),
                 kme(few[-s, ], rbf, settled, scale = FALSE))^2
  })
  expect_near(unname(test$statistic), values[1], 1e-10)
  expect_near(sort(unname(test$replicates)), sort(values), 1e-10)
  expect_equal(test$p.value, mean(values >= values[1] - 1e-12))
})

test_that("a stack settles its shares, and its lambdas, once", {
  skip_on_cran()
  test <- mmd_test(few[1:4, ], few[5:7, ], rbf, bare$stack,
                   control = test_control(permutations = "all"))
  pooled <- stack_R(few, 0.9)
  values <- apply(labelings, 2, \(s) {
    # Candidates of all points: lambdas are shares of their largest eigenvalue.
    means <- lapply(list(few[s, ], few[-s, ]), \(part) {
      mean_sum_R(lapply(seven_R(few, 0.9), \(fit) fit(part, 0.9)),
                 pooled$shares)
    })
    inner <- \(i, j) mean_inner_R(means[[i]], means[[j]], 0.9)
    inner(1, 1) + inner(2, 2) - 2 * inner(1, 2)
  })
  expect_near(unname(test$statistic), values[1], 1e-6)
  expect_near(sort(unname(test$replicates)), sort(values), 1e-6)
  expect_equal(test$p.value, mean(values >= values[1] - 1e-9))
})

test_that("p-values over all labelings are uniform, whatever the labels", {
  # Each labeling as the observed one: the ranks of ten statistics.
  five <- few[c(1:3, 5:6), ]
  for (estimator in c("smooth", "stack")) {
    p <- apply(utils::combn(5, 3), 2, \(s) {
      suppressWarnings(mmd_test(five[s, ], five[-s, ], rbf, estimator,
                                control = test_control(permutations = "all"),
                                scale = FALSE)$p.value)
    })
    expect_near(sort(p), 1:10 / 10, 1e-9)
  }
})

test_that("in a test of independence smoothing makes another kernel", {
  y <- random_points(14, 1, 2) + x[, 1]
  test <- hsic_test(x, y, rbf, kernel_rbf(0.7), bare$smooth, B = 19)
  K <- Map(\(x, theta, estimate) {
    part <- smooth_R(x, theta, min(estimate$h, 0.9))[[1]]
    normal_pairs_R(part$points, part$points, 2 * part$noise, theta)
  }, list(x, y), c(0.9, 0.7),
  list(kme(x, rbf, bare$smooth), kme(y, kernel_rbf(0.7), bare$smooth)))
  expect_equal(unname(test$smoothing),
               pmin(0.9, c(kme(x, rbf, bare$smooth)$h,
                           kme(y, kernel_rbf(0.7), bare$smooth)$h)))
  scale <- unname(test$statistic) / hsic_R(K[[1]], K[[2]])
  set.seed(3)
  test <- hsic_test(x, y, rbf, kernel_rbf(0.7), bare$smooth, B = 30)
  set.seed(3)
  orders <- draw_columns(14, 30)
  want <- apply(orders, 2, \(o) hsic_R(K[[1]], K[[2]][o, o]))
  expect_near(sort(unname(test$replicates)), sort(scale * want), 1e-9)
  expect_near(scale, 1, 1e-12)
})

test_that("bags are those of kme() one by one", {
  skip_on_cran()
  set.seed(4)
  bags <- lapply(c(a = 5, b = 8, c = 3, d = 6), \(n) {
    matrix(stats::rnorm(2 * n), n)
  })
  new <- lapply(c(4, 7), \(n) matrix(stats::rnorm(2 * n), n))
  for (estimator in list("smooth", "stack", est_smooth(h = 0.3),
                         est_smooth(h = 1, c = 0.8),
                         est_stack(list(est_kme(), est_mkme(0.2))))) {
    g <- bag_gram(bags, rbf, estimator)
    expect_near(g$inner, bags_R(bags, rbf, estimator), 1e-10)
    expect_near(unname(predict(g, new)),
                unname(new_bags_R(new, bags, rbf, estimator)), 1e-10)
    expect_near(unname(g$shrinkage$norm2), unname(diag(g$inner)), 1e-10)
  }
  # A bag of one point is its own embedding.
  bags$e <- matrix(c(0.3, 1), 1)
  for (estimator in c("smooth", "stack")) {
    g <- suppressWarnings(bag_gram(bags, rbf, estimator))
    expect_near(g$inner, bags_R(bags, rbf, estimator), 1e-10)
  }
})

test_that("where only kernel values are known a stack has what they allow", {
  K <- gram_R(rbf, x)
  g <- as_gram(K)
  expect_error(kme(g, estimator = "smooth"), class = "kernmean_error_input")
  expect_warning(fit <- kme(g, estimator = "stack"),
                 class = "kernmean_warning")
  top <- eigen(K, symmetric = TRUE)$values[1]
  plain <- kme(x, rbf, est_stack(c(
    list(est_kme()), lapply(c(0.003, 0.03, 0.3) * top, est_fkmse)
  )))
  for (field in c("fitted", "weights", "norm2", "minimum")) {
    expect_near(fit[[field]], plain[[field]], 1e-6)
  }
  expect_near(fit$candidates$score, plain$candidates$score, 1e-12)
  # Kernel values of new points.
  z <- random_points(3, 2, 5)
  expect_near(predict(fit, gram_R(rbf, z, x)), predict(plain, z), 1e-6)
})

test_that("kernels without closed forms are refused by smoothing", {
  for (kernel in list(kernel_laplace(1), kernel_linear(), kernel_poly(2),
                      kernel_matern(bandwidth = 1),
                      kernel_function(\(x, y) tcrossprod(x, y)^2))) {
    expect_error(kme(x, kernel, "smooth"), class = "kernmean_error_input")
    expect_error(kme_pca(x, kernel, 2, center = "smooth"),
                 class = "kernmean_error_input")
    expect_error(mmd_test(x, x + 1, kernel, "smooth", B = 19),
                 class = "kernmean_error_input")
    fit <- suppressWarnings(kme(x, kernel, "stack"))
    # The KME and three of F-KMSE.
    expect_identical(nrow(fit$candidates), 4L)
    K <- as.matrix(gram(x, kernel))
    lambda <- c(0.003, 0.03, 0.3) *
      eigen(K, symmetric = TRUE, only.values = TRUE)$values[1]
    expect_near(fit$candidates$score[-1],
                vapply(lambda, \(l) fkmse_loocv_R(K, l), 1), 1e-9)
    shrunk <- kme(x, kernel, est_stack(list(est_kme()),
                                        guard = FALSE))
    expect_near(shrunk$candidates$share,
                1 - kme(x, kernel, "skmse")$alpha, 1e-8)
  }
})

test_that("an operator takes a stack of weights, and no smoothing", {
  expect_error(kme_cov(x, kernel_x = rbf, estimator = "smooth"),
               class = "kernmean_error_input")
  expect_error(kme_pca(x, rbf, 2, covariance = "smooth"),
               class = "kernmean_error_input")
  fit <- suppressWarnings(kme_cov(x, kernel_x = rbf, estimator = "stack"))
  # The operator is the mean of a product kernel of its own, centered.
  K <- gram_R(rbf, x)
  H <- diag(14) - 1 / 14
  squares <- (H %*% K %*% H)^2
  top <- eigen(squares, symmetric = TRUE)$values[1]
  weights <- suppressWarnings(
    kme(as_gram(squares), estimator = "stack")$weights
  )
  expect_near(fit$trace, sum(weights * diag(H %*% K %*% H)), 1e-6)
  expect_lt(abs(sum(weights)), 1)
})

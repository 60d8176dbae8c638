# What comes from a sketch, against the same from the n x n projected Gram
# matrix.

rbf <- kernel_rbf(1.1)
k <- \(x, y) gram_R(rbf, x, y)
x <- random_points(60, 2, 1)
z <- random_points(9, 2, 2)
w <- rep_len(c(1, 3, 0.4), 60)
# Landmarks apart from one another: C is as exact as its sums.
S <- as.matrix(expand.grid(-1:1, -1:1)) * 1.5
S <- unname(S)

estimates <- list(
  kme = list(\(s) sketch_kme_R(s), "kme"),
  skmse = list(\(s) sketch_skmse_R(s), "skmse"),
  plugin = list(\(s) sketch_skmse_R(s, "plugin"), "skmse", select = "plugin"),
  given = list(\(s) sketch_skmse_R(s, lambda = 0.3), "skmse", lambda = 0.3),
  fkmse = list(\(s) sketch_fkmse_R(s, 0.7), "fkmse", lambda = 0.7),
  light = list(\(s) sketch_fkmse_R(s, 1e-4), "fkmse", lambda = 1e-4)
)

test_that("estimates are those of the projected Gram matrix", {
  for (v in list(NULL, w)) {
    twin <- sketch_R(x, S, k, v)
    sketch <- kme_sketch(x, S, rbf, weights = v)
    for (estimate in estimates) {
      want <- estimate[[1L]](twin)
      fit <- do.call(kme, c(list(sketch, estimator = estimate[[2L]]),
                            estimate[-(1:2)]))
      expect_near(fit$weights, want$weights, 1e-8)
      expect_near(fit$norm2, want$norm2, 1e-9)
      expect_near(fit$lambda, want$lambda, 1e-9)
      expect_near(c(fit$rho, fit$varrho), c(twin$rho, twin$varrho), 1e-9)
      expect_near(unname(predict(fit, z)), drop(k(z, S) %*% want$weights), 1e-8)
      expect_near(unname(fit$fitted), drop(k(S, S) %*% want$weights), 1e-8)
      expect_near(kme_inner(fit, fit), want$norm2, 1e-8)
    }
  }
})

test_that("without second moments the trace is that of the kernel", {
  for (v in list(NULL, w)) {
    twin <- sketch_R(x, S, k, v, second = FALSE)
    sketch <- kme_sketch(x, S, rbf, weights = v, moments = 1)
    for (select in c("loocv", "plugin")) {
      fit <- kme(sketch, estimator = "skmse", select = select)
      want <- sketch_skmse_R(twin, select)
      expect_equal(fit$varrho, 1)
      expect_near(fit$lambda, want$lambda, 1e-9)
      expect_near(fit$weights, want$weights, 1e-8)
    }
    refused(kme(sketch, estimator = "fkmse", select = "gcv"))
  }
})

test_that("the scores of gcv and printed are those of all n rows", {
  # More rows than features, and fewer.
  for (n in c(60, 6)) {
    twin <- sketch_R(x[seq_len(n), ], S, k)
    sketch <- kme_sketch(x[seq_len(n), ], S, rbf)
    scores <- list(gcv = fkmse_gcv_R, printed = fkmse_printed_R)
    for (select in names(scores)) {
      fit <- kme(sketch, estimator = "fkmse", select = select)
      curve <- fit$score[fit$score$lambda > 1e-5, ]
      some <- curve[round(seq(1, nrow(curve), length.out = 12)), ]
      want <- vapply(some$lambda, scores[[select]], 1, K = twin$K)
      expect_near(some$score, want, 1e-8)
      # The one chosen is none worse than any of the grid.
      expect_lte(scores[[select]](twin$K, fit$lambda),
                 min(fit$score$score) + 1e-10)
      whole <- kme(as_gram(twin$K), estimator = "fkmse", select = select)
      expect_near(fit$lambda, whole$lambda, 1e-3)
      expect_near(fit$norm2, whole$norm2, 1e-6)
      expect_near(drop(twin$values %*% fit$weights), unname(whole$fitted), 1e-6)
      want <- sketch_fkmse_R(twin, fit$lambda)
      expect_near(fit$weights, want$weights, 1e-6)
    }
  }
})

test_that("rounding is not taken for eigenvalues where rows are few", {
  # Of 40 close landmarks W is large, and W'S2W has many small eigenvalues that
  # are rounding: more of them than rows.
  close <- matrix(seq(-2, 2, length.out = 40))
  smooth <- kernel_rbf(0.5)
  rows <- matrix(c(-1, 0.3, 0.31, 1.5))
  twin <- sketch_R(rows, close, \(x, y) gram_R(smooth, x, y))
  sketch <- kme_sketch(rows, close, smooth)
  for (select in c("gcv", "printed")) {
    fit <- kme(sketch, estimator = "fkmse", select = select)
    score <- if (select == "gcv") fkmse_gcv_R else fkmse_printed_R
    some <- fit$score[fit$score$lambda > 1e-4, ]
    some <- some[round(seq(1, nrow(some), length.out = 8)), ]
    expect_near(some$score, vapply(some$lambda, score, 1, K = twin$K), 1e-5)
  }
})

test_that("the edges of shrinkage are the mean and nothing", {
  sketch <- kme_sketch(x, S, rbf)
  plain <- kme(sketch)
  for (estimator in c("skmse", "fkmse")) {
    expect_near(kme(sketch, estimator = estimator, lambda = 0)$weights,
                plain$weights, 1e-9)
    expect_equal(kme(sketch, estimator = estimator, lambda = Inf)$weights,
                 0 * plain$weights)
  }
  # Rows that coincide need no shrinkage.
  alike <- kme_sketch(x[rep(2, 5), ], x[1:3, ], rbf)
  expect_near(kme(alike, estimator = "skmse")$alpha, 0, 1e-6)
  one <- kme_sketch(x[2, , drop = FALSE], x[1:3, ], rbf)
  refused(kme(one, estimator = "skmse"))
  # A mean of zero.
  both <- kme_sketch(rbind(x, -x), diag(2), kernel_linear())
  expect_equal(kme(both, estimator = "skmse")$alpha, 1)
  expect_near(max(abs(kme(both, estimator = "fkmse", select = "gcv")$weights)),
              0, 1e-10)
})

test_that("with all distinct rows as landmarks nothing is lost", {
  rows <- x[rep(1:12, 5), ]
  far <- kernel_rbf(0.4)
  sketch <- kme_sketch(rows, x[1:12, ], far)
  pairs <- list(list("kme"), list("skmse"), list("skmse", select = "plugin"),
                list("fkmse", lambda = 0.4),
                list("fkmse", select = "gcv"),
                list("fkmse", select = "printed"))
  for (pair in pairs) {
    arguments <- c(list(estimator = pair[[1L]]), pair[-1L])
    fit <- do.call(kme, c(list(sketch), arguments))
    want <- do.call(kme, c(list(rows, far), arguments))
    expect_near(fit$lambda, want$lambda, 1e-4)
    for (field in c("rho", "varrho", "norm2")) {
      expect_near(fit[[field]], want[[field]], 1e-7)
    }
    expect_near(unname(predict(fit, z)), unname(predict(want, z)), 1e-6)
    expect_lt(kme_distance(fit, want), 1e-6)
  }
})

test_that("the moments are those of the features", {
  for (v in list(NULL, w)) {
    twin <- sketch_R(x, S, k, v)
    sketch <- kme_sketch(x, S, rbf, weights = v, moments = 4)
    root <- sketch$landmarks[[1L]]$root
    sample <- sketch_sample(sketch)
    # The root is determined up to a rotation.
    turn <- crossprod(twin$root, k(S, S) %*% root)
    expect_near(crossprod(turn), diag(9), 1e-9)
    moments <- sample$moments
    expect_near(moments$mean, drop(twin$mu %*% turn), 1e-9)
    expect_near(moments$covariance, t(turn) %*% twin$C %*% turn, 1e-9)
    expect_near(moments$along, drop(twin$along %*% turn), 1e-8)
    for (field in c("trace", "rho", "varrho", "square")) {
      expect_near(moments[[field]], twin[[field]], 1e-8)
    }
    expect_near(moments$lost, twin$lost, 1e-9)
    expect_gt(moments$lost, 0.01)
    expect_near(sample$size, twin$size, 1e-13)
    expect_equal(sample$n, 60)
    # The sums that a ridge by shrinkage needs.
    if (is.null(v)) {
      K <- twin$K
      centered <- K - outer(rowMeans(K), colMeans(K), `+`) + mean(K)
      expect_equal(
        60 * (moments$square - 4 * sum(moments$along * moments$mean) +
                4 * sum(moments$mean * (moments$covariance %*% moments$mean)) +
                2 * moments$rho * moments$varrho - 3 * moments$rho^2),
        sum(diag(centered)^2), tolerance = 1e-8
      )
    }
  }
})

test_that("the samples of groups are the sketches of their rows", {
  g <- rep_len(c("u", "v", "v"), 60)
  sketch <- kme_sketch(x, S, rbf, groups = g, moments = 2)
  samples <- group_samples(sketch)
  expect_setequal(names(samples), c("u", "v"))
  for (group in names(samples)) {
    alone <- sketch_sample(kme_sketch(x[g == group, ], S, rbf))
    expect_near(samples[[group]]$moments, alone$moments, 1e-9)
    at <- match(group, sketch$groups)
    expect_near(sketch_sample(sketch, group = at)$moments, alone$moments, 1e-9)
    expect_equal(samples[[group]]$n, sum(g == group))
  }
})

test_that("rows far from all landmarks are warned of", {
  sketch <- kme_sketch(x + 3, S, rbf)
  expect_warning(kme(sketch), "loses .*% of mean",
                 class = "kernmean_warning_projection")
  # Without second moments nothing is known.
  expect_silent(kme(kme_sketch(x + 3, S, rbf, moments = 1)))
  expect_silent(kme(kme_sketch(x, S, rbf)))
})

test_that("landmarks that lie close do not spoil the loss", {
  # 30 landmarks of a smooth kernel: 1e-10 of the largest eigenvalue.
  smooth <- kernel_rbf(3)
  rows <- random_points(400, 2, 5)
  sketch <- kme_sketch(rows, rows[1:60, ], smooth)
  lost <- sketch_sample(sketch)$moments$lost
  twin <- sketch_R(rows, rows[1:60, ], \(x, y) gram_R(smooth, x, y))
  expect_lt(abs(lost - twin$lost), 1e-6)
  expect_gt(lost, -1e-7)
  expect_near(kme(sketch)$rho, twin$rho, 1e-7)
})

test_that("a sketch's fit goes with ordinary fits of its kernel", {
  sketch <- kme_sketch(x, S, rbf)
  twin <- sketch_R(x, S, k)
  y <- random_points(25, 2, 3)
  other <- kme(y, rbf)
  fit <- kme(sketch, estimator = "skmse")
  b <- fit$weights
  inner <- sum(b * rowMeans(k(S, y)))
  expect_near(c(kme_inner(fit, other), kme_inner(other, fit)),
              c(inner, inner), 1e-10)
  distance <- sqrt(sum(b * (k(S, S) %*% b)) - 2 * inner + mean(k(y, y)))
  all <- kme_distance(list(fit, other, fit))
  expect_near(unname(all[1, ]), c(0, distance, 0), 1e-7)
  # Against a mixture as weights on S.
  mixture <- list(weights = 1, means = matrix(c(0.2, -0.1), 1),
                  covariances = array(diag(2), c(2, 2, 1)))
  expect_near(kme_risk(fit, mixture),
              kme_risk(kme(S, rbf, weights = b), mixture), 1e-10)
  # Of two sketches of the same landmarks.
  theirs <- sketch_R(y, S, k)
  expect_near(kme_distance(kme(sketch), kme(kme_sketch(y, S, rbf)))^2,
              sum((twin$mu - colMeans(theirs$values %*% twin$root))^2), 1e-9)
  refused(kme_distance(kme(sketch), kme(y, kernel_rbf(2))))
  # The mean of the projections is the projection of the mean.
  expect_near(kme_distance(kme(sketch), kme(x, rbf))^2,
              mean(k(x, x)) - twin$rho, 1e-9)
  expect_near(b, unname(c(as_weights(fit))), 1e-9)
})

test_that("a target is shrunk to as on the projected rows", {
  sketch <- kme_sketch(x, S, rbf)
  twin <- sketch_R(x, S, k)
  y <- random_points(25, 2, 3)
  target <- kme(y, rbf)
  f <- rowMeans(k(S, y))
  cross <- sum(twin$root %*% twin$mu * f)
  distance2 <- mean(k(y, y)) - 2 * cross + twin$rho
  excess <- twin$varrho - twin$rho
  alpha <- 60 * excess / (59^2 * distance2 + excess)
  fit <- kme(sketch, estimator = "skmse", target = target)
  expect_near(fit$alpha, alpha, 1e-9)
  expect_equal(fit$norm2, (1 - alpha)^2 * twin$rho +
                 2 * alpha * (1 - alpha) * cross + alpha^2 * mean(k(y, y)),
               tolerance = 1e-9)
  # Another sketch's mean.
  near <- kme(kme_sketch(y, S, rbf))
  fit <- kme(sketch, estimator = "skmse", target = near)
  theirs <- colMeans(k(y, S)) %*% twin$root
  distance2 <- sum((theirs - twin$mu)^2)
  expect_near(fit$alpha, 60 * excess / (59^2 * distance2 + excess), 1e-9)
})

test_that("estimates that take the rows are refused with the reason", {
  sketch <- kme_sketch(x, S, rbf)
  for (call in list(quote(kme(sketch, estimator = "fkmse")),
                    quote(kme(sketch, estimator = "fkmse", lambda = 1,
                              target = kme(z, rbf))),
                    quote(kme(sketch, estimator = "smooth")),
                    quote(kme(sketch, estimator = "stack")),
                    quote(kme(sketch, estimator = est_function(
                      \(sample) rep(1 / sample$n, sample$n)))))) {
    expect_error(eval(call), "sketch", class = "kernmean_error_input")
  }
  refused(kme(sketch, scale = TRUE))
  refused(kme(sketch, weights = rep(1 / 60, 60)))
})

test_that("no routine takes landmarks for rows", {
  sketch <- kme_sketch(x, S, rbf, groups = rep_len(1:2, 60))
  sample <- sketch_sample(sketch)
  for (verb in list(sample_matrix, sample_gram, sample_rows,
                    sample_diagonal, as.matrix,
                    \(s) sample_take(s, 1:3), \(s) sample_apply(s, 1:60))) {
    expect_error(verb(sample), "a sketch keeps sums",
                 class = "kernmean_error_input")
  }
})


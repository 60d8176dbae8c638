# Selection scores: closed forms against brute-force refits and matrices.

gram_cases <- function() {
  x <- random_points(12, 2)
  list(
    rbf = rbf_gram(12), rbf_25 = rbf_gram(25, 3, theta = 2),
    narrow = rbf_gram(10, 2, theta = 0.05),
    poly3 = (tcrossprod(x) + 1)^3, linear = tcrossprod(x),
    centered = tcrossprod(scale(x, scale = FALSE)),
    duplicates = rbf_gram(6)[rep(1:6, 2), rep(1:6, 2)],
    equal = matrix(1, 5, 5), identity = diag(4), n2 = rbf_gram(2),
    n3 = rbf_gram(3)
  )
}

# Shrinkage from a thousandth to a thousand times the largest eigenvalue.
path_for <- function(k) {
  max(eigen(k, symmetric = TRUE, only.values = TRUE)$values) *
    10^seq(-3, 3, length.out = 7)
}

score_at <- function(k, select, lambda, target = NULL) {
  score_function(as_gram(k), select, target)(lambda)
}

# A target on the same points: weights, its values and squared norm.
target_on <- function(k) {
  set.seed(nrow(k))
  w <- stats::rnorm(nrow(k))
  list(at = drop(k %*% w), norm2 = sum(w * (k %*% w)))
}

test_that("scores are those of refits, and of their matrix forms", {
  cases <- gram_cases()
  twins <- list(loocv = fkmse_loocv_R, gcv = fkmse_gcv_R,
                printed = fkmse_printed_R)
  for (name in names(cases)) {
    k <- cases[[name]]
    lambda <- path_for(k)
    for (select in names(twins)) {
      want <- vapply(lambda, \(l) twins[[select]](k, l), numeric(1))
      # Relative to the trace: condition 1e3 in the refits; seen 3e-14.
      expect_lte(max(abs(score_at(k, select, lambda) - want)),
                 (if (select == "gcv") 1e-11 else 1e-12) * max(diag(k)),
                 label = paste(name, select))
    }
    target <- target_on(k)
    want <- vapply(lambda, \(l) {
      fkmse_loocv_R(k, l, target$at, target$norm2)
    }, numeric(1))
    expect_lte(max(abs(score_at(k, "loocv", lambda, target) - want)),
               1e-11 * (max(diag(k)) + target$norm2), label = name)
  }
})

test_that("the score is that of fits of kme() without the point", {
  x <- random_points(9, 2)
  z <- random_points(4, 2)
  kernel <- kernel_rbf(1.5)
  target <- kme(z, kernel, weights = c(0.4, -0.2, 0.5, 0.1))
  lambda <- c(0.01, 0.3, 5)
  score <- score_function(gram(x, kernel), "loocv",
                          list(at = predict(target, x), norm2 = target$norm2))
  errors <- vapply(lambda, function(l) {
    mean(vapply(1:9, function(i) {
      rest <- kme(x[-i, ], kernel, "fkmse", lambda = l, target = target)
      kme_distance(rest, kme(x[i, , drop = FALSE], kernel))^2
    }, numeric(1)))
  }, numeric(1))
  expect_near(score(lambda), errors, 1e-11)
})

test_that("the score at small lambda stays that of the KME", {
  # lambda A_ii and 1/A_ii cancel; at 1e-12 of the largest eigenvalue the score
  # still is the limit to the root of that.
  for (k in gram_cases()[c("rbf", "linear", "duplicates", "narrow")]) {
    top <- max(eigen(k, symmetric = TRUE, only.values = TRUE)$values)
    kme_score <- loo_R(k, \(k, f) rep(1 / nrow(k), nrow(k)))
    got <- score_at(k, "loocv", 1e-10 * top)
    expect_true(is.finite(got))
    expect_lte(abs(got - kme_score), 1e-4 * max(diag(k)))
    # At very large lambda the estimate is 0.
    expect_near(score_at(k, "loocv", 1e12 * top), mean(diag(k)), 1e-9)
  }
})

test_that("so for every level of instructions, in sizes around a block's", {
  skip_on_cran()
  for (level in isa_levels()) {
    with_isa(level, for (n in c(2, 7, 8, 9, 16, 17, 33)) {
      k <- rbf_gram(n, 2)
      target <- target_on(k)
      for (count in c(1, 2, 3, 5, 8)) {
        lambda <- 10^seq(-2, 1, length.out = count)
        want <- vapply(lambda, \(l) {
          fkmse_loocv_R(k, l, target$at, target$norm2)
        }, numeric(1))
        expect_near(score_at(k, "loocv", lambda, target), want, 1e-11)
      }
    })
  }
})

test_that("the generalized score is the exact one where A_ii are all equal", {
  for (k in list(diag(4), stats::toeplitz(c(4, 1, 0.5, 0.2, 0.5, 1)),
                 matrix(1, 5, 5), rbf_gram(2))) {
    lambda <- path_for(k)
    expect_near(score_at(k, "gcv", lambda), score_at(k, "loocv", lambda), 1e-11)
  }
})

test_that("erratum 1: the printed score is not the leave-one-out score", {
  k <- rbf_gram(20, 2)
  brute_force <- fkmse_loocv_R(k, 1)
  expect_near(score_at(k, "loocv", 1), brute_force, 1e-12)
  # The point left out stays in the expansion, so its error looks smaller:
  # 0.6369 for 0.6531.
  expect_near(score_at(k, "printed", 1), 0.6369, 1e-4)
  expect_near(brute_force, 0.6531, 1e-4)
})

test_that("erratum 4: F-KMSE weights can be negative or exceed 1/n", {
  x <- cbind(c(0, 0.1, 0.2, 1))
  w <- kme(x, kernel_rbf(1), "fkmse", lambda = 1e-3)$weights
  expect_gt(max(w), 1 / 4)
  # K = xx', |x|^2 = 4, mean 1/2: beta = x (1/2)/(4 + 1).
  x <- c(-1, 1, 1, 1)
  w <- kme(x, kernel_linear(), "fkmse", lambda = 1)$weights
  expect_near(w, x / 10, 1e-13)
})

test_that("the selected lambda is the smallest score of the whole range", {
  kernels <- list(kernel_rbf(), kernel_rbf(0.2), kernel_poly(2),
                  kernel_laplace())
  for (kernel in kernels) {
    g <- gram(random_points(30, 2), kernel)
    top <- gram_spectrum(g)$values[1]
    fine <- exp(seq(log(1e-10 * top), log(1e4 * top), length.out = 2001))
    for (select in c("loocv", "gcv", "printed")) {
      fit <- kme(g, estimator = "fkmse", select = select)
      score <- score_function(g, select, NULL)
      expect_lte(fit$minimum, min(score(fine)) * (1 + 1e-12))
      expect_near(score(fit$lambda), fit$minimum, 1e-12)
      expect_near(fit$score$score, score(fit$score$lambda), 0)
      expect_near(range(fit$score$lambda), c(1e-10, 1e4) * top, 1e-10)
    }
  }
})

# --- S-KMSE ------------------------------------------------------------------

# Leave-one-out score of alpha f + (1 - alpha) mu^ by refits.
skmse_loo_R <- function(k, alpha, f = numeric(nrow(k)), f_norm2 = 0) {
  shrunk <- \(k, f) rep((1 - alpha) / nrow(k), nrow(k))
  loo_R(k, shrunk, f, f_norm2, share = alpha)
}

test_that("the S-KMSE score curve is that of brute-force refits", {
  cases <- gram_cases()
  for (name in names(cases)) {
    k <- cases[[name]]
    target <- target_on(k)
    rho <- mean(k)
    varrho <- mean(diag(k))
    for (alpha in c(0, 0.2, 0.7, 1)) {
      expect_equal(loo_score(alpha, nrow(k), rho, varrho, 0, 0),
                   skmse_loo_R(k, alpha), tolerance = 1e-11, info = name)
      expect_equal(
        loo_score(alpha, nrow(k), rho, varrho, mean(target$at),
                    target$norm2),
        skmse_loo_R(k, alpha, target$at, target$norm2), tolerance = 1e-11,
        info = name
      )
    }
  }
})

test_that("the fit's curve is the brute-force score at its lambdas", {
  x <- random_points(8, 2)
  k <- gram_R(kernel_rbf(1), x)
  fit <- kme(x, kernel_rbf(1), "skmse")
  shown <- fit$score[c(1, 30, 61), ]
  alpha <- shown$lambda / (1 + shown$lambda)
  expect_near(shown$score,
              vapply(alpha, \(a) skmse_loo_R(k, a), numeric(1)), 1e-12)
})

test_that("the closed-form alpha minimizes the brute-force score", {
  x <- random_points(9, 2)
  z <- random_points(6, 2)
  for (kernel in list(kernel_rbf(1), kernel_laplace(1), kernel_poly(2))) {
    k <- gram_R(kernel, x)
    for (target in list(NULL, kme(z, kernel), kme(z + 1, kernel, "skmse"))) {
      fit <- kme(x, kernel, "skmse", target = target)
      f <- if (is.null(target)) numeric(9) else predict(target, x)
      f_norm2 <- if (is.null(target)) 0 else target$norm2
      score <- \(alpha) skmse_loo_R(k, alpha, f, f_norm2)
      expect_near(fit$minimum, score(fit$alpha), 1e-11)
      expect_gt(fit$alpha, 0)
      # A parabola in alpha: its minimizer from three values.
      s <- c(score(0), score(0.5), score(1))
      best <- 0.5 + 0.25 * (s[1] - s[3]) / (s[1] - 2 * s[2] + s[3])
      expect_near(fit$alpha, min(1, best), 1e-9)
    }
  }
})

test_that("the plug-in alpha is the empirical bound's, in [0, 1]", {
  cases <- gram_cases()
  for (name in names(cases)) {
    g <- as_gram(cases[[name]])
    fit <- kme(g, estimator = "skmse", select = "plugin")
    expect_gte(fit$alpha, 0)
    expect_lte(fit$alpha, 1)
    if (name != "centered") {
      expect_equal(fit$alpha, max(0, skmse_alpha_R(g$K, "plugin")),
                   tolerance = 1e-11, info = name)
    }
    expect_null(fit$score)
  }
})

test_that("a border of the range searched is reported, an inner optimum not", {
  x <- random_points(30, 2)
  centered <- scale(x, scale = FALSE)
  fit <- kme(centered, kernel_linear(), "fkmse")
  expect_true(fit$border)
  expect_output(print(fit), "on the border of the range searched: nearly the t")
  expect_false(kme(x, kernel_rbf(1), "fkmse")$border)
  clamped <- kme(centered, kernel_linear(), "skmse")
  expect_true(clamped$border)
  expect_identical(clamped$alpha, 1)
  expect_output(print(clamped), "to 1: the estimate is the target")
  expect_false(kme(x, kernel_rbf(1), "skmse")$border)
  expect_false(kme(x, kernel_rbf(1), "skmse", lambda = Inf)$border)
})

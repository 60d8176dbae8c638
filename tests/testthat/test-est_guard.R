# The guard: left-out gains by refits, its limits, and the doors.

rbf <- kernel_rbf(1.3)

# list(share, gain, error) from fits anew without each fold, `settle` having
# what was chosen from all points; all written out.
guard_R <- function(x, kernel, settled, fold = seq_len(nrow(x))) {
  inner <- \(a, b) kme_inner(a, b)
  gains <- apart <- numeric(nrow(x))
  for (f in unique(fold)) {
    kept <- x[fold != f, , drop = FALSE]
    out <- x[fold == f, , drop = FALSE]
    plain <- kme(kept, kernel, scale = FALSE)
    other <- kme(kept, kernel, settled, scale = FALSE)
    loss <- \(fit) inner(fit, fit) - 2 * predict(fit, out)
    gains[fold == f] <- loss(plain) - loss(other)
    apart[fold == f] <- kme_distance(plain, other)^2
  }
  n <- length(gains)
  mean_gain <- sum(gains) / n
  error <- \(g) sqrt(sum((g - sum(g) / n)^2) / (n - 1) / n)
  t <- if (mean_gain <= 0) 0 else mean_gain^2 / (mean_gain^2 + error(gains)^2)
  kept <- t * gains + t * (1 - t) * apart
  list(share = t, gain = sum(kept) / n, error = error(kept))
}

# The same estimate with a guard and without, and the mixture by hand.
expect_guarded <- function(x, kernel, make, settled_of,
                           fold = seq_len(nrow(x))) {
  bare <- kme(x, kernel, make(guard = FALSE), scale = FALSE)
  fit <- kme(x, kernel, make(guard = TRUE), scale = FALSE)
  want <- guard_R(x, kernel, settled_of(bare), fold)
  expect_null(bare$guard)
  # Gains are differences of numbers about 1.
  for (name in names(want)) expect_near(fit$guard[[name]], want[[name]], 1e-9)
  plain <- kme(x, kernel, scale = FALSE)
  z <- rbind(x[1:2, , drop = FALSE], x[3, ] + 1)
  t <- want$share
  expect_near(unname(predict(fit, z)),
              unname((1 - t) * predict(plain, z) + t * predict(bare, z)), 1e-9)
  expect_near(unname(fit$fitted), unname(predict(fit, x)), 1e-9)
  expect_near(fit$norm2, (1 - t)^2 * plain$norm2 + t^2 * bare$norm2 +
                2 * t * (1 - t) * kme_inner(plain, bare), 1e-9)
  expect_near(fit$weights, (1 - t) / nrow(x) + t * bare$weights, 1e-9)
  n <- nrow(x)
  risk <- (fit$varrho - fit$rho) * n / (n - 1) *
    mean(1 / vapply(fold, \(f) sum(fold != f), 1))
  least <- want$gain - max(want$error, want$gain / sqrt(n))
  expect_near(fit$guard$saved,
              if (least <= 0 || least > risk) 0 else least / risk, 1e-7)
}

test_that("the guard is that of refits by fold", {
  set.seed(1)
  few <- matrix(stats::rnorm(28), 14)
  candidates <- list(est_smooth(0.4, 1), est_fkmse(lambda = 0.3))
  of_stack <- \(fit) est_stack(candidates, fit$candidates$share)
  expect_guarded(few, rbf, \(guard) est_stack(candidates, guard = guard),
                 of_stack)
  # 70 points are left out in 4 folds of 17 and 18.
  many <- matrix(stats::rnorm(140, sd = 2), 70)
  fold <- rep_len(1:4, 70)
  expect_guarded(many, rbf, \(guard) {
    est_stack(candidates, folds = 4, guard = guard)
  }, of_stack, fold)
  expect_guarded(many, rbf, \(guard) est_smooth(folds = 4, guard = guard),
                 \(fit) est_smooth(fit$h, fit$c), fold)
})

test_that("the papers' estimators have a guard where it is asked for", {
  set.seed(2)
  x <- matrix(stats::rnorm(26), 13)
  expect_guarded(x, rbf, est_skmse, \(fit) est_skmse(fit$lambda))
  expect_guarded(x, rbf, est_fkmse, \(fit) est_fkmse(fit$lambda))
  expect_guarded(x, rbf, est_mkme, \(fit) est_mkme(fit$noise))
  expect_guarded(x, rbf, est_mmkme, \(fit) est_mmkme(fit$noise))
  expect_guarded(x, kernel_poly(2), est_mkme, \(fit) est_mkme(fit$noise))
  # And none by default.
  for (name in c("skmse", "fkmse", "mkme", "mmkme")) {
    expect_null(kme(x, rbf, name)$guard)
  }
  # A target is no matter.
  target <- kme(matrix(stats::rnorm(10), 5), rbf)
  bare <- kme(x, rbf, est_skmse(target = target))
  fit <- kme(x, rbf, est_skmse(target = target, guard = TRUE))
  t <- guard_R(x, rbf, est_skmse(bare$lambda, target = target))$share
  expect_near(fit$guard$share, t, 1e-9)
  expect_near(predict(fit, x), (1 - t) * predict(kme(x, rbf), x) +
                t * predict(bare, x), 1e-9)
})

test_that("where all gains are alike nothing is given back", {
  # The corners of a triangle of equal sides.
  angle <- 2 * pi * 1:3 / 3
  x <- cbind(cos(angle), sin(angle))
  for (estimator in list(est_smooth(), est_stack(), est_skmse(guard = TRUE))) {
    fit <- kme(x, rbf, estimator, scale = FALSE)
    expect_near(fit$guard$share, 1, 1e-12)
    expect_lt(fit$guard$error, 1e-12)
  }
})

test_that("where no gain is seen the estimate is the average", {
  x <- c(rep(0, 6), rep(5, 6), rep(10, 6))
  fit <- kme(x, kernel_rbf(2), est_stack(list(est_smooth(1, 1))))
  plain <- kme(x, kernel_rbf(2))
  bare <- kme(x, kernel_rbf(2), est_stack(list(est_smooth(1, 1)),
                                          guard = FALSE))
  gained <- guard_R(cbind(x), kernel_rbf(2),
                    est_stack(list(est_smooth(1, 1)), bare$candidates$share))
  expect_identical(gained$share, 0)
  expect_identical(fit$guard$share, 0)
  expect_identical(fit$guard$saved, 0)
  expect_identical(fit$candidates$share, c(0, 1))
  expect_equal(predict(fit, 0:10), predict(plain, 0:10), tolerance = 1e-14)
  expect_output(print(fit), "guard: no gain is seen, the estimate is the KME")
})

test_that("what is promised is not more than what is saved", {
  skip_on_cran()
  set.seed(9)
  law <- list(weights = 1, means = matrix(0, 1, 2), covariances = diag(2))
  for (case in list(list(8, NULL), list(30, 3))) {
    values <- replicate(200, {
      x <- matrix(stats::rnorm(2 * case[[1]]), ncol = 2)
      fit <- kme(x, rbf, est_smooth(folds = case[[2]]), scale = FALSE)
      c(kme_risk(kme(x, rbf, scale = FALSE), law), kme_risk(fit, law),
        fit$guard$saved)
    })
    saved <- 1 - mean(values[2, ]) / mean(values[1, ])
    error <- stats::sd(values[3, ]) / sqrt(200) +
      stats::sd(values[2, ] - values[1, ]) / sqrt(200) / mean(values[1, ])
    expect_lt(mean(values[3, ]), saved + 2 * error)
  }
})

test_that("of two points no gain can be seen", {
  fit <- kme(matrix(c(0, 1, 0.5, 2), 2), rbf, "smooth", scale = FALSE)
  expect_identical(fit$guard$share, 0)
})

test_that("a candidate may be called KME and be another", {
  set.seed(10)
  x <- matrix(stats::rnorm(20), 10)
  for (more in list(NULL, list(est_smooth(0.4, 1)))) {
    candidates <- c(list(KME = est_skmse(0.1)), more)
    named <- kme(x, rbf, est_stack(candidates))
    plain <- kme(x, rbf, est_stack(unname(candidates)))
    expect_identical(named$weights, plain$weights)
    expect_false(anyDuplicated(named$candidates$candidate) > 0)
  }
})

test_that("operators have a guard, too", {
  set.seed(11)
  x <- matrix(stats::rnorm(24), 12)
  plain <- kme_cov(x, kernel_x = rbf, estimator = est_fkmse())
  fit <- kme_cov(x, kernel_x = rbf, estimator = est_fkmse(guard = TRUE))
  t <- fit$guard$share
  expect_gt(t, 0)
  expect_near(fit$weights, (1 - t) / 12 + t * plain$weights, 1e-10)
  expect_output(print(fit), "guard: ")
  expect_output(print(kme_pca(x, rbf, 2, covariance = est_skmse(guard = TRUE))),
                "guard: ")
})

test_that("the order of up to 60 points is no matter", {
  set.seed(3)
  x <- cbind(stats::rpois(40, 1), stats::rnorm(40))
  turned <- sample.int(40)
  for (estimator in list(est_smooth(), est_stack(), est_stack(folds = Inf))) {
    a <- kme(x, rbf, estimator, scale = FALSE)
    b <- kme(x[turned, ], rbf, estimator, scale = FALSE)
    expect_near(unlist(b$guard), unlist(a$guard), 1e-10)
    expect_lt(kme_distance(a, b), 1e-7)
  }
})

test_that("every door takes the guarded estimate", {
  set.seed(4)
  x <- matrix(stats::rnorm(36), 18)
  y <- matrix(stats::rnorm(36), 18) + x
  for (estimator in list(est_stack(), est_smooth(), est_skmse(guard = TRUE),
                         est_fkmse(guard = TRUE), est_mmkme(guard = TRUE))) {
    fit <- kme(x, rbf, estimator)
    a <- kme_pca(x, rbf, 2, center = estimator)
    expect_near(a$values, kme_pca(x, rbf, 2, center = fit)$values, 1e-9)
    bags <- list(x[1:7, ], x[8:18, ])
    one <- lapply(bags, kme, rbf, estimator)
    expect_near(unname(bag_gram(bags, rbf, estimator)$inner[1, 2]),
                kme_inner(one[[1]], one[[2]]), 1e-9)
    # One stack of all points, with its shares given, for both samples.
    pooled <- kme(x, rbf, estimator)
    amounts <- pooled[c("lambda", "noise", "h", "c")]
    name <- estimator$name
    other <- if (name == "stack") pooled$settled else {
      make <- get(paste0("est_", name))
      known <- intersect(names(formals(make)), names(Filter(length, amounts)))
      est_stack(list(est_kme(), do.call(make, amounts[known])),
                c(1 - pooled$guard$share, pooled$guard$share))
    }
    settled <- lapply(list(x[1:9, ], x[10:18, ]), kme, rbf, other)
    test <- mmd_test(x[1:9, ], x[10:18, ], rbf, estimator, B = 19,
                     control = test_control(statistic = "biased"))
    expect_near(unname(test$statistic),
                kme_distance(settled[[1]], settled[[2]])^2, 1e-8)
    # Of dependence other than without a guard.
    bare <- estimator
    bare$guard <- FALSE
    class(bare) <- setdiff(class(bare), "est_guarded")
    statistic <- \(e) unname(hsic_test(x, y, rbf, rbf, e, B = 19)$statistic)
    expect_gt(abs(statistic(estimator) - statistic(bare)), 0)
  }
})

test_that("in a test of independence noise is less by the guard", {
  set.seed(5)
  x <- matrix(stats::rnorm(24), 12)
  y <- x[, 1] + stats::rnorm(12)
  fits <- list(kme(x, rbf, "smooth"), kme(y, rbf, "smooth"))
  test <- hsic_test(x, y, rbf, rbf, "smooth", B = 19)
  expect_near(unname(test$smoothing),
              vapply(fits, \(f) min(0.9, f$guard$share * f$h), 1), 1e-9)
})

test_that("what has a guard says so", {
  skip_if_not_installed("generics")
  refused(est_smooth(guard = NA), "'guard' must be TRUE or FALSE")
  refused(est_stack(guard = 1), "'guard' must be TRUE or FALSE")
  set.seed(6)
  x <- matrix(stats::rnorm(40), 20)
  sketch <- kme_sketch(x, kme_landmarks(x, m = 10, kernel = rbf))
  refused(kme(sketch, estimator = est_skmse(guard = TRUE)), "estimator")
  fit <- kme(x, rbf, "smooth")
  expect_null(update(fit, h = 0.3, c = 1)$guard)
  expect_null(update(fit, guard = FALSE)$guard)
  row <- generics::glance(fit)
  expect_identical(row$guard, fit$guard$share)
  expect_identical(row$saved, fit$guard$saved)
})

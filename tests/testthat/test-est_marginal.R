# MKME and MMKME: scores, selection, their embeddings, weights on the points.

rbf <- kernel_rbf(1.3)
marginal_kernels <- function() {
  list(rbf = rbf, rbf_each = kernel_rbf(c(0.8, 2)), linear = kernel_linear(),
       poly1 = kernel_poly(1, 0.5), poly2 = kernel_poly(2),
       poly3 = kernel_poly(3), poly3_offset = kernel_poly(3, 0.2))
}

# The estimate as what it is: the embedding of n normal distributions.
as_mixture <- function(fit) {
  n <- fit$n
  e <- rep_len(fit$noise, ncol(fit$sample$x))
  list(weights = fit$weights, means = unname(fit$sample$x),
       covariances = array(diag(e, length(e)), c(length(e), length(e), n)))
}

# --- Reference values --------------------------------------------------------

test_that("scores, gradients and minima are the reference values", {
  for (data in c("A", "D")) {
    x <- reference_data(data)
    theta2 <- reference_value(data, "theta2_median")
    kernel <- kernel_rbf(sqrt(theta2))
    score <- marginal_score(x, kernel)
    for (s in c("0.01", "0.1", "1")) {
      expect_near(score$at(rep(as.double(s) * theta2, 3))$value,
                  reference_value(data, paste0("mkme_loocv_s", s)), 1e-9)
    }
    e <- theta2 * c(0.05, 0.2, 0.8)
    found <- score$at(e, TRUE)
    expect_near(found$value, reference_value(data, "mmkme_loocv_e"), 1e-9)
    expect_near(e * found$gradient,
                reference_value(data, "mmkme_gradient_log_e"), 1e-9)
    expect_near(kme(x, kernel, "mkme")$minimum,
                reference_value(data, "mkme_loocv_min"), 1e-9)
  }
  x <- reference_data("A")
  expect_lte(kme(x, reference_kernel("A_rbf"), "mmkme")$minimum,
             reference_value("A", "mmkme_loocv_min") + 1e-9)
})

test_that("embeddings, norms and the risk are the reference values", {
  z <- reference_data("newdata")
  for (data in c("A", "D")) {
    x <- reference_data(data)
    theta2 <- reference_value(data, "theta2_median")
    e <- theta2 * c(0.05, 0.2, 0.8)
    fit <- kme(x, kernel_rbf(sqrt(theta2)), "mmkme", noise = e)
    expect_near(predict(fit, z), reference_value(data, "mmkme_predict_e"), 1e-9)
    expect_near(fit$norm2, reference_value(data, "mmkme_norm2_e"), 1e-9)
    if (data == "A") {
      mixture <- list(
        weights = reference_value("mixture", "pi"),
        means = matrix(reference_value("mixture", "means"), 2, byrow = TRUE),
        covariances = array(reference_value("mixture", "covs"), c(3, 3, 2))
      )
      expect_near(kme_risk(fit, mixture),
                  reference_value("A_rbf", "risk_mmkme_e"), 1e-9)
    }
  }
})

test_that("linear forms are the reference values", {
  x <- reference_data("A")
  z <- reference_data("newdata")
  fit <- kme(x, reference_kernel("A_rbf"), "mkme",
             noise = reference_value("A_linear_forms", "mkme_sigma2"))
  for (type in c("projection", "taylor")) {
    linear <- kme(x, fit$kernel, weights = as_weights(fit, type))
    expect_equal(
      predict(linear, z),
      reference_value("A_linear_forms", paste0(type, "_predict_newdata")),
      tolerance = 1e-9
    )
  }
})

# --- The score ---------------------------------------------------------------

test_that("the score is that of fits without each point in turn", {
  skip_on_cran()
  for (n in c(2, 3, 7)) {
    x <- random_points(n, 2) + 0.4
    for (kernel in marginal_kernels()) {
      score <- marginal_score(x, kernel)
      for (e in list(c(0, 0), c(0.3, 0.3), c(0, 2), c(5, 0.01))) {
        want <- marginal_loocv_R(kernel, x, e)
        expect_near(score$at(e)$value, want, 1e-12)
        expect_near(score$at(e, TRUE)$value, want, 1e-12)
      }
    }
  }
})

test_that("gradients are central differences", {
  x <- random_points(12, 2) + 0.4
  h <- 1e-5
  for (kernel in marginal_kernels()) {
    score <- marginal_score(x, kernel)
    for (e in list(c(0.3, 0.3), c(1, 0.05), c(4, 9))) {
      want <- vapply(1:2, \(l) {
        step <- h * (1:2 == l)
        (score$at(e + step)$value - score$at(e - step)$value) / (2 * h)
      }, numeric(1))
      # Largest difference seen 3e-10 on values of 1 to 100.
      expect_near(score$at(e, TRUE)$gradient, want, 1e-7)
    }
  }
})

# --- Selection ---------------------------------------------------------------

test_that("MKME is the smallest score along one variance", {
  for (seed in 1:4) {
    x <- random_points(15, 2, seed)
    for (kernel in list(rbf, kernel_rbf(c(0.8, 2)), kernel_poly(3))) {
      fit <- kme(x + 0.5, kernel, "mkme")
      score <- marginal_score(x + 0.5, kernel)
      path <- c(0, score$scale * exp(seq(-15, 8, length.out = 300)))
      values <- vapply(path, \(s) score$at(c(s, s))$value, numeric(1))
      expect_lte(fit$minimum, min(values) * (1 + 1e-12))
      expect_near(fit$minimum, score$at(rep(fit$noise, 2))$value, 1e-13)
      expect_near(fit$reference, values[1], 1e-13)
    }
  }
})

test_that("MMKME is never worse than MKME, and MKME never than the KME", {
  skip_on_cran()
  for (seed in 1:8) {
    n <- c(2, 5, 40)[seed %% 3 + 1]
    x <- random_points(n, 4, seed) %*% diag(c(3, 1, 0.1, 0))
    for (kernel in list(rbf, kernel_rbf(), kernel_rbf(c(0.1, 5, 1, 1)),
                        kernel_rbf(0.01), kernel_poly(2), kernel_poly(3))) {
      one <- kme(x, kernel, "mkme", scale = FALSE)
      each <- kme(x, kernel, "mmkme", scale = FALSE)
      expect_lte(one$minimum, one$reference)
      expect_lte(each$minimum, one$minimum)
      expect_gte(min(each$noise), 0)
    }
  }
})

test_that("MMKME is a minimum in every column", {
  set.seed(4)
  x <- matrix(stats::rnorm(40 * 4), 40) %*% diag(c(2, 1, 0.5, 1))
  for (kernel in list(kernel_rbf(1.5), kernel_rbf(c(3, 1, 1, 2)))) {
    fit <- kme(x, kernel, "mmkme")
    score <- marginal_score(x, fit$kernel)
    unit <- kme(x, kernel, "mkme")$noise
    slope <- score$at(unname(fit$noise), TRUE)$gradient * unit /
      (fit$reference - fit$minimum)
    # The gradient in units of the gain: 0, or positive at the bound.
    expect_lt(max(abs(slope[fit$noise > 0])), 1e-2)
    expect_true(all(slope[fit$noise == 0] >= 0))
  }
})

test_that("degree 2 takes no noise; degree 3 where the data ask for it", {
  x <- random_points(20, 3) + 2
  for (estimator in c("mkme", "mmkme")) {
    fit <- kme(x, kernel_poly(2), estimator)
    expect_true(all(fit$noise == 0))
    expect_identical(kme_distance(fit, kme(x, kernel_poly(2))), 0)
  }
  # The points far out in the second column are near 0 for the mean.
  y <- cbind(rep(c(10, 1), c(12, 4)), rep(c(0.1, 2), c(12, 4)))
  kernel <- kernel_poly(3)
  score <- marginal_score(y, kernel)
  fit <- kme(y, kernel, "mmkme")
  one <- kme(y, kernel, "mkme")
  expect_gt(fit$noise[2], 0)
  expect_identical(fit$noise[1], 0)
  best <- stats::optimize(\(e) score$at(c(0, e))$value, c(0, 10), tol = 1e-8)
  expect_near(fit$noise[2], best$minimum, 1e-4)
  expect_lt(fit$minimum, fit$reference)
  expect_lte(fit$minimum, one$minimum)
})

test_that("a linear kernel sees no noise", {
  x <- random_points(10, 2)
  plain <- kme(x, kernel_linear())
  for (fit in list(kme(x, kernel_linear(), "mkme"),
                   kme(x, kernel_linear(), "mmkme"),
                   kme(x, kernel_linear(), "mkme", noise = 3),
                   kme(x, kernel_poly(1, 0), "mmkme", noise = c(1, 2)))) {
    expect_near(predict(fit), predict(plain), 1e-14)
    expect_near(fit$norm2, plain$norm2, 1e-14)
    expect_output(print(fit), "a linear kernel sees no noise")
  }
})

test_that("constant data, repeated rows, two points and one", {
  for (kernel in list(kernel_rbf(), rbf, kernel_poly(2), kernel_poly(3))) {
    for (estimator in c("mkme", "mmkme")) {
      same <- kme(matrix(2, 5, 3), kernel, estimator)
      expect_true(all(same$noise == 0))
      expect_near(same$minimum, 0, 1e-12)
      two <- kme(c(0, 1), kernel, estimator)
      expect_true(is.finite(two$minimum))
      twice <- rbind(random_points(6, 2), random_points(6, 2))
      fit <- kme(twice, kernel, estimator)
      expect_lte(fit$minimum, fit$reference)
    }
  }
  one <- kme(matrix(c(1, 2), 1), rbf, "mkme", noise = 0.5)
  expect_near(one$norm2, 1.3^2 / (1.3^2 + 1), 1e-14)
  expect_null(one$minimum)
})

test_that("fits are identical for any number of threads", {
  x <- random_points(300, 5)
  for (kernel in list(kernel_rbf(2), kernel_poly(3))) {
    for (estimator in c("mkme", "mmkme")) {
      expect_identical(with_threads(1, kme(x, kernel, estimator)),
                       with_threads(2, kme(x, kernel, estimator)))
    }
  }
})

# --- The embedding -----------------------------------------------------------

test_that("the estimate is the embedding of n normal distributions", {
  skip_on_cran()
  x <- random_points(9, 2)
  z <- random_points(5, 2, 3)
  for (kernel in marginal_kernels()) {
    for (fit in list(kme(x, kernel, "mkme", noise = 0.7),
                     kme(x, kernel, "mmkme", noise = c(0.2, 3)),
                     kme(x, kernel, "mmkme", noise = c(0, 1)))) {
      mixture <- as_mixture(fit)
      expect_near(predict(fit, z), mixture_at(mixture, kernel, z), 1e-12)
      expect_near(predict(fit), mixture_at(mixture, kernel, x), 1e-12)
      norm2 <- mixture_inner(mixture, mixture, kernel)
      expect_near(fit$norm2, norm2, 1e-12)
      expect_near(kme_inner(fit, fit), norm2, 1e-12)
      # A difference of equal norms.
      expect_lt(kme_risk(fit, mixture), 1e-12 * norm2)
    }
  }
})

test_that("weights of any sign have inner products in closed form", {
  x <- random_points(6, 2)
  y <- random_points(4, 2, 8)
  e <- c(0.2, 3)
  f <- c(1, 0.4)
  u <- c(1, -2, 0.5, 0.3, 0, 1)
  v <- c(-1, 2, 0.7, 0.1)
  for (kernel in marginal_kernels()) {
    value <- sum(u * noisy_apply(kernel, x, y, v, e, f))
    expect_near(value, sum(u * (noisy_gram_R(kernel, x, e, y, f) %*% v)), 1e-12)
    expect_near(noisy_norm2(kernel, x, u, e),
                sum(u * (noisy_gram_R(kernel, x, e, x, e) %*% u)), 1e-12)
  }
})

test_that("inner products with any other fit are those of mixtures", {
  skip_on_cran()
  x <- random_points(9, 2)
  y <- random_points(6, 2, 4)
  normal <- list(weights = 1, means = matrix(0.3, 1, 2),
                 covariances = matrix(c(1, 0.6, 0.6, 2), 2))
  normal <- check_mixture(normal, 2L, "normal")
  points <- \(x) {
    list(weights = rep(1 / nrow(x), nrow(x)), means = x,
         covariances = array(0, c(2, 2, nrow(x))))
  }
  for (kernel in marginal_kernels()) {
    a <- kme(x, kernel, "mmkme", noise = c(0.2, 1.5))
    inner <- \(p, q) mixture_inner(p, q, kernel)
    noisy <- as_mixture(a)
    plain <- kme(y, kernel)
    other <- kme(y, kernel, "mkme", noise = 0.4)
    shrunk <- kme(y, kernel, "skmse", lambda = 0.5, target = normal)
    towards <- kme(y, kernel, "skmse", lambda = 0.5, target = a)
    expect_near(kme_inner(a, plain), inner(noisy, points(y)), 1e-12)
    expect_near(kme_inner(a, other), inner(noisy, as_mixture(other)), 1e-12)
    expect_near(kme_inner(a, shrunk),
                (2 * inner(noisy, points(y)) + inner(noisy, normal)) / 3, 1e-12)
    expect_near(kme_inner(a, towards),
                (2 * inner(noisy, points(y)) + a$norm2) / 3, 1e-12)
    for (b in list(plain, other, shrunk, towards)) {
      expect_near(kme_inner(a, b), kme_inner(b, a), 1e-12)
      # A distance cancels: rounding of the norms.
      expect_near(kme_distance(a, b)^2,
                  a$norm2 + b$norm2 - 2 * kme_inner(a, b), 1e-9)
    }
    expect_equal(kme_risk(a, normal),
                 a$norm2 - 2 * inner(noisy, normal) + inner(normal, normal),
                 tolerance = 1e-10)
  }
})

test_that("a marginalized fit is a target", {
  x <- random_points(15, 2)
  target <- kme(random_points(8, 2, 3), rbf, "mkme", noise = 0.5)
  f <- predict(target, x)
  k <- gram_R(rbf, x)
  shrunk <- kme(x, rbf, "skmse", target = target)
  expect_near(shrunk$alpha, skmse_alpha_R(k, "loocv", f, target$norm2), 1e-12)
  flexible <- kme(x, rbf, "fkmse", lambda = 0.3, target = target)
  expect_near(flexible$weights, fkmse_weights_R(k, 0.3, f), 1e-11)
  z <- random_points(4, 2, 9)
  expect_equal(predict(flexible, z),
               drop(gram_R(rbf, z, x) %*% flexible$weights) +
                 predict(target, z), tolerance = 1e-11)
  expect_equal(kme_distance(kme(x, rbf, "fkmse", lambda = Inf,
                                target = target), target), 0)
})

test_that("equal noise on equal points is one part, other noise another", {
  x <- random_points(10, 2)
  for (kernel in marginal_kernels()) {
    a <- kme(x, kernel, "mkme", noise = 0.6)
    b <- kme(x, kernel, "mmkme", noise = c(0.6, 0.6))
    expect_identical(kme_distance(a, b), 0)
    expect_identical(kme_distance(kme(x, kernel, "mkme", noise = 0),
                                  kme(x, kernel)), 0)
    changed <- kme(x, kernel, "mmkme", noise = c(0.6, 0.7))
    sees <- kernel$family == "rbf" || kernel$degree > 1L
    expect_identical(kme_distance(a, changed) > 0, sees)
    expect_identical(kme_distance(a, kme(x, kernel)) > 0, sees)
  }
})

# --- Weights on the points ---------------------------------------------------

test_that("the projection agrees at the points and is the nearest", {
  x <- random_points(12, 2)
  for (kernel in list(rbf, kernel_rbf(c(0.8, 2)), kernel_poly(2),
                      kernel_poly(3))) {
    fit <- kme(x, kernel, "mmkme", noise = c(0.3, 0.1))
    w <- as_weights(fit)
    linear <- kme(x, kernel, weights = w)
    # Where the features are fewer than the points agreement is not required.
    if (kernel$family == "rbf") {
      expect_near(predict(linear), predict(fit), 1e-8)
    }
    distance <- kme_distance(linear, fit)
    for (seed in 1:5) {
      other <- kme(x, kernel, weights = w + random_points(12, 1, seed)[, 1] / 9)
      expect_gte(kme_distance(other, fit), distance * (1 - 1e-8))
    }
    expect_lt(distance, kme_distance(kme(x, kernel), fit))
  }
})

test_that("the expansion meets the projection, as printed it does not", {
  x <- random_points(8, 3)
  for (kernel in list(kernel_rbf(1.5), kernel_rbf(c(1, 1.5, 3)))) {
    k <- gram_R(kernel, x)
    distance <- function(s, beta) {
      fit <- kme(x, kernel, "mmkme", noise = s * c(1, 0.5, 2))
      difference <- as_weights(fit) - beta(fit)
      sqrt(sum(difference * (k %*% difference)))
    }
    taylor <- \(fit) as_weights(fit, "taylor")
    errors <- vapply(c(0.04, 0.02, 0.01), distance, numeric(1), beta = taylor)
    # Halving the noise divides an error of second order by 4.
    expect_near(errors[1:2] / errors[2:3], c(4, 4), 0.05)
  }
  kernel <- kernel_rbf(1.5)
  expect_equal(theorem1_printed_R(x, 1.5^2, 0), rep(1 / 16, 8))
  for (s in c(0.04, 0.01, 0.0025)) {
    fit <- kme(x, kernel, "mkme", noise = s)
    printed <- kme(x, kernel, weights = theorem1_printed_R(x, 1.5^2, s))
    holds <- kme(x, kernel, weights = as_weights(fit, "taylor"))
    expect_gt(kme_distance(printed, fit),
              0.4 * sqrt(kme(x, kernel)$norm2))
    expect_lt(kme_distance(holds, fit), 0.5 * s)
  }
})

test_that("singular matrices have weights, other fits their own", {
  x <- random_points(6, 2)
  twice <- rbind(x, x)
  fit <- kme(twice, rbf, "mkme", noise = 0.2)
  once <- kme(x, rbf, "mkme", noise = 0.2)
  for (type in c("projection", "taylor")) {
    w <- as_weights(fit, type)
    expect_near(w[1:6], w[7:12], 1e-8)
    expect_near(w[1:6] + w[7:12], as_weights(once, type), 1e-8)
  }
  rownames(x) <- letters[1:6]
  plain <- kme(x, rbf, "fkmse", lambda = 0.1)
  expect_identical(as_weights(plain), stats::setNames(plain$weights,
                                                      letters[1:6]))
  none <- kme(x, rbf, "mkme", noise = 0)
  expect_identical(unname(as_weights(none, "taylor")), rep(1 / 6, 6))
  expect_identical(names(as_weights(kme(x, rbf, "mkme"))), letters[1:6])
})

# --- The object --------------------------------------------------------------

test_that("update() goes back from a noise that was given to one selected", {
  x <- random_points(12, 2)
  fit <- kme(x, rbf, "mkme")
  given <- update(fit, noise = 0.3)
  expect_equal(given, kme(x, rbf, "mkme", noise = 0.3))
  expect_equal(update(given, select = "loocv"), fit)
  expect_equal(update(given, noise = NULL), fit)
})

test_that("fits and summaries are printed", {
  x <- cbind(a = c(0, 1, 3, 4.5, 2), b = c(1, 0, 2, 2, 9))
  expect_snapshot({
    kme(x, kernel_rbf(2), "mkme", noise = 0.5)
    kme(x, kernel_rbf(c(2, 4)), "mkme", noise = 0.5)
    kme(x, kernel_rbf(2), "mmkme", noise = c(0.5, 0))
    kme(x, kernel_poly(2), "mmkme")
    kme(x, kernel_rbf(2), "mmkme", noise = 1)
    kme(x, kernel_linear(), "mkme")
    summary(kme(x, kernel_rbf(2), "mmkme", noise = c(0.5, 0)))
  })
})

# --- Bad input ---------------------------------------------------------------

test_that("what marginalized estimators cannot take is refused", {
  x <- random_points(6, 2)
  fit <- kme(x, rbf, "mkme")
  noisy <- kme(x, kernel_poly(2), "mkme", noise = 1)
  target <- kme(x + 1, rbf)
  aimed <- kme(x, rbf, "skmse", target = target)
  lines <- on_device(refusals(expression(
    kme(x, kernel_laplace(1), "mkme"),
    kme(as_gram(diag(3)), estimator = "mkme"),
    kme(x[1, , drop = FALSE], rbf, "mkme"), kme(x, rbf, "mkme", noise = -1),
    kme(x, rbf, "mmkme", noise = c(1, Inf)),
    kme(x, rbf, "mmkme", noise = c(1, 2, 3)),
    kme(x, rbf, "mkme", select = "gcv"),
    kme(x, rbf, "mkme", noise = 1, select = "loocv"), as_weights(1),
    as_weights(fit, "exact"), as_weights(aimed, "taylor"),
    as_weights(noisy, "taylor")
  )))
  expect_snapshot(writeLines(lines))
  refused(kme(x, rbf, "mkme", lambda = 1), "'lambda' must not be given")
  refused(kme(x, rbf, "mmkme", target = target), "'target' must not be given")
  refused(kme(x, rbf, "mkme", weights = 1:6 / 21), "'weights'")
  for (estimator in c("kme", "fkmse")) {
    refused(kme(x, rbf, estimator, noise = 1), "'noise' must not be given")
  }
  for (theta in c(1e-80, 1e80)) {
    expect_error(kme(theta * x, kernel_rbf(theta), "mkme"), "overflow",
                 class = "kernmean_error_numeric")
  }
})

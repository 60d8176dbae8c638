# The engine of Riesz regressions against its formulas: refits, quadratic
# programs, finite differences, identities.

set.seed(1)

test_that("values are what the normal equations say, one penalty or several", {
  p <- random_problem()
  s <- riesz_system(p)
  got <- ridge_values(s$ridge, s$functional, c(0.3, 2), p$y)
  for (at in 1:2) {
    expect_values(lapply(got, \(v) v[, at]),
                  riesz_R(p, c(0.3, 2)[at])[names(got)])
  }
  # The columns without penalty, and those of features.
  expect_identical(s$ridge$free, 2L)
  theta <- riesz_weights(p, 0.3, FALSE)
  expect_near(theta$coefficients, riesz_R(p, 0.3)$theta, 1e-10)
  expect_near(theta$weights, riesz_R(p, 0.3)$alpha, 1e-10)
})

# Are fits without the unit of a row refits without it?
expect_left_out <- function(p, target_unit = p$target_unit) {
  want <- riesz_left_out_R(p, 0.2, 0.05, p$unit, target_unit)
  s <- riesz_system(p)
  expect_values(riesz_left_out(p, s, 0.2), want[c("alpha", "of_alpha")])
  expect_values(riesz_left_out(p, s, 0.05), want[c("residuals", "of_g")])
}

test_that("fits without a row are refits without it", {
  expect_left_out(random_problem())
})

test_that("fits without a cluster or a fold are refits without it", {
  p <- random_problem()
  unit <- rep(1:6, length.out = 20)
  # Small units, one that is in one of the samples alone, one of many rows.
  unit[c(9:20)[unit[9:20] == 2]] <- 7L
  expect_left_out(change_problem(
    p, unit = unit, target_unit = c(rep(c(1L, 8L), length.out = 7), unit[1:8])
  ))
  halves <- rep(1:2, each = 10)
  expect_left_out(change_problem(p, unit = halves,
                                 target_unit = c(rep(3L, 7), halves[1:8])))
})

test_that("of a row that alone has a level the others say nothing", {
  p <- random_problem(rows = 20, shared = 20)
  p$h[, 2] <- c(1, numeric(19))
  p$m_h <- p$h
  left <- riesz_left_out(p, riesz_system(p), c(1e-6, 0.1, 10))
  expect_identical(left$alpha[1, ], numeric(3))
  expect_identical(left$residuals[1, ], numeric(3))
  # Other rows are refitted as ever.
  want <- riesz_R(p, 0.1, source = 5L, functional = 5L)
  expect_near(left$alpha[5, 2], want$alpha[5], 1e-9)
})

test_that("a target that is no sample stays when rows leave", {
  p <- change_problem(random_problem(rows = 1, shared = 0), fixed = TRUE,
                      upsilon = 1)
  expect_left_out(p, 0L)
  p$unit <- rep(1:4, 5)
  expect_left_out(p, 0L)
})

test_that("penalties are those of the least loss of fits without the row", {
  p <- random_problem(rows = 20, shared = 20)
  p$scale <- 3
  found <- choose_penalties(p, riesz_system(p), NULL, NULL)
  grid <- 3 * 10^seq(-8.5, 3.5, by = 0.25)
  losses <- vapply(grid, \(ridge) {
    left <- riesz_left_out_R(p, ridge, ridge)
    c(mean(p$omega * left$alpha^2) - 2 * mean(p$upsilon * left$of_alpha),
      mean(p$omega * left$residuals^2))
  }, numeric(2))
  expect_equal(found$lambda, grid[which.min(losses[1, ])])
  expect_equal(found$mu, grid[which.min(losses[2, ])])
  expect_equal(choose_penalties(p, riesz_system(p), 2, 0.1),
               list(lambda = 6, mu = 3 * 0.1))
})

test_that("the estimate is a mean of weighted outcomes and a debiased one", {
  p <- random_problem(rows = 20, shared = 20, free = 1)
  fit <- riesz_estimate(p, 0.2, 0.05)
  twin <- riesz_R(p, 0.2, 0.05)
  mean_w <- \(v) mean(p$omega * v)
  expect_near(fit$estimate, mean(p$upsilon * twin$of_g) +
                mean_w(twin$alpha * twin$residuals), 1e-10)
  expect_near(fit$estimate, mean_w(fit$effective * p$y), 1e-12)
  expect_near(mean_w(fit$effective), 1, 1e-12)
  expect_near(fit$plugin, mean(p$upsilon * twin$of_g), 1e-10)
  expect_near(fit$edf, sum(diag(solve(
    crossprod(cbind(1, p$f) * sqrt(p$omega)) + 20 * diag(c(0, rep(0.05, 4))),
    crossprod(cbind(1, p$f) * sqrt(p$omega))
  ))), 1e-10)
  left <- riesz_left_out_R(p, 0.2, 0.05)
  expect_near(fit$source, p$omega * fit$effective * left$residuals / 20, 1e-10)
  expect_near(fit$functional, p$upsilon * (twin$of_g - fit$plugin) / 20, 1e-10)
})

test_that("at equal ridges it is the plug-in, once more iterated", {
  p <- random_problem(rows = 20, shared = 20, free = 1)
  fit <- riesz_estimate(p, 0.3, 0.3)
  expect_near(fit$plugin, mean(p$omega * fit$alpha * p$y), 1e-10)
  first <- riesz_R(p, 0.3)
  p$y <- first$residuals
  again <- riesz_R(p, 0.3)
  expect_near(fit$estimate, mean(p$upsilon * (first$of_g + again$of_g)), 1e-10)
})

test_that("cross-fitted estimates are those of the other folds", {
  p <- random_problem(rows = 20, shared = 20, free = 1)
  fold <- rep(1:4, 5)
  p$unit <- fold
  p$target_unit <- fold
  fit <- riesz_estimate(p, 0.2, 0.05, folds = TRUE)
  left <- riesz_left_out_R(p, 0.2, 0.05)
  expect_near(fit$estimate, mean(p$upsilon * left$of_g) +
                mean(p$omega * left$alpha * left$residuals), 1e-10)
})

test_that("what is left of the imbalance is what the ridge leaves", {
  p <- random_problem()
  n <- nrow(p$f)
  fit <- riesz_weights(p, 0.2, FALSE)
  balance <- \(f, m) drop(crossprod(f, p$omega * fit$weights)) / n -
    colMeans(p$upsilon * m)
  theta <- riesz_R(p, 0.2)$theta
  expect_near(balance(p$f, p$m), -0.2 * theta[-(1:2)], 1e-10)
  expect_near(balance(p$h, p$m_h), c(0, 0), 1e-10)
  expect_near(fit$imbalance[["after"]], 0.2 * sqrt(sum(theta[-(1:2)]^2)), 1e-10)
  expect_near(fit$imbalance[["before"]], sqrt(sum((
    colMeans(p$omega * p$f) - colMeans(p$upsilon * p$m)
  )^2)), 1e-12)
})

test_that("columns without penalty that others imply change nothing", {
  p <- random_problem(free = 3)
  more <- p
  more$h <- cbind(p$h, p$h[, 2] + p$h[, 3], 2)
  more$m_h <- cbind(p$m_h, p$m_h[, 2] + p$m_h[, 3], 2)
  want <- riesz_weights(p, 0.2, FALSE)
  got <- riesz_weights(more, 0.2, FALSE)
  expect_near(got$weights, want$weights, 1e-10)
  expect_near(got$coefficients, append(want$coefficients, c(0, 0), 3), 1e-9)
})

test_that("positive weights solve the quadratic program", {
  skip_if_not_installed("quadprog")
  set.seed(2)
  p <- random_problem(n = 60, rows = 30, shared = 0, r = 12)
  p$m <- p$m / 2 + 1
  n <- 60
  colnames(p$h) <- c("", "column")
  for (lambda in c(0.01, 1)) {
    fit <- riesz_weights(p, lambda, TRUE)
    # In w = omega a: |F'w/n - mean m|^2 + lambda mean(w^2/omega).
    want <- quadprog::solve.QP(
      tcrossprod(p$f) / n^2 + lambda * diag(1 / p$omega) / n,
      p$f %*% colMeans(p$upsilon * p$m) / n,
      cbind(p$h / n, diag(n)),
      c(colMeans(p$upsilon * p$m_h), numeric(n)), meq = 2
    )$solution
    expect_near(p$omega * fit$weights, want, 1e-5)
  }
  expect_true(any(riesz_weights(p, 0.01, TRUE)$weights == 0))
  expect_true(any(riesz_weights(p, 0.01, FALSE)$weights < 0))
})

test_that("steps are halved where full ones climb", {
  skip_if_not_installed("quadprog")
  for (seed in c(4, 6, 10, 12)) {
    set.seed(seed)
    p <- random_problem(n = 30, rows = 10, shared = 0, r = 12, free = 1)
    p$m <- p$m / 2 + 1 + (seed %% 5) / 2
    lambda <- if (seed %% 3) 1e-3 else 1e-6
    want <- quadprog::solve.QP(
      tcrossprod(p$f) / 30^2 + lambda * diag(1 / p$omega) / 30,
      p$f %*% colMeans(p$upsilon * p$m) / 30, cbind(p$h / 30, diag(30)),
      c(1, numeric(30)), meq = 1
    )$solution
    expect_near(p$omega * riesz_weights(p, lambda, TRUE)$weights, want, 1e-6)
  }
})

test_that("positive weights that are linear ones are these", {
  p <- random_problem(n = 60, rows = 30, shared = 0, free = 1)
  p$m <- p$m / 20 + 1
  linear <- riesz_weights(p, 0.5, FALSE)
  expect_gt(min(linear$weights), 0)
  expect_near(riesz_weights(p, 0.5, TRUE)$weights, linear$weights, 1e-8)
})

test_that("means that no positive weights have are an error that names them", {
  p <- random_problem(n = 40)
  colnames(p$h) <- c("", "far")
  p$m_h[, 2] <- max(p$h[, 2]) + 1
  refused(riesz_weights(p, 0.1, TRUE), "the target's mean of 'far'")
})

# --- Functionals -------------------------------------------------------------

# The space of doses and covariates, one of them of levels.
dose_space <- function(x, treat, kernel, scale = NULL, landmarks = NULL,
                       features = NULL) {
  asked <- list(kernel = kernel, scale = scale, landmarks = landmarks,
                features = features)
  suppressWarnings(riesz_space(x, asked, treat))
}

sloping <- list(
  rbf = kernel_rbf(1.3), wide = kernel_rbf(c(0.8, 2, 1.5)),
  matern32 = kernel_matern(1.5, 2), matern52 = kernel_matern(2.5, 2),
  linear = kernel_linear(), poly = kernel_poly(3, 0.5)
)

test_that("derivatives are those of differences, in units of the user", {
  set <- effect_set(25, dose = TRUE)
  x <- 3 * set$x + 10
  treat <- 5 * set$treat - 2
  all <- seq_len(25)
  step <- 1e-4
  check <- \(space) {
    map <- space_map(space, all)
    kernel <- space$sample$kernel
    expect_no_error(check_slopes(kernel))
    z <- space$sample$x
    at <- \(by) point_features(small_map(map), map$sample, list(
      z = scale_points(kernel, cbind(.dose = treat + by, x))
    ))
    got <- functional_rows(space, map, all, list(
      z = z, along = first_direction(kernel, ncol(z))
    ))
    want <- (at(step) - at(-step)) / (2 * step)
    expect_near(got$m, want, 1e-5)
    expect_identical(unique(as.vector(got$m_h)), 0)
  }
  for (kernel in sloping) {
    for (scale in list(FALSE, TRUE, "whiten")) {
      if (length(kernel$bandwidth) > 1L && !isFALSE(scale)) next
      check(dose_space(x, treat, kernel, scale))
    }
    check(dose_space(x, treat, kernel, length(kernel$bandwidth) < 2L,
                     landmarks = 9))
  }
  for (scale in list(FALSE, TRUE, "whiten")) {
    check(dose_space(x, treat, kernel_rbf(2), scale, features = 30))
  }
  for (kernel in list(kernel_laplace(1), kernel_energy(), kernel_matern(0.5),
                      kernel_function(\(x, y) exp(-abs(x - y))))) {
    refused(check_slopes(kernel), "must have derivatives")
  }
})

test_that("weights of a Gram matrix are those of its factor", {
  set <- effect_set(40)
  target <- set$x[1:15, ] / 2 + 0.3
  kernel <- kernel_rbf(1.5)
  got <- quietly(kme_weights(set$x, target, kernel = kernel, means = FALSE,
                             positive = FALSE, lambda = 0.01))
  K <- fold_store(kernel, set$x, set$x)
  K_t <- fold_store(kernel, set$x, target)
  expect_near(weights(got), gram_weights_R(K, K_t, 0.01), 1e-6)
  # The gradient of MMD^2 + lambda mean(a^2), but for that of the mean.
  a <- weights(got)
  slope <- drop(K %*% a) / 40 - rowMeans(K_t) + 0.01 * a
  expect_near(slope, rep(mean(slope), 40), 1e-6)
})

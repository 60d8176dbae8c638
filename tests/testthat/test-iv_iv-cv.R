# Penalties that rkhs_iv() and rkhs_iv_nested() choose: against refits of each
# fold, and rules by hand.

s <- iv_sample(40, 5)
narrow <- kernel_rbf(0.5)
level <- rep_len(c(1:5, 3), 40)
other <- rep_len(c(2, 1, 4, 3), 40)
same <- \(x) outer(x, x, `==`) + 0
K <- lapply(s[c("a", "b", "c", "d")], \(x) gram_R(narrow, x))
discrete <- replace(K, c("c", "d"), list(same(other), same(level)))
grid <- 10^seq(-2, 1, by = 0.75)
halves <- list(c = s$s == 0 | seq_along(s$s) %% 4 == 0, d = s$s == 1)
set.seed(6)
mixed <- sample(rep_len(c("north", "east", "south", "west"), 40))

# The package's own rule: lambda by the rows of its moment, mu of norm penalties
# by all rows.
own_units <- function(problem, penalty, lambda_c = 0, lambda_d = 0,
                      ratio = 1) {
  \(n, mu, p, q) {
    mu <- if (penalty == "norm") mu * n / length(problem$y) else mu
    list(lambda_c = if (q) lambda_c * q / length(problem$two) else lambda_c,
         lambda_d = lambda_d * p / length(problem$one), mu_g = mu,
         mu_h = ratio * mu)
  }
}

expect_scores <- function(fit, scores) {
  expect_near(fit$cv$score, colMeans(scores), 1e-8)
  expect_near(fit$cv$se, apply(scores, 2, sd) / sqrt(nrow(scores)), 1e-7)
  best <- which.min(colMeans(scores))
  limit <- colMeans(scores)[best] + fit$cv$se[best]
  chosen <- if (fit$rule == "min") {
    fit$cv$mu[best]
  } else {
    max(fit$cv$mu[colMeans(scores) <= limit])
  }
  expect_near(fit$mu[[1]], chosen, 1e-12)
  expect_identical(fit$cv$mu[fit$cv$chosen], fit$mu[[1]])
}

test_that("scores of sequential fits are those of refits", {
  skip_on_cran()
  sequential <- \(penalty, K, z, lambda, folds, of, ...) {
    fit <- quietly(iv(s$a, s$y, z, kernel = list(x = narrow), mu = grid,
                           lambda = lambda, penalty = penalty, folds = folds,
                           ...))
    problem <- iv_problem(K[c("a", "d")], s$y)
    scores <- iv_cv_R(problem, penalty, of, grid,
                      own_units(problem, penalty, 0, lambda),
                      center = isTRUE(list(...)$intercept))
    expect_scores(fit, scores)
  }
  points <- gram(s$d, narrow)
  sequential("norm", K, points, 0.7, "blocks", contiguous(40), rule = "min")
  sequential("norm", K, points, 0.7, mixed, mixed, intercept = TRUE,
             rule = "1se")
  sequential("norm", discrete, factor(level), 0, 6, contiguous(40),
             rule = "1se")
  sequential("l2", K, points, 0.7, mixed, mixed, rule = "1se")
  sequential("l2", discrete, factor(level), 0, 3, contiguous(40, 3),
             rule = "min", intercept = TRUE)
  # One row each.
  sequential("norm", K, points, 0.7, 40, 1:40, rule = "min")
})

test_that("scores of nested fits are those of refits", {
  both <- \(penalty, K, c, d, lambda, ratio, folds, of, rule = "min", w = NULL,
            subset = NULL) {
    fit <- quietly(iv_nested(
      s$a, s$b, c, d, s$y, w = w, subset = subset, penalty = penalty,
      kernel = list(a = narrow, b = narrow), lambda_c = lambda[1],
      lambda_d = lambda[2], mu_g = grid, mu_h = ratio * grid, folds = folds,
      rule = rule
    ))
    problem <- iv_problem(K, s$y, w, subset)
    scores <- iv_cv_R(problem, penalty, of, grid,
                      own_units(problem, penalty, lambda[1], lambda[2], ratio))
    expect_scores(fit, scores)
    expect_near(fit$mu[[2]], ratio * fit$mu[[1]], 1e-12)
  }
  c <- gram(s$c, narrow)
  d <- gram(s$d, narrow)
  both("norm", K, c, d, c(0.4, 2), 1, 5, hashed_R(40, 5))
  both("norm", K, c, d, c(0.4, 2), 0.3, mixed, mixed, "1se", s$w, s$s)
  both("l2", K, c, d, c(0.4, 2), 3, mixed, mixed, "min", -s$w, halves)
  both("l2", discrete, factor(other), factor(level), c(0, 0), 1, mixed, mixed,
       "min", s$w, s$s)
  both("l2", discrete, factor(other), factor(level), c(0, 1), 0.5, "blocks",
       contiguous(40), "1se", s$w)
})

test_that("landmarks and features keep one map for all folds", {
  rows <- c(3, 9, 14, 22, 28, 30, 37)
  maps <- list(
    landmarks = lapply(s[c("a", "d")], \(x) nystrom_R(narrow, x, x[rows, ])),
    features = lapply(s[c("a", "d")], \(x) {
      fourier_R(0.5, x, reference_draws(2, 20))
    })
  )
  asked <- list(landmarks = rows, features = 20)
  for (kind in names(maps)) {
    problem <- iv_problem(lapply(maps[[kind]], tcrossprod), s$y)
    for (penalty in c("norm", "l2")) {
      fit <- with_draws(reference_draws, {
        do.call(iv, c(list(s$a, s$y, s$d, narrow, penalty = penalty,
                                lambda = 0.7, mu = grid, rule = "min",
                                folds = mixed), asked[kind])) |> quietly()
      })
      scores <- iv_cv_R(problem, penalty, mixed, grid,
                        own_units(problem, penalty, 0, 0.7))
      expect_scores(fit, scores)
    }
  }
})

test_that("a value chosen from a grid gives the fit of that value", {
  fit <- quietly(iv(s$a, s$y, s$d, narrow, lambda = 0.7, mu = grid))
  expect_true(all(predict(fit) != 0))
  own <- iv(s$a, s$y, s$d, narrow, lambda = 0.7, mu = fit$mu)
  expect_near(fitted(fit), fitted(own), 1e-10)
  # Chosen by us, with y centered, and lambda by the first stage.
  fit <- iv(s$a, s$y, s$d, narrow)
  own <- iv(s$a, s$y, s$d, narrow, lambda = fit$lambda, mu = fit$mu,
                 intercept = TRUE)
  expect_near(fitted(fit), fitted(own), 1e-10)
  for (penalty in c("norm", "l2")) {
    nested <- \(...) {
      quietly(iv_nested(
        s$a, s$b, s$c, s$d, s$y, s$w, s$s, narrow, penalty, lambda_c = 2,
        lambda_d = 3, ...
      ))
    }
    fit <- nested(folds = 4)
    given <- nested(mu_g = fit$mu[[1]], mu_h = fit$mu[[2]])
    expect_near(fit$fitted.values, given$fitted.values, 1e-9)
  }
})

test_that("folds of a number are dealt within each part of a subset", {
  subset <- rep(c(1, 0), c(24, 16))
  nested <- \(...) {
    quietly(iv_nested(s$a, s$b, s$c, s$d, s$y, subset = subset,
                           kernel = narrow, lambda_c = 1, lambda_d = 1,
                           mu_g = grid, mu_h = grid, ...))
  }
  fit <- nested(folds = 4)
  own <- nested(folds = hashed_R(40, 4, subset))
  expect_near(sort(attr(fit$cv, "folds")), sort(attr(own$cv, "folds")), 1e-12)
  fit <- nested(folds = "blocks")
  own <- nested(folds = c(rep(1:6, each = 4), contiguous(16)))
  expect_near(fit$cv$score, own$cv$score, 1e-13)
})

test_that("the preset has a grid of its own, when it is asked to choose", {
  fit <- quietly(iv(s$a, s$y, s$d, narrow, preset = "nnpiv",
                         select = "cv"))
  expect_identical(fit$rule, "min")
  delta <- 5 * 40^-0.4
  alpha <- 10^seq(-1, 4, length.out = 30)
  expect_near(fit$cv$mu, alpha * delta^4 / (2 * 40 * delta^2), 1e-12)
  own <- iv(s$a, s$y, s$d, narrow, mu = fit$mu,
                 preset = NULL, lambda = 40 * delta^2)
  expect_near(fitted(fit), fitted(own), 1e-10)
})

test_that("the preset drops folds without a part of the subset", {
  # The first fold, of 7 rows, has no row of the second moment.
  subset <- replace(s$s, 1:7, 1)
  alpha <- c(0.1, 10, 1000)
  fit <- quietly(iv_nested(
    s$a, s$b, s$c, s$d, s$y, subset = subset, kernel = narrow,
    preset = list(alpha_scale = alpha)
  ))
  problem <- iv_problem(K, s$y, NULL, subset)
  units <- \(n, alpha, p, q) {
    mu <- alpha * (5 * n^-0.4)^4
    list(lambda_c = 1, lambda_d = 1, mu_g = mu, mu_h = mu)
  }
  scores <- iv_cv_R(problem, "norm", contiguous(40), alpha, units)
  expect_identical(nrow(scores), 5L)
  expect_near(fit$cv$score, colMeans(scores), 1e-8)
})

# --- The grid ----------------------------------------------------------------

test_that("our grid is of mu with an l2 penalty", {
  fit <- quietly(iv(s$a, s$y, factor(level), list(x = narrow),
                         penalty = "l2", folds = 4))
  expect_lt(min(abs(fit$cv$mu / 1e-5 - 1)), 1e-10)
  expect_lt(min(abs(fit$cv$mu - 1)), 1e-10)
})

test_that("a minimum at the border extends the grid once, and is reported", {
  # Nothing but noise wants the largest penalty.
  set.seed(8)
  noise <- rnorm(60)
  a <- matrix(rnorm(120), 60)
  d <- matrix(rnorm(120), 60)
  expect_warning(
    fit <- iv(a, noise, d, kernel_rbf(1), lambda = 1, rule = "min"),
    "largest penalty", class = "kernmean_warning_border"
  )
  grid <- 60 * 10^seq(-5, 0, length.out = 30)
  step <- grid[2] / grid[1]
  expect_near(fit$cv$mu, c(grid, grid[30] * step^(1:10)), 1e-10)
  expect_identical(which.min(fit$cv$score), 40L)
  problem <- iv_problem(list(a = gram_R(kernel_rbf(1), a),
                             d = gram_R(kernel_rbf(1), d)), noise)
  some <- c(1, 20, 30, 31, 40)
  scores <- iv_cv_R(problem, "norm", contiguous(60), fit$cv$mu[some],
                    own_units(problem, "norm", 0, 1), center = TRUE)
  expect_near(fit$cv$score[some], colMeans(scores), 1e-8)
  # A function without noise and its own instrument want a small one.
  fit <- quietly(iv(a[, 1], a[, 1], a[, 1], kernel_poly(1), lambda = 1e-3,
                         rule = "min"))
  # By the trace of K, which is n for kernels with k(x, x) = 1.
  grid <- grid / 60 * sum((a[, 1]^2 + 1))
  expect_near(fit$cv$mu, c(grid[1] * step^-(10:1), grid), 1e-10)
  # Values that were given are all that is tried.
  expect_warning(
    fit <- iv(a, noise, d, kernel_rbf(1), lambda = 1, mu = c(1e-2, 1)),
    "given; try more values: the instruments", class = "kernmean_warning_border"
  )
  expect_identical(nrow(fit$cv), 2L)
})

test_that("penalties of norms follow the size of the kernel", {
  # k(x, x) = 4: the same functions, with penalties 4 times as large.
  scaled <- \(times) kernel_function(\(x, y) times * gram_R(narrow, x, y))
  four <- scaled(4)
  fit <- quietly(iv(s$a, s$y, s$d, scaled(1)))
  more <- quietly(iv(s$a, s$y, s$d, four))
  expect_near(unname(more$mu / fit$mu), 4, 1e-8)
  expect_near(unname(more$lambda / fit$lambda), 4, 1e-8)
  expect_near(fitted(more), fitted(fit), 1e-8)
  # Each of two.
  nested <- \(...) {
    quietly(iv_nested(s$a, s$b, s$c, s$d, s$y, lambda_c = 1, lambda_d = 1,
                           folds = 4, ...))
  }
  fit <- nested(kernel = narrow)
  more <- nested(kernel = list(a = narrow, b = four, c = narrow, d = narrow))
  expect_near(unname(more$mu / fit$mu), c(1, 4), 1e-8)
  expect_near(more$fitted.values, fit$fitted.values, 1e-8)
})

test_that("folds that are not alike are warned of", {
  rows <- order(s$a[, 1])
  sorted <- lapply(s, \(x) if (is.matrix(x)) x[rows, ] else x[rows])
  fit <- \(data, ...) {
    iv(data$a, data$y, data$d, narrow, lambda = 1, ...)
  }
  expect_warning(quietly_but(fit(sorted), "folds"),
                 class = "kernmean_warning_folds")
  expect_no_warning(quietly_but(fit(s), "folds"))
  # Folds of one's own are one's own.
  expect_no_warning(quietly_but(fit(sorted, folds = contiguous(40)), "folds"))
})

test_that("sequential fits are paired by default, nested ones take the best", {
  fit <- quietly(iv(s$a, s$y, s$d, narrow))
  folds <- attr(fit$cv, "folds")
  best <- which.min(fit$cv$score)
  above <- apply(folds - folds[, best], 2, sd) / sqrt(nrow(folds))
  expect_near(fit$cv$se_above, above, 1e-10)
  expect_identical(fit$rule, "paired")
  least <- update(fit, rule = "min")
  expect_identical(least$mu[[1]], least$cv$mu[best])
  expect_lt(least$mu[[1]], fit$mu[[1]])
  fit <- quietly(iv_nested(s$a, s$b, s$c, s$d, s$y, kernel = narrow,
                                folds = 4))
  expect_identical(which(fit$cv$chosen), which.min(fit$cv$score))
})

test_that("choices do not depend on where y is zero", {
  fit <- quietly(iv(s$a, s$y, s$d, narrow))
  moved <- quietly(iv(s$a, s$y + 10, s$d, narrow))
  expect_near(moved$mu, fit$mu, 1e-12)
  expect_near(moved$lambda, fit$lambda, 1e-12)
  expect_near(fitted(moved), fitted(fit) + 10, 1e-9)
  # Unless it is asked to.
  off <- quietly(iv(s$a, s$y + 10, s$d, narrow, intercept = FALSE))
  expect_gt(max(abs(fitted(off) - fitted(moved))), 1e-3)
})

# --- The first stage ----------------------------------------------------------

# n tr (I - S) K (I - S) / tr(I - S)^2, S = K_Z (K_Z + lambda I)^-1.
gcv_R <- function(Kz, K, lambda) {
  n <- nrow(Kz)
  vapply(lambda, \(l) {
    R <- diag(n) - Kz %*% solve(Kz + l * diag(n))
    sum(diag(R %*% K %*% R)) / n / (sum(diag(R)) / n)^2
  }, 1)
}

test_that("lambda minimizes the generalized cross-validation of its stage", {
  smooth <- kernel_rbf(1.5)
  fit <- quietly(iv(s$a, s$y, s$d, smooth, mu = 1))
  want <- gcv_R(gram_R(smooth, s$d), gram_R(smooth, s$a),
                fit$first_stage$lambda)
  expect_near(range(fit$first_stage$lambda), 40 * c(1e-6, 1), 1e-10)
  expect_near(fit$first_stage$gcv / want,
              rep(fit$first_stage$gcv[1] / want[1], length(want)), 1e-6)
  expect_near(fit$lambda[[1]], fit$first_stage$lambda[which.min(want)], 1e-12)
  asked <- quietly(iv(s$a, s$y, s$d, smooth, lambda = "gcv",
                           penalty = "l2", mu = 1, tol_learner = 1e-12))
  expect_near(asked$lambda, fit$lambda, 1e-12)
})

test_that("the first stage does not depend on the units of a learner", {
  lambda <- vapply(c(1e-4, 1), \(unit) {
    scaled <- kernel_function(\(x, y) unit * gram_R(narrow, x, y))
    iv_nested(s$a, s$b, s$c, s$d, s$y, mu_g = 1, mu_h = unit, kernel = list(
      a = narrow, b = scaled, c = narrow, d = narrow
    ))$lambda
  }, numeric(2))
  expect_near(lambda[, 1], lambda[, 2], 1e-12)
})

test_that("each moment of a nested fit has its own first stage", {
  smooth <- kernel_rbf(1.5)
  fit <- quietly(iv_nested(s$a, s$b, s$c, s$d, s$y, s$w, s$s, smooth,
                                mu_g = 1, mu_h = 1))
  gram <- \(name, rows) gram_R(smooth, s[[name]][rows, ])
  one <- s$s == 1
  two <- s$s == 0
  w <- s$w[two]
  # h(b) - w g(a): features of both, each counted alike.
  alike <- \(K) K / sum(diag(K))
  targets <- list(d = gram("a", one),
                  c = alike(gram("b", two)) + alike(w * t(w * gram("a", two))))
  for (of in c("d", "c")) {
    stage <- fit$first_stage[[of]]
    want <- gcv_R(gram(of, if (of == "d") one else two), targets[[of]],
                  stage$lambda)
    expect_identical(which.min(want), which.min(stage$gcv))
    expect_near(max(stage$gcv / want) / min(stage$gcv / want), 1, 1e-6)
    expect_near(fit$lambda[[paste0("lambda_", of)]],
                stage$lambda[which.min(want)], 1e-12)
  }
})

# rkhs_iv() and rkhs_iv_nested() with landmarks and random features: against the
# same estimators on the Gram matrices that the features have.

s <- iv_sample(60, 9)
kernel <- kernel_rbf(0.7)
rows <- c(2, 7, 11, 23, 34, 38, 41, 52, 55, 59)
blocks <- s[c("a", "b", "c", "d")]
landmark_maps <- lapply(blocks, \(x) {
  \(z) nystrom_R(kernel, z, x[rows, , drop = FALSE])
})
fourier_maps <- lapply(blocks, \(x) {
  \(z) fourier_R(0.7, z, reference_draws(2, 20))
})
mapped <- function(maps, names) {
  sapply(names, \(name) tcrossprod(maps[[name]](blocks[[name]])),
         simplify = FALSE)
}
sequential <- function(..., lambda = 0.5, mu = 0.2) {
  iv(s$a, s$y, s$d, kernel, lambda = lambda, mu = mu, ...)
}
nested <- function(..., lambda = c(0.5, 2)) {
  iv_nested(s$a, s$b, s$c, s$d, s$y, s$w, s$s, kernel,
                 lambda_c = lambda[1], lambda_d = lambda[2], mu_g = 0.2,
                 mu_h = 0.4, ...)
}
new <- list(a = s$a[1:9, ] + 0.2, b = s$b[1:9, ] - 0.1)

test_that("landmarks and features are the estimator on the K of their maps", {
  kinds <- list(landmarks = landmark_maps, features = fourier_maps)
  asked <- list(landmarks = rows, features = 20)
  for (kind in names(kinds)) {
    maps <- kinds[[kind]]
    for (penalty in c("norm", "l2")) {
      # Projections of few features have an effect.
      for (lambda in c(0, 0.5)) {
        problem <- iv_problem(mapped(maps, c("a", "d")), s$y)
        slow <- solve_R(problem, actions_R(problem, 0, lambda), penalty, 0.2)
        fit <- with_draws(reference_draws, {
          do.call(sequential, c(asked[kind], penalty = penalty,
                                lambda = lambda))
        })
        expect_lt(relative_error(fitted(fit), slow$g), 1e-8)
        at <- maps$a(new$a) %*% crossprod(maps$a(s$a), slow$a)
        expect_lt(relative_error(predict(fit, new$a), drop(at)), 1e-8)
        size <- c(landmarks = 10L, features = 20L)[[kind]]
        expect_identical(fit$rank, c(x = size, z = size))

        problem <- iv_problem(mapped(maps, names(blocks)), s$y, s$w, s$s)
        slow <- solve_R(problem, actions_R(problem, lambda, 2 * lambda),
                        penalty, 0.2, 0.4)
        fit <- with_draws(reference_draws, {
          do.call(nested, c(asked[kind], penalty = penalty,
                            list(lambda = c(1, 2) * lambda)))
        })
        expect_lt(relative_error(fit$fitted.values, cbind(slow$g, slow$h)),
                  1e-8)
        at <- cbind(maps$a(new$a) %*% crossprod(maps$a(s$a), slow$a),
                    maps$b(new$b) %*% crossprod(maps$b(s$b), slow$b))
        expect_lt(relative_error(predict(fit, new), at), 1e-8)
      }
    }
  }
})

test_that("all points as landmarks are the exact fit", {
  for (penalty in c("norm", "l2")) {
    few <- sequential(landmarks = 60, penalty = penalty)
    all <- quietly(sequential(penalty = penalty))
    expect_near(fitted(few), fitted(all), 1e-7)
    expect_near(predict(few, new$a), predict(all, new$a), 1e-7)
    few <- nested(landmarks = 60:1, penalty = penalty)
    all <- quietly(nested(penalty = penalty))
    expect_near(few$fitted.values, all$fitted.values, 1e-7)
    expect_near(predict(few, new), predict(all, new), 1e-7)
  }
})

# E |phi(x)'phi(y) - k(x, y)|^2 <= 1/m: 2,000 features are within 0.07 of each
# value of K but by chance, 60 within 0.4.
test_that("features tend to the exact fit", {
  all <- fitted(sequential())
  apart <- \(m) {
    set.seed(3)
    mean(replicate(3, mean((fitted(sequential(features = m)) - all)^2)))
  }
  expect_lt(apart(2000), apart(60) / 5)
})

test_that("coefficients are zero off the landmarks, and give the values", {
  fit <- nested(landmarks = rows)
  of <- as_weights(fit)
  expect_true(all(of$g[-rows] == 0) && all(of$h[-rows] == 0))
  expect_true(all(of$g[rows] != 0))
  expect_near(unname(fit$fitted.values[, "g"]),
              drop(gram_R(kernel, s$a) %*% of$g), 1e-9)
  expect_near(unname(fit$fitted.values[, "h"]),
              drop(gram_R(kernel, s$b) %*% of$h), 1e-9)
})

test_that("landmarks and features are drawn by R's generator", {
  for (asked in list(list(landmarks = 12), list(features = 12))) {
    draw <- \(seed) {
      set.seed(seed)
      fitted(do.call(sequential, asked))
    }
    expect_identical(draw(1), draw(1))
    expect_gt(max(abs(draw(1) - draw(2))), 1e-4)
  }
  set.seed(1)
  drawn <- sample.int(60, 12)
  set.seed(1)
  fit <- sequential(landmarks = 12)
  expect_identical(fitted(fit), fitted(sequential(landmarks = drawn)))
  expect_identical(which(as_weights(fit) != 0), sort(drawn))
  # Features know no points.
  expect_error(as_weights(sequential(features = 12)),
               class = "kernmean_error_input")
})

test_that("factors keep their levels beside landmarks or features", {
  f <- factor(letters[rep_len(1:5, 60)])
  K <- list(a = tcrossprod(fourier_maps$a(s$a)), d = outer(f, f, `==`) + 0)
  problem <- iv_problem(K, s$y)
  fit <- with_draws(reference_draws, {
    iv(s$a, s$y, f, list(x = kernel), penalty = "l2", lambda = 0,
            mu = 0.3, features = 20)
  })
  slow <- solve_R(problem, actions_R(problem), "l2", 0.3)
  expect_lt(relative_error(fitted(fit), slow$g), 1e-8)
  # With landmarks among which not all levels are.
  few <- rows[f[rows] != "a"]
  K$a <- tcrossprod(nystrom_R(kernel, s$a, s$a[few, ]))
  problem <- iv_problem(K, s$y)
  fit <- iv(s$a, s$y, f, list(x = kernel), penalty = "l2", lambda = 0,
                 mu = 0.3, landmarks = few)
  expect_lt(length(few), length(rows))
  slow <- solve_R(problem, actions_R(problem), "l2", 0.3)
  expect_lt(relative_error(fitted(fit), slow$g), 1e-8)
})

test_that("landmarks are rows of a gram, too", {
  grams <- iv(gram(s$a, kernel), s$y, as_gram(gram_R(kernel, s$d)),
                   lambda = 0.5, mu = 0.2, landmarks = rows)
  points <- sequential(landmarks = rows)
  expect_near(unname(fitted(grams)), unname(fitted(points)), 1e-9)
})

test_that("equal landmarks are one", {
  twice <- s$a[c(1:60, rows), ]
  z <- s$d[c(1:60, rows), ]
  y <- s$y[c(1:60, rows)]
  one <- iv(twice, y, z, kernel, lambda = 0.5, mu = 0.2, landmarks = rows)
  two <- iv(twice, y, z, kernel, lambda = 0.5, mu = 0.2,
                 landmarks = c(rows, 61:70))
  expect_near(fitted(two), fitted(one), 1e-8)
  expect_identical(two$rank, one$rank)
})

# 3,000 points: a Gram matrix takes 72 MB, the factor of 50 features 1.2 MB.
test_that("landmarks and features need no n x n matrix", {
  big <- iv_sample(3000, 4)
  before <- options(kernmean.memory = 2e7)
  on.exit(options(before))
  laplace <- kernel_laplace(0.5)
  expect_error(
    iv(big$a, big$y, big$d, laplace, lambda = 1, mu = 1),
    class = "kernmean_error_memory"
  )
  few <- iv(big$a, big$y, big$d, laplace, lambda = 1, mu = 1,
                 landmarks = 1:50)
  # Panels of rows add up to what all rows at once give.
  F <- \(x) {
    e <- eigen(gram_R(laplace, x[1:50, ]), TRUE)
    gram_R(laplace, x, x[1:50, ]) %*% e$vectors %*%
      (t(e$vectors) / sqrt(e$values))
  }
  Fa <- F(big$a)
  Fd <- F(big$d)
  X <- solve(t(chol(crossprod(Fd) + diag(50))), crossprod(Fd, cbind(Fa, big$y)))
  theta <- solve(crossprod(X[, 1:50]) + diag(50), crossprod(X[, 1:50], X[, 51]))
  expect_lt(relative_error(fitted(few), drop(Fa %*% theta)), 1e-8)
  expect_no_error(iv(big$a, big$y, big$d, kernel, lambda = 1, mu = 1,
                          features = 50))
})

test_that("panels of rows add up to the whole", {
  big <- iv_sample(300, 4)
  fits <- \() {
    list(
      iv(big$a, big$y, big$d, kernel, lambda = 1, mu = c(0.1, 1),
              folds = 3, landmarks = 1:20),
      iv_nested(big$a, big$b, big$c, big$d, big$y, big$w, big$s, kernel,
                     "l2", lambda_c = 1, lambda_d = 1, mu_g = 0.1, mu_h = 0.1)
    )
  }
  whole <- quietly(fits())
  # 64 rows are the least.
  parts <- with_binding("panel_cells", 64, quietly(fits()))
  for (i in 1:2) {
    expect_near(parts[[i]]$fitted.values, whole[[i]]$fitted.values, 1e-9)
    expect_near(parts[[i]]$criterion, whole[[i]]$criterion, 1e-9)
  }
  expect_near(parts[[1]]$cv$score, whole[[1]]$cv$score, 1e-10)
  expect_false(identical(parts[[1]]$fitted.values, whole[[1]]$fitted.values))
})

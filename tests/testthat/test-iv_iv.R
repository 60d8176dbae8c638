# rkhs_iv() and rkhs_iv_nested(): conditions that a solution meets, closed forms
# of special cases, two-stage least squares, and the doors.

s <- iv_sample(40)
# Narrow, so that Gram matrices are well conditioned: what is compared with
# tolerance 1e-8 is rounding times 1e4 at most.
narrow <- kernel_rbf(0.5)
level <- rep_len(1:6, 40)
K_of <- \(x, kernel = narrow) gram_R(kernel, as.matrix(x))
nested <- \(..., data = s) {
  iv_nested(data$a, data$b, data$c, data$d, data$y, ...)
}
new <- unname(s$b)
halves <- list(c = s$s == 0 | seq_along(s$s) < 9, d = s$s == 1)

# Every estimator: list(fit, problem, P, penalty, mu).
estimators <- function() {
  K <- list(a = K_of(s$a), b = K_of(s$b), c = K_of(s$c), d = K_of(s$d))
  few <- \(x) outer(x, x, `==`) + 0
  levels <- list(c = rep_len(1:5, 40), d = level)
  discrete <- replace(K, c("c", "d"), lapply(levels, few))
  one <- \(K) K[c("a", "d")]
  case <- \(fit, problem, P, penalty, mu) {
    list(fit = fit, problem = problem, P = P, penalty = penalty, mu = mu)
  }
  sequential <- \(penalty, K, z, lambda, mu) {
    problem <- iv_problem(one(K), s$y)
    fit <- iv(s$a, s$y, z, kernel = list(x = narrow), lambda = lambda,
                   penalty = penalty, mu = mu)
    case(fit, problem, actions_R(problem, 0, lambda), penalty, mu)
  }
  both <- \(penalty, K, c, d, lambda, mu, w = NULL, subset = NULL) {
    problem <- iv_problem(K, s$y, w, subset)
    fit <- iv_nested(
      s$a, s$b, c, d, s$y, w = w, subset = subset, penalty = penalty,
      kernel = list(a = narrow, b = narrow), lambda_c = lambda[1],
      lambda_d = lambda[2], mu_g = mu[1], mu_h = mu[2]
    )
    case(fit, problem, actions_R(problem, lambda[1], lambda[2]), penalty, mu)
  }
  points <- list(c = gram(s$c, narrow), d = gram(s$d, narrow))
  factors <- lapply(levels, factor)
  list(
    sequential("norm", K, points$d, 0.7, 0.2),
    sequential("norm", discrete, factors$d, 0, 0.2),
    sequential("l2", K, points$d, 0.7, 0.3),
    sequential("l2", discrete, factors$d, 0, 0.3),
    both("norm", K, points$c, points$d, c(0.4, 2), c(0.3, 0.1)),
    both("norm", K, points$c, points$d, c(0.4, 2), c(0.1, 0.3), s$w, s$s),
    both("norm", K, points$c, points$d, c(0.4, 2), c(0.3, 0.1), -s$w, halves),
    both("norm", discrete, factors$c, factors$d, c(0, 0), c(0.3, 0.1), s$w,
         s$s),
    both("l2", K, points$c, points$d, c(0.4, 2), c(0.3, 0.1), s$w),
    both("l2", discrete, factors$c, factors$d, c(0, 0), c(0.1, 0.3)),
    both("l2", discrete, factors$c, factors$d, c(0, 0), c(0.3, 0.1), s$w, s$s),
    both("l2", discrete, factors$c, factors$d, c(0, 3), c(0.3, 0.1), -s$w,
         halves)
  )
}
solved <- quietly(estimators())

test_that("solutions meet the normal equations as they are printed", {
  for (one in solved) {
    of <- lapply(one$fit$functions, `[[`, "weights")
    b <- if (is.null(of$h)) numeric(40) else of$h
    expect_lt(conditions_R(one$problem, one$P, one$penalty, of$g, b, one$mu[1],
                           rep_len(one$mu, 2)[2]), 1e-8)
    slow <- solve_R(one$problem, one$P, one$penalty, one$mu[1],
                    rep_len(one$mu, 2)[2])
    fitted <- cbind(slow$g, if (!is.null(of$h)) slow$h)
    expect_lt(relative_error(as.matrix(one$fit$fitted.values), fitted), 1e-8)
  }
})

test_that("the criterion is r'Pr/n of each moment", {
  for (one in solved) {
    fitted <- as.matrix(one$fit$fitted.values)
    problem <- one$problem
    left <- problem$y - fitted[, 1]
    want <- sum(left * (one$P$one %*% left)) / 40
    if (ncol(fitted) == 2L) {
      left <- fitted[, 2] - problem$w * fitted[, 1]
      want <- c(first = want, second = sum(left * (one$P$two %*% left)) / 40)
      expect_named(one$fit$criterion, names(want))
    }
    expect_equal(one$fit$criterion, want, tolerance = 1e-8,
                 ignore_attr = "names")
  }
})

# --- Closed forms -------------------------------------------------------------

test_that("a projection of full rank smooths y, and a warning says so", {
  expect_warning(
    fit <- iv(s$a, s$y, s$d, narrow, penalty = "l2", mu = 0.3),
    class = "kernmean_warning_instruments"
  )
  expect_near(unname(fitted(fit)), s$y / 1.3, 1e-8)
  expect_identical(fit$rank[["z"]], 40L)
  # The same whatever the instruments.
  other <- quietly(iv(s$a, s$y, s$d[40:1, ], narrow, penalty = "l2",
                           mu = 0.3))
  expect_near(predict(other, new), predict(fit, new), 1e-7)

  fit <- quietly(nested(w = s$w, kernel = narrow, penalty = "l2", mu_g = 0.3,
                        mu_h = 0.2))
  g <- s$y / (1 + 0.3 + s$w^2 * 0.2 / 1.2)
  expect_near(unname(fit$fitted.values), unname(cbind(g, s$w * g / 1.2)), 1e-8)

  fit <- quietly(nested(w = s$w, subset = s$s, kernel = narrow, penalty = "l2",
                        mu_g = 0.3, mu_h = 0.2))
  share <- 40 / sum(s$s)
  g <- s$s * s$y * share / (share + 0.3)
  expect_near(unname(fit$fitted.values), unname(cbind(g, 0)), 1e-8)
})

test_that("each instrument without effect is named in a warning", {
  asked <- \(...) {
    found <- NULL
    withCallingHandlers(
      nested(kernel = narrow, penalty = "l2", mu_g = 1, mu_h = 1, ...),
      kernmean_warning_instruments = \(w) {
        found <<- c(found, sub(".*instruments '(.)' keeps.*", "\\1",
                               conditionMessage(w)))
        invokeRestart("muffleWarning")
      }
    )
    sort(found)
  }
  expect_identical(asked(), c("c", "d"))
  expect_identical(asked(subset = s$s), c("c", "d"))
  expect_identical(asked(lambda_d = 1), "c")
  expect_null(asked(lambda_c = 1, lambda_d = 1))
  expect_identical(asked(lambda_c = 1, landmarks = 40), "d")
  expect_null(asked(landmarks = 12))
})

test_that("discrete instruments with a full learner give group means of y", {
  means <- ave(s$y, level)
  expect_warning(
    fit <- iv(s$a, s$y, factor(level), list(x = narrow), penalty = "l2",
                   mu = 0.3),
    class = "kernmean_warning"
  )
  expect_near(unname(fitted(fit)), means / 1.3, 1e-10)
  expect_identical(fit$rank[["z"]], 6L)
  # A constant instrument: the mean.
  fit <- quietly(iv(s$a, s$y, rep(1, 40), narrow, penalty = "l2",
                         mu = 0.3))
  expect_near(unname(fitted(fit)), rep(mean(s$y) / 1.3, 40), 1e-10)
})

# A Gram matrix of 20 points 0.01 apart has rank 7 or so in doubles.
test_that("close levels of an instrument are told apart exactly", {
  z <- rep(seq(0, 0.19, by = 0.01), 2)
  expect_lt(qr(K_of(z, kernel_rbf(1)))$rank, 12)
  fit <- quietly(iv(s$a, s$y, z, list(x = narrow, z = kernel_rbf(1)),
                         penalty = "l2", mu = 0.3))
  expect_near(unname(fitted(fit)), ave(s$y, z) / 1.3, 1e-10)
  expect_identical(fit$rank[["z"]], 20L)
  # In two columns; in half of the rows only.
  z <- cbind(z %% 0.05, floor(z / 0.05))
  fit <- quietly(nested(
    data = replace(s, c("c", "d"), list(z, z)), subset = s$s, w = s$w,
    kernel = list(a = narrow, b = narrow), penalty = "l2", mu_g = 0.3,
    mu_h = 0.2
  ))
  problem <- iv_problem(
    list(a = K_of(s$a), b = K_of(s$b), c = 0 + (as.matrix(dist(z)) < 1e-9),
         d = 0 + (as.matrix(dist(z)) < 1e-9)),
    s$y, s$w, s$s
  )
  slow <- solve_R(problem, actions_R(problem), "l2", 0.3, 0.2)
  expect_lt(relative_error(fit$fitted.values, cbind(slow$g, slow$h)), 1e-9)
})

# Between two eigenvalues that are far apart, by their shares of the largest.
test_that("tolerances say which directions count", {
  K <- lapply(s[c("a", "b", "c", "d")], \(x) gram_R(kernel_rbf(2), x))
  cut <- \(K, rows = 1:40) {
    values <- eigen(K[rows, rows], TRUE)$values
    share <- values / values[1]
    near <- 4:16
    at <- near[which.max(share[near] / share[near + 1])]
    list(rank = at, tol = sqrt(share[at] * share[at + 1]))
  }
  x <- cut(K$a)
  z <- cut(K$d)
  problem <- iv_problem(K[c("a", "d")], s$y)
  fit <- iv(s$a, s$y, s$d, kernel_rbf(2), penalty = "l2", mu = 0.1,
                 tol_learner = x$tol, tol_instrument = z$tol)
  slow <- solve_R(problem, actions_R(problem, tol = z$tol), "l2", 0.1,
                  tol = x$tol)
  expect_near(unname(fitted(fit)), slow$g, 1e-8)
  expect_identical(fit$rank, c(x = x$rank, z = z$rank))
  # Nested, of the rows of each moment, by one tolerance.
  one <- cut(K$d, which(s$s == 1))
  two <- \(tol) sum(eigen(K$c[s$s == 0, s$s == 0], TRUE)$values >
                     tol * eigen(K$c[s$s == 0, s$s == 0], TRUE)$values[1])
  problem <- iv_problem(K, s$y, s$w, s$s)
  fit <- quietly(nested(w = s$w, subset = s$s, kernel = kernel_rbf(2),
                        penalty = "l2", mu_g = 0.1, mu_h = 0.2,
                        tol_learner = 1e-4, tol_instrument = one$tol))
  expect_identical(fit$rank[["d"]], one$rank)
  expect_identical(fit$rank[["c"]], two(one$tol))
  slow <- solve_R(problem, actions_R(problem, tol = one$tol), "l2", 0.1, 0.2,
                  tol = 1e-4)
  expect_lt(relative_error(fit$fitted.values, cbind(slow$g, slow$h)), 1e-7)
})

test_that("a full learner's fitted values do not depend on its kernel", {
  P <- action_R(K_of(s$d), 0.7)
  want <- solve(P + 0.2 * diag(40), P %*% s$y)
  for (theta in c(0.2, 0.5)) {
    fit <- quietly(iv(
      s$a, s$y, s$d, list(x = kernel_rbf(theta), z = narrow), lambda = 0.7,
      penalty = "l2", mu = 0.2
    ))
    expect_near(unname(fitted(fit)), drop(want), 1e-8)
  }
})

# --- Two-stage least squares --------------------------------------------------

test_that("linear kernels without penalties are two-stage least squares", {
  want <- tsls_R(s$a, s$y, s$d)
  line <- kernel_poly(1, offset = 1)
  first <- iv(s$a, s$y, s$d, line, lambda = 0, mu = 1e-6)
  second <- iv(s$a, s$y, s$d, line, penalty = "l2", lambda = 0, mu = 1e-8)
  expect_near(unname(fitted(first)), want, 1e-6)
  expect_near(unname(fitted(second)), want, 1e-6)
  # More instruments than regressors.
  z <- cbind(s$d, s$d[, 1] * s$d[, 2], s$c)
  want <- tsls_R(s$a, s$y, z)
  first <- iv(s$a, s$y, z, line, lambda = 0, mu = 1e-6)
  expect_near(unname(fitted(first)), want, 1e-6)
  # Then h on g: b regressed on the fitted g, with the instruments c.
  fit <- nested(kernel = line, penalty = "l2", lambda_c = 0, lambda_d = 0,
                mu_g = 1e-8, mu_h = 1e-8)
  g <- tsls_R(s$a, s$y, s$d)
  expect_near(unname(fit$fitted.values[, "g"]), g, 1e-6)
  expect_near(unname(fit$fitted.values[, "h"]), tsls_R(s$b, g, s$c), 1e-6)
})

# --- Doors --------------------------------------------------------------------

test_that("grams take the place of points", {
  points <- iv(s$a, s$y, s$d, narrow, lambda = 1, mu = 0.3)
  grams <- iv(gram(s$a, narrow), s$y, as_gram(K_of(s$d)), lambda = 1,
                   mu = 0.3)
  expect_near(fitted(grams), fitted(points), 1e-10)
  # New points by their kernel values, where the sample has no points.
  values <- iv(as_gram(K_of(s$a)), s$y, s$d, list(z = narrow),
                    lambda = 1, mu = 0.3)
  expect_near(unname(predict(values, gram_R(narrow, new, s$a))),
              unname(predict(points, new)), 1e-10)
  points <- nested(kernel = narrow, lambda_c = 1, lambda_d = 1, mu_g = 0.3,
                   mu_h = 0.3)
  grams <- nested(data = replace(lapply(s, \(x) {
    if (is.matrix(x)) gram(x, narrow) else x
  }), "y", list(s$y)), lambda_c = 1, lambda_d = 1, mu_g = 0.3, mu_h = 0.3)
  expect_near(grams$fitted.values, points$fitted.values, 1e-10)
})

test_that("a factor is the kernel that is 1 for equal levels", {
  f <- factor(letters[level])
  same <- outer(level, level, `==`) + 0
  for (penalty in c("norm", "l2")) {
    for (lambda in c(0, 2)) {
      fit <- quietly(iv(s$a, s$y, f, list(x = narrow), penalty = penalty,
                             lambda = lambda, mu = 0.3))
      own <- quietly(iv(s$a, s$y, as_gram(same), list(x = narrow),
                             penalty = penalty, lambda = lambda, mu = 0.3))
      expect_near(unname(fitted(fit)), unname(fitted(own)), 1e-10)
    }
  }
  # Among numeric columns: kernel_gower().
  mixed <- data.frame(d1 = s$d[, 1], f)
  fit <- iv(s$a, s$y, mixed, narrow, lambda = 1, mu = 0.3)
  own <- iv(s$a, s$y, as_gram(gower_matrix(mixed)), list(x = narrow),
                 lambda = 1, mu = 0.3)
  expect_near(unname(fitted(fit)), unname(fitted(own)), 1e-10)
})

test_that("new levels of a factor are refused, far points warned of", {
  f <- factor(letters[level])
  fit <- iv(f, s$y, s$d, list(z = narrow), lambda = 1, mu = 0.3)
  want <- tapply(fitted(fit), f, `[`, 1)
  expect_near(unname(predict(fit, factor(c("c", "a")))),
              as.vector(want[c("c", "a")]), 1e-12)
  expect_error(predict(fit, factor(c("a", "z"))), "'z'",
               class = "kernmean_error_input")
  mixed <- data.frame(a1 = s$a[, 1], f)
  fit <- iv(mixed, s$y, s$d, narrow, lambda = 1, mu = 0.3)
  expect_error(predict(fit, data.frame(a1 = 1, f = "z")), "'z'",
               class = "kernmean_error_input")
  fit <- iv(s$a, s$y, s$d, narrow, lambda = 1, mu = 0.3)
  expect_warning(far <- predict(fit, rbind(c(0, 0), c(1e3, 0))), "1 of 2",
                 class = "kernmean_warning")
  expect_identical(unname(far[2]), 0)
})

frame <- data.frame(y = s$y, s$a, s$d, f = factor(letters[level]))

test_that("a formula is the default method", {
  both <- unname(cbind(s$a[, 1], s$d[, 2]))
  # Exogenous regressors stand on both sides, factors may be instruments, and a
  # dot after the bar is what stands before it.
  pairs <- list(
    list(y ~ a1 + a2 | d1 + d2, s$a, s$d),
    list(y ~ a1 + d2 | d1 + d2, both, s$d), list(y ~ a1 | f, s$a[, 1], frame$f),
    list(y ~ a1 + d2 | . - a1 + d1, both, s$d[, 2:1]),
    list(y ~ poly(a1, 2) + exp(d2) | d1 + d2,
         cbind(poly(s$a[, 1], 2), exp(s$d[, 2])), s$d)
  )
  for (pair in pairs) {
    fit <- iv(pair[[1]], frame, lambda = 1, mu = 0.3)
    plain <- iv(pair[[2]], s$y, pair[[3]], lambda = 1, mu = 0.3)
    expect_near(unname(fitted(fit)), unname(fitted(plain)), 1e-12)
    # Terms are those of the sample at new points, too.
    expect_near(unname(predict(fit, frame[4:6, ])), unname(fitted(plain)[4:6]),
                1e-10)
  }
  # Rows and missing values as in other models.
  fit <- rkhs_iv(y ~ a1 | d1, frame, subset = d2 > 0, lambda = 1, mu = 0.3)
  kept <- frame$d2 > 0
  plain <- iv(y ~ a1 | d1, frame[kept, ], lambda = 1, mu = 0.3)
  expect_near(fitted(fit), fitted(plain), 1e-12)
  holes <- replace(frame, cbind(c(3, 9), 4), NA)
  fit <- iv(y ~ a1 | d1, holes, na.action = na.omit, lambda = 1, mu = 0.3)
  plain <- iv(y ~ a1 | d1, frame[-c(3, 9), ], lambda = 1, mu = 0.3)
  expect_near(fitted(fit), fitted(plain), 1e-12)
})

test_that("predict() takes columns by name, and rows keep their names", {
  fit <- iv(s$a, s$y, s$d, narrow, lambda = 1, mu = 0.3)
  expect_equal(predict(fit), fitted(fit))
  expect_near(unname(predict(fit, s$a)), unname(fitted(fit)), 1e-10)
  new <- s$b[1:3, 2:1]
  dimnames(new) <- list(c("u", "v", "w"), c("a2", "a1"))
  expect_named(predict(fit, new), c("u", "v", "w"))
  expect_identical(predict(fit, new), predict(fit, new[, 2:1]))
  at <- drop(gram_R(narrow, new[, 2:1], s$a) %*% as_weights(fit))
  expect_near(unname(predict(fit, new)), unname(at), 1e-10)
  # A row's value does not depend on the others.
  expect_near(predict(fit, new)[2], predict(fit, new[2, , drop = FALSE]), 1e-13)
})

test_that("nested predictions have the columns g and h", {
  fit <- nested(w = s$w, kernel = narrow, lambda_c = 1, lambda_d = 1,
                mu_g = 0.2, mu_h = 0.3)
  new <- list(b = s$b[5:7, 2:1], a = s$a[5:7, ] + 0.1)
  got <- predict(fit, new)
  expect_identical(colnames(got), c("g", "h"))
  of <- as_weights(fit)
  want <- cbind(gram_R(narrow, new$a, s$a) %*% of$g,
                gram_R(narrow, s$b[5:7, ], s$b) %*% of$h)
  expect_near(unname(got), unname(want), 1e-10)
  g <- predict(fit, new["a"])
  h <- predict(fit, new["b"])
  expect_near(unname(drop(g)), unname(want[, 1]), 1e-10)
  expect_near(unname(drop(h)), unname(want[, 2]), 1e-10)
  expect_equal(unname(predict(fit)), unname(as.matrix(fit$fitted.values)))
})

test_that("residuals of nested fits are those of the moments", {
  fit <- nested(w = s$w, kernel = narrow, lambda_c = 1, lambda_d = 1,
                mu_g = 0.2, mu_h = 0.3)
  of <- fit$fitted.values
  expect_equal(unname(as.matrix(residuals(fit))),
               unname(cbind(s$y - of[, "g"], of[, "h"] - s$w * of[, "g"])))
})

test_that("an intercept is the mean of y, added", {
  plain <- iv(s$a, s$y - mean(s$y), s$d, narrow, lambda = 1, mu = 0.3)
  fit <- iv(s$a, s$y, s$d, narrow, lambda = 1, mu = 0.3, intercept = TRUE)
  expect_near(fitted(fit), fitted(plain) + mean(s$y), 1e-10)
  expect_near(predict(fit, new), predict(plain, new) + mean(s$y), 1e-10)
  expect_equal(fit$intercept, mean(s$y))
  off <- iv(s$a, s$y, s$d, narrow, lambda = 1, mu = 0.3, intercept = FALSE)
  expect_identical(off$intercept, 0)
})

test_that("any number of threads gives the same bits", {
  big <- iv_sample(400, 4)
  fits <- \(threads) with_threads(threads, {
    set.seed(3)
    list(
      quietly(iv(big$a, big$y, big$d, mu = c(1, 10))),
      quietly(nested(data = big, w = big$w, subset = big$s, penalty = "l2",
                     lambda_c = 1, lambda_d = 1, mu_g = 0.1, mu_h = 0.1)),
      iv(big$a, big$y, big$d, landmarks = 50, lambda = 1, mu = 1),
      iv(big$a, big$y, big$d, features = 50, lambda = 1, mu = 1)
    )
  })
  take <- \(fits) lapply(fits, \(f) f[c("mu", "fitted.values", "criterion")])
  expect_identical(take(fits(1)), take(fits(2)))
})

# Functionals of instrumental-variable fits: slow twins, refits, identities.

effect_data <- function(n = 60, seed = 1) {
  set.seed(seed)
  u <- rnorm(n)
  z <- rnorm(n)
  x <- z + u / 2 + rnorm(n) / 3
  list(x = x, y = sin(1.5 * x) + u + rnorm(n) / 3, z = z, w = rnorm(n),
       weights = runif(n, 0.5, 2), id = rep(seq_len(n / 3), 3))
}

effect <- \(...) quietly(kme_effect(...))
value <- \(...) unname(coef(effect(...)))

classic_fit <- function(d, ...) {
  quietly(rkhs_iv(d$x, d$y, d$z, lambda = 0.5, mu = 0.1, ...))
}

# A fit with all that a weak one may have.
full_fit <- function(d, correct = 0, ...) {
  quietly(rkhs_iv(d$x, d$y, d$z, lambda = 0.5, mu = 0.1, method = "weak",
                  linear = 0.2, controls = d$w, weights = d$weights,
                  control = iv_control(correct = correct), ...))
}

# The normal matrix and right side of some rows in the columns C, 1 and the
# control, and Z, features less what C says of them in all rows: P of these rows
# has C as well, D is that of all.
slow_system <- function(fit, d) {
  root <- \(block) {
    z <- block$sample$x
    k <- exp(-as.matrix(dist(z))^2 / 2 / block$sample$kernel$bandwidth^2)
    e <- eigen(k, TRUE)
    keep <- e$values > 1e-12 * e$values[1L]
    e$vectors[, keep] %*% diag(sqrt(e$values[keep]))
  }
  weak <- !is.null(fit$strength)
  w <- if (weak) d$weights / mean(d$weights) else rep(1, length(d$y))
  c <- if (weak) cbind(1, d$w - mean(w * d$w)) else matrix(1, length(d$y))
  z <- root(fit$blocks$x)
  if (weak) {
    line <- fit$blocks$x$sample$x %*% fit$error$slopes
    z <- cbind(sqrt(fit$linear) * line, z)
  }
  r <- sqrt(w)
  out <- \(m, of) m - c %*% qr.solve((c * r)[of, , drop = FALSE],
                                     (m * r)[of, , drop = FALSE])
  f <- root(fit$blocks$z)
  all <- seq_along(d$y)
  action <- \(of) {
    part <- (out(f, of) * r)[of, ]
    basis <- qr.Q(qr((c * r)[of, , drop = FALSE]))
    ridge <- crossprod(part) + fit$lambda[["lambda"]] * diag(ncol(f))
    list(p = part %*% solve(ridge, t(part)), c = tcrossprod(basis))
  }
  # Columns with the control at its mean.
  gamma <- qr.solve(c * r, z * r)
  plain <- cbind(1, 0 * c[, -1L], z - rep(gamma[1L, ], each = nrow(z)))
  z <- out(z, all)
  own <- diag(action(all)$p)
  alpha <- if (weak) fit$correct else 0
  left <- out(as.matrix(d$y), all)
  function(of = all) {
    part <- action(of)
    both <- (cbind(c, z) * r)[of, ]
    line <- cbind(0 * c, z)[of, ] * (r * alpha * own * r)[of]
    list(
      square = t(both) %*% (part$p + part$c) %*% both -
        t(line) %*% cbind(0 * c, z)[of, ],
      right = t(both) %*% (part$p + part$c) %*% (d$y * r)[of] -
        t(line) %*% left[of],
      columns = cbind(c, z), plain = plain, free = ncol(c)
    )
  }
}

# The inverse of the normal matrix of all rows, its eigenvalues at least 0.
slow_inverse <- function(s, mu) {
  at <- seq_len(s$free)
  e <- eigen(s$square[-at, -at], TRUE)
  n <- s$square
  n[-at, -at] <- e$vectors %*% ((pmax(e$values, 0) + mu) * t(e$vectors))
  n
}

test_that("g and its estimate are those of the slow twin, the ridge iterated", {
  d <- effect_data(45)
  rows <- 5:20
  for (fit in list(classic_fit(d), full_fit(d), full_fit(d, 0.4))) {
    s <- slow_system(fit, d)()
    n <- slow_inverse(s, fit$mu[["mu"]])
    at <- s$plain[rows, ]
    once <- solve(n, s$right)
    positive <- n - diag(rep(c(0, fit$mu[["mu"]]),
                             c(s$free, ncol(n) - s$free)))
    twice <- once + solve(n, s$right - positive %*% once)
    found <- effect(fit, target = d$x[rows])
    expect_equal(found$plugin, mean(at %*% once), tolerance = 1e-7)
    expect_equal(unname(coef(found)), mean(at %*% twice), tolerance = 1e-7)
    # m(g) of each row of the target.
    spread <- drop(at %*% once)
    expect_equal(found$influence[-(1:45)], (spread - mean(spread)) / 16,
                 tolerance = 1e-6)
  }
})

test_that("residuals are those of refits without the row, or the cluster", {
  d <- effect_data(45)
  units <- list(NULL, d$id)
  for (fit in list(classic_fit(d), full_fit(d))) {
    of <- slow_system(fit, d)
    mu <- fit$mu[["mu"]]
    for (clusters in units) {
      left <- effect(fit, clusters = clusters)$fits[[1L]]$residuals
      unit <- if (is.null(clusters)) 1:45 else clusters
      for (u in c(1, 7, 15)) {
        s <- of(which(unit != u))
        ridge <- diag(rep(c(0, mu), c(s$free, ncol(s$square) - s$free)))
        g <- s$columns %*% solve(s$square + ridge, s$right)
        expect_equal(left[unit == u], (d$y - g)[unit == u], tolerance = 1e-6)
      }
    }
  }
  # With a correction D stays that of all rows.
  fit <- full_fit(d, 0.4)
  of <- slow_system(fit, d)
  whole <- of()
  n <- slow_inverse(whole, fit$mu[["mu"]])
  left <- effect(fit)$fits[[1L]]$residuals
  for (i in c(1, 16, 22, 30)) {
    s <- of(-i)
    g <- s$columns %*% solve(n + s$square - whole$square, s$right)
    expect_equal(left[i], d$y[i] - g[i], tolerance = 1e-6)
  }
  # Clusters of a fit are left out together.
  clustered <- full_fit(d, clusters = d$id)
  expect_equal(effect(clustered)$fits,
               effect(full_fit(d), clusters = d$id)$fits)
})

test_that("an estimate is the mean of weights and outcomes", {
  d <- effect_data()
  set.seed(2)
  fits <- list(
    classic_fit(d), full_fit(d, 0.6), full_fit(d, 0.6, clusters = d$id),
    classic_fit(d, control = iv_control(landmarks = 20)),
    quietly(rkhs_iv(d$x, d$y, d$z, control = iv_control(features = 30)))
  )
  for (fit in fits) {
    for (found in list(effect(fit), effect(fit, policy = \(x) x + 0.5),
                       effect(fit, target = d$x[1:10]))) {
      w <- weights(found)
      expect_equal(mean(w * d$y), unname(coef(found)), tolerance = 1e-8)
      expect_equal(mean(w), (found$functional == "target") + 0)
      expect_equal(mean(found$fits[[1L]]$alpha * d$y), found$plugin,
                   tolerance = 1e-8)
      expect_lt(found$fits[[1L]]$imbalance[["after"]],
                found$fits[[1L]]$imbalance[["before"]])
    }
  }
  # y -> cy + d.
  other <- d
  other$y <- 3 * d$y + 7
  expect_equal(value(full_fit(other, 0.6)), 3 * value(full_fit(d, 0.6)))
  expect_equal(value(full_fit(other, 0.6), target = d$x[1:9]),
               3 * value(full_fit(d, 0.6), target = d$x[1:9]) + 7)
})

test_that("a fit without a share kept has the values of predict()", {
  d <- effect_data(200)
  set.seed(3)
  for (control in list(iv_control(rule = "min"),
                       iv_control(rule = "min", features = 40))) {
    fit <- quietly(rkhs_iv(d$x, d$y, d$z, control = control))
    expect_equal(fit$keep, 1, tolerance = 1e-4)
    new <- seq(-1, 1, 0.1)
    expect_equal(effect(fit, target = new)$plugin,
                 mean(quietly(predict(fit, new))), tolerance = 1e-4)
  }
})

test_that("lines without a ridge are two-stage least squares", {
  d <- effect_data(300)
  fit <- quietly(rkhs_iv(d$x, d$y, d$z, kernel = kernel_linear(), lambda = 0,
                         mu = 1e-9))
  first <- fitted(lm(d$x ~ d$z))
  b <- coef(lm(d$y ~ first))
  found <- effect(fit)
  expect_equal(unname(coef(found)), b[[2L]], tolerance = 1e-7)
  # The sandwich of unequal variances, with residuals of all rows.
  e <- d$y - b[[1L]] - b[[2L]] * d$x
  q <- (first - mean(first)) / sum((first - mean(first))^2)
  expect_equal(sum((weights(found) / 300 * e)^2), sum((q * e)^2),
               tolerance = 1e-7)
  ratio <- sqrt(vcov(found)[1L] / (sum((q * e)^2) * 300 / 299))
  expect_gt(ratio, 1)
  expect_lt(ratio, 1.03)
  # The line of a weak fit, not penalized.
  line <- quietly(rkhs_iv(d$x, d$y, d$z, kernel = list(z = kernel_linear()),
                          lambda = 0, mu = 1e3, linear = Inf, method = "weak",
                          control = iv_control(correct = 0)))
  expect_equal(value(line), b[[2L]], tolerance = 1e-3)
})

test_that("derivatives are limits of policies", {
  d <- effect_data(90)
  set.seed(4)
  frame <- data.frame(a = d$x, b = d$w)
  fits <- list(
    list(kernel_rbf(), FALSE), list(kernel_matern(3 / 2), TRUE),
    list(kernel_matern(5 / 2), "whiten"), list(kernel_poly(3), TRUE)
  )
  fits <- lapply(fits, \(of) {
    quietly(rkhs_iv(frame, d$y, cbind(d$z, d$w), kernel = list(x = of[[1L]]),
                    control = iv_control(landmarks = 30, scale = of[[2L]])))
  })
  fits <- c(fits, list(quietly(rkhs_iv(
    frame, d$y, cbind(d$z, d$w), control = iv_control(features = 30)
  ))))
  h <- 1e-4
  moved <- \(by) {
    force(by)
    \(data) {
      data$b <- data$b + by
      data
    }
  }
  for (fit in fits) {
    slope <- (value(fit, policy = moved(h)) -
                value(fit, policy = moved(-h))) / 2 / h
    expect_equal(value(fit, of = "b"), slope, tolerance = 1e-5)
    expect_equal(value(fit, of = 2), value(fit, of = "b"))
  }
})

test_that("targets are rows, embeddings and points that are smoothed", {
  d <- effect_data()
  for (fit in list(classic_fit(d), full_fit(d, 0.3))) {
    rows <- d$x[1:20]
    of <- kme(rows, fit$kernels$x)
    expect_equal(value(fit, target = of), value(fit, target = rows))
    # Rows that are a sample have an error of their own.
    expect_equal(
      vcov(effect(fit, target = rows)) - vcov(effect(fit, target = of)),
      matrix(var(20 * effect(fit, target = rows)$influence[-(1:60)]) / 20,
             dimnames = list("target", "target")), tolerance = 1e-6
    )
    grid <- 0.4 + 0.3 * qnorm(ppoints(4000))
    expect_equal(value(fit, target = 0.4, smooth = 0.3),
                 value(fit, target = grid), tolerance = 1e-4)
    mixture <- list(weights = 1, means = matrix(0.4),
                    covariances = array(0.09, c(1, 1, 1)))
    expect_equal(value(fit, target = mixture),
                 value(fit, target = 0.4, smooth = 0.3))
  }
})

test_that("errors are of the units, with clusters their sums", {
  d <- effect_data()
  fit <- classic_fit(d)
  found <- effect(fit)
  expect_equal(vcov(found)[1L], sum(found$influence^2) * 60 / 59)
  expect_equal(nobs(found), 60)
  clustered <- effect(fit, clusters = d$id)
  sums <- tapply(clustered$influence, d$id, sum)
  expect_equal(vcov(clustered)[1L], sum(sums^2) * 20 / 19)
  of <- effect(fit, clusters = d$id, target = d$x[1:7])
  # Two independent samples.
  sums <- tapply(of$influence[1:60], d$id, sum)
  expect_equal(vcov(of)[1L], sum(sums^2) * 20 / 19 +
                 sum(of$influence[61:67]^2) * 7 / 6)
})

test_that("the penalty is the minimum of the fit, or the one given", {
  d <- effect_data(150)
  fit <- quietly(rkhs_iv(d$x, d$y, d$z))
  least <- update(fit, rule = "min")
  expect_false(fit$mu == least$mu)
  expect_equal(value(fit), value(least))
  expect_equal(effect(fit)$fits[[1L]]$mu, unname(least$mu))
  given <- quietly(update(fit, mu = 5))
  expect_equal(effect(given)$fits[[1L]]$mu, 5)
})

test_that("what instruments do not identify is wide, with a warning", {
  set.seed(5)
  u <- rnorm(300)
  z <- rnorm(300)
  x <- u + rnorm(300)
  fit <- quietly(rkhs_iv(x, x + u, z, control = iv_control(landmarks = 30)))
  expect_warning(found <- kme_effect(fit), class = "kernmean_warning_weak")
  expect_lt(confint(found)[1L], 1)
  expect_gt(confint(found)[2L], 1)
})

test_that("intervals hold the truth, of both methods", {
  # Of 15 intervals of level .95 more than 4 miss in 6 of 10,000 cases.
  set.seed(6)
  truth <- 1.5 * exp(-1.5^2 * 1.25 / 2)
  missed <- rowSums(replicate(15, {
    z <- rnorm(200)
    v <- rnorm(200)
    x <- z + v / 2
    y <- sin(1.5 * x) + 0.6 * v + 0.8 * rnorm(200)
    vapply(c("weak", "classic"), \(method) {
      fit <- quietly(rkhs_iv(x, y, z, method = method, mu = 200 * 10^(-4:0),
                             control = iv_control(landmarks = 20)))
      ends <- confint(effect(fit))
      truth < ends[1L] || truth > ends[2L]
    }, NA)
  }))
  expect_lte(max(missed), 4)
})

# The estimate of nested fits with both constants free, by the normal equations
# of the rows of both moments: one more step of the ridge.
slow_nested <- function(fit, d, subset, w, policy) {
  root <- \(block) {
    s <- block$sample
    k <- exp(-as.matrix(dist(s$x))^2 / 2 / s$kernel$bandwidth^2)
    e <- eigen(k, TRUE)
    keep <- e$values > 1e-12 * e$values[1L]
    list(at = \(z) {
      new <- exp(-outer(drop(scale_points(s$kernel, as.matrix(z))),
                        drop(s$x), `-`)^2 / 2 / s$kernel$bandwidth^2)
      new %*% e$vectors[, keep] %*% diag(1 / sqrt(e$values[keep]))
    })
  }
  f <- lapply(fit$blocks, root)
  n <- length(d$y)
  i <- list(d = which(subset$d == 1), c = which(subset$c == 1))
  action <- \(z, lambda) {
    z <- scale(z, scale = FALSE)
    n / nrow(z) * (z %*% solve(crossprod(z) + lambda * diag(ncol(z)), t(z)) +
                     1 / nrow(z))
  }
  of <- list(a = f$a$at(d$a), b = f$b$at(d$b))
  z <- rbind(
    cbind(1, of$a[i$d, ], 0, 0 * of$b[i$d, ]),
    cbind(-w[i$c], -w[i$c] * of$a[i$c, ], 1, of$b[i$c, ])
  )
  p <- matrix(0, nrow(z), nrow(z))
  first <- seq_along(i$d)
  p[first, first] <- action(f$d$at(d$d)[i$d, ], fit$lambda[["lambda_d"]])
  p[-first, -first] <- action(f$c$at(d$c)[i$c, ], fit$lambda[["lambda_c"]])
  g <- seq_len(1 + ncol(of$a))
  penalty <- diag(ifelse(seq_len(ncol(z)) %in% g, fit$mu[1], fit$mu[2]))
  penalty[c(1, 1 + max(g)), ] <- 0
  inner <- crossprod(z, p %*% z)
  inverse <- solve(inner + penalty)
  value <- colMeans(f$b$at(policy(d$b))[i$c, ] - of$b[i$c, ])
  functional <- c(numeric(length(g)), 0, value)
  step <- 2 * inverse - inverse %*% inner %*% inverse
  drop(functional %*% step %*% crossprod(z, p %*% c(d$y[i$d], 0 * i$c)))
}

test_that("effects of nested fits are those of both moments", {
  set.seed(3)
  n <- 50
  d <- data.frame(b = rnorm(n), d = rnorm(n), c = rnorm(n))
  e <- rnorm(n)
  d$a <- (d$b + d$d + e) / 2
  d$b <- d$b + d$c
  d$y <- d$a^2 + e
  up <- \(x) x + 0.3
  moment <- rep(0:1, n / 2)
  for (case in list(
    list(w = NULL, subset = NULL), list(w = 1 + d$c^2 / 9, subset = NULL),
    list(w = NULL, subset = list(c = 1 - moment, d = moment))
  )) {
    fit <- quietly(rkhs_iv_nested(
      d$a, d$b, d$c, d$d, d$y, w = case$w, subset = case$subset, lambda_c = 0.5,
      lambda_d = 0.4, mu_g = 0.2, mu_h = 0.3
    ))
    rows <- if (is.null(case$subset)) list(c = rep(1, n), d = rep(1, n)) else
      case$subset
    w <- if (is.null(case$w)) rep(1, n) else case$w
    found <- effect(fit, policy = up)
    expect_equal(unname(coef(found)), slow_nested(fit, d, rows, w, up),
                 tolerance = 1e-4)
    # It is linear in y, with the weights of the fit.
    expect_equal(unname(coef(found)), mean(weights(found) * d$y))
    expect_equal(coef(effect(update(fit, y = 2 * d$y), policy = up)),
                 2 * coef(found), tolerance = 1e-6)
    expect_equal(vcov(found)[1], sum(found$influence^2) * n / (n - 1))
  }
  # A mean over a population, of either function.
  of_g <- effect(fit, target = d$a, what = "g")
  expect_equal(of_g$plugin, mean(predict(fit, list(a = d$a))[, "g"]),
               tolerance = 0.2)
  expect_output(print(of_g), "of g by instrumental-variable")
  expect_identical(dim(generics::tidy(of_g)), c(1L, 5L))
})

test_that("noise as the instrument of a moment is warned of", {
  set.seed(3)
  n <- 200
  d <- rnorm(n)
  b <- rnorm(n)
  a <- b + rnorm(n)
  fit <- quietly(rkhs_iv_nested(a, b, b, d, a + rnorm(n)))
  expect_warning(kme_effect(fit, target = b), "instruments are weak",
                 class = "kernmean_warning_weak")
})

test_that("what has no such functional is refused", {
  d <- effect_data()
  fit <- classic_fit(d)
  refused <- \(what, ...) {
    expect_error(effect(...), what, class = "kernmean_error_input")
  }
  nested <- quietly(rkhs_iv_nested(d$x, d$w, d$w, d$z, d$y, lambda_c = 1,
                                   lambda_d = 1, mu_g = 1, mu_h = 1))
  expect_error(effect(nested, what = "f"), "'what' must be",
               class = "kernmean_error_input")
  expect_error(effect(fit, what = "g"), "'what' must be NULL but for nested",
               class = "kernmean_error_input")
  refused("penalty = \"norm\"", quietly(rkhs_iv(d$x, d$y, d$z,
                                                penalty = "l2")))
  refused("points", quietly(rkhs_iv(as_gram(exp(-as.matrix(dist(d$x)))), d$y,
                                    d$z, lambda = 1, mu = 1)))
  refused("'smooth' must be given", fit, target = 1)
  refused("'smooth' must not be given without 'target'", fit, smooth = 1)
  refused("'smooth' must be", fit, target = 1, smooth = c(1, 2))
  refused("'policy' must return", fit, policy = \(x) x[-1L, , drop = FALSE])
  refused("'policy' must have", fit, policy = \(x) x * NA)
  refused("'target' must have 1 column", fit, target = cbind(1:3, 1:3))
  refused("'functional' must not be given when 'policy'", fit, "derivative",
          policy = \(x) x)
  refused("'clusters' must be", fit, clusters = 1:3)
  refused("'kernel' must have derivatives", quietly(update(
    fit, kernel = kernel_laplace()
  )))
  two <- quietly(rkhs_iv(cbind(d$x, d$w), d$y, d$z, lambda = 1, mu = 1))
  refused("'of' must be one of", two)
  expect_output(print(effect(two, of = 2)), "derivative along x2 by")
  level <- quietly(rkhs_iv(factor(d$id %% 3), d$y, d$z, lambda = 1, mu = 1))
  refused("'of' must be a numeric column", level)
  refused("'policy' must", level, policy = \(x) {
    x[[1L]] <- "new"
    x
  })
  features <- quietly(rkhs_iv(d$x, d$y, d$z,
                              control = iv_control(features = 20)))
  refused("random features", features, target = 1, smooth = 1)
})

test_that("policies of factors, and data of a formula", {
  d <- as.data.frame(effect_data()[1:5])
  d$f <- factor(rep(c("a", "b", "c"), 20))
  fit <- quietly(rkhs_iv(y ~ x + f | z + f, d, controls = ~ w))
  found <- effect(fit, policy = \(data) {
    data$f[] <- "a"
    data
  })
  now <- d
  now$f[] <- "a"
  expect_equal(found$plugin, effect(fit, target = now)$plugin -
                 effect(fit, target = d)$plugin)
  d$y[3] <- NA
  left <- quietly(rkhs_iv(y ~ x | z, d, na.action = na.omit))
  expect_output(print(effect(left)), "1 row with missing values dropped")
})

test_that("an effect has the methods of its kind", {
  skip_if_not_installed("generics")
  d <- effect_data()
  fit <- classic_fit(d)
  found <- effect(fit, clusters = d$id)
  expect_output(print(found), "Average derivative by instrumental-variable")
  expect_output(print(found), "60 rows, 20 clusters")
  expect_equal(confint(found)[1:2],
               coef(found)[[1L]] + qt(c(0.025, 0.975), 19) *
                 sqrt(vcov(found)[1L]))
  row <- generics::tidy(found, conf.int = TRUE)
  expect_equal(row$term, "derivative")
  expect_equal(row$std.error, sqrt(vcov(found)[1L]))
  expect_equal(generics::glance(found)$clusters, 20)
  points <- generics::augment(found)
  expect_equal(names(points), c("y", "x", "z", ".resid", ".alpha",
                                ".effective"))
  moved <- effect(fit, policy = \(x) x + 1, clusters = d$id)
  again <- quietly(update(found, policy = \(x) x + 1))
  expect_equal(again$coefficients, moved$coefficients)
  expect_equal(again$vcov, moved$vcov)
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_equal(plot(found)$term, "derivative")
  expect_equal(plot(found, "overlap")$weight, drop(unname(weights(found))))
})

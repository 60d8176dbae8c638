# Method "weak", the formulas of R/iv_weak.R on Gram matrices, and identities.

weak_data <- function(n = 60, seed = 1) {
  set.seed(seed)
  u <- rnorm(n)
  z <- rnorm(n)
  x <- 0.6 * z + u + rnorm(n) / 2
  list(x = x, y = sin(x) + u + rnorm(n) / 3, z = z)
}

# Without what is said of instruments that are weak.
weak <- \(...) quietly(iv(..., method = "weak"))
predict <- \(...) quietly(stats::predict(...))

root_R <- function(K) {
  e <- eigen(K, TRUE)
  keep <- e$values > 1e-11 * e$values[1]
  e$vectors[, keep, drop = FALSE] %*% diag(sqrt(e$values[keep]), sum(keep))
}

ridge_R <- \(A, b, mu) {
  a <- eigen(A, TRUE)
  drop(a$vectors %*% (crossprod(a$vectors, b) / (pmax(a$values, 0) + mu)))
}

# The slow twin: P and its diagonal in full. `straight`: the linear columns,
# `design`: 1 and controls.
slow_weak <- function(kx, kz, y, lambda, mu, alpha, straight = NULL, s = 0,
                      design = rep(1, length(y))) {
  h <- diag(length(y)) - tcrossprod(qr.Q(qr(design)))
  features <- h %*% kx %*% h
  line <- if (!is.null(straight)) h %*% straight
  both <- features + if (is.null(line)) 0 else s * tcrossprod(line)
  kz <- h %*% kz %*% h
  p <- kz %*% solve(kz + lambda * diag(length(y)))
  p <- (p + t(p)) / 2
  q <- p - alpha * diag(diag(p))
  f <- root_R(both)
  theta <- ridge_R(crossprod(f, q %*% f), crossprod(f, q %*% h %*% y), mu)
  # Columns of the design take degrees of freedom, too.
  free <- 1 - (NCOL(design) - 1) / length(y)
  left <- \(K) {
    sum(p * K) / sum(diag(p) * diag(K)) * (free - sum(diag(p)) / length(y)) /
      (1 - sum(p * K) / sum(diag(K)))
  }
  r <- drop(h %*% y - f %*% theta)
  mean <- sum(diag(p) * r^2)
  shape <- mean^2 / (2 * sum(outer(r, r)^2 * p^2))
  j <- sum(r * (p %*% r)) / mean
  chance <- \(ratio, own) {
    shape <- (sum(diag(p)) * sum(diag(own)))^2 / (2 * sum(p^2) * sum(own^2))
    pgamma(free * ratio, shape, shape, lower.tail = FALSE)
  }
  ratio <- \(K) sum(p * K) / sum(diag(p) * diag(K))
  own <- \(f) crossprod(f, diag(p) * f)
  list(g = drop(y - h %*% y + f %*% theta), d = diag(p), F = left(features),
       first = if (!is.null(line)) drop(p %*% line),
       overid = c(statistic = j,
                  p.value = pgamma(j, shape, shape, lower.tail = FALSE)),
       F_linear = if (!is.null(line)) left(tcrossprod(line)),
       p = c(chance(ratio(features), own(root_R(features))),
             if (!is.null(line)) chance(ratio(tcrossprod(line)), own(line))))
}

grams <- function(data, fit) {
  lapply(c(x = "x", z = "z"), \(of) {
    as.matrix(gram(data[[of]], fit$kernels[[of]])$K)
  })
}

test_that("the fit is that of centered Gram matrices", {
  data <- weak_data()
  for (alpha in c(0, 0.4, 1)) {
    for (s in c(0, 2)) {
      fit <- weak(data$x, data$y, data$z, lambda = 0.3, mu = 0.5, linear = s,
                  correct = alpha)
      k <- grams(data, fit)
      slow <- slow_weak(k$x, k$z, data$y, 0.3, 0.5, alpha,
                        data$x / sd(data$x), s)
      # 1e-13 of the trace of K is left out of the factors.
      expect_equal(unname(fitted(fit)), slow$g, tolerance = 1e-7)
      expect_equal(fit$strength$df, sum(slow$d), tolerance = 1e-8)
      expect_true(all(slow$d >= 0 & slow$d < 1))
      expect_equal(fit$strength$F, slow$F, tolerance = 1e-7)
      expect_equal(fit$strength$F_linear, slow$F_linear, tolerance = 1e-7)
      expect_equal(fit$strength$p.value, slow$p[1], tolerance = 1e-6)
      expect_equal(fit$strength$p_linear, slow$p[2], tolerance = 1e-6)
      expect_identical(fit$keep, 1)
      expect_equal(fit$error$overid, slow$overid, tolerance = 1e-6)
      expect_equal(fit$error$first$x$fitted, slow$first, tolerance = 1e-7)
    }
  }
})

test_that("the rule goes by the strength", {
  data <- weak_data()
  fits <- lapply(c(0.03, 0.3, 3), \(size) {
    weak(data$x + size * data$z, data$y, data$z, mu = 0.5)
  })
  for (fit in fits) {
    of <- fit$strength
    least <- max(1, min(of$F, of$F_linear))
    expect_equal(fit$correct, min(1, max(
      1 / least^2, max(0, 1 - 1 / of$df) * min(1, 3 / least)
    )))
    expect_equal(fit$linear,
                 30 * max(0, 1 - 1 / of$F_linear) / max(1, of$F)^2)
    expect_equal(fit$keep, 1 - sqrt(of$p.value * of$p_linear))
    # Of theta, not of the mean.
    all <- quietly(update(fit, correct = fit$correct, linear = fit$linear,
                          lambda = fit$lambda[[1]]))
    expect_equal(fitted(fit) - mean(data$y),
                 fit$keep * (fitted(all) - mean(data$y)))
  }
})

test_that("without a correction and a line it is Estimator 1 on these", {
  data <- weak_data()
  fit <- weak(data$x, data$y, data$z, lambda = 0.3, mu = 0.5, linear = 0,
              correct = 0)
  h <- diag(60) - 1 / 60
  k <- lapply(grams(data, fit), \(k) as_gram(h %*% k %*% h))
  old <- iv(k$x, data$y, k$z, lambda = 0.3, mu = 0.5, intercept = TRUE)
  expect_equal(unname(fitted(fit)), unname(fitted(old)), tolerance = 1e-7)
})

test_that("straight kernels are two-stage least squares and its jackknife", {
  set.seed(2)
  n <- 80
  z <- matrix(rnorm(n * 3), n)
  u <- rnorm(n)
  x <- drop(z %*% c(0.5, 0.3, 0.2)) + u + rnorm(n) / 2
  y <- x + u
  h <- diag(n) - 1 / n
  p <- h %*% z %*% solve(crossprod(z, h %*% z), crossprod(z, h))
  for (alpha in c(0, 0.5, 1)) {
    fit <- weak(x, y, z, lambda = 0, mu = 1e-6, linear = 0,
                kernel = kernel_poly(1), correct = alpha, scale = FALSE)
    q <- h %*% (p - alpha * diag(diag(p))) %*% h
    expect_equal(unname(diff(predict(fit, c(0, 1)))),
                 sum(x * (q %*% y)) / sum(x * (q %*% x)), tolerance = 1e-6)
  }
  # A line without a penalty, with controls, of real data; none for kernels of
  # lines, which have a free intercept.
  expect_no_warning(
    fit <- rkhs_iv(mpg ~ hp | disp + cyl, mtcars, kernel = kernel_linear(),
                   controls = ~ wt + factor(am), lambda = 0, mu = 1e-6,
                   linear = Inf,
                   control = iv_control(correct = 0, scale = TRUE))
  )
  design <- model.matrix(~ wt + am, mtcars)[, -1]
  expect_equal(unname(fitted(fit)), unname(tsls_R(
    cbind(mtcars$hp, design), mtcars$mpg, cbind(mtcars$disp, mtcars$cyl, design)
  )), tolerance = 1e-6)
})

test_that("F of groups of one size is that of their analysis of variance", {
  fit <- weak(Sepal.Length ~ Petal.Length | Species, iris, lambda = 0, mu = 1)
  f <- summary(aov(Petal.Length ~ Species, iris))[[1]][1, "F value"]
  expect_equal(fit$strength$F_linear, f * 148 / 147, tolerance = 1e-8)
  expect_equal(fit$strength$df, 2, tolerance = 1e-8)
})

# Held-out scores by matrices of rows. Leverages are those of all rows.
slow_scores <- function(kx, kz, y, lambda, grid, alpha, folds) {
  n <- length(y)
  h <- diag(n) - 1 / n
  f <- root_R(h %*% kx %*% h)
  i <- root_R(h %*% kz %*% h)
  action <- \(rows) {
    part <- i[rows, , drop = FALSE]
    part %*% solve(crossprod(part) + lambda * length(rows) / n * diag(ncol(i)),
                   t(part))
  }
  d <- diag(action(seq_len(n)))
  t(vapply(split(seq_len(n), folds), \(rows) {
    others <- setdiff(seq_len(n), rows)
    q <- action(others) - alpha * n / length(others) * diag(d[others])
    part <- f[others, ]
    middle <- mean(y[others])
    vapply(grid, \(mu) {
      theta <- ridge_R(crossprod(part, q %*% part),
                       crossprod(part, q %*% (y[others] - middle)),
                       mu * length(others) / n)
      r <- y[rows] - middle - f[rows, ] %*% theta
      sum(r * (action(rows) %*% r)) / length(rows)^2
    }, 0)
  }, grid))
}

test_that("held-out scores are those of refits, in folds of the fixed order", {
  data <- weak_data(50)
  # Weak instruments have one deal.
  lost <- weak(data$x, data$y, rev(data$z), lambda = 0.5, mu = 10^(-1:2))
  expect_identical(dim(attr(lost$cv, "folds")), c(6L, 4L))
  level <- gl(2, 1, 50)
  data$x <- data$x + 3 * data$z
  mu <- 10^(-1:2)
  for (alpha in c(0, 0.7)) {
    fit <- weak(data$x, data$y, data$z, lambda = 0.5, mu = mu, linear = 0,
                correct = alpha, folds = 4)
    k <- grams(data, fit)
    scores <- lapply(deals_R(50, 4), \(folds) {
      slow_scores(k$x, k$z, data$y, 0.5, mu, alpha, folds)
    })
    expect_equal(sort(attr(fit$cv, "folds")), sort(unlist(scores)),
                 tolerance = 1e-6)
    # The errors are those of one deal.
    all <- do.call(rbind, scores)
    expect_equal(fit$cv$se, apply(all, 2, sd) / 2, tolerance = 1e-6)
  }
  # The levels of a single factor are in all folds.
  x <- data$x + 9 * as.numeric(level)
  by <- \(folds) sort(attr(weak(x, data$y, level, lambda = 0.5, mu = mu,
                                linear = 0, folds = folds)$cv, "folds"))
  expect_equal(by(4), sort(unlist(lapply(deals_R(50, 4, level), by))))
})

test_that("landmarks at all rows are exact, others and features are maps", {
  data <- weak_data()
  fit <- weak(data$x, data$y, data$z)
  all <- weak(data$x, data$y, data$z, landmarks = 1:60)
  expect_equal(fitted(all), fitted(fit), tolerance = 1e-5)
  expect_equal(all$strength, fit$strength, tolerance = 1e-5)
  # Fewer than it takes for eigenvalues that are rounding.
  rows <- c(3, 14, 28, 37, 55)
  x <- as.matrix(data$x)
  z <- as.matrix(data$z)
  draws <- list(normals = matrix(rnorm(20), 1), offsets = runif(20, 0, 6))
  maps <- list(landmarks = lapply(list(x, z), \(x) {
    nystrom_R(kernel_rbf(1), x, x[rows, , drop = FALSE])
  }), features = lapply(list(x, z), \(x) fourier_R(1, x, draws)))
  asked <- list(landmarks = rows, features = 20)
  for (kind in names(maps)) {
    fit <- with_draws(\(d, m) draws, {
      do.call(weak, c(list(x, data$y, z, kernel_rbf(1), lambda = 0.3, mu = 0.5,
                           linear = 2, correct = 0.5), asked[kind]))
    })
    k <- lapply(maps[[kind]], tcrossprod)
    slow <- slow_weak(k[[1]], k[[2]], data$y, 0.3, 0.5, 0.5, x / sd(x), 2)
    expect_equal(unname(fitted(fit)), slow$g, tolerance = 1e-7)
    expect_equal(unname(predict(fit, x)), slow$g, tolerance = 1e-7)
    expect_equal(predict(fit, x, interval = TRUE), ignore_attr = TRUE,
                 predict(fit, interval = TRUE), tolerance = 1e-7)
  }
})

test_that("units of the data and of kernels do not matter", {
  data <- weak_data()
  fit <- weak(data$x, data$y, data$z)
  other <- weak(5 * data$x - 2, 3 * data$y + 10, data$z / 7)
  expect_equal(fitted(other), 3 * fitted(fit) + 10, tolerance = 1e-8)
  expect_equal(other$strength, fit$strength, tolerance = 1e-8)
  expect_equal(unname(other$mu), unname(fit$mu))
  expect_equal(predict(other, interval = TRUE),
               3 * predict(fit, interval = TRUE) + 10, tolerance = 1e-8)
  for (unit in c(1e-150, 1e150)) {
    other <- weak(data$x, unit * data$y, data$z)
    expect_equal(predict(other, interval = TRUE) / unit,
                 predict(fit, interval = TRUE), tolerance = 1e-8)
    expect_equal(other$error$overid, fit$error$overid, tolerance = 1e-8)
  }
  none <- weak(data$x, numeric(60), data$z)
  expect_false(any(grepl("residuals|NaN", capture.output(none))))
  expect_identical(unique(c(predict(none, interval = TRUE))), 0)
  # k(x, x) = 4.
  of <- \(times) kernel_function(\(x, y) times * gram_R(kernel_rbf(1), x, y))
  one <- weak(data$x, data$y, data$z, of(1))
  four <- weak(data$x, data$y, data$z, of(4))
  expect_equal(fitted(four), fitted(one), tolerance = 1e-6)
  expect_equal(four$strength, one$strength, tolerance = 1e-6)
})

test_that("folds are the same each time and take nothing of the generator", {
  data <- weak_data(100)
  set.seed(7)
  before <- .Random.seed
  one <- weak(data$x, data$y, data$z)
  expect_identical(.Random.seed, before)
  expect_identical(fitted(weak(data$x, data$y, data$z)), fitted(one))
  # Given folds move with their rows.
  folds <- rep_len(1:5, 100)
  order <- sample(100)
  of <- \(i) weak(data$x[i], data$y[i], data$z[i],
                  folds = factor(folds[i], 1:5))
  expect_equal(unname(fitted(of(order))), unname(fitted(of(1:100)))[order],
               tolerance = 1e-6)
})

# --- What instruments say -----------------------------------------------------

test_that("regressors that are their own instruments are strong", {
  set.seed(3)
  x <- rnorm(500)
  y <- sin(2 * x) + rnorm(500) / 2
  fit <- rkhs_iv(x, y, x)
  old <- iv(x, y, x)
  expect_lt(fit$correct, 0.2)
  expect_lt(mean((fitted(fit) - fitted(old))^2), 0.02 * mean(fitted(old)^2))
})

test_that("instruments that say nothing are found, strong ones are not", {
  skip_on_cran()
  said <- function(seed, share) {
    set.seed(seed)
    n <- 300
    u <- rnorm(n)
    z <- rnorm(n)
    x <- share * z + 0.7 * u + 0.7 * rnorm(n)
    kind <- "none"
    # What is said knows nothing of y.
    withCallingHandlers(
      rkhs_iv(x, u, z, mu = 300, method = "weak"),
      kernmean_warning_weak = \(w) {
        kind <<- if (grepl("not identified", conditionMessage(w))) "nothing"
        else "weak"
        invokeRestart("muffleWarning")
      }
    )
    kind
  }
  # By the law of F with the chosen lambda in 89 of 100.
  nothing <- vapply(1:60, said, "", share = 0)
  expect_gte(mean(nothing == "nothing"), 0.78)
  expect_lte(sum(nothing == "none"), 2)
  expect_identical(unique(vapply(1:20, said, "", share = 1)), "none")
})

test_that("what is not identified is a constant, and said to be", {
  set.seed(1)
  n <- 1000
  u <- rnorm(n)
  z <- rnorm(n)
  x <- u + rnorm(n)
  y <- u + rnorm(n) / 3
  expect_warning(fit <- rkhs_iv(y ~ x | z), "g is not identified",
                 class = "kernmean_warning_weak")
  expect_lte(max(abs(predict(fit, data.frame(x = -2:2)))), 0.05)
})

# --- Errors -------------------------------------------------------------------

test_that("intervals are the sandwich of what each outcome moves", {
  data <- data.frame(weak_data(40), w = rep(1:4 / 2, 10), v = cos(1:40),
                     unit = rep(1:20, each = 2))
  new <- data.frame(x = c(-1, 0, 1.5), v = c(0.3, 0, -0.2))
  of <- \(data, ..., mu = 0.5, correct = 0.6) {
    quietly(do.call(rkhs_iv, list(
      y ~ x | z, data, lambda = 0.3, mu = mu, linear = 1.5,
      kernel = kernel_rbf(0.8), control = iv_control(correct = correct), ...
    )))
  }
  for (more in list(
    list(), list(clusters = ~unit), list(weights = ~w, controls = ~v),
    list(clusters = ~unit, weights = ~w, controls = ~v)
  )) {
    fitted_to <- \(y, ...) {
      do.call(of, c(list(replace(data, "y", list(y)), ...), more))
    }
    # The middle is linear in y.
    middle <- \(y, new) {
      rowMeans(predict(fitted_to(y), new, interval = TRUE)[, -1])
    }
    at <- middle(data$y, new)
    moves <- vapply(1:40, \(i) {
      middle(replace(data$y, i, data$y[i] + 1), new) - at
    }, at)
    scores <- t(moves) * (data$y - middle(data$y, data))
    quantile <- qnorm(0.95)
    if (!is.null(more$clusters)) {
      scores <- rowsum(scores, data$unit)
      quantile <- qt(0.95, 19)
    }
    # A control takes a degree of freedom.
    free <- 1 - length(more$controls[-1]) / 40
    shown <- predict(fitted_to(data$y), new, interval = TRUE, level = 0.9)
    expect_equal(unname(shown[, 3] - shown[, 2]),
                 unname(2 * quantile * sqrt(colSums(scores^2) / free)),
                 tolerance = 1e-6)
    # Without a correction no eigenvalue is negative, and the middle is the fit
    # with a 64th of the penalty.
    plain <- predict(fitted_to(data$y, mu = 0.64, correct = 0), new,
                     interval = TRUE)
    less <- predict(fitted_to(data$y, mu = 0.01, correct = 0), new)
    expect_equal(rowMeans(plain[, -1]), less, tolerance = 1e-6,
                 ignore_attr = TRUE)
  }
})

test_that("a picture has the curve and its band, the fit has the first stage", {
  fit <- weak(mpg ~ hp + cyl | disp + wt, mtcars)
  shown <- on_device(plot(fit, column = "cyl", n = 5))
  want <- predict(fit, shown, interval = TRUE)
  expect_equal(shown[c(".fitted", ".lower", ".upper")], as.data.frame(want),
               ignore_attr = TRUE, tolerance = 1e-7)
  first <- fit$error$first
  expect_named(first, c("hp", "cyl"))
  expect_equal(first$hp$actual, drop(scale(mtcars$hp)), ignore_attr = TRUE)
  expect_named(first$hp, c("fitted", "actual"))
  expect_null(weak(as_gram(diag(32) + 1), mtcars$mpg, mtcars$wt)$error$first)
})

test_that("clusters of one row are none, weights of 1 are none", {
  data <- weak_data(50)
  plain <- weak(data$x, data$y, data$z, folds = rep_len(1:5, 50))
  for (more in list(list(clusters = 50:1), list(weights = rep(3, 50)))) {
    fit <- do.call(weak, c(data, more, list(folds = rep_len(1:5, 50))))
    expect_equal(fitted(fit), fitted(plain), tolerance = 1e-8)
    expect_equal(fit$strength, plain$strength, tolerance = 1e-8)
    expect_equal(fit$error$overid, plain$error$overid, tolerance = 1e-8)
    wide <- if (is.null(more$clusters)) 1 else qt(0.975, 49) / qnorm(0.975)
    ends <- lapply(list(fit, plain), \(of) {
      shown <- quietly(predict(of, interval = TRUE))
      cbind(shown[, 2] + shown[, 3], shown[, 3] - shown[, 2])
    })
    expect_equal(ends[[1]], ends[[2]] %*% diag(c(1, wide)), tolerance = 1e-8)
  }
  # Three clusters are three folds.
  three <- weak(data$x, data$y, data$z, clusters = rep(1:3, length.out = 50))
  expect_identical(nrow(attr(three$cv, "folds")), 3L)
  expect_error(weak(data$x, data$y, data$z, clusters = rep(1:10, 5),
                    folds = rep(1:5, each = 10)), "each cluster together",
               class = "kernmean_error_input")
  # Whole clusters are left out together.
  cluster <- rep(1:10, each = 5)
  fit <- weak(data$x, data$y, data$z, clusters = cluster)
  same <- weak(data$x, data$y, data$z, clusters = cluster,
               folds = factor(cluster_folds(cluster, 6), 1:6))
  expect_equal(fitted(fit), fitted(same))
})

test_that("whole weights without a correction are rows that come again", {
  data <- weak_data(40)
  times <- rep(1:3, length.out = 40)
  again <- rep(1:40, times)
  of <- \(i, unit, ...) {
    weak(data$x[i], data$y[i], data$z[i], kernel_rbf(1), lambda = 0.3 * unit,
         mu = 0.5 * unit, linear = 0, correct = 0, ...)
  }
  fit <- of(1:40, 1, weights = times)
  expect_equal(unname(fitted(of(again, mean(times)))),
               unname(fitted(fit))[again], tolerance = 1e-7)
})

# --- Controls and formulas ----------------------------------------------------

test_that("controls are partialled out of all blocks", {
  data <- with(mtcars, list(x = hp, y = mpg, z = disp))
  design <- model.matrix(~ log(wt) + factor(gear), mtcars)
  for (alpha in c(0, 0.5)) {
    fit <- weak(mpg ~ hp | disp, mtcars, controls = ~ log(wt) + factor(gear),
                lambda = 0.3, mu = 0.5, linear = 2, correct = alpha)
    k <- grams(data, fit)
    slow <- slow_weak(k$x, k$z, data$y, 0.3, 0.5, alpha, data$x / sd(data$x), 2,
                      design)
    expect_equal(unname(fitted(fit)), slow$g, tolerance = 1e-7)
    expect_equal(fit$strength$F, slow$F, tolerance = 1e-7)
  }
  # New rows have theirs, or their means.
  expect_equal(predict(fit, mtcars), fitted(fit), tolerance = 1e-8)
  expect_equal(predict(fit, mtcars, interval = TRUE),
               predict(fit, interval = TRUE), tolerance = 1e-7)
  apart <- sweep(design[, -1], 2, colMeans(design[, -1]))
  expect_equal(unname(predict(fit, mtcars["hp"])),
               unname(fitted(fit) - drop(apart %*% fit$controls)),
               tolerance = 1e-8)
  refused(predict(fit, transform(mtcars, gear = 7)), "levels .* not '7'")
  # By columns, and what the score of the same rows is.
  own <- weak(mtcars["hp"], data$y, mtcars["disp"], lambda = 0.3, mu = 0.5,
              linear = 2, correct = 0.5, controls = design[, -1])
  expect_equal(unname(fitted(own)), unname(fitted(fit)), tolerance = 1e-8)
  expect_equal(score(fit, mtcars), unname(fit$criterion) / 32, tolerance = 1e-6)
  expect_equal(score(own, list(x = mtcars["hp"], y = data$y, z = mtcars["disp"],
                               controls = design[, -1])),
               score(fit, mtcars), tolerance = 1e-8)
  expect_identical(deparse1(formula(fit)), "mpg ~ hp | disp")
  # Columns that others make are left out.
  twice <- weak(mpg ~ hp | disp, mtcars, lambda = 0.3, mu = 0.5, linear = 2,
                correct = 0.5, controls = ~ log(wt) + factor(gear) + I(gear^2))
  expect_equal(fitted(twice), fitted(fit), tolerance = 1e-7)
})

test_that("controls that new data lack are at their means, and said to be", {
  fit <- weak(mpg ~ hp | disp, mtcars, controls = ~wt)
  new <- data.frame(hp = 100)
  expect_silent(mean <- stats::predict(fit, new))
  expect_warning(other <- stats::predict(fit, cbind(new, WT = 3)),
                 "none of 'wt'", class = "kernmean_warning")
  expect_identical(other, mean)
  # A fit whose instruments are weak warns of its intervals.
  set.seed(1)
  data <- data.frame(x = rnorm(50), y = rnorm(50), z = rnorm(50))
  expect_warning(fit <- rkhs_iv(y ~ x | z, data),
                 class = "kernmean_warning_weak")
  expect_warning(stats::predict(fit, data, interval = TRUE), "do not hold",
                 class = "kernmean_warning_weak")
  # Of a straight line the largest penalty says that it is one.
  set.seed(1)
  data <- transform(data.frame(z = rnorm(1000), e = rnorm(1000)), x = z + e)
  data$y <- 2 * data$x + data$e + rnorm(1000)
  expect_warning(rkhs_iv(y ~ x | z, data, linear = Inf), "a straight line",
                 class = "kernmean_warning_border")
})

test_that("formulas of three parts are those of two", {
  one <- weak(mpg ~ wt | hp | disp, mtcars)
  two <- weak(mpg ~ hp + wt | disp + wt, mtcars)
  expect_equal(fitted(one), fitted(two))
  expect_identical(names(fitted(one)), rownames(mtcars))
  expect_output(print(one), "endogenous: hp")
})

test_that("update() keeps the method, controls and rows", {
  of <- \(data, ...) {
    quietly(rkhs_iv(mpg ~ hp | disp, data, controls = ~wt, weights = ~cyl,
                    clusters = ~carb, control = iv_control(folds = 3), ...))
  }
  fit <- of(mtcars)
  expect_identical(fitted(quietly(update(fit))), fitted(fit))
  rows <- mtcars[1:25, ]
  expect_equal(quietly(update(fit, data = rows, linear = 1))$fitted.values,
               of(rows, linear = 1)$fitted.values, tolerance = 1e-10)
  # Given penalties alone are classic, not those of a fit that was not.
  data <- weak_data()
  fit <- quietly(rkhs_iv(data$x, data$y, data$z))
  again <- quietly(update(fit, lambda = fit$lambda[[1]], mu = fit$mu[[1]]))
  expect_equal(fitted(again), fitted(fit), tolerance = 1e-10)
  classic <- rkhs_iv(data$x, data$y, data$z, lambda = 1, mu = 1)
  expect_identical(classic$method, "classic")
  expect_identical(quietly(update(classic, mu = NULL))$method, "weak")
  expect_identical(quietly(update(fit, penalty = "l2"))$method, "classic")
  # Fits from before there was a choice.
  old <- iv(data$x, data$y, data$z)
  old$method <- old$arguments$method <- NULL
  expect_identical(fitted(quietly(update(old))), fitted(old))
  expect_identical(quietly(update(old, method = "weak"))$method, "weak")
})

test_that("rows that were left out are where they were", {
  fit <- weak(Ozone ~ Temp | Wind, airquality, na.action = na.exclude, mu = 50)
  holes <- which(is.na(airquality$Ozone))
  shown <- predict(fit, interval = TRUE)
  expect_identical(which(is.na(shown[, "lwr"])), holes, ignore_attr = TRUE)
  expect_identical(shown[, "fit"], predict(fit))
  expect_true(all(shown[-holes, "lwr"] < shown[-holes, "upr"]))
})

# --- Kinds of regressors ------------------------------------------------------

test_that("grams have no linear columns, factors and mixed data theirs", {
  data <- weak_data()
  level <- factor(rep_len(c("a", "b", "c"), 60))
  y <- data$y
  same <- outer(level, level, `==`) + 0
  of <- \(x, s = 2) weak(x, y, data$z, kernel = list(z = kernel_rbf(1)),
                         lambda = 0.3, mu = 0.5, linear = s, correct = 0.5)
  kz <- gram_R(kernel_rbf(1), as.matrix(data$z))
  kx <- gram_R(kernel_rbf(1), as.matrix(data$x))
  fits <- list(of(level), of(as_gram(kx), NULL),
               of(gram(data$x, kernel_rbf(1))))
  for (x in list(as_gram(kx), rep(1, 60))) {
    expect_error(of(x), "'linear' must be NULL or 0 where 'x' has no columns",
                 class = "kernmean_error_input")
  }
  line <- data$x / sd(data$x)
  wanted <- list(slow_weak(same, kz, y, 0.3, 0.5, 0.5,
                           scale(cbind(level == "b", level == "c")), 2),
                 slow_weak(kx, kz, y, 0.3, 0.5, 0.5),
                 slow_weak(kx, kz, y, 0.3, 0.5, 0.5, line, 2))
  for (l in 1:3) {
    expect_equal(unname(fitted(fits[[l]])), wanted[[l]]$g, tolerance = 1e-7)
    expect_identical(is.na(fits[[l]]$strength$F_linear), l == 2L)
  }
  expect_equal(unname(predict(fits[[1]], level[3:1])), wanted[[1]]$g[3:1],
               tolerance = 1e-7)
  expect_equal(predict(fits[[2]], kx[5:9, ], interval = TRUE),
               predict(fits[[2]], interval = TRUE)[5:9, ], tolerance = 1e-7,
               ignore_attr = TRUE)
  mixed <- data.frame(x = data$x, level)
  fit <- weak(mixed, y, data$z, kernel = kernel_rbf(1), lambda = 0.3, mu = 0.5,
              linear = 2, correct = 0.5)
  # The first level is what the others leave.
  line <- cbind(data$x, level == "b", level == "c")
  line <- line / rep(apply(line, 2, sd), each = 60)
  want <- slow_weak(gower_matrix(mixed), kz, y, 0.3, 0.5, 0.5, line, 2)
  expect_equal(unname(fitted(fit)), want$g, tolerance = 1e-7)
  expect_equal(unname(predict(fit, mixed[9:2, ])), want$g[9:2],
               tolerance = 1e-7)
  # A column that does not vary has no slope.
  still <- of(cbind(data$x, 1), 2)
  expect_equal(still$strength$F_linear, fits[[3]]$strength$F_linear,
               tolerance = 1e-8)
  # Nor is there anything to identify in one that is alone, or of one level.
  for (none in list(of(rep(1, 60), NULL), of(factor(rep("a", 60)), NULL),
                    weak(data$x, y, rep(1, 60)))) {
    expect_false(isTRUE(none$strength$F_linear > 1e-8))
    expect_equal(unname(fitted(none)), rep(mean(y), 60), tolerance = 1e-8)
  }
  # Columns that others make, or the controls, do not make instruments weak.
  twice <- weak(cbind(data$x, 2 * data$x), y, data$z)
  expect_equal(twice$strength$F_linear,
               weak(data$x, y, data$z)$strength$F_linear, tolerance = 0.5)
  expect_length(twice$error$first, 1)
})

test_that("far from the sample g returns to a straight line, and says so", {
  data <- weak_data(200)
  fit <- weak(data$x, data$y, data$z, linear = 5)
  expect_warning(far <- stats::predict(fit, c(1000, 1001, 1003)),
                 "return to the straight line", class = "kernmean_warning")
  expect_equal(diff(far)[[2]], 2 * diff(far)[[1]], tolerance = 1e-6)
})

# --- Words --------------------------------------------------------------------

test_that("what may be asked of it is said", {
  d <- weak_data(12)
  data <- data.frame(d, g = rep(1:3, 4))
  fit <- weak(d$x, d$y, d$z, mu = 1)
  expect_snapshot(writeLines(refusals(expression(
    rkhs_iv(y ~ x | z, data, controls = "g"),
    rkhs_iv(d$x, d$y, d$z, controls = 1:3),
    rkhs_iv(d$x, d$y, d$z, controls = ~g),
    rkhs_iv(y ~ x | z, data, controls = ~x),
    rkhs_iv(y ~ x | z, data, controls = ~ c(NA, g[-1])),
    rkhs_iv(d$x, d$y, d$z, weights = 0:11),
    rkhs_iv(d$x, d$y, d$z, weights = 1:3),
    rkhs_iv(d$x, d$y, d$z, clusters = rep(1, 12)),
    rkhs_iv(d$x, d$y, d$z, clusters = data$g, control = iv_control(folds = 4)),
    rkhs_iv(d$x, d$y, d$z, clusters = 1:3),
    rkhs_iv(d$x, d$y, d$z, linear = -1),
    rkhs_iv(d$x, d$y, d$z, linear = NA),
    rkhs_iv(d$x, d$y, d$z, control = iv_control(correct = 2)),
    rkhs_iv(d$x, d$y, d$z, method = "weak", penalty = "l2"),
    rkhs_iv(d$x, d$y, d$z, method = "weak", preset = "nnpiv"),
    rkhs_iv(d$x, d$y, d$z, penalty = "l2", weights = 1:12),
    rkhs_iv(d$x, d$y, d$z, control = iv_control(intercept = FALSE)),
    predict(iv(d$x, d$y, d$z, mu = 1), interval = TRUE),
    predict(fit, interval = TRUE, level = 1)
  ))))
})

# Anderson and Rubin's interval of a straight line.

weak_line <- function(seed, a, n = 150, slope = 1) {
  set.seed(seed)
  u <- rnorm(n)
  d <- data.frame(z = rnorm(n), w = rnorm(n), k = rnorm(n),
                  id = rep(seq_len(n / 3), each = 3))
  d$x <- a * d$z + u + rnorm(n) / 2 + d$w
  d$y <- slope * d$x + d$w + d$k + 2 * u
  d
}

# p of a slope, by matrices: P of residuals on the columns C of the design.
slow_p <- function(fit, d, beta, C, ids = seq_len(nrow(d))) {
  h <- diag(nrow(d)) - tcrossprod(qr.Q(qr(C)))
  z <- fit$blocks$z$sample
  k <- exp(-as.matrix(dist(z$x))^2 / 2 / z$kernel$bandwidth^2)
  k <- h %*% k %*% h
  p <- k %*% solve(k + fit$lambda * diag(nrow(d)))
  r <- drop(h %*% (d$y - beta * d$x))
  law <- rowsum(t(rowsum(p * outer(r, r), ids)), ids)
  law <- law / (1 - ncol(C) / nrow(d))
  mean <- sum(diag(law))
  shape <- mean^2 / (2 * sum(law^2))
  pgamma(sum(r * (p %*% r)) / mean, shape, shape, lower.tail = FALSE)
}

ends_of <- \(...) quietly(confint(..., method = "ar"))

test_that("the ends have the p-value of the level", {
  d <- weak_line(1, 1)
  fit <- quietly(rkhs_iv(y ~ x | z, d, controls = ~ w + k))
  C <- cbind(1, d$w, d$k)
  for (level in c(0.8, 0.95)) {
    ends <- ends_of(fit, level = level)
    expect_equal(rownames(ends), "x")
    for (end in ends) {
      expect_equal(slow_p(fit, d, end, C), 1 - level, tolerance = 1e-6)
    }
    expect_gt(slow_p(fit, d, mean(ends), C), 1 - level)
  }
  fit <- quietly(rkhs_iv(y ~ x | z, d, controls = ~ w + k, clusters = id))
  for (end in ends_of(fit)) {
    expect_equal(slow_p(fit, d, end, C, d$id), 0.05, tolerance = 1e-6)
  }
  # In other units.
  more <- transform(d, x = 100 * x, y = 1e-3 * y)
  again <- quietly(rkhs_iv(y ~ x | z, more, controls = ~ w + k, clusters = id))
  expect_equal(ends_of(again) * 1e5, ends_of(fit), tolerance = 1e-6)
})

test_that("it holds whatever the strength is, and says where it has no end", {
  found <- lapply(c(0, 0.3, 1), \(a) vapply(1:60, \(s) {
    d <- weak_line(s, a, 99)
    # The penalty of the curve has no part in it.
    ends_of(quietly(rkhs_iv(y ~ x + w | z + w, d, controls = ~ k, mu = 1)))
  }, c(0, 0)))
  holds <- vapply(found, \(ends) {
    sum(ends[1, ] <= 1 & 1 <= ends[2, ], na.rm = TRUE)
  }, 0)
  # 60 draws with the chance .95: at most 8 misses in one case of 1000.
  expect_gte(min(holds), 52)
  expect_gt(mean(is.infinite(found[[1]][1, ])), 0.7)
  expect_lt(mean(is.infinite(found[[3]][1, ])), 0.1)
  d <- weak_line(1, 0)
  fit <- quietly(rkhs_iv(y ~ x | z, d))
  expect_warning(confint(fit, method = "ar"), "unbounded",
                 class = "kernmean_warning_interval")
  # A parabola is no line.
  d <- weak_line(1, 3)
  d$y <- d$x^2
  bent <- quietly(rkhs_iv(y ~ x | z, d))
  expect_warning(ends <- confint(bent, method = "ar"), "rule out any straight",
                 class = "kernmean_warning_interval")
  expect_true(all(is.na(ends)))
})

test_that("an effect has that of its column, others are refused", {
  d <- weak_line(2, 1)
  fit <- quietly(rkhs_iv(y ~ x + w | z + w, d))
  effect <- quietly(kme_effect(fit, of = "x"))
  expect_equal(ends_of(effect), ends_of(fit), ignore_attr = TRUE)
  expect_equal(rownames(ends_of(effect)), "derivative")
  refused <- \(object, what, ...) {
    expect_error(ends_of(object, ...), what, class = "kernmean_error_input")
  }
  refused(quietly(kme_effect(fit, of = "w")), "for 'w'")
  refused(fit, "for 'w'", "w")
  refused(quietly(kme_effect(fit, target = d)), "average derivative")
  refused(quietly(rkhs_iv(y ~ x + k | z + w, d)), "one endogenous column")
  refused(quietly(rkhs_iv(y ~ x + w | w, d)), "no regressors")
  refused(quietly(rkhs_iv(y ~ x | z, d, method = "classic")), "must have")
})

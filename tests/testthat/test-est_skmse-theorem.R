# Theorem 1 of Muandet et al. (2014): with D = E|mu^ - mu|^2 every alpha up to
# 2D/(D + |f* - mu|^2) has no larger risk than the average, half of that the
# smallest. Losses are exact.

test_that("the interval of Theorem 1 bears on exact risks", {
  mixture <- list(
    weights = c(0.4, 0.6), means = rbind(c(-1, 0), c(1, 0.5)),
    covariances = array(c(1, 0.3, 0.3, 0.5, 0.4, 0, 0, 1), c(2, 2, 2))
  )
  kernel <- kernel_rbf(1)
  n <- 6
  draw <- function() {
    of <- sample.int(2, n, TRUE, mixture$weights)
    t(vapply(of, \(c) mixture$means[c, ] +
               drop(rnorm(2) %*% chol(mixture$covariances[, , c])), numeric(2)))
  }
  # |mu|^2 is the risk of the estimate 0.
  zero <- kme(matrix(0, 2, 2), kernel, est_skmse(lambda = Inf))
  norm2 <- kme_risk(zero, mixture)
  spread <- (1 - norm2) / n
  best <- spread / (spread + norm2)
  set.seed(2014)
  found <- replicate(600, {
    x <- draw()
    fit <- \(estimator) kme(x, kernel, estimator, scale = FALSE)
    risk <- \(alpha) {
      kme_risk(fit(est_skmse(lambda = alpha / (1 - alpha))), mixture)
    }
    c(plain = risk(0), half = risk(best), end = risk(2 * best),
      beyond = risk(3 * best), less = risk(0.5 * best), more = risk(1.5 * best),
      bound = fit("skmse")$harmless)
  })
  z <- \(a, b) {
    apart <- found[a, ] - found[b, ]
    mean(apart) / (sd(apart) / sqrt(ncol(found)))
  }
  expect_equal(mean(found["plain", ]), spread, tolerance = 0.05)
  expect_lt(z("half", "plain"), -4)
  expect_lt(abs(z("end", "plain")), 3)
  expect_gt(z("beyond", "plain"), 4)
  # A parabola about its least value: the same loss at either side of it.
  expect_lt(abs(z("less", "more")), 3)
  expect_gt(z("less", "half"), 0)
  expect_equal(median(found["bound", ]), 2 * best, tolerance = 0.1)
})

test_that("summary() has the bound, which knows no spread and targets", {
  x <- scale(iris[1:30, 1:4])
  fit <- kme(x, estimator = est_skmse(select = "plugin"))
  expect_equal(fit$harmless, 2 * (1 - fit$rho) / (29 * fit$rho),
               tolerance = 1e-12)
  expect_output(print(summary(fit)),
                "no more risk than the average: alpha up to 0\\.")
  expect_equal(kme(matrix(1, 3, 1), kernel_rbf(1), "skmse")$harmless, 0)
  # Towards a target near the truth all of it is harmless.
  target <- list(weights = 1, means = t(colMeans(x)), covariances = cov(x))
  expect_gt(kme(x, estimator = est_skmse(target = target))$harmless, 0.9)
})

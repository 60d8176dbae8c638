# kme_density(optimize = "all", steps = ): a number of gradient steps from the
# clusters themselves.

small <- scale(as.matrix(iris[seq(1, 150, 5), 1:4]))
clusters <- \(x, m, nstart) {
  suppressWarnings(stats::kmeans(x, m, iter.max = 100, nstart = nstart))
}
stepped <- \(x, m, steps, ..., start = "kmeans") {
  kme_density(x, m = m, steps = steps, start = start, optimize = "all",
              scale = FALSE, nstart = 5, ...)
}

test_that("steps are those of BFGS on the objective as the paper prints it", {
  skip_on_cran()
  m <- 3
  for (estimator in list(est_kme(), est_fkmse(0.1), est_mkme(noise = 0.3))) {
    set.seed(1)
    found <- clusters(small, m, 5)
    noise <- if (is.null(estimator$noise)) 0 else estimator$noise
    estimate <- kme(small, kernel_rbf(2), estimator)
    twin <- match_R(small, estimate$weights, 2, m, noise)
    begin <- c(log(found$size / 30), found$centers,
               log(found$withinss / (found$size * 4)))
    for (steps in c(1, 4, 12)) {
      set.seed(1)
      fit <- stepped(small, m, steps, kernel = kernel_rbf(2),
                     estimator = estimator)
      end <- stats::optim(begin, twin$value, twin$gradient, method = "BFGS",
                          control = list(maxit = steps, reltol = 0))
      q <- twin$read(end$par)
      # Rounding that the steps enlarge: largest 4e-13.
      expect_near(unname(fit$means), q$means, 1e-9)
      expect_near(fit$weights, q$pi, 1e-9)
      expect_near(fit$variances, q$v, 1e-9)
      expect_near(fit$objective, end$value, 1e-12)
      expect_lt(fit$objective, fit$start$objective)
      expect_identical(fit$steps, as.integer(steps))
    }
  }
})

test_that("the start is the clusters with their shares and own variances", {
  x <- scale(as.matrix(iris[, 1:4]))
  set.seed(2)
  found <- clusters(x, 6, 5)
  for (steps in list(NULL, 2)) {
    set.seed(2)
    fit <- stepped(x, 6, steps, validate = 0)
    expect_identical(fit$start$weights, found$size / 150)
    expect_equal(fit$start$means, found$centers, ignore_attr = TRUE,
                 tolerance = 1e-14)
    expect_near(fit$start$variances, found$withinss / (4 * found$size), 1e-14)
    expect_false("weights" %in% fit$path$step)
  }
  tried <- kme_density(x, m = 2:3, steps = 2, optimize = "all", nstart = 2)
  expect_identical(unique(tried$sizes$widen), 1)
  expect_null(tried$heldout)
  expect_identical(tried$validate, 0.2)
  given <- stepped(x, 6, 7, start = fit$start)
  set.seed(2)
  expect_identical(stepped(x, 6, 7)[c("weights", "variances")],
                   given[c("weights", "variances")])
})

test_that("a variance at the floor stays there", {
  x <- rbind(small, small[rep(1:2, each = 4), ] + 10)
  fit <- stepped(x, 5, 40, floor = 0.02)
  expect_identical(fit$floor, 0.02 * mean(apply(x, 2, var)))
  expect_gte(min(fit$variances), fit$floor * (1 - 1e-12))
  expect_equal(min(fit$start$variances), fit$floor)
  spread <- mean(apply(small, 2, var))
  expect_equal(stepped(small, 4, 1)$floor, 1e-6 * spread)
  expect_equal(stepped(small, 4, NULL)$floor, 0.01 * spread)
})

test_that("bandwidths are compared at the same number of steps", {
  x <- scale(faithful)
  set.seed(6)
  fit <- kme_density(x, m = 3, steps = 15, optimize = "all", nstart = 5,
                     bandwidths = c(0.5, 1, 2), validate = 0.3, scale = FALSE)
  set.seed(6)
  clusters(x, 3, 5)
  rows <- sort(sample.int(272, 82))
  expect_identical(rows, fit$heldout)
  set.seed(7)
  by_hand <- vapply(c(0.5, 1, 2), \(theta) {
    q <- stepped(x[-rows, ], 3, 15, kernel = kernel_rbf(theta))
    -mean(predict(q, x[rows, ], type = "log"))
  }, 0)
  # The clusters of well apart groups do not depend on the seed.
  expect_near(fit$bandwidths$heldout, by_hand, 1e-6)
  expect_identical(fit$steps, 15L)
  expect_null(fit$path$heldout)
  expect_output(print(fit), "decided by 82 points held out: log density")
})

test_that("steps that make no sense are refused", {
  x <- scale(faithful)
  expect_snapshot(writeLines(refusals(expression(
    kme_density(x, m = 2, steps = 100),
    kme_density(x, m = 2, optimize = "all", steps = 0),
    kme_density(x, m = 2, optimize = "all", steps = 2.5),
    kme_density(x, m = 2, optimize = "all", steps = c(30, 60)),
    kme_density(x, m = 2, optimize = "all", steps = "30"),
    kme_density(x, optimize = "all", steps = 30, validate = 0),
    kme_density(x, m = 2, optimize = "all", steps = 30, shape = "full"),
    kme_density(x, m = 2, optimize = "all", start = "clusters"),
    kme_density(x, m = 2, optimize = "all", step = 30)
  ))))
})

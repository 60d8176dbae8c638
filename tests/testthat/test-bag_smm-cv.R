# The choice of parameters: each bag left out with its fold.

theta <- kernel_rbf(1.3)
two <- kinds_of_bags(20, 6)
y <- class_of(two$kind)
folds <- rep(1:4, 5)
value <- value_of(two$kind)

# Losses of a machine of kernlab with each fold left out, a column for each row
# of `grid`; fit(k, rows, par) gives decisions at all bags.
losses_R <- function(k, folds, grid, fit, loss) {
  found <- matrix(0, nrow(k), length(grid))
  for (f in unique(folds)) {
    out <- folds == f
    for (i in seq_along(grid)) {
      decision <- fit(k[!out, !out], k[out, !out, drop = FALSE], !out, grid[i])
      found[out, i] <- loss(decision, out)
    }
  }
  found
}

ksvm_at <- function(k, values, what, ...) {
  machine <- kernlab::ksvm(kernlab::as.kernelMatrix(unname(k)), ...,
                           shrinking = FALSE)
  used <- kernlab::SVindex(machine)
  drop(kernlab::predict(machine, kernlab::as.kernelMatrix(
    unname(values)[, used, drop = FALSE]
  ), type = what))
}

# Wrong classes.
wrong_R <- function(g, cost) {
  losses_R(unname(g$K), folds, cost, \(k, at, rows, par) {
    ksvm_at(k, at, "response", y[rows], type = "C-svc", C = par)
  }, \(decision, out) decision != y[out])
}

test_that("the table is that of machines fitted by hand", {
  skip_on_cran()
  skip_if_not_installed("kernlab")
  cost <- c(0.1, 1, 100)
  fit <- smm(two$bags, y, level2 = "rbf", cost = cost, bandwidth = c(0.5, 2),
             folds = folds)
  expect_identical(names(fit$cv), c("bandwidth", "factor", "cost", "score",
                                    "se", "chosen"))
  median <- bag_gram(two$bags)$embedding$sample$kernel$bandwidth
  expect_equal(fit$cv$factor, fit$cv$bandwidth / median)
  for (theta in c(0.5, 2)) {
    losses <- wrong_R(bag_gram(two$bags, kernel_rbf(theta), level2 = "rbf"),
                      cost)
    own <- fit$cv[fit$cv$bandwidth == theta, ]
    expect_identical(own$cost, cost)
    expect_equal(own$score, colMeans(losses))
    expect_equal(own$se, apply(losses, 2, sd) / sqrt(20))
  }
  best <- fit$cv[fit$cv$chosen, ]
  expect_identical(best$score, min(fit$cv$score))
  expect_identical(c(fit$cost, fit$kernel$bandwidth),
                   c(best$cost, best$bandwidth))
  expect_identical(unname(fit$folds), folds)
  # The machine is that of the choice on all bags.
  again <- smm(two$bags, y, kernel = kernel_rbf(best$bandwidth),
               cost = best$cost, level2 = "rbf")
  expect_identical(again$decision, fit$decision)
  expect_null(again$cv)
  expect_null(again$folds)
})

test_that("regression has its own score", {
  skip_if_not_installed("kernlab")
  g <- bag_gram(two$bags, theta, level2 = "rbf")
  cost <- c(1, 10)
  fit <- smm(g, value, cost = cost, folds = folds)
  z <- (value - mean(value)) / sd(value)
  losses <- losses_R(unname(g$K), folds, cost, \(k, at, rows, par) {
    ksvm_at(k, at, "response", z[rows], type = "eps-svr", C = par,
            epsilon = 0.1, scaled = FALSE)
  }, \(decision, out) (decision - z[out])^2)
  expect_near(fit$cv$score, colMeans(losses), 1e-10)
  expect_near(fit$cv$se, apply(losses, 2, sd) / sqrt(20), 1e-10)
})

test_that("without y the width of the points' kernel is chosen", {
  skip_if_not_installed("kernlab")
  # Level 2 looks at the nearest bags.
  novel <- smm(two$bags, folds = folds)
  expect_length(unique(novel$cv$bandwidth), 4L)
  expect_identical(novel$gram$level2$type, "rbf")
  expect_identical(unclass(novel$gram$level2)["bandwidth"], unclass(
    update(novel$gram, bandwidth2 = "nearest")$level2
  )["bandwidth"])
  linear <- smm(two$bags, folds = folds, level2 = "linear")
  expect_identical(linear$cv$score, novel$cv$score)
})

test_that("ridge regression tries bandwidths by its leave-one-out score", {
  fit <- smm(two$bags, value, type = "ridge")
  median <- bag_gram(two$bags)$embedding$sample$kernel$bandwidth
  expect_equal(fit$cv$bandwidth, median * 2^(-2:2))
  expect_null(fit$folds)
  for (i in 1:5) {
    row <- fit$cv[i, ]
    g <- bag_gram(two$bags, kernel_rbf(row$bandwidth))
    alone <- smm(g, value, type = "ridge")
    expect_near(row$ridge, alone$ridge, 1e-6)
    expect_equal(row$score,
                 mean((value - ridge_loo_R(unname(g$K), value, row$ridge))^2),
                 tolerance = 1e-8)
  }
  best <- which.min(fit$cv$score)
  expect_identical(which(fit$cv$chosen), best)
  expect_identical(fit$ridge, fit$cv$ridge[best])
  # One ridge for all bandwidths.
  given <- smm(two$bags, value, type = "ridge", ridge = 0.5)
  expect_identical(given$cv$ridge, rep(0.5, 5))
})

test_that("of equal scores the middle bandwidth and the least cost are taken", {
  table <- expand.grid(cost = c(1, 10), bandwidth = c(0.25, 0.5, 1, 2, 4))
  row <- \(score, type = "classification", median = 1) {
    choose_row(cbind(table, score = score), type, median)
  }
  expect_identical(unlist(table[row(rep(0.5, 10)), 1:2]),
                   c(cost = 1, bandwidth = 1))
  # Half and twice the median are as far: the first, of the same cost.
  expect_identical(table$bandwidth[row(rep(0.5, 10), median = 1.3)], 1)
  expect_identical(table$bandwidth[row(rep(0.5, 10), median = 1.5)], 2)
  # Rounding is no difference.
  expect_identical(row(replace(rep(0.5, 10), 8, 0.5 - 1e-14)), 5L)
})

test_that("novelty takes the narrowest kernel that tells near bags", {
  table <- data.frame(bandwidth = c(0.5, 1, 2, 4))
  row <- \(score) choose_row(cbind(table, score = score), "novelty", 1)
  expect_identical(row(c(0.6, 0.5, 0.3, 0.2)), 2L)
  expect_identical(row(c(0.1, 0.2, 0.2, 0.9)), 1L)
  # None does: that which is nearest to it.
  expect_identical(row(c(0.9, 0.8, 0.6, 0.7)), 3L)
  # The score, by hand.
  g <- bag_gram(two$bags, theta)
  apart <- outer(diag(g$inner), diag(g$inner), `+`) - 2 * g$inner
  nearest <- vapply(1:20, \(b) min(apart[b, -b]), 1)
  expect_equal(nearest_share(g$inner),
               sqrt(median(nearest) / median(apart[upper.tri(apart)])))
  expect_identical(nearest_share(matrix(1, 3, 3)), 1)
  # The width that looks at the nearest.
  near <- bag_gram(two$bags, theta, level2 = "rbf", bandwidth2 = "nearest")
  expect_equal(unname(near$K), unname(exp(-apart / median(nearest))))
})

# The AUC and the share of normal bags refused, of 60 normal and 60 others.
novelties <- function(usual, odd) {
  set.seed(61)
  draw <- \(count, one) replicate(count, one(), simplify = FALSE)
  fit <- smm(draw(40, usual))
  decision <- predict(fit, c(draw(60, usual), draw(60, odd)), "decision")
  strange <- rep(c(FALSE, TRUE), each = 60)
  c(auc = auc_R(decision, strange), refused = mean(decision[1:60] < 0))
}

test_that("novelty ranks well by default, and refuses about a share nu", {
  skip_on_cran()
  skip_if_not_installed("kernlab")
  clumps <- \(p) {
    cbind(rnorm(20, ifelse(runif(20) < p, -2, 2), 0.5), rnorm(20, sd = 0.5))
  }
  turn <- \(angle) {
    matrix(rnorm(40), 20) %*% diag(c(1.2, 0.3)) %*%
      rbind(c(cos(angle), sin(angle)), c(-sin(angle), cos(angle)))
  }
  found <- cbind(
    # Most points on one side or the other; the strange are half and half, in
    # the middle of the normal ones.
    novelties(\() clumps(sample(c(0.1, 0.9), 1)), \() clumps(0.5)),
    novelties(\() turn(0), \() turn(pi / 4)),
    novelties(\() matrix(rnorm(60), 20), \() matrix(rnorm(60, sd = 1.7), 20))
  )
  expect_gt(min(found["auc", ]), 0.9)
  # Of 180 bags, with the limit from 40 each: a standard deviation of 3.5%.
  expect_lt(abs(mean(found["refused", ]) - 0.1), 0.1)
})

test_that("the limit of novelty is that of bags left out", {
  skip_if_not_installed("kernlab")
  g <- bag_gram(two$bags, theta, level2 = "rbf")
  for (nu in c(0.01, 0.1, 0.4)) {
    fit <- smm(g, nu = nu, folds = folds)
    losses <- losses_R(unname(g$K), folds, nu, \(k, at, rows, par) {
      ksvm_at(k, at, "decision", type = "one-svc", nu = par)
    }, \(decision, out) decision)
    # That of 6 points far from all, and from each other, is below 0, too.
    far <- exp((diag(g$inner) + 1 / 6) / (-2 * g$level2$bandwidth^2))
    values <- ksvm_at(unname(g$K), rbind(far, g$K), "decision",
                      type = "one-svc", nu = nu)
    # That of the floor(21 nu)-th of 20 is 0, the smallest at least.
    limit <- max(sort(losses)[max(1, floor(21 * nu))],
                 0.999 * values[1] + 0.001 * max(values))
    expect_equal(unname(fit$left_out), losses[, 1] - limit, tolerance = 1e-6)
    # One left-out bag is stranger than these, whatever nu.
    expect_identical(sum(fit$left_out < 0), as.integer(max(1, 21 * nu - 1)))
  }
})

test_that("bags infinitely far from all are novel, whatever was left out", {
  skip_if_not_installed("kernlab")
  # The second bag is alone: left out it is as far from all as a bag can be.
  bags <- lapply(c(0, 9, 0.1, 0.2, 0.3), \(at) cbind(a = at + (-3:3) / 10))
  far <- list(one = bags[[1]] + 1e6, wide = (bags[[1]] + 1) * 1e6)
  for (level2 in c("linear", "cosine", "rbf", "laplace", "poly")) {
    for (kernel in list(kernel_rbf(0.3), kernel_laplace(0.3))) {
      fit <- smm(bags, kernel = kernel, level2 = level2, folds = 1:5)
      expect_identical(as.vector(predict(fit, far)), rep("novel", 2))
      expect_identical(as.vector(fitted(fit)), rep("normal", 5))
      expect_lt(fit$left_out[[2]], 0)
    }
  }

  # A linear kernel falls nowhere: its limit is that of bags left out alone.
  fit <- smm(bags, kernel = kernel_linear(), folds = 1:5, scale = TRUE)
  expect_identical(min(fit$left_out), 0)
})

test_that("folds come as a number or as a vector of any names", {
  skip_if_not_installed("kernlab")
  g <- bag_gram(two$bags, theta)
  given <- smm(g, y, cost = c(1, 10), folds = folds)
  expect_identical(smm(g, y, cost = c(1, 10), folds = letters[folds])$cv,
                   given$cv)
  expect_identical(max(smm(g, y, cost = c(1, 10), folds = 3)$folds), 3L)
  # As many as there are bags at most: leave-one-out.
  expect_identical(max(smm(g, y, cost = c(1, 10), folds = 500)$folds), 20L)
  # Nothing is drawn where nothing is chosen.
  seed <- .Random.seed
  smm(g, y, cost = 1)
  expect_identical(.Random.seed, seed)
})

test_that("threads do not change a fit", {
  skip_if_not_installed("kernlab")
  fits <- lapply(1:2, \(threads) {
    with_threads(threads, smm(two$bags, y, level2 = "rbf", folds = folds,
                              estimator = "fkmse", cost = 1))
  })
  expect_identical(fits[[1]]$decision, fits[[2]]$decision)
  expect_identical(fits[[1]]$cv, fits[[2]]$cv)
})

# --- update() ----------------------------------------------------------------

test_that("update() keeps folds, units and what was asked for", {
  skip_on_cran()
  skip_if_not_installed("kernlab")
  wide <- lapply(two$bags, \(x) x * rep(c(1, 50), each = 6))
  set.seed(45)
  few <- \(...) {
    smm(wide, y, ..., cost = c(1, 10), bandwidth = c(0.5, 2), scale = TRUE)
  }
  fit <- few(level2 = "rbf", folds = 4)
  folds <- unname(fit$folds)
  same <- \(a, b) {
    expect_near(a$cv, b$cv, 1e-10)
    expect_near(a$decision, b$decision, 1e-8)
    expect_identical(a$folds, b$folds)
    expect_identical(a$kernel$scaling, b$kernel$scaling)
  }
  same(update(fit), fit)
  same(update(fit, estimator = "skmse"),
       few(level2 = "rbf", estimator = "skmse", folds = folds))
  same(update(fit, level2 = "linear"), few(folds = folds))
  same(update(fit, kernel = kernel_laplace()),
       few(level2 = "rbf", folds = folds, kernel = kernel_laplace()))
  # Another level 2 has a width of its own.
  given <- update(fit, bandwidth2 = 0.3, cost = 1, bandwidth = "median")
  expect_null(update(given, level2 = "linear")$gram$level2$bandwidth)
  expect_identical(update(given, level2 = "laplace")$gram$level2$rule,
                   "median distance of the bags")
  one <- update(given, cost = 3)
  expect_identical(one$gram$level2$bandwidth, 0.3)
  expect_null(one$cv)
  # The folds of another y are other ones.
  other <- update(fit, y = value, cost = 1, bandwidth = c(0.5, 1))
  expect_identical(other$type, "regression")
  expect_identical(other$kernel$scaling, fit$kernel$scaling)
  expect_identical(update(fit, bags = wide[1:10], y = y[1:10], cost = 1,
                          bandwidth = "median")$n, 10L)
})

test_that("update() of a fit on a Gram matrix has other machines only", {
  skip_if_not_installed("kernlab")
  g <- bag_gram(two$bags, theta, level2 = "rbf")
  fit <- smm(g, y, cost = 1)
  expect_identical(update(fit, cost = 9)$decision, smm(g, y, cost = 9)$decision)
  expect_identical(update(fit, y = value, type = "ridge",
                          cost = NULL)$decision,
                   smm(g, value, type = "ridge")$decision)
  # With another level the bags are taken again, by the same kernel.
  again <- update(fit, level2 = "linear")
  expect_identical(again$gram$K, bag_gram(two$bags, theta)$K)
})

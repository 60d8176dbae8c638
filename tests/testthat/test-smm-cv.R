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

test_that("regression and novelty have their own scores", {
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
  nu <- c(0.1, 0.4)
  fit <- smm(g, nu = nu, folds = folds)
  losses <- losses_R(unname(g$K), folds, nu, \(k, at, rows, par) {
    ksvm_at(k, at, "decision", type = "one-svc", nu = par)
  }, \(decision, out) decision < 0)
  expect_equal(fit$cv$score, colMeans(losses))
})

test_that("the width of level 2 is chosen of factors of its median", {
  skip_on_cran()
  skip_if_not_installed("kernlab")
  fit <- smm(two$bags, y, kernel = theta, level2 = "rbf", bandwidth2 = "cv",
             cost = 1, folds = folds)
  median <- bag_gram(two$bags, theta, level2 = "rbf")$level2$bandwidth
  expect_equal(fit$cv$bandwidth2, median * 2^(-3:1))
  for (i in 1:5) {
    g <- bag_gram(two$bags, theta, level2 = "rbf",
                  bandwidth2 = fit$cv$bandwidth2[i])
    expect_equal(fit$cv$score[i], mean(wrong_R(g, 1)))
    if (fit$cv$chosen[i]) {
      new <- kinds_of_bags(3, 6, seed = 46)$bags
      expect_equal(predict(fit, new, "decision"),
                   predict(smm(g, y, cost = 1), new, "decision"))
    }
  }
  # Without y it is what is chosen where level 2 has a width.
  expect_warning(
    novel <- smm(two$bags, level2 = "laplace", folds = folds),
    class = "kernmean_warning_novelty"
  )
  expect_identical(length(unique(novel$cv$bandwidth2)), 5L)
  expect_length(unique(novel$cv$bandwidth), 1L)
  linear <- smm(two$bags, folds = folds)
  expect_length(unique(linear$cv$bandwidth), 5L)
  expect_null(linear$cv$bandwidth2)
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
  table$level <- 1
  row <- \(score, type = "classification", median = 1) {
    choose_row(cbind(table, score = score), type, 20, median)
  }
  expect_identical(unlist(table[row(rep(0.5, 10)), 1:2]),
                   c(cost = 1, bandwidth = 1))
  # Half and twice the median are as far: the first, of the same cost.
  expect_identical(table$bandwidth[row(rep(0.5, 10), median = 1.3)], 1)
  expect_identical(table$bandwidth[row(rep(0.5, 10), median = 1.5)], 2)
  # Rounding is no difference.
  expect_identical(row(replace(rep(0.5, 10), 8, 0.5 - 1e-14)), 5L)
  # Of level 2 that which is nearest to the median, before the cost.
  table$level <- rep(c(0.5, 1), 5)
  expect_identical(row(rep(0.5, 10)), 6L)
})

test_that("novelty takes the narrowest kernel that is well, and the least nu", {
  table <- expand.grid(nu = c(0.05, 0.1), level = c(0.25, 0.5, 1),
                       bandwidth = 1)
  row <- \(score, m = 50) {
    unlist(table[choose_row(cbind(table, score = score), "novelty", m, 1), 1:2])
  }
  # All kernels refuse what is expected.
  expect_identical(row(numeric(6)), c(nu = 0.05, level = 0.25))
  # The narrow one refuses more than chance allows: nu + 2 sqrt(nu (1 - nu)/m).
  most <- \(nu) nu + 2 * sqrt(nu * (1 - nu) / 50)
  over <- c(most(0.05), most(0.1)) + 0.01
  expect_identical(row(c(over, numeric(4))), c(nu = 0.05, level = 0.5))
  # Of the larger nu alone it does not.
  expect_identical(row(c(over - c(0, 0.02), numeric(4))),
                   c(nu = 0.1, level = 0.25))
  # None at all: that which is nearest to it.
  expect_warning(
    nearest <- row(c(over + 0.5, over + 0.5, over + c(0.5, 0.4))),
    class = "kernmean_warning_novelty"
  )
  expect_identical(nearest, c(nu = 0.1, level = 1))
  # Bandwidths of the points where level 2 has one width.
  table <- expand.grid(nu = 0.1, bandwidth = c(2, 0.5, 1), level = 1)
  expect_identical(row(numeric(3))[["bandwidth"]], 0.5)
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
  wider <- update(fit, bandwidth2 = "cv", cost = 1, bandwidth = "median")
  expect_length(unique(wider$cv$bandwidth2), 5L)
  expect_null(update(wider, level2 = "linear")$gram$level2$bandwidth)
  given <- update(wider, bandwidth2 = 0.3)
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

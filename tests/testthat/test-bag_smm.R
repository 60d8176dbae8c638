# Machines on bags against kernlab itself, their optimality and brute force.

theta <- kernel_rbf(1.3)
two <- kinds_of_bags(24, 8)
three <- kinds_of_bags(30, 8, 3)
new <- kinds_of_bags(12, 8, 3, seed = 31)$bags
# kernlab's own machine on the same matrix, and its decisions elsewhere.
own_machine <- function(g, ...) {
  kernlab::ksvm(kernlab::as.kernelMatrix(unname(g$K)), ..., shrinking = FALSE)
}
own_values <- function(machine, values, type = "decision") {
  used <- kernlab::SVindex(machine)
  kernlab::predict(machine, kernlab::as.kernelMatrix(
    unname(values)[, used, drop = FALSE]
  ), type = type)
}

# The decision values of new bags are those of that machine, which is returned.
expect_kernlab <- function(fit, g, ..., what = "decision") {
  machine <- own_machine(g, ...)
  decision <- predict(fit, new, "decision")
  expect_identical(names(decision), names(new))
  expect_near(unname(decision),
              drop(own_values(machine, predict(g, new), what)), 1e-10)
  machine
}

test_that("two classes have the decision values and labels of kernlab", {
  skip_if_not_installed("kernlab")
  for (level in c("linear", "rbf", "poly")) {
    g <- bag_gram(two$bags, theta, level2 = level)
    y <- class_of(two$kind)
    fit <- smm(g, y, cost = 5)
    machine <- expect_kernlab(fit, g, y, type = "C-svc", C = 5)
    expect_identical(unname(predict(fit, new)),
                     own_values(machine, predict(g, new), "response"))
    # Positive for the second class.
    expect_identical(unname(predict(fit)),
                     class_of(1 + (fit$decision[, 1] > 0)))
    expect_identical(fit$support,
                     names(two$bags)[sort(kernlab::SVindex(machine))])
  }
})

test_that("three classes have a machine for each pair, and vote", {
  skip_if_not_installed("kernlab")
  g <- bag_gram(three$bags, theta, level2 = "rbf")
  y <- class_of(three$kind)
  fit <- smm(g, y, cost = 2)
  decision <- predict(fit, new, "decision")
  expect_identical(colnames(decision), c("y/x", "z/x", "z/y"))
  values <- predict(g, new)
  pairs <- combn(3, 2)
  for (p in 1:3) {
    in_pair <- three$kind %in% pairs[, p]
    alone <- smm(bag_gram(three$bags[in_pair], theta, level2 = "rbf",
                          bandwidth2 = g$level2$bandwidth),
                 droplevels(y[in_pair]), cost = 2)
    expect_near(unname(decision[, p]),
                unname(predict(alone, values[, in_pair], "decision")), 1e-10)
  }
  machine <- own_machine(g, y, type = "C-svc", C = 2)
  expect_identical(unname(predict(fit, new)),
                   own_values(machine, values, "response"))
  # A bag that all three machines put elsewhere is of the first class.
  expect_identical(vote(rbind(c(1, -1, 1), c(-1, 1, -1), c(1, 1, 1),
                              c(1, -1, -1)), c("x", "y", "z")),
                   class_of(c(1, 1, 3, 2)))
})

test_that("classes are in the order of the levels, whatever comes first", {
  skip_if_not_installed("kernlab")
  g <- bag_gram(two$bags, theta, level2 = "rbf")
  y <- class_of(two$kind)
  fit <- smm(g, y, cost = 3)
  back <- smm(g, factor(y, c("y", "x")), cost = 3)
  # The same machine but for its stopping rule of 1e-3.
  expect_near(predict(back, new, "decision"),
              -predict(fit, new, "decision"), 5e-3)
  expect_identical(as.character(predict(smm(g, two$kind == 2, cost = 3))),
                   as.character(predict(fit) == "y"))
  expect_identical(levels(predict(smm(g, as.character(y), cost = 3))),
                   c("x", "y"))
})

test_that("solutions are those of the dual program", {
  skip_if_not_installed("kernlab")
  g <- bag_gram(two$bags, kernel_rbf(0.7), level2 = "rbf")
  sign <- ifelse(two$kind == 2, 1, -1)
  for (cost in c(2, 20)) {
    fit <- smm(g, class_of(two$kind), cost = cost)
    # kernlab stops where the conditions hold to 1e-3.
    expect_lt(max(abs(fit$decision[, 1] - svc_R(g$K, sign, cost))), 5e-3)
    alpha <- fit$coefficients[, 1] * sign
    expect_gte(min(alpha), 0)
    expect_lte(max(alpha), cost * (1 + 1e-12))
    expect_lt(abs(sum(fit$coefficients)), 1e-8 * cost)
    margin <- sign * fit$decision[, 1]
    expect_true(all(margin[alpha == 0] > 1 - 2e-3))
    expect_true(all(margin[alpha == cost] < 1 + 2e-3))
    expect_lt(max(abs(margin[alpha > 0 & alpha < cost] - 1)), 2e-3)
    expect_identical(fit$support, names(two$bags)[alpha > 0])
  }
})

test_that("regression has the values of kernlab, in units of y", {
  skip_if_not_installed("kernlab")
  g <- bag_gram(three$bags, theta, level2 = "rbf")
  y <- 100 + 20 * value_of(three$kind)
  fit <- smm(g, y, cost = 4, epsilon = 0.2)
  expect_kernlab(fit, g, (y - mean(y)) / sd(y), what = "response",
                 type = "eps-svr", C = 4, epsilon = 0.2, scaled = FALSE)
  expect_near(predict(fit, new),
              mean(y) + sd(y) * predict(fit, new, "decision"), 1e-10)
  expect_equal(residuals(fit), fit$y - fitted(fit))
  expect_near(unname(fit$y), y, 1e-14)
  # Inside the tube a bag does not count, outside it counts in full.
  off <- abs(residuals(fit)) / sd(y) - 0.2
  weight <- abs(coef(fit)[, 1])
  expect_lt(max(off[weight == 0]), 2e-3)
  expect_gt(min(off[weight > 4 - 1e-9]), -2e-3)
  # Everything within one tube: the middle of it.
  flat <- smm(g, y, cost = 1, epsilon = 10)
  expect_equal(unname(fitted(flat)), rep(mean(range(y)), 30))
  expect_length(flat$support, 0L)
})

test_that("novelty has the values of kernlab, and its share", {
  skip_if_not_installed("kernlab")
  many <- kinds_of_bags(60, 8, 1)$bags
  g <- bag_gram(many, theta, level2 = "rbf")
  for (nu in c(0.1, 0.3)) {
    fit <- smm(g, nu = nu)
    # That of kernlab, but for the limit.
    machine <- fit_machine(g$K, fit, list(nu = nu))
    by <- machine$intercept - fit$intercept
    fit$intercept <- machine$intercept
    fit$decision <- fit$decision + by
    expect_kernlab(fit, g, type = "one-svc", nu = nu)
    expect_gte(length(fit$support) / 60, nu)
    expect_identical(levels(fitted(fit)), c("normal", "novel"))
  }
})

# --- Ridge regression --------------------------------------------------------

test_that("ridge regression is its formula", {
  y <- value_of(three$kind)
  for (level in c("linear", "rbf")) {
    g <- bag_gram(three$bags, theta, level2 = level)
    fit <- smm(g, y, type = "ridge", ridge = 0.2)
    twin <- ridge_R(g$K, y, 0.2)
    expect_near(unname(coef(fit)[, 1]), twin$alpha, 1e-10)
    expect_near(fit$intercept, twin$c, 1e-10)
    values <- predict(g, new)
    expect_near(predict(fit, new), twin$c + drop(values %*% twin$alpha), 1e-12)
    expect_identical(predict(fit, new), predict(fit, new, "decision"))
  }
})

test_that("ridge regression does not see where the origin is", {
  y <- value_of(three$kind)
  far <- lapply(three$bags, `+`, 100)
  near <- smm(three$bags, y, kernel = kernel_linear(), type = "ridge",
              ridge = 0.1)
  moved <- smm(far, y, kernel = kernel_linear(), type = "ridge", ridge = 0.1)
  # Values near 2e4 have lost eight digits of those near 1.
  expect_near(fitted(moved), fitted(near), 1e-7)
  expect_lt(mean((moved$loo - y)^2), 2 * mean((near$loo - y)^2))
})

test_that("leave-one-out is that of as many fits, intercepts fitted anew", {
  y <- value_of(three$kind)
  for (level in c("linear", "laplace")) {
    g <- bag_gram(three$bags, theta, level2 = level)
    for (ridge in c(1e-4, 0.1, 30)) {
      fit <- smm(g, y, type = "ridge", ridge = ridge)
      expect_near(unname(fit$loo), ridge_loo_R(unname(g$K), y, ridge), 1e-8)
    }
    # The one that is chosen is the best of all.
    fit <- smm(g, y, type = "ridge")
    score <- \(ridge) mean((y - ridge_loo_R(unname(g$K), y, ridge))^2)
    expect_near(mean((y - fit$loo)^2), score(fit$ridge), 1e-8)
    expect_near(fit$cv$score, score(fit$ridge), 1e-8)
    path <- fit$ridge * 10^seq(-4, 4, 0.25)
    expect_lte(score(fit$ridge), min(vapply(path, score, 1)) * (1 + 1e-8))
  }
})

test_that("ridge regression takes what says nothing", {
  y <- value_of(two$kind)
  set.seed(33)
  # Bags that are all equal, and a y that does not vary.
  equal <- rep(list(matrix(1:4, 2)), 5)
  fit <- smm(equal, y[1:5], type = "ridge", kernel = theta)
  expect_near(unname(fitted(fit)), rep(mean(y[1:5]), 5), 1e-8)
  fit <- smm(two$bags, rep(3, 24), kernel = theta, type = "ridge")
  expect_near(unname(fitted(fit)), rep(3, 24), 1e-12)
})

test_that("two bags are alike to a machine of novelty", {
  skip_if_not_installed("kernlab")
  fit <- smm(two$bags[1:2], kernel = theta)
  expect_equal(fit$left_out[[1]], fit$left_out[[2]], tolerance = 1e-6)
  expect_identical(levels(fitted(fit)), c("normal", "novel"))
})

# --- What comes in -----------------------------------------------------------

test_that("y goes with its bags by name, and in the order of the rows", {
  y <- value_of(three$kind)
  names(y) <- names(three$bags)
  make <- \(...) smm(..., kernel = theta, type = "ridge", ridge = 0.1)
  fit <- make(three$bags, y)
  set.seed(35)
  expect_identical(make(three$bags, sample(y))$decision, fit$decision)
  expect_identical(make(three$bags, unname(y))$decision, fit$decision)
  expect_identical(fit$y, y)
  # Names of characters that do not come sorted.
  x <- pooled(three$bags)
  id <- bag_ids(three$bags)
  expect_false(identical(sort(unique(id)), unique(id)))
  expect_identical(make(x, sample(y), id = id)$decision, fit$decision)
  back <- factor(id, sort(unique(id)))
  expect_near(make(x, y, id = back)$decision[names(y), ],
              fit$decision[, 1], 1e-10)
  # In the order of the rows, or sorted? Without names it is not known.
  for (unknown in list(id, back)) {
    expect_error(make(x, unname(y), id = unknown),
                 "must have the names of the bags",
                 class = "kernmean_error_input")
  }
  number <- match(id, unique(id))
  expect_near(unname(make(x, unname(y), id = number)$decision),
              unname(fit$decision), 1e-12)
  first <- factor(id, unique(id))
  expect_identical(make(x, unname(y), id = first)$decision, fit$decision)
  # Bags without names take the order whatever y is called.
  expect_near(unname(make(unname(three$bags), y)$decision),
              unname(fit$decision), 1e-12)
})

test_that("a formula has the value of each bag in all of its rows", {
  y <- value_of(three$kind)
  names(y) <- names(three$bags)
  id <- bag_ids(three$bags)
  data <- data.frame(pooled(three$bags), molecule = id, y = y[id])
  plain <- smm(three$bags, y, kernel = theta, type = "ridge", ridge = 0.1)
  make <- \(formula, data, ...) {
    smm(formula, data, id = molecule, ..., kernel = theta, type = "ridge",
        ridge = 0.1)
  }
  fit <- make(y ~ X1 + X2, data)
  expect_identical(fit$decision, plain$decision)
  # The dot leaves the column of the bags out.
  expect_identical(make(y ~ ., data)$decision, plain$decision)
  expect_identical(make(y ~ . - X2, data)$gram$K,
                   bag_gram(lapply(three$bags, \(x) x[, 1]), theta)$K)
  named <- smm(y ~ X1 + X2, data, id = "molecule", kernel = theta,
               type = "ridge", ridge = 0.1)
  expect_identical(named$decision, plain$decision)
  set.seed(36)
  turned <- make(y ~ X1 + X2, data[sample(nrow(data)), ])
  expect_near(turned$decision[names(y), ], plain$decision[, 1], 1e-10)
  part <- smm(y ~ X1 + X2, data, as.integer(substring(molecule, 2)) <= 20,
              id = molecule, type = "ridge", bandwidth = "median")
  expect_identical(part$n, 20L)
  # New bags are told apart by the same column.
  test <- data.frame(pooled(new), molecule = bag_ids(new))
  expect_identical(predict(fit, test), predict(plain, new))
  expect_identical(predict(fit, test[c(3, 2, 1)]), predict(plain, new))
  expect_identical(predict(fit, new |> lapply(\(x) data.frame(x))),
                   predict(plain, new))
  data$y[4] <- data$y[4] + 1
  expect_error(make(y ~ X1 + X2, data), "same in all rows of a bag",
               class = "kernmean_error_input")
  skip_if_not_installed("kernlab")
  no_answer <- smm(~ X1 + X2, data, id = molecule, nu = 0.2,
                   bandwidth = "median")
  expect_identical(no_answer$type, "novelty")
})

test_that("a class comes back from a data frame, a list and kernel values", {
  skip_if_not_installed("kernlab")
  id <- bag_ids(two$bags)
  data <- data.frame(pooled(two$bags), molecule = id)
  data$class <- class_of(two$kind)[match(id, names(two$bags))]
  fit <- smm(class ~ X1 + X2, data, id = molecule, cost = 1, level2 = "rbf",
             bandwidth = "median")
  test <- data.frame(pooled(new), molecule = bag_ids(new))
  found <- predict(fit, test)
  expect_identical(names(found), names(new))
  listed <- smm(two$bags, class_of(two$kind), cost = 1, level2 = "rbf",
                bandwidth = "median")
  expect_identical(predict(listed, new), found)
  expect_identical(predict(listed, pooled(new), id = bag_ids(new)), found)
  on_gram <- smm(listed$gram, class_of(two$kind), cost = 1)
  expect_identical(predict(on_gram, predict(listed$gram, new)), found)
  expect_identical(predict(on_gram, new), found)
  expect_identical(on_gram$decision, listed$decision)
})

test_that("estimators, targets and units are those of the Gram matrix", {
  y <- value_of(two$kind)
  for (arguments in list(
    list(estimator = "skmse"), list(estimator = "fkmse", lambda = 0.1),
    list(level2 = "rbf", bandwidth2 = 0.3),
    list(level2 = "poly", degree = 3), list(scale = TRUE)
  )) {
    g <- do.call(bag_gram, c(list(two$bags, theta), arguments))
    fit <- do.call(smm, c(list(two$bags, y, kernel = theta, type = "ridge",
                               ridge = 0.1), arguments))
    expect_identical(fit$gram$K, g$K)
    expect_identical(predict(fit, new),
                     predict(smm(g, y, type = "ridge", ridge = 0.1), new))
  }
})

test_that("what borrowed from bags that are left out is said", {
  g <- bag_gram(two$bags, theta, target = "neighbours")
  expect_warning(fit <- smm(g, value_of(two$kind), type = "ridge"),
                 "new bags may do clearly worse",
                 class = "kernmean_warning_target")
})

test_that("names of y that are some of the bags' are refused", {
  y <- value_of(two$kind)
  shifted <- stats::setNames(y, seq_along(y) + 1)
  expect_error(smm(unname(two$bags), shifted, kernel = theta, type = "ridge"),
               "must have the names of the bags",
               class = "kernmean_error_input")
})

test_that("values beyond single precision, and below, give the same machine", {
  skip_if_not_installed("kernlab")
  set.seed(5)
  x <- lapply(1:12, \(i) matrix(rnorm(10, i > 6), 5))
  means <- vapply(x, mean, 0)
  for (unit in 2^c(-70, 70)) {
    new <- lapply(x[1:3], `*`, unit)
    # A linear kernel in other units, the cost in those of 1/k.
    for (y in list(rep(c("a", "b"), each = 6), means)) {
      plain <- smm(x, y, kernel = kernel_linear(), cost = 1)
      large <- smm(lapply(x, `*`, unit), y, kernel = kernel_linear(),
                   cost = unit^-2)
      expect_near(predict(large, new, type = "decision"),
                  predict(plain, x[1:3], type = "decision"), 1e-6)
    }
    plain <- smm(x, kernel = kernel_linear(), level2 = "linear",
                 folds = rep(1:4, 3))
    large <- smm(lapply(x, `*`, unit), kernel = kernel_linear(),
                 level2 = "linear", folds = rep(1:4, 3))
    expect_near(large$coefficients, plain$coefficients, 1e-6)
    expect_near(large$intercept / unit^2, plain$intercept, 1e-6)
  }
})

# Class probabilities of machines, from bags that were left out.

skip_if_not_installed("kernlab")
theta <- kernel_rbf(1.3)
two <- kinds_of_bags(24, 8)
three <- kinds_of_bags(36, 8, 3)
new <- kinds_of_bags(12, 8, 3, seed = 31)$bags
fits <- lapply(list(two, three), \(data) {
  smm(data$bags, class_of(data$kind), kernel = theta, level2 = "rbf",
      cost = c(1, 10), folds = rep_len(rep(1:4, each = 3), length(data$bags)))
})

# The machine of kernlab without a fold: values at its bags.
left_out_R <- function(fit, f) {
  out <- fit$folds == f
  machine <- kernlab::ksvm(
    kernlab::as.kernelMatrix(unname(fit$gram$K[!out, !out])),
    unname(fit$y[!out]), type = "C-svc", C = fit$cost, shrinking = FALSE
  )
  used <- kernlab::SVindex(machine)
  kernlab::predict(machine, kernlab::as.kernelMatrix(
    unname(fit$gram$K[out, !out])[, used, drop = FALSE]
  ), type = "decision")
}

test_that("left-out values are those of fits without each fold", {
  expect_identical(dimnames(fits[[2]]$left_out), dimnames(fits[[2]]$decision))
  for (f in 1:4) {
    out <- fits[[1]]$folds == f
    expect_near(unname(fits[[1]]$left_out[out, 1]),
                drop(left_out_R(fits[[1]], f)), 1e-10)
    # Of three classes a machine for each pair.
    out <- fits[[2]]$folds == f
    pairs <- utils::combn(c("x", "y", "z"), 2)
    for (p in 1:3) {
      own <- names(which(!out & fits[[2]]$y %in% pairs[, p]))
      k <- fits[[2]]$gram$K
      machine <- kernlab::ksvm(
        kernlab::as.kernelMatrix(unname(k[own, own])),
        factor(fits[[2]]$y[own]), type = "C-svc", C = fits[[2]]$cost,
        shrinking = FALSE
      )
      used <- kernlab::SVindex(machine)
      values <- drop(k[out, own][, used] %*%
                       kernlab::coef(machine)[[1]]) - kernlab::b(machine)
      expect_near(unname(fits[[2]]$left_out[out, p]), unname(values), 1e-10)
    }
  }
  # Votes on them have the share of wrong classes that decided.
  for (fit in fits) {
    expect_equal(mean(vote(fit$left_out, fit$levels) != fit$y),
                 min(fit$cv$score))
  }
})

test_that("probabilities are the sigmoids of the pairs, coupled", {
  for (fit in fits) {
    p <- predict(fit, new, type = "probability")
    expect_identical(dimnames(p), list(names(new), fit$levels))
    expect_near(unname(rowSums(p)), rep(1, 12), 1e-14)
    expect_gt(min(p), 0)
    decision <- as.matrix(predict(fit, new, type = "decision"))
    pairs <- utils::combn(fit$levels, 2)
    r <- vapply(seq_len(ncol(pairs)), \(j) {
      own <- fit$y %in% pairs[, j]
      at <- sigmoid_R(fit$left_out[own, j], fit$y[own] == pairs[2, j])
      expect_lt(at[1], 0)
      expect_near(unname(fit$sigmoids[j, ]), at, 1e-6)
      1 / (1 + exp(at[1] * decision[, j] + at[2]))
    }, numeric(12))
    if (ncol(r) == 1L) {
      expect_near(unname(p), unname(cbind(1 - r, r)), 1e-6)
    } else {
      for (i in 1:12) {
        wins <- matrix(NA, 3, 3)
        wins[t(pairs_at <- utils::combn(3, 2))] <- 1 - r[i, ]
        wins[t(pairs_at[2:1, ])] <- r[i, ]
        expect_lt(max(abs(p[i, ] - couple_R(wins))), 1e-5)
      }
    }
  }
})

test_that("classes are what they were", {
  for (fit in fits) {
    expect_identical(predict(fit, new),
                     smm_answer(fit, smm_decision(fit, new)))
    calibrated <- calibrate(fit)
    expect_identical(calibrated, fit)
  }
  # Of two classes the probability rises with the decision value.
  p <- predict(fits[[1]], new, type = "probability")[, "y"]
  expect_identical(order(p), order(predict(fits[[1]], new, type = "decision")))
})

test_that("where nothing was chosen folds are made, and no random numbers", {
  for (data in list(two, three)) {
    g <- bag_gram(data$bags, theta, level2 = "rbf")
    fit <- smm(g, class_of(data$kind), cost = 3, folds = 4)
    expect_null(fit$sigmoids)
    seed <- .Random.seed
    p <- predict(fit, new, type = "probability")
    table <- generics::tidy(fit, "calibration")
    expect_identical(.Random.seed, seed)
    # Neighbours within each class.
    blocks <- integer(length(data$kind))
    for (k in unique(data$kind)) {
      blocks[data$kind == k] <- rep(1:4, each = sum(data$kind == k) / 4)
    }
    given <- smm(g, class_of(data$kind), cost = 3, folds = blocks)
    expect_identical(predict(given, new, type = "probability"), p)
    chosen <- smm(g, class_of(data$kind), cost = c(3, 3 + 1e-9),
                  folds = blocks)
    expect_near(predict(chosen, new, type = "probability"), p, 1e-6)
    expect_near(generics::tidy(chosen, "calibration"), table, 1e-6)
  }
  alone <- replace(rep(1:4, 6), two$kind == 1, 1L)
  unfit <- smm(two$bags, class_of(two$kind), kernel = theta, cost = 1,
               folds = alone)
  refused(predict(unfit, new, type = "probability"),
          "must leave bags of each class outside each fold")
})

test_that("the order of bags and levels does not matter, folds being given", {
  for (data in list(two, three)) {
    n <- length(data$bags)
    of <- rep_len(rep(1:4, each = 3), n)
    make <- \(rows, y) {
      smm(data$bags[rows], y[rows], kernel = theta, level2 = "rbf",
          cost = c(1, 10), folds = of[rows])
    }
    y <- class_of(data$kind)
    fit <- make(seq_len(n), y)
    set.seed(97)
    p <- predict(fit, new, type = "probability")
    # The same machines but for the stopping rule of kernlab.
    expect_lt(max(abs(predict(make(sample(n), y), new, "probability") - p)),
              5e-3)
    back <- make(seq_len(n), factor(y, rev(levels(y))))
    expect_lt(max(abs(predict(back, new, "probability")[, colnames(p)] - p)),
              5e-3)
    # Of new bags each is by itself.
    expect_near(predict(fit, new[4:2], "probability"), p[4:2, ], 1e-12)
  }
})

test_that("classes of two bags, many classes and split ones have numbers", {
  set.seed(98)
  kind <- rep(1:6, c(2, 3, 4, 10, 2, 5))
  bags <- lapply(kind, \(k) matrix(rnorm(8, 100 * k), 4))
  # All split.
  fit <- smm(bags, letters[kind], kernel = kernel_rbf(50), cost = 100,
             folds = 2)
  p <- predict(fit, lapply(1:6, \(k) t(c(100, 100) * k)), type = "probability")
  expect_identical(dim(p), c(6L, 6L))
  expect_near(unname(rowSums(p)), rep(1, 6), 1e-14)
  expect_identical(max.col(p), 1:6)
  expect_lt(max(p), 0.95)
  # Noise in classes of two.
  noise <- lapply(1:10, \(i) matrix(rnorm(8), 4))
  fit <- smm(noise, rep(letters[1:5], 2), kernel = theta, cost = c(1, 10),
             folds = 2)
  p <- predict(fit, noise, type = "probability")
  expect_true(all(is.finite(p)) && all(p >= 0))
  expect_lt(max(p), 0.9)
})

test_that("what borrowed from bags that are left out is said here, too", {
  g <- bag_gram(two$bags, theta, target = "neighbours")
  expect_no_warning(fit <- smm(g, class_of(two$kind), cost = 1))
  expect_warning(predict(fit, type = "probability"),
                 "new bags may do clearly worse",
                 class = "kernmean_warning_target")
  # Nothing was chosen: ten folds, the default.
  folds <- suppressWarnings(calibrate(fit)$folds)
  expect_identical(max(folds), 10L)
})

test_that("fits without classes have no probabilities", {
  others <- list(
    ridge = smm(two$bags, value_of(two$kind), type = "ridge"),
    regression = smm(two$bags, value_of(two$kind), kernel = theta, cost = 1),
    novelty = smm(two$bags, kernel = theta, nu = 0.2)
  )
  for (type in names(others)) {
    words <- paste0("classes were learned; a fit of type \"", type,
                    "\" has no probabilities")
    refused(predict(others[[type]], new, type = "probability"), words)
    refused(generics::tidy(others[[type]], "calibration"), words)
  }
})

test_that("the table is of bags and sigmoids that were left out", {
  for (fit in fits) {
    p <- matrix(0, fit$n, length(fit$levels))
    for (f in 1:4) {
      out <- fit$folds == f
      sigmoids <- fit_sigmoids(fit$left_out[!out, , drop = FALSE],
                               fit$y[!out])
      p[out, ] <- class_probability(fit$left_out[out, , drop = FALSE],
                                    sigmoids, fit$levels)
    }
    table <- generics::tidy(fit, "calibration")
    colnames(p) <- fit$levels
    expect_near(table, calibration_table(p, fit$y), 1e-14)
    expect_identical(sum(table$n), fit$n)
  }
})

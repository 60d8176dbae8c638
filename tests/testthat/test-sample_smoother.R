# Smoothers against refits and differences; learned widths against reference
# values; choices between kernels.

set.seed(56)
n <- 24L
points <- matrix(rnorm(3 * n), n)
kernel <- kernel_rbf(c(1.5, 2, 4))
sample <- fit_sample(points, kernel, FALSE)
K <- fold_store(sample$kernel, points)
weights <- rexp(n) + 0.2
y <- cbind(sin(points[, 1]), points[, 2]^2) + matrix(rnorm(2 * n), n) / 3

smoother <- \(unit, w = weights) {
  make_smoother(exact_map(sample, "x"), seq_len(n), w, unit)
}

test_that("losses are those of refits without the unit, summed over columns", {
  for (unit in list(seq_len(n), rep(1:6, 4))) {
    s <- smoother(unit)
    got <- smoother_losses(s, y, c(0.02, 0.5))
    for (at in 1:2) {
      want <- Reduce(`+`, lapply(1:2, \(j) {
        squares_left_out_R(K, y[, j], c(0.02, 0.5)[at], weights, unit)
      }))
      expect_near(got[, at], want, 1e-8)
    }
  }
})

test_that("losses are exact for any kernel of the bank", {
  kernels <- list(
    kernel_linear(), kernel_laplace(2), kernel_rbf(1) + kernel_linear(),
    0.5 * kernel_rbf(1, columns = 1) + kernel_laplace(1, columns = 2:3),
    kernel_rbf(1, columns = 1) * kernel_rbf(2, columns = 2)
  )
  responses <- list(new_response(seq_len(n), y, outcome = TRUE))
  for (kernel in kernels) {
    look <- look_at(sample, kernel, responses, weights, seq_len(n))
    K <- kernel_matrix(points, kernel = kernel)
    penalties <- penalty_grid[c(9, 17, 25)] * mean(diag(K))
    s <- make_smoother(smoother_map(with_kernel(sample, kernel)), seq_len(n),
                       weights, seq_len(n))
    want <- vapply(penalties, \(penalty) {
      Reduce(`+`, lapply(1:2, \(j) {
        squares_left_out_R(K, y[, j], penalty, weights, seq_len(n))
      }))
    }, numeric(n))
    # The factor leaves a millionth of the trace.
    expect_near(smoother_losses(s, y, penalties), want, 1e-3)
    # The look has the smallest loss along the path.
    expect_lt(mean(look$outcome),
              min(colMeans(weights * want)) / mean(weights) + 1e-3)
  }
})

test_that("slopes are the derivatives of the fit", {
  s <- smoother(seq_len(n))
  want <- Reduce(`+`, lapply(1:2, \(j) {
    g <- intercept_R(K, y[, j], 0.05, weights)
    vapply(1:3, \(column) {
      step <- matrix(0, n, 3)
      step[, column] <- 1e-4
      value <- \(z) fold_apply(sample$kernel, z, points, g$c)
      slope <- (value(points + step) - value(points - step)) / 2e-4
      sum(weights * slope^2) / sum(weights)
    }, 0)
  }))
  expect_near(smoother_slopes(s, y, 0.05), want, 1e-6)
})

test_that("some columns alone have slopes where they stand", {
  response <- new_response(seq_len(n), points[, 1], columns = -1L)
  look <- look_at(sample, sample$kernel, list(response), weights, seq_len(n),
                  TRUE)
  expect_identical(look$relevance[1], 0)
  alone <- look_at(
    fit_sample(points[, -1], kernel_rbf(c(2, 4)), FALSE), kernel_rbf(c(2, 4)),
    list(new_response(seq_len(n), points[, 1])), weights, seq_len(n), TRUE
  )
  expect_near(look$relevance[-1], alone$relevance, 1e-12)
  expect_near(look$rows, alone$rows, 1e-12)
})

# --- Reference cases ---------------------------------------------------------

# The looks with the whole factor, to steps of less than .1%.
learn_all <- function(x, responses) {
  sample <- riesz_sample(x, NULL, NULL)
  with_binding("smoother_map", \(sample) exact_map(sample, "x"), {
    with_binding("least_fall", 0.001, {
      learn_widths(sample, responses, rep(1, nrow(x)), seq_len(nrow(x)))
    })
  })
}

expect_learned <- function(looks, losses, w, theta) {
  expect_near(vapply(looks, \(look) mean(look$rows), 0), losses, 1e-7)
  best <- looks[[which.min(losses)]]
  expect_near(best$weights, w, 1e-6)
  expect_near(best$kernel$bandwidth, theta, 1e-5)
}

test_that("widths are those of the reference: two arms", {
  set.seed(1)
  n <- 120
  x <- scale(matrix(rnorm(n * 5), n))
  t <- rbinom(n, 1, plogis(abs(x[, 1]) - 0.8))
  y <- 2 * abs(x[, 1]) + x[, 1] * x[, 2] + t + rnorm(n)
  looks <- learn_all(x, effect_responses(y, factor(t)))
  expect_learned(
    looks,
    c(1.7428076, 1.5226710, 1.4832419, 1.4687311, 1.4657038, 1.4642805),
    c(1, 0.4268391, 0.0599527, 0.0511169, 0.0561502),
    c(2.3500516, 5.5057084, 39.1984088, 45.9740389, 41.8529380)
  )
  fit <- kme_effect(x, y, t, control = list(learn = FALSE))
  expect_near(unname(coef(fit)), 1.3406015, 1e-6)
  expect_near(sqrt(drop(vcov(fit))), 0.3866872, 1e-6)
  learned <- kme_effect(x, y, t, looks[[6]]$kernel)
  expect_near(unname(coef(learned)), 0.9821032, 1e-6)
  expect_near(sqrt(drop(vcov(learned))), 0.2957541, 1e-6)
  # The factor of few columns has the same losses to a thousandth.
  short <- learn_widths(riesz_sample(x, NULL, NULL),
                        effect_responses(y, factor(t)), rep(1, n), 1:n)
  expect_near(mean(short[[4]]$rows), mean(looks[[4]]$rows), 1e-3)
})

test_that("widths are those of the reference: a regression, three arms", {
  set.seed(2)
  x <- scale(matrix(runif(90 * 4), 90))
  y <- sin(3 * x[, 1]) + 0.3 * rnorm(90)
  expect_learned(
    learn_all(x, list(new_response(1:90, standard_response(y)))),
    c(0.84852603, 0.36649933, 0.26072967, 0.25963795, 0.25922690, 0.25909676),
    c(1, 0.0798797, 0.0593581, 0.0594961),
    c(2.0710803, 25.9274893, 34.8912747, 34.8103589)
  )
  set.seed(3)
  n <- 150
  x <- scale(matrix(rnorm(n * 4), n))
  t <- factor(sample(c("a", "b", "c"), n, TRUE))
  y <- x[, 2]^2 + (t == "b") + 2 * (t == "c") * x[, 3] + rnorm(n)
  expect_learned(
    learn_all(x, effect_responses(y, t)),
    c(1.3875241, 1.3476375, 1.3361023, 1.3344007, 1.3340842),
    c(0.0558655, 1, 0.7176540, 0.0508286),
    c(51.7055689, 2.8885550, 4.0249967, 56.8293376)
  )
})

test_that("widths are those of the reference: 0/1 columns, equal columns", {
  set.seed(4)
  n <- 130
  x <- scale(cbind(rbinom(n, 1, 0.3), rbinom(n, 1, 0.1), rnorm(n), rexp(n),
                   rnorm(n)))
  t <- rbinom(n, 1, plogis(x[, 1]))
  y <- x[, 1] * 2 + x[, 3] * x[, 1] + t / 2 + rnorm(n) / 2
  looks <- learn_all(x, effect_responses(y, factor(t)))
  expect_learned(
    looks, c(0.81031624, 0.77827874, 0.77819293),
    c(1, 0.0839824, 0.4623124, 0.1334829, 0.0639621),
    c(2.4247362, 28.8719589, 5.2448007, 18.1651457, 37.9089624)
  )
  fit <- quietly(kme_effect(x, y, t, looks[[3]]$kernel, functional = "att"))
  expect_near(unname(c(coef(fit), sqrt(vcov(fit)))), c(0.5744263, 0.1060145),
              1e-6)
  set.seed(5)
  n <- 100
  x <- scale(matrix(rnorm(n * 3), n))
  t <- rbinom(n, 1, 0.5)
  y <- rowSums(x) + 0.5 * t + rnorm(n)
  expect_learned(learn_all(x, effect_responses(y, factor(t))),
                 c(1.2702596, 1.2682951, 1.2680271),
                 c(0.910833, 1, 0.841457), c(4.4014546, 4.0089913, 4.7643454))
})

# --- Choices -----------------------------------------------------------------

test_that("an additive kernel is the sum that its formula says", {
  x <- cbind(points, 0)
  w <- c(1, 0.5, 0.01, 1)
  k <- additive_kernel(x, kernel_rbf(3), w)
  spread <- apply(points, 2, \(v) sqrt(mean((v - mean(v))^2)))
  one <- \(j) exp(-outer(x[, j], x[, j], "-")^2 / (8 * spread[j]^2))
  want <- 0.1 * fold_store(kernel_rbf(3), x) +
    0.9 / 1.2501 * (one(1) + 0.25 * one(2) + 1e-4 * one(3))
  expect_near(kernel_matrix(x, kernel = k), want, 1e-12)
})

set.seed(7)
m <- 160L
x <- matrix(rnorm(6 * m), m)
x[, 6] <- rexp(m)
curved <- 2 * sin(2 * x[, 1]) + rnorm(m) / 2
choice_of <- function(x, y) {
  responses <- list(new_response(seq_along(y), standard_response(y),
                                 outcome = TRUE))
  choose_kernel(riesz_sample(x, NULL, NULL), responses, rep(1, length(y)),
                seq_along(y))
}

test_that("what matters is found, and units and orders change nothing", {
  plain <- choice_of(x, curved)
  expect_identical(which.max(plain$slopes), 1L)
  expect_lt(max(plain$slopes[-1]), 0.2)
  expect_true(startsWith(names(plain$kernels)[1], "learned"))
  expect_identical(names(plain$kernels)[length(plain$kernels)], "isotropic")
  other <- choice_of(x %*% diag(c(10, 1, 0.1, 1, 1, 1)) + 3, 5 - 7 * curved)
  expect_near(other$table$loss, plain$table$loss, 1e-6)
  # The factor of few columns depends a little on which row comes first.
  turned <- choice_of(x[m:1, 6:1], curved[m:1])
  expect_near(turned$table$loss, plain$table$loss, 0.02)
  expect_near(turned$slopes[6:1], plain$slopes, 0.05)
})

test_that("a sum of all columns asks for the additive kernel, noise for none", {
  set.seed(8)
  wave <- rowSums(sin(1.5 * x[, 1:5])) + rnorm(m) / 2
  expect_match(names(choice_of(x, wave)$kernels)[1], "additive")
  # A plane needs no other kernel.
  expect_identical(names(choice_of(x, rowSums(x) + rnorm(m))$kernels),
                   "isotropic")
  # Constant responses have nothing to teach.
  still <- choice_of(x, rep(2, m))
  expect_identical(names(still$kernels), "isotropic")
  expect_identical(still$slopes, numeric(6))
})

test_that("repeated rows with one cluster leave as one", {
  twice <- rep(seq_len(60), each = 2)
  responses <- \(i) list(new_response(seq_along(i), curved[i] / 2,
                                      outcome = TRUE))
  s <- riesz_sample(x[1:60, ], NULL, NULL)
  both <- sample_take(s, twice)
  one <- choose_kernel(s, responses(1:60), rep(1, 60), 1:60)
  two <- choose_kernel(both, responses(twice), rep(1, 120), twice)
  expect_near(two$table$loss[1:2], one$table$loss[1:2], 0.01)
  alone <- choose_kernel(both, responses(twice), rep(1, 120), 1:120)
  expect_lt(alone$table$loss[1], 0.7 * one$table$loss[1])
})

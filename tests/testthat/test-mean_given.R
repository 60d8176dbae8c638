# Conditional kernel means against the formula of their weights, class means and
# refits.

set.seed(572)
n <- 60L
d <- data.frame(a = rnorm(n), f = factor(sample(c("u", "v", "w"), n, TRUE)))
d$y <- sin(2 * d$a) + as.integer(d$f) / 2 + rnorm(n) / 3
fit <- kme(y ~ a + f, d)
slow_weights <- function(fit, columns, w = rep(1, fit$n)) {
  x <- fit$x$x
  kernel <- fit_kernel(bank_kernels(x)[[fit$chosen$name]], x)
  given_weights_R(fold_store(kernel, x), fold_store(kernel, columns, x),
                  fit$chosen$penalty, w)
}

test_that("weights are those of the formula and sum to one", {
  new <- data.frame(a = c(-1, 0.3), f = c("w", "u"))
  beta <- predict(fit, new, "weights")
  expect_near(beta, slow_weights(fit, covariates_at(fit$x, new)), 1e-8)
  expect_near(rowSums(beta), c(1, 1), 1e-12)
  expect_near(predict(fit, new), drop(beta %*% d$y), 1e-12)
  k <- fold_store(fit$kernel, matrix(c(0, 1)), matrix(d$y))
  expect_near(predict(fit, new, "value", at = c(0, 1)), beta %*% t(k), 1e-12)
  w <- rexp(n) + 0.1
  weighted <- kme(y ~ a + f, d, weights = w)
  expect_near(predict(weighted, type = "weights"),
              slow_weights(weighted, weighted$x$x, w), 1e-7)
})

test_that("the loss is that of refits in feature space", {
  kernel <- fit_kernel(bank_kernels(fit$x$x)[[fit$chosen$name]], fit$x$x)
  K <- fold_store(kernel, fit$x$x)
  L <- fold_store(fit$kernel, matrix(d$y))
  losses <- vapply(seq_len(n), \(i) {
    beta <- given_weights_R(K[-i, -i], K[i, -i, drop = FALSE],
                            fit$chosen$penalty * n / (n - 1))
    L[i, i] - 2 * sum(beta * L[i, -i]) + drop(beta %*% L[-i, -i] %*% t(beta))
  }, 0)
  expect_near(fit$chosen$losses, losses, 1e-10)
})

test_that("given a factor the means are those of classes but for the ridge", {
  set.seed(1)
  classes <- kme(Sepal.Length ~ Species, iris)
  means <- predict(classes, iris[c(1, 51, 101), ])
  raw <- tapply(iris$Sepal.Length, iris$Species, mean)
  expect_near(unname(means), as.vector(raw), 0.1)
  # Without a penalty they are class means exactly.
  classes$chosen$penalty <- 1e-12
  expect_near(unname(predict(classes, iris[c(1, 51, 101), ])), as.vector(raw),
              1e-8)
  # With a large one the estimate is kme(y).
  classes$chosen$penalty <- 1e12
  expect_near(drop(predict(classes, iris[1, ], "weights")), rep(1 / 150, 150),
              1e-10)
})

test_that("quantiles are monotone and those of the weights", {
  q <- predict(fit, d[1:5, ], "quantile", probs = c(0, 0.2, 0.5, 0.9, 1))
  expect_true(all(apply(q, 1, diff) >= 0))
  beta <- predict(fit, d[1, ], "weights")
  order <- order(d$y)
  below <- pmin(pmax(cummax(cumsum(beta[order])), 0), 1)
  expect_identical(q[[1, 3]], d$y[order][which(below >= 0.5)[1]])
  expect_identical(unname(predict(fit, d, "quantile", probs = 0)[, 1]),
                   rep(min(d$y), n))
})

test_that("many new rows are answered in parts", {
  many <- d[rep(seq_len(n), length.out = 3 * (2^22 %/% n) + 1), ]
  at <- c(1, n, nrow(many))
  expect_near(unname(predict(fit, many))[at],
              unname(predict(fit, many[at, ])), 1e-12)
  expect_identical(nrow(predict(fit, many, "quantile")), nrow(many))
})

test_that("probabilities, draws and scores are those of their definitions", {
  species <- kme(Species ~ Petal.Length + Petal.Width, iris)
  p <- predict(species, iris, "probability")
  expect_near(rowSums(p), rep(1, 150), 1e-12)
  expect_gt(mean(colnames(p)[max.col(p)] == iris$Species), 0.94)
  brier <- mean(rowSums((p - outer(iris$Species, colnames(p), `==`))^2))
  expect_near(score(species, iris), brier, 1e-12)
  beta <- pmax(predict(fit, d, "weights"), 0)
  beta <- beta / rowSums(beta)
  D <- abs(outer(d$y, d$y, `-`))
  crps <- rowSums(beta * D) - rowSums((beta %*% D) * beta) / 2
  expect_near(score(fit, d), mean(crps), 1e-10)
  draws <- simulate(fit, 400, 1, d[1:2, ])
  expect_identical(dim(draws), c(2L, 400L))
  expect_near(rowMeans(draws), drop(beta[1:2, ] %*% d$y), 0.15)
  both <- kme(cbind(y, a) ~ f, d)
  expect_length(simulate(both, 2), 2)
  expect_gt(score(both, d), 0)
})

test_that("the distance of two fits is that of their embeddings", {
  other <- kme(y ~ a, d)
  new <- d[1:4, ]
  L <- fold_store(fit$kernel, matrix(d$y))
  apart <- predict(fit, new, "weights") - predict(other, new, "weights")
  expect_near(kme_distance(fit, other, newdata = new),
              sqrt(rowSums((apart %*% L) * apart)), 1e-6)
  expect_error(kme_distance(fit, 1), class = "kernmean_error_input")
  expect_error(kme_distance(fit, kme(y ~ a, d[-1, ], kernel = fit$kernel)),
               "'newdata'", class = "kernmean_error_input")
})

test_that("the order of rows changes nothing", {
  rows <- sample(n)
  moved <- kme(y ~ a + f, d[rows, ])
  expect_identical(moved$chosen$name, fit$chosen$name)
  expect_near(predict(moved, d[1:3, ]), predict(fit, d[1:3, ]), 1e-7)
})

test_that("verbs of fits work, and bad input is answered in words", {
  expect_snapshot(print(fit))
  expect_identical(nobs(fit), n)
  expect_near(generics::augment(fit)$.fitted, unname(predict(fit)), 1e-12)
  expect_identical(names(generics::tidy(fit)), c("kernel", "loss", "df"))
  same <- update(fit)
  expect_identical(predict(same), predict(fit))
  half <- update(fit, data = d[1:30, ])
  expect_identical(half$n, 30L)
  bad <- \(...) expect_error(..., class = "kernmean_error_input")
  bad(predict(fit, data.frame(a = 1)), "missing: 'f'")
  bad(predict(fit, d, "probability"), "factor")
  bad(predict(fit, d, "value"), "'at'")
  bad(predict(fit, d, "quantile", probs = 2), "probs")
  bad(predict(kme(f ~ a, d), d, "quantile"), "one numeric column")
  bad(kme(y ~ a, d[1:5, ]), "at least 10 rows")
  bad(kme(y ~ a, transform(d, a = 1)), "varies")
  bad(kme(y ~ a, d, estimator = "skmse"), "plain mean")
  bad(kme(y ~ a, transform(d, y = NA_real_)), "missing")
  bad(kme(y ~ y, d), "different terms")
  bad(kme(dist(iris[, 1:4]) ~ Species, iris), "not distances")
  bad(update(fit, subset = a > 0), "subset")
  # A level that no row has is one that the fit has not seen.
  some <- kme(Sepal.Length ~ Species, iris, subset = Species != "setosa")
  bad(predict(some, iris[1, ]), "setosa")
})

test_that("without new rows a score leaves each row of the fit out", {
  beta <- leave_out(predict(fit, type = "weights"), seq_len(n))
  expect_identical(diag(beta), numeric(n))
  expect_near(rowSums(beta), rep(1, n), 1e-9)
  # The losses are those of refits, as the first tests say.
  L <- fold_store(fit$kernel, matrix(d$y))
  expect_near(diag(L) - 2 * rowSums(beta * L) + rowSums((beta %*% L) * beta),
              fit$chosen$losses, 1e-6)
  expect_gt(score(fit), score(fit, d))
})

test_that("weights count in the choice of the kernel and in update()", {
  set.seed(6)
  x <- stats::runif(200, -3, 3)
  good <- rep(c(TRUE, FALSE), each = 100)
  y <- sin(4 * x) + ifelse(good, 0.2, 3) * stats::rnorm(200)
  data <- data.frame(x, y)
  w <- ifelse(good, 1, 1e-6)
  kernel <- kernel_rbf(0.7)
  fit <- kme(y ~ x, data, weights = w, kernel = kernel)
  alone <- kme(y ~ x, data[good, ], kernel = kernel)
  expect_near(fit$chosen$r2, alone$chosen$r2, 0.05)
  error <- predict(fit, data) - sin(4 * x)
  expect_lt(sqrt(mean(error^2)), 0.12)
  expect_near(predict(update(fit), data), predict(fit, data), 1e-10)
  expect_error(update(fit, data = data[1:50, ]), "'weights'",
               class = "kernmean_error_input")
})

test_that("draws leave the generator, and are observed rows", {
  set.seed(3)
  state <- .Random.seed
  first <- simulate(fit, 3, seed = 1)
  expect_identical(.Random.seed, state)
  expect_identical(simulate(fit, 3, seed = 1), first)
  expect_true(all(unlist(first) %in% d$y))
  mixed <- kme(Species + Sepal.Length ~ Petal.Length, iris)
  drawn <- simulate(mixed, 1, newdata = iris[1:2, ])
  expect_identical(names(drawn$sim_1), c("Species", "Sepal.Length"))
})

test_that("classes stand in the order of their levels", {
  rows <- iris[c(150:101, 1:100), ]
  species <- kme(Species ~ Petal.Length, rows)
  p <- predict(species, rows, "probability")
  expect_identical(colnames(p), levels(iris$Species))
  expect_identical(predict(species, rows, "class"),
                   factor(colnames(p)[max.col(p, "first")], colnames(p)))
  # A class that the fit has not seen has the probability 0.
  two <- kme(Species ~ Petal.Length, droplevels(iris[1:100, ]))
  p <- predict(two, iris[101:103, ], "probability")
  expect_near(score(two, iris[101:103, ]), mean(rowSums(p^2)) + 1, 1e-12)
})

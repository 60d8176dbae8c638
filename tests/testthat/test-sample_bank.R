# The bank: losses against refits, choices, and covariates as columns.

set.seed(571)
n <- 40L
frame <- data.frame(a = rnorm(n), f = factor(sample(letters[1:3], n, TRUE)),
                    b = runif(n))
z <- new_covariates(frame)
y <- cbind(sin(2 * frame$a), as.integer(frame$f)) + matrix(rnorm(2 * n), n) / 3

test_that("covariates are columns of mean 0 and variance 1", {
  expect_near(unname(colMeans(z$x)), rep(0, 5), 1e-14)
  expect_near(unname(apply(z$x, 2, sd)), rep(1, 5), 1e-14)
  expect_identical(covariates_at(z, frame[3:5, ]), z$x[3:5, ])
  constant <- new_covariates(cbind(u = rnorm(5), v = 2))
  expect_identical(unname(constant$x[, 2]), rep(0, 5))
  expect_error(covariates_at(z, frame["a"]), class = "kernmean_error_input")
})

test_that("the left-out loss of the choice is that of refits", {
  bank <- make_bank(z$x)
  chosen <- choose_smoother(bank, y)
  kernel <- fit_kernel(bank_kernels(z$x)[[chosen$name]], z$x)
  K <- fold_store(kernel, z$x)
  squares <- vapply(seq_len(n), \(i) {
    beta <- given_weights_R(K[-i, -i], K[i, -i, drop = FALSE],
                            chosen$penalty * n / (n - 1))
    sum((y[i, ] - beta %*% y[-i, ])^2)
  }, 0)
  expect_near(chosen$losses, squares, 1e-8)
  expect_near(chosen$r2, 1 - sum(squares) / sum(vapply(seq_len(n), \(i) {
    sum((y[i, ] - colMeans(y[-i, ]))^2)
  }, 0)), 1e-8)
})

test_that("the choice has the least loss of all kernels and penalties", {
  bank <- make_bank(z$x)
  chosen <- choose_smoother(bank, y)
  least <- min(vapply(bank, \(s) {
    allowed <- smoother_df(s, bank_penalties) <= 0.6 * n
    min(colMeans(smoother_losses(s, y, bank_penalties))[allowed])
  }, 0))
  expect_equal(chosen$loss, least)
  h <- smoother_leverages(chosen$smoother, chosen$penalty)
  expect_near(sum(h), chosen$df, 1e-10)
  fit <- smoother_fit(chosen$smoother, y, chosen$penalty)
  expect_near(rowSums(((y - fit) / (1 - h))^2), chosen$losses, 1e-10)
})

test_that("the kernels are those that the help names", {
  expect_named(bank_kernels(z$x[, 1, drop = FALSE]), c(
    "linear", paste("Gaussian", c(2, 1, 0.5, 0.25, 0.125, 0.0625)), "Laplace"
  ))
  expect_false(any(grepl("pairs", names(bank_kernels(matrix(rnorm(70), 10))))))
})

# What a door gives is made of numbers, or an error says why it is not.

# Paths to what is NaN or infinite in a result; of a fit or a test what it
# holds, but not the data, what was asked for and columns that have no number
# where nothing applies.
not_numbers <- function(x, path = "") {
  apart <- c("sample", "arguments", "kernel", "statistics", "estimator",
             "lambda")
  if (is.double(x)) {
    return(if (!all(is.finite(x))) path)
  }
  x <- if (is.environment(x)) as.list.environment(x) else if (is.list(x)) x
  names <- setdiff(names(x), apart)
  if (is.null(names(x))) names <- seq_along(x)
  unlist(lapply(names, \(name) not_numbers(x[[name]], paste0(path, "$", name))))
}

base <- random_points(12, 2)
extremes <- list(
  largest = pmax(pmin(base, 1), -1) * 1.7e308, large = base * 1e160,
  square = base * 3e153, fourth = base * 1e77, small = base * 1e-160,
  mixed = base %*% diag(c(1e300, 1e-300)), constant = matrix(3e153, 12, 2)
)
kernels <- list(kernel_rbf(1), kernel_linear(), kernel_poly(2),
                kernel_energy())
groups <- rep(1:3, 4)

# Errors that are ours and results of numbers are good.
outcome <- function(call) {
  quietly <- \(w) if (inherits(w, "kernmean_warning")) {
    invokeRestart("muffleWarning")
  }
  tryCatch(
    withCallingHandlers(not_numbers(call), warning = quietly),
    kernmean_error = \(e) NULL,
    error = \(e) conditionMessage(e), warning = \(w) conditionMessage(w)
  )
}

expect_numbers <- function(door) {
  for (data in names(extremes)) {
    for (kernel in kernels) {
      expect_identical(outcome(door(extremes[[data]], kernel)), NULL,
                       info = paste(data, "with", format_kernel(kernel)))
    }
  }
}

test_that("tests give numbers or an error for extreme data", {
  expect_numbers(\(x, k) mmd_test(x, x / 2, k, B = 19))
  expect_numbers(\(x, k) mmd_test(x, x / 2, k, B = 19,
                                  control = test_control(bins = 3)))
  expect_numbers(\(x, k) mmd_test(base, x, k, B = 19, clusters = rep(1:12, 2)))
  expect_numbers(\(x, k) mmd_test(x, x / 2, k,
                                  control = test_control(null = "spectrum"),
                                  B = 19))
  expect_numbers(\(x, k) mmd_test(x, x / 2, k,
                                  control = test_control(null = "gamma")))
  expect_numbers(\(x, k) mmd_test(x, x / 2, k, estimator = "fkmse", B = 19))
  expect_numbers(\(x, k) hsic_test(base, x, k, k, B = 19, estimator = "skmse"))
  expect_numbers(\(x, k) hsic_set(x, x / 2, k, k, null = "gamma"))
  expect_numbers(\(x, k) hsic_test(x, x / 2, k, k, B = 19, filter = "cutoff"))
})

test_that("fits and what they predict are numbers or an error", {
  expect_numbers(\(x, k) kme(x, k, "skmse"))
  expect_numbers(\(x, k) kme(x, k, "smooth"))
  expect_numbers(\(x, k) predict(kme(base, k), x, interval = TRUE))
  expect_numbers(\(x, k) {
    pca <- kme_pca(base, k, ncomp = 2)
    list(predict(pca, x), reconstruction_error(pca, x))
  })
  expect_numbers(\(x, k) predict(kme_fda(base, groups, k), x))
  expect_numbers(\(x, k) rkhs_iv(x, x[, 1], x, kernel = k)$mu)
  expect_numbers(\(x, k) {
    bags <- bag_gram(list(x, x / 2, base), k)
    list(as.matrix(bags), predict(bags, list(x)))
  })
  expect_numbers(\(x, k) as.matrix(bag_gram(list(x, x / 2, base), k,
                                            level2 = "poly")))
})

test_that("an error of class numeric says what is not a number", {
  x <- extremes$large
  numeric <- "kernmean_error_numeric"
  expect_error(mmd_test(x, x / 2, kernel_linear(),
                        control = test_control(bins = 3)), "overflow",
               class = numeric)
  expect_error(bag_gram(list(x, x), kernel_linear()),
               "rescale the columns of the bags", class = numeric)
  expect_error(quietly(rkhs_iv(x, x[, 1], x, kernel = kernel_rbf(1))),
               "a held-out criterion is not a finite number", class = numeric)
  expect_error(check_result(list(1, list(matrix(NaN))), "it"),
               "it is not a finite number", class = numeric)
  expect_identical(check_result(list(a = 1, b = "c", f = mean), "it"),
                   list(a = 1, b = "c", f = mean))
})

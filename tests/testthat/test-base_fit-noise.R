# Data that differ by roundings, on the scale of .Machine$double.eps, give
# results that differ by roundings.

# The numbers of the one row of facts, of a test its p-value among them.
facts_of <- function(fit) {
  facts <- glance.kernmean_fit(fit)
  unlist(facts[vapply(facts, is.numeric, NA)])
}

shaken <- function(x) {
  x + .Machine$double.eps * abs(x) * rep_len(c(1, -1, 1, 0, -1), length(x))
}

x <- as.matrix(iris[c(1:20, 51:70, 101:120), 1:4])
kinds <- iris$Species[c(1:20, 51:70, 101:120)]
rbf <- kernel_rbf()
z <- x[, 1]
y <- sin(z) + x[, 2] / 10

# Each of x alone; draws are the same after the same seed.
doors <- list(
  kme = \(x) kme(x, rbf), skmse = \(x) kme(x, rbf, "skmse"),
  fkmse = \(x) kme(x, rbf, "fkmse"), mkme = \(x) kme(x, rbf, "mkme"),
  mmkme = \(x) kme(x, rbf, "mmkme"), smooth = \(x) kme(x, rbf, "smooth"),
  stack = \(x) kme(x, rbf, "stack"),
  mmd = \(x) mmd_test(x[1:20, ], x[21:60, ], B = 99),
  pairwise = \(x) mmd_pairwise(x, kinds, B = 99),
  gof = \(x) mmd_gof(x, "normal", B = 99),
  hsic = \(x) hsic_test(x[, 1:2], x[, 3:4], B = 99),
  pca = \(x) kme_pca(x, rbf, ncomp = 3), cov = \(x) kme_cov(x, kernel = rbf),
  fda = \(x) kme_fda(x, kinds), density = \(x) kme_density(x, m = 3),
  iv = \(x) rkhs_iv(x[, 3], y, z), smm = \(x) {
    smm(bag_gram(split(as.data.frame(x), rep(1:12, each = 5))),
        rep(levels(kinds), each = 4))
  },
  sketch = \(x) kme(kme_sketch(x, kme_landmarks(x, m = 20)),
                    estimator = "skmse")
)

test_that("roundings of the data are roundings of the results", {
  for (name in names(doors)) {
    results <- lapply(list(x, shaken(x)), \(data) {
      set.seed(1)
      facts_of(doors[[name]](data))
    })
    expect_gt(length(results[[1L]]), 0L)
    expect_equal(results[[2L]], results[[1L]], tolerance = 1e-6, label = name)
  }
})

test_that("what is added to the data is more than a rounding of them", {
  expect_false(identical(shaken(x), x))
  moved <- facts_of(kme(x + 0.1 * sin(seq_along(x)), rbf))
  expect_false(isTRUE(all.equal(moved, facts_of(kme(x, rbf)),
                                tolerance = 1e-6)))
})

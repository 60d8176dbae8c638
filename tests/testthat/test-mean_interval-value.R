# Intervals for the values of kernel means.

rbf <- kernel_rbf(1.5)
same <- kernel_function(\(a, b) outer(a[, 1], b[, 1], "==") + 0)

ends <- \(fit, ...) unname(predict(fit, ..., interval = TRUE)[, -1L])

test_that("bets and Chernoff's bound are what their slow twins find", {
  for (n in c(1, 3, 33, 200)) {
    x <- random_points(n, 2)
    z <- rbind(random_points(5, 2, 7), c(30, -30))
    for (kernel in list(kernel_rbf(0.1), rbf, kernel_laplace(2),
                        kernel_matern(5 / 2, 9))) {
      fit <- kme(x, kernel)
      k <- gram_R(kernel, z, x)
      expect_near(ends(fit, z), bets_R(k), 1e-9)
      expect_near(ends(fit, z, level = 0.8), bets_R(k, 0.2), 1e-9)
      expect_near(ends(fit, z, method = "chernoff"), chernoff_R(k), 1e-7)
      # Values that were stored, those of a function, and their multiples.
      expect_near(ends(kme(gram(x, kernel)), z), bets_R(k), 1e-9)
      values <- gram_R(kernel, x)
      expect_near(ends(kme(as_gram(3 * values)), 3 * k), 3 * bets_R(k), 1e-9)
      own <- kernel_function(\(a, b) gram_R(kernel, a, b))
      expect_near(ends(kme(x, own), z), bets_R(k), 1e-9)
    }
  }
  # No value leaves the range, and the fit is within.
  got <- predict(kme(random_points(20, 1), kernel_rbf(0.05)), c(0, 2, 3),
                 interval = TRUE)
  expect_true(all(got >= 0 & got <= 1))
  expect_true(all(got[, "lower"] <= got[, "fit"]))
  expect_gt(got[3, "upper"], 6e-4)
  old <- kernmean_threads(1)
  one <- ends(fit, x)
  kernmean_threads(2)
  expect_identical(ends(fit, x), one)
  kernmean_threads(old)
})

test_that("the own point of a value does not count for it", {
  x <- random_points(21, 1)
  kernel <- kernel_rbf(0.4)
  k <- gram_R(kernel, x)
  without <- t(vapply(1:21, \(i) {
    c(bet_end_R(k[i, -i], 0.05, 21), 1 - bet_end_R(1 - k[i, -i], 0.05, 21))
  }, numeric(2)))
  all <- bets_R(k)
  fit <- kme(x, kernel)
  expect_near(ends(fit), without, 1e-9)
  expect_near(ends(kme(as_gram(k))), without, 1e-9)
  expect_near(ends(fit, method = "chernoff")[4, ],
              chernoff_R(k[4, -4, drop = FALSE])[1, ], 1e-7)
  # Given as new points, at the lower end: the interval holds both.
  both <- cbind(without[, 1], all[, 2])
  expect_near(ends(fit, rbind(x, 9))[1:21, ], both, 1e-9)
  expect_near(ends(kme(as_gram(k)), k), both, 1e-9)
  expect_true(all(both[, 1] <= all[, 1] & both[, 2] >= without[, 2]))
  # Of equal ones a single one.
  twice <- kme(x[c(1:21, 1:3)], kernel)
  k <- gram_R(kernel, x, x[c(1:21, 1:3), , drop = FALSE])
  expect_near(ends(twice, x)[2, 1], bet_end_R(k[2, -2], 0.05, 24), 1e-9)
  expect_near(ends(twice)[2, 1], bet_end_R(k[2, -2], 0.05, 24), 1e-9)
  # The value of one point has no others.
  expect_identical(ends(kme(1, rbf)), c(0, 1))
  # A grid that meets points is no part of the sample.
  fit <- kme(c(0, 1, 1, 2), kernel_rbf(0.1))
  drawn <- plot(fit, interval = TRUE, n = 5)
  at <- matrix(drawn$z)
  expect_near(as.matrix(drawn[c("lower", "upper")]),
              `colnames<-`(bets_R(gram_R(kernel_rbf(0.1), at,
                                         matrix(c(0, 1, 1, 2)))),
                           c("lower", "upper")), 1e-9)
})

# The smallest share of samples, over all p, in which p is within the ends; row
# i + 1 of these for i of n.
least_coverage <- function(n, ends) {
  near <- c(ends - 1e-9, ends, ends + 1e-9)
  p <- c(seq(0, 1, 0.005), near[near >= 0 & near <= 1])
  min(vapply(p, \(p) {
    sum(stats::dbinom(0:n, n, p)[ends[, 1] <= p & p <= ends[, 2]])
  }, 1))
}

test_that("of values 0 and 1 all samples say how often intervals hold", {
  # k(x, z) is 1 for x = z: its mean is the probability of z.
  for (method in c("betting", "chernoff")) {
    for (n in c(1, 2, 5, 13, 40)) {
      counts <- seq(0, n)
      fits <- lapply(counts, \(i) kme(rep(1:2, c(i, n - i)), same))
      at <- \(i, own) {
        value_ends(fits[[i]], new_points(matrix(1)), 0, 0.95, method, own)
      }
      # z is given; or it is that of a point, which is looked for or known.
      given <- t(vapply(seq_along(fits), at, numeric(2), own = FALSE))
      expect_gte(least_coverage(n, given), 0.95)
      looked <- t(vapply(seq_along(fits), at, numeric(2), own = NULL))
      expect_true(all(looked[, 1] <= given[, 1] & looked[, 2] == given[, 2]))
      expect_gte(least_coverage(n - 1, looked[-1, , drop = FALSE]), 0.95)
      known <- t(vapply(fits[-1], \(fit) {
        matrix(ends(fit, method = method), ncol = 2)[1, ]
      }, numeric(2)))
      expect_gte(least_coverage(n - 1, known), 0.95)
    }
  }
})

test_that("intervals hold in and out of the mass, and at points", {
  skip_on_cran()
  set.seed(5)
  for (d in c(1, 5)) for (theta in c(0.1, 1)) {
    z <- rbind(numeric(d), rep(3 / sqrt(d), d))
    truth <- \(z) {
      s <- theta^2 + 1
      (theta^2 / s)^(d / 2) * exp(-rowSums(z^2) / (2 * s))
    }
    held <- replicate(200, {
      x <- matrix(stats::rnorm(20 * d), 20)
      fit <- kme(x, kernel_rbf(theta))
      first <- x[1, , drop = FALSE]
      at <- rbind(ends(fit, rbind(z, first)), ends(fit)[c(1, 21)])
      want <- c(truth(z), truth(first), truth(first))
      at[, 1] <= want & want <= at[, 2]
    })
    expect_gte(min(rowSums(held)), stats::qbinom(1e-4, 200, 0.95))
  }
})

test_that("kernels that are not bounded have normal intervals", {
  x <- random_points(25, 2)
  z <- rbind(random_points(6, 2), c(30, -30))
  rownames(z) <- letters[1:7]
  kernels <- native_kernels(2)
  kernels <- kernels[!names(kernels) %in% c("energy", "sqdist", "l1dist",
                                            "rbf_narrow")]
  kernels$own <- kernel_function(\(a, b) gram_R(kernel_rbf(2), a, b))
  for (name in names(kernels)) {
    kernel <- kernels[[name]]
    k <- if (name == "own") kernel_rbf(2) else kernel
    default <- name %in% c("linear", "poly2", "poly3", "poly7")
    normal <- \(fit, ...) {
      predict(fit, ..., interval = TRUE, method = if (!default) "normal")
    }
    # Not the rows of poly7 at (30, -30): its sums are of 1e12.
    fit <- kme(x, kernel)
    want <- normal_ends_R(gram_R(k, z, x), 0.9)
    got <- normal(fit, z, level = 0.9)
    expect_equal(unname(got), unname(want), tolerance = 1e-7, label = name)
    expect_identical(dimnames(got), list(letters[1:7],
                                         c("fit", "lower", "upper")))
    expect_identical(got[, "fit"], predict(fit, z))
    own <- normal(fit)
    expect_equal(unname(own), unname(normal_ends_R(gram_R(k, x))),
                 tolerance = 1e-7, label = name)
    expect_identical(unname(own[, "fit"]), unname(predict(fit)))
    expect_equal(normal(kme(gram(x, kernel)), z, level = 0.9), got,
                 tolerance = 1e-7)
    stored <- kme(as_gram(gram_R(k, x)))
    expect_near(unname(normal(stored)), unname(own), 1e-7)
    expect_equal(unname(normal(stored, gram_R(k, z, x), level = 0.9)),
                 unname(want), tolerance = 1e-7)
  }
  # Columns in their own units, and names.
  frame <- data.frame(a = x[, 1], b = 50 * x[, 2], row.names = 1:25 + 100)
  scaled <- kme(~ a + b, frame, kernel = rbf, scale = TRUE)
  want <- normal_ends_R(gram_R(rbf, scale(as.matrix(frame))))
  expect_equal(predict(scaled, frame, interval = TRUE, method = "normal"),
               structure(want, dimnames = list(rownames(frame),
                                               colnames(want))))
})

test_that("kernels with negative values are taken from -k(x, x) on", {
  wave <- \(a, b) 2 * cos(outer(a[, 1], b[, 1], "-"))
  x <- matrix(c(0, 1, 2, 4, 5))
  fit <- kme(x, kernel_function(wave))
  z <- matrix(c(0.5, 3))
  expect_near(ends(fit, z), 4 * bets_R((wave(z, x) + 2) / 4) - 2, 1e-9)
  expect_error(ends(kme(as_gram(wave(x, x))), matrix(3, 1, 5)),
               "kernel values from -2 to 2", class = "kernmean_error_input")
  expect_error(ends(kme(as_gram(diag(5))), matrix(-1, 1, 5)),
               "kernel values from 0 to 1", class = "kernmean_error_input")
})

test_that("intervals of sketches hold the mean of all rows' own values", {
  x <- random_points(200, 2)
  z <- rbind(random_points(5, 2, 3), c(4, 4))
  of_rows <- chernoff_R(gram_R(rbf, z, x))
  chernoff <- \(fit, z) ends(fit, z, method = "chernoff")
  all <- kme(kme_sketch(x, 200, kernel = rbf))
  expect_near(ends(all, z), of_rows, 1e-3)
  expect_identical(ends(all, z), chernoff(all, z))
  for (moments in 1:2) {
    few <- kme(kme_sketch(x, 15, kernel = rbf, moments = moments))
    got <- ends(few, z)
    expect_true(all(got[, 1] <= of_rows[, 1] & got[, 2] >= of_rows[, 2]))
    expect_true(all(got >= 0 & got <= 1))
    # At landmarks nothing is lost.
    s <- few$sample$x
    expect_near(ends(few, s), chernoff_R(gram_R(rbf, s, x)), 1e-3)
  }
})

# Noise with a covariance, of all points or of each: against the closed form
# written out, pair by pair.

set.seed(20211)
d <- 3
n <- 7
x <- matrix(rnorm(n * d), n, dimnames = list(NULL, c("a", "b", "c")))
root <- matrix(rnorm(d * d), d)
sigma <- crossprod(root) / 4
each <- array(apply(matrix(rnorm(n * d * d), n), 1, \(r) {
  crossprod(matrix(r, d)) / 3
}), c(d, d, n))
theta <- c(0.8, 1.2, 1)
kernel <- kernel_rbf(theta)

# E k(X, Y) for independent X from N(a, A) and Y from N(b, B).
smoothed <- function(a, b, A, B) {
  total <- diag(theta^2) + A + B
  sqrt(prod(theta^2) / det(total)) *
    exp(-drop((a - b) %*% solve(total, a - b)) / 2)
}
values <- function(x, y, of_x, of_y) {
  outer(seq_len(nrow(x)), seq_len(nrow(y)), Vectorize(\(i, j) {
    smoothed(x[i, ], y[j, ], of_x(i), of_y(j))
  }))
}
none <- \(i) matrix(0, d, d)
one <- \(i) sigma
own <- \(i) each[, , i]

test_that("a fit with covariances is the mean of smoothed kernels", {
  z <- matrix(rnorm(4 * d), 4)
  for (case in list(list(sigma, one), list(each, own))) {
    fit <- kme(x, kernel, est_mmkme(noise = case[[1]]), scale = FALSE)
    expect_equal(unname(predict(fit, z)),
                 rowMeans(values(z, x, none, case[[2]])), tolerance = 1e-12)
    expect_equal(unname(fitted(fit)), rowMeans(values(x, x, none, case[[2]])),
                 tolerance = 1e-12)
    expect_equal(fit$norm2, mean(values(x, x, case[[2]], case[[2]])),
                 tolerance = 1e-12)
    expect_equal(fit$noise, case[[1]])
  }
})

test_that("inner products, distances and risks add the covariances", {
  y <- x[1:5, ] + 1
  a <- kme(x, kernel, est_mmkme(noise = each), scale = FALSE)
  b <- kme(y, kernel, est_mmkme(noise = sigma), scale = FALSE)
  cross <- mean(values(x, y, own, one))
  expect_equal(kme_inner(a, b), cross, tolerance = 1e-12)
  expect_equal(kme_distance(a, b)^2, a$norm2 + b$norm2 - 2 * cross,
               tolerance = 1e-10)
  # Of more parts than are taken one by one.
  many <- x[rep(1:n, 3), ] + rnorm(3 * n * d)
  wide <- kme(many, kernel, est_mmkme(noise = each[, , rep(1:n, 3)]),
              scale = FALSE)
  repeated <- \(i) each[, , (i - 1) %% n + 1]
  expect_equal(wide$norm2, mean(values(many, many, repeated, repeated)),
               tolerance = 1e-12)
  expect_equal(kme_inner(wide, a), mean(values(many, x, repeated, own)),
               tolerance = 1e-12)
  expect_equal(kme_distance(wide, a)^2,
               wide$norm2 + a$norm2 - 2 * kme_inner(wide, a), tolerance = 1e-9)
  mixture <- list(weights = c(0.4, 0.6), means = x[1:2, ],
                  covariances = each[, , 1:2])
  inner <- drop(values(x, x[1:2, ], own, own) %*% mixture$weights)
  norm2 <- drop(mixture$weights %*% values(x[1:2, ], x[1:2, ], own, own) %*%
                  mixture$weights)
  expect_equal(kme_risk(a, mixture), a$norm2 - 2 * mean(inner) + norm2,
               tolerance = 1e-10)
})

test_that("a diagonal covariance is variances, everywhere", {
  variances <- c(0.3, 0.1, 0.5)
  same <- function(make) {
    as_matrix <- make(est_mmkme(noise = diag(variances)))
    as_vector <- make(est_mmkme(noise = variances))
    of_each <- make(est_mmkme(noise = array(diag(variances), c(3, 3, 150))))
    expect_equal(as_matrix, as_vector, tolerance = 1e-10)
    expect_equal(of_each, as_vector, tolerance = 1e-10)
  }
  z <- as.matrix(iris[1:3])
  dimnames(z) <- NULL
  same(\(e) kme(z, estimator = e)$norm2)
  same(\(e) as_weights(kme(z[1:20, ], kernel_rbf(1),
                           if (length(dim(e$noise)) == 3) {
                             est_mmkme(noise = e$noise[, , 1:20])
                           } else e)))
  same(\(e) {
    set.seed(1)
    mmd_test(z[1:100, ], z[101:150, ], estimator = e,
             B = 99)[c("p.value", "statistic")]
  })
  same(\(e) {
    set.seed(1)
    # The formula sorts the rows by group, and their covariances with them.
    shuffled <- iris[c(seq(2, 150, 2), seq(1, 149, 2)), ]
    mmd_test(cbind(Sepal.Length, Sepal.Width, Petal.Length) ~ Species, shuffled,
             estimator = e, B = 99)[c("p.value", "statistic")]
  })
  same(\(e) {
    set.seed(1)
    hsic_test(z, z[150:1, ], estimator = e, B = 99)[c("p.value", "statistic")]
  })
  same(\(e) {
    kme_density(z, m = 2, estimator = e, scale = FALSE,
                optimize = "weights")$objective
  })
  two <- \(noise) kme(z, kernel_rbf(1), est_mmkme(noise = noise))
  expect_equal(as_weights(two(diag(variances)), "taylor"),
               as_weights(two(variances), "taylor"), tolerance = 1e-9)
  bags <- \(noise) bag_gram(split(as.data.frame(z), iris$Species),
                            estimator = est_mmkme(noise = noise))
  expect_equal(as.matrix(bags(diag(variances))),
               as.matrix(bags(variances)), tolerance = 1e-10)
  pairs <- \(noise) {
    set.seed(1)
    mmd_pairwise(z, iris$Species, estimator = est_mmkme(noise = noise),
                 B = 59)$table
  }
  expect_equal(pairs(diag(variances)), pairs(variances),
               tolerance = 1e-9)
})

test_that("covariances of points travel with them when groups are sorted", {
  noise <- array(0, c(1, 1, 40))
  noise[1, 1, ] <- seq(0.1, 4, 0.1)
  data <- data.frame(v = sin(1:40), g = rep(c("b", "a"), 20))
  by_formula <- mmd_test(v ~ g, data, estimator = est_mmkme(noise = noise),
                         kernel = kernel_rbf(1), scale = FALSE, B = 19)
  second <- data$g == "a"
  at <- c(which(second), which(!second))
  sorted <- est_mmkme(noise = noise[, , at, drop = FALSE])
  by_hand <- mmd_test(data$v[second], data$v[!second], kernel = kernel_rbf(1),
                      estimator = sorted, scale = FALSE, B = 19)
  expect_equal(unname(by_formula$statistic), unname(by_hand$statistic),
               tolerance = 1e-12)
  v <- data$v[at]
  variance <- noise[1, 1, at]
  total <- 1 + outer(variance, variance, `+`)
  q <- exp(-outer(v, v, `-`)^2 / (2 * total)) / sqrt(total)
  sign <- rep(c(1, -1) / 20, each = 20)
  expect_equal(unname(by_hand$statistic), drop(sign %*% q %*% sign),
               tolerance = 1e-12)
})

test_that("columns by name, and what is no covariance, are told", {
  shuffled <- c("c", "a", "b")
  named <- structure(sigma, dimnames = list(colnames(x), colnames(x)))
  fit <- \(noise) kme(x, kernel, est_mmkme(noise = noise), scale = FALSE)
  expect_equal(fit(named[shuffled, shuffled])$norm2, fit(sigma)$norm2,
               tolerance = 1e-12)
  refused(est_mmkme(noise = matrix(1:6, 2)), "d x d covariance")
  refused(est_mmkme(noise = matrix(c(1, 2, 3, 4), 2)), "symmetric")
  refused(est_mmkme(noise = -diag(2)), "positive semi-definite")
  refused(est_mkme(noise = diag(2)), "'noise'")
  refused(fit(diag(2)), "3 x 3")
  refused(fit(each[, , 1:3]), "3 x 3 x 7")
  refused(kme(x, kernel_poly(2), est_mmkme(noise = sigma)),
                     "RBF kernel.*covariances")
  refused(bag_gram(list(x, x), estimator = est_mmkme(noise = each)),
                     "one covariance")
  refused(as_weights(fit(each), "taylor"), "covariances of their own")
  expect_output(print(fit(sigma)), "one covariance, 3 x 3")
  expect_output(print(fit(each)), "7 covariances, 3 x 3")
  expect_output(print(summary(fit(sigma))), "covariance")
  expect_output(print(summary(fit(each))), "7 covariances")
})

test_that("an array that does not fit, and names at odds, are told", {
  few <- each[, , 1:3]
  refused(mmd_test(x[1:4, ], x[5:7, ], kernel = kernel, scale = FALSE,
                   estimator = est_mmkme(noise = few), B = 19), "3 x 3 x 7")
  data <- data.frame(x, g = rep(c("v", "u"), length.out = n))
  refused(mmd_test(cbind(a, b, c) ~ g, data, kernel = kernel, scale = FALSE,
                   estimator = est_mmkme(noise = few), B = 19), "3 x 3 x 7")
  odd <- structure(sigma, dimnames = list(c("a", "b", "c"), c("a", "c", "b")))
  refused(est_mmkme(noise = odd), "same names for rows and columns")
  refused(est_mkme(noise = sigma), "est_mmkme\\(\\) takes covariances")
  refused(est_stack(list(est_kme(), est_mmkme(noise = each))), "leaves points")
  columns <- structure(sigma, dimnames = list(NULL, c("c", "a", "b")))
  fit <- kme(x, kernel, est_mmkme(noise = columns), scale = FALSE)
  expect_equal(unname(fit$noise), sigma[c(2, 3, 1), c(2, 3, 1)])
})

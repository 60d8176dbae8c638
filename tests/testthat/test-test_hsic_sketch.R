# Tests of independence from sketches against their n x n twins, on the
# projected Gram matrices of all rows.

kx <- kernel_rbf(1.3)
ky <- kernel_rbf(0.9)

set.seed(1)
x <- random_points(80, 2)
y <- x[, 1, drop = FALSE]^2 + random_points(80, 1) / 2
# Far enough from each other that their Gram matrices are well conditioned.
S <- as.matrix(expand.grid(c(-2.1, -0.7, 0.7, 2.1), c(-1.5, 0, 1.5)))
lx <- kme_landmarks(S, kernel = kx, method = "uniform")
ly <- kme_landmarks(-2:3, kernel = ky, method = "uniform")
twin_x <- sketch_R(x, landmark_x(lx), \(a, b) gram_R(kx, a, b))
twin_y <- sketch_R(y, landmark_x(ly), \(a, b) gram_R(ky, a, b))

sketch <- function(a = x, b = y, ...) {
  kme_sketch(a, list(lx, ly), y = b, progress = FALSE, ...)
}

test_that("the statistic is HSIC of the projected Gram matrices", {
  test <- hsic_test(sketch(), B = 19)
  want <- hsic_R(twin_x$K, twin_y$K)
  # 1e-14 seen.
  expect_near(test$statistic, c(HSIC = want), 1e-10)
  expect_equal(
    test$estimate[["normalized HSIC"]],
    want / sqrt(hsic_R(twin_x$K, twin_x$K) * hsic_R(twin_y$K, twin_y$K)),
    tolerance = 1e-10
  )
  # With landmarks that lose nothing it is that of points.
  all <- kme_sketch(x, list(kme_landmarks(x, 80, kx), kme_landmarks(y, 80, ky)),
                    y = y)
  points <- hsic_test(x, y, kx, ky, B = 19)
  got <- hsic_test(all, B = 19)
  expect_near(got$statistic, points$statistic, 1e-6)
  expect_near(got$estimate, points$estimate, 1e-6)
  expect_s3_class(got, c("hsic_test", "kernmean_fit", "htest"), exact = TRUE)
  expect_identical(names(got), names(points))
})

test_that("the law has all pairs of eigenvalues", {
  values <- \(twin) {
    eigen(center_R(twin$K), symmetric = TRUE, only.values = TRUE)$values / 80
  }
  products <- outer(values(twin_x), values(twin_y))
  products <- products[products > 1e-14]
  samples <- lapply(cross_variables(sketch()), `[[`, "sample")
  set.seed(2)
  got <- cross_draws(samples, 5000)
  expect_lt(abs(mean(got) - sum(products)),
            4 * sqrt(2 * sum(products^2) / 5000))
  expect_gte(min(got), 0)
  # The draws are those of all pairs, one by one: a Kolmogorov-Smirnov distance
  # of 1.95 sqrt(2/B) has a p-value of 0.001.
  each <- colSums(products * matrix(stats::rchisq(5000 * length(products), 1),
                                    length(products)))
  expect_lt(stats::ks.test(got, each)$statistic, 1.95 * sqrt(2 / 5000))
})

test_that("weights make a size of the sample", {
  w <- stats::rexp(80)
  run <- \(w) {
    set.seed(4)
    hsic_test(sketch(weights = w), B = 99)
  }
  test <- run(w)
  p <- w / sum(w)
  center <- \(phi) sweep(phi, 2, colSums(p * phi))
  a <- center(twin_x$phi)
  b <- center(twin_y$phi)
  expect_near(test$statistic[[1]], sum(crossprod(a, p * b)^2), 1e-10)
  size <- sum(w)^2 / sum(w^2)
  # To 5 standard errors of 99 draws.
  law <- sum(a^2 * p) * sum(b^2 * p)
  expect_lt(abs(size * mean(test$replicates) - law),
            5 * size * stats::sd(test$replicates) / sqrt(99))
  expect_identical(test$parameter[["n"]], 80)
  plain <- run(NULL)
  expect_near(run(rep(2, 80))$replicates, plain$replicates, 1e-12)
})

test_that("variables have their names, and factors their levels", {
  data <- data.frame(mag = y[, 1], a = x[, 1], b = x[, 2],
                     kind = factor(rep(c("u", "v"), 40)))
  s <- kme_sketch(kind ~ a + b, data, 12)
  test <- hsic_test(s, B = 19)
  expect_identical(names(test$variables), c("kind", "a + b"))
  expect_named(test$parameter, c("n", "B", "bandwidth of a + b"))
  expect_match(test$data.name, "kind and a + b of s", fixed = TRUE)
  expect_identical(nobs(test), 80)
  # Two groups: HSIC with a factor is MMD^2 of its levels, by a factor.
  apart <- mmd_test(kme_sketch(data, s$landmarks[[2]],
                               groups = data$kind), B = 19)
  expect_near(test$statistic[[1]],
              2 * (40 * 40 / 80^2)^2 * apart$statistic[[1]], 1e-10)
  # Groups are pooled.
  grouped <- hsic_test(sketch(groups = rep(1:2, 40)), B = 19)
  expect_near(grouped$statistic, hsic_test(sketch(), B = 19)$statistic, 1e-12)
})

test_that("what a sketch cannot do is refused with the reason", {
  refused <- \(expr, words) {
    expect_error(expr, words, class = "kernmean_error_input")
  }
  s <- sketch()
  refused(hsic_test(kme_sketch(x, lx)), "a sketch of two variables")
  refused(hsic_test(s, y), "'y' must not be given")
  refused(hsic_set(s, null = "permutation"), "must be \"spectrum\"")
  refused(hsic_set(s, statistic = "unbiased"), "must be \"biased\"")
  refused(hsic_test(s, estimator = "skmse"), "must be \"kme\"")
  refused(hsic_test(s, kernel_x = kx), "'kernel_x' must not be given")
  refused(hsic_test(s, clusters = 1:80), "'clusters' must not be given")
  refused(hsic_test(sketch(moments = 1)), "with second moments")
  refused(update(hsic_test(s, B = 19), y = y), "'y' must not be given")
  refused(hsic_test(x, s), "sketch")
})

test_that("the test keeps its level for large n", {
  skip_on_cran()
  set.seed(6)
  rejected <- sum(replicate(200, {
    s <- sketch(matrix(stats::rnorm(400), 200), matrix(stats::rnorm(200)))
    hsic_test(s, B = 39)$p.value <= 0.05 + 1e-12
  }))
  expect_true(in_band(rejected, 200))
})

test_that("a variable that the landmarks do not reach is named", {
  set.seed(1)
  near <- matrix(rnorm(60), 30)
  landmarks <- list(kme_landmarks(near, 10), kme_landmarks(near[, 1], 10))
  far <- kme_sketch(near + 5, landmarks, y = near[, 1])
  expect_warning(hsic_test(far, B = 19), "of 'x', and with it",
                 class = "kernmean_warning_projection")
  expect_no_warning(hsic_test(kme_sketch(near, landmarks, y = near[, 1]),
                              B = 19))
})

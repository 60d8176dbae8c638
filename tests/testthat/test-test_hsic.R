A <- reference_data("A")
A_y <- reference_data("A_y")

test_that("the statistics equal the reference values", {
  value <- \(quantity) reference_value("A_hsic", quantity)
  test <- hsic_set(A, A_y, B = 19)
  expect_near(unname(test$statistic), value("hsic_biased"), 1e-9)
  expect_near(test$kernel$y$bandwidth^2, value("theta2_y"), 1e-9)
  unbiased <- hsic_set(A, A_y, B = 19, statistic = "unbiased")
  expect_near(unname(unbiased$statistic), value("hsic_unbiased"), 1e-9)
  shrunk <- hsic_test(A, A_y, B = 19, estimator = "skmse")
  expect_near(shrunk$alpha, value("scose_alpha"), 1e-9)
  expect_near(unname(shrunk$statistic), value("hsic_scose"), 1e-9)
})

test_that("each statistic equals its twin under permutations", {
  n <- 23
  x <- random_points(n, 5, 1)
  y <- random_points(n, 2, 2) + x[, 1:2]
  set.seed(3)
  p <- draw_columns(n, 30)
  run <- \(...) hsic_set(x, y, permutations = p, ...)
  test <- run()
  used <- used_grams(test, x, y)
  K <- used[[1]]
  L <- used[[2]]
  # Largest errors seen: 4e-16 of values of 1e-2.
  agree <- function(test, twin) {
    twins <- c(twin(seq_len(n)), over_columns(p, twin))
    expect_lt(max(abs(c(test$statistic, test$replicates) - twins)),
              1e-12 * max(abs(twins)))
  }
  agree(test, \(p) hsic_R(K, L, p))
  agree(run(statistic = "unbiased"), \(p) hsic_unbiased_R(K, L, p))
  for (select in c("plugin", "loocv")) {
    agree(run(estimator = est_skmse(select = select)),
          \(p) scose_R(K, L, p, select))
  }
  agree(run(estimator = est_skmse(3)), \(p) hsic_R(K, L, p) / 16)
  for (lambda in c(0.01, 1)) {
    agree(run(estimator = est_fkmse(lambda)),
          \(p) fcose_R(K, L, p, lambda))
  }
  expect_equal(run(estimator = "skmse")$statistic,
               hsic_test(x, y, B = 19, estimator = "rkmse")$statistic)
})

test_that("gathers, factors and the formula agree at all instruction levels", {
  skip_on_cran()
  for (n in c(5, 64, 151)) {
    x <- random_points(n, 1, 1)
    y <- random_points(n, 1, 2)
    K <- as_gram(gram_R(kernel_rbf(1.2), x))
    L <- as_gram(gram_R(kernel_rbf(0.8), y))
    set.seed(4)
    p <- draw_columns(n, 70)
    twin <- over_columns(p, \(p) hsic_R(K$K, L$K, p))
    factors <- lapply(list(K$K, L$K), \(k) {
      .Call(C_r_lowrank, native_source(NULL, k), n)
    })
    points <- .Call(C_r_lowrank, native_source(kernel_rbf(1.2), x), n)
    expect_near(crossprod(points), center_R(K$K), 1e-12)
    centered <- lapply(list(K$K, L$K), \(k) {
      .Call(C_r_centered, native_source(NULL, k), NULL, NULL)$k
    })
    expect_near(centered[[1]], center_R(K$K), 1e-12)
    for (level in isa_levels()) {
      with_isa(level, {
        whole <- .Call(C_r_permuted_forms, centered[[1]], centered[[2]], p)
        whole <- whole / n^2
        low <- .Call(C_r_permuted_products, points, factors[[2]], p) / n^2
        sums <- .Call(C_r_permuted_sums, x[, 1], y[, 1], p)
      })
      # Seen: 6e-15 and 1e-12, the trace that the factors leave.
      expect_lt(max(abs(whole - twin)) / max(twin), 1e-12)
      expect_lt(max(abs(low - twin)) / max(twin), 1e-10)
      expect_near(sums, over_columns(p, \(p) sum(x * y[p])), 1e-12)
    }
  }
})

test_that("statistics by factors equal their twins", {
  x <- random_points(130, 1, 1)
  y <- random_points(130, 1, 2) + 0.3 * x
  set.seed(16)
  p <- draw_columns(130, 5)
  run <- \(...) hsic_set(x, y, permutations = p, ...)
  K <- used_grams(run(), x, y)
  expect_length(run()$ranks, 2)
  # Seen: 8e-12, the trace that the factors leave.
  agree <- function(test, twin) {
    expect_lt(max(abs(test$replicates - over_columns(p, twin))),
              1e-10 * test$statistic)
  }
  agree(run(statistic = "unbiased"), \(p) hsic_unbiased_R(K[[1]], K[[2]], p))
  for (select in c("plugin", "loocv")) {
    agree(run(estimator = est_skmse(select = select)),
          \(p) scose_R(K[[1]], K[[2]], p, select))
  }
})

test_that("low ranks are found, and only they", {
  x <- random_points(400, 1, 1)
  y <- random_points(400, 1, 2)
  wide <- random_points(400, 6, 3)
  ranks <- \(x, y, ..., B = 19) hsic_set(x, y, ..., B = B)$ranks
  expect_true(prod(ranks(x, y)) < 1600)
  expect_null(ranks(wide, wide + 1))
  expect_null(ranks(x, y, kernel_energy(), kernel_energy()))
  expect_identical(ranks(wide, y, kernel_linear())[["x"]], 6L)
  levels <- factor(rep(1:5, 80))
  # A linear kernel is centered first: one level less.
  expect_identical(ranks(levels, y)[["x"]], 4L)
  # The first columns are not enough for one of the two, more of them are.
  two <- random_points(400, 2, 4)
  expect_gt(ranks(two, factor(rep(1:2, 200)), B = 999)[["x"]], 40)
  # A capped factor is none.
  expect_null(.Call(C_r_lowrank, native_source(kernel_rbf(1), x), 5L))
  # Equal points do not raise the rank.
  g <- gram(rep(c(1, 2, 5), 20), kernel_rbf(1))
  expect_identical(nrow(.Call(C_r_lowrank, native_source(NULL, g$K), 60L)), 3L)
})

test_that("the same seed gives the same bits on any number of threads", {
  x <- random_points(300, 6, 1)
  y <- random_points(300, 6, 2)
  run <- function(threads, ...) {
    set.seed(5)
    with_threads(threads, hsic_set(..., B = 300)$replicates)
  }
  expect_identical(run(2, x, y), run(1, x, y))
  expect_identical(run(2, x[, 1], y[, 1]), run(1, x[, 1], y[, 1]))
  three <- list(x, y, x[, 1])
  expect_identical(run(2, three), run(1, three))
})

test_that("chunks and companions do not change a permutation's statistic", {
  # 1,300 points: chunks of 806 permutations.
  x <- random_points(1300, 1, 1)
  y <- random_points(1300, 1, 2)
  set.seed(6)
  p <- draw_columns(1300, 900)
  set.seed(6)
  drawn <- hsic_set(x, y, B = 900)
  given <- hsic_set(x, y, permutations = p[, 801:900])
  expect_identical(drawn$replicates[801:900], given$replicates)
  one <- hsic_set(x, y, permutations = p[, 899, drop = FALSE])
  expect_identical(one$replicates, given$replicates[99])
})

test_that("dHSIC draws and finds the same, for two and three variables", {
  skip_if_not_installed("dHSIC")
  x <- random_points(60, 3, 1)
  y <- random_points(60, 2, 2) + x[, 1:2]
  z <- random_points(60, 1, 3) + 0.5 * x[, 3]
  other <- random_points(60, 1, 4)
  for (data in list(list(x, y), list(x, other), list(x, y, z),
                    list(x, z, other, y))) {
    set.seed(7)
    test <- hsic_set(data, B = 199)
    K <- do.call(used_grams, c(list(test), data))
    set.seed(7)
    theirs <- getExportedValue("dHSIC", "dhsic.test")(K = K, B = 199)
    expect_identical(test$p.value, theirs$p.value)
    expect_near(60 * unname(test$statistic), theirs$statistic, 1e-10)
  }
})

test_that("dHSIC equals its twin for many variables and permutations", {
  x <- lapply(1:4, \(l) random_points(21, l, l))
  set.seed(8)
  test <- few_draws(hsic_test(x, B = 11))
  K <- do.call(used_grams, c(list(test), x))
  set.seed(8)
  p <- replicate(11, replicate(3, sample.int(21)), simplify = FALSE)
  twins <- vapply(p, \(p) {
    dhsic_R(c(K[1], lapply(1:3, \(l) K[[l + 1]][p[, l], p[, l]])))
  }, numeric(1))
  expect_near(test$replicates, twins, 1e-11)
  expect_near(test$statistic, c(dHSIC = dhsic_R(K)), 1e-11)
  # Rows longer than one segment of products.
  long <- lapply(1:3, \(l) random_points(700, 1, l))
  test <- few_draws(hsic_test(long, B = 1))
  expect_near(test$statistic[[1]],
              dhsic_R(do.call(used_grams, c(list(test), long))), 1e-10)
  # Two variables in a list are HSIC.
  expect_equal(few_draws(hsic_set(x[1:2], B = 1))$statistic,
               few_draws(hsic_set(x[[1]], x[[2]], B = 1))$statistic)
})

test_that("all permutations give the p-value of full enumeration", {
  x <- random_points(6, 2, 1)
  y <- random_points(6, 2, 2) + x
  test <- hsic_set(x, y, permutations = "all")
  grid <- as.matrix(expand.grid(rep(list(1:6), 6)))
  grid <- t(grid[apply(grid, 1, anyDuplicated) == 0, ])
  K <- used_grams(test, x, y)
  twin <- over_columns(grid, \(p) hsic_R(K[[1]], K[[2]], p))
  observed <- hsic_R(K[[1]], K[[2]])
  expect_length(test$replicates, 720)
  expect_near(sort(test$replicates), sort(twin), 1e-12)
  expect_identical(test$p.value, mean(twin >= observed * (1 - 1e-9)))
  given <- hsic_set(x, y, permutations = grid)
  expect_identical(given$p.value, test$p.value)
  # Without the identity the observed statistic counts as a draw of its own.
  other <- grid[, colSums(grid != 1:6) > 0]
  expect_equal(hsic_set(x, y, permutations = other)$p.value, test$p.value)
})

test_that("the permutation test keeps its level for each estimator", {
  skip_on_cran()
  times <- 200
  band <- stats::qbinom(c(0.0005, 0.9995), times, 0.05)
  for (estimator in c("kme", "mkme", "mmkme", "skmse", "fkmse")) {
    set.seed(9)
    n <- if (estimator == "fkmse") 8 else 14
    p <- replicate(times, {
      x <- stats::rexp(n)
      y <- stats::rt(n, 3)
      hsic_test(x, y, estimator = estimator, B = 39)$p.value
    })
    rejected <- sum(p <= 0.05)
    expect_true(rejected >= band[1] && rejected <= band[2],
                label = paste(estimator, rejected))
  }
})

test_that("the gamma null is that of Gretton et al.", {
  x <- random_points(30, 2, 1)
  y <- random_points(30, 1, 2) + 0.3 * x[, 1]
  test <- hsic_set(x, y, null = "gamma")
  K <- used_grams(test, x, y)
  expect_near(test$p.value, hsic_gamma_R(K[[1]], K[[2]]), 1e-10)
  expect_null(test$replicates)
  expect_equal(stats::pgamma(test$statistic[[1]], test$gamma[["shape"]],
                             scale = test$gamma[["scale"]],
                             lower.tail = FALSE), test$p.value)
})

test_that("a factor is the gram of its indicator", {
  f <- factor(rep(c("a", "b", "c"), c(5, 12, 13)),
              levels = c("c", "b", "z", "a"))
  x <- random_points(30, 2, 1)
  run <- function(y, ...) {
    set.seed(11)
    hsic_set(x, y, B = 99, ...)
  }
  same <- c("statistic", "p.value", "replicates")
  expect_near(run(f)[same], run(as_gram(delta_R(f)))[same], 1e-11)
  expect_near(run(f, statistic = "unbiased")[same],
              run(as_gram(delta_R(f)), statistic = "unbiased")[same], 1e-11)
  expect_near(run(f)$statistic[[1]],
              hsic_R(gram_R(run(f)$kernel$x, x), delta_R(f)), 1e-11)
  three <- hsic_test(list(x, f, x[, 1]), B = 19)
  K <- Map(gram_R, three$kernel[c(1, 3)], list(x, x[, 1, drop = FALSE]))
  expect_near(three$statistic[[1]], dhsic_R(c(K, list(delta_R(f)))), 1e-11)
})

test_that("grams and data may be mixed, and equal the data", {
  x <- random_points(25, 2, 1)
  y <- random_points(25, 3, 2)
  run <- function(...) {
    set.seed(12)
    hsic_set(..., B = 99)[c("statistic", "p.value", "replicates")]
  }
  want <- run(x, y)
  expect_near(run(gram(x), y), want, 1e-11)
  expect_near(run(x, gram(y)), want, 1e-11)
  expect_near(run(list(gram(x), gram(y))), want, 1e-11)
  f <- \(x, y) gram_R(kernel_rbf(2), x, y)
  expect_near(run(x, y, kernel_function(f), kernel_rbf(2)),
              run(x, y, kernel_rbf(2), kernel_rbf(2)), 1e-11)
  energy <- gram(x, kernel_energy())
  expect_near(run(energy, y), run(x, y, kernel_energy()), 1e-11)
})

test_that("marginalized kernels are wider, each by its own variable's noise", {
  x <- random_points(20, 2, 1)
  y <- random_points(20, 3, 2) + x[, 1]
  for (estimator in c("mkme", "mmkme")) {
    test <- hsic_test(x, y, estimator = estimator, B = 19)
    K <- Map(\(x, kernel, noise) {
      e <- find_noise(read_estimator(estimator), x, kernel)$noise
      expect_identical(noise, e)
      theta <- kernel$bandwidth
      prod(theta / sqrt(theta^2 + 2 * e)) *
        gram_R(kernel_rbf(sqrt(theta^2 + 2 * e)), x)
    }, list(x, y), test$kernel, test$noise)
    expect_near(test$statistic[[1]], hsic_R(K[[1]], K[[2]]), 1e-10)
    unbiased <- hsic_set(x, y, estimator = estimator, statistic = "unbiased",
                          B = 19)
    expect_near(unbiased$statistic[[1]], hsic_unbiased_R(K[[1]], K[[2]]), 1e-10)
    joint <- hsic_test(list(x, y, x), estimator = estimator, B = 19)
    expect_near(joint$statistic[[1]], dhsic_R(K[c(1, 2, 1)]), 1e-10)
  }
})

test_that("lambda of F-COSE does not look at the pairing", {
  x <- random_points(15, 2, 1)
  y <- random_points(15, 2, 2)
  set.seed(13)
  test <- few_draws(hsic_test(x, y, estimator = "fkmse", B = 3))
  set.seed(13)
  p <- draw_columns(15, 3)
  K <- used_grams(test, x, y)
  own <- vapply(K, \(k) {
    kme(as_gram(center_R(k)^2), estimator = "fkmse")$lambda
  }, numeric(1))
  expect_near(test$lambda, sqrt(prod(own)), 1e-3)
  set.seed(13)
  moved <- few_draws(hsic_test(x, y[15:1, ], estimator = "fkmse", B = 3))
  expect_near(moved$lambda, test$lambda, 1e-3)
  expect_equal(test$replicates, over_columns(p, \(p) {
    fcose_R(K[[1]], K[[2]], p, test$lambda)
  }), tolerance = 1e-9)
  long <- tryCatch(
    hsic_test(random_points(90, 2, 1), random_points(90, 2, 2), B = 5e5,
              estimator = est_fkmse(1)),
    warning = identity
  )
  expect_s3_class(long, "kernmean_warning")
})

test_that("blocks keep their values", {
  # Within a block of two equal values of y nothing changes.
  blocks <- rep(1:10, each = 2)
  x <- random_points(20, 1, 1)
  y <- rep(random_points(10, 1, 2), each = 2)
  test <- hsic_set(x, y, blocks = blocks, B = 49)
  expect_near(test$replicates, rep(test$statistic[[1]], 49), 1e-10)
  expect_identical(test$p.value, 1)
  three <- hsic_test(list(x, y, y), blocks = letters[blocks], B = 49)
  expect_near(three$replicates, rep(three$statistic[[1]], 49), 1e-10)
  expect_match(test$method, "within blocks")
})

test_that("constants and ties give a p-value of 1", {
  y <- random_points(20, 2, 1)
  constant <- matrix(0.3, 20, 2)
  for (kernel in list(kernel_rbf(), kernel_poly(2), kernel_linear(),
                      kernel_energy(), kernel_laplace())) {
    for (null in c("permutation", "gamma")) {
      test <- hsic_set(constant, y, kernel, B = 19, null = null)
      expect_identical(unname(test$statistic), 0)
      expect_identical(test$p.value, 1)
    }
  }
  for (estimator in c("skmse", "fkmse")) {
    for (kernel in list(kernel_rbf(), kernel_poly(2))) {
      test <- hsic_test(constant, y, kernel, estimator = estimator, B = 19)
      expect_identical(unname(test$statistic), 0)
      expect_identical(test$p.value, 1)
    }
  }
  expect_identical(hsic_test(factor(rep("a", 20)), y, B = 19)$p.value, 1)
  expect_identical(
    unname(hsic_set(constant, y, B = 19, statistic = "unbiased")$statistic), 0
  )
  # Every permutation ties: two values, each once.
  expect_identical(hsic_test(1:2, c(3, 5), B = 19)$p.value, 1)
})

test_that("a linear kernel is not fooled by a far mean", {
  x <- random_points(30, 1, 1)
  y <- x + random_points(30, 1, 2)
  near <- hsic_test(x, y, kernel_linear(), kernel_linear(), B = 19)
  far <- hsic_test(x + 2^30, y - 2^30, kernel_linear(), kernel_linear(), B = 19)
  # HSIC of linear kernels is the squared covariance.
  expect_equal(near$statistic[[1]], (stats::cov(x, y)[1] * 29 / 30)^2)
  expect_near(far$statistic, near$statistic, 1e-6)
})

test_that("formulas, lists and data frames name their variables", {
  set.seed(14)
  two <- hsic_test(~ Sepal.Length + Species, iris, B = 19)
  expect_identical(two$data.name, "Sepal.Length and Species")
  set.seed(14)
  expect_identical(hsic_test(iris$Sepal.Length, iris$Species, B = 19)$p.value,
                   two$p.value)
  three <- hsic_test(~ Sepal.Length + Sepal.Width + Species, iris,
                     subset = Petal.Width > 0.3, B = 19, estimator = "kme")
  expect_named(three$kernel, c("Sepal.Length", "Sepal.Width", "Species"))
  expect_equal(three$parameter[["n"]], sum(iris$Petal.Width > 0.3))
  frame <- hsic_test(iris[, 1:2], iris[, 3], B = 19)
  expect_identical(frame$data.name, "iris[, 1:2] and iris[, 3]")
  kernels <- list(kernel_rbf(1), NULL, kernel_laplace(2))
  each <- hsic_test(list(iris[, 1:2], iris$Species, iris[, 3]),
                    kernel_x = kernels, B = 19)
  expect_identical(lapply(each$kernel, `[[`, "bandwidth"),
                   list("x[[1]]" = 1, "x[[2]]" = NULL, "x[[3]]" = 2))
})

test_that("a test prints as htest and plots its null distribution", {
  x <- seq(-1, 1, length.out = 20)
  expect_snapshot({
    print(hsic_test(x, x^2, filter = "none",
                    control = test_control(permutations = cbind(20:1))))
  })
  expect_s3_class(on_device(plot(hsic_set(x, x^2, null = "gamma"))),
                  "data.frame")
})

test_that("long runs stop on interrupt and the next call works", {
  skip_on_cran()
  wide <- gram(random_points(1200, 6, 1), kernel_rbf(2))
  expect_false(finishes(hsic_test(wide, wide)))
  x <- random_points(6000, 1, 1)
  expect_false(finishes(hsic_test(x, x, kernel_rbf(1), kernel_rbf(1))))
  three <- list(wide, wide, wide)
  expect_false(finishes(hsic_test(three)))
  # The core polls by itself, too.
  large <- random_points(2500, 2500)
  p <- draw_columns(2500, 100)
  expect_false(finishes(.Call(C_r_permuted_forms, large, large, p)))
  factor <- large[1:100, ]
  expect_false(finishes(
    .Call(C_r_permuted_products, factor, factor, p[, rep(1:100, 10)])
  ))
  expect_identical(hsic_test(1:2, 1:2, B = 19)$p.value, 1)
})

test_that("the p-value of shrunk statistics does not depend on their size", {
  x <- random_points(20, 1, 1)
  y <- x^2 + random_points(20, 1, 2)
  p <- draw_columns(20, 39)
  K <- used_grams(hsic_test(x, y, B = 19), x, y)
  want <- over_columns(cbind(1:20, p), \(p) fcose_R(K[[1]], K[[2]], p, 1e5))
  test <- hsic_set(x, y, estimator = est_fkmse(1e5), permutations = p)
  expect_equal(test$p.value, (1 + sum(want[-1] >= want[1])) / 40)
  of <- \(lambda) hsic_set(x, y, estimator = est_skmse(lambda),
                           permutations = p)$p.value
  expect_equal(of(1e6), of(0))
})

test_that("dHSIC that is only rounding is an error, not a p-value", {
  x <- lapply(1:3, \(l) random_points(30, 1, l))
  joint <- \(x) hsic_test(x, kernel_x = kernel_linear(), B = 19)
  expect_error(joint(lapply(x, `+`, 1e6)), "too little",
               class = "kernmean_error_numeric")
  expect_gt(unname(joint(x)$statistic), 0)
})

test_that("wrong arguments are refused with what they must be", {
  skip_on_cran()
  x <- random_points(10, 2, 1)
  y <- random_points(10, 1, 2)
  f <- factor(rep(1:2, 5))
  g <- gram(x)
  missing_f <- replace(f, 3, NA)
  three <- list(x, y, f)
  lines <- refusals(expression(
    hsic_test(x), hsic_test(x, y[-1]), hsic_test(x, missing_f),
    hsic_test(1, 1),
    hsic_set(x[1:5, ], y[1:5], null = "gamma"),
    hsic_test(x, y, kernel_y = "rbf"), hsic_test(g, y, kernel_rbf()),
    hsic_test(list(x, y), kernel_y = kernel_rbf()),
    hsic_test(list(x, y), kernel_x = list(kernel_rbf())),
    hsic_test(list(x, y), y),
    hsic_test(list(x, f), kernel_x = list(kernel_rbf(), kernel_rbf())),
    hsic_test(three, estimator = "skmse"),
    hsic_set(three, statistic = "unbiased"), hsic_set(three, null = "gamma"),
    hsic_set(three, permutations = diag(10)),
    hsic_test(list(x, y, y), kernel_x = kernel_energy()),
    hsic_test(x, f, estimator = "mkme"), hsic_test(x, y, lambda = 1),
    hsic_test(x, y, null = "gamma"), hsic_set(x, y, null = "spectrum"),
    hsic_test(x, y, estimator = est_mmkme(c(1, 2))),
    hsic_test(x, y, estimator = est_skmse(target = kme(x))),
    hsic_test(x, y, estimator = \(sample) 1),
    hsic_test(x, y, kernel_rbf(), kernel = kernel_rbf()),
    plot(hsic_test(x, y, B = 19), "witness"),
    hsic_set(x, y, estimator = "skmse", statistic = "unbiased"),
    hsic_set(x, y, estimator = "mkme", null = "gamma"),
    hsic_set(x, y, permutations = "all"),
    hsic_test(x, y, control = test_control(bins = 5)),
    hsic_test(y = x), hsic_test(data.frame(x)),
    hsic_test(~ a, data.frame(a = 1:3))
  ))
  expect_snapshot(writeLines(lines))
  for (size in c(1e200, 1e60)) {
    for (null in c("permutation", "gamma")) {
      expect_error(hsic_set(size * x, size * y, kernel_poly(3), kernel_poly(3),
                             null = null), class = "kernmean_error_numeric")
    }
  }
})

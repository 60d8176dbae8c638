# Samples given blocks: features less the means of their blocks, in every
# statistic, by brute force, identities and full enumeration.

set.seed(71)
n <- 21
group <- rep(1:3, c(5, 6, 10))
block <- sample(rep(1:4, length.out = n))
x <- matrix(rnorm(2 * n), n) + block
pair <- group < 3
within <- \(x, b) apply(as.matrix(x), 2, \(v) v - ave(v, b))
every <- test_control(permutations = "all", statistic = "biased")

test_that("two samples and more have the statistics of HKH", {
  kernels <- list(kernel_rbf(1.3), kernel_linear(), kernel_poly(2),
                  kernel_laplace(bandwidth = 2), kernel_energy(),
                  kernel_rbf(2) + kernel_linear(),
                  kernel_function(\(x, y) exp(tcrossprod(x, y) / 90)))
  for (kernel in kernels) {
    K <- switch(kernel$family, energy = -as.matrix(dist(x)),
                as.matrix(gram(x, kernel)))
    for (type in c("biased", "unbiased")) {
      test <- mmd_set(x[pair, ] ~ group[pair], kernel = kernel, B = 19,
                      blocks = block[pair], filter = "none", statistic = type)
      expect_near(test$statistic[[1]],
                  mmd_R(given_R(K[pair, pair], block[pair]), 1:11, 5, type),
                  1e-9)
    }
    set.seed(1)
    test <- mmd_test(x ~ group, kernel = kernel, B = 29, blocks = block,
                     filter = "none")
    set.seed(1)
    moves <- draw_permutations(c(5, 6, 10), 29, number_codes(block))
    centered <- given_R(K, block)
    of <- \(p) mmd_groups_R(centered, p, c(5, 6, 10), \(K, i, j) {
      mmd_R(K, c(i, j), length(i))
    })
    expect_near(test$replicates, apply(moves, 2, of), 1e-9)
    between <- sum(vapply(split(1:n, group), \(i) {
      sum(centered[i, i]) / length(i)
    }, 1))
    expect_near(test$estimate[["r.squared"]], between / sum(diag(centered)),
                1e-9)
    # Stored values give the same.
    if (kernel$family != "energy") {
      set.seed(1)
      stored <- mmd_test(gram(x, kernel), group, blocks = block, B = 29,
                         filter = "none")
      expect_near(stored$replicates, test$replicates, 1e-9)
    }
  }
  set.seed(1)
  of_dist <- mmd_test(dist(x), group, blocks = block, B = 29, filter = "none")
  set.seed(1)
  energy <- mmd_test(x ~ group, kernel = kernel_energy(), blocks = block,
                     B = 29, filter = "none")
  expect_near(of_dist$replicates, energy$replicates, 1e-9)
})

test_that("estimators and many bandwidths see the centered features", {
  K <- given_R(gram_R(kernel_rbf(1.3), x[pair, ]), block[pair])
  run <- \(...) mmd_test(x[pair, ] ~ group[pair], kernel = kernel_rbf(1.3),
                         B = 9, blocks = block[pair], ...)
  near <- \(estimator, want) expect_near(
    run(estimator = estimator)$statistic[[1]], want, 1e-8
  )
  near(est_skmse(), skmse_distance_R(K, 1:5, 6:11, "loocv"))
  near(est_fkmse(0.1), fkmse_distance_R(K, 1:5, 6:11, 0.1))
  theta <- sqrt(1.3^2 + 0.4)
  wide <- (1.3 / theta)^2 * gram_R(kernel_rbf(theta), x[pair, ])
  near(est_mkme(0.2), mmd_R(given_R(wide, block[pair]), 1:11, 5))
  # Of parts that are no weights: a candidate without noise is the average.
  parts <- est_stack(list(est_kme(), est_mkme(0.2)), shares = c(1, 0))
  near(parts, mmd_R(K, 1:11, 5))
  set.seed(2)
  fused <- mmd_test(x[pair, ] ~ group[pair], bandwidths = c(1, 2), B = 9,
                    blocks = block[pair])
  z <- vapply(c(1, 2), \(theta) {
    k <- gram_R(kernel_rbf(theta), x[pair, ])
    sqrt(20) * mmd_R(given_R(k, block[pair]), 1:11, 5, "unbiased") /
      sqrt(mean(k[row(k) != col(k)]^2))
  }, 1)
  expect_near(fused$statistic[[1]], log(mean(exp(z))), 1e-10)
})

test_that("of a binary outcome it is the test of Mantel and Haenszel", {
  set.seed(3)
  b <- rep(1:6, each = 40)
  g <- rbinom(240, 1, b / 7)
  y <- rbinom(240, 1, plogis(2 - 0.75 * b + 0.9 * g))
  test <- mmd_test(y ~ factor(g), kernel = kernel_linear(), blocks = b, B = 199)
  table <- table(g, y, b)
  variance <- sum(apply(table, 3, \(t) {
    prod(rowSums(t), colSums(t)) / (sum(t)^2 * (sum(t) - 1))
  }))
  usual <- stats::mantelhaen.test(table, correct = FALSE)
  expect_near(test$statistic[[1]],
              usual$statistic[[1]] * variance / (sum(g) * sum(1 - g) / 240)^2,
              1e-10)
  expect_lt(test$p.value, 0.02)
})

test_that("of lines HSIC is the partial correlation, and as powerful as lm()", {
  y <- within(x[, 1], block) + rnorm(n) + 5 * sin(block)
  test <- hsic_test(x[, 1], y, kernel = kernel_linear(), blocks = block,
                    filter = "none", B = 9)
  expect_near(test$estimate[[1]],
              cor(within(x[, 1], block), within(y, block))[1]^2, 1e-10)
  # Dependence within blocks against the differences of blocks.
  set.seed(4)
  p <- replicate(20, {
    b <- rep(1:5, each = 40)
    u <- rep(seq(-1.5, 1.5, length.out = 5), each = 40)
    a <- u + rnorm(200)
    hsic_test(a, -1.2 * u + 0.5 * (a - u) + rnorm(200), blocks = b, B = 99)$
      p.value
  })
  expect_true(all(p <= 0.05))
  iris_test <- hsic_test(Sepal.Length ~ Sepal.Width, iris, blocks = Species,
                         filter = "none", B = 199)
  expect_equal(iris_test$p.value, 1 / 200)
})

test_that("HSIC has HKH of both variables, by factors and whole", {
  rbf <- kernel_rbf(1.3)
  K <- given_R(gram_R(rbf, x[, 1, drop = FALSE]), block)
  L <- given_R(gram_R(rbf, x[, 2, drop = FALSE]), block)
  set.seed(5)
  moves <- draw_permutations(rep(1L, n), 19L, number_codes(block))
  for (type in c("biased", "unbiased")) {
    set.seed(5)
    test <- hsic_set(x[, 1], x[, 2], kernel = rbf, blocks = block, B = 19,
                     filter = "none", statistic = type)
    want <- switch(type, biased = hsic_R, unbiased = hsic_unbiased_R)
    expect_near(test$replicates, over_columns(moves, \(p) want(K, L, p)), 1e-9)
  }
  set.seed(6)
  big <- 300
  b <- rep(1:20, 15)
  u <- rnorm(big)
  v <- rnorm(big)
  low <- hsic_test(u, v, kernel = kernel_rbf(4), blocks = b, B = 9,
                   filter = "none")
  expect_length(low$ranks, 2)
  of <- \(v) given_R(gram_R(kernel_rbf(4), matrix(v)), b)
  expect_near(low$statistic[[1]], hsic_R(of(u), of(v)), 1e-9)
  # Three variables: 1 + M, M with mean diagonal 1.
  unit <- \(M) 1 + M / mean(diag(M))
  three <- hsic_test(list(x[, 1], x[, 2], factor(group)), kernel_x =
                       list(rbf, rbf, NULL), blocks = block, B = 9)
  expect_near(three$statistic[[1]], dhsic_R(lapply(
    list(K, L, given_R(outer(group, group, `==`) + 0, block)), unit
  )), 1e-10)
  # The views.
  set.seed(8)
  test <- hsic_test(x[, 1], x[, 2], kernel = rbf, blocks = block, B = 19)
  set.seed(8)
  alone <- hsic_test(x[, 1], x[, 2], kernel = kernel_linear(), blocks = block,
                     filter = "none", B = 19)
  # The z of lines counts 1.5 times.
  z <- scale(c(alone$statistic, alone$replicates))[1]
  expect_near(test$statistics$z[3], 1.5 * z, 1e-9)
  r <- lapply(1:2, \(j) within(x[, j], block))
  middle <- \(z) sqrt(median(dist(z)^2))
  theta <- 1.3 * vapply(1:2, \(j) middle(r[[j]]) / middle(x[, j]), 1)
  view <- Map(\(r, theta) given_R(gram_R(kernel_rbf(theta), r), block), r,
              theta)
  line <- lapply(r, tcrossprod)
  expect_near(test$statistics$value, c(
    hsic_R(K, L), hsic_R(view[[1]], view[[2]]), hsic_R(line[[1]], line[[2]])
  ), 1e-9)
})

test_that("the witness is that of centered weights", {
  skip_if_not_installed("generics")
  test <- mmd_test(x[pair, ] ~ group[pair], kernel = kernel_rbf(1.3),
                   filter = "none", blocks = block[pair], B = 9)
  w <- within(ifelse(group[pair] == 1, 1 / 5, -1 / 6), block[pair])
  f <- generics::augment(test)$.witness
  expect_near(f, drop(gram_R(kernel_rbf(1.3), x[pair, ]) %*% w), 1e-12)
  expect_near(sum(w * f), test$statistic[[1]], 1e-12)
})

# --- Clusters -----------------------------------------------------------------

test_that("where one variable is constant in clusters their means are tested", {
  codes <- rep(1:6, c(2, 5, 3, 4, 2, 6))
  a <- rnorm(22) + codes
  v <- rnorm(6)
  test <- hsic_test(a, v[codes], clusters = codes, B = 99)
  means <- tapply(a, codes, mean)
  theta <- \(z) sqrt(median(dist(z)^2))
  alone <- hsic_set(means, v, kernel_x = kernel_rbf(theta(means)),
                    kernel_y = kernel_rbf(theta(v)))
  expect_equal(test$statistics$statistic,
               c("HSIC", "HSIC of cluster means", "linear HSIC"))
  line <- hsic_set(means, v, kernel = kernel_linear())
  expect_near(test$statistics$value[2:3],
              c(alone$statistic[[1]], line$statistic[[1]]), 1e-10)
  # Rounding does not make a variable vary within clusters.
  nearly <- replace(v[codes], 3, v[codes[3]] + 1e-10)
  expect_length(hsic_test(a, nearly, clusters = codes, B = 9)$statistics$z, 3)
  # Pairs of clusters: their means less those of the pair, too.
  pairs <- rep(1:3, each = 2)
  test <- hsic_test(a, v[codes], clusters = codes, blocks = pairs[codes],
                    B = 19)
  r <- within(means, pairs)
  s <- within(v, pairs)
  expect_equal(test$statistics$statistic[3], "HSIC of values less block means")
  expect_near(test$statistics$value[3:4], c(
    hsic_R(given_R(gram_R(kernel_rbf(theta(r)), r), pairs),
           given_R(gram_R(kernel_rbf(theta(s)), s), pairs)),
    hsic_R(tcrossprod(r), tcrossprod(s))
  ), 1e-10)
  expect_equal(test$kernel$y$bandwidth, theta(v))
  # A factor has the shares of its levels.
  f <- factor(ifelse(a > median(a), "u", "w"))
  shares <- rowsum(cbind(f == "u", f == "w") + 0, codes) / tabulate(codes)
  test <- hsic_test(f, v[codes], clusters = codes, B = 99)
  expect_near(test$statistics$value[2],
              hsic_R(tcrossprod(shares), gram_R(kernel_rbf(theta(v)),
                                                matrix(v))), 1e-12)
  skip_if_not_installed("nlme")
  set.seed(1)
  package <- "nlme"
  utils::data("MathAchieve", package = package, envir = environment())
  pupils <- as.data.frame(MathAchieve)
  pupils <- pupils[pupils$School %in% levels(pupils$School)[1:20], ]
  test <- hsic_test(MathAch ~ MEANSES, pupils, clusters = School)
  expect_lte(test$p.value, 0.02)
})

test_that("clusters that have no partner are counted", {
  codes <- rep(1:6, c(2, 2, 2, 3, 4, 5))
  expect_warning(
    test <- hsic_test(rnorm(18), rnorm(18), clusters = codes, filter = "none"),
    "3 of 6 clusters have no partner .* 6 ways, .* at least 0.17",
    class = "kernmean_warning_alone"
  ) |> suppressWarnings()
  expect_length(test$replicates, 6)
})

# --- The level ----------------------------------------------------------------

# The largest P(p <= u)/u where each labeling is the observed one in turn.
worst <- function(labels, p_of) {
  p <- suppressWarnings(apply(labels, 2, p_of))
  max(vapply(unique(p), \(u) mean(p <= u * (1 + 1e-9)) / u, 1))
}

test_that("every p-value is exact, by full enumeration", {
  skip_on_cran()
  set.seed(11)
  found <- NULL
  add <- \(labels, p_of) found <<- c(found, worst(labels, p_of))
  filters <- list("none", NULL, TRUE)
  for (ties in c(FALSE, TRUE)) {
    value <- \(z) if (ties) round(z) else z
    # Values within blocks of several sizes.
    b <- rep(1:3, c(3, 2, 2))
    u <- value(rnorm(7) + 2 * b)
    v <- value(rnorm(7) - b + u / 2)
    moves <- all_labelings(rep(1L, 7), b)
    for (f in filters) {
      add(moves, \(m) hsic_test(u, v[m], blocks = b, filter = f,
                                control = every)$p.value)
      add(moves, \(m) hsic_test(u, factor(v > median(v))[m], blocks = b,
                                filter = f, control = every)$p.value)
    }
    add(moves, \(m) hsic_test(
      u, v[m], blocks = b, control = test_control(permutations = "all")
    )$p.value)
    # Two samples.
    b <- rep(1:3, c(3, 4, 2))
    z <- value(rnorm(9) + b)
    given <- c(1, 1, 2, 2, 1, 2, 2, 2, 1)
    moves <- all_labelings(c(4L, 5L), b[order(given)])
    for (f in filters) {
      add(moves, \(m) {
        labels <- replace(integer(9), m, rep(1:2, 4:5))
        mmd_test(z[order(given)] ~ labels, blocks = b[order(given)],
                 filter = f, control = every)$p.value
      })
    }
    # Clusters of several sizes, one variable constant in each, in blocks too.
    codes <- rep(1:5, c(1, 3, 2, 4, 2))
    u <- value(rnorm(12) + codes)
    v <- if (ties) c(0, 0, 1, 1, 2) else rnorm(5)
    for (of in list(NULL, c(1, 1, 2, 2, 2))) {
      moves <- all_labelings(rep(1L, 5), of)
      for (f in filters[1:2]) {
        add(moves, \(m) hsic_test(u, v[m][codes], clusters = codes,
                                  blocks = of[codes], filter = f, scale = TRUE,
                                  control = every)$p.value)
      }
      add(moves, \(m) hsic_test(u, v[m][codes], clusters = codes,
                                blocks = of[codes], bandwidths = "fuse",
                                control = every)$p.value)
    }
    # Clusters that change places with those of their size.
    codes <- rep(1:6, c(2, 2, 2, 3, 3, 1))
    u <- value(rnorm(13))
    v <- value(rnorm(13) + codes)
    moves <- all_labelings(rep(1L, 6), c(1, 1, 1, 2, 2, 3))
    for (f in filters[c(1, 3)]) {
      add(moves, \(m) hsic_test(
        u, v[unlist(split(1:13, codes)[m])], clusters = codes, filter = f,
        control = every
      )$p.value)
    }
    # Samples of clusters.
    codes <- rep(1:6, c(2, 3, 4, 2, 2, 3))
    of <- c(1, 1, 1, 2, 2, 2)
    z <- value(rnorm(16) + of[codes])
    sides <- arrangements(c(1, 2, 1, 1, 2, 2))
    balanced <- sides[, colSums(sides[1:3, ] == 1) == 2]
    for (f in filters) {
      add(sides, \(s) mmd_test(z ~ s[codes], clusters = codes, filter = f,
                               control = every)$p.value)
      add(balanced, \(s) mmd_test(z ~ s[codes], clusters = codes, filter = f,
                                  blocks = of[codes], control = every)$p.value)
    }
  }
  expect_gte(length(found), 30)
  expect_near(found, rep(1, length(found)), 1e-9)
})

# --- Words --------------------------------------------------------------------

test_that("one point against many is a test, of plain means", {
  z <- rnorm(30)
  test <- mmd_test(8, z)
  expect_equal(test$p.value, 1 / 31)
  expect_length(test$replicates, 31)
  K <- gram_R(kernel_rbf(median(dist(c(8, z)))), matrix(c(8, z)))
  expect_near(sort(test$replicates),
              sort(vapply(1:31, \(i) mmd_R(K, c(i, (1:31)[-i]), 1), 1)), 1e-10)
  pairs <- suppressWarnings(
    mmd_pairwise(. ~ Species, iris[c(1:20, 51:70, 101), ], B = 99)
  )
  expect_equal(pairs$table$n2, c(20, 1, 1))
  refused(mmd_test(8, z, filter = TRUE), "not one in 'x'")
  refused(mmd_test(8, z, estimator = "fkmse"), "not one in 'x'")
  refused(mmd_test(8, 9), "3 points in all, not of 1, 1")
})

test_that("a statistic below nearly all draws gets a word", {
  b <- rep(1:20, 2)
  z <- 5 * b + rnorm(40)
  side <- rep(1:2, each = 20)
  test <- mmd_test(z ~ side, filter = "none", B = 199)
  expect_output(print(test), "below 99% of the draws, as where rows come in")
  test <- mmd_test(z ~ side, blocks = b, B = 199)
  expect_no_match(capture.output(print(test)), "below 99%")
})

# Two-sample tests: statistics and null distributions against twins that treat
# one labeling at a time.

x <- random_points(13, 2)
y <- random_points(9, 2) + 0.7
pooled <- rbind(x, y)
rbf <- kernel_rbf(1.3)
K <- gram_R(rbf, pooled)

test_that("the statistics are the reference values", {
  A <- reference_data("A")
  B <- reference_data("B")
  value <- \(quantity) reference_value("AB", quantity)
  statistic <- \(...) unname(mmd_set(A, B, B = 19, ...)$statistic)
  theta2 <- value("theta2_median_pooled")
  expect_near(statistic(), value("mmd2_biased"), 1e-9)
  expect_near(statistic(statistic = "unbiased"), value("mmd2_unbiased"), 1e-9)
  expect_near(statistic(estimator = "skmse"), value("mmd2_skmse"), 1e-9)
  expect_equal(
    statistic(estimator = est_mmkme(theta2 * c(0.05, 0.2, 0.8)),
              statistic = "unbiased"),
    value("mmd2_unbiased_marginal_e"), tolerance = 1e-9
  )
  few <- mmd_set(A[1:4, ], B[1:4, ], kernel_rbf(sqrt(theta2)),
                 statistic = "unbiased", permutations = "all")
  expect_near(few$p.value, value("mmd_enumeration_p_rows_1to4_of_each"), 1e-12)
  k <- gram_R(kernel_rbf(sqrt(theta2)), rbind(A, B))
  moments <- labeled_moments(rowSums(k), diag(k), c(25, 20), sum(k^2), "biased")
  expect_equal(c(moments$mean, moments$mean^2 + moments$variance),
               c(value("v_permutation_mean"),
                 value("v_permutation_second_moment")), tolerance = 1e-9)
})

test_that("replicates are the twin's for the same seed, at every level", {
  orders <- cbind(seq_len(22), draw_after(1, c(13, 9), 50))
  for (statistic in c("biased", "unbiased")) {
    want <- apply(orders, 2, \(o) mmd_R(K, o, 13, statistic))
    for (level in isa_levels()) {
      set.seed(1)
      got <- with_isa(level,
                      mmd_set(x, y, rbf, statistic = statistic, B = 50))
      # 2e-16 seen
      expect_lt(max(abs(c(got$statistic, got$replicates) - want)), 1e-14)
      expect_equal(got$p.value,
                   (1 + sum(want[-1] >= want[1] - 1e-12)) / 51)
    }
  }
})

test_that("forms over subsets are those of the Gram matrix, at all sizes", {
  for (n in c(4L, 31L, 32L, 33L, 64L, 65L, 130L)) {
    points <- random_points(n, 3)
    k <- gram_R(kernel_rbf(1.5), points)
    orders <- draw_after(n, n, 7)
    m <- n %/% 2L
    subsets <- .Call(C_r_subsets, orders, 7L, c(m, n - m),
                     matrix(c(TRUE, FALSE), 1), NULL, FALSE)
    z <- apply(orders, 2, \(o) seq_len(n) %in% o[seq_len(m)]) + 0
    source <- native_source(kernel_rbf(1.5), points)
    distance <- native_source(new_kernel("sqdist", ""), points)
    for (level in isa_levels()) {
      forms <- \(source, rates = NULL) with_isa(level, .Call(
        C_r_subset_forms, source, subsets, 7, rates
      ))
      want <- colSums(z * (k %*% z))
      for (got in list(forms(source), forms(native_source(NULL, k)),
                       forms(distance, 1 / 4.5))) {
        # 3e-14 seen
        expect_lt(relative_error(got$forms[, 1], want), 1e-12)
        expect_near(got$moments[, 1], c(sum(k), sum(k^2)), 1e-12)
      }
    }
  }
})

test_that("any number of threads gives the same bits", {
  big <- random_points(700, 3)
  run <- \(threads, ...) {
    set.seed(3)
    with_threads(threads, mmd_set(big[1:300, ], big[301:700, ], ..., B = 99))
  }
  fields <- c("statistic", "replicates", "p.value")
  for (kernel in list(rbf, kernel_energy())) {
    expect_identical(run(1, kernel)[fields], run(2, kernel)[fields])
  }
  expect_identical(run(1, bandwidths = "fuse")[fields],
                   run(2, bandwidths = "fuse")[fields])
  expect_identical(run(1, bins = 20)[fields], run(2, bins = 20)[fields])
})

test_that("permutations beyond one batch are the same permutations", {
  set.seed(5)
  many <- mmd_set(x, y, rbf, B = 2500, progress = FALSE)
  set.seed(5)
  few <- mmd_set(x, y, rbf, B = 2048)
  expect_identical(many$replicates[1:2048], few$replicates)
  set.seed(5)
  expect_output(shown <- mmd_set(x, y, rbf, B = 2500, progress = TRUE))
  expect_identical(shown$replicates, many$replicates)
})

test_that("shrinkage estimators are the twin's", {
  orders <- cbind(seq_len(22), draw_after(2, c(13, 9), 20))
  for (select in c("loocv", "plugin")) {
    want <- apply(orders, 2, \(o) {
      skmse_distance_R(K, o[1:13], o[14:22], select)
    })
    set.seed(2)
    got <- mmd_set(x, y, rbf, est_skmse(select = select), B = 20)
    expect_near(unname(c(got$statistic, got$replicates)), want, 1e-12)
  }
  lambda <- kme(pooled, rbf, "fkmse")$lambda
  want <- apply(orders, 2, \(o) fkmse_distance_R(K, o[1:13], o[14:22], lambda))
  set.seed(2)
  got <- mmd_set(x, y, rbf, "fkmse", B = 20)
  expect_equal(got$lambda, lambda)
  expect_near(unname(c(got$statistic, got$replicates)), want, 1e-9)
  expect_near(mmd_set(x, y, rbf, est_fkmse(lambda = 0), B = 19)$statistic,
              mmd_set(x, y, rbf, B = 19)$statistic, 1e-12)
  expect_warning(
    none <- mmd_set(x, y, rbf, est_fkmse(lambda = Inf), B = 19), "says nothing"
  )
  expect_equal(unname(none$statistic), 0)
})

test_that("marginalized tests use the kernel of the marginalized means", {
  for (estimator in c("mkme", "mmkme")) {
    test <- mmd_test(x, y, rbf, estimator, B = 19)
    noise <- rep_len(kme(pooled, rbf, estimator)$noise, 2)
    expect_near(unname(test$noise), unname(noise), 1e-8)
    means <- lapply(list(x, y), \(z) {
      kme(z, rbf, estimator = "mmkme", noise = test$noise)
    })
    expect_near(unname(test$statistic),
                kme_distance(means[[1]], means[[2]])^2, 1e-10)
  }
})

test_that("three samples are the sum over their pairs", {
  group <- factor(rep(c("c", "a", "b"), c(6, 9, 7)))
  test <- mmd_set(pooled ~ group, kernel = rbf, B = 30)
  order <- order(group)
  sizes <- c(9, 7, 6)
  v <- \(K, i, j) mmd_R(K, c(i, j), length(i))
  u <- \(K, i, j) mmd_R(K, c(i, j), length(i), "unbiased")
  s <- \(K, i, j) skmse_distance_R(K, i, j, "loocv")
  f <- \(K, i, j) fkmse_distance_R(K, i, j, 0.1)
  statistic <- \(...) unname(mmd_set(pooled ~ group, kernel = rbf, B = 19,
                                     ...)$statistic)
  expect_equal(unname(test$statistic), mmd_groups_R(K, order, sizes, v))
  expect_equal(statistic(statistic = "unbiased"),
               mmd_groups_R(K, order, sizes, u))
  expect_equal(statistic(estimator = "skmse"),
               mmd_groups_R(K, order, sizes, s))
  expect_equal(statistic(estimator = est_fkmse(0.1)),
               mmd_groups_R(K, order, sizes, f))
  # Also the spread of the means about their mean.
  z <- outer(group[order], levels(group), "==")
  spread <- vapply(1:3, \(g) {
    w <- z[, g] / sum(z[, g]) - 1 / 22
    sum(z[, g]) * sum(w * (K[order, order] %*% w))
  }, numeric(1))
  expect_equal(unname(test$statistic), sum(spread))
  expect_equal(test$pairs[["a - c"]], v(K, which(group == "a"),
                                        which(group == "c")))
  expect_named(test$sizes, c("a", "b", "c"))
})

test_that("formula, gram and two samples are one test", {
  group <- rep(1:2, c(13, 9))
  mixed <- c(14:22, 1:13)
  data <- data.frame(a = pooled[mixed, 1], b = pooled[mixed, 2],
                     g = group[mixed])
  run <- \(...) {
    set.seed(7)
    mmd_set(..., B = 40)$replicates
  }
  want <- run(x, y, rbf)
  expect_equal(run(cbind(a, b) ~ g, data, kernel = rbf), want)
  expect_equal(run(gram(pooled, rbf), group), want)
  expect_equal(run(as_gram(K[mixed, mixed]), group[mixed]), want)
  expect_equal(run(x, y, kernel_function(\(a, b) gram_R(rbf, a, b))), want)
  expect_equal(run(as.data.frame(x), as.data.frame(y), rbf), want)
})

test_that("an enumeration of all labelings is exact", {
  small <- mmd_set(x[1:4, ], y[1:3, ], rbf, permutations = "all")
  few <- c(1:4, 14:16)
  sets <- utils::combn(7, 4)
  values <- apply(sets, 2, \(s) {
    mmd_R(K[few, few], c(s, setdiff(1:7, s)), 4)
  })
  expect_near(sort(small$replicates), sort(values), 1e-12)
  expect_near(small$p.value, mean(values >= values[1] - 1e-12), 1e-12)
  three <- mmd_set(pooled[few, ] ~ c(1, 1, 2, 2, 2, 3, 3), kernel = rbf,
                   permutations = "all")
  expect_length(three$replicates, factorial(7) / (2 * 6 * 2))
})

test_that("all labelings within pairs are the exact paired test", {
  test <- mmd_test(extra ~ group, sleep, blocks = ID, kernel = rbf,
                   filter = "none",
                   control = test_control(permutations = "all"))
  expect_length(test$replicates, 2^10)
  k <- gram_R(rbf, matrix(sleep$extra))
  signs <- as.matrix(expand.grid(rep(list(0:1), 10)))
  want <- apply(signs, 1, \(s) {
    mmd_R(k, c(ifelse(s == 1, 11:20, 1:10), ifelse(s == 1, 1:10, 11:20)), 10)
  })
  expect_near(sort(test$replicates), sort(want), 1e-12)
  expect_equal(test$p.value, mean(want >= want[1] - 1e-12))
  mixed <- sleep[c(20:1), ]
  set.seed(1)
  a <- mmd_test(extra ~ group, mixed, blocks = ID, kernel = rbf, B = 50)
  set.seed(1)
  b <- mmd_test(mixed$extra[mixed$group == 1], mixed$extra[mixed$group == 2],
                rbf, blocks = c(10:1, 10:1), B = 50)
  expect_identical(a$replicates, b$replicates)
})

test_that("blocks keep their numbers of points of each sample", {
  blocks <- rep(c("u", "v", "w"), length.out = 22)
  set.seed(8)
  permutations <- draw_permutations(c(13, 9), 200, number_codes(blocks))
  expect_true(all(apply(permutations, 2, \(p) {
    all(blocks[p] == blocks) && all(sort(p) == 1:22)
  })))
  expect_gt(nrow(unique(t(permutations))), 190)
  set.seed(8)
  test <- mmd_test(x, y, rbf, blocks = blocks, filter = "none", B = 200)
  within <- given_R(K, blocks)
  expect_near(test$replicates, apply(permutations, 2, \(p) {
    mmd_R(within, p, 13)
  }), 1e-12)
})

test_that("bins of one point are points, larger bins stay together", {
  set.seed(9)
  bins <- mmd_set(x[1:9, ], y, rbf, bins = 9, B = 300)
  set.seed(9)
  points <- mmd_set(x[1:9, ], y, rbf, B = 300)
  expect_near(bins$statistic, points$statistic, 1e-12)
  expect_lt(abs(mean(bins$replicates) / mean(points$replicates) - 1), 0.1)
  # 13 and 9 points in bins of 3: 4 and 3 bins, one point left over; 35 ways.
  for (statistic in c("biased", "unbiased")) {
    set.seed(9)
    few <- mmd_set(x, y, rbf, bins = 3, statistic = statistic, B = 300)
    expect_lte(length(unique(signif(few$replicates, 9))), choose(7, 4))
    expect_equal(few$statistic,
                 mmd_set(x, y, rbf, statistic = statistic, B = 19)$statistic,
                 tolerance = 1e-12)
  }
  expect_equal(
    mmd_set(as_gram(K), rep(1:2, c(13, 9)), bins = 3, B = 20)$statistic,
    mmd_set(x, y, rbf, B = 19)$statistic
  )
})

test_that("bins by default are for large samples of similar size", {
  usual <- list(null = "permutation", estimator = est_kme())
  expect_equal(count_bins(usual, c(10000, 10001)), 25)
  expect_null(count_bins(usual, c(10000, 10000)))
  expect_null(count_bins(usual, c(20, 20100)))
  expect_null(count_bins(usual, c(60, 25000)))
  expect_equal(count_bins(usual, c(400, 25000)), 25)
  withr_option <- options(kernmean.memory = 1e6)
  on.exit(options(withr_option))
  expect_error(mmd_set(matrix(0, 300), matrix(1, 9000), rbf, bins = 150),
               class = "kernmean_error_memory")
})

test_that("a linear kernel does not see the origin", {
  run <- \(offset, ...) {
    set.seed(3)
    mmd_set(x + offset, y + offset, kernel_linear(), B = 39, ...)
  }
  for (null in c("permutation", "spectrum", "gamma")) {
    expect_near(run(1e6, null = null)$p.value,
                run(0, null = null)$p.value, 1e-6)
  }
  expect_near(run(1e6)$unbiased, run(0)$unbiased, 1e-6)
  expect_identical(run(1e6)$sample$x, rbind(x, y) + 1e6)
})

test_that("a variance that is rounding is not a null distribution", {
  wide <- kernel_rbf(1e6)
  expect_error(mmd_set(x, y, wide, null = "gamma"), "too little",
               class = "kernmean_error_numeric")
  expect_warning(flat <- mmd_set(x, y, wide, B = 19), "says nothing")
  expect_null(flat$unbiased)
  expect_error(mmd_set(1e100 * x, 1e100 * y, kernel_linear(), null = "gamma"),
               class = "kernmean_error_numeric")
})

test_that("many bandwidths that tell no points apart say so", {
  expect_warning(
    test <- mmd_test(1e5 * 1:8, 1e5 * 9:16 + 3, bandwidths = c(0.5, 1), B = 49),
    "no permutation changes the statistic"
  )
  expect_identical(test$p.value, 1)
})

test_that("many bandwidths are one statistic, that of the twin", {
  orders <- cbind(seq_len(22), draw_after(6, c(13, 9), 30))
  want <- apply(orders, 2, \(o) fuse_R(pooled, o, 13))
  set.seed(6)
  got <- mmd_test(x, y, bandwidths = "fuse", B = 30)
  expect_near(unname(c(got$statistic, got$replicates)), want, 1e-10)
  expect_length(got$kernel$bandwidth, 10)
})

test_that("mean and deviation over all permutations are exact", {
  few <- c(1:5, 14:17)
  sets <- utils::combn(9, 5)
  k <- K[few, few] + diag(1:9 / 9)
  all <- \(statistic) apply(sets, 2, \(s) {
    mmd_R(k, c(s, setdiff(1:9, s)), 5, statistic)
  })
  v <- all("biased")
  moments <- \(type) unlist(labeled_moments(rowSums(k), diag(k), c(5, 4),
                                            sum(k^2), type))
  expect_near(unname(moments("biased")), c(mean(v), mean(v^2) - mean(v)^2),
              1e-12)
  u <- all("unbiased")
  expect_lt(abs(mean(u)), 1e-15)
  expect_near(unname(moments("unbiased")), c(0, mean(u^2)), 1e-12)
  test <- mmd_set(as_gram(k), rep(1:2, c(5, 4)), null = "gamma")
  law <- test$gamma
  expect_equal(law[["shape"]] * law[["scale"]], mean(v))
  expect_equal(law[["shape"]] * law[["scale"]]^2, mean(v^2) - mean(v)^2)
  expect_equal(test$p.value, stats::pgamma(v[1], law[["shape"]],
                                           scale = law[["scale"]],
                                           lower.tail = FALSE))
})

test_that("the spectrum null has the moments of its weighted sum", {
  set.seed(1)
  test <- mmd_set(x, y, rbf, null = "spectrum", B = 20000)
  H <- diag(22) - 1 / 22
  gamma <- eigen(H %*% K %*% H, symmetric = TRUE)$values / (13 * 9)
  # 5 standard errors of a mean of 20,000
  expect_lt(abs(mean(test$replicates) - sum(gamma)),
            5 * sqrt(2 * sum(gamma^2) / 20000))
  set.seed(1)
  u <- mmd_set(x, y, rbf, null = "spectrum", statistic = "unbiased",
               B = 20000)
  expect_lt(abs(mean(u$replicates)), 5 * sqrt(2 * sum(gamma^2) / 20000))
  set.seed(1)
  three <- mmd_test(pooled ~ rep(1:3, c(8, 8, 6)), kernel = rbf,
                    control = test_control(null = "spectrum"), B = 20000)
  expect_near(mean(three$replicates), 2 * sum(gamma) * 13 * 9 / 22, 0.02)
})

test_that("constant data give the statistic 0 and p = 1", {
  same <- matrix(3, 8, 2)
  for (estimator in c("kme", "skmse", "mkme")) {
    expect_warning(
      test <- mmd_test(same, same[1:5, ], estimator = estimator, B = 19),
      "says nothing"
    )
    expect_identical(unname(test$statistic), 0)
    expect_identical(test$p.value, 1)
  }
  expect_equal(mmd_set(same, same, null = "gamma")$p.value, 1)
  expect_equal(mmd_set(same, same, null = "spectrum", B = 19)$p.value, 1)
  for (options in list(list(bandwidths = "fuse"), list(kernel_energy()))) {
    expect_warning(test <- do.call(mmd_test, c(list(same, same, B = 19),
                                               options)), "says nothing")
    expect_equal(test$p.value, 1)
  }
})

test_that("ties are ties: equal samples are never significant", {
  set.seed(1)
  points <- matrix(sample(0:1, 20, TRUE), 10)
  test <- mmd_set(points, points[10:1, ], kernel_rbf(1), B = 99)
  expect_equal(test$p.value, 1)
})

test_that("permutation p-values keep their level", {
  skip_on_cran()
  variants <- list(
    kme = list(), u = list(statistic = "unbiased"),
    mkme = list(estimator = "mkme"),
    skmse = list(estimator = "skmse"), bins = list(bins = 5),
    fkmse = list(estimator = est_fkmse(select = "gcv")),
    fuse = list(bandwidths = "fuse"),
    energy = list(kernel = kernel_energy())
  )
  for (name in names(variants)) {
    set.seed(20)
    count <- if (name == "fkmse") 200 else 400
    p <- replicate(count, {
      a <- matrix(stats::rexp(24), 12)
      b <- matrix(stats::rexp(20), 10)
      do.call(mmd_set, c(list(a, b, B = 39), variants[[name]]))$p.value
    })
    expect_true(in_band(sum(p <= 0.05), count),
                label = paste(name, sum(p <= 0.05), "of", count))
  }
})

test_that("a long test stops on interrupt and the next one works", {
  skip_on_cran()
  big <- random_points(6000, 20)
  expect_false(finishes(
    mmd_test(big[1:3000, ], big[3001:6000, ], kernel_rbf(5), B = 2000)
  ))
  expect_equal(mmd_set(x, y, rbf, B = 19)$statistic[[1]], mmd_R(K, 1:22, 13))
})

test_that("printing shows the test, summary what stands behind it", {
  set.seed(1)
  test <- mmd_test(x, y, rbf, filter = "none", B = 99)
  expect_snapshot({
    print(test)
    summary(test)
    summary(mmd_test(pooled ~ rep(1:3, c(8, 8, 6)), kernel = rbf,
                     estimator = "skmse", B = 19))
    print(mmd_test(x, y, rbf, control = test_control(null = "gamma")))
  })
  expect_near(test$unbiased[["statistic"]],
              mmd_R(K, 1:22, 13, "unbiased"), 1e-12)
})

test_that("bad input is answered", {
  skip_on_cran()
  g <- gram(pooled, rbf)
  big <- matrix(0, 30, 1)
  three <- pooled ~ rep(1:3, c(8, 8, 6))
  lines <- refusals(expression(
    mmd_test(x), mmd_test(x, y[, 1]), mmd_test(x, "a"),
    mmd_test(x, y[1, , drop = FALSE], filter = TRUE), mmd_test(x, y, B = 0),
    mmd_test(x, y, "rbf"), mmd_test(x, y, rbf, "kmee"),
    mmd_set(x, y, null = "normal"), mmd_test(x, y, lambda = 1),
    mmd_test(x, y, typo = 1), mmd_test(x, y, statistic = "biased"),
    mmd_test(x, y, pairwise = TRUE), mmd_test(x, y, ratio = 1),
    mmd_test(x, y, paired = TRUE), mmd_test(x, y, control = list()),
    mmd_set(x, y, estimator = "skmse", statistic = "unbiased"),
    mmd_test(x, y, kernel_laplace(), "mkme"),
    mmd_test(x, y, kernel_energy(), "skmse"),
    mmd_set(x, y, bandwidths = "fuse", statistic = "biased"),
    mmd_test(x, y, estimator = "skmse", bandwidths = "fuse"),
    mmd_test(x, y, kernel_rbf(1), bandwidths = c(1, 2)),
    mmd_set(x, y, bandwidths = "fuse", null = "spectrum"),
    mmd_test(x, y, bandwidths = c(1, -1)),
    mmd_test(g, rep(1:2, 11), bandwidths = "fuse"),
    mmd_test(x, y, estimator = est_skmse(target = kme(x, rbf))),
    mmd_test(x, y, estimator = \(sample) 1),
    mmd_test(x, y, estimator = est_mmkme(c(1, 2, 3))),
    mmd_set(x, y, estimator = "skmse", null = "gamma"),
    mmd_set(x, y, null = "gamma", statistic = "unbiased"),
    mmd_set(x, y, null = "spectrum", blocks = rep(1, 22)),
    mmd_set(x, y, permutations = "some"), mmd_set(x, y, permutations = "all"),
    mmd_set(big, big, bins = 31), mmd_set(x, y, bins = 1),
    mmd_set(x, y, estimator = "fkmse", bins = 3), mmd_test(g), mmd_test(g, 1:3),
    mmd_test(g, rep(1, 22)), mmd_test(g, rep(1:2, 11), kernel = rbf),
    mmd_test(g, rep(1:2, 11), rbf), mmd_test(~ a, iris),
    mmd_test(Sepal.Width ~ Species + Petal.Width, iris),
    mmd_test(Sepal.Width ~ Petal.Width, iris[1:9 * 15, ]),
    mmd_test(iris[1:2], iris[1:3]),
    mmd_test(x, y, blocks = 1:3), mmd_test(x, y, blocks = 1:22),
    mmd_test(x, y, blocks = rep(1:2, c(13, 9))),
    mmd_set(x, y, blocks = rep(1:2, 11), permutations = matrix(1:22)),
    mmd_test(pooled ~ c(1, rep(2, 21))),
    mmd_set(three, null = "gamma"), mmd_test(three, bandwidths = "fuse")
  ))
  expect_snapshot(writeLines(lines))
})

test_that("an F-KMSE test of many flops warns", {
  skip_on_cran()
  expect_true(2000 * 2 * 500^3 / 3 > 1e11)
  expect_warning(
    tryCatch({
      on.exit(setTimeLimit())
      setTimeLimit(elapsed = 2, transient = TRUE)
      mmd_test(random_points(500, 1), random_points(500, 1, 3), rbf,
               est_fkmse(1), B = 2000)
    }, error = identity),
    "flops", class = "kernmean_warning"
  )
  setTimeLimit()
})

# Two-sample tests of sketches against their n x n twins, on the projected Gram
# matrix of all rows and on that of the bins.

rbf <- kernel_rbf(1.3)
k <- \(a, b) gram_R(rbf, a, b)

set.seed(1)
x <- random_points(90, 2)
x[61:90, ] <- x[61:90, ] + 0.4
two <- rep(c("a", "b"), c(60, 30))
three <- rep(c("a", "b", "c"), c(30, 30, 30))
# Far enough from each other that their Gram matrix is well conditioned.
S <- as.matrix(expand.grid(c(-2.1, -0.7, 0.7, 2.1), c(-1.5, 0, 1.5)))
l <- kme_landmarks(S, kernel = rbf, method = "uniform")
spectrum <- test_control(null = "spectrum")
twin <- sketch_R(x, landmark_x(l), k)

sketch <- function(groups = two, rows = x, ...) {
  kme_sketch(rows, l, groups = groups, progress = FALSE, ...)
}

test_that("statistics are those of the projected Gram matrix", {
  for (statistic in c("biased", "unbiased")) {
    run <- \(s) {
      mmd_test(s, B = 19, control = test_control(null = "spectrum",
                                                statistic = statistic))
    }
    test <- run(sketch())
    want <- mmd_R(twin$K, 1:90, 60, statistic)
    # 1e-15 seen, of values of 0.01.
    expect_near(test$statistic[["MMD^2"]], want, 1e-10)
    expect_near(test$estimate[["MMD"]], sqrt(max(0, want)), 1e-8)
    several <- run(sketch(three))
    pair <- \(K, g, h) mmd_R(K[c(g, h), c(g, h)], 1:60, 30, statistic)
    expect_near(several$statistic[[1]],
                mmd_groups_R(twin$K, 1:90, c(30, 30, 30), pair), 1e-10)
    expect_near(several$pairs[["a - c"]], pair(twin$K, 1:30, 61:90), 1e-10)
  }
})

test_that("the share between samples has the total of all rows", {
  # Between: of projected means; the total: of k(x, x), not projected.
  share <- function(groups) {
    means <- rowsum(twin$phi, groups) / as.vector(table(groups))
    centered <- t(means) - twin$mu
    sum(table(groups) * colSums(centered^2)) /
      (90 * (twin$trace - sum(twin$mu^2)))
  }
  for (groups in list(two, three)) {
    test <- mmd_test(sketch(groups), control = spectrum, B = 19)
    expect_near(test$estimate[["r.squared"]], share(groups), 1e-10)
  }
  # With landmarks that lose nothing it is that of the test of points.
  all <- kme_sketch(x, kme_landmarks(x, 90, rbf), groups = two)
  want <- mmd_set(x[1:60, ], x[61:90, ], rbf, B = 19)
  got <- mmd_test(all, control = spectrum, B = 19)
  # Eigenvalues below 1e-10 of the largest are left out.
  expect_near(got$estimate, want$estimate, 1e-6)
  expect_near(got$statistic, want$statistic, 1e-6)
})

# Eigenvalues of the projected Gram matrix centered within the samples, over n.
within_values <- function(K, groups, weights = rep(1, nrow(K))) {
  H <- diag(nrow(K))
  for (g in unique(groups)) {
    own <- groups == g
    H[own, own] <- H[own, own] -
      rep(weights[own] / sum(weights[own]), each = sum(own))
  }
  sizes <- tapply(weights, groups, \(w) sum(w)^2 / sum(w^2))
  each <- weights / tapply(weights, groups, sum)[groups] *
    sizes[groups] / sum(sizes)
  root <- sqrt(as.vector(each))
  sort(eigen(root * (H %*% K %*% t(H)) * rep(root, each = nrow(K)),
             symmetric = TRUE)$values, decreasing = TRUE)
}

test_that("the spectrum is that of rows centered within the samples", {
  weights <- stats::rexp(90)
  for (groups in list(two, three)) {
    for (w in list(NULL, weights)) {
      parts <- group_samples(sketch(groups, weights = w))
      sizes <- vapply(parts, `[[`, 1, "size")
      got <- null_spectrum(parts[[1]], list(parts = parts, sizes = sizes))
      want <- within_values(twin$K, groups, if (is.null(w)) rep(1, 90) else w)
      # The root of K_SS has the condition 1e5: 1e-13 seen.
      expect_lt(max(abs(got / sum(sizes) - want[seq_along(got)])), 1e-9)
      expect_lt(abs(sum(got) / sum(sizes) - sum(want)), 1e-9)
    }
  }
})

test_that("the spectrum null draws from its law", {
  test <- mmd_test(sketch(), control = spectrum, B = 20000)
  values <- within_values(twin$K, two)
  draws <- test$replicates * 60 * 30 / 90
  # Mean and variance of sum lambda Z^2, to 5 standard errors.
  expect_lt(abs(mean(draws) - sum(values)),
            5 * sqrt(2 * sum(values^2) / 20000))
  expect_near(stats::var(draws), 2 * sum(values^2), 0.1)
  expect_equal(test$p.value, (1 + sum(test$replicates >= test$statistic)) /
                 20001)
  values <- within_values(twin$K, three)
  unbiased <- mmd_test(sketch(three), B = 20000, control = test_control(
    null = "spectrum", statistic = "unbiased"
  ))
  expect_lt(abs(mean(unbiased$replicates)),
            5 * sqrt(4 * sum(values^2) / 20000))
})

test_that("weights make sizes of samples", {
  run <- \(w) {
    set.seed(2)
    mmd_test(sketch(weights = w), control = spectrum, B = 99)
  }
  expect_equal(run(rep(3, 90))$p.value, run(NULL)$p.value)
  w <- stats::rexp(90)
  test <- run(w)
  means <- rowsum(w * twin$phi, two) / as.vector(tapply(w, two, sum))
  expect_near(test$statistic[[1]], sum((means[1, ] - means[2, ])^2), 1e-10)
  sizes <- as.vector(tapply(w, two, \(w) sum(w)^2 / sum(w^2)))
  expect_near(mean(test$replicates) * prod(sizes) / sum(sizes),
              sum(within_values(twin$K, two, w)), 0.3)
  expect_identical(unname(test$sizes), c(60, 30))
})

test_that("bins are permuted as the points of their means", {
  for (groups in list(two, three)) {
    s <- sketch(groups, bin = 5)
    bins <- new_binned_rows(s)
    K <- crossprod(bins$features)
    counts <- as.vector(table(bins$group))
    set.seed(3)
    orders <- cbind(1:18, draw_columns(counts, 40))
    for (statistic in c("biased", "unbiased")) {
      pair <- \(K, g, h) {
        mmd_R(K[c(g, h), c(g, h)], seq_along(c(g, h)), length(g), statistic)
      }
      want <- apply(orders, 2, \(o) {
        if (length(counts) == 2) return(mmd_R(K, o, counts[1], statistic))
        # Weighted by rows, of which a bin has five.
        5 * mmd_groups_R(K, o, counts, pair)
      })
      set.seed(3)
      test <- mmd_test(s, B = 40, control = test_control(statistic = statistic))
      expect_near(c(test$statistic[[1]], test$replicates), want, 1e-10)
      given <- mmd_test(s, control = test_control(
        permutations = orders[, -1], statistic = statistic
      ))
      expect_identical(given$p.value, test$p.value)
      expect_near(given$replicates, test$replicates, 1e-12)
    }
    expect_identical(test$parameter[["bins"]], 18)
    expect_null(test$statistics)
  }
  # Of all rows in bins of one size the means are those of all rows.
  test <- mmd_test(sketch(bin = 5), B = 19)
  expect_near(test$statistic[[1]], mmd_R(twin$K, 1:90, 60), 1e-10)
})

test_that("p-values of all labelings of one data set are uniform", {
  s <- sketch(rep(c("a", "b"), each = 40), x[1:80, ], bin = 10)
  features <- s$bins[[1]]$first
  both <- cbind(features, s$bins[[2]]$first)
  of <- function(a) {
    s$bins[[1]]$first <- both[, a, drop = FALSE]
    s$bins[[2]]$first <- both[, -a, drop = FALSE]
    mmd_test(s, control = test_control(permutations = "all"))$p.value
  }
  p <- apply(utils::combn(8, 4), 2, of)
  # With samples of one size two labelings are one, with the names exchanged.
  expect_near(sort(p), rep(seq(2, 70, by = 2) / 70, each = 2), 1e-12)
})

test_that("two sketches are compared as the groups of one", {
  a <- sketch(NULL, x[1:60, ], bin = 5)
  b <- sketch(NULL, x[61:90, ], bin = 5)
  both <- sketch(two, bin = 5)
  both$bins <- list(a$bins[[1]], b$bins[[1]])
  for (null in c("permutation", "spectrum")) {
    run <- \(...) {
      set.seed(4)
      mmd_test(..., B = 49, control = test_control(null = null))
    }
    got <- run(a, b)
    want <- run(both)
    same <- c("statistic", "replicates", "estimate", "parameter", "method")
    expect_near(got[same], want[same], 1e-10)
    expect_identical(got$p.value, want$p.value)
  }
  expect_match(got$data.name, "a (n = 60) and b (n = 30)", fixed = TRUE)
  # Groups of one side are pooled.
  set.seed(4)
  pooled <- mmd_test(sketch(rep(c("u", "v"), 30), x[1:60, ]), b,
                     control = spectrum, B = 49)
  expect_near(pooled$statistic, got$statistic, 1e-10)
})

test_that("rows in bins that are not full are left out, and counted", {
  s <- sketch(rep(c("a", "b"), c(57, 33)), bin = 10)
  test <- mmd_test(s, B = 19)
  expect_identical(unname(test$sizes), c(50, 30))
  expect_identical(nobs(test), 80)
  expect_output(print(summary(test)),
                "10 rows in bins that are not full, left out")
  expect_match(test$method, "permutations of bins of 10")
  lost <- vapply(list(1:57, 58:90), \(i) {
    1 - mean(diag(twin$K)[i]) / mean(twin$own[i])
  }, 1)
  expect_output(print(summary(test)), paste0(
    "lost by projection: ", format(100 * lost[1], digits = 2), "% (a), ",
    format(100 * lost[2], digits = 2), "% (b)"
  ), fixed = TRUE)
})

test_that("update() tests again", {
  s <- sketch(bin = 5)
  test <- mmd_test(s, B = 19)
  expect_identical(update(test, B = 29)$parameter[["B"]], 29)
  expect_identical(update(test, control = spectrum)$null, "spectrum")
  other <- update(test, x = sketch(three, bin = 5))
  expect_length(other$sizes, 3)
  expect_error(update(test, y = s), "'y' must not be given",
               class = "kernmean_error_input")
})

test_that("the witness function is the difference of the embeddings", {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  s <- sketch(three)
  test <- mmd_test(s, control = spectrum, B = 19)
  fits <- lapply(group_samples(s), \(part) part$root %*% part$moments$mean)
  at <- \(beta, z) drop(k(z, landmark_x(l)) %*% beta)
  drawn <- plot(test, "witness", n = 5, groups = c("c", "a"))
  z <- as.matrix(expand.grid(drawn$x, drawn$y))
  expect_near(as.vector(drawn$z), at(fits$c, z) - at(fits$a, z), 1e-10)
  binned <- mmd_test(sketch(three, bin = 5), B = 19)
  expect_output(print(summary(binned)), "groups = 3")
  each <- plot(binned, "witness", n = 5)$b
  expect_near(as.vector(each$z),
              at(fits$b, z) - (at(fits$a, z) + at(fits$c, z)) / 2, 1e-10)
})

test_that("nothing is found where nothing differs", {
  s <- kme_sketch(rep(1, 40), 5, groups = rep(1:2, 20), bin = 5)
  for (null in c("permutation", "spectrum")) {
    test <- suppressWarnings(
      mmd_test(s, B = 19, control = test_control(null = null))
    )
    expect_identical(test$p.value, 1)
    expect_identical(test$estimate[["r.squared"]], 0)
  }
})

test_that("what a sketch cannot do is refused with the reason", {
  s <- sketch()
  plain <- sketch(NULL)
  first <- sketch(moments = 1)
  with <- \(x, ..., y) mmd_test(x, y, control = test_control(...))
  refused(mmd_test(plain), "at least two groups")
  refused(with(s, null = "permutation"), "'null' must be \"spectrum\"")
  refused(mmd_test(first), "for a test without bins")
  refused(with(sketch(moments = 1, bin = 5), null = "spectrum"),
          "second moments")
  refused(mmd_test(s, estimator = "skmse"), "'estimator'.*for sketches")
  refused(mmd_test(s, kernel = rbf), "'kernel' must not be given for sketches")
  refused(with(s, permutations = "all"), "must not be given")
  other <- kme_sketch(x, kme_landmarks(x, 10, rbf))
  refused(mmd_test(plain, other), "'x' and 'y' must be sketches on the same")
  refused(with(sketch(NULL, bin = 5), y = sketch(NULL, bin = 6),
               null = "permutation"), "'null' must be")
  refused(mmd_test(plain, sketch(NULL, x[1, , drop = FALSE])),
          "at least 2 rows; 'y' has 1")
  refused(mmd_test(sketch(bin = 20), B = 19), "at least 2 full bins")
  refused(mmd_test(kme_sketch(x, list(l, l), y = x)), "hsic_test")
  refused(mmd_test(s, x), "'y' must be a sketch, as of")
  refused(update(mmd_test(s, B = 19), x = x), "'x' must be a sketch")
  # Without bins of one size for both, the spectrum serves.
  test <- mmd_test(sketch(NULL, bin = 5), sketch(NULL, bin = 6), B = 19)
  expect_identical(test$null, "spectrum")
  expect_warning(mmd_test(sketch(rep(1:2, 45), bin = 20)),
                 "only 6 ways")
})

test_that("tests of bins and spectra keep their level", {
  skip_on_cran()
  groups <- rep(1:2, c(12, 72))
  reject <- function(bin) {
    sum(replicate(200, {
      s <- sketch(groups, matrix(stats::rnorm(168), ncol = 2), bin = bin)
      mmd_test(s, B = 39)$p.value <= 0.05 + 1e-12
    }))
  }
  set.seed(5)
  expect_true(in_band(reject(3), 200))
  expect_true(in_band(reject(NULL), 200))
})

test_that("filters of bins take the covariance of all rows", {
  size <- 4
  set.seed(2)
  binned <- sketch(bin = size)
  ratio <- c(0.1, 0.01)
  test <- mmd_test(binned, B = 19,
                   filter = test_filter(order = 0:1, ratio = ratio))
  # From the features of the rows, and the means of those in the bins.
  root <- binned$landmarks[[1]]$root
  features <- gram_R(rbf, x, landmark_x(l)) %*% root
  means <- do.call(rbind, lapply(binned$bins, \(b) {
    crossprod(b$first, root) / size
  })) - rep(colMeans(features), each = 15 + 7)
  pairs <- eigen(cov(features) * 89 / 90)
  value <- \(M) mmd_R(M, 1:22, 15, "unbiased")
  want <- vapply(ratio, \(r) {
    g <- 1 / (pairs$values + r * pairs$values[1])
    value(means %*% pairs$vectors %*% (g * t(means %*% pairs$vectors)))
  }, 1)
  expect_near(test$statistics$value, c(value(tcrossprod(means)), want), 1e-9)
  # Of several samples weights count rows.
  several <- sketch(three, bin = 5)
  test <- mmd_test(several, filter = test_filter(order = 1, ratio = 0.1),
                   B = 19)
  means <- do.call(rbind, lapply(several$bins, \(b) crossprod(b$first, root)))
  means <- means / 5
  means <- (means - rep(colMeans(features), each = 18)) %*% pairs$vectors
  M <- means %*% (t(means) / (pairs$values + 0.1 * pairs$values[1]))
  pair <- \(K, g, h) mmd_R(K[c(g, h), c(g, h)], 1:12, 6, "unbiased")
  expect_near(test$statistic[[1]], 5 * mmd_groups_R(M, 1:18, c(6, 6, 6), pair),
              1e-8)
  expect_named(test$statistic, "order 1, ratio 0.1")
  expect_identical(test$statistics$value, test$statistic[[1]])
})

test_that("bins of one row and all of them are the test of the features", {
  rows <- c(1:6, 61:66)
  test <- mmd_test(
    kme_sketch(x[rows, ], l, groups = two[rows], bin = 1), filter = TRUE,
    control = test_control(permutations = "all")
  )
  features <- gram_R(rbf, x[rows, ], landmark_x(l)) %*% l$root
  want <- mmd_test(features[1:6, ], features[7:12, ], kernel_linear(),
                   filter = test_filter(order = 0:1), scale = FALSE,
                   control = test_control(permutations = "all"))
  expect_near(test$statistics$value, want$statistics$value, 1e-8)
  expect_near(test$statistics$p.value, want$statistics$p.value, 1e-12)
  expect_near(test$p.value, want$p.value, 1e-12)
})

test_that("pairs of groups are compared as by their test", {
  each <- sketch(three)
  pairs <- mmd_pairwise(each, B = 99)
  expect_near(as.matrix(pairs)["a", "c"],
              mmd_test(each[c("a", "c")], B = 19)$estimate[["MMD"]], 1e-12)
  set.seed(1)
  first <- mmd_test(each[c("a", "b")], B = 99)
  set.seed(1)
  pairs <- mmd_pairwise(each, B = 99, adjust = "none")
  expect_identical(pairs$table$p.adjusted[1], first$p.value)
  # Of the points' features, in all numbers that are not drawn.
  features <- gram_R(rbf, x, landmark_x(l)) %*% l$root
  unbiased <- test_control(statistic = "unbiased")
  want <- mmd_pairwise(features, three, kernel_linear(), reference = "b",
                       scale = FALSE, control = unbiased, B = 99)
  got <- mmd_pairwise(each, reference = "b", control = unbiased, B = 99)
  expect_equal(got$table[1:6], want$table[1:6], tolerance = 1e-9)
  binned <- sketch(three, bin = 6)
  filtered <- mmd_pairwise(binned, filter = TRUE, B = 99)
  expect_near(filtered$table$distance, pairs$table$distance, 1e-9)
  expect_identical(filtered$table$n1, rep(30L, 3))
  expect_identical(rownames(mmd_pairwise(sketch(), B = 19)$table), "1")
  expect_identical(update(filtered, B = 79, filter = FALSE)$B, 79L)
})

test_that("what sketches do not keep is said of filters and pairs", {
  expect_snapshot(error = TRUE, {
    mmd_test(sketch(), filter = TRUE)
    mmd_test(sketch(bin = 5), filter = test_filter(order = 2))
    mmd_test(sketch(bin = 5), filter = test_filter(factors = 2))
    mmd_test(sketch(bin = 5, moments = 1), filter = TRUE)
    mmd_pairwise(sketch(), reference = "c")
    mmd_pairwise(sketch(), groups = 1)
    mmd_pairwise(sketch(NULL))
    plot(mmd_test(sketch(bin = 5), B = 19, filter = test_filter(order = 1)),
         "witness")
  })
})

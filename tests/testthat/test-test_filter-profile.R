# Spectral profiles and the statistics beside them, against eigen() and the
# formulas as they are written.

x <- random_points(24, 3, 1)
x[15:24, ] <- 1.6 * x[15:24, ] + 0.2
draws <- draw_columns(24, 19)
further <- \(order, ratio = NULL) test_filter(ratio = ratio, order = order)

# The eigenvalues of the centered blocks of K over their points.
spectrum_R <- function(K, of) {
  pmax(eigen(center_R(K[of, of]), TRUE)$values, 0) / length(of)
}

# q x labelings for each group; labels: points x labelings.
spectra_R <- function(K, labels) {
  q <- min(apply(labels, 2, table)) - 1
  lapply(sort(unique(labels[, 1])), \(g) {
    matrix(over_columns(labels, \(z) spectrum_R(K, which(z == g))[1:q]), q)
  })
}

# P and Q of two groups; K^c: those of all points.
profiles_R <- function(K, labels, ratios, complete = FALSE) {
  l <- spectra_R(K, labels)
  top <- eigen(center_R(K), TRUE)$values[1] / nrow(K)
  of <- \(g, h, ratio) {
    delta <- log((l[[g]] + ratio * top) / (l[[h]] + ratio * top))
    drawn <- if (complete) delta[, -1] else delta
    e <- delta - rowMeans(drawn)
    v <- rowMeans((drawn - rowMeans(drawn))^2)
    rbind(colSums(e^2), colSums((e^2 / v)[v > 1e-20, , drop = FALSE]))
  }
  if (length(l) == 2) {
    return(rbind(of(1, 2, ratios[1])[1, ], of(1, 2, ratios[2])[2, ]))
  }
  sizes <- table(labels[, 1])
  Reduce(`+`, utils::combn(length(l), 2, \(p) {
    prod(sizes[p]) / nrow(K)^2 *
      rbind(of(p[1], p[2], ratios[1])[1, ], of(p[1], p[2], ratios[2])[2, ])
  }, simplify = FALSE))
}

# (w - mean)' V^+ (w - mean) of the columns of w.
form_R <- function(w) {
  e <- w - rowMeans(w)
  s <- svd(tcrossprod(e) / ncol(e))
  kept <- s$d > 1e-9 * s$d[1]
  colSums((t(s$u[, kept]) %*% e)^2 / s$d[kept])
}

within_R <- function(K, labels) {
  diag(K) <- 0
  over_columns(labels, \(z) vapply(sort(unique(z)), \(g) {
    sum(K[z == g, z == g])
  }, 1))
}

# All further statistics, in the order of the table.
further_R <- function(K, labels, ratios = c(1, 0.001)) {
  Kc <- center_R(K)
  mean_R <- \(v) over_columns(labels, \(z) tapply(v, z, mean))
  square <- over_columns(labels, \(z) vapply(sort(unique(z)), \(g) {
    mean(Kc[z == g, z == g]^2)
  }, 1))
  less <- \(v) sweep(v[-1, , drop = FALSE], 2, v[1, ])
  p <- profiles_R(K, labels, ratios)
  rbind(p, sqrt(form_R(mean_R(diag(filtered_R(K, ratios[2]))))),
        form_R(within_R(K, labels)), form_R(within_R(Kc^2, labels)),
        form_R(rbind(less(log(mean_R(diag(Kc)))), less(log(square)))))
}

all_of_them <- c("gpk", "moments", "profile")

test_that("every statistic of every labeling is that of its formula", {
  labels <- labels_R(rep(1:2, c(14, 10)), draws)
  K <- gram_R(kernel_rbf(1.5), x)
  test <- mmd_set(x[1:14, ], x[15:24, ], kernel_rbf(1.5), permutations = draws,
                  filter = further(all_of_them))
  expect_aggregated(test, list(values = further_R(K, labels),
                               scale = rep(0, 6)), FALSE, 1e-8)
  test <- mmd_set(x[1:14, ], x[15:24, ], kernel_rbf(1.5), permutations = draws,
                  filter = further(all_of_them, c(0.3, 0.02)))
  expect_equal(test$statistics$value, further_R(K, labels, c(0.3, 0.02))[, 1],
               tolerance = 1e-8)
  expect_identical(test$statistics$ratio, c(0.3, 0.02, 0.02, NA, NA, NA))
})

test_that("so are those of three groups, of one axis too", {
  for (sizes in list(c(7, 8, 9), c(2, 12, 10))) {
    groups <- rep(1:3, sizes)
    labels <- labels_R(groups, draws)
    test <- mmd_test(gram(x, kernel_rbf(1.5)), groups,
                     filter = further(all_of_them),
                     control = test_control(permutations = draws))
    want <- further_R(gram_R(kernel_rbf(1.5), x), labels)
    expect_aggregated(test, list(values = want, scale = rep(0, 6)), FALSE, 1e-8)
  }
  few <- iris[c(1, 51:60, 101:110), ]
  refused(mmd_test(. ~ Species, few, filter = TRUE), "not one in 'setosa'")
})

test_that("clusters of several sizes, and blocks, change places likewise", {
  id <- rep(1:11, c(3, 2, 1, 4, 1, 2, 2, 4, 2, 1, 2))
  set.seed(1)
  drawn <- draw_permutations(c(6L, 5L), 19L)
  set.seed(1)
  test <- mmd_test(x[1:13, ], x[14:24, ], kernel_rbf(1.5), clusters = id,
                   B = 19, filter = further("profile"))
  by_unit <- labels_R(rep(1:2, c(6, 5)), drawn)
  want <- profiles_R(gram_R(kernel_rbf(1.5), x), by_unit[id, ], c(1, 0.001))
  expect_aggregated(test, list(values = want, scale = c(0, 0)), FALSE, 1e-8)
  # Within pairs, all 2^6 ways.
  all <- mmd_test(x[1:6, ], x[7:12, ], kernel_rbf(1.5), blocks = c(1:6, 1:6),
                  filter = further("profile"),
                  control = test_control(permutations = "all"))
  expect_equal((64 * all$statistics$p.value[1:2]) %% 2, c(0, 0))
})

test_that("a linear kernel in one column compares two variances", {
  a <- x[1:14, 1]
  b <- x[15:24, 1]
  test <- mmd_set(a, b, kernel_linear(), permutations = draws,
                  filter = further("profile", 0.5))
  variance <- \(v) mean((v - mean(v))^2)
  top <- variance(c(a, b))
  e <- over_columns(cbind(1:24, draws), \(p) {
    z <- c(a, b)[p]
    log((variance(z[1:14]) + top / 2) / (variance(z[15:24]) + top / 2))
  })
  e <- drop(e) - mean(e)
  expect_equal(test$statistics$p.value,
               rep(mean(abs(e) >= abs(e[1]) - 1e-10), 2))
})

test_that("what leaves distances as they are leaves the profiles", {
  K <- gram_R(kernel_rbf(1.5), x)
  run <- \(K) {
    mmd_test(as_gram(K), rep(1:2, c(14, 10)), filter = further("profile"),
             control = test_control(permutations = draws))$statistics$value
  }
  value <- run(K + tcrossprod(x))
  expect_equal(run(3 * (K + 2 + tcrossprod(x + 5))), value, tolerance = 1e-8)
  # The samples exchanged, and the labelings with them.
  moved <- ifelse(draws > 14, draws - 14, draws + 10)[c(15:24, 1:14), ]
  i <- c(15:24, 1:14)
  turned <- mmd_test(as_gram((K + tcrossprod(x))[i, i]), rep(1:2, c(10, 14)),
                     filter = further("profile"),
                     control = test_control(permutations = moved))
  expect_equal(turned$statistics$value, value, tolerance = 1e-8)
})

test_that("sums over the draws are the ranks", {
  test <- mmd_set(x[1:14, ], x[15:24, ], kernel_rbf(1.5), permutations = draws,
                  filter = further(c("gpk", "profile")))
  one <- \(order) mmd_set(x[1:14, ], x[15:24, ], kernel_rbf(1.5),
                          permutations = draws, filter = further(order))
  gpk <- one("gpk")
  expect_equal(sum(gpk$replicates) + gpk$statistic[[1]], 20 * 2,
               tolerance = 1e-10)
  expect_identical(test$statistics$order,
                   c("profile", "profile (standardized)", "within sums"))
  expect_equal(test$statistics$value[3], gpk$statistic[[1]])
})

test_that("labelings and their complements have the same, and equal points 0", {
  all <- mmd_test(x[1:4, ], x[5:8, ], filter = further("profile"),
                  control = test_control(permutations = "all"))
  expect_equal((70 * all$statistics$p.value) %% 2, c(0, 0))
  same <- suppressWarnings(mmd_test(matrix(1, 5, 2), matrix(1, 6, 2),
                                    filter = further(all_of_them), B = 19))
  expect_identical(same$p.value, 1)
  expect_equal(same$statistics$z, rep(0, 6))
  # In features as well.
  many <- with_most_points(10, mmd_test(matrix(1, 5, 2), matrix(1, 6, 2),
                                        filter = further(all_of_them),
                                        B = 19))
  expect_identical(many$p.value, 1)
})

test_that("the centered matrix is made once", {
  made <- 0
  make <- checked_centered
  with_binding("checked_centered", \(sample) {
    made <<- made + 1
    make(sample)
  }, mmd_test(x[1:14, ], x[15:24, ], filter = further(
    c("one-sided", "moments", "profile", 1, 2)
  ), B = 19))
  expect_identical(made, 1)
})

test_that("features have the spectra of their Gram matrix, of any threads", {
  labels <- list(subsets = .Call(
    C_r_subsets, NULL, 40L, c(90L, 60L), matrix(c(TRUE, FALSE), 1), NULL, FALSE
  ))
  points <- random_points(150, 5, 2)
  spectra <- \(rows, outside) {
    .Call(C_r_subset_spectra, rows, labels$subsets, 40, NULL, 150L, outside,
          90L, 5L, 1e-12)
  }
  for (outside in c(FALSE, TRUE)) {
    K <- tcrossprod(points)
    of_gram <- with_threads(1, spectra(K, outside))
    expect_equal(spectra(points, outside), of_gram, tolerance = 1e-10)
    expect_identical(with_threads(2, spectra(K, outside)), of_gram)
  }
})

test_that("large subsets follow each other, and can be interrupted", {
  skip_on_cran()
  n <- 1900L
  subsets <- .Call(C_r_subsets, NULL, 1L, c(n - 10L, 10L),
                   matrix(c(TRUE, FALSE), 1), NULL, FALSE)
  points <- random_points(n, 3, 2)
  K <- tcrossprod(points)
  spectra <- \(rows) {
    .Call(C_r_subset_spectra, rows, subsets, 1, NULL, n, FALSE, n - 10L, 3L,
          1e-12)
  }
  of_gram <- with_threads(1, spectra(K))
  # Of features by strips of members.
  expect_equal(spectra(points), of_gram, tolerance = 1e-10)
  expect_identical(with_threads(2, spectra(K)), of_gram)
  expect_false(finishes(spectra(K)))
})

test_that("more than 3000 points have features", {
  set.seed(1)
  a <- matrix(rnorm(3200), ncol = 2)
  b <- matrix(rnorm(2810, sd = 1.1), ncol = 2)
  set.seed(1)
  test <- mmd_test(a, b, kernel_linear(), filter = further("profile"), B = 19)
  set.seed(1)
  labels <- labels_R(rep(1:2, c(1600, 1405)),
                     draw_permutations(c(1600L, 1405L), 19L))
  z <- rbind(a, b)
  cov_R <- \(z) eigen(crossprod(sweep(z, 2, colMeans(z))) / nrow(z))$values
  delta <- over_columns(labels, \(g) {
    log((cov_R(z[g == 1, ]) + cov_R(z)[1]) / (cov_R(z[g == 2, ]) + cov_R(z)[1]))
  })
  expect_equal(test$statistics$value[1], sum((delta - rowMeans(delta))[, 1]^2),
               tolerance = 1e-8)
})

test_that("TRUE asks for twelve statistics, a name for nine", {
  run <- \(filter) {
    test <- mmd_set(x[1:14, ], x[15:24, ], filter = filter,
                    permutations = draws)
    as.data.frame(test)[c("statistic", "z", "p.value")]
  }
  twelve <- run(TRUE)
  nine <- run("tikhonov")
  expect_identical(twelve[1:9, -2], nine[, -2])
  # Those of means count 1.3 times.
  expect_equal(twelve$z[1:9] / nine$z, rep(c(1.3, 1), 5:4))
  expect_identical(twelve$statistic[10:12], c(
    "profile, ratio 1", "profile (standardized), ratio 0.001", "within sums"
  ))
})

test_that("the joint test is the default where nothing else is asked for", {
  set.seed(1)
  z <- matrix(rnorm(401 * 2), 401)
  two <- rep(1:2, c(200, 201))
  count <- \(x, groups, ...) NROW(mmd_test(x ~ groups, B = 19, ...)$statistics)
  # Seven at every size; where columns outnumber a quarter of the points those
  # of filter = TRUE, to 400 points.
  expect_identical(count(z[1:400, ], two[1:400]), 7L)
  expect_identical(count(z, two), 7L)
  wide <- matrix(rnorm(401 * 101), 401)
  expect_identical(count(wide[1:40, 1:10], two[181:220]), 7L)
  expect_identical(count(wide[1:40, 1:11], two[181:220]), 12L)
  expect_identical(count(wide[1:400, ], two[1:400]), 12L)
  expect_identical(count(wide, two), 7L)
  few <- \(...) count(z[181:220, ], two[181:220], ...)
  expect_identical(few(kernel = kernel_laplace(1)), 7L)
  for (asked in list(
    list(filter = "none"), list(kernel = kernel_energy()),
    list(kernel = kernel_linear()), list(estimator = "skmse"),
    list(control = test_control(null = "gamma")),
    list(control = test_control(statistic = "biased")),
    list(control = test_control(bins = 5)), list(bandwidths = "fuse")
  )) expect_identical(do.call(few, asked), 0L)
  g <- gram(z[181:220, ], kernel_rbf())
  expect_null(mmd_test(g, two[181:220], B = 19)$statistics)
  draws <- \(...) {
    length(mmd_test(z[181:200, ], z[201:220, ], ...)$replicates)
  }
  expect_identical(c(draws(), draws(filter = "none"), draws(filter = TRUE)),
                   c(399L, 999L, 399L))
  test <- mmd_test(z[181:200, ], z[201:220, ])
  expect_match(paste(capture.output(print(test)), collapse = " "),
               "7 statistics, of which .* filter = \"none\" is MMD.2 alone")
  same <- test_filter(ratio = c(0.1, 0.001), order = c(0, 1, "gpk", "moments"))
  expect_identical(update(test, filter = same, B = 19)$statistics$statistic,
                   test$statistics$statistic)
})

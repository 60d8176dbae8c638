# Comparisons of many groups: each is the two-sample test of its two groups.

# Unsorted groups of unequal sizes, levels with spaces.
sizes <- c("high dose" = 7, low = 5, none = 40, "two doses" = 7)
group <- factor(rep(names(sizes), sizes)[c(59:31, 1:30)])
points <- random_points(59, 2) + (group == "low") * 0.8
theta <- 1.4

compare <- function(..., B = 119) {
  set.seed(1)
  mmd_pairwise(cbind(a, b) ~ group, data.frame(a = points[, 1],
                                               b = points[, 2], group),
               B = B, ...)
}

# The two-sample test of two of the groups, without and with a seed.
two_groups <- function(labels, ..., filter = "none", seed = 1) {
  if (!is.null(seed)) set.seed(seed)
  kept <- group %in% labels
  x <- points[kept & group == labels[1], , drop = FALSE]
  y <- points[kept & group == labels[2], , drop = FALSE]
  mmd_test(x, y, ..., filter = filter, B = 119)
}

# Do the comparisons have the statistics and p-values of the two-sample tests?
# Those of the same two sizes have the same draws, after those before.
expect_two_samples <- function(got, ...) {
  table <- as.data.frame(got)
  set.seed(1)
  sizes <- paste(pmin(table$n1, table$n2), pmax(table$n1, table$n2))
  for (size in unique(sizes)) {
    seed <- get(".Random.seed", globalenv())
    for (i in which(sizes == size)) {
      assign(".Random.seed", seed, globalenv())
      labels <- intersect(levels(group), c(table$group1[i], table$group2[i]))
      want <- two_groups(labels, ..., seed = NULL)
      expect_near(table$statistic[i], want$statistic[[1L]], 1e-12)
      expect_identical(table$p.value[i], want$p.value)
    }
  }
  expect_equal(table$distance, sqrt(pmax(0, table$statistic)))
  expect_equal(table$p.adjusted, p.adjust(table$p.value, got$adjust))
}

test_that("each comparison is the two-sample test of the same draws", {
  all <- compare(kernel = kernel_rbf(theta))
  expect_two_samples(all, kernel = kernel_rbf(theta))
  expect_equal(all$table[1:2], data.frame(
    group1 = combn(levels(group), 2)[1, ],
    group2 = combn(levels(group), 2)[2, ]
  ))
  for (kernel in list(kernel_energy(), kernel_linear())) {
    one <- compare(reference = "none", kernel = kernel,
                   control = test_control(statistic = "unbiased"))
    expect_two_samples(one, kernel = kernel,
                       control = test_control(statistic = "unbiased"))
    expect_equal(unique(one$table$group2), "none")
    expect_equal(one$table$n1, c(7, 5, 7))
  }
})

# Statistics and p-values from pooled sums where `fast`, else pair by pair.
by_way <- function(fast, sample, statistic = "biased", estimator = "kme") {
  kernel <- if (inherits(sample, "kernmean_kernel")) sample
  if (!is.null(kernel)) sample <- points_sample(points, NULL)
  group <- rep(c("a", "b", "c", "none"), c(4, 4, 3, nrow(points) - 11))
  options <- list(estimator = read_estimator(estimator), null = "permutation",
                  reference = "none",
                  statistic = statistic, B = 70L, kernel = kernel,
                  alone = FALSE, progress = FALSE)
  samples <- read_samples(pool_groups(sample, group, "x", "x"), options)
  settled <- settle_compared(samples, options)
  pairs <- compared_pairs(settled, options)
  expect_true(has_pooled_sums(settled, options))
  pairs$fast <- fast
  set.seed(1)
  compare_pairs(settled, pairs, options)
}

test_that("sums of the pooled sample and pairs by themselves give the same", {
  d <- dist(points)
  for (case in list(
    list(kernel_rbf(theta)), list(kernel_rbf(theta), "unbiased"),
    list(kernel_laplace(theta)), list(kernel_energy(), "unbiased"),
    list(kernel_rbf(theta), "unbiased", est_mmkme(c(0.2, 0.5))),
    list(kernel_rbf(theta), "biased", "mkme"),
    list(gram_sample(gram(points, kernel_rbf(theta))), "unbiased"),
    list(dist_sample(d))
  )) {
    a <- do.call(by_way, c(TRUE, case))
    b <- do.call(by_way, c(FALSE, case))
    # 1e-15 seen
    expect_lt(relative_error(a[1, ], b[1, ]), 1e-13)
    expect_identical(a[2, ], b[2, ])
  }
})

test_that("where group sizes differ much the sums of all points are used", {
  fast <- \(sizes) {
    options <- list(estimator = est_kme(), null = "permutation",
                    statistic = "biased", reference = "1", B = 99L)
    samples <- read_samples(
      pool_groups(points_sample(random_points(sum(sizes), 2), NULL),
                  rep(seq_along(sizes), sizes), "x", "x"), options
    )
    compared_pairs(settle_compared(samples, options), options)$fast
  }
  expect_equal(fast(c(500, 20, 500)), c(TRUE, FALSE))
  # Bins take the place of points in large samples.
  expect_equal(fast(c(20000, 300)), FALSE)
})

test_that("draws that are many are made in parts, of the same stream", {
  pairs <- data.frame(m = c(3L, 40L), n = c(40L, 3L), fast = TRUE)
  pairs$bins <- vector("list", 2)
  asked <- list(null = "permutation", B = 40L)
  set.seed(2)
  want <- draw_columns(c(3, 40), 40)
  set.seed(2)
  expect_identical(shared_draws(pairs, asked), want[1:3, ])
  pairs$fast <- FALSE
  set.seed(2)
  whole <- shared_draws(pairs, asked)
  expect_identical(whole[1:3, ], want[1:3, ])
  expect_identical(apply(whole, 2, sort), apply(want, 2, sort))
})

test_that("blocks, clusters and all labelings are those of each pair", {
  x <- random_points(24, 1) + rep(c(0, 0, 1.2), 8)
  id <- rep(1:8, each = 3)
  dose <- rep(c("a", "b", "c"), 8)
  data <- data.frame(x = x[, 1], dose, id)[sample(24), ]
  every <- test_control(permutations = "all", statistic = "biased")
  theta <- kernel_rbf(1)
  all <- mmd_pairwise(x ~ dose, data, kernel = theta, blocks = id,
                      control = every)
  expect_null(all$B)
  for (i in 1:3) {
    labels <- unlist(all$table[i, 1:2])
    want <- mmd_test(x ~ dose, data[data$dose %in% labels, ], blocks = id,
                     kernel = theta, control = every)
    expect_identical(all$table$p.value[i], want$p.value)
  }
  litter <- paste(data$dose, (data$id - 1) %/% 2)
  kept <- data$dose != "b"
  # Four clusters each: 2 of 70 labelings, and two comparisons.
  expect_warning(
    clustered <- mmd_pairwise(x ~ dose, data, kernel = theta, reference = "c",
                              clusters = litter, control = every),
    "at least 0.057, whatever the data$"
  )
  want <- mmd_test(x ~ dose, data[kept, ], kernel = theta,
                   clusters = litter[kept], control = every)
  expect_identical(clustered$table$p.value[1], want$p.value)
})

test_that("other nulls, estimators, filters and bins go pair by pair", {
  cases <- list(
    list(1:3, control = test_control(null = "gamma")),
    list(1, control = test_control(null = "spectrum")),
    list(c(1, 3), estimator = "skmse"),
    list(c(1, 3), filter = test_filter(ratio = c(1, 0.01))),
    list(1, control = test_control(statistic = "unbiased", bins = 2))
  )
  for (case in cases) {
    arguments <- c(list(kernel = kernel_rbf(theta)), case[-1L])
    got <- do.call(compare, c(list(reference = "none"), arguments))
    # Rows whose draws are the first: the second has other sizes.
    for (i in case[[1L]]) {
      labels <- intersect(levels(group), unlist(got$table[i, 1:2]))
      want <- do.call(two_groups, c(list(labels), arguments))
      expect_near(got$table$statistic[i], want$statistic[[1L]], 1e-12)
      expect_equal(got$table$p.value[i], want$p.value)
    }
  }
})

test_that("adjusted values are those of p.adjust(), and B lets them be small", {
  kernel <- kernel_rbf(theta)
  none <- compare(kernel = kernel, adjust = "none", B = 199)
  for (adjust in c("hommel", "BH")) {
    got <- compare(kernel = kernel, adjust = adjust, B = 199)
    expect_identical(got$table$p.value, none$table$p.value)
    expect_identical(got$table$p.adjusted,
                     p.adjust(none$table$p.value, adjust))
  }
  many <- rep(letters[1:8], each = 10)
  expect_warning(mmd_pairwise(1:80, many, B = 99),
                 "of 28 comparisons are at least 0.28.*with B = 99")
  # 20 for each comparison.
  expect_silent(mmd_pairwise(1:80, many, B = 559))
  expect_silent(mmd_pairwise(1:80, many, B = 99, adjust = "BH"))
  pairs <- data.frame(x = rnorm(8), g = rep(1:3, c(2, 3, 3)))
  # 3 times 2 of 20: each labeling has its mirror image.
  expect_warning(mmd_pairwise(x ~ g, pairs, B = 99),
                 "of 3 of 3 comparisons are at least 0.3, whatever the data")
})

test_that("groups are as users have them", {
  set.seed(6)
  x <- rnorm(60)
  number <- rep(c(10, 2, 1), 20)
  got <- mmd_pairwise(x ~ number, reference = 10, B = 99)
  expect_equal(got$table$group1, c("1", "2"))
  expect_identical(mmd_pairwise(x, number, reference = "10", B = 39)$reference,
                   "10")
  # An unused level is no group.
  some <- factor(number, c(1, 2, 5, 10))
  expect_equal(names(mmd_pairwise(x, some, B = 99)$sizes), c("1", "2", "10"))
  set.seed(1)
  a <- mmd_pairwise(gram(x, kernel_rbf(1)), number, reference = 2, B = 99)
  set.seed(1)
  b <- mmd_pairwise(x, number, kernel = kernel_rbf(1), reference = 2, B = 99)
  expect_near(a$table, b$table, 1e-12)
  expect_match(b$data.name, "x by number: 1 (n = 20), 2 (n = 20), 10",
               fixed = TRUE)
  set.seed(1)
  a <- mmd_pairwise(dist(x), number, B = 99)
  set.seed(1)
  b <- mmd_pairwise(x, number, kernel = kernel_energy(), B = 99)
  expect_near(a$table, b$table, 1e-12)
})

test_that("matrices and dist objects hold the distances of all pairs", {
  all <- compare(kernel = kernel_rbf(theta))
  m <- as.matrix(all)
  expect_identical(m, t(m))
  expect_identical(dimnames(m), list(levels(group), levels(group)))
  expect_identical(m[cbind(all$table$group1, all$table$group2)],
                   all$table$distance)
  expect_equal(as.vector(as.dist(all)), m[lower.tri(m)])
  p <- as.matrix(all, "p.adjusted")
  expect_identical(p["none", "low"], all$table$p.adjusted[4])
  expect_true(all(is.na(diag(p))))
})

test_that("update() changes what was asked for; tables for broom", {
  skip_if_not_installed("generics")
  all <- compare(kernel = kernel_rbf(theta))
  set.seed(1)
  one <- update(all, reference = "low")
  expect_equal(one$table, compare(reference = "low",
                                  kernel = kernel_rbf(theta))$table)
  set.seed(1)
  expect_equal(update(one, reference = NULL)$table, all$table)
  expect_equal(update(one, adjust = "none", B = 49)$B, 49)
  tidied <- generics::tidy(all)
  expect_named(tidied, c("group1", "group2", "n1", "n2", "estimate",
                         "statistic", "p.value", "adj.p.value"))
  expect_identical(tidied$adj.p.value, all$table$p.adjusted)
  expect_identical(as.data.frame(all), all$table)
  expect_identical(generics::glance(all)$smallest, min(all$table$p.adjusted))
  expect_identical(generics::glance(one)$reference, "low")
})

test_that("any number of threads gives the same", {
  x <- random_points(700, 3)
  g <- rep(1:6, c(400, 60, 60, 60, 60, 60))
  run <- \(threads) {
    set.seed(1)
    with_threads(threads, mmd_pairwise(x, g, reference = 1, B = 199)$table)
  }
  expect_identical(run(1), run(2))
})

test_that("print shows the table, its smallest p-values where it is long", {
  expect_snapshot(summary(compare(kernel = kernel_rbf(theta))))
})

test_that("what cannot be compared is refused", {
  x <- rnorm(30)
  g <- rep(c("a", "b", "c"), 10)
  one <- mmd_pairwise(x, g, reference = "a", B = 59)
  expect_snapshot(writeLines(refusals(alist(
    mmd_pairwise(x, g, reference = "d"),
    mmd_pairwise(x, g, control = test_control(permutations = diag(30))),
    mmd_pairwise(x, g, blocks = rep(1:3, 10)),
    mmd_pairwise(x, g, control = test_control(bins = 20)),
    mmd_pairwise(x, rep("a", 30)),
    mmd_pairwise(x, g, estimator = "skmse", kernel = kernel_energy()),
    as.matrix(one)
  ))))
  expect_error(plot(one), "of all pairs", class = "kernmean_error_input")
})

# --- Pictures ----------------------------------------------------------------

test_that("p-values are short, and drawn among few groups", {
  p <- c(0.0002, 0.001, 0.0049, 0.01, 0.05, 0.051, 1)
  expect_identical(short_p(p), c("<.001", ".001", ".005", ".010", ".050",
                                 ".051", "1.000"))
  texts <- \(groups) {
    x <- mmd_pairwise(seq_len(4 * groups) / 9, gl(groups, 4), B = 9)
    length(Filter(\(layer) layer$kind == "text", fit_picture(x)$layers))
  }
  expect_identical(c(texts(3), texts(13)), c(1L, 0L))
})

test_that("all pairs of mixed columns have the same statistics", {
  set.seed(1)
  columns <- data.frame(u = rnorm(90), f = gl(3, 1, 90))
  groups <- gl(3, 30)
  # More points than views have, but not in a pair; then in one of the pairs.
  all <- mmd_pairwise(columns, groups, B = 59)
  within <- with_most_points(80, update(all))
  expect_match(within$method, "ANOVA")
  expect_equal(within$table$distance, all$table$distance)
  set.seed(2)
  plain <- mmd_pairwise(columns, groups, filter = "none", B = 59)
  unequal <- rep(1:3, c(20, 30, 40))
  none <- with_most_points(60, mmd_pairwise(columns, unequal, B = 59))
  expect_no_match(none$method, "ANOVA")
  expect_equal(none$table$distance, sqrt(pmax(0, none$table$statistic)))
  expect_equal(all$table$distance, plain$table$distance)
})

test_that("one permutation is a matrix of one column", {
  set.seed(6)
  x <- suppressWarnings(
    mmd_pairwise(weight ~ feed, chickwts, bandwidths = "fuse", B = 1)
  )
  expect_true(all(x$table$p.value %in% c(0.5, 1)))
})

# Random permutations, against R's own; permutations that users bring, against
# loops that relabel their rows.

x <- random_points(14, 2)
# Not sorted.
g <- factor(c("b", "a", "b", "b", "a", "c", "a", "b", "c", "a", "c", "b", "a",
              "b"))
kernel <- kernel_rbf(1.3)
K <- gram_R(kernel, x)

# The statistic where row i has the point perm[i], with its own label.
relabeled <- function(perm, labels) {
  k <- K[perm, perm]
  sizes <- table(labels)
  sum(vapply(names(sizes), \(l) {
    w <- (labels == l) / sizes[[l]] - 1 / length(labels)
    sizes[[l]] * sum(w * (k %*% w))
  }, 1))
}

given <- \(permutations, ..., formula = x ~ g) {
  mmd_test(formula, kernel = kernel, ..., filter = "none",
           control = test_control(permutations = permutations))
}

test_that("rows of permute are z[perm] of the user's rows, in any order", {
  skip_if_not_installed("permute")
  set.seed(1)
  for (design in list(permute::how(), permute::how(blocks = rep(1:2, 7)),
                      permute::how(within = permute::Within("series")))) {
    rows <- permute::shuffleSet(14, 40, design, quietly = TRUE)
    test <- given(rows)
    want <- apply(unclass(rows), 1, relabeled, labels = g)
    expect_near(test$replicates, unname(want), 1e-12)
    observed <- relabeled(1:14, g)
    expect_near(test$statistic[[1]], observed, 1e-12)
    # The set leaves out the identity.
    expect_equal(test$p.value, (1 + sum(want >= observed - 1e-10)) /
                   (nrow(rows) + 1))
    plain <- matrix(as.vector(rows), nrow(rows))
    expect_identical(given(plain)$p.value, test$p.value)
    set.seed(8)
    # A series of 14 has 13 others, which a warning says.
    drawn <- suppressWarnings(
      given(design, B = 30)
    )
    set.seed(8)
    rows <- permute::shuffleSet(14, 30, design, quietly = TRUE)
    expect_near(drawn$replicates,
                apply(unclass(rows), 1, relabeled, labels = g), 1e-12)
  }
})

test_that("a complete set is the enumeration of its design", {
  skip_if_not_installed("permute")
  id <- rep(1:5, 2)
  z <- random_points(10, 1)
  two <- rep(1:2, each = 5)
  design <- permute::how(blocks = id, complete = TRUE)
  found <- few_draws(given(design, B = 9999, formula = z ~ two))
  want <- few_draws(mmd_set(z ~ two, kernel = kernel, blocks = id,
                            filter = "none", permutations = "all"))
  expect_equal(length(found$replicates), 2^5 - 1)
  expect_equal(found$p.value, want$p.value)
  # With the identity among them it is not counted twice.
  permute::setObserved(design) <- TRUE
  all <- few_draws(given(design, B = 9999, formula = z ~ two))
  expect_equal(length(all$replicates), 2^5)
  expect_equal(all$p.value, want$p.value)
  # Labels that a permutation leaves as they are do not stand for it.
  six <- z[1:6] ~ two[c(1:3, 6:8)]
  free <- few_draws(given(permute::how(complete = TRUE), B = 9999,
                          formula = six))
  expect_equal(length(free$replicates), factorial(6) - 1)
  expect_equal(free$p.value, few_draws(given("all", formula = six))$p.value)
  series <- permute::how(within = permute::Within("series"))
  expect_warning(
    few <- given(series, B = 99, formula = z ~ two),
    "only 10 ways"
  )
  expect_equal(length(few$replicates), 9)
})

test_that("hsic_test() takes y[perm]", {
  skip_if_not_installed("permute")
  y <- x[, 1] + random_points(14, 1, 5)[, 1]
  set.seed(3)
  rows <- permute::shuffleSet(14, 25, permute::how(blocks = rep(1:2, 7)),
                              quietly = TRUE)
  test <- hsic_set(x, y, kernel, kernel_rbf(1), permutations = rows)
  h <- diag(14) - 1 / 14
  k <- h %*% K %*% h
  l <- h %*% gram_R(kernel_rbf(1), matrix(y)) %*% h
  want <- apply(unclass(rows), 1, \(p) sum(k * l[p, p])) / 14^2
  expect_near(test$replicates, want, 1e-12)
})

test_that("what is no set of permutations is refused", {
  skip_if_not_installed("permute")
  expect_error(given(permute::how(blocks = gl(2, 3))),
               "must be a design for 14 points; permute says: ",
               class = "kernmean_error_input")
  expect_snapshot(writeLines(refusals(alist(
    given(matrix(1:14, 3, 14, TRUE)[, 14:2]),
    given(permute::how(), blocks = rep(1:2, 7))
  ))))
})

test_that("indices are drawn as sample.int() draws them, however many", {
  for (n in c(2:9, 2^16 + -1:1, 2^17 + 1, 1e6)) {
    set.seed(1)
    want <- draw_columns(c(1, n - 1), 20)[1, ]
    set.seed(1)
    expect_identical(draw_permutations(c(1, n - 1), 20)[1, ], want)
    state <- .Random.seed
    set.seed(1)
    draw_permutations(c(n - 1, 1), 20)
    expect_identical(.Random.seed, state)
  }
  for (sizes in list(30, c(3, 20, 7), rep(1, 30))) {
    set.seed(2)
    want <- draw_columns(sizes, 5)
    set.seed(2)
    expect_identical(draw_permutations(sizes, 5), want)
  }
})

test_that("of two groups the smaller is drawn, each labeling as likely", {
  for (sizes in list(c(3, 4), c(5, 2), c(3, 3), c(1, 12), c(2, 0))) {
    m <- sizes[1]
    set.seed(3)
    want <- draw_columns(sizes, 50)
    set.seed(3)
    got <- draw_permutations(sizes, 50)
    expect_identical(apply(got, 2, sort), apply(want, 2, sort))
    first <- \(p) apply(p[seq_len(m), , drop = FALSE], 2, sort)
    expect_identical(first(got), first(want))
  }
  # 7 points in blocks of 4 and 3, with 3 and 1 of the first group.
  blocks <- c(1L, 2L, 1L, 1L, 2L, 1L, 2L)
  for (case in list(list(c(3, 4), 35), list(c(5, 2), 21), list(c(3, 3), 20),
                    list(c(4, 3), 12, blocks))) {
    drawn <- draw_permutations(case[[1]], 2e4, if (length(case) > 2) blocks)
    labels <- apply(drawn, 2, \(p) {
      sum(2^sort(p[seq_len(case[[1]][1])]))
    })
    counts <- table(labels)
    expect_length(counts, case[[2]])
    chi <- sum((counts - 2e4 / case[[2]])^2) / (2e4 / case[[2]])
    expect_lt(chi, stats::qchisq(0.9999, case[[2]] - 1))
  }
})

test_that("the same seed gives the same labels on every path", {
  z <- random_points(15, 2)
  for (m in c(6, 9)) {
    two <- rep(1:2, c(m, 15 - m))
    run <- \(..., filter = "none") {
      set.seed(4)
      mmd_test(..., filter = filter, B = 30)$replicates
    }
    pair <- \(kernel, ...) run(z[two == 1, ], z[two == 2, ], kernel, ...)
    want <- pair(kernel)
    K <- gram(z, kernel)
    biased <- test_control(statistic = "biased")
    # The shrunk ones are fitted to each labeling, or shrink by nothing.
    for (got in list(
      run(K, two), pair(kernel, clusters = 1:15), pair(kernel, est_mkme(0)),
      pair(kernel, est_fkmse(lambda = 0)),
      pair(kernel, blocks = rep(1, 15)),
      pair(kernel, filter = test_filter(order = 0), control = biased)
    )) {
      expect_near(got, want, 1e-9)
    }
    expect_near(run(dist(z), two), pair(kernel_energy()), 1e-12)
  }
})

test_that("a function that sees the order of points has the level", {
  # The weight of the first point alone: with 2 and 6 points there are 8 x 7
  # pairs of first points, each as likely, whoever else is in a sample.
  skip_on_cran()
  first <- est_function(\(s) c(1, numeric(s$n - 1)))
  z <- c(0, 1, 2.5, 4.2, 6.3, 8.9, 12, 15.7)
  set.seed(5)
  test <- suppressWarnings(mmd_test(z[1:2], z[3:8], kernel_rbf(5), first,
                                    B = 4000))
  all <- 2 - 2 * gram_R(kernel_rbf(5), matrix(z))
  pairs <- all[upper.tri(all)]
  seen <- vapply(pairs, \(v) mean(abs(test$replicates - v) < 1e-9), 0)
  expect_gt(stats::chisq.test(seen * 4000)$p.value, 1e-4)
})

# Permutations that users bring, against loops that relabel their rows.

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

test_that("rows of permute are z[perm] of the user's rows, in any order", {
  skip_if_not_installed("permute")
  set.seed(1)
  for (design in list(permute::how(), permute::how(blocks = rep(1:2, 7)),
                      permute::how(within = permute::Within("series")))) {
    rows <- permute::shuffleSet(14, 40, design, quietly = TRUE)
    test <- mmd_test(x ~ g, kernel = kernel,
                     control = test_control(permutations = rows))
    want <- apply(unclass(rows), 1, relabeled, labels = g)
    expect_equal(test$replicates, unname(want), tolerance = 1e-12)
    observed <- relabeled(1:14, g)
    expect_equal(test$statistic[[1]], observed, tolerance = 1e-12)
    # The set leaves out the identity.
    expect_equal(test$p.value, (1 + sum(want >= observed - 1e-10)) /
                   (nrow(rows) + 1))
    plain <- matrix(as.vector(rows), nrow(rows))
    expect_identical(mmd_test(x ~ g, kernel = kernel,
                              control = test_control(permutations = plain))$p.value, test$p.value)
    set.seed(8)
    # A series of 14 has 13 others, which a warning says.
    drawn <- suppressWarnings(
      mmd_test(x ~ g, kernel = kernel,
               control = test_control(permutations = design), B = 30)
    )
    set.seed(8)
    rows <- permute::shuffleSet(14, 30, design, quietly = TRUE)
    expect_equal(drawn$replicates,
                 apply(unclass(rows), 1, relabeled, labels = g),
                 tolerance = 1e-12)
  }
})

test_that("columns are the user's rows, the first of which are group 1", {
  set.seed(2)
  columns <- replicate(14, sample(14))
  two <- factor(g == "a", c(TRUE, FALSE))
  test <- mmd_test(x ~ two, kernel = kernel,
                   control = test_control(permutations = columns))
  want <- apply(columns, 2, \(p) mmd_R(K, p, sum(g == "a")))
  expect_equal(test$replicates, want, tolerance = 1e-12)
})

test_that("a complete set is the enumeration of its design", {
  skip_if_not_installed("permute")
  id <- rep(1:5, 2)
  z <- random_points(10, 1)
  two <- rep(1:2, each = 5)
  design <- permute::how(blocks = id, complete = TRUE)
  found <- mmd_test(z ~ two, kernel = kernel,
                    control = test_control(permutations = design), B = 9999)
  want <- mmd_test(z ~ two, kernel = kernel, blocks = id,
                   control = test_control(permutations = "all"))
  expect_equal(length(found$replicates), 2^5 - 1)
  expect_equal(found$p.value, want$p.value)
  # With the identity among them it is not counted twice.
  permute::setObserved(design) <- TRUE
  all <- mmd_test(z ~ two, kernel = kernel,
                  control = test_control(permutations = design), B = 9999)
  expect_equal(length(all$replicates), 2^5)
  expect_equal(all$p.value, want$p.value)
  # Labels that a permutation leaves as they are do not stand for it.
  free <- mmd_test(z[1:6] ~ two[c(1:3, 6:8)], kernel = kernel, B = 9999,
                   control = test_control(permutations = permute::how(complete = TRUE)))
  expect_equal(length(free$replicates), factorial(6) - 1)
  expect_equal(free$p.value, mmd_test(z[1:6] ~ two[c(1:3, 6:8)],
                                      kernel = kernel,
                                      control = test_control(permutations = "all"))$p.value)
  series <- permute::how(within = permute::Within("series"))
  expect_warning(
    few <- mmd_test(z ~ two, kernel = kernel,
                    control = test_control(permutations = series), B = 99),
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
  test <- hsic_test(x, y, kernel, kernel_rbf(1), permutations = rows)
  h <- diag(14) - 1 / 14
  k <- h %*% K %*% h
  l <- h %*% gram_R(kernel_rbf(1), matrix(y)) %*% h
  want <- apply(unclass(rows), 1, \(p) sum(k * l[p, p])) / 14^2
  expect_equal(test$replicates, want, tolerance = 1e-12)
})

test_that("what is no set of permutations is refused", {
  skip_if_not_installed("permute")
  expect_error(mmd_test(x ~ g,
                        control = test_control(permutations = permute::how(blocks = gl(2, 3)))),
               "must be a design for 14 points; permute says: ",
               class = "kernmean_error_input")
  expect_snapshot(writeLines(refusals(alist(
    mmd_test(x ~ g,
             control = test_control(permutations = matrix(1:14, 3, 14, TRUE)[,
                                                                             14:2])),
    mmd_test(x ~ g, control = test_control(permutations = matrix(1, 3, 14))),
    mmd_test(x ~ g, control = test_control(permutations = permute::how()),
             blocks = rep(1:2, 7)),
    mmd_test(x ~ g,
             control = test_control(permutations = permute::how(),
                                    null = "spectrum"))
  ))))
})

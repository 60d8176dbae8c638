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

given <- \(permutations, ..., formula = x ~ g) {
  mmd_test(formula, kernel = kernel, ...,
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
  found <- given(design, B = 9999, formula = z ~ two)
  want <- mmd_test(z ~ two, kernel = kernel, blocks = id,
                   control = test_control(permutations = "all"))
  expect_equal(length(found$replicates), 2^5 - 1)
  expect_equal(found$p.value, want$p.value)
  # With the identity among them it is not counted twice.
  permute::setObserved(design) <- TRUE
  all <- given(design, B = 9999, formula = z ~ two)
  expect_equal(length(all$replicates), 2^5)
  expect_equal(all$p.value, want$p.value)
  # Labels that a permutation leaves as they are do not stand for it.
  six <- z[1:6] ~ two[c(1:3, 6:8)]
  free <- given(permute::how(complete = TRUE), B = 9999, formula = six)
  expect_equal(length(free$replicates), factorial(6) - 1)
  expect_equal(free$p.value, given("all", formula = six)$p.value)
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

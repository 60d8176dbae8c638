# Folds, rules of choice and searches, against their definitions by hand.

test_that("drawn folds cover all units once, in the shares of the strata", {
  set.seed(42)
  strata <- factor(rep(c("a", "b", "c"), c(23, 11, 9)))
  of <- make_folds(43, 5, "drawn", strata)
  expect_identical(sort(unique(of)), 1:5)
  expect_true(all(abs(table(of) - 43 / 5) < 1))
  expect_true(all(apply(table(of, strata), 2, \(n) diff(range(n))) <= 1))
  expect_identical(sort(make_folds(7, Inf, "drawn")), 1:7)
  # One draw of R's generator for each stratum.
  set.seed(43)
  first <- make_folds(43, 5, "drawn", strata)
  seed <- .Random.seed
  set.seed(43)
  for (n in table(strata)) sample.int(n)
  expect_identical(.Random.seed, seed)
  set.seed(43)
  expect_identical(make_folds(43, 5, "drawn", strata), first)
  set.seed(43)
  order <- sample.int(12)
  set.seed(43)
  expect_identical(make_folds(12, 5, "drawn")[order], rep_len(1:5, 12))
})

test_that("folds that are not drawn are blocks, or in a fixed order", {
  expect_identical(make_folds(11, 4, "turns"), rep_len(1:4, 11))
  expect_identical(.Call(C_r_sequence, 300), sequence_R(300))
  expect_identical(make_folds(11, 4, "hashed"), hashed_R(11, 4))
  expect_identical(sort(make_folds(3, Inf, "hashed")), 1:3)
  strata <- rep(c(2, 1, 3), c(20, 13, 9))
  of <- make_folds(42, 5, "hashed", strata)
  expect_identical(of, hashed_R(42, 5, strata))
  expect_true(all(abs(table(of) - 42 / 5) < 1))
  expect_identical(make_folds(11, 4, "blocks"), rep(1:4, c(3, 3, 3, 2)))
  strata <- c(2, 1, 1, 2, 1, 2, 1, 1)
  of <- make_folds(8, 2, "blocks", strata)
  expect_identical(of[strata == 1], rep(1:2, 3:2))
  expect_identical(of[strata == 2], rep(1:2, 2:1))
})

test_that("clusters are left out whole, with folds as even as can be", {
  sizes <- c(3, 9, 1, 7, 7, 2, 4, 1)
  clusters <- rep(seq_along(sizes), sizes)
  of <- cluster_folds(clusters, 3)
  expect_true(all(rowSums(table(clusters, of) > 0) == 1))
  # 9, 7, 7, then 4 and 3 to the sevens, 2 to the 9, 1 and 1.
  expect_identical(sort(tabulate(of)), c(11L, 11L, 12L))
  expect_identical(cluster_folds(clusters, 3), of)
  expect_error(cluster_folds(clusters, 9), "at most 8, the number of clusters",
               class = "kernmean_error_input")
})

test_that("given folds have any names, one for each unit", {
  expect_identical(read_folds(c("b", "a", "b"), 3, "rows"),
                   factor(c("b", "a", "b")))
  expect_error(read_folds(c(1, 1, 1), 3, "rows"), "at least 2 folds",
               class = "kernmean_error_input")
})

# What is shown of a grid and chosen from it, one candidate after the other.
tune_R <- function(values, losses, rule, below, above) {
  all <- losses(c(below, values, above))
  score <- apply(all, 2, mean)
  shown <- length(below) + seq_along(values)
  best <- shown[1]
  for (i in shown) if (score[i] < score[best]) best <- i
  if (best == shown[1] && length(below)) shown <- c(seq_along(below), shown)
  if (best == max(shown) && length(above)) shown <- shown[1]:length(score)
  for (i in shown) if (score[i] < score[best]) best <- i
  chosen <- best
  for (i in shown) {
    spread <- switch(rule, min = -1, "1se" = sd(all[, best]),
                     paired = sd(all[, i] - all[, best])) / sqrt(nrow(all))
    if (score[i] <= score[best] + spread) chosen <- max(chosen, i)
  }
  list(value = c(below, values, above)[chosen], shown = shown, best = best,
       score = score[shown])
}

test_that("rules and borders are those of a loop over the grid", {
  values <- c(1, 2, 4, 8)
  wider <- wider_grid(values, 2)
  expect_equal(unlist(wider), c(0.25, 0.5, 16, 32), ignore_attr = TRUE)
  for (least in c(0.3, 0.6, 3, 7, 12, 40)) {
    set.seed(round(10 * least))
    noise <- matrix(rnorm(72, sd = 0.3), 6)
    losses <- \(v) outer(rep(1, 6), log(v / least)^2) + 2 +
      noise[, seq_along(v)]
    for (rule in c("min", "1se", "paired")) for (grows in c(TRUE, FALSE)) {
      found <- tune_grid(values, losses, rule, if (grows) wider)
      twin <- tune_R(values, losses, rule, if (grows) wider$below,
                     if (grows) wider$above)
      expect_identical(found$value, twin$value)
      expect_equal(found$table$score, twin$score)
      expect_identical(found$table$value[found$table$chosen], twin$value)
      expect_identical(found$extended, length(twin$shown) > 4L)
      ends <- range(twin$shown)
      expect_identical(found$border, if (twin$best == ends[1]) "smallest" else
        if (twin$best == ends[2]) "largest")
      expect_identical(found$highest, twin$value == max(found$table$value))
    }
  }
})

test_that("errors are those of means, 0 of one unit, in any unit", {
  losses <- matrix(c(1, 2, 4, 0, 0, 0), 3)
  found <- mean_losses(losses)
  expect_equal(found$score, c(7 / 3, 0))
  expect_equal(found$se, c(sd(c(1, 2, 4)) / sqrt(3), 0))
  expect_equal(mean_losses(losses * 1e-200)$se, found$se * 1e-200)
  expect_identical(mean_losses(losses[1, , drop = FALSE])$se, c(0, 0))
  expect_identical(mean_losses(0 * losses)$se, c(0, 0))
  # Nothing but rounding has no border.
  flat <- tune_grid(1:3, \(v) matrix(1, 2, 3), "min")
  expect_null(flat$border)
  expect_false(flat$highest)
  tiny <- tune_grid(1:3, \(v) outer(1:2, v) * 1e-9, "min", zero = 1)
  expect_null(tiny$border)
})

test_that("a curve is searched to its smallest value near the grid", {
  found <- search_log(\(x) (log(x) - 0.3)^2 + 1, exp(-3:3))
  expect_near(found$at, exp(0.3), 1e-4)
  expect_near(found$minimum, 1, 1e-8)
  expect_false(found$border)
  expect_true(search_log(\(x) -x, exp(-3:3))$border)
  curve <- score_curve(c(2, 1, 2, Inf, 0), 1:5, "noise")
  expect_identical(curve, data.frame(noise = c(1, 2), score = 2:1))
})

test_that("a list is worked through with a bar, if asked", {
  expect_output(found <- lapply_shown(list(a = 1, b = 2), `-`, TRUE), "100%")
  expect_identical(found, list(a = -1, b = -2))
  expect_silent(lapply_shown(1:2, `-`, FALSE))
})

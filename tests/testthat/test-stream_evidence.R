# Evidence: bets that are fair, martingales, bounds from sums of rows.

test_that("each bet pays 1 on average over the ranks", {
  for (of in c(1L, 2L, 9L, 31L)) {
    paid <- vapply(seq_len(of), \(rank) {
      exp(.Call(C_r_rank_bets, rank, of, seq_len(of)))
    }, matrix(0, rank_bettors, of))
    expect_equal(apply(paid, 1:2, mean), matrix(1, rank_bettors, of),
                 tolerance = 1e-13)
  }
})

test_that("bets and evidence are those of the formulas", {
  set.seed(1)
  of <- 4:40
  ranks <- vapply(of, \(t) sample.int(t, 1L), 1L)
  ranks[30:37] <- 1:8
  evidence <- new_evidence(1L, rank_bettors)
  for (t in seq_along(ranks)) {
    evidence <- bet_day(evidence, \(k) .Call(C_r_rank_bets, ranks[t], of[t], k))
    if (t %in% c(1, 5, 37)) {
      want <- evidence_R(ranks[seq_len(t)], of[seq_len(t)])
      # Starts that were let go lower it by 1e-8 of the largest each.
      expect_equal(exp(evidence$log), want, tolerance = 1e-6)
    }
  }
  expect_lte(max(evidence$starts), 37)
  expect_gte(evidence$since[1L], 29)
})

test_that("over all orders of seven days evidence is 1 on average", {
  set.seed(2)
  x <- matrix(rnorm(2 * 7), 2)
  x[, 7] <- x[, 7] + 4
  orders <- all_orders(7L)
  # The distances of the days of a set do not depend on their order.
  ranks_in <- lapply(1:127, \(set) {
    days <- which(bitwAnd(set, 2^(0:6)) > 0)
    if (length(days) < 4L) {
      return(NULL)
    }
    d <- .Call(C_r_day_scores, x[, days], rep(1, length(days)))$distances
    stats::setNames(rank(-d), days)
  })
  ranks <- t(apply(orders, 1L, \(order) vapply(4:7, \(t) {
    as.integer(ranks_in[[sum(2^(order[1:t] - 1))]][[as.character(order[t])]])
  }, 1L)))
  for (t in 4:7) {
    expect_identical(tabulate(ranks[, t - 3], t), rep(as.integer(5040 / t), t))
  }
  # Many orders have the same ranks.
  kinds <- unique(ranks)
  values <- apply(kinds, 1L, \(ranks) {
    evidence <- new_evidence(1L, rank_bettors)
    vapply(4:7, \(t) {
      evidence <<- bet_day(evidence,
                           \(k) .Call(C_r_rank_bets, ranks[t - 3], t, k))
      exp(evidence$log)
    }, 1)
  })
  key <- \(m) apply(m, 1L, paste, collapse = " ")
  values <- values[, match(key(ranks), key(kinds))]
  expect_equal(rowMeans(values), rep(1, 4), tolerance = 1e-12)
  highest <- apply(values, 2, max)
  expect_lte(mean(highest >= 2), 1 / 2)
  expect_lte(mean(highest >= 4), 1 / 4)
  expect_gt(max(highest), 4)
})

test_that("of many starts the best ones are kept", {
  evidence <- new_evidence(2L, 1L)
  evidence$starts <- seq_len(1200L)
  evidence$count <- 1200L
  set.seed(3)
  evidence$logs <- matrix(rnorm(2400), 2)
  after <- bet_day(evidence, \(k) numeric(2))
  expect_length(after$starts, most_starts)
  lost <- setdiff(1:1201, after$starts)
  lead <- \(starts) apply(cbind(evidence$logs, 0)[, starts], 2, max)
  expect_lte(max(apply(cbind(evidence$logs, 0)[, lost] -
                         apply(evidence$logs, 1, max), 2, max)),
             min(apply(cbind(evidence$logs, 0)[, after$starts] -
                         apply(evidence$logs, 1, max), 2, max)))
})

# --- Rows --------------------------------------------------------------------

set.seed(4)
features <- \(n) {
  phi <- matrix(rnorm(n * 3), n) %*% diag(c(0.3, 0.2, 0.05))
  phi / pmax(1, sqrt(rowSums(phi^2)))
}
day_of <- \(phi) list(n = nrow(phi), mean = colMeans(phi), covariance =
                        crossprod(sweep(phi, 2, colMeans(phi))) / nrow(phi))
x <- features(70)
y <- features(40)
center <- c(0.1, -0.05, 0)
reach <- 1 + sqrt(sum(center^2))

test_that("the bound from sums is below the product over rows", {
  a <- matrix(rnorm(3 * 60), 3)
  a <- a / rep(sqrt(colSums(a^2)), each = 3)
  for (size in c(0.4, 0.1, 1e-4)) {
    bets <- a * size / reach
    bound <- stream_logs(bets, day_of(x), day_of(y), center, reach)
    logs <- \(phi, share) log1p(sweep(phi, 2, center) %*% bets * share)
    exact <- colSums(logs(x, 40 / 70)) + colSums(logs(y, -1))
    expect_true(all(bound <= exact + 1e-14))
    # What is lost of the second order goes to 0.
    if (size == 1e-4) {
      linear <- 40 * drop(crossprod(bets, colMeans(x) - colMeans(y)))
      expect_equal((bound - linear) / (exact - linear), rep(1, 60),
                   tolerance = 1e-3)
    }
  }
})

test_that("bets are cut to what rows can bear", {
  bets <- diag(c(100, 1, 0.01))
  expect_equal(stream_logs(bets, day_of(x), day_of(y), center, reach),
               stream_logs(diag(c(0.5, 0.5, 0.01 * reach) / reach), day_of(x),
                           day_of(y), center, reach), tolerance = 1e-14)
})

test_that("streams exchanged are bets in the other direction", {
  bets <- matrix(rnorm(9), 3)
  expect_identical(stream_logs(bets, day_of(x), day_of(y), center, reach),
                   stream_logs(-bets, day_of(y), day_of(x), center, reach))
})

test_that("two streams of one law do not pay, over all labelings of rows", {
  # Both streams are a half of the same rows each time: the mean over all
  # choices of the half is at most 1.
  rows <- features(8)
  halves <- utils::combn(8L, 4L)
  bets <- cbind(diag(3), -diag(3)) * 0.5 / reach
  logs <- apply(halves, 2, \(half) {
    stream_logs(bets, day_of(rows[half, ]), day_of(rows[-half, ]), center,
                reach)
  })
  expect_true(all(rowMeans(exp(logs)) <= 1 + 1e-12))
})

test_that("bets are along axes and what was seen, as many on any day", {
  basis <- diag(c(2, 3, 5))
  path <- list(n = c(100, 50), sum = cbind(c(20, 0, 0), c(0, 10, 0)))
  bets <- stream_bets(basis, path)
  expect_identical(dim(bets), c(3L, row_bettors))
  # 1 - 2/(n m^2) with m = 0.4 of 100 rows, and 0.6 of 50.
  expect_equal(bets[, row_bettors - 1:0],
               cbind(c(2 * 0.4 * (1 - 2 / 16), 0, 0),
                     c(0, 3 * 0.6 * (1 - 2 / 18), 0)), tolerance = 1e-12)
  expect_true(all(stream_bets(basis, list(n = c(0, 0), sum = matrix(0, 3, 2)))[
    , row_bettors - 5:0
  ] == 0))
})

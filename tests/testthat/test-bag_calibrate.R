# Probabilities from decision values, against general methods on what is
# printed, and the picture of how they keep.

# log odds of i against j > i, in the order of combn(), as the matrix r.
rates_of <- function(odds, count) {
  r <- matrix(NA, count, count)
  pairs <- t(utils::combn(count, 2))
  r[pairs] <- stats::plogis(odds)
  r[pairs[, 2:1, drop = FALSE]] <- stats::plogis(-odds)
  r
}

test_that("A and B are those of a logistic regression on Platt's targets", {
  set.seed(91)
  for (n in c(6, 40, 300)) {
    for (shift in c(0, 5)) {
      second <- seq_len(n) %% 3 == 0
      f <- rnorm(n, second) + shift
      if (mean(f[second]) < mean(f[!second])) f <- 2 * shift - f
      found <- fit_sigmoid(f, second)
      expect_lt(found[["A"]], 0)
      expect_near(unname(found), sigmoid_R(f, second), 1e-6)
      # Other units give other ones of the same probabilities.
      for (unit in 10^c(-200, -9, 9, 150)) {
        expect_near(fit_sigmoid(unit * f, second) * c(unit, 1), found, 1e-6)
      }
    }
  }
})

test_that("where classes are the wrong way round A is 0", {
  set.seed(92)
  second <- rep(c(TRUE, FALSE), c(12, 20))
  f <- rnorm(32) - second
  expect_gt(sigmoid_R(f, second)[1], 0)
  found <- fit_sigmoid(f, second)
  best <- stats::optim(c(-1, 0), \(at) sigmoid_loss_R(at, f, second),
                       method = "L-BFGS-B", upper = c(0, Inf),
                       control = list(factr = 10))
  expect_identical(found[["A"]], 0)
  expect_near(unname(found), best$par, 1e-5)
  expect_near(plogis(-found[["B"]]), mean(targets_of(second)), 1e-14)
  # The same where decision values do not vary but for rounding.
  for (flat in list(rep(0, 32), rep(0.1, 32),
                    0.1 + rep_len(c(0, 1, 2), 32) * 2^-56)) {
    expect_near(fit_sigmoid(flat, second), found, 1e-12)
  }
})

test_that("classes that are split have finite sigmoids, which claim little", {
  for (n in c(1, 2, 10, 1000)) {
    second <- rep(c(FALSE, TRUE), each = n)
    for (f in list(ifelse(second, 1, -1), ifelse(second, 1, -1e6),
                   seq_len(2 * n))) {
      found <- fit_sigmoid(f, second)
      expect_true(all(is.finite(found)))
      expect_lt(found[["A"]], 0)
      p <- plogis(-(found[["A"]] * f + found[["B"]]))
      # At the minimum means are those of the targets.
      expect_near(mean(p), mean(targets_of(second)), 1e-7)
      expect_gt(min(p), 0)
    }
    # Two values of f can have both targets.
    found <- fit_sigmoid(ifelse(second, 1, -1), second)
    expect_near(plogis(-(c(-1, 1) * found[["A"]] + found[["B"]])),
                c(1, n + 1) / (n + 2), 1e-7)
  }
  # One bag of a class among many of the other.
  second <- c(TRUE, logical(50))
  found <- fit_sigmoid(c(1, seq(-2, 0, length.out = 50)), second)
  expect_true(all(is.finite(found)))
  expect_lt(plogis(-sum(found)), 2 / 3)
})

test_that("coupling minimizes the printed criterion, with the sum 1", {
  set.seed(93)
  for (count in 2:6) {
    odds <- matrix(rnorm(4 * choose(count, 2), sd = 2), 4)
    p <- couple_pairs(odds, count)
    expect_identical(dim(p), c(4L, count))
    for (i in 1:4) {
      r <- rates_of(odds[i, ], count)
      slow <- couple_R(r)
      expect_lt(max(abs(p[i, ] - slow)), 1e-5)
      expect_lte(coupling_loss_R(p[i, ], r),
                 coupling_loss_R(slow, r) * (1 + 1e-9) + 1e-15)
      # As a quadratic program.
      q <- -r * t(r)
      diag(q) <- colSums(r^2, na.rm = TRUE)
      program <- quadprog::solve.QP(q + 1e-12 * diag(count), numeric(count),
                                    cbind(1, diag(count)),
                                    c(1, numeric(count)), meq = 1)$solution
      expect_lt(max(abs(p[i, ] - program)), 1e-8)
    }
    expect_near(rowSums(p), rep(1, 4), 1e-14)
  }
})

test_that("pairs that agree give back what they are of", {
  set.seed(94)
  for (count in 2:5) {
    p <- rexp(count)
    p <- p / sum(p)
    pairs <- utils::combn(count, 2)
    odds <- log(p[pairs[1, ]] / p[pairs[2, ]])
    expect_near(couple_pairs(t(odds), count), t(p), 1e-10)
  }
  # Sure pairs, also where they beat each other in turn.
  sure <- rbind(c(1, 1, 1), c(-1, -1, -1), c(1, -1, 1)) * 1e5
  expect_near(couple_pairs(sure, 3),
              rbind(c(1, 0, 0), c(0, 0, 1), rep(1, 3) / 3), 1e-12)
  tiny <- couple_pairs(matrix(c(50, -50)), 2)
  expect_near(tiny, cbind(plogis(c(50, -50)), plogis(c(-50, 50))), 1e-15)
  expect_gt(min(tiny), 0)
})

test_that("kernlab couples three classes the same", {
  skip_if_not_installed("kernlab")
  # Of more it fills the two halves of its matrix in different orders.
  set.seed(95)
  odds <- matrix(rnorm(15), 5)
  expect_near(couple_pairs(odds, 3),
              kernlab::couple(plogis(odds), coupler = "minpair"), 1e-12)
})

# --- The table ---------------------------------------------------------------

test_that("bins have exact intervals of the share that was right", {
  set.seed(96)
  p <- matrix(rexp(3 * 205), 205)
  p <- p / rowSums(p)
  colnames(p) <- c("x", "y", "z")
  truth <- factor(colnames(p)[sample(3, 205, TRUE)])
  found <- calibration_table(p, truth)
  expect_identical(sum(found$n), 205L)
  expect_true(all(found$n %in% 20:21))
  largest <- apply(p, 1, max)
  right <- colnames(p)[apply(p, 1, which.max)] == truth
  ordered <- order(largest)
  bin <- rep(1:10, found$n)
  expect_near(found$claimed, as.vector(tapply(largest[ordered], bin, mean)),
              1e-14)
  expect_near(found$hit, as.vector(tapply(right[ordered], bin, mean)), 1e-14)
  for (b in 1:10) {
    expect_near(unlist(found[b, c("lower", "upper")], use.names = FALSE),
                as.vector(binom.test(sum(right[ordered][bin == b]),
                                     found$n[b])$conf.int), 1e-10)
  }
  # Rows in any order.
  turned <- sample(205)
  expect_near(calibration_table(p[turned, ], truth[turned]), found, 1e-14)
})

test_that("equal claims are one bin, and few points have as many", {
  p <- cbind(a = rep(c(0.7, 0.6), c(30, 20)), b = rep(c(0.3, 0.4), c(30, 20)))
  found <- calibration_table(p, rep(c("a", "b"), 25))
  expect_identical(found$n, c(20L, 30L))
  expect_equal(found$hit, c(0.5, 0.5))
  found <- calibration_table(p[c(1, 50), ], c("a", "b"))
  expect_identical(found$n, c(1L, 1L))
  expect_equal(found$hit, c(0, 1))
  expect_equal(found$lower, c(0, 0.025))
  expect_equal(found$upper, c(0.975, 1))
  # All of one claim.
  one <- calibration_table(p[1:3, ], c("a", "a", "b"))
  expect_identical(one$n, 3L)
})

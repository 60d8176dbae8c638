# Changes: segments of a stream that is over.

set.seed(1)
rows <- rbind(service_days(20), service_days(10, apart = 0.5),
              service_days(10))
landmarks <- kme_landmarks(rows, 60)
sketch <- service_sketch(rows, landmarks)
fit <- kme_changes(sketch, B = 199)
points <- \(r, n) matrix(rnorm(r * n), r)

test_that("segments that differ are found, with sets that hold the cuts", {
  expect_identical(fit$cuts$cut, c("2026-03-21", "2026-03-31"))
  expect_lte(fit$p.value, 0.01)
  expect_true(all(fit$cuts$p.adjusted <= 0.02))
  expect_true(all(mapply(`%in%`, c(20, 30), fit$sets)))
  segment <- predict(fit)
  expect_identical(unname(segment), factor(rep(1:3, c(20, 10, 10))))
  expect_identical(names(segment), sketch$groups)
  expect_identical(predict(fit, sketch$groups[30:31]), segment[30:31])
  expect_identical(sketch[segment == 2]$groups, sketch$groups[21:30])
  expect_identical(as.data.frame(fit)$segment, unname(segment))
})

test_that("without a change there is none", {
  set.seed(2)
  none <- kme_changes(service_sketch(service_days(40), landmarks), B = 99)
  expect_gt(none$p.value, 0.05)
  expect_identical(nlevels(none$segment), 1L)
  expect_identical(nrow(none$cuts), 0L)
  on_device(plot(none))
})

test_that("gains are those of the formula, for any order", {
  set.seed(3)
  x <- points(3, 14)
  orders <- cbind(1:14, replicate(3, sample(14)))
  got <- .Call(C_r_cut_gains, x - rowMeans(x), orders, 3L)
  want <- apply(orders, 2, \(order) gains_R(t(x)[order, ], 3L))
  expect_near(got, want, 1e-12)
  one <- with_threads(1, cut_gains(x, 2L, rep(1L, 14), 50))
  set.seed(4)
  a <- with_threads(1, cut_gains(x, 2L, rep(1L, 14), 300))
  set.seed(4)
  b <- with_threads(4, cut_gains(x, 2L, rep(1L, 14), 300))
  expect_identical(a, b)
  expect_equal(one[, 1L], gains_R(t(x), 2L), tolerance = 1e-12)
})

test_that("over all orders of six bins the p-value is exact", {
  set.seed(5)
  x <- points(2, 6)
  orders <- t(all_orders(6L))
  gains <- .Call(C_r_cut_gains, x - rowMeans(x), orders, 1L)
  largest <- signif(apply(gains, 2, max), 10)
  # Whatever the order observed, the others are the same 720.
  again <- .Call(C_r_cut_gains, (x - rowMeans(x))[, orders[, 77]], orders, 1L)
  expect_equal(sort(apply(again, 2, max)), sort(largest), tolerance = 1e-8)
  p <- vapply(largest, \(value) mean(largest >= value), 1)
  for (j in c(1, 7, 36, 72, 360)) expect_lte(mean(p <= j / 720), j / 720)
  expect_lt(min(p), 0.02)
})

test_that("segmentations are the best of all", {
  set.seed(6)
  x <- points(2, 9)
  for (cuts in list(integer(), c(3L, 6L))) {
    d <- t(diff(t(x)))[, setdiff(1:8, cuts)] / sqrt(2)
    m <- shrunk_R(t(d), c(0, 0), ncol(d))
    y <- t(x) %*% solve(chol((1 - m$rho) * m$s + m$rho * diag(2)))
    cost <- \(i, j) sum(scale(y[i:j, ], scale = FALSE)^2)
    found <- .Call(C_r_segments, x, cuts, 2L, 3L)
    best <- lapply(0:2, \(count) {
      at <- utils::combn(2:7, count)
      at <- at[, apply(at, 2, \(a) all(diff(c(0, a, 9)) >= 2)), drop = FALSE]
      totals <- apply(at, 2, \(a) sum(mapply(cost, c(1, a + 1), c(a, 9))))
      list(total = min(totals), at = at[, which.min(totals)])
    })
    expect_equal(found$totals, vapply(best, `[[`, 1, "total"),
                 tolerance = 1e-12)
    for (k in 1:3) expect_equal(trace_cuts(found$last, k), best[[k]]$at)
  }
})

test_that("segments of many bins can be interrupted, on any threads", {
  skip_on_cran()
  x <- points(40, 4000)
  segments <- \(x) .Call(C_r_segments, x, integer(), 2L, 6L)
  expect_false(with_threads(1, finishes(segments(x))))
  some <- x[, 1:1200]
  expect_identical(with_threads(1, segments(some)),
                   with_threads(2, segments(some)))
})

test_that("the level holds, and sets hold the change", {
  set.seed(7)
  p <- replicate(300, gains_p(cut_gains(points(3, 12), 2L, rep(1L, 12), 19)))
  # 0.05 of 300: 15, with a standard deviation of 3.8.
  expect_lte(sum(p <= 0.05), 15 + 4 * 3.8)
  expect_gt(sum(p <= 0.5), 150 - 4 * 8.7)
  asked <- list(min = 2L, B = 19L, level = 0.9)
  inside <- replicate(60, {
    x <- points(3, 20)
    x[1, 1:9] <- x[1, 1:9] + 2
    9 %in% judge_cut(x, c(0L, 9L, 20L), asked)$set
  })
  # 54 of 60, with a standard deviation of 2.3; conservative.
  expect_gte(sum(inside), 54 - 3 * 2.3)
})

test_that("a drift within segments is warned of", {
  set.seed(8)
  drift <- service_days(30)
  drift$queue <- drift$queue + rep(sin(1:30 / 3), each = 150)
  expect_warning(kme_changes(service_sketch(drift, landmarks), B = 19, max = 2),
                 class = "kernmean_warning_order")
})

test_that("few segments are chosen as among many, few draws are refused", {
  few <- suppressWarnings(kme_changes(sketch, B = 19, max = 3))
  expect_identical(few$cuts$cut, fit$cuts$cut)
  expect_error(kme_changes(sketch, B = 18), "'B' must be at least 19",
               class = "kernmean_error_input")
  one <- suppressWarnings(kme_changes(sketch, B = 19, max = 2))
  expect_identical(one$cuts$p.value, one$p.value)
})

test_that("sizes that fall for long are warned of", {
  set.seed(9)
  day <- rep(1:30, each = 150)
  some <- unlist(lapply(1:30, \(t) which(day == t)[seq_len(154 - 4 * t)]))
  falling <- cbind(service_days(30), day = c(letters, LETTERS)[day])[some, ]
  falling <- kme_sketch(falling, landmarks, groups = "day", moments = 2)
  expect_warning(kme_changes(falling, B = 19, max = 2), "sizes rise or fall",
                 class = "kernmean_warning_sizes")
  mixed <- falling[falling$groups[c(rbind(1:15, 30:16))]]
  expect_no_warning(kme_changes(mixed, B = 19, max = 2),
                    class = "kernmean_warning_sizes")
})

test_that("short sequences have one cut at most", {
  short <- sketch[sketch$groups[13:28]]
  few <- kme_changes(short, B = 99)
  expect_identical(few$rule, integer())
  expect_identical(few$cuts$cut, "2026-03-21")
})

test_that("update() goes on from what was kept", {
  set.seed(9)
  a <- update(fit, B = 99, level = 0.5)
  set.seed(9)
  b <- kme_changes(sketch, B = 99, level = 0.5)
  expect_identical(a, b)
})

test_that("any number of threads makes the same changes, read back or not", {
  path <- tempfile()
  saveRDS(sketch, path)
  for (threads in c(1, 2, 5)) {
    again <- with_threads(threads, {
      set.seed(10)
      kme_changes(readRDS(path), B = 99)
    })
    if (threads == 1) first <- again
    expect_identical(again, first)
  }
  saveRDS(fit, path)
  set.seed(11)
  kept <- update(readRDS(path), B = 99)
  set.seed(11)
  expect_identical(kept, update(fit, B = 99))
})

test_that("changes print and plot, and refuse in words", {
  set.seed(1)
  expect_snapshot(kme_changes(sketch, B = 99))
  on_device(expect_equal(dim(plot(fit)), c(40L, 4L)))
  expect_identical(names(glance.kernmean_fit(fit)),
                   c("nobs", "segments", "p.value", "neighbors"))
  expect_identical(tidy.kernmean_fit(fit), fit$cuts)
  expect_refusals(expression(
    kme_changes(rows), kme_changes(sketch[sketch$groups[1:7]]),
    kme_changes(sketch, min = 21), kme_changes(sketch, B = 0),
    kme_changes(sketch, level = 1), predict(fit, "2020-01-01"),
    predict(fit, list(1)), plot(fit, "gain"), sketch[c(TRUE, FALSE)]
  ))
})

test_that("a p-value at its floor says so", {
  set.seed(12)
  rows <- data.frame(d = rep(1:30, each = 20), u = rnorm(600))
  rows$u <- rows$u + 3 * (rows$d > 15)
  fit <- kme_changes(kme_sketch(rows, kme_landmarks(rows["u"], 10),
                                groups = "d", moments = 2), B = 99)
  expect_identical(fit$p.value, 0.01)
  expect_output(print(fit), "p = 0.01 (least possible with B = 99)",
                fixed = TRUE)
})

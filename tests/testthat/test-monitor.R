# Monitors: what goes on day after day.

set.seed(1)
quiet <- service_days(40)
landmarks <- kme_landmarks(quiet, 80)
past <- service_sketch(quiet, landmarks)
broken <- service_sketch(service_days(6, apart = 0.9), landmarks,
                         first = "2026-04-10")
both <- past + broken
m <- kme_monitor(both, reference = 30)

test_that("days are judged by their rank among days", {
  table <- as.data.frame(m)
  expect_identical(table$day, both$groups[31:46])
  expect_identical(table$of, 31:46)
  expect_equal(table$p.value, table$rank / table$of)
  for (t in c(31L, 41L, 46L)) {
    days <- read_bins(both[both$groups[seq_len(t)]])
    x <- day_points(days, 40)$x
    want <- scores_R(t(x))$distances
    expect_near(table$distance[t - 30]^2, want[t], 1e-9)
    expect_equal(table$rank[t - 30], sum(want >= want[t]))
  }
  # The tail of a day that is far out.
  expect_lt(table$tail[11], 1e-4)
})

test_that("a change raises the alarm, and says when and what", {
  table <- m$table
  expect_false(any(table$alarm[1:10]))
  expect_true(all(table$alarm[14:16]))
  expect_identical(table$since[16], "2026-04-10")
  expect_identical(table$alarm, table$evidence >= 20)
  columns <- summary(m)$columns
  expect_identical(columns$column[1], "cov(size, time)")
  expect_lt(columns$z[1], -3)
  rows <- service_days(6, apart = 0.9)
  expect_equal(columns$day[columns$column == "cov(size, time)"],
               stats::cov(rows$size, rows$time), tolerance = 0.3)
  expect_equal(glance.kernmean_fit(m)$nobs, 46)
  expect_identical(tidy.kernmean_fit(m), table)
})

test_that("evidence is that of the formula, for the largest of the scores", {
  # Of the distance alone it has half the weight.
  table <- m$table
  alone <- evidence_R(table$rank, table$of) / 2
  expect_gte(table$evidence[16], alone * (1 - 1e-6))
  plain <- kme_monitor(both, reference = 30, columns = FALSE)
  lost <- read_bins(both)$each$lost
  ranks <- vapply(31:46, \(t) sum(lost[1:t] >= lost[t] * (1 - 1e-9)), 1L)
  of_lost <- evidence_R(ranks, 31:46) / 2
  expect_equal(plain$table$evidence[16], max(alone, of_lost), tolerance = 1e-6)
  expect_identical(plain$table$rank, table$rank)
  expect_identical(length(plain$table), length(table) - 9L)
  refused(summary(plain), "columns")
})

test_that("days one by one, at once, and saved between are the same", {
  grown <- kme_monitor(past[past$groups[1:30]])
  expect_null(grown$table)
  path <- tempfile()
  for (day in both$groups[31:46]) {
    saveRDS(grown, path)
    grown <- update(readRDS(path), both[day])
  }
  unlink(path)
  expect_identical(grown, m)
  named <- kme_monitor(both, reference = both$groups[1:30])
  expect_identical(named$table, m$table)
  expect_identical(with_threads(1, kme_monitor(both, reference = 30))$table,
                   with_threads(4, kme_monitor(both, reference = 30))$table)
})

test_that("rows are sketched as the reference was", {
  rows <- cbind(service_days(1), day = "2026-05-01", other = 1)
  of_rows <- update(m, rows, groups = "day")
  sketch <- kme_sketch(rows, landmarks, groups = "day", moments = 2)
  expect_identical(of_rows$table, update(m, sketch)$table)
  # However the rows come.
  parts <- kme_sketch(split(rows, rep(1:3, 50)), landmarks, groups = "day",
                      moments = 2)
  expect_equal(update(m, parts)$table, of_rows$table, tolerance = 1e-6)
})

test_that("the order of the reference changes nothing", {
  mixed <- kme_monitor(both[c(sample(both$groups[1:30]), both$groups[31:46])],
                       reference = both$groups[1:30]) |> tryCatch(
                         kernmean_error_input = conditionMessage
                       )
  expect_match(mixed, "order of time")
  names <- sprintf("d%02d", 1:46)
  renamed <- both
  renamed$groups <- names
  order <- c(sample(30), 31:46)
  mixed <- kme_monitor(renamed[names[order]], reference = 30)
  expect_equal(mixed$table$rank, m$table$rank)
  expect_equal(mixed$table$evidence, m$table$evidence, tolerance = 1e-8)
})

test_that("a horizon counts runs", {
  repeated <- kme_monitor(both, reference = 30, horizon = 100)
  expect_equal(repeated$table$run, m$table$run)
  expect_identical(repeated$table$alarm, m$table$run >= 100)
  expect_gt(sum(repeated$table$alarm), sum(m$table$alarm) - 1)
})

test_that("a new claim begins with the days before the change", {
  again <- update(m, restart = TRUE)
  expect_identical(again$reference, 40L)
  expect_identical(again$claims, 2L)
  after <- update(again, service_sketch(service_days(3), landmarks,
                                        first = "2026-05-01"))
  expect_identical(after$table$of[17:19], 41:43)
  expect_false(any(after$table$alarm[17:19]))
  expect_identical(after$table$claim, rep(1:2, c(16L, 3L)))
  # Without an alarm all days are reference.
  expect_identical(update(kme_monitor(past, reference = 30),
                          restart = TRUE)$reference, 40L)
  # What was judged in the first claim stays judged.
  refused(update(again, broken), "judged already")
})

test_that("two streams are compared day by day", {
  set.seed(2)
  effect <- service_days(12, 300)
  split <- rep(c(TRUE, FALSE), 1800)
  x <- service_sketch(effect[split, ], landmarks)
  shifted <- effect[!split, ]
  last <- rep(seq_len(12) > 6, each = 150)
  shifted$size[last] <- shifted$size[last] + 0.5
  y <- service_sketch(effect[!split, ], landmarks)
  same <- kme_monitor(x, y)
  expect_false(any(same$table$alarm))
  expect_equal(same$table$evidence[1], 1)
  moved <- kme_monitor(x, service_sketch(shifted, landmarks))
  expect_equal(moved$table$evidence[1:6], same$table$evidence[1:6])
  expect_true(all(moved$table$alarm[10:12]))
  expect_identical(summary(moved)$columns$column[1], "size")
  parts <- lapply(list(x, y), read_day, "2026-03-04")
  expect_equal(same$table$distance[4],
               sqrt(sum((parts[[1]]$mean - parts[[2]]$mean)^2)))
  # One by one, and one with itself.
  grown <- kme_monitor(x[x$groups[1:5]], y[x$groups[1:5]])
  grown <- update(grown, x[x$groups[6:12]], y = y[x$groups[6:12]])
  expect_identical(grown$table, same$table)
  own <- kme_monitor(x, x)
  expect_true(all(own$evidence$logs <= 0))
  expect_lt(own$table$evidence[12], 1)
  expect_identical(update(moved, restart = TRUE)$evidence$count, 0L)
  # Two streams of weighted rows, or of a kernel without bound.
  linear <- kme_landmarks(quiet, 3, kernel_linear())
  unbounded <- service_sketch(effect, linear, 300)
  weighted <- kme_sketch(cbind(effect[1:300, ], day = rep(1:2, 150), w = 2),
                         landmarks, groups = "day", weights = "w", moments = 2)
  bare <- x
  bare$groups <- letters[1:12]
  expect_refusals(expression(
    kme_monitor(unbounded, unbounded), kme_monitor(weighted, weighted),
    kme_monitor(x, bare), update(same, x), update(m, x, y = y),
    kme_monitor(x, y, reference = 8)
  ))
})

test_that("a day that is far from all landmarks, and others, are warned of", {
  far <- service_sketch(service_days(1, shift = 6), landmarks,
                        first = "2026-05-01")
  expect_warning(update(m, far), class = "kernmean_warning_projection")
  expect_warning(kme_monitor(past[past$groups[1:8]]),
                 class = "kernmean_warning_few")
  set.seed(3)
  rows <- service_days(20)
  rows$size <- rows$size + rep(1:20 / 10, each = 150)
  expect_warning(kme_monitor(service_sketch(rows, landmarks)),
                 class = "kernmean_warning_order")
  few <- kme_sketch(cbind(quiet[1:3000, ], day = rep(c(1:19, 19), each = 150))[
    -(1:130), ], landmarks, groups = "day", moments = 2)
  expect_warning(kme_monitor(few), class = "kernmean_warning_sizes")
  poor <- kme_landmarks(quiet, 12)
  expect_warning(kme_monitor(service_sketch(quiet, poor)),
                 class = "kernmean_warning_columns")
})

test_that("what cannot be monitored is refused in words", {
  rows <- cbind(quiet[1:300, ], day = rep(c("b", "a"), 150))
  first <- kme_sketch(rows, landmarks, groups = "day", moments = 1)
  none <- kme_sketch(quiet, landmarks)
  late <- service_sketch(service_days(1), landmarks, first = "2026-04-01")
  others <- service_sketch(service_days(1), kme_landmarks(quiet, 20),
                           first = "2026-06-01")
  backward <- past[rev(past$groups)]
  one_level <- kme_sketch(
    data.frame(z = factor(rep("u", 160)), day = rep(1:16, 10)),
    kme_landmarks(data.frame(z = factor(c("u", "v")))), groups = "day",
    moments = 2
  )
  expect_refusals(expression(
    kme_monitor(quiet), kme_monitor(none), kme_monitor(first),
    kme_monitor(past, reference = 5),
    kme_monitor(past, reference = "2020-01-01"),
    kme_monitor(backward), kme_monitor(past, alpha = 2),
    kme_monitor(past, horizon = 100, alpha = 0.1), kme_monitor(past, 1),
    kme_monitor(past, order = 1), update(m, late), update(m, others),
    update(m, quiet[1:5, ]), update(m, restart = 1), update(m, groups = "day"),
    kme_monitor(one_level), summary(m, "2026-03-01"),
    as.data.frame(kme_monitor(past)), plot(m, "spectrum")
  ))
})

test_that("monitors print and plot what they know", {
  expect_snapshot({
    kme_monitor(past)
    kme_monitor(past, reference = 30)$reference
  })
  lines <- fit_lines(m, 3L)
  expect_length(lines, 3L)
  expect_match(lines[1], "46 days (30 reference), 150 rows each", fixed = TRUE)
  expect_match(lines[2], "^2026-04-15: rank [0-9]+ of 46 [(]p = ")
  expect_match(lines[3], "since 2026-04-10 [(]alarm at 20[)]; alarm on 2026-")
  expect_match(fit_lines(update(m, restart = TRUE), 3L)[2], "claim 2")
  on_device({
    expect_identical(plot(m), m$table)
    expect_identical(plot(m, "days"), m$table)
    expect_identical(plot(m, "columns", day = "2026-04-12"),
                     summary(m, "2026-04-12")$columns)
    plot(kme_monitor(both, reference = 30, horizon = 50))
  })
})

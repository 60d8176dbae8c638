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
    x <- new_day_points(days, 40)$x
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
  ranks <- vapply(31:46, \(t) sum(lost[31:t] >= lost[t] * (1 - 1e-9)), 1L)
  of_lost <- evidence_R(ranks, 1:16) / 2
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
})

# A monitor of x (and y) that is saved and read between every two days.
saved_daily <- function(monitor, x, y = NULL) {
  path <- tempfile()
  for (day in x$groups) {
    saveRDS(monitor, path)
    monitor <- update(readRDS(path), x[day], y = if (!is.null(y)) y[day])
  }
  monitor
}

test_that("any number of threads makes the same monitor, saved daily or not", {
  first <- both$groups[1:30]
  x <- both[both$groups[25:46]]
  set.seed(5)
  y <- service_sketch(service_days(22), landmarks, first = x$groups[1])
  two <- kme_monitor(x, y)
  # Landmarks and rows are read with so many threads as well.
  for (threads in c(1, 2, 5)) {
    with_threads(threads, {
      expect_identical(kme_monitor(both, reference = 30), m)
      expect_identical(saved_daily(kme_monitor(both[first]), both[
        both$groups[31:46]
      ]), m)
      expect_identical(kme_monitor(x, y), two)
      started <- kme_monitor(x[x$groups[1]], y[y$groups[1]])
      expect_identical(saved_daily(started, x[x$groups[-1]],
                                   y[y$groups[-1]]), two)
    })
  }
})

test_that("rows are sketched as the reference was", {
  rows <- cbind(service_days(1), day = "2026-05-01", other = 1)
  of_rows <- update(m, rows, groups = "day")
  sketch <- kme_sketch(rows, landmarks, groups = "day", moments = 2)
  expect_identical(of_rows$table, update(m, sketch)$table)
  # However the rows come; what is lost is a difference of numbers near 1.
  parts <- kme_sketch(split(rows, rep(1:3, 50)), landmarks, groups = "day",
                      moments = 2)
  expect_equal(update(m, parts)$table, of_rows$table, tolerance = 1e-5)
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
  parts <- lapply(list(x, y), new_day, "2026-03-04")
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
  last <- few[few$groups[c(2:19, 1)]]
  expect_warning(kme_monitor(last, reference = 18), "'1' has 20 rows, other",
                 class = "kernmean_warning_sizes")
  poor <- kme_landmarks(quiet, 12)
  expect_warning(kme_monitor(service_sketch(quiet, poor)),
                 class = "kernmean_warning_columns")
})

test_that("a level that days do not have has a z, and a new one is refused", {
  kinds <- kme_landmarks(factor(c("u", "v", "rare")))
  days_of <- \(shares, first, levels = c("u", "v", "rare")) {
    z <- unlist(lapply(shares, \(u) rep(levels, c(u, 90 - u, 10 * (u > 60)))))
    n <- 90 + 10 * (shares > 60)
    names <- format(as.Date(first) + seq_along(shares) - 1)
    kme_sketch(factor(z), kinds, groups = rep(names, n), moments = 2)
  }
  shares <- c(41, 52, 47, 44, 49, 46, 50, 43, 48, 45, 51, 42)
  none <- suppressWarnings(kme_monitor(days_of(shares, "2026-03-01"),
                                       reference = 10))
  expect_equal(none$table[["x = rare"]], c(0, 0), tolerance = 1e-6)
  some <- update(none, days_of(65, "2026-03-13"))
  expect_gt(some$table[["x = rare"]][3], 1e6)
  refused(update(none, days_of(45, "2026-03-14", c("u", "new", "rare"))),
          "no levels but those")
  two <- kme_monitor(days_of(shares, "2026-03-01"),
                     days_of(rev(shares), "2026-03-01"))
  expect_true(all(is.finite(as.matrix(two$table[two$functionals$table$label]))))
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

test_that("dates that are missing are said", {
  line <- \(monitor) grep("missing", fit_lines(monitor, 3L), value = TRUE)
  expect_identical(line(m), character())
  gone <- both[setdiff(both$groups, c("2026-03-05", "2026-04-03",
                                      "2026-04-04"))]
  expect_identical(line(kme_monitor(gone, reference = 29)),
                   "2 days missing since 2026-03-30: 2026-04-03, 2026-04-04")
  expect_identical(line(kme_monitor(both[both$groups[-33]], reference = 30)),
                   "1 day missing since 2026-03-30: 2026-04-02")
  # A claim that began anew counts from its own reference on.
  again <- update(kme_monitor(gone, reference = 29), restart = TRUE)
  later <- service_sketch(service_days(1), landmarks, first = "2026-04-18")
  expect_identical(line(update(again, later)),
                   "2 days missing since 2026-04-09: 2026-04-16, 2026-04-17")
  # No weekday is missed that no day has had, nor any day of other rhythms.
  lines_of <- \(days, last) missing_line(format(as.Date(days)), last)
  all <- as.Date("2026-03-02") + 0:60
  workday <- all[as.POSIXlt(all)$wday %in% 1:5]
  expect_null(lines_of(workday, "2026-03-20"))
  expect_identical(lines_of(workday[-c(3, 20)], "2026-03-20"),
                   "1 day missing since 2026-03-20: 2026-03-27")
  weekly <- all[1:8 * 7]
  expect_null(lines_of(weekly, "2026-03-20"))
  expect_match(lines_of(weekly[-6], "2026-03-20"),
               format(weekly[6]))
  for (by in c("2 days", "2 weeks", "month", "quarter")) {
    expect_null(lines_of(seq(all[1], by = by, length.out = 14), "2026-03-20"))
  }
  # A long gap is one; other names are no dates.
  expect_match(lines_of(all[-(20:59)], "2026-03-20"), "^40 days missing")
  expect_null(missing_line(c("2026-02-29", "2026-03-02"), "2026-02-29"))
  expect_null(missing_line(c("2026-03-01 10:00", "2026-03-03 10:00"), "2026"))
})

test_that("what comes from files and queries is judged, or refused in words", {
  skip_if_not_installed("RSQLite")
  set.seed(6)
  folder <- tempfile()
  dir.create(folder)
  one_day <- \(kinds = c("a", "b")) cbind(service_days(1), kind = sample(
    kinds, 150, TRUE
  ))
  days <- format(as.Date("2026-03-01") + 0:14)
  each <- lapply(stats::setNames(days, days), \(day) one_day())
  files <- file.path(folder, paste0(days, ".csv"))
  Map(utils::write.csv, each, files, row.names = FALSE)
  read <- \(path) cbind(utils::read.csv(path), day = sub("[.]csv$", "",
                                                        basename(path)))
  known <- transform(do.call(rbind, each), kind = factor(kind))
  own <- kme_landmarks(known, 60)
  past <- kme_sketch(files[1:10], own, groups = "day", read = read, moments = 2)
  before <- suppressWarnings(kme_monitor(past, columns = FALSE))
  of_files <- \(m, files) update(m, files, groups = "day", read = read)
  m <- of_files(before, files[11:13])
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  on.exit(DBI::dbDisconnect(con))
  DBI::dbWriteTable(con, "log", do.call(rbind, lapply(files, read)))
  ask <- \(m, what, where) {
    found <- DBI::dbSendQuery(con, paste("select", what, "from log where day",
                                         where))
    on.exit(DBI::dbClearResult(found))
    update(m, found, groups = "day")
  }
  by_query <- \(...) ask(m, ...)
  expect_equal(ask(before, "*", "between '2026-03-11' and '2026-03-13'")$table,
               m$table, tolerance = 1e-6)
  wider <- by_query("day, 1 as other, kind, time, queue, size",
                    "= '2026-03-14'")
  expect_equal(wider$table, of_files(m, files[14])$table, tolerance = 1e-6)
  expect_match(fit_lines(of_files(m, files[15]), 3L)[4], "1 day missing")
  # Rows of a day that was judged, from either; a day of two files is one.
  for (late in list(expression(of_files(m, files[12])),
                    expression(by_query("*", "= '2026-03-05'")))) {
    refused(eval(late), "2026-03-.* was judged already")
  }
  expect_warning(of_files(m, files[c(14, 14)]),
                 class = "kernmean_warning_twice")
  half <- files[14:15]
  two_files <- update(m, half, groups = "day", read = \(path) {
    cbind(utils::read.csv(path), day = "2026-03-14")
  })
  expect_identical(two_files$table$n[4], 300)
  refused(by_query("size, queue, kind, day", "= '2026-03-14'"),
          "missing: 'time'")
  refused(by_query("size, queue, time, kind", "= '2026-03-14'"), "column 'day'")
  expect_warning(refused(by_query("*", "= '2026-05-14'"), "of rows"),
                 "no rows")
  refused(by_query("nullif(size, size) as size, queue, time, kind, day",
                   "= '2026-03-14'"))
  # A level that landmarks do not have: their loss says so.
  other <- cbind(one_day("new"), day = "2026-03-14")
  expect_warning(unseen <- update(m, other, groups = "day"), "or levels",
                 class = "kernmean_warning_projection")
  expect_gt(unseen$table$lost[4], max(m$table$lost))
})

test_that("landmarks that are rows of the reference make no alarm", {
  alarms <- vapply(1:4, \(seed) {
    set.seed(seed)
    rows <- service_days(60, 20)
    own <- kme_landmarks(rows[1:600, ], 60)
    m <- suppressWarnings(kme_monitor(service_sketch(rows, own, 20),
                                      reference = 30))
    any(m$table$alarm)
  }, NA)
  expect_false(any(alarms))
})

test_that("columns may be called as those of the table", {
  renamed <- stats::setNames(quiet, c("n", "run", "alarm"))
  found <- kme_monitor(service_sketch(renamed, kme_landmarks(renamed, 60)),
                       reference = 20)
  expect_identical(found$functionals$table$label[1:3],
                   c("n.1", "run.1", "alarm.1"))
  expect_setequal(summary(found)$columns$z,
                  unlist(found$table[nrow(found$table),
                                     found$functionals$table$label]))
  expect_type(found$table$alarm, "logical")
})

test_that("a second stream alone is no day", {
  expect_error(update(m, y = past), "'x' must be a sketch",
               class = "kernmean_error_input")
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
  blind <- kme_monitor(both, reference = 30, columns = FALSE)
  expect_length(fit_lines(blind, 3L), 3L)
  expect_error(summary(blind), "'object' must watch columns",
               class = "kernmean_error_input")
  on_device({
    expect_identical(plot(m), m$table)
    expect_identical(plot(m, "days"), m$table)
    plot(kme_monitor(both, reference = 30, horizon = 50))
  })
})

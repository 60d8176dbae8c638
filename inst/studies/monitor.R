# Streams of sketches: false alarms and delays of kme_monitor(), levels of
# kme_changes(), where days differ harmlessly.
#
#   Rscript monitor.R [--reps N] [--cells 1:9] [--seed N] [--out FOLDER]
#     [--quick]
#
# Days of 2,000 rows in three columns, time = 0.8 size + 0.4 queue + noise, seen
# by 100 landmarks; day effects of sd 0.06 in each column ("day"), the same as
# 0.02 for days of 20,000 rows. 30 days are the reference. Rows of the table:
# what is done, the law of the days, and over streams the share with an alarm
# (at alpha = 0.05) and the median delay in days. Of a "second claim" the alarms
# are those after restart = TRUE, in 60 days without a change; rows that are
# "far" are so from all landmarks, and "lost alone" leaves the distance one
# direction and the columns none; sizes that fall do so on the sixth judged day.
# The stored table has 8 streams of the first nine cells (60 of the fourth), 12
# of the others. --quick repeats a few of them and compares.

suppressMessages(library(kernmean))
args <- commandArgs(TRUE)
option <- function(name, default) {
  at <- match(paste0("--", name), args)
  if (is.na(at)) default else args[at + 1L]
}
quick <- "--quick" %in% args
reps <- as.integer(option("reps", if (quick) 2L else 200L))
seed <- as.integer(option("seed", 1L))
out <- option("out", ".")

# --- Days ---------------------------------------------------------------------

rows_a_day <- 2000L
reference <- 30L

# One day in d columns of which the third depends on the first two.
one_day <- function(n, d, effect, shift = 0, scale = 1, apart = 0,
                    far = 0, level = FALSE) {
  x <- matrix(rnorm(n * d), n)
  other <- ifelse(runif(n) < apart, rnorm(n), x[, 1L])
  x[, 3L] <- 0.8 * other + 0.4 * x[, 2L] + sqrt(0.2) * x[, 3L]
  x[, 1L] <- scale * x[, 1L] + shift
  if (far > 0) {
    gone <- runif(n) < far
    x[gone, 1L] <- x[gone, 1L] + sample(c(-10, 10), sum(gone), TRUE)
  }
  x <- as.data.frame(x + rep(effect, each = n))
  names(x) <- c("size", "queue", "time", sprintf("c%02d", 4:99))[seq_len(d)]
  if (level) x$kind <- factor(sample(c("a", "b", "c"), n, TRUE))
  x
}

# Effects of days, days x columns: independent, or an AR(1), and of weekdays.
day_effects <- function(count, d, sd, ar = 0, week = 0) {
  e <- matrix(rnorm(count * d), count)
  for (t in seq_len(count)[-1L]) {
    e[t, ] <- ar * e[t - 1L, ] + sqrt(1 - ar^2) * e[t, ]
  }
  of_week <- matrix(rnorm(7 * d), 7)
  sd * e + week * of_week[(seq_len(count) - 1L) %% 7L + 1L, , drop = FALSE]
}

# A law of streams: change on the sixth judged day by `what`, as far as `until`.
stream <- function(days, d = 3L, effect = 0, ar = 0, week = 0, sizes = FALSE,
                   level = FALSE, what = list(), until = Inf, fall = NULL,
                   landmarks) {
  effects <- day_effects(days, d, effect, ar, week)
  n <- if (sizes) sample(c(500L, 1000L, 2000L), days, TRUE) else
    rep(rows_a_day, days)
  if (length(fall)) n[seq_len(days) > reference + 5L] <- fall
  sketches <- lapply(seq_len(days), \(t) {
    changed <- t > reference + 5L && t <= until
    day <- do.call(one_day, c(list(n[t], d, effects[t, ], level = level),
                              if (changed) what))
    kme_sketch(day, landmarks, groups = rep(sprintf("d%03d", t), n[t]),
               moments = 2)
  })
  Reduce(`+`, sketches)
}

landmarks_of <- function(d = 3L, level = FALSE, m = 100) {
  kme_landmarks(one_day(5000L, d, numeric(d), level = level), m)
}

# --- Cells --------------------------------------------------------------------

cells <- list(
  list("false alarms, 365 days", "iid", days = 395L),
  list("false alarms, 365 days", "day", days = 395L, effect = 0.06),
  list("false alarms, 60 days", "iid, sizes 500 to 2,000", sizes = TRUE),
  list("false alarms, 60 days", "day, sizes 500 to 2,000", sizes = TRUE,
       effect = 0.06),
  list("false alarms, 60 days", "day, a factor", effect = 0.06, level = TRUE),
  list("false alarms, 60 days", "day, 8 columns", effect = 0.06, d = 8L),
  list("false alarms, 60 days", "day, 20 columns", effect = 0.06, d = 20L),
  list("false alarms, 60 days", "AR(0.3) days", effect = 0.06, ar = 0.3),
  list("false alarms, 60 days", "days of the week", effect = 0.03,
       week = 0.15),
  list("shift 0.16", "iid", what = list(shift = 0.16)),
  list("sd 1.16", "iid", what = list(scale = 1.16)),
  list("16% apart", "iid", what = list(apart = 0.16)),
  list("shift 0.16", "day", effect = 0.06, what = list(shift = 0.16)),
  list("sd 1.16", "day", effect = 0.06, what = list(scale = 1.16)),
  list("16% apart", "day", effect = 0.06, what = list(apart = 0.16)),
  list("16% apart", "day, 8 columns", effect = 0.06, d = 8L,
       what = list(apart = 0.16)),
  list("16% apart", "day, 20 columns", effect = 0.06, d = 20L,
       what = list(apart = 0.16)),
  list("16% apart", "day, a factor", effect = 0.06, level = TRUE,
       what = list(apart = 0.16)),
  list("16% apart", "day, sizes 500 to 2,000", effect = 0.06, sizes = TRUE,
       what = list(apart = 0.16)),
  list("second claim, 60 days", "day", effect = 0.06, days = 115L, until = 55L,
       what = list(apart = 0.16)),
  list("second claim, 60 days", "day, small change", effect = 0.06,
       days = 115L, until = 55L, what = list(shift = 0.16)),
  list("2% far", "day", effect = 0.06, what = list(far = 0.02)),
  list("2% far, lost alone", "day", effect = 0.06, what = list(far = 0.02),
       watched = list(directions = 1, columns = FALSE)),
  list("0.1% far, lost alone", "day", effect = 0.06, what = list(far = 0.001),
       watched = list(directions = 1, columns = FALSE)),
  list("no change, 60 bins", "iid", days = 60L, bins = TRUE),
  list("no change, 60 bins", "day", days = 60L, bins = TRUE, effect = 0.06),
  list("no change, 60 bins", "day, sizes fall to 500", days = 60L, bins = TRUE,
       effect = 0.06, fall = 500L),
  list("false alarms, 60 days", "day, sizes fall to 500", effect = 0.06,
       fall = 500L)
)

run_stream <- function(cell, rep) {
  cell <- utils::modifyList(
    list(days = if (length(cell$what)) 55L else 90L, d = 3L, level = FALSE,
         until = Inf),
    cell
  )
  set.seed(1000L * seed + rep)
  landmarks <- landmarks_of(cell$d, cell$level)
  x <- do.call(stream, c(cell[intersect(names(cell), names(formals(stream)))],
                         list(landmarks = landmarks)))
  if (isTRUE(cell$bins)) {
    fit <- suppressWarnings(kme_changes(x, B = 99))
    return(c(alarm = NA, early = NA, delay = NA, order = fit$neighbors < -2.33,
             p05 = fit$p.value <= 0.05))
  }
  if (is.finite(cell$until)) {
    return(second_claim(x, cell$until))
  }
  ordered <- FALSE
  m <- withCallingHandlers(
    do.call(kme_monitor, c(list(x, reference = reference), cell$watched)),
    kernmean_warning = \(w) {
      ordered <<- ordered || inherits(w, "kernmean_warning_order")
      invokeRestart("muffleWarning")
    }
  )
  table <- m$table
  at <- which(table$alarm)[1L]
  p <- if (rep <= 40L && cell$days <= 90L && !length(cell$what)) {
    suppressWarnings(kme_changes(x[x$groups[1:60]], B = 99))$p.value
  } else {
    NA
  }
  changed <- length(cell$what) > 0L
  c(alarm = !is.na(at) && at > 5L * changed,
    early = !is.na(at) && changed && at <= 5L,
    delay = if (changed) at - 5L else NA, order = ordered,
    p05 = p <= 0.05)
}

name_of <- \(cell) paste(cell[[1L]], cell[[2L]], sep = ", ")

# Judged until the alarm; then days after `until`, as those before the change.
second_claim <- function(x, until) {
  m <- suppressWarnings(kme_monitor(x[x$groups[seq_len(reference)]]))
  for (t in seq.int(reference + 1L, until)) {
    m <- suppressWarnings(update(m, x[x$groups[t]]))
    if (m$table$alarm[t - reference]) break
  }
  found <- m$table$alarm[t - reference]
  after <- x$groups[seq.int(until + 1L, length(x$groups))]
  m <- suppressWarnings(update(m, x[after], restart = TRUE))
  c(alarm = if (found) any(m$table$alarm[m$table$claim == 2L]) else NA,
    early = found && t <= reference + 5L,
    delay = if (found) t - reference - 5L else NA, order = NA, p05 = NA)
}

run_cell <- function(cell, reps) {
  do.call(rbind, lapply(reps, \(rep) {
    cbind(cell = name_of(cell), rep = rep,
          as.data.frame(t(run_stream(cell, rep) + 0)))
  }))
}

# --- Stored and anew ----------------------------------------------------------

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
stored <- file.path(dirname(script), "results", "monitor.csv")

if (quick) {
  few <- Filter(\(cell) is.null(cell$days) && (is.null(cell$d)), cells)
  found <- do.call(rbind, lapply(few[c(4L, 10L)], run_cell, seq_len(reps)))
  kept <- read.csv(stored)
  both <- merge(found, kept, by = c("cell", "rep"))
  stopifnot(nrow(both) == nrow(found),
            identical(as.numeric(both$alarm.x), as.numeric(both$alarm.y)),
            all.equal(both$delay.x, both$delay.y))
  write.csv(found, file.path(out, "monitor.csv"), row.names = FALSE)
  cat("as stored:", nrow(both), "streams\n")
} else {
  wanted <- option("cells", NULL)
  if (!is.null(wanted)) cells <- cells[eval(parse(text = wanted))]
  found <- do.call(rbind, lapply(cells, run_cell, seq_len(reps)))
  write.csv(found, file.path(out, "monitor.csv"), row.names = FALSE)
  summary <- aggregate(found[c("alarm", "early", "order", "p05")],
                       found["cell"], mean, na.rm = TRUE)
  summary$delay <- vapply(summary$cell, \(name) {
    median(found$delay[found$cell == name], na.rm = TRUE)
  }, 1)
  print(summary, digits = 2)
}

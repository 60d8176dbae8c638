#' @export
kme_monitor <- function(x, y = NULL, ..., reference = NULL, tolerance = NULL,
                        alpha = 0.05, horizon = NULL, directions = 40,
                        columns = TRUE) {
  asked <- request(monitor_arguments)
  check_days(asked$x, "day")
  unit <- if (!is.null(y)) "streams" else
    if (is.null(tolerance)) "days" else "tolerance"
  if (unit != "days") check_row_unit(asked$x)
  landmarks <- asked$x$landmarks[[1L]]
  days <- asked$x$groups
  kept <- if (unit == "streams") character() else
    read_reference(asked$reference, days)
  functionals <- if (asked$columns) read_functionals(landmarks)
  monitor <- new_fit("kme_monitor", c(
    list(landmarks = asked$x$landmarks, unit = unit, days = NULL,
         reference = length(kept), seen = character(),
         functionals = functionals, path = NULL, evidence = NULL, claims = 1L,
         table = NULL),
    asked[c("tolerance", "alpha", "horizon", "directions")]
  ))
  for (day in kept) monitor <- keep_day(monitor, read_day(asked$x, day))
  if (unit == "days") warn_reference(monitor)
  if (unit == "tolerance") monitor$slack <- reference_slack(monitor)
  monitor <- begin_claim(monitor)
  judge_days(monitor, asked$x, asked$y, setdiff(days, kept))
}

monitor_arguments <- door_table(
  "kme_monitor", x = anything, y = anything, reference = anything,
  tolerance = maybe(number()), alpha = number(0, 1, open = TRUE),
  horizon = maybe(number(open = TRUE)), directions = count(), columns = flag,
  rules = list(when("y", reference = NULL, tolerance = NULL),
               when("tolerance", horizon = NULL),
               when("horizon", alpha = NULL)),
  hints = c(order = "is that of the groups: x[c(\"b\", \"a\")] has them in another"),
  aside = c("x", "y")
)

# --- What is asked -----------------------------------------------------------

fewest_days <- 8L
few_days <- 15L

# The names of the reference's days.
read_reference <- function(reference, days) {
  kept <- if (is.null(reference)) days else if (is.character(reference)) {
    unknown <- setdiff(reference, days)
    if (length(unknown)) {
      stop_input("'reference' must name groups of 'x' (", shorten(days),
                 "), not '", unknown[1L], "'")
    }
    intersect(days, reference)
  } else {
    utils::head(days, take(reference, count()))
  }
  if (length(kept) < fewest_days) {
    stop_input("'reference' must be at least ", fewest_days, " days, with ",
               "which a day can be compared, not ", length(kept))
  }
  kept
}

# Bets on rows need rows of weight 1 and values that are bounded.
check_row_unit <- function(sketch, name = "x") {
  if (sketch$weighted) {
    stop_input("'", name, "' must be a sketch without weights for bets on rows")
  }
  if (is.null(largest_value(sketch$landmarks[[1L]]))) {
    stop_input("the kernel of '", name, "' must be bounded, as kernel_rbf(), ",
               "kernel_laplace() and kernel_matern() are, for bets on rows")
  }
}

# What k(x, x) is at most, NULL for any number.
largest_value <- function(landmarks) {
  if (is_factor_variable(landmarks$variable)) 1 else
    flat_diagonal(landmarks$kernel)
}

# The tolerance and how far the mean of the reference may be from what it
# estimates, but with chance alpha/2.
reference_slack <- function(monitor) {
  height <- sqrt(largest_value(monitor$landmarks[[1L]]))
  monitor$tolerance + height * (1 + sqrt(2 * log(2 / monitor$alpha))) /
    sqrt(monitor$days$total$n)
}

# What is to be reached for an alarm.
alarm_at <- function(monitor) {
  if (!is.null(monitor$horizon)) monitor$horizon else
    (if (monitor$unit == "tolerance") 2 else 1) / monitor$alpha
}

warn_reference <- function(monitor) {
  days <- monitor$days
  if (length(days$n) < few_days) {
    warn_kernmean("no p-value of a day is below 1/", length(days$n) + 1L,
                  " after ", length(days$n), " days of reference; ", few_days,
                  " or more see changes sooner", kind = "few")
  }
  if (max(days$n) > most_uneven * min(days$n)) {
    warn_kernmean("days have from ", format_count(min(days$n)), " to ",
                  rows_of(max(days$n)), ": those of few rows are judged with ",
                  "little power", kind = "sizes")
  }
  z <- neighbors_z(metric_points(day_points(days, monitor$directions)$x))
  if (z < stats::qnorm(0.01)) {
    warn_kernmean("days of the reference are like their neighbors (z = ",
                  format_number(z, 2L), "), as of a trend or a slow drift: ",
                  "days to come need not be like them, and alarms may be false",
                  kind = "order")
  }
  if (length(monitor$functionals$missing)) {
    warn_kernmean("the landmarks do not see ",
                  quoted(monitor$functionals$missing), " well enough to watch ",
                  "them by themselves; more landmarks do", kind = "columns")
  }
}

most_uneven <- 5

# A day of which the landmarks know less than of the others.
warn_day <- function(monitor, day, reference) {
  usual <- stats::median(reference)
  if (day$share > 0.01 && day$share > 2 * usual) {
    warn_kernmean("the landmarks lose ", format_number(100 * day$share, 2L),
                  "% of mean k(x, x) of '", day$name, "', not ",
                  format_number(100 * usual, 2L), "% as of other days: rows ",
                  "far from all landmarks, seen by what is lost and little ",
                  "else", kind = "projection")
  }
}

# --- Judging -----------------------------------------------------------------

keep_day <- function(monitor, day) {
  monitor$days <- add_day(monitor$days, day)
  monitor$seen <- c(monitor$seen, day$name)
  monitor
}

begin_claim <- function(monitor) {
  rows <- monitor$unit != "days"
  monitor$evidence <- if (rows) new_evidence(1L, row_bettors) else
    new_evidence(2L + 2L * NROW(monitor$functionals$table), rank_bettors)
  monitor$judged <- character()
  monitor
}

# Days of a sketch one after the other.
judge_days <- function(monitor, x, y, names) {
  if (monitor$unit == "streams") {
    check_days(y, "day", "y")
    check_row_unit(y, "y")
    check_same_landmarks(x, y, c("'x'", "'y'"))
    if (!setequal(x$groups, y$groups)) {
      odd <- setdiff(union(x$groups, y$groups), intersect(x$groups, y$groups))
      stop_input("'y' must have the days of 'x'; one of them has no ",
                 quoted(odd))
    }
  } else if (!is.null(y)) {
    stop_input("'y' must not be given to a monitor of one stream")
  }
  again <- intersect(names, monitor$seen)
  if (length(again)) {
    stop_input("'", again[1L], "' was judged already: rows that come late, or ",
               "twice, cannot be added; sketch a day when it is complete")
  }
  judge <- if (monitor$unit == "days") judge_ranks else judge_rows
  for (name in names) {
    day <- read_day(x, name)
    warn_day(monitor, day, monitor$days$share)
    monitor <- judge(monitor, day, if (!is.null(y)) read_day(y, name))
  }
  monitor
}

judge_ranks <- function(monitor, day, y) {
  monitor <- keep_day(monitor, day)
  days <- monitor$days
  scored <- score_days(day_points(days, monitor$directions))
  functionals <- monitor$functionals
  values <- if (!is.null(functionals)) {
    functional_values(functionals, days$means)
  }
  ranks <- apply(rbind(scored$distances, days$lost, values, -values), 1L,
                 last_rank)
  t <- length(days$n)
  others <- log(scored$plain[-t])
  tail <- (log(scored$plain[t]) - mean(others)) /
    (stats::sd(others) * sqrt(1 + 1 / (t - 1)))
  kept <- setdiff(scored$kept, t)
  z <- usual <- NULL
  if (!is.null(values)) {
    before <- values[, kept, drop = FALSE]
    usual <- cbind(values[, t], apply(before, 1L, stats::median))
    z <- (usual[, 1L] - usual[, 2L]) / apply(before, 1L, stats::mad)
  }
  add_judged(monitor, day, rank_bets(ranks, t), list(
    distance = sqrt(scored$distances[t]), rank = ranks[[1L]], of = t,
    p.value = ranks[[1L]] / t,
    tail = stats::pt(tail, t - 2, lower.tail = FALSE)
  ), z, usual)
}

# A day by its rows: against the other stream, or the mean of the reference.
judge_rows <- function(monitor, day, y) {
  total <- monitor$days$total
  path <- monitor$path
  if (is.null(path)) {
    path <- list(n = c(0, 0), sum = matrix(0, length(day$mean), 2L))
  }
  # The first day of two streams tells what to bet on.
  center <- if (is.null(total)) 0 * day$mean else total$first / total$n
  from <- if (is.null(y)) center else y$mean
  logs <- numeric(row_bettors)
  if (!is.null(total)) {
    slack <- if (is.null(y)) monitor$slack else 0
    reach <- sqrt(largest_value(monitor$landmarks[[1L]])) +
      sqrt(sum(center^2)) + slack
    basis <- whitening(total, monitor$directions)$basis
    logs <- row_logs(safe_bets(row_bets(basis, path), reach), day, y, center,
                     slack)
  }
  difference <- day$mean - from
  noise <- (day$covariance - tcross(day$mean)) / day$n
  worth <- day$n
  if (!is.null(y)) {
    noise <- noise + (y$covariance - tcross(y$mean)) / y$n
    worth <- 1 / (1 / day$n + 1 / y$n)
    for (part in list(day, y)) {
      monitor$days$total <- add_rows_of(monitor$days$total, part)
    }
  }
  keep <- c(1, memory)
  monitor$path <- list(
    n = keep * path$n + worth,
    sum = times_columns(path$sum, keep) + worth * difference
  )
  monitor$seen <- c(monitor$seen, day$name)
  z <- usual <- NULL
  if (!is.null(monitor$functionals)) {
    z <- functional_z(monitor$functionals, difference, from, noise)
    usual <- functional_values(monitor$functionals, cbind(day$mean, from))
  }
  day$n <- min(day$n, y$n)
  add_judged(monitor, day, \(k) lapply(logs, matrix, length(k)), list(
    distance = sqrt(sum(difference^2)), rank = NA_integer_, of = NA_integer_,
    p.value = NA_real_, tail = NA_real_
  ), z, usual)
}

# The evidence with this day's bets, and its row in the table; usual: what the
# functionals are on the day, and what they are compared with.
add_judged <- function(monitor, day, bets, found, z, usual) {
  monitor$evidence <- bet_day(monitor$evidence, bets)
  monitor$judged <- c(monitor$judged, day$name)
  monitor$usual[[day$name]] <- usual
  weighed <- weigh_evidence(monitor$evidence, !is.null(monitor$horizon))
  reached <- if (is.null(monitor$horizon)) weighed$log else weighed$run
  row <- c(
    list(day = day$name, n = day$n), found,
    list(evidence = exp(weighed$log), log10 = weighed$log / log(10),
         run = exp(weighed$run), since = monitor$judged[weighed$since],
         alarm = reached >= log(alarm_at(monitor)), lost = day$share,
         claim = monitor$claims),
    stats::setNames(as.list(z), monitor$functionals$table$label)
  )
  monitor$table <- rbind(monitor$table,
                         as.data.frame(row, optional = TRUE))
  monitor
}

#' @rdname kme_monitor
#' @export
update.kme_monitor <- function(object, x = NULL, ..., y = NULL,
                               restart = FALSE) {
  monitor <- same_version(object)
  if (take(restart, flag)) monitor <- restart_monitor(monitor)
  if (is.null(x)) {
    check_dots(...)
    return(monitor)
  }
  sketched <- \(rows) if (inherits(rows, "kme_sketch")) rows else
    kme_sketch(rows, monitor$landmarks, ..., moments = 2)
  x <- check_days(sketched(x), "day")
  if (!on_same_landmarks(monitor, x)) {
    stop_input("'x' must be a sketch on the landmarks of the monitor; ",
               "kme_sketch(rows, monitor$landmarks) makes one")
  }
  judge_days(monitor, x, if (!is.null(y)) sketched(y), x$groups)
}

# A new claim: what was judged is reference now, but for the days since the
# change that there was an alarm for. Their rows stay in the units.
restart_monitor <- function(monitor) {
  if (monitor$unit == "days") {
    last <- monitor$table[monitor$table$claim == monitor$claims, ]
    since <- if (any(last$alarm)) match(last$since[nrow(last)],
                                        monitor$days$name)
    kept <- if (is.null(since)) seq_along(monitor$days$n) else
      seq_len(since - 1L)
    for (name in c("name", "n", "lost", "share")) {
      monitor$days[[name]] <- monitor$days[[name]][kept]
    }
    monitor$days$means <- monitor$days$means[, kept, drop = FALSE]
    monitor$reference <- length(kept)
  }
  monitor$claims <- monitor$claims + 1L
  begin_claim(monitor)
}

# --- Methods -----------------------------------------------------------------

fit_lines.kme_monitor <- function(x, digits) {
  judged <- nrow(x$table)
  days <- if (x$unit == "days") x$days$name else x$seen
  sizes <- if (x$unit == "streams") x$table$n else x$days$n
  columns <- nrow(x$functionals$table)
  c(
    paste0(c(days = "Monitor of days", streams = "Monitor of two streams",
             tolerance = "Monitor of rows")[[x$unit]], ": ",
           count_of(length(days), "day"),
           if (x$reference) paste0(" (", x$reference, " reference)"), ", ",
           words_of_sizes(sizes), if (length(columns)) {
             paste0("; ", count_of(columns, "functional"), " of the columns")
           }),
    missing_line(days),
    if (x$unit == "tolerance") tolerance_lines(x, digits),
    if (x$claims > 1L) paste("claim", x$claims, "of as many, each at its own",
                             "alpha"),
    if (!is.null(judged)) judged_lines(x, x$table[judged, ], digits)
  )
}

# Dates that are passed over.
missing_line <- function(days) {
  dates <- if (all(grepl("^\\d{4}-\\d\\d-\\d\\d$", days))) as.Date(days)
  gaps <- if (length(dates) > 1L) sum(pmax(0, diff(as.integer(dates)) - 1L))
  if (length(gaps) && gaps > 0) {
    paste(count_of(gaps, "date"), "between the first and the last missing")
  }
}

judged_lines <- function(x, last, digits) {
  shown <- \(v) format_number(v, min(digits, 3L))
  z <- unlist(last[x$functionals$table$label])
  top <- which.max(abs(z))
  moved <- if (length(top)) {
    paste0("; ", names(z)[top], " ", shown(abs(z[[top]])), " sd ",
           if (z[[top]] < 0) "below" else "above")
  }
  claim <- x$table[x$table$claim == x$claims, ]
  repeated <- !is.null(x$horizon)
  since <- which(claim$alarm)
  c(
    paste0(last$day, ": ", if (x$unit == "days") {
      paste0("rank ", last$rank, " of ", last$of, " (p = ",
             shown(last$p.value), ", tail about ", shown(last$tail), ")")
    } else {
      paste("MMD", shown(last$distance))
    }, moved),
    paste0(
      if (repeated) "run " else "evidence ",
      shown(if (repeated) last$run else last$evidence), " for a change since ",
      last$since, " (alarm at ", shown(alarm_at(x)),
      if (!repeated) paste0(" = ", if (x$unit == "tolerance") 2 else 1,
                            "/alpha"), "); ",
      if (!length(since)) "no alarm" else
        if (!repeated) paste("alarm on", claim$day[since[1L]]) else
          paste(count_of(length(since), "alarm"), "from",
                claim$day[since[1L]], "on")
    )
  )
}

# The tolerance with what the reference does not know, beside what shifts of
# single columns would be.
tolerance_lines <- function(x, digits) {
  shown <- \(v) format_number(v, min(digits, 3L))
  shifts <- shift_distances(x)
  c(paste0("tolerance: an MMD of ", shown(x$tolerance), ", and ",
           shown(x$slack - x$tolerance), " that ", rows_of(x$days$total$n),
           " of reference leave open"),
    if (length(shifts)) {
      paste0("a shift by 0.1 sd is an MMD of ",
             shorten(paste0(shown(shifts), " (", names(shifts), ")")))
    })
}

# The distance that the reference's mean moves where one column is shifted by
# 0.1 of its standard deviation.
shift_distances <- function(x) {
  landmarks <- x$landmarks[[1L]]
  sample <- landmarks$variable$sample
  raw <- sample_raw(sample)
  table <- x$functionals$table
  own <- which(table$first > 0L & table$first == table$second)
  if (!is.matrix(raw) || is_factor_variable(landmarks$variable)) {
    return(NULL)
  }
  total <- x$days$total
  mean <- cbind(total$first / total$n)
  spread <- in_units(table, functional_values(x$functionals, mean))[own]
  columns <- table$label[table$of[match(table$first[own], table$of)]]
  weights <- product(landmarks$root, mean)
  form <- \(a, b) {
    values <- fold_store(landmarks$kernel, a, b)
    sum(weights * product(values, weights))
  }
  s <- scale_points(landmarks$kernel, raw)
  vapply(stats::setNames(seq_along(own), columns), \(j) {
    column <- if (is.null(colnames(raw))) j else columns[j]
    raw[, column] <- raw[, column] + 0.1 * spread[j]
    moved <- scale_points(landmarks$kernel, raw)
    sqrt(max(0, form(s, s) + form(moved, moved) - 2 * form(s, moved)))
  }, 1)
}

fit_facts.kme_monitor <- function(x) {
  last <- x$table[NROW(x$table), ]
  list(nobs = length(if (x$unit == "days") x$days$n else x$seen),
       reference = x$reference, judged = NROW(x$table), claims = x$claims,
       evidence = last$evidence, log10 = last$log10, run = last$run,
       since = last$since, alarm = last$alarm)
}

fit_rows.kme_monitor <- function(x, ...) {
  if (is.null(x$table)) {
    stop_input("no day was judged yet; update(monitor, sketch) judges the days ",
               "of a sketch")
  }
  x$table
}

fit_values.kme_monitor <- \(x, newdata) NULL

# The number of a judged day in the table, the last one for NULL.
find_judged <- function(x, day) {
  judged <- fit_rows(x)$day
  if (is.null(day)) length(judged) else
    match(take(as.character(day), choice(judged), "day"), judged)
}

#' @rdname kme_monitor
#' @param day The name of a day that was judged; `NULL` for the last.
#' @export
summary.kme_monitor <- function(object, day = NULL, ...) {
  check_dots(...)
  same_version(object)
  structure(list(fit = object, columns = moved_columns(object, day)),
            class = "summary.kernmean_fit")
}

# What the functionals are on a day, largest z first.
moved_columns <- function(x, day) {
  if (is.null(x$functionals)) {
    stop_input("'columns' must be TRUE in kme_monitor() to see which moved")
  }
  row <- fit_rows(x)[find_judged(x, day), ]
  table <- x$functionals$table
  usual <- x$usual[[row$day]]
  found <- data.frame(
    column = table$label, day = in_units(table, usual[, 1L]),
    usual = in_units(table, usual[, 2L]),
    z = unlist(row[table$label], use.names = FALSE)
  )
  structure(found[order(-abs(found$z)), ], row.names = seq_len(nrow(found)),
            title = paste0("Columns on ", row$day, if (x$unit == "streams")
              ", the second stream as usual"))
}

fit_picture.kme_monitor <- function(object, type = NULL, day = NULL) {
  type <- check_type(type, c("evidence", "days",
                             if (!is.null(object$functionals)) "columns"))
  if (type == "columns") {
    return(picture_columns(moved_columns(object, day)))
  }
  table <- fit_rows(object)
  x <- seq_along(table$day)
  repeated <- !is.null(object$horizon)
  if (type == "evidence") {
    y <- if (repeated) log10(table$run) else table$log10
    limit <- log10(alarm_at(object))
    marked <- table$alarm
    words <- c("alarm", if (repeated) "horizon" else "limit")
    title <- if (repeated) "Run for a change" else "Evidence for a change"
    name <- "log10"
  } else {
    y <- table$distance
    limit <- NULL
    marked <- table$p.value %in% table$p.value & table$p.value <= 0.05 &
      !is.na(table$p.value)
    words <- "p of the day at most 0.05"
    title <- "Distance of each day"
    name <- if (object$unit == "days") "distance in sd" else "MMD"
  }
  shown <- evenly(length(x), 6L)
  new_picture(
    title, "day", name,
    list(if (length(limit)) across_layer(h = limit, level = words[2L]),
         new_layer("line", x = x, y = y, main = TRUE),
         points_layer(cbind(x, y)),
         if (any(marked)) mark_layer(x[marked], y[marked], words[1L])),
    table, ticks = list(at = shown, labels = table$day[shown]),
    ylim = range(y[is.finite(y)], limit),
    key = rbind(if (any(marked)) key_entries(words[1L], accent),
                if (length(limit)) key_entries(words[2L], "grey40", "line",
                                               lty = 2L))
  )
}

# The z of each functional, the largest on top.
picture_columns <- function(table) {
  y <- rev(seq_along(table$z))
  z <- pmin(pmax(table$z, -most_z), most_z)
  new_picture(
    attr(table, "title"), "z (dotted: 3)", "",
    list(new_layer("bars", x0 = pmin(z, 0), x1 = pmax(z, 0), y0 = y - 0.35,
                   y1 = y + 0.35, col = level_palette[1L], border = NA,
                   main = TRUE),
         across_layer(v = c(-3, 3), lty = 3)),
    table, ticks_y = list(at = y, labels = table$column),
    xlim = range(z, -3.5, 3.5)
  )
}

most_z <- 50

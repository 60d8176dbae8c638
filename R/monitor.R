#' @export
kme_monitor <- function(x, y = NULL, ..., reference = NULL, alpha = 0.05,
                        horizon = NULL, directions = 40, columns = TRUE) {
  asked <- request(monitor_arguments)
  check_days(asked$x)
  days <- asked$x$groups
  kept <- if (is.null(asked$y)) read_reference(asked$reference, days)
  landmarks <- asked$x$landmarks[[1L]]
  functionals <- read_functionals(landmarks)
  if (!asked$columns) functionals$table <- functionals$table[0L, ]
  monitor <- new_fit("kme_monitor", list(
    landmarks = list(landmarks), streams = !is.null(asked$y), seen = kept,
    reference = length(kept), claims = 0L, functionals = functionals,
    path = list(n = c(0, 0), sum = matrix(0, landmarks$rank, 2L)),
    repeated = !is.null(asked$horizon), directions = asked$directions,
    limit = if (is.null(asked$horizon)) 1 / asked$alpha else asked$horizon
  ))
  for (day in kept) monitor$days <- add_day(monitor$days, read_day(x, day))
  if (length(kept)) warn_reference(monitor)
  judge_days(begin_claim(monitor), asked$x, asked$y, setdiff(days, kept))
}

monitor_arguments <- door_table(
  "kme_monitor", x = anything, y = anything, reference = anything,
  alpha = number(0, 1, open = TRUE), horizon = maybe(number(open = TRUE)),
  directions = count(), columns = flag,
  rules = list(when("y", reference = NULL), when("horizon", alpha = NULL))
)

# --- What is asked -----------------------------------------------------------

fewest_days <- 8L
few_days <- 15L
most_uneven <- 5

# The names of the reference's days.
read_reference <- function(reference, days) {
  kept <- if (is.null(reference)) days else if (is.character(reference))
    intersect(days, reference) else utils::head(days, take(reference, count()))
  lacks <- is.character(reference) && length(kept) < length(reference)
  if (lacks || length(kept) < fewest_days) {
    stop_input("'reference' must be at least ", fewest_days, " days of 'x', ",
               "by number or name, not ", length(kept), if (lacks)
                 " and others that it does not have")
  }
  kept
}

# What k(x, x) is at most; bets on rows need that, and rows of weight 1.
most_value <- function(sketch, name) {
  landmarks <- sketch$landmarks[[1L]]
  value <- if (is_factor_variable(landmarks$variable)) 1 else
    flat_diagonal(landmarks$kernel)
  if (is.null(value) || sketch$weighted) {
    stop_input("'", name, "' must have a kernel that is bounded, as ",
               "kernel_rbf(), and no weights, for bets on its rows")
  }
  value
}

warn_reference <- function(monitor) {
  n <- monitor$days$each$n
  if (length(n) < few_days) {
    warn_kernmean("the reference has ", length(n), " days: no p-value of a ",
                  "day is below one over so many and one", kind = "few")
  }
  if (max(n) > most_uneven * min(n)) {
    warn_kernmean("days have ", words_of_sizes(n), ": small ones are judged ",
                  "with little power", kind = "sizes")
  }
  z <- neighbors_z(day_points(monitor$days, monitor$directions)$x)
  if (z < unlikely_z) {
    warn_kernmean("days of the reference are like their neighbors (z = ",
                  format_number(z, 2L), "), as of a trend or a slow drift: ",
                  "days to come need not be like them, and alarms may be false",
                  kind = "order")
  }
  missing <- monitor$functionals$missing
  if (length(missing)) {
    warn_kernmean("the landmarks do not tell ", quoted(missing), " of a day; ",
                  "more landmarks do", kind = "columns")
  }
}

# A day of which the landmarks know less than of others.
warn_day <- function(day, shares) {
  usual <- stats::median(shares)
  if (isTRUE(day$share > max(0.01, 2 * usual))) {
    warn_kernmean("the landmarks lose ", format_number(100 * day$share, 2L),
                  "% of mean k(x, x) of '", day$day, "', not ",
                  format_number(100 * usual, 2L), "% as of other days: it has ",
                  "rows far from all of them", kind = "projection")
  }
}

# --- Judging -----------------------------------------------------------------

begin_claim <- function(monitor) {
  monitor$evidence <- if (monitor$streams) new_evidence(1L, row_bettors) else
    new_evidence(2L + 2L * nrow(monitor$functionals$table), rank_bettors)
  monitor$claims <- monitor$claims + 1L
  monitor$judged <- character()
  monitor
}

# Days of a sketch one after the other.
judge_days <- function(monitor, x, y, names) {
  if (is.null(y) == monitor$streams) {
    stop_input("'y' must be given to a monitor of two streams, and no other")
  }
  if (monitor$streams) {
    check_days(y, "y")
    check_same_landmarks(x, y, c("'x'", "'y'"))
    height <- max(most_value(x, "x"), most_value(y, "y"))
    if (!setequal(x$groups, y$groups)) {
      stop_input("'y' must have the days of 'x', and no others")
    }
  }
  again <- intersect(names, monitor$seen)
  if (length(again)) {
    stop_input("'", again[1L], "' was judged already: rows that come late, or ",
               "twice, cannot be added; sketch a day when it is complete")
  }
  for (name in names) {
    day <- read_day(x, name)
    monitor$seen <- c(monitor$seen, name)
    monitor <- if (monitor$streams) {
      judge_rows(monitor, day, read_day(y, name), height)
    } else {
      judge_ranks(monitor, day)
    }
  }
  monitor
}

judge_ranks <- function(monitor, day) {
  warn_day(day, monitor$days$each$share)
  monitor$days <- days <- add_day(monitor$days, day)
  points <- day_points(days, monitor$directions)
  scored <- .Call(C_r_day_scores, points$x, points$noise)
  values <- functional_values(monitor$functionals, days$means)
  scores <- rbind(scored$distances, days$each$lost, values, -values)
  t <- ncol(scores)
  # Ties to rounding are ties.
  least <- scores[, t] - 1e-9 * abs(scores[, t])
  ranks <- as.integer(rowSums(scores >= least))
  kept <- setdiff(which(scored$kept > 0L), t)
  before <- values[, kept, drop = FALSE]
  usual <- cbind(values[, t], apply(before, 1L, stats::median))
  add_judged(
    monitor, day, \(k) .Call(C_r_rank_bets, ranks, t, k),
    list(distance = sqrt(scored$distances[t]), rank = ranks[[1L]], of = t,
         p.value = ranks[[1L]] / t,
         tail = stats::pt(scored$outlying, t - 2, lower.tail = FALSE)),
    usual, (usual[, 1L] - usual[, 2L]) / apply(before, 1L, stats::mad)
  )
}

# A day of two streams, by their rows; on the first there are no bets.
judge_rows <- function(monitor, x, y, height) {
  total <- monitor$days$total
  path <- monitor$path
  logs <- numeric(row_bettors)
  if (!is.null(total)) {
    units <- day_units(total, monitor$directions)
    logs <- stream_logs(stream_bets(units$basis, path), x, y, units$center,
                        sqrt(height) + sqrt(sum(units$center^2)))
  }
  monitor$days <- add_day(monitor$days, x)
  monitor$days$total <- add_total(monitor$days$total, y)
  apart <- x$mean - y$mean
  worth <- 1 / (1 / x$n + 1 / y$n)
  monitor$path <- list(n = memory * path$n + worth,
                       sum = times_columns(path$sum, memory) + worth * apart)
  z <- functional_z(monitor$functionals, apart, y$mean,
                    x$covariance / x$n + y$covariance / y$n)
  x$n <- min(x$n, y$n)
  add_judged(monitor, x, \(k) logs, list(
    distance = sqrt(sum(apart^2)), rank = NA_integer_, of = NA_integer_,
    p.value = NA_real_, tail = NA_real_
  ), functional_values(monitor$functionals, cbind(x$mean, y$mean)), z)
}

# The evidence with this day's bets, and its row in the table; usual: what the
# functionals are on the day, and what they are compared with.
add_judged <- function(monitor, day, bets, found, usual, z) {
  evidence <- bet_day(monitor$evidence, bets)
  monitor$evidence <- evidence
  monitor$judged <- c(monitor$judged, day$day)
  monitor$usual[[day$day]] <- usual
  reached <- if (monitor$repeated) evidence$run else evidence$log
  row <- c(day[c("day", "n")], found, list(
    evidence = exp(evidence$log), log10 = evidence$log / log(10),
    run = exp(evidence$run),
    since = monitor$judged[evidence$since[1 + monitor$repeated]],
    alarm = reached >= log(monitor$limit), lost = day$share,
    claim = monitor$claims
  ), stats::setNames(as.list(z), monitor$functionals$table$label))
  monitor$table <- rbind(monitor$table, as.data.frame(row, optional = TRUE))
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
  sketched <- \(rows) {
    if (is.null(rows) || inherits(rows, "kme_sketch")) rows else
      kme_sketch(rows, monitor$landmarks, ..., moments = 2)
  }
  x <- sketched(x)
  check_days(x)
  check_same_landmarks(monitor, x, c("'object'", "'x'"))
  judge_days(monitor, x, sketched(y), x$groups)
}

# A new claim: what was judged is reference now, but for days since the change
# that there was an alarm for. Their rows stay in the units.
restart_monitor <- function(monitor) {
  last <- claim_rows(monitor)
  if (!monitor$streams) {
    count <- nrow(monitor$days$each)
    if (any(last$alarm)) {
      count <- match(last$since[nrow(last)], monitor$days$each$day) - 1L
    }
    monitor$days$each <- monitor$days$each[seq_len(count), ]
    monitor$days$means <- monitor$days$means[, seq_len(count), drop = FALSE]
    monitor$reference <- count
  }
  begin_claim(monitor)
}

claim_rows <- \(monitor) monitor$table[monitor$table$claim == monitor$claims, ]

# --- Methods -----------------------------------------------------------------

fit_lines.kme_monitor <- function(x, digits) {
  days <- x$days$each
  c(
    paste0("Monitor of ", if (x$streams) "two streams, ",
           count_of(nrow(days), "day"),
           if (x$reference) paste0(" (", x$reference, " reference)"), ", ",
           words_of_sizes(days$n), "; ",
           count_of(nrow(x$functionals$table), "functional")),
    if (x$claims > 1L) paste0("claim ", x$claims, ", each at its own alpha"),
    if (length(x$judged)) judged_lines(x, claim_rows(x), min(digits, 3L))
  )
}

judged_lines <- function(x, claim, digits) {
  shown <- \(v) format_number(v, digits)
  last <- claim[nrow(claim), ]
  z <- unlist(last[x$functionals$table$label])
  top <- which.max(abs(z))
  alarms <- claim$day[claim$alarm]
  c(
    paste0(
      last$day, ": ",
      if (x$streams) paste("MMD", shown(last$distance)) else
        paste0("rank ", last$rank, " of ", last$of, " (p = ",
               shown(last$p.value), ", tail about ", shown(last$tail), ")"),
      if (length(top)) paste0("; ", names(top), " ", shown(abs(z[[top]])),
                              " sd ", if (z[[top]] < 0) "below" else "above")
    ),
    paste0(
      if (x$repeated) "run " else "evidence ",
      shown(if (x$repeated) last$run else last$evidence),
      " for a change since ", last$since, " (alarm at ", shown(x$limit), "); ",
      if (length(alarms)) paste("alarm on", shorten(alarms)) else "no alarm"
    )
  )
}

fit_facts.kme_monitor <- function(x) {
  last <- x$table[NROW(x$table), ]
  c(list(nobs = length(x$seen), reference = x$reference,
         judged = NROW(x$table), claims = x$claims),
    last[c("evidence", "log10", "run", "since", "alarm")])
}

fit_rows.kme_monitor <- function(x, ...) {
  if (is.null(x$table)) {
    stop_input("no day was judged yet; update(monitor, sketch) judges days")
  }
  x$table
}

#' @rdname kme_monitor
#' @param day The name of a day that was judged; `NULL` for the last.
#' @export
summary.kme_monitor <- function(object, day = NULL, ...) {
  check_dots(...)
  same_version(object)
  structure(list(fit = object, columns = moved_columns(object, day)),
            class = c("summary.kme_monitor", "summary.kernmean_fit"))
}

# What the functionals are on a day, largest z first.
moved_columns <- function(x, day) {
  rows <- fit_rows(x)
  if (is.null(day)) day <- rows$day[nrow(rows)]
  day <- take(as.character(day), choice(rows$day), "day")
  table <- x$functionals$table
  if (!nrow(table)) {
    stop_input("'columns' must be TRUE in kme_monitor() to see which moved")
  }
  z <- unlist(rows[rows$day == day, table$label])
  usual <- x$usual[[day]]
  found <- data.frame(column = table$label, day = in_units(table, usual[, 1L]),
                      usual = in_units(table, usual[, 2L]), z = z,
                      row.names = NULL)[order(-abs(z)), ]
  structure(found, title = paste0("Columns on ", day, if (x$streams)
    ", as usual the second stream"))
}

fit_picture.kme_monitor <- function(object, type = NULL, day = NULL) {
  type <- check_type(type, c("evidence", "days", "columns"))
  if (type == "columns") {
    return(picture_columns(moved_columns(object, day)))
  }
  table <- fit_rows(object)
  limit <- if (type == "evidence") log10(object$limit)
  picture <- if (type == "days") {
    picture_sequence("Distance of each day", table$distance,
                     if (object$streams) "MMD" else "sd")
  } else if (object$repeated) {
    picture_sequence("Run for a change (dashed: alarm)", log10(table$run),
                     "log10 of the run")
  } else {
    picture_sequence("Evidence for a change (dashed: alarm)", table$log10,
                     "log10 of the evidence")
  }
  marked <- which(table$alarm)
  y <- picture$value
  picture$ylim <- range(y, limit)
  picture$layers <- c(list(across_layer(h = limit)), picture$layers,
                      list(mark_layer(marked, y[marked], NULL)))
  picture$value <- table
  name_days(picture, table$day)
}

# With names of days at the axis.
name_days <- function(picture, days) {
  at <- evenly(length(days), 6L)
  picture$xlab <- "day"
  picture$ticks <- list(at = at, labels = days[at])
  picture
}

most_z <- 50

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

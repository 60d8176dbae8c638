#' Monitors of streams
#'
#' Is today unlike the days before? Evidence that may be looked at every day,
#' from a [kme_sketch()] of each day, and the columns that moved.
#'
#' The unit is a day (a batch, a run), because days differ harmlessly by more
#' than their rows explain: a test of today's rows against last month's alarms
#' again and again. For each day the mean \eqn{\mu_d}{mu_d} of its rows'
#' features is kept. Days are judged by ranks among days, so that no
#' distribution of a day has to be known. The kernel and second moments only
#' choose the units of distances; they give weight to directions of little
#' variance, which show columns that have come apart.
#'
#' @section One stream:
#' H0: days to come are exchangeable with those of the reference, whatever a day
#' is like. The numbers of rows may differ, but where they fall to a tenth for
#' long, the means of columns are noisier, and that counts as a change. Let
#' \eqn{C = V\Lambda V'}{C = V L V'} be the covariance of the features of all
#' rows so far. Days are points \eqn{x_d = \sqrt{\bar n}\Lambda^{-1/2}V'\mu_d}{
#' x_d = sqrt(n) L^{-1/2} V' mu_d} in up to `directions` directions. The
#' distance \eqn{T_d}{T_d} of a day is the Mahalanobis distance from the three
#' quarters of the other days that lie closest together (concentration steps
#' from coordinate medians), with their covariance shrunk to the identity, the
#' covariance of independent rows. It is a symmetric function of the days:
#' today's rank j among t days, 1 for the farthest, has the p-value j/t exactly,
#' and ranks of different days are independent. With landmarks that are a large
#' part of the reference's rows the p-value is a little conservative. `tail` is
#' an approximate tail probability of a single day, from a t distribution of the
#' logarithms of distances from all other days.
#'
#' Besides the distance, each functional of the columns gives two ranks, high
#' and low. One more rank is that of the share which the landmarks lose of a
#' day; it is among judged days alone, because landmarks may be rows of the
#' reference, of which they lose less. Functionals are means and spreads of the
#' columns, covariances (of up to ten columns) and shares of levels, from ridge
#' regressions at the landmarks. Functionals with a leave-one-out \eqn{R^2}{R^2}
#' below 0.9 at the landmarks are dropped with a warning.
#'
#' @section Evidence: If a change began k days ago, bets on the ranks pay
#' \eqn{(1-\delta)(t/k)1\{j \le k\} + \delta}{(1 - delta) (t/k) 1(j <= k) +
#' delta} with \eqn{\delta}{delta} = 0.05, 0.2, 0.5, and \eqn{t\{(j/t)^\epsilon
#' - ((j-1)/t)^\epsilon\}}{t ((j/t)^e - ((j - 1)/t)^e)} with \eqn{\epsilon}{e} =
#' 0.2, 0.5. Without a change they pay 1 on average. With M_c the mean of the
#' five products since day c, the evidence of a score is
#' \deqn{E_t = \sum_{c \le t} \frac{M_c}{c(c+1)} + \frac1{t+1},}{
#' E_t = sum_c M_c/(c (c + 1)) + 1/(t + 1),}
#' where c is counted from the first day that is judged. It is a martingale, and
#' Ville's inequality bounds the probability of ever reaching
#' \eqn{1/\alpha}{1/alpha}. The distance has weight 1/2, the other scores share
#' 1/2, and the largest weighted evidence counts. There is an alarm when it
#' reaches \eqn{1/\alpha}{1/alpha}; the probability that there is ever a false
#' one is at most `alpha`. With `horizon = A` there is an alarm whenever
#' \eqn{\sum_c M_c}{sum_c M_c}, weighted in the same way, reaches A; alarms may
#' come again and again, and the probability of a false one within the first T
#' days is at most T/A. The evidence of one day is at most t, so that with 30
#' days of reference no alarm comes before the second day. `since` is the day c
#' that has most of the evidence.
#'
#' @section Two streams:
#' With `y`, H0 is that on each day both streams have the same distribution,
#' which may differ from day to day (two arms of a trial, a new release beside
#' the old one). Rows are the unit, independent given the day. A bet a that was
#' chosen before the day multiplies its capital, for \eqn{n_x}{n_x} and
#' \eqn{n_y}{n_y} rows with h the smaller number, by at least
#' \deqn{\exp\{h a'(\bar x - \bar y) - \kappa h^2(a'M_xa/n_x^2 +
#' a'M_ya/n_y^2)\},}{
#' exp(h a'(x - y) - kappa h^2 (a'M_x a/n_x^2 + a'M_y a/n_y^2)),}
#' where M are sums of squares about the mean of earlier days. This holds for
#' any number of rows, as \eqn{1 + y \ge \exp(y - \kappa y^2)}{1 + y >= exp(y -
#' kappa y^2)} for \eqn{|y| \le b < 1}{|y| <= b < 1} with \eqn{\kappa =
#' -(\log(1-b)+b)/b^2}{kappa = -(log(1 - b) + b)/b^2}. Bets are along the axes
#' of most variance and the difference so far; on the first day there are none.
#' The kernel must be bounded ([kernel_rbf()], [kernel_laplace()],
#' [kernel_matern()], factors), and rows have no weights.
#'
#' @section Days that are not as they should be: A missing day is passed over,
#' and a day that comes after later ones is judged when it comes. Where names
#' are dates such as 2026-03-31, `print()` says which days are missing since the
#' reference, except for weekdays that no day has had. Rows that come late for a
#' day that was judged, and a day that comes twice, are an error that names the
#' day; the rows of a day in two files go into one sketch. A new column is
#' ignored, as [kme_sketch()] reads the columns of the landmarks by name; a
#' column that is missing is an error. So is a level that landmarks of one
#' factor do not have; beside other columns such a level is like none of the
#' landmarks, which lose the rows that have it. To go on, make landmarks of rows
#' that have the level, and a new reference. If the landmarks lose much more of
#' a day than of others, there is a warning (class
#' `kernmean_warning_projection`). If the days of the reference are like their
#' neighbors, as with a trend, there is a warning of class
#' `kernmean_warning_order`: alarms may be false then. Days of the week among
#' the reference make ranks a little conservative.
#'
#' @section Day by day:
#' A monitor is a plain list, and nothing in it is random. A nightly job:
#' \preformatted{library(kernmean)
#' m <- readRDS("monitor.rds")
#' day <- as.character(Sys.Date() - 1)
#' rows <- read.csv(file.path("logs", paste0(day, ".csv"))) |> cbind(day)
#' m <- update(m, rows, groups = "day"); saveRDS(m, "monitor.rds")
#' if (tail(m$table$alarm, 1)) print(summary(m))}
#' Rows with missing values are an error there; `na.action = na.omit`, beside
#' `groups`, drops them. The reference was made before, from a folder with a
#' file for each day:
#' \preformatted{read <- \\(path) cbind(read.csv(path), day = sub("[.]csv$", "",
#'                                                     basename(path)))
#' files <- list.files("logs", full.names = TRUE)
#' columns <- c("size", "time")
#' landmarks <- kme_landmarks(read(files[1])[columns], 100)
#' past <- kme_sketch(files, landmarks, groups = "day", read = read,
#'                    moments = 2)
#' saveRDS(kme_monitor(past), "monitor.rds")}
#' With a query, `groups` names one of its columns. Groups that are dates such
#' as 2026-03-31 are in the order of time; `x[c("Mon", "Tue")]` puts others in
#' order.
#'
#' @param x A [kme_sketch()] with second moments and a group for each day, in
#'   the order of time. In `update()`, such a sketch of the days to be judged,
#'   on the same landmarks, or rows, which are sketched.
#' @param y `NULL`, or the sketch (or rows) of a second stream for the same
#'   days.
#' @param ... Must be empty; in `update()` with rows, arguments of
#'   [kme_sketch()] such as `groups`.
#' @param reference The first days, which are the reference: how many, or their
#'   names; at least 8. The other days are judged one after the other. With
#'   `NULL` all days of `x` are the reference, and none is judged.
#' @param alpha The probability that one claim ever makes a false alarm.
#' @param horizon `NULL`, or in place of `alpha` a number A of days, many times
#'   those that are watched: the probability of a false alarm within T days is
#'   T/A.
#' @param directions Number of directions, at most.
#' @param columns Are functionals of the columns watched beside the distance?
#' @param object A monitor.
#' @param restart Begin a new claim, with evidence 1 and its own `alpha`? Days
#'   so far become the reference, except those from `since` on if there was an
#'   alarm; with a reference so chosen ranks are only nearly exact.
#' @return An object of class `kme_monitor`, a list with
#' \item{table}{a data frame with a row for each judged day: `day`; `n` (for two
#'   streams the smaller number of rows); `distance`, \eqn{\sqrt{T_d}}{
#'   sqrt(T_d)} (for two streams the MMD); for one stream `rank`, `of`,
#'   `p.value` and `tail`; `evidence` and its `log10`; `run`, \eqn{\sum_c
#'   M_c}{sum_c M_c}, for `horizon`; `since`; `alarm`; `lost`, the share of mean
#'   k(x, x) that the landmarks lose; `claim`, one more than the number of
#'   restarts; and the z of each functional, from the median of the days kept,
#'   in units of their mad (for two streams in standard deviations of the
#'   difference)}
#' \item{days}{`each`, a data frame of all days, `means`, their mean features,
#'   and `total`, sums over all rows}
#' \item{functionals}{`start`, `slope` and `table` of the functionals, and the
#'   `missing` ones}
#' \item{evidence}{the capital of the bets, as logarithms}
#' \item{landmarks, reference, claims, limit, repeated, directions, streams,
#'   seen, usual, path}{what `update()` needs}
#' `as.data.frame()` returns the table. `summary(m, day)` has the functionals of
#' a day in the units of the columns, the largest z first. `plot(m, type)` draws
#' the `"evidence"` or the distances of the `"days"`.
#' @details A day takes an eigendecomposition of an r by r matrix, where r is
#' the rank of the landmarks, and O(t p^2) time for t days in p directions;
#' reading its rows takes far longer. Memory is \eqn{8 r^2}{8 r^2} bytes, and 8
#' r + 40 times the number of scores for each day.
#' @references
#' Vovk, V. (2021). Testing randomness online. *Statistical Science* 36(4),
#' 595--611. \doi{10.1214/20-STS817}
#'
#' Rousseeuw, P. J. and van Driessen, K. (1999). A fast algorithm for the
#' minimum covariance determinant estimator. *Technometrics* 41(3), 212--223.
#' \doi{10.1080/00401706.1999.10485670}
#'
#' Ledoit, O. and Wolf, M. (2004). A well-conditioned estimator for
#' large-dimensional covariance matrices. *Journal of Multivariate Analysis*
#' 88(2), 365--411. \doi{10.1016/S0047-259X(03)00096-4}
#'
#' Fan, X., Grama, I. and Liu, Q. (2015). Exponential inequalities for
#' martingales with applications. *Electronic Journal of Probability* 20, 1--22
#' (the bound of 1 + y). \doi{10.1214/EJP.v20-3496}
#' @seealso [glossary]; [kme_changes()] for what is over; [kme_sketch()];
#'   `vignette("streams")`.
#' @examples
#' # Thirty days of a service, and ten more. On the last six days, time no
#' # longer follows size in a third of the rows.
#' set.seed(1)
#' one_day <- function(day, apart = 0) {
#'   size <- rnorm(400, mean = rnorm(1, sd = 0.1))
#'   other <- ifelse(runif(400) < apart, rnorm(400), size)
#'   data.frame(day, size, time = 0.8 * other + rnorm(400, sd = 0.6))
#' }
#' days <- format(as.Date("2026-03-01") + 0:39)
#' rows <- do.call(rbind, Map(one_day, days, rep(c(0, 0.3), c(34, 6))))
#' landmarks <- kme_landmarks(rows[-1], 60)
#' sketch <- kme_sketch(rows, landmarks, groups = "day", moments = 2)
#' m <- kme_monitor(sketch, reference = 30)
#' m
#' summary(m)
#' plot(m)
#'
#' # One more day, of rows
#' m <- update(m, one_day("2026-04-10", 0.3), groups = "day")
#' tail(as.data.frame(m)[c("day", "rank", "evidence", "since", "alarm")], 2)
#' @export
kme_monitor <- function(x, y = NULL, ..., reference = NULL, alpha = 0.05,
                        horizon = NULL, directions = 40, columns = TRUE) {
  asked <- request(monitor_arguments)
  check_days(asked$x)
  days <- asked$x$groups
  kept <- if (is.null(asked$y)) read_reference(asked$reference, days)
  landmarks <- asked$x$landmarks[[1L]]
  functionals <- new_functionals(landmarks)
  if (!asked$columns) {
    functionals$missing <- NULL
    functionals$table <- functionals$table[0L, ]
  }
  functionals$table$label <- utils::tail(
    make.unique(c(table_columns, functionals$table$label)),
    nrow(functionals$table)
  )
  monitor <- new_fit("kme_monitor", list(
    landmarks = list(landmarks), streams = !is.null(asked$y), seen = kept,
    reference = length(kept), first = length(kept), claims = 0L,
    functionals = functionals,
    days = new_days(), path = new_path(landmarks$rank),
    repeated = !is.null(asked$horizon), directions = asked$directions,
    limit = asked$horizon %||% (1 / asked$alpha)
  ))
  for (day in kept) monitor$days <- add_day(monitor$days, new_day(x, day))
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

table_columns <- c(
  "day", "n", "distance", "rank", "of", "p.value", "tail", "evidence", "log10",
  "run", "since", "alarm", "lost", "claim"
)
fewest_days <- 8L
few_days <- 15L
most_uneven <- 5

# The names of the days of the reference.
read_reference <- function(reference, days) {
  kept <- if (is.null(reference)) days else if (is.character(reference))
    intersect(days, reference) else utils::head(days, take(reference, count()))
  lacks <- if (is.character(reference)) !all(reference %in% days) else
    length(kept) < max(reference, 0)
  if (lacks || length(kept) < fewest_days) {
    stop_input("'reference' must be at least ", fewest_days, " days of 'x', ",
               "by number or name, not ",
               if (lacks) "days that it does not have" else length(kept))
  }
  kept
}

# The largest possible k(x, x), which bets on rows need. Stops if it is not
# known, or if rows have weights, for which these bets do not hold.
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
    warn_kernmean("the reference has ", length(n), " days: the least p-value ",
                  "possible for the next day is 1/", length(n) + 1L,
                  kind = "few")
  }
  if (max(n) > most_uneven * min(n)) {
    warn_kernmean("days have ", words_of_sizes(n), ": small ones are judged ",
                  "with little power", kind = "sizes")
  }
  z <- neighbors_z(new_day_points(monitor$days, monitor$directions)$x)
  if (z < unlikely_z) {
    warn_kernmean("days of the reference are like their neighbors (z = ",
                  format_number(z, 2L), "), as with a trend or a slow drift: ",
                  "days to come need not be like them, and alarms may be false",
                  kind = "order")
  }
  unknown <- monitor$functionals$missing
  if (length(unknown)) {
    warn_kernmean("the landmarks do not determine ", quoted(unknown), " of a ",
                  "day; more landmarks may", kind = "columns")
  }
}

# Warns if a day has far fewer rows than the days in `others`, or if the
# landmarks lose much more of it.
warn_day <- function(day, others) {
  if (day$n < min(others$n) / most_uneven) {
    warn_kernmean("'", day$day, "' has ", rows_of(day$n), ", other days ",
                  words_of_sizes(others$n), ": with few rows the z of its ",
                  "columns has much noise", kind = "sizes")
  }
  usual <- stats::median(others$lost)
  if (day$lost > max(0.01, 2 * usual)) {
    warn_kernmean("the landmarks lose ", format_number(100 * day$lost, 2L),
                  "% of mean k(x, x) of '", day$day, "', not ",
                  format_number(100 * usual, 2L), "% as of other days: it has ",
                  "rows, or levels, far from all landmarks, and the values of ",
                  "its columns leave these out", kind = "projection")
  }
}

# --- Judging -----------------------------------------------------------------

begin_claim <- function(monitor) {
  monitor$evidence <- if (monitor$streams) new_evidence(1L, row_bettors) else
    new_evidence(2L + 2L * nrow(monitor$functionals$table), rank_bettors)
  monitor$claims <- monitor$claims + 1L
  monitor
}

# The monitor after the given days of the sketches x and y, judged one after the
# other.
judge_days <- function(monitor, x, y, days) {
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
  again <- intersect(days, monitor$seen)
  if (length(again)) {
    stop_input("'", again[1L], "' was judged already: rows that come late, or ",
               "twice, cannot be added; sketch a day when it is complete")
  }
  for (name in days) {
    day <- new_day(x, name)
    monitor$seen <- c(monitor$seen, name)
    monitor <- if (monitor$streams) {
      judge_rows(monitor, day, new_day(y, name), height)
    } else {
      judge_ranks(monitor, day)
    }
  }
  monitor
}

# The monitor of one stream after another day, which is judged by its rank among
# the days so far.
judge_ranks <- function(monitor, day) {
  warn_day(day, monitor$days$each)
  monitor$days <- days <- add_day(monitor$days, day)
  points <- new_day_points(days, monitor$directions)
  scored <- .Call(C_r_day_scores, points$x, points$noise)
  values <- functional_values(monitor$functionals, days$means)
  scores <- rbind(scored$distances, values, -values)
  count <- ncol(scores)
  ranks <- last_ranks(scores)
  # The days of the first reference are left out: landmarks may be rows of these
  # days, of which they lose nothing.
  lost <- rbind(days$each$lost[-seq_len(monitor$first)])
  kept <- setdiff(which(scored$kept > 0L), count)
  before <- take_columns(values, kept)
  usual <- cbind(values[, count], apply(before, 1L, stats::median))
  add_judged(
    monitor, day, \(k) rbind(
      .Call(C_r_rank_bets, ranks, count, k),
      .Call(C_r_rank_bets, last_ranks(lost), ncol(lost), k)
    ),
    list(distance = sqrt(scored$distances[count]), rank = ranks[[1L]],
         of = count, p.value = ranks[[1L]] / count,
         tail = stats::pt(scored$outlying, count - 2, lower.tail = FALSE)),
    usual, (usual[, 1L] - usual[, 2L]) /
      pmax(apply(before, 1L, stats::mad), least_sd)
  )
}

# The rank of the last column in each row, 1 for the largest; values that differ
# by rounding are ties.
last_ranks <- function(scores) {
  last <- scores[, ncol(scores)]
  as.integer(rowSums(scores >= last - 1e-9 * abs(last)))
}

# The monitor of two streams after another day, which is judged by its rows.
# There are no bets on the first day. `height` is the largest possible k(x, x).
judge_rows <- function(monitor, x, y, height) {
  total <- monitor$days$total
  path <- monitor$path
  logs <- numeric(row_bettors)
  if (!is.null(total)) {
    units <- new_day_units(total, monitor$directions)
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
  usual <- functional_values(monitor$functionals, cbind(x$mean, y$mean))
  add_judged(monitor, x, \(k) logs, list(distance = sqrt(sum(apart^2))), usual,
             z)
}

# The monitor with the evidence after a day and a row for this day in its table.
# `found` holds some columns of the row, and `z` the z of each functional.
# `usual` has two columns: the values of the functionals on this day, and the
# values with which they are compared.
add_judged <- function(monitor, day, bets, found, usual, z) {
  evidence <- bet_day(monitor$evidence, bets)
  monitor$evidence <- evidence
  judged <- c(claim_rows(monitor)$day, day$day)
  monitor$usual[[day$day]] <- usual
  reached <- if (monitor$repeated) evidence$run else evidence$log
  row <- c(day[c("day", "n")], found, list(
    evidence = exp(evidence$log), log10 = evidence$log / log(10),
    run = exp(evidence$run),
    since = judged[evidence$since[1 + monitor$repeated]],
    alarm = reached >= log(monitor$limit), lost = day$lost,
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
  if (is.null(x) && is.null(y)) {
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

# The monitor with a new claim. The days judged so far join the reference,
# except those since the change if there was an alarm. The rows of these days
# still count in the units.
restart_monitor <- function(monitor) {
  last <- claim_rows(monitor)
  if (!monitor$streams) {
    each <- monitor$days$each
    count <- if (any(last$alarm)) match(last$since[nrow(last)], each$day) - 1L
      else nrow(each)
    monitor$days$each <- each[seq_len(count), ]
    monitor$days$means <- take_columns(monitor$days$means, seq_len(count))
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
    judged_lines(x, claim_rows(x), min(digits, 3L)),
    missing_line(x$seen, days$day[max(1L, x$reference)])
  )
}

# Words for the dates after `last` that are missing; NULL if the names of days
# are not dates, or if most of them do not follow each other. A date is not
# missing if its day of the week never occurs, as with Sundays.
missing_line <- function(days, last) {
  dates <- as.Date(days, "%Y-%m-%d")
  if (!identical(format(dates), days)) {
    return()
  }
  all <- seq(min(dates), max(dates), 1)
  all <- format(all[weekdays(all) %in% weekdays(dates)])
  came <- all %in% days
  gone <- all[!came & all > last]
  if (length(gone) && stats::median(diff(which(came))) == 1) {
    paste0(count_of(length(gone), "day"), " missing since ", last, ": ",
           shorten(gone))
  }
}

# Two lines about the last judged day of a claim; none without one.
judged_lines <- function(x, claim, digits) {
  if (!NROW(claim)) {
    return()
  }
  shown <- \(v) format_number(v, digits)
  last <- claim[nrow(claim), ]
  z <- unlist(last[x$functionals$table$label])
  top <- if (length(z)) which.max(abs(z))
  alarms <- claim$day[claim$alarm]
  name <- if (x$repeated) "run" else "evidence"
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
      name, " ", shown(last[[name]]), " for a change since ", last$since,
      " (alarm at ", shown(x$limit), "); ",
      if (length(alarms)) paste("alarm on", shorten(alarms)) else "no alarm"
    )
  )
}

fit_facts.kme_monitor <- function(x) {
  last <- x$table[NROW(x$table), ]
  c(list(nobs = length(x$seen), reference = x$reference, claims = x$claims),
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
            class = "summary.kernmean_fit")
}

# A data frame of the functionals on a day, the largest |z| first.
moved_columns <- function(x, day) {
  rows <- fit_rows(x)
  day <- day %||% rows$day[nrow(rows)]
  day <- take(as.character(day), choice(rows$day), "day")
  each <- x$functionals$table
  if (!nrow(each)) {
    stop_input("'object' must watch columns, as by columns = TRUE, with ",
               "enough landmarks to determine them")
  }
  z <- unlist(rows[rows$day == day, each$label])
  usual <- x$usual[[day]]
  found <- data.frame(column = each$label, day = in_units(each, usual[, 1L]),
                      usual = in_units(each, usual[, 2L]), z = z,
                      row.names = NULL)[order(-abs(z)), ]
  structure(found, title = paste0("Columns on ", day, if (x$streams)
    "; 'usual' is the second stream"))
}

fit_picture.kme_monitor <- function(object, type = NULL) {
  type <- check_type(type, c("evidence", "days"))
  judged <- fit_rows(object)
  limit <- if (type == "evidence") log10(object$limit)
  picture <- if (type == "days") {
    picture_sequence("Distance of each day", judged$distance,
                     if (object$streams) "MMD" else "sd")
  } else if (object$repeated) {
    picture_sequence("Run for a change (dashed: alarm)", log10(judged$run),
                     "log10 of the run")
  } else {
    picture_sequence("Evidence for a change (dashed: alarm)", judged$log10,
                     "log10 of the evidence")
  }
  marked <- which(judged$alarm)
  y <- picture$value
  picture$ylim <- range(y, limit)
  picture$layers <- c(list(across_layer(h = limit)), picture$layers,
                      list(mark_layer(marked, y[marked], NULL)))
  picture$value <- judged
  name_days(picture, judged$day)
}

# The picture with the names of some days at its axis.
name_days <- function(picture, days) {
  at <- evenly(length(days), 6L)
  picture$xlab <- "day"
  picture$ticks_x <- list(at = at, labels = days[at])
  picture
}

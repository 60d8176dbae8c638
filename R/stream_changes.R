#' Changes in a stream
#'
#' When did a stream change? Segments of time with a p-value of "no change", and
#' sets of times that hold each change.
#'
#' Bins of time (days, batches) are points as in [kme_monitor()], in up to
#' `directions` whitened directions of the features of all rows. The metric is
#' the covariance of differences of neighboring bins within segments, which
#' changes do not enlarge, shrunk to the identity; so it knows by how much days
#' differ without a change. The cost of bins i to j is the sum of their squared
#' distances from their mean.
#'
#' @section Cuts:
#' Dynamic programming finds the segmentation of least cost for each number of
#' segments from 1 to `max`, with at least `min` bins in a segment. The number
#' of segments minimizes the sum of cost and penalty. The constants of the
#' penalty come from the data: the costs of many segments (`max`/2 and more) are
#' regressed on \eqn{\log{T-1 \choose D-1}}{log choose(T - 1, D - 1)} and D, and
#' the penalty is -2 times the two slopes (Arlot, Celisse and Harchaoui). With
#' fewer than 24 bins there is too little for this rule to go by.
#'
#' The p-value of "no change" compares the largest gain of one cut with those
#' under `B` permutations of all bins, each with a metric of its own. It is
#' exact if bins are exchangeable together with their sizes. Where sizes rise or
#' fall for long, so does the noise of bins, and that alone may reject "no
#' change" (a warning of class `kernmean_warning_sizes`). If the p-value is
#' above `alpha` there are no cuts; otherwise the cuts are those of the rule, or
#' the best single one where the rule has none. Each cut is tested in the same
#' way among the bins of its two segments, given the cuts beside it, and
#' p-values are adjusted by Holm's method; as cuts were chosen from the same
#' bins, only the p-value of "no change" is exact. The set of a cut holds the
#' positions that cannot be told from the best one: under permutations on either
#' side of the position, the gain of the best cut over it is not among the
#' largest 1 - `level`. The set of a single change holds the right position with
#' probability `level` at least.
#'
#' If bins are more like their neighbors within segments than under
#' permutations, there is a warning of class `kernmean_warning_order`: "no
#' change" is rejected too often then.
#'
#' @param x A [kme_sketch()] with second moments and a group for each bin, in
#'   the order of time, at least 8.
#' @param ... Must be empty.
#' @param B Number of permutations, at least 1/`alpha` - 1.
#' @param alpha The level of "no change".
#' @param min,max The least number of bins in a segment, and the largest number
#'   of segments, at most T/4 for T bins.
#' @param level The probability that a set holds a change.
#' @param directions Number of directions, at most.
#' @param progress Show a progress bar?
#' @return An object of class `kme_changes`, a list with
#' \item{cuts}{a data frame with a row for each change: `cut`, the first bin
#'   after it, `p.value`, `p.adjusted`, and the ends of its set, `from` and
#'   `to`, first bins after it}
#' \item{sets}{for each cut the numbers of the last bins before it}
#' \item{segment}{a factor with the names of the bins, also `predict()`}
#' \item{p.value, rule}{the p-value of "no change"; the cuts of the rule,
#'   whatever the p-value}
#' \item{neighbors}{the z of squared distances of neighbors, negative where they
#'   are alike}
#' \item{n, bins}{the number of bins, and the bins for `update()`}
#' \item{B, level, directions, arguments}{as asked for}
#' `x[predict(fit) == 1]` is the sketch of the first segment, for [mmd_test()]
#' with a second one. `plot()` draws the bins along the axis on which segments
#' differ most, with cuts and sets.
#' @details Time O(B T r^2) for T bins and r directions; sets take O(99 T^2 r^2)
#' more, as each position has 99 permutations; dynamic programming takes
#' \eqn{T^2 max}{T^2 max} steps.
#' @references
#' Arlot, S., Celisse, A. and Harchaoui, Z. (2019). A kernel multiple
#' change-point algorithm via model selection. *Journal of Machine Learning
#' Research* 20(162), 1--56.
#' @seealso [glossary]; [kme_monitor()] for what goes on; [mmd_test.kme_sketch]
#' @examples
#' # Forty days; from the 21st to the 30th time has come apart from size.
#' set.seed(1)
#' one_day <- function(day, apart) {
#'   size <- rnorm(400, mean = rnorm(1, sd = 0.1))
#'   other <- ifelse(runif(400) < apart, rnorm(400), size)
#'   data.frame(day, size, time = 0.8 * other + rnorm(400, sd = 0.6))
#' }
#' days <- format(as.Date("2026-03-01") + 0:39)
#' apart <- rep(c(0, 0.3, 0), c(20, 10, 10))
#' rows <- do.call(rbind, Map(one_day, days, apart))
#' sketch <- kme_sketch(rows, kme_landmarks(rows[-1], 60), groups = "day",
#'                      moments = 2)
#' fit <- kme_changes(sketch, B = 199)
#' fit
#' plot(fit)
#' table(predict(fit))
#' @export
kme_changes <- function(x, ..., B = 999, alpha = 0.05, min = 2, max = 15,
                        level = 0.9, directions = 40,
                        progress = interactive()) {
  asked <- request(changes_arguments)
  bins <- read_bins(asked$x)
  x <- new_day_points(bins, asked$directions)$x
  n <- ncol(x)
  least <- max(fewest_days, 2L * asked$min)
  if (n < least) stop_input("'x' must have at least ", least, " bins, not ", n)
  if (1 / (asked$B + 1) > asked$alpha) {
    stop_input("'B' must be at least ", ceiling(1 / asked$alpha - 1),
               " for a p-value of 'alpha' or less, not ", asked$B)
  }
  gains <- cut_gains(x, asked$min, rep(1L, n), asked$B)
  p <- gains_p(gains)
  rule <- rule_cuts(x, asked$min, asked$max)
  cuts <- if (p > asked$alpha) integer() else
    if (length(rule)) rule else which.max(gains[, 1L])
  ends <- c(0L, cuts, n)
  each <- lapply_shown(seq_along(cuts), \(i) {
    judge_cut(x, ends[i + 0:2], asked, if (length(cuts) == 1L) p)
  }, asked$progress)
  segment <- factor(rep(seq_len(length(cuts) + 1L), diff(ends)))
  fit <- new_fit("kme_changes", c(list(
    bins = bins, n = n, segment = stats::setNames(segment, bins$each$day),
    rule = rule, p.value = p, cuts = cut_table(cuts, each, bins$each$day),
    sets = lapply(each, `[[`, "set"), neighbors = neighbors_z(x, ends[-1L])
  ), asked[c("B", "level", "directions")],
  list(arguments = stored(asked))))
  warn_bins(fit$neighbors, bins$each$n)
  fit
}

# Warns if bins are not exchangeable: if neighbors within a segment resemble
# each other, or if neighboring sizes n do.
warn_bins <- function(z, n) {
  if (z < unlikely_z) {
    warn_kernmean("bins are like their neighbors within segments (z = ",
                  format_number(z, 2L), "): \"no change\" is rejected too ",
                  "often then, and p-values are too small; longer bins may be ",
                  "free of it", kind = "order")
  }
  if (max(n) > 2 * min(n) && neighbors_z(rbind(log(n))) < unlikely_z) {
    warn_kernmean("sizes rise or fall for long (", words_of_sizes(n), "): ",
                  "means of fewer rows have more noise, which is taken for a ",
                  "change; bins of equal numbers of rows are free of it",
                  kind = "sizes")
  }
}

changes_arguments <- door_table(
  "kme_changes", x = anything, B = count(), alpha = number(0, 1, open = TRUE),
  min = count(), max = count(2L), level = number(0, 1, open = TRUE),
  directions = count(), progress = flag, aside = c("x", "progress")
)

# The bins of a sketch as days, or the bins that update() has kept.
read_bins <- function(x) {
  if (inherits(x, "kme_bins")) {
    return(x)
  }
  check_days(x)
  days <- new_days()
  for (name in x$groups) days <- add_day(days, new_day(x, name))
  structure(days, class = "kme_bins")
}

# --- Cuts --------------------------------------------------------------------

# The gain of each cut in the order observed and in B permutations of the bins
# within blocks, positions x (1 + B) matrix.
cut_gains <- function(x, least, blocks, B) {
  n <- length(blocks)
  orders <- cbind(seq_len(n), draw_permutations(rep(1L, n), B, blocks))
  .Call(C_r_cut_gains, x - rowMeans(x), orders, least)
}

gains_p <- function(gains, values = apply(gains, 2L, max)) {
  permutation_p(values[1L], values[-1L], NULL)
}

most_rounds <- 5L
usual_most <- 15L

# The cuts of the best segmentation. The costs of many segments show what one
# more segment gains if there is no further change (the penalty of Arlot,
# Celisse and Harchaoui with constants from the data). Distances are in units of
# the spread within the segments found, and so units and segments are estimated
# in turns.
rule_cuts <- function(x, least, most) {
  cuts <- integer()
  tried <- most
  most <- min(max(most, usual_most), ncol(x) %/% c(least, 4L))
  counts <- seq_len(most)
  beyond <- counts >= most / 2
  if (sum(beyond) < 4L) {
    return(cuts)
  }
  shape <- cbind(1, lchoose(ncol(x) - 1, counts - 1), counts)
  for (step in seq_len(most_rounds)) {
    found <- .Call(C_r_segments, x, cuts, least, most)
    slopes <- qr.coef(qr(shape[beyond, ]), found$totals[beyond])
    penalty <- -2 * drop(shape[, -1L] %*% slopes[-1L])
    before <- cuts
    cuts <- trace_cuts(found$last, which.min(
      utils::head(found$totals + penalty, tried)
    ))
    if (identical(cuts, before)) break
  }
  cuts
}

# The last bin of each segment but the last, from the table of the dynamic
# program.
trace_cuts <- function(last, count) {
  ends <- Reduce(\(end, k) last[end, k] - 1L, rev(seq_len(count)[-1L]),
                 nrow(last), accumulate = TRUE)
  rev(ends[-1L])
}

set_draws <- 99L

# The p-value `p` of one cut, from the bins of its two segments and given the
# cuts beside it, and the `set` of positions where the change may be. The cut
# itself is in the set. Another position is in it unless the best cut gains more
# over this position than it usually does when the bins before the position, and
# those after it, are permuted among themselves.
judge_cut <- function(x, ends, asked, p = NULL) {
  x <- take_columns(x, seq.int(ends[1L] + 1L, ends[3L]))
  n <- ncol(x)
  draws <- max(set_draws, ceiling(2 / (1 - asked$level)))
  positions <- seq.int(asked$min, n - asked$min)
  inside <- vapply(positions, \(at) {
    gains <- cut_gains(x, asked$min, 1L + (seq_len(n) > at), draws)
    gains_p(gains, apply(gains, 2L, max) - gains[at, ]) > 1 - asked$level
  }, NA)
  inside[positions == ends[2L] - ends[1L]] <- TRUE
  list(p = p %||% gains_p(cut_gains(x, asked$min, rep(1L, n), asked$B)),
       set = ends[1L] + positions[inside])
}

# The data frame of all cuts; `each` has what judge_cut() found.
cut_table <- function(cuts, each, days) {
  p <- vapply(each, `[[`, 1, "p")
  ends <- vapply(each, \(cut) days[range(cut$set) + 1L], c("", ""))
  data.frame(cut = days[cuts + 1L], p.value = p,
             p.adjusted = stats::p.adjust(p, "holm"), from = ends[1L, ],
             to = ends[2L, ])
}

# --- Methods -----------------------------------------------------------------

fit_request.kme_changes <- function(x, changes) {
  asked <- change_request(x$arguments, changes)
  if (is.null(changes$x)) asked$x <- x$bins
  asked
}

#' @rdname kme_changes
#' @param object A fit.
#' @param newdata `NULL`, or names of bins.
#' @export
predict.kme_changes <- function(object, newdata = NULL, ...) {
  check_dots(...)
  segment <- same_version(object)$segment
  if (is.null(newdata)) {
    return(segment)
  }
  at <- if (is.atomic(newdata)) match(newdata, names(segment)) else NA
  if (anyNA(at)) {
    stop_input("'newdata' must name bins (", shorten(names(segment)), "), not ",
               if (is.atomic(newdata)) quoted(newdata[is.na(at)]) else
                 describe(newdata))
  }
  segment[at]
}

fit_lines.kme_changes <- function(x, digits) {
  cuts <- x$cuts
  c(
    paste0("Changes among ", x$n, " bins, ", words_of_sizes(x$bins$each$n),
           ": ", count_of(nlevels(x$segment), "segment")),
    paste0("no change: p = ", format_number(x$p.value, digits), " (",
           if (x$p.value < 1.5 / (x$B + 1)) least_words(x$B) else
             paste(x$B, "permutations"), ")"),
    paste0("from ", cuts$cut, ": p = ", format_number(cuts$p.adjusted, digits),
           " (Holm), ", 100 * x$level, "% set ", cuts$from, " to ", cuts$to,
           recycle0 = TRUE)
  )
}

fit_facts.kme_changes <- function(x) {
  list(nobs = x$n, segments = nlevels(x$segment), p.value = x$p.value,
       neighbors = x$neighbors)
}

fit_rows.kme_changes <- \(x, ...) x$cuts

fit_frame.kme_changes <- function(x) {
  cbind(x$bins$each[1:2], segment = unname(x$segment))
}

# The picture of the bins along the axis on which segments differ most, with the
# means of the segments, the cuts and their sets.
fit_picture.kme_changes <- function(object, type = NULL) {
  check_type(type, "bins")
  points <- t(new_day_points(object$bins, object$directions)$x)
  segment <- object$segment
  means <- (rowsum(points, segment) / tabulate(segment))[segment, ]
  between <- if (nlevels(segment) > 1L) means else points
  axis <- svd(between - rep(colMeans(between), each = object$n), 0L, 1L)$v
  x <- seq_len(object$n)
  y <- drop(points %*% axis)
  span <- padded_range(y)
  set <- unlist(object$sets)
  at <- which(diff(as.integer(segment)) > 0L) + 0.5
  name_days(new_picture(
    paste0("Changes, and where they may be (", 100 * object$level, "%)"), "",
    "axis of largest change",
    list(
      if (length(set)) new_layer(
        "bars", x0 = set, x1 = set + 1, y0 = span[1L] + 0 * set,
        y1 = span[2L] + 0 * set, col = tint(accent), border = NA
      ),
      if (length(at)) across_layer(v = at, col = accent, lty = 1),
      points_layer(cbind(x, y), main = TRUE),
      new_layer("line", x = as.vector(rbind(x - 0.5, x + 0.5)),
                y = rep(drop(means %*% axis), each = 2L), lwd = 2)
    ),
    cbind(fit_frame(object), score = y), ylim = span
  ), object$bins$each$day)
}

#' @export
kme_changes <- function(x, ..., B = 999, alpha = 0.05, min = 2, max = 15,
                        level = 0.9, directions = 40,
                        progress = interactive()) {
  asked <- request(changes_arguments)
  bins <- read_bins(asked$x)
  points <- day_points(bins, asked$directions)$x
  n <- nrow(points)
  most <- min(asked$max, n %/% asked$min, n %/% 4L)
  if (n < max(fewest_days, 2L * asked$min)) {
    stop_input("'x' must have at least ", max(fewest_days, 2L * asked$min),
               " bins, not ", n)
  }
  gate <- cut_gains(points, asked$min, permuted(rep(1L, n), asked$B))
  p <- gains_p(gate)
  rule <- rule_cuts(points, asked$min, most)
  cuts <- if (p > asked$alpha) integer() else
    if (length(rule)) rule else which.max(gate[, 1L])
  bar <- progress_bar(asked$progress && length(cuts) > 0L)
  on.exit(bar$close())
  ends <- c(0L, cuts, n)
  each <- lapply(seq_along(cuts), \(i) {
    found <- judge_cut(points, ends[i + 0:2], asked)
    bar$at(i / length(cuts))
    found
  })
  fit <- new_fit("kme_changes", list(
    bins = bins, n = n, segment = segments_of(cuts, bins$name), rule = rule,
    p.value = p, gains = gate[, 1L],
    limit = stats::quantile(apply(gate[, -1L, drop = FALSE], 2L, max),
                            1 - asked$alpha, names = FALSE),
    neighbors = segment_neighbors(points, cuts),
    cuts = cut_table(cuts, each, bins$name), sets = lapply(each, `[[`, "set")
  ))
  fit[c("B", "alpha", "level", "directions")] <-
    asked[c("B", "alpha", "level", "directions")]
  fit$arguments <- stored(asked)
  warn_neighbors(fit)
  fit
}

changes_arguments <- door_table(
  "kme_changes", x = anything, B = count(), alpha = number(0, 1, open = TRUE),
  min = count(), max = count(2L), level = number(0, 1, open = TRUE),
  directions = count(), progress = flag, aside = c("x", "progress")
)

# The bins of a sketch, or those that update() has kept.
read_bins <- function(x) {
  if (inherits(x, "kme_bins")) {
    return(x)
  }
  check_days(x, "bin of time")
  days <- lapply(x$groups, \(name) read_day(x, name))
  structure(Reduce(add_day, days, NULL), class = "kme_bins")
}

segments_of <- function(cuts, names) {
  number <- findInterval(seq_along(names), cuts + 1L) + 1L
  stats::setNames(factor(number, seq_len(length(cuts) + 1L)), names)
}

# --- Cuts --------------------------------------------------------------------

# Are neighbors alike within the segments? In the metric of all bins about the
# means of their segments, which does not know their order.
segment_neighbors <- function(x, cuts) {
  segment <- findInterval(seq_len(nrow(x)), cuts + 1L) + 1L
  means <- rowsum(x, segment) / tabulate(segment)
  x <- x - means[segment, , drop = FALSE]
  metric <- day_metric(x, numeric(ncol(x)), nrow(x) - nrow(means))
  neighbors_z(metric_points(x, metric), segment)
}

# Of differences of neighbors within the segments, which no change makes large.
difference_metric <- function(x, cuts) {
  apart <- setdiff(seq_len(nrow(x) - 1L), cuts)
  d <- (x[apart + 1L, , drop = FALSE] - x[apart, , drop = FALSE]) / sqrt(2)
  day_metric(d, numeric(ncol(x)), nrow(d))
}

# Orders of bins, the observed one first; those of a block change places.
permuted <- function(blocks, B) {
  n <- length(blocks)
  cbind(seq_len(n), draw_permutations(rep(1L, n), B, blocks))
}

# What each cut gains, a row a position, for each order.
cut_gains <- function(x, least, orders) {
  .Call(C_r_cut_gains, t(x) - colMeans(x), orders, least)
}

gains_p <- function(gains) {
  largest <- apply(gains, 2L, max)
  permutation_p(largest[1L], largest[-1L], NULL)
}

# The cuts of the best segmentation, and of how many segments: the costs of many
# tell what another one gains where there are none (Arlot, Celisse and
# Harchaoui's penalty with constants from the data). The metric is that within
# the segments found.
rule_cuts <- function(x, least, most) {
  cuts <- integer()
  counts <- seq_len(most)
  beyond <- counts >= most / 2
  if (sum(beyond) < 4L) {
    return(cuts)
  }
  n <- nrow(x)
  shape <- cbind(1, lchoose(n - 1, counts - 1), counts)
  for (step in seq_len(most_steps)) {
    y <- metric_points(x, difference_metric(x, cuts))
    found <- .Call(C_r_segments, tcross(y - rep(colMeans(y), each = n)), least,
                   most)
    slopes <- qr.coef(qr(shape[beyond, ]), found$totals[beyond])
    penalty <- -2 * drop(shape[, -1L] %*% slopes[-1L])
    before <- cuts
    cuts <- trace_cuts(found$last, which.min(found$totals + penalty))
    if (identical(cuts, before)) break
  }
  cuts
}

most_steps <- 5L

# The last bins of all segments but the last.
trace_cuts <- function(last, count) {
  cuts <- integer()
  end <- nrow(last)
  while (count > 1L) {
    end <- last[end, count] - 1L
    cuts <- c(end, cuts)
    count <- count - 1L
  }
  cuts
}

# One cut among the bins of its two segments, given the cuts beside it: list(p,
# set: where it may be), a position is in the set unless the best cut gains more
# than there by an amount that is rare under permutations on both sides of it.
judge_cut <- function(x, ends, asked) {
  rows <- seq.int(ends[1L] + 1L, ends[3L])
  x <- x[rows, , drop = FALSE]
  n <- length(rows)
  p <- gains_p(cut_gains(x, asked$min, permuted(rep(1L, n), asked$B)))
  draws <- max(set_draws, ceiling(2 / (1 - asked$level)))
  positions <- seq.int(asked$min, n - asked$min)
  inside <- vapply(positions, \(at) {
    sides <- 1L + (seq_len(n) > at)
    gains <- cut_gains(x, asked$min, permuted(sides, draws))
    short <- apply(gains, 2L, max) - gains[at, ]
    permutation_p(short[1L], short[-1L], NULL) > 1 - asked$level
  }, NA)
  list(p = p, set = ends[1L] + positions[inside])
}

set_draws <- 99L

cut_table <- function(cuts, each, names) {
  p <- vapply(each, `[[`, 1, "p")
  ends <- vapply(each, \(cut) {
    if (length(cut$set)) range(cut$set) else c(NA_integer_, NA_integer_)
  }, integer(2))
  data.frame(
    cut = names[cuts + 1L], after = names[cuts], p.value = p,
    p.adjusted = stats::p.adjust(p, "holm"),
    from = names[ends[1L, ] + 1L], to = names[ends[2L, ] + 1L],
    positions = lengths(lapply(each, `[[`, "set"))
  )
}

warn_neighbors <- function(fit) {
  if (fit$neighbors < stats::qnorm(0.01)) {
    warn_kernmean("bins are like their neighbors within segments (z = ",
                  format_number(fit$neighbors, 2L), "): \"no change\" is ",
                  "rejected too often then, and p-values are too small; bins ",
                  "of more time may be free of it", kind = "order")
  }
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
  unknown <- setdiff(newdata, names(segment))
  if (length(unknown)) {
    stop_input("'newdata' must name bins of the fit (", shorten(names(segment)),
               "), not ", quoted(unknown))
  }
  segment[as.character(newdata)]
}

fit_lines.kme_changes <- function(x, digits) {
  sizes <- range(x$bins$n)
  cuts <- x$cuts
  shown <- \(v) format_number(v, digits)
  c(
    paste0("Changes among ", x$n, " bins, ", words_of_sizes(sizes), "; ",
           nlevels(x$segment), if (nlevels(x$segment) > 1L) " segments" else
             " segment"),
    paste0("no change: p = ", shown(x$p.value), " (", x$B, " permutations",
           if (!nrow(cuts)) paste0("; the rule has ", count_of(length(x$rule),
                                                               "cut")), ")"),
    if (nrow(cuts)) paste0(
      "from ", cuts$cut, ": p = ", shown(cuts$p.adjusted), " (Holm), ",
      ifelse(cuts$positions > 1L, paste0(
        format(100 * x$level), "% set ", cuts$from, " to ", cuts$to, ", ",
        cuts$positions, " of them"
      ), paste0(format(100 * x$level), "% set of one"))
    )
  )
}

fit_facts.kme_changes <- function(x) {
  list(nobs = x$n, segments = nlevels(x$segment), cuts = nrow(x$cuts),
       p.value = x$p.value, B = x$B, neighbors = x$neighbors)
}

fit_rows.kme_changes <- function(x, ...) x$cuts

fit_frame.kme_changes <- function(x) {
  data.frame(bin = x$bins$name, n = x$bins$n, segment = unname(x$segment))
}

fit_summary.kme_changes <- function(x) list(cuts = x$cuts)

fit_picture.kme_changes <- function(object, type = NULL) {
  type <- check_type(type, c("bins", "gain"))
  n <- object$n
  at <- match(object$cuts$cut, object$bins$name) - 0.5
  if (type == "gain") {
    y <- object$gains
    x <- seq_along(y) + 0.5
    layers <- list(across_layer(h = object$limit), new_layer(
      "line", x = x, y = y, main = TRUE
    ))
    value <- data.frame(after = object$bins$name[-n], gain = y)
    name <- "gain of one cut (dashed: limit of the largest)"
  } else {
    points <- metric_points(day_points(object$bins, object$directions)$x)
    # The axis along which segments differ most.
    means <- rowsum(points, object$segment) / tabulate(object$segment)
    between <- if (nrow(object$cuts)) means[object$segment, ] else points
    axis <- svd(between - rep(colMeans(between), each = n), 0L, 1L)$v
    y <- drop(points %*% axis)
    x <- seq_len(n)
    level <- tapply(y, object$segment, mean)[object$segment]
    layers <- list(points_layer(cbind(x, y), main = TRUE), new_layer(
      "line", x = as.vector(rbind(x - 0.5, x + 0.5)),
      y = rep(unname(level), each = 2L), lwd = 2
    ))
    value <- data.frame(bin = object$bins$name, score = y,
                        segment = unname(object$segment))
    name <- "along the axis of largest change"
  }
  span <- padded_range(y)
  sets <- lapply(object$sets, \(set) {
    new_layer("bars", x0 = set, y0 = rep(span[1L], length(set)), x1 = set + 1,
              y1 = rep(span[2L], length(set)), col = tint(accent), border = NA)
  })
  shown <- evenly(n, 6L)
  new_picture(
    paste0("Changes over time, with ", format(100 * object$level), "% sets"),
    "bin", name,
    c(sets, list(if (length(at)) across_layer(v = at, col = accent, lty = 1)),
      layers),
    value, ylim = span, ticks = list(at = shown,
                                     labels = object$bins$name[shown])
  )
}

# Evidence that may be looked at every day: it is the capital of a bettor
# against "no change". If there is no change, it ever reaches 1/alpha with
# probability at most alpha, however long it is watched (Ville's inequality).
# Each bet is on a change that began on a certain day, so that days before that
# change cost nothing; the evidence is the sum of their capitals, weighted by a
# prior on these days.

least_capital <- 1e-8
most_starts <- 1000L
rank_bettors <- 5L

# The evidence for a change, kept for several scores side by side:
#   scores   number of scores
#   count    number of days that were judged
#   starts   the days, by number, from which bets on a change are still kept
#   logs     logarithms of the capital of bettors, those of one score after
#            those of another, (scores * bettors) x starts matrix
#   log      logarithm of the largest evidence over all scores
#   run      the same for `horizon`
#   since    for each of the two the start that has most of it
new_evidence <- function(scores, bettors) {
  list(scores = scores, count = 0L, starts = integer(),
       logs = matrix(0, scores * bettors, 0L))
}

# The evidence after another day. bets(k) returns the logarithms of the factors
# by which this day multiplies the capital of bets on a change k days ago.
bet_day <- function(evidence, bets) {
  count <- evidence$count + 1L
  starts <- c(evidence$starts, count)
  logs <- cbind(evidence$logs, 0) + bets(count - starts + 1L)
  found <- .Call(C_r_weigh, logs, starts, count, evidence$scores)
  # Starts that are unlikely to lead again are dropped. That can only lower the
  # evidence, so that it stays valid.
  kept <- utils::head(order(-found$lead), most_starts)
  kept <- sort(kept[found$lead[kept] > log(least_capital)])
  replace(evidence, c("count", "starts", "logs", "log", "run", "since"), list(
    count, starts[kept], take_columns(logs, kept), found$log, found$run,
    starts[found$since]
  ))
}

# --- Rows --------------------------------------------------------------------

row_axes <- 12L
row_sizes <- c(0.005, 0.02, 0.08)
row_bettors <- 2L * row_axes * length(row_sizes) + 6L
most_staked <- 0.5
memory <- c(1, 0.8)

# The differences of two streams so far, once with equal weights and once with
# weights that fade:
#   n     number of rows that they are worth
#   sum   sums of differences of mean features, times rows, r x 2 matrix
new_path <- function(rank) list(n = c(0, 0), sum = matrix(0, rank, 2L))

# Bets on the rows of two streams, an r x bettors matrix. They are chosen from
# earlier days: the axes of largest variance, in both directions, and the
# difference of the streams so far.
stream_bets <- function(basis, path) {
  axes <- take_columns(basis, rep_len(seq_len(min(row_axes, ncol(basis))),
                          row_bettors - 6L))
  ahead <- cross(basis, times_columns(path$sum, 1 / pmax(path$n, 1)))
  squares <- times_columns(ahead^2, path$n)
  ahead <- ahead * pmax(0, 1 - 2 / pmax(squares, 1))
  cbind(times_columns(axes, rep(c(-row_sizes, row_sizes), each = row_axes)),
        product(basis, cbind(ahead / 4, ahead / 2, ahead)))
}

# The logarithms of lower bounds for the factors by which a day of the streams x
# and y multiplies the capital of bets against "both have the same
# distribution". With y = a'(phi - c), |y| <= b < 1, the product of 1 + y over
# rows is at least exp(a's - kappa a'Ma), where s and M are the sums of phi - c
# and (phi - c)(phi - c)' and kappa = -(log(1 - b) + b)/b^2; a is the bet times
# h/n, where n is the number of rows of the stream and h the smaller of both
# numbers. `reach` is the largest possible |phi - c|; a bet for which |y| could
# be too large is scaled down.
stream_logs <- function(bets, x, y, center, reach) {
  size <- reach * sqrt(column_dots(bets))
  bets <- times_columns(bets, pmin(1, most_staked / pmax(size, 1e-6)))
  b <- pmin(size, most_staked)
  kappa <- ifelse(b < 1e-4, 0.5 + b / 3, -(log1p(-b) + b) / b^2)
  squares <- \(day) {
    (column_dots(bets, product(day$covariance, bets)) +
       drop(cross(bets, day$mean - center))^2) / day$n
  }
  h <- min(x$n, y$n)
  h * drop(cross(bets, x$mean - y$mean)) -
    kappa * h^2 * (squares(x) + squares(y))
}

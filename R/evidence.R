# Evidence that may be looked at every day: capital of bets against "no change",
# which by Ville's inequality reaches 1/alpha with chance alpha at most, however
# long it is watched. Bets stand for a change that began on a certain day, so
# that quiet days cost nothing; a prior over these days adds them up.

# --- Capital -----------------------------------------------------------------

# Of `scores` that are watched side by side: list(count: days judged; starts:
# those days, by number, of which capital is kept; logs: for each bettor its log
# capital, starts x scores).
new_evidence <- function(scores, bettors) {
  list(count = 0L, starts = integer(),
       logs = rep(list(matrix(0, 0L, scores)), bettors))
}

# The evidence after another day; bets(k): for each bettor the logs, starts x
# scores, of what a bet on a change k days ago pays.
bet_day <- function(evidence, bets) {
  count <- evidence$count + 1L
  starts <- c(evidence$starts, count)
  logs <- Map(\(log, bet) rbind(log, 0) + bet, evidence$logs,
              bets(count - starts + 1L))
  capital <- log_mean_of(logs)
  # What will never be the largest again is let go, which lowers the evidence.
  lead <- row_max(capital - rep(apply(capital, 2L, max), each = nrow(capital)))
  kept <- sort(order(-lead)[seq_len(min(sum(lead > log(least_capital)),
                                        most_starts))])
  list(count = count, starts = starts[kept],
       logs = lapply(logs, \(log) log[kept, , drop = FALSE]))
}

least_capital <- 1e-8
most_starts <- 1000L

log_mean_of <- function(logs) {
  top <- do.call(pmax, logs)
  top + log(Reduce(`+`, lapply(logs, \(log) exp(log - top))) / length(logs))
}

log_column_sums <- function(logs) {
  top <- apply(logs, 2L, max)
  top + log(colSums(exp(logs - rep(top, each = nrow(logs)))))
}

# list(log: of the evidence for a change, run: the log of the sum of all
# capital, since: the start that has most of it), the first score's weight 1/2,
# what the others share. The largest weighted evidence, and not the sum: each is
# a martingale for its own score only. repeated: is the run what counts?
weigh_evidence <- function(evidence, repeated) {
  starts <- evidence$starts
  capital <- log_mean_of(evidence$logs)
  others <- ncol(capital) - 1L
  weights <- log(if (others) c(0.5, rep(0.5 / others, others)) else 1)
  # 1/(c(c + 1)) for a change on day c, and what is left for later ones.
  dated <- capital - log(starts) - log1p(starts)
  all <- weights + log_column_sums(rbind(dated, -log1p(evidence$count)))
  run <- weights + log_column_sums(capital)
  best <- which.max(if (repeated) run else all)
  list(log = max(all), run = max(run),
       since = starts[which.max((if (repeated) capital else dated)[, best])])
}

# --- Ranks -------------------------------------------------------------------

# Bets on ranks, uniform on 1, ..., `of` while days are exchangeable: that the
# last k days have the first k ranks, with a part held back, and that ranks are
# small. Each pays 1 on average.
rank_bets <- function(ranks, of) {
  \(k) {
    inside <- outer(k, ranks, ">=") * of / k
    small <- lapply(powers, \(power) {
      pays <- of * ((ranks / of)^power - ((ranks - 1) / of)^power)
      matrix(log(pays), length(k), length(ranks), byrow = TRUE)
    })
    c(lapply(held_back, \(part) log((1 - part) * inside + part)), small)
  }
}

held_back <- c(0.05, 0.2, 0.5)
powers <- c(0.2, 0.5)
rank_bettors <- length(held_back) + length(powers)

# --- Rows --------------------------------------------------------------------

# Bets a on single rows, y = a'(phi - c) with |y| <= b < 1: their product over a
# day is at least exp(a's - kappa a'Ma) with s = sum (phi - c), M = sum
# (phi - c)(phi - c)' and kappa = -(log(1 - b) + b)/b^2, so that sums are enough.

# The bets, features x bettors, that what was seen before leads to: axes of most
# variance in either direction, and the difference so far. path: list(sum:
# features x 2, of differences times rows, all and with memory, n: of both).
row_bets <- function(basis, path) {
  r <- min(row_axes, ncol(basis))
  sizes <- rep(c(-row_sizes, row_sizes), each = r)
  axes <- basis[, rep_len(seq_len(r), length(sizes)), drop = FALSE]
  ahead <- cross(basis, path$sum / rep(pmax(path$n, 1), each = nrow(basis)))
  worth <- rep(path$n, each = nrow(ahead))
  ahead <- ahead * pmax(0, 1 - 2 / pmax(worth * ahead^2, 1))
  none <- matrix(0, nrow(basis), 2L * length(row_sizes) * (row_axes - r))
  cbind(times_columns(axes, sizes), none,
        product(basis, cbind(ahead / 4, ahead / 2, ahead)))
}

row_axes <- 12L
row_sizes <- c(0.005, 0.02, 0.08)
row_bettors <- 2L * row_axes * length(row_sizes) + 6L
most_staked <- 0.5
memory <- 0.8

# Bets that are cut to what is safe: list(bets, size: their norms, kappa);
# reach: what |phi - c| is at most, for sure.
safe_bets <- function(bets, reach) {
  size <- sqrt(column_dots(bets))
  times <- pmin(1, most_staked / pmax(size * reach, least_variance))
  b <- size * times * reach
  kappa <- ifelse(b < 1e-4, 0.5 + b / 3, -(log1p(-b) + b) / b^2)
  list(bets = times_columns(bets, times), size = size * times, kappa = kappa)
}

# a'M a/n of the rows of a day, about c.
staked_squares <- function(bets, day, center) {
  inside <- day$covariance - tcross(day$mean)
  column_dots(bets, product(inside, bets)) +
    drop(cross(bets, day$mean - center))^2
}

# The logs of what each bet makes of a day, at least: of two streams with one
# law on that day (the smaller counts, the larger is divided among its rows), or
# of one whose law is within `slack` of the center.
row_logs <- function(safe, x, y, center, slack) {
  bets <- safe$bets
  squares <- staked_squares(bets, x, center)
  if (!is.null(y)) {
    h <- min(x$n, y$n)
    both <- squares / x$n + staked_squares(bets, y, center) / y$n
    return(h * drop(cross(bets, x$mean - y$mean)) - safe$kappa * h^2 * both)
  }
  along <- drop(cross(bets, x$mean - center))
  less <- slack * safe$size
  x$n * (along - less - safe$kappa * (squares - 2 * less * along + less^2))
}

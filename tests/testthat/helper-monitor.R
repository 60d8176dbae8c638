# Twins of what streams are made of, as the formulas say it.

# Days of rows: size, queue, and time that depends on both; apart: the share of
# rows whose time is another row's; effect: the sd of what a day shifts.
service_days <- function(count, n = 150, shift = 0, apart = 0, effect = 0.1) {
  days <- lapply(seq_len(count), \(i) {
    size <- stats::rnorm(n)
    queue <- stats::rnorm(n)
    other <- ifelse(stats::runif(n) < apart, stats::rnorm(n), size)
    moved <- stats::rnorm(3, sd = effect)
    data.frame(size = size + moved[1L] + shift, queue = queue + moved[2L],
               time = 0.8 * other + 0.4 * queue + 0.4 * stats::rnorm(n) +
                 moved[3L])
  })
  do.call(rbind, days)
}

# A sketch of days in this order, named as dates from the first on.
service_sketch <- function(rows, landmarks, n = 150, first = "2026-03-01") {
  days <- format(as.Date(first) + seq_len(nrow(rows) / n) - 1)
  kme_sketch(cbind(rows, day = rep(days, each = n)), landmarks, groups = "day",
             moments = 2)
}

shrunk_R <- function(x, center, free) {
  x <- sweep(x, 2, center)
  s <- crossprod(x) / free
  rho <- (mean(rowSums(x^2)^2) - sum(s^2)) / nrow(x) /
    sum((s - diag(ncol(s)))^2)
  list(s = s, rho = min(1, max(0.05, rho)))
}

# Distances of days (rows of x) from those kept, a kept day left out, with the
# rho of all kept; noise: what the identity is times that for each day. Limits
# of eigenvalues hold before a kept day is left out.
distances_R <- function(x, kept, noise = rep(1, nrow(x))) {
  h <- length(kept)
  center <- colMeans(x[kept, ])
  rho <- shrunk_R(x[kept, ], center, h - 1)$rho
  vapply(seq_len(nrow(x)), \(t) {
    others <- x[setdiff(kept, t), ]
    own <- (t %in% kept) * h / (h - 1) / (h - 2) * tcrossprod(x[t, ] - center)
    away_R(x[t, ], colMeans(others), stats::cov(others) + own, rho, noise[t],
           (1 - rho) * own)
  }, 1)
}

away_R <- function(day, center, s, rho, noise, less = 0) {
  v <- (1 - rho) * s + (rho + noise - 1) * diag(length(day))
  pairs <- eigen(v, symmetric = TRUE)
  values <- pmax(pairs$values, noise * min(1 / 2, rho + max(0, 1 - noise)))
  v <- pairs$vectors %*% (values * t(pairs$vectors))
  stats::mahalanobis(day, center, v - less)
}

# list(distances, kept)
scores_R <- function(x, noise = rep(1, nrow(x))) {
  h <- ceiling(0.75 * nrow(x))
  middle <- apply(x, 2, stats::median)
  d <- colSums(((t(x) - middle) / pmax(1, apply(x, 2, stats::mad)))^2)
  kept <- NULL
  for (step in 0:4) {
    before <- kept
    kept <- sort(order(d)[seq_len(h)])
    if (identical(kept, before) || step == 4) break
    all <- x[kept, ]
    m <- shrunk_R(all, colMeans(all), h - 1)
    d <- vapply(seq_len(nrow(x)), \(t) {
      away_R(x[t, ], colMeans(all), m$s, m$rho, noise[t])
    }, 1)
  }
  list(distances = distances_R(x, kept, noise), kept = kept)
}

# What five bettors make of a rank, for a change k days ago.
rank_bets_R <- function(rank, of, k) {
  part <- c(0.05, 0.2, 0.5)
  power <- c(0.2, 0.5)
  c((1 - part) * of / k * (rank <= k) + part,
    of * ((rank / of)^power - ((rank - 1) / of)^power))
}

# The evidence of one score, from the ranks of days judged.
evidence_R <- function(ranks, of) {
  days <- length(ranks)
  made <- vapply(seq_len(days), \(c) {
    each <- vapply(c:days, \(t) rank_bets_R(ranks[t], of[t], t - c + 1),
                   numeric(5))
    mean(apply(each, 1, prod))
  }, 1)
  sum(made / (seq_len(days) * (seq_len(days) + 1))) + 1 / (days + 1)
}

# The gain of a cut after each bin, of the rows of x.
gains_R <- function(x, least) {
  n <- nrow(x)
  d <- diff(x) / sqrt(2)
  m <- shrunk_R(d, numeric(ncol(x)), n - 1)
  v <- (1 - m$rho) * m$s + m$rho * diag(ncol(x))
  vapply(seq_len(n - 1), \(t) {
    if (min(t, n - t) < least) {
      return(0)
    }
    first <- seq_len(t)
    apart <- colMeans(x[first, , drop = FALSE]) -
      colMeans(x[-first, , drop = FALSE])
    t * (n - t) / n * stats::mahalanobis(apart, numeric(ncol(x)), v)
  }, 1)
}

# All orders of 1, ..., n, a row each.
all_orders <- function(n) {
  if (n == 1L) {
    return(matrix(1L))
  }
  shorter <- all_orders(n - 1L)
  do.call(rbind, lapply(seq_len(n), \(last) {
    cbind(shorter + (shorter >= last), last, deparse.level = 0)
  }))
}

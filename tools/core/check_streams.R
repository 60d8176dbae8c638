# What streams.c prints, anew.

shrunk <- function(x, center = colMeans(x), free = nrow(x) - 1) {
  x <- sweep(x, 2, center)
  s <- crossprod(x) / free
  rho <- (mean(rowSums(x^2)^2) - sum(s^2)) / nrow(x) /
    sum((s - diag(ncol(s)))^2)
  list(s = s, rho = min(1, max(0.05, rho)))
}

check_shrinkage <- function() {
  x <- t(input_matrix(73, 5, 24)) * cbind(0:23 / 6, 1, 1, 1, 1)
  metric <- shrunk(x, numeric(5), 23)
  check("shrinkage", metric$rho)
  check("shrunk_moments", metric$s)
  root <- chol((1 - metric$rho) * metric$s + metric$rho * diag(5))
  check("whitened", t(x %*% solve(root)), 1e-12)
}

# Eigenvalues for a day of this noise, not less than about half of it.
day_values <- function(values, rho, noise) {
  pmax((1 - rho) * values + rho + noise - 1,
       noise * min(0.5, rho + max(0, 1 - noise)))
}

# The distance of day t from the days kept, itself left out.
day_distance <- function(x, noise, t, kept) {
  rho <- shrunk(x[kept, ])$rho
  others <- setdiff(kept, t)
  own <- t %in% kept
  s <- stats::cov(x[others, ])
  pairs <- eigen(if (own) s else shrunk(x[kept, ])$s, symmetric = TRUE)
  if (own) {
    # The floor under eigenvalues stands before the day is taken away.
    h <- length(kept)
    all <- eigen(stats::cov(x[kept, ]) * (h - 1) / (h - 2), symmetric = TRUE)
    value <- day_values(all$values, rho, noise[t])
    a <- all$vectors %*% (t(all$vectors) * value)
    away <- x[t, ] - colMeans(x[kept, ])
    a <- a - (1 - rho) * h / ((h - 1) * (h - 2)) * tcrossprod(away)
    away <- away * h / (h - 1)
    return(drop(away %*% solve(a, away)))
  }
  value <- day_values(pairs$values, rho, noise[t])
  along <- crossprod(pairs$vectors, x[t, ] - colMeans(x[kept, ]))
  sum(along^2 / value)
}

check_days <- function() {
  n <- 24
  x <- t(input_matrix(70, 5, n)) * rep(c(2, 9), c(n - 2, 2))
  noise <- c(1, 1.7, 1, 0.4)[(seq_len(n) - 1) %% 4 + 1]
  middle <- apply(x, 2, stats::median)
  units <- pmax(1, apply(x, 2, stats::mad))
  d <- colSums(((t(x) - middle) / units)^2)
  for (step in 1:5) {
    kept <- sort(order(d)[1:18])
    if (step > 1 && identical(kept, before) || step == 5) break
    before <- kept
    metric <- shrunk(x[kept, ])
    pairs <- eigen(metric$s, symmetric = TRUE)
    d <- vapply(1:n, \(t) {
      value <- day_values(pairs$values, metric$rho, noise[t])
      sum(crossprod(pairs$vectors, x[t, ] - colMeans(x[kept, ]))^2 / value)
    }, 1)
  }
  same("day_kept", seq_len(n) %in% kept)
  of <- \(kept) vapply(1:n, \(t) day_distance(x, noise, t, kept), 1)
  # Some 100 eps, by eigenvectors and a change of rank one.
  check("day_distances", of(kept), 1e-11)
  logs <- log(of(1:n))
  others <- logs[-n]
  check("day_outlying", (logs[n] - mean(others)) /
          (stats::sd(others) * sqrt(1 + 1 / (n - 1))), 1e-11)
  # By the mean and the variance of random permutations' own formulas: the
  # variance of a sum of steps over all pairs of places.
  segment <- rep(1:3, c(3, 11, 10))
  moments <- vapply(2:3, \(g) {
    d <- as.matrix(stats::dist(x[segment == g, ]))^2
    m <- nrow(d)
    steps <- sum(d[cbind(2:m, 1:(m - 1))])
    off <- d[row(d) != col(d)]
    two <- mean(vapply(1:m, \(i) {
      mean(outer(d[i, -i], d[i, -i])[!diag(m - 1)])
    }, 1))
    four <- mean(unlist(lapply(1:m, \(i) lapply(setdiff(1:m, i), \(j) {
      rest <- d[-c(i, j), -c(i, j)]
      d[i, j] * mean(rest[row(rest) != col(rest)])
    }))))
    mean <- (m - 1) * mean(off)
    c(steps - mean, (m - 1) * mean(off^2) + 2 * (m - 2) * two +
        (m - 2) * (m - 3) * four - mean^2)
  }, numeric(2))
  check("day_neighbors", sum(moments[1, ]) / sqrt(sum(moments[2, ])), 1e-11)
}

check_evidence <- function() {
  k <- c(6, 5, 3, 1)
  bets <- vapply(k, \(k) vapply(c(1, 4, 9), \(j) {
    log(c((1 - c(0.05, 0.2, 0.5)) * 9 / k * (j <= k) + c(0.05, 0.2, 0.5),
          9 * ((j / 9)^c(0.2, 0.5) - ((j - 1) / 9)^c(0.2, 0.5))))
  }, numeric(5)), matrix(0, 5, 3))
  check("rank_bets", bets)
  capital <- array(inputs(71, 60), c(5, 3, 4))
  start <- c(1, 2, 4, 6)
  prior <- 1 / (start * (start + 1))
  weigh <- function(made, weights, names) {
    dated <- weights * (drop(prior %*% t(made)) + 1 / 7)
    run <- weights * rowSums(made)
    check(names[1], c(log(max(dated)), log(max(run)),
                      which.max(prior * made[which.max(dated), ]) - 1,
                      which.max(made[which.max(run), ]) - 1))
    check(names[2], apply(log(made / apply(made, 1, max)), 2, max))
  }
  weigh(apply(exp(capital), 2:3, mean), c(0.5, 0.25, 0.25),
        c("weighed", "lead"))
  weigh(t(apply(exp(capital), 3, mean)), 1, c("weighed_one", "lead_one"))
}

check_changes <- function() {
  n <- 24
  x <- t(input_matrix(72, 5, n)) + rep(c(0, 2), c(15, 9))
  x <- sweep(x, 2, colMeans(x))
  metric_of <- function(d) {
    metric <- shrunk(d / sqrt(2), numeric(5), nrow(d))
    chol((1 - metric$rho) * metric$s + metric$rho * diag(5))
  }
  gain <- function(order) {
    y <- x[order, ]
    y <- y %*% solve(metric_of(diff(y)))
    vapply(seq_len(n - 1), \(t) {
      apart <- colMeans(y[1:t, , drop = FALSE]) -
        colMeans(y[-(1:t), , drop = FALSE])
      if (t < 2 || t > n - 2) 0 else t * (n - t) / n * sum(apart^2)
    }, 1)
  }
  orders <- list(1:n, (0:(n - 1) * 7) %% n + 1, n:1)
  check("cut_gains", vapply(orders, gain, numeric(n - 1)), 1e-12)
  y <- x %*% solve(metric_of(diff(x)[-c(6, 15), ]))
  cost <- \(i, j) {
    part <- y[i:j, , drop = FALSE]
    sum(sweep(part, 2, colMeans(part))^2)
  }
  costs <- outer(1:n, 1:n, Vectorize(\(i, j) if (i > j) 0 else cost(i, j)))
  # Differences of sums of squares.
  check("segment_costs", t(costs), 1e-12)
  totals <- c(cost(1, n), vapply(1:4, \(cuts) {
    ends <- utils::combn(2:(n - 2), cuts)
    min(apply(ends, 2, \(at) {
      from <- c(1, at + 1)
      to <- c(at, n)
      if (any(to - from < 1)) Inf else sum(costs[cbind(from, to)])
    }))
  }, 1))
  check("segment_totals", totals, 1e-12)
  last <- matrix(got("segment_last"), n)
  for (count in 2:5) {
    end <- n
    sum <- 0
    for (k in count:1) {
      sum <- sum + costs[last[end, k], end]
      end <- last[end, k] - 1
    }
    small(abs(sum / totals[count] - 1) + end, 1e-12, "segment_last")
  }
}

check_streams <- function() {
  check_shrinkage()
  check_days()
  check_evidence()
  check_changes()
}

# Class probabilities from decision values, and how far they may be believed.

# c(A, B) of Platt: 1/(1 + exp(A f + B)) is the probability that `second` is
# TRUE where the decision value is f. The targets are not 0 and 1, and so A and
# B are finite whatever f; A is at most 0. By Newton's method, f in units of its
# spread.
fit_sigmoid <- function(f, second) {
  counts <- c(sum(!second), sum(second))
  target <- ifelse(second, (counts[2L] + 1) / (counts[2L] + 2),
                   1 / (counts[1L] + 2))
  center <- mean(f)
  unit <- mean(abs(f - center))
  # Where f does not vary but for rounding it says nothing.
  if (!(unit > length(f) * .Machine$double.eps * max(abs(f)))) unit <- Inf
  z <- cbind((f - center) / unit, 1)
  odds <- \(at) drop(z %*% at)
  at <- stats::nlminb(
    c(0, 0),
    \(at) sum(target * odds(at) - stats::plogis(odds(at), log.p = TRUE)),
    \(at) crossprod(z, target - stats::plogis(-odds(at))),
    \(at) crossprod(z, stats::dlogis(odds(at)) * z),
    upper = c(0, Inf), control = list(rel.tol = 1e-14)
  )$par
  if (at[1L] >= 0) at <- c(0, -stats::qlogis(mean(target)))
  c(A = at[1L] / unit, B = at[2L] - at[1L] / unit * center)
}

# Of machines for pairs of classes, whose columns are those of combn(): c(A, B)
# in the rows.
fit_sigmoids <- function(decision, y) {
  pairs <- utils::combn(levels(y), 2L)
  sigmoids <- t(vapply(seq_len(ncol(pairs)), \(p) {
    own <- y %in% pairs[, p]
    fit_sigmoid(decision[own, p], y[own] == pairs[2L, p])
  }, numeric(2)))
  rownames(sigmoids) <- colnames(decision)
  sigmoids
}

# The probability of each level, in columns.
class_probability <- function(decision, sigmoids, levels) {
  odds <- decision * rep(sigmoids[, 1L], each = nrow(decision)) +
    rep(sigmoids[, 2L], each = nrow(decision))
  probability <- couple_pairs(odds, length(levels))
  dimnames(probability) <- list(rownames(decision), levels)
  probability
}

# p that minimizes the sum of (r_ji p_i - r_ij p_j)^2 over pairs, with the sum 1
# (Wu, Lin and Weng 2004, the second method), r_ij that of i against j: from the
# log odds of i against j > i, a row for each p.
couple_pairs <- function(odds, count) {
  if (count == 2L) {
    return(cbind(stats::plogis(odds[, 1L]), stats::plogis(-odds[, 1L])))
  }
  pairs <- t(utils::combn(count, 2L))
  p <- vapply(seq_len(nrow(odds)), \(i) {
    r <- matrix(0, count, count)
    r[pairs] <- stats::plogis(odds[i, ])
    r[pairs[, 2:1]] <- stats::plogis(-odds[i, ])
    q <- diag(colSums(r^2)) - r * t(r)
    solve(rbind(cbind(q, 1), rep(1:0, c(count, 1L))),
          rep(0:1, c(count, 1L)))[seq_len(count)]
  }, numeric(count))
  # None is negative but by rounding.
  p <- pmax(t(p), 0)
  p / rowSums(p)
}

# --- Calibration -------------------------------------------------------------

# A table of how often the class of the largest probability is the true one, in
# ten bins of equal counts (ties stay in one bin), with the exact interval of
# Clopper and Pearson. probability: n x classes, each row by a fit without its
# point; truth: the class of each point, by name.
calibration_table <- function(probability, truth) {
  n <- nrow(probability)
  best <- max.col(probability, "first")
  claimed <- probability[cbind(seq_len(n), best)]
  right <- best == match(truth, colnames(probability))
  # Probabilities that differ by rounding only are ties.
  bin <- ceiling(10 * rank(signif(claimed, 10L)) / n)
  counts <- as.vector(table(bin))
  hits <- as.vector(tapply(right, bin, sum))
  data.frame(
    claimed = as.vector(tapply(claimed, bin, mean)), hit = hits / counts,
    lower = stats::qbeta(0.025, hits, counts - hits + 1),
    upper = stats::qbeta(0.975, hits + 1, counts - hits), n = counts
  )
}

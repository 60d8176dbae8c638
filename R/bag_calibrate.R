# Class probabilities from decision values.

# A and B of Platt: 1/(1 + exp(A f + B)) is the probability that `second` is
# TRUE where the decision value is f. The targets lie between 0 and 1, so that A
# and B are finite for every f; A is at most 0. For the optimization f is
# centered and divided by its spread.
fit_sigmoid <- function(f, second) {
  counts <- c(sum(!second), sum(second))
  target <- ifelse(second, (counts[2L] + 1) / (counts[2L] + 2),
                   1 / (counts[1L] + 2))
  center <- mean(f)
  unit <- mean(abs(f - center))
  # If f varies only by rounding, it is no evidence, and A becomes 0.
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

# A and B for each machine for a pair of classes, in rows. The columns of
# decision values are the pairs in the order of combn().
fit_sigmoids <- function(decision, y) {
  pairs <- utils::combn(levels(y), 2L)
  sigmoids <- t(vapply(seq_len(ncol(pairs)), \(p) {
    own <- y %in% pairs[, p]
    fit_sigmoid(decision[own, p], y[own] == pairs[2L, p])
  }, numeric(2)))
  rownames(sigmoids) <- colnames(decision)
  sigmoids
}

# The n x levels matrix of the probabilities of classes.
class_probability <- function(decision, sigmoids, levels) {
  odds <- decision * rep(sigmoids[, 1L], each = nrow(decision)) +
    rep(sigmoids[, 2L], each = nrow(decision))
  probability <- couple_pairs(odds, length(levels))
  dimnames(probability) <- list(rownames(decision), levels)
  probability
}

# The probabilities p of `count` classes, in a row for each row of log odds of i
# against j > i. They minimize the sum of (r_ji p_i - r_ij p_j)^2 over pairs and
# have the sum 1, where r_ij is the probability of i against j (Wu, Lin and Weng
# 2004, the second method).
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
  # A probability can be negative only by rounding.
  p <- pmax(t(p), 0)
  p / rowSums(p)
}

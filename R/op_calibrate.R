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

# --- The picture -------------------------------------------------------------

# How often the class of the largest probability is the true one, in ten bins of
# equal counts, but for ties, with the exact interval of Clopper and Pearson.
# probability: a row for each point, by a fit without it; a column for each
# class. truth: the class of each, as their names or numbers.
picture_calibration <- function(probability, truth, title) {
  n <- nrow(probability)
  best <- max.col(probability, "first")
  claimed <- probability[cbind(seq_len(n), best)]
  if (!is.numeric(truth)) truth <- match(truth, colnames(probability))
  right <- best == truth
  # Rounding tells no probabilities apart.
  bin <- ceiling(10 * rank(signif(claimed, 10L)) / n)
  counts <- as.vector(table(bin))
  hits <- as.vector(tapply(right, bin, sum))
  value <- data.frame(
    claimed = as.vector(tapply(claimed, bin, mean)), hit = hits / counts,
    lower = stats::qbeta(0.025, hits, counts - hits + 1),
    upper = stats::qbeta(0.975, hits + 1, counts - hits), n = counts
  )
  means <- format(c(mean(claimed), mean(right)), digits = 2L)
  label <- c("as claimed", "share, 95% interval")
  ends <- c(min(claimed), 1)
  new_picture(
    title, "largest claimed probability", "share that was right",
    list(new_layer("line", x = ends, y = ends, col = "grey40", lty = 2,
                   level = label[1L]),
         span_layer(value$claimed, value$lower, value$upper),
         new_layer("points", x = value$claimed, y = value$hit, pch = 21L,
                   bg = level_palette[1L], col = "white", cex = 1.3,
                   level = label[2L], main = TRUE)),
    value, ylim = 0:1,
    note = list(text = paste0("claimed ", means[1L], ", right ", means[2L],
                              " on average"), color = "grey40"),
    key = rbind(key_entries(label[1L], "grey40", "line", lty = 2L),
                key_entries(label[2L], level_palette[1L]))
  )
}

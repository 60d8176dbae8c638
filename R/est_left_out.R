# Estimates are judged by points that they were made without; the guard says how
# far this judgment can be believed.

# The products of q candidates without the points of each fold: inner, q x q x
# folds, their inner products; at, q x n, their values at the points that were
# left out.
left_out_products <- function(candidates, sample, fold) {
  weighted <- vapply(candidates, has_weights, NA)
  smooth <- vapply(candidates, inherits, NA, "est_smooth")
  if (all(weighted | smooth)) {
    shared_products(candidates, sample, fold, weighted)
  } else {
    refitted_products(candidates, sample, fold)
  }
}

# The products of candidates that are weights on the points, or smoothing: these
# follow from the Gram matrix, and no candidate is fitted again.
shared_products <- function(candidates, sample, fold, weighted) {
  n <- sample$n
  q <- length(candidates)
  count <- max(fold)
  inner <- array(0, c(q, q, count))
  at <- matrix(0, q, n)
  weights <- NULL
  if (any(weighted)) {
    check_memory(n * sum(weighted), count, "use fewer 'folds'", copies = 4,
                 what = "the weights of all folds")
    each <- lapply(candidates[weighted],
                   \(one) weights_left_out(one, sample, fold))
    weights <- aperm(array(unlist(each), c(n, count, length(each))), c(1, 3, 2))
    values <- array(product(sample_matrix(sample), matrix(weights, n)),
                    dim(weights))
    for (f in seq_len(count)) {
      v <- matrix(values[, , f], n)
      inner[weighted, weighted, f] <- crossprod(matrix(weights[, , f], n), v)
      at[weighted, fold == f] <- t(take_rows(v, fold == f))
    }
  }
  if (!all(weighted)) {
    smooth <- candidates[!weighted]
    times <- vapply(smooth, `[[`, numeric(1), "c")
    folds <- smooth_folds(sample, fold, vapply(smooth, `[[`, numeric(1), "h"),
                          weights, TRUE)
    at[!weighted, ] <- times * folds$at
    inner[!weighted, !weighted, ] <- folds$norms *
      as.vector(outer(times, times))
    if (any(weighted)) {
      inner[!weighted, weighted, ] <- times * folds$cross
      inner[weighted, !weighted, ] <- aperm(times * folds$cross, c(2, 1, 3))
    }
  }
  list(inner = inner, at = at)
}

# The products of any candidates, each fitted again without each fold.
refitted_products <- function(candidates, sample, fold) {
  q <- length(candidates)
  inner <- array(0, c(q, q, max(fold)))
  at <- matrix(0, q, sample$n)
  for (f in seq_len(max(fold))) {
    out <- which(fold == f)
    kept <- sample_take(sample, -out)
    new <- new_points(take_rows(sample$x, out))
    parts <- all_parts(candidates, kept)
    inner[, , f] <- inner_pairs(parts, sample$kernel)
    at[, out] <- t(vapply(parts, \(one) {
      parts_at(merge_parts(one), sample$kernel, new)
    }, numeric(length(out))))
  }
  list(inner = inner, at = at)
}

# The q x q mean over the points of the inner products of their folds.
mean_inner <- function(inner, fold) {
  mean <- matrix(matrix(inner, ncol = max(fold)) %*% tabulate(fold),
                 nrow(inner)) / length(fold)
  (mean + t(mean)) / 2
}

# --- The guard ---------------------------------------------------------------

# The guard of an estimate mu_w, which has these weights of candidates; `plain`
# are the weights that make the average mu^ of them. Returns share, the t of the
# guarded estimate (1 - t) mu^ + t mu_w; gain, the squared error that it saves
# at a point left out, on average; and error, the standard error of the gain. If
# D and s are the gain and the error at t = 1, then t is D^2/(D^2 + s^2). It is
# 0 if D <= 0, or if there are only two points, whose gains are equal.
left_out_guard <- function(products, fold, weights, plain) {
  norm2 <- \(w) apply(products$inner, 3L, \(inner) sum(w * (inner %*% w)))[fold]
  away <- weights - plain
  gains <- 2 * drop(away %*% products$at) - norm2(weights) + norm2(plain)
  # In this unit the squares of the gains do not overflow.
  unit <- power_below(max(abs(gains)))
  error <- \(gains) stats::sd(gains / unit) / sqrt(length(gains)) * unit
  seen <- mean(gains) > 0 && length(gains) > 2L
  share <- if (seen) 1 / (1 + (error(gains) / mean(gains))^2) else 0
  kept <- share * gains + share * (1 - share) * norm2(away)
  list(share = share, gain = mean(kept), error = error(kept))
}

# The fit with a field `saved` in its guard: the guarded estimate saves at least
# about this share of the squared error of the average. The average of m points
# has the squared error (varrho - rho) n/(n - 1)/m, which is estimated without
# bias. Gains may be alike by chance, so that their error counts as at least
# gain/sqrt(n). If more than the whole error seems to be saved, `saved` is 0.
promised <- function(fit, fold) {
  if (!is.null(fit$guard)) {
    n <- length(fold)
    risk <- (fit$varrho - fit$rho) * n / (n - 1) *
      mean(1 / (n - tabulate(fold)[fold]))
    gain <- fit$guard$gain
    least <- gain - max(fit$guard$error, gain / sqrt(n))
    # Smaller gains are rounding of kernel values.
    seen <- least > 1e-12 * fit$varrho && least <= risk
    fit$guard$saved <- if (seen) least / risk else 0
  }
  fit
}

# Intervals for the values of a kernel mean, E k(X, z) for each z by itself. If
# k is bounded they come from bets or from the mean alone, and hold for every n;
# else they come from the normal distribution.

a_level <- number(0, 1, open = TRUE)

# Stops unless the estimate is the average, as intervals are known for that
# only.
check_plain_mean <- function(object, what) {
  if (!is_average(object$estimator)) {
    stop_input("'object' must be the KME for ", what, ", not estimator ",
               estimator_word(object$estimator), ", which is biased by intent ",
               "(print() shows its distance to the KME); update(object, ",
               "estimator = \"kme\") is the KME")
  }
  weights <- object$sample$weights
  if (!is.null(weights) && max(abs(length(weights) * weights - 1)) > 1e-8) {
    stop_input("'object' must be a fit without 'weights' for ", what, ": the ",
               "law of a mean with weights of your own is not known")
  }
}

# The ends, m x 2, of intervals around the values at new points. own: TRUE if
# these are the points of the sample, FALSE if none is, NULL if some may be.
value_ends <- function(object, new, value, level, method = NULL, own = NULL) {
  method <- take(method, maybe(choice("betting", "chernoff", "normal")))
  check_plain_mean(object, "an interval")
  sample <- object$sample
  range <- if (!identical(method, "normal")) value_range(sample)
  if (is.null(range)) {
    if (!is.null(method) && method != "normal") {
      stop_input("'method' must be \"normal\" for a kernel that is not ",
                 "bounded, or whose k(x, x) is not the same for all x")
    }
    half <- stats::qnorm((1 + level) / 2) *
      sqrt(section_variance(sample, new, value) / object$n)
    check_result(half, "the variance of a kernel value")
    return(cbind(value - half, value + half))
  }
  ends <- bounded_ends(sample, new, value, range, method, 1 - level, own)
  range[1L] + (range[2L] - range[1L]) * ends
}

# --- Bounded kernels ---------------------------------------------------------

# The value kappa = k(x, x) if it is the same for all x, as far as the sample
# shows; else NULL.
common_diagonal <- function(sample) {
  if (is.null(sample$kernel) || kernel_has(sample$kernel, "function")) {
    diagonal <- c(sample_diagonal(sample_support(sample)),
                  sample$moments$trace)
    if (max(diagonal) - min(diagonal) <= 1e-8 * max(diagonal)) {
      return(mean(diagonal))
    }
  } else {
    return(flat_diagonal(sample$kernel))
  }
}

# Is k >= 0, as far as the sample shows?
is_nonnegative <- function(sample) {
  if (kernel_has(sample$kernel, "flat diagonal")) {
    return(TRUE)
  }
  held <- sample_support(sample)
  least <- if (stores_gram(held)) min(held$gram$K) else
    fold(held$kernel, held$x, NULL, NULL, min, min)
  least >= 0
}

# The bounds of k, or NULL: [0, kappa], or [-kappa, kappa].
value_range <- function(sample) {
  if (kernel_has(sample$kernel, "function") && !stores_gram(sample)) {
    sample <- sample_take(sample, evenly(sample$n, most_function_points))
  }
  kappa <- common_diagonal(sample)
  if (!is.null(kappa) && kappa > 0) {
    c(if (is_nonnegative(sample)) 0 else -kappa, kappa)
  }
}

# If the kernel is an R function, its range is taken from all pairs of at most
# this many points.
most_function_points <- 300L

# The ends of intervals, in units of the range of k.
bounded_ends <- function(sample, new, value, range, method, rest, own) {
  UseMethod("bounded_ends")
}
bounded_ends.kernmean_sample <- function(sample, new, value, range, method,
                                         rest, own) {
  lower_ends <- if (identical(method, "chernoff")) mean_ends else bet_ends
  ends <- over_panels(sample, new, \(values, at) {
    values <- unit_values(values, range)
    # A new point that equals a point of the sample may be that point or another
    # one. The lower end leaves the point of the sample out, the upper end
    # counts it.
    above <- if (isTRUE(own)) at else integer(length(at))
    below <- if (is.null(own)) equal_columns(values) else above
    values <- t(values)
    rbind(lower_ends(values, below, rest),
          1 - lower_ends(1 - values, above, rest))
  })
  matrix(ends, ncol = 2L, byrow = TRUE)
}

# The values in units of their range.
unit_values <- function(values, range) {
  slack <- 1e-8 * range[2L]
  most <- max(values, range[1L])
  least <- min(values, range[2L])
  if (least < range[1L] - slack || most > range[2L] + slack) {
    stop_input("'newdata' must have kernel values from ",
               format_number(range[1L]), " to ", format_number(range[2L]),
               ", as those of the sample, or 'method' must be \"normal\"")
  }
  if (least < range[1L] || most > range[2L]) {
    values[] <- pmin(pmax(values, range[1L]), range[2L])
  }
  if (identical(range, c(0, 1))) values else
    (values - range[1L]) / (range[2L] - range[1L])
}

# For each row of kernel values the first column with the largest possible
# value, which is the same point; 0 for none.
equal_columns <- function(values) {
  columns <- max.col(values, "first")
  most <- values[cbind(seq_along(columns), columns)]
  ifelse(most > 1 - 1e-8, columns, 0L)
}

# Lower limits of the means of values in [0, 1], a column for each mean, without
# the row `out` (0 for none). A limit is above the mean with probability rest/2
# at most.
bet_ends <- function(values, out, rest) {
  .Call(C_r_lower_ends, values, out, rest)
}

# Lower limits like those of bet_ends(), from the means of the values alone.
mean_ends <- function(values, out, rest) {
  n <- nrow(values) - (out > 0L)
  gone <- take_rows(cbind(out, seq_along(out)), out > 0L)
  sums <- colSums(values)
  sums[out > 0L] <- sums[out > 0L] - values[gone]
  chernoff_end(ifelse(n > 0, sums / n, 0), n, rest)
}

# The least m <= mean with n kl(mean, m) <= log(2/rest), kl the divergence of
# Bernoulli laws: by bisection, from below.
chernoff_end <- function(mean, n, rest) {
  mean <- pmin(pmax(mean, 0), 1)
  part <- \(p, q) ifelse(p > 0, p * log(p / q), 0)
  low <- 0 * mean
  high <- mean
  for (step in 1:60) {
    m <- (low + high) / 2
    inside <- n * (part(mean, m) + part(1 - mean, 1 - m)) <= log(2 / rest)
    high[inside] <- m[inside]
    low[!inside] <- m[!inside]
  }
  low
}

# --- By the normal law -------------------------------------------------------

# The variance of k(x_i, z) over the sample, with the divisor n - 1, at new
# points where its mean is known.
section_variance <- function(sample, new, mean) {
  UseMethod("section_variance")
}
section_variance.kernmean_sample <- function(sample, new, mean) {
  n <- sample$n
  if (n < 2L) {
    stop_input("'object' must be a fit of at least 2 points for an interval")
  }
  squared <- if (is.null(new$values)) squared_kernel(sample$kernel)
  if (is.null(squared)) {
    return(over_panels(sample, new, \(values, at) {
      rowSums((values - mean[at])^2)
    }) / (n - 1))
  }
  sample$kernel <- squared
  squares <- drop(sample_at(sample, new, rep(1 / n, n)))
  pmax(0, squares - mean^2) * n / (n - 1)
}

# A number for each new point: use(values, rows) makes it from kernel values of
# new points and the sample, for some rows at a time.
over_panels <- function(sample, new, use) {
  size <- max(1, floor(2^22 / sample$n))
  unlist(lapply(row_panels(seq_len(new$m), size), \(rows) {
    use(sample_cross(sample, new, rows), rows)
  }))
}

# Flexible shrinkage (F-KMSE): beta = (K + lambda I)^{-1} (K 1_n - f*(x)), from
# the spectrum of the Gram matrix, its tridiagonal form or a Cholesky factor.

#' @rdname estimators
#' @export
est_fkmse <- function(lambda = NULL, select = NULL, target = NULL, ...,
                      guard = FALSE) {
  check_dots(...)
  lambda <- take(lambda, an_amount)
  select <- check_rule(select, c("loocv", "gcv", "printed"), lambda, "lambda")
  if (!is.null(target) && isTRUE(select %in% c("gcv", "printed"))) {
    stop_input(
      "'target' must be NULL for select = \"", select, "\"; use \"loocv\""
    )
  }
  with_guard(new_estimator(
    "fkmse", "F-KMSE", "flexible shrinkage", "F-COSE",
    arguments = list(lambda = lambda, select = select,
                     target = check_target_kind(target)),
    traits = c("gram", if (!identical(select, "loocv") && is.null(target)) {
      "sums"
    })
  ), guard)
}
register_estimator("fkmse", est_fkmse, candidates = \(sample) {
  amounts <- c(0.003, 0.03, 0.3)
  g <- sample_gram(sample)
  largest <- max(0, g$values %||% spectrum_values(g$K))
  stats::setNames(lapply(amounts * largest, est_fkmse),
                  paste("F-KMSE", amounts, "gamma_1"))
})

est_fit.est_fkmse <- function(estimator, sample) {
  check_shrinkable(estimator, sample)
  fit_flexible(sample, estimator)
}

# The estimate. A sketch has a method of its own.
fit_flexible <- function(sample, estimator) UseMethod("fit_flexible")
fit_flexible.kernmean_sample <- function(sample, estimator) {
  sample <- form_sample(sample)
  g <- sample_gram(sample)
  moments <- sample_moments(sample)
  warn_own_target(estimator, sample)
  target <- check_target(estimator$target, sample)
  n <- sample$n
  select <- estimator$select
  tuned <- if (is.null(select)) list(lambda = estimator$lambda, border = FALSE)
    else select_lambda(g, select, target)
  if (is.null(select) || select == "loocv" || tuned$lambda == 0) {
    weights <- fkmse_weights(g, tuned$lambda, target, moments$rows)
    fitted <- drop(sample_apply(sample, weights))
  } else {
    estimate <- tridiagonal_estimate(g, tuned$lambda)
    weights <- estimate$weights
    fitted <- estimate$fitted
  }
  norm2 <- sum(weights * fitted)
  if (!is.null(target)) {
    norm2 <- norm2 + 2 * sum(weights * target$at) + target$norm2
    fitted <- fitted + target$at
  }
  new_estimate(weights, fitted, norm2, moments, tuned$lambda, list(
    target = target$embedding, share = 1, score = tuned$score,
    minimum = tuned$minimum, border = tuned$border,
    reference = if (identical(select, "loocv")) {
      loo_score(0, n, moments$rho, moments$varrho)
    },
    select = select
  ))
}

est_weights.est_fkmse <- function(estimator, sample) {
  if (!is.null(estimator$select) || !is.null(estimator$target)) {
    return(NextMethod())
  }
  rows <- sample_rows(sample) / sample$n
  fkmse_weights(sample_gram(sample), estimator$lambda, NULL, rows)
}

# The weights without each fold. With A = (K + lambda I)^{-1}, the vector e of
# ones and s = Ae, the solution without the points I is r = s - A_.I A_II^{-1}
# s_I, which is 0 at I, and the weights are (e - lambda r)/(n - |I|) on the
# others: no system of the size of the sample is factored again. The blocks A_II
# are products of columns of L^{-1}, where LL' = K + lambda I. If I is one
# point, this is the formula behind the leave-one-out score.
weights_left_out.est_fkmse <- function(estimator, sample, fold) {
  lambda <- estimator$lambda
  g <- sample_gram(sample)
  # fkmse_weights() has the same limit.
  lower <- if (is.finite(lambda) && lambda > 1e-8 * sum(diag(g$K))) {
    cholesky_factor(g, lambda)
  }
  if (is.null(lower)) {
    return(NextMethod())
  }
  n <- sample$n
  solved <- drop(solve_factored(lower, rep(1, n)))
  inverse <- inverse_lower(lower)
  moved <- matrix(0, n, max(fold))
  for (f in seq_len(max(fold))) {
    out <- which(fold == f)
    block <- cholesky(cross(take_columns(inverse, out)))
    if (is.null(block)) {
      return(NextMethod())
    }
    moved[out, f] <- solve_factored(block, solved[out])
  }
  rest <- solved - solve_factored(lower, moved)
  kept <- outer(fold, seq_len(max(fold)), `!=`)
  kept * (1 - lambda * rest) / rep(colSums(kept), each = n)
}

# Small samples are fitted by the core, several at a time. Which way a sample
# takes depends on its own size only.
est_bags.est_fkmse <- function(estimator, sample, sizes) {
  rule <- estimator$select
  small <- sizes <= most_points_of_small_bags &
    (is.null(rule) || rule == "loocv")
  weights <- numeric(sum(sizes))
  lambda <- weights[seq_along(sizes)]
  border <- lambda > 0
  for (bags in list(which(small), which(!small))) {
    if (!length(bags)) next
    rows <- bag_codes(sizes) %in% bags
    some <- sample_take(sample, which(rows))
    if (small[bags[1L]]) {
      check_top(max(sample_diagonal(some)) * max(sizes))
      fits <- .Call(C_r_bag_flexible, sample_source(some),
                    as.integer(sizes[bags]), estimator$lambda)
      chosen <- fits
    } else {
      fits <- est_bags.kernmean_estimator(estimator, some, sizes[bags])
      chosen <- fits$chosen
    }
    weights[rows] <- fits$weights
    lambda[bags] <- chosen$lambda
    border[bags] <- chosen$border
  }
  list(weights = weights, chosen = c(list(lambda = lambda), if (any(border)) {
    list(border = border)
  }))
}

# The n weights for a lambda; rows are the values of the average at the points.
fkmse_weights <- function(g, lambda, target, rows) {
  n <- length(rows)
  if (lambda == Inf) {
    return(numeric(n))
  }
  if (lambda == 0 && is.null(target)) {
    return(rep(1 / n, n))
  }
  f <- target$at %||% numeric(n)
  # A solve with the Cholesky factor loses digits, in proportion to
  # trace/lambda; the spectrum loses none.
  if (is.null(g$vectors %||% g$range) && lambda > 1e-8 * sum(diag(g$K))) {
    lower <- cholesky_factor(g, lambda)
    if (!is.null(lower)) {
      return(solve_factored(lower, rows - f))
    }
  }
  solve_spectrum(g, -f, lambda, 1 / n)
}

# The weights without a target, and the fitted values. As K = QTQ' with Q e_1 =
# e/sqrt(n), the weights are Qz with z = (T + lambda I)^{-1} T e_1/sqrt(n), and
# their fitted values are QTz. The BLAS is not called, as its threads would
# disturb those of the next fit.
tridiagonal_estimate <- function(g, lambda) {
  t <- tridiagonal(g)
  n <- length(t$diagonal)
  column <- c(t$diagonal[1L], t$off[1L], numeric(n - 2L)) / sqrt(n)
  z <- .Call(C_r_tridiag_solve, t$diagonal, t$off, lambda, column)
  tz <- t$diagonal * z + c(t$off * z[-1L], 0) + c(0, t$off * z[-n])
  list(weights = .Call(C_r_tridiag_apply, t$reflectors, t$tau, z),
       fitted = .Call(C_r_tridiag_apply, t$reflectors, t$tau, tz))
}

# --- Selection -------------------------------------------------------------

select_lambda <- function(g, select, target = NULL) {
  top <- spectrum(g, if (select == "loocv") "range" else "projections")
  search_lambda(score_function(g, select, target), top$values[1L])
}

# The score as a function of a vector of lambdas.
score_function <- function(g, select, target) {
  if (select == "loocv") {
    s <- spectrum(g, "range")
    norm2 <- target$norm2 %||% 0
    diagonal <- diag(g$K)
    along <- cross(s$vectors, cbind(rep(1, nrow(s$vectors)), target$at))
    return(\(lambda) {
      .Call(C_r_score_loocv, s$values, s$vectors, along, diagonal, target$at,
            norm2, lambda)
    })
  }
  s <- spectrum(g, "projections")
  q <- length(s$values)^2 * s$projections^2
  trace <- sum(diag(g$K))
  switch(select,
    gcv = \(lambda) .Call(C_r_score_gcv, s$values, q, trace, lambda),
    printed = \(lambda) .Call(C_r_score_printed, s$values, q, lambda)
  )
}

# Stops if the end of the search, 1e4 times the largest eigenvalue `top`, is not
# a finite number.
check_top <- function(top) {
  if (!is.finite(1e4 * top)) {
    stop_kernmean("numeric", "kernel values overflow; rescale the columns of ",
                  "'x'")
  }
}

# The lambda with the smallest score, on a grid of five values for each power of
# ten and then between them.
search_lambda <- function(score, top) {
  check_top(top)
  if (1e-10 * top < .Machine$double.xmin) {
    return(list(lambda = 0, score = NULL, minimum = 0, border = FALSE))
  }
  grid <- exp(seq(log(1e-10 * top), log(1e4 * top), length.out = 71L))
  tuned <- search_log(score, grid)
  list(
    lambda = tuned$at, score = score_curve(tuned$path, tuned$values),
    minimum = tuned$minimum, border = tuned$border
  )
}

# --- In tests --------------------------------------------------------------

est_settle.est_fkmse <- function(estimator, sample, where) {
  if (!is.null(estimator$select)) {
    estimator <- est_fkmse(select_lambda(sample_gram(sample),
                                         estimator$select)$lambda)
  }
  new_settlement(estimator, list(lambda = estimator$lambda))
}

# The common lambda of two variables is the geometric mean of theirs. No pairing
# of x and y is looked at, so that permutations stay exact.
est_between.est_fkmse <- function(a, b) est_fkmse(sqrt(a$lambda * b$lambda))

# --- print -----------------------------------------------------------------

est_lines.est_fkmse <- function(estimator, fit, digits, plain = "the KME",
                                target = "the target") {
  border <- if (fit$border) {
    small <- fit$lambda < fit$score$lambda[2L]
    paste("lambda is on the border of the range searched: nearly",
          if (small) plain else target)
  }
  shrinkage_lines(estimator, fit, digits, plain, border)
}

# The lower triangle L of K + lambda I = LL', which the gram keeps; NULL where
# that matrix is not positive definite to rounding.
cholesky_factor <- function(g, lambda) {
  if (is.null(g$cholesky$lower) || g$cholesky$lambda != lambda) {
    check_memory(nrow(g$K), nrow(g$K), "use fewer rows")
    lower <- cholesky(g$K, lambda)
    if (is.null(lower)) {
      return(NULL)
    }
    g$cholesky <- list(lambda = lambda, lower = lower)
  }
  g$cholesky$lower
}

# The smallest value of f along the logarithm of its argument, on a grid of
# equal steps and then, by Brent's method, in the two cells around the best:
# `at` and `minimum`; `border`, whether it lies at an end of the grid; `path`
# and `values`, all that was evaluated.
search_log <- function(f, grid) {
  last <- length(grid)
  values <- f(grid)
  best <- which.min(values)
  check_result(c(values[best], NaN)[1L], "the smallest score")
  around <- log(grid[c(max(1L, best - 1L), min(last, best + 1L))])
  path <- grid
  value_at <- function(l) {
    value <- f(exp(l))
    path <<- c(path, exp(l))
    values <<- c(values, value)
    if (is.finite(value)) value else .Machine$double.xmax
  }
  refined <- optimize(value_at, around, tol = 1e-5)
  better <- refined$objective <= values[best]
  at <- if (better) exp(refined$minimum) else grid[best]
  minimum <- min(refined$objective, values[best])
  cell <- diff(log(grid[1:2]))
  finite <- is.finite(values)
  list(
    at = at, minimum = minimum, path = c(path[finite], at),
    values = c(values[finite], minimum),
    border = min(abs(log(at) - log(grid[c(1L, last)]))) < 1e-3 * cell
  )
}

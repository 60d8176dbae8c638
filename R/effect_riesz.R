# The shelf effect_: weights that match embeddings, and effects of treatments.
#
# Offers from effect_riesz.R: effective_rows.
# Offers from effect_riesz_space.R: check_slopes, feature_slopes,
#   new_space.
# Offers from effect_weights.R: target_average, warn_outside.
# Offers from effect_weights_methods.R: change_data.
# Offers from effect_effect.R: influence_covariance, with_residuals.
# Offers from effect_methods.R: fit_lines.kme_effect.
#
# Riesz regression: the representer alpha of a linear functional of a regression
# g, E m(W; g) = E alpha(X) g(X), is a ridge regression with the features of g,
# and so is g itself. With H the columns without penalty made orthonormal
# (H'DH/n = I, D = diag(omega)), F the features less what H says of them and
# F'DF/n = V diag(v) V', both are regressions on the columns (H, FV), with the
# eigenvalues (1, v) and without a penalty for H.

# A Riesz regression with n rows of a source and a functional averaged over N
# rows.
#   f, h                n x r features of the source; n x q columns without
#                       penalty, the first of which is 1
#   m, m_h              the functional of both, a row for each of N; one row for
#                       a target that is no sample of rows, which is `fixed`
#   y                   outcomes of the source; 0 where there are none
#   omega, upsilon      weights of both kinds of rows, with mean 1
#   unit, target_unit   codes of what is left out together, of both kinds of
#                       rows; a fixed target is in no unit
#   fixed               see m
#   scale               what a penalty of 1 is: the mean of k(x, x)
#   map                 the map that made the features
#   own                 the rows of m and m_h that are those of f and h, or NULL
new_riesz <- function(f, h, m, m_h, omega, upsilon, unit, target_unit,
                      y = numeric(nrow(f)), fixed = FALSE, scale = 1,
                      map = NULL, own = NULL) {
  list(f = f, h = h, m = m, m_h = m_h, omega = omega, upsilon = upsilon,
       unit = unit, target_unit = target_unit, y = y, fixed = fixed,
       scale = scale, map = map, own = own)
}

# Linearly independent columns without penalty, orthonormal in the weighted
# mean: a list of these `columns` and of the matrix `from` with columns = h
# from.
orthonormal_columns <- function(h, omega) {
  # The columns are centered first, because columns far from 0 look linearly
  # dependent.
  turn <- diag(ncol(h))
  turn[1L, -1L] <- -colMeans(h)[-1L]
  h <- product(h, turn)
  found <- qr(h * sqrt(omega), tol = 1e-7)
  kept <- sort(found$pivot[seq_len(found$rank)])
  h <- take_columns(h, kept)
  white <- solve(chol(cross(h, h * omega) / nrow(h)))
  list(columns = product(h, white),
       from = product(take_columns(turn, kept), white))
}

# A Riesz regression in its axes, as a list of `ridge`, the ridge regression of
# y; `functional`, the functional applied to the axes; and `raw`, the (q + r) x
# axes matrix that turns coefficients of the axes into those of h and f.
riesz_system <- function(p) {
  n <- nrow(p$f)
  h <- orthonormal_columns(p$h, p$omega)
  gamma <- cross(h$columns, p$f * p$omega) / n
  f <- p$f - product(h$columns, gamma)
  pairs <- .Call(C_r_eigen, cross(f * sqrt(p$omega)) / n, ncol(f))
  free <- ncol(h$columns)
  raw <- rbind(
    cbind(h$from, -product(h$from, product(gamma, pairs$vectors))),
    cbind(matrix(0, ncol(f), free), pairs$vectors)
  )
  b <- product(cbind(p$m_h, p$m), raw)
  z <- if (!is.null(p$own)) take_rows(b, p$own) else
    cbind(h$columns, product(f, pairs$vectors))
  ridge <- new_ridge(c(rep(1, free), pmax(pairs$values, 0)),
                     cross(z, as.matrix(p$omega * p$y)) / n, z, free, p$omega)
  functional <- new_functional(b, p$upsilon)
  check_result(c(ridge[c("values", "right")], functional["target"]),
               "a moment of the features", "'x' and 'y'")
  list(ridge = ridge, functional = functional, raw = raw)
}

# The values at each row of the fits that leave its unit out, a column for each
# penalty.
riesz_left_out <- function(p, s, penalties) {
  functional <- s$functional
  target_unit <- p$target_unit
  if (p$fixed) {
    # A fixed target does not change when a row is left out: every row gets a
    # copy of it with weight 0.
    n <- nrow(p$f)
    functional <- new_functional(take_rows(functional$b, rep(1L, n)),
                                 numeric(n))
    functional$target <- s$functional$target
    target_unit <- p$unit
  }
  ridge_left_out(s$ridge, functional, penalties, p$y, p$unit, target_unit)
}

# --- Choice of the penalties -------------------------------------------------

# The leave-one-out losses, a row for each unit and a column for each penalty.
# Each row is predicted by the fit without its unit: `lambda`, the Riesz loss of
# alpha, and `mu`, the squared residuals of g.
left_out_losses <- function(p, s, penalties) {
  left <- riesz_left_out(p, s, penalties)
  target_unit <- if (p$fixed) p$unit else p$target_unit
  of_alpha <- s$functional$weights * left$of_alpha / length(target_unit)
  of_units <- \(rows, unit) {
    length(unique(unit)) * rowsum(rows, unit, reorder = FALSE)
  }
  n <- length(p$y)
  list(lambda = of_units(rbind(p$omega * left$alpha^2 / n, -2 * of_alpha),
                         c(p$unit, target_unit)),
       mu = of_units(p$omega * (left$residuals / max(abs(p$y)))^2 / n, p$unit))
}

# The penalties lambda of alpha and mu of g (NULL without outcomes) in units of
# the normal matrix: those given, in units of p$scale, or those with the least
# loss of fits without the unit of each row.
choose_penalties <- function(p, s, lambda, mu) {
  grid <- penalty_grid * p$scale
  near <- if (is.null(lambda) || is.null(mu)) left_out_losses(p, s, grid)
  choose <- \(given, name) {
    if (!is.null(given)) {
      return(given * p$scale)
    }
    above_least <- \(losses) {
      loss <- check_result(losses[[name]], "a leave-one-out loss",
                           "'x' and 'y'")
      loss - min(colMeans(loss))
    }
    found <- tune_grid(grid, \(all) above_least(near), "valley")
    if (length(found$border)) {
      found <- tune_grid(grid, \(all) above_least(left_out_losses(p, s, all)),
                         "valley", wider_grid(grid))
    }
    if (identical(found$border, "smallest") &&
          found$value == found$table$value[1L]) {
      warn_kernmean("the smallest '", name, "' that was tried, ",
                    format_number(found$value / p$scale, 3L), ", has the ",
                    "smallest leave-one-out loss; are rows repeated, or ",
                    "outcomes without noise?", kind = "border")
    }
    found$value
  }
  list(lambda = choose(lambda, "lambda"),
       mu = if (any(p$y != 0)) choose(mu, "mu"))
}

# --- Solutions ---------------------------------------------------------------

# The estimate mean(m(g)) + mean(alpha (y - g)) = mean(a y), where a are the
# effective weights, and what each row adds to its error. With `folds`, the
# estimate uses g and alpha of a row that are fitted to the other units alone.
riesz_estimate <- function(p, lambda, mu, folds = FALSE) {
  s <- riesz_system(p)
  penalties <- choose_penalties(p, s, lambda, mu)
  lambda <- penalties$lambda
  mu <- penalties$mu %||% lambda
  found <- ridge_debiased(s$ridge, s$functional$target, lambda, mu)
  at_rows <- \(coefficients) drop(product(s$ridge$z, as.matrix(coefficients)))
  effective <- at_rows(found$effective)
  left <- lapply(riesz_left_out(p, s, mu), drop)
  weights <- if (!folds) effective else drop(riesz_left_out(p, s, lambda)$alpha)
  of_g <- if (folds) left$of_g else
    drop(product(s$functional$b, as.matrix(found$g)))
  plugin <- mean(p$upsilon * of_g)
  list(
    estimate = if (!folds) mean(p$omega * effective * p$y) else
      plugin + mean(p$omega * weights * left$residuals),
    plugin = plugin, effective = effective,
    alpha = at_rows(found$alpha), residuals = left$residuals,
    source = p$omega * weights * left$residuals / length(p$y),
    functional = if (!p$fixed) p$upsilon * (of_g - plugin) / nrow(p$m),
    lambda = lambda / p$scale, mu = mu / p$scale, edf = found$edf,
    imbalance = imbalance_of(p, s, effective),
    # If the weights have the mean 0, as for a derivative, there is no effective
    # number of rows.
    ess = if (p$m_h[1L] == 0) NA_real_ else effective_rows(p$omega * effective)
  )
}

effective_rows <- \(weights) sum(weights)^2 / sum(weights^2)

# The weights alpha of the rows, for which no outcome is needed, and the
# coefficients of alpha for the columns h and f. Positive weights are the
# positive part of a function in the same space.
riesz_weights <- function(p, lambda, positive) {
  s <- riesz_system(p)
  lambda <- choose_penalties(p, s, lambda, NULL)$lambda
  theta <- drop(ridge_solve(s$ridge, lambda, s$functional$target))
  if (positive) theta <- positive_part(s, lambda, theta)
  weights <- drop(product(s$ridge$z, as.matrix(theta)))
  if (positive) {
    weights <- pmax(weights, 0)
    check_balance(p, weights)
  }
  list(
    weights = weights, coefficients = drop(product(s$raw, as.matrix(theta))),
    lambda = lambda / p$scale, imbalance = imbalance_of(p, s, weights),
    ess = effective_rows(p$omega * weights),
    largest = max(p$omega * weights) / sum(p$omega * weights)
  )
}

# The distance of the mean features of the source from those of the target:
# after and before weighting, and the distance that noise alone makes in samples
# of this size.
imbalance_of <- function(p, s, weights) {
  n <- nrow(p$f)
  target <- drop(cross(p$m, as.matrix(p$upsilon))) / nrow(p$m)
  distance <- \(w) {
    sqrt(sum((drop(cross(p$f, as.matrix(p$omega * w))) / n - target)^2))
  }
  penalized <- s$ridge$values[-seq_len(s$ridge$free)]
  c(after = distance(weights), before = distance(mean(p$upsilon * p$m_h[, 1L])),
    noise = sqrt(max(sum(penalized), 1e-12 * p$scale) / n))
}

most_newton_steps <- 100L

# The coefficients that minimize mean(omega (z'theta)_+^2) - 2 target'theta +
# lambda |theta|^2, by semismooth Newton steps from those of the linear weights:
# each step is the ridge solution on the rows whose weights are positive.
positive_part <- function(s, lambda, theta) {
  omega <- s$ridge$weights
  n <- length(omega)
  # Coefficients are scaled so that the normal matrix of all rows plus the
  # penalty is the identity.
  units <- 1 / sqrt(drop(ridge_inverse(s$ridge, lambda)))
  penalty <- ifelse(seq_along(theta) > s$ridge$free, lambda, 0) / units^2
  theta <- theta * units
  target <- s$functional$target / units
  z <- times_columns(s$ridge$z, 1 / units)
  # `small` keeps the matrix invertible if few rows are positive. It penalizes
  # the length of a step, and so it does not change the solution.
  small <- 1e-9
  values_at <- \(theta) drop(product(z, as.matrix(theta)))
  objective_at <- \(theta, values) {
    mean(omega * pmax(values, 0)^2) - 2 * sum(target * theta) +
      sum(penalty * theta^2)
  }
  # Rows leave and enter the matrix of all rows, which is known. The slope is
  # not taken from it, so that its rounding does not shift the solution.
  matrix <- diag(1 + small, length(theta))
  values <- values_at(theta)
  inside <- rep(TRUE, n)
  before <- NULL
  for (step in seq_len(most_newton_steps)) {
    on <- values > 0
    if (identical(on, before)) break
    changed <- which(on != inside)
    rows <- take_rows(z, changed)
    matrix <- matrix +
      cross(rows, rows * (omega * (on - inside))[changed]) / n
    inside <- on
    slope <- drop(cross(z, as.matrix(omega * pmax(values, 0)))) / n
    move <- solve(matrix, target - slope - penalty * theta)
    more <- values_at(move)
    now <- objective_at(theta, values)
    share <- 1
    while (share > 1e-6 && objective_at(theta + share * move, values + share *
                                          more) > now + 1e-14 * abs(now)) {
      share <- share / 2
    }
    theta <- theta + share * move
    values <- values + share * more
    before <- if (share == 1 && max(abs(move)) < 1e-4 * max(abs(theta))) on
  }
  theta / units
}

# Stops if positive weights cannot reproduce the target's means of h, because
# these lie outside the points of the source.
check_balance <- function(p, weights) {
  n <- nrow(p$h)
  means <- drop(cross(p$h, as.matrix(p$omega * weights))) / n
  gap <- abs(means - drop(cross(p$m_h, as.matrix(p$upsilon))) / nrow(p$m_h))
  # Very small spreads beside a large mean are rounding errors, and are
  # replaced.
  gap <- gap / pmax(apply(rbind(p$h, p$m_h), 2L, \(x) {
    max(stats::sd(x), 1e-9 * max(abs(x)))
  }), 1e-12)
  # The first column is the constant 1. It is not checked, because its mean is
  # wrong whenever weights diverge.
  gap[1L] <- 0
  worst <- which.max(gap)
  if (gap[worst] > 1e-6) {
    stop_input("'means' must be FALSE, or the target's mean of '",
               colnames(p$h)[worst], "' be one that positive weights of the ",
               "rows can have: they come to within ",
               format_number(gap[worst], 2L),
               " standard deviations")
  }
}

# The shelf effect_: weights that match embeddings, and effects of treatments.
#
# Offers from effect_riesz.R: effective_rows.
# Offers from effect_riesz_space.R: check_slopes, feature_slopes.
# Offers from effect_weights.R: target_functional, warn_outside.
# Offers from effect_weights_methods.R: change_data.
# Offers from effect_effect.R: influence_covariance, with_residuals.
# Offers from effect_methods.R: fit_lines.kme_effect.
#
# Riesz regression: the representer alpha of a linear functional of a
# regression g, E m(W; g) = E alpha(X) g(X), is one ridge regression with the
# features of g. A problem is
#   f, h      rows of the source: features; columns without penalty, 1 the first
#   m, m_h    the functional of both, a row for each row it is averaged over;
#             one row of a target that is no sample, `fixed`
#   y         outcomes of the source, NULL for none
#   omega, upsilon  weights of both kinds of rows, with mean 1
#   pair      the row of the functional that is of the same unit as a row of the
#             source, NA for none (of a `fixed` one each row has its own)
#   unit, unit_m  units that are left out together, NULL: each by itself
#   ridge     what a penalty of 1 is: the mean of k(x, x)
# With H orthonormal (H'DH/n = I, D = diag(omega)), F less what H says of it and
# F'DF/n = V diag(v) V', all are regressions on the columns (H, FV), with the
# eigenvalues (1, v), and with the ridge 0 for H.
#

# The problem in these axes: z, b: rows of the source and of the functional;
# target, along: means of b and of yz; values; free: how many have no ridge;
# raw: from coefficients of the axes to those of h and of f.
riesz_system <- function(p) {
  n <- nrow(p$f)
  p$y <- p$y %||% numeric(n)
  # Less their means columns do not seem dependent for their origin.
  turn <- diag(ncol(p$h))
  turn[1L, -1L] <- -colMeans(p$h)[-1L]
  h <- product(p$h, turn)
  found <- qr(h * sqrt(p$omega), tol = 1e-7)
  kept <- sort(found$pivot[seq_len(found$rank)])
  h <- take_columns(h, kept)
  white <- solve(chol(cross(h, h * p$omega) / n))
  h <- product(h, white)
  white <- product(take_columns(turn, kept), white)
  gamma <- cross(h, p$f * p$omega) / n
  f <- p$f - product(h, gamma)
  pairs <- .Call(C_r_eigen, cross(f, f * p$omega) / n, ncol(f))
  free <- length(kept)
  turned <- product(white, product(gamma, pairs$vectors))
  raw <- matrix(0, ncol(p$h) + ncol(f), free + ncol(f))
  from_h <- seq_len(ncol(p$h))
  raw[from_h, seq_len(free)] <- white
  raw[from_h, -seq_len(free)] <- -turned
  raw[-from_h, -seq_len(free)] <- pairs$vectors
  z <- cbind(h, product(f, pairs$vectors))
  b <- product(cbind(p$m_h, p$m), raw)
  s <- c(p[c("y", "omega", "upsilon", "pair", "unit", "unit_m", "fixed",
             "ridge")],
         list(z = z, b = b, values = c(rep(1, free), pmax(pairs$values, 0)),
              free = free, raw = raw,
              target = drop(cross(b, as.matrix(p$upsilon))) / nrow(b),
              along = drop(cross(z, as.matrix(p$omega * p$y))) / n))
  check_result(s[c("values", "target", "along")], "a moment of the features",
               "'x' and 'y'")
  s
}

# The inverse of the normal matrix on each axis, a column for each ridge.
axis_inverses <- function(s, ridges) {
  none <- seq_along(s$values) <= s$free
  1 / (s$values + outer(as.double(!none), ridges))
}

# alpha at the rows of the source, the functional of alpha and of g, and the
# residuals of g, a column for each ridge, whose inverses of the normal matrix
# these are.
riesz_fits <- function(s, inverse) {
  list(alpha = product(s$z, inverse * s$target),
       residuals = s$y - product(s$z, inverse * s$along),
       m_alpha = product(s$b, inverse * s$target),
       m_g = product(s$b, inverse * s$along))
}

# The same of fits without the unit of the row.
riesz_values <- function(s, ridges) {
  n <- nrow(s$z)
  # Of a target that is no sample each row has its own, of no weight, so that it
  # stays as it is when the row is left out.
  if (s$fixed) {
    s$b <- take_rows(s$b, rep(1L, n))
    s$upsilon <- numeric(n)
    s$pair <- seq_len(n)
    s$unit_m <- s$unit
  }
  s$share <- n / nrow(s$b) * s$upsilon
  inverse <- axis_inverses(s, ridges)
  leave <- if (is.null(s$unit)) leave_rows else leave_units
  leave(s, inverse / n, riesz_fits(s, inverse))
}

# From the inverses of the normal matrices N: with e = z'N^-1 z, p = z'N^-1 b
# and k = b'N^-1 b of a row and its functional, in closed form.
leave_rows <- function(s, inverse, values) {
  with <- which(!is.na(s$pair))
  of <- s$pair[with]
  left <- 1 - s$omega * product(s$z^2, inverse)
  # Of a row that alone has a level nothing is known from the others.
  left[left < 1e-10] <- Inf
  across <- 0 * values$alpha
  across[with, ] <- product(
    take_rows(s$z, with) * take_rows(s$b, of), inverse
  )
  lost <- numeric(nrow(s$z))
  lost[with] <- s$share[of]
  values$alpha <- (values$alpha - lost * across) / left
  values$residuals <- values$residuals / left
  moved <- s$omega * across
  values$m_alpha <- values$m_alpha - s$share * product(s$b^2, inverse)
  values$m_alpha[of, ] <- values$m_alpha[of, ] +
    (moved * values$alpha)[with, ]
  values$m_g[of, ] <- values$m_g[of, ] - (moved * values$residuals)[with, ]
  values
}

# The same for units of several rows, such as clusters and folds.
leave_units <- function(s, inverse, values) {
  units <- unique(c(s$unit, s$unit_m))
  of <- \(codes) split(seq_along(codes), factor(codes, units))
  source <- of(s$unit)
  functional <- of(s$unit_m)
  if (sum(lengths(source) > 0L) < 2L) {
    stop_input("'clusters' must leave rows of each arm, and so must folds of ",
               "them, when any is left out")
  }
  for (u in seq_along(units)) {
    i <- source[[u]]
    j <- functional[[u]]
    z <- take_rows(s$z, i)
    b <- take_rows(s$b, j)
    own <- inverse * drop(cross(b, as.matrix(s$share[j])))
    found <- without_unit(z, z * s$omega[i], inverse, list(
      take_rows(values$alpha, i) - product(z, own),
      take_rows(values$residuals, i)
    ))
    moved <- lapply(found, \(x) {
      product(b, inverse * cross(z, s$omega[i] * x))
    })
    values$alpha[i, ] <- found[[1L]]
    values$residuals[i, ] <- found[[2L]]
    values$m_alpha[j, ] <- values$m_alpha[j, ] - product(b, own) + moved[[1L]]
    values$m_g[j, ] <- values$m_g[j, ] - moved[[2L]]
  }
  values
}

# (I - Z N^-1 B')^-1 x for each ridge, a column of N^-1 and of both x, by the
# smaller side.
without_unit <- function(z, b, inverse, x) {
  few <- nrow(z) <= ncol(z)
  square <- if (!few) cross(b, z)
  one <- diag(min(dim(z)))
  for (l in seq_len(ncol(inverse) * (nrow(z) > 0L))) {
    both <- cbind(x[[1L]][, l], x[[2L]][, l])
    scaled <- z * rep(inverse[, l], each = nrow(z))
    both <- if (few) solve(one - tcross(scaled, b), both) else
      both + product(scaled, solve(
        one - square * rep(inverse[, l], each = ncol(z)), cross(b, both)
      ))
    x[[1L]][, l] <- both[, 1L]
    x[[2L]][, l] <- both[, 2L]
  }
  x
}

# --- Choice of the ridges ----------------------------------------------------

ridge_grid <- 10^seq(-6, 1, length.out = 29)

# Both ridges by the rows that are left out, in units of the matrix: list(
# lambda, mu: NULL without outcomes), those given as they are.
choose_ridges <- function(s, lambda, mu) {
  grid <- ridge_grid * s$ridge
  losses <- \(ridges) {
    left <- riesz_values(s, ridges)
    list(lambda = colMeans(s$omega * left$alpha^2) -
           2 * colMeans(s$upsilon * left$m_alpha),
         mu = colMeans(s$omega * (left$residuals / max(abs(s$y)))^2))
  }
  near <- if (is.null(lambda) || is.null(mu)) losses(grid)
  pick <- \(given, name) {
    if (!is.null(given)) {
      return(given * s$ridge)
    }
    rows <- \(losses) {
      loss <- check_result(losses[[name]], "a leave-one-out loss",
                           "'x' and 'y'")
      t(loss - min(loss))
    }
    found <- tune_grid(grid, \(all) rows(near), "min")
    if (length(found$border)) {
      found <- tune_grid(grid, \(all) rows(losses(all)), "min",
                         wider_grid(grid))
    }
    if (identical(found$border, "smallest")) {
      warn_kernmean("the smallest '", name, "' that was tried, ",
                    format_number(found$value / s$ridge, 3L), ", has the ",
                    "smallest leave-one-out loss; are rows repeated, or ",
                    "outcomes without noise?", kind = "border")
    }
    found$value
  }
  list(lambda = pick(lambda, "lambda"), mu = if (any(s$y != 0)) pick(mu, "mu"))
}

# --- Solutions ---------------------------------------------------------------

# The estimate mean(m(g)) + mean(alpha (y - g)) = mean(a y) of a problem, a the
# effective weights, and what each unit adds to its error. `folds`: g and alpha
# of a row come from the other folds alone.
riesz_estimate <- function(p, lambda, mu, folds = FALSE) {
  s <- riesz_system(p)
  ridges <- choose_ridges(s, lambda, mu)
  ridges$mu <- ridges$mu %||% ridges$lambda
  by_lambda <- drop(axis_inverses(s, ridges$lambda))
  by_mu <- drop(axis_inverses(s, ridges$mu))
  at <- \(coefficients) drop(product(s$z, as.matrix(coefficients * s$target)))
  effective <- at(by_lambda + by_mu - s$values * by_lambda * by_mu)
  left <- lapply(riesz_values(s, ridges$mu), drop)
  residuals <- left$residuals
  weights <- if (!folds) effective else
    drop(riesz_values(s, ridges$lambda)$alpha)
  m_g <- if (folds) left$m_g else drop(product(s$b, as.matrix(by_mu * s$along)))
  plugin <- mean(s$upsilon * m_g)
  list(
    estimate = if (!folds) mean(s$omega * effective * s$y) else
      plugin + mean(s$omega * weights * residuals),
    plugin = plugin, effective = effective,
    alpha = at(by_lambda), residuals = residuals,
    source = s$omega * weights * residuals / length(s$y),
    functional = if (!s$fixed) s$upsilon * (m_g - plugin) / nrow(s$b),
    lambda = ridges$lambda / s$ridge, mu = ridges$mu / s$ridge,
    edf = sum(s$values * by_mu), imbalance = imbalance_of(p, s, effective),
    # Weights of derivatives have the mean 0.
    ess = if (p$m_h[1L] == 0) NA_real_ else effective_rows(s$omega * effective)
  )
}

effective_rows <- \(weights) sum(weights)^2 / sum(weights^2)

# Weights alpha of a problem, which need no outcome: list(weights, coefficients:
# of h and f, lambda, imbalance). Positive ones are the positive part of a
# function in the same space, found by ridge solves on the rows where it is
# positive.
riesz_weights <- function(p, lambda, positive) {
  s <- riesz_system(p)
  lambda <- choose_ridges(s, lambda, NULL)$lambda
  theta <- s$target * drop(axis_inverses(s, lambda))
  if (positive) theta <- positive_part(s, lambda, theta)
  weights <- drop(product(s$z, as.matrix(theta)))
  if (positive) {
    weights <- pmax(weights, 0)
    check_balance(p, weights)
  }
  list(
    weights = weights, coefficients = drop(product(s$raw, as.matrix(theta))),
    lambda = lambda / s$ridge, imbalance = imbalance_of(p, s, weights),
    ess = effective_rows(p$omega * weights),
    largest = max(p$omega * weights) / sum(p$omega * weights)
  )
}

# How far the embedding of the source is from the target, in its features: with
# weights, without, and by chance in samples of this size.
imbalance_of <- function(p, s, weights) {
  n <- nrow(p$f)
  target <- drop(cross(p$m, as.matrix(p$upsilon))) / nrow(p$m)
  apart <- \(w) {
    sqrt(sum((drop(cross(p$f, as.matrix(p$omega * w))) / n - target)^2))
  }
  c(after = apart(weights), before = apart(mean(p$upsilon * p$m_h[, 1L])),
    noise = sqrt(max(sum(s$values[-seq_len(s$free)]), 1e-12 * s$ridge) / n))
}

most_newton_steps <- 100L

# argmin mean(omega (z'theta)_+^2) - 2 target'theta + lambda |theta|^2 by
# semismooth Newton steps from the linear solution.
positive_part <- function(s, lambda, theta) {
  n <- nrow(s$z)
  ridge <- ifelse(seq_along(theta) > s$free, lambda, 0)
  # In units in which the normal matrix of all rows is 1.
  units <- sqrt(s$values + ridge)
  ridge <- ridge / units^2
  theta <- theta * units
  s$target <- s$target / units
  s$z <- times_columns(s$z, 1 / units)
  # For rank; about the last step, so that nothing is left of it at the end.
  small <- 1e-9
  values <- \(theta) drop(product(s$z, as.matrix(theta)))
  objective <- \(theta) {
    mean(s$omega * pmax(values(theta), 0)^2) - 2 * sum(s$target * theta) +
      sum(ridge * theta^2)
  }
  before <- NULL
  for (step in seq_len(most_newton_steps)) {
    on <- values(theta) > 0
    if (identical(on, before)) break
    z <- take_rows(s$z, on)
    full <- solve(cross(z, z * s$omega[on]) / n +
                    diag(ridge + small, length(theta)),
                  s$target + small * theta)
    now <- objective(theta)
    share <- 1
    while (share > 1e-6 && objective(theta + share * (full - theta)) >
             now + 1e-14 * abs(now)) {
      share <- share / 2
    }
    move <- share * (full - theta)
    theta <- theta + move
    before <- if (share == 1 && max(abs(move)) < 1e-4 * max(abs(theta))) on
  }
  theta / units
}

# Means that no positive weights can have lie outside the points of the source.
check_balance <- function(p, weights) {
  n <- nrow(p$h)
  means <- drop(cross(p$h, as.matrix(p$omega * weights))) / n
  gap <- abs(means - drop(cross(p$m_h, as.matrix(p$upsilon))) / nrow(p$m_h))
  # Beside a large mean the smallest spreads are rounding.
  gap <- gap / pmax(apply(rbind(p$h, p$m_h), 2L, \(x) {
    max(stats::sd(x), 1e-9 * max(abs(x)))
  }), 1e-12)
  # The mean of all weights is another where they run away.
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

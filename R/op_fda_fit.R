# The fit of kernel Fisher discriminants, and the choice of its bandwidth.

# Discriminants of C classes on r axes.
#   scaling    n x r matrix, the weights alpha; a sketch has them on landmarks
#   means      C x r matrix, the mean scores of the classes
#   svd        r singular values: ratios of between- to within-class spread
#   scores     n x r matrix; a sketch has none
#   center     r numbers, taken off all scores
#   ridge      that was used
#   intensity  of the shrinkage, NULL where the ridge was given
#   distance   n x C matrix of squared distances of each point to the means in
#              the fit without it, at the same ridge
#   sigma2     the variance of the scores of a sketch within classes
new_discriminants <- function(scaling, means, svd, center, ridge, intensity,
                              scores = NULL, distance = NULL, sigma2 = NULL) {
  list(scaling = scaling, means = means, svd = svd, scores = scores,
       center = center, ridge = ridge, intensity = intensity,
       distance = distance, sigma2 = sigma2)
}

# These parts of a fit are the same for all ridges of a Gram matrix:
#   k, unit    K divided by `unit`, so that its squares stay finite: alpha is
#              then in units of 1/K and r in units of K^2
#   m          n x C matrix: the class means of the columns of K less `overall`,
#              their mean
#   within     the columns of K less the means of their classes
#   scatter    the products of these; no infinite ridge needs them
new_fda_parts <- function(k, classes, ridge) {
  unit <- power_below(max(max(k), -min(k)))
  k <- k / unit
  n <- nrow(k)
  member <- outer(classes$of, seq_along(classes$counts), `==`) + 0
  m <- product(k, member / rep(classes$counts, each = n))
  overall <- drop(m %*% classes$counts) / n
  within <- k - m[, classes$of]
  list(k = k, unit = unit, m = m - overall, overall = overall, within = within,
       scatter = if (!identical(ridge, Inf)) tcross(within))
}

# The discriminants of the `parts` of a Gram matrix; `ridge` is a number or
# "shrinkage".
fit_fda <- function(parts, classes, ridge) {
  n <- nrow(parts$k)
  unit <- parts$unit
  counts <- unname(classes$counts)
  intensity <- NULL
  asked <- ridge
  if (identical(ridge, "shrinkage")) {
    centered <- center_gram(parts$k)$k
    intensity <- matrix_shrinkage(diag(centered), sum(column_dots(centered)),
                                  n - 1, n)$intensity
    ridge <- shrinkage_ridge(intensity, sum(diag(centered)), n)
  } else {
    ridge <- ridge / unit / unit
  }
  lower <- fda_factor(parts$scatter, ridge, unit, is.null(intensity), n)
  axes <- fda_directions(lower$factor, parts$m, parts$overall, counts, n)
  scaling <- fix_signs(axes$axes)
  colnames(scaling) <- axes$names
  center <- drop(parts$overall %*% scaling)
  new_discriminants(
    scaling / unit, crossprod(parts$m, scaling), axes$svd, center,
    ridge = if (is.null(intensity)) asked else lower$ridge * unit * unit,
    intensity, scores = product(parts$k, scaling) - rep(center, each = n),
    distance = (n - 1 - length(counts)) * .Call(
      C_r_fda_left_out, classes$of, as.double(counts), parts$m, parts$within,
      lower$factor
    )
  )
}

# The ridge that is equivalent to shrinking K^c, of this trace, by this
# intensity.
shrinkage_ridge <- function(intensity, trace, n) {
  if (intensity == 1) Inf else intensity / (1 - intensity) * (trace / (n - 1))^2
}

# The lower `factor` L of N + rI = LL' for the scatter N, NULL for r = Inf, and
# the `ridge` r. If the ridge of shrinkage is lost in the rounding of N, r is
# raised well above it. An r that the user gave (`fixed`) is never raised: it
# must be large enough.
fda_factor <- function(scatter, ridge, unit, fixed, n) {
  if (ridge == Inf) {
    return(list(factor = NULL, ridge = ridge))
  }
  rounding <- n * .Machine$double.eps * max(diag(scatter))
  if (!fixed && ridge <= rounding) {
    ridge <- sqrt(.Machine$double.eps) * max(diag(scatter))
  }
  factor <- if (ridge > rounding) cholesky(scatter, ridge)
  if (is.null(factor)) {
    stop_kernmean(
      "numeric", "the within-class scatter with the ridge ",
      format_number(ridge * unit * unit), " is not positive definite to ",
      "rounding; choose 'ridge' well above ",
      format_number(rounding * unit * unit, 2L)
    )
  }
  list(factor = factor, ridge = ridge)
}

# The `axes` sqrt(n - C) R^{-1}W, their singular values `svd` and their `names`,
# from the class means m less the overall mean; counts add up to n.
fda_directions <- function(factor, m, overall, counts, n) {
  d <- m * rep(sqrt(counts), each = nrow(m))
  most <- length(counts) - 1L
  white <- if (is.null(factor)) d else solve_lower(factor, d)
  s <- svd(white, nu = min(most, nrow(m)), nv = 0L)
  kept <- which(s$d[seq_len(ncol(s$u))] >
                  sqrt(n * .Machine$double.eps) * s$d[1L])
  # Rounding leaves differences of equal means that are small but not 0.
  if (!length(kept) ||
        max(abs(d)) <= n * .Machine$double.eps * max(abs(overall))) {
    stop_input("the classes must differ in their means of the kernel values; ",
               "all are the same to rounding")
  }
  u <- take_columns(s$u, kept)
  if (!is.null(factor)) u <- solve_lower(factor, u, transpose = TRUE)
  list(axes = sqrt(n - length(counts)) * u, names = paste0("LD", kept),
       svd = sqrt((n - length(counts)) / most) * s$d[kept])
}

# log pi_c - |s - m_c|^2 / (2 sigma^2), n x C, from squared distances.
fda_values <- function(distance, sigma2, prior) {
  rep(log(prior), each = nrow(distance)) - distance / (2 * sigma2)
}

fda_log_posterior <- function(distance, sigma2, prior, temperature = 1) {
  log_softmax(fda_values(distance, sigma2, prior) / temperature)
}

log_softmax <- function(value) {
  value <- value - row_max(value)
  value - log(rowSums(exp(value)))
}

# The `class` and the `posterior` of points. `fit` holds sigma2, prior,
# temperature and mixing. Logarithms still rank classes whose posteriors
# underflow to 0.
fda_classes <- function(distance, fit, prior, lev) {
  posterior <- fda_posterior(distance, fit)
  if (identical(prior, fit$prior)) {
    value <- fda_values(distance, fit$sigma2, prior)
  } else {
    times <- ifelse(fit$prior > 0, prior / fit$prior, 0)
    value <- posterior + rep(log(times), each = nrow(posterior))
    posterior <- log_softmax(value)
  }
  dimnames(posterior) <- list(rownames(distance), names(prior))
  list(class = factor(names(prior)[max.col(value, "first")], lev),
       posterior = exp(posterior))
}

# The logarithm of (1 - eps) softmax((log pi_c - |s - m_c|^2 / (2 sigma^2)) / T)
# + eps pi_c. A sketch cannot leave points out and has T = 1 and eps = 0.
fda_posterior <- function(distance, fit) {
  if (is.null(fit$temperature)) fit[c("temperature", "mixing")] <- list(1, 0)
  log <- fda_log_posterior(distance, fit$sigma2, fit$prior, fit$temperature)
  if (fit$mixing == 0) log else
    mix_with_prior(log, rep(fit$prior, each = nrow(log)), fit$mixing)
}

mix_with_prior <- \(log, prior, eps) log((1 - eps) * exp(log) + eps * prior)

# The `temperature` T >= 1 and the `mixing` eps with the largest weighted log
# posterior of the true classes. eps is 1/(n + 2), the share of outliers
# expected after n points without one, unless another eps raises the log
# posterior by more than 1 (AIC).
fda_calibration <- function(distance, sigma2, classes, prior) {
  weight <- (prior / classes$counts)[classes$of]
  used <- which(weight > 0)
  weight <- length(used) * weight[used] / sum(weight)
  distance <- take_rows(distance, used)
  true <- cbind(seq_along(used), classes$of[used])
  other <- prior[true[, 2L]]
  least <- 1 / (length(used) + 2)
  log <- fda_log_posterior(distance, sigma2, prior)
  own <- log[true]
  log_at <- \(t) own / exp(t) - log(rowSums(exp(log / exp(t))))
  score <- \(log, eps) sum(weight * mix_with_prior(log, other, eps))
  # The score is concave in eps, so that each T has one best eps, where its
  # slope changes its sign or at an end.
  mixed_at <- \(t) {
    log <- log_at(t)
    own <- exp(log)
    slope <- \(eps) sum(weight * (other - own) / ((1 - eps) * own +
                                                    eps * other))
    best <- if (slope(least) <= 0) least else if (slope(1) >= 0) 1 else
      stats::uniroot(slope, c(least, 1), tol = 1e-5)$root
    list(maximum = best, objective = score(log, best))
  }
  alone <- search_end(\(t) score(log_at(t), least), log(most_temperature))
  both <- search_end(\(t) mixed_at(t)$objective, log(most_temperature))
  more <- both$objective > alone$objective + 1
  list(temperature = exp(if (more) both$maximum else alone$maximum),
       mixing = if (more) mixed_at(both$maximum)$maximum else least)
}

# The result of optimize() over [0, end] around the best point of a grid, or
# that point if it is better: optimize() never evaluates the ends of an
# interval.
search_end <- function(value, end) {
  grid <- seq(0, end, length.out = 8L)
  values <- vapply(grid, value, 1)
  best <- which.max(values)
  found <- stats::optimize(value, grid[c(max(1L, best - 1L),
                                         min(8L, best + 1L))],
                           maximum = TRUE, tol = 1e-3)
  if (found$objective > values[best]) found else
    list(maximum = grid[best], objective = values[best])
}

most_temperature <- 2^10

# The m x C matrix of squared distances of scores to the class means.
fda_distance <- function(scores, means) {
  distance <- apply(means, 1L, \(m) {
    rowSums((scores - rep(m, each = nrow(scores)))^2)
  })
  matrix(check_result(distance, "a distance to the mean of a class"),
         nrow(scores), dimnames = list(rownames(scores), NULL))
}

# --- Leaving one out, and the bandwidth --------------------------------------

# The variance of scores about the means of their classes, leaving one out. It
# is never 0, so that points go to the class with the nearest mean even if
# scores do not vary within classes.
fda_sigma2 <- function(fit, of) {
  max(mean(fit$distance[cbind(seq_along(of), of)]) / ncol(fit$scaling),
      .Machine$double.eps * max(rowSums(fit$means^2)))
}

# The leave-one-out results of a fit: sigma2, temperature, mixing, error, and
# `loo`, the class, posterior and distances of each point.
fda_left <- function(fit, classes, prior) {
  distance <- fit$distance
  dimnames(distance) <- list(rownames(fit$scores), names(prior))
  left <- list(sigma2 = fda_sigma2(fit, classes$of), prior = prior)
  fitted <- c("temperature", "mixing")
  left[fitted] <- fda_calibration(distance, left$sigma2, classes, prior)[fitted]
  left$loo <- fda_classes(distance, left, prior, classes$lev)
  left$loo$distance <- distance
  left$error <- mean(left$loo$class != names(prior)[classes$of])
  left
}

# The `error`, the share of points whose class is wrong, and the
# `log_posterior`, the mean logarithm of the posterior probability of the true
# class, leaving one out, in a population with these prior probabilities: a
# point of class c has the weight pi_c/n_c.
fda_score <- function(fit, classes, prior) {
  of <- classes$of
  value <- fda_log_posterior(fit$distance, fda_sigma2(fit, of), prior)
  weight <- (prior / classes$counts)[of]
  true <- value[cbind(seq_along(of), of)]
  wrong <- max.col(exp(value), "first") != of
  # Points of a class with the prior 0 have the logarithm -Inf and the weight 0,
  # and are left out, as the product would be NaN.
  colSums((weight * cbind(error = wrong, log_posterior = true))[weight > 0, ])
}

bandwidth_factors <- 2^seq(-2, 1, 0.5)

ridge_factors <- c(0.03, 0.1, 0.3, 1, 3)

# The `fit` with the least leave-one-out error and its `sample`; among equal
# errors the fit with the largest log posterior. The search goes over the
# kernels, at the ridge of shrinkage or at the one given; then, for ridge =
# "loo", over multiples of that ridge. `bandwidths` and `ridges` are tables of
# what was tried. A fit that fails is skipped, unless all fail.
search_fda <- function(sample, kernels, classes, prior, ridge, progress) {
  loo <- identical(ridge, "loo")
  progress <- progress && sample$n >= shown_from
  parts_at <- \(kernel) {
    sample$kernel <- kernel
    new_fda_parts(sample_gram(sample)$K, classes, ridge)
  }
  # The parts are made here, too.
  fit_at <- \(parts, ridge) {
    tryCatch(fit_fda(parts, classes, ridge), kernmean_error_input = identity,
             kernmean_error_numeric = identity)
  }
  first <- best_fit(lapply_shown(kernels, \(kernel) {
    fit_at(parts_at(kernel), if (loo) "shrinkage" else ridge)
  }, progress), classes, prior)
  tuned <- list(fit = first$fit, sample = sample)
  tuned$sample$kernel <- kernels[[first$best]]
  if (length(kernels) > 1L) {
    values <- vapply(kernels, `[[`, numeric(1), "bandwidth")
    tuned$bandwidths <- data.frame(factor = values / sample$kernel$bandwidth,
                                   bandwidth = values, first$scores)
  }
  if (loo && is.finite(first$fit$ridge)) {
    ridges <- ridge_factors * first$fit$ridge
    parts <- parts_at(tuned$sample$kernel)
    second <- best_fit(lapply_shown(ridges, \(ridge) {
      if (ridge == first$fit$ridge) first$fit else
        fit_at(parts, ridge)
    }, progress), classes, prior)
    tuned$fit <- second$fit
    tuned$fit["intensity"] <- first$fit["intensity"]
    tuned$ridges <- data.frame(factor = ridge_factors, ridge = ridges,
                               second$scores)
  }
  tuned
}

# The best `fit` of several, some of which may be errors, its number `best`, and
# a data frame of their `scores`.
best_fit <- function(fits, classes, prior) {
  failed <- vapply(fits, inherits, NA, "condition")
  if (all(failed)) stop(fits[[1L]])
  scores <- matrix(NA_real_, length(fits), 2L)
  if (length(fits) > 1L) {
    scores[!failed, ] <- t(vapply(fits[!failed], fda_score, numeric(2),
                                  classes, prior))
    check_result(c(stats::na.omit(scores[, 1L]), NaN)[1L],
                 "the leave-one-out error of each ridge and bandwidth")
  }
  # Error rates that agree in nine decimals differ only by rounding, and are
  # ties.
  best <- order(round(scores[, 1L], 9L), -scores[, 2L], na.last = TRUE)[1L]
  list(fit = fits[[best]], best = best, scores = data.frame(
    error = scores[, 1L], log_posterior = scores[, 2L],
    chosen = seq_along(fits) == best
  ))
}

# The guard. An estimate that was chosen by leaving points out seems better than
# it is. The guard draws it back to the average, the more so the less the gains
# at the points left out exceed their standard error.

guard_amounts <- c("lambda", "noise", "h", "c")

unguarded <- function(estimator) {
  estimator$guard <- FALSE
  class(estimator) <- setdiff(class(estimator), "est_guarded")
  estimator
}

# The estimator with the amounts that the fit has chosen, without a guard.
settled_as <- function(estimator, fit) {
  amounts <- intersect(guard_amounts, names(estimator))
  estimator[amounts] <- fit[amounts]
  estimator["select"] <- list(NULL)
  unguarded(estimator)
}

est_fit.est_guarded <- function(estimator, sample) {
  if (needs_gram(estimator)) sample <- form_sample(sample)
  fit <- est_fit(unguarded(estimator), sample)
  fold <- fold_codes(sample$n, estimator$folds)
  # Smoothing with h = 0 is the average as well, and needs no Gram matrix.
  plain <- if (inherits(estimator, "est_smooth")) est_smooth(0, 1) else
    est_kme()
  products <- left_out_products(list(plain, settled_as(estimator, fit)), sample,
                                fold)
  fit$guard <- left_out_guard(products, fold, c(0, 1), c(1, 0))
  t <- fit$guard$share
  average <- plain_weights(sample)
  if (has_trait(estimator, "noisy")) {
    parts <- fit_parts(fit, sample)
    fit$parts <- combine_parts(list(est_parts(est_kme(), sample), parts),
                               c(1 - t, t), sample)
  }
  # <mu^, mu_w> is the mean of mu_w over the points.
  fit$norm2 <- (1 - t)^2 * fit$rho + 2 * t * (1 - t) * mean(fit$fitted) +
    t^2 * fit$norm2
  fit$fitted <- (1 - t) * sample_moments(sample)$rows + t * fit$fitted
  fit$weights <- (1 - t) * average + t * fit$weights
  if (!is.null(fit$share)) fit$share <- t * fit$share
  promised(fit, fold)
}

est_weights.est_guarded <- function(estimator, sample) {
  est_fit(estimator, sample)$weights
}

est_share.est_guarded <- \(estimator) NULL

# The guarded estimate (1 - t) mu^ + t mu_w is a stack with the shares 1 - t and
# t.
est_choose.est_guarded <- function(estimator, sample) {
  fit <- est_fit(estimator, sample)
  stack <- est_stack(list(KME = est_kme(), other = est_kme()),
                     c(1 - fit$guard$share, fit$guard$share))
  # The user may not give a stack a candidate with a target; the guard may.
  stack$candidates$other <- settled_as(estimator, fit)
  names(stack$candidates)[2L] <- estimator$label
  new_settlement(stack, c(
    fit[intersect(guard_amounts, names(estimator))],
    list(guard = fit$guard$share)
  ))
}

est_bags.est_guarded <- function(estimator, sample, sizes) {
  bags_of_parts(estimator, sample, sizes)
}

est_settle.est_guarded <- function(estimator, sample, where) {
  settle_chosen(estimator, sample)
}

# Noise gives a variable another kernel; the guard multiplies the noise by its
# share, which brings that kernel nearer to the plain one. If h is given, only c
# was chosen, which multiplies all statistics and changes no p-value.
est_settle_variable.est_guarded <- function(estimator, sample, where) {
  if (!has_trait(estimator, "noisy")) {
    return(est_settle(estimator, sample, where))
  }
  if (!is.null(estimator$h) ||
        !takes_noise(sample, has_trait(estimator, "poly"))) {
    return(NextMethod())
  }
  chosen <- est_fit(estimator, sort_points(sample))
  settled <- settled_as(estimator, chosen)
  amount <- intersect(c("h", "noise"), names(settled))
  settled[[amount]] <- chosen$guard$share * settled[[amount]]
  if (amount == "h") settled$h <- min(settled$h, most_smooth_in_tests)
  est_settle_variable(settled, sample, where)
}

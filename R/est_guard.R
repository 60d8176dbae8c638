# The guard: what is chosen by leaving points out seems better than it is. The
# estimate goes back to the average as far as the gains of the points left out
# leave it open that there is none.

guard_amounts <- c("lambda", "noise", "h", "c")

unguarded <- function(estimator) {
  estimator$guard <- FALSE
  class(estimator) <- setdiff(class(estimator), "est_guarded")
  estimator
}

# The estimator with what a fit has chosen, and no guard.
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
  # Smoothing by 0 is the average, too, without a Gram matrix.
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

# (1 - t) mu^ + t mu_w as a stack with given shares.
est_choose.est_guarded <- function(estimator, sample) {
  fit <- est_fit(estimator, sample)
  stack <- est_stack(list(KME = est_kme(), other = est_kme()),
                     c(1 - fit$guard$share, fit$guard$share))
  # It may have a target.
  stack$candidates$other <- settled_as(estimator, fit)
  names(stack$candidates)[2L] <- estimator$label
  list(estimator = stack, chosen = c(
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

# Noise makes another kernel of a variable; less of it is nearer to the plain
# one. A factor c of all statistics is no matter, where h is given.
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

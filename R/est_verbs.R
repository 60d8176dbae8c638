# The shelf est_: estimators of kernel means, as objects with verbs.
#
# Offers from est_verbs.R: allows_sample, est_between, est_fit, est_lines,
#   est_operator, est_parts, est_settle, est_settle_variable, est_share,
#   est_shrink, est_weights, has_trait, has_weights, is_unshrunk,
#   needs_gram, new_estimate, on_operator.
# Offers from est_estimator.R: change_estimator, describe_rule,
#   estimator_kernel, estimator_word, format_estimator, guard_line,
#   guard_words, is_average, operator_label, read_estimator,
#   registered_arguments, sees_order.
# Offers from est_bags.R: bag_codes, bag_rows, each_bag.
# Offers from est_skmse.R: describe_lambda.
# Offers from est_fkmse.R: search_lambda.
# Offers from est_marginal.R: keep_last, marginal_bags, marginal_norms,
#   order_noise.
#
# The verbs of an estimator, which doors call. Each has a method here that holds
# for most estimators.
#

# An estimate is what est_fit() finds on a sample of n points.
#   weights    the weights of the points, beside the share of the target
#   lambda     the amount of shrinkage, 0 for none
#   fitted     the values of the estimate at the points
#   norm2      its squared norm
#   rho        the squared norm of the average
#   varrho     the mean of k(x, x) over the points
#   more       what only some estimators have: target, share, alpha, noise, h,
#              c, covariance, parts, candidates, guard; and of a choice score
#              (the curve), minimum, reference (the score of the average),
#              border, select, folds
new_estimate <- function(weights, fitted, norm2, moments, lambda = 0,
                         more = NULL) {
  c(list(weights = weights, lambda = lambda, fitted = fitted, norm2 = norm2,
         rho = moments$rho, varrho = moments$varrho), more)
}

# A settlement says what an estimator has chosen from a sample.
#   estimator  with nothing left to choose (but what est_share() chooses)
#   chosen     a list: the choice, as a test stores it
#   sample     NULL, or the sample whose average is the estimate
#   height     a factor of the values of that sample's kernel
new_settlement <- function(estimator, chosen = NULL, sample = NULL,
                           height = 1) {
  list(estimator = estimator, chosen = chosen, sample = sample, height = height)
}

# The estimate of a sample.
est_fit <- function(estimator, sample) UseMethod("est_fit")

# Only the weights of an estimate, which is all that many samples need.
est_weights <- function(estimator, sample) UseMethod("est_weights")

est_weights.kernmean_estimator <- function(estimator, sample) {
  est_fit(estimator, sample)$weights
}

# Is the estimate nothing but weights on the points?
has_weights <- function(estimator) {
  is.null(estimator$target) && !has_trait(estimator, "noisy") &&
    !("candidates" %in% names(estimator) && is.null(estimator$candidates)) &&
    all(vapply(as.list(estimator$candidates), has_weights, NA))
}

# The parts (sample_embedding.R) of an estimate. The estimator has nothing left
# to choose.
est_parts <- function(estimator, sample) UseMethod("est_parts")
est_parts.kernmean_estimator <- function(estimator, sample) {
  if (has_weights(estimator)) {
    return(list(new_mean_part(sample, est_weights(estimator, sample))))
  }
  fit_parts(est_fit(estimator, sample), sample)
}

# The parts of an estimate that is not yet a fit of kme().
fit_parts <- function(fit, sample) {
  embedding_parts(c(fit, list(sample = sample, kernel = sample$kernel,
                              estimator = fit["target"])))
}

# A list with the parts of each candidate.
all_parts <- function(candidates, sample) {
  lapply(candidates, \(one) est_parts(one, sample))
}

# Do the kernel and what is known of the sample allow the estimator? If not,
# est_fit() has an error that says why.
allows_sample <- function(estimator, sample) {
  !has_trait(estimator, "noisy") ||
    takes_noise(sample, has_trait(estimator, "poly"))
}

# An n x folds matrix: the weights of the estimate without the points of each
# fold, which have 0 there. The estimator has nothing left to choose.
weights_left_out <- function(estimator, sample, fold) {
  UseMethod("weights_left_out")
}
weights_left_out.kernmean_estimator <- function(estimator, sample, fold) {
  weights <- matrix(0, sample$n, max(fold))
  for (f in seq_len(max(fold))) {
    kept <- which(fold != f)
    weights[kept, f] <- est_weights(estimator, sample_take(sample, kept))
  }
  weights
}

# The estimate with these weights on the points.
weights_fit <- function(sample, weights, moments = sample_moments(sample)) {
  fitted <- drop(sample_apply(sample, weights))
  new_estimate(weights, fitted, max(0, sum(weights * fitted)), moments)
}

# Does the fit store the Gram matrix?
needs_gram <- \(estimator) has_trait(estimator, "gram")

# If the estimate is the average times 1 - alpha, the function that gives alpha
# from rho, varrho and n, which may be vectors. NULL for other estimates.
est_share <- function(estimator) UseMethod("est_share")
est_share.kernmean_estimator <- \(estimator) NULL

# Is the estimate an average, either of the features of the sample or of those
# of a marginalized kernel? Then the statistic of a test may be unbiased.
is_unshrunk <- \(estimator) has_trait(estimator, "unshrunk")

# The fields of an estimate that say how much it is shrunk, from the moments of
# a sample alone; NULL where est_share() has no function.
est_shrink <- function(estimator, moments) UseMethod("est_shrink")
est_shrink.kernmean_estimator <- \(estimator, moments) NULL

# The settlement on the sample for a single estimate.
est_choose <- function(estimator, sample) UseMethod("est_choose")
est_choose.kernmean_estimator <- \(estimator, sample) new_settlement(estimator)

# The settlement of a test on the pooled sample, which holds for all relabelings
# of its points. where: what errors call the sample.
est_settle <- function(estimator, sample, where) UseMethod("est_settle")
est_settle.kernmean_estimator <- \(estimator, sample, where) {
  new_settlement(estimator)
}

# The settlement on one variable of a test of independence.
est_settle_variable <- function(estimator, sample, where) {
  UseMethod("est_settle_variable")
}
est_settle_variable.kernmean_estimator <- function(estimator, sample, where) {
  est_settle(estimator, sample, where)
}

# Does a test of independence use the estimator on the operator of both
# variables, rather than on each variable?
on_operator <- \(estimator) !has_trait(estimator, c("unshrunk", "noisy"))

# The estimator of the operator of x and y, from those that have settled on x
# and on y.
est_between <- function(a, b) UseMethod("est_between")
est_between.kernmean_estimator <- \(a, b) a

# The estimator as it is used on the product kernel of an operator, or an error
# that says why it cannot be. argument: the name that the error gives it.
est_operator <- function(estimator, argument) UseMethod("est_operator")
est_operator.kernmean_estimator <- function(estimator, argument) {
  if (has_trait(estimator, "noisy")) {
    # An operator of noisy features is no sum of weights on the points.
    stop_input("'", argument, "' must not be \"", estimator$name, "\": ",
               "operators are shrunk by weights on the points; 'center' may ",
               "be any estimator")
  }
  if (!is.null(estimator$target)) {
    stop_input("'", argument, "' must have no target: an operator is shrunk ",
               "towards 0")
  }
  estimator
}

# The lines that print() shows on a fit. plain, target: words for the average
# and for the target.
est_lines <- function(estimator, fit, digits, plain = "the KME",
                      target = "the target") {
  UseMethod("est_lines")
}
est_lines.kernmean_estimator <- function(estimator, fit, digits, plain,
                                         target) {
  NULL
}

has_trait <- \(estimator, traits) any(traits %in% estimator$traits)

# Does the kernel have a closed form for points with noise? poly: TRUE allows
# polynomial kernels.
has_noise_form <- function(kernel, poly) {
  kernel_has(kernel, if (poly) "closed form" else "Gaussian form") &&
    !kernel_has(kernel, "parts")
}

# Does the sample have points that noise can be added to, and a kernel with a
# closed form for it? poly: TRUE allows polynomial kernels.
takes_noise <- function(sample, poly) {
  knows_points(sample) && has_noise_form(sample$kernel, poly)
}

# The moments of a sample: n, its number of points; rows, the values of the
# average at the points; rho, its squared norm; varrho, the mean of k(x, x).
sample_moments <- function(sample) UseMethod("sample_moments")

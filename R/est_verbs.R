# The shelf est_: estimators of kernel means, as objects with verbs.
#
# Offers from est_verbs.R: allows_sample, est_between, est_fit, est_lines,
#   est_operator, est_parts, est_settle, est_settle_variable, est_share,
#   est_shrink, est_weights, has_trait, has_weights, is_unshrunk,
#   needs_gram, on_operator.
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
# What an estimator does: the verbs that doors call, with what most estimators
# do.
#

# The fit on a sample for new_kme(): list(weights, lambda, fitted, norm2, rho,
# varrho, and what the estimator has besides: alpha, noise, target,
# share, score, minimum, reference, border, select).
est_fit <- function(estimator, sample) UseMethod("est_fit")

# The weights alone, on a sample that is one of many.
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

# The parts of an estimate in which nothing is left to choose.
est_parts <- function(estimator, sample) UseMethod("est_parts")
est_parts.kernmean_estimator <- function(estimator, sample) {
  if (has_weights(estimator)) {
    return(list(new_mean_part(sample, est_weights(estimator, sample))))
  }
  fit_parts(est_fit(estimator, sample), sample)
}

# Those of a fit that is not yet one of kme().
fit_parts <- function(fit, sample) {
  embedding_parts(c(fit, list(sample = sample, kernel = sample$kernel,
                              estimator = fit["target"])))
}

# The parts of each of several.
all_parts <- function(candidates, sample) {
  lapply(candidates, \(one) est_parts(one, sample))
}

# Do the kernel and what is known of the sample allow the estimator? If not,
# est_fit() has an error that says why.
allows_sample <- function(estimator, sample) {
  !has_trait(estimator, "noisy") ||
    takes_noise(sample, has_trait(estimator, "poly"))
}

# The weights of the estimates that leave out the points of each fold, n x
# folds, 0 for the points left out; nothing is left to choose.
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

# The fit of weights that are known.
weights_fit <- function(sample, weights, moments = sample_moments(sample)) {
  fitted <- drop(sample_apply(sample, weights))
  list(weights = weights, lambda = 0, fitted = fitted,
       norm2 = max(0, sum(weights * fitted)), rho = moments$rho,
       varrho = moments$varrho)
}

# Does the fit store the Gram matrix?
needs_gram <- \(estimator) has_trait(estimator, "gram")
# Where the estimate is the average times 1 - alpha: a function of rho, varrho
# and n (which may be vectors) that gives alpha; else NULL.
est_share <- function(estimator) UseMethod("est_share")
est_share.kernmean_estimator <- \(estimator) NULL

# Is the estimate an average, of the features that the sample has or of other
# ones (a marginalized kernel's)? Then the statistic of a test may be unbiased.
is_unshrunk <- \(estimator) has_trait(estimator, "unshrunk")
# The shrinkage itself from list(n, rho, varrho) where est_share() has a
# function: list(lambda, alpha, score, minimum, reference, border), or NULL.
est_shrink <- function(estimator, moments) UseMethod("est_shrink")
est_shrink.kernmean_estimator <- \(estimator, moments) NULL

# What is chosen from a sample that is not all weights: list(estimator: with
# nothing left to choose, chosen: a list of it).
est_choose <- function(estimator, sample) UseMethod("est_choose")
est_choose.kernmean_estimator <- function(estimator, sample) {
  list(estimator = estimator)
}

# What is chosen from a pooled sample, once for all relabelings: list(estimator:
# with nothing left to choose but what est_share() chooses, sample: NULL or the
# one whose average is taken, height: a factor of its values, chosen: fields of
# the test). `where`: a name for errors.
est_settle <- function(estimator, sample, where) UseMethod("est_settle")
est_settle.kernmean_estimator <- function(estimator, sample, where) {
  list(estimator = estimator, height = 1)
}

# The same where each variable of a test of independence settles by itself.
est_settle_variable <- function(estimator, sample, where) {
  UseMethod("est_settle_variable")
}
est_settle_variable.kernmean_estimator <- function(estimator, sample, where) {
  est_settle(estimator, sample, where)
}

# Is it used on the operator of a test of independence, not variable by
# variable?
on_operator <- \(estimator) !has_trait(estimator, c("unshrunk", "noisy"))
# What two of them come to that have settled on x and on y.
est_between <- function(a, b) UseMethod("est_between")
est_between.kernmean_estimator <- \(a, b) a

# The estimator on the product kernel of an operator; else an error that says
# why not. `argument`: what it was given as.
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

# Lines of print() for a fit; `plain` and `target` are what the average and the
# target are called.
est_lines <- function(estimator, fit, digits, plain = "the KME",
                      target = "the target") {
  UseMethod("est_lines")
}
est_lines.kernmean_estimator <- function(estimator, fit, digits, plain,
                                         target) {
  NULL
}

has_trait <- \(estimator, traits) any(traits %in% estimator$traits)

# Does the kernel have a closed form for points with noise? `poly`: are
# polynomial kernels good too?
has_noise_form <- function(kernel, poly) {
  kernel_has(kernel, if (poly) "closed form" else "Gaussian form") &&
    !kernel_has(kernel, "parts")
}

# Has noise a closed form in the kernel of the sample, and points to be added
# to? `poly`: are polynomial kernels good too?
takes_noise <- function(sample, poly) {
  knows_points(sample) && has_noise_form(sample$kernel, poly)
}

# list(n, rows: the plain kernel mean at these, rho: its squared norm, varrho:
# mean k(x, x)).
sample_moments <- function(sample) UseMethod("sample_moments")

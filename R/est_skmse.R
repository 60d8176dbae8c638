# Simple shrinkage (S-KMSE): alpha f* + (1 - alpha) mu^, everything from rho,
# varrho and the inner products with the target.

#' @rdname estimators
#' @export
est_skmse <- function(lambda = NULL, select = NULL, target = NULL, ...,
                      guard = FALSE) {
  check_dots(...)
  lambda <- take(lambda, an_amount)
  select <- check_rule(select, c("loocv", "plugin"), lambda, "lambda")
  with_guard(new_estimator(
    "skmse", "S-KMSE", "simple shrinkage", "S-COSE",
    arguments = list(lambda = lambda, select = select,
                     target = check_target_kind(target)),
    traits = "sums"
  ), guard)
}
register_estimator("skmse", est_skmse, aliases = "rkmse")

# alpha, from the lambda that was given or by the rule. `excess` is varrho - rho
# >= 0 and `distance2` is |f* - mu^|^2; both may be vectors.
skmse_alpha <- function(estimator, excess, distance2, n) {
  lambda <- estimator$lambda
  if (!is.null(lambda)) {
    return(0 * excess + if (is.finite(lambda)) lambda / (1 + lambda) else 1)
  }
  below <- if (estimator$select == "loocv") {
    ((n - 1)^2 * distance2 + excess) / n
  } else {
    excess + (n - 1) * distance2
  }
  ifelse(excess == 0, 0, pmin(1, excess / below))
}

est_weights.est_skmse <- function(estimator, sample) {
  if (!is.null(estimator$select) || !is.null(estimator$target)) {
    return(NextMethod())
  }
  n <- sample$n
  rep((1 - skmse_alpha(estimator, 0, 0, n)) / n, n)
}

est_share.est_skmse <- function(estimator) {
  \(rho, varrho, n) {
    rho <- pmax(rho, 0)
    skmse_alpha(estimator, pmax(varrho - rho, 0), rho, n)
  }
}

# For a target f*, cross is <f*, mu^> and norm2 is |f*|^2.
est_shrink.est_skmse <- function(estimator, moments, cross = 0, norm2 = 0) {
  n <- moments$n
  rho <- moments$rho
  varrho <- moments$varrho
  distance2 <- max(0, norm2 - 2 * cross + rho)
  excess <- max(0, varrho - rho)
  alpha <- skmse_alpha(estimator, excess, distance2, n)
  # The alpha with the least risk is D/(D + |f* - mu|^2), where D = E|mu^ -
  # mu|^2, and any alpha below twice this has less risk than the average (M14,
  # Theorem 1). excess/(n - 1) is an unbiased estimate of D, and distance2 of
  # the denominator.
  best <- if (excess > 0) excess / ((n - 1) * distance2) else 0
  score <- \(a) loo_score(a, n, rho, varrho, cross, norm2)
  curve <- if (identical(estimator$select, "loocv")) {
    path <- exp(seq(log(1e-4), log(1e2), length.out = 61))
    share <- c(path / (1 + path), alpha)
    score_curve(c(path, alpha / (1 - alpha)), score(share))
  }
  lambda <- estimator$lambda
  chosen <- is.null(lambda)
  list(
    lambda = if (chosen) alpha / (1 - alpha) else lambda, alpha = alpha,
    harmless = min(1, 2 * best), score = curve, minimum = score(alpha),
    reference = score(0), border = chosen && alpha == 1,
    select = estimator$select
  )
}

# The common lambda of two variables is the geometric mean of theirs.
est_between.est_skmse <- function(a, b) {
  if (is.null(a$lambda)) a else est_skmse(sqrt(a$lambda) * sqrt(b$lambda))
}

est_fit.est_skmse <- function(estimator, sample) {
  check_shrinkable(estimator, sample)
  moments <- sample_moments(sample)
  warn_own_target(estimator, sample)
  target <- check_target(estimator$target, sample_support(sample))
  plain <- plain_weights(sample)
  target <- target %||% list(at = 0, norm2 = 0)
  at <- target$at
  cross <- sum(plain * at)
  norm2 <- target$norm2
  fit <- est_shrink.est_skmse(estimator, moments, cross, norm2)
  alpha <- fit$alpha
  new_estimate(
    (1 - alpha) * plain, (1 - alpha) * moments$rows + alpha * at,
    (1 - alpha)^2 * moments$rho + 2 * alpha * (1 - alpha) * cross +
      alpha^2 * norm2,
    moments, fit$lambda,
    c(list(target = target$embedding, share = alpha),
      fit[names(fit) != "lambda"])
  )
}

est_lines.est_skmse <- function(estimator, fit, digits, plain = "the KME",
                                target = "the target") {
  shrinkage_lines(estimator, fit, digits, plain, if (fit$border) {
    paste("alpha was limited to 1: the estimate is", target)
  })
}

# "lambda = 0.1, alpha = 0.09 (given)"
describe_lambda <- function(estimator, fit, digits) {
  paste0("lambda = ", format_number(fit$lambda, digits),
         if (!is.null(fit$alpha)) {
           paste0(", alpha = ", format_number(fit$alpha, digits))
         }, " (", describe_rule(estimator), ")")
}

# The lines on an estimate with a lambda. border: the line for a lambda on the
# border of what was searched, else NULL.
shrinkage_lines <- function(estimator, fit, digits, plain, border) {
  near <- is.null(border) && is.null(estimator$target) &&
    length(fit$weights) > 0L &&
    max(abs(length(fit$weights) * fit$weights - 1)) < 1e-3
  c(
    paste0(describe_lambda(estimator, fit, digits), ", towards ",
           describe_target(estimator$target)),
    # With a guard the estimate is not what was chosen.
    if (is.null(fit$guard)) border,
    if (near) paste("the estimate is nearly", plain),
    describe_score(fit, digits, plain)
  )
}

# Warns of a target that was estimated from the points which the leave-one-out
# score should leave out.
warn_own_target <- function(estimator, sample) {
  target <- estimator$target
  estimated <- inherits(target, "kme") && is.null(target$sample$weights)
  if (!is.null(estimator$select) && estimated && knows_points(sample) &&
        same_sample(target$sample, sample)) {
    warn_kernmean(
      "'target' must not be estimated from the points of 'x' themselves, or ",
      "the leave-one-out score does not leave them out; take other points, or ",
      "give 'lambda'"
    )
  }
}

# The selection curve as a data frame in the order of lambda (or of the noise,
# by its `name`).
score_curve <- function(lambda, score, name = "lambda") {
  keep <- is.finite(lambda) & lambda > 0 & !duplicated(lambda)
  curve <- data.frame(lambda, score)[keep, ]
  names(curve)[1L] <- name
  curve <- curve[order(curve[[1L]]), ]
  rownames(curve) <- NULL
  curve
}

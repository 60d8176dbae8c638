# The target, towards which estimators shrink: 0, another kernel mean or a
# Gaussian mixture.

# The argument `target`, as far as it can be checked without the data.
check_target_kind <- function(target) {
  if (!is.null(target) && !inherits(target, "kme") && !is_mixture(target)) {
    stop_input(
      "'target' must be NULL for 0, a fit of kme() or a mixture, ",
      "list(weights, means, covariances), not ", describe(target)
    )
  }
  target
}

is_mixture <- \(target) {
  is.list(target) && all(mixture_fields %in% names(target))
}

# The target with its values at the points of a sample; NULL for 0.
#   embedding  a fit or a mixture
#   at         n values
#   norm2      its squared norm
new_target <- function(embedding, at, norm2) {
  list(embedding = embedding, at = at, norm2 = norm2)
}

# The target at the points of a sample, checked. `name` is that of the argument.
check_target <- function(target, sample, name = "target") {
  if (is.null(target)) {
    return(NULL)
  }
  if (inherits(target, "kme")) {
    check_same_space(target$sample, sample, quoted(name), "'x'")
    norm2 <- target$norm2
  } else {
    x <- sample_points(sample, "'target' must be a fit on the same gram, not ",
                       "a mixture")
    target <- check_mixture(target, ncol(x), "target")
    scaled <- scale_mixture(sample$kernel, target)
    norm2 <- mixture_inner(scaled, scaled, sample$kernel)
  }
  at <- parts_at(target_parts(target, sample$kernel), sample$kernel,
                 own_points(sample))
  new_target(target, at, norm2)
}

mixture_fields <- c("weights", "means", "covariances")

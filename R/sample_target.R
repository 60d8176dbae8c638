# What estimators shrink towards: 0, another kernel mean or a Gaussian mixture.

# What can be said of a target without the data.
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

# list(embedding, at, norm2): the target, its values at the points of the sample
# and its squared norm; NULL for the target 0. `name` is the argument's.
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
  list(embedding = target, at = at, norm2 = norm2)
}

mixture_fields <- c("weights", "means", "covariances")

# The object of mmd_test(), and its words.

new_mmd_test <- function(samples, options, scheme, found, arguments,
                         law = mmd_null(samples, options, scheme, found)) {
  labels <- levels(samples$groups)
  sizes <- stats::setNames(samples$sizes, labels)
  height <- found$height
  observed <- height * found$values[1L]
  several <- length(sizes) > 2L
  fused <- !is.null(samples$bandwidths)
  plain <- if (is.null(found$table)) found$values[1L] else found$plain
  bandwidth <- samples$sample$kernel$bandwidth
  bandwidth <- if (length(bandwidth) == 1L) c(bandwidth = bandwidth[[1L]])
  new_test(
    "mmd_test",
    statistic = stats::setNames(observed, mmd_name(found, several, fused)),
    parameter = c(
      if (options$null == "gamma") law$gamma else c(
        if (several) c(groups = length(sizes), N = sum(sizes)) else
          c(m = sizes[[1L]], n = sizes[[2L]]),
        if (!is.null(scheme$clusters)) c(clusters = sum(scheme$sizes)),
        if (!is.null(samples$bins)) c(bins = samples$bins), B = scheme$B
      ), bandwidth
    ),
    p.value = law$p,
    estimate = c(
      MMD = if (!several && !fused) sqrt(max(0, height * plain)),
      "kernel R^2" = found$share, bandwidth
    ),
    alternative = "the distributions differ",
    method = mmd_title(options, scheme, found, several, fused),
    data.name = name_samples(arguments$pooled$label, sizes),
    replicates = if (!is.null(law$draws)) height * law$draws,
    gamma = law$gamma, null = options$null, type = options$statistic,
    estimator = options$estimator, lambda = found$settled$estimator$lambda,
    alpha = if (!is.null(found$alpha)) stats::setNames(found$alpha, labels),
    noise = found$settled$chosen$noise,
    smoothing = unlist(found$settled$chosen[c("h", "c")]),
    candidates = found$settled$chosen$candidates,
    kernel = samples$sample$kernel,
    sample = samples$sample, groups = samples$groups, sizes = sizes,
    pairs = if (several) stats::setNames(
      height * found$pairs,
      utils::combn(labels, 2L, paste, collapse = " - ")
    ),
    unbiased = unbiased_summary(found, samples$sizes, options, scheme),
    arguments = arguments, statistics = found$table, left = found$left
  )
}

mmd_name <- function(found, several, fused) {
  if (isTRUE(found$several)) {
    "max z"
  } else if (isTRUE(found$table$order[1L] > 0L)) {
    "filtered MMD^2"
  } else if (fused) {
    "fused MMD^2"
  } else if (several) {
    "sum of MMD^2"
  } else {
    "MMD^2"
  }
}

# "x (n = 13) and y (n = 9)", "extra by group: 1 (n = 10), 2 (n = 10)"
name_samples <- function(label, sizes) {
  each <- \(names) paste0(names, " (n = ", sizes, ")")
  if (all(c("x", "y") %in% names(label))) {
    paste(each(label[c("x", "y")]), collapse = " and ")
  } else {
    paste0(label, ": ", shorten(each(names(sizes)), 8L))
  }
}

mmd_title <- function(options, scheme, found, several, fused) {
  bin <- found$source$bin
  test_title(
    if (several) "k-sample" else "two-sample",
    c(if (fused) "fused MMD" else "MMD", filter_label(options$filter),
      options$estimator$label, options$statistic),
    options, scheme, paste0("all labelings", if (!is.null(bin)) " of bins"),
    if (!is.null(bin)) {
      paste("permutations of bins of", count_of(bin, "point"))
    }
  )
}

# The unbiased statistic and its exact deviation over permutations of points.
unbiased_summary <- function(found, sizes, options, scheme) {
  source <- found$source
  points <- !is.null(source) && options$null == "permutation" &&
    (is.null(scheme$matrix) || scheme$all) &&
    is_unshrunk(options$estimator) &&
    ncol(source$rows) == 1L && length(sizes) == 2L && is.null(source$bin) &&
    is.null(scheme$blocks) && is.null(scheme$clusters)
  if (!points) {
    return(NULL)
  }
  deviation <- unbiased_deviation(source$rows[, 1L], source$diagonal[, 1L],
                                  sizes, found$sums$moments[2L])
  if (!is.na(deviation)) {
    found$height * c(
      statistic = unbiased_statistic(observed_sums(found$sums)),
      deviation = deviation
    )
  }
}

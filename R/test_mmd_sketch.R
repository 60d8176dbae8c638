# Tests of samples that are given as sketches: by permutations of bins, or by
# the spectrum of the covariance of features.

#' Two-sample tests of sketches
#'
#' [mmd_test()] of samples of which there are sketches.
#'
#' Of samples too large to be kept, the groups of a [kme_sketch()] or two
#' sketches on the same landmarks (a reference that was kept, and new rows) are
#' compared by the means of their features: the distance of the projections on
#' the span of the landmarks. The estimator is the KME: shrinking needs the
#' norms of single rows.
#'
#' Where there are bins (`bin` of [kme_sketch()]), into which rows fell at
#' random, bins are permuted as points are: exact if rows are exchangeable. Rows
#' in bins that are not full do not count. The unbiased statistic leaves out the
#' pairs of rows of one bin. A `filter` ([test_filter()], of orders 0 and 1)
#' takes the covariance operator of all rows. Without bins `null = "spectrum"`
#' needs second moments of all samples and rows that are independent; rows with
#' weights w count as \eqn{(\sum w)^2/\sum w^2}{(sum w)^2/sum w^2}.
#'
#' Landmarks must not favor a sample: they are to come from the rows of all, or
#' from other rows. Those that come from one sample lie closer to its rows,
#' which is harmless where they lose little; `summary()` says what each sample
#' loses.
#' @param x A [kme_sketch()] with groups, or of the first sample.
#' @param y Another sketch on the same landmarks.
#' @param ... `B`, `control` (without `bins`), `filter` (where there are bins),
#'   `progress` of [mmd_test()].
#' @return As of [mmd_test()]; its `sample` has the landmarks.
#' @seealso [glossary]; [kme_sketch()]
#' @export
mmd_test.kme_sketch <- function(x, y, ...) {
  label <- c(x = label_of(substitute(x)),
             y = if (!missing(y)) label_of(substitute(y)))
  data <- c(list(x = x), if (!missing(y)) list(y = y))
  mmd_test.default(pool_sketches(data, label), ...)
}

# The pooled samples of sketches on the same landmarks: x and, where that has no
# groups, y.
pool_sketches <- function(data, label) {
  for (name in names(data)) {
    take(data[[name]], is_a("kme_sketch", "a sketch, as of kme_sketch()"), name)
    check_one_variable(data[[name]], name)
  }
  if (length(data) == 2L) {
    check_same_landmarks(data$x, data$y, c("'x'", "'y'"))
  } else if (length(data$x$groups) < 2L) {
    stop_input("'x' must be a sketch of at least two groups, or 'y' be given, ",
               "a sketch on the same landmarks")
  }
  structure(list(data = data, label = label),
            class = c("pooled_sketches", "pooled_samples"))
}

sketch_rules <- c(list(when(
  \(a) TRUE, kernel = NULL, bandwidths = NULL, blocks = NULL, clusters = NULL,
  bins = NULL, estimator = an_average, scale = unscaled,
  reason = "for sketches, which keep sums on landmarks and no rows"
)), filter_rules[1L])

# The options of a test of sketches. A sketch keeps enough for filters of orders
# 0 and 1, but not for the others.
sketch_options <- function(sketches, asked) {
  bin_sizes <- unique(lapply(sketches, `[[`, "bin"))
  permutable <- length(bin_sizes) == 1L && !is.null(bin_sizes[[1L]])
  options <- mmd_options(asked, c(if (permutable) "permutation", "spectrum"),
                         sketch_rules)
  if (is.list(options$filter)) {
    if (!permutable) {
      stop_input("'filter' must be \"none\" without bins of one size, as ",
                 "kme_sketch(bin = 100) makes them")
    }
    options$filter$order <- intersect(options$filter$order, 0:1)
    if (!length(options$filter$order)) {
      stop_input("'order' must be some of 0, 1 for sketches, not 2, which ",
                 "takes second moments of each bin")
    }
  }
  options
}

test_pooled.pooled_sketches <- function(pooled, asked) {
  options <- sketch_options(pooled$data, asked)
  parts <- compared_samples(pooled$data)
  test <- if (options$null == "permutation") {
    test_bins(pooled, parts, options, stored(asked))
  } else {
    test_moments(pooled, parts, options, stored(asked))
  }
  # A sketch keeps no points, so there is no group of each point.
  test["groups"] <- list(NULL)
  test
}

# The test by permutations of bins.
test_bins <- function(pooled, parts, options, arguments) {
  bins <- pooled_bins(pooled$data, names(parts))
  if (any(options$filter$order > 0L)) {
    bins$sample$spectrum <- row_spectrum(parts, bins$sample$x)
  }
  scheme <- check_permutations(options, list(sizes = bins$sizes))
  scheme$words <- bin_words(bins$size)
  comparison <- compare_samples(bins, options, scheme)
  if (length(parts) > 2L) {
    comparison$statistic <- count_rows(comparison$statistic, bins$size)
  }
  null <- mmd_null(bins, options, scheme, comparison)
  new_sketch_test(pooled, parts, options, scheme, comparison, null, arguments,
                  as.double(bins$sizes) * bins$size, bins$left,
                  sum(bins$sizes))
}

# Rescales the statistic of several samples, so that its weights m_g m_h/N count
# rows instead of bins.
count_rows <- function(statistic, size) {
  if (NROW(statistic$table) < 2L) {
    statistic$values <- size * statistic$values
    statistic$size <- size * statistic$size
  }
  if (!is.null(statistic$table)) {
    statistic$table$value <- size * statistic$table$value
  }
  statistic
}

# The test by the spectrum of the covariance of all rows.
test_moments <- function(pooled, parts, options, arguments) {
  lapply(parts, second_moments, "a test without bins")
  rows <- vapply(parts, `[[`, 1, "n")
  scheme <- check_permutations(options, list(sizes = rows))
  comparison <- compare_parts(parts, options)
  null <- mmd_null(list(sample = parts[[1L]], parts = parts,
                        sizes = vapply(parts, `[[`, 1, "size")),
                   options, scheme, comparison)
  new_sketch_test(pooled, parts, options, scheme, comparison, null, arguments,
                  as.double(unname(rows)))
}

# The test of a comparison of sketches. `sizes` are the rows of each sample that
# count, `left` is the number of rows that do not, and `bins` is the number of
# bins.
new_sketch_test <- function(pooled, parts, options, scheme, comparison, null,
                            arguments, sizes, left = 0, bins = NULL) {
  # The share is of a total that includes what is lost by projection.
  comparison$share <- between_share(list(parts_sums(parts, \(moments) {
    moments$trace
  })))
  new_mmd_test(
    list(sample = parts_support(parts, left), sizes = sizes, bins = bins,
         groups = factor(character(), names(parts)), origin = unclass(pooled)),
    options, scheme, comparison, arguments, null
  )
}

#' @rdname mmd_pairwise
#' @export
mmd_pairwise.kme_sketch <- function(x, ...) {
  label <- label_of(substitute(x))
  mmd_pairwise.default(pool_sketches(list(x = x), label), ...)
}

# Each pair of groups is a test of its own.
compare_pooled.pooled_sketches <- function(pooled, asked) {
  sketch <- pooled$data$x
  options <- sketch_options(pooled$data, asked)
  labels <- sketch$groups
  options <- check_reference(options, labels)
  parts <- compared_samples(pooled$data)
  binned <- options$null == "permutation"
  sizes <- unname(if (binned) sketch$bin * full_bins(sketch) else
    vapply(parts, `[[`, 1, "n"))
  pairs <- list_pairs(labels, sizes, options$reference)
  each <- Map(c, pairs$first, pairs$second)
  pairs$units <- lapply(each, \(pair) list(sizes = full_bins(sketch)[pair]))
  pairs <- least_of_pairs(pairs, options)
  results <- vapply(each, \(pair) {
    pooled$data$x <- sketch[labels[pair]]
    test <- without_warning(c("few", "projection"), test_pooled(pooled, asked))
    c(test$statistic[[1L]], test$p.value, test$estimate[["MMD"]]^2)
  }, numeric(3))
  if (binned) pairs$units[[1L]]$words <- bin_words(sketch$bin)
  new_pairwise(
    list(groups = factor(character(), labels), sizes = sizes,
         origin = unclass(pooled),
         sample = parts_support(parts, if (binned) sketch$left else 0)),
    pairs, results, options, stored(asked)
  )
}

# Returns the sample of each group, if there is one sketch, or else of each
# sketch.
compared_samples <- function(sketches) {
  parts <- if (length(sketches) == 1L) group_samples(sketches$x) else
    lapply(sketches, sketch_sample)
  check_two_each(vapply(parts, `[[`, 1, "n"), names(parts), "rows")
  warn_lost(parts, names(parts))
  parts
}

check_two_each <- function(counts, labels, what) {
  few <- which(counts < 2)[1L]
  if (!is.na(few)) {
    stop_input("each sample must have at least 2 ", what, "; '", labels[few],
               "' has ", counts[few])
  }
}

# --- Permutations of bins ----------------------------------------------------

# Bins as points of a sample, in the order of the groups; their linear kernel is
# the inner product of their means. sizes: the bins of each group; size: the
# rows of a bin; left: the rows in no full bin.
pooled_bins <- function(sketches, labels) {
  each <- lapply(sketches, new_binned_rows)
  features <- do.call(cbind, lapply(each, `[[`, "features"))
  groups <- if (length(each) == 1L) {
    factor(each$x$group, labels)
  } else {
    factor(rep(labels, vapply(each, `[[`, 1L, "count")), labels)
  }
  sizes <- tabulate(groups, length(labels))
  size <- each$x$size
  check_two_each(sizes, labels, paste("full bins of", size, "rows"))
  list(sample = points_sample(t(features), kernel_linear()), groups = groups,
       sizes = sizes, size = size,
       left = sum(vapply(each, `[[`, 1, "left")))
}

# The spectrum, see new_spectrum(), of the covariance of the rows of all
# samples. The vectors have an entry for each bin, and `features` has the mean
# features of the bins.
row_spectrum <- function(parts, features) {
  at <- centered_means(parts)$at
  share <- vapply(parts, `[[`, 1, "n")
  second <- Map(`*`, lapply(parts, second_moments, "a filter"),
                share / sum(share))
  pairs <- .Call(C_r_eigen, Reduce(`+`, second) - tcross(at), length(at))
  kept <- pairs$values > max(vapply(parts, covariance_rounding, 1))
  values <- pairs$values[kept]
  vectors <- product(features - rep(at, each = nrow(features)),
                     take_columns(pairs$vectors, kept))
  list(values = values, left = 0,
       vectors = vectors / rep(sqrt(nrow(features) * values),
                               each = nrow(features)))
}

# --- The spectrum ------------------------------------------------------------

# The means of the samples in feature coordinates, an r x samples matrix.
part_means <- function(parts) {
  do.call(cbind, lapply(parts, `[[`, c("moments", "mean")))
}

# The means of the samples about the mean of all, which is `at`, and their
# sizes.
centered_means <- function(parts) {
  means <- part_means(parts)
  sizes <- vapply(parts, `[[`, 1, "size")
  at <- drop(means %*% sizes) / sum(sizes)
  list(means = means - at, at = at, sizes = sizes)
}

# The comparison by projected features, without its share.
compare_parts <- function(parts, options) {
  sums <- parts_sums(parts)
  several <- length(parts) > 2L
  values_of <- \(sums) mmd_values(sums, options$statistic)
  values <- values_of(sums)
  new_comparison(
    new_statistic(mmd_name(several), values, moments_scale(parts)), values,
    NULL, if (several) mmd_of_pairs(sums, values_of),
    settled = list(estimator = options$estimator)
  )
}

# The sums, see labeled_sums(), of features less the mean of all. trace(moments)
# returns the trace of the second moments, with or without what is lost by
# projection.
parts_sums <- function(parts,
                       trace = \(moments) sum(diag(moments$covariance))) {
  parts <- unname(parts)
  centered <- centered_means(parts)
  n <- centered$sizes
  inner <- cross(centered$means) * tcross(n)
  varrho <- vapply(parts, \(part) {
    trace(part$moments) - 2 * sum(part$moments$mean * centered$at) +
      sum(centered$at^2)
  }, 1)
  list(within = t(diag(inner)), cross = t(t(inner)[lower.tri(inner)]),
       trace = t(n * varrho), sizes = t(n))
}

# The size of a statistic, see permutation_p(). If all rows are equal, the means
# differ only by rounding, which is this much smaller than the kernel values.
moments_scale <- function(parts) {
  1e-4 * max(vapply(parts, `[[`, 1, c("moments", "trace")))
}

# N times the eigenvalues of the covariance of features within the samples.
null_spectrum.sketch_sample <- function(sample, samples) {
  n <- sum(samples$sizes)
  pooled <- Reduce(`+`, Map(`*`, lapply(samples$parts, centered_covariance),
                            samples$sizes / n))
  rounding <- max(vapply(samples$parts, covariance_rounding, 1))
  n * covariance_values(pooled, rounding)
}

# The covariance of features about their mean.
centered_covariance <- function(part) {
  part$moments$covariance - tcross(part$moments$mean)
}

# The size of rounding in the trace of a covariance. Features come from a solve
# with K_SS, whose condition number may be 1e10.
covariance_rounding <- function(part) {
  values <- part$sketch$landmarks[[part$variable]]$values
  64 * .Machine$double.eps * part$moments$trace * max(values) / min(values)
}

# The eigenvalues of a covariance, 0 where it is no more than rounding.
covariance_values <- function(covariance, rounding) {
  if (sum(diag(covariance)) <= rounding) {
    return(numeric(nrow(covariance)))
  }
  pmax(spectrum_values(covariance), 0)
}

# --- The object --------------------------------------------------------------

# The landmarks as the sample of a test, with `parts`: the weights of the mean
# of each sample (an m x samples matrix), their sizes, the shares of the trace
# that are lost (NA where not known), and the number of rows that are `left`
# out.
parts_support <- function(parts, left) {
  support <- sample_support(parts[[1L]])
  support["group"] <- list(NULL)
  support$parts <- list(
    weights = product(parts[[1L]]$root, part_means(parts)),
    sizes = vapply(parts, `[[`, 1, "size"), lost = lost_shares(parts),
    left = left
  )
  support
}

sample_lines.landmark_sample <- function(sample) {
  parts <- sample$parts
  c(paste("sketches of", count_of(sample$n, "landmark")),
    if (!anyNA(parts$lost)) {
      shares <- format_number(100 * parts$lost, 2L)
      paste0("lost by projection: ", shorten(paste0(
        shares, "% (", names(parts$lost), ")"
      )), " of mean k(x, x)")
    },
    if (parts$left > 0) {
      paste(count_of(parts$left, "row"), "in bins that are not full, left out")
    })
}

# The mean of a side is that of its samples, weighted by their rows.
witness_weights.landmark_sample <- function(sample, test, side) {
  if (any(test$statistics$order > 0L)) {
    stop_input("'type' must not be \"witness\" for filtered statistics of ",
               "sketches")
  }
  sizes <- sample$parts$sizes
  share <- \(s) ifelse(side == s, sizes, 0) / sum(sizes[side == s])
  variable <- sample$sketch$landmarks[[sample$variable]]$variable
  list(weights = drop(product(sample$parts$weights, share(1L) - share(2L))),
       shown = seq_len(sample$n), side = NULL,
       grid = !is_factor_variable(variable) && !is_mixed_variable(variable))
}

repool.landmark_sample <- function(sample, test, changes, data, rekernel) {
  origin <- test$origin
  origin$data[data] <- changes[data]
  pool_sketches(origin$data, new_label(origin$label, attr(changes, "call"),
                                       data))
}

# The full bins of a sketch as points:
#   features   the mean features in each bin, r x bins matrix
#   count      number of bins
#   group      the group of each bin, a factor
#   size       number of rows of a bin
#   left       number of rows in no full bin
new_binned_rows <- function(sketch) {
  first <- lapply(sketch$bins, `[[`, "first")
  root <- sketch$landmarks[[1L]]$root
  groups <- sketch$groups %||% "x"
  list(features = cross(root, do.call(cbind, first)) / sketch$bin,
       count = sum(full_bins(sketch)),
       group = factor(rep(groups, full_bins(sketch)), groups),
       size = sketch$bin, left = sketch$left)
}

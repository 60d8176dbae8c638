# The arguments of mmd_test(): the estimator and what goes with it, the pooled
# sample, and how labels are permuted.

mmd_nulls <- c("permutation", "spectrum", "gamma")

# As of read_options(), with the kernel, NULL if none was given, and bandwidths
# and bins.
read_mmd_options <- function(kernel, estimator, bandwidths, null, statistic,
                             bins, progress) {
  if (!is.null(kernel)) {
    check_kernel(kernel, hint = estimator_hint(kernel))
  }
  several <- !is.null(bandwidths)
  reason <- "when 'bandwidths' is given"
  if (several) {
    check_bandwidth_set(bandwidths, "fuse")
    must_be(is.null(kernel) || is_rbf(kernel) &&
              identical(kernel$bandwidth, "median"),
            "kernel", "kernel_rbf()", reason)
    estimator <- read_estimator(estimator)
    must_be(is_average(estimator), "estimator", "\"kme\"", reason,
            estimator$name)
  }
  if (is.null(statistic)) {
    statistic <- if (several) "unbiased" else "biased"
  }
  options <- read_options(estimator, null, mmd_nulls, statistic, progress)
  if (several) {
    must_be(options$statistic == "unbiased", "statistic", "\"unbiased\"",
            reason, options$statistic)
    must_be(options$null == "permutation", "null", "\"permutation\"", reason,
            options$null)
  }
  if (!is.null(bins)) {
    bins <- check_count(bins, "bins", 2L)
    must_be(options$null == "permutation", "bins", "NULL",
            paste0("for null = \"", options$null, "\""))
    must_be(has_sums(options$estimator), "bins", "NULL",
            paste("for estimator", estimator_word(options$estimator)))
  }
  c(options, list(kernel = kernel, bandwidths = bandwidths, bins = bins))
}

# --- The pooled sample -------------------------------------------------------
# What the doors hand on: list(sample, sorted by group, whose kernel is still to
# be fitted unless it is a gram; groups, in this order; order: the rows of the
# data that the points come from, NULL for as they are; label: what the data are
# called, with the names x and y where these may be given anew).

pool_pair <- function(x, y, label) {
  x <- check_data(x)
  if (ncol(x) == 1L && identical(ncol(y), 1L)) {
    y <- unname(check_data(y, "y"))
  }
  if (is.null(dim(y)) || ncol(y) == ncol(x)) {
    y <- check_newdata(y, x, "y")
  } else {
    stop_input("'y' must have the columns of 'x', ", ncol(x), ", not ", ncol(y))
  }
  groups <- factor(rep(c("x", "y"), c(nrow(x), nrow(y))))
  both <- rbind(x, y)
  rownames(both) <- NULL
  list(sample = points_sample(both, NULL), groups = groups, order = NULL,
       label = label)
}

pool_groups <- function(sample, groups, label) {
  values <- length(unique(groups))
  if (is.numeric(groups) && 2 * values > length(groups)) {
    stop_input(
      "the groups must have at least 2 points each, not come from numbers ",
      "with ", values, " values; hsic_test() tests for dependence on them"
    )
  }
  groups <- droplevels(as.factor(groups))
  order <- order(as.integer(groups))
  list(sample = if (is.unsorted(order)) sample_take(sample, order) else sample,
       groups = groups[order], order = order, label = label)
}

# list(sample, with its kernel, groups, sizes, order, bandwidths)
read_samples <- function(pooled, options) {
  sample <- pooled$sample
  sizes <- tabulate(pooled$groups, nlevels(pooled$groups))
  check_sizes(sizes, levels(pooled$groups), options)
  bandwidths <- options$bandwidths
  if (!is.null(bandwidths)) {
    x <- sample$x
    must_be(!stores_gram(sample), "bandwidths", "NULL", "for a gram")
    if (is.character(bandwidths)) bandwidths <- fuse_bandwidths(x)
    sample$kernel <- kernel_rbf(bandwidths)
  } else if (!stores_gram(sample)) {
    kernel <- if (is.null(options$kernel)) kernel_rbf() else options$kernel
    sample <- points_sample(sample$x, fit_kernel(kernel, sample$x))
  }
  list(sample = sample, groups = pooled$groups, sizes = sizes,
       order = pooled$order, bandwidths = bandwidths)
}

check_sizes <- function(sizes, labels, options) {
  count <- length(sizes)
  if (count < 2L) {
    stop_input("there must be at least two groups, not ", count)
  }
  if (any(sizes < 2L)) {
    small <- which(sizes < 2L)[1L]
    stop_input(
      "each sample must have at least 2 points; '", labels[small],
      "' has ", sizes[small]
    )
  }
  if (count > 2L && !is.null(options$bandwidths)) {
    stop_input("there must be two samples when 'bandwidths' is given, not ",
               count)
  }
  if (count > 2L && options$null == "gamma") {
    stop_input("there must be two samples for null = \"gamma\", not ", count)
  }
}

fuse_most_points <- 2000

# Ten bandwidths between half the 5% and twice the 95% quantile of distances.
fuse_bandwidths <- function(x) {
  if (nrow(x) > fuse_most_points) {
    x <- x[sample.int(nrow(x), fuse_most_points), , drop = FALSE]
  }
  ends <- quantile(stats::dist(x), c(0.05, 0.95), names = FALSE)
  if (!is.finite(ends[2L])) {
    stop_kernmean("numeric", "distances overflow; rescale the columns of 'x'")
  }
  if (ends[2L] == 0) {
    ends[2L] <- 1
  }
  if (ends[1L] == 0) {
    ends[1L] <- ends[2L] / 100
  }
  seq(ends[1L] / 2, 2 * ends[2L], length.out = 10L)
}

# --- Bins --------------------------------------------------------------------

most_points_without_bins <- 20000
default_bins <- 25L
most_bins <- 2000

# Bins in the smallest sample where there are none asked for: none for samples
# that are not large, or so unequal that bins of the smallest are small.
usual_bins <- function(sizes) {
  size <- min(sizes) %/% default_bins
  large <- sum(sizes) > most_points_without_bins
  if (large && size > 1 && sum(sizes) / size <= most_bins) default_bins
}

# How many bins there are to be, NULL for none; `random`: are permutations drawn
# among all?
count_bins <- function(options, sizes, random) {
  bins <- options$bins
  if (is.null(bins)) {
    usual <- random && options$null == "permutation" &&
      has_sums(options$estimator)
    return(if (usual) usual_bins(sizes))
  }
  must_be(random, "bins", "NULL", "when 'permutations' or 'blocks' is given")
  least <- min(sizes)
  if (bins > least) {
    stop_input("'bins' must be at most ", least, ", the points of the ",
               "smallest sample, not ", bins)
  }
  # Bins of one point are points.
  if (least %/% bins > 1L) bins
}

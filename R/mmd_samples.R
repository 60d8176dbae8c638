# The arguments of mmd_test(): the estimator and what goes with it, the pooled
# sample, and how labels are permuted.

mmd_nulls <- c("permutation", "spectrum", "gamma")

# As of read_options(), with the kernel, NULL if none was given, and bandwidths
# and bins; filter: as of read_filter().
read_mmd_options <- function(kernel, estimator, bandwidths, filter, null,
                             statistic, bins, progress) {
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
  if (!is.null(filter)) {
    estimator <- read_estimator(estimator)
    check_filter_options(filter, bandwidths, list(
      estimator = estimator, null = check_choice(null, mmd_nulls, "null")
    ), is_unshrunk(estimator), "\"kme\", \"mkme\" or \"mmkme\"")
  }
  if (is.null(statistic)) {
    statistic <- if (several || !is.null(filter)) "unbiased" else "biased"
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
  c(options, list(kernel = kernel, bandwidths = bandwidths, filter = filter,
                  bins = bins))
}

# --- The pooled sample -------------------------------------------------------
# What the doors hand on: list(sample, sorted by group, whose kernel is still to
# be fitted unless it is a gram; groups, in this order; order: the rows of the
# data that the points come from, NULL for as they are; label: what the data are
# called, with the names x and y where these may be given anew; name: what the
# points are called).

mixed_hint <- paste0(
  "; a test that takes factors among the columns is hsic_test(group ~ a + b, ",
  "data), with the sample of each row in group"
)

check_numeric <- function(x, name) {
  if (is.data.frame(x) && any(vapply(x, is.factor, NA))) {
    plain <- vapply(x, is.numeric, NA)
    stop_input(
      "'", name, "' must have numeric columns only; column '",
      names(x)[vapply(x, is.factor, NA)][1L], "' is a factor",
      if (any(plain)) {
        paste0("; the others are ", name, "[",
               deparse1(names(x)[plain]), "]")
      }, mixed_hint
    )
  }
}

pool_pair <- function(x, y, label) {
  check_numeric(x, "x")
  check_numeric(y, "y")
  x <- check_data(x)
  if (ncol(x) == 1L && identical(ncol(y), 1L)) {
    y <- unname(check_data(y, "y"))
  }
  if (is.null(dim(y)) || ncol(y) == ncol(x)) {
    y <- check_newdata(y, x, "y")
  } else {
    stop_input("'y' must have the columns of 'x', ", ncol(x), ", not ", ncol(y))
  }
  both <- bind_rows(list(x, y))
  rownames(both) <- NULL
  groups <- factor(rep(c("x", "y"), c(nrow(x), nrow(y))))
  list(sample = points_sample(both, NULL), groups = groups, order = NULL,
       label = label, name = "x")
}

pool_groups <- function(sample, groups, label, name) {
  values <- length(unique(groups))
  if (is.numeric(groups) && 2 * values > length(groups)) {
    stop_input(
      "the groups must have at least 2 points each, not come from numbers ",
      "with ", values, " values; hsic_test() tests for dependence on them"
    )
  }
  groups <- check_factor(groups)
  order <- order(as.integer(groups))
  list(sample = if (is.unsorted(order)) sample_take(sample, order) else sample,
       groups = groups[order], order = order, label = label, name = name)
}

# list(sample, with its kernel, groups, sizes, order, bandwidths)
read_samples <- function(pooled, options, scale) {
  sample <- pooled$sample
  sizes <- tabulate(pooled$groups, nlevels(pooled$groups))
  check_sizes(sizes, levels(pooled$groups), options)
  bandwidths <- options$bandwidths
  if (stores_gram(sample)) {
    must_be(is.null(bandwidths), "bandwidths", "NULL", "for a gram")
    must_be(!asks_scale(scale), "scale", "FALSE", "for a gram")
  } else {
    kernel <- if (!is.null(bandwidths)) {
      # One that is not chosen: the many are, when the units are known.
      kernel_rbf(1)
    } else if (is.null(options$kernel)) {
      kernel_rbf()
    } else {
      options$kernel
    }
    sample <- fit_sample(sample$x, kernel, scale, pooled$name)
  }
  if (!is.null(bandwidths)) {
    if (is.character(bandwidths)) bandwidths <- fuse_bandwidths(sample$x)
    sample$kernel$bandwidth <- bandwidths
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
  # Where pairs are compared there are two at a time.
  if (isTRUE(options$compared)) {
    return(invisible())
  }
  if (count > 2L) {
    check_memory(choose(count, 2) + count, count, "use fewer groups",
                 what = "a table of all pairs of groups,")
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

# What changes places, see check_permutations().
sample_units <- function(samples, blocks, clusters) {
  sizes <- samples$sizes
  units <- read_units(blocks, clusters, sum(sizes), samples$order)
  group <- rep(seq_along(sizes), sizes)
  if (is.null(units$clusters)) {
    units$sizes <- sizes
  } else {
    group <- by_cluster(group, units$clusters)
    if (is.null(group)) {
      stop_input("'clusters' must lie in one sample each; for clusters with ",
                 "points in several give 'blocks', whose points change places")
    }
    units$sizes <- tabulate(group, length(sizes))
    units$blocks <- cluster_blocks(units)
  }
  check_moves(units, group)
  if (!is.null(units$clusters)) {
    check_left_points(units, group)
  }
  units
}

# Some unit must be able to change its label. group: that of each unit.
check_moves <- function(units, group) {
  many <- max(units$sizes) > 1L
  if (!many) {
    stop_input("'clusters' must be at least two in some sample")
  }
  blocks <- units$blocks
  if (!is.null(blocks) && !anyDuplicated(unique(cbind(blocks, group))[, 1L])) {
    if (is.null(units$clusters)) {
      stop_input("'blocks' must hold points of different samples in some ",
                 "block; those that lie in one sample each, and move as a ",
                 "whole, are given as 'clusters'")
    }
    stop_input("'blocks' must hold clusters of different samples in some block")
  }
}

# How the labels of samples are permuted, see check_permutations(); asked:
# list(permutations, blocks, clusters, B).
read_scheme <- function(samples, options, asked) {
  units <- sample_units(samples, asked$blocks, asked$clusters)
  random <- is.null(asked$permutations) && is.null(asked$blocks) &&
    is.null(asked$clusters)
  bins <- count_bins(options, samples$sizes, random)
  draws <- if (is.null(asked$B) && inherits(asked$permutations, "how")) {
    asked$permutations$nperm
  } else if (is.null(asked$B)) {
    usual_draws(mmd_cost(samples, options, units, bins))
  } else {
    asked$B
  }
  scheme <- check_permutations(asked$permutations, units, draws, options$null,
                               samples$order)
  scheme$bins <- bins
  scheme
}

# However clusters change places, samples must have two points left.
check_left_points <- function(units, group) {
  points <- tabulate(units$clusters, length(group))
  least <- vapply(seq_along(units$sizes), \(g) {
    sum(vapply(in_blocks(length(group), units$blocks), \(of) {
      sum(sort(points[of])[seq_len(sum(group[of] == g))])
    }, numeric(1)))
  }, numeric(1))
  if (any(least < 2)) {
    stop_input("'clusters' must leave at least 2 points in each sample ",
               "however they change places; take together those of one point")
  }
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
  must_be(random, "bins", "NULL",
          "when 'permutations', 'blocks' or 'clusters' is given")
  least <- min(sizes)
  if (bins > least) {
    stop_input("'bins' must be at most ", least, ", the points of the ",
               "smallest sample, not ", bins)
  }
  # Bins of one point are points.
  if (least %/% bins > 1L) bins
}

# --- Cost --------------------------------------------------------------------

# Seconds that one draw takes, about, on one processor, by the sizes alone:
# measured once (Zen 5, reference BLAS).
mmd_cost <- function(samples, options, units, bins) {
  sizes <- samples$sizes
  n <- sum(sizes)
  if (options$null == "spectrum") {
    return(5e-8 * n)
  }
  if (!has_sums(options$estimator)) {
    return(refit_cost(n))
  }
  count <- if (is.null(bins)) sum(units$sizes) else
    n / (min(sizes) %/% bins)
  groups <- length(sizes)
  sets <- if (groups == 2L) {
    1
  } else if (is_unshrunk(options$estimator)) {
    groups
  } else {
    groups * (groups + 1) / 2
  }
  # "fuse" stands for ten.
  bandwidths <- if (is.character(options$bandwidths)) 10 else
    max(1, length(options$bandwidths))
  # Statistics of M come with its making.
  if (!is.null(options$filter)) {
    bandwidths <- nrow(list_statistics(options$filter))
  }
  8e-8 * count + 5e-11 * sets * bandwidths * count^2
}

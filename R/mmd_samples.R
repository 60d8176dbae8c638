# The arguments of mmd_test(): the estimator and what goes with it, the pooled
# sample, and how labels are permuted.

check_mmd_options <- function(kernel, estimator, null, statistic, select,
                              lambda, noise, bins, progress) {
  estimator <- check_estimator(estimator)
  null <- check_choice(null, c("permutation", "spectrum", "gamma"), "null")
  fuse <- identical(kernel$bandwidth, "fuse")
  only <- function(ok, name, value, reason) {
    if (!ok) stop_input("'", name, "' must be ", value, " ", reason)
  }
  shrunk <- estimator %in% c("skmse", "fkmse")
  statistic <- if (is.null(statistic)) {
    if (fuse) "U" else "V"
  } else {
    check_choice(statistic, c("V", "U"), "statistic")
  }
  only(!fuse || statistic == "U", "statistic", "\"U\"",
       "for kernel_rbf(\"fuse\")")
  only(!fuse || estimator == "kme", "estimator", "\"kme\"",
       "for kernel_rbf(\"fuse\")")
  only(!shrunk || statistic == "V", "statistic", "\"V\"", paste0(
    "for estimator \"", estimator, "\""
  ))
  if (null != "permutation") {
    reason <- paste0("for null = \"", null, "\"")
    only(!fuse, "null", "\"permutation\"", "for kernel_rbf(\"fuse\")")
    only(estimator == "kme", "estimator", "\"kme\"", reason)
    only(null != "gamma" || statistic == "V", "statistic", "\"V\"", reason)
    only(is.null(bins), "bins", "NULL", reason)
  }
  list(
    kernel = kernel, estimator = estimator, null = null, statistic = statistic,
    select = check_select(select, estimator, lambda, NULL, NULL, noise),
    lambda = lambda, noise = noise, fuse = fuse,
    bins = if (!is.null(bins)) check_count(bins, "bins", 2L),
    progress = check_flag(progress, "progress")
  )
}

# list(x or gram, kernel, sizes, groups, order): the points sorted by group.
pool_samples <- function(x, y, kernel) {
  if (inherits(x, "kernmean_pooled")) {
    return(pool_groups(x, kernel))
  }
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
  new_samples(both, NULL, kernel, groups)
}

pool_groups <- function(pooled, kernel) {
  order <- pooled$order
  if (is.null(pooled$points$gram)) {
    x <- pooled$points$x[order, , drop = FALSE]
    return(c(new_samples(x, NULL, kernel, pooled$groups),
             list(order = order)))
  }
  g <- pooled$points$gram
  if (is.unsorted(order)) {
    g <- new_gram(g$K[order, order], g$kernel,
                  if (!is.null(g$x)) g$x[order, , drop = FALSE])
  }
  c(new_samples(g$x, g, NULL, pooled$groups), list(order = order))
}

new_samples <- function(x, gram, kernel, groups) {
  sizes <- tabulate(groups, nlevels(groups))
  if (length(sizes) < 2L) {
    stop_input("there must be at least two groups, not ", length(sizes))
  }
  if (any(sizes < 2L)) {
    small <- which(sizes < 2L)[1L]
    stop_input(
      "each sample must have at least 2 points; '", levels(groups)[small],
      "' has ", sizes[small]
    )
  }
  fuse <- identical(kernel$bandwidth, "fuse")
  if (fuse && length(sizes) > 2L) {
    stop_input("there must be two samples for kernel_rbf(\"fuse\"), not ",
               length(sizes))
  }
  if (is.null(gram) && !fuse) {
    kernel <- fit_kernel(kernel, x)
    if (kernel$family == "function") {
      gram <- gram(x, kernel)
    }
  }
  list(x = x, gram = gram, kernel = if (is.null(gram)) kernel else gram$kernel,
       sizes = sizes, groups = groups)
}

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

# How relabellings are made; adds bins to check_permutations().
check_scheme <- function(samples, options, permutations, B, blocks) {
  n <- sum(samples$sizes)
  if (!is.null(samples$order) && length(blocks) == n) {
    blocks <- blocks[samples$order]
  }
  scheme <- check_permutations(permutations, n, B, blocks)
  if (!is.null(scheme$matrix) && !is.null(samples$order)) {
    scheme$matrix[] <- match(scheme$matrix, samples$order)
  }
  random <- is.null(permutations) && is.null(blocks)
  bins <- options$bins
  if (!is.null(bins) && !random) {
    stop_input("'bins' must be NULL when 'permutations' or 'blocks' is given")
  }
  if (options$null != "permutation") {
    if (!random) {
      stop_input(
        "'permutations' and 'blocks' must be NULL for null = \"", options$null,
        "\""
      )
    }
  } else if (is.null(bins) && random && options$estimator != "fkmse") {
    bins <- usual_bins(samples$sizes)
  }
  least <- min(samples$sizes)
  if (!is.null(bins) && options$estimator == "fkmse") {
    stop_input("'bins' must be NULL for estimator \"fkmse\"")
  }
  if (!is.null(bins) && bins > least) {
    stop_input("'bins' must be at most ", least, ", the points of the ",
               "smallest sample, not ", bins)
  }
  if (!is.null(bins) && least %/% bins == 1L) {
    bins <- NULL
  }
  if (scheme$all) {
    scheme$matrix <- all_labellings(samples$sizes, scheme$blocks)
    scheme$B <- ncol(scheme$matrix)
  }
  check_moves(samples$sizes, scheme$blocks)
  scheme$complete <- scheme$all ||
    !is.null(scheme$matrix) && leaves_labels(scheme$matrix, samples$sizes)
  c(scheme, bins = bins)
}

most_labellings <- 1e5

# A permutation for each way to give the points to groups of these sizes (within
# blocks: as many of each block to each group as there are).
all_labellings <- function(sizes, blocks = NULL) {
  groups <- rep(seq_along(sizes), sizes)
  within <- split(seq_along(groups), if (is.null(blocks)) 0 else blocks)
  ways <- \(points) {
    lfactorial(length(points)) - sum(lfactorial(tabulate(groups[points])))
  }
  count <- exp(sum(vapply(within, ways, numeric(1))))
  if (count > 1.001 * most_labellings) {
    stop_input(
      "'permutations' must not be \"all\" for ", format(count, digits = 3),
      " labellings; at most 100000 are enumerated"
    )
  }
  labels <- matrix(groups)
  for (points in within) {
    some <- arrangements(groups[points])
    each <- rep(seq_len(ncol(some)), each = ncol(labels))
    labels <- labels[, rep(seq_len(ncol(labels)), ncol(some)), drop = FALSE]
    labels[points, ] <- some[, each]
  }
  apply(labels, 2L, order)
}

# All different orders of the labels, one a column, as they stand first.
arrangements <- function(labels) {
  if (length(unique(labels)) == 1L) {
    return(matrix(labels))
  }
  first <- labels == labels[1L]
  places <- utils::combn(length(labels), sum(first))
  rest <- arrangements(labels[!first])
  do.call(cbind, lapply(seq_len(ncol(places)), \(c) {
    out <- matrix(labels[1L], length(labels), ncol(rest))
    out[-places[, c], ] <- rest
    out
  }))
}

# With blocks that each hold points of one sample only, no label can change.
check_moves <- function(sizes, blocks) {
  groups <- rep(seq_along(sizes), sizes)
  if (!is.null(blocks) && !anyDuplicated(unique(cbind(blocks, groups))[, 1L])) {
    stop_input("'blocks' must hold points of different samples in some block")
  }
}

# Does a column leave every point in its group?
leaves_labels <- function(permutations, sizes) {
  group <- rep(seq_along(sizes), sizes)
  any(colSums(matrix(group[permutations], nrow(permutations)) != group) == 0)
}


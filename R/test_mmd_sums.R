# The statistics of mmd_test(): those that are sums of a Gram matrix over the
# samples, for many labelings at once, and those of any other estimator. The
# null distributions are here as well.

# --- Sources of kernel values ------------------------------------------------

# The points of a test for sums over labelings, "the layout":
#   sizes     the units of each sample
#   points    the points of each sample
#   blocks    the block of each unit, or NULL
#   unit      the unit of each point; NULL where points are units
#   weights   the points of each unit, where the sizes of the samples change
#             with the labels
#   bin       the points of a bin
new_layout <- function(sizes, points = sizes, blocks = NULL, unit = NULL,
                       weights = NULL, bin = NULL) {
  list(sizes = sizes, points = points, blocks = blocks, unit = unit,
       weights = weights, bin = bin)
}

# Returns the layout of a scheme; the points of each bin are drawn at random.
label_layout <- function(samples, scheme) {
  if (!is.null(scheme$bins)) {
    return(binned_layout(samples$sizes, scheme$bins))
  }
  if (is.null(scheme$clusters)) {
    return(new_layout(samples$sizes, blocks = scheme$blocks))
  }
  total <- sum(scheme$sizes)
  check_memory(total, total, "use fewer clusters", copies = 10)
  new_layout(scheme$sizes, samples$sizes, scheme$blocks, scheme$clusters,
             as.double(tabulate(scheme$clusters, total)))
}

# The layout of bins. Points that fill no bin of their sample stay together and
# never change places.
binned_layout <- function(sizes, bins) {
  size <- min(sizes) %/% bins
  most <- sum(sizes) / size
  check_memory(most, most, "use fewer bins", copies = 32)
  counts <- sizes %/% size
  left <- sizes - counts * size
  units <- counts + (left > 0)
  first <- cumsum(units) - units
  # The unit of each point, in random order within its sample.
  unit <- unlist(lapply(seq_along(units), \(g) {
    own <- c(rep(seq_len(counts[g]), each = size), rep(counts[g] + 1L, left[g]))
    (first[g] + own)[order(sample.int(sizes[g]))]
  }))
  free <- sequence(units) <= rep(counts, units)
  new_layout(units, sizes, ifelse(free, 1L, 1L + cumsum(!free)), unit,
             bin = size)
}

# The source of the sums over labelings: the fields of the layout, without
# `unit` where units are gathered, and
#   native    sources for the core, one for each bandwidth, or one with all
#             `rates`
#   rows      the row sums, a column for each bandwidth
#   diagonal  likewise
#   moments   of units of points, see labeled_sums()
#   shifts    see center_source_sums()
new_label_source <- function(layout, native, rows, diagonal, moments = NULL) {
  c(layout, list(native = native, rows = rows, diagonal = diagonal,
                 moments = moments))
}

label_source <- function(samples, layout) {
  sample <- samples$sample
  bandwidths <- samples$bandwidths
  if (!is.null(layout$unit)) {
    return(gather_units(samples, layout))
  }
  blocks <- if (!stores_gram(sample)) sample$blocks
  sample <- without_blocks(sample)
  each <- by_bandwidth(sample, bandwidths)
  native <- lapply(each, sample_source)
  rows <- vapply(native, \(one) .Call(C_r_kernel_rows, one), numeric(sample$n))
  rows <- check_overflow(sample$kernel, rows)
  source <- new_label_source(layout, native, rows,
                             vapply(each, sample_diagonal, numeric(sample$n)))
  if (!is.null(bandwidths)) {
    unit <- max(power_of_two(sample$x), .Machine$double.xmin)
    distance <- points_sample(sample$x, new_kernel("sqdist", "", unit))
    source$native <- list(sample_source(distance))
    source$rates <- unit^2 / (2 * bandwidths^2)
  }
  if (is.null(blocks)) source else center_source_sums(source, each, blocks)
}

# Takes block means off the features of a source, without making HKH. Labels
# change places within blocks, so the block means a of a set s stay the same,
# and s'HKHs = s'Ks - 2 s'Ka + a'Ka. The source gets `shifts`, which has for
# each bandwidth Ka of each group (shift) and a'Ka of each two groups (norm).
center_source_sums <- function(source, each, blocks) {
  sizes <- source$sizes
  groups <- diag(length(sizes))[rep(seq_along(sizes), sizes), , drop = FALSE]
  a <- groups - center_blocks(groups, blocks)
  source$shifts <- lapply(each, \(sample) {
    shift <- as.matrix(sample_apply(sample, a))
    list(shift = shift, norm = crossprod(a, shift))
  })
  source$diagonal <- vapply(each, \(sample) {
    rows <- lapply(in_blocks(sample$n, blocks), \(i) {
      sums <- sample_rows(sample_take(sample, i)) / length(i)
      2 * sums - mean(sums)
    })
    sample_diagonal(sample) - unsplit(rows, blocks)
  }, numeric(nrow(groups)))
  source$rows[] <- 0
  source
}

# Returns s'Ks - s'HKHs for each set of a chunk, with a column for each
# bandwidth.
given_forms <- function(source, labels) {
  set <- rep_len(seq_len(labels$sets), labels$count)
  vapply(source$shifts, \(one) {
    shift <- .Call(C_r_subset_sums, labels$subsets, labels$count,
                   tcross(one$shift, labels$groups))
    2 * shift[cbind(seq_along(set), set)] -
      rowSums(product(labels$groups, one$norm) * labels$groups)[set]
  }, numeric(length(set)))
}

# Returns a list with the sample for each of the bandwidths, or with the sample
# itself if there are none.
by_bandwidth <- function(sample, bandwidths) {
  if (is.null(bandwidths)) {
    return(list(sample))
  }
  lapply(bandwidths, \(theta) {
    given_blocks(points_sample(sample$x, kernel_rbf(theta)), sample$blocks)
  })
}

# The source of the Gram matrix of units, whose values are sums over their
# points.
gather_units <- function(samples, layout) {
  unit <- layout$unit
  sorted <- order(unit)
  total <- sum(layout$sizes)
  each <- by_bandwidth(sample_take(samples$sample, sorted), samples$bandwidths)
  gathered <- lapply(each, \(sample) {
    block <- .Call(C_r_block_sums, sample_source(sample), tabulate(unit, total),
                   NULL, NULL, NULL, TRUE)
    check_overflow(sample$kernel, block$sums)
    block$diagonal <- rowsum(sample_diagonal(sample), unit[sorted])
    block
  })
  layout["unit"] <- list(NULL)
  new_label_source(
    layout, lapply(gathered, \(b) native_source(NULL, b$sums)),
    vapply(gathered, \(b) rowSums(b$sums), numeric(total)),
    vapply(gathered, `[[`, numeric(total), "diagonal"),
    vapply(gathered, `[[`, numeric(2), "moments")
  )
}

# --- Sums over labelings -----------------------------------------------------

sets_at_once <- 2048L

# For each bandwidth the sums of kernel values over groups, "the sums", with a
# row for each labeling, the observed one first:
#   within    a column for each group
#   cross     a column for each pair g < h, or without `pairs` one with their
#             sum
#   trace     on the diagonal, a column for each group
#   sizes     the points of each group
#   moments   the sums of |K_ij| and K_ij^2 over all pairs of points
labeled_sums <- function(source, scheme, pairs, progress) {
  gather_sums(source, in_label_chunks(
    source, scheme, pairs, progress, \(labels) subset_sums(source, labels)
  ))
}

# The results of use(labels) for chunks of labelings, the observed one first. A
# chunk has the subsets as bits, the number of `sets` of each labeling, the
# `groups` that are in each set, and the `count` of sets in all.
in_label_chunks <- function(layout, scheme, pairs, progress, use) {
  groups <- length(layout$sizes)
  sets <- diag(groups) == 1
  if (groups == 2L) {
    sets <- take_rows(sets, 1L)
  } else if (pairs) {
    sets <- rbind(sets, utils::combn(groups, 2L, \(p) seq_len(groups) %in% p) |>
                    t())
  }
  step <- max(32L, sets_at_once %/% nrow(sets))
  in_chunks(scheme$B, step, progress, \(start, count) {
    permutations <- take_columns(scheme$matrix, start + seq_len(count))
    if (!is.null(permutations)) storage.mode(permutations) <- "integer"
    observed <- start == 0L
    use(list(
      subsets = .Call(C_r_subsets, permutations, count, layout$sizes, sets,
                      layout$blocks, observed),
      sets = nrow(sets), groups = sets + 0,
      count = as.double(count + observed) * nrow(sets)
    ))
  })
}

# Returns the quadratic forms of the subsets of a chunk, and their sums of rows,
# of the diagonal and of weights. The subsets of one labeling stand together,
# and there is a column for each bandwidth.
subset_sums <- function(source, labels) {
  forms <- lapply(source$native, \(native) {
    .Call(C_r_subset_forms, native, labels$subsets, labels$count, source$rates)
  })
  bind <- \(field) do.call(cbind, lapply(forms, `[[`, field))
  less <- if (is.null(source$shifts)) 0 else given_forms(source, labels)
  sums_over <- \(v) .Call(C_r_subset_sums, labels$subsets, labels$count, v)
  list(forms = bind("forms") - less, rows = sums_over(source$rows),
       trace = sums_over(source$diagonal),
       weights = if (!is.null(source$weights)) {
         sums_over(matrix(source$weights))
       },
       moments = bind("moments"), sets = labels$sets)
}

# The sums over groups from the subset_sums() of all chunks.
gather_sums <- function(source, parts) {
  groups <- length(source$sizes)
  # A matrix labelings x sets for bandwidth j.
  bind <- \(name, j) {
    matrix(unlist(lapply(parts, \(part) part[[name]][, j])),
           ncol = parts[[1L]]$sets, byrow = TRUE)
  }
  check_result(list(bind("forms", 1L), colSums(source$rows),
                    colSums(source$diagonal)), "a sum of kernel values")
  moments <- source$moments %||% parts[[1L]]$moments
  weights <- if (!is.null(source$weights)) {
    by_group(bind("weights", 1L), sum(source$points), groups)
  }
  lapply(seq_len(ncol(source$rows)), \(j) {
    sums <- block_sums(
      bind("forms", j), bind("rows", j), bind("trace", j),
      sum(source$rows[, j]), sum(source$diagonal[, j]), groups
    )
    sums$sizes <- if (is.null(weights)) {
      matrix(source$points, nrow(sums$within), groups, byrow = TRUE)
    } else {
      weights
    }
    sums$moments <- moments[, j]
    sums
  })
}

# Turns sums over sets into sums over groups. The first sets are the groups;
# with two groups, only the first group is a set.
by_group <- function(sums, whole, groups) {
  if (groups == 2L) cbind(sums, whole - sums) else
    take_columns(sums, seq_len(groups))
}

# Sums within and between groups from forms over sets.
block_sums <- function(forms, rows, trace, total, whole, groups) {
  trace <- by_group(trace, whole, groups)
  if (groups == 2L) {
    cross <- rows - forms
    return(list(within = cbind(forms, total - rows - cross), cross = cross,
                trace = trace))
  }
  within <- take_columns(forms, seq_len(groups))
  cross <- if (ncol(forms) == groups) {
    matrix((total - rowSums(within)) / 2)
  } else {
    each <- utils::combn(groups, 2L)
    (take_columns(forms, -seq_len(groups)) - within[, each[1L, ]] -
       within[, each[2L, ]]) / 2
  }
  list(within = within, cross = cross, trace = trace)
}

# --- The statistics ----------------------------------------------------------

# A comparison, which a test of samples finds:
#   statistic see new_statistic()
#   plain     the squared distance of the means of two samples; with filters and
#             many bandwidths that of plain means
#   share     of the total that lies between the samples
#   pairs     of several samples, MMD^2 of each pair
#   alpha     the share of shrinkage of each mean
#   source    of statistics made of sums, see new_label_source()
#   sums      likewise, see labeled_sums()
#   settled   the choices of the estimator, see est_settle()
new_comparison <- function(statistic, plain, share, pairs = NULL, alpha = NULL,
                           source = NULL, sums = NULL, settled = NULL) {
  list(statistic = statistic, plain = plain, share = share, pairs = pairs,
       alpha = alpha, source = source, sums = sums, settled = settled)
}

# The comparison by sums of kernel values, for the average, many bandwidths and
# estimators whose shrinkage has a formula in sums.
compare_sums <- function(samples, options, scheme, settled) {
  source <- label_source(samples, label_layout(samples, scheme))
  if (options$null != "permutation") scheme$B <- 0L
  shares <- if (!is_unshrunk(settled$estimator)) est_share(settled$estimator)
  each <- labeled_sums(source, scheme, !is.null(shares), options$progress)
  sums <- each[[1L]]
  several <- length(samples$sizes) > 2L
  alpha <- size <- NULL
  if (!is.null(samples$bandwidths)) {
    # `plain` is the squared distance for the average of the kernels.
    plain <- mean(vapply(each, \(sums) {
      mmd_values(observed_sums(sums), "biased")
    }, 1))
    statistic <- new_statistic("fused MMD^2", fused_values(each), 1)
    return(new_comparison(statistic, plain, between_share(each),
                          source = source, sums = sums))
  }
  if (is.null(shares)) {
    size <- settled$height * (sums$moments[1L] / sum(samples$sizes)^2)
    values_of <- \(sums) settled$height * mmd_values(sums, options$statistic)
  } else {
    alpha <- group_shares(observed_sums(sums), shares)[1L, ]
    if (all(alpha == 1)) {
      warn_kernmean("the estimator shrinks all means to 0, and the test says ",
                    "nothing; the average, \"kme\", does not shrink")
    }
    values_of <- \(sums) settled$height * shrunk_values(sums, shares)
  }
  values <- values_of(sums)
  pairs <- if (several) {
    mmd_of_pairs(labeled_sums(source, list(B = 0L), TRUE, FALSE)[[1L]],
                values_of)
  }
  new_comparison(
    new_statistic(mmd_name(several), values, size),
    values[1L], between_share(each), pairs, alpha, source, sums
  )
}

mmd_name <- \(several) if (several) "sum of MMD^2" else "MMD^2"

# The sums of the observed labeling alone.
observed_sums <- function(sums) {
  lapply(sums[c("within", "cross", "trace", "sizes")], \(a) {
    take_rows(a, 1L)
  })
}

# Returns the statistic values_of(sums) of each pair of samples. `sums` are
# those of one labeling, with a column of `cross` for each pair.
mmd_of_pairs <- function(sums, values_of) {
  each <- utils::combn(ncol(sums$within), 2L)
  vapply(seq_len(ncol(each)), \(p) {
    two <- lapply(sums[c("within", "trace", "sizes")], \(a) {
      take_columns(a, each[, p])
    })
    values_of(c(two, list(cross = take_columns(sums$cross, p))))
  }, numeric(1))
}

# The share between samples, sum_g m_g |mu_g - mu|^2 / sum_i |phi_i - mu|^2 of
# plain means for the observed labeling, numerator and denominator added up over
# the bandwidths; 0 where all points are the same to the kernel.
between_share <- function(each) {
  parts <- vapply(each, \(sums) {
    sums <- observed_sums(sums)
    n <- sum(sums$sizes)
    total <- (sum(sums$within) + 2 * sum(sums$cross)) / n
    c(between = sum(sums$within / sums$sizes) - total,
      all = sum(sums$trace) - total, size = sum(abs(sums$within)) / n)
  }, numeric(3))
  check_result(parts, "a sum of kernel values")
  parts <- rowSums(parts)
  if (parts[["all"]] <= tie_slack * parts[["size"]]) {
    return(0)
  }
  min(1, max(0, parts[["between"]] / parts[["all"]]))
}

# The comparison of plain means for the observed labeling, by the biased
# statistic, whose root is a distance.
compare_plain <- function(source, statistic = NULL, height = 1) {
  several <- length(source$sizes) > 2L
  each <- labeled_sums(source, list(B = 0L), several, FALSE)
  values_of <- \(sums) height * mmd_values(sums, "biased")
  new_comparison(statistic, values_of(each[[1L]]), between_share(each),
                 if (several) mmd_of_pairs(each[[1L]], values_of))
}

# Returns for each labeling the squared distance of two means, sums_xx/m_x^2 +
# sums_yy/m_y^2 - 2 sums_xy/(m_x m_y). With more than two means, the distances
# of all pairs are added up with the weights m_g m_h/N. The unbiased type leaves
# out the diagonal and has m(m - 1) in place of m^2.
mmd_values <- function(sums, type) {
  unbiased <- type == "unbiased"
  sizes <- sums$sizes
  n <- sum(sizes[1L, ])
  within <- if (unbiased) sums$within - sums$trace else sums$within
  terms <- rowSums(within * ((n - sizes) / (sizes - unbiased))) -
    2 * rowSums(sums$cross)
  terms / if (ncol(sizes) == 2L) as.double(sizes[, 1L]) * sizes[, 2L] else n
}

# The share alpha by which the mean of each group is shrunk, labelings x groups.
group_shares <- function(sums, shares) {
  shares(sums$within / sums$sizes^2, sums$trace / sums$sizes, sums$sizes)
}

# The squared distance of means that are shrunk towards 0, each by its own
# share.
shrunk_values <- function(sums, shares) {
  keep <- 1 - group_shares(sums, shares)
  pairs <- utils::combn(ncol(keep), 2L)
  sums$within <- keep^2 * sums$within
  sums$cross <- keep[, pairs[1L, ]] * keep[, pairs[2L, ]] * sums$cross
  mmd_values(sums, "biased")
}

# Combines the studentized unbiased statistics of all bandwidths by
# log_mean_exp().
fused_values <- function(sums) {
  z <- vapply(sums, \(one) {
    n <- sum(one$sizes[1L, ])
    m <- pmin(one$sizes[, 1L], one$sizes[, 2L])
    # The mean square of the values off the diagonal; those on it are 1.
    square <- (one$moments[2L] - n) / (n * (n - 1))
    # If no two points are alike to the kernel, nothing can be told apart.
    scale <- if (square > 0) sqrt(m * (m - 1) / square) else 0
    scale * mmd_values(one, "unbiased")
  }, numeric(nrow(sums[[1L]]$within)))
  log_mean_exp(matrix(z, ncol = length(sums)))
}

# --- Any estimator -----------------------------------------------------------

# The comparison by an estimator that is fitted to each labeling.
compare_fits <- function(samples, options, scheme, settled) {
  estimator <- settled$estimator
  sample <- samples$sample
  # An estimator without weights is fitted to features that are not centered,
  # and mean_sums() takes the block means off afterwards.
  blocks <- if (!has_weights(estimator)) sample$blocks
  if (!is.null(blocks)) sample <- without_blocks(sample)
  sample <- if (has_weights(estimator) || needs_gram(estimator)) {
    form_sample(sample)
  } else {
    without_gram(sample)
  }
  # An order of the units, cut into groups, gives the points of each group.
  units <- scheme$clusters %||% seq_len(sample$n)
  members <- split(seq_len(sample$n), units)
  group <- rep(seq_along(scheme$sizes), scheme$sizes)
  sums_of <- \(order) {
    points <- lapply(split(order, group), \(i) {
      unlist(members[i], use.names = FALSE)
    })
    mean_sums(sample, unname(points), estimator, blocks)
  }
  values_of <- \(sums) settled$height * mmd_values(sums, "biased")
  values <- refitted_draws(
    \(order) values_of(sums_of(order)), scheme, estimator,
    sum(samples$sizes^3) / 3, options$progress
  )
  samples$sample <- given_blocks(sample, blocks)
  plain <- compare_plain(label_source(samples, new_layout(samples$sizes)))
  several <- length(scheme$sizes) > 2L
  new_comparison(new_statistic(mmd_name(several), values, NULL), values[1L],
                 plain$share, if (several) {
                   mmd_of_pairs(sums_of(seq_along(members)), values_of)
                 })
}

# The sums of one labeling, made from the means that the estimator fits to the
# points of each group, as if these were plain means. `blocks` is given if the
# features are not centered yet, and then the block means are taken away here.
mean_sums <- function(sample, points, estimator, blocks) {
  sizes <- lengths(points)
  means <- lapply(points, \(i) {
    part <- sample_take(sample, i)
    if (has_weights(estimator)) est_weights(estimator, part) else
      est_parts(estimator, part)
  })
  if (!is.null(blocks)) {
    own <- vapply(points, \(i) seq_len(sample$n) %in% i / length(i),
                  numeric(sample$n))
    less <- center_blocks(own, blocks) - own
    means <- lapply(seq_along(means), \(g) {
      c(means[[g]], list(new_mean_part(sample, less[, g])))
    })
  }
  inner <- if (has_weights(estimator)) {
    weights <- matrix(0, sample$n, length(points))
    weights[cbind(unlist(points), rep(seq_along(points), sizes))] <-
      unlist(means)
    crossprod(weights, sample_matrix(sample) %*% weights)
  } else {
    inner_matrix(means, sample$kernel)
  }
  sums <- inner * outer(sizes, sizes)
  list(within = t(diag(sums)), cross = t(sums[lower.tri(sums)]),
       trace = t(sizes), sizes = t(sizes))
}

# --- Null distributions ------------------------------------------------------

# The null distribution of a comparison.
mmd_null <- function(samples, options, scheme, comparison) {
  statistic <- comparison$statistic
  if (options$null == "gamma") {
    return(permutation_gamma(statistic$values[1L], comparison$source,
                             samples$sizes, comparison$sums$moments[2L]))
  }
  if (options$null == "spectrum") {
    statistic$values <- c(statistic$values[1L],
                          spectrum_draws(samples, options, scheme$B))
  } else {
    check_varies(statistic$values, scheme, statistic$size)
  }
  drawn_null(statistic, scheme)
}

# Returns B draws of sum_l gamma_l/N Z_l^2 in the units of the statistic, where
# Z_l^2 is chi-squared with groups - 1 degrees of freedom. The unbiased
# statistic takes Z_l^2 less its mean.
spectrum_draws <- function(samples, options, B) {
  values <- null_spectrum(samples$sample, samples)
  values <- values[values > 0]
  check_memory(B, length(values), "take fewer draws", copies = 3,
               what = "the chi-squared numbers of all draws,")
  freedom <- length(samples$sizes) - 1
  unit <- if (freedom == 1) prod(samples$sizes) else sum(samples$sizes)
  squares <- matrix(stats::rchisq(as.double(B) * length(values), freedom), B)
  if (options$statistic == "unbiased") squares <- squares - freedom
  drop(squares %*% values) / unit
}

# The eigenvalues gamma_l.
null_spectrum <- function(sample, samples) UseMethod("null_spectrum")
null_spectrum.kernmean_sample <- function(sample, samples) {
  centered <- centered_values(center_linear(sample))
  clip_values(spectrum_values(centered$k), centered$scale,
              "the centered Gram matrix")
}

# The gamma law with the mean and variance of the biased statistic over all
# permutations; none if the statistic is constant.
permutation_gamma <- function(observed, source, sizes, square) {
  rows <- source$rows[, 1L]
  diagonal <- source$diagonal[, 1L]
  if (all(rows == rows[1L]) && all(diagonal == rows[1L] / length(rows))) {
    return(new_null(1))
  }
  moments <- labeled_moments(rows, diagonal, sizes, square, "biased")
  if (is.na(moments$variance)) {
    stop_kernmean(
      "numeric", "the kernel values differ too little from each other for ",
      "null = \"gamma\"; take a smaller bandwidth or center the columns"
    )
  }
  gamma_null(observed, moments$mean, moments$variance)
}

# Mean and variance of the statistic of two samples over all permutations, from
# the row sums, the diagonal and the sum of squares of K. The statistic is the
# form of the centered K and of the weights ww' with w = 1/m and -1/n, or of
# these without their diagonal. The variance is NA where it cannot be told from
# rounding.
labeled_moments <- function(rows, diagonal, sizes, square, type) {
  n <- sum(sizes)
  weights <- list(diagonal = rep(1 / sizes^2, sizes), trace = sum(1 / sizes),
                  norm = sum(1 / sizes))
  if (type == "unbiased") {
    rows <- rows - diagonal
    square <- square - sum(diagonal^2)
    diagonal <- 0
    weights <- list(diagonal = numeric(n), trace = 0, norm = sqrt(
      sum(1 / (sizes * (sizes - 1))) + 2 / prod(sizes)
    ))
  }
  total <- sum(rows) / n
  diagonal <- diagonal - 2 * rows / n + total / n
  moments <- form_moments(list(
    diagonal = diagonal, trace = sum(diagonal),
    norm = sqrt(max(0, square - 2 * sum(rows^2) / n + total^2))
  ), weights)
  size <- moments$mean^2 + moments$variance + weights$norm^2 * square / n^2
  rounded <- !(moments$variance > 64 * n * .Machine$double.eps * size)
  if (rounded || !is.finite(size)) moments$variance <- NA
  moments
}

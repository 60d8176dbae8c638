# Sums of a Gram matrix over the samples for many labelings at once, and the
# statistics of mmd_test() that are made of them.

# --- Where the kernel values come from ---------------------------------------

# list(native, rates, rows, diagonal, sizes, blocks, points, weights): what the
# folds need. native: sources for the core, one with all rates or one for each
# bandwidth. rows, diagonal: row sums and diagonal, one column a bandwidth.
# sizes: units that change places (points, bins or clusters) in each sample;
# blocks: NULL or the codes of what changes places with what. points: those of
# each sample, which every labeling keeps unless there are weights, the points
# of each unit.
mmd_source <- function(samples, units) {
  sample <- samples$sample
  bandwidths <- samples$bandwidths
  if (!is.null(units$unit)) {
    gathered <- gather_units(samples, units$unit, sum(units$sizes))
    return(c(gathered, units[names(units) != "unit"]))
  }
  each <- by_bandwidth(sample, bandwidths)
  source <- c(units, list(
    rows = vapply(each, sample_rows, numeric(sample$n)),
    diagonal = vapply(each, sample_diagonal, numeric(sample$n))
  ))
  if (is.null(bandwidths)) {
    source$native <- list(sample_source(sample))
  } else {
    unit <- max(power_of_two(sample$x), .Machine$double.xmin)
    distance <- points_sample(sample$x, new_kernel("sqdist", "", unit))
    source$native <- list(sample_source(distance))
    source$rates <- unit^2 / (2 * bandwidths^2)
  }
  source
}

# The sample with each of many bandwidths; itself where there are none.
by_bandwidth <- function(sample, bandwidths) {
  if (is.null(bandwidths)) {
    return(list(sample))
  }
  lapply(bandwidths, \(theta) points_sample(sample$x, kernel_rbf(theta)))
}

# Bins of points in place of points. The points of a sample that fill no bin
# stay together and never change places.
binned_units <- function(samples, bins) {
  size <- min(samples$sizes) %/% bins
  most <- sum(samples$sizes) / size
  check_memory(most, most, "use fewer bins", copies = 32)
  counts <- samples$sizes %/% size
  left <- samples$sizes - counts * size
  units <- counts + (left > 0)
  first <- cumsum(c(0L, units))[seq_along(units)]
  # The unit of each point, in random order within its sample.
  unit <- unlist(lapply(seq_along(units), \(g) {
    of <- c(rep(seq_len(counts[g]), each = size), rep(counts[g] + 1L, left[g]))
    (first[g] + of)[order(sample.int(samples$sizes[g]))]
  }))
  free <- unlist(lapply(seq_along(units), \(g) seq_len(units[g]) <= counts[g]))
  list(unit = unit, sizes = units, points = samples$sizes, bin = size,
       blocks = ifelse(free, 1L, 1L + cumsum(!free)))
}

# Clusters of points in place of points: the samples' sizes change with them.
clustered_units <- function(samples, scheme) {
  unit <- scheme$clusters
  total <- sum(scheme$sizes)
  check_memory(total, total, "use fewer clusters", copies = 10)
  list(unit = unit, sizes = scheme$sizes, points = samples$sizes,
       blocks = scheme$blocks, weights = as.double(tabulate(unit, total)))
}

# What changes places: list(unit: that of each point, NULL where points are
# units, and fields of mmd_source()). Bins are drawn.
mmd_units <- function(samples, scheme) {
  if (!is.null(scheme$bins)) {
    binned_units(samples, scheme$bins)
  } else if (!is.null(scheme$clusters)) {
    clustered_units(samples, scheme)
  } else {
    list(sizes = samples$sizes, points = samples$sizes, blocks = scheme$blocks)
  }
}

# The sums of kernel values over units of points, which are a Gram matrix of
# units. unit: that of each point.
gather_units <- function(samples, unit, total) {
  order <- order(unit)
  sizes <- tabulate(unit, total)
  each <- by_bandwidth(sample_take(samples$sample, order), samples$bandwidths)
  gathered <- lapply(each, \(sample) {
    found <- .Call(C_r_block_sums, sample_source(sample), sizes, NULL, NULL,
                   NULL, TRUE)
    check_overflow(sample$kernel, found$sums)
    c(found, list(diagonal = sample_diagonal(sample)))
  })
  by_unit <- \(v) as.vector(rowsum(v, unit[order]))
  list(
    native = lapply(gathered, \(b) native_source(NULL, b$sums)),
    rows = vapply(gathered, \(b) rowSums(b$sums), numeric(total)),
    diagonal = vapply(gathered, \(b) by_unit(b$diagonal), numeric(total)),
    moments = vapply(gathered, `[[`, numeric(2L), "moments")
  )
}

# --- Sums over labelings ----------------------------------------------------

sets_at_once <- 2048L

# For each bandwidth, list(own, cross, trace, sizes, moments): the observed
# labeling and then each permutation, one a row; sums of kernel values within
# groups, between groups (a column for each pair g < h, or one with the sum over
# all pairs if `pairs` is FALSE), on the diagonal, and the points of each group;
# and the sums of |K_ij| and K_ij^2 over all pairs of points.
labeled_sums <- function(source, scheme, pairs, progress) {
  gather_sums(source, in_label_chunks(
    source, scheme, pairs, progress, \(labels) subset_sums(source, labels)
  ))
}

# use(labels) of chunks of labelings, the observed one first in the first:
# list(subsets, sets: how many of each labeling).
in_label_chunks <- function(units, scheme, pairs, progress, use) {
  groups <- length(units$sizes)
  sets <- diag(groups) == 1
  if (groups == 2L) {
    sets <- sets[1L, , drop = FALSE]
  } else if (pairs) {
    each <- utils::combn(groups, 2L)
    sets <- rbind(sets, t(apply(each, 2L, \(p) seq_len(groups) %in% p)))
  }
  step <- max(32L, sets_at_once %/% nrow(sets))
  in_chunks(scheme$B, step, progress, \(start, count) {
    given <- scheme$matrix[, start + seq_len(count), drop = FALSE]
    if (!is.null(given)) storage.mode(given) <- "integer"
    observed <- start == 0L
    use(list(
      subsets = .Call(C_r_subsets, given, count, units$sizes, sets,
                      units$blocks, observed),
      sets = nrow(sets), count = as.double(count + observed) * nrow(sets)
    ))
  })
}

# From the subset_sums() of all chunks.
gather_sums <- function(source, parts) {
  groups <- length(source$sizes)
  bind <- \(name, j) do.call(rbind, lapply(parts, \(p) p[[name]][[j]]))
  forms <- bind("forms", 1L)
  check_result(list(forms, colSums(source$rows), colSums(source$diagonal)),
               "a sum of kernel values")
  sizes <- if (is.null(source$weights)) {
    matrix(source$points, nrow(forms), groups, byrow = TRUE)
  } else {
    by_group(bind("weights", 1L), sum(source$points), groups)
  }
  lapply(seq_len(ncol(source$rows)), \(j) {
    sums <- block_sums(
      bind("forms", j), bind("rows", j), bind("trace", j),
      sum(source$rows[, j]), sum(source$diagonal[, j]), groups
    )
    moments <- if (is.null(source$moments)) {
      parts[[1L]]$moments
    } else {
      source$moments
    }
    c(sums, list(sizes = sizes, moments = moments[, j]))
  })
}

# Quadratic forms, and sums of rows, diagonal and weights, over the subsets of a
# chunk: lists of matrices labelings x sets, one for each bandwidth.
subset_sums <- function(source, labels) {
  each <- lapply(source$native, \(native) {
    .Call(C_r_subset_forms, native, labels$subsets, labels$count, source$rates)
  })
  bind <- \(field) do.call(cbind, lapply(each, `[[`, field))
  shape <- function(sums) {
    lapply(seq_len(ncol(sums)), \(j) {
      matrix(sums[, j], ncol = labels$sets, byrow = TRUE)
    })
  }
  sums <- \(v) shape(.Call(C_r_subset_sums, labels$subsets, labels$count, v))
  list(forms = shape(bind("forms")), rows = sums(source$rows),
       trace = sums(source$diagonal), moments = bind("moments"),
       weights = if (!is.null(source$weights)) sums(matrix(source$weights)))
}

# From sums over sets, the first of which are the groups (of two, the first), to
# sums over the groups.
by_group <- function(sums, whole, groups) {
  if (groups == 2L) cbind(sums, whole - sums) else
    sums[, seq_len(groups), drop = FALSE]
}

# From forms over sets to sums within and between groups.
block_sums <- function(forms, rows, trace, total, whole, groups) {
  if (groups == 2L) {
    cross <- rows - forms
    return(list(own = cbind(forms, total - rows - cross), cross = cross,
                trace = by_group(trace, whole, 2L)))
  }
  own <- forms[, seq_len(groups), drop = FALSE]
  cross <- if (ncol(forms) == groups) {
    matrix((total - rowSums(own)) / 2)
  } else {
    each <- utils::combn(groups, 2L)
    both <- forms[, -seq_len(groups), drop = FALSE]
    (both - own[, each[1L, ]] - own[, each[2L, ]]) / 2
  }
  list(own = own, cross = cross, trace = by_group(trace, whole, groups))
}

# --- Statistics --------------------------------------------------------------

sums_statistics <- function(samples, options, scheme, estimator) {
  source <- mmd_source(samples, mmd_units(samples, scheme))
  if (options$null != "permutation") {
    scheme$B <- 0L
  }
  shares <- if (!is_unshrunk(estimator)) est_share(estimator)
  each <- labeled_sums(source, scheme, !is.null(shares), options$progress)
  sums <- each[[1L]]
  found <- list(source = source, sums = sums, share = between_share(each))
  if (!is.null(samples$bandwidths)) {
    return(c(list(values = fuse_statistic(each), scale = 1), found))
  }
  of <- if (!is.null(shares)) {
    \(sums) share_statistic(sums, shares)
  } else if (options$statistic == "unbiased") {
    unbiased_statistic
  } else {
    biased_statistic
  }
  c(list(
    values = of(sums),
    scale = if (is.null(shares)) sums$moments[1L] / sum(samples$sizes)^2,
    alpha = if (!is.null(shares)) {
      group_shares(observed_sums(sums), shares)[1L, ]
    },
    pairs = if (length(samples$sizes) > 2L) {
      each <- labeled_sums(source, list(B = 0L), TRUE, FALSE)
      pair_statistics(each[[1L]], of)
    }
  ), found)
}

# The sums of the observed labeling.
observed_sums <- function(sums) {
  lapply(sums[c("own", "cross", "trace", "sizes")], \(a) a[1L, , drop = FALSE])
}

# The statistic of(sums) of each pair of samples; sums: of one labeling, with
# those between groups pair by pair.
pair_statistics <- function(sums, of) {
  each <- utils::combn(ncol(sums$own), 2L)
  vapply(seq_len(ncol(each)), \(p) {
    these <- each[, p]
    two <- lapply(sums[c("own", "trace", "sizes")], \(a) {
      a[, these, drop = FALSE]
    })
    of(c(two, list(cross = sums$cross[, p, drop = FALSE])))
  }, numeric(1))
}

# sum_g m_g |mu_g - mu|^2 / sum_i |phi_i - mu|^2 of plain means as the labels
# stand, both added up over the bandwidths; 0 where all points are the same to
# the kernel.
between_share <- function(each) {
  parts <- vapply(each, \(sums) {
    sums <- observed_sums(sums)
    n <- sum(sums$sizes)
    total <- (sum(sums$own) + 2 * sum(sums$cross)) / n
    c(between = sum(sums$own / sums$sizes) - total,
      all = sum(sums$trace) - total, size = sum(abs(sums$own)) / n)
  }, numeric(3))
  check_result(parts, "a sum of kernel values")
  all <- sum(parts["all", ])
  if (all <= tie_slack * sum(parts["size", ])) {
    return(0)
  }
  min(1, max(0, sum(parts["between", ]) / all))
}

# Of the two samples: sums_xx/m_x^2 + sums_yy/m_y^2 - 2 sums_xy/(m_x m_y), with
# what stands in place of m^2 in the first two.
two_sample <- function(own, sums, squares) {
  rowSums(own / squares) -
    2 * sums$cross[, 1L] / (as.double(sums$sizes[, 1L]) * sums$sizes[, 2L])
}

biased_statistic <- function(sums) {
  if (ncol(sums$own) == 2L) {
    return(two_sample(sums$own, sums, sums$sizes^2))
  }
  total <- rowSums(sums$own) + 2 * rowSums(sums$cross)
  rowSums(sums$own / sums$sizes) - total / sum(sums$sizes[1L, ])
}

unbiased_statistic <- function(sums) {
  off <- sums$own - sums$trace
  sizes <- sums$sizes
  if (ncol(off) == 2L) {
    return(two_sample(off, sums, sizes * (sizes - 1)))
  }
  n <- sum(sizes[1L, ])
  rowSums(off / (n * (sizes - 1) / (n - sizes))) -
    2 * rowSums(sums$cross) / n
}

# The share alpha of each group's shrinkage, labelings x groups.
group_shares <- function(sums, shares) {
  shares(sums$own / sums$sizes^2, sums$trace / sums$sizes, sums$sizes)
}

# Distances of the means shrunk towards 0, each by its own factor.
share_statistic <- function(sums, shares) {
  keep <- 1 - group_shares(sums, shares)
  sizes <- sums$sizes
  norm2 <- keep^2 * (sums$own / sizes^2)
  sum_pairs(pair_distances(norm2, \(g, h, pair) {
    keep[, g] * keep[, h] * sums$cross[, pair] / sizes[, g] / sizes[, h]
  }), sizes)
}

# The squared distances of means, labelings x pairs. norm2: labelings x
# groups; inner(g, h, pair): their products.
pair_distances <- function(norm2, inner) {
  each <- utils::combn(ncol(norm2), 2L)
  distances <- lapply(seq_len(ncol(each)), \(p) {
    g <- each[1L, p]
    h <- each[2L, p]
    norm2[, g] + norm2[, h] - 2 * inner(g, h, p)
  })
  do.call(cbind, distances)
}

# The distance of two means, or the sum over pairs weighted by m_g m_h/N; sizes:
# labelings x groups.
sum_pairs <- function(distances, sizes) {
  if (ncol(sizes) == 2L) {
    return(distances[, 1L])
  }
  each <- utils::combn(ncol(sizes), 2L)
  storage.mode(sizes) <- "double"
  weights <- sizes[, each[1L, ]] * sizes[, each[2L, ]] / sum(sizes[1L, ])
  rowSums(distances * weights)
}

# log mean exp of the studentized unbiased statistics over the bandwidths.
fuse_statistic <- function(sums) {
  z <- vapply(sums, \(one) {
    n <- sum(one$sizes[1L, ])
    m <- pmin(one$sizes[, 1L], one$sizes[, 2L])
    # Squares of the values off the diagonal, which is 1.
    square <- (one$moments[2L] - n) / (n * (n - 1))
    sqrt(m * (m - 1) / square) * unbiased_statistic(one)
  }, numeric(nrow(sums[[1L]]$own)))
  log_mean_exp(matrix(z, ncol = length(sums)))
}

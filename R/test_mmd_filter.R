# Filtered two-sample statistics: those of test_mmd_sums.R of other Gram
# matrices of the same points, M for means (order 1) and M o M for covariances
# (order 2), and where the samples differ by them.

# As of mmd_statistics(), of all statistics that are asked for, see
# filter_statistics(), and of views, see sample_views(); plain: the statistic of
# order 0.
filtered_statistics <- function(samples, options, scheme, height) {
  filter <- options$filter %||% plain_filter
  options$filter <- filter
  check_factors(samples$sample, filter$factors)
  if (filter$name != "none") check_definite(samples$sample$kernel)
  units <- mmd_units(samples, scheme)
  plain <- mmd_source(samples, units)
  # Drawn once, for all statistics.
  check_label_memory(units, scheme$B)
  labels <- in_label_chunks(units, scheme, FALSE, FALSE, identity)
  sums_of <- \(source) {
    gather_sums(source, lapply(labels, subset_sums, source = source))[[1L]]
  }
  joint <- filter_statistics(
    options, scheme, "MMD^2", height, samples$sample$kernel$bandwidth,
    source_of = \(factor) {
      widened <- samples
      widened$sample <- times_bandwidth(samples$sample, factor)
      sums <- sums_of(if (factor == 1) plain else mmd_source(widened, units))
      of <- if (any(filter$order > 0L)) {
        filtered_sources(widened, units, filter, labels, sums, sums_of,
                         scheme$complete)
      }
      c(list(plain = \(order) if (order == 0L) sums else of$free(order)), of)
    },
    draw = \(source) {
      if (!is.null(source$values)) return(source)
      sums <- if (is.null(source$native)) source else sums_of(source)
      list(values = plain_statistic(sums, options$statistic),
           scale = sums$moments[[1L]] / sum(samples$sizes)^2)
    },
    views = lapply(samples$views, \(view) {
      samples$sample <- given_blocks(filterable_sample(view),
                                     samples$origin$blocks)
      c(mmd_source(samples, units), list(bandwidth = view$kernel$bandwidth))
    })
  )
  c(joint, plain_summary(plain, height))
}

# The labels of all draws at once: a bit for each unit and group, of two groups
# for one of them.
check_label_memory <- function(units, B) {
  groups <- length(units$sizes)
  words <- ceiling(sum(units$sizes) / 64)
  check_memory(words * (if (groups == 2L) 1 else groups), B + 1,
               "take fewer draws", what = "the labels of all draws,")
}

# Factors are those of a bandwidth, and make other kernel values of points.
check_factors <- function(sample, factors) {
  if (!identical(factors, 1) &&
        (is.null(sample$kernel$bandwidth) || !knows_points(sample))) {
    stop_input("'factors' must be NULL without points and a kernel that has a ",
               "bandwidth")
  }
}

# list(left: see filter_spectrum(), at: a function of the ratio that gives one
# of the order, that gives what the folds need, as of mmd_source(), of M or M o
# M; or what draw() of filter_statistics() makes, of those that are no sums, as
# free() does of those without a ratio). sums: of K, sums_of(source): of others.
filtered_sources <- function(samples, units, filter, labels, sums, sums_of,
                             complete) {
  sample <- filterable_sample(samples$sample)
  featured <- sample$n > filter_most_points || !is.null(sample$spectrum)
  left <- 0
  centered <- NULL
  # Else it stays in memory with what is returned.
  on.exit(centered <- NULL)
  if (featured) {
    spectrum <- filter_spectrum(sample, min(filter$ratio))
    left <- spectrum$left
    source <- \(m, order) root_source(samples, units, m, order)
    at <- \(ratio) filter_root(spectrum, ratio, filter$name)
    centered <- list(k = gained_root(spectrum, spectrum$values),
                     top = sample$n * max(spectrum$values, 0))
  } else {
    source <- \(m, order) {
      samples$sample <- gram_sample(new_gram(if (order == 2L) m * m else m))
      mmd_source(samples, units)
    }
    if (any(further_statistics$order[-3L] %in% filter$order)) {
      centered <- checked_centered(sample)
    }
    at <- if (any(c(1:2, "moments") %in% filter$order)) {
      filter_matrices(sample, filter, centered)$at
    } else {
      \(ratio) NULL
    }
  }
  sides <- c(
    if ("one-sided" %in% filter$order) {
      one_sided_statistics(sample, centered, units, filter$ratio, labels)
    },
    if ("profile" %in% filter$order) {
      size <- max(abs(sample_diagonal(sample)))
      profile_statistics(centered, units, labels, sums$sizes,
                         sample$n * .Machine$double.eps * size, complete)
    }
  )
  if ("moments" %in% filter$order) {
    squares <- sums_of(source(centered$k, 2L))
    traces <- sums_of(source(centered$k, 1L))$trace
  }
  list(left = left, spectra = sides$spectra, at = \(ratio) {
    m <- at(ratio)
    \(order) {
      if (order %in% names(sides)) {
        return(sides[[order]](ratio))
      }
      if (order == "leverages") {
        sums <- sums_of(source(m, 1L))
        return(labeled_form(sums$trace / sums$sizes, complete, sqrt))
      }
      source(m, order)
    }
  }, free = \(order) {
    labeled_form(switch(
      order,
      `within sums` = sums$within - sums$trace,
      `two moments` = cbind(log_differences(traces / sums$sizes),
                            log_differences(squares$within / sums$sizes^2)),
      squares$within - squares$trace
    ), complete)
  })
}

# The logarithms of what each group has, less that of the first.
log_differences <- function(values) {
  logs <- log(pmax(values, .Machine$double.xmin))
  take_columns(logs, -1L) - logs[, 1L]
}

# (w - mean)' V^+ (w - mean) for each labeling's numbers w, the rows, with mean
# and covariance V over the draws.
labeled_form <- function(w, complete, transform = identity) {
  used <- if (complete) take_rows(w, -1L) else w
  mean <- colMeans(used)
  axes <- eigen(crossprod(used - rep(mean, each = nrow(used))) / nrow(used),
                symmetric = TRUE)
  kept <- which(axes$values > tie_slack * axes$values[1L] &
                  axes$values > (tie_slack * max(abs(w)))^2)
  along <- (w - rep(mean, each = nrow(w))) %*% axes$vectors[, kept]
  values <- transform(drop(along^2 %*% (1 / axes$values[kept])))
  list(values = values, scale = mean(values))
}

# --- Spectral profiles -------------------------------------------------------

# For both forms a function of the ratio of tau to the largest eigenvalue of
# all: list(values, of all labelings; scale). centered: list(k: K^c, or features
# whose Gram matrix it is, top: its largest eigenvalue); sizes: labelings x
# groups. With e the logarithms of the ratios of the eigenvalues + tau of two
# covariances, less their means over the draws, the sum of e^2, or of e^2 by its
# means; of several groups that of all pairs, times m_g m_h/N^2.
profile_statistics <- function(centered, units, labels, sizes, least,
                               complete) {
  groups <- ncol(sizes)
  top <- centered$top
  on.exit(centered <- NULL)
  spectra <- \(outside) do.call(cbind, lapply(labels, \(chunk) {
    .Call(C_r_subset_spectra, centered$k, chunk$subsets, chunk$count,
          units$unit, sum(units$sizes), outside, max(sizes), min(sizes) - 1,
          least)
  }))
  inside <- spectra(FALSE)
  sides <- if (groups == 2L) list(inside, spectra(TRUE)) else {
    lapply(seq_len(groups), \(g) {
      take_columns(inside, seq(g, ncol(inside), groups))
    })
  }
  n <- sum(sizes[1L, ])
  used <- if (complete) -1L else seq_len(nrow(sizes))
  one <- \(logs, g, h, standardized, rounding) {
    e <- logs[[g]] - logs[[h]]
    e2 <- (e - rowMeans(take_columns(e, used)))^2
    if (standardized) {
      means <- rowMeans(take_columns(e2, used))
      e2 <- e2 / ifelse(means > rounding, means, Inf)
    }
    colSums(e2) * if (groups == 2L) 1 else sizes[, g] * sizes[, h] / n^2
  }
  of <- \(standardized) {
    \(ratio) {
      tau <- if (top > 0) ratio * top / n else 1
      logs <- lapply(sides, \(l) log(l + tau))
      values <- Reduce(`+`, utils::combn(groups, 2L, \(pair) {
        one(logs, pair[1L], pair[2L], standardized, (1e-12 / ratio)^2)
      }, simplify = FALSE))
      list(values = values, scale = mean(values) + tie_slack)
    }
  }
  list(profile = of(FALSE), `profile (standardized)` = of(TRUE),
       spectra = spectra_frame(sides))
}

# The eigenvalues of each group and, for plot(), those of 90% of the draws.
spectra_frame <- function(sides) {
  do.call(rbind, lapply(seq_along(sides), \(g) {
    values <- sides[[g]]
    band <- apply(take_columns(values, -1L), 1L, quantile, c(0.05, 0.95))
    data.frame(group = g, axis = seq_len(nrow(values)), value = values[, 1L],
               low = band[1L, ], high = band[2L, ])
  }))
}

# --- Whitened by one side ----------------------------------------------------

# Of smaller ratios rounding would be seen.
one_sided_least <- 1e-5

# For each of two sides a function of the ratio: list(values, of all labelings;
# scale).
one_sided_statistics <- function(sample, centered, units, ratios, labels) {
  on.exit(centered <- NULL)
  n <- sample$n
  if (length(units$sizes) > 2L || n > filter_most_points ||
        !is.null(sample$spectrum) || min(ratios) < one_sided_least) {
    stop_input("'order' must not be \"one-sided\" but for two samples, no ",
               "sketches, of at most 3000 points in all, and ratios of at ",
               "least 1e-05")
  }
  # Any will do where all are 0.
  taus <- ratios * (centered$top + (centered$top == 0)) / n
  first <- do.call(rbind, lapply(labels, \(chunk) {
    .Call(C_r_subset_sums, chunk$subsets, chunk$count, diag(sum(units$sizes)))
  })) == 1
  if (!is.null(units$unit)) first <- take_columns(first, units$unit)
  lapply(stats::setNames(c(TRUE, FALSE), one_sided), \(side) {
    drawn <- vapply(seq_len(nrow(first)), \(b) {
      one_sided_values(centered$k, which(first[b, ] == side), taus)
    }, numeric(2L * length(taus)))
    \(ratio) {
      a <- match(ratio, ratios)
      list(values = drawn[a, ], scale = max(drawn[length(taus) + a, ]))
    }
  })
}

# T = |A^(-1/2) (S_x - S_y) A^(-1/2)|^2, A = S_x + tau, of second moments about
# the pooled mean, x the `inside` of the points of K^c, for each tau, and then
# the size of its largest term before it is a difference. By the features' Gram
# matrix G after A^(-1/2): from K_xx = U diag(l) U', Q = U'K_xy and d = 1/(l + m
# tau), G_xx = U diag(m l d) U', G_xy = m U diag(d) Q, and G_yy = (K_yy - Q'
# diag(d) Q)/tau. 14 m^3 flops.
one_sided_values <- function(k, inside, taus) {
  m <- length(inside)
  n <- nrow(k) - m
  pairs <- .Call(C_r_eigen, k[inside, inside], m)
  q <- cross(pairs$vectors, k[inside, -inside])
  other <- k[-inside, -inside]
  squares <- tcross(q)
  through <- rowSums(product(q, other) * q)
  d <- 1 / outer(pairs$values, m * taus, `+`)
  size <- sum(other^2)
  seen <- size + colSums(d * (product(squares^2, d) - 2 * through))
  c(colSums((pairs$values * d)^2) - 2 * m / n * colSums(diag(squares) * d^2) +
      seen / (n * taus)^2, size / (n * taus)^2)
}

most_moment_bytes <- 2^30

# Of M = RR': points in place of a matrix, whose linear kernel is M and whose
# square is M o M. Units of points have sums of features, or of their squares.
root_source <- function(samples, units, root, order) {
  total <- sum(units$sizes)
  squared <- order == 2L
  if (is.null(units$unit) ||
        squared && 8 * ncol(root)^2 * total > most_moment_bytes) {
    samples$sample <- points_sample(root, if (squared) {
      kernel_poly(2, offset = 0)
    } else {
      kernel_linear()
    })
    return(mmd_source(samples, units))
  }
  features <- if (squared) {
    vapply(split(seq_along(units$unit), units$unit), \(rows) {
      as.vector(cross(take_rows(root, rows)))
    }, numeric(ncol(root)^2))
  } else {
    t(rowsum(root, units$unit))
  }
  sums <- cross(unname(features))
  diagonal <- rowSums(root^2)^order
  c(list(native = list(native_source(NULL, sums)),
         rows = matrix(rowSums(sums)),
         diagonal = unname(rowsum(diagonal, units$unit)),
         moments = matrix(c(sum(abs(sums)), sum(sums^2)))),
    units[names(units) != "unit"])
}

# --- Other views of the points -----------------------------------------------

# What the statistics of other views are called, of which there is one more each
# in a test of plain means by permutations of at most `most` points; NULL of
# none.
view_names <- function(samples, options, most = samples$sample$n) {
  if (!takes_views(options)) {
    return(NULL)
  }
  # Of a linear kernel all are the same.
  blocks <- !is.null(options$blocks) &&
    !kernel_has(samples$sample$kernel, "linear form")
  c(if (blocks) "MMD^2 of points less block means",
    if (blocks && knows_points(samples$sample)) "linear MMD^2",
    if (most <= filter_most_points && has_interactions(samples$sample)) {
      "MMD^2 of the ANOVA kernel"
    })
}

# By these names samples of the same points with kernels that see what the plain
# one does not, and no labels.
sample_views <- function(samples, names) {
  if (!is.null(names)) sapply(names, \(name) {
    sample <- samples$sample
    if (endsWith(name, "block means")) {
      centered_view(sample, samples$origin$blocks)
    } else if (name == "linear MMD^2") {
      linear_sample(sample)
    } else {
      anova_view(sample)
    }
  }, simplify = FALSE)
}

# The same points with the linear kernel.
linear_sample <- function(sample) {
  points_sample(sample$x, kernel_linear(), raw = sample_raw(sample))
}

# Are there two blocks at least, the numeric columns and each factor?
has_interactions <- function(sample) {
  scaling <- sample$kernel$scaling
  nominal <- scaling$nominal
  vary <- scaling$factor < Inf
  !is.null(nominal) && sum(any(vary[!nominal]), vary[nominal]) > 1L
}

# The product of 1 + C over blocks, C their centered kernels of trace n: the
# Gaussian one of the numeric columns and of each factor that of equal levels.
# Main effects and all interactions have the same weight in it.
anova_view <- function(sample) {
  frame <- sample_raw(sample)
  nominal <- sample$kernel$scaling$nominal
  check_memory(sample$n, sample$n, "use fewer points", copies = 5)
  blocks <- c(if (!all(nominal)) {
    numbers <- place_levels(frame, sample$kernel$scaling$places)[!nominal]
    list(suppressWarnings(fit_sample(as.matrix(numbers), kernel_rbf(), TRUE)))
  }, lapply(frame[nominal], \(x) read_factor(x, "x")$sample))
  gram_sample(new_gram(Reduce(`*`, lapply(blocks, \(block) {
    centered <- centered_values(block, 4)
    trace <- sum(diag(centered$k))
    1 + if (trace > rounding_of(sample$n, sample$n * centered$scale)) {
      centered$k * (sample$n / trace)
    } else {
      0
    }
  }))))
}

# The points less the means of their blocks, with as large a bandwidth beside
# the distances of these as the points have. Where the differences of points are
# not known, or no points of their kernel, d_ij^2 = G_ii + G_jj - 2 G_ij of G =
# (I - A) K (I - A), A the mean of each block, with an RBF kernel.
centered_view <- function(sample, blocks) {
  kernel <- sample$kernel
  if (knows_points(sample) && !kernel_has(kernel, "parts") &&
        !kernel_has(kernel, "function")) {
    kernel$scaling <- NULL
    r <- center_blocks(sample$x, blocks)
    colnames(r) <- paste(colnames(r), "less block means", recycle0 = TRUE)
    if (!is.null(kernel$bandwidth)) {
      usual <- \(x) {
        kernel$bandwidth <- "median"
        fit_kernel(kernel, x)$bandwidth
      }
      kernel$bandwidth <- kernel$bandwidth * usual(r) / usual(sample$x)
    }
    return(points_sample(r, kernel))
  }
  check_memory(sample$n, sample$n, "use fewer points", copies = 5)
  k <- sample_matrix(sample)
  g <- center_blocks(t(center_blocks(k, blocks)), blocks)
  square <- outer(diag(g), diag(g), `+`) - 2 * g
  square[square <= rounding_of(sample$n, max(abs(k)))] <- 0
  # As of points.
  usual <- stats::median(positive_distances(square[lower.tri(square)]))
  gram_sample(new_gram(exp(-square / (2 * usual)), kernel_rbf(sqrt(usual))))
}

# That of the statistic that was the largest.
largest_sample <- function(test) {
  table <- test$statistics
  words <- table$statistic[table$maximum]
  if (isTRUE(words %in% names(test$views))) test$views[[words]] else test$sample
}

# --- Where they differ -------------------------------------------------------

# The witness of the statistic that was the largest: with w = 1/m on one side
# and -1/n on the other, g(S)(mu_x - mu_y) for means, and phi -> <phi, g (C_x -
# C_y) g phi> for covariances, phi about the pooled mean; 0 on average over the
# pooled points. list(at: a function of new points, own: its values at those of
# the sample). w: of the points.
filtered_witness <- function(test, w) {
  filter <- test$arguments$filter
  if (!is.list(filter)) filter <- test_filter(ratio = usual_ratios)
  row <- test$statistics[test$statistics$maximum, ]
  # Of those that are made of no function of the points, that of the plain one.
  if (!row$order %in% c(0:2, one_sided)) row$order <- 0L
  sample <- largest_sample(test)
  settled <- est_settle(order_noise(test$estimator, test$origin$order), sample,
                        "the pooled sample")
  sample <- settled_sample(sample, settled)
  sample <- filterable_sample(times_bandwidth(sample, row$factor))
  w <- matrix(w)
  given <- given_blocks(sample, test$origin$blocks)
  if (row$order == 0L) {
    values <- \(apply) drop(apply(w))
  } else {
    spectrum <- filter_spectrum(given, min(filter$ratio))
    # Those of eigenvalues that are nearly 0 may have a share of the mean.
    u <- center_columns(spectrum$vectors)
    l <- spectrum$values
    gain <- spectrum_gain(spectrum, row$ratio, filter$name) / l
    means <- sample_rows(sample) / sample$n
    values <- if (row$order == 1L) {
      a <- product(u, gain * cross(u, w))
      \(apply) drop(apply(a)) - sum(a * means)
    } else {
      centers <- drop(cross(u, matrix(means)))
      inner <- cross(u, u * drop(w))
      side <- match(row$order, one_sided)
      # A^(-1) between inner products with the axes times roots of n l.
      resolve <- if (is.na(side)) diag(gain, length(l)) else {
        own <- take_rows(u, as.integer(test$groups) == side)
        scales <- rep(sample$n * l / nrow(own), each = length(l))
        solve(cross(own) * scales + diag(row$ratio * l[1L], length(l)))
      }
      \(apply) {
        k <- apply(u)
        q <- product(k - rep(centers, each = nrow(k)), resolve)
        rowSums(product(q, inner) * q)
      }
    }
  }
  list(at = \(new) values(\(v) sample_at(sample, new, v)),
       at_points = \() values(\(v) as.matrix(sample_apply(sample, v))),
       what = if (!row$order %in% 0:1) "farther out")
}

# What the witness is of, in brackets.
witness_words <- function(test) {
  table <- test$statistics
  row <- table[table$maximum, ]
  if (NROW(table) > 1L || isTRUE(row$order > 0L)) {
    paste0(" (", if (row$order %in% c(0:2, one_sided)) row$statistic else {
      "of the MMD; profiles (type = \"spectra\"), sums and moments have none"
    }, ")")
  }
}

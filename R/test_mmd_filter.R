# The joint test of samples. This file has the constructors of its statistics,
# which are sums of other Gram matrices of the same points (M for means, order
# 1, and M o M for covariances, order 2), or of other kinds. It also has other
# views of the points, and the witness function, which shows how the samples
# differ.

# The comparison by all statistics that a filter asks for, and by those of other
# views of the points.
compare_jointly <- function(samples, options, scheme, settled) {
  filter <- options$filter %||% plain_filter
  check_factors(samples$sample, filter$factors)
  if (filter$name != "none") check_definite(samples$sample$kernel)
  layout <- label_layout(samples, scheme)
  source <- label_source(samples, layout)
  check_label_memory(layout, scheme$B)
  # All statistics have the same labelings.
  labels <- in_label_chunks(layout, scheme, FALSE, FALSE, identity)
  makers <- Filter(\(maker) any(maker$orders %in% filter$order),
                   statistic_makers())
  points_of <- \(sample, source = label_source(samples, layout)) {
    samples$sample <- sample
    new_labeled_points(samples, source, layout, labels, filter,
                       options$statistic, scheme$complete, settled$height)
  }
  statistics <- across_factors(filter$factors, \(factor) {
    points <- if (factor == 1) points_of(samples$sample, source) else
      points_of(times_bandwidth(samples$sample, factor))
    steps <- in_chunks(length(makers), 1L, options$progress, \(start, count) {
      makers[[start + 1L]]$make(points)
    })
    unlist(steps, FALSE)
  }, samples$sample$kernel$bandwidth)
  views <- Map(\(view, name) {
    sample <- given_blocks(filterable_sample(view), samples$origin$blocks)
    plain_statistic(points_of(sample), name, one_number(view$kernel$bandwidth))
  }, samples$views, names(samples$views))
  joint <- aggregate_statistics(c(statistics, unname(views)), scheme$complete)
  compare_plain(source, joint, settled$height)
}

# The labels of all draws take a bit for each unit and group. With two groups,
# the labels of one are enough.
check_label_memory <- function(layout, B) {
  groups <- length(layout$sizes)
  words <- ceiling(sum(layout$sizes) / 64)
  check_memory(words * (if (groups == 2L) 1 else groups), B + 1,
               "take fewer draws", what = "the labels of all draws,")
}

# Stops if `factors` cannot be used. They multiply a bandwidth, and the new
# kernel values can only be computed from points.
check_factors <- function(sample, factors) {
  if (!identical(factors, 1) &&
        (is.null(sample$kernel$bandwidth) || !knows_points(sample))) {
    stop_input("'factors' must be NULL without points and a kernel that has a ",
               "bandwidth")
  }
}

# The constructors of the statistics of a joint test, each with the orders of
# test_filter() that ask for it, in the order in which the table has them. New
# statistics are added here.
statistic_makers <- function() {
  maker <- \(orders, make) list(orders = orders, make = make)
  list(
    maker(0L, \(points) list(plain_statistic(points, "MMD^2"))),
    maker(1:2, filtered_statistics),
    maker("one-sided", one_sided_statistics),
    maker("profile", profile_statistics), maker("moments", leverage_statistic),
    maker("gpk", within_statistic), maker("moments", moment_statistics)
  )
}

# "The points", which the constructors make statistics of: samples with the
# bandwidth of one factor, their source and layout, the labelings of all draws
# in chunks, the filter, the type of the statistic, whether the draws are
# complete, and the height of the plain statistic. What takes time is computed
# when a constructor first asks for it:
#   sums      of K, for each labeling
#   sample    whose K is centered
#   featured  do features take the place of n x n matrices?
#   spectrum  see filter_spectrum()
#   centered  K^c, or features, with the largest eigenvalue, see
#             checked_centered()
#   filtered  a function of the ratio: M, or features of it
new_labeled_points <- function(samples, source, layout, labels, filter, type,
                               complete, height) {
  points <- environment()
  delayedAssign("sums", sums_of(points, source))
  delayedAssign("sample", filterable_sample(samples$sample))
  delayedAssign("featured", points$sample$n > filter_most_points ||
                  !is.null(points$sample$spectrum))
  delayedAssign("spectrum", filter_spectrum(points$sample, min(filter$ratio)))
  delayedAssign("centered", if (points$featured) {
    values <- points$spectrum$values
    list(k = gained_root(points$spectrum, values),
         top = points$sample$n * max(values, 0))
  } else {
    checked_centered(points$sample)
  })
  delayedAssign("filtered", keeping_last(if (points$featured) {
    \(ratio) filter_root(points$spectrum, ratio, filter$name)
  } else {
    filter_matrices(points$sample, filter, points$centered)$at
  }))
  points
}

# The function f, which keeps its last value: asked for the same again, it
# returns that.
keeping_last <- function(f) {
  last <- list()
  \(ratio) {
    if (!identical(ratio, last$ratio)) {
      last <<- list()
      last <<- list(ratio = ratio, value = f(ratio))
    }
    last$value
  }
}

sums_of <- function(points, source) {
  gather_sums(source, lapply(points$labels, subset_sums, source = source))[[1L]]
}

# The sums of a matrix in place of K (power 1), or of its squares (2). A matrix
# may be given by features.
matrix_sums <- function(points, m, power) {
  samples <- points$samples
  sums_of(points, if (points$featured) {
    root_source(samples, points$layout, m, power)
  } else {
    samples$sample <- gram_sample(new_gram(if (power == 2L) m * m else m))
    label_source(samples, points$layout)
  })
}

# The means of the diagonal of such a matrix in each group, for each labeling.
diagonal_means <- function(points, m) {
  diagonal <- if (points$featured) rowSums(m^2) else diag(m)
  unit <- points$layout$unit
  if (!is.null(unit)) diagonal <- drop(rowsum(diagonal, unit))
  sums <- unlist(lapply(points$labels, \(chunk) {
    .Call(C_r_subset_sums, chunk$subsets, chunk$count, matrix(diagonal))
  }))
  groups <- length(points$layout$sizes)
  by_group(matrix(sums, ncol = points$labels[[1L]]$sets, byrow = TRUE),
           sum(diagonal), groups) / points$sums$sizes
}

# --- Sums of kernel values ---------------------------------------------------

# The statistic of sums of kernel values, for which the arguments are those of
# new_statistic().
sums_statistic <- function(name, sums, points, ..., height = 1) {
  new_statistic(
    name, height * mmd_values(sums, points$type),
    height * (sums$moments[[1L]] / sum(points$samples$sizes)^2), ...
  )
}

plain_statistic <- function(points, name, bandwidth = NA_real_) {
  sums_statistic(name, points$sums, points, bandwidth = bandwidth,
                 height = points$height)
}

# The statistics of orders 1 and 2. M is made once for each ratio, and both
# orders use it.
filtered_statistics <- function(points) {
  filter <- points$filter
  orders <- (1:2)[1:2 %in% filter$order]
  left <- if (points$featured) points$spectrum$left else 0
  each <- lapply(filter$ratio, \(ratio) {
    m <- points$filtered(ratio)
    lapply(orders, \(order) {
      sums_statistic(with_ratio(paste("order", order), ratio),
                     matrix_sums(points, m, order), points, order = order,
                     ratio = ratio, left = left)
    })
  })
  unlist(do.call(Map, c(list, each)), FALSE)
}

# --- Sums within samples -----------------------------------------------------

# The statistic (w - mean)' V^+ (w - mean). The matrix w has the numbers of a
# labeling in each row; mean and V are the mean and covariance of the rows over
# the draws.
form_statistic <- function(name, w, points, ratio = NA_real_,
                           transform = identity) {
  drawn <- if (points$complete) take_rows(w, -1L) else w
  mean <- colMeans(drawn)
  axes <- eigen(crossprod(drawn - rep(mean, each = nrow(drawn))) / nrow(drawn),
                symmetric = TRUE)
  kept <- which(axes$values > tie_slack * axes$values[1L] &
                  axes$values > (tie_slack * max(abs(w)))^2)
  along <- (w - rep(mean, each = nrow(w))) %*% axes$vectors[, kept]
  values <- transform(drop(along^2 %*% (1 / axes$values[kept])))
  new_statistic(if (is.na(ratio)) name else with_ratio(name, ratio), values,
                mean(values), name, ratio, blind = TRUE)
}

# The generalized permutation kernel statistic.
within_statistic <- function(points) {
  sums <- points$sums
  list(form_statistic("within sums", sums$within - sums$trace, points))
}

leverage_statistic <- function(points) {
  ratio <- min(points$filter$ratio)
  means <- diagonal_means(points, points$filtered(ratio))
  list(form_statistic("leverages", means, points, ratio, sqrt))
}

moment_statistics <- function(points) {
  k <- points$centered$k
  squares <- matrix_sums(points, k, 2L)
  # The logarithms of the means of each group, less that of the first.
  logs_of <- \(means) {
    logs <- log(pmax(means, .Machine$double.xmin))
    take_columns(logs, -1L) - logs[, 1L]
  }
  list(
    form_statistic("within sums of squares", squares$within - squares$trace,
                   points),
    form_statistic("two moments", cbind(
      logs_of(diagonal_means(points, k)),
      logs_of(squares$within / squares$sizes^2)
    ), points)
  )
}

# --- Spectral profiles -------------------------------------------------------

# The plain profile at the largest ratio and the standardized one at the
# smallest. Let e be the differences of log(eigenvalue + tau) between two
# covariances, less their means over the draws. The plain profile is the sum of
# e^2; the standardized one divides each e^2 by its mean over the draws first.
# With several groups, the profiles of all pairs are added up with the weights
# m_g m_h/N^2.
profile_statistics <- function(points) {
  sizes <- points$sums$sizes
  groups <- ncol(sizes)
  sides <- group_spectra(points, sizes)
  n <- sum(sizes[1L, ])
  top <- points$centered$top
  used <- if (points$complete) -1L else seq_len(nrow(sizes))
  pair_profile <- \(logs, g, h, standardized, rounding) {
    e <- logs[[g]] - logs[[h]]
    e2 <- (e - rowMeans(take_columns(e, used)))^2
    if (standardized) {
      means <- rowMeans(take_columns(e2, used))
      e2 <- e2 / ifelse(means > rounding, means, Inf)
    }
    colSums(e2) * if (groups == 2L) 1 else sizes[, g] * sizes[, h] / n^2
  }
  profile <- \(name, ratio, standardized, spectra = NULL) {
    tau <- if (top > 0) ratio * top / n else 1
    logs <- lapply(sides, \(l) log(l + tau))
    values <- Reduce(`+`, utils::combn(groups, 2L, \(pair) {
      pair_profile(logs, pair[1L], pair[2L], standardized, (1e-12 / ratio)^2)
    }, simplify = FALSE))
    new_statistic(with_ratio(name, ratio), values, mean(values) + tie_slack,
                  name, ratio, blind = TRUE, spectra = spectra)
  }
  ratios <- points$filter$ratio
  list(profile("profile", max(ratios), FALSE, spectra_frame(sides)),
       profile("profile (standardized)", min(ratios), TRUE))
}

# Returns for each group a matrix of the eigenvalues of its covariance, axes x
# labelings.
group_spectra <- function(points, sizes) {
  sample <- points$sample
  layout <- points$layout
  least <- sample$n * .Machine$double.eps * max(abs(sample_diagonal(sample)))
  spectra <- \(outside) do.call(cbind, lapply(points$labels, \(chunk) {
    .Call(C_r_subset_spectra, points$centered$k, chunk$subsets, chunk$count,
          layout$unit, sum(layout$sizes), outside, max(sizes), min(sizes) - 1,
          least)
  }))
  inside <- spectra(FALSE)
  groups <- ncol(sizes)
  if (groups == 2L) {
    return(list(inside, spectra(TRUE)))
  }
  lapply(seq_len(groups), \(g) {
    take_columns(inside, seq(g, ncol(inside), groups))
  })
}

# The eigenvalues of each group and, for plot(), those of 90% of the draws.
spectra_frame <- function(sides) {
  do.call(rbind, lapply(seq_along(sides), \(g) {
    values <- sides[[g]]
    band <- column_quantiles(t(take_columns(values, -1L)), c(0.05, 0.95))
    data.frame(group = g, axis = seq_len(nrow(values)), value = values[, 1L],
               low = band[1L, ], high = band[2L, ])
  }))
}

# --- Whitened by one side ----------------------------------------------------

# Below this ratio rounding would show in the statistic.
one_sided_least <- 1e-5

one_sided_statistics <- function(points) {
  ratios <- points$filter$ratio
  layout <- points$layout
  if (length(layout$sizes) > 2L || points$featured ||
        min(ratios) < one_sided_least) {
    stop_input("'order' must not be \"one-sided\" but for two samples, no ",
               "sketches, of at most 3000 points in all, and ratios of at ",
               "least 1e-05")
  }
  top <- points$centered$top
  # Any tau will do where all eigenvalues are 0.
  taus <- ratios * (top + (top == 0)) / points$sample$n
  first <- do.call(rbind, lapply(points$labels, \(chunk) {
    .Call(C_r_subset_sums, chunk$subsets, chunk$count, diag(sum(layout$sizes)))
  })) == 1
  if (!is.null(layout$unit)) first <- take_columns(first, layout$unit)
  unlist(Map(\(side, name) {
    drawn <- vapply(seq_len(nrow(first)), \(b) {
      one_sided_values(points$centered$k, which(first[b, ] == side), taus)
    }, numeric(2L * length(taus)))
    lapply(seq_along(ratios), \(a) {
      new_statistic(with_ratio(name, ratios[a]), drawn[a, ],
                    max(drawn[length(taus) + a, ]), name, ratios[a])
    })
  }, c(TRUE, FALSE), one_sided), FALSE, FALSE)
}

# Returns for each tau the statistic T = |A^(-1/2) (S_x - S_y) A^(-1/2)|^2 with
# A = S_x + tau, where S_x and S_y are second moments about the pooled mean, and
# then for each tau the size of the largest term of T. The x are the points
# `inside` of K^c. With K_xx = U diag(l) U', Q = U'K_xy and d = 1/(l + m tau),
# the Gram matrix G of the features after A^(-1/2) has the blocks G_xx = U
# diag(m l d) U', G_xy = m U diag(d) Q, and G_yy = (K_yy - Q' diag(d) Q)/tau.
# This takes 14 m^3 flops.
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

# The source of M = RR', or of M o M (power 2), from the features R: the linear
# kernel of R is M, and its square is M o M. Units of several points have the
# sums of their features, or of the outer products of these.
root_source <- function(samples, layout, root, power) {
  total <- sum(layout$sizes)
  squared <- power == 2L
  if (is.null(layout$unit) ||
        squared && 8 * ncol(root)^2 * total > most_moment_bytes) {
    samples$sample <- points_sample(root, if (squared) {
      kernel_poly(2, offset = 0)
    } else {
      kernel_linear()
    })
    return(label_source(samples, layout))
  }
  features <- if (squared) {
    vapply(split(seq_along(layout$unit), layout$unit), \(rows) {
      as.vector(cross(take_rows(root, rows)))
    }, numeric(ncol(root)^2))
  } else {
    t(rowsum(root, layout$unit))
  }
  sums <- cross(unname(features))
  diagonal <- unname(rowsum(rowSums(root^2)^power, layout$unit))
  layout["unit"] <- list(NULL)
  new_label_source(layout, list(native_source(NULL, sums)),
                   matrix(rowSums(sums)), diagonal,
                   matrix(c(sum(abs(sums)), sum(sums^2))))
}

# --- Other views of the points -----------------------------------------------

# Returns the names of the statistics of other views, one for each view, or NULL
# if the test takes none. Only a test of plain means by permutations takes
# views. The ANOVA kernel is for comparisons of few points; the largest has
# `most`.
view_names <- function(samples, options, most = samples$sample$n) {
  if (!takes_views(options)) {
    return(NULL)
  }
  # A linear kernel has the same statistic in every view.
  blocks <- !is.null(options$blocks) &&
    !kernel_has(samples$sample$kernel, "linear form")
  c(if (blocks) "MMD^2 of points less block means",
    if (blocks && knows_points(samples$sample)) "linear MMD^2",
    if (most <= filter_most_points && has_interactions(samples$sample)) {
      "MMD^2 of the ANOVA kernel"
    })
}

# Makes the samples of other views from the names of their statistics. They have
# the same points, with kernels that see what the plain one does not, and do not
# depend on the labels.
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

# Do at least two blocks vary? All numeric columns make one block, and each
# factor makes one.
has_interactions <- function(sample) {
  scaling <- sample$kernel$scaling
  nominal <- scaling$nominal
  vary <- scaling$factor < Inf
  !is.null(nominal) && sum(any(vary[!nominal]), vary[nominal]) > 1L
}

# The sample with the product of 1 + C over blocks as its kernel, see
# has_interactions(). C is the centered kernel of a block, scaled to the trace
# n: Gaussian for the numeric columns, equality of levels for a factor. So main
# effects and all interactions have the same weight.
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

# The sample of the points less the means of their blocks. The bandwidth is
# multiplied by the ratio of the median distances after and before. If points
# cannot be subtracted, or the kernel has parts or is a function, the kernel is
# an RBF kernel of the distances d_ij^2 = G_ii + G_jj - 2 G_ij in feature space,
# where G = (I - A) K (I - A) and A takes the mean of each block.
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
  # The bandwidth is the median distance, as for points.
  usual <- stats::median(positive_distances(square[lower.tri(square)]))
  gram_sample(new_gram(exp(-square / (2 * usual)), kernel_rbf(sqrt(usual))))
}

# The sample of the statistic that was the largest.
largest_sample <- function(test) {
  table <- test$statistics
  words <- table$statistic[table$maximum]
  if (isTRUE(words %in% names(test$views))) test$views[[words]] else test$sample
}

# --- The witness function ----------------------------------------------------

# The witness of the statistic that was the largest. The weights w are 1/m for
# the points on one side and -1/n for those on the other. For means the witness
# is g(S)(mu_x - mu_y), less its average over the pooled points if there is a
# filter. For covariances it is phi -> <phi, g (C_x - C_y) g phi>, with phi
# about the pooled mean. The result has functions for its values: at(), at new
# points, and at_points(), at those of the sample.
filtered_witness <- function(test, w) {
  filter <- test$arguments$filter
  if (!is.list(filter)) filter <- test_filter(ratio = usual_ratios)
  row <- test$statistics[test$statistics$maximum, ]
  # Profiles, sums and moments have no witness function, so the plain witness is
  # shown instead.
  if (!row$order %in% c(0:2, one_sided)) row$order <- 0L
  sample <- largest_sample(test)
  settled <- est_settle(order_noise(test$estimator, test$origin$order), sample,
                        "the pooled sample")
  sample <- settled_sample(sample, settled)
  sample <- filterable_sample(times_bandwidth(sample, row$factor))
  values <- if (row$order == 0L) {
    w <- matrix(w)
    \(apply) drop(apply(w))
  } else {
    spectrum <- filter_spectrum(given_blocks(sample, test$origin$blocks),
                                min(filter$ratio))
    witness_in_axes(spectrum, matrix(w), row, filter$name,
                    sample_rows(sample) / sample$n, test$groups)
  }
  list(at = \(new) values(\(v) sample_at(sample, new, v)),
       at_points = \() values(\(v) as.matrix(sample_apply(sample, v))),
       what = if (!row$order %in% 0:1) "farther out")
}

# The witness of orders 1 and 2 and of one side, in the axes of a spectrum. It
# is a function of apply(v), which returns K v at the points that are asked for.
# `row` is the row of the statistic in the table; `means` are the row means of
# K.
witness_in_axes <- function(spectrum, w, row, name, means, groups) {
  # Eigenvectors with eigenvalues near 0 may not be orthogonal to constants.
  u <- center_columns(spectrum$vectors)
  l <- spectrum$values
  gain <- spectrum_gain(spectrum, row$ratio, name) / l
  if (row$order == 1L) {
    a <- product(u, gain * cross(u, w))
    return(\(apply) drop(apply(a)) - sum(a * means))
  }
  centers <- drop(cross(u, matrix(means)))
  inner <- cross(u, u * drop(w))
  side <- match(row$order, one_sided)
  # apply(u) gives inner products with axes of length sqrt(n l), not 1, so that
  # D^(-1) A^(-1) D takes the place of A^(-1), with D = diag(sqrt(n l)).
  resolve <- if (is.na(side)) diag(gain, length(l)) else {
    own <- take_rows(u, as.integer(groups) == side)
    scales <- rep(nrow(u) * l / nrow(own), each = length(l))
    solve(cross(own) * scales + diag(row$ratio * l[1L], length(l)))
  }
  \(apply) {
    k <- apply(u)
    q <- product(k - rep(centers, each = nrow(k)), resolve)
    rowSums(product(q, inner) * q)
  }
}

# Words in brackets that name the statistic of the witness.
witness_words <- function(test) {
  table <- test$statistics
  row <- table[table$maximum, ]
  if (NROW(table) > 1L || isTRUE(row$order > 0L)) {
    paste0(" (", if (row$order %in% c(0:2, one_sided)) row$statistic else {
      "of the MMD; profiles (type = \"spectra\"), sums and moments have none"
    }, ")")
  }
}

# The statistics behind mmd_test(): sums of the Gram matrix over the samples for
# many labellings at once, what the estimators make of them, and the null
# distributions.

run_mmd <- function(samples, options, scheme, data_name) {
  points <- samples$x
  if (options$estimator == "kme") {
    samples$x <- centre_linear(samples$x, samples$kernel)
  } else {
    check_definite(samples$kernel)
  }
  fitted <- fit_pooled(samples, options)
  source <- NULL
  if (options$estimator == "fkmse") {
    statistics <- fkmse_statistics(samples, options, fitted, scheme)
  } else {
    source <- mmd_source(samples, options, fitted, scheme$bins)
    statistics <- sums_statistics(samples, options, source, scheme)
  }
  test <- new_mmd_test(samples, options, fitted, scheme, source, statistics,
                       data_name)
  test["x"] <- list(points)
  test
}

# --- What is chosen from the pooled sample ---------------------------------

# list(noise, lambda, kernel, height): chosen without a look at the labels.
fit_pooled <- function(samples, options) {
  found <- list(kernel = samples$kernel, height = 1)
  if (options$estimator %in% c("mkme", "mmkme")) {
    if (!is.null(samples$x) && samples$kernel$family != "rbf") {
      stop_input(
        "'kernel' must be kernel_rbf() for estimator \"", options$estimator,
        "\" in a test, not ", format_kernel(samples$kernel)
      )
    }
    check_marginal(samples, options$estimator)
    d <- ncol(samples$x)
    found$noise <- if (is.null(options$noise)) {
      marginal_noise(samples$x, samples$kernel, options$estimator)$noise
    } else {
      check_noise(options$noise, options$estimator, samples$x)
    }
    found[c("kernel", "height")] <-
      marginal_kernel(samples$kernel, 2 * found$noise, d)[c("kernel", "height")]
  } else if (options$estimator == "fkmse") {
    found$gram <- samples$gram
    if (is.null(found$gram)) {
      found$gram <- gram(samples$x, samples$kernel)
    }
    found$lambda <- options$lambda
    if (is.null(found$lambda)) {
      found$lambda <- select_lambda(found$gram, options$select, NULL)$lambda
    }
  } else if (options$fuse) {
    found$bandwidths <- fuse_bandwidths(samples$x)
  }
  found
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

# --- Where the kernel values come from -------------------------------------

# list(native, rates, rows, diagonal, sizes, blocks): what the folds need.
# native: sources for the core, one with all rates or one for each bandwidth.
# rows, diagonal: row sums and diagonal, one column a bandwidth.
# sizes: units that change places (points, or bins) in each sample; blocks: NULL
# or the codes of what changes places with what.
mmd_source <- function(samples, options, fitted, bins) {
  if (!is.null(bins)) {
    return(binned_source(samples, fitted, bins))
  }
  kernels <- mmd_kernels(samples, fitted)
  if (!is.null(samples$gram) && is.null(fitted$noise)) {
    k <- samples$gram$K
    return(list(native = list(native_matrix(k)), rows = matrix(rowSums(k)),
                diagonal = matrix(diag(k)), sizes = samples$sizes))
  }
  x <- samples$x
  source <- list(
    sizes = samples$sizes,
    rows = vapply(kernels, \(k) fold_rows(k, x), numeric(nrow(x))),
    diagonal = vapply(kernels, \(k) fold_diagonal(k, x), numeric(nrow(x)))
  )
  if (options$fuse) {
    unit <- max(power_of_two(x), .Machine$double.xmin)
    distance <- new_kernel("sqdist", "", unit)
    source$native <- list(native_source(distance, x))
    source$rates <- unit^2 / (2 * fitted$bandwidths^2)
  } else {
    source$native <- list(native_source(fitted$kernel, x))
  }
  source
}

mmd_kernels <- function(samples, fitted) {
  if (is.null(fitted$bandwidths)) {
    list(fitted$kernel)
  } else {
    lapply(fitted$bandwidths, kernel_rbf)
  }
}

# Bins of points in place of points: the sums of kernel values over bins are a
# Gram matrix of bins. The points of a sample that fill no bin stay together and
# never change places.
binned_source <- function(samples, fitted, bins) {
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
  order <- order(unit)
  codes <- unit[order] - 1L
  total <- sum(units)
  gathered <- if (is.null(samples$gram)) {
    x <- samples$x[order, , drop = FALSE]
    lapply(mmd_kernels(samples, fitted), \(k) {
      c(.Call(C_r_block_sums, native_source(k, x), codes, total, NULL),
        list(diagonal = fold_diagonal(k, x)))
    })
  } else {
    k <- samples$gram$K[order, order]
    list(c(.Call(C_r_block_sums, native_matrix(k), codes, total, NULL),
           list(diagonal = diag(k))))
  }
  by_unit <- \(v) as.vector(rowsum(v, codes))
  list(
    native = lapply(gathered, \(b) native_matrix(b$sums)),
    rows = vapply(gathered, \(b) rowSums(b$sums), numeric(total)),
    diagonal = vapply(gathered, \(b) by_unit(b$diagonal), numeric(total)),
    sizes = units, blocks = ifelse(free, 1L, 1L + cumsum(!free)), bin = size,
    moments = vapply(gathered, `[[`, numeric(2L), "moments")
  )
}

# --- Sums over labellings --------------------------------------------------

sets_at_once <- 2048L

# For each bandwidth, list(own, cross, trace, moments): the observed labelling
# and then each permutation, one a row; sums of kernel values within groups,
# between groups (a column for each pair g < h, or one with the sum over all
# pairs if `pairs` is FALSE), on the diagonal; and the sums of |K_ij| and
# K_ij^2 over all pairs of points.
labelled_sums <- function(source, scheme, pairs, progress) {
  groups <- length(source$sizes)
  sets <- diag(groups) == 1
  if (groups == 2L) {
    sets <- sets[1L, , drop = FALSE]
  } else if (pairs) {
    each <- utils::combn(groups, 2L)
    sets <- rbind(sets, t(apply(each, 2L, \(p) seq_len(groups) %in% p)))
  }
  blocks <- if (is.null(source$blocks)) scheme$blocks else source$blocks
  step <- max(32L, sets_at_once %/% nrow(sets))
  starts <- seq(0L, by = step, length.out = max(1, ceiling(scheme$B / step)))
  bar <- progress_bar(progress && length(starts) > 1L)
  on.exit(bar$close())
  parts <- lapply(starts, \(start) {
    count <- min(step, scheme$B - start)
    given <- scheme$matrix[, start + seq_len(count), drop = FALSE]
    part <- subset_sums(source, given, count, sets, blocks, start == 0L)
    bar$at((start + count) / scheme$B)
    part
  })
  bind <- \(name, j) do.call(rbind, lapply(parts, \(p) p[[name]][[j]]))
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
    c(sums, list(moments = moments[, j]))
  })
}

# Quadratic forms, and sums of rows and diagonal, over the sets of `count`
# labellings (and before them those of the observed one): lists of matrices
# labellings x sets, one for each bandwidth.
subset_sums <- function(source, permutations, count, sets, blocks, observed) {
  if (!is.null(permutations)) {
    storage.mode(permutations) <- "integer"
  }
  subsets <- .Call(
    C_r_subsets, permutations, count, source$sizes, sets, blocks, observed
  )
  all <- (count + observed) * nrow(sets)
  each <- lapply(source$native, \(native) {
    .Call(C_r_subset_forms, native, subsets, all, source$rates)
  })
  bind <- \(field) do.call(cbind, lapply(each, `[[`, field))
  shape <- function(sums) {
    lapply(seq_len(ncol(sums)), \(j) {
      matrix(sums[, j], ncol = nrow(sets), byrow = TRUE)
    })
  }
  sums <- \(v) shape(.Call(C_r_subset_sums, subsets, all, v))
  list(forms = shape(bind("forms")), rows = sums(source$rows),
       trace = sums(source$diagonal), moments = bind("moments"))
}

# From forms over sets to sums within and between groups.
block_sums <- function(forms, rows, trace, total, whole, groups) {
  if (groups == 2L) {
    cross <- rows - forms
    return(list(own = cbind(forms, total - rows - cross), cross = cross,
                trace = cbind(trace, whole - trace)))
  }
  own <- forms[, seq_len(groups), drop = FALSE]
  cross <- if (ncol(forms) == groups) {
    matrix((total - rowSums(own)) / 2)
  } else {
    each <- utils::combn(groups, 2L)
    both <- forms[, -seq_len(groups), drop = FALSE]
    (both - own[, each[1L, ]] - own[, each[2L, ]]) / 2
  }
  list(own = own, cross = cross, trace = trace[, seq_len(groups), drop = FALSE])
}

# --- Statistics ------------------------------------------------------------

# list(values, scale, sums): the statistic as observed, then of the draws;
# scale: the size of its terms, see permutation_p().
sums_statistics <- function(samples, options, source, scheme) {
  if (options$null != "permutation") {
    scheme$B <- 0L
  }
  sizes <- samples$sizes
  shrunk <- options$estimator == "skmse"
  sums <- labelled_sums(source, scheme, shrunk, options$progress)
  first <- sums[[1L]]
  if (options$fuse) {
    return(list(values = fuse_statistic(sums, sizes), scale = 1, sums = first))
  }
  list(values = one_statistic(first, sizes, options), sums = first,
       scale = if (!shrunk) first$moments[1L] / sum(sizes)^2)
}

one_statistic <- function(sums, sizes, options) {
  if (options$estimator == "skmse") {
    skmse_statistic(sums, sizes, options)
  } else if (options$statistic == "U") {
    u_statistic(sums, sizes)
  } else {
    v_statistic(sums, sizes)
  }
}

# labellings x groups, each group's column divided by its number.
per <- function(a, numbers) a / rep(numbers, each = nrow(a))

v_statistic <- function(sums, sizes) {
  if (length(sizes) == 2L) {
    return(rowSums(per(sums$own, sizes^2)) - 2 * sums$cross[, 1L] / prod(sizes))
  }
  total <- rowSums(sums$own) + 2 * rowSums(sums$cross)
  rowSums(per(sums$own, sizes)) - total / sum(sizes)
}

u_statistic <- function(sums, sizes) {
  off <- sums$own - sums$trace
  if (length(sizes) == 2L) {
    return(rowSums(per(off, sizes * (sizes - 1))) -
             2 * sums$cross[, 1L] / prod(sizes))
  }
  n <- sum(sizes)
  rowSums(per(off, n * (sizes - 1) / (n - sizes))) -
    2 * rowSums(sums$cross) / n
}

# Distances of the means shrunk towards 0, each by its own factor.
skmse_statistic <- function(sums, sizes, options) {
  rho <- per(sums$own, sizes^2)
  excess <- pmax(per(sums$trace, sizes) - rho, 0)
  n <- rep(sizes, each = nrow(rho))
  keep <- 1 - skmse_alpha(excess, rho, n, options$lambda, options$select)
  pair_distances(keep^2 * rho, sizes, \(g, h, pair) {
    keep[, g] * keep[, h] * sums$cross[, pair] / (sizes[g] * sizes[h])
  })
}

# The squared distance of two means, or the sum over pairs weighted by
# m_g m_h/N. norm2: labellings x groups; inner(g, h, pair): their products.
pair_distances <- function(norm2, sizes, inner) {
  pairs <- utils::combn(length(sizes), 2L)
  total <- 0
  for (p in seq_len(ncol(pairs))) {
    g <- pairs[1L, p]
    h <- pairs[2L, p]
    weight <- if (length(sizes) == 2L) 1 else sizes[g] * sizes[h] / sum(sizes)
    total <- total +
      weight * (norm2[, g] + norm2[, h] - 2 * inner(g, h, p))
  }
  total
}

# log mean exp of the studentised U-statistics over the bandwidths.
fuse_statistic <- function(sums, sizes) {
  n <- sum(sizes)
  m <- min(sizes)
  z <- vapply(seq_along(sums), \(j) {
    # Squares of the values off the diagonal, which is 1.
    square <- (sums[[j]]$moments[2L] - n) / (n * (n - 1))
    sqrt(m * (m - 1) / square) * u_statistic(sums[[j]], sizes)
  }, numeric(nrow(sums[[1L]]$own)))
  z <- matrix(z, ncol = length(sums))
  top <- do.call(pmax, as.data.frame(z))
  top + log(rowMeans(exp(z - top)))
}

# F-KMSE means of each labelling: beta = (K_gg + lambda I)^{-1} K_gg 1/m_g.
fkmse_statistics <- function(samples, options, fitted, scheme) {
  k <- fitted$gram$K
  sizes <- samples$sizes
  work <- scheme$B * sum(sizes^3) / 3
  if (work > 1e11) {
    warn_kernmean(
      "F-KMSE means of ", scheme$B, " permutations take about ",
      format(work, digits = 2), " flops"
    )
  }
  bar <- progress_bar(options$progress)
  on.exit(bar$close())
  group <- rep(seq_along(sizes), sizes)
  values <- numeric(scheme$B + 1L)
  values[1L] <- fkmse_distance(k, seq_along(group), group, sizes, fitted$lambda)
  for (b in seq_len(scheme$B)) {
    order <- if (is.null(scheme$matrix)) {
      draw_permutations(length(group), 1L, scheme$blocks)[, 1L]
    } else {
      scheme$matrix[, b]
    }
    values[b + 1L] <- fkmse_distance(k, order, group, sizes, fitted$lambda)
    bar$at(b / scheme$B)
  }
  list(values = values)
}

fkmse_distance <- function(k, order, group, sizes, lambda) {
  points <- split(order, group)
  weights <- lapply(points, \(i) {
    rows <- rowMeans(k[i, i])
    if (lambda == 0) {
      return(rep(1 / length(i), length(i)))
    }
    if (lambda == Inf) {
      return(numeric(length(i)))
    }
    fkmse_weights(new_gram(k[i, i]), lambda, NULL, rows)
  })
  inner <- \(g, h) {
    sum(weights[[g]] * (k[points[[g]], points[[h]]] %*% weights[[h]]))
  }
  norm2 <- vapply(seq_along(sizes), \(g) inner(g, g), numeric(1))
  pair_distances(t(norm2), sizes, \(g, h, pair) inner(g, h))
}

# --- Null distributions ----------------------------------------------------

# Draws of sum_l gamma_l/N (Z_l^2 - unbiased), chi-squared with groups - 1
# degrees of freedom, in the units of the statistic.
spectrum_draws <- function(samples, options, B) {
  k <- if (is.null(samples$gram)) {
    fold_store(samples$kernel, samples$x)
  } else {
    samples$gram$K
  }
  rows <- rowMeans(k)
  values <- clip_values(spectrum_values(
    k - rows - rep(rows, each = nrow(k)) + mean(rows)
  ), max(abs(rows)), "the centred Gram matrix")
  values <- values[values > 0]
  freedom <- length(samples$sizes) - 1
  n <- sum(samples$sizes)
  unit <- if (freedom == 1) prod(samples$sizes) else n
  squares <- matrix(stats::rchisq(B * length(values), freedom), B)
  if (options$statistic == "U") {
    squares <- squares - freedom
  }
  drop(squares %*% values) / unit
}

# shape and scale of a gamma law with the mean and variance of the V-statistic
# over all permutations; NULL if the statistic is constant.
gamma_law <- function(source, sizes, square) {
  rows <- source$rows[, 1L]
  diagonal <- source$diagonal[, 1L]
  moments <- v_moments(rows, diagonal, sizes, square)
  variance <- moments[["second"]] - moments[["mean"]]^2
  if (all(rows == rows[1L]) && all(diagonal == rows[1L] / length(rows))) {
    return(NULL)
  }
  if (is_rounding(variance, moments[["second"]], square, sizes)) {
    stop_kernmean(
      "numeric", "the kernel values differ too little from each other for ",
      "null = \"gamma\"; take a smaller bandwidth or centre the columns"
    )
  }
  c(shape = moments[["mean"]]^2 / variance,
    scale = variance / moments[["mean"]])
}

# Is a variance over permutations, a difference of terms as large as
# `second` and, before centring, as the mean square of the kernel values, no
# more than rounding?
is_rounding <- function(variance, second, square, sizes) {
  n <- sum(sizes)
  size <- second + sum(1 / sizes)^2 * square / n^2
  !is.finite(size) || !(variance > 64 * n * .Machine$double.eps * size)
}

# Mean and second moment of the V-statistic of two samples over all
# permutations, from the row sums, the diagonal and the sum of squares of K.
v_moments <- function(rows, diagonal, sizes, square) {
  n <- sum(sizes)
  falling <- cumprod(n - 0:3)
  centred <- diagonal - 2 * rows / n + sum(rows) / n^2
  t <- sum(centred)
  d <- sum(centred^2)
  f <- square - 2 * sum(rows^2) / n + sum(rows)^2 / n^2
  p2 <- sum(1 / sizes)
  p4 <- sum(1 / sizes^3)
  second <- d * p4 / n + 4 * d * p4 / falling[2L] +
    (t^2 + 2 * f - 3 * d) * (p2^2 - p4) / falling[2L] +
    (12 * d - 2 * t^2 - 4 * f) * (2 * p4 - p2^2) / falling[3L] +
    (t^2 + 2 * f - 6 * d) * (3 * p2^2 - 6 * p4) / falling[4L]
  c(mean = p2 * t / (n - 1), second = second)
}

# Standard deviation of the U-statistic of two samples over all permutations
# (its mean is 0); NA where it cannot be told from rounding.
u_deviation <- function(rows, diagonal, sizes, square) {
  n <- sum(sizes)
  rows <- rows - diagonal
  s <- sum(rows)
  s2 <- square - sum(diagonal^2)
  r2 <- sum(rows^2)
  m1 <- sizes[1L]
  m2 <- sizes[2L]
  v <- (1 / (m1 * (m1 - 1)) + 1 / (m2 * (m2 - 1)) + 2 / (m1 * m2)) /
    (n * (n - 1))
  variance <- 2 * v * s2 - 4 * v * (r2 - s2) / (n - 2) +
    2 * v * (s^2 - 4 * r2 + 2 * s2) / ((n - 2) * (n - 3))
  if (is_rounding(variance, 0, square, sizes)) NA else sqrt(variance)
}

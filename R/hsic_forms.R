# The statistics behind hsic_test(): centered Gram matrices or their factors,
# the forms sum_ij k_ij l_p(i)p(j) of many permutations p at once, what the
# estimators make of them, and spectral filters of each variable.

# list(observed, law: list(p, draws, gamma), height: the factor of statistic and
# draws; and where there are any: share: HSIC_xy/sqrt(HSIC_xx HSIC_yy), noise
# and smoothing, by variable, the estimator as settled, its candidates, alpha,
# ranks; of a filter several, table, left).
hsic_statistics <- function(variables, options, scheme) {
  settled <- settle_variables(variables, options)
  options$estimator <- settled$estimator
  source <- if (is.null(options$bandwidths)) {
    new_source(settled$samples, options, scheme)
  } else {
    fuse_source(lapply(variables, each_bandwidth), scheme)
  }
  found <- if (!is.null(options$filter)) {
    filter_draws(variables, settled, source, options, scheme)
  } else if (options$null == "gamma") {
    hsic_gamma(source)
  } else if (is.null(source$shares) && options$operator) {
    operator_draws(source, options, scheme)
  } else {
    form_draws(source, options, scheme)
  }
  # What was found goes before what was settled.
  c(found, settled[c("estimator", "height", "noise", "smoothing")],
    source[c("share", "ranks")])
}

# Averages settle on each variable by itself: list(samples, with another kernel
# in place of theirs, estimator, height, noise, smoothing). What shrinks an
# operator chooses later, see operator_draws().
settle_variables <- function(variables, options) {
  samples <- lapply(variables, `[[`, "sample")
  if (options$operator) {
    return(list(samples = samples, estimator = options$estimator, height = 1))
  }
  settled <- lapply(variables, \(variable) {
    est_settle_variable(options$estimator, variable$sample, paste0(
      "'", variable$name, "'",
      if (is_factor_variable(variable)) ", a factor,"
    ))
  })
  chosen <- lapply(settled, `[[`, "chosen")
  noise <- lapply(chosen, `[[`, "noise")
  smoothing <- unlist(lapply(chosen, `[[`, "h"))
  list(
    samples = Map(settled_sample, samples, settled),
    estimator = settled[[1L]]$estimator,
    height = prod(vapply(settled, `[[`, 1, "height")),
    noise = if (!is.null(noise[[1L]])) noise,
    smoothing = if (!is.null(smoothing)) {
      stats::setNames(smoothing, paste("h of", names(smoothing)))
    }
  )
}

# --- Gram matrices -----------------------------------------------------------

new_source <- function(samples, options, scheme) {
  if (length(samples) > 2L) {
    tensor_source(samples)
  } else {
    pair_source(lapply(samples, filterable_sample), options, scheme)
  }
}

# Two centered matrices, or factors of them, as x and y; share: how large HSIC
# is among its bounds; `shares` is that of est_share().
pair_source <- function(samples, options, scheme) {
  n <- samples[[1L]]$n
  shares <- if (options$operator) est_share(options$estimator)
  stored <- options$null == "gamma" || options$operator && is.null(shares) ||
    !is.null(scheme$moved)
  factors <- if (!stored) pair_factors(samples, scheme$B)
  if (is.null(factors)) {
    check_memory(n, n, "use fewer rows", copies = 2)
    parts <- lapply(samples, centered_part)
  } else {
    parts <- Map(factor_part, factors, samples)
  }
  source <- new_pair(parts, scheme, !is.null(factors))
  same <- matrix(seq_len(ncol(source$x$m)))
  source$share <- share_of(pair_forms(source, same), source$norms)
  source["shares"] <- list(shares)
  if (options$operator) source["scale"] <- list(NULL)
  if (!is.null(factors)) source$ranks <- c(x = nrow(source$x$m),
                                           y = nrow(source$y$m))
  source
}

# list(x, y, n, norms, the product of theirs, factors: are they factors, scale:
# see permutation_p(), moved: permutations of a draw)
new_pair <- function(parts, scheme, factors = FALSE) {
  n <- length(parts[[1L]]$diagonal)
  norms <- parts[[1L]]$norm * parts[[2L]]$norm
  parts <- cluster_parts(unname(parts), scheme)
  list(x = parts[[1L]], y = parts[[2L]], n = n, norms = norms,
       factors = factors, scale = norms / n^2, moved = 1L)
}

pair_forms <- function(pair, permutations) {
  if (pair$norms == 0) {
    numeric(ncol(permutations))
  } else if (pair$factors) {
    .Call(C_r_permuted_products, pair$x$m, pair$y$m, permutations)
  } else {
    .Call(C_r_permuted_forms, pair$x$m, pair$y$m, permutations)
  }
}

share_of <- function(form, norms) {
  if (norms == 0) 0 else min(1, max(0, form / norms))
}

# Where values of a variable that is constant within clusters move between
# clusters of any size, sum_ij k_ij l_p(i)p(j) is a sum over clusters: of the
# other matrix, added up over clusters, with the values of the one that moves.
# Row sums of k are 0, and so it does not matter where l is centered.
cluster_parts <- function(parts, scheme) {
  moved <- scheme$moved
  if (!is.null(moved)) {
    codes <- scheme$clusters
    first <- which(!duplicated(codes))
    parts[[moved]]$m <- parts[[moved]]$m[first, first, drop = FALSE]
    whole <- parts[[3L - moved]]$m
    parts[[3L - moved]]$m <- unname(rowsum(t(rowsum(whole, codes)), codes))
  }
  parts
}

# The permutations of points that permutations of clusters stand for: points
# keep their order within the cluster.
point_permutations <- function(units, scheme) {
  codes <- scheme$clusters
  if (is.null(codes) || !is.null(scheme$moved)) {
    return(units)
  }
  sorted <- order(codes)
  first <- match(seq_len(max(codes)), codes[sorted])
  place <- seq_along(codes) - first[codes[sorted]]
  place[sorted] <- place
  moved <- units[codes, , drop = FALSE]
  moved[] <- sorted[first[moved] + place]
  moved
}

# Both factors where the product of the ranks is below 4n, or NULL. The first
# columns are cheap; of one matrix more are worth a share of what the forms of
# whole matrices cost.
pair_factors <- function(samples, B) {
  n <- samples[[1L]]$n
  first <- min(n, ceiling(2 * sqrt(n)))
  factors <- lapply(samples, low_rank, first)
  open <- vapply(factors, is.null, NA)
  if (any(open) && !all(open)) {
    rank <- max(1L, nrow(factors[[which(!open)]]))
    most <- floor(min(n, (4 * n - 1) / rank, sqrt(n) * sqrt(B) / 4))
    if (most > first) {
      factors[[which(open)]] <- low_rank(samples[[which(open)]], most)
    }
  }
  ranks <- unlist(lapply(factors, nrow))
  if (length(ranks) == 2L && ranks[[1L]] / 4 * ranks[[2L]] < n) factors
}

# The centered factor, rank x n, or NULL.
low_rank <- function(sample, cap) {
  if (!is_definite(sample$kernel)) {
    return(NULL)
  }
  check_values(sample_diagonal(sample))
  check_memory(sample$n, cap, "use fewer rows")
  .Call(C_r_lowrank, sample_source(sample), as.integer(cap))
}

# Kernels that are not bounded, and their products, can overflow.
check_values <- \(values) check_overflow(NULL, values, "the variables")

# Of a constant, centering leaves rounding, which is not to be tested: entries
# of this size, relative to the kernel values.
rounding <- 16 * .Machine$double.eps

# list(m, diagonal, trace, norm) of a centered matrix; all 0 if it is rounding.
new_part <- function(m, diagonal, norm, size) {
  if (norm <= length(diagonal) * rounding * size) {
    m[] <- 0
    diagonal <- numeric(length(diagonal))
    norm <- 0
  }
  list(m = m, diagonal = diagonal, trace = sum(diagonal), norm = norm)
}

centered_part <- function(sample) {
  centered <- center_source(sample_source(sample))
  diagonal <- diag(centered$k)
  new_part(centered$k, diagonal, norm(centered$k, "F"),
           max(abs(centered$at)) + mean(abs(diagonal)))
}

factor_part <- function(factor, sample) {
  norm <- if (nrow(factor)) norm(tcross(factor), "F") else 0
  new_part(factor, colSums(factor^2), norm, mean(sample_diagonal(sample)))
}

# dHSIC: the matrices as they are. Rounding is far smaller than for ties of
# centered statistics allowed.
tensor_source <- function(samples) {
  n <- samples[[1L]]$n
  check_memory(n, n, "use fewer rows", copies = length(samples))
  k <- lapply(unname(samples), \(sample) {
    sample_matrix(walkable_sample(sample))
  })
  rows <- lapply(k, rowMeans)
  list(
    k = k, rows = rows, n = n, moved = length(k) - 1L,
    means = prod(vapply(rows, mean, 1)),
    scale = 1e-3 * prod(vapply(k, \(k) mean(abs(diag(k))), 1)),
    constant = any(vapply(k, \(k) all(k == k[1L]), NA))
  )
}

# --- Many bandwidths ---------------------------------------------------------

grid_bandwidths <- 5L

takes_bandwidths <- function(variable) {
  sample <- variable$sample
  !is_factor_variable(variable) && !stores_gram(sample) && is_rbf(sample$kernel)
}

# The variables with many bandwidths where the kernel is not their own: with
# "fuse" from half the 5% to twice the 95% quantile of distances, in a geometric
# sequence.
spread_bandwidths <- function(variables, bandwidths) {
  if (any(vapply(variables, is_mixed_variable, NA))) {
    stop_input("'bandwidths' must be NULL where a variable has factors among ",
               "its columns")
  }
  plain <- vapply(variables, takes_bandwidths, NA)
  if (!any(plain)) {
    stop_input("'bandwidths' must be NULL where every variable has a kernel ",
               "of its own, as factors and grams have")
  }
  each <- if (is.list(bandwidths)) bandwidths else list(bandwidths, bandwidths)
  variables[plain] <- Map(\(variable, set) {
    if (is.character(set)) {
      ends <- log(range(fuse_bandwidths(variable$sample$x)))
      set <- exp(seq(ends[1L], ends[2L], length.out = grid_bandwidths))
    }
    variable$sample$kernel$bandwidth <- as.double(set)
    variable$sample$kernel["rule"] <- list(NULL)
    variable
  }, variables[plain], each[plain])
  variables
}

# A sample for each bandwidth of a variable that takes many.
each_bandwidth <- function(variable) {
  if (takes_bandwidths(variable)) {
    by_bandwidth(variable$sample, variable$sample$kernel$bandwidth)
  } else {
    list(variable$sample)
  }
}

# list(n, pairs, share, scale, moved) of two lists of samples; each pair with
# the mean and variance of its forms; the share is that of the average kernels.
fuse_source <- function(samples, scheme) {
  n <- samples[[1L]][[1L]]$n
  check_memory(n, n, "use fewer rows, or bandwidths",
               copies = 2 * sum(lengths(samples)))
  parts <- lapply(samples, lapply, \(one) centered_part(filterable_sample(one)))
  pairs <- list()
  for (y in parts[[2L]]) for (x in parts[[1L]]) {
    pair <- c(new_pair(list(x, y), scheme), form_moments(x, y))
    pairs <- c(pairs, list(pair))
  }
  sums <- lapply(parts, \(each) Reduce(`+`, lapply(each, `[[`, "m")))
  norms <- norm(sums[[1L]], "F") * norm(sums[[2L]], "F")
  list(n = n, pairs = pairs, scale = 1, moved = 1L,
       share = share_of(sum(sums[[1L]] * sums[[2L]]), norms))
}

# Mean and variance of sum_ij k_ij l_p(i)p(j) over all permutations, of centered
# matrices (Kazi-Aoual et al. 1995); 0 for a variance that is rounding.
form_moments <- function(x, y) {
  n <- length(x$diagonal)
  of <- \(part) {
    t <- part$trace
    t2 <- part$norm^2
    c((n - 1) * t2 - t^2,
      n * (n + 1) * sum(part$diagonal^2) - (n - 1) * (t^2 + 2 * t2))
  }
  a <- of(x)
  b <- of(y)
  variance <- 2 * a[1L] * b[1L] / ((n - 1)^2 * (n + 1) * (n - 2)) +
    a[2L] * b[2L] / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
  size <- (x$norm * y$norm)^2
  list(mean = x$trace * y$trace / (n - 1),
       variance = if (variance > n * rounding * size) variance else 0)
}

# --- Statistics of permutations --------------------------------------------

# The statistic of each column of permutations, or of so many as source$moved.
permuted_statistic <- function(source, permutations, options) {
  n <- source$n
  if (!is.null(source$pairs)) {
    return(fused_statistic(source$pairs, permutations))
  }
  if (source$moved > 1L) {
    sums <- .Call(C_r_permuted_tensor, source$k, source$rows, permutations)
    return(sums$forms / n^2 + source$means - 2 * sums$sums / n)
  }
  forms <- pair_forms(source, permutations)
  if (!is.null(source$shares)) {
    rho <- forms / n^2
    return((1 - operator_shares(source, permutations, rho))^2 * rho)
  }
  if (options$statistic == "biased") {
    return(forms / n^2)
  }
  # U-centering sees the entries off the diagonal alone, up to sums of a row's
  # and a column's number: the centered matrices will do, and their rows sum to
  # minus the diagonal without it.
  traces <- source$x$trace * source$y$trace / ((n - 1) * (n - 2))
  diagonal <- permuted_traces(source, permutations) * n / (n - 2)
  (forms - diagonal + traces) / (n * (n - 3))
}

# The statistics of all pairs, each with mean 0 and variance 1 over all
# permutations, as one. A pair whose forms are constant, as of a constant
# variable, tells nothing.
fused_statistic <- function(pairs, permutations) {
  z <- vapply(pairs, \(pair) {
    if (pair$variance > 0) {
      (pair_forms(pair, permutations) - pair$mean) / sqrt(pair$variance)
    } else {
      numeric(ncol(permutations))
    }
  }, numeric(ncol(permutations)))
  log_mean_exp(matrix(z, ncol = length(pairs)))
}

# tr(Kc o Lc) of each permutation.
permuted_traces <- \(source, permutations) {
  .Call(C_r_permuted_sums, source$x$diagonal, source$y$diagonal, permutations)
}

# The share of shrinkage of each permutation, from rho = mean(M) and varrho =
# tr(M)/n.
operator_shares <- function(source, permutations, rho) {
  n <- source$n
  source$shares(rho, permuted_traces(source, permutations) / n, n)
}

# Permutations at a time: 4 MB, or 64.
chunk_size <- \(source) max(64, floor(2^20 / source$n / source$moved))

same_units <- function(source, scheme) {
  units <- length(scheme$sizes)
  matrix(seq_len(units), units, source$moved)
}

# list(observed, law, alpha)
form_draws <- function(source, options, scheme) {
  statistic <- \(units) {
    permuted_statistic(source, point_permutations(units, scheme), options)
  }
  same <- same_units(source, scheme)
  observed <- statistic(same)
  check_values(observed)
  values <- c(observed, permuted_draws(
    statistic, nrow(same), scheme, chunk_size(source), options$progress,
    source$moved
  ))
  check_values(values)
  check_size(source, values)
  if (is.null(scheme$matrix) || scheme$all) check_varies(values)
  list(observed = observed,
       law = permutation_null(values, source$scale, scheme),
       alpha = if (!is.null(source$shares)) {
         same <- point_permutations(same, scheme)
         operator_shares(source, same, pair_forms(source, same) / source$n^2)
       })
}

# A test that no permutation can change must not look like independence.
check_varies <- function(values) {
  top <- max(abs(values))
  if (length(values) > 1L && max(values) - min(values) <= tie_slack * top) {
    warn_kernmean(
      "no permutation changes the statistic, so that the test says nothing: ",
      "the values of a variable are all equal, or no two of its rows are ",
      "alike to a kernel for factors"
    )
  }
}

# Any estimator: beta'M beta with the weights that it gives for each M. What it
# chooses once is chosen between x paired with itself and y paired with itself:
# no pairing is looked at.
operator_draws <- function(source, options, scheme) {
  settle <- \(part, where) {
    est_settle(options$estimator, gram_sample(new_gram(part$m^2)),
               where)$estimator
  }
  estimator <- est_between(settle(source$x, "'x'"), settle(source$y, "'y'"))
  statistic <- \(units) {
    if (source$norms == 0) {
      return(0)
    }
    order <- point_permutations(matrix(units), scheme)
    m <- source$x$m * source$y$m[order, order]
    beta <- est_weights(estimator, gram_sample(new_gram(m)))
    sum(beta * (m %*% beta))
  }
  values <- refitted_draws(statistic, length(scheme$sizes), scheme, estimator,
                           source$n^3 / 3, options$progress)
  check_values(values[1L])
  list(observed = values[1L],
       law = permutation_null(values, source$scale, scheme),
       estimator = estimator, candidates = stack_shares_table(estimator))
}

# dHSIC is a difference of sums that are not centered: it must be seen above
# their rounding.
check_size <- function(source, values) {
  if (source$moved > 1L && !source$constant &&
        max(abs(values)) < 10 * tie_slack * source$scale) {
    stop_kernmean(
      "numeric", "the kernel values vary too little for their size; center ",
      "the variables, or take smaller bandwidths"
    )
  }
}

# Gretton et al. (2007): mean (varrho_x - |mu_x|^2)(varrho_y - |mu_y|^2)/n with
# |mu|^2 without the pairs of a point with itself, so that varrho - |mu|^2 is
# the trace of the centered matrix over n - 1; variance by their section 4.
hsic_gamma <- function(source) {
  n <- source$n
  observed <- pair_forms(source, matrix(seq_len(n))) / n^2
  check_values(observed)
  a <- source$x
  b <- source$y
  unit <- source$norms
  # In units of the norms, whose squares might overflow.
  mean <- (a$trace / a$norm) * (b$trace / b$norm) / (n * (n - 1)^2)
  squares <- sum(((a$m / a$norm) * (b$m / b$norm))^2) -
    sum(((a$diagonal / a$norm) * (b$diagonal / b$norm))^2)
  variance <- 2 * (n - 4) * (n - 5) / prod(n - 0:3) * squares / (n * (n - 1))
  law <- gamma_null(observed, mean, if (unit == 0) 0 else variance, unit)
  list(observed = observed, law = law)
}

# --- Filters -----------------------------------------------------------------

# HSIC of the matrices M of filter.R, each of its own variable, which no
# permutation changes, see filter_statistics(). plain: the source without a
# filter.
filter_draws <- function(variables, settled, plain, options, scheme) {
  filter <- options$filter
  several <- length(variables) > 2L
  orders <- draw_orders(scheme, plain)
  joint <- filter_statistics(
    options, scheme, if (several) "dHSIC" else "HSIC", settled$height, NULL,
    source_of = \(factor) {
      samples <- if (factor == 1) settled$samples else
        lapply(variables, \(variable) vary_bandwidth(variable, factor)$sample)
      matrices <- if (any(filter$order > 0L)) {
        lapply(samples, dependence_matrices, filter)
      }
      list(
        left = max(0, vapply(matrices, `[[`, 1, "left")),
        plain = \(order) if (factor == 1) plain else
          new_source(samples, options, scheme),
        at = \(ratio) {
          m <- lapply(matrices, \(one) one$at(ratio))
          \(order) if (several) filtered_tensor(m) else new_pair(
            lapply(m, \(m) new_part(m, diag(m), norm(m, "F"), max(m))), scheme
          )
        }
      )
    },
    draw = \(source) {
      values <- unlist(lapply(orders, permuted_statistic, source = source,
                              options = options))
      check_values(values[1L])
      check_size(source, values)
      list(values = values, scale = source$scale)
    }
  )
  values <- joint$values
  if (is.null(scheme$matrix) || scheme$all) check_varies(values)
  c(list(observed = values[1L], height = 1,
         law = permutation_null(values, joint$scale, scheme)),
    joint[c("several", "table", "left")])
}

# Chunks of permutations of points, drawn once for all statistics: first the
# identity, which is the data.
draw_orders <- function(scheme, source) {
  same <- same_units(source, scheme)
  check_memory(source$n, scheme$B / 2 * source$moved, "use fewer permutations",
               what = "the permutations")
  chunks <- in_chunks(scheme$B, chunk_size(source), FALSE, \(start, count) {
    drawn_chunk(nrow(same), scheme, start, count, source$moved)
  })
  lapply(c(list(same), chunks), point_permutations, scheme)
}

# list(left: see filter_spectrum(), at: M of each ratio as a function of it).
dependence_matrices <- function(sample, filter) {
  sample <- filterable_sample(sample)
  if (sample$n <= filter_most_points) {
    return(list(left = 0,
                at = filter_matrices(sample, filter$ratio, filter$name)))
  }
  check_memory(sample$n, sample$n, "use fewer rows", copies = 4)
  spectrum <- filter_spectrum(sample, min(filter$ratio))
  list(left = spectrum$left,
       at = \(ratio) tcross(filter_root(spectrum, ratio, filter$name)))
}

# Of more variables, 1 + M / mean(diag M) in place of each: products of M alone,
# whose rows sum to 0, would see no dependence of two that leaves a third alone.
filtered_tensor <- function(m) {
  means <- vapply(m, \(m) mean(diag(m)), 1)
  n <- nrow(m[[1L]])
  k <- Map(\(m, mean) 1 + m / if (mean > 0) mean else 1, unname(m), means)
  list(k = k, rows = rep(list(rep(1, n)), length(k)), n = n,
       moved = length(k) - 1L, means = 1, scale = 1e-3 * 2^length(k),
       constant = any(means == 0))
}

# Has a variable a bandwidth that factors can multiply?
varies_bandwidth <- function(variable) {
  !is_factor_variable(variable) && !is_mixed_variable(variable) &&
    knows_points(variable$sample) && !is.null(variable$sample$kernel$bandwidth)
}

vary_bandwidth <- function(variable, factor) {
  if (varies_bandwidth(variable)) {
    variable$sample <- times_bandwidth(variable$sample, factor)
  }
  variable
}

# --- Clusters ----------------------------------------------------------------

# What changes places, see check_permutations(), and `moved`: the variable whose
# values move between clusters of any size, as they are constant in each, or
# NULL where values stay in clusters of their size, point by point.
exchange_units <- function(variables, options) {
  n <- variables[[1L]]$sample$n
  units <- read_units(options$blocks, options$clusters, n)
  codes <- units$clusters
  if (is.null(codes)) {
    return(c(units, list(sizes = rep(1L, n))))
  }
  sizes <- tabulate(codes)
  units$blocks <- cluster_blocks(units)
  units$sizes <- rep(1L, length(sizes))
  blocked <- !is.null(units$blocks)
  constant <- vapply(variables, \(v) constant_within(v$sample, codes), NA)
  if (length(unique(sizes)) > 1L) {
    # Filters must not change with the sizes of what moves.
    sums <- length(variables) == 2L && !options$operator &&
      options$statistic == "biased" && is.null(options$filter)
    if (sums && any(constant)) {
      units$moved <- max(which(constant))
    } else {
      units$of <- paste0(" of the same size", if (blocked) " within blocks")
      units$blocks <- check_codes(paste(sizes, units$blocks), length(sizes))
    }
  }
  still <- if (is.null(units$blocks)) length(sizes) == 1L else
    !anyDuplicated(units$blocks)
  if (still) {
    stop_input(
      "'clusters' must hold two of the same size",
      if (blocked) " in some block",
      ", which can change places; sizes may differ where one of two variables ",
      "is constant within clusters, with estimator = \"kme\", statistic = ",
      "\"biased\" and no filter"
    )
  }
  check_clusters(variables, codes, units)
  units$labelings <- count_values(variables[constant], units, codes)
  alone <- if (is.null(units$of)) 0L else sum(tabulate(units$blocks) == 1L)
  if (alone > 0L) {
    warn_kernmean(alone, " of ", length(sizes), " clusters have a size that ",
                  "no other", if (blocked) " of their block",
                  " has, and stay where they are")
  }
  units
}

# The ways in which the values of variables that are constant within clusters
# can be given to them; NULL where there is none.
count_values <- function(variables, units, codes) {
  counts <- vapply(variables, \(variable) {
    points <- variable$sample$x
    if (is.null(points)) {
      return(Inf)
    }
    each <- points[!duplicated(codes), , drop = FALSE]
    values <- do.call(paste, as.data.frame(each))
    exp(sum(vapply(in_blocks(length(values), units$blocks), \(i) {
      lfactorial(length(i)) - sum(lfactorial(table(values[i])))
    }, 1)))
  }, 1)
  if (length(counts)) min(counts)
}

# Clusters that all hold the same values of a variable, as with a design that is
# repeated in each, exchange nothing.
check_clusters <- function(variables, codes, units) {
  rows <- split(seq_along(codes), codes)
  blocks <- in_blocks(length(rows), units$blocks)
  for (variable in if (is.null(units$moved)) variables) {
    points <- variable$sample$x
    if (is.null(points)) next
    each <- lapply(rows, \(i) unname(points[i, , drop = FALSE]))
    same <- vapply(blocks, \(of) length(unique(each[of])) == 1L, NA)
    if (all(same)) {
      stop_input("'clusters' must not all hold the same values of '",
                 variable$name, "', or nothing changes when they change ",
                 "places; where its values vary within clusters, these are ",
                 "the 'blocks' of points that do")
    }
  }
}

# Are the points of each cluster the same to the kernel?
constant_within <- function(sample, codes) {
  values <- if (knows_points(sample)) sample$x else sample_matrix(sample)
  all(values == values[which(!duplicated(codes))[codes], , drop = FALSE])
}

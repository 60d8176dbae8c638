# The statistics of hsic_test(): centered Gram matrices or their factors, the
# forms sum_ij k_ij l_p(i)p(j) of many permutations p at once, what estimators
# make of them, and the joint test.

# A dependence is the result of a test of independence: the statistic, its null
# distribution, HSIC_xy/sqrt(HSIC_xx HSIC_yy) as `share`, and the choices of an
# estimator on operators (estimator, alpha, candidates). find_dependence() adds
# the choices of an estimator on variables (noise, smoothing).
new_dependence <- function(statistic, null, share = NULL, estimator = NULL,
                           alpha = NULL, candidates = NULL) {
  list(statistic = statistic, null = null, share = share,
       estimator = estimator, alpha = alpha, candidates = candidates)
}

find_dependence <- function(variables, options, scheme) {
  settled <- settle_variables(variables, options)
  settled$samples <- lapply(settled$samples, given_blocks, scheme$given)
  variables <- lapply(variables, \(variable) {
    variable$sample <- given_blocks(variable$sample, scheme$given)
    variable
  })
  options$estimator <- settled$estimator
  source <- if (is.null(options$bandwidths)) {
    new_source(settled$samples, options, scheme)
  } else {
    fuse_source(variables, scheme)
  }
  found <- if (!is.null(options$filter)) {
    joint_dependence(variables, settled, source, options, scheme)
  } else if (options$null == "gamma") {
    gamma_dependence(source)
  } else if (is.null(source$shares) && options$operator) {
    fitted_dependence(source, options, scheme)
  } else {
    form_dependence(source, options, scheme, settled$height)
  }
  found$estimator <- found$estimator %||% settled$estimator
  found$share <- source$share
  c(found, settled[c("noise", "smoothing")], source["ranks"])
}

# The name of the statistic of a test of independence.
hsic_name <- function(options) {
  if (isTRUE(options$several)) {
    return("dHSIC")
  }
  only_fused <- isTRUE(options$fused) && !length(options$filter$order)
  if (is.null(options$bandwidths) && !only_fused) "HSIC" else "fused HSIC"
}

# Fits an average to each variable separately. Returns the samples that take the
# place of the variables, the factor of the statistic (height), noise and
# smoothing. An estimator that shrinks an operator makes its choices later, in
# fitted_dependence().
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
  if (length(samples) == 2L) {
    return(pair_source(lapply(samples, filterable_sample), options, scheme))
  }
  n <- samples[[1L]]$n
  check_memory(n, n, "use fewer rows", copies = length(samples))
  k <- lapply(unname(samples), \(sample) {
    sample_matrix(walkable_sample(sample))
  })
  if (is.null(scheme$given)) tensor_source(k) else filtered_source(k, scheme)
}

# The source of two centered matrices, or of their factors, see new_pair(), with
# HSIC over its upper bound as `share`, and the function that est_share()
# returns as `shares`.
pair_source <- function(samples, options, scheme) {
  shares <- if (options$operator) est_share(options$estimator)
  stored <- options$null == "gamma" || options$operator && is.null(shares) ||
    !is.null(scheme$moved)
  factors <- if (!stored) pair_factors(samples, scheme$B)
  parts <- if (is.null(factors)) lapply(samples, centered_part) else
    Map(\(factor, sample) {
      new_part(factor, mean(sample_diagonal(without_blocks(sample))), TRUE)
    }, factors, samples)
  source <- new_pair(parts, scheme, !is.null(factors))
  same <- matrix(seq_len(ncol(source$x$m)))
  source$share <- share_of(pair_forms(source, same), source$norms)
  source$shares <- shares
  if (options$operator) source["scale"] <- list(NULL)
  if (!is.null(factors)) source$ranks <- c(x = nrow(source$x$m),
                                           y = nrow(source$y$m))
  source
}

# A pair of centered matrices: the parts x and y, see new_part(), the number of
# values n, the product of their norms, whether they are factors, the size of
# the terms of HSIC (scale), and how many permutations a draw takes (moved). If
# a variable is constant within clusters, its values may move between clusters
# of any size. Then sum_ij k_ij l_p(i)p(j) is a sum over pairs of clusters, in
# which k is added up over clusters and l is the matrix of the variable that
# moves. The rows of k sum to 0, so the centering of l makes no difference; here
# l is centered over clusters.
new_pair <- function(parts, scheme, factors = FALSE) {
  parts <- unname(parts)
  n <- length(parts[[1L]]$diagonal)
  norms <- parts[[1L]]$norm * parts[[2L]]$norm
  moved <- scheme$moved
  if (!is.null(moved)) {
    codes <- scheme$clusters
    first <- which(!duplicated(codes))
    values <- parts[[moved]]$m[first, first, drop = FALSE]
    parts[[moved]] <- new_part(center_gram(values)$k, max(abs(values)))
    whole <- parts[[3L - moved]]$m
    parts[[3L - moved]] <- new_part(
      unname(rowsum(t(rowsum(whole, codes)), codes)), 0
    )
  }
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

# Returns the permutations of points that follow from permutations of clusters.
# Points keep their order within the cluster.
point_permutations <- function(units, scheme) {
  codes <- scheme$clusters
  if (is.null(codes) || !is.null(scheme$moved)) {
    return(units)
  }
  sorted <- order(codes)
  first <- match(seq_len(max(codes)), codes[sorted])
  place <- seq_along(codes) - first[codes[sorted]]
  place[sorted] <- place
  moved <- take_rows(units, codes)
  moved[] <- sorted[first[moved] + place]
  moved
}

# Returns the factors of both matrices if the product of their ranks is below
# 4n, else NULL. The first columns of a factor are cheap. If only one matrix has
# low rank, the other factor may get more columns, up to a share of what the
# forms of whole matrices cost.
pair_factors <- function(samples, B) {
  n <- samples[[1L]]$n
  first <- min(n, ceiling(2 * sqrt(n)))
  factors <- lapply(samples, low_rank, first)
  open <- which(vapply(factors, is.null, NA))
  if (length(open) == 1L) {
    rank <- max(1L, nrow(factors[[3L - open]]))
    most <- floor(min(n, (4 * n - 1) / rank, sqrt(n) * sqrt(B) / 4))
    if (most > first) {
      factors[open] <- list(low_rank(samples[[open]], most))
    }
  }
  ranks <- unlist(lapply(factors, nrow))
  if (length(ranks) == 2L && ranks[[1L]] / 4 * ranks[[2L]] < n) factors
}

# Returns the centered factor, a rank x n matrix, or NULL if its rank is above
# `cap`.
low_rank <- function(sample, cap) {
  if (kernel_has(sample$kernel, "distances")) {
    return(NULL)
  }
  blocks <- sample$blocks
  sample <- without_blocks(sample)
  check_values(sample_diagonal(sample))
  check_memory(sample$n, cap, "use fewer rows")
  factor <- .Call(C_r_lowrank, sample_source(sample), as.integer(cap))
  if (is.null(factor) || is.null(blocks)) factor else
    t(center_blocks(t(factor), blocks))
}

# Kernels that are not bounded, and their products, can overflow.
check_values <- \(values) check_overflow(NULL, values, "the variables")

# A part: a centered matrix, or a factor of one, as `m`, with the diagonal, the
# trace and the norm of the matrix; all are 0 if the matrix is rounding of
# kernel values of this size.
new_part <- function(m, size, factor = FALSE) {
  diagonal <- if (factor) colSums(m^2) else diag(m)
  norm <- norm(if (factor) tcross(m) else m, "F")
  if (norm <= length(diagonal) * rounding * size) {
    m[] <- 0
    diagonal <- numeric(length(diagonal))
    norm <- 0
  }
  list(m = m, diagonal = diagonal, trace = sum(diagonal), norm = norm)
}

centered_part <- function(sample) {
  centered <- centered_values(sample)
  new_part(centered$k, centered$scale + mean(abs(diag(centered$k))))
}

# The source of dHSIC, whose matrices are not centered. Its scale is small,
# because rounding changes dHSIC far less than it changes centered
# statistics.
tensor_source <- function(k) {
  rows <- lapply(k, rowMeans)
  list(
    k = k, rows = rows, n = nrow(k[[1L]]), moved = length(k) - 1L,
    means = prod(vapply(rows, mean, 1)),
    scale = 1e-3 * prod(vapply(k, \(k) mean(abs(diag(k))), 1)),
    constant = any(vapply(k, \(k) all(k == k[1L]), NA))
  )
}

# --- Many bandwidths ---------------------------------------------------------

grid_bandwidths <- 5L

takes_bandwidths <- function(variable) {
  varies_bandwidth(variable) && !stores_gram(variable$sample) &&
    kernel_has(variable$sample$kernel, "Gaussian form")
}

# Gives many bandwidths to those variables that can take them; the others stay
# as they are. "fuse" is a geometric sequence from half the 5% quantile to twice
# the 95% quantile of the distances.
spread_bandwidths <- function(variables, bandwidths, units) {
  if (!any(vapply(variables, takes_bandwidths, NA))) {
    stop_input("'bandwidths' must be NULL where no variable is of points in ",
               "numeric columns with kernel_rbf()")
  }
  Map(\(variable, l) {
    if (takes_bandwidths(variable)) {
      if (is.character(bandwidths)) {
        x <- variable$sample$x
        if (identical(l, units$moved)) {
          x <- take_rows(x, !duplicated(units$clusters))
        }
        ends <- log(range(fuse_bandwidths(x)))
        bandwidths <- exp(seq(ends[1L], ends[2L], length.out = grid_bandwidths))
      }
      variable$sample$kernel$bandwidth <- as.double(bandwidths)
      variable$sample$kernel["rule"] <- list(NULL)
    }
    variable
  }, variables, seq_along(variables))
}

# The source of two variables that may have many bandwidths: the matrices x and
# y, one for each bandwidth, as `grid`, and the mean and deviation of the forms
# of each pair, those of the first y first. The deviation is 0 where the forms
# do not vary, as of a constant variable. `share` is for the kernels averaged
# over the bandwidths.
fuse_source <- function(variables, scheme) {
  samples <- lapply(variables, \(variable) {
    by_bandwidth(variable$sample, if (takes_bandwidths(variable)) {
      variable$sample$kernel$bandwidth
    })
  })
  n <- samples[[1L]][[1L]]$n
  check_memory(n, n, "use fewer rows, or bandwidths",
               copies = 2 * sum(lengths(samples)))
  parts <- lapply(samples, lapply, \(one) centered_part(filterable_sample(one)))
  pairs <- unlist(lapply(parts[[2L]], \(y) {
    lapply(parts[[1L]], \(x) new_pair(list(x, y), scheme))
  }), FALSE)
  across <- length(parts[[1L]])
  grid <- list(x = lapply(pairs[seq_len(across)], \(pair) pair$x$m),
               y = lapply(pairs[seq(1L, length(pairs), across)],
                          \(pair) pair$y$m))
  moments <- vapply(pairs, \(pair) {
    moments <- form_moments(pair$x, pair$y)
    varies <- moments$variance > n * rounding * pair$norms^2
    c(moments$mean, if (varies) sqrt(moments$variance) else 0)
  }, numeric(2))
  each <- lapply(parts, lapply, `[[`, "m")
  inner <- \(a, b) sum(.Call(C_r_permuted_grid, each[[a]], each[[b]],
                             matrix(seq_len(n))))
  list(n = n, grid = grid, means = moments[1L, ], deviations = moments[2L, ],
       scale = 1, moved = 1L,
       share = share_of(inner(1L, 2L), sqrt(inner(1L, 1L) * inner(2L, 2L))))
}

# --- Statistics of permutations --------------------------------------------

# Returns the statistic of each permutation, which is a column of
# `permutations`. A draw takes source$moved columns.
permuted_statistic <- function(source, permutations, options) {
  n <- source$n
  if (!is.null(source$grid)) {
    return(fused_statistic(source, permutations))
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
  # U-centering depends only on the entries off the diagonal, and not on
  # constants that are added to a row or a column. So centered matrices will do:
  # without the diagonal, their rows sum to minus the diagonal.
  traces <- source$x$trace * source$y$trace / ((n - 1) * (n - 2))
  diagonal <- permuted_traces(source, permutations) * n / (n - 2)
  (forms - diagonal + traces) / (n * (n - 3))
}

# Combines the statistics of all pairs of bandwidths by log_mean_exp(), each
# standardized to mean 0 and variance 1 over all permutations. A pair whose
# forms do not vary counts as 0.
fused_statistic <- function(source, permutations) {
  forms <- .Call(C_r_permuted_grid, source$grid$x, source$grid$y, permutations)
  times <- nrow(forms)
  unit <- ifelse(source$deviations > 0, source$deviations, Inf)
  log_mean_exp((forms - rep(source$means, each = times)) /
                 rep(unit, each = times))
}

# The trace of Kc o Lc, the entrywise product, for each permutation.
permuted_traces <- \(source, permutations) {
  .Call(C_r_permuted_sums, source$x$diagonal, source$y$diagonal, permutations)
}

# The share of shrinkage for each permutation, from rho = mean(M) and varrho =
# tr(M)/n.
operator_shares <- function(source, permutations,
                            rho = pair_forms(source, permutations) /
                              source$n^2) {
  source$shares(rho, permuted_traces(source, permutations) / source$n, source$n)
}

# Returns the observed statistic and then the statistic of each draw.
form_values <- function(source, options, scheme,
                        progress = options$progress) {
  statistic <- \(units) {
    permuted_statistic(source, point_permutations(units, scheme), options)
  }
  units <- length(scheme$sizes)
  # This many permutations take 4 MB; a chunk has at least 64.
  size <- max(64, floor(2^20 / source$n / source$moved))
  values <- c(
    statistic(matrix(seq_len(units), units, source$moved)),
    permuted_draws(statistic, scheme, size, progress, source$moved)
  )
  check_values(values)
  # dHSIC is a difference of sums that are not centered, and must be larger than
  # their rounding.
  if (source$moved > 1L && !source$constant &&
        max(abs(values)) < 10 * tie_slack * source$scale) {
    stop_kernmean(
      "numeric", "the kernel values vary too little for their size; center ",
      "the variables, or take smaller bandwidths"
    )
  }
  values
}

form_dependence <- function(source, options, scheme, height) {
  values <- form_values(source, options, scheme)
  check_varies(values, scheme)
  size <- if (!is.null(source$scale)) height * source$scale
  statistic <- new_statistic(hsic_name(options), height * values, size)
  new_dependence(statistic, drawn_null(statistic, scheme),
                 alpha = if (!is.null(source$shares)) {
                   operator_shares(source, matrix(seq_len(source$n)))
                 })
}

# The dependence by an estimator that shrinks an operator. The statistic is
# beta'M beta, and the weights beta are fitted anew to the M of each
# permutation. Choices that are made only once lie between those for x paired
# with itself and those for y paired with itself, so that they do not depend on
# how x and y are paired.
fitted_dependence <- function(source, options, scheme) {
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
  values <- refitted_draws(statistic, scheme, estimator, source$n^3 / 3,
                           options$progress)
  check_values(values[1L])
  statistic <- new_statistic("HSIC", values, source$scale)
  new_dependence(statistic, drawn_null(statistic, scheme),
                 estimator = estimator,
                 candidates = stack_shares_table(estimator))
}

# The dependence by the gamma law of Gretton et al. (2007), section 4. Its mean
# is (varrho_x - |mu_x|^2)(varrho_y - |mu_y|^2)/n, where |mu|^2 leaves out the
# pairs of a point with itself. Then varrho - |mu|^2 is the trace of the
# centered matrix over n - 1.
gamma_dependence <- function(source) {
  n <- source$n
  observed <- pair_forms(source, matrix(seq_len(n))) / n^2
  check_values(observed)
  a <- source$x
  b <- source$y
  unit <- source$norms
  # Squares of the norms might overflow, and so the norms are the units.
  mean <- (a$trace / a$norm) * (b$trace / b$norm) / (n * (n - 1)^2)
  squares <- sum(((a$m / a$norm) * (b$m / b$norm))^2) -
    sum(((a$diagonal / a$norm) * (b$diagonal / b$norm))^2)
  variance <- 2 * (n - 4) * (n - 5) / prod(n - 0:3) * squares / (n * (n - 1))
  null <- gamma_null(observed, mean, if (unit == 0) 0 else variance, unit)
  new_dependence(new_statistic("HSIC", observed, source$scale), null)
}

# --- Filters -----------------------------------------------------------------

# The dependence by a joint test of several statistics: HSIC and, with the
# matrix M of each variable in place of K, the HSIC of order 1, both for each
# factor of the bandwidth; the fused HSIC; and HSIC of other views. No
# permutation changes M, so it is made once. `plain` is the source without a
# filter. New statistics are added here.
joint_dependence <- function(variables, settled, plain, options, scheme) {
  factors <- options$filter$factors
  if (length(variables) == 2L) factors <- crossed_factors(variables, factors)
  drawn <- draw_scheme(scheme, plain)
  statistic_of <- \(name, source, ..., height = 1) {
    new_statistic(name, height * form_values(source, options, drawn, FALSE),
                  height * source$scale, ...)
  }
  filtered_at <- filtered_variables(variables, settled$samples, options$filter)
  statistics <- across_factors(factors, \(factor) {
    factor <- rep_len(factor, length(variables))
    c(
      if (0L %in% options$filter$order) {
        source <- if (all(factor == 1)) plain else
          new_source(vary_samples(variables, settled$samples, factor), options,
                     scheme)
        list(statistic_of(hsic_name(options), source, height = settled$height))
      },
      if (1L %in% options$filter$order) {
        first_order(filtered_at(factor), options, scheme, statistic_of)
      }
    )
  })
  views <- c(
    if (options$fused) list("fused HSIC" = fuse_source(
      spread_bandwidths(variables, "fuse", scheme), scheme
    )),
    lapply(options$views, new_source, options, list(B = scheme$B))
  )
  none <- replace(as.matrix(factors)[1L, ], TRUE, 1)
  views <- Map(\(source, name) {
    statistic_of(name, source, factor = none, height = settled$height,
                 weight = if (name == linear_view) weight_of_lines else 1)
  }, views, names(views))
  statistic <- aggregate_statistics(c(statistics, unname(views)),
                                    scheme$complete)
  check_varies(statistic$values, scheme)
  new_dependence(statistic, drawn_null(statistic, scheme))
}

# Returns the scheme with its permutations drawn, because all statistics must
# have the same ones.
draw_scheme <- function(scheme, source) {
  if (is.null(scheme$matrix)) {
    check_memory(source$n, scheme$B / 2 * source$moved,
                 "use fewer permutations", what = "the permutations")
    scheme$matrix <- draw_permutations(scheme$sizes, scheme$B * source$moved,
                                       scheme$blocks)
  }
  scheme
}

# The statistics of order 1, one for each ratio. `filtered` has what
# filter_matrices() returns for each variable.
first_order <- function(filtered, options, scheme, statistic_of) {
  ratios <- options$filter$ratio
  in_chunks(length(ratios), 1L, options$progress, \(start, count) {
    ratio <- ratios[start + 1L]
    source <- filtered_source(lapply(filtered, \(one) one$at(ratio)), scheme)
    statistic_of(with_ratio("order 1", ratio), source, order = 1L,
                 ratio = ratio, left = max(vapply(filtered, `[[`, 1, "left")))
  })
}

# In the joint test this is the weight of the linear HSIC; the other statistics,
# which see any dependence, have the weight 1.
weight_of_lines <- 1.5
linear_view <- "linear HSIC"

# The samples of the variables with multiples of their bandwidths. With a factor
# of 1 the sample stays as the estimator left it.
vary_samples <- function(variables, samples, factor) {
  Map(\(variable, sample, factor) {
    if (factor == 1) sample else vary_bandwidth(variable, factor)$sample
  }, variables, samples, factor)
}

# Returns a function of the factors of all variables. It gives what
# filter_matrices() returns for each variable, and computes that only once
# although several pairs share a factor.
filtered_variables <- function(variables, samples, filter) {
  each <- Map(\(variable, sample) remembered(\(factor) {
    sample <- vary_samples(list(variable), list(sample), factor)[[1L]]
    found <- filter_matrices(filterable_sample(sample), filter)
    if (length(filter$factors) > 1L) found$at <- remembered(found$at)
    found
  }), variables, samples)
  \(factor) Map(\(filtered_of, factor) filtered_of(factor), each, factor)
}

# The source of the filtered matrices M. For more than two variables, each M is
# replaced by 1 + M / mean(diag M). The rows of M sum to 0, so that products of
# M alone would not see a dependence of two variables that leaves out the third.
filtered_source <- function(m, scheme) {
  if (length(m) == 2L) {
    return(new_pair(lapply(m, \(m) new_part(m, max(m))), scheme))
  }
  tensor_source(lapply(unname(m), \(m) {
    mean <- mean(diag(m))
    1 + m / if (mean > 0) mean else 1
  }))
}

# A matrix of the factors, each of x with each of y.
crossed_factors <- function(variables, factors) {
  each <- lapply(variables, \(v) if (varies_bandwidth(v)) factors else 1)
  as.matrix(expand.grid(factor_x = each[[1L]], factor_y = each[[2L]]))
}

# Returns a function of a number that computes each of its values only once.
remembered <- function(make) {
  force(make)
  values <- list()
  \(at) {
    key <- sprintf("%a", at)
    if (is.null(values[[key]])) values[[key]] <<- make(at)
    values[[key]]
  }
}

# Has the variable a bandwidth that factors can multiply?
varies_bandwidth <- function(variable) {
  !is_factor_variable(variable) && knows_points(variable$sample) &&
    !is.null(variable$sample$kernel$bandwidth)
}

vary_bandwidth <- function(variable, factor) {
  if (varies_bandwidth(variable)) {
    variable$sample <- times_bandwidth(variable$sample, factor)
  }
  variable
}

# --- Clusters ----------------------------------------------------------------

# The units of a test of independence. `moved` is the number of a variable that
# is constant in each cluster, so that its values can move between clusters of
# any size. If it is NULL, clusters change places point by point, and only with
# clusters of the same size.
exchange_units <- function(variables, options) {
  n <- variables[[1L]]$sample$n
  units <- read_units(options$blocks, options$clusters, seq_len(n), rep(1L, n))
  codes <- units$clusters
  if (is.null(codes)) {
    return(units)
  }
  points <- tabulate(codes)
  units$sizes <- rep(1L, length(points))
  units$blocks <- cluster_blocks(units)
  # A filter would depend on the sizes of the clusters that move, so that with
  # one only clusters of the same size change places.
  constant <- if (length(variables) == 2L && is_average(options$estimator) &&
                    options$statistic == "biased" && is.null(options$filter)) {
    vapply(variables, \(v) constant_within(v$sample, codes), NA)
  }
  if (any(constant)) {
    units$moved <- max(which(constant))
  } else if (length(unique(points)) > 1L) {
    units$words[1L] <- "of clusters of the same size"
    units$blocks <- number_codes(paste(points, units$blocks))
  }
  check_partners(units$blocks, length(points))
  units
}

# Stops if no cluster has another that it can change places with, and warns of
# the number of clusters that have none.
check_partners <- function(blocks, count) {
  sizes <- lengths(in_blocks(count, blocks))
  if (max(sizes) == 1L) {
    stop_input(
      "'clusters' must hold two of the same size (and block), which can ",
      "change places; sizes may differ where one of two variables is constant ",
      "within clusters, with estimator = \"kme\", statistic = \"biased\" and ",
      "no filter"
    )
  }
  if (min(sizes) == 1L) {
    ways <- count_labelings(seq_len(count), blocks)
    warn_kernmean(
      sum(sizes == 1L), " of ", count, " clusters have no partner of their ",
      "size (and block) and keep their values; the others can change places ",
      "in ", format_number(ways), " ways, so that the p-value is at least ",
      format_number(1 / ways, 2L), kind = "alone"
    )
  }
}

# Are all points of each cluster the same to the kernel, but for rounding?
constant_within <- function(sample, codes) {
  values <- if (knows_points(sample)) sample$x else sample_matrix(sample)
  apart <- abs(values - take_rows(values, which(!duplicated(codes))[codes]))
  max(apart) <= 1e-8 * diff(range(values))
}

# Fits the kernel of the variable that moves to one point of each cluster. If it
# were fitted to all points, it would change with the permutation, because a
# value occurs as often as its cluster has points. refit(variable, x) fits the
# kernel to other points.
fit_moved <- function(variables, units, refit) {
  moved <- units$moved
  variable <- variables[[moved %||% 1L]]
  if (!is.null(moved) && !is.null(variable$open)) {
    each <- take_rows(sample_raw(variable$sample), !duplicated(units$clusters))
    variables[[moved]]$sample <- sample_take(refit(variable, each)$sample,
                                             units$clusters)
  }
  variables
}

# --- Other views of the values -----------------------------------------------

# Returns the samples of two variables for further statistics of HSIC, by the
# names of the statistics. These see dependence that the plain statistic hardly
# sees. For a variable that is constant within clusters, one takes the cluster
# means of the other variable. In blocks, one takes the values less their block
# means. In both cases one takes linear kernels.
hsic_views <- function(variables, options, units, refit) {
  if (length(variables) > 2L || !takes_views(options)) {
    return(NULL)
  }
  # A linear kernel, such as that of a factor, has the same statistic in every
  # view.
  open <- !vapply(variables, \(v) {
    kernel_has(v$sample$kernel, "linear form")
  }, NA)
  samples <- lapply(variables, `[[`, "sample")
  blocks <- units$given
  views <- list()
  if (!is.null(units$moved)) {
    blocks <- units$blocks
    samples <- cluster_means(variables, units, refit)
    views$`HSIC of cluster means` <- samples
  }
  add <- \(make) replace(samples, which(open), lapply(samples[open], make))
  if (!is.null(blocks) && any(open)) {
    views$`HSIC of values less block means` <- add(\(sample) {
      centered_view(sample, blocks)
    })
  }
  if (!is.null(c(blocks, units$moved)) && any(open) &&
        all(vapply(samples, knows_points, NA))) {
    views[[linear_view]] <- add(linear_sample)
  }
  lapply(views, lapply, given_blocks, blocks)
}

# Returns samples with one point for each cluster: the value of the variable
# that is constant in it; for numeric columns their means, with a kernel fitted
# to the means; or else the mean of the features.
cluster_means <- function(variables, units, refit) {
  codes <- units$clusters
  sizes <- tabulate(codes)
  Map(\(variable, l) {
    sample <- variable$sample
    if (l == units$moved) {
      return(sample_take(sample, !duplicated(codes)))
    }
    if (is.matrix(sample_raw(sample)) && !is.null(variable$open)) {
      return(refit(variable, rowsum(sample_raw(sample), codes) / sizes)$sample)
    }
    sums <- rowsum(t(rowsum(sample_matrix(sample), codes)), codes)
    gram_sample(new_gram(unname(block_means(sums, sizes)), sample$kernel))
  }, variables, seq_along(variables))
}

# A table of the shares of a stack, or NULL.
stack_shares_table <- function(estimator) {
  if (inherits(estimator, "est_stack")) {
    data.frame(candidate = names(estimator$candidates),
               share = estimator$shares)
  }
}

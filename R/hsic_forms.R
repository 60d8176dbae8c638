# The statistics behind hsic_test(): centered Gram matrices or their factors,
# the forms sum_ij k_ij l_p(i)p(j) of many permutations p at once, and what the
# estimators make of them.

# list(observed, law: list(p, draws, gamma), height: the factor of statistic and
# draws; and where there are any: share: HSIC_xy/sqrt(HSIC_xx HSIC_yy), noise
# and smoothing, by variable, the estimator as settled, its candidates, alpha,
# ranks).
hsic_statistics <- function(variables, options, scheme) {
  settled <- settle_variables(variables, options)
  samples <- settled$samples
  options$estimator <- settled$estimator
  several <- length(samples) > 2L
  source <- if (several) {
    tensor_source(samples)
  } else if (options$combined) {
    fuse_source(lapply(variables, each_bandwidth), scheme)
  } else {
    pair_source(samples[[1L]], samples[[2L]], options, scheme)
  }
  found <- if (options$null == "gamma") {
    hsic_gamma(source)
  } else if (is.null(source$shares) && options$operator) {
    operator_draws(source, options, scheme)
  } else {
    form_draws(source, options, scheme)
  }
  c(found, settled[c("height", "noise")],
    list(smoothing = settled$smoothing,
         share = if (!several) source$share(), ranks = source$ranks))
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
    where <- paste0("'", variable$name, "'",
                    if (is_factor_variable(variable)) ", a factor,")
    est_settle_variable(options$estimator, variable$sample, where)
  })
  noise <- lapply(settled, \(one) one$chosen$noise)
  smoothing <- unlist(lapply(settled, \(one) one$chosen$h))
  list(
    samples = Map(settled_sample, samples, settled),
    estimator = settled[[1L]]$estimator,
    height = prod(vapply(settled, `[[`, numeric(1), "height")),
    noise = if (!is.null(noise[[1L]])) noise,
    smoothing = if (!is.null(smoothing)) {
      stats::setNames(smoothing, paste("h of", names(smoothing)))
    }
  )
}

# --- Gram matrices -----------------------------------------------------------

# list(x, y, n, units, forms, share, shares, scale, moved, ranks): the two
# centered matrices or factors, and the function of permutations of so many
# units that gives their forms; share(): how large HSIC is among its bounds;
# `shares` is that of est_share().
pair_source <- function(x, y, options, scheme) {
  x <- walkable_sample(center_linear(x))
  y <- walkable_sample(center_linear(y))
  n <- x$n
  shares <- if (options$operator) est_share(options$estimator)
  stored <- options$null == "gamma" || options$operator && is.null(shares) ||
    !is.null(scheme$moved)
  factors <- if (!stored) pair_factors(x, y, scheme$B)
  if (!is.null(factors)) {
    parts <- Map(factor_part, factors, list(x = x, y = y))
  } else {
    check_memory(n, n, "use fewer rows", copies = 2)
    parts <- list(x = centered_part(x), y = centered_part(y))
  }
  norms <- parts$x$norm * parts$y$norm
  parts <- cluster_parts(parts, scheme)
  forms <- part_forms(parts$x, parts$y, !is.null(factors), norms)
  same <- matrix(seq_len(ncol(parts$x$m)))
  list(
    x = parts$x, y = parts$y, n = n, forms = forms, shares = shares, moved = 1L,
    scale = if (!options$operator) norms / n^2,
    share = \() if (norms == 0) 0 else share_of(forms(same), norms),
    ranks = if (!is.null(factors)) c(x = nrow(parts$x$m), y = nrow(parts$y$m))
  )
}

# The forms of a pair of centered matrices, or of factors of them, as a function
# of permutations; norms: the product of their norms.
part_forms <- function(x, y, factors, norms) {
  if (norms == 0) {
    \(permutations) numeric(ncol(permutations))
  } else if (factors) {
    \(permutations) .Call(C_r_permuted_products, x$m, y$m, permutations)
  } else {
    \(permutations) .Call(C_r_permuted_forms, x$m, y$m, permutations)
  }
}

share_of <- function(form, norms) min(1, max(0, form / norms))

# Where values of a variable that is constant within clusters move between
# clusters of any size, sum_ij k_ij l_p(i)p(j) is a sum over clusters: of the
# other matrix, added up over clusters, with the values of the one that moves.
# Row sums of k are 0, and so it does not matter where l is centered.
cluster_parts <- function(parts, scheme) {
  if (is.null(scheme$moved)) {
    return(parts)
  }
  codes <- scheme$clusters
  first <- which(!duplicated(codes))
  moved <- scheme$moved
  parts[[moved]]$m <- parts[[moved]]$m[first, first, drop = FALSE]
  whole <- parts[[3L - moved]]$m
  parts[[3L - moved]]$m <- unname(rowsum(t(rowsum(whole, codes)), codes))
  parts
}

# The permutations of points that permutations of clusters stand for: points
# keep their order within the cluster.
point_permutations <- function(scheme) {
  codes <- scheme$clusters
  if (is.null(codes) || !is.null(scheme$moved)) {
    return(identity)
  }
  sorted <- order(codes)
  first <- match(seq_len(max(codes)), codes[sorted])
  place <- seq_along(codes) - first[codes[sorted]]
  place[sorted] <- place
  \(units) {
    moved <- units[codes, , drop = FALSE]
    moved[] <- sorted[first[moved] + place]
    moved
  }
}

# Both factors where the product of the ranks is below 4n, or NULL. The first
# columns are cheap; of one matrix more are worth a share of what the forms of
# whole matrices cost.
pair_factors <- function(x, y, B) {
  n <- x$n
  first <- min(n, ceiling(2 * sqrt(n)))
  a <- low_rank(x, first)
  b <- low_rank(y, first)
  if (is.null(a) && is.null(b)) {
    return(NULL)
  }
  if (is.null(a) || is.null(b)) {
    rank <- max(1L, nrow(if (is.null(a)) b else a))
    most <- most_columns(n, rank, B)
    if (most <= first) {
      return(NULL)
    }
    if (is.null(a)) a <- low_rank(x, most) else b <- low_rank(y, most)
  }
  if (is.null(a) || is.null(b) || nrow(a) / 4 * nrow(b) >= n) {
    return(NULL)
  }
  list(x = a, y = b)
}

# Columns of a second factor that are worth their cost.
most_columns <- \(n, rank, B) {
  floor(min(n, (4 * n - 1) / rank, sqrt(n) * sqrt(B) / 4))
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
  found <- center_source(sample_source(sample))
  diagonal <- diag(found$k)
  size <- max(abs(found$at)) + mean(abs(diagonal))
  new_part(found$k, diagonal, norm(found$k, "F"), size)
}

factor_part <- function(factor, sample) {
  norm <- if (nrow(factor)) norm(tcross(factor), "F") else 0
  new_part(factor, colSums(factor^2), norm, mean(sample_diagonal(sample)))
}

# dHSIC: the matrices as they are.
tensor_source <- function(samples) {
  n <- samples[[1L]]$n
  check_memory(n, n, "use fewer rows", copies = length(samples))
  k <- lapply(unname(samples), \(sample) {
    sample_matrix(walkable_sample(sample))
  })
  rows <- lapply(k, rowMeans)
  list(
    k = k, rows = rows, n = n, moved = length(k) - 1L,
    means = prod(vapply(rows, mean, numeric(1))),
    # Rounding is far smaller than for ties of centered statistics allowed.
    scale = 1e-3 * prod(vapply(k, \(k) mean(abs(diag(k))), numeric(1))),
    constant = any(vapply(k, \(k) all(k == k[1L]), logical(1)))
  )
}

# --- Many bandwidths ---------------------------------------------------------

grid_bandwidths <- 5L

# Bandwidths from half the 5% to twice the 95% quantile of distances, in a
# geometric sequence.
spread_distances <- function(x) {
  ends <- range(fuse_bandwidths(x))
  exp(seq(log(ends[1L]), log(ends[2L]), length.out = grid_bandwidths))
}

takes_bandwidths <- function(variable) {
  sample <- variable$sample
  !is_factor_variable(variable) && !stores_gram(sample) && is_rbf(sample$kernel)
}

# The variables with many bandwidths where the kernel is not their own.
spread_bandwidths <- function(variables, bandwidths) {
  must_be(length(variables) == 2L, "bandwidths", "NULL",
          "for more than two variables")
  mixed <- vapply(variables, is_mixed_variable, NA)
  must_be(!any(mixed), "bandwidths", "NULL",
          "where a variable has factors among its columns")
  plain <- vapply(variables, takes_bandwidths, NA)
  if (!any(plain)) {
    stop_input("'bandwidths' must be NULL where every variable has a kernel ",
               "of its own, as factors and grams have")
  }
  each <- if (is.list(bandwidths)) bandwidths else list(bandwidths, bandwidths)
  variables[plain] <- Map(\(variable, own) {
    variable$sample$kernel$bandwidth <- if (is.character(own)) {
      spread_distances(variable$sample$x)
    } else {
      as.double(own)
    }
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

# list(n, fused, share, scale, moved) of two lists of samples: the statistics of
# all pairs, each with mean 0 and variance 1 over all permutations, as one.
fuse_source <- function(samples, scheme) {
  n <- samples[[1L]][[1L]]$n
  check_memory(n, n, "use fewer rows, or bandwidths",
               copies = 2 * sum(lengths(samples)))
  parts <- lapply(samples, \(each) {
    lapply(each, \(one) centered_part(walkable_sample(center_linear(one))))
  })
  pairs <- expand.grid(x = seq_along(parts[[1L]]), y = seq_along(parts[[2L]]))
  pairs <- lapply(seq_len(nrow(pairs)), \(l) {
    x <- parts[[1L]][[pairs$x[l]]]
    y <- parts[[2L]][[pairs$y[l]]]
    norms <- x$norm * y$norm
    moved <- cluster_parts(list(x, y), scheme)
    c(form_moments(x, y), norms = norms,
      list(forms = part_forms(moved[[1L]], moved[[2L]], FALSE, norms)))
  })
  # A pair whose forms are constant, as of a constant variable, tells nothing.
  varies <- vapply(pairs, \(pair) pair$variance > 0, NA)
  list(
    n = n, moved = 1L, scale = 1,
    fused = \(permutations) {
      z <- vapply(pairs, \(pair) {
        if (!(pair$variance > 0)) {
          return(numeric(ncol(permutations)))
        }
        (pair$forms(permutations) - pair$mean) / sqrt(pair$variance)
      }, numeric(ncol(permutations)))
      log_mean_exp(matrix(z, ncol = length(pairs)))
    },
    # Of the average kernels.
    share = \() {
      mean <- lapply(parts, \(each) Reduce(`+`, lapply(each, `[[`, "m")))
      norms <- norm(mean[[1L]], "F") * norm(mean[[2L]], "F")
      if (norms == 0) 0 else share_of(sum(mean[[1L]] * mean[[2L]]), norms)
    }
  )
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

# A function of an n x count matrix of permutations, count a multiple of
# source$moved.
statistic_function <- function(source, options) {
  n <- source$n
  if (!is.null(source$fused)) {
    return(source$fused)
  }
  if (source$moved > 1L) {
    return(\(permutations) {
      found <- .Call(C_r_permuted_tensor, source$k, source$rows, permutations)
      found$forms / n^2 + source$means - 2 * found$sums / n
    })
  }
  if (!is.null(source$shares)) {
    return(\(permutations) {
      rho <- source$forms(permutations) / n^2
      (1 - operator_shares(source, permutations, rho))^2 * rho
    })
  }
  if (options$statistic == "unbiased") {
    # U-centering sees the entries off the diagonal alone, up to sums of a row's
    # and a column's number: the centered matrices will do, and their rows sum
    # to minus the diagonal without it.
    traces <- source$x$trace * source$y$trace / ((n - 1) * (n - 2))
    return(\(permutations) {
      own <- permuted_traces(source, permutations)
      (source$forms(permutations) - own * n / (n - 2) + traces) / (n * (n - 3))
    })
  }
  \(permutations) source$forms(permutations) / n^2
}

# tr(Kc o Lc) of each permutation.
permuted_traces <- function(source, permutations) {
  .Call(C_r_permuted_sums, source$x$diagonal, source$y$diagonal, permutations)
}

# The share of shrinkage of each permutation, from rho = mean(M) and varrho =
# tr(M)/n.
operator_shares <- function(source, permutations, rho) {
  n <- source$n
  source$shares(rho, permuted_traces(source, permutations) / n, n)
}

# Of a chunk of permutations: 4 MB.
chunk_integers <- 2^20

# list(observed, law, estimator, alpha)
form_draws <- function(source, options, scheme) {
  units <- length(scheme$sizes)
  points <- point_permutations(scheme)
  of_points <- statistic_function(source, options)
  statistic <- \(permutations) of_points(points(permutations))
  same <- matrix(seq_len(units), units, source$moved)
  observed <- statistic(same)
  check_values(observed)
  size <- max(64, floor(chunk_integers / source$n / source$moved))
  values <- c(observed, permuted_draws(statistic, units, scheme, size,
                                       options$progress, source$moved))
  check_values(values)
  check_size(source, values)
  if (is.null(scheme$matrix) || scheme$all) check_varies(values)
  list(observed = observed,
       law = permutation_null(values, source$scale, scheme),
       estimator = options$estimator, alpha = if (!is.null(source$shares)) {
         same <- points(same)
         operator_shares(source, same, source$forms(same) / source$n^2)
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
  n <- source$n
  own <- \(part, where) {
    est_settle(options$estimator, gram_sample(new_gram(part$m^2)),
               where)$estimator
  }
  estimator <- est_between(own(source$x, "'x'"), own(source$y, "'y'"))
  constant <- source$x$norm == 0 || source$y$norm == 0
  statistic <- \(order) {
    if (constant) {
      return(0)
    }
    m <- source$x$m * source$y$m[order, order]
    beta <- est_weights(estimator, gram_sample(new_gram(m)))
    sum(beta * (m %*% beta))
  }
  points <- point_permutations(scheme)
  values <- refitted_draws(
    \(order) statistic(points(matrix(order))), length(scheme$sizes), scheme,
    estimator, n^3 / 3, options$progress
  )
  check_values(values[1L])
  list(observed = values[1L],
       law = permutation_null(values, source$scale, scheme),
       estimator = estimator, candidates = stack_shares_table(estimator))
}

# dHSIC is a difference of sums that are not centered: it must be seen above
# their rounding.
check_size <- function(source, values) {
  least <- 10 * tie_slack * source$scale
  several <- source$moved > 1L && !source$constant
  if (several && max(abs(values)) < least) {
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
  observed <- source$forms(matrix(seq_len(n))) / n^2
  check_values(observed)
  a <- source$x
  b <- source$y
  unit <- a$norm * b$norm
  # In units of the norms, whose squares might overflow.
  mean <- (a$trace / a$norm) * (b$trace / b$norm) / (n * (n - 1)^2)
  squares <- sum(((a$m / a$norm) * (b$m / b$norm))^2) -
    sum(((a$diagonal / a$norm) * (b$diagonal / b$norm))^2)
  variance <- 2 * (n - 4) * (n - 5) / prod(n - 0:3) * squares / (n * (n - 1))
  law <- gamma_null(observed, mean, if (unit == 0) 0 else variance, unit)
  list(observed = observed, law = law)
}

# --- Clusters ----------------------------------------------------------------

# What changes places, see check_permutations(), and `moved`: the variable whose
# values move between clusters of any size, as they are constant in each, or
# NULL where values stay in clusters of their size, point by point.
exchange_units <- function(variables, options, blocks, clusters) {
  n <- variables[[1L]]$sample$n
  units <- read_units(blocks, clusters, n)
  if (is.null(units$clusters)) {
    return(c(units, list(sizes = rep(1L, n))))
  }
  codes <- units$clusters
  sizes <- tabulate(codes)
  units$blocks <- cluster_blocks(units)
  units$sizes <- rep(1L, length(sizes))
  uneven <- length(unique(sizes)) > 1L
  # Filters must not change with the sizes of what moves.
  sums <- length(variables) == 2L && !options$operator &&
    options$statistic == "biased" && is.null(options$filter)
  constant <- vapply(variables, \(v) constant_within(v$sample, codes), NA)
  if (uneven && sums && any(constant)) {
    units$moved <- max(which(constant))
  } else if (uneven) {
    units$of <- paste0(" of the same size",
                       if (!is.null(units$blocks)) " within blocks")
    units$blocks <- check_codes(
      paste(sizes, if (!is.null(units$blocks)) units$blocks), length(sizes)
    )
  }
  still <- if (is.null(units$blocks)) length(sizes) == 1L else
    !anyDuplicated(units$blocks)
  if (still) {
    stop_input(
      "'clusters' must hold two of the same size",
      if (!is.null(blocks)) " in some block", ", which can change places",
      if (any(constant) && !sums && length(variables) == 2L) {
        paste0("; with estimator = \"kme\", statistic = \"biased\" and no ",
               "filter sizes may differ")
      } else if (length(variables) == 2L) {
        paste0("; sizes may differ where a variable is constant within ",
               "clusters, as the mean of each is")
      }
    )
  }
  check_clusters(variables, codes, units)
  units$labelings <- count_values(variables, constant, units, codes)
  alone <- if (is.null(units$of)) 0L else sum(tabulate(units$blocks) == 1L)
  if (alone > 0L) {
    warn_kernmean(alone, " of ", length(sizes), " clusters have a size that ",
                  "no other", if (!is.null(blocks)) " of their block",
                  " has, and stay where they are")
  }
  units
}

# The ways in which the values of a variable that is constant within clusters
# can be given to them; NULL where there is none.
count_values <- function(variables, constant, units, codes) {
  counts <- vapply(which(constant), \(l) {
    points <- variables[[l]]$sample$x
    if (is.null(points)) {
      return(Inf)
    }
    each <- points[!duplicated(codes), , drop = FALSE]
    values <- do.call(paste, as.data.frame(each))
    within <- in_blocks(length(values), units$blocks)
    exp(sum(vapply(within, \(i) {
      lfactorial(length(i)) - sum(lfactorial(table(values[i])))
    }, numeric(1))))
  }, numeric(1))
  if (length(counts)) min(counts)
}

# Clusters that all hold the same values of a variable, as with a design that is
# repeated in each, exchange nothing.
check_clusters <- function(variables, codes, units) {
  rows <- split(seq_along(codes), codes)
  for (variable in variables) {
    points <- variable$sample$x
    if (is.null(points) || !is.null(units$moved)) next
    same <- vapply(in_blocks(length(rows), units$blocks), \(which) {
      own <- lapply(rows[which], \(i) unname(points[i, , drop = FALSE]))
      all(vapply(own, identical, NA, own[[1L]]))
    }, NA)
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

# --- Cost --------------------------------------------------------------------

# Seconds that one permutation takes, about, on one processor, by the sizes
# alone: measured once (Zen 5), from whole matrices. units: as of
# exchange_units().
hsic_cost <- function(variables, options, units) {
  n <- variables[[1L]]$sample$n
  if (options$operator && is.null(est_share(options$estimator))) {
    return(refit_cost(n))
  }
  count <- if (is.null(units$moved)) n else length(units$sizes)
  forms <- if (options$combined) {
    prod(lengths(lapply(variables, each_bandwidth)))
  } else if (length(variables) > 2L) {
    2.5 * (length(variables) - 1)
  } else {
    1
  }
  5e-8 * count * (length(variables) - 1) + 1e-9 * forms * count^2
}

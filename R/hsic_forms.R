# The statistics behind hsic_test(): centered Gram matrices or their factors,
# the forms sum_ij k_ij l_p(i)p(j) of many permutations p at once, and what the
# estimators make of them.

# list(observed, law: list(p, draws, gamma), height: the factor of statistic and
# draws; and where there are any: noise, by variable, the estimator as settled,
# alpha, ranks).
hsic_statistics <- function(variables, options, scheme) {
  settled <- settle_variables(variables, options)
  samples <- settled$samples
  options$estimator <- settled$estimator
  source <- if (length(samples) > 2L) {
    tensor_source(samples)
  } else {
    pair_source(samples[[1L]], samples[[2L]], options, scheme$B)
  }
  found <- if (options$null == "gamma") {
    hsic_gamma(source)
  } else if (is.null(source$shares) && options$operator) {
    operator_draws(source, options, scheme)
  } else {
    form_draws(source, options, scheme)
  }
  c(found, settled[c("height", "noise")], list(ranks = source$ranks))
}

# Averages settle on each variable by itself: list(samples, with a marginalized
# kernel in place of theirs, estimator, height, noise). What shrinks an operator
# chooses later, see operator_draws().
settle_variables <- function(variables, options) {
  samples <- lapply(variables, `[[`, "sample")
  if (options$operator) {
    return(list(samples = samples, estimator = options$estimator, height = 1))
  }
  settled <- lapply(variables, \(variable) {
    est_settle(options$estimator, variable$sample,
               paste0("'", variable$name, "'",
                      if (is_factor_variable(variable)) ", a factor,"))
  })
  noise <- lapply(settled, \(one) one$chosen$noise)
  list(
    samples = Map(settled_sample, samples, settled),
    estimator = settled[[1L]]$estimator,
    height = prod(vapply(settled, `[[`, numeric(1), "height")),
    noise = if (!is.null(noise[[1L]])) noise
  )
}

# --- Gram matrices -----------------------------------------------------------

# list(x, y, n, forms, shares, scale, moved, ranks): the two centered matrices
# or factors, and the function of permutations that gives their forms; `shares`
# is that of est_share().
pair_source <- function(x, y, options, B) {
  x <- walkable_sample(center_linear(x))
  y <- walkable_sample(center_linear(y))
  n <- x$n
  shares <- if (options$operator) est_share(options$estimator)
  stored <- options$null == "gamma" || options$operator && is.null(shares)
  factors <- if (!stored) pair_factors(x, y, B)
  if (!is.null(factors)) {
    parts <- Map(factor_part, factors, list(x = x, y = y))
  } else {
    check_memory(n, n, "use fewer rows", copies = 2)
    parts <- list(x = centered_part(x), y = centered_part(y))
  }
  a <- parts$x
  b <- parts$y
  forms <- if (a$norm == 0 || b$norm == 0) {
    \(permutations) numeric(ncol(permutations))
  } else if (is.null(factors)) {
    \(permutations) .Call(C_r_permuted_forms, a$m, b$m, permutations)
  } else {
    \(permutations) .Call(C_r_permuted_products, a$m, b$m, permutations)
  }
  list(
    x = a, y = b, n = n, forms = forms, shares = shares, moved = 1L,
    scale = if (!options$operator) a$norm * b$norm / n^2,
    ranks = if (!is.null(factors)) c(x = nrow(a$m), y = nrow(b$m))
  )
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
    most <- floor(min(n, (4 * n - 1) / rank, sqrt(n * B) / 4))
    if (most <= first) {
      return(NULL)
    }
    if (is.null(a)) a <- low_rank(x, most) else b <- low_rank(y, most)
  }
  if (is.null(a) || is.null(b) || nrow(a) * nrow(b) >= 4 * n) {
    return(NULL)
  }
  list(x = a, y = b)
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
check_values <- function(values) {
  if (!all(is.finite(values))) {
    stop_kernmean("numeric", "kernel values overflow; rescale the variables")
  }
}

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
  norm <- if (nrow(factor)) norm(tcrossprod(factor), "F") else 0
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

# --- Statistics of permutations --------------------------------------------

# A function of an n x count matrix of permutations, count a multiple of
# source$moved.
statistic_function <- function(source, options) {
  n <- source$n
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
  n <- source$n
  statistic <- statistic_function(source, options)
  same <- matrix(seq_len(n), n, source$moved)
  observed <- statistic(same)
  check_values(observed)
  size <- max(64, floor(chunk_integers / (n * source$moved)))
  values <- c(observed, permuted_draws(statistic, n, scheme, size,
                                       options$progress, source$moved))
  check_size(source, values)
  list(observed = observed,
       law = permutation_null(values, source$scale, scheme),
       estimator = options$estimator, alpha = if (!is.null(source$shares)) {
         operator_shares(source, same, source$forms(same) / n^2)
       })
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
  values <- refitted_draws(statistic, n, scheme, estimator, n^3 / 3,
                           options$progress)
  check_values(values[1L])
  list(observed = values[1L],
       law = permutation_null(values, source$scale, scheme),
       estimator = estimator)
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

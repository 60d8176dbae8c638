# The statistics behind hsic_test(): centred Gram matrices or their factors,
# the forms sum_ij k_ij l_p(i)p(j) of many permutations p at once, and what the
# estimators make of them.

run_hsic <- function(variables, options, scheme, data_name) {
  if (options$estimator %in% c("mkme", "mmkme")) {
    variables <- lapply(variables, marginalize, estimator = options$estimator)
  }
  n <- variables[[1L]]$n
  options$height <- prod(vapply(variables, \(v) v$height, numeric(1)))
  source <- if (length(variables) > 2L) {
    tensor_source(variables)
  } else {
    pair_source(variables[[1L]], variables[[2L]], options, scheme$B)
  }
  found <- if (options$null == "gamma") {
    gamma_null(source, n)
  } else {
    permutation_null(source, options, scheme, n)
  }
  new_hsic_test(variables, options, scheme, source, found, data_name)
}

# The kernel of a variable replaced by its marginalized kernel, height times an
# RBF kernel; the variances come from the variable itself.
marginalize <- function(variable, estimator) {
  family <- variable$kernel$family
  if (variable$what != "points" || family != "rbf") {
    stop_input(
      "'", variable$name, "' must be points with kernel_rbf() for estimator \"",
      estimator, "\", not ",
      if (variable$what == "points") {
        paste("points with", format_kernel(variable$kernel))
      } else {
        paste("a", variable$what)
      }
    )
  }
  x <- variable$points
  noise <- marginal_noise(x, variable$kernel, estimator)$noise
  wide <- marginal_kernel(variable$kernel, 2 * noise, ncol(x))
  variable$noise <- noise
  variable$used <- wide$kernel
  variable$height <- wide$height
  variable
}

# --- Gram matrices -----------------------------------------------------------

# What the core takes: the points of a kernel, or a matrix.
variable_source <- function(variable) {
  if (!is.null(variable$values)) {
    return(native_matrix(variable$values))
  }
  native_source(variable$used, variable$points)
}

# list(x, y, forms, scale, moved, ranks): the two centred matrices or factors,
# and the function of permutations that gives their forms.
pair_source <- function(x, y, options, B) {
  x$points <- centre_linear(x$points, x$kernel)
  y$points <- centre_linear(y$points, y$kernel)
  stored <- options$null == "gamma" || options$estimator == "fkmse"
  factors <- if (!stored) pair_factors(x, y, B)
  if (!is.null(factors)) {
    parts <- Map(factor_part, factors, list(x = x, y = y))
  } else {
    check_memory(x$n, x$n, "use fewer rows", copies = 2)
    parts <- list(x = centred_part(x), y = centred_part(y))
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
  shrunk <- options$estimator %in% c("skmse", "fkmse")
  list(
    x = a, y = b, forms = forms, moved = 1L,
    scale = if (!shrunk) a$norm * b$norm / x$n^2,
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

# The centred factor, rank x n, or NULL.
low_rank <- function(variable, cap) {
  if (identical(variable$kernel$family, "energy")) {
    return(NULL)
  }
  source <- variable_source(variable)
  check_values(kernel_diagonal(variable))
  check_memory(variable$n, cap, "use fewer rows")
  .Call(C_r_lowrank, source, as.integer(cap))
}

# Kernels that are not bounded, and their products, can overflow.
check_values <- function(values) {
  if (!all(is.finite(values))) {
    stop_kernmean("numeric", "kernel values overflow; rescale the variables")
  }
}

kernel_diagonal <- function(variable) {
  if (is.null(variable$values)) {
    return(fold_diagonal(variable$kernel, variable$points))
  }
  variable$values[seq(1, variable$n^2, by = variable$n + 1)]
}

# Of a constant, centring leaves rounding, which is not to be tested: entries of
# this size, relative to the kernel values.
rounding <- 16 * .Machine$double.eps

# list(m, diagonal, trace, norm) of a centred matrix; all 0 if it is rounding.
new_part <- function(m, diagonal, norm, size) {
  if (norm <= length(diagonal) * rounding * size) {
    m[] <- 0
    diagonal <- numeric(length(diagonal))
    norm <- 0
  }
  list(m = m, diagonal = diagonal, trace = sum(diagonal), norm = norm)
}

centred_part <- function(variable) {
  n <- variable$n
  source <- variable_source(variable)
  found <- .Call(C_r_centred, source, NULL, NULL)
  check_values(found$at)
  diagonal <- found$k[seq(1, n^2, by = n + 1)]
  size <- max(abs(found$at)) + mean(abs(diagonal))
  new_part(found$k, diagonal, norm(found$k, "F"), size)
}

factor_part <- function(factor, variable) {
  norm <- if (nrow(factor)) norm(tcrossprod(factor), "F") else 0
  new_part(factor, colSums(factor^2), norm, mean(kernel_diagonal(variable)))
}

# dHSIC: the matrices as they are.
tensor_source <- function(variables) {
  n <- variables[[1L]]$n
  check_memory(n, n, "use fewer rows", copies = length(variables))
  k <- lapply(unname(variables), \(variable) {
    if (!is.null(variable$values)) {
      return(variable$values)
    }
    fold_store(variable$used, variable$points)
  })
  rows <- lapply(k, rowMeans)
  list(
    k = k, rows = rows, moved = length(k) - 1L,
    means = prod(vapply(rows, mean, numeric(1))),
    # Rounding is far smaller than for ties of centred statistics allowed.
    scale = 1e-3 * prod(vapply(k, \(k) mean(abs(diag(k))), numeric(1))),
    constant = any(vapply(k, \(k) all(k == k[1L]), logical(1)))
  )
}

# --- Statistics of permutations --------------------------------------------

# A function of an n x count matrix of permutations, count a multiple of
# source$moved.
statistic_function <- function(source, options, n) {
  if (source$moved > 1L) {
    return(\(permutations) {
      found <- .Call(C_r_permuted_tensor, source$k, source$rows, permutations)
      found$forms / n^2 + source$means - 2 * found$sums / n
    })
  }
  if (options$estimator == "fkmse") {
    return(\(permutations) {
      apply(permutations, 2L, \(p) fcose_norm2(source, p, options$lambda))
    })
  }
  diagonals <- \(permutations) {
    .Call(C_r_permuted_sums, source$x$diagonal, source$y$diagonal, permutations)
  }
  if (options$estimator == "skmse") {
    return(\(permutations) {
      rho <- source$forms(permutations) / n^2
      (1 - scose_alpha(rho, diagonals(permutations) / n, n, options))^2 * rho
    })
  }
  if (options$statistic == "unbiased") {
    # U-centring sees the entries off the diagonal alone, up to sums of a row's
    # and a column's number: the centred matrices will do, and their rows sum to
    # minus the diagonal without it.
    traces <- source$x$trace * source$y$trace / ((n - 1) * (n - 2))
    return(\(permutations) {
      own <- diagonals(permutations)
      (source$forms(permutations) - own * n / (n - 2) + traces) / (n * (n - 3))
    })
  }
  \(permutations) source$forms(permutations) / n^2
}

# The shrinkage of S-COSE from rho = mean(M) and varrho = tr(M)/n.
scose_alpha <- function(rho, varrho, n, options) {
  if (!is.null(options$lambda)) {
    lambda <- options$lambda
    return(rep(if (is.finite(lambda)) lambda / (1 + lambda) else 1,
               length(rho)))
  }
  rho <- pmax(0, rho)
  excess <- pmax(0, varrho - rho)
  alpha <- if (options$select == "loocv") {
    n * excess / ((n - 1)^2 * rho + excess)
  } else {
    excess / (excess + (n - 1) * rho)
  }
  ifelse(excess > 0, pmin(1, alpha), 0)
}

# beta'M beta for one permutation.
fcose_norm2 <- function(source, permutation, lambda) {
  m <- source$x$m * source$y$m[permutation, permutation]
  beta <- fkmse_weights(new_gram(m), lambda, NULL, rowMeans(m))
  sum(beta * (m %*% beta))
}

# Between those that suit each variable paired with itself: no pairing is
# looked at.
fcose_lambda <- function(source, options) {
  own <- \(part) select_lambda(new_gram(part$m^2), options$select, NULL)$lambda
  sqrt(own(source$x) * own(source$y))
}

most_flops <- 1e11

# list(observed, p, draws, …)
permutation_null <- function(source, options, scheme, n) {
  chosen <- list()
  fcose <- options$estimator == "fkmse"
  if (fcose) {
    if (scheme$B * n^3 / 3 > most_flops) {
      warn_kernmean(
        "estimator \"fkmse\" factors a matrix for each permutation, ",
        format(scheme$B * n^3 / 3, digits = 2),
        " operations in all; \"skmse\" does without"
      )
    }
    if (is.null(options$lambda)) {
      options$lambda <- fcose_lambda(source, options)
    }
    chosen$lambda <- options$lambda
  }
  statistic <- statistic_function(source, options, n)
  same <- matrix(seq_len(n), n, source$moved)
  observed <- statistic(same)
  check_values(observed)
  if (options$estimator == "skmse") {
    varrho <- sum(source$x$diagonal * source$y$diagonal) / n
    chosen$alpha <- scose_alpha(source$forms(same) / n^2, varrho, n, options)
  }
  size <- if (fcose) 8 else max(64, floor(chunk_integers / (n * source$moved)))
  draws <- permutation_draws(statistic, source, scheme, n, size,
                             options$progress)
  check_size(source, c(observed, draws))
  c(list(
    observed = observed, draws = draws,
    p = permutation_p(observed, draws, source$scale, scheme$complete)
  ), chosen)
}

# Of a chunk of permutations: 4 MB.
chunk_integers <- 2^20

# dHSIC is a difference of sums that are not centred: it must be seen above
# their rounding.
check_size <- function(source, values) {
  least <- 10 * tie_slack * source$scale
  several <- source$moved > 1L && !source$constant
  if (several && max(abs(values)) < least) {
    stop_kernmean(
      "numeric", "the kernel values vary too little for their size; centre ",
      "the variables, or take smaller bandwidths"
    )
  }
}

# The statistic of each permutation, chunk by chunk.
permutation_draws <- function(statistic, source, scheme, n, size, progress) {
  draws <- numeric(scheme$B)
  bar <- progress_bar(progress)
  on.exit(bar$close())
  for (start in seq(1, scheme$B, by = size)) {
    these <- start:min(start + size - 1, scheme$B)
    permutations <- if (is.null(scheme$matrix)) {
      draw_permutations(n, length(these) * source$moved, scheme$blocks)
    } else {
      scheme$matrix[, these, drop = FALSE]
    }
    draws[these] <- statistic(permutations)
    bar$at(max(these) / scheme$B)
  }
  draws
}

# Gretton et al. (2007): mean (varrho_x - |mu_x|^2)(varrho_y - |mu_y|^2)/n with
# |mu|^2 without the pairs of a point with itself, so that varrho - |mu|^2 is
# the trace of the centred matrix over n - 1; variance by their section 4.
gamma_null <- function(source, n) {
  observed <- source$forms(matrix(seq_len(n))) / n^2
  check_values(observed)
  a <- source$x
  b <- source$y
  unit <- a$norm * b$norm
  if (unit == 0) {
    return(list(observed = observed, p = 1))
  }
  # In units of the norms, whose squares might overflow.
  mean <- (a$trace / a$norm) * (b$trace / b$norm) / (n * (n - 1)^2)
  squares <- sum(((a$m / a$norm) * (b$m / b$norm))^2) -
    sum(((a$diagonal / a$norm) * (b$diagonal / b$norm))^2)
  variance <- 2 * (n - 4) * (n - 5) / prod(n - 0:3) * squares / (n * (n - 1))
  if (!(variance > 0)) {
    return(list(observed = observed, p = 1))
  }
  law <- c(shape = mean^2 / variance, scale = unit * variance / mean)
  p <- stats::pgamma(observed, law[["shape"]], scale = law[["scale"]],
                     lower.tail = FALSE)
  list(observed = observed, p = p, gamma = law)
}

# --- The object --------------------------------------------------------------

new_hsic_test <- function(variables, options, scheme, source, found,
                          data_name) {
  several <- length(variables) > 2L
  height <- options$height
  each <- \(field) lapply(variables, \(variable) variable[[field]])
  kernels <- lapply(variables, \(variable) {
    if (variable$what != "factor") variable$kernel
  })
  fields <- list(
    statistic = stats::setNames(height * found$observed,
                                if (several) "dHSIC" else "HSIC"),
    parameter = if (is.null(found$gamma)) {
      c(n = variables[[1L]]$n, B = scheme$B)
    } else {
      found$gamma
    },
    p.value = found$p, estimate = bandwidth_estimates(kernels),
    alternative = "the variables are dependent",
    method = hsic_title(options, scheme, several), data.name = data_name,
    replicates = if (!is.null(found$draws)) height * found$draws,
    gamma = found$gamma, kernels = kernels,
    bandwidths = lapply(kernels, \(kernel) kernel$bandwidth),
    noise = if (options$estimator %in% c("mkme", "mmkme")) each("noise"),
    alpha = found$alpha, lambda = found$lambda, ranks = source$ranks
  )
  fields <- fields[!vapply(fields, is.null, logical(1))]
  do.call(new_test, c("hsic_test", fields))
}

# Those that are one number, named.
bandwidth_estimates <- function(kernels) {
  each <- lapply(kernels, \(kernel) kernel$bandwidth)
  single <- unlist(each[lengths(each) == 1L])
  if (length(single)) {
    stats::setNames(single, paste("bandwidth of", names(single)))
  }
}

hsic_title <- function(options, scheme, several) {
  names <- c(kme = "KME", mkme = "MKME", mmkme = "MMKME", skmse = "S-COSE",
             fkmse = "F-COSE")
  null <- if (options$null == "gamma") {
    "gamma null"
  } else if (scheme$all) {
    "all permutations"
  } else if (!is.null(scheme$blocks)) {
    "permutations within blocks"
  } else {
    "permutation null"
  }
  paste0(
    "Kernel ", if (several) "joint ", "independence test (",
    if (several) "dHSIC, " else "HSIC, ", names[[options$estimator]],
    if (!several) paste0(", ", options$statistic), "), ", null
  )
}

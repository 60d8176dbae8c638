# What the doors of instrumental-variable fits share: reading blocks, choosing
# penalties, and the fit.

# The blocks of a fit as variables; `given` is the argument kernel, NULL where
# none was given.
read_blocks <- function(data, given, scale, preset) {
  check_scale(scale)
  names <- names(data)
  kernels <- block_kernels(given, names)
  own <- vapply(data, has_own_kernel, NA)
  if (asks_scale(scale) && all(own)) {
    stop_input("'scale' must not be given when every block has a kernel of ",
               "its own, as factors and grams have")
  }
  if (inherits(given, "kernmean_kernel")) {
    if (all(own)) {
      stop_input("'kernel' must not be given when every block has a kernel of ",
                 "its own, as factors and grams have")
    }
    kernels[own] <- list(NULL)
  }
  blocks <- lapply(stats::setNames(nm = names), \(name) {
    kernel <- kernels[[name]]
    units <- scale
    if (is.null(kernel) && !own[[name]] && !is.null(preset)) {
      kernel <- kernel_rbf(nnpiv_bandwidth)
      if (is.null(units)) units <- FALSE
    }
    if (is.null(kernel) && is.null(units)) units <- TRUE
    label <- if (is.null(given)) "kernel" else paste0("kernel$", name)
    block <- read_variable(data[[name]], kernel, name, label, units)
    check_definite(block$sample$kernel)
    block
  })
  check_lengths(blocks)
  blocks
}

# One kernel for all blocks, or a list by name, as a list for all of them.
block_kernels <- function(kernel, names) {
  kernels <- stats::setNames(vector("list", length(names)), names)
  if (is.null(kernel)) {
    return(kernels)
  }
  if (!inherits(kernel, "kernmean_kernel") && is_plain_list(kernel)) {
    if (is.null(names(kernel)) || !all(names(kernel) %in% names) ||
          anyDuplicated(names(kernel))) {
      stop_input("'kernel' must be a kernel or a list of kernels named by ",
                 "block: ", paste0("'", names, "'", collapse = ", "))
    }
    for (name in names(Filter(Negate(is.null), kernel))) {
      kernels[[name]] <- check_kernel(kernel[[name]], paste0("kernel$", name))
    }
    return(kernels)
  }
  kernel <- check_kernel(kernel)
  kernels[] <- list(kernel)
  kernels
}

check_outcome <- function(y, n, name = "y", hint = na_hint) {
  if (!is.numeric(y) || is.object(y) && !stats::is.ts(y) ||
        length(dim(y)) > 2L || length(dim(y)) == 2L && ncol(y) != 1L) {
    stop_input("'", name, "' must be a numeric vector, not ", describe(y))
  }
  if (length(y) != n) {
    stop_input("'", name, "' must have one number for each of the ", n,
               " rows, not ", length(y))
  }
  check_finite(y, name, hint)
  names <- if (is.null(dim(y))) names(y) else rownames(y)
  stats::setNames(as.double(y), names)
}

# The rows of each moment: list(d, c) of logical vectors.
check_moment_rows <- function(subset, n) {
  if (is.null(subset)) {
    return(list(d = rep(TRUE, n), c = rep(TRUE, n)))
  }
  binary <- \(x) {
    (is.logical(x) || is.numeric(x)) && length(x) == n && !anyNA(x) &&
      all(x == 0 | x == 1)
  }
  rows <- if (is_plain_list(subset)) {
    if (!identical(sort(names(subset)), c("c", "d")) ||
          !all(vapply(subset, binary, NA))) {
      stop_input("'subset' must be a vector of 0 and 1, one for each of the ",
                 n, " rows, or list(c = , d = ) of two, not ",
                 describe(subset))
    }
    lapply(subset[c("d", "c")], \(x) x == 1)
  } else {
    if (!binary(subset)) {
      stop_input("'subset' must be a vector of 0 and 1, one for each of the ",
                 n, " rows, or list(c = , d = ) of two, not ",
                 describe(subset),
                 if (is.atomic(subset) && length(subset) == n) {
                   " with other values"
                 })
    }
    list(d = as.vector(subset) == 1, c = as.vector(subset) == 0)
  }
  for (of in c("d", "c")) {
    if (!any(rows[[of]])) {
      stop_input("'subset' must leave rows for the moment with the ",
                 "instruments '", of, "', not 0")
    }
  }
  rows
}

# lambda of one instrument: NULL for the default, "gcv" or a number.
check_lambda <- function(lambda, name) {
  if (is.null(lambda) || identical(lambda, "gcv")) {
    return(lambda)
  }
  if (!is.numeric(lambda) || length(lambda) != 1L || !is.finite(lambda) ||
        lambda < 0) {
    stop_input("'", name, "' must be NULL, \"gcv\" or a non-negative number, ",
               "not ", describe(lambda))
  }
  as.double(lambda)
}

check_mu <- function(mu, name) {
  if (is.null(mu)) {
    return(NULL)
  }
  if (!is.numeric(mu) || !length(mu) || !all(is.finite(mu) & mu > 0)) {
    bad <- if (is.numeric(mu)) mu[!is.finite(mu) | mu <= 0]
    stop_input("'", name, "' must be NULL or positive numbers, not ",
               if (length(bad)) format(bad[1L]) else describe(mu))
  }
  sort(unique(as.double(mu)))
}

# list(mu, ratio) of two penalties: NULL both, or proportional to each other.
check_two_mu <- function(mu_g, mu_h) {
  g <- check_mu(mu_g, "mu_g")
  h <- check_mu(mu_h, "mu_h")
  if (is.null(g) != is.null(h)) {
    stop_input("'mu_g' and 'mu_h' must be given both or neither")
  }
  if (is.null(g)) {
    return(list(mu = NULL, ratio = NULL))
  }
  ratio <- mu_h[1L] / mu_g[1L]
  if (length(mu_g) != length(mu_h) ||
        max(abs(mu_h / mu_g / ratio - 1)) > 1e-8) {
    stop_input("'mu_h' must be as many values as 'mu_g', all the same ",
               "multiple of its")
  }
  list(mu = g, ratio = ratio)
}

check_tolerance <- function(x, name, open = FALSE) {
  if (is.null(x) && open) {
    return(NULL)
  }
  if (!is.numeric(x) || length(x) != 1L || !is.finite(x) || x < 0 || x >= 1) {
    stop_input("'", name, "' must be a number from 0 to below 1, not ",
               describe(x))
  }
  as.double(x)
}

check_tolerances <- function(learner, instrument) {
  list(learner = check_tolerance(learner, "tol_learner"),
       instrument = check_tolerance(instrument, "tol_instrument", open = TRUE))
}

# Is the outcome centered? Unless it is said, where the penalty is `ours`.
check_intercept <- function(intercept, ours) {
  if (is.null(intercept)) ours else check_flag(intercept, "intercept")
}

check_preset <- function(preset, given) {
  if (is.null(preset)) {
    return(NULL)
  }
  if (identical(preset, "nnpiv")) preset <- nnpiv_preset
  numbers <- unlist(preset)
  if (!is.list(preset) || !all(names(preset) %in% names(nnpiv_preset)) ||
        !is.numeric(c(1, numbers)) || !isTRUE(all(numbers > 0))) {
    stop_input("'preset' must be NULL or \"nnpiv\", not ", describe(preset))
  }
  if (length(given)) {
    stop_input("'", given[1L], "' must not be given with 'preset', which says ",
               "what it is")
  }
  utils::modifyList(nnpiv_preset, preset, keep.null = TRUE)
}

# list(landmarks: rows, features: their number) of what was asked for; draws.
check_approximation <- function(landmarks, features, n) {
  if (!is.null(landmarks) && !is.null(features)) {
    stop_input("'landmarks' and 'features' must not be given both")
  }
  if (is.null(landmarks)) {
    return(if (!is.null(features)) {
      list(features = check_count(features, "features"))
    })
  }
  whole <- is.numeric(landmarks) && length(landmarks) &&
    all(is.finite(landmarks)) && all(landmarks == round(landmarks)) &&
    all(landmarks >= 1)
  if (!whole || max(landmarks) > n || anyDuplicated(landmarks)) {
    stop_input("'landmarks' must be a number of rows, or different row ",
               "numbers, up to ", n, ", not ",
               if (!whole || length(landmarks) == 1L) {
                 describe(landmarks)
               } else if (max(landmarks) > n) {
                 max(landmarks)
               } else {
                 paste(landmarks[duplicated(landmarks)][1L], "twice")
               })
  }
  if (length(landmarks) == 1L && landmarks < 2 && n > 1L) {
    stop_input("'landmarks' must be at least 2, not ", landmarks)
  }
  list(landmarks = if (length(landmarks) == 1L) {
    sample.int(n, as.integer(landmarks))
  } else {
    as.integer(landmarks)
  })
}

# The feature maps of all blocks. Projections on an instrument whose points come
# in groups are those on the groups, exactly.
make_maps <- function(blocks, approximation, projected, labels) {
  Map(\(block, of, name) {
    if (length(approximation) && is_factor_variable(block)) {
      return(indicator_map(block))
    }
    if (!is.null(approximation$landmarks)) {
      return(landmark_map(block, approximation$landmarks, name))
    }
    if (!is.null(approximation$features)) {
      return(fourier_map(block, approximation$features, name))
    }
    code <- if (of %in% projected) equal_points(block)
    if (is.null(code)) exact_map(block, name) else group_map(block, code)
  }, blocks, names(blocks), gsub("'", "", labels[names(blocks)]))
}

# The fit of a task but for its maps, with what was asked of its penalties:
# blocks by their names in the task (a, d; b, c), lambda: list(d, c), mu: one
# value, several or NULL, ratio, select, rule, folds, approximation, center,
# preset.
fit_iv <- function(task, blocks, asked, progress) {
  norm <- task$penalty == "norm"
  instruments <- intersect(c("d", "c"), names(blocks))
  lambda <- lapply(asked$lambda[instruments], \(l) {
    if (!is.null(l)) l else if (norm) "gcv" else 0
  })
  preset <- asked$preset
  free <- is.null(task$tol$instrument)
  projected <- if (!free) {
    character()
  } else if (is.null(preset)) {
    instruments[vapply(lambda, identical, NA, 0)]
  } else if (!norm) {
    instruments
  }
  task$maps <- make_maps(blocks, asked$approximation, projected,
                         task$labels)
  width <- max(vapply(task$maps, `[[`, numeric(1), "r"))
  check_memory(width, width, "use landmarks = or features =",
               copies = if (is_nested(task)) 20 else 8,
               what = "work on features")
  whole <- row_moments(task, seq_along(task$y))
  check_result(whole, "a moment of the features", "'y' and of the blocks")
  stage <- NULL
  if (is.null(preset)) {
    search <- names(lambda)[vapply(lambda, identical, NA, "gcv")]
    stage <- lapply(whole[search], first_stage, task$maps$a$r)
    check_result(stage, "the criterion of the first stage", "'x' and 'z'")
    lambda[search] <- lapply(stage, \(s) s$lambda[which.min(s$gcv)])
    rules <- own_rules(task, lambda)
  } else {
    rules <- preset_rules(task, preset)
  }
  grid <- penalty_grid(asked, task)
  if (is.null(asked$ratio)) {
    asked$ratio <- if (norm && is.null(preset)) {
      block_trace(task, "b") / block_trace(task, "a")
    } else {
      1
    }
  }
  found <- NULL
  value <- grid$values
  if (grid$search) {
    folds <- iv_folds(asked$folds, task, !is.null(preset))
    found <- tune_grid(grid$values, \(values) {
      held_out_scores(task, whole, rules, folds, values, asked$ratio,
                      asked$center, progress)
    }, asked$rule, grid$wider, 1e-24 * mean(task$y[task$rows$d]^2))
    value <- found$value
    found$table$value <- rules$mu(found$table$value, whole$n)
  }
  mean <- if (asked$center) mean(task$y[task$rows$d]) else 0
  used <- ridges_of(rules, whole)
  system <- iv_system(task, whole, used, asked$ratio)
  mu <- rules$mu(value, whole$n)
  solved <- check_result(solve_system(system, mu, mean), "the solution",
                         "'y' and of the blocks")
  check_instruments(task, system$ranks, used, whole)
  check_linear(task, blocks, asked$center)
  check_border(found, asked)
  list(mu = mu, lambda = used, mean = mean, theta = lapply(solved$theta, drop),
       criterion = drop(solved$criterion) / whole$n, ranks = system$ranks,
       ratio = asked$ratio, search = found, first_stage = stage,
       maps = task$maps,
       rule = if (grid$search) asked$rule, center = asked$center,
       landmarks = asked$approximation$landmarks,
       alpha_scale = if (!is.null(preset)) value)
}

# list(values, search: is one of them to be chosen?, wider).
penalty_grid <- function(asked, task) {
  preset <- asked$preset
  select <- identical(asked$select, "cv")
  if (!is.null(preset)) {
    values <- preset$alpha_scale
    if (is.null(values)) {
      first <- task$penalty == "norm" && !is_nested(task)
      values <- if (select) authors_grid else if (first) 60 else 1
    } else if (select && length(values) == 1L) {
      stop_input("'select' must not be \"cv\" where one 'alpha_scale' is given")
    }
    return(list(values = sort(unique(values)), search = length(values) > 1L))
  }
  if (!is.null(asked$mu)) {
    if (select && length(asked$mu) == 1L) {
      stop_input("'select' must not be \"cv\" where one penalty is given")
    }
    return(list(values = asked$mu, search = length(asked$mu) > 1L))
  }
  values <- own_grid
  if (task$penalty == "norm") values <- values * block_trace(task, "a")
  list(values = values, search = TRUE, wider = wider_grid(values))
}

# tr K, which is n for kernels with k(x, x) = 1.
block_trace <- function(task, of) sum(sample_diagonal(task$maps[[of]]$sample))

check_select <- function(select) {
  if (!is.null(select) && !identical(select, "cv")) {
    stop_input("'select' must be NULL or \"cv\", not ", describe(select))
  }
  select
}

# What a kernel or the points cannot do.
check_linear <- function(task, blocks, centered) {
  for (of in intersect(names(blocks), c("a", "b"))) {
    sample <- blocks[[of]]$sample
    kernel <- sample$kernel
    if (knows_points(sample) && is_linear(kernel) && kernel$offset == 0 &&
          !is_scaled(kernel) && !has_constant(sample$x)) {
      warn_kernmean("the functions of kernel_linear() have no constant: that ",
                    "of ", task$labels[[of]], " is a line through ",
                    if (centered) "(0, mean of y)" else "0",
                    "; kernel_poly(1) has one", kind = "linear")
    }
  }
  for (of in intersect(names(blocks), c("c", "d"))) {
    x <- blocks[[of]]$sample$x
    rows <- which(task$rows[[of]])
    if (!is.null(x) && length(rows) > 1L &&
          all(is_constant(x[rows, , drop = FALSE]))) {
      warn_kernmean("the instruments ", task$labels[[of]], " do not vary: ",
                    "they say nothing of the function", kind = "instruments")
    }
  }
}

# Do the columns add up to a constant, as dummies do?
has_constant <- function(x) {
  left <- qr.resid(qr(x), rep(1, nrow(x)))
  max(abs(left)) < 1e-8
}

# Where a projection keeps all directions the instruments say nothing.
check_instruments <- function(task, ranks, lambda, moments) {
  for (of in names(lambda)) {
    n <- moments[[of]]$n
    if (lambda[[of]] == 0 && ranks[[of]] > 0.9 * n && n > 1L) {
      warn_kernmean(
        "the projection on the instruments ", task$labels[[of]], " keeps ",
        ranks[[of]], " of ", n, " directions: they have ",
        if (ranks[[of]] < n) "hardly any" else "no", " effect, and the fit ",
        "only smooths its outcome; give a ridge, ", task$lambdas[[of]],
        " > 0 or \"gcv\", discrete instruments, 'landmarks', or a larger ",
        "'tol_instrument'",
        kind = "instruments"
      )
    } else if (of == "d" && task$penalty == "l2" && lambda[[of]] == 0 &&
                 ranks[["a"]] >= moments$n && moments$n > 1L) {
      warn_kernmean(
        "the range of ", task$labels$a, " has all ", moments$n, " directions: ",
        "fitted values do not depend on it nor on its kernel, and predictions ",
        "interpolate; take penalty = \"norm\", 'landmarks', or a larger ",
        "'tol_learner'", kind = "instruments"
      )
    }
  }
}

check_border <- function(found, asked) {
  given <- !is.null(asked$mu) || !is.null(asked$preset)
  end <- found$border
  if (isTRUE(found$highest) && !identical(end, "largest")) {
    warn_kernmean(
      "rule = \"", asked$rule, "\" takes the largest penalty that ",
      if (given) {
        "was given; try larger ones"
      } else {
        paste0("was tried: the instruments hardly tell the function from a ",
               "constant, and a flat fit does not mean that there is no ",
               "effect; rule = \"min\" takes the penalty of the smallest ",
               "held-out criterion")
      }, kind = "border"
    )
  } else if (!is.null(end)) {
    warn_kernmean(
      "the held-out criterion is smallest at the ", end, " penalty that was ",
      "tried", if (found$extended) ", also of more values", ": ",
      if (end == "largest") {
        "it finds nothing of the function in the data"
      } else {
        "it wants no penalty"
      }, if (given) "; try more values", kind = "border"
    )
  }
}

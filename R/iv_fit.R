# Instrumental-variable estimators from the moments of features. A task is
#   called    the user's names of the blocks a, d, and in nested fits b, c
#   maps      feature maps of these blocks
#   y, w      outcome, multiplier (NULL: 1)
#   rows      list(d, c): the rows of each moment, logical
#   penalty   "norm" or "l2"
#   control   of iv_control(); tol_learner, tol_instrument: below these shares
#             of the largest eigenvalue a direction counts as none
#   preset    the numbers of the authors' rules, or NULL; with these
#   blocks    the blocks, and
#   drawn     how many landmarks were drawn, NULL for those that were given
#   center    is y centered?
#   lambda    list(d, c): a number or "gcv", NA by a preset
#   mu        values or NULL; ratio: mu_h/mu_g, NULL: by traces
# With K = FF', an action P = LL' has the root L = F R^{-1}, R'R = F'F + lambda
# I (or F V S^{-1/2} for lambda = 0, F'F = VSV'), and each estimator is a ridge
# regression of L'y on L'F_A (norm) or on L'Q_A, Q_A an orthonormal basis of the
# range of F_A (l2): of moments alone, which add up over rows.

# The fit of a task. `y` is the outcome as the fit shows it.
fit_task <- function(task, y, arguments) {
  nested <- is_nested(task)
  blocks <- task$blocks
  task$maps <- make_maps(task, blocks)
  weak <- task$method == "weak"
  columns <- if (weak) exogenous_columns(blocks)
  strength <- NULL
  if (weak) task$straight <- straight_columns(blocks[["x"]], task$design)
  if (isTRUE(task$linear > 0) && !ncol(task$straight)) {
    stop_input("'linear' must be NULL or 0 where '", task$called[["a"]],
               "' has no columns of numbers that vary; as.numeric() makes one ",
               "of two levels")
  }
  width <- map_width(task)
  check_memory(width, width, "use landmarks = or features =",
               copies = if (nested) 20 else 8, what = "work on features")
  chosen <- penalty_values(task)
  folds <- if (length(chosen) > 1L) {
    iv_folds(task, if (weak && width <= most_dealt) 5L else 1L)
  }
  parts <- NULL
  if (weak) {
    if (!is.null(columns)) {
      given <- given_task(task, columns)
      strength <- instrument_strength(given, columns)
      strength <- identified(task, strength, columns)
      if (takes_line(strength) && (task$linear %||% Inf) == Inf) {
        task <- given
      }
    }
    task$partial <- partial_out(task)
    rows <- split(seq_along(y), folds %||% (0 * y))
    parts <- lapply(rows, \(i) row_moments(task, i))
    whole <- Reduce(moments_with, parts)
  } else {
    whole <- row_moments(task, seq_along(y))
  }
  check_result(whole, "a moment of the features", "'y' and of the blocks")
  searched <- names(Filter(\(ridge) identical(ridge, "gcv"), task$lambda))
  stage <- lapply(whole[searched], first_stage, task$maps$a$r,
                  if (weak) task$design, if (weak) ncol(task$straight) else 0L)
  check_result(stage, "the criterion of the first stage", "'x' and 'z'")
  task$lambda[searched] <- lapply(stage, \(s) s$lambda[which.min(s$gcv)])
  if (weak) {
    parts <- Map(\(part, i) {
      part$d$own <- own_moments(task, whole, i)
      part
    }, parts, rows)
    whole <- Reduce(moments_with, parts)
    strength <- strength %||%
      identified(task, iv_strength(task, whole), columns)
    known <- warn_weak(task, strength)
    task$unit <- block_trace(task, "a") / length(y)
    rule <- strength_rule(strength, task$unit, whole$d$own$df)
    if (!is.null(task$correct)) rule$keep <- 1
    # Where instruments are weak the mean of several deals shrinks too little.
    if (!is.null(folds) && is_weak(strength)) {
      attr(folds, "deals") <- attr(folds, "deals")[1L]
    }
    open <- setdiff(names(rule), names(Filter(Negate(is.null), task)))
    task[open] <- rule[open]
    # A line that takes all that the instruments tell leaves no curve to choose.
    no_curve <- task$linear == Inf && has_no_curve(task, strength)
    if (is.null(task$mu) && no_curve) chosen <- task$unit * length(y)
  }
  task$ratio <- task$ratio %||% if (is_norm(task) && is.null(task$preset))
      block_trace(task, "b") / block_trace(task, "a") else 1
  unit <- penalty_rule(task, whole$n)$mu
  cv <- NULL
  if (length(chosen) > 1L) {
    search <- search_penalty(task, whole, chosen, folds, parts, !weak || known)
    chosen <- search$value
    cv <- structure(data.frame(mu = search$table$value * unit,
                               search$table[-1L]),
                    folds = search$scores, border = search$border,
                    deals = deals_of(folds))
  }
  system <- iv_system(task, whole, task$rows$d)
  mu <- chosen * unit
  solved <- check_result(
    if (weak) solve_weak(system, mu, task$keep) else system$solve(system, mu),
    "the solution", "'y' and of the blocks"
  )
  lambda <- vapply(names(task$rows), \(of) {
    penalty_rule(task, whole[[of]]$n, of)$lambda
  }, 0)
  warn_instruments(task, system$ranks, lambda, whole)
  warn_linear(task)

  adversary <- do.call(cbind, lapply(names(task$rows), \(of) {
    most <- adversary_theta(task, whole[[of]], of, solved$theta, system$mean)
    values <- map_values(task$maps[[of]], map_function(task$maps[[of]], most),
                         most)
    if (!weak) return(values)
    values - product(task$design, product(task$partial[[of]], as.matrix(most)))
  }))
  errors <- if (weak) {
    least <- if (is.null(cv)) mu else cv$mu[which.min(cv$score)]
    # What is best predicted of g must not be shrunk much in its intervals.
    top <- max(system$spectrum$values)
    if (top > 0) least <- min(least, top)
    c(weak_errors(task, whole, system, solved$theta$g, least),
      list(map = small_map(task$maps$a), partial = task$partial$a,
           slopes = attr(task$straight, "slopes"), given = task$given))
  }
  maps <- task$maps[c("a", if (nested) "b")]
  theta <- lapply(solved$theta, drop)
  functions <- stats::setNames(Map(map_function, maps, theta,
                                   list(task$straight, NULL)[seq_along(maps)]),
                               names(theta))
  added <- intercept <- system$mean
  if (weak) {
    intercept <- intercept - drop(product(task$partial$a, as.matrix(theta$g)))
    added <- drop(product(task$design, as.matrix(intercept)))
  }
  fitted <- added +
    do.call(cbind, Map(map_values, maps, functions, theta))
  if (!is.null(task$given)) {
    k <- nrow(task$given$shift)
    free <- given_weights(task$given, intercept[-seq_len(k)])
    intercept <- intercept[seq_len(k)] -
      drop(product(task$given$shift, as.matrix(free)))
    functions$g$free <- c(list(weights = free), task$given)
  }
  rows <- names(y)
  rows <- rows %||% rownames(blocks[[task$called[["a"]]]]$sample$x)
  dimnames(fitted) <- list(rows, names(functions))
  dimnames(adversary) <- list(rows, c("first", "second")[seq_along(task$rows)])
  residuals <- cbind(
    first = stats::setNames(y, rows) - fitted[, 1L],
    second = if (nested) {
      fitted[, 2L] - (task$w %||% 1) * fitted[, 1L]
    }
  )
  shown <- \(x) if (nested) x else x[, 1L]
  fields <- list(
    called = task$called, fitted.values = shown(fitted),
    residuals = shown(residuals),
    penalty = task$penalty, lambda = stats::setNames(
      rev(lambda), paste0("lambda", if (nested) c("_c", "_d"))
    ), mu = if (nested) c(mu_g = mu, mu_h = mu * task$ratio) else c(mu = mu),
    intercept = intercept[1L],
    criterion = stats::setNames(
      solved$criterion / whole$n, if (nested) c("first", "second")
    )[seq_along(lambda)],
    rank = stats::setNames(system$ranks, task$called[names(system$ranks)]),
    cv = cv, first_stage = if (nested) stage else stage$d,
    rule = if (!is.null(cv)) task$control$rule,
    alpha_scale = if (!is.null(task$preset)) chosen, functions = functions,
    adversary = adversary,
    blocks = blocks, kernels = lapply(blocks, \(block) block$sample$kernel),
    y = y, w = task$w, rows = if (nested) task$rows, n = length(y),
    method = task$method, centered = task$center,
    landmarks = task$control$landmarks, arguments = arguments,
    # These cannot be made again.
    maps = if (!is.null(task$control$features)) lapply(task$maps, small_map)
  )
  if (weak) {
    # As many numbers as lines leave nothing to test.
    if (strength$span - length(attr(strength, "columns")) < 1) {
      errors$overid[] <- NA
    }
    # A line has the errors of a line, without the curve.
    table <- line_table(task, if (task$linear == Inf && !no_curve) {
      weak_errors(task, whole, line_system(task, system))
    } else {
      errors
    }, if (is.null(columns)) task else given)
    fields <- c(fields, task[c("correct", "linear", "keep")], table, list(
      controls = stats::setNames(
        intercept, colnames(task$design)[seq_along(intercept)]
      )[-1L],
      design = attributes(task$design)[c("kept", "means")],
      strength = strength, error = errors
    ))
  }
  new_fit(c(if (nested) "rkhs_iv_nested", "rkhs_iv"), fields)
}

# tr K, which is n for kernels with k(x, x) = 1.
block_trace <- \(task, of) sum(sample_diagonal(task$maps[[of]]$sample))

# --- Small systems -----------------------------------------------------------

# The regression of an estimator: list(x, t; first: how many rows are the first
# moment's; bases: what turns its coefficients into those of features, NULL for
# the identity; ranks; ratio; mean: of y, taken out). The columns of h are
# scaled by the root of the ratio. `first`: the rows of the first moment.
iv_system <- function(task, moments, first) {
  if (task$method == "weak") {
    return(weak_system(task, moments))
  }
  mean <- if (task$center) mean(task$y[first]) else 0
  bases <- lapply(moments$range, \(gram) {
    s <- kept_spectrum(gram, task$control$tol_learner)
    s$vectors / rep(sqrt(s$values), each = nrow(gram))
  })
  roots <- lapply(stats::setNames(nm = names(task$rows)), \(of) {
    root <- action_root(task, moments, of)
    list(rank = root$rank, x = root$times(moments[[of]]$with))
  })
  of_g <- seq_len(task$maps$a$r)
  d <- roots$d$x
  x <- times(take_columns(d, of_g), bases$a)
  t <- d[, ncol(d) - 1L] - mean * d[, ncol(d)]
  size <- length(t)
  ranks <- c(a = ncol(x), d = roots$d$rank)
  if (is_nested(task)) {
    c <- roots$c$x
    of_h <- seq_len(ncol(c) - 2L)[-of_g]
    h <- times(take_columns(c, of_h), bases$b) / sqrt(task$ratio)
    ranks <- c(ranks["a"], b = ncol(h), c = roots$c$rank, ranks["d"])
    x <- rbind(cbind(x, matrix(0, size, ncol(h))),
               cbind(times(take_columns(c, of_g), bases$a), h))
    t <- c(t, numeric(nrow(c)))
  }
  list(x = x, t = t, first = size, bases = bases, ranks = ranks,
       ratio = task$ratio, mean = mean, solve = solve_system)
}

# min |t - X theta|^2 + mu |theta|^2 for each mu: list(theta, a column each; of
# the features, list(g, h); criterion: |t - X theta|^2 of both moments, 2 rows).
# One value takes a Cholesky factor, several an eigendecomposition.
solve_system <- function(system, mu) {
  x <- system$x
  dual <- nrow(x) <= ncol(x)
  square <- if (dual) tcross(x) else cross(x)
  right <- if (dual) as.matrix(system$t) else cross(x, system$t)
  lower <- if (length(mu) == 1L) cholesky(square, mu)
  check_penalty(square, mu, length(mu) == 1L && is.null(lower), system$ratio)
  theta <- if (length(mu) == 1L) {
    solve_factored(lower, right)
  } else {
    s <- .Call(C_r_eigen, square, nrow(square))
    product(s$vectors, drop(cross(s$vectors, right)) /
              outer(pmax(s$values, 0), mu, `+`))
  }
  if (dual) theta <- cross(x, theta)
  squares <- (system$t - product(x, theta))^2
  first <- seq_along(system$t) <= system$first
  # Coefficients of the regression as those of the features of each function.
  of_g <- seq_len(nrow(theta)) <= system$ranks[["a"]]
  list(theta = c(
    list(g = times(system$bases$a, take_rows(theta, of_g))),
    if (!all(of_g)) {
      list(h = times(system$bases$b,
                     take_rows(theta, !of_g) / sqrt(system$ratio)))
    }
  ), criterion = rbind(colSums(take_rows(squares, first)),
                       colSums(take_rows(squares, !first))))
}

# --- Penalties ---------------------------------------------------------------

weak_grid <- 10^seq(-6, 2, length.out = 41)
own_grid <- 10^seq(-5, 0, length.out = 30)
authors_grid <- 10^seq(-1, 4, length.out = 30)

# The penalties of the authors' code. In units of the matrix, delta =
# delta_scale n^-delta_exp and alpha = alpha_scale delta^4:
#   rkhs_iv(), "norm"         lambda = n delta^2, mu = alpha / (2 n delta^2)
#   rkhs_iv_nested(), "norm"  both lambda = 1, both mu = alpha
#   "l2"                      lambda = 0, mu = alpha
# n is that of the rows at hand: of a fold's complement for its fit, of the fold
# for its criterion. alpha_scale NULL: 60 for Estimator 1, 1 for the others.
# gamma, of exp(-gamma |x - y|^2), is a number or "auto", see nnpiv_kernel().
nnpiv_preset <- list(delta_scale = 5, delta_exp = 0.4, alpha_scale = NULL,
                     gamma = 2)

# exp(-gamma |x - y|^2); of "auto" 1/(2 gamma) is the median distance of all
# pairs, each point with itself included.
nnpiv_kernel <- function(gamma) {
  if (!identical(gamma, "auto")) {
    return(kernel_rbf(sqrt(1 / (2 * gamma))))
  }
  kernel_rbf(nnpiv_bandwidth)
}

# A fixed gamma knows nothing of the units of the columns.
warn_gamma <- function(block, gamma, name) {
  if (is_factor_variable(block)) {
    return(invisible())
  }
  x <- block$sample$x
  some <- unique(round(seq(1, nrow(x), length.out = 1000)))
  middle <- fit_kernel(kernel_rbf(), take_rows(x, some))$bandwidth
  if (gamma * middle^2 > log(1e3)) {
    warn_kernmean(
      "the authors' kernel, exp(-", format_number(gamma), " |x - y|^2), is ",
      "below 0.001 for half of the pairs of '", name, "': scale its columns, ",
      "or take preset = list(gamma = \"auto\")", kind = "units"
    )
  }
}

nnpiv_bandwidth <- function(x) {
  n <- nrow(x)
  check_memory(n, n, "give a kernel", copies = 3,
               what = "the authors' bandwidth")
  middle <- stats::median(as.matrix(stats::dist(x)))
  if (middle <= 0) {
    stop_input("the authors' bandwidth, from the median distance, must be ",
               "positive; at least half of the distances are 0: give a kernel")
  }
  sqrt(middle)
}

# The values to choose among. attr "wider": those beyond either end.
penalty_values <- function(task) {
  select <- !is.null(task$control$select)
  values <- sort(unique(task$mu))
  if (!length(values)) {
    if (is.null(task$preset)) {
      unit <- if (is_norm(task)) block_trace(task, "a") else 1
      if (task$method == "weak") {
        return(structure(weak_grid * unit, wider = list()))
      }
      values <- own_grid * unit
      return(structure(values, wider = wider_grid(values)))
    }
    # The authors look beyond an end in nested fits alone, by one value.
    values <- if (!select) if (is_norm(task) && !is_nested(task)) 60 else 1 else
      structure(authors_grid, wider = if (is_nested(task)) {
        wider_grid(authors_grid, 1L)
      })
  }
  if (select && length(values) == 1L) {
    stop_input("'select' must not be \"cv\" where one penalty is given")
  }
  values
}

# --- Cross-validation --------------------------------------------------------
# One decomposition a fold for all values, from the moments of the fold and of
# the rows outside it.

# As of tune_grid(), with a warning where the best is an end.
search_penalty <- function(task, whole, values, folds, parts, known = TRUE) {
  rule <- task$control$rule
  search <- tune_grid(
    values, \(values) held_out_scores(task, whole, folds, values, parts),
    rule,
    attr(values, "wider"), 1e-24 * mean(task$y[task$rows$d]^2),
    deals_of(folds)
  )
  end <- search$border
  # A warning of weak instruments has said so.
  said <- !known && (search$highest || identical(end, "largest"))
  if (!said && (search$highest || length(end))) {
    warn_kernmean(
      if (length(end)) "the held-out criterion is smallest at" else
        paste0("rule = \"", rule, "\" takes"),
      " the ", c(end, "largest")[1L], " penalty that was ",
      if (is.null(attr(values, "wider"))) "given; try more values" else "tried",
      if (!identical(end, "smallest")) {
        paste(": the instruments hardly tell the function from a", if (
          isTRUE(task$linear > task$unit)
        ) "straight line" else
          "constant, which does not mean that there is no effect")
      }, kind = "border"
    )
  }
  search
}

deals_of <- \(folds) max(1L, length(attr(folds, "deals")))

# Features up to which folds are dealt several times: one more deal takes as
# many decompositions.
most_dealt <- 300L

# The fold of each row, a factor; NA in folds that the authors leave out, which
# lack rows of a moment. Of `deals` rows are in cells, whose moments add up to
# those of a fold of each deal; attr "deals": the fold of each cell, a vector
# for each.
iv_folds <- function(task, deals) {
  folds <- task$control$folds
  rows <- task$rows
  by_row <- length(folds) > 1L
  n <- length(task$y)
  units <- task$clusters %||% seq_len(n)
  if (by_row) {
    of <- read_folds(folds, n, "rows")
    # In the order in which they come.
    of <- factor(of, unique(of))
    if (anyDuplicated(unique(data.frame(units, of))$units)) {
      stop_input("'folds' must keep the rows of each cluster together")
    }
  } else {
    blocks <- identical(folds, "blocks") || task$in_blocks
    count <- if (is_number(folds)) take(folds, count(2L)) else
      min(6L, length(unique(units)))
    strata <- if (is.null(task$preset)) Reduce(\(d, c) d + 2L * c, rows) else
      rep(1L, n)
    if (task$method == "weak" && is_factor_variable(task$blocks$z)) {
      level <- max.col(task$blocks$z$sample$x, "first")
      strata <- level * (tabulate(level)[level] >= 2 * count)
    }
    # Cells need two units at least.
    if (blocks || length(unique(units)) < 2L * deals * count) deals <- 1L
    cells <- deals * count
    of <- if (!is.null(task$clusters)) cluster_folds(units, cells) else
      make_folds(n, cells, if (blocks) "blocks" else "hashed", strata)
    of <- factor(of, seq_len(cells))
    if (deals > 1L) {
      cell <- seq_len(cells) - 1L
      attr(of, "deals") <- lapply(seq_len(deals) - 1L, \(deal) {
        (cell + deal * (cell %/% count)) %% count + 1L
      })
      return(of)
    }
  }
  lacks <- lapply(rows, \(r) table(of[r]) %in% c(0L, sum(r)))
  bad <- levels(of)[Reduce(`|`, lacks)]
  if (length(bad) && (by_row || is.null(task$preset) ||
                        length(bad) == nlevels(of))) {
    stop_input("'folds' must have rows of each moment in each fold and ",
               "outside it; they are lacking for fold '", bad[1L], "' of ",
               nlevels(of), ", for ", count_of(length(of), "row"))
  }
  if (!by_row && blocks) warn_sorted(of, task)
  factor(of, setdiff(levels(of), bad))
}

# Rows in an order make folds of rows next to each other that are not alike: of
# some column of the rows of a moment not all have the same mean, by F tests.
sorted_below <- 1e-6

warn_sorted <- function(of, task) {
  columns <- c(list(y = cbind(task$y)),
               lapply(task$maps, \(map) sample_raw(map$sample)))
  p <- unlist(Map(\(x, block) {
    rows <- task$rows[[if (block %in% c("b", "c")) "c" else "d"]]
    of <- droplevels(of[rows])
    between <- nlevels(of) - 1
    within <- sum(rows) - 1 - between
    if (!is.null(x) && within > 0) {
      x <- scale(take_rows(data.matrix(x), rows))
      explained <- colSums(rowsum(x, of)^2 / tabulate(of))
      left <- pmax(sum(rows) - 1 - explained, 0)
      stats::pf(explained / between / (left / within), between, within,
                lower.tail = FALSE)
    }
  }, columns, names(columns)))
  if (min(1, p, na.rm = TRUE) * length(p) < sorted_below) {
    warn_kernmean(
      "the folds of rows next to each other are not alike (rows in some ",
      "order?), and penalties chosen by them may be too large; random ones ",
      "are folds = sample(rep_len(1:", nlevels(of), ", ", length(of), "))",
      kind = "folds"
    )
  }
}

# Has a preset bandwidths or maps that are made of the rows?
has_own_maps <- function(task) {
  !is.null(task$preset) &&
    (length(c(task$control$landmarks, task$control$features)) > 0L ||
       any(vapply(task$blocks, \(block) isTRUE(block$auto), NA)))
}

# The task with these made anew of the rows outside a fold.
task_without <- function(task, rows) {
  others <- setdiff(seq_along(task$y), rows)
  blocks <- lapply(task$blocks, \(block) {
    if (isTRUE(block$auto)) {
      x <- block$sample$x
      kernel <- block$sample$kernel
      kernel$bandwidth <- nnpiv_bandwidth(take_rows(x, others))
      block$sample <- points_sample(x, kernel)
    }
    block
  })
  kept <- task$control$landmarks
  if (!is.null(task$drawn)) {
    task$control$landmarks <- others[sample.int(
      length(others), min(task$drawn, length(others))
    )]
  } else if (!is.null(kept)) {
    task$control$landmarks <- intersect(kept, others)
  }
  task$maps <- make_maps(task, blocks)
  task
}

# Held-out criteria: folds in rows, values in columns. `whole`: the moments of
# all rows.
held_out_scores <- function(task, whole, folds, grid, parts) {
  n <- length(task$y)
  anew <- has_own_maps(task)
  each <- split(seq_len(n), folds)
  cells <- unlist(lapply(
    attr(folds, "deals") %||% list(seq_along(each)),
    \(deal) split(seq_along(each), deal)
  ), recursive = FALSE)
  scores <- lapply_shown(cells, \(k) {
    rows <- unlist(each[k])
    if (anew) task <- task_without(task, rows)
    held <- if (is.null(parts)) row_moments(task, rows) else
      Reduce(moments_with, parts[k])
    train <- if (!anew) moments_with(whole, held, `-`) else
      row_moments(task, setdiff(seq_len(n), rows))
    system <- iv_system(task, train, replace(task$rows$d, rows, FALSE))
    theta <- system$solve(system, grid * penalty_rule(task, train$n)$mu)$theta
    # r'Pr/t^2 of the t rows of the fold, P made anew from them.
    parts <- lapply(names(task$rows), \(of) {
      right <- product(held[[of]]$with, rbind(
        theta$g, if (of == "c") theta$h, -1,
        matrix(system$mean, length(system$mean), length(grid))
      ))
      colSums(action_root(task, held, of)$times(right)^2)
    })
    penalty_rule(task, held$n)$score * Reduce(`+`, parts) / held$n^2
  }, task$control$progress && n >= shown_from)
  check_result(do.call(rbind, unname(scores)), "a held-out criterion",
               "'y' and of the blocks")
}

# --- What a fit cannot do ----------------------------------------------------

warn_linear <- function(task) {
  for (of in names(task$maps)) {
    sample <- task$maps[[of]]$sample
    if (!knows_points(sample)) next
    kernel <- sample$kernel
    rows <- task$rows[[of]]
    if (of %in% c("a", "b")) {
      if (task$method == "classic" && kernel_has(kernel, "linear form") &&
            kernel$offset == 0 && !kernel_has(kernel, "scaling") &&
            # The columns of dummies add up to a constant.
            max(abs(qr.resid(qr(sample$x), rep(1, sample$n)))) >= 1e-8) {
        warn_kernmean("the functions of kernel_linear() have no constant: ",
                      "that of '", task$called[[of]], "' is a line through ",
                      if (task$center) "(0, mean of y)" else "0",
                      "; kernel_poly(1) has one", kind = "linear")
      }
    } else if (sum(rows) > 1L &&
                 all(is_constant(take_rows(sample$x, rows)))) {
      warn_kernmean("the instruments '", task$called[[of]], "' do not vary: ",
                    "they say nothing of the function", kind = "instruments")
    }
  }
}

# Where a projection keeps all directions the instruments say nothing.
warn_instruments <- function(task, ranks, lambda, moments) {
  for (of in names(lambda)[lambda == 0]) {
    n <- moments[[of]]$n
    if (n < 2L) next
    name <- task$called[[of]]
    if (ranks[[of]] > 0.9 * n) {
      warn_kernmean(
        "the projection on the instruments '", name, "' keeps ", ranks[[of]],
        " of ", n, " directions: they have next to no effect, and the fit ",
        "only smooths its outcome; give a ridge, lambda > 0 or \"gcv\", ",
        "discrete instruments, 'landmarks', or a larger 'tol_instrument'",
        kind = "instruments"
      )
    } else if (of == "d" && !is_norm(task) && ranks[["a"]] >= moments$n) {
      warn_kernmean(
        "the range of '", task$called[["a"]], "' has all ", moments$n,
        " directions: fitted values do not depend on it nor on its kernel, ",
        "and predictions interpolate; take penalty = \"norm\", 'landmarks', ",
        "or a larger 'tol_learner'", kind = "instruments"
      )
    }
  }
}

# Instrumental-variable estimators from the moments of features. A task is
#   called    the user's names of the blocks a, d, and in nested fits b, c
#   maps      feature maps of these blocks
#   y, w      outcome, multiplier (NULL: 1)
#   rows      list(d, c): the rows of each moment, logical
#   penalty   "norm" or "l2"
#   control   of iv_control(); tol_learner, tol_instrument: below these shares
#             of the largest eigenvalue a direction counts as none
#   preset    the numbers of the authors' rules, or NULL
#   center    is y centered?
#   lambda    list(d, c); mu: values or NULL; ratio: mu_h/mu_g, NULL: by traces
# With K = FF', an action P = LL' has the root L = F R^{-1}, R'R = F'F + lambda
# I (or F V S^{-1/2} for lambda = 0, F'F = VSV'), and each estimator is a ridge
# regression of L'y on L'F_A (norm) or on L'Q_A, Q_A an orthonormal basis of the
# range of F_A (l2): of moments alone, which add up over rows.

is_nested <- \(task) "b" %in% names(task$called)
is_norm <- \(task) task$penalty == "norm"

# The fit of a task but for its maps.
fit_task <- function(task, blocks) {
  instruments <- intersect(c("d", "c"), names(task$called))
  lambda <- task$lambda[instruments]
  lambda[lengths(lambda) == 0L] <- if (is_norm(task)) "gcv" else 0
  zero <- if (is.null(task$preset)) vapply(lambda, identical, NA, 0) else
    !is_norm(task)
  task$maps <- make_maps(
    blocks, task$control,
    instruments[zero & is.null(task$control$tol_instrument)], task$called
  )
  width <- map_width(task)
  check_memory(width, width, "use landmarks = or features =",
               copies = if (is_nested(task)) 20 else 8,
               what = "work on features")
  whole <- row_moments(task, seq_along(task$y))
  check_result(whole, "a moment of the features", "'y' and of the blocks")
  stage <- NULL
  if (is.null(task$preset)) {
    search <- names(lambda)[vapply(lambda, identical, NA, "gcv")]
    stage <- lapply(whole[search], first_stage, task$maps$a$r)
    check_result(stage, "the criterion of the first stage", "'x' and 'z'")
    lambda[search] <- lapply(stage, \(s) s$lambda[which.min(s$gcv)])
  }
  if (is.null(task$ratio)) {
    own <- is.null(task$preset) && is_norm(task) && is_nested(task)
    task$ratio <- if (!own) 1 else
      block_trace(task, "b") / block_trace(task, "a")
  }
  task$lambda <- lambda
  unit <- penalty_rule(task, whole$n)$mu
  values <- penalty_values(task)
  search <- NULL
  if (length(values) > 1L) {
    folds <- iv_folds(task)
    search <- tune_grid(values, \(values) {
      held_out_scores(task, whole, folds, values)
    }, task$control$rule, attr(values, "wider"),
    1e-24 * mean(task$y[task$rows$d]^2))
    values <- search$value
    search$table$value <- search$table$value * unit
  }
  mean <- if (task$center) mean(task$y[task$rows$d]) else 0
  used <- ridges_of(task, whole)
  system <- iv_system(task, whole, used)
  mu <- values * unit
  solved <- check_result(solve_system(system, mu, mean), "the solution",
                         "'y' and of the blocks")
  warn_instruments(task, system$ranks, used, whole)
  warn_linear(task, blocks)
  warn_border(search, task)
  list(mu = mu, lambda = used, mean = mean, theta = lapply(solved$theta, drop),
       criterion = drop(solved$criterion) / whole$n, ranks = system$ranks,
       ratio = task$ratio, search = search, first_stage = stage,
       maps = task$maps, alpha_scale = if (!is.null(task$preset)) values)
}

# tr K, which is n for kernels with k(x, x) = 1.
block_trace <- \(task, of) sum(sample_diagonal(task$maps[[of]]$sample))

# --- Moments -----------------------------------------------------------------

# Of some rows: list(n, d, c, range), d and c those of a moment (see
# action_moments()), range the F'F of the learners where the penalty needs it.
row_moments <- function(task, rows) {
  maps <- task$maps
  found <- list(n = length(rows), d = action_moments(task, rows, "d"))
  if (is_nested(task)) found$c <- action_moments(task, rows, "c")
  if (!is_norm(task)) {
    found$range <- lapply(maps[intersect(c("a", "b"), names(maps))], \(map) {
      sum_panels(task, rows, \(i) list(cross(map_features(map, i))))[[1L]]
    })
  }
  found
}

# The moments of the instrument's features F with the columns Z of learners and
# with the targets, 0 for the second moment, over the rows of its moment among
# these: list(n, gram: F'F, with: F'Z, target, square: Z_j'Z_j).
action_moments <- function(task, rows, of) {
  maps <- task$maps
  rows <- rows[task$rows[[of]][rows]]
  c(list(n = length(rows)), sum_panels(task, rows, \(i) {
    f <- map_features(maps[[of]], i)
    z <- map_features(maps$a, i)
    target <- cbind(task$y[i], 1)
    if (of == "c") {
      if (!is.null(task$w)) z <- task$w[i] * z
      z <- cbind(-z, map_features(maps$b, i))
      target[] <- 0
    }
    list(gram = cross(f), with = cross(f, z), target = cross(f, target),
         square = column_dots(z))
  }))
}

sum_panels <- function(task, rows, value) {
  sums <- NULL
  for (i in feature_panels(rows, map_width(task))) {
    sums <- if (is.null(sums)) value(i) else Map(`+`, sums, value(i))
  }
  sums
}

map_width <- \(task) max(vapply(task$maps, `[[`, 1, "r"))

# The moments of the rows that are left.
moments_without <- function(whole, part) {
  if (is.list(whole)) Map(moments_without, whole, part) else whole - part
}

# --- Small systems -----------------------------------------------------------

# R'^{-1} Z of the right sides Z = F'(...), with R'R = F'F + lambda I; without
# the ridge S^{-1/2} V'Z. list(rank, one for each right side).
apply_root <- function(task, moment, lambda, ...) {
  gram <- moment$gram
  if (lambda > 0) {
    lower <- cholesky(gram, lambda)
    if (!is.null(lower)) {
      return(c(list(rank = nrow(gram)),
               lapply(list(...), \(z) solve_lower(lower, z))))
    }
  }
  tolerance <- task$control$tol_instrument
  if (is.null(tolerance)) tolerance <- moment$n * .Machine$double.eps
  s <- kept_spectrum(gram, if (lambda > 0) 0 else tolerance)
  factor <- 1 / sqrt(s$values + lambda)
  c(list(rank = length(factor)),
    lapply(list(...), \(z) factor * cross(s$vectors, z)))
}

# Without a base the identity.
times <- \(x, y) if (is.null(x)) y else if (is.null(y)) x else product(x, y)

# The regression of an estimator: list(x, t: r x 2, the second column that of
# the constant 1; first: the rows of the first moment; bases: what turns its
# coefficients into those of features, NULL for the identity; ranks). lambda:
# list(d, c). The columns of h are scaled by the root of the ratio.
iv_system <- function(task, moments, lambda) {
  bases <- lapply(moments$range, \(gram) {
    s <- kept_spectrum(gram, task$control$tol_learner)
    s$vectors / rep(sqrt(s$values), each = nrow(gram))
  })
  roots <- Map(\(moment, lambda) {
    found <- apply_root(task, moment, lambda, moment$with, moment$target)
    scale <- sqrt(moments$n / moment$n)
    list(rank = min(found[[1L]], moment$n), x = scale * found[[2L]],
         t = scale * found[[3L]])
  }, moments[names(lambda)], lambda)
  d <- roots$d
  x <- times(d$x, bases$a)
  t <- d$t
  ranks <- c(a = ncol(x), d = d$rank)
  if (is_nested(task)) {
    c <- roots$c
    own <- seq_len(task$maps$a$r)
    g <- times(c$x[, own, drop = FALSE], bases$a)
    h <- times(c$x[, -own, drop = FALSE], bases$b) / sqrt(task$ratio)
    ranks <- c(a = ncol(x), b = ncol(h), c = c$rank, d = d$rank)
    x <- rbind(cbind(x, matrix(0, nrow(x), ncol(h))), cbind(g, h))
    t <- rbind(t, c$t)
  }
  list(x = x, t = t, first = nrow(d$x), bases = bases, ranks = ranks,
       ratio = task$ratio)
}

# min |t - X theta|^2 + mu |theta|^2 for each mu: list(theta, a column each; of
# the features, list(g, h); criterion: |t - X theta|^2 of both moments, 2 rows).
# One value takes a Cholesky factor, several an eigendecomposition.
solve_system <- function(system, mu, mean = 0) {
  x <- system$x
  t <- system$t[, 1L, drop = FALSE] - mean * system$t[, 2L]
  dual <- nrow(x) <= ncol(x)
  square <- if (dual) tcross(x) else cross(x)
  right <- if (dual) t else cross(x, t)
  rounding <- nrow(square) * .Machine$double.eps * max(diag(square))
  lower <- if (length(mu) == 1L) cholesky(square, mu)
  if (!all(mu > rounding) || length(mu) == 1L && is.null(lower)) {
    stop_kernmean("numeric", "the penalty ", format_number(min(mu)),
                  " is lost in the rounding of the normal equations; take a ",
                  "larger one")
  }
  theta <- if (length(mu) == 1L) {
    solve_factored(lower, right)
  } else {
    s <- .Call(C_r_eigen, square, nrow(square))
    product(s$vectors, drop(cross(s$vectors, right)) /
              outer(pmax(s$values, 0), mu, `+`))
  }
  if (dual) theta <- cross(x, theta)
  left <- as.vector(t) - product(x, theta)
  first <- seq_len(nrow(x)) <= system$first
  # Coefficients of the regression as those of the features of each function.
  own <- seq_len(nrow(theta)) <= system$ranks[["a"]]
  list(theta = c(
    list(g = times(system$bases$a, theta[own, , drop = FALSE])),
    if (!all(own)) {
      list(h = times(system$bases$b,
                      theta[!own, , drop = FALSE] / sqrt(system$ratio)))
    }
  ), criterion = rbind(colSums(left[first, , drop = FALSE]^2),
                       colSums(left[!first, , drop = FALSE]^2)))
}

# --- Penalties ---------------------------------------------------------------

first_stage_grid <- 10^seq(-6, 0, length.out = 25)
own_grid <- 10^seq(-5, 0, length.out = 30)
authors_grid <- 10^seq(-1, 4, length.out = 30)

# The ridge by generalized cross-validation of the regression of the learners'
# features on the instrument, in units of the trace of its Gram matrix: data
# frame(lambda, gcv). Of the learners, the first with `own` features, each
# counts alike, whatever the units of its kernel are.
first_stage <- function(moment, own) {
  n <- moment$n
  s <- kept_spectrum(moment$gram, 0)
  of <- 1 + (seq_along(moment$square) > own)
  total <- tapply(moment$square, of, sum)
  weight <- ifelse(total > 0, 1 / total, 0)[of]
  explained <- drop(product(cross(s$vectors, moment$with)^2,
                            as.matrix(as.vector(weight))))
  grid <- sum(s$values) * first_stage_grid
  down <- outer(s$values, grid, `+`)
  left <- sum(total > 0) -
    colSums(explained * (s$values + rep(2 * grid, each = nrow(down))) / down^2)
  freedom <- pmax(1 - colSums(s$values / down) / n, 0)
  data.frame(lambda = grid, gcv = pmax(left, 0) / n / freedom^2)
}

# The penalties of the authors' code. In units of the matrix, delta =
# delta_scale n^-delta_exp and alpha = alpha_scale delta^4:
#   rkhs_iv(), "norm"         lambda = n delta^2, mu = alpha / (2 n delta^2)
#   rkhs_iv_nested(), "norm"  both lambda = 1, both mu = alpha
#   "l2"                      lambda = 0, mu = alpha
# n is that of the rows at hand: of a fold's complement for its fit, of the fold
# for its criterion. alpha_scale NULL: 60 for Estimator 1, 1 for the others.
nnpiv_preset <- list(delta_scale = 5, delta_exp = 0.4, alpha_scale = NULL)

preset_delta <- \(preset, n) preset$delta_scale * n^-preset$delta_exp

# Penalties in units of the matrix grow with the number of rows. For n rows
# list(lambda: of a moment, mu: the factor of a grid, which is for all rows or
# alpha_scale, score: what the authors multiply the criterion by).
penalty_rule <- function(task, n, of = "d") {
  norm <- is_norm(task)
  if (is.null(task$preset)) {
    return(list(lambda = task$lambda[[of]] * n / sum(task$rows[[of]]),
                mu = if (norm) n / length(task$y) else 1, score = 1))
  }
  delta <- preset_delta(task$preset, n)
  first <- norm && !is_nested(task)
  score <- if (first) 2 * n * delta^2 else 1
  list(lambda = if (first) n * delta^2 else as.double(norm),
       mu = delta^4 / score, score = score)
}

ridges_of <- function(task, moments) {
  parts <- Filter(Negate(is.null), moments[c("d", "c")])
  Map(\(moment, of) penalty_rule(task, moment$n, of)$lambda, parts,
      names(parts))
}

# The values to choose among. attr "wider": those beyond either end.
penalty_values <- function(task) {
  select <- !is.null(task$control$select)
  values <- task$mu
  if (!is.null(task$preset)) {
    values <- task$preset$alpha_scale
    if (is.null(values)) {
      values <- if (select) authors_grid else
        if (is_norm(task) && !is_nested(task)) 60 else 1
    }
  } else if (is.null(values)) {
    values <- own_grid * if (is_norm(task)) block_trace(task, "a") else 1
    return(structure(values, wider = wider_grid(values)))
  }
  values <- sort(unique(values))
  if (select && length(values) == 1L) {
    stop_input("'select' must not be \"cv\" where one penalty is given")
  }
  values
}

# --- Cross-validation --------------------------------------------------------
# One decomposition a fold for all values, from the moments of the fold and of
# the rows outside it.

# The fold of each row, a factor; NA in folds that the authors leave out, which
# lack rows of a moment.
iv_folds <- function(task) {
  folds <- task$control$folds
  rows <- task$rows
  n <- length(task$y)
  authors <- !is.null(task$preset)
  given <- length(folds) > 1L
  if (given) {
    of <- given_folds(folds, n, "rows")
    # In the order in which they come.
    of <- factor(of, unique(of))
  } else {
    count <- take(folds, count(2L))
    strata <- if (length(rows) == 1L || authors) rep(1L, n) else
      rows$d + 2L * rows$c
    of <- factor(make_folds(n, count, "blocks", strata), seq_len(count))
  }
  lacks <- lapply(rows, \(r) table(of[r]) %in% c(0L, sum(r)))
  bad <- levels(of)[Reduce(`|`, lacks)]
  if (length(bad) && (given || !authors || length(bad) == count)) {
    stop_input("'folds' must have rows of each moment in each fold and ",
               "outside it; they are lacking for fold '", bad[1L], "'")
  }
  if (given) {
    return(of)
  }
  warn_sorted(of, task)
  factor(of, setdiff(levels(of), bad))
}

# Rows in an order make folds of rows next to each other that are not alike.
sorted_below <- 1e-6

warn_sorted <- function(of, task) {
  columns <- c(list(y = matrix(task$y, dimnames = list(NULL, "y"))),
               lapply(task$maps, \(map) sample_raw(map$sample)))
  columns <- Filter(Negate(is.null), columns)
  # Of each moment its own rows.
  p <- unlist(unname(Map(\(x, name) {
    rows <- task$rows[[if (name %in% c("b", "c")) "c" else "d"]]
    apply(x[rows, , drop = FALSE], 2L, fold_p_value, of = of[rows])
  }, columns, names(columns))))
  worst <- which.min(p)
  if (p[worst] < sorted_below / length(p)) {
    column <- c(names(p)[worst], "")[1L]
    warn_kernmean(
      "the folds of rows next to each other are not alike",
      if (nzchar(column)) paste0(" in '", column, "'"), " (rows in some ",
      "order?), and penalties chosen by them may be too large; random ones ",
      "are folds = sample(rep_len(1:", nlevels(of), ", ", length(of), "))",
      kind = "folds"
    )
  }
}

# Of the F test that a column has the same mean in all folds.
fold_p_value <- function(x, of) {
  x <- x / power_below(max(abs(x)))
  x <- x - mean(x)
  of <- droplevels(of)
  between <- sum(rowsum(x, of)^2 / tabulate(of))
  k <- nlevels(of) - 1
  free <- length(x) - k - 1
  if (free < 1L || between <= 0) {
    return(1)
  }
  stats::pf(between / k / (max(sum(x^2) - between, 0) / free), k, free,
            lower.tail = FALSE)
}

# Held-out criteria: folds in rows, values in columns. `whole`: the moments of
# all rows.
held_out_scores <- function(task, whole, folds, grid) {
  n <- length(task$y)
  scores <- lapply_shown(split(seq_len(n), folds), \(rows) {
    held <- row_moments(task, rows)
    train <- moments_without(whole, held)
    kept <- replace(task$rows$d, rows, FALSE)
    mean <- if (task$center) mean(task$y[kept]) else 0
    system <- iv_system(task, train, ridges_of(task, train))
    mu <- grid * penalty_rule(task, train$n)$mu
    theta <- solve_system(system, mu, mean)$theta
    # r'Pr/t^2 of the t rows of the fold, P made anew from them.
    part <- \(of, coefficients, target) {
      moment <- held[[of]]
      root <- apply_root(task, moment, penalty_rule(task, moment$n, of)$lambda,
                         target - product(moment$with, coefficients))
      held$n / moment$n * colSums(root[[2L]]^2)
    }
    target <- held$d$target
    total <- part("d", theta$g, target[, 1L] - mean * target[, 2L])
    if (is_nested(task)) {
      total <- total + part("c", rbind(theta$g, theta$h), 0)
    }
    penalty_rule(task, held$n)$score * total / held$n^2
  }, task$control$progress && n >= shown_from)
  check_result(do.call(rbind, scores), "a held-out criterion",
               "'y' and of the blocks")
}

# --- What a fit cannot do ----------------------------------------------------

warn_linear <- function(task, blocks) {
  for (of in intersect(names(blocks), c("a", "b"))) {
    sample <- blocks[[of]]$sample
    kernel <- sample$kernel
    if (knows_points(sample) && is_linear(kernel) && kernel$offset == 0 &&
          !is_scaled(kernel) &&
          # The columns of dummies add up to a constant.
          max(abs(qr.resid(qr(sample$x), rep(1, sample$n)))) >= 1e-8) {
      warn_kernmean("the functions of kernel_linear() have no constant: that ",
                    "of '", task$called[[of]], "' is a line through ",
                    if (task$center) "(0, mean of y)" else "0",
                    "; kernel_poly(1) has one", kind = "linear")
    }
  }
  for (of in intersect(names(blocks), c("c", "d"))) {
    x <- blocks[[of]]$sample$x
    rows <- which(task$rows[[of]])
    if (!is.null(x) && length(rows) > 1L &&
          all(is_constant(x[rows, , drop = FALSE]))) {
      warn_kernmean("the instruments '", task$called[[of]], "' do not vary: ",
                    "they say nothing of the function", kind = "instruments")
    }
  }
}

# Where a projection keeps all directions the instruments say nothing.
warn_instruments <- function(task, ranks, lambda, moments) {
  for (of in names(lambda)[lambda == 0]) {
    n <- moments[[of]]$n
    if (ranks[[of]] > 0.9 * n && n > 1L) {
      warn_kernmean(
        "the projection on the instruments '", task$called[[of]], "' keeps ",
        ranks[[of]], " of ", n, " directions: they have ",
        if (ranks[[of]] < n) "hardly any" else "no", " effect, and the fit ",
        "only smooths its outcome; give a ridge, lambda",
        if (is_nested(task)) paste0("_", of), " > 0 or \"gcv\", discrete ",
        "instruments, 'landmarks', or a larger 'tol_instrument'",
        kind = "instruments"
      )
    } else if (of == "d" && !is_norm(task) && ranks[["a"]] >= moments$n &&
                 moments$n > 1L) {
      warn_kernmean(
        "the range of '", task$called[["a"]], "' has all ", moments$n,
        " directions: fitted values do not depend on it nor on its kernel, ",
        "and predictions interpolate; take penalty = \"norm\", 'landmarks', ",
        "or a larger 'tol_learner'", kind = "instruments"
      )
    }
  }
}

warn_border <- function(search, task) {
  given <- !is.null(task$mu) || !is.null(task$preset)
  end <- search$border
  if (isTRUE(search$highest) && !identical(end, "largest")) {
    warn_kernmean(
      "rule = \"", task$control$rule, "\" takes the largest penalty that was ",
      if (given) "given; try larger ones" else paste0(
        "tried: the instruments hardly tell the function from a constant, and ",
        "a flat fit does not mean that there is no effect; rule = \"min\" ",
        "takes the penalty of the smallest held-out criterion"
      ), kind = "border"
    )
  } else if (!is.null(end)) {
    warn_kernmean(
      "the held-out criterion is smallest at the ", end, " penalty that was ",
      "tried", if (search$extended) ", also of more values", ": it ",
      if (end == "largest") "finds nothing of the function in the data" else
        "wants no penalty", if (given) "; try more values", kind = "border"
    )
  }
}

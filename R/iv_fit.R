# Instrumental-variable estimators from the moments of features. A task is
#   maps      feature maps by block: a, d, and in nested fits b, c
#   y, w      outcome, multiplier (NULL: 1)
#   rows      list(d, c): the rows of each moment, logical; c is NULL in
#             sequential fits
#   penalty   "norm" or "l2"
#   tol       list(learner, instrument): below these shares of the largest
#             eigenvalue a direction counts as none
# With K = FF', an action P = LL' has the root L = F R^{-1}, R'R = F'F + lambda
# I (or F V S^{-1/2} for lambda = 0, F'F = VSV'), and each estimator is a ridge
# regression of L'y on L'F_A (norm) or on L'Q_A, Q_A an orthonormal basis of the
# range of F_A (l2): of moments alone, which add up over rows.

is_nested <- function(task) !is.null(task$maps$b)

# --- Moments -----------------------------------------------------------------

# Of some rows: list(n, d, c, range), d and c those of a moment (see
# action_moments()), range the F'F of the learners where the penalty needs it.
row_moments <- function(task, rows) {
  maps <- task$maps
  a <- \(i) map_features(maps$a, i)
  outcome <- \(i) cbind(task$y[i], 1)
  found <- list(n = length(rows))
  width <- max(vapply(maps, `[[`, numeric(1), "r"))
  found$d <- action_moments(maps$d, rows[task$rows$d[rows]], a, maps$a$r,
                            outcome, width)
  if (is_nested(task)) {
    weigh <- \(f, i) if (is.null(task$w)) f else f * task$w[i]
    both <- \(i) cbind(-weigh(a(i), i), map_features(maps$b, i))
    found$c <- action_moments(maps$c, rows[task$rows$c[rows]], both,
                              maps$a$r + maps$b$r, NULL, width)
  }
  if (task$penalty == "l2") {
    learners <- if (is_nested(task)) c("a", "b") else "a"
    found$range <- lapply(maps[learners], \(map) {
      sum_panels(rows, width, matrix(0, map$r, map$r), \(i) {
        cross(map_features(map, i))
      })
    })
  }
  found
}

# The moments of the instrument's features F with the columns Z of learners and
# with the targets: list(n, gram: F'F, with: F'Z, target, square: Z_j'Z_j).
action_moments <- function(map, rows, learner, columns, target, width) {
  empty <- list(gram = matrix(0, map$r, map$r),
                with = matrix(0, map$r, columns),
                target = matrix(0, map$r, 2L), square = numeric(columns))
  sums <- sum_panels(rows, width, empty, \(i) {
    f <- map_features(map, i)
    z <- learner(i)
    list(gram = cross(f), with = cross(f, z),
         target = if (is.null(target)) 0 else cross(f, target(i)),
         square = column_dots(z))
  })
  c(list(n = length(rows)), sums)
}

sum_panels <- function(rows, width, empty, value) {
  for (i in feature_panels(rows, width)) {
    found <- value(i)
    empty <- if (is.list(empty)) Map(`+`, empty, found) else empty + found
  }
  empty
}

# The moments of the rows that are left.
moments_without <- function(whole, part) {
  if (is.list(whole)) Map(moments_without, whole, part) else whole - part
}

# --- Small systems -----------------------------------------------------------

# R'^{-1} Z of the right sides Z = F'(...), with R'R = F'F + lambda I; without
# the ridge S^{-1/2} V'Z. list(rank, one for each right side).
apply_root <- function(gram, lambda, tolerance, ...) {
  rights <- list(...)
  if (lambda > 0) {
    lower <- cholesky(gram, lambda)
    if (!is.null(lower)) {
      return(c(list(rank = nrow(gram)),
               lapply(rights, \(z) solve_lower(lower, z))))
    }
  }
  s <- kept_spectrum(gram, if (lambda > 0) 0 else tolerance)
  factor <- 1 / sqrt(s$values + lambda)
  c(list(rank = length(factor)),
    lapply(rights, \(z) factor * cross(s$vectors, z)))
}

# The eigenpairs above a share of the largest value.
kept_spectrum <- function(gram, tolerance) {
  n <- nrow(gram)
  found <- .Call(C_r_eigen, gram, n)
  kept <- found$values > max(tolerance * found$values[1L], 0)
  list(values = found$values[kept],
       vectors = found$vectors[, kept, drop = FALSE])
}

instrument_tolerance <- function(task, n) {
  if (is.null(task$tol$instrument)) {
    n * .Machine$double.eps
  } else {
    task$tol$instrument
  }
}

# The regression of an estimator: list(x, t: r x 2, the second column that of
# the constant 1; first: the rows of the first moment; bases: what turns its
# coefficients into those of features, NULL for the identity; ranks). lambda:
# list(d, c). ratio: mu_h/mu_g; the columns of h are scaled by its root.
iv_system <- function(task, moments, lambda, ratio = 1) {
  bases <- lapply(moments$range, \(gram) {
    s <- kept_spectrum(gram, task$tol$learner)
    s$vectors / rep(sqrt(s$values), each = nrow(gram))
  })
  root <- \(moment, lambda) {
    found <- apply_root(moment$gram, lambda,
                        instrument_tolerance(task, moment$n),
                        moment$with, moment$target)
    scale <- sqrt(moments$n / moment$n)
    list(rank = min(found[[1L]], moment$n), x = scale * found[[2L]],
         t = scale * found[[3L]])
  }
  onto <- \(x, base) if (is.null(base)) x else product(x, base)
  d <- root(moments$d, lambda$d)
  x <- onto(d$x, bases$a)
  t <- d$t
  ranks <- c(a = ncol(x), d = d$rank)
  if (is_nested(task)) {
    c <- root(moments$c, lambda$c)
    own <- seq_len(task$maps$a$r)
    g <- onto(c$x[, own, drop = FALSE], bases$a)
    h <- onto(c$x[, -own, drop = FALSE], bases$b) / sqrt(ratio)
    ranks <- c(a = ncol(x), b = ncol(h), c = c$rank, d = d$rank)
    x <- rbind(cbind(x, matrix(0, nrow(x), ncol(h))), cbind(g, h))
    t <- rbind(t, matrix(0, nrow(c$x), 2L))
  }
  list(x = x, t = t, first = nrow(d$x), bases = bases, ranks = ranks,
       ratio = ratio, learner = ranks[["a"]])
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
  u <- if (length(mu) == 1L) {
    solve_factored(lower, right)
  } else {
    found <- .Call(C_r_eigen, square, nrow(square))
    v <- found$vectors
    product(v, drop(cross(v, right)) /
              outer(pmax(found$values, 0), mu, `+`))
  }
  theta <- if (dual) cross(x, u) else u
  left <- as.vector(t) - product(x, theta)
  first <- seq_len(nrow(x)) <= system$first
  list(theta = spread_theta(system, theta),
       criterion = rbind(colSums(left[first, , drop = FALSE]^2),
                         colSums(left[!first, , drop = FALSE]^2)))
}

# Coefficients of the regression as those of the features of each function.
spread_theta <- function(system, theta) {
  own <- seq_len(system$learner)
  onto <- \(base, theta) if (is.null(base)) theta else product(base, theta)
  g <- onto(system$bases$a, theta[own, , drop = FALSE])
  if (nrow(theta) == length(own)) {
    return(list(g = g))
  }
  list(g = g, h = onto(system$bases$b, theta[-own, , drop = FALSE] /
                         sqrt(system$ratio)))
}

# --- Penalty of the first stage ----------------------------------------------

first_stage_grid <- 10^seq(-6, 0, length.out = 25)

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
  all <- sum(total > 0)
  grid <- sum(s$values) * first_stage_grid
  gcv <- vapply(grid, \(lambda) {
    down <- s$values + lambda
    left <- all - sum(explained * (s$values + 2 * lambda) / down^2)
    max(left, 0) / n / max(1 - sum(s$values / down) / n, 0)^2
  }, numeric(1))
  data.frame(lambda = grid, gcv = gcv)
}

# --- What the penalties are for a number of rows -----------------------------

# Penalties in units of the matrix grow with the number of rows: `lambda(n, of)`
# and `mu(grid, n)` give those for n rows, `score(n)` what the authors multiply
# the criterion of n rows by. grid: values of mu for all rows, or alpha_scale.
own_rules <- function(task, lambda) {
  n <- length(task$y)
  sizes <- lapply(task$rows, sum)
  norm <- task$penalty == "norm"
  list(
    lambda = \(n, of) lambda[[of]] * n / sizes[[of]],
    mu = \(grid, rows) if (norm) grid * rows / n else grid,
    score = \(rows) 1
  )
}

# The penalties of the authors' code. In units of the matrix, delta =
# delta_scale n^-delta_exp and alpha = alpha_scale delta^4:
#   rkhs_iv(), "norm"         lambda = n delta^2, mu = alpha / (2 n delta^2)
#   rkhs_iv_nested(), "norm"  both lambda = 1, both mu = alpha
#   "l2"                      lambda = 0, mu = alpha
# n is that of the rows at hand: of a fold's complement for its fit, of the fold
# for its criterion. alpha_scale NULL: 60 for Estimator 1, 1 for the others.
nnpiv_preset <- list(delta_scale = 5, delta_exp = 0.4, alpha_scale = NULL)

preset_line <- function(preset, n = NULL) {
  paste0(
    "delta = ", format_number(preset$delta_scale), " n^-",
    format_number(preset$delta_exp),
    if (!is.null(n)) paste0(" = ", format_number(preset_delta(preset, n))),
    ", alpha = ", if (is.null(preset$alpha_scale)) "alpha_scale" else
      format_several(preset$alpha_scale), " delta^4"
  )
}

preset_delta <- function(preset, n) preset$delta_scale * n^-preset$delta_exp

preset_rules <- function(task, preset) {
  delta <- \(n) preset_delta(preset, n)
  first <- task$penalty == "norm" && !is_nested(task)
  list(
    lambda = if (first) {
      \(n, of) n * delta(n)^2
    } else {
      \(n, of) if (task$penalty == "norm") 1 else 0
    },
    mu = \(grid, n) {
      grid * delta(n)^4 / (if (first) 2 * n * delta(n)^2 else 1)
    },
    score = \(n) if (first) 2 * n * delta(n)^2 else 1
  )
}

# 1/(2 gamma) = the median distance of all pairs, each point with itself
# included.
nnpiv_bandwidth <- function(x) {
  n <- nrow(x)
  check_memory(n, n, "give a kernel", what = "the authors' bandwidth")
  # n zeros and each pair twice.
  at <- ceiling((unique(c(floor(n^2 / 2 + 0.5), floor(n^2 / 2 + 1))) - n) / 2)
  d <- as.vector(stats::dist(x))
  middle <- if (n > 2L) mean(sort(d, partial = at)[at]) else 0
  if (middle <= 0) {
    stop_input("the authors' bandwidth, from the median distance, must be ",
               "positive; at least half of the distances are 0: give a kernel")
  }
  sqrt(middle)
}

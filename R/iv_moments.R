# The moments of features that instrumental-variable fits are made of: sums over
# rows, which add up. The task is that of iv_fit.R.

is_nested <- \(task) "b" %in% names(task$called)
is_norm <- \(task) task$penalty == "norm"

preset_delta <- \(preset, n) preset$delta_scale * n^-preset$delta_exp

# Of some rows: list(n, d, c, range), d and c those of a moment (see
# action_moments()), range the F'F of the learners where the penalty needs it.
row_moments <- function(task, rows) {
  learners <- intersect(c("a", "b"), names(task$maps))
  c(list(n = sum(row_weights(task, rows))),
    sapply(names(task$rows), \(of) action_moments(task, rows, of),
           simplify = FALSE),
    if (!is_norm(task)) list(range = lapply(task$maps[learners], \(map) {
      sum_panels(task, rows, \(i) list(cross(map_features(map, i))))[[1L]]
    })))
}

# The moments of the instrument's features F with the columns of a moment's
# regression, over its rows among these: list(n, gram: F'F, with: F'[Z, t, C],
# square: Z_j'Z_j, design: C'[t, C]), Z the features of learners, t the target,
# C what is partialled out, 1 by itself. The second moment has zeros for the
# last two.
action_moments <- function(task, rows, of) {
  rows <- rows[task$rows[[of]][rows]]
  c(list(n = sum(row_weights(task, rows))), sum_panels(task, rows, \(i) {
    f <- task_features(task, of, i)
    z <- task_features(task, "a", i)
    target <- task_targets(task, i)
    if (of == "c") {
      if (!is.null(task$w)) z <- task$w[i] * z
      z <- cbind(-z, task_features(task, "b", i))
      target[] <- 0
    }
    list(gram = cross(f), with = cross(f, cbind(z, target)),
         square = column_dots(z),
         design = cross(take_columns(target, -1L), target))
  }))
}

row_weights <- \(task, i) if (is.null(task$weights)) rep(1L, length(i)) else
  task$weights[i]

# Features of rows. Where a design is partialled out (`partial`: its
# coefficients by block, of all rows), they are its residuals, those of the
# learner after its linear columns, `straight`, and rows have the roots of their
# weights.
task_features <- function(task, of, i) {
  f <- map_features(task$maps[[of]], i)
  if (is.null(task$partial)) {
    return(f)
  }
  if (of == "a") f <- cbind(take_rows(task$straight, i), f)
  f <- f - product(take_rows(task$design, i), task$partial[[of]])
  f * sqrt(row_weights(task, i))
}

task_targets <- function(task, i) {
  if (is.null(task$partial)) {
    return(cbind(task$y[i], 1))
  }
  cbind(task$y[i], take_rows(task$design, i)) * sqrt(row_weights(task, i))
}

sum_panels <- function(task, rows, value) {
  sums <- NULL
  for (i in feature_panels(rows, map_width(task))) {
    sums <- if (is.null(sums)) value(i) else Map(`+`, sums, value(i))
  }
  sums
}

map_width <- \(task) max(vapply(task$maps, `[[`, 1, "r"))

# The moments of the rows of two parts, or of those that are left.
moments_with <- function(one, other, join = `+`) {
  if (is.list(one)) Map(moments_with, one, other, list(join)) else
    join(one, other)
}

# --- Small systems -----------------------------------------------------------

# The root of G + lambda I for the Gram matrix, or moment, of n rows of an
# instrument, without the ridge that of G where it is not 0: list(rank, times:
# R'^{-1} z, back: R^{-1} z).
instrument_root <- function(task, gram, n, of) {
  lambda <- penalty_rule(task, n, of)$lambda
  lower <- if (lambda > 0) cholesky(gram, lambda)
  if (!is.null(lower)) {
    return(list(rank = min(nrow(lower), n),
                times = \(z) solve_lower(lower, z),
                back = \(z) solve_lower(lower, z, transpose = TRUE)))
  }
  tolerance <- if (lambda > 0) 0 else task$control$tol_instrument
  tolerance <- tolerance %||% (n * .Machine$double.eps)
  s <- kept_spectrum(gram, tolerance)
  root <- sqrt(s$values + lambda)
  list(rank = min(length(root), n), times = \(z) cross(s$vectors, z) / root,
       back = \(z) product(s$vectors, z / root))
}

# L'z of a moment for right sides F'z, scaled to all rows: list(rank, times).
action_root <- function(task, moments, of) {
  moment <- moments[[of]]
  root <- instrument_root(task, moment$gram, moment$n, of)
  scale <- sqrt(moments$n / moment$n)
  list(rank = root$rank, times = \(right) scale * root$times(right))
}

# (G + lambda I)^-1 times the right sides, without the ridge G^+.
solve_action <- function(task, gram, n, of, right) {
  root <- instrument_root(task, gram, n, of)
  root$back(root$times(right))
}

# The coefficients of the function of the instruments that is farthest from
# orthogonal to the residuals v = g - y (or h - wg): the maximizer of mean(2vf -
# f^2) - lambda |f|^2/n over the rows of the moment, (F'F + lambda I)^-1 F'v.
adversary_theta <- function(task, moment, of, theta, mean) {
  solve_action(task, moment$gram, moment$n, of, product(moment$with, as.matrix(
    c(theta$g, if (of == "c") theta$h, -1, mean)
  )))
}

# Without a base the identity.
times <- \(x, y) if (is.null(x)) y else if (is.null(y)) x else product(x, y)

first_stage_grid <- 10^seq(-6, 0, length.out = 25)

# The ridge by generalized cross-validation of the regression of the learners'
# features on the instrument, in units of the trace of its Gram matrix: data
# frame(lambda, gcv). Of the learners, the first with `first` features, each
# counts alike, whatever the units of its kernel are.
first_stage <- function(moment, first, design = NULL, straight = 0L) {
  n <- moment$n
  s <- kept_spectrum(moment$gram, 0)
  columns <- seq_along(moment$square)
  columns <- columns[columns > straight]
  learner <- 1 + (columns > straight + first)
  total <- tapply(moment$square[columns], learner, sum)
  weight <- ifelse(total > 0, 1 / total, 0)[learner]
  explained <- drop(product(
    cross(s$vectors, take_columns(moment$with, columns))^2, as.vector(weight)
  ))
  grid <- sum(s$values) * if (is.null(design)) first_stage_grid else
    c(first_stage_grid, 10^(1:4 / 4))
  down <- outer(s$values, grid, `+`)
  left <- sum(total > 0) -
    colSums(explained * (s$values + rep(2 * grid, each = nrow(down))) / down^2)
  free <- if (is.null(design)) 0 else ncol(design)
  freedom <- pmax(1 - (free + colSums(s$values / down)) / n, 0)
  data.frame(lambda = grid, gcv = pmax(left, 0) / n / freedom^2)
}

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

check_penalty <- function(square, mu, failed = FALSE, ratio = 1) {
  rounding <- nrow(square) * .Machine$double.eps * max(diag(square))
  if (failed || !all(mu > rounding)) {
    stop_kernmean("numeric", "the penalty ",
                  format_number(min(mu) * min(1, ratio)),
                  " is lost in the rounding of the normal equations; take a ",
                  "larger one")
  }
}

# The moments of features that instrumental-variable fits are made of: sums over
# rows, which add up, so that a fold is taken away by a subtraction.

# The moments of some rows: n, their number or the sum of their weights; d and c
# as action_moments() has them; and, where the penalty needs it, the Gram matrix
# F'F of the features of each learner, `range`.
row_moments <- function(task, rows) {
  learners <- intersect(c("a", "b"), names(task$maps))
  c(list(n = sum(row_weights(task, rows))),
    sapply(names(task$rows), \(of) action_moments(task, rows, of),
           simplify = FALSE),
    if (!is_norm(task)) list(range = lapply(task$maps[learners], \(map) {
      sum_panels(task, rows, \(i) list(cross(map_features(map, i))))[[1L]]
    })))
}

# The sums of the moment d or c over those of the rows that it holds for. With F
# the features of its instruments, Z those of the learners, t the target and C
# the design (1 in classic fits): n, gram = F'F, with = F'[Z, t, C], square, the
# diagonal of Z'Z, and design = C'[t, C]. The moment c has zeros in place of a
# target and a design.
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

# The features of rows i of a block, as the regression has them. If a design is
# partialled out, the linear columns come before the features of the learner,
# all are residuals on the design, and rows are multiplied by the roots of their
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

# The outcome and the design of rows i, with the roots of their weights.
task_targets <- function(task, i) {
  if (is.null(task$partial)) {
    return(cbind(task$y[i], 1))
  }
  cbind(task$y[i], take_rows(task$design, i)) * sqrt(row_weights(task, i))
}

# Adds up over panels of rows the matrices that `value` makes of a panel.
sum_panels <- function(task, rows, value) {
  sums <- NULL
  for (i in feature_panels(rows, map_width(task))) {
    sums <- if (is.null(sums)) value(i) else Map(`+`, sums, value(i))
  }
  sums
}

# Adds up the moments of two sets of rows. With join = `-` it takes away some
# rows and returns the moments of those that are left.
moments_with <- function(one, other, join = `+`) {
  if (is.list(one)) Map(moments_with, one, other, list(join)) else
    join(one, other)
}

# --- Small systems -----------------------------------------------------------

# Returns a root R with R'R = G + lambda I, where G is the Gram matrix of n rows
# of an instrument. Without a ridge, R is the root of G without the eigenvalues
# that are 0. `rank` is the rank of R; the functions `times` and `back` return
# R'^{-1} z and R^{-1} z.
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

# The root of the action P = LL' of a moment: its function `times` returns L'z
# for right sides F'z, scaled from the rows of the moment to all rows.
action_root <- function(task, moments, of) {
  moment <- moments[[of]]
  root <- instrument_root(task, moment$gram, moment$n, of)
  scale <- sqrt(moments$n / moment$n)
  list(rank = root$rank, times = \(right) scale * root$times(right))
}

# Returns (G + lambda I)^-1 times the right sides, or G^+ times them if there is
# no ridge.
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

first_stage_grid <- 10^seq(-6, 0, length.out = 25)

# Returns the ridges that are tried for an instrument and their scores by
# generalized cross-validation, a data frame of lambda and gcv. The features of
# the learners are regressed on those of the instrument, and the ridges are in
# units of the trace of its Gram matrix. Each learner has the same weight,
# whatever the units of its kernel are. The first learner has `first` features
# after `straight` linear columns, which do not count.
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

# Returns the task with a number for each ridge that is to be chosen, by the
# moments of all its rows.
settle_ridges <- function(task) {
  check_result(task$whole, "a moment of the features", "'y' and of the blocks")
  searched <- names(Filter(\(ridge) identical(ridge, "gcv"), task$lambda))
  task$first_stage <- lapply(task$whole[searched], first_stage, task$maps$a$r,
                             task$design, ncol(task$straight))
  check_result(task$first_stage, "the criterion of the first stage",
               "'x' and 'z'")
  task$lambda[searched] <- lapply(task$first_stage, \(stage) {
    stage$lambda[which.min(stage$gcv)]
  })
  task
}

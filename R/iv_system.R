# The ridge regressions that estimates and held-out scores solve, and how they
# are solved.

# A ridge regression, min |t - X theta|^2 + mu |theta|^2. With K = FF' the
# action P = LL' of an instrument has the root L = F R^{-1}, see
# instrument_root(), and the rows of X are L'Z of each moment, which follow from
# the moments of features alone.
#   x, t     X and t
#   square, right   the normal equations X'X and X't, of method "weak" less what
#            is corrected; where X is wide, XX' and t
#   spectrum   of square, or NULL where it is not known
#   units    the scales of the columns in square
#   first    how many rows are the first moment's
#   size     how many columns are those of g
#   bases    matrices that turn the coefficients of g and of h into those of
#            their features; NULL is the identity
#   ratio    mu_h/mu_g, by whose root the columns of h are divided
#   mean     the coefficients of the design that is taken out of y
#   ranks    by block
new_iv_system <- function(x, t, square, right, size, mean, ranks,
                          spectrum = NULL, units = 1, first = length(t),
                          bases = NULL, ratio = 1, wide = FALSE) {
  list(x = x, t = t, square = square, right = as.matrix(right), wide = wide,
       spectrum = spectrum, units = units, first = first, size = size,
       bases = bases, ratio = ratio, mean = mean, ranks = ranks)
}

# The system of those rows whose sums `moments` has. `first` says which rows of
# the first moment are among them.
iv_system <- function(task, moments, first = task$rows$d) UseMethod("iv_system")

iv_system.iv_classic <- function(task, moments, first = task$rows$d) {
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
  above <- roots$d$x
  x <- times(take_columns(above, of_g), bases$a)
  t <- above[, ncol(above) - 1L] - mean * above[, ncol(above)]
  rows <- length(t)
  size <- ncol(x)
  ranks <- c(a = size, d = roots$d$rank)
  if (is_nested(task)) {
    below <- roots$c$x
    of_h <- seq_len(ncol(below) - 2L)[-of_g]
    h <- times(take_columns(below, of_h), bases$b) / sqrt(task$ratio)
    ranks <- c(ranks["a"], b = ncol(h), c = roots$c$rank, ranks["d"])
    x <- rbind(cbind(x, matrix(0, rows, ncol(h))),
               cbind(times(take_columns(below, of_g), bases$a), h))
    t <- c(t, numeric(nrow(below)))
  }
  wide <- nrow(x) <= ncol(x)
  new_iv_system(x, t, if (wide) tcross(x) else cross(x),
                if (wide) t else cross(x, t), size, mean, ranks, first = rows,
                bases = bases, ratio = task$ratio, wide = wide)
}

# Returns xy; a basis that is NULL is the identity.
times <- \(x, y) if (is.null(x)) y else if (is.null(y)) x else product(x, y)

# Returns the solution for each mu, multiplied by `keep`: theta, the
# coefficients of the features of g and h, with a column for each mu; and
# criterion, |t - X theta|^2, with a row for each moment.
iv_solve <- function(system, mu, keep = 1) {
  theta <- keep * (if (is.null(system$spectrum) && length(mu) == 1L) {
    factored_theta(system, mu)
  } else {
    check_penalty(system, mu)
    spectral_theta(system, mu)
  })
  squares <- (system$t - product(system$x, theta))^2
  first <- seq_along(system$t) <= system$first
  of_g <- seq_len(nrow(theta)) <= system$size
  list(theta = c(
    list(g = times(system$bases$a, take_rows(theta, of_g))),
    if (!all(of_g)) {
      list(h = times(system$bases$b,
                     take_rows(theta, !of_g) / sqrt(system$ratio)))
    }
  ), criterion = rbind(colSums(take_rows(squares, first)),
                       colSums(take_rows(squares, !first))))
}

# theta for one mu, by a Cholesky factor.
factored_theta <- function(system, mu) {
  lower <- cholesky(system$square, mu)
  check_penalty(system, mu, is.null(lower))
  to_columns(system, solve_factored(lower, system$right))
}

# theta for each mu, by the spectrum; negative eigenvalues count as 0.
spectral_theta <- function(system, mu) {
  s <- system$spectrum
  s <- s %||% .Call(C_r_eigen, system$square, nrow(system$square))
  ridge <- new_ridge(pmax(s$values, 0), cross(s$vectors, system$right))
  to_columns(system, product(s$vectors, ridge_solve(ridge, mu)))
}

# Turns solutions of the normal equations into coefficients of the columns of X.
to_columns <- function(system, solved) {
  theta <- system$units * solved
  if (system$wide) cross(system$x, theta) else theta
}

check_penalty <- function(system, mu, failed = FALSE) {
  square <- system$square
  rounding <- nrow(square) * .Machine$double.eps * max(diag(square))
  if (failed || !all(mu > rounding)) {
    stop_kernmean("numeric", "the penalty ",
                  format_number(min(mu) * min(1, system$ratio)),
                  " is lost in the rounding of the normal equations; take a ",
                  "larger one")
  }
}

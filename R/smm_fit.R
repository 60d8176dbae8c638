# Machines on a Gram matrix of bags: kernlab's solver of support vector
# machines, kernel ridge regression, and the choice of what they leave open. A
# machine is list(coefficients: M x P, intercept: P): decision values are L
# coefficients + intercept for kernel values L of new bags.

# What is to be learned, a problem: list(type, y: of each bag, a factor or
# standardized numbers, NULL for novelty, center, unit).

fit_gram <- function(g, problem, par) {
  if (problem$type == "ridge") {
    fit_ridge(ridge_system(g), problem$y, par$ridge)
  } else {
    fit_machine(g$K, problem, par)
  }
}

# On a kernel matrix kernlab's shrinking heuristic can stop at a wrong solution,
# after seconds; without it these problems take milliseconds.
# It keeps the values in single precision, and what is infinite there ends R:
# very large or small ones are taken in another unit, in which a machine with a
# cost has other coefficients and one without another intercept.
solve_svm <- function(k, ..., cost = NULL) {
  top <- max(abs(k))
  unit <- if (top > 1e30 || top < 1e-30) power_below(top) else 1
  arguments <- list(
    kernlab::as.kernelMatrix(unname(k) / unit), ..., shrinking = FALSE,
    fit = FALSE
  )
  if (!is.null(cost)) arguments$C <- cost * unit
  found <- tryCatch(do.call(kernlab::ksvm, arguments), error = \(e) {
    stop_kernmean("numeric", "the machine cannot be found by kernlab, for ",
                  "kernel values of at most ", signif(top, 3L),
                  if (!is.null(cost)) paste(" at cost", signif(cost, 3L)),
                  ": ", conditionMessage(e))
  })
  coef <- kernlab::coef(found)
  b <- kernlab::b(found)
  if (unit != 1 && is.null(cost)) {
    b <- b * unit
  } else if (unit != 1) {
    coef <- if (is.list(coef)) lapply(coef, `/`, unit) else coef / unit
  }
  list(index = kernlab::alphaindex(found), coef = coef, b = b)
}

# Of classes one machine for each pair, positive for the second.
fit_machine <- function(k, problem, par) {
  m <- nrow(k)
  y <- problem$y
  # Numbers within one tube have no support vectors.
  if (problem$type == "regression" && diff(range(y)) <= 2 * par$epsilon) {
    return(list(coefficients = matrix(0, m, 1L), intercept = mean(range(y))))
  }
  found <- switch(problem$type,
    classification = solve_svm(k, y, type = "C-svc", cost = par$cost),
    regression = solve_svm(k, y, type = "eps-svr", cost = par$cost,
                           epsilon = par$epsilon),
    novelty = solve_svm(k, type = "one-svc", nu = par$nu)
  )
  pairs <- if (is.factor(y)) utils::combn(levels(y), 2L)
  coefficients <- matrix(0, m, max(1L, ncol(pairs)))
  if (is.null(pairs)) {
    coefficients[found$index] <- found$coef
  } else {
    for (p in seq_len(ncol(pairs))) {
      coefficients[found$index[[p]], p] <- found$coef[[p]]
    }
    colnames(coefficients) <- paste0(pairs[2L, ], "/", pairs[1L, ])
  }
  list(coefficients = coefficients, intercept = -found$b)
}

machine_values <- function(machine, values) {
  out <- product(unname(values), machine$coefficients) +
    rep(machine$intercept, each = nrow(values))
  dimnames(out) <- list(rownames(values), colnames(machine$coefficients))
  out
}

# What kernlab leaves on the border is within its tolerance of 0.
is_novel <- function(decision) decision < -1e-3

# The class that most pairs vote for, the first of several.
vote <- function(decision, levels) {
  pairs <- utils::combn(length(levels), 2L)
  votes <- matrix(0, nrow(decision), length(levels))
  for (p in seq_len(ncol(pairs))) {
    second <- decision[, p] > 0
    votes[, pairs[1L, p]] <- votes[, pairs[1L, p]] + !second
    votes[, pairs[2L, p]] <- votes[, pairs[2L, p]] + second
  }
  factor(levels[max.col(votes, "first")], levels)
}

# --- Ridge regression --------------------------------------------------------

# The free intercept centers the matrix: alpha = (H^c + lambda I)^{-1} (y - mean
# y), whose sum is 0. list(values, vectors: of H^c, means: of the rows of H),
# kept in the gram of H.
ridge_system <- function(g) {
  if (is.null(g$ridge)) {
    found <- center_matrix(unname(g$K))
    centered <- new_gram(found$k)
    remember(centered, scale = max(abs(g$K)))
    s <- spectrum(centered, "vectors")
    # Without the constant vector, which is mixed into others of eigenvalue 0.
    vectors <- s$vectors - rep(colMeans(s$vectors), each = nrow(g$K))
    remember(g, ridge = list(values = s$values, vectors = vectors,
                             means = found$at))
  }
  g$ridge
}

# What is not positive is 0, also for lambda = Inf.
ridge_inverse <- function(system, lambda) {
  shifted <- system$values + lambda
  ifelse(shifted > 0, 1 / shifted, 0)
}

ridge_weights <- function(system, y, lambda) {
  along <- cross(system$vectors, matrix(y - mean(y)))
  product(system$vectors, ridge_inverse(system, lambda) * along)
}

fit_ridge <- function(system, y, lambda) {
  alpha <- ridge_weights(system, y, lambda)
  list(coefficients = alpha, intercept = mean(y) - sum(system$means * alpha))
}

# Exact leave-one-out residuals, the intercept fitted anew with each: alpha_i
# over the diagonal of (H^c + lambda I)^{-1} without the constant vector.
ridge_residuals <- function(system, y, lambda) {
  n <- length(y)
  if (lambda == Inf) {
    return((y - mean(y)) * n / (n - 1))
  }
  diagonal <- drop(system$vectors^2 %*% ridge_inverse(system, lambda))
  drop(ridge_weights(system, y, lambda)) / diagonal
}

# list(lambda, score: a table, minimum, border)
choose_ridge <- function(system, y) {
  score <- \(path) {
    vapply(path, \(lambda) mean(ridge_residuals(system, y, lambda)^2),
           numeric(1))
  }
  top <- system$values[1L]
  if (!(top > 0)) {
    return(list(lambda = Inf, score = NULL, border = TRUE,
                minimum = score(Inf)))
  }
  search_lambda(score, top)
}

# --- Cross-validation --------------------------------------------------------

# The fold of each bag, those drawn with the classes' shares.
bag_folds <- function(folds, problem, m) {
  if (m < 2L) {
    stop_input("'bags' must be at least 2 to choose among several values by ",
               "cross-validation, not 1")
  }
  classes <- is.factor(problem$y)
  of <- if (length(folds) > 1L) {
    as.integer(given_folds(folds, m, "bags"))
  } else {
    make_folds(m, folds, "drawn", if (classes) problem$y else rep(1L, m))
  }
  if (classes) {
    counts <- table(problem$y, of)
    lost <- which(counts == rowSums(counts), arr.ind = TRUE)
    if (nrow(lost)) {
      stop_input("'folds' must leave bags of each class outside each fold; ",
                 "class '", rownames(counts)[lost[1L, 1L]], "' has none ",
                 "outside fold ", lost[1L, 2L])
    }
  }
  of
}

# The losses of all bags, each left out with its fold: a matrix with a column
# for each row of `grid`, what the machine leaves open.
left_out_losses <- function(k, problem, grid, folds) {
  losses <- matrix(0, nrow(k), nrow(grid))
  for (f in unique(folds)) {
    out <- folds == f
    inside <- problem
    inside$y <- problem$y[!out]
    for (i in seq_len(nrow(grid))) {
      machine <- fit_machine(k[!out, !out, drop = FALSE], inside,
                             grid[i, , drop = FALSE])
      value <- machine_values(machine, k[out, !out, drop = FALSE])
      losses[out, i] <- machine_loss(value, problem, out)
    }
  }
  losses
}

# Wrong classes, squared errors, normal bags that are refused.
machine_loss <- function(value, problem, rows) {
  switch(problem$type,
    classification = vote(value, levels(problem$y)) != problem$y[rows],
    novelty = is_novel(value[, 1L]),
    (value[, 1L] - problem$y[rows])^2
  )
}

# A table of what was tried with one kernel: the columns of `grid`, score, se.
score_machines <- function(g, problem, grid, folds) {
  if (problem$type == "ridge") {
    system <- ridge_system(g)
    found <- if (is.na(grid$ridge)) {
      choose_ridge(system, problem$y)
    } else {
      list(lambda = grid$ridge,
           minimum = mean(ridge_residuals(system, problem$y, grid$ridge)^2))
    }
    return(data.frame(ridge = found$lambda, score = found$minimum))
  }
  losses <- left_out_losses(g$K, problem, grid, folds)
  tried <- colnames(grid) %in% c("cost", "nu")
  data.frame(grid[, tried, drop = FALSE], mean_losses(losses))
}

# The row that is chosen: the smallest score; of equal ones the bandwidth that
# is nearest to `median`, then that of level 2, then the smallest cost. For
# novelty the rule of Tax and Mueller: the narrowest kernel that refuses no more
# normal bags than some nu lets expect, and the smallest such nu.
choose_row <- function(table, type, m, median) {
  wide <- ifelse(is.na(table$bandwidth), 0, table$bandwidth)
  if (type == "novelty") {
    spread <- pmax(table$nu * (1 - table$nu), .Machine$double.eps)
    over <- (table$score - table$nu) / sqrt(spread / m)
    consistent <- over <= 2
    if (!any(consistent)) {
      best <- which.min(over)
      warn_kernmean("every kernel that was tried refuses more left-out bags ",
                    "than 'nu' lets expect; of new normal bags some ",
                    round(100 * table$score[best]), "% will be refused",
                    kind = "novelty")
      return(best)
    }
    return(order(!consistent, table$level, wide, table$nu)[1L])
  }
  away <- if (length(median) == 1L) abs(log(wide / median)) else 0 * wide
  last <- if (is.null(table$cost)) wide else table$cost
  order(signif(table$score, 10L), signif(away, 10L), abs(log(table$level)),
        last)[1L]
}

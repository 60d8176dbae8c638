# The estimators behind kme(): arguments, what they need of the data, targets,
# weights, and the selection of lambda.

# --- Arguments -------------------------------------------------------------

check_estimator <- function(estimator, name = "estimator") {
  choices <- c("kme", "skmse", "fkmse", "mkme", "mmkme")
  if (is.character(estimator) && length(estimator) == 1L) {
    estimator <- tolower(gsub("-", "", estimator))
    if (identical(estimator, "rkmse")) {
      return("skmse")
    }
  }
  check_choice(estimator, choices, name)
}

estimator_names <- c(kme = "KME", skmse = "S-KMSE", fkmse = "F-KMSE",
                     mkme = "MKME", mmkme = "MMKME")

# The selection rule, or NULL where there is nothing to select; and whether the
# other arguments go with the estimator.
check_select <- function(select, estimator, lambda, target, weights, noise) {
  marginal <- estimator %in% marginal_estimators
  if (!is.null(noise) && !marginal) {
    stop_input(
      "'noise' must be NULL for estimator \"", estimator,
      "\"; choose estimator = \"mkme\" or \"mmkme\""
    )
  }
  for (name in if (marginal) c("lambda", "target")) {
    if (!is.null(get(name))) {
      stop_input(
        "'", name, "' must be NULL for estimator \"", estimator,
        "\", which takes 'noise' and shrinks towards nothing"
      )
    }
  }
  if (estimator == "kme") {
    for (name in c("lambda", "select", "target")) {
      if (!is.null(get(name))) {
        stop_input(
          "'", name, "' must be NULL for estimator \"kme\", the average; ",
          "choose estimator = \"skmse\" or \"fkmse\""
        )
      }
    }
    return(NULL)
  }
  if (!is.null(weights)) {
    stop_input(
      "'weights' must be NULL for estimator \"", estimator,
      "\"; a user's own weights are an embedding as it is"
    )
  }
  if (!is.null(noise)) {
    if (!is.null(select)) {
      stop_input("'select' must be NULL when 'noise' is given")
    }
    return(NULL)
  }
  if (!is.null(lambda)) {
    check_number(lambda, "lambda", finite = FALSE)
    if (!is.null(select)) {
      stop_input("'select' must be NULL when 'lambda' is given")
    }
    return(NULL)
  }
  choices <- switch(estimator,
    skmse = c("loocv", "plugin"),
    fkmse = c("loocv", "gcv", "printed"),
    "loocv"
  )
  select <- if (is.null(select)) {
    choices[1L]
  } else {
    check_choice(select, choices, "select")
  }
  if (!is.null(target) && select %in% c("gcv", "printed")) {
    stop_input(
      "'target' must be NULL for select = \"", select, "\"; use \"loocv\""
    )
  }
  select
}

# What the estimators need of the data: list(n, x, gram, kernel, rows, rho,
# varrho), rows the row means of K.
check_sample <- function(x, kernel, target, estimator) {
  if (inherits(x, "gram")) {
    if (!is.null(kernel)) {
      stop_input("'kernel' must not be given when 'x' is a gram")
    }
    check_definite(x$kernel)
    rows <- rowMeans(x$K)
    return(list(
      n = nrow(x$K), x = x$x, gram = x, kernel = x$kernel, rows = rows,
      rho = max(0, mean(rows)), varrho = mean(diag(x$K))
    ))
  }
  if (is.null(kernel)) {
    kernel <- if (inherits(target, "kme")) target$kernel
    kernel <- if (is.null(kernel)) kernel_rbf() else kernel
  }
  check_definite(kernel)
  if (estimator == "fkmse" && kernel$family == "function") {
    # A user's function is called once for each value.
    g <- gram(x, kernel)
    sample <- check_sample(g, NULL, target, estimator)
    sample["gram"] <- list(NULL)
    return(c(sample, formed = g))
  }
  x <- check_data(x)
  warn_symmetric(x)
  kernel <- fit_kernel(kernel, x)
  rows <- fold_rows(kernel, x) / nrow(x)
  list(
    n = nrow(x), x = x, gram = NULL, kernel = kernel, rows = rows,
    rho = max(0, mean(rows)), varrho = mean(fold_diagonal(kernel, x))
  )
}

check_definite <- function(kernel) {
  if (identical(kernel$family, "energy")) {
    stop_input(
      "'kernel' must be positive definite; the energy kernel is for tests of ",
      "plain kernel means only"
    )
  }
}

check_weights <- function(weights, n) {
  if (is.null(weights)) {
    return(NULL)
  }
  if (!is.numeric(weights) || length(weights) != n) {
    stop_input(
      "'weights' must be ", n, " numbers, one for each row of 'x', not ",
      describe(weights)
    )
  }
  check_finite(weights, "weights")
  as.double(weights)
}

# list(embedding, at, norm2): the target, its values at the points of the sample
# and its squared norm; NULL for the target 0. `name` is the argument's.
check_target <- function(target, sample, name = "target") {
  if (is.null(target)) {
    return(NULL)
  }
  if (inherits(target, "kme")) {
    check_target_kernel(target, sample, name)
    norm2 <- target$norm2
  } else {
    if (is.null(sample$x)) {
      stop_input("'target' must be a fit on the same gram, not a mixture")
    }
    if (!is.list(target)) {
      stop_input(
        "'target' must be NULL for 0, a fit of kme() or a mixture, ",
        "list(weights, means, covariances), not ", describe(target)
      )
    }
    target <- check_mixture(target, ncol(sample$x), "target")
    norm2 <- mixture_inner(target, target, sample$kernel)
  }
  at <- parts_at(target_parts(target), sample$kernel, sample$x)
  list(embedding = target, at = at, norm2 = norm2)
}

check_target_kernel <- function(target, sample, name) {
  if (is.null(sample$x) || is.null(target$x)) {
    if (is.null(sample$gram) || !identical(sample$gram, target$gram)) {
      stop_input(
        "'", name, "' must share the gram of 'x' if points are not known"
      )
    }
  } else if (ncol(target$x) != ncol(sample$x)) {
    stop_input(
      "'", name, "' must have ", ncol(sample$x), " columns, as 'x', not ",
      ncol(target$x)
    )
  } else if (!same_columns(target$x, sample$x)) {
    stop_input("'", name, "' must have the columns of 'x' in the same order")
  } else if (!same_kernel(target$kernel, sample$kernel, ncol(sample$x))) {
    stop_input(
      "'", name, "' must have the kernel of the estimate, ",
      format_kernel(sample$kernel), ", not ", format_kernel(target$kernel)
    )
  }
}

# --- The estimators --------------------------------------------------------
# Each returns list(weights, lambda, fitted, norm2, …) for new_kme().

fit_kme <- function(sample, weights) {
  if (is.null(weights)) {
    weights <- rep(1 / sample$n, sample$n)
    fitted <- sample$rows
  } else if (is.null(sample$gram)) {
    fitted <- fold_apply(sample$kernel, sample$x, NULL, weights)
  } else {
    fitted <- drop(sample$gram$K %*% weights)
  }
  list(weights = weights, lambda = 0, fitted = fitted,
       norm2 = max(0, sum(weights * fitted)))
}

fit_skmse <- function(sample, lambda, select, target) {
  n <- sample$n
  excess <- max(0, sample$varrho - sample$rho)
  cross <- if (is.null(target)) 0 else mean(target$at)
  norm2 <- if (is.null(target)) 0 else target$norm2
  distance2 <- max(0, norm2 - 2 * cross + sample$rho)
  alpha <- skmse_alpha(excess, distance2, n, lambda, select)
  score <- \(a) skmse_score(a, n, sample$rho, sample$varrho, cross, norm2)
  curve <- if (identical(select, "loocv")) {
    path <- exp(seq(log(1e-4), log(1e2), length.out = 61))
    share <- c(path / (1 + path), alpha)
    score_curve(c(path, alpha / (1 - alpha)), score(share))
  }
  at <- if (is.null(target)) 0 else target$at
  list(
    weights = rep((1 - alpha) / n, n),
    lambda = if (is.null(lambda)) alpha / (1 - alpha) else lambda,
    alpha = alpha, target_weight = alpha,
    fitted = (1 - alpha) * sample$rows + alpha * at,
    norm2 = (1 - alpha)^2 * sample$rho + 2 * alpha * (1 - alpha) * cross +
      alpha^2 * norm2,
    score = curve, minimum = score(alpha), reference = score(0),
    border = is.null(lambda) && alpha == 1
  )
}

# The share of the target, given lambda or chosen; excess = varrho - rho >= 0
# and distance2 = |f - mu^|^2 may be vectors.
skmse_alpha <- function(excess, distance2, n, lambda, select) {
  if (!is.null(lambda)) {
    return(0 * excess + if (is.finite(lambda)) lambda / (1 + lambda) else 1)
  }
  below <- if (select == "loocv") {
    ((n - 1)^2 * distance2 + excess) / n
  } else {
    excess + (n - 1) * distance2
  }
  ifelse(excess == 0, 0, pmin(1, excess / below))
}

# The selection curve in the order of lambda (or of the noise), the chosen one
# among them.
score_curve <- function(lambda, score, name = "lambda") {
  keep <- is.finite(lambda) & lambda > 0 & !duplicated(lambda)
  curve <- data.frame(lambda, score)[keep, ]
  names(curve)[1L] <- name
  curve <- curve[order(curve[[1L]]), ]
  rownames(curve) <- NULL
  curve
}

# mean_i |phi(x_i) - alpha f - (1 - alpha) mu^(-i)|^2, with cross = <f, mu^>.
skmse_score <- function(alpha, n, rho, varrho, cross, norm2) {
  inner <- (n * rho - varrho) / (n - 1)
  left_out_norm2 <- (n^2 * rho - 2 * n * rho + varrho) / (n - 1)^2
  varrho - 2 * alpha * cross - 2 * (1 - alpha) * inner + alpha^2 * norm2 +
    2 * alpha * (1 - alpha) * cross + (1 - alpha)^2 * left_out_norm2
}

fit_fkmse <- function(sample, lambda, select, target) {
  g <- if (is.null(sample$gram)) sample$formed else sample$gram
  if (is.null(g)) {
    g <- form_gram(sample$x, sample$kernel)
  }
  n <- sample$n
  found <- list(lambda = lambda, score = NULL, minimum = NULL, border = FALSE)
  if (is.null(lambda)) {
    found <- select_lambda(g, select, target)
  }
  if (is.null(select) || select == "loocv" || found$lambda == 0) {
    weights <- fkmse_weights(g, found$lambda, target, sample$rows)
    own <- drop(g$K %*% weights)
  } else {
    estimate <- tridiagonal_estimate(g, found$lambda)
    weights <- estimate$weights
    own <- estimate$fitted
  }
  fit <- list(
    weights = weights, lambda = found$lambda, target_weight = 1,
    fitted = own, norm2 = sum(weights * own), score = found$score,
    minimum = found$minimum, border = found$border,
    reference = if (identical(select, "loocv")) {
      skmse_score(0, n, sample$rho, sample$varrho, 0, 0)
    }
  )
  if (!is.null(target)) {
    fit$fitted <- own + target$at
    fit$norm2 <- fit$norm2 + 2 * sum(weights * target$at) + target$norm2
  }
  fit
}

fkmse_weights <- function(g, lambda, target, rows) {
  n <- length(rows)
  if (lambda == Inf) {
    return(numeric(n))
  }
  if (lambda == 0 && is.null(target)) {
    return(rep(1 / n, n))
  }
  f <- if (is.null(target)) numeric(n) else target$at
  # A solve loses trace/lambda times the precision; the spectrum loses nothing.
  if (is.null(g$vectors) && lambda > 1e-8 * sum(diag(g$K))) {
    weights <- cholesky_solve(g, lambda, rows - f)
    if (!is.null(weights)) {
      return(weights)
    }
  }
  s <- spectrum(g, "vectors")
  inverse <- ifelse(s$values + lambda > 0, 1 / (s$values + lambda), 0)
  right <- s$values * colMeans(s$vectors) - drop(crossprod(s$vectors, f))
  drop(s$vectors %*% (inverse * right))
}

# list(weights, fitted) without a target. K = QTQ', Q e_1 = e/sqrt(n), so beta =
# Qz with z = (T + lambda I)^{-1} T e_1/sqrt(n); K beta = QTz. No call of the
# BLAS, whose threads would stand in the way of the next fit's.
tridiagonal_estimate <- function(g, lambda) {
  t <- tridiagonal(g)
  n <- length(t$diagonal)
  column <- c(t$diagonal[1L], t$off[1L], numeric(n - 2L)) / sqrt(n)
  z <- .Call(C_r_tridiag_solve, t$diagonal, t$off, lambda, column)
  tz <- t$diagonal * z + c(t$off * z[-1L], 0) + c(0, t$off * z[-n])
  rotate <- \(z) .Call(C_r_tridiag_apply, t$reflectors, t$tau, z)
  list(weights = rotate(z), fitted = rotate(tz))
}

select_lambda <- function(g, select, target) {
  top <- spectrum(g, if (select == "loocv") "vectors" else "projections")
  search_lambda(score_function(g, select, target), top$values[1L])
}

# The score as a function of a vector of lambdas.
score_function <- function(g, select, target) {
  if (select == "loocv") {
    s <- spectrum(g, "vectors")
    norm2 <- if (is.null(target)) 0 else target$norm2
    diagonal <- diag(g$K)
    return(\(lambda) {
      .Call(C_r_score_loocv, s$values, s$vectors, diagonal, target$at, norm2,
            lambda)
    })
  }
  s <- spectrum(g, "projections")
  q <- length(s$values)^2 * s$projections^2
  trace <- sum(diag(g$K))
  switch(select,
    gcv = \(lambda) .Call(C_r_score_gcv, s$values, q, trace, lambda),
    printed = \(lambda) .Call(C_r_score_printed, s$values, q, lambda)
  )
}

# The smallest score over log lambda, five points a decade.
search_lambda <- function(score, top) {
  if (1e-10 * top < .Machine$double.xmin) {
    return(list(lambda = 0, score = NULL, minimum = 0, border = FALSE))
  }
  grid <- exp(seq(log(1e-10 * top), log(1e4 * top), length.out = 71L))
  found <- search_log(score, grid)
  list(
    lambda = found$at, score = score_curve(found$path, found$values),
    minimum = found$minimum, border = found$border
  )
}

# The smallest score along the logarithm of its argument: a grid of equal steps,
# then Brent's method in the two cells around the best. list(at, minimum,
# border: is it at an end of the grid?, path, values: all that was evaluated).
search_log <- function(score, grid) {
  last <- length(grid)
  values <- score(grid)
  best <- which.min(values)
  around <- log(grid[c(max(1L, best - 1L), min(last, best + 1L))])
  path <- grid
  along <- function(l) {
    value <- score(exp(l))
    path <<- c(path, exp(l))
    values <<- c(values, value)
    value
  }
  refined <- optimize(along, around, tol = 1e-5)
  at <- grid[best]
  minimum <- values[best]
  if (refined$objective <= minimum) {
    at <- exp(refined$minimum)
    minimum <- refined$objective
  }
  cell <- diff(log(grid[1:2]))
  list(
    at = at, minimum = minimum, path = c(path, at), values = c(values, minimum),
    border = min(abs(log(at) - log(grid[c(1L, last)]))) < 1e-3 * cell
  )
}

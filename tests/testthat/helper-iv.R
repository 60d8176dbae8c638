# Instrumental variables in reproducing kernel Hilbert spaces: the formulas as
# they are printed, on stored Gram matrices, and the reference values.

# --- Reference values ---------------------------------------------------------

iv_file <- function(...) {
  utils::read.csv(fixture(file.path("rkhs_iv", paste0(...))),
                  check.names = FALSE)
}

# The reference data set 1 (continuous) or 2 (discrete instruments).
iv_set <- function(k) {
  block <- \(of, letter) as.matrix(of[startsWith(names(of), letter)])
  train <- iv_file("ds", k, "_train.csv")
  test <- iv_file("ds", k, "_test.csv")
  list(
    k = k, a = block(train, "A"), b = block(train, "B"),
    c = block(train, "C"), d = block(train, "D"), y = train$Y, w = train$W,
    s = train$S, new = list(a = block(test, "A"), b = block(test, "B")),
    theta = 1 / sqrt(2 * c(2, 1)[k])
  )
}

iv_configs <- function(k) {
  configs <- iv_file("configs.csv")
  configs[configs$ds == k, ]
}

# What a reference id stands for: list(nested, penalty, kernel, lambda_c,
# lambda_d, mu, mu_h, w, subset, delta_scale, alpha_scale), in units of the
# matrices.
iv_case <- function(set, id) {
  n <- length(set$y)
  general <- endsWith(id, "_gen")
  configs <- iv_configs(set$k)
  row <- configs[match(if (general) sub("_gen", "_subw", id) else id,
                       configs$id), ]
  delta <- row$delta_scale * n^-row$delta_exp
  alpha <- row$alpha_scale * delta^4
  nested <- grepl("2iv", id)
  norm <- !grepl("l2", id)
  case <- list(
    nested = nested, penalty = if (norm) "norm" else "l2",
    kernel = if (row$kernel == "poly") {
      kernel_function(\(x, y) (0.5 * tcrossprod(x, y) + 1)^2)
    } else {
      kernel_rbf(set$theta)
    },
    delta_scale = row$delta_scale, alpha_scale = row$alpha_scale,
    lambda_c = norm + 0, lambda_d = norm + 0, mu = alpha, mu_h = alpha,
    w = if (row$uses_W) set$w, subset = if (row$uses_S) set$s
  )
  if (norm && !nested) {
    # M = 2 n delta^2 P stands where P does.
    case$lambda_d <- n * delta^2
    case$mu <- alpha / (2 * n * delta^2)
  }
  if (general) {
    case[c("mu", "mu_h")] <- c(0.1, 0.4)
    if (norm) case[c("lambda_c", "lambda_d")] <- c(0.5, 2)
  }
  case
}

# The fit of a case by the package's doors, with its penalties or by the rules
# of a preset.
iv_fit_case <- function(set, case, ..., preset = NULL) {
  asked <- c(case[c("kernel", "penalty")], list(control = iv_control(...)),
             if (!is.null(preset)) list(preset = preset) else
               if (!case$nested) list(lambda = case$lambda_d, mu = case$mu) else
                 list(lambda_c = case$lambda_c, lambda_d = case$lambda_d,
                      mu_g = case$mu, mu_h = case$mu_h))
  if (case$nested) {
    do.call(rkhs_iv_nested, c(set[c("a", "b", "c", "d", "y")],
                              case[c("w", "subset")], asked))
  } else {
    do.call(rkhs_iv, c(list(set$a, set$y, set$d), asked))
  }
}

# Predictions with columns g and, of nested fits, h.
iv_predict <- function(fit, new) {
  if (inherits(fit, "rkhs_iv_nested")) {
    predict(fit, new)
  } else {
    cbind(g = predict(fit, new$a))
  }
}

# By the rule that came with the reference values, column by column.
expect_iv_reference <- function(got, reference, id, y, tolerance) {
  for (f in colnames(got)) {
    want <- reference[[paste0(id, ".", f)]]
    apart <- max(abs(got[, f] - want)) / max(abs(want), abs(y))
    expect_lte(apart, tolerance, label = paste0(id, ".", f))
  }
}

# The doors with what iv_control() sets among their arguments, of method
# "classic" unless another is given.
iv <- function(..., method = "classic") {
  with_settings(rkhs_iv, ..., method = method)
}
iv_nested <- function(...) with_settings(rkhs_iv_nested, ...)

with_settings <- function(door, ...) {
  given <- list(...)
  own <- which(names(given) %in% names(formals(iv_control)))
  control <- if (length(own)) do.call(iv_control, given[own])
  do.call(door, c(given[setdiff(seq_along(given), own)],
                  if (length(own)) list(control = control)), quote = TRUE)
}

# Warnings of the package that a test does not ask about.
quietly <- function(code) quietly_but(code, "none")

quietly_but <- function(code, kind) {
  withCallingHandlers(code, kernmean_warning = \(w) {
    if (!inherits(w, paste0("kernmean_warning_", kind))) {
      invokeRestart("muffleWarning")
    }
  })
}

# --- Twins ------------------------------------------------------------------

# What an instrument with this Gram matrix does to residuals: the largest
# eigenvalue times tol is the smallest that counts; those of a part of the rows
# count n/p times.
action_R <- function(K, lambda = 0, rows = seq_len(nrow(K)), tol = 1e-10) {
  P <- 0 * K
  if (length(rows)) {
    block <- K[rows, rows, drop = FALSE]
    P[rows, rows] <- nrow(K) / length(rows) * if (lambda > 0) {
      block %*% solve(block + lambda * diag(nrow(block)))
    } else {
      projector_R(block, tol)
    }
  }
  (P + t(P)) / 2
}

projector_R <- function(K, tol) {
  e <- eigen(K, TRUE)
  tcrossprod(e$vectors[, e$values > tol * e$values[1], drop = FALSE])
}

pinv_R <- function(K, tol) {
  e <- eigen(K, TRUE)
  kept <- e$values > tol * e$values[1]
  v <- e$vectors[, kept, drop = FALSE]
  v %*% (t(v) / e$values[kept])
}

# A problem: Gram matrices of the four blocks, y, w, the rows of the two
# moments, one (of d) and two (of c). Without b and c, the first moment alone.
iv_problem <- function(K, y, w = NULL, subset = NULL) {
  n <- length(y)
  if (is.null(subset)) {
    subset <- list(c = rep(TRUE, n), d = rep(TRUE, n))
  } else if (!is.list(subset)) {
    subset <- list(c = subset == 0, d = subset == 1)
  }
  if (is.null(K$b)) {
    K$b <- K$a
    K$c <- K$d
    subset$c <- rep(FALSE, n)
  }
  list(K = K, y = y, w = if (is.null(w)) rep(1, n) else w,
       one = which(subset$d), two = which(subset$c))
}

problem_of_case <- function(set, case) {
  blocks <- set[if (case$nested) c("a", "b", "c", "d") else c("a", "d")]
  gram <- \(x) kernel_matrix(x, kernel = case$kernel)
  if (case$kernel$family == "rbf") {
    gram <- \(x) gram_R(case$kernel, x)
  }
  iv_problem(lapply(blocks, gram), set$y, case$w, case$subset)
}

actions_R <- function(problem, lambda_c = 0, lambda_d = 0, tol = 1e-10) {
  list(one = action_R(problem$K$d, lambda_d, problem$one, tol),
       two = action_R(problem$K$c, lambda_c, problem$two, tol))
}

# list(a, b, g, h): coefficients and values at the rows.
# Norm penalties: the conditions divided by K_A and K_B,
#   [(P1 + wP2w) K_A + mu_g] a - wP2 K_B b = P1 y, -P2w K_A a + [P2 K_B + mu_h]b
# = 0; empirical ones: for G and H in the ranges of K_A and K_B.
solve_R <- function(problem, P, penalty, mu_g, mu_h = mu_g, tol = 1e-10) {
  n <- length(problem$y)
  Ka <- problem$K$a
  Kb <- problem$K$b
  W <- diag(problem$w, n)
  one <- P$one + W %*% P$two %*% W
  cross <- W %*% P$two
  if (penalty == "norm") {
    left <- rbind(cbind(one %*% Ka + mu_g * diag(n), -cross %*% Kb),
                  cbind(-t(cross) %*% Ka, P$two %*% Kb + mu_h * diag(n)))
    ab <- solve(left, c(P$one %*% problem$y, numeric(n)))
    a <- ab[1:n]
    b <- ab[-(1:n)]
  } else {
    A <- projector_R(Ka, tol)
    B <- projector_R(Kb, tol)
    left <- rbind(cbind(A %*% one %*% A + mu_g * diag(n), -A %*% cross %*% B),
                  cbind(-B %*% t(cross) %*% A, B %*% P$two %*% B +
                          mu_h * diag(n)))
    gh <- solve(left, c(A %*% P$one %*% problem$y, numeric(n)))
    a <- drop(pinv_R(Ka, tol) %*% gh[1:n])
    b <- drop(pinv_R(Kb, tol) %*% gh[-(1:n)])
  }
  list(a = a, b = b, g = drop(Ka %*% a), h = drop(Kb %*% b))
}

# n times the criterion.
criterion_R <- function(problem, P, g, h) {
  form <- \(r, P) sum(r * (P %*% r))
  form(problem$y - g, P$one) + form(h - problem$w * g, P$two)
}

# The first-order conditions as printed, left minus right, relative to the
# largest entry of K_A P1 y.
conditions_R <- function(problem, P, penalty, a, b, mu_g, mu_h = mu_g) {
  Ka <- problem$K$a
  Kb <- problem$K$b
  Kw <- diag(problem$w, length(problem$y)) %*% Ka
  size <- \(K) if (penalty == "norm") K else K %*% K
  right <- Ka %*% P$one %*% problem$y
  first <- (Ka %*% P$one %*% Ka + t(Kw) %*% P$two %*% Kw +
              mu_g * size(Ka)) %*% a - t(Kw) %*% P$two %*% Kb %*% b
  second <- -Kb %*% P$two %*% Kw %*% a +
    (Kb %*% P$two %*% Kb + mu_h * size(Kb)) %*% b
  max(abs(first - right), abs(second)) / max(abs(right))
}

# The rows of a problem.
problem_rows <- function(problem, rows) {
  list(K = lapply(problem$K, \(K) K[rows, rows, drop = FALSE]),
       y = problem$y[rows], w = problem$w[rows],
       one = which(rows %in% problem$one), two = which(rows %in% problem$two))
}

# Cross-validation by refits: folds x values. units(n, value, p, q) gives the
# penalties of a sample of n rows, p of them in the first moment and q in the
# second: list(lambda_c, lambda_d, mu_g, mu_h). Folds without a part of the
# moments that the problem has are dropped. center: less the mean of y outside
# the fold?
iv_cv_R <- function(problem, penalty, folds, values, units, center = FALSE) {
  score <- \(fold, value) {
    inner <- which(folds != fold)
    outer <- which(folds == fold)
    problem$y <- problem$y - if (center) mean(problem$y[inner]) else 0
    train <- problem_rows(problem, inner)
    test <- problem_rows(problem, outer)
    lacking <- \(which) length(problem[[which]]) &&
      !(length(train[[which]]) && length(test[[which]]))
    if (lacking("one") || lacking("two")) {
      return(NA)
    }
    u <- units(length(inner), value, length(train$one), length(train$two))
    P <- actions_R(train, u$lambda_c, u$lambda_d)
    fit <- solve_R(train, P, penalty, u$mu_g, u$mu_h)
    of <- list(g = drop(problem$K$a[outer, inner] %*% fit$a),
               h = drop(problem$K$b[outer, inner] %*% fit$b))
    u <- units(length(outer), value, length(test$one), length(test$two))
    P <- actions_R(test, u$lambda_c, u$lambda_d)
    criterion_R(test, P, of$g, of$h) / length(outer)^2
  }
  out <- outer(unique(folds), values, Vectorize(score))
  out[!is.na(out[, 1]), , drop = FALSE]
}

# Contiguous folds, the first of which are longer by one row.
contiguous <- function(n, folds = 6) {
  rep(seq_len(folds), n %/% folds + (seq_len(folds) <= n %% folds))
}

# Rows of a Nystrom map: k(x, S) K_SS^(-1/2), eigenvalues at least 1e-12.
nystrom_R <- function(kernel, x, landmarks) {
  e <- eigen(gram_R(kernel, landmarks), TRUE)
  gram_R(kernel, x, landmarks) %*% e$vectors %*%
    (t(e$vectors) / sqrt(pmax(e$values, 1e-12)))
}

# Random Fourier features of the Gaussian kernel of this theta.
fourier_R <- function(theta, x, draws) {
  angle <- x %*% (draws$normals / theta)
  sqrt(2 / ncol(angle)) * cos(angle + rep(draws$offsets, each = nrow(x)))
}

# The draws of the reference for d columns.
reference_draws <- function(d, m) {
  draws <- unname(as.matrix(iv_file("rff_p", d, ".csv")))
  stopifnot(ncol(draws) == m)
  list(normals = draws[seq_len(d), , drop = FALSE], offsets = draws[d + 1, ])
}

# Row numbers of the reference landmarks for n rows.
reference_landmarks <- function(n) {
  table <- iv_file("landmarks.csv")
  as.integer(table[table$n_rows == n, -1]) + 1L
}

# Coefficients and fitted values of two-stage least squares.
tsls_R <- function(x, y, z) {
  x <- cbind(1, x)
  stage <- stats::lm.fit(cbind(1, z), x)$fitted.values
  drop(x %*% solve(crossprod(stage, x), crossprod(stage, y)))
}

# --- Data -------------------------------------------------------------------

# Two equations with an unobserved confounder.
iv_sample <- function(n, seed = 1) {
  set.seed(seed)
  u <- stats::rnorm(n)
  d <- cbind(d1 = stats::rnorm(n), d2 = stats::rnorm(n))
  c <- cbind(c1 = d[, 1] + stats::rnorm(n), c2 = stats::rnorm(n))
  a <- cbind(a1 = d[, 1] + u / 2, a2 = d[, 2] + stats::rnorm(n) / 2)
  b <- cbind(b1 = c[, 1] + u / 2, b2 = c[, 2])
  list(a = a, b = b, c = c, d = d, u = u,
       y = sin(a[, 1]) + a[, 2] / 2 + u + stats::rnorm(n) / 4,
       w = stats::runif(n, 0.5, 1.5) * (seq_len(n) %% 7 > 0),
       s = rep_len(c(1, 0, 1, 1, 0), n))
}

# With these draws of random features in place of R's.
with_draws <- function(draw, code) with_binding("draw_fourier", draw, code)

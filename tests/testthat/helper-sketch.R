# Slow twins of sketches: everything from all rows and their n x n projected
# Gram matrix, by the formulas of the method as they are written there.

# --- Landmarks ---------------------------------------------------------------

# Pivots of randomly pivoted Cholesky, one after the other.
rpcholesky_R <- function(K, m) {
  n <- nrow(K)
  d <- diag(K)
  columns <- matrix(0, n, 0)
  pivots <- integer()
  while (length(pivots) < m && sum(d) > 0) {
    s <- if (n > 1) sample.int(n, 1, prob = d) else 1L
    g <- K[, s] - drop(columns %*% columns[s, ])
    if (g[s] <= n * .Machine$double.eps * max(diag(K))) break
    columns <- cbind(columns, g / sqrt(g[s]))
    d <- pmax(d - columns[, ncol(columns)]^2, 0)
    d[s] <- 0
    pivots <- c(pivots, s)
  }
  pivots
}

# The probability of each ordered set of `m` pivots: list(pivots, chance).
pivot_law_R <- function(K, m) {
  law <- list(pivots = list(integer()), chance = 1)
  for (t in seq_len(m)) {
    following <- list(pivots = list(), chance = numeric())
    for (i in seq_along(law$pivots)) {
      d <- residual_R(K, law$pivots[[i]])
      for (s in which(d > 1e-9 * sum(diag(K)))) {
        following$pivots <- c(following$pivots, list(c(law$pivots[[i]], s)))
        following$chance <- c(following$chance,
                              law$chance[i] * d[s] / sum(d))
      }
    }
    law <- following
  }
  law
}

# The diagonal of K less its projection on the columns `s`.
residual_R <- function(K, s) {
  if (!length(s)) {
    return(diag(K))
  }
  pmax(diag(K) - rowSums(K[, s, drop = FALSE] %*% pseudo_R(K[s, s]) *
                           K[, s, drop = FALSE]), 0)
}

root_R <- function(K) {
  e <- eigen(as.matrix(K), symmetric = TRUE)
  kept <- e$values > 1e-10 * e$values[1L]
  e$vectors[, kept, drop = FALSE] %*%
    diag(1 / sqrt(e$values[kept]), sum(kept))
}

pseudo_R <- function(K) tcrossprod(root_R(K))

# --- A sketch and what comes from it -----------------------------------------

# The points of a set of landmarks in the units of its kernel.
landmark_x <- function(landmarks) unname(landmarks$variable$sample$x)

# All that the formulas name, from points x (in the kernel's units), landmarks
# S, weights w and values of the kernel by a function of two matrices.
sketch_R <- function(x, S, k, w = NULL, second = TRUE) {
  n <- nrow(x)
  size <- n
  if (is.null(w)) w <- rep(1, n) else size <- sum(w)^2 / sum(w^2)
  values <- k(x, S)
  root <- root_R(k(S, S))
  phi <- values %*% root
  own <- vapply(seq_len(n), \(i) {
    k(x[i, , drop = FALSE], x[i, , drop = FALSE])[1L]
  }, 1)
  u <- rowSums(phi^2)
  total <- sum(w)
  mu <- colSums(w * phi) / total
  trace <- sum(w * own) / total
  list(
    n = n, size = size, w = w, values = values, own = own, root = root,
    phi = phi, K = tcrossprod(phi), mu = mu, second = second,
    C = crossprod(phi, w * phi) / total, trace = trace,
    rho = sum(mu^2), varrho = if (second) sum(w * u) / total else trace,
    lost = trace - sum(w * u) / total, square = sum(w * u^2) / total,
    along = colSums(w * u * phi) / total
  )
}

# The weights on the landmarks of an estimate and its lambda, from the n x n
# projected Gram matrix.
sketch_kme_R <- function(s) {
  b <- s$w / sum(s$w)
  on_landmarks_R(s, b, 0)
}

sketch_skmse_R <- function(s, select = "loocv", lambda = NULL) {
  n <- s$size
  excess <- s$varrho - s$rho
  alpha <- if (!is.null(lambda)) {
    lambda / (1 + lambda)
  } else if (select == "loocv") {
    min(1, max(0, n * excess / ((n - 1)^2 * s$rho + excess)))
  } else {
    excess / (excess + (n - 1) * s$rho)
  }
  on_landmarks_R(s, (1 - alpha) * s$w / sum(s$w), alpha / (1 - alpha))
}

# (K + lambda I)^(-1) K 1_n; with weights (C + lambda/n_eff I)^(-1) C mu.
sketch_fkmse_R <- function(s, lambda) {
  if (all(s$w == 1)) {
    return(on_landmarks_R(s, fkmse_weights_R(s$K, lambda), lambda))
  }
  u <- solve(s$C + diag(lambda / s$size, length(s$mu)), s$C %*% s$mu)
  list(weights = drop(s$root %*% u), lambda = lambda, norm2 = sum(u^2))
}

on_landmarks_R <- function(s, b, lambda) {
  list(weights = drop(s$root %*% crossprod(s$phi, b)), lambda = lambda,
       norm2 = sum(b * (s$K %*% b)))
}

# --- Reading a sketch --------------------------------------------------------

# The sums of a group, their compensation added.
sketch_totals <- function(sketch, group = 1L) {
  own <- sketch$sums[[group]]
  totals <- lapply(stats::setNames(nm = names(own$sum)), \(name) {
    if (is.null(own$carry[[name]])) own$sum[[name]] else
      own$sum[[name]] + own$carry[[name]]
  })
  Filter(Negate(is.null), totals)
}

# The largest difference of two sketches of the same rows, each sum on the scale
# of its largest entry; Inf where they have not the same rows, groups and sums.
# Groups are compared by name.
sketch_difference <- function(a, b) {
  same <- identical(a$n, b$n) && setequal(a$groups, b$groups) &&
    length(a$sums) == length(b$sums)
  if (!same) {
    return(Inf)
  }
  at <- if (is.null(b$groups)) seq_along(b$sums) else
    match(b$groups, a$groups)
  worst <- 0
  for (g in seq_along(b$sums)) {
    left <- sketch_totals(a, at[g])
    right <- sketch_totals(b, g)
    if (!setequal(names(left), names(right))) {
      return(Inf)
    }
    for (name in names(left)) {
      top <- max(abs(right[[name]]), 1e-300)
      worst <- max(worst, abs(left[[name]] - right[[name]]) / top)
    }
  }
  worst
}

# A stream of the given chunks, and one of runs of rows of these sizes.
stream_of <- function(chunks) {
  at <- 0L
  function() {
    at <<- at + 1L
    if (at <= length(chunks)) chunks[[at]]
  }
}

runs_of <- function(x, sizes) {
  ends <- cumsum(sizes)
  lapply(seq_along(sizes), \(i) {
    x[seq_len(sizes[i]) + ends[i] - sizes[i], , drop = FALSE]
  })
}

# Sizes of random runs that add up to n, some of them empty.
random_sizes <- function(n, parts) {
  diff(c(0L, sort(sample.int(n + 1L, parts - 1L, TRUE) - 1L), n))
}

# What is warned of where landmarks are few, and is meant here.
lossy <- function(code) {
  withCallingHandlers(code, kernmean_warning_projection = \(w) {
    tryInvokeRestart("muffleWarning")
  })
}

# A file of a list whose element is a promise to make the file `flag`, which no
# R code can save: the bytes of a call after those of type, environment and
# value of a promise.
save_promise <- function(file, flag) {
  bytes <- serialize(list(call("file.create", flag)), NULL, version = 2L)
  head <- seq_len(22L)
  promise <- c(0, 0, 4, 5, 0, 0, 0, 253, 0, 0, 0, 252)
  writeBin(c(bytes[head], as.raw(promise), bytes[-head]), file)
}

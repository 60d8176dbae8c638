# The fit behind kme_density(). A mixture is list(weights: m, means: m x d,
# variances: m), with `objective` = J where it has been computed.

# list(best, start, mean: the estimate matched, path, steps, heldout,
# bandwidths). `plan` is list(optimize, lowest: the floor of variances, m: what
# k-means is to find, begin: a function of the points that gives the start).
# Points held out choose the bandwidth and where to stop; the fit to all points
# then goes as far.
fit_density <- function(sample, plan, share) {
  x <- sample$x
  searched <- identical(sample$kernel$bandwidth, "validate")
  if (share == 0 && !searched) {
    return(fit_points(sample, x, sample$kernel, plan$begin(x), plan))
  }
  rows <- heldout_rows(nrow(x), if (share > 0) share else 0.2)
  kept <- x[-rows, , drop = FALSE]
  out <- x[rows, , drop = FALSE]
  check_kept(plan, kept)
  start <- plan$begin(kept)
  kernels <- if (searched) validation_kernels(x) else list(sample$kernel)
  trials <- lapply(kernels, \(kernel) {
    fit_points(sample, kept, kernel, start, plan, out)
  })
  scores <- vapply(trials, \(trial) heldout_score(trial$best, out), numeric(1))
  chosen <- which.min(scores)
  trial <- trials[[chosen]]
  fit <- fit_points(sample, x, kernels[[chosen]], plan$begin(x), plan,
                    take = if (share > 0) trial$steps)
  if (share > 0) fit$path <- trial$path
  fit$heldout <- rows
  if (searched) {
    thetas <- vapply(kernels, `[[`, numeric(1), "bandwidth")
    fit$bandwidths <- data.frame(bandwidth = thetas, heldout = scores)
  }
  fit
}

# Which of n points are held out, drawn at random.
heldout_rows <- function(n, share) {
  sort(sample.int(n, min(max(1L, round(share * n)), n - 1L)))
}

# What is left must still take the components.
check_kept <- function(plan, kept) {
  distinct <- sum(!duplicated(kept))
  if (plan$m > distinct) {
    stop_input("'m' must be at most ", distinct, ", the number of distinct ",
               "points that are not held out (validate = 0 holds out none), ",
               "not ", plan$m)
  }
}

validation_kernels <- function(x) {
  median <- fit_kernel(kernel_rbf(), x)$bandwidth
  lapply(median * 2^seq(-2, 1, by = 0.5), \(theta) {
    kernel <- kernel_rbf(theta)
    kernel$rule <- "held-out likelihood"
    kernel
  })
}

# The fit to the points x. With `out` these points decide where to stop; `take`
# says how far to go: "start", "weights" or a number of steps.
fit_points <- function(sample, x, kernel, start, plan, out = NULL,
                       take = NULL) {
  mean <- part_mean(sample, x, kernel)
  match <- matcher(mean)
  first <- match(start)
  check_match(first)
  best <- match_weights(first, match)
  found <- list(start = first, best = best, mean = mean)
  if (plan$optimize == "all") {
    further <- switch(
      if (is.character(take)) take else "on",
      start = list(best = first, steps = take),
      weights = list(steps = take),
      match_all(first, best, match, mean$norm2, plan, out, take)
    )
    found[names(further)] <- further
  }
  found
}

# The estimate of the kernel mean from the points that are kept.
part_mean <- function(sample, kept, kernel) {
  all <- nrow(kept) == nrow(sample$x)
  estimator <- sample$estimator
  if (!inherits(estimator, "kme")) {
    if (all && !is.null(sample$gram)) {
      return(kme.default(sample$gram, estimator = estimator))
    }
    return(kme.default(kept, kernel, estimator))
  }
  if (all) {
    return(estimator)
  }
  if (!is.null(estimator$arguments$weights)) {
    stop_input("'validate' must be 0 where 'estimator' is a fit with weights ",
               "of its own")
  }
  update(estimator, x = kept, kernel = kernel)
}

# A function of mixtures: the mixture with J, G, g and the derivatives of J.
matcher <- function(mean) {
  noise <- effective_noise(mean)
  if (is.null(noise)) noise <- numeric(ncol(mean$x))
  spec <- native_kernel(mean$kernel, mean$x)
  function(q) {
    found <- .Call(C_r_match, spec, mean$x, mean$weights, noise, q$weights,
                   q$means, q$variances)
    c(q[c("weights", "means", "variances")], found)
  }
}

# --- The start ---------------------------------------------------------------

kmeans_start <- function(x, m, nstart, lowest) {
  found <- if (m == 1L || sum(!duplicated(x)) > m) {
    # That some run needs more iterations does not matter for the best of them.
    suppressWarnings(stats::kmeans(x, m, iter.max = 100L, nstart = nstart))
  } else {
    each_point(x)
  }
  variances <- found$withinss / (found$size * ncol(x))
  list(weights = found$size / nrow(x), means = unname(found$centers),
       variances = pmax(variances, lowest))
}

# As many components as there are distinct points.
each_point <- function(x) {
  keys <- apply(x, 1L, \(row) paste(format(row, digits = 17), collapse = " "))
  first <- !duplicated(x)
  size <- as.vector(table(factor(keys, keys[first])))
  list(centers = x[first, , drop = FALSE], size = size,
       withinss = numeric(length(size)))
}

# --- The weights -------------------------------------------------------------

# The weights that minimise J, J never above that of the start: pi'(G + eps I)pi
# - 2 pi'(g + eps pi_0) over the simplex.
match_weights <- function(start, match) {
  m <- length(start$weights)
  largest <- max(abs(start$gram))
  if (largest == 0 || m == 1L) {
    return(start)
  }
  ridge <- 1e-8 * mean(diag(start$gram))
  solved <- quadprog::solve.QP(
    (start$gram + diag(ridge, m)) / largest,
    (start$g + ridge * start$weights) / largest,
    cbind(1, diag(m)), c(1, numeric(m)), meq = 1L
  )$solution
  solved <- pmax(solved, 0)
  best <- match(c(list(weights = solved / sum(solved)),
                  start[c("means", "variances")]))
  if (best$objective <= start$objective) best else start
}

check_match <- function(found) {
  if (!is.finite(found$objective) || !all(is.finite(found$gram))) {
    stop_kernmean("numeric", "kernel values overflow; rescale the columns of ",
                  "'x'")
  }
}

# --- All parameters ----------------------------------------------------------

most_iterations <- 500L
look_every <- 10L

# From the best weights on, list(best, path, steps: "start", "weights" or the
# number of steps); no more than `most` steps (NULL: any number).
match_all <- function(start, first, match, norm2, plan, out, most) {
  m <- length(first$weights)
  shape <- dim(first$means)
  path <- follow(start, first, out, if (is.null(most)) Inf else most)
  # In units of the distance that is left, so that the stopping rule sees it.
  unit <- first$objective + norm2
  if (unit <= 1e-14 * (abs(first$objective) + norm2)) {
    return(path$end())
  }
  part <- list(weights = seq_len(m), means = m + seq_len(prod(shape)),
               variances = m + prod(shape) + seq_len(m))
  mixture <- \(u) {
    weights <- exp(u[part$weights] - max(u[part$weights]))
    list(weights = weights / sum(weights),
         means = matrix(u[part$means], shape[1L], shape[2L]),
         variances = exp(u[part$variances]))
  }
  last <- NULL
  at <- \(u) {
    if (!identical(u, last$u)) {
      found <- match(mixture(u))
      path$add(found)
      mean <- sum(found$weights * found$to_weights)
      gradient <- c(found$weights * (found$to_weights - mean), found$to_means,
                    found$variances * found$to_variances)
      value <- (found$objective - first$objective) / unit
      last <<- list(u = u, value = value, gradient = gradient / unit)
    }
    last
  }
  free <- m + prod(shape)
  scale <- sqrt(max(first$variances, stats::var(as.vector(first$means))))
  tryCatch(
    stats::optim(
      c(log(pmax(first$weights, 1e-4 / m)), first$means, log(first$variances)),
      \(u) at(u)$value, \(u) at(u)$gradient, method = "L-BFGS-B",
      lower = c(rep(-Inf, free), pmin(log(plan$lowest), log(first$variances))),
      upper = c(rep(Inf, free), rep(log(1e4 * scale^2), m)),
      control = list(maxit = most_iterations, factr = 1e3,
                     parscale = rep(c(1, scale, 1), lengths(part)))
    ),
    kernmean_enough = identity
  )
  path$end()
}

# Keeps count of the steps that lower J, and the best mixture: by the points
# held out, looked at now and then, or by J where there are none.
follow <- function(start, first, out, most) {
  lowest <- Inf
  steps <- 0L
  latest <- NULL
  best <- NULL
  rows <- list()
  look <- \(label, q) {
    score <- if (is.null(out)) q$objective else heldout_score(q, out)
    rows[[length(rows) + 1L]] <<- list(label, q$objective, score)
    if (is.null(best) || score < best$score) {
      best <<- list(score = score, mixture = q, steps = label)
    }
  }
  look("start", start)
  look("weights", first)
  list(
    add = \(q) {
      if (is.finite(q$objective) && q$objective < lowest) {
        lowest <<- q$objective
        steps <<- steps + 1L
        latest <<- q
        if (steps %% look_every == 0L) look(steps, q)
      }
      if (steps >= most) {
        signalCondition(structure(class = c("kernmean_enough", "condition"),
                                  list(message = "enough", call = NULL)))
      }
    },
    end = \() {
      if (steps %% look_every != 0L) look(steps, latest)
      path <- data.frame(step = vapply(rows, \(row) format(row[[1L]]), ""),
                         objective = vapply(rows, `[[`, 0, 2L))
      if (!is.null(out)) path$heldout <- vapply(rows, `[[`, 0, 3L)
      list(best = best$mixture, path = path, steps = best$steps)
    }
  )
}

# Mean negative log density.
heldout_score <- function(q, z) {
  -mean(mixture_log(q, z))
}

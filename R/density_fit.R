# The fit behind kme_density(). A mixture is list(weights: m, means: m x d, and
# variances: m, or covariances: d x d x m), in the units of the kernel, with
# `objective` = J where it has been computed.

# The fit with a size and a shape that are known, see fit_density().
fit_chosen <- function(sample, plan, share) {
  x <- sample$x
  begin <- \(x, ...) {
    if (is.null(plan$first)) cluster_start(x, plan$shape, ...) else plan$first
  }
  # First, so that the start does not depend on what is held out.
  start <- begin(x)
  # Does nothing but the fit itself decide where it stops?
  fixed <- plan$optimize == "weights" || !is.null(plan$steps)
  if (share == 0 || fixed && length(plan$kernels) == 1L) {
    return(c(list(sample = sample), fit_points(sample, start, plan)))
  }
  rows <- heldout_rows(sample$n, share)
  out <- x[rows, , drop = FALSE]
  kept <- points_sample(x[-rows, , drop = FALSE], sample$kernel)
  part <- plan
  if (inherits(plan$estimator, "kme")) {
    part$estimator <- plan$estimator$estimator
  }
  check_kept(kept, part$estimator)
  first <- begin(kept$x, " that are not held out (by 'validate')")
  trials <- lapply(plan$kernels, \(kernel) {
    kept$kernel <- kernel
    fit_points(kept, first, part, out)
  })
  scores <- vapply(trials, `[[`, numeric(1), "score")
  chosen <- which.min(scores)
  sample$kernel <- plan$kernels[[chosen]]
  if (fixed) {
    fit <- fit_points(sample, start, plan)
  } else {
    fit <- fit_points(sample, start, plan, take = trials[[chosen]]$steps)
    fit[c("path", "steps")] <- trials[[chosen]][c("path", "steps")]
  }
  fit$heldout <- rows
  if (length(scores) > 1L) {
    thetas <- vapply(plan$kernels, `[[`, numeric(1), "bandwidth")
    fit$bandwidths <- data.frame(bandwidth = thetas, heldout = scores)[
      order(thetas), ]
    rownames(fit$bandwidths) <- NULL
  }
  c(list(sample = sample), fit)
}

# Which of n points are held out, drawn at random.
heldout_rows <- function(n, share) {
  sort(sample.int(n, min(max(1L, round(share * n)), n - 1L)))
}

# What is left must still take the estimator.
check_kept <- function(kept, estimator) {
  if (kept$n < 2L) {
    tryCatch(est_fit(estimator, kept), kernmean_error_input = \(e) {
      stop_input("'validate' must leave at least 2 points for estimator \"",
                 estimator$name, "\", not ", kept$n)
    })
  }
}

# The fit to a sample. With `out` these points decide where to stop, and there
# is their `score` too; `take` says how far to go: "start", "weights" or a
# number of steps.
fit_points <- function(sample, start, plan, out = NULL, take = NULL) {
  mean <- plan$estimator
  if (!inherits(mean, "kme")) {
    estimate <- if (is.null(out)) estimate_mean else estimate_kept
    mean <- estimate(sample, mean)
  }
  match <- matcher(mean)
  first <- match(start)
  check_match(first)
  best <- first
  if (plan$optimize == "weights" || !plan$direct) {
    best <- match_weights(first, match)
  }
  if (plan$toward < 1) best <- match(move_weights(first, best, plan$toward))
  found <- list(start = first, best = best, mean = mean)
  if (identical(take, "start")) {
    found$best <- first
  } else if (plan$optimize == "weights" || !is.null(plan$steps)) {
    if (!is.null(plan$steps)) {
      further <- match_steps(first, mean, match, plan)
      found[names(further)] <- further
    }
    found$score <- if (!is.null(out)) -mean(mixture_log(found$best, out))
  } else if (!identical(take, "weights")) {
    further <- match_all(first, best, mean, match, plan, out, take)
    found[names(further)] <- further
  }
  found
}

# The estimate where points are held out: what its estimator leaves out is said
# once, by the fit to all points.
estimate_kept <- function(kept, estimator) {
  without_warning("candidates", estimate_mean(kept, estimator))
}

# A function of mixtures: the mixture with J, G, g and the derivatives of J.
matcher <- function(mean) {
  parts <- merge_parts(embedding_parts(mean))
  native <- native_parts(parts, mean$kernel)
  function(q) {
    if (!is.null(q$covariances)) {
      return(match_covariances(q, parts, mean$kernel))
    }
    found <- match_part(native[[1L]], q)
    for (part in native[-1L]) {
      more <- match_part(part, q)
      # The first of several has G.
      for (field in setdiff(names(more), "gram")) {
        found[[field]] <- found[[field]] + more[[field]]
      }
    }
    c(q[c("weights", "means", "variances")], found)
  }
}

match_part <- function(part, q) {
  means <- q$means
  if (!is.null(part$turn)) means <- means %*% part$turn
  found <- .Call(C_r_match, part$source, part$weights, part$noise, part$pairs,
                 q$weights, means, q$variances)
  if (!is.null(part$turn)) {
    found$to_means <- tcrossprod(found$to_means, part$turn)
  }
  found
}

# The same for covariances, without derivatives. Where G and g are known they
# stay: they do not depend on the weights.
match_covariances <- function(q, parts, kernel) {
  if (!"g" %in% names(q)) {
    components <- lapply(seq_along(q$weights), \(j) component(q, j))
    q$g <- vapply(components, \(component) {
      sum(vapply(parts, \(part) {
        sum(part$weights *
              component_at(component, kernel, part$sample$x, part_noise(part)))
      }, numeric(1)))
    }, numeric(1))
    q$gram <- gaussian_gram(components, kernel)
  }
  q$objective <- sum(q$weights * (q$gram %*% q$weights)) -
    2 * sum(q$weights * q$g)
  q[c("weights", "means", "covariances", "objective", "g", "gram")]
}

# A function of free parameters: c(J, its gradient).
free_matcher <- function(mean, m) {
  native <- native_parts(merge_parts(embedding_parts(mean)), mean$kernel)
  function(u) {
    found <- match_free_part(native[[1L]], m, u)
    for (part in native[-1L]) found <- found + match_free_part(part, m, u)
    found
  }
}

match_free_part <- function(part, m, u) {
  turn <- part$turn
  at <- if (!is.null(turn)) m + seq_len(length(u) - 2L * m)
  if (!is.null(turn)) u[at] <- matrix(u[at], m) %*% turn
  found <- .Call(C_r_match_free, part$source, part$weights, part$noise,
                 part$pairs, m, u)
  if (!is.null(turn)) {
    found[1L + at] <- tcrossprod(matrix(found[1L + at], m), turn)
  }
  found
}

# The parts of an estimate as the core takes them: list(source, weights, noise,
# turn: see native_part(), pairs: is G there?), J being the sum over parts. The
# pairs are those of the kernel as it is: of a part that is not turned, the
# first then, or of a point without weight.
native_parts <- function(parts, kernel) {
  turned <- vapply(parts, \(part) is.matrix(part$noise), NA)
  if (all(turned)) {
    x <- parts[[1L]]$sample$x[1L, , drop = FALSE]
    parts <- c(list(list(sample = list(x = x), weights = 0)), parts)
  } else {
    parts <- parts[order(turned)]
  }
  found <- lapply(parts, native_part, kernel = kernel)
  for (i in seq_along(found)) found[[i]]$pairs <- i == 1L
  found
}

# Noise of covariance E = Q diag(t) Q' - Theta: the inner product with N(a, vI)
# is that of the points Q'x with N(Q'a, vI) by a kernel of bandwidths sqrt(t_l),
# times prod_l theta_l / sqrt(t_l). `turn` is Q.
native_part <- function(part, kernel) {
  x <- part$sample$x
  weights <- part$weights
  noise <- part_noise(part)
  turn <- NULL
  if (is.matrix(noise)) {
    theta <- rep_len(kernel$bandwidth, ncol(x))
    total <- eigen(noise + diag(theta^2, ncol(x)), symmetric = TRUE)
    turn <- total$vectors
    x <- x %*% turn
    kernel$bandwidth <- sqrt(pmax(total$values, min(theta)^2))
    weights <- weights * prod(theta / kernel$bandwidth)
    noise <- numeric(ncol(x))
  }
  list(source = native_source(kernel, x), weights = weights, noise = noise,
       turn = turn)
}

part_noise <- function(part) {
  if (is.null(part$noise)) numeric(ncol(part$sample$x)) else part$noise
}

# Free parameters of a mixture: weights by softmax, means, log variances.
free_parameters <- function(q) {
  m <- length(q$weights)
  c(log(pmax(q$weights, 1e-4 / m)), q$means, log(q$variances))
}

mixture_of <- function(u, m) {
  weights <- exp(u[seq_len(m)] - max(u[seq_len(m)]))
  last <- length(u) - m
  list(weights = weights / sum(weights),
       means = matrix(u[(m + 1L):last], m),
       variances = exp(u[last + seq_len(m)]))
}

# --- The weights -------------------------------------------------------------

# The weights that minimize J, J never above that of the start: pi'(G + eps I)pi
# - 2 pi'(g + eps pi_0) over the simplex.
match_weights <- function(start, match) {
  m <- length(start$weights)
  largest <- max(abs(start$gram))
  if (largest == 0 || m == 1L) {
    return(start)
  }
  ridge <- 1e-8 * mean(diag(start$gram))
  solved <- program_solution(quadprog::solve.QP(
    (start$gram + diag(ridge, m)) / largest,
    (start$g + ridge * start$weights) / largest,
    cbind(1, diag(m)), c(1, numeric(m)), meq = 1L
  ), "the weights of the components")
  # What is smaller is rounding, but would be all the density far from the rest.
  solved[solved < 1e-8] <- 0
  best <- start
  best$weights <- solved / sum(solved)
  best <- match(best)
  if (best$objective <= start$objective) best else start
}

# The mixture with weights on the way from those of one to those of another.
move_weights <- function(from, to, share) {
  from$weights <- (1 - share) * from$weights + share * to$weights
  from
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

# From the best weights on, or the start itself; list(best, path, steps:
# "start", "weights" or the number of steps); no more than `most` steps (NULL:
# any number).
match_all <- function(start, first, mean, match, plan, out, most) {
  m <- length(first$weights)
  size <- length(first$means)
  read <- \(u) match(mixture_of(u, m))
  path <- follow(start, if (!plan$direct) first, read, out,
                 if (is.null(most)) Inf else most)
  # In units of the distance that is left, or of J where that is less (a narrow
  # kernel leaves about 1/n, whatever the mixture), so that the stopping rule
  # sees what changes.
  left <- first$objective + mean$norm2
  unit <- min(left, abs(first$objective))
  if (left <= 1e-14 * (abs(first$objective) + mean$norm2) || unit == 0) {
    return(path$end())
  }
  evaluate <- free_matcher(mean, m)
  at <- keep_last(\(u) {
    found <- evaluate(u)
    path$add(u, found[1L])
    found
  })
  widest <- max(first$variances, mean(scale(first$means, scale = FALSE)^2))
  # A descent that is to be stopped goes through better densities in plain
  # units, one to the end takes fewer steps in those of the embedding.
  units <- if (is.null(out) && is.null(most)) {
    embedding_units(first, mean$kernel, unit)
  }
  if (is.null(units)) units <- rep(c(1, sqrt(widest), 1), c(m, size, m))
  lowest <- pmin(log(plan$lowest), log(first$variances))
  tryCatch(
    stats::optim(
      free_parameters(first), \(u) (at(u)[1L] - first$objective) / unit,
      \(u) at(u)[-1L] / unit, method = "L-BFGS-B",
      lower = c(rep(-Inf, m + size), lowest),
      upper = c(rep(Inf, m + size), rep(log(1e4 * widest), m)),
      control = list(maxit = most_iterations, factr = 5e8, parscale = units)
    ),
    kernmean_enough = identity,
    error = \(e) stop_kernmean("numeric", "the descent failed: ",
                               conditionMessage(e))
  )
  path$end()
}

# optim() asks for value and gradient at one point in two calls.
keep_last <- function(f) {
  last <- NULL
  \(u) {
    if (!identical(u, last$u)) last <<- list(u = u, found = f(u))
    last$found
  }
}

# As many iterations of BFGS as the plan says, from the start itself: list(best,
# path, steps). No units and no tolerance: J as it is. A variance at the floor
# does not count as one that moves.
match_steps <- function(first, mean, match, plan) {
  m <- length(first$weights)
  evaluate <- free_matcher(mean, m)
  begin <- free_parameters(first)
  logs <- length(begin) - m + seq_len(m)
  lowest <- pmin(log(plan$lowest), begin[logs])
  raise <- \(u) replace(u, logs, pmax(u[logs], lowest))
  at <- keep_last(\(u) {
    found <- evaluate(raise(u))
    found[1L + logs[u[logs] < lowest]] <- 0
    found
  })
  # BFGS takes the gradient once in an iteration, where that begins.
  seen <- numeric()
  end <- tryCatch(
    stats::optim(begin, \(u) at(u)[1L], \(u) {
      found <- at(u)
      seen[length(seen) + 1L] <<- found[1L]
      found[-1L]
    }, method = "BFGS", control = list(maxit = plan$steps, reltol = 0)),
    error = \(e) stop_kernmean("numeric", "the descent failed: ",
                               conditionMessage(e))
  )
  best <- match(mixture_of(raise(end$par), m))
  taken <- min(length(seen), plan$steps)
  shown <- unique(c(seq_len(taken %/% look_every) * look_every, taken))
  list(best = best, steps = taken, path = data.frame(
    step = c("start", format(shown, trim = TRUE)),
    objective = c(first$objective, seen[setdiff(shown, taken)], best$objective)
  ))
}

# Units in which each free parameter alone moves the embedding of the mixture by
# the root of `distance2`, from the squared norms of its derivatives; NULL for
# polynomials.
embedding_units <- function(q, kernel, distance2) {
  if (!is_rbf(kernel)) {
    return(NULL)
  }
  along <- drop(q$gram %*% q$weights)
  height <- q$weights^2 * diag(q$gram)
  theta2 <- rep_len(kernel$bandwidth, ncol(q$means))^2
  rate <- 1 / outer(2 * q$variances, theta2, `+`)
  # A derivative of nearly 0 must not make a step of any size.
  unit <- \(norms2) {
    norms2 <- pmax(norms2, 1e-6 * max(norms2))
    ifelse(norms2 > 0, sqrt(distance2 / norms2), 1)
  }
  c(unit(height - q$weights^2 * (2 * along - sum(q$weights * along))),
    unit(height * rate),
    unit(height * q$variances^2 *
           (rowSums(rate)^2 + 2 * rowSums(rate^2)) / 4))
}

# Keeps count of the steps that lower J, and looks at the mixture now and then
# (read() makes it of free parameters): where to stop is decided by J or, with
# `out`, by the log density of these points. `first` has the best weights; NULL
# where the start itself is the first.
follow <- function(start, first, read, out, most) {
  direct <- is.null(first)
  if (direct) first <- start
  lowest <- first$objective
  steps <- 0L
  latest <- NULL
  looks <- list()
  logs <- list()
  # The mixture is made only where there are points to see it.
  look <- \(label, objective, q) {
    looks[[length(looks) + 1L]] <<- list(label, objective)
    if (!is.null(out)) logs[[length(looks)]] <<- mixture_log(q, out)
  }
  look("start", start$objective, start)
  if (!direct) look("weights", first$objective, first)
  list(
    add = \(u, objective) {
      if (is.finite(objective) && objective < lowest) {
        lowest <<- objective
        steps <<- steps + 1L
        latest <<- u
        if (steps %% look_every == 0L) look(steps, objective, read(u))
      }
      if (steps >= most) {
        signalCondition(structure(class = c("kernmean_enough", "condition"),
                                  list(message = "enough", call = NULL)))
      }
    },
    end = \() {
      if (steps %% look_every != 0L) look(steps, lowest, read(latest))
      path <- data.frame(step = vapply(looks, \(row) format(row[[1L]]), ""),
                         objective = vapply(looks, `[[`, 0, 2L))
      if (!is.null(out)) {
        logs <- do.call(cbind, logs)
        path$heldout <- -colMeans(logs)
        at <- first_good(logs)
        return(list(path = path, steps = looks[[at]][[1L]],
                    score = path$heldout[at]))
      }
      ends <- list(start = start, weights = first)
      if (steps > 0L) {
        ends$all <- read(latest)
        path$objective[nrow(path)] <- ends$all$objective
      }
      at <- which.min(vapply(ends, `[[`, 0, "objective"))
      list(best = ends[[at]], path = path,
           steps = if (at == 3L) steps else names(ends)[at])
    }
  )
}

# The first column, each a look at the same points held out, that is not worse
# than the first of all and within a standard error of the best (that of the
# differences point by point; rounding is no difference): the largest of many
# noisy means is no better guide than the earliest that is as good.
first_good <- function(logs) {
  means <- colMeans(logs)
  best <- which.max(means)
  if (!is.finite(means[best])) {
    return(1L)
  }
  behind <- logs[, best] - logs
  error <- apply(behind, 2L, stats::sd) / sqrt(nrow(logs))
  error[!is.finite(error)] <- 0
  slack <- 1e-10 * max(1, abs(means[best]))
  which(means >= means[1L] & colMeans(behind) <= error + slack)[1L]
}

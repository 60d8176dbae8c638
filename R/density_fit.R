# Where the fit of a density starts. A mixture is
# list(weights: m, means: m x d, and variances: m, or covariances: d x d x m),
# all in the units of the kernel.

# The clusters of k-means as components. `shape` is list(shape, m, nstart,
# lowest: the floor of variances, widen: a factor on them); `which` says of what
# points an error is to speak.
cluster_start <- function(x, shape, which = "") {
  start <- if (shape$shape == "isotropic") {
    kmeans_start(x, shape$m, shape$nstart, shape$lowest, which)
  } else {
    shaped_start(x, shape, which)
  }
  widen_mixture(start, shape$widen)
}

widen_mixture <- function(q, factor) {
  field <- intersect(c("variances", "covariances"), names(q))
  q[[field]] <- factor * q[[field]]
  q
}

kmeans_start <- function(x, m, nstart, lowest, which = "") {
  found <- find_clusters(x, m, nstart, which)
  variances <- found$withinss / (as.double(found$size) * ncol(x))
  list(weights = found$size / nrow(x), means = unname(found$centers),
       variances = pmax(variances, lowest))
}

find_clusters <- function(x, m, nstart, which = "") {
  distinct <- sum(!duplicated(x))
  if (m > distinct) {
    stop_input("'m' must be at most ", distinct, ", the number of distinct ",
               "points", which, ", not ", m)
  }
  if (m == 1L || distinct > m) {
    # That some run needs more iterations does not matter for the best of them.
    tryCatch(
      suppressWarnings(stats::kmeans(x, m, iter.max = 100L, nstart = nstart)),
      error = \(e) stop_kernmean("numeric", "k-means failed: ",
                                 conditionMessage(e))
    )
  } else {
    each_point(x)
  }
}

# As many clusters as there are distinct points.
each_point <- function(x) {
  keys <- apply(x, 1L, \(row) paste(format(row, digits = 17), collapse = " "))
  first <- !duplicated(x)
  size <- as.vector(table(factor(keys, keys[first])))
  list(cluster = match(keys, keys[first]), centers = x[first, , drop = FALSE],
       size = size, withinss = numeric(length(size)))
}

# --- Components with covariances ---------------------------------------------

cluster_rounds <- 3L

# Clusters found in the metric of their own pooled covariance W, which no affine
# map of the points changes. With S_j the scatter of n_j points, the covariance
# is C_j = (S_j + a W)/(n_j + a), a = d + 1, or that part of W that C_j is in
# the mean over directions, tr(W^-1 C_j)/d.
shaped_start <- function(x, shape, which) {
  m <- shape$m
  d <- ncol(x)
  cluster <- find_clusters(x, m, shape$nstart, which)$cluster
  for (round in seq_len(if (m > 1L) cluster_rounds - 1L else 0L)) {
    root <- metric_root(pooled_covariance(x, cluster, shape$lowest))
    cluster <- find_clusters(x %*% root, m, shape$nstart, which)$cluster
  }
  pooled <- pooled_covariance(x, cluster, shape$lowest)
  root <- metric_root(pooled)
  size <- tabulate(cluster, m)
  means <- unname(rowsum(x, cluster) / size)
  more <- d + 1
  covariances <- vapply(seq_len(m), \(j) {
    u <- x[cluster == j, , drop = FALSE] - rep(means[j, ], each = size[j])
    if (shape$shape == "common") {
      pooled * (sum((u %*% root)^2) / d + more) / (size[j] + more)
    } else {
      raise_spectrum((crossprod(u) + more * pooled) / (size[j] + more),
                     shape$lowest)
    }
  }, matrix(0, d, d))
  list(weights = size / nrow(x), means = means,
       covariances = array(covariances, c(d, d, m)))
}

pooled_covariance <- function(x, cluster, lowest) {
  means <- rowsum(x, cluster) / tabulate(cluster)
  u <- x - means[cluster, , drop = FALSE]
  raise_spectrum(unname(crossprod(u)) / nrow(x), lowest)
}

# A covariance with no eigenvalue below `lowest`.
raise_spectrum <- function(s, lowest) {
  found <- eigen(s, symmetric = TRUE)
  if (min(found$values) >= lowest) {
    return(s)
  }
  found$vectors %*% (pmax(found$values, lowest) * t(found$vectors))
}

metric_root <- function(s) {
  found <- eigen(s, symmetric = TRUE)
  found$vectors / rep(sqrt(found$values), each = nrow(s))
}

# The fit behind kme_density(). A mixture is list(weights: m, means: m x d, and
# variances: m, or covariances: d x d x m), in the units of the kernel, with
# `objective` = J where it has been computed.

# The fit with a size and a shape that are known, see fit_density().
fit_chosen <- function(sample, plan, share) {
  x <- sample$x
  # First, so that the start does not depend on what is held out.
  start <- plan$first
  if (is.null(start)) start <- cluster_start(x, plan$shape)
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
  first <- plan$first
  if (is.null(first)) {
    first <- cluster_start(kept$x, plan$shape,
                           " that are not held out (by 'validate')")
  }
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
  sort(sample.int(n, min(max(1L, round(n * share)), n - 1L)))
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

# How many components a density has.

# list(best, start, sample: with the kernel that was chosen, mean: the estimate
# matched, path, steps, heldout, bandwidths, sizes, widen, toward). `plan` is
# list(estimator: an object or a fit to the sample, kernels: to choose from,
# optimize, steps: how many all parameters take or NULL, sizes: to choose from,
# first: the user's start or NULL, direct: do all parameters move from the start
# itself, not from the best weights?, widenings: to choose from, shape: as of
# cluster_start(), toward: how far the weights go to the best ones, lowest: the
# floor of variances). A share of the points is held out of first fits, which
# choose the size, the kernel and where to stop; the fit to all points then goes
# as far.
fit_density <- function(sample, plan, share) {
  if (length(plan$sizes) > 1L) plan <- choose_size(sample, plan, share)
  found <- fit_chosen(sample, plan, share)
  found[c("sizes", "widen", "toward")] <- list(
    plan$tried, plan$shape$widen, plan$toward
  )
  found
}

widenings <- c(1, 1.25, 1.5)
steps_to_weights <- c(0, 0.5, 1)
most_starts_tried <- 10L
sizes_without_gain <- 3L
least_looks <- 300

# 1, 2, 3, 4, 6, 8, 12, ... up to n/5
candidate_sizes <- function(n) {
  powers <- 2^(1:30)
  sizes <- sort(c(1, powers, 1.5 * powers))
  as.integer(sizes[sizes <= max(1, n / 5)])
}

# The plan with the number of components, how much wider than their clusters
# they are, and how far the weights go from the shares of the clusters to the
# best ones: by the mean log density of points that are held out, each once.
# The first two are chosen with the shares, a size after the other until
# several in a row have brought no gain.
choose_size <- function(sample, plan, share) {
  estimator <- plan$estimator
  if (inherits(estimator, "kme")) estimator <- estimator$estimator
  parts <- unlist(lapply(seq_len(ceiling(least_looks / sample$n)), \(time) {
    of <- make_folds(sample$n, max(2L, round(1 / share)), "drawn")
    lapply(unname(split(seq_len(sample$n), of)), \(out) {
      kept <- points_sample(sample$x[-out, , drop = FALSE], sample$kernel)
      check_kept(kept, estimator)
      list(out = sample$x[out, , drop = FALSE], kept = kept)
    })
  }), recursive = FALSE)
  found <- try_sizes(parts, plan)
  tried <- found$tried
  tried$toward <- 0
  chosen <- which.max(tried$log_density)
  best <- tried[chosen, ]
  plan$m <- plan$shape$m <- best$m
  plan$shape$widen <- best$widen
  if (plan$weigh && best$m > 1L) {
    value <- held_out_density(parts, \(part, i) {
      match <- matcher(estimate_kept(part$kept, estimator))
      first <- match(widen_mixture(found$starts[[best$m]][[i]], best$widen))
      check_match(first)
      last <- match_weights(first, match)
      lapply(steps_to_weights, move_weights, from = first, to = last)
    })
    plan$toward <- steps_to_weights[which.max(value)]
    if (plan$toward > 0) chosen <- nrow(tried) + which.max(value) - 1L
    tried <- rbind(tried, data.frame(
      m = best$m, widen = best$widen, log_density = value,
      toward = steps_to_weights
    )[steps_to_weights > 0, ])
    rownames(tried) <- NULL
  }
  tried$chosen <- seq_len(nrow(tried)) == chosen
  plan$tried <- tried[c("m", "widen", "toward", "log_density", "chosen")]
  plan
}

# Over all points held out, for each of the mixtures that a function makes of a
# part and its number.
held_out_density <- function(parts, mixtures) {
  total <- 0
  rows <- 0
  for (i in seq_along(parts)) {
    out <- parts[[i]]$out
    rows <- rows + nrow(out)
    own <- mixtures(parts[[i]], i)
    total <- total + vapply(own, \(q) sum(mixture_log(q, out)), 0)
  }
  total / rows
}

# list(tried: a data frame of m, widen and log_density; starts: of each m, one
# for each part).
try_sizes <- function(parts, plan) {
  tried <- NULL
  starts <- list()
  distinct <- min(vapply(parts, \(part) sum(!duplicated(part$kept$x)), 1L))
  best <- -Inf
  since <- 0L
  shape <- plan$shape
  shape[c("nstart", "widen")] <- list(min(shape$nstart, most_starts_tried), 1)
  for (m in plan$sizes[plan$sizes <= max(1L, distinct)]) {
    shape$m <- m
    these <- starts[[m]] <- lapply(parts, \(part) {
      cluster_start(part$kept$x, shape, " that are not held out")
    })
    value <- held_out_density(parts, \(part, i) {
      lapply(plan$widenings, widen_mixture, q = these[[i]])
    })
    tried <- rbind(tried, data.frame(m = m, widen = plan$widenings,
                                     log_density = value))
    since <- if (max(value) > best) 0L else since + 1L
    best <- max(best, value)
    if (since == sizes_without_gain && plan$stop_early) break
  }
  list(tried = tried, starts = starts)
}

# The arguments of kme_density(), and densities in the units of the user.

# --- Units ---------------------------------------------------------------

# A mixture in the units of the user, and back. Variances stay in those of the
# kernel: in others, such components need not be round.
user_mixture <- function(q, sample) {
  q$means <- unscale_points(sample$kernel, q$means)
  if (!is.null(colnames(sample$x))) colnames(q$means) <- colnames(sample$x)
  if (!is.null(q$covariances)) {
    back <- scaling_back(sample$kernel, ncol(q$means))
    q$covariances[] <- apply(q$covariances, 3L, \(s) {
      crossprod(back, matrix(s, nrow(back)) %*% back)
    })
  }
  q[intersect(c("weights", "means", "variances", "covariances", "objective"),
              names(q))]
}

kernel_mixture <- function(q, kernel) {
  if (!is.null(q$covariances)) {
    return(scale_mixture(kernel, q))
  }
  q$means <- scale_points(kernel, q$means)
  q
}

# The d x d matrix that takes points of the kernel to those of the user.
scaling_back <- function(kernel, d) {
  scaling <- kernel$scaling
  if (is.null(scaling)) {
    diag(1, d)
  } else if (is.matrix(scaling$factor)) {
    scaling$back
  } else {
    diag(scaling$factor, d)
  }
}

# The log of the volume of a unit of the user's in those of the kernel.
log_jacobian <- function(kernel) {
  factor <- kernel$scaling$factor
  if (is.null(factor)) {
    0
  } else if (is.matrix(factor)) {
    c(determinant(factor)$modulus)
  } else {
    -sum(log(factor))
  }
}

# --- Arguments ---------------------------------------------------------------

# The share of the points that is held out; `wanted`: what is to be chosen;
# `steps`: a number where it says how far to go.
check_validate <- function(validate, estimator, wanted, steps) {
  if (is.null(validate)) {
    validate <- if (any(wanted)) 0.2 else 0
  }
  if (validate > 0 && !any(wanted)) {
    stop_input("'validate' must be 0 ", if (is.null(steps)) {
      paste("for optimize = \"weights\" and one 'm', which runs to its end;",
            "choose optimize = \"all\"")
    } else {
      "with 'steps' and one 'm': nothing is left to decide"
    })
  }
  if (validate == 0 && any(wanted[c("m", "bandwidths")])) {
    stop_input("'validate' must be positive to choose among ",
               if (wanted[["m"]]) "numbers of components; give one as 'm'" else
                 "'bandwidths'")
  }
  if (validate > 0 && !is.null(estimator$sample$weights)) {
    stop_input(
      "'validate' must be 0 where 'estimator' is a fit with weights of its own",
      if (wanted[["m"]]) ", and 'm' a number"
    )
  }
  validate
}

# The numbers of components to choose from; one if there is nothing to choose.
read_sizes <- function(m, absent, start, n) {
  if (!is.null(start)) {
    count <- length(start$weights)
    if (!absent && !(is.numeric(m) && length(m) == 1L && m %in% count)) {
      stop_input("'m' must be the number of components of 'start', ", count,
                 ", not ", describe(m))
    }
    return(count)
  }
  if (identical(m, "validate")) {
    return(candidate_sizes(n))
  }
  if (!is.numeric(m) || !length(m)) {
    stop_input("'m' must be \"validate\" or a whole number (several to choose ",
               "from), not ", describe(m))
  }
  sort(unique(vapply(m, take, integer(1), count(), "m")))
}

# What components look like: that of the start, if there is one.
read_shape <- function(shape, optimize, start, sample) {
  if (optimize == "all") {
    if (!is.null(shape) && shape != "isotropic" ||
          !is.null(start$covariances)) {
      stop_input(if (is.null(start$covariances)) "'shape'" else "'start'",
                 " must be isotropic for optimize = \"all\", which moves one ",
                 "variance for each component")
    }
    return("isotropic")
  }
  own <- if (!is.null(start$covariances)) {
    c("full", "common")
  } else if (!is.null(start)) {
    "isotropic"
  } else if (is_scaled(sample$kernel) &&
               !covariance_spans(sample_raw(sample))) {
    c("isotropic", "full", "common")
  } else {
    c("full", "common", "isotropic")
  }
  if (is.null(shape)) {
    return(own[1L])
  }
  if (!shape %in% own) {
    stop_input("'start' must have ", if (shape == "isotropic") "variances" else
      "covariances", " for shape = \"", shape, "\"")
  }
  shape
}

covariance_spans <- function(x) {
  scaling <- tryCatch(new_scaling(x, "whiten", "x"),
                      kernmean_error_input = \(e) NULL)
  !is.null(scaling) && scaling$rank == ncol(x)
}

# The points with their kernel; a fit in place of an estimator brings its own.
density_sample <- function(x, kernel, estimator, bandwidths, scale) {
  fitted <- inherits(estimator, "kme")
  if (!is.null(bandwidths) && (fitted || brings_kernel(x))) {
    stop_input("'bandwidths' must be NULL when ",
               if (fitted) "'estimator' is a fit" else "'x' is a gram",
               ", which has its own kernel")
  }
  sample <- if (fitted && !brings_kernel(x)) {
    if (!is.null(scale)) {
      stop_input("'scale' must not be given when 'estimator' is a fit, which ",
                 "has its own")
    }
    units <- fit_units(estimator$kernel, check_data(x), if (
      !is_scaled(estimator$kernel)) FALSE)
    points_sample(units$x, units$kernel, raw = units$raw)
  } else {
    if (is.null(scale)) scale <- default_scale(x, kernel)
    read_sample(x, kernel, default = if (is.numeric(bandwidths)) {
      kernel_rbf(bandwidths[1L])
    }, scale = scale)
  }
  sample_points(sample, "'x' must hold points, not a matrix of kernel values")
  own <- if (fitted) estimator$estimator else estimator
  if (fitted) check_fit(estimator, sample, kernel)
  check_density_kernel(sample, own, !is.null(bandwidths))
  sample
}

# The units where nothing was said of them: whitened, where that can be.
default_scale <- function(x, kernel) {
  if (brings_kernel(x) || is_scaled(kernel)) {
    return(NULL)
  }
  if (is.numeric(kernel$bandwidth) && length(kernel$bandwidth) > 1L) {
    return(FALSE)
  }
  x <- check_data(x)
  check_spread(x)
  if (covariance_spans(x)) {
    return("whiten")
  }
  warn_kernmean(
    "the ", count_of(nrow(x), "point"), " in ", count_of(ncol(x), "column"),
    " of 'x' do not vary in every direction, or hardly outnumber the columns: ",
    "scale = TRUE and shape = \"isotropic\" are the defaults here",
    kind = "whiten"
  )
  TRUE
}

# A fit must be one to the points, with the kernel that they have.
check_fit <- function(fit, sample, kernel) {
  if (!identical(unname(fit$sample$x), unname(sample$x))) {
    stop_input("'estimator' must be a fit of kme() on the points of 'x'")
  }
  if (!is.null(kernel)) {
    stop_input("'kernel' must not be given when 'estimator' is a fit, which ",
               "has its own")
  }
  if (!same_kernel(fit$kernel, sample$kernel, ncol(sample$x))) {
    stop_input("'estimator' must be a fit with the kernel of the gram, ",
               format_kernel(sample$kernel), ", not ",
               format_kernel(fit$kernel))
  }
}

# The kernels to choose from, first the one to be taken where all are as good;
# one if there is nothing to choose.
candidate_kernels <- function(bandwidths, kernel) {
  if (is.character(bandwidths)) {
    bandwidths <- kernel$bandwidth * 2^c(0, -0.5, 0.5, -1, 1, -1.5, -2)
  }
  if (!all(in_reach(c(kernel$bandwidth, bandwidths)^2))) {
    stop_kernmean("numeric", "squared bandwidths over- or underflow; ",
                  "rescale the columns of 'x'")
  }
  if (is.null(bandwidths)) {
    return(list(kernel))
  }
  lapply(bandwidths, \(bandwidth) {
    kernel$bandwidth <- bandwidth
    kernel$rule <- paste0("held-out likelihood",
                          if (bandwidth == min(bandwidths)) {
                            ", the smallest tried"
                          } else if (bandwidth == max(bandwidths)) {
                            ", the largest tried"
                          })
    kernel
  })
}

# The mean variance of the columns.
check_spread <- function(x) {
  n <- nrow(x)
  spread <- if (n > 1L) mean(scale(x, scale = FALSE)^2) * n / (n - 1) else 0
  if (spread == 0 && all(x == rep(x[1L, ], each = n))) {
    stop_input("'x' must have at least two distinct points")
  }
  if (!in_reach(spread)) {
    stop_kernmean("numeric", "variances over- or underflow; rescale the ",
                  "columns of 'x'")
  }
  spread
}

# Squares and inverses must be numbers too.
in_reach <- function(variance) variance > 1e-140 & variance < 1e140

# The user's start in the units of the kernel: list(weights, means, and
# variances or covariances), or NULL for clusters.
check_start <- function(start, sample) {
  if (is.null(start) || identical(start, "kmeans")) {
    return(NULL)
  }
  fields <- c("weights", "means")
  lacks <- if (is.list(start)) {
    c(setdiff(fields, names(start)),
      if (!any(c("variances", "covariances") %in% names(start))) {
        "variances (or covariances)"
      })
  }
  if (!is.list(start) || length(lacks)) {
    stop_input(
      "'start' must be \"kmeans\", a fit of kme_density() or a list with the ",
      "names weights, means and variances (or covariances), ",
      if (is.list(start)) {
        paste0("which lacks ", toString(lacks))
      } else {
        paste("not", describe(start))
      }
    )
  }
  x <- sample_raw(sample)
  weights <- check_shares(start[["weights"]], "start$weights")
  count <- length(weights)
  means <- check_newdata(start[["means"]], x, "start$means")
  if (nrow(means) != count) {
    stop_input("'start$means' must have ", count, " rows, one for each ",
               "component, not ", nrow(means))
  }
  q <- list(weights = weights, means = unname(means))
  if (is.null(start[["variances"]])) {
    q$covariances <- check_covariances(start[["covariances"]], ncol(x), count,
                                       "start$covariances")
    for (j in seq_len(count)) {
      tryCatch(chol(component(q, j)$cov), error = \(e) {
        stop_input("'start$covariances' must be positive definite; number ", j,
                   " is not")
      })
    }
  } else {
    within_reach <- numbers(1e-140, 1e140, open = TRUE, count = count)
    q$variances <- take(start[["variances"]], within_reach, "start$variances")
  }
  q <- kernel_mixture(q, sample$kernel)
  ends <- .Call(C_r_column_ranges, rbind(q$means, unname(sample$x)))
  if (!in_reach(max(ends[2L, ] - ends[1L, ])^2)) {
    stop_kernmean("numeric", "distances overflow; 'start$means' must be near ",
                  "the points")
  }
  q
}

# What can be matched: weights on points that vary in every direction, with a
# kernel that has closed forms.
check_density_kernel <- function(sample, estimator, searched) {
  if (!is.null(estimator$target)) {
    stop_input("'estimator' must have no target: a mixture is matched to ",
               "weights on the points")
  }
  kernel <- sample$kernel
  rank <- kernel$scaling$rank
  if (!is.null(rank) && rank < ncol(sample$x)) {
    stop_input("'scale' must not be \"whiten\" for a density of points that ",
               "vary in ", rank, " of ", count_of(ncol(sample$x), "direction"),
               " only; take scale = TRUE")
  }
  check_closed_form(kernel)
  if (searched && !(is_rbf(kernel) && length(kernel$bandwidth) == 1L)) {
    stop_input("'kernel' must be an RBF kernel with one bandwidth when ",
               "'bandwidths' is given, not ", format_kernel(kernel))
  }
  # A stack of its own choice has what the kernel allows.
  noisy <- vapply(c(list(estimator), estimator$candidates), has_trait, NA,
                  "poly")
  if (!is_rbf(kernel) &&
        (any(noisy) || !allows_sample(estimator, sample))) {
    stop_input("'kernel' must be an RBF kernel for the density by estimator ",
               "\"", estimator$name, "\", which has noise, not ",
               format_kernel(kernel))
  }
}

# The shelf dens_: densities by kernel mean matching.
#
# Offers from dens_density.R: marginal_mixture.
#
# The fit behind kme_density().
#

# A mixture of normals in the units of the kernel:
#   weights       m weights
#   means         m x d matrix
#   variances     m variances of isotropic components, or NULL
#   covariances   d x d x m array, or NULL
#   objective     J, where it has been computed
new_mixture <- function(weights, means, variances = NULL, covariances = NULL) {
  q <- list(weights = weights, means = means)
  q$variances <- variances
  q$covariances <- covariances
  q
}

least_variance <- c(full = 1e-4, common = 1e-4, isotropic = 0.01, steps = 1e-6)

# How a density is to be fitted:
#   estimator    an estimator, or a fit to the sample
#   kernels      the kernels to choose from
#   optimize     as of kme_density()
#   steps        as of kme_density()
#   sizes        the numbers of components to choose from
#   stop_early   may sizes be left untried?
#   widenings    the factors on the covariances of clusters to choose from
#   first        the start, NULL for clusters
#   direct       do all parameters move from the start itself, and not from its
#                best weights?
#   shape        shape of the components
#   m            number of components
#   nstart       number of random starts of k-means
#   widen        the factor on the covariances of clusters
#   lowest       the floor of variances, first as a share of the mean variance
#   weigh        is it chosen how far weights go to the best ones?
#   toward       how far weights go to the best ones, from 0 to 1
new_density_plan <- function(asked, sample, estimator) {
  kernels <- tried_kernels(sample$kernel, asked$bandwidths, "validate",
                           density_factors)
  theta <- unlist(lapply(kernels, `[[`, "bandwidth"))
  check_result(c(theta^2, theta^-2), "a squared bandwidth")
  first <- check_start(asked$start, sample)
  sizes <- read_sizes(asked$m, first, sample)
  shape <- read_shape(asked$shape, first, sample)
  direct <- identical(asked$start, "kmeans") || !is.null(asked$steps)
  lowest <- least_variance[[if (is.null(asked$steps)) shape else "steps"]]
  list(
    estimator = estimator, kernels = kernels, optimize = asked$optimize,
    steps = asked$steps, sizes = sizes,
    stop_early = is.null(asked$m) || identical(asked$m, "validate"),
    widenings = if (direct) 1 else widenings, first = first, direct = direct,
    shape = shape, m = sizes[1L], nstart = asked$nstart, widen = 1,
    lowest = asked$floor %||% lowest, toward = 1,
    weigh = asked$optimize == "weights" && is.null(asked$bandwidths)
  )
}

# --- The start ---------------------------------------------------------------

cluster_rounds <- 3L

# The clusters of k-means as components; `which` are words that tell, in an
# error, which points were clustered. Components with covariances are found in
# the metric of their own pooled covariance W, so that affine maps of the points
# change nothing. With S_j the scatter of n_j points and a = d + 1, the
# covariance of a component of full shape is C_j = (S_j + a W)/(n_j + a).
# Components of common shape have (tr(W^-1 C_j)/d) W, the multiple of W that is
# C_j in the mean over directions.
cluster_start <- function(x, plan, which = "") {
  m <- plan$m
  d <- ncol(x)
  clusters <- find_clusters(x, m, plan$nstart, which)
  if (plan$shape == "isotropic") {
    variances <- clusters$withinss / (as.double(clusters$size) * d)
    return(new_mixture(clusters$size / nrow(x), unname(clusters$centers),
                       plan$widen * pmax(variances, plan$lowest)))
  }
  cluster <- clusters$cluster
  for (pass in seq_len(cluster_rounds)) {
    centers <- rowsum(x, cluster) / tabulate(cluster)
    u <- x - take_rows(centers, cluster)
    pooled <- raise_spectrum(unname(crossprod(u)) / nrow(x), plan$lowest)
    metric <- eigen(pooled, symmetric = TRUE)
    root <- metric$vectors / rep(sqrt(metric$values), each = d)
    if (m == 1L || pass == cluster_rounds) break
    cluster <- find_clusters(x %*% root, m, plan$nstart, which)$cluster
  }
  size <- tabulate(cluster, m)
  means <- unname(rowsum(x, cluster) / size)
  more <- d + 1
  covariances <- vapply(seq_len(m), \(j) {
    u <- take_rows(x, cluster == j) - rep(means[j, ], each = size[j])
    if (plan$shape == "common") {
      pooled * (sum((u %*% root)^2) / d + more) / (size[j] + more)
    } else {
      raise_spectrum((crossprod(u) + more * pooled) / (size[j] + more),
                     plan$lowest)
    }
  }, matrix(0, d, d))
  new_mixture(size / nrow(x), means,
              covariances = plan$widen * array(covariances, c(d, d, m)))
}

widen_mixture <- function(q, factor) {
  field <- intersect(c("variances", "covariances"), names(q))
  q[[field]] <- factor * q[[field]]
  q
}

find_clusters <- function(x, m, nstart, which) {
  centers <- unique(x)
  distinct <- nrow(centers)
  if (m > distinct) {
    stop_input("'m' must be at most ", distinct, ", the number of distinct ",
               "points", which, ", not ", m)
  }
  # The algorithm of Hartigan and Wong refuses as many centers as there are
  # points. Some of the runs may warn that they need more iterations, which does
  # not matter, as the best run is taken.
  all <- m > 1L && m == distinct
  tryCatch(
    suppressWarnings(stats::kmeans(x, if (all) centers else m, 100L, nstart,
                                   if (all) "Lloyd" else "Hartigan-Wong")),
    error = \(e) stop_kernmean("numeric", "k-means failed: ",
                               conditionMessage(e))
  )
}

# A covariance with no eigenvalue below `lowest`.
raise_spectrum <- function(s, lowest) {
  spectrum <- eigen(s, symmetric = TRUE)
  if (min(spectrum$values) >= lowest) {
    return(s)
  }
  spectrum$vectors %*% (pmax(spectrum$values, lowest) * t(spectrum$vectors))
}

# --- One fit -----------------------------------------------------------------

# The fit of fit_points() to all points, with the `sample` and its kernel, the
# rows `heldout` and the `bandwidths` that were tried. First a share of the
# points is held out of fits that choose the kernel and the number of steps;
# then the fit to all points takes that kernel and as many steps.
fit_density <- function(sample, plan, share) {
  # The start comes first, so that it does not depend on points held out.
  start <- plan$first %||% cluster_start(sample$x, plan)
  # `fixed` is TRUE if the number of steps is known and no points need be held
  # out to choose it.
  fixed <- plan$optimize == "weights" || !is.null(plan$steps)
  if (share == 0 || fixed && length(plan$kernels) == 1L) {
    return(c(list(sample = sample), fit_points(sample, start, plan)))
  }
  n <- sample$n
  rows <- sort(sample.int(n, min(max(1L, round(n * share)), n - 1L)))
  part <- plan
  part$estimator <- estimator_of(plan$estimator)
  split <- hold_out(sample, rows)
  first <- plan$first %||%
    cluster_start(split$kept$x, plan, " that are not held out (by 'validate')")
  trials <- lapply(plan$kernels, \(kernel) {
    split$kept$kernel <- kernel
    fit_points(split$kept, first, part, split$out)
  })
  scores <- if (length(trials) > 1L) {
    vapply(trials, \(fit) -mean(mixture_log(fit$best, split$out)), 0)
  }
  chosen <- max(1L, which.min(scores))
  sample$kernel <- plan$kernels[[chosen]]
  fit <- fit_points(sample, start, plan, until = trials[[chosen]]$steps)
  if (!fixed) fit[c("path", "steps")] <- trials[[chosen]][c("path", "steps")]
  fit$heldout <- rows
  if (!is.null(scores)) {
    tried <- data.frame(
      bandwidth = vapply(plan$kernels, `[[`, 0, "bandwidth"), heldout = scores
    )
    fit$bandwidths <- tried[order(tried$bandwidth), ]
    rownames(fit$bandwidths) <- NULL
  }
  c(list(sample = sample), fit)
}

estimator_of <- \(mean) if (inherits(mean, "kme")) mean$estimator else mean

# The points held out, `out`, and the sample of those that are `kept`.
hold_out <- function(sample, rows) {
  list(out = take_rows(sample$x, rows),
       kept = points_sample(take_rows(sample$x, -rows), sample$kernel))
}

# The fit to a sample: the mixtures `best` and `start`, the `mean` that was
# matched, and for optimize = "all" the `path` and the `steps` taken. The log
# density of the points `out` decides where the fit stops, or `until` does: at
# the "start", at the "weights" or after a number of steps.
fit_points <- function(sample, start, plan, out = NULL, until = NULL) {
  mean <- plan$estimator
  if (!inherits(mean, "kme")) {
    mean <- if (is.null(out)) estimate_mean(sample, mean) else
      estimate_kept(sample, mean)
  }
  matched <- matcher(mean)
  first <- matched(start)
  check_match(first)
  best <- first
  if (plan$optimize == "weights" || !plan$direct) {
    best <- match_weights(first, matched)
  }
  if (plan$toward < 1) best <- matched(move_weights(first, best, plan$toward))
  c(list(start = first, mean = mean), if (!is.null(plan$steps)) {
    match_steps(first, matched, mean, plan)
  } else if (plan$optimize == "all" && !is.character(until)) {
    match_all(first, best, matched, mean, plan, out, until)
  } else {
    list(best = if (identical(until, "start")) first else best)
  })
}

# The estimate from the points that are kept when others are held out. It does
# not warn of candidates that the estimator leaves out, because the fit to all
# points warns of them.
estimate_kept <- function(kept, estimator) {
  without_warning("candidates", estimate_mean(kept, estimator))
}

check_match <- function(q) {
  if (!is.finite(q$objective) || !all(is.finite(q$gram))) {
    stop_kernmean("numeric", "kernel values overflow; rescale the columns of ",
                  "'x'")
  }
}

# --- The objective -----------------------------------------------------------

# A function that adds J, G, g and the derivatives of J to a mixture.
matcher <- function(mean) {
  parts <- merge_parts(embedding_parts(mean))
  native <- native_parts(parts, mean$kernel)
  function(q) {
    if (!is.null(q$covariances)) {
      return(match_covariances(q, parts, mean$kernel))
    }
    sums <- NULL
    for (part in native) {
      turn <- part$turn
      more <- .Call(C_r_match, part$source, part$weights, part$noise,
                    is.null(sums), q$weights,
                    if (is.null(turn)) q$means else q$means %*% turn,
                    q$variances)
      if (!is.null(turn)) more$to_means <- tcrossprod(more$to_means, turn)
      if (is.null(sums)) {
        sums <- more
        next
      }
      # Only the G of the first part is kept.
      for (field in setdiff(names(more), "gram")) {
        sums[[field]] <- sums[[field]] + more[[field]]
      }
    }
    c(q[c("weights", "means", "variances")], sums)
  }
}

# A function of the free parameters of m components, whose value is J followed
# by its gradient.
free_matcher <- function(mean, m) {
  native <- native_parts(merge_parts(embedding_parts(mean)), mean$kernel)
  function(u) {
    means <- seq(m + 1L, length(u) - m)
    sums <- 0
    for (part in native) {
      turn <- part$turn
      moved <- u
      if (!is.null(turn)) moved[means] <- matrix(u[means], m) %*% turn
      more <- .Call(C_r_match_free, part$source, part$weights, part$noise,
                    identical(sums, 0), m, moved)
      if (!is.null(turn)) {
        more[1L + means] <- tcrossprod(matrix(more[1L + means], m), turn)
      }
      sums <- sums + more
    }
    sums
  }
}

# A part of an estimate in the form that the C code reads; J is a sum over
# parts:
#   source    the source of its points
#   weights   their weights
#   noise     variances of their noise
#   turn      Q, a d x d matrix that turns the points; NULL if they are not
new_native_part <- function(source, weights, noise, turn = NULL) {
  list(source = source, weights = weights, noise = noise, turn = turn)
}

# The parts of an estimate in the form that the C code reads. The first part is
# one that is not turned (if there is none, a point of weight 0), because G is
# computed with the kernel of the first part. Where noise has a covariance
# matrix E = Q diag(t) Q' - Theta, the inner product with N(a, vI) is that of
# the points Q'x with N(Q'a, vI) by a kernel of bandwidths sqrt(t_l), times
# prod_l theta_l / sqrt(t_l).
native_parts <- function(parts, kernel) {
  parts <- unlist(lapply(parts, split_points), recursive = FALSE)
  turned <- vapply(parts, \(part) is.matrix(part$noise), NA)
  parts <- parts[order(turned)]
  if (all(turned)) {
    x <- take_rows(parts[[1L]]$sample$x, 1L)
    parts <- c(list(new_mean_part(list(x = x), 0)), parts)
  }
  lapply(parts, \(part) {
    x <- part$sample$x
    noise <- part$noise
    if (!is.matrix(noise)) {
      return(new_native_part(native_source(kernel, x), part$weights,
                             noise %||% numeric(ncol(x))))
    }
    theta <- rep_len(kernel$bandwidth, ncol(x))
    total <- eigen(noise + diag(theta^2, ncol(x)), symmetric = TRUE)
    kernel$bandwidth <- sqrt(pmax(total$values, min(theta)^2))
    new_native_part(native_source(kernel, x %*% total$vectors),
                    part$weights * prod(theta / kernel$bandwidth),
                    numeric(ncol(x)), total$vectors)
  })
}

# A list of a part, or of one part for each point where points have covariances
# of their own.
split_points <- function(part) {
  if (!is_each(part$noise)) {
    return(list(part))
  }
  Map(\(point, weight) replace(point[[1L]], "weights", list(weight)),
      by_point(part$sample$x, part$noise), part$weights)
}

# A mixture with covariances, to which J, G and g are added, without
# derivatives. If G and g are known already, they are kept, as they do not
# depend on the weights.
match_covariances <- function(q, parts, kernel) {
  if (is.null(q$g)) {
    components <- components_of(q)
    q$g <- vapply(components, \(component) {
      sum(vapply(parts, \(part) {
        sum(part$weights *
              component_at(component, kernel, part$sample$x, part$noise))
      }, 0))
    }, 0)
    q$gram <- gaussian_gram(components, NULL, kernel)
  }
  q$objective <- sum(q$weights * (q$gram %*% q$weights)) -
    2 * sum(q$weights * q$g)
  q[c("weights", "means", "covariances", "objective", "g", "gram")]
}

# The free parameters of a mixture: logarithms of weights, means, logarithms of
# variances.
free_parameters <- function(q) {
  m <- length(q$weights)
  c(log(pmax(q$weights, 1e-4 / m)), q$means, log(q$variances))
}

# The mixture of m components with the free parameters u.
mixture_of <- function(u, m) {
  weights <- exp(u[seq_len(m)] - max(u[seq_len(m)]))
  last <- length(u) - m
  new_mixture(weights / sum(weights), matrix(u[(m + 1L):last], m),
              exp(u[last + seq_len(m)]))
}

# --- The weights -------------------------------------------------------------

# The mixture with the weights that minimize J, or rather pi'(G + eps I)pi - 2
# pi'(g + eps pi_0), over the simplex; the start if its J is smaller.
match_weights <- function(start, matched) {
  m <- length(start$weights)
  largest <- max(abs(start$gram))
  if (largest == 0 || m == 1L) {
    return(start)
  }
  ridge <- 1e-8 * mean(diag(start$gram))
  weights <- simplex_weights(start$gram + diag(ridge, m),
                             start$g + ridge * start$weights, largest,
                             "the weights of the components")
  # Smaller weights are rounding errors, but far from the other components they
  # would make up the whole density.
  weights[weights < 1e-8] <- 0
  best <- start
  best$weights <- weights / sum(weights)
  best <- matched(best)
  if (best$objective <= start$objective) best else start
}

# argmin w'Gw - 2w'g over the simplex, in units of the largest value.
simplex_weights <- function(gram, g, largest, what) {
  program_solution(quadprog::solve.QP(
    gram / largest, g / largest, cbind(1, diag(length(g))),
    c(1, numeric(length(g))), meq = 1L
  ), what)
}

# The mixture `from` with weights on the way to those of the mixture `to`.
move_weights <- function(from, to, share) {
  from$weights <- (1 - share) * from$weights + share * to$weights
  from
}

# --- All parameters ----------------------------------------------------------

most_iterations <- 500L
look_every <- 10L

# The value of optim(), or the condition that ended it early; an error of
# optim() becomes an error of this package.
descend_all <- function(...) {
  tryCatch(
    stats::optim(...), kernmean_enough = identity,
    error = \(e) stop_kernmean("numeric", "the descent failed: ",
                               conditionMessage(e))
  )
}

# The `best` mixture of a descent over all parameters from the best weights, or
# from the start itself; its `path`; and the `steps` to the best mixture:
# "start", "weights" or the number of steps that lower J, at most `most` (NULL
# for any number). The mixtures at some of the steps are compared, and the best
# is chosen by J or, with `out`, by the log density of these points.
match_all <- function(start, best, matched, mean, plan, out, most) {
  ends <- list(start = start)
  if (!plan$direct) ends$weights <- best
  m <- length(best$weights)
  descent <- watched(free_matcher(mean, m), best$objective, most)
  units <- if (is.null(out) && is.null(most)) "embedding" else "plain"
  descend_watched(best, descent$slope_at, mean, plan$lowest, units)
  found <- descent$looks()
  seen <- c(ends, lapply(found$parameters, mixture_of, m))
  path <- data.frame(
    step = c(names(ends), format(found$steps, trim = TRUE)),
    objective = c(vapply(unname(ends), `[[`, 0, "objective"), found$objective)
  )
  stop_at <- if (is.null(out)) {
    which.min(path$objective)
  } else {
    logs <- do.call(cbind, lapply(unname(seen), mixture_log, out))
    path$heldout <- -colMeans(logs)
    first_good(logs)
  }
  best <- seen[[stop_at]]
  if (stop_at > length(ends)) best <- matched(best)
  path$objective[stop_at] <- best$objective
  list(best = best, path = path,
       steps = c(as.list(names(ends)), as.list(found$steps))[[stop_at]])
}

# A list of two functions. `slope_at` returns, at free parameters, J followed by
# its gradient; it counts the steps that bring J below its lowest value so far
# (`lowest` at first), remembers every `look_every`-th of them and the last one,
# and ends the descent after `most` steps. `looks` returns what was remembered:
# the parameters, J and the number of each of these steps.
watched <- function(evaluate, lowest, most) {
  steps <- 0L
  looks <- list()
  heights <- numeric()
  slope_at <- keep_last(\(u) {
    slope <- evaluate(u)
    if (is.finite(slope[1L]) && slope[1L] < lowest) {
      lowest <<- slope[1L]
      steps <<- steps + 1L
      # The latest step is stored in the place of the next `look_every`-th one.
      looks[[ceiling(steps / look_every)]] <<- u
      heights[ceiling(steps / look_every)] <<- lowest
    }
    if (!is.null(most) && steps >= most) {
      signalCondition(structure(class = c("kernmean_enough", "condition"),
                                list(message = "enough", call = NULL)))
    }
    slope
  })
  list(slope_at = slope_at, looks = \() list(
    parameters = looks, objective = heights,
    steps = pmin(seq_along(looks) * look_every, steps)
  ))
}

# A descent over all parameters from the mixture `best`, with variances of at
# least `floor`. In the units of the embedding a descent needs fewer steps to
# the minimum; in plain units the mixtures on its way are better densities,
# which matters if it is stopped early.
descend_watched <- function(best, slope_at, mean, floor, units) {
  # The objective is divided by the squared distance between the embeddings, or
  # by |J| if that is less (with a narrow kernel the distance is about 1/n for
  # all mixtures), so that the stopping rule of optim() notices small gains.
  left <- best$objective + mean$norm2
  unit <- min(left, abs(best$objective))
  if (left <= 1e-14 * (abs(best$objective) + mean$norm2) || unit == 0) {
    return()
  }
  m <- length(best$weights)
  size <- length(best$means)
  widest <- max(best$variances, mean(scale(best$means, scale = FALSE)^2))
  scales <- if (units == "embedding" &&
                  kernel_has(mean$kernel, "Gaussian form")) {
    embedding_units(best, mean$kernel, unit)
  } else {
    rep(c(1, sqrt(widest), 1), c(m, size, m))
  }
  floors <- pmin(log(floor), log(best$variances))
  descend_all(
    free_parameters(best), \(u) (slope_at(u)[1L] - best$objective) / unit,
    \(u) slope_at(u)[-1L] / unit, method = "L-BFGS-B",
    lower = c(rep(-Inf, m + size), floors),
    upper = c(rep(Inf, m + size), rep(log(1e4 * widest), m)),
    control = list(maxit = most_iterations, factr = 5e8, parscale = scales)
  )
}

# The `best` mixture after as many iterations of BFGS from the start as the plan
# says, its `path` and the `steps` taken. Parameters are not scaled, and there
# is no tolerance. The derivative by a variance below its floor is 0.
match_steps <- function(first, matched, mean, plan) {
  m <- length(first$weights)
  begin <- free_parameters(first)
  logs <- length(begin) - m + seq_len(m)
  lowest <- pmin(log(plan$lowest), begin[logs])
  evaluate <- free_matcher(mean, m)
  raise <- \(u) replace(u, logs, pmax(u[logs], lowest))
  slope_at <- keep_last(\(u) {
    slope <- evaluate(raise(u))
    slope[1L + logs[u[logs] < lowest]] <- 0
    slope
  })
  # BFGS asks for the gradient once in an iteration, at its beginning.
  seen <- numeric()
  end <- descend_all(begin, \(u) slope_at(u)[1L], \(u) {
    seen[length(seen) + 1L] <<- slope_at(u)[1L]
    slope_at(u)[-1L]
  }, method = "BFGS", control = list(maxit = plan$steps, reltol = 0))
  best <- matched(mixture_of(raise(end$par), m))
  taken <- min(length(seen), plan$steps)
  shown <- unique(c(seq_len(taken %/% look_every) * look_every, taken))
  list(best = best, steps = taken, path = data.frame(
    step = c("start", format(shown, trim = TRUE)),
    objective = c(first$objective, seen[setdiff(shown, taken)], best$objective)
  ))
}

# The units in which each free parameter alone moves the embedding of the
# mixture by the root of `distance2`, for an RBF kernel, from the squared norms
# of the derivatives of the embedding.
embedding_units <- function(q, kernel, distance2) {
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

# The number of the first good mixture of a path. The columns of `logs` hold the
# log densities of the points held out, one column for each mixture. A mixture
# is good if its mean log density is not less than that of the first and within
# one standard error of the best, computed from the differences at each point.
# The best of many noisy means is often best by chance, and so the earliest good
# one is taken.
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

# --- The number of components ------------------------------------------------

widenings <- c(1, 1.25, 1.5)
steps_to_weights <- c(0, 0.5, 1)
most_starts_tried <- 10L
sizes_without_gain <- 3L
least_looks <- 300

# The numbers of components 1, 2, 3, 4, 6, 8, 12, ... up to n/5.
candidate_sizes <- function(n) {
  powers <- 2^(1:30)
  sizes <- sort(c(1, powers, 1.5 * powers))
  as.integer(sizes[sizes <= max(1, n / 5)])
}

# The plan with the number of components, the factor on their covariances, and
# how far the weights go from the shares of the clusters to the best ones, by
# the mean log density of points that are held out, each of them once in every
# division into folds. The first two are chosen first, with the shares of the
# clusters as weights.
choose_size <- function(sample, plan, share) {
  estimator <- estimator_of(plan$estimator)
  splits <- unlist(lapply(seq_len(ceiling(least_looks / sample$n)), \(deal) {
    folds <- make_folds(sample$n, max(2L, round(1 / share)), "drawn")
    lapply(split(seq_len(sample$n), folds), hold_out, sample = sample)
  }), recursive = FALSE)
  found <- try_sizes(splits, plan)
  tried <- found$tried
  chosen <- which.max(tried$log_density)
  plan$m <- tried$m[chosen]
  plan$widen <- tried$widen[chosen]
  if (plan$weigh && plan$m > 1L) {
    value <- held_out_density(splits, Map(\(split, start) {
      matched <- matcher(estimate_kept(split$kept, estimator))
      from <- matched(widen_mixture(start, plan$widen))
      check_match(from)
      lapply(steps_to_weights, move_weights, from = from,
             to = match_weights(from, matched))
    }, splits, found$starts))
    tried <- rbind(tried, data.frame(
      m = plan$m, widen = plan$widen, toward = steps_to_weights,
      log_density = value
    )[-1L, ])
    rownames(tried) <- NULL
    chosen <- which.max(tried$log_density)
    plan$toward <- tried$toward[chosen]
  }
  tried$chosen <- seq_len(nrow(tried)) == chosen
  plan$tried <- tried
  plan
}

# A list of `tried`, a table of held-out log densities for the sizes of a plan,
# and `starts`, for each split the start with the best size. Sizes are tried one
# after the other until several in a row bring no gain.
try_sizes <- function(splits, plan) {
  distinct <- min(vapply(splits, \(split) nrow(unique(split$kept$x)), 1L))
  tried <- NULL
  since <- 0L
  plan$nstart <- min(plan$nstart, most_starts_tried)
  for (m in plan$sizes[plan$sizes <= max(1L, distinct)]) {
    plan$m <- m
    starts <- lapply(splits, \(split) {
      cluster_start(split$kept$x, plan, " that are not held out")
    })
    value <- held_out_density(splits, lapply(starts, \(start) {
      lapply(plan$widenings, widen_mixture, q = start)
    }))
    better <- is.null(tried) || max(value) > max(tried$log_density)
    if (better) best_starts <- starts
    since <- if (better) 0L else since + 1L
    tried <- rbind(tried, data.frame(m = m, widen = plan$widenings, toward = 0,
                                     log_density = value))
    if (since == sizes_without_gain && plan$stop_early) break
  }
  list(tried = tried, starts = best_starts)
}

# The mean log density over the points held out of all splits, a number for each
# candidate; `mixtures` has a list of candidates for each split.
held_out_density <- function(splits, mixtures) {
  sums <- Map(\(split, candidates) {
    vapply(candidates, \(q) sum(mixture_log(q, split$out)), 0)
  }, splits, mixtures)
  Reduce(`+`, sums) / sum(vapply(splits, \(split) nrow(split$out), 1L))
}

# --- Units ---------------------------------------------------------------

# A mixture in the units of the user. Variances stay in the units of the kernel,
# because components that are isotropic there may not be isotropic in the units
# of the user.
user_mixture <- function(q, sample) {
  q$means <- unscale_points(sample$kernel, q$means)
  colnames(q$means) <- colnames(sample$x)
  if (!is.null(q$covariances)) {
    q$covariances <- map_covariances(
      q$covariances, scaling_back(sample$kernel, ncol(q$means))
    )
  }
  q[intersect(c("weights", "means", "variances", "covariances", "objective"),
              names(q))]
}

# The d x d matrix that takes points of the kernel to those of the user.
scaling_back <- function(kernel, d) {
  scaling <- kernel$scaling
  if (is.matrix(scaling$factor)) {
    scaling$back
  } else {
    diag(if (is.null(scaling)) 1 else scaling$factor, d)
  }
}

# The log of the volume, in the units of the kernel, of a cube of volume 1 in
# the units of the user.
log_jacobian <- function(kernel, d) {
  -c(determinant(scaling_back(kernel, d))$modulus)
}

# --- Arguments ---------------------------------------------------------------

# The share of the points that is held out, 0 if there is nothing to decide.
check_validate <- function(asked, plan) {
  several <- length(plan$sizes) > 1L || !is.null(asked$bandwidths)
  if (!several && (plan$optimize == "weights" || !is.null(plan$steps))) {
    return(0)
  }
  validate <- asked$validate %||% 0.2
  if (validate == 0 && several) {
    stop_input("'validate' must be positive to choose one of several 'm' or ",
               "'bandwidths'")
  }
  if (validate > 0 && !is.null(plan$estimator$sample$weights)) {
    stop_input("'validate' must be 0, and 'm' a number, where 'estimator' is ",
               "a fit with weights of its own")
  }
  validate
}

# The numbers of components to choose from; one if there is nothing to choose.
# `m` is NULL where it was not given.
read_sizes <- function(m, start, sample) {
  if (!is.null(start)) {
    count <- length(start$weights)
    if (!is.null(m) && !(is.numeric(m) && length(m) == 1L && m %in% count)) {
      stop_input("'m' must be the number of components of 'start', ", count,
                 ", not ", describe(m))
    }
    return(count)
  }
  if (!is.null(sample$sketch) && !is_number(m)) {
    stop_input("'m' must be a whole number for a sketch: a choice of several ",
               "takes rows to be held out")
  }
  if (is.null(m) || identical(m, "validate")) {
    return(candidate_sizes(sample$n))
  }
  if (!is.numeric(m) || !length(m)) {
    stop_input("'m' must be \"validate\" or a whole number (several to choose ",
               "from), not ", describe(m))
  }
  sort(unique(vapply(m, take, 1L, count(), "m")))
}

# The shape of components: the one asked for, that of the start, or by default
# the one that suits the units.
read_shape <- function(shape, start, sample) {
  can <- if (!is.null(start$covariances)) {
    c("full", "common")
  } else if (!is.null(start)) {
    "isotropic"
  } else if (kernel_has(sample$kernel, "scaling") &&
               !covariance_spans(sample_raw(sample))) {
    c("isotropic", "full", "common")
  } else {
    c("full", "common", "isotropic")
  }
  if (is.null(shape)) can[1L] else take(shape, choice(can))
}

covariance_spans <- function(x) {
  scaling <- tryCatch(new_scaling(x, "whiten", "x"),
                      kernmean_error_input = \(e) NULL)
  !is.null(scaling) && scaling$rank == ncol(x)
}

# The sample of the points with their kernel, or the sample of the fit that was
# given as the estimator.
density_sample <- function(asked) {
  x <- asked$x
  mean <- asked$estimator
  fitted <- inherits(mean, "kme")
  if (kernel_has(asked$kernel, "parts")) {
    check_closed_form(asked$kernel, sums = FALSE)
  }
  sample <- if (inherits(x, "kme_sketch")) {
    sample_support(as_sample(x))
  } else if (fitted && !brings_kernel(x)) {
    fit_sample(check_data(x), mean$kernel,
               if (!kernel_has(mean$kernel, "scaling")) FALSE)
  } else {
    scale <- asked$scale %||% default_scale(x, asked$kernel)
    bandwidths <- asked$bandwidths
    read_sample(x, asked$kernel, default = if (is.numeric(bandwidths)) {
      kernel_rbf(bandwidths[1L])
    }, scale = scale)
  }
  sample_points(sample, "'x' must hold points, not a matrix of kernel values")
  if (fitted && !same_sample(mean$sample, sample)) {
    stop_input("'estimator' must be a fit of kme() to 'x'")
  }
  check_density_kernel(sample, estimator_of(mean), !is.null(asked$bandwidths))
  sample
}

# The default of `scale`: whitening, if that is possible.
default_scale <- function(x, kernel) {
  if (brings_kernel(x) || kernel_has(kernel, "scaling")) {
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

# The factors of the bandwidth to choose from; the first is taken if all are
# equally good.
density_factors <- 2^c(0, -0.5, 0.5, -1, 1, -1.5, -2)

# The mean variance of the columns, or an error if it is 0 or overflows.
check_spread <- function(x) {
  n <- nrow(x)
  spread <- if (n > 1L) mean(scale(x, scale = FALSE)^2) * n / (n - 1) else 0
  if (spread == 0 && all(x == rep(x[1L, ], each = n))) {
    stop_input("'x' must have at least two distinct points")
  }
  # Squares and inverses of variances must be finite, too.
  if (!(spread > 1e-140 && spread < 1e140)) {
    stop_kernmean("numeric", "variances over- or underflow; rescale the ",
                  "columns of 'x'")
  }
  spread
}

# The user's start in the units of the kernel; NULL if the start is to be found
# by clustering.
check_start <- function(start, sample) {
  if (!is.list(start)) {
    return(NULL)
  }
  if ("means" %in% names(start)) {
    start$means <- check_newdata(start$means, sample_raw(sample), "start$means")
  }
  spread <- intersect(c("variances", "covariances"), names(start))
  q <- check_mixture(start, ncol(sample$x), "start",
                     c(spread, "variances or covariances")[1L])
  for (part in if (!is.null(q$covariances)) components_of(q)) {
    tryCatch(chol(part$cov), error = \(e) {
      stop_input("'start$covariances' must be positive definite")
    })
  }
  scale_mixture(sample$kernel, q)
}

# Stops unless a mixture can be matched: the estimate must be weights on points,
# the points must vary in every direction, and the kernel must have closed
# forms.
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
  check_closed_form(kernel, sums = FALSE)
  if (searched && !(kernel_has(kernel, "Gaussian form") &&
                      length(kernel$bandwidth) == 1L)) {
    stop_input("'kernel' must be an RBF kernel with one bandwidth when ",
               "'bandwidths' is given, not the ", format_kernel(kernel))
  }
  # A stack without given candidates takes those that the kernel allows.
  noisy <- vapply(c(list(estimator), estimator$candidates), has_trait, NA,
                  "poly")
  if (!kernel_has(kernel, "Gaussian form") &&
        (any(noisy) || !allows_sample(estimator, sample))) {
    stop_input("'kernel' must be an RBF kernel for the density by estimator ",
               "\"", estimator$name, "\", which has noise, not the ",
               format_kernel(kernel))
  }
}

# The log density of a mixture at the rows of z. Components with covariances are
# added one after the other, relative to the largest so far.
mixture_log <- function(q, z) {
  if (is.null(q$covariances)) {
    return(.Call(C_r_log_density, z, q$weights, unname(q$means), q$variances))
  }
  top <- rep(-.Machine$double.xmax, nrow(z))
  total <- numeric(nrow(z))
  for (part in components_of(q)[q$weights > 0]) {
    value <- log(part$weight) + component_log(part, z)
    higher <- pmax(top, value)
    total <- total * exp(top - higher) + exp(value - higher)
    top <- higher
  }
  top + log(total)
}

# The log density of one component at the rows of z.
component_log <- function(part, z) {
  root <- chol(part$cov)
  apart <- backsolve(root, t(unname(z)) - part$mean, transpose = TRUE)
  -ncol(z) / 2 * log(2 * pi) - sum(log(diag(root))) - colSums(apart^2) / 2
}

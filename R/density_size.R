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
      lapply(steps_to_weights, \(step) move_weights(first, last, step))
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
  sums <- Map(\(part, i) vapply(mixtures(part, i), \(q) {
    sum(mixture_log(q, part$out))
  }, numeric(1)), parts, seq_along(parts))
  Reduce(`+`, sums) / sum(vapply(parts, \(part) nrow(part$out), 1L))
}

# list(tried: a data frame of m, widen and log_density; starts: of each m, one
# for each part).
try_sizes <- function(parts, plan) {
  tried <- NULL
  starts <- list()
  distinct <- min(vapply(parts, \(part) count_distinct(part$kept$x), 1L))
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

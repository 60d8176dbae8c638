# Estimators on many samples at once, called bags. The points of all bags stand
# in one sample, bag after bag; `sizes` has the number of points of each.

est_bags.kernmean_estimator <- function(estimator, sample, sizes) {
  if (!is.null(est_share(estimator))) {
    return(list())
  }
  if (!has_weights(estimator)) {
    return(bags_of_parts(estimator, sample, sizes))
  }
  # The estimate of a bag of one point is that point, and is not shrunk.
  fits <- each_bag(sample, sizes, \(bag) {
    if (bag$n == 1L) {
      list(weights = 1, lambda = 0, border = FALSE)
    } else {
      est_fit(estimator, bag)
    }
  })
  list(
    weights = unlist(lapply(fits, `[[`, "weights"), use.names = FALSE),
    chosen = if ("lambda" %in% names(estimator)) {
      list(lambda = vapply(fits, `[[`, numeric(1), "lambda"),
           border = vapply(fits, `[[`, NA, "border"))
    }
  )
}

bags_of_parts <- function(estimator, sample, sizes) {
  fits <- each_bag(sample, sizes, \(bag) {
    # Nothing is chosen for a bag of one point.
    if (bag$n == 1L) {
      return(list(parts = est_parts(est_kme(), bag)))
    }
    settled <- est_choose(estimator, bag)
    shares <- settled$chosen$candidates
    list(parts = merge_parts(est_parts(settled$estimator, bag)),
         chosen = c(vapply(Filter(is.numeric, settled$chosen), mean, 1),
                    if (!is.null(shares)) {
                      stats::setNames(shares$share, shares$candidate)
                    }))
  })
  parts <- lapply(unname(fits), `[[`, "parts")
  plain <- all(lengths(parts) == 1L) &&
    all(vapply(parts, \(one) is.null(one[[1L]]$noise), NA))
  chosen <- lapply(fits, `[[`, "chosen")
  names <- unique(unlist(lapply(chosen, names)))
  columns <- lapply(stats::setNames(nm = names), \(name) {
    vapply(chosen, \(one) c(one, NA)[name], 1, USE.NAMES = FALSE)
  })
  c(if (plain) {
    list(weights = unlist(lapply(parts, \(one) one[[1L]]$weights)))
  } else {
    list(parts = parts)
  }, list(chosen = columns))
}

# A list with the value of f for each bag.
each_bag <- function(sample, sizes, f) {
  all <- \() lapply(bag_rows(sizes), \(rows) f(sample_take(sample, rows)))
  if (max(sizes) > most_points_of_small_bags) all() else on_one_thread(all())
}

# A bag with more points than this is work enough for all threads.
most_points_of_small_bags <- 500

bag_rows <- function(sizes) {
  ends <- cumsum(sizes)
  Map(seq, ends - sizes + 1, ends)
}

bag_codes <- function(sizes) rep(seq_along(sizes), sizes)

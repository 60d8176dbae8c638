# Slow twins of filtered tests, from the formulas as they are printed: M by an
# eigendecomposition, one labeling at a time (twins of the statistics of one
# matrix are in helper-mmd.R and helper-hsic.R).

filters_R <- c("tikhonov", "iterated", "showalter", "cutoff")

# l g(l).
gain_R <- function(l, tau, filter) {
  switch(filter,
    tikhonov = l / (l + tau),
    iterated = l * (l + 2 * tau) / (l + tau)^2,
    showalter = -expm1(-l / tau),
    cutoff = as.numeric(l >= tau * (1 - 1e-10))
  )
}

# M of a Gram matrix.
filtered_R <- function(K, ratio, filter = "tikhonov") {
  e <- eigen(center_R(K), TRUE)
  l <- pmax(e$values, 0) / nrow(K)
  # All points alike leave rounding errors.
  if (l[1] <= 1e-12 * mean(abs(K))) {
    return(0 * K)
  }
  gain <- gain_R(l, ratio * l[1], filter)
  nrow(K) * e$vectors %*% (gain * t(e$vectors))
}

# --- Two samples and more -----------------------------------------------------

# What is asked for, in the order of the table: a row for each statistic.
asked_R <- function(ratio = c(1, 0.1, 0.01, 0.001), order = 0:2,
                    bandwidth = NA) {
  do.call(rbind, lapply(bandwidth, \(theta) {
    rbind(
      if (0 %in% order) {
        data.frame(order = 0, ratio = NA_real_, bandwidth = theta)
      },
      do.call(rbind, lapply(setdiff(order, 0), \(o) {
        data.frame(order = o, ratio = ratio, bandwidth = theta)
      }))
    )
  }))
}

# The matrix whose quadratic form is a statistic.
matrix_of_R <- function(K, order, ratio, filter) {
  if (order == 0) {
    return(K)
  }
  M <- filtered_R(K, ratio, filter)
  if (order == 1) M else M * M
}

# Of two groups the statistic itself, of more the weighted sum over pairs.
samples_R <- function(M, groups, type) {
  points <- split(seq_along(groups), groups)
  pair <- \(K, i, j) mmd_R(K, c(i, j), length(i), type)
  if (length(points) == 2L) {
    return(pair(M, points[[1]], points[[2]]))
  }
  mmd_groups_R(M, unlist(points), lengths(points), pair)
}

# list(values: statistics x draws, observed first; scale: the mean size of the
# entries of each matrix). labels: points x labelings, that observed first;
# gram(theta): the Gram matrix at a bandwidth.
mmd_values_R <- function(gram, labels, asked, filter, type = "unbiased") {
  matrices <- lapply(seq_len(nrow(asked)), \(a) {
    matrix_of_R(gram(asked$bandwidth[a]), asked$order[a], asked$ratio[a],
                filter)
  })
  values <- lapply(matrices, \(M) {
    over_columns(labels, \(z) samples_R(M, z, type))
  })
  list(values = do.call(rbind, values),
       scale = vapply(matrices, \(M) mean(abs(M)), 1))
}

# The labels of permutations (one a column), those observed first: the points
# that a column names first are in the first group.
labels_R <- function(groups, permutations) {
  groups <- sort(groups)
  labels <- apply(permutations, 2, \(p) {
    z <- groups
    z[p] <- groups
    z
  })
  unname(cbind(groups, labels))
}

# --- One p-value --------------------------------------------------------------

tied_R <- function(draws, observed, slack) sum(draws >= observed - slack)

# list(p, each: the p-values of the statistics alone, z: of those observed,
# maximum: which). `complete`: is the observed labeling among the draws?
aggregated_R <- function(values, scale, complete = FALSE) {
  observed <- values[, 1]
  draws <- values[, -1, drop = FALSE]
  extra <- if (complete) 0 else 1
  basis <- if (complete) draws else values
  center <- rowMeans(basis)
  spread <- apply(basis, 1, stats::sd)
  none <- !(spread > 1e-10 * (abs(center) + scale))
  z <- (values - center) / spread
  z[none, ] <- 0
  top <- apply(z, 2, max)
  share <- \(count) (count + extra) / (ncol(draws) + extra)
  each <- vapply(seq_along(observed), \(a) {
    share(tied_R(draws[a, ], observed[a],
                 1e-10 * (abs(observed[a]) + scale[a])))
  }, 1)
  list(p = if (length(observed) == 1L) each else {
    share(tied_R(top[-1], top[1], 1e-10 * (1 + abs(top[1]))))
  }, each = each, z = z[, 1], drawn = z[, -1, drop = FALSE],
  maximum = which.max(z[, 1]), top = top)
}

# --- Independence -------------------------------------------------------------

# HSIC of two matrices, the second permuted; unbiased with diagonals 0.
independence_R <- function(K, L, p, type) {
  if (type == "biased") hsic_R(K, L, p) else hsic_unbiased_R(K, L, p)
}

# As mmd_values_R(); permutations: n x draws, not with that observed.
hsic_values_R <- function(gram_x, gram_y, permutations, asked, filter,
                          type = "biased") {
  orders <- cbind(seq_len(nrow(permutations)), permutations)
  found <- lapply(seq_len(nrow(asked)), \(a) {
    pair <- lapply(list(gram_x, gram_y), \(gram) {
      matrix_of_R(gram(asked$bandwidth[a]), asked$order[a], asked$ratio[a],
                  filter)
    })
    list(values = over_columns(orders, \(p) {
      independence_R(pair[[1]], pair[[2]], p, type)
    }), scale = prod(vapply(pair, \(M) mean(abs(center_R(M))), 1)))
  })
  list(values = do.call(rbind, lapply(found, `[[`, "values")),
       scale = vapply(found, `[[`, 1, "scale"))
}

# A test of several statistics must have what these values make: those of the
# table, their p-values and maximum, and the largest of each labeling.
expect_aggregated <- function(test, want, complete, tolerance) {
  table <- test$statistics
  found <- aggregated_R(want$values, want$scale, complete)
  expect_equal(table$value, want$values[, 1], tolerance = tolerance)
  expect_equal(table$p.value, found$each)
  expect_equal(table$z, found$z, tolerance = tolerance)
  expect_equal(cbind(table$z.05, table$z.95),
               unname(t(apply(found$drawn, 1, quantile, c(0.05, 0.95)))),
               tolerance = tolerance)
  expect_equal(which(table$maximum), found$maximum)
  expect_equal(test$p.value, found$p)
  expect_equal(test$replicates, found$top[-1], tolerance = tolerance)
  expect_equal(test$statistic[[1]], found$top[1], tolerance = tolerance)
}

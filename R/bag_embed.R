# The shelf bag_: samples as observations: Gram matrices over bags, machines
# on them.
#
# The embeddings of bags and their inner products. What is not a weight of each
# point is made of the inner products of the plain kernel means (KME) of the
# bags alone: shares of shrinkage, and mixtures of several bags (C'GC).

# --- Inner products of plain means -------------------------------------------

# sum_ij w_i v_j k(x_i, y_j) over the points of each pair of bags; new: the bags
# in the rows, list(z, sizes, weights).
bag_sums <- function(sample, sizes, weights = NULL, new = NULL) {
  rows <- if (is.null(new)) sizes else new$sizes
  check_memory(length(sizes), length(rows), "use fewer bags", copies = 3,
               what = "work on the matrix of all bags")
  of <- as.integer(sizes)
  sums <- if (is.null(new)) {
    .Call(C_r_block_sums, sample_source(sample), of, weights, NULL, NULL,
          FALSE)$sums
  } else if (kernel_has(sample$kernel, "function")) {
    values <- fold_store(sample$kernel, new$z, sample$x)
    if (!is.null(weights)) values <- values * outer(new$weights, weights)
    by_row <- rowsum(values, bag_codes(rows), reorder = FALSE)
    t(unname(rowsum(t(by_row), bag_codes(sizes), reorder = FALSE)))
  } else {
    .Call(C_r_block_sums, native_source(sample$kernel, new$z, sample$x),
          as.integer(rows), new$weights, of, weights, FALSE)$sums
  }
  check_overflow(sample$kernel, sums, "the bags")
}

# Means over bags.
bag_means <- function(values, sizes) {
  drop(rowsum(values, bag_codes(sizes), reorder = FALSE)) / unname(sizes)
}

# alpha of each bag towards 0, from the squared norms of the averages and mean
# k(x, x).
bag_shares <- function(estimator, rho, varrho, sizes) {
  ifelse(sizes == 1L, 0, est_share(estimator)(rho, varrho, unname(sizes)))
}

# --- Bags that borrow from each other ----------------------------------------
# A pool is list(g: inner products of the KMEs of bags, varrho: their mean k(x,
# x), n: their sizes, u: the squared norms without bias, NA for one point, rows,
# mean: means of g, slack: its largest entry, program: of aggregation).

new_pool <- function(g, varrho, sizes, target) {
  n <- unname(sizes)
  u <- (n * diag(g) - varrho) / (n - 1)
  u[n == 1] <- NA
  rows <- rowMeans(g)
  list(g = g, rows = rows, mean = mean(rows), varrho = varrho, n = n, u = u,
       slack = max(diag(g)), target = target)
}

# The coefficients of bag j on the KMEs of all bags; one of one point, or that
# is alone, keeps its own.
borrow <- function(estimator, pool, j) {
  m <- length(pool$n)
  g <- pool$g
  alone <- as.numeric(seq_len(m) == j)
  if (pool$target == "pooled") {
    # Shrunk towards the mean f* of the others: |f* - mu_j|^2 from rows and
    # means.
    distance2 <- g[j, j] - 2 * pool$rows[j] + pool$mean
    distance2 <- (m / (m - 1))^2 * max(0, distance2)
    excess <- max(0, pool$varrho[j] - g[j, j])
    alpha <- bag_shares(estimator, distance2, distance2 + excess, pool$n[j])
    return(ifelse(alone == 1, 1 - alpha, alpha / (m - 1)))
  }
  if (m == 1L || pool$n[j] == 1) {
    return(alone)
  }
  u <- pool$u
  if (pool$target == "neighbours") {
    # The mean of the bags whose distance is within what their sizes let expect.
    noise <- (pool$varrho - u) / pool$n
    apart <- u + u[j] - 2 * g[, j]
    near <- alone == 1 | apart <= noise + noise[j] + 1e-12 * pool$slack
    near <- near & !is.na(near)
    return(near / sum(near))
  }
  if (!(pool$slack > 0)) {
    return(alone)
  }
  with <- pool$program %||% simplex_program(g)
  # argmin w'Gw - 2 w'g over the simplex, g = G_j but its own entry u_j.
  right <- replace(g[, j], j, u[j])
  w <- quadprog::solve.QP.compact(
    with$root, right / pool$slack, with$values, with$rows, c(1, numeric(m)),
    meq = 1, factorized = TRUE
  )$solution
  # What is smaller is rounding of 0.
  w[w < 1e-10] <- 0
  w / sum(w)
}

# The inverse of R, R'R = G/max G_bb + 1e-10 I, and the constraints sum w = 1,
# w >= 0 by their entries that are not 0.
simplex_program <- function(g) {
  m <- nrow(g)
  g <- g / max(diag(g))
  diag(g) <- diag(g) + 1e-10
  below <- matrix(0, m - 1L, m)
  list(root = backsolve(chol(g), diag(m)),
       values = cbind(1, rbind(rep(1, m), below)),
       rows = cbind(c(m, seq_len(m)), rbind(1, seq_len(m), below)))
}

# --- The embeddings of all bags ----------------------------------------------

# list(inner: <mu_a, mu_b> of the estimates, table: a data frame of what was
# chosen for each bag, and what new bags need: sample, sizes, estimator, target,
# weights, noise, parts, alpha, mixing, pool).
embed_bags <- function(sample, sizes, estimator, target = NULL) {
  m <- length(sizes)
  if (identical(target, "pooled") && m < 2L) {
    stop_input("'bags' must be at least 2 for target = \"pooled\", the mean ",
               "of the others, not 1")
  }
  if (!is.null(sample$sketch)) {
    return(embed_sketch(sample, sizes, estimator, target))
  }
  sample <- walkable_sample(sample)
  fit <- c(list(sample = sample, sizes = sizes, estimator = estimator,
                target = target), est_bags(estimator, sample, sizes))
  inner <- inner_bags(fit)
  check_result(inner, "an inner product of two bags", "'bags'")
  if (is.null(fit$weights) && is.null(fit$noise) && is.null(fit$parts)) {
    varrho <- bag_means(sample_diagonal(sample), sizes)
    if (is.null(target)) {
      fit$alpha <- bag_shares(estimator, diag(inner), varrho, sizes)
      inner <- inner * outer(1 - fit$alpha, 1 - fit$alpha)
    } else {
      fit$pool <- new_pool(inner, varrho, sizes, target)
      if (target == "aggregate" && fit$pool$slack > 0) {
        fit$pool$program <- simplex_program(inner)
      }
      fit$mixing <- unname(matrix(vapply(seq_len(m), \(j) {
        borrow(estimator, fit$pool, j)
      }, numeric(m)), m))
      if (target == "pooled") fit$alpha <- 1 - diag(fit$mixing)
      mixed <- cross(fit$mixing, product(inner, fit$mixing))
      # Exactly symmetric.
      inner <- (mixed + t(mixed)) / 2
    }
  }
  fit$inner <- inner
  fit$table <- bag_table(fit)
  fit
}

# The groups of a sketch as bags: what is estimated of each are weights on its
# landmarks, a column of `weights`.
embed_sketch <- function(sample, sizes, estimator, target) {
  if (!is.null(target)) {
    stop_input("'target' must be NULL for a sketch")
  }
  check_estimator(sample, estimator)
  fit <- c(list(sample = sample, sizes = sizes, estimator = estimator),
           sketch_weights(sample$sketch, estimator))
  inner <- cross(fit$weights, sample_apply(sample$support, fit$weights))
  # Exactly symmetric.
  fit$inner <- (inner + t(inner)) / 2
  fit$table <- bag_table(fit)
  fit
}

sketch_weights <- function(sketch, estimator) {
  fits <- lapply(unname(group_samples(sketch)), \(group) {
    est_fit(estimator, group)
  })
  list(weights = do.call(cbind, lapply(fits, `[[`, "weights")),
       chosen = if (!is_unshrunk(estimator)) {
         list(lambda = vapply(fits, `[[`, 1, "lambda"))
       })
}

# <mu_a, mu_b> before shares and mixtures; with `new`, list(z, sizes, weights,
# noise, parts), those of new bags in the rows.
inner_bags <- function(fit, new = NULL) {
  sizes <- fit$sizes
  if (!is.null(fit$noise)) {
    return(marginal_bags(fit$sample, sizes, fit$noise, new))
  }
  if (!is.null(fit$parts)) {
    return(inner_matrix(fit$parts, fit$sample$kernel, new$parts))
  }
  sums <- bag_sums(fit$sample, sizes, fit$weights, new)
  if (!is.null(fit$weights)) {
    return(sums)
  }
  block_means(sums, if (is.null(new)) sizes else new$sizes, sizes)
}

# The parts of each bag, list(sample, sizes, weights or parts).
parts_of_weights <- function(fit) {
  if (!is.null(fit$parts)) {
    return(fit$parts)
  }
  lapply(bag_rows(unname(fit$sizes)), \(rows) {
    list(new_mean_part(sample_take(fit$sample, rows), fit$weights[rows]))
  })
}

bag_table <- function(fit) {
  table <- data.frame(n = unname(fit$sizes), row.names = names(fit$sizes))
  shrinks <- !is.null(fit$alpha) && !is_unshrunk(fit$estimator)
  if (shrinks) {
    table$lambda <- fit$alpha / (1 - fit$alpha)
    table$alpha <- fit$alpha
  }
  table[names(fit$chosen)] <- fit$chosen
  if (!is.null(fit$mixing) && !shrinks) {
    # The share of a bag's own mean.
    table$own <- diag(fit$mixing)
  }
  table$norm2 <- diag(fit$inner)
  table
}

# --- New bags ----------------------------------------------------------------

# list(inner: m x M, norm2: m) of new bags, list(z, sizes).
embed_new <- function(fit, new) {
  sample <- fit$sample
  if (!is.null(new$sketch)) {
    weights <- sketch_weights(new$sketch, fit$estimator)$weights
    values <- matrix(sample_apply(sample$support, weights), nrow(weights))
    return(list(inner = cross(values, fit$weights),
                norm2 = column_dots(values, weights)))
  }
  points <- points_sample(new$z, sample$kernel)
  new <- c(new, est_bags(fit$estimator, points, new$sizes))
  # New bags may all be plain where those of the fit are not.
  if (is.null(new$parts) != is.null(fit$parts)) {
    fit$parts <- parts_of_weights(fit)
    new$parts <- parts_of_weights(c(new, list(sample = points)))
  }
  inner <- inner_bags(fit, new)
  size <- unname(new$sizes)
  plain <- is.null(c(new$noise, new$parts, new$weights))
  norm2 <- if (!is.null(new$noise)) {
    marginal_norms(points, new)
  } else if (!is.null(new$parts)) {
    vapply(new$parts, norm2_parts, numeric(1), sample$kernel)
  } else {
    points$weights <- if (plain) rep(1 / size, size) else new$weights
    check_result(unlist(each_bag(points, new$sizes, \(bag) {
      sum(bag$weights * sample_apply(bag, bag$weights))
    }), use.names = FALSE), "the norm of a bag", "the bags")
  }
  if (!plain) {
    return(list(inner = inner, norm2 = norm2))
  }
  varrho <- bag_means(sample_diagonal(points), new$sizes)
  if (is.null(fit$target)) {
    keep <- 1 - bag_shares(fit$estimator, norm2, varrho, new$sizes)
    return(list(inner = inner * outer(keep, 1 - fit$alpha),
                norm2 = keep^2 * norm2))
  }
  each <- lapply(seq_along(size), \(j) {
    mix_new(fit, inner[j, ], norm2[j], varrho[j], size[j])
  })
  list(inner = do.call(rbind, lapply(each, `[[`, "inner")),
       norm2 = vapply(each, `[[`, numeric(1), "norm2"))
}

# A new bag that borrows from those of the fit, unless it is one of them: of the
# same size, mean and mean k(x, x), which are all that is used.
mix_new <- function(fit, with, norm2, varrho, n) {
  old <- fit$pool
  rounding <- 1e-10 * old$slack
  at <- which(norm2 - 2 * with + diag(old$g) <= rounding & old$n == n &
                abs(old$varrho - varrho) <= rounding)
  if (length(at)) {
    return(list(inner = fit$inner[at[1L], ], norm2 = fit$inner[at[1L], at[1L]]))
  }
  g <- unname(rbind(cbind(old$g, with), c(with, norm2)))
  pool <- new_pool(g, c(old$varrho, varrho), c(old$n, n), fit$target)
  m <- length(with)
  weights <- borrow(fit$estimator, pool, m + 1L)
  towards <- drop(pool$g %*% weights)
  list(inner = drop(towards[seq_len(m)] %*% fit$mixing),
       norm2 = sum(weights * towards))
}

# The fit of each bag by itself: list(weights: of all points, NULL for averages,
# which est_share() may shrink; noise: d x M variances, or NULL; parts: for each
# bag those of its embedding, where weights do not say it; chosen: a list of
# columns for a table of bags).
est_bags <- function(estimator, sample, sizes) UseMethod("est_bags")

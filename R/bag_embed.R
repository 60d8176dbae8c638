# The shelf bag_: samples as observations: Gram matrices over bags, machines
# on them.
#
# The embeddings of bags and their inner products. Shares of shrinkage, and
# mixtures of several bags (C'GC), need only the inner products of the plain
# kernel means (KME) of the bags.

# --- Inner products of plain means -------------------------------------------

# The sums of w_i v_j k(x_i, y_j) over the points of each pair of bags, with new
# bags in the rows if there are any.
bag_sums <- function(sample, sizes, weights = NULL, new = NULL) {
  rows <- if (is.null(new)) sizes else new$sizes
  check_memory(length(sizes), length(rows), "use fewer bags", copies = 3,
               what = "work on the matrix of all bags")
  counts <- as.integer(sizes)
  sums <- if (is.null(new)) {
    .Call(C_r_block_sums, sample_source(sample), counts, weights, NULL, NULL,
          FALSE)$sums
  } else if (kernel_has(sample$kernel, "function")) {
    values <- fold_store(sample$kernel, new$z, sample$x)
    if (!is.null(weights)) values <- values * outer(new$weights, weights)
    by_row <- rowsum(values, bag_codes(rows), reorder = FALSE)
    t(unname(rowsum(t(by_row), bag_codes(sizes), reorder = FALSE)))
  } else {
    .Call(C_r_block_sums, native_source(sample$kernel, new$z, sample$x),
          as.integer(rows), new$weights, counts, weights, FALSE)$sums
  }
  check_overflow(sample$kernel, sums, "the bags")
}

# Means over bags.
bag_means <- function(values, sizes) {
  drop(rowsum(values, bag_codes(sizes), reorder = FALSE)) / unname(sizes)
}

# For each bag the share alpha by which it is shrunk towards 0, from the squared
# norm of its average, `rho`, and its mean of k(x, x), `varrho`.
bag_shares <- function(estimator, rho, varrho, sizes) {
  ifelse(sizes == 1L, 0, est_share(estimator)(rho, varrho, unname(sizes)))
}

# --- Bags that borrow from each other ----------------------------------------
# Bags that borrow from each other:
#   g         inner products of the KMEs of the bags
#   rows      row means of g
#   mean      mean of g
#   varrho    mean k(x, x) of each bag
#   n         number of points of each bag
#   u         squared norms without bias, NA for a bag of one point
#   slack     the largest squared norm
#   target    how they borrow
#   program   the quadratic program of aggregation, where it is known
new_pool <- function(g, varrho, sizes, target) {
  n <- unname(sizes)
  u <- (n * diag(g) - varrho) / (n - 1)
  u[n == 1] <- NA
  rows <- rowMeans(g)
  list(g = g, rows = rows, mean = mean(rows), varrho = varrho, n = n, u = u,
       slack = max(diag(g)), target = target)
}

# The coefficients of bag j on the KMEs of all bags. A bag of one point, and a
# bag without others, keeps its own KME.
borrow <- function(estimator, pool, j) {
  m <- length(pool$n)
  g <- pool$g
  alone <- as.numeric(seq_len(m) == j)
  if (pool$target == "pooled") {
    # It is shrunk towards the mean f* of the others; |f* - mu_j|^2 follows from
    # the means of g.
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
    # The result is the mean of the bags whose distance from bag j is no larger
    # than noise explains.
    noise <- (pool$varrho - u) / pool$n
    apart <- u + u[j] - 2 * g[, j]
    near <- alone == 1 | apart <= noise + noise[j] + 1e-12 * pool$slack
    near <- near & !is.na(near)
    return(near / sum(near))
  }
  if (!(pool$slack > 0)) {
    return(alone)
  }
  program <- pool$program %||% simplex_program(g)
  # The weights minimize w'Gw - 2 w'g over the simplex, where g is column j of G
  # with u_j in place of its entry j.
  right <- replace(g[, j], j, u[j])
  w <- quadprog::solve.QP.compact(
    program$root, right / pool$slack, program$values, program$rows,
    c(1, numeric(m)), meq = 1, factorized = TRUE
  )$solution
  # Smaller weights are rounding errors of 0.
  w[w < 1e-10] <- 0
  w / sum(w)
}

# The quadratic program of aggregation: the inverse of R, where R'R = G/max G_bb
# + 1e-10 I, and the nonzero entries of the constraints sum w = 1, w >= 0.
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

# The embeddings of bags, with all that new bags need:
#   sample      the sample of all points, bag after bag
#   sizes       number of points of each bag, named
#   estimator   the estimator
#   target      how bags borrow from each other, or NULL
#   weights     weights of all points; for a sketch of landmarks x bags
#   noise       d x M variances of noise, or NULL
#   parts       the parts of each bag's embedding, where these are not weights
#   chosen      columns for `table`
#   alpha       alpha of shrinkage of each bag, for averages
#   pool        the pool that bags borrow from
#   mixing      coefficients of the KMEs, a column for each bag
#   inner       <mu_a, mu_b> of the estimates
#   table       a data frame of what was chosen for each bag
new_bag_embedding <- function(sample, sizes, estimator, target = NULL,
                              found = est_bags(estimator, sample, sizes)) {
  c(list(sample = sample, sizes = sizes, estimator = estimator,
         target = target), found)
}

# The bag embedding with its inner products and its table.
embed_bags <- function(sample, sizes, estimator, target = NULL) {
  m <- length(sizes)
  if (identical(target, "pooled") && m < 2L) {
    stop_input("'bags' must be at least 2 for target = \"pooled\", the mean ",
               "of the others, not 1")
  }
  if (!is.null(sample$sketch)) {
    return(embed_sketch(sample, sizes, estimator, target))
  }
  fit <- new_bag_embedding(walkable_sample(sample), sizes, estimator, target)
  inner <- inner_bags(fit)
  check_result(inner, "an inner product of two bags", "'bags'")
  if (is.null(fit$weights) && is.null(fit$noise) && is.null(fit$parts)) {
    varrho <- bag_means(sample_diagonal(fit$sample), sizes)
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
      inner <- symmetric(cross(fit$mixing, product(inner, fit$mixing)))
    }
  }
  fit$inner <- inner
  fit$table <- bag_table(fit)
  fit
}

# Makes a matrix exactly symmetric that is symmetric up to rounding.
symmetric <- \(k) (k + t(k)) / 2

# The embeddings of the groups of a sketch, which are weights on its landmarks.
embed_sketch <- function(sample, sizes, estimator, target) {
  if (!is.null(target)) {
    stop_input("'target' must be NULL for a sketch")
  }
  check_estimator(sample, estimator)
  fit <- new_bag_embedding(sample, sizes, estimator,
                           found = sketch_weights(sample$sketch, estimator))
  fit$inner <- symmetric(cross(fit$weights,
                               sample_apply(sample$support, fit$weights)))
  fit$table <- bag_table(fit)
  fit
}

# The weights on the landmarks for each group of a sketch, and what was chosen.
sketch_weights <- function(sketch, estimator) {
  fits <- lapply(unname(group_samples(sketch)), \(group) {
    est_fit(estimator, group)
  })
  list(weights = do.call(cbind, lapply(fits, `[[`, "weights")),
       chosen = if (!is_unshrunk(estimator)) {
         list(lambda = vapply(fits, `[[`, 1, "lambda"))
       })
}

# The inner products of embeddings before shrinkage and mixing. If new bags are
# given, they are in the rows.
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

# The parts of each bag's embedding. If the embedding has weights, each bag has
# one part, its weighted points.
parts_of_weights <- function(fit) {
  if (!is.null(fit$parts)) {
    return(fit$parts)
  }
  lapply(bag_rows(unname(fit$sizes)), \(rows) {
    list(new_mean_part(sample_take(fit$sample, rows), fit$weights[rows]))
  })
}

# The data frame of what was chosen for each bag.
bag_table <- function(fit) {
  table <- data.frame(n = unname(fit$sizes), row.names = names(fit$sizes))
  shrinks <- !is.null(fit$alpha) && !is_unshrunk(fit$estimator)
  if (shrinks) {
    table$lambda <- fit$alpha / (1 - fit$alpha)
    table$alpha <- fit$alpha
  }
  table[names(fit$chosen)] <- fit$chosen
  if (!is.null(fit$mixing) && !shrinks) {
    # This is the share of a bag's own KME.
    table$own <- diag(fit$mixing)
  }
  table$norm2 <- diag(fit$inner)
  table
}

# --- New bags ----------------------------------------------------------------

# A list of `inner`, the inner products of new bags with the bags of a fit, and
# `norm2`, the squared norms of the new bags.
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
  # If only one of the two has parts, the other one's weights are turned into
  # parts.
  if (is.null(new$parts) != is.null(fit$parts)) {
    fit$parts <- parts_of_weights(fit)
    new$parts <- parts_of_weights(c(new, list(sample = points)))
  }
  inner <- inner_bags(fit, new)
  plain <- is.null(c(new$noise, new$parts, new$weights))
  norm2 <- if (!is.null(new$noise)) {
    marginal_norms(points, new)
  } else if (!is.null(new$parts)) {
    vapply(new$parts, norm2_parts, numeric(1), sample$kernel)
  } else {
    size <- unname(new$sizes)
    points$weights <- if (plain) rep(1 / size, size) else new$weights
    check_result(unlist(each_bag(points, new$sizes, \(bag) {
      sum(bag$weights * sample_apply(bag, bag$weights))
    }), use.names = FALSE), "the norm of a bag", "the bags")
  }
  if (plain) {
    shrink_new(fit, inner, norm2, bag_means(sample_diagonal(points), new$sizes),
               new$sizes)
  } else {
    list(inner = inner, norm2 = norm2)
  }
}

# The same list if the estimator is an average with shrinkage or mixing. `inner`
# and `norm2` are those of the averages, `varrho` is the mean of k(x, x) of each
# new bag.
shrink_new <- function(fit, inner, norm2, varrho, sizes) {
  if (is.null(fit$target)) {
    keep <- 1 - bag_shares(fit$estimator, norm2, varrho, sizes)
    return(list(inner = inner * outer(keep, 1 - fit$alpha),
                norm2 = keep^2 * norm2))
  }
  n <- unname(sizes)
  each <- lapply(seq_along(n), \(j) {
    mix_new(fit, inner[j, ], norm2[j], varrho[j], n[j])
  })
  list(inner = do.call(rbind, lapply(each, `[[`, "inner")),
       norm2 = vapply(each, `[[`, numeric(1), "norm2"))
}

# The inner products and the squared norm of a new bag that borrows from the
# bags of the fit. `inner` holds the inner products of its KME with theirs. If
# its size, KME and mean k(x, x) equal those of a bag of the fit, it is treated
# as that bag.
mix_new <- function(fit, inner, norm2, varrho, n) {
  old <- fit$pool
  rounding <- 1e-10 * old$slack
  at <- which(norm2 - 2 * inner + diag(old$g) <= rounding & old$n == n &
                abs(old$varrho - varrho) <= rounding)
  if (length(at)) {
    return(list(inner = fit$inner[at[1L], ], norm2 = fit$inner[at[1L], at[1L]]))
  }
  g <- unname(rbind(cbind(old$g, inner), c(inner, norm2)))
  pool <- new_pool(g, c(old$varrho, varrho), c(old$n, n), fit$target)
  m <- length(inner)
  weights <- borrow(fit$estimator, pool, m + 1L)
  towards <- drop(pool$g %*% weights)
  list(inner = drop(towards[seq_len(m)] %*% fit$mixing),
       norm2 = sum(weights * towards))
}

# The fit of each bag by itself: the fields weights, noise, parts and chosen of
# a bag embedding. Averages, which est_share() may shrink, have no weights.
est_bags <- function(estimator, sample, sizes) UseMethod("est_bags")

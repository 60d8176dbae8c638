# The embeddings of bags and their inner products. What is not a weight of each
# point is made of the inner products of the plain kernel means (KME) of the
# bags alone: shares of shrinkage, and mixtures of several bags (C'GC).

# --- Inner products of plain means -------------------------------------------

# sum_ij w_i v_j k(x_i, y_j) over the points of each pair of bags; new: the bags
# in the rows, list(z, sizes, weights).
bag_sums <- function(sample, sizes, weights = NULL, new = NULL) {
  count <- length(sizes)
  sizes <- as.integer(sizes)
  if (is.null(new)) {
    check_memory(count, count, "use fewer bags", copies = 3,
                 what = "work on the matrix of all bags")
    sums <- .Call(C_r_block_sums, sample_source(sample), sizes, weights, NULL,
                  NULL, FALSE)$sums
    return(check_overflow(sample$kernel, sums, "the bags"))
  }
  check_memory(count, length(new$sizes), "use fewer new bags", copies = 3,
               what = "work on the matrix of new bags")
  if (is_function_kernel(sample$kernel)) {
    values <- fold_store(sample$kernel, new$z, sample$x)
    if (!is.null(weights)) {
      values <- values * outer(new$weights, weights)
    }
    by_row <- rowsum(values, bag_codes(new$sizes), reorder = FALSE)
    sums <- rowsum(t(by_row), bag_codes(sizes), reorder = FALSE)
    return(t(unname(sums)))
  }
  source <- native_source(sample$kernel, new$z, sample$x)
  sums <- .Call(C_r_block_sums, source, as.integer(new$sizes), new$weights,
                sizes, weights, FALSE)$sums
  check_overflow(sample$kernel, sums, "the bags")
}

# The same of each bag with itself.
bag_norms <- function(sample, sizes, weights = NULL) {
  if (is.null(weights)) weights <- rep(1, sum(sizes))
  sample$weights <- weights
  unlist(each_bag(sample, sizes, \(bag) {
    sum(bag$weights * sample_apply(bag, bag$weights))
  }), use.names = FALSE)
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
# mean: means of g, slack: its largest entry, program: of all bags).

new_pool <- function(g, varrho, sizes) {
  n <- unname(sizes)
  u <- (n * diag(g) - varrho) / (n - 1)
  u[n == 1] <- NA
  rows <- rowMeans(g)
  list(g = g, rows = rows, mean = mean(rows), varrho = varrho, n = n, u = u,
       slack = max(diag(g)))
}

# The coefficients of bag j on the KMEs of all bags.
borrow <- function(target, estimator, pool, j) {
  if (length(pool$n) == 1L && target != "pooled") {
    return(1)
  }
  switch(target,
    pooled = borrow_pooled(estimator, pool, j),
    neighbours = borrow_neighbours(pool, j),
    aggregate = borrow_aggregate(pool, j)
  )
}

own_alone <- function(pool, j) as.numeric(seq_along(pool$n) == j)

# Shrunk towards the mean f* of the others: |f* - mu_j|^2 from rows and means.
borrow_pooled <- function(estimator, pool, j) {
  m <- length(pool$n)
  g <- pool$g
  others <- seq_len(m) != j
  distance2 <- g[j, j] - 2 * pool$rows[j] + pool$mean
  distance2 <- (m / (m - 1))^2 * max(0, distance2)
  excess <- max(0, pool$varrho[j] - g[j, j])
  alpha <- bag_shares(estimator, distance2, distance2 + excess, pool$n[j])
  ifelse(others, alpha / (m - 1), 1 - alpha)
}

# The mean of the bags whose distance is within what their sizes let expect.
borrow_neighbours <- function(pool, j) {
  if (pool$n[j] == 1) {
    return(own_alone(pool, j))
  }
  u <- pool$u
  noise <- (pool$varrho - u) / pool$n
  apart <- u + u[j] - 2 * pool$g[, j]
  near <- apart <= noise + noise[j] + 1e-12 * pool$slack
  near[j] <- TRUE
  near <- near & !is.na(near)
  near / sum(near)
}

# argmin w'Gw - 2 w'g over the simplex, g = G_j but its own entry u_j.
borrow_aggregate <- function(pool, j) {
  if (pool$n[j] == 1) {
    return(own_alone(pool, j))
  }
  m <- length(pool$n)
  right <- pool$g[, j]
  right[j] <- pool$u[j]
  unit <- pool$slack
  if (!(unit > 0)) {
    return(own_alone(pool, j))
  }
  if (is.null(pool$program)) pool$program <- simplex_program(pool)
  with <- pool$program
  found <- quadprog::solve.QP.compact(
    with$root, right / unit, with$values, with$rows, c(1, numeric(m)),
    meq = 1, factorized = TRUE
  )
  # What is smaller is rounding of 0.
  w <- ifelse(found$solution < 1e-10, 0, found$solution)
  w / sum(w)
}

# The inverse of R, R'R = G/max G_bb + 1e-10 I, and the constraints sum w = 1,
# w >= 0 by their entries that are not 0.
simplex_program <- function(pool) {
  m <- length(pool$n)
  g <- pool$g / pool$slack
  diag(g) <- diag(g) + 1e-10
  below <- matrix(0, m - 1L, m)
  list(root = backsolve(chol(g), diag(m)),
       values = cbind(1, rbind(rep(1, m), below)),
       rows = cbind(c(m, seq_len(m)), rbind(1, seq_len(m), below)))
}

# Coefficients of all bags of a pool: a column for each.
borrow_all <- function(target, estimator, pool) {
  if (target == "aggregate" && pool$slack > 0) {
    pool$program <- simplex_program(pool)
  }
  m <- length(pool$n)
  unname(matrix(vapply(seq_len(m), \(j) borrow(target, estimator, pool, j),
                       numeric(m)), m))
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
  sample <- walkable_sample(sample)
  fit <- list(sample = sample, sizes = sizes, estimator = estimator,
              target = target)
  fit[bag_fields] <- est_bags(estimator, sample, sizes)[bag_fields]
  inner <- inner_bags(fit)
  if (is.null(fit$weights) && is.null(fit$noise) && is.null(fit$parts)) {
    varrho <- bag_means(sample_diagonal(sample), sizes)
    if (is.null(target)) {
      fit$alpha <- bag_shares(estimator, diag(inner), varrho, sizes)
      inner <- scale_pairs(inner, 1 - fit$alpha)
    } else {
      fit$pool <- new_pool(inner, varrho, sizes)
      fit$mixing <- borrow_all(target, estimator, fit$pool)
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

# What est_bags() gives.
bag_fields <- c("weights", "noise", "parts", "chosen")

# Factors of 1, as of KMEs, cost nothing.
scale_pairs <- function(inner, left, right = left) {
  if (all(left == 1) && all(right == 1)) {
    return(inner)
  }
  inner * outer(left, right)
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
  of <- if (is.null(new)) sizes else new$sizes
  block_means(sums, of, sizes)
}

# The parts of each bag, list(sample, sizes, weights or parts).
parts_of_weights <- function(fit) {
  if (!is.null(fit$parts)) {
    return(fit$parts)
  }
  lapply(bag_rows(unname(fit$sizes)), \(rows) {
    list(list(sample = sample_take(fit$sample, rows), noise = NULL,
              weights = fit$weights[rows]))
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
  own <- points_sample(new$z, sample$kernel)
  new[bag_fields] <- est_bags(fit$estimator, own, new$sizes)[bag_fields]
  # New bags may all be plain where those of the fit are not.
  if (is.null(new$parts) != is.null(fit$parts)) {
    fit$parts <- parts_of_weights(fit)
    new$parts <- parts_of_weights(c(new, list(sample = own)))
  }
  inner <- inner_bags(fit, new)
  if (!is.null(new$noise)) {
    return(list(inner = inner, norm2 = marginal_norms(own, new)))
  }
  if (!is.null(new$parts)) {
    norm2 <- vapply(new$parts, norm2_parts, numeric(1), sample$kernel)
    return(list(inner = inner, norm2 = norm2))
  }
  norm2 <- check_result(bag_norms(own, new$sizes, new$weights),
                        "the norm of a bag", "the bags")
  if (!is.null(new$weights)) {
    return(list(inner = inner, norm2 = norm2))
  }
  norm2 <- norm2 / unname(new$sizes)^2
  varrho <- bag_means(sample_diagonal(own), new$sizes)
  if (is.null(fit$target)) {
    keep <- 1 - bag_shares(fit$estimator, norm2, varrho, new$sizes)
    return(list(inner = scale_pairs(inner, keep, 1 - fit$alpha),
                norm2 = keep^2 * norm2))
  }
  each <- lapply(seq_along(new$sizes), \(j) {
    at <- find_bag(fit, new, j, inner[j, ], norm2[j])
    mix_new(fit, inner[j, ], norm2[j], varrho[j], new$sizes[[j]], at)
  })
  list(inner = do.call(rbind, lapply(each, `[[`, "inner")),
       norm2 = vapply(each, `[[`, numeric(1), "norm2"))
}

# A new bag that borrows from those of the fit; `at`: the one that it is, NA for
# none.
mix_new <- function(fit, with, own, varrho, n, at) {
  if (!is.na(at)) {
    return(list(inner = fit$inner[at, ], norm2 = fit$inner[at, at]))
  }
  g <- unname(rbind(cbind(fit$pool$g, with), c(with, own)))
  pool <- new_pool(g, c(fit$pool$varrho, varrho), c(fit$pool$n, n))
  m <- length(with)
  weights <- borrow(fit$target, fit$estimator, pool, m + 1L)
  towards <- drop(pool$g %*% weights)
  list(inner = drop(towards[seq_len(m)] %*% fit$mixing),
       norm2 = sum(weights * towards))
}

# The bag of the fit with the points of new bag j: what is known of it is not
# known twice.
find_bag <- function(fit, new, j, with, own) {
  g <- fit$pool$g
  near <- own - 2 * with + diag(g) <= 1e-10 * fit$pool$slack &
    fit$sizes == new$sizes[[j]]
  mine <- sorted_points(new$z[bag_rows(new$sizes)[[j]], , drop = FALSE])
  rows <- bag_rows(fit$sizes)
  for (at in which(near)) {
    theirs <- sorted_points(fit$sample$x[rows[[at]], , drop = FALSE])
    if (identical(mine, theirs)) return(at)
  }
  NA_integer_
}

sorted_points <- function(x) {
  x <- unname(x)
  x[do.call(order, lapply(seq_len(ncol(x)), \(l) x[, l])), , drop = FALSE]
}

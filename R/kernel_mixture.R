# Gaussian mixtures and their embeddings in closed form.

# A Gaussian mixture of C components, as users give it: a list with these names.
#   weights      C numbers that sum to 1
#   means        C x d matrix
#   covariances  d x d x C array; or instead
#   variances    C numbers, for spherical components
# `spread` names the last field.
check_mixture <- function(mixture, d, name, spread = "covariances") {
  fields <- c("weights", "means", spread)
  if (!is.list(mixture) || !all(fields %in% names(mixture))) {
    stop_input("'", name, "' must be a list with the names weights, means and ",
               spread, ", not ", describe(mixture))
  }
  field <- paste0(name, "$", fields)
  weights <- check_shares(mixture$weights, field[1L])
  count <- length(weights)
  means <- mixture$means
  if (is.numeric(means) && is.null(dim(means)) && count == 1L) {
    means <- t(means)
  }
  means <- check_data(means, field[2L])
  if (nrow(means) != count || ncol(means) != d) {
    stop_input("'", field[2L], "' must be ", count, " x ", d, ", not ",
               nrow(means), " x ", ncol(means))
  }
  checked <- list(weights = weights, means = unname(means))
  checked[[spread]] <- if (spread == "variances") {
    take(mixture$variances, numbers(1e-140, 1e140, open = TRUE, count = count),
         field[3L])
  } else {
    check_covariances(mixture$covariances, d, count, field[3L])
  }
  checked
}

check_shares <- function(weights, name) {
  if (!is.numeric(weights) || length(weights) < 1L || anyNA(weights) ||
        any(weights < 0) || abs(sum(weights) - 1) > 1e-8) {
    stop_input("'", name, "' must be non-negative and sum to 1")
  }
  as.double(weights)
}

check_covariances <- function(covariances, d, count, name) {
  shape <- if (d == 1L && is.null(dim(covariances))) {
    c(1L, 1L, length(covariances))
  } else {
    c(dim(covariances), if (length(dim(covariances)) == 2L) 1L)
  }
  if (!is.numeric(covariances) || !identical(shape, c(d, d, count))) {
    stop_input("'", name, "' must be a ", d, " x ", d, " x ", count, " array")
  }
  check_finite(covariances, name)
  covariances <- array(as.double(covariances), shape)
  for (i in seq_len(count)) {
    s <- matrix(covariances[, , i], d)
    slack <- 1e-8 * max(abs(s))
    if (max(abs(s - t(s))) > slack ||
          min(eigen(s, symmetric = TRUE, only.values = TRUE)$values) <
            -slack) {
      stop_input("'", name, "' must be symmetric and positive semi-definite; ",
                 "number ", i, " is not")
    }
  }
  covariances
}

check_closed_form <- function(kernel, sums = TRUE) {
  if (!kernel_has(kernel, "closed form") ||
        !sums && kernel_has(kernel, "parts")) {
    stop_input(
      "the embedding of a Gaussian mixture is known for RBF kernels, ",
      "polynomial kernels up to degree 3 and, but in a density, sums of them, ",
      "not for the ", format_kernel(kernel)
    )
  }
}

# The sum over the parts of a kernel of value(part, seen), where seen(mixture)
# is the mixture in the columns of the part.
add_parts <- function(kernel, value) {
  Reduce(`+`, lapply(kernel$parts, \(part) {
    part$times * value(part, \(mixture) {
      mixture$means <- take_columns(mixture$means, part$at)
      mixture$covariances <-
        mixture$covariances[part$at, part$at, , drop = FALSE]
      mixture
    })
  }))
}

# The components of a mixture one by one: weight, mean and cov, d x d.
components_of <- function(mixture) {
  d <- ncol(mixture$means)
  lapply(seq_along(mixture$weights), \(i) {
    list(weight = mixture$weights[i], mean = mixture$means[i, ],
         cov = matrix(mixture$covariances[, , i], d, d))
  })
}

# Has each point a noise covariance of its own?
is_each <- function(noise) length(dim(noise)) == 3L

# The d x d covariance of noise that is given as d variances or as a matrix.
noise_matrix <- function(noise) {
  if (is.matrix(noise)) noise else diag(noise, length(noise))
}

# E k(z~_i, X) for each row z_i of the n x d matrix z, for X from the mixture
# and an independent z~_i from N(z_i, noise), which is z_i itself for NULL.
mixture_at <- function(mixture, kernel, z, noise = NULL) {
  check_closed_form(kernel)
  if (kernel_has(kernel, "parts")) {
    return(add_parts(kernel, \(part, seen) {
      mixture_at(seen(mixture), part, take_columns(z, part$at))
    }))
  }
  total <- 0
  for (part in components_of(mixture)) {
    total <- total + part$weight * component_at(part, kernel, z, noise)
  }
  total
}

# The same for one component; each point may have a noise covariance of its own.
component_at <- function(part, kernel, z, noise) {
  if (is_each(noise)) {
    return(vapply(seq_len(nrow(z)), \(i) {
      component_at(part, kernel, take_rows(z, i),
                   matrix(noise[, , i], ncol(z)))
    }, 0, USE.NAMES = FALSE))
  }
  noise <- noise %||% numeric(ncol(z))
  if (kernel_has(kernel, "Gaussian form")) {
    return(gaussian_kernel(sweep(z, 2, part$mean),
                           part$cov + noise_matrix(noise),
                           kernel$bandwidth))
  }
  a <- drop(z %*% part$mean) + kernel$offset
  v <- rowSums((z %*% part$cov) * z) + sum(noise * (part$mean^2 +
                                                      diag(part$cov)))
  w <- drop(z %*% (part$cov %*% (noise * part$mean)))
  switch(kernel$degree, a, a^2 + v, a^3 + 3 * a * v + 6 * w)
}

# E k(X, Y) for independent X, Y from two mixtures.
mixture_inner <- function(p, q, kernel) {
  check_closed_form(kernel)
  if (kernel_has(kernel, "parts")) {
    return(add_parts(kernel, \(part, seen) {
      mixture_inner(seen(p), seen(q), part)
    }))
  }
  gram <- gaussian_gram(components_of(p), components_of(q), kernel)
  sum(p$weights * (gram %*% q$weights))
}

# The matrix of inner products of the components a and b, or of a with itself.
gaussian_gram <- function(a, b, kernel) {
  pair_values(a, b, \(p, q) gaussian_inner(p, q, kernel))
}

# The matrix f(a_i, b_j) over two lists. Without b it is f(a_i, a_j), and f must
# be symmetric.
pair_values <- function(a, b, f) {
  symmetric <- is.null(b)
  if (symmetric) b <- a
  values <- matrix(0, length(a), length(b))
  for (i in seq_along(a)) {
    for (j in if (symmetric) seq_len(i) else seq_along(b)) {
      values[i, j] <- f(a[[i]], b[[j]])
      if (symmetric) values[j, i] <- values[i, j]
    }
  }
  values
}

gaussian_inner <- function(p, q, kernel) {
  if (kernel_has(kernel, "Gaussian form")) {
    difference <- matrix(p$mean - q$mean, nrow = 1)
    return(gaussian_kernel(difference, p$cov + q$cov, kernel$bandwidth))
  }
  m <- sum(p$mean * q$mean) + kernel$offset
  s <- drop(p$mean %*% q$cov %*% p$mean) + drop(q$mean %*% p$cov %*% q$mean) +
    sum(p$cov * q$cov)
  z <- drop(p$mean %*% q$cov %*% p$cov %*% q$mean)
  switch(kernel$degree, m, m^2 + s, m^3 + 3 * m * s + 6 * z)
}

# |Theta|^(1/2) |S + Theta|^(-1/2) exp(-u'(S + Theta)^(-1)u/2) for the rows u,
# Theta = diag(theta^2).
gaussian_kernel <- function(u, s, theta) {
  theta <- rep_len(theta, ncol(u))
  root <- tryCatch(chol(s + diag(theta^2, length(theta))), error = \(e) {
    stop_input(
      "the covariances of a mixture must be positive semi-definite to the ",
      "rounding of a bandwidth as small as ", format_number(min(theta))
    )
  })
  scaled <- backsolve(root, t(u), transpose = TRUE)
  exp(sum(log(theta)) - sum(log(diag(root))) - colSums(scaled^2) / 2)
}

# n points drawn from the mixture q, an n x d matrix. `roots` has a matrix R for
# each component, where R'R is its covariance.
draw_mixture <- function(q, n, roots) {
  component <- sample.int(length(q$weights), n, replace = TRUE,
                          prob = q$weights)
  noise <- matrix(stats::rnorm(as.double(n) * ncol(q$means)), n)
  for (i in unique(component)) {
    rows <- component == i
    noise[rows, ] <- take_rows(noise, rows) %*% roots[[i]]
  }
  take_rows(q$means, component) + noise
}

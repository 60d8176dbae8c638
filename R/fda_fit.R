# The fit of kernel Fisher discriminants, and the choice of its bandwidth.

# list(scaling, means, svd, scores, center, ridge, intensity, distance) from the
# Gram matrix.
fit_fda <- function(k, classes, ridge) {
  n <- nrow(k)
  # Squares of K must be numbers; alpha is in units of 1/K, r of K^2.
  unit <- power_below(max(abs(k)))
  intensity <- NULL
  given <- ridge
  if (identical(ridge, "shrinkage")) {
    centered <- center_matrix(k)$k / unit
    intensity <- shrinkage_intensity(diag(centered), sum(centered^2), n - 1, n)
    ridge <- intensity / (1 - intensity) * (sum(diag(centered)) / (n - 1))^2
    if (intensity == 1) ridge <- Inf
  } else {
    ridge <- ridge / unit / unit
  }
  k <- k / unit
  counts <- unname(classes$counts)
  own <- outer(classes$of, seq_along(counts), `==`) + 0
  m <- k %*% (own / rep(counts, each = n))
  overall <- drop(m %*% counts) / n
  m <- m - overall
  within <- k - (m + overall)[, classes$of]
  found <- fda_root(within, ridge, unit, is.null(intensity))
  fit <- fda_axes(k, found$root, m, overall, counts)
  fit$scaling <- fit$scaling / unit
  c(fit, list(
    ridge = if (is.null(intensity)) given else found$ridge * unit * unit,
    intensity = intensity,
    distance = fda_left_out(found$root, within, m, classes$of, counts,
                            is.finite(found$ridge))
  ))
}

# list(root: R^{-1} with R'R = N + rI, that of I for r = Inf; ridge). Where
# shrinkage asks for less than rounding allows, r is that much; a number given
# must be more.
fda_root <- function(within, ridge, unit, given) {
  n <- nrow(within)
  if (ridge == Inf) {
    return(list(root = diag(n), ridge = ridge))
  }
  scatter <- row_products(within)
  rounding <- n * .Machine$double.eps * max(diag(scatter))
  if (!given && ridge <= rounding) {
    ridge <- sqrt(.Machine$double.eps) * max(diag(scatter))
  }
  at <- seq(1, n^2, n + 1)
  scatter[at] <- scatter[at] + ridge
  root <- if (ridge > rounding) inverse_root(scatter)
  if (is.null(root)) {
    stop_kernmean(
      "numeric", "the within-class scatter with the ridge ",
      format_number(ridge * unit * unit), " is not positive definite to ",
      "rounding; choose 'ridge' well above ",
      format_number(rounding * unit * unit, 2L)
    )
  }
  list(root = root, ridge = ridge)
}

# AB', or AA': a linear kernel of rows, several times faster than the product of
# R's own BLAS, and exactly symmetric.
row_products <- function(a, b = NULL) fold_store(kernel_linear(), a, b)

block_order <- 128L

# R^{-1}, upper triangular, of A = R'R; NULL if A is not positive definite to
# rounding. By halves of A, so that nearly all of it is products:
#   R = (R_1 S; 0 R_2), S = R_1'^{-1} A_12, R_2'R_2 = A_22 - S'S,
#   R^{-1} = (R_1^{-1}  -R_1^{-1} S R_2^{-1}; 0  R_2^{-1}).
inverse_root <- function(a) {
  n <- nrow(a)
  if (n <= block_order) {
    r <- .Call(C_r_cholesky, a, 0)
    return(if (!is.null(r)) backsolve(r, diag(n)))
  }
  one <- seq_len(n %/% 2L)
  first <- inverse_root(a[one, one])
  if (is.null(first)) {
    return(NULL)
  }
  across <- row_products(a[-one, one], t(first))
  second <- inverse_root(a[-one, -one] - row_products(across))
  if (is.null(second)) {
    return(NULL)
  }
  out <- matrix(0, n, n)
  out[one, one] <- first
  out[-one, -one] <- second
  out[one, -one] <- -row_products(first, row_products(t(second), t(across)))
  out
}

fda_axes <- function(k, root, m, overall, counts) {
  n <- nrow(k)
  d <- m * rep(sqrt(counts), each = n)
  most <- length(counts) - 1L
  s <- svd(crossprod(root, d), nu = most, nv = 0L)
  kept <- which(s$d[seq_len(most)] > sqrt(n * .Machine$double.eps) * s$d[1L])
  # What differences of equal means leave is rounding of the means.
  if (!length(kept) ||
        max(abs(d)) <= n * .Machine$double.eps * max(abs(overall))) {
    stop_input("the classes must differ in their means of the kernel values; ",
               "all are the same to rounding")
  }
  scaling <- fix_signs(
    sqrt(n - length(counts)) * root %*% s$u[, kept, drop = FALSE]
  )
  colnames(scaling) <- paste0("LD", kept)
  center <- drop(overall %*% scaling)
  list(
    scaling = scaling, means = crossprod(m, scaling),
    svd = sqrt((n - length(counts)) / most) * s$d[kept],
    scores = k %*% scaling - rep(center, each = n), center = center
  )
}

# Squared distances of each point to the class means in the fit without it, n x
# C, at the same ridge. With A = N + rI, P its inverse and d = k_i - M_c for the
# point's own class c (n_c points), the scatter without point i is that of the
# other rows and columns less n_c/(n_c - 1) dd', and M_c becomes M_c - d/(n_c -
# 1). All vectors are combinations of the columns of X = [M_1 - M, ..., M_C - M,
# d]; without row and column i the products are
#   G = X'PX - (X'Pe_i)(e_i'PX)/P_ii,
# and Sherman-Morrison gives those with the scatter left out. With T the
# coefficients of D and w those of k_i - M_c, u = T'Gw and E = T'GT, the squared
# distance on the axes is (n - 1 - C) u'E^+ u, whatever their rotation.
# `scatter` says whether A has N in it.
fda_left_out <- function(root, within, m, of, counts, scatter) {
  n <- nrow(within)
  classes <- length(counts)
  # P = UU' for the root U: of Y = U'W all that is needed of P W follows.
  pm <- root %*% crossprod(root, m)
  means <- crossprod(m, pm)
  cross <- crossprod(within, pm)
  y <- row_products(t(within), t(root))
  square <- rowSums(y^2)
  at <- cbind(pm, rowSums(root * y))
  pivot <- rowSums(root^2)
  last <- classes + 1L
  distance <- matrix(0, n, classes)
  for (own in seq_len(classes)) {
    times <- counts[own] / (counts[own] - 1)
    centers <- diag(1, last, classes)
    centers[last, own] <- -1 / (counts[own] - 1)
    left <- counts - (seq_len(classes) == own)
    spread <- (centers - drop(centers %*% left) / (n - 1)) *
      rep(sqrt(left), each = last)
    size <- abs(spread)
    point <- (seq_len(last) %in% c(own, last)) - centers
    here <- which(of == own)
    distance[here, ] <- t(vapply(here, \(i) {
      g <- rbind(cbind(means, cross[i, ]), c(cross[i, ], square[i]))
      g <- g - tcrossprod(at[i, ]) / pivot[i]
      if (scatter) {
        g <- g + tcrossprod(g[, last]) * times / (1 - times * g[last, last])
      }
      inverse_forms(crossprod(spread, g %*% spread),
                    crossprod(spread, g %*% point),
                    max(crossprod(size, abs(g) %*% size)), n)
    }, numeric(classes)))
  }
  (n - 1 - classes) * distance
}

# u'E^+ u for the columns of u, which lie in the range of E; `size`: of what the
# entries of E were added up from, in n terms. One class is a combination of the
# others; where these are independent to many digits, Cholesky's factor without
# the last one is enough, otherwise eigenvectors tell what is rounding.
inverse_forms <- function(e, u, size, n) {
  last <- nrow(e)
  root <- .Call(C_r_cholesky, e[-last, -last, drop = FALSE], 0)
  if (!is.null(root) &&
        min(diag(root))^2 > sqrt(.Machine$double.eps) * size) {
    return(colSums(backsolve(root, u, last - 1L, transpose = TRUE)^2))
  }
  e <- eigen(e, symmetric = TRUE)
  kept <- which(e$values[-last] >
                  n * .Machine$double.eps * max(e$values[1L], size))
  u <- crossprod(e$vectors[, kept, drop = FALSE], u) / sqrt(e$values[kept])
  colSums(u^2)
}

# sigma^2 from the squared distances to the own class on q axes; not 0, so that
# the nearest mean is what is left where nothing varies.
fda_spread <- function(distance, q, means) {
  max(mean(distance) / q, .Machine$double.eps * max(rowSums(means^2)))
}

# log pi_c - |s - m_c|^2 / (2 sigma^2).
fda_values <- function(distance, sigma2, prior) {
  rep(log(prior), each = nrow(distance)) - distance / (2 * sigma2)
}

# list(class, posterior).
fda_classes <- function(distance, sigma2, prior, lev, rows) {
  value <- fda_values(distance, sigma2, prior)
  value <- exp(value - apply(value, 1L, max))
  posterior <- value / rowSums(value)
  dimnames(posterior) <- list(rows, names(prior))
  best <- max.col(posterior, "first")
  list(class = factor(names(prior)[best], lev), posterior = posterior)
}

# Squared distances of scores to the class means, m x C.
fda_distance <- function(scores, means) {
  rows <- lapply(seq_len(nrow(means)), \(c) {
    rowSums((scores - rep(means[c, ], each = nrow(scores)))^2)
  })
  matrix(unlist(rows), nrow(scores))
}


# --- Leaving one out, and the bandwidth --------------------------------------

# list(sigma2, loo: list(class, posterior, distance)) of a fit.
fda_left <- function(fit, classes, prior, rows = NULL) {
  distance <- fit$distance
  sigma2 <- fda_spread(distance[cbind(seq_along(classes$of), classes$of)],
                       ncol(fit$scaling), fit$means)
  loo <- fda_classes(distance, sigma2, prior, classes$lev, rows)
  loo$distance <- structure(distance, dimnames = list(rows, names(prior)))
  list(sigma2 = sigma2, loo = loo)
}

# c(error, log_posterior): the share of points whose class is wrong, and the
# mean logarithm of the posterior probability of the true one, leaving one out,
# in a population of these prior probabilities: pi_c/n_c for each point of class
# c.
fda_score <- function(fit, classes, prior) {
  left <- fda_left(fit, classes, prior)
  weight <- (prior / classes$counts)[classes$of]
  true <- cbind(seq_along(classes$of), classes$of)
  value <- fda_values(fit$distance, left$sigma2, prior)
  top <- apply(value, 1L, max)
  log_posterior <- value[true] - top - log(rowSums(exp(value - top)))
  wrong <- left$loo$class != names(prior)[classes$of]
  counted <- weight > 0
  c(error = sum((weight * wrong)[counted]),
    log_posterior = sum((weight * log_posterior)[counted]))
}

bandwidth_factors <- 2^seq(-2, 1, 0.5)

# The kernels that one is chosen of, perhaps a single one.
fda_kernels <- function(kernel, bandwidth) {
  if (is.null(bandwidth) || identical(bandwidth, "median")) {
    return(list(kernel))
  }
  loo <- identical(bandwidth, "loo")
  values <- if (loo) bandwidth_factors * kernel$bandwidth else bandwidth
  lapply(seq_along(values), \(i) {
    end <- if (values[i] == min(values)) {
      ", the smallest tried"
    } else if (values[i] == max(values)) {
      ", the largest tried"
    }
    kernel$rule <- if (loo) {
      paste0(format_number(bandwidth_factors[i], 3L), " times the ",
             kernel$rule, end)
    } else if (length(values) > 1L) {
      paste0("of ", length(values), " given", end)
    }
    kernel$bandwidth <- values[i]
    kernel
  })
}

# Shares of points that differ by less differ by rounding.
same_error <- 1e-9

# Points from which on a search takes more than a second.
shown_from <- 800L

ridge_factors <- c(0.03, 0.1, 0.3, 3)

# list(fit, sample, bandwidths, ridges): the fit of least leave-one-out error,
# or of several that of largest log posterior, among the kernels with the ridge
# that shrinkage gives there (or a given one), then for ridge = "loo" among
# multiples of that; tables of all. What gives no discriminants is passed over,
# unless all does.
search_fda <- function(sample, kernels, classes, prior, ridge, progress) {
  bar <- progress_bar(progress && sample$n >= shown_from)
  on.exit(bar$close())
  loo <- identical(ridge, "loo")
  total <- length(kernels) + if (loo) length(ridge_factors) else 0L
  done <- 0L
  fit <- \(kernel, ridge) {
    sample$kernel <- kernel
    found <- tryCatch(
      fit_fda(sample_gram(sample)$K, classes, ridge),
      kernmean_error_input = identity, kernmean_error_numeric = identity
    )
    done <<- done + 1L
    bar$at(done / total)
    found
  }
  first <- best_fit(
    lapply(kernels, fit, if (loo) "shrinkage" else ridge), classes, prior
  )
  median <- sample$kernel$bandwidth
  sample$kernel <- kernels[[first$best]]
  out <- list(fit = first$fit, sample = sample)
  if (length(kernels) > 1L) {
    values <- vapply(kernels, \(kernel) kernel$bandwidth, numeric(1))
    out$bandwidths <- data.frame(factor = values / median, bandwidth = values,
                                 first$scores)
  }
  if (loo && is.finite(out$fit$ridge)) {
    factors <- sort(c(1, ridge_factors))
    base <- out$fit
    second <- best_fit(lapply(factors, \(factor) {
      if (factor == 1) base else fit(sample$kernel, factor * base$ridge)
    }), classes, prior)
    out$fit <- second$fit
    out$fit["intensity"] <- base["intensity"]
    out$ridges <- data.frame(factor = factors, ridge = factors * base$ridge,
                             second$scores)
  }
  out
}

# list(fit, best: its number, scores: a data frame) of several fits, some of
# which may be errors.
best_fit <- function(found, classes, prior) {
  failed <- vapply(found, inherits, NA, "condition")
  if (all(failed)) stop(found[[1L]])
  if (length(found) == 1L) {
    return(list(fit = found[[1L]], best = 1L))
  }
  scores <- matrix(NA_real_, 2L, length(found))
  scores[, !failed] <- vapply(found[!failed], fda_score, numeric(2), classes,
                              prior)
  least <- which(scores[1L, ] <= min(scores[1L, ], na.rm = TRUE) + same_error)
  best <- least[which.max(scores[2L, least])]
  list(fit = found[[best]], best = best, scores = data.frame(
    error = scores[1L, ], log_posterior = scores[2L, ],
    chosen = seq_along(found) == best
  ))
}

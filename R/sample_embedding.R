#' Inner products and distances of kernel means
#'
#' The geometry of embeddings in the reproducing kernel Hilbert space: inner
#' products, distances and, against a known Gaussian mixture, the exact risk.
#'
#' For \eqn{\tilde\mu_a = \sum_i \alpha_i k(x_i, \cdot)}{ mu_a = sum_i alpha_i
#' k(x_i, .)} and \eqn{\tilde\mu_b = \sum_j \beta_j k(y_j, \cdot)}{mu_b = sum_j
#' beta_j k(y_j, .)} the inner product is \eqn{\alpha'K_{xy}\beta}{alpha' K_xy
#' beta}; the distance is \eqn{\|\tilde\mu_a - \tilde\mu_b\|}{|mu_a - mu_b|}.
#' Parts of a target or of a stack enter in the same way, and the noise of
#' marginalized and smoothed estimates (`"mkme"`, `"mmkme"`) in closed form,
#' independent in a and b.
#'
#' With \eqn{\mu_P}{mu_P} the embedding of \eqn{P = \sum_c \pi_c N(m_c,
#' S_c)}{P = sum_c pi_c N(m_c, S_c)},
#' `kme_risk()` returns the squared error \eqn{\|\tilde\mu - \mu_P\|^2 =
#' \|\tilde\mu\|^2 - 2\langle\tilde\mu, \mu_P\rangle + \|\mu_P\|^2}{|mu -
#' mu_P|^2} from closed forms: for RBF kernels, linear and polynomial ones
#' up to degree 3.
#'
#' @param a,b,fit Objects returned by [kme()], with the same kernel (the same
#'   bandwidth included). Fits on a matrix of kernel values ([as_gram()]) can be
#'   combined if they share that `gram`. Without `b`, `a` is a plain list of
#'   such fits.
#' @param ... Must be empty.
#' @param mixture A Gaussian mixture, `list(weights, means, covariances)`:
#'   `weights` C non-negative numbers that sum to 1, `means` a C by d matrix,
#'   `covariances` a d by d by C array (a vector of C variances if d = 1, a d by
#'   d matrix if C = 1).
#' @return One number: the inner product; the distance; the squared distance to
#'   the embedding of the mixture. For a list of fits, the symmetric matrix of
#'   the inner products or distances of all pairs, with the names of the list;
#'   [stats::as.dist()] takes that of distances. Their squares are the `pairs`
#'   of a biased [mmd_test()] with the same kernel.
#' @details Time O(nmd), memory O(n + m). For a list of samples of N points in
#'   all, O(N^2 d/2) time; a sample that several fits are on (or their target)
#'   is gone through once for all of them. Distances are made of differences of
#'   weights where fits share points, so that close ones do not lose their
#'   digits.
#' @references Muandet et al. (2014), section 4.1.
#' @seealso [glossary]; [kme()]; [mmd_test()]; [confint.kme()].
#' @examples
#' set.seed(1)
#' k <- kernel_rbf(1)
#' a <- kme(rnorm(50), k)
#' b <- kme(rnorm(50, 1), k)
#' kme_distance(a, b)
#'
#' # Which of several samples are alike?
#' weight <- split(chickwts$weight, chickwts$feed)
#' k <- kme(chickwts$weight)$kernel
#' apart <- kme_distance(lapply(weight, kme, kernel = k))
#' round(apart, 2)
#' plot(hclust(as.dist(apart)), xlab = "feed", sub = "")
#'
#' normal <- list(weights = 1, means = matrix(0), covariances = 1)
#' shrunk <- update(a, estimator = "fkmse")
#' c(kme = kme_risk(a, normal), fkmse = kme_risk(shrunk, normal))
#' @export
kme_inner <- function(a, b, ...) {
  check_given(a)
  only_two(...)
  if (missing(b) && is_plain_list(a)) {
    return(fit_pairs(a, inner_pairs))
  }
  check_pair(a, b)
  inner_parts(embedding_parts(a), embedding_parts(b), a$kernel)
}

#' @rdname kme_inner
#' @export
kme_distance <- function(a, b, ...) {
  check_given(a)
  UseMethod("kme_distance")
}

#' @export
kme_distance.default <- function(a, b, ...) {
  only_two(...)
  if (missing(b) && is_plain_list(a)) {
    return(distances_of(a, fit_pairs(a, distance2_pairs)))
  }
  check_pair(a, b)
  parts <- c(embedding_parts(a), embedding_parts(b, -1))
  distances_of(list(a, b), norm2_parts(parts, a$kernel))
}

# Distances from squared distances. Only a kernel that is an R function may
# prove not to be positive definite, which is an error.
distances_of <- function(fits, distance2) {
  sqrt(squares(distance2, if (kernel_has(fits[[1L]]$kernel, "function")) {
    max(vapply(fits, \(fit) fit$varrho * fit$n * sum(fit$weights^2), 1))
  } else Inf, "distance of two means"))
}

#' @rdname kme_inner
#' @export
kme_risk <- function(fit, mixture) {
  check_given(fit)
  check_given(mixture)
  take(fit, a_fit)
  x <- sample_points(fit$sample, "'fit' must be fitted on points, not on a ",
                     "matrix of values")
  mixture <- scale_mixture(fit$kernel,
                           check_mixture(mixture, ncol(x), "mixture"))
  check_closed_form(fit$kernel)
  parts <- c(embedding_parts(fit),
             list(new_mean_part(NULL, -1, mixture = mixture)))
  max(0, norm2_parts(parts, fit$kernel))
}

a_fit <- is_a("kme", "a fit of kme()")
only_two <- function(...) {
  if (...length()) {
    stop_input("two fits of kme() must be given and nothing else, as in ",
               "kme_distance(kme(x, kernel), kme(y, kernel))")
  }
}

check_pair <- function(a, b) {
  take(a, a_fit)
  if (missing(b)) {
    stop_input("'b' must be given, or 'a' must be a list of fits of kme()")
  }
  take(b, a_fit)
  check_same_space(a$sample, b$sample, "'a'", "'b'")
}

# The matrix that pairs() makes of the embeddings of fits, which must be in the
# space of one kernel; errors name a fit by its place in the list.
fit_pairs <- function(fits, pairs) {
  if (!length(fits)) {
    stop_input("'a' must be a fit of kme(), or a list of such fits, not ",
               describe(fits))
  }
  labels <- vapply(seq_along(fits), element_label, "", names = names(fits),
                   name = "a")
  for (i in seq_along(fits)) take(fits[[i]], a_fit, labels[i])
  # Columns without names go with any others, so that all fits are compared with
  # the first one whose columns have names.
  named <- vapply(fits, \(fit) !is.null(colnames(fit$sample$x)), NA)
  first <- c(which(named), 1L)[1L]
  for (i in seq_along(fits)[-first]) {
    check_same_space(fits[[first]]$sample, fits[[i]]$sample,
                     quoted(labels[first]), quoted(labels[i]))
  }
  pairs(lapply(fits, embedding_parts), fits[[1L]]$kernel)
}

# --- An embedding as a list of parts ---------------------------------------
# The field `parts` of a fit stands in place of weights on its sample.

# A part of an embedding: sum_i weights_i E k(x~_i, .) with x~_i from N(x_i,
# noise), or weights times the embedding of a Gaussian mixture.
#   sample   the sample of the points x_i
#   weights  n numbers, or a matrix with a column for each of several
#            embeddings; one number for a mixture
#   noise    NULL for none, d variances or, for RBF kernels, a covariance, d x
#            d, or one for each point, d x d x n
#   mixture  the mixture in the units of the kernel, NULL for points
new_mean_part <- function(sample, weights, noise = NULL, mixture = NULL) {
  list(sample = sample, weights = weights, noise = noise, mixture = mixture)
}

# The parts of a fit, those of its target included, times a number.
embedding_parts <- function(object, times = 1) {
  parts <- object$parts %||%
    list(new_mean_part(object$sample, object$weights, effective_noise(object)))
  c(scale_parts(parts, times),
    target_parts(object$estimator$target, object$kernel, times * object$share))
}

scale_parts <- function(parts, times) {
  lapply(parts, \(part) {
    part$weights <- times * part$weights
    part
  })
}

# The parts of a target: NULL, a fit, or a mixture in the units of the user.
target_parts <- function(target, kernel, times = 1) {
  if (is.null(target)) {
    NULL
  } else if (inherits(target, "kme")) {
    embedding_parts(target, times)
  } else {
    list(new_mean_part(NULL, times, mixture = scale_mixture(kernel, target)))
  }
}

# Do the weights of two parts stand for the same functions?
same_part <- function(a, b) {
  if (is.null(a$mixture) && is.null(b$mixture)) {
    identical(a$noise, b$noise) && same_sample(a$sample, b$sample)
  } else {
    identical(a$mixture, b$mixture)
  }
}

# The parts in groups of equal ones, each a vector of their places in the list.
equal_parts <- function(parts) {
  first <- integer()
  group <- integer(length(parts))
  for (i in seq_along(parts)) {
    at <- which(vapply(parts[first], same_part, NA, parts[[i]]))
    if (!length(at)) {
      first <- c(first, i)
      at <- length(first)
    }
    group[i] <- at[1L]
  }
  unname(split(seq_along(parts), group))
}

weights_of <- function(parts) lapply(parts, `[[`, "weights")

# The parts with the weights of equal ones added up: the difference of nearby
# embeddings is then a difference of weights, not of large norms.
merge_parts <- function(parts) {
  if (length(parts) == 1L) {
    return(parts)
  }
  lapply(equal_parts(parts), \(i) {
    part <- parts[[i[1L]]]
    part$weights <- Reduce(`+`, weights_of(parts[i]))
    part
  })
}

# The squared norm of an embedding.
norm2_parts <- function(parts, kernel) {
  parts <- merge_parts(parts)
  total <- 0
  for (i in seq_along(parts)) {
    total <- total + norm2_part(parts[[i]], kernel)
    for (j in seq_len(i - 1L)) {
      total <- total + 2 * inner_part(parts[[i]], parts[[j]], kernel)
    }
  }
  total
}

# The inner product of two embeddings.
inner_parts <- function(left, right, kernel) {
  sum(pair_values(merge_parts(left), merge_parts(right), \(a, b) {
    inner_part(a, b, kernel)
  }))
}

norm2_part <- function(part, kernel) {
  if (is.null(part$sample) || !knows_points(part$sample)) {
    inner_part(part, part, kernel)
  } else {
    noisy_norm2(kernel, part$sample$x, part$weights, part$noise)
  }
}

inner_part <- function(a, b, kernel) {
  sum(a$weights * drop(value_on(a, b, kernel)))
}

# The matrix of inner products of many embeddings whose parts are points; its
# rows are for the embeddings `rows` (NULL for the same ones), its columns for
# all. For an RBF kernel one walk over the points gives all entries.
inner_matrix <- function(embeddings, kernel, rows = NULL) {
  symmetric <- is.null(rows)
  if (symmetric) rows <- embeddings
  if (!kernel_has(kernel, "Gaussian form")) {
    return(pair_values(rows, if (!symmetric) embeddings, \(a, b) {
      inner_parts(a, b, kernel)
    }))
  }
  columns <- flatten_parts(embeddings, kernel)
  at <- if (symmetric) columns else flatten_parts(rows, kernel, columns$origin)
  other <- if (!symmetric) columns
  inner <- .Call(C_r_bag_noisy, at$x, at$sizes, at$weights, at$covariances,
                 other$x, other$sizes, other$weights, other$covariances)
  by_row <- rowsum(inner, at$of, reorder = FALSE)
  unname(t(rowsum(t(by_row), columns$of, reorder = FALSE)))
}

# The parts of many embeddings side by side, as the core takes them: x, the
# points in units of the bandwidths and relative to `origin`; the sizes, weights
# and covariances, d x d x parts; `of`, the number of the embedding of each
# part.
flatten_parts <- function(embeddings, kernel, origin = NULL) {
  parts <- unlist(unname(embeddings), recursive = FALSE)
  x <- bind_rows(lapply(parts, \(part) unname(part$sample$x)))
  d <- ncol(x)
  check_memory(d^2, length(parts), "use fewer columns or samples",
               what = "the covariances of all samples")
  origin <- origin %||% colMeans(x)
  theta <- rep_len(kernel$bandwidth, d)
  covariances <- array(0, c(d, d, length(parts)))
  for (i in seq_along(parts)) {
    noise <- parts[[i]]$noise
    if (!is.null(noise)) {
      covariances[, , i] <- noise_matrix(noise) / outer(theta, theta)
    }
  }
  list(x = (x - rep(origin, each = nrow(x))) / rep(theta, each = nrow(x)),
       sizes = vapply(parts, \(part) nrow(part$sample$x), 1L),
       weights = unlist(weights_of(parts)),
       covariances = covariances, origin = origin,
       of = rep(seq_along(embeddings), lengths(embeddings)))
}

# --- All pairs of several embeddings ----------------------------------------

# The parts of all embeddings, where a part that several embeddings share comes
# once: its weights have a column for each of these, whose numbers are in
# `used`.
shared_parts <- function(embeddings) {
  merged <- lapply(unname(embeddings), merge_parts)
  parts <- unlist(merged, recursive = FALSE)
  of <- rep(seq_along(merged), lengths(merged))
  lapply(equal_parts(parts), \(i) {
    part <- parts[[i[1L]]]
    part$weights <- do.call(cbind, weights_of(parts[i]))
    part$used <- of[i]
    part
  })
}

# The values of the functions of a part, one function for each column of its
# weights, on each of the parts `ats`, as a list. On points they are a matrix
# with a row for each point, means if the points have noise; on a mixture they
# are one row, the inner products with it. If all parts are plain points, one
# fold over their joined points gives the values.
values_on <- function(ats, part, kernel) {
  plain <- \(part) is.null(part$mixture) && is.null(part$noise) &&
    knows_points(part$sample)
  if (!length(ats) || !plain(part) || !all(vapply(ats, plain, NA))) {
    return(lapply(ats, value_on, part, kernel))
  }
  points <- lapply(ats, \(at) unname(at$sample$x))
  from <- rep(seq_along(ats), vapply(points, nrow, 1L))
  new <- new_points(bind_rows(points))
  values <- sample_at(part$sample, new, part$weights)
  lapply(unname(split(seq_along(from), from)),
         \(i) take_rows(values, i))
}

value_on <- function(at, part, kernel) {
  if (is.null(at$mixture)) {
    return(values_at(part, kernel, own_points(at$sample), at$noise))
  }
  if (!is.null(part$mixture)) {
    return(mixture_inner(at$mixture, part$mixture, kernel) * part$weights)
  }
  one <- new_mean_part(NULL, matrix(1), mixture = at$mixture)
  crossprod(value_on(part, one, kernel), part$weights)
}

# The matrix of inner products of embeddings. If W holds their weights on one
# part, and F the values of another part there, the two parts add W'F.
inner_pairs <- function(embeddings, kernel) {
  parts <- shared_parts(embeddings)
  m <- length(embeddings)
  names <- names(embeddings)
  # `inner` gets one half of the sum; its transpose is the other half.
  inner <- matrix(0, m, m, dimnames = if (!is.null(names)) list(names, names))
  for (q in seq_along(parts)) {
    part <- parts[[q]]
    rest <- parts[-seq_len(q)]
    values <- c(list(value_on(part, part, kernel) / 2),
                values_on(rest, part, kernel))
    for (p in seq_along(values)) {
      at <- parts[[p + q - 1L]]
      inner[at$used, part$used] <- inner[at$used, part$used] +
        crossprod(at$weights, values[[p]])
    }
  }
  inner + t(inner)
}

# The matrix of squared distances, from the inner products, or from differences
# of weights where inner products leave few digits.
distance2_pairs <- function(embeddings, kernel) {
  inner <- inner_pairs(embeddings, kernel)
  size <- outer(diag(inner), diag(inner), `+`)
  distance2 <- size - 2 * inner
  close <- which(distance2 < 1e-5 * size & upper.tri(inner), arr.ind = TRUE)
  for (k in seq_len(nrow(close))) {
    i <- close[k, 1L]
    j <- close[k, 2L]
    distance2[i, j] <- distance2[j, i] <- norm2_parts(
      c(embeddings[[i]], scale_parts(embeddings[[j]], -1)), kernel
    )
  }
  distance2
}

# --- Values ------------------------------------------------------------------

# The values of the functions of a part, one for each column of its weights, at
# new points, m x columns; with `noise` their means under N(z_i, noise).
values_at <- function(part, kernel, new, noise = NULL) {
  if (!is.null(part$mixture)) {
    return(mixture_at(part$mixture, kernel, new$z, noise) %*%
             as.matrix(part$weights))
  }
  if (is.null(noise) && is.null(part$noise)) {
    return(sample_at(part$sample, new, part$weights))
  }
  values <- \(w) noisy_apply(kernel, new$z, part$sample$x, w, noise, part$noise)
  w <- as.matrix(part$weights)
  together <- kernel_has(kernel, "Gaussian form")
  matrix(if (together) values(w) else apply(w, 2L, values), new$m)
}

# The values of an embedding at new points.
parts_at <- function(parts, kernel, new) {
  Reduce(`+`, lapply(parts, \(part) drop(values_at(part, kernel, new))))
}

# The weights of an embedding on the points of a sample if it is a sum over
# these and nothing else; NULL otherwise.
weights_on <- function(object, sample) {
  parts <- merge_parts(embedding_parts(object))
  part <- parts[[1L]]
  if (length(parts) == 1L && is.null(part$mixture) && is.null(part$noise) &&
        same_sample(part$sample, sample)) {
    part$weights
  }
}

# --- Noise -----------------------------------------------------------------

# The noise as d variances or covariances, or NULL if the embedding does not
# depend on it.
effective_noise <- function(object) {
  noise <- object$noise
  if (is.null(noise) || kernel_has(object$kernel, "linear form") ||
        all(noise == 0)) {
    return(NULL)
  }
  noise <- unname(noise)
  if (is.null(dim(noise))) rep_len(noise, ncol(object$sample$x)) else noise
}

# The noise of the difference of two points with noise; NULL is none.
add_noise <- function(a, b) {
  if (is.null(a) || is.null(b)) {
    return(a %||% b)
  }
  if (is.matrix(a) == is.matrix(b)) a + b else noise_matrix(a) + noise_matrix(b)
}

# An RBF kernel with noise (of one point, or the sum for both) is `height` times
# a wider `kernel` of the points turn(z). If the noise is variances, turn()
# leaves the points as they are; if it is a covariance, turn() whitens them by
# Theta + noise, relative to `origin`, which is near the points.
noisy_kernel <- function(kernel, noise, origin) {
  theta <- rep_len(kernel$bandwidth, length(origin))
  kernel$rule <- NULL
  if (!is.matrix(noise)) {
    wide <- sqrt(theta^2 + noise)
    kernel$bandwidth <- wide
    return(list(kernel = kernel, height = prod(theta / wide), turn = identity))
  }
  root <- cholesky(noise / outer(theta, theta), 1)
  if (is.null(root)) {
    stop_kernmean("numeric", "the noise outweighs the bandwidth by more than ",
                  "its rounding allows; take a larger bandwidth")
  }
  kernel$bandwidth <- 1
  list(kernel = kernel, height = exp(-sum(log(diag(root)))),
       turn = \(z) t(solve_lower(root, (t(unname(z)) - origin) / theta)))
}

# The `sample` whose kernel values, times `height`, are those of the points of a
# sample with noise on either side.
noisy_sample <- function(sample, noise) {
  x <- sample$x
  wide <- noisy_kernel(sample$kernel, 2 * noise, colMeans(x))
  list(sample = points_sample(wide$turn(x), wide$kernel), height = wide$height)
}

# The sums sum_j weights_j E k(z~_i, x~_j) for independent z~_i from N(z_i,
# at_z) and x~_j from N(x_j, at_x); NULL is no noise. The weights for an RBF
# kernel may be a matrix with a column for each sum. If points have covariances
# of their own, each value takes a Cholesky factor, d x d; about a million
# values are computed at a time.
noisy_apply <- function(kernel, z, x, weights, at_z = NULL, at_x = NULL) {
  other <- if (identical(z, x)) NULL else x
  if (is.null(at_z) && is.null(at_x)) {
    return(fold_apply(kernel, z, other, weights))
  }
  if (is_each(at_z) || is_each(at_x)) {
    columns <- by_point(x, at_x)
    rows <- by_point(z, at_z)
    size <- max(1, 2^20 %/% nrow(x))
    return(drop(bind_rows(lapply(row_panels(seq_along(rows), size), \(i) {
      inner_matrix(columns, kernel, rows[i]) %*% weights
    }))))
  }
  if (kernel_has(kernel, "Gaussian form")) {
    wide <- noisy_kernel(kernel, add_noise(at_z, at_x), colMeans(x))
    return(wide$height * fold_apply(wide$kernel, wide$turn(z),
                                    if (!is.null(other)) wide$turn(other),
                                    weights))
  }
  fold_apply(kernel, z, other, weights) +
    poly_noise(kernel, z, x, weights, at_z %||% numeric(ncol(z)),
               at_x %||% numeric(ncol(x)))
}

# The embeddings of single points with noise, one for each row of x.
by_point <- function(x, noise) {
  lapply(seq_len(nrow(x)), \(i) {
    own <- if (is_each(noise)) matrix(noise[, , i], ncol(x)) else noise
    list(new_mean_part(list(x = take_rows(x, i)), 1, own))
  })
}

# The terms that noise adds to a polynomial kernel: with M = z'x + b, V = z'E_x
# z + x'E_z x + tr(E_z E_x), degree 2: V; degree 3: 3 M V + 6 z'E_z E_x x.
poly_noise <- function(kernel, z, x, weights, at_z, at_x) {
  if (kernel_has(kernel, "linear form")) {
    return(numeric(nrow(z)))
  }
  by_z <- drop(z^2 %*% at_x) + sum(at_z * at_x)
  by_x <- weights * drop(x^2 %*% at_z)
  if (kernel$degree == 2L) {
    return(sum(weights) * by_z + sum(by_x))
  }
  mean <- drop(crossprod(x, weights))
  moved <- drop(crossprod(x, by_x)) + 2 * at_z * at_x * mean
  3 * by_z * (drop(z %*% mean) + kernel$offset * sum(weights)) +
    3 * (drop(z %*% moved) + kernel$offset * sum(by_x))
}

# The squared norm of sum_i weights_i E k(x~_i, .)
noisy_norm2 <- function(kernel, x, weights, noise) {
  if (is.null(noise)) {
    fold_quad(kernel, x, weights)
  } else if (kernel_has(kernel, "Gaussian form") && !is_each(noise)) {
    wide <- noisy_kernel(kernel, 2 * noise, colMeans(x))
    wide$height * fold_quad(wide$kernel, wide$turn(x), weights)
  } else {
    sum(weights * noisy_apply(kernel, x, x, weights, noise, noise))
  }
}

# v'Kv for the points x.
fold_quad <- function(kernel, x, v) {
  if (kernel_has(kernel, "function")) {
    return(sum(v * fold_apply(kernel, x, NULL, v)))
  }
  v <- as.matrix(v)
  check_overflow(kernel, .Call(C_r_kernel_quad, native_source(kernel, x), v, v))
}

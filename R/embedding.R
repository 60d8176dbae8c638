#' Inner products and distances of kernel means
#'
#' The geometry of embeddings in the reproducing kernel Hilbert space: inner
#' products, distances and, against a known Gaussian mixture, the exact risk.
#'
#' For \eqn{\tilde\mu_a = \sum_i \alpha_i k(x_i, \cdot)}{ mu_a = sum_i alpha_i
#' k(x_i, .)} and \eqn{\tilde\mu_b = \sum_j \beta_j k(y_j, \cdot)}{mu_b = sum_j
#' beta_j k(y_j, .)} the inner product is \eqn{\alpha'K_{xy}\beta}{alpha' K_xy
#' beta}; the distance is \eqn{\|\tilde\mu_a - \tilde\mu_b\|}{|mu_a - mu_b|}.
#' Parts of a target enter in the same way, and the noise of marginalized
#' estimates (`"mkme"`, `"mmkme"`) in closed form, independent in a and b.
#'
#' With \eqn{\mu_P}{mu_P} the embedding of \eqn{P = \sum_c \pi_c N(m_c,
#' S_c)}{P = sum_c pi_c N(m_c, S_c)},
#' `kme_risk()` returns the squared error \eqn{\|\tilde\mu - \mu_P\|^2 =
#' \|\tilde\mu\|^2 - 2\langle\tilde\mu, \mu_P\rangle + \|\mu_P\|^2}{|mu -
#' mu_P|^2} from closed forms: for RBF kernels, linear and polynomial kernels of
#' degree 2 and 3.
#'
#' @param a,b,fit Objects returned by [kme()], with the same kernel (the same
#'   bandwidth included). Fits on a matrix of kernel values ([as_gram()]) can be
#'   combined if they share that `gram`. Without `b`, `a` is a plain list of
#'   such fits.
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
#' @family kernel means
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
kme_inner <- function(a, b) {
  if (missing(b) && is.list(a) && !is.object(a)) {
    return(all_pairs(check_fits(a))$inner)
  }
  kernel <- check_pair(a, b)
  inner_parts(embedding_parts(a), embedding_parts(b), kernel)
}

#' @rdname kme_inner
#' @export
kme_distance <- function(a, b) {
  if (missing(b) && is.list(a) && !is.object(a)) {
    return(sqrt(pmax(all_pairs(check_fits(a))$distance2, 0)))
  }
  kernel <- check_pair(a, b)
  parts <- c(embedding_parts(a), embedding_parts(b, -1))
  sqrt(max(0, norm2_parts(parts, kernel)))
}

#' @rdname kme_inner
#' @export
kme_risk <- function(fit, mixture) {
  check_kme(fit, "fit")
  x <- sample_points(fit$sample, "'fit' must be fitted on points, not on a ",
                     "matrix of values")
  mixture <- scale_mixture(fit$kernel,
                           check_mixture(mixture, ncol(x), "mixture"))
  check_closed_form(fit$kernel)
  parts <- c(embedding_parts(fit), list(list(mixture = mixture, weights = -1)))
  max(0, norm2_parts(parts, fit$kernel))
}

check_kme <- function(object, name) {
  if (!inherits(object, "kme")) {
    stop_input("'", name, "' must be a fit of kme(), not ", describe(object))
  }
}

# The kernel that two fits share.
check_pair <- function(a, b) {
  check_kme(a, "a")
  if (missing(b)) {
    stop_input("'b' must be given, or 'a' must be a list of fits of kme()")
  }
  check_kme(b, "b")
  check_same_space(a$sample, b$sample, "'a'", "'b'")
  a$kernel
}

# Fits in the space of one kernel, called by their place in the list.
check_fits <- function(fits) {
  if (!length(fits)) {
    stop_input("'a' must be a fit of kme(), or a list of such fits, not ",
               describe(fits))
  }
  label <- \(i) element_label(names(fits), i, "a")
  for (i in seq_along(fits)) check_kme(fits[[i]], label(i))
  # Columns without names go with any: what has names is compared with the
  # first that has.
  named <- vapply(fits, \(fit) !is.null(colnames(fit$sample$x)), NA)
  for (i in seq_along(fits)) {
    for (j in setdiff(c(1L, which(named)[1L]), c(i, NA))) {
      check_same_space(fits[[j]]$sample, fits[[i]]$sample,
                       paste0("'", label(j), "'"), paste0("'", label(i), "'"))
    }
  }
  fits
}

# --- An embedding as a list of parts ---------------------------------------
# A part is list(sample, noise, weights): sum_i weights_i E k(x~_i, .), x~_i
# from N(x_i, diag(noise)), noise NULL for none; or list(mixture, weights):
# weights times the embedding of a Gaussian mixture.

embedding_parts <- function(object, times = 1) {
  own <- list(sample = object$sample, noise = effective_noise(object),
              weights = times * object$weights)
  c(list(own), target_parts(object$estimator$target, object$kernel,
                            times * object$share))
}

# A mixture is in the units of the user.
target_parts <- function(target, kernel, times = 1) {
  if (is.null(target)) {
    NULL
  } else if (inherits(target, "kme")) {
    embedding_parts(target, times)
  } else {
    list(list(mixture = scale_mixture(kernel, target), weights = times))
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

# Adds up the weights of parts that are the same, so that differences of nearby
# embeddings are differences of weights and not of large norms.
merge_parts <- function(parts) {
  merged <- list()
  for (part in parts) {
    at <- Position(\(other) same_part(other, part), merged)
    if (is.na(at)) {
      merged <- c(merged, list(part))
    } else {
      merged[[at]]$weights <- merged[[at]]$weights + part$weights
    }
  }
  merged
}

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

inner_parts <- function(left, right, kernel) {
  left <- merge_parts(left)
  right <- merge_parts(right)
  total <- 0
  for (a in left) {
    for (b in right) {
      total <- total + inner_part(a, b, kernel)
    }
  }
  total
}

norm2_part <- function(part, kernel) {
  if (is.null(part$sample) || !knows_points(part$sample)) {
    inner_part(part, part, kernel)
  } else {
    noisy_norm2(kernel, part$sample$x, part$weights, part$noise)
  }
}

inner_part <- function(a, b, kernel) {
  if (!is.null(b$mixture) && !is.null(a$mixture)) {
    a$weights * b$weights * mixture_inner(a$mixture, b$mixture, kernel)
  } else if (!is.null(a$mixture)) {
    inner_part(b, a, kernel)
  } else {
    sum(a$weights * part_at(b, kernel, own_points(a$sample), a$noise))
  }
}

# --- All pairs of several embeddings ----------------------------------------

# The parts of all fits, each kind once: lists as of embedding_parts() with a
# column of weights for each fit, and `used`, the fits that have the part.
shared_parts <- function(fits) {
  shared <- list()
  for (i in seq_along(fits)) {
    for (part in merge_parts(embedding_parts(fits[[i]]))) {
      at <- Position(\(other) same_part(other, part), shared)
      if (is.na(at)) {
        shared <- c(shared, list(part))
        at <- length(shared)
        shared[[at]]$weights <- list()
      }
      shared[[at]]$weights <- c(shared[[at]]$weights, list(part$weights))
      shared[[at]]$used <- c(shared[[at]]$used, i)
    }
  }
  lapply(shared, \(part) {
    part$weights <- do.call(cbind, part$weights)
    part
  })
}

# What the columns of a part are at the points of others, their noise included,
# as a list: a row for each point; for a mixture one row, the inner products
# with it. Many small samples are one fold.
values_on <- function(ats, part, kernel) {
  plain <- \(part) is.null(part$mixture) && is.null(part$noise) &&
    knows_points(part$sample)
  if (!length(ats) || !plain(part) || !all(vapply(ats, plain, NA))) {
    return(lapply(ats, value_on, part, kernel))
  }
  points <- lapply(ats, \(at) unname(at$sample$x))
  from <- rep(seq_along(ats), vapply(points, nrow, 1L))
  new <- new_points(do.call(rbind, points))
  values <- sample_at(part$sample, new, part$weights)
  lapply(unname(split(seq_along(from), from)),
         \(i) values[i, , drop = FALSE])
}

value_on <- function(at, part, kernel) {
  if (!is.null(at$mixture) && !is.null(part$mixture)) {
    return(mixture_inner(at$mixture, part$mixture, kernel) * part$weights)
  }
  if (!is.null(at$mixture)) {
    one <- list(mixture = at$mixture, weights = matrix(1))
    return(crossprod(value_on(part, one, kernel), part$weights))
  }
  new <- own_points(at$sample)
  if (!is.null(part$mixture)) {
    mixture_at(part$mixture, kernel, new$z, at$noise) %*% part$weights
  } else if (is.null(at$noise) && is.null(part$noise)) {
    sample_at(part$sample, new, part$weights)
  } else {
    columns <- apply(part$weights, 2L, \(w) {
      noisy_apply(kernel, new$z, part$sample$x, w, at$noise, part$noise)
    })
    matrix(columns, new$m)
  }
}

# list(inner, distance2), matrices over fits. With W the weights of the fits on
# one part and F what they are there by another, the two parts add sum_r W_ri
# F_rj to an inner product, and sum_r (W_ri - W_rj)(F_ri - F_rj) to a squared
# distance.
all_pairs <- function(fits) {
  kernel <- fits[[1L]]$kernel
  parts <- shared_parts(fits)
  m <- length(fits)
  # Halves, to be added to their transposes.
  names <- names(fits)
  inner <- matrix(0, m, m, dimnames = if (!is.null(names)) list(names, names))
  distance2 <- inner
  for (q in seq_along(parts)) {
    part <- parts[[q]]
    rest <- seq(q, length(parts))
    values <- c(list(value_on(part, part, kernel)),
                values_on(parts[rest[-1L]], part, kernel))
    for (p in rest) {
      at <- parts[[p]]
      value <- values[[p - q + 1L]]
      times <- if (p == q) 0.5 else 1
      inner[at$used, part$used] <- inner[at$used, part$used] +
        times * crossprod(at$weights, value)
      found <- pair_differences(at, part, value)
      among <- found$among
      distance2[at$used, among] <- distance2[at$used, among] +
        2 * times * found$apart
      # All others have weights of 0 on both.
      if (any(found$alone != 0)) {
        distance2[at$used, -among] <- distance2[at$used, -among] +
          2 * times * found$alone
      }
    }
  }
  list(inner = inner + t(inner), distance2 = distance2 + t(distance2))
}

# For the fits that use the part `at` what two parts add to the squared
# distances: list(among: the fits that use either; apart: to each of these, half
# of it where both fits stand in a row; alone: to fits that use none).
pair_differences <- function(at, part, value) {
  among <- union(at$used, part$used)
  spread <- \(columns, used) {
    all <- matrix(0, nrow(columns), length(among))
    all[, match(used, among)] <- columns
    all
  }
  w <- spread(at$weights, at$used)
  f <- spread(value, part$used)
  rows <- seq_along(at$used)
  apart <- vapply(rows, \(k) colSums((w[, k] - w) * (f[, k] - f)),
                  numeric(length(among)))
  apart <- matrix(apart, length(among))
  apart[rows, ] <- apart[rows, ] / 2
  list(among = among, apart = t(apart),
       alone = colSums(w[, rows, drop = FALSE] * f[, rows, drop = FALSE]))
}

# --- Values ------------------------------------------------------------------

# The function that a part is, at new points; with `noise` its mean under
# N(z_i, diag(noise)).
part_at <- function(part, kernel, new, noise = NULL) {
  if (!is.null(part$mixture)) {
    part$weights * mixture_at(part$mixture, kernel, new$z, noise)
  } else if (is.null(noise) && is.null(part$noise)) {
    drop(sample_at(part$sample, new, part$weights))
  } else {
    noisy_apply(kernel, new$z, part$sample$x, part$weights, noise, part$noise)
  }
}

parts_at <- function(parts, kernel, new) {
  Reduce(`+`, lapply(parts, part_at, kernel = kernel, new = new))
}

# The weights of an embedding on the points of a sample where it is nothing but
# a sum over these, else NULL.
weights_on <- function(object, sample) {
  parts <- merge_parts(embedding_parts(object))
  part <- parts[[1L]]
  own <- length(parts) == 1L && is.null(part$mixture) && is.null(part$noise) &&
    same_sample(part$sample, sample)
  if (own) part$weights
}

# --- Noise -----------------------------------------------------------------

# The noise as d variances, or NULL if the embedding does not depend on it.
effective_noise <- function(object) {
  noise <- object$noise
  if (is.null(noise) || is_linear(object$kernel) || all(noise == 0)) {
    return(NULL)
  }
  rep_len(unname(noise), ncol(object$sample$x))
}

# With noise of variances `noise_total` (of one side, or the sum of both) an RBF
# kernel is `height` times `kernel`, which is wider.
marginal_kernel <- function(kernel, noise_total, d) {
  theta <- rep_len(kernel$bandwidth, d)
  wide <- sqrt(theta^2 + noise_total)
  kernel$bandwidth <- wide
  kernel$rule <- NULL
  list(kernel = kernel, height = prod(theta / wide))
}

# sum_j weights_j E k(z~_i, x~_j) for z~_i from N(z_i, diag(at_z)) and x~_j from
# N(x_j, diag(at_x)), independent; NULL is no noise.
noisy_apply <- function(kernel, z, x, weights, at_z = NULL, at_x = NULL) {
  other <- if (identical(z, x)) NULL else x
  if (is.null(at_z) && is.null(at_x)) {
    return(fold_apply(kernel, z, other, weights))
  }
  if (is.null(at_z)) at_z <- numeric(ncol(z))
  if (is.null(at_x)) at_x <- numeric(ncol(x))
  if (is_rbf(kernel)) {
    wide <- marginal_kernel(kernel, at_z + at_x, ncol(x))
    return(wide$height * fold_apply(wide$kernel, z, other, weights))
  }
  fold_apply(kernel, z, other, weights) +
    poly_noise(kernel, z, x, weights, at_z, at_x)
}

# What the noise adds: with M = z'x + b, V = z'E_x z + x'E_z x + tr(E_z E_x),
# degree 2: V; degree 3: 3 M V + 6 z'E_z E_x x.
poly_noise <- function(kernel, z, x, weights, at_z, at_x) {
  if (is_linear(kernel)) {
    return(numeric(nrow(z)))
  }
  own <- drop(z^2 %*% at_x) + sum(at_z * at_x)
  theirs <- weights * drop(x^2 %*% at_z)
  if (kernel$degree == 2L) {
    return(sum(weights) * own + sum(theirs))
  }
  mean <- drop(crossprod(x, weights))
  moved <- drop(crossprod(x, theirs)) + 2 * at_z * at_x * mean
  3 * own * (drop(z %*% mean) + kernel$offset * sum(weights)) +
    3 * (drop(z %*% moved) + kernel$offset * sum(theirs))
}

# The squared norm of sum_i weights_i E k(x~_i, .)
noisy_norm2 <- function(kernel, x, weights, noise) {
  if (is.null(noise)) {
    fold_quad(kernel, x, weights)
  } else if (is_rbf(kernel)) {
    wide <- marginal_kernel(kernel, 2 * noise, ncol(x))
    wide$height * fold_quad(wide$kernel, x, weights)
  } else {
    sum(weights * noisy_apply(kernel, x, x, weights, noise, noise))
  }
}

# --- Weights ---------------------------------------------------------------

#' Weights of a kernel mean on its points
#'
#' The estimate as a combination of the kernel's sections at the points of the
#' sample, \eqn{\sum_i \beta_i k(x_i, \cdot)}{sum_i beta_i k(x_i, .)}: exactly
#' for most estimators, as the nearest or as a second-order one for the
#' marginalized ones (`"mkme"`, `"mmkme"`), which are no such combination.
#'
#' With the marginalized embedding \eqn{\tilde\mu}{mu}, the Gram matrix
#' \eqn{K} and its pseudo-inverse \eqn{K^+}{K^+}:
#' \describe{
#'   \item{`"projection"`}{\eqn{\beta = K^+ \tilde\mu(x)}{beta = K^+ mu(x)}: the
#'     orthogonal projection on the span of the sample, the nearest of all
#'     combinations. For any kernel.}
#'   \item{`"taylor"`}{the second-order expansion of the kernel in the noise,
#'     then projected: for noise with variances \eqn{e_l}{e_l} and an RBF
#'     kernel, \eqn{\beta = (1 - \sum_l e_l/(2\theta_l^2)) 1_n + K^+ G 1_n}{
#'     beta = (1 - sum_l e_l/(2 theta_l^2)) 1_n + K^+ G 1_n}, \eqn{G_{ij} =
#'     k(x_i, x_j) \sum_l e_l (x_{il} - x_{jl})^2/(2\theta_l^4)}{G_ij = k(x_i,
#'     x_j) sum_l e_l (x_il - x_jl)^2/(2 theta_l^4)}. Its distance to the
#'     projection falls with the square of the noise. For RBF kernels.}
#' }
#'
#' The pseudo-inverse is that of the spectrum of \eqn{K}, where eigenvalues
#' below \eqn{n \epsilon \gamma_1}{n eps gamma_1} count as 0 (\eqn{\gamma_1}{
#' gamma_1} the largest of them, \eqn{\epsilon}{eps} the machine precision).
#' Where eigenvalues are small but above it, the weights vary much with little
#' change to the embedding.
#'
#' Theorems 1 and 2 of Xia et al. print \eqn{\beta = (\theta^2 +
#' d\sigma^2)/(2\theta^2) 1_n - d\sigma^2/(2\theta^4) K^{-1}K'1_n}{beta =
#' (theta^2 + d sigma^2)/(2 theta^2) 1_n - d sigma^2/(2 theta^4) K^(-1) K' 1_n}
#' (\eqn{K'}{K'} with the squared distance as a factor), which cannot be:
#' without noise it is half the KME. The form above corrects the constant, the
#' signs and a factor d.
#'
#' @param fit A fit of [kme()] without a target.
#' @param type `"projection"` or `"taylor"`; fits that are not marginalized have
#'   weights already, and these are returned.
#' @return The n weights, named by the rows of the sample.
#' @details Stores \eqn{K}{K}: up to 32n^2 bytes and about 6n^3 flops
#' for its spectrum, once for all fits on one [gram()].
#' @references
#' Xia, X., Shan, S., Gong, M., Wang, N., Gao, F., Wei, H. and Liu, T. (2021).
#' Kernel mean estimation by marginalized corrupted distributions. Theorems 1
#' and 2. \doi{10.48550/arXiv.2107.04855}
#' @family kernel means
#' @examples
#' x <- scale(iris[1:30, 1:4])
#' fit <- kme(x, kernel_rbf(), "mkme")
#' z <- x[1:3, ] + 0.1
#' linear <- kme(x, fit$kernel, weights = as_weights(fit))
#' cbind(marginalized = predict(fit, z), projection = predict(linear, z))
#' kme_distance(fit, linear)
#' @export
as_weights <- function(fit, type = c("projection", "taylor")) {
  check_kme(fit, "fit")
  type <- check_choice(type, c("projection", "taylor"), "type")
  if (!is.null(fit$estimator$target)) {
    stop_input(
      "'fit' must have no target, which is not a combination of its points"
    )
  }
  noise <- effective_noise(fit)
  if (type == "taylor" && !is.null(fit$noise) && !is_rbf(fit$kernel)) {
    stop_input(
      "'type' must be \"projection\" for polynomial kernels, not \"taylor\""
    )
  }
  weights <- fit$weights
  if (!is.null(noise)) {
    g <- sample_gram(fit$sample)
    weights <- if (type == "projection") {
      solve_spectrum(g, fit$fitted)
    } else {
      taylor_weights(g, noise)
    }
  }
  stats::setNames(weights, sample_names(fit$sample))
}

taylor_weights <- function(g, noise) {
  n <- nrow(g$x)
  theta2 <- rep_len(g$kernel$bandwidth, ncol(g$x))^2
  # G 1_n from products with K: (a - b)^2 = a^2 - 2ab + b^2.
  u <- sweep(g$x, 2, colMeans(g$x)) %*%
    diag(sqrt(noise / 2) / theta2, length(noise))
  u2 <- rowSums(u^2)
  k <- product(g$K, cbind(1, u2, u)) / n
  moved <- u2 * k[, 1] + k[, 2] - 2 * rowSums(u * k[, -(1:2), drop = FALSE])
  (1 - sum(noise / (2 * theta2))) / n + solve_spectrum(g, moved)
}

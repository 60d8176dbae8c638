#' Pre-images of kernel PCA
#'
#' Points whose images lie close to the projections of points on the leading
#' components: denoising by kernel PCA with an RBF kernel.
#'
#' The projection of z is \eqn{P(z) = \tilde\mu + \sum_j s_j v_j = \sum_i c_i
#' k(x_i, \cdot)}{P(z) = mu + sum_j s_j v_j = sum_i c_i k(x_i, .)} with the
#' scores s of z and \eqn{c = Vs + b(1 - e'Vs)}{c = Vs + b (1 - e'Vs)}, b the
#' weights of the kernel mean that centers (the last term is not b alone where
#' the mean is shrunk; points of a mean on other points join the sum). The point
#' whose image is nearest to the projection is where \eqn{\sum_i c_i k(x_i,
#' z)}{sum_i c_i k(x_i, z)} is largest, a fixed point of \deqn{z \leftarrow
#' \frac{\sum_i c_i k(z, x_i) x_i}{\sum_i c_i k(z, x_i)}}{z <- sum_i c_i k(z,
#' x_i) x_i / sum_i c_i k(z, x_i)} (Mika et al. 1999; also with a bandwidth for
#' each column). The iteration starts at the point of the sample with the
#' largest value of the projection, and at the next best one if the denominator
#' is not positive; it stops at a step below `tol` bandwidths.
#'
#' Few components smooth the shape of the sample away, many keep the noise:
#' compare some `ncomp`, by the distance to clean points where there are any.
#'
#' The function may have several maxima: what is found is the one to which the
#' start leads.
#'
#' @param object A fit of [kme_pca()] with an RBF kernel on points, centered by
#'   a kernel mean without noise (marginalized estimators, smoothing and most
#'   stacks have some; [as_weights()] makes weights of it) or a mixture as its
#'   target.
#' @param newdata New points, with the columns of the sample; without it, the
#'   points of the sample are denoised.
#' @param ncomp Number of leading components, `NULL` for all of the fit.
#' @param ... Must be empty.
#' @param tol The step at which the iteration stops, in bandwidths (of each
#'   column): a positive number.
#' @param maxit Most steps for a point; a warning counts the points that need
#'   more.
#' @return An m by d matrix, a pre-image in each row, with the column names of
#'   the sample and the row names of `newdata`. A row does not depend on the
#'   other rows.
#' @details A step takes O(nd) time for a point; points are moved in blocks of
#'   about 2 million kernel values, which is the memory.
#' @references
#' Mika, S., Schölkopf, B., Smola, A., Müller, K.-R., Scholz, M. and Rätsch, G.
#' (1999). Kernel PCA and de-noising in feature spaces. *Advances in Neural
#' Information Processing Systems* 11, 536--542.
#' @seealso [reconstruction_error()]
#' @examples
#' set.seed(1)
#' angle <- runif(150, 0, 2 * pi)
#' x <- cbind(cos(angle), sin(angle)) + rnorm(300, sd = 0.15)
#' fit <- kme_pca(x, kernel_rbf(0.8), ncomp = 5)
#' plot(x, col = "grey60", asp = 1, xlab = "", ylab = "")
#' points(preimage(fit), pch = 20)
#' @export
preimage <- function(object, ...) {
  UseMethod("preimage")
}

#' @rdname preimage
#' @export
preimage.kme_pca <- function(object, newdata, ncomp = NULL, ..., tol = 1e-8,
                             maxit = 1000) {
  check_dots(...)
  kept <- check_components(ncomp, object)
  tol <- check_number(tol, "tol", positive = TRUE)
  maxit <- check_count(maxit, "maxit")
  wanted <- "'object' must be a fit with an RBF kernel on points, not "
  x <- sample_points(object$sample, wanted, "on a matrix of values")
  if (!is_rbf(object$kernel)) {
    stop_input(wanted, "with ", format_kernel(object$kernel))
  }
  sites <- projection_sites(object)
  scores <- if (missing(newdata)) own_scores(object) else
    predict(object, newdata)
  scores <- scores[, kept, drop = FALSE]
  size <- max(1, floor(2^21 / nrow(sites$x)))
  found <- lapply(row_panels(seq_len(nrow(scores)), size), \(rows) {
    fixed_points(object, sites, scores[rows, , drop = FALSE], tol, maxit)
  })
  failed <- sum(vapply(found, \(part) part$failed, numeric(1)))
  if (failed > 0) {
    warn_kernmean(
      failed, " of ", nrow(scores), " pre-images did not converge in ", maxit,
      if (maxit == 1L) " step" else " steps"
    )
  }
  z <- do.call(rbind, lapply(found, \(part) part$z))
  z <- unscale_points(object$kernel, z + rep(sites$origin, each = nrow(z)))
  dimnames(z) <- list(rownames(scores), colnames(x))
  z
}

# The points that a projection is a sum over, the sample first, and the weights
# b of the centering mean on them: list(x, weights, origin), x relative to the
# origin, near which the sums of both signs lose less.
projection_sites <- function(object) {
  parts <- merge_parts(embedding_parts(object$mean))
  plain <- vapply(parts, \(part) is.null(part$mixture) && is.null(part$noise),
                  logical(1))
  if (!all(plain)) {
    stop_input(
      "'object' must be centered by weights on points, not by a kernel mean ",
      "with noise or a mixture; noise becomes weights by center = ",
      "kme(x, kernel, weights = as_weights(fit))"
    )
  }
  x <- unname(object$sample$x)
  origin <- colMeans(x)
  weights <- numeric(nrow(x))
  own <- seq_len(nrow(x))
  for (part in parts) {
    if (same_sample(part$sample, object$sample)) {
      weights[own] <- weights[own] + part$weights
    } else {
      x <- rbind(x, unname(part$sample$x))
      weights <- c(weights, part$weights)
    }
  }
  list(x = x - rep(origin, each = nrow(x)), weights = weights, origin = origin)
}

# How often the mean that centers is taken off in sum_i V_ij phi~(x_i).
centered_mass <- function(sample, v) UseMethod("centered_mass")
centered_mass.kernmean_sample <- \(sample, v) colSums(v)

# The scores of the points that components are sums over.
site_scores <- function(sample, object, kept) UseMethod("site_scores")
site_scores.kernmean_sample <- function(sample, object, kept) {
  object$scores[, kept, drop = FALSE]
}

# list(z, failed): the fixed points for rows of scores, and how many are none.
fixed_points <- function(object, sites, scores, tol, maxit) {
  own <- seq_len(object$sample$n)
  kept <- seq_len(ncol(scores))
  theta <- rep_len(object$kernel$bandwidth, ncol(sites$x))
  v <- object$vectors[, kept, drop = FALSE]
  part <- tcross(scores, v)
  weights <- outer(1 - drop(scores %*% centered_mass(object$sample, v)),
                   sites$weights)
  weights[, own] <- weights[, own] + part
  # The projections at the points of the sample, each up to a constant.
  value <- tcross(scores, site_scores(object$sample, object, kept)) +
    rep(object$at, each = nrow(scores))
  best <- max.col(value, "first")
  z <- sites$x[best, , drop = FALSE]
  tries <- rep(1L, nrow(z))
  active <- seq_len(nrow(z))
  failed <- 0
  for (iteration in seq_len(maxit)) {
    at <- z[active, , drop = FALSE]
    k <- fold_store(object$kernel, at, sites$x) *
      weights[active, , drop = FALSE]
    below <- rowSums(k)
    moved <- product(k, sites$x) / below
    good <- below > 0
    z[active[good], ] <- moved[good, ]
    step <- sqrt(rowSums(((moved - at) / rep(theta, each = nrow(at)))^2))
    done <- good & step < tol
    for (row in active[!good]) {
      tries[row] <- tries[row] + 1L
      next_best <- order(value[row, ], decreasing = TRUE)[tries[row]]
      z[row, ] <- sites$x[if (is.na(next_best)) best[row] else next_best, ]
    }
    lost <- tries[active] > object$sample$n
    failed <- failed + sum(lost)
    active <- active[!done & !lost]
    if (!length(active)) break
  }
  list(z = z, failed = failed + length(active))
}

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
#'   combined if they share that `gram`.
#' @param mixture A Gaussian mixture, `list(weights, means, covariances)`:
#'   `weights` C non-negative numbers that sum to 1, `means` a C by d matrix,
#'   `covariances` a d by d by C array (a vector of C variances if d = 1, a d by
#'   d matrix if C = 1).
#' @return One number: the inner product; the distance; the squared distance to
#'   the embedding of the mixture.
#' @details Time O(nmd), memory O(n + m).
#' @references Muandet et al. (2014), section 4.1.
#' @family kernel means
#' @examples
#' set.seed(1)
#' k <- kernel_rbf(1)
#' a <- kme(rnorm(50), k)
#' b <- kme(rnorm(50, 1), k)
#' kme_distance(a, b)
#'
#' normal <- list(weights = 1, means = matrix(0), covariances = 1)
#' shrunk <- update(a, estimator = "fkmse")
#' c(kme = kme_risk(a, normal), fkmse = kme_risk(shrunk, normal))
#' @export
kme_inner <- function(a, b) {
  kernel <- check_pair(a, b)
  inner_parts(embedding_parts(a), embedding_parts(b), kernel)
}

#' @rdname kme_inner
#' @export
kme_distance <- function(a, b) {
  kernel <- check_pair(a, b)
  parts <- c(embedding_parts(a), embedding_parts(b, -1))
  sqrt(max(0, norm2_parts(parts, kernel)))
}

#' @rdname kme_inner
#' @export
kme_risk <- function(fit, mixture) {
  check_kme(fit, "fit")
  if (is.null(fit$x)) {
    stop_input("'fit' must be fitted on points, not on a matrix of values")
  }
  mixture <- check_mixture(mixture, ncol(fit$x), "mixture")
  check_closed_form(fit$kernel)
  parts <- c(embedding_parts(fit), list(list(mixture = mixture, weights = -1)))
  max(0, norm2_parts(parts, fit$kernel))
}

check_kme <- function(object, name) {
  if (!inherits(object, "kme")) {
    stop_input("'", name, "' must be a fit of kme(), not ", describe(object))
  }
}

# Columns with names in both must have the same ones; a single one may differ.
same_columns <- function(x, y) {
  ncol(x) == 1L || is.null(colnames(x)) || is.null(colnames(y)) ||
    identical(colnames(x), colnames(y))
}

# The kernel that two fits share.
check_pair <- function(a, b) {
  check_kme(a, "a")
  check_kme(b, "b")
  if (is.null(a$x) || is.null(b$x)) {
    if (!identical(a$gram, b$gram)) {
      stop_input("'a' and 'b' must share one gram where points are not known")
    }
    return(NULL)
  }
  if (ncol(a$x) != ncol(b$x)) {
    stop_input(
      "'a' and 'b' must have the same number of columns, not ", ncol(a$x),
      " and ", ncol(b$x)
    )
  }
  if (!same_columns(a$x, b$x)) {
    stop_input("'a' and 'b' must have the same columns in the same order")
  }
  if (!same_kernel(a$kernel, b$kernel, ncol(a$x))) {
    stop_input(
      "'a' and 'b' must have the same kernel, not ", format_kernel(a$kernel),
      " and ", format_kernel(b$kernel), "; fit 'b' with the kernel of 'a', ",
      "kernel = a$kernel"
    )
  }
  a$kernel
}

# --- An embedding as a list of parts -------------------------------------
# A part is list(x, noise, weights): sum_i weights_i E k(x~_i, .), x~_i from
# N(x_i, diag(noise)), noise NULL for none; list(gram, weights): sum_i weights_i
# k(x_i, .) over the points of a gram that knows only K; or list(mixture,
# weights): weights times the embedding of a Gaussian mixture.

embedding_parts <- function(object, times = 1) {
  own <- if (is.null(object$x)) {
    list(gram = object$gram, weights = times * object$weights)
  } else {
    list(x = object$x, noise = effective_noise(object),
         weights = times * object$weights)
  }
  c(list(own), target_parts(object$target, times * object$target_weight))
}

target_parts <- function(target, times = 1) {
  if (is.null(target)) {
    NULL
  } else if (inherits(target, "kme")) {
    embedding_parts(target, times)
  } else {
    list(list(mixture = target, weights = times))
  }
}

# Adds up the weights of parts on the same points and noise, so that differences
# of nearby embeddings are differences of weights and not of large norms.
merge_parts <- function(parts) {
  merged <- list()
  for (part in parts) {
    same <- \(other) identical(other[names(other) != "weights"],
                               part[names(part) != "weights"])
    at <- Position(same, merged)
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
  if (is.null(part$x)) {
    inner_part(part, part, kernel)
  } else {
    noisy_norm2(kernel, part$x, part$weights, part$noise)
  }
}

inner_part <- function(a, b, kernel) {
  if (!is.null(b$mixture) && !is.null(a$mixture)) {
    a$weights * b$weights * mixture_inner(a$mixture, b$mixture, kernel)
  } else if (!is.null(a$mixture)) {
    sum(b$weights * part_at(a, kernel, b$x, b$noise))
  } else {
    sum(a$weights * part_at(b, kernel, a$x, a$noise))
  }
}

# The function that a part is, at the rows of z; with `noise` its mean under
# N(z_i, diag(noise)).
part_at <- function(part, kernel, z, noise = NULL) {
  if (!is.null(part$mixture)) {
    part$weights * mixture_at(part$mixture, kernel, z, noise)
  } else if (!is.null(part$gram)) {
    drop(part$gram$K %*% part$weights)
  } else {
    noisy_apply(kernel, z, part$x, part$weights, noise, part$noise)
  }
}

parts_at <- function(parts, kernel, z) {
  Reduce(`+`, lapply(parts, part_at, kernel = kernel, z = z))
}

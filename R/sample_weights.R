#' Weights of a kernel mean on its points
#'
#' The estimate as a combination of the kernel's sections at the points of the
#' sample, \eqn{\sum_i \beta_i k(x_i, \cdot)}{sum_i beta_i k(x_i, .)}: exactly
#' for most estimators, as the nearest or as a second-order one for those that
#' are no such combination: with noise (`"mkme"`, `"mmkme"`, smoothing, stacks
#' with a share of it) or a target. `coef()` refuses these.
#'
#' With such an embedding \eqn{\tilde\mu}{mu}, the Gram matrix
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
#' Theorems 1 and 2 of Xia et al. print other constants and signs, with which
#' the weights without noise are half the KME; the form above corrects them.
#'
#' @param fit A fit of [kme()]; or of [rkhs_iv()] or [rkhs_iv_nested()], of
#'   which these are the weights of the kernel in g (of g and h, a list), beside
#'   line, intercept and controls.
#' @param type `"projection"` or `"taylor"` (for marginalized fits); fits
#'   that are such a combination have their weights, `coef()`, returned.
#' @return The n weights, named by the rows of the sample.
#' @details Stores \eqn{K}{K}: up to 32n^2 bytes and about 6n^3 flops
#' for its spectrum, once for all fits on one [gram()].
#' @references
#' Xia, X., Shan, S., Gong, M., Wang, N., Gao, F., Wei, H. and Liu, T. (2021).
#' Kernel mean estimation by marginalized corrupted distributions. Theorems 1
#' and 2. \doi{10.48550/arXiv.2107.04855}
#' @seealso [glossary]; [kme()], [estimators].
#' @examples
#' x <- scale(iris[1:30, 1:4])
#' fit <- kme(x, kernel_rbf(), "mkme")
#' z <- x[1:3, ] + 0.1
#' linear <- kme(x, fit$kernel, weights = as_weights(fit))
#' cbind(marginalized = predict(fit, z), projection = predict(linear, z))
#' kme_distance(fit, linear)
#' @export
as_weights <- function(fit, type = c("projection", "taylor")) {
  check_given(fit)
  if (inherits(fit, "rkhs_iv")) {
    return(function_weights(fit))
  }
  take(fit, a_fit)
  type <- take(type, choice("projection", "taylor"))
  if (type == "taylor" && !is.null(fit$noise) &&
        !kernel_has(fit$kernel, "Gaussian form")) {
    stop_input(
      "'type' must be \"projection\" for polynomial kernels, not \"taylor\""
    )
  }
  weights <- weights_on(fit, fit$sample)
  if (is.null(weights)) {
    if (type == "taylor" && (is.null(fit$noise) || is_each(fit$noise))) {
      stop_input("'type' must be \"projection\" for a mean over points that ",
                 if (is.null(fit$noise)) "are not those of the sample" else
                   "have covariances of their own")
    }
    g <- sample_gram(fit$sample)
    weights <- if (type == "projection") {
      solve_spectrum(g, fit$fitted)
    } else {
      taylor_weights(g, effective_noise(fit))
    }
  }
  stats::setNames(weights, sample_names(fit$sample))
}

# The weights of the functions of rkhs_iv() on the points of their blocks.
function_weights <- function(fit) {
  same_version(fit, "fit")
  weights <- lapply(fit$functions, `[[`, "weights")
  if (is.null(weights$g)) {
    stop_input("'fit' must not be a fit with random features, whose functions ",
               "have no weights of points; predict() has values")
  }
  if (length(weights) == 1L) weights$g else weights
}

# The weights that follow from the second-order expansion of the kernel in the
# noise.
taylor_weights <- function(g, noise) {
  n <- nrow(g$x)
  theta2 <- rep_len(g$kernel$bandwidth, ncol(g$x))^2
  # Products with K give the sums over the points, as (a - b)^2 = a^2 - 2ab +
  # b^2.
  noise <- noise_matrix(noise)
  axes <- eigen(noise / outer(theta2, theta2) / 2, symmetric = TRUE)
  u <- sweep(g$x, 2, colMeans(g$x)) %*%
    (axes$vectors * rep(sqrt(pmax(axes$values, 0)), each = nrow(noise)))
  u2 <- rowSums(u^2)
  k <- product(g$K, cbind(1, u2, u)) / n
  moved <- u2 * k[, 1] + k[, 2] - 2 * rowSums(u * take_columns(k, -(1:2)))
  (1 - sum(diag(noise) / (2 * theta2))) / n + solve_spectrum(g, moved)
}

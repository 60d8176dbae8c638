#' Shrinkage of a kernel matrix
#'
#' A centered kernel matrix, shrunk towards a multiple of the identity by as
#' much as the sample covariance in the feature space should be: better
#' conditioned, and the same eigenvectors.
#'
#' Let \eqn{S} be the sample covariance of the features and \eqn{T =
#' (\mathrm{tr} S/p) I}{T = (tr S/p) I} in a feature space of dimension p. With
#' the centered matrix \eqn{K^c = HKH}{Kc = HKH}, \eqn{H = I - ee'/n}{H = I -
#' ee'/n}, the intensity of Ledoit and Wolf type is \deqn{\lambda = \min(\max(
#' (\hat V(S) - \hat V(T))/\|T - S\|^2, 0), 1),}{lambda = min(max((V(S) -
#' V(T))/|T - S|^2, 0), 1),} \deqn{\hat V(S) = \frac{n}{(n-1)^2(n-2)}
#' \left(\sum_i (K^c_{ii})^2 - \|K^c\|_F^2/n\right),}{V(S) = n/((n-1)^2 (n-2))
#' (sum Kc_ii^2 - |Kc|_F^2/n),} \deqn{\hat V(T) = \frac{n}{p(n-1)^2(n-2)} \sum_i
#' (K^c_{ii} - \mathrm{tr} K^c/n)^2,}{V(T) = n/(p (n-1)^2 (n-2)) sum (Kc_ii - tr
#' Kc/n)^2,} \deqn{\|T - S\|^2 = (\|K^c\|_F^2 - (\mathrm{tr}
#' K^c)^2/p)/(n-1)^2,}{|T - S|^2 = (|Kc|_F^2 - (tr Kc)^2/p)/(n-1)^2,} and the
#' result is \eqn{\hat K = (1-\lambda)K^c + \lambda(\mathrm{tr} K^c/p) I}{K^ =
#' (1 - lambda) Kc + lambda (tr Kc/p) I}. If \eqn{\|T - S\|^2}{|T - S|^2} is not
#' positive (to rounding, \eqn{n\epsilon\|K^c\|_F^2}{n eps |Kc|_F^2} of its
#' numerator), \eqn{\lambda}{lambda} is 1.
#'
#' The default p, n - 1, is the dimension of the space that the centered sample
#' spans; `Inf` is the limit in which the target is 0. For an explicit feature
#' space p is its dimension: the number of columns for the linear kernel, of
#' monomials for a polynomial one. A p below the rank of \eqn{K^c}{Kc} is a
#' warning.
#'
#' \eqn{\hat V(S)}{V(S)} estimates \eqn{E\|S - ES\|^2}{E|S - ES|^2}, with the
#' bias \eqn{-\kappa/(n(n-1))}{-kappa/(n (n - 1))} for independent points; it is
#' \eqn{-\kappa/(np(n-1))}{-kappa/(n p (n - 1))} for \eqn{\hat V(T)}{V(T)}.
#' \eqn{\kappa}{kappa} is the sum of the fourth cumulants \eqn{\kappa_{aabb}}{
#' kappa_aabb} over pairs of features, 0 for normal ones.
#'
#' @param K A [gram()], or a symmetric positive semi-definite matrix as
#'   [as_gram()] takes it.
#' @param p Dimension of the feature space, a number of at least 1, `Inf`, or
#'   `NULL` for n - 1.
#' @param ... Must be empty.
#' @param centered Is `K` centered already? `TRUE` is an error if a row mean
#'   exceeds 1e-8 of the largest entry in absolute value.
#' @return An object of class `c("shrunk_gram", "gram")`, the [gram()] of
#' \eqn{\hat K}{K^}, with the fields
#' \item{K}{the matrix \eqn{\hat K}{K^}}
#' \item{intensity}{\eqn{\lambda}{lambda}, from 0 to 1}
#' \item{variances}{\eqn{\hat V(S)}{V(S)} and \eqn{\hat V(T)}{V(T)}, with the
#'   names `S` and `T`; `summary()` shows them}
#' \item{p}{the dimension used}
#' \item{trace, target}{\eqn{\mathrm{tr} K^c}{tr Kc}, and \eqn{\mathrm{tr}
#'   K^c/p}{tr Kc/p}}
#' \item{centered}{the `gram` of \eqn{K^c}{Kc}; that of `K` itself if it was
#'   `centered`}
#' \item{at, norm2}{row means and mean of `K`, that new values are centered by;
#'   0 if `centered`}
#' \item{kernel, x}{`NULL`: no kernel has these values at the points}
#'
#' A fit on it is one on kernel values: its `predict()` takes the m by n values
#' \eqn{L} of the original kernel at new points and the sample, and turns them
#' into \eqn{(1-\lambda)L^c}{(1 - lambda) Lc}, centered as `K` was (if
#' `centered`, they must be centered already). The identity is no part of them.
#'
#' @details The spectrum of \eqn{\hat K}{K^} is known from that of
#' \eqn{K^c}{Kc}: no matrix is decomposed twice. Time O(n^2), and 4n^3/3 flops
#' more if p < n - 1 (the rank); memory 40n^2 bytes on the way, of which 16n^2
#' stay, 8n^2 if `centered`. n must be at least 3.
#' @references
#' Lancewicki, T. (2017). Regularization of the kernel matrix via covariance
#' matrix shrinkage estimation. Equations 10 to 13 (intensity), 18 (matrix), 20
#' to 24 (\eqn{\hat V(S)}{V(S)}), and 25 to 27 (\eqn{\hat V(T)}{V(T)}, with
#' \eqn{S_i - (n-1)S/n} in the place of \eqn{S_i - S}).
#' \doi{10.48550/arXiv.1707.06156}
#' @seealso [glossary]; [kme_fda()], whose ridge follows from
#'   \eqn{\lambda}{lambda}.
#' @examples
#' x <- scale(iris[1:30, 1:4])
#' shrunk <- shrink_gram(gram(x))
#' shrunk
#' # The condition number, without the null space of the centering
#' condition <- function(g) {
#'   values <- gram_spectrum(g)$values
#'   values[1] / values[29]
#' }
#' c(centered = condition(shrunk$centered), shrunk = condition(shrunk))
#'
#' # An explicit feature space: four columns
#' shrink_gram(gram(x, kernel_linear()), p = 4)$intensity
#' @export
shrink_gram <- function(K, p = NULL, ..., centered = FALSE) {
  asked <- request(shrink_arguments)
  g <- as_gram(K)
  check_definite(g$kernel)
  n <- nrow(g$K)
  if (n < 3L) {
    stop_input("'K' must have at least 3 rows, not ", n)
  }
  p <- asked$p %||% (n - 1)
  check_memory(n, n, "use fewer rows", copies = if (centered) 4 else 5)
  scale <- max(abs(g$K))
  if (centered) {
    check_centered(g$K, scale)
    centering <- list(at = 0, norm2 = 0)
  } else {
    centering <- center_gram(g$K)
    g <- new_gram(centering$k)
  }
  g$scale <- scale
  if (p < n - 1) warn_dimension(p, g)
  seal_gram(shrunk_gram(g, p, centering))
}

# The centered gram g shrunk towards the multiple of I of the same trace, in p
# dimensions. `centering` has the row means and the squared norm that centering
# took away.
shrunk_gram <- function(g, p, centering) {
  diagonal <- diag(g$K)
  unit <- power_below(max(abs(diagonal)))
  found <- matrix_shrinkage(diagonal / unit, sum((g$K / unit)^2), p, nrow(g$K))
  lambda <- found$intensity
  trace <- sum(diagonal)
  k <- (1 - lambda) * g$K
  diag(k) <- diag(k) + lambda * trace / p
  shrunk <- new_gram(k, class = "shrunk_gram")
  list2env(list(
    intensity = lambda, variances = unit * (unit * found$variances), p = p,
    trace = trace, target = trace / p, centered = g, at = centering$at,
    norm2 = centering$norm2
  ), shrunk)
  for (what in c("values", "projections", "vectors")) {
    if (!is.null(g[[what]])) spectrum(shrunk, what)
  }
  shrunk
}

# Stops if K is not centered. The row means of a centered matrix are rounding,
# at most of the order of eps max|K|.
check_centered <- function(k, scale) {
  largest <- max(abs(rowMeans(k)))
  if (largest > 1e-8 * scale) {
    stop_input(
      "'K' must be centered if 'centered' is TRUE; its row means are up to ",
      format_number(largest), ", its entries up to ", format_number(scale)
    )
  }
}

warn_dimension <- function(p, g) {
  rank <- sum(spectrum(g, "values")$values > 0)
  if (p < rank) warn_kernmean(
    "'p' must not be below the rank of the centered matrix, ", rank, "; ",
    format_number(p), " is no dimension of the feature space"
  )
}

shrink_arguments <- door_table(
  "shrink_gram", K = anything,
  p = maybe(new_kind("a number of at least 1",
                     \(x) is_number(x) && x >= 1, as.double)),
  centered = flag
)

fit_summary.shrunk_gram <- function(x) {
  words <- format_number(x$variances)
  c(list(variances = paste0("V(S) = ", words[1L], ", V(T) = ", words[2L])),
    NextMethod())
}

# The shrinkage of a centered n x n Gram matrix in p dimensions, from its
# diagonal and norm2 = |K^c|_F^2, both in any unit.
matrix_shrinkage <- function(diagonal, norm2, p, n) {
  trace <- sum(diagonal)
  shrinkage_of(trace, sum(diagonal^2), sum((diagonal - trace / n)^2), norm2, p,
               n)
}

# The same from the trace of K^c, the sum of the squares of its diagonal, and
# that of squared deviations from its mean: `intensity`, lambda in [0, 1], and
# `variances`, V(S) of the matrix and V(T) of the target.
shrinkage_of <- function(trace, squares, spread, norm2, p, n) {
  # V(S), V(T) and |T - S|^2 times (n - 1)^2.
  v <- n / (n - 2) * c(S = squares - norm2 / n, T = spread / p)
  below <- norm2 - trace^2 / p
  lambda <- if (below <= n * .Machine$double.eps * norm2) 1 else
    min(max((v[["S"]] - v[["T"]]) / below, 0), 1)
  list(intensity = lambda, variances = v / (n - 1)^2)
}

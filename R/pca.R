#' Kernel principal component analysis
#'
#' Principal components of a sample in the reproducing kernel Hilbert space of a
#' kernel, centered by any kernel mean, of the empirical or a shrunk covariance
#' operator.
#'
#' With \eqn{\tilde\mu}{mu} a kernel mean of [kme()] the centered Gram matrix is
#' \eqn{K^c_{ij} = K_{ij} - \tilde\mu(x_i) - \tilde\mu(x_j) +
#' \|\tilde\mu\|^2}{K^c_ij = K_ij - mu(x_i) - mu(x_j) + |mu|^2}. From its
#' eigenvalues \eqn{\gamma_j}{gamma_j} and eigenvectors, \eqn{K^c = U\Gamma
#' U'}{K^c = U Gamma U'}, component j is the function \eqn{v_j = \sum_i V_{ij}
#' \tilde\phi(x_i)}{v_j = sum_i V_ij phi~(x_i)} of unit norm, \eqn{V =
#' U\Gamma^{-1/2}}{V = U Gamma^(-1/2)}. Scores are the inner products with
#' \eqn{v_j}{v_j}: \eqn{K^cV}{K^c V} for the sample, \eqn{L^cV}{L^c V} for new
#' points. The variance of component j is \eqn{\gamma_j/n}{gamma_j/n} (that of
#' [stats::prcomp()] has n - 1). Components that are rounding are dropped. Each
#' column of V is positive at its first entry of largest absolute value.
#'
#' `center` shrinks the mean: then columns of V and scores need not sum to zero.
#' `covariance` shrinks the operator \eqn{\sum_i \beta_i \tilde\phi(x_i) \otimes
#' \tilde\phi(x_i)}{sum_i beta_i phi~(x_i) (x) phi~(x_i)}, as in [kme_cov()]:
#' `"skmse"` (S-COSE) multiplies all `values` by \eqn{1 - \alpha}{1 - alpha} and
#' leaves components and scores as they are; `"fkmse"` (F-COSE) has one weight
#' for each point, and components from the eigenpairs of
#' \eqn{\Gamma^{1/2}U'\mathrm{diag}(\beta) U\Gamma^{1/2}}{Gamma^(1/2) U'
#' diag(beta) U Gamma^(1/2)}; the last `values` may be negative.
#'
#' @section Sketches:
#' With a [kme_sketch()] as `x` these are the principal components of the
#' features on its landmarks, V weights on the landmarks as they are. There are
#' no `scores`: `predict()`, [reconstruction_error()] and [preimage()] take new
#' points. `covariance` may be `"skmse"`, which needs `moments = 4`. O(m^3) time
#' and O(m^2) memory for m landmarks, whatever the number of rows.
#'
#' @section Cost:
#' All components take an eigendecomposition, about 6n^3 flops and 32n^2 bytes.
#' Few components of 1,200 points or more are found by block Krylov iteration:
#' 10 to 40 products with \eqn{K^c}{K^c}, each O(n^2 (d + 16)) time, in O(n)
#' memory; the Gram matrix is stored for more than 64 columns if there is room.
#' Residuals are at most 1e-10 of the largest eigenvalue. `predict()` takes
#' O(nmd) time for m points and O((n + m) ncomp) memory.
#'
#' @inheritParams kme
#' @param x As in [kme()].
#' @param kernel A kernel, such as [kernel_rbf()], but not [kernel_energy()];
#'   must not be given with a `gram` or a sketch; by default that of `center` if
#'   that is a fit.
#' @param ncomp Number of components, from 1 to n; `NULL` for all with a
#'   positive \eqn{\gamma_j}{gamma_j}.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method.
#' @param center The kernel mean that centers: an estimator, see [estimators],
#'   fitted to the sample; or a fit of [kme()] with the same kernel.
#' @param covariance How the covariance operator is estimated: KME, S-KMSE,
#'   F-KMSE, a stack of these, without target, or a function of your own, see
#'   [estimators].
#'
#' @return An object of class `kme_pca`, a list with
#' \item{values}{eigenvalues of the operator, decreasing:
#'   \eqn{\gamma_j/n}{gamma_j/n} for `covariance = "kme"`}
#' \item{vectors}{V, n by ncomp, columns `PC1`, `PC2`, ...}
#' \item{scores}{scores of the sample, n by ncomp; `NULL` for a sketch}
#' \item{total, rank}{the trace of the operator, also where few values were
#'   computed; number of positive \eqn{\gamma_j}{gamma_j}, `NA` where fewer were
#'   computed}
#' \item{mean, at, norm2}{the kernel mean, a fit of [kme()]; its values at the n
#'   points, its squared norm}
#' \item{shrinkage}{`NULL` for `covariance = "kme"`; else a list with `lambda`,
#'   `alpha`, `weights`, `select`, `score`, `minimum`, `reference`, `border` as
#'   of [kme()]}
#' \item{center, covariance}{the estimators as objects}
#' \item{sample, kernel, n, terms, arguments}{as in [kme()]; `sample$raw` has
#'   the points as they were given}
#'
#' @section Methods:
#' `predict()` gives the scores of new points, m by ncomp, `coef()` the weights
#' V, `summary()` the standard deviations and shares of variance, exact also
#' where few components were computed, [plot()][plot.kernmean_fit] scores or
#' variances; `update()` fits again with other arguments.
#' [reconstruction_error()] and [preimage()] lead back to the points.
#'
#' @references
#' Schölkopf, B., Smola, A. and Müller, K.-R. (1998). Nonlinear component
#' analysis as a kernel eigenvalue problem. *Neural Computation* 10, 1299--1319.
#' \doi{10.1162/089976698300017467}
#' @seealso [kme()] for the means, [kme_cov()] for operators of several
#'   variables; `vignette("operators", package = "kernmean")`.
#' @examples
#' fit <- kme_pca(scale(iris[, 1:4]), ncomp = 3)
#' fit
#' summary(fit)
#' plot(fit, groups = iris$Species)
#'
#' # Scores of new points, and another center
#' fit <- kme_pca(~ Sepal.Length + Sepal.Width, iris, ncomp = 2)
#' predict(fit, data.frame(Sepal.Length = 5:6, Sepal.Width = 3))
#' update(fit, center = "fkmse", covariance = est_skmse(select = "plugin"))
#' @export
kme_pca <- function(x, ...) {
  UseMethod("kme_pca")
}

#' @rdname kme_pca
#' @export
kme_pca.default <- function(x, kernel = kernel_rbf(), ncomp = NULL, ...,
                            center = "kme", covariance = "kme",
                            scale = FALSE) {
  asked <- request(kme_pca_arguments)
  sample <- read_sample(x, asked$kernel, default = center_kernel(asked$center),
                        scale = asked$scale)
  centered <- centered_sample(sample, asked$center)
  most <- length(centered$at)
  ncomp <- asked$ncomp
  if (!is.null(ncomp) && ncomp > most) {
    stop_input("'ncomp' must be at most ", most, ", the number of ",
               site_word(sample), ", not ", ncomp)
  }
  found <- pca_components(sample, centered, ncomp, asked$covariance)
  new_kme_pca(found, centered, asked$covariance, stored(asked))
}

kme_pca_arguments <- door_table(
  "kme_pca.default", x = anything, kernel = unless_given(a_kernel),
  ncomp = maybe(count()), center = read_center, covariance = read_operator,
  scale = unless_given(a_scale), aside = "x"
)

#' @rdname kme_pca
#' @export
kme_pca.formula <- function(formula, data = NULL, subset, na.action, ...) {
  check_formula(formula, data)
  sample <- formula_sample(match.call(expand.dots = FALSE), formula, data,
                           missing(na.action), parent.frame())
  fit <- kme_pca.default(sample$x, ...)
  fit$terms <- sample$terms
  fit
}

new_kme_pca <- function(found, centered, covariance, arguments) {
  names <- paste0("PC", seq_along(found$values))
  dimnames(found$vectors) <- list(NULL, names)
  if (!is.null(found$scores)) {
    dimnames(found$scores) <- list(sample_names(centered$sample), names)
  }
  new_fit("kme_pca", c(
    found[c("values", "vectors", "scores", "total", "rank")],
    list(n = centered$n, kernel = centered$sample$kernel),
    centered_fields(centered),
    list(shrinkage = found$shrinkage, center = centered$mean$estimator,
         covariance = covariance, terms = NULL, arguments = arguments)
  ))
}

# --- Components --------------------------------------------------------------

# What components are sums over.
site_word <- function(sample) UseMethod("site_word")
site_word.kernmean_sample <- \(sample) "points"

# list(values, vectors: V, scores: K^c V, NULL where there are no rows, total,
# rank, shrinkage)
pca_components <- function(sample, centered, ncomp, covariance) {
  UseMethod("pca_components")
}
pca_components.kernmean_sample <- function(sample, centered, ncomp,
                                           covariance) {
  weighted <- is.null(est_share(covariance))
  s <- centered_spectrum(centered, if (!weighted) ncomp)
  positive <- s$values > 0
  if (!any(positive)) {
    stop_input(
      "'x' must have points that differ: the centered Gram matrix is 0"
    )
  }
  known <- length(positive) == centered$n || !all(positive)
  rank <- if (known) sum(positive) else NA_integer_
  if (known) warn_components(ncomp, rank, "the centered Gram matrix")
  s$values <- s$values[positive]
  s$vectors <- s$vectors[, positive, drop = FALSE]
  found <- if (weighted) {
    weighted_components(centered, s, ncomp, covariance)
  } else {
    plain_components(centered, s, covariance)
  }
  c(found, rank = rank)
}

warn_components <- function(ncomp, rank, what) {
  if (!is.null(ncomp) && ncomp > rank) {
    warn_kernmean(
      "'ncomp' is ", ncomp, ", but ", what, " has rank ", rank, ": ", rank,
      if (rank == 1L) " component is" else " components are", " kept"
    )
  }
}

# Where all weights are (1 - alpha)/n the components are those of the empirical
# operator. The average does not look at the moments.
plain_components <- function(centered, s, covariance) {
  n <- centered$n
  shrinkage <- est_shrink(covariance, product_moments(centered, s))
  share <- if (is.null(shrinkage)) 1 else 1 - shrinkage$alpha
  root <- rep(sqrt(s$values), each = n)
  list(
    values = share * s$values / n, vectors = s$vectors / root,
    scores = s$vectors * root, total = share * s$total / n,
    shrinkage = shrinkage
  )
}

# Of H = K^c o K^c, without forming it.
product_moments <- function(centered, s) {
  check_squares(s$square)
  list(n = centered$n, rho = s$square / centered$n^2,
       varrho = mean(centered_diagonal(centered)^2))
}

# The operator with a weight for each point, from H itself.
weighted_components <- function(centered, s, ncomp, covariance) {
  check_squares(s$square)
  shrinkage <- operator_weights(centered_matrix(centered)^2, covariance)
  weights <- shrinkage$weights
  operator <- leading_values(operator_spectrum(s$values, s$vectors, weights))
  if (operator$rank == 0L) {
    stop_input("'covariance' must not shrink the operator to 0: no component ",
               "is left")
  }
  kept <- seq_len(min(ncomp, operator$rank))
  v <- operator$vectors[, kept, drop = FALSE]
  list(
    values = operator$values[kept], vectors = v,
    scores = product(s$vectors, s$values * cross(s$vectors, v)),
    total = sum(weights * centered_diagonal(centered)),
    shrinkage = shrinkage[names(shrinkage) != "norm2"]
  )
}

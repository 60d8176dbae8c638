#' Kernel principal component analysis
#'
#' Principal components of a sample in the reproducing kernel Hilbert space of a
#' kernel, centered by any kernel mean, of the empirical or a shrunk covariance
#' operator.
#'
#' With \eqn{\tilde\mu}{mu} a kernel mean of [kme()] and \eqn{\tilde\phi(x) =
#' k(x, \cdot) - \tilde\mu}{phi~(x) = k(x, .) - mu}, the centered Gram matrix is
#' \eqn{K^c_{ij} = \langle\tilde\phi(x_i), \tilde\phi(x_j)\rangle = K_{ij} -
#' \tilde\mu(x_i) - \tilde\mu(x_j) + \|\tilde\mu\|^2}{K^c_ij = <phi~(x_i),
#' phi~(x_j)> = K_ij - mu(x_i) - mu(x_j) + |mu|^2}. From its eigenvalues
#' \eqn{\gamma_j}{gamma_j} and eigenvectors, \eqn{K^c = U\Gamma U'}{K^c = U
#' Gamma U'}, component j is the function \eqn{v_j = \sum_i V_{ij}
#' \tilde\phi(x_i)}{v_j = sum_i V_ij phi~(x_i)} of unit norm, \eqn{V =
#' U\Gamma^{-1/2}}{V = U Gamma^(-1/2)}. Scores are the inner products with
#' \eqn{v_j}{v_j}: \eqn{K^cV = U\Gamma^{1/2}}{K^c V = U Gamma^(1/2)} for the
#' sample, \eqn{L^cV}{L^c V} for new points, \eqn{L^c_{zj} = k(z, x_j) -
#' \tilde\mu(x_j) - \tilde\mu(z) + \|\tilde\mu\|^2}{L^c_zj = k(z, x_j) -
#' mu(x_j) - mu(z) + |mu|^2}.
#'
#' The variance of component j, its value, is \eqn{\gamma_j/n}{gamma_j/n},
#' an eigenvalue of the covariance operator; that of [stats::prcomp()] is
#' \eqn{\gamma_j/(n-1)}{gamma_j/(n - 1)} (with [kernel_linear()] all else is
#' the same, but for signs). Components with a
#' \eqn{\gamma_j}{gamma_j} below \eqn{\max(n, 32)\,\epsilon}{max(n, 32) eps}
#' times the largest of \eqn{\gamma_1}{gamma_1}, \eqn{|\tilde\mu(x_i)|}{
#' |mu(x_i)|} and \eqn{\|\tilde\mu\|^2}{|mu|^2} are rounding
#' (\eqn{\epsilon}{eps} the machine precision) and are dropped; those near the
#' limit are accurate to few digits. Each column of V is positive at its first
#' entry of largest absolute value, so that signs do not depend on the machine.
#'
#' @section Shrinkage:
#' `center` shrinks the mean. The weights of S-KMSE and F-KMSE do not sum to
#' one, and then the columns of V and the scores do not sum to zero.
#'
#' `covariance` shrinks the covariance operator \eqn{\sum_i \beta_i
#' \tilde\phi(x_i) \otimes \tilde\phi(x_i)}{sum_i beta_i phi~(x_i) (x)
#' phi~(x_i)}, \eqn{\beta_i = 1/n}{beta_i = 1/n} without shrinkage: its weights
#' are those of the kernel mean estimator on the Gram matrix \eqn{H = K^c \circ
#' K^c}{H = K^c * K^c}, entry by entry (COSE, Muandet et al., section 4.2). How
#' much is shrunk is for the estimator to say, as in `covariance =
#' est_skmse(lambda = 0.1)`.
#' \describe{
#'   \item{`"skmse"`}{S-COSE multiplies the operator by \eqn{1 - \alpha}{1 -
#'     alpha}. Eigenvectors, scores and reconstruction errors equal those of
#'     `"kme"` exactly, the paper's section 4.2 notwithstanding; `values` are
#'     \eqn{1 - \alpha}{1 - alpha} times as large.}
#'   \item{`"fkmse"`}{F-COSE, with one weight for each point. Components are the
#'     eigenfunctions of the weighted operator, of unit norm and orthogonal,
#'     from the eigenpairs of \eqn{\Gamma^{1/2}U'\mathrm{diag}(\beta)
#'     U\Gamma^{1/2}}{Gamma^(1/2) U' diag(beta) U Gamma^(1/2)}. Weights may be
#'     negative, and so may the last `values`.}
#'   \item{[est_function()]}{weights of your own, in the same way.}
#' }
#'
#' What to expect: the more points there are, the less is shrunk. In the study
#' `inst/studies/kpca.R` (15 data sets, some hundred points, 20 components)
#' shrinkage centering lowers the reconstruction error of new points on 11 of
#' them, by hundredths of a per cent; F-COSE selects nearly no shrinkage on
#' most.
#'
#' @section Sketches: With a [kme_sketch()] as `x` these are the principal
#' components of the features \eqn{\phi(x) = W'k(S, x)}{phi(x) = W'k(S, x)} on
#' its landmarks S, those of the projected Gram matrix: the eigenvalues of
#' \eqn{C^c}{Cc}, the covariance of the features (centered by any of the means
#' that a sketch has, see [kme()]), and \eqn{V = WU}{V = W U} of its
#' eigenvectors U, weights on the landmarks as they are: \eqn{v_j = \sum_i
#' V_{ij} k(s_i, \cdot)}{v_j = sum_i V_ij k(s_i, .)} has unit norm. `total` is
#' \eqn{\mathrm{tr}\,C^c}{tr Cc}, without what projection takes of the trace,
#' which `print()` says. There are no `scores`: `predict()`,
#' [reconstruction_error()] and [preimage()] (which starts from the landmarks)
#' take new points. `covariance` may be `"skmse"`, for which the sketch must
#' have `moments = 4`. Where rows have weights, n is \eqn{(\sum w)^2/\sum
#' w^2}{(sum w)^2 / sum w^2}. Components below the rounding of \eqn{C}{C}, which
#' is that of the sums divided by the smallest eigenvalue of
#' \eqn{K_{SS}}{K_SS}, are dropped. O(m^3) time and O(m^2) memory for m
#' landmarks, whatever the number of rows.
#'
#' @section Coming from other functions: [stats::prcomp()]: `scores` is its `x`
#' (here `x` holds the points), `sqrt(values)` its `sdev` but for the divisor,
#' `scale = TRUE` its `scale.`. kernlab's `kpca()`: `ncomp` is its `features`,
#' \eqn{\theta = 1/\sqrt{2\sigma}}{theta = 1/sqrt(2 sigma)} for its `rbfdot`
#' kernel, `values` its `eig()`. Principal components that are not centered:
#' `center = kme(x, kernel, weights = numeric(nrow(x)))`.
#'
#' @section Cost:
#' All components take an eigendecomposition, about 6n^3 flops and 32n^2 bytes,
#' and so does `covariance = "fkmse"`, on top of its selection, see [kme()]. Few
#' components (`ncomp`) take less. From 1,200 points on (and 5 `ncomp`) they are
#' found by block Krylov iteration, 16 columns at a time: 10 to 40 products with
#' \eqn{K^c}{K^c}, each a sum over tiles of the kernel, O(n^2 (d + 16)) time,
#' and O(n) memory, about 5,000n bytes for 20 components. With more than 64
#' columns (16 for up to 5,792 points), if there is room, the Gram matrix is
#' stored (8n^2 bytes), as it is with a `gram`, a [kernel_function()] and
#' `center = "fkmse"`, which takes O(n^3) of its own. The pairs found have
#' residuals \eqn{\|K^cu - \gamma u\|}{ |K^c u - gamma u|} of at most
#' \eqn{10^{-10}\gamma_1}{1e-10 gamma_1}. That no larger value was missed, one
#' of many equal ones, is certain where \eqn{\|K^c\|_F^2}{|K^c|_F^2} leaves no
#' room for it; in other cases (slowly falling spectra) the iteration starts
#' again from random blocks until nothing new is found. Smaller matrices take
#' 4n^3/3 flops and 32n^2 bytes. `predict()` takes O(nmd) time for m points and
#' O((n + m) ncomp) memory; nothing of the sample is computed anew.
#'
#' @param x The sample, points in rows: a numeric matrix, a data frame of
#'   numeric columns, or a vector (one column); a [gram()] (a matrix of kernel
#'   values is one by [as_gram()]); a [kme_sketch()], see Sketches; or a formula
#'   without response, `~ a + b`.
#' @param kernel A kernel, such as [kernel_rbf()]; must not be given with a
#'   `gram` or a sketch; by default that of `center` if `center` is a fit. The
#'   energy kernel is refused.
#' @param ncomp Number of components, from 1 to n; `NULL` for all with a
#'   positive \eqn{\gamma_j}{gamma_j}. More than the rank is a warning, more
#'   than n an error.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method.
#' @param center The kernel mean that centers: an estimator, fitted to the
#'   sample, by name, as an object such as [est_skmse()] or as a function of
#'   your own (see [est_kme()]); or a fit of [kme()] with the same kernel, also
#'   on other points, with own weights or a target.
#' @param covariance How the covariance operator is estimated: `"kme"` (the
#'   empirical one), `"skmse"`, `"fkmse"` or `"stack"` (of the KME and F-KMSE),
#'   an object such as [est_skmse()] without a target, or a function of your
#'   own. Marginalized estimators and smoothing are refused: they have no
#'   weights on the points.
#' @param scale The units of the columns: `FALSE`, as they are; `TRUE`, divided
#'   by their standard deviations; `"whiten"`, by the root of their covariance,
#'   see Units in [gram()]. Not
#'   with a `gram`, which has its own.
#' @param formula A formula without response.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default, `na.action = na.omit` drops their rows.
#'
#' @return An object of class `kme_pca`, a list with
#' \item{values}{eigenvalues of the operator, decreasing, of the components
#'   computed, on the scale of [kme_cov()] and of `prcomp()$sdev^2`:
#'   \eqn{\gamma_j/n}{gamma_j/n} for `covariance = "kme"`}
#' \item{vectors}{V, n by ncomp, columns `PC1`, `PC2`, ...}
#' \item{scores}{scores of the sample, n by ncomp, with the row names of `x`;
#'   `NULL` for a sketch}
#' \item{total}{the trace of the operator, the sum of all its `values`, also
#'   where few were computed; \eqn{\mathrm{tr} K^c/n}{tr K^c/n} for
#'   `covariance = "kme"`}
#' \item{rank}{number of positive \eqn{\gamma_j}{gamma_j}; `NA` where fewer
#'   were computed}
#' \item{n}{number of points}
#' \item{sample}{the sample: a list with the points `x` as the kernel takes them
#'   (`NULL` for kernel values), `raw` as they were given if these differ, the
#'   `gram` if one was given, and its `kernel`}
#' \item{kernel}{the kernel with its bandwidth as a number}
#' \item{mean}{the kernel mean \eqn{\tilde\mu}{mu}, a fit of [kme()]}
#' \item{at, norm2}{its values at the n points (at the landmarks), its squared
#'   norm}
#' \item{shrinkage}{`NULL` for `covariance = "kme"`; else the shrinkage of the
#'   operator as a list with `lambda`, `select`, `score`, `minimum`,
#'   `reference`, `border` as of [kme()], `alpha` for S-COSE, and for all others
#'   the `weights` \eqn{\beta}{beta}}
#' \item{center, covariance}{the estimators as objects, see [est_kme()]}
#' \item{terms}{the terms of a formula, else `NULL`}
#' \item{arguments}{what was asked for}
#'
#' @section Methods:
#' `predict()` gives the scores of new points, m by ncomp, `coef()` the weights
#' V of the components. `summary()` has the standard deviations
#' \eqn{(\gamma_j/n)^{1/2}}{sqrt(gamma_j/n)} and the shares of variance, exact
#' also where few components were computed. `update()` fits again with other
#' arguments: on the same points unless `x` is given (or `data` for a fit by
#' formula), another amount of shrinkage by `update(fit, covariance =
#' est_skmse(lambda = 0.1))`. [plot()][plot.kme_pca] draws scores or variances,
#' [screeplot()][screeplot.kme_pca] variances; [reconstruction_error()] and
#' [preimage()] lead back from the components to the points.
#'
#' @references
#' Schölkopf, B., Smola, A. and Müller, K.-R. (1998). Nonlinear component
#' analysis as a kernel eigenvalue problem. *Neural Computation* 10, 1299--1319.
#' \doi{10.1162/089976698300017467}
#'
#' Muandet, K., Fukumizu, K., Sriperumbudur, B., Gretton, A. and Schölkopf, B.
#' (2014). Kernel mean estimation and Stein effect. *Proceedings of the 31st
#' International Conference on Machine Learning*. Section 4.2 and appendix D.
#' \doi{10.48550/arXiv.1306.0842}
#' @seealso [plot.kme_pca()], [reconstruction_error()], [preimage()]; [kme()]
#'   for the means, [kme_cov()] for operators of several variables.
#' @family operators
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

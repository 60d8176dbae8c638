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
#' @param x As in [kme()]; or distances (`dist`), of which these are the
#'   principal coordinates, see [gram()].
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
#'   points, its squared norm (for [kernel_linear()], whose components do not
#'   depend on the origin, with the origin at the mean of the columns)}
#' \item{shrinkage}{`NULL` for `covariance = "kme"`; else a list with `lambda`,
#'   `alpha`, `weights`, `select`, `score`, `minimum`, `reference`, `border` as
#'   of [kme()]}
#' \item{center, covariance}{the estimators as objects}
#' \item{sample, kernel, n, layout, arguments}{as in [kme()]; `sample$raw` has
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
#'
#' Muandet, K. et al. (2014). Kernel mean estimation and Stein effect. Sections
#' 3.2 and 4.2 (operators, Figure 3), appendix D of the first version on arXiv
#' (shrunk centers). \doi{10.48550/arXiv.1306.0842}
#' @seealso [glossary]; [kme()] for the means, [kme_cov()] for operators of
#'   several variables; `vignette("operators", package = "kernmean")`.
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
  x <- principal_gram(x)
  sample <- read_sample(x, asked$kernel, default = center_kernel(asked$center),
                        scale = asked$scale)
  centered <- centered_sample(sample, asked$center)
  components <- pca_components(sample, centered, asked$ncomp, asked$covariance)
  new_kme_pca(components, centered, asked$covariance, stored(asked))
}

kme_pca_arguments <- door_table(
  "kme_pca.default", x = anything, kernel = unless_given(a_kernel),
  ncomp = maybe(count()), center = read_center, covariance = read_operator,
  scale = unless_given(a_scale), aside = "x"
)

#' @rdname kme_pca
#' @export
kme_pca.formula <- function(formula, data = NULL, subset, na.action, ...) {
  read <- read_sides(c(x = "terms"))
  keep_layout(kme_pca.default(read$x, ...), read)
}

new_kme_pca <- function(components, centered, covariance, arguments) {
  names <- paste0("PC", seq_along(components$values))
  dimnames(components$vectors) <- list(NULL, names)
  if (!is.null(components$scores)) {
    dimnames(components$scores) <- list(sample_names(centered$sample), names)
  }
  new_fit("kme_pca", c(
    components[c("values", "vectors", "scores", "total", "rank")],
    list(n = centered$n, kernel = centered$sample$kernel),
    centered_fields(centered),
    list(shrinkage = components$shrinkage, center = centered$mean$estimator,
         covariance = covariance, terms = NULL, arguments = arguments)
  ))
}

# --- Components --------------------------------------------------------------

# Principal components.
#   values     p eigenvalues of the operator
#   vectors    n x p matrix V of weights; a sketch has them on landmarks
#   scores     n x p matrix K^c V; a sketch has none
#   total      the trace of the operator
#   rank       of the operator, NA where only leading pairs are known
#   shrinkage  what an estimator of the operator has chosen, or NULL
new_components <- function(values, vectors, scores, total, rank, shrinkage) {
  list(values = values, vectors = vectors, scores = scores, total = total,
       rank = rank, shrinkage = shrinkage)
}

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
  s$vectors <- take_columns(s$vectors, which(positive))
  components <- if (weighted) weighted_components else plain_components
  components(centered, s, ncomp, covariance, rank)
}

# If all points have the weight (1 - alpha)/n, the components are those of the
# empirical operator. Estimators other than the average need moments of H = K^c
# o K^c, which are computed without forming H.
plain_components <- function(centered, s, ncomp, covariance, rank) {
  n <- centered$n
  shrinkage <- est_shrink(covariance, {
    check_squares(s$square)
    list(n = n, rho = s$square / n^2,
         varrho = mean(centered_diagonal(centered)^2))
  })
  share <- share_left(shrinkage)
  root <- rep(sqrt(s$values), each = n)
  new_components(share * s$values / n, s$vectors / root, s$vectors * root,
                 share * s$total / n, rank, shrinkage)
}

# The components of an operator with a weight for each point. The estimator
# chooses the weights from H, which is formed.
weighted_components <- function(centered, s, ncomp, covariance, rank) {
  check_squares(s$square)
  shrinkage <- operator_weights(centered_matrix(centered)^2, covariance)
  weights <- shrinkage$weights
  operator <- operator_spectrum(s, weights)
  if (operator$rank == 0L) {
    stop_input("'covariance' must not shrink the operator to 0: no component ",
               "is left")
  }
  operator <- keep_components(operator, min(ncomp, operator$rank))
  shrinkage$norm2 <- NULL
  new_components(
    operator$values, operator$vectors,
    product(s$vectors, s$values * cross(s$vectors, operator$vectors)),
    sum(weights * centered_diagonal(centered)), rank, shrinkage
  )
}

# --- Methods -----------------------------------------------------------------

fit_lines.kme_pca <- function(x, digits) {
  p <- length(x$values)
  c(
    pca_title(x), describe_sample(x$sample), sample_kernel_lines(x$sample),
    strwrap(paste("center:", describe_mean(x$mean, digits)), 81L, exdent = 2L),
    describe_shrinkage(x, digits),
    paste0(count_of(p, "component"), if (!is.na(x$rank)) {
      if (p == x$rank) ", all there are" else paste0(" of ", x$rank)
    }),
    describe_shares(x)
  )
}

pca_title <- \(object) operator_title("Kernel PCA", object$covariance)

# Lines of print() on the shrinkage of the operator; NULL for an estimator
# without a lambda.
describe_shrinkage <- function(object, digits) {
  if ("lambda" %in% names(object$covariance)) {
    c(paste0("operator: ",
             describe_lambda(object$covariance, object$shrinkage, digits),
             if (object$shrinkage$border) ", on the border of the range"),
      guard_line(object$shrinkage$guard, digits, "the empirical operator"))
  }
}

# The shares of variance of the components, NA where the operator has no
# positive trace.
variance_shares <- function(object) {
  object$values / if (object$total > 0) object$total else NA_real_
}

describe_shares <- function(object) {
  shares <- variance_shares(object)
  if (anyNA(shares)) {
    return("the operator has no positive trace: no shares of variance")
  }
  shown <- sprintf("%.1f%%", 100 * shares)
  paste0("shares of variance: ", shorten(shown, 5L),
         if (length(shares) > 1L) sprintf("; in all %.1f%%", 100 * sum(shares)))
}

fit_summary.kme_pca <- function(x) {
  shares <- variance_shares(x)
  importance <- rbind(
    "Standard deviation" = component_deviations(x),
    "Proportion of Variance" = shares, "Cumulative Proportion" = cumsum(shares)
  )
  colnames(importance) <- colnames(x$vectors)
  list(importance = structure(importance, title = "Importance of components"))
}

component_deviations <- \(x) sqrt(ifelse(x$values < 0, NA, x$values))

fit_facts.kme_pca <- function(x) {
  c(list(
    nobs = x$n, ncomp = length(x$values), rank = x$rank, total = x$total,
    explained = sum(variance_shares(x)), center = x$center$name,
    covariance = x$covariance$name, lambda = x$shrinkage$lambda
  ), kernel_columns(x$kernel))
}

fit_rows.kme_pca <- function(x, matrix = "u", ...) {
  check_dots(...)
  switch(take(matrix, choice("u", "v", "d")),
    u = long_frame(x$sample, sample_scores(x)),
    v = long_frame(x$sample, x$vectors),
    d = share_frame(c("PC", "std.dev"), component_deviations(x),
                    variance_shares(x))
  )
}

fit_values.kme_pca <- function(x, newdata = NULL) {
  prefixed(predict(x, newdata), ".fitted")
}

#' @rdname kme_pca
#' @param object A fit.
#' @param newdata New points, with the columns of `x`, matched by name where
#'   both have names; for a fit on [as_gram()] the m by n kernel values of new
#'   points and the sample; without it, the scores of the sample. Scores of
#'   points with missing values are `NA`.
#' @export
predict.kme_pca <- function(object, newdata = NULL, ncomp = NULL, ...) {
  check_dots(...)
  kept <- leading_components(ncomp, ncol(object$vectors))
  if (is.null(newdata)) {
    return(take_columns(sample_scores(object), kept))
  }
  gaps <- predict_gaps(object, newdata, ncomp = ncomp)
  if (!is.null(gaps)) return(gaps)
  new <- sample_newdata(object$sample, newdata, object$layout)
  centered_apply(object, new, take_columns(object$vectors, kept))$scores
}

# The scores of the sample; an error for a sketch, which has none.
sample_scores <- function(object) {
  check_rows_kept(object$sample)
  object$scores
}

check_rows_kept <- function(sample) {
  if (!is.null(sample$sketch)) {
    stop_input("'newdata' must be given: the fit is to a sketch, which keeps ",
               "sums over rows and not the rows")
  }
}

#' @export
coef.kme_pca <- function(object, ...) {
  check_dots(...)
  object$vectors
}

# --- Reconstruction error ----------------------------------------------------

#' Reconstruction error of kernel PCA
#'
#' The squared distance of points from the affine subspace spanned by the
#' leading components.
#'
#' With \eqn{s_j(z)}{s_j(z)} the score of z on component j and
#' \eqn{\tilde\mu}{mu} the kernel mean that centers, the error of z is
#' \deqn{\|k(z, \cdot) - \tilde\mu\|^2 - \sum_j s_j(z)^2, \quad \|k(z, \cdot)
#' - \tilde\mu\|^2 = k(z, z) - 2\tilde\mu(z) + \|\tilde\mu\|^2.}{|k(z, .) -
#' mu|^2 - sum_j s_j(z)^2, with |k(z, .) - mu|^2 = k(z, z) - 2 mu(z) + |mu|^2.}
#' It is 0 for a point of the sample if all components are kept; rounding below
#' zero is set to 0.
#'
#' A large error marks a point that is unlike the sample (novelty detection,
#' Hoffmann 2007). What is large, a quantile of the errors of points that were
#' held out says; those of the sample are smaller. With a kernel that vanishes
#' at a distance a point far from all others has the error \eqn{k(z, z) +
#' \|\tilde\mu\|^2}{k(z, z) + |mu|^2}, the largest there is.
#'
#' @param object A fit of [kme_pca()].
#' @param newdata New points, or their kernel values, as in
#'   [predict()][predict.kme_pca]; without it, the points of the sample.
#' @param ncomp Number of leading components, `NULL` for all of the fit.
#' @param ... Must be empty.
#' @param diagonal \eqn{k(z, z)}{k(z, z)} of the new points, m numbers: needed
#'   where `newdata` holds kernel values, and only there.
#' @return The errors, one number for each point, with the row names.
#' @details O(nmd) time and O((n + m) ncomp) memory for m new points.
#' @references
#' Hoffmann, H. (2007). Kernel PCA for novelty detection. *Pattern Recognition*
#' 40, 863--874. \doi{10.1016/j.patcog.2006.07.009}
#' @seealso [glossary]; [preimage()]
#' @examples
#' x <- scale(iris[, 1:4])
#' fit <- kme_pca(x[1:50, ], kernel_rbf(2), ncomp = 3)
#' error <- reconstruction_error(fit, x)
#' boxplot(error ~ iris$Species, ylab = "reconstruction error")
#' @export
reconstruction_error <- function(object, ...) {
  check_given(object)
  UseMethod("reconstruction_error")
}

#' @export
reconstruction_error.default <- function(object, ...) {
  has_none(object, "principal components, as of kme_pca()", "object")
}

#' @rdname reconstruction_error
#' @export
reconstruction_error.kme_pca <- function(object, newdata, ncomp = NULL, ...,
                                         diagonal = NULL) {
  check_dots(...)
  kept <- leading_components(ncomp, ncol(object$vectors))
  if (missing(newdata)) {
    check_no_diagonal(diagonal)
    scores <- take_columns(sample_scores(object), kept)
    square <- centered_diagonal(object)
  } else {
    new <- sample_newdata(object$sample, newdata, object$layout)
    diagonal <- new_diagonal(object$sample, new, diagonal)
    applied <- centered_apply(object, new,
                              take_columns(object$vectors, kept))
    square <- diagonal - 2 * applied$mean_at + object$norm2
    if (any(square < -1e-8 * max(diagonal, object$norm2))) {
      stop_input(
        "'diagonal' must hold k(z, z) of the new points; number ",
        which.min(square), " is too small for its kernel values"
      )
    }
    scores <- applied$scores
  }
  error <- unname(square) - unname(rowSums(scores^2))
  check_result(error, "the norm of a point")
  stats::setNames(pmax(0, error), rownames(scores))
}

#' Pre-images of kernel PCA
#'
#' Points whose images lie close to the projections of points on the leading
#' components: denoising by kernel PCA with an RBF kernel.
#'
#' The projection of z is \eqn{P(z) = \tilde\mu + \sum_j s_j v_j = \sum_i c_i
#' k(x_i, \cdot)}{P(z) = mu + sum_j s_j v_j = sum_i c_i k(x_i, .)} with the
#' scores s of z and \eqn{c = Vs + b(1 - e'Vs)}{c = Vs + b (1 - e'Vs)}, b the
#' weights of the kernel mean that centers (the last term is not b alone where
#' the mean is shrunk; points of a mean on other points join the sum; a mean
#' with noise or a mixture has those of its projection, [as_weights()]). The
#' point whose image is nearest to the projection is where \eqn{\sum_i c_i
#' k(x_i, z)}{sum_i c_i k(x_i, z)} is largest, a fixed point of
#' \deqn{z \leftarrow
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
#' @param object A fit of [kme_pca()] with an RBF kernel on points.
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
#' @seealso [glossary]; [reconstruction_error()]
#' @examples
#' set.seed(1)
#' angle <- runif(150, 0, 2 * pi)
#' x <- cbind(cos(angle), sin(angle)) + rnorm(300, sd = 0.15)
#' fit <- kme_pca(x, kernel_rbf(0.8), ncomp = 5)
#' plot(x, col = "grey60", asp = 1, xlab = "", ylab = "")
#' points(preimage(fit), pch = 20)
#' @export
preimage <- function(object, ...) {
  check_given(object)
  UseMethod("preimage")
}

#' @export
preimage.default <- reconstruction_error.default

#' @rdname preimage
#' @export
preimage.kme_pca <- function(object, newdata = NULL, ncomp = NULL, ...,
                             tol = 1e-8, maxit = 1000) {
  check_dots(...)
  scores <- predict(object, newdata, ncomp)
  tol <- take(tol, number(open = TRUE))
  maxit <- take(maxit, count())
  wanted <- "'object' must be a fit with an RBF kernel on points, not "
  x <- sample_points(object$sample, wanted, "on a matrix of values")
  if (!kernel_has(object$kernel, "Gaussian form")) {
    stop_input(wanted, "with the ", format_kernel(object$kernel))
  }
  sites <- projection_sites(object)
  z <- matrix(0, nrow(scores), ncol(x))
  size <- max(1, floor(2^21 / nrow(sites$x)))
  failed <- 0
  for (rows in row_panels(seq_len(nrow(scores)), size)) {
    points <- fixed_points(object, sites, take_rows(scores, rows), tol,
                           maxit)
    z[rows, ] <- points$z
    failed <- failed + points$failed
  }
  if (failed > 0) {
    warn_kernmean(failed, " of ", nrow(scores), " pre-images did not converge ",
                  "in ", count_of(maxit, "step"))
  }
  z <- unscale_points(object$kernel, z + rep(sites$origin, each = nrow(z)))
  dimnames(z) <- list(rownames(scores), colnames(x))
  z
}

# A projection is a weighted sum of the features of points. `x` holds these
# points, those of the sample first, and `weights` the weights of the centering
# mean on them; a mean that is no such sum is replaced by its projection on the
# sample. The points are relative to `origin`, because sums of terms of both
# signs lose fewer digits near 0.
projection_sites <- function(object) {
  parts <- merge_parts(embedding_parts(object$mean))
  plain <- vapply(parts, \(part) is.null(part$mixture) && is.null(part$noise),
                  NA)
  x <- unname(object$sample$x)
  origin <- colMeans(x)
  weights <- numeric(nrow(x))
  if (!all(plain)) {
    parts <- NULL
    weights <- solve_spectrum(sample_gram(object$sample), object$at)
  }
  sampled <- seq_len(nrow(x))
  for (part in parts) {
    if (same_sample(part$sample, object$sample)) {
      weights[sampled] <- weights[sampled] + part$weights
    } else {
      x <- rbind(x, unname(part$sample$x))
      weights <- c(weights, part$weights)
    }
  }
  list(x = x - rep(origin, each = nrow(x)), weights = weights, origin = origin)
}

# The fixed points `z` for rows of scores, and how many did not converge,
# `failed`. A row whose kernel values vanish starts again, at the point of the
# sample with the next highest projection.
fixed_points <- function(object, sites, scores, tol, maxit) {
  theta <- rep_len(object$kernel$bandwidth, ncol(sites$x))
  v <- take_columns(object$vectors, seq_len(ncol(scores)))
  weights <- site_weights(object, sites, scores, v)
  value <- site_values(object, scores, v)
  best <- max.col(value, "first")
  z <- take_rows(sites$x, best)
  tries <- rep(1L, nrow(z))
  active <- seq_len(nrow(z))
  failed <- 0
  for (iteration in seq_len(maxit)) {
    at <- take_rows(z, active)
    k <- fold_store(object$kernel, at, sites$x) *
      take_rows(weights, active)
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

# The weights of the sites in each projection, one row for each row of scores.
site_weights <- function(object, sites, scores, v) {
  sampled <- seq_len(object$sample$n)
  weights <- outer(1 - drop(scores %*% center_mass(object, v)), sites$weights)
  weights[, sampled] <- weights[, sampled] + tcross(scores, v)
  weights
}

# The values of projections at the points of the sample, each row up to a
# constant.
site_values <- function(object, scores, v) {
  known <- if (is.null(object$scores)) {
    centered_apply(object, own_points(object$sample), v)$scores
  } else {
    take_columns(object$scores, seq_len(ncol(scores)))
  }
  tcross(scores, known) + rep(object$at, each = nrow(scores))
}

# `name` is the title of the groups when these are numbers.
fit_picture.kme_pca <- function(object, type = NULL, comps = NULL,
                                groups = NULL, newdata = NULL, npcs = NULL,
                                name = NULL, labels = NULL, arrows = FALSE) {
  rows <- !is.null(object$scores) || !is.null(newdata)
  type <- check_type(type, c("scores", "spectrum"),
                     if (rows) "scores" else "spectrum")
  arrows <- take(arrows, flag)
  if (type == "spectrum") {
    check_for_scores(comps = comps, groups = groups, newdata = newdata,
                     labels = labels, arrows = if (arrows) TRUE)
    return(picture_scree(object, npcs))
  }
  known <- colnames(object$vectors)
  comps <- if (is.null(comps)) seq_len(min(2L, length(known))) else
    check_pick(comps, known, "comps", 1:2)
  scores <- predict(object, newdata)
  picture <- picture_scores(pca_title(object), take_columns(scores, comps),
                            groups, component_labels(object)[comps], name,
                            labels)
  if (all(1:2 %in% comps) && is.null(newdata)) {
    picture$note <- arch_note(scores[, 1L], scores[, 2L])
  }
  picture$value <- data.frame(picture$value, row.names = NULL)
  picture$value$groups <- check_groups(groups, nrow(scores))
  if (arrows) add_arrows(picture, object, comps) else picture
}

# The note of an arch: all points lie along one curve, which one coordinate
# would describe. Three clusters with gaps between them always lie on a parabola
# and get no note.
arch_note <- function(first, second) {
  along <- first / max(abs(first))
  rest <- stats::lm.fit(cbind(1, along, along^2), second)$residuals
  share <- 1 - sum(rest^2) / sum((second - mean(second))^2)
  gap <- max(diff(sort(first))) / diff(range(first))
  if (length(first) > 9L && share > 0.6 && gap < 1 / 3) {
    list(text = sprintf("an arch: %.0f%% of PC2 is a parabola in PC1",
                        100 * share), color = accent)
  }
}

# The picture with arrows that show the correlations of columns with the two
# components, all on one scale. Only columns that the kernel uses have arrows,
# and only the ten longest are drawn.
add_arrows <- function(picture, object, comps) {
  x <- known_rows(object$sample)
  if (length(comps) < 2L || !NROW(x)) {
    stop_input("'arrows' must be FALSE unless two components of known points ",
               "are drawn")
  }
  r <- suppressWarnings(stats::cor(named_frame(x), object$scores[, comps]))
  r[is.na(r)] <- 0
  attr(picture$value, "correlations") <- r
  seen <- unlist(lapply(kernel_parts(object$kernel), `[[`, "at"))
  if (length(seen)) r[-seen, ] <- 0
  r <- utils::head(take_rows(r, order(-rowSums(r^2))), 10L)
  limits <- picture_limits(picture$layers)
  size <- min(vapply(1:2, \(j) max(abs(limits[[j]])) / max(abs(r[, j])), 1))
  tips <- 0.8 * size * take_rows(r, rowSums(r^2) > 1e-4)
  zero <- numeric(nrow(tips))
  picture$layers <- c(picture$layers, list(
    new_layer("arrows", x0 = zero, y0 = zero, x1 = tips[, 1L], y1 = tips[, 2L],
              col = "firebrick"),
    new_layer("text", x = tips[, 1L], y = tips[, 2L], labels = rownames(tips),
              col = "firebrick", over = sign(tips[, 1L]))
  ))
  picture
}

# The picture of scores on two functions, or on one by the order of the points.
picture_scores <- function(title, scores, groups, labels, name, words) {
  words <- check_words(words, rownames(scores), nrow(scores))
  one <- ncol(scores) == 1L
  if (one) {
    scores <- cbind(index = seq_len(nrow(scores)), scores)
    labels <- c("index", labels)
  }
  groups_picture(title, scores, check_groups(groups, nrow(scores)), labels,
                 scores, zero = c(if (!one) "v", "h"), name = name,
                 words = words, asp = if (!one) 1, whole = if (one) "x")
}

# "PC1 (34.5% of variance)"
component_labels <- function(object, names = colnames(object$vectors)) {
  shares <- variance_shares(object)
  paste0(names, ifelse(
    is.na(shares), "", sprintf(" (%.1f%% of variance)", 100 * shares)
  ))
}

#' @rdname plot.kernmean_fit
#' @importFrom stats screeplot
#' @export
screeplot.kme_pca <- function(x, npcs = NULL, ...) {
  draw_picture(picture_scree(x, npcs), list(...))
}

# The picture of the leading `npcs` variances; NULL means ten.
picture_scree <- function(object, npcs) {
  p <- length(object$values)
  shown <- leading_components(npcs %||% min(10L, p), p,
                              "npcs")
  names <- colnames(object$vectors)[shown]
  height <- stats::setNames(object$values[shown], names)
  at <- seq_along(height)
  new_picture(
    pca_title(object), "", "Variances",
    list(new_layer("bars", x0 = at - 0.4, y0 = 0 * at, x1 = at + 0.4,
                   y1 = height, col = "#56B4E9", border = NA, main = TRUE),
         across_layer(h = 0, col = "black", lty = 1)),
    height, xlim = range(0.4, at + 0.6), ylim = range(0, 1.03 * height),
    ticks_x = list(at = at, labels = names)
  )
}

# A data frame of components with their values and shares.
share_frame <- function(name, value, share) {
  frame <- data.frame(component = seq_along(value), value = value,
                      percent = share, cumulative = cumsum(share),
                      row.names = NULL)
  names(frame)[1:2] <- name
  frame
}

# Stops if an argument is given that only a picture of scores takes.
check_for_scores <- function(...) {
  given <- names(Filter(Negate(is.null), list(...)))
  if (length(given)) {
    stop_input("'", given[1L], "' must not be given but for type \"scores\"")
  }
}

# A matrix over points and components as a data frame with a row for each value,
# in the form of broom's tidy.prcomp().
long_frame <- function(sample, x) {
  data.frame(
    row = rep(point_labels(sample), each = ncol(x)),
    PC = rep(seq_len(ncol(x)), nrow(x)), value = as.vector(t(x))
  )
}

# k(z, z) of new points: computed, or the argument `diagonal` where only kernel
# values are known.
new_diagonal <- function(sample, new, diagonal = NULL) {
  if (!is.null(new$z)) {
    check_no_diagonal(diagonal)
    return(fold_diagonal(sample$kernel, new$z, sample$origin))
  }
  if (is.null(diagonal) && !is.null(new$diagonal)) {
    return(new$diagonal)
  }
  if (!is.null(sample$gram$intensity)) {
    stop_input("'newdata' must be missing for a fit on a gram of ",
               "shrink_gram(), which has no k(z, z) of new points")
  }
  if (!is.numeric(diagonal) || length(diagonal) != new$m) {
    stop_input(
      "'diagonal' must be given with kernel values: k(z, z) of the ", new$m,
      " new points, not ", describe(diagonal)
    )
  }
  check_finite(diagonal, "diagonal")
  as.double(diagonal)
}

check_no_diagonal <- function(diagonal) {
  if (!is.null(diagonal)) {
    stop_input("'diagonal' must be NULL unless 'newdata' holds kernel values")
  }
}

# The group of each of n points: a factor, numbers, or NULL.
check_groups <- function(groups, n) {
  if (is.null(groups)) {
    return(NULL)
  }
  check_each(groups, n, "groups")
  # Numbers and times have a color bar, not a legend.
  if (!is.numeric(groups) && !inherits(groups, c("Date", "POSIXct"))) {
    return(check_factor(groups))
  }
  check_finite(as.numeric(groups), "groups")
  groups
}

# The words at n points; for TRUE their names or numbers.
check_words <- function(labels, names, n) {
  if (isTRUE(labels)) {
    labels <- names %||% seq_len(n)
  }
  if (!is.null(labels)) as.character(check_each(labels, n, "labels"))
}

# Methods of kme_pca, and the way back from components to points.

fit_lines.kme_pca <- function(x, digits) {
  p <- length(x$values)
  c(
    pca_title(x), describe_sample(x$sample), kernel_lines(x$kernel),
    sample_note(x$sample), paste0("center: ", describe_mean(x$mean, digits)),
    describe_shrinkage(x, digits),
    paste0(count_of(p, "component"), if (!is.na(x$rank)) {
      if (p == x$rank) ", all there are" else paste0(" of ", x$rank)
    }),
    describe_shares(x)
  )
}

pca_title <- function(object) {
  paste0("Kernel PCA", if (!is.null(object$shrinkage)) {
    paste(", covariance operator by", operator_words(object$covariance))
  })
}

# What the shrinkage of the operator chose, where it has an amount.
describe_shrinkage <- function(object, digits) {
  number <- \(x) format(x, digits = digits)
  shrinkage <- object$shrinkage
  if ("lambda" %in% names(object$covariance)) {
    paste0(
      "operator: lambda = ", number(shrinkage$lambda),
      if (!is.null(shrinkage$alpha)) paste0(", alpha = ",
                                            number(shrinkage$alpha)),
      " (", describe_rule(object$covariance), ")",
      if (shrinkage$border) ", on the border of the range"
    )
  }
}

# Shares of variance; NA where the operator has no positive trace.
variance_shares <- function(object) {
  if (object$total > 0) {
    object$values / object$total
  } else {
    rep(NA_real_, length(object$values))
  }
}

describe_shares <- function(object) {
  if (object$total <= 0) {
    return(if (object$total == 0) {
      "the operator was shrunk to 0: no variance is left"
    } else {
      "the operator has a negative trace: there are no shares of variance"
    })
  }
  shares <- variance_shares(object)
  percent <- \(share) sprintf("%.1f%%", 100 * share)
  shown <- seq_len(min(5L, length(shares)))
  paste0(
    "shares of variance: ", paste(percent(shares[shown]), collapse = ", "),
    if (length(shares) > 5L) ", ...",
    if (length(shares) > 1L) paste0("; in all ", percent(sum(shares)))
  )
}

fit_summary.kme_pca <- function(x) {
  shares <- variance_shares(x)
  importance <- rbind(
    "Standard deviation" = sqrt(ifelse(x$values < 0, NA, x$values)),
    "Proportion of Variance" = shares, "Cumulative Proportion" = cumsum(shares)
  )
  colnames(importance) <- colnames(x$vectors)
  list(importance = structure(importance, title = "Importance of components"))
}

fit_facts.kme_pca <- function(x) {
  c(list(
    nobs = x$n, ncomp = length(x$values), rank = x$rank, total = x$total,
    explained = sum(variance_shares(x)), center = x$center$name,
    covariance = x$covariance$name, lambda = x$shrinkage$lambda
  ), kernel_columns(x$kernel))
}

pca_matrices <- list(
  u = c("u", "x", "samples", "scores"),
  v = c("v", "rotation", "loadings", "variables"),
  d = c("d", "eigenvalues", "pcs")
)

fit_rows.kme_pca <- function(x, matrix = "u", ...) {
  check_dots(...)
  words <- unlist(pca_matrices, use.names = FALSE)
  kind <- rep(names(pca_matrices), lengths(pca_matrices))[
    match(take(matrix, choice(words), "matrix"), words)
  ]
  switch(kind,
    u = long_frame(x$sample, own_scores(x)),
    v = long_frame(x$sample, x$vectors),
    d = share_frame(c("PC", "std.dev"),
                    sqrt(ifelse(x$values < 0, NA, x$values)),
                    variance_shares(x))
  )
}

fit_values.kme_pca <- function(x, newdata = NULL) {
  prefixed(if (is.null(newdata)) own_scores(x) else predict(x, newdata),
           ".fitted")
}


#' @rdname kme_pca
#' @param object A fit.
#' @param newdata New points, with the columns of `x`, matched by name where
#'   both have names; for a fit on [as_gram()] the m by n kernel values of new
#'   points and the sample; without it, the scores of the sample.
#' @export
predict.kme_pca <- function(object, newdata, ncomp = NULL, ...) {
  check_dots(...)
  kept <- check_components(ncomp, object)
  if (missing(newdata)) {
    return(own_scores(object)[, kept, drop = FALSE])
  }
  new <- sample_newdata(object$sample, newdata, object$terms)
  pca_scores(object, new, kept)$scores
}

# The scores of the sample, which a sketch does not have.
own_scores <- function(object) {
  if (is.null(object$scores)) need_newdata()
  object$scores
}

need_newdata <- function() {
  stop_input("'newdata' must be given: the fit is to a sketch, which keeps ",
             "sums over rows and not the rows")
}

# The columns of the components asked for.
check_components <- function(ncomp, object) {
  p <- ncol(object$vectors)
  if (is.null(ncomp)) {
    return(seq_len(p))
  }
  ncomp <- check_count(ncomp, "ncomp")
  if (ncomp > p) {
    stop_input("'ncomp' must be at most ", p, ", the components of the fit, ",
               "not ", ncomp)
  }
  seq_len(ncomp)
}

# list(scores, mean_at: the kernel mean that centers, at the new points).
pca_scores <- function(object, new, kept) {
  v <- object$vectors[, kept, drop = FALSE]
  found <- centered_apply(object, new, v)
  dimnames(found$value) <- list(new$names, colnames(v))
  list(scores = found$value, mean_at = found$mean_at)
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
#' @seealso [preimage()]
#' @examples
#' x <- scale(iris[, 1:4])
#' fit <- kme_pca(x[1:50, ], kernel_rbf(2), ncomp = 3)
#' error <- reconstruction_error(fit, x)
#' boxplot(error ~ iris$Species, ylab = "reconstruction error")
#' @export
reconstruction_error <- function(object, ...) {
  UseMethod("reconstruction_error")
}

#' @rdname reconstruction_error
#' @export
reconstruction_error.kme_pca <- function(object, newdata, ncomp = NULL, ...,
                                         diagonal = NULL) {
  check_dots(...)
  kept <- check_components(ncomp, object)
  if (missing(newdata)) {
    check_no_diagonal(diagonal)
    scores <- own_scores(object)[, kept, drop = FALSE]
    square <- centered_diagonal(object)
  } else {
    new <- sample_newdata(object$sample, newdata, object$terms)
    own <- new_diagonal(object$sample, new, diagonal)
    found <- pca_scores(object, new, kept)
    square <- own - 2 * found$mean_at + object$norm2
    if (any(square < -1e-8 * max(own, object$norm2))) {
      stop_input(
        "'diagonal' must hold k(z, z) of the new points; number ",
        which.min(square), " is too small for its kernel values"
      )
    }
    scores <- found$scores
  }
  check_result(list(square, rowSums(scores^2)), "the norm of a point")
  stats::setNames(pmax(0, unname(square) - unname(rowSums(scores^2))),
                  rownames(scores))
}

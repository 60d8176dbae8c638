#' Gram matrix with its spectrum
#'
#' A Gram matrix that remembers what has been computed of its spectrum, so that
#' several estimators on the same data pay for it once.
#'
#' The object is an environment that holds the matrix and fills in, when it is
#' first needed: the eigenvalues; the eigenvalues with the projections \eqn{w_j
#' = |u_j'1_n|}{w_j = |u_j'1_n|}, \eqn{1_n = (1/n, \ldots, 1/n)'}{ 1_n = (1/n,
#' ..., 1/n)'} (a tridiagonal reduction, several times cheaper than the
#' eigenvectors); the full eigenvectors; a Cholesky factor of \eqn{K + \lambda
#' I}{K + lambda I}. Eigenvalues below \eqn{n \epsilon \gamma_1}{n eps gamma_1}
#' are set to 0 (\eqn{\epsilon}{eps} is the machine precision); one below
#' \eqn{-\sqrt\epsilon\, \gamma_1}{-sqrt(eps) gamma_1} is an error. As with any
#' environment, a copy by `<-` is the same object; `saveRDS()` stores all of it,
#' and two fits on one `as_gram()` can be combined also after one was saved. Its
#' fields cannot be changed: what has been computed would no longer be true.
#' `as.matrix()` gives the matrix, `[` a part of it, `summary()` its
#' eigenvalues.
#'
#' @section Units:
#' One bandwidth measures all columns alike, and polynomial kernels add them up.
#' `scale = TRUE` takes the columns less their means and divided by their
#' standard deviations, in place of the points: for a kernel with bandwidths
#' this is the same as bandwidths of that many standard deviations, column by
#' column. `scale = "whiten"` takes \eqn{W(x - \bar x)}{W(x - mean)}, with
#' \eqn{W = D^{-1}R^{-1/2}}{W = R^(-1/2) D^(-1)} from the standard deviations D
#' and the correlations R: Euclidean distances become Mahalanobis distances, and
#' what is made of them does not depend on any invertible affine map of the
#' points (kernels that look at columns one by one, as the L1 Laplace kernel
#' and the noise of [est_mmkme()] do, still depend on its rotation). Directions
#' in which nothing varies, to 1e-10 of the largest standard deviation, are left
#' out; points that span n - 1 dimensions are refused, as all their whitened
#' distances are equal, and with few more points than columns they nearly are.
#' Constant columns are only centered. Bandwidths, noise and the offset of a
#' polynomial are in these units.
#'
#' The means and standard deviations (or W) are those of the sample, for tests
#' of the pooled one; the kernel of a fit holds them, `fit$kernel$scaling`, and
#' new points are scaled by them, also where the kernel is given for other
#' points. Without `scale`, columns whose standard deviations differ more than
#' tenfold are a warning of class `kernmean_warning_units` (not for kernels with
#' a bandwidth for each column, or of your own); `scale = FALSE` says that they
#' are as they should be.
#'
#' @param x Points in rows: a numeric matrix, a data frame of numeric columns or
#'   a vector (one column).
#' @param kernel A kernel, such as [kernel_rbf()].
#' @param scale The units of the columns: `FALSE`, as they are; `TRUE`, divided
#'   by their standard deviations; `"whiten"`, by the root of their covariance;
#'   see Units.
#' @param K A symmetric positive semi-definite matrix of kernel values.
#' @param what `"values"`, `"projections"` or `"vectors"`: how much of the
#'   spectrum is wanted.
#' @param g A `gram`.
#' @param ... Must be empty; in `plot()`, see [plot.kernmean_fit()].
#' @return `gram()` and `as_gram()` return an object of class `gram` with the
#'   fields `K`, `kernel` and `x`, the points as the kernel takes them (both
#'   `NULL` from `as_gram()`), and `raw`, as they were given, where these
#'   differ. `gram_spectrum()` returns a list: `values` (decreasing), with
#'   `"projections"` also `projections` (\eqn{w_j \ge 0}{w_j >= 0}), with
#'   `"vectors"` also `vectors`, n by n, each positive at its first entry of
#'   largest absolute value.
#'
#' @details `gram()` takes O(n^2 d) time and 8n^2 bytes; a matrix that would not
#' fit in memory is refused before it is allocated. `as_gram()` refuses a matrix
#' that is not symmetric to 1e-8 of its largest entry, or that has a clearly
#' negative eigenvalue; it tries a Cholesky factorization, O(n^3/3). The values
#' and the projections take 4n^3/3 flops and another 8n^2 bytes (the
#' reflectors), the vectors about 6n^3 and 8n^2 bytes, three times that on the
#' way.
#' @seealso [kme()], which takes a `gram` in place of data.
#' @family kernels
#' @examples
#' g <- gram(iris[, 1:4], kernel_rbf(), scale = TRUE)
#' g
#' kme(g, estimator = "skmse")
#' kme(g, estimator = "fkmse")
#' plot(g)
#' @export
gram <- function(x, kernel = kernel_rbf(), ..., scale = FALSE) {
  check_dots(...)
  if (missing(x)) stop_input("'x' must be given: the sample")
  kernel <- check_kernel(kernel)
  x <- check_data(x)
  warn_symmetric(x)
  units <- fit_units(kernel, x, if (!missing(scale)) scale)
  seal_gram(form_gram(units$x, units$kernel, units$raw))
}

# Of points in the units of a fitted kernel.
form_gram <- function(x, kernel, raw = NULL) {
  check_memory(
    nrow(x), nrow(x), "use fewer rows, or kme() with the estimator \"kme\" or ",
    "\"skmse\", which stores no matrix"
  )
  k <- fold_store(kernel, x)
  if (is_function_kernel(kernel)) {
    k <- check_gram(k, "the matrix of kernel values")
  }
  new_gram(k, kernel, x, raw)
}

#' @rdname gram
#' @export
as_gram <- function(K, ...) {
  check_dots(...)
  if (inherits(K, "gram")) {
    return(K)
  }
  if (!is.matrix(K) || !is.numeric(K)) {
    stop_input("'K' must be a square numeric matrix, not ", describe(K))
  }
  if (nrow(K) != ncol(K) || nrow(K) < 1L) {
    stop_input("'K' must be square, not ", nrow(K), " x ", ncol(K))
  }
  check_finite(K, "K")
  K <- unname(unclass_matrix(K))
  storage.mode(K) <- "double"
  seal_gram(new_gram(check_gram(K, "'K'")))
}

new_gram <- function(k, kernel = NULL, x = NULL, raw = NULL, class = NULL) {
  g <- new.env(parent = emptyenv())
  g$K <- k
  g$kernel <- kernel
  g$x <- x
  if (!is.null(raw)) g$raw <- raw
  structure(g, class = c(class, "gram"))
}

# A gram for the user: it cannot be changed, and has an identity that survives
# saving.
seal_gram <- function(g) {
  remember(g, id = new_identity())
  fixed <- intersect(c("K", "kernel", "x", "raw", "id"), names(g))
  for (field in fixed) lockBinding(field, g)
  g
}

# Keeps what has been computed of a gram; the only way to write into one.
remember <- function(g, ...) {
  fields <- list(...)
  for (name in names(fields)) assign(name, fields[[name]], envir = g)
}

identities <- new.env(parent = emptyenv())
identities$made <- 0

# A name that no other gram has, here or in another session.
new_identity <- function() {
  identities$made <- identities$made + 1
  paste(Sys.getpid(), format(as.numeric(Sys.time()), digits = 17),
        identities$made)
}

# The same object, or it and what was saved of it.
same_gram <- function(a, b) {
  identical(a, b) && !is.null(a) ||
    !is.null(a[["id"]]) && identical(a[["id"]], b[["id"]])
}

# Equal matrices are equal, whatever else is known of them.
#' @method all.equal gram
#' @export
all.equal.gram <- function(target, current, ...) {
  # Of functions their text: their environments may be of any size.
  text <- \(f) if (is.function(f)) deparse(f) else f
  fields <- function(g) {
    list(K = g$K, kernel = lapply(unclass(g$kernel), text), x = g$x)
  }
  if (!inherits(current, "gram")) {
    return("'current' is no gram")
  }
  tryCatch(all.equal(fields(target), fields(current), ...), error = \(e) {
    stop_input("the arguments of all.equal() must be its own; ",
               conditionMessage(e))
  })
}

refuse_change <- function() {
  stop_input("a gram must stay as it is, since what has been computed of it ",
             "is kept; as_gram() makes another one of another matrix")
}

#' @export
`$<-.gram` <- function(x, name, value) refuse_change()

#' @export
`[[<-.gram` <- function(x, i, value) refuse_change()

#' @export
`[<-.gram` <- function(x, ..., value) refuse_change()

# Symmetric, and not clearly indefinite; symmetrized exactly if need be.
check_gram <- function(k, name) {
  largest <- max(abs(k))
  defect <- max(abs(k - t(k)))
  if (defect > 1e-8 * largest) {
    stop_input(
      name, " must be symmetric; its entries differ from those of its ",
      "transpose by up to ", format_number(defect)
    )
  }
  if (defect > 0) {
    k <- (k + t(k)) / 2
  }
  shift <- sqrt(.Machine$double.eps) * max(abs(k)) * nrow(k)
  if (largest > 0 && is.null(cholesky(k, shift))) {
    clip_values(spectrum_values(k), name = name)
  }
  k
}

#' @rdname gram
#' @export
gram_spectrum <- function(g, what = c("values", "projections", "vectors")) {
  if (!inherits(g, "gram")) {
    stop_input("'g' must be a gram, not ", describe(g))
  }
  what <- check_choice(what, c("values", "projections", "vectors"), "what")
  spectrum(g, what)
}

#' @export
print.gram <- function(x, ...) {
  n <- nrow(x$K)
  size <- format_bytes(8 * n^2)
  cat("Gram matrix, ", n, " x ", n, " (", size, ")\n", sep = "")
  say(kernel_lines(x$kernel), describe_shrunk(x))
  print_known(x)
  invisible(x)
}

# What has been computed so far.
print_known <- function(x) {
  known <- c(
    values = "eigenvalues", projections = "projections of the mean",
    vectors = "eigenvectors", cholesky = "Cholesky factor"
  )
  have <- known[intersect(names(known), names(x))]
  cat("computed so far: ",
      if (length(have)) paste(have, collapse = ", ") else "the matrix only",
      "\n", sep = "")
}

#' @export
dim.gram <- function(x) dim(x$K)

#' @export
dimnames.gram <- function(x) dimnames(x$K)

#' @export
`[.gram` <- function(x, ...) {
  refuse <- \(e) {
    stop_input("the indices of a gram must be those of a matrix; ",
               conditionMessage(e))
  }
  values <- tryCatch(x$K[...], error = refuse, warning = refuse)
  if (anyNA(values)) {
    stop_input("the indices of a gram must have no missing values")
  }
  values
}

#' @export
summary.gram <- function(object, ...) {
  check_dots(...)
  values <- spectrum(object, "values")$values
  structure(list(gram = object, values = values, trace = sum(values),
                 rank = sum(values > 0)),
            class = "summary.gram")
}

#' @export
print.summary.gram <- function(x, digits = max(3L, getOption("digits") - 3L),
                               ...) {
  digits <- check_digits(digits)
  print(x$gram)
  cat("rank ", x$rank, ", trace ", format(x$trace, digits = digits),
      "\neigenvalues ",
      paste(format_number(utils::head(x$values, 5L), digits), collapse = " "),
      if (length(x$values) > 5L) " ...", "\n", sep = "")
  invisible(x)
}

#' @export
as.matrix.gram <- function(x, ...) check_finite(x$K, "x$K")

fit_picture.gram <- function(object, type = NULL) {
  check_type(type, "spectrum")
  values <- spectrum(object, "values")$values
  shown <- values > 0
  if (!any(shown)) {
    stop_input("'x' must have a positive eigenvalue to be plotted")
  }
  # Values of 0 have no place on a logarithmic axis.
  picture <- picture_sequence("Gram matrix spectrum", values[shown],
                              "eigenvalue", which(shown))
  picture$log <- "y"
  picture$value <- values
  picture
}

# Eigenvalues below n eps gamma_1 are 0; clearly negative ones are an error.
# scale: the size of what the entries are differences of, if they are.
clip_values <- function(values, scale = NULL, name = "the Gram matrix") {
  check_result(values, "an eigenvalue")
  top <- max(values, 0)
  least <- min(values)
  small <- if (is.null(scale)) {
    length(values) * .Machine$double.eps * top
  } else {
    rounding_of(length(values), max(top, scale))
  }
  if (least < -max(sqrt(.Machine$double.eps) * top, small)) {
    stop_input(
      name, " must be positive semi-definite; its smallest eigenvalue is ",
      format_number(least), ", its largest ", format_number(max(values))
    )
  }
  values[values < small] <- 0
  values
}

# An eigenvalue below this is rounding of an n x n matrix whose entries were
# made of terms of this size.
rounding_of <- function(n, scale) {
  max(max(n, 32) * .Machine$double.eps * scale, .Machine$double.xmin)
}

# T and the reflectors of K = QTQ', Qe_1 = e/sqrt(n).
tridiagonal <- function(g) {
  UseMethod("tridiagonal")
}

tridiagonal.gram <- function(g) {
  if (is.null(g$tridiagonal)) {
    check_memory(nrow(g$K), nrow(g$K), "use fewer rows")
    remember(g, tridiagonal = .Call(C_r_tridiag, g$K))
  }
  g$tridiagonal
}

spectrum_values <- function(k) {
  t <- .Call(C_r_tridiag, k)
  .Call(C_r_tridiag_spectrum, t$diagonal, t$off, FALSE)$values
}

# list(values, projections, vectors), filled as far as `what` asks.
spectrum <- function(g, what) {
  UseMethod("spectrum")
}

spectrum.gram <- function(g, what) {
  if (is.null(g[[what]])) {
    found <- find_spectrum(g, what)
    found$values <- clip_values(found$values, g$scale)
    do.call(remember, c(list(g), found))
  }
  list(
    values = g$values,
    projections = if (what != "values") g$projections,
    vectors = if (what == "vectors") g$vectors
  )
}

find_spectrum <- function(g, what) {
  n <- nrow(g$K)
  if (what == "vectors") {
    check_memory(n, n, "use fewer rows", copies = 3)
    found <- .Call(C_r_eigen, g$K, n)
    found$projections <- abs(colMeans(found$vectors))
    return(found)
  }
  t <- tridiagonal(g)
  found <- .Call(C_r_tridiag_spectrum, t$diagonal, t$off, what != "values")
  if (what == "projections") {
    return(list(values = found$values, projections = found$first / sqrt(n)))
  }
  found["values"]
}

# No more is kept of a gram than there was.
largest_eigenvalue <- function(g) {
  if (is.null(g$values)) max(0, spectrum_values(g$K)[1L]) else g$values[1L]
}

# K^c_ij = K_ij - m_i - m_j + |mu|^2 of a matrix, list(k, at: m, norm2: |mu|^2);
# by default m holds the row means and |mu|^2 their mean.
center_matrix <- function(k, at = NULL, norm2 = NULL) {
  check_memory(nrow(k), nrow(k), "use fewer rows")
  center_source(native_source(NULL, k), at, norm2)
}

# The same of what native_source() makes.
center_source <- function(source, at = NULL, norm2 = NULL) {
  found <- .Call(C_r_centered, source, at, norm2)
  if (!is.finite(sum(diag(found$k)))) {
    stop_kernmean("numeric", "kernel values overflow when they are centered; ",
                  "rescale them or the columns of 'x'")
  }
  found
}

# The lower L of K + lambda I = LL', which is kept; NULL if that matrix is not
# positive definite to rounding.
cholesky_factor <- function(g, lambda) {
  if (is.null(g$cholesky$lower) || g$cholesky$lambda != lambda) {
    check_memory(nrow(g$K), nrow(g$K), "use fewer rows")
    lower <- cholesky(g$K, lambda)
    if (is.null(lower)) {
      return(NULL)
    }
    remember(g, cholesky = list(lambda = lambda, lower = lower))
  }
  g$cholesky$lower
}

# (K + lambda I)^{-1} b by it.
cholesky_solve <- function(g, lambda, b) {
  lower <- cholesky_factor(g, lambda)
  if (!is.null(lower)) solve_factored(lower, b)
}

# Columns positive at their first entry within 1e-8 of the largest in absolute
# value (km_eigen's rule), so that results do not depend on the LAPACK at hand.
fix_signs <- function(v) {
  turned <- apply(v, 2, \(u) u[which(abs(u) >= (1 - 1e-8) * max(abs(u)))[1L]])
  v * rep(ifelse(turned < 0, -1, 1), each = nrow(v))
}

# For an object fitted on a gram of kernel values: those of m new points and the
# n points of the sample, m x n.
check_kernel_values <- function(newdata, gram) {
  n <- nrow(gram$K)
  values <- check_data(newdata, "newdata")
  if (ncol(values) != n) {
    stop_input(
      "'newdata' must hold the kernel values of new points and the ", n,
      " points of the sample, one column for each, not ", ncol(values),
      if (ncol(values) == 1L) " column" else " columns"
    )
  }
  new_gram_values(gram, values)
}

# The values of new points as those off the diagonal of the matrix are made.
new_gram_values <- function(g, values) {
  UseMethod("new_gram_values")
}

new_gram_values.gram <- function(g, values) values

# What print() says of how the matrix was made.
describe_shrunk <- function(g) {
  UseMethod("describe_shrunk")
}

describe_shrunk.gram <- function(g) NULL

# Have new points a k(z, z) that belongs to the matrix?
check_true_values <- function(g) {
  UseMethod("check_true_values")
}

check_true_values.gram <- function(g) NULL

# K^+ b
solve_spectrum <- function(g, b) {
  s <- spectrum(g, "vectors")
  inverse <- ifelse(s$values > 0, 1 / s$values, 0)
  drop(s$vectors %*% (inverse * crossprod(s$vectors, b)))
}

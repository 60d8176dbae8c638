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
#' environment, a copy by `<-` is the same object; `saveRDS()` stores all of it.
#' `as.matrix()` gives the matrix, `[` a part of it, `summary()` its
#' eigenvalues.
#'
#' @param x Points in rows: a numeric matrix, a data frame of numeric columns or
#'   a vector (one column).
#' @param kernel A kernel, such as [kernel_rbf()].
#' @param K A symmetric positive semi-definite matrix of kernel values.
#' @param what `"values"`, `"projections"` or `"vectors"`: how much of the
#'   spectrum is wanted.
#' @param g A `gram`.
#' @param ... Must be empty; in `plot()`, passed to [plot.default()].
#' @return `gram()` and `as_gram()` return an object of class `gram` with the
#'   fields `K`, `kernel` and `x` (both `NULL` from `as_gram()`).
#'   `gram_spectrum()` returns a list: `values` (decreasing), with
#'   `"projections"` also `projections` (\eqn{w_j \ge 0}{w_j >= 0}), with
#'   `"vectors"` also `vectors`, n by n, each positive at its first entry of
#'   largest absolute value.
#'
#' @details `gram()` takes O(n^2 d) time and 8n^2 bytes; a matrix that would not
#' fit in memory is refused before it is allocated. `as_gram()` refuses a matrix
#' that is not symmetric to 1e-8 of its largest entry, or that has a clearly
#' negative eigenvalue; it tries a Cholesky factorisation, O(n^3/3). The values
#' and the projections take 4n^3/3 flops and another 8n^2 bytes (the
#' reflectors), the vectors about 9n^3 and 8n^2 bytes.
#' @seealso [kme()], which takes a `gram` in place of data.
#' @family kernels
#' @examples
#' g <- gram(scale(iris[, 1:4]), kernel_rbf())
#' g
#' kme(g, estimator = "skmse")
#' kme(g, estimator = "fkmse")
#' plot(g)
#' @export
gram <- function(x, kernel = kernel_rbf(), ...) {
  check_dots(...)
  if (missing(x)) stop_input("'x' must be given: the sample")
  kernel <- check_kernel(kernel)
  x <- check_data(x)
  warn_symmetric(x)
  form_gram(x, kernel)
}

form_gram <- function(x, kernel) {
  check_memory(
    nrow(x), nrow(x), "use fewer rows, or kme() with the estimator \"kme\" or ",
    "\"skmse\", which stores no matrix"
  )
  kernel <- fit_kernel(kernel, x)
  k <- fold_store(kernel, x)
  if (kernel$family == "function") {
    k <- check_gram(k, "the matrix of kernel values")
  }
  new_gram(k, kernel, x)
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
  new_gram(check_gram(K, "'K'"))
}

new_gram <- function(k, kernel = NULL, x = NULL) {
  g <- new.env(parent = emptyenv())
  g$K <- k
  g$kernel <- kernel
  g$x <- x
  structure(g, class = "gram")
}

# Symmetric, and not clearly indefinite; symmetrised exactly if need be.
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
  if (largest > 0 && is.null(.Call(C_r_cholesky, k, shift))) {
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
  if (!is.null(x$kernel)) {
    cat(format_kernel(x$kernel), "\n", sep = "")
  }
  if (!is.null(x$lambda)) {
    cat("centred and shrunk: lambda = ", format_number(x$lambda), ", p = ",
        format_number(x$p), "\n", sep = "")
  }
  known <- c(
    values = "eigenvalues", projections = "projections of the mean",
    vectors = "eigenvectors", cholesky = "Cholesky factor"
  )
  have <- known[intersect(names(known), names(x))]
  cat("computed so far: ",
      if (length(have)) paste(have, collapse = ", ") else "the matrix only",
      "\n", sep = "")
  invisible(x)
}

#' @export
dim.gram <- function(x) dim(x$K)

#' @export
`[.gram` <- function(x, ...) x$K[...]

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
  print(x$gram)
  cat("rank ", x$rank, ", trace ", format(x$trace, digits = digits),
      "\neigenvalues ",
      paste(format_number(utils::head(x$values, 5L), digits), collapse = " "),
      if (length(x$values) > 5L) " ...", "\n", sep = "")
  invisible(x)
}

#' @export
as.matrix.gram <- function(x, ...) x$K

#' @rdname gram
#' @param y Must be missing.
#' @export
plot.gram <- function(x, y, ...) {
  check_no_y(missing(y))
  values <- spectrum(x, "values")$values
  shown <- values > 0
  if (!any(shown)) {
    stop_input("'x' must have a positive eigenvalue to be plotted")
  }
  arguments <- utils::modifyList(
    list(
      x = which(shown), y = values[shown], log = "y", type = "o", pch = 20,
      xlab = "index", ylab = "eigenvalue", main = "Gram matrix spectrum"
    ),
    list(...)
  )
  do.call(graphics::plot, arguments)
  invisible(values)
}

# The shelf gram_: Gram matrices, their spectra, and shrinkage of them.
#
# Offers from gram_gram.R: center_gram, check_gram, clip_values,
#   fit_summary.gram, form_gram, gram_note, new_gram, new_identity,
#   principal_gram, read_distances, rounding_of, seal_gram, solve_spectrum,
#   spectrum, spectrum_values, tridiagonal.
# Offers from gram_shrink.R: matrix_shrinkage, shrinkage_of.
# Offers from gram_ridge.R: new_functional, new_ridge, ridge_debiased,
#   ridge_inverse, ridge_left_out, ridge_solve.

#' Gram matrix with its spectrum
#'
#' A Gram matrix that remembers what has been computed of its spectrum, so that
#' several estimators on the same data pay for it once.
#'
#' The object is an environment that holds the matrix and fills in, when it is
#' first needed: the eigenvalues; with them the projections \eqn{w_j =
#' |u_j'1_n|}{w_j = |u_j'1_n|}, \eqn{1_n = (1/n, \ldots, 1/n)'}{1_n = (1/n, ...,
#' 1/n)'} (a tridiagonal reduction, several times cheaper than the
#' eigenvectors); the eigenvectors; a Cholesky factor of \eqn{K + \lambda I}{K +
#' lambda I}. Eigenvalues below \eqn{n \epsilon \gamma_1}{n eps gamma_1} are 0
#' (\eqn{\epsilon}{eps} the machine precision); one below
#' \eqn{-\sqrt\epsilon\, \gamma_1}{-sqrt(eps) gamma_1} is an error. A copy by
#' `<-` is the same object, `saveRDS()` stores all of it, and its fields cannot
#' be changed. `as.matrix()` gives the matrix, `[` a part of it, `summary()` its
#' eigenvalues.
#'
#' @section Distances:
#' Of distances `d`, a `dist` object, `gram(d)` is the matrix of the inner
#' products of their principal coordinates (multidimensional scaling),
#' \eqn{-HD^2H/2}{-H D^2 H/2} with \eqn{H = I - ee'/n}{H = I - e e'/n}, so that
#' the scores of `kme_pca(d)` are those of [stats::cmdscale()] up to signs.
#' Distances that are not Euclidean, as Bray and Curtis's, have negative
#' eigenvalues, in whose place 0 is put (`repair = "clip"`, and the print says
#' so). [kme_pca()] and [kme_fda()] take `d` itself, others `gram(d)`; new
#' points have no place there. Tests take `d` itself with the kernel
#' \eqn{-D_{ij}}{-D_ij} of the energy statistics, see [mmd_test()].
#'
#' @param x Points in rows: a numeric matrix, a data frame (factors among its
#'   columns: [kernel_gower()]) or a vector (one column); or distances, see
#'   below.
#' @param kernel A kernel, such as [kernel_rbf()].
#' @param scale The units of the columns, see [units].
#' @param K A symmetric positive semi-definite matrix of kernel values; its row
#'   names are those of the points.
#' @param repair `NULL`, or what makes a matrix positive semi-definite that is
#'   not, as similarities of strings or series often are: `"clip"` puts 0 in
#'   place of negative eigenvalues (the nearest such matrix), `"shift"` adds as
#'   much to the diagonal as the smallest lacks.
#' @param what `"values"`, `"projections"` or `"vectors"`: how much of the
#'   spectrum is wanted.
#' @param g A `gram`.
#' @param ... Must be empty; in `plot()`, see [plot.kernmean_fit()].
#' @return `gram()` and `as_gram()` return an object of class `gram` with the
#'   fields `K`, `kernel` and `x`, the points as the kernel takes them (both
#'   `NULL` from `as_gram()`), and `raw`, as they were given, where these
#'   differ. Where a repair changed the matrix, its field `repair` is a list of
#'   `type`, the number of `negative` eigenvalues, the `least`, and the `change`
#'   in units of the matrix (Frobenius norms). `gram_spectrum()` returns a list:
#'   `values` (decreasing), with `"projections"` also `projections`
#'   (\eqn{w_j \ge 0}{w_j >= 0}), with `"vectors"` also `vectors`, n by n, each
#'   positive at its first entry of largest absolute value.
#'
#' @details `gram()` takes O(n^2 d) time and 8n^2 bytes; a matrix that would not
#' fit in memory is refused before it is allocated. `as_gram()` refuses a matrix
#' that is not symmetric to 1e-8 of its largest entry, or that has a clearly
#' negative eigenvalue; it tries a Cholesky factorization, O(n^3/3). A repair
#' takes the eigenvectors, and kernel values of new points as they are. The
#' values and the projections take 4n^3/3 flops and another 8n^2 bytes (the
#' reflectors), the vectors about 6n^3 and 8n^2 bytes, three times that on the
#' way.
#' @seealso [glossary]; [kme()], which takes a `gram` in place of data.
#' @examples
#' g <- gram(iris[, 1:4], kernel_rbf(), scale = TRUE)
#' g
#' kme(g, estimator = "skmse")
#' kme(g, estimator = "fkmse")
#' plot(g)
#'
#' # Strings by their edit distance
#' apart <- utils::adist(rownames(mtcars))
#' cars <- as_gram(exp(-(apart / 10)^2), repair = "clip")
#' cars
#' @export
gram <- function(x, kernel = kernel_rbf(), ..., scale = FALSE) {
  asked <- request(gram_arguments)
  if (inherits(x, "dist")) {
    if (!is.null(asked$kernel) || asks_scale(asked$scale)) {
      stop_input("'kernel' and 'scale' must not be given for distances, whose ",
                 "points are not known")
    }
    return(principal_gram(x))
  }
  x <- read_points(x)
  units <- fit_units(kernel_of(x, asked$kernel), x, asked$scale)
  seal_gram(form_gram(units$x, units$kernel, units$raw))
}

gram_arguments <- door_table("gram", x = anything,
                             kernel = unless_given(a_kernel),
                             scale = unless_given(a_scale))

# The n x n matrix of the distances of a dist object.
read_distances <- function(x, name = "x") {
  n <- attr(x, "Size")
  if (!is.numeric(x) || length(n) != 1L || length(x) != n * (n - 1) / 2) {
    stop_input("'", name, "' must be a dist object with a distance for each ",
               "pair of points, not ", length(x), " values")
  }
  check_finite(x, name)
  if (any(x < 0)) {
    stop_input("'", name, "' must hold distances, none negative, not ",
               sum(x < 0), " negative ones")
  }
  check_memory(n, n, "use fewer points", copies = 3)
  unname(as.matrix(x))
}

# The gram of the principal coordinates of distances. Anything but a dist object
# is returned as it is.
principal_gram <- function(x) {
  if (!inherits(x, "dist")) {
    return(x)
  }
  k <- center_gram(-read_distances(x)^2 / 2)$k
  fixed <- repair_gram(k, "clip")
  if (!is.null(attr(x, "Labels"))) {
    dimnames(fixed$k) <- rep(list(attr(x, "Labels")), 2L)
  }
  g <- new_gram(fixed$k)
  g$repair <- fixed$repair
  g$coordinates <- TRUE
  seal_gram(g)
}

# The gram of points in the units of a fitted kernel; `origin` is that of the
# kernel, see new_sample().
form_gram <- function(x, kernel, raw = NULL, origin = NULL) {
  k <- fold_store(kernel, x, NULL, origin)
  if (kernel_has(kernel, "function")) {
    k <- check_gram(k, "the matrix of kernel values")
  }
  new_gram(k, kernel, x, raw)
}

#' @rdname gram
#' @export
as_gram <- function(K, ..., repair = NULL) {
  check_dots(...)
  check_given(K)
  repair <- take(repair, maybe(choice("clip", "shift")))
  if (inherits(K, "gram")) {
    return(K)
  }
  K <- plain_matrix(K, "K")
  if (!is.matrix(K) || !is.numeric(K) || nrow(K) != ncol(K) || nrow(K) < 1L) {
    stop_input("'K' must be a square numeric matrix, not ", describe(K),
               way_to_numbers(K))
  }
  check_finite(K, "K")
  K <- unclass_matrix(K)
  storage.mode(K) <- "double"
  if (max(abs(K)) > 0 && all(diag(K) == 0) && min(K) == 0) {
    stop_input("'K' must hold kernel values and looks like distances D, with ",
               "0 on its diagonal; gram(as.dist(D)) has their principal ",
               "coordinates, and exp(-D^2/(2 s^2)) makes kernel values, too")
  }
  if (is.null(repair)) {
    hint <- "; repair = \"clip\" or \"shift\" makes it so"
    return(seal_gram(new_gram(check_gram(K, "'K'", hint))))
  }
  K <- check_symmetric(K, "'K'")
  fixed <- repair_gram(K, repair)
  g <- new_gram(fixed$k)
  g$repair <- fixed$repair
  seal_gram(g)
}

# The symmetric matrix k without its negative eigenvalues, and `repair`, what
# the user sees of that. To clip is to replace these eigenvalues by 0, which
# gives the nearest matrix. To shift is to add a number to the diagonal that
# makes the smallest eigenvalue 0, which keeps the other entries.
repair_gram <- function(k, type) {
  n <- nrow(k)
  check_memory(n, n, "use fewer rows", copies = 3)
  pairs <- .Call(C_r_eigen, k, n)
  values <- pairs$values
  low <- which(values < -rounding_of(n, max(abs(values))))
  if (!length(low)) {
    return(list(k = k))
  }
  fixed <- if (type == "shift") {
    k - diag(min(values), n)
  } else {
    v <- take_columns(pairs$vectors, low)
    k + tcross(v * rep(sqrt(-values[low]), each = n))
  }
  list(k = fixed, repair = list(
    type = type, negative = length(low), least = min(values),
    change = sqrt(sum((fixed - k)^2) / sum(k^2))
  ))
}

# A gram, an environment. Other fields come as they are computed: values,
# projections and vectors of the spectrum, tridiagonal; id once it is sealed.
#   K         n x n matrix of kernel values
#   kernel,   the fitted kernel and the points as it takes them, n x d; NULL
#   x         where only values are known
#   raw       the points in the units of the user, absent where these are x
#   repair    what as_gram() changed to make K positive semi-definite
#   coordinates  TRUE if K holds principal coordinates of distances
#   intensity, target, centered, at, norm2  of shrink_gram(): how far the gram
#             `centered` is shrunk towards which multiple of I, with the row
#             means and the squared norm that centering took away
#   scale     the size of the terms that the entries are differences of
new_gram <- function(k, kernel = NULL, x = NULL, raw = NULL, class = NULL) {
  g <- new.env(parent = emptyenv())
  g$K <- k
  g$kernel <- kernel
  g$x <- x
  if (!is.null(raw)) g$raw <- raw
  new_fit(c(class, "gram"), g)
}

# The gram for the user: its fields cannot be changed any more, and it has an
# identity that survives saving.
seal_gram <- function(g) {
  g$id <- new_identity()
  for (field in intersect(c("K", "kernel", "x", "raw", "id", "repair",
                            "coordinates"), names(g))) {
    lockBinding(field, g)
  }
  g
}

identities <- new.env(parent = emptyenv())
identities$made <- 0

# A name that nothing else has, here or in another session.
new_identity <- function() {
  identities$made <- identities$made + 1
  paste(Sys.getpid(), format(as.numeric(Sys.time()), digits = 17),
        identities$made)
}

# The matrix made exactly symmetric; an error if it differs from its transpose
# by more than rounding.
check_symmetric <- function(k, name) {
  largest <- max(abs(k))
  defect <- max(abs(k - t(k)))
  if (defect > 1e-8 * largest) {
    stop_input(
      name, " must be symmetric; its entries differ from those of its ",
      "transpose by up to ", format_number(defect)
    )
  }
  if (defect > 0) (k + t(k)) / 2 else k
}

# The matrix made exactly symmetric; an error if it is clearly indefinite.
check_gram <- function(k, name, hint = NULL) {
  k <- check_symmetric(k, name)
  largest <- max(abs(k))
  shift <- sqrt(.Machine$double.eps) * largest * nrow(k)
  if (largest > 0 && is.null(cholesky(k, shift))) {
    clip_values(spectrum_values(k), name = name, hint = hint)
  }
  k
}

#' @rdname gram
#' @export
gram_spectrum <- function(g, what = c("values", "projections", "vectors")) {
  check_given(g)
  take(g, is_a("gram", "a gram"))
  spectrum(g, take(what, choice("values", "projections", "vectors")))
}

fit_lines.gram <- function(x, digits) {
  n <- nrow(x$K)
  c(paste0("Gram matrix, ", n, " x ", n, " (", format_bytes(8 * n^2), ")"),
    kernel_lines(x$kernel),
    if (!is.null(x$intensity)) paste0(
      "centered and shrunk: intensity = ", format_number(x$intensity),
      ", p = ", format_number(x$p)
    ),
    gram_note(x))
}

# Lines of print() on a gram of distances, and on a repair; NULL without these.
gram_note <- function(g) {
  c(if (!is.null(g$coordinates)) "principal coordinates of distances",
    if (!is.null(g$repair)) strwrap(paste0(
      "repair = \"", g$repair$type, "\": ",
      count_of(g$repair$negative, "negative eigenvalue"), ", down to ",
      format_number(g$repair$least), "; the matrix changed by ",
      format_number(100 * g$repair$change, 2L), "%"
    ), 81L, exdent = 2L))
}

fit_facts.gram <- \(x) c(list(nobs = nrow(x$K)), kernel_columns(x$kernel))

fit_summary.gram <- function(x) {
  values <- spectrum(x, "values")$values
  list(size = paste0("rank ", sum(values > 0), ", trace ",
                     format_number(sum(values))),
       eigenvalues = data.frame(value = values))
}

#' @export
dim.gram <- function(x) dim(x$K)

#' @export
dimnames.gram <- function(x) dimnames(x$K)

#' @export
`[.gram` <- function(x, ...) x$K[...]

#' @export
as.matrix.gram <- function(x, ...) x$K

fit_picture.gram <- function(object, type = NULL) {
  check_type(type, "spectrum")
  values <- spectrum(object, "values")$values
  shown <- values > 0
  if (!any(shown)) {
    stop_input("'x' must have a positive eigenvalue to be plotted")
  }
  # A logarithmic axis cannot show values of 0.
  picture <- picture_sequence("Gram matrix spectrum", values[shown],
                              "eigenvalue", which(shown))
  picture$log <- "y"
  picture$value <- values
  picture
}

# The n eigenvalues of a matrix, with 0 in place of those that are rounding,
# below n eps times the largest; clearly negative ones are an error. scale: if
# the entries are differences, the size of their terms, with which rounding_of()
# finds what is rounding.
clip_values <- function(values, scale = NULL, name = "the Gram matrix",
                        hint = NULL) {
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
      format_number(least), ", its largest ", format_number(max(values)), hint
    )
  }
  values[values < small] <- 0
  values
}

# An eigenvalue below this is rounding, in an n x n matrix whose entries are
# sums and differences of terms of size `scale`. An entry has the error of a sum
# of products, of two row means and of their difference; the error of a mean is
# the same in a whole row. The largest error that was measured is 1.9 n eps
# scale for 5 rows or more of up to 200 columns, and 90 eps scale for 20 rows of
# 5,000.
rounding_of <- function(n, scale) {
  max(4 * max(n, 32) * .Machine$double.eps * scale, .Machine$double.xmin)
}

# The tridiagonal matrix T (diagonal, off) of K = QTQ' and the reflectors of Q,
# whose first column is e/sqrt(n), where e is the vector of ones. A shrunk gram
# has the reflectors of the centered one.
tridiagonal <- function(g) {
  if (is.null(g$tridiagonal)) {
    check_memory(nrow(g$K), nrow(g$K), "use fewer rows")
    g$tridiagonal <- if (is.null(g$intensity)) {
      .Call(C_r_tridiag, g$K)
    } else {
      t <- tridiagonal(g$centered)
      t$diagonal <- shrink_values(g, t$diagonal)
      t$off <- (1 - g$intensity) * t$off
      t
    }
  }
  g$tridiagonal
}

# The eigenvalues of a symmetric matrix, decreasing.
spectrum_values <- function(k) {
  t <- .Call(C_r_tridiag, k)
  .Call(C_r_tridiag_spectrum, t$diagonal, t$off, FALSE)$values
}

# The spectrum of a gram, as far as `what` asks for it; the gram keeps it.
#   values       the n eigenvalues, decreasing
#   projections  |u_j'1_n| for each eigenvector u_j
#   vectors      n x n matrix of the eigenvectors
#   range        the same without those of eigenvalue 0, where these are many
spectrum <- function(g, what) {
  if (what == "range" && !is.null(g$vectors %||% g$intensity)) {
    what <- "vectors"
  }
  if (is.null(g[[what]])) {
    if (is.null(g$intensity)) {
      pairs <- find_spectrum(g, what)
    } else {
      pairs <- Filter(length, spectrum(g$centered, what))
      pairs$values <- shrink_values(g, pairs$values)
    }
    pairs$values <- clip_values(pairs$values, g$scale)
    list2env(pairs, g)
  }
  list(
    values = g$values,
    projections = if (what != "values") g$projections,
    vectors = if (what %in% c("vectors", "range")) g[[what]]
  )
}

find_spectrum <- function(g, what) {
  n <- nrow(g$K)
  if (what %in% c("vectors", "range")) {
    check_memory(n, n, "use fewer rows", copies = 3)
    if (what == "range") {
      return(stats::setNames(.Call(C_r_range, g$K), c("values", what)))
    }
    pairs <- .Call(C_r_eigen, g$K, n)
    return(c(pairs, list(projections = abs(colMeans(pairs$vectors)))))
  }
  t <- tridiagonal(g)
  pairs <- .Call(C_r_tridiag_spectrum, t$diagonal, t$off, what != "values")
  c(pairs["values"],
    if (what == "projections") list(projections = pairs$first / sqrt(n)))
}

# The centered matrix k, with K_ij - m_i - m_j + |mu|^2 in place of K_ij; `at`,
# the m_i; and `norm2`, |mu|^2. If they are not given, these are the row means
# and the mean of the row means. `source` is a matrix or a source of the core.
center_gram <- function(source, at = NULL, norm2 = NULL) {
  if (is.matrix(source)) {
    check_memory(nrow(source), nrow(source), "use fewer rows")
    source <- native_source(NULL, source)
  }
  centered <- .Call(C_r_centered, source, at, norm2)
  if (!is.finite(sum(diag(centered$k)))) {
    stop_kernmean("numeric", "kernel values overflow when they are centered; ",
                  "rescale them or the columns of 'x'")
  }
  centered
}

# (K + lambda I)^{-1} (b + aKe) for the vector e of ones, with the
# pseudo-inverse where lambda is 0.
solve_spectrum <- function(g, b, lambda = 0, a = 0) {
  s <- spectrum(g, "range")
  u <- s$vectors
  values <- s$values[seq_len(ncol(u))]
  along <- drop(crossprod(u, b))
  moved <- ifelse(values + lambda > 0, 1 / (values + lambda), 0) *
    (a * values * colSums(u) + along)
  if (lambda == 0 || ncol(u) == nrow(u)) {
    return(drop(u %*% moved))
  }
  # Where b lies in the range of K the rest is rounding, which is divided by
  # lambda: it is projected twice.
  rest <- b - drop(u %*% along)
  drop(u %*% moved) + (rest - drop(u %*% crossprod(u, rest))) / lambda
}

# The eigenvalues of a shrunk gram from those of the centered one.
shrink_values <- function(g, values) {
  (1 - g$intensity) * values + g$intensity * g$target
}

# The shelf kernel_: kernel objects, kernels fitted to data, their values, and
# folds over tiles, which are the border to C.
#
# Offers from kernel_kernel.R: a_kernel, bandwidth_set, check_definite,
#   describe_factors, describe_scaling, flat_diagonal, format_kernel,
#   kernel_has, kernel_lines, kernel_of, kernel_parts, new_kernel,
#   same_kernel, several_positive, squared_kernel.
# Offers from kernel_tile.R: block_means, check_overflow, fold, fold_apply,
#   fold_diagonal, fold_rows, fold_store, native_source, row_panels.
# Offers from kernel_fit.R: differ_in_names, fit_kernel, fit_units,
#   median_bandwidth, positive_distances, power_of_two.
# Offers from kernel_mixture.R: check_closed_form, check_covariances,
#   check_mixture, component_at, components_of, draw_mixture,
#   gaussian_gram, is_each, mixture_at, mixture_inner, noise_matrix,
#   pair_values.

#' Kernels
#'
#' Kernels are small objects that know their formula and how their bandwidth is
#' to be chosen.
#'
#' With \eqn{u = (x - y)/\theta}{u = (x - y)/theta}, coordinate by coordinate:
#' \describe{
#'   \item{`kernel_rbf()`}{\eqn{\exp(-\|u\|^2/2)}{exp(-|u|^2/2)}, the Gaussian
#'     kernel}
#'   \item{`kernel_laplace()`}{\eqn{\exp(-\sum_l |u_l|)}{exp(-sum |u_l|)} for
#'     `norm = "L1"`, \eqn{\exp(-\|u\|)}{exp(-|u|)} for `norm = "L2"`}
#'   \item{`kernel_matern()`}{with \eqn{r = \|u\|}{r = |u|}: \eqn{\exp(-r)}{
#'     exp(-r)} for `nu = 1/2`, \eqn{(1 + \sqrt3 r)\exp(-\sqrt3 r)}{(1 + sqrt(3)
#'     r) exp(-sqrt(3) r)} for `nu = 3/2`, \eqn{(1 + \sqrt5 r +
#'     5r^2/3)\exp(-\sqrt5 r)}{ (1 + sqrt(5) r + 5 r^2/3) exp(-sqrt(5) r)} for
#'     `nu = 5/2`}
#'   \item{`kernel_poly()`}{\eqn{(x'y + \mathrm{offset})^{\mathrm{degree}}}{
#'     (x'y + offset)^degree}}
#'   \item{`kernel_linear()`}{\eqn{x'y}{x'y}}
#'   \item{`kernel_energy()`}{\eqn{-\|x - y\|}{-|x - y|}, conditionally positive
#'     definite: for tests only, refused by [kme()]}
#'   \item{`kernel_function()`}{any positive definite kernel as an R function of
#'     two matrices}
#'   \item{`kernel_gower()`}{of numeric columns and factors together, see
#'     [kernel_gower()]}
#' }
#'
#' `"median"` sets \eqn{\theta}{theta} to the root of the median of \eqn{\|x_i -
#' x_j\|^2}{|x_i - x_j|^2} over all pairs of points (for the L1 Laplace kernel,
#' the median of the L1 distances). Up to 20,000 points the median is exact,
#' found in memory O(n) by counting over a few passes; above, it is the median
#' of \eqn{10^6} pairs drawn at random with replacement by R's generator, and
#' `print()` says so. If the median is zero, as of columns that are zero more
#' often than not, it is the median of the positive distances, and the print
#' says that; if all points are equal, 1.
#'
#' The exponential is accurate to 2 units in the last place.
#'
#' @section Sums and products:
#' Kernels add, and multiply with each other and with positive numbers:
#' `kernel_rbf(columns = c("a", "b")) + 2 * kernel_linear(columns = "c")`. Each
#' part sees its `columns`, in the units of `scale` where that is given; a
#' bandwidth that is to be chosen is chosen from these alone. Products are
#' multiplied out, and a sum takes the time of its parts.
#'
#' Whatever evaluates kernels takes them. What needs a closed form of one
#' Gaussian kernel (MKME and MMKME, smoothing, densities, pre-images) or one
#' bandwidth to vary (`bandwidths`) refuses them, and so
#' any kernel with `columns`: there `x[, columns]` does the same. Embeddings of
#' Gaussian mixtures are known for sums of RBF kernels and of polynomials up to
#' degree 3. [kernel_energy()], [kernel_function()] and [kernel_gower()] do not
#' take part.
#'
#' @section Which kernel, which bandwidth:
#' The median distance is the scale of the whole sample; what happens at a finer
#' one is smoothed away. `bandwidths` of [mmd_test()] and [kme_density()] and
#' the search of [kme_fda()] look at others. In tests Laplace kernels are the
#' best all-rounders.
#'
#' @section Other software:
#' Kernlab's `sigma` and scikit-learn's `gamma` are
#' \eqn{1/(2\theta^2)}{1/(2 theta^2)}.
#'
#' @param bandwidth \eqn{\theta}{theta} in the formula: a positive number, one
#'   positive number for each column (by name where both have names),
#'   `"median"`, or a function of the data matrix that returns such numbers.
#'   In the units of `scale` where that is given, see [units].
#' @param columns The columns that the kernel sees, by names or numbers; `NULL`
#'   for all.
#' @param norm `"L1"` or `"L2"`.
#' @param nu Smoothness: 1/2, 3/2 or 5/2.
#' @param degree Degree, a whole number of at least 1.
#' @param offset Offset, a number of at least 0.
#' @param f A function of two matrices with the same columns, `f(x, y)`, that
#'   returns the `nrow(x)` by `nrow(y)` matrix of kernel values. It is called on
#'   blocks of rows, of one row each for values \eqn{k(x, x)}{k(x, x)} alone.
#'   [kme()] checks on 30 of the points that it is a kernel; [gram()] and what
#'   stores the matrix check all of it.
#' @param x A kernel (for `print()`).
#' @param ... Must be empty; for `print()` ignored.
#' @return An object of class `kernmean_kernel`, a list; the field `bandwidth`
#'   holds what was given. The kernel of a fit, `fit$kernel`, holds the number
#'   that was used. A sum of products, or a kernel with `columns`, has `parts`:
#'   a list of kernels.
#' @seealso [glossary]; [kernel_matrix()] for its values, [kme()] for its use.
#' @examples
#' kernel_rbf()
#' kernel_rbf(bandwidth = 2)
#' kernel_laplace(norm = "L2", bandwidth = \(x) apply(x, 2, sd))
#' kernel_function(\(x, y) tcrossprod(x, y)^2)
#' petals <- kernel_rbf(columns = c("Petal.Length", "Petal.Width"))
#' kme(iris[, 1:4], petals + 0.1 * kernel_linear(columns = "Sepal.Length"))
#' @export
kernel_rbf <- function(bandwidth = "median", ..., columns = NULL) {
  check_dots(...)
  on_columns(new_kernel("rbf", bandwidth = check_bandwidth(bandwidth)), columns)
}

#' @rdname kernel_rbf
#' @export
kernel_laplace <- function(bandwidth = "median", norm = c("L1", "L2"), ...,
                           columns = NULL) {
  check_dots(...)
  norm <- take(norm, choice("L1", "L2"))
  on_columns(new_kernel(paste0("laplace_", tolower(norm)),
                        bandwidth = check_bandwidth(bandwidth)), columns)
}

#' @rdname kernel_rbf
#' @export
kernel_matern <- function(nu = 3 / 2, bandwidth = "median", ...,
                          columns = NULL) {
  check_dots(...)
  take(nu, new_kind("1/2, 3/2 or 5/2", \(x) {
    is_number(x) && x %in% c(0.5, 1.5, 2.5)
  }), "nu")
  on_columns(new_kernel(c("laplace_l2", "matern32", "matern52")[nu + 0.5],
                        bandwidth = check_bandwidth(bandwidth)), columns)
}

#' @rdname kernel_rbf
#' @export
kernel_poly <- function(degree = 2, offset = 1, ..., columns = NULL) {
  check_dots(...)
  degree <- take(degree, count())
  offset <- take(offset, number())
  on_columns(new_kernel(
    "poly", paste0("(x'y + ", format(offset), ")^", degree), degree = degree,
    offset = offset,
    title = paste0("polynomial kernel, degree ", degree, ", offset ",
                   format(offset))
  ), columns)
}

#' @rdname kernel_rbf
#' @export
kernel_linear <- function(..., columns = NULL) {
  check_dots(...)
  on_columns(new_kernel("poly"), columns)
}

#' @rdname kernel_rbf
#' @export
kernel_energy <- function(...) {
  check_dots(...)
  new_kernel("energy")
}

#' @rdname kernel_rbf
#' @export
kernel_function <- function(f, ...) {
  check_dots(...)
  check_given(f)
  take(f, is_a("function", "a function of two matrices"))
  new_kernel("function", fun = f)
}

#' Kernel of numeric columns and factors
#'
#' Gower's distance as a kernel: each column counts by how far apart its values
#' are on average, a factor by equal or different levels, an ordered factor by
#' the places of its levels.
#'
#' \deqn{k(x, y) = \exp(-D(x, y)/\theta), \quad D(x, y) = \sum_j |x_j - y_j|/a_j
#'   + \sum_f 1\{x_f \ne y_f\}/a_f}{k(x, y) = exp(-D(x, y)/theta), D(x, y) =
#'   sum_j |x_j - y_j|/a_j + sum_f 1{x_f != y_f}/a_f,} where a is the mean of
#'   that column's own distance over all pairs of different points: Gini's mean
#'   difference of numbers, the share of pairs with different levels. A column
#'   that does not vary is left out. So neither units nor the names of levels
#' matter. `"median"` is the median of D over pairs, that of the positive ones
#' where it is 0.
#'
#' The kernel is positive definite and characteristic: a product of one for each
#' column. It is the default wherever factors are among the columns, as in
#' `kme(~ number + factor, data)`, `mmd_test(cbind(number, factor) ~ group,
#' data)` or `hsic_test(y ~ number + factor, data)`; other kernels are refused
#' there, and so is `scale`. An ordered factor is a numeric column of 1, 2, ...,
#' the places of its levels (those that no row has count, too), as in
#' `cluster::daisy()`. The print names the factors of both kinds. Logical values
#' count alike as numbers and as levels. Missing values are an error; with a
#' formula `na.action = na.omit` drops their rows.
#'
#' New data are read by the names of the columns, factors by their levels, of
#' which characters do. A level that the fit has not seen is different from all
#' that it has; several are one level more. In an ordered factor it has no place
#' and is an error. `fit$kernel` keeps the means a of
#' the sample (for tests of the pooled one) and the levels.
#'
#' @section Interactions: Being characteristic the kernel sees every difference
#' and every dependence if there are enough points; with few it sees above all
#' what each column shows by itself. A shift in some levels alone, of one sign,
#' it sees nearly as one in all. Of shifts that cancel between levels, so that
#' each column looks the same in both samples, it sees less the more columns and
#' levels there are: of 40 and 40 points 45% at the level 5% where two numeric
#' columns and factors of 2 and 3 levels are apart by .8 standard deviations, up
#' or down by the level, and 12% where four and factors of 6 and 5 are by 1.1.
#'
#' [mmd_test()] and [mmd_pairwise()] therefore take, in the same p-value by the
#' largest standardized statistic, a second kernel: the product over blocks, the
#' numeric columns together and each factor, of \eqn{1 + C_b}{1 + C_b},
#' \eqn{C_b}{C_b} the centered matrix of the block (a Gaussian kernel of the
#' standardized columns; equal levels) divided by its mean diagonal. Multiplied
#' out it has each main effect and each interaction with the same weight. The
#' two see 97% and 25% of these, and 47% in place of 51% where a column is
#' shifted by .7. The second is left out above 3,000 points, and by `filter =
#' "none"`. The numbers are those of the study `mixed.R`, see
#' `vignette("tests")`.
#'
#' @inheritParams kernel_rbf
#' @param bandwidth \eqn{\theta}{theta}, a positive number or `"median"`.
#' @return A kernel, see [kernel_rbf()]. It takes no part in sums and products.
#' @references
#' Gower, J. C. (1971). A general coefficient of similarity and some of its
#' properties. *Biometrics* 27, 857--871.
#' @seealso [glossary]; [units]; [mmd_test()].
#' @examples
#' kme(~ len + supp + factor(dose), ToothGrowth)
#' hsic_test(len ~ supp + factor(dose), ToothGrowth, B = 199)
#'
#' # Do cars with automatic and manual gears differ in power, in the numbers of
#' # cylinders and gears, or in how these go together?
#' cars <- transform(mtcars, cyl = factor(cyl), gear = factor(gear))
#' test <- mmd_test(cbind(hp, cyl, gear) ~ am, cars, B = 199)
#' as.data.frame(test)
#' @export
kernel_gower <- function(bandwidth = "median", ...) {
  check_dots(...)
  if (!identical(bandwidth, "median")) {
    bandwidth <- take(bandwidth, number(open = TRUE))
  }
  new_kernel("gower", bandwidth = bandwidth)
}

# The kernel for points from read_points(): the one that was given, else
# kernel_gower() for columns with factors, else the default of a door, else
# kernel_rbf().
kernel_of <- function(x, kernel = NULL, default = NULL, name = "kernel") {
  mixed <- is.data.frame(x)
  if (mixed && !is.null(kernel) && !kernel_has(kernel, "factors")) {
    stop_input("'", name, "' must be kernel_gower() for columns some of which ",
               "are factors, not the ", format_kernel(kernel),
               "; model.matrix() makes numeric columns of them")
  }
  c(if (!is.null(kernel)) list(kernel), if (mixed) list(kernel_gower()),
    if (!is.null(default)) list(default), list(kernel_rbf()))[[1L]]
}

# The families by the names that core/kernel.h gives them. `has` is what
# kernel_has() can be asked for:
#   "flat diagonal"   k(x, x) is the same for all x
#   "unit diagonal"   it is 1, k falls with the distance, and the Gram matrix of
#                     different points is never singular
#   "one sign"        all values have the same sign
#   "Gaussian form"   k is a Gaussian density but for a factor
#   "closed form"     the embedding of a Gaussian mixture is known
#   "linear form"     k(x, y) = x'y + offset
#   "inner products"  k is a function of x'y
#   "derivatives"     k has a derivative in x that the package knows
#   "factors"         columns may be factors
#   "distances"       k is minus a distance, and only conditionally definite
#   "function"        the values come from a function of the user
#   "parts"           k is a sum of products of kernels
# `up_to` has for a property the highest degree of a polynomial kernel that has
# it, and `if_parts` the properties of a sum whose parts all have them. k^2 is
# the same kernel with a bandwidth `square` times smaller.
falling <- c("flat diagonal", "unit diagonal", "one sign")
kernel_families <- list(
  rbf = list(formula = "exp(-|(x - y)/theta|^2/2)", title = "Gaussian kernel",
             has = c(falling, "Gaussian form", "closed form", "derivatives"),
             square = sqrt(2)),
  laplace_l1 = list(formula = "exp(-sum |(x - y)/theta|)",
                    title = "L1 Laplace kernel", has = falling, square = 2),
  laplace_l2 = list(formula = "exp(-|(x - y)/theta|)",
                    title = "Laplace kernel", has = falling, square = 2),
  gower = list(
    formula = "exp(-(sum |x_j - y_j|/a_j + sum 1{x_f != y_f}/a_f)/theta)",
    title = "Gower kernel", has = c(falling, "factors"), square = 2
  ),
  matern32 = list(
    formula = "(1 + sqrt(3) r) exp(-sqrt(3) r), r = |(x - y)/theta|",
    title = "Matern 3/2 kernel", has = c(falling, "derivatives")
  ),
  matern52 = list(
    formula = "(1 + sqrt(5) r + 5 r^2/3) exp(-sqrt(5) r), r = |(x - y)/theta|",
    title = "Matern 5/2 kernel", has = c(falling, "derivatives")
  ),
  poly = list(formula = "x'y", title = "linear kernel",
              has = c("inner products", "derivatives"),
              up_to = c("linear form" = 1, "closed form" = 3)),
  energy = list(formula = "-|x - y| (conditionally positive definite)",
                title = "energy kernel", has = c("one sign", "distances")),
  "function" = list(formula = "a function of two matrices",
                    title = "kernel given as a function", has = "function"),
  sum = list(formula = "", title = "sum of kernels", has = "parts",
             if_parts = c("flat diagonal", "one sign", "closed form",
                          "derivatives")),
  # These are not kernels but distances, for the median heuristic.
  sqdist = list(formula = "|x - y|^2"),
  l1dist = list(formula = "sum |x - y|")
)

new_kernel <- function(family, formula = kernel_families[[family]]$formula,
                       bandwidth = NULL, degree = 1L, offset = 0, fun = NULL,
                       title = kernel_families[[family]]$title) {
  kernel <- list(family = family, formula = formula, title = title,
                 bandwidth = bandwidth, degree = degree, offset = offset,
                 fun = fun)
  class(kernel) <- "kernmean_kernel"
  kernel
}

# --- Sums of products ---------------------------------------------------------
# A sum has a field `parts`: kernels, each with its `columns` (NULL for all of
# them; a fitted part has their numbers, `at`) and `times`: the number that
# multiplies the product which this part begins, 0 if the part is a further
# factor of that product.

#' @rdname kernel_rbf
#' @param e1,e2 Kernels; one factor of a product may be a positive number.
#' @export
`+.kernmean_kernel` <- function(e1, e2) {
  new_sum(c(addends(e1, "+"), addends(e2, "+")))
}

#' @rdname kernel_rbf
#' @export
`*.kernmean_kernel` <- function(e1, e2) {
  if (is.numeric(e1)) {
    return(e2 * e1)
  }
  a <- addends(e1, "*")
  if (is.numeric(e2)) {
    factor <- take(e2, number(open = TRUE), "a factor")
    return(new_sum(lapply(a, \(part) {
      replace(part, "times", factor * part$times)
    })))
  }
  parts <- list()
  for (p in by_product(a)) {
    for (q in by_product(addends(e2, "*"))) {
      both <- c(p, q)
      both[[1L]]$times <- p[[1L]]$times * q[[1L]]$times
      both[[length(p) + 1L]]$times <- 0
      parts <- c(parts, both)
    }
  }
  new_sum(parts)
}

# The parts of an argument of `+` or `*`.
addends <- function(e, sign) {
  if (!inherits(e, "kernmean_kernel") || kernel_has(e, "scaling") ||
        kernel_has(e, "distances") || kernel_has(e, "function") ||
        kernel_has(e, "factors")) {
    stop_input("'", sign, "' must be of positive definite kernels with a ",
               "formula, none of them of a fit to scaled columns, not ",
               describe(e))
  }
  kernel_parts(e)
}

part_widths <- \(parts) lengths(lapply(parts, \(part) part$at))
part_times <- \(parts) vapply(parts, \(part) part$times, 0)
by_product <- \(parts) split(parts, cumsum(part_times(parts) > 0))

kernel_parts <- function(kernel) {
  if (kernel_has(kernel, "parts")) {
    return(kernel$parts)
  }
  kernel$times <- 1
  list(kernel)
}

new_sum <- function(parts) {
  kernel <- new_kernel("sum")
  kernel$parts <- unname(parts)
  kernel
}

some_columns <- new_kind("names or numbers of columns, each once", \(x) {
  (is.character(x) || is.numeric(x)) && length(x) > 0L && !anyNA(x) &&
    !anyDuplicated(x)
})

on_columns <- function(kernel, columns) {
  if (is.null(columns)) {
    return(kernel)
  }
  kernel$columns <- take(columns, some_columns)
  new_sum(kernel_parts(kernel))
}

# --- What a kernel can do ----------------------------------------------------

# Does the kernel have this property, one of `has` in the table above, or a
# "scaling" of its columns? NULL, the kernel of a matrix of given values, has
# none.
kernel_has <- function(kernel, property) {
  if (!is.list(kernel) || !inherits(kernel, "kernmean_kernel")) {
    return(FALSE)
  }
  # `$` looks for methods of a class.
  kernel <- unclass(kernel)
  family <- kernel_families[[kernel$family]]
  # A product has no closed form and no derivative, even if its factors have
  # them.
  property == "scaling" && !is.null(kernel$scaling) ||
    any(family$has == property) || !is.null(family$up_to) &&
    any(kernel$degree <= family$up_to[property], na.rm = TRUE) ||
    !is.null(kernel$parts) && any(family$if_parts == property) &&
      all(vapply(kernel$parts, kernel_has, NA, property)) &&
      (!property %in% c("closed form", "derivatives") ||
         all(part_times(kernel$parts) > 0))
}

# k(x, x) where it is the same for all x, else NULL.
flat_diagonal <- function(kernel) {
  if (kernel_has(kernel, "flat diagonal")) {
    if (is.null(kernel$parts)) 1 else sum(part_times(kernel$parts))
  }
}

# k^2 where it is a kernel of the same family, else NULL.
squared_kernel <- function(kernel) {
  times <- kernel_families[[kernel$family]]$square
  if (!is.null(times)) {
    kernel$bandwidth <- kernel$bandwidth / times
    kernel
  }
}

# Do two fitted kernels have the same values on d columns?
same_kernel <- function(a, b, d) {
  fields <- c("family", "degree", "offset", "fun", "scaling", "at", "times")
  identical(a[fields], b[fields]) && (is.null(a$bandwidth) ||
    identical(rep_len(a$bandwidth, d), rep_len(b$bandwidth, d))) &&
    length(a$parts) == length(b$parts) &&
    all(unlist(Map(same_kernel, a$parts, b$parts, part_widths(a$parts))))
}

check_definite <- function(kernel) {
  if (kernel_has(kernel, "distances")) {
    stop_input(
      "'kernel' must be positive definite; the energy kernel is for tests of ",
      "plain kernel means only", if (endsWith(kernel$title, "given")) {
        paste0(": distances have no filter and no other estimators; gram() ",
               "makes kernel values of them, by their principal coordinates")
      }
    )
  }
}

several_positive <- numbers(0, open = TRUE)
bandwidth_numbers <- several_positive
bandwidth_numbers$words <- "\"median\", positive numbers or a function"
# Unlike as.double() this keeps names.
bandwidth_numbers$as <- \(x) x + 0

check_bandwidth <- function(bandwidth, name = "bandwidth") {
  if (identical(bandwidth, "median") || is.function(bandwidth)) {
    return(bandwidth)
  }
  take(bandwidth, bandwidth_numbers, name)
}

# The kind of an argument `bandwidths`: NULL, several numbers, or the word that
# asks for a set of them.
bandwidth_set <- function(word) {
  maybe(new_kind("at least two positive numbers", \(x) {
    length(x) >= 2L && bandwidth_numbers$holds(x)
  }), word)
}

a_kernel <- is_a("kernmean_kernel", "a kernel such as kernel_rbf()")

#' @rdname kernel_rbf
#' @export
print.kernmean_kernel <- function(x, ...) {
  formula <- if (!kernel_has(x, "parts")) paste("  k(x, y) =", x$formula)
  say(kernel_lines(x), formula)
  invisible(x)
}

# The lines that print() shows on a kernel and its factors; none for NULL.
kernel_lines <- function(kernel, label = NULL) {
  if (!is.null(kernel)) {
    strwrap(c(paste(c(label, format_kernel(kernel)), collapse = ": "),
              describe_factors(kernel$scaling)), 81L, exdent = 2L)
  }
}

# "factors: a (3 levels); ordered: b (5 levels)"
describe_factors <- function(scaling) {
  named <- \(levels, word) if (length(levels)) {
    paste0(word, shorten(paste0(names(levels), " (", lengths(levels),
                                " levels)"), 8L))
  }
  words <- c(named(scaling$levels, "factors: "),
             named(scaling$places, "ordered: "))
  if (length(words)) paste(words, collapse = "; ")
}

# "Gaussian kernel, bandwidth 3.4, the median distance, columns standardized",
# or for a sum "(Gaussian kernel, bandwidth 2, on a) + 3 (linear kernel, on b)".
format_kernel <- function(kernel) {
  if (kernel_has(kernel, "parts")) {
    times <- part_times(kernel$parts)
    words <- vapply(kernel$parts, format_kernel, "")
    if (length(words) > 1L) words <- paste0("(", words, ")")
    words <- paste0(ifelse(times == 0, "* ", "+ "),
                    ifelse(times %in% 0:1, "", paste(format_number(times), "")),
                    words)
    return(paste(c(sub("^[+] ", "", paste(words, collapse = " ")),
                   describe_scaling(kernel)), collapse = ", "))
  }
  bandwidth <- kernel$bandwidth
  theta <- if (is.function(bandwidth)) {
    "by a function of the data"
  } else if (is.character(bandwidth)) {
    "by the median distance"
  } else if (length(bandwidth)) {
    format_several(bandwidth)
  }
  paste(c(kernel$title, if (!is.null(theta)) paste("bandwidth", theta),
          kernel$rule, if (!is.null(kernel$columns)) {
            paste("on columns", shorten(kernel$columns))
          }, describe_scaling(kernel)), collapse = ", ")
}

# "columns standardized", or NULL without a scaling.
describe_scaling <- function(kernel) {
  scaling <- kernel$scaling
  d <- ncol(scaling$factor)
  if (!is.null(scaling)) switch(
    as.character(scaling$type),
    gower = "columns by their mean distance",
    whiten = paste0("columns whitened by their covariance",
                    if (scaling$rank < d) {
                      paste0(" (rank ", scaling$rank, " of ", d, ")")
                    }),
    "TRUE" = "columns standardized"
  )
}

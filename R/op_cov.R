#' Covariance and cross-covariance operators
#'
#' The covariance operator of one variable, the cross-covariance operator of
#' two, or the tensor of more, from centered kernel features; as it is or shrunk
#' (COSE), with its spectrum.
#'
#' With centered features \eqn{\tilde\phi(x) = \phi(x) - \mu_X}{phi~(x) = phi(x)
#' - mu_X} of x and \eqn{\tilde\psi(y)}{psi~(y)} of y, the operator is
#' \eqn{\Sigma_\beta = \sum_i \beta_i \tilde\phi(x_i) \otimes
#' \tilde\psi(y_i)}{Sigma = sum_i beta_i phi~(x_i) (x) psi~(y_i)}, the mean of
#' the features of a product kernel. Its weights are those of the mean
#' [estimators] on \eqn{H = K_X^c \circ K_Y^c}{H = Kc_X o Kc_Y}, the centered
#' Gram matrices multiplied entry by entry (more factors for more variables):
#' \describe{
#'   \item{`"kme"`}{\eqn{\beta = 1/n}{beta = 1/n}, the empirical operator.}
#'   \item{`"skmse"`}{S-COSE, \eqn{\beta = (1 - \alpha)/n}{beta = (1 -
#'     alpha)/n}: eigenfunctions do not change.}
#'   \item{`"fkmse"`}{F-COSE, \eqn{\beta = (H + \lambda I)^{-1}H1_n}{beta = (H +
#'     lambda I)^(-1) H 1_n}: weights may be negative, and so may eigenvalues.}
#' }
#' The squared Hilbert-Schmidt norm is \eqn{\beta'H\beta}{beta'H beta}; of the
#' empirical cross-covariance it is the biased statistic of [hsic_test()].
#'
#' @section Spectrum:
#' With \eqn{K^c = U\Gamma U'}{Kc = U G U'}: for one variable
#' \eqn{\Gamma^{1/2}U' \mathrm{diag}(\beta) U\Gamma^{1/2} = WDW'}{G^(1/2) U'
#' diag(beta) U G^(1/2) = W D W'} gives the eigenvalues D and the eigenfunctions
#' \eqn{\sum_i V_{ij}\tilde\phi(x_i)}{sum_i V_ij phi~(x_i)} of norm 1, \eqn{V
#' = U\Gamma^{-1/2}W}{V = U G^(-1/2) W}; for two, the singular value
#' decomposition of \eqn{\Gamma_X^{1/2}U_X' \mathrm{diag}(\beta)
#' U_Y\Gamma_Y^{1/2}}{G_X^(1/2) U_X' diag(beta) U_Y G_Y^(1/2)} singular values
#' and functions. Functions are positive at the first point of largest weight;
#' values that are rounding are dropped. Tensors of more than two variables have
#' no spectrum. With a linear kernel the values are those of [cov()] times (n -
#' 1)/n.
#'
#' The kernel of numeric columns and factors together is [kernel_gower()].
#'
#' @section Sketches:
#' With a [kme_sketch()] of one variable or two as `x`, `vectors`, `left` and
#' `right` are weights on the landmarks; the estimator is `"kme"`, or for one
#' variable `"skmse"`, which needs `moments = 4`. O(m^3) time for m landmarks.
#' @section Cost:
#' An eigendecomposition of each centered Gram matrix, about 6n^3 flops, and one
#' of the rank's size, whatever `ncomp`; with F-COSE another of H. Some six n by
#' n matrices.
#'
#' @inheritParams kme
#' @param x The variable: a numeric vector, matrix or data frame (factors may be
#'   among the columns), a factor, or a [gram()]; a plain list of two or more
#'   variables, with `y` missing; or a [kme_sketch()].
#' @param y The second variable, of as many values; missing for the covariance
#'   operator of x.
#' @param kernel_x,kernel_y Kernels, see [kernel_rbf()], positive definite;
#'   bandwidths are chosen from each variable. For a list, `kernel_x` is one
#'   kernel for all or a list of kernels.
#' @param estimator KME, S-KMSE, F-KMSE, a stack of these, without target, or a
#'   function of your own, see [estimators].
#' @param ncomp Number of components to keep, all by default.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method.
#' @param kernel One kernel for all variables that have none of their own, in
#'   place of `kernel_x` and `kernel_y`.
#' @param center What features are centered by: one of the [estimators], a fit
#'   of [kme()] for one variable, or a list of these, one for each variable.
#' @param scale As in [kme()], for each variable by itself; factors and grams
#'   have none.
#' @param formula `y ~ a + b`: the cross-covariance of y and (a, b), the sum on
#'   each side being one variable; `. ~ g` has all other columns on its left.
#'   Without a left side each term is a variable: `~ a`, `~ a + b`.
#'
#' @return An object of class `kme_cov`, a list with
#' \item{values}{eigenvalues (one variable) or singular values (two) in
#'   decreasing order; `NULL` for more}
#' \item{vectors}{one variable: n x r, the weights V of the eigenfunctions}
#' \item{left, right}{two variables: n x r, the weights of the singular
#'   functions of x and y}
#' \item{rank, trace}{number of values before `ncomp`; for one variable the sum
#'   of all eigenvalues}
#' \item{norm2}{the squared Hilbert-Schmidt norm}
#' \item{operator}{of a sketch only: the operator as a matrix}
#' \item{weights, lambda, alpha, score, minimum, reference, border, estimator,
#'   select, n, arguments}{as in [kme()]}
#' \item{variables}{for each variable a list with its `name`, for a factor its
#'   `levels`, its `sample`, and the centering `mean` with its values `at` the
#'   points and its squared norm `norm2`}
#' \item{several, layout}{were the variables given as a list? How a formula
#'   reads new data}
#'
#' @section Methods:
#' `coef()` gives the weights \eqn{\beta}{beta}, `summary()` the leading values
#' with their shares of the trace (or of the squared norm), `update()` fits
#' again with other arguments, [plot()][plot.kernmean_fit] draws.
#'
#' `predict(type = "scores")` gives the m x r values of the eigenfunctions (or
#' of the left or right singular functions) at new points; `newdata` holds
#' values of that variable, or a list of the values of all. `type = "value"`
#' evaluates the operator, \eqn{\sum_i \beta_i \prod_l k_l^c(z_l,
#' x_{il})}{sum_i beta_i prod_l kc_l(z_l, x_il)}, at the rows of a list of the
#' variables; for one variable of a list of two, for pairs, or of one set of
#' points. Fits by formula also take a data frame; where a variable is an
#' [as_gram()], its new values are kernel values, m by n.
#'
#' @references
#' Muandet, K., Fukumizu, K., Sriperumbudur, B., Gretton, A. and Schölkopf, B.
#' (2014). Kernel mean estimation and Stein effect. *Proceedings of the 31st
#' International Conference on Machine Learning*. Section on covariance
#' operators. \doi{10.48550/arXiv.1306.0842}
#' @seealso [glossary]; [hsic_test()] for a test that the cross-covariance is 0;
#'   [kme()].
#' @examples
#' fit <- kme_cov(scale(iris[, 1:4]), estimator = "skmse", ncomp = 5)
#' fit
#' summary(fit)
#' plot(fit)
#'
#' # What depends on what in two variables; one of them a factor
#' cross <- kme_cov(iris[, 1:2], iris[, 3:4], estimator = "skmse")
#' kme_cov(Petal.Width ~ Species, iris)
#' predict(cross, iris[1:3, 3:4], side = "right", ncomp = 2)
#' @export
kme_cov <- function(x, ...) {
  UseMethod("kme_cov")
}

#' @rdname kme_cov
#' @export
kme_cov.default <- function(x, y, kernel_x = kernel_rbf(),
                            kernel_y = kernel_rbf(), estimator = "kme",
                            ncomp = NULL, ..., kernel = NULL, center = "kme",
                            scale = FALSE) {
  asked <- request(kme_cov_arguments)
  data <- list(x = x)
  if (!missing(y)) data["y"] <- list(y)
  several <- missing(y) && is_plain_list(x)
  centers <- read_centers(asked$center, length(if (several) x else data))
  variables <- read_variables(data, list(x = asked$kernel_x,
                                         y = asked$kernel_y), kernel,
                              lapply(centers, center_kernel), alone = TRUE,
                              scale = asked$scale)
  check_operator(variables, asked$ncomp)
  fit <- fit_cov(variables, centers, asked$estimator)
  arguments <- stored(asked)
  if (!is.null(kernel)) {
    arguments[paste0("kernel_", names(data))] <- list(kernel)
  }
  new_kme_cov(fit, asked$estimator, asked$ncomp, arguments, several)
}

kme_cov_arguments <- door_table(
  "kme_cov.default", x = anything, kernel_x = unless_given(anything),
  kernel_y = unless_given(anything), estimator = read_operator,
  ncomp = maybe(count()), kernel = maybe(a_kernel), center = anything,
  scale = unless_given(a_scale), aside = c("x", "kernel"),
  rules = list(when("kernel", kernel_x = NULL, kernel_y = NULL))
)

#' @rdname kme_cov
#' @export
kme_cov.formula <- function(formula, data = NULL, subset, na.action, ...) {
  read <- read_sides("variables")
  variables <- read[names(read$names)]
  fit <- do.call(kme_cov.default, c(
    list(if (length(variables) == 1L) variables[[1L]] else variables),
    side_kernels(list(...), variables)
  ), quote = TRUE)
  fit$variables <- name_variables(fit$variables, names(variables))
  keep_layout(fit, read)
}

# --- Arguments -------------------------------------------------------------

# The argument `center` for each of d variables, as a list.
read_centers <- function(center, d) {
  if (!is_plain_list(center)) {
    return(rep(list(read_center(center)), d))
  }
  if (length(center) != d) {
    stop_input("'center' must have one entry for each of ",
               count_of(d, "variable"), ", not ", length(center))
  }
  lapply(unname(center), read_center)
}

check_operator <- function(variables, ncomp) {
  n <- check_lengths(variables)
  if (n < 2L) {
    stop_input("'", variables[[1L]]$name, "' must have at least 2 rows, not ",
               n)
  }
  for (variable in variables) check_definite(variable$sample$kernel)
  if (!is.null(ncomp) && length(variables) > 2L) {
    stop_input("'ncomp' must be NULL for more than two variables, whose ",
               "tensor has no spectrum")
  }
}

# --- The operator ------------------------------------------------------------

fit_cov <- function(variables, centers, estimator) {
  samples <- Map(\(variable, center) centered_sample(variable$sample, center),
                 variables, centers)
  h <- centered_product(samples)
  # If every point is at one of the means, the operator is 0.
  away <- Reduce(pmin, lapply(samples, centered_diagonal))
  check_squares(sum(diag(h)), all(away <= 0))
  fit <- operator_weights(h, estimator)
  if (length(samples) <= 2L) {
    pairs <- lapply(samples, positive_pairs)
    fit <- c(fit, if (length(samples) == 1L) {
      c(operator_spectrum(pairs[[1L]], fit$weights),
        trace = sum(fit$weights * centered_diagonal(samples[[1L]])))
    } else {
      operator_svd(pairs[[1L]], pairs[[2L]], fit$weights)
    })
  }
  fit$variables <- keep_centered(variables, samples)
  fit
}

# The variables of a fit, each with the fields of its centered sample.
keep_centered <- function(variables, samples) {
  Map(\(variable, sample) {
    kept <- centered_fields(sample)
    variable[names(kept)] <- kept
    variable
  }, variables, samples)
}

# The variables of a fit under other names.
name_variables <- function(variables, names) {
  stats::setNames(Map(replace, variables, "name", names), names)
}

new_kme_cov <- function(fit, estimator, ncomp, arguments, several) {
  fit <- keep_components(fit, ncomp, "the operator")
  new_fit("kme_cov", c(fit, list(
    estimator = estimator, n = fit$variables[[1L]]$sample$n, several = several,
    arguments = arguments
  )))
}

# --- New values ------------------------------------------------------------

#' @rdname kme_cov
#' @param object,newdata A fit; new values, see Methods.
#' @param type `"scores"` or `"value"`, see Methods.
#' @param side For two variables: scores on the `"left"` singular functions, of
#'   the first, or on the `"right"` ones.
#' @export
predict.kme_cov <- function(object, newdata, type = c("scores", "value"),
                            ncomp = NULL, ..., side = c("left", "right")) {
  check_dots(...)
  type <- take(type, choice("scores", "value"))
  d <- length(object$variables)
  if (type == "value") {
    if (!is.null(ncomp) || !missing(side)) {
      stop_input("'ncomp' and 'side' must not be given for type = \"value\"")
    }
    return(operator_value(object, newdata))
  }
  if (d > 2L) {
    stop_input("'type' must be \"value\" for more than two variables, whose ",
               "tensor has no spectrum")
  }
  side <- take(side, choice("left", "right"))
  v <- if (d == 1L) object$vectors else object[[side]]
  v <- take_columns(v, leading_components(ncomp, ncol(v)))
  number <- if (d == 2L && side == "right") 2L else 1L
  variable <- object$variables[[number]]
  if (!missing(newdata)) {
    new <- read_values(object, newdata, number)[[1L]]
    return(centered_apply(variable, new, v)$scores)
  }
  check_rows_kept(variable$sample)
  scores <- product(centered_matrix(variable), v)
  dimnames(scores) <- list(sample_names(variable$sample), colnames(v))
  scores
}

# sum_i beta_i prod_l k^c_l(z_l, x_il) at the rows of newdata, or at the sample.
operator_value <- function(object, newdata) {
  variables <- object$variables
  sample <- variables[[1L]]$sample
  if (missing(newdata)) {
    check_rows_kept(sample)
    value <- drop(centered_product(variables) %*% object$weights)
    return(stats::setNames(value, sample_names(sample)))
  }
  if (length(variables) > 1L) {
    new <- read_values(object, newdata, seq_along(variables))
  } else {
    pair <- if (is_several(newdata) && length(newdata) == 2L) newdata else
      list(newdata)
    new <- rep_len(unlist(lapply(unname(pair), \(z) read_values(object, z, 1L)),
                          recursive = FALSE), 2L)
    variables <- rep(variables, 2L)
  }
  rows <- vapply(new, `[[`, 1L, "m")
  if (any(rows != rows[1L])) {
    stop_input("'newdata' must have as many rows for each variable, not ",
               toString(rows))
  }
  value <- if (!is.null(sample$sketch)) {
    sketch_operator_at(object, variables, new)
  } else {
    at <- Map(centered_mean_at, variables, new)
    size <- max(1, 2^22 %/% object$n)
    unlist(lapply(row_panels(seq_len(rows[1L]), size), \(kept) {
      values <- Map(\(variable, z, at) centered_cross(variable, z, at, kept),
                    variables, new, at)
      drop(Reduce(`*`, values) %*% object$weights)
    }))
  }
  stats::setNames(value, new[[1L]]$names)
}

# The new points of the variables `which`, as a list. Landmarks and formulas
# take the columns of each variable from one data frame.
read_values <- function(object, newdata, which) {
  variables <- object$variables
  landmarks <- variables[[1L]]$sample$sketch$landmarks
  frame <- is.data.frame(newdata)
  values <- if (frame && !is.null(landmarks[[1L]]$side)) {
    rep(list(newdata), length(which))
  } else if (frame && !is.null(object$layout)) {
    lapply(which, \(l) read_again(object$layout, newdata, l))
  } else {
    pick_values(object, newdata, which)
  }
  Map(\(z, l) {
    if (is.null(landmarks)) {
      return(variable_newdata(variables[[l]], z, names(variables)[l]))
    }
    new_points(landmark_points(landmarks[[l]], z, "newdata"))
  }, values, which, USE.NAMES = FALSE)
}

# The values of the variables `which` as a list.
pick_values <- function(object, newdata, which) {
  labels <- names(object$variables)
  d <- length(labels)
  if (!is_several(newdata) && length(which) == 1L) {
    return(list(newdata))
  }
  if (!is_several(newdata) || length(newdata) != d) {
    stop_input("'newdata' must hold values of ", count_of(d, "variable"),
               ", not be ", describe(newdata))
  }
  if (all(labels %in% names(newdata))) newdata <- newdata[labels]
  unname(newdata)[which]
}

# --- Methods ---------------------------------------------------------------

#' @export
coef.kme_cov <- function(object, ...) {
  check_dots(...)
  if (is.null(object$weights)) {
    stop_input("'object' must be a fit to points, not to a sketch, which has ",
               "no rows to be weighed; its field 'operator' holds a matrix")
  }
  object$weights
}

fit_request.kme_cov <- function(x, changes) {
  arguments <- x$arguments
  variables <- x$variables
  sketch <- variables[[1L]]$sample$sketch
  if (!is.null(sketch)) {
    arguments$x <- sketch
    return(change_request(arguments, changes))
  }
  moved <- any(c("x", "y", "data") %in% names(changes))
  if ("data" %in% names(changes) && !is.null(x$layout)) {
    data <- lapply(seq_along(variables), \(l) {
      read_again(x$layout, changes$data, l, "data")
    })
    changes$x <- if (x$several) stats::setNames(data, names(variables)) else
      data[[1L]]
    changes$data <- NULL
  }
  # The kernels of a formula are given by side, those of a list are not.
  if (x$several && !is.null(x$layout)) {
    changes <- side_kernels(changes, variables)
  }
  changes <- change_kernels(changes, variables, x$several)
  sides <- if (x$several) "x" else c("x", "y")[seq_along(variables)]
  kernels <- paste0("kernel_", sides)
  # A new `scale` changes the units, so that the fitted bandwidths are not
  # reused.
  rescale <- "scale" %in% names(changes)
  each <- \(values) if (x$several) list(values) else values
  inputs <- each(Map(variable_input, variables,
                     rescale | kernels %in% names(changes)))
  fitted <- each(lapply(variables, variable_kernel))
  same <- !sides %in% names(changes)
  arguments[sides[same]] <- inputs[same]
  if (!rescale) arguments[kernels[same]] <- fitted[same]
  kept <- setdiff(c("kernel_x", "kernel_y", "scale"), names(changes))
  structure(change_request(arguments, changes),
            kept = if (!moved) c(kept, character()))
}

cov_title <- function(object) {
  d <- length(object$variables)
  operator_title(if (d > 2L) paste("Tensor of order", d) else
    c("Covariance operator", "Cross-covariance operator")[d], object$estimator)
}

# "150 points; x: 2 columns, y: factor of 3 levels"
describe_variables <- function(object) {
  what <- vapply(object$variables, describe_variable, "")
  sample <- object$variables[[1L]]$sample
  strwrap(paste0(if (is.null(sample$sketch)) count_of(sample$n, "point") else
    paste(rows_of(sample$sketch$n), "in a sketch"), "; ",
    paste0(names(what), ": ", what, collapse = ", ")), exdent = 2L)
}

most_kernels_shown <- 3L

# Lines of print() on the kernels of the variables and on their samples.
describe_kernels <- function(object) {
  labels <- names(object$variables)
  lines <- unlist(Map(variable_lines, object$variables, labels))
  notes <- lapply(object$variables, \(variable) sample_note(variable$sample))
  c(utils::head(lines, most_kernels_shown),
    if (length(lines) > most_kernels_shown) "...",
    paste0(rep(labels, lengths(notes)), ": ", unlist(notes), recycle0 = TRUE))
}

# "center: ...", or NULL where all features are centered by their averages.
describe_centers <- function(object, digits) {
  means <- lapply(object$variables, `[[`, "mean")
  plain <- vapply(means, \(mean) {
    is_average(mean$estimator) && is.null(mean$sample$weights)
  }, NA)
  if (!all(plain)) {
    words <- unique(vapply(means, describe_mean, "", digits))
    strwrap(paste("center:", paste(words, collapse = "; ")), 81L, exdent = 2L)
  }
}

fit_lines.kme_cov <- function(x, digits) {
  c(
    cov_title(x), describe_variables(x), describe_kernels(x),
    describe_centers(x, digits),
    est_lines(x$estimator, x, digits, "the empirical operator", "0"),
    paste("Hilbert-Schmidt norm",
          format_number(sqrt(max(0, x$norm2)), digits)),
    if (!is.null(x$values)) paste(c(
      if (length(x$variables) == 1L) "eigenvalues:" else "singular values:",
      format(utils::head(x$values, 5L), digits = digits),
      paste0("(rank ", x$rank, ")")
    ), collapse = " ")
  )
}

# A data frame of the spectrum with shares of the trace, or of the squared norm.
covariance_shares <- function(x) {
  one <- length(x$variables) == 1L
  share <- if (one) x$values / x$trace else x$values^2 / x$norm2
  structure(
    data.frame(value = x$values, share = share, cumulative = cumsum(share),
               row.names = colnames(if (one) x$vectors else x$left)),
    title = if (one) "Eigenvalues and their share of the trace" else
      "Singular values and their squares' share of the squared norm"
  )
}

fit_summary.kme_cov <- function(x) {
  c(list(norm = sqrt(max(0, x$norm2))),
    if (!is.null(x$values)) list(values = covariance_shares(x)),
    if (!is_average(x$estimator) && !is.null(x$weights)) weights_summary(x))
}

fit_rows.kme_cov <- function(x, ...) {
  check_dots(...)
  table <- if (!is.null(x$values)) covariance_shares(x)
  share_frame(c("component", "value"), as.double(table$value),
              as.double(table$share))
}

fit_facts.kme_cov <- function(x) {
  list(nobs = x$n, variables = length(x$variables),
       estimator = x$estimator$name, select = one_word(x$select),
       lambda = x$lambda, alpha = x$alpha, guard = x$guard$share,
       saved = x$guard$saved, rank = x$rank, trace = x$trace, norm2 = x$norm2)
}

fit_values.kme_cov <- function(x, newdata = NULL) {
  if (!is.null(newdata)) {
    stop_input("'newdata' must be NULL for an operator; predict() has its ",
               "scores and values at new points")
  }
  if (!is.null(x$weights)) data.frame(.weight = x$weights)
}

# The sample of the first variable without its points. A data frame of the fit
# should not show them as its data: they are the columns of only one variable,
# or codes of a factor.
fit_sample_of.kme_cov <- function(x) {
  sample <- x$variables[[1L]]$sample
  sample["x"] <- list(NULL)
  sample
}

fit_picture.kme_cov <- function(object, type = NULL) {
  values <- object$values
  type <- check_type(type, c("spectrum", "selection"),
                     if (length(values) || is.null(object$score)) "spectrum"
                     else "selection")
  if (type == "selection") {
    return(picture_selection(object))
  }
  if (!length(values)) {
    stop_input("'x' must have a spectrum to be plotted; an operator of more ",
               "than two variables has none")
  }
  picture_sequence(
    cov_title(object), values,
    if (length(object$variables) == 1L) "eigenvalue" else "singular value"
  )
}

# --- Sketches -----------------------------------------------------------------

# In feature coordinates the operators of a sketch are matrices: C^c for one
# variable, and for two C_xy^c = W_S'(cross/n)W_T minus the terms of centering.

#' @rdname kme_cov
#' @export
kme_cov.kme_sketch <- function(x, y, ..., estimator = "kme", ncomp = NULL,
                               center = "kme") {
  if (!missing(y)) {
    stop_input("'y' must be missing when 'x' is a sketch; one of two ",
               "variables is made by kme_sketch(y ~ x) or kme_sketch(x, y = y)")
  }
  asked <- request(kme_cov_sketch_arguments)
  estimator <- asked$estimator
  count <- length(x$landmarks)
  centers <- read_centers(center, count)
  centered <- Map(\(l, center) centered_sample(sketch_sample(x, l), center),
                  seq_len(count), centers)
  warn_lost(lapply(centered, `[[`, "sample"),
            if (count > 1L) variable_labels(x))
  if (count == 1L) {
    fit <- sketch_covariance(centered[[1L]], estimator,
                             "a covariance operator", "estimator")
    shrinkage <- fit$shrinkage
    fit <- c(fit[names(fit) != "shrinkage"],
             shrinkage %||% list(lambda = 0))
  } else {
    fit <- sketch_cross_covariance(x, centered, estimator)
  }
  # A sketch keeps no rows, and so the fit has no weights of rows.
  fit["weights"] <- list(NULL)
  fit$variables <- name_variables(
    keep_centered(lapply(x$landmarks, `[[`, "variable"), centered),
    variable_labels(x)
  )
  fit <- new_kme_cov(fit, estimator, asked$ncomp, stored(asked), FALSE)
  fit$n <- x$n
  fit
}

kme_cov_sketch_arguments <- door_table(
  "kme_cov.kme_sketch", estimator = read_operator, ncomp = maybe(count()),
  center = anything,
  hints = sketch_hints("kernel_x", "kernel_y", "kernel", "scale")
)

sketch_cross_covariance <- function(sketch, centered, estimator) {
  if (!is_average(estimator)) {
    stop_input("'estimator' must be \"kme\" for a sketch of two variables, ",
               "not ", estimator_word(estimator), ": a sketch does not keep ",
               "the sums of products that shrinkage takes")
  }
  roots <- lapply(centered, \(one) one$sample$root)
  whole <- sketch_cross(sketch)
  operator <- center_moments(whole, centered[[1L]], centered[[2L]])
  scale <- sqrt(prod(vapply(centered, \(one) {
    max(one$norm2, one$sample$moments$varrho)
  }, 1)))
  least <- max(sketch_rounding(whole, roots[[1L]], roots[[2L]]),
               rounding_of(max(dim(operator)), scale))
  spectrum <- paired_functions(svd(operator), roots[[1L]], roots[[2L]])
  c(leading_values(spectrum, least),
    list(norm2 = sum(operator^2), operator = operator, lambda = 0))
}

# The values f(z)'A g(w) of the operator A, where f and g are centered features.
sketch_operator_at <- function(object, variables, new) {
  features <- Map(\(variable, z) {
    landmarks <- variable$sample$sketch$landmarks
    root <- landmarks[[variable$sample$variable]]$root
    centered_apply(variable, z, root)$scores
  }, variables, new)
  rowSums(product(features[[1L]], object$operator) * features[[2L]])
}

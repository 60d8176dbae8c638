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
#' \eqn{\sum_i V_{ij}\tilde\phi(x_i)}{sum_i V_ij phi~(x_i)}, \eqn{V =
#' U\Gamma^{-1/2}W}{V = U G^(-1/2) W}, of norm 1; for two, the singular value
#' decomposition of \eqn{\Gamma_X^{1/2}U_X' \mathrm{diag}(\beta)
#' U_Y\Gamma_Y^{1/2}}{G_X^(1/2) U_X' diag(beta) U_Y G_Y^(1/2)} gives singular
#' values and functions in the same way. Functions are positive at the first
#' point of largest weight; values below n times the precision of the largest
#' are dropped. Tensors of more than two variables have no spectrum here. With a
#' linear kernel the values are those of [cov()] times (n - 1)/n.
#'
#' A variable that has numeric columns and factors has the product of a kernel
#' of its numeric columns, which must have a bandwidth, and of 1 for equal, 0
#' for different levels of each factor.
#'
#' @section Sketches:
#' With a [kme_sketch()] of one variable or two as `x`, `vectors`, `left` and
#' `right` are weights on the landmarks; the estimator is `"kme"`, or for one
#' variable `"skmse"`, which needs `moments = 4`. O(m^3) time for m landmarks.
#' @section Cost:
#' All values are computed, whatever `ncomp`: an eigendecomposition of each
#' centered Gram matrix, about 6n^3 flops, and one of the rank's size; with
#' F-COSE another of H. Some six n by n matrices. `predict()` takes O(nm(d + r))
#' time for m points in d columns and r components.
#'
#' @inheritParams kme
#' @param x The variable: a numeric vector, matrix or data frame (one variable
#'   of several columns, factors among them), a factor, or a [gram()]; a plain
#'   list of two or more such variables, with `y` missing; or a [kme_sketch()].
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
#' @param center What features are centered by: an estimator of their mean (see
#'   [estimators]), a fit of [kme()] for one variable, or a list of these, one
#'   for each variable.
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
#' \item{several, terms}{were the variables given as a list? The terms of a
#'   formula}
#'
#' @section Methods:
#' `coef()` gives the weights \eqn{\beta}{beta}, `summary()` the leading values
#' with their shares of the trace (or of the squared norm), `update()` fits
#' again with other arguments.
#'
#' `predict(type = "scores")` gives the m x r values of the eigenfunctions (or
#' of the left or right singular functions) at new points; `newdata` holds
#' values of that variable, or a list of the values of all. `type = "value"`
#' evaluates the operator itself, \eqn{\sum_i \beta_i \prod_l k_l^c(z_l,
#' x_{il})}{sum_i beta_i prod_l kc_l(z_l, x_il)}: `newdata` is a list of the
#' variables, rows belong together; for one variable a list of two, for pairs,
#' or one set of points. Fits by formula also take a data frame; where a
#' variable is an [as_gram()], its new values are kernel values, m by n.
#'
#' `plot(fit, type)` draws the `"spectrum"`, the `"selection"` curve, `"scores"`
#' on the two leading functions in the colors of `groups`, or the `"weights"`.
#'
#' @references
#' Muandet, K., Fukumizu, K., Sriperumbudur, B., Gretton, A. and Schölkopf, B.
#' (2014). Kernel mean estimation and Stein effect. *Proceedings of the 31st
#' International Conference on Machine Learning*. Section on covariance
#' operators. \doi{10.48550/arXiv.1306.0842}
#' @seealso [hsic_test()] for a test that the cross-covariance is 0; [kme()].
#' @examples
#' fit <- kme_cov(scale(iris[, 1:4]), estimator = "skmse", ncomp = 5)
#' fit
#' summary(fit)
#' plot(fit, "scores", groups = iris$Species)
#'
#' # What depends on what in two variables; one of them a factor
#' cross <- kme_cov(iris[, 1:2], iris[, 3:4], estimator = "skmse")
#' plot(cross, "scores")
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
  given <- list(x = asked$kernel_x, y = asked$kernel_y)
  variables <- read_variables(data, given, kernel,
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
  check_formula(formula, data)
  found <- formula_variables(match.call(expand.dots = FALSE), formula, data,
                             missing(na.action), parent.frame(), least = 1L)
  variables <- found$variables
  fit <- do.call(kme_cov.default, c(
    list(if (length(variables) == 1L) variables[[1L]] else variables),
    side_kernels(list(...), variables)
  ), quote = TRUE)
  fit$variables <- name_variables(fit$variables, names(variables))
  fit$terms <- keep_constants(found$terms, data)
  fit
}

# --- Arguments -------------------------------------------------------------

# What each of d variables is centered by.
read_centers <- function(center, d) {
  if (inherits(center, "kme") && d > 1L) {
    stop_input(
      "'center' must be an estimator or a list of ", d, " estimators or fits, ",
      "one for each variable, not one fit"
    )
  }
  if (!is_several(center) || is.object(center)) {
    return(rep(list(read_center(center)), d))
  }
  if (length(center) != d) {
    stop_input("'center' must have one entry for each of ", d, " variable",
               if (d > 1L) "s", ", not ", length(center))
  }
  lapply(unname(center), read_center)
}

check_operator <- function(variables, ncomp) {
  n <- check_lengths(variables)
  if (n < 2L) {
    stop_input("'", variables[[1L]]$name, "' must have at least 2 rows, not ",
               n)
  }
  for (variable in variables) {
    if (!is_definite(variable$sample$kernel)) {
      stop_input(
        "'", variable$name, "' must have a positive definite kernel, not ",
        "kernel_energy(), which is for tests of plain kernel means only"
      )
    }
  }
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
  # Where no point is away from all means the operator is 0.
  away <- Reduce(pmin, lapply(samples, centered_diagonal))
  check_squares(sum(diag(h)), all(away <= 0))
  fit <- operator_weights(h, estimator)
  one <- length(samples) == 1L
  if (one) {
    fit$trace <- sum(fit$weights * centered_diagonal(samples[[1L]]))
  }
  if (length(samples) <= 2L) {
    pairs <- lapply(samples, positive_pairs)
    fit <- c(fit, if (one) {
      leading_values(operator_spectrum(pairs[[1L]]$values, pairs[[1L]]$vectors,
                                       fit$weights))
    } else {
      leading_values(operator_svd(pairs[[1L]], pairs[[2L]], fit$weights))
    })
  }
  fit$variables <- keep_centered(variables, samples)
  fit
}

# What a fit keeps of its variables.
keep_centered <- function(variables, samples) {
  Map(\(variable, sample) {
    c(variable[names(variable) != "sample"], centered_fields(sample))
  }, variables, samples)
}

# The variables of a fit under other names.
name_variables <- function(variables, names) {
  for (i in seq_along(names)) variables[[i]]$name <- names[[i]]
  stats::setNames(variables, names)
}

new_kme_cov <- function(fit, estimator, ncomp, arguments, several) {
  if (!is.null(ncomp)) {
    if (ncomp > fit$rank) {
      warn_kernmean("'ncomp' is ", ncomp, ", more than the rank of the ",
                    "operator; ", fit$rank, " components were kept")
    }
    kept <- seq_len(min(ncomp, fit$rank))
    fit$values <- fit$values[kept]
    for (name in intersect(c("vectors", "left", "right"), names(fit))) {
      fit[[name]] <- fit[[name]][, kept, drop = FALSE]
    }
  }
  new_fit("kme_cov", c(fit, list(
    estimator = estimator, n = fit$variables[[1L]]$sample$n, several = several,
    arguments = arguments
  )))
}

# What a fit of kme_cov() can do: new values, update, print, summary, plot.

# --- New values ------------------------------------------------------------

#' @rdname kme_cov
#' @param object,newdata A fit; new values, see Methods.
#' @param type `"scores"` or `"value"`, see Methods.
#' @param side For two variables: scores on the singular functions of the first
#'   (`"left"`) or of the second (`"right"`).
#' @export
predict.kme_cov <- function(object, newdata, type = c("scores", "value"),
                            ncomp = NULL, ..., side = c("left", "right")) {
  check_dots(...)
  type <- take(type, choice("scores", "value"))
  d <- length(object$variables)
  if (type == "value" || d == 1L) {
    if (!missing(side)) {
      stop_input("'side' must not be given but for scores of two variables")
    }
  } else {
    side <- take(side, choice("left", "right"))
  }
  if (type == "value") {
    if (!is.null(ncomp)) {
      stop_input("'ncomp' must be NULL for type = \"value\"")
    }
    return(operator_value(object, if (!missing(newdata)) list(newdata)))
  }
  if (d > 2L) {
    stop_input("'type' must be \"value\" for more than two variables, whose ",
               "tensor has no spectrum")
  }
  which <- if (d == 2L && side == "right") 2L else 1L
  v <- if (d == 1L) object$vectors else object[[side]]
  if (!is.null(ncomp)) {
    ncomp <- take(ncomp, count())
    if (ncomp > ncol(v)) {
      stop_input("'ncomp' must be at most ", ncol(v), ", the components that ",
                 "were kept, not ", ncomp)
    }
    v <- v[, seq_len(ncomp), drop = FALSE]
  }
  variable <- object$variables[[which]]
  if (missing(newdata)) {
    check_rows_kept(variable$sample)
    scores <- product(centered_matrix(variable), v)
    names <- sample_names(variable$sample)
  } else {
    new <- read_values(object, newdata, which)[[1L]]
    scores <- if (ncol(v) == 0L) {
      matrix(0, new$m, 0L)
    } else {
      centered_apply(variable, new, v)$value
    }
    names <- new$names
  }
  dimnames(scores) <- list(names, colnames(v))
  scores
}

# sum_i beta_i prod_l k^c_l(z_l, x_il) at the rows of list(newdata), or at the
# sample for NULL.
operator_value <- function(object, newdata) {
  samples <- object$variables
  if (is.null(newdata)) {
    check_rows_kept(samples[[1L]]$sample)
    value <- drop(centered_product(samples) %*% object$weights)
    return(stats::setNames(value, sample_names(samples[[1L]]$sample)))
  }
  newdata <- newdata[[1L]]
  if (length(samples) == 1L) {
    if (is_several(newdata) && length(newdata) == 2L) {
      new <- lapply(unname(newdata), \(z) read_values(object, z, 1L)[[1L]])
    } else {
      new <- rep(read_values(object, newdata, 1L), 2L)
    }
    samples <- rep(samples, 2L)
  } else {
    new <- read_values(object, newdata, seq_along(samples))
  }
  rows <- vapply(new, `[[`, 1L, "m")
  if (any(rows != rows[1L])) {
    stop_input("'newdata' must have as many rows for each variable, not ",
               paste(rows, collapse = " and "))
  }
  value <- operator_at(samples[[1L]]$sample, object, samples, new)
  stats::setNames(value, new[[1L]]$names)
}

# At rows of new points of the variables, as many of each.
operator_at <- function(sample, object, variables, new) {
  if (!is.null(sample$sketch)) {
    return(sketch_operator_at(object, variables, new))
  }
  at <- Map(centered_mean_at, variables, new)
  size <- max(1, 2^22 %/% object$n)
  unlist(lapply(row_panels(seq_len(new[[1L]]$m), size), \(kept) {
    values <- Map(\(variable, z, at) centered_cross(variable, z, at, kept),
                  variables, new, at)
    drop(Reduce(`*`, values) %*% object$weights)
  }))
}

# New points of the variables `which`.
read_values <- function(object, newdata, which) {
  sample <- object$variables[[1L]]$sample
  if (!is.null(sample$sketch)) {
    return(sketch_values(sample, object, newdata, which))
  }
  labels <- names(object$variables)
  if (!is.null(object$terms) && is.data.frame(newdata)) {
    newdata <- lapply(which, \(l) read_term(object$terms, newdata, l))
  } else {
    newdata <- pick_values(object, newdata, which)
  }
  Map(\(z, l) variable_newdata(object$variables[[l]], z, labels[l]), newdata,
      which, USE.NAMES = FALSE)
}

# The values of the variables `which` as a list.
pick_values <- function(object, newdata, which) {
  labels <- names(object$variables)
  d <- length(labels)
  if (is_several(newdata)) {
    if (length(newdata) != d && d == 1L) {
      stop_input("'newdata' must hold values of one variable, not a list of ",
                 length(newdata), "; pairs are for type = \"value\"")
    }
    if (length(newdata) != d) {
      stop_input("'newdata' must be a list of ", d, " variables, not of ",
                 length(newdata))
    }
    if (all(labels %in% names(newdata))) newdata <- newdata[labels]
    newdata <- unname(newdata)[which]
  } else {
    if (length(which) > 1L) {
      stop_input("'newdata' must be a list of ", d, " variables, not ",
                 describe(newdata))
    }
    newdata <- list(newdata)
  }
  newdata
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
  object <- x
  arguments <- object$arguments
  sketch <- object$variables[[1L]]$sample$sketch
  if (!is.null(sketch)) {
    arguments$x <- sketch
    return(change_request(arguments, changes))
  }
  variables <- object$variables
  same_data <- !any(c("x", "y") %in% names(changes))
  moved <- !same_data || "data" %in% names(changes)
  if ("data" %in% names(changes) && !is.null(object$terms)) {
    data <- lapply(seq_along(variables), \(l) {
      read_term(object$terms, changes$data, l, "data")
    })
    names(data) <- names(variables)
    changes$x <- if (length(data) == 1L) data[[1L]] else data
    changes$data <- NULL
  }
  sides <- if (!object$several) c("x", "y")[seq_along(variables)]
  # A formula has sides, a list has none.
  if (object$several && !is.null(object$terms)) {
    changes <- side_kernels(changes, variables)
  }
  changes <- change_kernels(changes, variables, object$several)
  # In other units bandwidths are others.
  rescale <- "scale" %in% names(changes)
  for (l in seq_along(sides)) {
    name <- paste0("kernel_", sides[l])
    given <- changes[[sides[l]]]
    if (!sides[l] %in% names(changes)) {
      if (!rescale) arguments[name] <- list(variable_kernel(variables[[l]]))
    } else {
      arguments[name] <- list(if (!has_own_kernel(given)) {
        kernel_for(given, arguments[[name]], variables[[l]]$sample)
      })
    }
    arguments[sides[l]] <- list(
      variable_input(variables[[l]], rescale || name %in% names(changes))
    )
  }
  if (is.null(sides) && !"x" %in% names(changes)) {
    rekernel <- rescale || "kernel_x" %in% names(changes)
    arguments$x <- lapply(variables, variable_input, rekernel)
    if (!rescale) arguments$kernel_x <- lapply(variables, variable_kernel)
  }
  kept <- setdiff(c("kernel_x", "kernel_y", "scale"), names(changes))
  structure(change_request(arguments, changes),
            kept = if (!moved) c(kept, character()))
}

cov_title <- function(object) {
  d <- length(object$variables)
  paste0(
    if (d > 2L) paste("Tensor of order", d) else
      c("Covariance operator", "Cross-covariance operator")[d],
    ", ", operator_words(object$estimator)
  )
}

# "150 points; x: 2 columns, y: factor of 3 levels"
describe_variables <- function(object) {
  what <- vapply(object$variables, describe_variable, "")
  strwrap(paste0(describe_rows(object$variables[[1L]]$sample), "; ",
                 paste0(names(what), ": ", what, collapse = ", ")),
          exdent = 2L)
}

# "150 points"
describe_rows <- function(sample) {
  if (is.null(sample$sketch)) count_of(sample$n, "point") else
    paste(rows_of(sample$sketch$n), "in a sketch")
}

# What else there is to say of the samples.
describe_notes <- function(object) {
  notes <- lapply(object$variables, \(variable) sample_note(variable$sample))
  if (length(notes) == 1L) {
    return(notes[[1L]])
  }
  unlist(Map(\(label, note) if (!is.null(note)) paste0(label, ": ", note),
             names(notes), notes), use.names = FALSE)
}

# What features are centered by: NULL for their averages.
describe_centers <- function(object, digits) {
  means <- lapply(object$variables, `[[`, "mean")
  plain <- vapply(means, \(mean) {
    is_average(mean$estimator) && is.null(mean$sample$weights)
  }, NA)
  if (all(plain)) {
    return(NULL)
  }
  words <- unique(vapply(means, describe_mean, "", digits))
  if (length(words) > 1L) {
    words <- unique(sub(", lambda = .*", "", words))
  }
  strwrap(paste("center:", paste(words, collapse = "; ")), 81L, exdent = 2L)
}

# The kernels of the variables, as many lines as there is room for.
describe_kernels <- function(object, room) {
  each <- Map(variable_lines, object$variables, names(object$variables))
  each <- each[lengths(each) > 0L]
  # Whole ones, of which the last line may say how many there are besides.
  lines <- cumsum(lengths(each))
  shown <- if (length(each) && lines[length(each)] <= room) length(each) else
    sum(lines < room)
  more <- length(each) - shown
  c(unlist(utils::head(each, shown), use.names = FALSE),
    if (more) paste0(if (shown) "and ", more, if (shown) " more",
                     if (more == 1L) " kernel" else " kernels",
                     ", in the field 'variables'"))
}

fit_lines.kme_cov <- function(x, digits) {
  centers <- describe_centers(x, digits)
  leading <- utils::head(x$values, 5L)
  c(
    cov_title(x), describe_variables(x),
    describe_kernels(x, if (is.null(centers)) 3L else 2L), describe_notes(x),
    centers,
    est_lines(x$estimator, x, digits, "the empirical operator", "0"),
    paste("Hilbert-Schmidt norm",
          format_number(sqrt(max(0, x$norm2)), digits)),
    if (!is.null(x$values)) paste0(
      if (length(x$variables) == 1L) "eigenvalues" else "singular values",
      if (length(leading)) paste0(": ", paste(format(leading, digits = digits),
                                              collapse = " ")),
      " (rank ", x$rank, ")"
    )
  )
}

# The spectrum with its shares, of the trace or of the squared norm.
covariance_shares <- function(x) {
  one <- length(x$variables) == 1L
  share <- if (one) x$values / x$trace else x$values^2 / x$norm2
  structure(
    data.frame(value = x$values, share = share, cumulative = cumsum(share),
               row.names = colnames(if (one) x$vectors else x$left)),
    title = paste(if (one) "Eigenvalues and their share of the trace," else
      "Singular values and their squares' share of the squared norm,",
      format_number(if (one) x$trace else x$norm2))
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
       lambda = x$lambda, alpha = x$alpha, rank = x$rank, trace = x$trace,
       norm2 = x$norm2)
}

fit_values.kme_cov <- function(x, newdata = NULL) {
  if (!is.null(newdata)) {
    stop_input("'newdata' must be NULL for an operator; predict() has its ",
               "scores and values at new points")
  }
  if (!is.null(x$weights)) data.frame(.weight = x$weights)
}

# Points of several variables and codes of factors are no data to be shown.
fit_sample_of.kme_cov <- function(x) {
  sample <- x$variables[[1L]]$sample
  sample["x"] <- list(NULL)
  sample
}


#' @rdname kme_cov
#' @param type For `predict()` `"scores"` or `"value"`.
#' @name kme_cov
NULL

fit_picture.kme_cov <- function(object, type = NULL, groups = NULL,
                                name = NULL) {
  type <- check_type(
    type, c("spectrum", "selection", "scores", "weights"),
    if (length(object$values)) {
      "spectrum"
    } else if (!is.null(object$score)) {
      "selection"
    } else {
      "weights"
    }
  )
  groups <- check_groups(groups, object$n)
  if (!is.null(groups) && type != "scores") {
    stop_input("'groups' must not be given but for type \"scores\"")
  }
  if (type == "weights") coef(object)
  if (type %in% c("spectrum", "scores") && !length(object$values)) {
    stop_input("'type' must not be \"", type, "\" for an operator without a ",
               "spectrum")
  }
  switch(type,
    spectrum = picture_values(object),
    selection = picture_selection(object),
    scores = picture_operator(object, groups, name),
    weights = picture_weights(object, cov_title(object))
  )
}

picture_values <- function(object) {
  one <- length(object$variables) == 1L
  picture <- picture_sequence(
    cov_title(object), object$values,
    if (one) "eigenvalue" else "singular value"
  )
  picture$layers <- c(list(across_layer(h = 0)), picture$layers)
  picture$ylim <- range(0, object$values)
  picture
}

picture_operator <- function(object, groups, name) {
  lines_at <- c(0, 0)
  if (length(object$variables) == 1L) {
    shown <- predict(object, ncomp = min(2L, length(object$values)))
    if (ncol(shown) == 1L) {
      shown <- cbind(index = seq_len(object$n), shown)
      lines_at[1L] <- NA
    }
    labels <- colnames(shown)
  } else {
    shown <- cbind(left = predict(object, ncomp = 1L, side = "left")[, 1L],
                   right = predict(object, ncomp = 1L, side = "right")[, 1L])
    labels <- paste0(names(object$variables), ", first singular function")
  }
  groups_picture(
    paste("Scores:", tolower(sub(",.*", "", cov_title(object)))), shown, groups,
    labels, shown, lines_at, name, whole = if (is.na(lines_at[1L])) "x"
  )
}

# --- Of sketches --------------------------------------------------------------

# Covariance and cross-covariance operators of sketches. In feature coordinates
# they are matrices, C^c of one variable and C_xy^c = W_S'(cross/n)W_T less what
# centering takes of two.

#' @rdname kme_cov
#' @export
kme_cov.kme_sketch <- function(x, y, ..., estimator = "kme", ncomp = NULL,
                               center = "kme") {
  refuse_for_sketch(...names(), c("kernel_x", "kernel_y", "kernel", "scale"))
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
  fit <- if (count == 1L) {
    sketch_covariance(centered[[1L]], estimator)
  } else {
    sketch_cross_covariance(x, centered, estimator)
  }
  # There is no weight for each row.
  fit["weights"] <- list(NULL)
  fit$variables <- keep_centered(lapply(x$landmarks, `[[`, "variable"),
                                 centered)
  fit$variables <- name_variables(fit$variables, variable_labels(x))
  fit <- new_kme_cov(fit, estimator, asked$ncomp, stored(asked), FALSE)
  fit$n <- x$n
  fit
}

kme_cov_sketch_arguments <- door_table(
  "kme_cov.kme_sketch", estimator = read_operator, ncomp = maybe(count()),
  center = anything
)

# Arguments that a sketch has settled; `given`: the names of those given.
refuse_for_sketch <- function(given, settled) {
  given <- intersect(settled, given)
  if (length(given)) {
    stop_input("'", given[1L], "' must not be given when 'x' is a sketch")
  }
}

sketch_covariance <- function(centered, estimator) {
  what <- "a covariance operator"
  operator <- centered_moments(centered, what)
  shrinkage <- sketch_shrinkage(centered, operator, estimator, "estimator")
  share <- if (is.null(shrinkage)) 1 else 1 - shrinkage$alpha
  pairs <- sketch_pairs(centered, operator, what)
  colnames(pairs$vectors) <- paste0("PC", seq_len(pairs$rank))
  c(
    list(values = share * pairs$values, rank = pairs$rank,
         vectors = pairs$vectors, trace = share * sum(diag(operator)),
         norm2 = share^2 * sum(operator^2), operator = share * operator),
    if (is.null(shrinkage)) list(lambda = 0) else shrinkage
  )
}

sketch_cross_covariance <- function(sketch, centered, estimator) {
  if (!is_average(estimator)) {
    stop_input("'estimator' must be \"kme\" for a sketch of two variables, ",
               "not ", estimator_word(estimator), ": a sketch does not keep ",
               "the sums of products that shrinkage takes")
  }
  roots <- lapply(centered, \(one) one$sample$root)
  own <- lapply(centered, \(one) one$sample$moments$mean)
  means <- lapply(centered, mean_coordinates)
  whole <- sketch_cross(sketch)
  operator <- whole - outer(own[[1L]], means[[2L]]) -
    outer(means[[1L]], own[[2L]]) + outer(means[[1L]], means[[2L]])
  found <- svd(operator)
  scale <- sqrt(prod(vapply(centered, \(one) {
    max(one$norm2, one$sample$moments$varrho)
  }, 1)))
  least <- max(sketch_rounding(whole, roots[[1L]], roots[[2L]]),
               rounding_of(max(dim(operator)), scale))
  kept <- found$d > least
  sides <- Map(\(root, v) product(root, v[, kept, drop = FALSE]), roots,
               list(found$u, found$v))
  # The sign of a pair is that of the left one.
  left <- fix_signs(sides[[1L]])
  turned <- ifelse(colSums(left * sides[[1L]]) < 0, -1, 1)
  right <- sides[[2L]] * rep(turned, each = nrow(sides[[2L]]))
  colnames(left) <- colnames(right) <- sprintf("SV%d", seq_len(sum(kept)))
  list(values = found$d[kept], rank = sum(kept), left = left, right = right,
       norm2 = sum(operator^2), operator = operator, lambda = 0)
}

# --- Methods -----------------------------------------------------------------

# f(z)'A g(w), f and g the centered features.
sketch_operator_at <- function(object, variables, new) {
  features <- Map(\(variable, z) {
    own <- variable$sample
    root <- own$sketch$landmarks[[own$variable]]$root
    sample_at(own, z, root) -
      rep(drop(cross(root, variable$at)), each = z$m)
  }, variables, new)
  rowSums(product(features[[1L]], object$operator) * features[[2L]])
}

# Landmarks know what they are made from; those of a formula take their columns
# of one data frame.
sketch_values <- function(sample, object, newdata, which) {
  landmarks <- sample$sketch$landmarks
  each <- if (is.data.frame(newdata) && !is.null(landmarks[[1L]]$side)) {
    rep(list(newdata), length(which))
  } else {
    pick_values(object, newdata, which)
  }
  Map(\(z, l) {
    points <- landmark_points(landmarks[[l]], z, "newdata")
    new_points(points, rownames(points))
  }, each, which, USE.NAMES = FALSE)
}


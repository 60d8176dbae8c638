# Estimators of a kernel mean are objects: est_kme() and its relatives hold the
# user's arguments, and their methods for the verbs of est_verbs.R compute. A
# new estimator is a constructor, register_estimator(), and the methods that
# differ from the defaults. No door knows an estimator by its name.

#' Estimators of a kernel mean
#'
#' Objects that say how a kernel mean is to be estimated. Every function with an
#' argument `estimator` or `center` (and `covariance` of [kme_pca()]) takes the
#' name of one, such an object, or a function of your own.
#'
#' Names are `"kme"`, `"skmse"` (or `"rkmse"`), `"fkmse"`, `"mkme"`, `"mmkme"`,
#' `"smooth"` and `"stack"`, and stand for the object with its defaults; [kme()]
#' passes arguments on: `kme(x, k, "fkmse", lambda = 0.1)` is `kme(x, k,
#' est_fkmse(lambda = 0.1))`. With \eqn{1_n = (1/n, \ldots, 1/n)'}{1_n = (1/n,
#' ..., 1/n)'}, the Gram matrix \eqn{K}, \eqn{\rho = 1_n'K1_n}{rho = 1_n'K 1_n},
#' \eqn{\varrho = \mathrm{tr}(K)/n}{varrho = tr(K)/n} and target \eqn{f^*}{f} (0
#' by default):
#' \describe{
#'   \item{`"kme"`}{\eqn{\beta = 1_n}{beta = 1_n}: the average
#'     \eqn{\hat\mu}{mu^}.}
#'   \item{`"skmse"`}{\eqn{\tilde\mu = \alpha f^* + (1 - \alpha)\hat\mu}{mu =
#'     alpha f + (1 - alpha) mu^}, \eqn{\lambda = \alpha/(1-\alpha)}{lambda =
#'     alpha/(1-alpha)}. `"loocv"` takes the \eqn{\alpha}{alpha} of smallest
#'     leave-one-out score, \eqn{n(\varrho - \rho)/((n-1)^2\|f^* - \hat\mu\|^2 +
#'     \varrho - \rho)}{n (varrho - rho)/((n-1)^2 |f - mu^|^2 + varrho - rho)},
#'     at most 1; `"plugin"` \eqn{(\varrho - \rho)/(\varrho - \rho + (n-1)\|f^*
#'     - \hat\mu\|^2)}{(varrho - rho)/(varrho - rho + (n-1) |f - mu^|^2)}.}
#'   \item{`"fkmse"`}{\eqn{\beta = (K + \lambda I)^{-1}(K1_n - f^*(x))}{beta =
#'     (K + lambda I)^(-1) (K 1_n - f(x))}, added to the target.
#'     \eqn{\lambda}{lambda} minimizes a score over \eqn{[10^{-10},
#'     10^4]}{[1e-10, 1e4]} times the largest eigenvalue of K: `"loocv"`, the
#'     exact leave-one-out score (6n^3 flops); `"gcv"`, with the diagonal of the
#'     smoother replaced by its mean (4n^3/3 flops; about as good with RBF
#'     kernels in five columns or more); `"printed"`, Theorem 4 as printed,
#'     which shrinks too much.}
#'   \item{`"mkme"`, `"mmkme"`}{\eqn{\tilde\mu = \frac1n \sum_i E\,k(\tilde x_i,
#'     \cdot)}{mu = 1/n sum_i E k(x~_i, .)}, \eqn{\tilde x_i \sim N(x_i,
#'     E)}{x~_i from N(x_i, E)}, \eqn{E = \sigma^2 I}{E = sigma^2 I} or
#'     \eqn{\mathrm{diag}(e_1, \ldots, e_d)}{diag(e_1, ..., e_d)}; for RBF
#'     kernels, linear and polynomial ones up to degree 3. For RBF kernels E may
#'     be given as a covariance, of all points or of each. Variances minimize
#'     the exact leave-one-out score, with \eqn{L_{ij} = E\,k(x_i, \tilde
#'     x_j)}{L_ij = E k(x_i, x~_j)} and \eqn{Q_{ij} = E\,k(\tilde x_i, \tilde
#'     x_j)}{Q_ij = E k(x~_i, x~_j)} \deqn{\varrho - \frac{2(\Sigma L -
#'     \mathrm{tr} L)}{n(n-1)} + \frac{(1-2/n)\Sigma Q + \mathrm{tr}
#'     Q/n}{(n-1)^2}.}{varrho - 2 (sum L - tr L)/(n(n-1)) + ((1-2/n) sum Q +
#'     tr(Q)/n)/(n-1)^2.}}
#'   \item{`"smooth"`}{\eqn{\tilde\mu = c \frac1n \sum_i E\,k(\tilde x_i,
#'     \cdot)}{mu = c 1/n sum_i E k(x~_i, .)}, \eqn{\tilde x_i \sim N(m +
#'     \sqrt{1-h}\,(x_i - m), hS)}{x~_i from N(m + sqrt(1 - h) (x_i - m), h S)},
#'     m the mean and S the covariance shrunk as by Ledoit and Wolf (2004); from
#'     the average (h = 0) to the embedding of N(m, S) (h = 1), for RBF kernels.
#'     h and c minimize the score of the points left out of m and S as well.}
#'   \item{`"stack"`}{\eqn{\sum_a w_a \tilde\mu_a}{sum_a w_a mu_a} with the
#'     \eqn{w \ge 0}{w >= 0}, mass at most 1, that minimize \eqn{w'Gw -
#'     2w'g}{w'Gw - 2 w'g}: \eqn{G_{ab}}{G_ab} the mean of \eqn{\langle
#'     \tilde\mu_a^{(-i)}, \tilde\mu_b^{(-i)}\rangle}{<mu_a^(-i), mu_b^(-i)>},
#'     \eqn{g_a}{g_a} that of \eqn{\tilde\mu_a^{(-i)}(x_i)}{mu_a^(-i)(x_i)}.
#'     About 4n^3 flops.}
#' }
#' At \eqn{\lambda = 0}{lambda = 0} both shrinkage estimators are the average,
#' at `Inf` the target. A target estimated from the points of `x` themselves
#' shrinks too much: a warning says so. `vignette("algorithms")` has the costs,
#' `vignette("papers")` the errata and the names of 2016.
#'
#' @section The guard:
#' What is chosen by leaving points out seems better than it is. With
#' \eqn{d_i}{d_i} the squared error at point i, left out, of the average less
#' that of the estimate \eqn{\mu_w}{mu_w}, D their mean and s = sd/\eqn{\sqrt
#' n}{sqrt(n)}, `guard = TRUE` takes \deqn{(1 - t)\hat\mu + t\mu_w, \quad t =
#' D^2/(D^2 + s^2)}{(1 - t) mu^ + t mu_w, t = D^2/(D^2 + s^2)} (t = 0 if D
#' \eqn{\le}{<=} 0). The field `guard` of a fit of [kme()] is a list of `share`,
#' t; `gain` and `error`, D and s of the guarded estimate; and `saved`, about
#' the least share of the squared error of the average that is saved: (D -
#' max(s, D/\eqn{\sqrt n}{sqrt(n)}))/R with R = \eqn{n(\varrho - \rho)/((n -
#' 1)m)}{n (varrho - rho)/((n - 1) m)} that of the m points left in (0 where it
#' is negative, or beyond 1). It is an estimate: of ten points with many ties
#' (`MASS::biopsy`) it promised 2% on average where 4% were lost. What is given
#' and not chosen has no guard. In `hsic_test()` it multiplies noise and h by t.
#' It adds 3 to 9% to the time of a stack. S-KMSE and F-KMSE store the matrix,
#' the others are fitted without each fold.
#' @section Where they work:
#' [kme()] and `center =` take all. Operators ([kme_cov()], `covariance =`) take
#' KME, S-KMSE, F-KMSE, stacks of these and your own, without target, on the
#' features of a product kernel (S-COSE, F-COSE). [kme_density()], [mmd_test()]
#' and [hsic_test()]: all, without target; a stack in `hsic_test()` is of KME
#' and F-KMSE. [bag_gram()] and [smm()]: all, with targets of their own. On a
#' [kme_sketch()]: KME, S-KMSE, and F-KMSE by `"gcv"`, `"printed"` or a given
#' `lambda`. In permutation tests S-KMSE chooses its share for each permutation,
#' the others once from what does not change.
#'
#' @section Which one to take:
#' With an RBF kernel the stack, unless the values of the embedding are what is
#' wanted or many small samples are compared ([bag_gram()], [smm()]): there the
#' average or S-KMSE; with a linear or polynomial kernel S-KMSE.
#' `vignette("shrinkage", package = "kernmean")` has figures.
#'
#' @section Your own:
#' `est_function(f)`, or the function `f` itself, is an estimator by a function
#' of the sample that returns n weights, 1/n each for the average. The sample is
#' a list with fields `n`, `x` (`NULL` where only kernel values are known) and
#' `kernel`; `as.matrix()` gives its Gram matrix. Tests call it for each
#' permutation: their level is exact where it treats all points alike.
#'
#' @param f A function of a sample that returns n finite weights.
#' @param label A name for `print()`.
#' @param ... Must be empty.
#' @param lambda Amount of shrinkage, a number of at least 0 (`Inf` allowed), or
#'   `NULL` to have it selected.
#' @param select The rule: `"loocv"` (the default), for S-KMSE also `"plugin"`,
#'   for F-KMSE also `"gcv"` and `"printed"`.
#' @param target What is shrunk towards: `NULL` for 0, a fit of [kme()] with the
#'   same kernel, or a Gaussian mixture, `list(weights, means, covariances)`
#'   with C weights, a C by d matrix and a d by d by C array; not with `"gcv"`
#'   and `"printed"`.
#' @param noise Variances of the noise, one number, for MMKME also one for each
#'   column, or `NULL` to have them selected; for MMKME also a covariance, d by
#'   d, or one for each point, d by d by n (in [mmd_test()] the points of all
#'   samples in the order in which they are given; not in [mmd_pairwise()],
#'   [bag_gram()] and [smm()]). In squared units of the columns as the kernel
#'   has them, that is after `scale`. With one for each point the squared norm
#'   takes \eqn{n^2d^3/3} flops, a value at a new point \eqn{nd^3/3}.
#' @param h,c Share of the normal distribution and factor of smoothing, numbers
#'   from 0 to 1, or `NULL` to have them selected.
#' @param folds In how many folds points are left out, from 3 on (`Inf`: one by
#'   one); `NULL`: n of up to 60 points, 20 of more. Point i is in fold i modulo
#'   their number.
#' @param candidates A list of estimators in which nothing is left to choose.
#'   `NULL`: the KME, smoothing with h = 0.15, 0.4 and 0.8 (c = 1), for RBF
#'   kernels, and F-KMSE with 0.003, 0.03 and 0.3 times the largest eigenvalue.
#' @param guard Is the estimate to go back to the average where the gain is not
#'   sure? `TRUE` for smoothing and stacks, an option for the others.
#' @param shares The share of each of the `candidates`, numbers of at least 0,
#'   or `NULL` to have them selected.
#' @return An object of class `kernmean_estimator`, a list with the arguments
#'   and what the estimator is called: `name`, `label`, `kind`, and `operator`
#'   where it is used on an operator.
#' @references
#' Muandet, K., Fukumizu, K., Sriperumbudur, B., Gretton, A. and Schölkopf, B.
#' (2014). Kernel mean estimation and Stein effect. *Proceedings of the 31st
#' International Conference on Machine Learning*. Equation 3 (Theorem 1),
#' Theorem 3 (S-KMSE), Theorem 4 (F-KMSE). \doi{10.48550/arXiv.1306.0842}
#'
#' Xia, X., Shan, S., Gong, M., Wang, N., Gao, F., Wei, H. and Liu, T. (2021).
#' Kernel mean estimation by marginalized corrupted distributions. Equations 7
#' and 8 (the estimators), 25 to 27 (score and inner products), 29 to 32 and 34
#' (in tests). \doi{10.48550/arXiv.2107.04855}
#'
#' Ledoit, O. and Wolf, M. (2004). A well-conditioned estimator for
#' large-dimensional covariance matrices. *Journal of Multivariate Analysis*
#' 88(2), 365--411. \doi{10.1016/S0047-259X(03)00096-4}
#'
#' Wolpert, D. H. (1992). Stacked generalization. *Neural Networks* 5(2),
#' 241--259. \doi{10.1016/S0893-6080(05)80023-1}
#' @seealso [glossary]; [kme()]; [as_weights()].
#' @docType methods
#' @name estimators
#' @examples
#' est_fkmse(select = "gcv")
#' est_stack(list(est_kme(), est_smooth(0.4, 1)))
#' x <- scale(iris[1:50, 1:4])
#' kme(x, estimator = est_skmse(lambda = 0.1))
#' # Points measured with errors of a known covariance
#' kme(x, estimator = est_mmkme(noise = 0.1 * cov(x)))
#'
#' # One of your own: the tenth of the points that are farthest out counts half
#' trimmed <- function(sample) {
#'   at <- rowMeans(as.matrix(sample))
#'   ifelse(rank(at) <= sample$n / 10, 0.5, 1) / sample$n
#' }
#' kme(x, estimator = trimmed)
#' mmd_test(x[1:25, ], x[26:50, ], estimator = est_function(trimmed, "trimmed"),
#'          B = 99)
NULL

# An estimator as an object.
#   name       the name it is registered by, "skmse"
#   label      its short name in print, "S-KMSE"
#   kind       its name in words, "simple shrinkage"
#   operator   its short name on an operator, "S-COSE"
#   by_column  does it have a variance for each column?
#   arguments  the user's, each a field by itself
#   traits     some of "gram" (the fit stores the Gram matrix), "unshrunk" (the
#              estimate is an average), "noisy" (its points have noise), "poly"
#              (polynomial kernels are allowed), "sums" (it needs only sums over
#              rows, as a sketch keeps them)
new_estimator <- function(name, label, kind = NULL, operator = NULL,
                          by_column = FALSE, arguments = list(),
                          traits = character()) {
  structure(
    c(list(name = name, label = label, kind = kind, operator = operator,
           by_column = by_column, traits = traits), arguments),
    class = c(paste0("est_", name), "kernmean_estimator")
  )
}

# An estimator with a guard where it has something to choose.
with_guard <- function(estimator, guard) {
  estimator$guard <- take(guard, flag)
  if (guard && !is.null(estimator$select)) {
    class(estimator) <- c("est_guarded", class(estimator))
    # The guard needs the gain at each point, which sums over all points do not
    # give.
    estimator$traits <- c(setdiff(estimator$traits, c("sums", "unshrunk")),
                          if (!has_trait(estimator, "noisy")) "gram")
  }
  estimator
}

# --- Names -----------------------------------------------------------------

registered <- new.env(parent = emptyenv())
registered$makers <- list()
registered$aliases <- character()
registered$candidates <- list()

# Makes an estimator known by its name. candidates: NULL, or a function of a
# sample that returns a named list of estimators without anything to choose: the
# candidates of a stack whose user gave none.
register_estimator <- function(name, make, aliases = character(),
                               candidates = NULL) {
  registered$makers[[name]] <- make
  registered$aliases[aliases] <- name
  registered$candidates[[name]] <- candidates
}

# The names of the arguments of all constructors.
registered_arguments <- function() {
  unique(unlist(lapply(registered$makers, \(make) names(formals(make)))))
}

# The name as it is registered, or an error.
estimator_name <- function(x, argument) {
  known <- names(registered$makers)
  if (is.character(x) && length(x) == 1L) {
    if (x %in% known) {
      return(x)
    }
    if (validEnc(x)) x <- tolower(gsub("-", "", x))
    if (x %in% names(registered$aliases)) x <- registered$aliases[[x]]
  }
  take(x, choice(known), argument)
}

# The estimator that a door was given by name, as an object or as a function;
# the dots are arguments of the constructor, where a name was given.
read_estimator <- function(x, ..., argument = "estimator") {
  # A name without arguments is the common case, and is quick.
  if (is.character(x) && !...length()) {
    return(registered$makers[[estimator_name(x, argument)]]())
  }
  arguments <- Filter(Negate(is.null), list(...))
  if (is.function(x)) {
    if (any(vapply(registered$makers, identical, NA, x))) {
      stop_input("'", argument, "' must be an estimator; call what makes one, ",
                 "as in est_skmse()")
    }
    x <- est_function(x)
  }
  made <- inherits(x, "kernmean_estimator")
  name <- if (made) x$name else estimator_name(x, argument)
  make <- registered$makers[[name]]
  wrong <- setdiff(names2(arguments), if (!made) names(formals(make)))[1L]
  if (!is.na(wrong)) refuse_argument(wrong, name, made)
  if (made) x else do.call(make, arguments, quote = TRUE)
}

# The error for an argument that the estimator does not take. made: was the
# estimator given as an object?
refuse_argument <- function(wrong, name, made) {
  takes <- names(Filter(\(make) wrong %in% names(formals(make)),
                        registered$makers))
  if (length(takes)) {
    stop_input("'", wrong, "' must not be given for estimator \"", name, "\"",
               if (made) paste0(" beside what made it, est_", name, "()") else
                 paste0(", but for ", quote_words(takes)))
  }
  stop_unused(wrong, c(registered_arguments(), "kernel", "scale", "weights"))
}

# The names of the arguments of an estimator's constructor; NULL for an
# estimator of the user.
estimator_arguments <- \(name) names(formals(registered$makers[[name]]))

# The name of an estimator in messages; its label if it is the user's own.
estimator_word <- function(estimator) {
  users <- is.null(registered$makers[[estimator$name]])
  paste0("\"", if (users) estimator$label else estimator$name, "\"",
         if (inherits(estimator, "est_guarded") &&
               !inherits(estimator, "est_smooth")) " with a guard")
}

# The estimator of a fit with changed arguments. Another estimator brings its
# own rule of choice; a number that is given replaces the rule, and a rule that
# is given replaces the number.
change_estimator <- function(estimator, changes) {
  other <- changes$estimator
  changes["estimator"] <- NULL
  kept <- NULL
  if (is.null(other)) {
    other <- estimator
    if (length(changes) && !is.null(registered$makers[[estimator$name]])) {
      other <- estimator$name
      kept <- estimator_arguments(other)
    }
  } else if (is.character(other)) {
    kept <- intersect("target", estimator_arguments(
      estimator_name(other, "estimator")
    ))
  }
  old <- unclass(estimator)[intersect(kept, names(estimator))]
  if (any(c("lambda", "noise") %in% names(Filter(length, changes)))) {
    old["select"] <- NULL
  }
  # Shares belong to the old candidates.
  if ("candidates" %in% names(changes)) old["shares"] <- NULL
  if (!is.null(changes$select)) old[c("lambda", "noise")] <- NULL
  old[names(changes)] <- changes
  do.call(read_estimator, c(list(other), old), quote = TRUE)
}

# --- Arguments that several share ------------------------------------------

an_amount <- maybe(number(finite = FALSE))

# The rule of selection, NULL where the amount called `name` is given.
check_rule <- function(select, choices, amount, name) {
  if (!is.null(amount)) {
    if (!is.null(select)) {
      stop_input("'select' must be NULL when '", name, "' is given")
    }
    return(NULL)
  }
  if (is.null(select)) choices[1L] else take(select, choice(choices))
}

# The kernel that an estimator brings along for points given without one, or
# NULL.
estimator_kernel <- function(estimator) {
  if (inherits(estimator$target, "kme")) estimator$target$kernel
}

# Stops if the user gave weights, which estimators that shrink make themselves,
# or if there are too few points.
check_shrinkable <- function(estimator, sample, least = 2L) {
  if (!is.null(sample$weights)) {
    stop_input(
      "'weights' must be NULL for estimator ", estimator_word(estimator),
      "; a user's own weights are an embedding as it is"
    )
  }
  if (sample$n < least) {
    stop_input("'x' must have at least 2 rows for estimator ",
               estimator_word(estimator), ", not ", sample$n)
  }
}

# --- Words -----------------------------------------------------------------

select_title <- c(
  loocv = "exact leave-one-out", plugin = "plug-in",
  gcv = "generalized leave-one-out", printed = "Theorem 4 as printed"
)

# The words for how the amounts of an estimator, or of a fit, were chosen.
describe_rule <- function(chooser) {
  if (is.null(chooser$select)) {
    "given"
  } else if (is.null(chooser$folds) || chooser$folds == chooser$n) {
    select_title[[chooser$select]]
  } else {
    paste(chooser$folds, "folds")
  }
}

# "S-COSE"
operator_label <- function(estimator) {
  estimator$operator %||% estimator$label
}

#' @export
print.kernmean_estimator <- function(x, ...) {
  cat(format_estimator(x), "\n", sep = "")
  invisible(x)
}

# The estimator in words. A guard is mentioned where the default is to have
# none, and its absence where the default is to have one.
format_estimator <- function(estimator) {
  make <- registered$makers[[estimator$name]]
  usual <- if (!is.null(make)) formals(make)$guard
  odd <- !is.null(estimator$select) && !is.null(usual) &&
    !identical(estimator$guard, usual)
  paste0(estimator_words(estimator),
         if (odd) if (usual) ", without guard" else ", with a guard")
}
estimator_words <- function(estimator) UseMethod("estimator_words")
estimator_words.kernmean_estimator <- function(estimator) {
  amount <- intersect(c("lambda", "noise"), names(estimator))
  value <- if (length(amount)) estimator[[amount]]
  paste0(
    estimator$label,
    if (!is.null(estimator$kind)) paste0(" (", estimator$kind, ")"),
    if (length(amount)) paste0(": ", amount),
    if (length(dim(value)) > 1L) {
      paste0(": ", describe_covariance(value))
    } else if (!is.null(value)) {
      paste(" =", format_several(value))
    } else if (length(amount)) {
      paste(" by", describe_rule(estimator))
    },
    if (!is.null(estimator$target)) {
      paste(", towards", describe_target(estimator$target))
    }
  )
}

# The line of the selection score, NULL where nothing was selected.
describe_score <- function(fit, digits, plain = "the KME") {
  if (is.null(fit$select) || is.null(fit$minimum)) {
    return(NULL)
  }
  if (!is.null(fit$guard)) {
    return(c(paste0("score ", format_number(fit$minimum, digits), ", that of ",
                    plain, " ", format_number(fit$reference, digits)),
             guard_line(fit$guard, digits, plain)))
  }
  gain <- 100 * (1 - fit$minimum / fit$reference)
  paste0(
    "score ", format_number(fit$minimum, digits),
    if (isTRUE(is.finite(gain) & abs(gain) > 1e-10)) {
      paste0(", ", format(abs(gain), digits = 2), "% ",
             if (gain > 0) "below" else "above", " that of ", plain)
    }
  )
}

# The words that say how much of a guarded estimate remains.
guard_words <- function(guard) {
  if (!is.null(guard)) {
    paste0(", of which the guard keeps ", format(100 * guard$share, digits = 2),
           "%")
  }
}

# The line of print() on a guard: the share of the choice that it keeps, and
# what is sure to be saved.
guard_line <- function(guard, digits, plain) {
  if (is.null(guard)) {
    return(NULL)
  }
  if (guard$share == 0) {
    return(paste("guard: no gain is seen, the estimate is", plain))
  }
  percent <- \(x) paste0(format(100 * x, digits = 2L), "%")
  paste0("guard: ", percent(guard$share), " of it, the rest is ", plain, "; ",
         if (guard$saved == 0) "that it saves anything is not sure" else paste0(
           "saves at least about ", percent(guard$saved),
           " of the squared error"
         ))
}

# The leave-one-out score of alpha f + (1 - alpha) mu^, which is the mean of
# |phi(x_i) - alpha f - (1 - alpha) mu^(-i)|^2 over the points; cross is <f,
# mu^> and norm2 is |f|^2. At alpha = 0 it is the score of the average.
loo_score <- function(alpha, n, rho, varrho, cross = 0, norm2 = 0) {
  inner <- (n * rho - varrho) / (n - 1)
  left_out_norm2 <- (n^2 * rho - 2 * n * rho + varrho) / (n - 1)^2
  varrho - 2 * alpha * cross - 2 * (1 - alpha) * inner + alpha^2 * norm2 +
    2 * alpha * (1 - alpha) * cross + (1 - alpha)^2 * left_out_norm2
}

# --- The average, and estimators of the user's -----------------------------

#' @rdname estimators
#' @export
est_kme <- function(...) {
  check_dots(...)
  new_estimator("kme", "KME", traits = c("unshrunk", "sums"))
}
register_estimator("kme", est_kme, candidates = \(sample) {
  list(KME = est_kme())
})

# If the user gave weights, they stand in the sample.
est_fit.est_kme <- function(estimator, sample) {
  moments <- sample_moments(sample)
  if (!is.null(sample$weights)) {
    return(weights_fit(sample, sample$weights, moments))
  }
  new_estimate(plain_weights(sample), moments$rows, moments$rho, moments)
}

est_weights.est_kme <- function(estimator, sample) {
  sample$weights %||% plain_weights(sample)
}

weights_left_out.est_kme <- function(estimator, sample, fold) {
  kept <- outer(fold, seq_len(max(fold)), `!=`)
  kept / rep(colSums(kept), each = sample$n)
}

est_share.est_kme <- \(estimator) \(rho, varrho, n) 0 * rho

# May the weights of the estimator depend on the order of points? Those of a
# user's function may depend on anything.
sees_order <- function(estimator) {
  any(vapply(c(list(estimator), estimator$candidates), inherits, NA,
             "est_function"))
}

# Is the estimate the plain average of the features of the sample?
is_average <- function(estimator) inherits(estimator, "est_kme")

#' @rdname estimators
#' @export
est_function <- function(f, label = "own weights", ...) {
  check_dots(...)
  check_given(f)
  if (!is.function(f)) {
    stop_input("'f' must be a function of a sample, not ", describe(f))
  }
  if (!length(argument_names(f))) {
    stop_input("'f' must take a sample, not nothing")
  }
  label <- take(label, new_kind("one string", \(x) {
    is.character(x) && length(x) == 1L && !is.na(x)
  }))
  new_estimator("function", label, arguments = list(f = f), traits = "gram")
}

est_weights.est_function <- function(estimator, sample) {
  weights <- tryCatch(estimator$f(sample), simpleError = \(e) {
    stop_input("the function of an estimator must take a sample; ",
               conditionMessage(e))
  })
  if (!is.numeric(weights) || length(weights) != sample$n) {
    stop_input("the function of an estimator must return ", sample$n,
               " weights, one for each point, not ", describe(weights))
  }
  check_finite(weights, "the value of the estimator's function")
  as.double(weights)
}

est_fit.est_function <- function(estimator, sample) {
  check_shrinkable(estimator, sample, 1L)
  weights_fit(sample, est_weights(estimator, sample))
}

describe_target <- function(target) {
  if (is.null(target)) {
    "0"
  } else if (inherits(target, "kme")) {
    "another kernel mean"
  } else {
    "a Gaussian mixture"
  }
}

# The names of the arguments of a function; NULL for a function without a list
# of arguments, such as `if`.
argument_names <- function(f) {
  known <- args(f)
  if (is.null(known)) NULL else names(formals(known))
}

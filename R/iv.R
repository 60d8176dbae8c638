#' Instrumental variables in reproducing kernel Hilbert spaces
#'
#' A function g with \eqn{E[Y - g(X) \mid Z] = 0}{E[Y - g(X) | Z] = 0}, where X
#' may depend on the errors of Y and the instruments Z do not, without a
#' parametric form.
#'
#' Least squares of Y on X estimate \eqn{E[Y \mid X]}{E[Y | X]}, which is not g
#' where X is endogenous. These estimators make the residuals small in the
#' directions that functions of the instruments span: with \eqn{K_X, K_Z} the
#' Gram matrices, \eqn{g = K_X a} the values of g at the points and \deqn{P =
#' K_Z(K_Z + \lambda I)^{-1},}{P = K_Z (K_Z + lambda I)^(-1),} for
#' \eqn{\lambda = 0}{lambda = 0} the projection on the range of \eqn{K_Z}, they
#' minimize \deqn{(y - g)'P(y - g) + \mu\,\mathrm{pen}(g).}{
#' (y - g)'P(y - g) + mu pen(g).}
#' \describe{
#'   \item{`penalty = "norm"`, Estimator 1}{\eqn{\mathrm{pen}(g) =
#'     \|g\|^2}{pen(g) = |g|^2}, the norm of the RKHS; its weights solve
#'     \eqn{(K_X P K_X + \mu K_X)a = K_X P y}{(K_X P K_X + mu K_X) a =
#'     K_X P y}.}
#'   \item{`penalty = "l2"`, Estimator 2}{\eqn{\mathrm{pen}(g) = g'g}{pen(g) =
#'     g'g}; its weights solve \eqn{(K_X P K_X + \mu K_X^2)a = K_X P y}{(K_X P
#'     K_X + mu K_X^2) a = K_X P y} with the smallest norm. It is meant for
#'     instruments that span few directions, such as discrete ones: where the
#'     projection keeps all of them, \eqn{g = y/(1 + \mu)}{g = y/(1 + mu)}
#'     whatever the instruments are, and a warning says so.}
#' }
#' [rkhs_iv_nested()] has Estimator 3, of a second function h whose moment
#' holds g.
#'
#' All penalties are in units of the matrix: \eqn{\lambda}{lambda} is added to
#' \eqn{K_Z}, and an objective with means and the penalties
#' \eqn{\lambda_0\|f\|^2}{lambda0 |f|^2}, \eqn{\nu\|g\|^2}{nu |g|^2} has
#' \eqn{\lambda = n\lambda_0}{lambda = n lambda0}, \eqn{\mu = n\nu}{mu = n nu};
#' that of \eqn{g'g/n}{g'g/n} is \eqn{\mu}{mu} itself.
#'
#' With `kernel = kernel_poly(1)`, `lambda = 0` and `mu = 1e-6`, on standardized
#' columns, either estimator is two-stage least squares to the digits that a
#' print shows. Factors have the kernel that is 1 for equal levels and 0 for
#' others; beside numeric columns the product of both, so that g is another
#' function for each combination of levels, with none of their data in common.
#' For additive controls use their dummies, of [stats::model.matrix()]. Powers
#' and interactions are of no use with kernels such as [kernel_rbf()], which
#' make functions of all columns of a side.
#'
#' @section Choice of the penalties: `lambda = NULL` takes, for `"norm"`, that
#' of 25 values \eqn{\lambda/n}{ lambda/n} (for kernels whose \eqn{k(x, x)} is
#' not 1, this and \eqn{\mu}{mu} are multiples of the trace in place of n) from
#' \eqn{10^{-6}}{10^-6} to 1 with the smallest generalized cross-validation
#' score of the first stage, the kernel ridge regression of the features of X on
#' Z (Estimator 1 hardly depends on it), and 0 for `"l2"`.
#'
#' `mu = NULL` tries 30 values of \eqn{\mu/n}{mu/n} (`"l2"`: of \eqn{\mu}{mu})
#' from \eqn{10^{-5}}{10^-5} to 1 by cross-validation: g from the rows outside a
#' fold, the criterion \eqn{r'Pr/t^2}{r'Pr/t^2} of the residuals \eqn{r} of the
#' t rows of the fold, with P made of these rows alone, its mean over folds.
#' \eqn{\lambda/n}{lambda/n} and \eqn{\mu/n}{mu/n} stay the same between folds
#' and all rows, and so do kernels, landmarks and features, which know nothing
#' of y. If the minimum is at an end, ten more values are tried there; if it is
#' at an end again, or the values were given, a warning of class
#' `kernmean_warning_border` says so. The held-out criterion is blind to what
#' the instruments do not explain, and its minimum undersmooths: `rule =
#' "paired"` takes the largest penalty whose score exceeds the minimum by at
#' most one standard error, over folds, of the difference; `rule = "1se"` the
#' largest within one standard error of the minimum itself, and `"min"` the
#' minimum. On the designs of the study `iv.R` (see `vignette("iv")`) `"paired"`
#' errs less than `"1se"` on curves, by a fifth to a third, and more on a
#' straight line from 500 rows on; less than `"min"` but on curves with strong
#' instruments, where the minimum is best. Where the largest penalty that was
#' tried is chosen, a warning says so: g is nearly constant then because the
#' instruments hardly tell it from a constant, which is no evidence that there
#' is no effect.
#'
#' With `mu = NULL`, y is centered by its mean before, which is added to g
#' (`intercept`); with values of `mu` it is not, unless you say so or the call
#' is an `update()` of a fit where it was.
#'
#' Where rows come in an order, folds of rows next to each other differ, and
#' the penalty is chosen too large; a warning of class `kernmean_warning_folds`
#' says so, and `folds = sample(rep_len(1:6, n))` helps. (The default is that of
#' the authors.)
#'
#' @section Large samples: `landmarks = m` restricts the functions of all blocks
#' to the sections of m points (Nyström), `features = m` replaces
#' [kernel_rbf()] by m random Fourier features. Both are drawn by R's generator,
#' landmarks once for all blocks. All landmarks are the exact estimator.
#'
#' @section Inference:
#' There are no standard errors, confidence bands or tests for weak instruments
#' for these estimators, and none are made up. `summary()` gives, for each
#' moment, the criterion \eqn{r'Pr/n} and the share of the residuals' sum of
#' squares that the instruments explain. For residuals that have nothing to do
#' with the instruments that share is about tr P/n (for projections the rank
#' over n): clearly above it, the instruments still see something of them. Where
#' all residuals are 0 the share is 0. Weak instruments show in a flat criterion
#' and a large penalty: the fit shrinks to a constant what they do not identify.
#'
#' @section Cost: Exact fits write \eqn{K = FF'} by a pivoted Cholesky factor to
#' \eqn{10^{-13}}{10^-13} of the trace, r columns (far less than n for smooth
#' kernels of few columns): \eqn{O(nr^2)}{O(n r^2)} time and \eqn{8nr}{8 n r}
#' bytes for each block, \eqn{O(r^3)}{O(r^3)} for what follows; no n by n matrix
#' is formed. A grid of penalties takes one eigendecomposition of order r, and
#' cross-validation one for each fold. With m landmarks or features,
#' \eqn{O(nm^2)}{O(n m^2)} time, and memory \eqn{O(m^2)}{O(m^2)} beyond the data
#' and one panel of rows.
#'
#' @param x The regressors: a numeric matrix, a data frame (factors among its
#'   columns are kept), a vector, a factor, or a [gram()].
#' @param y The outcome, numeric.
#' @param z The instruments, as `x`. Exogenous regressors stand in both.
#' @param kernel One kernel for all blocks, or a list by block, `list(x = , z =
#'   )`. By default, and for blocks that a list leaves out, [kernel_rbf()] with
#'   the median distance of the standardized columns. Factors have their own,
#'   and so has a `gram`.
#' @param penalty `"norm"` or `"l2"`.
#' @param lambda \eqn{\lambda \ge 0}{lambda >= 0}, 0 for the projection; `"gcv"`
#'   or `NULL`, see below.
#' @param mu \eqn{\mu > 0}{mu > 0}; several values to choose among; or `NULL`.
#' @param ... In the default method, must be empty; in the formula method,
#'   arguments of the default method by name; in `update()`, arguments to be
#'   changed.
#' @param select `"cv"`, or `NULL` for it where there is more than one penalty.
#' @param rule `"paired"`, `"1se"` or `"min"`, see below; with a preset
#'   `"min"` by default.
#' @param folds A number of folds, of rows next to each other, or the fold of
#'   each row (of those that `subset` and `na.action` leave).
#' @param landmarks A number of landmarks, or their row numbers.
#' @param features A number of random Fourier features.
#' @param scale `FALSE`, `TRUE` or `"whiten"`: the units of the columns of each
#'   block, see [gram()]. `NULL`: `TRUE` for blocks without a kernel of yours,
#'   `FALSE` for others, with a warning where units differ.
#' @param intercept Center y? `NULL`: where `mu` and `preset` are `NULL`.
#' @param preset `"nnpiv"`: penalties and kernels by the rules of the authors'
#'   code, see `vignette("iv")`, or a list of other numbers for these rules;
#'   not with `lambda`, `mu` or `intercept`.
#' @param tol_learner,tol_instrument Directions with eigenvalues below this
#'   share of the largest are left out: of \eqn{K_X} for `"l2"`, and of
#'   \eqn{K_Z} for \eqn{\lambda = 0}{lambda = 0}, where they are the
#'   regularization. `tol_instrument = NULL` is \eqn{n\epsilon}{n eps}; or, in
#'   exact fits with a kernel that tells points apart (as all with a bandwidth),
#'   where each value of the instruments comes at least twice on average, the
#'   projection is that on the means of equal ones, exactly.
#' @param progress Show how far cross-validation has come, from 800 rows on?
#' @param formula `y ~ x1 + x2 | z1 + z2`, a dot after the bar for the
#'   regressors, as in `. - x1 + z1`.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#' @return An object of class `rkhs_iv`, a list with
#' \item{coefficients}{`list(g)`, the weights a, 0 for points that are not
#'   needed; with `features` `NULL`}
#' \item{fitted.values, residuals}{g at the points, and y - g}
#' \item{lambda, mu, penalty}{the penalties}
#' \item{intercept}{the mean of y that was taken out, or 0}
#' \item{criterion}{\eqn{r'Pr/n}}
#' \item{rank}{by block, the dimension of the space of functions}
#' \item{rule, alpha_scale}{how the penalty was chosen, and that of a preset}
#' \item{cv}{after cross-validation a data frame: `mu`, `score`, `se` of it,
#'   `se_above` of its difference to the minimum, `chosen`;
#'   its attributes `folds`, the scores by fold, and `border`}
#' \item{first_stage}{where `lambda` was chosen, a data frame: `lambda`, `gcv`}
#' \item{landmarks}{the rows that are landmarks, or `NULL`}
#' \item{functions, blocks, kernels, y, n, centered, terms, na.action,
#'   arguments}{what [predict()]
#'   and `update()` need}
#' @section Methods: [predict()][predict.rkhs_iv], [plot()][plot.rkhs_iv],
#'   `summary()`, `coef()`, `fitted()`, `residuals()`, `nobs()`, and `update()`,
#'   which fits again with other arguments (landmarks are drawn again for other
#'   points only, features always; a list of kernels replaces all; `data =` of a
#'   fit by formula takes all rows of the new data, with the terms of the old
#'   ones).
#' @references
#' Dikkala, N., Lewis, G., Mackey, L. and Syrgkanis, V. (2020). Minimax
#' estimation of conditional moment models. *NeurIPS 33*.
#' \doi{10.48550/arXiv.2006.07201}
#'
#' Meza, I. and Singh, R. (2021). Nested nonparametric instrumental variable
#' regression. \doi{10.48550/arXiv.2112.14249}
#' @seealso [rkhs_iv_nested()]; `vignette("iv")`
#' @family instrumental variables
#' @examples
#' # x is endogenous: e is in x and in y
#' set.seed(1)
#' n <- 400
#' z <- rnorm(n)
#' e <- rnorm(n)
#' x <- z + e / 2
#' y <- sin(2 * x) + e + rnorm(n) / 2
#' fit <- rkhs_iv(y ~ x | z)
#' fit
#' plot(fit)
#' predict(fit, data.frame(x = c(-1, 0, 1)))
#' @export
rkhs_iv <- function(x, ...) {
  UseMethod("rkhs_iv")
}

#' @rdname rkhs_iv
#' @export
rkhs_iv.default <- function(x, y, z, kernel = kernel_rbf(),
                            penalty = c("norm", "l2"), lambda = NULL,
                            mu = NULL, ..., select = NULL,
                            rule = c("paired", "1se", "min"), folds = 6,
                            landmarks = NULL, features = NULL, scale = NULL,
                            intercept = NULL, preset = NULL,
                            tol_learner = sqrt(.Machine$double.eps),
                            tol_instrument = NULL,
                            progress = interactive()) {
  check_dots(...)
  if (missing(x)) stop_input("'x' must be given: the regressors")
  if (missing(y)) stop_input("'y' must be given: the outcome")
  if (missing(z)) stop_input("'z' must be given: the instruments")
  given <- if (!missing(kernel)) kernel
  lambda <- check_lambda(lambda, "lambda")
  mu <- check_mu(mu, "mu")
  said <- list(lambda = lambda, mu = mu, intercept = intercept)
  preset <- check_preset(preset, names(Filter(Negate(is.null), said)))
  arguments <- list(kernel = given, penalty = penalty, lambda = lambda, mu = mu,
                    select = select, rule = if (!missing(rule)) rule,
                    folds = folds,
                    landmarks = landmarks, features = features, scale = scale,
                    intercept = intercept, preset = preset,
                    tol_learner = tol_learner, tol_instrument = tol_instrument)
  asked <- list(
    lambda = list(d = lambda), mu = mu, ratio = 1, preset = preset,
    select = check_select(select),
    rule = if (missing(rule) && !is.null(preset)) "min" else
      check_choice(rule, c("paired", "1se", "min"), "rule"),
    folds = folds,
    center = check_intercept(intercept, is.null(mu) && is.null(preset))
  )
  penalty <- check_choice(penalty, c("norm", "l2"), "penalty")
  tol <- check_tolerances(tol_learner, tol_instrument)
  check_flag(progress, "progress")
  blocks <- read_blocks(list(x = x, z = z), given, scale, preset)
  n <- blocks$x$sample$n
  y <- check_outcome(y, n)
  asked$approximation <- check_approximation(landmarks, features, n)
  task <- list(y = unname(y), rows = list(d = rep(TRUE, n)), penalty = penalty,
               tol = tol, labels = list(a = "'x'", d = "'z'"),
               lambdas = list(d = "lambda"))
  found <- fit_iv(task, list(a = blocks$x, d = blocks$z), asked, progress)
  new_rkhs_iv(found, blocks, y, penalty, arguments, c(a = "x", d = "z"),
              c(g = "a"))
}

# The fit of what fit_iv() found. `called`: the names of the user for the blocks
# of the task; `functions`: the blocks of the functions.
new_rkhs_iv <- function(found, blocks, y, penalty, arguments, called,
                        functions) {
  maps <- found$maps[functions]
  theta <- found$theta[names(functions)]
  parts <- Map(map_function, maps, theta)
  names(parts) <- names(functions)
  values <- lapply(Map(map_values, maps, parts, theta), `+`, found$mean)
  names(values) <- names(functions)
  rows <- outcome_names(y, blocks[[called[["a"]]]])
  values <- lapply(values, stats::setNames, rows)
  fit <- list(
    coefficients = lapply(parts, `[[`, "weights"),
    fitted.values = if (length(values) > 1L) do.call(cbind, values) else
      values$g,
    residuals = stats::setNames(y, rows) - values$g, penalty = penalty,
    lambda = c(lambda = found$lambda$d), mu = c(mu = found$mu),
    intercept = found$mean, criterion = found$criterion[1L],
    rank = stats::setNames(found$ranks, called[names(found$ranks)]),
    cv = new_cv(found$search), first_stage = found$first_stage$d,
    rule = found$rule, alpha_scale = found$alpha_scale, functions = parts,
    blocks = blocks, kernels = lapply(blocks, \(b) b$sample$kernel), y = y,
    n = length(y), centered = found$center, landmarks = found$landmarks,
    arguments = arguments
  )
  structure(fit, class = "rkhs_iv")
}

new_cv <- function(search) {
  if (is.null(search)) {
    return(NULL)
  }
  table <- search$table
  names(table)[1L] <- "mu"
  structure(table, folds = search$scores, border = search$border,
            extended = search$extended)
}

outcome_names <- function(y, block) {
  if (!is.null(names(y))) names(y) else rownames(block$sample$x)
}

#' @rdname rkhs_iv
#' @export
rkhs_iv.formula <- function(formula, data = NULL, subset, na.action, ...) {
  check_formula(formula, data)
  own <- intersect(c("x", "y", "z"), ...names())
  if (length(own)) {
    stop_input("'", own[1L], "' must not be given with a formula, which says ",
               "what it is")
  }
  parts <- iv_parts(formula, data)
  frame <- formula_frame(match.call(expand.dots = FALSE), parts$terms, data,
                         missing(na.action), parent.frame())
  layout <- attr(frame, "terms")
  attr(layout, "groups") <- parts$groups
  columns <- lapply(parts$groups, \(g) {
    named_block(frame[g], names(frame)[g],
                if (.row_names_info(frame) > 0L) row.names(frame))
  })
  y <- check_outcome(plain_term(frame[[1L]]), nrow(frame), names(frame)[1L])
  if (.row_names_info(frame) > 0L) names(y) <- row.names(frame)
  fit <- rkhs_iv.default(columns[[1L]], y, columns[[2L]], ...)
  fit$terms <- keep_constants(layout, data)
  fit$na.action <- attr(frame, "na.action")
  fit
}

# The part after the bar with the regressors for its dots. (update.formula()
# reads its own text again, where y > 0 has lost its parentheses.)
put_dots <- function(part, learners) {
  if (identical(part, quote(.))) {
    return(call("(", learners))
  }
  if (is_sum(part)) {
    part[-1L] <- lapply(as.list(part)[-1L], put_dots, learners)
  } else if ("." %in% all.vars(part)) {
    stop_input("'formula' must not have '.' inside a call, as in ",
               deparse1(part))
  }
  part
}

is_sum <- function(part) {
  is.call(part) && is.name(part[[1L]]) &&
    as.character(part[[1L]]) %in% c("+", "-", "(")
}

# What a minus takes away from a dot must be there: a misspelt name would leave
# a regressor among the instruments. `left`: the terms that are left.
check_removed <- function(part, known, left) {
  gone <- removed_terms(part)
  lost <- setdiff(gone, known)
  if (length(lost)) {
    stop_input("'formula' must not take away '", lost[1L], "' after the bar, ",
               "which is no regressor; these are ", shorten(known))
  }
  kept <- intersect(gone, left)
  if (length(kept)) {
    stop_input("'formula' must take away '", kept[1L], "' after the dot, as ",
               "in . - ", kept[1L], ", and not add it again")
  }
}

removed_terms <- function(part) {
  if (!is_sum(part)) {
    return(NULL)
  }
  own <- if (identical(part[[1L]], quote(`-`))) {
    taken <- stats::as.formula(call("~", part[[length(part)]]))
    attr(formula_terms(taken, NULL), "term.labels")
  }
  c(own, unlist(lapply(as.list(part)[-1L], removed_terms)))
}

# A single numeric term keeps its name as that of its column.
named_block <- function(terms, names, rows) {
  block <- bind_terms(terms, names, rows)
  if (is.numeric(block) && is.null(dim(block))) {
    block <- matrix(block, ncol = 1L, dimnames = list(rows, names))
  }
  block
}

# list(terms of y ~ all variables, groups: the columns of its frame that are
# regressors and instruments).
iv_parts <- function(formula, data) {
  shape <- paste("'formula' must be y ~ regressors | instruments, with",
                 "exogenous regressors on both sides, as in",
                 "y ~ x1 + x2 | x2 + z1")
  right <- formula[[length(formula)]]
  bar <- \(part) is.call(part) && identical(part[[1L]], quote(`|`))
  if (length(formula) != 3L || !bar(right)) {
    stop_input(shape)
  }
  if (bar(right[[2L]]) || bar(right[[3L]])) {
    stop_input(shape, "; three parts are not read")
  }
  home <- environment(formula)
  side <- \(part) stats::as.formula(call("~", part), home)
  if ("." %in% all.vars(right[[2L]])) {
    stop_input("'formula' must name its regressors; '.' stands for them after ",
               "the bar")
  }
  learners <- side(right[[2L]])
  dotted <- put_dots(right[[3L]], right[[2L]])
  instruments <- side(dotted)
  if ("." %in% all.vars(right[[3L]])) {
    labels_of <- \(f) attr(formula_terms(f, NULL), "term.labels")
    check_removed(right[[3L]], labels_of(learners), labels_of(instruments))
  }
  labels <- lapply(list(learners, instruments), \(f) {
    layout <- formula_terms(f, data)
    if (attr(layout, "intercept") == 0L) {
      stop_input("'formula' must have no - 1 or + 0; 'intercept' says whether ",
                 "y is centered")
    }
    if (!is.null(attr(layout, "offset")) ||
          any(attr(layout, "order") > 1L)) {
      stop_input("'formula' must have no interactions and no offset(); ",
                 "kernels make functions of all columns of a side")
    }
    attr(layout, "term.labels")
  })
  if (!all(lengths(labels))) {
    stop_input(shape)
  }
  all <- unique(unlist(labels))
  whole <- stats::as.formula(call("~", formula[[2L]], Reduce(
    \(a, b) call("+", a, b), lapply(all, str2lang)
  )), home)
  layout <- formula_terms(whole, data)
  known <- attr(layout, "term.labels")
  # terms() may drop the left side from the right one, or keep it.
  if (length(known) != length(all) || deparse1(formula[[2L]]) %in% all) {
    stop_input("'formula' must not have its left side on its right")
  }
  list(terms = layout, groups = lapply(labels, \(l) 1L + match(l, known)))
}

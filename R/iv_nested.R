#' Nested instrumental variables in reproducing kernel Hilbert spaces
#'
#' Two functions, g with \eqn{E[Y - g(A) \mid D] = 0}{E[Y - g(A) | D] = 0} and h
#' with \eqn{E[h(B) - w\,g(A) \mid C] = 0}{E[h(B) - w g(A) | C] = 0}, estimated
#' together, as in mediation, long-term and time-varying effects.
#'
#' With \eqn{P_1, P_2} the actions of the instruments D and C as in [rkhs_iv()],
#' and \eqn{g = K_A a}, \eqn{h = K_B b} the values at the points, Estimator 3
#' minimizes \deqn{(y - g)'P_1(y - g) + (h - wg)'P_2(h - wg) +
#' \mu_g\,\mathrm{pen}(g) + \mu_h\,\mathrm{pen}(h),}{
#' (y - g)'P1(y - g) + (h - wg)'P2(h - wg) + mu_g pen(g) + mu_h pen(h),}
#' the penalty the squared norm of the RKHS (`"norm"`) or the sum of squares
#' (`"l2"`). The two moments may hold for different rows, `subset`: for p and q
#' of them, their actions are \eqn{n/p} and \eqn{n/q} times those of the rows
#' alone; the penalties are of
#' all rows. The closed form that was published first, which eliminates a, is
#' wrong where a Gram matrix or the subset is singular, and is not used: the
#' joint normal equations are solved as a ridge regression.
#'
#' For `"l2"` with both projections of full rank the instruments have no effect,
#' as in [rkhs_iv()]; a warning says so.
#'
#' @section Choice of the penalties: As in [rkhs_iv()], with \eqn{\mu_h =
#'   \mu_g}{mu_h = mu_g} (for `"norm"` and kernels whose \eqn{k(x, x)} is not 1,
#'   both in the same ratio to the traces) and the sum of both held-out
#'   criteria, each scaled by its share of the fold. The first stage of C
#'   regresses the features of both A and B, each counted alike. `"min"` is the
#'   default here: in simulations one standard error doubled the error of g.
#'   Folds have a share of each of the subsets. Without `w`, y is centered as in
#'   [rkhs_iv()], by its mean over the rows of the first moment, which is added
#'   to both functions.
#'
#' @inheritParams rkhs_iv
#' @inheritSection rkhs_iv Inference
#' @inheritSection rkhs_iv Large samples
#' @param a,b The inputs of g and of h, as `x` of [rkhs_iv()].
#' @param c,d The instruments of the second and of the first moment (C and C' in
#'   the paper), as `z` of [rkhs_iv()].
#' @param y The outcome, numeric; `NA` where a row is not in the first moment.
#' @param ... Must be empty.
#' @param intercept Center y? `NULL`: where `mu_g`, `w` and `preset` are `NULL`.
#' @param preset `"nnpiv"`: penalties and kernels by the rules of the authors'
#'   code, see `vignette("iv")`, or a list of other numbers for these rules;
#'   not with penalties of your own or `intercept`.
#' @param w Multiplier of g in the second moment, a number for each row, or
#'   `NULL` for 1. It is no weight of rows, and its units matter: where it is
#'   far larger than 1 the second moment outweighs the first.
#' @param subset The rows of each moment: 1 (or `TRUE`) for the first, with the
#'   instruments `d`, 0 for the second, with `c`; or `list(c = , d = )` of two
#'   such vectors, which may overlap. `NULL`: all rows in both. It leaves out no
#'   rows: rows of neither moment still enter the penalties.
#' @param kernel One kernel for all blocks, or a list by block, `list(a = , b =
#'   , c = , d = )`; as in [rkhs_iv()].
#' @param rule `"min"`, `"paired"` or `"1se"`, see [rkhs_iv()].
#' @param folds A number of folds, of rows next to each other in each of the
#'   subsets, or the fold of each row.
#' @param lambda_c,lambda_d The ridges of the two instruments, as `lambda` of
#'   [rkhs_iv()].
#' @param mu_g,mu_h The penalties of g and h, both or neither: positive numbers,
#'   or several values, those of `mu_h` the same multiple of those of `mu_g`.
#' @return An object of class `c("rkhs_iv_nested", "rkhs_iv")`, as of
#'   [rkhs_iv()], with `list(g, h)` in `coefficients`, the columns `g` and `h`
#'   of `fitted.values`, the columns `first` (\eqn{y - g}) and `second`
#'   (\eqn{h - wg}) of `residuals`, two numbers in `lambda`, `mu` and
#'   `criterion`, a list of data frames in `first_stage`, and `w` and `rows`,
#'   the rows of each moment.
#' @section Cost: As of [rkhs_iv()], for four blocks.
#' @references
#' Meza, I. and Singh, R. (2021). Nested nonparametric instrumental variable
#' regression. \doi{10.48550/arXiv.2112.14249}
#' @seealso [rkhs_iv()]; `vignette("iv")`
#' @family instrumental variables
#' @examples
#' # h(b) = E[g(a) | c], a mediated effect: g(a) = a^2, b = c
#' set.seed(1)
#' n <- 300
#' d <- rnorm(n)
#' e <- rnorm(n)
#' b <- rnorm(n)
#' a <- (b + d + e) / 2
#' y <- a^2 + e + rnorm(n) / 2
#' fit <- rkhs_iv_nested(a, b, b, d, y)
#' fit
#' plot(fit)
#' predict(fit, list(a = c(0, 1), b = c(0, 1)))
#' @export
rkhs_iv_nested <- function(a, b, c, d, y, w = NULL, subset = NULL,
                           kernel = kernel_rbf(), penalty = c("norm", "l2"),
                           ..., lambda_c = NULL, lambda_d = NULL, mu_g = NULL,
                           mu_h = NULL, select = NULL,
                           rule = c("min", "paired", "1se"), folds = 6,
                           landmarks = NULL, features = NULL, scale = NULL,
                           intercept = NULL, preset = NULL,
                           tol_learner = sqrt(.Machine$double.eps),
                           tol_instrument = NULL, progress = interactive()) {
  check_dots(...)
  absent <- base::c(missing(a), missing(b), missing(c), missing(d), missing(y))
  if (any(absent)) {
    stop_input("'", base::c("a", "b", "c", "d", "y")[absent][1L], "' must be ",
               "given: a and b the inputs of g and h, c and d the ",
               "instruments, y the outcome")
  }
  given <- if (!missing(kernel)) kernel
  lambda <- list(d = check_lambda(lambda_d, "lambda_d"),
                 c = check_lambda(lambda_c, "lambda_c"))
  mu <- check_two_mu(mu_g, mu_h)
  if (isTRUE(intercept) && !is.null(w)) {
    stop_input("'intercept' must not be TRUE with 'w', which would move the ",
               "second moment")
  }
  said <- list(lambda_c = lambda$c, lambda_d = lambda$d, mu_g = mu$mu,
               intercept = intercept)
  preset <- check_preset(preset, names(Filter(Negate(is.null), said)))
  arguments <- list(w = w, subset = subset, kernel = given, penalty = penalty,
                    lambda_c = lambda_c, lambda_d = lambda_d, mu_g = mu_g,
                    mu_h = mu_h, select = select, rule = rule, folds = folds,
                    landmarks = landmarks, features = features, scale = scale,
                    intercept = intercept, preset = preset,
                    tol_learner = tol_learner,
                    tol_instrument = tol_instrument)
  asked <- list(lambda = lambda, mu = mu$mu, ratio = mu$ratio, preset = preset,
                select = check_select(select),
                rule = check_choice(rule, base::c("min", "paired", "1se"),
                                    "rule"),
                folds = folds,
                center = check_intercept(
                  intercept, is.null(w) && is.null(mu$mu) && is.null(preset)
                ))
  penalty <- check_choice(penalty, base::c("norm", "l2"), "penalty")
  tol <- check_tolerances(tol_learner, tol_instrument)
  check_flag(progress, "progress")
  blocks <- read_blocks(list(a = a, b = b, c = c, d = d), given, scale, preset)
  n <- blocks$a$sample$n
  rows <- check_moment_rows(subset, n)
  # Rows outside the first moment need no outcome.
  blank <- if (is.numeric(y) && length(y) == n) which(!is.finite(y) & !rows$d)
  if (length(blank)) y[blank] <- 0
  y <- check_outcome(y, n, hint = if (!is.null(subset)) {
    " but in rows outside the first moment"
  })
  if (!is.null(w)) w <- check_outcome(w, n, "w", NULL)
  asked$approximation <- check_approximation(landmarks, features, n)
  task <- list(y = unname(y), w = unname(w), rows = rows, penalty = penalty,
               tol = tol, labels = lapply(stats::setNames(nm = names(blocks)),
                                          sQuote, FALSE),
               lambdas = list(c = "lambda_c", d = "lambda_d"))
  found <- fit_iv(task, blocks[base::c("a", "d", "b", "c")], asked, progress)
  y[blank] <- NA
  new_rkhs_iv_nested(found, blocks, y, task, arguments)
}

new_rkhs_iv_nested <- function(found, blocks, y, task, arguments) {
  fit <- new_rkhs_iv(found, blocks, y, task$penalty, arguments,
                     stats::setNames(nm = names(blocks)), c(g = "a", h = "b"))
  g <- fit$fitted.values[, "g"]
  second <- fit$fitted.values[, "h"] - if (is.null(task$w)) g else task$w * g
  fit$residuals <- cbind(first = fit$residuals, second = second)
  fit$lambda <- c(lambda_c = found$lambda$c, lambda_d = found$lambda$d)
  fit$mu <- c(mu_g = found$mu, mu_h = found$mu * found$ratio)
  fit$criterion <- stats::setNames(found$criterion, c("first", "second"))
  fit$first_stage <- found$first_stage
  fit$w <- task$w
  fit$rows <- task$rows
  class(fit) <- c("rkhs_iv_nested", class(fit))
  fit
}

# The doors of instrumental-variable fits, rkhs_iv() and rkhs_iv_nested(), and
# how they read their arguments and formulas.

#' Settings of instrumental-variable fits
#'
#' Settings of [rkhs_iv()] and [rkhs_iv_nested()] for experts: how penalties are
#' chosen, landmarks and random features, units and tolerances.
#'
#' The ridge `lambda = "gcv"` has the smallest generalized cross-validation
#' score of the first stage, the kernel ridge regression of the features of X on
#' Z, among 25 values of \eqn{\lambda/n}{lambda/n} from \eqn{10^{-6}}{10^-6} to
#' 1 (method "weak": 29 values to 10). For kernels whose \eqn{k(x, x)} is not 1,
#' \eqn{\lambda}{lambda} and \eqn{\mu}{mu} are multiples of the trace in place
#' of n.
#'
#' `mu = NULL` tries 30 values of \eqn{\mu/n}{mu/n} (`"l2"`: of \eqn{\mu}{mu})
#' from \eqn{10^{-5}}{10^-5} to 1 (method "weak": 41 values from
#' \eqn{10^{-6}}{10^-6} to 100) by cross-validation. For each fold, g is fitted
#' to the rows outside it, and the criterion is \eqn{r'Pr/t^2}{r'Pr/t^2} of the
#' residuals \eqn{r} of the t rows of the fold, with P made of these rows alone;
#' the score of a value is the mean over folds. \eqn{\lambda/n}{lambda/n} and
#' \eqn{\mu/n}{mu/n} stay the same in folds and for all rows, and so do kernels,
#' landmarks and features, of which learned kernels alone depend on y. If the
#' minimum is at an end
#' of the grid, ten more values are tried there (not by method "weak"); if it is
#' at an end again, or the values were given, a warning of class
#' `kernmean_warning_border` says so.
#'
#' The held-out criterion is blind to what the instruments do not explain, and
#' its minimum undersmooths. So `rule = "paired"` takes the largest penalty
#' whose score exceeds the minimum by at most one standard error, over folds,
#' of the
#' difference; `"1se"` the largest within one standard error of the minimum
#' itself, and `"min"` the minimum. Where the largest penalty that was tried is
#' chosen, a warning says so: g is nearly constant then because the instruments
#' hardly tell it from a constant, which is no evidence that there is no effect.
#'
#' @param select `"cv"` for cross-validation; `NULL` for the same where there is
#'   more than one penalty.
#' @param rule `"paired"`, `"1se"` or `"min"`, see below; `NULL`: `"paired"`,
#'   and `"min"` for nested fits and with a preset.
#' @param folds A number of folds, `"blocks"`, or the fold of each row (of those
#'   that `subset` and `na.action` leave). `NULL` is 6 folds, or the number of
#'   clusters if there are fewer. Rows are dealt to folds in a fixed order that
#'   has nothing to do with theirs; each fold has its share of the levels of an
#'   instrument that is a factor, and of the subsets of a nested fit. Method
#'   "weak" deals five times where blocks have at most 300 features, there are
#'   ten rows a fold and instruments are not weak: scores are means over the
#'   deals, and standard errors those of one deal. `"blocks"` are rows next to
#'   each other, for time series; presets have them, too, and so has a `method =
#'   "classic"` that was asked for. Where rows are sorted such folds differ, and
#'   a warning of class `kernmean_warning_folds` says so.
#' @param intercept Center y by its mean, which is added to the functions?
#'   `NULL`: yes where no `mu`, no preset and no `w` is given, or in an
#'   `update()` of such a fit.
#' @param correct The share \eqn{\alpha}{alpha} of the correction of
#'   [rkhs_iv()], from 0 to 1; `NULL`: by the strength of the instruments.
#' @param landmarks A number of landmarks, or their row numbers: the functions
#'   of all blocks are restricted to the kernel sections of these points
#'   (Nyström). They are drawn once for all blocks; with all rows the estimator
#'   is exact.
#' @param features A number of random Fourier features in place of
#'   [kernel_rbf()].
#' @param scale `FALSE`, `TRUE` or `"whiten"`: the units of the columns of each
#'   block, see [units]. `NULL`: `TRUE` for blocks without a kernel of yours,
#'   `FALSE` for others, with a warning where units differ.
#' @param tol_learner,tol_instrument Directions with eigenvalues below this
#'   share of the largest are left out: those of \eqn{K_X} for `"l2"`, and those
#'   of \eqn{K_Z} for \eqn{\lambda = 0}{lambda = 0}, where this is the
#'   regularization. `tol_instrument = NULL` is \eqn{n\epsilon}{n eps}. In exact
#'   fits with a kernel that tells points apart (as all with a bandwidth do),
#'   where each value of the instruments comes at least twice on average, the
#'   projection is exactly that on the groups of equal values.
#' @param learn May kernels that you leave open have widths that are learned,
#'   where columns stand in x and in z? See the section on exogenous columns of
#'   [rkhs_iv()]. `FALSE`: one bandwidth for all columns of a block.
#' @param progress Show the progress of cross-validation, from 800 rows on?
#' @return An object of class `iv_control`, a list of these settings.
#' @seealso [glossary]
#' @examples
#' set.seed(1)
#' z <- rnorm(300)
#' x <- z + rnorm(300)
#' rkhs_iv(x, sin(x), z, control = iv_control(rule = "min", landmarks = 50))
#' @export
iv_control <- function(select = NULL, rule = NULL, folds = NULL,
                       intercept = NULL, correct = NULL, landmarks = NULL,
                       features = NULL, scale = NULL,
                       tol_learner = sqrt(.Machine$double.eps),
                       tol_instrument = NULL, learn = TRUE,
                       progress = interactive()) {
  structure(request(iv_settings)[TRUE], class = "iv_control")
}

some_rows <- new_kind("a number of rows, or different row numbers", \(x) {
  is.numeric(x) && length(x) && is_finite(x) && all(x >= 1 & x == round(x)) &&
    !anyDuplicated(x)
}, as.integer)

a_share <- new_kind("a number from 0 to below 1",
                    \(x) is_number(x) && x >= 0 && x < 1)

iv_settings <- door_table(
  "iv_control", select = maybe(choice("cv")),
  rule = maybe(choice("paired", "1se", "min")),
  folds = maybe(new_kind("a number, \"blocks\", or the fold of each row", \(x) {
    is.atomic(x) && (length(x) != 1L || !anyNA(x))
  })),
  intercept = maybe(flag), correct = maybe(number(0, 1)),
  landmarks = maybe(some_rows),
  features = maybe(count()), scale = maybe(a_scale), tol_learner = a_share,
  tol_instrument = maybe(a_share), learn = flag, progress = flag,
  rules = list(when("landmarks", features = NULL))
)

#' Instrumental variables in reproducing kernel Hilbert spaces
#'
#' A function g with \eqn{E[Y - g(X) \mid Z] = 0}{E[Y - g(X) | Z] = 0}, where X
#' may depend on the errors of Y and the instruments Z do not, without a
#' parametric form.
#'
#' With \eqn{K_X, K_Z} the Gram matrices, \eqn{g = K_X a} the values of g at the
#' points and \deqn{P = K_Z(K_Z + \lambda I)^{-1},}{P = K_Z (K_Z + lambda
#' I)^(-1),} for \eqn{\lambda = 0}{lambda = 0} the projection on the range of
#' \eqn{K_Z}, the estimators minimize \deqn{(y - g)'P(y - g) +
#' \mu\,\mathrm{pen}(g).}{(y - g)'P(y - g) + mu pen(g).}
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
#'
#' Penalties are in units of the matrix: an objective with means has penalties
#' \eqn{\lambda/n}{lambda/n} and, for the norm, \eqn{\mu/n}{mu/n}. With
#' `kernel = kernel_poly(1)`, `lambda = 0` and `mu = 1e-6` either estimator is
#' two-stage least squares to the digits of a print (with controls, and so by
#' method "weak", where `correct = 0`).
#'
#' Factors have the kernel that is 1 for equal levels and 0 for others; ordered
#' factors, and factors beside other columns, [kernel_gower()], whatever
#' `kernel` is for all. Controls that
#' are additive and linear are `controls`.
#'
#' @section Weak instruments and inference:
#' With `method = "weak"`, the default where no preset, `penalty = "l2"` or pair
#' of penalties is given, kernels are centered and g has a straight part: with F
#' and \eqn{\Phi}{Phi} the features of Z and X (and, before these,
#' \eqn{\sqrt{s}}{sqrt(s)} times the standardized numeric columns of X) as
#' residuals of 1 and the controls, \eqn{P = F(F'F + \lambda I)^{-1}F'}{P = F
#' (F'F + lambda I)^(-1) F'} and D its diagonal, \deqn{A = \Phi'(P - \alpha
#' D)\Phi,\quad \theta = (A_+ + \mu I)^{-1}\Phi'(P - \alpha D)y,}{A = Phi'(P -
#' alpha D)Phi, theta = (A_+ + mu I)^(-1) Phi'(P - alpha D) y,} \eqn{A_+} the
#' part of A with positive eigenvalues. D is what each row predicts of itself,
#' by which weak or many instruments let the regression of y on x into g;
#' \eqn{\alpha = 0}{alpha = 0} is Estimator 1 on centered kernels, \eqn{\alpha =
#' 1}{alpha = 1} for straight lines the jackknife estimator JIVE2, between them
#' a k-class.
#'
#' These choices follow the strength of the instruments, which does not depend
#' on y (but for learned widths, see below):
#' \eqn{F_\phi = \mathrm{tr}(\Phi'P\Phi)/\mathrm{tr}(\Phi'D\Phi)}{F_phi =
#' tr(Phi'P Phi)/tr(Phi'D Phi)} over the share of the features that is left
#' unexplained, and F of the linear columns likewise, of the direction that is
#' explained least (the print has each column's, too). Both are about 1 for
#' instruments that say nothing (less for several columns, whose p is an upper
#' bound).
#'
#' Columns that stand on both sides of the bar are exogenous, and strength is
#' partial, given these, as in the first stage of two-stage least squares: their
#' linear columns and up to 128 functions of them (a pivoted Cholesky factor of
#' their kernel but for 1e-4 of its trace, at most n/10) are partialled out of x
#' and of the other instruments by themselves, whose ridge is chosen anew.
#' `span` is how many numbers the other instruments identify: the rank of their
#' features, 1 for a binary one. Below 3 the F and p of the line alone count.
#'
#' With F the smaller of the two, times its directions over d = tr P where there
#' are exogenous columns, and at least 1,
#' \deqn{\alpha = \max(F^{-2}, (1 - 1/d)_+ \min(1, 3/F)),\quad s = 30 (1 -
#' 1/F_l)_+ / \max(1, F_\phi)^2}{alpha = max(F^(-2), (1 - 1/d)_+ min(1, 3/F)),
#' s = 30 (1 - 1/F_l)_+ / max(1, F_phi)^2}
#' (times tr K/n), \eqn{F_l}{F_l} of the linear columns: one direction of the
#' instruments needs little correction once F is above 2, many do until it is
#' far above 3; and what weak instruments identify is at most a line, if that.
#' Of the \eqn{\theta}{theta} of the chosen penalty the share \eqn{1 -
#' \sqrt{p_\phi p_l}}{1 - sqrt(p_phi p_l)} is kept, with the p-values of both F
#' by the gamma law below (all where `correct` is given, or where functions of
#' exogenous columns are in g; there s is 0 for p above .05). A line by strong
#' instruments is estimated several times better with `linear = Inf`.
#'
#' A treatment of two values or a factor, and instruments that tell one or two
#' numbers, identify straight lines and no curve: there `linear = Inf` is the
#' default (unless p is above .05), with \eqn{\alpha = 1 - 1/d}{alpha = 1 - 1/d}
#' if that is more, the functions of exogenous columns are
#' partialled out of the fit as well, and where the line takes all that the
#' instruments tell there is no penalty to choose. A warning of class
#' `kernmean_warning_line` says that a curve in such a regressor would be the
#' penalty's; `linear = Inf` given by you is a line, a number a curve, with that
#' warning.
#'
#' A warning of class `kernmean_warning_weak` says that g is not identified,
#' where the features are not predicted beyond chance (p above .05, by a gamma
#' law of the ratio) or the instruments identify fewer numbers than there are
#' endogenous columns; that the
#' instruments are weak (F below 3); or that intervals may be too short (F of
#' the linear part below 10, \eqn{1 + (F - 1)\sqrt{d}}{1 + (F - 1) sqrt(d)} with
#' d directions). The print also has r'Pr of the residuals over its mean where
#' \eqn{E[r \mid Z] = 0}{E[r | Z] = 0}, a test of overidentification whatever
#' the variances are, where there are more numbers than lines: a small p says
#' that the instruments are not valid, or that g is shrunk too much.
#'
#' `predict(interval = TRUE)` and `plot()` have pointwise intervals from the
#' sandwich \eqn{\sum_i l_i(x)^2 e_i^2}{sum_i l_i(x)^2 e_i^2}, with \eqn{g(x) =
#' l(x)'y}{g(x) = l(x)'y} and residuals e, of clusters with their sums. They
#' belong to a fit with a 64th of the cross-validated minimum of the penalty (or
#' of the penalty given), in the directions of A with positive eigenvalues
#' alone, so that its bias is small beside its error, and lie around that fit,
#' not around the curve that is shown, which may leave them. (The 64th is of the
#' largest eigenvalue of A if that is smaller; with G clusters the quantiles are
#' those of t with G - 1 degrees of freedom.) They do not cover what no
#' instrument sees, nor g where instruments are weak, of which a warning says
#' so: `vignette("iv")` has the coverage in simulations.
#'
#' @section Exogenous columns with widths of their own: One bandwidth for all
#' columns of x and z blurs g where exogenous columns matter little. So method
#' "weak" chooses between one bandwidth and a width for each column, for each
#' block of several numeric columns whose `kernel` you leave open, where some
#' but not all columns of x stand in z as well and there are at least 50 rows
#' (or clusters). It compares the losses of ridge regressions on rows that are
#' left out, and takes learned widths where these lower the loss by more than a
#' standard error.
#'
#' Widths are inverse to root mean squared derivatives, found in a few steps
#' from up to 1,000 rows: for x of the regression of y (less its fit on
#' `controls`) on x, for z of the regressions of y and of the first five
#' principal features of x on z. The errors of y may hide that an endogenous
#' column matters, and weak instruments tell little; so the smallest width goes
#' to endogenous columns, and to the strongest of the instruments that are no
#' regressors. In the strength of instruments the features of x then depend on
#' y, but the other instruments and the functions of exogenous columns keep one
#' bandwidth. The print names the columns that matter.
#'
#' The table was measured with instruments z, x = z + v and c standard normal,
#' y = g + 0.7 u + N(0, 1/4), where v and u have the correlation 0.7, for n =
#' 300: g and its 95% intervals at 200 new points (x, c), in 30 to 60 samples a
#' row. With x = z/4 + v instruments are weak, with x = v there are none.
#' \tabular{llll}{
#'   g \tab rmse of g \tab coverage of g \tab of the mean slope \cr
#'   2 cos x, 2 columns of noise \tab .61, .27 \tab .94, .98 \tab .98, .98 \cr
#'   2 cos x, 6 columns of noise \tab 1.13, .29 \tab .64, .97 \tab .98, 1 \cr
#'   2 cos x, 2 columns of noise, n = 100 \tab
#'     1.07, .59 \tab .71, .96 \tab .95, .97 \cr
#'   2 sin x + c1, 5 columns of noise \tab
#'     .96, .48 \tab .68, .97 \tab .90, .93 \cr
#'   sin x + sum of sin c of 3 columns \tab
#'     .61, .61 \tab .87, .87 \tab .98, .98 \cr
#'   x + c1 + c2 \tab .25, .26 \tab .96, .96 \tab .92, .92 \cr
#'   x + c1 + c2, x = z/4 + v \tab .69, .68 \tab .99, .99 \tab .92, .92 \cr
#'   2 cos x, 6 columns of noise, x = z/4 + v \tab
#'     .92, .92 \tab .56, .56 \tab .92, .92 \cr
#'   x + c1 + c2, x = v \tab 1.16, 1.16 \tab .71, .72 \tab .98, .98
#' }
#' The first number is with one bandwidth, the second with the choice. Warnings
#' of weak instruments came in .83 of samples with x = z/4 + v (6 columns of
#' noise: .70 and .75) and in all with x = v, with either kernel.
#'
#' @section Cost: Exact fits write \eqn{K = FF'} by a pivoted Cholesky factor of
#' r columns (far less than n for smooth kernels of few columns):
#' \eqn{O(nr^2)}{O(n r^2)} time and \eqn{8nr}{8 n r} bytes for each block,
#' \eqn{O(r^3)}{O(r^3)} for a grid of penalties, and for each fold of
#' cross-validation. With m landmarks or features, see [iv_control()],
#' \eqn{O(nm^2)}{O(n m^2)} time and \eqn{O(m^2)}{O(m^2)} memory beyond the data
#' and one panel of rows.
#'
#' @section The classes of NNPIV: Meza and Singh's Python package, call by call;
#'   `T`, `Y`, `Z` and `A` to `W` are the arguments of its `fit()`.
#'   \tabular{ll}{
#'   `RKHSIV` \tab `rkhs_iv(T, Y, Z, preset = "nnpiv")` \cr
#'   `RKHSIVCV` \tab with `control = iv_control(select = "cv")` \cr
#'   `RKHSIVL2` \tab with `penalty = "l2"` \cr
#'   `RKHSIVL2CV` \tab with both \cr
#'   `ApproxRKHSIV`, `ApproxRKHSIVL2` \tab with `iv_control(landmarks = m)`
#'     (`"nystrom"`) or `features = m` (`"rbfsampler"`) \cr
#'   `ApproxRKHSIVCV`, `ApproxRKHSIVL2CV` \tab with `select = "cv"` there, too
#'     \cr
#'   `RKHS2IV`, `RKHS2IVCV`, `RKHS2IVL2`, `RKHS2IVL2CV` \tab
#'     `rkhs_iv_nested(A, B, C, D, Y, W, preset = "nnpiv")`, with the same \cr
#'   `ApproxRKHS2IV`, `ApproxRKHS2IVCV`, `ApproxRKHS2IVL2`,
#'     `ApproxRKHS2IVL2CV` \tab with the same \cr
#'   `gamma = "auto"`; `delta_scale`, `delta_exp`, `alpha_scale` \tab
#'     `preset = list(gamma = "auto", delta_scale = , ...)` \cr
#'   `predict()`, `score()` \tab [predict()][predict.rkhs_iv], [score()] \cr
#'   the maximizers \eqn{\Phi K^+V} \tab `fitted(type = "adversary")`
#'   }
#'   The preset has their kernel, \eqn{\exp(-2\|x - y\|^2)}{exp(-2 |x -
#'   y|^2)} of columns as they come (where that is nearly 0 for most pairs a
#'   warning of class `kernmean_warning_units` says so), and their
#'   cross-validation: penalties by
#'   the number of rows of each fold, bandwidths, landmarks and features made of
#'   the other rows alone, and for nested fits one more value of the grid where
#'   the best is its end. What differs: where \eqn{K_X} has no full rank, to
#'   rounding, as for smooth kernels of few columns, their pseudo-inverse of a
#'   matrix quadratic in \eqn{K_X}, cut at 1e-15 of its largest singular value,
#'   drops directions that are there and keeps some that are not. For the norm
#'   that changes some digits, for `"l2"` the fit: `vignette("iv")` has an
#'   example.
#'
#' @param x The regressors: a numeric matrix, a data frame (factors among its
#'   columns are kept), a vector, a factor, or a [gram()].
#' @param y The outcome, numeric.
#' @param z The instruments, as `x`. Exogenous regressors stand in both.
#' @param kernel One kernel for all blocks, or a list by block, `list(x = , z =
#'   )`. `NULL`, and for blocks that a list leaves out: [kernel_rbf()] with the
#'   median distance of the standardized columns, or with widths that are
#'   learned (see the section on exogenous columns). Factors, alone or beside
#'   other columns, have their own, and so has a `gram`.
#' @param penalty `"norm"` or `"l2"`.
#' @param lambda \eqn{\lambda \ge 0}{lambda >= 0}, 0 for the projection; `"gcv"`
#'   for that of the first stage, see [iv_control()]; `NULL` for `"gcv"`, or 0
#'   with `penalty = "l2"`.
#' @param mu \eqn{\mu > 0}{mu > 0}; several values, or `NULL` for a grid, to
#'   choose among by cross-validation, see [iv_control()].
#' @param ... In the default method, must be empty; in the formula method,
#'   arguments of the default method by name.
#' @param method `"weak"` or `"classic"`: the estimator as it is printed,
#'   without centering and correction; `NULL`: see below. Nested fits, `penalty
#'   = "l2"` and presets are classic.
#' @param linear The scale s of the linear part of g; 0 for none, `Inf` for one
#'   that is not penalized (as 1e6 times tr K/n), `NULL` by the strength of the
#'   instruments. Factors among numeric columns count by their indicators.
#' @param controls Exogenous controls that enter g linearly and are instruments
#'   of themselves: a vector, matrix or data frame, factors as dummies (ordered
#'   ones too, for any function of their levels); in the formula method a
#'   one-sided formula, `~ age + region`. They are partialled out, with the
#'   constant; columns that are constant, or made by others, are left out, with
#'   a warning of class `kernmean_warning_controls`.
#' @param clusters The cluster of each row, or a variable of `data` (`id`,
#'   `"id"` or `~ id`): they stay together in folds, the correction takes away
#'   what each predicts of itself, and errors are of their sums.
#' @param weights Positive weights of rows, or a variable of `data`, taken with
#'   mean 1.
#' @param preset `"nnpiv"`: penalties, kernels and cross-validation by the rules
#'   of the authors' code, see below, or a list of other values for these:
#'   `delta_scale` (5), `delta_exp` (0.4), `alpha_scale` (several to choose
#'   among by cross-validation) and `gamma` (2, or `"auto"`: 1 over twice the
#'   median distance); not with penalties of your own.
#' @param control What experts set, see [iv_control()]: the search for
#'   penalties, landmarks and random features, units, tolerances.
#' @param formula `y ~ x1 + x2 | z1 + z2`, a dot after the bar for the
#'   regressors, as in `. - x1 + z1`; or in three parts, `y ~ exogenous |
#'   endogenous | instruments`, as `ivreg()` has them (of an exogenous
#'   column in the middle a warning of class `kernmean_warning_formula` says
#'   so).
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#' @return An object of class `rkhs_iv`, a list with
#' \item{coefficients, vcov}{of method "weak": the straight line nearest to g
#'   and the linear controls, with their covariance, see [confint.rkhs_iv()].
#'   The weights a of g, 0 for points that are not needed, are
#'   [as_weights()]`(fit)`}
#' \item{fitted.values, residuals}{g at the points, and y - g}
#' \item{lambda, mu, penalty}{the penalties}
#' \item{intercept}{what is added to the function of kernels (and line)}
#' \item{controls}{their coefficients}
#' \item{strength}{a data frame: `F`, `F_linear`, `df` (tr P, the directions of
#'   the instruments), `span` (without a ridge), `r.squared`, `p.value`,
#'   `p_linear`; its attributes `columns`, F of each linear column, and `given`,
#'   the exogenous ones; of method "weak", as the next}
#' \item{correct, linear, keep, error}{alpha, s, the share of theta that is
#'   kept, and what intervals are made of; `error$first` has, for each numeric
#'   column of x, its standardized values and their first-stage fit}
#' \item{columns}{where widths may be learned, for the blocks `x` and `z` a
#'   list: `kernel`, "learned" or "isotropic"; `losses`, a data frame of the
#'   left-out losses and of the gain in standard errors; `relevance`, the root
#'   mean squared derivative along each column, to the largest}
#' \item{criterion}{\eqn{r'Pr/n}}
#' \item{rank}{by block, the dimension of the space of functions}
#' \item{rule, alpha_scale}{how the penalty was chosen, and that of a preset}
#' \item{cv}{after cross-validation a data frame: `mu`, `score`, `se` of it,
#'   `se_above` of its difference to the minimum, `chosen`;
#'   its attributes `folds`, the scores by fold (of one deal after the other),
#'   `deals` and `border`}
#' \item{first_stage}{where `lambda` was chosen, a data frame: `lambda`, `gcv`}
#' \item{landmarks}{the rows that are landmarks, or `NULL`}
#' \item{functions, blocks, kernels, y, n, centered, layout, na.action,
#'   arguments}{what [predict()] and `update()` need}
#' @section Methods: [predict()][predict.rkhs_iv], [plot()][plot.rkhs_iv],
#'   `summary()`, `coef()`, `vcov()`, [confint()][confint.rkhs_iv], `fitted()`,
#'   `residuals()`, and `update()`, which
#'   takes arguments and what [iv_control()] sets: `update(fit, rule = "min")`.
#'   Landmarks are drawn again for other points only, features always; `data =`
#'   of a fit by formula takes all rows of the new data, with the terms of the
#'   old ones.
#' @references
#' Dikkala, N., Lewis, G., Mackey, L. and Syrgkanis, V. (2020). Minimax
#' estimation of conditional moment models. *NeurIPS 33*.
#' \doi{10.48550/arXiv.2006.07201}
#'
#' Meza, I. and Singh, R. (2021). Nested nonparametric instrumental variable
#' regression. \doi{10.48550/arXiv.2112.14249}
#' @seealso [glossary]; [iv_control()], [rkhs_iv_nested()]; `vignette("iv")`
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
rkhs_iv.default <- function(x, y, z, kernel = NULL, penalty = c("norm", "l2"),
                            lambda = NULL, mu = NULL, ..., method = NULL,
                            linear = NULL, controls = NULL, clusters = NULL,
                            weights = NULL, preset = NULL,
                            control = iv_control()) {
  asked <- request(iv_arguments)
  fit_instruments(asked, c(a = "x", d = "z"), list(d = asked$lambda), asked$mu)
}

a_lambda <- maybe(number(), "gcv")
penalties <- maybe(numbers(0, open = TRUE))
an_iv_control <- is_a("iv_control", "iv_control(...)")

# The kind of `preset`: the numbers of the authors' rules, "nnpiv", or a list of
# numbers that replace some of them.
a_preset <- maybe(new_kind(paste(
  "\"nnpiv\", or a list of positive numbers among delta_scale, delta_exp,",
  "alpha_scale and gamma (which may be \"auto\")"
), \(x) {
  identical(x, "nnpiv") || is.list(x) && {
    numbers <- unlist(x[!(names(x) == "gamma" & x %in% "auto")])
    all(names(x) %in% names(nnpiv_preset)) && length(x$gamma) <= 1L &&
      is.numeric(c(1, numbers)) && isTRUE(all(numbers > 0))
  }
}, \(x) {
  utils::modifyList(nnpiv_preset, if (is.list(x)) x else list(),
                    keep.null = TRUE)
}))

iv_arguments <- door_table(
  "rkhs_iv.default", x = anything, y = anything, z = anything,
  kernel = anything, penalty = choice("norm", "l2"), lambda = a_lambda,
  mu = penalties, method = maybe(choice("weak", "classic")),
  linear = maybe(new_kind("a number of at least 0, or Inf", \(x) {
    is.numeric(x) && length(x) == 1L && isTRUE(x >= 0)
  }, as.double)),
  controls = anything, clusters = anything, weights = anything,
  preset = a_preset, control = an_iv_control,
  rules = list(
    when("preset", lambda = NULL, mu = NULL, method = "classic"),
    when(c(penalty = "l2"), method = "classic"),
    when(c(method = "classic"), linear = NULL, controls = NULL, clusters = NULL,
         weights = NULL)
  ),
  aside = c("x", "y", "z"),
  units = c("x", "y", "z", "controls", "clusters", "weights"),
  hints = stats::setNames(
    paste0("is set by control = iv_control(", names(formals(iv_control)),
           " = )"), names(formals(iv_control))
  )
)

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
#' alone; the penalties are of all rows. The closed form that was published
#' first, which eliminates a, is wrong where a Gram matrix or the subset is
#' singular, and is not used: the joint normal equations are solved as a ridge
#' regression.
#'
#' @section Choice of the penalties: As in [iv_control()], with \eqn{\mu_h =
#'   \mu_g}{mu_h = mu_g} (for `"norm"` and kernels whose \eqn{k(x, x)} is not 1,
#'   both in the same ratio to the traces) and the sum of both held-out
#'   criteria, each scaled by its share of the fold. The first stage of C
#'   regresses the features of both A and B, each counted alike. Folds have a
#'   share of each of the subsets. Without `w`, y is centered by its mean over
#'   the rows of the first moment, which is added to both functions.
#'
#' @inheritParams rkhs_iv
#' @param a,b The inputs of g and of h, as `x` of [rkhs_iv()].
#' @param c,d The instruments of the second and of the first moment (C and C' in
#'   the paper), as `z` of [rkhs_iv()].
#' @param y The outcome, numeric; `NA` where a row is not in the first moment.
#' @param w Multiplier of g in the second moment, a number for each row, or
#'   `NULL` for 1. It is no weight of rows, and its units matter: where it is
#'   far larger than 1 the second moment outweighs the first. With a formula it
#'   is found in `data` first, as `subset` is.
#' @param subset The rows of each moment: 1 (or `TRUE`) for the first, with the
#'   instruments `d`, 0 for the second, with `c`; or `list(c = , d = )` of two
#'   such vectors, which may overlap (not with a formula). `NULL`: all rows in
#'   both. It leaves out no rows: rows of neither moment still enter the
#'   penalties.
#' @param kernel One kernel for all blocks, or a list by block, `list(a = , b =
#'   , c = , d = )`; as in [rkhs_iv()].
#' @param lambda_c,lambda_d The ridges of the two instruments, as `lambda` of
#'   [rkhs_iv()].
#' @param mu_g,mu_h The penalties of g and h, both or neither: positive numbers,
#'   or several values, those of `mu_h` the same multiple of those of `mu_g`.
#' @param formula `y ~ a | b | c | d`, the blocks in the order of the arguments,
#'   each a sum of columns, as in `y ~ a1 + a2 | b1 | b1 + c1 | d1 + d2`. A dot
#'   in c stands for the columns of b, in d for those of a.
#' @param data,na.action As in [stats::model.frame()]; missing values are an
#'   error by default, but for y outside the first moment.
#' @return An object of class `c("rkhs_iv_nested", "rkhs_iv")`, as of
#'   [rkhs_iv()] by method "classic", with the columns `g` and `h` of
#'   `fitted.values`, the columns `first` (\eqn{y - g}) and `second`
#'   (\eqn{h - wg}) of `residuals`, two numbers in `lambda`, `mu` and
#'   `criterion`, a list of data frames in `first_stage`, and `w` and `rows`,
#'   the rows of each moment.
#' @section Cost: As of [rkhs_iv()], for four blocks.
#' @references
#' Meza, I. and Singh, R. (2021). Nested nonparametric instrumental variable
#' regression. \doi{10.48550/arXiv.2112.14249}
#' @seealso [glossary]; [rkhs_iv()], [iv_control()]; `vignette("iv")`
#' @examples
#' # h(b) = E[g(a) | c], a mediated effect: g(a) = a^2, b = c
#' set.seed(1)
#' n <- 300
#' d <- rnorm(n)
#' e <- rnorm(n)
#' b <- rnorm(n)
#' a <- (b + d + e) / 2
#' y <- a^2 + e + rnorm(n) / 2
#' fit <- rkhs_iv_nested(y ~ a | b | b | d)
#' fit
#' plot(fit)
#' predict(fit, data.frame(a = c(0, 1), b = c(0, 1)))
#' @export
rkhs_iv_nested <- function(a, ...) {
  UseMethod("rkhs_iv_nested")
}

#' @rdname rkhs_iv_nested
#' @export
rkhs_iv_nested.default <- function(a, b, c, d, y, w = NULL, subset = NULL,
                                   kernel = NULL, penalty = c("norm", "l2"),
                                   lambda_c = NULL, lambda_d = NULL,
                                   mu_g = NULL, mu_h = NULL, ...,
                                   preset = NULL, control = iv_control()) {
  asked <- request(nested_arguments)
  ratio <- asked$mu_h[1L] / asked$mu_g[1L]
  if (length(asked$mu_g) != length(asked$mu_h) ||
        !isTRUE(all(abs(asked$mu_h / asked$mu_g / ratio - 1) <= 1e-8))) {
    stop_input("'mu_h' must be as many values as 'mu_g', all the same finite ",
               "multiple of its")
  }
  if (isTRUE(asked$control$intercept) && !is.null(asked$w)) {
    stop_input("'intercept' must not be TRUE with 'w', which would move the ",
               "second moment")
  }
  fit_instruments(asked, c(a = "a", d = "d", b = "b", c = "c"),
                  list(d = asked$lambda_d, c = asked$lambda_c), asked$mu_g,
                  if (length(ratio)) ratio, asked$w)
}

nested_arguments <- door_table(
  "rkhs_iv_nested.default", a = anything, b = anything, c = anything,
  d = anything, y = anything, w = anything, subset = anything,
  kernel = anything,
  penalty = choice("norm", "l2"), lambda_c = a_lambda, lambda_d = a_lambda,
  mu_g = penalties, mu_h = penalties, preset = a_preset,
  control = an_iv_control,
  rules = list(when("preset", lambda_c = NULL, lambda_d = NULL, mu_g = NULL,
                    mu_h = NULL)),
  aside = c("a", "b", "c", "d", "y"),
  units = c("a", "b", "c", "d", "y", "w", "subset"), hints = iv_arguments$hints
)

# The fit of a request. `called` has the user's names of the blocks of the
# estimator, see iv_task.R.
fit_instruments <- function(asked, called, lambda, mu, ratio = 1, w = NULL) {
  control <- asked$control
  preset <- asked$preset
  nested <- length(called) > 2L
  blocks <- read_blocks(asked[sort(called)], asked$kernel, control$scale,
                        preset)
  n <- blocks[[1L]]$sample$n
  method <- iv_method(asked, nested, mu, lambda)
  weights <- read_row_weights(asked$weights, n)
  clusters <- read_clusters(asked$clusters, n)
  rows <- moment_rows(asked$subset, n)
  y <- check_outcome(needed_outcome(asked$y, rows), n, hint = if (nested) {
    ", in rows of the first moment, which 'subset' says"
  } else {
    na_hint
  })
  if (!is.null(w)) w <- unname(check_outcome(w, n, "w", NULL))
  task <- new_iv_task(
    method, called, blocks, unname(y), rows[c("d", if (nested) "c")],
    asked$penalty, asked_ridges(asked, lambda),
    settled_control(asked, nested, n), preset, c(mu, preset$alpha_scale), ratio,
    w, center = control$intercept %||% is.null(c(mu, preset, w)),
    in_blocks = !is.null(preset) ||
      "method" %in% attr(asked, "given") && method == "classic",
    drawn = if (length(control$landmarks) == 1L) control$landmarks,
    outcome = replace(y, !is.finite(asked$y), NA), arguments = stored(asked)
  )
  fit_iv(if (method == "classic") task else {
    learn_kernels(with_design(task, asked$controls, weights, clusters,
                              control$correct, asked$linear))
  })
}

# Returns the ridges that the user gave, and the default for the others.
asked_ridges <- function(asked, lambda) {
  lambda[lengths(lambda) == 0L] <- if (asked$penalty == "l2") 0 else
    if (is.null(asked$preset)) "gcv" else NA
  lambda
}

# Returns the settings of iv_control(), with the default rule and the rows of
# the landmarks filled in.
settled_control <- function(asked, nested, n) {
  control <- asked$control
  control$rule <- control$rule %||%
    if (nested || !is.null(asked$preset)) "min" else "paired"
  landmarks <- control$landmarks
  if (length(landmarks) && (max(landmarks) > n || identical(landmarks, 1L) &&
                              n > 1L)) {
    stop_input("'landmarks' must be at least 2 rows of the ", n, ", not ",
               max(landmarks))
  }
  if (length(landmarks) == 1L) control$landmarks <- sample.int(n, landmarks)
  control
}

# The outcome with 0 where it is missing in rows outside the first moment, which
# need none.
needed_outcome <- function(y, rows) {
  if (is.numeric(y) && length(y) == length(rows$d)) {
    y[!is.finite(y) & !rows$d] <- 0
  }
  y
}

# The method of a request. Where both penalties are given it is "classic",
# unless the request asks for what only the method "weak" has.
iv_method <- function(asked, nested, mu, lambda) {
  control <- asked$control
  method <- if (nested) "classic" else asked$method
  if (is.null(method)) {
    more <- c(list(control$correct),
              asked[c("linear", "controls", "clusters", "weights")])
    given <- length(mu) == 1L && is.numeric(lambda[[1L]])
    method <- if (given && !any(lengths(more))) "classic" else "weak"
  }
  if (method == "classic" && !is.null(control$correct)) {
    stop_input("'correct' must be NULL for method = \"classic\"")
  }
  if (method == "weak" && isFALSE(control$intercept)) {
    stop_input("'intercept' must not be FALSE but with method = \"classic\"")
  }
  method
}

# --- Reading -----------------------------------------------------------------

# The blocks of a fit as variables, with the kernels that the argument `kernel`
# gives. With a preset, numeric columns without a kernel get the kernel of the
# authors and are not scaled.
read_blocks <- function(data, kernel, scale, preset) {
  data <- Map(as_factors, data, names(data))
  brings <- vapply(data, has_own_kernel, NA)
  if (all(brings)) {
    refuse_beside_own(inherits(kernel, "kernmean_kernel"), scale)
  }
  kernels <- block_kernels(kernel, brings)
  blocks <- Map(\(x, name, brings) {
    kernel <- kernels[[name]]
    if (is.null(kernel)) {
      scale <- scale %||% is.null(preset)
      if (!brings && !is.null(preset)) kernel <- nnpiv_kernel(preset$gamma)
    }
    block <- read_variable(x, kernel, name, paste0("kernel$", name), scale)
    block$free <- is.null(kernels[[name]]) && !brings
    if (block$free && !is.null(preset)) {
      block$auto <- identical(preset$gamma, "auto")
      if (!block$auto) warn_gamma(block, preset$gamma, name)
    }
    check_definite(block$sample$kernel)
    block
  }, data, names(data), brings)
  check_lengths(blocks)
  blocks
}

# The kernel of each block by the argument `kernel`, one kernel or a list by
# name; NULL for a block without one. A single kernel is not used for blocks
# that bring their own. `brings` says which do, with the names of the blocks.
block_kernels <- function(kernel, brings) {
  blocks <- names(brings)
  kernels <- stats::setNames(vector("list", length(blocks)), blocks)
  if (!is_plain_list(kernel)) {
    if (!is.null(kernel)) kernels[!brings] <- list(take(kernel, a_kernel))
    return(kernels)
  }
  if (is.null(names(kernel)) || !all(names(kernel) %in% blocks) ||
        anyDuplicated(names(kernel))) {
    stop_input("'kernel' must be a kernel or a list of kernels named by ",
               "block: ", quoted(blocks))
  }
  kernel <- Filter(Negate(is.null), kernel)
  kernels[names(kernel)] <- Map(take, kernel, list(a_kernel),
                                paste0("kernel$", names(kernel)))
  kernels
}

# The rows of the moments d and c, logical vectors, by the argument `subset`.
moment_rows <- function(subset, n) {
  if (is.null(subset)) {
    return(list(d = rep(TRUE, n), c = rep(TRUE, n)))
  }
  if (!is_plain_list(subset)) {
    subset <- list(d = subset, c = if (is.atomic(subset)) subset == 0)
  }
  fine <- \(x) length(x) == n && all(x %in% 0:1) && any(x == 1)
  if (!identical(sort(names(subset)), c("c", "d")) ||
        !all(vapply(subset, fine, NA))) {
    stop_input("'subset' must be a vector of 0 and 1, one for each of the ",
               n, " rows, or list(c = , d = ) of two, and leave rows for ",
               "each moment")
  }
  lapply(subset[c("d", "c")], \(x) as.vector(x) == 1)
}

# --- Formulas ----------------------------------------------------------------

#' @rdname rkhs_iv
#' @export
rkhs_iv.formula <- function(formula, data = NULL, subset, na.action, ...,
                            controls = NULL, clusters = NULL, weights = NULL) {
  if (is.symbol(substitute(controls)) && !is.null(data) &&
        deparse1(substitute(controls)) %in% names(data)) {
    stop_input("'controls' must be a formula of variables in 'data', as in ~ ",
               deparse1(substitute(controls)))
  }
  if (!is.null(controls) && !(inherits(controls, "formula") &&
                                length(controls) == 2L)) {
    stop_input("'controls' must be a formula of variables in 'data', as in ",
               "~ age + region, not ", describe(controls))
  }
  fit_moments(rkhs_iv.default, c(x = 0L, z = 1L), c("clusters", "weights"), ...,
              .controls = controls)
}

#' @rdname rkhs_iv_nested
#' @export
rkhs_iv_nested.formula <- function(formula, data = NULL, w = NULL,
                                   subset = NULL, na.action, ...) {
  # `subset` says which moment a row is in, and leaves out none.
  fit_moments(rkhs_iv_nested.default, c(a = 0L, b = 0L, c = 2L, d = 1L),
              c("w", "subset"), ...)
}

# Reads the formula of the method that calls this function, and fits `.door` to
# it. `.units` are the names of arguments with a value for each row; for `.dots`
# see iv_parts().
fit_moments <- function(.door, .dots, .units, ..., .controls = NULL) {
  frame <- parent.frame()
  parts <- iv_parts(given_formula(frame), .dots, .controls)
  kinds <- ifelse(names(parts) == "y", "value",
                  ifelse(names(parts) == "controls", "columns", "named"))
  read <- read_sides(stats::setNames(kinds, names(parts)), .units,
                     parts = parts, frame = frame)
  y <- plain_term(read$y)
  # Rows outside the first moment of a nested fit need no outcome, and the door
  # checks the others.
  if (length(.dots) == 2L) y <- check_outcome(y, NROW(y), read$names$y)
  if (!is.null(read$rows)) names(y) <- read$rows
  fit <- do.call(.door, c(
    read[setdiff(names(parts), "y")], list(y = y),
    Filter(length, read[.units]), list(...)
  ), quote = TRUE)
  keep_layout(name_levels(fit, read$names[[names(.dots)[1L]]]), read)
}

# Renames the coefficients of a factor after its name in the formula.
name_levels <- function(fit, name) {
  block <- fit$blocks[[1L]]
  labels <- names(fit$coefficients)
  at <- match(paste0(block$name, block$levels), labels, 0L)
  if (!is.null(block$levels) && length(labels)) {
    labels[at] <- paste0(name, block$levels)[at > 0L]
    names(fit$coefficients) <- labels
    dimnames(fit$vcov) <- list(labels, labels)
  }
  fit
}

# Returns the outcome, the blocks and the controls of a formula as calls. For
# each block `dots` has the number of the side that a dot in it stands for, or 0
# if it must have no dot.
iv_parts <- function(formula, dots, controls = NULL) {
  terms_of <- \(part) formula_terms(part, NULL, environment(formula))
  sides <- formula_sides(formula, names(dots))
  if (!is.null(controls)) {
    sides$controls <- controls[[2L]]
    dots <- c(dots, controls = 0L)
  }
  labels <- list()
  for (name in names(dots)) {
    labels[[name]] <- side_labels(sides, name, dots[[name]], labels, terms_of)
    if (!length(labels[[name]])) stop_shape(length(sides))
  }
  middle <- attr(sides, "middle")
  if (!is.null(middle)) {
    warn_middle(intersect(attr(terms_of(middle), "term.labels"), labels$z))
  }
  if (deparse1(formula[[2L]], backtick = TRUE) %in% unlist(labels)) {
    stop_input("'formula' must not have its left side on its right")
  }
  both <- intersect(labels$controls, labels$x)
  if (length(both)) {
    stop_input("'controls' must not be regressors as well: ", quoted(both))
  }
  if (length(labels$z) && all(labels$z %in% labels$controls)) {
    stop_input("'controls' must leave an instrument, and not have ",
               quoted(labels$z))
  }
  c(y = formula[[2L]],
    lapply(labels, \(terms) sum_of(lapply(terms, str2lang))))
}

# Returns the expressions between the bars, by block. A formula of three parts,
# exogenous | endogenous | instruments as ivreg() takes it, gets two sides, and
# the attribute "middle" keeps the second part.
formula_sides <- function(formula, blocks) {
  sides <- list()
  right <- formula[[length(formula)]]
  while (is.call(right) && identical(right[[1L]], quote(`|`))) {
    sides <- c(right[[3L]], sides)
    right <- right[[2L]]
  }
  sides <- c(right, sides)
  middle <- NULL
  if (length(blocks) == 2L && length(sides) == 3L) {
    middle <- sides[[2L]]
    sides <- list(call("+", middle, sides[[1L]]),
                  call("+", sides[[3L]], sides[[1L]]))
  }
  if (length(formula) != 3L || length(sides) != length(blocks)) {
    stop_shape(length(blocks))
  }
  structure(sides, names = blocks, middle = middle)
}

stop_shape <- function(blocks) {
  stop_input(if (blocks < 4L) {
    paste("'formula' must be y ~ regressors | instruments, with exogenous",
          "regressors on both sides, as in y ~ x1 + x2 | x2 + z1")
  } else {
    "'formula' must be y ~ a | b | c | d, the blocks in this order"
  })
}

# Returns the terms of a side. A dot in it stands for side number `dot`, whose
# terms are among `labels`. (update.formula() would parse its own text again, in
# which y > 0 has lost its parentheses.)
side_labels <- function(sides, name, dot, labels, terms_of) {
  side <- sides[[name]]
  dotted <- "." %in% all.vars(side)
  if (dotted && dot == 0L) {
    stop_input("'formula' must name its regressors; '.' stands for them ",
               "after the bar")
  }
  if (dotted) {
    side <- do.call(substitute, list(side, list(. = call("(", sides[[dot]]))))
  }
  layout <- terms_of(side)
  if (attr(layout, "intercept") == 0L || any(attr(layout, "order") > 1L)) {
    stop_input("'formula' must have no interactions and no - 1; kernels ",
               "make functions of all columns of a side")
  }
  own <- attr(layout, "term.labels")
  if (dotted && length(own)) {
    check_dotted(sides[[name]], labels[[dot]], own)
  }
  own
}

warn_middle <- function(twice) {
  if (length(twice)) {
    warn_kernmean("the middle part of 'formula' is of endogenous ",
                  "regressors, as in y ~ exogenous | endogenous | ",
                  "instruments: ", quoted(twice), " of it stands in another ",
                  "part, too, and counts as exogenous", kind = "formula")
  }
}

# Stops unless the dot of a side stands by itself and only regressors are taken
# away after it: a misspelt name would leave a regressor among the instruments.
# `own` are the terms of the side.
check_dotted <- function(part, regressors, own) {
  layout <- stats::terms(stats::as.formula(call("~", part)),
                         allowDotAsName = TRUE)
  variables <- as.list(attr(layout, "variables"))[-1L]
  removed <- setdiff(vapply(variables, deparse1, "", backtick = TRUE),
                     attr(layout, "term.labels"))
  wrong <- c(setdiff(removed, regressors), intersect(removed, own))
  within <- Filter(\(v) is.call(v) && "." %in% all.vars(v), variables)
  if (length(wrong) || length(within)) {
    stop_input("'formula' must have its dot by itself after the bar, and take ",
               "away regressors only, after it, not '",
               c(wrong, vapply(within, deparse1, ""))[1L], "'")
  }
}

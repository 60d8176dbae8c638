#' Kernel mean estimators
#'
#' The mean embedding of the distribution a sample came from, estimated by the
#' average (KME), by a shrinkage estimator with smaller risk (S-KMSE, F-KMSE),
#' by the mean over noisy copies of the points (MKME, MMKME, smoothing), or by a
#' combination of several of these (stack).
#'
#' An estimate is \eqn{\tilde\mu = \sum_i \beta_i k(x_i, \cdot)}{ mu = sum_i
#' beta_i k(x_i, .)}, plus a share of the target if there is one. With \eqn{1_n
#' = (1/n, \ldots, 1/n)'}{1_n = (1/n, ..., 1/n)'}, the Gram matrix \eqn{K},
#' \eqn{\rho = 1_n'K1_n}{rho = 1_n'K 1_n}, \eqn{\varrho =
#' \mathrm{tr}(K)/n}{varrho = tr(K)/n} and target \eqn{f^*}{f} (0 by default):
#' \describe{
#'   \item{`"kme"`}{\eqn{\beta = 1_n}{beta = 1_n}, the empirical kernel mean
#'     \eqn{\hat\mu}{mu^}; or the user's `weights`.}
#'   \item{`"skmse"`}{\eqn{\tilde\mu = \alpha f^* + (1 - \alpha)\hat\mu}{ mu =
#'     alpha f + (1 - alpha) mu^}. `select = "loocv"` takes the \eqn{\alpha}{
#'     alpha} of smallest leave-one-out score in closed form, \eqn{\alpha =
#'     n(\varrho - \rho)/((n-1)^2\|f^* - \hat\mu\|^2 + \varrho - \rho)}{alpha =
#'     n (varrho - rho)/((n-1)^2 |f - mu^|^2 + varrho - rho)}, at most 1;
#'     `"plugin"` the empirical bound \eqn{\alpha = (\varrho - \rho)/ (\varrho -
#'     \rho + (n-1)\|f^* - \hat\mu\|^2)}{alpha = (varrho - rho)/ (varrho - rho +
#'     (n-1) |f - mu^|^2)}. \eqn{\lambda = \alpha/(1-\alpha)}{ lambda =
#'     alpha/(1-alpha)}. `"rkmse"` is another name of it.}
#'   \item{`"fkmse"`}{\eqn{\beta = (K + \lambda I)^{-1}K1_n}{ beta = (K + lambda
#'     I)^(-1) K 1_n}; with a target \eqn{\beta = (K + \lambda I)^{-1}(K1_n -
#'     f^*(x))}{ beta = (K + lambda I)^(-1) (K 1_n - f(x))}, added to
#'     \eqn{f^*}{f}. \eqn{\lambda}{lambda} minimizes a score over
#'     \eqn{[10^{-10}\gamma_1, 10^4\gamma_1]}{[1e-10, 1e4] gamma_1}
#'     (\eqn{\gamma_1}{gamma_1} the largest eigenvalue of K), on a grid and then
#'     by Brent's method. `select = "loocv"` is the exact leave-one-out score:
#'     the point left out is out of the sample and of the expansion. `"gcv"`
#'     replaces the diagonal of \eqn{(K + \lambda I)^{-1}}{(K + lambda I)^(-1)}
#'     by its mean; it needs no eigenvectors and is several times faster; about
#'     as good with RBF kernels in five columns or more, nearly the KME in one
#'     or two, and shrinking too much with polynomial kernels. `"printed"` is
#'     the score of Theorem 4 as printed, which keeps the point left out in the
#'     expansion and shrinks too much; it is there for comparison.}
#'   \item{`"mkme"`, `"mmkme"`}{each point is replaced by a normal distribution
#'     around it, \eqn{\tilde\mu = \frac1n \sum_i E\,k(\tilde x_i, \cdot)}{mu =
#'     1/n sum_i E k(x~_i, .)}, \eqn{\tilde x_i \sim N(x_i, E)}{x~_i from N(x_i,
#'     E)}, with \eqn{E = \sigma^2 I}{E = sigma^2 I} (MKME) or \eqn{E =
#'     \mathrm{diag}(e_1, \ldots, e_d)}{E = diag(e_1, ..., e_d)} (MMKME). See
#'     the next section.}
#'   \item{`"smooth"`}{each point is drawn towards the mean of the points and
#'     replaced by a normal distribution around that place, whose covariance is
#'     the share h of theirs; from the KME (h = 0) to the embedding of one
#'     normal distribution (h = 1). See Smoothing.}
#'   \item{`"stack"`}{\eqn{\tilde\mu = \sum_a w_a \tilde\mu_a}{mu = sum_a w_a
#'     mu_a} of several candidates. See Stacking.}
#' }
#'
#' S-KMSE weights are all smaller than 1/n; F-KMSE weights may exceed 1/n or be
#' negative. At \eqn{\lambda = 0}{lambda = 0} both are the KME (with a target,
#' F-KMSE is the target plus the projection of the difference on the span of the
#' sample), at `Inf` both are the target.
#'
#' @section Marginalized estimators:
#' In closed form for RBF kernels: with \eqn{\theta_l}{theta_l} the bandwidth in
#' column l, \eqn{E\,k(\tilde x_i, z) = \prod_l \theta_l/v_l^{1/2} \cdot
#' \exp(-\sum_l (x_{il} - z_l)^2/(2v_l))}{E k(x~_i, z) = prod_l
#' theta_l/sqrt(v_l) exp(-sum_l (x_il - z_l)^2/(2 v_l))} with \eqn{v_l =
#' \theta_l^2 + e_l}{v_l = theta_l^2 + e_l}, and \eqn{E\,k(\tilde x_i, \tilde
#' x_j)}{E k(x~_i, x~_j)} is the same at \eqn{x_j}{x_j} with \eqn{v_l =
#' \theta_l^2 + 2e_l}{v_l = theta_l^2 + 2 e_l}; for polynomial kernels of degree
#' 2 and 3 from the moments of the normal distribution. Other kernels are
#' refused. The noise is the user's (`noise`) or the minimizer of the exact
#' leave-one-out score, with \eqn{L_{ij} = E\,k(x_i, \tilde x_j)}{L_ij = E
#' k(x_i, x~_j)} and \eqn{Q_{ij} = E\,k(\tilde x_i, \tilde x_j)}{Q_ij = E
#' k(x~_i, x~_j)} (two independent copies, also for i = j), \deqn{\varrho -
#' \frac{2(\Sigma L - \mathrm{tr} L)}{n(n-1)} + \frac{(1-2/n)\Sigma Q +
#' \mathrm{tr} Q/n}{(n-1)^2}.}{varrho - 2 (sum L - tr L)/(n(n-1)) + ((1-2/n)
#' sum Q + tr(Q)/n)/(n-1)^2.} MKME minimizes it over \eqn{\sigma^2}{sigma^2} in
#' \eqn{[e^{-15}, e^8]}{[exp(-15), exp(8)]} times \eqn{\theta^2}{theta^2} (the
#' mean of the \eqn{\theta_l^2}{theta_l^2}), on a grid and then by Brent's
#' method; MMKME goes on from there by quasi-Newton steps over all variances,
#' never to a larger score; some variances end at exactly 0.
#'
#' With a polynomial kernel the score is a quadratic function of each variance,
#' minimized exactly. A linear kernel sees no noise (the estimate is the KME).
#' With degree 2 noise adds the same function to the embedding whatever the
#' sample, and the score is always smallest without it. With degree 3 it is
#' smallest without noise in column l unless \eqn{\sum_i x_{il}^2 x_i'(x_i -
#' \bar x) < 0}{sum_i x_il^2 x_i'(x_i - mean(x)) < 0}, which takes data far from
#' 0: centered data get no noise.
#'
#' The weights of these estimators are 1/n, on the noisy points; [as_weights()]
#' gives weights on the points themselves.
#'
#' @section Smoothing:
#' Noise around each point spreads the sample, so that little of it can be
#' added; drawn to their mean at the same time the points keep mean and
#' covariance. With \eqn{m} the mean, \eqn{z_i = x_i - m}{z_i = x_i - m} and
#' \eqn{S} the covariance as Ledoit and Wolf (2004) shrink it towards a multiple
#' of the identity (in units of the bandwidths, \eqn{x_l/\theta_l}{
#' x_l/theta_l}), the estimate is \deqn{\tilde\mu = c \frac1n \sum_i E\,k(\tilde
#' x_i, \cdot), \quad \tilde x_i \sim N(m + \sqrt{1-h}\, z_i, hS).}{mu = c 1/n
#' sum_i E k(x~_i, .), x~_i from N(m + sqrt(1 - h) z_i, h S).} h = 0 is the KME
#' (c < 1: S-KMSE), h = 1 the embedding of \eqn{N(m, S)}{N(m, S)}, both for c =
#' 1. In closed form for RBF kernels, others are refused: with \eqn{\Theta =
#' \mathrm{diag}(\theta_l^2)}{Theta = diag(theta_l^2)} and \eqn{p_i}{p_i} the
#' means of the \eqn{\tilde x_i}{x~_i}, \eqn{E\,k(\tilde x_i, z) =
#' |\Theta|^{1/2}|\Theta + hS|^{-1/2} \exp(-\frac12 (p_i - z)'(\Theta +
#' hS)^{-1}(p_i - z))}{E k(x~_i, z) = |Theta|^(1/2) |Theta + h S|^(-1/2)
#' exp(-1/2 (p_i - z)'(Theta + h S)^(-1)(p_i - z))}; inner products have
#' \eqn{\Theta + 2hS}{Theta + 2 h S}.
#'
#' h is the one of smallest score on a grid, with \eqn{c = A/B}{c = A/B}, from 0
#' to 1, for each: \eqn{\varrho - 2cA + c^2B}{varrho - 2 c A + c^2 B}, \eqn{A}
#' the mean of \eqn{\tilde\mu^{(-i)}(x_i)}{mu^(-i)(x_i)} and \eqn{B} that of
#' \eqn{\|\tilde\mu^{(-i)}\|^2}{|mu^(-i)|^2}, m and S estimated without the
#' points left out: each point in turn for n of up to 60, 20 folds beyond. Where
#' scores are the same the smallest h is taken. Constant columns have no noise,
#' and more columns than points are no obstacle. The weights c/n are those of
#' the moved points; [as_weights()] gives weights on the points themselves.
#'
#' @section Stacking:
#' The shares \eqn{w_a}{w_a} minimize \eqn{w'Gw - 2w'g}{w'Gw - 2 w'g} over
#' \eqn{w \ge 0}{w >= 0} with \eqn{\sum_a w_a e'\beta_a \le 1}{sum_a w_a
#' e'beta_a <= 1} (the mass of the whole, that is the sum of its weights, is at
#' most 1), where \eqn{G_{ab}}{G_ab} is the mean of \eqn{\langle\tilde
#' \mu_a^{(-i)}, \tilde\mu_b^{(-i)}\rangle}{<mu_a^(-i), mu_b^(-i)>} and
#' \eqn{g_a}{g_a} that of \eqn{\tilde\mu_a^{(-i)}(x_i)}{mu_a^(-i)(x_i)}, in the
#' same folds; the estimates that are added up are those on all points. With
#' smoothing among them the weights say what each point weighs in all, and
#' [as_weights()] gives weights on the points that make the estimate. The
#' candidates are those of [est_stack()]: by default the KME, smoothing with
#' three values of h and F-KMSE with three of \eqn{\lambda}{lambda}, as far as
#' the kernel has them (a matrix of kernel values: no smoothing, with a
#' warning).
#'
#' @section Names:
#' The names are those of Muandet et al. (2014). In the journal version (2016)
#' S-KMSE is called R-KMSE, and the name S-KMSE stands for the spectral
#' estimator, which is F-KMSE with \eqn{\lambda = n\lambda_{2016}}{ lambda = n
#' lambda_2016}.
#'
#' @section Cost:
#' KME and S-KMSE sum over tiles of the Gram matrix, which is
#' never stored: O(n^2 d/2) time, O(n) memory. F-KMSE stores K (8n^2 bytes). On
#' top of it, `"gcv"` and `"printed"` take 4n^3/3 flops and 8n^2 bytes,
#' `"loocv"` a full eigendecomposition, about 6n^3 flops and up to 24n^2 bytes
#' (16n^2 and 17,000n beyond n = 2,000), then O(n^2) for each
#' \eqn{\lambda}{lambda}; a given `lambda` takes a Cholesky factor, n^3/3 flops.
#' A `gram` in place of data keeps these for the next call. With an RBF kernel
#' MKME takes two sums over tiles for each of about 40 scores, MMKME another 15
#' to 60 with the gradient, each about three times as long; with a polynomial
#' kernel all scores together take O(nd) after \eqn{\rho}{rho}. `predict()`
#' takes O(nmd) time and O(n + m) memory. Smoothing takes 13 sums over pairs of
#' points for each fold, 10 n^2 (d + 3) multiplications for each value of h in
#' 20 folds, no matrix of them, and O(d^3) for each fold and value of h. A
#' stack stores K, a Cholesky factor of its size and the inverse of that (up to
#' 40n^2 bytes with what is in passing), and takes about 4n^3 flops for three
#' amounts of F-KMSE, and two thirds of the time of smoothing.
#'
#' @param x The sample, points in rows: a numeric matrix, a data frame of
#'   numeric columns, or a vector (one column); a [gram()] (a matrix of kernel
#'   values is one by [as_gram()]); a [kme_sketch()] of any number of rows; or a
#'   formula without response, `~ a + b`.
#' @param kernel A kernel, such as [kernel_rbf()]; must not be given with a
#'   `gram` or a sketch and is the target's by default if that is a fit.
#' @param estimator `"kme"`, `"skmse"`, `"fkmse"`, `"mkme"`, `"mmkme"`,
#'   `"smooth"` or `"stack"`, an object such as [est_skmse()], or a function of
#'   your own, see there.
#' @param ... For an estimator given by name, arguments of what makes it:
#'   `lambda`, `select`, `target`, `noise`, `h`, `c`, `folds`, `candidates` or
#'   `shares`, see [est_kme()]; in the formula method, arguments of the default
#'   method.
#' @param weights A user's own weights, one for each point: the embedding as it
#'   is (importance weights, a target); they are not normalized, a
#'   distribution's sum to 1, and whole numbers, as of counted points, are a
#'   warning. Only for `estimator = "kme"`.
#' @param scale The units of the columns: `FALSE`, as they are; `TRUE`, divided
#'   by their standard deviations; `"whiten"`, by the root of their covariance,
#'   see Units in [gram()]. Not
#'   with a `gram`, which has its own.
#' @param formula A formula without response.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default, `na.action = na.omit` drops their rows.
#'
#' @return An object of class `kme`, a list with
#' \item{weights}{the n weights \eqn{\beta}{beta}; what each point weighs in all
#'   `parts` together; of a sketch the weights on its m landmarks, which are
#'   then the points of `sample`}
#' \item{lambda, alpha}{amount of shrinkage, 0 for KME, MKME and MMKME; `alpha`
#'   for S-KMSE only}
#' \item{noise}{for MKME the variance \eqn{\sigma^2}{sigma^2}, for MMKME the
#'   variances \eqn{e_l}{e_l}, named by the columns}
#' \item{fitted}{the embedding at the n points}
#' \item{norm2}{its squared norm}
#' \item{rho, varrho}{\eqn{\rho}{rho} and \eqn{\varrho}{varrho} above}
#' \item{h, c, covariance}{for smoothing only; the covariance is \eqn{S}}
#' \item{candidates}{for a stack only: a data frame of the candidates, their
#'   `share`, the `score` of each alone and its `mass`}
#' \item{settled}{for a stack only: its estimator with all that was chosen
#'   given}
#' \item{parts}{what smoothing and stacks are sums over in place of the weights:
#'   a list of lists with `sample` (points and kernel), `noise` (`NULL`,
#'   variances or a covariance) and `weights`}
#' \item{folds}{in how many folds points were left out by smoothing and stacks}
#' \item{score}{data frame of the selection curve, `lambda` (for MKME `noise`,
#'   for smoothing `h`, and its `c`) and `score`, or `NULL`}
#' \item{minimum, reference}{the score at what was selected, and that of the KME
#'   where the score is a leave-one-out score}
#' \item{border}{is what was selected on the border of the range searched?}
#' \item{kernel}{the kernel with its bandwidth as a number}
#' \item{sample}{the sample: a list with the points `x` (`NULL` for kernel
#'   values), the `gram` if one was given, and its `kernel`}
#' \item{estimator}{the estimator as an object, see [est_kme()]; its field
#'   `target` is the target}
#' \item{share}{the share of the target in the estimate}
#' \item{select, n, arguments}{the rule of selection, `NULL` if there was none;
#'   the number of points; what was asked for}
#'
#' @section Methods:
#' `coef()` gives the weights, `predict()` the embedding at new points (a fit on
#' [as_gram()] takes their m by n kernel values), `plot()` the selection curve,
#' the embedding for one or two columns, or the weights, and `update()` fits
#' again with other arguments: on the same points unless `x` is given (or `data`
#' for a fit by formula), with the rule of selection (and own weights) dropped
#' if the estimator changes.
#'
#' @references
#' Muandet, K., Fukumizu, K., Sriperumbudur, B., Gretton, A. and Schölkopf, B.
#' (2014). Kernel mean estimation and Stein effect. *Proceedings of the 31st
#' International Conference on Machine Learning*. Theorem 3 (S-KMSE), section
#' 3.1 and Theorem 4 (F-KMSE). \doi{10.48550/arXiv.1306.0842}
#'
#' Muandet, K., Sriperumbudur, B., Fukumizu, K., Gretton, A. and Schölkopf, B.
#' (2016). Kernel mean shrinkage estimators. *Journal of Machine Learning
#' Research* 17(48), 1--41.
#'
#' Xia, X., Shan, S., Gong, M., Wang, N., Gao, F., Wei, H. and Liu, T. (2021).
#' Kernel mean estimation by marginalized corrupted distributions.
#' \doi{10.48550/arXiv.2107.04855}
#' Ledoit, O. and Wolf, M. (2004). A well-conditioned estimator for
#' large-dimensional covariance matrices. *Journal of Multivariate Analysis*
#' 88(2), 365--411. \doi{10.1016/S0047-259X(03)00096-4}
#'
#' Wolpert, D. H. (1992). Stacked generalization. *Neural Networks* 5(2),
#' 241--259. \doi{10.1016/S0893-6080(05)80023-1}
#' @seealso [kme_inner()], [kme_distance()], [kme_risk()]; [plot.kme()];
#'   [as_weights()].
#' @family kernel means
#' @examples
#' x <- scale(iris[1:50, 1:4])
#' fit <- kme(x, kernel_rbf(), "fkmse")
#' fit
#' plot(fit)
#'
#' # The embedding at new points, and the same fit with less work
#' predict(fit, x[1:3, ])
#' update(fit, select = "gcv")
#'
#' # Shrinkage towards a normal distribution
#' normal <- list(weights = 1, means = matrix(0, 1, 4), covariances = diag(4))
#' kme(x, estimator = "skmse", target = normal)
#' kme(~ Sepal.Length + Sepal.Width, iris, estimator = "skmse")
#'
#' # The combination of several: no choice, and rarely far from the best
#' stacked <- kme(x, kernel_rbf(1), "stack")
#' stacked
#' plot(stacked)
#'
#' # Noisy copies of the points, as noisy in each column as the data ask for
#' noisy <- kme(x, estimator = "mmkme")
#' noisy$noise
#' plot(noisy)
#' @export
kme <- function(x, ...) {
  UseMethod("kme")
}

#' @rdname kme
#' @export
kme.default <- function(x, kernel = kernel_rbf(), estimator = "kme", ...,
                        weights = NULL, scale = FALSE) {
  asked <- request(kme_arguments, dots = TRUE)
  estimator <- read_estimator(estimator, ...)
  sample <- read_sample(x, asked$kernel, weights, estimator_kernel(estimator),
                        asked$scale)
  estimate_mean(sample, estimator, stored(asked))
}

kme_arguments <- door_table(
  "kme.default", x = anything, kernel = unless_given(a_kernel),
  estimator = anything, weights = anything, scale = unless_given(a_scale),
  aside = c("x", "estimator", "weights")
)

#' @rdname kme
#' @export
kme.formula <- function(formula, data = NULL, subset, na.action, ...) {
  check_formula(formula, data)
  sample <- formula_sample(match.call(expand.dots = FALSE), formula, data,
                           missing(na.action), parent.frame())
  fit <- kme.default(sample$x, ...)
  fit$terms <- sample$terms
  fit
}

# The fit of an estimator to a sample, for doors that need one on the way too.
estimate_mean <- function(sample, estimator, arguments = list()) {
  check_estimator(sample, estimator)
  new_kme(est_fit(estimator, sample), sample, estimator, arguments)
}

# Does what is known of the sample allow the estimator?
check_estimator <- function(sample, estimator) UseMethod("check_estimator")
check_estimator.kernmean_sample <- \(sample, estimator) NULL

# The target is kept in the estimator, as it was read.
new_kme <- function(fit, sample, estimator, arguments) {
  check_result(fit[c("weights", "fitted", "norm2", "rho", "varrho", "minimum",
                     "reference")], "a norm or a score of the estimate")
  if ("target" %in% names(fit)) {
    estimator["target"] <- fit["target"]
    fit["target"] <- NULL
  }
  new_fit("kme", c(fit, list(
    sample = sample_support(sample), kernel = sample$kernel, n = sample$n,
    estimator = estimator, arguments = arguments
  )))
}

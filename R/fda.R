#' Kernel Fisher discriminants
#'
#' Discriminant axes in the feature space of a kernel, with the ridge that
#' shrinkage of the kernel matrix gives, for two classes or more.
#'
#' With \eqn{M_c} the mean of the columns of the Gram matrix K in class c,
#' \eqn{M} their overall mean, and the within-class scatter \deqn{N = \sum_c K_c
#' (I - ee'/n_c) K_c',}{N = sum_c K_c (I - ee'/n_c) K_c',} the axes
#' \eqn{\alpha}{alpha} span \eqn{(N + rI)^{-1}(M_c - M)}{(N + rI)^(-1) (M_c -
#' M)}: with \eqn{D = [\sqrt{n_c}(M_c - M)]_c}{D = [sqrt(n_c) (M_c - M)]_c},
#' \eqn{R'R = N + rI} and the singular value decomposition \eqn{R'^{-1}D =
#' WSZ'}{R'^(-1) D = W S Z'}, \eqn{\alpha = \sqrt{n - C}\,R^{-1}W}{alpha =
#' sqrt(n - C) R^(-1) W}, so that \eqn{\alpha'(N + rI)\alpha = (n - C)I}{alpha'
#' (N + rI) alpha = (n - C) I}. For two classes \eqn{\alpha}{alpha} is
#' proportional to \eqn{(N + rI)^{-1}(M_1 - M_2)}{(N + rI)^(-1) (M_1 - M_2)}. A
#' point z has the scores \eqn{s(z) = \alpha'(k_z - M)}{s(z) = alpha' (k_z -
#' M)}, \eqn{k_z = (k(z, x_i))_i}. With the linear kernel and a ridge near 0
#' these are the linear discriminants of [MASS::lda()]. Unlike those, they
#' depend on the units of the columns; `scale = TRUE` or `"whiten"` takes these
#' out, and scales new points as the sample was.
#'
#' @section Ridge:
#' `"shrinkage"` takes \eqn{r = \lambda/(1 - \lambda) \cdot (\mathrm{tr}
#' K^c/(n-1))^2}{r = lambda/(1 - lambda) (tr Kc/(n - 1))^2} with
#' \eqn{\lambda}{lambda} the intensity of [shrink_gram()] at p = n - 1, which
#' knows no classes. N has the units of \eqn{K^2}{K^2}, so a multiple of the
#' kernel gives the same classes and posterior probabilities. At \eqn{\lambda =
#' 1}{lambda = 1} the ridge is `Inf`, which stands for the limit of large
#' ridges: \eqn{N + rI} is replaced by I, and the axes are combinations of the
#' \eqn{M_c - M}. As r grows, \eqn{\sqrt{r}\,\alpha}{sqrt(r) alpha} tends to
#' these. Where \eqn{\lambda}{lambda} is 0 or nearly so, and the ridge would be
#' rounding of N, it is \eqn{\sqrt\epsilon \max N_{ii}}{sqrt(eps) max N_ii}. A
#' small number such as 1e-3 (Mika et al.) depends on the scale of the
#' kernel and on n.
#'
#' `"loo"` tries 0.03, 0.1, 0.3, 1 and 3 times that ridge, at the bandwidth that
#' was chosen before, by the same rule as bandwidths, and is the default where
#' the bandwidth is chosen by `"loo"`; elsewhere that is `"shrinkage"`. An
#' infinite ridge stays.
#'
#' @section Bandwidth:
#' Where the kernel leaves its bandwidth open, as [kernel_rbf()] does,
#' `bandwidth` says how \eqn{\theta}{theta} is chosen. `"loo"` tries
#' \eqn{2^{-2}, 2^{-3/2}, \ldots, 2}{2^(-2), 2^(-3/2), ..., 2} times the median
#' distance, each with the ridge that shrinkage gives there, and takes that of
#' the smallest leave-one-out error \deqn{\sum_c \frac{\pi_c}{n_c} \sum_{i \in
#' c} 1(\hat c_{-i}(x_i) \ne c);}{sum_c pi_c/n_c sum_(i in c) 1(c_-i(x_i) !=
#' c);} of several it takes the one of largest \deqn{\sum_c \frac{\pi_c}{n_c}
#' \sum_{i \in c} \log p_{-i}(c \mid x_i),}{sum_c pi_c/n_c sum_(i in c) log
#' p_-i(c | x_i),} the mean log posterior probability of the true class. With
#' the shares of the sample as `prior` the first is the share of wrong points;
#' with another prior both are those of a population that has it. Numbers are
#' tried in the same way; a single number is taken as it is, and `"median"` is
#' the median distance. A bandwidth that gives no discriminants is passed over
#' (`NA` in the table) unless all do. A kernel whose own bandwidth is given, one
#' without any, and a `gram` are taken as they are.
#'
#' The error of the chosen bandwidth is optimistic, being the smallest of
#' several: in the study below it was on average 1.2 per cent of the points
#' less than the error on new points (2.6 on glass, 1.7 on sonar), with the
#' median bandwidth 0.3.
#'
#' The test error in per cent, by ten-fold cross-validation repeated twice, of
#' columns standardized by the training folds, with `e1071::svm()`,
#' `ranger::ranger()` (a forest) and [MASS::lda()] at their defaults:
#'
#' | | n | columns | classes | loo | one ridge | median | svm | forest | lda |
#' |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
#' | iris | 150 | 4 | 3 | 2.3 | 2.0 | 3.0 | 3.3 | 5.3 | 2.0 |
#' | wine | 178 | 13 | 3 | 1.4 | 0.8 | 0.8 | 2.0 | 1.7 | 0.8 |
#' | glass | 214 | 9 | 6 | 32.5 | 33.4 | 32.0 | 31.5 | 21.3 | 37.4 |
#' | sonar | 208 | 60 | 2 | 13.2 | 14.7 | 18.5 | 15.1 | 14.2 | 26.2 |
#' | vehicle | 846 | 18 | 4 | 15.6 | 16.1 | 16.1 | 23.2 | 25.6 | 22.3 |
#' | wdbc | 569 | 30 | 2 | 2.7 | 2.5 | 2.5 | 2.5 | 3.6 | 4.4 |
#' | vowel | 990 | 10 | 11 | 1.0 | 1.5 | 6.0 | 5.4 | 3.0 | 39.9 |
#' | mean | | | | 9.8 | 10.1 | 11.3 | 11.9 | 10.7 | 19.0 |
#'
#' The binomial standard error of a mean is about 0.6. "One ridge" is `ridge =
#' "shrinkage"` at the chosen bandwidth; that multiples of it are tried was
#' decided on these data sets. The gain over the median comes from sonar and
#' vowel; on glass the choice, by an error that 200 points in six classes
#' estimate badly, did not help. The script `kfda-bandwidth.R` in
#' `system.file("studies", package = "kernmean")` makes the table.
#'
#' @section Posterior probabilities:
#' The class scores are \eqn{\log\pi_c - \|s(z) - m_c\|^2/(2\sigma^2)}{log
#' pi_c - |s(z) - m_c|^2/(2 sigma^2)}, \eqn{m_c} the mean score of class c; the
#' posterior is their softmax. For the training points the spread around the
#' class means is at most 1 in each axis (for finite r), and nearly 0 where the
#' ridge is small or the classes are small, whatever it is for new points. So
#' \eqn{\sigma^2}{sigma^2} is the mean over the sample of \eqn{\|s_{-i}(x_i) -
#' m_{-i}\|^2}{|s_-i(x_i) - m_-i|^2} over the number of axes, in the fit without
#' point i and to the mean of its own class there: the spread of a new point,
#' that of the estimated mean and axes included. The ridge stays that of the
#' whole sample, as do prior and \eqn{\sigma^2}{sigma^2} in the posterior
#' probabilities of the points left out. All fits are computed in closed form.
#' In simulations this is the spread of new points on average to within a fifth
#' (a quarter for classes of two points), where 1 is about a third too small at
#' 30 points a class. The probabilities remain those of a normal cloud of one
#' spread for each class: if the scores have heavier tails they are still too
#' close to 0 and 1.
#'
#' @section Sketches: With a [kme_sketch()] with groups as `x` these are its
#' classes (`grouping` must be missing), and the axes those of the projected
#' Gram matrix \eqn{\Phi\Phi'}{Phi Phi'} of all rows: with \eqn{\Phi'\Phi = nC =
#' BB'}{Phi'Phi = nC = BB'}, S the within-class scatter of the features and
#' \eqn{\Delta = [\sqrt{n_c}(\mu_c - \mu)]_c}{Delta = [sqrt(n_c) (mu_c -
#' mu)]_c}, the formulas above hold for \eqn{R'R = B'SB + rI}{R'R = B'SB + rI}
#' and \eqn{D = B'\Delta}{D = B'Delta}, and `scaling` is \eqn{\sqrt{n - C}\,W_S
#' B R^{-1}W}{sqrt(n - C) W_S B R^(-1) W}, weights on the landmarks
#' (\eqn{W_S}{W_S} their root). A ridge by `"shrinkage"`, the default, takes the
#' fourth moments, which a sketch with groups keeps; a number does not. Nothing
#' is left out: `loo`, `error`, `grouping` and `scores` are `NULL`, `ridge =
#' "loo"` is refused, and \eqn{\sigma^2}{sigma^2} is the spread of the rows
#' themselves around the means of their classes (divided by n - C), which is too
#' small unless n is large against the number of landmarks. Check with
#' `predict()` on rows that were not added to the sketch. With weights of rows n
#' is \eqn{(\sum w)^2/\sum w^2}{(sum w)^2 / sum w^2}. O(m^3) time and O(m^2)
#' memory for m landmarks.
#'
#' @section Cost: O(n^3): about 8n^3/3 flops, nearly all of them in matrix
#' products (n^3 for N, n^3/3 for R; for the leave-one-out fits n^3/3 for its
#' inverse and n^3 for a solve with R' of n right sides), O(n C^3) for many
#' classes, and n^2 d for the kernel, 64n^2 bytes; O(n C) for each new point in
#' addition to its kernel values. The choice of a bandwidth is exact and uses
#' all points, however many: it takes one fit for each that is tried, seven by
#' default and four more for ridges, one of which is the result. For 990 points
#' of 11 classes one fit took 0.3 s of one processor. One fit is what
#' `bandwidth = "median"` takes, or a number. The leave-one-out distances lose
#' digits as r falls to the rounding of N; a ridge below that rounding,
#' \eqn{n\epsilon \max N_{ii}}{n eps max N_ii}, is an error.
#'
#' @param x Points in rows: a numeric matrix, a data frame of numeric columns or
#'   a vector; a [gram()]; or a [kme_sketch()] with groups, see Sketches.
#' @param grouping The class of each point, a factor or a vector, none missing;
#'   two classes or more of two points or more. Levels without points are left
#'   out with a warning.
#' @param kernel A kernel, positive definite; not with a `gram`.
#' @param ridge `"loo"`, `"shrinkage"`, or r as a positive number, `Inf`
#'   allowed; `NULL` for one of the first two, see Ridge.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method by name; in `update()`, arguments to be changed.
#' @param bandwidth `"loo"`, `"median"` or positive numbers to choose among, for
#'   a kernel whose bandwidth is open (see Bandwidth); an error with any other.
#' @param scale `FALSE`, `TRUE` or `"whiten"`: divide columns by their standard
#'   deviations, or take out their covariance (see [gram()]). Where it is not
#'   given, a warning says if standard deviations differ more than tenfold.
#' @param progress Show how far the choice of a bandwidth has come, from 800
#'   points on?
#' @param prior Probabilities of the classes, in the order of the levels or with
#'   their names; by default the shares in the sample. They enter the posterior,
#'   and by it the choice of a bandwidth, not the axes.
#' @param formula `class ~ a + b` with numeric variables on the right.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#' @return An object of class `kme_fda`, a list with
#' \item{prior, counts, lev}{prior, number of points and names of the classes;
#'   `lev` has the empty ones too}
#' \item{scaling}{\eqn{\alpha}{alpha}, n rows, a column for each axis: C - 1, or
#'   fewer where the class means span less}
#' \item{means}{the mean scores \eqn{m_c}, a row for each class}
#' \item{svd}{\eqn{\sqrt{(n - C)/(C - 1)}\,S}{sqrt((n - C)/(C - 1)) S}: their
#'   squares are ratios of between- to within-class variance (for finite r), as
#'   in [MASS::lda()] with the class shares as prior; here neither they nor the
#'   axes depend on `prior`}
#' \item{scores, center}{the scores of the sample, n rows; \eqn{\alpha'M}{alpha'
#'   M}}
#' \item{ridge, intensity}{r, and \eqn{\lambda}{lambda}, from 0 to 1 (`NULL`
#'   where the ridge was given as a number)}
#' \item{sigma2}{\eqn{\sigma^2}{sigma^2}}
#' \item{loo}{leave-one-out results, a list: `class`, `posterior`, and
#'   `distance`, the squared distances to the class means, n by C}
#' \item{error}{the share of points whose class in `loo` is wrong}
#' \item{bandwidths}{where several were tried, a data frame with a row for each:
#'   `factor` (of the median distance), `bandwidth`, `error`, `log_posterior`,
#'   `chosen`; else `NULL`}
#' \item{ridges}{for `ridge = "loo"` the same of ridges: `factor` (of that of
#'   shrinkage), `ridge`, `error`, `log_posterior`, `chosen`}
#' \item{n, N}{number of points, `N` as in [MASS::lda()]}
#' \item{sample}{the sample: a list with the points `x` (`NULL` for kernel
#'   values), the `gram` if one was given, and its `kernel`}
#' \item{grouping, kernel, terms, response, arguments}{what was given}
#'
#' @section Methods: `predict()` gives the classes of new points, `coef()` the
#' axes, `plot()` the regions of the classes or the scores (see
#' [plot.kme_fda()]), `summary()` the leave-one-out classes by true ones and the
#' bandwidths that were tried, and `update()` fits again with other arguments;
#' the bandwidth is chosen again where what enters its choice changes.
#'
#' @references
#' Mika, S., Rätsch, G., Weston, J., Schölkopf, B. and Müller, K.-R. (1999).
#' Fisher discriminant analysis with kernels. *Neural Networks for Signal
#' Processing IX*, 41--48. \doi{10.1109/NNSP.1999.788121}
#'
#' Lancewicki, T. (2017). Regularization of the kernel matrix via covariance
#' matrix shrinkage estimation. Section V. \doi{10.48550/arXiv.1707.06156}
#' @seealso [shrink_gram()]; [mmd_test()] for whether classes differ at all.
#' @family operators
#' @examples
#' fit <- kme_fda(Species ~ Petal.Length + Petal.Width, iris)
#' fit
#' summary(fit)
#' plot(fit)
#' predict(fit, data.frame(Petal.Length = 4.9, Petal.Width = 1.65))$posterior
#'
#' # Two classes that no line separates
#' set.seed(1)
#' angle <- runif(60, 0, 2 * pi)
#' ring <- rep(c(1, 2), 30)
#' x <- ring * cbind(cos(angle), sin(angle)) + rnorm(120, sd = 0.2)
#' plot(kme_fda(x, ring))
#' @export
kme_fda <- function(x, ...) {
  UseMethod("kme_fda")
}

#' @rdname kme_fda
#' @export
kme_fda.default <- function(x, grouping, kernel = kernel_rbf(),
                            ridge = NULL, ..., bandwidth = "loo",
                            scale = FALSE, prior = NULL,
                            progress = interactive()) {
  asked <- request(kme_fda_arguments)
  open <- has_open_bandwidth(x, asked$kernel)
  bandwidth <- asked$bandwidth
  if (is_given(asked, "bandwidth")) {
    bandwidth <- check_choice_of(bandwidth, x, asked$kernel, "loo")
  }
  sample <- read_sample(x, asked$kernel, scale = asked$scale)
  n <- sample$n
  classes <- check_grouping(grouping, n)
  prior <- check_prior(prior, classes$counts)
  check_memory(n, n, "use fewer rows", copies = 8)
  if (is.null(bandwidth) && open) bandwidth <- "loo"
  ridge <- asked$ridge
  if (is.null(ridge)) {
    ridge <- if (identical(bandwidth, "loo")) "loo" else "shrinkage"
  }
  kernels <- tried_kernels(sample$kernel, bandwidth, "loo",
                           bandwidth_factors)
  found <- search_fda(sample, kernels, classes, prior, ridge, progress)
  new_kme_fda(found, classes, prior, stored(asked))
}

a_ridge <- maybe(number(open = TRUE, finite = FALSE), "loo", "shrinkage")

kme_fda_arguments <- door_table(
  "kme_fda.default", x = anything, grouping = anything,
  kernel = unless_given(a_kernel), ridge = a_ridge,
  bandwidth = unless_given(anything), scale = unless_given(a_scale),
  prior = anything, progress = flag, aside = c("x", "grouping", "progress")
)

#' @rdname kme_fda
#' @export
kme_fda.formula <- function(formula, data = NULL, subset, na.action, ...) {
  check_formula(formula, data)
  if ("grouping" %in% ...names()) {
    stop_input("'grouping' must not be given with a formula, whose left side ",
               "it is")
  }
  check_dot(formula)
  layout <- formula_terms(formula, data)
  if (attr(layout, "response") == 0L) {
    stop_input("'formula' must have the classes on its left, as in class ~ a")
  }
  frame <- formula_frame(match.call(expand.dots = FALSE), layout, data,
                         missing(na.action), parent.frame())
  # With what scale() or poly() were fitted to, for new data.
  parts <- split_frame(frame, layout)
  fit <- kme_fda.default(parts$x, grouping = parts$response, ...)
  fit$terms <- keep_constants(parts$terms, data)
  fit$response <- keep_constants(parts$left, data)
  fit
}

new_kme_fda <- function(found, classes, prior, arguments) {
  fit <- found$fit
  sample <- found$sample
  lev <- names(classes$counts)
  rows <- sample_names(sample)
  rownames(fit$scores) <- rows
  rownames(fit$means) <- lev
  left <- fda_left(fit, classes, prior, rows)
  new_fit("kme_fda", c(
    list(prior = prior, counts = classes$counts),
    fit[c("means", "scaling", "svd", "scores", "center")],
    list(lev = classes$lev, N = sample$n, ridge = fit$ridge,
         intensity = fit$intensity, sigma2 = left$sigma2,
         error = mean(left$loo$class != lev[classes$of]), loo = left$loo,
         bandwidths = found$bandwidths, ridges = found$ridges,
         grouping = factor(lev[classes$of], classes$lev), n = sample$n,
         sample = sample, kernel = sample$kernel, arguments = arguments)
  ))
}

# --- Checks ------------------------------------------------------------------

# list(of: the number of the class of each point; counts, named; lev: all
# levels, the empty ones too).
check_grouping <- function(grouping, n) {
  if (!is.atomic(grouping) || is.null(grouping) || length(grouping) != n) {
    stop_input(
      "'grouping' must be a factor or vector with the class of each of the ", n,
      " points, not ", describe(grouping),
      if (is.factor(grouping)) paste(" of length", length(grouping))
    )
  }
  if (anyNA(as.character(grouping))) {
    stop_input("'grouping' must have no missing values, not ",
               sum(is.na(as.character(grouping))), " NA")
  }
  grouping <- as.factor(grouping)
  lev <- levels(grouping)
  empty <- setdiff(lev, as.character(grouping))
  grouping <- droplevels(grouping)
  counts <- tabulate(grouping, nlevels(grouping))
  names(counts) <- levels(grouping)
  if (length(counts) < 2L) {
    stop_input("'grouping' must have at least 2 classes, not only '",
               names(counts), "'")
  }
  if (min(counts) < 2L) {
    stop_input("'grouping' must have at least 2 points in each class, not 1 ",
               "in ", shorten(paste0("'", names(counts)[counts < 2L], "'")))
  }
  if (length(empty)) {
    warn_kernmean("'grouping' has classes without points, which are left out: ",
                  paste0("'", empty, "'", collapse = ", "))
  }
  list(of = as.integer(grouping), counts = counts, lev = lev)
}

check_prior <- function(prior, counts) {
  lev <- names(counts)
  if (is.null(prior)) {
    return(counts / sum(counts))
  }
  values <- take(prior, numbers(0, 1, count = length(lev)), "prior")
  if (abs(sum(values) - 1) > 1e-6) {
    stop_input("'prior' must sum to 1, not ", format_number(sum(values)))
  }
  if (!is.null(names(prior))) {
    if (!setequal(names(prior), lev)) {
      stop_input("'prior' must have the names of the classes, ",
                 toString(lev), ", not ", toString(names(prior)))
    }
    prior <- prior[match(lev, names(prior))]
  }
  stats::setNames(as.double(prior), lev)
}

# --- Methods -----------------------------------------------------------------

#' @rdname kme_fda
#' @param object A fit.
#' @param newdata New points, as for [predict.kme()]: with the columns of `x`,
#'   or a data frame for a fit by formula; for a fit on [as_gram()] their m by n
#'   kernel values. Without it, the points of the sample: in the fit, not left
#'   out.
#' @param dimen Number of axes to be used, all by default.
#' @return `predict()` returns `list(class, posterior, x)` as for
#'   [MASS::lda()], `x` the scores.
#' @export
predict.kme_fda <- function(object, newdata, prior = object$prior, dimen,
                            ...) {
  check_dots(...)
  prior <- check_prior(prior, object$counts)
  axes <- ncol(object$scaling)
  if (!missing(dimen)) axes <- min(axes, check_count(dimen, "dimen"))
  scores <- if (missing(newdata)) {
    own_scores(object)
  } else {
    fda_scores(object, sample_newdata(object$sample, newdata, object$terms))
  }
  scores <- scores[, seq_len(axes), drop = FALSE]
  distance <- fda_distance(scores,
                           object$means[, seq_len(axes), drop = FALSE])
  c(fda_classes(distance, object$sigma2, prior, object$lev, rownames(scores)),
    list(x = scores))
}

fda_scores <- function(object, new) {
  alpha <- object$scaling
  raw <- sample_at(object$sample, new, alpha)
  if (!all(is.finite(raw))) {
    stop_kernmean("numeric",
                  "scores overflow; rescale the columns of 'newdata'")
  }
  lost <- sum(rowSums(raw != 0) == 0)
  if (lost > 0L) {
    warn_kernmean(
      "for ", lost, " of ", new$m, " new points all kernel values are 0: they ",
      "are far from the sample, and their classes say nothing of them"
    )
  }
  dimnames(raw) <- list(new$names, colnames(alpha))
  raw - rep(object$center, each = nrow(raw))
}

#' @export
coef.kme_fda <- function(object, ...) {
  check_dots(...)
  object$scaling
}

# A bandwidth that was chosen stays with its points and classes; with others, or
# another kernel, it is chosen anew as the argument said.
fit_request.kme_fda <- function(x, changes) {
  if ("data" %in% names(changes) && !is.null(x$terms) &&
        !"grouping" %in% names(changes)) {
    changes$grouping <- read_response(x$response, changes$data)
  }
  names <- names(changes)
  same <- !any(c("x", "data") %in% names)
  asked <- fit_request.default(x, changes)
  enters <- c("grouping", "ridge", "prior")
  searched <- !is.null(x$bandwidths)
  kept <- attr(asked, "kept")
  rechosen <- "bandwidth" %in% names || searched && any(enters %in% names) ||
    !is.null(x$ridges) && !length(setdiff(names, "progress"))
  if (rechosen && same && !"kernel" %in% names) {
    asked$kernel <- x$arguments$kernel
  }
  if (!"bandwidth" %in% names && !has_open_bandwidth(asked$x, asked$kernel)) {
    asked$bandwidth <- NULL
  }
  if (same && !"grouping" %in% names) asked$grouping <- x$grouping
  kept_bandwidth <- !any(c("kernel", "bandwidth", "scale",
                           if (searched) enters) %in% names) && !rechosen
  structure(asked, kept = if (same) c(kept, if (kept_bandwidth) "bandwidth"),
            fields = if (same) c("response", if (kept_bandwidth) "bandwidths"))
}

fit_lines.kme_fda <- function(x, digits) {
  number <- \(value) format(value, digits = digits)
  classes <- paste0(
    describe_sample(x$sample), ", ", length(x$counts), " classes: ",
    shorten(paste0(names(x$counts), " (", x$counts, ")"))
  )
  # A class stays with its number where the line breaks.
  words <- strsplit(classes, " (?![(][0-9]+[)])", perl = TRUE)[[1L]]
  share <- x$svd^2 / sum(x$svd^2)
  times <- if (!is.null(x$ridges)) x$ridges$factor[x$ridges$chosen] else 1
  c(
    "Kernel Fisher discriminants", fill_lines(words, 80L, exdent = 2L),
    kernel_lines(x$kernel), sample_note(x$sample),
    paste0("ridge ", number(x$ridge), if (is.null(x$intensity)) " (given)" else
      paste0(" (", if (times != 1) paste(times, "times that of "),
             "shrinkage, intensity = ", number(x$intensity), ")")),
    if (length(share) == 1L) "1 axis" else paste0(
      length(share), " axes, shares of the trace ",
      shorten(format_number(share, digits), 5L)
    ),
    describe_errors(x$sample, x, number)
  )
}

# What is known of points that are not in the sample.
describe_errors <- function(sample, object, number) {
  UseMethod("describe_errors")
}
describe_errors.kernmean_sample <- function(sample, object, number) {
  paste0("leave-one-out error ", number(object$error), " (",
         sum(object$loo$class != object$grouping), " of ", object$n, ")",
         if (!is.null(object$bandwidths) || !is.null(object$ridges)) {
           paste0(", optimistic: of ", paste(c(
             if (!is.null(object$bandwidths)) paste(nrow(object$bandwidths),
                                                    "bandwidths"),
             if (!is.null(object$ridges)) paste(nrow(object$ridges), "ridges")
           ), collapse = ", "))
         })
}

#' @rdname kme_fda
fit_summary.kme_fda <- function(x) {
  tried <- c(bandwidths = "Bandwidths", ridges = "Ridges")
  parts <- lapply(names(tried), \(what) {
    if (!is.null(x[[what]])) {
      structure(x[[what]], title = paste(
        tried[[what]], "by leave-one-out error, then log posterior"
      ))
    }
  })
  names(parts) <- names(tried)
  left <- !is.null(x$loo)
  c(Filter(Negate(is.null), parts), if (left) list(table = structure(
    table(true = droplevels(x$grouping),
          predicted = factor(x$loo$class, names(x$counts))),
    title = "Leave-one-out classes"
  )), list(means = structure(x$means, title = paste0(
    "Mean scores of the classes (spread of ",
    if (left) "a new point: " else "the rows themselves: ",
    format_number(sqrt(x$sigma2)), ")"
  ))))
}

fit_rows.kme_fda <- function(x, matrix = c("classes", "d"), ...) {
  check_dots(...)
  if (take(matrix, choice("classes", "d"), "matrix") == "d") {
    return(share_frame(c("LD", "svd"), x$svd, x$svd^2 / sum(x$svd^2)))
  }
  classes <- names(x$counts)
  wrong <- as.character(x$loo$class) != as.character(x$grouping)
  data.frame(
    class = classes, n = as.vector(x$counts), prior = as.vector(x$prior),
    error = if (is.null(x$loo)) NA_real_ else
      as.vector(tapply(wrong, factor(x$grouping, classes), mean)),
    x$means, row.names = NULL
  )
}

fit_facts.kme_fda <- function(x) {
  c(list(nobs = x$n, classes = length(x$counts), axes = ncol(x$scaling),
         ridge = x$ridge, intensity = x$intensity, sigma2 = x$sigma2,
         error = x$error), kernel_columns(x$kernel))
}

fit_values.kme_fda <- function(x, newdata = NULL) {
  found <- if (!is.null(newdata)) predict(x, newdata) else
    c(list(x = own_scores(x)), x$loo)
  data.frame(.class = found$class, prefixed(found$posterior, ".posterior_"),
             prefixed(found$x, "."), check.names = FALSE)
}

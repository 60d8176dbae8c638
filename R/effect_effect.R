# Effects and other linear functionals of a regression: kme_effect().

#' Effects and other linear functionals of a regression
#'
#' Average treatment effects, effects on the treated, mean outcomes of
#' treatments or over another population, average derivatives and effects of
#' policies, with standard errors, by kernel Riesz regression: doubly robust,
#' without folds and (but for landmarks, random features and folds that are
#' asked for, which are drawn) without a seed.
#'
#' A linear functional of a regression \eqn{g(x) = E[Y \mid X = x]}{g(x) = E[Y |
#' X = x]}, \eqn{\theta = E\,m(W; g)}{theta = E m(W; g)}, such as the mean of g
#' over other rows or that of its derivative, is \eqn{E\,\alpha(X)
#' Y}{E alpha(X) Y} with its Riesz representer \eqn{\alpha}{alpha}. In the space
#' of a kernel both are ridge regressions with one matrix, \eqn{S}, the
#' covariance of the features of the source rows: \deqn{\alpha = m_1 + (S +
#' \lambda I)^{-1} b, \quad g = \bar y + (S + \mu I)^{-1} c,}{alpha = m1 + (S +
#' lambda I)^(-1) b, g = mean(y) + (S + mu I)^(-1) c,} b the mean of the
#' functional of the features, c their covariance with y, both centered;
#' \eqn{m_1}{m1} the functional of 1. The estimate \deqn{\hat\theta =
#' \mathrm{mean}\; m(W; \hat g) + \mathrm{mean}\; \hat\alpha (y - \hat g) =
#' \mathrm{mean}(a y)}{theta = mean m(W; g) + mean alpha (y - g) = mean(a y)} is
#' a weighted mean of outcomes with the effective weights a (`weights()`), in
#' which what is left of the imbalance is the product of what both ridges leave.
#'
#' Both ridges have the smallest leave-one-out loss (where it has several
#' minima, the largest ridge at one of these whose loss exceeds the least by at
#' most a standard error of the difference), exact for each of 29 values from
#' \eqn{10^{-6}}{10^-6} to 10 (in units of the mean of k(x, x)) from one
#' eigendecomposition: \eqn{\mu}{mu} that of the outcomes, \eqn{\lambda}{lambda}
#' the Riesz loss, see [kme_weights()]. The error sums the squares of \eqn{u_i =
#' a_i (y_i - g_{-i}(x_i))/n + (m(W_i; \hat g) - \mathrm{mean})/N}{u_i = a_i
#' (y_i - g_(-i)(x_i))/n + (m(W_i; g) - mean)/N}, with the residuals of fits
#' without the row (or its cluster), times n/(n - 1), of clusters the squares of
#' their sums; intervals are normal, of G clusters those of t with G - 1 degrees
#' of freedom.
#'
#' The print has for each arm the effective rows \eqn{(\sum a)^2/\sum a^2}{(sum
#' a)^2/sum a^2}, the imbalance, how far the weighted mean of the features is
#' from what it is to be, and before it that of equal weights, and "regression
#' alone", the mean of m(W; g). Of ridges at an end that wins ten more values
#' are tried: 3,162 stands for weights, or a regression, that are constant.
#'
#' \tabular{llll}{
#'   `functional` \tab source \tab averaged over \tab m \cr
#'   `"means"` \tab each arm \tab all rows, or the `target` \tab
#'     \eqn{g_d(x)}{g_d(x)} \cr
#'   `"ate"` \tab \tab \tab differences of these to the `reference` \cr
#'   `"att"` \tab the reference arm \tab the other arm \tab
#'     \eqn{\bar y_1 - g_0(x)}{mean(y_1) - g_0(x)} \cr
#'   `"atc"` \tab the other arm \tab the reference arm \tab
#'     \eqn{g_1(x) - \bar y_0}{g_1(x) - mean(y_0)} \cr
#'   `"derivative"` \tab all rows \tab all rows \tab \eqn{\partial g(d,
#'     x)/\partial d}{d g(d, x)/dd} \cr
#'   `policy` \tab all rows \tab all rows \tab
#'     \eqn{g(\mathrm{policy}(d, x)) - g(d, x)}{g(policy(d, x)) - g(d, x)}
#' }
#' A treatment of levels has a regression for each arm (of ten rows or more),
#' with ridges of its own;
#' one of more than two numbers is one more column of the kernel.
#'
#' @section The kernel: Without a `kernel` four are compared. With standardized
#'   columns \eqn{x_j}{x_j} they are (1) the isotropic Gaussian kernel, whose
#'   bandwidth is twice the median distance; (2) the Gaussian kernel with
#'   learned widths, \eqn{\exp(-\sum_j (x_j - x'_j)^2 / (2
#'   (s/w_j)^2))}{exp(-sum_j (x_j - x'_j)^2/(2 (s/w_j)^2))}, s twice the median
#'   distance of the columns times their weights w; (3) the additive kernel, .1
#'   times the first and .9 times the mean over columns of \eqn{\exp(-(x_j -
#'   x'_j)^2/8)}{exp(-(x_j - x'_j)^2/8)} (in other units a bandwidth of two
#'   standard deviations); (4) the same with the second and the shares
#'   \eqn{w_j^2/\sum w^2}{w_j^2/sum(w^2)}.
#'
#'   The weights are learned (the recursive feature machine of Radhakrishnan and
#'   others, 2024, with the diagonal of its matrix): ridge regressions of the
#'   outcome in each arm, and of the treatment on all rows, have squared
#'   derivatives with the mean \eqn{R_j}{R_j}, weighted by the rows of the arms,
#'   the next weights are \eqn{(R_j/\max R + .05^2)^{1/2}}{sqrt(R_j/max(R) +
#'   .05^2)}, divided by the largest, and so on up to five times, or until the
#'   leave-one-out losses fall by less than 1%. Of a dose the regressions are
#'   those of the outcome on dose and covariates and of the dose on the
#'   covariates; a `target` of rows is one more treatment. `clusters` are left
#'   out as a whole, and `weights` count in all losses.
#'
#'   Taken is the kernel with the smallest leave-one-out loss of the outcome in
#'   the arms, of those whose loss (of learned widths, or the sum of all losses
#'   that they are learned from) is below that of the first by one standard
#'   error of the difference and whose estimates have standard errors of at most
#'   1.5 times those with the first; else the first. The print names it, its
#'   loss in units of the variance of the outcome (within arms), the columns
#'   that matter most, and the estimates with the first beside. `plot(type =
#'   "columns")` has the relevances \eqn{(R_j/\max R)^{1/2}}{ sqrt(R_j/max(R))}:
#'   they say by how much the fits depend on a column, and are no measure of
#'   importance with an error.
#'
#' @section When not to trust it: The warnings are those of [kme_weights()], of
#'   the effective weights, one of class `kernmean_warning_levels` of doses with
#'   fewer than six values, and one of class `kernmean_warning_columns` where
#'   the choice of the kernel moves an estimate by a quarter of its standard
#'   error or more and there are 15 rows (or clusters) or fewer for each column.
#'   Where arms do not overlap the kernel extrapolates, and the warning is the
#'   only sign. Confounders that are not among the covariates are seen by
#'   nothing.
#'
#'   Coverage of 95% intervals in 200 samples of the study
#'   `inst/studies/columns.R`, in which other designs of 300 rows have 90% to
#'   98%: with two of ten columns that matter, curved and by their product, 73%
#'   of 60 rows (warned of in 74% of samples), 90% of 100 and 94% of 300, with
#'   one bandwidth 44%, 42% and 26%. No warning says the following. Where a
#'   direction matters and not some columns (means of 20 correlated ones, 300
#'   rows) it is 87%, with steps of the outcome (500 rows) 86%, with waves of
#'   two of twenty columns (500 rows) 87%, with a binary outcome that depends on
#'   waves and products of eight columns (400 rows) 79%. Heavy-tailed or
#'   strongly skewed covariates with much signal bias the estimate by more than
#'   its error: 80% in the second design of Kang and Schafer (2007) with 300
#'   rows, 65% with 1,000 (40 samples). Take logarithms or normal scores.
#'
#' @inheritSection kme_weights Cost
#' @section Cost of the choice: Up to eight regressions of each response on at
#'   most 1,000 of the rows (of few rows of an arm all; chosen without a seed),
#'   with pivoted factors of at most one column for five rows (96 if that is
#'   more): \eqn{O(nr^2 + r^3)}{O(n r^2 + r^3)} each; and up to three more
#'   fits.
#'
#' @param x Covariates: a numeric matrix or a data frame (factors become 0 and
#'   1, ordered ones the places of their levels); a formula, `outcome ~
#'   treatment`, with the covariates as the second; or a fit of [rkhs_iv()].
#' @param covariates A formula of the covariates, `~ x1 + x2`.
#' @param y The outcome, numeric.
#' @param treat The treatment: a factor, characters, logicals or two numbers, or
#'   numbers.
#' @param kernel A kernel with derivatives where these are asked for; `NULL`
#'   chooses one by left-out losses, see below.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method by name.
#' @param functional See the table; `NULL` is `"ate"`, of numbers
#'   `"derivative"`.
#' @param policy A function of the data frame of the treatment, `treat` or as
#'   the formula calls it, and the covariates (columns of a formula by its
#'   terms, such as `log(x1)`), which returns it with other values.
#' @param target Another population, over whose rows (or embedding, or mixture,
#'   as in [kme_weights()]) `"means"` and `"ate"` are averaged.
#' @param reference The level to which others are compared; by default the
#'   first.
#' @param clusters A cluster for each row, which is left out as a whole and has
#'   its part of the error; with a formula also `~ id`. Of a fit of [rkhs_iv()]
#'   a value for each of its rows; `NULL`: those of the fit.
#' @param weights Positive weights of the rows; with a formula a column of
#'   `data`.
#' @param control A list of `lambda` and `mu` (one number, or one for each arm
#'   by its name), `landmarks` or `features` (a number), `scale` (see [units]),
#'   `learn` (`FALSE` takes the isotropic kernel in place of the choice), and
#'   `folds`: a number of random folds (within arms, of whole clusters) for
#'   the textbook's cross-fitting in place of leave-one-out; the effective
#'   weights are then those of all rows, whose mean of ay is another estimate.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#' @return An object of class `kme_effect`: `coefficients`, `vcov`, `effective`
#'   (the weights a of all rows, a column for each estimate, with estimate
#'   `mean(a y)`), `influence` (u of each row, then of rows of a target),
#'   `plugin` (the mean of m(g) alone), `fits` (by arm: `lambda`, `mu`, `edf`,
#'   `ess`, `imbalance`, `alpha`, leave-one-out `residuals`), `columns` (of a
#'   kernel that was chosen: its name `kernel`, the `losses` of all and by how
#'   many standard errors they are below the first, `relevance`, and
#'   `isotropic`, the estimates and errors with the first). `coef()`, `vcov()`,
#'   `confint()`, `weights()`, [tidy()][tidy.kme] (`conf.int = TRUE`), `plot()`
#'   (intervals; `type = "overlap"`: the effective weights; `"columns"`: the
#'   relevances) and `update()` work on it.
#' @references
#' Chernozhukov, V., Newey, W. K. and Singh, R. (2022). Automatic debiased
#' machine learning of causal and structural effects. *Econometrica* 90(3),
#' 967--1027.
#'
#' Singh, R. (2021). Debiased kernel methods. \doi{10.48550/arXiv.2102.11076}
#'
#' Chen, Q., Syrgkanis, V. and Austern, M. (2022). Debiased machine learning
#' without sample-splitting for stable estimators.
#' \doi{10.48550/arXiv.2206.01825}
#'
#' Kang, J. D. Y. and Schafer, J. L. (2007). Demystifying double robustness.
#' *Statistical Science* 22(4), 523--539.
#'
#' Radhakrishnan, A., Beaglehole, D., Pandit, P. and Belkin, M. (2024).
#' Mechanism for feature learning in neural networks and backpropagation-free
#' machine learning models. *Science* 383(6690), 1461--1467.
#' @seealso [glossary]; [kme_weights()], [rkhs_iv()]; `vignette("effects")`.
#' @examples
#' set.seed(1)
#' n <- 400
#' x1 <- rnorm(n)
#' x2 <- rnorm(n)
#' treat <- rbinom(n, 1, plogis(x1 - x2 / 2))
#' y <- x1 + x2^2 / 2 + treat / 2 + rnorm(n)
#' data <- data.frame(y, treat, x1, x2)
#' fit <- kme_effect(y ~ treat, ~ x1 + x2, data)
#' fit
#' confint(fit)
#' # A dose: the average slope, and what half a unit more would do
#' data$dose <- x1 + rnorm(n)
#' data$z <- sin(data$dose) + x1 + rnorm(n) / 2
#' kme_effect(z ~ dose, ~ x1 + x2, data)
#' more <- function(d) transform(d, dose = dose + 0.5)
#' kme_effect(z ~ dose, ~ x1 + x2, data, policy = more)
#' @export
kme_effect <- function(x, ...) {
  UseMethod("kme_effect")
}

#' @rdname kme_effect
#' @export
kme_effect.default <- function(x, y, treat, kernel = NULL, ...,
                               functional = NULL, policy = NULL, target = NULL,
                               reference = NULL, clusters = NULL,
                               weights = NULL, control = list()) {
  asked <- request(effect_arguments)
  x <- read_points(asked$x)
  n <- nrow(x)
  y <- read_effect_outcome(asked$y, n)
  treat <- read_treatment(asked$treat, n)
  settings <- do.call(effect_settings, asked$control, quote = TRUE)
  weights <- read_row_weights(asked$weights, n)
  clusters <- read_clusters(asked$clusters, n)
  if (!is.null(clusters)) clusters <- as.integer(clusters)
  unit <- left_out_units(clusters, settings$folds, treat, n)
  functional <- if (!is.null(asked$policy)) "policy" else
    asked$functional %||% if (is.factor(treat)) "ate" else "derivative"
  space <- riesz_space(x, c(asked["kernel"], settings),
                       if (is.numeric(treat)) treat, asked$target)
  estimate <- \(space) {
    arms <- if (is.factor(treat)) {
      effect_arms(space, treat, functional, asked$reference, asked$target)
    } else {
      effect_dose(space, treat, functional, asked$policy)
    }
    fits <- Map(\(group, name) {
      fit_arm(space, group, name, weights, y, unit, settings)
    }, arms$groups, names(arms$groups))
    combined <- combine_arms(arms, fits, y, weights)
    c(combined[c("coefficients", "effective", "plugin", "influence")], list(
      vcov = influence_covariance(combined$influence, clusters, combined$block),
      fits = fits, rows = lapply(arms$groups, `[[`, "rows"),
      kernel = space$sample$kernel
    ))
  }
  choice <- effect_choice(space, c(asked[c("kernel", "target")], settings),
                          treat, y, weights, clusters)
  found <- if (is.null(choice)) estimate(space) else
    best_estimate(estimate, space, choice)
  new_fit("kme_effect", with_residuals(c(found, list(
    functional = functional, y = y, treat = treat, names = c("y", "treat"),
    target = asked$target, covs = named_frame(x), n = n,
    s.weights = asked$weights, cluster = clusters,
    naive = naive_effect(y, treat, weights, functional, asked$reference),
    arguments = stored(asked)
  ))))
}

# The estimate of the functional of a group's regression.
fit_arm <- function(space, group, name, weights, y, unit, settings) {
  p <- riesz_problem(space, group, weights, y, unit)
  folds <- !is.null(settings$folds)
  # The rows of a separate target sample are dealt to the folds in turn.
  if (folds && is.null(group$average$rows)) {
    p$target_unit <- rep_len(unique(p$unit), nrow(p$m))
  }
  fit <- riesz_estimate(p, arm_ridge(settings$lambda, name, "lambda"),
                        arm_ridge(settings$mu, name, "mu"), folds)
  # The weights of derivatives and of policies have the mean 0.
  if (!is.na(fit$ess)) {
    warn_overlap(p$omega * fit$effective, fit$imbalance, group$label)
  }
  fit
}

# A value for each row of the data, taken from the field `name` of the fit of
# its arm; NA for rows that are in no arm.
rows_of_fits <- function(x, name) {
  values <- rep(NA_real_, x$n)
  for (g in names(x$fits)) values[x$rows[[g]]] <- x$fits[[g]][[name]]
  values
}

# The fields of a fit with residuals and fitted values. The residual of a row is
# that of the fit of its arm without this row.
with_residuals <- function(fields) {
  fields$residuals <- stats::setNames(rows_of_fits(fields, "residuals"),
                                      names(fields$y))
  fields$fitted.values <- fields$y - fields$residuals
  fields
}

# The settings in `control`, which few users need.
effect_settings <- function(..., lambda = NULL, mu = NULL, folds = NULL,
                            landmarks = NULL, features = NULL, scale = NULL,
                            learn = TRUE) {
  request(effect_controls)
}

# numbers() would drop the names, but these are the names of arms.
arm_ridges <- numbers(open = TRUE)
arm_ridges$as <- identity

effect_controls <- door_table(
  "effect_settings", lambda = maybe(arm_ridges), mu = maybe(arm_ridges),
  folds = maybe(count(2L)), landmarks = maybe(count(2L)),
  features = maybe(count()), scale = maybe(a_scale), learn = flag,
  rules = list(when("landmarks", features = NULL))
)

effect_arguments <- door_table(
  "kme_effect.default", x = anything, y = anything, treat = anything,
  kernel = maybe(a_kernel),
  functional = any_case(maybe(choice("ate", "att", "atc", "means",
                                     "derivative"))),
  policy = maybe(is_a("function", "a function of a data frame")),
  target = anything, reference = anything, clusters = anything,
  weights = anything, control = new_kind("a list", is_plain_list),
  rules = list(
    when("policy", functional = NULL),
    when(\(asked) is_dose(asked$treat), functional = maybe(
      choice("derivative")
    ), target = NULL, reference = NULL,
         reason = "for a numeric treatment (factor() makes levels)"),
    when(\(asked) !is_dose(asked$treat), functional = maybe(
      choice("ate", "att", "atc", "means")
    ), policy = NULL, reason = "for a treatment of levels"),
    when(c(functional = "att"), target = NULL),
    when(c(functional = "atc"), target = NULL)
  ),
  aside = c("x", "y", "treat", "target", "clusters", "weights"),
  units = c("x", "y", "treat", "clusters", "weights"),
  hints = sapply(names(effect_controls$kinds), \(name) {
    paste0("is set by control = list(", name, " = )")
  })
)

# The ridge of the arm `at`. `values` holds one for all arms or one for each, by
# name.
arm_ridge <- function(values, at, name) {
  if (length(values) < 2L) {
    return(values)
  }
  value <- if (is.null(names(values))) NA else values[at]
  if (is.na(value)) {
    stop_input("'control$", name, "' must be one number, or one for each arm ",
               "by its name")
  }
  unname(value)
}

read_effect_outcome <- function(y, n) {
  if (is.logical(y)) y <- y + 0
  if (has_levels(y) || is.character(y)) {
    stop_input("'y' must be numeric, not ", describe(y), "; give 0/1 for a ",
               "binary outcome")
  }
  check_outcome(y, n)
}

# Rows with the same code are left out together: each row has its own code, or
# the code is that of its cluster or of its fold; clusters are never divided.
left_out_units <- function(clusters, folds, treat, n) {
  if (is.null(folds)) {
    return(clusters %||% seq_len(n))
  }
  if (is.null(clusters)) {
    make_folds(n, folds, "drawn", if (is.factor(treat)) treat else rep(1L, n))
  } else {
    cluster_folds(clusters, folds)
  }
}

# The groups whose regressions make the estimates.
#   groups      groups by name, see new_group()
#   contrasts   a row for each estimate, a column for each group
#   plain       rows whose mean outcome is part of each estimate, or NULL
new_arms <- function(groups, contrasts, plain = NULL) {
  list(groups = groups, contrasts = contrasts, plain = plain)
}

effect_arms <- function(space, treat, functional, reference, target) {
  levels <- levels(treat)
  reference <- reference %||% levels[1L]
  reference <- take(as.character(reference), choice(levels), "reference")
  others <- setdiff(levels, reference)
  if (functional %in% c("att", "atc")) {
    if (length(others) > 1L) {
      stop_input("'functional' must be \"ate\" or \"means\" of more than two ",
                 "levels, not \"", functional, "\"")
    }
    focal <- if (functional == "att") others else reference
    groups <- arm_groups(space, treat, functional, focal)
    contrasts <- matrix(if (functional == "att") -1 else 1, dimnames = list(
      paste(others, "-", reference), names(groups)
    ))
    return(new_arms(groups, contrasts, which(treat == focal)))
  }
  contrasts <- diag(length(levels))
  dimnames(contrasts) <- list(levels, levels)
  if (functional == "ate") {
    contrasts <- take_rows(contrasts, others) -
      take_rows(contrasts, rep(reference, length(others)))
    rownames(contrasts) <- paste(others, "-", reference)
  }
  average <- if (!is.null(target)) target_average(space, target)
  new_arms(arm_groups(space, treat, "ate", average = average), contrasts)
}

effect_dose <- function(space, treat, functional, policy) {
  sample <- space$sample
  all <- seq_along(treat)
  average <- if (functional == "policy") {
    z <- scale_points(sample$kernel, policy_points(space, treat, policy))
    new_average(z, without = sample$x, rows = all)
  } else {
    check_slopes(sample$kernel)
    values <- length(unique(treat))
    if (values < fewest_doses) {
      warn_kernmean("'treat' has ", values, " different values only, between ",
                    "which a derivative is a guess; factor() compares levels",
                    kind = "levels")
    }
    new_average(sample$x, along = first_direction(sample$kernel,
                                                  ncol(sample$x)), rows = all)
  }
  new_arms(list(all = new_group(all, average)),
           matrix(1, dimnames = list(functional, "all")))
}

fewest_doses <- 6L

# The rows as a policy changes them, as raw columns.
policy_points <- function(space, treat, policy) {
  before <- data.frame(treat = treat, space$like, check.names = FALSE,
                       row.names = NULL)
  after <- policy(before)
  if (!is.data.frame(after) || nrow(after) != nrow(before) ||
        !identical(dimnames(after), dimnames(before))) {
    stop_input("'policy' must return the data frame with other values, of ",
               "the same rows and columns, in their order, not ",
               describe(after))
  }
  dose <- check_outcome(after[[1L]], nrow(after), "policy(data)$treat", NULL)
  warn_outside(dose, treat, "the treatment")
  cbind(.dose = dose, covariate_columns(after[-1L], space$like, "policy"))
}

# The policy as a function of data in which the treatment has the name `treat`;
# the user's function knows it by its name in the formula.
named_policy <- function(policy, name) {
  if (!is.function(policy)) {
    return(policy)
  }
  \(data) {
    names(data)[1L] <- name
    after <- policy(data)
    if (is.data.frame(after)) {
      names(after)[names(after) == name] <- "treat"
    }
    after
  }
}

# --- Estimates and their errors ----------------------------------------------

# Each estimate as a linear combination of the fits of arms. A list of
# coefficients, the estimates; plugin, the estimates by the regressions alone;
# effective, the n x estimates matrix of weights of outcomes with estimate =
# mean(effective y); influence, a row for each of the n rows and then of the
# rows of a target, a column for each estimate; and block, codes of the
# independent samples that these rows are of.
combine_arms <- function(arms, fits, y, weights) {
  n <- length(y)
  groups <- arms$groups
  contrasts <- arms$contrasts
  # All groups have the same target, so that the first one tells whether the
  # target is a sample of its own.
  outside <- if (!is.null(groups[[1L]]$average$rows)) 0L else
    length(fits[[1L]]$functional)
  plain <- arms$plain
  if (length(plain)) {
    share <- weights[plain] / sum(weights[plain])
    middle <- sum(share * y[plain])
    groups$plain <- new_group(plain, new_average())
    fits$plain <- list(estimate = middle, plugin = middle, effective = 1,
                       source = share * (y[plain] - middle))
    contrasts <- cbind(contrasts, -contrasts)
  }
  effective <- matrix(0, n, length(fits))
  influence <- matrix(0, n + outside, length(fits))
  for (g in seq_along(fits)) {
    rows <- groups[[g]]$rows
    effective[rows, g] <- n * weights[rows] / sum(weights[rows]) *
      fits[[g]]$effective
    influence[rows, g] <- fits[[g]]$source
    at <- groups[[g]]$average$rows
    at <- at %||% (n + seq_len(outside))
    influence[at, g] <- influence[at, g] + fits[[g]]$functional
  }
  estimates <- \(name) drop(contrasts %*% vapply(fits, `[[`, 0, name))
  block <- rep(1:2, c(n, outside))
  block[plain] <- 2L
  list(coefficients = estimates("estimate"), plugin = estimates("plugin"),
       effective = effective %*% t(contrasts),
       influence = influence %*% t(contrasts), block = block)
}

# The covariance of estimates, U'U n/(n - 1) summed over independent samples by
# the codes `block`. U holds the influence of rows, summed within clusters; the
# rows of a target come after those with a cluster and are in no cluster.
# Samples that share a cluster are one sample.
influence_covariance <- function(influence, clusters, block) {
  if (!is.null(clusters)) {
    rows <- seq_len(nrow(influence))
    unit <- replace(rows + max(rows), seq_along(clusters), clusters)
    influence <- rowsum(influence, unit)
    ends <- unique(data.frame(unit, block))
    block <- if (!anyDuplicated(ends$unit)) ends$block[order(ends$unit)] else
      rep(1L, nrow(influence))
  }
  size <- tabulate(block)[block]
  covariance <- crossprod(influence * sqrt(size / pmax(size - 1, 1)))
  v <- diag(covariance)
  if (any(v == Inf | v < .Machine$double.xmin & colSums(influence != 0))) {
    warn_kernmean("the variance over- or underflows and is NA; rescale 'y'")
    covariance[] <- NA
  }
  covariance
}

# The estimates without covariates: a slope, or differences of means.
naive_effect <- function(y, treat, weights, functional, reference) {
  if (is.numeric(treat)) {
    return(stats::lm.wfit(cbind(1, treat), y, weights)$coefficients[[2L]])
  }
  means <- tapply(y * weights, treat, sum) / tapply(weights, treat, sum)
  reference <- c(reference, levels(treat))[1L]
  if (functional == "means") means else
    means[names(means) != reference] - means[[reference]]
}

#' @rdname kme_effect
#' @export
kme_effect.formula <- function(x, covariates, data = NULL, subset, na.action,
                               ..., policy = NULL, target = NULL,
                               clusters = NULL, weights = NULL) {
  check_given(x)
  if (missing(covariates) || !inherits(covariates, "formula") ||
        length(x) != 3L || length(covariates) != 2L ||
        !identical(attr(formula_terms(x[[3L]], data, environment(x)),
                        "order"), 1L)) {
    stop_input("the outcome and one treatment must come first, then the ",
               "covariates, as in kme_effect(y ~ treat, ~ x1 + x2, data)")
  }
  refuse_bar(x)
  refuse_bar(covariates)
  read <- read_covariates(
    c(y = "value", treat = "value", x = "terms"), c("clusters", "weights"),
    target, list(y = x[[2L]], treat = x[[3L]], x = covariates[[2L]]), x
  )
  fit <- kme_effect.default(
    read$x, stats::setNames(read$y, read$rows), read$treat, ...,
    policy = named_policy(policy, read$names$treat), target = read$target,
    clusters = read$clusters, weights = read$weights
  )
  fit$names <- c(read$names$y, read$names$treat)
  keep_layout(fit, read)
}

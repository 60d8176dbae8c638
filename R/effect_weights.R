# Weights that make the embedding of a sample that of a target: kme_weights().

#' Weights that match embeddings
#'
#' Weights with which the embedding of a sample is that of a target, by one
#' ridge regression: the other arms of a treatment (average effect, effect on
#' the treated), a target population, or independence of a numeric treatment.
#'
#' With the features \eqn{\phi}{phi} of a kernel, source rows \eqn{x_1, \ldots,
#' x_n} (an arm, or all rows) and the target's embedding \eqn{\mu_t}{mu_t}, the
#' weights \eqn{a_i = \alpha(x_i)}{a_i = alpha(x_i)} minimize \deqn{\left\|
#' \frac{1}{n} \sum_i a_i \phi(x_i) - \mu_t \right\|^2 + \frac{\lambda}{n}
#' \sum_i a_i^2,}{|mean_i a_i phi(x_i) - mu_t|^2 + lambda mean_i a_i^2,} the
#' squared maximum mean discrepancy plus the price of effective rows
#' \eqn{(\sum a)^2/\sum a^2}{(sum a)^2/sum a^2}, among weights with mean 1 and,
#' with `means = TRUE`, with exactly the target's mean of each covariate.
#' \eqn{\alpha}{alpha} is the Riesz representer of the mean over the target, a
#' function in the space of the kernel, so that `predict()` has weights of new
#' rows.
#' \describe{
#'   \item{linear weights, `positive = FALSE`}{\eqn{\alpha = h + f}{alpha = h +
#'     f}, \eqn{f = (S + \lambda I)^{-1} b}{f = (S + lambda I)^(-1) b}: S the
#'     covariance of the features and b the target's mean of them less the
#'     source's, both after regression on the columns without penalty (1, and
#'     the covariates). Some may be negative.}
#'   \item{positive weights}{\eqn{a_i = (h + f)(x_i)_+}{a_i = max(0, (h +
#'     f)(x_i))}, the solution over \eqn{a \ge 0}{a >= 0}, by Newton steps, each
#'     the ridge solve on the rows whose weights are positive.}
#' }
#' \eqn{\lambda}{lambda} (in units of the mean of k(x, x)) has the smallest
#' leave-one-out Riesz loss \eqn{\mathrm{mean}_i\, \alpha_{-i}(x_i)^2 - 2\,
#' \mathrm{mean}_j\, \alpha_{-j}(x^t_j)}{mean_i alpha_(-i)(x_i)^2 - 2 mean_j
#' alpha_(-j)(x_j)} of the linear weights, exact from one eigendecomposition, on
#' 29 values from \eqn{10^{-6}}{10^-6} to 10 and ten more at an end that wins.
#' Outcomes have no part in it.
#'
#' With a treatment of levels, `"ate"` weights each arm to look like all rows;
#' `"att"` and `"atc"` give the rows of one arm (the second level, the first, or
#' `focal`) weight 1 and weight the others to look like it. Weights have mean 1
#' in each weighted arm. A numeric treatment d with more than two values has
#' weights to the law of independent d and x with the margins that there are
#' (its correlations with the covariates are then 0; what is left of nonlinear
#' dependence is better removed by [kme_effect()]).
#'
#' The weights are for `lm(y ~ treat, weights = )`, for the argument `weights`
#' of [kme()], and for packages that take `weights`, `treat` and `covs`, such as
#' cobalt (`bal.tab(w)`).
#'
#' @section When not to trust them: A warning of class
#'   `kernmean_warning_overlap` comes where a group has fewer than 20 effective
#'   rows (or half of fewer than 40) or 10% of its rows, one row more than 10%
#'   of the weight, less than half of the imbalance goes and more is left than
#'   chance explains, or all rows of an arm have the same value of a covariate;
#'   of a policy, where more than 5% of its rows are beyond the data. Where the
#'   target has rows unlike any of the source, kernels extrapolate to 0: weights
#'   look harmless and say nothing of these rows. Of skewed covariates (a
#'   warning of class `kernmean_warning_skewed`) take logarithms or normal
#'   scores. Nothing here sees confounders that are not among the covariates.
#'
#' @section Cost: One exact factor of r columns (r is far below n for smooth
#'   kernels) for each weighted group: \eqn{O(nr^2)}{O(n r^2)} time for factor
#'   and moments, \eqn{O(r^3)}{O(r^3)} for the eigendecomposition,
#'   \eqn{O(nr)}{O(n r)} for each \eqn{\lambda}{lambda}; \eqn{8(n + N)r}{8 (n +
#'   N) r} bytes for N target rows. With m landmarks r is at most m. Positive
#'   weights take 3 to 10 solves more.
#'
#' @param x Covariates of the rows that are weighted: a numeric matrix or a data
#'   frame (factors become 0 and 1, ordered ones the places of their levels); or
#'   a formula, `treat ~ x1 + x2`, or `~ x1 + x2` with a `target`.
#' @param target The target: rows with the same columns, a fit of [kme()] (whose
#'   kernel is taken), or a Gaussian mixture, `list(weights, means,
#'   covariances)`. The mass of an embedding is divided by, if it is not 1.
#' @param treat The treatment: a factor, characters, logicals or two numbers, or
#'   numbers.
#' @param kernel A kernel; `NULL` is [kernel_rbf()] with twice the median
#'   distance of the rows, pooled with those of the target, in columns divided
#'   by their standard deviations.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method by name.
#' @param estimand `"ate"`, `"att"` or `"atc"`.
#' @param focal The level that the others are to look like, for `"att"` and
#'   `"atc"`.
#' @param means Match the means of the covariates exactly? (Of a numeric
#'   treatment d: of d, x and dx.)
#' @param positive Positive weights?
#' @param lambda A positive number; `NULL` by the leave-one-out loss.
#' @param weights Positive weights of the rows, such as those of a survey; with
#'   a formula a column of `data`.
#' @param landmarks,features A number of landmarks, drawn among the rows of each
#'   group, or of random Fourier features, in place of exact features.
#' @param scale The units of the columns, see [units]; `NULL` is `TRUE` where no
#'   kernel is given and `FALSE` where one is.
#' @param formula,data,subset,na.action As in [stats::model.frame()]; missing
#'   values are an error by default.
#' @param object,newdata A result; new rows, a data frame with the treatment
#'   where there is one.
#' @return An object of class `kme_weights`: `weights` (of all rows), `treat`,
#'   `covs`, `estimand` (in capitals), `s.weights` and `focal`, by the names
#'   that cobalt looks for; `fits` (by group: `lambda`, `ess`, the effective
#'   rows, and `imbalance`, the distance of the embeddings after and before, and
#'   what samples of this size leave by chance), `balance` (a row for each group
#'   and covariate: means, differences in standard deviations of the target
#'   before and after, ratios of variances; of doses their correlations),
#'   `kernel`. `weights()` has the weights,
#'   `summary()` and [tidy()][tidy.kme] the balance, `plot()` the differences
#'   before and after, with `type = "weights"` their histogram.
#' @references
#' Singh, R. (2021). Debiased kernel methods. \doi{10.48550/arXiv.2102.11076}
#'
#' Kallus, N. (2020). Generalized optimal matching methods for causal inference.
#' *Journal of Machine Learning Research* 21(62), 1--54.
#' @seealso [glossary]; [kme_effect()]; `vignette("effects")`.
#' @examples
#' set.seed(1)
#' n <- 400
#' x1 <- rnorm(n)
#' x2 <- rnorm(n)
#' treat <- rbinom(n, 1, plogis(x1 - x2 / 2))
#' y <- x1 + x2^2 / 2 + treat / 2 + rnorm(n)
#' data <- data.frame(y, treat, x1, x2)
#' w <- kme_weights(treat ~ x1 + x2, data)
#' w
#' plot(w)
#' coef(lm(y ~ treat, data, weights = weights(w)))
#' # Another population
#' other <- data.frame(x1 = rnorm(200, 0.5), x2 = rnorm(200, 0, 0.7))
#' kme_weights(~ x1 + x2, data, target = other)
#' @export
kme_weights <- function(x, ...) {
  UseMethod("kme_weights")
}

#' @rdname kme_weights
#' @export
kme_weights.default <- function(x, target = NULL, treat = NULL, kernel = NULL,
                                ..., estimand = c("ate", "att", "atc"),
                                focal = NULL, means = TRUE, positive = TRUE,
                                lambda = NULL, weights = NULL, landmarks = NULL,
                                features = NULL, scale = NULL) {
  asked <- request(weights_arguments)
  if (is.null(asked$target) == is.null(asked$treat)) {
    stop_input("one of 'target' and 'treat' must be given, ",
               if (is.null(target)) "not none" else "not both")
  }
  x <- read_points(asked$x)
  n <- nrow(x)
  treat <- if (!is.null(asked$treat)) read_treatment(asked$treat, n)
  space <- riesz_space(x, asked, if (is.numeric(treat)) treat, asked$target)
  weights <- read_row_weights(asked$weights, n)
  parts <- if (is.factor(treat)) {
    arm_parts(space, treat, asked$estimand, asked$focal)
  } else {
    list(all = list(rows = seq_len(n), of = if (is.null(treat)) {
      target_functional(space, asked$target)
    } else {
      independent_law(space, weights)
    }))
  }
  fits <- lapply(parts, \(part) {
    p <- riesz_problem(space, part$rows, part$of, weights)
    fit <- riesz_weights(p, asked$lambda, asked$positive)
    warn_overlap(p$omega * fit$weights, fit$imbalance, part$label)
    c(fit, kept_map(p$map))
  })
  w <- rep(1, n)
  for (g in names(parts)) w[parts[[g]]$rows] <- fits[[g]]$weights
  new_fit("kme_weights", list(
    weights = stats::setNames(w, rownames(x)), treat = treat, names = "treat",
    covs = named_frame(x), estimand = if (is.factor(treat)) {
      toupper(asked$estimand)
    }, s.weights = if (!is.null(asked$weights)) weights,
    focal = attr(parts, "focal"), n = n, fits = fits,
    rows = lapply(parts, `[[`, "rows"), positive = asked$positive,
    kernel = space$sample$kernel, space = space[c("like", "means", "dose")],
    target = if (is.null(treat)) target,
    balance = balance_table(space, parts, w, weights),
    arguments = stored(asked)
  ))
}

# A choice that may be written in capitals.
any_case <- function(kind) {
  \(value, name) take(if (is.character(value)) tolower(value) else value, kind,
                      name)
}

weights_arguments <- door_table(
  "kme_weights.default", x = anything, target = anything, treat = anything,
  kernel = maybe(a_kernel), estimand = any_case(choice("ate", "att", "atc")),
  focal = anything, means = flag, positive = flag,
  lambda = maybe(number(open = TRUE)), weights = anything,
  landmarks = maybe(count(2L)), features = maybe(count()),
  scale = maybe(a_scale), aside = c("x", "target", "treat", "weights"),
  units = c("x", "treat", "weights"),
  rules = list(when("landmarks", features = NULL),
               when("target", estimand = "ate"),
               when(\(asked) is_dose(asked$treat), estimand = "ate",
                    reason = "for a numeric treatment"),
               when(c(estimand = "ate"), focal = NULL))
)

#' @rdname kme_weights
#' @export
kme_weights.formula <- function(formula, data = NULL, target = NULL, subset,
                                na.action, ..., weights = NULL) {
  check_formula(formula, data, ...names(), c("x", "treat"))
  check_dot(formula, "covariates are added by '+'")
  read <- read_covariates(match.call(expand.dots = FALSE), formula, data,
                          target, missing(na.action), parent.frame())
  fit <- kme_weights.default(read$x, read$target, read$left, ...,
                             weights = read$frame[["(weights)"]])
  replace(fit, names(read$kept), read$kept)
}

# What a formula of covariates says: list(x; left: the response, if there is
# one; frame; target: in its terms; kept: what a fit keeps of it). `treat`: a
# treatment that is not the response, an expression.
read_covariates <- function(call, formula, data, target, no_action, home,
                            treat = NULL) {
  call <- name_columns(call)
  call$treat <- treat
  call <- call[names(call) %in% c("", "formula", "subset", "na.action", "treat",
                                  "clusters", "weights")]
  # A dot leaves out what has another use.
  others <- unlist(lapply(list(call$treat, call$clusters, call$weights),
                          all.vars))
  frame <- formula_frame(
    call, formula_terms(formula, data_without(data, others)), data, no_action,
    home
  )
  terms <- attr(frame, "terms")
  attr(terms, "nominal") <- usual_nominal
  names <- c(names(frame)[attr(terms, "response")],
             if (!is.null(treat)) deparse1(treat))
  factors <- attr(terms, "factors")
  twice <- intersect(names, rownames(factors)[rowSums(as.matrix(factors)) > 0])
  if (length(twice)) {
    stop_input("'", twice[1L], "' must not be a covariate, too")
  }
  x <- formula_matrix(terms, frame)
  left <- if (attr(terms, "response") > 0L) frame[[1L]]
  # Other data have the treatment, but no outcome.
  if (!is.null(treat)) terms <- stats::delete.response(terms)
  if (is.data.frame(target)) target <- read_terms(terms, target, "target")
  list(x = x, left = left, frame = frame, target = target, kept = list(
    terms = keep_constants(terms, data), na.action = attr(frame, "na.action"),
    names = names
  ))
}

# A factor for arms, numbers for doses.
read_treatment <- function(treat, n) {
  treat <- check_each(treat, n, "treat", "rows")
  if (is_dose(treat)) {
    return(check_outcome(unname(treat), n, "treat"))
  }
  treat <- check_factor(treat, "treat")
  rows <- tabulate(treat, nlevels(treat))
  if (nlevels(treat) < 2L || min(rows) < fewest_rows) {
    stop_input("'treat' must have at least 2 levels with ", fewest_rows,
               " rows each, not ", shorten(paste0(rows, " in '", levels(treat),
                                                  "'")))
  }
  treat
}

is_dose <- \(treat) is.numeric(treat) && length(unique(treat)) > 2L

fewest_rows <- 10L

# --- Spaces and their functionals --------------------------------------------

# The space of a request: points of the covariates x, the numbers `dose` before
# them; the bandwidth of rows of a target, too.
riesz_space <- function(x, asked, dose = NULL, target = NULL) {
  columns <- covariate_columns(x)
  warn_skewed(columns)
  kernel <- asked$kernel
  pool <- NULL
  if (inherits(target, "kme")) {
    kernel <- kernel %||% target$kernel
  } else if (!is.null(target) && !is_mixture(target)) {
    pool <- covariate_columns(target, x, "target")
  }
  sample <- riesz_sample(cbind(.dose = dose, columns), kernel, asked$scale,
                         pool)
  list(
    sample = sample, like = x, columns = columns, pool = pool,
    dose = !is.null(dose), means = isTRUE(asked$means),
    approximation = asked[c("landmarks", "features")]
  )
}

# The rows of arms and what each is to look like, `of`. attr "focal": the arm
# that the others are to look like, which has weights 1.
arm_parts <- function(space, treat, estimand, focal = NULL, of = NULL) {
  levels <- levels(treat)
  if (is.null(focal)) {
    if (estimand != "ate" && length(levels) > 2L) {
      stop_input("'focal' must be given for \"", estimand, "\" of more than 2 ",
                 "levels: one of ", quoted(levels))
    }
    focal <- levels[if (estimand == "att") 2L else 1L]
  } else {
    focal <- take(as.character(focal), choice(levels), "focal")
  }
  target <- if (estimand == "ate") seq_along(treat) else which(treat == focal)
  of <- of %||% list(z = take_rows(space$sample$x, target), rows = target)
  sources <- if (estimand == "ate") levels else setdiff(levels, focal)
  structure(lapply(stats::setNames(nm = sources), \(level) {
    rows <- which(treat == level)
    warn_alike(space$columns, rows, target, level)
    list(rows = rows, of = of, label = level)
  }), focal = if (estimand != "ate") focal)
}

# A target population: rows, an embedding or a mixture.
target_functional <- function(space, target) {
  if (!is.null(space$pool)) {
    return(list(z = scale_points(space$sample$kernel, space$pool)))
  }
  kernel <- space$sample$kernel
  found <- check_target(check_target_kind(target), space$sample)
  parts <- target_parts(found$embedding, kernel)
  mass <- sum(vapply(parts, part_mass, 0))
  if (abs(mass - 1) > 1e-8) {
    message("the target, with the mass ", format_number(mass), ", is divided ",
            "by it")
  }
  hidden <- vapply(parts, \(part) {
    !is.null(part$sample) && !is.null(part$sample$sketch)
  }, NA)
  if (space$means && any(hidden)) {
    stop_input("'means' must be FALSE for a target whose points are not known")
  }
  center <- if (!any(hidden)) Reduce(`+`, lapply(parts, part_mean)) / mass
  list(at = found$at / mass, center = center,
       mean = c(1, if (space$means) center))
}

part_mass <- \(part) {
  if (is.null(part$mixture)) sum(part$weights) else
    part$weights * sum(part$mixture$weights)
}

part_mean <- function(part) {
  if (is.null(part$mixture)) {
    return(drop(cross(part$sample$x, as.matrix(part$weights))))
  }
  part$weights *
    drop(cross(part$mixture$means, as.matrix(part$mixture$weights)))
}

# The law of independent doses and covariates, with the margins that there are.
independent_law <- function(space, weights) {
  sample <- space$sample
  if (!kernel_has(sample$kernel, "Gaussian form")) {
    stop_input("'kernel' must be kernel_rbf() for weights of a numeric ",
               "treatment, not the ", format_kernel(sample$kernel))
  }
  z <- sample$x
  theta <- rep_len(sample$kernel$bandwidth, ncol(z))
  part <- \(j) {
    fold_apply(kernel_rbf(1), take_columns(z, j) / rep(theta[j], each =
                                                           nrow(z)),
               v = as.matrix(weights / nrow(z)))
  }
  middle <- drop(cross(z, as.matrix(weights))) / nrow(z)
  list(at = as.vector(part(1L)) * as.vector(part(-1L)),
       mean = c(1, if (space$means) c(middle, middle[1L] * middle[-1L])))
}

# The Riesz regression of some rows of the space, the source, and a functional.
# unit: codes of what is left out together, by default each row.
riesz_problem <- function(space, source, functional, weights,
                          y = numeric(length(weights)),
                          unit = seq_along(weights)) {
  map <- space_map(space, source)
  of <- functional_rows(space, map, source, functional)
  rows <- functional$rows
  even <- \(w) w / mean(w)
  h <- free_columns(space, map$sample$x)
  if (space$means) {
    names <- colnames(map$sample$x)
    colnames(h) <- c("", names, if (space$dose) paste0(names[-1L], ":treat"))
  }
  if (length(unique(unit[source])) < 2L) {
    stop_input("'clusters' must leave rows of each arm, and so must folds of ",
               "them, when any is left out")
  }
  # Rows of another sample are left out one by one.
  others <- -seq_len(nrow(of$m))
  new_riesz(
    map_features(map, seq_along(source)), h, of$m, of$m_h,
    even(weights[source]),
    if (is.null(rows)) rep(1, nrow(of$m)) else even(weights[rows]),
    unit[source], if (is.null(rows)) others else unit[rows], y[source],
    !is.null(functional$at), mean(sample_diagonal(map$sample)), map
  )
}

# What is kept of a map for new points.
kept_map <- function(map) {
  support <- sample_take(map$sample, if (length(map$centers)) map$centers else
    1L)
  small <- small_map(map)
  if (length(map$centers)) small$centers <- seq_along(map$centers)
  list(map = small, support = support)
}

# --- Overlap -----------------------------------------------------------------

# Columns that are constant in an arm and not in what it is to look like.
warn_alike <- function(columns, rows, target, level) {
  alike <- is_constant(take_rows(columns, rows)) &
    !is_constant(take_rows(columns, union(rows, target)))
  if (any(alike)) {
    warn_kernmean("all rows of '", level, "' have the same ",
                  quoted(colnames(columns)[alike]), ", and what is said of ",
                  "others is extrapolated", kind = "overlap")
  }
}

# Rows of a policy or a target beyond the data.
warn_outside <- function(after, before, what, name = "policy") {
  ends <- range(before)
  outside <- mean(after < ends[1L] | after > ends[2L])
  if (outside > most_outside) {
    warn_kernmean(format_number(100 * outside, 2L), "% of the rows of '", name,
                  "' have values of ", what, " beyond those of the data, and ",
                  "what is said of these is extrapolated", kind = "overlap")
  }
}

most_outside <- 0.05

# Signs, in weights of rows, that the source has none where the target is.
warn_overlap <- function(w, left, label) {
  n <- length(w)
  ess <- effective_rows(w)
  share <- max(abs(w)) / sum(abs(w))
  faults <- c(
    if (ess < max(0.1 * n, min(20, n / 2))) {
      paste0(format_number(ess, 3L), " effective rows of ", n)
    },
    if (share > max(0.1, 2 / n)) {
      paste0("one row has ", format_number(100 * share, 2L), "% of the weight")
    },
    if (left[["after"]] > left[["before"]] / 2 &&
          left[["after"]] > 2 * left[["noise"]]) {
      paste0("the imbalance falls from ", format_number(left[["before"]], 2L),
             " to ", format_number(left[["after"]], 2L), " only")
    }
  )
  if (length(faults)) {
    warn_kernmean(
      "the rows", if (!is.null(label)) paste0(" of '", label, "'"),
      " overlap little with the target (", paste(faults, collapse = "; "),
      "), so that what is said of it is extrapolated", kind = "overlap"
    )
  }
}

# --- Balance -----------------------------------------------------------------

# The means of columns of rows with weights, and their covariances.
weighted_moments <- function(x, w) {
  w <- w / sum(w)
  mean <- drop(crossprod(w, x))
  x <- x - rep(mean, each = nrow(x))
  list(mean = mean, covariance = crossprod(x, w * x))
}

# Covariates of each group with weights, without, and of its target, a row each:
# differences in standard deviations of the target (or of the source, where the
# target has no rows); of doses their correlations with each covariate.
balance_table <- function(space, parts, w, weights) {
  raw <- space$columns
  if (space$dose) {
    both <- cbind(sample_raw(space$sample)[, 1L], raw)
    correlation <- \(w) {
      found <- weighted_moments(both, w)$covariance
      (found[1L, ] / sqrt(found[1L] * diag(found)))[-1L]
    }
    return(data.frame(group = "all", column = colnames(raw),
                      before = correlation(weights),
                      after = correlation(weights * w), row.names = NULL))
  }
  moments <- \(x, w) {
    found <- weighted_moments(x, w)
    list(mean = found$mean, variance = diag(found$covariance))
  }
  varies <- \(at) ifelse(at$variance > 1e-24 * at$mean^2, at$variance, NA)
  tables <- Map(\(part, group) {
    of <- part$of
    x <- take_rows(raw, part$rows)
    plain <- moments(x, weights[part$rows])
    now <- moments(x, (weights * w)[part$rows])
    target <- if (!is.null(of$rows)) {
      moments(take_rows(raw, of$rows), weights[of$rows])
    } else if (!is.null(space$pool)) {
      moments(space$pool, rep(1, nrow(space$pool)))
    } else {
      list(mean = if (is.null(of$center)) NA else drop(
        unscale_points(space$sample$kernel, t(of$center))
      ), variance = NA)
    }
    variance <- varies(target)
    unit <- sqrt(ifelse(is.na(variance), varies(plain), variance))
    unit[is.na(unit)] <- 1
    data.frame(
      group = group, column = colnames(raw), target = target$mean,
      mean_before = plain$mean, mean_after = now$mean,
      before = (plain$mean - target$mean) / unit,
      after = (now$mean - target$mean) / unit,
      ratio_before = plain$variance / variance,
      ratio_after = now$variance / variance, row.names = NULL
    )
  }, parts, names(parts))
  do.call(rbind, unname(tables))
}

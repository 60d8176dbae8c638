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
#' \eqn{\lambda}{lambda} (in units of the mean of k(x, x)) has the smallest (of
#' several minima see [kme_effect()]) leave-one-out Riesz loss
#' \eqn{\mathrm{mean}_i\, \alpha_{-i}(x_i)^2 - 2\, \mathrm{mean}_j\,
#' \alpha_{-j}(x^t_j)}{mean_i alpha_(-i)(x_i)^2 - 2 mean_j alpha_(-j)(x_j)} of
#' the linear weights, exact from one eigendecomposition, on 29 values from
#' \eqn{10^{-6}}{10^-6} to 10 and ten more at an end that wins. Outcomes have no
#' part in it.
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
#'   kernels; beyond 1,000 rows up to a share of the trace, a hundredth of the
#'   smallest \eqn{\lambda}{lambda} that is tried) for each weighted group:
#'   \eqn{O(nr^2)}{O(n r^2)} time for factor and moments,
#'   \eqn{O(r^3)}{O(r^3)} for the eigendecomposition, \eqn{O(nr)}{O(n r)} for
#'   each \eqn{\lambda}{lambda}; \eqn{8(n + N)r}{8 (n + N) r} bytes for N
#'   target rows. With m landmarks r is at most m. Positive weights take 3 to
#'   10 solves more.
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
#'   by their standard deviations. Widths learned from the treatment (or from
#'   which rows are the target's) do not pay in general: the root mean squared
#'   error is 1.04 times as large in eight designs of binary outcomes (geometric
#'   mean; at most 1.18), the squared error of predictions for a target 1.09
#'   times (standard error 0.04) in 27 draws of 401(k) data, though with ten
#'   columns of which only one or two matter the root mean squared error is 0.73
#'   or 0.64 times as large.
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
  groups <- if (is.factor(treat)) {
    arm_groups(space, treat, asked$estimand, asked$focal)
  } else {
    list(all = new_group(seq_len(n), if (is.null(treat)) {
      target_average(space, asked$target)
    } else {
      independent_law(space, weights)
    }))
  }
  fits <- lapply(groups, \(group) {
    p <- riesz_problem(space, group, weights)
    fit <- riesz_weights(p, asked$lambda, asked$positive)
    warn_overlap(p$omega * fit$weights, fit$imbalance, group$label)
    c(fit, kept_map(p$map))
  })
  new_kme_weights(x, treat, space, weights, groups, fits, asked)
}

# A group: its rows (an arm, or all rows), the average that their weighted mean
# is to match, and the label by which warnings name it.
new_group <- function(rows, average, label = NULL) {
  list(rows = rows, average = average, label = label)
}

# A fit from the solutions of its groups.
new_kme_weights <- function(x, treat, space, weights, groups, fits, asked) {
  w <- rep(1, nrow(x))
  for (g in names(groups)) w[groups[[g]]$rows] <- fits[[g]]$weights
  new_fit("kme_weights", list(
    weights = stats::setNames(w, rownames(x)), treat = treat, names = "treat",
    covs = named_frame(x), estimand = if (is.factor(treat)) {
      toupper(asked$estimand)
    }, s.weights = if (!is.null(asked$weights)) weights,
    focal = attr(groups, "focal"), n = nrow(x), fits = fits,
    rows = lapply(groups, `[[`, "rows"), positive = asked$positive,
    kernel = space$sample$kernel, space = space[c("like", "means", "dose")],
    target = if (is.null(treat)) asked$target,
    balance = balance_table(space, groups, w, weights),
    arguments = stored(asked)
  ))
}

# The kind of a choice whose values may also be written in capitals.
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
  read <- read_covariates(c(treat = "value", x = "terms"), "weights", target)
  fit <- kme_weights.default(read$x, read$target, read$treat, ...,
                             weights = read$weights)
  fit$names <- as.character(read$names$treat)
  keep_layout(fit, read)
}

# Reads a formula of covariates for the method that calls this function, and the
# `target` by the same terms; for the other arguments see read_sides().
read_covariates <- function(sides, units, target, parts = NULL,
                            formula = NULL) {
  read <- read_sides(sides, units, parts = parts, formula = formula,
                     frame = parent.frame())
  twice <- intersect(c(read$names$y, read$names$treat), read$names$x)
  if (length(twice)) {
    stop_input("'", twice[1L], "' must not be a covariate, too")
  }
  read$target <- if (is.data.frame(target)) {
    read_again(read$layout, target, "x", "target")
  } else {
    target
  }
  read
}

# The treatment as a factor of arms, or as a vector of numbers if it is a dose.
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

# The space of a request. Its points are the covariates x, and before them a
# numeric treatment `dose`, if there is one. If the bandwidth is chosen, the
# rows of a target are used for it, too.
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
  new_space(sample, x, columns, pool, !is.null(dose), isTRUE(asked$means),
            c(asked[c("landmarks", "features")], least = min(
              penalty_grid, unlist(asked[c("lambda", "mu")])
            )))
}

# The arms that are weighted, as groups by name. The attribute "focal" names the
# arm that the other arms are to resemble; its rows have weight 1.
arm_groups <- function(space, treat, estimand, focal = NULL, average = NULL) {
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
  average <- average %||% new_average(take_rows(space$sample$x, target),
                                      rows = target)
  sources <- if (estimand == "ate") levels else setdiff(levels, focal)
  structure(lapply(stats::setNames(nm = sources), \(level) {
    rows <- which(treat == level)
    warn_alike(space$columns, rows, target, level)
    new_group(rows, average, level)
  }), focal = if (estimand != "ate") focal)
}

# The average over a target population: rows, an embedding or a mixture.
target_average <- function(space, target) {
  if (!is.null(space$pool)) {
    return(new_average(scale_points(space$sample$kernel, space$pool)))
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
  new_average(at = found$at / mass, mean = c(1, if (space$means) center),
              center = center)
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

# The average over a distribution in which dose and covariates are independent
# and have the margins of the rows.
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
  new_average(
    at = as.vector(part(1L)) * as.vector(part(-1L)),
    mean = c(1, if (space$means) c(middle, middle[1L] * middle[-1L]))
  )
}

# The Riesz regression of a group of rows. unit: codes of the rows that are left
# out together, by default each row by itself.
riesz_problem <- function(space, group, weights, y = numeric(length(weights)),
                          unit = seq_along(weights)) {
  source <- group$rows
  rows <- group$average$rows
  map <- space_map(space, source)
  f <- map_features(map, seq_along(source))
  of <- functional_rows(space, map, source, group$average, f)
  even <- \(w) w / mean(w)
  h <- free_columns(space, map$sample$x)
  if (space$means) {
    labels <- colnames(map$sample$x)
    colnames(h) <- c("", labels, if (space$dose) paste0(labels[-1L], ":treat"))
  }
  if (length(unique(unit[source])) < 2L) {
    stop_input("'clusters' must leave rows of each arm, and so must folds of ",
               "them, when any is left out")
  }
  # Rows of another sample are left out one by one.
  others <- -seq_len(nrow(of$m))
  new_riesz(
    f, h, of$m, of$m_h, even(weights[source]),
    if (is.null(rows)) rep(1, nrow(of$m)) else even(weights[rows]),
    unit[source], if (is.null(rows)) others else unit[rows], y[source],
    !is.null(group$average$at), mean(sample_diagonal(map$sample)), map,
    of$own
  )
}

# The parts of a map that are needed for features of new points, and the sample
# of the points from which the features are made.
kept_map <- function(map) {
  support <- sample_take(map$sample, if (length(map$centers)) map$centers else
    1L)
  small <- small_map(map)
  if (length(map$centers)) small$centers <- seq_along(map$centers)
  list(map = small, support = support)
}

# --- Overlap -----------------------------------------------------------------

# Warns if columns are constant in an arm and not in its target.
warn_alike <- function(columns, rows, target, level) {
  alike <- is_constant(take_rows(columns, rows)) &
    !is_constant(take_rows(columns, union(rows, target)))
  if (any(alike)) {
    warn_kernmean("all rows of '", level, "' have the same ",
                  quoted(colnames(columns)[alike]), ", and what is said of ",
                  "others is extrapolated", kind = "overlap")
  }
}

# Warns if rows of a policy or a target lie outside the range of the data.
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

# Warns if the weights w of rows, or the imbalance that they leave, show that
# the source has hardly any rows near the target.
warn_overlap <- function(w, imbalance, label) {
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
    if (imbalance[["after"]] > imbalance[["before"]] / 2 &&
          imbalance[["after"]] > 2 * imbalance[["noise"]]) {
      paste0("the imbalance falls from ",
             format_number(imbalance[["before"]], 2L), " to ",
             format_number(imbalance[["after"]], 2L), " only")
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

# The weighted means of columns and their weighted covariances.
weighted_moments <- function(x, w) {
  w <- w / sum(w)
  mean <- drop(crossprod(w, x))
  x <- x - rep(mean, each = nrow(x))
  list(mean = mean, covariance = crossprod(x, w * x))
}

# A data frame with a row for each group and covariate: the means with weights,
# without weights and in the target, and their differences.
balance_table <- function(space, groups, w, weights) {
  if (space$dose) {
    return(dose_balance(space, w, weights))
  }
  tables <- Map(\(group, name) {
    x <- take_rows(space$columns, group$rows)
    plain <- column_moments(x, weights[group$rows])
    now <- column_moments(x, (weights * w)[group$rows])
    target <- target_moments(space, group$average, weights)
    variance <- known_variance(target)
    # Differences are in standard deviations of the target, or of the source
    # where the target has no rows.
    unit <- sqrt(ifelse(is.na(variance), known_variance(plain), variance))
    unit[is.na(unit)] <- 1
    data.frame(
      group = name, column = colnames(x), target = target$mean,
      mean_before = plain$mean, mean_after = now$mean,
      before = (plain$mean - target$mean) / unit,
      after = (now$mean - target$mean) / unit,
      ratio_before = plain$variance / variance,
      ratio_after = now$variance / variance, row.names = NULL
    )
  }, groups, names(groups))
  do.call(rbind, unname(tables))
}

# The correlations of a numeric treatment with each covariate.
dose_balance <- function(space, w, weights) {
  both <- cbind(sample_raw(space$sample)[, 1L], space$columns)
  correlations <- \(w) {
    found <- weighted_moments(both, w)$covariance
    (found[1L, ] / sqrt(found[1L] * diag(found)))[-1L]
  }
  data.frame(group = "all", column = colnames(space$columns),
             before = correlations(weights), after = correlations(weights * w),
             row.names = NULL)
}

column_moments <- function(x, w) {
  found <- weighted_moments(x, w)
  list(mean = found$mean, variance = diag(found$covariance))
}

# The same moments for a target. Its variance is NA if it is not given by rows.
target_moments <- function(space, average, weights) {
  if (!is.null(average$rows)) {
    return(column_moments(take_rows(space$columns, average$rows),
                          weights[average$rows]))
  }
  if (!is.null(space$pool)) {
    return(column_moments(space$pool, rep(1, nrow(space$pool))))
  }
  list(mean = if (is.null(average$center)) NA else {
    drop(unscale_points(space$sample$kernel, t(average$center)))
  }, variance = NA)
}

# The variances, with NA for those that are only rounding errors.
known_variance <- function(moments) {
  ifelse(moments$variance > 1e-24 * moments$mean^2, moments$variance, NA)
}

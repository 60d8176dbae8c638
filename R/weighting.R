# Weights that make the embedding of a sample that of a target: kme_weights().

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
    warn_overlap(fit, part$label, weights[part$rows])
    c(fit, kept_map(p$map))
  })
  w <- rep(1, n)
  for (g in names(parts)) w[parts[[g]]$rows] <- fits[[g]]$weights
  fit <- new_fit("kme_weights", list(
    weights = stats::setNames(w, rownames(x)), treat = treat,
    covs = named_frame(x), estimand = if (is.factor(treat)) {
      toupper(asked$estimand)
    }, s.weights = if (!is.null(asked$weights)) weights,
    focal = attr(parts, "focal"), n = n,
    groups = lapply(parts, \(part) part$rows),
    lambda = vapply(fits, `[[`, 0, "lambda"),
    imbalance = vapply(fits, `[[`, numeric(3), "imbalance"),
    functions = lapply(fits, `[`, c("coefficients", "map", "support")),
    positive = asked$positive, kernel = space$sample$kernel, space = space,
    target = if (is.null(treat)) target,
    balance = balance_table(space, parts, w, weights),
    arguments = stored(asked)
  ))
  fit
}

weights_arguments <- door_table(
  "kme_weights.default", x = anything, target = anything, treat = anything,
  kernel = maybe(a_kernel), estimand = choice("ate", "att", "atc"),
  focal = anything, means = flag, positive = flag,
  lambda = maybe(number(open = TRUE)), weights = anything,
  landmarks = maybe(count(2L)), features = maybe(count()),
  scale = maybe(a_scale), aside = c("x", "target", "treat", "weights"),
  rules = list(when("landmarks", features = NULL))
)

#' @rdname kme_weights
#' @export
kme_weights.formula <- function(formula, data = NULL, target = NULL, subset,
                                na.action, ..., weights = NULL) {
  check_formula(formula, data, ...names(), c("x", "treat"))
  call <- name_columns(match.call(expand.dots = FALSE))
  call$target <- NULL
  layout <- formula_terms(formula, data_without(data, all.vars(call$weights)))
  frame <- formula_frame(call, layout, data, missing(na.action),
                         parent.frame())
  treated <- attr(layout, "response") > 0L
  parts <- covariate_terms(frame, treated)
  if (is.data.frame(target)) target <- read_terms(parts$terms, target, "target")
  fit <- kme_weights.default(
    parts$x, target, if (treated) frame[[1L]], ...,
    weights = frame[["(weights)"]]
  )
  fit$terms <- keep_constants(parts$terms, data)
  fit$na.action <- attr(frame, "na.action")
  if (treated) fit$treat_name <- names(frame)[1L]
  fit
}

# list(x, terms) of the covariates of a model frame; `response`: is there one?
covariate_terms <- function(frame, response) {
  terms <- attr(frame, "terms")
  if (response) terms <- stats::delete.response(terms)
  attr(terms, "nominal") <- usual_nominal
  columns <- frame[setdiff(names(frame), c(
    if (response) names(frame)[1L], "(weights)", "(treat)", "(clusters)"
  ))]
  list(x = formula_matrix(terms, structure(columns, terms = terms)),
       terms = terms)
}

# A factor for arms, numbers for doses.
read_treatment <- function(treat, n, name = "treat") {
  treat <- check_each(treat, n, name, "rows")
  if (is.numeric(treat) && length(unique(treat)) > 2L) {
    return(check_outcome(unname(treat), n, name))
  }
  treat <- check_factor(treat, name)
  rows <- tabulate(treat, nlevels(treat))
  if (nlevels(treat) < 2L || min(rows) < fewest_rows) {
    stop_input("'", name, "' must have at least 2 levels with ", fewest_rows,
               " rows each, not ", shorten(paste0(rows, " in '", levels(treat),
                                                  "'")))
  }
  treat
}

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
    if (is.null(kernel)) kernel <- target$kernel
  } else if (!is.null(target) && !is_mixture(target)) {
    target <- check_newdata(target, x, "target", "'x'")
    pool <- covariate_columns(target, x, "target")
  }
  sample <- riesz_sample(cbind(.dose = dose, columns), kernel, asked$scale,
                         pool)
  z <- sample$x
  means <- isTRUE(asked$means)
  list(
    sample = sample, like = x, columns = columns, pool = pool,
    dose = !is.null(dose), means = means,
    approximation = asked[c("landmarks", "features")]
  )
}

is_mixture <- \(target) {
  is.list(target) && all(mixture_fields %in% names(target))
}

# The rows of arms and what each is to look like. attr "focal": the arm that
# the others are to look like, which has weights 1.
arm_parts <- function(space, treat, estimand, focal) {
  levels <- levels(treat)
  if (is.null(focal)) {
    if (estimand != "ate" && length(levels) > 2L) {
      stop_input("'focal' must be given for \"", estimand, "\" of more than 2 ",
                 "levels: one of ", quoted(levels))
    }
    focal <- levels[if (estimand == "att") 2L else 1L]
  } else {
    take(focal, choice(levels))
  }
  target <- if (estimand == "ate") seq_along(treat) else which(treat == focal)
  of <- list(z = space$sample$x[target, , drop = FALSE], rows = target)
  sources <- if (estimand == "ate") levels else setdiff(levels, focal)
  structure(lapply(stats::setNames(nm = sources), \(level) {
    list(rows = which(treat == level), of = of, label = level)
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
  if (!is_rbf(sample$kernel)) {
    stop_input("'kernel' must be kernel_rbf() for weights of a numeric ",
               "treatment, not the ", format_kernel(sample$kernel))
  }
  z <- sample$x
  theta <- rep_len(sample$kernel$bandwidth, ncol(z))
  part <- \(j) {
    fold_apply(kernel_rbf(1), z[, j, drop = FALSE] / rep(theta[j], each =
                                                           nrow(z)),
               v = as.matrix(weights / nrow(z)))
  }
  middle <- drop(cross(z, as.matrix(weights))) / nrow(z)
  list(at = as.vector(part(1L)) * as.vector(part(-1L)),
       mean = c(1, if (space$means) c(middle, middle[1L] * middle[-1L])))
}

# The problem of some rows of the space and a functional; see riesz.R.
riesz_problem <- function(space, source, functional, weights, y = NULL,
                          unit = NULL) {
  map <- space_map(space, source)
  n <- length(source)
  m <- functional_rows(space, map, source, functional)
  rows <- functional$rows
  fixed <- !is.null(functional$at)
  even <- \(w) w / mean(w)
  h <- free_columns(space, map$sample$x)
  if (space$means) {
    names <- colnames(map$sample$x)
    colnames(h) <- c("", names, if (space$dose) paste0(names[-1L], ":treat"))
  }
  c(m, list(
    f = map_features(map, seq_len(n)), h = h, y = y[source],
    omega = even(weights[source]), fixed = fixed,
    upsilon = if (is.null(rows)) rep(1, nrow(m$m)) else even(weights[rows]),
    pair = if (fixed) rep(1L, n) else
      if (is.null(rows)) rep(NA_integer_, n) else match(source, rows),
    unit = unit[source], unit_m = if (!is.null(unit) && !fixed) {
      if (is.null(rows)) -seq_len(nrow(m$m)) else unit[rows]
    },
    ridge = mean(sample_diagonal(map$sample)), map = map
  ))
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

# Signs that the source has no rows where the target is.
warn_overlap <- function(fit, label, omega, mean = 1) {
  # Weights of derivatives and policies have the mean 0.
  if (mean == 0) {
    return(invisible())
  }
  w <- omega * fit$weights
  n <- length(w)
  ess <- effective_rows(w)
  share <- max(abs(w)) / sum(abs(w))
  left <- fit$imbalance
  faults <- c(
    if (ess < max(0.1 * n, 20)) {
      paste0(format_number(ess, 3L), " effective rows of ", n)
    },
    if (share > 0.1) {
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

# Covariates of each group with weights, without, and of its target, a row each:
# differences in standard deviations of the target (or of the source, where the
# target has no rows); of doses their correlations with each covariate.
balance_table <- function(space, parts, w, weights) {
  raw <- space$columns
  moments <- \(rows, w, x = raw) {
    x <- x[rows, , drop = FALSE]
    w <- w / sum(w)
    mean <- drop(cross(x, as.matrix(w)))
    list(mean = mean, variance = drop(cross(
      (x - rep(mean, each = nrow(x)))^2, as.matrix(w)
    )))
  }
  if (space$dose) {
    dose <- sample_raw(space$sample)[, 1L]
    correlation <- \(w) {
      stats::cov.wt(cbind(dose, raw), w / sum(w), cor = TRUE)$cor[-1L, 1L]
    }
    return(data.frame(group = "all", column = colnames(raw),
                      before = correlation(weights),
                      after = correlation(weights * w), row.names = NULL))
  }
  tables <- Map(\(part, group) {
    rows <- part$rows
    plain <- moments(rows, weights[rows])
    now <- moments(rows, weights[rows] * w[rows])
    of <- part$of
    target <- if (!is.null(of$rows)) {
      moments(of$rows, weights[of$rows])
    } else if (!is.null(space$pool)) {
      moments(TRUE, rep(1, nrow(space$pool)), space$pool)
    } else {
      list(mean = if (is.null(of$center)) NA else drop(
        unscale_points(space$sample$kernel, t(of$center))
      ), variance = NA)
    }
    unit <- sqrt(if (anyNA(target$variance)) plain$variance else
      target$variance)
    unit[unit == 0] <- 1
    data.frame(
      group = group, column = colnames(raw), target = target$mean,
      mean_before = plain$mean, mean_after = now$mean,
      before = (plain$mean - target$mean) / unit,
      after = (now$mean - target$mean) / unit,
      ratio_before = plain$variance / target$variance,
      ratio_after = now$variance / target$variance, row.names = NULL
    )
  }, parts, names(parts))
  do.call(rbind, unname(tables))
}

# Effects and other linear functionals of a regression: kme_effect().

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
  settings <- effect_settings(asked[["control"]])
  weights <- read_row_weights(asked$weights, n)
  unit <- left_together(asked$clusters, settings$folds, treat, n)
  functional <- effect_functional(asked, treat)
  space <- riesz_space(x, c(asked["kernel"], settings),
                       if (is.numeric(treat)) treat, asked$target)
  parts <- if (is.factor(treat)) {
    effect_arms(space, treat, functional, asked$reference, asked$target)
  } else {
    effect_dose(space, treat, functional, asked$policy, asked$target)
  }
  fits <- Map(\(part, name) {
    at <- if (length(parts$problems) > 1L) name else 1L
    p <- riesz_problem(space, part$rows, part$of, weights, y, unit$code)
    fit <- riesz_estimate(p, arm_ridge(settings$lambda, at, "lambda"),
                          arm_ridge(settings$mu, at, "mu"),
                          folds = !is.null(settings$folds))
    warn_overlap(list(weights = fit$effective, imbalance = fit$imbalance),
                 part$label, p$omega, p$m_h[1L])
    fit
  }, parts$problems, names(parts$problems))
  combined <- combine_problems(parts, fits, y, weights)
  blocks <- if (is.null(unit$cluster)) combined$block else
    rep(1L, nrow(combined$influence))
  clusters <- if (!is.null(unit$cluster)) {
    c(unit$cluster, nlevels(factor(unit$cluster)) +
        seq_len(nrow(combined$influence) - n))
  }
  new_fit("kme_effect", c(combined[c("coefficients", "effective",
                                     "plugin")], list(
    vcov = influence_covariance(combined$influence, clusters, blocks),
    influence = combined$influence, fits = fits, functional = functional,
    y = y, treat = treat, rows = lapply(parts$problems, `[[`, "rows"),
    covs = named_frame(x), n = n, s.weights = asked$weights,
    cluster = unit$cluster, kernel = space$sample$kernel,
    naive = naive_effect(y, treat, weights), arguments = stored(asked)
  )))
}

effect_arguments <- door_table(
  "kme_effect.default", x = anything, y = anything, treat = anything,
  kernel = maybe(a_kernel),
  functional = maybe(choice("ate", "att", "atc", "means", "derivative")),
  policy = maybe(is_a("function", "a function of a data frame")),
  target = anything, reference = anything, clusters = anything,
  weights = anything, control = new_kind("a list", is_plain_list),
  aside = c("x", "y", "treat", "target", "clusters", "weights")
)

# What experts set: list(lambda, mu, folds, landmarks, features, scale).
effect_settings <- function(control) {
  known <- list(
    lambda = maybe(numbers(open = TRUE)), mu = maybe(numbers(open = TRUE)),
    folds = maybe(count(2L)), landmarks = maybe(count(2L)),
    features = maybe(count()), scale = maybe(a_scale)
  )
  wrong <- setdiff(names2(control), names(known))
  if (length(wrong)) {
    stop_input("'control' must hold ", quoted(names(known), 6L), ", not ",
               if (nzchar(wrong[1L])) quoted(wrong) else "what has no name")
  }
  sapply(names(known), \(name) {
    take(control[[name]], known[[name]], paste0("control$", name))
  }, simplify = FALSE)
}

# One ridge for all arms, or one for each, by name or in their order.
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
  if (is_nominal(y) || is.character(y)) {
    stop_input("'y' must be numeric, not ", describe(y), "; give 0/1 for a ",
               "binary outcome")
  }
  check_outcome(y, n)
}

# What is left out together: list(cluster: codes of the rows, for errors; code:
# of clusters, or of folds, made of whole clusters).
left_together <- function(clusters, folds, treat, n) {
  cluster <- if (!is.null(clusters)) {
    number_codes(check_each(clusters, n, "clusters", "rows"))
  }
  if (length(unique(cluster)) == 1L) {
    stop_input("'clusters' must hold at least two clusters, not one")
  }
  code <- if (is.null(folds)) cluster else if (is.null(cluster)) {
    make_folds(n, folds, "drawn", if (is.factor(treat)) treat else rep(1L, n))
  } else {
    cluster_folds(cluster, folds)
  }
  list(cluster = cluster, code = code)
}

# The functional that is asked for, or usual for the treatment.
effect_functional <- function(asked, treat) {
  arms <- is.factor(treat)
  given <- names(Filter(Negate(is.null), asked[c("functional", "policy")]))
  if (length(given) > 1L) {
    stop_input("one of 'functional' and 'policy' must be given, not both")
  }
  if (!is.null(asked$policy)) {
    if (arms) {
      stop_input("'policy' must not be given with arms: \"means\" has the ",
                 "mean outcome of each")
    }
    return("policy")
  }
  functional <- asked$functional
  if (is.null(functional)) functional <- if (arms) "ate" else "derivative"
  fine <- if (arms) functional != "derivative" else functional == "derivative"
  if (!fine) {
    stop_input("'functional' must be ", if (arms) {
      "\"ate\", \"att\", \"atc\" or \"means\" of a treatment with levels"
    } else {
      paste("\"derivative\" of a numeric treatment with more than two values",
            "(factor() makes levels)")
    }, ", not \"", functional, "\"")
  }
  if (!is.null(asked$target) && functional %in% c("att", "atc")) {
    stop_input("'target' must be NULL for \"", functional, "\", which has its ",
               "own")
  }
  functional
}

# list(problems, contrasts: a row for each estimate, a column for each problem;
# plain: rows whose mean of y is part of an estimate).
effect_arms <- function(space, treat, functional, reference, target) {
  levels <- levels(treat)
  if (is.null(reference)) reference <- levels[1L]
  reference <- take(as.character(reference), choice(levels), "reference")
  if (functional %in% c("att", "atc")) {
    if (length(levels) > 2L) {
      stop_input("'functional' must be \"ate\" or \"means\" of more than two ",
                 "levels, not \"", functional, "\"")
    }
    treated <- setdiff(levels, reference)
    focal <- if (functional == "att") treated else reference
    problems <- arm_parts(space, treat, functional, focal)
    sign <- if (functional == "att") 1 else -1
    return(list(
      problems = problems, plain = which(treat == focal), sign = sign,
      contrasts = matrix(-sign, dimnames = list(
        paste(treated, "-", reference), names(problems)
      ))
    ))
  }
  problems <- if (is.null(target)) arm_parts(space, treat, "ate", NULL) else {
    of <- target_functional(space, target)
    lapply(stats::setNames(nm = levels), \(level) {
      list(rows = which(treat == level), of = of, label = level)
    })
  }
  contrasts <- diag(length(levels))
  dimnames(contrasts) <- list(levels, levels)
  if (functional == "ate") {
    others <- setdiff(levels, reference)
    contrasts <- contrasts[others, , drop = FALSE] -
      contrasts[rep(reference, length(others)), , drop = FALSE]
    rownames(contrasts) <- paste(others, "-", reference)
  }
  list(problems = problems, contrasts = contrasts)
}

effect_dose <- function(space, treat, functional, policy, target) {
  sample <- space$sample
  all <- seq_along(treat)
  of <- if (functional == "policy") {
    z <- scale_points(sample$kernel, policy_points(space, treat, policy))
    list(z = z, without = sample$x, rows = all)
  } else {
    if (!has_slopes(sample$kernel)) {
      stop_input("'kernel' must have derivatives, as kernel_rbf(), ",
                 "kernel_matern() and kernel_poly() have, not be the ",
                 format_kernel(sample$kernel))
    }
    list(z = sample$x, along = first_direction(sample$kernel, ncol(sample$x)),
         rows = all)
  }
  if (!is.null(target)) {
    stop_input("'target' must be NULL for a numeric treatment")
  }
  list(problems = list(all = list(rows = all, of = of)),
       contrasts = matrix(1, dimnames = list(functional, "all")))
}

# The first column of the user in the units of the kernel.
first_direction <- function(kernel, d) {
  factor <- kernel$scaling$factor
  if (is.matrix(factor)) factor[1L, ] else
    c(if (is.null(factor)) 1 else 1 / factor[1L], numeric(d - 1L))
}

# What a policy makes of the rows, as raw columns.
policy_points <- function(space, treat, policy) {
  before <- data.frame(treat = treat, space$like, check.names = FALSE)
  after <- policy(before)
  if (!is.data.frame(after) || nrow(after) != nrow(before) ||
        !identical(names(after), names(before))) {
    stop_input("'policy' must return the data frame with other values, of ",
               "the same rows and columns, not ", describe(after))
  }
  dose <- check_outcome(after[[1L]], nrow(after), "the treatment of 'policy'")
  cbind(.dose = dose, covariate_columns(after[-1L], space$like, "policy"))
}

# A policy that calls the treatment by its name in a formula.
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

# Each estimate as a combination of problems: list(coefficients, plugin,
# effective: weights of y with estimate = mean(effective y), influence: of rows,
# and of those of a target, a column each; block: of independent samples).
combine_problems <- function(parts, fits, y, weights) {
  n <- length(y)
  contrasts <- parts$contrasts
  outside <- max(0L, vapply(Map(\(part, fit) {
    if (is.null(part$of$rows)) length(fit$functional) else 0L
  }, parts$problems, fits), identity, 0L))
  size <- length(fits)
  effective <- matrix(0, n, size)
  influence <- matrix(0, n + outside, size)
  block <- rep(c(1L, 2L), c(n, outside))
  for (g in seq_len(size)) {
    part <- parts$problems[[g]]
    rows <- part$rows
    omega <- weights[rows] / mean(weights[rows])
    effective[rows, g] <- n / length(rows) * omega * fits[[g]]$effective
    influence[rows, g] <- fits[[g]]$source
    if (length(fits[[g]]$functional)) {
      at <- if (is.null(part$of$rows)) n + seq_len(outside) else part$of$rows
      influence[at, g] <- influence[at, g] + fits[[g]]$functional
    }
  }
  estimates <- \(name) {
    drop(contrasts %*% vapply(fits, `[[`, 0, name))
  }
  result <- list(coefficients = estimates("estimate"),
                 plugin = estimates("plugin"),
                 effective = effective %*% t(contrasts),
                 influence = influence %*% t(contrasts), block = block)
  plain <- parts$plain
  if (length(plain)) {
    omega <- weights[plain] / mean(weights[plain])
    middle <- mean(omega * y[plain])
    for (name in c("coefficients", "plugin")) {
      result[[name]] <- result[[name]] + parts$sign * middle
    }
    result$effective[plain, ] <- result$effective[plain, ] +
      parts$sign * omega * n / length(plain)
    result$influence[plain, ] <- result$influence[plain, ] +
      parts$sign * omega * (y[plain] - middle) / length(plain)
    result$block[plain] <- 2L
  }
  result
}

# U'U n/(n - 1) of the units of each sample, U summed within clusters.
influence_covariance <- function(influence, clusters, block) {
  if (!is.null(clusters)) influence <- rowsum(influence, clusters)
  if (!is.null(clusters)) block <- rep(1L, nrow(influence))
  size <- tabulate(block)[block]
  crossprod(influence * sqrt(size / pmax(size - 1, 1)))
}

naive_effect <- function(y, treat, weights) {
  if (is.numeric(treat)) {
    fit <- stats::lm.wfit(cbind(1, treat), y, weights)
    return(c(slope = fit$coefficients[[2L]]))
  }
  tapply(y * weights, treat, sum) / tapply(weights, treat, sum)
}

#' @rdname kme_effect
#' @export
kme_effect.formula <- function(x, covariates, data = NULL, subset, na.action,
                               ..., policy = NULL, target = NULL,
                               clusters = NULL, weights = NULL) {
  formula <- x
  check_formula(formula, data, ...names(), c("x", "y", "treat"))
  for (side in list(formula, covariates)) {
    fine <- inherits(side, "formula")
    if (!fine) {
      stop_input("'covariates' must be a formula, as in ",
                 "kme_effect(y ~ treat, ~ x1 + x2, data)")
    }
  }
  if (length(formula) != 3L || length(covariates) != 2L) {
    stop_input("the outcome and the treatment must come first, then the ",
               "covariates, as in kme_effect(y ~ treat, ~ x1 + x2, data)")
  }
  call <- name_columns(match.call(expand.dots = FALSE))
  call[c("x", "covariates", "policy", "target")] <- NULL
  call$treat <- formula[[3L]]
  used <- c(all.vars(formula), all.vars(call$clusters), all.vars(call$weights))
  whole <- formula
  whole[[3L]] <- covariates[[2L]]
  layout <- formula_terms(whole, data_without(
    data, setdiff(used, c(all.vars(formula[[2L]]), all.vars(covariates)))
  ))
  frame <- formula_frame(call, layout, data, missing(na.action),
                         parent.frame())
  parts <- covariate_terms(frame, TRUE)
  if (is.data.frame(target)) target <- read_terms(parts$terms, target, "target")
  rows <- if (.row_names_info(frame) > 0L) row.names(frame)
  y <- frame[[1L]]
  if (!is.null(rows)) names(y) <- rows
  fit <- kme_effect.default(
    parts$x, y, frame[["(treat)"]], ...,
    policy = named_policy(policy, deparse1(formula[[3L]])),
    target = target,
    clusters = frame[["(clusters)"]], weights = frame[["(weights)"]]
  )
  fit$terms <- keep_constants(parts$terms, data)
  fit$na.action <- attr(frame, "na.action")
  fit$names <- c(y = names(frame)[1L], treat = deparse1(formula[[3L]]))
  fit
}

# Functionals of instrumental-variable fits, in the notation of iv_weak.R; a
# classic fit is one with alpha = 0 and without a straight part. A functional b
# of theta has the representer q = (P - alpha D)Z xi, xi = (A_+ + mu)^-1 b, and
# the debiased estimate, one more step of the ridge, is mean(a y), a = (P -
# alpha D)Z c, c = (2/(v + mu) - v/(v + mu)^2) b in the axes of A_+ = V diag(v)
# V'.

#' @section Instruments:
#' Of a fit of [rkhs_iv()] with `penalty = "norm"` an effect is a functional of
#' g, \eqn{E[Y - g(X) \mid Z] = 0}{E[Y - g(X) | Z] = 0}:
#' \describe{
#'   \item{`functional = "derivative"`}{the mean of the derivative of g along
#'     the column `of`;}
#'   \item{`policy`}{the mean of g(policy(X)) - g(X), a function of the data
#'     frame of x, its columns as those of the fit (`log(x)` of a formula with
#'     that term);}
#'   \item{`target`}{the mean of g over a population: rows of x, a fit of
#'     [kme()] with the kernel of the fit, `kme(new, fit$kernels$x)`, or a
#'     mixture, `list(weights, means, covariances)`. Rows are a sample, which
#'     has an error of its own, the others are known. With `smooth = h` each
#'     row is the normal
#'     distribution around it with standard deviation h, in the units of the
#'     columns. The value of g at one point has no error of
#'     \eqn{1/\sqrt{n}}{1/sqrt(n)} and is refused without. Controls are at their
#'     means.}
#' }
#'
#' With A, P, D, \eqn{\Phi}{Phi}, \eqn{\alpha}{alpha} and \eqn{\mu}{mu} of
#' [rkhs_iv()], straight columns, controls, weights of rows and correction
#' \eqn{P - \alpha D}{P - alpha D} those of the fit (method `"classic"`:
#' \eqn{\alpha = 0}{alpha = 0}, no straight columns, and a constant that is not
#' penalized, whether the fit has one or not), and b the functional of
#' \eqn{\Phi}{Phi}, the instruments have the weights \deqn{q = (P - \alpha
#' D)\Phi\xi, \quad \xi = (A_+ + \mu I)^{-1}b,}{q = (P - alpha D) Phi xi, xi
#' = (A_+ + mu I)^(-1) b,} which balance the features of x. The estimate is the
#' functional of g, "regression alone", and the mean of q times the residuals:
#' one more step of the same ridge. \eqn{\lambda}{lambda} is the fit's,
#' \eqn{\mu}{mu} the minimum of its cross-validation, whatever `rule` it had,
#' but no more than the largest eigenvalue of A, or the one that was given. The
#' share of theta that a fit with weak instruments keeps plays no part, as
#' debiasing would undo it.
#'
#' Errors are those of the weights of y and of residuals without the row (with
#' clusters, without the cluster, of those of at most 500 rows; D stays that of
#' all). They need weights q that exist, which no test can tell: where x has
#' values beyond those that the instruments make, intervals of level .95 held
#' the truth in .84 to .93 of samples of 1,000 rows (uniform instruments, x with
#' normal noise), elsewhere in .92 to .99. A warning of class
#' `kernmean_warning_weak` says that instruments are weak (F below 3, of either
#' method); then intervals are wide as a rule, and may yet be wrong.
#'
#' @param of The column of x, by name or number, along which derivatives are
#'   taken; it must be given where there are several.
#' @param smooth Standard deviations around the rows of `target`, one number or
#'   one for each column of x, all numeric.
#' @rdname kme_effect
#' @export
kme_effect.rkhs_iv <- function(x, functional = "derivative", of = NULL, ...,
                               policy = NULL, target = NULL, smooth = NULL,
                               clusters = NULL) {
  asked <- request(iv_effect_arguments)
  same_version(x, "x")
  if (is_nested_fit(x) || !is_norm(x) || !knows_points(x$blocks$x$sample)) {
    stop_input("'x' must be a fit of rkhs_iv() with penalty = \"norm\" and ",
               "points, not a nested one, of \"l2\" or of kernel values")
  }
  task <- weak_task(x)
  system <- effect_system(task)
  warn_intervals(system$strength)
  clusters <- clusters %||% task$clusters
  clusters <- read_clusters(clusters, x$n)
  if (!is.null(clusters)) clusters <- as.integer(clusters)
  name <- c(names(Filter(Negate(is.null), asked[c("policy", "target")])),
            asked$functional)
  # What is best predicted must not be shrunk much.
  top <- max(system$values)
  mu <- if (is.null(x$cv)) x$mu[["mu"]] else
    min(x$cv$mu[which.min(x$cv$score)], top[top > 0])
  fit <- debias(system, iv_functional(x, task, asked, name), name == "target",
                mu, clusters)
  # Weights of differences have the mean 0.
  if (name != "target") fit$ess <- NA_real_
  label <- \(value) stats::setNames(value, name)
  new_fit(c("kme_effect_iv", "kme_effect"), with_residuals(list(
    coefficients = label(fit$estimate),
    vcov = matrix(fit$variance, 1L, dimnames = list(name, name)),
    effective = matrix(fit$effective, dimnames = list(NULL, name)),
    influence = fit$influence, plugin = fit$plugin, functional = name,
    fits = label(list(c(fit, lambda = x$lambda[["lambda"]], mu = mu))),
    rows = label(list(seq_len(x$n))), n = x$n, fit = x,
    y = stats::setNames(x$y, names(x$fitted.values)), kernel = x$kernels$x,
    cluster = clusters, correct = task$correct, strength = system$strength,
    na.action = x$na.action, arguments = stored(asked)
  )))
}

iv_effect_arguments <- door_table(
  "kme_effect.rkhs_iv", x = anything,
  functional = maybe(choice("derivative")), of = anything,
  policy = maybe(is_a("function", "a function of a data frame")),
  target = anything, smooth = maybe(numbers(open = TRUE)), clusters = anything,
  rules = list(
    when("policy", functional = NULL, of = NULL, target = NULL),
    when("target", functional = NULL, of = NULL),
    when(\(asked) is.null(asked$target), smooth = NULL,
         reason = "without 'target'")
  ), aside = "x"
)

# The task of a fit, as one of method "weak".
weak_task <- function(fit) {
  asked <- fit$arguments
  weights <- read_row_weights(asked$weights, fit$n)
  task <- utils::modifyList(fitted_task(fit), list(
    weights = weights, clusters = asked$clusters,
    design = read_design(asked$controls, fit$n, weights),
    correct = c(fit$correct, 0)[1L], linear = c(fit$linear, 0)[1L]
  ))
  task$control$landmarks <- fit$landmarks
  task$maps <- if (is.null(fit$maps)) make_maps(task, fit$blocks) else
    Map(\(map, name) c(map, fit$blocks[[name]]["sample"]), fit$maps,
        task$called)
  task$straight <- straight_columns(fit$blocks$x, task$design)
  task$unit <- block_trace(task, "a") / fit$n
  task$partial <- partial_out(task)
  task
}

# The system of a fit with its rows in the axes of A: list(values, right; z, pz:
# PZ, l: P = ll', own: which rows D takes together, h: of the design,
# orthonormal; y, root: of weights, axes: from features, constant: what a
# constant says of Z, correct, strength).
effect_system <- function(task) {
  rows <- seq_along(task$y)
  check_memory(length(rows), map_width(task), "use landmarks = or features =",
               copies = 8)
  moments <- row_moments(task, rows)
  moments$d$own <- own_moments(task, moments, rows)
  system <- weak_system(task, moments)
  check_result(system$right, "a moment of the features",
               "'y' and of the blocks")
  axes <- system$units * system$spectrum$vectors
  z <- product(task_features(task, "a", rows), axes)
  l <- t(action_root(task, moments, "d")$times(
    t(task_features(task, "d", rows))
  ))
  root <- sqrt(task$weights)
  list(
    values = pmax(system$spectrum$values, 0),
    right = cross(system$spectrum$vectors, as.matrix(system$right)),
    z = z, pz = product(l, cross(l, z)), l = l,
    own = if (is.null(task$clusters)) rows else number_codes(task$clusters),
    h = qr.Q(qr(task$design * root)), y = root * task$y, root = root,
    axes = axes, constant = task$partial$a[1L, ], correct = task$correct,
    strength = iv_strength(task, moments)
  )
}

# The functional of the features, a row for each row that it is averaged over;
# of a target that is no sample one.
iv_functional <- function(fit, task, asked, name) {
  block <- fit$blocks$x
  sample <- block$sample
  frame <- block_frame(fit, "x")
  small <- small_map(task$maps$a)
  whole <- \(z, m) cbind(if (ncol(task$straight)) {
    product(z, attr(task$straight, "slopes"))
  }, m)
  at <- \(new) whole(new$z, point_features(small, sample, new))
  if (name == "derivative") {
    check_slopes(sample$kernel)
    of <- asked$of
    of <- of %||% if (ncol(frame) > 1L) "none" else 1L
    of <- check_pick(of, names(frame), "of")
    if (!takes_kernel(block)) {
      stop_input("'of' must be a numeric column, not a factor")
    }
    along <- first_direction(sample$kernel, ncol(sample$x), of)
    return(whole(matrix(along, fit$n, length(along), TRUE),
                 feature_slopes(small, sample, sample$x, along)))
  }
  if (name == "policy") {
    after <- asked$policy(frame)
    if (!identical(dim(after), dim(frame))) {
      stop_input("'policy' must return the data frame with other values, of ",
                 "the same rows and columns, not ", describe(after))
    }
    moved <- at(named_rows(block, after, "policy"))
    for (column in names(Filter(is.numeric, frame))) {
      warn_outside(after[[column]], frame[[column]], quoted(column))
    }
    return(moved - at(own_points(sample)))
  }
  target <- iv_target(fit, asked$target, asked$smooth)
  if (!is.null(target$z)) {
    for (j in seq_len(ncol(target$z))) {
      warn_outside(target$z[, j], sample$x[, j], "a column", "target")
    }
    return(at(target))
  }
  found <- target_functional(list(sample = sample, means = FALSE), target)
  if (is.null(found$center) || is.null(small$root)) {
    stop_input("'target' must be rows for this fit, or an embedding of known ",
               "points for one without random features")
  }
  whole(t(found$center),
        section_features(small, t(found$at[small$centers])))
}

# New rows, of which an argument is to be blamed.
named_rows <- function(block, rows, name) {
  tryCatch(block_newdata(block, rows, "x"), kernmean_error_input = \(e) {
    stop_input(sub("newdata", name, conditionMessage(e), fixed = TRUE))
  })
}

# New points, or an embedding.
iv_target <- function(fit, target, smooth) {
  block <- fit$blocks$x
  embedded <- inherits(target, "kme") || is_mixture(target)
  if (embedded && is.null(smooth)) {
    return(target)
  }
  if (is.data.frame(target) && !is.null(fit$terms)) {
    target <- read_term(fit$terms, target, 1L, "target", named = TRUE)
  }
  new <- if (!embedded) named_rows(block, target, "target")
  d <- ncol(new$z)
  if (is.null(smooth)) {
    if (new$m == 1L) {
      stop_input("'smooth' must be given for a target of one point: g there ",
                 "has no error of 1/sqrt(n), its mean over N(target, ",
                 "smooth^2) has")
    }
    return(new)
  }
  if (embedded || !takes_kernel(block) || !length(smooth) %in% c(1L, d)) {
    stop_input("'smooth' must be a number for rows of numeric columns, or one ",
               "for each column")
  }
  list(weights = rep(1 / new$m, new$m),
       means = unname(unscale_points(block$sample$kernel, new$z)),
       covariances = array(diag(smooth^2, d), c(d, d, new$m)))
}

# From values m of the functional at the features; of a `target`, 1 at a
# constant and of other rows.
debias <- function(s, m, target, mu, clusters) {
  n <- length(s$y)
  m <- product(m - rep(target * s$constant, each = nrow(m)), s$axes)
  upsilon <- if (target) 1 else s$root^2
  b <- colMeans(upsilon * m)
  inverse <- 1 / (s$values + mu)
  of <- \(a, c) drop(product(a, as.matrix(c)))
  of_h <- \(v) of(s$h, cross(s$h, as.matrix(v)))
  weights <- \(c) {
    own <- take_rows(rowsum(s$l * of(s$z, c), s$own), s$own)
    q <- of(s$pz, c) - s$correct * unname(rowSums(s$l * own))
    n * s$root * (q - of_h(q)) + target * s$root^2
  }
  a <- weights(inverse * (2 - s$values * inverse) * b)
  theta <- inverse * s$right
  unit <- clusters %||% seq_len(n)
  residuals <- s$y - of_h(s$y) - of(s$z, theta)
  residuals <- left_out(s, inverse, residuals, unit) / s$root
  values <- of(m, theta)
  middle <- mean(upsilon * values)
  influence <- as.matrix(a * residuals / n)
  spread <- as.matrix(upsilon * (values - middle) / nrow(m))
  influence <- if (target) rbind(influence, spread) else influence + spread
  # The weights of rows are in a once.
  apart <- \(a) sqrt(sum((colMeans(a / s$root * s$z) - b)^2))
  list(
    estimate = mean(a * s$y / s$root),
    plugin = middle + target * mean(s$root * s$y), influence = influence,
    variance = influence_covariance(influence, clusters,
                                    rep(1:2, c(n, nrow(influence) - n))),
    effective = a, alpha = weights(inverse * b), residuals = residuals,
    edf = ncol(s$h) + sum(s$values * inverse), ess = effective_rows(a),
    imbalance = c(after = apart(a), before = apart(target * s$root^2),
                  noise = NA)
  )
}

# Residuals of fits without each unit. With the adversary w as an unknown beside
# theta, the normal matrix [-(F'F + lambda I), F'Z; Z'F, mu I - alpha Z'DZ]
# loses of a unit what its f and z make; the D of other rows stays.
left_out <- function(s, inverse, residuals, unit) {
  inverse <- c(rep(1, ncol(s$h)), inverse)
  u <- cbind(s$h, s$pz)
  z <- cbind(s$h, s$z)
  plain <- cbind(0 * s$h, s$z)
  l <- cbind(s$h, s$l)
  adversary <- drop(l %*% crossprod(l, residuals))
  for (i in split(seq_along(unit), unit)) {
    if (length(i) > most_left_out) next
    at <- seq_along(i)
    one <- diag(length(i))
    none <- 0 * one
    own <- s$correct * outer(s$own[i], s$own[i], `==`) *
      tcrossprod(take_rows(s$l, i))
    e <- rbind(u[i, ], z[i, ], plain[i, ])
    inner <- tcrossprod(e * rep(inverse, each = nrow(e)), e)
    inner[at, at] <- inner[at, at] - tcrossprod(take_rows(l, i))
    rest <- diag(nrow(e)) + inner %*%
      cbind(rbind(one, -one, none), rbind(-one, none, none),
            rbind(none, none, own))
    # Not where a unit alone says something.
    if (rcond(rest) > 1e-10) {
      left <- solve(rest, c(adversary[i], residuals[i], residuals[i]))
      residuals[i] <- left[length(i) + at]
    }
  }
  residuals
}

# Rows of a unit; larger ones take long, and move little more.
most_left_out <- 500L

fit_lines.kme_effect_iv <- function(x, digits) {
  sub("leave-one-out ridges", paste0(
    "correction ", format_number(x$correct, 3L), ", effective F ",
    format_number(x$strength$F, 3L), ", penalties"
  ), sub("by kernel Riesz", paste0(
    if (!is.null(x$arguments$of)) {
      paste0("along ", names(block_frame(x$fit, "x")[x$arguments$of]), " ")
    }, "by instrumental-variable"
  ), fit_lines.kme_effect(x, digits)))
}

fit_columns.kme_effect_iv <- \(x, newdata, added) {
  fit_columns(x$fit, newdata, added)
}

fit_request.kme_effect_iv <- \(x, changes) {
  change_data(x, changes, list(x = x$fit))
}

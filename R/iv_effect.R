# Functionals of instrumental-variable fits, in the notation of iv_weak.R; a
# classic fit has alpha = 0 and no linear columns. A functional b'theta has the
# representer q = (P - alpha D)Z xi, where xi = (A_+ + mu)^-1 b. The debiased
# estimate takes one more step of the ridge: it is mean(a y) with a = (P - alpha
# D)Z c, where c = (2/(v + mu) - v/(v + mu)^2) b in the axes of A_+ = V diag(v)
# V'.

#' @section Instruments:
#' Of a fit of [rkhs_iv()] with `penalty = "norm"` an effect is a functional of
#' g, \eqn{E[Y - g(X) \mid Z] = 0}{E[Y - g(X) | Z] = 0}, of one of
#' [rkhs_iv_nested()] of `what`, g or h:
#' \describe{
#'   \item{`functional = "derivative"`}{the mean of the derivative of g along
#'     the column `of`;}
#'   \item{`policy`}{the mean of g(policy(X)) - g(X), a function of the data
#'     frame of x, its columns as those of the fit (`log(x)` of a formula with
#'     that term); of a list of two functions the mean at the second less that
#'     at the first;}
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
#' Where x has exogenous columns, which stand in z as well, and these stay as
#' they are, the functions of them that strength is given are partialled out of
#' y, x and z first, with \eqn{\lambda}{lambda} and \eqn{\alpha}{alpha} by what
#' is left: otherwise a penalty on functions of the exogenous columns would make
#' these pass for instruments. Of a nested fit A and b hold both moments, one
#' after the other, each with a constant, and errors add what a row has in both;
#' `residuals` are those of the moment of the function, `NA` in rows outside it.
#'
#' Errors are those of the weights of y and of residuals without the row (with
#' clusters, without the cluster, of those of at most 500 rows; D stays that of
#' all). They need weights q that exist, which no test can tell: where x has
#' values beyond those that the instruments make, intervals of level .95 held
#' the truth in .84 to .93 of samples of 1,000 rows (uniform instruments, x with
#' normal noise), elsewhere in .92 to .99. A warning of class
#' `kernmean_warning_weak` says that instruments are weak (F below 3, of either
#' method, or p above .05); there errors are multiplied by \eqn{\sqrt{1 +
#' 3/F}}{sqrt(1 + 3/F)}, the second-order error of a ratio, and intervals may
#' yet be wrong: `confint(effect, method = "ar")` has one that holds for a line,
#' see [confint.rkhs_iv()].
#'
#' @param of The column of x, by name or number, along which derivatives are
#'   taken; it must be given where there are several.
#' @param what `"g"` or `"h"`, the function of a nested fit; `NULL` is `"h"`.
#' @param smooth Standard deviations around the rows of `target`, one number or
#'   one for each column of x, all numeric.
#' @rdname kme_effect
#' @export
kme_effect.rkhs_iv <- function(x, functional = "derivative", of = NULL, ...,
                               policy = NULL, target = NULL, smooth = NULL,
                               clusters = NULL, what = NULL) {
  asked <- request(iv_effect_arguments)
  same_version(x, "x")
  nested <- is_nested_fit(x)
  if (!nested && !is.null(what)) {
    stop_input("'what' must be NULL but for nested fits")
  }
  asked$what <- asked$what %||% if (nested) "h" else "g"
  block <- x$blocks[[function_block(x, asked$what)]]
  if (!is_norm(x) || !knows_points(block$sample)) {
    stop_input("'x' must be a fit of rkhs_iv() or rkhs_iv_nested() with ",
               "penalty = \"norm\" and points, not of \"l2\" or of kernel ",
               "values")
  }
  clusters <- clusters %||% x$arguments$clusters
  clusters <- read_clusters(clusters, x$n)
  if (!is.null(clusters)) clusters <- as.integer(clusters)
  name <- c(names(Filter(Negate(is.null), asked[c("policy", "target")])),
            asked$functional)
  change <- iv_change(x, block, asked, name)
  task <- effect_task(x, change$moved)
  system <- if (nested) nested_system(x, task, asked$what) else
    effect_system(task)
  warn_intervals_of(x, task)
  mu <- effect_penalty(x, system)
  fit <- iv_debiased(system, iv_functional(x, task, system, change, asked$what),
                     name == "target", mu, clusters, x$n)
  if (!nested) {
    wide <- weak_spread(task$strength)
    fit$influence <- wide * fit$influence
    fit$variance <- wide^2 * fit$variance
  }
  # The weights of a difference have the mean 0, so no effective size is shown.
  if (name != "target" || nested) fit$ess <- NA_real_
  new_iv_effect(x, block, c(fit, lambda = system$lambda, mu = mu), name,
                clusters, system$correct, task$strength, asked)
}

iv_effect_arguments <- door_table(
  "kme_effect.rkhs_iv", x = anything,
  functional = maybe(choice("derivative")), of = anything,
  policy = maybe(new_kind("a function of a data frame, or a list of two", \(f) {
    is.function(f) || is_plain_list(f) && length(f) == 2L &&
      all(vapply(f, is.function, NA))
  })),
  target = anything, smooth = maybe(numbers(open = TRUE)), clusters = anything,
  what = maybe(choice("g", "h")),
  rules = list(
    when("policy", functional = NULL, of = NULL, target = NULL),
    when("target", functional = NULL, of = NULL),
    when(\(asked) is.null(asked$target), smooth = NULL,
         reason = "without 'target'")
  ), aside = "x"
)

# Makes the effect called `name` of an instrumental-variable fit from what
# iv_debiased() returns.
new_iv_effect <- function(fit, block, estimate, name, clusters, correct,
                          strength, asked) {
  label <- \(value) stats::setNames(value, name)
  y <- function_outcome(fit, asked$what)
  new_fit(c("kme_effect_iv", "kme_effect"), with_residuals(list(
    coefficients = label(estimate$estimate),
    vcov = matrix(estimate$variance, 1L, dimnames = list(name, name)),
    effective = matrix(estimate$effective, dimnames = list(NULL, name)),
    influence = estimate$influence, plugin = estimate$plugin, functional = name,
    fits = label(list(estimate)), rows = label(list(seq_len(fit$n))),
    n = fit$n, fit = fit, what = asked$what,
    y = stats::setNames(unname(y), rownames(as.matrix(fit$fitted.values))),
    kernel = block$sample$kernel, cluster = clusters, correct = correct,
    strength = strength, na.action = fit$na.action, arguments = stored(asked)
  )))
}

# --- Systems -----------------------------------------------------------------

# The moments of a fit in the axes of A, n rows of all moments.
#   ridge     the ridge regression of theta on the rows of Phi, with sums over
#             rows in its normal matrix, which is A
#   y, root   outcomes times the roots of the weights of rows; these roots
#   design    n x q matrix without penalty: 1 and controls, times these roots
#   l         n x rank matrix with P = ll'
#   own       codes of the rows that D takes together
#   correct   alpha
#   lambda    the ridge of the instruments
#   axes      the matrix that turns features into axes
#   partial   what the design says of the features
#   straight  the straight columns of x, or NULL
#   given     the functions of exogenous columns, see given_task(), or NULL
#   unit      the row of the sample that each row is
#   rows      the rows of the sample that functionals are averaged over
#   first     which rows are of the moment with the outcome
#   shown     which rows are of the moment of the function
#   size      of a nested fit, factors of the constant and of the features
new_effect_system <- function(ridge, y, l, axes, lambda,
                              root = rep(1, length(y)),
                              design = matrix(0, length(y), 0L),
                              own = seq_along(y), correct = 0,
                              partial = matrix(0, 0L, nrow(axes)),
                              straight = NULL, given = NULL,
                              unit = seq_along(y), rows = unit,
                              first = rep(TRUE, length(y)), shown = first,
                              size = NULL) {
  list(ridge = ridge, y = y, root = root, design = design, l = l, own = own,
       correct = correct, lambda = lambda, axes = axes, partial = partial,
       straight = straight, given = given, unit = unit, rows = rows,
       first = first, shown = shown, size = size)
}

# Returns the task of a fit with its moments, `whole`, and the strength of its
# instruments. If the change leaves the exogenous columns as they are, only the
# other instruments tell its effect. Then functions of the exogenous columns are
# partialled out, the ridge is chosen anew, and so is the correction, unless the
# user gave it.
effect_task <- function(fit, moved) {
  task <- weak_task(fit)
  if (is_nested_fit(fit)) {
    return(task)
  }
  check_memory(length(task$y), map_width(task),
               "use landmarks = or features =", copies = 8)
  columns <- exogenous_columns(task$blocks)
  strength <- fit$strength
  if (is.null(strength) && !is.null(columns)) {
    strength <- instrument_strength(given_task(task, columns), columns)
  }
  apart <- is.null(task$given) && length(columns$alone) &&
    !any(columns$both %in% moved)
  if (apart) {
    map <- task$maps$d
    task <- given_task(task, columns)
    task$maps$d <- map
    task <- partialled(task)
  } else {
    task <- with_moments(task)
  }
  task$strength <- strength %||% iv_strength(task)
  if (apart && is.null(fit$arguments[["control"]]$correct) &&
        task$correct > 0) {
    task$correct <- strength_rule(task$strength, 1,
                                  task$whole$d$own$df)$correct
  }
  task
}

effect_system <- function(task) {
  rows <- seq_along(task$y)
  system <- iv_system(task, task$whole)
  check_result(system$right, "a moment of the features",
               "'y' and of the blocks")
  axes <- system$units * system$spectrum$vectors
  z <- product(task_features(task, "a", rows), axes)
  l <- t(action_root(task, task$whole, "d")$times(
    t(task_features(task, "d", rows))
  ))
  root <- sqrt(task$weights)
  new_effect_system(
    new_ridge(pmax(system$spectrum$values, 0),
              cross(system$spectrum$vectors, as.matrix(system$right)), z),
    root * task$y, l, axes, task$lambda$d, root, root * task$design,
    if (is.null(task$clusters)) rows else number_codes(task$clusters),
    task$correct, task$partial$a, task$straight, task$given
  )
}

# The system of a nested fit has the rows of both moments, one after the other.
# The rows of the first moment have the features of g; those of the second have
# the features of -wg and of h. Each function has a constant before its
# features, with a penalty too small to matter, and the instruments have a
# constant of their own.
nested_system <- function(fit, task, what) {
  n <- fit$n
  rows <- lapply(task$rows, which)
  check_memory(sum(lengths(rows)), 2 * map_width(task),
               "use landmarks = or features =", copies = 8)
  constant <- sqrt(unpenalized * block_trace(task, "a") / n)
  ratio <- if (length(fit$mu) > 1L) sqrt(fit$mu[[2L]] / fit$mu[[1L]]) else 1
  g <- \(i) cbind(constant, map_features(task$maps$a, i))
  h <- cbind(constant, map_features(task$maps$b, rows$c)) / ratio
  first <- g(rows$d)
  z <- rbind(cbind(first, matrix(0, nrow(first), ncol(h))),
             cbind(-(fit$w[rows$c] %||% 1) * g(rows$c), h))
  l <- nested_actions(task, rows, n)
  y <- c(fit$y[rows$d], numeric(length(rows$c)))
  lz <- cross(l, z)
  s <- .Call(C_r_eigen, cross(lz), ncol(z))
  check_result(s$values, "a moment of the features", "'y' and of the blocks")
  right <- cross(product(lz, s$vectors), cross(l, as.matrix(y)))
  of_g <- seq_len(ncol(z)) <= ncol(first)
  mine <- if (what == "g") of_g else !of_g
  with_outcome <- rep(c(TRUE, FALSE), lengths(rows))
  new_effect_system(
    new_ridge(pmax(s$values, 0), right, product(z, s$vectors)), y, l,
    take_rows(s$vectors, mine), fit$lambda[[1L]],
    unit = unlist(rows, use.names = FALSE),
    rows = rows[[if (what == "g") "d" else "c"]], first = with_outcome,
    shown = if (what == "g") with_outcome else !with_outcome,
    size = c(constant, rep(1, sum(mine) - 1L)) / if (what == "h") ratio else 1
  )
}

# The matrix l with P = ll' of the instruments of both moments.
nested_actions <- function(task, rows, n) {
  action <- \(of) {
    i <- rows[[of]]
    f <- map_features(task$maps[[of]], i)
    f <- f - rep(colMeans(f), each = length(i))
    root <- instrument_root(task, cross(f), length(i), of)
    sqrt(n / length(i)) * cbind(1 / sqrt(length(i)), t(root$times(t(f))))
  }
  d <- action("d")
  c <- action("c")
  rbind(cbind(d, matrix(0, nrow(d), ncol(c))),
        cbind(matrix(0, nrow(c), ncol(d)), c))
}

# Warns if the instruments of a moment are weak.
warn_intervals_of <- function(fit, task) {
  if (!is_nested_fit(fit)) {
    return(warn_intervals(task$strength))
  }
  for (of in names(task$rows)) warn_intervals(nested_strength(fit, task, of))
}

# The strength of the instruments of a moment of a nested fit; `of` is the name
# of their block.
nested_strength <- function(fit, task, of) {
  learner <- if (of == "d") "a" else "b"
  blocks <- stats::setNames(fit$blocks[c(learner, of)], c("x", "z"))
  moment <- new_iv_task(
    "weak", c(a = "x", d = "z"), blocks, numeric(fit$n),
    list(d = rep(TRUE, fit$n)), fit$penalty, list(d = task$lambda[[of]]),
    task$control
  )
  moment <- with_design(moment, NULL, task$rows[[of]] + 0, NULL, 0, 0)
  moment$maps <- stats::setNames(task$maps[c(learner, of)], c("a", "d"))
  moment_strength(moment)
}

# The penalty of a fit, or the best one of its cross-validation. The best one is
# taken to be at most the largest eigenvalue, except in nested fits, because the
# direction that is predicted best must not be shrunk much.
effect_penalty <- function(fit, system) {
  if (is.null(fit$cv)) {
    return(fit$mu[[1L]])
  }
  top <- max(system$ridge$values)
  min(fit$cv$mu[which.min(fit$cv$score)],
      if (!is_nested_fit(fit) && top > 0) top)
}

# --- Functionals -------------------------------------------------------------

# The change whose effect is estimated:
#   moved          the columns of x that it moves
#   along          a direction of the points, for a derivative; or
#   before, after  points, for a policy; or
#   target         points or an embedding, see iv_target()
new_change <- function(moved, along = NULL, before = NULL, after = NULL,
                       target = NULL) {
  list(moved = moved, along = along, before = before, after = after,
       target = target)
}

iv_change <- function(fit, block, asked, name) {
  frame <- block_frame(fit, function_block(fit, asked$what))
  if (name == "target") {
    return(new_change(seq_along(frame), target = iv_target(
      fit, block, asked$target, asked$smooth
    )))
  }
  if (name == "policy") {
    return(policy_change(block, frame, asked$policy))
  }
  of <- asked$of
  of <- of %||% if (ncol(frame) > 1L) "none" else 1L
  of <- check_pick(of, names(frame), "of")
  if (!takes_kernel(block)) {
    stop_input("'of' must be a numeric column among numeric ones; where ",
               "factors are regressors, give a 'policy', or make them ",
               "controls")
  }
  kernel <- block$sample$kernel
  check_slopes(kernel)
  new_change(of, along = first_direction(kernel, ncol(block$sample$x), of))
}

# The change from the data to a policy, or from a first policy to a second.
policy_change <- function(block, frame, policies) {
  frames <- lapply(c(policies), \(policy) {
    after <- policy(frame)
    if (!identical(dim(after), dim(frame))) {
      stop_input("'policy' must return the data frame with other values, of ",
                 "the same rows and columns, not ", describe(after))
    }
    after
  })
  moves <- vapply(seq_along(frame), \(j) {
    !all(vapply(frames, \(after) {
      identical(as.vector(after[[j]]), as.vector(frame[[j]]))
    }, NA))
  }, NA)
  points <- lapply(frames, \(after) {
    new <- named_rows(block, after, "policy")
    after <- part_frame(after, "x")
    for (j in which(vapply(frame, is.numeric, NA))) {
      warn_outside(after[[j]], frame[[j]], quoted(names(frame)[j]))
    }
    new
  })
  if (length(points) == 1L) points <- c(list(own_points(block$sample)), points)
  new_change(which(moves), before = points[[1L]], after = points[[2L]])
}

# Returns the target as new points, or as an embedding.
iv_target <- function(fit, block, target, smooth) {
  embedded <- inherits(target, "kme") || is_mixture(target)
  if (embedded && is.null(smooth)) {
    return(target)
  }
  if (is.data.frame(target) && !is.null(fit$layout)) {
    target <- read_again(fit$layout, target, block$name, "target")
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

# Reads new rows; an error in them names the argument that they come from.
named_rows <- function(block, rows, name) {
  tryCatch(block_newdata(block, rows, "x"), kernmean_error_input = \(e) {
    stop_input(sub("newdata", name, conditionMessage(e), fixed = TRUE))
  })
}

# Returns the functional of the features, `m`, and of the design. Each has a row
# for each row that the functional is averaged over, or one row if the target is
# an embedding.
iv_functional <- function(fit, task, system, change, what) {
  block <- fit$blocks[[function_block(fit, what)]]
  sample <- block$sample
  map <- small_map(task$maps[[if (what == "h") "b" else "a"]])
  at_points <- \(new) list(
    m = with_line(system, new$z, point_features(map, sample, new), 1),
    design = given_design(system$given, block, new$z,
                          mean_design(system, new$m))
  )
  if (!is.null(change$along)) {
    return(slope_functional(system, sample, map, change))
  }
  if (!is.null(change$after)) {
    rows <- system$rows
    # Points of all rows of the fit are reduced to the rows of this moment.
    own <- \(new) if (new$m == fit$n) {
      c(lapply(new[intersect(c("z", "values"), names(new))], take_rows, rows),
        m = length(rows))
    } else {
      new
    }
    return(Map(`-`, at_points(own(change$after)),
               at_points(own(change$before))))
  }
  target <- change$target
  if (is.null(target$z)) {
    return(embedding_functional(system, sample, map, target))
  }
  for (j in seq_len(ncol(target$z))) {
    warn_outside(target$z[, j], sample$x[, j], "a column", "target")
  }
  at_points(target)
}

# Returns all features of the points z from the features m of the map. The
# linear columns come before m; in a nested fit the constant comes first, with
# the given value.
with_line <- function(system, z, m, constant) {
  if (!is.null(system$size)) {
    return(cbind(rep(constant, nrow(m)), m) *
             rep(system$size, each = nrow(m)))
  }
  slopes <- attr(system$straight, "slopes")
  cbind(if (length(slopes)) product(z, slopes), m)
}

# Returns rows of the design with the controls at their means, without the
# exogenous columns that are partialled out.
mean_design <- function(system, rows) {
  known <- ncol(system$design)
  if (!is.null(system$given)) known <- known - ncol(system$given$back)
  matrix(rep(c(1, 0), c(1L, known))[seq_len(known)], rows, known, byrow = TRUE)
}

slope_functional <- function(system, sample, map, change) {
  if (!is.null(system$given) && change$moved %in% system$given$columns) {
    stop_input("'of' must not be an exogenous column of a fit with few ",
               "numbers of instruments; give it linear = 0")
  }
  x <- take_rows(sample$x, system$rows)
  along <- matrix(change$along, nrow(x), length(change$along), TRUE)
  m <- with_line(system, along,
                 feature_slopes(map, sample, x, change$along), 0)
  list(m = m, design = matrix(0, nrow(m), ncol(system$design)))
}

embedding_functional <- function(system, sample, map, target) {
  found <- target_average(new_space(sample), target)
  if (is.null(found$center) || is.null(map$root) || !is.null(system$given)) {
    stop_input("'target' must be rows for this fit, or an embedding of known ",
               "points for one without random features")
  }
  list(m = with_line(system, t(found$center),
                     section_features(map, t(found$at[map$centers])), 1),
       design = mean_design(system, 1L))
}

# --- Estimates and their errors ----------------------------------------------

# The debiased estimate of a functional, see iv_functional(), with its errors.
# `target` says that the functional is averaged over other rows than those of
# the fit, and n is the number of rows of the fit.
iv_debiased <- function(s, functional, target, mu, clusters, n) {
  size <- length(s$y)
  design <- qr(s$design)
  h <- qr.Q(design)
  # The matrix `by` turns outcomes into the coefficients of the design.
  by <- if (ncol(h)) backsolve(qr.R(design), t(h)) else t(h)
  m <- product(functional$m - product(functional$design, s$partial), s$axes)
  of <- new_functional(m, if (target) rep(1, nrow(m)) else s$root[s$rows]^2)
  by_design <- cross(by, as.matrix(colMeans(of$weights * functional$design)))
  plain <- size * s$root * drop(by_design)
  found <- ridge_debiased(s$ridge, of$target, mu, mu)
  a <- plain + instrument_weights(s, h, found$effective)
  alpha <- plain + instrument_weights(s, h, found$alpha)
  unit <- (clusters %||% seq_len(n))[s$unit]
  residuals <- s$y - along_columns(h, s$y) - times_vector(s$ridge$z, found$g)
  residuals <- iv_left_out(s, h, mu, residuals, unit) / s$root
  values <- times_vector(m, found$g) +
    times_vector(functional$design, times_vector(by, s$y))
  middle <- mean(of$weights * values)
  influence <- iv_influence(s, a * residuals / size,
                            of$weights * (values - middle) / nrow(m), target, n)
  # The rows of z are multiplied by roots of weights, which is undone here.
  distance <- \(w) sqrt(sum((colMeans(w / s$root * s$ridge$z) - of$target)^2))
  of_outcomes <- \(w) by_row(s, w * n / size, s$first, n, 0)
  list(
    estimate = mean(a * s$y / s$root), plugin = middle, influence = influence,
    variance = influence_covariance(influence, clusters,
                                    rep(1:2, c(n, nrow(influence) - n))),
    effective = of_outcomes(a), alpha = of_outcomes(alpha),
    residuals = by_row(s, residuals, s$shown, n, NA), edf = ncol(h) + found$edf,
    ess = effective_rows(a),
    imbalance = c(after = distance(a), before = distance(plain), noise = NA)
  )
}

# The weights (P - alpha D) Zc of outcomes, less their projection on the
# orthonormal columns h of the design.
instrument_weights <- function(s, h, c) {
  u <- times_vector(s$ridge$z, c)
  own <- take_rows(rowsum(s$l * u, s$own), s$own)
  q <- along_columns(s$l, u) - s$correct * unname(rowSums(s$l * own))
  length(s$y) * s$root * (q - along_columns(h, q))
}

# Returns hh'v, the projection of v on the columns of h.
along_columns <- function(h, v) {
  if (ncol(h)) times_vector(h, cross(h, as.matrix(v))) else 0
}

# Spreads values x over the n rows of the sample: a system has them for its rows
# `of`, and the other rows of the sample get `none`.
by_row <- function(s, x, of, n, none) {
  if (all(of)) x else replace(rep(none, n), s$unit[of], x[of])
}

times_vector <- \(matrix, v) drop(product(matrix, as.matrix(v)))

# The influence of rows on an estimate, as a matrix of one column. `own` is the
# influence of each row of the system, and `spread` that of each row of the
# functional. If the latter are rows of another sample, they come last.
iv_influence <- function(s, own, spread, target, n) {
  influence <- numeric(n)
  each <- rowsum(own, s$unit)
  influence[as.integer(rownames(each))] <- each
  if (!target) influence[s$rows] <- influence[s$rows] + spread
  as.matrix(if (target) c(influence, spread) else influence)
}

# Returns the residuals of each unit from a fit without it; h has the
# orthonormal columns of the design. With the adversary w as an unknown beside
# theta, the normal matrix is [-(F'F + lambda I), F'Z; Z'F, mu I - alpha Z'DZ].
# To leave out a unit, the part of its rows f and z is subtracted, whose rank is
# three times their number. The D of the other rows is not changed.
iv_left_out <- function(s, h, mu, residuals, unit) {
  inverse <- c(rep(1, ncol(h)), ridge_inverse(s$ridge, mu))
  z <- cbind(h, s$ridge$z)
  penalized <- cbind(0 * h, s$ridge$z)
  projected <- cbind(h, product(s$l, cross(s$l, s$ridge$z)))
  l <- cbind(h, s$l)
  adversary <- drop(l %*% crossprod(l, residuals))
  for (i in split(seq_along(unit), unit)) {
    if (length(i) > most_left_out) next
    at <- seq_along(i)
    one <- diag(length(i))
    none <- 0 * one
    own <- s$correct * outer(s$own[i], s$own[i], `==`) *
      tcrossprod(take_rows(s$l, i))
    rows <- rbind(projected[i, ], z[i, ], penalized[i, ])
    inner <- tcrossprod(rows * rep(inverse, each = nrow(rows)), rows)
    inner[at, at] <- inner[at, at] - tcrossprod(take_rows(l, i))
    rest <- diag(nrow(rows)) + inner %*%
      cbind(rbind(one, -one, none), rbind(-one, none, none),
            rbind(none, none, own))
    # If a direction rests on this unit alone, its residuals stay as they are.
    if (rcond(rest) > 1e-10) {
      left <- solve(rest, c(adversary[i], residuals[i], residuals[i]))
      residuals[i] <- left[length(i) + at]
    }
  }
  residuals
}

# Units with more rows are not left out, which would take long and change
# little.
most_left_out <- 500L

fit_lines.kme_effect_iv <- function(x, digits) {
  nested <- is_nested_fit(x$fit)
  sub("leave-one-out ridges", if (nested) "penalties" else paste0(
    "bias correction ", format_number(x$correct, 3L), ", ",
    strength_words(x$strength, \(f) format_number(f, 3L)), ", penalties"
  ), sub("by kernel Riesz", paste0(
    if (nested) paste0("of ", x$what, " "),
    if (!is.null(x$arguments$of)) {
      paste0("along ", names(block_frame(x$fit, function_block(
        x$fit, x$what
      ))[x$arguments$of]), " ")
    }, "by instrumental-variable"
  ), fit_lines.kme_effect(x, digits)))
}

fit_columns.kme_effect_iv <- \(x, newdata, added) {
  fit_columns(x$fit, newdata, added)
}

fit_request.kme_effect_iv <- \(x, changes) {
  change_data(x, changes, list(x = x$fit))
}

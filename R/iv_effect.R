# Functionals of instrumental-variable fits, in the notation of iv_weak.R; a
# classic fit is one with alpha = 0 and without a straight part. A functional b
# of theta has the representer q = (P - alpha D)Z xi, xi = (A_+ + mu)^-1 b, and
# the debiased estimate, one more step of the ridge, is mean(a y), a = (P -
# alpha D)Z c, c = (2/(v + mu) - v/(v + mu)^2) b in the axes of A_+ = V diag(v)
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
  task <- weak_task(x)
  strength <- x$strength
  if (nested) {
    system <- nested_system(x, task, asked$what)
    for (of in names(task$rows)) warn_intervals(nested_strength(x, task, of))
  } else {
    columns <- exogenous_columns(task$blocks)
    if (is.null(strength) && !is.null(columns)) {
      strength <- instrument_strength(given_task(task, columns), columns)
    }
    # Where exogenous columns stay as they are, nothing but the other
    # instruments says what happens.
    apart <- is.null(task$given) && length(columns$alone) &&
      !any(columns$both %in% change$moved)
    if (apart) {
      map <- task$maps$d
      task <- given_task(task, columns)
      task$maps$d <- map
    }
    system <- effect_system(task, strength, apart, is.null(
      x$arguments[["control"]]$correct
    ))
    strength <- system$strength
    warn_intervals(strength)
  }
  # What is best predicted must not be shrunk much.
  top <- max(system$values)
  mu <- if (is.null(x$cv)) x$mu[[1L]] else
    min(x$cv$mu[which.min(x$cv$score)], if (!nested) top[top > 0])
  fit <- debias(system, iv_functional(x, task, system, change, asked$what),
                name == "target", mu, clusters, x$n)
  if (!nested) {
    wide <- weak_spread(strength)
    fit$influence <- wide * fit$influence
    fit$variance <- wide^2 * fit$variance
  }
  # Weights of differences have the mean 0.
  if (name != "target" || nested) fit$ess <- NA_real_
  label <- \(value) stats::setNames(value, name)
  y <- if (asked$what == "g") x$y else
    (x$w %||% 1) * x$fitted.values[, "g"]
  new_fit(c("kme_effect_iv", "kme_effect"), with_residuals(list(
    coefficients = label(fit$estimate),
    vcov = matrix(fit$variance, 1L, dimnames = list(name, name)),
    effective = matrix(fit$effective, dimnames = list(NULL, name)),
    influence = fit$influence, plugin = fit$plugin, functional = name,
    fits = label(list(c(fit, lambda = system$lambda, mu = mu))),
    rows = label(list(seq_len(x$n))), n = x$n, fit = x, what = asked$what,
    y = stats::setNames(unname(y), rownames(as.matrix(x$fitted.values))),
    kernel = block$sample$kernel,
    cluster = clusters, correct = system$correct, strength = strength,
    na.action = x$na.action, arguments = stored(asked)
  )))
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

# The system of a fit with its rows in the axes of A: list(values, right; z, pz:
# PZ, l: P = ll', own: which rows D takes together, design, y: with the roots of
# weights, root; axes: from features, partial: what the design says of Z, given:
# its functions of exogenous columns, correct, lambda, strength, straight, unit:
# the row of the sample that each is, rows: those of functionals).
# `apart`: by what the design leaves, with a ridge and, if `open`, a correction
# of its own.
effect_system <- function(task, strength, apart, open) {
  rows <- seq_along(task$y)
  check_memory(length(rows), map_width(task), "use landmarks = or features =",
               copies = 8)
  task <- if (apart) partialled(task) else with_moments(task)
  moments <- task$whole
  strength <- strength %||% iv_strength(task)
  if (apart && open && task$correct > 0) {
    task$correct <- strength_rule(strength, 1, moments$d$own$df)$correct
  }
  system <- iv_system(task, moments)
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
    design = root * task$design, y = root * task$y, root = root,
    axes = axes, partial = task$partial$a, correct = task$correct,
    lambda = task$lambda$d, strength = strength, straight = task$straight,
    given = task$given, unit = rows, rows = rows
  )
}

# How strong the instruments of a moment of a nested fit are, `of` its block.
nested_strength <- function(fit, task, of) {
  blocks <- fit$blocks[c(if (of == "d") "a" else "b", of)]
  n <- fit$n
  moment <- list(
    blocks = stats::setNames(blocks, c("x", "z")), y = numeric(n),
    called = c(a = "x", d = "z"), rows = list(d = rep(TRUE, n)),
    weights = task$rows[[of]] + 0, design = matrix(1, n, 1L), method = "weak",
    penalty = fit$penalty, lambda = list(d = task$lambda[[of]]),
    control = task$control,
    maps = list(a = task$maps[[if (of == "d") "a" else "b"]],
                d = task$maps[[of]])
  )
  moment$straight <- straight_columns(blocks[[1L]], moment$design)
  moment_strength(moment)
}

# That of a nested fit: the rows of both moments, one after the other, of which
# the first has the features of g, and the second those of -wg and of h, each
# after a constant without a penalty to speak of; and instruments with a
# constant of their own. unit: the row of each.
nested_system <- function(fit, task, what) {
  n <- fit$n
  rows <- lapply(task$rows, which)
  check_memory(sum(lengths(rows)), 2 * map_width(task),
               "use landmarks = or features =", copies = 8)
  size <- sqrt(unpenalized * block_trace(task, "a") / n)
  ratio <- if (length(fit$mu) > 1L) sqrt(fit$mu[[2L]] / fit$mu[[1L]]) else 1
  g <- \(i) cbind(size, map_features(task$maps$a, i))
  h <- cbind(size, map_features(task$maps$b, rows$c)) / ratio
  first <- g(rows$d)
  z <- rbind(cbind(first, matrix(0, nrow(first), ncol(h))),
             cbind(-(fit$w[rows$c] %||% 1) * g(rows$c), h))
  actions <- lapply(c(d = "d", c = "c"), \(of) {
    i <- rows[[of]]
    f <- map_features(task$maps[[of]], i)
    f <- f - rep(colMeans(f), each = length(i))
    root <- instrument_root(task, cross(f), length(i), of)
    sqrt(n / length(i)) * cbind(1 / sqrt(length(i)), t(root$times(t(f))))
  })
  l <- rbind(
    cbind(actions$d, matrix(0, length(rows$d), ncol(actions$c))),
    cbind(matrix(0, length(rows$c), ncol(actions$d)), actions$c)
  )
  y <- c(fit$y[rows$d], numeric(length(rows$c)))
  lz <- cross(l, z)
  s <- .Call(C_r_eigen, cross(lz), ncol(z))
  check_result(s$values, "a moment of the features", "'y' and of the blocks")
  lz <- product(lz, s$vectors)
  z <- product(z, s$vectors)
  mine <- (seq_len(ncol(z)) > ncol(first)) == (what == "h")
  list(
    values = pmax(s$values, 0), right = cross(lz, cross(l, as.matrix(y))),
    z = z, pz = product(l, lz), l = l,
    own = seq_along(y), design = matrix(0, length(y), 0L), y = y,
    root = rep(1, length(y)), axes = take_rows(s$vectors, mine),
    partial = matrix(0, 0L, sum(mine)), correct = 0,
    lambda = fit$lambda[[1L]], unit = unlist(rows, use.names = FALSE),
    second = rep(c(FALSE, TRUE), lengths(rows)),
    size = c(size, rep(1, sum(mine) - 1L)) / if (what == "h") ratio else 1,
    rows = rows[[if (what == "g") "d" else "c"]]
  )
}

# What an effect changes: list(moved: the columns, along: a direction, or before
# and after: new points; or target: see iv_target()).
iv_change <- function(fit, block, asked, name) {
  sample <- block$sample
  frame <- block_frame(fit, function_block(fit, asked$what))
  if (name == "target") {
    return(list(moved = seq_along(frame), target = iv_target(
      fit, block, asked$target, asked$smooth
    )))
  }
  if (name == "derivative") {
    of <- asked$of
    of <- of %||% if (ncol(frame) > 1L) "none" else 1L
    of <- check_pick(of, names(frame), "of")
    if (!takes_kernel(block)) {
      stop_input("'of' must be a numeric column among numeric ones; where ",
                 "factors are regressors, give a 'policy', or make them ",
                 "controls")
    }
    check_slopes(sample$kernel)
    return(list(moved = of, along = first_direction(sample$kernel,
                                                    ncol(sample$x), of)))
  }
  after <- lapply(c(asked$policy), \(policy) {
    after <- policy(frame)
    if (!identical(dim(after), dim(frame))) {
      stop_input("'policy' must return the data frame with other values, of ",
                 "the same rows and columns, not ", describe(after))
    }
    after
  })
  same <- vapply(seq_along(frame), \(j) {
    all(vapply(after, \(a) identical(as.vector(a[[j]]), as.vector(frame[[j]])),
               NA))
  }, NA)
  points <- lapply(after, \(a) {
    new <- named_rows(block, a, "policy")
    a <- part_frame(a, "x")
    for (j in which(vapply(frame, is.numeric, NA))) {
      warn_outside(a[[j]], frame[[j]], quoted(names(frame)[j]))
    }
    new
  })
  if (length(points) == 1L) points <- c(list(own_points(sample)), points)
  list(moved = which(!same), before = points[[1L]], after = points[[2L]])
}

# The functional of the features, and of the design, a row for each row that it
# is averaged over; of a target that is no sample one. list(m, design).
iv_functional <- function(fit, task, system, change, what) {
  block <- fit$blocks[[function_block(fit, what)]]
  sample <- block$sample
  small <- small_map(task$maps[[if (what == "h") "b" else "a"]])
  slopes <- attr(system$straight, "slopes")
  known <- ncol(system$design) - ncol(system$given$back %||% matrix(0, 0L, 0L))
  one <- \(rows) {
    matrix(c(1, numeric(known))[seq_len(known)], rows, known, byrow = TRUE)
  }
  # Of a nested fit the constant is a feature.
  whole <- \(z, m, constant) if (is.null(system$size)) {
    cbind(if (length(slopes)) product(z, slopes), m)
  } else {
    cbind(rep(constant, nrow(m)), m) * rep(system$size, each = nrow(m))
  }
  at <- \(new) list(
    m = whole(new$z, point_features(small, sample, new), 1),
    design = given_design(system$given, block, new$z, one(new$m))
  )
  rows <- system$rows
  own <- \(new) if (new$m == fit$n) {
    c(lapply(new[intersect(c("z", "values"), names(new))], take_rows, rows),
      m = length(rows))
  } else {
    new
  }
  if (!is.null(change$along)) {
    if (!is.null(system$given) && change$moved %in% system$given$columns) {
      stop_input("'of' must not be an exogenous column of a fit with few ",
                 "numbers of instruments; give it linear = 0")
    }
    along <- change$along
    x <- take_rows(sample$x, rows)
    m <- whole(matrix(along, nrow(x), length(along), TRUE),
               feature_slopes(small, sample, x, along), 0)
    return(list(m = m, design = matrix(0, nrow(m), ncol(system$design))))
  }
  if (!is.null(change$after)) {
    return(Map(`-`, at(own(change$after)), at(own(change$before))))
  }
  target <- change$target
  if (!is.null(target$z)) {
    for (j in seq_len(ncol(target$z))) {
      warn_outside(target$z[, j], sample$x[, j], "a column", "target")
    }
    return(at(target))
  }
  found <- target_functional(list(sample = sample, means = FALSE), target)
  if (is.null(found$center) || is.null(small$root) || !is.null(system$given)) {
    stop_input("'target' must be rows for this fit, or an embedding of known ",
               "points for one without random features")
  }
  list(m = whole(t(found$center),
                 section_features(small, t(found$at[small$centers])), 1),
       design = one(1L))
}

# New rows, of which an argument is to be blamed.
named_rows <- function(block, rows, name) {
  tryCatch(block_newdata(block, rows, "x"), kernmean_error_input = \(e) {
    stop_input(sub("newdata", name, conditionMessage(e), fixed = TRUE))
  })
}

# New points, or an embedding.
iv_target <- function(fit, block, target, smooth) {
  embedded <- inherits(target, "kme") || is_mixture(target)
  if (embedded && is.null(smooth)) {
    return(target)
  }
  if (is.data.frame(target) && !is.null(fit$terms)) {
    target <- read_term(fit$terms, target, match(block$name,
                                                 names(fit$blocks)),
                        "target", named = TRUE)
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

# From values of the functional, list(m, design), at the features and the
# design; of a `target` over other rows; of n rows.
debias <- function(s, functional, target, mu, clusters, n) {
  size <- length(s$y)
  m <- product(functional$m - product(functional$design, s$partial), s$axes)
  h <- qr.Q(qr(s$design))
  upsilon <- if (target) 1 else s$root[s$rows]^2
  b <- colMeans(upsilon * m)
  inverse <- 1 / (s$values + mu)
  of <- \(a, c) drop(product(a, as.matrix(c)))
  of_h <- \(v) if (ncol(h)) of(h, cross(h, as.matrix(v))) else 0
  # What the functional has of y by its design.
  by <- if (ncol(h)) backsolve(qr.R(qr(s$design)), t(h)) else t(h)
  plain <- size * s$root *
    drop(cross(by, as.matrix(colMeans(upsilon * functional$design))))
  weights <- \(c) {
    own <- take_rows(rowsum(s$l * of(s$z, c), s$own), s$own)
    q <- of(s$pz, c) - s$correct * unname(rowSums(s$l * own))
    size * s$root * (q - of_h(q)) + plain
  }
  a <- weights(inverse * (2 - s$values * inverse) * b)
  theta <- inverse * s$right
  row <- s$unit
  unit <- (clusters %||% seq_len(n))[row]
  residuals <- s$y - of_h(s$y) - of(s$z, theta)
  residuals <- left_out(s, h, inverse, residuals, unit) / s$root
  values <- of(m, theta) + of(functional$design, of(by, s$y))
  middle <- mean(upsilon * values)
  influence <- matrix(0, n, 1L)
  each <- rowsum(a * residuals / size, row)
  influence[as.integer(rownames(each)), ] <- each
  spread <- as.matrix(upsilon * (values - middle) / nrow(m))
  if (target) influence <- rbind(influence, spread) else {
    influence[s$rows, ] <- influence[s$rows, ] + spread
  }
  # The weights of rows are in a once.
  apart <- \(a) sqrt(sum((colMeans(a / s$root * s$z) - b)^2))
  alpha <- weights(inverse * b)
  # Of a nested fit those of y, and the residuals of the moment of the function.
  if (!is.null(s$second)) {
    shown <- \(x, at) replace(rep(NA_real_, n), row[at], x[at])
    second <- s$second == identical(s$rows, row[s$second])
    residuals <- shown(residuals, second)
    weight <- \(x) {
      x <- shown(x, !s$second) * n / size
      replace(x, is.na(x), 0)
    }
  } else {
    weight <- identity
  }
  list(
    estimate = mean(a * s$y / s$root), plugin = middle, influence = influence,
    variance = influence_covariance(influence, clusters,
                                    rep(1:2, c(n, nrow(influence) - n))),
    effective = weight(a), alpha = weight(alpha), residuals = residuals,
    edf = ncol(h) + sum(s$values * inverse), ess = effective_rows(a),
    imbalance = c(after = apart(a), before = apart(plain), noise = NA)
  )
}

# Residuals of fits without each unit. With the adversary w as an unknown beside
# theta, the normal matrix [-(F'F + lambda I), F'Z; Z'F, mu I - alpha Z'DZ]
# loses of a unit what its f and z make; the D of other rows stays.
left_out <- function(s, h, inverse, residuals, unit) {
  inverse <- c(rep(1, ncol(h)), inverse)
  u <- cbind(h, s$pz)
  z <- cbind(h, s$z)
  plain <- cbind(0 * h, s$z)
  l <- cbind(h, s$l)
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

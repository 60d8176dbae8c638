# The fit of a task: each estimator is a ridge regression in the features of the
# learners, see iv_system.R.

fit_iv <- function(task) {
  task$maps <- make_maps(task)
  width <- map_width(task)
  check_memory(width, width, "use landmarks = or features =",
               copies = if (is_nested(task)) 20 else 8,
               what = "work on features")
  values <- penalty_values(task)
  folds <- if (length(values) > 1L) iv_folds(task)
  task <- settle(task, folds)
  penalty <- choose_penalty(task, values, folds)
  system <- iv_system(task, task$whole)
  solution <- check_result(iv_solve(system, penalty$mu, task$keep %||% 1),
                           "the solution", "'y' and of the blocks")
  warn_instruments(task, system$ranks)
  warn_linear(task)
  new_iv(task, system, penalty, solution)
}

# Returns the task with its moments and ridges, and with the settings that
# depend on the strength of the instruments.
settle <- function(task, folds) UseMethod("settle")

settle.iv_classic <- function(task, folds) {
  task$whole <- row_moments(task, seq_along(task$y))
  task$ratio <- task$ratio %||% if (is_norm(task) && is.null(task$preset))
      block_trace(task, "b") / block_trace(task, "a") else 1
  settle_ridges(task)
}

settle.iv_weak <- function(task, folds) {
  columns <- exogenous_columns(task$blocks)
  if (!is.null(columns)) task <- beside_exogenous(task, columns)
  task <- with_moments(task, folds)
  task$strength <- task$strength %||%
    identified(task, iv_strength(task), columns)
  warn_weak(task)
  task$unit <- block_trace(task, "a") / length(task$y)
  rule <- strength_rule(task$strength, task$unit, task$whole$d$own$df)
  if (!is.null(task$correct)) rule$keep <- 1
  for (name in names(rule)) task[[name]] <- task[[name]] %||% rule[[name]]
  task
}

# Returns the task with the strength of the instruments beside exogenous
# columns. If a line is fitted, functions of the exogenous columns are
# partialled out of the fit as well.
beside_exogenous <- function(task, columns) {
  given <- given_task(task, columns)
  strength <- identified(task, instrument_strength(given, columns), columns)
  if (takes_line(strength) && (task$linear %||% Inf) == Inf) {
    task <- given
  } else {
    task$apart <- given
  }
  task$strength <- strength
  task
}

# --- The object --------------------------------------------------------------

# A fit, see ?rkhs_iv.
new_iv <- function(task, system, penalty, solution) {
  nested <- is_nested(task)
  values <- iv_functions(task, system, lapply(solution$theta, drop))
  fitted <- values$fitted
  adversary <- adversaries(task, system, solution$theta)
  rows <- names(task$outcome)
  rows <- rows %||%
    rownames(task$blocks[[task$called[["a"]]]]$sample$x)
  dimnames(fitted) <- list(rows, names(values$functions))
  dimnames(adversary) <- list(rows, c("first", "second")[seq_along(task$rows)])
  residuals <- cbind(
    first = stats::setNames(task$outcome, rows) - fitted[, 1L],
    second = if (nested) {
      fitted[, 2L] - (task$w %||% 1) * fitted[, 1L]
    }
  )
  shown <- \(x) if (nested) x else x[, 1L]
  lambda <- rev(used_ridges(task))
  fields <- list(
    called = task$called, fitted.values = shown(fitted),
    residuals = shown(residuals),
    penalty = task$penalty, lambda = stats::setNames(
      lambda, paste0("lambda", if (nested) c("_c", "_d"))
    ), mu = if (nested) {
      c(mu_g = penalty$mu, mu_h = penalty$mu * task$ratio)
    } else {
      c(mu = penalty$mu)
    },
    intercept = values$intercept[1L],
    criterion = stats::setNames(
      solution$criterion / task$whole$n, if (nested) c("first", "second")
    )[seq_along(lambda)],
    rank = stats::setNames(system$ranks, task$called[names(system$ranks)]),
    cv = penalty$cv,
    first_stage = if (nested) task$first_stage else task$first_stage$d,
    rule = if (!is.null(penalty$cv)) task$control$rule,
    alpha_scale = if (!is.null(task$preset)) penalty$value,
    functions = values$functions, adversary = adversary,
    blocks = task$blocks,
    kernels = lapply(task$blocks, \(block) block$sample$kernel),
    y = task$outcome, w = task$w, rows = if (nested) task$rows,
    n = length(task$y), method = sub("iv_", "", class(task)),
    centered = task$center, landmarks = task$control$landmarks,
    arguments = task$arguments,
    # Random features cannot be drawn again, so the fit keeps them.
    maps = if (!is.null(task$control$features)) lapply(task$maps, small_map)
  )
  new_fit(c(if (nested) "rkhs_iv_nested", "rkhs_iv"), c(
    fields, inference(task, system, penalty, solution, values$intercept)
  ))
}

# The ridges of the moments.
used_ridges <- function(task) {
  vapply(names(task$rows), \(of) {
    penalty_rule(task, task$whole[[of]]$n, of)$lambda
  }, 0)
}

# The functions g and h by their coefficients theta, their `fitted` values, and
# the `intercept`: the constant and the coefficients of controls.
iv_functions <- function(task, system, theta) {
  maps <- task$maps[c("a", if (is_nested(task)) "b")]
  functions <- stats::setNames(
    Map(map_function, maps, theta, list(task$straight, NULL)[seq_along(maps)]),
    names(theta)
  )
  added <- intercept <- system$mean
  if (!is.null(task$design)) {
    intercept <- intercept - drop(product(task$partial$a, as.matrix(theta$g)))
    added <- drop(product(task$design, as.matrix(intercept)))
  }
  fitted <- added + do.call(cbind, Map(map_values, maps, functions, theta))
  given <- task$given
  if (!is.null(given)) {
    k <- nrow(given$shift)
    weights <- given_weights(given, intercept[-seq_len(k)])
    intercept <- intercept[seq_len(k)] -
      drop(product(given$shift, as.matrix(weights)))
    functions$g$free <- c(list(weights = weights), given)
  }
  list(functions = functions, fitted = fitted, intercept = intercept)
}

# The values of the adversaries, a column for each moment.
adversaries <- function(task, system, theta) {
  do.call(cbind, lapply(names(task$rows), \(of) {
    map <- task$maps[[of]]
    most <- adversary_theta(task, task$whole[[of]], of, theta, system$mean)
    values <- map_values(map, map_function(map, most), most)
    if (is.null(task$design)) return(values)
    values - product(task$design, product(task$partial[[of]], as.matrix(most)))
  }))
}

# Returns the further fields of a fit that has standard errors.
inference <- function(task, ...) UseMethod("inference")

inference.iv_classic <- function(task, ...) NULL

inference.iv_weak <- function(task, system, penalty, solution, intercept) {
  strength <- task$strength
  cv <- penalty$cv
  mu <- if (is.null(cv)) penalty$mu else cv$mu[which.min(cv$score)]
  # In intervals the direction that is predicted best must not be shrunk much.
  top <- max(system$spectrum$values)
  if (top > 0) mu <- min(mu, top)
  errors <- iv_errors(task, system, solution$theta$g, mu)
  errors <- c(errors, list(
    map = small_map(task$maps$a), partial = task$partial$a,
    slopes = attr(task$straight, "slopes"), given = task$given
  ))
  # If the instruments tell only as many numbers as there are slopes, no number
  # is left for a test.
  if (strength$span - length(attr(strength, "columns")) < 1) {
    errors$overid[] <- NA
  }
  # Beside a line without penalty there may be a curve; the table then has the
  # coefficients and errors of the line alone.
  alone <- task$linear == Inf && !has_no_curve(task)
  settings <- task[intersect(c("correct", "linear", "keep", "columns"),
                             names(task))]
  c(settings, line_table(task, if (alone) {
    iv_errors(task, line_system(task, system))
  } else {
    errors
  }), list(
    controls = stats::setNames(
      intercept, colnames(task$design)[seq_along(intercept)]
    )[-1L],
    design = attributes(task$design)[c("kept", "means")],
    strength = strength, error = errors
  ))
}

# --- Warnings ----------------------------------------------------------------

warn_linear <- function(task) {
  for (of in names(task$maps)) {
    sample <- task$maps[[of]]$sample
    if (!knows_points(sample)) next
    kernel <- sample$kernel
    rows <- task$rows[[of]]
    if (of %in% c("a", "b")) {
      if (is.null(task$design) && kernel_has(kernel, "linear form") &&
            kernel$offset == 0 && !kernel_has(kernel, "scaling") &&
            # The columns of dummies add up to a constant.
            max(abs(qr.resid(qr(sample$x), rep(1, sample$n)))) >= 1e-8) {
        warn_kernmean("the functions of kernel_linear() have no constant: ",
                      "that of '", task$called[[of]], "' is a line through ",
                      if (task$center) "(0, mean of y)" else "0",
                      "; kernel_poly(1) has one", kind = "linear")
      }
    } else if (sum(rows) > 1L &&
                 all(is_constant(take_rows(sample$x, rows)))) {
      warn_kernmean("the instruments '", task$called[[of]], "' do not vary: ",
                    "they say nothing of the function", kind = "instruments")
    }
  }
}

# Warns if a projection keeps nearly all directions, because the instruments
# then say nothing.
warn_instruments <- function(task, ranks) {
  lambda <- used_ridges(task)
  for (of in names(lambda)[lambda == 0]) {
    n <- task$whole[[of]]$n
    if (n < 2L) next
    name <- task$called[[of]]
    if (ranks[[of]] > 0.9 * n) {
      warn_kernmean(
        "the projection on the instruments '", name, "' keeps ", ranks[[of]],
        " of ", n, " directions: they have next to no effect, and the fit ",
        "only smooths its outcome; give a ridge, lambda > 0 or \"gcv\", ",
        "discrete instruments, 'landmarks', or a larger 'tol_instrument'",
        kind = "instruments"
      )
    } else if (of == "d" && !is_norm(task) && ranks[["a"]] >= task$whole$n) {
      warn_kernmean(
        "the range of '", task$called[["a"]], "' has all ", task$whole$n,
        " directions: fitted values do not depend on it nor on its kernel, ",
        "and predictions interpolate; take penalty = \"norm\", 'landmarks', ",
        "or a larger 'tol_learner'", kind = "instruments"
      )
    }
  }
}

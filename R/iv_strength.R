# What the instruments say of the regressors, whatever y is, and what goes by
# it. Regressors that are instruments, too, are exogenous, and strength is that
# of the other instruments given these.

# The columns of x that stand in z as well, by number and name, and those of z
# that do not stand in x, a data frame: list(both, alone, binary: have the
# others of x two values each?); NULL where all or none of x are such.
exogenous_columns <- function(blocks) {
  if (!all(vapply(blocks, \(block) knows_points(block$sample), NA))) {
    return(NULL)
  }
  frames <- Map(block_columns, blocks[c("x", "z")], c("x", "z"))
  plain <- lapply(frames, lapply, as.vector)
  stands <- \(columns, among) vapply(columns, \(column) {
    any(vapply(among, identical, NA, column))
  }, NA)
  both <- stands(plain$x, plain$z)
  if (!any(both) || all(both)) {
    return(NULL)
  }
  list(both = which(both), alone = frames$z[!stands(plain$z, plain$x)],
       binary = all(lengths(lapply(plain$x[!both], unique)) == 2L))
}

# The coordinates of some columns of a block at its points z.
column_points <- function(block, columns, z) {
  scaling <- block$sample$kernel$scaling
  if (is.null(scaling$levels)) {
    return(take_columns(unscale_points(block$sample$kernel, z), columns))
  }
  # As mixed_points() has them.
  of <- c(which(!scaling$nominal),
          rep(which(scaling$nominal), lengths(scaling$levels)))
  take_columns(z, which(of %in% columns))
}

# Features enough of either, in the order of what they add.
most_given <- 128L

given_factor <- function(sample, tolerance, most = most_given) {
  .Call(C_r_pivoted, sample_source(sample), tolerance, as.integer(most), TRUE)
}

# What the functions of exogenous columns are spanned by at points z of x.
given_features <- function(given, block, z) {
  points <- scale_points(given$kernel, column_points(block, given$columns, z))
  sections <- fold_store(given$kernel, points, given$centers)
  cbind(points, t(solve_lower(given$root, t(sections))))
}

# The kernel asked for, if it can be that of some of the columns.
part_kernel <- function(block) {
  kernel <- block$open
  if (takes_kernel(block) && !kernel_has(kernel, "scaling") &&
        !kernel_has(kernel, "function") && !is.function(kernel$bandwidth) &&
        length(kernel$bandwidth) < 2L) {
    kernel
  }
}

# A task in which functions of the exogenous columns are partialled out, with 1
# and the controls, and the others of z are the instruments. given: these
# functions, orthonormal, are (features - C shift) back, C 1 and controls.
given_task <- function(task, columns) {
  block <- task$blocks[["x"]]
  points <- column_points(block, columns$both, block$sample$x)
  sample <- suppressWarnings(fit_sample(
    points, part_kernel(block) %||% kernel_rbf(), block$scale %||% TRUE, "x"
  ))
  n <- sample$n
  pivoted <- given_factor(sample, 1e-4, max(1, min(n / 10, most_given)))
  given <- list(columns = columns$both, kernel = sample$kernel,
                centers = take_rows(sample$x, pivoted$pivots),
                root = take_rows(pivoted$factor, pivoted$pivots))
  root <- sqrt(task$weights)
  design <- root * task$design
  all <- root * cbind(sample$x, pivoted$factor)
  found <- qr(cbind(design, all), tol = 1e-6)
  kept <- sort(found$pivot[seq_len(found$rank)] - ncol(design))
  given$kept <- kept[kept > 0]
  if (length(given$kept)) {
    given$shift <- qr.coef(qr(design), all)
    found <- qr(take_columns(all - product(design, given$shift), given$kept),
                tol = 0)
    given$back <- backsolve(qr.R(found), diag(found$rank))
    task$design <- structure(
      cbind(task$design, qr.Q(found) / root), kept = attr(task$design, "kept"),
      means = attr(task$design, "means")
    )
    task$given <- given
  }
  task$straight <- straight_columns(block, task$design)
  if (length(columns$alone)) {
    own <- has_own_kernel(columns$alone)
    block <- task$blocks[["z"]]
    alone <- suppressWarnings(read_variable(
      columns$alone, if (!own) part_kernel(block), "z", "kernel",
      if (!own) block$scale %||% TRUE
    ))$sample
    pivoted <- given_factor(alone, 1e-8)
    task$maps$d <- new_map("exact", alone, length(pivoted$pivots),
                           factor = pivoted$factor, centers = pivoted$pivots)
  }
  task
}

# Those functions at points z of x, `design` C there.
given_design <- function(given, block, z, design) {
  if (is.null(given)) {
    return(design)
  }
  left <- given_features(given, block, z) - product(design, given$shift)
  cbind(design, product(take_columns(left, given$kept), given$back))
}

# The function that their coefficients make, as weights of the features.
given_weights <- function(given, coefficients) {
  weights <- numeric(ncol(given$shift))
  weights[given$kept] <- product(given$back, as.matrix(coefficients))
  weights
}

# The strength of instruments that are no regressors, by themselves, of a task
# of given_task().
instrument_strength <- function(task, columns) {
  none <- !length(columns$alone) || ncol(task$design) >= length(task$y) - 1L
  structure(if (none) no_strength(0) else moment_strength(task),
            given = names(columns$both))
}

moment_strength <- function(task) {
  task <- partialled(task)
  iv_strength(task, task$whole)
}

# A task with what its design leaves of the features, their moments, `whole`,
# and a ridge for these, unless there was none.
partialled <- function(task) {
  rows <- seq_along(task$y)
  task$partial <- partial_out(task)
  task$whole <- row_moments(task, rows)
  if (task$lambda$d > 0) {
    stage <- first_stage(task$whole$d, task$maps$a$r, task$design,
                         ncol(task$straight))
    task$lambda$d <- stage$lambda[which.min(stage$gcv)]
  }
  task$whole$d$own <- own_moments(task, task$whole, rows)
  task
}

no_strength <- \(df) data.frame(F = 0, F_linear = NA_real_, df = df, span = 0,
                                r.squared = 0, p.value = 1, p_linear = NA_real_)

# F statistics, about 1 where the instruments say nothing, of the features and
# of the linear columns; df: the directions of the instruments; span: how many
# they have without a ridge; p: of columns that they do not predict, by a gamma
# law with mean 1.
iv_strength <- function(task, whole) {
  root <- action_root(task, whole, "d")
  own <- whole$d$own$square
  n <- ncol(own)
  line <- is_linear_column(task, n)
  x <- root$times(take_columns(whole$d$with, seq_len(n)))
  shares <- root$times(t(root$times(whole$d$gram)))
  phi <- !line
  df <- whole$d$own$df
  all <- sum(whole$d$square[phi])
  if (!(sum(diag(own)[phi]) > rounding_of(n, all)) || !(df > 0)) {
    return(no_strength(df))
  }
  # Over what is left of the features, not all of them: F would have the bound
  # n/df.
  free <- 1 - (ncol(task$design) - 1) / whole$n
  left <- \(explained, all) (free - df / whole$n) /
    pmax(1 - explained / all, 1e-12)
  explained <- sum(x[, phi]^2)
  ratio <- explained / sum(diag(own)[phi])
  by_chance <- \(ratio, part) {
    shape <- (sum(diag(shares)) * sum(diag(part)))^2 /
      (2 * sum(shares^2) * sum(part^2))
    stats::pgamma(ratio * free, shape, shape, lower.tail = FALSE)
  }
  linear <- p_linear <- NA_real_
  columns <- NULL
  if (any(line)) {
    base <- own[line, line, drop = FALSE]
    lower <- t(chol(base + diag(1e-10 * mean(diag(base)), sum(line))))
    along <- take_columns(x, line)
    white <- forwardsolve(lower, t(along))
    least <- eigen(tcross(white), TRUE)
    v <- backsolve(t(lower), least$vectors[, sum(line)])
    rest <- task$straight - product(task$design,
                                    take_columns(task$partial$a, line))
    p_linear <- by_chance(least$values[sum(line)], diag(1))
    # Of combinations of the linear columns, a column each.
    v <- cbind(v, diag(sum(line)))
    each <- c(least$values[sum(line)], colSums(along^2) / diag(base)) *
      left(colSums(product(along, v)^2),
           colSums(task$weights * product(rest, v)^2))
    linear <- each[1L]
    columns <- stats::setNames(each[-1L], colnames(task$straight))
  }
  structure(data.frame(
    F = ratio * left(explained, all), F_linear = linear, df = df,
    span = length(kept_spectrum(whole$d$gram, 1e-8)$values),
    r.squared = explained / all,
    p.value = by_chance(ratio, own[phi, phi, drop = FALSE]),
    p_linear = p_linear
  ), columns = columns)
}

# A factor or a regressor of two values, or instruments that tell one or two
# numbers, identify a straight line and no curve; without a curve in the kernel
# there is nothing to say. The strength, with attr "line": why it is one.
identified <- function(task, strength, columns) {
  x <- task$blocks[["x"]]$sample$x
  two <- \(column) length(unique(column)) == 2L
  attr(strength, "line") <- if (is_factor_variable(task$blocks[["x"]]) ||
        (columns$binary %||% (length(x) > 0L && all(apply(x, 2L, two))))) {
    "treatment"
  } else if (strength$span < 3 &&
               task$maps$a$r > ncol(task$straight) + 1L) {
    "instruments"
  }
  strength
}

strength_words <- function(strength, number) {
  columns <- attr(strength, "columns")
  given <- attr(strength, "given")
  paste0(
    "effective F ", number(strength$F), " (features of x)",
    if (length(columns)) paste0(", ", shorten(paste0(
      number(columns), " (line along ", names(columns), ")"
    ))),
    if (length(columns) > 1L) {
      paste0(", ", number(strength$F_linear), " (least of all lines)")
    },
    if (length(given)) paste(" given", shorten(given, sep = " + "))
  )
}

# What the instruments do not identify is said once, by the warning of weak
# instruments; FALSE if it was, or where a line is all there is.
warn_weak <- function(task, strength) {
  name <- task$called[["a"]]
  number <- \(x) format_number(x, 2L)
  lines <- length(attr(strength, "columns"))
  numbers <- paste("the instruments of", quoted(name), "tell about",
                   count_of(round(strength$span), "number"))
  weak <- is_weak(strength)
  p <- counted_strength(strength)$p[1L]
  if (strength$span < lines) {
    warn_kernmean(numbers, ", and ", lines, " are needed, one for each of ",
                  quoted(names(attr(strength, "columns"))), ": what is shown ",
                  "is not identified", kind = "weak")
  } else if (weak) {
    warn_kernmean(
      "the instruments of '", name, "' are weak (",
      strength_words(strength, number), ", p = ", number(p),
      "): ", if (p > 0.05) {
        if (length(attr(strength, "given"))) {
          "what g does along the others is not identified"
        } else {
          paste("g is not identified, and what is shown is close to a constant",
                "for that reason alone")
        }
      } else {
        paste0("at most a straight line", if (
          isTRUE(strength$F_linear < weak_below)
        ) ", not even its slope in every column,", " is identified, and the ",
        "estimate may be biased towards the regression of y on '", name,
        "' and towards a constant")
      }, kind = "weak"
    )
  } else if (is_short(strength)) {
    warn_kernmean("the instruments of '", name, "' are not strong (",
                  strength_words(strength, number), "): intervals may be too ",
                  "short", if (lines == 1L) {
                    paste("; confint(fit, method = \"ar\") has one of a",
                          "straight line that holds")
                  }, kind = "weak")
  }
  if (identical(attr(strength, "line"), "instruments") && !weak &&
        !identical(task$linear, Inf)) {
    warn_kernmean(numbers, ": a straight line in ", quoted(names(attr(
      strength, "columns"
    ))), ", ", if (
      is.null(task$linear)
    ) "which is fitted; a curve would be the penalty's" else
      "and what else the curve has is the penalty's", kind = "line")
  }
  !weak && is.null(attr(strength, "line"))
}

# F and p that count, of the features and of the line: of the line alone where
# there is no curve.
counted_strength <- function(strength) {
  line <- !is.null(attr(strength, "line")) && !is.na(strength$F_linear)
  list(F = c(if (!line) strength$F, strength$F_linear),
       p = c(if (!line) strength$p.value, strength$p_linear))
}

least_f <- \(strength) min(counted_strength(strength)$F, na.rm = TRUE)

weak_below <- 3

# Do the instruments identify a line at least?
is_weak <- function(strength) {
  counted_strength(strength)$p[1L] > 0.05 || least_f(strength) < weak_below
}

# Of one direction what referees ask for, F of at least 10; of several, whose
# number is not what biases a corrected estimate, F - 1 counts with the root of
# it.
short_below <- 10

is_short <- function(strength) {
  f <- c(strength$F_linear, strength$F)
  f <- f[!is.na(f)][1L]
  1 + (f - 1) * sqrt(max(1, strength$df)) < short_below
}

warn_intervals <- function(strength) {
  if (is_weak(strength)) {
    warn_kernmean("the instruments are weak (", strength_words(
      strength, \(x) format_number(x, 2L)
    ), "): intervals do not hold for what they do not identify", kind = "weak")
  }
}

# Is a line what is fitted, where it is identified?
takes_line <- function(strength) {
  lines <- length(attr(strength, "columns"))
  !is.null(attr(strength, "line")) && lines > 0L && lines <= strength$span &&
    max(counted_strength(strength)$p) < 0.05
}

# Is there nothing but the line?
has_no_curve <- function(task, strength) {
  strength$span <= length(attr(strength, "columns")) ||
    identical(attr(strength, "line"), "treatment") &&
      is.null(attr(strength, "given")) &&
      (ncol(task$straight) == 1L || is_factor_variable(task$blocks[["x"]]))
}

# By how much the errors of a ratio grow with a weak denominator, to second
# order: E[(d/D)^2] is about 1 + 3/F for D with mean d.
weak_spread <- function(strength) {
  if (is_weak(strength)) sqrt(1 + 3 / max(least_f(strength), 0.01)) else 1
}

# What goes by the strength: list(correct: alpha, linear: the scale of the
# squares of the linear columns, keep: the share of theta, all where functions
# of exogenous columns are in g), `df` the directions of the estimator. One
# direction needs little correction once F is above 2, many do until it is far
# above 3, and a line, which has little noise to gain by less, as long as it is.
strength_rule <- function(strength, unit, df) {
  # What exogenous directions add to D biases, too.
  least <- max(1, least_f(strength) * min(1, strength$df / df, na.rm = TRUE))
  many <- max(0, 1 - 1 / df) *
    if (takes_line(strength)) 1 else min(1, weak_below / least)
  chance <- counted_strength(strength)$p
  beside <- length(attr(strength, "given")) > 0L
  # All is kept beside exogenous columns, so chance must not make a line.
  known <- if (beside && chance[1L] > 0.05) 0 else
    max(0, 1 - 1 / strength$F_linear, na.rm = TRUE)
  list(correct = max(least^-2, many),
       linear = if (takes_line(strength)) Inf else
         30 * unit * known / max(1, strength$F)^2,
       keep = if (beside) 1 else
         1 - exp(mean(log(chance), na.rm = TRUE)))
}

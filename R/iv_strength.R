# The strength of instruments is how much they tell of the regressors, which
# does not depend on y, and the correction of a fit depends on it. Regressors
# that are instruments as well are exogenous; strength is then that of the other
# instruments given the exogenous columns.

# The exogenous columns, NULL where all or none of x are such. `both` has the
# numbers, with names, of the columns of x that stand in z as well; `alone` is a
# data frame of those of z that do not stand in x; `own` has the numbers of the
# columns that stand in x alone, and in z alone; `binary` says that each of the
# former has two values.
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
  alone <- !stands(plain$z, plain$x)
  list(both = which(both), alone = frames$z[alone],
       own = list(x = which(!both), z = which(alone)),
       binary = all(lengths(lapply(plain$x[!both], unique)) == 2L))
}

# The coordinates of some columns of a block at its points z.
column_points <- function(block, columns, z) {
  kernel <- block$sample$kernel
  if (is.null(kernel$scaling$levels)) {
    return(take_columns(unscale_points(kernel, z), columns))
  }
  take_columns(z, which(mixed_columns(kernel$scaling) %in% columns))
}

# Exogenous columns, and the other instruments, get at most this many features.
# The features that add most come first.
most_given <- 128L

given_factor <- function(sample, tolerance, most = most_given) {
  pivoted_factor(sample_source(sample), tolerance, most)
}

# The features that span the functions of exogenous columns, at points z of x.
given_features <- function(given, block, z) {
  points <- scale_points(given$kernel, column_points(block, given$columns, z))
  sections <- fold_store(given$kernel, points, given$centers)
  cbind(points, t(solve_lower(given$root, t(sections))))
}

# The kernel that the user gave for a block, if it can be used for some of the
# columns alone, or NULL.
part_kernel <- function(block) {
  kernel <- block$open
  if (takes_kernel(block) && !kernel_has(kernel, "scaling") &&
        !kernel_has(kernel, "function") && !is.function(kernel$bandwidth) &&
        length(kernel$bandwidth) < 2L) {
    kernel
  }
}

# Returns the task in which functions of the exogenous columns are partialled
# out, with 1 and the controls, and in which the other columns of z are the
# instruments.
given_task <- function(task, columns) {
  block <- task$blocks[["x"]]
  task <- add_given(task, block, columns$both)
  task$straight <- straight_columns(block, task$design)
  if (length(columns$alone)) {
    own <- has_own_kernel(columns$alone)
    block <- task$blocks[["z"]]
    alone <- suppressWarnings(read_variable(
      columns$alone, if (!own) part_kernel(block), "z", "kernel",
      if (!own) block$scale %||% TRUE
    ))$sample
    task$maps$d <- pivoted_map(alone, given_factor(alone, 1e-8))
  }
  task
}

# Returns the task with functions of these columns in its design. The functions
# are (features - C shift) back, for those features that are `kept`, and are
# orthonormal; C is 1 and the controls. `given` has what makes them; see
# given_features() for its other fields.
add_given <- function(task, block, columns) {
  points <- column_points(block, columns, block$sample$x)
  sample <- suppressWarnings(fit_sample(
    points, part_kernel(block) %||% kernel_rbf(), block$scale %||% TRUE, "x"
  ))
  n <- sample$n
  pivoted <- given_factor(sample, 1e-4, max(1, min(n / 10, most_given)))
  root <- sqrt(task$weights)
  design <- root * task$design
  features <- root * cbind(sample$x, pivoted$factor)
  found <- qr(cbind(design, features), tol = 1e-6)
  kept <- sort(found$pivot[seq_len(found$rank)] - ncol(design))
  kept <- kept[kept > 0]
  if (!length(kept)) {
    return(task)
  }
  shift <- qr.coef(qr(design), features)
  found <- qr(take_columns(features - product(design, shift), kept), tol = 0)
  task$design <- structure(
    cbind(task$design, qr.Q(found) / root), kept = attr(task$design, "kept"),
    means = attr(task$design, "means")
  )
  task$given <- list(
    columns = columns, kernel = sample$kernel,
    centers = take_rows(sample$x, pivoted$pivots),
    root = take_rows(pivoted$factor, pivoted$pivots), kept = kept,
    shift = shift, back = backsolve(qr.R(found), diag(found$rank))
  )
  task
}

# The design at points z of x. The argument `design` has its columns for 1 and
# the controls, and functions of exogenous columns are added.
given_design <- function(given, block, z, design) {
  if (is.null(given)) {
    return(design)
  }
  left <- given_features(given, block, z) - product(design, given$shift)
  cbind(design, product(take_columns(left, given$kept), given$back))
}

# The weights of the features in the function that has these coefficients.
given_weights <- function(given, coefficients) {
  weights <- numeric(ncol(given$shift))
  weights[given$kept] <- product(given$back, as.matrix(coefficients))
  weights
}

# The strength of instruments that are no regressors, in a task of given_task().
instrument_strength <- function(task, columns) {
  none <- !length(columns$alone) || ncol(task$design) >= length(task$y) - 1L
  structure(if (none) no_strength(0) else moment_strength(task),
            given = names(columns$both))
}

moment_strength <- function(task) iv_strength(partialled(task))

# The strength of instruments, a data frame of one row: F and F_linear, of the
# features and of the linear columns, about 1 where the instruments say nothing;
# df, their directions; span, how many they have without a ridge; r.squared; and
# p.value and p_linear by a gamma law with mean 1. Attribute "columns" has F of
# each linear column, "given" the names of exogenous columns, and "line" says
# why a line is all that is identified, see identified().
new_strength <- function(f, df, span, r.squared, p.value, f_linear = NA_real_,
                         p_linear = NA_real_, columns = NULL) {
  structure(data.frame(
    F = f, F_linear = f_linear, df = df, span = span, r.squared = r.squared,
    p.value = p.value, p_linear = p_linear
  ), columns = columns)
}

no_strength <- \(df) new_strength(0, df, 0, 0, 1)

# The strength in a task of with_moments().
iv_strength <- function(task) {
  whole <- task$whole
  root <- action_root(task, whole, "d")
  own <- whole$d$own$square
  n <- ncol(own)
  line <- is_linear_column(task, n)
  x <- root$times(take_columns(whole$d$with, seq_len(n)))
  df <- whole$d$own$df
  all <- sum(whole$d$square[!line])
  base <- sum(diag(own)[!line])
  if (!(base > rounding_of(n, all)) || !(df > 0)) {
    return(no_strength(df))
  }
  # F divides by what is left of the features. If it divided by all of them, it
  # could not exceed n/df.
  free <- 1 - (ncol(task$design) - 1) / whole$n
  left <- \(explained, all) (free - df / whole$n) /
    pmax(1 - explained / all, 1e-12)
  shares <- root$times(t(root$times(whole$d$gram)))
  by_chance <- \(ratio, part) {
    shape <- (sum(diag(shares)) * sum(diag(part)))^2 /
      (2 * sum(shares^2) * sum(part^2))
    stats::pgamma(ratio * free, shape, shape, lower.tail = FALSE)
  }
  explained <- sum(x[, !line]^2)
  ratio <- explained / base
  lines <- line_ratios(task, own[line, line, drop = FALSE],
                       take_columns(x, line), left)
  new_strength(
    ratio * left(explained, all), df,
    length(kept_spectrum(whole$d$gram, 1e-8)$values), explained / all,
    by_chance(ratio, own[!line, !line, drop = FALSE]), lines$least,
    if (any(line)) by_chance(lines$ratio, diag(1)) else NA_real_,
    lines$columns
  )
}

# Returns F of the linear columns: `least`, that of the direction that the
# instruments explain least, whose `ratio` is F without the factor left(), and
# `columns`, that of each column. `base` is Z'DZ and `along` is L'Z, both of the
# linear columns.
line_ratios <- function(task, base, along, left) {
  n <- ncol(base)
  if (!n) {
    return(list(least = NA_real_))
  }
  lower <- t(chol(base + diag(1e-10 * mean(diag(base)), n)))
  directions <- eigen(tcross(forwardsolve(lower, t(along))), TRUE)
  ratio <- directions$values[n]
  v <- cbind(backsolve(t(lower), directions$vectors[, n]), diag(n))
  rest <- task$straight -
    product(task$design, take_columns(task$partial$a, seq_len(n)))
  each <- c(ratio, colSums(along^2) / diag(base)) *
    left(colSums(product(along, v)^2),
         colSums(task$weights * product(rest, v)^2))
  list(least = each[1L], ratio = ratio,
       columns = stats::setNames(each[-1L], colnames(task$straight)))
}

# Returns the strength with the attribute "line" if a straight line is
# identified but no curve. It is "treatment" if x is a factor or its endogenous
# columns have two values each, or "instruments" if the instruments tell only
# one or two numbers. The latter is for kernels that have a curve.
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

# Warns of what the instruments do not identify.
warn_weak <- function(task) {
  strength <- task$strength
  name <- task$called[["a"]]
  columns <- names(attr(strength, "columns"))
  lines <- length(columns)
  told <- paste("the instruments of", quoted(name), "identify about",
                count_of(round(strength$span), "number"))
  said <- paste0("(", strength_words(strength, \(x) format_number(x, 2L)))
  weak <- is_weak(strength)
  if (strength$span < lines) {
    warn_kernmean(told, ", and ", lines, " are needed, one for each of ",
                  quoted(columns), ": what is shown is not identified",
                  kind = "weak")
  } else if (weak) {
    p <- counted_strength(strength)$p[1L]
    warn_kernmean("the instruments of '", name, "' are weak ", said, ", p = ",
                  format_number(p, 2L), "): ",
                  weak_words(strength, p, name), kind = "weak")
  } else if (is_short(strength)) {
    warn_kernmean("the instruments of '", name, "' are not strong ", said,
                  "): intervals may be too short", if (lines == 1L) {
                    paste("; confint(fit, method = \"ar\") has one of a",
                          "straight line that holds")
                  }, kind = "weak")
  }
  if (identical(attr(strength, "line"), "instruments") && !weak &&
        !identical(task$linear, Inf)) {
    warn_kernmean(told, ": a straight line in ", quoted(columns), ", ", if (
      is.null(task$linear)
    ) "which is fitted; a curve would come from the penalty" else
      "and the rest of the curve comes from the penalty", kind = "line")
  }
}

weak_words <- function(strength, p, name) {
  if (p <= 0.05) {
    return(paste0("at most a straight line", if (
      isTRUE(strength$F_linear < weak_below)
    ) ", not even its slope in every column,", " is identified, and the ",
    "estimate may be biased towards the regression of y on '", name,
    "' and towards a constant"))
  }
  if (length(attr(strength, "given"))) {
    return("what g does along the others is not identified")
  }
  paste("g is not identified, and what is shown is close to a constant for",
        "that reason alone")
}

# Do the instruments tell a curve? If they do not, a warning has said so, and a
# large penalty is no news. Classic fits have no strength.
tells_curve <- function(strength) {
  is.null(strength) || !is_weak(strength) && is.null(attr(strength, "line"))
}

# Returns the F and p that count: those of the features first and those of the
# line last, or only those of the line if there is no curve.
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

# Referees ask for an F of at least 10 for one direction. The number of
# directions does not bias a corrected estimate, so with several of them F - 1
# is multiplied by the root of their number.
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

# Does the fit take a line without penalty? It does if only a line is
# identified.
takes_line <- function(strength) {
  lines <- length(attr(strength, "columns"))
  !is.null(attr(strength, "line")) && lines > 0L && lines <= strength$span &&
    max(counted_strength(strength)$p) < 0.05
}

# Does a line without penalty take all that the instruments tell?
has_no_curve <- function(task) {
  strength <- task$strength
  isTRUE(task$linear == Inf) && (
    strength$span <= length(attr(strength, "columns")) ||
      identical(attr(strength, "line"), "treatment") &&
        is.null(attr(strength, "given")) &&
        (ncol(task$straight) == 1L || is_factor_variable(task$blocks[["x"]]))
  )
}

# A weak denominator D makes the errors of a ratio grow by this factor, to
# second order: E[(d/D)^2] is about 1 + 3/F if D has the mean d.
weak_spread <- function(strength) {
  if (is_weak(strength)) sqrt(1 + 3 / max(least_f(strength), 0.01)) else 1
}

# The settings of a fit by the strength of its instruments, for an estimator of
# `df` directions and the `unit` tr K/n: alpha (`correct`), the scale of the
# squares of the linear columns (`linear`), and the share of theta that is kept
# (`keep`). One direction needs little correction once F is above 2; many
# directions need it until F is far above 3. A line needs it at any F, because
# less correction would hardly make it less noisy.
strength_rule <- function(strength, unit, df) {
  # D contains the exogenous directions, too, and their part adds to the bias.
  least <- max(1, least_f(strength) * min(1, strength$df / df, na.rm = TRUE))
  many <- max(0, 1 - 1 / df) *
    if (takes_line(strength)) 1 else min(1, weak_below / least)
  chance <- counted_strength(strength)$p
  beside <- length(attr(strength, "given")) > 0L
  # Beside functions of exogenous columns g is kept whole, so a line that is
  # there by chance would be kept, too; `known` = 0 takes it out.
  known <- if (beside && chance[1L] > 0.05) 0 else
    max(0, 1 - 1 / strength$F_linear, na.rm = TRUE)
  list(correct = max(least^-2, many),
       linear = if (takes_line(strength)) Inf else
         30 * unit * known / max(1, strength$F)^2,
       keep = if (beside) 1 else
         1 - exp(mean(log(chance), na.rm = TRUE)))
}

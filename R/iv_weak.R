# Instruments that may be weak. With the features of both blocks as residuals of
# the design C (1 and controls), F of the instruments and Z of the learner, its
# linear columns first, P = F(F'F + lambda I)^-1 F', D = diag(P), y~ = y - Cb:
#   A = Z'(P - alpha D)Z = U L U',  b = Z'(P - alpha D)y~,
#   theta = U (max(L, 0) + mu)^-1 U'b,  g(x) = C b + (phi(x) - C Gamma)'theta.
# D takes away what each row predicts of itself. By this part, weak instruments
# would bias the estimate towards the regression of y on x. alpha, the scale of
# the linear columns and the share of theta that is kept depend on the strength
# of the instruments, which does not depend on y.

# The design of n rows: 1 and the controls, less their means, with factors as
# dummies. Columns that are combinations of others are left out. The attribute
# "kept" has the numbers of the columns that stay, and "means" their means, for
# new rows.
read_design <- function(controls, n, weights) {
  if (is.null(controls)) {
    return(matrix(1, n, 1L))
  }
  columns <- covariate_columns(control_frame(controls, n), first = FALSE)
  means <- drop(cross(columns, as.matrix(weights))) / n
  design <- cbind(1, columns - rep(means, each = n))
  colnames(design) <- c("", make.unique(colnames(columns)))
  found <- qr(design, tol = 1e-7)
  kept <- sort(found$pivot[seq_len(found$rank)])
  size <- colSums(take_columns(design, kept)^2)
  if (!is_finite(size) || min(size) < 1e-280) {
    stop_input("'controls' must have columns whose squares are numbers; ",
               "rescale them")
  }
  lost <- colnames(design)[-kept]
  if (length(lost)) {
    warn_kernmean("columns of 'controls' that are constant, or made by ",
                  "others, are left out: ", quoted(lost), kind = "controls")
  }
  structure(take_columns(design, kept), kept = kept[-1L] - 1L,
            means = unname(means[kept[-1L] - 1L]))
}

control_frame <- function(controls, n) {
  if (inherits(controls, "formula")) {
    stop_input("'controls' must be columns, or come with a model by formula; ",
               "model.matrix() makes columns of a formula")
  }
  frame <- tryCatch(as.data.frame(controls), error = \(e) {
    stop_input("'controls' must be columns, not ", describe(controls),
               way_to_numbers(controls))
  })
  if (is.null(dim(controls))) names(frame) <- "controls"
  if (nrow(frame) != n) {
    stop_input("'controls' must have one row for each of the ", n,
               " rows, not ", nrow(frame))
  }
  read_mixed(bind_columns(frame, names(frame)), "controls")
}

# Returns the rows of the design for n rows of new controls; for NULL the
# controls are at their means.
new_design <- function(object, controls, n) {
  design <- object$design
  if (is.null(controls)) {
    return(cbind(1, matrix(0, n, length(object$controls))))
  }
  like <- control_frame(object$arguments$controls, object$n)
  frame <- control_frame(controls, n)
  names(frame) <- names(like)
  columns <- take_columns(covariate_columns(frame, like, "newdata", FALSE),
                          design$kept)
  cbind(1, columns - rep(design$means, each = n))
}

# The coefficients of the features on the design, over all rows.
partial_out <- function(task) {
  weighted <- task$design * task$weights
  root <- chol(cross(task$design, weighted))
  lapply(c(a = "a", d = "d"), \(of) {
    sums <- map_sums(task$maps[[of]], weighted)
    if (of == "a") sums <- cbind(cross(weighted, task$straight), sums)
    backsolve(root, backsolve(root, sums, transpose = TRUE))
  })
}

# Returns for each coordinate of mixed points the number of the column that it
# comes from.
mixed_columns <- function(scaling) {
  nominal <- scaling$nominal
  c(which(!nominal), rep(which(nominal), lengths(scaling$levels)))
}

# The coordinates of a block that indicate the first level of a factor.
first_levels <- function(block) {
  if (is_factor_variable(block)) {
    return(match(block$first, block$levels))
  }
  scaling <- block$sample$kernel$scaling
  if (length(scaling$levels)) {
    match(which(scaling$nominal), mixed_columns(scaling))
  }
}

# The linear columns of a learner, which are indicators for factors, each with
# standard deviation 1. Columns that are combinations of others and of the
# design are left out. The attribute "slopes" has for each column its slopes
# along the coordinates of the points, and "coordinates" has the number of the
# coordinate that it comes from.
straight_columns <- function(block, design) {
  sample <- block$sample
  keep <- if (knows_points(sample)) {
    # Whitened coordinates go back to the columns.
    slopes <- sample$kernel$scaling$back %||% diag(ncol(sample$x))
    x <- product(sample$x, slopes)
    setdiff(which(!is_constant(x)), first_levels(block))
  }
  if (!length(keep)) {
    return(matrix(0, sample$n, 0L))
  }
  spreads <- column_spreads(take_columns(x, keep))
  slopes <- take_columns(slopes, keep) /
    rep(spreads$unit * spreads$spread, each = ncol(x))
  labels <- colnames(sample$x)[keep]
  labels <- labels %||% paste0("x", if (length(keep) > 1L) keep)
  columns <- product(sample$x, slopes)
  found <- qr(cbind(design, columns), tol = 1e-7)
  own <- sort(found$pivot[seq_len(found$rank)] - ncol(design))
  own <- own[own > 0]
  structure(take_columns(columns, own), slopes = take_columns(slopes, own),
            coordinates = keep[own], dimnames = list(NULL, labels[own]))
}

# A task with the design, the linear columns and the settings of the method
# "weak".
with_design <- function(task, controls, weights, clusters, correct, linear) {
  class(task) <- "iv_weak"
  name <- task$called[["a"]]
  task$design <- read_design(controls, length(task$y), weights)
  task$straight <- straight_columns(task$blocks[[name]], task$design)
  if (isTRUE(linear > 0) && !ncol(task$straight)) {
    stop_input("'linear' must be NULL or 0 where '", name, "' has no columns ",
               "of numbers that vary; as.numeric() makes one of two levels")
  }
  task$weights <- weights
  task$clusters <- clusters
  task$correct <- correct
  task$linear <- linear
  task
}

is_linear_column <- \(task, n) seq_len(n) <= ncol(task$straight)

# Adds up value(z, t, x, half, i), which returns matrices for some rows i: z are
# the features of the learner in these rows, t their targets, x = R'^{-1}F' the
# features of the instruments, and half() multiplies a matrix with a row for
# each of them by a matrix H with H'H = D. With clusters D has the blocks of P
# that belong to the clusters, and value() gets one cluster at a time.
over_rows <- function(task, root, rows, value) {
  alone <- is.null(task$clusters)
  value_of <- \(i) {
    x <- root$times(t(task_features(task, "d", i)))
    half <- if (alone) \(z) sqrt(column_dots(x)) * z else \(z) product(x, z)
    value(task_features(task, "a", i), task_targets(task, i), x, half, i)
  }
  if (alone) {
    return(sum_panels(task, rows, value_of))
  }
  groups <- split(rows, task$clusters[rows, drop = TRUE])
  Reduce(\(a, b) Map(`+`, a, b), lapply(groups, value_of))
}

# The part of A and b by which rows predict themselves: square = Z'DZ, with =
# Z'D[y, C], and df = tr D.
own_moments <- function(task, whole, rows) {
  over_rows(task, action_root(task, whole, "d"), rows, \(z, t, x, half, i) {
    z <- half(z)
    list(square = cross(z), with = cross(z, half(t)), df = sum(x^2))
  })
}

# Returns the task with the coefficients of the features on the design, the
# moments of all rows and of each of the `cells` of rows, and a number for the
# ridge if it is to be chosen. `cells` is a factor.
with_moments <- function(task, cells = NULL) {
  rows <- seq_along(task$y)
  cells <- split(rows, cells %||% (0 * rows))
  task$partial <- partial_out(task)
  task$parts <- lapply(cells, row_moments, task = task)
  task$whole <- Reduce(moments_with, task$parts)
  task <- settle_ridges(task)
  task$parts <- Map(\(part, i) {
    part$d$own <- own_moments(task, task$whole, i)
    part
  }, task$parts, cells)
  task$whole <- Reduce(moments_with, task$parts)
  task
}

# Does the same, with a ridge chosen anew for what the design leaves of the
# features, unless the task has no ridge.
partialled <- function(task) {
  if (task$lambda$d > 0) task$lambda$d <- "gcv"
  with_moments(task)
}

# --- The system --------------------------------------------------------------

# At this scale of the linear columns, times tr K/n, no penalty that is tried
# matters.
unpenalized <- 1e6

iv_system.iv_weak <- function(task, moments, first = NULL) {
  m <- moments$d
  n <- ncol(m$own$square)
  root <- action_root(task, moments, "d")
  x <- root$times(m$with)
  learner <- seq_len(n)
  mean <- qr.coef(qr(take_columns(m$design, -1L)), m$design[, 1L])
  mean[is.na(mean)] <- 0
  contrast <- as.matrix(c(1, -mean))
  a <- take_columns(x, learner)
  t <- drop(product(take_columns(x, -learner), contrast))
  share <- task$correct * length(task$y) / moments$n
  units <- ifelse(is_linear_column(task, n),
                  sqrt(min(task$linear, unpenalized * task$unit)), 1)
  square <- (cross(a) - share * m$own$square) * outer(units, units)
  right <- units * drop(cross(a, as.matrix(t)) -
                          share * product(m$own$with, contrast))
  new_iv_system(a, t, square, right, n, mean,
                c(a = task$maps$a$r, d = root$rank),
                spectrum = .Call(C_r_eigen, square, n), units = units)
}

# The system of the line alone, without the curve.
line_system <- function(task, system) {
  line <- seq_len(ncol(task$straight))
  least <- eigen(system$square[line, line, drop = FALSE], TRUE)
  system$spectrum$values <- replace(0 * system$spectrum$values, line,
                                    least$values)
  system$spectrum$vectors[] <- 0
  system$spectrum$vectors[line, line] <- least$vectors
  system
}

# --- Errors ------------------------------------------------------------------

# For each linear column, with standard deviation 1 and mean 0, its values and
# what the instruments say of them: a data frame of fitted and actual. `fitted`
# has this of residuals on the design.
first_stage_values <- function(task, fitted) {
  line <- seq_len(ncol(fitted))
  fitted <- fitted / sqrt(row_weights(task, seq_along(task$y))) +
    product(task$design, take_columns(task$partial$a, line))
  x <- task$straight
  middle <- colMeans(x)
  stats::setNames(lapply(line, \(j) {
    data.frame(fitted = fitted[, j] - middle[j], actual = x[, j] - middle[j])
  }), colnames(x))
}

# Intervals belong to a fit with less bias. Its penalty is that of the estimate
# divided by this number.
less_penalty <- 64

# The parts that intervals of a fit are made of. They belong to the fit with the
# penalty mu over 64: g(x) = cb + (phi(x) - c Gamma)'theta has the variance v'Vv
# with v = (c, phi(x) - c Gamma).
#   theta, mean   theta and b
#   unit          of y, a power of 2: squares of squares must not overflow
#   covariance    V in these units, by the scores of rows, or of clusters
#   clusters      their number
#   first         see first_stage_values()
#   overid        the statistic and p-value of over_identification(), by the
#                 residuals of the coefficients `shown`; NULL: of theta
iv_errors <- function(task, system, shown = NULL, mu = 0) {
  # With so little penalty, directions that are not identified would be mere
  # noise, so the estimate gets no part in them.
  values <- system$spectrum$values
  least <- rounding_of(length(values), max(abs(values)))
  system$spectrum$values[values <= least] <- Inf
  theta <- spectral_theta(system, mu / less_penalty)
  shown <- shown %||% theta
  unit <- power_below(max(abs(task$y)))
  contrast <- \(theta) rbind(-theta, 1, as.matrix(-system$mean)) / unit
  design <- take_columns(task$whole$d$design, -1L)
  inverse <- chol2inv(chol(design))
  sums <- score_sums(task, system, inverse, contrast(theta), contrast(shown))
  bread <- error_bread(system, inverse, mu / less_penalty)
  left <- (system$t - product(system$x, shown)) / unit
  list(
    theta = drop(theta), mean = system$mean, unit = unit,
    # Each column of the design takes a degree of freedom.
    covariance = product(bread, product(sums$meat, bread)) /
      (1 - (ncol(design) - 1) / length(task$y)),
    clusters = nlevels(task$clusters),
    first = if (ncol(sums$fitted)) first_stage_values(task, sums$fitted),
    overid = over_identification(sums$law, left)
  )
}

# Returns two sums over rows, or clusters, and `fitted`, what the instruments
# say of the linear columns. `meat` has the products of the scores
# of the coefficients of the design and of theta, with the residuals that `less`
# makes of features and targets. `law` has the products ll'r^2 of the moments,
# with the residuals that `final` makes.
score_sums <- function(task, system, inverse, less, final) {
  alone <- is.null(task$clusters)
  # y~ is a residual on the design, and so the corrections of the scores are DZ
  # less its projection on the design, whose coefficients are `lost`.
  lost <- product(inverse, t(take_columns(task$whole$d$own$with, -1L)))
  root <- action_root(task, task$whole, "d")
  line <- seq_len(ncol(task$straight))
  fitted <- matrix(0, length(task$y), length(line))
  along <- root$times(take_columns(task$whole$d$with, line))
  sums <- over_rows(task, root, seq_along(task$y), \(z, t, x, half, i) {
    fitted[i, ] <<- cross(x, along)
    both <- cbind(z, t)
    e <- drop(product(both, less))
    design <- take_columns(t, -1L)
    own <- if (alone) column_dots(x) * z else cross(x, half(z))
    moved <- own - product(design, lost)
    scores <- cbind(design, cross(x, system$x) - task$correct * moved)
    scores <- e * scores
    directions <- x * rep(drop(product(both, final)), each = nrow(x))
    if (!alone) {
      scores <- matrix(colSums(scores), 1L)
      directions <- as.matrix(rowSums(directions))
    }
    list(meat = cross(scores), law = tcross(directions))
  })
  c(sums, list(fitted = fitted))
}

# Returns the inverse of the normal matrix, for the design and for theta.
error_bread <- function(system, inverse, mu) {
  s <- system$spectrum
  first <- seq_len(nrow(inverse))
  bread <- diag(nrow(inverse) + nrow(s$vectors))
  bread[first, first] <- inverse
  bread[-first, -first] <- outer(system$units, system$units) * tcross(
    s$vectors / rep(s$values + mu, each = nrow(s$vectors)), s$vectors
  )
  bread
}

# The test of overidentification. Its statistic is r'Pr, from `left` = L'r, over
# its mean if E[r | z] = 0; the p-value is by a gamma law whose moments follow
# from `law`, the sum of the squares ll'r^2.
over_identification <- function(law, left) {
  mean <- sum(diag(law))
  # Without residuals there is nothing to test.
  mean[mean == 0] <- NA
  statistic <- sum(left^2) / mean
  shape <- 1 / (2 * sum(law^2) / mean^2)
  c(statistic = statistic, p.value = stats::pgamma(
    statistic, shape, shape, lower.tail = FALSE
  ))
}

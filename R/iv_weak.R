# Instruments that may be weak. With the features of both blocks as residuals of
# the design C (1 and controls), F of the instruments and Z of the learner, its
# linear columns first, P = F(F'F + lambda I)^-1 F', D = diag(P), y~ = y - Cb:
#   A = Z'(P - alpha D)Z = U L U',  b = Z'(P - alpha D)y~,
#   theta = U (max(L, 0) + mu)^-1 U'b,  g(x) = C b + (phi(x) - C Gamma)'theta.
# D takes away what every row predicts of itself, by which weak instruments let
# the regression of y on x in; alpha, the scale of the linear columns and the
# share of theta that is kept go by the strength of the instruments, which knows
# nothing of y.

# What is partialled out: 1 and the controls, factors as dummies, less their
# means; attr "means": for new rows. Columns that others make are left out.
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

# Rows of the design for new controls, at their means for NULL.
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

# The coefficients of the features on the design, of all rows.
partial_out <- function(task) {
  root <- chol(cross(task$design, task$design * task$weights))
  lapply(c(a = "a", d = "d"), \(of) {
    map <- task$maps[[of]]
    sums <- map_sums(map, task$design * task$weights)
    if (of == "a") {
      sums <- cbind(cross(task$design * task$weights, task$straight), sums)
    }
    backsolve(root, backsolve(root, sums, transpose = TRUE))
  })
}

# The columns of indicators of the first level of each factor of a block.
first_levels <- function(block) {
  if (is_factor_variable(block)) {
    return(match(block$first, block$levels))
  }
  scaling <- block$sample$kernel$scaling
  if (length(scaling$levels)) {
    sum(!scaling$nominal) + cumsum(c(1L, lengths(scaling$levels)))
  }
}

# The linear columns of a learner, of factors among them their indicators, each
# with standard deviation 1, less those that others and the design make; attr
# "slopes": of the coordinates of its points, a column each; "of": which columns
# they are.
straight_columns <- function(block, design) {
  sample <- block$sample
  if (!knows_points(sample)) {
    return(matrix(0, sample$n, 0L))
  }
  # Whitened coordinates go back to the columns.
  slopes <- sample$kernel$scaling$back %||% diag(ncol(sample$x))
  x <- product(sample$x, slopes)
  keep <- setdiff(which(!is_constant(x)), first_levels(block))
  if (!length(keep)) {
    return(matrix(0, sample$n, 0L))
  }
  of <- column_spreads(take_columns(x, keep))
  slopes <- take_columns(slopes, keep) /
    rep(of$unit * of$spread, each = ncol(x))
  names <- colnames(sample$x)[keep]
  names <- names %||% paste0("x", if (length(keep) > 1L) keep)
  columns <- product(sample$x, slopes)
  found <- qr(cbind(design, columns), tol = 1e-7)
  own <- sort(found$pivot[seq_len(found$rank)] - ncol(design))
  own <- own[own > 0]
  structure(take_columns(columns, own), slopes = take_columns(slopes, own),
            of = keep[own], dimnames = list(NULL, names[own]))
}

is_linear_column <- \(task, n) seq_len(n) <= ncol(task$straight)

# What rows say in a pass over them: `value(z, t, x, own, i)` summed, with Z,
# the targets and the roots x = R'^{-1}F' of some rows; `own` multiplies by D.
# With clusters each is by itself, and D has their blocks of P.
over_rows <- function(task, root, rows, value) {
  alone <- is.null(task$clusters)
  of <- \(i) {
    x <- root$times(t(task_features(task, "d", i)))
    own <- if (alone) \(z) column_dots(x) * z else
      \(z) cross(x, product(x, z))
    value(task_features(task, "a", i), task_targets(task, i), x, own, i)
  }
  if (alone) {
    return(sum_panels(task, rows, of))
  }
  groups <- split(rows, task$clusters[rows, drop = TRUE])
  Reduce(\(a, b) Map(`+`, a, b), lapply(groups, of))
}

# The part of A and b of rows that predict themselves: list(square: Z'DZ, with:
# Z'D[y, C], df: tr D).
own_moments <- function(task, whole, rows) {
  over_rows(task, action_root(task, whole, "d"), rows, \(z, t, x, own, i) {
    list(square = cross(z, own(z)), with = cross(z, own(t)), df = sum(x^2))
  })
}

# A data frame (fitted, actual) for each linear column, with standard deviation
# 1 and mean 0.
first_stage_values <- function(task, whole) {
  line <- seq_len(ncol(task$straight))
  if (!length(line)) {
    return(NULL)
  }
  theta <- solve_action(task, whole$d$gram, whole$d$n, "d",
                        take_columns(whole$d$with, line))
  panels <- feature_panels(seq_along(task$y), map_width(task))
  fitted <- do.call(rbind, lapply(panels, \(i) {
    product(task_features(task, "d", i), theta) / sqrt(row_weights(task, i))
  })) + product(task$design, take_columns(task$partial$a, line))
  x <- task$straight
  middle <- colMeans(x)
  stats::setNames(lapply(seq_along(middle), \(j) {
    data.frame(fitted = fitted[, j] - middle[j], actual = x[, j] - middle[j])
  }), colnames(x))
}

# A scale of the linear columns at which no penalty that is tried matters, times
# tr K/n.
unpenalized <- 1e6

# The system of some rows.
weak_system <- function(task, moments) {
  m <- moments$d
  n <- ncol(m$own$square)
  root <- action_root(task, moments, "d")
  x <- root$times(m$with)
  of <- seq_len(n)
  fit <- qr.coef(qr(take_columns(m$design, -1L)), m$design[, 1L])
  fit[is.na(fit)] <- 0
  contrast <- c(1, -fit)
  a <- take_columns(x, of)
  t <- drop(product(take_columns(x, -of), as.matrix(contrast)))
  share <- task$correct * length(task$y) / moments$n
  units <- ifelse(is_linear_column(task, n),
                  sqrt(min(task$linear, unpenalized * task$unit)), 1)
  square <- (cross(a) - share * m$own$square) * outer(units, units)
  list(
    square = square, spectrum = .Call(C_r_eigen, square, n),
    right = units * drop(cross(a, as.matrix(t)) - share *
                           product(m$own$with, as.matrix(contrast))),
    x = a, t = t, units = units, mean = fit,
    ranks = c(a = task$maps$a$r, d = root$rank), solve = solve_weak
  )
}

# theta for each mu, a column each, and of it the share `keep`.
solve_weak <- function(system, mu, keep = 1) {
  check_penalty(system$square, mu)
  theta <- keep * ridge_weak(system, mu)
  list(theta = list(g = theta), criterion = rbind(
    colSums((system$t - product(system$x, theta))^2), 0
  ))
}

ridge_weak <- function(system, mu) {
  s <- system$spectrum
  system$units * product(
    s$vectors, drop(cross(s$vectors, as.matrix(system$right))) /
      outer(pmax(s$values, 0), mu, `+`)
  )
}

less_penalty <- 64

# The system without the curve.
line_system <- function(task, system) {
  line <- seq_len(ncol(task$straight))
  least <- eigen(system$square[line, line, drop = FALSE], TRUE)
  system$spectrum$values <- replace(0 * system$spectrum$values, line,
                                    least$values)
  system$spectrum$vectors[] <- 0
  system$spectrum$vectors[line, line] <- least$vectors
  system
}

# Errors of a fit from its residuals r, in one more pass. A band belongs to a
# fit with less bias, with a 64th of the penalty: g(x) = cb + (phi(x) -
# c Gamma)'theta has the variance v'Vv, v = (c, phi(x) - c Gamma), V from the
# scores of rows, or of clusters. list(theta, mean: b, covariance: V in `unit`s
# of y, overid:
# r'Pr over its mean where E[r | z] = 0, and p.value, clusters: their number,
# first: of each linear column its values and what the instruments say of it).
weak_errors <- function(task, whole, system, theta = NULL, mu = 0) {
  # Infinite: an estimate with so little penalty has no part in directions that
  # are not identified.
  values <- system$spectrum$values
  least <- rounding_of(length(values), max(abs(values)))
  system$spectrum$values[values <= least] <- Inf
  under <- ridge_weak(system, mu / less_penalty)
  theta <- theta %||% under
  contrast <- \(theta) rbind(-theta, 1, as.matrix(-system$mean))
  # Squares of squares must not leave the range of numbers.
  unit <- power_below(max(abs(task$y)))
  final <- contrast(theta) / unit
  less <- contrast(under) / unit
  root <- action_root(task, whole, "d")
  alone <- is.null(task$clusters)
  inverse <- chol2inv(chol(take_columns(whole$d$design, -1L)))
  # Of DZ what y~ has lost to C.
  lost <- product(inverse, t(take_columns(whole$d$own$with, -1L)))
  sums <- over_rows(task, root, seq_along(task$y), \(z, t, x, own, i) {
    both <- cbind(z, t)
    e <- drop(product(both, less))
    c <- take_columns(t, -1L)
    moved <- own(z) - product(c, lost)
    scores <- cbind(c, cross(x, system$x) - task$correct * moved)
    scores <- e * scores
    directions <- x * rep(drop(product(both, final)), each = nrow(x))
    if (!alone) {
      scores <- matrix(colSums(scores), 1L)
      directions <- as.matrix(rowSums(directions))
    }
    list(meat = cross(scores), law = tcross(directions))
  })
  of_c <- seq_along(system$mean)
  bread <- diag(nrow(sums$meat))
  bread[of_c, of_c] <- inverse
  s <- system$spectrum
  bread[-of_c, -of_c] <- outer(system$units, system$units) * tcross(
    s$vectors / rep(s$values + mu / less_penalty, each = nrow(s$vectors)),
    s$vectors
  )
  mean <- sum(diag(sums$law))
  # Without residuals there is nothing to test.
  mean[mean == 0] <- NA
  statistic <- sum(((system$t - product(system$x, theta)) / unit)^2) / mean
  variance <- 2 * sum(sums$law^2) / mean^2
  list(
    theta = drop(under), mean = system$mean, unit = unit,
    # The columns of C take degrees of freedom.
    covariance = product(bread, product(sums$meat, bread)) /
      (1 - (length(of_c) - 1) / length(task$y)),
    clusters = nlevels(task$clusters), first = first_stage_values(task, whole),
    overid = c(statistic = statistic, p.value = stats::pgamma(
      statistic, 1 / variance, 1 / variance, lower.tail = FALSE
    ))
  )
}

# What a table of coefficients has of an instrumental-variable fit: the straight
# line nearest to g, and the controls, linear in the estimate that intervals
# belong to; and an interval of a straight line that holds whatever the strength
# of the instruments is.

# Columns as a user counts them, and what one of each moves the coordinates of
# the points by: list(values, moves).
counted_columns <- function(block) {
  sample <- block$sample
  x <- sample$x
  scaling <- sample$kernel$scaling
  if (is_mixed_variable(block)) {
    nominal <- scaling$nominal
    moves <- 1 / c(scaling$factor[!nominal],
                   rep(2 * scaling$factor[nominal], lengths(scaling$levels)))
    return(list(values = x / rep(moves, each = nrow(x)),
                moves = diag(moves, length(moves))))
  }
  values <- named_columns(if (is_factor_variable(block)) x else
    as.matrix(sample_raw(sample)))
  if (is_factor_variable(block)) {
    colnames(values) <- paste0(block$name, block$levels)
  }
  list(values = values, moves = do.call(rbind, lapply(
    seq_len(ncol(x)), first_direction, kernel = sample$kernel, d = ncol(x)
  )))
}

# list(coefficients, vcov): linear in the mean and the theta of the errors, a
# row of `rows` for each.
line_table <- function(task, errors) {
  block <- task$blocks[[task$called[["a"]]]]
  n <- length(task$y)
  size <- ncol(task$design)
  known <- seq_len(length(attr(task$design, "means")) + 1L)
  of <- cbind(diag(size), -task$partial$a)
  design <- take_columns(task$design, known)
  lines <- straight_columns(block, design)
  line <- seq_len(ncol(lines))
  weights <- task$weights / sum(task$weights)
  sides <- cbind(weights, weights * (lines - rep(colSums(weights * lines),
                                                 each = n)))
  # The mean of g, and its products with the lines.
  sums <- cbind(matrix(0, ncol(sides), size), cross(sides, task$straight),
                map_sums(task$maps$a, sides))
  rows <- take_rows(of, known)
  if (!is.null(task$given)) {
    free <- product(take_columns(task$given$shift, task$given$kept),
                    task$given$back)
    moved <- product(design, free) + take_columns(task$design, -known)
    sums <- sums + product(cross(sides, moved), take_rows(of, -known))
    rows <- rows - product(free, take_rows(of, -known))
  }
  means <- attr(task$design, "means")
  slopes <- NULL
  if (length(line)) {
    counted <- counted_columns(block)
    along <- product(counted$moves, attr(lines, "slopes"))
    kept <- rowSums(along != 0) > 0
    slopes <- product(take_rows(along, kept), solve(
      cross(take_columns(sides, line + 1L), lines), take_rows(sums, line + 1L)
    ))
    rownames(slopes) <- colnames(counted$values)[kept]
    means <- c(colSums(weights * take_columns(counted$values, kept)), means)
  }
  rownames(rows) <- c("(Intercept)", colnames(task$design)[known[-1L]])
  rows <- rbind(take_rows(rows, 1L) + sums[1L, ], slopes, take_rows(rows, -1L))
  rows[1L, ] <- rows[1L, ] - drop(cross(take_rows(rows, -1L),
                                        as.matrix(as.double(means))))
  names <- make.unique(rownames(rows))
  vcov <- product(rows, product(errors$covariance, t(rows))) * errors$unit^2
  list(coefficients = stats::setNames(
    drop(product(rows, as.matrix(c(errors$mean, errors$theta)))), names
  ), vcov = structure(vcov, dimnames = list(names, names)))
}

# Anderson and Rubin's interval of the slope beta of a straight line in the one
# endogenous column: where r'Pr over its mean, r = y - beta x given exogenous
# columns and controls, is not too large by the gamma law of its moments. Sums
# over rows are polynomials of beta.
line_interval <- function(fit, level) {
  task <- weak_task(fit)
  columns <- exogenous_columns(task$blocks)
  if (!is.null(columns)) {
    task <- if (length(columns$alone)) given_task(task, columns) else
      stop_input("'method' must be \"wald\" without instruments that are no ",
                 "regressors")
  }
  if (ncol(task$straight) != 1L) {
    stop_input("'method' must be \"wald\" but for one endogenous column of ",
               "numbers, or of two levels, not ", ncol(task$straight))
  }
  if (!is.null(columns)) task <- partialled(task) else
    task$whole <- row_moments(task, seq_along(task$y))
  root <- action_root(task, task$whole, "d")
  target <- task_targets(task, seq_along(task$y))
  out <- qr.coef(qr(target[, -1L, drop = FALSE]), target[, 1L])
  unit <- power_below(max(abs(task$y)))
  sums <- over_rows(task, root, seq_along(task$y), \(z, t, x, own, i) {
    y <- x * rep(drop(product(t, c(1, -out) / unit)), each = nrow(x))
    x <- x * rep(z[, 1L], each = nrow(x))
    all <- cbind(y = rowSums(y), x = rowSums(x))
    if (!is.null(task$clusters)) {
      y <- all[, "y", drop = FALSE]
      x <- all[, "x", drop = FALSE]
    }
    both <- tcross(x, y)
    list(all = all, yy = tcross(y), xy = both + t(both), xx = tcross(x))
  })
  # The p-value along the circle of beta = best + far tan(angle).
  free <- 1 - ncol(task$design) / length(task$y)
  best <- sum(sums$all[, 1L] * sums$all[, 2L]) / sum(sums$all[, 2L]^2)
  far <- sqrt(sum(diag(sums$yy)) / sum(diag(sums$xx)))
  above <- \(angle) {
    a <- cos(angle)
    b <- best * a + far * sin(angle)
    law <- (a^2 * sums$yy - a * b * sums$xy + b^2 * sums$xx) / free
    mean <- sum(diag(law))
    shape <- mean^2 / (2 * sum(law^2))
    ratio <- sum((a * sums$all[, 1L] - b * sums$all[, 2L])^2) / mean
    stats::pgamma(ratio, shape, shape, lower.tail = FALSE) - (1 - level)
  }
  angles <- seq(-pi / 2, pi / 2, length.out = 801L)
  values <- vapply(angles, above, 0)
  turns <- which(diff(values > 0) != 0)
  ends <- vapply(turns, \(i) {
    stats::uniroot(above, angles[i + 0:1], tol = 1e-10)$root
  }, 0)
  counted <- counted_columns(task$blocks[[task$called[["a"]]]])
  per <- drop(product(counted$moves, attr(task$straight, "slopes")))
  name <- which(per != 0)[1L]
  ends <- sort(unit * per[[name]] * (best + far * tan(ends)))
  open <- values[1L] > 0
  said <- if (open) {
    paste0("unbounded: the instruments do not rule out any slope", if (
      length(ends)
    ) paste(" but", paste(format_number(ends), collapse = " to ")))
  } else if (!length(ends)) {
    "empty: the instruments rule out any straight line"
  }
  if (length(said)) {
    warn_kernmean("the Anderson-Rubin interval is ", said, kind = "interval")
  }
  matrix(if (open) c(-Inf, Inf) else if (length(ends)) range(ends) else
    c(NA, NA), 1L, dimnames = list(colnames(counted$values)[name], NULL))
}

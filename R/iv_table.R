# What a table of coefficients has of an instrumental-variable fit: the straight
# line nearest to g, and the controls, linear in the estimate that intervals
# belong to.

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
    values <- x / rep(moves, each = nrow(x))
    # As lm() calls them.
    colnames(values)[-seq_len(sum(!nominal))] <- paste0(
      rep(names(scaling$levels), lengths(scaling$levels)),
      unlist(scaling$levels)
    )
    return(list(values = values, moves = diag(moves, length(moves))))
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

# What a least squares of A, with the weights of rows, multiplies values by.
least_squares <- function(a, weights) {
  found <- qr(sqrt(weights) * a, tol = 0)
  sqrt(weights) * product(qr.Q(found), t(backsolve(
    qr.R(found), diag(ncol(a))
  )))[, order(found$pivot), drop = FALSE]
}

# list(coefficients, vcov): linear in the mean and the theta of the errors, a
# row of `rows` for each. The slopes of endogenous columns are those of g given
# the functions of exogenous ones, of a task `given`; the slopes of these are
# those of the rest.
line_table <- function(task, errors, given) {
  block <- task$blocks[[task$called[["a"]]]]
  size <- ncol(task$design)
  known <- seq_len(length(attr(task$design, "means")) + 1L)
  of <- cbind(diag(size), -task$partial$a)
  design <- take_columns(task$design, known)
  weights <- task$weights
  straight <- straight_columns(block, design)
  first <- attr(straight, "of") %in% attr(given$straight, "of")
  lines <- straight - rep(colSums(weights * straight) / sum(weights),
                          each = nrow(straight))
  mine <- take_columns(lines, first)
  sides <- least_squares(cbind(given$design, mine), weights)
  sides <- take_columns(sides, ncol(given$design) + seq_len(ncol(mine)))
  rest <- least_squares(cbind(1, take_columns(lines, !first)), weights)
  rest <- rest - product(sides, cross(mine, rest))
  sides <- cbind(rest, sides)
  order <- c(1L, 1L + order(c(which(!first), which(first))))
  sides <- take_columns(sides, order)
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
  slopes <- means <- NULL
  if (ncol(straight)) {
    counted <- counted_columns(block)
    along <- product(counted$moves, attr(straight, "slopes"))
    kept <- rowSums(abs(along) > 1e-12 * max(abs(along))) > 0
    slopes <- product(take_rows(along, kept), take_rows(sums, -1L))
    rownames(slopes) <- colnames(counted$values)[kept]
    means <- cross(take_columns(counted$values, kept),
                   as.matrix(weights / sum(weights)))
  }
  rownames(rows) <- c("(Intercept)", colnames(design)[-1L])
  rows <- rbind(take_rows(rows, 1L) + sums[1L, ], slopes, take_rows(rows, -1L))
  # The line at 0 of all columns, and of the controls.
  rows[1L, ] <- rows[1L, ] - drop(cross(take_rows(rows, -1L), as.matrix(
    as.double(c(means, attr(task$design, "means")))
  )))
  names <- make.unique(rownames(rows))
  vcov <- product(rows, product(errors$covariance, t(rows))) * errors$unit^2
  list(coefficients = stats::setNames(
    drop(product(rows, as.matrix(c(errors$mean, errors$theta)))), names
  ), vcov = structure(vcov, dimnames = list(names, names)))
}

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

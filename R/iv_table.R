# The coefficients of an instrumental-variable fit by method "weak": the
# straight line nearest to g, and the controls. They are linear functions of the
# estimate to which intervals belong.

# Returns the columns of a block in the units of the user, `values`. Row j of
# `moves` says how the coordinates of a point change if column j grows by one.
counted_columns <- function(block) {
  sample <- block$sample
  x <- sample$x
  scaling <- sample$kernel$scaling
  if (is_mixed_variable(block)) {
    columns <- mixed_columns(scaling)
    moves <- 1 / ((1 + scaling$nominal) * scaling$factor)[columns]
    values <- x / rep(moves, each = nrow(x))
    # The columns of factors have the names that lm() would give them.
    colnames(values)[-seq_len(sum(!scaling$nominal))] <- paste0(
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

# Returns a matrix whose columns, multiplied with values of the rows, give the
# coefficients of a weighted least-squares fit of the values on the columns of
# a.
least_squares <- function(a, weights) {
  found <- qr(sqrt(weights) * a, tol = 0)
  sqrt(weights) * product(qr.Q(found), t(backsolve(
    qr.R(found), diag(ncol(a))
  )))[, order(found$pivot), drop = FALSE]
}

# Returns the coefficients and their vcov. Each coefficient is a linear function
# of the mean and the theta of the errors.
line_table <- function(task, errors) {
  rows <- table_rows(task)
  labels <- make.unique(rownames(rows))
  vcov <- product(rows, product(errors$covariance, t(rows))) * errors$unit^2
  list(coefficients = stats::setNames(
    drop(product(rows, as.matrix(c(errors$mean, errors$theta)))), labels
  ), vcov = structure(vcov, dimnames = list(labels, labels)))
}

# Returns the matrix that turns the mean and theta into the coefficients: a row
# for the constant, for each slope and for each control.
table_rows <- function(task) {
  block <- task$blocks[[task$called[["a"]]]]
  size <- ncol(task$design)
  known <- seq_len(length(attr(task$design, "means")) + 1L)
  controls <- cbind(diag(size), -task$partial$a)
  design <- take_columns(task$design, known)
  straight <- straight_columns(block, design)
  sides <- slope_weights(task, straight)
  sums <- cbind(matrix(0, ncol(sides), size), cross(sides, task$straight),
                map_sums(task$maps$a, sides))
  rows <- take_rows(controls, known)
  if (!is.null(task$given)) {
    free <- product(take_columns(task$given$shift, task$given$kept),
                    task$given$back)
    moved <- product(design, free) + take_columns(task$design, -known)
    sums <- sums + product(cross(sides, moved), take_rows(controls, -known))
    rows <- rows - product(free, take_rows(controls, -known))
  }
  slopes <- means <- NULL
  if (ncol(straight)) {
    counted <- counted_columns(block)
    along <- product(counted$moves, attr(straight, "slopes"))
    kept <- rowSums(abs(along) > 1e-12 * max(abs(along))) > 0
    slopes <- product(take_rows(along, kept), take_rows(sums, -1L))
    rownames(slopes) <- colnames(counted$values)[kept]
    means <- cross(take_columns(counted$values, kept),
                   as.matrix(task$weights / sum(task$weights)))
  }
  rownames(rows) <- c("(Intercept)", colnames(design)[-1L])
  rows <- rbind(take_rows(rows, 1L) + sums[1L, ], slopes, take_rows(rows, -1L))
  # The constant is the value of the line where all columns and controls are 0.
  rows[1L, ] <- rows[1L, ] - drop(cross(take_rows(rows, -1L), as.matrix(
    as.double(c(means, attr(task$design, "means")))
  )))
  rows
}

# The weights of rows in the constant and in the slopes of the linear columns.
# The slopes of endogenous columns are those of g given the functions of
# exogenous columns; the slopes of exogenous columns are those of the rest of g.
slope_weights <- function(task, straight) {
  apart <- task$apart %||% task
  weights <- task$weights
  first <- attr(straight, "coordinates") %in%
    attr(apart$straight, "coordinates")
  lines <- straight - rep(colSums(weights * straight) / sum(weights),
                          each = nrow(straight))
  own <- take_columns(lines, first)
  sides <- least_squares(cbind(apart$design, own), weights)
  sides <- take_columns(sides, ncol(apart$design) + seq_len(ncol(own)))
  rest <- least_squares(cbind(1, take_columns(lines, !first)), weights)
  rest <- rest - product(sides, cross(own, rest))
  places <- order(c(which(!first), which(first)))
  take_columns(cbind(rest, sides), c(1L, 1L + places))
}

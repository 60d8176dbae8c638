# Smoothers: ridge regressions on the features of a kernel, with exact left-out
# losses along a path of penalties; and the kernels, with widths learned from
# the columns that matter, that these losses choose between.

# A response, which smoothers are to predict at some rows of a sample.
#   rows     the rows where it is known
#   y        a column for each of several variables, in units in which losses
#            and slopes can be added
#   share    its part of losses and relevances
#   columns  the columns of the points on which it depends, NULL for all
#   outcome  do its losses choose between kernels?
new_response <- function(rows, y, share = 1, columns = NULL, outcome = FALSE) {
  list(rows = rows, y = as.matrix(y), share = share, columns = columns,
       outcome = outcome)
}

# Numbers with the weighted mean 0 and the weighted variance 1; 0 if all are the
# same.
standard_response <- function(y, weights = rep(1, length(y))) {
  in_deviations(y - sum(weights * y) / sum(weights), weights)
}

# Numbers in units of their weighted root mean square.
in_deviations <- function(y, weights = rep(1, length(y))) {
  largest <- max(abs(sqrt(weights) * y))
  if (largest == 0) {
    return(y)
  }
  y <- y / largest
  y / sqrt(sum(weights * y^2) / sum(weights))
}

# The smoother of some rows.
#   map      the map of the features of the sample
#   rows     the rows
#   unit     codes of rows that are left out together
#   ridge    the regression in its axes, of which the first is the constant
#   turn     features times turn are the other axes
new_smoother <- function(map, rows, unit, ridge, turn) {
  list(map = map, rows = rows, unit = unit, ridge = ridge, turn = turn)
}

make_smoother <- function(map, rows, weights, unit) {
  f <- map_features(map, rows)
  weights <- weights / mean(weights)
  f <- f - rep(colMeans(f * weights), each = nrow(f))
  pairs <- .Call(C_r_eigen, cross(f * sqrt(weights)) / nrow(f), ncol(f))
  new_smoother(map, rows, unit, new_ridge(
    c(1, pmax(pairs$values, 0)), NULL,
    cbind(1, product(f, pairs$vectors)), 1L, weights
  ), pairs$vectors)
}

# The regression of each column of y: the right sides in the axes.
right_sides <- \(s, y) cross(s$ridge$z, s$ridge$weights * y) / nrow(y)

# The squared residuals of the fits that leave the unit of each row out, summed
# over the columns of y: a row for each row and a column for each penalty.
smoother_losses <- function(s, y, penalties) {
  ridge <- s$ridge
  right <- right_sides(s, y)
  residuals <- if (anyDuplicated(s$unit)) {
    none <- new_functional(matrix(0, 0L, ncol(ridge$z)), numeric())
    none$target <- numeric(ncol(ridge$z))
    \(j) {
      ridge$right <- right[, j]
      ridge_left_out(ridge, none, penalties, y[, j], s$unit,
                     integer())$residuals
    }
  } else {
    # A row by itself has the residual of the fit to all rows, divided by what
    # the fit keeps of it. A row of very large weight is all that its fit knows.
    inverse <- ridge_inverse(ridge, penalties)
    kept <- pmax(1 - product(ridge$z^2, inverse) * ridge$weights / nrow(y),
                 .Machine$double.eps)
    \(j) (y[, j] - product(ridge$z, inverse * right[, j])) / kept
  }
  Reduce(`+`, lapply(seq_len(ncol(y)), \(j) residuals(j)^2))
}

# The mean squared derivatives of the fits along each column of the points, of a
# Gaussian kernel, for steps of `unit`.
smoother_slopes <- function(s, y, penalty, unit = 1) {
  map <- s$map
  x <- take_rows(map$sample$x, s$rows)
  centers <- take_rows(map$sample$x, map$centers)
  theta <- rep_len(map$sample$kernel$bandwidth, ncol(x))
  right <- right_sides(s, y)
  total <- numeric(ncol(x))
  for (j in seq_len(ncol(y))) {
    axes <- drop(ridge_solve(s$ridge, penalty, right[, j]))[-1L]
    f <- map_function(map, drop(product(s$turn, as.matrix(axes))))
    a <- f$weights[f$centers]
    sums <- as.matrix(fold_apply(map$sample$kernel, x, centers,
                                 cbind(centers * a, a)))
    slopes <- take_columns(sums, seq_len(ncol(x))) - x * sums[, ncol(x) + 1L]
    total <- total + colMeans(s$ridge$weights * times_columns(slopes,
                                                              1 / theta)^2)
  }
  total * (unit / theta)^2
}

# --- Losses and relevances of a kernel ---------------------------------------

# The penalties of smoothers, in units of the mean of k(x, x).
penalty_grid <- 10^seq(-6, 1, length.out = 29)

# The factor of a smoother ends when this share of the trace is left, or at a
# column for five rows, but not before 96. More columns change losses by less
# than a hundredth.
smoother_columns <- \(n) min(n, max(96L, n %/% 5L))
smoother_tolerance <- 1e-6

smoother_map <- function(sample) {
  pivoted_map(sample, pivoted_factor(
    sample_source(sample), smoother_tolerance, smoother_columns(sample$n)
  ))
}

# The look at a kernel: its fits to responses, each with the penalty of the
# smallest left-out loss.
#   kernel     the kernel
#   rows       the loss of each row of the sample
#   outcome    the same of outcomes alone
#   relevance  the mean squared derivatives along the columns
new_look <- function(kernel, rows, outcome, relevance) {
  list(kernel = kernel, rows = rows, outcome = outcome, relevance = relevance)
}

look_at <- function(sample, kernel, responses, weights, unit, slopes = FALSE) {
  sample <- with_kernel(sample, kernel)
  map <- smoother_map(sample)
  scale <- mean(sample_diagonal(sample))
  look <- new_look(kernel, numeric(sample$n), numeric(sample$n),
                   numeric(ncol(sample$x)))
  for (r in responses) {
    at <- r$columns %||% seq_len(ncol(sample$x))
    own <- if (is.null(r$columns)) map else
      smoother_map(sample_columns(sample, at))
    s <- make_smoother(own, r$rows, weights[r$rows], unit[r$rows])
    losses <- smoother_losses(s, r$y, penalty_grid * scale)
    best <- which.min(colMeans(s$ridge$weights * losses))
    share <- r$share * sample$n / length(r$rows)
    loss <- share * s$ridge$weights * losses[, best]
    look$rows[r$rows] <- look$rows[r$rows] + loss
    if (r$outcome) look$outcome[r$rows] <- look$outcome[r$rows] + loss
    if (slopes) {
      look$relevance[at] <- look$relevance[at] + r$share *
        smoother_slopes(s, r$y, penalty_grid[best] * scale,
                        max(sample$kernel$bandwidth))
    }
  }
  look
}

# The sample of some columns of the points, with a Gaussian kernel of these.
sample_columns <- function(sample, columns) {
  kernel <- sample$kernel
  kernel$bandwidth <- rep_len(kernel$bandwidth, ncol(sample$x))[columns]
  points_sample(take_columns(sample$x, columns), kernel)
}

# --- Kernels of columns ------------------------------------------------------

# The Gaussian kernel with the bandwidths s/w of columns with the weights w. s
# is twice the median distance of the columns times w, of some of the points.
weighted_kernel <- function(x, w) {
  x <- take_rows(x, evenly(nrow(x), median_rows))
  s <- 2 * median_bandwidth(kernel_rbf(), times_columns(x, w))$bandwidth
  kernel_rbf(bandwidth = s / w)
}

median_rows <- 500L

# A tenth of a Gaussian kernel of all columns, and the rest a mean of Gaussian
# kernels of each column, with the weights w^2. The bandwidths of the latter are
# two standard deviations.
additive_kernel <- function(x, all, w = rep(1, ncol(x))) {
  spread <- sqrt(colMeans(center_columns(x)^2))
  shares <- ifelse(spread == 0, 0, w^2)
  each <- lapply(which(shares > 0), \(j) {
    0.9 * shares[j] / sum(shares) *
      kernel_rbf(bandwidth = 2 * spread[j], columns = j)
  })
  Reduce(`+`, each, 0.1 * kernel_rbf(bandwidth = all$bandwidth))
}

# The looks at Gaussian kernels whose bandwidths are learned from slopes (the
# recursive feature machine of Radhakrishnan and others, 2024, of the diagonal):
# from the kernel of the sample on, each column gets the weight of its relevance
# in the look before. A list of looks, each with its `weights`.
learn_widths <- function(sample, responses, weights, unit) {
  w <- rep(1, ncol(sample$x))
  kernel <- sample$kernel
  looks <- list()
  for (step in 0:most_steps) {
    look <- look_at(sample, kernel, responses, weights, unit, TRUE)
    looks[[step + 1L]] <- c(look, list(weights = w))
    largest <- max(look$relevance)
    slow <- step > 1L && mean(look$rows) > (1 - least_fall) * last
    if (slow || largest == 0) break
    last <- mean(look$rows)
    w <- sqrt(look$relevance / largest + least_weight^2)
    w <- w / max(w)
    kernel <- weighted_kernel(sample$x, w)
  }
  looks
}

# The steps end after the second when losses fall by less than this share.
most_steps <- 5L
least_fall <- 0.01
least_weight <- 0.05

# --- The choice --------------------------------------------------------------

# The Gaussian kernel of the sample, one whose widths are learned, and additive
# kernels of equal and of learned weights, chosen by the left-out losses of
# outcomes. A list of
#   kernels  those that are better than the first by `least_gain` standard
#            errors, the best one first, and last the first
#   table    a row for each: kernel, the loss of outcomes, and by how many
#            standard errors it is below the first; of learned widths the gain
#            of all responses, if that is larger
#   slopes   the root mean squared derivative along each column, relative to
#            the largest
choose_kernel <- function(sample, responses, weights, unit, gaussian = FALSE) {
  looks <- learn_widths(sample, responses, weights, unit)
  first <- looks[[1L]]
  best <- looks[[which.min(vapply(looks, \(look) mean(look$rows), 0))]]
  outcomes <- Filter(\(r) r$outcome, responses)
  found <- list(isotropic = first)
  if (!identical(best, first)) found$learned <- best
  more <- if (!gaussian) c(
    additive = list(additive_kernel(sample$x, first$kernel)),
    if (!is.null(found$learned)) list("learned additive" = additive_kernel(
      sample$x, best$kernel, best$weights
    ))
  )
  found <- c(found, lapply(more, \(kernel) {
    look_at(sample, kernel, outcomes, weights, unit)
  }))
  gain_of <- \(look, name) {
    gain <- rowsum(first[[name]] - look[[name]], unit)
    gain_error <- stats::sd(gain) / sqrt(length(gain))
    if (isTRUE(gain_error > 0)) mean(gain) / gain_error else 0
  }
  gains <- vapply(found, gain_of, 0, "outcome")
  # Widths are learned from all responses, so that their losses count, too.
  if (!is.null(found$learned)) {
    gains[["learned"]] <- max(gains[["learned"]], gain_of(best, "rows"))
  }
  loss <- vapply(found, \(look) mean(look$outcome), 0)
  better <- names(found)[gains > least_gain & loss < loss[1L]]
  ranked <- c(better[order(loss[better])], "isotropic")
  list(kernels = lapply(found[ranked], `[[`, "kernel"),
       table = data.frame(kernel = names(found), loss = unname(loss),
                          gain = unname(gains)),
       slopes = sqrt(best$relevance / max(best$relevance, 1e-300)))
}

# With 1.5 the losses of small samples are a little larger; what a narrow kernel
# adds to the error of an estimate is guarded by most_error.
least_gain <- 1

# The first principal features of the points, the sum of all variances 1.
principal_features <- function(points, weights, unit) {
  rows <- seq_len(points$n)
  ridge <- make_smoother(smoother_map(points), rows, weights, unit)$ridge
  first <- seq_len(min(most_principal, length(ridge$values) - 1L)) + 1L
  take_columns(ridge$z, first) / sqrt(sum(ridge$values[-1L]))
}

most_principal <- 5L

# Some of n rows, in an order that no seed changes; of few rows of an arm all.
learning_rows <- function(n, arm = rep(1L, n)) {
  order <- order(.Call(C_r_sequence, n))
  turn <- stats::ave(seq_len(n), arm[order], FUN = seq_along)
  sort(order[turn <= pmax(most_learned * tabulate(arm)[arm[order]] / n,
                          fewest_learned)])
}

fewest_learned <- 100L

# Up to this many rows choose the kernel.
most_learned <- 1000L

# The sample with another kernel in the units that its points have.
with_kernel <- function(sample, kernel) {
  scaling <- sample$kernel$scaling
  sample$kernel <- fit_kernel(kernel, sample$x)
  sample$kernel$scaling <- scaling
  sample
}

# "columns by relevance: x1 1, x2 0.49, others at most 0.09"
relevant_words <- function(relevance, most = 4L) {
  sorted <- sort(relevance, decreasing = TRUE)
  named <- seq_len(max(1L, min(most, sum(sorted > large_relevance))))
  rest <- sorted[-named]
  words <- c(paste(names(sorted)[named], format_number(sorted[named], 2L)),
             if (length(rest)) {
               paste("others at most", format_number(rest[1L], 2L))
             })
  paste("columns by relevance:", toString(words))
}

large_relevance <- 0.2

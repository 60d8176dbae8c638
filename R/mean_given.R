# The shelf mean_: the kernel mean, kme(), and intervals of its values.
#
# Offers from mean_kme.R: check_estimator, estimate_mean.
# Offers from mean_methods.R: describe_mean, weights_summary.
# Offers from mean_plot.R: kernel_axes, picture_selection, picture_surface,
#   raw_points.
#
# The conditional kernel mean, kme(y ~ x): the embedding of the distribution of
# y for each x, a ridge regression of the features of y on those of x.

#' The distribution of y given x: conditional kernel means
#'
#' `kme(y ~ a + b, data)` estimates the embedding of the whole conditional
#' distribution of y, of which means, quantiles, class probabilities and draws
#' at new rows are read off.
#'
#' The estimate is \eqn{\hat\mu(x) = \sum_i \beta_i(x)\, l(y_i, \cdot)}{mu(x) =
#' sum_i beta_i(x) l(y_i, .)}, with the weights of a ridge regression on the
#' features of x, \eqn{\beta(x) = e/n + (\bar K + n\lambda I)^{-1} \bar
#' k(x)}{beta(x) = e/n + (Kc + n lambda I)^-1 kc(x)}, \eqn{\bar K = HKH}{Kc =
#' HKH} and \eqn{\bar k(x)}{kc(x)} centered in the same way. The intercept is
#' not penalized, so that the weights sum to one; some are negative. As
#' \eqn{\lambda}{lambda} grows, the estimate becomes `kme(~ y)`.
#'
#' The kernel of x and \eqn{\lambda}{lambda} are chosen by the exact loss of
#' left-out rows, \eqn{\frac1n \sum_i \|l(y_i, \cdot) - \hat\mu_{-i}(x_i)\|^2 =
#' \frac1n \sum_i [(I - S) L (I - S)']_{ii}/(1 - S_{ii})^2}{mean_i |l(y_i, .) -
#' mu_-i(x_i)|^2 = mean_i [(I - S) L (I - S)']_ii/(1 - S_ii)^2}, S the matrix of
#' the weights at the rows. The kernels are linear ones, alone and with Gaussian
#' kernels of several widths, sums over columns, sums over pairs of columns (up
#' to six), Laplace kernels, and a Gaussian one whose widths are learned from
#' slopes, on columns with the standard deviation 1;
#' factors are indicators. Of more than 1,000 rows 1,000 choose the kernel, and
#' all choose \eqn{\lambda}{lambda}.
#'
#' @section How good it is:
#' In 20 random splits, 80 to 20%, the CRPS beside that of quantile forests
#' (package ranger, 500 trees) was 0.96 times as large for `MASS::birthwt`, 0.89
#' for `MASS::mcycle`, 0.87 for `faithful`, 0.96 for `swiss`, but 1.08 for
#' `iris`, 1.09 for `airquality`, 1.16 for `mtcars` and 1.40 for `MASS::Boston`:
#' it is for smooth means and few columns. Intervals between quantiles of 10 and
#' 90% held 0.74 to 0.88 of new rows (forests 0.67 to 0.90).
#'
#' @section Cost:
#' O(n r^2) time and 16nr bytes for each kernel, r at most 150 columns of a
#' factor of its Gram matrix, and O(n r q) for the losses, q the rank of the
#' matrix of y: 0.3 s for n = 1,000, one column each. `predict()` takes O(mnr)
#' time for m rows, and 8mn bytes for their weights, otherwise 34 MB at a time;
#' `score()` of several columns of y takes 8n^2 bytes.
#'
#' @param object A conditional kernel mean: what `kme(y ~ a + b, data, ...)`
#'   returns, whose arguments are those of [kme()] with a formula: `kernel` and
#'   `scale` are those of y (by default [kernel_rbf()] at the median distance;
#'   a factor has its own), `weights` are positive weights of rows, and there
#'   is no other estimator than `"kme"`.
#' @param newdata A data frame with the variables of x; without it, the rows of
#'   the fit, which the fit knows: intervals there are too narrow for new rows.
#'   `score()` leaves each row out then. For `kme_distance()` as well.
#' @param type `"mean"`: the mean of each column of y, or of each indicator of a
#'   factor; `"weights"`: the weights, a row for each new row and a column for
#'   each row of the fit; `"quantile"`: the quantiles `probs` of a single
#'   numeric column, from the weighted distribution function, made monotone and
#'   cut to \[0, 1\], so that they are observed values of y, while means go on
#'   beyond these where x lies beyond its own; `"probability"`: that of each
#'   class of a factor, cut at 0 and divided by their sum; `"class"`: the most
#'   probable one; `"value"`: the embedding at the values `at` of y.
#' @param probs Probabilities.
#' @param at Values of y, as rows.
#' @param nsim,seed As in [stats::simulate()]: draws among the observed y by the
#'   positive part of the weights, a row for each new row and a column for each
#'   draw; of y with several columns, a list of `nsim` of them.
#' @param ... Must be empty.
#' @return `kme()` returns an object of class `c("kme_given", "kernmean_fit")`,
#' a list with
#' \item{y, x}{the variable y, with its sample; the covariates}
#' \item{chosen}{the smoother: the `name` of the kernel of x, `penalty`
#'   \eqn{\lambda}{lambda}, `df` its degrees of freedom, and `r2`, the share of
#'   the spread of the features of y that it predicts for left-out rows}
#' \item{losses}{a row for each kernel of x: the loss of left-out rows, as a
#'   share of that of the mean, and the degrees of freedom}
#' \item{kernel, n, arguments}{of y; the number of rows; what was asked for}
#'
#' `predict()` returns a matrix with a row for each new row (a vector for one
#' mean); `score()` the mean over the rows of newdata of the continuous ranked
#' probability score \eqn{E|Y - y| - E|Y - Y'|/2}{E|Y - y| - E|Y - Y'|/2}, of
#' several columns with norms (the energy score), or of a factor the Brier
#' score (a class that the fit has not seen has the probability 0): smaller is
#' better, in units of y. `plot()` shows bands of quantiles of
#' one numeric column against one, else the losses.
#' @references
#' Song, L., Huang, J., Smola, A. and Fukumizu, K. (2009). Hilbert space
#' embeddings of conditional distributions. \doi{10.1145/1553374.1553497}
#'
#' Grünewälder, S. et al. (2012). Conditional mean embeddings as regressors.
#' \doi{10.48550/arXiv.1205.4656} (the loss).
#'
#' Gneiting, T. and Raftery, A. E. (2007). Strictly proper scoring rules,
#' prediction, and estimation. \doi{10.1198/016214506000001437} (scores).
#' @seealso [glossary]; [kme()]; [hsic_test()] of `y ~ x | z`.
#' @examples
#' fit <- kme(dist ~ speed, cars)
#' fit
#' plot(fit)
#' new <- data.frame(speed = c(8, 20))
#' predict(fit, new, "quantile", probs = c(0.1, 0.5, 0.9))
#'
#' # Classes
#' species <- kme(Species ~ Petal.Length + Petal.Width, iris)
#' predict(species, iris[c(1, 71, 101), ], "probability")
#' @name kme_given
NULL

kme_given <- function(y, x, ..., kernel = kernel_rbf(), weights = NULL,
                      scale = FALSE) {
  asked <- request(kme_given_arguments)
  y <- read_variable(y, asked$kernel, "y", "kernel", asked$scale)
  n <- y$sample$n
  if (!knows_points(y$sample)) {
    stop_input("'y' must be numbers or factors, not distances or kernel ",
               "values")
  }
  x <- new_covariates(x)
  if (!any(x$scale > 0)) {
    stop_input("'formula' must have something on its right that varies")
  }
  if (n < fewest_rows_given) {
    stop_input("'formula' must have at least ", fewest_rows_given,
               " rows, not ", n)
  }
  weights <- read_row_weights(weights, n)
  features <- response_features(y$sample)
  kernels <- c(bank_kernels(x$x), learned_kernel(x$x, y$sample, weights))
  losses <- bank_losses(x$x, kernels, features, weights)
  bank <- make_bank(x$x, kernels[which.min(losses$loss)], weights = weights)
  new_kme_given(y, x, choose_smoother(bank, features), losses, stored(asked))
}

fewest_rows_given <- 10L

kme_given_arguments <- door_table(
  "kme_given", kernel = unless_given(a_kernel), weights = anything,
  scale = unless_given(a_scale), aside = "weights", hints = c(
    lambda = "is chosen, as the kernel of x is",
    estimator = "is the plain mean for y given x"
  )
)

new_kme_given <- function(y, x, chosen, losses, arguments) {
  new_fit("kme_given", list(
    y = y, x = x, chosen = chosen, losses = losses, n = y$sample$n,
    kernel = y$sample$kernel, arguments = arguments
  ))
}

# A factor of the Gram matrix of y: all of it for few rows, and what leaves a
# millionth for many.
response_features <- function(sample) {
  if (sample$n > most_whole) {
    return(pivoted_factor(sample_source(sample), 1e-6, bank_columns)$factor)
  }
  exact_map(sample, "y")$factor
}

most_whole <- 1000

# The kernel of several columns whose widths are learned from slopes of the
# first features of y, in a list.
learned_kernel <- function(x, y, weights) {
  if (ncol(x) < 2L) {
    return(NULL)
  }
  rows <- learning_rows(nrow(x))
  some <- take_rows(x, rows)
  sample <- points_sample(some, median_bandwidth(kernel_rbf(), some))
  weights <- weights[rows]
  response <- new_response(seq_along(rows), principal_features(
    sample_take(y, rows), weights, seq_along(rows)
  ))
  looks <- learn_widths(sample, list(response), weights, seq_along(rows))
  best <- which.min(vapply(looks, \(look) mean(look$rows), 0))
  list(learned = looks[[best]]$kernel)
}

# The left-out loss of each kernel, as a share of that of the mean.
bank_losses <- function(x, kernels, features, weights) {
  rows <- learning_rows(nrow(x))
  bank <- make_bank(take_rows(x, rows), kernels, weights = weights[rows])
  chosen <- lapply(names(bank), \(name) {
    choose_smoother(bank[name], take_rows(features, rows))
  })
  data.frame(kernel = names(bank), loss = 1 - vapply(chosen, `[[`, 0, "r2"),
             df = vapply(chosen, `[[`, 0, "df"))
}

# The weights beta(x) of new columns, a row for each.
embedding_weights_at <- function(fit, x) {
  s <- fit$chosen$smoother
  map <- s$map
  f <- point_features(small_map(map), map$sample, new_points(x))
  inverse <- drop(ridge_inverse(s$ridge, fit$chosen$penalty))
  axes <- times_columns(smoother_axes(s, f), inverse)
  times_columns(tcross(axes, s$ridge$z), s$ridge$weights / fit$n)
}

# The weights at rows of the fit without the row itself, exactly: those of a
# ridge regression on the other rows, with the same columns and penalty.
leave_out <- function(beta, rows) {
  own <- cbind(seq_along(rows), rows)
  kept <- 1 - beta[own]
  beta[own] <- 0
  beta / kept
}

# --- Predictions -------------------------------------------------------------

# The columns of new rows, or of the rows of the fit.
given_columns <- function(fit, newdata) {
  if (is.null(newdata)) {
    return(fit$x$x)
  }
  covariates_at(fit$x, if (is.null(fit$layout)) newdata else
    read_again(fit$layout, newdata, "x"))
}

# y as numbers, a column for each level of a factor.
response_values <- function(fit) {
  variable <- fit$y
  values <- sample_raw(variable$sample)
  if (is_factor_variable(variable)) {
    values <- variable$sample$x
    colnames(values) <- variable$levels
  }
  if (is.data.frame(values)) covariate_columns(values) else values
}

# The values of a single numeric column y.
single_response <- function(fit, what) {
  values <- response_values(fit)
  if (ncol(values) > 1L || is_factor_variable(fit$y)) {
    stop_input("'object' must be of one numeric column y for ", what)
  }
  drop(unname(values))
}

#' @rdname kme_given
#' @export
predict.kme_given <- function(object, newdata = NULL, type = c(
  "mean", "weights", "quantile", "probability", "class", "value"
), ..., probs = c(0.1, 0.5, 0.9), at = NULL) {
  check_dots(...)
  same_version(object)
  type <- take(type, choice("mean", "weights", "quantile", "probability",
                            "class", "value"))
  probs <- take(probs, numbers(0, 1))
  if (type == "value" && is.null(at)) {
    stop_input("'at' must be given for type = \"value\": values of y")
  }
  columns <- given_columns(object, newdata)
  value <- over_weights(object, columns, switch(
    type, weights = \(beta, rows) beta, mean = by_mean(object),
    quantile = by_quantiles(object, probs), probability =,
    class = by_probability(object), value = by_value(object, at)
  ))
  if (type == "class") {
    return(factor(colnames(value)[max.col(value, "first")], colnames(value)))
  }
  rownames(value) <- given_rows(newdata)
  if (type == "mean" && ncol(value) == 1L) value[, 1L] else value
}

# Applies `use` to the weights at new columns, a row for each, and the numbers
# of the rows; of many rows in parts, so that their weights need not be in
# memory at once.
over_weights <- function(fit, columns, use) {
  each <- max(1L, most_weights %/% fit$n)
  parts <- lapply(seq.int(0L, nrow(columns) - 1L, each), \(before) {
    rows <- before + seq_len(min(each, nrow(columns) - before))
    use(embedding_weights_at(fit, take_rows(columns, rows)), rows)
  })
  do.call(rbind, parts)
}

most_weights <- 2^22

by_mean <- function(fit) {
  values <- response_values(fit)
  \(beta, rows) product(beta, values)
}

# The quantiles of weighted distribution functions.
by_quantiles <- function(fit, probs) {
  y <- single_response(fit, "quantiles")
  order <- order(y)
  sorted <- y[order]
  names <- paste0(format(100 * probs, trim = TRUE), "%")
  function(beta, rows) {
    values <- vapply(seq_len(nrow(beta)), \(i) {
      below <- pmax(cummax(cumsum(beta[i, order])), 0)
      at <- findInterval(probs, below, left.open = TRUE) + 1L
      sorted[pmin(at, length(sorted))]
    }, probs)
    matrix(values, ncol = length(probs), byrow = TRUE,
           dimnames = list(NULL, names))
  }
}

by_probability <- function(fit) {
  if (!is_factor_variable(fit$y)) {
    stop_input("'type' must not be \"probability\" or \"class\" but for a ",
               "factor y without order, which factor(y, ordered = FALSE) makes")
  }
  values <- response_values(fit)
  function(beta, rows) {
    p <- pmax(product(beta, values), 0)
    p / rowSums(p)
  }
}

by_value <- function(fit, at) {
  new <- variable_newdata(fit$y, at, "at")
  \(beta, rows) t(sample_at(fit$y$sample, new, t(beta)))
}

#' @rdname kme_given
#' @importFrom stats simulate
#' @export
simulate.kme_given <- function(object, nsim = 1, seed = NULL, newdata = NULL,
                               ...) {
  check_dots(...)
  nsim <- take(nsim, count())
  seed <- take(seed, maybe(count(-.Machine$integer.max)))
  draw <- \(beta, rows) {
    drawn <- apply(pmax(beta, 0), 1L, \(p) sample.int(length(p), nsim, TRUE, p))
    matrix(drawn, nrow(beta), byrow = nsim > 1L)
  }
  columns <- given_columns(object, newdata)
  drawn <- with_seed(seed, over_weights(object, columns, draw))
  if (is_factor_variable(object$y)) {
    levels <- object$y$levels
    codes <- max.col(object$y$sample$x)
    return(list2DF(stats::setNames(lapply(seq_len(nsim), \(j) {
      factor(levels[codes[drawn[, j]]], levels)
    }), paste0("sim_", seq_len(nsim)))))
  }
  y <- sample_raw(object$y$sample)
  draws <- lapply(seq_len(nsim), \(j) take_frame(y, drawn[, j]))
  names(draws) <- paste0("sim_", seq_len(nsim))
  if (ncol(y) > 1L) draws else list2DF(lapply(draws, drop))
}

#' @rdname kme_given
#' @export
score.kme_given <- function(object, newdata = NULL, ...) {
  check_dots(...)
  if (is.null(newdata)) {
    known <- by_score(object, response_values(object))
    use <- \(beta, rows) known(leave_out(beta, rows), rows)
  } else {
    use <- by_score(object, new_response_values(object, newdata))
  }
  mean(over_weights(object, given_columns(object, newdata), use))
}

# The scores of the distributions of these weights for the rows of `new`.
by_score <- function(fit, new) {
  y <- response_values(fit)
  if (is_factor_variable(fit$y)) {
    p <- by_probability(fit)
    # A class that the fit has not seen has the probability 0.
    return(\(beta, rows) {
      truth <- take_rows(new, rows)
      as.matrix(rowSums((p(beta) - truth)^2) + 1 - rowSums(truth))
    })
  }
  half <- half_distance(y)
  \(beta, rows) {
    beta <- pmax(beta, 0)
    beta <- beta / rowSums(beta)
    apart <- -fold_store(kernel_energy(), take_rows(new, rows), y)
    as.matrix(rowSums(beta * apart) - half(beta))
  }
}

# Half of the mean distance of two draws from y, a number for each row of
# weights. That of numbers is the integral of F (1 - F).
half_distance <- function(y) {
  if (ncol(y) == 1L) {
    order <- order(y)
    gaps <- c(diff(y[order]), 0)
    return(\(beta) {
      below <- matrix(apply(take_columns(beta, order), 1L, cumsum), nrow(y))
      colSums(gaps * below * (1 - below))
    })
  }
  check_memory(nrow(y), nrow(y), "use fewer rows", what = "their distances")
  apart <- -fold_store(kernel_energy(), y)
  \(beta) rowSums(product(beta, apart) * beta) / 2
}

# y of new rows as numbers, as response_values() has those of the fit.
new_response_values <- function(fit, newdata) {
  if (is.null(fit$layout)) {
    stop_input("'object' must be a fit by formula")
  }
  new <- read_again(fit$layout, newdata, "y")
  own <- sample_raw(fit$y$sample)
  if (is_factor_variable(fit$y)) {
    variable_newdata(fit$y, new, "newdata")$z
  } else if (is.data.frame(new)) {
    covariate_columns(new, own, "newdata")
  } else {
    check_data(if (is.ordered(new)) as.integer(new) else new, "newdata")
  }
}

#' @rdname kme_given
#' @param a,b Two conditional kernel means with the same kernel of y: the
#'   distance of their embeddings at each row of `newdata`.
#' @export
kme_distance.kme_given <- function(a, b, ..., newdata = NULL) {
  check_dots(...)
  if (!inherits(b, "kme_given")) {
    stop_input("'b' must be a conditional kernel mean, too, not ", describe(b))
  }
  samples <- list(a$y$sample, b$y$sample)
  if (is.null(newdata) && !identical(samples[[1L]]$x, samples[[2L]]$x)) {
    stop_input("'newdata' must be given for fits to different rows")
  }
  check_same_space(samples[[1L]], samples[[2L]], "a", "b")
  beta <- lapply(list(a, b), \(fit) predict(fit, newdata, "weights"))
  between <- \(i, j) {
    k <- fold_store(a$kernel, samples[[i]]$x, samples[[j]]$x)
    rowSums(product(beta[[i]], k) * beta[[j]])
  }
  sqrt(pmax(between(1L, 1L) + between(2L, 2L) - 2 * between(1L, 2L), 0))
}

# --- Verbs -------------------------------------------------------------------

fit_lines.kme_given <- function(x, digits) {
  chosen <- x$chosen
  strwrap(c(
    "Conditional kernel mean",
    paste0(describe_variable(x$y), " given ",
           count_of(ncol(x$x$x), "column"), ", ", rows_of(x$n)),
    if (!is.null(x$kernel) && !is_factor_variable(x$y)) kernel_lines(x$kernel),
    paste0("kernel of x: ", chosen$name, " of ", nrow(x$losses), ", lambda = ",
           format_number(chosen$penalty, digits), ", ",
           format_number(chosen$df, 3L), " degrees of freedom"),
    paste0("x predicts ", format_number(100 * chosen$r2, 3L), "% of the spread",
           " of y's features in left-out rows")
  ))
}

fit_summary.kme_given <- function(x) {
  list(Kernels = x$losses[order(x$losses$loss), ])
}

fit_facts.kme_given <- function(x) {
  list(nobs = x$n, r.squared = x$chosen$r2, lambda = x$chosen$penalty,
       df = x$chosen$df, kernel = x$chosen$name)
}

fit_rows.kme_given <- function(x, ...) x$losses

fit_values.kme_given <- function(x, newdata = NULL) {
  means <- as.matrix(predict(x, newdata))
  colnames(means) <- paste0(".fitted", if (ncol(means) > 1L) colnames(means))
  as.data.frame(means)
}

fit_columns.kme_given <- function(x, newdata, added) {
  named_frame(newdata %||% x$x$like)
}

fit_request.kme_given <- function(x, changes) {
  asked <- change_request(x$arguments, changes[names(changes) != "data"])
  read <- \(side) read_again(x$layout, changes$data, side, "data")
  own <- is.null(changes$data)
  asked$y <- if (own) variable_input(x$y, "kernel" %in% names(changes)) else
    read("y")
  asked$x <- if (own) x$x$like else read("x")
  weights <- x$chosen$smoother$ridge$weights
  if (!"weights" %in% names(changes) && any(weights != 1)) {
    if (!own) {
      stop_input("'weights' must be given with other 'data', as those of the ",
                 "fit are of its rows")
    }
    asked$weights <- weights
  }
  asked
}

fit_picture.kme_given <- function(x, type = NULL) {
  single <- ncol(x$x$x) == 1L && !is_factor_variable(x$y) &&
    identical(ncol(x$y$sample$x), 1L) && is.matrix(x$x$like)
  type <- check_type(type, c(if (single) "quantiles", "losses"))
  if (type == "losses") picture_losses(x) else picture_quantiles(x)
}

picture_losses <- function(fit) {
  table <- fit$losses[order(-fit$losses$loss), ]
  y <- seq_len(nrow(table))
  new_picture("Kernels of x", "left-out loss, share of that of the mean", "",
              list(lying_layer(y, min(table$loss), table$loss),
                   mark_layer(table$loss, y, NULL)),
              table, ticks_y = list(at = y, labels = table$kernel))
}

# The points, and quantiles of y along x.
picture_quantiles <- function(fit) {
  points <- cbind(drop(fit$x$like), single_response(fit, "bands"))
  at <- seq(min(points[, 1L]), max(points[, 1L]), length.out = 100L)
  columns <- covariates_at(fit$x, matrix(at, dimnames = list(
    NULL, colnames(fit$x$like)
  )))
  bands <- over_weights(fit, columns, by_quantiles(fit, c(0.1, 0.5, 0.9)))
  name <- colnames(fit$x$like)
  new_picture(
    "Quantiles of 10%, 50% and 90%", name, fit$y$name,
    c(list(points_layer(points, main = TRUE)), lapply(1:3, \(j) {
      new_layer("line", x = at, y = bands[, j], col = accent, lwd = 2,
                lty = if (j == 2L) 1 else 2)
    })), data.frame(x = at, bands, check.names = FALSE)
  )
}

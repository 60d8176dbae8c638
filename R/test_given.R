# Tests given covariates z: is y dependent on x, or different between groups,
# when z is held fixed? What z explains is taken from the values of both sides,
# and from features of these residuals; the null distribution permutes the
# residuals of one side among rows of like z, and fits them to z again.

#' Tests given covariates
#'
#' `hsic_test(y ~ x | z, data)` asks whether y depends on x when z is held
#' fixed, `mmd_test(y ~ g | z, data)` whether the distribution of y differs
#' between groups with z alike.
#'
#' If z has factors alone, or at most n/5 different rows, points change places
#' within its levels and the test is exact: it is the test with `blocks` at
#' these levels, see [hsic_test()] and [mmd_test()], with all their arguments.
#' For other z:
#' \enumerate{
#'   \item Each column of x and y (factors as indicators) is predicted from z by
#'     ridge regression. The kernel of z, one of linear, Gaussian of several
#'     widths, sums over columns and pairs of columns, and Laplace kernels, and
#'     the penalty have the least loss of left-out rows, exactly. A column is
#'     replaced by smooth normal scores where these are predicted better. The
#'     penalty is then divided by 4.
#'   \item \eqn{e_x}{e_x} and \eqn{e_y}{e_y} are the residuals in units of their
#'     standard deviations. \eqn{E_x}{E_x} are at most 12 features of a Gaussian
#'     kernel of \eqn{e_x}{e_x}, less what z explains of them; of a factor
#'     \eqn{e_x}{e_x} itself. \eqn{E_y}{E_y} in the same way.
#'   \item For \eqn{(E_x, E_y)}{(E_x, E_y)} and \eqn{(e_x, e_y)}{(e_x, e_y)},
#'     and for \eqn{C = 1}{C = 1} and a Gaussian kernel of z, \eqn{\min(1, \sqrt
#'     d/4)}{min(1, sqrt(d)/4)} times its median distance wide, the statistic is
#'     \eqn{\sum_{ij} (E_xE_x')_{ij} (E_yE_y')_{ij} C_{ij} / \sum_i
#'     (E_xE_x')_{ii} (E_yE_y')_{ii}}{sum_ij (E_x E_x')_ij (E_y E_y')_ij C_ij /
#'     sum_i (E_x E_x')_ii (E_y E_y')_ii}. The four roots are standardized over
#'     all draws, and the largest is the statistic of the test.
#'   \item A draw permutes the residuals of one side (half of the draws x, half
#'     y) among cells of 8 to 15 rows of like z (more where values of z are
#'     equal), within levels of the factors of z, adds what z explains, and
#'     takes it away again by the same regressions.
#' }
#' `kernel = kernel_linear()` has the last two statistics alone: a generalized
#' covariance measure with another null distribution. Distances on the left are
#' tested by their first 20 principal coordinates, all in one unit.
#'
#' The print says how much of each side z explains in left-out rows. *Strain* is
#' the root of n times the product, over both sides, of the share of residual
#' variance by which half of the rows predict worse (or, if it is larger, of 2.5
#' (1 - R^2) df/n): above 3, z's effect is not learned well enough. The *share*
#' is the dependence found as a share of the residual variances: what the
#' regressions would have to have missed. *Reach*, below 0.5 with ten or more
#' columns and few rows, says that hardly more than additive effects of z can be
#' learned. Where z explains all but 0.1% of a side, the print says so, too. If
#' one of these is said and the test rejects, it warns (class
#' `kernmean_warning_strain`). A side that is a function of z by a line, or has
#' one value, is an error. A warning of class `kernmean_warning_alike` says
#' that residuals of neighbouring rows are alike (also where the test is exact):
#' rows in time or space do not change places; rows that are merely sorted may.
#'
#' @section How far to trust it:
#' The study `conditional.R` (`vignette("tests")`) has 30 designs in which y
#' does not depend on x given z and z's effect can be learned, ten of them new
#' to the constants of the test. With 100 rows and 500 samples each, 29 are
#' rejected at 5% in .026 to .068, and one in .16: ten steps up and down, the
#' same in x and y (`step`; .17 with 300 rows), of which strain says so in 7 of
#' 10 samples. With 300 rows and 200 samples 25 are at most .07, and four .08 to
#' .095. Tests of the literature reject the same in up to 1.00 (KCI, RCoT), .98
#' (GCM) or .90 (PCM). Where nothing can be learned from so few rows (fast waves
#' of a sum of five columns, a square in twenty), every such test rejects;
#' strain or reach say so in most samples, not in all. With dependence that is
#' no line the power is .67 to .96 where GCM has .02 to .10; where it is a line
#' it is .42 to .93 where GCM has .63 to 1.00, and `kernel = kernel_linear()`
#' gets back a part of that. With few rows the regressions take many degrees of
#' freedom; then the print says that a large p says little: for `mpg ~ wt | hp +
#' cyl` in `mtcars` p is 0.4, and 0.003 with `control = test_control(bank =
#' list(linear = kernel_linear()))`, which takes lines for granted. Rows in time
#' or space need other tests.
#'
#' Six partial designs on distances of `dune`, `varespec` and `mite` (package
#' vegan) are answered as by `adonis2(by = "terms")` at 5% in four. The other
#' two it alone rejects: `P | Al` in `varespec` (p 0.01, here 0.36) and `Shrub |
#' WatrCont + SubsDens` in `mite` (0.015, here 0.10), where strain is 6 and 4
#' here and z's effect a line there.
#'
#' @section Cost:
#' O(n r^2) time for each kernel of z, r at most 150, and O(Bn) times 1,200 to
#' 12,000 flops for the draws: half a second for n = 1,000 and one column of z,
#' 0.7 s for five, 3 to 7 s for n = 10,000, with B = 199 on two cores. Memory:
#' 64 MB at a time for draws, 16nr bytes for each kernel.
#' @name given
#' @references
#' Shah, R. D. and Peters, J. (2020). The hardness of conditional independence
#' testing and the generalised covariance measure. \doi{10.1214/19-AOS1857}
#'
#' Zhang, K. et al. (2011). Kernel-based conditional independence test and
#' application in causal discovery. \doi{10.48550/arXiv.1202.3775}
#'
#' Strobl, E. V., Zhang, K. and Visweswaran, S. (2019). Approximate kernel-based
#' conditional independence tests for fast non-parametric causal discovery.
#' \doi{10.1515/jci-2018-0017}
#' @seealso [glossary]; [test_control()] for `undersmooth`, `cells`, `bank`;
#'   [kme_given] for the distribution of y given x.
#' @examples
#' air <- na.omit(airquality)
#' set.seed(1)
#' test <- hsic_test(Ozone ~ Solar.R | Temp + Wind, air)
#' test
#' plot(test, "residuals")
#'
#' # Groups with covariates alike; within levels the test is exact
#' mmd_test(mpg ~ am | hp + wt, mtcars, B = 199)
#' mmd_test(mpg ~ am | cyl, mtcars, B = 199)
NULL

# The data of a test given covariates.
#   kind     "independence", or "two-sample" of groups x
#   x, y, z  the sides of the formula
#   label    what the sides are called, by name
new_given_data <- function(kind, x, y, z, label) {
  structure(list(kind = kind, x = x, y = y, z = z, label = label),
            class = "given_data")
}

# --- The door ----------------------------------------------------------------

# Reads the formula y ~ x | z of the method that calls this function. `kinds` is
# the kind of the sides y and x.
read_given <- function(kinds, frame = parent.frame()) {
  formula <- given_formula(frame)
  right <- formula[[3L]]
  parts <- list(y = formula[[2L]], x = right[[2L]], z = right[[3L]])
  if (is.call(parts$x) && identical(parts$x[[1L]], quote(`|`))) {
    stop_input("'formula' must have one bar, with a sum of all that is given ",
               "after it, as in y ~ x | a + b")
  }
  parts$z <- main_terms(parts$z)
  same <- intersect(variables_in(parts$z),
                    unlist(lapply(parts[1:2], variables_in)))
  if (length(same)) {
    stop_input("'formula' must have after the bar what is given, and not ",
               quoted(same), ", which stands before it, too")
  }
  data <- given_data(frame)
  for (name in all.vars(formula)) {
    value <- if (is.list(data) && name %in% names(data)) data[[name]] else
      get0(name, environment(formula))
    if (stats::is.ts(value)) refuse_time(name)
  }
  read <- read_sides(c(kinds, z = "terms"), c("blocks", "clusters"),
                     parts = parts, frame = frame)
  if (any(read$names$x %in% read$names$y)) refuse_same_sides()
  read$labels <- vapply(read$names, shorten, "", sep = " + ")
  check_no_na(read$z, read$labels[["z"]])
  read$strata <- given_strata(read$z, read$blocks)
  read
}

# The sum of the variables of terms, in place of their interactions: kernels of
# all columns have these anyway.
main_terms <- function(call) {
  if (!any(c("*", ":", "^") %in% all.names(call)) || "." %in% all.vars(call)) {
    return(call)
  }
  formula <- stats::as.formula(base::call("~", call))
  sum_of(as.list(attr(stats::terms(formula), "variables"))[-1L])
}

# The variables of an expression; a$b is one.
variables_in <- function(call) {
  if (is.name(call)) {
    as.character(call)
  } else if (is.call(call) && !identical(call[[1L]], quote(`$`))) {
    unlist(lapply(as.list(call)[-1L], variables_in))
  } else if (is.call(call)) {
    deparse1(call)
  }
}

# Does the formula of the method that calls this function have a part that is
# given, as y ~ x | z has?
has_given <- function(frame = parent.frame()) {
  formula <- given_formula(frame)
  length(formula) == 3L && is.call(formula[[3L]]) &&
    identical(formula[[3L]][[1L]], quote(`|`))
}

refuse_time <- function(side) {
  stop_input("'", side, "' must not be a time series: rows that follow each ",
             "other in time do not change places; give the time of day or year",
             " after the bar and as 'blocks' the spells that are alike")
}

# Codes of the rows with equal z, if z has factors alone or few values: then the
# test within these blocks is exact. NULL for other z.
given_strata <- function(z, blocks = NULL) {
  columns <- c(as.data.frame(z), list(blocks)[length(blocks) > 0L])
  codes <- number_codes(do.call(paste, lapply(unname(columns), number_codes)))
  nominal <- is.data.frame(z) && all(vapply(z, has_levels, NA))
  if (nominal || max(0, codes) <= length(codes) / fewest_in_stratum) codes
}

fewest_in_stratum <- 5

# The test of what was read. The dots are arguments of the door.
test_read <- function(kind, read, ...) {
  unit <- names(Filter(length, read[c("blocks", "clusters")]))
  if (length(unit)) {
    stop_input("'", unit[1L], "' must not be given beside numeric covariates; ",
               "blocks are a factor among them, as in y ~ x | z + factor(id), ",
               "and of clusters take means or one row each")
  }
  data <- new_given_data(kind, read$x, read$y, read$z, read$labels)
  name_given(test_given(data, ...), read)
}

# The test with the name of what is given and the rows that were dropped.
name_given <- function(test, read) {
  if (!is.null(read$labels) && is.null(test$given)) {
    test$data.name <- paste(test$data.name, "given", read$labels[["z"]])
    warn_neighbours(vapply(read[c("x", "y")], alike_in_strata, 0, read$strata),
               length(read$strata))
  }
  test$na.action <- read$na.action
  test
}

# The correlation of neighbouring rows in the first column of a side, or in the
# codes of its levels, less the means of the strata; none for distances.
alike_in_strata <- function(values, strata) {
  values <- if (is.data.frame(values)) values[[1L]] else plain_term(values)
  if (has_levels(values) || is.character(values)) {
    values <- as.integer(as_factor(values))
  } else if (!is.numeric(values) && !is.logical(values) ||
             inherits(values, "dist")) {
    return(0)
  }
  first <- as.matrix(values)[, 1L]
  neighbour_correlation(first - stats::ave(first, strata))
}

check_groups_given <- function(x, name) {
  check_no_na(x, name)
  groups <- check_factor(x, name)
  if (min(tabulate(groups)) < 2L) {
    stop_input("'formula' must have groups of at least two rows before the ",
               "bar; of a numeric variable hsic_test() is the test")
  }
  groups
}

test_given <- function(x, ..., kernel = kernel_rbf(), B = NULL,
                       control = test_control(), progress = interactive()) {
  asked <- request(given_arguments)
  options <- given_options(asked)
  z <- new_covariates(if (is.data.frame(x$z)) x$z else named_columns(x$z, "z"),
                      x$label[["z"]])
  n <- nrow(z$x)
  if (n < fewest_given) {
    stop_input("'formula' must have at least ", fewest_given, " rows, or ",
               "few values after the bar, not ", n, " rows")
  }
  bank <- make_bank(z$x, options$bank %||% bank_kernels(z$x))
  sides <- list(x = given_side(x$x, x$label[["x"]], bank, options),
                y = given_side(x$y, x$label[["y"]], bank, options))
  cells <- like_cells(z, options$cells %||% usual_cell)
  if (cell_ways(cells) < 2 * (options$B + 1)) {
    stop_input("'formula' must have factors after the bar of which several ",
               "rows share a level: rows change places within levels, here in ",
               "only ", count_of(cell_ways(cells), "way"))
  }
  warn_alone(cells, "cell of like rows")
  statistic <- given_statistic(sides, z$x, cells, options)
  new_given_test(x, sides, z, cells, statistic, options, stored(asked))
}

# The request with what its control sets.
given_options <- function(asked) {
  control <- unclass(asked$control)
  set <- names(control)[!vapply(control, is.null, NA)]
  options <- apply_rules(c(asked, control), given_rules, set)
  options[c("null", "linear")] <- list(
    "permutation", kernel_has(options$kernel, "linear form")
  )
  options$B <- options$B %||% 399L
  options
}

given_rules <- list(when(
  \(a) TRUE, null = NULL, statistic = NULL, permutations = NULL, bins = NULL,
  reason = "for a test given numeric covariates"
))

fewest_given <- 20L
usual_cell <- 8L

given_kernel <- new_kind("kernel_rbf() or kernel_linear()", \(x) {
  inherits(x, "kernmean_kernel") && !kernel_has(x, "parts") &&
    (kernel_has(x, "linear form") ||
       kernel_has(x, "Gaussian form") && identical(x$bandwidth, "median"))
})

no_more <- "is not for a test given numeric covariates"
given_arguments <- door_table(
  "test_given", kernel = given_kernel, B = maybe(count()), control = a_control,
  progress = flag, hints = c(
    estimator = no_more, bandwidths = no_more, filter = no_more,
    scale = no_more, kernel_x = "is 'kernel' here, for both sides",
    kernel_y = "is 'kernel' here, for both sides", test_hints
  )
)

# --- Sides -------------------------------------------------------------------

# A side of the test, x or y, with what z explains of it.
#   x        its columns, in units of their standard deviations
#   chosen   the smoother of each column, see new_chosen()
#   sd       the standard deviations of the residuals of the columns
#   e        the residuals, in these units
#   fitted   what z explains, in these units
#   made     makes features of residuals; NULL where e are all features
#   smooth   the smoother of the features, or NULL
#   features the features less what z explains of them
new_given_side <- function(x, chosen, sd, e, fitted, made = NULL,
                           smooth = NULL, features = e) {
  list(x = x, chosen = chosen, sd = sd, e = e, fitted = fitted, made = made,
       smooth = smooth, features = features)
}

given_side <- function(values, name, bank, options) {
  nominal <- has_levels(values) || is.character(values)
  columns <- side_columns(values, name)
  x <- columns$x
  undersmooth <- options$undersmooth %||% usual_undersmooth
  chosen <- list()
  for (j in seq_len(ncol(x))) {
    chosen[[j]] <- choose_smoother(bank, x[, j])
    score <- if (columns$scored) normal_score(x[, j])
    other <- if (!is.null(score)) choose_smoother(bank, score)
    if (!is.null(other) && other$r2 > chosen[[j]]$r2 + 1 / nrow(x)) {
      chosen[[j]] <- other
      x[, j] <- score
    }
    chosen[[j]]$used <- undersmoothed(chosen[[j]], undersmooth)
  }
  fitted <- refit_columns(chosen, x)
  e <- x - fitted
  sd <- sqrt(colSums(center_columns(e)^2) / (nrow(e) - 1))
  known <- vapply(chosen, `[[`, 0, "r2") > 1 - least_unexplained
  if (any(known)) {
    stop_input("'", name, "' must not be a function of what is given: nothing ",
               "of ", if (ncol(x) > 1L) quoted(colnames(x)[known]) else "it",
               " is left to test")
  }
  # Coordinates of distances have the unit of the largest.
  if (!columns$scored && !nominal) sd[] <- max(sd)
  sd <- pmax(sd, 1e-12)
  side <- new_given_side(x, chosen, sd, times_columns(e, 1 / sd),
                         times_columns(fitted, 1 / sd))
  if (nominal || options$linear) side else add_features(side, bank)
}

# Less than this share of a variance is rounding.
least_unexplained <- 1e-9

# The penalty of a smoother is divided, because what it leaves of z would look
# like dependence; a larger variance does no harm.
usual_undersmooth <- 1 / 4

undersmoothed <- function(chosen, share) {
  s <- chosen$smoother
  most <- most_freedom * nrow(s$ridge$z)
  while (share < 1 && smoother_df(s, share * chosen$penalty) >= most) {
    share <- min(1, 1.5 * share)
  }
  share * chosen$penalty
}

# The columns of a side, with the unit 1 each; of distances the principal
# coordinates. scored: may a column be replaced by its normal scores?
side_columns <- function(values, name) {
  if (inherits(values, "dist")) {
    g <- dist_sample(values, "y")$gram
    k <- center_gram(g$K / 2)$k
    pairs <- .Call(C_r_eigen, k, min(most_coordinates, nrow(k)))
    kept <- pairs$values > 1e-8 * pairs$values[1L]
    x <- times_columns(take_columns(pairs$vectors, kept),
                       sqrt(pairs$values[kept] * (nrow(k) - 1) /
                              pairs$values[1L]))
    colnames(x) <- paste("coordinate", seq_len(ncol(x)))
    return(list(x = x, scored = FALSE))
  }
  values <- as_factors(plain_term(values), name)
  frame <- if (has_levels(values)) {
    stats::setNames(list2DF(list(values)), name)
  } else {
    read_points(values, name)
  }
  if (is.null(colnames(frame))) {
    colnames(frame) <- paste0(name, if (ncol(frame) > 1L) seq_len(ncol(frame)))
  }
  columns <- new_covariates(frame, name)
  varies <- columns$scale > 0
  if (!any(varies)) {
    stop_input("'", name, "' must vary, not have the same value in all rows")
  }
  list(x = take_columns(columns$x, varies), scored = !has_levels(values))
}

most_coordinates <- 20L

refit_columns <- function(chosen, x) {
  columns <- lapply(seq_along(chosen), \(j) {
    smoother_fit(chosen[[j]]$smoother, take_columns(x, j), chosen[[j]]$used)
  })
  do.call(cbind, columns)
}

# Normal scores by a smooth distribution function, the mean of normal ones
# around the values, or around 300 quantiles of them; NULL where most
# values are equal. Ranks would make a common signal of z of all columns.
normal_score <- function(x) {
  n <- length(x)
  width <- 1.06 * min(stats::sd(x), stats::IQR(x) / 1.34) * n^-0.2
  if (!(width > 0) || length(unique(x)) <= 10L) {
    return(NULL)
  }
  around <- sort(x)[evenly(n, most_around)]
  p <- colMeans(stats::pnorm(outer(around, x, \(a, b) (b - a) / width)))
  drop(new_covariates(matrix(stats::qnorm(
    pmin(pmax(p, 0.25 / n), 1 - 0.25 / n)
  ), dimnames = list(NULL, "x")))$x)
}

most_around <- 300L

# --- Features of residuals ---------------------------------------------------

add_features <- function(side, bank) {
  side$made <- residual_features(side$e)
  features <- side$made(side$e)
  chosen <- choose_smoother(bank, features)
  chosen$used <- chosen$penalty
  side$smooth <- chosen
  side$features <- features - smoother_fit(chosen$smoother, features,
                                           chosen$used)
  side
}

most_features <- 12L

# Returns a function that makes features of residuals, by a pivoted Cholesky
# factor of their Gaussian kernel. The first pivot is the residual nearest the
# mean, so that the order of rows does not matter.
residual_features <- function(e, most = most_features) {
  kernel <- median_bandwidth(kernel_rbf(), e)
  pivot <- which.min(rowSums(center_columns(e)^2))
  factor <- matrix(0, nrow(e), 0L)
  left <- rep(1, nrow(e))
  pivots <- integer()
  while (length(pivots) < most && left[pivot] >= 1e-3) {
    column <- fold_store(kernel, e, take_rows(e, pivot)) -
      tcross(factor, take_rows(factor, pivot))
    factor <- cbind(factor, column / sqrt(left[pivot]))
    pivots <- c(pivots, pivot)
    left <- pmax(left - factor[, length(pivots)]^2, 0)
    pivot <- which.max(left)
  }
  at <- take_rows(e, pivots)
  turn <- t(inverse_lower(take_rows(factor, pivots)))
  \(e) product(fold_store(kernel, e, at), turn)
}

# --- Cells -------------------------------------------------------------------

# Codes of rows with like z: halves of halves of the columns of largest spread,
# of at least `size` rows, within the levels of the factors of z. Equal values
# stay together, so that the order of rows says nothing.
like_cells <- function(z, size) {
  frame <- as.data.frame(z$like)
  nominal <- vapply(frame, has_levels, NA)
  x <- if (all(nominal)) matrix(0, nrow(z$x), 0L) else
    new_covariates(frame[!nominal])$x
  level <- if (any(nominal)) as.integer(interaction(frame[nominal])) else
    rep(1L, nrow(z$x))
  cell <- integer(nrow(x))
  halve <- function(rows) {
    n <- length(rows)
    values <- take_rows(x, rows)
    spread <- colSums(center_columns(values)^2)
    for (j in if (n >= 2L * size) order(spread, decreasing = TRUE)) {
      order <- order(values[, j])
      cuts <- seq(size, n - size)
      cuts <- cuts[diff(values[order, j])[cuts] > 0]
      if (length(cuts)) {
        half <- seq_len(cuts[which.min(abs(cuts - n %/% 2L))])
        halve(rows[order[half]])
        return(halve(rows[order[-half]]))
      }
    }
    cell[rows] <<- max(cell) + 1L
  }
  for (rows in split(seq_along(level), level)) halve(rows)
  cell
}

# --- The statistics ----------------------------------------------------------

# The joint statistic: HSIC of the features and of the values, each over all
# pairs of rows and over pairs with like z.
given_statistic <- function(sides, z, cells, options) {
  B <- options$B
  locals <- list(matrix(1, nrow(z), 1L), near_factor(z))
  linear <- options$linear
  observed <- given_ratios(if (!linear) sides$x$features, sides$x$e, sides$y,
                           locals)
  half <- ceiling(B / 2)
  drawn <- Map(\(from, other, draws) {
    if (draws == 0) {
      return(NULL)
    }
    width <- max(most_features, ncol(from$e))
    size <- max(1L, most_drawn %/% (nrow(z) * width))
    in_chunks(as.integer(draws), size, options$progress, \(start, count) {
      refitted_ratios(from, other, locals, linear,
                      draw_permutations(rep(1L, nrow(z)), count, cells))
    })
  }, sides, rev(sides), c(half, B - half))
  values <- cbind(observed, do.call(cbind, unlist(unname(drawn), FALSE)))
  names <- if (linear) given_names[3:4] else given_names
  statistic <- aggregate_statistics(lapply(seq_along(names), \(k) {
    new_statistic(names[k], sqrt(values[k, ]), 1)
  }), FALSE)
  statistic$table$value <- values[, 1L]
  statistic
}

most_drawn <- 2^22
given_names <- c("HSIC of residuals", "HSIC of residuals near in z",
                 "covariance of residuals", "covariance of residuals near in z")

# A factor of the Gaussian kernel of z that says which rows have like z, with a
# diagonal of ones. The first pivot is the row nearest the mean, so that the
# order of rows does not matter.
near_factor <- function(z) {
  kernel <- median_bandwidth(kernel_rbf(), z)
  kernel$bandwidth <- kernel$bandwidth * min(1, sqrt(ncol(z)) / 4)
  order <- order(rowSums(center_columns(z)^2))
  l <- pivoted_factor(sample_source(points_sample(take_rows(z, order), kernel)),
                      bank_tolerance, bank_columns)$factor
  l <- l / sqrt(rowSums(l^2))
  take_rows(l, order(order))
}

# The statistics of draws, a row for each statistic. `features` and `e` have the
# features, or NULL, and the residuals of one side in blocks of columns, one for
# each draw.
given_ratios <- function(features, e, other, locals, draws = 1L) {
  rbind(if (!is.null(features)) {
    form_ratios(features, other$features, locals, draws)
  }, form_ratios(e, other$e, locals, draws))
}

# sum_ij (EE')_ij (OO')_ij C_ij / sum_i (EE')_ii (OO')_ii of each draw E, a row
# for each C = LL' with a diagonal of ones.
form_ratios <- function(e, o, locals, draws) {
  by_draw <- \(sums) colSums(matrix(sums, ncol = draws))
  size <- by_draw(drop(cross(e^2, as.matrix(rowSums(o^2)))))
  do.call(rbind, lapply(locals, \(l) {
    sums <- 0
    if (by_pairs(nrow(e), ncol(l), ncol(o), ncol(e))) {
      sums <- column_dots(product(tcross(l) * tcross(o), e), e)
    } else {
      for (j in seq_len(ncol(o))) sums <- sums + colSums(cross(l * o[, j], e)^2)
    }
    by_draw(sums) / pmax(size, 1e-300)
  }))
}

# Does the matrix of all pairs of n rows take fewer flops than factors of r and
# q columns, for m columns of draws?
by_pairs <- \(n, r, q, m) n * (r + q + m) < r * q * m

# The statistics of a side whose residuals change places. What z explains is
# added to them, and taken away again by the same smoothers.
refitted_ratios <- function(side, other, locals, linear, permutations) {
  n <- nrow(side$e)
  draws <- ncol(permutations)
  e <- lapply(seq_along(side$chosen), \(j) {
    one <- side$chosen[[j]]
    kept <- 1 - smoother_leverages(one$smoother, one$used)
    moved <- side$e[, j] / sqrt(pmax(kept, 0.05))
    moved <- moved - mean(moved)
    x <- side$fitted[, j] + matrix(moved[permutations], n)
    x - smoother_fit(one$smoother, x, one$used)
  })
  # The columns of a draw stand side by side.
  e <- matrix(vapply(e, identity, e[[1L]]), n)
  e <- take_columns(e, as.vector(t(matrix(seq_len(ncol(e)), draws))))
  features <- if (is.null(side$made)) {
    if (!linear) e
  } else {
    made <- lapply(seq_len(draws), \(k) {
      at <- take_columns(e, (k - 1L) * ncol(side$e) + seq_len(ncol(side$e)))
      spread <- sqrt(colSums(center_columns(at)^2) / (n - 1))
      side$made(times_columns(at, 1 / pmax(spread, 1e-12)))
    })
    made <- do.call(cbind, made)
    made - smoother_fit(side$smooth$smoother, made, side$smooth$used)
  }
  given_ratios(features, e, other, locals, draws)
}

#' Landmarks for sketches
#'
#' Few points whose kernel sections nearly span those of a large sample: what a
#' [kme_sketch()] projects rows on.
#'
#' With landmarks \eqn{S} (m points) and \eqn{K_{SS} = E\,\mathrm{diag}(s)E'}{
#' K_SS = E diag(s) E'}, of which the r eigenvalues above \eqn{10^{-10}s_1}{
#' 1e-10 s_1} are kept, the features of a point are \eqn{\phi(x) = W'k(S, x)}{
#' phi(x) = W'k(S, x)}, \eqn{W = E\,\mathrm{diag}(s)^{-1/2}}{W = E
#' diag(s)^(-1/2)} (the Nyström approximation). The share of the trace that is
#' lost, \eqn{1 - \sum_i |\phi(x_i)|^2/\sum_i k(x_i, x_i)}{1 - sum_i
#' |phi(x_i)|^2 / sum_i k(x_i, x_i)}, says how good they are for the pilot, the
#' rows they were chosen from.
#'
#' `"rpcholesky"` is the randomly pivoted Cholesky factorization (Chen, Epperly,
#' Tropp and Webber 2025): a row is drawn with probability proportional to what
#' is left of its \eqn{k(x, x)}{k(x, x)} by the landmarks drawn before; blocks
#' of 16 proposals are thinned so that the law is that of drawing one by one
#' (Epperly, Tropp and Webber 2024). It stops where the largest residual is
#' rounding, so that there are never more landmarks than rows that differ.
#' `"uniform"` draws rows that have all the same chance. A factor has its levels
#' as landmarks, which lose nothing.
#'
#' Neither sees groups or responses, so that tests from sketches keep their
#' level if the pilot is of all groups; landmarks from one of two samples favor
#' it where they lose much (`inst/studies/sketch-level.R`). Kernels of inner
#' products (linear, polynomial) see the origin: of columns far from 0 for their
#' spread take `scale = TRUE`; a warning says when.
#'
#' Bandwidth and units (`scale`) come from the pilot and stay what they are for
#' all rows that are read later.
#'
#' @param x A numeric matrix, a data frame, a vector, a factor; or a stream of
#'   rows, see [kme_sketch_sources]. In a data frame with factors the kernel is
#'   the product of that of the numeric columns and of equality of each factor,
#'   see [hsic_test()]; leave out columns that are to be groups or weights.
#' @param m Number of landmarks, at most; fewer where the pilot has no more rows
#'   that differ.
#' @param kernel A kernel; its bandwidth is chosen from the pilot.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method.
#' @param method `"rpcholesky"` or `"uniform"`.
#' @param pilot Rows to choose from: a sample of so many, drawn at random, if
#'   there are more (of a stream in one pass, which uses it up). With a kernel
#'   that is an R function at most 2,000.
#' @param scale The units of the columns, see [units].
#' @param na.action [stats::na.fail()], which counts missing values in an error,
#'   or [stats::na.omit()], which drops their rows.
#' @param read,chunk For streams, see [kme_sketch_sources].
#' @param formula A formula without response, `~ a + b`.
#' @param data A data frame, or a stream of data frames.
#' @return An object of class `kme_landmarks`, a list with
#' \item{variable}{what the landmarks are points of: a list with its `name` and
#'   `sample`, whose points `x` are in the units of the kernel (`raw` in the
#'   user's)}
#' \item{terms}{the terms of a formula, else `NULL`}
#' \item{kernel}{the kernel with its bandwidth as a number}
#' \item{m, rank}{number of landmarks, and r}
#' \item{method, pilot}{how they were chosen, and from how many rows}
#' \item{lost}{the share of the trace of the pilot that they lose}
#' \item{values, root}{\eqn{s_1, \ldots, s_r}{s_1, ..., s_r} and W, m by r}
#' \item{id}{tells these landmarks from others}
#' @details Time O(N m (d + m)) and 16 N m bytes for a pilot of N rows, and an
#' eigendecomposition of an m by m matrix. `plot()` shows the landmarks in one
#' or two columns, or the eigenvalues.
#' @references
#' Chen, Y., Epperly, E. N., Tropp, J. A. and Webber, R. J. (2025). Randomly
#' pivoted Cholesky: practical approximation of a kernel matrix with few entry
#' evaluations. *Communications on Pure and Applied Mathematics* 78(5),
#' 995--1041. \doi{10.1002/cpa.22234}
#'
#' Epperly, E. N., Tropp, J. A. and Webber, R. J. (2024). Embrace rejection:
#' kernel matrix approximation by accelerated randomly pivoted Cholesky.
#' \doi{10.48550/arXiv.2410.03969}
#' @seealso [kme_sketch()]
#' @examples
#' set.seed(1)
#' l <- kme_landmarks(quakes[1:2], m = 40, scale = TRUE)
#' l
#' plot(l)
#' kme_landmarks(~ long + lat, quakes, m = 40, method = "uniform", scale = TRUE)
#' @export
kme_landmarks <- function(x, ...) {
  UseMethod("kme_landmarks")
}

#' @rdname kme_landmarks
#' @export
kme_landmarks.default <- function(x, m = 300, kernel = kernel_rbf(), ...,
                                  method = c("rpcholesky", "uniform"),
                                  pilot = 20000, scale = FALSE,
                                  na.action = stats::na.fail, read = NULL,
                                  chunk = 50000) {
  check_dots(...)
  if (missing(x)) stop_input("'x' must be given: the rows to choose from")
  check_source(x, parts = FALSE)
  options <- read_landmark_options(
    m, if (!missing(kernel)) kernel, method, pilot,
    if (!missing(scale)) scale, na.action
  )
  x <- pilot_frame(x, options$pilot, read, chunk)
  choose_landmarks(read_pilot(x, options), options)
}

#' @rdname kme_landmarks
#' @export
kme_landmarks.formula <- function(formula, data = NULL, m = 300, ...,
                                  pilot = 20000, read = NULL, chunk = 50000) {
  if (missing(formula)) stop_input("'formula' must be given, as in ~ a + b")
  if (length(formula) != 2L) {
    stop_input("'formula' must have no response, as in ~ a + b; for two ",
               "variables give kme_sketch() a list of two sets of landmarks")
  }
  pilot <- pilot_size(pilot, list(...)$kernel)
  frame <- if (!is.null(data)) pilot_frame(data, pilot, read, chunk)
  call <- match.call(expand.dots = FALSE)[c(1L, 2L)]
  call$data <- frame
  sample <- formula_sample(call, formula, frame, TRUE, parent.frame())
  landmarks <- kme_landmarks.default(sample$x, m, ..., pilot = pilot)
  landmarks["terms"] <- list(sample$terms)
  landmarks
}

# --- Arguments -------------------------------------------------------------

# `kernel` and `scale`: NULL where they were not given.
read_landmark_options <- function(m = 300, kernel = NULL,
                                  method = "rpcholesky", pilot = 20000,
                                  scale = NULL, na.action = stats::na.fail) {
  if (!is.null(kernel)) check_definite(check_kernel(kernel))
  list(m = take(m, count()), kernel = kernel,
       method = take(method, choice("rpcholesky", "uniform")),
       pilot = pilot_size(pilot, kernel), scale = check_scale(scale),
       omit = drops_missing(na.action))
}

# Rows that a user's function is called with, all pairs of them.
most_rows_of_functions <- 2000L

pilot_size <- function(pilot, kernel) {
  pilot <- take(pilot, count())
  if (is_function_kernel(kernel)) min(pilot, most_rows_of_functions) else pilot
}

# na.fail or na.omit, as functions or by name.
drops_missing <- function(na.action) {
  known <- list(stats::na.fail, "na.fail", stats::na.omit, "na.omit")
  at <- which(vapply(known, identical, NA, na.action))
  if (!length(at)) {
    stop_input("'na.action' must be na.fail or na.omit, not ",
               describe(na.action))
  }
  at > 2L
}

# Is it rows, or what yields them?
check_source <- function(x, parts = TRUE) {
  # A connection is an integer with a class.
  vector <- is.null(dim(x)) && (is.numeric(x) || is_nominal(x)) &&
    !inherits(x, "connection")
  if (!vector && !is.matrix(x) && !is.data.frame(x) && !is_stream(x) &&
        !(parts && is_plain_list(x))) {
    stop_input("'x' must be a matrix, a data frame, a vector or a stream of ",
               "rows, not ", describe(x))
  }
}

# --- The pilot -------------------------------------------------------------

# At most `pilot` rows, drawn at random.
pilot_frame <- function(x, pilot, read = NULL, chunk = 0) {
  if (is_stream(x)) {
    return(pilot_rows(x, pilot, read, chunk))
  }
  if (!is.null(read)) {
    stop_input("'read' must be NULL unless 'x' names files")
  }
  n <- NROW(x)
  if (n <= pilot) x else take_frame(x, sort(sample.int(n, pilot)))
}

# Rows of a matrix or a data frame, elements of a vector.
take_frame <- function(x, rows) {
  if (is.null(dim(x))) x[rows] else x[rows, , drop = FALSE]
}

# The pilot as a variable with its kernel.
read_pilot <- function(x, options) {
  if (anyNA(x)) {
    kept <- which(stats::complete.cases(x))
    if (!options$omit) refuse_missing(NROW(x) - length(kept), NROW(x))
    if (!length(kept)) {
      stop_input("'x' must have rows without missing values")
    }
    x <- take_frame(x, kept)
  }
  variable <- read_variable(x, options$kernel, "x", "kernel", options$scale)
  if (is_factor_variable(variable) && is.data.frame(x)) {
    variable$column <- names(x)
  }
  variable
}

refuse_missing <- function(count, n) {
  stop_input("'x' must have no missing values, which ", count, " of ",
             rows_of(n), " have; na.action = na.omit drops these")
}

choose_landmarks <- function(variable, options) {
  sample <- variable$sample
  check_definite(sample$kernel)
  n <- sample$n
  if (is_factor_variable(variable)) {
    x <- diag(length(variable$levels))
    variable$sample <- points_sample(x, sample$kernel)
    return(new_landmarks(variable, "levels", n, 0))
  }
  warn_origin(sample)
  chosen <- if (options$method == "uniform") {
    sample.int(n, min(options$m, n))
  } else {
    source <- sample_source(sample)
    .Call(C_r_random_pivots, source, as.integer(min(options$m, n)),
          proposals_at_once)$pivots
  }
  if (!length(chosen)) {
    stop_input("'x' must have rows whose kernel values are not all 0")
  }
  variable$sample <- sample_take(sample, chosen)
  if (is_mixed_variable(variable)) {
    variable$mixed$frame <- take_frame(variable$mixed$frame, chosen)
  }
  landmarks <- new_landmarks(variable, options$method, n)
  # The share of the trace of the pilot that is lost: sum |phi(x)|^2 is made of
  # sum k(S, x)k(S, x)'.
  second <- landmark_sums(landmarks, sample$x, NULL, TRUE)$second
  seen <- sum(column_dots(landmarks$root, product(second, landmarks$root)))
  landmarks$lost <- max(0, 1 - seen / sum(fold_diagonal(landmarks$kernel,
                                                        sample$x)))
  landmarks
}

proposals_at_once <- 16L

# Of points that were given; their kernel is theirs.
given_landmarks <- function(x, options) {
  variable <- read_variable(x, options$kernel, "landmarks", "kernel",
                            options$scale)
  warn_origin(variable$sample)
  new_landmarks(variable, "given", 0L)
}

most_from_origin <- 1e3

# With an inner product as kernel the mean of rows far from 0 is all that
# landmarks see: their spread has the share (spread/distance)^2 of K_SS.
warn_origin <- function(sample) {
  if (!is_poly(sample$kernel) || is_scaled(sample$kernel) ||
        sample$n < 2L) {
    return(invisible())
  }
  of <- column_spreads(sample$x)
  spread <- of$unit * of$spread
  distance <- max(abs(of$unit * of$center)) / min(spread[spread > 0], Inf)
  if (distance > most_from_origin) {
    warn_kernmean(
      "the columns of 'x' are ", format_number(distance, 2L), " times as far ",
      "from 0 as the least of them varies, and the kernel is of inner ",
      "products: a sketch does not see what varies so little; 'scale = TRUE' ",
      "centers and scales the columns", kind = "units"
    )
  }
}

new_landmarks <- function(variable, method, pilot, lost = NA_real_) {
  sample <- variable$sample
  variable$sample <- without_gram(sample)
  m <- sample$n
  found <- .Call(C_r_eigen, check_overflow(sample$kernel,
                                           sample_matrix(sample)), m)
  kept <- found$values > rank_tolerance * max(found$values, 0)
  if (!any(kept)) {
    stop_input("'x' must have rows whose kernel values are not all 0")
  }
  values <- found$values[kept]
  new_fit("kme_landmarks", list(
    variable = variable, terms = NULL, side = NULL, kernel = sample$kernel,
    m = m, rank = sum(kept), method = method, pilot = pilot, lost = lost,
    values = values,
    root = found$vectors[, kept, drop = FALSE] / rep(sqrt(values), each = m),
    id = new_identity()
  ))
}

# Smaller eigenvalues of K_SS are left out: W'S2W has the square of its
# condition.
rank_tolerance <- 1e-10

# What the core takes of landmarks and rows, whose values do not depend on the
# other rows: where coordinates are centered the landmarks say.
landmark_source <- function(landmarks, x) {
  s <- landmarks$variable$sample$x
  native_source(landmarks$kernel, x, s)[c(1L, 3L, 2L)]
}

# list(first: sum w k(S, x), second: sum w k(S, x)k(S, x)', NULL unless asked
# for) over rows x, points in the units of the kernel; weights: NULL for 1.
landmark_sums <- function(landmarks, x, weights, second) {
  kernel <- landmarks$kernel
  s <- landmarks$variable$sample$x
  if (is_function_kernel(kernel)) {
    sums <- list(first = 0, second = if (second) 0)
    for (rows in row_panels(seq_len(nrow(x)), max(1, 2^22 %/% nrow(s)))) {
      k <- call_kernel(kernel, s, x[rows, , drop = FALSE])
      w <- if (is.null(weights)) rep(1, length(rows)) else weights[rows]
      sums$first <- sums$first + drop(product(k, w))
      if (second) {
        sums$second <- sums$second + tcross(k * rep(sqrt(w), each = nrow(k)))
      }
    }
  } else {
    sums <- .Call(C_r_sketch_sums, landmark_source(landmarks, x), weights,
                  second)
  }
  check_overflow(kernel, sums$first)
  if (second) check_overflow(kernel, sums$second)
  sums
}

# --- Rows ------------------------------------------------------------------

# The columns of a chunk that are read; NULL for all.
landmark_columns <- function(landmarks) {
  variable <- landmarks$variable
  if (!is.null(landmarks$terms)) {
    attr(landmarks$terms, "columns")
  } else if (is_mixed_variable(variable)) {
    names(variable$mixed$frame)
  } else if (is_factor_variable(variable)) {
    variable$column
  } else {
    colnames(variable$sample$x)
  }
}

# The points of rows, in the units of the kernel; `name`: what they are called.
landmark_points <- function(landmarks, rows, name = "x") {
  variable <- landmarks$variable
  if (!is.null(landmarks$side)) {
    if (!is.data.frame(rows)) {
      stop_input("'", name, "' must be a data frame, or yield data frames, ",
                 "for landmarks of a formula, not ", describe(rows))
    }
    rows <- read_term(landmarks$terms, rows, landmarks$side, name)
  } else if (!is.null(landmarks$terms) && is.data.frame(rows)) {
    rows <- read_terms(landmarks$terms, rows, name)
  }
  if (is_factor_variable(variable)) {
    if (is.data.frame(rows) && is.null(landmarks$side)) {
      rows <- level_column(rows, variable$column, name)
    }
    return(level_points(rows, variable$levels, name))
  }
  if (is_mixed_variable(variable)) {
    return(variable_newdata(variable, rows, name)$z)
  }
  sample <- variable$sample
  z <- check_newdata(rows, sample_raw(sample), name, "the landmarks")
  scale_points(sample$kernel, z)
}

# The column of a data frame that holds the factor.
level_column <- function(rows, column, name) {
  if (is.null(column) && ncol(rows) == 1L) column <- 1L
  if (is.null(column) || is.character(column) && !column %in% names(rows)) {
    stop_input("'", name, "' must be the factor itself, or have the column of ",
               "the landmarks", if (!is.null(column)) paste0(", '", column,
                                                             "'"))
  }
  rows[[column]]
}

# Indicators of levels; rows of others would be lost.
level_points <- function(rows, levels, name) {
  if (!is_nominal(rows) && !is.character(rows) || !is.null(dim(rows))) {
    stop_input("'", name, "' must hold a factor, as the landmarks do, not ",
               describe(rows))
  }
  new <- setdiff(unique(as.character(rows)), c(levels, NA))
  if (length(new)) {
    stop_input("'", name, "' must have no levels but those of the landmarks (",
               shorten(levels), "), not '", new[1L], "'")
  }
  indicators_of(rows, levels)
}

# Are both the same, made once and perhaps saved, or equal in all that counts?
same_landmarks <- function(a, b) {
  identical(a$id, b$id) ||
    same_sample(a$variable$sample, b$variable$sample) &&
      identical(a$variable$levels, b$variable$levels) &&
      identical(a$variable$mixed$levels, b$variable$mixed$levels)
}

# --- Methods ---------------------------------------------------------------

fit_lines.kme_landmarks <- function(x, digits) {
  how <- c(rpcholesky = "randomly pivoted Cholesky", uniform = "uniform sample",
           levels = "the levels of a factor", given = "given")
  lost <- format(100 * x$lost, digits = max(1L, digits - 2L))
  c(paste0(count_of(x$m, "landmark"), " in ", describe_variable(x$variable),
           " (", how[[x$method]], ")"),
    variable_lines(x$variable, NULL),
    paste0("rank ", x$rank, if (!is.na(x$lost)) {
      paste0("; ", lost, "% of the trace of a pilot of ",
             count_of(x$pilot, "row"), " is lost")
    }))
}

fit_picture.kme_landmarks <- function(object, type = NULL) {
  landmarks <- object
  points <- sample_raw(landmarks$variable$sample)
  plain <- !is_factor_variable(landmarks$variable) && ncol(points) <= 2L
  type <- check_type(type, c("points", "spectrum"),
                     if (plain) "points" else "spectrum")
  if (type == "spectrum") {
    return(picture_landmark_values(landmarks))
  }
  if (!plain) {
    stop_input("'type' must be \"spectrum\" for landmarks in more than two ",
               "columns, or in levels")
  }
  title <- paste(landmarks$m, "landmarks")
  names <- axis_names(points)
  if (ncol(points) == 1L) {
    return(new_picture(title, names[1L], "landmarks up to this value", list(
      new_layer("line", x = sort(points[, 1L]), y = seq_len(landmarks$m),
                main = TRUE),
      new_layer("rug", x = points[, 1L])
    ), points))
  }
  new_picture(title, names[1L], names[2L],
              list(points_layer(points, main = TRUE)), points)
}

picture_landmark_values <- function(landmarks) {
  picture <- picture_sequence("Landmarks: spectrum of their Gram matrix",
                              landmarks$values, "eigenvalue")
  picture$log <- "y"
  # All alike: what differs is rounding, which no axis can show.
  if (diff(range(landmarks$values)) <= 1e-6 * max(landmarks$values)) {
    picture$ylim <- max(landmarks$values) * c(0.5, 2)
  }
  picture
}

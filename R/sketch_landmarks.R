#' Landmarks for sketches
#'
#' A few points whose kernel sections nearly span those of a large sample. A
#' [kme_sketch()] projects rows on them.
#'
#' With landmarks \eqn{S} (m points) and \eqn{K_{SS} = E\,\mathrm{diag}(s)E'}{
#' K_SS = E diag(s) E'}, of which the r eigenvalues above \eqn{10^{-10}s_1}{
#' 1e-10 s_1} are kept, the features of a point are \eqn{\phi(x) = W'k(S, x)}{
#' phi(x) = W'k(S, x)}, \eqn{W = E\,\mathrm{diag}(s)^{-1/2}}{W = E
#' diag(s)^(-1/2)} (the Nyström approximation). Landmarks are chosen from some
#' rows, the pilot. The share of the trace that they lose there, \eqn{1 - \sum_i
#' |\phi(x_i)|^2/\sum_i k(x_i, x_i)}{1 - sum_i |phi(x_i)|^2 / sum_i k(x_i,
#' x_i)}, says how good they are.
#'
#' `"rpcholesky"` is the randomly pivoted Cholesky factorization (Chen, Epperly,
#' Tropp and Webber 2025): a row is drawn with probability proportional to its
#' residual, the part of \eqn{k(x, x)}{k(x, x)} that the landmarks drawn before
#' leave; blocks of 16 proposals are thinned so that the distribution is that of
#' drawing one by one (Epperly, Tropp and Webber 2024). It stops where the
#' largest residual is rounding, so that there are never more landmarks than
#' distinct rows. `"uniform"` draws rows with equal probabilities. A factor has
#' its levels as landmarks, which lose nothing.
#'
#' Neither method sees groups or responses, so that tests from sketches keep
#' their level if the pilot has rows of all groups. Landmarks from one of two
#' samples favor it where they lose much (`inst/studies/sketch-level.R`).
#' Kernels of inner products (linear, polynomial) depend on the origin: for
#' columns that are far from 0 compared with their spread take `scale = TRUE`; a
#' warning says when.
#'
#' The bandwidth and the units (`scale`) come from the pilot and stay the same
#' for all rows that are read later.
#'
#' @param x A numeric matrix, a data frame, a vector or a factor (characters are
#'   read as factors); or a stream of rows, see [kme_sketch_sources]. For a data
#'   frame with factors the kernel is [kernel_gower()]; leave out columns that
#'   are to be groups or weights.
#' @param m Number of landmarks, at most; fewer where the pilot has fewer
#'   distinct rows.
#' @param kernel A kernel; its bandwidth is chosen from the pilot.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method.
#' @param method `"rpcholesky"` or `"uniform"`.
#' @param pilot The number of rows to choose from, drawn at random if there are
#'   more (from a stream in one pass, which uses it up). With a kernel that is
#'   an R function at most 2,000.
#' @param scale The units of the columns, see [units].
#' @param na.action [stats::na.fail()], which counts missing values in an error,
#'   or [stats::na.omit()], which drops their rows.
#' @param read,chunk For streams, see [kme_sketch_sources].
#' @param formula A formula without response, `~ a + b`, also of factors.
#' @param data A data frame, or a stream of data frames.
#' @return An object of class `kme_landmarks`, a list with
#' \item{variable}{the variable of the landmarks: a list with its `name` and
#'   `sample`, whose points `x` are in the units of the kernel (`raw` in the
#'   user's)}
#' \item{layout}{how a formula reads new data, else `NULL`}
#' \item{kernel}{the kernel with its bandwidth as a number}
#' \item{m, rank}{number of landmarks, and r}
#' \item{method, pilot}{how they were chosen, and from how many rows}
#' \item{lost}{the share of the trace of the pilot that they lose}
#' \item{values, root}{\eqn{s_1, \ldots, s_r}{s_1, ..., s_r} and W, m by r}
#' \item{id}{tells these landmarks from others}
#' @details Time O(N m (d + m)) and 16 N m bytes for a pilot of N rows, and an
#' eigendecomposition of an m by m matrix. `plot()` shows landmarks in one or
#' two columns.
#' @references
#' Chen, Y., Epperly, E. N., Tropp, J. A. and Webber, R. J. (2025). Randomly
#' pivoted Cholesky: practical approximation of a kernel matrix with few entry
#' evaluations. *Communications on Pure and Applied Mathematics* 78(5),
#' 995--1041. \doi{10.1002/cpa.22234}
#'
#' Epperly, E. N., Tropp, J. A. and Webber, R. J. (2024). Embrace rejection:
#' kernel matrix approximation by accelerated randomly pivoted Cholesky.
#' \doi{10.48550/arXiv.2410.03969}
#' @seealso [glossary]; [kme_sketch()]
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
  asked <- request(kme_landmarks_arguments)
  choose_landmarks(asked$x, asked, asked$read, asked$chunk)
}

#' @rdname kme_landmarks
#' @export
kme_landmarks.formula <- function(formula, data = NULL, m = 300, ...,
                                  pilot = 20000, read = NULL, chunk = 50000) {
  # These arguments are checked before the source is opened, so that their
  # errors are not reported as errors of the source.
  read <- take(read, a_reader)
  chunk <- take(chunk, count())
  size <- pilot_size(take(pilot, count()), ...)
  if (!is.null(data)) data <- pilot_frame(data, size, read, chunk)
  read <- read_sides(c(x = "levels"))
  landmarks <- kme_landmarks.default(read$x, m, ..., pilot = pilot)
  landmarks$layout <- read$layout
  landmarks
}

# --- Arguments -------------------------------------------------------------

# Arguments of kme_landmarks(), for doors that choose landmarks:
#   m, kernel, scale, na.action, method, pilot   as kme_landmarks() takes them
landmark_options <- function(m, kernel, scale, omit) {
  list(m = m %||% 300L, kernel = kernel, scale = scale,
       na.action = omit, method = "rpcholesky", pilot = 20000L)
}

# The number of rows of a pilot; fewer for a kernel that is a user's function,
# which is called with all pairs of them.
pilot_size <- function(pilot, kernel = NULL, ...) {
  take(kernel, maybe(a_kernel))
  if (kernel_has(kernel, "function")) min(pilot, 2000L) else pilot
}

# The kind of argument that is na.fail or na.omit, as a function or by name; its
# value says whether rows are dropped.
drops_missing <- new_kind("na.fail or na.omit", \(x) {
  any(vapply(c(na_fail, na_omit), identical, NA, x))
}, \(x) any(vapply(na_omit, identical, NA, x)))
na_fail <- list(stats::na.fail, "na.fail")
na_omit <- list(stats::na.omit, "na.omit")

definite_kernel <- function(value, name) {
  check_definite(take(value, a_kernel, name))
  value
}

kme_landmarks_arguments <- door_table(
  "kme_landmarks.default",
  x = a_source(FALSE), m = count(), kernel = unless_given(definite_kernel),
  method = choice("rpcholesky", "uniform"), pilot = count(),
  scale = unless_given(a_scale), na.action = drops_missing, read = a_reader,
  chunk = count()
)

# --- The pilot -------------------------------------------------------------

# At most `size` rows, drawn at random.
pilot_frame <- function(x, size, read = NULL, chunk = 0) {
  if (is_stream(x)) {
    return(pilot_rows(drop_twice(list(x))[[1L]], size, read, chunk))
  }
  if (!is.null(read)) {
    stop_input("'read' must be NULL unless 'x' names files")
  }
  n <- NROW(x)
  if (n <= size) x else take_frame(x, sort(sample.int(n, size)))
}

refuse_missing <- function(count, n) {
  stop_input("'x' must have no missing values, which ", count, " of ",
             rows_of(n), " have; na.action = na.omit drops these")
}

# Landmarks chosen from a pilot of `x`, which messages call `name`, with the
# kernel fitted to the pilot; `options` are those of landmark_options().
choose_landmarks <- function(x, options, read = NULL, chunk = 0, name = "x") {
  x <- pilot_frame(x, pilot_size(options$pilot, options$kernel), read, chunk)
  if (is.data.frame(x)) x <- plain_frame(x)
  if (anyNA(x)) {
    kept <- which(stats::complete.cases(x))
    if (!options$na.action) refuse_missing(NROW(x) - length(kept), NROW(x))
    if (!length(kept)) {
      stop_input("'x' must have rows without missing values")
    }
    x <- take_frame(x, kept)
  }
  variable <- read_variable(as_factors(x, name), options$kernel, name, "kernel",
                            options$scale)
  sample <- variable$sample
  check_definite(sample$kernel)
  n <- sample$n
  if (is_factor_variable(variable)) {
    if (is.data.frame(x)) variable$column <- names(x)
    variable$sample <- points_sample(diag(length(variable$levels)),
                                     sample$kernel)
    return(new_landmarks(variable, "levels", n, 0))
  }
  warn_origin(sample)
  m <- min(options$m, n)
  chosen <- if (options$method == "uniform") {
    sample.int(n, m)
  } else {
    .Call(C_r_random_pivots, sample_source(sample), as.integer(m),
          proposals_at_once)$pivots
  }
  if (!length(chosen)) {
    # If kernel values overflow, this call stops with an error that says so.
    sample_diagonal(sample)
    stop_input("'x' must have rows whose kernel values are not all 0")
  }
  variable$sample <- sample_take(sample, chosen)
  landmarks <- new_landmarks(variable, options$method, n)
  landmarks$lost <- lost_share(landmarks, sample$x)
  landmarks
}

proposals_at_once <- 16L

# The share of sum k(x, x) over points x that projection on the landmarks loses.
# `seen`, the sum of |phi(x)|^2 for the projected features phi, follows from sum
# k(S, x)k(S, x)'.
lost_share <- function(landmarks, x) {
  second <- landmark_sums(landmarks, x, NULL, TRUE)$second
  seen <- sum(column_dots(landmarks$root, product(second, landmarks$root)))
  max(0, 1 - seen / sum(fold_diagonal(landmarks$kernel, x)))
}

# Points that were given as landmarks, with a kernel fitted to them.
given_landmarks <- function(x, kernel, scale) {
  if (inherits(x, "dist")) {
    stop_input("'landmarks' must be rows, not distances", way_to_numbers(x))
  }
  variable <- read_variable(x, kernel, "landmarks", "kernel", scale)
  warn_origin(variable$sample)
  new_landmarks(variable, "given", 0L)
}

most_from_origin <- 1e3

# Warns of rows so far from 0 that, with inner products as the kernel, landmarks
# represent only their mean: the spread of the rows makes up only the share
# (spread/distance)^2 of K_SS.
warn_origin <- function(sample) {
  if (!kernel_has(sample$kernel, "inner products") ||
        kernel_has(sample$kernel, "scaling") || sample$n < 2L) {
    return(invisible())
  }
  columns <- column_spreads(sample$x)
  spread <- columns$unit * columns$spread
  distance <- max(abs(columns$unit * columns$center)) /
    min(spread[spread > 0], Inf)
  if (distance > most_from_origin) {
    warn_kernmean(
      "the columns of 'x' are ", format_number(distance, 2L), " times as far ",
      "from 0 as the least of them varies, and the kernel is of inner ",
      "products: a sketch does not see what varies so little; 'scale = TRUE' ",
      "centers and scales the columns", kind = "units"
    )
  }
}

# Landmarks, the fit of kme_landmarks(); ?kme_landmarks has its fields. `side`
# is 1 or 2 if they belong to the left or right side of a formula.
new_landmarks <- function(variable, method, pilot, lost = NA_real_) {
  sample <- variable$sample
  variable$sample <- without_gram(sample)
  m <- sample$n
  pairs <- .Call(C_r_eigen, check_overflow(sample$kernel,
                                           sample_matrix(sample)), m)
  kept <- pairs$values > rank_tolerance * max(pairs$values, 0)
  if (!any(kept)) {
    stop_input("'x' must have rows whose kernel values are not all 0")
  }
  values <- pairs$values[kept]
  new_fit("kme_landmarks", list(
    variable = variable, layout = NULL, side = NULL, kernel = sample$kernel,
    m = m, rank = sum(kept), method = method, pilot = pilot, lost = lost,
    values = values,
    root = take_columns(pairs$vectors, kept) / rep(sqrt(values), each = m),
    id = new_identity()
  ))
}

# Smaller eigenvalues of K_SS are left out, because the condition of W'S2W is
# the square of that of K_SS.
rank_tolerance <- 1e-10

# The landmarks and the rows in the form that the C code reads. Coordinates are
# centered at the landmarks, so that the values of a row do not depend on other
# rows. If the kernel is a user's function, its values k(x, s) become the
# coordinates of x, the landmarks become unit vectors, and the kernel becomes
# linear.
landmark_source <- function(landmarks, x) {
  kernel <- landmarks$kernel
  s <- landmarks$variable$sample$x
  if (kernel_has(kernel, "function")) {
    x <- fold_store(kernel, x, s)
    kernel <- kernel_linear()
    s <- diag(ncol(x))
  }
  native_source(kernel, x, s)[c(1L, 3L, 2L)]
}

# The sums first = sum w k(S, x) and, if `second` is asked for, second =
# sum w k(S, x)k(S, x)' over rows x, points in the units of the kernel. Without
# `weights` w is 1.
landmark_sums <- function(landmarks, x, weights, second) {
  sums <- .Call(C_r_sketch_sums, landmark_source(landmarks, x), weights, second)
  check_overflow(landmarks$kernel, sums$first)
  if (second) check_overflow(landmarks$kernel, sums$second)
  sums
}

# --- Rows ------------------------------------------------------------------

# The columns of a chunk that are read; NULL for all.
landmark_columns <- function(landmarks) {
  variable <- landmarks$variable
  if (!is.null(landmarks$layout)) {
    landmarks$layout[[landmarks$side %||% "x"]]$columns
  } else if (is_factor_variable(variable)) {
    variable$column
  } else {
    colnames(sample_raw(variable$sample))
  }
}

# The points of rows, which messages call `name`, in the units of the kernel.
landmark_points <- function(landmarks, rows, name = "x") {
  variable <- landmarks$variable
  if (!is.null(landmarks$side)) {
    if (!is.data.frame(rows)) {
      stop_input("'", name, "' must be a data frame, or yield data frames, ",
                 "for landmarks of a formula, not ", describe(rows))
    }
    rows <- read_again(landmarks$layout, rows, landmarks$side, name)
  } else if (!is.null(landmarks$layout) && is.data.frame(rows)) {
    rows <- read_again(landmarks$layout, rows, "x", name)
  }
  if (is_factor_variable(variable)) {
    return(level_points(rows, variable, name))
  }
  sample <- variable$sample
  z <- check_newdata(rows, sample_raw(sample), name, "the landmarks")
  scale_points(sample$kernel, z)
}

# The indicators of the levels of rows; other levels would be lost, and are an
# error.
level_points <- function(rows, variable, name) {
  if (is.data.frame(rows)) {
    column <- variable$column %||% if (ncol(rows) == 1L) 1L
    if (length(column)) rows <- rows[[column]]
  }
  check_levels(rows, c(variable$column, variable$name)[1L], name)
  levels <- variable$levels
  new <- setdiff(unique(as.character(rows)), c(levels, NA))
  if (length(new)) {
    stop_input("'", name, "' must have no levels but those of the landmarks (",
               shorten(levels), "), not '", new[1L], "'")
  }
  indicators_of(rows, levels)
}

# Are a and b the same set of landmarks (copies and saved ones keep the `id`),
# or do they have equal points, kernels and levels?
same_landmarks <- function(a, b) {
  identical(a$id, b$id) ||
    same_sample(a$variable$sample, b$variable$sample) &&
      identical(a$variable$levels, b$variable$levels)
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
  points <- sample_raw(object$variable$sample)
  check_type(type, "points")
  if (is_factor_variable(object$variable) || is.data.frame(points) ||
        ncol(points) > 2L) {
    has_none(object, "a plot in more than two columns, or in levels")
  }
  labels <- axis_names(points)
  if (ncol(points) == 1L) {
    labels[2L] <- "landmarks up to this value"
    layers <- list(
      new_layer("line", x = sort(points[, 1L]), y = seq_len(object$m),
                main = TRUE),
      new_layer("rug", x = points[, 1L])
    )
  } else {
    layers <- list(points_layer(points, main = TRUE))
  }
  new_picture(paste(object$m, "landmarks"), labels[1L], labels[2L], layers,
              points)
}

#' Sketches of large data
#'
#' What kernel means, kernel principal components, discriminants and tests need
#' of a sample, in one pass over its rows: sums of features on landmarks, whose
#' size does not depend on the number of rows, and which add up over parts of
#' the data.
#'
#' With m landmarks S (see [kme_landmarks()]) and the kernel k, of n rows x with
#' weights w (1 unless given) a sketch keeps n, \eqn{\sum w}{sum w}, \eqn{\sum
#' w^2}{sum w^2} and
#' \deqn{s_1 = \sum_i w_i k(S, x_i), \quad t = \sum_i w_i k(x_i, x_i), \quad
#' S_2 = \sum_i w_i k(S, x_i)k(S, x_i)',}{s_1 = sum_i w_i k(S, x_i), t = sum_i
#' w_i k(x_i, x_i), S_2 = sum_i w_i k(S, x_i) k(S, x_i)',} the last, of \eqn{m^2
#' }{m^2} numbers, with `second = TRUE`. With the features \eqn{\phi(x) =
#' W'k(S, x)}{phi(x) = W'k(S, x)}, `fourth = TRUE` adds \eqn{\sum_i w_i
#' |\phi(x_i)|^4}{sum_i w_i |phi(x_i)|^4} and \eqn{\sum_i w_i |\phi(x_i)|^2
#' \phi(x_i)}{sum_i w_i |phi(x_i)|^2 phi(x_i)}, which the ridge by shrinkage of
#' [kme_fda()] and S-COSE take. Of two variables each has landmarks and sums of
#' its own, and \eqn{\sum_i w_i k(S, x_i) l(T, y_i)'}{sum_i w_i k(S, x_i) l(T,
#' y_i)'} is kept too. With groups there is one set of sums for each.
#'
#' What is made of a sketch is exactly what is made of the n points with the
#' projected Gram matrix \eqn{\Phi\Phi'}{Phi Phi'}, \eqn{\Phi}{Phi} the n by r
#' features. `print()` says what projection loses of the mean \eqn{k(x, x)}{k(x,
#' x)}; more landmarks, or a larger bandwidth, lose less. Where all rows are
#' landmarks nothing is lost.
#'
#' @section Where a sketch goes:
#' [kme()] with the estimators `"kme"`, `"skmse"` and `"fkmse"` (by `select =
#' "gcv"`, `"printed"` or a given `lambda`), [kme_pca()], [kme_cov()],
#' [kme_fda()], [kme_density()], [mmd_test()] and [hsic_test()] take a sketch in
#' place of `x`. What they give are ordinary fits and tests, whose functions are
#' weights on the landmarks: `predict()`, [kme_inner()], [kme_distance()],
#' `plot()` and `update()` work. What takes the rows one by one (leaving out,
#' scores of the sample, estimators with noise) is refused with the reason.
#'
#' @section Adding up:
#' `a + b` is the sketch of the rows of both, `update(a, x)` has those of `x`
#' added. Landmarks and kernel must be the same: made once by
#' [kme_landmarks()], perhaps saved and read again. Sums are compensated
#' (Neumaier), so that no partition of the rows changes them by more than about
#' 1e-13 of the sum of the sizes of their terms. Sketches are plain lists:
#' [saveRDS()] keeps them. Of a sketch with groups `x["a"]` is the sketch of one
#' of them, `x[c("a", "b")]` of some; the sketch as a whole pools them where a
#' sample is wanted.
#'
#' @section Weights:
#' With weights, means are weighted means, and in amounts of shrinkage and null
#' distributions n becomes \eqn{(\sum w)^2/\sum w^2}{(sum w)^2/sum w^2}. They
#' must not be negative; the scores `"gcv"` and `"printed"` and bins do not go
#' with them.
#'
#' @section Bins:
#' With `bin = 500` the rows of each group fall at random (R's generator) into
#' bins of 500, whose sums are kept, m numbers a bin: [mmd_test()] then permutes
#' bins, with an exact level. All bins have the same size, fixed in advance;
#' rows in the last bin, if it is not full, do not take part in the test. Some
#' hundred bins are enough; a part that is added should have many. In a stream
#' rows are dealt at random within a chunk. `update()` fills the last bin
#' further, `a + b` keeps the fuller one of two.
#'
#' @param x The rows: a numeric matrix, a data frame or a vector, a stream (a
#'   function that yields data frames, a `DBI` result, files), or a plain list
#'   of these, the parts; see [kme_sketch_sources].
#' @param landmarks A [kme_landmarks()], a list of two of them for two
#'   variables, a sketch whose landmarks are taken, points (with the columns of
#'   `x`), or a number of landmarks to be chosen from `x`; `NULL` is 300.
#'   Streams and lists of parts take landmarks that were made before.
#' @param kernel A kernel where landmarks are chosen here.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method.
#' @param y The second variable, with as many rows as `x`, for
#'   [hsic_test()] and cross-covariances; landmarks of two variables read
#'   streams and data frames by columns, without `y`.
#' @param groups The group of each row, or the name of the column that holds it
#'   (in the formula method also a variable of `data`).
#' @param weights Non-negative weights of the rows, or the name of their column,
#'   likewise.
#' @param second,fourth Keep second and fourth moments? `NULL` keeps the fourth
#'   where discriminants may be wanted: with groups, second moments and no bins.
#' @param bin `NULL` or the number of rows of a bin, see Bins.
#' @param na.action [stats::na.fail()], which counts missing values in an error,
#'   or [stats::na.omit()], which drops rows with missing values in the columns
#'   that are used and counts them.
#' @param read,chunk,checkpoint For streams and parts, see [kme_sketch_sources].
#' @param scale The units of the columns where landmarks are chosen here, see
#'   [gram()].
#' @param progress Show the rows so far and their rate?
#' @param formula `~ a + b` for one variable, `y ~ a + b` for two.
#' @param data A data frame.
#' @return An object of class `kme_sketch`, a list with
#' \item{landmarks}{a list of one [kme_landmarks()], or of two}
#' \item{n}{number of rows}
#' \item{groups}{the names of the groups, `NULL` for none}
#' \item{dropped, left}{rows that were dropped for missing values, and rows in
#'   bins that are not full}
#' \item{parts}{number of parts that were added up}
#' \item{weighted, second, fourth, bin}{what is kept}
#' \item{omit, columns}{whether rows with missing values are dropped, and the
#'   names of the columns that hold groups and weights}
#' \item{sums}{for each group (or once) a list of `sum` and `carry`, what
#'   rounding took from it, each with `n`, `weight`, `weight2`, `trace` (t),
#'   `first` (\eqn{s_1}), `second` (\eqn{S_2}), `square`, `along`, those of a
#'   second variable with names in `_y`, and `cross`}
#' \item{bins}{for each group the sums `first` of full bins, m by bins, and the
#'   `open` one; else `NULL`}
#' @details One pass: n m kernel values, and n \eqn{m^2}{m^2} flops with
#' `second` (n m r more with `fourth`). Memory: \eqn{16 m^2}{16 m^2} bytes a
#' group with `second`, 16 m without, and some MB for the rows in work.
#' `summary()` has a table of the groups.
#' @references
#' Williams, C. K. I. and Seeger, M. (2001). Using the Nyström method to speed
#' up kernel machines. *Advances in Neural Information Processing Systems* 13.
#'
#' Chen, Y., Epperly, E. N., Tropp, J. A. and Webber, R. J. (2025). Randomly
#' pivoted Cholesky: practical approximation of a kernel matrix with few entry
#' evaluations. *Communications on Pure and Applied Mathematics* 78(5),
#' 995--1041. \doi{10.1002/cpa.22234}
#' @seealso [kme_landmarks()], [kme_sketch_sources] for databases, files and
#'   many machines; `vignette("large-data")`.
#' @family sketches
#' @examples
#' set.seed(1)
#' l <- kme_landmarks(quakes[1:4], m = 100, scale = TRUE)
#' all <- kme_sketch(quakes[1:4], l)
#' all
#' kme(all, estimator = "skmse")
#'
#' # Parts add up
#' parts <- kme_sketch(quakes[1:400, ], l) + kme_sketch(quakes[401:1000, ], l)
#' kme_distance(kme(all), kme(parts))
#'
#' # Groups, compared by a permutation test of bins
#' deep <- kme_sketch(~ long + lat, quakes, 100, scale = TRUE,
#'                    groups = ifelse(quakes$depth > 300, "deep", "shallow"),
#'                    bin = 10)
#' deep
#' mmd_test(deep, B = 199)
#' @export
kme_sketch <- function(x, ...) {
  UseMethod("kme_sketch")
}

#' @rdname kme_sketch
#' @export
kme_sketch.default <- function(x, landmarks = NULL, kernel = kernel_rbf(), ...,
                               y = NULL, groups = NULL, weights = NULL,
                               second = TRUE, fourth = NULL, bin = NULL,
                               na.action = stats::na.fail, read = NULL,
                               chunk = 50000, checkpoint = NULL, scale = FALSE,
                               progress = interactive()) {
  check_dots(...)
  if (missing(x)) stop_input("'x' must be given: the rows")
  options <- read_sketch_options(x, y, groups, weights, second, fourth, bin,
                                 na.action, read, chunk, checkpoint, progress)
  chosen <- read_landmark_options(
    kernel = if (!missing(kernel)) kernel,
    scale = if (!missing(scale)) scale, na.action = na.action
  )
  landmarks <- read_landmarks(landmarks, x, y, chosen, options)
  check_columns_apart(landmarks, options$columns)
  run_sketch(empty_sketch(landmarks, options), x, options)
}

#' @rdname kme_sketch
#' @export
kme_sketch.formula <- function(formula, data = NULL, landmarks = NULL, ...,
                               kernel = NULL, groups = NULL, weights = NULL,
                               scale = NULL, na.action = stats::na.fail) {
  if (missing(formula)) stop_input("'formula' must be given, as in ~ a + b")
  if (!is.data.frame(data)) {
    stop_input("'data' must be a data frame, not ", describe(data),
               "; for other sources make the landmarks by kme_landmarks(~ a + ",
               "b, data) and give them to kme_sketch(data, landmarks)")
  }
  if (is.null(landmarks)) landmarks <- 300
  if (!is.numeric(landmarks)) {
    stop_input("'landmarks' must be NULL or a number with a formula; those ",
               "that are made already know their columns, as in ",
               "kme_sketch(data, landmarks)")
  }
  chosen <- read_landmark_options(landmarks, kernel, scale = scale,
                                  na.action = na.action)
  own <- list(groups = substitute(groups), weights = substitute(weights))
  home <- parent.frame()
  values <- Map(\(call, name) {
    tryCatch(eval(call, data, home), error = \(e) {
      stop_input("'", name, "' must be found in 'data' or where the formula ",
                 "is from; ", conditionMessage(e))
    })
  }, own, names(own))
  # A dot does not mean the columns of groups and weights.
  one <- \(value) is.character(value) && length(value) == 1L
  used <- c(unlist(lapply(own, all.vars)), unlist(Filter(one, values)))
  landmarks <- formula_landmarks(formula, without_columns(data, used), chosen,
                                 home)
  kme_sketch.default(data, landmarks, ..., groups = values$groups,
                     weights = values$weights, na.action = na.action)
}

# --- Arguments -------------------------------------------------------------

# list(y, groups, weights: values, not names of columns; columns: the names;
# second, fourth, bin, omit, read, chunk, checkpoint, progress).
read_sketch_options <- function(x, y, groups, weights, second, fourth, bin,
                                na.action, read, chunk, checkpoint, progress) {
  check_source(x)
  check_flag(second, "second")
  if (is.null(fourth)) fourth <- !is.null(groups) && second && is.null(bin)
  check_flag(fourth, "fourth")
  if (fourth && !second) {
    stop_input("'second' must be TRUE when 'fourth' is")
  }
  if (!is.null(bin)) {
    bin <- check_count(bin, "bin")
    must_be(is.null(weights), "weights", "NULL", "when 'bin' is given")
  }
  if (is.null(x)) stop_input("'x' must be rows or a stream of them, not NULL")
  stream <- is_stream(x) || is_parts(x)
  if (!stream && !is.null(y) && NROW(y) != NROW(x)) {
    stop_input("'y' must have as many rows as 'x', ", NROW(x), ", not ",
               NROW(y))
  }
  if (stream) {
    must_be(is.null(y), "y", "NULL", paste0(
      "for a stream or parts, whose second variable is among the columns"
    ))
  }
  own <- list(groups = groups, weights = weights)
  named <- vapply(own, \(value) names_column(value, x, stream), NA)
  for (name in names(own)[!named]) {
    if (stream && !is.null(own[[name]])) {
      stop_input("'", name, "' must be the name of a column for a stream or ",
                 "parts, not ", describe(own[[name]]))
    }
    if (!is.null(own[[name]]) && length(own[[name]]) != NROW(x)) {
      stop_input("'", name, "' must have one value for each of the ", NROW(x),
                 " rows, or name a column, not be ", describe(own[[name]]))
    }
  }
  c(list(y = y), own[!named], list(
    columns = own[named], second = second, fourth = fourth, bin = bin,
    omit = drops_missing(na.action), read = read,
    chunk = check_count(chunk, "chunk"), checkpoint = checkpoint,
    progress = check_flag(progress, "progress")
  ))
}

# A plain list is a list of parts.
is_parts <- function(x) is_plain_list(x)

names_column <- function(value, x, stream) {
  is.character(value) && length(value) == 1L && !is.na(value) &&
    (stream || value %in% colnames(x))
}

# A list of one or two sets of landmarks. `chosen`: how they are chosen where
# they are not given.
read_landmarks <- function(landmarks, x, y, chosen, options) {
  if (inherits(landmarks, "kme_landmarks")) landmarks <- list(landmarks)
  if (inherits(landmarks, "kme_sketch")) {
    landmarks <- landmarks$landmarks
  }
  if (is_plain_list(landmarks)) {
    return(check_landmark_list(landmarks, y, chosen))
  }
  made <- is.null(landmarks) || is.numeric(landmarks) &&
    is.null(dim(landmarks)) && length(landmarks) == 1L
  if (made) {
    if (is_stream(x) || is_parts(x)) {
      stop_input("'landmarks' must be made before, by kme_landmarks(), for a ",
                 "stream or a list of parts, not ", describe(landmarks))
    }
    if (!is.null(landmarks)) chosen$m <- check_count(landmarks, "landmarks")
    own <- without_columns(x, options$columns)
    return(lapply(c(list(own), if (!is.null(y)) list(y)), \(data) {
      choose_landmarks(read_pilot(pilot_frame(data, chosen, NULL, 0), chosen),
                       chosen)
    }))
  }
  must_be(is.null(y), "landmarks", "a list of two", "when 'y' is given")
  if (NROW(landmarks) > most_given_landmarks) {
    stop_input("'landmarks' must be at most ",
               format_count(most_given_landmarks), " points, not ",
               format_count(NROW(landmarks)), "; the rows come first, as in ",
               "kme_sketch(data, landmarks)")
  }
  list(given_landmarks(landmarks, chosen))
}

# A group, or a weight, is no coordinate too.
check_columns_apart <- function(landmarks, columns) {
  used <- unlist(lapply(landmarks, landmark_columns))
  for (name in names(columns)) {
    if (columns[[name]] %in% used) {
      stop_input("'", name, "' must not name a column of the landmarks, as '",
                 columns[[name]], "' is; make landmarks of the other columns")
    }
  }
}

most_given_landmarks <- 5000

# The columns of a data frame that hold no groups and weights.
without_columns <- function(x, columns) {
  if (!length(columns)) {
    return(x)
  }
  if (is.data.frame(x)) x <- as.data.frame(x)
  x[, setdiff(colnames(x), unlist(columns)), drop = FALSE]
}

check_landmark_list <- function(landmarks, y, chosen) {
  ok <- length(landmarks) %in% 1:2 &&
    all(vapply(landmarks, inherits, NA, "kme_landmarks"))
  if (!ok) {
    stop_input("'landmarks' must be made by kme_landmarks(), or be a list of ",
               "two such sets, not ", describe(landmarks))
  }
  if (!is.null(chosen$kernel) || asks_scale(chosen$scale)) {
    stop_input("'", if (is.null(chosen$kernel)) "scale" else "kernel",
               "' must not be given with landmarks, which have their own")
  }
  if (!is.null(y) && length(landmarks) == 1L) {
    stop_input("'landmarks' must be a list of two sets when 'y' is given")
  }
  if (is.null(y) && length(landmarks) == 2L) {
    columns <- lapply(landmarks, landmark_columns)
    if (any(lengths(columns) == 0L) ||
          is.null(landmarks[[1L]]$side) && setequal(columns[[1L]],
                                                    columns[[2L]])) {
      stop_input("'y' must be given, or the two sets of landmarks must know ",
                 "the columns that they are of, not the same ones")
    }
  }
  unname(landmarks)
}

# Those of the variable of ~ a + b, or of the two of y ~ a + b.
formula_landmarks <- function(formula, data, chosen, home) {
  frame <- if (chosen$omit) {
    used <- all.vars(formula_terms(formula, data))
    known <- intersect(used, names(data))
    data[stats::complete.cases(data[known]), , drop = FALSE]
  } else {
    data
  }
  frame <- pilot_frame(frame, chosen, NULL, 0)
  chosen$omit <- FALSE
  call <- call("kme_landmarks", data = frame)
  if (length(formula) == 2L) {
    found <- formula_sample(call, formula, frame, TRUE, home)
    landmarks <- choose_landmarks(read_pilot(found$x, chosen), chosen)
    landmarks["terms"] <- list(found$terms)
    return(list(landmarks))
  }
  found <- formula_variables(call, formula, frame, TRUE, home, least = 2L)
  if (length(found$variables) != 2L) {
    stop_input("'formula' must have one variable on each side, as in y ~ a + b")
  }
  terms <- keep_constants(found$terms, frame)
  unname(Map(\(side, name) {
    own <- chosen
    if (has_own_kernel(found$variables[[side]])) own["kernel"] <- list(NULL)
    variable <- read_variable(found$variables[[side]], own$kernel, name,
                              "kernel", own$scale)
    landmarks <- choose_landmarks(variable, own)
    landmarks["terms"] <- list(terms)
    landmarks["side"] <- list(side)
    landmarks
  }, 1:2, names(found$variables)))
}

# --- The pass over the rows --------------------------------------------------

run_sketch <- function(sketch, x, options) {
  if (is_parts(x)) {
    return(sketch_parts(sketch, x, options$read, options$chunk,
                        options$progress, options$checkpoint))
  }
  if (is_stream(x)) {
    before <- sketch$n + sketch$dropped
    sketch <- sketch_stream(sketch, x, options$read, options$chunk,
                            options$progress, options$checkpoint)
    if (sketch$n + sketch$dropped == before) {
      warn_kernmean("'x' yielded no rows: a stream is read once, and may have ",
                    "been used up; a function or a query is to be made anew")
    }
    return(sketch)
  }
  for (name in c("read", "checkpoint")) {
    must_be(is.null(options[[name]]), name, "NULL", "for rows in memory")
  }
  sketch_memory(sketch, x, options)
}

# A matrix as the core takes it needs no copies, panel by panel.
reads_in_place <- function(sketch, x, options) {
  plain <- is.matrix(x) && is.double(x) && !is.object(x) && nrow(x) > 0L &&
    !sketch$fourth && is.null(sketch$bin) && length(sketch$landmarks) == 1L
  given <- c(options[c("groups", "weights")], sketch$columns)
  landmarks <- sketch$landmarks[[1L]]
  own <- landmarks$variable$sample$x
  plain && !length(Filter(length, given)) && is.null(landmarks$terms) &&
    !is_scaled(landmarks$kernel) && !is_function_kernel(landmarks$kernel) &&
    identical(colnames(x), colnames(own)) && !anyNA(x)
}

# Rows in memory, panel by panel.
sketch_memory <- function(sketch, x, options) {
  n <- NROW(x)
  some <- \(value, rows) if (!is.null(value)) take_frame(value, rows)
  if (reads_in_place(sketch, x, options)) {
    sketch <- add_rows(sketch, x)
    sketch$parts <- sketch$parts + 1
    return(sketch)
  }
  bar <- progress_bar(options$progress && n > options$chunk)
  on.exit(bar$close())
  for (start in seq(1, max(n, 1), by = options$chunk)) {
    rows <- seq_len(min(options$chunk, n - start + 1)) + (start - 1)
    sketch <- add_rows(sketch, take_frame(x, rows), some(options$y, rows),
                       some(options$groups, rows), some(options$weights, rows))
    bar$at(rows[length(rows)] / n)
  }
  sketch$parts <- sketch$parts + 1
  sketch
}

#' Sketches of large data
#'
#' Sums over the rows of a sample from which kernel means, components,
#' discriminants and tests can be computed. They take one pass over the rows,
#' their size does not depend on the number of rows, and they add up over parts.
#'
#' With m landmarks S (see [kme_landmarks()]) and the kernel k, of n rows x with
#' weights w (1 unless given) a sketch keeps n, \eqn{\sum w}{sum w}, \eqn{\sum
#' w^2}{sum w^2} and
#' \deqn{s_1 = \sum_i w_i k(S, x_i), \quad t = \sum_i w_i k(x_i, x_i), \quad
#' S_2 = \sum_i w_i k(S, x_i)k(S, x_i)',}{s_1 = sum_i w_i k(S, x_i), t = sum_i
#' w_i k(x_i, x_i), S_2 = sum_i w_i k(S, x_i) k(S, x_i)',} the last, of \eqn{m^2
#' }{m^2} numbers, unless `moments = 1`. With the features \eqn{\phi(x) =
#' W'k(S, x)}{phi(x) = W'k(S, x)}, `moments = 4` adds \eqn{\sum_i w_i
#' |\phi(x_i)|^4}{sum_i w_i |phi(x_i)|^4} and \eqn{\sum_i w_i |\phi(x_i)|^2
#' \phi(x_i)}{sum_i w_i |phi(x_i)|^2 phi(x_i)}, for shrinkage in [kme_fda()] and
#' S-COSE. Two variables have landmarks and sums each, and besides
#' \eqn{\sum_i w_i k(S, x_i) l(T, y_i)'}{sum_i w_i k(S, x_i) l(T, y_i)'}. Each
#' group has sums of its own; a sketch with groups, taken as one sample, pools
#' them.
#'
#' A method gives exactly the same for a sketch as for the n points with the
#' projected Gram matrix \eqn{\Phi\Phi'}{Phi Phi'}, where \eqn{\Phi}{Phi} is the
#' n by r matrix of features. `print()` says what projection loses; more
#' landmarks, or a larger bandwidth, lose less.
#'
#' @section Where a sketch goes:
#' [kme()] (estimators `"kme"`, `"skmse"`, and `"fkmse"` by `select = "gcv"`,
#' `"printed"` or `lambda`), [kme_pca()], [kme_cov()], [kme_fda()],
#' [kme_density()], [mmd_test()], [mmd_pairwise()] and [hsic_test()] take a
#' sketch for `x`; their functions are weights on the landmarks. Methods that
#' need single rows refuse it.
#'
#' @section Adding up:
#' `a + b` is the sketch of the rows of both, on the same landmarks and kernel,
#' and `update(a, x)` adds the rows of `x`; `x[c("a", "b")]` has some of the
#' groups.
#' Sums are compensated (Neumaier): no partition of the rows changes them by
#' more than about 1e-13 of the sum of the sizes of their terms. [saveRDS()]
#' keeps sketches.
#'
#' @section Bins:
#' With `bin = 500` the rows of each group fall at random (those of a stream
#' within a chunk) into bins of 500. The sums of each bin are kept, m numbers a
#' bin, and [mmd_test()] permutes bins, with an exact level; some hundred bins
#' are enough. Rows in the last bin, if it is not full, do not take part;
#' `update()` fills it further, and `a + b` keeps the fuller one of two.
#'
#' @section Chunks:
#' A column may change its units in the middle of a source, or its meaning.
#' Each chunk is compared with those before, and there is a warning of class
#' `kernmean_warning_chunks` that names the row if projection loses 0.1 more of
#' it, or if (with 100 rows or more) the quartiles of a column are those of
#' before times one number above 1.5 or below 1/1.5. `plot()` draws the share
#' that each chunk loses. Levels that landmarks of one factor do not have are an
#' error; beside other columns such levels are like none of the landmarks, and
#' lost. Parts are compared within themselves, not with each other.
#'
#' @param x The rows: a numeric matrix, a data frame or a vector, a stream (a
#'   function, a `DBI` result, an Arrow stream, files), or a plain list of
#'   these, the parts; see [kme_sketch_sources].
#' @param landmarks A [kme_landmarks()], a list of two for two variables, a
#'   sketch that has them, points, or how many to choose from `x` (`NULL`: 300).
#'   The formula method takes a number only; streams and parts take landmarks
#'   that were made before.
#' @param kernel,scale The kernel and the [units] where landmarks are chosen
#'   here.
#' @param ... Must be empty; in the formula method, arguments of the default
#'   method.
#' @param y The second variable, where it is not among the columns of `x`.
#' @param groups,weights The group of each row and its non-negative weight, or
#'   the names of their columns (with a formula also variables of `data`).
#'   Characters are put in the order of their letters in the C locale, and of
#'   the numbers in them, `"week2"` before `"week10"`. With weights the
#'   effective sample size \eqn{(\sum w)^2/\sum w^2}{(sum w)^2/sum w^2} takes
#'   the place of n; `"gcv"`, `"printed"` and bins take no weights.
#' @param moments The highest moments that are kept, 1, 2 or 4; `NULL` keeps the
#'   second, and with groups and without bins the fourth.
#' @param bin `NULL` or the number of rows of a bin.
#' @param na.action [stats::na.fail()], or [stats::na.omit()], which drops rows
#'   with missing values in the columns that are used and counts them.
#' @param read,chunk,checkpoint For streams and parts, see [kme_sketch_sources].
#' @param progress Show a progress bar?
#' @param formula `~ a + b` for one variable, `y ~ a + b` for two.
#' @param data A data frame.
#' @return An object of class `kme_sketch`, a list with
#' \item{landmarks}{a list of one [kme_landmarks()], or of two}
#' \item{n, dropped, left, parts}{the numbers of rows, of rows dropped for
#'   missing values, of rows in bins that are not full, and of parts added up}
#' \item{chunks}{a matrix with a row for each chunk of all groups together, in
#'   their order (of more than 200, neighbors are joined): `rows`; the share of
#'   mean k(x, x) that is `lost`, and median and interquartile range of the
#'   numeric columns, from up to 2,000 evenly spaced rows; `changed`, 1 where
#'   the chunk was unlike those before}
#' \item{groups, kind}{the names of the groups and what they were read as, or
#'   `NULL`}
#' \item{weighted, moments, bin, omit, columns}{what is kept, and how rows are
#'   read}
#' \item{sums}{for each group (or once) `sum` and `carry`, what rounding took
#'   from it: lists of `n`, `weight`, `weight2`, `trace` (t), `first`, `second`,
#'   `square`, `along`, the same for a second variable with names that end in
#'   `_y`, and `cross`}
#' \item{bins}{for each group the sums `first` of full bins, m by bins, and the
#'   `open` one}
#' @details A sketch takes n m kernel values, n \eqn{m^2}{m^2} flops with second
#' moments (n m r more with fourth), and \eqn{16 m^2}{16 m^2} bytes a group (16
#' m with `moments = 1`). `summary()` has a table of the groups.
#' @references
#' Williams, C. K. I. and Seeger, M. (2001). Using the Nyström method to speed
#' up kernel machines. *Advances in Neural Information Processing Systems* 13.
#' @seealso [glossary]; [kme_landmarks()], [kme_sketch_sources];
#'   `vignette("large-data")`.
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
#'                    groups = depth > 300, bin = 10)
#' mmd_test(deep, B = 199)
#' @export
kme_sketch <- function(x, ...) {
  UseMethod("kme_sketch")
}

#' @rdname kme_sketch
#' @export
kme_sketch.default <- function(x, landmarks = NULL, kernel = kernel_rbf(), ...,
                               y = NULL, groups = NULL, weights = NULL,
                               moments = NULL, bin = NULL,
                               na.action = stats::na.fail, read = NULL,
                               chunk = 50000, checkpoint = NULL, scale = FALSE,
                               progress = interactive()) {
  asked <- read_rows(request(sketch_arguments))
  asked$moments <- asked$moments %||%
    if (is.null(groups) || !is.null(bin)) 2 else 4
  asked$omit <- asked$na.action
  sketch <- empty_sketch(read_landmarks(asked), asked)
  check_columns_apart(sketch$landmarks, asked$columns)
  run_sketch(sketch, asked)
}

row_arguments <- list(
  x = a_source(TRUE), y = anything, groups = anything, weights = anything,
  read = a_reader, chunk = count(), progress = flag,
  checkpoint = maybe(new_kind("the name of a folder", \(x) {
    is_name(x) && !x %in% c("", NA)
  }))
)

reads_source <- \(asked) is_stream(asked$x) || is_plain_list(asked$x)

row_rules <- list(
  when("bin", weights = NULL),
  when(reads_source, y = NULL, reason = paste(
    "for a stream or parts, whose second variable is among the columns"
  )),
  when(Negate(reads_source), read = NULL, checkpoint = NULL,
       reason = "for rows in memory")
)

sketch_arguments <- do.call(door_table, c("kme_sketch.default", row_arguments,
  list(
    landmarks = anything, kernel = unless_given(definite_kernel),
    moments = maybe(new_kind("1, 2 or 4", \(x) is_number(x) &&
                               x %in% c(1, 2, 4), as.double)),
    bin = maybe(count()), na.action = drops_missing,
    scale = unless_given(a_scale), rules = row_rules
  )
))

#' @rdname kme_sketch
#' @export
kme_sketch.formula <- function(formula, data = NULL, landmarks = NULL, ...,
                               kernel = NULL, groups = NULL, weights = NULL,
                               scale = NULL, na.action = stats::na.fail) {
  check_given(formula)
  asked <- request(sketch_formula_arguments, dots = TRUE)
  home <- parent.frame()
  calls <- list(groups = substitute(groups), weights = substitute(weights))
  values <- lapply(calls, eval, data, home)
  # A dot in the formula does not include the columns of groups and weights.
  used <- c(all.vars(calls$groups), all.vars(calls$weights),
            unlist(Filter(is_name, values)))
  landmarks <- formula_landmarks(
    formula, without_columns(data, used),
    landmark_options(asked$landmarks, asked$kernel, asked$scale,
                     asked$na.action)
  )
  kme_sketch.default(data, landmarks, ..., groups = values$groups,
                     weights = values$weights, na.action = na.action)
}

sketch_formula_arguments <- door_table(
  "kme_sketch.formula",
  data = is_a("data.frame", paste(
    "a data frame with a formula (landmarks of other sources are made before,",
    "by kme_landmarks(~ a + b, data))"
  )),
  landmarks = maybe(replace(count(), "words",
    "a whole number with a formula (kme_sketch(data, landmarks) takes others)"
  )),
  kernel = maybe(definite_kernel), scale = maybe(a_scale),
  na.action = drops_missing
)

is_name <- \(x) is.character(x) && length(x) == 1L

# A sketch without rows; `options` are the arguments of kme_sketch().
empty_sketch <- function(landmarks, options) {
  new_fit("kme_sketch", list(
    landmarks = landmarks, n = 0, groups = NULL, kind = NULL, dropped = 0,
    left = 0, parts = 0, chunks = NULL, weighted = FALSE,
    moments = options$moments,
    bin = options$bin, omit = options$omit, columns = options$columns,
    sums = list(),
    bins = if (!is.null(options$bin)) list()
  ))
}

# --- Arguments -------------------------------------------------------------

# The request with a field `columns`: the names of the columns that hold groups
# and weights, added to those in the argument `columns`. Groups and weights that
# are given as one value for each row stay in the request.
read_rows <- function(asked, columns = list()) {
  stream <- reads_source(asked)
  n <- NROW(asked$x)
  if (!is.null(asked$y) && NROW(asked$y) != n) {
    stop_input("'y' must have as many rows as 'x', ", n, ", not ",
               NROW(asked$y))
  }
  for (name in c("groups", "weights")) {
    value <- asked[[name]]
    if (is_name(value) && (stream || value %in% colnames(asked$x))) {
      columns[[name]] <- value
      asked[name] <- list(NULL)
    } else if (!is.null(value) && (stream || length(value) != n)) {
      stop_input("'", name, "' must ", if (!stream) {
        paste0("have one value for each of the ", n, " rows, or ")
      }, "be the name of a column, not ", describe(value))
    }
  }
  asked$columns <- columns
  asked
}

# The list of one or two sets of landmarks that were asked for.
read_landmarks <- function(asked) {
  landmarks <- asked$landmarks
  if (inherits(landmarks, "kme_landmarks")) landmarks <- list(landmarks)
  if (inherits(landmarks, "kme_sketch")) landmarks <- landmarks$landmarks
  drawn <- is.null(landmarks) || is.numeric(landmarks) &&
    length(landmarks) == 1L && is.null(dim(landmarks))
  made <- is_plain_list(landmarks)
  if (!drawn && !is.null(asked$y) && !(made && length(landmarks) == 2L)) {
    stop_input("'landmarks' must be a list of two when 'y' is given")
  }
  if (made) {
    return(check_landmark_list(landmarks, asked))
  }
  if (!drawn) {
    return(list(given_landmarks(landmarks, asked$kernel, asked$scale)))
  }
  if (reads_source(asked)) {
    stop_input("'landmarks' must be made before, by kme_landmarks(), for a ",
               "stream or a list of parts, not ", describe(landmarks))
  }
  options <- landmark_options(take(landmarks, maybe(count())),
                              asked$kernel, asked$scale, asked$na.action)
  data <- list(without_columns(asked$x, unlist(asked$columns)))
  lapply(c(data, if (!is.null(asked$y)) list(asked$y)), choose_landmarks,
         options)
}

check_landmark_list <- function(landmarks, asked) {
  if (!length(landmarks) %in% 1:2 ||
        !all(vapply(landmarks, inherits, NA, "kme_landmarks"))) {
    stop_input("'landmarks' must be made by kme_landmarks(), or be a list of ",
               "two such sets, not ", describe(landmarks))
  }
  if (!is.null(asked$kernel) || asks_scale(asked$scale)) {
    stop_input("'", if (is.null(asked$kernel)) "scale" else "kernel",
               "' must not be given with landmarks, which have their own")
  }
  if (is.null(asked$y) && length(landmarks) == 2L) {
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

# Stops if a column of groups or weights is also one of the landmarks.
check_columns_apart <- function(landmarks, columns) {
  used <- unlist(lapply(landmarks, landmark_columns))
  twice <- names(columns)[unlist(columns) %in% used]
  if (length(twice)) {
    stop_input("'", twice[1L], "' must not name a column of the landmarks, as ",
               "'", columns[[twice[1L]]], "' is; make landmarks of the other ",
               "columns")
  }
}

# A data frame or matrix without some columns, such as groups and weights.
without_columns <- function(x, columns) {
  if (!length(columns)) {
    return(x)
  }
  if (is.data.frame(x)) x <- plain_frame(x)
  take_columns(x, !colnames(x) %in% columns)
}

# The list of landmarks of the variable of ~ a + b, or of the two variables of
# y ~ a + b.
formula_landmarks <- function(formula, data, options) {
  data <- pilot_frame(data, pilot_size(options$pilot, options$kernel))
  if (length(formula) == 2L) {
    read <- read_sides(c(x = "levels"))
    landmarks <- choose_landmarks(read$x, options)
    landmarks$layout <- read$layout
    return(list(landmarks))
  }
  read <- read_sides("variables", least = 2L)
  lapply(1:2, \(side) {
    x <- read[[side]]
    if (has_own_kernel(x)) options["kernel"] <- list(NULL)
    landmarks <- choose_landmarks(x, options, name = names(read$names)[side])
    landmarks[c("layout", "side")] <- list(read$layout, side)
    landmarks
  })
}

# --- The pass over the rows --------------------------------------------------

# The sketch with the rows that were asked for.
run_sketch <- function(sketch, asked) {
  x <- asked$x
  # The values of a user's function are stored for a chunk at a time, at most
  # 2^22 of them.
  for (l in sketch$landmarks) {
    if (kernel_has(l$kernel, "function")) {
      asked$chunk <- min(asked$chunk, max(1, 2^22 %/% l$m))
    }
  }
  if (is_plain_list(x)) {
    return(sketch_parts(sketch, x, asked))
  }
  if (is_stream(x)) {
    folder <- open_folder(asked$checkpoint, sketch, asked$read)
    landmarks <- sketch$landmarks
    x <- drop_twice(list(x))[[1L]]
    task <- new_source_task(x, part_files(list(x), folder))
    sketch <- run_source(task, sketch, asked)$sketch
    sketch$landmarks <- landmarks
  } else {
    n <- NROW(x)
    bar <- progress_bar(asked$progress && n > asked$chunk)
    on.exit(bar$close())
    size <- if (reads_in_place(sketch, asked)) max(1, n) else asked$chunk
    for (rows in row_panels(seq_len(n), size)) {
      some <- lapply(asked[c("x", "y", "groups", "weights")], \(value) {
        if (is.null(value) || length(rows) == n) value else
          take_frame(value, rows)
      })
      sketch <- add_rows(sketch, some$x, some$y, some$groups, some$weights)
      bar$at(max(rows) / n)
    }
  }
  sketch$parts <- sketch$parts + 1
  sketch
}

# Are the rows already points in the units of the kernel? Then they are read at
# once, as chunks would only be copies of them.
reads_in_place <- function(sketch, asked) {
  kernel <- sketch$landmarks[[1L]]$kernel
  is.matrix(asked$x) && is.double(asked$x) && is.null(sketch$bin) &&
    length(sketch$landmarks) == 1L && !length(sketch$columns) &&
    is.null(asked$groups) && is.null(asked$weights) &&
    !kernel_has(kernel, "scaling") && !kernel_has(kernel, "function")
}

# --- Methods -----------------------------------------------------------------

fit_lines.kme_sketch <- function(x, digits) {
  variables <- lapply(x$landmarks, `[[`, "variable")
  two <- length(variables) == 2L
  labels <- if (two) variable_labels(x)
  spaces <- paste(vapply(x$landmarks, \(l) count_of(l$m, "landmark"), ""), "in",
                  vapply(variables, describe_variable, ""),
                  collapse = " and ")
  rows <- vapply(group_numbers(x, "n"), format_count, "")
  wrap <- \(...) strwrap(paste0(...), 81L, exdent = 2L)
  c(
    wrap("Sketch of ", rows_of(x$n),
         if (x$parts > 1) paste0(" (", x$parts, " parts)"), " on ", spaces),
    unlist(Map(variable_lines, variables, if (two) labels else list(NULL))),
    if (!is.null(x$groups)) {
      wrap("groups: ", shorten(paste0(x$groups, " (", rows, ")"), 6L))
    },
    if (any(group_numbers(x, "weight") > 0)) {
      paste0(if (two) paste0(labels, ": "),
             vapply(seq_along(variables), \(v) lost_line(sketch_sample(x, v)),
                    ""))
    },
    paste0("moments = ", x$moments, if (x$weighted) ", weighted",
           if (!is.null(x$bin)) {
             paste0(", ", count_of(sum(full_bins(x)), "bin"), " of ",
                    count_of(x$bin, "row"))
           }),
    if (x$dropped > 0) paste(rows_of(x$dropped), "with missing values dropped"),
    if (x$left > 0) paste(rows_of(x$left), "in bins that are not full")
  )
}

# The names of the variables.
variable_labels <- function(sketch) {
  labels <- vapply(sketch$landmarks, `[[`, "", c("variable", "name"))
  if (anyDuplicated(labels) || any(nchar(labels) > 20L)) {
    labels <- if (is.null(sketch$landmarks[[1L]]$side)) c("x", "y") else
      c("left side", "right side")
  }
  labels
}

fit_facts.kme_sketch <- function(x) {
  c(list(nobs = x$n, dropped = x$dropped, groups = length(x$groups),
         landmarks = x$landmarks[[1L]]$m),
    kernel_columns(x$landmarks[[1L]]$kernel))
}

# A data frame with a line for each group: its number of rows, the norm of its
# kernel mean, its mean of k(x, x) and the share of that mean that is lost.
fit_rows.kme_sketch <- function(x, ...) {
  check_any_rows(x)
  groups <- which(group_numbers(x, "weight") > 0)
  rows <- lapply(seq_along(x$landmarks), \(v) {
    samples <- lapply(groups, \(g) sketch_sample(x, v, g))
    field <- \(name) vapply(samples, `[[`, 1, name)
    data.frame(
      group = if (is.null(x$groups)) "all" else x$groups[groups],
      variable = variable_labels(x)[v], n = field("n"), size = field("size"),
      norm = sqrt(field(c("moments", "rho"))),
      trace = field(c("moments", "trace")),
      lost = lost_shares(samples)
    )
  })
  each <- do.call(rbind, rows)
  if (length(rows) == 1L) each$variable <- NULL
  if (!x$weighted) each$size <- NULL
  each
}

fit_summary.kme_sketch <- function(x) {
  list(table = structure(fit_rows(x), title = paste(
    "Rows, norm of the kernel mean, mean k(x, x) and the share of it that is",
    "lost"
  )))
}

fit_picture.kme_sketch <- function(object, type = NULL) {
  check_type(type, "chunks")
  check_any_rows(object)
  chunks <- object$chunks
  picture <- picture_sequence("Lost by projection, chunk by chunk",
                              chunks[, "lost"], "share of mean k(x, x)",
                              cumsum(chunks[, "rows"]))
  changed <- chunks[, "changed"] > 0
  picture$layers[[2L]]$style$col <- ifelse(changed, level_colors(1L), "black")
  picture$xlab <- "rows"
  picture$ylim <- c(0, max(chunks[, "lost"], 0.01))
  picture
}

#' @rdname kme_sketch
#' @param object A sketch.
#' @export
update.kme_sketch <- function(object, x, ..., y = NULL, groups = NULL,
                              weights = NULL, read = NULL, chunk = 50000,
                              checkpoint = NULL, progress = interactive()) {
  if (!missing(x) && inherits(x, "kme_sketch")) {
    return(object + x)
  }
  asked <- request(more_arguments)
  for (name in names(object$columns)) {
    column <- object$columns[[name]]
    if (!is.null(asked[[name]]) && !identical(asked[[name]], column)) {
      stop_input("'", name, "' must be NULL: the column '", column,
                 "' holds them")
    }
    asked[name] <- list(NULL)
  }
  if (!is.null(object$bin) && !is.null(asked$weights)) {
    stop_input("'weights' must be NULL for a sketch with bins")
  }
  if (!is.null(asked$y) && length(object$landmarks) == 1L) {
    stop_input("'y' must be NULL for a sketch of one variable")
  }
  asked <- read_rows(asked, object$columns)
  check_columns_apart(object$landmarks, asked$columns)
  grouped <- !is.null(asked$groups) || !is.null(asked$columns$groups)
  if (length(object$sums) && is.null(object$groups) == grouped) {
    stop_input("'groups' must be ", if (grouped) "NULL" else "given",
               " as for the rows so far")
  }
  if (is.null(checkpoint) && !is_plain_list(x)) {
    # Rows are added one chunk after the other, so that they fill the open bin.
    object$columns <- asked$columns
    return(run_sketch(object, asked))
  }
  empty <- empty_sketch(object$landmarks,
                        replace(object, "columns", list(asked$columns)))
  merge_sketches(object, run_sketch(empty, asked))
}

more_arguments <- do.call(door_table, c("update.kme_sketch", row_arguments,
                                        list(rules = row_rules)))


#' @rdname kme_sketch
#' @param e1,e2 Sketches on the same landmarks.
#' @export
`+.kme_sketch` <- function(e1, e2) {
  if (missing(e2) || !inherits(e1, "kme_sketch") ||
        !inherits(e2, "kme_sketch")) {
    stop_input("'+' must stand between two sketches; update(sketch, x) adds ",
               "rows")
  }
  check_same_landmarks(e1, e2)
  options <- c("moments", "bin")
  if (!identical(unclass(e1)[options], unclass(e2)[options])) {
    stop_input("'moments' and 'bin' must be the same for sketches that are ",
               "added")
  }
  if (length(e1$sums) && length(e2$sums) &&
        is.null(e1$groups) != is.null(e2$groups)) {
    stop_input("both sketches must have groups, or none, to be added")
  }
  merge_sketches(e1, e2)
}

#' @rdname kme_sketch
#' @param i The names of groups, or a logical value for each group.
#' @export
`[.kme_sketch` <- function(x, i) {
  if (missing(i)) {
    return(x)
  }
  if (is.logical(i) && length(i) == length(x$groups)) i <- x$groups[i]
  at <- match(i, x$groups)
  if (!is.character(i) || anyNA(at) || anyDuplicated(i)) {
    stop_input("'i' must name groups of the sketch (",
               if (is.null(x$groups)) "none" else shorten(x$groups, 6L),
               "), not be ", describe(if (anyNA(at)) i[is.na(at)][1L] else i))
  }
  x$groups <- i
  x$sums <- x$sums[at]
  x["bins"] <- list(x$bins[at])
  x$n <- sum(group_numbers(x, "n"))
  # The groups of dropped rows are not known, so that none can be counted for
  # these.
  x$dropped <- 0
  if (!is.null(x$bin)) x$left <- count_left(x)
  x
}

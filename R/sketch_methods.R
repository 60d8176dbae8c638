# What a sketch can do beside being a sample.

#' @rdname kme_sketch
#' @param digits Significant digits.
#' @export
print.kme_sketch <- function(x, digits = digits_shown(), ...) {
  digits <- check_digits(digits)
  say(
    sketch_title(x), sketch_kernel_lines(x), sketch_groups_line(x),
    if (has_weight(x)) sketch_lost_lines(x), sketch_kept_lines(x),
    sketch_dropped_line(x)
  )
  invisible(x)
}

# "Sketch of 1,000,000 rows (3 parts) on 300 landmarks in 10 columns"
sketch_title <- function(sketch) {
  landmarks <- vapply(sketch$landmarks, `[[`, 1L, "m")
  what <- vapply(sketch$landmarks, \(l) describe_variable(l$variable), "")
  strwrap(paste0(
    "Sketch of ", rows_of(sketch$n),
    if (sketch$parts > 1) paste0(" (", sketch$parts, " parts)"), " on ",
    paste(vapply(landmarks, count_of, "", "landmark"), "in", what,
          collapse = " and ")
  ), 81L, exdent = 2L)
}

sketch_kernel_lines <- function(sketch) {
  labels <- variable_labels(sketch)
  if (length(labels) == 1L) labels <- list(NULL)
  unlist(Map(\(l, label) variable_lines(l$variable, label), sketch$landmarks,
             labels))
}

# What the variables are called.
variable_labels <- function(sketch) {
  labels <- vapply(sketch$landmarks, \(l) l$variable$name, "")
  if (anyDuplicated(labels) || any(nchar(labels) > 20L)) {
    labels <- if (is.null(sketch$landmarks[[1L]]$side)) c("x", "y") else
      c("left side", "right side")
  }
  labels
}

sketch_groups_line <- function(sketch) {
  if (!is.null(sketch$groups)) {
    rows <- vapply(group_numbers(sketch, "n"), format_count, "")
    strwrap(paste0("groups: ", shorten(paste0(sketch$groups, " (", rows, ")"),
                                       6L)), 81L, exdent = 2L)
  }
}

sketch_lost_lines <- function(sketch) {
  lines <- vapply(seq_along(sketch$landmarks),
                  \(v) lost_line(sketch_sample(sketch, v)), "")
  if (length(lines) == 2L) paste0(variable_labels(sketch), ": ", lines) else
    lines
}

# Is there a row of positive weight, in the groups?
has_weight <- function(sketch, group = NULL) {
  weights <- group_numbers(sketch, "weight")
  sketch$n > 0 && sum(if (is.null(group)) weights else weights[group]) > 0
}

# Which sums there are.
sketch_kept_lines <- function(sketch) {
  what <- c(
    "first", if (sketch$second) "second", if (sketch$fourth) "fourth"
  )
  bins <- sum(vapply(sketch$bins, \(bins) ncol(bins$first), 1L))
  paste0("kept: ", paste(what, collapse = ", "), " moments",
         if (length(sketch$landmarks) == 2L) ", cross sums",
         if (sketch$weighted) ", weighted",
         if (!is.null(sketch$bin)) paste0(
           ", ", count_of(bins, "bin"), " of ", count_of(sketch$bin, "row")
         ))
}

sketch_dropped_line <- function(sketch) {
  words <- c(
    if (sketch$dropped > 0) paste(rows_of(sketch$dropped),
                                  "with missing values dropped"),
    if (sketch$left > 0) paste(rows_of(sketch$left),
                               "in bins that are not full")
  )
  if (length(words)) paste(words, collapse = "; ")
}

#' @rdname kme_sketch
#' @export
summary.kme_sketch <- function(object, ...) {
  check_dots(...)
  check_any_rows(object)
  check_weight(sum(group_numbers(object, "weight")))
  variables <- seq_along(object$landmarks)
  groups <- Filter(\(g) has_weight(object, g), seq_along(object$sums))
  rows <- lapply(variables, \(v) {
    samples <- lapply(groups, \(g) sketch_sample(object, v, g))
    moment <- \(name) vapply(samples, \(s) s$moments[[name]], numeric(1))
    data.frame(
      group = if (is.null(object$groups)) "all" else object$groups[groups],
      variable = variable_labels(object)[v],
      n = vapply(samples, `[[`, numeric(1), "n"),
      size = vapply(samples, `[[`, numeric(1), "size"),
      norm = sqrt(moment("rho")), trace = moment("trace"),
      lost = moment("lost") / moment("trace")
    )
  })
  table <- do.call(rbind, rows)
  if (length(variables) == 1L) table$variable <- NULL
  if (!object$weighted) table$size <- NULL
  structure(list(sketch = object, table = table), class = "summary.kme_sketch")
}

#' @export
print.summary.kme_sketch <- function(x, digits = digits_shown(), ...) {
  digits <- check_digits(digits)
  print(x$sketch, digits = digits)
  cat("\nRows, norm of the kernel mean, mean k(x, x) and the share of it that ",
      "is lost:\n", sep = "")
  print(x$table, digits = digits, row.names = FALSE)
  invisible(x)
}

#' @rdname kme_sketch
#' @param object A sketch.
#' @export
update.kme_sketch <- function(object, x, ..., y = NULL, groups = NULL,
                              weights = NULL, read = NULL, chunk = 50000,
                              checkpoint = NULL, progress = interactive()) {
  check_dots(...)
  if (missing(x)) stop_input("'x' must be given: the rows to be added")
  if (inherits(x, "kme_sketch")) {
    return(object + x)
  }
  check_source(x)
  columns <- object$columns
  for (name in names(columns)) {
    given <- get(name)
    if (!is.null(given) && !identical(given, columns[[name]])) {
      stop_input("'", name, "' must be NULL: the column '", columns[[name]],
                 "' of 'x' holds them")
    }
    assign(name, NULL)
  }
  options <- read_sketch_options(
    x, y, groups, weights, object$second, object$fourth, object$bin,
    if (object$omit) stats::na.omit else stats::na.fail, read, chunk,
    checkpoint, progress
  )
  options$columns <- c(columns, options$columns)
  check_columns_apart(object$landmarks, options$columns)
  check_update_groups(object, !is.null(groups) ||
                        !is.null(options$columns$groups))
  # Its open bin is filled further by what comes one after the other.
  if (!is_parts(x) && is.null(checkpoint)) {
    object$columns <- options$columns
    return(run_sketch(object, x, options))
  }
  more <- run_sketch(empty_sketch(object$landmarks, options), x, options)
  merge_sketches(object, more)
}

# A sketch such as another one, of no rows and without groups.
unfilled <- function(sketch) {
  empty_sketch(sketch$landmarks, list(
    second = sketch$second, fourth = sketch$fourth, bin = sketch$bin,
    omit = sketch$omit,
    columns = sketch$columns[intersect(names(sketch$columns), "weights")]
  ))
}

check_update_groups <- function(object, grouped) {
  if (length(object$sums) && is.null(object$groups) == grouped) {
    stop_input("'groups' must be ", if (grouped) "NULL" else "given",
               ", as for the rows of the sketch so far")
  }
}

#' @export
plot.kme_sketch <- function(x, ...) {
  stop_input("'x' must be a fit or a test to be plotted, such as kme(x), ",
             "kme_pca(x) or mmd_test(x), or the landmarks, x$landmarks[[1]]")
}

#' @rdname kme_sketch
#' @param e1,e2 Sketches on the same landmarks.
#' @export
`+.kme_sketch` <- function(e1, e2) {
  if (missing(e2) || !inherits(e1, "kme_sketch") ||
        !inherits(e2, "kme_sketch")) {
    stop_input("'+' must stand between two sketches; update(sketch, x) adds ",
               "rows")
  }
  merge_sketches(e1, e2)
}

#' @rdname kme_sketch
#' @param i The names of groups.
#' @export
`[.kme_sketch` <- function(x, i) {
  if (missing(i)) {
    return(x)
  }
  if (is.null(x$groups)) {
    stop_input("'x' must be a sketch with groups to take some of them")
  }
  if (!is.character(i) || anyNA(i) || anyDuplicated(i) ||
        !all(i %in% x$groups)) {
    stop_input("'i' must name groups (", shorten(x$groups, 6L), "), not be ",
               describe(if (is.character(i) && length(i) > 1L) {
                 setdiff(i, x$groups)[1L]
               } else {
                 i
               }))
  }
  at <- match(i, x$groups)
  x$groups <- i
  x$sums <- x$sums[at]
  x["bins"] <- list(x$bins[at])
  x$n <- sum(group_numbers(x, "n"))
  # Of which group dropped rows would have been is not known.
  x$dropped <- 0
  if (!is.null(x$bin)) x$left <- count_left(x)
  x
}

# The shelf read_: what users give becomes data: data frames, formulas,
# columns, units, scales.
#
# Offers from read_data.R: as_factor, as_factors, as_numbers, bind_rows,
#   check_classes, check_data, check_each, check_factor, check_finite,
#   check_labels, check_levels, check_newdata, check_no_na, drop_empty,
#   has_levels, is_nominal, na_hint, number_codes, place_levels, plain_matrix,
#   read_alike, read_folds, read_mixed, read_points, refuse_twice, seen_levels,
#   unclass_matrix, way_to_numbers.
# Offers from read_formula.R: bind_columns, bound_parts, formula_terms,
#   given_data, given_formula, is_grouping, keep_layout, plain_term, read_again,
#   read_sides, refuse_bar, refuse_same_sides, sum_of.
# Offers from read_units.R: check_outcome, read_clusters, read_row_weights.
# Offers from read_scaling.R: a_scale, asks_scale, column_spreads,
#   first_direction, frame_levels, gower_scaling, is_constant,
#   map_covariances, new_scaling, power_below, scale_mixture, scale_points,
#   unscale_points, warn_units.
# Offers from read_variable.R: change_kernels, check_lengths,
#   covariate_columns, describe_variable, has_own_kernel, indicators_of,
#   is_factor_variable, is_mixed_variable, mixed_levels, read_factor,
#   read_variable, read_variables, refit_variable, refuse_beside_own,
#   side_kernels, takes_kernel, variable_input, variable_kernel,
#   variable_lines, variable_newdata.
#
# The points of a sample as a double matrix with at least one row and one
# column, all values finite; an error if they cannot be that.
#
check_data <- function(x, name = "x") {
  if (inherits(x, "kernelMatrix")) {
    stop_input("'", name, "' must hold points; as_gram() takes a matrix of ",
               "kernel values")
  }
  x <- plain_matrix(x, name)
  if (!is.data.frame(x)) {
    numbers <- as_numbers(x, name)
    if (is.null(numbers) || length(dim(x)) > 2L) {
      stop_input("'", name, "' must be a numeric matrix, data frame or vector,",
                 " not ", describe(x), way_to_numbers(x))
    }
    x <- if (is.matrix(x)) numbers else
      matrix(numbers, ncol = 1L, dimnames = list(names(x), NULL))
  }
  if (nrow(x) < 1L || ncol(x) < 1L) {
    stop_input(
      "'", name, "' must have at least one row and one column, not ",
      nrow(x), " x ", ncol(x)
    )
  }
  if (is.data.frame(x)) {
    columns <- Map(read_column, x, names(x), name)
    if (any(lengths(columns) != nrow(x))) {
      stop_input("'", name, "' must have values in each column for its ",
                 nrow(x), " rows")
    }
    x <- as.matrix(put_columns(x, TRUE, columns))
  }
  check_finite(x, name, if (!grepl("newdata|[$]", name)) na_hint)
  x <- unclass_matrix(x)
  if (nrow(x) == ncol(x) && !grepl("newdata|[$]", name)) warn_symmetric(x, name)
  # Setting the storage mode copies the matrix, even if it is double already.
  if (!is.double(x)) storage.mode(x) <- "double"
  x
}

has_levels <- function(x) is.factor(x) || is.logical(x) && is.null(dim(x))

# Do its levels only count as equal or different? The levels of an ordered
# factor count by their places.
is_nominal <- function(x) has_levels(x) && !is.ordered(x)

check_no_na <- function(x, name, hint = na_hint) {
  if (anyNA(x)) {
    stop_input("'", name, "' must have no missing values, not ", sum(is.na(x)),
               " NA", hint)
  }
}

# Stops unless z holds levels of a factor, whether or not they were seen before.
check_levels <- function(z, label, name = "newdata") {
  if (!(has_levels(z) || is.character(z)) || !is.null(dim(z))) {
    stop_input("'", name, "' must hold a factor for '", label, "', not ",
               describe(z))
  }
  check_no_na(z, label, if (name != "newdata") na_hint)
}

# A character vector, or the character columns of a data frame, as factors with
# their levels in an order that is the same in all locales. Warns if a variable
# (which has a `label`) seems to be numbers that were read as text.
as_factors <- function(x, label = NULL) {
  if (is.data.frame(x)) {
    text <- vapply(x, is.character, NA)
    return(put_columns(x, text, Map(as_factors, x[text], names(x)[text])))
  }
  if (!is.character(x) || length(dim(x)) > 1L) {
    return(x)
  }
  words <- unique(as.vector(x))
  if (!all(validEnc(words))) {
    stop_input(if (is.null(label)) "text" else quoted(label), " must be in ",
               "the encoding that it is marked as; iconv() makes UTF-8 of it")
  }
  words <- sort(words, method = "radix")
  number <- \(words) !is.na(suppressWarnings(as.double(words)))
  like <- number(gsub("[,%$ ]", "", words)) | grepl("^[0-9]{4}-[0-9]", words)
  if (!is.null(label) && sum(like) > length(words) / 2) {
    warn_kernmean("'", label, "' is text, most of it numbers or dates, and is ",
                  "taken as a factor of ", count_of(length(words), "level"),
                  if (!all(number(words))) {
                    paste0("; no numbers are ", quoted(words[!number(words)]))
                  },
                  "; as.numeric() or as.Date() makes numbers of it",
                  kind = "text")
  }
  factor(x, words)
}

# x[at] <- columns of a data frame, whose own method is slow for many columns.
put_columns <- function(x, at, columns) {
  class <- class(x)
  x <- unclass(x)
  x[at] <- columns
  class(x) <- class
  x
}

# Points as a numeric matrix, or as a data frame of numbers and factors if some
# of the columns are factors.
read_points <- function(x, name = "x") {
  # A single string is hardly a sample.
  if (is.factor(x) || is.character(x) && is.null(dim(x)) && length(x) > 1L) {
    x <- data.frame(x = as_factors(x, name))
  } else if (is.data.frame(x)) {
    x <- as_factors(x)
  }
  mixed <- is.data.frame(x) && any(vapply(x, is.factor, NA))
  if (mixed) read_mixed(x, name) else check_data(x, name)
}

# Points with factors among their columns, as a data frame of numbers and
# factors. like: a data frame whose columns the points must have.
read_mixed <- function(x, name, like = x) {
  if (is.null(dim(x)) && length(like) == 1L) {
    x <- stats::setNames(data.frame(x), names(like))
  }
  if (!is.data.frame(x) || ncol(x) != ncol(like)) {
    stop_input("'", name, "' must be a data frame with the columns ",
               shorten(names(like)), ", not ", describe(x))
  }
  x <- as.data.frame(x)
  if (!nrow(x)) stop_input("'", name, "' must have at least one row")
  leveled <- vapply(like, has_levels, NA)
  for (j in which(leveled)) {
    column <- names(like)[j]
    z <- x[[j]]
    check_levels(z, column, name)
    new <- setdiff(as.character(z), as.character(like[[j]]))
    if (is.logical(z) != is.logical(like[[j]]) && length(new)) {
      stop_input("'", name, "' must hold for '", column, "' levels such as ",
                 shorten(levels(as_factor(like[[j]]))), ", not ", new[1L],
                 read_alike(column))
    }
    x[[j]] <- if (is.ordered(like[[j]])) {
      factor(seen_levels(z, levels(like[[j]]), column, name),
             levels(like[[j]]), ordered = TRUE)
    } else if (is.logical(z)) z else factor(as_factor(z), ordered = FALSE)
  }
  if (!all(leveled)) {
    x <- put_columns(x, !leveled, as.data.frame(check_data(x[!leveled], name)))
  }
  x
}

# Values as a factor of the levels that a fit has seen.
seen_levels <- function(x, levels, label, name = "newdata") {
  x <- as.character(x)
  unseen <- setdiff(x, levels)
  if (length(unseen)) {
    stop_input("'", name, "' must have levels of '", label, "' that the fit ",
               "has seen, not ", quoted(unseen))
  }
  factor(x, levels)
}

# The data frame with the number of its level in place of each value of an
# ordered factor. places: the levels of these factors, by column.
place_levels <- function(x, places) {
  if (length(places)) {
    x[names(places)] <- Map(\(z, levels, label) {
      as.double(seen_levels(z, levels, label, "x"))
    }, x[names(places)], places, names(places))
  }
  x
}

# The hint for a column of text that read.csv() may take for another type: if
# all of its values are F, it becomes FALSE.
read_alike <- function(column) {
  paste0("; read all of it alike, as by read = \\(f) read.csv(f, colClasses = ",
         "c(", column, " = \"character\"))")
}

# The numbers of a vector, a matrix or a column: TRUE and FALSE become 1 and 0;
# dates, times and durations become days, whatever their unit, so that new data
# agree with old. NULL for values that are no numbers.
as_numbers <- function(x, name) {
  shape <- \(numbers) {
    if (is.matrix(x)) array(numbers, dim(x), dimnames(x)) else numbers
  }
  if (inherits(x, "integer64")) {
    need_package("bit64", "'", name, "' is of class integer64, which needs ",
                 "the package 'bit64'")
    numbers <- suppressWarnings(as.double(x))
    if (any(abs(numbers) >= 2^53, na.rm = TRUE)) {
      stop_input("'", name, "' must have whole numbers below 2^53, which are ",
                 "read exactly, not ", format(x[which.max(abs(numbers))]))
    }
    shape(numbers)
  } else if (inherits(x, "difftime")) {
    shape(as.double(structure(unclass(x), class = "difftime"), units = "days"))
  } else if (inherits(x, c("POSIXt", "Date"))) {
    shape(as.double(x) / if (inherits(x, "Date")) 1 else 86400)
  } else if (is.logical(x)) {
    x + 0
  } else if (is.numeric(x) && !inherits(x, c("Surv", "circular", "dist"))) {
    # If the class is not known here (units, for example), its numbers are
    # taken.
    if (is.matrix(x) || !is.object(x) && is.null(dim(x))) x else
      if (length(dim(x)) < 2L) stats::setNames(as.vector(unclass(x)), names(x))
  }
}

# A column of the data `name` as numbers. wide: may the column be a matrix?
read_column <- function(column, label, name, wide = FALSE) {
  numbers <- if (length(dim(column)) < 2L + wide) as_numbers(column, label)
  if (is.null(numbers)) {
    stop_input("column '", label, "'", if (name != "formula") {
      paste0(" of '", name, "'")
    }, " must be numeric, not ", if (is.character(column)) "character" else
      describe(column), way_to_numbers(column))
  }
  numbers
}

way_to_numbers <- function(x) {
  if (inherits(x, "Surv")) {
    paste("; cbind(time, status) makes columns of its times and states, which",
          "differ where censoring does")
  } else if (inherits(x, "circular")) {
    "; cbind(cos(x), sin(x)) makes columns of angles in radians"
  } else if (inherits(x, "dist")) {
    paste("; gram() makes kernel values of distances, by their principal",
          "coordinates, and cmdscale() points")
  } else if (is.ordered(x)) {
    "; as.integer() makes 1, 2, ... of its levels"
  } else if (is.factor(x)) {
    "; model.matrix() makes indicators of its levels"
  } else if (is.character(x) && all(grepl("^[0-9]{4}-", x))) {
    "; as.Date() makes dates of it, which 'read' does for files"
  }
}

# A sparse matrix of the package Matrix as a matrix.
plain_matrix <- function(x, name) {
  if (!inherits(x, "Matrix")) {
    return(x)
  }
  need_package("Matrix", "'", name, "' needs the package 'Matrix'")
  check_memory(nrow(x), ncol(x), "use fewer rows or columns",
               what = paste0("'", name, "' as a dense matrix"))
  as.matrix(x)
}

# Warns of a sample that looks like a matrix of kernel values or distances.
warn_symmetric <- function(x, name) {
  n <- nrow(x)
  if (n >= 4L && isSymmetric(unname(x))) {
    warn_kernmean(
      "'", name, "' is a symmetric matrix, taken as ", n, " points in ", n,
      " columns; ", if (all(diag(x) == 0)) {
        "as.dist() says that it holds distances"
      } else {
        "as_gram() takes a matrix of kernel values"
      }
    )
  }
}

na_hint <- "; with a formula na.action = na.omit drops their rows"

check_finite <- function(x, name, hint = NULL) {
  if (is_finite(x)) {
    return(invisible(x))
  }
  where <- if (!is.null(colnames(x)) && ncol(x) > 1L) {
    columns <- colnames(x)[colSums(!is.finite(as.matrix(x))) > 0]
    paste0(" (in ", quoted(columns, 3L), ")")
  }
  nan <- sum(is.nan(x))
  counts <- c("NA" = sum(is.na(x)) - nan, "NaN" = nan,
              "Inf" = sum(is.infinite(x)))
  counts <- counts[counts > 0]
  stop_input(
    "'", name, "' must have no missing or infinite values, not ",
    paste(counts, names(counts), collapse = " and "), where,
    if (anyNA(x)) hint
  )
}

# Drops classes and attributes other than dim and dimnames.
unclass_matrix <- function(x) {
  if (is.object(x) || length(attributes(x)) > 2L) {
    x <- matrix(as.vector(x), nrow(x), ncol(x), dimnames = dimnames(x))
  }
  x
}

refuse_twice <- function(columns, name) {
  bad <- columns[is.na(columns) | !nzchar(columns) | duplicated(columns)]
  if (length(bad)) {
    stop_input("'", name, "' must have a name for each column, and no two of ",
               "the same name, not ", quoted(bad))
  }
}

# New points for an object fitted on the columns of `x`.
check_newdata <- function(newdata, x, name = "newdata",
                          of = if (name == "newdata") "the fit" else "'x'") {
  wanted <- colnames(x)
  columns <- if (length(dim(newdata)) == 2L) colnames(newdata)
  usable <- \(names) !is.null(names) && all(nzchar(names)) && !anyNA(names)
  if (usable(wanted) && !anyDuplicated(wanted) && usable(columns)) {
    refuse_twice(columns[columns %in% wanted], name)
    missing <- setdiff(wanted, columns)
    if (length(missing)) {
      stop_input("'", name, "' must have the columns of ", of, "; missing: ",
                 quoted(missing))
    }
    if (!identical(columns, wanted)) newdata <- take_columns(newdata, wanted)
  } else if (usable(wanted) && usable(columns) && !identical(columns, wanted)) {
    refuse_twice(wanted, name)
  } else if (is.null(dim(newdata)) && ncol(x) > 1L) {
    stop_input(
      "'", name, "' must be a matrix or data frame with ", ncol(x),
      " columns, not ", describe(newdata), "; one point is a matrix of one row"
    )
  }
  if (is.data.frame(x)) {
    return(read_mixed(newdata, name, x))
  }
  newdata <- check_data(newdata, name)
  if (ncol(newdata) != ncol(x)) {
    stop_input("'", name, "' must have ", count_of(ncol(x), "column"),
               ", not ", ncol(newdata))
  }
  newdata
}

as_factor <- \(x) as.factor(as_factors(x))

# Groups as a factor without empty levels.
check_factor <- function(groups, name = "groups") {
  if (NCOL(groups) != 1L) {
    stop_input("'", name, "' must have one column, not ", NCOL(groups))
  }
  tryCatch(droplevels(as_factor(groups)), error = \(e) {
    stop_input("'", name, "' must be groups; ", conditionMessage(e))
  })
}

# The values, a vector or a factor, if there is one for each of n units and none
# is missing; an error otherwise.
check_each <- function(values, n, name, units = "points") {
  whole <- is.atomic(values) && (!is.factor(values) || length(levels(values)))
  if (!whole || length(values) != n || NCOL(values) != 1L) {
    stop_input("'", name, "' must be a factor or a vector with a value for ",
               "each of the ", n, " ", units, ", not ", describe(values),
               if (is.factor(values)) paste(" of length", length(values)),
               if (is.factor(values) && !whole) " without levels")
  }
  check_no_na(values, name, NULL)
  values
}

# The same for labels, as text: a factor may have NA among its levels.
check_labels <- function(values, ...) {
  check_each(as.character(check_each(values, ...)), ...)
}

# The factor without its empty levels, which a warning names.
drop_empty <- function(x, name, units) {
  empty <- setdiff(levels(x), as.character(x))
  if (length(empty)) {
    warn_kernmean("'", name, "' has levels without ", units, ", which are ",
                  "left out: ", quoted(empty))
  }
  droplevels(x)
}

# The classes as a factor, if there are at least two of at least two units each;
# an error otherwise.
check_classes <- function(classes, name, units) {
  classes <- drop_empty(classes, name, units)
  lev <- levels(classes)
  if (length(lev) < 2L) {
    stop_input("'", name, "' must have at least 2 classes, not only '", lev,
               "'")
  }
  few <- lev[tabulate(classes, length(lev)) < 2L]
  if (length(few)) {
    stop_input("'", name, "' must have at least 2 ", units, " in each class, ",
               "not 1 in ", quoted(few))
  }
  classes
}

# The rows of all these matrices in one matrix, which must fit into memory.
bind_rows <- function(parts) {
  rows <- vapply(parts, \(part) as.double(nrow(part)), 1)
  check_memory(sum(rows), ncol(parts[[1L]]), "use fewer rows",
               what = "a matrix of all points,")
  do.call(rbind, parts)
}

# 'folds' as a factor, if the user gave the fold of each unit. units: the word
# for the units in messages, "rows".
read_folds <- function(folds, n, units) {
  folds <- check_factor(check_each(folds, n, "folds", units), "folds")
  if (nlevels(folds) < 2L) {
    stop_input("'folds' must have at least 2 folds, not only one")
  }
  folds
}

# Codes 1, 2, ... of the values, in the order in which they come.
number_codes <- function(values) match(values, unique(values))

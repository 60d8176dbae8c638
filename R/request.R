# Doors as tables of arguments. The table of a door says of each argument of
# what kind it is, and what goes with what; its defaults stand in the signature.
# From the table come the checks with their messages, the request that a fit
# stores, and update().

# --- Kinds -------------------------------------------------------------------
# A kind is list(words, holds, as): what a value must be, in words; whether one
# is; what it becomes. Where words are not enough it is a function of the value
# and of the argument's name that returns the value or stops.

new_kind <- function(words, holds, as = identity) {
  list(words = words, holds = holds, as = as)
}

# The value as its kind takes it, or an error.
take <- function(value, kind, name = deparse1(substitute(value))) {
  if (is.function(kind)) {
    return(kind(value, name))
  }
  if (!isTRUE(kind$holds(value))) {
    stop_input("'", name, "' must be ", kind$words, ", not ",
               if (is.null(kind$fault)) describe(value) else kind$fault(value))
  }
  kind$as(value)
}

is_number <- \(x) is.numeric(x) && length(x) == 1L && !is.na(x)

# So many numbers (NULL: any, but one) from `from` to `to`, none missing;
# `open`: none of them one of the ends.
numbers <- function(from = 0, to = Inf, open = FALSE, finite = TRUE,
                    count = NULL) {
  # An integer64 compares with no limit as such.
  fine <- \(x, y = as.double(x)) !is.na(y) & (!finite | is.finite(y)) &
    (if (open) y > from & (y < to | is.infinite(to)) else y >= from & y <= to)
  one <- identical(count, 1L)
  kind <- new_kind(
    paste0(
      if (one) "a " else if (!is.null(count)) paste0(count, " "),
      if (is.infinite(to)) if (open) "positive " else "non-negative ",
      if (one) "number" else "numbers",
      if (is.finite(to)) paste(if (open) " between" else " from", from,
                               if (open) "and" else "to", to)
    ),
    \(x) is.numeric(x) && length(x) > 0L && all(fine(x)) &&
      (is.null(count) || length(x) == count),
    as.double
  )
  kind$fault <- \(x) {
    if (is.numeric(x) && !all(fine(x))) format(x[!fine(x)][1L]) else describe(x)
  }
  kind
}

number <- function(...) numbers(..., count = 1L)

count <- function(least = 1L) {
  most <- .Machine$integer.max
  kind <- new_kind(paste("a whole number of at least", least), \(x) {
    is_number(x) && x >= least && x == round(x) && x <= most
  }, as.integer)
  kind$fault <- \(x) {
    paste0(describe(x), if (is_number(x) && x > most) {
      paste("; at most", most)
    })
  }
  kind
}

flag <- new_kind("TRUE or FALSE", \(x) isTRUE(x) || isFALSE(x))

# One of some words; a unique beginning is enough, and all of them, as in a
# signature, are the first.
choice <- function(...) {
  choices <- c(...)
  at <- \(x) if (identical(x, choices)) 1L else
    if (is.character(x) && length(x) == 1L && !is.na(x)) pmatch(x, choices)
  new_kind(paste("one of", quote_words(choices)),
           \(x) length(at(x)) && !is.na(at(x)), \(x) choices[at(x)])
}

quote_words <- \(words) paste0("\"", words, "\"", collapse = ", ")

# An object of a class.
is_a <- function(class, words) new_kind(words, \(x) inherits(x, class))

# NULL, one of some words, or of a kind.
maybe <- function(kind, ...) {
  words <- c(...)
  passes <- \(x) is.null(x) ||
    is.character(x) && length(x) == 1L && x %in% words
  if (is.function(kind)) {
    return(\(value, name) if (passes(value)) value else kind(value, name))
  }
  if (length(words)) kind$words <- paste(quote_words(words), "or", kind$words)
  holds <- kind$holds
  as <- kind$as
  kind$holds <- \(x) passes(x) || holds(x)
  kind$as <- \(x) if (passes(x)) x else as(x)
  kind
}

# Of this kind, and NULL unless the user gave it: its default depends on what
# else is asked for.
unless_given <- function(kind) structure(kind, open = TRUE)

anything <- \(value, name) value

# --- Tables and requests -----------------------------------------------------

doors <- new.env(parent = emptyenv())

# The table of a door, the function above it of this name: argument = kind, ...,
# and rules. `aside`: what is no part of a stored request, as data.
# units: the arguments for the same units, see check_order().
# hints: what is said of arguments that it does not have, by their names.
door_table <- function(.door, ..., rules = list(), aside = "progress",
                       units = NULL, hints = NULL) {
  kinds <- list(...)
  names <- names(kinds)
  defaults <- formals(get(.door, parent.frame()))
  doors[[.door]] <- list(
    door = .door, kinds = kinds, rules = rules, aside = aside, units = units,
    hints = hints,
    dots = "..." %in% names(defaults), known = names(defaults),
    open = !vapply(kinds, \(kind) is.null(attr(kind, "open")), NA),
    required = !vapply(defaults[names], \(value) nzchar(deparse1(value)), NA),
    # Defaults that are no calls, and what these become, once asked for.
    defaults = Filter(Negate(is.language), defaults[names]),
    usual = new.env(parent = emptyenv()),
    # The function itself: an argument of a door may be called c.
    missing = as.call(c(list(c), lapply(names, \(name) {
      call("missing", as.name(name))
    })))
  )
}

# A rule: where the condition holds, arguments must be these. A condition is the
# name of an argument that is given (not NULL), a value that one has,
# c(null = "gamma"), or a function of the request with its reason in words. An
# argument must be a value, of a kind, or absent (NULL); one that the user did
# not give becomes that value.
when <- function(condition, ..., reason = NULL) {
  if (is.character(condition) && is.null(reason)) {
    reason <- if (is.null(names(condition))) {
      paste0("when '", condition, "' is given")
    } else {
      paste0("for ", names(condition), " = \"", condition, "\"")
    }
  }
  list(condition = condition, must = list(...), reason = reason)
}

rule_holds <- function(rule, values) {
  condition <- rule$condition
  if (is.function(condition)) {
    isTRUE(condition(values))
  } else if (is.null(names(condition))) {
    !is.null(values[[condition]])
  } else {
    identical(values[[names(condition)]], condition[[1L]])
  }
}

# Does a value keep what a rule wants?
keeps_rule <- function(value, wanted) {
  if (is.list(wanted)) isTRUE(wanted$holds(value)) else identical(value, wanted)
}

# The values with the rules applied; an error where the user gave another.
apply_rules <- function(values, rules, given) {
  for (rule in rules) {
    if (!rule_holds(rule, values)) next
    for (name in names(rule$must)) {
      wanted <- rule$must[[name]]
      value <- values[[name]]
      if (keeps_rule(value, wanted)) next
      if (name %in% given) {
        stop_input("'", name, "' must ", if (is.null(wanted)) {
          paste("not be given", rule$reason)
        } else {
          paste0("be ", if (is.list(wanted)) wanted$words else describe(wanted),
                 " ", rule$reason, ", not ", describe(value))
        })
      }
      if (!is.list(wanted)) values[name] <- list(wanted)
    }
  }
  values
}

# What the door was asked for in whose frame this is called: a list of its
# arguments, as their kinds take them. attr "given": those that the user gave.
request <- function(table, frame = parent.frame(), dots = FALSE) {
  names <- names(table$kinds)
  if (endsWith(table$door, ".default")) check_first(table, frame)
  if (table$dots && (!dots || length(table$hints)) &&
        eval(quote(...length()), frame)) {
    unused <- eval(quote(...names()), frame)
    # Of dots that are another's, those with a hint.
    if (dots) unused <- intersect(unused, names(table$hints))
    if (!dots || length(unused)) stop_unused(unused, table$known, table$hints)
  }
  missing <- eval(table$missing, frame)
  values <- table$kinds
  for (i in seq_along(names)) {
    if (missing[i] && table$required[i]) {
      stop_input("'", names[i], "' must be given")
    }
    name <- names[i]
    value <- if (missing[i]) table$usual[[name]]
    if (is.null(value)) {
      usual <- missing[i] && name %in% names(table$defaults)
      value <- list(if (!missing[i] || !table$open[i]) {
        take(if (usual) table$defaults[[name]] else get(name, frame),
             table$kinds[[i]], name)
      })
      if (usual) table$usual[[name]] <- value
    }
    values[i] <- value
  }
  if (!is.null(table$units)) check_order(values[table$units])
  if (length(table$rules)) {
    values <- apply_rules(values, table$rules, names[!missing])
  }
  attributes(values) <- list(names = names, given = names[!missing],
                             door = table$door)
  values
}

# A formula comes first, its data second.
check_first <- function(table, frame) {
  second <- as.name(table$known[2L])
  if (!eval(call("missing", second), frame) &&
        inherits(eval(second, frame), "formula")) {
    stop_input("a formula must come first, as in ",
               sub(".default", "", table$door, fixed = TRUE), "(",
               deparse1(eval(second, frame)), ", data)")
  }
}

# What a fit stores of a request: what the user gave.
stored <- function(asked) {
  door <- attr(asked, "door")
  given <- attr(asked, "given")
  kept <- asked[given[!given %in% doors[[door]]$aside]]
  attr(kept, "door") <- door
  kept
}

# A stored request with changes. Where a rule would refuse what was stored
# beside what is new, what is new takes its place.
change_request <- function(stored, changes) {
  table <- doors[[attr(stored, "door")]]
  values <- unclass(stored)
  values[names(changes)] <- changes
  for (rule in table$rules) {
    if (!rule_holds(rule, values)) next
    broken <- Filter(\(name) name %in% names(values) &&
                       !keeps_rule(values[[name]], rule$must[[name]]),
                     names(rule$must))
    new <- intersect(broken, names(changes))
    values[setdiff(broken, new)] <- NULL
    condition <- rule$condition
    by <- names(condition) %||% condition
    if (length(new) && is.character(condition) && !by %in% names(changes)) {
      values[by] <- NULL
    }
  }
  values[!vapply(values, is.null, NA)]
}

check_changes <- function(changes) {
  if (inherits(changes[1L][[1L]], "formula") || "formula" %in% names(changes)) {
    stop_input("update() keeps the formula of a fit; a new formula takes a ",
               "new call")
  }
  if (length(changes) && !all(nzchar(names2(changes)))) {
    stop_input("the arguments of update() must be named")
  }
  # As a call of its own it would be evaluated.
  for (name in names(Filter(is.language, changes))) {
    stop_input("'", name, "' must be a value, not ", describe(changes[[name]]))
  }
}

names2 <- \(x) names(x) %||% character(length(x))

# An argument of the function that asks, which it cannot do without.
check_given <- function(x) {
  if (missing(x)) stop_input("'", substitute(x), "' must be given")
}

# An error where a package is not installed; another fault while it is loaded is
# an error of its own.
need_package <- function(package, ...) {
  tryCatch(loadNamespace(package), packageNotFoundError = \(e) {
    stop_kernmean("package", ...)
  })
}

# The dots stand before optional arguments and must be empty.
check_dots <- function(...) {
  if (...length()) stop_unused(...names(), names(formals(sys.function(-1L))))
}

# names: of what was in the dots; known: the arguments that there are.
stop_unused <- function(names, known, hints = NULL) {
  names <- names[nzchar(names)]
  if (!length(names)) {
    after <- known[-seq_len(match("...", known, 0L))]
    stop_input("unused argument: those after the dots must be named",
               if (length(after)) paste0(" (", quoted(after), ")"))
  }
  hinted <- names[names %in% names(hints)][1L]
  stop_input("unused argument: ", quoted(names), if (is.na(hinted)) {
    unused_hint(names, known)
  } else {
    paste0("; '", hinted, "' ", hints[[hinted]])
  })
}

# Digits that print() shows; NULL leaves them to R.
printed_digits <- maybe(number(1, 22))

# Values in the order of those that they are for, by whose names they may be
# called. what: what these are.
in_order <- function(values, wanted, name, what) {
  names_there <- names(values)
  if (is.null(names_there) || is.null(wanted)) {
    return(values)
  }
  if (anyDuplicated(names_there) || !setequal(names_there, wanted)) {
    stop_input("'", name, "' must have the names of ", what, ", ",
               shorten(wanted), ", or none, not ", shorten(names_there))
  }
  values[wanted]
}

# The names of the units of a vector, of rows, distances or a gram.
unit_names <- function(x) {
  attr(x, "Labels") %||% if (is.data.frame(x)) given_rows(x) else
    if (is.environment(x)) rownames(x$x %||% x$K) else
      if (length(dim(x)) > 1L) rownames(x) else if (is.atomic(x)) names(x)
}

# A word where arguments for the same units have the same names in other orders.
check_order <- function(values) {
  values <- values[lengths(values) > 0L]
  if (length(values) < 2L) {
    return(invisible())
  }
  names <- Filter(length, lapply(values, unit_names))
  for (i in seq_along(names)[-1L]) {
    if (!identical(names[[1L]], names[[i]]) &&
          setequal(names[[1L]], names[[i]])) {
      warn_kernmean("'", names(names)[i], "' has the names of '",
                    names(names)[1L], "' in another order, and goes by ",
                    "position; an index by these names matches them",
                    kind = "names")
    }
  }
}

# --- Data --------------------------------------------------------------------

# A sample: a double matrix with at least one row and one column, all finite.
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
  # Assigning the mode it has would copy it.
  if (!is.double(x)) storage.mode(x) <- "double"
  x
}

has_levels <- function(x) is.factor(x) || is.logical(x) && is.null(dim(x))

# Do its levels count as equal or different? Those of an ordered factor count by
# their places.
is_nominal <- function(x) has_levels(x) && !is.ordered(x)

check_no_na <- function(x, name, hint = na_hint) {
  if (anyNA(x)) {
    stop_input("'", name, "' must have no missing values, not ", sum(is.na(x)),
               " NA", hint)
  }
}

# Levels of a factor, seen before or not.
check_levels <- function(z, label, name = "newdata") {
  if (!(has_levels(z) || is.character(z)) || !is.null(dim(z))) {
    stop_input("'", name, "' must hold a factor for '", label, "', not ",
               describe(z))
  }
  check_no_na(z, label, if (name != "newdata") na_hint)
}

# Characters as factors, themselves or as columns of a data frame, the levels in
# an order that is the same in all locales. A variable, which has a label, may
# be numbers that were read as text.
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

# x[at] <- columns, which takes long of many.
put_columns <- function(x, at, columns) {
  class <- class(x)
  x <- unclass(x)
  x[at] <- columns
  class(x) <- class
  x
}

# Points: a numeric matrix, or of data with factors among its columns a data
# frame of numbers and factors.
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

# like: a data frame of such points whose columns those of x are to be.
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

# The columns of a data frame with ordered factors as the places of their
# levels; places: these levels, by column.
place_levels <- function(x, places) {
  if (length(places)) {
    x[names(places)] <- Map(\(z, levels, label) {
      as.double(seen_levels(z, levels, label, "x"))
    }, x[names(places)], places, names(places))
  }
  x
}

# Of F alone a reader makes FALSE.
read_alike <- function(column) {
  paste0("; read all of it alike, as by read = \\(f) read.csv(f, colClasses = ",
         "c(", column, " = \"character\"))")
}

# The numbers of a vector, a matrix or a column: TRUE and FALSE are 1 and 0,
# dates, times and durations days, whatever their unit, so that new ones agree.
# NULL of what has none.
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
    # Of classes that are not known here, such as units.
    if (is.matrix(x) || !is.object(x) && is.null(dim(x))) x else
      if (length(dim(x)) < 2L) stats::setNames(as.vector(unclass(x)), names(x))
  }
}

# A column of the data `name` as numbers; may it be wide, a matrix?
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

# A sample that looks like a matrix of kernel values or distances.
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

# A frame with these names of its rows, NULL for those that it has.
name_frame <- function(frame, row.names) {
  if (is.null(row.names)) {
    return(frame)
  }
  n <- nrow(frame)
  if (!is.character(row.names) && !is.numeric(row.names) ||
        length(row.names) != n || anyNA(row.names) ||
        anyDuplicated(row.names)) {
    stop_input("'row.names' must be NULL or ", count_of(n, "different name"),
               ", not ", describe(row.names))
  }
  rownames(frame) <- row.names
  frame
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

is_finite <- function(x) {
  if (is.double(x)) {
    .Call(C_r_all_finite, x)
  } else {
    is.integer(x) && !anyNA(x) || all(is.finite(x))
  }
}

# What a door gives must be numbers, for it gives no NaN silently. what: what
# they are.
check_result <- function(values, what, of = "'x'") {
  if (is.list(values)) {
    for (part in values) check_result(part, what, of)
  } else if (is.numeric(values) && !is_finite(values)) {
    stop_kernmean(
      "numeric", what, " is not a finite number: kernel values, or sums of ",
      "their products, over- or underflow; rescale the columns of ", of
    )
  }
  invisible(values)
}

# The solution of a quadratic program, solve.QP(...).
program_solution <- function(program, what) {
  tryCatch(program$solution, error = \(e) {
    stop_kernmean("numeric", what, " were not found: ", conditionMessage(e))
  })
}

# The names of rows that a data frame was given, NULL where they are numbers.
given_rows <- \(x) if (.row_names_info(x) > 0L) row.names(x)

# Some rows, or columns, of a matrix or a data frame; nothing of NULL.
take_rows <- \(x, i) x[i, , drop = FALSE]
take_columns <- \(x, j) x[, j, drop = FALSE]

# Rows of a matrix or a data frame, elements of a vector.
take_frame <- function(x, rows) {
  if (is.null(dim(x))) x[rows] else take_rows(x, rows)
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

# A hint for arguments of a function that takes the known ones: those of an
# estimator may have been given beside it. NULL for none.
unused_hint <- function(names, known) {
  makers <- c(lambda = "est_skmse", select = "est_skmse", target = "est_skmse",
              guard = "est_skmse", noise = "est_mkme", h = "est_smooth",
              candidates = "est_stack", shares = "est_stack")
  theta <- intersect(names, c("bandwidth", "sigma", "theta", "gamma"))
  if (length(theta) && any(c("kernel", "kernel_x", "bandwidth") %in% known)) {
    return(bandwidth_hint(theta[1L], known))
  }
  name <- intersect(names, names(makers))[1L]
  if (!is.na(name) && any(c("estimator", "center") %in% known)) {
    return(paste0("; '", name, "' is for an estimator, as in ",
                  makers[[name]], "(", name, " = )"))
  }
  # Misspelt.
  known <- setdiff(known, "...")
  apart <- utils::adist(names[1L], known, ignore.case = TRUE)
  if (length(apart) && min(apart) <= 2L && min(apart) < nchar(names[1L]) / 2) {
    paste0("; did you mean '", known[which.min(apart)], "'?")
  }
}

# Of the kernel that is made, or that a door was asked for.
bandwidth_hint <- function(theta, known) {
  kernel <- if ("kernel" %in% known) dynGet("kernel", NULL)
  maker <- if (inherits(kernel, "kernmean_kernel") &&
                 !is.null(kernel$bandwidth)) {
    sub("_.*|[0-9]+", "", kernel$family)
  } else if ("norm" %in% known) "laplace" else
    if (known[1L] == "nu") "matern" else "rbf"
  paste0(
    "; the bandwidth is the kernel's, as in kernel = kernel_", maker, "(",
    switch(paste(maker, theta),
           "rbf sigma" = "1/sqrt(2 * sigma)) for kernlab's sigma",
           "rbf gamma" = "1/sqrt(2 * gamma)) for scikit-learn's gamma",
           "laplace sigma" = "1/sigma, \"L2\") for kernlab's sigma",
           "laplace gamma" = "1/gamma) for scikit-learn's gamma",
           "bandwidth = )"),
    if (theta == "sigma") "; a standard deviation is the bandwidth itself"
  )
}

# An n x m matrix of doubles must fit; said before it is allocated.
check_memory <- function(n, m, ..., copies = 1,
                         what = if (copies == 1) "a Gram matrix" else
                           "work on a Gram matrix") {
  n <- ceiling(as.double(n))
  m <- ceiling(as.double(m))
  bytes <- 8 * copies * n * m
  fault <- if (max(n, m) > .Machine$integer.max) {
    paste("has more rows or columns than the", .Machine$integer.max,
          "that a matrix can have")
  } else if (bytes >= 2^24 || !is.null(getOption("kernmean.memory"))) {
    # A look at what is free takes longer than many a small matrix.
    available <- memory_available()
    if (bytes > available) {
      paste0("needs ", format_bytes(bytes), ", more than the ",
             format_bytes(available), " at hand")
    }
  }
  if (!is.null(fault)) {
    size <- format(c(n, m), scientific = FALSE, trim = TRUE)
    stop_kernmean("memory", what, " of ", size[1L], " x ", size[2L],
                  " doubles ", fault, "; ", ...)
  }
}

# The rows of all these matrices, in one that must fit.
bind_rows <- function(parts) {
  rows <- vapply(parts, \(part) as.double(nrow(part)), 1)
  check_memory(sum(rows), ncol(parts[[1L]]), "use fewer rows",
               what = "a matrix of all points,")
  do.call(rbind, parts)
}

# Bytes this process may still use: the option, or what the system reports.
memory_available <- function() {
  limit <- getOption("kernmean.memory")
  if (is.null(limit)) system_memory() else
    take(limit, number(finite = FALSE), "kernmean.memory")
}

# The least of what Linux says is free, of what the control groups of the
# process (versions 1 and 2, each within its parents) leave it, the cache of
# files not counted, and of its address space (ulimit -v). root: of the files.
system_memory <- function(root = "") {
  read <- \(...) {
    file <- paste0(root, ...)
    if (file.access(file, 4L) == 0L) readLines(file, warn = FALSE)
  }
  # The first number of the line that begins so; `without` where there is none.
  value <- \(lines, start, without) {
    line <- grep(paste0("^", start, "[^0-9a-z]*[0-9]"), lines, value = TRUE)
    if (length(line)) as.double(sub("^[^0-9]*([0-9]+).*", "\\1",
                                    substring(line[1L], nchar(start) + 1L)))
    else without
  }
  free <- c(
    1024 * value(read("/proc/meminfo"), "MemAvailable:", Inf),
    value(read("/proc/self/limits"), "Max address space", Inf) -
      1024 * value(read("/proc/self/status"), "VmSize:", 0)
  )
  groups <- grep("[:,]memory[:,]|^0::", read("/proc/self/cgroup"), value = TRUE)
  for (line in groups) {
    old <- !startsWith(line, "0::")
    words <- if (old) {
      c("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
    } else {
      c("memory.max", "memory.current", "")
    }
    path <- sub("^[^:]*:[^:]*:", "", line)
    repeat {
      group <- paste0("/sys/fs/cgroup", if (old) "/memory", path, "/")
      free <- c(free, value(read(group, words[1L]), "", Inf) -
                  value(read(group, words[2L]), "", 0) +
                  sum(vapply(c("active_file", "inactive_file"), \(cache) {
                    value(read(group, "memory.stat"),
                          paste0(words[3L], cache), 0)
                  }, 0)))
      if (dirname(path) == path) break
      path <- dirname(path)
    }
  }
  max(0, min(free))
}

as_factor <- \(x) as.factor(as_factors(x))

# Groups as a factor, with the levels that there are.
check_factor <- function(groups, name = "groups") {
  if (NCOL(groups) != 1L) {
    stop_input("'", name, "' must have one column, not ", NCOL(groups))
  }
  tryCatch(droplevels(as_factor(groups)), error = \(e) {
    stop_input("'", name, "' must be groups; ", conditionMessage(e))
  })
}

# One value for each of n units, none missing: a vector or a factor.
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

# The same of labels: a factor may have NA among its levels.
check_labels <- function(values, ...) {
  check_each(as.character(check_each(values, ...)), ...)
}

# A factor of the levels that there are.
drop_empty <- function(x, name, units) {
  empty <- setdiff(levels(x), as.character(x))
  if (length(empty)) {
    warn_kernmean("'", name, "' has levels without ", units, ", which are ",
                  "left out: ", quoted(empty))
  }
  droplevels(x)
}

# Two classes or more of two units or more each, as a factor.
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

is_plain_list <- function(x) is_several(x) && !is.object(x)

is_several <- function(x) is.list(x) && !is.data.frame(x)

# The numbers of those labels that are named or numbered: so many of them.
check_pick <- function(x, labels, name, count = 1L) {
  at <- if (is.character(x)) match(x, labels) else x
  if (!is.atomic(at) || !length(at) %in% count ||
        !all(at %in% seq_along(labels)) || anyDuplicated(at)) {
    stop_input("'", name, "' must be ",
               if (length(count) > 2L) "some" else
                 paste(c("one", "two")[count], collapse = " or "), " of ",
               shorten(paste0("\"", labels, "\""), 12L), ", by name or ",
               "number, not ", if (is.atomic(x)) shorten(x) else describe(x))
  }
  as.integer(at)
}

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
take <- function(value, kind, name) {
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

in_range <- function(x, from, to, open, finite) {
  (if (open) x > from & (x < to | is.infinite(to)) else x >= from & x <= to) &
    (!finite | is.finite(x))
}

range_words <- function(from, to, open) {
  if (is.finite(to)) {
    c("", paste(if (open) " between" else " from", from,
                if (open) "and" else "to", to))
  } else {
    c(if (is.infinite(from)) "finite " else if (open) "positive " else
      "non-negative ", "")
  }
}

# A number from `from` to `to`; `open`: not one of the ends.
number <- function(from = 0, to = Inf, open = FALSE, finite = TRUE) {
  words <- range_words(from, to, open)
  new_kind(paste0("a ", words[1L], "number", words[2L]), \(x) {
    is_number(x) && in_range(x, from, to, open, finite)
  }, as.double)
}

# At least one such number, none missing.
numbers <- function(from = -Inf, to = Inf, open = FALSE, count = NULL) {
  words <- range_words(from, to, open)
  fine <- \(x) !is.na(x) & in_range(x, from, to, open, TRUE)
  kind <- new_kind(
    paste0(if (!is.null(count)) paste0(count, " "), words[1L], "number",
           if (is.null(count) || count > 1L) "s",
           words[2L]),
    \(x) is.numeric(x) && length(x) > 0L && all(fine(x)) &&
      (is.null(count) || length(x) == count),
    as.double
  )
  kind$fault <- \(x) {
    if (is.numeric(x) && !all(fine(x))) format(x[!fine(x)][1L]) else describe(x)
  }
  kind
}

count <- function(least = 1L) {
  new_kind(paste("a whole number of at least", least), \(x) {
    is_number(x) && x >= least && x == round(x) && x <= .Machine$integer.max
  }, as.integer)
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
# hints: what is said of arguments that it does not have, by their names.
door_table <- function(.door, ..., rules = list(), aside = "progress",
                       hints = NULL) {
  kinds <- list(...)
  names <- names(kinds)
  defaults <- formals(get(.door, parent.frame()))
  doors[[.door]] <- list(
    door = .door, kinds = kinds, rules = rules, aside = aside, hints = hints,
    dots = "..." %in% names(defaults),
    open = !vapply(kinds, \(kind) is.null(attr(kind, "open")), NA),
    required = !vapply(defaults[names], \(value) nzchar(deparse1(value)), NA),
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
      if (keeps_rule(values[[name]], wanted)) next
      if (name %in% given) {
        words <- if (is.null(wanted)) "must not be given" else
          paste("must be", if (is.list(wanted)) wanted$words else
            if (is.character(wanted)) quote_words(wanted) else format(wanted))
        stop_input("'", name, "' ", words, " ", rule$reason,
                   if (!is.null(wanted)) {
                     value <- values[[name]]
                     paste0(", not ", if (inherits(value, "kernmean_estimator"))
                       quote_words(value$name) else describe(value))
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
  if (!dots && table$dots && eval(quote(...length()), frame)) {
    eval(bquote(check_dots(..., .known = .(names(table$kinds)),
                           .hints = .(table$hints))), frame)
  }
  names <- names(table$kinds)
  missing <- eval(table$missing, frame)
  values <- table$kinds
  for (i in seq_along(names)) {
    if (missing[i] && table$required[i]) {
      stop_input("'", names[i], "' must be given")
    }
    values[i] <- list(if (!missing[i] || !table$open[i]) {
      take(get(names[i], frame), table$kinds[[i]], names[i])
    })
  }
  if (length(table$rules)) {
    values <- apply_rules(values, table$rules, names[!missing])
  }
  attributes(values) <- list(names = names, given = names[!missing],
                             door = table$door)
  values
}

is_given <- \(asked, name) name %in% attr(asked, "given")

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
    by <- if (is.null(names(condition))) condition else names(condition)
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

names2 <- \(x) if (is.null(names(x))) character(length(x)) else names(x)

# The dots stand before optional arguments and must be empty.
check_dots <- function(..., .known = names(formals(sys.function(-1L))),
                       .hints = NULL) {
  if (...length() == 0L) {
    return(invisible())
  }
  names <- ...names()
  if (is.null(names) || !nzchar(names[1L])) {
    stop_input("unused argument: no more than the named arguments are taken ",
               "by position, not ",
               tryCatch(describe(..1), error = \(e) "what cannot be evaluated"))
  }
  names <- names[nzchar(names)]
  hinted <- names[names %in% names(.hints)]
  stop_input("unused argument", if (length(names) > 1L) "s", ": ",
             paste0("'", names, "'", collapse = ", "),
             if (length(hinted)) {
               paste0("; '", hinted[1L], "' ", .hints[[hinted[1L]]])
             } else {
               unused_hint(names, .known)
             })
}

# --- Checks by kind, outside of a table ---------------------------------------

check_number <- function(x, name, positive = FALSE, finite = TRUE) {
  take(x, number(open = positive, finite = finite), name)
}
check_count <- \(x, name, least = 1L) take(x, count(least), name)
check_choice <- \(x, choices, name) take(x, choice(choices), name)
check_flag <- \(x, name) take(x, flag, name)
# Of numbers that print() shows; NULL leaves it to R.
check_digits <- \(digits) take(digits, maybe(number(1, 22)), "digits")

# What goes with another argument.
must_be <- function(ok, name, value, reason, given = NULL) {
  if (!ok) {
    stop_input("'", name, "' must be ", value, " ", reason,
               if (!is.null(given)) paste0(", not ", describe(given)))
  }
}

# --- Data --------------------------------------------------------------------

# A sample: a double matrix with at least one row and one column, all finite.
check_data <- function(x, name = "x") {
  if (inherits(x, "kernelMatrix")) {
    stop_input("'", name, "' must hold points; as_gram() takes a matrix of ",
               "kernel values")
  }
  if (is.data.frame(x) && all(dim(x) > 0L)) {
    x <- check_columns(x, name)
  } else if (is.numeric(x) && length(dim(x)) < 2L &&
               (!is.object(x) || stats::is.ts(x))) {
    x <- matrix(x, ncol = 1L, dimnames = list(names(x), NULL))
  }
  if (!(is.matrix(x) && is.numeric(x)) && !is.data.frame(x)) {
    stop_input(
      "'", name, "' must be a numeric matrix, data frame or vector, not ",
      describe(x)
    )
  }
  if (nrow(x) < 1L || ncol(x) < 1L) {
    stop_input(
      "'", name, "' must have at least one row and one column, not ",
      nrow(x), " x ", ncol(x)
    )
  }
  check_finite(x, name, if (!grepl("newdata|[$]", name)) na_hint)
  x <- unclass_matrix(x)
  # Assigning the mode it has would copy it.
  if (!is.double(x)) storage.mode(x) <- "double"
  x
}

# A sample that looks like a matrix of kernel values or distances.
warn_symmetric <- function(x) {
  n <- nrow(x)
  if (n == ncol(x) && n >= 4L && isSymmetric(unname(x))) {
    warn_kernmean(
      "'x' is a symmetric matrix, taken as ", n, " points in ", n, " columns; ",
      "as_gram() takes a matrix of kernel values"
    )
  }
}

# A data frame of numeric columns, as a matrix.
check_columns <- function(x, name) {
  # The bits of an integer64 are those of another double.
  plain <- vapply(x, \(column) {
    is.numeric(column) && length(dim(column)) < 2L &&
      !inherits(column, "integer64")
  }, logical(1))
  if (!all(plain)) {
    bad <- which(!plain)[1L]
    stop_input(
      "'", name, "' must have numeric columns only; column '", names(x)[bad],
      "' is ", describe(x[[bad]])
    )
  }
  as.matrix(x)
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
    paste0(" (in ", paste0("'", utils::head(columns, 3L), "'", collapse = ", "),
           if (length(columns) > 3L) ", ...", ")")
  }
  nan <- sum(is.nan(x))
  counts <- c("NA" = sum(is.na(x)) - nan, "NaN" = nan,
              "Inf" = sum(is.infinite(x)))
  counts <- counts[counts > 0]
  stop_input(
    "'", name, "' must have no missing or infinite values, not ",
    paste(counts, names(counts), collapse = " and "), where,
    if (any(c("NA", "NaN") %in% names(counts))) hint
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
  parts <- if (is.list(values)) values else list(values)
  for (part in parts) {
    if (is.list(part)) {
      check_result(part, what, of)
    } else if (is.numeric(part) && !is_finite(part)) {
      stop_kernmean(
        "numeric", what, " is not a finite number: kernel values, or sums of ",
        "their products, over- or underflow; rescale the columns of ", of
      )
    }
  }
  invisible(values)
}

# The solution of a quadratic program, solve.QP(...).
program_solution <- function(found, what) {
  tryCatch(found$solution, error = \(e) {
    stop_kernmean("numeric", what, " were not found: ", conditionMessage(e))
  })
}

# Drops classes and attributes other than dim and dimnames.
unclass_matrix <- function(x) {
  if (is.object(x) || length(attributes(x)) > 2L) {
    x <- matrix(as.vector(x), nrow(x), ncol(x), dimnames = dimnames(x))
  }
  x
}

# New points for an object fitted on the columns of `x`.
check_newdata <- function(newdata, x, name = "newdata",
                          of = if (name == "newdata") "the fit" else "'x'") {
  wanted <- colnames(x)
  given <- if (length(dim(newdata)) == 2L) colnames(newdata)
  usable <- \(names) !is.null(names) && all(nzchar(names)) && !anyNA(names)
  if (usable(wanted) && !anyDuplicated(wanted) && usable(given)) {
    twice <- wanted[wanted %in% given[duplicated(given)]]
    if (length(twice)) {
      stop_input(
        "'", name, "' must have one column of each name, not two named '",
        twice[1L], "'"
      )
    }
    missing <- setdiff(wanted, given)
    if (length(missing)) {
      stop_input(
        "'", name, "' must have the columns of ", of, "; missing: ",
        paste0("'", missing, "'", collapse = ", ")
      )
    }
    if (!identical(given, wanted)) newdata <- newdata[, wanted, drop = FALSE]
  } else if (is.null(dim(newdata)) && ncol(x) > 1L) {
    stop_input(
      "'", name, "' must be a matrix or data frame with ", ncol(x),
      " columns, not ", describe(newdata), "; one point is a matrix of one row"
    )
  }
  newdata <- check_data(newdata, name)
  if (ncol(newdata) != ncol(x)) {
    stop_input(
      "'", name, "' must have ", ncol(x), " column", if (ncol(x) > 1L) "s",
      ", not ", ncol(newdata)
    )
  }
  newdata
}

# A hint for arguments of a function that takes the known ones: those of an
# estimator may have been given beside it. NULL for none.
unused_hint <- function(names, known) {
  makers <- c(lambda = "est_skmse", select = "est_skmse", target = "est_skmse",
              noise = "est_mkme", h = "est_smooth", candidates = "est_stack",
              shares = "est_stack")
  theta <- intersect(names, c("bandwidth", "sigma", "theta", "gamma"))
  if (length(theta) && any(c("kernel", "kernel_x") %in% known)) {
    return(paste0("; the bandwidth is the kernel's, as in kernel = ",
                  "kernel_rbf(", if (theta[1L] == "sigma") {
                    "1/sqrt(2 * sigma)"
                  } else if (theta[1L] == "gamma") {
                    "1/sqrt(2 * gamma)"
                  } else {
                    "3"
                  }, ")"))
  }
  name <- intersect(names, names(makers))[1L]
  if (is.na(name) || !any(c("estimator", "center") %in% known)) {
    return(near_name(names[1L], known))
  }
  paste0("; '", name, "' is for an estimator, as in ", makers[[name]], "(",
         name, " = )")
}

# A hint at the argument that a misspelt one is near to, or NULL.
near_name <- function(name, known) {
  if (is.na(name)) {
    return(NULL)
  }
  known <- setdiff(known, "...")
  apart <- drop(utils::adist(name, known, ignore.case = TRUE))
  if (length(apart) && min(apart) <= 2L && min(apart) < nchar(name) / 2) {
    paste0("; did you mean '", known[which.min(apart)], "'?")
  }
}

# An n x m matrix of doubles must fit; said before it is allocated.
check_memory <- function(n, m, ..., copies = 1,
                         what = if (copies == 1) "a Gram matrix" else
                           "work on a Gram matrix") {
  n <- ceiling(as.double(n))
  m <- ceiling(as.double(m))
  bytes <- 8 * copies * n * m
  size <- \() paste(format(c(n, m), scientific = FALSE, trim = TRUE),
                    collapse = " x ")
  if (max(n, m) > .Machine$integer.max) {
    stop_kernmean(
      "memory", what, " of ", size(), " doubles has more rows or columns than ",
      "the ", .Machine$integer.max, " that a matrix can have; ", ...
    )
  }
  # A look at what is free takes longer than many a small matrix.
  if (bytes < 2^20 && is.null(getOption("kernmean.memory"))) {
    return(invisible())
  }
  available <- memory_available()
  if (bytes > available) {
    stop_kernmean(
      "memory", what, " of ", size(), " doubles needs ", format_bytes(bytes),
      ", more than the ", format_bytes(available), " at hand; ", ...
    )
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
  if (!is.null(limit)) {
    return(check_number(limit, "kernmean.memory", finite = FALSE))
  }
  if (!file.exists("/proc/meminfo")) {
    return(Inf)
  }
  lines <- grep("^MemAvailable:", readLines("/proc/meminfo"), value = TRUE)
  free <- 1024 * as.double(gsub("[^0-9]", "", lines))
  if (length(free) == 1L && is.finite(free)) free else Inf
}

# Groups as a factor, with the levels that there are.
check_factor <- function(groups, name = "groups") {
  if (NCOL(groups) != 1L) {
    stop_input("'", name, "' must have one column, not ", NCOL(groups))
  }
  tryCatch(droplevels(as.factor(groups)), error = \(e) {
    stop_input("'", name, "' must be groups; ", conditionMessage(e))
  })
}

is_plain_list <- function(x) is_several(x) && !is.object(x)

is_several <- function(x) is.list(x) && !is.data.frame(x)

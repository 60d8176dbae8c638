# A door is a function that users call, and its arguments stand in a table. The
# table has the kind of each argument, and rules for which arguments go
# together; defaults stand in the signature. The checks with their messages, the
# request that a fit stores, and update() follow from the table.

# --- Kinds -------------------------------------------------------------------
# A kind of argument.
#   words  what a value must be, in words
#   holds  a function: is a value of this kind?
#   as     a function: the value as the package uses it
#   fault  NULL, or a function that describes a wrong value
# A kind may also be a function of the value and of the argument's name, which
# returns the value or stops.

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

# `count` numbers (NULL: at least one) from `from` to `to`, none of them
# missing. open: the ends are excluded.
numbers <- function(from = 0, to = Inf, open = FALSE, finite = TRUE,
                    count = NULL) {
  # An integer64 cannot be compared with the limits before it is made double.
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

# One of some words, or the unique beginning of one. The vector of all words, as
# it stands in a signature, means the first.
choice <- function(...) {
  choices <- c(...)
  at <- \(x) if (identical(x, choices)) 1L else
    if (is.character(x) && length(x) == 1L && !is.na(x)) pmatch(x, choices)
  new_kind(paste(c(if (length(choices) > 1L) "one of", quote_words(choices)),
                 collapse = " "),
           \(x) length(at(x)) && !is.na(at(x)), \(x) choices[at(x)])
}

quote_words <- \(words) paste0("\"", words, "\"", collapse = ", ")

# An object of a class.
is_a <- function(class, words) new_kind(words, \(x) inherits(x, class))

# NULL, one of some words, or a value of the kind.
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

# An argument of this kind whose default depends on other arguments: it is NULL
# unless the user gave it.
unless_given <- function(kind) structure(kind, open = TRUE)

anything <- \(value, name) value

# --- Tables and requests -----------------------------------------------------

doors <- new.env(parent = emptyenv())

# Registers the table of a door, the function with the name .door: argument =
# kind, ..., and rules. aside: the arguments that are not stored, such as the
# data. units: the arguments with a value for each unit, see check_order().
# hints: words for arguments that the door does not have, by their names.
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
    # `defaults` are those that are values, not calls; `usual` keeps each of
    # them as its kind returns it.
    defaults = Filter(Negate(is.language), defaults[names]),
    usual = new.env(parent = emptyenv()),
    # The function c() itself and not its name: a door may have an argument
    # called c.
    missing = as.call(c(list(c), lapply(names, \(name) {
      call("missing", as.name(name))
    })))
  )
}

# A rule: if the condition holds, the arguments in the dots must be as given
# there. A condition is the name of an argument that must be given (not NULL), a
# value that an argument must have, c(null = "gamma"), or a function of the
# request with its reason in words. An argument in the dots must have a value,
# be of a kind, or be absent (NULL); if the user did not give it, it gets the
# value.
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

# Is the value of an argument as the rule wants it?
keeps_rule <- function(value, wanted) {
  if (is.list(wanted)) isTRUE(wanted$holds(value)) else identical(value, wanted)
}

# The values with the rules applied, or an error if the user gave another value.
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

# The request of the door in whose frame this is called: a list of its
# arguments, as their kinds return them. attr "given": the names of the
# arguments that the user gave.
request <- function(table, frame = parent.frame(), dots = FALSE) {
  names <- names(table$kinds)
  if (endsWith(table$door, ".default")) check_first(table, frame)
  if (table$dots && (!dots || length(table$hints)) &&
        eval(quote(...length()), frame)) {
    unused <- eval(quote(...names()), frame)
    # Another function checks the dots; here only hints are given.
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

# Stops if the first argument is the data and the second the formula.
check_first <- function(table, frame) {
  second <- as.name(table$known[2L])
  if (!eval(call("missing", second), frame) &&
        inherits(eval(second, frame), "formula")) {
    stop_input("a formula must come first, as in ",
               sub(".default", "", table$door, fixed = TRUE), "(",
               deparse1(eval(second, frame)), ", data)")
  }
}

# The part of a request that a fit stores: the arguments that the user gave.
stored <- function(asked) {
  door <- attr(asked, "door")
  given <- attr(asked, "given")
  kept <- asked[given[!given %in% doors[[door]]$aside]]
  attr(kept, "door") <- door
  kept
}

# A stored request with changes. A stored value that a rule would refuse beside
# the changes is dropped.
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
  # do.call() would evaluate a value that is a call.
  for (name in names(Filter(is.language, changes))) {
    stop_input("'", name, "' must be a value, not ", describe(changes[[name]]))
  }
}

names2 <- \(x) names(x) %||% character(length(x))

# Stops if the argument of the calling function is missing.
check_given <- function(x) {
  if (missing(x)) stop_input("'", substitute(x), "' must be given")
}

# Stops with these words if the package is not installed. A package that fails
# while it is loaded gives its own error.
need_package <- function(package, ...) {
  tryCatch(loadNamespace(package), packageNotFoundError = \(e) {
    stop_kernmean("package", ...)
  })
}

# Stops if the dots, which stand before optional arguments, are not empty.
check_dots <- function(...) {
  if (...length()) stop_unused(...names(), names(formals(sys.function(-1L))))
}

# Stops with the names of arguments that stood in the dots, and with a hint from
# the arguments that the function has, `known`.
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

# The digits that print() shows; NULL leaves them to R.
printed_digits <- maybe(number(1, 22))

# --- Data --------------------------------------------------------------------

# Stops if results are not finite numbers: no door returns NaN silently. what: a
# name for the results.
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

is_plain_list <- function(x) is_several(x) && !is.object(x)

is_several <- function(x) is.list(x) && !is.data.frame(x)

# Rows, or columns, of a matrix or a data frame, which stays one; NULL stays
# NULL.
take_rows <- \(x, i) x[i, , drop = FALSE]

take_columns <- \(x, j) x[, j, drop = FALSE]

# Each column of a matrix times a number, and each less its mean.
times_columns <- \(x, by) x * rep(by, each = nrow(x))

center_columns <- \(x) x - rep(colMeans(x), each = nrow(x))

# Rows of a matrix or a data frame, elements of a vector.
take_frame <- function(x, rows) {
  if (is.null(dim(x))) x[rows] else take_rows(x, rows)
}

# Warns if arguments for the same units have the same names in other orders.
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

# Values in the order of the names `wanted`, if they have names. what: words for
# the things with these names.
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

# A hint on arguments that a function does not take (`known` are those that it
# takes): they may belong to an estimator or a kernel, or be misspelt. NULL for
# no hint.
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
  # The name may be misspelt.
  known <- setdiff(known, "...")
  apart <- utils::adist(names[1L], known, ignore.case = TRUE)
  if (length(apart) && min(apart) <= 2L && min(apart) < nchar(names[1L]) / 2) {
    paste0("; did you mean '", known[which.min(apart)], "'?")
  }
}

# The hint that a bandwidth is an argument of the kernel.
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

is_finite <- function(x) {
  if (is.double(x)) {
    .Call(C_r_all_finite, x)
  } else {
    is.integer(x) && !anyNA(x) || all(is.finite(x))
  }
}

# The numbers of the labels that x picks by name or number. count: how many may
# be picked.
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

# The names of the units in a vector, a matrix, a data frame, distances or a
# gram.
unit_names <- function(x) {
  attr(x, "Labels") %||% if (is.data.frame(x)) given_rows(x) else
    if (is.environment(x)) rownames(x$x %||% x$K) else
      if (length(dim(x)) > 1L) rownames(x) else if (is.atomic(x)) names(x)
}

# The names of rows that a data frame was given, NULL where they are numbers.
given_rows <- \(x) if (.row_names_info(x) > 0L) row.names(x)

# The value of an expression that is evaluated after set.seed(seed, ...), if
# there is a seed; the user's generator is left as it was.
with_seed <- function(seed, value, ...) {
  if (is.null(seed)) {
    return(value)
  }
  before <- globalenv()$.Random.seed
  on.exit(if (is.null(before)) {
    rm(".Random.seed", envir = globalenv())
  } else {
    assign(".Random.seed", before, globalenv())
  })
  set.seed(seed, ...)
  value
}

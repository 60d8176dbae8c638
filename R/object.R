# Is an object of ours whole? Its fields are public, so that anything may have
# been done to them. A class says what it holds by two verbs; every method of
# the class asks check_object() at its door.

# The fields that must be there, field = kind: the name of one of `kinds` or a
# class; "a|b" is either, and "?" at the end allows NULL; or else such a pair as
# kinds are. "a$b" is a field of the list in field a. Of a field whose class has
# such a method its own fields are looked at too.
fields_of <- function(x) UseMethod("fields_of")
fields_of.default <- \(x) NULL

# Sizes that have to agree, asked for when the kinds are right: list(field =
# length, or dim with NA for any). Fields that are NULL are let pass.
sizes_of <- function(x) UseMethod("sizes_of")
sizes_of.default <- \(x) NULL

kinds <- list(
  numbers = list("finite numbers", \(x) is.numeric(x) && is_finite(x)),
  values = list("numbers", is.numeric),
  known = list("numbers, none missing", \(x) is.numeric(x) && !anyNA(x)),
  number = list("a finite number",
                \(x) is.numeric(x) && length(x) == 1L && is.finite(x)),
  amount = list("a number, maybe infinite",
                \(x) is.numeric(x) && length(x) == 1L && !is.na(x)),
  count = list("a whole number", \(x) {
    is.numeric(x) && length(x) == 1L && is.finite(x) && x == round(x) && x >= 0
  }),
  matrix = list("a matrix of finite doubles",
                \(x) is.matrix(x) && is.double(x) && is_finite(x)),
  square = list("a square matrix of doubles",
                \(x) is.double(x) && is.matrix(x) && nrow(x) == ncol(x)),
  flag = list("TRUE or FALSE", \(x) isTRUE(x) || isFALSE(x)),
  text = list("text", \(x) is.character(x) && length(x) > 0L && !anyNA(x)),
  words = list("text, maybe none", \(x) is.character(x) && !anyNA(x)),
  labels = list("text", \(x) is.character(x) && length(x) > 0L),
  word = list("a word",
              \(x) is.character(x) && length(x) == 1L && !is.na(x)),
  list = list("a list", is.list),
  table = list("a data frame, its columns as long as it has rows",
               \(x) is.data.frame(x) && has_rows(x)),
  frame = list("a data frame of vectors", \(x) {
    is.data.frame(x) && all(vapply(x, is.atomic, NA)) && has_rows(x)
  }),
  factor = list("a factor without missing values",
                \(x) is.factor(x) && !anyNA(x)),
  "function" = list("a function", is.function),
  any = list("there", \(x) !is.null(x))
)

# Do the columns of a data frame have as many values as it has rows?
has_rows <- \(x) all(vapply(x, NROW, 1L) == nrow(x))

# An object that a method was given, or an error that says what is wrong.
check_object <- function(x, name = "x") {
  fault <- fault_of(x)
  if (!is.null(fault)) {
    stop_input("'", name, "' must be a whole object of class '", class(x)[1L],
               "'", fault)
  }
  invisible(x)
}

# What is wrong with an object; what tells how its fields must be may be such
# that it cannot be read.
fault_of <- function(x) {
  tryCatch(find_fault(x), error = \(e) paste0("; ", conditionMessage(e)))
}

# What is wrong, in words, or NULL; `path` leads to the fields of x.
# wanted, sizes: as of the two verbs.
find_fault <- function(x, path = NULL, wanted = fields_of(x),
                       sizes = sizes_of(x)) {
  if (!is.list(x) && !is.environment(x)) {
    return(paste0("; ", if (is.null(path)) "its fields" else quoted(path),
                  " must be a list, not ", describe(unclass(x))))
  }
  for (field in names(wanted)) {
    value <- field_value(x, field)
    fault <- field_fault(value, wanted[[field]], c(path, field))
    if (!is.null(fault)) {
      return(fault)
    }
  }
  for (field in names(sizes)) {
    fault <- size_fault(field_value(x, field), sizes[[field]], c(path, field))
    if (!is.null(fault)) {
      return(fault)
    }
  }
  NULL
}

# NULL where there is no such field, or nothing that could have it.
field_value <- function(x, field) {
  if (is.list(x) && !grepl("$", field, fixed = TRUE)) {
    return(.subset2(x, field))
  }
  for (name in strsplit(field, "$", fixed = TRUE)[[1L]]) {
    x <- if (is.list(x) || is.environment(x)) x[[name]]
  }
  x
}

is_whole <- \(x) is.null(fault_of(x))

# Which of all it is.
one_of_all <- list("TRUE for one", \(x) is.logical(x) && sum(x) %in% 1L)

is_named <- function(x, count = length(x)) {
  is.numeric(x) && length(x) == count && is_finite(x) && !is.null(names(x)) ||
    !length(x) && !count
}

positive_number <- list("a positive number", \(x) {
  is.numeric(x) && length(x) == 1L && is.finite(x) && x > 0
})

# The kind of one of some words.
word_of <- function(words) {
  list(paste("one of", toString(paste0("\"", words, "\""))),
       \(x) is.character(x) && length(x) == 1L && x %in% words)
}

# The kind of a list of whole objects of a class, `counts` of them.
list_of <- function(class, counts) {
  list(paste0("a list of whole objects of class '", class, "'"), \(x) {
    is.list(x) && length(x) %in% counts &&
      all(vapply(x, \(one) inherits(one, class) && is_whole(one), NA))
  })
}

# The kind of a data frame with such columns, column = kind.
table_of <- function(...) {
  columns <- c(...)
  list(
    paste0("a data frame with the columns ",
           paste0("'", names(columns), "'", collapse = ", ")),
    \(x) is.data.frame(x) && has_rows(x) &&
      all(vapply(names(columns), \(name) {
        is.null(field_fault(x[[name]], columns[[name]], name))
      }, NA))
  )
}

field_fault <- function(value, kind, path) {
  rules <- if (is.character(kind)) read_kind(kind) else list(kind)
  if (is.null(value) && isTRUE(attr(rules, "optional"))) {
    return(NULL)
  }
  if (!any_rule(rules, value)) {
    words <- vapply(rules, `[[`, "", 1L)
    return(paste0("; its field ", quoted(path), " must be ",
                  paste(words, collapse = " or "), ", not ",
                  describe_field(value)))
  }
  if (is.object(value) && length(fields_of(value))) find_fault(value, path)
}

any_rule <- function(rules, value) {
  for (rule in rules) {
    if (isTRUE(rule[[2L]](value))) {
      return(TRUE)
    }
  }
  FALSE
}

kinds_read <- new.env(parent = emptyenv())

# The rules of which one must hold; kept, as there are few of them.
read_kind <- function(kind) {
  rules <- kinds_read[[kind]]
  if (is.null(rules)) {
    words <- strsplit(sub("[?]$", "", kind), "|", fixed = TRUE)[[1L]]
    rules <- lapply(words, \(word) {
      if (is.null(kinds[[word]])) {
        list(paste0("of class '", word, "'"), \(x) inherits(x, word))
      } else {
        kinds[[word]]
      }
    })
    attr(rules, "optional") <- endsWith(kind, "?")
    assign(kind, rules, kinds_read)
  }
  rules
}

size_fault <- function(value, size, path) {
  if (is.null(value) || !length(size)) {
    return(NULL)
  }
  came <- if (length(size) == 1L) length(value) else dim(value)
  if (length(came) != length(size) || any(came != size, na.rm = TRUE)) {
    show <- \(s) paste(ifelse(is.na(s), "any", s), collapse = " x ")
    paste0("; its field ", quoted(path), " must be of size ", show(size),
           ", not ", if (length(came)) show(came) else describe(value))
  }
}

quoted <- function(path) paste0("'", paste(path, collapse = "$"), "'")

# Where the kind was right, something was not finite or missing.
describe_field <- function(value) {
  bad <- is.numeric(value) && length(value) > 1L && !all(is.finite(value))
  if (bad) paste(sum(!is.finite(value)), "that are not") else describe(value)
}

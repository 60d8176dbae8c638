format_bytes <- function(bytes) {
  format(structure(bytes, class = "object_size"), units = "auto",
         standard = "SI")
}

# x, or y where x is NULL. R has this operator from 4.4 on.
`%||%` <- \(x, y) if (is.null(x)) y else x

# A value in a few words, for the end of an error: "..., not <words>".
describe <- function(x) {
  if (is.null(x)) {
    "NULL"
  } else if (is.factor(x)) {
    "a factor"
  } else if (is.atomic(x) && length(x) == 1L && is.null(dim(x)) &&
               !is.object(x)) {
    if (is.character(x) && !is.na(x)) paste0("\"", x, "\"") else format(x)
  } else if (is.data.frame(x)) {
    "a data frame"
  } else if (length(dim(x)) > 1L && is.atomic(x) && !inherits(x, "Surv")) {
    paste0(
      if (is.integer(x)) "an " else "a ", typeof(x),
      if (is.matrix(x)) " matrix of " else " array of ",
      paste(dim(x), collapse = " x ")
    )
  } else if (inherits(x, "kernmean_estimator")) {
    paste0("\"", x$name, "\"")
  } else if (inherits(x, "kernmean_kernel")) {
    paste0("the ", x$title, if (is.numeric(x$bandwidth)) {
      paste(", bandwidth", format_several(x$bandwidth))
    })
  } else if (is.object(x)) {
    paste0("an object of class '", class(x)[1L], "'")
  } else if (is.list(x)) {
    paste("a list of length", length(x))
  } else if (is.function(x)) {
    "a function"
  } else if (is.atomic(x)) {
    paste0("a vector of length ", length(x), " (", typeof(x), ")")
  } else {
    paste("an object of type", typeof(x))
  }
}

# The name of an argument, from its expression. do.call() passes a value in
# place of its expression; the value is then described.
label_of <- function(expression) {
  words <- paste(deparse(expression, 500L, nlines = 2L), collapse = " ")
  if (nchar(words) <= 120L) words else if (is.language(expression))
    paste0(substr(words, 1L, 60L), "...") else describe(expression)
}

# A covariance, d x d, or an array of n of them, d x d x n, in words.
describe_covariance <- function(x) {
  shape <- dim(x)
  paste0(if (length(shape) > 2L) paste(shape[3L], "covariances") else
    "one covariance", ", ", shape[1L], " x ", shape[1L])
}

format_number <- function(x, digits = digits_shown()) {
  vapply(x, format, character(1), digits = min(max(digits, 1L), 22L))
}

# The first `most` words as one string, with "..." in place of the others.
shorten <- function(words, most = 4L, sep = ", ") {
  paste(c(utils::head(words, most), if (length(words) > most) "..."),
        collapse = sep)
}

# "'a', 'b'"
quoted <- \(names, most = 4L) shorten(paste0("'", names, "'"), most)

# "0.5", "(1, 2)", "(1, 2, 3, ... 40 in all)"
format_several <- function(x) {
  shown <- if (length(x) > 4L) x[1:3] else x
  numbers <- paste(format_number(unname(shown)), collapse = ", ")
  if (length(x) > length(shown)) {
    numbers <- paste0(numbers, ", ... ", length(x), " in all")
  }
  if (length(x) > 1L) paste0("(", numbers, ")") else numbers
}

# The name of an element of the list `name` in messages: "name$x" or
# "name[[2]]".
element_label <- function(names, i, name) {
  if (is.null(names) || is.na(names[i]) || !nzchar(names[i])) {
    paste0(name, "[[", i, "]]")
  } else {
    deparse1(call("$", as.name(name), as.name(names[i])), backtick = TRUE)
  }
}

# Prints each of the lines, or nothing if there are none.
say <- function(...) {
  lines <- c(...)
  if (length(lines)) cat(lines, sep = "\n")
}

# "1,000,000"
format_count <- function(n) {
  format(n, big.mark = ",", decimal.mark = ".", scientific = FALSE)
}

# "1 row", "1,000,000 rows"
rows_of <- function(n) paste(format_count(n), if (n == 1) "row" else "rows")

# "1 point", "3 points"
count_of <- function(count, noun) {
  paste0(count, " ", noun, if (count != 1L) "s")
}

digits_shown <- function() max(3L, getOption("digits") - 3L)

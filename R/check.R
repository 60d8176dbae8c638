# Checks at the door. Each returns its argument in the form that the rest of
# the package relies on, or raises kernmean_error_input.

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
      describe(x), if (inherits(x, "uci_data")) "; its points are its field x"
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
  found <- rapply(list(values), is_finite, c("numeric", "matrix", "array"),
                  how = "unlist")
  if (!all(found)) {
    stop_kernmean(
      "numeric", what, " is not a finite number: kernel values, or sums of ",
      "their products, over- or underflow; rescale the columns of ", of
    )
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

check_number <- function(x, name, positive = FALSE, finite = TRUE) {
  ok <- is.numeric(x) && length(x) == 1L && !is.na(x) &&
    (if (positive) x > 0 else x >= 0) && (!finite || is.finite(x))
  if (!ok) {
    stop_input(
      "'", name, "' must be a ", if (positive) "positive" else "non-negative",
      " number, not ", describe(x)
    )
  }
  as.double(x)
}

check_count <- function(x, name, least = 1L) {
  ok <- is.numeric(x) && length(x) == 1L && is.finite(x) && x >= least &&
    x == round(x) && x <= .Machine$integer.max
  if (!ok) {
    stop_input(
      "'", name, "' must be a whole number of at least ", least, ", not ",
      describe(x)
    )
  }
  as.integer(x)
}

# Of numbers that print() shows; NULL leaves it to R.
check_digits <- function(digits) {
  ok <- is.null(digits) || is.numeric(digits) && length(digits) == 1L &&
    !is.object(digits) && !is.na(digits) && digits >= 1 && digits <= 22
  if (!ok) {
    stop_input("'digits' must be a number from 1 to 22, not ",
               describe(digits))
  }
  digits
}

# One of the choices; the whole vector of choices (the default) means the
# first. A unique abbreviation is accepted, as by match.arg().
check_choice <- function(x, choices, name) {
  if (identical(x, choices)) {
    return(choices[1L])
  }
  found <- if (is.character(x) && length(x) == 1L && !is.na(x)) {
    pmatch(x, choices)
  } else {
    NA
  }
  if (is.na(found)) {
    stop_input(
      "'", name, "' must be one of ",
      paste0("\"", choices, "\"", collapse = ", "), ", not ", describe(x)
    )
  }
  choices[found]
}

# The dots stand before optional arguments and must be empty.
check_dots <- function(...) {
  if (...length() == 0L) {
    return(invisible())
  }
  known <- names(formals(sys.function(-1L)))
  names <- ...names()
  named <- !is.null(names) && nzchar(names[1L])
  stop_input(
    "unused argument", if (...length() > 1L) "s", ": ",
    if (named) {
      names <- names[nzchar(names)]
      paste0(paste0("'", names, "'", collapse = ", "),
             unused_hint(names, known))
    } else {
      paste0("no more than the named arguments are taken by position, not ",
             tryCatch(describe(..1), error = \(e) "what cannot be evaluated"))
    }
  )
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

# What goes with another argument.
must_be <- function(ok, name, value, reason, given = NULL) {
  if (!ok) {
    stop_input("'", name, "' must be ", value, " ", reason,
               if (!is.null(given)) paste0(", not ", describe(given)))
  }
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

check_flag <- function(x, name) {
  if (!isTRUE(x) && !isFALSE(x)) {
    stop_input("'", name, "' must be TRUE or FALSE, not ", describe(x))
  }
  x
}

# Shows how far a long run has come; returns list(at(share), close()).
progress_bar <- function(progress) {
  if (!progress) {
    return(list(at = \(share) NULL, close = \() NULL))
  }
  bar <- utils::txtProgressBar(style = 3)
  list(at = \(share) utils::setTxtProgressBar(bar, share),
       close = \() close(bar))
}

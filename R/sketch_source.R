# The shelf sketch_: data of any size: sources, landmarks, sums over blocks of
# rows.
#
# Offers from sketch_source.R: rows_of_vector.
# Offers from sketch_landmarks.R: landmark_points.
# Offers from sketch_sums.R: by_numbers, check_same_landmarks, full_bins,
#   group_numbers.
# Offers from sketch_sample.R: check_one_variable, group_samples,
#   lost_shares, second_moments, sketch_cross, sketch_hints, sketch_sample,
#   warn_lost.
# Offers from sketch_sketch.R: variable_labels.

#' Sources of rows for sketches
#'
#' Sources of rows that come in chunks, for [kme_sketch()] and
#' [kme_landmarks()]; and lists of parts, for [kme_sketch()] alone, whose parts
#' can be worked on by several processes, kept in a folder and resumed.
#'
#' @section Sources: A source yields chunks, data frames or matrices with the
#' columns of the landmarks (found by name; others are ignored), and is read
#' once, from its first row to its last:
#' \describe{
#'   \item{a function}{without arguments, called until it returns `NULL`. A
#'     function whose value is another source opens it: `\() { con <-
#'     dbConnect(...); dbSendQuery(con, sql) }` is a query that any process can
#'     begin anew.}
#'   \item{a DBI result}{of `DBI::dbSendQuery()` or `dbSendQueryArrow()`,
#'     fetched `chunk` rows at a time; clearing it is left to you. Integers of
#'     64 bits become doubles. From PostgreSQL the driver RPostgres fetches
#'     piece by piece; RPostgreSQL has the whole result in memory, and a warning
#'     says so.}
#'   \item{an Arrow stream}{or anything that `as_nanoarrow_array_stream()` of
#'     the package nanoarrow makes one of: results of ADBC, tables, data sets
#'     and readers of the package arrow (and what DuckDB gives as such), data
#'     frames of polars. A stream by itself is read once.}
#'   \item{file names}{with `read`, a function of one of them that returns a
#'     data frame, a matrix or a source. Without `read` files called `.csv`
#'     (or `.csv.gz`, ...) are read as by [utils::read.csv()] (those that are
#'     not compressed by `fread()` in blocks of lines, if the package data.table
#'     is installed and finds columns of the same kinds), `.rds` by
#'     [readRDS()], data alone (code in a file is refused), and `.parquet` by
#'     the package nanoparquet. Files that are missing are named before any work
#'     starts, and those without rows by a warning; names such as `https://...`
#'     are left to `read`.}
#' }
#' Chunks of more than `chunk` rows are handed on in slices, and chunks without
#' rows are passed over. No chunk is kept: memory is that of one chunk (of a
#' file, where `read` returns it whole) and of the sums.
#'
#' Whatever goes wrong in a source, or with the rows that it yields, is an error
#' of class `kernmean_error_source` that names the source, its chunk and the
#' rows done before. Its field `parent` is the original error, and its fields
#' `part`, `place` and `rows` say where it happened.
#'
#' @section Parts and engines: A plain list of sources (or of data) is a list of
#' parts, sketched one by one and added up in their order. If the package
#' future.apply is installed they are worked on as [future::plan()] says: by
#' several processes, by machines reached over sockets or ssh, by the jobs of a
#' cluster with future.batchtools. A part is sent as it stands in the list: a
#' file name or a function that opens a database is a few hundred bytes, a
#' matrix goes whole; a DBI result, a stream and a connection cannot be sent.
#' The landmarks are sent with each part, and \eqn{m^2}{m^2} numbers come back.
#' The package must be installed on all machines.
#'
#' The sums of a part are the same bits wherever it is worked on. How the rows
#' are cut into parts does not matter beyond 1e-13, as sums are compensated.
#' With `bin` the rows of each part fall into bins by random numbers of its own,
#' which after [set.seed()] are the same under any plan.
#' A process other than this one works on one thread, or on as many as the
#' environment variable `OMP_NUM_THREADS` said when it was started.
#'
#' Files that are given twice are counted once, with a warning.
#' [kme_landmarks()] takes one source, which may be a vector of file names.
#'
#' If a part fails, the others are finished, and the error names those that
#' failed. A part that is lost with the process that worked on it is worked on
#' once more; if it is lost again, the error names it.
#'
#' @section Checkpoints: `checkpoint` is a folder (made if it is missing) that
#' keeps work: each part when it is finished, and the sums of the part at work
#' every few seconds, at an error and at an interrupt. The same call made again
#' resumes the work: finished parts are read from the folder, and in a part that
#' was at work the rows that are done are passed over. Files, data and functions
#' that open a source begin anew by themselves; a function that yields the
#' chunks itself, and a DBI result, must be made anew. Rows must come in the
#' same order again (a query needs an `ORDER BY`).
#' A finished result is returned at once, but for a look at the first rows of
#' such functions and DBI results. Parts are known by their content, not by
#' their place: a call with a longer list of files than yesterday's, such as
#' `as.list(list.files())`, reads the new files only (a vector is one part).
#' Files are told apart by path, size and time, data by sums, functions by their
#' code and the values that it uses, queries by their SQL. A folder of calls
#' with other landmarks, options or `read` is refused; `chunk` and `progress`
#' may differ.
#'
#' Variables that a function writes by `<<-` are not compared, nor is what
#' stands in environments, behind connections, deep in lists, or in the files
#' and tables that it opens. Two parts of one list that differ in nothing else
#' are refused. A single part that opens a source, and differs in nothing else
#' from another one, is given what was kept of the other; use a folder for each,
#' or a function with the values: `\\() rows(path)`.
#'
#' After a change of `read` take an empty folder. Files that the old `read` can
#' read may be sketched by it from the old folder, and `+` adds both sketches.
#'
#' A file in the folder is used only if it is plain (vectors and lists of them
#' without any code) and whole, by its checksum; a damaged part is named by a
#' warning and worked on again. That keeps accidents out. Whoever may write to
#' the folder can still put other numbers into it, so protect it as you protect
#' your data.
#'
#' If other machines do not see the folder, their parts are kept when they come
#' back. If a part cannot be kept, because the disk is full, there is a warning,
#' and work goes on. Remove the folder when the sketch is saved.
#'
#' @examples
#' # A function that yields chunks: here of one file, read in pieces.
#' path <- tempfile(fileext = ".csv")
#' write.csv(faithful, path, row.names = FALSE)
#' in_chunks <- function(path, rows) {
#'   function() {
#'     file <- file(path, "r")
#'     names <- names(read.csv(text = readLines(file, 1)))
#'     function() {
#'       lines <- readLines(file, rows)
#'       if (length(lines) == 0) {
#'         close(file)
#'         return(NULL)
#'       }
#'       read.csv(text = lines, header = FALSE, col.names = names)
#'     }
#'   }
#' }
#' landmarks <- kme_landmarks(faithful, 20)
#' kme_sketch(in_chunks(path, 100), landmarks)
#'
#' # Parts, under the current plan; finished parts are kept
#' folder <- tempfile()
#' kme_sketch(list(path, in_chunks(path, 50)), landmarks, checkpoint = folder)
#' unlink(c(path, folder), recursive = TRUE)
#' @seealso [glossary]; [kme_sketch()]
#' @docType methods
#' @name kme_sketch_sources
NULL

# Does x yield rows (a function, a query, an Arrow stream, file names)? Other
# sources are rows in memory.
is_stream <- function(x) {
  is.function(x) || is_opened(x) || is.character(x) && is.null(dim(x))
}

# Is x open for reading, or can an Arrow stream be made of it?
is_opened <- function(x) {
  inherits(x, c("DBIResult", "DBIResultArrow", "row_blocks")) ||
    is.object(x) && typeof(x) %in% c("externalptr", "environment") &&
      requireNamespace("nanoarrow", quietly = TRUE) &&
      any(vapply(class(x), \(kind) {
        !is.null(utils::getS3method("as_nanoarrow_array_stream", kind, TRUE,
                                    asNamespace("nanoarrow")))
      }, NA))
}

# --- Sources -----------------------------------------------------------------

# A source that is being read, or data in memory, as functions:
#   next_chunk   a data frame or matrix of 1 to `chunk` rows, NULL at the end
#   position     the number of rows that it has given
#   close        closes what was opened here
#   label        words for what is read now
#   anew         does the source begin anew whenever it is opened?
new_row_stream <- function(x, read = NULL, chunk = 50000L) {
  source <- open_source(x, read, chunk)
  held <- NULL
  at <- 0
  handed <- 0
  ended <- FALSE
  next_chunk <- function() {
    while (!ended && at == NROW(held)) {
      # The old rows are freed before the next come.
      held <<- NULL
      at <<- 0
      held <<- as_chunk(source$fetch())
      ended <<- is.null(held)
    }
    if (ended) {
      return(NULL)
    }
    to <- min(nrow(held), at + chunk)
    rows <- if (at == 0 && to == nrow(held)) held else
      take_rows(held, seq.int(at + 1, to))
    handed <<- handed + to - at
    at <<- to
    rows
  }
  c(list(next_chunk = next_chunk, position = \() handed),
    source[c("close", "label", "anew")])
}

# The functions of a source that new_row_stream() calls. `fetch` returns rows,
# however many come at once, and NULL at the end. A source may return another
# source instead of rows; that one is read to its end and closed, because it was
# not opened by the user (`ours`).
open_source <- function(x, read = NULL, chunk = 50000L, ours = FALSE) {
  kind <- source_kind(x)
  x <- switch(kind, blocks = row_blocks(x, chunk), "function" = ending(x), x)
  if (kind == "file") check_files(x)
  calls <- 0
  # `bare` is TRUE while the file that is being read has given no row.
  bare <- FALSE
  inner <- NULL
  opened <- FALSE
  close_inner <- function() {
    if (!is.null(inner)) inner$close()
    inner <<- NULL
  }
  fetch <- function() {
    repeat {
      rows <- if (!is.null(inner)) inner$fetch()
      if (NROW(rows)) bare <<- FALSE
      if (!is.null(rows)) {
        return(rows)
      }
      close_inner()
      if (bare) warn_empty(x[calls])
      calls <<- calls + 1
      value <- if (!opened || kind != "function") {
        next_value(kind, x, calls, read, chunk)
      }
      bare <<- kind == "file" && !is.null(value) &&
        (is_stream(value) || NROW(value) == 0L)
      if (!is_stream(value)) {
        return(value)
      }
      inner <<- open_source(value, NULL, chunk, ours = TRUE)
      opened <<- TRUE
    }
  }
  list(
    fetch = fetch,
    close = function() {
      close_inner()
      if (ours && kind == "blocks") x$close()
    },
    label = \() source_label(kind, x, max(calls, 1), inner),
    anew = \() opened || kind %in% c("file", "data")
  )
}

warn_empty <- function(file) {
  warn_kernmean("the file '", file, "' has no rows", kind = "empty")
}

source_kind <- function(x) {
  if (is.function(x)) "function" else if (is_opened(x)) "blocks" else
    if (is_stream(x)) "file" else "data"
}

# The rows, or the source, that a source of some kind gives at a call, counted
# from 1; NULL at the end.
next_value <- function(kind, x, call, read, chunk) {
  switch(kind,
    "function" = x(),
    file = if (call <= length(x)) read_file(x[call], read, chunk),
    blocks = x$fetch(),
    data = if (call == 1) rows_of_vector(x)
  )
}

# Words for what a source is reading.
source_label <- function(kind, x, call, inner) {
  c(if (kind == "file") {
    paste0("file '", x[min(call, length(x))], "'")
  } else if (kind != "data" && is.null(inner)) {
    c(if (kind == "blocks") x$label else kind, paste("chunk", call))
  }, if (!is.null(inner)) inner$label())
}

# An open query or Arrow stream as blocks of rows.
row_blocks <- function(x, chunk) {
  if (inherits(x, "row_blocks")) {
    return(x)
  }
  if (inherits(x, "DBIResult")) {
    if (inherits(x, "PostgreSQLResult")) {
      warn_kernmean("RPostgreSQL holds the whole result of a query in memory; ",
                    "RPostgres fetches it piece by piece", kind = "memory")
    }
    return(new_blocks(\() DBI::dbFetch(x, n = chunk), \() DBI::dbClearResult(x),
                      "query"))
  }
  query <- inherits(x, "DBIResultArrow")
  # getExportedValue() is used because older versions of DBI have no Arrow
  # functions.
  fetch <- if (query) getExportedValue("DBI", "dbFetchArrowChunk")
  stream <- if (!query) nanoarrow::as_nanoarrow_array_stream(x)
  # Batches may be short, and so several of them make a block.
  new_blocks(function() {
    batches <- list()
    rows <- 0
    while (rows < chunk) {
      batch <- if (query) fetch(x) else stream$get_next()
      if (is.null(batch) || query && batch$length == 0) {
        break
      }
      rows <- rows + batch$length
      batches <- c(batches, list(as.data.frame(batch)))
    }
    do.call(rbind, batches)
  }, \() if (query) DBI::dbClearResult(x) else stream$release(), "Arrow stream")
}

# Blocks of rows that are being read:
#   fetch   function: the next rows, NULL at the end
#   close   function that ends reading
#   label   a word for errors
new_blocks <- function(fetch, close, label = NULL) {
  structure(list(fetch = \() if (NROW(rows <- fetch())) rows, close = close,
                 label = label), class = "row_blocks")
}

# The function x, with an error if it returns the same rows again and again,
# since reading them would never end.
ending <- function(x) {
  force(x)
  last <- NULL
  again <- 0
  function() {
    value <- x()
    same <- NROW(value) >= 100L && identical(value, last)
    again <<- if (same) again + 1 else 0
    last <<- value
    if (again > 2) {
      stop_input("a function must return the next rows each time it is ",
                 "called, and NULL at the end; this one returns the same ",
                 rows_of(NROW(value)), " again and again")
    }
    value
  }
}

a_reader <- maybe(is_a("function", "a function of a file name"))

# The kind of argument that is rows, a stream of them, or a list of `parts`.
a_source <- function(parts) {
  new_kind("a matrix, a data frame, a vector or a stream of rows", \(x) {
    is_vector(x) || is.matrix(x) || is.data.frame(x) || is_stream(x) ||
      parts && is_plain_list(x)
  })
}

# A connection is an integer with a class, but it is not a vector of data.
is_vector <- function(x) {
  is.null(dim(x)) && (is.numeric(x) || has_levels(x)) &&
    !inherits(x, "connection")
}

rows_of_vector <- function(x) {
  if (!is_vector(x)) x else if (has_levels(x)) data.frame(x = x) else
    matrix(as_numbers(x, "x"), ncol = 1L)
}

# The rows of a file, or a source that yields them. Without `read` the ending of
# the file name decides how the file is read.
read_file <- function(path, read, chunk) {
  is <- \(ending) grepl(paste0("[.]", ending, "$"), path, ignore.case = TRUE)
  rows <- if (is.null(read) && is("rds") || identical(read, readRDS)) {
    read_data(path)
  } else if (!is.null(read)) {
    if (is("csv") && identical(read, utils::read.csv)) check_commas(path)
    read(path)
  } else if (is("csv([.](gz|bz2|xz))?")) {
    check_commas(path)
    (if (is("csv")) csv_blocks(path, chunk)) %||% utils::read.csv(path)
  } else if (is("parquet")) {
    need_package("nanoparquet", "'read' must be given for .parquet without ",
                 "the package nanoparquet")
    nanoparquet::read_parquet(path)
  } else {
    stop_input("'read' must be given for files other than .csv, .rds and ",
               ".parquet, a function of a file name, as in read = read.delim")
  }
  if (is.null(rows)) {
    stop_input("'read' must return a data frame, a matrix or a source of ",
               "them, not NULL")
  }
  rows_of_vector(rows)
}

# Stops if something other than commas separates the columns of a file, because
# read.csv() would make one column of text of them.
check_commas <- function(path) {
  header <- if (file.exists(path)) readLines(path, 1L, warn = FALSE)
  header <- gsub("\"[^\"]*\"", "", header, useBytes = TRUE)
  has <- \(sign) any(grepl(sign, header, fixed = TRUE, useBytes = TRUE))
  if (!has(",") && (has(";") || has("\t"))) {
    stop_input("a file called .csv must have commas between its columns; for ",
               "semicolons give read = read.csv2 (decimal commas) or read = ",
               "\\(f) read.csv(f, sep = \";\"), for tabs read = read.delim")
  }
}

# The rows in a file of saveRDS(). The file may hold code, which must not run: a
# function would be called as a source, and a promise runs when it is looked at.
read_data <- function(path) {
  x <- list(readRDS(path))
  if (typeof(.subset2(x, 1L)) == "list") {
    # Other attributes of a data frame may be formulas.
    all <- attributes(x[[1L]])
    attributes(x[[1L]]) <- all[names(all) %in% c("names", "row.names", "class")]
  }
  if (!is_plain(x)) {
    stop_input("a file of saveRDS() must hold a data frame, a matrix or a ",
               "vector, and no code")
  }
  x[[1L]]
}

# Are x and its attributes vectors without code, or lists of such vectors? A
# file may hold promises, whose code runs when they are evaluated; typeof() of a
# list element does not evaluate it.
is_plain <- function(x, depth = 20L) {
  if (depth == 0L) {
    return(FALSE)
  }
  plain <- \(type) type %in% c("NULL", "logical", "integer", "double",
                               "complex", "raw", "character", "list")
  for (values in list(attributes(x), if (is.list(x)) unclass(x))) {
    for (i in seq_along(values)) {
      if (!plain(typeof(.subset2(values, i))) ||
            !is_plain(.subset2(values, i), depth - 1L)) {
        return(FALSE)
      }
    }
  }
  plain(typeof(x))
}

# Blocks of rows of a file, by the reader of the package data.table; NULL where
# that is not installed, or finds other types of columns in the first rows than
# read.csv().
csv_blocks <- function(path, chunk) {
  if (!file.exists(path) || !requireNamespace("data.table", quietly = TRUE)) {
    return(NULL)
  }
  first <- utils::read.csv(path, nrows = 1000)
  text <- vapply(first, is.character, NA)
  classes <- ifelse(text, "character", NA)
  fast <- \(...) data.table::fread(
    ..., sep = ",", na.strings = "NA", fill = TRUE, strip.white = FALSE,
    blank.lines.skip = TRUE, integer64 = "double", data.table = FALSE,
    showProgress = FALSE, colClasses = list(character = unname(which(text))),
    col.names = names(first)
  )
  kinds <- tryCatch(frame_kinds(fast(path, nrows = 1000)), error = identity,
                    warning = identity)
  if (!identical(kinds, frame_kinds(first))) {
    return(NULL)
  }
  file <- file(path, "r")
  next_lines(file, 1L)
  new_blocks(function() {
    lines <- next_lines(file, chunk)
    if (length(lines)) {
      plain <- \(e) utils::read.csv(text = lines, header = FALSE,
                                    col.names = names(first),
                                    colClasses = classes)
      # read.csv() reads rows with quotes within quotes, which fread() would
      # leave doubled, and rows at which fread() warns or stops. fread() writes
      # several strings to a temporary file, which a full disk would cut, and so
      # the lines are pasted into one.
      rows <- if (any(grepl("\"\"", lines, fixed = TRUE, useBytes = TRUE)))
        plain() else
          tryCatch(fast(text = paste(c(lines, ""), collapse = "\n"),
                        header = FALSE), error = plain, warning = plain)
      keep_words(rows, first)
    }
  }, \() close(file))
}

# The rows of a file. Columns that had numbers `before` and now are logical
# become text: the file has the words T and F there.
keep_words <- function(rows, before) {
  rows[] <- Map(\(new, old) {
    if (is.numeric(old) && is.logical(new) && !all(is.na(new)))
      as.character(new) else new
  }, rows, before)
  rows
}

# The next n lines of a file, and more if a quoted field goes on in the next
# line. If all lines are empty, the next n lines are read.
next_lines <- function(file, n) {
  quotes <- \(x) sum(nchar(gsub("[^\"]+", "", x, perl = TRUE, useBytes = TRUE)))
  lines <- readLines(file, n, warn = FALSE)
  while (quotes(lines) %% 2 == 1 &&
           length(more <- readLines(file, 1L, warn = FALSE))) {
    lines <- c(lines, more)
  }
  if (length(lines) && !any(nzchar(lines))) next_lines(file, n) else lines
}

check_files <- function(paths, name = "x") {
  if (length(paths) == 0L || anyNA(paths)) {
    stop_input("'", name, "' must have names of files, not ", describe(paths))
  }
  absent <- paths[!grepl("^[[:alnum:]]+://", paths) & !file.exists(paths)]
  if (length(absent)) {
    stop_input("'", name, "' must name files that exist; missing: ",
               quoted(absent))
  }
}

# The parts without files that are given twice, in one part or in two, with a
# warning. Equal data in memory are kept, because they may be different rows.
drop_twice <- function(parts) {
  gone <- logical(length(parts))
  seen <- twice <- character()
  for (k in which(vapply(parts, is.character, NA))) {
    paths <- normalizePath(parts[[k]], mustWork = FALSE)
    again <- duplicated(paths) | paths %in% seen
    seen <- c(seen, paths)
    twice <- c(twice, parts[[k]][again])
    parts[[k]] <- parts[[k]][!again]
    gone[k] <- any(again) && all(again)
  }
  if (length(twice)) {
    warn_kernmean("what is given twice is counted once: ", shorten(twice),
                  kind = "twice")
  }
  parts[!gone]
}

# The value of a source as a plain data frame or a matrix; NULL stays.
as_chunk <- function(x) {
  if (is.data.frame(x)) {
    plain_frame(x)
  } else if (is.null(x) || is.matrix(x)) {
    x
  } else {
    stop_input("a source must yield data frames or matrices, one after the ",
               "other, and NULL at the end, not ", describe(x))
  }
}

# A data frame in which integers of 64 bits, which databases yield, are doubles.
# R stores such integers in the bits of doubles, and only the package bit64 can
# convert them.
plain_frame <- function(x) {
  x <- as.data.frame(x)
  # A name that is NA becomes text, because columns are found by their names.
  names(x)[is.na(names(x))] <- "NA"
  wide <- vapply(x, inherits, NA, "integer64")
  if (any(wide)) {
    need_package("bit64", "the column '", names(x)[wide][1L], "' has integers ",
                 "of 64 bits, which take the package bit64; cast it to doubles")
    x[wide] <- lapply(x[wide], as.double)
  }
  x
}

# The value of an expression; an error in it becomes an error of the source,
# whose message says that it came after so many `rows`. `part` is the name of
# the part, NULL for the only one.
from_source <- function(value, stream, rows, part = NULL) {
  tryCatch(value, error = \(e) {
    stop(source_error(
      e, c(part, stream$label()), rows, part,
      if (stream$position() > 0 && !stream$anew()) {
        "; another call goes on behind what is read: make the source anew"
      }
    ))
  })
}

source_error <- function(parent, place, rows, part = NULL, hint = NULL) {
  place <- paste(place, collapse = ", ")
  errorCondition(
    paste0(place, ", after ", rows_of(rows), ": ", conditionMessage(parent),
           hint),
    class = unique(c("kernmean_error_source",
                     grep("^kernmean_error", class(parent), value = TRUE),
                     "kernmean_error")),
    call = user_call(), parent = parent, rows = rows, part = part,
    place = place
  )
}

# --- A pilot -----------------------------------------------------------------

# A uniform sample of `size` rows of a stream, all if there are no more, in
# their order, in one pass. Each row draws a key, and the rows with the `size`
# smallest keys are kept. The other rows are thrown out when there are more than
# `size` of them.
pilot_rows <- function(x, size, read = NULL, chunk = 50000L) {
  stream <- new_row_stream(x, read, chunk)
  on.exit(stream$close())
  kept <- list()
  keys <- numeric()
  limit <- Inf
  rows <- 0
  first <- NULL
  repeat {
    frame <- from_source(match_chunk(stream$next_chunk(), first), stream, rows)
    if (is.null(frame)) {
      break
    }
    kinds <- frame_kinds(frame)
    first <- if (is.null(first)) kinds else ifelse(is.na(first), kinds, first)
    drawn <- stats::runif(nrow(frame))
    low <- drawn < limit
    if (any(low)) {
      kept <- c(kept, list(take_rows(frame, low)))
      keys <- c(keys, drawn[low])
    }
    if (length(keys) > size) {
      limit <- sort(keys, partial = size)[size]
      if (length(keys) > 2 * size) {
        kept <- list(take_rows(do.call(rbind, kept), keys <= limit))
        keys <- keys[keys <= limit]
      }
    }
    rows <- rows + nrow(frame)
  }
  if (rows == 0) {
    stop_input("'x' must yield at least one row, not 0")
  }
  pilot <- do.call(rbind, kept)
  if (length(keys) > size) {
    pilot <- take_rows(pilot, sort(order(keys)[seq_len(size)]))
  }
  row.names(pilot) <- NULL
  pilot
}

# A chunk with the columns of the first chunk only. The kinds of these columns
# must be those in `first`.
match_chunk <- function(frame, first) {
  if (is.null(frame) || is.null(first)) {
    return(frame)
  }
  if (is.null(names(first))) {
    if (ncol(frame) != length(first)) {
      stop_input("a source must yield as many columns as in its first chunk, ",
                 length(first), ", not ", ncol(frame))
    }
    return(frame)
  }
  absent <- setdiff(names(first), colnames(frame))
  if (length(absent)) {
    stop_input("the column", if (length(absent) > 1L) "s", " ",
               quoted(absent), " must be among its columns")
  }
  refuse_twice(names(first), "x")
  frame <- take_columns(frame, names(first))
  now <- frame_kinds(frame)
  bad <- which(now != first)
  if (length(bad)) {
    stop_input("the column '", names(bad)[1L], "' must be ", first[bad[1L]],
               " as in the chunks before, not ", now[bad[1L]])
  }
  frame
}

# The kinds of the columns, by their names; NA for a column in which all values
# are missing, since its kind cannot be known.
frame_kinds <- function(frame) {
  if (!is.data.frame(frame)) {
    return(stats::setNames(rep("numeric", ncol(frame)), colnames(frame)))
  }
  vapply(frame, \(x) {
    if (all(is.na(x)) && length(x)) {
      NA_character_
    } else if (is.factor(x) || is.character(x)) {
      "a factor"
    } else if (is.numeric(x)) {
      "numeric"
    } else {
      paste("of class", class(x)[1L])
    }
  }, "")
}

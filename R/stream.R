#' Sources of rows for sketches
#'
#' What [kme_sketch()] and [kme_landmarks()] read besides data in memory: rows
#' that come in chunks, lists of parts, and how work on them is shared out,
#' kept and gone on with.
#'
#' @section Sources: A source yields chunks, data frames or matrices with the
#' columns of the landmarks (found by name; others are ignored), and is read
#' once, from its first row to its last:
#' \describe{
#'   \item{a function}{without arguments, called until it returns `NULL`. A
#'     function whose value is another source opens it: `\() { con <-
#'     dbConnect(...); dbSendQuery(con, sql) }` is a query that any process can
#'     begin anew.}
#'   \item{a DBI result}{of `DBI::dbSendQuery()`, fetched `chunk` rows at a
#'     time; clearing it is left to you. Integers of 64 bits become doubles.}
#'   \item{file names}{with `read`, a function of one of them that returns a
#'     data frame, a matrix or a source. Without `read` files called `.csv`
#'     (or `.csv.gz`, ...) are read by [utils::read.csv()] and `.rds` by
#'     [readRDS()]. Files that are missing are named before any work starts;
#'     names such as `https://...` are left to `read`.}
#' }
#' Chunks of more than `chunk` rows are handed on in slices, those without rows
#' are passed over. No chunk is kept: memory is that of one (of a file, where
#' `read` returns it whole) and of the sums.
#'
#' Whatever goes wrong in a source, or with the rows that it yields, is an error
#' of class `kernmean_error_source` that names the source, its chunk and the
#' rows done before; its field `parent` is the error met, its fields `part`
#' and `rows` say where.
#'
#' @section Parts and engines: A plain list of sources (or of data) is a list of
#' parts, sketched one by one and added up in their order. If the package
#' future.apply is installed they are worked on as [future::plan()] says: by
#' several processes, by machines reached over sockets or ssh, by the jobs of a
#' cluster with future.batchtools. A part is sent as it stands in the list: a
#' file name or a function that opens a database is a few hundred bytes, a
#' matrix goes whole; a DBI result and an open connection cannot be sent. Out
#' go the landmarks besides, back come \eqn{m(m + 1)/2}{m(m + 1)/2} numbers (and
#' as many of the compensation of rounding). The package must be installed on
#' all machines.
#'
#' The sums of a part are the same bits wherever it is worked on. How the rows
#' are cut into parts does not matter beyond 1e-13, as sums are compensated.
#' With `bin` the rows of each part fall into bins by random numbers of its own,
#' which after [set.seed()] are the same under any plan.
#' A process other than this one works on one thread, or on as many as the
#' environment variable `OMP_NUM_THREADS` said when it was started.
#'
#' If a part fails the others are finished, and the error names those that
#' failed. Nothing is tried again by itself.
#'
#' @section Checkpoints: With `checkpoint`, a folder (made if it is missing),
#' what is done is kept there: each part when it is finished, and every few
#' seconds, at an error and at an interrupt the sums of the part at work. The
#' same call made again goes on: finished parts are read, and in a part that was
#' at work the rows that are done are passed over. Files, data and functions
#' that open a source begin anew by themselves. A function that yields the
#' chunks itself, and a DBI result, are gone on with if they are the very
#' objects of the call that was stopped; in a new session make them anew. Rows
#' must come in the same order again (a query needs an `ORDER BY`).
#' A finished result is returned at once. A folder that belongs to a call with
#' other landmarks, options or parts is refused; `chunk` and `progress` may
#' differ. Files are told apart by name, size and time, data by sums, functions
#' by their code and the values that it uses.
#' On machines that do not see the folder, parts are kept as they come
#' back. Remove the folder when the sketch is saved.
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
#' # Parts, under the plan that holds, finished parts kept
#' folder <- tempfile()
#' kme_sketch(list(path, in_chunks(path, 50)), landmarks, checkpoint = folder)
#' unlink(c(path, folder), recursive = TRUE)
#' @seealso [kme_sketch()]
#' @docType methods
#' @name kme_sketch_sources
NULL

# Does x yield rows (a function, a DBI result, file names) or hold them?
is_stream <- function(x) {
  is.function(x) || inherits(x, "DBIResult") ||
    is.character(x) && is.null(dim(x))
}

# --- Sources -----------------------------------------------------------------

# list(next_chunk: a data frame or matrix of 1 to `chunk` rows, NULL at the end;
# position: rows it has given; back_to: a position within the last of them, from
# where it goes on; close; label: words for what is read now; anew: does the
# source begin anew whenever it is opened?) of a stream, or of data in memory.
open_stream <- function(x, read = NULL, chunk = 50000L) {
  source <- open_source(x, read, chunk)
  held <- NULL
  at <- 0
  given <- 0
  ended <- FALSE
  next_chunk <- function() {
    while (!ended && at == NROW(held)) {
      # What is done with goes before the next comes.
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
      held[seq.int(at + 1, to), , drop = FALSE]
    given <<- given + to - at
    at <<- to
    rows
  }
  back_to <- function(position) {
    at <<- at - (given - position)
    given <<- position
  }
  c(list(next_chunk = next_chunk, position = \() given, back_to = back_to),
    source[c("close", "label", "anew")])
}

nothing <- function() NULL

# list(fetch: what comes next, NULL at the end; close; label; anew)
open_source <- function(x, read = NULL, chunk = 50000L) {
  if (is.function(x)) {
    open_function(x, chunk)
  } else if (inherits(x, "DBIResult")) {
    fetch <- function() {
      rows <- DBI::dbFetch(x, n = chunk)
      if (nrow(rows)) rows
    }
    open_function(fetch, chunk, "query")
  } else if (is_stream(x)) {
    open_files(x, read, chunk)
  } else {
    # Data in memory, all at once.
    left <- memory_rows(x)
    fetch <- function() {
      rows <- left
      left <<- NULL
      rows
    }
    list(fetch = fetch, close = nothing, label = nothing, anew = \() TRUE)
  }
}

# What a function or a file gave that is a source; it is ours to close.
open_inner <- function(x, chunk) {
  source <- open_source(x, NULL, chunk)
  if (inherits(x, "DBIResult")) source$close <- \() DBI::dbClearResult(x)
  source
}

# A function that yields chunks, or a source; `word`: what it is called.
open_function <- function(x, chunk, word = "function") {
  inner <- NULL
  calls <- 0
  last <- NULL
  same <- 1
  fetch <- function() {
    if (!is.null(inner)) {
      return(inner$fetch())
    }
    calls <<- calls + 1
    value <- x()
    if (is_stream(value)) {
      inner <<- open_inner(value, chunk)
      return(inner$fetch())
    }
    # A function that gives its data whole, again and again, has no end.
    again <- word == "function" && NROW(value) >= 100L && identical(value, last)
    same <<- if (again) same + 1 else 1
    last <<- value
    if (same > 3) {
      stop_input("a function must return the next rows each time it is ",
                 "called, and NULL at the end; this one returns the same ",
                 rows_of(NROW(value)), " again and again")
    }
    value
  }
  list(
    fetch = fetch, close = \() if (!is.null(inner)) inner$close(),
    label = \() if (is.null(inner)) paste0(word, ", chunk ", max(1, calls)) else
      inner$label(),
    anew = \() !is.null(inner)
  )
}

# One file after the other.
open_files <- function(paths, read, chunk) {
  check_files(paths)
  take(read, maybe(is_a("function", "a function of a file name")), "read")
  at <- 0L
  inner <- NULL
  close <- function() {
    if (!is.null(inner)) inner$close()
    inner <<- NULL
  }
  fetch <- function() {
    repeat {
      rows <- if (!is.null(inner)) inner$fetch()
      if (!is.null(rows) || at == length(paths)) {
        return(rows)
      }
      close()
      at <<- at + 1L
      value <- read_file(paths[at], read)
      if (is.null(value)) {
        stop_input("'read' must return a data frame, a matrix or a source of ",
                   "them, not NULL")
      }
      inner <<- open_inner(value, chunk)
    }
  }
  list(fetch = fetch, close = close, anew = \() TRUE,
       label = \() c(paste0("file '", paths[max(at, 1L)], "'"),
                     if (!is.null(inner)) inner$label()))
}

# The readers of files of which nothing else is said.
read_file <- function(path, read) {
  if (!is.null(read)) {
    read(path)
  } else if (grepl("[.]csv([.](gz|bz2|xz))?$", path, ignore.case = TRUE)) {
    utils::read.csv(path)
  } else if (grepl("[.]rds$", path, ignore.case = TRUE)) {
    readRDS(path)
  } else {
    stop_input("'read' must be given for files other than .csv and .rds, a ",
               "function of a file name, as in read = read.delim")
  }
}

check_files <- function(paths, name = "x") {
  if (length(paths) == 0L || anyNA(paths)) {
    stop_input("'", name, "' must have names of files, not ", describe(paths))
  }
  missing <- paths[!grepl("^[[:alnum:]]+://", paths) & !file.exists(paths)]
  if (length(missing)) {
    stop_input("'", name, "' must name files that exist; missing: ",
               shorten(paste0("'", missing, "'")))
  }
}

memory_rows <- function(x) {
  if (is_nominal(x)) {
    data.frame(x = x)
  } else if (is.numeric(x) && length(dim(x)) < 2L) {
    matrix(x, ncol = 1L)
  } else {
    x
  }
}

# What a source yielded as a plain data frame or a matrix.
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

# Integers of 64 bits, as databases yield them, are doubles in a class that
# hides what their bits mean from all but bit64.
plain_frame <- function(x) {
  x <- as.data.frame(x)
  wide <- vapply(x, inherits, NA, "integer64")
  if (any(wide)) {
    if (!requireNamespace("bit64", quietly = TRUE)) {
      stop_input("the column '", names(x)[wide][1L], "' has integers of 64 ",
                 "bits, which take the package bit64; cast it to doubles")
    }
    x[wide] <- lapply(x[wide], as.double)
  }
  x
}

# What an expression gives; an error in it is one of the source, after so many
# rows of it. `part` is the name of the part, NULL for the only one.
from_source <- function(value, stream, rows, part = NULL) {
  tryCatch(value, error = \(e) {
    stop(source_error(e, c(part, stream$label()), rows, part))
  })
}

source_error <- function(parent, place, rows, part = NULL) {
  errorCondition(
    paste0(paste(place, collapse = ", "), ", after ", rows_of(rows), ": ",
           conditionMessage(parent)),
    class = unique(c("kernmean_error_source",
                     grep("^kernmean_error", class(parent), value = TRUE),
                     "kernmean_error")),
    call = user_call(), parent = parent, rows = rows, part = part
  )
}

# --- A pilot -----------------------------------------------------------------

# A uniform sample of `size` rows of a stream, all if there are no more, in
# their order. In one pass: each row draws a key, and the rows with the `size`
# smallest keys are kept. Those that were among them once are thrown out
# whenever they are as many again.
pilot_rows <- function(x, size, read = NULL, chunk = 50000L) {
  stream <- open_stream(x, read, chunk)
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
      kept <- c(kept, list(frame[low, , drop = FALSE]))
      keys <- c(keys, drawn[low])
    }
    if (length(keys) > size) {
      limit <- sort(keys, partial = size)[size]
      if (length(keys) > 2 * size) {
        kept <- list(do.call(rbind, kept)[keys <= limit, , drop = FALSE])
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
    pilot <- pilot[sort(order(keys)[seq_len(size)]), , drop = FALSE]
  }
  row.names(pilot) <- NULL
  pilot
}

# A chunk with the columns of the first one, whose kinds are `first`, which must
# be there and of their kinds.
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
  missing <- setdiff(names(first), colnames(frame))
  if (length(missing)) {
    stop_input("the column", if (length(missing) > 1L) "s", " ",
               shorten(paste0("'", missing, "'")), " must be among its columns")
  }
  frame <- frame[, names(first), drop = FALSE]
  now <- frame_kinds(frame)
  bad <- which(now != first)
  if (length(bad)) {
    stop_input("the column '", names(bad)[1L], "' must be ", first[bad[1L]],
               " as in the chunks before, not ", now[bad[1L]])
  }
  frame
}

# What the columns hold, by their names; NA for missing values alone, which say
# nothing.
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

# --- One source --------------------------------------------------------------

# How the rows of a source get into a sketch: chunk by chunk, with what is done
# kept in a file, or NULL. A state is list(sketch; rows: of the source, that are
# in it; first: the first rows of the source; finished). `name`: of the part,
# NULL for the only one. Returns the state after the last row, without the
# landmarks.
run_source <- function(empty, x, read, chunk, file = NULL, name = NULL,
                       progress = FALSE) {
  state <- read_state(file)
  if (is.null(state)) {
    state <- list(sketch = empty, rows = 0, first = NULL, finished = FALSE)
  }
  if (state$finished) {
    return(state)
  }
  state$sketch["landmarks"] <- list(empty$landmarks)
  check_source(x, FALSE)
  # The very source that was stopped goes on where it was.
  before <- if (!is.null(file)) stopped[[file]]
  goes_on <- identical(before$x, x) && identical(before$rows, state$rows)
  stream <- if (goes_on) before$stream else open_stream(x, read, chunk)
  if (goes_on) stream$back_to(state$rows)
  meter <- rows_meter(progress, name, state$rows)
  saved <- list(rows = state$rows, at = now(), took = 0)
  on.exit({
    meter(state$rows, TRUE)
    stream$close()
    if (!is.null(file)) {
      stopped[[file]] <- if (!state$finished && !stream$anew()) {
        list(x = x, stream = stream, rows = state$rows)
      }
      if (state$rows > saved$rows || state$finished) {
        save_whole(bare_state(state), file)
      }
    }
  })
  repeat {
    rows <- from_source(next_rows(stream, state, goes_on), stream, state$rows,
                        name)
    if (is.null(rows)) {
      break
    }
    goes_on <- FALSE
    first <- if (is.null(state$first)) first_rows(rows) else state$first
    state <- list(
      sketch = from_source(add_rows(state$sketch, rows), stream, state$rows,
                           name),
      rows = state$rows + nrow(rows), first = first, finished = FALSE
    )
    meter(state$rows)
    # Every few seconds, but for at most a twentieth of the time.
    if (!is.null(file) && now() - saved$at > max(5, 20 * saved$took)) {
      start <- now()
      save_whole(bare_state(state), file)
      saved <- list(rows = state$rows, at = now(), took = now() - start)
    }
  }
  # One number each: what they lose is one rounding, and their compensation need
  # not travel.
  state$sketch$sums <- lapply(state$sketch$sums,
                              \(record) new_record(total_sums(record)))
  state$finished <- TRUE
  bare_state(state)
}

# Sources that were stopped in the middle and do not begin anew, by the files of
# their states: list(x, stream, rows: in the state).
stopped <- new.env(parent = emptyenv())

now <- function() proc.time()[["elapsed"]]

# The next rows that are not in the state: of a source that is begun anew those
# that are done are passed over. It is known again by its first rows.
next_rows <- function(stream, state, goes_on) {
  repeat {
    before <- stream$position()
    rows <- stream$next_chunk()
    if (is.null(rows) && before < state$rows) {
      stop_input("a source that is begun anew must yield the same rows again, ",
                 format_count(state$rows), " at least")
    }
    if (is.null(rows)) {
      return(NULL)
    }
    if (state$rows > 0 && (goes_on || before == 0)) {
      most <- min(nrow(rows), nrow(state$first))
      known <- identical(first_rows(rows, most), first_rows(state$first, most))
      if (goes_on && known) {
        stop_input("a source that was stopped must go on where it was; this ",
                   "one yields its first rows again: make a new one, or give ",
                   "'checkpoint' a new folder")
      }
      if (!goes_on && !known) {
        stop_input("a source that is begun anew must yield the same rows in ",
                   "the same order; its first rows are not those of the call ",
                   "that 'checkpoint' belongs to")
      }
    }
    over <- state$rows - before
    if (over < nrow(rows)) {
      return(if (over <= 0) rows else
        rows[seq.int(over + 1, nrow(rows)), , drop = FALSE])
    }
  }
}

first_rows <- function(rows, most = 5L) {
  rows <- rows[seq_len(min(most, nrow(rows))), , drop = FALSE]
  rownames(rows) <- NULL
  rows
}

# Says rows so far and rows a second, in one line.
rows_meter <- function(progress, name, done) {
  start <- now()
  shown <- -Inf
  function(rows, end = FALSE) {
    if (progress && (end || now() - shown > 0.2)) {
      rate <- signif((rows - done) / max(now() - start, 1e-3), 2)
      cat("\r", if (!is.null(name)) paste0(name, ": "), format_count(rows),
          " rows, ", format_count(rate), " rows/s    ", if (end) "\n",
          sep = "", file = stderr())
      shown <<- now()
    }
  }
}

# --- Many parts --------------------------------------------------------------

# The sketch of a list of sources, added up in their order: here, or under the
# plan of the package future.
sketch_parts <- function(empty, parts, options) {
  folder <- open_folder(options$checkpoint, empty, parts, options$read)
  file <- if (!is.null(folder)) file.path(folder, "sketch.rds")
  sketch <- read_state(file)
  if (!is.null(sketch)) {
    sketch["landmarks"] <- list(empty$landmarks)
    return(sketch)
  }
  check_parts(parts)
  names <- names2(parts)
  names <- ifelse(nzchar(names) & !is.na(names), paste0("part '", names, "'"),
                  paste("part", seq_along(parts)))
  # Rows fall into bins by random numbers; those of a part are its own wherever
  # it is worked on.
  seeds <- list(NULL)
  if (!is.null(empty$bin)) {
    seeds <- as.list(sample.int(.Machine$integer.max, length(parts)))
  }
  files <- lapply(seq_along(parts), part_file, folder = folder)
  tasks <- unname(Map(list, x = parts, name = names, file = files,
                      seed = seeds))
  states <- lapply(files, read_state)
  left <- which(!vapply(states, \(state) isTRUE(state$finished), NA))
  answers <- share_out(tasks[left], empty, options, folder)
  failed <- Filter(\(answer) inherits(answer, "error"), answers)
  if (length(failed)) stop_parts(failed, folder)
  states[left] <- answers
  sketch <- empty
  for (state in states) {
    state$sketch["landmarks"] <- list(empty$landmarks)
    sketch <- merge_sketches(sketch, state$sketch)
  }
  sketch$parts <- sketch$parts + length(parts)
  if (!is.null(file)) {
    save_whole(bare_state(list(sketch = sketch))$sketch, file)
  }
  sketch
}

# What can be said before any work starts.
check_parts <- function(parts) {
  if (!length(parts)) {
    stop_input("'x' must be a list of at least one part")
  }
  plan <- if (has_futures()) future::plan()
  here <- is.null(plan) || inherits(plan, "sequential")
  for (k in seq_along(parts)) {
    label <- paste0("x[[", k, "]]")
    if (!here && inherits(parts[[k]], "DBIResult")) {
      stop_input("'", label, "' is the result of a query, which cannot be sent",
                 " to another process; give a function that makes it, as in ",
                 "\\() {con <- dbConnect(...); dbSendQuery(con, sql)}")
    }
    # Other machines have other files.
    if (is.character(parts[[k]]) &&
          (here || inherits(plan, c("multisession", "multicore")))) {
      check_files(parts[[k]], label)
    }
  }
}

has_futures <- function() requireNamespace("future.apply", quietly = TRUE)

# The state of each task, or its error. A part is a future, so that one that is
# lost has a name.
share_out <- function(tasks, empty, options, folder) {
  work <- \(share, away, ...) {
    share(tasks, work_part, empty, options$read, options$chunk,
          options$progress && !away, away, ...)
  }
  answers <- if (length(tasks) && has_futures()) {
    tryCatch(
      work(future.apply::future_lapply,
           !inherits(future::plan(), "sequential"), future.chunk.size = 1,
           future.label = "part-%d", future.seed = NULL,
           future.packages = "kernmean"),
      error = \(e) list(lost_part(e, tasks))
    )
  } else {
    work(lapply, FALSE)
  }
  for (k in seq_along(answers)) {
    # Where the workers do not see the folder.
    if (!is.null(folder) && !inherits(answers[[k]], "error") &&
          !file.exists(tasks[[k]]$file)) {
      save_whole(answers[[k]], tasks[[k]]$file)
    }
  }
  answers
}

# Runs where the plan wants it. A process besides others (`away`) has one
# thread, unless it was started with a number of them.
work_part <- function(task, empty, read, chunk, progress, away = FALSE) {
  # Is the folder there, seen from this process?
  seen <- !is.null(task$file) &&
    file.exists(file.path(dirname(task$file), "call.rds"))
  run <- \() run_source(empty, task$x, read, chunk, if (seen) task$file,
                        task$name, progress)
  single <- away && !nzchar(Sys.getenv("OMP_NUM_THREADS"))
  tryCatch(with_seed(task$seed, if (single) on_one_thread(run()) else run()),
           error = \(e) {
    if (!inherits(e, "kernmean_error_source")) {
      e <- source_error(e, task$name, 0, task$name)
    }
    # What else it holds may not travel.
    e$parent <- errorCondition(conditionMessage(e$parent),
                               class = utils::head(class(e$parent), -2L))
    e
  })
}

# The value of an expression after set.seed(); the user's generator is left as
# it was.
with_seed <- function(seed, value) {
  if (is.null(seed)) {
    return(value)
  }
  before <- globalenv()$.Random.seed
  on.exit(if (is.null(before)) {
    rm(".Random.seed", envir = globalenv())
  } else {
    assign(".Random.seed", before, globalenv())
  })
  set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")
  value
}

# The error of future.apply itself; its message says more than is read. A plan of
# processes on this machine that has lost one starts them again.
lost_part <- function(e, tasks) {
  if (inherits(future::plan(), "multisession")) {
    plans <- future::plan("list")
    future::plan(future::sequential)
    future::plan(plans)
  }
  words <- sub(" (Post-mortem|The total size).*", "", conditionMessage(e))
  number <- sub(".*part-([0-9]+).*", "\\1", paste(e$future$label, words))
  if (grepl("^[0-9]+$", number)) {
    name <- tasks[[as.integer(number)]]$name
    words <- paste0(name, ", lost with the process that worked on it: ", words)
  } else {
    name <- NULL
    words <- paste0("the parts could not be worked on: ", words)
  }
  errorCondition(words, class = c("kernmean_error_source", "kernmean_error"),
                 parent = e, part = name)
}

# One error for all parts that failed.
stop_parts <- function(failed, folder) {
  e <- failed[[1L]]
  names <- unlist(lapply(failed, `[[`, "part"))
  e$message <- paste0(
    conditionMessage(e),
    if (length(failed) > 1L) paste0("; failed, too: ", shorten(names[-1L])),
    if (!is.null(folder)) {
      paste0("; parts that are finished are kept in '", folder,
             "', and the same call goes on from them")
    }
  )
  e$part <- names
  e["call"] <- list(user_call())
  stop(e)
}

# --- The folder --------------------------------------------------------------

# The folder of this call, made or found again; NULL without one. In it:
# call.rds, what the call is; part-1.rds, ...: the state of each part;
# sketch.rds: the result of many parts.
open_folder <- function(checkpoint, empty, parts, read) {
  if (is.null(checkpoint)) {
    return(NULL)
  }
  take(checkpoint, new_kind("the name of a folder or NULL", \(x) {
    is.character(x) && length(x) == 1L && !is.na(x) && nzchar(x)
  }), "checkpoint")
  call <- list(landmarks = empty$landmarks,
               options = unclass(empty)[names(empty) != "landmarks"],
               "'read'" = trace_of(read), sources = lapply(parts, \(x) {
                 list(trace_of(x), if (is.character(x)) {
                   list(file.size(x), as.numeric(file.mtime(x)))
                 })
               }))
  path <- file.path(checkpoint, "call.rds")
  kept <- read_state(path)
  if (is.null(kept)) {
    made <- dir.exists(checkpoint) ||
      dir.create(checkpoint, FALSE, recursive = TRUE)
    if (!made || length(dir(checkpoint, all.files = TRUE, no.. = TRUE))) {
      stop_input("'checkpoint' must be a folder that is empty, can be made or ",
                 "is of this call, not '", checkpoint, "'")
    }
    save_whole(call, path)
    return(normalizePath(checkpoint))
  }
  same <- mapply(identical, kept, call)
  same[["landmarks"]] <- on_same_landmarks(kept, call)
  if (!all(same)) {
    stop_input("'checkpoint' must be a folder of this call; '", checkpoint,
               "' belongs to one with other ",
               paste(names(call)[!same], collapse = " and other "))
  }
  normalizePath(checkpoint)
}

# What tells a source from another that might stand in its place: functions by
# their code and the values that it uses, files by name, size and time, long data
# by a sum.
trace_of <- function(x, depth = 4L) {
  if (is.function(x) && !is.primitive(x)) {
    code <- all.names(body(x))
    code <- code[!code %in% c("[", "[[", "$")]
    # What it writes itself by <<- says how far it is.
    written <- code[which(code == "<<-") + 1L]
    values <- lapply(setdiff(code, c(written, names(formals(x)))), \(name) {
      tryCatch(get0(name, environment(x)), error = \(e) NULL)
    })
    values <- Filter(\(v) {
      !is.function(v) || !is.primitive(v) && !isNamespace(environment(v))
    }, values)
    list(deparse(x), if (depth > 0L) lapply(values, trace_of, depth - 1L))
  } else if (inherits(x, "DBIResult")) {
    DBI::dbGetStatement(x)
  } else if (is.list(x) && depth > 0L) {
    list(class(x), lapply(unclass(x), trace_of, depth - 1L))
  } else if (!is.atomic(x) || inherits(x, "connection")) {
    class(x)
  } else if (length(x) <= 100L) {
    x
  } else {
    copy <- tempfile()
    on.exit(unlink(copy))
    saveRDS(x, copy, version = 2L, compress = FALSE)
    unname(tools::md5sum(copy))
  }
}

part_file <- function(k, folder) {
  if (!is.null(folder)) file.path(folder, paste0("part-", k, ".rds"))
}

# The landmarks need not be kept, nor travel, with every state.
bare_state <- function(state) {
  state$sketch["landmarks"] <- list(NULL)
  state
}

# Of a file that is there it is the whole: what was written is read again, as a
# full disk may show at the end alone, when the file is closed, and is no error.
save_whole <- function(x, path) {
  new <- tempfile("new-", dirname(path))
  on.exit(unlink(new))
  saved <- tryCatch({
    saveRDS(x, new, compress = FALSE)
    readRDS(new)
    file.rename(new, path)
  }, error = \(e) FALSE, warning = \(w) FALSE)
  if (!saved) {
    stop_kernmean("source", "cannot write '", path, "'; is the disk full?")
  }
}

# NULL where there is no file.
read_state <- function(file) {
  if (is.null(file) || !file.exists(file)) {
    return(NULL)
  }
  state <- tryCatch(suppressWarnings(readRDS(file)), error = \(e) NULL)
  if (!is.list(state)) {
    stop_kernmean("source", "cannot read the checkpoint '", file,
                  "', which is damaged; remove it, or take an empty folder")
  }
  state
}

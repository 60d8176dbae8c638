# How the rows of a source, or of a list of parts, get into a sketch: chunk by
# chunk, here or under the plan of the package future, with what is done kept in
# a folder. A state is list(sketch; rows: of the source, that are in it; first:
# the first rows of the source; finished).

# The sketch of a stream or of data in memory, from `empty`, a sketch without
# rows. `checkpoint`: a folder or NULL.
sketch_stream <- function(empty, x, read = NULL, chunk = 50000L,
                          progress = FALSE, checkpoint = NULL) {
  folder <- open_folder(checkpoint, empty, list(x), read)
  sketch <- run_source(empty, x, read, chunk, part_file(folder, 1L),
                       progress = progress)$sketch
  sketch$parts <- sketch$parts + 1
  sketch
}

# The sketch of a list of sources, added up in their order.
sketch_parts <- function(empty, parts, read = NULL, chunk = 50000L,
                         progress = FALSE, checkpoint = NULL) {
  folder <- open_folder(checkpoint, empty, parts, read)
  final <- read_state(if (!is.null(folder)) file.path(folder, "sketch.rds"))
  if (!is.null(final)) {
    return(unpack_sketch(final, empty))
  }
  check_parts(parts)
  names <- part_names(parts)
  tasks <- Map(\(x, name, file, seed) {
    list(x = x, name = name, file = file, seed = seed)
  }, unname(parts), names, part_files(folder, length(parts)),
  part_seeds(empty, length(parts)))
  answers <- vector("list", length(parts))
  left <- which(!vapply(tasks, \(task) is_finished(task$file), NA))
  answers[left] <- share_out(tasks[left], lean_sketch(empty), read, chunk,
                             progress, folder)
  report_failed(answers, names, folder)
  sketch <- empty
  for (k in seq_along(tasks)) {
    part <- answers[[k]]$sketch
    if (is.null(part)) part <- read_state(tasks[[k]]$file)$sketch
    sketch <- merge_sketches(sketch, unpack_sketch(part, empty))
  }
  sketch$parts <- sketch$parts + length(parts)
  if (!is.null(folder)) {
    save_whole(pack_sketch(sketch), file.path(folder, "sketch.rds"))
  }
  sketch
}

# "part 3", or "part 'north'" where the list has names
part_names <- function(parts) {
  names <- names(parts)
  if (is.null(names)) names <- character(length(parts))
  ifelse(nzchar(names) & !is.na(names), paste0("part '", names, "'"),
         paste("part", seq_along(parts)))
}

# What can be said before any work starts.
check_parts <- function(parts) {
  if (!length(parts)) {
    stop_input("'x' must be a list of at least one part")
  }
  away <- !in_process()
  for (k in seq_along(parts)) {
    label <- paste0("x[[", k, "]]")
    if (away && inherits(parts[[k]], "DBIResult")) {
      stop_input("'", label, "' is the result of a query, which cannot be sent",
                 " to another process; give a function that makes it, as in ",
                 "\\() {con <- dbConnect(...); dbSendQuery(con, sql)}")
    }
    if (is.character(parts[[k]]) && sees_files()) {
      check_files(parts[[k]], label)
    }
  }
}

has_futures <- function() requireNamespace("future.apply", quietly = TRUE)

in_process <- function() {
  !has_futures() || inherits(future::plan(), "sequential")
}

# Do the processes of the plan see the files of this one?
sees_files <- function() {
  in_process() || inherits(future::plan(), c("multisession", "multicore"))
}

# --- One source -----------------------------------------------------------

# The state after the last row. `file`: where states are kept, or NULL; `name`:
# of the part, NULL for the only one.
run_source <- function(empty, x, read, chunk, file = NULL, name = NULL,
                       progress = FALSE) {
  state <- resume_state(file, empty)
  if (state$finished) {
    return(state)
  }
  check_source(x, FALSE)
  stream <- stopped_stream(file, x, state)
  if (is.null(stream)) stream <- open_stream(x, read, chunk)
  meter <- rows_meter(progress, name, state$rows)
  saved <- list(rows = state$rows, at = now(), took = 0)
  on.exit({
    meter$close()
    stream$close()
    if (!is.null(file)) {
      keep_stopped(file, x, stream, state)
      if (state$rows > saved$rows || state$finished) {
        save_whole(pack_state(state), file)
      }
    }
  })
  take <- rows_to_do(stream, state)
  repeat {
    rows <- from_source(take(), stream, state$rows, name)
    if (is.null(rows)) {
      break
    }
    state <- from_source(grow_state(state, rows), stream, state$rows, name)
    meter$at(state$rows)
    if (!is.null(file) && save_is_due(saved)) {
      start <- now()
      save_whole(pack_state(state), file)
      saved <- list(rows = state$rows, at = now(), took = now() - start)
    }
  }
  state$sketch <- settle(state$sketch)
  state$finished <- TRUE
  state
}

now <- function() proc.time()[["elapsed"]]

# Every few seconds, but for at most a twentieth of the time.
save_is_due <- function(saved) {
  now() - saved$at > max(seconds_between_saves, 20 * saved$took)
}

seconds_between_saves <- 5

grow_state <- function(state, rows) {
  list(sketch = add_rows(state$sketch, rows), rows = state$rows + nrow(rows),
       first = if (is.null(state$first)) first_rows(rows) else state$first,
       finished = FALSE)
}

# Rows by which a source is known again.
first_rows <- function(rows, most = 5L) {
  rows <- rows[seq_len(min(most, nrow(rows))), , drop = FALSE]
  rownames(rows) <- NULL
  rows
}

is_first <- function(rows, first) {
  most <- min(nrow(rows), nrow(first))
  identical(first_rows(rows, most), first_rows(first, most))
}

# Sources that were stopped in the middle and do not begin anew, by the files of
# their states: list(x, stream, rows: in the state).
stopped <- new.env(parent = emptyenv())

keep_stopped <- function(file, x, stream, state) {
  if (!state$finished && !stream$anew()) {
    assign(file, list(x = x, stream = stream, rows = state$rows),
           envir = stopped)
  } else if (!is.null(stopped[[file]])) {
    rm(list = file, envir = stopped)
  }
}

# Where the very source that was stopped goes on, or NULL.
stopped_stream <- function(file, x, state) {
  before <- if (!is.null(file)) stopped[[file]]
  if (identical(before$x, x) && identical(before$rows, state$rows)) {
    before$stream$back_to(state$rows)
    before$stream
  }
}

# The function that takes the next rows that are not in the state: of a source
# that is begun anew those that are done are passed over.
rows_to_do <- function(stream, state) {
  done <- state$rows
  begun <- FALSE
  function() {
    repeat {
      before <- stream$position()
      rows <- stream$next_chunk()
      if (!begun && done > 0) check_begun(rows, state$first, before == 0)
      begun <<- TRUE
      if (is.null(rows)) {
        if (before < done) {
          stop_input("a source that is begun anew must yield the same rows ",
                     "again, ", format_count(done), " at least")
        }
        return(NULL)
      }
      over <- done - before
      if (over <= 0) {
        return(rows)
      }
      if (over < nrow(rows)) {
        return(rows[seq.int(over + 1, nrow(rows)), , drop = FALSE])
      }
    }
  }
}

check_begun <- function(rows, first, anew) {
  if (is.null(rows)) {
    return(invisible())
  }
  if (anew && !is_first(rows, first)) {
    stop_input("a source that is begun anew must yield the same rows in the ",
               "same order; its first rows are not those of the call that ",
               "'checkpoint' belongs to")
  }
  if (!anew && is_first(rows, first)) {
    stop_input("a source that was stopped must go on where it was; this one ",
               "yields its first rows again: make a new one, or give ",
               "'checkpoint' a new folder")
  }
}

# Rows so far and rows a second, in one line.
rows_meter <- function(progress, name, done) {
  if (!progress) {
    return(list(at = \(rows) NULL, close = \() NULL))
  }
  start <- now()
  shown <- -Inf
  latest <- done
  told <- -1
  show <- function() {
    rate <- (latest - done) / max(now() - start, 1e-3)
    cat("\r", if (!is.null(name)) paste0(name, ": "), format_count(latest),
        " rows, ", format_count(signif(rate, 2)), " rows/s    ",
        sep = "", file = stderr())
    shown <<- now()
    told <<- latest
  }
  list(at = \(rows) {
    latest <<- rows
    if (now() - shown > 0.2) show()
  }, close = \() {
    if (told < latest) show()
    cat("\n", file = stderr())
  })
}

# --- Many parts -----------------------------------------------------------

# What work_part() gives of each task, under the plan that holds. A part is a
# future, so that one that is lost has a name.
share_out <- function(tasks, empty, read, chunk, progress, folder) {
  answers <- if (length(tasks) && has_futures()) {
    renew_plan()
    away <- !in_process()
    tryCatch(
      future.apply::future_lapply(
        tasks, work_part, empty = empty, read = read, chunk = chunk,
        progress = progress && !away, away = away, future.chunk.size = 1,
        future.label = "part-%d", future.seed = NULL,
        future.packages = "kernmean"
      ),
      error = \(e) stop_lost(e, tasks, folder)
    )
  } else {
    lapply(tasks, work_part, empty, read, chunk, progress)
  }
  for (k in seq_along(tasks)) {
    # Where the workers do not see the folder.
    state <- answers[[k]]$state
    if (!is.null(state) && !is.null(folder)) {
      save_whole(state, tasks[[k]]$file)
    }
  }
  lapply(answers, \(answer) {
    list(sketch = answer$state$sketch, failed = answer$failed)
  })
}

# Runs where the plan wants it: list(state: packed; NULL if its file has it), or
# list(failed: an error). A process besides others (`away`) has one thread,
# unless it was started with a number of them.
work_part <- function(task, empty, read, chunk, progress, away = FALSE) {
  file <- if (sees_folder(task$file)) task$file
  single <- away && !nzchar(Sys.getenv("OMP_NUM_THREADS"))
  work <- if (single) on_one_thread else identity
  tryCatch({
    state <- with_seed(task$seed, work(run_source(
      empty, task$x, read, chunk, file, task$name, progress
    )))
    list(state = if (is.null(file)) pack_state(state))
  }, error = \(e) {
    if (!inherits(e, "kernmean_error_source")) {
      e <- source_error(e, task$name, 0, task$name)
    }
    # What else it holds may not travel.
    e$parent <- errorCondition(conditionMessage(e$parent),
                               class = utils::head(class(e$parent), -2L))
    list(failed = e)
  })
}

# Rows fall into bins by random numbers; those of a part are its own wherever it
# is worked on.
part_seeds <- function(empty, count) {
  if (is.null(empty$bin)) {
    return(list(NULL))
  }
  as.list(sample.int(.Machine$integer.max, count))
}

# The value of an expression after set.seed(); the user's generator is left as
# it was.
with_seed <- function(seed, value) {
  if (is.null(seed)) {
    return(value)
  }
  home <- globalenv()
  before <- home$.Random.seed
  on.exit(if (is.null(before)) {
    rm(".Random.seed", envir = home)
  } else {
    assign(".Random.seed", before, home)
  })
  set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")
  value
}

# The error of future.apply itself; its message says more than is read.
stop_lost <- function(e, tasks, folder) {
  words <- sub(" (Post-mortem|The total size).*", "", conditionMessage(e))
  found <- paste(e$future$label, words)
  number <- regmatches(found, regexpr("part-[0-9]+", found))
  if (!length(number)) {
    stop_parts(paste0("the parts could not be worked on: ", words), NULL,
               folder, e)
  }
  lost_process$known <- TRUE
  name <- tasks[[as.integer(sub("part-", "", number))]]$name
  stop_parts(paste0(name, ", lost with the process that worked on it: ", words),
             name, folder, e)
}

lost_process <- new.env(parent = emptyenv())

# A plan of processes on this machine that has lost one starts them again.
renew_plan <- function() {
  known <- !is.null(lost_process$known)
  if (known && inherits(future::plan(), "multisession")) {
    plans <- future::plan("list")
    future::plan(future::sequential)
    future::plan(plans)
  }
  lost_process$known <- NULL
}

# One error for all parts that failed.
report_failed <- function(answers, names, folder) {
  failed <- which(!vapply(answers, \(answer) is.null(answer$failed), NA))
  if (length(failed)) {
    first <- answers[[failed[1L]]]$failed
    stop_parts(
      paste0(conditionMessage(first), if (length(failed) > 1L) {
        paste0("; failed, too: ", shorten(names[failed[-1L]]))
      }),
      names[failed], folder, first$parent, first$rows, class(first)
    )
  }
}

stop_parts <- function(message, part, folder, parent, rows = NULL,
                       class = c("kernmean_error_source", "kernmean_error")) {
  if (!is.null(folder)) {
    message <- paste0(message, "; parts that are finished are kept in '",
                      folder, "', and the same call goes on from them")
  }
  stop(errorCondition(
    message, class = setdiff(class, c("error", "condition")),
    call = user_call(), parent = parent, part = part, rows = rows
  ))
}

# --- Travel ---------------------------------------------------------------

# What a worker needs of an empty sketch: the features of the landmarks only
# where sums of them are asked for.
lean_sketch <- function(sketch) {
  if (!sketch$fourth) {
    sketch$landmarks <- lapply(sketch$landmarks, \(landmarks) {
      landmarks["root"] <- list(NULL)
      landmarks
    })
  }
  sketch
}

# The sums of a source as one number each: what they lose is one rounding, and
# their compensation need not travel.
settle <- function(sketch) {
  sketch$sums <- lapply(sketch$sums, \(record) new_record(total_sums(record)))
  sketch
}

# A sketch without its landmarks, of symmetric matrices one half.
pack_sketch <- function(sketch) {
  sketch["landmarks"] <- list(NULL)
  sketch$sums <- lapply(sketch$sums, lapply, on_symmetric, half_matrix)
  sketch
}

unpack_sketch <- function(packed, empty) {
  packed["landmarks"] <- list(empty$landmarks)
  packed$sums <- lapply(packed$sums, lapply, on_symmetric, full_matrix)
  packed
}

# There may be none: of the compensation.
on_symmetric <- function(sums, change) {
  halves <- intersect(names(sums), c("second", "second_y"))
  if (length(halves)) sums[halves] <- lapply(sums[halves], change)
  sums
}

half_matrix <- function(x) x[upper.tri(x, diag = TRUE)]

full_matrix <- function(half) {
  m <- (sqrt(8 * length(half) + 1) - 1) / 2
  x <- matrix(0, m, m)
  upper <- upper.tri(x, diag = TRUE)
  x[upper] <- half
  x <- t(x)
  x[upper] <- half
  x
}

# --- The folder -----------------------------------------------------------

# The folder of this call, made or found again; NULL without one. In it:
# call.rds, what the call is; part-1.rds, ...: the state of each part;
# sketch.rds: the result of many parts.
open_folder <- function(checkpoint, empty, parts, read) {
  if (is.null(checkpoint)) {
    return(NULL)
  }
  if (!is.character(checkpoint) || length(checkpoint) != 1L ||
        is.na(checkpoint) || !nzchar(checkpoint)) {
    stop_input("'checkpoint' must be the name of a folder or NULL, not ",
               describe(checkpoint))
  }
  call <- list(sketch = empty, read = describe_code(read),
               parts = lapply(parts, describe_source))
  path <- file.path(checkpoint, "call.rds")
  if (!file.exists(path)) {
    made <- dir.exists(checkpoint) ||
      dir.create(checkpoint, FALSE, recursive = TRUE)
    if (!made || length(dir(checkpoint, all.files = TRUE, no.. = TRUE))) {
      stop_input("'checkpoint' must be a folder that is empty, can be made or ",
                 "is of this call, not '", checkpoint, "'")
    }
    save_whole(call, path)
  } else {
    check_same_call(read_state(path), call, checkpoint)
  }
  normalizePath(checkpoint)
}

check_same_call <- function(kept, call, checkpoint) {
  sketch <- call$sketch
  options <- setdiff(names(sketch), "landmarks")
  known <- kept$sketch$landmarks
  differs <- c(
    landmarks = length(known) != length(sketch$landmarks) ||
      !all(mapply(same_landmarks, known, sketch$landmarks)),
    options = !identical(unclass(kept$sketch)[options],
                         unclass(sketch)[options]),
    "'read'" = !identical(kept$read, call$read),
    sources = !identical(kept$parts, call$parts)
  )
  if (any(differs)) {
    stop_input("'checkpoint' must be a folder of this call; '", checkpoint,
               "' belongs to one with other ",
               paste(names(differs)[differs], collapse = " and other "))
  }
}

# What tells a source from another that might stand in its place.
describe_source <- function(x) {
  if (is.function(x)) {
    describe_code(x)
  } else if (inherits(x, "DBIResult")) {
    list("query", DBI::dbGetStatement(x))
  } else if (is_stream(x)) {
    list("files", as.vector(x), file.size(x), as.numeric(file.mtime(x)))
  } else {
    describe_value(x)
  }
}

# A function by its code and by what that means where it was made: values that
# it does not write itself, as `<<-` does to those that say how far it is.
describe_code <- function(x, depth = 4L) {
  if (!is.function(x) || is.primitive(x)) {
    return(x)
  }
  code <- body(x)
  names <- setdiff(all.names(code, unique = TRUE),
                   c(written_names(code), names(formals(x))))
  values <- list()
  home <- environment(x)
  while (depth > 0L && !isNamespace(home) && !identical(home, emptyenv())) {
    for (name in intersect(names, ls(home, all.names = TRUE))) {
      values[[name]] <- describe_value(
        tryCatch(get(name, home), error = \(e) NULL), depth - 1L
      )
    }
    if (identical(home, globalenv())) break
    names <- setdiff(names, ls(home, all.names = TRUE))
    home <- parent.env(home)
  }
  list("function", deparse(x, control = "keepNA"), values)
}

# The names that code assigns to by `<<-`.
written_names <- function(code) {
  if (!is.call(code)) {
    return(NULL)
  }
  c(if (identical(code[[1L]], quote(`<<-`))) all.vars(code[[2L]])[1L],
    unlist(lapply(as.list(code), \(part) {
      if (is.call(part)) written_names(part)
    })))
}

# A value, or what of long ones is the same for equal ones.
describe_value <- function(x, depth = 4L) {
  if (is.function(x)) {
    describe_code(x, depth)
  } else if (is.list(x) && depth > 0L) {
    c(list(class(x)), lapply(x, describe_value, depth - 1L))
  } else if (!is.atomic(x) || inherits(x, "connection")) {
    class(x)
  } else if (length(x) <= 100L) {
    x
  } else {
    codes <- as.double(if (is.numeric(x)) x else match(x, unique(x)))
    gone <- is.na(codes)
    codes[gone] <- 0
    list(dim(x), dimnames(x)[-1L], utils::head(as.vector(x), 5L),
         if (!is.numeric(x)) unique(as.vector(x)), sum(gone),
         sum(codes), sum(codes * sqrt(seq_along(codes))))
  }
}

part_file <- function(folder, k) {
  if (!is.null(folder)) file.path(folder, paste0("part-", k, ".rds"))
}

part_files <- function(folder, count) {
  lapply(seq_len(count), \(k) part_file(folder, k))
}

# Is the folder there, seen from this process?
sees_folder <- function(file) {
  !is.null(file) && file.exists(file.path(dirname(file), "call.rds"))
}

pack_state <- function(state) {
  state$sketch <- pack_sketch(state$sketch)
  state
}

is_finished <- function(file) isTRUE(read_state(file)$finished)

resume_state <- function(file, empty) {
  state <- read_state(file)
  if (is.null(state)) {
    return(list(sketch = empty, rows = 0, first = NULL,
                finished = FALSE))
  }
  state$sketch <- unpack_sketch(state$sketch, empty)
  state
}

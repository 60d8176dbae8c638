# How the rows of a source, or of a list of parts, get into a sketch: chunk by
# chunk, here or under the plan of the package future, with finished work kept
# in a folder.

# --- One source --------------------------------------------------------------

# Work on one source:
#   x      the source
#   file   the file that keeps its state, or NULL
#   name   the name of the part, NULL for the only one
#   seed   a number for set.seed(), or NULL
new_source_task <- function(x, file, name = NULL, seed = NULL) {
  list(x = x, name = name, file = file, seed = seed)
}

# How far the work on a source is:
#   sketch     the sketch of the rows so far
#   rows       their number
#   first      the first rows of the source
#   finished   has the source ended?
#   anew       does the source begin anew by itself? Known when it has ended
new_source_state <- function(sketch, rows = 0, first = NULL) {
  list(sketch = sketch, rows = rows, first = first, finished = FALSE,
       anew = FALSE)
}

# The state of a task after the last row of its source, without the landmarks.
run_source <- function(task, empty, options) {
  file <- task$file
  state <- read_state(file, empty) %||% new_source_state(empty)
  if (state$finished && state$anew) {
    return(state)
  }
  state$sketch["landmarks"] <- list(empty$landmarks)
  stream <- new_row_stream(take(task$x, a_source(FALSE), "x"), options$read,
                           options$chunk)
  meter <- rows_meter(options$progress, task$name, state$rows)
  keep_sometimes <- state_keeper(file)
  on.exit({
    meter(state$rows, TRUE)
    stream$close()
    if (!is.null(file) && (state$rows > 0 || state$finished)) {
      keep_state(state, file)
    }
  })
  repeat {
    following <- from_source(next_state(stream, state), stream, state$rows,
                             task$name)
    if (is.null(following)) {
      break
    }
    state <- following
    meter(state$rows)
    keep_sometimes(state)
  }
  if (state$rows == 0 && !stream$anew()) {
    warn_kernmean(c(task$name, "'x'")[1L], " yielded no rows: a stream is ",
                  "read once, and may have been used up; a function or a ",
                  "query is to be made anew")
  }
  # The compensation is added to the sums, which costs one rounding, so that it
  # need not be stored or sent.
  state$sketch$sums <- lapply(state$sketch$sums,
                              \(sums) new_sums(total_sums(sums)))
  state$finished <- TRUE
  state$anew <- stream$anew()
  bare_state(state)
}

now <- function() proc.time()[["elapsed"]]

# A function that saves a state in a file every few seconds, and spends at most
# a twentieth of the time on it.
state_keeper <- function(file) {
  save_at <- now() + 5
  function(state) {
    if (!is.null(file) && now() > save_at) {
      start <- now()
      keep_state(state, file)
      save_at <<- now() + max(5, 20 * (now() - start))
    }
  }
}

# The state with the next chunk, NULL at the end.
next_state <- function(stream, state) {
  rows <- next_rows(stream, state)
  if (!is.null(rows)) {
    new_source_state(add_rows(state$sketch, rows), state$rows + nrow(rows),
                     state$first %||% first_rows(rows))
  }
}

# The next rows that the state does not contain. If a source begins anew, the
# rows that the state contains are skipped, and the first of them tell whether
# it is the same source. From a finished source only these first rows are read.
next_rows <- function(stream, state) {
  repeat {
    before <- stream$position()
    rows <- tryCatch(stream$next_chunk(), error = \(e) {
      if (!state$finished) stop(e)
      warn_kernmean("a source cannot be compared with what is kept of it: ",
                    conditionMessage(e), kind = "checkpoint")
      NULL
    })
    over <- state$rows - before
    if (is.null(rows)) {
      if (over <= 0 || state$finished) {
        return(NULL)
      }
      stop_input("a source that is begun anew must yield the same rows again, ",
                 format_count(state$rows), " at least")
    }
    if (state$rows > 0 && before == 0) {
      most <- min(nrow(rows), nrow(state$first))
      if (!identical(first_rows(rows, most), first_rows(state$first, most))) {
        stop_input("a source that is begun anew must yield the same rows in ",
                   "the same order again; make a new one, or give ",
                   "'checkpoint' a new folder")
      }
    }
    if (over <= 0) {
      return(rows)
    }
    if (state$finished) {
      return(NULL)
    }
    if (over < nrow(rows)) {
      return(take_rows(rows, seq.int(over + 1, nrow(rows))))
    }
  }
}

# The first rows, without terms and other attributes that data frames carry
# along.
first_rows <- function(rows, most = 5L) {
  rows <- utils::head(rows, most)
  rownames(rows) <- NULL
  kept <- names(attributes(rows)) %in%
    c("names", "class", "row.names", "dim", "dimnames")
  attributes(rows) <- attributes(rows)[kept]
  rows
}

# A function that shows the number of rows so far and rows a second, in one
# line.
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

# The sketch of a list of sources, added up in their order.
sketch_parts <- function(empty, parts, options) {
  plan <- workers_plan()
  check_parts(parts, plan)
  labels <- names2(parts)
  names(parts) <- ifelse(labels %in% c("", NA),
                         paste("part", seq_along(parts)),
                         paste0("part '", labels, "'"))
  parts <- drop_twice(parts)
  # A process may be lost after others have finished their parts, whose states
  # are therefore kept in a temporary folder.
  scratch <- if (!is.null(plan)) tempfile("parts-")
  on.exit(unlink(scratch, recursive = TRUE))
  kept <- options$checkpoint
  folder <- open_folder(kept %||% scratch, empty, options$read)
  # Random numbers decide which rows share a bin. A seed for each part makes
  # them the same in whichever process the part is worked on.
  seeds <- if (!is.null(empty$bin)) {
    as.list(sample.int(.Machine$integer.max, length(parts)))
  }
  files <- part_files(parts, folder, is.null(kept))
  tasks <- lapply(seq_along(parts), \(k) {
    new_source_task(parts[[k]], files[[k]], names(parts)[k], seeds[[k]])
  })
  states <- work_parts(tasks, empty, options, plan)
  failed <- Filter(is_error, states)
  if (length(failed)) stop_parts(failed, if (!is.null(kept)) folder)
  sketch <- Reduce(merge_sketches, lapply(states, `[[`, "sketch"), empty)
  sketch$parts <- sketch$parts + length(parts)
  sketch
}

is_error <- \(x) inherits(x, "error")

# The state of each task, or its error. If a process is lost, only its part is
# lost with it, and is worked on once more.
work_parts <- function(tasks, empty, options, plan) {
  finished <- \(task) {
    state <- read_state(task$file, empty)
    if (isTRUE(state$finished) && state$anew) state
  }
  states <- lapply(tasks, finished)
  lost <- integer(length(tasks))
  repeat {
    left <- which(vapply(states, is.null, NA))
    if (!length(left)) {
      return(states)
    }
    answers <- share_out(tasks[left], empty, options, plan)
    if (is_error(answers)) {
      states[left] <- lapply(tasks[left], finished)
      k <- left[answers$at]
      lost[k] <- lost[k] + 1L
      if (length(k) == 0L) stop(answers)
      if (lost[k] == 2L) states[[k]] <- answers
    } else {
      states[left] <- answers
    }
  }
}

# The plan of the package future; NULL where all work is done in this process.
workers_plan <- function() {
  if (requireNamespace("future.apply", quietly = TRUE) &&
        !inherits(future::plan(), "sequential")) {
    future::plan()
  }
}

# Errors of parts that can be known before any work starts.
check_parts <- function(parts, plan) {
  if (!length(parts)) {
    stop_input("'x' must be a list of at least one part")
  }
  for (k in seq_along(parts)) {
    label <- paste0("x[[", k, "]]")
    if (!is.null(plan) && is_opened(parts[[k]])) {
      stop_input("'", label, "' is a query or a stream, which cannot be sent",
                 " to another process; give a function that makes it, as in ",
                 "\\() {con <- dbConnect(...); dbSendQuery(con, sql)}")
    }
    # Files are looked up only if the work is done on this machine: other
    # machines may have other files.
    if (is.character(parts[[k]]) &&
          (is.null(plan) || inherits(plan, c("multisession", "multicore")))) {
      check_files(parts[[k]], label)
    }
  }
}

# The state of each task, or its error; a single error where a process is lost.
# Each part is a future of its own, so that a lost one has a name.
share_out <- function(tasks, empty, options, plan = NULL) {
  options <- unclass(options)[c("read", "chunk", "progress")]
  answers <- if (is.null(plan)) {
    lapply(tasks, work_part, empty, options)
  } else {
    options$progress <- FALSE
    tryCatch(
      future.apply::future_lapply(
        tasks, work_part, empty, options, away = TRUE, future.chunk.size = 1,
        future.label = "part-%d", future.seed = NULL,
        future.packages = "kernmean"
      ),
      error = \(e) lost_part(e, tasks, plan)
    )
  }
  if (is_error(answers)) {
    return(answers)
  }
  for (k in seq_along(answers)) {
    # Workers on other machines may not see the folder, and then their states
    # are saved here.
    file <- tasks[[k]]$file
    if (!is.null(file) && !is_error(answers[[k]]) && !file.exists(file)) {
      keep_state(answers[[k]], file)
    }
  }
  answers
}

# Works on a task in the process that the plan chose, and returns its state or
# its error. A process that runs beside others (`away`) uses one thread, unless
# OMP_NUM_THREADS was set when it was started.
work_part <- function(task, empty, options, away = FALSE) {
  # A process that does not see the folder saves no state.
  if (!is.null(task$file) &&
        !file.exists(file.path(dirname(task$file), "call.rds"))) {
    task$file <- NULL
  }
  run <- \() run_source(task, empty, options)
  single <- away && !nzchar(Sys.getenv("OMP_NUM_THREADS"))
  tryCatch(with_seed(task$seed, if (single) on_one_thread(run()) else run(),
                     "Mersenne-Twister", "Inversion", "Rejection"),
           error = \(e) {
    if (!inherits(e, "kernmean_error_source")) {
      e <- source_error(e, task$name, 0, task$name)
    }
    # Only message and class are kept, because other fields of the error may not
    # survive the transfer to another process.
    e$parent <- errorCondition(conditionMessage(e$parent),
                               class = utils::head(class(e$parent), -2L))
    e
  })
}

# The error of future.apply itself, its message shortened. If the plan is one of
# processes on this machine, all of them are started again.
lost_part <- function(e, tasks, plan) {
  if (inherits(plan, "multisession")) {
    plans <- future::plan("list")
    future::plan(future::sequential)
    future::plan(plans)
  }
  words <- sub(" (Post-mortem|The total size).*", "", conditionMessage(e))
  number <- sub(".*part-([0-9]+).*", "\\1", paste(e$future$label, words))
  at <- if (grepl("^[0-9]+$", number)) as.integer(number)
  name <- if (!is.null(at)) tasks[[at]]$name
  errorCondition(
    paste0(if (is.null(name)) "the parts could not be worked on" else
      paste0(name, ", lost with the process that worked on it"), ": ", words),
    class = c("kernmean_error_source", "kernmean_error"), parent = e,
    part = name, place = name, at = at
  )
}

# One error for all parts that failed.
stop_parts <- function(failed, folder) {
  e <- failed[[1L]]
  e$part <- unlist(lapply(failed, `[[`, "part"))
  e$message <- paste0(
    conditionMessage(e),
    if (length(failed) > 1L) {
      paste0("; failed, too: ", shorten(vapply(failed[-1L], `[[`, "", "place")))
    },
    if (!is.null(folder)) {
      paste0("; parts that are finished are kept in '", folder,
             "', and the same call goes on from them")
    }
  )
  e["call"] <- list(user_call())
  stop(e)
}

# --- The folder --------------------------------------------------------------

# The folder of this call, made or found again; NULL without one. It holds
# call.rds, which tells calls apart, and part-<...>.rds, the state of each part,
# as plain vectors and lists of them.
open_folder <- function(checkpoint, empty, read) {
  if (is.null(checkpoint)) {
    return(NULL)
  }
  call <- list(
    landmarks = lapply(empty$landmarks, \(l) trace_of(l[names(l) != "id"])),
    options = trace_of(unclass(empty)[names(empty) != "landmarks"]),
    "'read'" = trace_of(read)
  )
  path <- file.path(checkpoint, "call.rds")
  parts <- dir(checkpoint, "^part-.*[.]rds$")
  if (!file.exists(path) && !length(parts)) {
    made <- dir.exists(checkpoint) ||
      dir.create(checkpoint, FALSE, recursive = TRUE)
    if (!made || length(dir(checkpoint, all.files = TRUE, no.. = TRUE))) {
      stop_input("'checkpoint' must be a folder that is empty, can be made or ",
                 "is of calls like this one, not '", checkpoint, "'")
    }
  }
  # If no part is kept yet, another call may take the folder.
  if (!length(parts)) save_whole(call, path)
  kept <- read_plain(path)
  if (!identical(names(kept), names(call))) {
    stop_kernmean("source", "cannot read the checkpoint '", path, "', which ",
                  "is missing or damaged; its parts are of no use without ",
                  "it: take an empty folder")
  }
  same <- mapply(identical, kept, call)
  if (!all(same)) {
    stop_input("'checkpoint' must be a folder of calls like this one; '",
               checkpoint, "' belongs to one with other ",
               paste(names(call)[!same], collapse = " and other "),
               ", and so do its parts; take an empty folder")
  }
  normalizePath(checkpoint)
}

# A description that tells a source from others that might be given instead: the
# code of a function and the values that it uses, or a checksum of long data.
trace_of <- function(x, depth = 4L) {
  if (is.function(x) && !is.primitive(x)) {
    code <- all.names(body(x))
    code <- code[!code %in% c("[", "[[", "$")]
    # Variables that the function assigns by <<- only record how far it has
    # read.
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
  } else if (is.language(x)) {
    deparse(x)
  } else if (!is.atomic(x) || inherits(x, "connection")) {
    class(x)
  } else if (length(x) <= 100L) {
    x
  } else {
    content_sum(x)
  }
}

content_sum <- function(x) {
  copy <- tempfile()
  on.exit(unlink(copy))
  saved <- tryCatch({
    file <- file(copy, "wb")
    error <- try(saveRDS(x, file, version = 2L), silent = TRUE)
    # An error of a full disk may come only when the file is closed.
    identical(suppressWarnings(close(file)), 0L) && is.null(error)
  }, warning = \(w) FALSE)
  if (!saved) {
    stop_kernmean("source", "cannot write to the temporary folder '",
                  tempdir(), "'; is the disk full? TMPDIR names another one ",
                  "when R starts")
  }
  unname(tools::md5sum(copy))
}

# The file of each part, called by a checksum of the part or by its number; NULL
# without a folder. Parts with equal data have equal checksums and are numbered;
# which of them comes first does not matter.
part_files <- function(parts, folder, numbered = FALSE) {
  if (is.null(folder)) {
    return(NULL)
  }
  labels <- if (numbered) paste(seq_along(parts)) else vapply(parts, \(x) {
    if (is.character(x)) {
      x <- list(normalizePath(x, mustWork = FALSE), file.size(x),
                as.numeric(file.mtime(x)))
    }
    content_sum(trace_of(x))
  }, "")
  twice <- names(parts)[duplicated(labels) & vapply(parts, is_stream, NA)]
  if (length(twice)) {
    stop_input("'x' must have, with 'checkpoint', functions and queries that ",
               "differ in code or in the values that it uses, unlike ",
               shorten(twice), "; those that open them, \\() rows(path), do")
  }
  file.path(folder, paste0("part-", make.unique(labels, "-"), ".rds"))
}

# The state without the landmarks, which need not be kept, nor travel.
bare_state <- function(state) {
  state$sketch["landmarks"] <- list(NULL)
  state
}

# If a state cannot be saved, there is a warning and no error, as the work can
# go on.
keep_state <- function(state, file) {
  tryCatch(save_whole(bare_state(state), file), error = \(e) {
    warn_kernmean(conditionMessage(e), kind = "checkpoint")
  })
}

# Writes a file that is whole or not there at all. The file is read again,
# because a full disk may be noticed only when the file is closed, and R gives
# no error then.
save_whole <- function(x, path) {
  new <- tempfile("new-", dirname(path))
  on.exit(unlink(new))
  saved <- tryCatch({
    # The checksum is that of the object as it will be read.
    x <- unserialize(serialize(x, NULL))
    saveRDS(list(x, sum_of_file(x, path)), new, compress = FALSE)
    readRDS(new)
    file.rename(new, path)
  }, error = identity, warning = identity)
  if (inherits(saved, "kernmean_error")) stop(saved)
  if (!isTRUE(saved)) {
    stop_kernmean("source", "cannot write '", path, "'; is the disk full?")
  }
}

# The state that a file keeps; NULL where there is no file or, with a warning,
# where the file is damaged.
read_state <- function(file, empty) {
  if (is.null(file) || !file.exists(file)) {
    return(NULL)
  }
  state <- read_plain(file)
  # The state fits if its sketch has the same class, version and fields as the
  # empty sketch of this call.
  if (identical(attributes(state$sketch), attributes(empty))) {
    return(state)
  }
  warn_kernmean("the checkpoint '", file, "' is damaged; its part is worked ",
                "on again", kind = "checkpoint")
  unlink(file)
  NULL
}

# The object in a file; NULL if it cannot be read, is not plain, or is not the
# one that was written under this name.
read_plain <- function(file) {
  x <- tryCatch(suppressWarnings(list(readRDS(file))), error = \(e) NULL)
  if (is_plain(x) && is.list(x[[1L]]) && length(x[[1L]]) == 2L) {
    value <- x[[1L]][[1L]]
    if (identical(x[[1L]][[2L]], sum_of_file(value, file))) value
  }
}

sum_of_file <- \(x, file) content_sum(list(basename(file), x))

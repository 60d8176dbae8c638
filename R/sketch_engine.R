# How the rows of a source, or of a list of parts, get into a sketch: chunk by
# chunk, here or under the plan of the package future, with what is done kept in
# a folder.

# --- One source --------------------------------------------------------------

# A state is list(sketch; rows: of the source, that are in it; first: the first
# rows of the source; finished; anew: does the source begin anew by itself?
# Known when it is finished). A task is list(x: the source; file: where its
# state is kept, or NULL; name: of the part, NULL for the only one; seed).
# Returns the state after the last row, without the landmarks.
run_source <- function(task, empty, options) {
  file <- task$file
  state <- read_state(file, empty) %||%
    list(sketch = empty, rows = 0, first = NULL, finished = FALSE, anew = FALSE)
  if (state$finished && state$anew) {
    return(state)
  }
  state$sketch["landmarks"] <- list(empty$landmarks)
  stream <- open_stream(take(task$x, a_source(FALSE), "x"), options$read,
                        options$chunk)
  meter <- rows_meter(options$progress, task$name, state$rows)
  save_at <- now() + 5
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
    if (!is.null(file) && now() > save_at) {
      start <- now()
      keep_state(state, file)
      # Every few seconds, but for at most a twentieth of the time.
      save_at <- now() + max(5, 20 * (now() - start))
    }
  }
  if (state$rows == 0 && !stream$anew()) {
    warn_kernmean(c(task$name, "'x'")[1L], " yielded no rows: a stream is ",
                  "read once, and may have been used up; a function or a ",
                  "query is to be made anew")
  }
  # One number each: what they lose is one rounding, and their compensation need
  # not travel.
  state$sketch$sums <- lapply(state$sketch$sums,
                              \(record) new_record(total_sums(record)))
  state$finished <- TRUE
  state$anew <- stream$anew()
  bare_state(state)
}

now <- function() proc.time()[["elapsed"]]

# The state with the next chunk, NULL at the end.
next_state <- function(stream, state) {
  rows <- next_rows(stream, state)
  if (!is.null(rows)) {
    list(sketch = add_rows(state$sketch, rows), rows = state$rows + nrow(rows),
         first = state$first %||% first_rows(rows),
         finished = FALSE, anew = FALSE)
  }
}

# The next rows that are not in the state: of a source that is begun anew those
# that are done are passed over. It is known again by its first rows, all that
# is read where it is finished, unless the very source has no more of them.
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

# Without what else data frames carry along, such as terms.
first_rows <- function(rows, most = 5L) {
  rows <- utils::head(rows, most)
  rownames(rows) <- NULL
  kept <- names(attributes(rows)) %in%
    c("names", "class", "row.names", "dim", "dimnames")
  attributes(rows) <- attributes(rows)[kept]
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
  plan <- workers_plan()
  check_parts(parts, plan)
  names <- names2(parts)
  names(parts) <- ifelse(names %in% c("", NA), paste("part", seq_along(parts)),
                         paste0("part '", names, "'"))
  parts <- drop_twice(parts)
  # What processes have done is kept from those that are lost.
  scratch <- if (!is.null(plan)) tempfile("parts-")
  on.exit(unlink(scratch, recursive = TRUE))
  kept <- options$checkpoint
  folder <- open_folder(kept %||% scratch, empty,
                        options$read)
  # Rows fall into bins by random numbers; those of a part are its own wherever
  # it is worked on.
  seeds <- if (!is.null(empty$bin)) {
    as.list(sample.int(.Machine$integer.max, length(parts)))
  }
  files <- part_files(parts, folder, is.null(kept))
  tasks <- lapply(seq_along(parts), \(k) {
    list(x = parts[[k]], name = names(parts)[k], file = files[[k]],
         seed = seeds[[k]])
  })
  states <- work_parts(tasks, empty, options, plan)
  failed <- Filter(is_error, states)
  if (length(failed)) stop_parts(failed, if (!is.null(kept)) folder)
  sketch <- Reduce(merge_sketches, lapply(states, `[[`, "sketch"), empty)
  sketch$parts <- sketch$parts + length(parts)
  sketch
}

is_error <- \(x) inherits(x, "error")

# The state of each task, or its error. A process that is lost takes its part
# alone with it, which is worked on once more.
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

# What shares work out: a plan of the package future; NULL where all is done
# here.
workers_plan <- function() {
  if (requireNamespace("future.apply", quietly = TRUE) &&
        !inherits(future::plan(), "sequential")) {
    future::plan()
  }
}

# What can be said before any work starts.
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
    # Other machines have other files.
    if (is.character(parts[[k]]) &&
          (is.null(plan) || inherits(plan, c("multisession", "multicore")))) {
      check_files(parts[[k]], label)
    }
  }
}

# The state of each task, or its error; one error where a process is lost. A
# part is a future, so that one that is lost has a name.
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
    # Where the workers do not see the folder.
    file <- tasks[[k]]$file
    if (!is.null(file) && !is_error(answers[[k]]) && !file.exists(file)) {
      keep_state(answers[[k]], file)
    }
  }
  answers
}

# Runs where the plan wants it. A process besides others (`away`) has one
# thread, unless it was started with a number of them.
work_part <- function(task, empty, options, away = FALSE) {
  # Is the folder there, seen from this process?
  if (!is.null(task$file) &&
        !file.exists(file.path(dirname(task$file), "call.rds"))) {
    task$file <- NULL
  }
  run <- \() run_source(task, empty, options)
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

# The error of future.apply itself; its message says more than is read. A plan
# of processes on this machine that has lost one starts them again.
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

# The folder of this call, made or found again; NULL without one. In it:
# call.rds, what the call is; part-<what it is>.rds, ...: the state of each
# part. All of it is plain: vectors and lists of them.
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
  # Of a call that has kept nothing the folder is free.
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

# What tells a source from another that might stand in its place: functions by
# their code and the values that it uses, long data by a sum.
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
    # A full disk may show when the file is closed.
    identical(suppressWarnings(close(file)), 0L) && is.null(error)
  }, warning = \(w) FALSE)
  if (!saved) {
    stop_kernmean("source", "cannot write to the temporary folder '",
                  tempdir(), "'; is the disk full? TMPDIR names another one ",
                  "when R starts")
  }
  unname(tools::md5sum(copy))
}

# The file of each part, by what the part is or its number; NULL without a
# folder. Equal data have the same sums, in whatever order.
part_files <- function(parts, folder, numbered = FALSE) {
  if (is.null(folder)) {
    return(NULL)
  }
  names <- if (numbered) paste(seq_along(parts)) else vapply(parts, \(x) {
    if (is.character(x)) {
      x <- list(normalizePath(x, mustWork = FALSE), file.size(x),
                as.numeric(file.mtime(x)))
    }
    content_sum(trace_of(x))
  }, "")
  twice <- names(parts)[duplicated(names) & vapply(parts, is_stream, NA)]
  if (length(twice)) {
    stop_input("'x' must have, with 'checkpoint', functions and queries that ",
               "differ in code or in the values that it uses, unlike ",
               shorten(twice), "; those that open them, \\() rows(path), do")
  }
  file.path(folder, paste0("part-", make.unique(names, "-"), ".rds"))
}

# The landmarks need not be kept, nor travel, with every state.
bare_state <- function(state) {
  state$sketch["landmarks"] <- list(NULL)
  state
}

# A state that cannot be kept is still one to go on with.
keep_state <- function(state, file) {
  tryCatch(save_whole(bare_state(state), file), error = \(e) {
    warn_kernmean(conditionMessage(e), kind = "checkpoint")
  })
}

# Of a file that is there it is the whole: what was written is read again, as a
# full disk may show at the end alone, when the file is closed, and is no error.
save_whole <- function(x, path) {
  new <- tempfile("new-", dirname(path))
  on.exit(unlink(new))
  saved <- tryCatch({
    # As it will be when it is read.
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
# where it keeps none.
read_state <- function(file, empty) {
  if (is.null(file) || !file.exists(file)) {
    return(NULL)
  }
  state <- read_plain(file)
  # A sketch of this version, with the fields of the call's.
  if (identical(attributes(state$sketch), attributes(empty))) {
    return(state)
  }
  warn_kernmean("the checkpoint '", file, "' is damaged; its part is worked ",
                "on again", kind = "checkpoint")
  unlink(file)
  NULL
}

# What a file holds; NULL if that cannot be read, is not plain, or not what was
# written under this name.
read_plain <- function(file) {
  x <- tryCatch(suppressWarnings(list(readRDS(file))), error = \(e) NULL)
  if (is_plain(x) && is.list(x[[1L]]) && length(x[[1L]]) == 2L) {
    value <- x[[1L]][[1L]]
    if (identical(x[[1L]][[2L]], sum_of_file(value, file))) value
  }
}

sum_of_file <- \(x, file) content_sum(list(basename(file), x))

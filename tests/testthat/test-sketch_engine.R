# Engines: streams, parts, plans, and folders in which what is done is kept.

engine_data <- function(n = 900, d = 3) {
  set.seed(3)
  x <- matrix(rnorm(n * d), n, dimnames = list(NULL, letters[seq_len(d)]))
  list(x = x, landmarks = kme_landmarks(x, 12))
}

# A stream that fails before its chunk number `at`, once.
failing_stream <- function(chunks, at) {
  inner <- stream_of(chunks)
  left <- at
  function() {
    left <<- left - 1
    if (left == 0) stop("the disk is gone")
    inner()
  }
}

new_folder <- \() tempfile("checkpoint")

# The files of the parts that are kept.
part_states <- \(folder) dir(folder, "^part-", full.names = TRUE)

part_paths <- function(x, sizes) {
  folder <- tempfile("parts")
  dir.create(folder)
  paths <- file.path(folder, paste0(seq_along(sizes), ".rds"))
  Map(saveRDS, runs_of(x, sizes), paths)
  paths
}

# The sketch without rows.
without_rows <- function(sketch, ...) {
  sketch <- utils::modifyList(unclass(sketch), list(...))
  sketch$sums <- list()
  sketch[c("n", "parts")] <- list(0, 0)
  structure(sketch, class = "kme_sketch")
}

same_sums <- function(a, b) expect_lt(sketch_difference(a, b), 1e-13)

test_that("parts add up, whatever they are", {
  data <- engine_data()
  x <- data$x
  whole <- kme_sketch(x, data$landmarks)
  path <- tempfile(fileext = ".rds")
  on.exit(unlink(path))
  saveRDS(x[1:300, ], path)
  mixed <- list(path, stream_of(list(x[301:500, ], x[501, , drop = FALSE])),
                x[502:900, ], \() \() NULL, x[0, ])
  s <- kme_sketch(mixed, data$landmarks, chunk = 90)
  same_sums(s, whole)
  expect_identical(s$parts, 5)
  same_sums(kme_sketch(path, data$landmarks, chunk = 70),
            kme_sketch(x[1:300, ], data$landmarks))
})

test_that("a part is the same bits by itself, in a list and in a folder", {
  data <- engine_data()
  parts <- runs_of(data$x, c(400, 500))
  folder <- new_folder()
  both <- kme_sketch(parts, data$landmarks, chunk = 120)
  kept <- kme_sketch(parts, data$landmarks, chunk = 120, checkpoint = folder)
  expect_identical(kept, both)
  alone <- lapply(parts, \(x) {
    kme_sketch(stream_of(list(x)), data$landmarks, chunk = 120)
  })
  expect_identical(alone[[1]] + alone[[2]], both)
  # Again from the folder.
  expect_identical(kme_sketch(parts, data$landmarks, checkpoint = folder), both)
})

test_that("what goes wrong names the part, the place and the rows done", {
  data <- engine_data()
  x <- data$x
  chunks <- runs_of(x, rep(300, 3))
  get_error <- \(code) tryCatch(code, error = identity)
  e <- get_error(kme_sketch(failing_stream(chunks, 3), data$landmarks))
  expect_s3_class(e, "kernmean_error_source")
  expect_match(conditionMessage(e), paste0(
    "^function, chunk 3, after 600 rows: the disk is gone; another call goes ",
    "on behind what is read: make the source anew$"
  ))
  expect_identical(e$rows, 600)
  # Rows that do not fit the landmarks keep the class of that error, too.
  change <- as.data.frame(x[1:4, ])
  change$b <- c("a", "b", "a", "b")
  e <- get_error(kme_sketch(
    stream_of(list(as.data.frame(x[1:10, ]), change)), data$landmarks
  ))
  expect_s3_class(e, "kernmean_error_input")
  expect_match(conditionMessage(e), "^function, chunk 2, after 10 rows: .*'b'")
  parts <- list(x, failing_stream(chunks, 2), north = list(1), x[1:9, ])
  e <- get_error(kme_sketch(parts, data$landmarks))
  expect_identical(e$part, c("part 2", "part 'north'"))
  expect_match(conditionMessage(e), paste0(
    "^part 2, function, chunk 2, after 300 rows: the disk is gone; .* anew; ",
    "failed, too: part 'north'$"
  ))
  expect_error(kme_sketch(list(x, "no-such-file.csv"), data$landmarks),
               "'x[[2]]' must name files that exist", fixed = TRUE,
               class = "kernmean_error_input")
})

test_that("a function that another call would go on with says so", {
  data <- engine_data()
  chunks <- runs_of(data$x, rep(300, 3))
  says <- function(code, words) {
    e <- tryCatch(code, error = identity)
    expect_match(conditionMessage(e), words)
  }
  says(kme_landmarks(failing_stream(chunks, 2)),
       "gone; another call goes on behind what is read")
  # Not of what begins anew.
  says(kme_sketch(\() failing_stream(chunks, 2), data$landmarks), "gone$")
  # A part that was finished before is used up.
  parts <- list(stream_of(chunks[1:2]), failing_stream(chunks[3], 2), x = 1)
  expect_error(kme_sketch(parts, data$landmarks),
               class = "kernmean_error_source")
  parts <- list(parts[[1]], \() parts[[1]])
  expect_warning(s <- kme_sketch(parts, data$landmarks),
                 "^part 1 yielded no rows", class = "kernmean_warning")
  expect_identical(s$n, 0)
})

test_that("what is no source is refused as a part, by name", {
  lines <- textConnection("a,b")
  on.exit(close(lines))
  for (bad in list(lines, structure(list(), class = "tbl_lazy"))) {
    expect_error(kme_sketch(list(bad), kme_landmarks(1:9, 3)),
                 "^part 1, after 0 rows: 'x' must be a matrix",
                 class = "kernmean_error_source")
  }
})

test_that("a stream that was stopped goes on where it was", {
  data <- engine_data()
  chunks <- runs_of(data$x, c(250, 0, 350, 300))
  whole <- kme_sketch(stream_of(chunks), data$landmarks, chunk = 100)
  for (at in c(1, 3, 4)) {
    fails <- new.env()
    fails$at <- at
    opener <- \() failing_stream(chunks, fails$at)
    # Of one that is made anew, or opens itself anew, rows that are done are
    # passed over.
    for (pair in list(list(failing_stream(chunks, at),
                           failing_stream(chunks, 99)),
                      list(opener, opener))) {
      folder <- new_folder()
      fails$at <- at
      run <- \(x) kme_sketch(x, data$landmarks, chunk = 100,
                             checkpoint = folder)
      expect_error(run(pair[[1]]), class = "kernmean_error_source")
      fails$at <- 99
      s <- run(pair[[2]])
      expect_identical(s$n, 900)
      same_sums(s, whole)
      expect_identical(run(pair[[2]]), s)
    }
  }
})

test_that("a source that fails among rows that are done is not at their end", {
  data <- engine_data()
  chunks <- runs_of(data$x[1:200, ], rep(10, 20))
  folder <- new_folder()
  run <- \(x) kme_sketch(x, data$landmarks, checkpoint = folder)
  expect_error(run(failing_stream(chunks, 11)), "after 100 rows: .* gone",
               class = "kernmean_error_source")
  again <- failing_stream(chunks, 6)
  expect_error(run(again), "after 100 rows: .* gone",
               class = "kernmean_error_source")
  refused(run(again), "same rows in the same order")
  expect_identical(run(stream_of(chunks))$n, 200)
})

test_that("a stop in the middle of a large chunk loses none of its rows", {
  data <- engine_data()
  folder <- new_folder()
  x <- data$x
  x[700, 2] <- NA
  # One chunk of all rows, handed on in slices; the slice with NA is refused.
  run <- \() kme_sketch(stream_of(list(x)), data$landmarks, chunk = 100,
                        checkpoint = folder)
  e <- tryCatch(run(), error = identity)
  expect_identical(e$rows, 600)
  e <- tryCatch(run(), error = identity)
  expect_s3_class(e, "kernmean_error_source")
  expect_identical(e$rows, 600)
})

test_that("an interrupt keeps what is done", {
  data <- engine_data()
  chunks <- runs_of(data$x, rep(300, 3))
  folder <- new_folder()
  stops <- TRUE
  source <- function() {
    inner <- stream_of(chunks)
    calls <- 0
    function() {
      calls <<- calls + 1
      if (calls == 3 && stops) {
        stop(structure(class = c("interrupt", "condition"),
                       list(message = "", call = NULL)))
      }
      inner()
    }
  }
  run <- \() kme_sketch(source(), data$landmarks, checkpoint = folder)
  stopped_by <- tryCatch(run(), interrupt = \(e) "interrupt")
  expect_identical(stopped_by, "interrupt")
  expect_identical(read_plain(part_states(folder))$rows, 600)
  stops <- FALSE
  s <- run()
  expect_identical(s$n, 900)
  same_sums(s, kme_sketch(data$x, data$landmarks))
})

test_that("sources that are not what they were are refused, not added up", {
  data <- engine_data()
  chunks <- runs_of(data$x, rep(300, 3))
  # What a function takes from an environment is not seen before it is read.
  given <- new.env()
  folder <- new_folder()
  source <- \() failing_stream(given$chunks, given$fails)
  again <- \(chunks, fails = 99) {
    given$chunks <- chunks
    given$fails <- fails
    kme_sketch(\() source(), data$landmarks, checkpoint = folder)
  }
  expect_error(again(chunks, 3), "gone", class = "kernmean_error_source")
  expect_error(again(rev(chunks)), "same rows in the same order",
               class = "kernmean_error_input")
  expect_error(again(chunks[1]), "600 at least", class = "kernmean_error_input")
  # The very function that was stopped has other rows left.
  folder <- new_folder()
  used <- failing_stream(chunks, 2)
  run <- \() kme_sketch(used, data$landmarks, checkpoint = folder)
  expect_error(run(), "make the source anew", class = "kernmean_error_source")
  refused(run(), "same rows in the same order again; make a new one")
})

test_that("a folder belongs to one call", {
  data <- engine_data()
  x <- data$x
  parts <- runs_of(x, c(400, 500))
  path <- tempfile(fileext = ".rds")
  on.exit(unlink(path))
  saveRDS(x[1:100, ], path)
  folder <- new_folder()
  keep <- \(...) kme_sketch(..., checkpoint = folder)
  refused <- function(words, ...) {
    expect_error(keep(...), words, class = "kernmean_error_input")
  }
  keep(parts, data$landmarks)
  refused("other landmarks", parts, kme_landmarks(x, 11))
  refused("other options", parts, data$landmarks, na.action = na.omit)
  refused("other 'read'", parts, data$landmarks, read = \(path) path)
  # Landmarks, and data, that are equal are the same, however they were made.
  copy <- data$landmarks
  copy$id <- "another"
  expect_identical(keep(lapply(parts, `+`, 0), copy)$n, 900)
  # A folder of something else.
  folder <- dirname(path)
  refused("must be a folder that is empty", parts, data$landmarks)
  for (folder in list(c("a", "b"), NA_character_)) {
    refused("'checkpoint' must be the name", parts, data$landmarks)
  }
})

test_that("a folder of a call that kept nothing is free", {
  data <- engine_data()
  folder <- new_folder()
  parts <- runs_of(data$x, c(400, 500))
  keep <- \(...) kme_sketch(..., data$landmarks, checkpoint = folder)
  expect_error(keep(list(\() stop("no")), na.action = na.omit), ": no;",
               class = "kernmean_error_source")
  expect_identical(keep(parts)$n, 900)
  refused(keep(parts, na.action = na.omit), "other options")
})

test_that("parts are known by what they are", {
  data <- engine_data()
  x <- data$x
  parts <- runs_of(x, c(400, 300, 200))
  folder <- new_folder()
  keep <- \(x, ...) kme_sketch(x, data$landmarks, checkpoint = folder, ...)
  files <- \() length(part_states(folder))
  same_sums(keep(parts[1:2]), kme_sketch(x[1:700, ], data$landmarks))
  # Another order, fewer, and more tomorrow.
  keep(parts[2:1])
  keep(parts[1])
  expect_identical(files(), 2L)
  same_sums(keep(parts), kme_sketch(x, data$landmarks))
  expect_identical(files(), 3L)
  # Data that have changed are another part, as is a file, and a closure that
  # differs in its values alone.
  parts[[1]][350, 2] <- 9
  same_sums(keep(parts), kme_sketch(do.call(rbind, parts), data$landmarks))
  folder <- new_folder()
  paths <- part_paths(x, c(400, 500))
  on.exit(unlink(dirname(paths[1]), recursive = TRUE))
  expect_identical(keep(list(paths[1]))$n, 400)
  saveRDS(x[1:200, ], paths[1])
  expect_identical(keep(list(paths[1]))$n, 200)
  src <- \(path) \() path
  expect_identical(keep(src(paths[1]))$n, 200)
  expect_identical(keep(src(paths[2]))$n, 500)
})

test_that("files are known by their paths, from wherever they are named", {
  data <- engine_data()
  home <- new_folder()
  before <- getwd()
  on.exit({
    setwd(before)
    unlink(home, recursive = TRUE)
  })
  paths <- file.path(home, c("a", "b"), "m.rds")
  parts <- runs_of(data$x, c(450, 450))
  for (k in 1:2) {
    dir.create(dirname(paths[k]), recursive = TRUE)
    saveRDS(parts[[k]], paths[k], compress = FALSE)
  }
  Sys.setFileTime(paths, Sys.time())
  folder <- new_folder()
  keep <- \(x) kme_sketch(x, data$landmarks, checkpoint = folder)
  for (k in 1:2) {
    setwd(dirname(paths[k]))
    same_sums(keep("m.rds"), kme_sketch(parts[[k]], data$landmarks))
  }
  keep(paths[2])
  expect_length(part_states(folder), 2)
})

# A function whose values are all written by it: how far it is, and of what.
queue <- function(parts) {
  function() {
    if (length(parts)) {
      first <- parts[[1]]
      parts <<- parts[-1]
      first
    }
  }
}

test_that("functions that yield chunks are not taken for one another", {
  data <- engine_data()
  runs <- lapply(runs_of(data$x, rep(300, 3)), \(x) runs_of(x, c(100, 200)))
  folder <- new_folder()
  run <- \(x) kme_sketch(x, data$landmarks, checkpoint = folder)
  refused(run(lapply(runs[1:2], queue)), "unlike part 2; those that open them")
  expect_identical(kme_sketch(lapply(runs, queue), data$landmarks)$n, 900)
  # Openers are told apart by their values.
  expect_identical(run(lapply(runs, \(x) \() queue(x)))$n, 900)
  folder <- new_folder()
  first <- queue(runs[[1]])
  s <- run(first)
  expect_identical(run(first), s)
  again <- queue(runs[[1]])
  expect_identical(run(again), s)
  # A look at its first chunk was enough.
  expect_identical(again(), runs[[1]][[2]])
  refused(run(queue(runs[[2]])), "same rows in the same order")
  # A function that has closed its file may fail when it is called again.
  folder <- new_folder()
  left <- runs[[1]]
  closed <- function() {
    if (!length(left)) {
      if (is.null(left)) stop("invalid connection")
      left <<- NULL
      return(NULL)
    }
    first <- left[[1]]
    left <<- left[-1]
    first
  }
  expect_identical(run(closed), s)
  expect_warning(again <- run(closed), "compared .*: invalid connection",
                 class = "kernmean_warning_checkpoint")
  expect_identical(again, s)
})

test_that("a query is known by its first rows, and is no other of its text", {
  skip_if_not_installed("RSQLite")
  data <- engine_data()
  folder <- new_folder()
  run <- \(x) kme_sketch(x, data$landmarks, checkpoint = folder, chunk = 100)
  query <- function(x) {
    base <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
    DBI::dbWriteTable(base, "t", as.data.frame(x))
    DBI::dbSendQuery(base, "select * from t order by rowid")
  }
  queries <- lapply(list(1:400, 1:400, 401:900), \(k) query(data$x[k, ]))
  on.exit(for (q in queries) {
    base <- q@conn
    DBI::dbClearResult(q)
    DBI::dbDisconnect(base)
  })
  refused(run(queries), "unlike part 2, part 3;")
  s <- run(queries[[1]])
  expect_identical(run(queries[[1]]), s)
  expect_identical(run(queries[[2]]), s)
  refused(run(queries[[3]]), "same rows in the same order")
})

test_that("groups are not read as another type from the middle on", {
  data <- engine_data()
  home <- new_folder()
  dir.create(home)
  on.exit(unlink(home, recursive = TRUE))
  paths <- file.path(home, c("a.csv", "b.csv"))
  groups <- list(c("F", "M"), "F")
  for (k in 1:2) {
    frame <- data.frame(data$x[1:50, ], g = rep_len(groups[[k]], 50))
    utils::write.csv(frame, paths[k], row.names = FALSE)
  }
  run <- \(x, ...) kme_sketch(x, data$landmarks, groups = "g", ...)
  text <- \(f) utils::read.csv(f, colClasses = c(g = "character"))
  words <- paste0("'groups' must be a factor as in the rows before, not of ",
                  "class logical; .*c\\(g = \"character\"\\)")
  refused(run(as.list(paths)), words)
  refused(run(paths), words)
  refused(run(paths[1]) + run(paths[2]), words)
  refused(update(run(paths[1]), paths[2]), words)
  for (files in list(as.list(paths), paths)) {
    s <- run(files, read = text)
    expect_identical(group_numbers(s, "n"), c(75, 25))
  }
  # Codes with zeros in front.
  codes <- \(g) data.frame(data$x[1:4, ], g = g)
  refused(run(stream_of(list(codes(c("01", "1", "A", "A")), codes(1L)))),
          "a factor as in the rows before, not numeric")
  expect_identical(run(stream_of(list(codes(1L), codes(2))))$groups,
                   c("1", "2"))
})

test_that("columns of any type without code may stand beside those in use", {
  data <- engine_data()
  x <- as.data.frame(data$x)
  x$wave <- complex(real = x$a, imaginary = 1)
  x$blob <- rep(list(as.raw(1:3)), nrow(x))
  x$byte <- as.raw(1)
  folder <- new_folder()
  run <- \() kme_sketch(list(x), data$landmarks, checkpoint = folder)
  s <- run()
  expect_no_warning(again <- run())
  expect_identical(again, s)
})

test_that("parts of a folder that nobody sees again are called by number", {
  names <- part_files(list(1:200, mean), "home", TRUE)
  expect_identical(names, file.path("home", c("part-1.rds", "part-2.rds")))
})

test_that("a part that is given twice is counted once, if it is the same", {
  data <- engine_data()
  paths <- part_paths(data$x, c(400, 500))
  on.exit(unlink(dirname(paths[1]), recursive = TRUE))
  once <- kme_sketch(as.list(paths), data$landmarks)
  other <- file.path(dirname(paths[1]), ".", basename(paths[1]))
  expect_warning(
    twice <- kme_sketch(c(paths[1], b = paths[2], other) |> as.list(),
                        data$landmarks),
    "given twice is counted once: .*1.rds", class = "kernmean_warning_twice"
  )
  expect_identical(twice, once)
  for (files in list(paths[c(1, 2, 1)], list(paths[1], paths))) {
    expect_warning(s <- kme_sketch(files, data$landmarks),
                   class = "kernmean_warning_twice")
    expect_identical(s$n, 900)
  }
  expect_warning(l <- kme_landmarks(paths[c(1, 2, 1)], 5),
                 class = "kernmean_warning_twice")
  expect_identical(l$pilot, 900L)
  # Equal data may be other rows.
  expect_identical(kme_sketch(list(data$x, data$x), data$landmarks)$n, 1800)
  # A function may go on with the next rows.
  five <- \() stream_of(list(data$x[1:5, ]))
  expect_identical(kme_sketch(list(five, five), data$landmarks)$n, 10)
})

test_that("of parts that fail the others are kept; the next call finishes", {
  data <- engine_data()
  parts <- runs_of(data$x, rep(300, 3))
  folder <- new_folder()
  flag <- tempfile()
  on.exit(unlink(flag))
  read <- c(0, 0, 0)
  sources <- lapply(1:3, \(k) \() {
    if (k == 2 && !file.exists(flag)) stop("not yet")
    read[k] <<- read[k] + 1
    stream_of(parts[k])
  })
  run <- \() kme_sketch(sources, data$landmarks, checkpoint = folder)
  expect_error(run(), paste0("^part 2, .*not yet; parts that are finished are ",
                             "kept in .*checkpoint"),
               class = "kernmean_error_source")
  # Whoever mends `read` is told what to do.
  refused(kme_sketch(sources, data$landmarks, checkpoint = folder,
                     read = identity),
          "other 'read', and so do its parts; take an empty folder")
  expect_length(part_states(folder), 2)
  file.create(flag)
  s <- run()
  expect_identical(read, c(1, 1, 1))
  expect_identical(s, kme_sketch(sources, data$landmarks))
})

test_that("files that fail are named", {
  data <- engine_data()
  paths <- part_paths(data$x, rep(150, 6))
  on.exit(unlink(dirname(paths[1]), recursive = TRUE))
  read <- \(path) if (path == paths[2]) readRDS(path) else stop("no")
  e <- tryCatch(kme_sketch(as.list(paths), data$landmarks, read = read),
                error = identity)
  expect_identical(e$part, paste("part", c(1, 3:6)))
  at <- \(k) paste0("part ", k, ", file '", paths[k], "'")
  expect_identical(conditionMessage(e), paste0(
    at(1), ", after 0 rows: no; failed, too: ", toString(at(3:6))
  ))
})

test_that("what cannot be kept is not lost", {
  data <- engine_data()
  parts <- runs_of(data$x, rep(300, 3))
  whole <- kme_sketch(parts, data$landmarks)
  folder <- new_folder()
  run <- \(x) kme_sketch(x, data$landmarks, checkpoint = folder)
  warned <- function(code) {
    said <- character()
    value <- withCallingHandlers(
      tryCatch(code, error = identity),
      kernmean_warning_checkpoint = \(w) {
        said <<- c(said, conditionMessage(w))
        invokeRestart("muffleWarning")
      }
    )
    expect_match(said, "cannot write .*; is the disk full\\?|damaged")
    expect_match(said, "cannot write", all = FALSE)
    value
  }
  # A folder that goes while it is used.
  gone <- \(x) function() {
    unlink(folder, recursive = TRUE)
    stream_of(list(x))
  }
  sources <- replace(parts, 2, list(gone(parts[[2]])))
  expect_identical(warned(run(sources)), whole)
  s <- kme_sketch(parts[[2]], data$landmarks)
  folder <- new_folder()
  expect_identical(warned(run(gone(parts[[2]])))$sums, s$sums)
  # Something else in the place of a part, of one that fails, too.
  folder <- new_folder()
  run(parts[1])
  unlink(part_states(folder))
  bad <- c(parts, failing_stream(parts, 2))
  file <- part_files(bad, normalizePath(folder))
  run(parts[1])
  for (path in file[2:4]) dir.create(file.path(path, "taken"), recursive = TRUE)
  expect_identical(warned(run(parts)), whole)
  e <- warned(run(bad))
  expect_match(conditionMessage(e),
               "^part 4, function, chunk 2, after 300 rows: the disk is gone")
})

test_that("bins of a part are the same random rows under any plan", {
  data <- engine_data()
  parts <- runs_of(data$x, rep(300, 3))
  draw <- function(chunk = 100) {
    set.seed(5)
    s <- kme_sketch(parts, data$landmarks, bin = 20, chunk = chunk)
    list(s, runif(1))
  }
  one <- draw()
  expect_identical(draw(), one)
  # Only the seeds of the parts come from the user's generator.
  expect_identical(draw(300)[[2]], one[[2]])
  set.seed(6)
  other <- kme_sketch(parts, data$landmarks, bin = 20, chunk = 100)
  expect_false(identical(other$bins, one[[1]]$bins))
})

test_that("progress says rows and their rate, on the standard error", {
  data <- engine_data()
  said <- utils::capture.output(
    s <- kme_sketch(list(data$x), data$landmarks, progress = TRUE),
    type = "message"
  )
  expect_match(said, "part 1: 900 rows, [0-9.,]+ rows/s")
})

# --- Under plans -----------------------------------------------------------

# Workers find the package where this process found it.
with_plan <- function(..., code) {
  before <- Sys.getenv("R_LIBS", NA)
  Sys.setenv(R_LIBS = paste(.libPaths(), collapse = .Platform$path.sep))
  plans <- future::plan("list")
  on.exit({
    future::plan(future::sequential)
    future::plan(plans)
    if (is.na(before)) Sys.unsetenv("R_LIBS") else Sys.setenv(R_LIBS = before)
  })
  future::plan(...)
  code
}

skip_without_futures <- function() {
  skip_on_cran()
  skip_if_not_installed("future.apply")
  skip_if_not(nzchar(system.file(package = "kernmean", "Meta")),
              "an installed kernmean")
}

test_that("processes give the bits of one; a lost one costs its part alone", {
  skip_without_futures()
  data <- engine_data()
  paths <- part_paths(data$x, rep(225, 4))
  on.exit(unlink(dirname(paths[1]), recursive = TRUE))
  parts <- as.list(paths)
  if (requireNamespace("RSQLite", quietly = TRUE)) {
    # A query that is made where it is read.
    base <- tempfile(fileext = ".sqlite")
    connection <- DBI::dbConnect(RSQLite::SQLite(), base)
    DBI::dbWriteTable(connection, "t", as.data.frame(readRDS(paths[4])))
    DBI::dbDisconnect(connection)
    opened <- list()
    on.exit(lapply(opened, DBI::dbDisconnect), add = TRUE)
    parts[[4]] <- \() {
      connection <- DBI::dbConnect(RSQLite::SQLite(), base)
      opened <<- c(opened, list(connection))
      DBI::dbSendQuery(connection, "select * from t order by rowid")
    }
  }
  one <- kme_sketch(parts, data$landmarks)
  same_sums(one, kme_sketch(data$x, data$landmarks))
  set.seed(1)
  bins <- kme_sketch(parts, data$landmarks, bin = 20)
  folder <- new_folder()
  flag <- tempfile()
  kill <- function() {
    if (!file.exists(flag)) {
      file.create(flag)
      tools::pskill(Sys.getpid(), tools::SIGKILL)
      Sys.sleep(10)
    }
    paths[3]
  }
  with_plan(future::multisession, workers = 2, code = {
    expect_identical(kme_sketch(parts, data$landmarks), one)
    set.seed(1)
    expect_identical(kme_sketch(parts, data$landmarks, bin = 20), bins)
    # An error there is the error here.
    bad <- parts
    bad[[2]] <- \() stop("the disk is gone")
    e <- tryCatch(kme_sketch(bad, data$landmarks, checkpoint = folder),
                  error = identity)
    expect_s3_class(e, "kernmean_error_source")
    expect_identical(e$part, "part 2")
    expect_match(conditionMessage(e), "part 2, function, chunk 1, after 0 rows")
    expect_length(part_states(folder), 3)
    unlink(folder, recursive = TRUE)
    # A process that is killed in the middle: its part is worked on again.
    bad <- parts
    bad[[3]] <- kill
    expect_identical(kme_sketch(bad, data$landmarks), one)
    # One that is killed each time is named, with the others done.
    bad[[3]] <- \() {
      tools::pskill(Sys.getpid(), tools::SIGKILL)
      Sys.sleep(10)
    }
    e <- tryCatch(kme_sketch(bad, data$landmarks, checkpoint = folder),
                  error = identity)
    expect_s3_class(e, "kernmean_error_source")
    expect_identical(e$part, "part 3")
    expect_match(conditionMessage(e), "^part 3, lost with the process")
    expect_length(part_states(folder), 3)
    if (requireNamespace("RSQLite", quietly = TRUE)) {
      base <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
      query <- DBI::dbSendQuery(base, "select 1 as a")
      expect_error(kme_sketch(list(query), data$landmarks), "cannot be sent",
                   class = "kernmean_error_input")
      DBI::dbClearResult(query)
      DBI::dbDisconnect(base)
    }
  })
  unlink(flag)
})

test_that("parts of workers that do not see the folder are kept from here", {
  data <- engine_data()
  empty <- without_rows(kme_sketch(data$x, data$landmarks))
  folder <- new_folder()
  dir.create(folder)
  # Without call.rds it is not the folder.
  tasks <- list(list(x = data$x, name = "part 1",
                     file = file.path(folder, "part-1.rds")))
  answer <- share_out(tasks, empty, list(chunk = 100, progress = FALSE))
  kept <- read_plain(file.path(folder, "part-1.rds"))
  expect_true(kept$finished)
  expect_identical(kept, answer[[1]])
  expect_identical(kept$sketch$n, 900)
})

test_that("a damaged file of a checkpoint is named, a part done again", {
  data <- engine_data()
  parts <- runs_of(data$x, rep(300, 3))
  folder <- new_folder()
  run <- \() kme_sketch(parts, data$landmarks, checkpoint = folder)
  whole <- run()
  file <- part_states(folder)[2]
  state <- read_plain(file)
  class(state$sketch) <- "htest"
  save_whole(state, file)
  expect_warning(s <- run(), "damaged; its part is worked on again",
                 class = "kernmean_warning_checkpoint")
  expect_identical(s, whole)
  # Files that cannot be read, files with changed bytes, and another part's.
  for (name in c(file, file.path(folder, "call.rds"))) {
    bytes <- readBin(name, "raw", file.size(name))
    middle <- length(bytes) %/% 2 + 0:7
    changed <- replace(bytes, middle, xor(bytes[middle], as.raw(255)))
    other <- part_states(folder)[1]
    other <- readBin(other, "raw", file.size(other))
    for (some in list(utils::head(bytes, -20), raw(), as.raw(1:99), changed,
                      other)) {
      writeBin(some, name)
      if (name == file) {
        expect_warning(s <- run(), class = "kernmean_warning_checkpoint")
        expect_identical(s, whole)
      } else {
        expect_error(run(), "call.rds', which is missing or damaged",
                     class = "kernmean_error_source")
      }
    }
  }
  unlink(file.path(folder, "call.rds"))
  expect_error(run(), "call.rds', .* its parts are of no use without it",
               class = "kernmean_error_source")
})

test_that("short first chunks and frames with more than columns are sound", {
  of <- engine_data(40)
  pieces <- list(
    runs_of(of$x, rep(2, 20)), c(list(of$x[1, , drop = FALSE]),
                                 list(of$x[-1, ])),
    lapply(runs_of(of$x, rep(10, 4)), \(x) {
      stats::model.frame(~ a + b + c, as.data.frame(x))
    })
  )
  for (chunks in pieces) {
    folder <- new_folder()
    run <- \(at) kme_sketch(failing_stream(chunks, at), of$landmarks,
                            checkpoint = folder)
    expect_error(run(length(chunks)), "the disk is gone")
    expect_no_warning(s <- run(99))
    expect_equal(s$n, 40)
    expect_no_warning(again <- run(99))
    same_sums(again, s)
  }
})

test_that("no code in a folder is run", {
  data <- engine_data()
  parts <- runs_of(data$x, rep(300, 3))
  folder <- new_folder()
  run <- \() kme_sketch(parts, data$landmarks, checkpoint = folder)
  whole <- run()
  flag <- tempfile()
  home <- new.env()
  delayedAssign("rows", file.create(flag), assign.env = home)
  file <- part_states(folder)[1]
  state <- readRDS(file)[[1]]
  for (bad in list(home, list(home), structure(state, at = home),
                   replace(state, "rows", list(home)),
                   replace(state, "first", list(\() file.create(flag))),
                   replace(state, "first", list(structure(1, at = home))),
                   replace(state, "first", list(quote(file.create(flag)))),
                   "a promise")) {
    if (is.list(bad) && length(bad) > 1) bad <- list(bad, "sum")
    if (is.character(bad)) save_promise(file, flag) else saveRDS(bad, file)
    expect_warning(s <- run(), class = "kernmean_warning_checkpoint")
    expect_identical(s, whole)
  }
  saveRDS(home, file.path(folder, "call.rds"))
  expect_error(run(), "damaged", class = "kernmean_error_source")
  expect_false(file.exists(flag))
})

test_that("a file is kept only when it can be read again", {
  folder <- new_folder()
  dir.create(folder)
  path <- file.path(folder, "state.rds")
  save_whole(list(a = 1, b = 1:9, c = "d"), path)
  # What cannot be written leaves the file as it was, and nothing beside it.
  dir.create(file.path(folder, "taken.rds", "full"), recursive = TRUE)
  expect_error(save_whole(list(a = 2), file.path(folder, "taken.rds")),
               "cannot write .*taken.rds'", class = "kernmean_error_source")
  expect_identical(read_plain(path), list(a = 1, b = 1:9, c = "d"))
  expect_setequal(dir(folder), c("state.rds", "taken.rds"))
})

test_that("a temporary folder that cannot be written to is told as such", {
  data <- engine_data()
  folder <- file.path(dirname(tempdir()), basename(tempfile("kept")))
  away <- paste0(tempdir(), "-away")
  file.rename(tempdir(), away)
  on.exit({
    file.rename(away, tempdir())
    unlink(folder, recursive = TRUE)
  })
  for (x in list(list(data$x), stream_of(list(data$x)))) {
    expect_error(kme_sketch(x, data$landmarks, checkpoint = folder),
                 "temporary folder .*TMPDIR", class = "kernmean_error_source")
  }
})

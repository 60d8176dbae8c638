# The parts: each is a function of the names of calls and of steps that gives
# one row for each fault.

row_of <- function(fault, promise, happened, kept) {
  data.frame(fault, promise, happened, kept)
}

rscript <- file.path(R.home("bin"), "Rscript")

# Lines of a process of its own, with its exit status.
run_child <- function(words, timeout = 300, before = character()) {
  lines <- suppressWarnings(system2(
    "timeout", c(timeout, before, shQuote(rscript), words), stdout = TRUE,
    stderr = TRUE
  ))
  status <- attr(lines, "status")
  list(lines = as.character(lines),
       status = if (is.null(status)) 0L else status)
}

# R code in a process of its own.
run_code <- function(code, ...) {
  file <- tempfile(fileext = ".R")
  writeLines(code, file)
  run_child(shQuote(file), ...)
}

last_line <- function(found) {
  paste0(substr(c(utils::tail(found$lines, 1L), "nothing")[1L], 1L, 100L),
         " (status ", found$status, ")")
}

part_memory <- function(names, steps) {
  do.call(rbind, lapply(names, \(name) {
    found <- run_child(c(shQuote(file.path(home, "..", "faults.R")), "--child",
                         shQuote(name), "--steps", steps))
    said <- found$lines[grepl("^(right|denied|OTHER)", found$lines)]
    counts <- table(said)
    row_of(paste("addresses denied,", name),
           "an error of memory or the right numbers, and these after it",
           paste(counts, names(counts), collapse = ", "),
           found$status == 0L && length(said) == steps &&
             all(said %in% c("right", "denied")))
  }))
}

# `ulimit -v` before the first parallel region: libgomp ends the process where
# a thread cannot be started.
part_threads <- function(names, steps) {
  code <- paste0(
    "library(kernmean); dyn.load('", Sys.getenv("KERNMEAN_FAULTS"),
    "/faults.so'); x <- matrix(as.double(1:4000), 2000)
    size <- as.numeric(gsub('[^0-9]', '', grep('VmSize', readLines(
      '/proc/self/status'), value = TRUE)))
    .C('grow_stack', integer(1))
    invisible(.C('limit_addresses', size + 1024 * %d, integer(1)))
    s <- tryCatch(sum(kernel_matrix(x, kernel = kernel_rbf(50))),
                  error = conditionMessage)
    .C('limit_addresses', 0, integer(1))
    writeLines(if (is.character(s)) 'denied' else
      if (s == sum(kernel_matrix(x, kernel = kernel_rbf(50)))) 'right')"
  )
  room <- round(seq(2, 120, length.out = steps))
  said <- vapply(room, \(mb) {
    found <- run_code(sprintf(code, mb))
    if (found$status == 0L) utils::tail(found$lines, 1L) else last_line(found)
  }, "")
  counts <- table(said)
  row_of("threads denied", "an error of memory or the right numbers",
         paste(counts, names(counts), collapse = ", "),
         all(said %in% c("right", "denied")))
}

# Own work of more than a second between two looks is a broken promise; time
# that passed while others had the processors, or the system made pages, is not.
part_polls <- function(names, steps) {
  do.call(rbind, lapply(names, \(name) {
    call <- calls[[name]]
    set.seed(1)
    d <- call$make(call$n)
    invisible(gc())
    .C("polls_begin")
    time <- system.time(try(run_seeded(call, d), silent = TRUE))[["elapsed"]]
    longest <- .C("polls_end", double(2))[[1L]]
    row_of(paste0("looks for interrupts, ", name, ", n = ",
                  format(call$n, scientific = FALSE)),
           "a look every second",
           sprintf("call %.1f s, longest %.2f s, of own work %.2f s", time,
                   longest[1L], longest[2L]), min(longest) <= 1)
  }))
}

part_limits <- function(names, steps) {
  do.call(rbind, lapply(names, \(name) {
    call <- calls[[name]]
    set.seed(1)
    d <- call$make(call$n)
    own <- system.time(run_seeded(call, d))[["elapsed"]]
    late <- vapply(c(0.1, 0.3, 0.5, 0.7, 0.9) * own, \(limit) {
      repeated <- replicate(2, {
        begun <- proc.time()[["elapsed"]]
        try({
          setTimeLimit(elapsed = max(limit, 0.01), transient = TRUE)
          run_seeded(call, d)
        }, silent = TRUE)
        setTimeLimit()
        proc.time()[["elapsed"]] - begun - limit
      })
      min(repeated)
    }, 0)
    row_of(paste0("time limits, ", name, ", n = ",
                  format(call$n, scientific = FALSE)),
           "no more than a second late",
           sprintf("call %.1f s, at most %.2f s late", own, max(late)),
           max(late) <= 1)
  }))
}

part_interrupt <- function(names, steps) {
  code <- "library(kernmean); set.seed(1); x <- matrix(rnorm(20000), 4000)
    tools::pskill(Sys.getpid(), 0)
    system(sprintf('(sleep 1; kill -INT %d) &', Sys.getpid()))
    begun <- proc.time()[['elapsed']]
    said <- tryCatch({ repeat gram_spectrum(gram(x, kernel_rbf(1)), 'vectors')
      'ended' }, interrupt = \\(e) 'interrupted')
    late <- proc.time()[['elapsed']] - begun - 1
    before <- gc()[2, 2]
    for (i in 1:50) try({ setTimeLimit(elapsed = 0.01, transient = TRUE)
      gram(x, kernel_rbf(1)) }, silent = TRUE)
    setTimeLimit(); more <- gc()[2, 2] - before
    s <- sum(kernel_matrix(x[1:9, ], kernel = kernel_rbf(1)))
    k <- kernmean_threads(1)
    writeLines(paste(said, round(late, 2), round(more, 1), identical(s, sum(
      kernel_matrix(x[1:9, ], kernel = kernel_rbf(1)))), runif(1) < 1))"
  found <- run_code(code)
  words <- strsplit(utils::tail(found$lines, 1L), " ")[[1L]]
  row_of("SIGINT, then 50 time limits",
         "a second late at most, no memory kept, works afterwards",
         last_line(found),
         found$status == 0L && words[1L] == "interrupted" &&
           as.numeric(words[2L]) < 1 && as.numeric(words[3L]) < 5 &&
           all(words[4:5] == "TRUE"))
}

part_fork <- function(names, steps) {
  code <- "library(kernmean); library(parallel); set.seed(1)
    x <- matrix(rnorm(6000), 1200)
    work <- \\() sum(gram_spectrum(gram(x, kernel_rbf(1)))$values)
    one <- mccollect(mcparallel(work()))[[1]]
    parent <- work()
    many <- unlist(mclapply(1:4, \\(i) work(), mc.cores = 2))
    nested <- mccollect(mcparallel(mccollect(mcparallel(work()))[[1]]))[[1]]
    gone <- mcparallel({ work(); tools::pskill(Sys.getpid(), 9) })
    suppressWarnings(mccollect(gone))
    writeLines(paste(all(c(one, many, nested, work()) == parent)))"
  found <- run_code(code, timeout = 60)
  row_of("fork before and after threads, nested, killed",
         "the same bits, no hang", last_line(found),
         found$status == 0L && identical(utils::tail(found$lines, 1L), "TRUE"))
}

part_unload <- function(names, steps) {
  code <- "set.seed(1); x <- matrix(rnorm(6000), 1200)
    f <- \\() { g <- kernmean::gram(x, kernmean::kernel_rbf(1))
      list(g, sum(kernmean::gram_spectrum(g)$values)) }
    a <- f()
    for (i in 1:3) { unloadNamespace('kernmean')
      stopifnot(!'kernmean' %in% names(getLoadedDLLs())); b <- f() }
    same <- sum(kernmean::gram_spectrum(a[[1]])$values)
    unloadNamespace('kernmean')
    writeLines(paste(a[[2]] == b[[2]], same == b[[2]]))"
  found <- run_code(code, timeout = 60)
  row_of("unloaded and loaded again, three times, after threads",
         "the same bits, no crash at the end", last_line(found),
         found$status == 0L &&
           identical(utils::tail(found$lines, 1L), "TRUE TRUE"))
}

# A folder of so many kilobytes, NULL where none can be mounted.
small_disk <- function(kb) {
  folder <- tempfile("disk-")
  dir.create(folder)
  made <- suppressWarnings(system2(
    "mount", c("-t", "tmpfs", "-o", paste0("size=", kb, "k"), "tmpfs", folder),
    stdout = FALSE, stderr = FALSE
  ))
  if (made == 0L) folder
}

fill <- function(folder, leave) {
  file <- file.path(folder, "filler")
  command <- paste("cat /dev/zero >", file, "2>/dev/null")
  system2("sh", c("-c", shQuote(command)))
  system2("truncate", c("-s", paste0("-", leave), file))
}

density_run <- function(folder, ...) {
  run_child(c(shQuote(file.path(studies, "density.R")), "--quick", "--table",
              "3", "--sets", "glass", "--optimize", "weights", "--out",
              shQuote(folder)), ...)
}

# The table without the lines above it, which have the time it took; NULL where
# it is not there.
density_table <- function(folder) {
  file <- file.path(folder, "density.csv.gz")
  if (file.exists(file)) grep("^#", readLines(file), invert = TRUE,
                              value = TRUE)
}

part_disk <- function(names, steps) {
  folder <- small_disk(64)
  if (is.null(folder)) {
    return(row_of("full disk", "a clear error", "not tried: no tmpfs", TRUE))
  }
  on.exit(system2("umount", folder))
  fill(folder, 8192)
  code <- paste0("library(kernmean); set.seed(1); folder <- '", folder, "'
    x <- matrix(rnorm(4000), 800); m <- kme_landmarks(x, 60, kernel_rbf(1))
    said <- 'no warning'
    e <- tryCatch(withCallingHandlers(
      kme_sketch(list(x), m, checkpoint = file.path(folder, 'a'))$n,
      kernmean_warning_checkpoint = \\(w) said <<- conditionMessage(w)
    ), error = \\(e) paste(class(e)[1], conditionMessage(e)))
    kept <- list.files(file.path(folder, 'a'), full.names = TRUE)
    bad <- vapply(kept, \\(f) inherits(try(readRDS(f), TRUE), 'try-error'), NA)
    cat(sum(bad), 'damaged;', e, 'rows;', said, '\\n')")
  sketch <- run_code(code)
  said <- c(utils::tail(sketch$lines, 1L), "")[1L]
  unlink(file.path(folder, "a"), recursive = TRUE)
  fill(folder, 4096)
  study <- density_run(folder)
  rbind(
    row_of("full disk, checkpoint of a sketch",
           "a warning, the sketch, no damaged file", last_line(sketch),
           grepl("^0 damaged; 800 rows; cannot write", said)),
    row_of("full disk, study density.R", "status 2, no file under its name",
           last_line(study),
           study$status == 2L && is.null(density_table(folder)) &&
             any(grepl("cannot write", study$lines)))
  )
}

part_together <- function(names, steps) {
  alone <- tempfile("alone-")
  both <- tempfile("both-")
  dir.create(alone)
  dir.create(both)
  density_run(alone)
  jobs <- lapply(1:2, \(i) parallel::mcparallel(density_run(both)$status))
  status <- unlist(parallel::mccollect(jobs))
  same <- identical(density_table(alone), density_table(both))
  row_of("two runs of density.R in one folder", "both end, the right table",
         paste("status", toString(status), if (same) "same" else "OTHER",
               "table"), same && all(status == 0L))
}

part_damaged <- function(names, steps) {
  folder <- tempfile("cells-")
  dir.create(folder)
  density_run(folder)
  right <- density_table(folder)
  cells <- list.files(file.path(folder, "density-cells"), full.names = TRUE)
  damage <- list(
    empty = \(f) file.create(f),
    truncated = \(f) writeBin(utils::head(readBin(f, "raw", 1e6), 60), f),
    binary = \(f) writeBin(as.raw(1:200), f),
    `of another version` = \(f) saveRDS(list(key = "1|0.0", old = 1), f),
    `a number` = \(f) saveRDS(1, f)
  )
  do.call(rbind, lapply(names(damage), \(kind) {
    invisible(damage[[kind]](cells[1L]))
    found <- density_run(folder)
    named <- any(grepl(basename(cells[1L]), found$lines, fixed = TRUE))
    same <- identical(density_table(folder), right)
    row_of(paste("a cell's file is", kind), "named, computed again, same table",
           paste0("status ", found$status, if (named) ", named",
                  if (same) ", same table"),
           found$status == 0L && named && same)
  }))
}

parts <- list(memory = part_memory, threads = part_threads, polls = part_polls,
              limits = part_limits, interrupt = part_interrupt,
              fork = part_fork, unload = part_unload, disk = part_disk,
              together = part_together, damaged = part_damaged)

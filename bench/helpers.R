# What the benchmarks share: timing, peak memory, peers, tables.

library(kernmean)

# --- A busy machine ----------------------------------------------------------
# KERNMEAN_BUSY=1 Rscript bench/<name>.R: rows also show what the same takes
# beside a process that keeps one core busy, and the ratio to its time alone in
# the same run (medians of bursts that take turns).

busy_wanted <- nzchar(Sys.getenv("KERNMEAN_BUSY"))

# A child that spins until it is killed or this process is gone; its number.
start_spinning <- function() {
  file <- tempfile("spinning")
  on.exit(unlink(file))
  script <- paste0(
    "echo $$ > '", file, "'; while kill -0 ", Sys.getpid(),
    " 2> /dev/null; do i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; done"
  )
  system2("sh", c("-c", shQuote(script)), wait = FALSE)
  for (i in seq_len(1000)) {
    id <- if (file.exists(file)) readLines(file)
    if (length(id)) {
      return(as.integer(id))
    }
    Sys.sleep(0.005)
  }
  stop("no process to keep a core busy")
}

with_busy <- function(expression) {
  id <- start_spinning()
  on.exit(tools::pskill(id, tools::SIGKILL))
  force(expression)
}

# Seconds of each run of f, after one that warms up, until `span` has passed.
burst <- function(f, span) {
  f()
  seconds <- NULL
  while (sum(seconds) < span) {
    gc(FALSE)
    start <- as.double(Sys.time())
    f()
    seconds <- c(seconds, as.double(Sys.time()) - start)
  }
  seconds
}

# Medians alone and beside a busy process.
beside_busy <- function(f, rounds = 5, span = 0.5) {
  alone <- NULL
  beside <- NULL
  for (i in seq_len(rounds)) {
    alone <- c(alone, burst(f, span))
    beside <- c(beside, with_busy(burst(f, span)))
  }
  list(alone = median(alone), beside = median(beside))
}

# What best() returned, and what was measured beside it, for row().
found_beside <- new.env()
key_of <- function(seconds) sprintf("%a", seconds)

best_of <- function(f, times, seconds) {
  f()
  smallest <- min(vapply(seq_len(times), \(i) seconds(f), numeric(1)))
  if (busy_wanted) {
    assign(key_of(smallest), beside_busy(f, 3), found_beside)
  }
  smallest
}

# --- Timing ------------------------------------------------------------------

as_call <- function(code, frame) {
  f <- function() NULL
  body(f) <- code
  environment(f) <- frame
  f
}

# Smallest elapsed time in seconds over `times` runs, after one that warms up.
best <- function(expression, times = 5) {
  best_of(as_call(substitute(expression), parent.frame()), times, \(f) {
    gc(FALSE)
    system.time(f(), gcFirst = FALSE)[["elapsed"]]
  })
}

# Finer than system.time: repeats until a tenth of a second has passed.
best_short <- function(expression, times = 7) {
  best_of(as_call(substitute(expression), parent.frame()), times, \(f) {
    start <- proc.time()[["elapsed"]]
    count <- 0
    repeat {
      f()
      count <- count + 1
      passed <- proc.time()[["elapsed"]] - start
      if (passed > 0.1) break
    }
    passed / count
  })
}

# Seconds of the expressions, a row each, run in turn as often as `rounds` says
# after once to warm up: the speed of many machines drifts.
in_turn <- function(rounds, ...) {
  frame <- parent.frame()
  calls <- lapply(as.list(substitute(list(...)))[-1], as_call, frame)
  if (rounds > 1) for (f in calls) f()
  replicate(rounds, vapply(calls, \(f) {
    gc(FALSE)
    system.time(f(), gcFirst = FALSE)[["elapsed"]]
  }, numeric(1)))
}

# Not R's own, nor Debian's copy of it.
fast_blas <- !grepl("/blas/|libRblas", extSoftVersion()[["BLAS"]])

# What a row says of a number of operations: their share of limit, in 1e9 a
# second.
share_of <- function(limit, flops, seconds) {
  sprintf("%.0f%% of %.0f GF/s", 1e-7 * flops / seconds / limit, limit)
}

with_threads <- function(threads, expression) {
  before <- kernmean_threads(threads)
  on.exit(kernmean_threads(before))
  force(expression)
}

has <- function(package) requireNamespace(package, quietly = TRUE)

# What stands for a number that could not be measured; arithmetic keeps it.
unmeasured <- function(reason) structure(NA_real_, reason = reason)

reason_of <- function(value) {
  reason <- attr(value, "reason")
  paste("could not be measured:", if (is.null(reason)) "no number" else reason)
}

# What a peer takes.
measured <- function(package, expression) {
  if (has(package)) {
    expression
  } else {
    unmeasured(paste(package, "is not installed"))
  }
}

heading <- function(...) cat("\n", ..., "\n", sep = "")

row <- function(label, seconds, note = "") {
  shown <- if (is.na(seconds)) {
    reason_of(seconds)
  } else {
    sprintf("%9.1f ms  %s", 1000 * seconds, note)
  }
  cat(sprintf("  %-46s %s\n", label, shown))
  found <- if (!is.na(seconds)) get0(key_of(seconds), found_beside)
  if (!is.null(found)) {
    cat(sprintf("  %-46s %9.1f ms  %.2f times its median alone\n",
                "  beside a busy process", 1000 * found$beside,
                found$beside / found$alone))
  }
}

# A bar: what was asked, what was measured, and whether it is met; missed if it
# could not be measured.
bar <- function(label, ratio, asked, at_least = TRUE) {
  met <- !is.na(ratio) && (if (at_least) ratio >= asked else ratio <= asked)
  shown <- if (is.na(ratio)) {
    strrep(" ", 8)
  } else {
    sprintf(if (ratio < 0.01) "%8.0e" else "%8.2f", ratio)
  }
  cat(sprintf(
    "  -> %-43s %s   %s %s: %s\n", label, shown,
    if (at_least) "at least" else "at most", format(asked),
    if (met) "met" else if (is.na(ratio)) {
      paste("MISSED:", reason_of(ratio))
    } else {
      "MISSED"
    }
  ))
  invisible(met)
}

# Compiles bench/limit.c and returns a function(...): the number that it prints
# for these arguments.
limit_program <- function(here) {
  program <- tempfile("limit")
  source_dir <- file.path(here, "..", "src")
  built <- system2("cc", c("-O2", "-fopenmp", "-I", source_dir, "-I",
                           file.path(here, "..", "inst", "include"),
                           file.path(here, "limit.c"),
                           file.path(source_dir, "core", "products.c"),
                           "-o", program, "-lm"))
  function(...) {
    if (built != 0) {
      return(unmeasured("bench/limit.c does not compile"))
    }
    as.double(system2(program, c(...), stdout = TRUE))
  }
}

# function(n, d, threads): seconds of the bare loop over a Gram matrix.
bare_loop <- limit_program

memory_now <- function(field) {
  status <- readLines("/proc/self/status")
  line <- grep(paste0("^", field, ":"), status, value = TRUE)
  as.double(gsub("[^0-9]", "", line)) / 1024
}

# Extra peak resident size, in MB, of `code` run in a fresh R after `setup`.
peak_memory <- function(setup, code) {
  if (!file.exists("/proc/self/status")) {
    return(unmeasured("there is no /proc/self/status"))
  }
  script <- tempfile(fileext = ".R")
  on.exit(unlink(script))
  writeLines(c(
    paste("memory_now <-", paste(deparse(memory_now), collapse = "\n")),
    "library(kernmean)", "invisible(kme(matrix(rnorm(2000), 1000)))",
    setup, "invisible(gc())", "before <- memory_now('VmRSS')",
    code, "cat(memory_now('VmHWM') - before)"
  ), script)
  as.double(system2(file.path(R.home("bin"), "Rscript"), script, stdout = TRUE))
}

# The numbers that Python prints.
python <- function(lines) {
  interpreter <- Sys.which("python3")
  candidates <- unique(c("/usr/bin/python3", interpreter))
  for (command in candidates[file.exists(candidates)]) {
    script <- tempfile(fileext = ".py")
    writeLines(lines, script)
    out <- suppressWarnings(
      system2(command, script, stdout = TRUE, stderr = FALSE)
    )
    unlink(script)
    if (is.null(attr(out, "status"))) {
      return(as.double(out))
    }
  }
  unmeasured("no python3 with scikit-learn, or it failed")
}

cat("BLAS:   ", extSoftVersion()[["BLAS"]], "\nLAPACK: ", La_library(),
    "\nthreads of kernmean: ", kernmean_threads(), "\n", sep = "")

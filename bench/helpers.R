# What the benchmarks share: timing, peak memory, peers, tables.

library(kernmean)

# Smallest elapsed time in seconds over `times` runs, after one that warms up.
best <- function(expression, times = 5) {
  f <- function() NULL
  body(f) <- substitute(expression)
  environment(f) <- parent.frame()
  f()
  min(vapply(seq_len(times), \(i) {
    gc(FALSE)
    system.time(f(), gcFirst = FALSE)[["elapsed"]]
  }, numeric(1)))
}

# Finer than system.time: repeats until a tenth of a second has passed.
best_short <- function(expression, times = 7) {
  f <- function() NULL
  body(f) <- substitute(expression)
  environment(f) <- parent.frame()
  f()
  min(vapply(seq_len(times), \(i) {
    start <- proc.time()[["elapsed"]]
    count <- 0
    repeat {
      f()
      count <- count + 1
      passed <- proc.time()[["elapsed"]] - start
      if (passed > 0.1) break
    }
    passed / count
  }, numeric(1)))
}

with_threads <- function(threads, expression) {
  before <- kernmean_threads(threads)
  on.exit(kernmean_threads(before))
  force(expression)
}

has <- function(package) requireNamespace(package, quietly = TRUE)

heading <- function(...) cat("\n", ..., "\n", sep = "")

row <- function(label, seconds, note = "") {
  cat(sprintf("  %-46s %9.1f ms  %s\n", label, 1000 * seconds, note))
}

# A bar: what was asked, what was measured, and whether it is met.
bar <- function(label, ratio, asked, at_least = TRUE) {
  met <- if (at_least) ratio >= asked else ratio <= asked
  shown <- sprintf(if (ratio < 0.01) "%8.0e" else "%8.2f", ratio)
  cat(sprintf(
    "  -> %-43s %s   %s %s: %s\n", label, shown,
    if (at_least) "at least" else "at most", format(asked),
    if (met) "met" else "MISSED"
  ))
  invisible(met)
}

memory_now <- function(field) {
  status <- readLines("/proc/self/status")
  line <- grep(paste0("^", field, ":"), status, value = TRUE)
  as.double(gsub("[^0-9]", "", line)) / 1024
}

# Extra peak resident size, in MB, of `code` run in a fresh R after `setup`.
peak_memory <- function(setup, code) {
  if (!file.exists("/proc/self/status")) {
    return(NA)
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

# Milliseconds that Python prints, or NULL where it or scikit-learn is missing.
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
  NULL
}

cat("BLAS:   ", extSoftVersion()[["BLAS"]], "\nLAPACK: ", La_library(),
    "\nthreads of kernmean: ", kernmean_threads(), "\n", sep = "")

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

# Compiles bench/limit.c and returns a function(n, d, threads): its seconds.
bare_loop <- function(here) {
  program <- tempfile("limit")
  source_dir <- file.path(here, "..", "src")
  built <- system2("cc", c("-O2", "-fopenmp", "-I", source_dir,
                           file.path(here, "limit.c"), "-o", program, "-lm"))
  function(n, d, threads) {
    if (built != 0) {
      return(unmeasured("bench/limit.c does not compile"))
    }
    as.double(system2(program, c(n, d, threads), stdout = TRUE))
  }
}

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

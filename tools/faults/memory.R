# Memory denied: a call is run once to know how many addresses it takes, then
# under limits in between. Each time it must give the right numbers or an error
# of memory, and the same call with the same objects the right numbers after it.

memory_words <- "cannot allocate|memory exhausted|out of memory"

# The numbers in a result, in order.
numbers_of <- function(x) {
  if (inherits(x, "gram")) {
    as.vector(as.matrix(x))
  } else if (is.numeric(x) || is.logical(x)) {
    as.numeric(x)
  } else if (is.list(x)) {
    unlist(lapply(unclass(x), numbers_of), use.names = FALSE)
  }
}

# KB of an entry of /proc/self/status.
status_of <- function(name) {
  lines <- readLines("/proc/self/status")
  line <- grep(paste0("^", name, ":"), lines, value = TRUE)
  as.numeric(gsub("[^0-9]", "", line))
}

# KB above `base`, or no limit; TRUE if it holds.
limit_memory <- function(kb = 0) {
  .C("limit_addresses", as.double(kb), done = integer(1))$done == 0L
}

run_seeded <- function(call, d) {
  set.seed(2)
  suppressWarnings(call$run(d))
}

# In a process of its own: the outcome at each share of what the call takes.
deny_memory <- function(name, steps) {
  call <- calls[[name]]
  # R's compiler of code, run at the limit, crashes in R's own grep().
  compiler::enableJIT(0)
  .C("grow_stack", integer(1))
  set.seed(1)
  kept <- serialize(call$make(call$small), NULL)
  expected <- numbers_of(run_seeded(call, unserialize(kept)))
  invisible(gc(full = TRUE))
  peak <- max(status_of("VmPeak") - status_of("VmSize"), 2048)
  outcomes <- vapply(seq_len(steps), \(i) {
    d <- unserialize(kept)
    invisible(gc(full = TRUE))
    top <- status_of("VmSize") + peak * (i - 0.5) / steps
    limit_memory(top)
    found <- tryCatch(run_seeded(call, d), error = identity)
    limit_memory()
    outcome <- verdict_of(found, expected)
    again <- tryCatch(numbers_of(run_seeded(call, d)), error = identity)
    if (!isTRUE(all.equal(again, expected, tolerance = 1e-12))) {
      outcome <- paste0("OTHER: the call after it: ", if (is.list(again)) {
        conditionMessage(again)
      } else {
        all.equal(again, expected)[1L]
      })
    }
    outcome
  }, "")
  cat("need", round(peak / 1024), "MB\n")
  writeLines(outcomes)
}

verdict_of <- function(found, expected) {
  if (!inherits(found, "error")) {
    if (isTRUE(all.equal(numbers_of(found), expected, tolerance = 1e-12))) {
      return("right")
    }
    return("OTHER: another result")
  }
  words <- conditionMessage(found)
  if (grepl(memory_words, words)) "denied" else paste("OTHER:", words)
}

# Stops if an n x m matrix of doubles would not fit into memory, before it is
# allocated.
check_memory <- function(n, m, ..., copies = 1,
                         what = if (copies == 1) "a Gram matrix" else
                           "work on a Gram matrix") {
  n <- ceiling(as.double(n))
  m <- ceiling(as.double(m))
  bytes <- 8 * copies * n * m
  fault <- if (max(n, m) > .Machine$integer.max) {
    paste("has more rows or columns than the", .Machine$integer.max,
          "that a matrix can have")
  } else if (bytes >= 2^24 || !is.null(getOption("kernmean.memory"))) {
    # For small matrices the look at the free memory would take longer than the
    # work.
    available <- memory_available()
    if (bytes > available) {
      paste0("needs ", format_bytes(bytes), ", more than the ",
             format_bytes(available), " at hand")
    }
  }
  if (!is.null(fault)) {
    size <- format(c(n, m), scientific = FALSE, trim = TRUE)
    stop_kernmean("memory", what, " of ", size[1L], " x ", size[2L],
                  " doubles ", fault, "; ", ...)
  }
}

# Bytes this process may still use: the option, or what the system reports.
memory_available <- function() {
  limit <- getOption("kernmean.memory")
  if (is.null(limit)) system_memory() else
    take(limit, number(finite = FALSE), "kernmean.memory")
}

# The bytes that the system leaves the process: the least of the memory that
# Linux says is free, of what the control groups of the process leave it
# (versions 1 and 2, each within its parents; the cache of files does not
# count), and of the rest of its address space (ulimit -v). root: where these
# files stand.
system_memory <- function(root = "") {
  read <- \(...) {
    file <- paste0(root, ...)
    if (file.access(file, 4L) == 0L) readLines(file, warn = FALSE)
  }
  # The first number of the line with this start, or `without` if there is none.
  value <- \(lines, start, without) {
    line <- grep(paste0("^", start, "[^0-9a-z]*[0-9]"), lines, value = TRUE)
    if (length(line)) as.double(sub("^[^0-9]*([0-9]+).*", "\\1",
                                    substring(line[1L], nchar(start) + 1L)))
    else without
  }
  free <- c(
    1024 * value(read("/proc/meminfo"), "MemAvailable:", Inf),
    value(read("/proc/self/limits"), "Max address space", Inf) -
      1024 * value(read("/proc/self/status"), "VmSize:", 0)
  )
  groups <- grep("[:,]memory[:,]|^0::", read("/proc/self/cgroup"), value = TRUE)
  for (line in groups) {
    old <- !startsWith(line, "0::")
    words <- if (old) {
      c("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
    } else {
      c("memory.max", "memory.current", "")
    }
    path <- sub("^[^:]*:[^:]*:", "", line)
    repeat {
      group <- paste0("/sys/fs/cgroup", if (old) "/memory", path, "/")
      free <- c(free, value(read(group, words[1L]), "", Inf) -
                  value(read(group, words[2L]), "", 0) +
                  sum(vapply(c("active_file", "inactive_file"), \(cache) {
                    value(read(group, "memory.stat"),
                          paste0(words[3L], cache), 0)
                  }, 0)))
      if (dirname(path) == path) break
      path <- dirname(path)
    }
  }
  max(0, min(free))
}

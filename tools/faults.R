# Disturbs the installed package and prints what happened: fault, promise, and
# whether it was kept. Exit status 1 where a promise is broken.
#
#   Rscript tools/faults.R [PART ...] [--only REGEX] [--steps N]
#
# Parts: memory (addresses denied in the middle of each call), threads (denied
# when OpenMP wants to start some), polls (the longest time in each call without
# a look for interrupts), limits (setTimeLimit() in the middle of each call),
# interrupt (SIGINT), fork, unload, disk (full; needs root for a small tmpfs),
# together (two runs of a study in one folder), damaged (files of cells and
# checkpoints). All without a name. --only takes the calls of faults/calls.R
# that match. Linux, with a C compiler; seeded.
#
# In faults/: calls.R (the calls), parts.R (one function a part), memory.R (the
# child process of `memory`), faults.c (limits and clocks).

script <- grep("^--file=", commandArgs(), value = TRUE)
script <- gsub("~+~", " ", sub("^--file=", "", script), fixed = TRUE)
home <- file.path(normalizePath(dirname(script)), "faults")
studies <- normalizePath(file.path(home, "..", "..", "inst", "studies"))

read_arguments <- function(given) {
  found <- list(parts = character(), only = ".", steps = 12, child = NULL)
  while (length(given)) {
    name <- sub("^--", "", given[1L])
    if (!startsWith(given[1L], "--")) {
      found$parts <- c(found$parts, given[1L])
    } else if (name %in% names(found) || name == "child") {
      found[[name]] <- given[2L]
      given <- given[-1L]
    } else {
      stop("unknown: ", given[1L], call. = FALSE)
    }
    given <- given[-1L]
  }
  found$steps <- as.numeric(found$steps)
  found
}

# The C file, compiled to a folder that the children know too.
load_tools <- function() {
  box <- Sys.getenv("KERNMEAN_FAULTS", tempdir())
  library <- file.path(box, paste0("faults", .Platform$dynlib.ext))
  if (!file.exists(library)) {
    file.copy(file.path(home, "faults.c"), box)
    r <- file.path(R.home("bin"), "R")
    system2(r, c("CMD", "SHLIB", shQuote(file.path(box, "faults.c"))),
            stdout = FALSE)
    Sys.setenv(KERNMEAN_FAULTS = box)
  }
  dyn.load(library)
}

arguments <- read_arguments(commandArgs(TRUE))
load_tools()
for (file in c("calls.R", "memory.R", "parts.R")) source(file.path(home, file))

if (!is.null(arguments$child)) {
  deny_memory(arguments$child, arguments$steps)
  quit(save = "no")
}

names <- grep(arguments$only, names(calls), value = TRUE)
chosen <- if (length(arguments$parts)) arguments$parts else names(parts)
unknown <- setdiff(chosen, names(parts))
if (length(unknown)) stop("no such part: ", toString(unknown), call. = FALSE)
rows <- do.call(rbind, lapply(chosen, \(part) {
  found <- parts[[part]](names, arguments$steps)
  found <- cbind(part = part, found)
  for (i in seq_len(nrow(found))) {
    cat(if (found$kept[i]) "kept  " else "BROKEN  ",
        paste(unlist(found[i, c("part", "fault", "promise", "happened")]),
              collapse = " | "), "\n", sep = "")
  }
  found
}))
cat(sum(rows$kept), "promises kept,", sum(!rows$kept), "broken\n")
quit(save = "no", status = if (all(rows$kept)) 0L else 1L)

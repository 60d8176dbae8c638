# Calls every exported function and every method of the installed package with
# sound arguments on extreme data, hostile ones, damaged objects and in odd
# surroundings, and counts how the calls end.
#
#   Rscript tools/fuzz.R [--from SEED] [--calls N] [--functions REGEX]
#                        [--jobs N]
#   Rscript tools/fuzz.R --replay SEED [--compare FILE]
#   Rscript tools/fuzz.R --save FILE [--from SEED] [--calls N]
#   Rscript tools/fuzz.R --compare FILE [--jobs N]
#
# A call follows from its seed alone. It must end in a result without NaN, in an
# error of the package, in R's own words about an argument that is missing or
# unknown, or at its limit of time or memory, and leave R as it was; with a
# damaged object, in anything but a crash or a call that does not end. All else
# is "other", is listed, and is the exit status 1.
#
# --save keeps calls, mostly sound ones, with what they gave; --compare makes
# the same calls with another installed package (R_LIBS), lists what differs,
# and has the exit status 1 if anything does. fuzz/keep.R says what is compared.
#
# The parts: fuzz/world.R (data, hostile values, damage), fuzz/pool.R (objects),
# fuzz/scene.R and fuzz/recipes.R (sound arguments), fuzz/plan.R (a call from a
# seed), fuzz/run.R (the call and the verdict), fuzz/keep.R (results compared).

script <- grep("^--file=", commandArgs(), value = TRUE)
script <- gsub("~+~", " ", sub("^--file=", "", script), fixed = TRUE)
tools_folder <- normalizePath(dirname(script))
package <- "kernmean"

options_of <- function(given) {
  known <- c("from", "calls", "functions", "jobs", "replay", "worker", "list",
             "save", "compare", "keep")
  options <- list(from = "1", calls = "1000", functions = "", jobs = "1")
  i <- 1L
  while (i < length(given) && sub("^--", "", given[i]) %in% known) {
    options[[sub("^--", "", given[i])]] <- given[i + 1L]
    i <- i + 2L
  }
  if (i <= length(given)) {
    stop("unknown or without a value: ", given[i], call. = FALSE)
  }
  numbers <- intersect(names(options), c("from", "calls", "jobs", "replay"))
  for (name in numbers) {
    number <- suppressWarnings(as.numeric(options[[name]]))
    if (is.na(number) || number < 0 || number >= 2^31 || number %% 1 != 0) {
      stop("--", name, " must be a whole number below 2^31", call. = FALSE)
    }
    options[[name]] <- number
  }
  for (name in intersect(names(options), c("save", "compare"))) {
    options[[name]] <- file.path(normalizePath(dirname(options[[name]])),
                                 basename(options[[name]]))
  }
  options
}

# A folder of its own, and no network: a proxy that is not there.
prepare <- function() {
  folder <- tempfile("fuzz-")
  dir.create(folder)
  nowhere <- "http://127.0.0.1:9"
  Sys.setenv(http_proxy = nowhere, https_proxy = nowhere, ftp_proxy = nowhere,
             R_USER_CACHE_DIR = folder, LANGUAGE = "en")
  setwd(folder)
  options(device = \(...) grDevices::pdf(NULL), timeout = 2, warn = 0,
          useFancyQuotes = FALSE, warnPartialMatchDollar = FALSE,
          warnPartialMatchArgs = FALSE, warnPartialMatchAttr = FALSE)
  suppressPackageStartupMessages(library(package, character.only = TRUE))
  for (other in c("generics", "ggplot2", "bit64")) {
    suppressPackageStartupMessages(requireNamespace(other, quietly = TRUE))
  }
  for (file in c("world", "pool", "scene", "recipes", "plan", "run",
                 "keep")) {
    sys.source(file.path(tools_folder, "fuzz", paste0(file, ".R")), globalenv(),
               keep.source = FALSE)
  }
  fill_classes()
  find_entries(package)
}

# Seeds from `from` on whose function matches.
choose_seeds <- function(options, found) {
  if (!nzchar(options$functions)) {
    return(options$from + seq_len(options$calls) - 1)
  }
  if (!any(grepl(options$functions, names(found$entries)))) {
    stop("no function matches ", options$functions, call. = FALSE)
  }
  seeds <- numeric()
  seed <- options$from
  while (length(seeds) < options$calls) {
    start_seed(seed)
    fits <- grepl(options$functions, draw_entry(found)$name)
    if (fits) seeds <- c(seeds, seed)
    seed <- seed + 1
  }
  seeds
}

# Calls that are kept: the folder with a file for each, what a worker is told of
# it, and those of before.
keeping <- FALSE
kept_folder <- NULL
worker_options <- NULL
old <- NULL

start_keeping <- function(options) {
  if (!is.null(options$compare)) old <<- readRDS(options$compare)
  keeping <<- !is.null(options$save %||% options$compare %||% options$keep)
  if (!keeping) return()
  modes <<- kept_modes
  limit_seconds <<- kept_seconds
  kept_folder <<- options$keep %||% tempfile("kept-")
  dir.create(kept_folder, FALSE)
  worker_options <<- paste("--keep", shQuote(kept_folder), if (!is.null(old)) {
    paste("--compare", shQuote(options$compare))
  })
}

finish_keeping <- function(file, seeds) {
  files <- file.path(kept_folder, whole(seeds))
  names(files) <- whole(seeds)
  new <- lapply(files[file.exists(files)], readRDS)
  if (!is.null(old)) return(compare(old, new))
  saveRDS(new, file)
  TRUE
}

plan_of <- function(seed, found) {
  plan <- old[[whole(seed)]]$plan
  plan %||% if (keeping) kept_plan(seed, found) else make_plan(seed, found)
}

# A worker takes seeds from a file and writes a line before and after each call.
work <- function(seeds, file, found) {
  log <- file(file, "a")
  for (seed in seeds) {
    cat("@", whole(seed), "\n", sep = "", file = log)
    flush(log)
    end <- run_plan(plan_of(seed, found), found)
    if (!is.null(kept_folder) && !is.null(end$kept)) {
      saveRDS(end$kept, file.path(kept_folder, whole(seed)), compress = FALSE)
    }
    unlink(list.files(".", all.files = TRUE, no.. = TRUE), recursive = TRUE)
    what <- if (end$outcome %in% c("other", "stale")) end$what
    what <- gsub("[\t\n\r]+", " ", enc2utf8(what %||% ""))
    cat(whole(seed), end$outcome, end$entry, end$mode,
        round(1000 * end$seconds), what, sep = "\t", file = log)
    cat("\n", file = log)
    flush(log)
  }
}

whole <- function(x) format(x, scientific = FALSE, trim = TRUE)

memory_kb <- 4e6
slice_seconds <- 540

# Seeds in a process of its own; where it dies, the next one goes on behind.
run_slice <- function(seeds) {
  lines <- character()
  while (length(seeds)) {
    todo <- tempfile()
    log <- tempfile()
    writeLines(whole(seeds), todo)
    said <- start_worker(todo, log)
    new <- if (file.exists(log)) {
      readLines(log, warn = FALSE, encoding = "UTF-8")
    }
    unlink(c(todo, log))
    begun <- sub("^@", "", grep("^@", new, value = TRUE))
    new <- grep("^@", new, value = TRUE, invert = TRUE)
    said <- utils::tail(said[nzchar(said)], 3L)
    if (length(begun) == 0L) {
      stop("a worker did not start: ", paste(said, collapse = "\n"),
           call. = FALSE)
    }
    lines <- c(lines, new)
    lost <- setdiff(begun, sub("\t.*", "", new))
    if (length(lost)) {
      died <- paste("process died:", paste(gsub("\t", " ", said),
                                           collapse = " / "))
      lines <- c(lines, paste(lost, "other", "", "", "0", died, sep = "\t"))
    }
    seeds <- seeds[-seq_len(match(utils::tail(begun, 1L), whole(seeds)))]
  }
  lines
}

# What it printed; results go to the file `log`.
start_worker <- function(todo, log) {
  command <- paste(
    "ulimit -c 0; ulimit -v", whole(memory_kb), "2>/dev/null;",
    "OMP_WAIT_POLICY=passive exec",
    shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script),
    "--worker", shQuote(todo), "--list", shQuote(log), worker_options
  )
  suppressWarnings(system2("sh", c("-c", shQuote(command)), stdout = TRUE,
                           stderr = TRUE, timeout = slice_seconds))
}

# Of one kind are messages that differ in numbers and quoted words only.
plain <- function(what) {
  what <- gsub("'[^']*'|\"[^\"]*\"|\u2018[^\u2019]*\u2019", "'.'", what)
  gsub("-?[0-9]+([.][0-9]+)?(e[+-]?[0-9]+)?", "#", what)
}

read_ends <- function(lines, found) {
  parts <- strsplit(paste0(lines, "\t"), "\t", fixed = TRUE)
  parts <- lapply(parts, \(p) c(p, rep("", 6L))[1:6])
  ends <- as.data.frame(do.call(rbind, parts))
  names(ends) <- c("seed", "outcome", "entry", "mode", "ms", "what")
  ends$ms <- as.numeric(ends$ms)
  # Of a process that died the function is known by the seed.
  for (i in which(!nzchar(ends$entry))) {
    plan <- plan_of(as.numeric(ends$seed[i]), found)
    ends$entry[i] <- plan$entry$name
    ends$mode[i] <- plan$mode
  }
  ends
}

show_others <- function(other) {
  key <- paste(other$entry, plain(other$what), sep = "\r")
  first <- other[!duplicated(key), ]
  first$count <- as.vector(table(key)[key[!duplicated(key)]])
  first <- first[order(-first$count, first$entry), ]
  cat(sprintf("%4d  %s  seed %s (%s): %s\n", first$count, first$entry,
              first$seed, first$mode, substr(first$what, 1L, 200L)), sep = "")
}

report <- function(ends, seconds, left_out) {
  other <- ends[ends$outcome == "other", ]
  if (nrow(other)) show_others(other)
  stale <- unique(ends$what[ends$outcome == "stale"])
  if (length(stale)) cat(paste0("stale: ", stale, "\n"), sep = "")
  if (length(left_out)) cat("no object for", toString(left_out), "\n")
  words <- c(result = "results", classed = "errors of the package",
             argument = "R's errors about arguments",
             limit = "at their limit of time or memory",
             damaged = "R's errors about damaged objects", stale = "stale",
             other = "other")
  counts <- table(factor(ends$outcome, names(words)))
  cat(nrow(ends), " calls of ", length(unique(ends$entry)), " functions in ",
      round(seconds), " s (", round(mean(ends$ms)), " ms each): ",
      paste(counts, words, collapse = ", "), "\n", sep = "")
  nrow(other) == 0L && nrow(ends) > 0L
}

replay <- function(seed, found) {
  plan <- plan_of(seed, found)
  cat("# ", plan$entry$name, ", ", plan$mode, "\n", sep = "")
  note <<- function(...) cat("# damage: ", ..., "\n", sep = "")
  end <- run_plan(plan, found, tell = TRUE)
  cat("# ", end$outcome, if (!is.null(end$what)) ": ", end$what, "\n", sep = "")
  calls <- vapply(end$calls, \(call) substr(deparse(call)[1L], 1L, 120L), "")
  outer <- max(0L, grep("^withCallingHandlers", calls)[1L], na.rm = TRUE)
  calls <- calls[seq_along(calls) > outer]
  if (length(calls)) cat(paste0("#   ", calls, "\n"), sep = "")
  end$outcome != "other"
}

main <- function() {
  options <- options_of(commandArgs(TRUE))
  if (!is.null(options$worker)) {
    seeds <- as.numeric(readLines(options$worker))
    found <- prepare()
    start_keeping(options)
    work(seeds, options$list, found)
    return(TRUE)
  }
  if (!startsWith(script, "/")) script <<- file.path(getwd(), script)
  found <- prepare()
  start_keeping(options)
  if (!is.null(options$replay)) {
    return(replay(options$replay, found))
  }
  begun <- proc.time()[[3L]]
  seeds <- if (is.null(old)) choose_seeds(options, found) else
    as.numeric(names(old))
  slice <- if (keeping) 250L else 1000L
  slices <- split(seeds, (seq_along(seeds) - 1L) %/% slice)
  jobs <- min(options$jobs, length(slices), parallel::detectCores())
  ends <- if (jobs > 1) {
    parallel::mclapply(slices, run_slice, mc.cores = jobs,
                       mc.preschedule = FALSE)
  } else {
    lapply(slices, run_slice)
  }
  failed <- vapply(ends, inherits, NA, "try-error")
  if (any(failed)) stop(ends[[which(failed)[1L]]])
  fine <- is.null(old) &&
    report(read_ends(unlist(ends), found), proc.time()[[3L]] - begun,
           found$left_out)
  if (keeping) finish_keeping(options$save, seeds) else fine
}

if (!main()) quit(status = 1L)

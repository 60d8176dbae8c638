# Runs tests of the installed package, the way tools/test and tools/slow.sh do.
#
#   Rscript tools/suite.R [--queue QUEUE] FOLDER COUNTS [SHARE] [FILES] [TESTS]
#
# FOLDER   tests/testthat of a copy: snapshots may be written
# COUNTS   a file for "passed failed skipped warnings"
# SHARE    0/2 is every second file, 1/2 the others (default: 0/1, all)
# FILES    a regular expression for the names of the files, without test- and .R
# TESTS    the same of the tests in each file as SHARE of the files
# QUEUE    a folder, empty at first: each file goes to the first of several
#          processes that makes a folder of its name there

library(testthat)
args <- commandArgs(TRUE)
queue <- if (args[1L] == "--queue") args[2L]
if (!is.null(queue)) args <- args[-(1:2)]
given <- function(i, default) if (length(args) < i) default else args[i]
folder <- args[1L]
in_share <- function(count, share) {
  share <- as.integer(strsplit(share, "/")[[1L]])
  seq_len(count) %% share[2L] == share[1L]
}

# Leaves a share of the tests and all that stands between tests.
thin_out <- function(file, share) {
  code <- parse(file, keep.source = TRUE)
  keep <- rep(TRUE, length(code))
  tests <- which(vapply(code, \(x) identical(x[[1L]], quote(test_that)), NA))
  keep[tests] <- in_share(length(tests), share)
  lines <- lapply(attr(code, "srcref")[keep], as.character)
  writeLines(unlist(lines), file)
}

names <- sub("^test-(.*)[.]R$", "\\1", list.files(folder, "^test-.*[.]R$"))
names <- names[in_share(length(names), given(3L, "0/1"))]
names <- grep(given(4L, ""), names, value = TRUE)
if (length(names) == 0L) stop("no test file matches")
if (given(5L, "0/1") != "0/1") {
  copy <- tempfile("tests")
  dir.create(copy)
  file.copy(list.files(folder, full.names = TRUE), copy, recursive = TRUE)
  folder <- copy
  for (name in names) {
    thin_out(file.path(folder, paste0("test-", name, ".R")), args[5L])
  }
}

# The results of the files that match.
run_tests <- function(names) {
  results <- test_dir(
    folder, package = "kernmean", load_package = "installed",
    filter = paste0("^(", paste(names, collapse = "|"), ")$"),
    reporter = "check", stop_on_failure = FALSE
  )
  unlist(lapply(results, `[[`, "results"), recursive = FALSE)
}

# Long files first: what is left at the end should be short. The size of a file
# stands for its time, but for those in `slow`, which compute most.
slow <- c("hsic", "density", "center-krylov", "marginal", "density-shape")
run_queue <- function(names) {
  size <- file.size(file.path(folder, paste0("test-", names, ".R")))
  names <- names[order(!names %in% slow, -size)]
  results <- list()
  for (name in names) {
    if (!dir.create(file.path(queue, name), showWarnings = FALSE)) next
    cat("--- ", name, "\n", sep = "")
    results <- c(results, run_tests(name))
  }
  results
}

# The rest is one expression that ends R: a test that forks may set back how far
# this file was read, and R would read on from there. What is put before this
# file may define report(passed), FALSE if it finds something wrong.
{
  all <- if (is.null(queue)) run_tests(names) else run_queue(names)
  is <- function(what) {
    sum(vapply(all, inherits, NA, paste0("expectation_", what)))
  }
  failed <- is("failure") + is("error")
  cat(is("success"), failed, is("skip"), is("warning"), "\n", file = args[2L])
  cat(is("success"), "expectations met,", failed, "not,", is("skip"),
      "tests skipped\n")
  well <- failed == 0L && (is("success") > 0L || !is.null(queue))
  if (exists("report")) well <- report(is("success")) && well
  quit(status = if (well) 0L else 1L)
}

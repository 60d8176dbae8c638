# Which errors and warnings does no test provoke?
#
#   Rscript tools/messages.R [FILES]
#
# Runs the tests of the installed package, or those whose names match the
# regular expression FILES, in this process, and notes each call of
# stop_input(), stop_kernmean() and warn_kernmean() that is reached. Prints the
# calls in R/ that were not, and those that another is equal to. What tests
# provoke in other processes is not seen.

files <- commandArgs(TRUE)
script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
root <- normalizePath(file.path(dirname(script), ".."))
heads <- c("stop_input", "stop_kernmean", "warn_kernmean")

# All calls of these in an expression.
find_calls <- function(code) {
  if (!is.recursive(code)) {
    return(NULL)
  }
  mine <- is.call(code) && is.symbol(code[[1L]]) &&
    as.character(code[[1L]]) %in% heads
  c(if (mine) list(code), unlist(lapply(as.list(code), \(part) {
    if (!missing(part)) find_calls(part)
  })))
}
rooms <- list.files(file.path(root, "R"), full.names = TRUE)
calls <- do.call(rbind, lapply(rooms, \(room) {
  found <- find_calls(as.list(parse(room, keep.source = FALSE)))
  if (length(found)) {
    data.frame(room = basename(room), call = vapply(found, deparse1, ""))
  }
}))
calls <- calls[!calls$room %in% "condition.R", ]

reached <- new.env()
for (name in heads) {
  f <- utils::getFromNamespace(name, "kernmean")
  body(f) <- bquote({
    assign(deparse1(sys.call()), TRUE, .(reached))
    .(body(f))
  })
  utils::assignInNamespace(name, f, "kernmean")
}
Sys.setenv(NOT_CRAN = "true")
folder <- file.path(tempfile(), "testthat")
dir.create(folder, recursive = TRUE)
file.copy(list.files(file.path(root, "tests", "testthat"), full.names = TRUE),
          folder, recursive = TRUE)
testthat::test_dir(folder, filter = if (length(files)) files,
                   package = "kernmean", load_package = "installed",
                   reporter = "silent", stop_on_failure = FALSE)

show <- \(rows) {
  cat(sprintf("  R/%s: %s\n", rows$room, substr(rows$call, 1, 150)), sep = "")
}
missed <- calls[!calls$call %in% ls(reached), ]
show(missed)
cat(nrow(missed), "of", nrow(calls), "calls were not reached\n")
same <- duplicated(calls$call) | duplicated(calls$call, fromLast = TRUE)
same <- calls[same, ]
show(same[order(same$call), ])
cat(nrow(same), "calls are the same as another\n")

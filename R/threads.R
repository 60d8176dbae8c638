#' Number of threads
#'
#' Asks for or sets the number of threads that the package's own loops use.
#'
#' The limit at load is the number of processors the process may use, within the
#' environment variables `OMP_NUM_THREADS` and `OMP_THREAD_LIMIT`, and at most 2
#' under `R CMD check`. Results do not depend on it: sums are reduced in a fixed
#' order, bit for bit the same for any number of threads. A forked child (as of
#' `parallel::mclapply()`) works on one thread. The BLAS keeps its own threads;
#' this function does not touch them.
#'
#' @param threads `NULL` to ask, a whole number of at least 1 to set, or
#'   `"default"` for the limit at load.
#' @return The limit that held before the call, invisibly if it was set.
#' @examples
#' before <- kernmean_threads(1)
#' kernmean_threads()
#' kernmean_threads(before)
#' @export
kernmean_threads <- function(threads = NULL) {
  if (is.null(threads)) {
    return(.Call(C_r_threads, NULL))
  }
  wanted <- if (identical(threads, "default")) {
    default_threads()
  } else {
    check_count(threads, "threads")
  }
  invisible(.Call(C_r_threads, wanted))
}

# 0 lets the core choose; R CMD check allows no more than 2.
default_threads <- function() {
  checking <- tolower(Sys.getenv("_R_CHECK_LIMIT_CORES_"))
  if (checking %in% c("", "false")) 0L else 2L
}

.onLoad <- function(libname, pkgname) {
  if (default_threads() > 0L && .Call(C_r_threads, NULL) > default_threads()) {
    .Call(C_r_threads, default_threads())
  }
}

.onUnload <- function(libpath) {
  library.dynam.unload("kernmean", libpath)
}

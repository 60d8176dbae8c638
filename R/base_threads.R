#' Number of threads
#'
#' Asks for or sets the number of threads that the package's own loops use.
#'
#' The limit at load is the number of processors the process may use, within the
#' environment variables `OMP_NUM_THREADS` and `OMP_THREAD_LIMIT`, on Linux also
#' within the quota of a container (of its control groups, rounded up), and at
#' most 2 under `R CMD check`. Results do not depend on it: sums are reduced in
#' a fixed order, bit for bit the same for any number of threads. A forked child
#' (as of `parallel::mclapply()`) works on one thread, and says so, whatever it
#' sets; where it loads the package itself and package parallel did not fork it,
#' this holds on Linux. The BLAS keeps its own threads; this function does not
#' touch them. Loops of less than about a million operations, a few tenths of a
#' millisecond, run on one thread: on a busy machine others would start later
#' than the loop ends.
#'
#' Threads need OpenMP when the package is compiled. CRAN's builds for macOS are
#' without it, and so is an installation from source with a compiler that has
#' none: the package then works on one thread, whatever is asked for, and the
#' first call of this function in a session says so by a message of class
#' `kernmean_message_openmp`. <https://mac.r-project.org/openmp/> tells how to
#' install packages with OpenMP on macOS.
#'
#' @section The same bits on all machines: The loops use what the processor has,
#' AVX2 or AVX-512, and other instructions round otherwise: last bits of sums
#' differ between machines, and where a curve is flat what is chosen on it a
#' little more (the \eqn{\lambda}{lambda} of F-KMSE by 1e-5 of it). With the
#' environment variable `KERNMEAN_LEVEL` set to `baseline` when the package is
#' loaded the loops give the same bits on all processors of a kind, at several
#' times the time for kernel values; `avx2` and `avx512` do so among those
#' that have them. R's BLAS, in products and eigenvalues, has bits of its own.
#'
#' @param threads `NULL` to ask, a whole number of at least 1 to set, or
#'   `"default"` for the limit at load.
#' @return The limit that held before the call, invisibly if it was set.
#' @seealso [glossary]
#' @examples
#' before <- kernmean_threads(1)
#' kernmean_threads()
#' kernmean_threads(before)
#' @export
kernmean_threads <- function(threads = NULL) {
  threads <- take(threads, maybe(count(), "default"))
  openmp <- .Call(C_r_openmp)
  tell_serial(openmp)
  if (is.null(threads)) {
    return(.Call(C_r_threads, NULL))
  }
  if (identical(threads, "default")) threads <- default_threads()
  invisible(.Call(C_r_threads, if (openmp) threads else 1L))
}

told <- new.env(parent = emptyenv())

# Says once in a session why there is only one thread; `said` remembers that.
tell_serial <- function(openmp, said = told) {
  if (openmp || !is.null(said$serial)) {
    return(invisible())
  }
  said$serial <- TRUE
  message(structure(
    class = c("kernmean_message_openmp", "message", "condition"),
    list(message = paste0(
      "kernmean was compiled without OpenMP and works on one thread, ",
      "see help(\"kernmean_threads\")\n"
    ), call = NULL)
  ))
}

# The value of an expression, computed on one thread. In many short pieces of
# work threads would wait for each other longer than they work.
on_one_thread <- function(value) {
  before <- .Call(C_r_threads, 1L)
  on.exit(.Call(C_r_threads, before))
  force(value)
}

# The limit on threads when the package is loaded: 0 lets the core choose, 2 is
# what R CMD check allows, and -1 says that the process was forked. The package
# parallel knows that even where the system does not tell the core.
default_threads <- function() {
  # Windows, which forks nothing, has no isChild().
  is_child <- if ("parallel" %in% loadedNamespaces()) {
    get0("isChild", asNamespace("parallel"), inherits = FALSE)
  }
  if (is.function(is_child) && is_child()) return(-1L)
  checking <- tolower(Sys.getenv("_R_CHECK_LIMIT_CORES_"))
  if (checking %in% c("", "false")) 0L else 2L
}

.onLoad <- function(libname, pkgname) {
  if (.Call(C_r_all_finite, NaN)) {
    stop_kernmean("build", "kernmean was compiled with -ffast-math or -Ofast ",
                  "and does not see missing values; install it without these ",
                  "flags, which may stand in ~/.R/Makevars")
  }
  limit <- default_threads()
  if (limit && .Call(C_r_threads, NULL) > limit) .Call(C_r_threads, limit)
  pin_level(Sys.getenv("KERNMEAN_LEVEL"))
}

# Limits the loops of the core to a set of processor instructions, by its name;
# "" sets no limit.
pin_level <- function(name) {
  level <- match(name, c("baseline", "avx2", "avx512")) - 1L
  if (!is.na(level)) .Call(C_r_isa, level)
  if (nzchar(name) && !identical(.Call(C_r_isa, NULL), level)) {
    warn_kernmean("KERNMEAN_LEVEL must be baseline, avx2 or avx512, and one ",
                  "that the processor has, not '", name, "'; loops use the ",
                  "highest that there is", kind = "level")
  }
}

.onUnload <- function(libpath) {
  library.dynam.unload("kernmean", libpath)
}

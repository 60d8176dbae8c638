# Classed conditions. Messages quote the argument, say what it must be and
# then what came: "'lambda' must be a positive number, not -1".

stop_kernmean <- function(kind, ...) {
  stop(errorCondition(
    paste0(...),
    class = c(paste0("kernmean_error_", kind), "kernmean_error"),
    call = user_call()
  ))
}

stop_input <- function(...) stop_kernmean("input", ...)

warn_kernmean <- function(..., kind = NULL) {
  warning(warningCondition(
    paste0(...),
    class = c(if (!is.null(kind)) paste0("kernmean_warning_", kind),
              "kernmean_warning"),
    call = user_call()
  ))
}

# The value of an expression whose warnings of this kind are not shown, since
# the user has seen them before.
without_warning <- function(kind, value) {
  withCallingHandlers(value, warning = \(w) {
    if (inherits(w, paste0("kernmean_warning_", kind))) {
      invokeRestart("muffleWarning")
    }
  })
}

# A list of the value of an expression and of the `warnings` of the package on
# the way, which are not shown.
hold_warnings <- function(value) {
  held <- list()
  value <- withCallingHandlers(value, kernmean_warning = \(w) {
    held[[length(held) + 1L]] <<- w
    invokeRestart("muffleWarning")
  })
  list(value = value, warnings = held)
}

# C code (glue_check) calls this with the status of a core routine that failed.
stop_numeric <- function(routine, status, info) {
  what <- c("met a matrix that is not positive definite", "did not converge")
  stop_kernmean(
    "numeric", "the routine '", routine, "' ", what[status],
    " (info = ", info, ")"
  )
}

# The outermost call into the package: what the user typed.
user_call <- function() {
  home <- environment(user_call)
  for (i in seq_len(sys.nframe())) {
    if (identical(topenv(environment(sys.function(i))), home)) {
      return(sys.call(i))
    }
  }
  NULL
}

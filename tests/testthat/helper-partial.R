# A field that is taken by the beginning of its name is an error in every test:
# where there is no field `h`, x$h would be x$harmless.

options(warnPartialMatchDollar = TRUE)

# What another package does is its own affair.
of_others <- function(value) {
  old <- options(warnPartialMatchDollar = FALSE)
  on.exit(options(old))
  value
}

test_that <- function(desc, code) {
  stop_partial <- \(w) {
    if (grepl("^partial match of", conditionMessage(w))) {
      stop(conditionMessage(w), " in ", deparse1(conditionCall(w)))
    }
  }
  eval.parent(bquote(testthat::test_that(.(desc), {
    withCallingHandlers(.(substitute(code)), warning = .(stop_partial))
  })))
}

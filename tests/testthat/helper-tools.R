# What several test files need: kernels with their twins, threads, instruction
# levels, and errors with their classes.

# Tests that CRAN skips, and snapshots; see tests/README.md.
if (identical(Sys.getenv("KERNMEAN_EXTENDED_TESTS"), "true")) {
  Sys.setenv(NOT_CRAN = "true")
}

# Runs code on so many threads, then restores the limit.
with_threads <- function(threads, code) {
  before <- kernmean_threads(threads)
  work <- .Call(C_r_work_per_thread, 65536)
  on.exit({
    kernmean_threads(before)
    .Call(C_r_work_per_thread, work)
  })
  force(code)
}

# Runs code with loops compiled for at most this level of instructions.
with_isa <- function(level, code) {
  before <- .Call(C_r_isa, level)
  on.exit(.Call(C_r_isa, before))
  force(code)
}

# The levels this processor has, lowest first.
isa_levels <- function() {
  before <- .Call(C_r_isa, 2L)
  on.exit(.Call(C_r_isa, before))
  0:.Call(C_r_isa, NULL)
}

# Largest difference on the scale of the largest value (at least 1).
relative_error <- function(got, want) {
  max(abs(got - want)) / max(1, abs(want))
}

# Each call of the list must raise kernmean_error and `class`, with the call
# that the user typed. Returns calls and messages as lines for a snapshot.
refusals <- function(calls, class = "kernmean_error_input",
                     env = parent.frame()) {
  lines <- lapply(calls, function(call) {
    error <- tryCatch(eval(call, env), error = identity)
    label <- deparse1(call)
    expect_true(inherits(error, class), label = label)
    expect_true(inherits(error, "kernmean_error"), label = label)
    expect_false(is.null(conditionCall(error)), label = label)
    c(paste(">", label),
      paste0("  ", strsplit(conditionMessage(error), "\n")[[1L]]))
  })
  unlist(lines)
}

# The same, as the snapshot of a test.
expect_refusals <- function(calls, class = "kernmean_error_input",
                            env = parent.frame()) {
  lines <- refusals(calls, class, env)
  expect_snapshot(writeLines(lines))
}

# One call that is refused, with words of its message.
refused <- function(code, words = NULL, ...) {
  expect_error(code, words, ..., class = "kernmean_error_input")
}

# Draws on a device that shows nothing.
on_device <- function(code) {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  force(code)
}

# Equal up to a relative error; a failure shows both expressions.
expect_near <- function(got, want, tolerance) {
  expect_equal(got, want, tolerance = tolerance,
               label = deparse1(substitute(got)),
               expected.label = deparse1(substitute(want)))
}

# Columns as sample.int() draws them one after the other; of two groups the
# smaller is drawn, and takes the places of its group.
draw_columns <- function(sizes, B) {
  n <- sum(sizes)
  vapply(seq_len(B), \(b) {
    drawn <- sample.int(n, if (length(sizes) == 2L) min(sizes) else n)
    column <- c(drawn, setdiff(seq_len(n), drawn))
    if (length(drawn) < sizes[1L]) rev(column) else column
  }, integer(n))
}

# Columns of permutations as random ones are drawn after a seed.
draw_after <- function(seed, sizes, B) {
  set.seed(seed)
  draw_columns(sizes, B)
}

# Did `code` get to its end under a limit of 0.02 s? A routine that asks for no
# interrupt does, and the limit strikes later.
finishes <- function(code) {
  done <- FALSE
  on.exit(setTimeLimit())
  message <- tryCatch({
    setTimeLimit(elapsed = 0.02, transient = TRUE)
    force(code)
    done <- TRUE
    ""
  }, error = conditionMessage)
  # Else it may strike in the expectation.
  setTimeLimit()
  expect_match(message, "time limit")
  done
}

# How a call ended: with a result, or with an error of ours.
expect_in_outcomes <- function(outcome, label) {
  testthat::expect(outcome %in% c("result", "ours"),
                   paste0(label, ": ", outcome))
}

# The first n numbers of splitmix64 over 2^64, rounded down to 53 bits, in limbs
# of 16 bits, the lowest first.
sequence_R <- function(n) {
  times <- function(a, b) {
    product <- vapply(1:4, \(k) sum(a[1:k] * b[k:1]), 0)
    for (k in 1:3) product[k + 1] <- product[k + 1] + product[k] %/% 65536
    product %% 65536
  }
  mix <- function(a, shift) {
    above <- c(a[-1], 0, 0)
    bits <- shift - 16
    bitwXor(a, above[1:4] %/% 2^bits +
              above[2:5] %% 2^bits * 2^(16 - bits)) + 0
  }
  limbs <- \(x) strtoi(substring(x, c(13, 9, 5, 1), c(16, 12, 8, 4)), 16) + 0
  vapply(seq_len(n), \(i) {
    z <- times(limbs("9e3779b97f4a7c15"), c(i %% 65536, i %/% 65536, 0, 0))
    z <- times(mix(z, 30), limbs("bf58476d1ce4e5b9"))
    z <- times(mix(z, 27), limbs("94d049bb133111eb"))
    z <- mix(z, 31)
    sum((z - c(z[1] %% 2048, 0, 0, 0)) * 2^(16 * 0:3 - 64))
  }, 0)
}

# Folds in the order of this sequence, going on from stratum to stratum.
hashed_R <- function(n, folds, strata = rep(1, n)) {
  of <- integer(n)
  of[order(strata, sequence_R(n))] <- rep_len(seq_len(min(folds, n)), n)
  of
}

# Five deals of folds: those of five times as many cells, moved by one more in
# each round of cells.
deals_R <- function(n, folds, strata = rep(1, n)) {
  cell <- hashed_R(n, 5 * folds, strata) - 1
  lapply(0:4, \(deal) (cell + deal * floor(cell / folds)) %% folds + 1)
}

# The value of a test of so few draws, or labelings, that it warns of them.
few_draws <- \(test) without_warning("few", test)

# Runs code with another value of a name of the package.
with_binding <- function(name, value, code) {
  put <- \(x) utils::assignInNamespace(name, x, "kernmean")
  before <- get(name, asNamespace("kernmean"))
  on.exit(put(before))
  put(value)
  force(code)
}

# As if the exact path were for at most so many points.
with_most_points <- \(most, code) with_binding("filter_most_points", most, code)

# Given blocks: the features less the means of their blocks.
given_R <- function(K, blocks) {
  same <- outer(blocks, blocks, `==`)
  H <- diag(nrow(K)) - same / rowSums(same)
  H %*% K %*% H
}

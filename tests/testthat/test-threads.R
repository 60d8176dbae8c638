# Builds with OpenMP and without. (Limits and results on several threads are in
# test-tile.R.)

test_that("a build without OpenMP says so once, as a message with a class", {
  said <- new.env()
  expect_silent(tell_serial(TRUE, said))
  expect_message(tell_serial(FALSE, said), "one thread",
                 class = "kernmean_message_openmp")
  expect_silent(tell_serial(FALSE, said))
  note <- tryCatch(tell_serial(FALSE, new.env()), message = identity)
  expect_match(conditionMessage(note), "^kernmean .*help\\(.*\n$")
})

test_that("the limit is what was asked for where there are threads, else 1", {
  before <- suppressMessages(kernmean_threads())
  on.exit(kernmean_threads(before))
  expect_silent(kernmean_threads(3))
  expect_identical(kernmean_threads(), if (.Call(C_r_openmp)) 3L else 1L)
  expect_error(kernmean_threads(0), class = "kernmean_error_input")
})

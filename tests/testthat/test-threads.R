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

test_that("under a limit on addresses threads are not started without room", {
  skip_on_os(c("windows", "mac", "solaris"))
  skip_if_not(nzchar(Sys.which("prlimit")), "prlimit is there")
  skip_if_not(.Call(C_r_openmp), "compiled with OpenMP")
  code <- c(
    "library(kernmean); kernmean_threads(2)",
    "x <- matrix(as.double(1:2000), 1000)",
    "k <- kernel_matrix(x[1:9, ], kernel = kernel_rbf(50)); invisible(gc())",
    "size <- grep('VmSize', readLines('/proc/self/status'), value = TRUE)",
    "top <- 1024 * (as.numeric(gsub('[^0-9]', '', size)) + 16384)",
    "system2('prlimit', c('--pid', Sys.getpid(), paste0('--as=', top, ':')))",
    "s <- sum(kernel_matrix(x, kernel = kernel_rbf(50)))",
    "system2('prlimit', c('--pid', Sys.getpid(), '--as=unlimited:'))",
    "cat(s == sum(kernel_matrix(x, kernel = kernel_rbf(50))))"
  )
  file <- tempfile(fileext = ".R")
  on.exit(unlink(file))
  writeLines(code, file)
  said <- suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), file,
                                   stdout = TRUE, stderr = TRUE))
  expect_identical(utils::tail(said, 1L), "TRUE")
})

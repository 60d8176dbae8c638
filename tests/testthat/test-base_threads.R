# Builds with OpenMP and without. (Limits and results on several threads are in
# test-kernel_tile.R.)

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

# What is not there on Windows, and what parallel says elsewhere.
test_that("package parallel says whether a process was forked, where it can", {
  limit <- \(...) {
    seen <- list2env(list(...), parent = emptyenv())
    stand_in <- default_threads
    environment(stand_in) <- list2env(
      list(loadedNamespaces = \() "parallel", asNamespace = \(name) seen),
      parent = environment(default_threads)
    )
    stand_in()
  }
  expect_gte(limit(), 0L)
  expect_gte(limit(isChild = \() FALSE), 0L)
  expect_identical(limit(isChild = \() TRUE), -1L)
})

# What a script prints in a process of its own.
run_script <- function(code, ..., env = character()) {
  file <- tempfile(fileext = ".R")
  on.exit(unlink(file))
  writeLines(code, file)
  library <- paste0("R_LIBS=", paste(.libPaths(), collapse = ":"))
  suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), file,
                           stdout = TRUE, ..., env = c(library, env)))
}

test_that("the default keeps within the quota of a container", {
  skip_if_not(.Call(C_r_openmp), "compiled with OpenMP")
  skip_if_not(file.exists("/proc/self/cgroup"), "there are control groups")
  groups <- readLines("/proc/self/cgroup")
  folder <- tempfile()
  dir.create(file.path(folder, "cpu"), recursive = TRUE)
  on.exit(unlink(folder, recursive = TRUE))
  limit <- function(file, lines) {
    for (i in seq_along(file)) writeLines(lines[i], file.path(folder, file[i]))
    on.exit(unlink(file.path(folder, file)))
    as.integer(run_script(
      "cat(.Call(getNamespace('kernmean')$C_r_threads, NULL))",
      env = c(paste0("KERNMEAN_CGROUP=", folder), "OMP_NUM_THREADS=4")
    ))
  }
  free <- limit("cpu.max", "max 100000")
  if (any(grepl("^0::/", groups))) {
    expect_identical(limit("cpu.max", "40000 100000"), 1L)
    expect_identical(limit("cpu.max", "110000 100000"), min(2L, free))
  }
  first <- paste0("cpu/cpu.cfs_", c("quota", "period"), "_us")
  if (any(grepl("[:,]cpu[:,]", groups))) {
    expect_identical(limit(first, c("50000", "50000")), 1L)
    expect_identical(limit(first, c("-1", "100000")), free)
  }
})

test_that("a forked child works on one thread, whatever it sets", {
  skip_if_not(.Call(C_r_openmp), "compiled with OpenMP")
  skip_on_os("windows")
  code <- c(
    "library(kernmean); set <- \\() c(kernmean_threads(4), kernmean_threads())",
    "cat(parallel::mccollect(parallel::mcparallel(set()))[[1L]], '')",
    "cat(set()[2L], '')",
    # As of a child that parallel alone knows to be forked.
    "x <- .Call(getNamespace('kernmean')$C_r_threads, -1L); cat(set()[2L])"
  )
  expect_identical(run_script(code), "1 1 4 1")
})

test_that("the instruction level can be pinned, and a wrong one is named", {
  before <- .Call(C_r_isa, NULL)
  on.exit(.Call(C_r_isa, before))
  names <- c("baseline", "avx2", "avx512")
  for (level in isa_levels()) {
    expect_silent(pin_level(names[level + 1L]))
    expect_identical(.Call(C_r_isa, NULL), level)
  }
  .Call(C_r_isa, before)
  expect_silent(pin_level(""))
  lacking <- names[-(isa_levels() + 1L)]
  for (name in c("sse", "AVX2", lacking)) {
    expect_warning(pin_level(name), paste0("not '", name, "'"),
                   class = "kernmean_warning_level")
    expect_identical(.Call(C_r_isa, NULL), before)
  }
  code <- "cat(.Call(getNamespace('kernmean')$C_r_isa, NULL))"
  expect_identical(run_script(code, env = "KERNMEAN_LEVEL=baseline"), "0")
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
  expect_identical(utils::tail(run_script(code, stderr = TRUE), 1L), "TRUE")
})

# The parent has worked on several threads by a library that is not ours;
# without the core's question whether it was forked, the child would wait for
# ever.
test_that("a forked child that loads the package itself works on one thread", {
  skip_if(Sys.info()[["sysname"]] != "Linux", "not Linux")
  skip_if_not(.Call(C_r_openmp), "compiled with OpenMP")
  folder <- tempfile()
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  writeLines("PKG_CFLAGS = $(SHLIB_OPENMP_CFLAGS)
PKG_LIBS = $(SHLIB_OPENMP_CFLAGS)", file.path(folder, "Makevars"))
  writeLines("void sum_of(int *n, double *sum) {
  double total = 0;
#pragma omp parallel for reduction(+ : total) num_threads(4)
  for (int i = 0; i < *n; i++) total += i;
  *sum = total;
}", file.path(folder, "other.c"))
  writeLines(c(
    paste0("dyn.load('other", .Platform$dynlib.ext, "')"),
    "total <- .C('sum_of', 100000L, 0)[[2L]]",
    "stopifnot(total == sum(as.double(0:99999)))",
    "stopifnot(!isNamespaceLoaded('kernmean'))",
    "job <- parallel::mcparallel({",
    "  library(kernmean)",
    "  kernmean_threads(4)",
    "  x <- matrix(as.double(1:4000), 2000)",
    "  sum(kernel_matrix(x, kernel = kernel_rbf(50)))",
    "})",
    "sums <- parallel::mccollect(job, wait = FALSE, timeout = 60)",
    "tools::pskill(job$pid, tools::SIGKILL)",
    "library(kernmean)",
    "x <- matrix(as.double(1:4000), 2000)",
    "here <- sum(kernel_matrix(x, kernel = kernel_rbf(50)))",
    "cat(identical(sums[[1L]], here))"
  ), file.path(folder, "fork.R"))
  run <- function(program, of) {
    suppressWarnings(system2("sh", c("-c", shQuote(paste(
      "cd", shQuote(folder), "&&", shQuote(file.path(R.home("bin"), program)),
      of
    ))), stdout = TRUE, stderr = TRUE))
  }
  run("R", "CMD SHLIB other.c")
  library <- paste0("other", .Platform$dynlib.ext)
  skip_if_not(file.exists(file.path(folder, library)), "a compiler is there")
  said <- run("Rscript", "fork.R")
  expect_identical(utils::tail(said, 1L), "TRUE")
})

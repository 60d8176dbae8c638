# Data sets in the formats of their archives: made-up ones, with an index and
# sums of their own. No network, and no folder but R's temporary one.

folder <- function() {
  path <- tempfile("folder")
  dir.create(path)
  normalizePath(path, "/")
}

# Writes files (text as it stands) below `root`, and gives the entry of an index
# that describes them; more fields by name.
made <- function(root, files, rows, separator, ..., base = address(root)) {
  for (path in names(files)) {
    dir.create(dirname(file.path(root, path)), FALSE, recursive = TRUE)
    writeBin(charToRaw(files[[path]]), file.path(root, path))
  }
  sums <- vapply(names(files), \(path) plain_sum(files[[path]]), "")
  index <- tempfile()
  on.exit(unlink(index))
  more <- list(...)
  writeLines(c(
    "Name: made", "Where: here", paste("Base:", base), "Files:",
    paste("", names(files), rows, sums, strrep("0", 64)),
    paste("Separator:", separator), sprintf("%s: %s", names(more), more),
    "Terms: none"
  ), index)
  uci_index(index)$made
}

address <- function(root) {
  paste0("file://", if (.Platform$OS.type == "windows") "/", root)
}

# The sum by the rule of the help page, by other means than the package's.
plain_sum <- function(text) {
  copy <- tempfile()
  on.exit(unlink(copy))
  text <- sub("\n*$", "\n", gsub("\r\n", "\n", text))
  writeBin(charToRaw(text), copy)
  unname(tools::md5sum(copy))
}

# A small data set of numbers, of two classes.
comma <- c("a/made.data" = "1,2.5,x\n3,-4,y\n5,6e1,x\n")
simple <- function(root, files = comma, rows = 3, separator = "comma", ...) {
  made(root, files, rows, separator, Real = "1-2", All = "1-2", Target = 3,
       Classes = 2, ...)
}
numbers <- cbind(V1 = c(1, 3, 5), V2 = c(2.5, -4, 60))

# Runs code with a cache of its own, which does not exist yet.
with_cache <- function(code) {
  before <- Sys.getenv("R_USER_CACHE_DIR", NA)
  on.exit(if (is.na(before)) {
    Sys.unsetenv("R_USER_CACHE_DIR")
  } else {
    Sys.setenv(R_USER_CACHE_DIR = before)
  })
  Sys.setenv(R_USER_CACHE_DIR = folder())
  force(code)
}
cache <- function() tools::R_user_dir("kernmean", "cache")

all_below <- function(root) list.files(root, all.files = TRUE, recursive = TRUE)

# The message without folders and sums, which differ from run to run.
refused <- function(code, class = "kernmean_error_data") {
  error <- expect_error(code, class = class)
  expect_s3_class(error, "kernmean_error")
  text <- gsub("\\\\", "/", conditionMessage(error))
  text <- gsub(gsub("\\\\", "/", normalizePath(tempdir())), "TEMP", text,
               fixed = TRUE)
  text <- gsub("folder[0-9a-f]+", "FOLDER", text)
  gsub("[0-9a-f]{32}", "SUM", text)
}

test_that("one text is read alike in every format", {
  for (case in list(
    list("1,2.5,x\n3,-4,y\n5,6e1,x\n", "comma"),
    list("1, 2.5, x\n3 ,-4, y\n 5,6e1,x \n", "comma"),
    list("1 2.5 x\n3 -4 y\n5 6e1 x\n", "whitespace"),
    list("  1\t2.5  x\n 3 -4   y \n5   6e1 x", "whitespace"),
    list("1,2.5,x\r\n3,-4,y\r\n5,6e1,x\r\n", "comma"),
    list("1,2.5,x\r\n3,-4,y\r\n5,6e1,x", "comma"),
    list("1,2.5,x\n3,-4,y\n5,6e1,x\n\n\n", "comma")
  )) {
    root <- folder()
    entry <- simple(root, c(made.data = case[[1]]), separator = case[[2]])
    found <- read_uci(entry, root)
    expect_identical(found$x, numbers, info = case[[1]])
    expect_identical(found$class, factor(c("x", "y", "x")))
  }
})

test_that("labels stand first in LIBSVM's format and count as column 1", {
  root <- folder()
  entry <- made(root, c(made = "+2   1:0.5 2:-3 \n-1 1:7 2:8\n+2 1:1 2:2"), 3,
                "libsvm", Real = "2-3", All = "2-3", Target = 1, Classes = 2)
  found <- read_uci(entry, root)
  expect_identical(found$x, cbind(V2 = c(0.5, 7, 1), V3 = c(-3, 8, 2)))
  expect_identical(found$class, factor(c(2, -1, 2)))
  expect_identical(levels(found$class), c("-1", "2"))
})

test_that("lines are skipped in each of several files, which are joined", {
  root <- folder()
  entry <- made(
    root, c("p/one" = "a title\n\n1,2,b\n", "p/two" = "1\n\n3,4,a\r\n5,6,b"),
    1:2, "comma", Skip = 2, Real = "2", All = "1-2", Target = 3, Classes = 2,
    Names = "first second class"
  )
  found <- read_uci(entry, file.path(root, "p"))
  expect_identical(found$x, cbind(second = c(2, 4, 6)))
  expect_identical(as.character(found$class), c("b", "a", "b"))
  expect_identical(levels(found$class), c("a", "b"))
  both <- read_uci(entry, file.path(root, "p"), columns = "all")
  expect_identical(both$x, cbind(first = c(1, 3, 5), second = c(2, 4, 6)))
  expect_identical(basename(both$files), c("one", "two"))
  expect_identical(both$source, paste0(address(root), c("/p/one", "/p/two")))
})

test_that("question marks are missing, words are left out", {
  root <- folder()
  entry <- made(root, c(made = "1,red,?,9\n?,blue,?,9\n3,red,4,9\n"), 3,
                "comma", Missing = "?", All = "1,3-4", Words = "2",
                base = "https://kernmean.example/data")
  found <- read_uci(entry, root, columns = "all")
  expect_identical(found$x, cbind(V1 = c(1, NA, 3), V3 = c(NA, NA, 4), V4 = 9))
  expect_identical(found$words, "V2")
  expect_identical(found$constant, "V4")
  expect_null(found$class)
  expect_snapshot({
    print(found)
    cat(refused(read_uci(entry, root), "kernmean_error_input"))
    cat(refused(read_uci(entry, root, columns = "all", standardize = TRUE),
                "kernmean_error_input"))
  })
})

test_that("standardized columns have mean 0 and variance 1; constants go", {
  root <- folder()
  entry <- made(root, c(made = "1,7,2\n2,7,0\n6,7,5\n"), 3, "comma",
                Real = "1-2", All = "1-2", Target = 3)
  found <- read_uci(entry, root, standardize = TRUE)
  expect_identical(found$x, cbind(V1 = c(-2, -1, 3) / sqrt(7)))
  expect_identical(found$constant, "V2")
  expect_identical(found$class, c(2, 0, 5))
  plain <- read_uci(entry, root)
  expect_identical(plain$x, cbind(V1 = c(1, 2, 6), V2 = 7))
  expect_identical(plain$constant, "V2")
})

test_that("as.data.frame() puts the class behind the columns", {
  root <- folder()
  entry <- simple(root)
  found <- read_uci(entry, file.path(root, "a"))
  expect_identical(as.data.frame(found), data.frame(
    V1 = c(1, 3, 5), V2 = c(2.5, -4, 60), class = factor(c("x", "y", "x"))
  ))
  found["class"] <- list(NULL)
  expect_named(as.data.frame(found), c("V1", "V2"))
})

test_that("files may lie in the folder 'raw' of the folder", {
  root <- folder()
  entry <- simple(root, c("raw/made.data" = comma[[1]]))
  dir.create(file.path(root, "made.data"))
  expect_identical(read_uci(entry, root)$x, numbers)
})

test_that("files that are not what they should be are refused", {
  root <- folder()
  entry <- simple(root, c(made.data = comma[[1]]))
  said <- refused(read_uci(entry, folder()))
  short <- simple(root, c(made.data = "1,2,x\n3,4,y\n"))
  said <- c(said, refused(read_uci(entry, root)),
            refused(read_uci(replace(short, "files", list(
              transform(short$files, rows = 3L)
            )), root)))
  for (text in c("1,2,x\n3,y\n5,6,x\n", "1,2\n3,4\n5,6\n",
                 "1,2,x\n3,b,x\n5,6,x", "1,2,x\n?,4,x\n5,6,x")) {
    said <- c(said, refused(read_uci(simple(root, c(made.data = text)), root)))
  }
  expect_snapshot(writeLines(said))
  # Bytes that no text has, and no bytes at all.
  for (bytes in list(as.raw(c(0, 255, 10, 13)), raw())) {
    writeBin(bytes, file.path(root, "made.data"))
    expect_error(read_uci(entry, root), "is not the file",
                 class = "kernmean_error_data")
  }
})

test_that("nothing is read, fetched or written without being asked", {
  with_cache({
    root <- folder()
    here <- folder()
    entry <- simple(root)
    fetch <- \(...) stop("asked for no network")
    expect_error(read_uci(entry, fetch = fetch), "download = TRUE",
                 class = "kernmean_error_data")
    expect_error(read_uci(entry, here, fetch = fetch), "download = TRUE",
                 class = "kernmean_error_data")
    expect_error(uci_data("wine"), "dir = \"FOLDER\"",
                 class = "kernmean_error_data")
    read_uci(entry, file.path(root, "a"), fetch = fetch)
    expect_false(dir.exists(cache()))
    expect_identical(all_below(here), character())
    expect_identical(all_below(root), "a/made.data")
  })
})

test_that("what is downloaded is kept, and read the second time", {
  with_cache({
    root <- folder()
    entry <- simple(root)
    before <- list.files(tempdir())
    first <- read_uci(entry, download = TRUE)
    expect_identical(first$x, numbers)
    expect_identical(all_below(cache()), "made.data")
    never <- \(...) stop("asked for no network")
    expect_identical(read_uci(entry, fetch = never), first)
    expect_identical(read_uci(entry, download = TRUE, fetch = never), first)
    expect_identical(list.files(tempdir()), before)
    # In a folder of the user's choice.
    here <- folder()
    found <- read_uci(entry, here, download = TRUE)
    expect_identical(all_below(here), "made.data")
    expect_identical(found$x, numbers)
    # A kept file that was changed is not read.
    cat("7,8,x\n", file = file.path(cache(), "made.data"), append = TRUE)
    expect_error(read_uci(entry), "is not the file",
                 class = "kernmean_error_data")
  })
})

test_that("a mirror takes the place of the archive", {
  with_cache({
    mirror <- folder()
    entry <- simple(mirror, base = "file:///no/such/archive")
    expect_match(refused(read_uci(entry, download = TRUE)), "cannot download")
    entry$offered <- FALSE
    expect_match(refused(read_uci(entry)), "no longer offers")
    expect_match(refused(read_uci(entry, download = TRUE)), "no longer offers")
    expect_false(dir.exists(cache()))
    for (url in paste0(address(mirror), c("", "/"))) {
      here <- folder()
      found <- read_uci(entry, here, download = TRUE, url = url)
      expect_identical(found$x, numbers)
      expect_identical(found$source, "file:///no/such/archive/a/made.data")
    }
  })
})

test_that("a download that fails leaves nothing behind", {
  with_cache({
    root <- folder()
    two <- c("a/one" = "1,2,x\n", "a/two" = "3,4,y\n5,6,x\n")
    entry <- simple(root, two, rows = 1:2)
    before <- list.files(tempdir())
    clean <- function() {
      expect_false(dir.exists(cache()))
      expect_identical(list.files(tempdir()), before)
    }
    # The second file is cut short, missing, cut off by an interrupt.
    writeBin(charToRaw("3,4,y\n"), file.path(root, "a", "two"))
    expect_match(refused(read_uci(entry, download = TRUE)), "came from .*a/two")
    clean()
    unlink(file.path(root, "a", "two"))
    expect_match(refused(read_uci(entry, download = TRUE)), "cannot download")
    clean()
    cut <- function(from, to) {
      writeBin(charToRaw("1,"), to)
      stop(structure(class = c("interrupt", "condition"), list()))
    }
    expect_identical(
      tryCatch(read_uci(entry, download = TRUE, fetch = cut),
               interrupt = \(i) "interrupted"), "interrupted"
    )
    clean()
    # A file that is there already stays.
    here <- folder()
    writeBin(charToRaw(two[[1]]), file.path(here, "one"))
    expect_match(refused(read_uci(entry, here, download = TRUE)), "a/two")
    expect_identical(all_below(here), "one")
    writeBin(charToRaw(two[[2]]), file.path(root, "a", "two"))
    expect_identical(nrow(read_uci(entry, here, download = TRUE)$x), 3L)
    expect_identical(all_below(here), c("one", "two"))
  })
})

test_that("a server that does not answer is named with its reason", {
  to <- tempfile()
  said <- fetch_file("http://127.0.0.1:1/made.data", to)
  expect_type(said, "character")
  expect_length(said, 1)
  said <- fetch_file("file:///no/such/file", to)
  expect_match(said, "/no/such/file")
  expect_false(file.exists(to))
})

test_that("a folder that cannot be written to is an error", {
  root <- folder()
  entry <- simple(root)
  blocked <- file.path(folder(), "file")
  file.create(blocked)
  expect_error(keep_files(file.path(root, "a", "made.data"),
                          file.path(blocked, "below")),
               "cannot write", class = "kernmean_error_data")
})

test_that("wrong arguments are refused", {
  skip_on_cran()
  root <- folder()
  expect_snapshot(writeLines(refusals(expression(
    uci_data("Galss"), uci_data("GLASS"), uci_data("thirteen"), uci_data(1),
    uci_data(NULL), uci_data(NA_character_), uci_data(c("wine", "glass")),
    uci_data("wine", ""), uci_data("wine", 1), uci_data("wine", "no folder"),
    uci_data("wine", root, TRUE), uci_data("wine", root, downlod = TRUE),
    uci_data("wine", root, download = NA), uci_data("wine", columns = "some"),
    uci_data("wine", standardize = 1), uci_data("wine", url = "file:///x"),
    uci_data("wine", download = TRUE, url = 3), uci_data("lymphography"),
    uci_data("primary-tumor"), uci_data("hayes-roth", download = TRUE)
  ))))
})

test_that("the list has a row for each data set, of plain columns", {
  list <- uci_data()
  expect_s3_class(list, "data.frame")
  expect_named(list, c("name", "n", "real", "all", "target", "where"))
  expect_identical(list[list$name == "segment", "n"], 2310L)
  expect_identical(list$name[list$real == 0L],
                   c("lymphography", "primary-tumor", "hayes-roth",
                     "hayes-roth-test"))
  expect_true(all(list$real <= list$all & list$all > 0))
})

test_that("the index is complete and in itself consistent", {
  skip_on_cran()
  index <- uci_index()
  expect_false(anyDuplicated(names(index)) > 0)
  for (entry in index) {
    expect_match(entry$base, "^https?://.*[^/]$", info = entry$name)
    expect_match(entry$files$md5, "^[0-9a-f]{32}$")
    expect_match(entry$files$sha256, "^[0-9a-f]{64}$")
    expect_true(all(entry$files$rows > 0))
    expect_true(entry$separator %in% c("comma", "whitespace", "libsvm"))
    expect_true(all(entry$real %in% entry$all))
    expect_length(intersect(entry$all, c(entry$words, entry$target)), 0)
    expect_true(nzchar(entry$terms))
    wanted <- max(entry$all, entry$words, entry$target)
    expect_true(is.null(entry$names) || length(entry$names) == wanted)
  }
  files <- unlist(lapply(index, \(entry) basename(entry$files$path)))
  expect_false(anyDuplicated(files) > 0)
})

test_that("a home folder that is not there is nothing to be warned of", {
  before <- Sys.getenv("HOME", NA)
  on.exit(if (is.na(before)) {
    Sys.unsetenv("HOME")
  } else {
    Sys.setenv(HOME = before)
  })
  Sys.setenv(HOME = file.path(tempdir(), "no such folder"))
  expect_silent(with_cache(
    expect_error(uci_data("abalone"), class = "kernmean_error_data")
  ))
})

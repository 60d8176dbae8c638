# Data sets in the formats of their archives, as the studies read them: made-up
# ones, with an index and sums of their own. No network, and no folder but R's
# temporary one.

script <- system.file("studies", "uci.R", package = "kernmean")
skip_if(script == "")
source(script, local = TRUE)

folder <- function() {
  path <- tempfile("folder")
  dir.create(path)
  normalizePath(path, "/")
}

address <- function(root) {
  paste0("file://", if (.Platform$OS.type == "windows") "/", root)
}

# The sum by the rule of uci.R, by other means.
plain_sum <- function(text) {
  copy <- tempfile()
  on.exit(unlink(copy))
  writeBin(charToRaw(sub("\n*$", "\n", gsub("\r\n", "\n", text))), copy)
  unname(tools::md5sum(copy))
}

# Writes files (text as it stands) below `root`, and gives the entry of an index
# that describes them; more fields by name.
made <- function(root, files, rows, separator, ..., base = address(root)) {
  for (path in names(files)) {
    dir.create(dirname(file.path(root, path)), FALSE, recursive = TRUE)
    writeBin(charToRaw(files[[path]]), file.path(root, path))
  }
  index <- tempfile()
  more <- list(...)
  writeLines(c(
    "Name: made", "Where: here", paste("Base:", base), "Files:",
    paste("", names(files), rows, vapply(files, plain_sum, ""),
          vapply(file.path(root, names(files)), sha256_of, "")),
    paste("Separator:", separator), sprintf("%s: %s", names(more), more),
    "Terms: none"
  ), index)
  uci_index(index)$made
}

# A small data set of numbers, of two classes.
comma <- c("a/made.data" = "1,2.5,x\n3,-4,y\n5,6e1,x\n")
simple <- function(root, files = comma, separator = "comma", ...) {
  made(root, files, 3, separator, Real = "1-2", All = "1-2", Target = 3,
       Classes = 2, ...)
}
numbers <- cbind(V1 = c(1, 3, 5), V2 = c(2.5, -4, 60))
expect_data_error <- function(code, ...) {
  expect_error(code, ..., class = "kernmean_error_data")
}

test_that("one text is read alike in every format, in the folder 'raw' too", {
  for (case in list(
    c("1, 2.5, x\n3 ,-4, y\n 5,6e1,x \n\n", "comma"),
    c("  1\t2.5  x\n 3 -4   y \n5   6e1 x", "whitespace"),
    c("1,2.5,x\r\n3,-4,y\r\n5,6e1,x", "comma")
  )) {
    root <- folder()
    data <- read_uci(simple(root, c("raw/made.data" = case[[1]]), case[[2]]),
                     root)
    expect_identical(data$x, numbers)
    expect_identical(data$class, factor(c("x", "y", "x")))
    expect_identical(uci_frame(data), data.frame(numbers, class = data$class))
  }
  entry <- made(root, c(made = "+2   1:0.5 2:-3 \n-1 1:7 2:8\n+2 1:1 2:2"), 3,
                "libsvm", Real = "2-3", All = "2-3", Target = 1, Classes = 2)
  data <- read_uci(entry, root)
  expect_identical(data$x, cbind(V2 = c(0.5, 7, 1), V3 = c(-3, 8, 2)))
  expect_identical(data$class, factor(c(2, -1, 2)))
})

test_that("lines are skipped in each of several files, which are joined", {
  root <- folder()
  entry <- made(
    root, c("p/one" = "a title\n\n1,2,b\n", "p/two" = "1\n\n3,4,a\r\n5,6,b"),
    1:2, "comma", Skip = 2, Real = "2", All = "1-2", Target = 3, Classes = 2,
    Names = "first second class"
  )
  data <- read_uci(entry, file.path(root, "p"), columns = "all")
  expect_identical(data$x, cbind(first = c(1, 3, 5), second = c(2, 4, 6)))
  expect_identical(levels(data$class), c("a", "b"))
  expect_identical(data$source, paste0(address(root), c("/p/one", "/p/two")))
})

test_that("question marks are missing, words left out, constants dropped", {
  root <- folder()
  entry <- made(root, c(made = "1,red,?,9\n?,blue,?,9\n3,red,4,9\n"), 3,
                "comma", Missing = "?", All = "1,3-4", Words = "2")
  data <- read_uci(entry, root, columns = "all")
  expect_identical(data$x, cbind(V1 = c(1, NA, 3), V3 = c(NA, NA, 4), V4 = 9))
  expect_identical(data[c("words", "constant")],
                   list(words = "V2", constant = "V4"))
  expect_null(data$class)
  expect_error(read_uci(entry, root), class = "kernmean_error_input")
  expect_error(read_uci(entry, root, columns = "all", standardize = TRUE),
               "4 missing|3 missing", class = "kernmean_error_input")
  entry <- made(root, c(made = "1,7,2\n2,7,0\n6,7,5\n"), 3, "comma",
                Real = "1-2", All = "1-2", Target = 3)
  data <- read_uci(entry, root, standardize = TRUE)
  expect_identical(data$x, cbind(V1 = c(-2, -1, 3) / sqrt(7)))
  expect_identical(data$class, c(2, 0, 5))
})

test_that("files that are not what they should be are refused", {
  root <- folder()
  entry <- simple(root, c(made.data = comma[[1]]))
  for (text in c("1,2,x\n3,y\n5,6,x\n", "1,2\n3,4\n5,6\n", "1,2,x\n3,4,y\n",
                 "1,2,x\n3,b,x\n5,6,x", "1,2,x\n?,4,x\n5,6,x")) {
    expect_data_error(read_uci(simple(root, c(made.data = text)), root))
  }
  writeBin(as.raw(c(0, 255, 10, 13)), file.path(root, "made.data"))
  expect_data_error(read_uci(entry, root), "is not the file")
  expect_error(uci_data("Galss"), "Galss", class = "kernmean_error_input")
  expect_error(uci_data("wine", "no folder"), class = "kernmean_error_input")
})

test_that("nothing is fetched without being asked, and kept only as a whole", {
  root <- folder()
  here <- folder()
  two <- c("a/one" = "1,2,x\n", "a/two" = "3,4,y\n5,6,x\n")
  entry <- made(root, two, 1:2, "comma", Real = "1-2", All = "1-2", Target = 3,
                Classes = 2)
  expect_data_error(read_uci(entry, here), "download = TRUE")
  unlink(file.path(root, "a", "two"))
  expect_data_error(read_uci(entry, here, download = TRUE), "cannot download")
  expect_identical(list.files(here), character())
  mirror <- folder()
  for (path in names(two)) {
    dir.create(file.path(mirror, "a"), FALSE)
    writeBin(charToRaw(two[[path]]), file.path(mirror, path))
  }
  entry$offered <- "no"
  expect_data_error(read_uci(entry, here, download = TRUE), "no longer offers")
  data <- read_uci(entry, here, download = TRUE, url = address(mirror))
  expect_identical(nrow(data$x), 3L)
  expect_identical(list.files(here), c("one", "two"))
  expect_identical(read_uci(entry, here), data)
})

test_that("a download that is another file is refused", {
  root <- folder()
  entry <- simple(root)
  writeBin(charToRaw("1,2.5,x\r\n3,-4,y\n5,6e1,x\n"),
           file.path(root, names(comma)))
  expect_data_error(read_uci(entry, folder(), download = TRUE), "SHA-256")
})

test_that("the index is complete and in itself consistent", {
  index <- uci_index()
  expect_identical(uci_data()$name, names(index))
  expect_identical(uci_data()[7, "n"], 6435L)
  for (entry in index) {
    expect_match(entry$files$md5, "^[0-9a-f]{32}$")
    expect_match(entry$files$sha256, "^[0-9a-f]{64}$")
    expect_true(entry$separator %in% c("comma", "whitespace", "libsvm"))
    expect_true(all(entry$real %in% entry$all))
    expect_length(intersect(entry$all, c(entry$words, entry$target)), 0)
    expect_true(is.null(entry$names) || length(entry$names) ==
                  max(entry$all, entry$words, entry$target))
  }
})

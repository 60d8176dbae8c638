# Sources: what yields rows, and samples of it.

all_chunks <- function(stream) {
  chunks <- list()
  while (!is.null(rows <- stream$next_chunk())) {
    chunks[[length(chunks) + 1L]] <- rows
  }
  stream$close()
  chunks
}

frame_of <- function(n) {
  data.frame(a = seq_len(n) / 7, b = rep_len(c("u", "v", "w"), n))
}

# An error of a source, as it is.
source_error_of <- function(code) {
  e <- tryCatch(code, error = identity)
  expect_s3_class(e, "kernmean_error_source")
  e
}

test_that("a stream hands on every row once, in order, in chunks of one size", {
  x <- frame_of(95)
  for (sizes in list(95, c(0, 30, 0, 0, 65, 0), rep(1, 95), c(40, 55))) {
    for (chunk in c(1, 7, 30, 1000)) {
      chunks <- all_chunks(new_row_stream(stream_of(runs_of(x, sizes)), NULL,
                                       chunk))
      expect_true(all(vapply(chunks, nrow, 1L) %in% seq_len(chunk)))
      got <- do.call(rbind, chunks)
      rownames(got) <- NULL
      expect_identical(got, x)
    }
  }
  expect_length(all_chunks(new_row_stream(stream_of(runs_of(x, c(0, 0))))), 0L)
})

test_that("files, functions that open a source and data are sources", {
  x <- frame_of(30)
  paths <- file.path(tempfile("stream"), c("a.csv", "b.csv"))
  dir.create(dirname(paths[1]))
  on.exit(unlink(dirname(paths[1]), recursive = TRUE))
  for (k in 1:2) {
    utils::write.csv(x[15 * (k - 1) + 1:15, ], paths[k], row.names = FALSE)
  }
  same <- function(source, read = NULL) {
    got <- do.call(rbind, all_chunks(new_row_stream(source, read, 4)))
    rownames(got) <- NULL
    expect_equal(got, x)
  }
  same(paths)
  same(paths, utils::read.csv)
  same(paths, \(path) stream_of(runs_of(utils::read.csv(path), c(9, 0, 6))))
  same(\() paths)
  same(\() \() stream_of(list(x)))
  same(x)
  expect_identical(all_chunks(new_row_stream(c(3, 1)))[[1]], matrix(c(3, 1)))
  expect_identical(all_chunks(new_row_stream(factor(c("p", "q"))))[[1]],
                   data.frame(x = factor(c("p", "q"))))
  # Which of them begin anew when they are opened again?
  anew <- function(source) {
    stream <- new_row_stream(source)
    all_chunks(stream)
    stream$anew()
  }
  expect_true(anew(paths))
  expect_true(anew(x))
  expect_true(anew(\() stream_of(list(x))))
  expect_false(anew(stream_of(list(x))))
})

test_that("files that are missing or that cannot be read are named", {
  good <- tempfile(fileext = ".rds")
  saveRDS(frame_of(3), good)
  odd <- tempfile(fileext = ".txt")
  file.create(odd)
  on.exit(unlink(c(good, odd)))
  refused <- \(code, words) expect_error(code, words,
                                         class = "kernmean_error_input")
  refused(new_row_stream(c(good, "no-such-file.rds")),
          "missing: 'no-such-file.rds'")
  landmarks <- kme_landmarks(1:9, 3)
  for (call in list(kme_landmarks, \(x) kme_sketch(x, landmarks),
                    \(x) stats::update(kme_sketch(1:9, landmarks), x))) {
    refused(call(character()), "'x' must have names of files")
  }
  refused(kme_landmarks(good, read = "csv"), "'read' must be a function")
  refused(all_chunks(new_row_stream(odd)), "read = read.delim")
  refused(all_chunks(new_row_stream(good, \(path) NULL)), "not NULL")
  e <- source_error_of(pilot_rows(c(good, odd), 5, \(path) {
    if (path == odd) stop("no such format") else readRDS(path)
  }))
  expect_match(conditionMessage(e), paste0("file '", odd, "', after 3 rows: "),
               fixed = TRUE)
})

test_that("what is no source, and what a source must not yield, is refused", {
  expect_false(is_stream(matrix("a")))
  for (bad in list(1:3, list(1), TRUE, array(0, c(2, 2, 2)))) {
    e <- source_error_of(pilot_rows(stream_of(list(frame_of(2), bad)), 5))
    expect_match(conditionMessage(e), "^function, chunk 2, after 2 rows: ")
  }
})

test_that("columns that change in the middle are named with their place", {
  change <- function(second, words, first = frame_of(4)) {
    e <- source_error_of(pilot_rows(stream_of(list(first, second)), 5))
    expect_match(conditionMessage(e), words, fixed = TRUE)
    expect_match(conditionMessage(e), "chunk 2, after")
  }
  change(data.frame(a = c("1", "2"), b = "u"), "the column 'a' must be numeric")
  change(data.frame(a = 1, b = 2), "the column 'b' must be a factor")
  change(data.frame(A = 1, b = "u"), "'a' must be among")
  change(matrix(0, 2, 3), "as many columns as in its first chunk, 2, not 3",
         matrix(0, 2, 2))
  # Neither order, nor more columns, nor one without values is a change.
  pilot <- pilot_rows(stream_of(list(
    data.frame(a = c(NA, NA), b = "u"), data.frame(b = "v", z = 1, a = 2),
    data.frame(a = NA, b = factor("w")), data.frame(a = 3L, b = NA)
  )), 9)
  expect_identical(pilot, data.frame(a = c(NA, NA, 2, NA, 3),
                                     b = c("u", "u", "v", "w", NA)))
})

test_that("a pilot of a stream that is small enough is all of it, in order", {
  x <- frame_of(40)
  for (size in c(40, 41, 1000)) {
    expect_identical(pilot_rows(stream_of(runs_of(x, c(3, 0, 37))), size), x)
  }
  expect_error(pilot_rows(\() NULL, 5), "at least one row",
               class = "kernmean_error_input")
})

test_that("a pilot draws rows without putting them back, each as likely", {
  skip_on_cran()
  set.seed(1)
  n <- 60
  x <- matrix(seq_len(n))
  draws <- 1000
  for (case in list(c(1, 60), c(7, 9), c(20, 4))) {
    size <- case[1]
    seen <- replicate(draws, {
      rows <- drop(pilot_rows(stream_of(list(x)), size, NULL, case[2]))
      if (size > 1) stopifnot(all(diff(rows) > 0))
      stopifnot(length(rows) == size)
      rows
    })
    counts <- tabulate(seen, n)
    # Mean draws size/n, variances as of draws without replacement.
    expected <- draws * size / n
    fit <- sum((counts - expected)^2 / (expected * (1 - size / n)))
    expect_gt(stats::pchisq(fit * (n - 1) / n, n - 1, lower.tail = FALSE), 1e-4)
    # Pairs: both of two rows far apart as often as of two neighbors.
    if (size > 1) {
      both <- \(i, j) sum(apply(seen, 2, \(rows) all(c(i, j) %in% rows)))
      chance <- size * (size - 1) / (n * (n - 1))
      spread <- 5 * sqrt(draws * chance)
      expect_lt(abs(both(1, 2) - draws * chance), spread)
      expect_lt(abs(both(1, n) - draws * chance), spread)
    }
  }
})

test_that("a pilot depends on the seed, not on the cutting into chunks", {
  x <- frame_of(500)
  draw <- function(sizes, chunk) {
    set.seed(7)
    pilot_rows(stream_of(runs_of(x, sizes)), 20, NULL, chunk)
  }
  one <- draw(500, 500)
  expect_identical(draw(rep(50, 10), 500), one)
  expect_identical(draw(c(499, 0, 1), 3), one)
})

test_that("a query is a source, cleared by whoever made it", {
  skip_if_not_installed("RSQLite")
  x <- data.frame(a = seq_len(1000) + 0.5, b = seq_len(1000))
  base <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  on.exit(DBI::dbDisconnect(base))
  DBI::dbWriteTable(base, "t", x)
  query <- DBI::dbSendQuery(base, "select * from t order by b")
  chunks <- all_chunks(new_row_stream(query, NULL, 300))
  expect_identical(vapply(chunks, nrow, 1L), c(300L, 300L, 300L, 100L))
  expect_equal(do.call(rbind, chunks), x)
  expect_true(DBI::dbIsValid(query))
  DBI::dbClearResult(query)
  made <- NULL
  stream <- new_row_stream(\() {
    made <<- DBI::dbSendQuery(base, "select * from t order by b")
  }, NULL, 400)
  expect_length(all_chunks(stream), 3L)
  expect_true(stream$anew())
  expect_false(DBI::dbIsValid(made))
  query <- DBI::dbSendQuery(base, "select a from t where b < 0")
  expect_length(all_chunks(new_row_stream(query)), 0L)
  DBI::dbClearResult(query)
})

test_that("integers of 64 bits are numbers, not their bits", {
  skip_if_not_installed("bit64")
  x <- data.frame(a = 1:3)
  x$wide <- bit64::as.integer64(c(1, 2, 3)) + bit64::as.integer64(2^40)
  got <- all_chunks(new_row_stream(stream_of(list(x))))[[1]]
  expect_identical(got$wide, 2^40 + c(1, 2, 3))
})

test_that("Arrow streams are sources, in chunks of the size asked for", {
  skip_if_not_installed("nanoarrow")
  stream <- \(x) nanoarrow::as_nanoarrow_array_stream(x)
  x <- frame_of(95)
  batches <- nanoarrow::basic_array_stream(
    lapply(runs_of(x, c(20, 0, 45, 30)), nanoarrow::as_nanoarrow_array)
  )
  chunks <- all_chunks(new_row_stream(batches, NULL, 30))
  expect_identical(vapply(chunks, nrow, 1L), c(30L, 30L, 5L, 30L))
  got <- do.call(rbind, chunks)
  rownames(got) <- NULL
  expect_equal(got, x)
  expect_true(new_row_stream(\() stream(x))$next_chunk() |> is.data.frame())
  landmarks <- kme_landmarks(faithful, 20, scale = TRUE)
  plain <- kme_sketch(faithful, landmarks)
  expect_identical(kme_sketch(stream(faithful), landmarks)$sums, plain$sums)
  used <- stream(faithful)
  all_chunks(new_row_stream(used))
  expect_warning(kme_sketch(used, landmarks), "may have been used up")
  expect_false(is_opened(factor("a")))
})

test_that("queries by ADBC and dbSendQueryArrow() are sources", {
  skip_if_not_installed("nanoarrow")
  landmarks <- kme_landmarks(faithful, 20, scale = TRUE)
  plain <- kme_sketch(faithful, landmarks)$sums
  if (requireNamespace("adbcsqlite", quietly = TRUE)) {
    database <- adbcdrivermanager::adbc_database_init(
      adbcsqlite::adbcsqlite(), uri = ":memory:"
    )
    connection <- adbcdrivermanager::adbc_connection_init(database)
    adbcdrivermanager::write_adbc(faithful, connection, "t")
    rows <- \() adbcdrivermanager::read_adbc(connection, "select * from t")
    expect_identical(kme_sketch(rows, landmarks)$sums, plain)
  }
  skip_if_not_installed("RSQLite")
  skip_if_not_installed("DBI", "1.2.0")
  base <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  on.exit(DBI::dbDisconnect(base))
  DBI::dbWriteTable(base, "t", faithful)
  rows <- \() DBI::dbSendQueryArrow(base, "select * from t")
  expect_identical(kme_sketch(rows, landmarks)$sums, plain)
})

test_that("Parquet files are read by nanoparquet", {
  skip_if_not_installed("nanoparquet")
  path <- tempfile(fileext = ".parquet")
  on.exit(unlink(path))
  nanoparquet::write_parquet(frame_of(30), path)
  expect_equal(do.call(rbind, all_chunks(new_row_stream(path, NULL, 30))),
               frame_of(30), ignore_attr = "class")
})

test_that("blocks of a .csv file are what read.csv() reads", {
  skip_if_not_installed("data.table")
  path <- tempfile(fileext = ".csv")
  on.exit(unlink(path))
  n <- 60
  odd <- data.frame(
    "odd name" = seq_len(n) / 7, text = rep_len(c("u, v", "a\nb", " s", NA), n),
    day = format(as.Date("2020-01-01") + seq_len(n)), id = sprintf("%04d", 1:n),
    wide = 2^40 + seq_len(n), none = NA, yes = rep_len(c(TRUE, FALSE), n),
    check.names = FALSE
  )
  quoted <- odd
  quoted$text[40] <- "a \"quoted\" word"
  for (x in list(odd, quoted, airquality, mtcars, ToothGrowth)) {
    for (names in c(TRUE, FALSE)) {
      utils::write.csv(x, path, row.names = names)
      got <- do.call(rbind, all_chunks(new_row_stream(path, NULL, 7)))
      rownames(got) <- NULL
      expect_identical(got, utils::read.csv(path))
    }
    blocks <- csv_blocks(path, 7)
    expect_s3_class(blocks, "row_blocks")
    blocks$close()
  }
  # Left to it: row names without a heading.
  utils::write.table(mtcars, path, sep = ",")
  expect_null(csv_blocks(path, 7))
  # Words in another encoding than the locale's.
  writeLines(c("a,b", "1,caf\xe9", "2,\"t\xe9\""), path, useBytes = TRUE)
  expect_identical(all_chunks(new_row_stream(path, NULL, 7))[[1L]],
                   utils::read.csv(path))
  writeLines(c("a,b", "", "1,2", "", "3", "4,5"), path)
  expect_identical(do.call(rbind, all_chunks(new_row_stream(path, NULL, 1))),
                   utils::read.csv(path))
})

test_that("a .csv of other separators names its reader", {
  x <- data.frame(u = c(0.5, 1.5, -2, 3), v = 4:1)
  landmarks <- kme_landmarks(x, 3)
  want <- kme(kme_sketch(x, landmarks))
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  same <- \(read) {
    expect_near(kme_distance(kme(kme_sketch(file, landmarks, read = read)),
                             want), 0, 1e-7)
  }
  write.csv2(x, file, row.names = FALSE)
  refused(kme_sketch(file, landmarks), "read.csv2")
  refused(kme_sketch(file, landmarks, read = read.csv), "read.csv2")
  refused(kme_landmarks(file), "read.csv2")
  same(utils::read.csv2)
  write.table(x, file, sep = ";", row.names = FALSE)
  refused(kme_sketch(file, landmarks), "sep = \";\"", fixed = TRUE)
  same(\(f) read.csv(f, sep = ";"))
  write.table(x, file, sep = "\t", row.names = FALSE)
  refused(kme_sketch(file, landmarks), "read.delim")
  same(utils::read.delim)
  # A name may hold what separates elsewhere.
  writeLines(c("\"u;v\"", "1", "2"), file)
  expect_identical(kme_landmarks(file)$m, 2L)
})

test_that("a file without rows is named by a warning, one with rows is not", {
  landmarks <- kme_landmarks(data.frame(u = c(1, 2, 4)), 3)
  files <- c(tempfile(fileext = ".csv"), tempfile(fileext = ".rds"),
             tempfile(fileext = ".csv"))
  on.exit(unlink(files))
  writeLines("u", files[1])
  saveRDS(data.frame(u = numeric()), files[2])
  writeLines(c("u", "3"), files[3])
  for (k in 1:2) {
    expect_warning(s <- kme_sketch(files[c(3, k)], landmarks),
                   basename(files[k]), class = "kernmean_warning_empty")
    expect_identical(s$n, 1)
    expect_warning(kme_sketch(list(files[k], files[3]), landmarks,
                              read = if (k == 1) utils::read.csv),
                   basename(files[k]), class = "kernmean_warning_empty")
  }
  expect_no_warning(kme_sketch(files[3], landmarks))
  expect_no_warning(kme_sketch(files[3], landmarks, read = \(f) {
    chunks <- list(data.frame(u = 1), data.frame(u = numeric()))
    \() {
      value <- if (length(chunks)) chunks[[1]]
      chunks <<- chunks[-1]
      value
    }
  }))
})

test_that("the first rows of a .csv say what is text in all chunks", {
  skip_if_not_installed("data.table")
  set.seed(5)
  x <- data.frame(u = rnorm(3000), f = sample(c("T", "F", "X"), 3000, TRUE),
                  h = "a\"b", stringsAsFactors = TRUE)
  x$f[2001:3000] <- sample(c("T", "F"), 1000, TRUE)
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  landmarks <- kme_landmarks(~ u + f, x, 20)
  for (columns in list(1:2, 1:3)) {
    write.csv(x[columns], file, row.names = FALSE)
    expect_near(kme_distance(kme(kme_sketch(file, landmarks, chunk = 1000)),
                             kme(kme_sketch(x, landmarks))), 0, 1e-7)
    groups <- kme_sketch(file, kme_landmarks(x["u"], 5), groups = "f",
                         chunk = 1000)
    expect_identical(groups$groups, c("F", "T", "X"))
  }
  # Where there were numbers, T is no 1.
  x <- data.frame(v = rep_len(c("0", "1"), 1200), h = "a\"b")
  x$v[1100:1200] <- "T"
  write.csv(x, file, row.names = FALSE, quote = 2)
  numbers <- kme_landmarks(data.frame(v = 0:1), 2)
  expect_error(kme_sketch(file, numbers, chunk = 1099), "numeric",
               class = "kernmean_error_source")
})

test_that("no code in an .rds file is run, and data of any class are read", {
  x <- data.frame(u = c(1, 2, 4), v = c(0, 1, 0))
  landmarks <- kme_landmarks(x, 3)
  file <- tempfile(fileext = ".rds")
  flag <- tempfile()
  on.exit(unlink(c(file, flag)))
  run <- \(bad) file.create(flag)
  home <- new.env()
  makeActiveBinding("u", run, home)
  cells <- x
  cells$w <- rep(list(run), 3)
  for (bad in list(run, home, list(home), cells, "a promise",
                   quote(run(1)), structure(list(fetch = run, close = run),
                                                class = "row_blocks"),
                   structure(1:3, at = home))) {
    if (is.character(bad)) save_promise(file, flag) else saveRDS(bad, file)
    for (read in list(NULL, readRDS)) {
      expect_error(kme_sketch(file, landmarks, read = read), "no code",
                   class = "kernmean_error_source")
    }
  }
  expect_false(file.exists(flag))
  want <- kme_sketch(x, landmarks)$sums
  for (good in list(x, as.matrix(x), stats::model.frame(u ~ v, x),
                    cbind(x, day = as.Date("2026-01-01")))) {
    saveRDS(good, file)
    expect_identical(kme_sketch(file, landmarks)$sums, want)
  }
})

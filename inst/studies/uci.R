# Data sets that the papers use: those of Muandet et al. (2014) and Xia et al.
# (2021), of the UCI repository (archive.ics.uci.edu), LIBSVM, StatLib and NIST,
# read in the formats of their archives. The data are not part of the package;
# uci.dcf beside this file has their addresses, sums, columns and terms of use.
#
#   source(system.file("studies", "uci.R", package = "kernmean"))
#   uci_data()                         # what there is
#   uci_data("wine", download = TRUE)  # fetches and keeps it
#   uci_data("wine")                   # reads it again
#   uci_data("wine", dir = "FOLDER")   # reads FOLDER/wine.data, or raw/ in it
#
# Nothing is fetched and no folder is written to without being asked. Files are
# kept in `dir`, or without it in tools::R_user_dir("kernmean", "cache"), when
# all of a data set are complete. `url` takes the place of the archive's
# address. A file is read when its MD5 sum is that of the index, taken with CR
# LF as LF and one LF at the end: that protects from files that are cut short,
# altered or of another version, not from forgeries, for which uci.dcf has the
# SHA-256 sums.
#
# columns = "real": those that the archive calls continuous or numeric, counts
# among them; "all": every feature that is a number, codes of categories too,
# with NA for missing values; words are left out. Which columns the papers used
# is not printed; the level of their figures suggests the real ones, but all 14
# of "australian" in Muandet et al. standardize = TRUE drops constant columns
# and scales the others to mean 0 and variance 1 (divisor n - 1).
#
# A list: x (a matrix, rows in the order of the files), class (a factor, numbers
# to predict, or NULL), name, constant and words (names of columns that are
# constant, and of those left out), source, files, terms.
uci_data <- function(name, dir = NULL, download = FALSE,
                     columns = c("real", "all"), standardize = FALSE,
                     url = NULL) {
  index <- uci_index()
  if (missing(name)) {
    return(uci_list(index))
  }
  if (!isTRUE(name %in% names(index))) {
    stop_uci("input", "'name' must be one of the data sets that uci_data() ",
             "lists, not ", deparse(name))
  }
  read_uci(index[[name]], dir, download, match.arg(columns), standardize, url)
}

# The points as a data frame, the class as its last column.
uci_frame <- function(data) {
  frame <- as.data.frame(data$x)
  frame$class <- data$class
  frame
}

stop_uci <- function(kind, ...) {
  stop(errorCondition(paste0(...), class = c(paste0("kernmean_error_", kind),
                                             "kernmean_error")))
}

# uci_data() for one entry of an index.
read_uci <- function(entry, dir = NULL, download = FALSE, columns = "real",
                     standardize = FALSE, url = NULL) {
  used <- entry[[columns]]
  if (length(used) == 0) {
    stop_uci("input", "'columns' must be \"all\" for '", entry$name,
             "', which has no real-valued column")
  }
  files <- uci_files(entry, dir, download, url)
  fields <- do.call(rbind, Map(read_part, list(entry), seq_along(files), files))
  x <- vapply(used, function(j) field_numbers(fields[, j], entry),
              numeric(nrow(fields)))
  colnames(x) <- column_names(entry, used)
  constant <- apply(x, 2, function(column) length(unique(column)) == 1)
  data <- list(
    x = x, class = field_target(entry, fields), name = entry$name,
    constant = colnames(x)[constant],
    words = column_names(entry, if (columns == "all") entry$words),
    source = paste(entry$base, entry$files$path, sep = "/"),
    files = normalizePath(files), terms = entry$terms
  )
  if (standardize && anyNA(x)) {
    stop_uci("input", "'standardize' must be FALSE for '", entry$name,
             "', which has ", sum(is.na(x)), " missing values")
  } else if (standardize) {
    data$x <- scale(x[, !constant, drop = FALSE])
    attributes(data$x)[c("scaled:center", "scaled:scale")] <- NULL
  }
  data
}

# The index -------------------------------------------------------------------

# A list for each record. A line of Files is the path below Base, the number of
# rows, the MD5 sum of plain_bytes(), and the SHA-256 sum of the bytes as they
# were.
uci_index <- function(file = system.file("studies", "uci.dcf",
                                         package = "kernmean")) {
  records <- as.data.frame(read.dcf(file))
  names(records) <- tolower(names(records))
  entries <- lapply(split(records, seq_len(nrow(records))), function(record) {
    entry <- Filter(Negate(is.na), as.list(record))
    files <- matrix(scan(text = entry$files, what = "", quiet = TRUE), 4)
    entry$files <- data.frame(path = files[1, ], rows = as.integer(files[2, ]),
                              md5 = files[3, ], sha256 = files[4, ])
    ranges <- c("real", "all", "words", "target", "classes", "skip")
    entry[ranges] <- lapply(entry[ranges], read_ranges)
    if (!is.null(entry$names)) {
      entry$names <- scan(text = entry$names, what = "", quiet = TRUE)
    }
    entry$terms <- gsub("\n", " ", entry$terms)
    entry
  })
  stats::setNames(entries, records$name)
}

# "1-3,5" as c(1, 2, 3, 5); none for NULL
read_ranges <- function(text) {
  as.integer(eval(str2lang(paste0("c(", gsub("-", ":", paste(text)), ")"))))
}

uci_list <- function(index) {
  counted <- function(field) unname(lengths(lapply(index, `[[`, field)))
  rows <- function(field) vapply(index, function(entry) {
    as.integer(sum(entry[[field]]))
  }, 0L)
  classes <- rows("classes")
  data.frame(
    name = names(index),
    n = vapply(index, function(entry) sum(entry$files$rows), 0L),
    real = counted("real"), all = counted("all"),
    target = ifelse(rows("target") == 0, "none",
                    ifelse(classes == 0, "numeric", paste(classes, "classes"))),
    where = vapply(index, function(entry) {
      paste0(entry$where, if (!is.null(entry$offered)) ", no longer offered")
    }, ""),
    row.names = NULL
  )
}

column_names <- function(entry, j) {
  if (is.null(entry$names)) sprintf("V%d", as.integer(j)) else entry$names[j]
}

# Finding and fetching --------------------------------------------------------

# The files of an entry, all of which exist.
uci_files <- function(entry, dir, download, url) {
  if (!is.null(dir) && !isTRUE(dir.exists(dir))) {
    stop_uci("input", "'dir' must be an existing folder, not ", deparse(dir))
  }
  # R warns of a home folder that is not there.
  home <- if (!is.null(dir)) dir else {
    suppressWarnings(tools::R_user_dir("kernmean", "cache"))
  }
  names <- basename(entry$files$path)
  inner <- file.path(home, "raw", names)
  places <- ifelse(utils::file_test("-f", inner), inner, file.path(home, names))
  lost <- !utils::file_test("-f", places)
  if (any(lost) && !download) {
    stop_uci("data", "the data set '", entry$name, "' needs ",
             toString(names[lost]), ", not found in '", home, "'; 'dir' says ",
             "where it is, download = TRUE fetches it")
  }
  if (any(lost)) {
    fetch_all(entry, lost, home, url)
  }
  places
}

# Fetches to a temporary folder; keeps the files when all are what they should
# be.
fetch_all <- function(entry, lost, home, url) {
  if (!is.null(entry$offered) && is.null(url)) {
    stop_uci("data", "the archive no longer offers '", entry$name, "': ",
             toString(basename(entry$files$path)), " must be in 'dir', or in ",
             "a mirror given as 'url'")
  }
  base <- if (is.null(url)) entry$base else sub("/+$", "", url)
  box <- tempfile("uci")
  dir.create(box)
  on.exit(unlink(box, recursive = TRUE))
  for (i in which(lost)) {
    from <- paste(base, entry$files$path[i], sep = "/")
    to <- file.path(box, basename(from))
    tryCatch(
      utils::download.file(from, to, quiet = TRUE, mode = "wb"),
      # The warning says more than the error after it.
      warning = function(w) stop_uci("data", "cannot download ", from, ": ",
                                     conditionMessage(w)),
      error = function(e) stop_uci("data", "cannot download ", from, ": ",
                                   conditionMessage(e))
    )
    if (sha256_of(to) != entry$files$sha256[i]) {
      stop_uci("data", "'", from, "' is not the file that the index knows: ",
               "its SHA-256 sum is not ", entry$files$sha256[i])
    }
  }
  dir.create(home, FALSE, recursive = TRUE)
  if (!all(file.copy(list.files(box, full.names = TRUE), home))) {
    stop_uci("data", "cannot write to the folder '", home, "'")
  }
}

# The bytes of a file, CR LF as LF, with one LF at the end.
plain_bytes <- function(file) {
  lf <- as.raw(10)
  bytes <- readBin(file, "raw", file.size(file))
  bytes <- bytes[!(bytes == as.raw(13) & c(bytes[-1] == lf, FALSE))]
  c(bytes[seq_len(max(0, which(bytes != lf)))], lf)
}

# R itself has these sums from 4.5 on; before, a package or a program.
sha256_of <- function(file) {
  if (exists("sha256sum", asNamespace("tools"))) {
    return(unname(tools::sha256sum(file)))
  }
  if (requireNamespace("digest", quietly = TRUE)) {
    return(digest::digest(file, "sha256", file = TRUE))
  }
  programs <- c(sha256sum = "", shasum = "-a 256")
  there <- names(which(nzchar(Sys.which(names(programs)))))[1]
  if (is.na(there)) {
    stop_uci("data", "a download is checked by its SHA-256 sum, which takes R ",
             "4.5, the package digest, or one of the programs sha256sum and ",
             "shasum")
  }
  out <- system2(there, c(programs[[there]], shQuote(file)), stdout = TRUE)
  sub("^\\\\?([0-9a-f]{64}).*", "\\1", out[1])
}

check_sum <- function(bytes, md5, what) {
  copy <- tempfile("uci")
  on.exit(unlink(copy))
  writeBin(bytes, copy)
  if (tools::md5sum(copy) != md5) {
    stop_uci("data", "'", what, "' is not the file that the index knows: its ",
             "MD5 sum is not ", md5, "; a damaged copy must be replaced")
  }
}

# Reading ---------------------------------------------------------------------

# A matrix of texts, one row a line of file i of an entry.
read_part <- function(entry, i, file) {
  bytes <- plain_bytes(file)
  check_sum(bytes, entry$files$md5[i], file)
  lines <- strsplit(rawToChar(bytes), "\n", fixed = TRUE, useBytes = TRUE)[[1]]
  lines <- trimws(lines[seq_along(lines) > max(0, entry$skip)])
  # "label 1:a 2:b" becomes "label a b".
  if (entry$separator == "libsvm") {
    lines <- gsub("[ \t]+[0-9]+:", " ", lines)
  }
  blank <- if (entry$separator == "comma") "[ \t]*,[ \t]*" else "[ \t]+"
  fields <- strsplit(lines, blank)
  rows <- entry$files$rows[i]
  width <- max(lengths(fields), entry$target, entry$all)
  if (length(lines) != rows || any(lengths(fields) != width)) {
    stop_uci("data", "'", file, "' must have ", rows, " rows of ", width,
             " columns")
  }
  matrix(unlist(fields), rows, byrow = TRUE)
}

# A column as numbers, missing values as NA.
field_numbers <- function(text, entry) {
  text[text %in% entry$missing] <- NA
  number <- suppressWarnings(as.double(text))
  bad <- is.na(number) & !is.na(text)
  if (any(bad)) {
    stop_uci("data", "columns of '", entry$name, "' must hold numbers, not \"",
             text[bad][1], "\"")
  }
  number
}

# Classes in the order of their numbers, or of the alphabet in any locale.
field_target <- function(entry, fields) {
  if (sum(entry$target) == 0) {
    return(NULL)
  }
  text <- fields[, entry$target]
  if (sum(entry$classes) == 0) {
    return(field_numbers(text, entry))
  }
  number <- suppressWarnings(as.double(text))
  if (anyNA(number)) {
    factor(text, sort(unique(text), method = "radix"))
  } else {
    factor(number)
  }
}

#' Data sets that the papers use
#'
#' Reads data sets of the UCI Machine Learning Repository, and a few from
#' elsewhere, in the formats in which their archives offer them: those of the
#' experiments of Muandet et al. (2014) and Xia et al. (2021).
#'
#' The data are not part of the package; what it has is an index of names,
#' addresses, sums, columns and terms of use.
#'
#' @section Where files come from:
#' Nothing is fetched and no folder is written to without being asked.
#' With `dir`, files are read from that folder, or from the folder `raw` in it.
#' Without it they are read from the cache, `tools::R_user_dir("kernmean",
#' "cache")`; if they are not there, an error says how to get them. With
#' `download = TRUE` the missing files are fetched from their archive and kept
#' in `dir`, or in the cache without it. They are fetched to a temporary folder
#' and kept only when all of them are complete and have the right sums. The
#' option `timeout` holds, see [utils::download.file()].
#' `unlink(tools::R_user_dir("kernmean", "cache"), recursive = TRUE)` empties
#' the cache. The repository no longer offers `"housing"`: it needs `dir`, or a
#' mirror as `url`.
#'
#' @section Sums:
#' A file is read when its MD5 sum ([tools::md5sum()], which every R has) is
#' that of the index. One rule holds for all: the sum is taken with each CR LF
#' as LF, and with one LF at the end, so that copies which differ in line ends
#' or empty lines at the end only are accepted. This protects from files that
#' are cut short, altered, of another version, or an error page of a server. It
#' does not protect from a forgery: files with a given MD5 sum can be made on
#' purpose, so for that compare the SHA-256 sums, which stand in the file
#' `system.file("extdata", "uci.dcf", package = "kernmean")` beside the MD5
#' sums and were checked when these were computed. Some belong to copies with
#' LF as line end or with a last line end put back.
#'
#' @section Terms of use:
#' The repository states CC BY 4.0 for its data sets today. `"lymphography"` and
#' `"primary-tumor"` ask for the line: data obtained from the University Medical
#' Centre, Institute of Oncology, Ljubljana, Yugoslavia; thanks go to M. Zwitter
#' and M. Soklic. `"bodyfat"` (StatLib) may be used for non-commercial purposes;
#' `"Eckerle4"` (NIST) is work of the United States government; for `"housing"`
#' and `"svmguide2"` (LIBSVM) no statement is known. Field `terms` has it for
#' each.
#'
#' @section Errors:
#' Of class `kernmean_error_data`: files that are missing, cannot be fetched, or
#' are not what they should be. Of class `kernmean_error_input`: arguments that
#' are not what they must be.
#'
#' @param name The name of a data set, as in the list that `uci_data()` gives.
#' @param dir A folder with the files, or `NULL` for the cache.
#' @param ... Must be empty.
#' @param download May missing files be fetched and kept?
#' @param columns `"real"`: the columns that the archive calls continuous or
#'   numeric, counts among them (`"lymphography"`, `"primary-tumor"` and
#'   `"hayes-roth"` have none); `"all"`: every feature that is a number, codes
#'   of categories too, with `NA` for missing values. Words, such as the colors
#'   in `"flag"`, are left out. Which columns the papers used is not printed;
#'   the level of their figures suggests these, but all 14 of `"australian"` in
#'   Muandet et al. (2014).
#' @param standardize Drop columns that are constant, then scale the others to
#'   mean 0 and variance 1 (divisor n - 1, as [scale()]) over all points?
#'   Missing values are then an error.
#' @param url With `download = TRUE`, an address in place of the archive's, such
#'   as that of a mirror or `"file:///folder"`; paths below it are the
#'   archive's, `paste0(url, "/glass/glass.data")`.
#' @return Without arguments, a data frame with one row for each data set:
#'   `name`, number of points `n`, numbers of `real` and of `all` columns,
#'   `target` (what `class` will be) and `where` the files are. Otherwise an
#'   object of class `uci_data`, with methods for `print()` and
#'   `as.data.frame()` (the columns, and `class` as the last); a list of
#' \item{x}{a double matrix, one row for each point in the order of the files,
#'   which follow each other where there are several. Columns have the names of
#'   the source where it gives short ones, else `V1`, `V2`, ...: their number in
#'   the file, which counts the target, and for `"svmguide2"` the label as 1.}
#' \item{class}{a factor; for `"housing"`, `"bodyfat"` and `"abalone"` the
#'   numbers to predict; `NULL` for `"Eckerle4"`.}
#' \item{name, columns, standardized}{as given.}
#' \item{constant}{names of the constant columns; those that were dropped where
#'   `standardize` is `TRUE`.}
#' \item{words}{names of the features that were left out of `columns = "all"`.}
#' \item{source, files}{addresses of the files at the archive, and the files
#'   that were read.}
#' \item{terms}{terms of use.}
#'
#' @references
#' Kelly, M., Longjohn, R. and Nottingham, K. The UCI Machine Learning
#' Repository. <https://archive.ics.uci.edu>
#'
#' Muandet, K., Fukumizu, K., Sriperumbudur, B., Gretton, A. and Schölkopf, B.
#' (2014). Kernel mean estimation and Stein effect. *Proceedings of the 31st
#' International Conference on Machine Learning*, 10--18.
#' \doi{10.48550/arXiv.1306.0842}
#'
#' Xia, X., Shan, S., Gong, M., Wang, N., Gao, F., Wei, H. and Liu, T. (2021).
#' Kernel mean estimation by marginalized corrupted distributions.
#' \doi{10.48550/arXiv.2107.04855}
#'
#' @seealso [kme_density()], [kme_pca()]
#' @family densities
#' @examples
#' # What there is:
#' subset(uci_data(), real >= 30)
#' # uci_data("wine", download = TRUE) fetches a data set and keeps it; then
#' # uci_data("wine") reads it, and uci_data("wine", dir = "FOLDER") reads the
#' # file wine.data in a folder of your own.
#' @export
uci_data <- function(name, dir = NULL, ..., download = FALSE,
                     columns = c("real", "all"), standardize = FALSE,
                     url = NULL) {
  check_dots(...)
  index <- uci_index()
  if (missing(name)) {
    return(uci_list(index))
  }
  if (!is.character(name) || length(name) != 1L || !name %in% names(index)) {
    stop_input(
      "'name' must be one of the data sets that uci_data() lists, not ",
      describe(name),
      if (is.character(name) && length(name) == 1L && !is.na(name)) {
        near_name(name, names(index))
      }
    )
  }
  read_uci(index[[name]], dir, download, columns, standardize, url)
}

# uci_data() for one entry of an index; `fetch` gets one file.
read_uci <- function(entry, dir = NULL, download = FALSE,
                     columns = c("real", "all"), standardize = FALSE,
                     url = NULL, fetch = fetch_file) {
  download <- check_flag(download, "download")
  standardize <- check_flag(standardize, "standardize")
  columns <- check_choice(columns, c("real", "all"), "columns")
  check_place(dir, url, download)
  used <- entry[[columns]]
  if (length(used) == 0L) {
    stop_input("'columns' must be \"all\" for '", entry$name,
               "', which has no real-valued column")
  }
  files <- uci_files(entry, dir, download, url, fetch)
  parts <- lapply(seq_along(files), \(i) read_part(entry, i, files[i]))
  fields <- do.call(rbind, parts)
  x <- vapply(used, \(j) field_numbers(entry, fields[, j], j),
              numeric(nrow(fields)))
  dim(x) <- c(nrow(fields), length(used))
  colnames(x) <- column_names(entry, used)
  constant <- apply(x, 2L, \(column) length(unique(column)) == 1L)
  found <- list(
    x = x, class = field_target(entry, fields), name = entry$name,
    columns = columns, standardized = standardize,
    constant = colnames(x)[constant],
    words = column_names(entry, if (columns == "all") entry$words),
    source = paste(entry$base, entry$files$path, sep = "/"),
    files = normalizePath(files), terms = entry$terms
  )
  if (standardize) {
    found$x <- standardized(x[, !constant, drop = FALSE], entry$name)
  }
  structure(found, class = "uci_data")
}

#' @export
print.uci_data <- function(x, ...) {
  n <- nrow(x$x)
  d <- ncol(x$x)
  target <- if (is.factor(x$class)) {
    counts <- table(x$class)
    shown <- utils::head(paste0(names(counts), " (", counts, ")"), 8L)
    paste0(length(counts), " classes: ", toString(shown),
           if (length(counts) > 8L) ", ...")
  } else if (!is.null(x$class)) {
    paste("a numeric target,", format_number(min(x$class)), "to",
          format_number(max(x$class)))
  } else {
    "no target"
  }
  missing <- sum(is.na(x$x))
  lines <- c(
    paste0("Data set '", x$name, "'"),
    paste0(n, " points in ", d, if (x$columns == "real") " real-valued",
           if (d == 1L) " column, " else " columns, ", target),
    if (x$standardized) "standardized to mean 0 and variance 1",
    if (length(x$constant)) {
      paste0("constant columns", if (x$standardized) ", dropped", ": ",
             toString(x$constant))
    },
    if (length(x$words)) paste0("words, left out: ", toString(x$words)),
    if (missing > 0L) paste("missing values:", missing),
    paste("from", sub("^[a-z]+://([^/]*)/.*", "\\1:", x$source[1L]),
          toString(basename(x$source))),
    paste0("terms: ", x$terms)
  )
  cat(strwrap(lines, 79L, exdent = 2L), sep = "\n")
  invisible(x)
}

#' @export
as.data.frame.uci_data <- function(x, row.names = NULL, optional = FALSE,
                                   ...) {
  check_dots(...)
  table <- as.data.frame(x$x, optional = check_flag(optional, "optional"))
  table$class <- x$class
  name_frame(table, row.names)
}

# --- The index -------------------------------------------------------------

# One list for each record. A line of Files is the path below Base, the number
# of rows, and the MD5 sum of plain_bytes(); the SHA-256 sum that follows is
# that of the bytes as they were.
uci_index <- function(file = system.file("extdata", "uci.dcf",
                                         package = "kernmean")) {
  records <- read.dcf(file)
  entries <- lapply(seq_len(nrow(records)), \(i) {
    field <- \(name) if (name %in% colnames(records) &&
                           !is.na(records[i, name])) records[[i, name]]
    words <- \(name) strsplit(trimws(field(name)), "[ \n]+")[[1L]]
    number <- \(name) if (is.null(field(name))) 0L else as.integer(field(name))
    files <- matrix(words("Files"), ncol = 4L, byrow = TRUE)
    list(
      name = field("Name"), where = field("Where"), base = field("Base"),
      offered = is.null(field("Offered")),
      files = data.frame(path = files[, 1L], rows = as.integer(files[, 2L]),
                         md5 = files[, 3L], sha256 = files[, 4L]),
      separator = field("Separator"), skip = number("Skip"),
      missing = field("Missing"), real = read_ranges(field("Real")),
      all = read_ranges(field("All")), words = read_ranges(field("Words")),
      target = number("Target"), classes = number("Classes"),
      names = if (!is.null(field("Names"))) words("Names"),
      terms = gsub("\n", " ", field("Terms"))
    )
  })
  stats::setNames(entries, vapply(entries, `[[`, "", "name"))
}

# "1-3,5" as c(1, 2, 3, 5)
read_ranges <- function(text) {
  parts <- if (is.null(text)) list() else strsplit(text, ",")[[1L]]
  ends <- lapply(strsplit(as.character(parts), "-"), as.integer)
  as.integer(unlist(lapply(ends, \(e) e[1L]:e[length(e)])))
}

uci_list <- function(index) {
  count <- \(field) unname(vapply(index, \(entry) length(entry[[field]]), 1L))
  each <- \(f) unname(vapply(index, f, ""))
  data.frame(
    name = names(index),
    n = unname(vapply(index, \(entry) sum(entry$files$rows), 1L)),
    real = count("real"), all = count("all"),
    target = each(\(entry) if (entry$target == 0L) {
      "none"
    } else if (entry$classes == 0L) {
      "numeric"
    } else {
      paste(entry$classes, "classes")
    }),
    where = each(\(entry) {
      paste0(entry$where, if (!entry$offered) ", no longer offered")
    })
  )
}

column_names <- function(entry, j) {
  if (is.null(entry$names)) sprintf("V%d", j) else entry$names[j]
}

# --- Finding and fetching --------------------------------------------------

check_place <- function(dir, url, download) {
  is_text <- \(x) is.character(x) && length(x) == 1L && !is.na(x) && nzchar(x)
  if (!is.null(dir) && !(is_text(dir) && dir.exists(dir))) {
    stop_input("'dir' must be an existing folder, not ", describe(dir))
  }
  if (!is.null(url) && !is_text(url)) {
    stop_input("'url' must be an address, not ", describe(url))
  }
  if (!is.null(url) && !download) {
    stop_input("'url' must not be given without download = TRUE")
  }
}

# The files of an entry, all of which exist.
uci_files <- function(entry, dir, download, url, fetch) {
  # R warns of a home folder that is not there.
  home <- if (is.null(dir)) {
    suppressWarnings(tools::R_user_dir("kernmean", "cache"))
  } else {
    dir
  }
  names <- basename(entry$files$path)
  is_file <- \(path) utils::file_test("-f", path)
  places <- file.path(home, names)
  inner <- file.path(home, "raw", names)
  places <- ifelse(!is_file(places) & is_file(inner), inner, places)
  lost <- !is_file(places)
  if (any(lost) && !download) {
    stop_missing(entry, names[lost], dir, home)
  }
  if (any(lost)) {
    fetch_all(entry, lost, home, url, fetch)
  }
  places
}

stop_missing <- function(entry, names, dir, home) {
  call <- paste0("uci_data(\"", entry$name, "\", ")
  stop_kernmean(
    "data", "the data set '", entry$name, "' needs ", toString(names),
    ", not found in ", if (is.null(dir)) "the cache ", "'", home, "'",
    if (is.null(dir)) {
      paste0("; ", call, "dir = \"FOLDER\") reads from a folder")
    },
    if (entry$offered) {
      paste0("; ", call, "download = TRUE) downloads from ",
             dirname(paste(entry$base, entry$files$path[1L], sep = "/")))
    } else {
      "; the archive no longer offers it for download"
    }
  )
}

# Fetches to a temporary folder; keeps the files when all are what they should
# be.
fetch_all <- function(entry, lost, home, url, fetch) {
  if (!entry$offered && is.null(url)) {
    stop_kernmean(
      "data", "the data set '", entry$name, "' cannot be downloaded, the ",
      "archive no longer offers it; ", toString(basename(entry$files$path)),
      " must be in 'dir', or in a mirror given as 'url'"
    )
  }
  base <- if (is.null(url)) entry$base else sub("/+$", "", url)
  box <- tempfile("uci")
  dir.create(box)
  on.exit(unlink(box, recursive = TRUE))
  for (i in which(lost)) {
    path <- entry$files$path[i]
    from <- paste(base, path, sep = "/")
    to <- file.path(box, basename(path))
    problem <- fetch(from, to)
    if (!is.null(problem)) {
      stop_kernmean(
        "data", "cannot download ", from, ": ", problem, "; fetched by other ",
        "means, the file can be read from a folder given as 'dir'"
      )
    }
    check_sum(plain_bytes(to), entry$files$md5[i],
              paste0("what came from ", from))
  }
  keep_files(file.path(box, basename(entry$files$path[lost])), home)
}

# NULL, or why a file could not be fetched.
fetch_file <- function(from, to) {
  # The last warning says more than the error after it.
  said <- character()
  note <- function(w) {
    said <<- c(conditionMessage(w), said)
    invokeRestart("muffleWarning")
  }
  failed <- tryCatch(
    withCallingHandlers(
      utils::download.file(from, to, quiet = TRUE, mode = "wb") != 0L,
      warning = note
    ),
    error = \(e) {
      said <<- c(said, conditionMessage(e))
      TRUE
    }
  )
  if (failed) c(said, "the download failed")[1L]
}

# Copies under another name, then renames: no half-written file has the name of
# a data file.
keep_files <- function(files, home) {
  if (!dir.exists(home)) {
    dir.create(home, FALSE, recursive = TRUE)
  }
  part <- tempfile("part", home)
  on.exit(unlink(part))
  for (file in files) {
    kept <- suppressWarnings(
      file.copy(file, part) && file.size(part) == file.size(file) &&
        file.rename(part, file.path(home, basename(file)))
    )
    if (!kept) {
      stop_kernmean("data", "cannot write to the folder '", home, "'")
    }
  }
}

# The bytes of a file, CR LF as LF, with one LF at the end.
plain_bytes <- function(file) {
  lf <- as.raw(10L)
  bytes <- tryCatch(
    readBin(file, "raw", file.size(file)),
    error = \(e) stop_kernmean("data", "cannot read the file '", file, "'"),
    warning = \(w) stop_kernmean("data", "cannot read the file '", file, "'")
  )
  bytes <- bytes[!(bytes == as.raw(13L) & c(bytes[-1L] == lf, FALSE))]
  c(bytes[seq_len(max(0L, which(bytes != lf)))], lf)
}

check_sum <- function(bytes, md5, what) {
  copy <- tempfile("uci")
  on.exit(unlink(copy))
  writeBin(bytes, copy)
  found <- unname(tools::md5sum(copy))
  if (!identical(found, md5)) {
    stop_kernmean(
      "data", what, " is not the file that the index knows: its MD5 sum, with ",
      "LF as line end, is ", found, ", not ", md5, "; a copy that is damaged ",
      "must be replaced"
    )
  }
}

# --- Reading ---------------------------------------------------------------

# A matrix of texts, one row a line of file i of an entry.
read_part <- function(entry, i, file) {
  bytes <- plain_bytes(file)
  check_sum(bytes, entry$files$md5[i], paste0("'", file, "'"))
  lines <- strsplit(rawToChar(bytes), "\n", fixed = TRUE, useBytes = TRUE)[[1L]]
  lines <- trimws(lines[seq_along(lines) > entry$skip])
  # "label 1:a 2:b" becomes "label a b".
  if (entry$separator == "libsvm") {
    lines <- gsub("[ \t]+[0-9]+:", " ", lines)
  }
  blank <- if (entry$separator == "comma") "[ \t]*,[ \t]*" else "[ \t]+"
  fields <- strsplit(lines, blank)
  rows <- entry$files$rows[i]
  width <- lengths(fields)
  if (length(lines) != rows) {
    stop_kernmean("data", "'", file, "' must have ", rows, " rows, not ",
                  length(lines))
  }
  wanted <- max(width, entry$target, entry$all)
  if (any(width != wanted)) {
    bad <- which(width != wanted)[1L]
    stop_kernmean("data", "'", file, "' must have ", wanted, " columns, not ",
                  width[bad], " as in row ", bad)
  }
  matrix(unlist(fields), rows, byrow = TRUE)
}

# Column j as numbers, missing values as NA.
field_numbers <- function(entry, text, j) {
  text[text %in% entry$missing] <- NA
  number <- suppressWarnings(as.double(text))
  bad <- is.na(number) & !is.na(text)
  if (any(bad)) {
    stop_kernmean("data", "column '", column_names(entry, j), "' of '",
                  entry$name, "' must hold numbers, not \"", text[bad][1L],
                  "\"")
  }
  number
}

# Classes in the order of their numbers, or of the alphabet in any locale.
field_target <- function(entry, fields) {
  if (entry$target == 0L) {
    return(NULL)
  }
  text <- fields[, entry$target]
  if (entry$classes == 0L) {
    return(field_numbers(entry, text, entry$target))
  }
  number <- suppressWarnings(as.double(text))
  if (anyNA(number)) {
    factor(text, sort(unique(text), method = "radix"))
  } else {
    factor(number)
  }
}

standardized <- function(x, name) {
  missing <- colSums(is.na(x))
  missing <- missing[missing > 0]
  if (length(missing)) {
    stop_input(
      "'standardize' must be FALSE for '", name, "', which has ", sum(missing),
      " missing values: ",
      toString(paste0(names(missing), " (", missing, ")"))
    )
  }
  x <- scale(x)
  matrix(x, nrow(x), dimnames = list(NULL, colnames(x)))
}

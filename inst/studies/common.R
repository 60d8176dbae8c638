# What the simulation studies share: estimators, arguments, work over several
# processes, comparisons, tables and figures.

# Arguments -----------------------------------------------------------------

give_up <- function(...) {
  message(study_name, ": ", ...)
  quit(save = "no", status = 2)
}

if (!requireNamespace("kernmean", quietly = TRUE)) {
  give_up("the package 'kernmean' must be installed")
}
library(kernmean)

# `defaults`: a named list of what each --option is without being given; one
# that is FALSE is a switch, the others take a value.
read_options <- function(args, defaults, usage) {
  chosen <- defaults
  this_run$command <- describe_command(args)
  while (length(args) > 0) {
    arg <- args[[1]]
    name <- substring(arg, 3)
    if (arg %in% c("--help", "-h")) {
      cat(usage, "\n", sep = "")
      quit(save = "no")
    } else if (!startsWith(arg, "--") || !name %in% names(defaults)) {
      give_up("unknown argument '", arg, "'\n\n", usage)
    } else if (isFALSE(defaults[[name]])) {
      chosen[[name]] <- TRUE
    } else {
      if (length(args) < 2) give_up(arg, " needs a value\n\n", usage)
      chosen[[name]] <- args[[2]]
      args <- args[-1]
    }
    args <- args[-1]
  }
  this_run$quick <- isTRUE(chosen$quick)
  chosen
}

# What write_table() says of a run.
this_run <- new.env()
this_run$clock <- proc.time()[["elapsed"]]

# Without what the results do not depend on, and without the names of folders.
describe_command <- function(args) {
  at <- which(args %in% c("--out", "--cores", "--plan"))
  args <- args[setdiff(seq_along(args), c(at, at + 1))]
  args[grepl("[/\\\\]", args)] <- "PATH"
  paste(c("Rscript", study_name, args), collapse = " ")
}

whole_number <- function(value, option, least) {
  number <- suppressWarnings(as.numeric(value))
  if (!isTRUE(number >= least && number <= 1e6 && number == round(number))) {
    give_up(option, " must be a whole number from ", least, " on, not '", value,
            "'")
  }
  number
}

one_of <- function(value, option, choices) {
  if (!value %in% choices) {
    give_up(option, " must be one of ", toString(choices), ", not '", value,
            "'")
  }
  value
}

output_folder <- function(folder) {
  if (!dir.exists(folder)) {
    dir.create(folder, showWarnings = FALSE, recursive = TRUE)
  }
  if (file.access(folder, 2) != 0) {
    give_up("cannot write into the folder '", folder, "'")
  }
  folder
}

# The studies' problems are small: one thread each, processes for the rest.
use_one_thread <- function() kernmean_threads(1)

# Estimators ----------------------------------------------------------------

# Estimators under the names that the package has for them, with `rules` and the
# rule by which those that shrink select their lambda.
by_label <- function(estimators, rules = FALSE) {
  labels <- vapply(estimators, function(estimator) {
    rule <- if (rules && "lambda" %in% names(estimator)) estimator$select
    paste(c(estimator$label, rule), collapse = " ")
  }, "")
  stats::setNames(estimators, labels)
}

plain_estimators <- by_label(list(est_kme(), est_skmse(), est_fkmse()))
marginal_estimators <- by_label(list(est_mkme(), est_mmkme()))
# Beyond the papers.
beyond_estimators <- by_label(list(est_smooth(), est_stack()))
# Those of the studies that ask what a better mean is worth.
compared_estimators <- c(plain_estimators, marginal_estimators["MKME"],
                         beyond_estimators)
rule_estimators <- by_label(list(
  est_kme(), est_skmse(select = "loocv"), est_skmse(select = "plugin"),
  est_fkmse(select = "loocv"), est_fkmse(select = "gcv"),
  est_fkmse(select = "printed")
), rules = TRUE)

# Data ----------------------------------------------------------------------

source(system.file("studies", "uci.R", package = "kernmean"),
       local = TRUE)

# What mlbench has of the data sets of uci_data().
mlbench_names <- c(
  ionosphere = "Ionosphere", sonar = "Sonar", satimage = "Satellite",
  vehicle = "Vehicle", vowel = "Vowel", housing = "BostonHousing",
  glass = "Glass"
)

# Those of `names` that can be read, from the archives' files (`folder`, or
# fetched) or else, each for itself, from mlbench: standardized matrices without
# constant columns; says which are missing. `coded`: data sets of which all
# columns are used, the codes as numbers. `numbers`: for a data set the columns
# that mlbench has as factors although they hold numbers.
find_data <- function(names, folder, download, coded = NULL, numbers = NULL) {
  archives <- nzchar(folder) || download
  if (!archives && !requireNamespace("mlbench", quietly = TRUE)) {
    give_up("the package 'mlbench' must be installed (or give --data FOLDER)")
  }
  data <- sapply(names, function(name) {
    x <- if (archives) read_archive(name, folder, download, name %in% coded)
    if (is.null(x)) read_mlbench(name, numbers[[name]]) else x
  }, simplify = FALSE)
  data <- data[lengths(data) > 0]
  missing <- setdiff(names, names(data))
  if (length(data) == 0) give_up("none of the data sets can be read")
  if (length(missing) > 0) {
    say("Of the ", length(names), " data sets, ", length(missing),
        " are missing ", if (!archives) "in the package mlbench ", "(",
        toString(missing), ").")
  }
  data
}

# NULL, and a message, for a data set that cannot be read.
read_archive <- function(name, folder, download, coded) {
  x <- tryCatch(
    uci_data(name, if (nzchar(folder)) folder, download = download,
             columns = if (coded) "all" else "real", standardize = !coded)$x,
    kernmean_error_data = function(e) {
      message(study_name, ": ", conditionMessage(e))
    },
    kernmean_error = function(e) give_up(conditionMessage(e))
  )
  if (coded && !is.null(x)) {
    x <- x[, colMeans(is.na(x)) <= 0.1]
    x <- standardize(x[rowSums(is.na(x)) == 0, ])
  }
  if (!is.null(x)) unname(x)
}

# The class is a factor, but for the target of BostonHousing, "medv".
read_mlbench <- function(name, numbers) {
  if (!name %in% names(mlbench_names) ||
        !requireNamespace("mlbench", quietly = TRUE)) {
    return(NULL)
  }
  box <- new.env()
  utils::data(list = mlbench_names[[name]], package = "mlbench", envir = box)
  table <- box[[mlbench_names[[name]]]]
  table[numbers] <- lapply(table[numbers], function(column) {
    as.numeric(as.character(column))
  })
  table <- table[vapply(table, is.numeric, NA) & names(table) != "medv"]
  x <- unname(as.matrix(table))
  storage.mode(x) <- "double"
  standardize(x)
}

standardize <- function(x) {
  x <- x[, apply(x, 2, function(column) min(column) < max(column))]
  matrix(scale(x), nrow(x))
}

# Work ----------------------------------------------------------------------

# lapply(), on `cores` processes where future.apply is installed; NULL for the
# processes that future::plan() gives. What an item gives must depend on the
# item only (its data, or its seed), so that the number of processes changes
# nothing.
over <- function(items, f, cores) {
  if (identical(cores, 1) || !is.null(cores) && !has_processes()) {
    return(lapply(items, f))
  }
  if (!is.null(cores)) {
    before <- future::plan(future::multisession, workers = cores)
    on.exit(future::plan(before))
  }
  # The functions of the script, as closures in lists are not looked through.
  globals <- structure(TRUE, add = ls(globalenv()))
  future.apply::future_lapply(items, function(item) {
    kernmean_threads(1)
    f(item)
  }, future.seed = NULL, future.globals = globals,
  future.packages = "kernmean")
}

has_processes <- function() {
  found <- requireNamespace("future.apply", quietly = TRUE)
  if (!found) {
    message("The package 'future.apply' is not installed: one process only.")
  }
  found
}

# For several calls of over(): `cores` for it, the processes being started once.
start_processes <- function(cores) {
  if (cores == 1 || !has_processes()) return(1)
  future::plan(future::multisession, workers = cores)
  NULL
}

draw_seeds <- function(count) sample.int(.Machine$integer.max, count)

# A seed that follows from a text alone, whatever else is computed.
seed_of <- function(...) {
  characters <- utf8ToInt(paste(..., sep = "|"))
  Reduce(function(seed, next_one) (31 * seed + next_one) %% 2147483647,
         characters, 7)
}

# Comparisons ---------------------------------------------------------------

standard_error <- function(values) stats::sd(values) / sqrt(length(values))

# How much smaller the mean loss of b is than that of a, in per cent of a's, and
# its standard error: paired, by the delta method.
gain <- function(a, b) {
  ratio <- mean(b) / mean(a)
  parts <- 100 * (a * ratio - b) / mean(a)
  c(gain = 100 * (1 - ratio), se = standard_error(parts))
}

# A difference counts when it exceeds two standard errors: 1, -1, or 0.
clear_sign <- function(difference, error) {
  sign(difference) * (abs(difference) > 2 * error)
}

# Two-sided sign test at 5% of whether b is smaller than a, in pairs, without
# the ties: 1 (smaller), -1 (larger), or 0. Of 10 pairs it takes 9.
sign_test <- function(a, b) {
  wins <- sum(b < a)
  losses <- sum(b > a)
  if (wins + losses == 0) return(0)
  p <- stats::binom.test(wins, wins + losses)$p.value
  sign(wins - losses) * (p <= 0.05)
}

# "!", "" or "*" for -1, 0 and 1, all of one width.
mark_signs <- function(signs) c("!", " ", "*")[signs + 2]

# "better in 3, worse in 1, unclear in 2 of 6"
count_signs <- function(signs) {
  sprintf("better in %d, worse in %d, unclear in %d of %d", sum(signs > 0),
          sum(signs < 0), sum(signs == 0), length(signs))
}

# What a claim that all signs are positive comes to.
verdict <- function(signs) {
  if (length(signs) == 0) {
    "not examined in this run"
  } else if (all(signs > 0)) {
    "AGREES"
  } else if (all(signs < 0)) {
    "CONTRADICTED"
  } else if (!any(signs < 0)) {
    if (any(signs > 0)) "AGREES, not clearly everywhere" else "NOT CONFIRMED"
  } else if (any(signs > 0)) {
    "DOES NOT HOLD THROUGHOUT"
  } else {
    "NOT CONFIRMED, in part contradicted"
  }
}

# Tests ---------------------------------------------------------------------

nominal <- 0.05

# p-values, reps x tests. Data and permutations of a repetition have seeds of
# their own; all tests of a repetition share both, which makes them comparable.
repeat_tests <- function(make, tests, reps, cores, seed) {
  set.seed(seed)
  seeds <- matrix(draw_seeds(2 * reps), 2)
  found <- over(seq_len(reps), function(r) {
    set.seed(seeds[1, r])
    data <- make()
    vapply(tests, function(test) {
      set.seed(seeds[2, r])
      test(data)
    }, 0)
  }, cores)
  do.call(rbind, found)
}

# p-values are multiples of 1/(B + 1): 0.05 counts, whatever its rounding.
rejects <- function(p, level = nominal) p <= level + 1e-12

# Are a's rejections more than b's? McNemar's test, exact: 1, -1, or 0.
mcnemar_sign <- function(a, b) {
  only <- c(sum(a & !b), sum(b & !a))
  if (sum(only) == 0 || stats::binom.test(only)$p.value >= 0.05) {
    return(0)
  }
  sign(only[1] - only[2])
}

# The level of an exact test whose p-values are multiples of 1/(B + 1).
exact_level <- function(permutations, level = nominal) {
  floor(level * (permutations + 1) + 1e-9) / (permutations + 1)
}

# Between these a number of rejections falls in 999 of 1,000 studies.
level_band <- function(reps, level) {
  stats::qbinom(c(0.0005, 0.9995), reps, level)
}

# Is a number of rejections within the 99.9% band of a test of level 0.05?
judge <- function(count, band, claimed) {
  where <- ifelse(count < band[1], "below the band",
                  ifelse(count > band[2], "ABOVE THE BAND", "in the band"))
  ifelse(claimed, where, paste0(where, " (not claimed exact)"))
}

# Output --------------------------------------------------------------------

say <- function(..., indent = 0) {
  cat(strwrap(paste0(...), 79, indent = indent, exdent = 2), sep = "\n")
}

# Values of the rows of results, size by size, as estimators x sizes; `along`
# is the size's column, "n" or "d".
wide_cells <- function(values, rows, along) {
  names <- unique(rows$estimator)
  matrix(values, length(names), dimnames = list(
    names, paste(along, "=", unique(rows[[along]]))
  ))
}

# A block of cells (a character matrix) below its title.
print_block <- function(title, cells, width = 8) {
  right <- function(text) paste(sprintf("%*s", width, text), collapse = "")
  lines <- paste0(
    sprintf("%-15s", c("", rownames(cells))),
    c(right(colnames(cells)), apply(cells, 1, right))
  )
  cat("  ", title, "\n", sep = "")
  cat(sub(" +$", "", lines), sep = "\n")
  cat("\n")
}

# Under another name first, and under its own when it is whole: neither a stop
# nor a full disk leaves half a file, and two runs in one folder each leave a
# whole one. `write` writes to a path; `is_whole` says whether that is all.
keep_whole <- function(file, write, is_whole) {
  folder <- dirname(file)
  unfinished <- tempfile("unfinished-", folder)
  on.exit(unlink(unfinished))
  problem <- tryCatch({
    suppressWarnings(write(unfinished))
    if (!is_whole(unfinished) || !file.rename(unfinished, file)) {
      "it is not there as a whole, is the disk full?"
    }
  }, error = conditionMessage)
  if (!is.null(problem)) give_up("cannot write '", file, "': ", problem)
}

# Lines, compressed where the name ends in .gz.
keep_lines <- function(lines, file) {
  keep_whole(file, function(path) {
    box <- if (endsWith(file, ".gz")) gzfile(path, "w") else file(path, "w")
    tryCatch(writeLines(lines, box), finally = close(box))
  }, function(path) identical(readLines(path), enc2native(lines)))
}

csv_lines <- function(table, ...) {
  utils::capture.output(utils::write.csv(table, row.names = FALSE, ...))
}

# Above the table, in lines that start with #: `notes`, the command, and what it
# took since the last table. The smallest form of a study computes a few cells
# of it, with all repetitions: rows that must be those of the stored table.
# `key`: the columns by which rows are known; NULL for a table of times.
write_table <- function(table, folder, name, key = NULL, notes = NULL, ...) {
  file <- file.path(folder, name)
  now <- proc.time()[["elapsed"]]
  notes <- c(notes, this_run$command, sprintf(
    "kernmean %s, R %s, %.1f minutes", utils::packageVersion("kernmean"),
    getRversion(), (now - this_run$clock) / 60
  ))
  this_run$clock <- now
  keep_lines(c(paste("#", notes), csv_lines(table, ...)), file)
  cat("Table: ", file, "\n", sep = "")
  if (this_run$quick && !is.null(key)) {
    check_stored(read_table(file), sub(".gz$", "", name), key)
  }
}

read_table <- function(file) {
  utils::read.csv(file, comment.char = "#", check.names = FALSE,
                  stringsAsFactors = FALSE)
}

stored_table <- function(name) {
  files <- file.path(here, "results", paste0(name, c("", ".gz", ".xz")))
  read_table(files[file.exists(files)][1])
}

# For each number of a table's rows what `stored` has in its place; `key`: the
# columns by which rows are known.
beside_stored <- function(table, stored, key) {
  name_rows <- function(rows) do.call(paste, c(rows[key], sep = "|"))
  values <- setdiff(names(table)[vapply(table, is.numeric, NA)], key)
  at <- match(name_rows(table), name_rows(stored))
  data.frame(row = name_rows(table), column = rep(values, each = nrow(table)),
             now = unlist(table[values], use.names = FALSE),
             stored = unlist(stored[at, values], use.names = FALSE))
}

# To a thousandth, as roundings differ between machines. Times are not compared.
# The tables were made with AVX-512; with fewer instructions near ties and long
# searches end elsewhere, and three quarters must be the same.
check_stored <- function(table, name, key) {
  both <- beside_stored(table, stored_table(name), key)
  both <- both[!both$column %in% c("seconds", "ms"), ]
  both <- both[!(is.na(both$now) & is.na(both$stored)), ]
  apart <- abs(both$now - both$stored)
  far <- which(is.na(apart) | apart > 1e-3 * abs(both$stored) + 1e-9)
  say("Of ", nrow(both), " values of ", name, " computed again, ",
      sum(apart %in% 0), " are the stored ones to the last digit, ",
      nrow(both) - length(far), " to a thousandth.")
  if (length(far) > 0) {
    print(utils::head(both[far, ], 20), row.names = FALSE)
    level <- .Call(utils::getFromNamespace("C_r_isa", "kernmean"), NULL)
    if (level >= 2 || length(far) > nrow(both) / 4) {
      give_up("these are not the stored values")
    }
    say("With this processor's instructions these may differ.")
  }
}

write_figure <- function(folder, name, width, height, draw) {
  if (!capabilities("png")) {
    cat("No figure: this R cannot write PNG files.\n")
    return(invisible())
  }
  file <- file.path(folder, name)
  keep_whole(file, function(path) {
    grDevices::png(path, width = width, height = height, res = 144)
    tryCatch(draw(), finally = grDevices::dev.off())
  }, is_whole_png)
  cat("Figure: ", file, "\n", sep = "")
}

# Its last block is there.
is_whole_png <- function(path) {
  bytes <- readBin(path, "raw", file.size(path))
  identical(utils::tail(bytes, 8)[1:4], charToRaw("IEND"))
}

# Powers of ten as 1e-2, 0.1, 1, 10 and so on, few enough to be read.
log_axis <- function(side, range) {
  at <- 10^(floor(log10(range[1])):ceiling(log10(range[2])))
  at <- at[at >= range[1] / 1.001 & at <= range[2] * 1.001]
  if (length(at) < 2) {
    at <- as.vector(outer(c(1, 2, 5), 10^floor(log10(range))))
    if (sum(at >= range[1] & at <= range[2]) < 3) at <- pretty(range)
  } else if (length(at) > 6) {
    at <- at[seq(1, length(at), by = ceiling(length(at) / 6))]
  }
  graphics::axis(side, at, formatC(at, format = "g", digits = 3), las = 1,
                 lwd = 0, line = -0.5)
  at
}

draw_curve <- function(x, y, look, half = NULL) {
  graphics::lines(x, y, col = look$col, lty = look$lty, lwd = 1.8)
  if (!is.null(half)) {
    graphics::segments(x, y - half, x, y + half, col = look$col, lwd = 1.2)
  }
  graphics::points(x, y, col = look$col, pch = look$pch, cex = 1, lwd = 1.6)
}

# A row of its own below or above the panels, so that no curve is covered.
draw_legend <- function(style, columns, cex = 1.1) {
  graphics::par(mar = c(0, 0, 0, 0))
  graphics::plot.new()
  graphics::legend("center", rownames(style), col = style$col, lty = style$lty,
                   pch = style$pch, lwd = 1.8, pt.lwd = 1.6, bty = "n",
                   ncol = columns, cex = cex, xpd = NA, text.width = 1.1 *
                     max(graphics::strwidth(rownames(style), cex = cex)))
}

# list(value, said: the classes of warnings); NULL for an error of the package.
watch <- function(expression) {
  said <- NULL
  value <- tryCatch(
    withCallingHandlers(expression, kernmean_warning = function(w) {
      said <<- c(said, sub("kernmean_warning_", "", class(w)[1]))
      invokeRestart("muffleWarning")
    }),
    kernmean_error = function(e) NULL
  )
  list(value = value, said = unique(said))
}

# A dose d that depends on three covariates by a line and a parabola, and a
# curve of d whose slope depends on the first. `truth` is the average slope,
# `policy` the effect of half a unit more of d.
derivative_design <- function(n) {
  x <- matrix(stats::rnorm(3 * n), n)
  bend <- 0.4 / sqrt(2)
  d <- 0.6 * x[, 1] + bend * (x[, 2]^2 - 1) + 0.77 * stats::rnorm(n)
  y <- sin(1.5 * d) + d * x[, 1] / 2 + x[, 2]^2 / 2 + x[, 3] + stats::rnorm(n)
  # E exp(itd) of a normal and a chi-squared variable at t = 3/2.
  t <- 1.5
  wave <- exp(-t^2 * (0.6^2 + 0.77^2) / 2) *
    exp(-1i * t * bend) / sqrt(1 - 2i * t * bend)
  list(x = x, treat = d, y = y, truth = t * Re(wave),
       policy = Im(wave * (exp(0.5i * t) - 1)))
}

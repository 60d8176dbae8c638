# How much better than the average do the estimators of a kernel mean do?
#
# A whole data set plays the population: its embedding mu = mean of k(x, .) is
# known exactly, and it fixes the kernel (RBF; its median distance, or half of
# it, as bandwidth). From n points drawn without replacement every estimator
# gives an embedding f, and its squared RKHS error is
#   |f - mu|^2 = |f|^2 - 2 <f, mu> + |mu|^2.
# All estimators and both bandwidths see the same samples.

usage <- "Usage: Rscript heldout.R [FILE.csv] [--reps N] [--out FILE.png]
                         [--table FILE]

Without a file: five data sets of the package mlbench. With a file: its numeric
columns, one row for each point.

  --reps N        samples drawn for each data set and n (at least 2; 100)
  --out FILE.png  where the figure goes (heldout.png, or heldout-FILE.png)
  --table FILE    where the gains go as CSV (nowhere)
  --quick         the smallest form: the first data set
  --help          this text"

study_name <- "heldout.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

data_sets <- c("Ionosphere", "Sonar", "Glass", "Vehicle", "Satellite")
sizes <- c(10, 20, 50)

bandwidths <- c("half the median distance" = 0.5, "the median distance" = 1)

estimators <- c(rule_estimators, marginal_estimators["MKME"], beyond_estimators)

# What the figure shows, in Okabe-Ito colors.
style <- data.frame(
  row.names = c("S-KMSE loocv", "F-KMSE loocv", "MKME", "smoothing", "stack"),
  col = c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000"),
  pch = c(16, 15, 18, 17, 8)
)

# Arguments and data --------------------------------------------------------

read_arguments <- function(args) {
  chosen <- list(reps = 100, out = NULL, file = NULL, table = NULL)
  this_run$command <- describe_command(args)
  this_run$quick <- "--quick" %in% args
  args <- setdiff(args, "--quick")
  while (length(args) > 0) {
    arg <- args[[1]]
    if (arg %in% c("--help", "-h")) {
      cat(usage, "\n", sep = "")
      quit(save = "no")
    } else if (arg %in% c("--reps", "--out", "--table")) {
      if (length(args) < 2) give_up(arg, " needs a value\n\n", usage)
      chosen[[substring(arg, 3)]] <- args[[2]]
      args <- args[-1]
    } else if (startsWith(arg, "-") || !is.null(chosen$file)) {
      give_up("unknown argument '", arg, "'\n\n", usage)
    } else {
      chosen$file <- arg
    }
    args <- args[-1]
  }
  reps <- suppressWarnings(as.numeric(chosen$reps))
  if (!isTRUE(reps >= 2 && reps <= 1e6 && reps == round(reps))) {
    give_up("--reps must be a whole number from 2 on, not '", chosen$reps, "'")
  }
  chosen$reps <- reps
  if (is.null(chosen$out)) {
    stem <- tools::file_path_sans_ext(basename(c(chosen$file, "")[1]))
    chosen$out <- paste0(paste(c("heldout", stem[nzchar(stem)]),
                               collapse = "-"), ".png")
  }
  if (file.access(dirname(chosen$out), 2) != 0) {
    give_up("cannot write the figure into '", dirname(chosen$out), "'")
  }
  if (!is.null(chosen$table) && file.access(dirname(chosen$table), 2) != 0) {
    give_up("cannot write the table into '", dirname(chosen$table), "'")
  }
  chosen
}

# Separator and header are read off the first line.
read_points <- function(file) {
  if (!file.exists(file) || dir.exists(file)) {
    give_up("cannot find the file '", file, "'")
  }
  refuse <- function(e) {
    give_up("cannot read '", file, "' as a table: ", conditionMessage(e))
  }
  tryCatch({
    top <- readLines(file, n = 50, warn = FALSE)
    if (length(top) == 0) stop("it is empty")
    fields <- lapply(c(",", ";", "\t"), function(sep) {
      strsplit(top[1], sep, fixed = TRUE)[[1]]
    })
    widest <- which.max(lengths(fields))
    sep <- c(",", ";", "\t")[widest]
    dec <- if (sep == ";" && any(grepl("[0-9],[0-9]", top))) "," else "."
    names <- gsub("[\"' ]", "", sub(dec, ".", fields[[widest]], fixed = TRUE))
    header <- anyNA(suppressWarnings(as.numeric(names[nzchar(names)])))
    utils::read.table(file, header = header, sep = sep, dec = dec,
                      quote = "\"", comment.char = "", strip.white = TRUE,
                      na.strings = c("NA", "", "?"), check.names = FALSE)
  }, error = refuse, warning = refuse)
}

mlbench_table <- function(name) {
  if (!requireNamespace("mlbench", quietly = TRUE)) {
    give_up("the package 'mlbench' must be installed (or give a file)")
  }
  box <- new.env()
  utils::data(list = name, package = "mlbench", envir = box)
  box[[name]]
}

# The standardized numeric columns as a matrix; says what was left out.
standardized <- function(table, name) {
  say <- function(...) cat(name, ": ", ..., "\n", sep = "")
  listed <- function(words) {
    paste(c(utils::head(words, 8), if (length(words) > 8) "..."),
          collapse = ", ")
  }
  numeric <- vapply(table, is.numeric, NA)
  if (!any(numeric)) give_up("'", name, "' has no numeric column")
  if (!all(numeric)) {
    say("left out the columns that are not numeric: ",
        listed(names(table)[!numeric]))
  }
  x <- as.matrix(table[numeric])
  storage.mode(x) <- "double"
  complete <- rowSums(!is.finite(x)) == 0
  if (!all(complete)) {
    say("left out ", sum(!complete), " of ", nrow(x),
        " rows with missing or infinite values")
    x <- x[complete, , drop = FALSE]
  }
  if (nrow(x) < 2 * min(sizes)) {
    give_up("'", name, "' has ", nrow(x), " complete rows; the study needs ",
            "at least ", 2 * min(sizes))
  }
  constant <- apply(x, 2, function(column) min(column) == max(column))
  if (all(constant)) give_up("every numeric column of '", name, "' is constant")
  if (any(constant)) {
    say("left out the constant columns: ", listed(colnames(x)[constant]))
    x <- x[, !constant, drop = FALSE]
  }
  x <- scale(x)
  matrix(x, nrow(x), ncol(x))
}

# The study -----------------------------------------------------------------

# Squared RKHS errors of all estimators from one sample, as embeddings of which
# `population` is the truth.
errors <- function(sample, population) {
  k <- gram(sample, population$kernel, scale = FALSE)
  vapply(estimators, function(estimator) {
    fit <- kme(k, estimator = estimator)
    fit$norm2 - 2 * kme_inner(fit, population) + population$norm2
  }, 0)
}

summarize <- function(sampled, name, times, n) {
  gains <- apply(sampled, 2, gain, a = sampled[, "KME"])
  data.frame(
    data = name, times = times, n = n, estimator = colnames(sampled),
    error = colMeans(sampled), gain = gains["gain", ], se = gains["se", ],
    of = nrow(sampled), row.names = NULL
  )
}

# Errors of all estimators for samples of n points, reps x estimators x
# bandwidths.
draw_errors <- function(x, populations, n, reps) {
  shown <- function(r) 20 * r %/% reps
  sampled <- vapply(seq_len(reps), function(r) {
    sample <- x[sample.int(nrow(x), n), , drop = FALSE]
    result <- vapply(populations, function(p) errors(sample, p),
                     numeric(length(estimators)))
    message(strrep(".", shown(r) - shown(r - 1)), appendLF = FALSE)
    result
  }, matrix(0, length(estimators), length(populations)))
  aperm(sampled, c(3, 1, 2))
}

study <- function(x, name, reps) {
  whole <- kme(x, kernel_rbf("median"))
  median <- whole$kernel$bandwidth
  populations <- lapply(bandwidths, function(times) {
    if (times == 1) whole else kme(x, kernel_rbf(times * median))
  })
  used <- sizes[2 * sizes <= nrow(x)]
  if (length(used) < length(sizes)) {
    cat(name, ": left out n = ", toString(setdiff(sizes, used)),
        ", more than half of the ", nrow(x), " points\n", sep = "")
  }
  results <- lapply(used, function(n) {
    message(sprintf("%-12s n = %2d ", name, n), appendLF = FALSE)
    sampled <- draw_errors(x, populations, n, reps)
    message("")
    do.call(rbind, lapply(seq_along(bandwidths), function(i) {
      summarize(sampled[, , i], name, bandwidths[[i]], n)
    }))
  })
  results <- do.call(rbind, results)
  results <- results[order(results$times), ]
  for (times in bandwidths) {
    print_results(results[results$times == times, ], dim(x), times * median)
  }
  cbind(results, points = nrow(x), columns = ncol(x))
}

# What is shown -------------------------------------------------------------

print_results <- function(results, size, bandwidth) {
  used <- unique(results$n)
  cat("\n", results$data[1], ": ", size[1], " points, ", size[2],
      if (size[2] == 1) " column" else " columns", ", bandwidth ",
      format(bandwidth, digits = 3), "\n", sep = "")
  cat(strrep(" ", 14), sprintf("  %20s", paste("n =", used)), "\n", sep = "")
  cat(strrep(" ", 14), rep("   error  gain% (s.e.)", length(used)), "\n",
      sep = "")
  for (name in names(estimators)) {
    rows <- results[results$estimator == name, ]
    gains <- if (name == "KME") strrep(" ", 13) else {
      sprintf("%+6.1f (%4.1f)", rows$gain, rows$se)
    }
    cells <- sprintf("  %7.2f%s", 1000 * rows$error, gains)
    line <- paste(c(sprintf("%-14s", name), cells), collapse = "")
    cat(sub(" +$", "", line), "\n", sep = "")
  }
  cat("\n")
}

conclude <- function(results, bandwidth) {
  shrunk <- results[results$estimator != "KME", ]
  names <- names(estimators)[-1]
  count <- function(which) tapply(which, factor(shrunk$estimator, names), sum)
  clear <- clear_sign(shrunk$gain, shrunk$se)
  counts <- sprintf("%s better in %d, worse in %d", names, count(clear > 0),
                    count(clear < 0))
  cells <- nrow(unique(shrunk[c("data", "n")]))
  worst <- shrunk[which.min(shrunk$gain), ]
  text <- paste0(
    "Against the KME, with ", bandwidth, " as bandwidth, by more than two ",
    "standard errors, of ", cells, if (cells == 1) " cell" else " cells",
    " (data set and n): ",
    paste(counts, collapse = "; "), ". The worst cell is ", worst$estimator,
    " on ", worst$data, " at n = ", worst$n,
    sprintf(": %+.1f%% (s.e. %.1f).", worst$gain, worst$se)
  )
  cat(strwrap(text, 80), "", sep = "\n")
}

draw_panel <- function(results, ylim) {
  used <- sort(unique(results$n))
  at <- seq_along(used)
  graphics::plot(NA, xlim = range(at) + c(-0.4, 0.4), ylim = ylim, axes = FALSE,
                 xlab = "", ylab = "", yaxs = "i")
  graphics::abline(h = pretty(ylim), col = "grey92")
  graphics::abline(h = 0, col = "grey40", lwd = 1.5)
  graphics::axis(1, at, used, lwd = 0, line = -0.6)
  graphics::axis(2, pretty(ylim), paste0(pretty(ylim), "%"), las = 1, lwd = 0,
                 line = -0.4)
  graphics::title(main = results$data[1], adj = 0, line = 1.1, cex.main = 1.1)
  shift <- seq(-0.22, 0.22, length.out = nrow(style))
  for (i in seq_len(nrow(style))) {
    rows <- results[results$estimator == rownames(style)[i], ]
    x <- match(rows$n, used) + shift[i]
    graphics::lines(x, rows$gain, col = style$col[i], lwd = 1.2)
    graphics::segments(x, rows$gain - rows$se, x, rows$gain + rows$se,
                       col = style$col[i], lwd = 2)
    graphics::points(x, rows$gain, col = style$col[i], pch = style$pch[i],
                     cex = 1.2, lwd = 2)
  }
}

# Data sets from left to right, bandwidths one above the other; of a single data
# set side by side.
draw <- function(results, reps, file) {
  groups <- split(results, factor(results$data, unique(results$data)))
  single <- length(groups) == 1
  grDevices::png(file, width = if (single) 1100 else 1650,
                 height = if (single) 750 else 1000, res = 144)
  on.exit(grDevices::dev.off())
  shrunk <- results[results$estimator %in% rownames(style), ]
  ylim <- range(0, shrunk$gain - shrunk$se, shrunk$gain + shrunk$se)
  ylim <- ylim + c(-0.04, 0.04) * diff(ylim)
  panels <- matrix(seq_len(2 * length(groups)), nrow = if (single) 1 else 2)
  graphics::layout(rbind(panels, max(panels) + 1),
                   heights = c(rep(1, nrow(panels)), 0.24))
  graphics::par(oma = c(0.5, 1.8, 4.4, 0.5), cex = if (single) 0.95 else 0.8)
  for (group in groups) {
    for (i in seq_along(bandwidths)) {
      graphics::par(mar = c(2.6, 3.2, 3, 0.4))
      draw_panel(group[group$times == bandwidths[[i]], ], ylim)
      graphics::mtext(paste0("bandwidth: ", names(bandwidths)[i]), 3, 0.2,
                      adj = 0, cex = if (single) 0.8 else 0.55, col = "grey30")
      graphics::mtext("points in the sample", 1, 1.5, col = "grey30",
                      cex = if (single) 0.8 else 0.55)
    }
  }
  draw_legend(reps)
  title <- paste0("Error of a kernel mean saved",
                  if (!single) " on real data")
  truth <- paste("Per cent of the plain average's (KME's) mean squared RKHS",
                 "error; the truth is the embedding of the whole data set")
  graphics::mtext(title, 3, 2.4, outer = TRUE, adj = 0.01, cex = 1.25, font = 2)
  graphics::mtext(truth, 3, 0.9, outer = TRUE, adj = 0.01, col = "grey30",
                  cex = if (single) 0.75 else 0.85)
  graphics::mtext("error saved (below zero: lost)", 2, 0.4, outer = TRUE,
                  cex = 0.85)
}

draw_legend <- function(reps) {
  graphics::par(mar = c(0, 0, 0, 0))
  graphics::plot.new()
  graphics::legend("top", rownames(style), col = style$col, pch = style$pch,
                   lwd = 1.5, pt.lwd = 2, pt.cex = 1.2, bty = "n", horiz = TRUE,
                   cex = 1.1, x.intersp = 0.7, xpd = NA, text.width = NA)
  graphics::text(0.5, 0.12, cex = 0.9, col = "grey30", xpd = NA,
                 paste0("Bars: one standard error either way; ", reps,
                        " samples, drawn without replacement. Zero: the KME."))
}

main <- function(args) {
  chosen <- read_arguments(args)
  tables <- if (is.null(chosen$file)) {
    if (this_run$quick) data_sets <- data_sets[1]
    sapply(data_sets, mlbench_table, simplify = FALSE)
  } else {
    stats::setNames(list(read_points(chosen$file)), basename(chosen$file))
  }
  set.seed(20140621)
  cat("Mean squared RKHS error (x 1000) against the embedding of the whole ",
      "data set,\nfrom n points drawn without replacement, ", chosen$reps,
      " samples each; gain over the\nKME in per cent with its paired standard ",
      "error. RBF kernel; its bandwidth\nis the median distance in the whole ",
      "data set, or half of it; columns standardized.\n\n", sep = "")
  results <- do.call(rbind, lapply(names(tables), function(name) {
    study(standardized(tables[[name]], name), name, chosen$reps)
  }))
  for (i in seq_along(bandwidths)) {
    conclude(results[results$times == bandwidths[[i]], ], names(bandwidths)[i])
  }
  if (!is.null(chosen$table)) {
    rounded <- c("error", "gain", "se")
    results[rounded] <- lapply(results[rounded], signif, 5)
    write_table(results, dirname(chosen$table), basename(chosen$table),
                c("data", "times", "n", "estimator"))
  }
  if (capabilities("png")) {
    keep_whole(chosen$out, function(path) draw(results, chosen$reps, path),
               is_whole_png)
    cat("Figure: ", chosen$out, "\n", sep = "")
  } else {
    cat("No figure: this R cannot write PNG files.\n")
  }
}

main(commandArgs(trailingOnly = TRUE))

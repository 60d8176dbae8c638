# Density estimation by matching kernel means on real data: Table 1 of Muandet
# et al. (2014, "M14" below; arXiv 1306.0842) and Table 3 of Xia et al. (2021,
# "X21"; 2107.04855).
#
# To 70% of a data set a mixture of ten normals, each with one variance, is
# fitted: its embedding is matched to an estimate of the kernel mean
# (kme_density()). The score is the average negative log-likelihood on the other
# 30%. Both papers leave open how they optimize, so that the comparison of the
# estimators is to be examined, not the third decimal. Beside them stands where
# all of them start from: the clusters of k-means.

usage <- "Usage: Rscript density.R [options]

  --table 1|3|all      1: Table 1 of M14, 15 data sets, four kernels, KME,
                       S-KMSE, F-KMSE; 3: Table 3 of X21, 15 data sets, RBF
                       kernel, these and MKME, MMKME (all)
  --data FOLDER        the data sets as their archives offer them, see the help
                       of uci_data()
  --download           fetches them. Without it and --data: those that the
                       package mlbench has
  --sets A,B,...       only these data sets
  --splits N           random splits of each data set (at least 2; 10)
  --nstart N           random starts of k-means (50)
  --most N             most points for training (at least 30; 1000)
  --optimize weights|all|both
                       what is fitted: the weights of the components alone, or
                       their means and variances too (both)
  --out DIR            folder for figures and tables, and in DIR/density-cells
                       for what is finished: a run that was stopped goes on
                       from there (.)
  --cores N            processes, with the package future.apply
  --plan PLAN          any other way to run them: what future::plan() takes,
                       such as \"cluster, workers = c('a', 'b')\". Without
                       --cores and --plan, the plan that future finds
                       (R_FUTURE_PLAN); the results depend on none of this
  --from FILE          computes nothing, shows the results stored in FILE
  --quick              the smallest form: 2 data sets, 2 splits, 5 starts, 100
                       points for training
  --help               this text"

study_name <- "density.R"
# source() by another script, such as a vignette, finds the package's folder.
here <- if (sys.nframe() == 0) {
  dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
} else {
  system.file("studies", package = "kernmean")
}
source(file.path(here, "common.R"), local = TRUE)

components <- 10

# The data sets of the two tables.
table_sets <- list(
  "1" = c("ionosphere", "sonar", "australian", "specft", "wdbc", "wine",
          "satimage", "segment", "vehicle", "svmguide2", "vowel", "housing",
          "bodyfat", "abalone", "glass"),
  "3" = c("wine", "glass", "bodyfat", "svmguide2", "ionosphere", "housing",
          "sonar", "specft", "bupa", "lymphography", "primary-tumor", "flag",
          "hayes-roth", "wdbc", "australian")
)
# None of their columns is real-valued: the codes are used as numbers.
coded_sets <- c("lymphography", "primary-tumor", "hayes-roth")
# Of the numbers that mlbench has as factors, only these are real-valued columns
# of uci_data().
factor_columns <- list(ionosphere = 1:2)

estimators <- c(plain_estimators, marginal_estimators)

# What is fitted to a split in one go: a kernel and estimators.
shrinkage <- names(plain_estimators)
marginal <- names(marginal_estimators)
parts <- list(LIN = shrinkage, POLY2 = shrinkage, POLY3 = shrinkage,
              RBF = shrinkage, "RBF marginal" = marginal)
table_parts <- list("1" = names(parts)[1:4], "3" = names(parts)[4:5])

make_kernel <- function(name) {
  switch(name, LIN = kernel_linear(), POLY2 = kernel_poly(2),
         POLY3 = kernel_poly(3), kernel_rbf("median"))
}

# Average negative log-likelihoods printed in M14's Table 1 for the RBF kernel;
# those of the other data sets, and all of X21's Table 3, are not at hand.
printed <- rbind(ionosphere = c("KME" = 40.896, "S-KMSE" = 40.558,
                                "F-KMSE" = 39.680),
                 glass = c(8.617, 8.499, 8.247))

# Okabe-Ito colors, as in the other studies.
style <- data.frame(
  row.names = c("k-means", names(estimators)[-1]),
  col = c("grey45", "#0072B2", "#D55E00", "#009E73", "#000000"),
  pch = c(5, 16, 15, 18, 4), lty = 1
)

# The study -------------------------------------------------------------------

# The rows of the two parts. The seed belongs to a data set and a split,
# whatever else is computed.
split_rows <- function(x, name, split, most) {
  set.seed(seed_of("density", name, split))
  rows <- sample.int(nrow(x))
  test <- seq_len(round(0.3 * nrow(x)))
  list(train = utils::head(rows[-test], most), test = rows[test])
}

# One part on one split: a row for each way to optimize and estimator, and one
# for the start. The estimators share the Gram matrix, the start and the points
# held out; the other parts of the split find the same. "all" is not given the
# start of "weights": its validation begins with clusters of the points that are
# not held out, as a start from all points looks better on those than it is.
run_cell <- function(x, cell, settings) {
  began <- proc.time()[["elapsed"]]
  rows <- split_rows(x, cell$data, cell$split, settings$most)
  train <- x[rows$train, , drop = FALSE]
  test <- x[rows$test, , drop = FALSE]
  k <- gram(train, make_kernel(cell$part))
  means <- lapply(estimators[parts[[cell$part]]], function(estimator) {
    kme(k, estimator = estimator)
  })
  scores <- lapply(settings$optimize, function(optimize) {
    fit <- NULL
    score <- function(fit) -mean(stats::predict(fit, test, type = "log"))
    nll <- vapply(means, function(mean_estimate) {
      set.seed(seed_of("density fit", cell$data, cell$split))
      fit <<- kme_density(k, m = components, estimator = mean_estimate,
                          optimize = optimize, nstart = settings$nstart,
                          shape = "isotropic",
                          start = if (optimize == "weights") fit$start)
      score(fit)
    }, 0)
    fit[names(fit$start)] <- fit$start
    nll <- c("k-means" = score(fit), nll)
    data.frame(estimator = names(nll), optimize = optimize, nll = nll)
  })
  list(scores = data.frame(
    data = cell$data, points = nrow(x), columns = ncol(x),
    train = nrow(train), test = nrow(test), split = cell$split,
    kernel = sub(" marginal", "", cell$part), do.call(rbind, scores),
    row.names = NULL
  ), seconds = proc.time()[["elapsed"]] - began)
}

# The cells of a table: one row for each data set, split and part.
list_cells <- function(table, names, splits) {
  cells <- expand.grid(part = table_parts[[table]], split = seq_len(splits),
                       data = intersect(table_sets[[table]], names),
                       stringsAsFactors = FALSE)
  cells[c("data", "split", "part")]
}

# What is kept of a cell belongs to its settings and its data.
cell_key <- function(cell, x, settings) {
  paste(c("1", format(utils::packageVersion("kernmean")), components,
          unlist(cell), unlist(settings), dim(x),
          sprintf("%.6e", sum(x * sin(seq_along(x))))), collapse = "|")
}

cell_file <- function(folder, cell, key) {
  name <- paste(c(unlist(cell), sprintf("%08x", seed_of(key))), collapse = "-")
  file.path(folder, paste0(gsub(" ", "-", name), ".rds"))
}

# NULL where nothing is kept, or under other settings.
read_cell <- function(file, key) {
  if (!file.exists(file)) return(NULL)
  kept <- tryCatch(readRDS(file), error = function(e) NULL)
  if (identical(kept$key, key)) kept
}

# Under another name first, so that a stop leaves nothing half written.
write_cell <- function(found, file, key) {
  unfinished <- tempfile("unfinished-", dirname(file))
  saveRDS(c(list(key = key), found), unfinished)
  file.rename(unfinished, file)
}

# All cells of a table, computed or kept. Chunks of some ten seconds go to the
# processes; what a chunk gives is written when it is there.
run_cells <- function(cells, data, settings, folder, cores, workers) {
  began <- Sys.time()
  each <- lapply(seq_len(nrow(cells)), function(i) as.list(cells[i, ]))
  keys <- vapply(each, function(cell) {
    cell_key(cell, data[[cell$data]], settings)
  }, "")
  files <- unlist(Map(cell_file, folder, each, keys))
  found <- unname(Map(read_cell, files, keys))
  kept <- lengths(found) > 0
  if (any(kept)) {
    message(sum(kept), " of ", length(kept), " cells are there already")
  }
  # The time goes roughly with the size of the data.
  work <- vapply(each, function(cell) {
    x <- data[[cell$data]]
    min(0.7 * nrow(x), settings$most) * (ncol(x) + 20)
  }, 0)
  left <- which(!kept)
  all_work <- sum(work[left])
  gone <- function() as.numeric(Sys.time() - began, units = "secs")
  count <- workers
  while (length(left) > 0) {
    now <- utils::head(left, count)
    before <- gone()
    tasks <- lapply(each[now], function(cell) {
      list(cell = cell, x = data[[cell$data]], settings = settings)
    })
    found[now] <- over(tasks, run_task, cores)
    Map(write_cell, found[now], files[now], keys[now])
    left <- setdiff(left, now)
    rate <- length(now) / max(gone() - before, 0.1)
    count <- workers * max(1, min(20, floor(10 * rate / workers)))
    to_go <- gone() * sum(work[left]) / (all_work - sum(work[left]))
    message(sprintf("%4d of %d cells, %s gone, about %s to go",
                    length(each) - length(left), length(each),
                    in_words(gone()), in_words(to_go)))
  }
  list(results = do.call(rbind, lapply(found, `[[`, "scores")),
       seconds = gone(), kept = sum(kept),
       each = stats::setNames(vapply(found, `[[`, 0, "seconds"), files))
}

run_task <- function(task) run_cell(task$x, task$cell, task$settings)

in_words <- function(seconds) {
  if (seconds < 100) return(sprintf("%.0f s", seconds))
  if (seconds < 6000) return(sprintf("%.0f min", seconds / 60))
  sprintf("%.1f h", seconds / 3600)
}

# Comparisons -----------------------------------------------------------------

# The scores of one data set, splits x (k-means, estimators), for a kernel and a
# way to optimize; NULL where there are none.
score_matrix <- function(results, name, kernel, optimize) {
  mine <- results[results$data == name & results$kernel == kernel &
                    results$optimize == optimize, ]
  if (nrow(mine) == 0) return(NULL)
  found <- tapply(mine$nll, list(mine$split, mine$estimator), `[`, 1)
  found[, intersect(c("k-means", names(estimators)), colnames(found)),
        drop = FALSE]
}

# One row for each data set and column of its matrix. Negative log-likelihoods
# that differ by rounding alone count as ties.
summarize <- function(results, kernel, optimize, names) {
  do.call(rbind, lapply(names, function(name) {
    scores <- score_matrix(results, name, kernel, optimize)
    if (is.null(scores) || !"KME" %in% colnames(scores)) return(NULL)
    against <- function(other) {
      plain <- scores[, other]
      apply(scores, 2, function(score) {
        score[abs(score - plain) < 1e-7 * pmax(1, abs(plain))] <- NA
        score <- ifelse(is.na(score), plain, score)
        c(wins = sum(score < plain), losses = sum(score > plain),
          sign = sign_test(plain, score), lower = sign(mean(plain - score)))
      })
    }
    kme <- against("KME")
    start <- against("k-means")
    differences <- scores - scores[, "KME"]
    data.frame(
      data = name, kernel = kernel, optimize = optimize,
      estimator = colnames(scores), nll = colMeans(scores),
      difference = colMeans(differences),
      se = apply(differences, 2, standard_error), wins = kme["wins", ],
      losses = kme["losses", ], sign = kme["sign", ], lower = kme["lower", ],
      start_sign = start["sign", ], start_lower = start["lower", ],
      row.names = NULL
    )
  }))
}

# What is shown ---------------------------------------------------------------

# Mean scores of the data sets; with the estimators, in how many splits they win
# and lose against the KME.
print_scores <- function(rows, title, beside) {
  names <- unique(rows$data)
  columns <- unique(rows$estimator)
  cells <- matrix("", length(names), length(columns),
                  dimnames = list(mark_coded(names), columns))
  score <- ifelse(abs(rows$nll) < 1000, sprintf("%.4f", rows$nll),
                  sprintf("%.2f", rows$nll))
  others <- sprintf("%s %2d-%d%s", score, rows$wins, rows$losses,
                    mark_signs(rows$sign))
  plain <- rows$estimator == "KME"
  cells[cbind(match(rows$data, names), match(rows$estimator, columns))] <-
    ifelse(plain, score, others)
  if (beside) {
    at_hand <- names %in% rownames(printed)
    figures <- rep("-", length(names))
    figures[at_hand] <- apply(printed[names[at_hand], , drop = FALSE], 1,
                              function(row) {
      paste(sprintf("%.3f", row), collapse = " ")
    })
    cells <- cbind(cells, "printed: KME, S, F" = figures)
  }
  print_wide(title, cells)
}

mark_coded <- function(names) {
  paste0(names, ifelse(names %in% coded_sets, "+", ""))
}

# Columns as wide as they need.
print_wide <- function(title, cells) {
  text <- rbind(colnames(cells), unname(cells))
  text <- apply(text, 2, function(column) {
    paste0("  ", formatC(column, width = max(nchar(column))))
  })
  names <- formatC(c("", rownames(cells)), flag = "-",
                   width = max(nchar(rownames(cells))))
  cat("  ", title, "\n", sep = "")
  cat(sub(" +$", "", paste0(names, apply(text, 1, paste, collapse = ""))),
      sep = "\n")
  cat("\n")
}

# On how many data sets is an estimator better than the KME, than the start? One
# row for each kernel and estimator.
count_better <- function(rows) {
  group <- rows[rows$estimator != "k-means", ]
  name <- paste(group$kernel, group$estimator)
  cells <- t(vapply(split(group, factor(name, unique(name))), function(mine) {
    counts <- function(lower, signs) {
      c(sprintf("%d of %d", sum(lower > 0), length(lower)), sum(signs > 0),
        sum(signs < 0))
    }
    plain <- if (mine$estimator[1] == "KME") rep("-", 3) else {
      counts(mine$lower, mine$sign)
    }
    c(plain, counts(mine$start_lower, mine$start_sign))
  }, character(6)))
  colnames(cells) <- c("below KME", "clearly", "clearly above",
                       "below k-means", "clearly", "clearly above")
  cells
}

ways <- c(weights = "weights alone", all = "weights, means and variances")

print_table <- function(table, results, optimizes) {
  names <- intersect(table_sets[[table]], results$data)
  kernels <- intersect(if (table == "1") names(parts)[1:4] else "RBF",
                       results$kernel)
  keep <- c(shrinkage, if (table == "3") marginal)
  results <- results[results$estimator %in% c("k-means", keep), ]
  every <- NULL
  for (optimize in optimizes) {
    cat("Table ", table, ", ", ways[[optimize]], "\n\n", sep = "")
    mine <- NULL
    for (kernel in kernels) {
      rows <- summarize(results, kernel, optimize, names)
      mine <- rbind(mine, rows)
      print_scores(rows, paste0(
        kernel, ": mean of the negative log-likelihood; wins-losses against ",
        "the KME"
      ), table == "1" && kernel == "RBF" && optimize == optimizes[1])
    }
    print_wide(paste("data sets on which the mean is lower; clearly: by the",
                     "sign test"), count_better(mine))
    every <- rbind(every, mine)
  }
  every
}

explain <- function(table, names) {
  say("* better, ! worse than the KME by the two-sided paired sign test at ",
      "5%, ties dropped.",
      if (table == "1") paste(
        " Printed: M14's figures, where they are at hand (-: not at hand)."
      ) else " The figures printed in X21's Table 3 are not at hand.",
      if (any(coded_sets %in% names)) paste(
        " + no column is real-valued, the codes of all columns are used as",
        "numbers (primary-tumor: without columns of which more than a tenth",
        "is missing, then without incomplete rows)."
      ))
  cat("\n")
}

conclude <- function(table, rows) {
  cat("Table ", table, ", what the paper claims, and what this shows\n\n",
      sep = "")
  paper <- c("1" = "M14", "3" = "X21")[[table]]
  for (name in setdiff(unique(rows$estimator), c("k-means", "KME"))) {
    for (optimize in unique(rows$optimize)) {
      mine <- rows[rows$estimator == name & rows$optimize == optimize, ]
      groups <- split(mine, factor(mine$kernel, unique(mine$kernel)))
      found <- vapply(groups, function(group) {
        tied <- sum(group$wins + group$losses == 0)
        paste0(group$kernel[1], ": ", verdict(group$sign), " (",
               count_signs(group$sign),
               if (tied > 0) paste0("; equal in ", tied), ")")
      }, "")
      say(paper, ", ", name, " beats the KME, ", ways[[optimize]], ". ",
          paste(found, collapse = "; "), ".")
    }
  }
  for (optimize in unique(rows$optimize)) {
    mine <- rows[rows$estimator != "k-means" & rows$optimize == optimize, ]
    say("Against the k-means start, all kernels and estimators, ",
        ways[[optimize]], ": ", count_signs(mine$start_sign), " comparisons.")
  }
  cat("\n")
}

# Differences to the KME's score, RBF kernel: a panel for each way to optimize,
# the data sets below each other. The axis is linear near 0 and logarithmic far
# from it, as the data sets differ by orders of magnitude.
draw_results <- function(rows) {
  optimizes <- unique(rows$optimize)
  graphics::layout(rbind(seq_along(optimizes), length(optimizes) + 1),
                   heights = c(1, 0.07),
                   widths = c(1.25, 1)[seq_along(optimizes)])
  for (optimize in optimizes) {
    draw_panel(rows[rows$optimize == optimize, ], ways[[optimize]],
               optimize == optimizes[1])
  }
  draw_legend(style[rownames(style) %in% rows$estimator, ], 5, 1)
}

bend <- function(difference) asinh(1000 * difference)

draw_panel <- function(rows, title, labels) {
  names <- unique(rows$data)
  rows <- rows[rows$estimator %in% rownames(style), ]
  y <- rev(seq_along(names))
  low <- bend(rows$difference - rows$se)
  high <- bend(rows$difference + rows$se)
  graphics::par(mar = c(3.4, if (labels) 6.8 else 1, 2.4, 1.2))
  graphics::plot(NA, xlim = range(0, low, high),
                 ylim = c(0.5, length(names) + 0.5), yaxs = "i", axes = FALSE,
                 xlab = "", ylab = "")
  graphics::abline(h = y + 0.5, col = "grey92")
  graphics::abline(v = 0, col = "grey45", lty = 2, lwd = 1.8)
  at <- c(0, outer(c(-1, 1), 10^(-3:3)))
  at <- at[bend(at) >= min(low) - 0.1 & bend(at) <= max(high) + 0.1]
  graphics::axis(1, bend(at), format(at, scientific = FALSE, drop0trailing =
                                       TRUE, trim = TRUE), lwd = 0,
                 line = -0.6, cex.axis = 0.9)
  if (labels) {
    graphics::axis(2, y, mark_coded(names), las = 1, lwd = 0, line = -0.5)
  }
  graphics::title(main = title, adj = 0, line = 0.6)
  graphics::title(xlab = paste("score less the KME's, nats a point (bars: 1",
                               "s.e.; left is better)"), line = 2)
  shown <- intersect(rownames(style), rows$estimator)
  shifts <- seq(0.3, -0.3, length.out = length(shown))
  for (i in seq_along(shown)) {
    look <- style[shown[i], ]
    mine <- rows$estimator == shown[i]
    place <- y[match(rows$data[mine], names)] + shifts[i]
    graphics::segments(low[mine], place, high[mine], place, col = look$col,
                       lwd = 1.4)
    graphics::points(bend(rows$difference[mine]), place, col = look$col,
                     pch = look$pch, lwd = 1.4, cex = 0.8)
  }
}

# Stored results --------------------------------------------------------------

# Above the table, in lines that start with #, stand the settings and the work
# in seconds.
write_results <- function(results, settings, seconds, folder) {
  file <- file.path(folder, "density.csv.gz")
  box <- gzfile(file, "w")
  on.exit(close(box))
  writeLines(c(paste0("# ", settings), paste("# seconds:", round(seconds))),
             box)
  utils::write.csv(results, box, row.names = FALSE, quote = FALSE)
  cat("Results: ", file, "\n", sep = "")
}

read_results <- function(file) {
  if (!utils::file_test("-f", file)) {
    give_up("cannot find the file '", file, "'")
  }
  text <- readLines(file, warn = FALSE)
  notes <- startsWith(text, "#")
  results <- tryCatch(utils::read.csv(text = text[!notes]),
                      error = function(e) data.frame())
  needed <- c("data", "points", "columns", "train", "test", "split", "kernel",
              "estimator", "optimize", "nll")
  if (!all(needed %in% names(results)) || nrow(results) == 0) {
    give_up("'", file, "' must have rows with the columns ", toString(needed))
  }
  notes <- sub("^# ", "", text[notes])
  time <- startsWith(notes, "seconds: ")
  list(results = results, settings = notes[!time],
       seconds = as.numeric(sub("seconds: ", "", notes[time], fixed = TRUE)))
}

describe_settings <- function(splits, settings, results) {
  cut <- unique(results$data[results$points - results$test > results$train])
  paste0(
    splits, " random splits, 30% for the test; ", components, " components; ",
    "k-means with ", settings$nstart, " starts; at most ", settings$most,
    " points for training",
    if (length(cut) > 0) paste0(" (a random part of ", toString(cut), ")"),
    "; columns standardized over the data set; RBF kernel with the median ",
    "bandwidth, LIN x'y, POLY2 and POLY3 (x'y + 1)^2 and ^3; amounts of ",
    "shrinkage and noise by their leave-one-out scores; means and variances ",
    "with the weights: stopped by the likelihood on a fifth of the training ",
    "points, which is held out"
  )
}

show_results <- function(results, settings, tables, out) {
  say("Negative log-likelihood, a test point, of mixtures fitted by matching ",
      "kernel means: ", settings, ".")
  cat("\n")
  size <- unique(results[c("data", "points", "columns", "train", "test")])
  cells <- as.matrix(size[-1])
  rownames(cells) <- mark_coded(size$data)
  print_block("data sets", format(cells), 10)
  there <- vapply(tables, function(table) {
    any(table_sets[[table]] %in% results$data)
  }, NA)
  for (table in tables[there]) {
    optimizes <- intersect(names(ways), results$optimize)
    rows <- print_table(table, results, optimizes)
    explain(table, rows$data)
    conclude(table, rows)
    write_table(rows, out, paste0("density-", table, ".csv"))
    write_figure(out, paste0("density-", table, ".png"), 1650, 1350,
                 function() draw_results(rows[rows$kernel == "RBF", ]))
    cat("\n")
  }
}

# `cores` for over(), and how many processes that are.
find_processes <- function(cores, plan) {
  if (nzchar(cores) && nzchar(plan)) give_up("give --cores or --plan, not both")
  if (nzchar(cores)) {
    cores <- start_processes(whole_number(cores, "--cores", 1))
  } else if (!requireNamespace("future.apply", quietly = TRUE)) {
    cores <- 1
  } else {
    cores <- NULL
    if (nzchar(plan)) {
      tryCatch(eval(parse(text = paste0("plan(", plan, ")")),
                    asNamespace("future")),
               error = function(e) give_up("--plan: ", conditionMessage(e)))
    }
  }
  # A queue of jobs may say that it has no limit.
  list(cores = cores,
       workers = if (is.null(cores)) min(future::nbrOfWorkers(), 100) else 1)
}

main <- function(args) {
  chosen <- read_options(args, list(
    table = "all", data = "", download = FALSE, sets = "", splits = "",
    nstart = "", most = "", optimize = "both", out = ".", cores = "",
    plan = "", from = "", quick = FALSE
  ), usage)
  number <- function(option, otherwise, quick, least) {
    if (!nzchar(chosen[[option]])) {
      return(if (chosen$quick) quick else otherwise)
    }
    whole_number(chosen[[option]], paste0("--", option), least)
  }
  tables <- one_of(chosen$table, "--table", c("1", "3", "all"))
  if (tables == "all") tables <- names(table_sets)
  optimize <- one_of(chosen$optimize, "--optimize", c(names(ways), "both"))
  splits <- number("splits", 10, 2, 2)
  settings <- list(nstart = number("nstart", 50, 5, 1),
                   most = number("most", 1000, 100, 30),
                   optimize = if (optimize == "both") names(ways) else optimize)
  out <- output_folder(chosen$out)
  if (nzchar(chosen$from)) {
    stored <- read_results(chosen$from)
    return(show_results(stored$results, stored$settings, tables, out))
  }
  use_one_thread()
  known <- unique(unlist(table_sets[tables]))
  sets <- if (nzchar(chosen$sets)) strsplit(chosen$sets, ",")[[1]] else {
    if (chosen$quick) c("ionosphere", "glass") else known
  }
  for (name in sets) one_of(name, "--sets", known)
  data <- find_data(sets, chosen$data, chosen$download, coded_sets,
                    factor_columns)
  processes <- find_processes(chosen$cores, chosen$plan)
  if (chosen$quick) {
    cat("The smallest form: too few splits to conclude anything.\n\n")
  }
  folder <- output_folder(file.path(out, "density-cells"))
  ran <- lapply(tables, function(table) {
    cells <- list_cells(table, names(data), splits)
    if (nrow(cells) == 0) return(NULL)
    message("Table ", table)
    run_cells(cells, data, settings, folder, processes$cores,
              processes$workers)
  })
  results <- unique(do.call(rbind, lapply(ran, `[[`, "results")))
  # All parts of a split have the same start.
  again <- results$estimator == "k-means" &
    duplicated(results[c("data", "split", "kernel", "optimize")])
  results <- results[!again, ]
  # As they are stored, so that --from shows the same.
  results$nll <- signif(results$nll, 8)
  described <- describe_settings(splits, settings, results)
  there <- lengths(ran) > 0
  show_results(results, described, tables[there], out)
  # The tables share cells.
  work <- unlist(lapply(ran, `[[`, "each"))
  write_results(results, described, sum(work[!duplicated(names(work))]), out)
  for (i in which(there)) {
    cat(sprintf("The whole Table %s on %d process%s: %s", tables[i],
                processes$workers, if (processes$workers > 1) "es" else "",
                in_words(ran[[i]]$seconds)),
        if (ran[[i]]$kept > 0) {
          sprintf(" (%d of its cells were there already; all: %s of work)",
                  ran[[i]]$kept, in_words(sum(ran[[i]]$each)))
        }, "\n", sep = "")
  }
}

if (sys.nframe() == 0) main(commandArgs(trailingOnly = TRUE))

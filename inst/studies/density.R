# Density estimation by matching kernel means on real data: Table 1 of Muandet
# et al. (2014, "M14" below; arXiv 1306.0842) and Table 3 of Xia et al. (2021,
# "X21"; 2107.04855).
#
# To 70% of a data set a mixture of ten normals, each with one variance, is
# fitted: its embedding is matched to an estimate of the kernel mean
# (kme_density()). The score is the average negative log-likelihood on the other
# 30%. Both papers leave open how they optimize, so three ways are run, and the
# comparison of the estimators is to be examined, not the third decimal. Beside
# them stand the figures that the papers print, and where all of them start
# from: the clusters of k-means.

usage <- "Usage: Rscript density.R [options]

  --table 1|3|all      1: Table 1 of M14, 15 data sets, four kernels, KME,
                       S-KMSE, F-KMSE; 3: Table 3 of X21, 15 data sets, RBF
                       kernel, these and MKME, MMKME (all)
  --select printed|loocv|each
                       the rule for the lambda of F-KMSE in Table 1: the
                       score of M14's Theorem 4; the exact one (each)
  --data FOLDER        the data sets as their archives offer them, see the help
                       of uci_data()
  --download           fetches them. Without it and --data: those that the
                       package mlbench has
  --sets A,B,...       only these data sets
  --splits N           random splits of each data set (at least 2; 10)
  --nstart N           random starts of k-means (50)
  --most N             most points for training (at least 30; 1000)
  --optimize weights|all|steps|searched|test|each
                       how to fit: the weights of the components alone; all
                       parameters, stopped by points that are held out; all
                       parameters from the clusters, a number of steps; for
                       Table 3 also: bandwidth and stop chosen by points held
                       out of the training part; both chosen by the points of
                       the test, which no honest score may be (each)
  --steps A,B,...      numbers of steps (30,60,100,200)
  --out DIR            folder for figures and tables, and in DIR/density-cells
                       for what is finished: a run that was stopped goes on
                       from there (.)
  --cores N            processes, with the package future.apply
  --plan PLAN          any other way to run them: what future::plan() takes,
                       such as \"cluster, workers = c('a', 'b')\". Without
                       --cores and --plan, the plan that future finds
                       (R_FUTURE_PLAN); the results depend on none of this
  --from FILE          computes nothing, shows the results stored in FILE
  --quick              the smallest form: 2 splits of glass
  --help               this text"

study_name <- "density.R"
# A page that reads this has the folder in `studies`.
here <- if (sys.nframe() == 0) {
  file <- grep("^--file=", commandArgs(), value = TRUE)[1]
  dirname(gsub("~+~", " ", sub("^--file=", "", file), fixed = TRUE))
} else {
  studies
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
# The same points with all their columns, codes as numbers; shown beside, not
# counted as a data set of its own.
whole_sets <- c("australian-14" = "australian")
# Of the numbers that mlbench has as factors, only these are real-valued columns
# of uci_data().
factor_columns <- list(ionosphere = 1:2)

# F-KMSE by the exact score and, as in M14, by that of Theorem 4.
printed_rule <- "F-KMSE printed"
estimators <- c(plain_estimators, rule_estimators[printed_rule],
                marginal_estimators)

# What is fitted to a split in one go: a kernel and estimators.
shrinkage <- names(plain_estimators)
marginal <- names(marginal_estimators)
both_rules <- c(shrinkage, printed_rule)
parts <- list(LIN = both_rules, POLY2 = both_rules, POLY3 = both_rules,
              RBF = both_rules, "RBF X21" = c(shrinkage, marginal))
table_parts <- list("1" = names(parts)[1:4], "3" = names(parts)[5])

# Ways to optimize; of the third each number of steps is one in the results,
# such as "100 steps"; the last two are for X21's table.
ways <- c(weights = "weights alone", all = "weights, means and variances",
          steps = "steps from the clusters",
          searched = "all parameters, bandwidth searched on points held out",
          test = "bandwidth and steps searched on the points of the test")
searches <- c("searched", "test")

# X21's median has the distances of the points from themselves among the others.
make_kernel <- function(name, x) {
  switch(name, LIN = kernel_linear(), POLY2 = kernel_poly(2),
         POLY3 = kernel_poly(3), RBF = kernel_rbf("median"),
         kernel_rbf(sqrt(stats::median(as.matrix(stats::dist(x))^2))))
}
# Those of kme_density(bandwidths = "validate").
multiples <- 2^c(0, -0.5, 0.5, -1, 1, -1.5, -2)

# With steps and the RBF kernel also: is it the shape of an estimate, or its
# mass? (S-KMSE of mass 1 is the KME.)
mass_estimators <- c("F-KMSE of mass 1", "KME of the mass of F-KMSE")

source(file.path(here, "density-show.R"), local = TRUE)

# The study -------------------------------------------------------------------

# The rows of the two parts. The seed belongs to a data set and a split,
# whatever else is computed, and whichever columns.
split_rows <- function(x, name, split, most) {
  if (name %in% names(whole_sets)) name <- whole_sets[[name]]
  set.seed(seed_of("density", name, split))
  rows <- sample.int(nrow(x))
  test <- seq_len(round(0.3 * nrow(x)))
  list(train = utils::head(rows[-test], most), test = rows[test])
}

# One part on one split, in one way to optimize: a row for each estimator, and
# one for the start. The estimators share the Gram matrix, the start and the
# points held out; the other parts and ways of the split find the same. "all" is
# not given a start: its validation begins with clusters of the points that are
# not held out, as a start from all points looks better on those than it is.
run_cell <- function(x, cell, settings) {
  began <- proc.time()[["elapsed"]]
  rows <- split_rows(x, cell$data, cell$split, settings$most)
  train <- x[rows$train, , drop = FALSE]
  test <- x[rows$test, , drop = FALSE]
  kernel <- make_kernel(cell$part, train)
  chosen <- intersect(parts[[cell$part]], settings$estimators)
  k <- gram(train, kernel)
  means <- lapply(estimators[chosen], function(estimator) {
    kme(k, estimator = estimator)
  })
  if (cell$optimize == "steps" && cell$part == "RBF" && "F-KMSE" %in% chosen) {
    means[mass_estimators] <- exchange_masses(k, means)
  }
  score <- function(fit) -mean(stats::predict(fit, test, type = "log"))
  start <- if (cell$optimize %in% c("steps", "test")) "kmeans"
  fit_density <- function(x, mean_estimate, optimize, steps = NULL, ...) {
    set.seed(seed_of("density fit", cell$data, cell$split))
    fit <- kme_density(x, m = components, estimator = mean_estimate,
                       optimize = optimize, nstart = settings$nstart,
                       shape = "isotropic", start = start, steps = steps, ...)
    # That of all parameters is no start for points held out.
    if (optimize == "weights" || !is.null(steps)) start <<- fit$start
    fit
  }
  list_scores <- function(nll, fit, label) {
    fit[names(fit$start)] <- fit$start
    # A search has means of its own.
    mass <- if (!label %in% searches) {
      vapply(means, function(mean_estimate) sum(mean_estimate$weights), 0)
      } else {
      NA
    }
    data.frame(estimator = c("k-means", names(means)), optimize = label,
               nll = c(score(fit), nll), mass = c(NA, mass), row.names = NULL)
  }
  score_all <- function(label, optimize, steps = NULL) {
    fits <- lapply(means, fit_density, x = k, optimize = optimize,
                   steps = steps)
    list_scores(vapply(fits, score, 0), fits[[1]], label)
  }
  score_searched <- function() {
    fits <- lapply(estimators[chosen], function(estimator) {
      fit_density(train, estimator, "all", kernel = kernel, scale = FALSE,
                  bandwidths = "validate")
    })
    list_scores(vapply(fits, score, 0), fits[[1]], "searched")
  }
  score_best <- function() {
    fit <- NULL
    best <- Inf
    for (times in multiples) {
      near <- gram(train, kernel_rbf(times * kernel$bandwidth))
      found <- vapply(estimators[chosen], function(estimator) {
        mean_estimate <- kme(near, estimator = estimator)
        min(vapply(settings$steps, function(steps) {
          fit <<- fit_density(near, mean_estimate, "all", steps)
          score(fit)
        }, 0))
      }, 0)
      best <- pmin(best, found)
    }
    list_scores(best, fit, "test")
  }
  scores <- switch(
    cell$optimize,
    steps = do.call(rbind, lapply(settings$steps, function(steps) {
      score_all(paste(steps, "steps"), "all", steps)
    })),
    searched = score_searched(), test = score_best(),
    score_all(cell$optimize, cell$optimize)
  )
  list(scores = data.frame(
    data = cell$data, points = nrow(x), columns = ncol(x),
    train = nrow(train), test = nrow(test), split = cell$split,
    kernel = cell$part, scores, row.names = NULL
  ), seconds = proc.time()[["elapsed"]] - began)
}

# F-KMSE with the mass of the KME, and the other way round.
exchange_masses <- function(k, means) {
  weights <- means[["F-KMSE"]]$weights
  mass <- sum(weights)
  list(kme(k, weights = weights / mass),
       kme(k, weights = rep(mass / length(weights), length(weights))))
}

# The cells of a table: one row for each data set, split, way and part.
list_cells <- function(table, names, splits, optimize) {
  known <- table_sets[[table]]
  if (table == "1") known <- c(known, names(whole_sets))
  if (table == "1") optimize <- setdiff(optimize, searches)
  cells <- expand.grid(part = table_parts[[table]], optimize = optimize,
                       split = seq_len(splits), data = known[known %in% names],
                       stringsAsFactors = FALSE)
  cells[c("data", "split", "part", "optimize")]
}

# What is kept of a cell belongs to its settings and its data.
cell_key <- function(cell, x, settings) {
  paste(c("3", format(utils::packageVersion("kernmean")), components,
          unlist(cell), unlist(settings), dim(x),
          sprintf("%.6e", sum(x * sin(seq_along(x))))), collapse = "|")
}

cell_file <- function(folder, cell, key) {
  name <- paste(c(unlist(cell), sprintf("%08x", seed_of(key))), collapse = "-")
  file.path(folder, paste0(gsub(" ", "-", name), ".rds"))
}

# NULL where nothing is kept, or under other settings; a file that is damaged is
# told of and computed anew.
read_cell <- function(file, key) {
  if (!file.exists(file)) return(NULL)
  kept <- tryCatch(suppressWarnings(readRDS(file)), error = function(e) NULL)
  if (is_cell(kept)) {
    if (identical(kept$key, key)) kept
  } else {
    message("'", file, "' is damaged; its cell is computed again")
    NULL
  }
}

is_cell <- function(kept) {
  is.list(kept) && is.character(kept$key) && is.data.frame(kept$scores) &&
    is.numeric(kept$seconds)
}

write_cell <- function(found, file, key) {
  cell <- c(list(key = key), found)
  keep_whole(file, function(path) saveRDS(cell, path),
             function(path) identical(readRDS(path), cell))
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
  found[, intersect(c("k-means", names(estimators), mass_estimators),
                   colnames(found)), drop = FALSE]
}

# For each column of a score matrix how it does against another one. Negative
# log-likelihoods that differ by rounding alone count as ties.
against <- function(scores, other) {
  plain <- scores[, other]
  apply(scores, 2, function(score) {
    tied <- abs(score - plain) < 1e-7 * pmax(1, abs(plain))
    score <- ifelse(tied, plain, score)
    c(wins = sum(score < plain), losses = sum(score > plain),
      sign = sign_test(plain, score), lower = sign(mean(plain - score)))
  })
}

# One row for each data set and column of its matrix.
summarize <- function(results, kernel, optimize, names) {
  results <- results[results$kernel == kernel & results$optimize == optimize, ]
  do.call(rbind, lapply(names, function(name) {
    scores <- score_matrix(results, name, kernel, optimize)
    if (is.null(scores) || !"KME" %in% colnames(scores)) return(NULL)
    kme <- against(scores, "KME")
    start <- against(scores, "k-means")
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

# Stored results --------------------------------------------------------------

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
  list(results = results, settings = notes[1], run = notes[-1])
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
    "shrinkage and noise by their leave-one-out scores, that of \"F-KMSE ",
    "printed\" by the score of M14's Theorem 4; for X21's table the median of ",
    "all pairs, those of a point with itself among them; means and variances ",
    "with the weights: stopped by the likelihood on a fifth of the training ",
    "points, which is held out, or after a number of BFGS steps from the ",
    "clusters; searched: the bandwidth, too, of ", length(multiples),
    " around the median, by the points held out; test: bandwidth and number ",
    "of steps by the points of the test themselves"
  )
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

read_steps <- function(given) {
  if (!nzchar(given)) return(c(30, 60, 100, 200))
  given <- strsplit(given, ",", fixed = TRUE)[[1]]
  unique(sort(vapply(given, whole_number, 0, "--steps", 1, USE.NAMES = FALSE)))
}

# Those with all their columns are in the archives only.
find_sets <- function(sets, folder, download) {
  whole <- intersect(sets, names(whole_sets))
  sets <- setdiff(sets, whole)
  data <- if (length(sets) > 0) {
    find_data(sets, folder, download, coded_sets, factor_columns)
  }
  if (nzchar(folder) || download) {
    for (name in whole) {
      data[[name]] <- read_archive(whole_sets[[name]], folder, download, TRUE)
    }
  }
  data
}

main <- function(args) {
  chosen <- read_options(args, list(
    table = "all", select = "each", data = "", download = FALSE, sets = "",
    splits = "10", nstart = "50", most = "1000", optimize = "each", steps = "",
    out = ".", cores = "", plan = "", from = "", quick = FALSE
  ), usage)
  number <- function(option, least) {
    whole_number(chosen[[option]], paste0("--", option), least)
  }
  tables <- one_of(chosen$table, "--table", c("1", "3", "all"))
  if (tables == "all") tables <- names(table_sets)
  optimize <- one_of(chosen$optimize, "--optimize", c(names(ways), "each"))
  if (optimize == "each") optimize <- names(ways)
  select <- one_of(chosen$select, "--select", c("printed", "loocv", "each"))
  splits <- if (chosen$quick) 2 else number("splits", 2)
  unwanted <- c(printed = "F-KMSE", loocv = printed_rule)[select]
  settings <- list(nstart = number("nstart", 1), most = number("most", 30),
                   steps = read_steps(chosen$steps),
                   estimators = names(estimators))
  out <- output_folder(chosen$out)
  if (nzchar(chosen$from)) {
    stored <- read_results(chosen$from)
    return(show_results(stored$results, stored$settings, tables, out))
  }
  use_one_thread()
  known <- unique(c(unlist(table_sets[tables]), names(whole_sets)))
  sets <- if (nzchar(chosen$sets)) strsplit(chosen$sets, ",")[[1]] else {
    if (chosen$quick) "glass" else known
  }
  for (name in sets) one_of(name, "--sets", known)
  data <- find_sets(sets, chosen$data, chosen$download)
  processes <- find_processes(chosen$cores, chosen$plan)
  folder <- output_folder(file.path(out, "density-cells"))
  ran <- lapply(tables, function(table) {
    cells <- list_cells(table, names(data), splits, optimize)
    if (nrow(cells) == 0) return(NULL)
    message("Table ", table)
    if (table == "1") {
      settings$estimators <- setdiff(settings$estimators, unwanted)
    }
    run_cells(cells, data, settings, folder, processes$cores,
              processes$workers)
  })
  there <- lengths(ran) > 0
  if (!any(there)) {
    give_up("these tables have none of these ways, or none of the data sets ",
            "that could be read")
  }
  results <- do.call(rbind, lapply(ran, `[[`, "results"))
  # As they are stored, so that --from shows the same.
  results$nll <- signif(results$nll, 8)
  results$mass <- signif(results$mass, 6)
  described <- describe_settings(splits, settings, results)
  show_results(results, described, tables[there], out)
  work <- sum(unlist(lapply(ran, `[[`, "each")))
  for (i in which(there)) {
    cat(sprintf("The whole Table %s on %d process%s: %s", tables[i],
                processes$workers, if (processes$workers > 1) "es" else "",
                in_words(ran[[i]]$seconds)),
        if (ran[[i]]$kept > 0) {
          sprintf(" (%d of its cells were there already; all: %s of work)",
                  ran[[i]]$kept, in_words(sum(ran[[i]]$each)))
        }, "\n", sep = "")
  }
  write_table(results, out, "density.csv.gz",
              c("data", "split", "kernel", "estimator", "optimize"),
              c(described, paste(in_words(work), "of work")), quote = FALSE)
}

if (sys.nframe() == 0) main(commandArgs(trailingOnly = TRUE))

# The error of kernel Fisher discriminants with the bandwidth that leaving one
# out chooses, with the median bandwidth, and of what else one would take: by
# ten-fold cross-validation, repeated, on seven data sets.
#
# Columns are standardized by the training folds; "foretold" is the error that
# the fits have leaving one out, for the chosen bandwidth the smallest of seven.

usage <- "Usage: Rscript kfda-bandwidth.R [options]

  --data FOLDER  the files of the archive (those that uci_data() has kept)
  --download     get them from the archive
  --times N      repetitions of ten-fold cross-validation (at least 1; 2)
  --from FILE    show the results in FILE.csv, compute nothing
  --out DIR      folder for the table (.)
  --cores N      processes, with the package future.apply (1); the results do
                 not depend on it
  --quick        the smallest form: iris alone
  --help         this text"

study_name <- "kfda-bandwidth.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

# Data ------------------------------------------------------------------------

# list(x, y), or NULL where the data set is not at hand: the real columns, from
# the archive's files or else from mlbench (whose Vowel lacks one of ten).
read_set <- function(name, folder, download) {
  if (name == "iris") {
    return(list(x = as.matrix(datasets::iris[1:4]), y = datasets::iris$Species))
  }
  found <- tryCatch({
    data <- uci_data(name, if (nzchar(folder)) folder, download = download)
    list(x = data$x, y = data$class)
  }, kernmean_error_data = function(e) NULL)
  if (is.null(found) && name %in% names(mlbench_names) &&
        requireNamespace("mlbench", quietly = TRUE)) {
    box <- new.env()
    utils::data(list = mlbench_names[[name]], package = "mlbench", envir = box)
    table <- box[[mlbench_names[[name]]]]
    real <- vapply(table, is.numeric, NA)
    found <- list(x = as.matrix(table[real]), y = table[[ncol(table)]])
  }
  found
}

# Methods ---------------------------------------------------------------------

# What a fold is predicted to be: each takes the training points, their classes
# and new points, and gives classes, with the leave-one-out error where it has
# one.
discriminants <- function(bandwidth, ridge = NULL) {
  function(x, y, z) {
    fit <- kme_fda(x, y, bandwidth = bandwidth, ridge = ridge, scale = FALSE)
    list(class = predict(fit, z)$class, foretold = fit$error)
  }
}

by_formula <- function(package, fit, classes) {
  if (!requireNamespace(package, quietly = TRUE)) return(NULL)
  function(x, y, z) {
    found <- fit(y ~ ., data.frame(x, y = y))
    list(class = classes(found, data.frame(z)), foretold = NA)
  }
}

all_methods <- function() {
  found <- list(
    "loo" = discriminants("loo"),
    "one ridge" = discriminants("loo", "shrinkage"),
    "median" = discriminants("median"),
    "svm" = by_formula("e1071", function(...) e1071::svm(...), predict),
    "forest" = by_formula(
      "ranger", function(...) ranger::ranger(..., num.threads = 1),
      function(fit, z) predict(fit, z)$predictions
    ),
    "lda" = by_formula(
      "MASS", function(...) suppressWarnings(MASS::lda(...)),
      function(fit, z) predict(fit, z)$class
    )
  )
  found[lengths(found) > 0]
}

# Folds -----------------------------------------------------------------------

scaled_by <- function(x, z) {
  center <- colMeans(x)
  spread <- apply(x, 2, stats::sd)
  spread[spread == 0] <- 1
  list(x = scale(x, center, spread), z = scale(z, center, spread))
}

# One fold: wrong points of every method, and its foretold error.
run_fold <- function(job) {
  set.seed(job$seed)
  y <- droplevels(job$set$y)
  old <- job$fold != job$left_out
  parts <- scaled_by(job$set$x[old, ], job$set$x[!old, , drop = FALSE])
  rows <- lapply(names(all_methods()), function(name) {
    found <- all_methods()[[name]](parts$x, droplevels(y[old]), parts$z)
    wrong <- as.character(found$class) != as.character(y[!old])
    data.frame(data = job$name, n = length(y), columns = ncol(job$set$x),
               classes = nlevels(y), time = job$time, fold = job$left_out,
               method = name, points = sum(!old), wrong = sum(wrong),
               foretold = found$foretold)
  })
  do.call(rbind, rows)
}

make_jobs <- function(name, set, times, folds) {
  set.seed(seed_of(name))
  jobs <- list()
  for (time in seq_len(times)) {
    fold <- sample(rep_len(1:10, length(set$y)))
    for (left_out in seq_len(folds)) {
      jobs <- c(jobs, list(list(
        name = name, set = set, fold = fold, left_out = left_out, time = time,
        seed = draw_seeds(1)
      )))
    }
  }
  jobs
}

# What is shown ---------------------------------------------------------------

# Of every data set and method the error, its standard error from one repetition
# to the other left aside, and the foretold one.
summarize <- function(found) {
  key <- interaction(found$method, found$data, drop = TRUE, lex.order = FALSE)
  rows <- lapply(split(found, key), function(part) {
    cbind(part[1, c("data", "n", "columns", "classes", "method")],
          error = sum(part$wrong) / sum(part$points),
          foretold = mean(part$foretold))
  })
  results <- do.call(rbind, rows)
  order <- order(match(results$data, unique(found$data)),
                 match(results$method, unique(found$method)))
  results <- results[order, ]
  rownames(results) <- NULL
  results
}

error_table <- function(results, what = "error") {
  data <- unique(results$data)
  table <- vapply(unique(results$method), function(method) {
    mine <- results[results$method == method, ]
    mine[[what]][match(data, mine$data)]
  }, numeric(length(data)))
  table <- matrix(table, length(data),
                  dimnames = list(data, unique(results$method)))
  rbind(table, mean = colMeans(table))
}

print_results <- function(results) {
  errors <- error_table(results)
  cells <- apply(100 * errors, 2, function(column) sprintf("%.1f", column))
  rownames(cells) <- rownames(errors)
  print_block("test error in %", cells)
  both <- c("loo", "one ridge", "median")
  foretold <- error_table(results[results$method %in% both, ], "foretold")
  excess <- 100 * (errors[, both] - foretold)
  cells <- apply(excess, 2, function(column) sprintf("%+.1f", column))
  rownames(cells) <- rownames(errors)
  print_block("test error less the leave-one-out error of the fits, in %",
              cells)
}

data_names <- c("iris", "wine", "glass", "sonar", "vehicle", "wdbc", "vowel")

main <- function(args) {
  chosen <- read_options(args, list(
    data = "", download = FALSE, times = "2", from = "", out = ".",
    cores = "1", quick = FALSE
  ), usage)
  if (nzchar(chosen$from)) {
    print_results(read_table(chosen$from))
    return(invisible())
  }
  times <- whole_number(chosen$times, "--times", 1)
  cores <- whole_number(chosen$cores, "--cores", 1)
  out <- output_folder(chosen$out)
  use_one_thread()
  names <- if (chosen$quick) "iris" else data_names
  sets <- sapply(names, read_set, chosen$data, chosen$download,
                 simplify = FALSE)
  sets <- sets[lengths(sets) > 0]
  missing <- setdiff(names, names(sets))
  if (length(missing) > 0) say("Not at hand: ", toString(missing), ".")
  say("Ten-fold cross-validation, ", times, " times; methods: ",
      toString(names(all_methods())), ".")
  cat("\n")
  found <- lapply(names(sets), function(name) {
    message(name)
    jobs <- make_jobs(name, sets[[name]], times, 10)
    do.call(rbind, over(jobs, run_fold, cores))
  })
  results <- summarize(do.call(rbind, found))
  print_results(results)
  write_table(results, out, "kfda-bandwidth.csv", c("data", "method"))
}

main(commandArgs(trailingOnly = TRUE))

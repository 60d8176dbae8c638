# The error of kernel Fisher discriminants with the bandwidth that leaving one
# out chooses, with the median bandwidth, and of what else one would take: by
# ten-fold cross-validation, repeated, on seven data sets on which it was
# decided that kme_fda() tries multiples of its ridge ("seen" in the table), and
# on six that no choice was made on.
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
  --quick        the smallest form: iris and birthwt, without tuned machines
  --help         this text"

study_name <- "kfda-bandwidth.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

# Data ------------------------------------------------------------------------

# Sets on which nothing was chosen: package, data sets (rows together), class,
# columns left out: numbers of rows, the weight that birthwt's class is made of.
fresh_sets <- list(
  diabetes = list("mclust", "diabetes", "class"),
  crabs = list("MASS", "crabs", c("sp", "sex"), "index"),
  biopsy = list("MASS", "biopsy", "class", "ID"),
  birthwt = list("MASS", "birthwt", "low", "bwt"),
  Pima = list("MASS", c("Pima.tr", "Pima.te"), "type"),
  Ionosphere = list("mlbench", "Ionosphere", "Class", c("V1", "V2"))
)

# Complete rows; factors as dummies.
read_fresh <- function(from) {
  if (!requireNamespace(from[[1]], quietly = TRUE)) return(NULL)
  box <- new.env()
  utils::data(list = from[[2]], package = from[[1]], envir = box)
  table <- stats::na.omit(do.call(rbind, mget(from[[2]], box)))
  if (from[[2]][1] == "birthwt") table$race <- factor(table$race)
  y <- interaction(table[from[[3]]], drop = TRUE)
  table <- table[setdiff(names(table), unlist(from[-(1:2)]))]
  list(x = stats::model.matrix(~ ., table)[, -1], y = y)
}

# list(x, y), or NULL where the data set is not at hand: the real columns, from
# the archive's files or else from mlbench (whose Vowel lacks one of ten).
read_set <- function(name, folder, download) {
  if (name == "iris") {
    return(list(x = as.matrix(datasets::iris[1:4]), y = datasets::iris$Species))
  }
  if (name %in% names(fresh_sets)) return(read_fresh(fresh_sets[[name]]))
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

# A fit that fails, of classes smaller than their columns, has no classes.
by_formula <- function(package, fit, classes) {
  if (!requireNamespace(package, quietly = TRUE)) return(NULL)
  function(x, y, z) {
    found <- tryCatch(fit(y ~ ., data.frame(x, y = y)),
                      error = function(e) NULL)
    list(class = if (is.null(found)) NA else classes(found, data.frame(z)),
         foretold = NA)
  }
}

# Cost 2^(-2:6) and gamma 2^(-6:2)/d with the smallest error in five folds of
# the training points: of every second one of each, then of their neighbours;
# of equal ones the first, as e1071::tune() takes it.
tuned_svm <- function(x, y, z) {
  fold <- sample(rep_len(1:5, nrow(x)))
  fit <- function(rows, at) {
    e1071::svm(x[rows, ], droplevels(y[rows]), cost = 2^at[[1]],
               gamma = 2^at[[2]] / ncol(x), scale = FALSE, fitted = FALSE)
  }
  wrong <- function(at) {
    sum(vapply(1:5, function(k) {
      found <- stats::predict(fit(fold != k, at), x[fold == k, ])
      sum(as.character(found) != as.character(y[fold == k]))
    }, 0))
  }
  best <- function(costs, gammas) {
    grid <- expand.grid(intersect(costs, -2:6), intersect(gammas, -6:2))
    unlist(grid[which.min(apply(grid, 1, wrong)), ])
  }
  at <- best(seq(-2, 6, 2), seq(-6, 2, 2))
  at <- best(at[[1]] + -1:1, at[[2]] + -1:1)
  list(class = stats::predict(fit(TRUE, at), z), foretold = NA)
}

all_methods <- function() {
  found <- list(
    "loo" = discriminants("loo"),
    "one ridge" = discriminants("loo", "shrinkage"),
    "median" = discriminants("median"),
    "tuned svm" = if (!this_run$quick &&
                        requireNamespace("e1071", quietly = TRUE)) tuned_svm,
    "svm" = by_formula("e1071", function(...) e1071::svm(...), predict),
    "forest" = by_formula(
      "ranger", function(...) ranger::ranger(..., num.threads = 1),
      function(fit, z) predict(fit, z)$predictions
    ),
    "lda" = by_formula(
      "MASS", function(...) suppressWarnings(MASS::lda(...)),
      function(fit, z) predict(fit, z)$class
    ),
    "qda" = by_formula("MASS", function(...) MASS::qda(...),
                       function(fit, z) predict(fit, z)$class)
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
  y <- droplevels(job$set$y)
  old <- job$fold != job$left_out
  parts <- scaled_by(job$set$x[old, ], job$set$x[!old, , drop = FALSE])
  rows <- lapply(names(all_methods()), function(name) {
    set.seed(job$seed)
    found <- all_methods()[[name]](parts$x, droplevels(y[old]), parts$z)
    wrong <- as.character(found$class) != as.character(y[!old])
    data.frame(data = job$name, seen = !job$name %in% names(fresh_sets),
               n = length(y), columns = ncol(job$set$x), classes = nlevels(y),
               time = job$time, fold = job$left_out, method = name,
               points = sum(!old), wrong = sum(wrong),
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
    cbind(part[1, c("data", "seen", "n", "columns", "classes", "method")],
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
  for (seen in unique(results$seen)) {
    errors <- error_table(results[results$seen == seen, ])
    cells <- apply(100 * errors, 2, function(column) sprintf("%.1f", column))
    rownames(cells) <- rownames(errors)
    print_block(paste("test error in %, sets on which the ridges were",
                      if (!seen) "not", "chosen"), cells, 10)
  }
  errors <- error_table(results)
  both <- c("loo", "one ridge", "median")
  foretold <- error_table(results[results$method %in% both, ], "foretold")
  excess <- 100 * (errors[, both] - foretold)
  cells <- apply(excess, 2, function(column) sprintf("%+.1f", column))
  rownames(cells) <- rownames(errors)
  print_block("test error less the leave-one-out error of the fits, in %",
              cells, 10)
}

data_names <- c("iris", "wine", "glass", "sonar", "vehicle", "wdbc", "vowel",
                names(fresh_sets))

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
  names <- if (chosen$quick) c("iris", "birthwt") else data_names
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

# Log density of new points: densities by kernel mean matching beside one
# normal, mixtures by maximum likelihood (mclust) and kernel density estimates
# (ks), on ten data sets.
#
# Each data set is standardized; ten folds drawn at random are held out in turn,
# everything is fitted to the rest, and the score is the mean log density of the
# points held out. ks, whose bandwidth matrices take minutes in more, is there
# up to three columns; in one also with its bandwidth by smoothed
# cross-validation.

usage <- "Usage: Rscript heldout-density.R [options]

  --data DIR   folder with wine.data and wdbc.data; else they are looked for
               where uci_data() keeps them
  --download   fetch them there
  --sets A,B   some of faithful, quakes, iris, USArrests, wine, wdbc and, of
               one column, galaxies, eruptions, rivers, precip (all)
  --out DIR    folder for heldout-density.csv (.)
  --from FILE  show the results in a file instead
  --quick      the smallest form: iris and USArrests, without mclust and ks
  --help       this text"

study_name <- "heldout-density.R"
here <- if (sys.nframe() == 0) {
  file <- grep("^--file=", commandArgs(), value = TRUE)[1]
  dirname(gsub("~+~", " ", sub("^--file=", "", file), fixed = TRUE))
} else {
  studies
}
source(file.path(here, "common.R"), local = TRUE)

folds <- 10
most_columns_ks <- 3

# Methods: functions of the points and of new ones, the log density at those.
methods <- list(
  "kernmean" = \(x, z) predict(kme_density(x), z, type = "log"),
  "kernmean, common" = \(x, z) {
    predict(kme_density(x, shape = "common"), z, type = "log")
  },
  "kernmean, isotropic" = \(x, z) {
    predict(kme_density(x, shape = "isotropic"), z, type = "log")
  },
  "kernmean, 10 round" = \(x, z) {
    predict(kme_density(x, m = 10, scale = FALSE, shape = "isotropic"), z,
            type = "log")
  },
  "one normal" = \(x, z) {
    # The likelihood's largest.
    root <- chol(cov(x) * (1 - 1 / nrow(x)))
    u <- backsolve(root, t(z) - colMeans(x), transpose = TRUE)
    -colSums(u^2) / 2 - sum(log(diag(root))) - ncol(x) * log(2 * pi) / 2
  },
  "mclust" = \(x, z) {
    # Its functions look for each other in the search path.
    fit <- mclust::densityMclust(x, verbose = FALSE, plot = FALSE)
    predict(fit, z, logarithm = TRUE)
  },
  "ks" = \(x, z) {
    if (ncol(x) > most_columns_ks) return(rep(NA_real_, nrow(z)))
    log(ks::kde(x, eval.points = z)$estimate)
  },
  "ks, scv" = \(x, z) {
    if (ncol(x) > 1) return(rep(NA_real_, nrow(z)))
    log(ks::kde(x, h = ks::hscv(drop(x)), eval.points = z)$estimate)
  }
)

set_names <- c("faithful", "quakes", "iris", "USArrests", "wine", "wdbc",
               "galaxies", "eruptions", "rivers", "precip")

read_set <- function(name, folder, download) {
  x <- switch(
    name, faithful = datasets::faithful, quakes = datasets::quakes[, 1:3],
    iris = datasets::iris[, 1:4], USArrests = datasets::USArrests,
    wine = find_data("wine", folder, download)$wine,
    wdbc = find_data("wdbc", folder, download)$wdbc[, 1:10],
    galaxies = MASS::galaxies, eruptions = datasets::faithful$eruptions,
    rivers = datasets::rivers, precip = datasets::precip
  )
  unname(scale(as.matrix(x)))
}

# One row for each method and fold.
run_set <- function(name, x, chosen) {
  set.seed(1)
  fold <- sample(rep_len(seq_len(folds), nrow(x)))
  rows <- list()
  for (k in seq_len(folds)) {
    out <- fold == k
    for (method in names(chosen)) {
      set.seed(k)
      seconds <- system.time(
        value <- chosen[[method]](x[!out, , drop = FALSE],
                                  x[out, , drop = FALSE])
      )[["elapsed"]]
      rows[[length(rows) + 1]] <- data.frame(
        data = name, n = nrow(x), d = ncol(x), method = method, fold = k,
        points = sum(out), log_density = sum(value), seconds = seconds
      )
    }
    message(name, ", fold ", k)
  }
  do.call(rbind, rows)
}

# A matrix of mean log densities, data sets by methods.
tabulate_scores <- function(results) {
  keys <- results[c("data", "method")]
  keys[] <- lapply(keys, \(key) factor(key, unique(key)))
  tapply(results$log_density, keys, sum) / tapply(results$points, keys, sum)
}

run <- function(args) {
  options <- read_options(args, list(
    data = "", download = FALSE, sets = toString(set_names), out = ".",
    from = "", quick = FALSE, help = FALSE
  ), usage)
  if (nzchar(options$from)) {
    print(round(tabulate_scores(read_table(options$from)), 2))
    return(invisible())
  }
  use_one_thread()
  sets <- strsplit(gsub(" ", "", options$sets), ",")[[1]]
  chosen <- methods
  if (options$quick) {
    sets <- c("iris", "USArrests")
    chosen <- methods[!grepl("^mclust|^ks", names(methods))]
  } else {
    for (package in c("mclust", "ks")) {
      if (!requireNamespace(package, quietly = TRUE)) {
        give_up("the package '", package, "' must be installed")
      }
    }
    suppressPackageStartupMessages(library(mclust))
  }
  for (name in sets) one_of(name, "--sets", set_names)
  folder <- output_folder(options$out)
  results <- do.call(rbind, lapply(sets, \(name) {
    run_set(name, read_set(name, options$data, options$download), chosen)
  }))
  results$log_density <- signif(results$log_density, 8)
  results$seconds <- round(results$seconds, 2)
  write_table(results, folder, "heldout-density.csv",
              c("data", "method", "fold"))
  print(round(tabulate_scores(results), 2))
}

if (sys.nframe() == 0) run(commandArgs(TRUE))

# What the posterior probabilities of kme_fda() are worth: the mean logarithm of
# that of the true class (log score) of new points, and how much more is
# claimed for the most probable class than is hit, beside MASS::lda(). Seven
# sets ("seen") on which the rules for temperature and share of the prior were
# compared, and seven others ("fresh"). Half of each class is for training, 40
# random splits; columns are divided by their standard deviations.

usage <- "Usage: Rscript posteriors.R [options]

  --reps N        splits of each set (at least 3; 40)
  --cores N       processes (1)
  --out DIR       folder for the table (.)
  --quick         the smallest form: crabs and iris
  --help          this text"

study_name <- "posteriors.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

# A set: the package, its data frames, the class, the columns (others are left
# out; NULL: all that are numbers or can be).
sets <- list(
  seen = list(
    diabetes = list("mclust", "diabetes", "class"),
    birthwt = list("MASS", "birthwt", "low",
                   c("age", "lwt", "race", "smoke", "ptl", "ht", "ui", "ftv")),
    Pima = list("MASS", c("Pima.tr", "Pima.te"), "type"),
    crabs = list("MASS", "crabs", c("sp", "sex"),
                 c("FL", "RW", "CL", "CW", "BD")),
    biopsy = list("MASS", "biopsy", "class", paste0("V", 1:9)),
    fgl = list("MASS", "fgl", "type"),
    vehicle = list("mlbench", "Vehicle", "Class")
  ),
  fresh = list(
    iris = list("datasets", "iris", "Species"),
    synth = list("MASS", "synth.tr", "yc"),
    cats = list("MASS", "cats", "Sex"),
    infert = list("datasets", "infert", "case",
                  c("age", "parity", "induced", "spontaneous")),
    Sonar = list("mlbench", "Sonar", "Class"),
    Ionosphere = list("mlbench", "Ionosphere", "Class", paste0("V", 3:34)),
    Vowel = list("mlbench", "Vowel", "Class", paste0("V", 2:10))
  )
)
quick_sets <- c("crabs", "iris")

read_set <- function(of) {
  if (!requireNamespace(of[[1]], quietly = TRUE)) {
    give_up("the package '", of[[1]], "' must be installed")
  }
  box <- new.env()
  utils::data(list = of[[2]], package = of[[1]], envir = box)
  table <- stats::na.omit(do.call(rbind, mget(of[[2]], box)))
  y <- factor(do.call(paste, table[of[[3]]]))
  columns <- if (length(of) > 3) of[[4]] else setdiff(names(table), of[[3]])
  x <- vapply(table[columns], as.numeric, numeric(nrow(table)))
  list(x = x[, apply(x, 2, stats::sd) > 0], y = y)
}

# c(log score, claimed less hit) of posterior probabilities.
worth <- function(posterior, y) {
  true <- posterior[cbind(seq_along(y), as.integer(y))]
  best <- max.col(posterior, "first")
  claimed <- posterior[cbind(seq_along(y), best)]
  c(score = mean(log(pmax(true, 1e-15))),
    gap = mean(claimed) - mean(best == as.integer(y)))
}

run_set <- function(job) {
  set <- read_set(sets[[job$part]][[job$data]])
  rows <- split(seq_along(set$y), set$y)
  set.seed(seed_of("posteriors", job$data))
  splits <- replicate(job$reps, simplify = FALSE, {
    unlist(lapply(rows, function(i) i[sample.int(length(i), length(i) / 2)]))
  })
  values <- vapply(splits, function(train) {
    x <- set$x[train, ]
    kept <- apply(x, 2, function(v) {
      min(tapply(v, set$y[train], stats::sd)) > 1e-9
    })
    new <- set$x[-train, ]
    y <- set$y[-train]
    fit <- kme_fda(x, set$y[train], scale = TRUE, progress = FALSE)
    bare <- fit
    bare[c("temperature", "mixing")] <- list(1, 0)
    calibrated <- predict(fit, new)
    plain <- predict(bare, new)
    if (!identical(calibrated$class, plain$class)) give_up("other classes")
    lda <- MASS::lda(x[, kept], set$y[train])
    c(worth(plain$posterior, y), worth(calibrated$posterior, y),
      worth(predict(lda, new[, kept])$posterior, y),
      fit$temperature, fit$mixing)
  }, numeric(8))
  mean_of <- rowMeans(values)
  data.frame(part = job$part, data = job$data, classes = nlevels(set$y),
             bare = mean_of[1], score = mean_of[3], lda = mean_of[5],
             gain_se = standard_error(values[3, ] - values[1, ]),
             bare_gap = mean_of[2], gap = mean_of[4], lda_gap = mean_of[6],
             temperature = stats::median(values[7, ]),
             mixing = stats::median(values[8, ]), reps = job$reps)
}

main <- function(args) {
  chosen <- read_options(args, list(reps = "40", cores = "1", out = ".",
                                    quick = FALSE), usage)
  reps <- whole_number(chosen$reps, "--reps", 3)
  cores <- whole_number(chosen$cores, "--cores", 1)
  out <- output_folder(chosen$out)
  use_one_thread()
  jobs <- do.call(rbind, lapply(names(sets), function(part) {
    data.frame(part = part, data = names(sets[[part]]), reps = reps)
  }))
  if (chosen$quick) jobs <- jobs[jobs$data %in% quick_sets, ]
  table <- do.call(rbind, over(split(jobs, seq_len(nrow(jobs))), run_set,
                               cores))
  numbers <- vapply(table, is.double, NA)
  table[numbers] <- round(table[numbers], 4)
  print(table, row.names = FALSE, digits = 3)
  write_table(table, out, "posteriors.csv", c("part", "data"))
}

main(commandArgs(trailingOnly = TRUE))

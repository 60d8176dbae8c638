# How much nearer to the kernel mean than the average is smoothing about the
# mean, and how much a stack, where points are few: exact squared errors of 20
# points of mixtures of normals (those of Muandet et al. 2014, in 5 columns) and
# of four data sets, each of which plays the population as in heldout.R. The
# bandwidth is the median distance of the sample (mixtures) or of the population
# (data sets), and half of it.
#
# Beside them stand the figures of two other programs, written from the formulas
# before the package had them; 40 samples each. A difference is given in its
# standard error: that of a mean over 40 samples is taken from the spread of
# ours.

usage <- "Usage: Rscript means.R [options]

  --data FOLDER   the data sets, as their archives offer them, in FOLDER or
                  FOLDER/raw. Without it: those that the package mlbench has
  --download      fetch what is missing into FOLDER, or into R's cache, see
                  uci.R, beside this file
  --reps N        samples of each (at least 3; 200)
  --out DIR       folder for the table (.)
  --quick         the smallest form: mixtures and glass alone
  --help          this text"

study_name <- "means.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))
source(file.path(here, "mixtures.R"))

# The other programs had no guard.
estimators <- c(plain_estimators, marginal_estimators["MKME"],
                by_label(list(est_smooth(guard = FALSE),
                              est_stack(guard = FALSE))))
data_sets <- c("wdbc", "ionosphere", "abalone", "glass")
multiples <- c(0.5, 1)
points <- 20
first_reps <- 40

# The study -------------------------------------------------------------------

# A draw gives list(x, at(times): list(kernel, loss: of a fit)).
mixture_draw <- function() {
  sample <- draw_sample(5, points)
  median <- kme(sample$x, kernel_rbf("median"))$kernel$bandwidth
  list(x = sample$x, at = function(times) {
    list(kernel = kernel_rbf(times * median),
         loss = function(fit) kme_risk(fit, sample$mixture))
  })
}

data_draw <- function(x) {
  median <- kme(x, kernel_rbf("median"))$kernel$bandwidth
  populations <- lapply(multiples, function(times) {
    kme(x, kernel_rbf(times * median))
  })
  function() {
    list(x = x[sample.int(nrow(x), points), ], at = function(times) {
      whole <- populations[[match(times, multiples)]]
      list(kernel = whole$kernel, loss = function(fit) {
        fit$norm2 - 2 * kme_inner(fit, whole) + whole$norm2
      })
    })
  }
}

run <- function(name, draw, reps) {
  message(name)
  set.seed(seed_of("means", name))
  losses <- replicate(reps, {
    drawn <- draw()
    vapply(multiples, function(times) {
      setting <- drawn$at(times)
      k <- gram(drawn$x, setting$kernel, scale = FALSE)
      vapply(estimators, function(e) setting$loss(kme(k, estimator = e)), 0)
    }, numeric(length(estimators)))
  })
  do.call(rbind, lapply(seq_along(multiples), function(i) {
    sampled <- t(losses[, i, ])
    gains <- apply(sampled, 2, gain, a = sampled[, "KME"])
    data.frame(data = name, times = multiples[i], n = points,
               estimator = names(estimators), error = colMeans(sampled),
               gain = gains["gain", ], se = gains["se", ], reps = reps,
               row.names = NULL)
  }))
}

# `first`, `second`: the other programs' figures; `apart`: how far ours is from
# the first, in standard errors of the difference.
beside <- function(table) {
  other <- utils::read.csv(file.path(here, "printed", "means.csv"))
  key <- function(rows) paste(rows$data, rows$times, rows$estimator)
  table <- cbind(table, other[match(key(table), key(other)),
                              c("first", "second")])
  error <- table$se * sqrt(1 + table$reps / first_reps)
  table$apart <- (table$gain - table$first) / error
  table[table$estimator != "KME", ]
}

# What is shown ---------------------------------------------------------------

show <- function(table) {
  text <- sprintf("%.1f (%.1f) %s", table$gain, table$se, ifelse(
    is.na(table$second), sprintf("[%g]", table$first),
    sprintf("[%g; %g]", table$first, table$second)
  ))
  for (times in multiples) {
    at <- table$times == times
    cells <- matrix(text[at], length(estimators) - 1, dimnames = list(
      names(estimators)[-1], unique(table$data)
    ))
    print_block(paste("bandwidth", times, "x median: % of the KME's squared",
                      "error saved (s.e.) [others]"), t(cells), 21)
  }
  if (table$reps[1] < 20) say("(Too few samples to conclude anything.)")
  far <- abs(table$apart) > 3
  say("Within three standard errors of the first of the others: ", sum(!far),
      " of ", length(far), " cells.")
  for (i in which(far)) {
    row <- table[i, ]
    say(sprintf("%s, %s, %g x median: %.1f (s.e. %.1f) beside %g, %.1f apart",
                row$data, row$estimator, row$times, row$gain, row$se,
                row$first, row$apart), indent = 2)
  }
}

rounded <- function(table) {
  numbers <- c("gain", "se", "apart")
  table[numbers] <- round(table[numbers], 2)
  table$error <- signif(table$error, 4)
  table
}

main <- function(args) {
  chosen <- read_options(args, list(data = "", download = FALSE, reps = "200",
                                    out = ".", quick = FALSE), usage)
  reps <- whole_number(chosen$reps, "--reps", 3)
  out <- output_folder(chosen$out)
  use_one_thread()
  if (chosen$quick) data_sets <- "glass"
  data <- find_data(data_sets, chosen$data, chosen$download)
  draws <- c(list("mixtures" = mixture_draw), lapply(data, data_draw))
  table <- do.call(rbind, Map(run, names(draws), draws, reps))
  table <- beside(table)
  show(table)
  write_table(rounded(table), out, "means.csv", c("data", "times", "estimator"))
}

main(commandArgs(trailingOnly = TRUE))

# Power and level of the tests with the estimators of a kernel mean.
#
# two-sample  mmd_test() on two normal samples of which one differs in its first
#             column: in its mean, in its variance, or by being a mixture.
# figure3     mmd_test() as in Figure 3 of X21: two mixtures of normals with
#             random means, and two samples of one.
# hsic        hsic_test() on the 35 points of NIST's data set Eckerle4,
#             wavelength against transmittance, from small parts of them, beside
#             Table 4 of X21.
# column      what gives the last column of that table, which we could not
#             obtain with MMKME in one column and any noise >= 0: HSIC with
#             narrow bandwidths, on parts drawn without and with replacement.
# level       how often each test rejects where there is nothing to find.
#
# What spectral filters and many bandwidths see beyond this: filters.R.
#
# The first three follow Xia et al. (2021, arXiv 2107.04855, "X21"), who find
# that the marginalized estimators make both tests more powerful. Of Figure 3
# the two cases, 500 trials and 1,000 permutations are theirs, and the parts of
# Eckerle4 with 200 repetitions and 2,000 permutations; sizes, dimensions and
# the alternatives of the first part are our choice. Unlike theirs, every choice
# made from the data here (bandwidth, noise, lambda) is one that no permutation
# changes, or is made again in each, so that the level of the test is exact.

usage <- "Usage: Rscript power.R [options]

  --part two-sample|figure3|hsic|column|level|all
                      what to run (all)
  --figure3, --level  the same as --part figure3, --part level
  --reps N            data sets for each cell (200, figure3: 500, level:
                      2000)
  --permutations B    (two-sample: 199, figure3: 1000, hsic: 2000, column:
                      499, level: 99)
  --eckerle4 FILE     the data set as NIST offers it: 60 lines of text, then
                      the columns y and x. Without it: from the package
                      NISTnls, or else from NIST's site
  --out DIR           folder for figures and tables (.)
  --cores N           processes, with the package future.apply (1); the
                      results do not depend on it
  --quick             the smallest form of all: few cells
  --help              this text"

study_name <- "power.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))
source(file.path(here, "mixtures.R"))

choices <- c(
  by_label(list(est_kme(), est_mkme(), est_mmkme())),
  by_label(list(est_skmse(select = "plugin"), est_skmse(select = "loocv"),
                est_fkmse(select = "loocv")), rules = TRUE)
)

# Okabe-Ito colors.
style <- data.frame(
  row.names = names(choices),
  col = c("grey45", "#009E73", "#000000", "#56B4E9", "#0072B2", "#D55E00"),
  pch = c(20, 18, 4, 1, 16, 15), lty = c(2, rep(1, 5))
)

# Repetitions -----------------------------------------------------------------

# One row for each test: power, its standard error, McNemar against the KME.
summarize <- function(p, level = nominal) {
  rejected <- rejects(p, level)
  power <- colMeans(rejected)
  data.frame(
    estimator = colnames(p), power = power,
    se = sqrt(power * (1 - power) / nrow(p)),
    against_kme = apply(rejected, 2, mcnemar_sign, b = rejected[, "KME"]),
    row.names = NULL
  )
}

print_power <- function(title, results, columns) {
  cells <- matrix(
    paste0(sprintf("%.1f", 100 * results$power),
           mark_signs(results$against_kme)),
    ncol = length(columns),
    dimnames = list(unique(results$estimator), columns)
  )
  print_block(title, cells, 9)
}

# X21's claim for the marginalized estimators, and the same comparison for the
# shrunk ones.
claim_power <- function(results, test) {
  kme <- results$power[results$estimator == "KME"]
  for (name in setdiff(unique(results$estimator), "KME")) {
    mine <- results[results$estimator == name, ]
    gains <- 100 * (mine$power - kme)
    claimed <- name %in% names(marginal_estimators)
    say(if (claimed) "X21" else "Not claimed", ", ", test,
        " is more powerful with ", name, " than with KME: ",
        verdict(mine$against_kme), " (McNemar's test, 5% ",
        "level: ", count_signs(mine$against_kme), "; power gained on average ",
        sprintf("%+.1f points, least %+.1f, most %+.1f", mean(gains),
                min(gains), max(gains)), ").")
  }
}

draw_panel <- function(results, x, title, label) {
  graphics::par(mar = c(3.6, 3.8, 2.2, 0.8))
  graphics::plot(NA, xlim = range(x), ylim = c(0, 1), log = "x", axes = FALSE,
                 xlab = "", ylab = "")
  graphics::abline(h = seq(0, 1, 0.2), col = "grey92")
  graphics::abline(h = nominal, col = "grey60", lty = 3)
  graphics::axis(1, unique(x), lwd = 0, line = -0.6)
  graphics::axis(2, seq(0, 1, 0.2), las = 1, lwd = 0, line = -0.5)
  graphics::title(main = title, adj = 0, line = 0.6)
  graphics::title(xlab = label, line = 2)
  graphics::title(ylab = "power at level 0.05", line = 2.5)
  # Side by side, as many powers are the same.
  shown <- intersect(rownames(style), results$estimator)
  apart <- 0.006 * log(max(x) / min(x))
  for (i in seq_along(shown)) {
    mine <- results$estimator == shown[i]
    draw_curve(x[mine] * exp(apart * (i - (length(shown) + 1) / 2)),
               results$power[mine], style[shown[i], ])
  }
}

# Two samples -----------------------------------------------------------------

alternatives <- list(
  "mean + 1" = function(z) z + 1,
  "variance x 6" = function(z) sqrt(6) * z,
  "30% shifted by 3" = function(z) z + 3 * (stats::runif(length(z)) < 0.3)
)

mmd_choices <- setdiff(names(choices), "S-KMSE plugin")

two_sample_cell <- function(alternative, n, d, reps, permutations, cores,
                            seed) {
  message(sprintf("%-12s  n = %d, d = %d", alternative, n, d))
  change <- alternatives[[alternative]]
  make <- function() {
    x <- matrix(stats::rnorm(n * d), n)
    y <- matrix(stats::rnorm(n * d), n)
    y[, 1] <- change(y[, 1])
    list(x = x, y = y)
  }
  tests <- lapply(choices[mmd_choices], function(choice) {
    function(data) {
      mmd_test(data$x, data$y, estimator = choice, filter = "none",
               B = permutations)$p.value
    }
  })
  p <- repeat_tests(make, tests, reps, cores, seed)
  cbind(alternative = alternative, n = n, d = d, summarize(p))
}

two_sample <- function(plan, reps, permutations, cores, out) {
  say("Two samples of n points in d columns, the second changed in its first ",
      "column; ", reps, " data sets for each cell, ", permutations,
      " permutations, RBF kernel with median bandwidth. Power in %; * above, ",
      "! below the KME's by McNemar's test at the 5% level.")
  cat("\n")
  all <- NULL
  for (alternative in names(alternatives)) {
    cells <- lapply(seq_len(nrow(plan)), function(i) {
      cbind(along = plan$along[i],
            two_sample_cell(alternative, plan$n[i], plan$d[i], reps,
                            permutations, cores, 20210000 + i))
    })
    for (along in unique(plan$along)) {
      rows <- do.call(rbind, cells[plan$along == along])
      fixed <- setdiff(c("n", "d"), along)
      print_power(paste0(alternative, ", ", fixed, " = ", rows[[fixed]][1]),
                  rows, paste(along, "=", unique(rows[[along]])))
    }
    all <- rbind(all, do.call(rbind, cells))
  }
  claim_power(all, "the two-sample test")
  cat("X21 shows this as a figure, without numbers.\n\n")
  write_table(all, out, "power-two-sample.csv",
              c("along", "alternative", "n", "d", "estimator"))
  # It has both.
  if (!all(c("n", "d") %in% all$along)) return(invisible())
  write_figure(out, "power-two-sample.png", 1650, 1150, function() {
    graphics::layout(rbind(matrix(1:6, 2), 7), heights = c(1, 1, 0.18))
    for (alternative in names(alternatives)) {
      for (along in c("n", "d")) {
        rows <- all[all$alternative == alternative & all$along == along, ]
        fixed <- setdiff(c("n", "d"), along)
        draw_panel(rows, rows[[along]], alternative, paste0(
          c(n = "points in each sample, n", d = "columns, d")[along], " (",
          fixed, " = ", rows[[fixed]][1], ")"
        ))
      }
    }
    draw_legend(style[mmd_choices, ], length(mmd_choices))
  })
  cat("\n")
}

# Figure 3 of X21 -------------------------------------------------------------

# Each trial draws its mixtures anew. "far": those of M14, means up to 10 from
# the origin; "near": means up to 1, identity covariances; "one": two samples of
# one mixture of M14.
figure3_draws <- list(
  far = function(n, d) list(x = draw_sample(d, n)$x, y = draw_sample(d, n)$x),
  near = function(n, d) {
    draw <- function() {
      means <- matrix(stats::runif(4 * d, -1, 1), 4)
      component <- sample.int(4, n, TRUE, draw_distribution(1)$weights)
      means[component, , drop = FALSE] + matrix(stats::rnorm(n * d), n)
    }
    list(x = draw(), y = draw())
  },
  one = function(n, d) {
    x <- draw_sample(d, 2 * n)$x
    rows <- seq_len(n)
    list(x = x[rows, , drop = FALSE], y = x[-rows, , drop = FALSE])
  }
)
figure3_n <- 10

figure3 <- function(plan, reps, permutations, cores, out) {
  say("X21, Figure 3: two samples of ", figure3_n, " points, ", reps,
      " trials, ", permutations, " permutations, RBF kernel with median ",
      "bandwidth. Rejections in % at the level ", nominal, "; * above, ! ",
      "below the KME's by McNemar's test at the 5% level.")
  cat("\n")
  all <- do.call(rbind, lapply(seq_len(nrow(plan)), function(i) {
    cell <- plan[i, ]
    message(sprintf("%-4s d = %d", cell$case, cell$d))
    tests <- lapply(choices[mmd_choices], function(choice) {
      function(data) {
        mmd_test(data$x, data$y, estimator = choice, filter = "none",
               B = permutations)$p.value
      }
    })
    p <- repeat_tests(function() figure3_draws[[cell$case]](figure3_n, cell$d),
                      tests, reps, cores, seed_of("figure3", cell$case, cell$d))
    cbind(case = cell$case, n = figure3_n, d = cell$d, summarize(p))
  }))
  for (case in unique(all$case)) {
    rows <- all[all$case == case, ]
    print_power(case, rows, paste("d =", unique(rows$d)))
  }
  claim_power(all[all$case != "one", ], "the two-sample test of Figure 3")
  band <- level_band(reps, exact_level(permutations))
  level <- all[all$case == "one", ]
  say("Level: ", sum(level$power * reps >= band[1] &
                       level$power * reps <= band[2]), " of ", nrow(level),
      sprintf(" rates are in the 99.9%% band of %.3f to %.3f.", band[1] / reps,
              band[2] / reps))
  write_table(all, out, "power-figure3.csv", c("case", "d", "estimator"))
  cat("\n")
}

# Eckerle4 --------------------------------------------------------------------

eckerle4_address <- paste0("https://www.itl.nist.gov/div898/strd/nls/data/",
                           "LINKS/DATA/Eckerle4.dat")

read_nist <- function(file) {
  table <- utils::read.table(file, skip = 60, col.names = c("y", "x"))
  if (nrow(table) != 35 || !all(vapply(table, is.numeric, NA))) {
    stop("there are not 35 rows of two numbers")
  }
  table
}

# The data frame, or NULL where it cannot be had.
find_eckerle4 <- function(file) {
  if (nzchar(file)) {
    return(tryCatch(read_nist(file), error = function(e) {
      give_up("cannot read '", file, "': ", conditionMessage(e))
    }, warning = function(e) {
      give_up("cannot read '", file, "': ", conditionMessage(e))
    }))
  }
  if (requireNamespace("NISTnls", quietly = TRUE)) {
    box <- new.env()
    utils::data("Eckerle4", package = "NISTnls", envir = box)
    return(box$Eckerle4)
  }
  copy <- tempfile(fileext = ".dat")
  before <- options(timeout = 10)
  on.exit({
    options(before)
    unlink(copy)
  })
  tryCatch({
    utils::download.file(eckerle4_address, copy, quiet = TRUE)
    read_nist(copy)
  }, error = function(e) NULL, warning = function(e) NULL)
}

# Table 4 of X21: its levels, and its names of our estimators.
levels_printed <- c(0.05, 0.10, 0.15)
names_printed <- c(KME = "kme", MKME = "mkme", MMKME = "mmkme",
                   "S-KMSE plugin" = "skmse", "S-KMSE loocv" = "skmse",
                   "F-KMSE loocv" = "fkmse")

read_printed <- function() {
  file <- file.path(here, "printed", "xia2021_table4.csv")
  utils::read.csv(file)
}

printed_power <- function(printed, alpha, percent, name) {
  mine <- abs(printed$alpha - alpha) < 1e-9 & printed$estimator == name &
    abs(100 * printed$eta - percent) < 1e-9
  printed$power[mine]
}

hsic_cell <- function(table, percent, printed, reps, permutations, cores) {
  n <- floor(nrow(table) * percent / 100 + 0.5)
  message(sprintf("Eckerle4      n = %d", n))
  make <- function() {
    rows <- sample.int(nrow(table), n)
    list(x = table$x[rows], y = table$y[rows])
  }
  tests <- lapply(choices, function(choice) {
    function(data) {
      hsic_test(data$x, data$y, estimator = choice, filter = "none",
                B = permutations)$p.value
    }
  })
  p <- repeat_tests(make, tests, reps, cores, 20210000 + percent)
  do.call(rbind, lapply(levels_printed, function(alpha) {
    rows <- summarize(p, alpha)
    rows$printed <- vapply(names_printed[rows$estimator], function(name) {
      printed_power(printed, alpha, percent, name)
    }, 0)
    cbind(alpha = alpha, percent = percent, n = n, rows,
          least = apply(p, 2, min), same = mean(p[, "MKME"] == p[, "MMKME"]))
  }))
}

print_beside <- function(rows) {
  sizes <- unique(rows[c("percent", "n")])
  cells <- matrix(paste0(sprintf("%.1f", 100 * rows$power),
                         mark_signs(rows$against_kme),
                         sprintf("(%4.1f)", 100 * rows$printed)),
                  ncol = nrow(sizes), dimnames = list(
                    unique(rows$estimator),
                    sprintf("%g%%: n = %d", sizes$percent, sizes$n)
                  ))
  print_block(paste("power at level", format(rows$alpha[1]), "(printed)"),
              cells, 13)
}

hsic <- function(table, percents, reps, permutations, cores, out) {
  say("Independence of wavelength and transmittance, Eckerle4; ", reps,
      " random parts of the ", nrow(table), " points for each cell, ",
      permutations, " permutations, RBF kernels with median bandwidths. Power ",
      "in %; * above, ! below the KME's by McNemar's test at the 5% level; in ",
      "brackets X21, Table 4.")
  cat("\n")
  printed <- read_printed()
  all <- do.call(rbind, lapply(percents, function(percent) {
    hsic_cell(table, percent, printed, reps, permutations, cores)
  }))
  for (alpha in levels_printed) print_beside(all[all$alpha == alpha, ])
  usual <- all[all$alpha == nominal, ]
  first <- usual[usual$estimator == "KME", ]
  say("Smallest p-value seen with the KME: ",
      paste0(formatC(first$least, digits = 2, format = "g"), " at n = ",
             first$n, collapse = ", "), ".")
  say("MKME and MMKME have the same p-value in ",
      sprintf("%.1f%%", 100 * mean(first$same)), " of the parts: with one ",
      "column they are one estimator.")
  claim_power(usual, "the independence test")
  cat("\n")
  write_table(all[names(all) != "same"], out, "power-hsic.csv",
              c("alpha", "n", "estimator"))
  write_figure(out, "power-hsic.png", 1000, 800, function() {
    graphics::layout(matrix(1:2), heights = c(1, 0.2))
    draw_panel(usual, usual$n, "Eckerle4", "points of 35 in the part")
    draw_legend(style, 3, 0.9)
  })
  cat("\n")
}

# The last column of Table 4 --------------------------------------------------

multiples <- c("1/16" = 1 / 16, "1/8" = 1 / 8, "1/4" = 1 / 4, "1/2" = 1 / 2,
               "1" = 1, "2" = 2)

# Parts of the points, and with replacement also of points whose y have been
# shuffled, so that nothing but points drawn twice can be found.
ways <- c("without replacement", "with replacement", "with, y shuffled")

draw_part <- function(table, n, way) {
  y <- if (way == ways[3]) sample(table$y) else table$y
  rows <- sample.int(nrow(table), n, replace = way != ways[1])
  list(x = table$x[rows], y = y[rows])
}

# A point that is drawn twice must not make the bandwidth 0.
narrow_kernel <- function(multiple) {
  kernel_rbf(function(x) {
    distances <- stats::dist(x)
    middle <- stats::median(distances)
    if (middle == 0) middle <- min(distances[distances > 0], 1)
    multiple * middle
  })
}

# Power of HSIC at a level beside the printed power of MMKME.
column_cell <- function(table, way, percent, printed, reps, permutations,
                        cores) {
  n <- floor(nrow(table) * percent / 100 + 0.5)
  message(sprintf("%-19s  n = %d", way, n))
  tests <- lapply(multiples, function(multiple) {
    kernel <- narrow_kernel(multiple)
    # In small parts often no permutation changes anything: the p-value is 1.
    function(data) suppressWarnings(
      hsic_test(data$x, data$y, kernel = kernel, filter = "none",
                B = permutations)$p.value,
      classes = "kernmean_warning"
    )
  })
  p <- repeat_tests(function() draw_part(table, n, way), tests, reps, cores,
                    20210000 + percent)
  do.call(rbind, lapply(levels_printed, function(alpha) {
    data.frame(way = way, alpha = alpha, percent = percent, n = n,
               multiple = names(multiples),
               power = colMeans(rejects(p, alpha)), reps = reps,
               printed = printed_power(printed, alpha, percent, "mmkme"))
  }))
}

column <- function(table, percents, reps, permutations, cores, out) {
  say("X21, Table 4, last column (\"MMKME\"): HSIC of the average with ",
      "multiples of the median bandwidth; ", reps, " parts for each cell, ",
      permutations, " permutations.")
  say("At the bandwidth of the KME row noise widens the kernel: MMKME is ",
      "among multiples from 1 on.")
  cat("\n")
  printed <- read_printed()
  all <- do.call(rbind, lapply(ways, function(way) {
    do.call(rbind, lapply(percents, function(percent) {
      column_cell(table, way, percent, printed, reps, permutations, cores)
    }))
  }))
  apart <- tapply((all$power - all$printed)^2, all[c("way", "multiple")], mean)
  apart <- sqrt(apart)[ways, names(multiples)]
  cells <- matrix(sprintf("%.3f", apart), nrow(apart), dimnames = list(
    c("without", "with", "with, shuffled"), colnames(apart)
  ))
  print_block("root mean square from the printed powers, by multiple", cells, 9)
  both <- mean(all$printed * (1 - all$printed)) * (1 / 200 + 1 / reps)
  say("Two runs of the same would be ", sprintf("%.3f", sqrt(both)),
      " apart (200 parts there, ", reps, " here).")
  best <- all[all$way == ways[2] & all$multiple == "1/4" &
                all$alpha == nominal, ]
  say("With replacement, a quarter of the median, level 0.05: ",
      paste(sprintf("%.3f (printed %.3f)", best$power, best$printed),
            collapse = ", "), ".")
  cat("\n")
  write_table(all, out, "power-column.csv",
              c("way", "alpha", "n", "multiple"))
  cat("\n")
}

# Level -----------------------------------------------------------------------

# Each row: list(claimed, run). The data: two samples of 15 points in two
# columns, pairs that share an effect, 15 pairs of independent x and y.
level_rows <- function(permutations) {
  unbiased <- test_control(statistic = "unbiased")
  row <- function(test, ..., claimed = TRUE) {
    force(test)
    arguments <- list(..., B = permutations)
    list(claimed = claimed, run = function(data) test(data, arguments))
  }
  two <- function(data, arguments) {
    do.call(mmd_test, c(data[c("x", "y")], filter = "none", arguments))$p.value
  }
  paired <- function(data, arguments) {
    arguments$blocks <- rep(seq_len(nrow(data$x)), 2)
    arguments$filter <- "none"
    two(list(x = data$x + data$effect, y = data$y + data$effect), arguments)
  }
  free <- function(data, arguments) {
    do.call(hsic_test, c(list(data$x[, 1], data$y[, 1], filter = "none"),
                         arguments))$p.value
  }
  list(
    "MMD KME biased" = row(two),
    "MMD KME unbiased" = row(two, control = unbiased),
    "MMD MKME biased" = row(two, estimator = est_mkme()),
    "MMD MKME unbiased" = row(two, estimator = est_mkme(), control = unbiased),
    "MMD MMKME biased" = row(two, estimator = est_mmkme()),
    "MMD MMKME unbiased" = row(two, estimator = est_mmkme(),
                               control = unbiased),
    "MMD S-KMSE loocv" = row(two, estimator = est_skmse(select = "loocv")),
    "MMD S-KMSE plugin" = row(two, estimator = est_skmse(select = "plugin")),
    "MMD F-KMSE loocv" = row(two, estimator = est_fkmse(select = "loocv")),
    "MMD F-KMSE gcv" = row(two, estimator = est_fkmse(select = "gcv")),
    "MMD F-KMSE printed" = row(two, estimator = est_fkmse(select = "printed")),
    "MMD KME biased, 5 bins" = row(two, control = test_control(bins = 5)),
    "MMD KME unbiased, 5 bins" = row(
      two, control = test_control(bins = 5, statistic = "unbiased")
    ),
    "MMD KME biased, blocks" = row(paired),
    "MMD KME unbiased, blocks" = row(paired, control = unbiased),
    "MMD S-KMSE, blocks" = row(paired, estimator = est_skmse()),
    "MMD fuse" = row(two, bandwidths = "fuse"),
    "MMD energy biased" = row(two, kernel = kernel_energy()),
    "MMD energy unbiased" = row(two, kernel = kernel_energy(),
                                control = unbiased),
    "MMD spectrum biased" = row(two, control = test_control(null = "spectrum"),
                                claimed = FALSE),
    "MMD spectrum unbiased" = row(
      two, control = test_control(null = "spectrum", statistic = "unbiased"),
      claimed = FALSE
    ),
    "MMD gamma" = row(two, control = test_control(null = "gamma"),
                      claimed = FALSE),
    "HSIC KME biased" = row(free),
    "HSIC KME unbiased" = row(free, control = unbiased),
    "HSIC MKME biased" = row(free, estimator = est_mkme()),
    "HSIC MKME unbiased" = row(free, estimator = est_mkme(),
                               control = unbiased),
    "HSIC MMKME biased" = row(free, estimator = est_mmkme()),
    "HSIC MMKME unbiased" = row(free, estimator = est_mmkme(),
                                control = unbiased),
    "HSIC S-KMSE plugin" = row(free, estimator = est_skmse(select = "plugin")),
    "HSIC S-KMSE loocv" = row(free, estimator = est_skmse(select = "loocv")),
    "HSIC F-KMSE loocv" = row(free, estimator = est_fkmse(select = "loocv")),
    "HSIC gamma" = row(free, control = test_control(null = "gamma"),
                       claimed = FALSE)
  )
}

null_data <- function() {
  normal <- function(n, d) matrix(stats::rnorm(n * d), n)
  list(x = normal(15, 2), y = normal(15, 2), effect = normal(15, 2))
}

level <- function(reps, permutations, cores, out, quick) {
  exact <- exact_level(permutations)
  band <- level_band(reps, exact)
  say("Rejections at the nominal level ", nominal, " where nothing is to be ",
      "found: ", reps, " data sets, ", permutations, " permutations (an exact ",
      "test's level is then ", format(exact, digits = 3), "). 99.9% band ",
      sprintf("of an exact test: %.4f to %.4f.", band[1] / reps,
              band[2] / reps))
  cat("\n")
  rows <- level_rows(permutations)
  if (quick) rows <- rows[c("MMD KME biased", "HSIC KME biased")]
  p <- repeat_tests(null_data, lapply(rows, `[[`, "run"), reps, cores,
                    20210714)
  count <- colSums(rejects(p))
  claimed <- vapply(rows, `[[`, NA, "claimed")
  results <- data.frame(test = names(rows), rejected = count,
                        rate = count / reps, claimed_exact = claimed,
                        verdict = judge(count, band, claimed))
  cat(sprintf("%-27s %.4f  %s", results$test, results$rate, results$verdict),
      sep = "\n")
  over_level <- results$test[claimed & count > band[2]]
  under <- results$test[claimed & count < band[1]]
  cat("\n")
  say("Of ", sum(claimed), " tests that claim an exact level, ",
      sum(claimed & count >= band[1] & count <= band[2]),
      " are in the band, ", length(over_level), " above it",
      if (length(over_level)) paste0(" (", toString(over_level), ")"), ", ",
      length(under), " below it",
      if (length(under)) paste0(" (", toString(under), ")"), ".")
  cat("\n")
  write_table(results, out, "power-level.csv", "test")
}

main <- function(args) {
  chosen <- read_options(args, list(
    part = "all", figure3 = FALSE, level = FALSE, reps = "",
    permutations = "", eckerle4 = "", out = ".", cores = "1", quick = FALSE
  ), usage)
  number <- function(option, otherwise, least) {
    if (!nzchar(chosen[[option]])) return(otherwise)
    whole_number(chosen[[option]], paste0("--", option), least)
  }
  part <- if (chosen$level) "level" else if (chosen$figure3) "figure3" else {
    one_of(chosen$part, "--part",
           c("two-sample", "figure3", "hsic", "column", "level", "all"))
  }
  quick <- chosen$quick
  cores <- whole_number(chosen$cores, "--cores", 1)
  reps <- function(usual) number("reps", usual, 2)
  permutations <- function(usual) number("permutations", usual, 19)
  out <- output_folder(chosen$out)
  use_one_thread()
  # Its solves take most of the time.
  if (quick) mmd_choices <<- setdiff(mmd_choices, "F-KMSE loocv")
  if (part %in% c("two-sample", "all")) {
    plan <- rbind(data.frame(along = "n", n = c(10, 20, 30, 50), d = 5),
                  data.frame(along = "d", n = 20, d = c(1, 2, 5, 10, 20)))
    if (quick) plan <- plan[1, ]
    two_sample(plan, reps(200), permutations(199), cores, out)
  }
  if (part %in% c("figure3", "all")) {
    plan <- expand.grid(d = c(1, 2, 5, 10, 20, 30),
                        case = names(figure3_draws), stringsAsFactors = FALSE)
    if (quick) plan <- plan[2, ]
    figure3(plan, reps(500), permutations(1000), cores, out)
  }
  percents <- if (quick) 10 else c(10, 15, 20, 25, 30)
  of_eckerle4 <- c("hsic", "column")
  if (part != "all") of_eckerle4 <- intersect(of_eckerle4, part)
  table <- if (length(of_eckerle4) > 0) find_eckerle4(chosen$eckerle4)
  if (length(of_eckerle4) > 0 && is.null(table)) {
    cat("Eckerle4 is not to be had: no --eckerle4 FILE, no package NISTnls, no",
        "answer\nfrom NIST. The tables of hsic_test() are left out.\n\n")
    of_eckerle4 <- character()
  }
  if ("hsic" %in% of_eckerle4) {
    hsic(table, percents, reps(200), permutations(2000), cores, out)
  }
  if ("column" %in% of_eckerle4) {
    column(table, percents, reps(200), permutations(499), cores, out)
  }
  if (part %in% c("level", "all")) {
    level(reps(2000), permutations(99), cores, out, quick)
  }
}

main(commandArgs(trailingOnly = TRUE))

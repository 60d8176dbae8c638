# The first figures of both papers, each at its own setting, on the mixtures of
# normals of mixtures.R:
#
# M14  Figure 1 of Muandet et al. (2014; arXiv 1306.0842): loss against the
#      amount of shrinkage, n = 10, d = 30, lambda in units of the smallest
#      eigenvalue of the Gram matrix that is not 0. F-KMSE adds lambda to the
#      eigenvalues, S-KMSE divides by 1 + lambda: for it an eigenvalue is no
#      unit where the kernel is unbounded, so it is shown with lambda/(tr(K)/n)
#      too ("S-KMSE, scaled"; the same for the RBF kernel).
# X21  Figure 1 of Xia et al. (2021; arXiv 2107.04855): the loss of MKME against
#      a given sigma^2, in units of theta^2, n = 10, d = 20, RBF kernel; sigma^2
#      = 0 is the KME.
#
# Both are printed without numbers. The loss |mu~ - mu_P|^2 is exact.

usage <- "Usage: Rscript figures.R [options]

  --figure M14|X21|all   which of them (all)
  --reps N               distributions (at least 3; 30, as in the papers)
  --out DIR              folder for figures and tables (.)
  --cores N              processes, with the package future.apply (1); the
                         results do not depend on it
  --quick                the smallest form: few amounts
  --help                 this text"

study_name <- "figures.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))
source(file.path(here, "mixtures.R"))

# Okabe-Ito colors, as in risk.R.
style <- data.frame(
  row.names = names(plain_estimators), col = c("grey45", "#0072B2", "#D55E00"),
  pch = c(NA, 16, 15), lty = c(2, 1, 1)
)

# Losses of all kernels: for each an array of what one sample gives x reps.
run_kernels <- function(n, d, reps, cores, one) {
  samples <- draw_samples(d, n, reps)
  lapply(kernels, function(kernel) {
    simplify2array(over(samples, function(s) {
      one(first_points(s, n, kernel), s$mixture)
    }, cores))
  })
}

# One row for each row of `losses` (settings x reps), beside those of the KME.
summarize <- function(losses, plain) {
  gains <- apply(losses, 1, gain, a = plain)
  data.frame(
    loss = rowMeans(losses), se = apply(losses, 1, standard_error),
    gain = gains["gain", ], gain_se = gains["se", ],
    smaller = colSums(t(losses) < plain), of = length(plain), row.names = NULL
  )
}

rounded <- function(table) {
  numbers <- vapply(table, is.numeric, NA)
  table[numbers] <- lapply(table[numbers], signif, 6)
  table
}

signs_of <- function(rows) clear_sign(rows$gain, rows$gain_se)

cell_text <- function(rows) {
  paste0(sprintf("%.1f", rows$gain), mark_signs(signs_of(rows)))
}

# M14 -------------------------------------------------------------------------

given_style <- rbind(style[names(plain_estimators), ], "S-KMSE, scaled" = list(
  col = "#56B4E9", pch = 1, lty = 1
))[c(1, 2, 4, 3), ]

# Losses with lambda = units times the smallest eigenvalue: units x ways.
fit_units <- function(k, mixture, units) {
  values <- gram_spectrum(k)$values
  values <- values[values > length(values) * .Machine$double.eps * values[1]]
  risk <- function(lambda, make) {
    kme_risk(kme(k, estimator = make(lambda)), mixture)
  }
  plain <- kme(k)
  lambdas <- units * min(values)
  found <- cbind(kme_risk(plain, mixture),
                 vapply(lambdas, risk, 0, make = est_skmse),
                 vapply(lambdas / plain$varrho, risk, 0, make = est_skmse),
                 vapply(lambdas, risk, 0, make = est_fkmse))
  colnames(found) <- rownames(given_style)
  found
}

figure_m14 <- function(units, reps, cores) {
  found <- run_kernels(10, 30, reps, cores, function(k, mixture) {
    fit_units(k, mixture, units)
  })
  do.call(rbind, lapply(names(found), function(kernel) {
    losses <- found[[kernel]]
    do.call(rbind, lapply(dimnames(losses)[[2]], function(name) {
      data.frame(kernel = kernel, units = units, estimator = name,
                 summarize(losses[, name, ], losses[1, "KME", ]))
    }))
  }))
}

# The amounts of the table; the figure has those between, too.
shown_units <- 10^(-2:2)

print_m14 <- function(results) {
  for (kernel in unique(results$kernel)) {
    rows <- results[results$kernel == kernel &
                      results$units %in% shown_units, ]
    cells <- vapply(rownames(given_style)[-1], function(name) {
      cell_text(rows[rows$estimator == name, ])
    }, character(sum(rows$estimator == "KME")))
    rownames(cells) <- paste0("lambda = ", unique(rows$units))
    cat(kernel, ": KME's mean loss ", short(rows$loss[1]), "\n", sep = "")
    print_block(paste("gain over the KME in %, lambda in units of the smallest",
                      "eigenvalue"), cells, 16)
  }
}

# "Shrinking usually lowers the loss; with a large lambda it can raise it".
conclude_m14 <- function(results) {
  shrunk <- results[results$estimator != "KME", ]
  for (name in unique(shrunk$estimator)) {
    mine <- shrunk[shrunk$estimator == name, ]
    little <- mine[mine$units <= 1, ]
    best <- do.call(rbind, lapply(split(mine, mine$kernel), function(rows) {
      rows[which.max(rows$gain), ]
    }))
    signs <- signs_of(best)
    say("M14, figure 1, ", name, " with the best of the amounts beats the ",
        "KME: ", verdict(signs), " (kernels: ", count_signs(signs), ").")
    say(name, " with lambda up to one eigenvalue: ",
        count_signs(signs_of(little)), " amounts and kernels.")
    harmed <- mine[signs_of(mine) < 0, ]
    from <- vapply(split(harmed$units, harmed$kernel), min, 0)
    say(name, " harms ", if (length(from)) paste0(
      names(from), " from ", short(from), " on", collapse = ", "
    ) else "with no kernel", ".")
  }
  cat("\n")
}

draw_m14 <- function(results) {
  graphics::layout(rbind(matrix(1:4, 2, byrow = TRUE), 5),
                   heights = c(1, 1, 0.16))
  for (kernel in unique(results$kernel)) {
    rows <- results[results$kernel == kernel, ]
    plain <- rows$loss[rows$estimator == "KME"][1]
    graphics::par(mar = c(3.6, 4.4, 2.2, 0.8))
    # What is above twice the KME's loss is not drawn.
    graphics::plot(NA, xlim = range(rows$units), ylim = c(
      min(0.95, rows$loss / plain), min(2, max(1.05, rows$loss / plain))
    ), log = "x", axes = FALSE, xlab = "", ylab = "")
    at <- graphics::axis(2, las = 1, lwd = 0, line = -0.5)
    graphics::abline(h = at, col = "grey92")
    log_axis(1, range(rows$units))
    graphics::title(main = kernel, adj = 0, line = 0.6)
    graphics::title(ylab = "mean loss / KME's", line = 2.8)
    graphics::title(xlab = "lambda / smallest eigenvalue", line = 2.1)
    for (name in rownames(given_style)) {
      mine <- rows[rows$estimator == name, ]
      inside <- mine$loss <= 2 * plain
      draw_curve(mine$units[inside], mine$loss[inside] / plain,
                 given_style[name, ])
    }
  }
  draw_legend(given_style, 4)
}

# X21 -------------------------------------------------------------------------

x21_ratios <- c(0, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.03, 0.05)

# Losses of MKME: for each amount of noise, and for that which its leave-one-out
# score selects. theta^2 is X21's: the median of all n^2 squared distances, the
# n zeros among them.
fit_noise <- function(sample, ratios) {
  x <- sample$x[1:10, , drop = FALSE]
  theta2 <- stats::median(as.matrix(stats::dist(x))^2)
  k <- gram(x, kernel_rbf(sqrt(theta2)))
  risk <- function(estimator) {
    kme_risk(kme(k, estimator = estimator), sample$mixture)
  }
  c(risk(est_kme()), vapply(ratios[-1] * theta2, function(noise) {
    risk(est_mkme(noise = noise))
  }, 0), risk(est_mkme()))
}

figure_x21 <- function(ratios, reps, cores) {
  losses <- simplify2array(over(draw_samples(20, 10, reps), function(sample) {
    fit_noise(sample, ratios)
  }, cores))
  data.frame(ratio = c(ratios, NA), noise = c(rep("given", length(ratios)),
                                              "selected"),
             relative = rowMeans(losses) / mean(losses[1, ]),
             summarize(losses, losses[1, ]))
}

print_x21 <- function(results) {
  cells <- cbind(short(results$loss), sprintf("%.3f", results$relative),
                 cell_text(results))
  dimnames(cells) <- list(
    ifelse(is.na(results$ratio), "selected", results$ratio),
    c("mean loss", "relative", "gain in %")
  )
  print_block("MKME, sigma^2 / theta^2; * better, ! worse by more than 2 s.e.",
              cells, 11)
}

# "The choice of sigma matters": some amounts gain, others harm.
conclude_x21 <- function(results) {
  given <- results[results$noise == "given", ]
  best <- given[which.min(given$loss), ]
  harmful <- given$ratio[signs_of(given) < 0]
  say("X21, figure 1: the best of the amounts, ", best$ratio, ", saves ",
      sprintf("%.1f%% (s.e. %.1f)", best$gain, best$gain_se), " of the KME's ",
      "loss, the selected one ",
      sprintf("%.1f%% (s.e. %.1f)", results$gain[results$noise == "selected"],
              results$gain_se[results$noise == "selected"]),
      if (length(harmful)) paste0("; clearly harmful from ", min(harmful),
                                  " on"), ".")
  cat("\n")
}

draw_x21 <- function(results) {
  rows <- results[results$noise == "given" & results$ratio > 0, ]
  graphics::par(mar = c(3.6, 4.4, 1, 0.8))
  graphics::plot(rows$ratio, rows$relative, type = "b", log = "x", pch = 18,
                 col = "#009E73", ylim = c(0.9, 1.5), axes = FALSE, xlab = "",
                 ylab = "", lwd = 1.8)
  graphics::axis(2, las = 1, lwd = 0, line = -0.5)
  log_axis(1, range(rows$ratio))
  graphics::abline(h = 1, lty = 2, col = "grey45")
  graphics::abline(h = results$relative[results$noise == "selected"], lty = 3,
                   col = "#009E73")
  graphics::title(ylab = "mean loss / KME's (dotted: selected)", line = 2.8)
  graphics::title(xlab = "sigma^2 / theta^2", line = 2.1)
}

main <- function(args) {
  chosen <- read_options(args, list(figure = "all", reps = "30", out = ".",
                                    cores = "1", quick = FALSE), usage)
  figure <- one_of(chosen$figure, "--figure", c("M14", "X21", "all"))
  reps <- whole_number(chosen$reps, "--reps", 3)
  cores <- start_processes(whole_number(chosen$cores, "--cores", 1))
  out <- output_folder(chosen$out)
  use_one_thread()
  say("Mean loss |mu~ - mu_P|^2 over ", reps, " distributions.")
  if (figure != "X21") {
    cat("\nM14, figure 1: n = 10, d = 30\n\n")
    units <- if (chosen$quick) shown_units else 10^seq(-2, 2, by = 0.25)
    results <- figure_m14(units, reps, cores)
    print_m14(results)
    conclude_m14(results)
    write_table(rounded(results), out, "figures-m14.csv",
                c("kernel", "units", "estimator"))
    write_figure(out, "figures-m14.png", 1300, 1100, function() {
      draw_m14(results)
    })
  }
  if (figure != "M14") {
    cat("\nX21, figure 1: n = 10, d = 20\n\n")
    results <- figure_x21(x21_ratios, reps, cores)
    print_x21(results)
    conclude_x21(results)
    write_table(rounded(results), out, "figures-x21.csv", c("ratio", "noise"))
    write_figure(out, "figures-x21.png", 900, 650, function() {
      draw_x21(results)
    })
  }
}

main(commandArgs(trailingOnly = TRUE))

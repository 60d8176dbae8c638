# The first figures of both papers, each at its own setting, on the mixtures of
# normals of mixtures.R:
#
# M14  Figure 1 of Muandet et al. (2014; arXiv 1306.0842): loss against the
#      amount of shrinkage, n = 10, d = 30, lambda in units of the smallest
#      eigenvalue of the Gram matrix that is not 0. F-KMSE adds lambda to the
#      eigenvalues, S-KMSE divides by 1 + lambda: for it an eigenvalue is no
#      unit where the kernel is unbounded, so it is shown with lambda/(tr(K)/n)
#      too ("S-KMSE, scaled"; the same for the RBF kernel).
# X21  Figure 1 of Xia et al. (2021; arXiv 2107.04855): the losses of all
#      estimators, n = 10, d = 20, the amounts selected by leaving one out.
#
# Both are printed without numbers. The loss |mu~ - mu_P|^2 is exact.

usage <- "Usage: Rscript figures.R [options]

  --figure M14|X21|all   which of them (all)
  --reps N               distributions (at least 3; 30, as in the papers)
  --out DIR              folder for figures and tables (.)
  --cores N              processes, with the package future.apply (1); the
                         results do not depend on it
  --quick                the smallest form: 3 distributions
  --help                 this text"

study_name <- "figures.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here[1]), "common.R"))
source(file.path(dirname(here[1]), "mixtures.R"))

estimators <- c(plain_estimators, marginal_estimators)

# Okabe-Ito colors, as in risk.R.
style <- data.frame(
  row.names = names(estimators),
  col = c("grey45", "#0072B2", "#D55E00", "#009E73", "#000000"),
  pch = c(NA, 16, 15, 18, 4), lty = c(2, rep(1, 4))
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

fit_selected <- function(k, mixture) {
  vapply(estimators, function(estimator) {
    kme_risk(kme(k, estimator = estimator), mixture)
  }, 0)
}

figure_x21 <- function(reps, cores) {
  found <- run_kernels(10, 20, reps, cores, fit_selected)
  table <- do.call(rbind, lapply(names(found), function(kernel) {
    losses <- found[[kernel]]
    data.frame(kernel = kernel, estimator = rownames(losses),
               summarize(losses, losses["KME", ]))
  }))
  list(table = table, losses = found)
}

print_x21 <- function(results) {
  loss <- paste0(short(results$loss), sprintf(" (%s)", short(results$se, 2)))
  wide <- function(values) {
    matrix(values, length(estimators),
           dimnames = list(names(estimators), unique(results$kernel)))
  }
  print_block("mean loss (standard error)", wide(loss), 20)
  print_block("gain over the KME in %; * better, ! worse by more than 2 s.e.",
              wide(cell_text(results))[-1, ], 10)
}

# "Much lower": the marginalized ones against each of the others, RBF kernel.
conclude_x21 <- function(losses) {
  for (name in names(marginal_estimators)) {
    others <- setdiff(names(plain_estimators), name)
    rows <- do.call(rbind, lapply(others, function(other) {
      summarize(losses[name, , drop = FALSE], losses[other, ])
    }))
    say("X21, figure 1, ", name, " has a (much) lower loss than the others, ",
        "RBF kernel: ", verdict(signs_of(rows)), " (gain ", paste(
          sprintf("%.1f%% (s.e. %.1f) on %s", rows$gain, rows$gain_se, others),
          collapse = ", "
        ), ").")
  }
  cat("\n")
}

# Boxes of the losses in per cent of the KME's, a panel for each kernel.
draw_x21 <- function(found) {
  graphics::layout(matrix(1:4, 2, byrow = TRUE))
  for (kernel in names(found)) {
    losses <- found[[kernel]]
    share <- 100 * t(losses[-1, ]) / losses[1, ]
    graphics::par(mar = c(2.4, 4.4, 2.2, 0.8))
    graphics::boxplot(share, las = 1, boxwex = 0.5, col = "grey92",
                      border = style$col[-1], pch = 20, frame.plot = FALSE)
    graphics::abline(h = 100, lty = 2, col = "grey45")
    graphics::points(seq_len(ncol(share)), 100 * rowMeans(losses)[-1] /
                       mean(losses[1, ]), pch = 18, cex = 1.6,
                     col = style$col[-1])
    graphics::title(main = kernel, adj = 0, line = 0.6)
    graphics::title(ylab = "loss, % of the KME's", line = 2.8)
  }
}

main <- function(args) {
  chosen <- read_options(args, list(figure = "all", reps = "30", out = ".",
                                    cores = "1", quick = FALSE), usage)
  figure <- one_of(chosen$figure, "--figure", c("M14", "X21", "all"))
  reps <- if (chosen$quick) 3 else whole_number(chosen$reps, "--reps", 3)
  cores <- start_processes(whole_number(chosen$cores, "--cores", 1))
  out <- output_folder(chosen$out)
  use_one_thread()
  say("Mean loss |mu~ - mu_P|^2 over ", reps, " distributions",
      if (chosen$quick) " (too few to conclude anything)", ".")
  if (figure != "X21") {
    cat("\nM14, figure 1: n = 10, d = 30\n\n")
    units <- if (chosen$quick) shown_units else 10^seq(-2, 2, by = 0.25)
    results <- figure_m14(units, reps, cores)
    print_m14(results)
    conclude_m14(results)
    write_table(rounded(results), out, "figures-m14.csv")
    write_figure(out, "figures-m14.png", 1300, 1100, function() {
      draw_m14(results)
    })
  }
  if (figure != "M14") {
    cat("\nX21, figure 1: n = 10, d = 20\n\n")
    found <- figure_x21(reps, cores)
    print_x21(found$table)
    conclude_x21(found$losses$RBF)
    write_table(rounded(found$table), out, "figures-x21.csv")
    write_figure(out, "figures-x21.png", 1300, 1100, function() {
      draw_x21(found$losses)
    })
  }
}

main(commandArgs(trailingOnly = TRUE))

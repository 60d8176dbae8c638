# The exact error of the estimators of a kernel mean on simulated data: the
# setting of section 4.1 of Muandet et al. (2014, "M14" below; arXiv 1306.0842),
# with the marginalized estimators of Xia et al. (2021, "X21"; 2107.04855), and
# with smoothing about the mean and stacks, which neither paper has.
#
# From one sample of each distribution (see mixtures.R) every estimator is
# fitted; its loss |mu~ - mu_P|^2 is known in closed form. What is shown is the
# mean over the distributions. The first figures of both papers, each at its own
# setting, are in figures.R.

usage <- "Usage: Rscript risk.R [options]

Figures, each for the linear, two polynomial and the RBF kernel (median
bandwidth):
  a  loss against the amount of shrinkage, n = 20, d = 20
  b  loss against the size of the sample, d = 20
  c  loss against the dimension, n = 20
  laplace
     gain against the size of the sample, d = 20, Laplacian and RBF kernel,
     loss by simulation

  --figure a|b|c|laplace|all     which of them (all)
  --kernel LIN|POLY2|POLY3|RBF|all
                                 one kernel only (all)
  --reps N                       distributions (at least 3; 30)
  --out DIR                      folder for figures and tables (.)
  --cores N                      processes, with the package future.apply (1);
                                 the results do not depend on it
  --quick                        the smallest form: few cells
  --help                         this text"

study_name <- "risk.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))
source(file.path(here, "mixtures.R"))

estimators <- c(rule_estimators, marginal_estimators, beyond_estimators)
# F-KMSE with weights that sum to 1: by a quadratic program (M14, section 3),
# and divided by their sum.
unit_sums <- c("F-KMSE, sum 1", "F-KMSE / sum")
shown_names <- c(names(estimators), unit_sums)

# Okabe-Ito colors: simple shrinkage blue, flexible warm, marginalized green.
style <- data.frame(
  row.names = shown_names,
  col = c("grey45", "#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#F0E442",
          "#009E73", "grey60", "#CC79A7", "#000000", "#D55E00", "#E69F00"),
  pch = c(NA, 16, 1, 15, 0, 5, 18, 4, 17, 8, 2, 6), lty = c(2, rep(1, 11))
)

# The study -----------------------------------------------------------------

# Loss and lambda of each estimator: 2 x estimators, NA for smoothing where it
# is not possible. The stack then consists of the KME and F-KMSE.
fit_all <- function(sample, n, kernel) {
  k <- first_points(sample, n, kernel)
  found <- vapply(estimators, function(estimator) {
    if (estimator$name == "smooth" && kernel$family != "rbf") {
      return(c(loss = NA_real_, lambda = NA_real_))
    }
    fit <- kme(k, estimator = estimator)
    c(loss = kme_risk(fit, sample$mixture), lambda = fit$lambda)
  }, c(loss = 0, lambda = 0))
  lambda <- found[["lambda", "F-KMSE loocv"]]
  ways <- list(sum_to_one(as.matrix(k), lambda),
               coef(kme(k, estimator = est_fkmse(lambda = lambda))))
  units <- vapply(ways, function(weights) {
    fit <- kme(k, weights = weights / sum(weights))
    c(kme_risk(fit, sample$mixture), lambda)
  }, c(0, 0))
  colnames(units) <- unit_sums
  cbind(found, units)
}

# F-KMSE's regularized loss b'Kb - 2b'K1_n + lambda b'b, least among the b whose
# sum is 1.
sum_to_one <- function(k, lambda) {
  n <- nrow(k)
  if (!is.finite(lambda)) return(rep(1 / n, n))
  unit <- k[which.max(k)] + lambda
  quadprog::solve.QP((k + diag(lambda, n)) / unit + diag(1e-12, n),
                     rowMeans(k) / unit, matrix(1, n), 1, meq = 1)$solution
}

# Losses with a given amount of shrinkage t: lambda = t for S-KMSE, lambda = t
# tr(K)/n for F-KMSE (the same for an RBF kernel). A matrix t x (KME, S, F).
fit_given <- function(sample, n, kernel, amounts) {
  k <- first_points(sample, n, kernel)
  plain <- kme(k)
  risk <- function(lambda, make) {
    kme_risk(kme(k, estimator = make(lambda)), sample$mixture)
  }
  found <- cbind(kme_risk(plain, sample$mixture),
                 vapply(amounts, risk, 0, make = est_skmse),
                 vapply(amounts * plain$varrho, risk, 0, make = est_fkmse))
  colnames(found) <- names(plain_estimators)
  found
}

# A cell is list(kernel, n, d, loss, lambda), the last two reps x estimators.
run_cells <- function(plan, kernels, reps, cores) {
  cells <- list()
  for (name in names(kernels)) {
    for (i in seq_len(nrow(plan))) {
      n <- plan$n[i]
      d <- plan$d[i]
      message(sprintf("%-5s  n = %d, d = %d", name, n, d))
      samples <- draw_samples(d, max(plan$n), reps)
      kernel <- kernels[[name]]
      found <- over(samples, function(s) fit_all(s, n, kernel), cores)
      found <- simplify2array(found)
      cells <- c(cells, list(list(kernel = name, n = n, d = d,
                                  loss = t(found["loss", , ]),
                                  lambda = t(found["lambda", , ]))))
    }
  }
  cells
}

# One row for each estimator of a cell.
summarize <- function(cell) {
  gains <- apply(cell$loss, 2, gain, a = cell$loss[, "KME"])
  data.frame(
    kernel = cell$kernel, n = cell$n, d = cell$d, estimator = shown_names,
    loss = colMeans(cell$loss), se = apply(cell$loss, 2, standard_error),
    gain = gains["gain", ], gain_se = gains["se", ],
    # Losses that are the same but for rounding are not smaller.
    smaller = colSums(cell$loss < (1 - 1e-9) * cell$loss[, "KME"]),
    of = nrow(cell$loss),
    row.names = NULL
  )
}

# What is shown -------------------------------------------------------------

# Three blocks for each kernel; `along` is "n" or "d".
print_cells <- function(results, along) {
  for (kernel in unique(results$kernel)) {
    rows <- results[results$kernel == kernel, ]
    wide <- function(values) wide_cells(values, rows, along)
    marks <- mark_signs(clear_sign(rows$gain, rows$gain_se))
    filled <- function(text) wide(ifelse(is.na(rows$loss), "", text))
    gains <- filled(paste0(sprintf("%.1f", rows$gain), marks))
    cat(kernel, "\n", sep = "")
    print_block("mean loss", filled(short(rows$loss)))
    print_block("its standard error", filled(short(rows$se, 2)))
    print_block(paste("gain over the KME in %; * better, ! worse by more than",
                      "2 paired s.e."), gains[-1, , drop = FALSE])
  }
}

# Above: mean loss. Below: per cent of the KME's.
draw_cells <- function(results, along, label) {
  kernels <- unique(results$kernel)
  count <- length(kernels)
  graphics::layout(rbind(matrix(seq_len(2 * count), 2), 2 * count + 1),
                   heights = c(1, 1, 0.28))
  shown <- results[results$estimator != "KME", ]
  for (kernel in kernels) {
    rows <- results[results$kernel == kernel, ]
    draw_panel(rows, along, rows$loss, NULL, "y", kernel, "mean loss")
    rest <- 100 - rows$gain
    draw_panel(rows, along, rest, rows$gain_se, "", NULL,
               "% of the KME's loss (bars: 1 s.e.)")
    graphics::title(xlab = label, line = 2)
  }
  draw_legend(style, if (count == 1) 3 else 5, if (count == 1) 0.8 else 1.1)
}

draw_panel <- function(rows, along, y, half, log, title, label) {
  graphics::par(mar = c(if (is.null(title)) 3.2 else 1.6, 4.6,
                        if (is.null(title)) 0.6 else 2.2, 0.6))
  x <- rows[[along]]
  spread <- if (is.null(half)) 0 else half
  ends <- range(y - spread, y + spread, na.rm = TRUE)
  graphics::plot(NA, xlim = range(x), ylim = ends,
                 log = paste0(if (along == "n") "x", log), axes = FALSE,
                 xlab = "", ylab = "")
  at <- if (log == "y") log_axis(2, range(y, na.rm = TRUE)) else {
    graphics::axis(2, las = 1, lwd = 0, line = -0.5)
  }
  graphics::abline(h = at, col = "grey92")
  graphics::axis(1, unique(x), lwd = 0, line = -0.6)
  graphics::title(main = title, adj = 0, line = 0.6)
  graphics::title(ylab = label, line = 3.2)
  for (name in shown_names) {
    mine <- rows$estimator == name
    draw_curve(x[mine], y[mine], style[name, ],
               if (!is.null(half) && name != "KME") half[mine])
  }
}

# Figure a -------------------------------------------------------------------

given_style <- data.frame(row.names = names(plain_estimators),
                          col = c("grey45", "#0072B2", "#D55E00"),
                          pch = c(NA, 16, 15), lty = c(2, 1, 1))

# For each kernel an array t x (KME, S, F) x reps.
run_given <- function(kernels, amounts, n, d, reps, cores) {
  samples <- draw_samples(d, n, reps)
  lapply(kernels, function(kernel) {
    simplify2array(over(samples, function(s) {
      fit_given(s, n, kernel, amounts)
    }, cores))
  })
}

summarize_given <- function(found, amounts) {
  do.call(rbind, lapply(names(found), function(kernel) {
    each <- lapply(dimnames(found[[kernel]])[[2]], function(name) {
      losses <- found[[kernel]][, name, ]
      plain <- found[[kernel]][1, "KME", ]
      gains <- apply(losses, 1, gain, a = plain)
      data.frame(kernel = kernel, amount = amounts, estimator = name,
                 loss = rowMeans(losses), se = apply(losses, 1, standard_error),
                 gain = gains["gain", ], gain_se = gains["se", ])
    })
    do.call(rbind, each)
  }))
}

print_given <- function(results) {
  for (kernel in unique(results$kernel)) {
    rows <- results[results$kernel == kernel & results$estimator != "KME", ]
    best <- do.call(rbind, lapply(split(rows, rows$estimator), function(r) {
      worse <- r$amount[clear_sign(r$gain, r$gain_se) < 0]
      r <- r[which.min(r$loss), ]
      data.frame(short(r$amount), short(r$loss), short(r$se),
                 sprintf("%.1f", r$gain), sprintf("%.1f", r$gain_se),
                 if (length(worse)) short(min(worse)) else "never")
    }))
    best <- as.matrix(best[names(plain_estimators)[-1], ])
    colnames(best) <- c("t", "loss", "s.e.", "gain%", "s.e.", "harms at")
    cat(kernel, ": KME's mean loss ",
        short(results$loss[results$kernel == kernel][1]), "\n", sep = "")
    print_block("the best amount of shrinkage t, and from where it harms", best,
                width = 10)
  }
}

draw_given <- function(results) {
  kernels <- unique(results$kernel)
  panels <- if (length(kernels) == 1) matrix(1) else {
    matrix(1:4, 2, byrow = TRUE)
  }
  graphics::layout(rbind(panels, length(kernels) + 1),
                   heights = c(rep(1, nrow(panels)), 0.15))
  for (kernel in kernels) {
    rows <- results[results$kernel == kernel, ]
    graphics::par(mar = c(3.4, 4.8, 2.2, 0.8))
    graphics::plot(NA, xlim = range(rows$amount), ylim = range(rows$loss),
                   log = "xy", axes = FALSE, xlab = "", ylab = "")
    graphics::abline(h = log_axis(2, range(rows$loss)), col = "grey92")
    log_axis(1, range(rows$amount))
    graphics::title(main = kernel, adj = 0, line = 0.6)
    graphics::title(ylab = "mean loss", line = 3.4)
    graphics::title(xlab = "shrinkage t (S-KMSE: t, F-KMSE: t tr(K)/n)",
                    line = 2.1)
    for (name in rownames(given_style)) {
      mine <- rows[rows$estimator == name, ]
      draw_curve(mine$amount, mine$loss, given_style[name, ])
    }
  }
  draw_legend(given_style, 3)
}

# Laplacian kernels ----------------------------------------------------------

# Their embeddings have no closed form: the loss is simulated, with two samples
# of 4,000 points, up to what all estimators share. Beside it, for the RBF
# kernel, the exact loss.
laplace_kernels <- list(LAPLACE = kernel_laplace("median"),
                        RBF = kernel_rbf("median"))
laplace_estimators <- rule_estimators[c("KME", "S-KMSE loocv", "F-KMSE loocv",
                                        "F-KMSE printed")]
simulated <- 4000

# Losses: (simulated, exact) x estimators.
fit_laplace <- function(sample, n, kernel) {
  k <- first_points(sample, n, kernel)
  halves <- lapply(1:2, function(half) {
    kme(draw_points(sample$mixture, simulated), k$kernel)
  })
  rest <- kme_inner(halves[[1]], halves[[2]])
  vapply(laplace_estimators, function(estimator) {
    fit <- kme(k, estimator = estimator)
    cross <- kme_inner(fit, halves[[1]]) + kme_inner(fit, halves[[2]])
    c(fit$norm2 - cross + rest, if (kernel$family == "rbf") {
      kme_risk(fit, sample$mixture)
    } else {
      NA
    })
  }, c(0, 0))
}

run_laplace <- function(sizes, reps, cores) {
  samples <- draw_samples(20, max(sizes), reps)
  rows <- lapply(names(laplace_kernels), function(name) {
    lapply(sizes, function(n) {
      message(sprintf("%-7s  n = %d", name, n))
      set.seed(seed_of("laplace", name, n))
      items <- Map(list, sample = samples, seed = draw_seeds(reps))
      found <- simplify2array(over(items, function(item) {
        set.seed(item$seed)
        fit_laplace(item$sample, n, laplace_kernels[[name]])
      }, cores))
      gains <- function(losses) apply(losses, 1, gain, a = losses["KME", ])
      at <- gains(found[1, , ])
      data.frame(kernel = name, n = n, estimator = names(laplace_estimators),
                 loss = rowMeans(found[1, , ]), gain = at["gain", ],
                 se = at["se", ], exact_gain = gains(found[2, , ])["gain", ],
                 row.names = NULL)
    })
  })
  bind(unlist(rows, recursive = FALSE))
}

show_laplace <- function(rows) {
  shown <- rows[rows$estimator != "KME", ]
  text <- sprintf("%.1f (%.1f)%s", shown$gain, shown$se, ifelse(
    is.na(shown$exact_gain), "", sprintf(" [%.1f]", shown$exact_gain)
  ))
  for (kernel in unique(shown$kernel)) {
    mine <- shown$kernel == kernel
    print_block(paste0(kernel, ": gain over the KME in % (s.e.) [exact]"),
                wide_cells(text[mine], shown[mine, ], "n"), 18)
  }
}

# The papers' claims ---------------------------------------------------------

# Does b have a smaller mean loss than a? A sign for each cell.
compare <- function(cells, a, b) {
  vapply(cells, function(cell) {
    found <- gain(cell$loss[, a], cell$loss[, b])
    clear_sign(found[["gain"]], found[["se"]])
  }, 0)
}

# Where b does worst against a.
worst_cell <- function(cells, a, b) {
  found <- vapply(cells, function(cell) {
    gain(cell$loss[, a], cell$loss[, b])
  }, c(gain = 0, se = 0))
  at <- which.min(found["gain", ])
  list(worst_kernel = cells[[at]]$kernel, worst_n = cells[[at]]$n,
       worst_d = cells[[at]]$d, worst_gain = found[["gain", at]],
       worst_se = found[["se", at]])
}

word_worst <- function(worst) {
  sprintf("worst for %s at n = %d, d = %d: %+.1f%% (s.e. %.1f)",
          worst$worst_kernel, worst$worst_n, worst$worst_d, worst$worst_gain,
          worst$worst_se)
}

# Least-squares slope of the gain over log(n) or log(d), and its standard error
# from what each distribution contributes to the gains. Samples of different n
# are parts of one sample (paired), of different d independent.
gain_slope <- function(cells, name, along) {
  x <- log(vapply(cells, `[[`, 0, along))
  weight <- (x - mean(x)) / sum((x - mean(x))^2)
  gains <- vapply(cells, function(cell) {
    gain(cell$loss[, "KME"], cell$loss[, name])[["gain"]]
  }, 0)
  parts <- vapply(cells, function(cell) {
    a <- cell$loss[, "KME"]
    b <- cell$loss[, name]
    100 * (a * mean(b) / mean(a) - b) / mean(a)
  }, numeric(nrow(cells[[1]]$loss)))
  error <- if (along == "n") {
    standard_error(drop(parts %*% weight))
  } else {
    sqrt(sum((weight * apply(parts, 2, standard_error))^2))
  }
  c(slope = sum(weight * gains), se = error)
}

# Prints the claim and returns its verdict.
claim <- function(text, signs, ...) {
  cat("\n")
  say(text, ": ", verdict(signs), ".")
  for (line in c(...)) say(line, indent = 2)
  verdict(signs)
}

# A row of risk-claims.csv: the estimator against another one, over the cells of
# one kernel or of all; NA where a claim is not about that. The verdict is on
# the whole claim, which may have several rows.
comparison <- function(claim, estimator, against, ..., kernel = "all") {
  row <- list(claim = claim, estimator = estimator, against = against,
              kernel = kernel)
  row[c("better", "worse", "unclear", "of", "worst_kernel", "worst_n",
        "worst_d", "worst_gain", "worst_se", "slope", "slope_se", "loss_ratio",
        "largest_difference", "same_fit", "smaller_lambda", "verdict")] <- NA
  as.data.frame(utils::modifyList(row, c(list(), ...)))
}

counts <- function(signs) {
  list(better = sum(signs > 0), worse = sum(signs < 0),
       unclear = sum(signs == 0), of = length(signs))
}

bind <- function(rows) do.call(rbind, rows)

# To the digits that are printed.
as_printed <- function(claims) {
  tenths <- c("worst_gain", "worst_se", "slope", "slope_se", "loss_ratio",
              "smaller_lambda")
  claims[tenths] <- round(claims[tenths], 1)
  claims$same_fit <- round(claims$same_fit)
  claims$largest_difference <- signif(claims$largest_difference, 2)
  claims
}

shrinkers <- names(rule_estimators)[-1]

# Prints the conclusions and returns them, one row for each comparison.
conclude <- function(cells, given) {
  all_cells <- c(cells$b, cells$c)
  cat("What the papers claim, and what these figures show\n",
      "(a difference counts when it exceeds two paired standard errors)\n",
      sep = "")
  as_printed(bind(c(
    if (length(all_cells) > 0) {
      list(claim_shrinkage(all_cells), claim_simple(all_cells),
           claim_trend(cells$b, "n", -1, "M14, the gain falls as n grows"),
           claim_trend(cells$c, "d", 1, "M14, the gain grows with d"),
           claim_marginalized(all_cells), claim_printed(all_cells),
           claim_sum(all_cells), claim_beyond(all_cells))
    },
    if (!is.null(given)) list(claim_range(given))
  )))
}

claim_shrinkage <- function(cells) {
  bind(lapply(shrinkers, function(name) {
    signs <- compare(cells, "KME", name)
    worst <- worst_cell(cells, "KME", name)
    found <- claim(paste0("M14, shrinkage consistently beats the KME, ", name),
                   signs, count_signs(signs), word_worst(worst))
    comparison("shrinkage", name, "KME", counts(signs), worst, verdict = found)
  }))
}

# "S-KMSE performs slightly better than the F-KMSE" (on figure 2).
claim_simple <- function(cells) {
  kernels <- vapply(cells, `[[`, "", "kernel")
  groups <- c(list(all = cells), split(cells, kernels)[unique(kernels)])
  bind(lapply(c("F-KMSE printed", "F-KMSE loocv"), function(name) {
    signs <- lapply(groups, compare, name, "S-KMSE loocv")
    worst <- lapply(groups, worst_cell, name, "S-KMSE loocv")
    found <- claim(paste0("M14, S-KMSE performs slightly better than F-KMSE, ",
                          "S-KMSE loocv against ", name), signs$all,
                   paste0(names(groups), ": ",
                          vapply(signs, count_signs, "")),
                   word_worst(worst$all))
    bind(Map(function(kernel, signs, worst) {
      comparison("simple", "S-KMSE loocv", name, kernel = kernel,
                 counts(signs), worst, verdict = found)
    }, names(groups), signs, worst))
  }))
}

claim_trend <- function(cells, along, direction, text) {
  if (is.null(cells)) return(NULL)
  parts <- split(cells, vapply(cells, `[[`, "", "kernel"))
  slopes <- function(name) {
    bind(lapply(names(parts), function(kernel) {
      s <- gain_slope(parts[[kernel]], name, along)
      comparison(paste0("trend-", along), name, "KME", kernel = kernel,
                 slope = s[["slope"]], slope_se = s[["se"]])
    }))
  }
  simple <- slopes("S-KMSE loocv")
  flexible <- slopes("F-KMSE loocv")
  rows <- rbind(simple, flexible)
  rows$verdict <- claim(
    text, direction * clear_sign(rows$slope, rows$slope_se),
    paste0("per cent of the KME's loss gained as log(", along,
           ") grows by one:"),
    sprintf(
      "%s: %+.1f (s.e. %.1f) for S-KMSE loocv, %+.1f (%.1f) for F-KMSE loocv",
      simple$kernel, simple$slope, simple$slope_se, flexible$slope,
      flexible$slope_se
    )
  )
  rows
}

claim_marginalized <- function(cells) {
  kernels <- vapply(cells, `[[`, "", "kernel")
  noisy <- setdiff(unique(kernels), "LIN")
  rows <- lapply(names(marginal_estimators), function(name) {
    bind(lapply(noisy, function(kernel) {
      claim_lower_error(cells[kernels == kernel], name, kernel)
    }))
  })
  linear <- cells[kernels == "LIN"]
  bind(c(rows, if (length(linear) > 0) list(claim_linear(linear))))
}

claim_linear <- function(cells) {
  apart <- max(vapply(cells, function(cell) {
    max(abs(cell$loss[, names(marginal_estimators)] / cell$loss[, "KME"] - 1))
  }, 0))
  cat("\n")
  say("LIN, marginalizing changes nothing: the largest relative difference ",
      "of the losses of MKME, MMKME and KME is ", short(apart, 2), ".")
  comparison("linear", "MKME and MMKME", "KME", kernel = "LIN",
             largest_difference = apart)
}

papers <- c("KME", "S-KMSE loocv", "F-KMSE loocv")

claim_lower_error <- function(cells, name, kernel) {
  others <- papers
  signs <- lapply(others, compare, cells = cells, b = name)
  ratios <- 100 * vapply(others, function(other) {
    stats::median(vapply(cells, function(cell) {
      mean(cell$loss[, name]) / mean(cell$loss[, other])
    }, 0))
  }, 0)
  same <- unlist(lapply(cells, function(cell) {
    abs(cell$loss[, name] / cell$loss[, "KME"] - 1) < 1e-9
  }))
  found <- claim(
    paste0("X21, ", name, " has a lower error (\"much lower\") than KME, ",
           "S-KMSE and F-KMSE, ", kernel), unlist(signs),
    sprintf("against %s: %s; its loss is %.1f%% of the other's (median)",
            others, vapply(signs, count_signs, ""), ratios),
    if (any(same)) {
      sprintf("it chooses no noise, and is the KME, in %.0f%% of the fits",
              100 * mean(same))
    }
  )
  bind(lapply(seq_along(others), function(i) {
    comparison("marginalized", name, others[i], kernel = kernel,
               counts(signs[[i]]), loss_ratio = ratios[[i]],
               same_fit = if (others[i] == "KME") 100 * mean(same),
               verdict = found)
  }))
}

# Smoothing and the stack against the papers' estimators.
claim_beyond <- function(cells) {
  kernels <- vapply(cells, `[[`, "", "kernel")
  one <- function(name, kernel) {
    mine <- cells[if (kernel == "RBF") kernels == "RBF" else kernels != "RBF"]
    if (length(mine) == 0) return(NULL)
    others <- c(papers, if (kernel == "RBF") "MKME")
    signs <- lapply(others, compare, cells = mine, b = name)
    worst <- lapply(others, worst_cell, cells = mine, b = name)
    found <- claim(
      paste0("No worse than any of the papers' estimators: ", name, ", ",
             kernel), ifelse(unlist(signs) < 0, -1, 1),
      sprintf("against %s: %s; %s", others, vapply(signs, count_signs, ""),
              vapply(worst, word_worst, ""))
    )
    bind(Map(function(other, signs, worst) {
      comparison("beyond", name, other, kernel = kernel, counts(signs), worst,
                 verdict = found)
    }, others, signs, worst))
  }
  bind(list(one("smoothing", "RBF"), one("stack", "RBF"),
            one("stack", "others")))
}

# The score printed in M14 against the exact one, both for F-KMSE.
claim_printed <- function(cells) {
  more <- 100 * mean(unlist(lapply(cells, function(cell) {
    cell$lambda[, "F-KMSE printed"] > cell$lambda[, "F-KMSE loocv"]
  })))
  signs <- compare(cells, "F-KMSE printed", "F-KMSE loocv")
  by_kernel <- split(signs, vapply(cells, `[[`, "", "kernel"))
  against <- compare(cells, "KME", "F-KMSE printed")
  found <- claim(
    paste("Erratum 1, the score of M14's Theorem 4 shrinks too much: its",
          "loss exceeds that of the exact leave-one-out score"), signs,
    paste("exact against printed:", count_signs(signs)),
    vapply(names(by_kernel), function(kernel) {
      paste0(kernel, ": ", count_signs(by_kernel[[kernel]]))
    }, ""),
    sprintf("it takes the larger lambda in %.1f%% of the fits", more),
    paste("printed against the KME:", count_signs(against))
  )
  groups <- c(list(all = signs), by_kernel)
  bind(lapply(names(groups), function(kernel) {
    comparison("printed", "F-KMSE loocv", "F-KMSE printed", kernel = kernel,
               counts(groups[[kernel]]), verdict = found,
               smaller_lambda = if (kernel == "all") more)
  }))
}

# Weights that sum to 1 against those that do not, and against the KME.
claim_sum <- function(cells) {
  bind(lapply(unit_sums, function(name) {
    signs <- compare(cells, name, "F-KMSE loocv")
    plain <- compare(cells, "KME", name)
    found <- claim(
      paste0("M14, section 3, weights that sum to 1 lose the gain, ", name),
      signs, paste("F-KMSE against it:", count_signs(signs)),
      paste("it against the KME:", count_signs(plain))
    )
    bind(list(
      comparison("sum", "F-KMSE loocv", name, counts(signs), verdict = found),
      comparison("sum", name, "KME", counts(plain), verdict = found)
    ))
  }))
}

# Figure a: over which amounts does shrinkage help?
claim_range <- function(given) {
  shrunk <- given[given$estimator != "KME", ]
  groups <- split(shrunk, paste(shrunk$kernel, shrunk$estimator))
  best <- vapply(groups, function(g) {
    at <- which.max(g$gain)
    clear_sign(g$gain[at], g$gain_se[at])
  }, 0)
  found <- claim("M14, figure a, the best of the amounts beats the KME", best,
                 count_signs(best))
  at <- function(estimator) {
    mine <- shrunk[shrunk$kernel == "RBF" & shrunk$estimator == estimator, ]
    mine[which.min(mine$loss), ]
  }
  if ("RBF" %in% shrunk$kernel) {
    say("With the RBF kernel the best fixed amount gives ",
        sprintf("%.1f%% (S-KMSE) and %.1f%% (F-KMSE)", at("S-KMSE")$gain,
                at("F-KMSE")$gain), " of the KME's loss as gain.", indent = 2)
  }
  comparison("best-amount", "S-KMSE and F-KMSE", "KME", counts(best),
             verdict = found)
}

main <- function(args) {
  chosen <- read_options(args, list(
    figure = "all", kernel = "all", reps = "30", out = ".", cores = "1",
    quick = FALSE
  ), usage)
  reps <- whole_number(chosen$reps, "--reps", 3)
  cores <- whole_number(chosen$cores, "--cores", 1)
  figure <- one_of(chosen$figure, "--figure",
                   c("a", "b", "c", "laplace", "all"))
  kernel <- one_of(chosen$kernel, "--kernel", c(names(kernels), "all"))
  out <- output_folder(chosen$out)
  use_one_thread()
  if (chosen$quick) kernel <- "RBF"
  if (kernel != "all") kernels <- kernels[kernel]
  figures <- figure
  if (figure == "all") figures <- c("a", "b", "c", "laplace")
  sizes <- if (chosen$quick) c(10, 100) else c(10, 15, 20, 30, 50, 70, 100)
  dims <- if (chosen$quick) 2 else c(1, 2, 5, 10, 15, 20, 25, 30)
  amounts <- 10^seq(-4, 2, by = 0.25)

  cat("Mean loss |mu~ - mu_P|^2 over ", reps, " distributions\n\n", sep = "")
  given <- NULL
  if ("a" %in% figures) {
    cat("Figure a: loss against the amount of shrinkage (n = 20, d = 20)\n\n")
    found <- run_given(kernels, amounts, 20, 20, reps, cores)
    given <- summarize_given(found, amounts)
    print_given(given)
    write_table(given, out, "risk-a.csv", c("kernel", "amount", "estimator"))
    write_figure(out, "risk-a.png", 1300, 1100, function() draw_given(given))
  }
  plans <- list(b = data.frame(n = sizes, d = 20), c = data.frame(n = 20,
                                                                  d = dims))
  labels <- list(b = c("n", "points in the sample, n"),
                 c = c("d", "columns, d"))
  cells <- list()
  for (name in intersect(names(plans), figures)) {
    along <- labels[[name]]
    cat("\nFigure ", name, ": loss against ", along[1], "\n\n", sep = "")
    cells[[name]] <- run_cells(plans[[name]], kernels, reps, cores)
    results <- do.call(rbind, lapply(cells[[name]], summarize))
    print_cells(results, along[1])
    write_table(results, out, paste0("risk-", name, ".csv"),
                c("kernel", "n", "d", "estimator"))
    write_figure(out, paste0("risk-", name, ".png"),
                 if (length(kernels) == 1) 800 else 2200, 1150, function() {
                   draw_cells(results, along[1], along[2])
                 })
  }
  if ("laplace" %in% figures) {
    cat("\nLaplacian kernel, d = 20\n\n")
    rows <- run_laplace(if (chosen$quick) 100 else c(10, 20, 50, 100), reps,
                        cores)
    show_laplace(rows)
    numbers <- c("loss", "gain", "se", "exact_gain")
    rows[numbers] <- signif(rows[numbers], 6)
    write_table(rows, out, "risk-laplace.csv", c("kernel", "n", "estimator"))
  }
  # Of few cells nothing is concluded.
  if (chosen$quick || length(cells) == 0) return(invisible())
  cat("\n")
  claims <- conclude(cells, given)
  write_table(claims, out, "risk-claims.csv",
              c("claim", "estimator", "against", "kernel"))
}

main(commandArgs(trailingOnly = TRUE))

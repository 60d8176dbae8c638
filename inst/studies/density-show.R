# What density.R shows of its results: tables, claims, figures; and what the
# papers print.

# Okabe-Ito colors, as in the other studies.
style <- data.frame(
  row.names = c("k-means", names(estimators)[-1]),
  col = c("grey45", "#0072B2", "#D55E00", "#CC79A7", "#009E73", "#000000"),
  pch = c(5, 16, 15, 0, 18, 4), lty = 1
)

# As printed ------------------------------------------------------------------

# Average negative log-likelihoods as the papers print them: data, kernel,
# estimator, nll under the names of this script.
read_printed <- function(table) {
  file <- c("1" = "muandet2014_table1.csv", "3" = "xia2021_table3.csv")[[table]]
  found <- utils::read.csv(file.path(here, "printed", file), comment.char = "#")
  rename <- function(values, own) {
    ifelse(values %in% names(own), own[values], values)
  }
  labels <- c(kme = "KME", skmse = "S-KMSE", mkme = "MKME", mmkme = "MMKME",
              fkmse = if (table == "1") printed_rule else "F-KMSE")
  data.frame(
    data = rename(found$dataset, c(svmguid2 = "svmguide2", wbdc = "wdbc",
                                   primary = "primary-tumor",
                                   hayes = "hayes-roth")),
    kernel = if (is.null(found$kernel)) table_parts[["3"]] else {
      rename(found$kernel, c(linear = "LIN", poly2 = "POLY2", poly3 = "POLY3",
                             rbf = "RBF"))
    },
    estimator = rename(found$estimator, labels), nll = found$nll
  )
}

# For data sets and a kernel: data sets x estimators, NA where nothing is
# printed.
printed_scores <- function(table, kernel, names) {
  rows <- read_printed(table)
  rows <- rows[rows$kernel == kernel, ]
  columns <- unique(rows$estimator)
  own <- ifelse(names %in% names(whole_sets), whole_sets[names], names)
  cells <- tapply(rows$nll, list(factor(rows$data, unique(own)),
                                 factor(rows$estimator, columns)), `[`, 1)
  cells <- cells[match(own, rownames(cells)), , drop = FALSE]
  rownames(cells) <- names
  cells
}

# Tables ----------------------------------------------------------------------

# The ways of the results under the words for them: weights, all, then the
# numbers of steps.
list_ways <- function(results) {
  there <- unique(results$optimize)
  fixed <- intersect(names(ways), there)
  steps <- setdiff(there, fixed)
  steps <- steps[order(as.numeric(sub(" .*", "", steps)))]
  steps <- stats::setNames(sprintf("%s from the clusters", steps), steps)
  c(ways[setdiff(fixed, searches)], steps, ways[intersect(searches, fixed)])
}

# The number of steps that pictures and the column of mass show.
shown_steps <- function(optimizes) {
  steps <- setdiff(optimizes, names(ways))
  if ("100 steps" %in% steps) "100 steps" else utils::tail(steps, 1)
}

# Mean scores of the data sets; with the estimators, in how many splits they win
# and lose against the KME; then the paper's figures, data sets x estimators.
print_scores <- function(rows, title, printed) {
  names <- unique(rows$data)
  columns <- unique(rows$estimator)
  cells <- matrix("", length(names), length(columns),
                  dimnames = list(mark_sets(names), columns))
  score <- ifelse(abs(rows$nll) < 1000, sprintf("%.4f", rows$nll),
                  sprintf("%.2f", rows$nll))
  others <- sprintf("%s %2d-%d%s", score, rows$wins, rows$losses,
                    mark_signs(rows$sign))
  plain <- rows$estimator == "KME"
  cells[cbind(match(rows$data, names), match(rows$estimator, columns))] <-
    ifelse(plain, score, others)
  shown <- ifelse(is.na(printed), "-", sprintf("%.4f", printed))
  colnames(shown) <- paste("printed", colnames(printed))
  print_wide(title, cbind(cells, shown))
}

mark_sets <- function(names) {
  paste0(names, ifelse(names %in% coded_sets, "+", ""),
         ifelse(names %in% names(whole_sets), "#", ""))
}

# Columns as wide as they need.
print_wide <- function(title, cells) {
  text <- rbind(colnames(cells), unname(cells))
  text <- apply(text, 2, function(column) {
    paste0("  ", formatC(column, width = max(nchar(column))))
  })
  names <- formatC(c("", rownames(cells)), flag = "-",
                   width = max(nchar(rownames(cells))))
  cat("  ", title, "\n", sep = "")
  cat(sub(" +$", "", paste0(names, apply(text, 1, paste, collapse = ""))),
      sep = "\n")
  cat("\n")
}

# On how many data sets is an estimator better than the KME, than the start? One
# row for each kernel and estimator.
count_better <- function(rows) {
  group <- rows[rows$estimator != "k-means", ]
  name <- paste(group$kernel, group$estimator)
  cells <- t(vapply(split(group, factor(name, unique(name))), function(mine) {
    counts <- function(lower, signs) {
      c(sprintf("%d of %d", sum(lower > 0), length(lower)), sum(signs > 0),
        sum(signs < 0))
    }
    plain <- if (mine$estimator[1] == "KME") rep("-", 3) else {
      counts(mine$lower, mine$sign)
    }
    c(plain, counts(mine$start_lower, mine$start_sign))
  }, character(6)))
  colnames(cells) <- c("below KME", "clearly", "clearly above",
                       "below k-means", "clearly", "clearly above")
  cells
}

table_kernels <- function(table, results) {
  intersect(table_parts[[table]], results$kernel)
}

table_names <- function(table, results) {
  known <- table_sets[[table]]
  if (table == "1") {
    for (name in names(whole_sets)) {
      known <- append(known, name, match(whole_sets[[name]], known))
    }
  }
  intersect(known, results$data)
}

print_table <- function(table, results, optimizes) {
  names <- table_names(table, results)
  keep <- c("k-means", names(estimators))
  results <- results[results$estimator %in% keep, ]
  every <- NULL
  for (optimize in names(optimizes)) {
    cat("Table ", table, ", ", optimizes[[optimize]], "\n\n", sep = "")
    mine <- NULL
    for (kernel in table_kernels(table, results)) {
      rows <- summarize(results, kernel, optimize, names)
      if (is.null(rows)) next
      mine <- rbind(mine, rows)
      print_scores(rows, paste0(
        kernel, ": mean of the negative log-likelihood; wins-losses against ",
        "the KME"
      ), printed_scores(table, kernel, unique(rows$data)))
    }
    counted <- mine[!mine$data %in% names(whole_sets), ]
    if (NROW(counted) > 0) {
      print_wide(paste("data sets on which the mean is lower; clearly: by the",
                       "sign test"), count_better(counted))
    }
    every <- rbind(every, mine)
  }
  every
}

explain <- function(table, names) {
  say("* better, ! worse than the KME by the two-sided paired sign test at ",
      "5%, ties dropped. Printed: the figures of ",
      if (table == "1") "M14's Table 1" else "X21's Table 3",
      " (-: not at hand).",
      if (any(coded_sets %in% names)) paste(
        " + no column is real-valued, the codes of all columns are used as",
        "numbers (primary-tumor: without columns of which more than a tenth",
        "is missing, then without incomplete rows)."
      ),
      if (any(names %in% names(whole_sets))) paste(
        " # all columns, the codes as numbers; not counted beside the same",
        "points with their real-valued columns."
      ))
  cat("\n")
}

# Levels: the KME and the start beside what is printed for the KME.
level_cells <- function(table, rows, kernel) {
  rows <- rows[rows$kernel == kernel, ]
  names <- unique(rows$data)
  optimizes <- unique(rows$optimize)
  pick <- function(estimator, optimize) {
    mine <- rows[rows$estimator == estimator & rows$optimize == optimize, ]
    mine$nll[match(names, mine$data)]
  }
  cells <- vapply(optimizes, pick, numeric(length(names)), estimator = "KME")
  start <- pick("k-means", "weights")
  cells <- cbind(printed_scores(table, kernel, names)[, "KME"], start,
                 matrix(cells, length(names)))
  dimnames(cells) <- list(names, c("printed", "k-means", optimizes))
  cells
}

print_levels <- function(table, rows) {
  cells <- level_cells(table, rows, utils::tail(table_parts[[table]], 1))
  rownames(cells) <- mark_sets(rownames(cells))
  shown <- ifelse(is.na(cells), "-", sprintf("%.2f", cells))
  print_wide("RBF, level of the KME: as printed, the start, and ours", shown)
}

# What a paper claims: that one column of the scores is below another.
table_claims <- list(
  "1" = rbind(c("S-KMSE", "KME"), c(printed_rule, "KME"),
              c(printed_rule, "S-KMSE"), c("F-KMSE", "KME"),
              c("F-KMSE", "S-KMSE"), c(printed_rule, "F-KMSE")),
  "3" = rbind(c("S-KMSE", "KME"), c("F-KMSE", "KME"), c("MKME", "KME"),
              c("MMKME", "KME"), c("MKME", "S-KMSE"), c("MKME", "F-KMSE"),
              c("MMKME", "MKME"))
)

# One row for each claim, kernel and way: on how many data sets it is clearly
# so, clearly the opposite, of how many, and the word for that.
examine_claims <- function(table, results, optimizes) {
  names <- intersect(table_sets[[table]], results$data)
  claims <- table_claims[[table]]
  examine <- function(kernel, optimize) {
    mine <- results[results$kernel == kernel & results$optimize == optimize, ]
    signs <- lapply(names, function(name) {
      scores <- score_matrix(mine, name, kernel, optimize)
      apply(claims, 1, function(pair) {
        if (all(pair %in% colnames(scores))) {
          against(scores[, pair], pair[2])["sign", pair[1]]
        } else {
          NA
        }
      })
    })
    signs <- matrix(unlist(signs), nrow(claims))
    do.call(rbind, lapply(seq_len(nrow(claims)), function(i) {
      found <- signs[i, !is.na(signs[i, ])]
      data.frame(kernel = kernel, lower = claims[i, 1], than = claims[i, 2],
                 optimize = optimize, better = sum(found > 0),
                 worse = sum(found < 0), of = length(found),
                 word = claim_word(found))
    }))
  }
  found <- lapply(table_kernels(table, results), function(kernel) {
    do.call(rbind, lapply(optimizes, examine, kernel = kernel))
  })
  found <- do.call(rbind, found)
  found[found$of > 0, ]
}

# A claim that all signs are positive has held where that is seen on three of
# four data sets and the opposite on no more than one of ten.
claim_word <- function(signs) {
  better <- mean(signs > 0)
  worse <- mean(signs < 0)
  if (length(signs) == 0) {
    ""
  } else if (better >= 0.75 && worse <= 0.1) {
    "held"
  } else if (better >= 0.5 && better >= 3 * worse) {
    "mostly"
  } else if (worse >= 0.5 && worse >= 3 * better) {
    "reversed"
  } else {
    "not held"
  }
}

# For each claim on how many data sets the printed figure is the lower one.
printed_claims <- function(table, claims) {
  keys <- unique(claims[c("kernel", "lower", "than")])
  rows <- read_printed(table)
  keys$printed <- vapply(seq_len(nrow(keys)), function(i) {
    mine <- rows[rows$kernel == keys$kernel[i], ]
    pick <- function(name) mine$nll[mine$estimator == name]
    lower <- pick(keys$lower[i]) < pick(keys$than[i])
    if (length(lower) == 0) return("-")
    sprintf("%d of %d", sum(lower), length(lower))
  }, "")
  keys
}

conclude <- function(table, results, optimizes) {
  cat("Table ", table, ", what the paper claims, and what this shows\n\n",
      sep = "")
  claims <- examine_claims(table, results, optimizes)
  keys <- printed_claims(table, claims)
  label <- function(rows) {
    sprintf("%s: %s < %s", rows$kernel, rows$lower, rows$than)
  }
  cells <- matrix("", nrow(keys), length(optimizes),
                  dimnames = list(label(keys), optimizes))
  cells[cbind(match(label(claims), rownames(cells)),
              match(claims$optimize, optimizes))] <-
    sprintf("%d-%d %s", claims$better, claims$worse, claims$word)
  print_wide(paste0(
    "data sets on which it is clearly so - clearly the opposite, of ",
    max(claims$of)
  ), cbind(printed = keys$printed, cells))
  say("Held: on three of four data sets or more, the opposite on one of ten at",
      " most; mostly: on half of them, three times as often as the opposite; ",
      "reversed: that for the opposite. Printed: on how many data sets the ",
      "paper's own figure is the lower one.")
  for (i in seq_len(nrow(keys))) {
    held <- claims$optimize[label(claims) == label(keys)[i] &
                              claims$word == "held"]
    say(label(keys)[i], ": ",
        if (length(held) > 0) paste("held under", toString(held)) else
          "not held under any of these", ".")
  }
  cat("\n")
}

# With a number of steps and the RBF kernel: on which data sets does S-KMSE lose
# one split at most, and F-KMSE none?
print_bar <- function(rows) {
  rows <- rows[rows$kernel == "RBF" & !rows$optimize %in% names(ways) &
                 !rows$data %in% names(whole_sets), ]
  for (optimize in unique(rows$optimize)) {
    mine <- rows[rows$optimize == optimize, ]
    s <- mine[mine$estimator == "S-KMSE", ]
    f <- mine[mine$estimator == "F-KMSE", ]
    there <- s$losses <= 1 & f$losses == 0 & s$wins > 1
    say("RBF, ", optimize, ": S-KMSE loses one split at most and F-KMSE none ",
        "on ", sum(there), " of ", length(there), " data sets",
        if (!all(there)) paste0("; not on ", toString(s$data[!there])), ".")
  }
  cat("\n")
}

# Is it the shape of F-KMSE or its mass? One row for each data set.
mass_rows <- function(results, optimize, names) {
  mine <- results[results$optimize == optimize & results$kernel == "RBF", ]
  found <- lapply(names, function(name) {
    scores <- score_matrix(mine, name, "RBF", optimize)
    if (!all(mass_estimators %in% colnames(scores))) return(NULL)
    mass <- function(estimator) {
      mean(mine$mass[mine$data == name & mine$estimator == estimator])
    }
    data.frame(
      data = name, mass_s = mass("S-KMSE"), mass_f = mass("F-KMSE"),
      t(colMeans(scores[, c("k-means", shrinkage, mass_estimators)])),
      check.names = FALSE
    )
  })
  do.call(rbind, found)
}

print_mass <- function(rows, optimize) {
  cells <- cbind(sprintf("%.4f", rows$mass_s), sprintf("%.4f", rows$mass_f),
                 matrix(sprintf("%.3f", as.matrix(rows[-(1:3)])), nrow(rows)))
  dimnames(cells) <- list(mark_sets(rows$data), c(
    "mass of S", "mass of F", names(rows)[-(1:3)]
  ))
  print_wide(paste0("RBF, ", optimize, ": is it the shape or the mass?"), cells)
  counted <- rows[!rows$data %in% names(whole_sets), ]
  say("Of ", nrow(counted), " data sets the KME with the mass of F-KMSE is ",
      "below the KME on ",
      sum(counted[[mass_estimators[2]]] < counted$KME),
      ", F-KMSE brought to mass 1 on ",
      sum(counted[[mass_estimators[1]]] < counted$KME),
      "; S-KMSE brought to mass 1 is the KME.")
  cat("\n")
}

# Differences to the KME's score, RBF kernel: a panel for each way to optimize
# (of the numbers of steps one), the data sets below each other. The axis is
# linear near 0 and logarithmic far from it, as the data sets differ by orders
# of magnitude.
draw_results <- function(rows, optimizes = drawn_ways(rows)) {
  rows <- rows[rows$optimize %in% names(optimizes), ]
  graphics::layout(rbind(seq_along(optimizes), length(optimizes) + 1),
                   heights = c(1, 0.07),
                   widths = c(1.25, rep(1, length(optimizes) - 1)))
  for (optimize in names(optimizes)) {
    draw_panel(rows[rows$optimize == optimize, ], unique(rows$data),
               optimizes[[optimize]], optimize == names(optimizes)[1])
  }
  draw_legend(style[rownames(style) %in% rows$estimator, ], 5, 1)
}

drawn_ways <- function(rows) {
  found <- list_ways(rows)
  found[intersect(c(shown_steps(names(found)), "all", "weights", searches),
                  names(found))]
}

bend <- function(difference) asinh(1000 * difference)

draw_panel <- function(rows, names, title, labels) {
  rows <- rows[rows$estimator %in% rownames(style), ]
  y <- rev(seq_along(names))
  low <- bend(rows$difference - rows$se)
  high <- bend(rows$difference + rows$se)
  graphics::par(mar = c(4.4, if (labels) 6.8 else 1, 2.4, 1.2))
  graphics::plot(NA, xlim = range(0, low, high),
                 ylim = c(0.5, length(names) + 0.5), yaxs = "i", axes = FALSE,
                 xlab = "", ylab = "")
  graphics::abline(h = y + 0.5, col = "grey92")
  graphics::abline(v = 0, col = "grey45", lty = 2, lwd = 1.8)
  at <- c(0, outer(c(-1, 1), 10^(-3:3)))
  at <- at[bend(at) >= min(low) - 0.1 & bend(at) <= max(high) + 0.1]
  graphics::axis(1, bend(at), format(at, scientific = FALSE, drop0trailing =
                                       TRUE, trim = TRUE), lwd = 0,
                 line = -0.6, cex.axis = 0.9)
  if (labels) {
    graphics::axis(2, y, mark_sets(names), las = 1, lwd = 0, line = -0.5)
  }
  graphics::title(main = title, adj = 0, line = 0.6)
  graphics::title(xlab = paste0("score less the KME's, nats a point\n(bars: 1 ",
                                "s.e.; left is better)"), line = 3)
  shown <- intersect(rownames(style), rows$estimator)
  shifts <- seq(0.3, -0.3, length.out = length(shown))
  for (i in seq_along(shown)) {
    look <- style[shown[i], ]
    mine <- rows$estimator == shown[i]
    place <- y[match(rows$data[mine], names)] + shifts[i]
    graphics::segments(low[mine], place, high[mine], place, col = look$col,
                       lwd = 1.4)
    graphics::points(bend(rows$difference[mine]), place, col = look$col,
                     pch = look$pch, lwd = 1.4, cex = 0.8)
  }
}

show_results <- function(results, settings, tables, out) {
  say("Negative log-likelihood, a test point, of mixtures fitted by matching ",
      "kernel means: ", settings, ".")
  cat("\n")
  size <- unique(results[c("data", "points", "columns", "train", "test")])
  cells <- as.matrix(size[-1])
  rownames(cells) <- mark_sets(size$data)
  print_block("data sets", format(cells), 10)
  there <- vapply(tables, function(table) {
    any(table_sets[[table]] %in% results$data)
  }, NA)
  for (table in tables[there]) {
    optimizes <- list_ways(results[results$kernel %in% table_parts[[table]], ])
    rows <- print_table(table, results, optimizes)
    explain(table, rows$data)
    print_levels(table, rows)
    by_steps <- shown_steps(names(optimizes))
    if (table == "1" && length(by_steps) > 0) {
      print_bar(rows)
      print_mass(mass_rows(results, by_steps, unique(rows$data)), by_steps)
    }
    conclude(table, results, names(optimizes))
    keep_lines(csv_lines(rows),
               file.path(out, paste0("density-", table, ".csv")))
    rbf <- rows[rows$kernel == utils::tail(table_parts[[table]], 1), ]
    write_figure(out, paste0("density-", table, ".png"),
                 300 + 675 * length(drawn_ways(rbf)), 1350,
                 function() draw_results(rbf))
    cat("\n")
  }
}

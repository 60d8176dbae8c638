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

# Mean scores of one kernel and way, data sets x estimators, with the splits
# that each wins and loses against the KME; then the paper's figures.
score_cells <- function(table, rows, digits) {
  names <- unique(rows$data)
  columns <- unique(rows$estimator)
  cells <- matrix("", length(names), length(columns),
                  dimnames = list(mark_sets(names), columns))
  score <- ifelse(abs(rows$nll) < 1000, sprintf("%.*f", digits, rows$nll),
                  sprintf("%.2f", rows$nll))
  compared <- sprintf("%s (%d-%d)%s", score, rows$wins, rows$losses,
                      mark_signs(rows$sign))
  cells[cbind(match(rows$data, names), match(rows$estimator, columns))] <-
    ifelse(rows$estimator == "KME", score, compared)
  printed <- printed_scores(table, rows$kernel[1], names)
  shown <- ifelse(is.na(printed), "-", sprintf("%.*f", digits, printed))
  colnames(shown) <- paste("printed", sub(" printed", "", colnames(printed)))
  cbind(cells, shown)
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

# The rows of a table's kernels and of these ways.
summarize_all <- function(table, results, optimizes) {
  results <- results[!results$estimator %in% mass_estimators, ]
  names <- table_names(table, results)
  do.call(rbind, lapply(optimizes, function(optimize) {
    do.call(rbind, lapply(table_kernels(table, results), function(kernel) {
      summarize(results, kernel, optimize, names)
    }))
  }))
}

# Without the data sets that are shown beside others.
counted_sets <- function(rows) rows[!rows$data %in% names(whole_sets), ]

print_table <- function(table, rows, optimizes) {
  for (optimize in names(optimizes)) {
    cat("Table ", table, ", ", optimizes[[optimize]], "\n\n", sep = "")
    mine <- rows[rows$optimize == optimize, ]
    for (kernel in unique(mine$kernel)) {
      print_wide(paste0(kernel, ": mean of the negative log-likelihood; ",
                        "wins-losses against the KME"),
                 score_cells(table, mine[mine$kernel == kernel, ], 4))
    }
    counted <- counted_sets(mine)
    if (nrow(counted) > 0) {
      print_wide(paste("data sets on which the mean is lower; clearly: by the",
                       "sign test"), count_better(counted))
    }
  }
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

# How near the printed figures are: the median of |log(ours / printed)|, and in
# how many comparisons with the KME both agree on which is the smaller. One row
# for each way.
compare_printed <- function(table, rows) {
  rows <- counted_sets(rows)
  rows <- rows[rows$kernel == utils::tail(table_parts[[table]], 1), ]
  do.call(rbind, lapply(unique(rows$optimize), function(optimize) {
    mine <- rows[rows$optimize == optimize, ]
    theirs <- printed_scores(table, mine$kernel[1], unique(mine$data))
    theirs <- theirs[, colnames(theirs) %in% mine$estimator, drop = FALSE]
    ours <- tapply(mine$nll, mine[c("data", "estimator")], `[`, 1)
    ours <- ours[rownames(theirs), colnames(theirs), drop = FALSE]
    others <- colnames(theirs) != "KME"
    same <- (ours < ours[, "KME"]) == (theirs < theirs[, "KME"])
    data.frame(optimize, away = stats::median(abs(log(ours / theirs))),
               same = sum(same[, others]), of = length(same[, others]))
  }))
}

print_printed <- function(table, rows) {
  near <- compare_printed(table, rows)
  cells <- cbind("away in %" = sprintf("%.1f", 100 * near$away),
                 "comparisons alike" = sprintf("%d of %d", near$same, near$of))
  rownames(cells) <- near$optimize
  print_wide(paste("RBF, how near the printed figures: the median distance;",
                   "how often both agree on which is below the KME"), cells)
}

# What a paper claims: that one column of the scores is below another.
table_claims <- list(
  "1" = rbind(c("S-KMSE", "KME"), c(printed_rule, "KME"),
              c(printed_rule, "S-KMSE"), c("F-KMSE", "KME"),
              c("F-KMSE", "S-KMSE"), c(printed_rule, "F-KMSE")),
  "3" = rbind(c("S-KMSE", "KME"), c("F-KMSE", "KME"), c("MKME", "KME"),
              c("MMKME", "KME"), c("MKME", "S-KMSE"), c("MKME", "F-KMSE"),
              c("MMKME", "S-KMSE"), c("MMKME", "F-KMSE"), c("MMKME", "MKME"))
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

# One row for each claim; for each way the word, and in brackets on how many
# data sets it is clearly so, and clearly the opposite.
claim_cells <- function(table, results, optimizes) {
  claims <- examine_claims(table, results, optimizes)
  keys <- printed_claims(table, claims)
  label <- function(rows) {
    sprintf("%s: %s < %s", rows$kernel, rows$lower, rows$than)
  }
  cells <- matrix("", nrow(keys), length(optimizes),
                  dimnames = list(label(keys), optimizes))
  cells[cbind(match(label(claims), rownames(cells)),
              match(claims$optimize, optimizes))] <-
    sprintf("%s (%d, %d)", claims$word, claims$better, claims$worse)
  held <- vapply(rownames(cells), function(name) {
    under <- claims$optimize[label(claims) == name & claims$word == "held"]
    if (length(under) > 0) toString(sub(" steps$", "", under)) else "none"
  }, "")
  cbind(printed = keys$printed, cells, "held under" = held)
}

conclude <- function(table, results, optimizes) {
  cat("Table ", table, ", what the paper claims, and what this shows\n\n",
      sep = "")
  count <- length(intersect(table_sets[[table]], results$data))
  print_wide(paste("data sets on which it is clearly so, clearly the opposite,",
                   "of", count), claim_cells(table, results, optimizes))
  say("Held: on three of four data sets or more, the opposite on one of ten at",
      " most; mostly: on half of them, three times as often as the opposite; ",
      "reversed: that for the opposite. Printed: on how many data sets the ",
      "paper's own figure is the lower one; last column: under which numbers ",
      "of steps, or which way, it held.")
  cat("\n")
}

# With a number of steps and the RBF kernel: on which data sets does S-KMSE lose
# one split at most, and F-KMSE none?
print_bar <- function(rows) {
  rows <- counted_sets(rows)
  rows <- rows[rows$kernel == "RBF" & !rows$optimize %in% names(ways), ]
  for (optimize in unique(rows$optimize)) {
    mine <- rows[rows$optimize == optimize, ]
    s <- mine[mine$estimator == "S-KMSE", ]
    for (name in intersect(c("F-KMSE", printed_rule), mine$estimator)) {
      there <- s$losses <= 1 & s$wins > 1 &
        mine$losses[mine$estimator == name] == 0
      say("RBF, ", optimize, ": S-KMSE loses one split at most and ", name,
          " none on ", sum(there), " of ", length(there), " data sets",
          if (!all(there)) paste0("; not on ", toString(s$data[!there])), ".")
    }
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
  counted <- counted_sets(rows)
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

# On how many data sets is a density clearly better than with the KME (blue),
# clearly worse (orange)? A panel for each way; `titles`: their names are ways.
draw_counts <- function(rows, titles) {
  shown <- intersect(rev(c("k-means", names(estimators)[-1])), rows$estimator)
  graphics::layout(t(seq_along(titles)),
                   widths = c(1.5, rep(1, length(titles) - 1)))
  for (way in names(titles)) {
    first <- way == names(titles)[1]
    graphics::par(mar = c(3.4, if (first) 7.6 else 0.8, 2, 0.8), cex = 0.8,
                  mgp = c(2.2, 0.6, 0))
    counts <- vapply(shown, function(name) {
      signs <- rows$sign[rows$estimator == name & rows$optimize == way]
      c(sum(signs > 0), sum(signs == 0), sum(signs < 0))
    }, numeric(3))
    graphics::barplot(counts, horiz = TRUE, las = 1, border = "white",
                      axes = FALSE, col = c("#0072B2", "grey85", "#D55E00"),
                      xlab = "data sets", main = titles[[way]],
                      names.arg = if (!first) rep("", length(shown)))
    graphics::axis(1, pretty(c(0, max(colSums(counts)))))
  }
}

# Scores against the number of steps, RBF kernel; 0 steps is k-means; dotted:
# what is printed for the KME, where that is within the frame.
draw_steps <- function(rows) {
  rows <- rows[rows$kernel == "RBF" & !rows$optimize %in% names(ways), ]
  names <- intersect(c("wine", "wdbc", "vehicle", "glass", "sonar",
                       "ionosphere"), rows$data)
  panels <- matrix(seq_len(2 * ceiling(length(names) / 2)), 2, byrow = TRUE)
  panels[panels > length(names)] <- 0
  graphics::layout(rbind(panels, length(names) + 1), heights = c(1, 1, 0.14))
  printed <- printed_scores("1", "RBF", names)
  looks <- style[rownames(style) %in% intersect(both_rules, rows$estimator), ]
  looks <- rbind(KME = list("black", 4, 1), looks)
  for (name in names) {
    mine <- rows[rows$data == name, ]
    count <- c(0, as.numeric(sub(" .*", "", unique(mine$optimize))))
    curves <- vapply(rownames(looks), function(estimator) {
      c(mine$nll[mine$estimator == "k-means"][1],
        mine$nll[mine$estimator == estimator])
    }, count)
    ends <- range(curves)
    near <- printed[name, "KME"]
    near <- near[abs(near - mean(ends)) < 0.65 * diff(ends)]
    graphics::par(mar = c(3.2, 4.4, 1.8, 0.6), mgp = c(2.2, 0.6, 0))
    graphics::plot(NA, xlim = range(count), ylim = range(ends, near), las = 1,
                   xlab = "steps", ylab = "", main = name, bty = "l")
    graphics::title(ylab = "negative log density", line = 3.3)
    graphics::abline(h = near, lty = 3, col = "grey40")
    for (estimator in rownames(looks)) {
      draw_curve(count, curves[, estimator], looks[estimator, ])
    }
  }
  draw_legend(looks, nrow(looks), 1)
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
    rows <- summarize_all(table, results, names(optimizes))
    print_table(table, rows, optimizes)
    explain(table, rows$data)
    print_levels(table, rows)
    print_printed(table, rows)
    by_steps <- shown_steps(names(optimizes))
    if (table == "1" && length(by_steps) > 0) {
      print_bar(rows)
      mass <- mass_rows(results, by_steps, unique(rows$data))
      if (!is.null(mass)) print_mass(mass, by_steps)
    }
    # In five splits or fewer nothing is clear.
    if (length(unique(results$split)) > 5) {
      conclude(table, results, names(optimizes))
    }
    keep_lines(csv_lines(rows),
               file.path(out, paste0("density-", table, ".csv")))
    rbf <- rows[rows$kernel == utils::tail(table_parts[[table]], 1), ]
    write_figure(out, paste0("density-", table, ".png"),
                 300 + 675 * length(drawn_ways(rbf)), 1350,
                 function() draw_results(rbf))
    cat("\n")
  }
}

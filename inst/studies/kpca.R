# Reconstruction error of kernel PCA with shrunk means and covariance operators:
# figure 3 of Muandet et al. (2014, "M14" below; arXiv 1306.0842), section 4.2.
#
# On the points of a training part, kernel PCA fits an affine subspace: mu, the
# kernel mean that centers, and the span of the 20 leading components. What is
# measured on the other points z is
#   |phi(z) - mu - P(phi(z) - mu)|^2,
# P the projection onto the components: the squared distance of phi(z) to the
# subspace. It means the same for every mu and every P, so that the settings can
# be compared.

usage <- "Usage: Rscript kpca.R [options]

  --data FOLDER   the 15 data sets, as their archives offer them, in FOLDER or
                  FOLDER/raw. Without it: those that the package mlbench has
  --download      fetch what is missing into FOLDER, or into R's cache, see
                  uci.R, beside this file
  --splits N      random splits of each data set (at least 2; 10)
  --most N        most points for training (at least 50; 1000)
  --select loocv|gcv|printed
                  how F-KMSE and F-COSE select their amount of shrinkage
                  (loocv); printed: by the score in M14's Theorem 4, the rule
                  of the paper; the files are then called kpca-printed
  --out DIR       folder for the figure and the table (.)
  --cores N       processes, with the package future.apply (1); the results do
                  not depend on it
  --quick         the smallest form: sonar alone
  --help          this text"

study_name <- "kpca.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

components <- 20

# What is shrunk: nothing, the mean that centers, or the operator. `select`: the
# rule of the flexible estimators.
make_settings <- function(select) {
  setting <- function(center = est_kme(), covariance = est_kme()) {
    list(center = center, covariance = covariance)
  }
  shrunk <- by_label(list(est_skmse(select = "loocv"),
                          est_fkmse(select = select)))
  operators <- stats::setNames(shrunk, vapply(shrunk, `[[`, "", "operator"))
  c(list("KPCA" = setting()), lapply(shrunk, function(e) setting(center = e)),
    lapply(operators, function(e) setting(covariance = e)))
}

settings <- names(make_settings("loocv"))

# Okabe-Ito colors: simple shrinkage blue, flexible warm.
style <- data.frame(
  row.names = c(paste(settings[2:3], "center"), settings[4:5]),
  setting = settings[-1], col = c("#0072B2", "#D55E00", "#56B4E9", "#E69F00"),
  pch = c(16, 15, 1, 17), lty = 1
)

# The data sets of M14's Table 1.
data_sets <- c("ionosphere", "sonar", "australian", "specft", "wdbc", "wine",
               "satimage", "segment", "vehicle", "svmguide2", "vowel",
               "housing", "bodyfat", "abalone", "glass")

# The study -------------------------------------------------------------------

# S-COSE from its definition in M14, by R's own eigen(): the weights b are those
# of the S-KMSE of K^c * K^c, entry by entry, and the eigenpairs of
# diag(b)^(1/2) K^c diag(b)^(1/2) give the components. The test points' errors.
defined_scose <- function(k, l) {
  at <- rowMeans(k)
  norm2 <- mean(k)
  centered <- k - outer(at, at, `+`) + norm2
  root <- sqrt(kme(as_gram(centered^2), estimator = "skmse")$weights)
  found <- eigen(outer(root, root) * centered, symmetric = TRUE)
  shown <- seq_len(components)
  v <- root * found$vectors[, shown] /
    rep(sqrt(found$values[shown]), each = nrow(k))
  test <- l - outer(rowMeans(l), at, `+`) + norm2
  1 - 2 * rowMeans(l) + norm2 - rowSums((test %*% v)^2)
}

# One split: mean test errors of the settings; `more`, that of plain kernel PCA
# with one component more; largest differences between S-COSE and it, at any
# test point, by the package (`scose`) and by its definition (`defined`).
run_split <- function(x, seed, most, select) {
  set.seed(seed)
  rows <- sample.int(nrow(x))
  test <- seq_len(round(0.3 * nrow(x)))
  train <- utils::head(rows[-test], most)
  test <- x[rows[test], , drop = FALSE]
  k <- gram(x[train, , drop = FALSE], kernel_rbf(bandwidth = "median"))
  fits <- lapply(make_settings(select), function(setting) {
    kme_pca(k, ncomp = components + 1, center = setting$center,
            covariance = setting$covariance)
  })
  each <- vapply(fits, reconstruction_error, numeric(nrow(test)),
                 newdata = test, ncomp = components)
  plain <- each[, "KPCA"]
  kernel <- fits$KPCA$kernel
  values <- kernel_matrix(test, k$x, kernel)
  c(colMeans(each), more = mean(reconstruction_error(fits$KPCA, test)),
    scose = max(abs(each[, "S-COSE"] - plain)),
    defined = max(abs(defined_scose(as.matrix(k), values) - plain)),
    bandwidth = kernel$bandwidth, train = length(train), test = nrow(test))
}

# What run_split() gives, splits x values, for each data set. Seeds belong to a
# data set and a split, whatever the others are.
run_all <- function(data, splits, most, select, cores) {
  set.seed(20140621)
  seeds <- matrix(draw_seeds(length(data_sets) * splits), length(data_sets))
  rownames(seeds) <- data_sets
  sapply(names(data), function(name) {
    message(sprintf("%-12s %4d points", name, nrow(data[[name]])))
    x <- data[[name]]
    do.call(rbind, over(seeds[name, ], function(seed) {
      run_split(x, seed, most, select)
    }, cores))
  }, simplify = FALSE)
}

# One row for each setting of a data set. `equal` counts the splits in which a
# setting does what KPCA does: for F-COSE with the smallest lambda on the grid,
# which is not quite 0, the errors were seen to differ by 3e-10.
summarize <- function(name, found, x) {
  errors <- found[, settings]
  equal <- abs(errors / errors[, "KPCA"] - 1) < 1e-8
  errors[equal] <- matrix(errors[, "KPCA"], nrow(errors), ncol(errors))[equal]
  gains <- apply(errors, 2, gain, a = errors[, "KPCA"])
  data.frame(
    data = name, points = nrow(x), columns = ncol(x),
    train = found[1, "train"], test = found[1, "test"],
    bandwidth = mean(found[, "bandwidth"]), setting = settings,
    error = colMeans(errors), se = apply(errors, 2, standard_error),
    gain = gains["gain", ], gain_se = gains["se", ],
    smaller = colSums(errors < errors[, "KPCA"]), equal = colSums(equal),
    of = nrow(errors),
    next_component = gain(errors[, "KPCA"], found[, "more"])[["gain"]],
    row.names = NULL
  )
}

# What is shown ---------------------------------------------------------------

print_results <- function(results) {
  plain <- results[results$setting == "KPCA", ]
  wide <- function(values, columns) {
    matrix(values, nrow(plain), byrow = TRUE,
           dimnames = list(plain$data, columns))
  }
  size <- as.matrix(plain[c("points", "columns", "train", "test")])
  cells <- cbind(size, bandwidth = sprintf("%.3g", plain$bandwidth))
  rownames(cells) <- plain$data
  print_block("data sets (bandwidth: mean over splits)", cells, 10)
  print_block(
    paste("mean test error x 1000; last: per cent that one component more",
          "would save"),
    cbind(wide(sprintf("%.3f", 1000 * results$error), settings),
          "21st" = sprintf("%.2f", plain$next_component)), 9
  )
  marks <- mark_signs(clear_sign(results$gain, results$gain_se))
  gains <- sprintf("%+.4f (%.4f)%s", results$gain, results$gain_se, marks)
  gains[results$equal == results$of] <- "equal "
  gains <- wide(gains, settings)
  print_block(paste("error saved in % of KPCA's (s.e.); * better, ! worse by",
                    "> 2 paired s.e."), gains[, -1, drop = FALSE], 16)
}

claims <- c("S-KMSE" = "centering by the S-KMSE",
            "F-KMSE" = "centering by the F-KMSE", "F-COSE" = "F-COSE")

conclude <- function(results, found) {
  cat("What the paper claims, and what this shows\n",
      "(a difference counts when it exceeds two paired standard errors)\n\n",
      sep = "")
  for (name in names(claims)) {
    mine <- results[results$setting == name, ]
    signs <- clear_sign(mine$gain, mine$gain_se)
    unshrunk <- sum(mine$equal == mine$of)
    say("M14, ", claims[[name]], " gives a smaller reconstruction error than ",
        "KPCA: ", verdict(signs), " (", count_signs(signs), " data sets",
        if (unshrunk > 0) {
          paste0(": nothing is shrunk in ", unshrunk, " of them")
        }, "; smaller in ", sum(mine$smaller), ", equal in ", sum(mine$equal),
        " of ", sum(mine$of), " splits). ",
        sprintf("Error saved: median %+.4f%%, least %+.4f%% (%s), ",
                stats::median(mine$gain), min(mine$gain),
                mine$data[which.min(mine$gain)]),
        sprintf("most %+.4f%% (%s).", max(mine$gain),
                mine$data[which.max(mine$gain)]))
    cat("\n")
  }
  conclude_scose(found)
  cat("\n")
  plain <- results[results$setting == "KPCA", ]
  say("How much that is: one component more than ", components, " would save ",
      sprintf("%.2f%% to %.2f%% of KPCA's error (median %.2f%%).",
              min(plain$next_component), max(plain$next_component),
              stats::median(plain$next_component)),
      " Splits of a data set share points: the standard errors tell whether ",
      "other splits of it would show the same, not other data.")
  cat("\n")
}

conclude_scose <- function(found) {
  largest <- vapply(c("scose", "defined"), function(name) {
    max(vapply(found, function(f) max(f[, name]), 0))
  }, 0)
  say("M14, S-COSE gives a smaller reconstruction error than KPCA: ",
      if (max(largest) < 1e-10) {
        paste("CONTRADICTED, the errors are equal. S-COSE multiplies the",
              "covariance operator by a constant: eigenvectors of unit norm,",
              "and with them the errors, stay.")
      } else {
        "UNEXPECTED, the errors should be equal."
      }, " Largest difference at any test point of any split: ",
      format(largest[["scose"]], digits = 2), " by kme_pca(), which uses ",
      "this, and ", format(largest[["defined"]], digits = 2),
      " by eigen(), from the definition of S-COSE.")
}

# A panel for the centerings and one for the operators, the data sets below each
# other, so that each has the scale it needs.
draw_results <- function(results) {
  graphics::layout(rbind(1:2, 3), heights = c(1, 0.09), widths = c(1.25, 1))
  draw_panel(results, rownames(style)[1:2], "Shrunk center", TRUE)
  draw_panel(results, rownames(style)[3:4], "Shrunk covariance operator", FALSE)
  draw_legend(style, nrow(style), 1)
}

draw_panel <- function(results, shown, title, labels) {
  names <- unique(results$data)
  graphics::par(mar = c(3.4, if (labels) 6.4 else 1, 2.4, 1.6))
  rows <- results[results$setting %in% style[shown, "setting"], ]
  y <- rev(seq_along(names))
  graphics::plot(NA, xlim = 100 - range(0, rows$gain - rows$gain_se,
                                        rows$gain + rows$gain_se)[2:1],
                 ylim = c(0.5, length(names) + 0.5), yaxs = "i", axes = FALSE,
                 xlab = "", ylab = "")
  graphics::abline(h = y, col = "grey92")
  graphics::abline(v = 100, col = "grey45", lty = 2, lwd = 1.8)
  graphics::axis(1, lwd = 0, line = -0.6)
  if (labels) graphics::axis(2, y, names, las = 1, lwd = 0, line = -0.5)
  graphics::title(main = title, adj = 0, line = 0.6)
  graphics::title(xlab = "test error, % of kernel PCA's (bars: 1 s.e.)",
                  line = 2)
  for (i in seq_along(shown)) {
    look <- style[shown[i], ]
    mine <- rows[rows$setting == look$setting, ]
    at <- y + c(0.14, -0.14)[i]
    graphics::segments(100 - mine$gain - mine$gain_se, at,
                       100 - mine$gain + mine$gain_se, at, col = look$col,
                       lwd = 1.6)
    graphics::points(100 - mine$gain, at, col = look$col, pch = look$pch,
                     lwd = 1.6)
  }
}

main <- function(args) {
  chosen <- read_options(args, list(
    data = "", splits = "", most = "", select = "loocv", out = ".",
    cores = "1", quick = FALSE, download = FALSE
  ), usage)
  number <- function(option, otherwise, least) {
    if (!nzchar(chosen[[option]])) return(otherwise)
    whole_number(chosen[[option]], paste0("--", option), least)
  }
  splits <- number("splits", 10, 2)
  most <- number("most", 1000, 50)
  select <- one_of(chosen$select, "--select", c("loocv", "gcv", "printed"))
  cores <- whole_number(chosen$cores, "--cores", 1)
  out <- output_folder(chosen$out)
  use_one_thread()
  if (chosen$quick) data_sets <- "sonar"
  say("Reconstruction error of kernel PCA with ", components, " components on ",
      "the points of the test part: 30% of a data set, ", splits, " random ",
      "splits. RBF kernel with the median bandwidth of the training part; ",
      "columns standardized over the data set. KPCA: empirical mean and ",
      "covariance; S-KMSE, F-KMSE: the mean that centers is shrunk; S-COSE, ",
      "F-COSE: the covariance operator is. Amounts of shrinkage: ",
      "select = \"loocv\"", if (select != "loocv") paste0(
        ", \"", select, "\" for F-KMSE and F-COSE"
      ), ", on the training part.")
  data <- find_data(data_sets, chosen$data, chosen$download)
  found <- run_all(data, splits, most, select, cores)
  results <- do.call(rbind, lapply(names(data), function(name) {
    summarize(name, found[[name]], data[[name]])
  }))
  cut <- unique(results$data[results$points - results$test > results$train])
  if (length(cut) > 0) {
    say("Of larger training parts, ", most, " random points were used (",
        toString(cut), ").")
  }
  cat("\n")
  print_results(results)
  conclude(results, found)
  name <- if (select == "loocv") "kpca" else paste0("kpca-", select)
  write_table(results, out, paste0(name, ".csv"), c("data", "setting"))
  write_figure(out, paste0(name, ".png"), 1650, 1150, function() {
    draw_results(results)
  })
}

main(commandArgs(trailingOnly = TRUE))

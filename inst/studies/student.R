# The estimators of a kernel mean on samples of multivariate t-distributions, in
# two ways: the loss |mu~ - mu_P|^2, exact, in a design of this script's own;
# and the density that is fitted to the estimate, as in Tables 1 and 2 of Xia et
# al. (2021, "X21" below; arXiv 2107.04855), whose figures stand beside ours.
#
# A t-distribution in d columns is a mixture of normals over their scale:
# N(0, S/w), w from the Gamma law with shape and rate df/2. Under the RBF kernel
# its embedding is known up to an integral over w. A Gauss rule with 12 nodes
# makes a mixture of 12 normals of it, which kme_risk() takes: the loss
# |mu~ - mu_P|^2 is right to 2e-6 of itself (--check).

usage <- "Usage: Rscript student.R [options]

Tables of the mean loss, RBF kernel with the median bandwidth, for
t-distributions with 1, 2, 3, 5, 10 degrees of freedom and the normal
distribution:
  1  loss against the size of the sample, d = 10
  2  loss against the dimension, n = 50
and the mean negative log-likelihood, on 1,000 new points, of ten components
fitted to the estimates:
  X21  as Tables 1 (100 points, 5 to 10 columns) and 2 (10 columns, 15 to 150
       points) of X21, each sample with a scale matrix of its own; all
       parameters moved from the clusters of k-means by 30, 60, 100 and 200
       steps of BFGS. Neither the law of the scale matrices nor the degrees of
       freedom are printed: four laws and 1, 3, 5 are tried

  --table 1|2|X21|all
                   which of them (all)
  --scale identity|wishart
                   the scale matrix of 1 and 2: I, or one from the Wishart law
                   W(I/(d+2), d+2) for each sample (identity)
  --reps N         samples (at least 6; 50; X21: 30)
  --out DIR        folder for figures and tables (.)
  --cores N        processes, with the package future.apply (1); the results do
                   not depend on it
  --quick          the smallest form: few sizes
  --check          compares the rule with a finer one and with a simulation
  --help           this text"

study_name <- "student.R"
# A page that reads this has the folder in `studies`.
here <- if (sys.nframe() == 0) {
  file <- grep("^--file=", commandArgs(), value = TRUE)[1]
  dirname(gsub("~+~", " ", sub("^--file=", "", file), fixed = TRUE))
} else {
  studies
}
source(file.path(here, "common.R"), local = TRUE)

estimators <- c(plain_estimators, marginal_estimators)

# Okabe-Ito colors, as in risk.R.
style <- data.frame(
  row.names = names(estimators),
  col = c("grey45", "#0072B2", "#D55E00", "#009E73", "#000000"),
  pch = c(NA, 16, 15, 18, 4), lty = c(2, rep(1, 4))
)

# The distribution and its samples --------------------------------------------

# The rule with `count` nodes for the measure sum_i weights_i delta(at_i): the
# eigenvalues of its Jacobi matrix, by Lanczos' iteration.
gauss_rule <- function(at, weights, count) {
  basis <- matrix(0, length(at), count)
  alpha <- beta <- numeric(count)
  q <- sqrt(weights)
  for (j in seq_len(count)) {
    basis[, j] <- q
    before <- basis[, seq_len(j), drop = FALSE]
    r <- at * q
    alpha[j] <- sum(q * r)
    for (pass in 1:2) r <- r - drop(before %*% crossprod(before, r))
    beta[j] <- sqrt(sum(r^2))
    q <- r / beta[j]
  }
  jacobi <- diag(alpha, count)
  i <- seq_len(count - 1)
  jacobi[cbind(i, i + 1)] <- jacobi[cbind(i + 1, i)] <- beta[i]
  found <- eigen(jacobi, symmetric = TRUE)
  list(at = found$values, weights = found$vectors[1, ]^2)
}

# The t-distribution as a mixture of normals for a kernel with bandwidth theta.
# First the trapezoidal rule in log(w), whose error falls exponentially; below
# its range nothing is left of the integrand: the mass there goes to the last
# node. Then the Gauss rule in v = (w / (w + s/theta^2))^(1/2), s the mean
# variance: for S = sI the kernel's mean is v^d times an entire function.
t_mixture <- function(df, scale, theta, count = 12) {
  d <- nrow(scale)
  if (is.infinite(df)) {
    return(list(weights = 1, means = matrix(0, 1, d), covariances = scale))
  }
  low <- (log(1e-16) - d * log(theta)) / ((df + d) / 2)
  high <- log(stats::qgamma(1e-15, df / 2, df / 2, lower.tail = FALSE))
  step <- min(0.3, 1 / sqrt(df))
  u <- seq(high, low, by = -step)
  weights <- step * exp(stats::dgamma(exp(u), df / 2, df / 2, log = TRUE) + u)
  last <- length(u)
  weights[last] <- weights[last] + max(0, 1 - sum(weights))
  ratio <- mean(diag(scale)) / theta^2
  rule <- gauss_rule(1 / sqrt(1 + ratio * exp(-u)), weights / sum(weights),
                     min(count, last))
  variances <- (1 / rule$at^2 - 1) / ratio
  list(weights = rule$weights / sum(rule$weights),
       means = matrix(0, length(variances), d),
       covariances = outer(scale, variances))
}

largest <- 200

# The first n rows of it are a sample of size n, the same for all n.
draw_sample <- function(df, d, scale, rep) {
  set.seed(seed_of("student", df, d, scale, rep))
  roots <- if (scale == "identity") diag(d) else {
    matrix(stats::rnorm(d * (d + 2), sd = sqrt(1 / (d + 2))), d + 2)
  }
  x <- matrix(stats::rnorm(largest * nrow(roots)), largest, byrow = TRUE) %*%
    roots
  if (is.finite(df)) x <- x / sqrt(stats::rgamma(largest, df / 2, df / 2))
  list(x = x, scale = crossprod(roots))
}

# The study -------------------------------------------------------------------

# The loss of each estimator.
run_sample <- function(n, df, d, scale, rep) {
  sample <- draw_sample(df, d, scale, rep)
  k <- gram(sample$x[seq_len(n), , drop = FALSE], kernel_rbf("median"),
            scale = FALSE)
  law <- t_mixture(df, sample$scale, k$kernel$bandwidth)
  vapply(estimators, function(estimator) {
    kme_risk(kme(k, estimator = estimator), law)
  }, 0)
}

# A cell is list(n, d, df, loss), loss reps x estimators.
run_cells <- function(plan, scale, reps, cores) {
  seen <- new.env()
  seen$start <- Sys.time()
  lapply(seq_len(nrow(plan)), function(i) {
    cell <- as.list(plan[i, ])
    found <- over(seq_len(reps), function(rep) {
      run_sample(cell$n, cell$df, cell$d, scale, rep)
    }, cores)
    message(sprintf("n = %3d, d = %2d, %-10s  %3d of %d, %.0f s", cell$n,
                    cell$d, df_label(cell$df), i, nrow(plan),
                    as.numeric(Sys.time() - seen$start, units = "secs")))
    c(cell, list(loss = do.call(rbind, found)))
  })
}

df_label <- function(df) ifelse(is.finite(df), paste("df =", df), "normal")

# One row for each estimator of a cell; `sign`: the sign test against the KME.
summarize <- function(cell) {
  plain <- cell$loss[, "KME"]
  gains <- apply(cell$loss, 2, gain, a = plain)
  data.frame(
    df = cell$df, n = cell$n, d = cell$d, estimator = names(estimators),
    loss = colMeans(cell$loss), se = apply(cell$loss, 2, standard_error),
    gain = gains["gain", ], gain_se = gains["se", ],
    smaller = colSums(cell$loss < plain), of = length(plain),
    sign = apply(cell$loss, 2, sign_test, a = plain), row.names = NULL
  )
}

# What is shown ---------------------------------------------------------------

print_cells <- function(results, along) {
  for (df in unique(results$df)) {
    rows <- results[results$df == df, ]
    wide <- function(values) wide_cells(values, rows, along)
    cat(if (is.finite(df)) {
      paste0("t-distribution, ", df, " degree", if (df > 1) "s", " of freedom")
    } else {
      "normal distribution"
    }, "\n", sep = "")
    cells <- paste0(sprintf("%.3f", 1000 * rows$loss),
                    sprintf(" (%.3f)", 1000 * rows$se))
    print_block("mean loss x 1000 (standard error)", wide(cells), 16)
    gains <- paste0(sprintf("%.1f", rows$gain),
                    sprintf(" (%.1f)", rows$gain_se), mark_signs(rows$sign))
    print_block(paste("gain over the KME in % (s.e.); * better, ! worse by the",
                      "sign test"), wide(gains)[-1, , drop = FALSE], 16)
  }
}

# A panel for each distribution: mean loss in per cent of the KME's.
draw_cells <- function(results, along, label) {
  dfs <- unique(results$df)
  lines <- ceiling(length(dfs) / 3)
  panels <- matrix(seq_len(3 * lines), lines, byrow = TRUE)
  graphics::layout(rbind(panels, 3 * lines + 1), heights = c(rep(1, lines),
                                                             0.16))
  half <- results$gain_se
  range <- 100 - range(0, results$gain - half, results$gain + half)[2:1]
  for (df in dfs) {
    rows <- results[results$df == df, ]
    graphics::par(mar = c(3.6, 4.2, 2.4, 0.8))
    graphics::plot(NA, xlim = range(rows[[along]]) * c(0.92, 1.08),
                   ylim = range, log = "x", axes = FALSE, xlab = "", ylab = "")
    graphics::abline(h = pretty(range), col = "grey92")
    graphics::axis(1, unique(rows[[along]]), lwd = 0, line = -0.5)
    graphics::axis(2, pretty(range), las = 1, lwd = 0, line = -0.5)
    graphics::title(main = df_label(df), adj = 0, line = 0.6)
    graphics::title(ylab = "mean loss, % of the KME's", line = 2.6)
    graphics::title(xlab = label, line = 2.1)
    for (i in seq_along(estimators)) {
      mine <- rows[rows$estimator == names(estimators)[i], ]
      # Side by side, as three of them often lie on one another.
      at <- mine[[along]] * if (i > 1) 1.03^(i - 3.5) else 1
      draw_curve(at, 100 - mine$gain, style[i, ], mine$gain_se)
    }
  }
  for (empty in seq_len(3 * lines - length(dfs))) graphics::plot.new()
  draw_legend(style, nrow(style))
}

# Is b's loss smaller than a's? A sign for each cell.
compare <- function(cells, a, b) {
  vapply(cells, function(cell) sign_test(cell$loss[, a], cell$loss[, b]), 0)
}

conclude <- function(cells) {
  cat("Is the first better than the second? (two-sided paired sign test at 5%)",
      "\n\n", sep = "")
  plain <- list("S-KMSE" = "KME", "F-KMSE" = c("KME", "S-KMSE"),
                "MKME" = c("KME", "S-KMSE", "F-KMSE"),
                "MMKME" = c("KME", "S-KMSE", "F-KMSE", "MKME"))
  for (name in names(plain)) {
    for (other in plain[[name]]) {
      signs <- compare(cells, other, name)
      ratio <- vapply(cells, function(cell) {
        mean(cell$loss[, name]) / mean(cell$loss[, other])
      }, 0)
      say(name, " against ", other, ": ", verdict(signs), " (",
          count_signs(signs), " cells; its mean loss is ",
          sprintf("%.1f%% to %.1f%% of the other's, median %.1f%%).",
                  100 * min(ratio), 100 * max(ratio),
                  100 * stats::median(ratio)))
    }
  }
  unchanged <- vapply(names(marginal_estimators), function(name) {
    mean(unlist(lapply(cells, function(cell) {
      abs(cell$loss[, name] / cell$loss[, "KME"] - 1) < 1e-9
    })))
  }, 0)
  if (any(unchanged > 0)) {
    say("No noise is chosen, so that the estimate is the KME, in ",
        sprintf("%.0f%% (MKME) and ", 100 * unchanged[["MKME"]]),
        sprintf("%.0f%% (MMKME) of the fits.",
                100 * unchanged[["MMKME"]]))
  }
  cat("\n")
}

# The rule against one with 48 nodes, and the loss of the KME against a
# simulation with 4e5 points.
check_rule <- function(scale) {
  cat("Loss of the KME, n = 20: by the rule, relative difference from a rule\n",
      "with 48 nodes, and from a simulation (and its standard error)\n\n",
      sep = "")
  for (df in c(1, 2, 3, 5, 10)) {
    for (d in c(2, 10, 50)) {
      sample <- draw_sample(df, d, scale, 1)
      k <- gram(sample$x[1:20, ], kernel_rbf("median"))
      fit <- kme(k)
      risk <- function(count) {
        kme_risk(fit, t_mixture(df, sample$scale, k$kernel$bandwidth, count))
      }
      found <- risk(12)
      simulated <- simulate_risk(fit, df, sample$scale, 4e5)
      cat(sprintf("df = %2d, d = %2d: %.8f  %+.0e  %+.0e (%.0e)\n", df, d,
                  found, found / risk(48) - 1,
                  simulated[["risk"]] / found - 1, simulated[["se"]] / found))
    }
  }
}

# |mu~|^2 + mean of k(X, X') - mu~(X) - mu~(X') over pairs X, X' of the law.
simulate_risk <- function(fit, df, scale, pairs) {
  draw <- function() {
    z <- matrix(stats::rnorm(pairs * nrow(scale)), pairs) %*% chol(scale)
    z / sqrt(stats::rgamma(pairs, df / 2, df / 2))
  }
  x <- draw()
  y <- draw()
  each <- exp(-rowSums((x - y)^2) / (2 * fit$kernel$bandwidth^2)) -
    stats::predict(fit, x) - stats::predict(fit, y)
  c(risk = kme_inner(fit, fit) + mean(each), se = standard_error(each))
}

# Densities, as X21 prints them -----------------------------------------------

# A root r of a random scale matrix r'r, as X21 has "a randomly generated
# covariance matrix" and says no more. Matrices of correlations are scaled so
# that the columns have variance 1, where there is a variance.
x21_laws <- list(
  "I" = function(d, df) diag(d),
  "correlations" = function(d, df) {
    root <- matrix(stats::rnorm(d * d), d)
    size <- sqrt(colSums(root^2) / if (df > 2) (df - 2) / df else 1)
    root / rep(size, each = d)
  },
  "W(I, d)" = function(d, df) matrix(stats::rnorm(d * d), d),
  "W(2I, 7)" = function(d, df) matrix(stats::rnorm(7 * d, sd = sqrt(2)), 7)
)
x21_dfs <- c(1, 3, 5)
x21_steps <- c(30, 60, 100, 200)
new_points <- 1000

# Entropy of the t-distribution with that scale matrix: no density has a smaller
# mean negative log-likelihood.
t_entropy <- function(df, scale) {
  d <- nrow(scale)
  half <- (df + d) / 2
  lgamma(df / 2) - lgamma(half) + d / 2 * log(df * pi) +
    half * (digamma(half) - digamma(df / 2)) + log(max(det(scale), 0)) / 2
}

draw_t <- function(n, root, df) {
  z <- matrix(stats::rnorm(n * nrow(root)), n) %*% root
  z / sqrt(stats::rgamma(n, df / 2, df / 2))
}

# Negative log-likelihoods of one sample: (k-means, estimators and the entropy)
# x steps. The squared bandwidth is the median of all n^2 squared distances, as
# in X21, the n zeros among them.
fit_densities <- function(cell, rep, steps) {
  set.seed(seed_of("student density", cell$law, cell$df, cell$d, rep))
  root <- x21_laws[[cell$law]](cell$d, cell$df)
  x <- draw_t(largest, root, cell$df)[seq_len(cell$n), , drop = FALSE]
  new <- draw_t(new_points, root, cell$df)
  k <- gram(x, kernel_rbf(sqrt(stats::median(as.matrix(stats::dist(x))^2))),
            scale = FALSE)
  means <- lapply(estimators, function(estimator) kme(k, estimator = estimator))
  score <- function(fit) -mean(stats::predict(fit, new, type = "log"))
  start <- "kmeans"
  vapply(steps, function(count) {
    fits <- lapply(means, function(mean_estimate) {
      fit <- kme_density(k, m = 10, estimator = mean_estimate, start = start,
                         optimize = "all", shape = "isotropic", steps = count)
      start <<- fit$start
      fit
    })
    clusters <- fits[[1]]
    clusters[names(clusters$start)] <- clusters$start
    scores <- vapply(c(list("k-means" = clusters), fits), score, 0)
    c(scores, entropy = t_entropy(cell$df, crossprod(root)))
  }, numeric(length(estimators) + 2))
}

# One row for each number of steps and estimator; `sign` as above.
summarize_densities <- function(found, cell, steps, printed) {
  mine <- printed[printed[[cell$along]] == cell[[cell$along]], ]
  do.call(rbind, lapply(seq_along(steps), function(i) {
    nll <- t(found[, i, ])
    nll <- nll[, colnames(nll) != "entropy"]
    data.frame(
      table = cell$table, law = cell$law, df = cell$df, n = cell$n, d = cell$d,
      steps = steps[i], estimator = colnames(nll), nll = colMeans(nll),
      se = apply(nll, 2, standard_error), smaller = colSums(nll < nll[, "KME"]),
      of = nrow(nll), sign = apply(nll, 2, sign_test, a = nll[, "KME"]),
      entropy = mean(found["entropy", i, ]),
      printed = mine$nll[match(tolower(sub("-", "", colnames(nll))),
                               mine$estimator)], row.names = NULL
    )
  }))
}

run_densities <- function(plan, steps, reps, cores) {
  printed <- lapply(1:2, function(table) {
    utils::read.csv(file.path(here, "printed",
                              sprintf("xia2021_table%d.csv", table)))
  })
  do.call(rbind, lapply(seq_len(nrow(plan)), function(i) {
    cell <- as.list(plan[i, ])
    message(sprintf("densities: %s, df = %d, n = %3d, d = %2d", cell$law,
                    cell$df, cell$n, cell$d))
    found <- over(seq_len(reps), function(rep) {
      fit_densities(cell, rep, steps)
    }, cores)
    summarize_densities(simplify2array(found), cell, steps,
                        printed[[cell$table]])
  }))
}

# How far ours are from the printed figures: the mean of |log(ours / printed)|,
# for each table and protocol, and in how many of its comparisons with the KME
# the two agree on which is the smaller one.
scan_densities <- function(results) {
  there <- results[!is.na(results$printed), ]
  groups <- split(there, there[c("table", "law", "df", "steps")], drop = TRUE)
  found <- do.call(rbind, lapply(groups, function(rows) {
    plain <- rows[rows$estimator == "KME", ]
    others <- rows[rows$estimator != "KME", ]
    beside <- plain[match(paste(others$n, others$d), paste(plain$n, plain$d)), ]
    same <- sign(others$nll - beside$nll) == sign(others$printed -
                                                    beside$printed)
    data.frame(
      rows[1, c("table", "law", "df", "steps")],
      away = mean(abs(log(rows$nll / rows$printed))), same = sum(same),
      of = length(same), below_entropy = sum(rows$printed < rows$entropy)
    )
  }))
  found[order(found$table, found$away), ]
}

# The rows of a table under its nearest protocol.
nearest_rows <- function(results, scan, table) {
  protocol <- c("table", "law", "df", "steps")
  best <- scan[scan$table == table, protocol][1, ]
  key <- function(rows) do.call(paste, rows[protocol])
  results[key(results) == key(best), ]
}

print_densities <- function(results, scan) {
  for (table in unique(scan$table)) {
    best <- scan[scan$table == table, ][1, ]
    rows <- nearest_rows(results, scan, table)
    cells <- wide_cells(
      paste0(sprintf("%.2f", rows$nll), mark_signs(rows$sign),
             ifelse(is.na(rows$printed), "        ",
                    sprintf("(%5.2f)", rows$printed))),
      rows, c("d", "n")[table]
    )
    print_block(sprintf(
      "X21, Table %d, %s, df = %d, %d steps, the nearest: ours (printed)",
      table, best$law, best$df, best$steps
    ), cells, 15)
    say("The five nearest protocols: ", paste(sprintf(
      "%s, df = %d, %d steps: %.1f%% away, %d of %d comparisons alike",
      scan$law, scan$df, scan$steps, 100 * scan$away, scan$same, scan$of
    )[scan$table == table][1:5], collapse = "; "), ".")
    cat("\n")
  }
}

printed_style <- style
printed_style["KME", "pch"] <- 1

# Ours as lines, the printed figures as points of the same colors.
draw_density_panel <- function(rows, along, title) {
  x <- rows[[along]]
  graphics::par(mar = c(3.6, 4.2, 2.4, 0.8))
  graphics::plot(NA, xlim = range(x), ylim = range(rows$nll, rows$printed),
                 log = "y", axes = FALSE, xlab = "", ylab = "")
  graphics::axis(1, unique(x), lwd = 0, line = -0.5)
  graphics::abline(h = graphics::axis(2, las = 1, lwd = 0, line = -0.5),
                   col = "grey92")
  graphics::title(main = title, adj = 0, line = 0.6, cex.main = 0.9)
  graphics::title(ylab = "negative log-likelihood", line = 2.8)
  graphics::title(xlab = paste0(along, "; points alone: printed"), line = 2.1)
  for (name in names(estimators)) {
    mine <- rows[rows$estimator == name, ]
    look <- printed_style[name, ]
    graphics::lines(mine[[along]], mine$nll, col = look$col, lty = look$lty,
                    lwd = 1.8)
    graphics::points(mine[[along]], mine$printed, col = look$col,
                     pch = look$pch)
  }
}

# The nearest protocol for each table.
draw_densities <- function(results, scan) {
  graphics::layout(rbind(1:2, 3), heights = c(1, 0.16))
  for (table in 1:2) {
    best <- scan[scan$table == table, ][1, ]
    rows <- nearest_rows(results, scan, table)
    draw_density_panel(rows[rows$estimator != "k-means", ], c("d", "n")[table],
                       sprintf("Table %d: %s, df = %d, %d steps", table,
                               best$law, best$df, best$steps))
  }
  draw_legend(printed_style, nrow(style))
}

densities <- function(quick, reps, cores, out) {
  plan <- rbind(
    data.frame(table = 1, along = "d", n = 100, d = 5:10),
    data.frame(table = 2, along = "n", n = c(15, 30, 60, 90, 120, 150), d = 10)
  )
  plan <- merge(plan, expand.grid(law = names(x21_laws), df = x21_dfs,
                                  stringsAsFactors = FALSE), by = NULL)
  if (quick) plan <- plan[plan$n == 15 & plan$law == "I" & plan$df > 3, ]
  say("Mean negative log-likelihood of ", new_points, " new points, ", reps,
      " samples; * better, ! worse than the KME by the sign test.")
  cat("\n")
  results <- run_densities(plan, x21_steps, reps, cores)
  scan <- scan_densities(results)
  print_densities(results, scan)
  numbers <- c("nll", "se", "entropy")
  results[numbers] <- signif(results[numbers], 6)
  write_table(results, out, "student-x21.csv",
              c("table", "law", "df", "n", "d", "steps", "estimator"))
  if (!quick) write_figure(out, "student-x21.png", 1500, 700, function() {
    draw_densities(results, scan)
  })
}

main <- function(args) {
  chosen <- read_options(args, list(
    table = "all", scale = "identity", reps = "", out = ".", cores = "1",
    quick = FALSE, check = FALSE
  ), usage)
  table <- one_of(chosen$table, "--table", c("1", "2", "X21", "all"))
  scale <- one_of(chosen$scale, "--scale", c("identity", "wishart"))
  count <- function(usual) {
    if (nzchar(chosen$reps)) whole_number(chosen$reps, "--reps", 6) else usual
  }
  reps <- count(50)
  cores <- whole_number(chosen$cores, "--cores", 1)
  use_one_thread()
  cores <- start_processes(cores)
  if (chosen$check) return(check_rule(scale))
  out <- output_folder(chosen$out)
  dfs <- if (chosen$quick) c(1, 5) else c(1, 2, 3, 5, 10, Inf)
  plans <- list("1" = expand.grid(n = if (chosen$quick) c(20, 50) else {
    c(20, 50, 100, 200)
  }, d = 10, df = dfs), "2" = expand.grid(n = 50, d = if (chosen$quick) {
    c(2, 10)
  } else c(2, 5, 10, 20, 50), df = dfs))
  labels <- list("1" = c("n", "points in the sample, n"),
                 "2" = c("d", "columns, d"))
  if (table %in% c("X21", "all")) {
    densities(chosen$quick, count(30), cores, out)
  }
  if (table == "X21") return(invisible())
  say("Mean loss |mu~ - mu_P|^2 on ", reps, " samples of t-distributions",
      ", location 0, ",
      if (scale == "identity") "scale matrix I" else paste(
        "scale matrix from W(I/(d+2), d+2), another for each sample"
      ), "; RBF kernel with the median bandwidth of the sample.")
  for (name in if (table == "all") names(plans) else table) {
    along <- labels[[name]]
    cat("\nTable ", name, ": loss against ", along[1], ", ",
        if (name == "1") "d = 10" else "n = 50", "\n\n", sep = "")
    found <- run_cells(plans[[name]], scale, reps, cores)
    results <- do.call(rbind, lapply(found, summarize))
    print_cells(results, along[1])
    conclude(found)
    numbers <- vapply(results, is.numeric, NA)
    results[numbers] <- signif(results[numbers], 6)
    write_table(results, out, paste0("student-", name, ".csv"),
                c("df", "n", "d", "estimator"))
    write_figure(out, paste0("student-", name, ".png"), 1500, 1050, function() {
      draw_cells(results, along[1], along[2])
    })
  }
}

if (sys.nframe() == 0) main(commandArgs(trailingOnly = TRUE))

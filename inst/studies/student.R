# The exact error of the estimators of a kernel mean on samples of multivariate
# t-distributions, in the manner of Tables 1 and 2 of Xia et al. (2021, "X21"
# below; arXiv 2107.04855). The settings and figures printed there were not at
# hand when this was written: the design below is this script's own, and its
# numbers cannot be laid beside the paper's.
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

  --table 1|2|all  which of them (all)
  --scale identity|wishart
                   the scale matrix: I, or one from the Wishart law
                   W(I/(d+2), d+2) for each sample (identity)
  --reps N         samples (at least 6; 50)
  --out DIR        folder for figures and tables (.)
  --cores N        processes, with the package future.apply (1); the results do
                   not depend on it
  --quick          the smallest form: few sizes, 6 samples
  --check          compares the rule with a finer one and with a simulation
  --help           this text"

study_name <- "student.R"
# source() by another script finds the package's folder.
here <- if (sys.nframe() == 0) {
  dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
} else {
  system.file("studies", package = "kernmean")
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
  k <- gram(sample$x[seq_len(n), , drop = FALSE], kernel_rbf("median"))
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

main <- function(args) {
  chosen <- read_options(args, list(
    table = "all", scale = "identity", reps = "50", out = ".", cores = "1",
    quick = FALSE, check = FALSE
  ), usage)
  table <- one_of(chosen$table, "--table", c("1", "2", "all"))
  scale <- one_of(chosen$scale, "--scale", c("identity", "wishart"))
  reps <- if (chosen$quick) 6 else whole_number(chosen$reps, "--reps", 6)
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
  say("Mean loss |mu~ - mu_P|^2 on ", reps, " samples of t-distributions",
      if (chosen$quick) " (too few to conclude anything)", ", location 0, ",
      if (scale == "identity") "scale matrix I" else paste(
        "scale matrix from W(I/(d+2), d+2), another for each sample"
      ), "; RBF kernel with the median bandwidth of the sample.")
  say("In the manner of Tables 1 and 2 of X21, whose printed settings and ",
      "figures were not at hand: the design is this script's own.")
  cells <- list()
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
    write_table(results, out, paste0("student-", name, ".csv"))
    write_figure(out, paste0("student-", name, ".png"), 1500, 1050, function() {
      draw_cells(results, along[1], along[2])
    })
  }
}

if (sys.nframe() == 0) main(commandArgs(trailingOnly = TRUE))

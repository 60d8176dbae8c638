# The test error of kernel Fisher discriminants with the ridge of shrinkage and
# with a fixed one: the simulation of Lancewicki (2017, arXiv 1707.06156,
# section V).
#
# Class 1 is two normal clouds at (-0.5, -0.2) and (0.5, 0), class 2 one cloud
# at (0, 0), standard deviation 0.1 in each column; a training sample has n
# points of each cloud. Kernel exp(-|x - y|^2/(2 theta^2)), theta^2 = 0.1. The
# fixed ridge is 1e-3, as in Mika et al. (1999). The paper shrinks the scatter
# within classes as it shrinks the covariance, (1 - lambda) N + lambda tau K
# with the intensity and the target of shrink_gram(); kme_fda() adds a multiple
# of the identity instead, N + r I with r = lambda / (1 - lambda) tau^2.
#
# The paper shows its results as figures without numbers; ours stand beside
# those of a direct evaluation of its formulas made before this package. Beside
# lambda stands the oracle's: the one number that is best on average, by
# simulation. Figures 3 and 4, contours of the output of both rules for one
# sample of 5 and of 20 points of each cloud, are drawn too.

usage <- "Usage: Rscript kfda.R [options]

  --within paper|ours|each
               how shrinkage enters the scatter within classes (each)
  --reps N     training samples for each n (at least 3; 100)
  --test N     test points of each cloud (1000)
  --out DIR    folder for the figure and the table (.)
  --cores N    processes, with the package future.apply (1); the results do
               not depend on it
  --quick      the smallest form: few sizes
  --help       this text"

study_name <- "kfda.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

clouds <- rbind(c(-0.5, -0.2), c(0.5, 0), c(0, 0))
deviation <- 0.1
theta <- sqrt(0.1)
ridges <- list("shrinkage" = "shrinkage", "r = 1e-3" = 1e-3)

# Okabe-Ito colors.
style <- data.frame(
  row.names = c(names(ridges), "Bayes rule"),
  col = c("#0072B2", "#D55E00", "grey45"), pch = c(16, 15, NA),
  lty = c(1, 1, 3)
)

# The direct evaluation, n = 3 and n = 30.
direct <- data.frame(n = c(3, 30), shrinkage = c(0.016, 0.0088),
                     fixed = c(0.035, 0.010), lambda = c(0.36, 0.025))

# Repetitions -----------------------------------------------------------------

# n points of each cloud.
draw_sample <- function(n) {
  cloud <- rep(1:3, each = n)
  list(x = clouds[cloud, ] + stats::rnorm(6 * n, sd = deviation),
       class = factor(c(1, 1, 2)[cloud]))
}

# The class of larger density, each cloud as likely as the others.
bayes_odds <- function(x) {
  density <- apply(clouds, 1, function(center) {
    exp(-colSums((t(x) - center)^2) / (2 * deviation^2))
  })
  density <- matrix(density, nrow(x))
  log(density[, 1] + density[, 2]) - log(density[, 3])
}

fit_all <- function(sample) {
  lapply(ridges, function(ridge) {
    kme_fda(sample$x, sample$class, kernel_rbf(theta), ridge = ridge)
  })
}

# The paper's form: the direction (N + lambda / (1 - lambda) tau K)^-1 (M1 -
# M2), cut midway between the means of the classes. TRUE where class 2 is
# chosen.
paper_rule <- function(sample, new) {
  k <- kernel_matrix(sample$x, kernel = kernel_rbf(theta))
  shrunk <- shrink_gram(k)
  second <- sample$class == 2
  means <- cbind(rowMeans(k[, !second]), rowMeans(k[, second]))
  apart <- k - means[, 1 + second]
  within <- tcrossprod(apart) +
    shrunk$intensity / (1 - shrunk$intensity) * shrunk$target * k
  # Rounding, below which the clouds are one point to the kernel.
  diag(within) <- diag(within) + 1e-12 * max(within)
  direction <- solve(within, means[, 1] - means[, 2])
  score <- kernel_matrix(new, sample$x, kernel = kernel_rbf(theta)) %*%
    direction
  drop(score) < mean(crossprod(means, direction))
}

# E<S - C, S - T> / E|S - T|^2, the intensity that is best on average, has these
# as numerator and denominator for one sample; C, the true covariance, is that
# of a sample of 1,000 points of each cloud.
oracle_parts <- function(x, many) {
  p <- nrow(x) - 1
  center <- function(k) {
    k <- k - rowMeans(k)
    k - rep(colMeans(k), each = nrow(k))
  }
  kernel <- kernel_rbf(theta)
  own <- center(kernel_matrix(x, kernel = kernel)) / p
  cross <- center(kernel_matrix(x, many, kernel))
  rest <- nrow(many) - 1
  trace <- sum(diag(own))
  true_trace <- (nrow(many) - kme(many, kernel)$norm2 * nrow(many)) / rest
  norm2 <- sum(own^2)
  c(norm2 - trace^2 / p - sum(cross^2) / (p * rest) + trace * true_trace / p,
    norm2 - trace^2 / p)
}

# Test errors, the error that leaving one out foretells, lambda and ridge.
one_sample <- function(n, test) {
  sample <- draw_sample(n)
  fits <- fit_all(sample)
  new <- draw_sample(test)
  errors <- vapply(fits, function(fit) {
    mean(predict(fit, new$x)$class != new$class)
  }, 0)
  chosen <- fits[["shrinkage"]]
  c(errors, "Bayes rule" = mean((bayes_odds(new$x) < 0) != (new$class == 2)),
    loo = chosen$error, lambda = chosen$intensity, ridge = chosen$ridge,
    paper = mean(paper_rule(sample, new$x) != (new$class == 2)),
    oracle = oracle_parts(sample$x, draw_sample(1000)$x))
}

run_size <- function(n, reps, test, cores) {
  message(sprintf("n = %2d of each cloud", n))
  set.seed(20170700 + n)
  seeds <- draw_seeds(reps)
  found <- over(seeds, function(seed) {
    set.seed(seed)
    one_sample(n, test)
  }, cores)
  do.call(rbind, found)
}

# The paired t-test of the fixed ridge's error less that of shrinkage.
summarize <- function(found, n) {
  gain <- found[, "r = 1e-3"] - found[, "shrinkage"]
  paper <- found[, "r = 1e-3"] - found[, "paper"]
  same <- stats::sd(gain) == 0
  data.frame(
    n = n, reps = nrow(found), shrinkage = mean(found[, "shrinkage"]),
    shrinkage_se = standard_error(found[, "shrinkage"]),
    fixed = mean(found[, "r = 1e-3"]),
    fixed_se = standard_error(found[, "r = 1e-3"]), gain = mean(gain),
    gain_se = standard_error(gain), p = if (same) 1 else {
      stats::t.test(gain)$p.value
    },
    bayes = mean(found[, "Bayes rule"]), loo = mean(found[, "loo"]),
    lambda = mean(found[, "lambda"]),
    lambda_se = standard_error(found[, "lambda"]),
    oracle = mean(found[, "oracle1"]) / mean(found[, "oracle2"]),
    ridge = mean(found[, "ridge"]), paper = mean(found[, "paper"]),
    paper_se = standard_error(found[, "paper"]),
    paper_p = if (stats::sd(paper) == 0) 1 else stats::t.test(paper)$p.value
  )
}

# What is shown ---------------------------------------------------------------

print_results <- function(results, within) {
  per_cent <- function(value) sprintf("%.2f", 100 * value)
  cells <- with(results, cbind(
    "shrunk" = per_cent(shrinkage), "r=1e-3" = per_cent(fixed),
    "gain" = per_cent(gain), "(s.e.)" = sprintf("(%.2f)", 100 * gain_se),
    "p" = ifelse(p < 1e-4, "<1e-4", sprintf("%.4f", p)),
    "LOO" = per_cent(loo), "paper's" = per_cent(paper),
    "p " = sprintf("%.4f", paper_p), "Bayes" = per_cent(bayes),
    "lambda" = sprintf("%.3f", lambda), "oracle" = sprintf("%.3f", oracle)
  ))
  rownames(cells) <- paste("n =", results$n)
  left_out <- list(paper = c("shrunk", "gain", "(s.e.)", "p", "LOO"),
                   ours = c("paper's", "p "))[[within]]
  cells <- cells[, setdiff(colnames(cells), left_out)]
  print_block(paste("test error in %, paired t-test of the gain over r = 1e-3,",
                    "leave-one-out error"), cells)
}

conclude <- function(results, within) {
  signs <- with(results, list(
    paper = ifelse(paper_p < 0.05, sign(fixed - paper), 0),
    ours = ifelse(p < 0.05, sign(gain), 0)
  ))
  for (form in if (within == "each") names(signs) else within) {
    say("Lancewicki, figure 1, the error of shrinkage (", form, ") is below ",
        "that of r = 1e-3 at every n: ", verdict(signs[[form]]), " (paired ",
        "t-tests, 5% level: ", count_signs(signs[[form]]), ").")
  }
  steps <- diff(results$lambda)
  say("Lancewicki, figure 2, lambda falls as n grows: ",
      if (all(steps < 0)) "AGREES" else "DOES NOT HOLD THROUGHOUT",
      sprintf(" (from %.3f to %.3f).", results$lambda[1],
              results$lambda[nrow(results)]))
  for (i in which(direct$n %in% results$n)) {
    mine <- results[results$n == direct$n[i], ]
    say(sprintf(paste0(
      "n = %d, direct evaluation: error %.4f (shrinkage), %.4f (1e-3), lambda ",
      "%.3f; here %.4f (s.e. %.4f), %.4f (%.4f), %.3f (%.3f)."
    ), direct$n[i], direct$shrinkage[i], direct$fixed[i], direct$lambda[i],
    mine$shrinkage, mine$shrinkage_se, mine$fixed, mine$fixed_se, mine$lambda,
    mine$lambda_se))
  }
  cat("\n")
}

panel <- function(x, ylim, title, ylab) {
  graphics::par(mar = c(3.6, 4.2, 2.2, 0.8))
  graphics::plot(NA, xlim = range(x), ylim = ylim, log = "xy", axes = FALSE,
                 xlab = "", ylab = "")
  graphics::abline(h = log_axis(2, ylim), col = "grey92")
  graphics::axis(1, x, lwd = 0, line = -0.6)
  graphics::title(main = title, adj = 0, line = 0.6)
  graphics::title(xlab = "points of each cloud, n", line = 2)
  graphics::title(ylab = ylab, line = 3.1)
}

draw_errors <- function(results) {
  columns <- c("shrinkage", "fixed")
  halves <- c("shrinkage_se", "fixed_se")
  ylim <- range(results[c(columns, "bayes")],
                results[columns] + results[halves])
  panel(results$n, ylim, "Test error", "mean error, one s.e. either way")
  graphics::lines(results$n, results$bayes, col = style["Bayes rule", "col"],
                  lty = 3, lwd = 1.8)
  for (i in 1:2) {
    draw_curve(results$n, results[[columns[i]]], style[i, ],
               results[[halves[i]]])
  }
}

draw_lambda <- function(results) {
  around <- range(results$lambda - results$lambda_se, results$oracle,
                  results$lambda + results$lambda_se)
  panel(results$n, around, "Intensity of shrinkage", "mean lambda")
  draw_curve(results$n, results$lambda, style["shrinkage", ],
             results$lambda_se)
  draw_curve(results$n, results$oracle, style["Bayes rule", ])
  graphics::text(results$n[1], results$oracle[1], "oracle", pos = 4,
                 col = "grey30")
}

# The plane with a training sample and the borders of the rules.
draw_borders <- function(n) {
  set.seed(1)
  sample <- draw_sample(n)
  fits <- fit_all(sample)
  axes <- list(seq(-1, 1, length.out = 161), seq(-0.9, 0.9, length.out = 145))
  grid <- as.matrix(expand.grid(axes))
  odds <- lapply(fits, function(fit) {
    posterior <- predict(fit, grid)$posterior
    log(posterior[, 1]) - log(posterior[, 2])
  })
  odds <- c(odds, list("Bayes rule" = bayes_odds(grid)))
  graphics::par(mar = c(3.6, 4.2, 2.2, 0.8))
  graphics::plot(sample$x, type = "n", xlim = range(axes[[1]]), las = 1,
                 ylim = c(-0.75, 0.75), xaxs = "i", yaxs = "i", asp = 1,
                 xlab = "", ylab = "")
  for (name in rev(names(odds))) {
    height <- matrix(pmax(-30, pmin(30, odds[[name]])), length(axes[[1]]))
    graphics::contour(axes[[1]], axes[[2]], height, levels = 0, add = TRUE,
                      drawlabels = FALSE, col = style[name, "col"], lwd = 1.8,
                      lty = style[name, "lty"])
  }
  graphics::points(sample$x, pch = c(3, 1)[sample$class], lwd = 1.4,
                   col = "grey20")
  graphics::title(main = paste("Borders from one sample, n =", n), adj = 0,
                  line = 0.6)
  graphics::title(xlab = "+ class 1, o class 2", line = 2)
}

draw_study <- function(results, small, large) {
  graphics::layout(rbind(1:2, 3:4, 5), heights = c(1, 1.05, 0.14))
  draw_errors(results)
  draw_lambda(results)
  draw_borders(small)
  draw_borders(large)
  draw_legend(style, 3)
}

# Contours of the discriminant, positive for class 1; thick: the border.
draw_output <- function(n, name) {
  set.seed(1)
  sample <- draw_sample(n)
  fit <- fit_all(sample)[[name]]
  axes <- list(seq(-1, 1, length.out = 121), seq(-0.8, 0.6, length.out = 85))
  grid <- as.matrix(expand.grid(axes))
  found <- predict(fit, grid)
  output <- found$x[, 1]
  odds <- log(found$posterior[, 1]) - log(found$posterior[, 2])
  if (stats::cor(output, odds) < 0) output <- -output
  as_grid <- function(values) matrix(values, length(axes[[1]]))
  graphics::par(mar = c(2.6, 3, 2.2, 0.8))
  graphics::plot(NA, xlim = range(axes[[1]]), ylim = range(axes[[2]]), las = 1,
                 xaxs = "i", yaxs = "i", asp = 1, xlab = "", ylab = "")
  graphics::contour(axes[[1]], axes[[2]], as_grid(output), nlevels = 14,
                    add = TRUE, col = "grey55", labcex = 0.6)
  graphics::contour(axes[[1]], axes[[2]], as_grid(odds), levels = 0, lwd = 2.4,
                    add = TRUE, drawlabels = FALSE, col = style[name, "col"])
  graphics::contour(axes[[1]], axes[[2]], as_grid(bayes_odds(grid)), lwd = 1.8,
                    levels = 0, lty = 3, add = TRUE, drawlabels = FALSE)
  graphics::points(sample$x, pch = c(3, 1)[sample$class], lwd = 1.6)
  graphics::title(main = sprintf("n = %d, %s", n, name), adj = 0, line = 0.6)
}

# Figure 3 above, figure 4 below.
draw_outputs <- function() {
  graphics::layout(matrix(1:4, 2, byrow = TRUE))
  for (n in c(5, 20)) {
    for (name in rev(names(ridges))) draw_output(n, name)
  }
}

main <- function(args) {
  chosen <- read_options(args, list(
    within = "each", reps = "100", test = "1000", out = ".", cores = "1",
    quick = FALSE
  ), usage)
  within <- one_of(chosen$within, "--within", c("paper", "ours", "each"))
  reps <- whole_number(chosen$reps, "--reps", 3)
  test <- whole_number(chosen$test, "--test", 1)
  cores <- whole_number(chosen$cores, "--cores", 1)
  out <- output_folder(chosen$out)
  use_one_thread()
  sizes <- c(3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30)
  if (chosen$quick) sizes <- c(3, 5, 8)
  say("Two classes, of two clouds and of one, n points of each cloud; ", reps,
      " training samples for each n, ", test, " test points of each cloud. ",
      "RBF kernel, theta^2 = 0.1; prior: the shares of the classes.")
  cat("\n")
  results <- do.call(rbind, lapply(sizes, function(n) {
    summarize(run_size(n, reps, test, cores), n)
  }))
  print_results(results, within)
  conclude(results, within)
  numbers <- names(results) != "n"
  results[numbers] <- signif(results[numbers], 6)
  write_table(results, out, "kfda.csv", "n")
  write_figure(out, "kfda.png", 1500, 1350, function() {
    draw_study(results, 5, 30)
  })
  write_figure(out, "kfda-output.png", 1500, 1180, draw_outputs)
}

main(commandArgs(trailingOnly = TRUE))

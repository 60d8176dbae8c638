# The test error of kernel Fisher discriminants with the ridge of shrinkage and
# with a fixed one: the simulation of Lancewicki (2017, arXiv 1707.06156,
# section V).
#
# Class 1 is two normal clouds at (-0.5, -0.2) and (0.5, 0), class 2 one cloud
# at (0, 0), standard deviation 0.1 in each column; a training sample has n
# points of each cloud. Kernel exp(-|x - y|^2/(2 theta^2)), theta^2 = 0.1. The
# fixed ridge is 1e-3, as in Mika et al. (1999). The paper shrinks the scatter
# within classes as it shrinks the covariance, (1 - lambda) N + lambda tau K
# (our reading: how its equation 18 enters is not printed), with the intensity
# and the target of shrink_gram(); kme_fda() adds a multiple of the identity,
# N + r I with r = lambda / (1 - lambda) tau^2. The two and the fixed ridge are
# also compared by one and the same cut, midway between the means of the
# classes, where nothing but the scatter differs.
#
# The paper shows its results as figures without numbers; ours stand beside
# those of a direct evaluation of its formulas made before this package. Beside
# lambda stands the oracle's: the one number that is best on average, from the
# law of the clouds. Figures 3 and 4, contours of the output of both rules for
# one sample of 5 and of 20 points of each cloud, are drawn too, and the areas
# that the rules give to class 2 are counted in `reps` samples of each size.

usage <- "Usage: Rscript kfda.R [options]

  --within paper|ours|each
               how shrinkage enters the scatter within classes: what is
               printed; the table has each (each)
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
  row.names = c(names(ridges), "Bayes rule", "paper's form, cut midway",
                "r = 1e-3, cut midway"),
  col = c("#0072B2", "#D55E00", "grey45", "black", "#D55E00"),
  pch = c(16, 15, NA, 1, 0), lty = c(1, 1, 3, 1, 2)
)

# The direct evaluation, n = 3 and n = 30, of N + r I and the cut midway.
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

# Directions (N + penalty)^-1 (M1 - M2) with a cut midway between the means of
# the classes: with the paper's penalty, with r = 1e-3, and with ridges of one's
# own.
midway_rules <- function(sample, ours = NULL) {
  k <- kernel_matrix(sample$x, kernel = kernel_rbf(theta))
  shrunk <- shrink_gram(k)
  odds <- shrunk$intensity / (1 - shrunk$intensity)
  second <- sample$class == 2
  means <- cbind(rowMeans(k[, !second]), rowMeans(k[, second]))
  within <- tcrossprod(k - means[, 1 + second])
  one <- diag(nrow(k))
  penalties <- lapply(c(fixed = ridges[["r = 1e-3"]], ours = ours), `*`, one)
  penalties$paper <- odds * shrunk$target * k
  lapply(penalties, function(penalty) {
    # And rounding, below which the clouds are one point to the kernel.
    scatter <- within + penalty
    direction <- solve(scatter + 1e-12 * max(scatter) * one,
                       means[, 1] - means[, 2])
    list(direction = direction, cut = mean(crossprod(means, direction)))
  })
}

# Which points each rule gives to class 2: a column a rule.
midway_second <- function(rules, sample, x) {
  values <- kernel_matrix(x, sample$x, kernel = kernel_rbf(theta))
  vapply(rules, function(rule) drop(values %*% rule$direction) < rule$cut,
         logical(nrow(x)))
}

midway_errors <- function(sample, new, ridge) {
  second <- midway_second(midway_rules(sample, ridge), sample, new$x)
  colMeans(second != (new$class == 2))
}

# Areas -----------------------------------------------------------------------

# Figures 3 and 4 show one sample of 5 and one of 20 points of each cloud. Here
# the areas of class 2 are counted in many, on a grid over the square from -2 to
# 2, beyond which they hardly change.
area_sizes <- c(5, 20)

# How many pieces the TRUE cells fall into; cells that share a side are one.
count_areas <- function(inside) {
  rows <- seq_len(nrow(inside))
  columns <- seq_len(ncol(inside))
  label <- inside * as.numeric(seq_along(inside))
  repeat {
    wide <- rbind(0, cbind(0, label, 0), 0)
    reached <- inside * pmax(
      label, wide[rows, columns + 1], wide[rows + 2, columns + 1],
      wide[rows + 1, columns], wide[rows + 1, columns + 2]
    )
    if (identical(reached, label)) break
    label <- reached
  }
  length(unique(label[inside]))
}

# For one sample the number of areas, the share of the square, and whether the
# training points are separated, of the paper's form and of r = 1e-3, both cut
# midway.
sample_areas <- function(n, axis, grid) {
  sample <- draw_sample(n)
  rules <- midway_rules(sample)
  second <- midway_second(rules, sample, grid)
  areas <- apply(second, 2, function(inside) {
    count_areas(matrix(inside, length(axis)))
  })
  own <- midway_second(rules, sample, sample$x) == (sample$class == 2)
  c(areas, square = colMeans(second), separated = apply(own, 2, all))
}

# One row for each size, form and number of areas (3 stands for more, too): the
# share of the samples; and over all samples the mean share of the square, and
# in how many the training points are separated.
count_all_areas <- function(sizes, reps, cores) {
  axis <- seq(-2, 2, length.out = 161)
  grid <- as.matrix(expand.grid(axis, axis))
  do.call(rbind, lapply(sizes, function(n) {
    set.seed(20170800 + n)
    found <- do.call(rbind, over(draw_seeds(reps), function(seed) {
      set.seed(seed)
      sample_areas(n, axis, grid)
    }, cores))
    do.call(rbind, lapply(c("fixed", "paper"), function(form) {
      average <- function(name) mean(found[, paste0(name, ".", form)])
      stopifnot(found[, form] > 0)
      counts <- tabulate(pmin(found[, form], 3), 3)
      data.frame(n = n, form = form, areas = 1:3, share = counts / reps,
                 square = average("square"), separated = average("separated"),
                 reps = reps)
    }))
  }))
}

# E k(x, X) of a point X of the clouds, at the squared bandwidth `theta2`.
mean_at <- function(x, theta2) {
  wide <- theta2 + deviation^2
  rowMeans(apply(clouds, 1, function(center) {
    theta2 / wide * exp(-colSums((t(x) - center)^2) / (2 * wide))
  }))
}

# E<S - C, S - T> / E|S - T|^2, the intensity that is best on average, has these
# as numerator and denominator for one sample; C is the covariance of the clouds
# and <T, C> = tr T tr C / p, as in the paper.
oracle_parts <- function(x) {
  p <- nrow(x) - 1
  center <- function(k) {
    k <- k - rowMeans(k)
    k - rep(colMeans(k), each = nrow(k))
  }
  # k(a, X) k(b, X) is k(a, b)^(1/2) times the value at (a + b)/2 of a kernel of
  # half the squared bandwidth.
  k <- kernel_matrix(x, kernel = kernel_rbf(theta))
  middles <- apply(x, 2, function(column) outer(column, column, "+") / 2)
  products <- sqrt(k) * mean_at(middles, theta^2 / 2)
  cross <- sum(diag(center(products - tcrossprod(mean_at(x, theta^2))))) / p
  wide <- theta^2 + 2 * deviation^2
  apart <- as.matrix(stats::dist(clouds))
  true_trace <- 1 - mean(theta^2 / wide * exp(-apart^2 / (2 * wide)))
  own <- center(k) / p
  trace <- sum(diag(own))
  below <- sum(own^2) - trace^2 / p
  c(below - cross + trace * true_trace / p, below)
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
    midway = midway_errors(sample, new, chosen$ridge),
    oracle = oracle_parts(sample$x))
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

# Means and standard errors; `gain`: the error of the fixed ridge less that of
# shrinkage, with a paired t-test, and the same midway for the paper's form.
summarize <- function(found, n) {
  average <- function(name) mean(found[, name])
  spread <- function(name) standard_error(found[, name])
  paired_p <- function(gain) {
    if (stats::sd(gain) == 0) 1 else stats::t.test(gain)$p.value
  }
  gain <- found[, "r = 1e-3"] - found[, "shrinkage"]
  oracle <- average("oracle1") / average("oracle2")
  off <- found[, "oracle1"] - oracle * found[, "oracle2"]
  data.frame(
    n = n, reps = nrow(found), shrinkage = average("shrinkage"),
    shrinkage_se = spread("shrinkage"), fixed = average("r = 1e-3"),
    fixed_se = spread("r = 1e-3"), gain = mean(gain),
    gain_se = standard_error(gain), p = paired_p(gain),
    bayes = average("Bayes rule"), loo = average("loo"),
    lambda = average("lambda"), lambda_se = spread("lambda"),
    oracle = oracle, oracle_se = standard_error(off) / average("oracle2"),
    ridge = average("ridge"), paper = average("midway.paper"),
    paper_se = spread("midway.paper"), midway_ours = average("midway.ours"),
    midway_fixed = average("midway.fixed"),
    paper_p = paired_p(found[, "midway.fixed"] - found[, "midway.paper"]),
    paper_ours_p = paired_p(found[, "midway.ours"] - found[, "midway.paper"])
  )
}

# What is shown ---------------------------------------------------------------

print_results <- function(results, within) {
  per_cent <- function(value) sprintf("%.2f", 100 * value)
  level <- function(p) ifelse(p < 1e-4, "<1e-4", sprintf("%.4f", p))
  show <- function(title, cells) {
    rownames(cells) <- paste("n =", results$n)
    print_block(title, cells)
  }
  if (within != "paper") show(
    "test error in %, paired t-test of the gain, leave-one-out error",
    with(results, cbind(
      "shrunk" = per_cent(shrinkage), "r=1e-3" = per_cent(fixed),
      "gain" = per_cent(gain), "(s.e.)" = sprintf("(%.2f)", 100 * gain_se),
      "p" = level(p), "LOO" = per_cent(loo), "Bayes" = per_cent(bayes)
    ))
  )
  if (within != "ours") show(
    "cut midway, test error in %, paired t-tests against the paper's form",
    with(results, cbind(
      "paper's" = per_cent(paper), "r=1e-3" = per_cent(midway_fixed),
      "p" = level(paper_p), "ours" = per_cent(midway_ours),
      "p" = level(paper_ours_p), "Bayes" = per_cent(bayes)
    ))
  )
  show("intensity of shrinkage, and that which is best on average",
       with(results, cbind(
         "lambda" = sprintf("%.3f", lambda),
         "(s.e.)" = sprintf("(%.3f)", lambda_se),
         "oracle" = sprintf("%.3f", oracle),
         "(s.e.)" = sprintf("(%.3f)", oracle_se)
       )))
}

conclude <- function(results, within) {
  signs <- with(results, list(
    paper = ifelse(paper_p < 0.05, sign(midway_fixed - paper), 0),
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
      "n = %d, direct evaluation, cut midway: error %.4f (shrinkage), %.4f ",
      "(1e-3), lambda %.3f; here %.4f, %.4f, %.3f (s.e. %.3f)."
    ), direct$n[i], direct$shrinkage[i], direct$fixed[i], direct$lambda[i],
    mine$midway_ours, mine$midway_fixed, mine$lambda, mine$lambda_se))
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
  columns <- c(shrinkage = "shrinkage", fixed = "r = 1e-3",
               paper = "paper's form, cut midway",
               midway_fixed = "r = 1e-3, cut midway")
  ylim <- range(results[c(names(columns), "bayes")],
                results$fixed + results$fixed_se)
  panel(results$n, ylim, "Test error", "mean error, one s.e. either way")
  graphics::lines(results$n, results$bayes, col = style["Bayes rule", "col"],
                  lty = 3, lwd = 1.8)
  for (name in names(columns)) {
    draw_curve(results$n, results[[name]], style[columns[[name]], ],
               results[[paste0(name, "_se")]])
  }
}

draw_lambda <- function(results) {
  around <- range(results$lambda - results$lambda_se, results$oracle,
                  results$lambda + results$lambda_se)
  panel(results$n, around, "Intensity of shrinkage", "mean lambda")
  draw_curve(results$n, results$lambda, style["shrinkage", ],
             results$lambda_se)
  draw_curve(results$n, results$oracle, style["Bayes rule", ])
  graphics::text(results$n[2], results$oracle[2], "oracle", adj = c(1.1, 1.3),
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

print_areas <- function(areas) {
  forms <- unique(areas[c("n", "form", "square", "separated")])
  cells <- cbind(matrix(sprintf("%.0f", 100 * areas$share), nrow(forms),
                        byrow = TRUE),
                 sprintf("%.0f", 100 * forms$square),
                 sprintf("%.0f", 100 * forms$separated))
  dimnames(cells) <- list(
    paste0("n = ", forms$n, ", ", ifelse(forms$form == "paper", "paper's form",
                                         "r = 1e-3")),
    c("1 area", "2", "3 or more", "of square", "separated")
  )
  print_block(paste("areas of class 2, % of", areas$reps[1], "samples; its",
                    "share of the square, %; training points"), cells, 11)
}

draw_study <- function(results, small, large) {
  graphics::layout(rbind(1:2, 3:4, 5), heights = c(1, 1.05, 0.18))
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
  if (chosen$quick) sizes <- c(3, 4, 5, 6, 8)
  say("Two classes, of two clouds and of one, n points of each cloud; ", reps,
      " training samples for each n, ", test, " test points of each cloud. ",
      "RBF kernel, theta^2 = 0.1; prior: the shares of the classes.")
  cat("\n")
  results <- do.call(rbind, lapply(sizes, function(n) {
    summarize(run_size(n, reps, test, cores), n)
  }))
  print_results(results, within)
  areas <- count_all_areas(if (chosen$quick) 5 else area_sizes, reps, cores)
  print_areas(areas)
  conclude(results, within)
  numbers <- names(results) != "n"
  results[numbers] <- signif(results[numbers], 6)
  write_table(results, out, "kfda.csv", "n")
  write_table(areas, out, "kfda-areas.csv", c("n", "form", "areas"))
  write_figure(out, "kfda.png", 1500, 1350, function() {
    draw_study(results, 5, 30)
  })
  write_figure(out, "kfda-output.png", 1500, 1180, draw_outputs)
}

main(commandArgs(trailingOnly = TRUE))

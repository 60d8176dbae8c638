# Power of the tests with spectral filters and with many bandwidths, beside the
# plain tests and those of other packages; level of these and of the tests of
# many groups, against models, and of intervals.
#
# two-sample    mmd_test() on eight alternatives, one of them for samples of
#               growing size, and energy::eqdist.etest().
# independence  hsic_test() likewise, energy::dcov.test() and, where it is
#               installed, dHSIC::dhsic.test().
# level         how often each rejects where there is nothing to find, and how
#               often an interval misses.
#
# All tests of a repetition see the same data and start from the same seed. The
# estimators of a kernel mean and the tests: power.R.

usage <- "Usage: Rscript filters.R [options]

  --part two-sample|independence|level|all
                      what to run (all)
  --reps N            data sets for each cell (300, a third of them where
                      samples have 500 points; level: 2000)
  --permutations B    (199, level: 99)
  --out DIR           folder for figures and tables (.)
  --cores N           processes, with the package future.apply (1); the
                      results do not depend on it
  --quick             the smallest form of all: few cells
  --help              this text"

study_name <- "filters.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

# Data ------------------------------------------------------------------------

normal <- function(n, d, sd = 1) {
  matrix(stats::rnorm(n * d), n) * rep(rep_len(sd, d), each = n)
}

# `shift` in the first columns.
shifted <- function(x, shift, columns = ncol(x)) {
  x[, seq_len(columns)] <- x[, seq_len(columns)] + shift
  x
}

equicorrelated <- function(n, d, correlation) {
  sqrt(1 - correlation) * normal(n, d) + sqrt(correlation) * stats::rnorm(n)
}

# Two clusters in the first of two columns, with means 0 and variances 1.
clusters <- function(n, apart = 0.97) {
  cbind(apart * sample(c(-1, 1), n, replace = TRUE) +
          sqrt(1 - apart^2) * stats::rnorm(n), stats::rnorm(n))
}

# A uniform density on the unit cube with P^d bumps and dents, as in Schrab et
# al. (2023, arXiv 2110.15073): 1 + c_d/P sum_nu theta_nu prod_i G(P u_i - nu_i)
# with random signs theta and G up on (-1, -1/2), down on (-1/2, 0). It is below
# 2. From d = 2 on each column alone is uniform.
perturbed <- function(n, d, P) {
  signs <- sample(c(-1, 1), P^d, replace = TRUE)
  out <- matrix(0, 0, d)
  while (nrow(out) < n) {
    u <- matrix(stats::runif(2 * n * d), ncol = d)
    nu <- ceiling(P * u)
    sign <- signs[1 + colSums(t(nu - 1) * P^(seq_len(d) - 1))]
    waves <- apply(matrix(wave(P * u - nu), ncol = d), 1, prod)
    density <- 1 + c(2.7, 7.3)[d] / P * sign * waves
    out <- rbind(out, u[2 * stats::runif(2 * n) < density, , drop = FALSE])
  }
  out[seq_len(n), , drop = FALSE]
}

wave <- function(t) {
  bump <- function(u) ifelse(abs(u) < 1, exp(-1 / (1 - u^2)), 0)
  bump(4 * t + 3) - bump(4 * t + 1)
}

uniform <- function(n, d) matrix(stats::runif(n * d), n)

# n points in each sample, or pairs; `sizes`: the alternative is tried with
# these too.
alternative <- function(n, make, sizes = NULL) {
  list(n = n, make = make, sizes = sizes)
}

low_and_high <- c(1, 1, 1, rep(3, 7))

two_samples <- list(
  "shift of 0.2 in 20 columns" = alternative(40, function(n) {
    list(x = normal(n, 20), y = shifted(normal(n, 20), 0.2))
  }),
  "shift in 3 of 10 columns, of low variance" = alternative(40, function(n) {
    list(x = normal(n, 10, low_and_high),
         y = shifted(normal(n, 10, low_and_high), 0.5, 3))
  }),
  "5 columns 1.4 times as wide" = alternative(40, function(n) {
    list(x = normal(n, 5), y = 1.4 * normal(n, 5))
  }),
  "correlation 0.4 of 10 columns" = alternative(40, function(n) {
    list(x = normal(n, 10), y = equicorrelated(n, 10, 0.4))
  }),
  "two clusters against a normal" = alternative(40, function(n) {
    list(x = normal(n, 2), y = clusters(n))
  }),
  "perturbed uniform, 1 column" = alternative(200, function(n) {
    list(x = uniform(n, 1), y = perturbed(n, 1, 2))
  }),
  "perturbed uniform, 2 columns" = alternative(200, function(n) {
    list(x = uniform(n, 2), y = perturbed(n, 2, 1))
  }),
  "shift of 0.15 in 10 columns" = alternative(100, function(n) {
    list(x = normal(n, 10), y = shifted(normal(n, 10), 0.15))
  }, c(20, 50, 100, 200, 500))
)

noise <- stats::rnorm

pairs_of <- list(
  "linear, one of 10 columns" = alternative(60, function(n) {
    x <- normal(n, 10)
    list(x = x, y = 0.5 * x[, 1] + noise(n))
  }),
  "y = |x|" = alternative(60, function(n) {
    x <- noise(n)
    list(x = x, y = abs(x) + 1.5 * noise(n))
  }),
  "circle" = alternative(60, function(n) {
    angle <- stats::runif(n, 0, 2 * pi)
    list(x = cos(angle) + 0.2 * noise(n), y = sin(angle) + 0.2 * noise(n))
  }),
  "noise as wide as x" = alternative(60, function(n) {
    x <- noise(n)
    list(x = x, y = x * noise(n) + 0.7 * noise(n))
  }),
  "linear, column of low variance" = alternative(60, function(n) {
    x <- normal(n, 5, c(1, 3, 3, 3, 3))
    list(x = x, y = x[, 1] + noise(n))
  }),
  "y = sin 3x" = alternative(60, function(n) {
    x <- stats::runif(n, -pi, pi)
    list(x = x, y = sin(3 * x) + 0.6 * noise(n))
  }),
  "perturbed uniform" = alternative(40, function(n) {
    both <- perturbed(n, 2, 1)
    list(x = both[, 1], y = both[, 2])
  }),
  "linear, one of 5 columns" = alternative(100, function(n) {
    x <- normal(n, 5)
    list(x = x, y = 0.4 * x[, 1] + noise(n))
  }, c(20, 50, 100, 200))
)

# Tests -----------------------------------------------------------------------

bandwidths <- c(0.25, 0.5, 1, 2, 4)
wide <- test_filter("none", factors = bandwidths)
many <- test_filter(factors = c(0.25, 1, 4))
unbiased <- test_control(statistic = "unbiased")

# Functions of data and B that give a p-value.
of_package <- function(test, ...) {
  arguments <- list(...)
  function(data, B) {
    do.call(test, c(list(data$x, data$y, B = B), arguments))$p.value
  }
}

mmd_tests <- list(
  "MMD" = of_package(mmd_test, filter = "none"),
  "order 1" = of_package(mmd_test, filter = test_filter(order = 1)),
  "order 2" = of_package(mmd_test, filter = test_filter(order = 2)),
  "all nine" = of_package(mmd_test, filter = "tikhonov"),
  "nine, iterated" = of_package(mmd_test, filter = "iterated"),
  "nine, Showalter" = of_package(mmd_test, filter = "showalter"),
  "nine, cutoff" = of_package(mmd_test, filter = "cutoff"),
  "nine, 3 bandwidths" = of_package(mmd_test, filter = many),
  "MMD, 5 bandwidths" = of_package(mmd_test, filter = wide),
  "MMD, fuse" = of_package(mmd_test, bandwidths = "fuse"),
  "energy test" = function(data, B) {
    x <- as.matrix(data$x)
    y <- as.matrix(data$y)
    energy::eqdist.etest(rbind(x, y), c(nrow(x), nrow(y)), R = B)$p.value
  }
)

# Five: HSIC and order 1 with four ratios. The default: dependence.R.
hsic_tests <- list(
  "HSIC" = of_package(hsic_test, filter = "none"),
  "HSIC, unbiased" = of_package(hsic_test, filter = "none",
                                control = unbiased),
  "order 1" = of_package(hsic_test, filter = test_filter(order = 1)),
  "all five" = of_package(hsic_test, filter = "tikhonov"),
  "five, unbiased" = of_package(hsic_test, filter = "tikhonov",
                                control = unbiased),
  "HSIC, fuse" = of_package(hsic_test, bandwidths = "fuse"),
  "distance cov." = function(data, B) {
    energy::dcov.test(data$x, data$y, R = B)$p.value
  },
  "dHSIC" = function(data, B) {
    dHSIC::dhsic.test(list(data$x, data$y), B = B)$p.value
  }
)

needs <- c("energy test" = "energy", "distance cov." = "energy",
           "dHSIC" = "dHSIC")

only_installed <- function(tests) {
  there <- vapply(names(tests), function(name) {
    !name %in% names(needs) ||
      requireNamespace(needs[[name]], quietly = TRUE)
  }, NA)
  if (!all(there)) {
    say("Left out, as their packages are not installed: ",
        toString(names(tests)[!there]), ".")
  }
  tests[there]
}

# Okabe-Ito colors; what filters is filled.
look <- function(tests, col, pch) {
  data.frame(row.names = tests, col = col, pch = pch, lty = 1)
}
mmd_style <- look(
  names(mmd_tests),
  c("black", "#56B4E9", "#009E73", "#0072B2", "#0072B2", "#0072B2", "#0072B2",
    "#CC79A7", "#CC79A7", "#E69F00", "#D55E00"),
  c(4, 16, 17, 15, 22, 24, 25, 18, 5, 1, 6)
)
hsic_style <- look(
  names(hsic_tests),
  c("black", "grey50", "#56B4E9", "#0072B2", "#009E73", "#E69F00", "#D55E00",
    "#D55E00"),
  c(4, 3, 16, 15, 17, 1, 6, 2)
)

# Power -----------------------------------------------------------------------

# At the sizes where one decomposition takes long, what the figure needs.
many_points <- 500
for_many_points <- c("MMD", "order 1", "order 2", "all nine", "MMD, fuse",
                     "energy test")

power_cell <- function(name, made, n, tests, reps, permutations, cores) {
  message(sprintf("%-42s n = %d", name, n))
  if (n >= many_points) {
    reps <- max(2, reps %/% 3)
    tests <- tests[intersect(names(tests), for_many_points)]
  }
  tests <- lapply(tests, function(test) {
    function(data) test(data, permutations)
  })
  p <- repeat_tests(function() made$make(n), tests, reps, cores,
                    seed_of(name, n))
  rejected <- rejects(p)
  power <- colMeans(rejected)
  data.frame(
    alternative = name, n = n, test = colnames(p), reps = reps, power = power,
    se = sqrt(power * (1 - power) / reps),
    against_plain = apply(rejected, 2, mcnemar_sign, b = rejected[, 1]),
    usual_n = n == made$n, row.names = NULL
  )
}

power_study <- function(alternatives, tests, style, name, quick, reps,
                        permutations, cores, out) {
  tests <- only_installed(tests)
  plain <- names(tests)[1]
  say("Power in % at level ", nominal, "; ", reps, " data sets for each cell, ",
      permutations, " permutations, RBF kernels with median bandwidths or ",
      "multiples of these; * above, ! below ", plain, "'s by McNemar's test ",
      "at the 5% level.")
  cat("\n")
  # The tests after the fourth are variants of the first four.
  if (quick) {
    alternatives <- alternatives[1]
    tests <- tests[seq_len(4)]
  }
  all <- do.call(rbind, Map(function(label, made) {
    sizes <- if (quick) made$n else sort(unique(c(made$n, made$sizes)))
    do.call(rbind, lapply(sizes, function(n) {
      power_cell(label, made, n, tests, reps, permutations, cores)
    }))
  }, names(alternatives), alternatives))
  rownames(all) <- NULL
  print_cells(all[all$usual_n, ], "alternative")
  growing <- all[all$alternative == names(alternatives)[length(alternatives)], ]
  print_cells(growing, "n")
  compare_all(all[all$usual_n, ], plain)
  write_table(all, out, paste0("filters-", name, ".csv"),
              c("alternative", "n", "test"))
  write_figure(out, paste0("filters-", name, ".png"), 1800, 1000, function() {
    draw_power(all, growing, style[names(tests), ])
  })
  cat("\n")
}

# Tests x alternatives, or sizes; what was not run is left empty.
print_cells <- function(rows, by) {
  tests <- unique(rows$test)
  values <- unique(rows[[by]])
  cells <- vapply(values, function(value) {
    mine <- rows[rows[[by]] == value, ]
    at <- match(tests, mine$test)
    ifelse(is.na(at), "", paste0(sprintf("%.1f", 100 * mine$power[at]),
                                 mark_signs(mine$against_plain[at])))
  }, tests)
  cells <- matrix(cells, length(tests))
  heads <- if (by == "n") paste("n =", values) else letters[seq_along(values)]
  dimnames(cells) <- list(format(tests, width = 19), heads)
  title <- if (by == "n") rows$alternative[1] else
    paste(paste0(heads, ": ", values, ", n = ",
                 rows$n[match(values, rows$alternative)]), collapse = "\n  ")
  print_block(title, cells, 8)
}

# Each test against the plain one over the alternatives.
compare_all <- function(rows, plain) {
  base <- rows[rows$test == plain, ]
  for (name in setdiff(unique(rows$test), plain)) {
    mine <- rows[rows$test == name, ]
    gains <- 100 * (mine$power - base$power)
    say(name, " against ", plain, ": ", count_signs(mine$against_plain),
        sprintf(paste0("; power gained on average %+.1f points, least %+.1f (",
                       "%s), most %+.1f (%s)."), mean(gains), min(gains),
                base$alternative[which.min(gains)], max(gains),
                base$alternative[which.max(gains)]))
  }
  cat("\n")
}

# Rows of points for the alternatives, and curves against n.
draw_power <- function(all, growing, style) {
  graphics::layout(rbind(1:2, 3), widths = c(1.5, 1), heights = c(1, 0.2))
  rows <- all[all$usual_n, ]
  labels <- unique(rows$alternative)
  graphics::par(mar = c(3.6, 17.5, 2.2, 0.8))
  graphics::plot(NA, xlim = c(0, 1), ylim = c(length(labels) + 0.5, 0.5),
                 yaxs = "i", axes = FALSE, xlab = "", ylab = "")
  graphics::abline(h = seq_along(labels) + 0.5, col = "grey88")
  graphics::abline(v = nominal, col = "grey60", lty = 3)
  graphics::axis(1, seq(0, 1, 0.2), lwd = 0, line = -0.6)
  graphics::axis(2, seq_along(labels), labels, las = 1, lwd = 0, line = -0.6)
  graphics::title(xlab = "power at level 0.05", line = 2)
  # Below each other, as many powers are the same.
  tests <- rownames(style)
  y <- match(rows$alternative, labels) +
    0.8 * (match(rows$test, tests) - (length(tests) + 1) / 2) / length(tests)
  graphics::segments(rows$power - rows$se, y, rows$power + rows$se, y,
                     col = style[rows$test, "col"])
  graphics::points(rows$power, y, col = style[rows$test, "col"],
                   pch = style[rows$test, "pch"],
                   bg = "white", lwd = 1.5)
  graphics::par(mar = c(3.6, 3.8, 2.2, 0.8))
  graphics::plot(NA, xlim = range(growing$n), ylim = c(0, 1), log = "x",
                 axes = FALSE, xlab = "", ylab = "")
  graphics::abline(h = seq(0, 1, 0.2), col = "grey92")
  graphics::abline(h = nominal, col = "grey60", lty = 3)
  graphics::axis(1, unique(growing$n), lwd = 0, line = -0.6)
  graphics::axis(2, seq(0, 1, 0.2), las = 1, lwd = 0, line = -0.5)
  graphics::title(main = growing$alternative[1], adj = 0, line = 0.6)
  graphics::title(xlab = "points, n", line = 2)
  for (test in intersect(tests, growing$test)) {
    mine <- growing[growing$test == test, ]
    draw_curve(mine$n, mine$power, style[test, ])
  }
  draw_legend(style, ceiling(length(tests) / 2), 1)
}

# Arguments -------------------------------------------------------------------

main <- function(args) {
  chosen <- read_options(args, list(
    part = "all", reps = "", permutations = "", out = ".", cores = "1",
    quick = FALSE
  ), usage)
  part <- one_of(chosen$part, "--part",
                 c("two-sample", "independence", "level", "all"))
  quick <- chosen$quick
  number <- function(option, usual, least) {
    if (!nzchar(chosen[[option]])) return(usual)
    whole_number(chosen[[option]], paste0("--", option), least)
  }
  reps <- function(usual) number("reps", usual, 2)
  permutations <- function(usual) number("permutations", usual, 19)
  cores <- start_processes(whole_number(chosen$cores, "--cores", 1))
  out <- output_folder(chosen$out)
  use_one_thread()
  run <- function(name, alternatives, tests, style) {
    if (part %in% c(name, "all")) {
      power_study(alternatives, tests, style, name, quick, reps(300),
                  permutations(199), cores, out)
    }
  }
  run("two-sample", two_samples, mmd_tests, mmd_style)
  run("independence", pairs_of, hsic_tests, hsic_style)
  # Thousands of repetitions make no small form.
  if (part %in% c("level", "all") && !quick) {
    source(file.path(here, "filters-level.R"))
    level_study(reps(2000), permutations(99), cores, out)
  }
}

main(commandArgs(trailingOnly = TRUE))

# Which columns matter: kme_effect() with the kernel that left-out losses
# choose, beside one bandwidth for all columns.
#
#   effects  average effects: few of many columns matter, sums of all, planes,
#            factors and counts, trials; columns that are correlated, little
#            overlap and the covariates of Kang and Schafer (2007)
#   doses    an average derivative and a policy, alone and beside six columns of
#            noise
#   fresh    designs on which nothing was chosen
#
# Errors, coverage of 95% intervals, which kernels were taken, and how often the
# few rows for each column are said.

usage <- "Usage: Rscript columns.R [options]

  --part effects|doses|fresh|all  what to measure (all)
  --reps N    samples of each design (at least 2; 200, of 1,000 rows 40)
  --from DIR  show the table in DIR, compute nothing
  --out DIR   folder for the table (.)
  --cores N   processes, with the package future.apply (1)
  --quick     the smallest form: one design
  --help      this text"

study_name <- "columns.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

normal <- stats::rnorm
odds <- stats::plogis

# Effects ---------------------------------------------------------------------

# x makes n rows; `assign` has the log odds of the treatment, `mean` the mean
# outcome of rows x in the arm t; the outcome is drawn about it by `draw`.
design <- function(x, assign, mean, truth = 1,
                   draw = function(mean, x, t) mean + normal(length(mean)),
                   see = identity) {
  # What other processes are given must not wait for names of this one.
  list(x, assign, mean, truth, draw, see)
  function(n) {
    # Arms of fewer than ten rows are refused.
    repeat {
      points <- x(n)
      t <- stats::rbinom(n, 1, odds(assign(points)))
      if (all(tabulate(t + 1L, 2L) >= 10)) break
    }
    x <- points
    if (is.null(colnames(x))) colnames(x) <- paste0("x", seq_len(ncol(x)))
    y <- draw(mean(x, t), x, t)
    x <- see(x)
    list(run = function(...) kme_effect(x, y, t, ...), truth = truth)
  }
}

normals <- function(d) function(n) matrix(normal(d * n), n)

chain <- function(d, r) {
  function(n) {
    x <- matrix(normal(d * n), n)
    for (j in 2:d) x[, j] <- r * x[, j - 1] + sqrt(1 - r^2) * x[, j]
    x
  }
}

mixed <- function(n) {
  cbind(stats::runif(n, -1.5, 1.5), stats::rexp(n) - 1,
        stats::rbinom(n, 1, 0.4), stats::rt(n, 5), normal(n))
}

ordered <- function(n) {
  cbind(sample(5, n, TRUE), sample(3, n, TRUE, c(0.6, 0.3, 0.1)),
        sample(7, n, TRUE)) + 0
}

binary_draw <- function(mean, x, t) stats::rbinom(length(mean), 1, mean)
waves <- function(x, k) rowSums(sin(1.5 * x[, seq_len(k), drop = FALSE]))
sums <- function(x) rowSums(x)

# The mean effect on a rate of `binary`.
binary_truth <- function() {
  rate <- function(a, b, t) odds(-1 + 0.7 * t + 1.2 * a + a * b)
  inner <- function(a) {
    stats::integrate(function(b) {
      (rate(a, b, 1) - rate(a, b, 0)) * stats::dnorm(b)
    }, -8, 8)$value
  }
  stats::integrate(Vectorize(inner), -1.5, 1.5)$value / 3
}

effects <- list(
  ten1 = design(normals(10), function(x) 1.2 * (abs(x[, 1]) - 0.8),
                function(x, t) 2 * abs(x[, 1]) + t),
  ten2 = design(
    normals(10),
    function(x) 1.2 * (abs(x[, 1]) - 0.8) + 0.6 * x[, 1] * x[, 2],
    function(x, t) 2 * abs(x[, 1]) + x[, 1] * x[, 2] + t
  ),
  ten5 = design(
    normals(10), function(x) {
      0.8 * (abs(x[, 1]) - 0.8) + 0.4 * x[, 1] * x[, 2] + 0.4 * x[, 3] -
        0.4 * (x[, 4] > 0) + 0.2
    }, function(x, t) {
      1.5 * abs(x[, 1]) + x[, 1] * x[, 2] + x[, 3] + (x[, 4] > 0) +
        sin(2 * x[, 5]) + t
    }
  ),
  inter = design(
    normals(10), function(x) 0.8 * x[, 1] * x[, 2] + 0.4 * x[, 3],
    function(x, t) x[, 1] * x[, 2] + x[, 3] * x[, 4] + t * (1 + x[, 1] / 2)
  ),
  hidden = design(normals(10), function(x) 1.5 * x[, 1] + 0.5 * x[, 2],
                  function(x, t) {
    0.25 * x[, 1] + 2 * sin(1.5 * x[, 2]) + x[, 3] * x[, 2] + t
  }),
  fifty = design(normals(50), function(x) 0.8 * x[, 1] + 0.4 * x[, 2],
                 function(x, t) 2 * sin(x[, 1]) + x[, 2] + t),
  sparse = design(
    function(n) matrix(stats::rbinom(15 * n, 1, 0.12), n) + 0,
    function(x) -0.3 + 1.5 * x[, 1] + x[, 2] - 2 * x[, 1] * x[, 2],
    function(x, t) 2 * x[, 1] + 1.5 * x[, 2] + t
  ),
  dup = design(
    function(n) {
      x <- matrix(normal(6 * n), n)
      cbind(x, x[, 1:2] + 0.1 * normal(2 * n))
    }, function(x) x[, 1] - 0.6 * x[, 2],
    function(x, t) 2 * sin(x[, 1]) + x[, 2]^2 / 2 + t
  ),
  add4 = design(normals(12), function(x) 0.4 * waves(x, 4),
                function(x, t) 0.8 * waves(x, 4) + t),
  add8 = design(normals(8), function(x) 0.3 * waves(x, 8),
                function(x, t) 0.6 * waves(x, 8) + t),
  mix6 = design(normals(8), function(x) 0.3 * waves(x, 6), function(x, t) {
    0.6 * waves(x, 6) + 0.6 * x[, 1] * x[, 2] + t
  }),
  lin10 = design(normals(10), function(x) 0.25 * sums(x),
                 function(x, t) 0.4 * sums(x) + t),
  rct3 = design(normals(3), function(x) numeric(nrow(x)), function(x, t) {
    x[, 1] + 0.5 * x[, 2] + 0.3 * x[, 3] + t / 2
  }, 0.5),
  rct10 = design(normals(10), function(x) numeric(nrow(x)), function(x, t) {
    x[, 1] + 0.5 * x[, 2] + 0.5 * x[, 3] + 0.3 * x[, 4] + t / 2
  }, 0.5),
  hetero = design(
    mixed, function(x) 0.9 * sin(2 * x[, 1]) + 0.6 * x[, 3] - 0.4 * x[, 2],
    function(x, t) {
      exp(x[, 1]) + x[, 3] * x[, 1] + x[, 2] / 2 + t * (1 + x[, 1])
    }, draw = function(mean, x, t) {
      mean + normal(length(mean)) * (0.4 + abs(x[, 4]) * (1 + t) / 1.5)
    }
  ),
  binary = design(
    mixed, function(x) 0.8 * x[, 1] + x[, 5] / 2, function(x, t) {
      odds(-1 + 0.7 * t + 1.2 * x[, 1] + x[, 1] * x[, 5])
    }, binary_truth(), binary_draw
  ),
  counts = design(
    mixed, function(x) 0.7 * x[, 1] - 0.5 * x[, 3] + 0.3 * x[, 4],
    function(x, t) exp(0.3 + 0.4 * t + 0.6 * x[, 1] - 0.3 * x[, 5]^2),
    exp(0.3) * (exp(0.4) - 1) * sinh(0.9) / 0.9 / sqrt(1.6),
    function(mean, x, t) {
      stats::rnbinom(length(mean), mu = mean, size = 1.5)
    }
  ),
  ordinal = design(
    ordered, function(x) {
      0.5 * (x[, 1] - 3) + 0.8 * (x[, 2] == 3) - 0.2 * (x[, 3] - 4)
    }, function(x, t) {
      2 * (x[, 1] > 3) + (x[, 2] == 2) * x[, 3] / 3 + t * (x[, 1] >= 3)
    }, 0.6
  ),
  strong = design(
    mixed, function(x) 2.2 * x[, 1] - 1.2 * x[, 2] + x[, 5] / 2,
    function(x, t) x[, 1]^2 + 2 * x[, 1] + abs(x[, 2]) + t / 2, 0.5
  ),
  ar20 = design(chain(20, 0.8), function(x) 2 * rowMeans(x), function(x, t) {
    2 * sin(2 * rowMeans(x[, 1:10])) + rowMeans(x[, 6:20])^2 + t
  }),
  ar60 = design(chain(60, 0.9), function(x) 2 * rowMeans(x), function(x, t) {
    2 * sin(2 * rowMeans(x[, 1:30])) + rowMeans(x[, 20:60]) + t
  }),
  ks = design(
    normals(4),
    function(x) -x[, 1] + x[, 2] / 2 - x[, 3] / 4 - x[, 4] / 10,
    function(x, t) 210 + 27.4 * x[, 1] + 13.7 * rowSums(x[, 2:4]), 0,
    see = function(x) {
      cbind(x1 = exp(x[, 1] / 2), x2 = x[, 2] / (1 + exp(x[, 1])) + 10,
            x3 = (x[, 1] * x[, 3] / 25 + 0.6)^3,
            x4 = (x[, 2] + x[, 4] + 20)^2)
    }
  )
)

sizes <- list(
  "60" = c("lin10", "rct3", "ten2"),
  "100" = c("add8", "binary", "hetero", "hidden", "lin10", "ordinal", "rct10",
            "rct3", "strong", "ten2"),
  "300" = setdiff(names(effects), c("rct3", "rct10")),
  "1000" = c("add8", "hetero", "ks", "strong", "ten2")
)

# Doses -----------------------------------------------------------------------

# A dose that a wave and a line of covariates move, and an outcome that the same
# wave moves and the dose does not; or one whose slope depends on a covariate.
doses <- list(
  flat = function(n) {
    x <- matrix(normal(3 * n), n)
    dose <- sin(1.5 * x[, 1]) + x[, 2] / 2 + 0.7 * normal(n)
    y <- 2 * sin(1.5 * x[, 1]) + x[, 2]^2 / 2 + x[, 2] + normal(n)
    list(x = x, dose = dose, y = y, derivative = 0, policy = 0)
  },
  curve = function(n) {
    one <- derivative_design(n)
    list(x = one$x, dose = one$treat, y = one$y, derivative = one$truth,
         policy = one$policy)
  }
)

dose_design <- function(name, of, noise) {
  draw <- doses[[name]]
  list(of, noise)
  function(n) {
    one <- draw(n)
    x <- cbind(one$x, matrix(normal(noise * n), n))
    colnames(x) <- paste0("x", seq_len(ncol(x)))
    more <- function(data) transform(data, treat = treat + 0.5)
    list(run = function(...) {
      kme_effect(x, one$y, one$dose, ..., policy = if (of == "policy") more)
    }, truth = one[[of]])
  }
}

# Designs on which nothing was chosen -----------------------------------------

fresh_of <- function(n, ...) list(n = n, draw = design(...))

# The mean effect of `yes or no`, over midpoints of the three columns.
yes_truth <- function() {
  at <- 1.7 * (seq(-39, 39, by = 2) / 40)
  x <- expand.grid(a = at, b = at, c = at, k = 0:1)
  rate <- function(t) {
    odds(-0.6 + 0.8 * t + 1.1 * sin(2 * x$a) + x$k * x$b + 0.4 * x$c)
  }
  sum((rate(1) - rate(0)) * ifelse(x$k == 1, 0.4, 0.6)) / length(at)^3
}

fresh <- list(
  "factors and numbers" = fresh_of(400L, function(n) {
    data.frame(
      f = factor(sample(letters[1:4], n, TRUE, 4:1)),
      g = factor(sample(c("no", "yes"), n, TRUE, c(0.65, 0.35))),
      u = normal(n), v = stats::rgamma(n, 3) / 2, w = stats::runif(n, -2, 2)
    )
  }, function(x) {
    -0.2 + 0.9 * (x$f == "b") * x$u + 0.8 * (x$g == "yes") * (x$w > 0) -
      0.5 * (x$v - 1.5)
  }, function(x, t) {
    1.5 * (x$f == "b") * x$u + (x$g == "yes") * x$w + log1p(x$v) -
      0.8 * (x$f == "d") + 0.8 * t
  }, 0.8),
  "heavy tails" = fresh_of(
    300L, function(n) matrix(stats::rt(6 * n, 3), n),
    function(x) 1.1 * tanh(x[, 1]) - 0.7 * tanh(x[, 2] / 2),
    function(x, t) {
      2 * tanh(x[, 1]) + x[, 3] / (1 + x[, 3]^2) -
        1.5 * tanh(x[, 2] / 2) * tanh(x[, 4]) + 0.6 * t
    }, 0.6, function(mean, x, t) mean + 0.8 * stats::rt(length(mean), 4)
  ),
  "steps" = fresh_of(
    500L, function(n) matrix(stats::runif(12 * n), n), function(x) {
      -0.9 + 1.2 * (x[, 1] > 0.5) + 0.9 * (x[, 2] > 0.7) -
        0.7 * (x[, 3] < 0.3) * (x[, 1] > 0.5)
    }, function(x, t) {
      1.8 * (x[, 1] > 0.5) + 1.2 * (x[, 2] > 0.7) + (x[, 3] < 0.3) +
        t * (0.5 + (x[, 2] > 0.7))
    }, 0.8
  ),
  "two waves of twenty" = fresh_of(500L, normals(20), function(x) {
    1.3 * cos(1.3 * x[, 1]) + 0.7 * sin(x[, 1] + x[, 2]) - 0.6
  }, function(x, t) {
    2 * cos(1.3 * x[, 1]) + 1.2 * sin(x[, 1] + x[, 2]) + 0.7 * t
  }, 0.7),
  "blocks of columns" = fresh_of(400L, function(n) {
    do.call(cbind, lapply(1:3, function(block) {
      sqrt(0.7) * normal(n) + sqrt(0.3) * matrix(normal(4 * n), n)
    }))
  }, function(x) 0.5 * (rowMeans(x[, 1:4])^2 - 0.8) + 0.7 * x[, 5],
  function(x, t) {
    rowMeans(x[, 1:4])^2 + x[, 5] + x[, 6] / 2 +
      t * (0.5 + 0.8 * rowMeans(x[, 9:12]))
  }, 0.5),
  "yes or no" = fresh_of(400L, function(n) {
    cbind(matrix(stats::runif(4 * n, -1.7, 1.7), n),
          matrix(stats::rbinom(4 * n, 1, 0.4), n))
  }, function(x) -0.3 + 0.9 * sin(2 * x[, 1]) + 0.8 * x[, 5] * x[, 2],
  function(x, t) {
    odds(-0.6 + 0.8 * t + 1.1 * sin(2 * x[, 1]) + x[, 5] * x[, 2] +
           0.4 * x[, 3])
  }, yes_truth(), binary_draw)
)

# What is run -----------------------------------------------------------------

cell <- function(part, design, n, draw) {
  list(part = part, design = design, n = n, draw = draw)
}

cells_of <- function(part) {
  switch(
    part, effects = unlist(lapply(names(sizes), function(n) {
      lapply(sizes[[n]], function(name) {
        cell(part, name, as.integer(n), effects[[name]])
      })
    }), recursive = FALSE),
    doses = unlist(lapply(names(doses), function(name) {
      unlist(lapply(c("derivative", "policy"), function(of) {
        lapply(c(0, 6), function(noise) {
          cell(part, paste0(name, ", ", of, ", noise ", noise), 400L,
               dose_design(name, of, noise))
        })
      }), recursive = FALSE)
    }), recursive = FALSE),
    fresh = lapply(names(fresh), function(name) {
      cell(part, name, fresh[[name]]$n, fresh[[name]]$draw)
    })
  )
}

kernels <- c("isotropic", "learned", "additive", "learned additive")

# One sample: errors and claimed errors with the chosen kernel and with one
# bandwidth, the kernel, and whether few rows were said.
measure <- function(draw, n) {
  sample <- draw(n)
  fit <- watch(sample$run())
  f <- fit$value
  one <- f$columns$isotropic
  c(stats::coef(f)[[1]] - sample$truth, sqrt(stats::vcov(f)[1, 1]),
    one$coefficients[[1]] - sample$truth, one$errors[[1]],
    match(f$columns$kernel, kernels), "columns" %in% fit$said)
}

run_cell <- function(cell, reps, cores) {
  reps <- reps(cell$n)
  message(cell$part, ": ", cell$design, ", n = ", cell$n)
  set.seed(seed_of("columns", cell$part, cell$design, cell$n))
  found <- simplify2array(over(draw_seeds(reps), function(seed) {
    set.seed(seed)
    measure(cell$draw, cell$n)
  }, cores))
  rmse <- function(k) sqrt(mean(found[k, ]^2))
  covered <- function(k) {
    mean(abs(found[k, ]) <= stats::qnorm(0.975) * found[k + 1, ])
  }
  taken <- tabulate(found[5, ], length(kernels)) / reps
  data.frame(
    part = cell$part, design = cell$design, n = cell$n,
    bias = mean(found[1, ]), rmse = rmse(1), covered = covered(1),
    rmse_isotropic = rmse(3), covered_isotropic = covered(3),
    learned = taken[2], additive = taken[3], both = taken[4],
    said = mean(found[6, ]), reps = reps
  )
}

show_table <- function(table) {
  table$ratio <- table$rmse / table$rmse_isotropic
  print(table, digits = 3, row.names = FALSE)
  of <- table[table$part == "effects", ]
  if (nrow(of) > 1) {
    say("Geometric mean of the ratio over the effects: ",
        sprintf("%.3f", exp(mean(log(of$ratio)))), ", largest ",
        sprintf("%.3f", max(of$ratio)), ".")
  }
}

main <- function(args) {
  chosen <- read_options(args, list(part = "all", reps = "", from = "",
                                    out = ".", cores = "1", quick = FALSE),
                         usage)
  parts <- c("effects", "doses", "fresh")
  part <- one_of(chosen$part, "--part", c(parts, "all"))
  if (part != "all") parts <- part
  if (nzchar(chosen$from)) {
    return(show_table(read_table(file.path(chosen$from, "columns.csv"))))
  }
  reps <- function(n) {
    if (nzchar(chosen$reps)) whole_number(chosen$reps, "--reps", 2) else
      if (n < 1000) 200 else 40
  }
  cores <- whole_number(chosen$cores, "--cores", 1)
  folder <- output_folder(chosen$out)
  use_one_thread()
  cores <- start_processes(cores)
  cells <- unlist(lapply(parts, cells_of), recursive = FALSE)
  if (chosen$quick) cells <- cells[1]
  table <- do.call(rbind, lapply(cells, run_cell, reps, cores))
  numbers <- vapply(table, is.double, NA)
  table[numbers] <- lapply(table[numbers], signif, 5)
  write_table(table, folder, "columns.csv", c("part", "design", "n"))
  show_table(table)
}

main(commandArgs(trailingOnly = TRUE))

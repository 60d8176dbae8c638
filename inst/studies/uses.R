# Does a better kernel mean help what is built on it? The same samples, and all
# else alike, with each estimator of the mean.
#
#   witness  the function mu_x - mu_y that tells two samples of 10 or 30 points
#            apart: its mean squared error at points of the plane or space, and
#            that of mu_x alone, for mixtures whose embeddings are known.
#   bags     a number or a class of each bag of 5 or 20 points, by kernel ridge
#            regression on the embeddings (smm(type = "ridge")); the bags of the
#            test are new.
#   density  mixtures of ten normals matched to the estimate until nothing
#            moves, that is without points held out to stop earlier
#            (kme_density(optimize = "all", validate = 0)), and with the weights
#            alone; the log density of new points.
#   center   kernel PCA centered by the estimate: the reconstruction error of
#            new points, five components.
#
# What is measured is an error or a loss; the gain is the part of the KME's that
# is saved, or for log densities the difference, with paired standard errors.

usage <- "Usage: Rscript uses.R [options]

  --part witness|bags|density|center|all  what to measure (all)
  --reps N       repetitions of witness (at least 2; 100); a fifth of them of
                 density and center, a tenth of bags
  --data FOLDER  data sets of uci.R, as their archives offer them.
                 Without it: those that the package mlbench has
  --bags FOLDER  folder with magic04.data and musk1.data, see distributions.R;
                 without it simulated bags only
  --out DIR      folder for the tables (.)
  --cores N      processes, with the package future.apply (1); the results do
                 not depend on it
  --quick        the smallest form: few settings
  --help         this text"

study_name <- "uses.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))
source(file.path(here, "mixtures.R"))

estimators <- compared_estimators
multiples <- c(0.5, 1)

# A row for each estimator: values is reps x estimators, of which less is
# better; `relative`: in per cent of the KME's mean, or as they are.
summarize <- function(values, relative = TRUE) {
  plain <- values[, "KME"]
  gains <- apply(values, 2, function(v) {
    if (relative) gain(plain, v) else
      c(gain = mean(plain - v), se = standard_error(plain - v))
  })
  data.frame(estimator = colnames(values), value = colMeans(values),
             gain = gains["gain", ], se = gains["se", ],
             better = colSums(values < plain), worse = colSums(values > plain),
             of = nrow(values), row.names = NULL)
}

# reps x what `once` gives of a seed, whose names become those of a dimension.
repeated <- function(label, reps, cores, once) {
  message(label)
  set.seed(seed_of("uses", label))
  simplify2array(over(draw_seeds(reps), function(seed) {
    set.seed(seed)
    once()
  }, cores))
}

cells_of <- function(...) expand.grid(..., stringsAsFactors = FALSE)

median_of <- function(x) {
  kme(x, kernel_rbf("median"), scale = FALSE)$kernel$bandwidth
}

# Witness functions -----------------------------------------------------------

# E k(z, X) at the rows of z.
truth_at <- function(z, mixture, theta) {
  d <- ncol(z)
  values <- 0
  for (c in seq_along(mixture$weights)) {
    root <- chol(mixture$covariances[, , c] + diag(theta^2, d))
    scaled <- backsolve(root, t(z) - mixture$means[c, ], transpose = TRUE)
    values <- values + mixture$weights[c] * theta^d / prod(diag(root)) *
      exp(-colSums(scaled^2) / 2)
  }
  values
}

# "shifted": y is x's mixture moved by a normal step of variance 1 in each
# column, else a mixture of its own.
draw_pair <- function(shifted, d, n) {
  a <- draw_sample(d, n + 200)
  b <- if (shifted) {
    step <- stats::rnorm(d)
    moved <- a$mixture
    moved$means <- moved$means + rep(step, each = 4)
    list(x = draw_again(moved, n + 200), mixture = moved)
  } else {
    draw_sample(d, n + 200)
  }
  new <- n + 1:200
  list(x = a$x[1:n, , drop = FALSE], y = b$x[1:n, , drop = FALSE],
       p = a$mixture, q = b$mixture, new = rbind(a$x[new, ], b$x[new, ]))
}

draw_again <- function(mixture, n) {
  component <- sample.int(4, n, replace = TRUE, prob = mixture$weights)
  d <- ncol(mixture$means)
  x <- matrix(stats::rnorm(n * d), n, d)
  for (c in 1:4) {
    rows <- component == c
    x[rows, ] <- x[rows, , drop = FALSE] %*% chol(mixture$covariances[, , c])
  }
  x + mixture$means[component, ]
}

# In the plane a grid over the points, else new points of both.
witness_once <- function(shifted, d, n, times) {
  pair <- draw_pair(shifted, d, n)
  z <- pair$new
  if (d == 2) {
    ends <- apply(z, 2, range)
    z <- as.matrix(expand.grid(seq(ends[1, 1], ends[2, 1], length.out = 25),
                               seq(ends[1, 2], ends[2, 2], length.out = 25)))
  }
  kernel <- kernel_rbf(times * median_of(rbind(pair$x, pair$y)))
  p <- truth_at(z, pair$p, kernel$bandwidth)
  q <- truth_at(z, pair$q, kernel$bandwidth)
  vapply(estimators, function(e) {
    x <- predict(kme(pair$x, kernel, e, scale = FALSE), z)
    y <- predict(kme(pair$y, kernel, e, scale = FALSE), z)
    c("witness" = mean((x - y - p + q)^2), "embedding" = mean((x - p)^2))
  }, c("witness" = 0, "embedding" = 0))
}

run_witness <- function(reps, cores, quick) {
  cells <- cells_of(shifted = c(FALSE, TRUE), d = c(2, 5), times = multiples,
                    n = c(10, 30))
  if (quick) cells <- cells[c(1, nrow(cells)), ]
  do.call(rbind, Map(function(shifted, d, n, times) {
    label <- sprintf("%s, %d columns",
                     if (shifted) "shifted mixtures" else "two mixtures", d)
    found <- repeated(paste("witness:", label, n, times), reps, cores,
                      function() witness_once(shifted, d, n, times))
    do.call(rbind, lapply(c("witness", "embedding"), function(what) {
      cbind(part = "witness", setting = label, what = what, n = n,
            times = times, summarize(t(found[what, , ])))
    }))
  }, cells$shifted, cells$d, cells$n, cells$times))
}

# Bags ------------------------------------------------------------------------

# Each draws list(bags, y: a number for each) of `count` bags of n points.
tasks <- list(
  # How wide a normal distribution is.
  "spread" = function(count, n) {
    y <- stats::runif(count, 0.5, 1.5)
    bags <- lapply(y, function(sd) {
      matrix(stats::rnorm(5 * n, stats::rnorm(1), sd), n)
    })
    list(bags = bags, y = log(y))
  },
  # The share of one of two mixtures of normals.
  "share" = function(count, n) {
    p <- draw_mixtures(2, 5)
    y <- stats::runif(count)
    bags <- lapply(y, function(share) {
      first <- stats::rbinom(1, n, share)
      rbind(draw_again(p[[1]], first), draw_again(p[[2]], n - first))
    })
    list(bags = bags, y = y)
  },
  # The class of a normal distribution that is turned or not, as 1 or -1.
  "turned" = function(count, n) {
    y <- rep_len(c(-1, 1), count)
    bags <- lapply(y, function(sign) {
      u <- matrix(stats::rnorm(2 * n), n)
      cbind(u[, 1], sign * 0.6 * u[, 1] + 0.8 * u[, 2]) +
        rep(stats::rnorm(2, sd = 0.5), each = n)
    })
    list(bags = bags, y = y)
  }
)

draw_mixtures <- function(count, d) {
  lapply(seq_len(count), function(i) draw_sample(d, 1)$mixture)
}

# The share of hadrons among the events of a telescope.
magic_task <- function(folder) {
  data <- utils::read.csv(file.path(folder, "magic04.data"), header = FALSE)
  x <- scale(as.matrix(data[1:10]))
  kinds <- split(seq_len(nrow(x)), data[[11]])
  function(count, n) {
    y <- stats::runif(count)
    bags <- lapply(y, function(share) {
      hadrons <- stats::rbinom(1, n, share)
      x[c(sample(kinds$h, hadrons), sample(kinds$g, n - hadrons)), ]
    })
    list(bags = bags, y = y)
  }
}

# The class of a molecule, of which n conformations at most are known.
musk_task <- function(folder) {
  data <- utils::read.csv(file.path(folder, "musk1.data"), header = FALSE)
  x <- as.matrix(data[3:168])
  rows <- split(seq_len(nrow(x)), factor(data[[1]], unique(data[[1]])))
  y <- ifelse(data[[169]][vapply(rows, `[`, 0L, 1)] == 1, 1, -1)
  rows <- rows[order(y)]
  y <- sort(y)
  function(count, n) {
    order <- sample.int(length(rows))
    bags <- lapply(rows[order], function(r) {
      x[r[sample.int(length(r), min(n, length(r)))], , drop = FALSE]
    })
    list(bags = unname(bags), y = y[order])
  }
}

# Of ridge regression on half of the bags the mean squared error for the others,
# or the share of wrong signs: level2 x estimators.
bags_once <- function(task, n, count, levels2) {
  drawn <- task(2 * count, n)
  train <- seq_len(length(drawn$bags) / 2)
  y <- drawn$y[-train]
  classes <- all(abs(y) == 1)
  kernel <- kernel_rbf(median_of(do.call(rbind, drawn$bags[train])))
  vapply(estimators, function(e) {
    plain <- bag_gram(drawn$bags[train], kernel, e, scale = FALSE)
    vapply(levels2, function(level2) {
      fit <- smm(update(plain, level2 = level2), drawn$y[train],
                 type = "ridge")
      predicted <- predict(fit, drawn$bags[-train])
      if (classes) mean(sign(predicted) != y) else mean((predicted - y)^2)
    }, 0)
  }, numeric(length(levels2)))
}

run_bags <- function(reps, cores, quick, folder) {
  levels2 <- c(linear = "linear", rbf = "rbf")
  if (nzchar(folder)) {
    tasks <- c(tasks, "magic" = magic_task(folder), "musk" = musk_task(folder))
  }
  cells <- cells_of(n = c(5, 20), task = names(tasks))
  # Few molecules have more than five conformations.
  cells <- cells[!(cells$task == "musk" & cells$n == 20), ]
  if (quick) cells <- cells[1, ]
  do.call(rbind, Map(function(task, n) {
    found <- repeated(paste("bags:", task, n), reps, cores, function() {
      bags_once(tasks[[task]], n, 40, levels2)
    })
    do.call(rbind, lapply(names(levels2), function(level2) {
      cbind(part = "bags", setting = task, what = level2, n = n, times = 1,
            summarize(t(found[level2, , ])))
    }))
  }, cells$task, cells$n))
}

# Densities and centers -------------------------------------------------------

data_sets <- c("glass", "vehicle", "wdbc", "abalone", "ionosphere", "vowel")
density_sets <- data_sets[1:4]

# Minus the log density of points that are new, 1,000 at most: what x
# estimators, and the clusters that all begin with.
density_once <- function(x, n) {
  rows <- sample.int(nrow(x))
  new <- x[utils::head(rows[-seq_len(n)], 1000), ]
  x <- x[rows[seq_len(n)], ]
  kernel <- kernel_rbf(median_of(x))
  seed <- draw_seeds(1)
  fit_to <- function(optimize, estimator) {
    set.seed(seed)
    kme_density(x, kernel, estimator, m = 10, scale = FALSE, validate = 0,
                shape = "isotropic", optimize = optimize)
  }
  ways <- c(weights = "weights", all = "all")
  fits <- lapply(estimators, function(e) lapply(ways, fit_to, e))
  loss <- function(log_density) -mean(log_density)
  clusters <- loss(log_mixture(fits[[1]]$weights$start, new))
  cbind(vapply(fits, function(both) {
    vapply(both, function(fit) loss(predict(fit, new, type = "log")), 0)
  }, c(weights = 0, all = 0)), "the clusters" = clusters)
}

# The log density of isotropic normals.
log_mixture <- function(mixture, x) {
  logs <- vapply(seq_along(mixture$weights), function(j) {
    v <- mixture$variances[j]
    away <- rowSums((x - rep(mixture$means[j, ], each = nrow(x)))^2)
    log(mixture$weights[j]) - ncol(x) / 2 * log(2 * pi * v) - away / (2 * v)
  }, numeric(nrow(x)))
  top <- apply(logs, 1, max)
  top + log(rowSums(exp(logs - top)))
}

center_once <- function(x, n, times) {
  rows <- sample.int(nrow(x))
  new <- x[utils::head(rows[-seq_len(n)], 1000), ]
  x <- x[rows[seq_len(n)], ]
  k <- gram(x, kernel_rbf(times * median_of(x)), scale = FALSE)
  vapply(estimators, function(e) {
    mean(reconstruction_error(kme_pca(k, ncomp = 5, center = e), new))
  }, 0)
}

run_density <- function(data, reps, cores, quick) {
  sizes <- if (quick) 50 else c(50, 100)
  data <- data[intersect(density_sets, names(data))]
  cells <- cells_of(n = sizes, data = names(data))
  do.call(rbind, Map(function(name, n) {
    found <- repeated(paste("density:", name, n), reps, cores, function() {
      density_once(data[[name]], n)
    })
    do.call(rbind, lapply(dimnames(found)[[1]], function(what) {
      cbind(part = "density", setting = name, what = what, n = n, times = 1,
            summarize(t(found[what, , ]), relative = FALSE))
    }))
  }, cells$data, cells$n))
}

run_center <- function(data, reps, cores, quick) {
  cells <- cells_of(n = if (quick) 10 else c(10, 30), times = multiples,
                    data = names(data))
  do.call(rbind, Map(function(name, n, times) {
    label <- paste("center:", name, n, times)
    found <- repeated(label, reps, cores, function() {
      center_once(data[[name]], n, times)
    })
    cbind(part = "center", setting = name, what = "reconstruction", n = n,
          times = times, summarize(t(found)))
  }, cells$data, cells$n, cells$times))
}

# What is shown ---------------------------------------------------------------

headings <- c(
  witness = "Squared error saved in %", bags = "Error saved in %",
  density = "Log density of a point gained", center = "Error saved in %"
)

show <- function(table) {
  for (part in unique(table$part)) {
    rows <- table[table$part == part, ]
    shown <- unique(rows$estimator)[-1]
    key <- sprintf("%s, %s, n = %d, x %g", rows$setting, rows$what, rows$n,
                   rows$times)
    marks <- mark_signs(clear_sign(rows$gain, rows$se))
    digits <- if (part == "density") 2 else 1
    text <- paste0(sprintf("%.*f (%.*f)", digits, rows$gain, digits, rows$se),
                   marks)
    cells <- t(matrix(text, length(shown) + 1))[, -1, drop = FALSE]
    dimnames(cells) <- list(unique(key), shown)
    say(part, ": ", headings[[part]], " (s.e.), ", rows$of[1],
        " repetitions; * better, ! worse by more than 2 paired s.e.")
    lines <- cbind(format(c("", unique(key))), rbind(
      formatC(shown, width = 14), apply(cells, 2, formatC, width = 14)
    ))
    cat(apply(lines, 1, paste, collapse = ""), sep = "\n")
    signs <- clear_sign(rows$gain, rows$se)
    say("Against the KME: ", paste(vapply(shown, function(name) {
      paste(name, count_signs(signs[rows$estimator == name]))
    }, ""), collapse = "; "), ".")
    cat("\n")
  }
}

rounded <- function(table) {
  numbers <- c("value", "gain", "se")
  table[numbers] <- lapply(table[numbers], signif, 4)
  table
}

parts <- c("witness", "bags", "density", "center")

main <- function(args) {
  chosen <- read_options(args, list(
    part = "all", reps = "100", data = "", bags = "", out = ".", cores = "1",
    quick = FALSE
  ), usage)
  part <- one_of(chosen$part, "--part", c(parts, "all"))
  if (part != "all") parts <- part
  reps <- whole_number(chosen$reps, "--reps", 2)
  share <- function(of) max(2, reps %/% of)
  out <- output_folder(chosen$out)
  use_one_thread()
  data <- if (any(c("density", "center") %in% parts)) {
    find_data(data_sets, chosen$data, FALSE)
  }
  if (chosen$quick) data <- data["glass"]
  cores <- start_processes(whole_number(chosen$cores, "--cores", 1))
  for (part in parts) {
    table <- switch(
      part, witness = run_witness(reps, cores, chosen$quick),
      bags = run_bags(share(10), cores, chosen$quick, chosen$bags),
      density = run_density(data, share(5), cores, chosen$quick),
      center = run_center(data, share(5), cores, chosen$quick)
    )
    rownames(table) <- NULL
    show(table)
    write_table(rounded(table), out, paste0("uses-", part, ".csv"),
                c("setting", "what", "n", "times", "estimator"))
  }
}

main(commandArgs(trailingOnly = TRUE))

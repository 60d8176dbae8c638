# What kme_weights() and kme_effect() are worth: average effects, derivatives
# and means over other populations, beside weights of a logistic model, entropy
# balancing, augmented weighting and regression.
#
#   designs   bias, root mean squared error and coverage of 95% intervals:
#             binary outcomes with ten covariates, little to strong confounding
#             (Peyrot, Porcher and Petit 2024), beside what they print;
#             the average derivative of a curve; a population that differs; and
#             where it fails: covariates of Kang and Schafer (2007), as they
#             come and as normal scores.
#   overlap   how often the doors warn, or refuse: on designs with overlap, and
#             on others.
#   real      two data sets, of the packages MASS and cobalt.
#
# 100 landmarks, 150 from 1,000 rows on.

usage <- "Usage: Rscript effects.R [options]

  --part designs|overlap|real|all  what to measure (all)
  --reps N    samples of each design (at least 2; 200, of 1,000 rows 100, of 200
              rows 40)
  --from DIR  show the tables in DIR, compute nothing
  --out DIR   folder for the tables (.)
  --cores N   processes, with the package future.apply (1)
  --quick     the smallest form: designs with 200 rows
  --help      this text"

study_name <- "effects.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

# Designs ---------------------------------------------------------------------

normal <- stats::rnorm

# The generator of Peyrot, Porcher and Petit (its file GenerateData.R at
# github.com/EtiennePeyrot/benchmark_balancing_methods) without an effect:
# pairs of the ten columns are correlated, six are cut at 0, and both models are
# logistic with one product of a binary and a squared column.
peyrot <- function(treated, confounding) {
  level <- c(low = 0.7, moderate = 1.2, high = 2.15)[[confounding]]
  starts <- rbind(
    low = c(-1.48, -1.87, -2.73), moderate = c(-0.19, -0.32, -0.54),
    high = c(1.07, 1.20, 1.59)
  )
  outcome_starts <- rbind(
    low = c(-1.299, -1.645, -2.485), moderate = c(-1.3, -1.639, -2.487),
    high = c(-1.296, -1.649, -2.461)
  )
  column <- match(confounding, c("low", "moderate", "high"))
  function(n) {
    x <- matrix(normal(10 * n), n)
    pairs <- rbind(c(1, 5, 0.2), c(3, 8, 0.2), c(2, 6, 0.9), c(4, 9, 0.9))
    for (i in 1:4) {
      r <- pairs[i, 3]
      x[, pairs[i, 2]] <- r * x[, pairs[i, 1]] +
        sqrt(1 - r^2) * x[, pairs[i, 2]]
    }
    cut <- c(1, 3, 5, 6, 8, 9)
    x[, cut] <- x[, cut] > 0
    of_treatment <- x[, 1:7] %*% c(0.8, -0.25, 0.6, -0.4, -0.8, -0.5, 0.7) +
      x[, 1] * x[, 2]^2 / 2
    of_outcome <- x[, c(1:4, 8:10)] %*%
      c(0.9, -1.08, -2.19, -0.6, 0.71, -0.19, 0.26) + x[, 3] * x[, 4]^2 / 2
    draw <- function(start, index) {
      stats::rbinom(n, 1, stats::plogis(start + level * index))
    }
    list(x = x, treat = draw(starts[treated, column], of_treatment),
         y = draw(outcome_starts[treated, column], of_outcome), truth = 0)
  }
}

# Kang and Schafer (2007): four normal columns, of which others are observed.
kang_schafer <- function(see) {
  function(n) {
    z <- matrix(normal(4 * n), n)
    y <- 210 + drop(z %*% c(27.4, 13.7, 13.7, 13.7)) + normal(n)
    treat <- stats::rbinom(n, 1, stats::plogis(z %*% c(-1, 0.5, -0.25, -0.1)))
    x <- cbind(exp(z[, 1] / 2), z[, 2] / (1 + exp(z[, 1])) + 10,
               (z[, 1] * z[, 3] / 25 + 0.6)^3, (z[, 2] + z[, 4] + 20)^2)
    list(x = see(x), treat = treat, y = y, truth = 0)
  }
}

normal_scores <- function(x) {
  apply(x, 2, function(column) {
    stats::qnorm((rank(column) - 0.5) / length(column))
  })
}

# Two arms of n rows each and n rows of another population, over which the mean
# of the second arm is wanted.
shift_design <- function(shift, spread) {
  function(n) {
    x <- matrix(normal(6 * n), 2 * n)
    curve <- sin(2 * x[, 1]) + x[, 1] * x[, 2] + x[, 3]^2 / 2
    list(x = x, treat = rep(0:1, n), y = curve + normal(2 * n),
         target = shift + spread * matrix(normal(3 * n), n),
         truth = sin(2 * shift) * exp(-2 * spread^2) + shift^2 +
           (shift^2 + spread^2) / 2)
  }
}

in_arms <- c("effect", "effect, 1x", "weights", "logistic", "entropy",
             "augmented", "no weights")

# With many rows half of the samples, at one bandwidth.
design <- function(group, name, n, draw, functional = "ate", methods = in_arms,
                   reps = if (n < 1000) 200 else 100) {
  if (n >= 1000) methods <- setdiff(methods, "effect, 1x")
  list(group = group, name = name, n = n, draw = draw, functional = functional,
       methods = methods, reps = reps)
}

of_peyrot <- function(treated, confounding, n, ...) {
  design("binary", paste0(treated, ", ", confounding), n,
         peyrot(treated, confounding), ...)
}

of_derivative <- function(n) {
  design("derivative", "curve", n, derivative_design, "derivative",
         c("effect", "effect, 1x", "plug-in", "least squares"))
}

of_shift <- function(n) {
  design("shift", "half a deviation", n, shift_design(0.5, 0.8), "means",
         setdiff(in_arms, "augmented"))
}

designs <- list(
  of_peyrot("moderate", "moderate", 200, reps = 40),
  of_peyrot("low", "low", 500),
  of_peyrot("moderate", "moderate", 500),
  of_peyrot("moderate", "high", 500),
  of_peyrot("low", "high", 500),
  of_peyrot("moderate", "moderate", 1000),
  of_peyrot("moderate", "high", 1000),
  of_peyrot("moderate", "moderate", 1000, functional = "att"),
  of_derivative(500),
  of_derivative(1000),
  of_shift(500),
  of_shift(1000),
  design("fails", "Kang-Schafer", 1000, kang_schafer(identity)),
  design("fails", "..., normal scores", 1000, kang_schafer(normal_scores))
)

# Estimates -------------------------------------------------------------------

landmarks_for <- function(n) if (n < 1000) 100 else 150

# The estimate and its error, of the last coefficient.
fit_effect <- function(data, functional, kernel = NULL) {
  found <- watch(kme_effect(
    data$x, data$y, data$treat, functional = functional, kernel = kernel,
    target = data$target, control = list(
      landmarks = landmarks_for(length(data$y)), scale = TRUE
    )
  ))
  fit <- found$value
  last <- length(coef(fit))
  list(estimate = c(coef(fit)[[last]], sqrt(vcov(fit)[last, last])),
       plugin = fit$plugin[[last]], said = found$said)
}

fit_weights <- function(data, functional) {
  landmarks <- landmarks_for(length(data$y))
  found <- watch(if (functional == "means") {
    arm <- data$treat == 1
    kme_weights(data$x[arm, ], data$target, landmarks = landmarks)
  } else {
    kme_weights(data$x, treat = data$treat, estimand = functional,
                landmarks = landmarks)
  })
  w <- if (is.null(found$value)) NA else weights(found$value)
  if (functional == "means") w <- replace(data$y, data$treat == 1, w)
  list(estimate = weighted(data, functional, w), said = found$said)
}

# Means of arms and their difference, with errors at given weights.
weighted <- function(data, functional, w) {
  of <- function(arm) {
    here <- data$treat == arm
    y <- data$y[here]
    w <- w[here] / sum(w[here])
    middle <- sum(w * y)
    c(middle, sum((w * (y - middle))^2))
  }
  found <- of(1)
  if (functional != "means") found <- found - c(1, -1) * of(0)
  c(found[1], sqrt(found[2]))
}

# Probabilities of the first kind of rows by a logistic model.
probabilities <- function(x, first) {
  suppressWarnings(stats::glm.fit(cbind(1, x), first, family =
                                    stats::binomial())$fitted.values)
}

logistic_weights <- function(data, functional) {
  if (functional == "means") {
    arm <- data$x[data$treat == 1, ]
    p <- probabilities(rbind(arm, data$target),
                       rep(0:1, c(nrow(arm), nrow(data$target))))
    return(replace(data$y, data$treat == 1, (p / (1 - p))[seq_len(nrow(arm))]))
  }
  p <- probabilities(data$x, data$treat)
  if (functional == "att") ifelse(data$treat == 1, 1, p / (1 - p)) else
    1 / ifelse(data$treat == 1, p, 1 - p)
}

# Weights of largest entropy whose means of the columns are those of the target
# (Hainmueller 2012), by the dual.
entropy_balance <- function(x, target) {
  z <- x - rep(colMeans(target), each = nrow(x))
  share <- function(b) {
    w <- exp(drop(z %*% b) - max(z %*% b))
    w / sum(w)
  }
  dual <- function(b) {
    along <- drop(z %*% b)
    max(along) + log(sum(exp(along - max(along))))
  }
  found <- stats::optim(numeric(ncol(z)), dual, function(b) {
    colSums(share(b) * z)
  }, method = "BFGS", control = list(maxit = 500, reltol = 1e-12))
  share(found$par)
}

entropy_weights <- function(data, functional) {
  w <- rep(1, length(data$y))
  for (arm in switch(functional, ate = 0:1, att = 0, means = 1)) {
    here <- data$treat == arm
    target <- switch(functional, ate = data$x, means = data$target,
                     att = data$x[data$treat == 1, ])
    w[here] <- entropy_balance(data$x[here, ], target)
  }
  w
}

# Lines in each arm, corrected by logistic weights.
augmented <- function(data, functional) {
  t <- data$treat
  p <- probabilities(data$x, t)
  line <- function(arm) {
    fit <- stats::lm.fit(cbind(1, data$x)[t == arm, ], data$y[t == arm])
    drop(cbind(1, data$x) %*% fit$coefficients)
  }
  y0 <- line(0)
  if (functional == "att") {
    part <- (t - (1 - t) * p / (1 - p)) * (data$y - y0) / mean(t)
    middle <- mean(part)
    return(c(middle, standard_error(part - t / mean(t) * middle)))
  }
  y1 <- line(1)
  part <- y1 - y0 + t / p * (data$y - y1) - (1 - t) / (1 - p) * (data$y - y0)
  c(mean(part), standard_error(part))
}

# With errors for unequal variances; the coefficient of the second column.
regression <- function(x, y) {
  fit <- stats::lm.fit(cbind(1, x), y)
  inverse <- chol2inv(qr.R(fit$qr))
  inside <- crossprod(cbind(1, x) * fit$residuals)
  c(fit$coefficients[[2]], sqrt((inverse %*% inside %*% inverse)[2, 2]))
}

# Of one sample a row for each method: estimate, error, and what was said.
measure <- function(data, design) {
  of <- design$functional
  fit <- fit_effect(data, of)
  found <- lapply(design$methods, function(way) {
    switch(
      way, effect = fit,
      "effect, 1x" = fit_effect(data, of, kernel_rbf()),
      weights = fit_weights(data, of),
      "plug-in" = list(estimate = c(fit$plugin, NA)),
      list(estimate = switch(
        way,
        logistic = weighted(data, of, logistic_weights(data, of)),
        entropy = weighted(data, of, entropy_weights(data, of)),
        augmented = augmented(data, of),
        "no weights" = weighted(data, of, rep(1, length(data$y))),
        "least squares" = regression(cbind(data$treat, data$x), data$y)
      ))
    )
  })
  t(vapply(found, function(one) {
    c(one$estimate - c(data$truth, 0), "overlap" %in% one$said,
      "border" %in% one$said)
  }, numeric(4)))
}

run_design <- function(design, reps, cores) {
  message(design$name, ", ", design$functional, ", n = ", design$n)
  set.seed(seed_of("effects", design$group, design$name, design$functional,
                   design$n))
  found <- over(draw_seeds(reps), function(seed) {
    set.seed(seed)
    measure(design$draw(design$n), design)
  }, cores)
  found <- simplify2array(found)
  of <- function(column) matrix(found[, column, ], length(design$methods))
  mean_of <- function(values) rowMeans(values, na.rm = TRUE)
  error <- of(1)
  rmse <- sqrt(mean_of(error^2))
  own <- startsWith(design$methods, "effect") | design$methods == "weights"
  said <- function(column) ifelse(own, mean_of(of(column)), NA)
  data.frame(
    group = design$group, design = design$name,
    functional = design$functional, n = design$n, method = design$methods,
    bias = mean_of(error), rmse = rmse,
    rmse_se = apply(error^2, 1, stats::sd, na.rm = TRUE) / sqrt(reps) / rmse /
      2,
    claimed = mean_of(of(2)),
    covered = mean_of(abs(error) <= stats::qnorm(0.975) * of(2)),
    overlap = said(3), border = said(4), failed = rowMeans(is.na(error)),
    reps = reps
  )
}

run_designs <- function(reps, cores, quick) {
  do.call(rbind, lapply(designs[if (quick) 1 else TRUE], function(design) {
    run_design(design, reps(design$reps), cores)
  }))
}

# Overlap ---------------------------------------------------------------------

# Five columns, of which the first two lead to the treatment.
assigned <- function(strength, d = 5) {
  function(n) {
    x <- matrix(normal(d * n), n)
    treat <- stats::rbinom(n, 1, stats::plogis(strength * rowSums(x[, 1:2])))
    list(x = x, treat = treat, y = x[, 1] + normal(n))
  }
}

# Treated rows beyond what controls have.
apart <- function(n) {
  x <- matrix(normal(3 * n), n)
  treat <- rep(0:1, length.out = n)
  x[treat == 1, 1] <- x[treat == 1, 1] + 4
  list(x = x, treat = treat, y = x[, 1] + normal(n))
}

of_overlap <- function(draw, functional = "ate", sizes = 500) {
  list(draw = draw, functional = functional, sizes = sizes)
}

overlap_designs <- list(
  clean = list(
    "randomized" = of_overlap(assigned(0), sizes = c(200, 500)),
    "randomized, 20 columns" = of_overlap(assigned(0, 20)),
    "weak assignment" = of_overlap(assigned(0.5), sizes = c(200, 500)),
    "low, low" = of_overlap(peyrot("low", "low")),
    "moderate, moderate" = of_overlap(peyrot("moderate", "moderate")),
    "moderate, moderate, att" = of_overlap(peyrot("moderate", "moderate"),
                                           "att"),
    "half a deviation" = of_overlap(shift_design(0.5, 0.8), "means"),
    "curve" = of_overlap(derivative_design, "derivative")
  ),
  made = list(
    "strong assignment" = of_overlap(assigned(3), sizes = c(200, 500)),
    "apart, att" = of_overlap(apart, "att", c(200, 500)),
    "two deviations" = of_overlap(shift_design(2, 0.8), "means"),
    "low, high, att" = of_overlap(peyrot("low", "high"), "att")
  )
)

run_overlap <- function(reps, cores, quick) {
  rows <- lapply(if (quick) "made" else names(overlap_designs), function(kind) {
    of_kind <- overlap_designs[[kind]]
    lapply(names(of_kind)[if (quick) 1 else TRUE], function(name) {
      design <- of_kind[[name]]
      lapply(design$sizes[if (quick) 1 else TRUE], function(n) {
        message("overlap, ", name, ", n = ", n)
        set.seed(seed_of("effects", "overlap", name, n))
        found <- over(draw_seeds(reps(if (n == 200) 40 else 200)),
                      function(seed) {
          set.seed(seed)
          data <- design$draw(n)
          of <- design$functional
          said <- function(one) {
            c(c("overlap", "border") %in% one$said, is.na(one$estimate[1]))
          }
          c(said(fit_effect(data, of)), if (of == "derivative") rep(NA, 3) else
            said(fit_weights(data, of)))
        }, cores)
        rates <- rowMeans(simplify2array(found))
        data.frame(kind = kind, design = name, n = n,
                   effect = rates[1], effect_border = rates[2],
                   weights = rates[4], weights_border = rates[5],
                   weights_refused = rates[6], reps = length(found))
      })
    })
  })
  do.call(rbind, unlist(unlist(rows, recursive = FALSE), recursive = FALSE))
}

# Real data -------------------------------------------------------------------

set_of <- function(name, package) {
  box <- new.env()
  utils::data(list = name, package = package, envir = box)
  box[[name]]
}

log_incomes <- function(data) {
  data[c("re74", "re75")] <- log1p(data[c("re74", "re75")])
  data
}

applications <- list(
  # Weights of newborn children in grams, by smoking of their mothers.
  birthwt = list(
    package = "MASS", functional = "ate", reference = "0",
    formula = bwt ~ smoke,
    data = function() {
      data <- set_of("birthwt", "MASS")
      data$race <- factor(data$race)
      data
    }, covariates = ~ age + lwt + race + ptl + ht + ui + ftv
  ),
  # Incomes in 1978 after a training; controls are of another survey.
  lalonde = list(
    package = "cobalt", functional = "att", reference = "0",
    formula = re78 ~ treat, data = function() set_of("lalonde", "cobalt"),
    covariates = ~ age + educ + race + married + nodegree + re74 + re75
  ),
  "lalonde, logarithms" = list(
    package = "cobalt", functional = "att", reference = "0",
    formula = re78 ~ treat,
    data = function() log_incomes(set_of("lalonde", "cobalt")),
    covariates = ~ age + educ + race + married + nodegree + re74 + re75
  )
)

run_application <- function(name) {
  message(name)
  job <- applications[[name]]
  data <- job$data()
  x <- stats::model.matrix(job$covariates, data)[, -1]
  names <- all.vars(job$formula)
  plain <- list(x = x, y = data[[names[1]]], treat = data[[names[2]]])
  effect <- watch(kme_effect(job$formula, job$covariates, data,
                             functional = job$functional,
                             reference = job$reference))
  w <- watch(kme_weights(stats::update(job$covariates, stats::reformulate(
    ".", names[2]
  )), data, estimand = job$functional))
  fit <- effect$value
  found <- list(
    effect = c(coef(fit)[[1]], sqrt(vcov(fit)[1, 1])),
    weights = weighted(plain, "ate", weights(w$value)),
    augmented = augmented(plain, job$functional),
    regression = regression(cbind(plain$treat, x), plain$y),
    "difference of means" = weighted(plain, "ate", rep(1, nrow(data)))
  )
  found <- do.call(rbind, found)
  half <- stats::qnorm(0.975) * found[, 2]
  ess <- function(w) sum(w)^2 / sum(w^2)
  w <- weights(w$value)
  rows <- c(sum(vapply(fit$fits, `[[`, 0, "ess")),
            ess(w[plain$treat == 0]), NA, NA, NA)
  said <- c(paste(effect$said, collapse = " "), rep("", 4))
  data.frame(data = name, n = nrow(data), method = rownames(found),
             estimate = found[, 1], se = found[, 2], lwr = found[, 1] - half,
             upr = found[, 1] + half, effective = rows, said = said)
}

run_real <- function(quick) {
  wanted <- applications[if (quick) 1 else TRUE]
  here <- vapply(wanted, function(job) {
    nzchar(system.file(package = job$package))
  }, NA)
  if (!all(here)) {
    say("Not shown, as a package is not installed: ",
        toString(names(wanted)[!here]), ".")
  }
  if (any(here)) do.call(rbind, lapply(names(wanted)[here], run_application))
}

# The run ---------------------------------------------------------------------

keys <- list(designs = c("design", "functional", "n", "method"),
             overlap = c("design", "n"), real = c("data", "method"))

show_designs <- function(table) {
  printed <- read_table(file.path(here, "printed", "peyrot.csv"))
  names <- paste0(table$group, ": ", table$design, ", ", table$functional,
                  ", n = ", table$n)
  for (name in unique(names)) {
    mine <- table[names == name, ]
    theirs <- printed[printed$design == mine$design[1] &
                        printed$functional == mine$functional[1] &
                        printed$n == mine$n[1], ]
    cells <- cbind(
      bias = sprintf("%.4f", mine$bias), rmse = sprintf("%.4f", mine$rmse),
      "(se)" = sprintf("%.4f", mine$rmse_se),
      claimed = sprintf("%.4f", mine$claimed),
      covered = sprintf("%.3f", mine$covered),
      overlap = sprintf("%.2f", mine$overlap)
    )
    rownames(cells) <- mine$method
    cells[cells == "NA" | cells == "NaN"] <- ""
    if (nrow(theirs) > 0) {
      more <- cells[rep(1, nrow(theirs)), , drop = FALSE]
      more[] <- ""
      more[, "rmse"] <- sprintf("%.4f", theirs$rmse)
      more[!is.na(theirs$covered), "covered"] <-
        sprintf("%.3f", theirs$covered)[!is.na(theirs$covered)]
      rownames(more) <- paste(theirs$method, "*")
      cells <- rbind(cells, more)
    }
    print_block(name, cells, 9)
  }
  say("* printed by Peyrot, Porcher and Petit; others: mean of the samples.")
}

# Errors as times those of kme_effect(), a row for each design.
draw_designs <- function(table) {
  names <- unique(paste0(table$design, ", ", table$functional, ", ", table$n))
  style <- data.frame(
    row.names = c("weights", "logistic", "entropy", "augmented",
                  "least squares"),
    col = c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "black"),
    pch = c(16, 17, 15, 18, 4)
  )
  first <- table[table$method == "effect", ]
  graphics::par(mar = c(4, 13, 3, 1), las = 1)
  at <- rev(seq_along(names))
  graphics::plot(1, type = "n", log = "x", yaxt = "n", ylab = "",
                 xlim = c(0.6, 6), ylim = range(at) + c(-0.5, 0.5),
                 xlab = "root mean squared error, to that of kme_effect()")
  graphics::axis(2, at, names, lwd = 0)
  graphics::abline(v = 1, col = "grey60")
  graphics::abline(h = at, col = "grey90")
  for (way in rownames(style)) {
    mine <- table[table$method == way, ]
    where <- match(paste(mine$design, mine$functional, mine$n),
                   paste(first$design, first$functional, first$n))
    graphics::points(mine$rmse / first$rmse[where], at[where],
                     pch = style[way, "pch"], col = style[way, "col"])
  }
  graphics::legend(graphics::grconvertX(0.5, "ndc"),
                   graphics::grconvertY(1, "ndc"), rownames(style), xjust = 0.5,
                   pch = style$pch, col = style$col, horiz = TRUE, bty = "n",
                   xpd = NA)
}

show_part <- function(part, folder) {
  file <- file.path(folder, paste0("effects-", part, ".csv"))
  if (!file.exists(file)) return(invisible())
  table <- read_table(file)
  if (part == "designs") {
    show_designs(table)
    write_figure(folder, "effects.png", 1100, 800, function() {
      draw_designs(table)
    })
  } else {
    print(table, digits = 3, row.names = FALSE)
  }
}

rounded <- function(table) {
  numbers <- vapply(table, is.double, NA)
  table[numbers] <- lapply(table[numbers], signif, 5)
  table
}

main <- function(args) {
  chosen <- read_options(args, list(part = "all", reps = "", from = "",
                                    out = ".", cores = "1", quick = FALSE),
                         usage)
  parts <- names(keys)
  part <- one_of(chosen$part, "--part", c(parts, "all"))
  if (part != "all") parts <- part
  reps <- function(usual) {
    if (nzchar(chosen$reps)) whole_number(chosen$reps, "--reps", 2) else usual
  }
  cores <- whole_number(chosen$cores, "--cores", 1)
  folder <- chosen$from
  if (!nzchar(folder)) {
    folder <- output_folder(chosen$out)
    use_one_thread()
    cores <- start_processes(cores)
    for (name in parts) {
      table <- switch(
        name, designs = run_designs(reps, cores, chosen$quick),
        overlap = run_overlap(reps, cores, chosen$quick),
        real = run_real(chosen$quick)
      )
      if (is.null(table)) next
      write_table(rounded(table), folder, paste0("effects-", name, ".csv"),
                  keys[[name]])
    }
  }
  for (name in parts) show_part(name, folder)
}

main(commandArgs(trailingOnly = TRUE))

# What rkhs_iv() is worth where instruments may be weak: method "weak", the
# default, beside "classic", two-stage least squares on lines and on cubic
# B-splines, and what its intervals and warnings are worth.
#
#   bed       24 designs: irrelevant, weak and strong instruments; binary,
#             grouped and many; heavy tails; errors that depend on z; two
#             columns; controls. The rule of strength, and the simplest one in
#             its place ("simple"). Of the first 18 some helped to choose the
#             rule, by other samples; the six of the group "fresh" did not.
#   bars      what the method should reach: irrelevant instruments, F about 8,
#             30 groups, lines with F >= 60, strong curves.
#   coverage  of pointwise 95% intervals, at four points of six designs.
#   given     instruments beside an exogenous regressor on both sides: noise,
#             weak and valid ones; a binary instrument, a binary treatment.
#   real      average slopes on data of the package AER, with intervals.
#
# Errors are mean squares of g over the points in the central 95% of x.

usage <- "Usage: Rscript weak.R [options]

  --part bed|bars|coverage|given|real|all  what to measure (all)
  --reps N    samples of each design (at least 2; bed: 40, lines and curves of
              bars: 60, given: 100, else 200)
  --from DIR  show the tables in DIR, compute nothing
  --out DIR   folder for the tables (.)
  --cores N   processes, with the package future.apply (1)
  --quick     the smallest form: a few designs with 300 rows, the smallest data
  --help      this text"

study_name <- "weak.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

# Designs ---------------------------------------------------------------------

# list(x, z, y, truth: g at the rows; w: a control). u is the common cause.
normal <- stats::rnorm
outcome <- function(x, z, truth, u, noise = 1 / 3, w = NULL) {
  list(x = x, z = z, y = truth + u + noise * normal(length(u)), truth = truth,
       w = w)
}

# x = a z + b u + c e, for the truth `g` of x.
simple <- function(g, a, b = 0.7, c = 0.7, noise = 1 / 3) {
  function(n) {
    u <- normal(n)
    z <- normal(n)
    x <- (if (is.function(a)) a(n) else a) * z + b * u + c * normal(n)
    outcome(x, z, g(x), u, noise)
  }
}

zero <- function(x) 0 * x
# The coefficient of a standard instrument at which F is about `f`.
strength <- function(f) function(n) sqrt(f / n)

in_groups <- function(shifts, g = identity) {
  function(n) {
    u <- normal(n)
    level <- sample(length(shifts), n, TRUE)
    x <- shifts[level] + 0.7 * u + 0.7 * normal(n)
    outcome(x, factor(level), g(x), u)
  }
}

bed_designs <- list(
  "irrelevant, heavy tails" = function(n) {
    u <- stats::rt(n, 3) / 1.7
    outcome(u + 0.8 * stats::rt(n, 4), stats::runif(n), 0 * u, u, 0.5)
  },
  "irrelevant, binary" = function(n) {
    u <- normal(n)
    outcome(0.6 * u + 0.8 * normal(n), stats::rbinom(n, 1, 0.4), 0 * u, 1.5 * u)
  },
  "irrelevant, 15 columns" = function(n) {
    u <- normal(n)
    outcome(0.7 * u + 0.7 * normal(n), matrix(normal(n * 15), n), 0 * u, u)
  },
  "irrelevant, variance" = function(n) {
    z <- normal(n)
    u <- normal(n) * sqrt(0.3 + z^2)
    outcome(u + normal(n), z, 0 * u, u)
  },
  "line, F 8" = simple(identity, strength(8)),
  "line, binary, F 20" = function(n) {
    u <- normal(n)
    z <- stats::rbinom(n, 1, 0.5)
    x <- sqrt(20 / n) * (2 * z - 1) + 0.7 * u + 0.7 * normal(n)
    outcome(x, z, x / 2, u)
  },
  "line, 25 groups" = function(n) {
    shifts <- rep_len(c(-1, 0, 1, 0.5, -0.5), 25) * sqrt(3.5 * 25 / n)
    in_groups(shifts)(n)
  },
  "line, 10 columns" = function(n) {
    u <- normal(n)
    z <- matrix(normal(n * 10), n)
    x <- rowSums(z) * sqrt(4 / n) + 0.7 * u + 0.7 * normal(n)
    outcome(x, z, x / 2, u)
  },
  "line, heavy tails" = function(n) {
    u <- stats::rt(n, 4) / 1.4
    z <- normal(n)
    x <- sqrt(25 / n) * z + 0.7 * u + 0.5 * stats::rt(n, 4)
    outcome(x, z, x, u)
  },
  "line, variance" = function(n) {
    z <- normal(n)
    u <- normal(n) * (0.4 + abs(z))
    x <- 0.7 * z + 0.6 * u + 0.4 * normal(n)
    outcome(x, z, x, u)
  },
  "logistic" = simple(function(x) 2 / (1 + exp(-3 * x)), 0.9, 0.4, 0.4),
  "cosine" = simple(function(x) cos(2 * x), 0.5, 0.6, 0.6),
  "parabola, 12 groups" = function(n) {
    u <- normal(n)
    level <- sample(12, n, TRUE)
    x <- (level - 6.5) / 3.5 + 0.5 * u + 0.3 * normal(n)
    outcome(x, factor(level), x^2 / 2, u)
  },
  "curve, heavy tails" = function(n) {
    u <- stats::rt(n, 4) / 1.4
    z <- stats::rt(n, 5)
    x <- 0.9 * z + 0.4 * u + 0.4 * stats::rt(n, 5)
    outcome(x, z, tanh(2 * x), u)
  },
  "curve, a control" = function(n) {
    u <- normal(n)
    z <- normal(n)
    w <- normal(n)
    x <- 0.7 * z + 0.4 * u + 0.4 * normal(n) + 0.3 * w
    outcome(x, z, tanh(2 * x) + w / 2, u, w = w)
  },
  "two columns" = function(n) {
    u <- normal(n)
    z <- matrix(normal(2 * n), n)
    x <- z + cbind(0.5 * u + 0.4 * normal(n), 0.3 * u + 0.4 * normal(n))
    outcome(x, z, sin(x[, 1]) + x[, 2] / 2, u)
  },
  "exogenous column" = function(n) {
    u <- normal(n)
    z <- normal(n)
    w <- normal(n)
    x <- cbind(0.6 * z + 0.5 * u + 0.5 * normal(n) + 0.3 * w, w)
    outcome(x, cbind(z, w), x[, 1] + cos(w), u)
  },
  "... alone relevant" = function(n) {
    u <- normal(n)
    w <- normal(n)
    x <- cbind(0.7 * u + 0.6 * normal(n) + 0.3 * w, w)
    outcome(x, cbind(normal(n), w), sin(w), u)
  }
)

fresh_designs <- list(
  "irrelevant, 5 levels" = function(n) {
    u <- normal(n)
    outcome(0.8 * u + 0.5 * stats::rexp(n), factor(sample(5, n, TRUE)), 0 * u,
            u)
  },
  "irrelevant, 3 columns" = function(n) {
    u <- normal(n)
    outcome(0.5 * u + normal(n), matrix(stats::runif(3 * n), n), 0 * u, 2 * u)
  },
  "line, 4 columns, F 10" = function(n) {
    u <- normal(n)
    z <- matrix(normal(4 * n), n)
    x <- drop(z %*% c(2, 1, 1, 0)) * sqrt(40 / 6 / n) + 0.6 * u +
      0.8 * normal(n)
    outcome(x, z, 0.7 * x, u)
  },
  "line, exponential, F 30" = function(n) {
    u <- normal(n)
    z <- stats::rexp(n)
    x <- sqrt(30 / n) * z + 0.8 * u + 0.6 * normal(n)
    outcome(x, z, x / 2, u)
  },
  "exponential" = simple(function(x) exp(x / 2), 0.8, 0.5, 0.3),
  "kink, uniform" = function(n) {
    u <- normal(n)
    z <- stats::runif(n, -2, 2)
    x <- z + 0.5 * u + 0.3 * normal(n)
    outcome(x, z, pmax(x, 0), u)
  }
)

# That of Newey and Powell (2003), r the correlation of x's index with z's.
sigmoid <- function(x) log(abs(16 * x - 8) + 1) * sign(x - 0.5)
draw_sigmoid <- function(r) {
  function(n) {
    e <- normal(n)
    v <- e / 2 + sqrt(3 / 4) * normal(n)
    w <- normal(n)
    x <- stats::pnorm(r * w + sqrt(1 - r^2) * v)
    outcome(x, stats::pnorm(w), sigmoid(x), e, 0)
  }
}

irrelevant_designs <- list(
  "no instrument" = simple(zero, 0, 1, 1),
  "no instrument, 30 groups" = in_groups(numeric(30), zero),
  "variance alone" = function(n) {
    z <- normal(n)
    u <- z^2 * normal(n)
    outcome(u + z^2 * normal(n), z, 0 * u, u)
  }
)

bar_designs <- list(
  weak = list(
    "line, F 8" = simple(identity, 0.1),
    "line, 30 groups" = in_groups(rep_len(c(-0.25, 0, 0.25), 30))
  ),
  line = list(
    "line, F 65" = simple(identity, 0.25),
    "line, F 90" = simple(identity, 0.15, 0.5, 0, 0.5),
    "line, F 1000" = simple(identity, 0.5, 0.5, 0, 0.5),
    "line, F 1000, noise in x" = simple(identity, 1)
  ),
  curve = list(
    "sigmoid" = draw_sigmoid(sqrt(0.5)),
    "sigmoid, weaker" = draw_sigmoid(0.4),
    "sine" = simple(function(x) sin(2 * x), 1, 0.5, 0, 0.5),
    "levels" = function(n) {
      z <- sample(8, n, TRUE)
      e <- normal(n)
      x <- (z - 1) * 2 / 7 + e / 2
      outcome(x, factor(z), abs(x - 1), e, 0.5)
    },
    "product" = function(n) {
      z <- matrix(normal(2 * n), n)
      e <- normal(n)
      x <- z + cbind(e / 1.5, 0)
      outcome(x, z, x[, 1] * x[, 2], e, 0.5)
    }
  )
)

# Fits ------------------------------------------------------------------------

# list(value, warning: "nothing" or "weak" for a warning of weak instruments,
# else "none").
watch <- function(expression) {
  said <- "none"
  value <- withCallingHandlers(expression, kernmean_warning = function(w) {
    if (inherits(w, "kernmean_warning_weak")) {
      said <<- if (grepl("not identified", conditionMessage(w))) "nothing" else
        "weak"
    }
    invokeRestart("muffleWarning")
  })
  list(value = value, warning = said)
}

fit_weak <- function(data, ...) {
  rkhs_iv(data$x, data$y, data$z, controls = data$w, method = "weak", ...)
}

# The correction 1/F and the line 30/F^2 alone, whatever the number of
# instruments and chance.
fit_simple <- function(data, fit) {
  of <- fit$strength
  least <- max(1, min(of$F, of$F_linear, na.rm = TRUE))
  fit_weak(data, linear = 30 / max(1, of$F)^2,
           control = iv_control(correct = 1 / least))
}

fit_classic <- function(data) {
  rkhs_iv(cbind(data$x, data$w), data$y, if (is.factor(data$z)) data$z else
    cbind(data$z, data$w), method = "classic")
}

least_squares <- function(x, z, y) {
  first <- qr.fitted(qr(cbind(1, z)), cbind(1, x))
  b <- qr.coef(qr(first), y)
  b[is.na(b)] <- 0
  drop(cbind(1, x) %*% b)
}

# Dummies of groups, and with `df` the splines of other columns that have more
# values than functions.
columns_of <- function(x, w, df = NULL) {
  if (is.factor(x)) return(stats::model.matrix(~ x)[, -1])
  columns <- lapply(as.data.frame(x), function(v) {
    if (is.null(df) || length(unique(v)) <= df) v else splines::bs(v, df = df)
  })
  do.call(cbind, c(columns, list(w)))
}

two_stage <- function(data, of_x = NULL, of_z = NULL) {
  least_squares(columns_of(data$x, data$w, of_x),
                columns_of(data$z, data$w, of_z), data$y)
}

# Of one sample the losses of the methods, F, and the warning.
measure <- function(data, methods) {
  x <- as.matrix(data$x)
  ends <- apply(x, 2, stats::quantile, c(0.025, 0.975))
  middle <- rowSums(x < rep(ends[1, ], each = nrow(x)) |
                      x > rep(ends[2, ], each = nrow(x))) == 0
  loss <- function(g) mean((g - data$truth)[middle]^2)
  fit <- watch(fit_weak(data))
  other <- function(way) {
    loss(switch(
      way,
      weak = fitted(fit$value),
      simple = fitted(watch(fit_simple(data, fit$value))$value),
      line = fitted(watch(fit_weak(data, linear = Inf))$value),
      classic = fitted(watch(fit_classic(data))$value),
      "2sls" = two_stage(data),
      sieve = two_stage(data, 5, 7)
    ))
  }
  c(vapply(methods, other, 0), F = fit$value$strength$F,
    F_linear = fit$value$strength$F_linear,
    nothing = fit$warning == "nothing", warned = fit$warning != "none")
}

# A row for each method; above, above_se: the mean difference of losses to
# method "weak", in pairs.
run_design <- function(part, group, name, draw, n, methods, reps, cores) {
  message(part, ", ", name, ", n = ", n)
  set.seed(seed_of("weak", part, name, n))
  found <- over(draw_seeds(reps), function(seed) {
    set.seed(seed)
    measure(draw(n), methods)
  }, cores)
  found <- do.call(rbind, found)
  losses <- found[, methods, drop = FALSE]
  above <- losses - losses[, "weak"]
  own <- function(values) c(values, rep(NA, length(methods) - 1))
  data.frame(
    group = group, design = name, n = n, method = methods,
    error = colMeans(losses), se = apply(losses, 2, standard_error),
    median = apply(losses, 2, stats::median), above = colMeans(above),
    above_se = apply(above, 2, standard_error),
    F = own(stats::median(found[, "F"])),
    F_linear = own(stats::median(found[, "F_linear"])),
    nothing = own(mean(found[, "nothing"])),
    warned = own(mean(found[, "warned"])), reps = reps
  )
}

run_bed <- function(reps, cores, quick) {
  methods <- c("weak", "simple", "classic", "2sls", "sieve")
  one_column <- function(data) is.null(dim(data$x)) && is.null(dim(data$z))
  designs <- c(bed_designs, fresh_designs)
  rows <- lapply(names(designs), function(name) {
    draw <- designs[[name]]
    group <- if (name %in% names(fresh_designs)) "fresh" else "bed"
    sizes <- c(300, 1000, if (group == "bed" && one_column(draw(50))) 4000)
    if (quick) sizes <- if (name == "line, F 8") 300
    lapply(sizes, function(n) {
      run_design("bed", group, name, draw, n, methods, reps, cores)
    })
  })
  do.call(rbind, unlist(rows, recursive = FALSE))
}

run_bars <- function(reps, cores, quick) {
  rows <- lapply(names(irrelevant_designs)[if (quick) 1 else TRUE],
                 function(name) {
    lapply(c(300, if (!quick) 1000), function(n) {
      run_design("bars", "irrelevant", name, irrelevant_designs[[name]], n,
                 c("weak", "simple", "classic", "2sls", "sieve"), reps(200),
                 cores)
    })
  })
  more <- lapply(if (!quick) names(bar_designs), function(group) {
    methods <- c("weak", "simple", if (group == "line") "line", "classic",
                 "2sls", "sieve")
    lapply(names(bar_designs[[group]]), function(name) {
      run_design("bars", group, name, bar_designs[[group]][[name]], 1000,
                 methods, reps(if (group == "weak") 200 else 60), cores)
    })
  })
  do.call(rbind, unlist(c(rows, more), recursive = FALSE))
}

# Intervals -------------------------------------------------------------------

covered_designs <- list(
  sine = list(at = c(-1.5, -0.5, 0.5, 1.5), g = function(x) sin(2 * x),
              draw = simple(function(x) sin(2 * x), 1, 0.5, 0, 0.5)),
  sigmoid = list(at = c(0.1, 0.35, 0.65, 0.9), g = sigmoid,
                 draw = draw_sigmoid(sqrt(0.5))),
  "weak line" = list(at = c(-0.8, -0.3, 0.3, 0.8), g = identity,
                     draw = bar_designs$line[["line, F 90"]]),
  "unequal errors" = list(
    at = c(-1.5, -0.5, 0.5, 1.5), g = function(x) sin(2 * x),
    draw = function(n) {
      z <- normal(n)
      u <- normal(n)
      x <- z + u / 2
      outcome(x, z, sin(2 * x), u * (0.3 + abs(z)), 0.5)
    }
  ),
  # These two were not looked at when the penalty of the intervals was chosen.
  exponential = list(at = c(-1, -0.3, 0.3, 1), g = function(x) exp(x / 2),
                     draw = fresh_designs[["exponential"]]),
  kink = list(at = c(-1.5, -0.5, 0.5, 1.5), g = function(x) pmax(x, 0),
              draw = fresh_designs[["kink, uniform"]])
)

# A row for each point: how often the interval holds g, and is around the curve
# that is shown; of the middle its bias and deviation, and the mean error that
# the interval claims.
run_coverage <- function(reps, cores, quick) {
  designs <- names(covered_designs)[if (quick) 1 else TRUE]
  rows <- lapply(designs, function(name) {
    design <- covered_designs[[name]]
    lapply(if (quick) 300 else c(300, 1000), function(n) {
      message("coverage, ", name, ", n = ", n)
      set.seed(seed_of("coverage", "intervals", name, n))
      found <- over(draw_seeds(reps), function(seed) {
        set.seed(seed)
        fit <- watch(fit_weak(design$draw(n)))$value
        cbind(predict(fit, design$at, interval = TRUE), F = fit$strength$F)
      }, cores)
      found <- simplify2array(found)
      g <- design$g(design$at)
      of <- function(column) matrix(found[, column, ], length(g))
      middle <- (of("lwr") + of("upr")) / 2
      data.frame(
        design = name, n = n, at = design$at,
        covered = rowMeans(of("lwr") <= g & g <= of("upr")),
        curve_in = rowMeans(of("lwr") <= of("fit") & of("fit") <= of("upr")),
        bias = rowMeans(middle) - g, sd = apply(middle, 1, stats::sd),
        claimed = rowMeans(of("upr") - of("lwr")) / 2 / stats::qnorm(0.975),
        F = stats::median(of("F")), reps = reps
      )
    })
  })
  do.call(rbind, unlist(rows, recursive = FALSE))
}

# Given exogenous regressors, and few numbers ---------------------------------

# list(data, truth: what a straight line has, other: its estimate by two-stage
# least squares).
beside <- function(a) {
  function(n) {
    u <- normal(n)
    w <- normal(n)
    z <- normal(n)
    x <- a * z + u + normal(n) + w^2 - 1
    list(data = data.frame(y = w + 2 * u + normal(n), x, w, z), truth = 0,
         formula = y ~ x + w | z + w, first = x ~ z + w + I(w^2),
         second = y ~ x + w + I(w^2))
  }
}

wald <- function(n, x_of, y_of, z_of, truth) {
  u <- normal(n)
  z <- z_of(n)
  x <- x_of(z, u, normal(n))
  list(data = data.frame(y = y_of(x, u, normal(n)), x, z), truth = truth,
       formula = y ~ x | z, first = x ~ z, second = y ~ x)
}

treated <- function(a) {
  function(n) {
    wald(n, function(z, u, e) as.numeric(a * z + u + e > 0),
         function(x, u, e) x + u + e / 2, normal, 1)
  }
}

given_designs <- list(
  "noise beside w" = list(draw = beside(0), n = 600),
  "weak beside w" = list(draw = beside(0.15), n = 600),
  "valid beside w" = list(draw = beside(0.9), n = 600),
  "binary z, parabola" = list(n = 1000, draw = function(n) {
    wald(n, function(z, u, e) 1.5 * z + 0.7 * u + 0.7 * e,
         function(x, u, e) x^2 + u + e / 2,
         function(n) stats::rbinom(n, 1, 0.5), 1.5)
  }),
  "binary x, weaker" = list(draw = treated(0.45), n = 500),
  "binary x" = list(draw = treated(0.8), n = 500),
  "binary x, strong" = list(draw = treated(1.5), n = 500)
)

# Of one sample F, warnings, the average derivative and its intervals, and
# two-stage least squares.
measure_given <- function(design) {
  data <- design$data
  fit <- watch(rkhs_iv(design$formula, data))
  effect <- watch(kme_effect(fit$value, of = "x"))$value
  ends <- stats::confint(effect)
  robust <- watch(stats::confint(fit$value, method = "ar"))$value
  second <- data
  second$x <- stats::fitted(stats::lm(design$first, data))
  truth <- design$truth
  c(F = unname(attr(fit$value$strength, "columns")[["x"]]),
    warned = fit$warning != "none", line = fit$value$linear == Inf,
    estimate = unname(stats::coef(effect)),
    other = stats::coef(stats::lm(design$second, second))[["x"]],
    covered = ends[1] <= truth && truth <= ends[2],
    ar_covered = isTRUE(robust[1] <= truth && truth <= robust[2]),
    ar_unbounded = any(is.infinite(robust)))
}

run_given <- function(reps, cores, quick) {
  names <- names(given_designs)
  rows <- lapply(names[if (quick) 4 else TRUE], function(name) {
    design <- given_designs[[name]]
    message("given, ", name)
    set.seed(seed_of("given", "exogenous", name, design$n))
    found <- do.call(rbind, over(draw_seeds(reps), function(seed) {
      set.seed(seed)
      measure_given(design$draw(design$n))
    }, cores))
    middle <- apply(found[, c("F", "estimate", "other")], 2, stats::median)
    data.frame(
      design = name, n = design$n, F = middle[["F"]],
      warned = mean(found[, "warned"]), line = mean(found[, "line"]),
      truth = design$draw(4)$truth, median = middle[["estimate"]],
      mean = mean(found[, "estimate"]), median_2sls = middle[["other"]],
      mean_2sls = mean(found[, "other"]), covered = mean(found[, "covered"]),
      ar_covered = mean(found[, "ar_covered"]),
      ar_unbounded = mean(found[, "ar_unbounded"]), reps = reps
    )
  })
  do.call(rbind, rows)
}

# Real data -------------------------------------------------------------------

set_of <- function(name) {
  box <- new.env()
  utils::data(list = name, package = "AER", envir = box)
  box[[name]]
}

applications <- list(
  # The 48 states in 1995; prices and incomes in dollars of 1983.
  CigarettesSW = list(data = function() {
    data <- set_of("CigarettesSW")
    data <- data[data$year == "1995", ]
    real <- function(value) value / data$cpi
    data.frame(y = log(data$packs), x = log(real(data$price)),
               income = log(real(data$income / data$population)),
               sales = real(data$taxs - data$tax), tax = real(data$tax))
  }, z = c("sales", "tax"), controls = "income"),
  # Log wages along years of education.
  CollegeDistance = list(data = function() {
    data <- set_of("CollegeDistance")
    data.frame(y = log(data$wage), x = data$education,
               data[c("distance", "unemp", "ethnicity", "gender", "urban")])
  }, z = "distance", controls = c("unemp", "ethnicity", "gender", "urban")),
  # Weeks worked, by a third child; the instrument is that two are of one sex.
  Fertility2 = list(data = function() {
    data <- set_of("Fertility2")
    data.frame(y = data$work, x = as.numeric(data$morekids == "yes"),
               same = as.numeric(data$gender1 == data$gender2),
               data[c("age", "afam", "hispanic", "other")])
  }, z = "same", controls = c("age", "afam", "hispanic", "other"))
)

# The average slope of g and its error: differences of the features of the fit,
# by the covariance that the intervals are made of.
average_slope <- function(fit, x) {
  step <- (max(x) - min(x)) / 200
  ends <- if (length(unique(x)) == 2) list(range(x)) else
    list(x - step, x + step)
  features <- function(x) {
    new <- kernmean:::block_newdata(fit$blocks$x, data.frame(x = x), "x")
    phi <- kernmean:::point_features(fit$error$map, fit$blocks$x$sample, new)
    cbind(new$z %*% fit$error$slopes, phi)
  }
  change <- if (length(ends) == 1) diff(features(ends[[1]])) else
    colMeans(features(ends[[2]]) - features(ends[[1]])) / (2 * step)
  change <- c(change)
  controls <- seq_along(fit$error$mean)
  # The partialled features have no slope of their own along x.
  g <- function(x) predict(fit, data.frame(x = x))
  slope <- if (length(ends) == 1) diff(g(ends[[1]])) else
    mean(g(ends[[2]]) - g(ends[[1]])) / (2 * step)
  list(slope = unname(slope), middle = sum(change * fit$error$theta),
       se = fit$error$unit *
         sqrt(drop(change %*% fit$error$covariance[-controls, -controls] %*%
                     change)))
}

# With errors for unequal variances; `z` "x": least squares.
linear_slope <- function(job, data, z) {
  columns <- function(names) {
    stats::model.matrix(stats::reformulate(c(names, job$controls)), data)
  }
  x <- columns("x")
  first <- qr.fitted(qr(columns(z)), x)
  square <- chol2inv(qr.R(qr(first)))
  b <- drop(square %*% crossprod(first, data$y))
  e <- data$y - drop(x %*% b)
  list(slope = b[2], middle = b[2],
       se = sqrt((square %*% crossprod(e * first) %*% square)[2, 2]))
}

run_application <- function(name) {
  message(name)
  job <- applications[[name]]
  data <- job$data()
  by_kernels <- function(...) {
    said <- watch(rkhs_iv(
      stats::reformulate(sprintf("x | %s", paste(job$z, collapse = "+")), "y"),
      data, controls = stats::reformulate(job$controls), ...
    ))
    fit <- said$value
    c(average_slope(fit, data$x), fit$strength[c("F", "F_linear", "df")],
      list(warning = said$warning))
  }
  many <- vapply(data[job$z], function(z) length(unique(z)) > 3, NA)
  cubes <- ifelse(many, sprintf("poly(%s, 3)", job$z), job$z)
  none <- list(F = NA, F_linear = NA, df = NA, warning = "none")
  found <- list(weak = by_kernels(), line = by_kernels(linear = Inf),
                "2sls" = c(linear_slope(job, data, job$z), none),
                "2sls, cubic z" = c(linear_slope(job, data, cubes), none),
                "least squares" = c(linear_slope(job, data, "x"), none))
  rows <- do.call(rbind, lapply(found, as.data.frame))
  half <- stats::qnorm(0.975) * rows$se
  data.frame(data = name, n = nrow(data), method = names(found),
             slope = rows$slope, middle = rows$middle, se = rows$se,
             lwr = rows$middle - half, upr = rows$middle + half,
             rows[c("F", "F_linear", "df", "warning")])
}

run_real <- function(quick) {
  if (!nzchar(system.file(package = "AER"))) {
    say("Not shown, as the package AER is not installed: the real data.")
    return(NULL)
  }
  do.call(rbind, lapply(names(applications)[if (quick) 1 else TRUE],
                        run_application))
}

# The run ---------------------------------------------------------------------

keys <- list(bed = c("design", "n", "method"),
             bars = c("design", "n", "method"),
             coverage = c("design", "n", "at"), given = c("design", "n"),
             real = c("data", "method"))

show_errors <- function(table) {
  for (name in unique(paste0(table$design, ", n = ", table$n))) {
    mine <- table[paste0(table$design, ", n = ", table$n) == name, ]
    weak <- mine[1, ]
    cells <- t(vapply(mine[c("error", "se", "median", "above", "above_se")],
                      formatC, character(nrow(mine)), digits = 3))
    colnames(cells) <- mine$method
    print_block(sprintf(
      "%s: F %.2g, linear part %.2g; warned %.2f (nothing %.2f) of %d", name,
      weak$F, weak$F_linear, weak$warned, weak$nothing, weak$reps
    ), cells, 10)
  }
}

show_part <- function(part, folder) {
  file <- file.path(folder, paste0("iv-weak-", part, ".csv"))
  if (!file.exists(file)) return(invisible())
  table <- read_table(file)
  if (part %in% c("bed", "bars")) {
    show_errors(table)
  } else {
    print(table, digits = 3, row.names = FALSE)
  }
  if (part == "coverage") {
    say("Covered: mean ", round(mean(table$covered), 3), ", least ",
        min(table$covered), ".")
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
        name, bed = run_bed(reps(40), cores, chosen$quick),
        bars = run_bars(reps, cores, chosen$quick),
        coverage = run_coverage(reps(200), cores, chosen$quick),
        given = run_given(reps(100), cores, chosen$quick),
        real = run_real(chosen$quick)
      )
      if (is.null(table)) next
      write_table(rounded(table), folder, paste0("iv-weak-", name, ".csv"),
                  keys[[name]])
    }
  }
  for (name in parts) show_part(name, folder)
}

main(commandArgs(trailingOnly = TRUE))

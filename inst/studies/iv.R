# What rkhs_iv(method = "classic") and rkhs_iv_nested() find where the truth is
# known, and beside two-stage least squares on data of the packages AER and np.
# Folds are rows next to each other. weak.R is about method "weak".
#
#   sigmoid  the design of Newey and Powell (2003) as Singh, Sahani and Gretton
#            (2019) use it: y = g(x) + e, E[e | z] = 0, e and x dependent; the
#            mean squared error of g on 500 points of [0, 1], beside two-stage
#            least squares on lines, cubics and splines, and the package npiv.
#   nested   two moments, E[y - g(a) | d] = 0 on one half of the rows and
#            E[h(b) - g(a) | c] = 0 on the other; g and h are known sines. Mean
#            squared errors over the central 95% of a and b.
#   rules    six designs for the rules that choose the penalty: curves, a line,
#            a weak instrument, a discrete one, two columns, no effect at all.
#   real     the demand for cigarettes, the share of food in what is spent, the
#            return to education: average slopes and the shape of g beside the
#            line of two-stage least squares. Nobody knows the truth here.

usage <- "Usage: Rscript iv.R [options]

  --part sigmoid|nested|rules|real|all  what to measure (all)
  --reps N    samples for each size (at least 2; 20, rules: 40)
  --most N    largest n (at least 100; 2000)
  --from DIR  show the tables in DIR, compute nothing
  --out DIR   folder for the tables (.)
  --cores N   processes, with the package future.apply (1); the results do not
              depend on it, but for the seconds
  --quick     the smallest form: n = 100, the smaller data set
  --help      this text"

study_name <- "iv.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

# Peers -----------------------------------------------------------------------

# Kernel ridge regression of y on x, as if x were exogenous: an intercept, the
# median bandwidth of the standardized columns, and of 40 ridges the one with
# the smallest leave-one-out error. A function of new points.
kernel_ridge <- function(x, y) {
  x <- as.matrix(x)
  center <- colMeans(x)
  spread <- apply(x, 2, stats::sd)
  units <- function(new) scale(as.matrix(new), center, spread)
  kernel <- kernel_rbf(stats::median(stats::dist(units(x))))
  # K = FF', to rounding.
  k <- as.matrix(gram(units(x), kernel))
  factor <- suppressWarnings(chol(k, pivot = TRUE, tol = 1e-12))
  rows <- attr(factor, "pivot")[seq_len(attr(factor, "rank"))]
  top <- factor[seq_along(rows), seq_along(rows), drop = FALSE]
  features <- function(new) {
    t(backsolve(top, t(kernel_matrix(units(new), units(x)[rows, , drop = FALSE],
                                     kernel)), transpose = TRUE))
  }
  f <- features(x)
  middle <- colMeans(f)
  s <- svd(f - rep(middle, each = nrow(f)))
  ridges <- length(y) * 10^seq(-8, 1, length.out = 40)
  fits <- vapply(ridges, function(ridge) {
    share <- s$d^2 / (s$d^2 + ridge)
    left <- y - mean(y) - s$u %*% (share * crossprod(s$u, y))
    leverage <- 1 / length(y) + rowSums(s$u^2 * rep(share, each = length(y)))
    sum((left / (1 - leverage))^2)
  }, 0)
  ridge <- ridges[which.min(fits)]
  theta <- s$v %*% (s$d / (s$d^2 + ridge) * crossprod(s$u, y))
  function(new) {
    mean(y) + drop((features(new) - rep(middle, each = NROW(new))) %*% theta)
  }
}

# Two-stage least squares by hand, on powers of x and z up to `degree`.
two_stage <- function(x, y, z, degree = 1) {
  powers <- function(v) outer(v, seq_len(degree), `^`)
  first <- stats::lm(powers(x) ~ powers(z))
  b <- stats::coef(stats::lm(y ~ as.matrix(stats::fitted(first))))
  function(new) drop(cbind(1, powers(new)) %*% b)
}

# Two-stage least squares on splines, for x and z in [0, 1]: natural cubic ones
# of x with `size` functions, cubic ones of z with ten.
sieve_fit <- function(x, y, z, size) {
  of_x <- splines::ns(x, df = size, Boundary.knots = 0:1)
  of_z <- splines::bs(z, df = 10, Boundary.knots = 0:1)
  first <- stats::lm.fit(cbind(1, of_z), of_x)
  b <- stats::lm.fit(cbind(1, first$fitted.values), y)$coefficients
  function(new) drop(cbind(1, stats::predict(of_x, new)) %*% b)
}

# The size with the smallest squared error of y in five folds: on the sigmoid
# design g errs less by it (0.4 to 0.9 times as much in 60 samples) than by what
# the instruments see of that error, and hardly more with six or eight functions
# of z.
sieve_sizes <- 2:6
sieve <- function(x, y, z) {
  fold <- rep_len(1:5, length(y))
  left <- vapply(sieve_sizes, function(size) {
    sum(vapply(1:5, function(k) {
      rest <- fold != k
      g <- sieve_fit(x[rest], y[rest], z[rest], size)
      sum((y[!rest] - g(x[!rest]))^2)
    }, 0))
  }, 0)
  sieve_fit(x, y, z, sieve_sizes[which.min(left)])
}

# Errors ----------------------------------------------------------------------

# list(value, seconds, border): border, did the fit warn that the best penalty
# is the last that was tried?
watch <- function(expression) {
  border <- FALSE
  seconds <- system.time(value <- withCallingHandlers(
    expression, kernmean_warning_border = function(w) {
      border <<- TRUE
      invokeRestart("muffleWarning")
    }
  ))[["elapsed"]]
  list(value = value, seconds = seconds, border = border)
}

# Of one sample: what each method's predictions lose, and what it took.
# `methods`: functions of the data that give a vector of predictions for each
# function in the list `truth`.
measure <- function(methods, data, truth) {
  rows <- lapply(names(methods), function(name) {
    found <- watch(methods[[name]](data))
    losses <- mapply(function(f, g) mean((f - g)^2), found$value, truth)
    data.frame(method = name, of = names(truth), loss = losses,
               border = found$border, seconds = found$seconds)
  })
  do.call(rbind, rows)
}

# Every loss of every sample of every size.
run_part <- function(part, sizes, reps, cores) {
  do.call(rbind, lapply(sizes, function(n) {
    message(part, ", n = ", n)
    set.seed(seed_of(part, n))
    found <- over(draw_seeds(reps), function(seed) {
      set.seed(seed)
      data <- designs[[part]]$draw(n)
      measure(designs[[part]]$methods, data, designs[[part]]$truth)
    }, cores)
    found <- do.call(rbind, found)
    cbind(n = n, rep = rep(seq_len(reps), each = nrow(found) / reps), found)
  }))
}

# One row for each size, method and function.
summarize <- function(found) {
  key <- interaction(found$method, found$of, found$n, drop = TRUE)
  rows <- lapply(split(found, key), function(part) {
    data.frame(part[1, c("n", "of", "method")], error = mean(part$loss),
               se = standard_error(part$loss),
               median = stats::median(part$loss), borders = sum(part$border),
               seconds = stats::median(part$seconds), reps = nrow(part))
  })
  table <- do.call(rbind, rows)
  table <- table[order(table$of, table$n,
                       match(table$method, unique(found$method))), ]
  rownames(table) <- NULL
  table
}

# The sigmoid design ----------------------------------------------------------

sigmoid <- function(x) log(abs(16 * x - 8) + 1) * sign(x - 0.5)
unit_points <- seq(0, 1, length.out = 500)

draw_sigmoid <- function(n) {
  e <- stats::rnorm(n)
  v <- e / 2 + sqrt(3 / 4) * stats::rnorm(n)
  w <- stats::rnorm(n)
  x <- stats::pnorm((w + v) / sqrt(2))
  list(x = x, z = stats::pnorm(w), y = sigmoid(x) + e)
}

# A method from arguments of rkhs_iv(); `change`: other data.
sequential <- function(..., change = identity, back = identity) {
  force(change)
  force(back)
  function(data) {
    data <- change(data)
    fit <- rkhs_iv(data$x, data$y, data$z, ..., method = "classic")
    list(g = back(predict(fit, unit_points)))
  }
}

# The penalty of the grid that is best for the truth: what no choice can beat.
oracle <- function(data) {
  fit <- rkhs_iv(data$x, data$y, data$z, method = "classic")
  middle <- mean(data$y)
  fits <- lapply(fit$cv$mu, function(mu) {
    one <- rkhs_iv(data$x, data$y - middle, data$z, lambda = fit$lambda[[1]],
                   mu = mu)
    middle + predict(one, unit_points)
  })
  best_of(fits)
}

best_of <- function(fits) {
  losses <- vapply(fits, function(f) mean((f - sigmoid(unit_points))^2), 0)
  list(g = fits[[which.min(losses)]])
}

in_bins <- function(data) {
  ends <- stats::quantile(data$z, 0:10 / 10)
  data$z <- cut(data$z, ends, include.lowest = TRUE)
  data
}

sigmoid_methods <- list(
  "norm" = sequential(),
  "norm, 1se" = sequential(control = iv_control(rule = "1se")),
  "norm, min" = sequential(control = iv_control(rule = "min")),
  "norm, no icpt" = sequential(control = iv_control(intercept = FALSE)),
  "norm, +10" = sequential(
    control = iv_control(intercept = FALSE), change = function(data) {
      data$y <- data$y + 10
      data
    }, back = function(f) f - 10
  ),
  "norm, oracle" = oracle,
  "l2, gcv" = sequential(penalty = "l2", lambda = "gcv"),
  "l2, gcv, min" = sequential(penalty = "l2", lambda = "gcv",
                              control = iv_control(rule = "min")),
  "l2, 10 bins" = sequential(penalty = "l2", change = in_bins),
  "l2, lambda 0" = sequential(penalty = "l2"),
  "kernel ridge" = function(data) {
    list(g = kernel_ridge(data$x, data$y)(unit_points))
  },
  "2sls" = function(data) {
    list(g = two_stage(data$x, data$y, data$z)(unit_points))
  },
  "2sls, cubic" = function(data) {
    list(g = two_stage(data$x, data$y, data$z, 3)(unit_points))
  },
  "sieve" = function(data) {
    list(g = sieve(data$x, data$y, data$z)(unit_points))
  },
  "sieve, oracle" = function(data) {
    best_of(lapply(sieve_sizes, function(size) {
      sieve_fit(data$x, data$y, data$z, size)(unit_points)
    }))
  }
)
# Chen, Christensen and Kankanala's choice of the sieve.
if (requireNamespace("npiv", quietly = TRUE)) {
  sigmoid_methods$npiv <- function(data) {
    fit <- suppressWarnings(npiv::npiv(
      data$y, data$x, data$z, X.eval = unit_points, progress = FALSE,
      ucb.h = FALSE, ucb.deriv = FALSE
    ))
    list(g = fit$h)
  }
}

# The nested design -----------------------------------------------------------

# For standard normal a and c with correlation r, E[sin(f a) | c] =
# exp(-f^2 (1 - r^2) / 2) sin(f r c): with f = 1.5, r = 0.6 for a and f = 9/8,
# r = 0.8 for b, E[h(b) | c] = E[g(a) | c] for this h.
true_g <- function(a) sin(1.5 * a)
true_h <- function(b) {
  exp((1.125^2 * (1 - 0.8^2) - 1.5^2 * (1 - 0.6^2)) / 2) * sin(1.125 * b)
}
normal_points <- stats::qnorm(seq(0.025, 0.975, length.out = 500))

# v is what a, b and y have in common beside the instruments.
draw_nested <- function(n) {
  c <- stats::rnorm(n)
  d <- stats::rnorm(n)
  v <- stats::rnorm(n)
  a <- 0.6 * c + 0.6 * d + sqrt(0.28) * v
  b <- 0.8 * c + 0.6 * (0.6 * v + 0.8 * stats::rnorm(n))
  y <- true_g(a) + 0.8 * v + 0.3 * stats::rnorm(n)
  list(a = a, b = b, c = c, d = d, y = y, first = rep(1:0, length.out = n))
}

joint <- function(..., rule = NULL) {
  control <- iv_control(rule = rule, folds = "blocks")
  function(data) {
    fit <- rkhs_iv_nested(data$a, data$b, data$c, data$d, data$y,
                          subset = data$first, ..., control = control)
    found <- predict(fit, list(a = normal_points, b = normal_points))
    list(g = found[, "g"], h = found[, "h"])
  }
}

# g from the rows of the first moment; what it is on the others, in the place of
# an outcome, gives h. `fit`: a function of x, y and z that gives a function.
stepwise <- function(fit) {
  function(data) {
    one <- data$first == 1
    g <- fit(data$a[one], data$y[one], data$d[one])
    h <- fit(data$b[!one], g(data$a[!one]), data$c[!one])
    list(g = g(normal_points), h = h(normal_points))
  }
}

one_moment <- function(x, y, z, ...) {
  fit <- rkhs_iv(x, y, z, ..., method = "classic")
  function(new) predict(fit, new)
}

nested_methods <- list(
  "norm, min" = joint(),
  "norm, paired" = joint(rule = "paired"),
  "norm, 1se" = joint(rule = "1se"),
  "l2, gcv, min" = joint(penalty = "l2", lambda_c = "gcv", lambda_d = "gcv"),
  "l2, gcv, 1se" = joint(penalty = "l2", lambda_c = "gcv", lambda_d = "gcv",
                         rule = "1se"),
  "twice" = stepwise(function(...) one_moment(...)),
  "twice, min" = stepwise(function(...) {
    one_moment(..., control = iv_control(rule = "min"))
  }),
  "kernel ridge" = stepwise(function(x, y, z) kernel_ridge(x, y)),
  "2sls" = stepwise(two_stage),
  "2sls, cubic" = stepwise(function(...) two_stage(..., degree = 3))
)

# The rules -------------------------------------------------------------------

# z, the common cause e of x and y, and x; `effect`: g.
design_of <- function(effect, strength, points, levels = NULL) {
  list(new = points, g = effect, draw = function(n) {
    z <- if (is.null(levels)) stats::rnorm(n) else sample(levels, n, TRUE)
    e <- stats::rnorm(n)
    x <- strength * z + e / 2
    list(x = x, z = if (is.null(levels)) z else factor(z),
         y = effect(x) + e + stats::rnorm(n) / 2)
  })
}

plain_points <- seq(-2, 2, length.out = 200)
square <- as.matrix(expand.grid(seq(-1.5, 1.5, 0.2), seq(-1.5, 1.5, 0.2)))

rule_designs <- list(
  sine = design_of(function(x) sin(2 * x), 1, plain_points),
  line = design_of(function(x) x, 0.5, plain_points / 2),
  weak = design_of(function(x) x, 0.15, plain_points / 2),
  levels = design_of(function(x) abs(x - 1), 1, plain_points / 2 + 1,
                     seq(0, 2, length.out = 8)),
  product = list(
    new = square, g = function(x) x[, 1] * x[, 2], draw = function(n) {
      z <- matrix(stats::rnorm(2 * n), n)
      e <- stats::rnorm(n)
      x <- z + cbind(e / 1.5, 0)
      list(x = x, z = z, y = x[, 1] * x[, 2] + e + stats::rnorm(n) / 2)
    }
  ),
  nothing = design_of(function(x) 0 * x, 1, plain_points)
)

by_rule <- function(rule) {
  function(data) {
    Map(function(design, own) {
      fit <- rkhs_iv(own$x, own$y, own$z, method = "classic",
                     control = iv_control(rule = rule))
      unname(predict(fit, design$new))
    }, rule_designs, data)
  }
}

designs <- list(
  rules = list(
    draw = function(n) lapply(rule_designs, function(design) design$draw(n)),
    methods = list(paired = by_rule("paired"), "1se" = by_rule("1se"),
                   min = by_rule("min")),
    truth = lapply(rule_designs, function(design) design$g(design$new))
  ),
  sigmoid = list(draw = draw_sigmoid, methods = sigmoid_methods,
                 truth = list(g = sigmoid(unit_points))),
  nested = list(draw = draw_nested, methods = nested_methods,
                truth = list(g = true_g(normal_points),
                             h = true_h(normal_points)))
)

# Claims ----------------------------------------------------------------------

# claim(what it says, the worse, the better, the function): each is examined at
# every size, on the same samples.
claim <- function(says, worse, better, of = "g") {
  list(says = says, worse = worse, better = better, of = of)
}

claims <- list(
  sigmoid = list(
    claim("Estimator 1 errs less than kernel ridge", "kernel ridge",
          "norm"),
    claim("Estimator 1 errs less than two-stage least squares", "2sls",
          "norm"),
    claim("... than two-stage least squares on cubic polynomials",
          "2sls, cubic", "norm"),
    claim("... than a sieve of cubic splines", "sieve", "norm"),
    claim("... than npiv()", "npiv", "norm"),
    claim("... with the best penalty than a sieve of the best size",
          "sieve, oracle", "norm, oracle"),
    claim("rule \"paired\" errs less than \"min\"", "norm, min", "norm"),
    claim("rule \"paired\" errs less than \"1se\"", "norm, 1se", "norm"),
    claim("an intercept helps where y has mean 0", "norm, no icpt",
          "norm"),
    claim("... where 10 is added to y", "norm, +10", "norm"),
    claim("Estimator 2 (lambda by gcv) errs less than kernel ridge",
          "kernel ridge", "l2, gcv"),
    claim("... than two-stage least squares", "2sls", "l2, gcv"),
    claim("Estimator 2 with z in 10 bins errs less than kernel ridge",
          "kernel ridge", "l2, 10 bins"),
    claim("Estimator 1 errs less than Estimator 2 (gcv)", "l2, gcv",
          "norm")
  ),
  rules = unlist(lapply(names(rule_designs), function(of) {
    list(
      claim("\"paired\" errs less than \"1se\"", "1se", "paired", of),
      claim("\"paired\" errs less than \"min\"", "min", "paired", of)
    )
  }), recursive = FALSE),
  nested = unlist(lapply(c("g", "h"), function(of) {
    list(
      claim("norms err less than kernel ridge twice", "kernel ridge",
            "norm, min", of),
      claim("... than two-stage least squares twice", "2sls", "norm, min", of),
      claim("... than rkhs_iv() twice", "twice", "norm, min", of),
      claim("... than rkhs_iv(rule = \"min\") twice", "twice, min",
            "norm, min", of),
      claim("rule \"min\" errs less than \"1se\", norms", "norm, 1se",
            "norm, min", of),
      claim("rule \"min\" errs less than \"paired\", norms", "norm, paired",
            "norm, min", of),
      claim("rule \"min\" errs less than \"1se\", l2", "l2, gcv, 1se",
            "l2, gcv, min", of),
      claim("norms err less than l2 (gcv)", "l2, gcv, min", "norm, min", of)
    )
  }), recursive = FALSE)
)

examine <- function(found, claim) {
  mine <- found[found$of == claim$of, ]
  gains <- vapply(split(mine, mine$n), function(part) {
    loss <- function(name) part$loss[part$method == name]
    gain(loss(claim$worse), loss(claim$better))
  }, c(gain = 0, se = 0))
  signs <- clear_sign(gains["gain", ], gains["se", ])
  data.frame(claim = claim$says, of = claim$of, n = colnames(gains),
             gain = gains["gain", ], se = gains["se", ], sign = signs,
             verdict = verdict(signs))
}

print_errors <- function(table, part) {
  cells <- function(of, what, column, digits, factor = 1) {
    rows <- table[table$of == of, ]
    rows$estimator <- rows$method
    shown <- formatC(factor * rows[[column]], digits = digits, format = "fg")
    print_block(paste0(part, ", ", of, ": ", what),
                wide_cells(shown, rows, "n"), 10)
  }
  for (of in unique(table$of)) {
    cells(of, paste("mean squared error,", table$reps[1], "samples"), "error",
          3)
    cells(of, "its standard error", "se", 2)
  }
  cells(of, "samples in which the best penalty is the last that was tried",
        "borders", 3)
  cells(of, "milliseconds of one estimate, with its choices", "seconds", 2,
        1000)
}

print_claims <- function(examined) {
  for (of in unique(examined$of)) {
    mine <- examined[examined$of == of, ]
    for (says in unique(mine$claim)) {
      rows <- mine[mine$claim == says, ]
      say(of, ": ", says, ": ", rows$verdict[1], " (less by ",
          toString(sprintf("%.0f%% +- %.0f", rows$gain, rows$se)), " at n = ",
          toString(rows$n), ").", indent = 2)
    }
  }
  cat("\n")
}

run_design <- function(part, sizes, reps, cores, folder) {
  found <- run_part(part, sizes, reps, cores)
  table <- summarize(found)
  there <- Filter(function(claim) {
    all(c(claim$worse, claim$better) %in% found$method)
  }, claims[[part]])
  examined <- do.call(rbind, lapply(there, examine, found = found))
  write_table(rounded(table), folder, paste0("iv-", part, ".csv"),
              c("n", "of", "method"))
  write_table(rounded(examined), folder, paste0("iv-", part, "-claims.csv"),
              c("claim", "of", "n"))
}

show_design <- function(part, folder) {
  read <- function(name) read_table(file.path(folder, name))
  print_errors(read(paste0("iv-", part, ".csv")), part)
  print_claims(read(paste0("iv-", part, "-claims.csv")))
}

# Real data -------------------------------------------------------------------

set_of <- function(package, name) {
  box <- new.env()
  utils::data(list = name, package = package, envir = box)
  box[[name]]
}

# The 48 states in 1995; prices and incomes in dollars of 1983.
cigarettes <- function() {
  data <- set_of("AER", "CigarettesSW")
  data <- data[data$year == "1995", ]
  real <- function(value) value / data$cpi
  data.frame(
    demand = log(data$packs), price = log(real(data$price)),
    income = log(real(data$income / data$population)),
    sales_tax = real(data$taxs - data$tax), tax = real(data$tax)
  )
}

colleges <- function() {
  data <- set_of("AER", "CollegeDistance")
  data$wage <- log(data$wage)
  data
}

applications <- list(
  cigarettes = list(
    package = "AER", data = cigarettes,
    formula = demand ~ price + income | sales_tax + tax + income,
    along = "price", step = 0.01, more = list()
  ),
  food = list(
    package = "np", data = function() set_of("np", "Engel95"),
    formula = food ~ logexp | logwages, along = "logexp", step = 0.01,
    more = list()
  ),
  education = list(
    package = "AER", data = colleges,
    formula = wage ~ education + unemp + ethnicity + gender + urban |
      distance + unemp + ethnicity + gender + urban,
    along = "education", step = 0.5, more = list(landmarks = 300)
  )
)

# The formula's sides: names of variables, and the matrix of a linear model.
sides_of <- function(job) {
  sides <- job$formula[[3]]
  list(y = all.vars(job$formula[[2]]), x = all.vars(sides[[2]]),
       z = all.vars(sides[[3]]))
}

columns_of <- function(variables, data) {
  stats::model.matrix(stats::reformulate(variables), data)
}

# Ways to fit: each takes a job and its data and gives list(f: a function of
# data; se: the standard error of the slope, where there is one; fit).
by_kernels <- function(..., rule = NULL) {
  function(job, data) {
    fit <- rkhs_iv(job$formula, data = data, ..., method = "classic",
                   control = do.call(iv_control, c(job$more, rule = rule)))
    list(f = function(new) predict(fit, new), se = NA, fit = fit)
  }
}

# What is two-stage least squares but for a penalty near 0.
by_linear_kernels <- function(job, data) {
  sides <- sides_of(job)
  columns <- function(variables, data) {
    columns_of(variables, data)[, -1, drop = FALSE]
  }
  fit <- rkhs_iv(columns(sides$x, data), data[[sides$y]],
                 columns(sides$z, data), kernel_poly(1, offset = 1),
                 lambda = 0, mu = 1e-6, control = iv_control(scale = TRUE))
  list(f = function(new) predict(fit, columns(sides$x, new)), se = NA,
       fit = fit)
}

# Two-stage least squares by hand, or with `instruments` = "x" least squares.
by_least_squares <- function(instruments) {
  function(job, data) {
    sides <- sides_of(job)
    x <- columns_of(sides$x, data)
    first <- stats::lm.fit(columns_of(sides[[instruments]], data), x)
    second <- stats::lm.fit(first$fitted.values, data[[sides$y]])
    b <- second$coefficients
    left <- data[[sides$y]] - drop(x %*% b)
    spread <- sum(left^2) / (nrow(x) - ncol(x))
    se <- sqrt(spread * diag(chol2inv(qr.R(second$qr))))
    list(f = function(new) drop(columns_of(sides$x, new) %*% b),
         se = se[match(job$along, names(b))], fit = NULL)
  }
}

ways <- list(
  "norm" = by_kernels(),
  "norm, 1se" = by_kernels(rule = "1se"),
  "norm, min" = by_kernels(rule = "min"),
  "l2, gcv" = by_kernels(penalty = "l2", lambda = "gcv"),
  "norm, linear" = by_linear_kernels,
  "2sls" = by_least_squares("z"),
  "least squares" = by_least_squares("x")
)

# A row of the data, medians and the most frequent levels, as often as `values`
# of one column say.
profile_along <- function(data, along, values) {
  row <- lapply(data, function(column) {
    if (is.factor(column)) {
      factor(names(which.max(table(column))), levels(column))
    } else {
      stats::median(column)
    }
  })
  row <- as.data.frame(row)[rep(1, length(values)), ]
  row[[along]] <- values
  row
}

average_slope <- function(f, data, along, step) {
  moved <- function(by) {
    data[[along]] <- data[[along]] + by
    f(data)
  }
  mean(moved(step) - moved(-step)) / (2 * step)
}

# F of the instruments that are not regressors, in the regression of `along`.
first_stage_f <- function(job, data) {
  sides <- sides_of(job)
  on <- function(variables) {
    stats::lm(stats::reformulate(c("1", variables), job$along), data)
  }
  stats::anova(on(intersect(sides$x, sides$z)), on(sides$z))$F[2]
}

run_application <- function(name) {
  job <- applications[[name]]
  data <- job$data()
  set.seed(seed_of(name))
  # The folds are contiguous, and files are often sorted.
  data <- data[sample.int(nrow(data)), ]
  along <- data[[job$along]]
  at <- unique(stats::quantile(along, c(0.05, 0.25, 0.5, 0.75, 0.95),
                               names = FALSE))
  places <- profile_along(data, job$along, at)
  middle <- profile_along(data, job$along, stats::median(along))
  rows <- lapply(names(ways), function(way) {
    message(name, ", ", way)
    # Twice to warm up; the same landmarks for all.
    for (run in 1:3) {
      set.seed(seed_of(name))
      watched <- watch(ways[[way]](job, data))
    }
    found <- watched$value
    of <- function(field, i) {
      if (is.null(found$fit)) NA else found$fit[[field]][[i]]
    }
    data.frame(
      data = name, n = nrow(data), first_stage_F = first_stage_f(job, data),
      method = way, slope = average_slope(found$f, data, job$along, job$step),
      se = found$se, lambda = of("lambda", 1), mu = of("mu", 1),
      rank_x = of("rank", 1), rank_z = of("rank", 2),
      criterion = of("criterion", 1), at = at,
      value = found$f(places) - found$f(middle), border = watched$border,
      ms = 1000 * watched$seconds
    )
  })
  do.call(rbind, rows)
}

run_real <- function(names, folder) {
  packages <- vapply(applications[names], `[[`, "", "package")
  there <- nzchar(vapply(packages, function(p) system.file(package = p), ""))
  for (name in names[!there]) {
    say("Not shown, as the package ", packages[[name]], " is not installed: ",
        name, ".")
  }
  if (any(there)) {
    found <- do.call(rbind, lapply(names[there], run_application))
    write_table(rounded(found), folder, "iv-real.csv",
                c("data", "method", "at"))
  }
}

show_real <- function(folder) {
  file <- file.path(folder, "iv-real.csv")
  if (!file.exists(file)) return(invisible())
  found <- read_table(file)
  for (name in unique(found$data)) {
    mine <- found[found$data == name, ]
    along <- applications[[name]]$along
    say(name, ", n = ", mine$n[1], ", first-stage F ",
        signif(mine$first_stage_F[1], 3), ": average slope of g along ", along,
        " (standard errors exist for the linear fits alone).")
    columns <- c("slope", "se", "lambda", "mu", "rank_x", "rank_z", "criterion",
                 "ms")
    fits <- mine[!duplicated(mine$method), columns]
    cells <- vapply(fits, function(column) {
      ifelse(is.na(column), "", as.character(signif(column, 3)))
    }, character(nrow(fits)))
    dimnames(cells) <- list(unique(mine$method),
                            sub("criterion", "r'Pr/n", columns))
    print_block("penalties, ranks, r'Pr/n and milliseconds of each fit", cells,
                9)
    cells <- matrix(sprintf("%.3f", mine$value), ncol = length(unique(mine$at)),
                    byrow = TRUE)
    dimnames(cells) <- list(unique(mine$method),
                            format(unique(mine$at), digits = 3))
    print_block(paste0("g less its value at the median, along ", along), cells)
  }
}

# The run ---------------------------------------------------------------------

rounded <- function(table) {
  numbers <- vapply(table, is.double, NA)
  table[numbers] <- lapply(table[numbers], signif, 5)
  table
}

main <- function(args) {
  chosen <- read_options(args, list(
    part = "all", reps = "", most = "2000", from = "", out = ".",
    cores = "1", quick = FALSE
  ), usage)
  parts <- c("sigmoid", "nested", "rules", "real")
  part <- one_of(chosen$part, "--part", c(parts, "all"))
  if (chosen$quick) parts <- setdiff(parts, "rules")
  if (part != "all") parts <- part
  reps <- function(usual) {
    if (nzchar(chosen$reps)) whole_number(chosen$reps, "--reps", 2) else usual
  }
  most <- if (chosen$quick) 100 else whole_number(chosen$most, "--most", 100)
  cores <- whole_number(chosen$cores, "--cores", 1)
  folder <- chosen$from
  if (!nzchar(folder)) {
    folder <- output_folder(chosen$out)
    use_one_thread()
    sizes <- c(100, 200, 500, 1000, 2000)
    sizes <- sizes[sizes <= most]
    cores <- start_processes(cores)
    for (name in setdiff(parts, "real")) {
      run_design(name, sizes, reps(if (name == "rules") 40 else 20), cores,
                 folder)
    }
    if ("real" %in% parts) {
      run_real(if (chosen$quick) "cigarettes" else names(applications),
               folder)
    }
  }
  for (name in setdiff(parts, "real")) show_design(name, folder)
  if ("real" %in% parts) show_real(folder)
}

main(commandArgs(trailingOnly = TRUE))

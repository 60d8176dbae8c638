# Rscript bench/iv.R [--times FILE] [exact] [large] [strength]
# Instrumental-variable estimators, n = 2,000 in blocks of three columns, median
# bandwidth: a grid of penalties and cross-validation against one fit, the
# formula as it is printed, evaluated in R; and Nystroem's form at n = 50,000
# against the products of matrices that it takes. Run it under each BLAS; the
# first line names it. --times: keeps the times in FILE, and compares them with
# those that another BLAS has left there. exact, large, strength: that part.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
internal <- asNamespace("kernmean")
arguments <- commandArgs(trailingOnly = TRUE)
file <- arguments[match("--times", arguments) + 1]
parts <- c("exact", "large", "strength")
wanted <- intersect(parts, arguments)
if (length(wanted) == 0) wanted <- parts
limit <- limit_program(dirname(here))("products", 2)

# Blocks a, b, c, d of three columns; a and b are endogenous.
draw <- function(n, d = 3) {
  noise <- function() matrix(rnorm(n * d), n)
  v <- noise()
  found <- list(c = noise(), d = noise())
  found$a <- (found$c + found$d + v) / sqrt(3)
  found$b <- (2 * found$c + v + noise()) / sqrt(6)
  found$y <- sin(2 * found$a[, 1]) + found$a[, 2] + v[, 1] + rnorm(n) / 2
  found$subset <- rep(1:0, length.out = n)
  found
}

ranks_of <- function(fit) {
  paste0("ranks ", toString(paste(names(fit$rank), fit$rank)))
}

# K(K + lambda I)^+ and (K_X P K_X + mu K_X)^+ K_X P y, in R.
pseudo_inverse <- function(a) {
  s <- svd(a)
  kept <- s$d > 1e-15 * s$d[1]
  s$v[, kept] %*% (t(s$u[, kept]) / s$d[kept])
}

printed <- function(x, y, z, lambda, mu) {
  gaussian <- function(x) {
    apart <- stats::dist(scale(x))
    exp(-as.matrix(apart)^2 / (2 * stats::median(apart)^2))
  }
  kx <- gaussian(x)
  kz <- gaussian(z)
  p <- kz %*% pseudo_inverse(kz + diag(lambda, nrow(kz)))
  kp <- kx %*% p
  kx %*% (pseudo_inverse(kp %*% kx + mu * kx) %*% (kp %*% y))
}

# All that a fit takes but the values of g, for several penalties at once.
with_grid <- function(data, lambda, mu) {
  blocks <- internal$read_blocks(list(x = data$a, z = data$d), NULL, NULL,
                                 NULL)
  task <- internal$new_iv_task(
    "classic", c(a = "x", d = "z"), blocks, data$y,
    list(d = rep(TRUE, length(data$y))), "norm", list(d = lambda), iv_control()
  )
  task$maps <- internal$make_maps(task)
  moments <- internal$row_moments(task, seq_along(data$y))
  internal$iv_solve(internal$iv_system(task, moments), mu)
}

# Each gives the times that should not depend on the BLAS.
measure_exact <- function() {
  set.seed(1)
  n <- 2000
  data <- draw(n)
  lambda <- n / 1000
  mu <- n / 1000
  grid <- n * 10^seq(-5, 0, length.out = 30)
  fit <- function(...) {
    rkhs_iv(data$a, data$y, data$d, lambda = lambda, method = "classic", ...)
  }
  nested <- function(...) {
    rkhs_iv_nested(data$a, data$b, data$c, data$d, data$y, subset = data$subset,
                   ...)
  }

  heading("Estimator 1, n = 2,000, three columns")
  times <- in_turn(
    4, one = fit(mu = mu), single = with_grid(data, lambda, mu),
    grid = with_grid(data, lambda, grid), cv = fit(mu = grid)
  )
  exact <- apply(times, 1, min)
  row("one fit", exact[["one"]], ranks_of(fit(mu = mu)))
  row("one fit, without the values of g", exact[["single"]])
  row("30 penalties, without the values of g", exact[["grid"]])
  bar("30 penalties, time to one fit's",
      median(times["grid", ] / times["single", ]), 1.5, at_least = FALSE)
  row("6 folds x 30 penalties", exact[["cv"]])
  bar("cross-validation, time to one fit's",
      median(times["cv", ] / times["one", ]), 8, at_least = FALSE)
  compare_methods(data, iv_control(), 1.6)
  if (fast_blas) {
    theirs <- system.time(
      g <- printed(data$a, data$y, data$d, lambda, mu)
    )[["elapsed"]]
    row("the printed formula, by svd() twice", theirs)
    bar("time, the printed formula / ours", theirs / exact[["one"]], 15)
    cat(sprintf("  largest difference of g %.0e\n",
                max(abs(g - fitted(fit(mu = mu))))))
  }

  heading("The others, one fit, n = 2,000")
  others <- list(
    "Estimator 2, a ridge" = \() fit(mu = 0.01, penalty = "l2"),
    "Estimator 2, projection" = \() {
      rkhs_iv(data$a, data$y, data$d, lambda = 0, mu = 0.01, penalty = "l2")
    },
    "nested, norms" = \() {
      nested(lambda_c = lambda, lambda_d = lambda, mu_g = mu, mu_h = mu)
    },
    "nested, l2" = \() {
      nested(lambda_c = lambda, lambda_d = lambda, mu_g = 0.01, mu_h = 0.01,
             penalty = "l2")
    },
    "nested, norms, every default" = \() nested()
  )
  taken <- vapply(names(others), \(name) {
    seconds <- best(suppressWarnings(others[[name]]()), 2)
    row(name, seconds, ranks_of(suppressWarnings(others[[name]]())))
    seconds
  }, 0)
  c("Estimator 1" = exact[["one"]], "its cross-validation" = exact[["cv"]],
    taken)
}

# Every default, against the same of method "classic".
compare_methods <- function(data, control, most) {
  times <- in_turn(
    3, weak = rkhs_iv(data$a, data$y, data$d, control = control),
    classic = rkhs_iv(data$a, data$y, data$d, method = "classic",
                      control = control)
  )
  row("with every default", min(times["weak", ]))
  bar("time, weak / classic", median(times["weak", ] / times["classic", ]),
      most, at_least = FALSE)
}

measure_large <- function() {
  set.seed(1)
  heading("Nystroem, n = 50,000, 300 landmarks, three columns")
  n <- 50000
  m <- 300
  large <- draw(n)
  f <- matrix(rnorm(n * m), n)
  e <- matrix(rnorm(n * m), n)
  root <- matrix(rnorm(m * m), m)
  large_fit <- function(kernel = NULL) {
    rkhs_iv(large$a, large$y, large$d, kernel, lambda = n / 1000,
            mu = n / 1000, control = iv_control(landmarks = m, scale = TRUE))
  }
  given <- \() large_fit(kernel_rbf(2))
  ours <- apply(in_turn(3, given = given(), median = large_fit()), 1, min)
  times <- in_turn(
    if (fast_blas) 4 else 1,
    given = given(),
    moments = {
      crossprod(f)
      crossprod(f, e)
    },
    features = {
      f %*% root
      e %*% root
    }
  )
  least <- apply(times, 1, min)
  flops <- c(moments = 3, features = 4) * n * m^2
  row("rkhs_iv(landmarks = 300), bandwidth given", ours[["given"]],
      share_of(limit, sum(flops), ours[["given"]]))
  row("rkhs_iv(landmarks = 300), median bandwidth", ours[["median"]])
  row("crossprod(F), crossprod(F, G)", least[["moments"]],
      share_of(limit, flops[["moments"]], least[["moments"]]))
  row("F %*% S, G %*% S", least[["features"]],
      share_of(limit, flops[["features"]], least[["features"]]))
  products <- times["moments", ] + times["features", ]
  bar("bandwidth given, time to the products'",
      median(times["given", ] / products), 2, at_least = FALSE)
  bar("median bandwidth, time to the products'",
      ours[["median"]] / min(products), 2, at_least = FALSE)
  bar("bandwidth given, to the crossprod() alone",
      median(times["given", ] / times["moments", ]), 2, at_least = FALSE)
  rm(f, e)
  compare_methods(large, iv_control(landmarks = m, progress = FALSE), 2)

  # What four times the rows add, to what the features of these rows would take.
  sizes <- c(50000, 200000)
  peak <- vapply(sizes, \(n) {
    peak_memory(
      c("set.seed(1)", sprintf("x <- matrix(rnorm(%d * 3), ncol = 3)", n),
        sprintf("z <- x + rnorm(%d)", n), "y <- x[, 1]",
        "kernel <- kernel_rbf(2)"),
      paste("f <- rkhs_iv(x, y, z, kernel, lambda = 1, mu = 1, control =",
            "iv_control(scale = FALSE, landmarks = 300))")
    )
  }, 0)
  cat(sprintf("  peak memory beyond the data, %d rows: %.0f MB\n", sizes, peak),
      sep = "")
  bar("bytes a row more, to those of its features",
      diff(peak) * 2^20 / (diff(sizes) * 8 * m), 0.2, at_least = FALSE)
  c("Nystroem, bandwidth given" = ours[["given"]],
    "Nystroem, median bandwidth" = ours[["median"]])
}

# A column on both sides of the bar, and next to one in its place, which is an
# instrument of its own for a fit of the same size.
measure_strength <- function() {
  heading("Strength given an exogenous column, n = 2,000")
  set.seed(1)
  n <- 2000
  u <- rnorm(n)
  data <- data.frame(w = rnorm(n), z = rnorm(n))
  data$next_to <- data$w + 1e-6 * rnorm(n)
  data$x <- data$z + data$w^2 + u + rnorm(n)
  data$y <- sin(data$x) + data$w + u
  times <- in_turn(
    5, given = suppressWarnings(rkhs_iv(y ~ x + w | z + w, data)),
    plain = suppressWarnings(rkhs_iv(y ~ x + w | z + next_to, data)),
    one_deal = suppressWarnings(rkhs_iv(
      y ~ x + w | z + w, data,
      control = iv_control(folds = rep_len(1:6, n))
    ))
  )
  row("strength given w", min(times["given", ]))
  bar("time, with partial strength / without",
      median(times["given", ] / times["plain", ]), 1.15, at_least = FALSE)
  row("one deal of folds", min(times["one_deal", ]))
  bar("time, five deals of folds / one",
      median(times["given", ] / times["one_deal", ]), 3, at_least = FALSE)
  NULL
}

found <- c(if ("exact" %in% wanted) measure_exact(),
           if ("strength" %in% wanted) measure_strength(),
           if ("large" %in% wanted) measure_large())

# The same under another BLAS -------------------------------------------------

if (!is.na(file)) {
  known <- if (file.exists(file)) read.csv(file)
  blas <- extSoftVersion()[["BLAS"]]
  for (other in setdiff(known$blas, blas)) {
    heading("Against ", other)
    theirs <- known[known$blas == other & known$what %in% names(found), ]
    ratios <- exp(abs(log(theirs$seconds / found[theirs$what])))
    for (i in seq_along(ratios)) {
      bar(theirs$what[i], ratios[i], 1.5, at_least = FALSE)
    }
  }
  known <- known[known$blas != blas | !known$what %in% names(found), ]
  mine <- data.frame(blas = blas, what = names(found), seconds = found)
  write.csv(rbind(known, mine), file, row.names = FALSE)
}

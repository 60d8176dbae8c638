# Tests given covariates: how often hsic_test(y ~ x | z) rejects where y and x
# are independent given z, and where they are not, beside tests of the
# literature as their papers have them.
#
#   nulls         designs on which the constants of the test were chosen, and
#                 those in which nothing can be learned from so few rows
#   fresh         nulls on which nothing was chosen
#   alternatives  dependence given z: lines, squares, signs, common noise
#
# The rivals are KCI (Zhang and others, 2011), RCoT (Strobl and others, 2019),
# GCM (Shah and Peters, 2020) and PCM (Lundborg and others, 2024, without
# weights of the variance), with Gaussian ridge regressions chosen by left-out
# rows.

usage <- "Usage: Rscript conditional.R [options]

  --part nulls|fresh|alternatives|all  what to measure (all)
  --n N       rows, or several as 100,300, of which alternatives have the first
              (100,300)
  --reps N    samples of each design (500; of more than 200 rows 200)
  --rivals N  samples for the rivals, at the first number of rows (200)
  --from DIR  show the table in DIR, compute nothing
  --out DIR   folder for the table (.)
  --cores N   processes, with the package future.apply (1)
  --quick     the smallest form: one design
  --help      this text"

study_name <- "conditional.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

normal <- stats::rnorm

# Designs ---------------------------------------------------------------------

normals <- function(n, d) matrix(normal(n * d), n)

# x and y have the same mean given z, and noise.
around <- function(z, middle, noise = 0.5) {
  list(z, middle, noise)
  function(n) {
    at <- z(n)
    list(x = middle(at) + noise * normal(n), y = middle(at) + noise * normal(n),
         z = at)
  }
}

five <- function(n) normals(n, 5)
two <- function(n) normals(n, 2)
flat <- function(w) function(n) stats::runif(n, -w, w)

curves <- list(identity, function(v) v^2, function(v) v^3,
               function(v) exp(-abs(v)), tanh)

gan <- function(p = 0) {
  function(n) {
    z <- two(n) * sqrt(0.5)
    noise <- list(0.1 * sqrt(0.5) * two(n), 0.1 * sqrt(0.5) * two(n))
    same <- stats::runif(n) < p
    noise[[1]][same, ] <- noise[[2]][same, ]
    list(x = z + noise[[1]], y = z + noise[[2]], z = z)
  }
}

circle <- function(linked) {
  function(n) {
    angle <- stats::runif(n, 0, 2 * pi)
    z <- cbind(cos(angle), sin(angle))
    noise <- list(0.05 * two(n), 0.05 * two(n))
    if (linked) noise[[1]][, 1] <- noise[[2]][, 1]
    list(x = z + noise[[1]], y = z + noise[[2]], z = z)
  }
}

drawn_curves <- function(common) {
  function(n) {
    u <- common * normal(n)
    list(x = sample(curves, 1)[[1]](normal(n)) + u,
         y = sample(curves, 1)[[1]](normal(n)) + u, z = normal(n))
  }
}

additive_mean <- function(z) {
  (sin(2 * z[, 1]) + z[, 2]^2 / 1.4 + z[, 3] + abs(z[, 4]) +
     tanh(2 * z[, 5])) / 2
}
paired_mean <- function(z) {
  (z[, 1] * z[, 2] + sin(z[, 3] + z[, 4]) + z[, 5] * z[, 1]) / 1.5
}
index <- function(z) rowSums(z) / sqrt(ncol(z))

nulls <- list(
  B = gan(), C = circle(FALSE), E = drawn_curves(0),
  sin3 = around(flat(3), function(z) sin(3 * z), 0.3),
  sin4 = around(normal, function(z) sin(4 * z)),
  sin8 = around(normal, function(z) sin(8 * z)),
  sin8u = around(flat(2), function(z) sin(8 * z), 0.3),
  strong = around(normal, identity, 0.1),
  het2 = function(n) {
    z <- normal(n)
    wide <- exp(z / 1.5)
    list(x = sin(2 * z) + wide * normal(n), y = sin(2 * z) + wide * normal(n),
         z = z)
  },
  pnl5 = function(n) {
    z <- five(n)
    list(x = tanh(index(z) + normal(n) / 2),
         y = (index(z) + normal(n) / 2)^3 / 3, z = z)
  },
  add5 = around(five, additive_mean), int5 = around(five, paired_mean),
  hetv5 = function(n) {
    z <- five(n)
    wide <- exp(z[, 1] / 2)
    list(x = index(z) + wide * normal(n), y = index(z) + wide * normal(n),
         z = z)
  },
  step = around(flat(1), function(z) 2 * (floor(5 * (z + 1)) %% 2)),
  poisson = function(n) {
    z <- normal(n)
    list(x = stats::rpois(n, exp(0.7 * z)), y = stats::rpois(n, exp(0.7 * z)),
         z = z)
  },
  mixed = function(n) {
    z <- data.frame(f = factor(sample(letters[1:3], n, TRUE)), v = normal(n))
    middle <- as.integer(z$f) * z$v / 1.5
    list(x = middle + normal(n) / 2, y = middle + normal(n) / 2, z = z)
  },
  lognormal = function(n) {
    z <- normal(n)
    list(x = exp(z / 2 + normal(n)), y = exp(z / 2 + normal(n)), z = z)
  },
  t2 = around(function(n) stats::rt(n, 2), identity),
  levels8 = function(n) {
    z <- sample(8, n, TRUE)
    list(x = sin(3 * z) + normal(n), y = sin(3 * z) + normal(n), z = z)
  },
  group3 = function(n) {
    z <- normals(n, 3)
    list(x = factor(stats::rbinom(n, 1, stats::plogis(z[, 1] + z[, 2]))),
         y = z[, 1] + z[, 2]^2 / 2 + normal(n) / 2, z = z)
  },
  index5 = around(five, function(z) sin(3 * index(z))),
  quad20 = around(function(n) normals(n, 20), function(z) index(z)^2)
)

fresh <- list(
  waves = around(normal, function(z) cos(5 * z) + abs(z), 0.4),
  saw = around(flat(2), function(z) z %% 1, 0.2),
  square_spread = function(n) {
    z <- normal(n)
    wide <- 0.2 + z^2
    list(x = z + wide * normal(n), y = -z + wide * normal(n), z = z)
  },
  t3 = function(n) {
    z <- normal(n)
    list(x = exp(z) / 2 + stats::rt(n, 3) / 2,
         y = exp(z) / 2 + stats::rt(n, 3) / 2, z = z)
  },
  binary = function(n) {
    z <- normal(n)
    list(x = factor(stats::rbinom(n, 1, stats::plogis(2 * sin(3 * z)))),
         y = 2 * sin(3 * z) + 0.7 * normal(n), z = z)
  },
  product = around(two, function(z) sin(2 * z[, 1]) * z[, 2]),
  three_columns = function(n) {
    z <- two(n)
    middle <- cbind(z[, 1]^2, sin(2 * z[, 2]), z[, 1] * z[, 2])
    list(x = middle + normals(n, 3) / 2, y = middle[, 3:1] + normals(n, 3) / 2,
         z = z)
  },
  squares5 = around(five, function(z) rowSums(z^2) / 4 + z[, 1] * z[, 2] / 2),
  largest5 = around(five, function(z) pmax(z[, 1], z[, 2]) + z[, 3]),
  slopes = function(n) {
    z <- data.frame(f = factor(sample(letters[1:4], n, TRUE)), v = normal(n))
    middle <- as.integer(z$f) * z$v / 2 + z$v^2 / 2
    list(x = middle + normal(n) / 2, y = middle + stats::rexp(n) / 2, z = z)
  }
)

# y depends on the noise e of x.
linked <- function(z, x_mean, y_mean, y_of, x_noise = 1) {
  list(z, x_mean, y_mean, y_of, x_noise)
  function(n) {
    at <- z(n)
    e <- normal(n)
    list(x = x_mean(at) + x_noise * e, y = y_mean(at) + y_of(e, at, normal(n)),
         z = at)
  }
}

alternatives <- list(
  B.2 = gan(0.2), C1 = circle(TRUE), E.25 = drawn_curves(0.25),
  line = linked(normal, identity, identity, function(e, z, u) 0.3 * e + u),
  line_waves = linked(normal, function(z) sin(4 * z), function(z) cos(4 * z),
                      function(e, z, u) (0.3 * e + u) / 2, 0.5),
  square = linked(normal, identity, identity,
                  function(e, z, u) 0.6 * (e^2 - 1) + 0.7 * u),
  square_waves = linked(
    normal, function(z) sin(2 * z), function(z) cos(2 * z),
    function(e, z, u) (0.6 * (e^2 - 1) / sqrt(2) + 0.8 * u) / 2, 0.5
  ),
  sign = linked(normal, identity, identity,
                function(e, z, u) 0.5 * e * sign(z) + 0.7 * u),
  sign_waves = linked(normal, identity, identity,
                      function(e, z, u) 0.5 * e * sign(sin(4 * z)) + 0.7 * u),
  noise5 = function(n) {
    z <- five(n)
    u <- normal(n)
    list(x = index(z) + u / 2 + normal(n) / 2,
         y = tanh(index(z)) + u / 2 + normal(n) / 2, z = z)
  },
  square5 = linked(five, index, index,
                   function(e, z, u) 0.6 * (e^2 - 1) + 0.7 * u),
  shift3 = function(n) {
    z <- normals(n, 3)
    group <- stats::rbinom(n, 1, stats::plogis(z[, 1]))
    list(x = factor(group), y = index(z) + 0.5 * group + normal(n), z = z)
  }
)

# Rivals ----------------------------------------------------------------------

as_columns <- function(v) {
  v <- as.data.frame(v)
  unname(scale(stats::model.matrix(~ ., v)[, -1, drop = FALSE]))
}

squared <- function(a, b = a) {
  pmax(outer(rowSums(a^2), rowSums(b^2), "+") - 2 * tcrossprod(a, b), 0)
}
width_of <- function(a) {
  d <- stats::dist(a)
  stats::median(d[d > 0])
}
gaussian <- function(a, b = a, h = width_of(a)) exp(-squared(a, b) / (2 * h^2))
centered <- function(k) {
  k <- k - rep(colMeans(k), each = nrow(k))
  k - rowMeans(k)
}

# Predictions at `new` by the Gaussian ridge regression on z whose left-out loss
# is smallest.
ridge_at <- function(z, y, new = z) {
  best <- list(loss = Inf)
  for (h in c(0.5, 1, 2) * width_of(z)) {
    pairs <- eigen(gaussian(z, h = h), TRUE)
    turned <- crossprod(pairs$vectors, y)
    for (penalty in nrow(z) * 10^seq(-5, 0, 0.5)) {
      kept <- pmax(pairs$values, 0)
      shares <- kept / (kept + penalty)
      fit <- pairs$vectors %*% (shares * turned)
      loss <- sum(((y - fit) / (1 - drop(pairs$vectors^2 %*% shares)))^2)
      if (loss < best$loss) {
        best <- list(loss = loss, h = h,
                     a = pairs$vectors %*% (turned / (kept + penalty)))
      }
    }
  }
  gaussian(new, z, best$h) %*% best$a
}

# The upper tail of a gamma law with these moments.
gamma_tail <- function(value, mean, variance) {
  stats::pgamma(value, mean^2 / variance, scale = variance / mean,
                lower.tail = FALSE)
}

kci <- function(x, y, z) {
  n <- nrow(x)
  left <- 1e-3 * solve(centered(gaussian(z)) + 1e-3 * diag(n))
  of <- function(a) left %*% centered(gaussian(a)) %*% left
  m <- of(cbind(x, z / 2)) * of(y)
  gamma_tail(sum(diag(of(cbind(x, z / 2)) %*% of(y))), sum(diag(m)),
             2 * sum(m^2))
}

random_features <- function(a, m) {
  w <- matrix(normal(ncol(a) * m), ncol(a)) / width_of(a)
  scale(sqrt(2) * cos(a %*% w + rep(stats::runif(m, 0, 2 * pi),
                                    each = nrow(a))))
}

rcot <- function(x, y, z) {
  n <- nrow(x)
  of_z <- random_features(z, if (n < 400) 25 else 100)
  left <- function(f) {
    f - of_z %*% solve(crossprod(of_z) + 1e-10 * n * diag(ncol(of_z)),
                       crossprod(of_z, f), tol = 0)
  }
  a <- left(random_features(x, 5))
  b <- left(random_features(y, 5))
  products <- a[, rep(1:5, 5)] * b[, rep(1:5, each = 5)]
  values <- eigen(crossprod(products) / n, TRUE, TRUE)$values
  gamma_tail(sum(crossprod(a, b)^2) / n, sum(values), 2 * sum(values^2))
}

gcm <- function(x, y, z) {
  a <- x - ridge_at(z, x)
  b <- y - ridge_at(z, y)
  r <- a[, rep(seq_len(ncol(a)), ncol(b)), drop = FALSE] *
    b[, rep(seq_len(ncol(b)), each = ncol(a)), drop = FALSE]
  largest <- max(abs(sqrt(nrow(r)) * colMeans(r) / apply(r, 2, stats::sd)))
  draws <- crossprod(scale(r), normals(nrow(r), 299)) / sqrt(nrow(r))
  mean(c(largest, apply(abs(draws), 2, max)) >= largest)
}

pcm <- function(x, y, z) {
  y <- y[, 1, drop = FALSE]
  half <- sample(nrow(x), nrow(x) %/% 2)
  rows <- function(m, side) if (side) m[half, , drop = FALSE] else
    m[-half, , drop = FALSE]
  both <- cbind(x, z)
  direction <- function(side) {
    ridge_at(rows(both, TRUE), rows(y, TRUE), rows(both, side))
  }
  h <- direction(FALSE) - ridge_at(rows(z, TRUE), direction(TRUE),
                                   rows(z, FALSE))
  h <- h - ridge_at(rows(z, FALSE), h)
  product <- h * (rows(y, FALSE) - ridge_at(rows(z, FALSE), rows(y, FALSE)))
  stats::pnorm(sqrt(length(product)) * mean(product) / stats::sd(product),
               lower.tail = FALSE)
}

rivals <- list(kci = kci, rcot = rcot, gcm = gcm, pcm = pcm)

# One design ------------------------------------------------------------------

test_sample <- function(d) {
  test <- suppressWarnings(hsic_test(y ~ x | z, d, B = 199))
  given <- test$given
  # Blocks have other statistics.
  line <- if (is.null(given)) NA else test$statistics$p.value[3]
  c(test$p.value, line, if (is.null(given)) 0 else given$strain)
}

rival_sample <- function(d) {
  d <- lapply(d, as_columns)
  vapply(rivals, function(test) test(d$x, d$y, d$z), 0)
}

run_cell <- function(part, name, draw, n, reps, rival_reps, cores) {
  message(part, ": ", name, ", n = ", n)
  set.seed(seed_of("conditional", name, n))
  seeds <- draw_seeds(reps)
  sampled <- function(measure, seeds) {
    list(draw, n, measure)
    found <- over(seeds, function(seed) {
      set.seed(seed)
      measure(draw(n))
    }, cores)
    do.call(rbind, found)
  }
  found <- sampled(test_sample, seeds)
  others <- if (rival_reps > 0) {
    colMeans(rejects(sampled(rival_sample, seeds[seq_len(rival_reps)])))
  } else {
    vapply(rivals, function(test) NA_real_, 0)
  }
  data.frame(part, design = name, n, rejects = mean(rejects(found[, 1])),
             rejects.01 = mean(rejects(found[, 1], 0.01)),
             values = mean(rejects(found[, 2])),
             strained = mean(found[, 3] > 3), t(others), reps)
}

show_table <- function(table) {
  print(table, digits = 3, row.names = FALSE)
  for (n in unique(table$n)) {
    size <- table$rejects[table$n == n & table$part != "alternatives"]
    if (length(size)) {
      say("n = ", n, ": size at most .07 in ", sum(size <= 0.07), " of ",
          length(size), " nulls.")
    }
  }
}

main <- function(args) {
  chosen <- read_options(args, list(
    part = "all", n = "100,300", reps = "", rivals = "200", from = "",
    out = ".", cores = "1", quick = FALSE
  ), usage)
  designs <- list(nulls = nulls, fresh = fresh, alternatives = alternatives)
  part <- one_of(chosen$part, "--part", c(names(designs), "all"))
  if (part != "all") designs <- designs[part]
  if (nzchar(chosen$from)) {
    return(show_table(read_table(file.path(chosen$from, "conditional.csv"))))
  }
  sizes <- vapply(strsplit(chosen$n, ",")[[1]], whole_number, 0, "--n", 30)
  reps <- function(n) {
    if (nzchar(chosen$reps)) whole_number(chosen$reps, "--reps", 2) else
      if (n > 200) 200 else 500
  }
  of_rivals <- min(reps(sizes[1]), whole_number(chosen$rivals, "--rivals", 0))
  cores <- whole_number(chosen$cores, "--cores", 1)
  folder <- output_folder(chosen$out)
  if (chosen$quick) {
    designs <- list(fresh = fresh["binary"])
    sizes <- sizes[1]
  }
  use_one_thread()
  cores <- start_processes(cores)
  rows <- list()
  for (n in sizes) for (part in names(designs)) {
    if (part == "alternatives" && n != sizes[1]) next
    for (name in names(designs[[part]])) {
      rows[[length(rows) + 1]] <- run_cell(
        part, name, designs[[part]][[name]], n, reps(n),
        if (n == sizes[1]) of_rivals else 0, cores
      )
    }
  }
  table <- do.call(rbind, rows)
  write_table(table, folder, "conditional.csv", c("part", "design", "n"))
  show_table(table)
}

main(commandArgs(trailingOnly = TRUE))

# Days as points: each group of a sketch is a day (a batch, a bin of time), and
# what is known of it are the mean of its rows' features, their second moments
# and what the landmarks lose of them.

# --- Days of a sketch --------------------------------------------------------

# The sketch, or an error where it has no days that follow one another.
check_days <- function(sketch, what, name = "x") {
  if (!inherits(sketch, "kme_sketch")) {
    stop_input("'", name, "' must be a sketch with a group for each ", what,
               ", as of kme_sketch(groups = \"day\"), not ", describe(sketch))
  }
  check_one_variable(sketch, name)
  if (!length(sketch$groups)) {
    stop_input("'", name, "' must have a group for each ", what, ", as of ",
               "kme_sketch(groups = \"day\")")
  }
  if (sketch$moments < 2) {
    stop_input("'", name, "' must have second moments, which kme_sketch(",
               "moments = 2) keeps")
  }
  days <- sketch$groups
  dates <- all(grepl("^\\d{4}-\\d\\d-\\d\\d", days))
  late <- if (dates) which(diff(order(days)) != 1)
  if (length(late)) {
    stop_input("the groups of '", name, "' must come in the order of time; ",
               name, "[sort(", name, "$groups)] puts them so")
  }
  sketch
}

# A group: list(name, n: rows, or what they are worth with weights; mean,
# covariance: mean and second moments of features, about 0; lost, share: what
# the landmarks lose of mean k(x, x), and the share of it).
read_day <- function(sketch, name) {
  part <- sketch_sample(sketch, 1L, match(name, sketch$groups))
  moments <- part$moments
  list(name = name, n = part$size, mean = moments$mean,
       covariance = moments$covariance, lost = moments$lost,
       share = moments$lost / moments$trace)
}

# Those read one after the other: list(name, n, lost, share: of each; means:
# features x days; total: of all rows, list(n, first, second)).
add_day <- function(days, day) {
  for (name in c("name", "n", "lost", "share")) {
    days[[name]] <- c(days[[name]], day[[name]])
  }
  days$means <- cbind(days$means, day$mean)
  days$total <- add_rows_of(days$total, day)
  days
}

add_rows_of <- function(total, day) {
  sums <- list(n = day$n, first = day$n * day$mean,
               second = day$n * day$covariance)
  if (is.null(total)) sums else Map(`+`, total, sums)
}

# "20,000 rows each", "500 to 20,000 rows each"
words_of_sizes <- function(sizes) {
  ends <- range(sizes)
  paste0(if (ends[1L] < ends[2L]) paste(format_count(ends[1L]), "to "),
         rows_of(ends[2L]), " each")
}

# --- Units -------------------------------------------------------------------

# list(center, basis: V diag(lambda)^{-1/2}) of the covariance of all rows, of
# which directions with less than 1e-6 of the largest variance are rounding.
whitening <- function(total, directions) {
  center <- total$first / total$n
  covariance <- total$second / total$n - tcross(center)
  pairs <- .Call(C_r_eigen, covariance, min(directions, length(center)))
  kept <- pairs$values > max(least_variance * pairs$values[1L],
                             least_variance^2 * sum(diag(total$second)) /
                               total$n)
  if (!any(kept)) {
    stop_input("'x' must have rows that are not all alike to its landmarks")
  }
  values <- pairs$values[kept]
  list(center = center, basis = pairs$vectors[, kept, drop = FALSE] /
         rep(sqrt(values), each = length(center)))
}

least_variance <- 1e-6

# list(x: days x directions, in units in which rows that are independent give
# the identity as covariance; noise: what it is times that, 1 for the harmonic
# mean of the sizes).
day_points <- function(days, directions) {
  units <- whitening(days$total, directions)
  harmonic <- 1 / mean(1 / days$n)
  list(x = sqrt(harmonic) * cross(days$means - units$center, units$basis),
       noise = harmonic / days$n)
}

# The covariance S of points, with so many degrees of freedom, shrunk to the
# identity, which is what rows alone make of it: list(center, values, vectors,
# rho), (1 - rho) S + rho I (Ledoit and Wolf's rho).
day_metric <- function(x, center = colMeans(x), free = nrow(x) - 1) {
  h <- nrow(x)
  x <- x - rep(center, each = h)
  s <- cross(x) / free
  apart <- (sum(rowSums(x^2)^2) / h - sum(s^2)) / h
  rho <- min(1, max(0.05, apart / sum((s - diag(ncol(s)))^2)))
  c(.Call(C_r_eigen, s, ncol(s)), list(center = center, rho = rho))
}

# Squared distances of days from those that are kept, by their metric; with
# `out` that of a kept day leaves it out, by a change of rank one. Of a day of
# another size the covariance has more or less noise.
metric_distances <- function(x, noise, kept, out) {
  metric <- day_metric(x[kept, , drop = FALSE])
  h <- length(kept)
  y2 <- product(x - rep(metric$center, each = nrow(x)), metric$vectors)^2
  part <- (1 - metric$rho) * pmax(metric$values, 0)
  of <- \(times) {
    variance <- outer(noise - 1 + metric$rho, times * part, "+")
    rowSums(y2 / pmax(variance, noise / 2))
  }
  distances <- of(1)
  if (out) {
    own <- of((h - 1) / (h - 2))[kept]
    less <- (1 - metric$rho) * h / ((h - 1) * (h - 2)) * own
    distances[kept] <- (h / (h - 1))^2 * own / pmax(1 - less, 0.01)
  }
  distances
}

# list(distances, kept; plain: distances where all are kept) of days: a
# symmetric function of them that a few shifted days do not spoil, by
# concentration steps from coordinate medians. Sums go through the days in an
# order of their own, so that the order of time changes no bit.
score_days <- function(points) {
  order <- order(points$x[, 1L])
  x <- points$x[order, , drop = FALSE]
  noise <- points$noise[order]
  n <- nrow(x)
  spread <- pmax(1, apply(x, 2L, stats::mad))
  away <- (x - rep(apply(x, 2L, stats::median), each = n)) /
    rep(spread, each = n)
  distances <- rowSums(away^2)
  kept <- NULL
  for (step in 0:4) {
    before <- kept
    kept <- sort(order(distances)[seq_len(ceiling(0.75 * n))])
    if (identical(kept, before) || step == 4L) break
    distances <- metric_distances(x, noise, kept, FALSE)
  }
  back <- order(order)
  list(distances = metric_distances(x, noise, kept, TRUE)[back],
       kept = order[kept],
       plain = metric_distances(x, noise, seq_len(n), TRUE)[back])
}

# The rank of the last value, 1 for the largest; ties to rounding lower it.
last_rank <- function(values) {
  last <- values[length(values)]
  sum(values >= last - 1e-9 * abs(last))
}

# --- Days that follow each other ---------------------------------------------

# The z of sum |y_t - y_{t-1}|^2 within segments under permutations of their
# bins, by its exact mean and variance: negative where neighbors are alike.
neighbors_z <- function(x, segments = rep(1L, nrow(x))) {
  moments <- vapply(split(seq_len(nrow(x)), segments), \(rows) {
    n <- length(rows)
    if (n < 4L) {
      return(numeric(2))
    }
    d <- as.matrix(stats::dist(x[rows, , drop = FALSE]))^2
    square <- sum(d^2)
    stars <- sum(rowSums(d)^2)
    all <- sum(d)
    mean <- all / n
    pairs <- n * (n - 1)
    apart <- (all^2 - 4 * stars + 2 * square) / (pairs * (n - 2) * (n - 3))
    variance <- (n - 1) * square / pairs +
      2 * (stars - square) / pairs + (n - 2) * (n - 3) * apart - mean^2
    c(sum(d[cbind(2:n, 1:(n - 1))]) - mean, variance)
  }, numeric(2))
  sum(moments[1L, ]) / sqrt(sum(moments[2L, ]))
}

# Points in a metric, by default that of all of them, whatever their order.
metric_points <- function(x, metric = day_metric(x)) {
  scale <- sqrt((1 - metric$rho) * pmax(metric$values, 0) + metric$rho)
  product(x, metric$vectors) / rep(scale, each = nrow(x))
}

# --- Columns -----------------------------------------------------------------

# What the columns do on a day, from the mean of its features: ridge regressions
# at the landmarks of each column, its square, products of two, and indicators
# of levels. list(start, slope: of p functions; table: a row for each functional,
# its label, `of` which function it is, less, where `first` is not 0, the product
# of functions `first` and `second`, center and scale of its units; missing:
# labels of those that the landmarks do not see).
read_functionals <- function(landmarks) {
  targets <- functional_targets(landmarks$variable)
  m <- landmarks$m
  features <- landmarks$root * rep(landmarks$values, each = m)
  center <- colMeans(features)
  features <- features - rep(center, each = m)
  # As many directions as leave landmarks to tell how good they are.
  exact <- is_factor_variable(landmarks$variable)
  most <- if (exact) m else min(most_directions, m %/% 2L)
  units <- whitening(list(n = m, first = 0 * center, second = cross(features)),
                     max(1L, most))
  u <- product(features, units$basis)
  y <- targets$values
  mean <- colMeans(y)
  y <- y - rep(mean, each = m)
  slope <- cross(u, y) / (m + ridge)
  slip <- 1 - 1 / m - if (exact) 0 else rowSums(u^2) / (m + ridge)
  left <- colSums(((y - product(u, slope)) / slip)^2)
  seen <- left <= (1 - least_seen) * colSums(y^2)
  slope <- product(units$basis, slope)
  table <- targets$table
  good <- seen[table$of] & (table$first == 0L | seen[pmax(table$first, 1L)] &
                              seen[pmax(table$second, 1L)])
  list(start = mean - drop(cross(slope, center)), slope = slope,
       table = table[good, ], missing = table$label[!good])
}

# The functionals x days at mean features.
functional_values <- function(functionals, means) {
  table <- functionals$table
  raw <- functionals$start + cross(functionals$slope, means)
  values <- raw[table$of, , drop = FALSE]
  less <- table$first > 0L
  values[less, ] <- values[less, ] -
    raw[table$first[less], ] * raw[table$second[less], ]
  values
}

# Of a difference of means, how many standard deviations of its rows: linear
# about `at`; covariance: of the difference.
functional_z <- function(functionals, difference, at, covariance) {
  table <- functionals$table
  raw <- functionals$start + drop(cross(functionals$slope, at))
  slope <- functionals$slope[, table$of, drop = FALSE]
  less <- table$first > 0L
  slope[, less] <- slope[, less] -
    times_columns(functionals$slope[, table$first[less]],
                  raw[table$second[less]]) -
    times_columns(functionals$slope[, table$second[less]],
                  raw[table$first[less]])
  drop(cross(slope, difference)) /
    sqrt(column_dots(slope, product(covariance, slope)))
}

times_columns <- \(x, by) x * rep(by, each = nrow(x))

# In the units of the columns; a spread as a standard deviation.
in_units <- function(table, values) {
  spread <- table$first > 0L & table$first == table$second
  table$center + table$scale * ifelse(spread, sqrt(pmax(values, 0)), values)
}

most_directions <- 40L
ridge <- 0.3
least_seen <- 0.9
most_paired <- 10L

# list(values: m x p, at the landmarks; table: see read_functionals()).
functional_targets <- function(variable) {
  raw <- if (is_factor_variable(variable)) {
    stats::setNames(data.frame(factor(variable$levels, variable$levels)),
                    if (is.null(variable$column)) "x" else variable$column)
  } else {
    named_frame(sample_raw(variable$sample))
  }
  number <- vapply(raw, is.numeric, NA)
  varies <- vapply(raw, \(z) length(unique(z)) > 1L, NA)
  z <- as.matrix(raw[number & varies])
  center <- colMeans(z)
  scale <- apply(z, 2L, stats::sd)
  z <- (z - rep(center, each = nrow(z))) / rep(scale, each = nrow(z))
  names <- colnames(z)
  d <- ncol(z)
  pairs <- if (d > 1L && d <= most_paired) utils::combn(d, 2L) else
    matrix(0L, 2L, 0L)
  shares <- do.call(cbind, Map(\(z, name) {
    shown <- levels(factor(z))
    `colnames<-`(indicators_of(z, shown), paste(name, "=", shown))
  }, raw[!number & varies], names(raw)[!number & varies]))
  each <- seq_len(d)
  none <- integer(length(colnames(shares)))
  first <- c(0L * each, each, pairs[1L, ], none)
  second <- c(0L * each, each, pairs[2L, ], none)
  table <- data.frame(
    label = c(names, sprintf("sd(%s)", names),
              sprintf("cov(%s, %s)", names[pairs[1L, ]], names[pairs[2L, ]]),
              colnames(shares)),
    of = seq_along(first), first, second
  )
  table$center <- c(center, 0 * center, numeric(nrow(table) - 2L * d))
  table$scale <- c(scale, scale, scale[pairs[1L, ]] * scale[pairs[2L, ]],
                   none + 1)
  paired <- z[, pairs[1L, ], drop = FALSE] * z[, pairs[2L, ], drop = FALSE]
  list(values = unname(cbind(z, z^2, paired, shares)), table = table)
}

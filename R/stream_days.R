# The shelf stream_: monitors of streams and changes in them.
#
# Offers from stream_days.R: times_columns.
#
# Days as points: each group of a sketch is a day (a batch, a bin of time), and
# what is known of it are the mean of its rows' features, their covariance and
# what the landmarks lose of them.
#

# --- Days of a sketch --------------------------------------------------------

# An error unless a sketch has days that follow one another.
check_days <- function(sketch, name = "x") {
  if (!inherits(sketch, "kme_sketch") || !length(sketch$groups) ||
        sketch$moments < 2) {
    stop_input("'", name, "' must be a sketch of rows with a group for each ",
               "day and second moments, as of kme_sketch(groups = \"day\"), ",
               "not ",
               if (inherits(sketch, "kme_sketch")) "one without" else
                 describe(sketch))
  }
  check_one_variable(sketch, name)
  groups <- sketch$groups
  dates <- all(grepl("^\\d{4}-\\d\\d-\\d\\d", groups))
  if (identical(groups, by_numbers(groups))) {
    return(invisible())
  }
  if (dates) {
    stop_input("the groups of '", name, "' must come in the order of time; ",
               name, "[sort(", name, "$groups)] puts dates so")
  }
  if (length(unique(gsub("[0-9]+", "", groups))) == 1L) {
    warn_kernmean("the groups of '", name, "' are days in this order: ",
                  shorten(groups), "; ", name, "[names] takes another order",
                  kind = "order")
  }
}

# A group: list(day: its name; n: rows, or what they are worth with weights;
# lost: the share of mean k(x, x) that the landmarks lose; mean, covariance: of
# its features).
read_day <- function(sketch, name) {
  part <- sketch_sample(sketch, 1L, match(name, sketch$groups))
  moments <- part$moments
  list(day = name, n = part$size, lost = moments$lost / moments$trace,
       mean = moments$mean, covariance = centered_covariance(part))
}

# Days one after the other: list(each: a data frame of day, n and lost; means:
# features x days; total: of all rows, list(n, first, second)).
add_day <- function(days, day) {
  days$each <- rbind(days$each, as.data.frame(day[1:3]))
  days$means <- cbind(days$means, day$mean)
  days$total <- add_total(days$total, day)
  days
}

add_total <- function(total, day) {
  second <- day$covariance + tcross(day$mean)
  sums <- list(n = day$n, first = day$n * day$mean, second = day$n * second)
  if (is.null(total)) sums else Map(`+`, total, sums)
}

# "20,000 rows each", "500 to 20,000 rows each"
words_of_sizes <- function(sizes) {
  ends <- vapply(unique(range(sizes)), format_count, "")
  paste(paste(ends, collapse = " to "), "rows each")
}

# --- Units -------------------------------------------------------------------

least_direction <- 1e-6

# list(center, basis: V diag(lambda)^{-1/2}) of the covariance of all rows, of
# whose directions those with hardly any variance are rounding.
day_units <- function(total, directions) {
  center <- total$first / total$n
  second <- total$second / total$n
  pairs <- .Call(C_r_eigen, second - tcross(center),
                 min(directions, length(center)))
  kept <- pairs$values > max(least_direction * pairs$values[1L],
                             least_direction^2 * sum(diag(second)))
  if (!any(kept)) {
    stop_input("'x' must have rows that are not all alike to its landmarks")
  }
  list(center = center, basis = times_columns(
    take_columns(pairs$vectors, kept), 1 / sqrt(pairs$values[kept])
  ))
}

times_columns <- \(x, by) x * rep(by, each = nrow(x))

# list(x: directions x days, in units in which rows that are independent make
# the identity as covariance; noise: what it is times that for days of other
# sizes than the harmonic mean).
day_points <- function(days, directions) {
  units <- day_units(days$total, directions)
  n <- days$each$n
  # Of equal sizes it is that size, to the bit.
  harmonic <- max(n) / mean(max(n) / n)
  list(x = sqrt(harmonic) * cross(units$basis, days$means - units$center),
       noise = harmonic / n)
}

# The z of sum |y_t - y_{t-1}|^2 within segments, by its exact mean and variance
# under permutations: negative where neighbors are alike.
neighbors_z <- function(x, ends = ncol(x)) {
  .Call(C_r_neighbors, x, as.integer(ends))
}

unlikely_z <- -2.33

# --- Columns -----------------------------------------------------------------

most_directions <- 40L
ridge <- 0.3
least_seen <- 0.9
most_paired <- 10L
# Below it the spread of a functional is rounding.
least_sd <- 1e-9

# What the columns do on a day, from the mean of its features: ridge regressions
# at the landmarks of each column, its square, products of two, and indicators
# of levels. list(start, slope: of all these functions; table: a row for each
# functional, with its label, `of` which function it is, less, where `first` is
# not 0, the product of functions `first` and `second`, center and scale of its
# units; missing: labels of those that the landmarks, each left out, do not
# tell).
read_functionals <- function(landmarks) {
  targets <- functional_targets(landmarks$variable)
  m <- landmarks$m
  features <- t(times_columns(landmarks$root, landmarks$values))
  exact <- is_factor_variable(landmarks$variable)
  units <- day_units(
    list(n = m, first = rowSums(features), second = tcross(features)),
    if (exact) m else max(1L, min(most_directions, m %/% 2L))
  )
  u <- cross(units$basis, features - units$center)
  mean <- colMeans(targets$values)
  y <- targets$values - rep(mean, each = m)
  slope <- product(u, y) / (m + if (exact) 0 else ridge)
  slip <- if (exact) 1 else 1 - 1 / m - colSums(u^2) / (m + ridge)
  left <- colSums(((y - cross(u, slope)) / slip)^2)
  seen <- left <= (1 - least_seen) * colSums(y^2)
  slope <- product(units$basis, slope)
  table <- targets$table
  known <- c(TRUE, seen)
  good <- seen[table$of] & known[table$first + 1L] & known[table$second + 1L]
  list(start = mean - drop(cross(slope, units$center)), slope = slope,
       table = table[good, ], missing = table$label[!good])
}

# list(values: m x functions, at the landmarks; table).
functional_targets <- function(variable) {
  raw <- if (is_factor_variable(variable)) {
    data.frame(x = factor(variable$levels, variable$levels))
  } else {
    named_frame(sample_raw(variable$sample))
  }
  raw <- raw[lengths(lapply(raw, unique)) > 1L]
  number <- vapply(raw, is.numeric, NA)
  z <- scale(as.matrix(raw[number]))
  shares <- lapply(names(raw)[!number], \(name) {
    shown <- levels(droplevels(as_factor(raw[[name]])))
    `colnames<-`(indicators_of(raw[[name]], shown), paste(name, "=", shown))
  })
  single <- do.call(cbind, c(list(z), shares))
  d <- ncol(z)
  paired <- if (d > most_paired) diag(d) > 0 else upper.tri(diag(d), TRUE)
  pairs <- which(paired, arr.ind = TRUE)
  i <- pairs[, 1L]
  j <- pairs[, 2L]
  names <- colnames(single)
  none <- integer(ncol(single))
  others <- rep(1, ncol(single) - d)
  units <- c(attr(z, "scaled:scale"), others)
  list(
    values = unname(cbind(single, single[, i] * single[, j])),
    table = data.frame(
      label = c(names, ifelse(i == j, sprintf("sd(%s)", names[i]),
                              sprintf("cov(%s, %s)", names[i], names[j]))),
      of = seq_len(ncol(single) + length(i)), first = c(none, i),
      second = c(none, j),
      center = c(attr(z, "scaled:center"), 0 * others, 0 * i),
      scale = c(units, units[i] * units[j])
    )
  )
}

# The functionals x days at mean features.
functional_values <- function(functionals, means) {
  table <- functionals$table
  raw <- functionals$start + cross(functionals$slope, means)
  values <- take_rows(raw, table$of)
  less <- table$first > 0L
  values[less, ] <- values[less, ] -
    raw[table$first[less], ] * raw[table$second[less], ]
  values
}

# Of a difference of means, so many standard deviations of its noise: linear
# about `at`; covariance: of the difference.
functional_z <- function(functionals, difference, at, covariance) {
  table <- functionals$table
  raw <- functionals$start + drop(cross(functionals$slope, at))
  slope <- take_columns(functionals$slope, table$of)
  for (k in which(table$first > 0L)) {
    pair <- c(table$first[k], table$second[k])
    slope[, k] <- slope[, k] - functionals$slope[, pair] %*% raw[rev(pair)]
  }
  drop(cross(slope, difference)) /
    sqrt(pmax(column_dots(slope, product(covariance, slope)), least_sd^2))
}

# In the units of the columns; a spread as a standard deviation.
in_units <- function(table, values) {
  spread <- table$first > 0L & table$first == table$second
  values <- table$center + table$scale * values
  ifelse(spread, sqrt(pmax(values, 0)), values)
}

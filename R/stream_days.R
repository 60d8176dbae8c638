# The shelf stream_: monitors of streams and changes in them.
#
#
# Days as points: each group of a sketch is a day (a batch, a bin of time). A
# day is known by the mean and the covariance of the features of its rows and by
# the share of them that the landmarks lose.
#

# --- Days of a sketch --------------------------------------------------------

# Stops unless `sketch` is a sketch whose groups are days in a row.
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

# A day, a group of a sketch:
#   day          its name
#   n            number of rows, or what they are worth with weights
#   lost         the share of mean k(x, x) that the landmarks lose
#   mean         mean of its rows' features
#   covariance   their covariance
new_day <- function(sketch, name) {
  part <- sketch_sample(sketch, 1L, match(name, sketch$groups))
  moments <- part$moments
  list(day = name, n = part$size, lost = moments$lost / moments$trace,
       mean = moments$mean, covariance = centered_covariance(part))
}

# Days one after the other:
#   each    a data frame of day, n and lost
#   means   the mean features of each day, r x days matrix
#   total   sums over all rows: their number n, first and second moments
new_days <- function() list(each = NULL, means = NULL, total = NULL)

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

# The units in which days are compared:
#   center   mean of the features of all rows
#   basis    V diag(lambda)^{-1/2} of their covariance, r x directions matrix;
#            directions with hardly any variance are rounding, and left out
new_day_units <- function(total, directions) {
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

# Days as points:
#   x       directions x days matrix, in units in which independent rows have
#           the identity as covariance
#   noise   by how much that covariance is larger for days of other sizes than
#           the harmonic mean
new_day_points <- function(days, directions) {
  units <- new_day_units(days$total, directions)
  n <- days$each$n
  # The sizes are divided by their maximum so that the harmonic mean of equal
  # sizes is exactly that size.
  harmonic <- max(n) / mean(max(n) / n)
  list(x = sqrt(harmonic) * cross(units$basis, days$means - units$center),
       noise = harmonic / n)
}

# The z of sum |y_t - y_{t-1}|^2 within segments, from its exact mean and
# variance under permutations. It is negative where neighbors are alike.
neighbors_z <- function(x, ends = ncol(x)) {
  .Call(C_r_neighbors, x, as.integer(ends))
}

unlikely_z <- -2.33

# --- Columns -----------------------------------------------------------------

most_directions <- 40L
ridge <- 0.3
least_seen <- 0.9
most_paired <- 10L
# If the spread of a functional is smaller than this, it is rounding error.
least_sd <- 1e-9

# Functionals of the columns (means, spreads, covariances, shares of levels),
# computed from linear functions of the mean feature of a day. These functions
# are the columns, the products of two columns, and indicators of levels; ridge
# regressions at the landmarks fit them:
#   start     the intercepts of the functions
#   slope     their slopes, r x functions matrix
#   table     a row for each functional: its label, `of` which function it is,
#             less the product of the functions `first` and `second` where these
#             are not 0, center and scale of its units
#   missing   labels of those that the landmarks, each left out, do not tell
new_functionals <- function(landmarks) {
  targets <- functional_targets(landmarks$variable)
  m <- landmarks$m
  features <- t(times_columns(landmarks$root, landmarks$values))
  exact <- is_factor_variable(landmarks$variable)
  units <- new_day_units(
    list(n = m, first = rowSums(features), second = tcross(features)),
    if (exact) m else max(1L, min(most_directions, m %/% 2L))
  )
  u <- cross(units$basis, features - units$center)
  center <- colMeans(targets$values)
  y <- targets$values - rep(center, each = m)
  slope <- product(u, y) / (m + if (exact) 0 else ridge)
  slip <- if (exact) 1 else 1 - 1 / m - colSums(u^2) / (m + ridge)
  left <- colSums(((y - cross(u, slope)) / slip)^2)
  seen <- left <= (1 - least_seen) * colSums(y^2)
  slope <- product(units$basis, slope)
  each <- targets$table
  known <- c(TRUE, seen)
  good <- seen[each$of] & known[each$first + 1L] & known[each$second + 1L]
  list(start = center - drop(cross(slope, units$center)), slope = slope,
       table = each[good, ], missing = each$label[!good])
}

# A list of `values`, the m x functions matrix of the functions at the
# landmarks, and `table`, the functionals that are computed from these
# functions.
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
  labels <- colnames(single)
  none <- integer(ncol(single))
  others <- rep(1, ncol(single) - d)
  units <- c(attr(z, "scaled:scale"), others)
  list(
    values = unname(cbind(single, single[, i] * single[, j])),
    table = data.frame(
      label = c(labels, ifelse(i == j, sprintf("sd(%s)", labels[i]),
                               sprintf("cov(%s, %s)", labels[i], labels[j]))),
      of = seq_len(ncol(single) + length(i)), first = c(none, i),
      second = c(none, j),
      center = c(attr(z, "scaled:center"), 0 * others, 0 * i),
      scale = c(units, units[i] * units[j])
    )
  )
}

# The functionals x days matrix of the functionals at the mean features of days
# (r x days matrix).
functional_values <- function(functionals, means) {
  each <- functionals$table
  raw <- functionals$start + cross(functionals$slope, means)
  values <- take_rows(raw, each$of)
  less <- each$first > 0L
  values[less, ] <- values[less, ] -
    raw[each$first[less], ] * raw[each$second[less], ]
  values
}

# The change of each functional that belongs to a difference of mean features,
# divided by its standard deviation. Functionals are linearized at the mean
# `center`; `covariance` is the covariance of the difference.
functional_z <- function(functionals, difference, center, covariance) {
  each <- functionals$table
  raw <- functionals$start + drop(cross(functionals$slope, center))
  slope <- take_columns(functionals$slope, each$of)
  for (k in which(each$first > 0L)) {
    pair <- c(each$first[k], each$second[k])
    slope[, k] <- slope[, k] - functionals$slope[, pair] %*% raw[rev(pair)]
  }
  drop(cross(slope, difference)) /
    sqrt(pmax(column_dots(slope, product(covariance, slope)), least_sd^2))
}

# Values of functionals in the units of the columns, spreads as standard
# deviations; `each` is the table of the functionals.
in_units <- function(each, values) {
  spread <- each$first > 0L & each$first == each$second
  values <- each$center + each$scale * values
  ifelse(spread, sqrt(pmax(values, 0)), values)
}

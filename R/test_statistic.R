# --- Statistics --------------------------------------------------------------

# A statistic, as observed and as drawn, in the units in which a test reports
# it:
#   name      what it is called
#   values    of the observed labeling, then of each draw
#   size      of the terms whose sum it is, see permutation_p()
#   order, ratio, factor   as test_filter() has them; a statistic without a
#             number has its name for an order, one without a filter NA for a
#             ratio; a factor for each variable
#   bandwidth of its kernel, NA where there is not one
#   weight    of its z in a joint test
#   blind     TRUE where it sees no shift of means
#   left, spectra, table   see filter_spectrum(), spectra_frame() and
#             aggregate_statistics()
new_statistic <- function(name, values, size, order = 0L, ratio = NA_real_,
                          factor = c(factor = 1), bandwidth = NA_real_,
                          weight = 1, blind = FALSE, left = 0, spectra = NULL,
                          table = NULL) {
  list(name = name, values = values, size = size, order = order, ratio = ratio,
       factor = factor, bandwidth = bandwidth, weight = weight, blind = blind,
       left = left, spectra = spectra, table = table)
}

# "order 1, ratio 0.01"
with_ratio <- \(word, ratio) paste0(word, ", ratio ", format_number(ratio, 3L))

# Returns the list of the statistics that make(factor) returns for each factor
# of the bandwidth, or for each row of a matrix with a column for each variable.
# If there are several factors, the names of the statistics say which.
across_factors <- function(factors, make, bandwidth = NULL) {
  factors <- as.matrix(factors)
  columns <- colnames(factors) %||% "factor"
  unlist(lapply(seq_len(nrow(factors)), \(row) {
    factor <- unname(factors[row, ])
    words <- if (nrow(factors) > 1L) {
      paste0(", bandwidth", if (length(factor) > 1L) "s", " x ",
             paste(format_number(factor, 3L), collapse = " and "))
    }
    lapply(make(factor), \(statistic) {
      statistic$name <- paste0(statistic$name, words)
      statistic$factor <- stats::setNames(factor, columns)
      statistic$bandwidth <- factor[1L] * one_number(bandwidth)
      statistic
    })
  }), FALSE)
}

# Statistics of means have this weight in a joint test with statistics that see
# no shift of means.
weight_of_means <- 1.3

# Combines several statistics into one, "max z": each is standardized over all
# draws, and the value of a labeling is its largest z. The `table` has a row for
# each statistic. A single statistic stays as it is, with its row. complete: is
# the observed labeling among the draws?
aggregate_statistics <- function(statistics, complete) {
  field <- \(name) unlist(lapply(statistics, `[[`, name))
  values <- do.call(cbind, lapply(statistics, `[[`, "values"))
  check_memory(nrow(values), ncol(values), "take fewer draws", copies = 3,
               what = "a table of the statistics of all draws,")
  size <- field("size")
  p <- vapply(statistics, \(one) {
    permutation_p(one$values[1L], one$values[-1L], one$size, complete)
  }, 1)
  weight <- field("weight")
  if (any(field("blind"))) {
    means <- field("order") %in% 0:1
    weight[means] <- weight_of_means * weight[means]
  }
  units <- draw_units(values, size, complete)
  sd <- ifelse(units$still, 1, units$sd)
  z <- (values - rep(units$mean, each = nrow(values))) /
    rep(sd / weight, each = nrow(values))
  z[, units$still] <- 0
  top <- row_max(z)
  # Several z may be the largest but for rounding; the first of them is taken.
  largest <- which(z[1L, ] >= top[1L] - tie_slack * (1 + abs(top[1L])))[1L]
  band <- column_quantiles(take_rows(z, -1L), c(0.05, 0.95))
  joint <- statistics[[largest]]
  factors <- do.call(rbind, lapply(statistics, `[[`, "factor"))
  table <- data.frame(
    statistic = field("name"), order = field("order"), ratio = field("ratio"),
    bandwidth = field("bandwidth"), factors, value = values[1L, ],
    z = z[1L, ], z.05 = band[1L, ], z.95 = band[2L, ], p.value = p,
    maximum = seq_along(statistics) == largest, row.names = NULL
  )
  if (length(statistics) > 1L) {
    same <- vapply(statistics, \(s) identical(s$factor, joint$factor), NA)
    # A division by a small deviation makes the rounding of the statistic large.
    slack <- if (!units$still[largest]) 1e-2 * size[largest] / sd[largest]
    joint <- new_statistic("max z", top, sum(1, slack), spectra = do.call(
      rbind, lapply(statistics[same], `[[`, "spectra")
    ))
  }
  joint$left <- max(field("left"))
  joint$table <- table
  joint
}

# Returns the mean and standard deviation of each statistic, a column, over the
# draws. A statistic is `still` if its draws vary by no more than rounding.
draw_units <- function(values, size, complete) {
  drawn <- if (complete) take_rows(values, -1L) else values
  mean <- colMeans(drawn)
  sd <- sqrt(colSums((drawn - rep(mean, each = nrow(drawn)))^2) /
               max(1, nrow(drawn) - 1))
  list(mean = mean, sd = sd, still = !(sd > 1e-10 * (abs(mean) + size)))
}

# --- p-values ----------------------------------------------------------------

tie_slack <- 1e-10

# The p-value of a permutation test: the share of draws at least as large as
# the observed statistic, which counts as one of them unless `complete` (it is
# among the draws already). Values that differ by no more than the rounding of
# terms of this `size` are ties; NULL stands for terms as large as the
# statistics, as the norms of shrunk means are.
permutation_p <- function(observed, replicates, size, complete = FALSE) {
  size <- size %||% max(abs(c(observed, replicates)))
  slack <- tie_slack * (abs(observed) + size)
  extra <- if (complete) 0 else 1
  (sum(replicates >= observed - slack) + extra) / (length(replicates) + extra)
}

# The null distribution of a statistic: the p-value, its draws, and shape and
# scale of a gamma law.
new_null <- function(p, draws = NULL, gamma = NULL) {
  list(p = p, draws = draws, gamma = gamma)
}

# The null distribution of a statistic that was drawn.
drawn_null <- function(statistic, scheme) {
  warn_least(statistic, scheme)
  draws <- statistic$values[-1L]
  new_null(permutation_p(statistic$values[1L], draws, statistic$size,
                         scheme$complete), draws)
}

# The gamma law with this mean and variance, in these units; without a variance
# there is no law, and p is 1.
gamma_null <- function(observed, mean, variance, unit = 1) {
  if (!(variance > 0)) {
    return(new_null(1))
  }
  gamma <- c(shape = mean^2 / variance, scale = unit * variance / mean)
  check_result(c(gamma, 1 / gamma), "the gamma law")
  new_null(stats::pgamma(observed, gamma[["shape"]], scale = gamma[["scale"]],
                         lower.tail = FALSE), gamma = gamma)
}

usual_level <- 0.05

# Warns if no data could give a p-value at the usual level, unless the user gave
# the permutations. By symmetry and ties, several labelings may have the largest
# statistic, which makes the least p-value larger.
warn_least <- function(statistic, scheme) {
  values <- statistic$values
  drawn <- is.null(scheme$matrix)
  few <- isTRUE(scheme$ways <= length(values))
  least <- if (drawn) 1 / min(length(values), scheme$ways) else
    permutation_p(max(values), values[-1L], statistic$size, scheme$complete)
  # check_varies() has already warned of values that are all equal.
  if ((drawn || few) && least > usual_level * (1 + 1e-9) && least < 1) {
    warn_kernmean(
      "the p-value is at least ", format(least, digits = 2), if (few) {
        paste0(": labels can be given in only ", scheme$ways, " ways")
      } else {
        paste(" with B =", scheme$B)
      }, kind = "few"
    )
  }
}

# Warns if no permutation changes the statistic, because its p-value of 1 must
# not look like independence, or like equal distributions. There is no warning
# with few random draws, which may be equal by chance.
check_varies <- function(values, scheme, size = NULL) {
  drawn <- is.null(scheme$matrix)
  if ((drawn || scheme$all) && length(values) > (if (drawn) 9L else 1L) &&
        diff(range(values)) <= tie_slack * max(abs(values), size)) {
    warn_kernmean(
      "no permutation changes the statistic, so that the test says nothing: ",
      "to a kernel the points, or the values of a variable, are all equal, no ",
      "two are alike, or they are the same in all that changes places"
    )
  }
}

# Returns log(mean(exp(z))) of each row of a matrix z.
log_mean_exp <- function(z) {
  top <- row_max(z)
  top + log(rowMeans(exp(z - top)))
}

# After centering, entries of a constant matrix have at most this size, relative
# to the kernel values. They are rounding, which is not to be tested.
rounding <- 16 * .Machine$double.eps

# Mean and variance of sum_ij k_ij l_p(i)p(j) over all permutations p, from the
# parts of two centered matrices, see new_part() (Kazi-Aoual et al. 1995).
form_moments <- function(x, y) {
  n <- length(y$diagonal)
  factors <- \(part) {
    trace2 <- part$trace^2
    norm2 <- part$norm^2
    c((n - 1) * norm2 - trace2,
      n * (n + 1) * sum(part$diagonal^2) - (n - 1) * (trace2 + 2 * norm2))
  }
  a <- factors(x)
  b <- factors(y)
  list(mean = x$trace * y$trace / (n - 1),
       variance = 2 * a[1L] * b[1L] / ((n - 1)^2 * (n + 1) * (n - 2)) +
         a[2L] * b[2L] / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3)))
}

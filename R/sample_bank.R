# The bank: smoothers of covariates by many kernels, and the choice between them
# by exact left-out losses.

# Covariates as columns of mean 0 and variance 1, indicators for factors.
#   x              the columns
#   like           the covariates as they were given, without unused levels of
#                  factors that have no order; new ones must match them
#   center, scale  what is subtracted from each column, and then divides it
new_covariates <- function(like, name = "the covariates") {
  if (is.data.frame(like)) {
    like[] <- lapply(like, \(x) {
      if (is.factor(x) && !is.ordered(x)) droplevels(x) else x
    })
  }
  x <- check_finite(covariate_columns(like, name = name), name)
  center <- colMeans(x)
  # In a unit of their size no square over- or underflows.
  unit <- vapply(seq_len(ncol(x)), \(j) power_below(max(abs(x[, j])), 1), 0)
  squares <- center_columns(times_columns(x, 1 / unit))^2
  scale <- unit * sqrt(colSums(squares) / max(1, nrow(x) - 1))
  list(x = unit_columns(x, center, scale), like = like, center = center,
       scale = scale)
}

# The columns of new covariates, in the units of those of a fit.
covariates_at <- function(covariates, new, name = "newdata") {
  unit_columns(covariate_columns(new, covariates$like, name),
               covariates$center, covariates$scale)
}

# A column that does not vary becomes 0.
unit_columns <- function(x, center, scale) {
  n <- nrow(x)
  (x - rep(center, each = n)) / rep(ifelse(scale > 0, scale, Inf), each = n)
}

# A list of the kernels of the bank, by name: linear, or linear plus one that
# bends. The widths are multiples of the median distance of the points or, in
# sums of kernels of a column each, of the column.
bank_kernels <- function(x) {
  d <- ncol(x)
  linear <- (1 / d) * kernel_linear()
  median_of <- \(x) median_bandwidth(kernel_rbf(), x)$bandwidth
  all <- median_of(x)
  each <- vapply(seq_len(d), \(j) median_of(take_columns(x, j)), 0)
  gaussian <- \(share) kernel_rbf(share * all)
  if (d == 1L) {
    bent <- c(named_kernels("Gaussian", 2^(1:-4), gaussian),
              Laplace = list(kernel_laplace(all)))
  } else {
    of_columns <- \(at, share) {
      kernel_rbf(share * each[at], columns = at)
    }
    additive <- \(share) Reduce(`+`, lapply(seq_len(d), of_columns, share))
    pairs <- \(share) {
      Reduce(`+`, utils::combn(d, 2L, of_columns, FALSE, share),
             additive(share))
    }
    bent <- c(
      named_kernels("Gaussian", 2^(0:-2), gaussian),
      named_kernels("additive", 2^(0:-2), additive),
      if (d <= most_pairs_of) named_kernels("pairs", 2^(0:-1), pairs),
      "additive Laplace" = list(Reduce(`+`, lapply(seq_len(d), \(j) {
        kernel_laplace(each[j], columns = j)
      })))
    )
  }
  c(linear = list(linear), lapply(bent, \(kernel) linear + kernel))
}

# Pairs of columns are for at most this many columns.
most_pairs_of <- 6L

named_kernels <- function(word, shares, make) {
  stats::setNames(lapply(shares, make), paste(word, format_number(shares, 4L)))
}

# A smoother for each kernel, from a factor of at most 150 columns.
make_bank <- function(x, kernels = bank_kernels(x), rows = seq_len(nrow(x)),
                      weights = rep(1, nrow(x)), unit = seq_len(nrow(x))) {
  lapply(kernels, \(kernel) {
    sample <- points_sample(x, fit_kernel(kernel, x))
    map <- pivoted_map(sample, pivoted_factor(sample_source(sample),
                                              bank_tolerance, bank_columns))
    make_smoother(map, rows, weights, unit)
  })
}

bank_tolerance <- 1e-13
bank_columns <- 150L

# The penalties of the bank; the smoother with the penalty `infinite` is the
# mean.
bank_penalties <- 10^seq(-6, 1, by = 0.5)

# A smoother of the bank that was chosen for a response of one or more columns.
#   smoother, name  the smoother, and the name of its kernel
#   penalty, df     its penalty and degrees of freedom
#   losses          the left-out squared residual of each row
#   loss            their weighted mean
#   r2              1 less its ratio to the loss of left-out means
new_chosen <- function(smoother, name, penalty, losses, y) {
  weights <- smoother$ridge$weights
  away <- y - rep(colMeans(weights * y), each = nrow(y))
  total <- mean(weights * rowSums(away^2) / (1 - weights / nrow(y))^2)
  loss <- mean(weights * losses)
  list(smoother = smoother, name = name, penalty = penalty,
       df = smoother_df(smoother, penalty), losses = losses, loss = loss,
       r2 = if (total > 0) 1 - loss / total else 0)
}

smoother_df <- function(s, penalty) {
  colSums(s$ridge$values * ridge_inverse(s$ridge, penalty))
}

# The smoother and the penalty with the smallest left-out loss, of at most .6
# degrees of freedom for each row.
choose_smoother <- function(bank, y) {
  y <- as.matrix(y)
  best <- NULL
  for (name in names(bank)) {
    s <- bank[[name]]
    allowed <- bank_penalties[smoother_df(s, bank_penalties) <=
                                most_freedom * nrow(y)]
    if (!length(allowed)) next
    losses <- smoother_losses(s, y, allowed)
    means <- colMeans(s$ridge$weights * losses)
    least <- which.min(means)
    if (is.null(best) || means[least] < best$loss) {
      best <- new_chosen(s, name, allowed[least], losses[, least], y)
    }
  }
  best
}

most_freedom <- 0.6

# The fitted values of each column of y.
smoother_fit <- function(s, y, penalty) {
  product(s$ridge$z, drop(ridge_inverse(s$ridge, penalty)) * right_sides(s, y))
}

# The axes of the smoother at features f.
smoother_axes <- function(s, f) {
  center <- colMeans(map_features(s$map, s$rows) * s$ridge$weights)
  cbind(1, product(f - rep(center, each = nrow(f)), s$turn))
}

# The share of a row's own value in its fit, for each row.
smoother_leverages <- function(s, penalty) {
  drop(product(s$ridge$z^2, ridge_inverse(s$ridge, penalty))) *
    s$ridge$weights / nrow(s$ridge$z)
}

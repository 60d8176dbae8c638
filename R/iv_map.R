# Feature maps of the blocks of an instrumental-variable fit: K = FF', row i of
# F the features of point i. A map is list(sample, r: the number of features,
# ...), made once for all rows, with two verbs: map_features(), rows of F, and
# map_weights(), the weights of k(., a_i) in a function of the features.

new_map <- function(kind, sample, r, ...) {
  structure(list(sample = sample, r = r, ...),
            class = c(paste0(kind, "_map"), "feature_map"))
}

# What is left of the trace when the exact factor stops.
factor_tolerance <- 1e-13

# All of K, to rounding: F has as many columns as K has rank.
exact_map <- function(variable, name) {
  sample <- variable$sample
  n <- sample$n
  check_overflow(sample$kernel, sample_diagonal(sample))
  source <- sample_source(sample)
  # Most ranks are far below n, and memory is n times the columns that there is
  # room for.
  for (most in unique(pmin(n, c(64, 256, 1024, 4096, 16384, n)))) {
    check_memory(n, most, "use landmarks = or features =", copies = 2,
                 what = paste0("the factor of '", name, "'"))
    found <- .Call(C_r_pivoted, source, factor_tolerance, as.integer(most),
                   FALSE)
    if (!is.null(found)) break
  }
  if (!length(found$pivots)) {
    stop_input("'", name, "' must have kernel values that are not all 0")
  }
  new_map("exact", sample, length(found$pivots), factor = found$factor,
          centers = found$pivots)
}

# Indicators of the groups of equal points, which span what any kernel that
# tells points apart spans.
group_map <- function(variable, code) {
  new_map("group", variable$sample, max(code), code = code)
}

# The group of each point, in the order of their first points; NULL where the
# kernel does not tell points apart, or more than half of them are alone.
equal_points <- function(variable) {
  sample <- variable$sample
  if (!knows_points(sample) || !has_unit_diagonal(sample$kernel)) {
    return(NULL)
  }
  code <- rep(1, sample$n)
  for (j in seq_len(ncol(sample$x))) {
    column <- sample$x[, j]
    code <- (code - 1) * sample$n + match(column, unique(column))
    code <- match(code, unique(code))
  }
  if (max(code) <= sample$n / 2) code
}

# Projections on the sections of m points: F = K_nm U S^{-1/2}, K_mm = USU'.
landmark_map <- function(variable, rows, name) {
  sample <- variable$sample
  m <- length(rows)
  k <- check_gram(landmark_values(sample, rows, rows),
                  paste0("the matrix of kernel values of '", name, "'"))
  found <- .Call(C_r_eigen, k, m)
  kept <- found$values > m * .Machine$double.eps * max(found$values, 0)
  if (!any(kept)) {
    stop_input("'", name, "' must have kernel values that are not all 0")
  }
  root <- found$vectors[, kept, drop = FALSE] /
    rep(sqrt(found$values[kept]), each = m)
  new_map("landmark", sample, sum(kept), centers = rows, root = root)
}

landmark_values <- function(sample, rows, centers) {
  own <- sample_values(sample)
  if (is.null(own[[1L]])) {
    return(own[[2L]][rows, centers, drop = FALSE])
  }
  fold_store(own[[1L]], own[[2L]][rows, , drop = FALSE],
             own[[2L]][centers, , drop = FALSE])
}

# A factor has no need of approximation: its indicators are its features.
indicator_map <- function(variable) {
  x <- variable$sample$x
  new_map("indicator", variable$sample, ncol(x),
          centers = match(seq_len(ncol(x)), max.col(x, "first")))
}

# Random Fourier features of the Gaussian kernel: sqrt(2/m) cos(x'omega + b).
fourier_map <- function(variable, m, name) {
  sample <- variable$sample
  if (!knows_points(sample) || !is_rbf(sample$kernel) ||
        is_mixed_variable(variable)) {
    stop_input("'features' must not be given unless each block has points in ",
               "numeric columns with kernel_rbf(), or is a factor; '", name,
               "' is not so; 'landmarks' are for any kernel")
  }
  check_memory(max(sample$n, ncol(sample$x)), m, "take fewer features",
               copies = 2, what = "the features")
  drawn <- draw_fourier(ncol(sample$x), m)
  new_map("fourier", sample, m, omega = drawn$normals / sample$kernel$bandwidth,
          offset = drawn$offsets)
}

draw_fourier <- function(d, m) {
  list(normals = matrix(stats::rnorm(as.double(d) * m), d),
       offsets = stats::runif(m, 0, 2 * pi))
}

# --- Verbs -------------------------------------------------------------------

map_features <- function(map, i) UseMethod("map_features")

map_features.exact_map <- function(map, i) map$factor[i, , drop = FALSE]

map_features.group_map <- function(map, i) {
  outer(map$code[i], seq_len(map$r), `==`) + 0
}

map_features.landmark_map <- function(map, i) {
  product(landmark_values(map$sample, i, map$centers), map$root)
}

map_features.fourier_map <- function(map, i) {
  fourier_features(map, map$sample$x[i, , drop = FALSE])
}

map_features.indicator_map <- function(map, i) {
  map$sample$x[i, , drop = FALSE]
}

fourier_features <- function(map, x) {
  sqrt(2 / map$r) * cos(product(cbind(unname(x), 1),
                                rbind(map$omega, map$offset)))
}

# Weights of all n points, 0 of those that are no centers; NULL where the
# function is no combination of sections.
map_weights <- function(map, theta) UseMethod("map_weights")

map_weights.exact_map <- function(map, theta) {
  top <- map$factor[map$centers, , drop = FALSE]
  place_weights(map, solve_lower(top, as.matrix(theta), transpose = TRUE))
}

map_weights.landmark_map <- function(map, theta) {
  place_weights(map, product(map$root, as.matrix(theta)))
}

# The first point of each level stands for it.
map_weights.indicator_map <- function(map, theta) place_weights(map, theta)

map_weights.default <- function(map, theta) NULL

place_weights <- function(map, weights) {
  placed <- numeric(map$sample$n)
  placed[map$centers] <- weights
  placed
}

# What is kept of a function: list(weights, centers), or of random features
# list(r, omega, offset, theta).
map_function <- function(map, theta) {
  weights <- map_weights(map, theta)
  if (is.null(weights)) {
    c(unclass(map)[c("r", "omega", "offset")], list(theta = theta))
  } else {
    list(weights = weights, centers = map$centers)
  }
}

# The values of a function f with coefficients theta at the points of the
# sample.
map_values <- function(map, f, theta) {
  if (!is.null(f$weights) && !stores_gram(map$sample)) {
    return(function_at(f, map$sample, own_points(map$sample)))
  }
  unlist(lapply(feature_panels(seq_len(map$sample$n), map$r), \(i) {
    product(map_features(map, i), as.matrix(theta))
  }))
}

# Its values at new points of the sample that it was fitted to.
function_at <- function(f, sample, new) {
  if (is.null(f$weights)) {
    features <- fourier_features(f, new$z)
    return(drop(product(features, as.matrix(f$theta))))
  }
  weights <- as.matrix(f$weights[f$centers])
  values <- if (is.null(new$values)) {
    used <- sample$x[f$centers, , drop = FALSE]
    fold_apply(sample$kernel, new$z, used, weights)
  } else {
    product(new$values[, f$centers, drop = FALSE], weights)
  }
  as.vector(values)
}

# --- Panels ------------------------------------------------------------------

panel_cells <- 2^20

# The rows in panels of a million features.
feature_panels <- function(rows, r) {
  row_panels(rows, max(64, panel_cells %/% r))
}

# Feature maps of samples: K = FF', row i of F the features of point i.

# A map, made once for all rows of a sample: its kind, and r, the number of
# features. By kind it has
#   exact      factor, F, and centers, the rows of its pivots
#   landmark   centers, rows, and root, see landmark_map()
#   indicator  centers, the first row of each level
#   group      groups, the group of each row
#   fourier    omega and offset, see fourier_map()
new_map <- function(kind, sample, r, ...) {
  list(kind = kind, sample = sample, r = r, ...)
}

# The exact factor stops when this share of the trace is left.
factor_tolerance <- 1e-13

# The map of all of K, to rounding or up to a `tolerance`, a share of the trace:
# F has as many columns as K then has rank.
exact_map <- function(sample, name, tolerance = 0) {
  n <- sample$n
  tolerance <- max(tolerance, factor_tolerance)
  check_overflow(sample$kernel, sample_diagonal(sample))
  source <- sample_source(sample)
  # Most ranks are far below n, so that the factor gets memory for few columns
  # first, and for more if they do not suffice.
  for (most in unique(pmin(n, c(64, 256, 1024, 4096, 16384, n)))) {
    check_memory(n, most, "use landmarks = or features =", copies = 2,
                 what = paste0("the factor of '", name, "'"))
    pivoted <- .Call(C_r_pivoted, source, tolerance, as.integer(most), FALSE)
    if (!is.null(pivoted)) break
  }
  check_rank(pivoted$pivots, name)
  pivoted_map(sample, pivoted)
}

# Returns a pivoted factor of K with at most `most` columns, which ends when a
# share `tolerance` of the trace is left, and the trace that it leaves out.
pivoted_factor <- function(source, tolerance, most) {
  pivoted <- .Call(C_r_pivoted, source, tolerance, as.integer(most), TRUE)
  if (is.null(pivoted)) {
    stop_input("the Gram matrix must be positive semi-definite")
  }
  pivoted
}

# The map by a pivoted Cholesky factor.
pivoted_map <- function(sample, pivoted) {
  new_map("exact", sample, length(pivoted$pivots), factor = pivoted$factor,
          centers = pivoted$pivots)
}

check_rank <- function(kept, name) {
  if (!length(kept)) {
    stop_input("'", name, "' must have kernel values that are not all 0")
  }
}

# The map by projections on the kernel sections of m points: F = K_nm U
# S^{-1/2}, where K_mm = USU'.
landmark_map <- function(sample, rows, name) {
  m <- length(rows)
  k <- check_gram(landmark_values(sample, rows, rows),
                  paste0("the matrix of kernel values of '", name, "'"))
  s <- kept_spectrum(k, m * .Machine$double.eps)
  check_rank(s$values, name)
  new_map("landmark", sample, length(s$values), centers = rows,
          root = s$vectors / rep(sqrt(s$values), each = m))
}

# The eigenpairs whose values are above a share of the largest.
kept_spectrum <- function(gram, tolerance) {
  pairs <- .Call(C_r_eigen, gram, nrow(gram))
  kept <- pairs$values > max(tolerance * pairs$values[1L], 0)
  list(values = pairs$values[kept],
       vectors = take_columns(pairs$vectors, kept))
}

landmark_values <- function(sample, rows, centers) {
  check_rows(sample)
  if (stores_gram(sample)) {
    return(sample$gram$K[rows, centers, drop = FALSE])
  }
  fold_store(sample$kernel, take_rows(sample$x, rows),
             take_rows(sample$x, centers))
}

# Random Fourier features of the Gaussian kernel: sqrt(2/m) cos(x'omega + b).
fourier_map <- function(sample, m, name) {
  if (!knows_points(sample) ||
        !kernel_has(sample$kernel, "Gaussian form")) {
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

# --- Features ----------------------------------------------------------------

# Returns the features of rows i, which are these rows of F.
map_features <- function(map, i) {
  switch(
    map$kind,
    exact = take_rows(map$factor, i),
    group = outer(map$groups[i], seq_len(map$r), `==`) + 0,
    landmark = product(landmark_values(map$sample, i, map$centers), map$root),
    indicator = take_rows(map$sample$x, i),
    fourier = fourier_features(map, take_rows(map$sample$x, i))
  )
}

# C'F for a matrix C with a row for each point.
map_sums <- function(map, c) {
  sums <- 0
  before <- map$kind == "landmark"
  for (i in feature_panels(seq_len(nrow(c)), map$r)) {
    sums <- sums + cross(take_rows(c, i), if (before) {
      landmark_values(map$sample, i, map$centers)
    } else {
      map_features(map, i)
    })
  }
  if (before) product(sums, map$root) else sums
}

fourier_features <- function(map, x) {
  sqrt(2 / map$r) * cos(product(cbind(unname(x), 1),
                                rbind(map$omega, map$offset)))
}

# Returns a function with the coefficients theta of the features, as a fit keeps
# it: the weights of all n points, which are 0 except at the centers, and the
# centers. For random features it has theta and what makes the features.
# `straight` are linear columns before the features, whose coefficients become
# slopes.
map_function <- function(map, theta, straight = NULL) {
  if (length(straight)) {
    line <- seq_len(ncol(straight))
    rest <- map_function(map, theta[setdiff(seq_along(theta), line)])
    return(c(rest, list(slopes = drop(product(
      attr(straight, "slopes"), as.matrix(theta[line])
    )))))
  }
  column <- as.matrix(theta)
  weights <- switch(
    map$kind,
    exact = solve_lower(take_rows(map$factor, map$centers), column,
                        transpose = TRUE),
    landmark = product(map$root, column), indicator = column
  )
  if (is.null(weights)) {
    return(c(map[c("r", "omega", "offset")], list(theta = theta)))
  }
  list(weights = replace(numeric(map$sample$n), map$centers, weights),
       centers = map$centers)
}

# The values of a function f with coefficients theta at the points of the
# sample.
map_values <- function(map, f, theta) {
  if (!is.null(f$weights) && !stores_gram(map$sample)) {
    return(function_at(f, map$sample, own_points(map$sample)))
  }
  theta <- as.matrix(theta[length(theta) - map$r + seq_len(map$r)])
  values <- unlist(lapply(feature_panels(seq_len(map$sample$n), map$r), \(i) {
    product(map_features(map, i), theta)
  }))
  add_slopes(values, f, map$sample$x)
}

add_slopes <- function(values, f, z) {
  if (length(f$slopes)) values + drop(product(z, as.matrix(f$slopes))) else
    values
}

# The values of the function f at new points; `sample` is the one that f was
# fitted to.
function_at <- function(f, sample, new) {
  values <- if (is.null(f$weights)) {
    drop(product(fourier_features(f, new$z), as.matrix(f$theta)))
  } else {
    weights <- as.matrix(f$weights[f$centers])
    as.vector(if (is.null(new$values)) {
      fold_apply(sample$kernel, new$z, take_rows(sample$x, f$centers),
                 weights)
    } else {
      product(take_columns(new$values, f$centers), weights)
    })
  }
  add_slopes(values, f, new$z)
}

# The part of a map that features of new points need.
small_map <- function(map) {
  if (map$kind == "exact") map$root <- take_rows(map$factor, map$centers)
  map[intersect(c("kind", "r", "centers", "root", "omega", "offset"),
                names(map))]
}

# The features of new points.
point_features <- function(map, sample, new) {
  k <- if (!is.null(map$root)) {
    if (is.null(new$values)) {
      fold_store(sample$kernel, new$z, take_rows(sample$x, map$centers))
    } else {
      take_columns(new$values, map$centers)
    }
  }
  if (!is.null(k)) section_features(map, k) else switch(
    map$kind, indicator = new$z, fourier = fourier_features(map, new$z)
  )
}

# The features of functionals, a row for each. `k` has the values of the
# functionals at the kernel sections of the centers.
section_features <- function(map, k) {
  if (map$kind == "exact") t(solve_lower(map$root, t(k))) else
    product(k, map$root)
}

panel_cells <- 2^20

# Splits rows into panels of about a million features.
feature_panels <- function(rows, r) {
  row_panels(rows, max(64, panel_cells %/% r))
}

# Where the fit of a density starts. A mixture is
# list(weights: m, means: m x d, and variances: m, or covariances: d x d x m),
# all in the units of the kernel.

# The clusters of k-means as components. `shape` is list(shape, m, nstart,
# lowest: the floor of variances, widen: a factor on them); `which` says of what
# points an error is to speak.
cluster_start <- function(x, shape, which = "") {
  start <- if (shape$shape == "isotropic") {
    kmeans_start(x, shape$m, shape$nstart, shape$lowest, which)
  } else {
    shaped_start(x, shape, which)
  }
  widen_mixture(start, shape$widen)
}

widen_mixture <- function(q, factor) {
  field <- intersect(c("variances", "covariances"), names(q))
  q[[field]] <- factor * q[[field]]
  q
}

kmeans_start <- function(x, m, nstart, lowest, which = "") {
  found <- find_clusters(x, m, nstart, which)
  variances <- found$withinss / (as.double(found$size) * ncol(x))
  list(weights = found$size / nrow(x), means = unname(found$centers),
       variances = pmax(variances, lowest))
}

find_clusters <- function(x, m, nstart, which = "") {
  distinct <- count_distinct(x)
  if (m > distinct) {
    stop_input("'m' must be at most ", distinct, ", the number of distinct ",
               "points", which, ", not ", m)
  }
  if (m == 1L || distinct > m) {
    # That some run needs more iterations does not matter for the best of them.
    tryCatch(
      suppressWarnings(stats::kmeans(x, m, iter.max = 100L, nstart = nstart)),
      error = \(e) stop_kernmean("numeric", "k-means failed: ",
                                 conditionMessage(e))
    )
  } else {
    each_point(x)
  }
}

count_distinct <- function(x) sum(!duplicated(x))

# As many clusters as there are distinct points.
each_point <- function(x) {
  keys <- apply(x, 1L, \(row) paste(format(row, digits = 17), collapse = " "))
  first <- !duplicated(x)
  size <- as.vector(table(factor(keys, keys[first])))
  list(cluster = match(keys, keys[first]), centers = x[first, , drop = FALSE],
       size = size, withinss = numeric(length(size)))
}

# --- Components with covariances ---------------------------------------------

cluster_rounds <- 3L

# Clusters found in the metric of their own pooled covariance W, which no affine
# map of the points changes. With S_j the scatter of n_j points, the covariance
# is C_j = (S_j + a W)/(n_j + a), a = d + 1, or that part of W that C_j is in
# the mean over directions, tr(W^-1 C_j)/d.
shaped_start <- function(x, shape, which) {
  m <- shape$m
  d <- ncol(x)
  cluster <- find_clusters(x, m, shape$nstart, which)$cluster
  for (round in seq_len(if (m > 1L) cluster_rounds - 1L else 0L)) {
    root <- metric_root(pooled_covariance(x, cluster, shape$lowest))
    cluster <- find_clusters(x %*% root, m, shape$nstart, which)$cluster
  }
  pooled <- pooled_covariance(x, cluster, shape$lowest)
  root <- metric_root(pooled)
  size <- tabulate(cluster, m)
  means <- unname(rowsum(x, cluster) / size)
  more <- d + 1
  covariances <- vapply(seq_len(m), \(j) {
    u <- x[cluster == j, , drop = FALSE] - rep(means[j, ], each = size[j])
    if (shape$shape == "common") {
      pooled * (sum((u %*% root)^2) / d + more) / (size[j] + more)
    } else {
      raise_spectrum((crossprod(u) + more * pooled) / (size[j] + more),
                     shape$lowest)
    }
  }, matrix(0, d, d))
  list(weights = size / nrow(x), means = means,
       covariances = array(covariances, c(d, d, m)))
}

pooled_covariance <- function(x, cluster, lowest) {
  means <- rowsum(x, cluster) / tabulate(cluster)
  u <- x - means[cluster, , drop = FALSE]
  raise_spectrum(unname(crossprod(u)) / nrow(x), lowest)
}

# A covariance with no eigenvalue below `lowest`.
raise_spectrum <- function(s, lowest) {
  found <- eigen(s, symmetric = TRUE)
  if (min(found$values) >= lowest) {
    return(s)
  }
  found$vectors %*% (pmax(found$values, lowest) * t(found$vectors))
}

metric_root <- function(s) {
  found <- eigen(s, symmetric = TRUE)
  found$vectors / rep(sqrt(found$values), each = nrow(s))
}

# The slow twins of the kernels, which tools/core/check.R reads as well: a new
# family is one line. From u = (x - y)/theta: s = |u|^2 and a = sum |u_l|; p =
# x'y.
kernel_twins <- list(
  rbf = \(s, ...) exp(-s / 2),
  laplace_l1 = \(a, ...) exp(-a),
  laplace_l2 = \(s, ...) exp(-sqrt(s)),
  matern32 = \(s, ...) (1 + sqrt(3 * s)) * exp(-sqrt(3 * s)),
  matern52 = \(s, ...) (1 + sqrt(5 * s) + 5 * s / 3) * exp(-sqrt(5 * s)),
  poly = \(p, degree, offset, ...) (p + offset)^degree,
  energy = \(s, ...) -sqrt(s),
  sqdist = \(s, ...) s,
  l1dist = \(a, ...) a
)

# The values at all pairs of rows.
kernel_R <- function(x, y, theta = 1, family, degree = 1, offset = 0) {
  force(y)
  theta <- rep_len(theta, ncol(x))
  over <- function(f) Reduce(`+`, lapply(seq_len(ncol(x)), f))
  difference <- function(l) outer(x[, l], y[, l], "-") / theta[l]
  # Evaluated where a kernel uses them.
  kernel_twins[[family]](
    s = over(\(l) difference(l)^2), a = over(\(l) abs(difference(l))),
    p = over(\(l) outer(x[, l], y[, l])), degree = degree, offset = offset
  )
}

gram_R <- function(kernel, x, y = x) {
  force(y)
  if (kernel$family == "sum") {
    terms <- split(kernel$parts, cumsum(part_times(kernel$parts) > 0))
    return(Reduce(`+`, lapply(terms, \(parts) {
      parts[[1L]]$times * Reduce(`*`, lapply(parts, \(part) {
        gram_R(part, x[, part$at, drop = FALSE], y[, part$at, drop = FALSE])
      }))
    })))
  }
  kernel_R(x, y, if (is.null(kernel$bandwidth)) 1 else kernel$bandwidth,
           kernel$family, kernel$degree, kernel$offset)
}

# A kernel of each family, and some more of them, for d columns.
native_kernels <- function(d) {
  theta <- seq(0.7, 1.9, length.out = d) * sqrt(d)
  plain <- c("poly", "energy", "sqdist", "l1dist")
  falling <- setdiff(names(kernel_twins), plain)
  kernels <- lapply(stats::setNames(nm = falling), new_kernel,
                    bandwidth = theta, offset = 0.5)
  kernels$rbf <- kernel_rbf(1.3 * sqrt(d))
  kernels$laplace_l1 <- kernel_laplace(theta * sqrt(d))
  c(kernels, list(
    rbf_each = kernel_rbf(theta), rbf_narrow = kernel_rbf(0.05),
    linear = kernel_linear(), poly2 = kernel_poly(2),
    poly3 = kernel_poly(3, 0.5), poly7 = kernel_poly(7, 2)
  ), lapply(list(
    sum = kernel_rbf(1.3 * sqrt(d)) + 2 * kernel_laplace(sqrt(d), "L2"),
    products = 0.5 * kernel_rbf(theta) * kernel_poly(2, 1, columns = d) +
      kernel_matern(1.5, d) * kernel_laplace(2, columns = 1) * kernel_rbf(0.05)
  ), fit_kernel, matrix(0, 1L, d)),
  lapply(stats::setNames(nm = plain[-1L]), new_kernel))
}

# Gower's distances of a data frame, by columns, and the kernel of them; `new`:
# of its rows and those of the frame.
gower_distances <- function(frame, new = frame) {
  Reduce(`+`, Map(\(x, z) {
    if (is.ordered(x)) {
      z <- match(z, levels(x))
      x <- as.integer(x)
    }
    if (is.factor(x) || is.logical(x)) {
      apart <- \(a, b) outer(as.character(a), as.character(b), `!=`) + 0
    } else {
      apart <- \(a, b) abs(outer(a, b, `-`))
    }
    pairs <- apart(x, x)
    if (all(pairs == 0)) return(0 * apart(z, x))
    apart(z, x) / (sum(pairs) / (length(x) * (length(x) - 1)))
  }, frame, new[names(frame)]))
}

gower_matrix <- function(frame, theta = NULL, new = frame) {
  if (is.null(theta)) {
    distances <- gower_distances(frame)
    distances <- distances[lower.tri(distances)]
    theta <- median(distances)
    if (theta == 0) theta <- median(distances[distances > 0])
  }
  unname(exp(-gower_distances(frame, new) / theta))
}

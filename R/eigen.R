# The spectrum of a gram, computed no further than it is needed and kept.

# Eigenvalues below n eps gamma_1 are 0; clearly negative ones are an error.
# scale: the size of what the entries are differences of, if they are.
clip_values <- function(values, scale = NULL, name = "the Gram matrix") {
  top <- max(values, 0)
  least <- min(values)
  small <- if (is.null(scale)) {
    length(values) * .Machine$double.eps * top
  } else {
    rounding_of(length(values), max(top, scale))
  }
  if (least < -max(sqrt(.Machine$double.eps) * top, small)) {
    stop_input(
      name, " must be positive semi-definite; its smallest eigenvalue is ",
      format_number(least), ", its largest ", format_number(max(values))
    )
  }
  values[values < small] <- 0
  values
}

# An eigenvalue below this is rounding of an n x n matrix whose entries were
# made of terms of this size.
rounding_of <- function(n, scale) {
  max(max(n, 32) * .Machine$double.eps * scale, .Machine$double.xmin)
}

# T and the reflectors of K = QTQ', Qe_1 = e/sqrt(n).
tridiagonal <- function(g) {
  if (is.null(g$tridiagonal) && !is.null(g$centred)) {
    t <- tridiagonal(g$centred)
    t$diagonal <- (1 - g$lambda) * t$diagonal + g$lambda * g$target
    t$off <- (1 - g$lambda) * t$off
    g$tridiagonal <- t
  }
  if (is.null(g$tridiagonal)) {
    check_memory(nrow(g$K), nrow(g$K), "use fewer rows")
    g$tridiagonal <- .Call(C_r_tridiag, g$K)
  }
  g$tridiagonal
}

spectrum_values <- function(k) {
  t <- .Call(C_r_tridiag, k)
  .Call(C_r_tridiag_spectrum, t$diagonal, t$off, FALSE)$values
}

# list(values, projections, vectors), filled as far as `what` asks.
spectrum <- function(g, what) {
  has <- \(field) !is.null(g[[field]])
  if (!is.null(g$centred)) share_spectrum(g, what)
  if (what == "vectors" && !has("vectors")) {
    check_memory(nrow(g$K), nrow(g$K), "use fewer rows", copies = 2)
    found <- .Call(C_r_eigen, g$K)
    g$values <- clip_values(found$values, g$scale)
    g$vectors <- found$vectors
    g$projections <- abs(colMeans(g$vectors))
  }
  if (what == "projections" && !has("projections")) {
    t <- tridiagonal(g)
    found <- .Call(C_r_tridiag_spectrum, t$diagonal, t$off, TRUE)
    g$values <- clip_values(found$values, g$scale)
    g$projections <- found$first / sqrt(nrow(g$K))
  }
  if (what == "values" && !has("values")) {
    t <- tridiagonal(g)
    found <- .Call(C_r_tridiag_spectrum, t$diagonal, t$off, FALSE)
    g$values <- clip_values(found$values, g$scale)
  }
  list(
    values = g$values,
    projections = if (what != "values") g$projections,
    vectors = if (what == "vectors") g$vectors
  )
}

# (K + lambda I)^{-1} b by a Cholesky factor, which is kept; NULL if that matrix
# is not positive definite to rounding.
cholesky_solve <- function(g, lambda, b) {
  if (is.null(g$cholesky) || g$cholesky$lambda != lambda) {
    check_memory(nrow(g$K), nrow(g$K), "use fewer rows")
    factor <- .Call(C_r_cholesky, g$K, lambda)
    if (is.null(factor)) {
      return(NULL)
    }
    g$cholesky <- list(lambda = lambda, factor = factor)
  }
  .Call(C_r_cholesky_solve, g$cholesky$factor, b)
}

# Columns positive at their first entry within 1e-8 of the largest in absolute
# value (km_eigen's rule), so that results do not depend on the LAPACK at hand.
fix_signs <- function(v) {
  turned <- apply(v, 2, \(u) u[which(abs(u) >= (1 - 1e-8) * max(abs(u)))[1L]])
  v * rep(ifelse(turned < 0, -1, 1), each = nrow(v))
}

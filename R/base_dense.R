# Dense algebra of the core (core/dense.c, core/cholesky.c): products, Cholesky
# factors and triangular solves. They are as fast under any BLAS and give the
# same bits for any number of threads. Matrices hold doubles; a vector is a
# matrix of one column. Results have the dimnames that `%*%` gives, but not the
# names of these.

# AB
product <- function(a, b) .Call(C_r_product, a, b, FALSE, FALSE)

# A'B, or A'A, which takes half the time and is exactly symmetric.
cross <- function(a, b = NULL) .Call(C_r_product, a, b, TRUE, FALSE)

# AB', or AA'.
tcross <- function(a, b = NULL) .Call(C_r_product, a, b, FALSE, TRUE)

# The numbers a_j'b_j, one for each column j.
column_dots <- function(a, b = a) .Call(C_r_column_dots, a, b)

# The largest entry of each row.
row_max <- function(m) m[cbind(seq_len(nrow(m)), max.col(m, "first"))]

# The quantiles of each column of finite numbers, a row for each probability, as
# quantile() has them. All columns are sorted at once.
column_quantiles <- function(m, probs) {
  sorted <- matrix(m[order(col(m), m)], nrow(m))
  at <- 1 + (nrow(m) - 1) * probs
  low <- take_rows(sorted, floor(at))
  low + (at - floor(at)) * (take_rows(sorted, ceiling(at)) - low)
}

# The lower triangle L with LL' = K + shift I; NULL if that matrix is not
# positive definite to rounding. Only the lower half of K is read.
cholesky <- function(k, shift = 0) .Call(C_r_factor, k, shift)

# L^{-1} B, or L'^{-1} B.
solve_lower <- function(l, b, transpose = FALSE) {
  .Call(C_r_triangle_solve, l, b, as.integer(transpose))
}

# (LL')^{-1} B
solve_factored <- function(l, b) .Call(C_r_triangle_solve, l, b, 2L)

# L^{-1}
inverse_lower <- function(l) .Call(C_r_triangle_inverse, l)

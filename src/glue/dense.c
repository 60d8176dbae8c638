#include "core/cholesky.h"
#include "core/dense.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* A vector is a matrix of one column. */
static km_product unpack_factors(SEXP a, SEXP b, int a_turned, int b_turned) {
  const size_t ar = (size_t) Rf_nrows(a), ac = (size_t) Rf_ncols(a);
  const size_t br = (size_t) Rf_nrows(b), bc = (size_t) Rf_ncols(b);
  if ((a_turned ? ar : ac) != (b_turned ? bc : br))
    Rf_error("internal error: matrices that do not fit together");
  km_product product = {.m = a_turned ? ac : ar,
                        .n = b_turned ? br : bc,
                        .depth = a_turned ? ar : ac,
                        .times = 1,
                        .a = {glue_doubles(a, -1, "a"), a_turned ? ar : 1, a_turned ? 1 : ar},
                        .b = {glue_doubles(b, -1, "b"), b_turned ? br : 1, b_turned ? 1 : br},
                        .fresh = 1};
  product.ldc = product.m;
  return product;
}

static SEXP side_names(SEXP x, int turned, int side) {
  SEXP names = Rf_isMatrix(x) ? Rf_getAttrib(x, R_DimNamesSymbol) : R_NilValue;
  return Rf_isNull(names) ? names : VECTOR_ELT(names, turned ? 1 - side : side);
}

/* As `%*%` has them, but for the names of dimnames. */
static void set_names(SEXP out, SEXP a, SEXP b, int a_turned, int b_turned) {
  SEXP rows = PROTECT(side_names(a, a_turned, 0)), columns = PROTECT(side_names(b, b_turned, 1));
  if (!Rf_isNull(rows) || !Rf_isNull(columns)) {
    SEXP both = PROTECT(Rf_allocVector(VECSXP, 2));
    SET_VECTOR_ELT(both, 0, rows);
    SET_VECTOR_ELT(both, 1, columns);
    Rf_setAttrib(out, R_DimNamesSymbol, both);
    UNPROTECT(1);
  }
  UNPROTECT(2);
}

/* AB, with A' or B' for those that are turned; b = NULL: AA' (A'A if a is turned). */
SEXP r_product(SEXP a, SEXP b, SEXP turned_a, SEXP turned_b) {
  const int symmetric = Rf_isNull(b), a_turned = Rf_asLogical(turned_a);
  const int b_turned = symmetric ? !a_turned : Rf_asLogical(turned_b);
  if (symmetric) b = a;
  km_product product = unpack_factors(a, b, a_turned, b_turned);
  SEXP out = PROTECT(glue_new_matrix(product.m, product.n));
  product.c = REAL(out);
  product.lower = symmetric;
  double *work = glue_scratch(km_multiply_add_work(&product));
  km_multiply_add(&product, work, glue_poll);
  if (symmetric) km_mirror(product.m, product.c);
  set_names(out, a, b, a_turned, b_turned);
  UNPROTECT(1);
  return out;
}

/* The lower factor of K + shift I, or NULL where that is not positive definite. */
SEXP r_factor(SEXP k, SEXP shift) {
  const size_t n = glue_order(k, "k");
  SEXP l = PROTECT(glue_new_matrix(n, n));
  double *work = glue_scratch(km_factor_work(n));
  int info = 0;
  const km_status status =
      km_factor(n, REAL_RO(k), Rf_asReal(shift), REAL(l), work, &info, glue_poll);
  UNPROTECT(1);
  return status == KM_OK ? l : R_NilValue;
}

/* L^{-1} B, or L'^{-1} B; or both, one after the other. how: 0, 1, 2. */
SEXP r_triangle_solve(SEXP l, SEXP b, SEXP how) {
  const size_t n = glue_order(l, "l"), p = (size_t) Rf_ncols(b);
  glue_doubles(b, (R_xlen_t) (n * p), "b");
  SEXP out = PROTECT(Rf_duplicate(b));
  double *work = glue_scratch(km_triangle_solve_work(n, p));
  const int which = Rf_asInteger(how);
  if (which != 1) km_triangle_solve(n, p, REAL_RO(l), n, 0, REAL(out), n, work, glue_poll);
  if (which != 0) km_triangle_solve(n, p, REAL_RO(l), n, 1, REAL(out), n, work, glue_poll);
  UNPROTECT(1);
  return out;
}

SEXP r_triangle_inverse(SEXP l) {
  const size_t n = glue_order(l, "l");
  SEXP out = PROTECT(glue_new_matrix(n, n));
  double *work = glue_scratch(km_triangle_inverse_work(n));
  km_triangle_inverse(n, REAL_RO(l), REAL(out), work, glue_poll);
  UNPROTECT(1);
  return out;
}

/* times (K + shift I)^{-1} + plus I; NULL if K + shift I is not positive definite to rounding. */
SEXP r_resolvent(SEXP k, SEXP shift, SEXP times, SEXP plus) {
  const size_t n = glue_order(k, "k");
  SEXP out = PROTECT(glue_new_matrix(n, n));
  double *room = glue_scratch(n * n), *work = glue_scratch(km_resolvent_work(n));
  int info = 0;
  const km_status status =
      km_resolvent(n, REAL_RO(k), Rf_asReal(shift), Rf_asReal(times), Rf_asReal(plus), REAL(out),
                   room, work, &info, glue_poll);
  UNPROTECT(1);
  return status == KM_OK ? out : R_NilValue;
}

/* a_j'b_j for each column. */
SEXP r_column_dots(SEXP a, SEXP b) {
  const size_t n = (size_t) Rf_nrows(a), m = (size_t) Rf_ncols(a);
  const double *left = glue_matrix(a, "a"), *right = glue_doubles(b, (R_xlen_t) (n * m), "b");
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) m));
  km_column_dots(n, m, left, right, REAL(out));
  UNPROTECT(1);
  return out;
}

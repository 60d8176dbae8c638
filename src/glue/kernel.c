#include "core/columns.h"
#include "core/fold.h"
#include "core/median.h"
#include "glue/entries.h"
#include "glue/glue.h"

SEXP r_kernel_store(SEXP source) {
  const km_source from = glue_source(source);
  SEXP k = PROTECT(glue_new_matrix(from.n, from.m));
  double *work = glue_scratch(km_fold_store_work(&from));
  km_fold_store(&from, REAL(k), work, glue_poll);
  UNPROTECT(1);
  return k;
}

SEXP r_kernel_rows(SEXP source) {
  const km_source from = glue_source(source);
  SEXP sums = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) from.n));
  double *work = glue_scratch(km_fold_rows_work(&from));
  km_fold_rows(&from, REAL(sums), work, glue_poll);
  UNPROTECT(1);
  return sums;
}

SEXP r_kernel_apply(SEXP source, SEXP v) {
  const km_source from = glue_source(source);
  const size_t p = (size_t) Rf_ncols(v);
  const double *block = glue_doubles(v, (R_xlen_t) (from.m * p), "v");
  SEXP out = PROTECT(glue_new_matrix(from.n, p));
  double *work = glue_scratch(km_fold_apply_work(&from, p));
  km_fold_apply(&from, block, p, REAL(out), work, glue_poll);
  UNPROTECT(1);
  return out;
}

SEXP r_kernel_quad(SEXP source, SEXP u, SEXP v) {
  const km_source from = glue_source(source);
  const size_t p = (size_t) Rf_ncols(v);
  const double *left = glue_doubles(u, (R_xlen_t) (from.n * p), "u");
  const double *right = glue_doubles(v, (R_xlen_t) (from.m * p), "v");
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) p));
  double *work = glue_scratch(km_fold_quad_work(&from, p));
  km_fold_quad(&from, left, right, p, REAL(out), work, glue_poll);
  UNPROTECT(1);
  return out;
}

/* list(rows, forms): row sums, and u_c' K u_c for each column */
SEXP r_kernel_moments(SEXP source, SEXP u) {
  const char *names[] = {"rows", "forms", ""};
  const km_source from = glue_symmetric(source);
  const size_t p = (size_t) Rf_ncols(u);
  const double *columns = glue_doubles(u, (R_xlen_t) (from.n * p), "u");
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SEXP rows = Rf_allocVector(REALSXP, (R_xlen_t) from.n);
  SET_VECTOR_ELT(out, 0, rows);
  SEXP forms = Rf_allocVector(REALSXP, (R_xlen_t) p);
  SET_VECTOR_ELT(out, 1, forms);
  double *work = glue_scratch(km_fold_moments_work(&from, p));
  km_fold_moments(&from, columns, p, REAL(rows), REAL(forms), work, glue_poll);
  UNPROTECT(1);
  return out;
}

SEXP r_kernel_diagonal(SEXP source) {
  const km_source from = glue_symmetric(source);
  SEXP diagonal = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) from.n));
  km_diagonal(&from, REAL(diagonal));
  UNPROTECT(1);
  return diagonal;
}

/* 2 x d: the smallest and the largest value of each column */
SEXP r_column_ranges(SEXP x) {
  const double *values = glue_matrix(x, "x");
  const size_t n = (size_t) Rf_nrows(x), d = (size_t) Rf_ncols(x);
  if (n < 1) Rf_error("internal error: 'x' is empty");
  SEXP ends = PROTECT(glue_new_matrix(2, d));
  km_column_ranges(values, n, d, REAL(ends));
  UNPROTECT(1);
  return ends;
}

/* d: logarithms of the standard deviations of columns of two values or more */
SEXP r_column_spreads(SEXP x) {
  const double *values = glue_matrix(x, "x");
  const size_t n = (size_t) Rf_nrows(x), d = (size_t) Rf_ncols(x);
  if (n < 2) Rf_error("internal error: 'x' has no two rows");
  SEXP logs = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) d));
  km_column_spreads(values, n, d, REAL(logs));
  UNPROTECT(1);
  return logs;
}

/* Is no number of x missing or infinite? */
SEXP r_all_finite(SEXP x) {
  if (!Rf_isReal(x)) Rf_error("internal error: 'x' is not double");
  return Rf_ScalarLogical(km_all_finite(REAL_RO(x), (size_t) XLENGTH(x)));
}

static SEXP median_result(km_median found) {
  SEXP out = PROTECT(Rf_allocVector(REALSXP, 2));
  REAL(out)[0] = found.median;
  REAL(out)[1] = found.positive;
  UNPROTECT(1);
  return out;
}

/* Points of which there are pairs. */
static km_source unpack_pairs(SEXP source) {
  const km_source from = glue_points(source);
  if (from.n < 2) Rf_error("internal error: 'source' has no pairs of points");
  return from;
}

SEXP r_kernel_median(SEXP source) {
  const km_source from = unpack_pairs(source);
  double *work = glue_scratch(km_median_work(&from));
  return median_result(km_pairwise_median(&from, work, glue_poll));
}

/* The median over `pairs` pairs of different points drawn by R's generator. */
SEXP r_kernel_sampled_median(SEXP source, SEXP pairs) {
  const km_source from = unpack_pairs(source);
  if (!(Rf_asReal(pairs) >= 1)) Rf_error("internal error: 'pairs' is not at least 1");
  const size_t count = (size_t) Rf_asReal(pairs);
  double *work = glue_scratch(km_sampled_median_work(count));
  int *iwork = glue_int_scratch(km_sampled_median_iwork(count));
  GetRNGstate();
  const km_median found = km_sampled_median(&from, count, glue_draw, work, iwork, glue_poll);
  PutRNGstate();
  return median_result(found);
}

SEXP r_exp(SEXP x) {
  SEXP out = PROTECT(Rf_allocVector(REALSXP, XLENGTH(x)));
  km_simd()->exp_all(glue_doubles(x, -1, "x"), (size_t) XLENGTH(x), REAL(out));
  UNPROTECT(1);
  return out;
}

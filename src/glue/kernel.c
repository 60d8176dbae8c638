#include "core/fold.h"
#include "core/median.h"
#include "glue/glue.h"

SEXP r_kernel_store(SEXP spec, SEXP x, SEXP y) {
  const km_pair points = glue_points(x, y);
  const km_kernel kernel = glue_kernel(spec, points.d);
  SEXP k = PROTECT(Rf_allocMatrix(REALSXP, (int) points.n, (int) points.m));
  double *work = glue_scratch(km_fold_store_work(&points));
  km_fold_store(&kernel, &points, REAL(k), work, glue_poll);
  UNPROTECT(1);
  return k;
}

SEXP r_kernel_rows(SEXP spec, SEXP x, SEXP y) {
  const km_pair points = glue_points(x, y);
  const km_kernel kernel = glue_kernel(spec, points.d);
  SEXP sums = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) points.n));
  double *work = glue_scratch(km_fold_rows_work(&points));
  km_fold_rows(&kernel, &points, REAL(sums), work, glue_poll);
  UNPROTECT(1);
  return sums;
}

SEXP r_kernel_apply(SEXP spec, SEXP x, SEXP y, SEXP v) {
  const km_pair points = glue_points(x, y);
  const km_kernel kernel = glue_kernel(spec, points.d);
  const size_t p = (size_t) Rf_ncols(v);
  const double *block = glue_doubles(v, (R_xlen_t) (points.m * p), "v");
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int) points.n, (int) p));
  double *work = glue_scratch(km_fold_apply_work(&points, p));
  km_fold_apply(&kernel, &points, block, p, REAL(out), work, glue_poll);
  UNPROTECT(1);
  return out;
}

SEXP r_kernel_quad(SEXP spec, SEXP x, SEXP y, SEXP u, SEXP v) {
  const km_pair points = glue_points(x, y);
  const km_kernel kernel = glue_kernel(spec, points.d);
  const size_t p = (size_t) Rf_ncols(v);
  const double *left = glue_doubles(u, (R_xlen_t) (points.n * p), "u");
  const double *right = glue_doubles(v, (R_xlen_t) (points.m * p), "v");
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) p));
  double *work = glue_scratch(km_fold_quad_work(&points, p));
  km_fold_quad(&kernel, &points, left, right, p, REAL(out), work, glue_poll);
  UNPROTECT(1);
  return out;
}

SEXP r_kernel_diagonal(SEXP spec, SEXP x) {
  const km_pair points = glue_points(x, R_NilValue);
  const km_kernel kernel = glue_kernel(spec, points.d);
  SEXP diagonal = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) points.n));
  km_diagonal(&kernel, points.x, points.n, points.d, REAL(diagonal));
  UNPROTECT(1);
  return diagonal;
}

/* 2 x d: the smallest and the largest value of each column */
SEXP r_column_ranges(SEXP x) {
  const km_pair points = glue_points(x, R_NilValue);
  SEXP ends = PROTECT(Rf_allocMatrix(REALSXP, 2, (int) points.d));
  km_column_ranges(points.x, points.n, points.d, REAL(ends));
  UNPROTECT(1);
  return ends;
}

static SEXP median_result(km_median found) {
  SEXP out = PROTECT(Rf_allocVector(REALSXP, 2));
  REAL(out)[0] = found.median;
  REAL(out)[1] = found.min_positive;
  UNPROTECT(1);
  return out;
}

SEXP r_kernel_median(SEXP spec, SEXP x) {
  const km_pair points = glue_points(x, R_NilValue);
  const km_kernel kernel = glue_kernel(spec, points.d);
  double *work = glue_scratch(km_median_work(&points));
  return median_result(km_pairwise_median(&kernel, &points, work, glue_poll));
}

/* The median over `pairs` pairs of different points drawn by R's generator. */
SEXP r_kernel_sampled_median(SEXP spec, SEXP x, SEXP pairs) {
  enum { CHUNK = 65536 };
  const km_pair points = glue_points(x, R_NilValue);
  const km_kernel kernel = glue_kernel(spec, points.d);
  const size_t total = (size_t) Rf_asReal(pairs);
  double *distances = glue_scratch(total);
  int *first = (int *) R_alloc(CHUNK, sizeof(int));
  int *second = (int *) R_alloc(CHUNK, sizeof(int));
  GetRNGstate();
  for (size_t done = 0; done < total; done += CHUNK) {
    const size_t count = total - done < CHUNK ? total - done : CHUNK;
    for (size_t c = 0; c < count; c++) {
      first[c] = (int) R_unif_index((double) points.n);
      second[c] = (int) R_unif_index((double) points.n - 1);
      second[c] += second[c] >= first[c];
    }
    km_pair_distances(&kernel, &points, first, second, count, distances + done);
    glue_poll();
  }
  PutRNGstate();
  return median_result(km_median_of(distances, total));
}

SEXP r_exp(SEXP x) {
  SEXP out = PROTECT(Rf_allocVector(REALSXP, XLENGTH(x)));
  km_simd()->exp_all(glue_doubles(x, -1, "x"), (size_t) XLENGTH(x), REAL(out));
  UNPROTECT(1);
  return out;
}

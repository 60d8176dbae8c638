#include "core/median.h"
#include "core/tile.h"
#include "glue/glue.h"

/*
 * Kernel spec from R: list(family, degree, offset, centre, scale), see native_kernel() in
 * R/tile.R. x: n x d; y: m x d, or NULL for the symmetric walk over x.
 */

static km_kernel unpack_kernel(SEXP spec, size_t d) {
  if (TYPEOF(spec) != VECSXP || XLENGTH(spec) != 5)
    Rf_error("internal error: 'spec' is not a kernel spec");
  const km_kernel kernel = {
    .family = (km_family) Rf_asInteger(VECTOR_ELT(spec, 0)),
    .degree = Rf_asInteger(VECTOR_ELT(spec, 1)),
    .offset = Rf_asReal(VECTOR_ELT(spec, 2)),
    .centre = glue_doubles(VECTOR_ELT(spec, 3), (R_xlen_t) d, "centre"),
    .scale = glue_doubles(VECTOR_ELT(spec, 4), (R_xlen_t) d, "scale")};
  return kernel;
}

static km_pair unpack_points(SEXP x, SEXP y) {
  if (TYPEOF(x) != REALSXP || !Rf_isMatrix(x))
    Rf_error("internal error: 'x' is not a double matrix");
  const int symmetric = Rf_isNull(y);
  if (!symmetric && (TYPEOF(y) != REALSXP || !Rf_isMatrix(y) || Rf_ncols(y) != Rf_ncols(x)))
    Rf_error("internal error: 'y' does not have the columns of 'x'");
  const km_pair points = {.x = REAL_RO(x),
                          .n = (size_t) Rf_nrows(x),
                          .y = symmetric ? NULL : REAL_RO(y),
                          .m = (size_t) Rf_nrows(symmetric ? x : y),
                          .d = (size_t) Rf_ncols(x)};
  return points;
}

SEXP r_kernel_store(SEXP spec, SEXP x, SEXP y) {
  const km_pair points = unpack_points(x, y);
  const km_kernel kernel = unpack_kernel(spec, points.d);
  SEXP k = PROTECT(Rf_allocMatrix(REALSXP, (int) points.n, (int) points.m));
  double *work = glue_scratch(km_fold_store_work(&points));
  km_fold_store(&kernel, &points, REAL(k), work, glue_poll);
  UNPROTECT(1);
  return k;
}

SEXP r_kernel_rows(SEXP spec, SEXP x, SEXP y) {
  const km_pair points = unpack_points(x, y);
  const km_kernel kernel = unpack_kernel(spec, points.d);
  SEXP sums = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) points.n));
  double *work = glue_scratch(km_fold_rows_work(&points));
  km_fold_rows(&kernel, &points, REAL(sums), work, glue_poll);
  UNPROTECT(1);
  return sums;
}

SEXP r_kernel_apply(SEXP spec, SEXP x, SEXP y, SEXP v) {
  const km_pair points = unpack_points(x, y);
  const km_kernel kernel = unpack_kernel(spec, points.d);
  const size_t p = (size_t) Rf_ncols(v);
  const double *block = glue_doubles(v, (R_xlen_t) (points.m * p), "v");
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int) points.n, (int) p));
  double *work = glue_scratch(km_fold_apply_work(&points, p));
  km_fold_apply(&kernel, &points, block, p, REAL(out), work, glue_poll);
  UNPROTECT(1);
  return out;
}

SEXP r_kernel_quad(SEXP spec, SEXP x, SEXP y, SEXP u, SEXP v) {
  const km_pair points = unpack_points(x, y);
  const km_kernel kernel = unpack_kernel(spec, points.d);
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
  const km_pair points = unpack_points(x, R_NilValue);
  const km_kernel kernel = unpack_kernel(spec, points.d);
  SEXP diagonal = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) points.n));
  km_diagonal(&kernel, points.x, points.n, points.d, REAL(diagonal));
  UNPROTECT(1);
  return diagonal;
}

static SEXP median_result(km_median found) {
  SEXP out = PROTECT(Rf_allocVector(REALSXP, 2));
  REAL(out)[0] = found.median;
  REAL(out)[1] = found.min_positive;
  UNPROTECT(1);
  return out;
}

SEXP r_kernel_median(SEXP spec, SEXP x) {
  const km_pair points = unpack_points(x, R_NilValue);
  const km_kernel kernel = unpack_kernel(spec, points.d);
  double *work = glue_scratch(km_median_work(&points));
  return median_result(km_pairwise_median(&kernel, &points, work, glue_poll));
}

/* The median over `pairs` pairs of different points drawn by R's generator. */
SEXP r_kernel_sampled_median(SEXP spec, SEXP x, SEXP pairs) {
  enum { CHUNK = 65536 };
  const km_pair points = unpack_points(x, R_NilValue);
  const km_kernel kernel = unpack_kernel(spec, points.d);
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
  km_exp(glue_doubles(x, -1, "x"), (size_t) XLENGTH(x), REAL(out));
  UNPROTECT(1);
  return out;
}

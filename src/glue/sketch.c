#include "apps/sketch.h"
#include "glue/entries.h"
#include "glue/glue.h"

static const double *row_weights(SEXP weights, size_t rows) {
  return Rf_isNull(weights) ? NULL : glue_doubles(weights, (R_xlen_t) rows, "weights");
}

/* list(first, m; second, m x m, or NULL unless it is wanted). source: landmarks and rows; weights:
   of the rows, or NULL. */
SEXP r_sketch_sums(SEXP source, SEXP weights, SEXP second) {
  const char *names[] = {"first", "second", ""};
  const km_source from = glue_landmarks(source);
  const double *of_rows = row_weights(weights, from.m);
  const int wanted = Rf_asLogical(second);
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(out, 0, Rf_allocVector(REALSXP, (R_xlen_t) from.n));
  if (wanted) SET_VECTOR_ELT(out, 1, glue_new_matrix(from.n, from.n));
  double *work = glue_scratch(km_sketch_sums_work(&from, of_rows != NULL, wanted));
  km_sketch_sums(&from, of_rows, REAL(VECTOR_ELT(out, 0)),
                 wanted ? REAL(VECTOR_ELT(out, 1)) : NULL, work, glue_poll);
  UNPROTECT(1);
  return out;
}

/* landmarks x landmarks of the other; as many rows of both. */
SEXP r_sketch_cross(SEXP source, SEXP other, SEXP weights) {
  const km_source from = glue_landmarks(source), with = glue_landmarks(other);
  if (from.m != with.m) Rf_error("internal error: 'source' and 'other' differ in rows");
  const double *of_rows = row_weights(weights, from.m);
  SEXP cross = PROTECT(glue_new_matrix(from.n, with.n));
  double *work = glue_scratch(km_sketch_cross_work(&from, &with));
  km_sketch_cross(&from, &with, of_rows, REAL(cross), work, glue_poll);
  UNPROTECT(1);
  return cross;
}

/* landmarks x bins. sizes: those of the bins, whose rows stand one after the other. */
SEXP r_sketch_bins(SEXP source, SEXP sizes) {
  const km_source from = glue_landmarks(source);
  if (XLENGTH(sizes) == 0 && from.m == 0) return glue_new_matrix(from.n, 0);
  const km_runs bins = glue_runs(sizes, R_NilValue, from.m);
  SEXP sums = PROTECT(glue_new_matrix(from.n, bins.count));
  double *work = glue_scratch(km_sketch_bins_work(&from));
  km_sketch_bins(&from, &bins, REAL(sums), work, glue_poll);
  UNPROTECT(1);
  return sums;
}

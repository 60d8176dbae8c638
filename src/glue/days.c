#include "apps/days.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* list(distances, kept: 1 or 0, outlying). x: r x n, a day a column; noise: n. */
SEXP r_day_scores(SEXP x, SEXP noise) {
  const char *names[] = {"distances", "kept", "outlying", ""};
  const size_t r = (size_t) Rf_nrows(x), n = (size_t) Rf_ncols(x);
  const km_days days = {n, r, glue_matrix(x, "x"), glue_doubles(noise, (R_xlen_t) n, "noise")};
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(out, 0, Rf_allocVector(REALSXP, (R_xlen_t) n));
  SET_VECTOR_ELT(out, 1, Rf_allocVector(INTSXP, (R_xlen_t) n));
  SET_VECTOR_ELT(out, 2, Rf_allocVector(REALSXP, 1));
  double *work = glue_scratch(km_day_scores_work(n, r));
  int *iwork = glue_int_scratch(km_day_scores_iwork(n, r));
  const km_status status =
    km_day_scores(&days, REAL(VECTOR_ELT(out, 0)), REAL(VECTOR_ELT(out, 2)),
                  INTEGER(VECTOR_ELT(out, 1)), work, iwork, glue_poll);
  glue_check(status, "km_day_scores", 0);
  UNPROTECT(1);
  return out;
}

/* A number. x: r x n; ends: of segments. */
SEXP r_neighbors(SEXP x, SEXP ends) {
  const size_t r = (size_t) Rf_nrows(x), n = (size_t) Rf_ncols(x);
  const size_t count = (size_t) XLENGTH(ends);
  const double *points = glue_matrix(x, "x");
  const int *last = glue_codes(ends, count, 1, (int) n, "ends");
  return Rf_ScalarReal(km_neighbors(r, points, count, last, glue_scratch(n)));
}

#include "core/scores.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* Scores along a path of lambda. gamma, q: n; lambda: count. */

SEXP r_score_gcv(SEXP gamma, SEXP q, SEXP trace, SEXP lambda) {
  const R_xlen_t n = XLENGTH(gamma);
  const R_xlen_t count = XLENGTH(lambda);
  const double *values = glue_doubles(gamma, n, "gamma");
  const double *squares = glue_doubles(q, n, "q");
  SEXP score = PROTECT(Rf_allocVector(REALSXP, count));
  km_score_gcv((size_t) n, values, squares, Rf_asReal(trace), (size_t) count,
               glue_doubles(lambda, count, "lambda"), REAL(score));
  UNPROTECT(1);
  return score;
}

SEXP r_score_printed(SEXP gamma, SEXP q, SEXP lambda) {
  const R_xlen_t n = XLENGTH(gamma);
  const R_xlen_t count = XLENGTH(lambda);
  const double *values = glue_doubles(gamma, n, "gamma");
  const double *squares = glue_doubles(q, n, "q");
  SEXP score = PROTECT(Rf_allocVector(REALSXP, count));
  km_score_printed((size_t) n, values, squares, (size_t) count,
                   glue_doubles(lambda, count, "lambda"), REAL(score));
  UNPROTECT(1);
  return score;
}

/* gamma: r or more; vectors: n x r; diagonal: n; target: n, or NULL for f* = 0; along: U'e, then
   U'target if any. */
SEXP r_score_loocv(SEXP gamma, SEXP vectors, SEXP along, SEXP diagonal, SEXP target, SEXP norm2,
                   SEXP lambda) {
  const double *u = glue_matrix(vectors, "vectors"), *values = glue_doubles(gamma, -1, "gamma");
  const size_t n = (size_t) Rf_nrows(vectors), rank = (size_t) Rf_ncols(vectors);
  const R_xlen_t count = XLENGTH(lambda);
  if (XLENGTH(gamma) < (R_xlen_t) rank) Rf_error("internal error: 'gamma' is short");
  const double *diag = glue_doubles(diagonal, (R_xlen_t) n, "diagonal");
  const double *f = Rf_isNull(target) ? NULL : glue_doubles(target, (R_xlen_t) n, "target");
  const double *ef = glue_doubles(along, (R_xlen_t) (f ? 2 * rank : rank), "along");
  const double *path = glue_doubles(lambda, count, "lambda");
  SEXP score = PROTECT(Rf_allocVector(REALSXP, count));
  double *work = glue_scratch(km_score_loocv_work(n, (size_t) count));
  km_score_loocv(n, rank, values, u, ef, diag, f, Rf_asReal(norm2), (size_t) count, path,
                 REAL(score), work, glue_poll);
  UNPROTECT(1);
  return score;
}

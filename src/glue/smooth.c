#include "apps/smooth.h"
#include "glue/entries.h"
#include "glue/glue.h"

static void set_dim3(SEXP x, size_t a, size_t b, size_t c) {
  SEXP dim = PROTECT(Rf_allocVector(INTSXP, 3));
  INTEGER(dim)[0] = (int) a;
  INTEGER(dim)[1] = (int) b;
  INTEGER(dim)[2] = (int) c;
  Rf_setAttrib(x, R_DimSymbol, dim);
  UNPROTECT(1);
}

static SEXP new_array(size_t a, size_t b, size_t c) {
  SEXP x = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) (a * b * c)));
  set_dim3(x, a, b, c);
  UNPROTECT(1);
  return x;
}

/*
 * list(at: H x n, norms: H x folds, or H x H x folds if pairs, cross: NULL or H x q x folds).
 * x: n x p, in units of the bandwidths; fold: n codes 1 .. folds; lost: p codes of folds, or 0;
 * unseen: folds + 1; grid: H; weights: NULL or n x q x folds.
 */
SEXP r_smooth_folds(SEXP x, SEXP fold, SEXP lost, SEXP unseen, SEXP grid, SEXP weights,
                    SEXP pairs) {
  const char *names[] = {"at", "norms", "cross", ""};
  km_smooth_job job = {.x = glue_matrix(x, "x"),
                       .n = (size_t) Rf_nrows(x),
                       .p = (size_t) Rf_ncols(x),
                       .folds = (size_t) XLENGTH(unseen) - 1,
                       .h = glue_doubles(grid, -1, "grid"),
                       .h_count = (size_t) XLENGTH(grid),
                       .pairs = Rf_asLogical(pairs) == TRUE};
  if (job.n < 2 || job.p < 1 || job.h_count < 1 || XLENGTH(unseen) < 3)
    Rf_error("internal error: no points, no fold or no 'grid'");
  job.fold = glue_codes(fold, job.n, 1, (int) job.folds, "fold");
  job.lost = glue_codes(lost, job.p, 0, (int) job.folds, "lost");
  job.unseen = glue_codes(unseen, job.folds + 1, 0, INT_MAX, "unseen");
  if (km_codes_within(job.fold, job.n, job.fold[0], job.fold[0]))
    Rf_error("internal error: a fold has all points");
  if (!Rf_isNull(weights)) {
    const size_t cells = job.n * job.folds;
    job.weights = glue_doubles(weights, -1, "weights");
    job.others = (size_t) XLENGTH(weights) / cells;
    if (job.others * cells != (size_t) XLENGTH(weights))
      Rf_error("internal error: 'weights' is not n x q x folds");
  }
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(out, 0, glue_new_matrix(job.h_count, job.n));
  SET_VECTOR_ELT(out, 1, job.pairs ? new_array(job.h_count, job.h_count, job.folds)
                                   : glue_new_matrix(job.h_count, job.folds));
  if (job.weights) SET_VECTOR_ELT(out, 2, new_array(job.h_count, job.others, job.folds));
  const km_smooth_sums sums = {.at = REAL(VECTOR_ELT(out, 0)),
                               .norms = REAL(VECTOR_ELT(out, 1)),
                               .cross = job.weights ? REAL(VECTOR_ELT(out, 2)) : NULL};
  double *work = glue_scratch(km_smooth_folds_work(&job));
  glue_check(km_smooth_folds(&job, &sums, work, glue_poll), "km_smooth_folds", 0);
  UNPROTECT(1);
  return out;
}

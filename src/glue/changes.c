#include "apps/changes.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* (n - 1) x count. x: r x n, a bin a column, of mean 0; orders: n x count, from 1 on. */
SEXP r_cut_gains(SEXP x, SEXP orders, SEXP least) {
  const double *bins = glue_matrix(x, "x");
  const size_t r = (size_t) Rf_nrows(x), n = (size_t) Rf_ncols(x);
  const size_t count = (size_t) Rf_ncols(orders);
  const km_cuts cuts = {n, r, count, (size_t) Rf_asInteger(least), bins,
                        glue_codes(orders, n * count, 1, (int) n, "orders")};
  SEXP gains = PROTECT(glue_new_matrix(n - 1, count));
  double *work = glue_scratch(km_cut_gains_work(n, r, count));
  km_cut_gains(&cuts, REAL(gains), work, glue_poll);
  UNPROTECT(1);
  return gains;
}

/* list(totals, last). x: r x n; cuts: known ones; at least `least` bins in each of up to `most`
   segments. */
SEXP r_segments(SEXP x, SEXP cuts, SEXP least, SEXP most) {
  const char *names[] = {"totals", "last", ""};
  const double *bins = glue_matrix(x, "x");
  const size_t r = (size_t) Rf_nrows(x), n = (size_t) Rf_ncols(x);
  const size_t known = (size_t) XLENGTH(cuts), count = (size_t) Rf_asInteger(most);
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(out, 0, Rf_allocVector(REALSXP, (R_xlen_t) count));
  SET_VECTOR_ELT(out, 1, Rf_allocMatrix(INTSXP, (int) n, (int) count));
  double *costs = glue_scratch(n * n), *work = glue_scratch(km_segment_costs_work(n, r));
  km_segment_costs(n, r, bins, known, glue_codes(cuts, known, 1, (int) n, "cuts"), costs, work,
                   glue_poll);
  km_segments(n, costs, (size_t) Rf_asInteger(least), count, REAL(VECTOR_ELT(out, 0)),
              INTEGER(VECTOR_ELT(out, 1)), glue_scratch(n * count), glue_poll);
  UNPROTECT(1);
  return out;
}

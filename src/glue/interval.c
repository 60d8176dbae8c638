#include "apps/interval.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* values: n x m, within [0, 1]; left_out: m rows from 1 on, or 0. */
SEXP r_lower_ends(SEXP values, SEXP left_out, SEXP rest) {
  const double *x = glue_matrix(values, "values");
  const size_t n = (size_t) Rf_nrows(values), m = (size_t) Rf_ncols(values);
  const int *out = glue_codes(left_out, m, 0, (int) n, "left_out");
  SEXP ends = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) m));
  km_lower_ends(n, m, x, out, Rf_asReal(rest), REAL(ends), glue_poll);
  UNPROTECT(1);
  return ends;
}

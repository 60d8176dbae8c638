#include "glue/glue.h"

/* The border between R and the core: no arithmetic, no loops over data. */

void glue_check(km_status status, const char *routine, int info) {
  if (status == KM_OK) return;
  SEXP namespace = PROTECT(R_FindNamespace(PROTECT(Rf_mkString("kernmean"))));
  SEXP call = PROTECT(Rf_lang4(Rf_install("stop_numeric"), PROTECT(Rf_mkString(routine)),
                               PROTECT(Rf_ScalarInteger((int) status)),
                               PROTECT(Rf_ScalarInteger(info))));
  Rf_eval(call, namespace);
  UNPROTECT(6);
}

void glue_poll(void) { R_CheckUserInterrupt(); }

const double *glue_doubles(SEXP x, R_xlen_t length, const char *name) {
  if (TYPEOF(x) != REALSXP || (length >= 0 && XLENGTH(x) != length))
    Rf_error("internal error: '%s' is not a double vector of the right length", name);
  return REAL_RO(x);
}

size_t glue_order(SEXP x, const char *name) {
  if (TYPEOF(x) != REALSXP || !Rf_isMatrix(x) || Rf_nrows(x) != Rf_ncols(x) || Rf_nrows(x) < 1)
    Rf_error("internal error: '%s' is not a square double matrix", name);
  return (size_t) Rf_nrows(x);
}

double *glue_scratch(size_t count) { return (double *) R_alloc(count + 1, sizeof(double)); }

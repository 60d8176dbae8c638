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

km_kernel glue_kernel(SEXP spec, size_t d) {
  if (Rf_isNull(spec)) return (km_kernel){.family = KM_RBF};
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

km_pair glue_points(SEXP x, SEXP y) {
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

km_pair glue_source(SEXP spec, SEXP x) {
  if (!Rf_isNull(spec)) return glue_points(x, R_NilValue);
  const size_t n = glue_order(x, "x");
  return (km_pair){.n = n, .m = n, .k = REAL_RO(x)};
}

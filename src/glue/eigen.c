#include "core/eigen.h"
#include "core/krylov.h"
#include "core/tridiag.h"
#include "glue/entries.h"
#include "glue/glue.h"

#include <string.h>

/* list(diagonal, off, reflectors, tau): K = QTQ' with Qe_1 = e/sqrt(n). k: n x n, symmetric. */
SEXP r_tridiag(SEXP k) {
  const char *names[] = {"diagonal", "off", "reflectors", "tau", ""};
  const size_t n = glue_order(k, "k");
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SEXP diagonal = Rf_allocVector(REALSXP, (R_xlen_t) n);
  SET_VECTOR_ELT(out, 0, diagonal);
  SEXP off = Rf_allocVector(REALSXP, (R_xlen_t) n - 1);
  SET_VECTOR_ELT(out, 1, off);
  SEXP reflectors = Rf_duplicate(k);
  SET_VECTOR_ELT(out, 2, reflectors);
  SEXP tau = Rf_allocVector(REALSXP, (R_xlen_t) n);
  SET_VECTOR_ELT(out, 3, tau);
  double *work = glue_scratch(km_tridiag_work(n));
  km_tridiag(n, REAL(reflectors), REAL(diagonal), REAL(off), REAL(tau), work, glue_poll);
  UNPROTECT(1);
  return out;
}

/* Q y */
SEXP r_tridiag_apply(SEXP reflectors, SEXP tau, SEXP y) {
  const size_t n = glue_order(reflectors, "reflectors");
  glue_doubles(y, (R_xlen_t) n, "y");
  SEXP out = PROTECT(Rf_duplicate(y));
  km_tridiag_apply(n, REAL_RO(reflectors), glue_doubles(tau, (R_xlen_t) n, "tau"), REAL(out));
  UNPROTECT(1);
  return out;
}

/* list(values, first), or list(values) if `want_first` is FALSE */
SEXP r_tridiag_spectrum(SEXP diagonal, SEXP off, SEXP want_first) {
  const char *names[] = {"values", "first", ""};
  const R_xlen_t n = XLENGTH(diagonal);
  const double *d = glue_doubles(diagonal, n, "diagonal");
  const double *e = glue_doubles(off, n - 1, "off");
  const int both = Rf_asLogical(want_first);
  if (!both) names[1] = "";
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SEXP values = Rf_allocVector(REALSXP, n);
  SET_VECTOR_ELT(out, 0, values);
  double *first = NULL;
  if (both) {
    SET_VECTOR_ELT(out, 1, Rf_allocVector(REALSXP, n));
    first = REAL(VECTOR_ELT(out, 1));
  }
  double *work = glue_scratch(km_tridiag_spectrum_work((size_t) n));
  const km_status status = km_tridiag_spectrum((size_t) n, d, e, REAL(values), first, work);
  glue_check(status, "km_tridiag_spectrum", 0);
  UNPROTECT(1);
  return out;
}

/* (T + lambda I)^{-1} x */
SEXP r_tridiag_solve(SEXP diagonal, SEXP off, SEXP lambda, SEXP x) {
  const R_xlen_t n = XLENGTH(diagonal);
  const double *d = glue_doubles(diagonal, n, "diagonal");
  const double *e = glue_doubles(off, n - 1, "off");
  glue_doubles(x, n, "x");
  SEXP out = PROTECT(Rf_duplicate(x));
  double *work = glue_scratch(km_tridiag_solve_work((size_t) n));
  const km_status status =
    km_tridiag_solve((size_t) n, d, e, Rf_asReal(lambda), REAL(out), work);
  glue_check(status, "km_tridiag_solve", 0);
  UNPROTECT(1);
  return out;
}

/* A list with these names: values (p), vectors (n x p), and what follows. */
static SEXP allocate_pairs(const char **names, size_t n, size_t p) {
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(out, 0, Rf_allocVector(REALSXP, (R_xlen_t) p));
  SET_VECTOR_ELT(out, 1, glue_new_matrix(n, p));
  UNPROTECT(1);
  return out;
}

static double *pair_values(SEXP pairs) { return REAL(VECTOR_ELT(pairs, 0)); }

static double *pair_vectors(SEXP pairs) { return REAL(VECTOR_ELT(pairs, 1)); }

/* list(values, vectors): the `count` leading ones */
SEXP r_eigen(SEXP k, SEXP count) {
  const char *names[] = {"values", "vectors", ""};
  const size_t n = glue_order(k, "k"), p = (size_t) Rf_asInteger(count);
  if (p < 1 || p > n) Rf_error("internal error: 'count'");
  SEXP out = PROTECT(allocate_pairs(names, n, p));
  SEXP copy = PROTECT(glue_new_matrix(n, n));
  km_status status = KM_NO_CONVERGENCE;
  for (int divide = 0; divide < 2 && status != KM_OK; divide++) {
    const void *top = vmaxget();
    memcpy(REAL(copy), REAL_RO(k), n * n * sizeof(double));
    double *work = glue_scratch(km_eigen_work(n, p, divide));
    int *iwork = glue_int_scratch(km_eigen_iwork(n, divide));
    status = km_eigen(n, REAL(copy), p, pair_values(out), pair_vectors(out), divide, work, iwork,
                      glue_poll);
    vmaxset(top);
  }
  glue_check(status, "km_eigen", 0);
  UNPROTECT(2);
  return out;
}

/* list(values, vectors, residual, products) of K^c, or NULL if that did not converge; square: its
   squared norm */
SEXP r_krylov(SEXP source, SEXP at, SEXP norm2, SEXP square, SEXP count) {
  const char *names[] = {"values", "vectors", "residual", "products", ""};
  const km_source from = glue_symmetric(source);
  const km_centering mean = glue_centering(at, norm2, from.n);
  const size_t p = (size_t) Rf_asInteger(count);
  SEXP out = PROTECT(allocate_pairs(names, from.n, p));
  double *work = glue_scratch(km_krylov_work(&from, p));
  int *iwork = glue_int_scratch(km_krylov_iwork(p));
  double residual = 0;
  int products = 0;
  const km_status status =
    km_krylov(&from, mean, Rf_asReal(square), p, pair_values(out), pair_vectors(out), &residual,
              &products, work, iwork, glue_poll);
  SET_VECTOR_ELT(out, 2, Rf_ScalarReal(residual));
  SET_VECTOR_ELT(out, 3, Rf_ScalarInteger(products));
  UNPROTECT(1);
  return status == KM_OK ? out : R_NilValue;
}

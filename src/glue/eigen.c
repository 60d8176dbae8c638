#include "core/eigen.h"
#include "core/krylov.h"
#include "core/range.h"
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

/* The eigenpairs of K into values and vectors: the `count` leading ones, or if rank is not NULL
   those that km_eigen_range finds. */
static void find_pairs(SEXP k, size_t count, double *values, double *vectors, size_t *rank) {
  const size_t n = glue_order(k, "k");
  km_status status = KM_NO_CONVERGENCE;
  double *copy = REAL(PROTECT(glue_new_matrix(n, n)));
  for (int divide = 0; divide < 2 && status != KM_OK; divide++) {
    const void *top = vmaxget();
    memcpy(copy, REAL_RO(k), n * n * sizeof *copy);
    double *work = glue_scratch(km_eigen_work(n, count, divide));
    int *iwork = glue_int_scratch(km_eigen_iwork(n, divide));
    status = rank ? km_eigen_range(n, copy, values, vectors, rank, divide, work, iwork, glue_poll)
                  : km_eigen(n, copy, count, values, vectors, divide, work, iwork, glue_poll);
    vmaxset(top);
  }
  UNPROTECT(1);
  glue_check(status, "km_eigen", 0);
}

/* list(values, vectors): the `count` leading ones. More than a quarter of them takes longer than
   all. */
SEXP r_eigen(SEXP k, SEXP count) {
  const char *names[] = {"values", "vectors", ""};
  const size_t n = glue_order(k, "k"), p = (size_t) Rf_asInteger(count);
  if (p < 1 || p > n) Rf_error("internal error: 'count'");
  SEXP out = PROTECT(allocate_pairs(names, n, p));
  if (p == n || 4 * p <= n) {
    find_pairs(k, p, pair_values(out), pair_vectors(out), NULL);
  } else {
    double *values = glue_scratch(n), *vectors = glue_scratch(n * n);
    find_pairs(k, n, values, vectors, NULL);
    memcpy(pair_values(out), values, p * sizeof *values);
    memcpy(pair_vectors(out), vectors, n * p * sizeof *vectors);
  }
  UNPROTECT(1);
  return out;
}

/* list(values, vectors) of a positive semi-definite matrix: n values and the vectors of those that
   are more than rounding, or of more. */
SEXP r_range(SEXP k) {
  enum { LEAST = 200 }; /* rows: of fewer all pairs take no longer */
  const char *names[] = {"values", "vectors", ""};
  const size_t n = glue_order(k, "k");
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SEXP values = Rf_allocVector(REALSXP, (R_xlen_t) n);
  SET_VECTOR_ELT(out, 0, values);
  memset(REAL(values), 0, n * sizeof(double));
  const size_t caps[] = {n / 12, n / 4, n / 2};
  double *found = NULL;
  size_t rank = 0, wanted = n >= LEAST;
  const void *top = vmaxget();
  for (size_t t = 0; t < 3 && rank == 0 && wanted > 0 && (t < 2 || wanted <= caps[t]); t++) {
    vmaxset(top);
    found = glue_scratch(km_range_work(n, caps[t]));
    rank = km_range(n, REAL_RO(k), caps[t], REAL(values), &wanted, found,
                    glue_int_scratch(km_range_iwork(caps[t])), glue_poll);
  }
  if (rank == 0) {
    vmaxset(top);
    SET_VECTOR_ELT(out, 1, glue_new_matrix(n, n));
    found = pair_vectors(out);
    find_pairs(k, n, REAL(values), found, &rank);
  }
  if (rank < n) {
    SEXP kept = glue_new_matrix(n, rank);
    memcpy(REAL(kept), found, n * rank * sizeof *found);
    SET_VECTOR_ELT(out, 1, kept);
  }
  UNPROTECT(1);
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

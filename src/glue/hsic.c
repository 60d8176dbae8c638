#include "apps/hsic.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* permutations: integer, n x count, each column a permutation of 1, ..., n. */

static km_permutations unpack_permutations(SEXP permutations, size_t n, int inverse) {
  if (TYPEOF(permutations) != INTSXP || !Rf_isMatrix(permutations) ||
      (size_t) Rf_nrows(permutations) != n)
    Rf_error("internal error: 'permutations' is not an integer matrix of the right size");
  const size_t count = (size_t) Rf_ncols(permutations);
  const int *given = glue_codes(permutations, n * count, 1, (int) n, "permutations");
  int *order = glue_int_scratch(n * count);
  int *back = inverse ? glue_int_scratch(n * count) : NULL;
  km_invert(given, n, count, order, back);
  return (km_permutations){n, count, order, back};
}

static const double *unpack_square(SEXP k, size_t n, const char *name) {
  if (glue_order(k, name) != n) Rf_error("internal error: '%s' is of another order", name);
  return REAL_RO(k);
}

SEXP r_permuted_forms(SEXP k, SEXP l, SEXP permutations) {
  const size_t n = glue_order(k, "k");
  const double *other = unpack_square(l, n, "l");
  const km_permutations given = unpack_permutations(permutations, n, 1);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) given.count));
  double *work = glue_scratch(km_permuted_forms_work(given.count));
  km_permuted_forms(REAL_RO(k), other, &given, REAL(out), work, glue_poll);
  UNPROTECT(1);
  return out;
}

/* The matrices of a list, each n x n. */
static const double **unpack_squares(SEXP list, size_t n, const char *name) {
  if (TYPEOF(list) != VECSXP) Rf_error("internal error: '%s' is not a list", name);
  const R_xlen_t count = XLENGTH(list);
  const double **each = (const double **) R_alloc((size_t) count, sizeof *each);
  for (R_xlen_t l = 0; l < count; l++) each[l] = unpack_square(VECTOR_ELT(list, l), n, name);
  return each;
}

/* k, l: lists of n x n matrices; result: permutations x pairs, those of the first l first. */
SEXP r_permuted_grid(SEXP k, SEXP l, SEXP permutations) {
  const size_t n = (size_t) Rf_nrows(permutations);
  const double **left = unpack_squares(k, n, "k"), **right = unpack_squares(l, n, "l");
  const size_t ks = (size_t) XLENGTH(k), ls = (size_t) XLENGTH(l);
  const km_permutations given = unpack_permutations(permutations, n, 1);
  SEXP out = PROTECT(glue_new_matrix(given.count, ks * ls));
  double *work = glue_scratch(km_permuted_grid_work(n, given.count));
  km_permuted_grid(left, ks, right, ls, &given, REAL(out), work, glue_poll);
  UNPROTECT(1);
  return out;
}

/* a, b: rank x n */
SEXP r_permuted_products(SEXP a, SEXP b, SEXP permutations) {
  const size_t n = (size_t) Rf_ncols(a), p = (size_t) Rf_nrows(a), q = (size_t) Rf_nrows(b);
  if (n < 1) Rf_error("internal error: 'a' has no columns");
  const double *left = glue_doubles(a, (R_xlen_t) (n * p), "a");
  const double *right = glue_doubles(b, (R_xlen_t) (n * q), "b");
  const km_permutations given = unpack_permutations(permutations, n, 0);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) given.count));
  double *work = glue_scratch(km_permuted_products_work(n, p, q));
  km_permuted_products(left, p, right, q, &given, REAL(out), work, glue_poll);
  UNPROTECT(1);
  return out;
}

SEXP r_permuted_sums(SEXP a, SEXP b, SEXP permutations) {
  const size_t n = (size_t) XLENGTH(a);
  const double *left = glue_doubles(a, -1, "a");
  const double *right = glue_doubles(b, (R_xlen_t) n, "b");
  const km_permutations given = unpack_permutations(permutations, n, 0);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) given.count));
  km_permuted_sums(left, right, &given, REAL(out));
  UNPROTECT(1);
  return out;
}

/* kernels: list of n x n matrices; rows: list of their row means; permutations: those of the
   second, third, ... matrix in turn. list(forms, sums) */
SEXP r_permuted_tensor(SEXP kernels, SEXP rows, SEXP permutations) {
  const char *names[] = {"forms", "sums", ""};
  if (TYPEOF(kernels) != VECSXP || TYPEOF(rows) != VECSXP || XLENGTH(rows) != XLENGTH(kernels) ||
      XLENGTH(kernels) < 2)
    Rf_error("internal error: 'kernels' and 'rows' are not lists of the same length");
  const size_t variables = (size_t) XLENGTH(kernels);
  const size_t n = glue_order(VECTOR_ELT(kernels, 0), "kernels");
  const double **k = unpack_squares(kernels, n, "kernels");
  const double **means = (const double **) R_alloc(variables, sizeof *means);
  for (size_t l = 0; l < variables; l++)
    means[l] = glue_doubles(VECTOR_ELT(rows, (R_xlen_t) l), (R_xlen_t) n, "rows");
  const km_permutations given = unpack_permutations(permutations, n, 0);
  const R_xlen_t count = (R_xlen_t) (given.count / (variables - 1));
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SEXP forms = Rf_allocVector(REALSXP, count);
  SET_VECTOR_ELT(out, 0, forms);
  SEXP sums = Rf_allocVector(REALSXP, count);
  SET_VECTOR_ELT(out, 1, sums);
  double *work = glue_scratch(km_permuted_tensor_work((size_t) count));
  km_permuted_tensor(variables, k, means, &given, REAL(forms), REAL(sums), work, glue_poll);
  UNPROTECT(1);
  return out;
}

#include "apps/bags.h"
#include "apps/noisy.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* sizes: those of the bags, which stand one after the other. */

/* list(weights: of the points, and of each bag lambda, minimum, reference, norm2, border). lambda:
   one number, or NULL to select it. */
SEXP r_bag_flexible(SEXP source, SEXP sizes, SEXP lambda) {
  const char *names[] = {"weights", "lambda", "minimum", "reference", "norm2", "border", ""};
  const km_source from = glue_symmetric(source);
  const km_runs bags = glue_runs(sizes, R_NilValue, from.n);
  const double *given = Rf_isNull(lambda) ? NULL : glue_doubles(lambda, 1, "lambda");
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(out, 0, Rf_allocVector(REALSXP, (R_xlen_t) from.n));
  for (int field = 1; field < 5; field++)
    SET_VECTOR_ELT(out, field, Rf_allocVector(REALSXP, (R_xlen_t) bags.count));
  SET_VECTOR_ELT(out, 5, Rf_allocVector(LGLSXP, (R_xlen_t) bags.count));
  const km_flexible fits = {.weights = REAL(VECTOR_ELT(out, 0)),
                            .lambda = REAL(VECTOR_ELT(out, 1)),
                            .minimum = REAL(VECTOR_ELT(out, 2)),
                            .reference = REAL(VECTOR_ELT(out, 3)),
                            .norm2 = REAL(VECTOR_ELT(out, 4)),
                            .border = LOGICAL(VECTOR_ELT(out, 5))};
  double *work = glue_scratch(km_bag_flexible_work(&from, &bags));
  int *iwork = glue_int_scratch(km_bag_flexible_iwork(&from, &bags));
  const km_status status = km_bag_flexible(&from, &bags, given, &fits, work, iwork, glue_poll);
  glue_check(status, "km_bag_flexible", 0);
  UNPROTECT(1);
  return out;
}

/* noise: d x bags; column_sizes, column_noise: NULL if the source is symmetric. */
SEXP r_bag_marginal(SEXP source, SEXP sizes, SEXP noise, SEXP column_sizes, SEXP column_noise) {
  const km_source from = Rf_isNull(column_sizes) ? glue_points(source) : glue_source(source);
  if (!from.x || from.kernel.family != KM_RBF)
    Rf_error("internal error: 'source' is not points with an RBF kernel");
  const km_runs rows = glue_runs(sizes, R_NilValue, from.n);
  const double *of_rows = glue_doubles(noise, (R_xlen_t) (from.d * rows.count), "noise");
  const double *of_columns = NULL;
  km_runs columns = rows;
  if (from.y) {
    columns = glue_runs(column_sizes, R_NilValue, from.m);
    of_columns =
      glue_doubles(column_noise, (R_xlen_t) (from.d * columns.count), "column_noise");
  }
  SEXP inner = PROTECT(glue_new_matrix(rows.count, columns.count));
  double *work = glue_scratch(km_bag_marginal_work(&from));
  km_bag_marginal(&from, &rows, of_rows, from.y ? &columns : NULL, of_columns, REAL(inner), work,
                  glue_poll);
  UNPROTECT(1);
  return inner;
}

/* n x d points in parts, with a covariance of d x d for each. */
static km_noisy unpack_parts(SEXP x, SEXP sizes, SEXP weights, SEXP covariances) {
  const double *points = glue_matrix(x, "x");
  const size_t n = (size_t) Rf_nrows(x), d = (size_t) Rf_ncols(x);
  if (n < 1 || d < 1 || Rf_isNull(weights)) Rf_error("internal error: no points or no weights");
  const km_runs parts = glue_runs(sizes, weights, n);
  const R_xlen_t length = (R_xlen_t) (d * d * parts.count);
  return (km_noisy){points, n, parts, glue_doubles(covariances, length, "covariances")};
}

/* parts of x x parts of y; y and what follows: NULL for the parts of x with each other. */
SEXP r_bag_noisy(SEXP x, SEXP sizes, SEXP weights, SEXP covariances, SEXP y, SEXP y_sizes,
                 SEXP y_weights, SEXP y_covariances) {
  const km_noisy rows = unpack_parts(x, sizes, weights, covariances);
  const size_t d = (size_t) Rf_ncols(x);
  km_noisy columns = rows;
  if (!Rf_isNull(y)) {
    columns = unpack_parts(y, y_sizes, y_weights, y_covariances);
    if ((size_t) Rf_ncols(y) != d)
      Rf_error("internal error: 'y' does not have the columns of 'x'");
  }
  const km_noisy *others = Rf_isNull(y) ? NULL : &columns;
  SEXP inner = PROTECT(glue_new_matrix(rows.parts.count, columns.parts.count));
  double *work = glue_scratch(km_noisy_inner_work(d, &rows, others));
  int *iwork = glue_int_scratch(km_noisy_inner_iwork(&rows, others));
  const km_status status =
    km_noisy_inner(d, &rows, others, REAL(inner), work, iwork, glue_poll);
  glue_check(status, "km_noisy_inner", 0);
  UNPROTECT(1);
  return inner;
}

#include "core/left_out.h"
#include "glue/entries.h"
#include "glue/glue.h"

static double *copy_values(SEXP list, int at, SEXP out, size_t rows, size_t columns) {
  SEXP x = VECTOR_ELT(list, at);
  glue_doubles(x, (R_xlen_t) (rows * columns), "values");
  SET_VECTOR_ELT(out, at, Rf_duplicate(x));
  return REAL(VECTOR_ELT(out, at));
}

/* z: n x r, weights: n, b: N x r, shares: N, all in the order of units, whose sizes are those;
   inverse: r x ridges; values: list(alpha, residuals: n x ridges, of_alpha, of_regression: N x
   ridges). The same list of fits without the unit of each row. */
SEXP r_left_out(SEXP z, SEXP weights, SEXP sizes, SEXP b, SEXP shares, SEXP functional_sizes,
                SEXP inverse, SEXP values) {
  const size_t n = (size_t) Rf_nrows(z), more = (size_t) Rf_nrows(b), r = (size_t) Rf_ncols(z);
  const km_ridge ridge = {.n = n,
                          .more = more,
                          .r = r,
                          .ridges = (size_t) Rf_ncols(inverse),
                          .rows = glue_runs(sizes, weights, n),
                          .functional = glue_runs(functional_sizes, shares, more),
                          .z = glue_matrix(z, "z"),
                          .b = glue_matrix(b, "b"),
                          .inverse = glue_matrix(inverse, "inverse")};
  if ((size_t) Rf_ncols(b) != r || (size_t) Rf_nrows(inverse) != r ||
      ridge.rows.count != ridge.functional.count || Rf_xlength(values) != 4)
    Rf_error("internal error: a ridge regression that does not fit together");
  SEXP out = PROTECT(Rf_allocVector(VECSXP, 4));
  Rf_setAttrib(out, R_NamesSymbol, Rf_getAttrib(values, R_NamesSymbol));
  const km_ridge_values to = {.alpha = copy_values(values, 0, out, n, ridge.ridges),
                              .residuals = copy_values(values, 1, out, n, ridge.ridges),
                              .of_alpha = copy_values(values, 2, out, more, ridge.ridges),
                              .of_regression = copy_values(values, 3, out, more, ridge.ridges)};
  km_left_out(&ridge, &to, glue_scratch(km_left_out_work(&ridge)), glue_poll);
  UNPROTECT(1);
  return out;
}

#include "apps/fda.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* n x C; of: n codes 1 .. C; counts: C; means: n x C; within: n x n; factor: n x n, or NULL. */
SEXP r_fda_left_out(SEXP of, SEXP counts, SEXP means, SEXP within, SEXP factor) {
  const R_xlen_t n = XLENGTH(of), classes = XLENGTH(counts);
  if (n < 1 || classes < 1) Rf_error("internal error: no points, or no classes");
  const double *root = Rf_isNull(factor) ? NULL : glue_doubles(factor, n * n, "factor");
  const km_fda_fit fit = {.n = (size_t) n,
                          .classes = (size_t) classes,
                          .of = glue_codes(of, (size_t) n, 1, (int) classes, "of"),
                          .counts = glue_doubles(counts, classes, "counts"),
                          .means = glue_doubles(means, n * classes, "means"),
                          .within = glue_doubles(within, n * n, "within"),
                          .factor = root};
  SEXP distances = PROTECT(glue_new_matrix(fit.n, fit.classes));
  km_fda_left_out(&fit, REAL(distances), glue_scratch(km_fda_left_out_work(&fit)), glue_poll);
  UNPROTECT(1);
  return distances;
}

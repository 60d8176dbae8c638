#include "apps/fda.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* n x C; of: n codes 1 .. C; counts: C; means: C x C; inner: n x C; square, pivot: n; at: n x
   (C + 1). */
SEXP r_fda_left_out(SEXP of, SEXP counts, SEXP means, SEXP inner, SEXP square, SEXP at, SEXP pivot,
                    SEXP scatter) {
  const R_xlen_t n = XLENGTH(of), classes = XLENGTH(counts);
  if (n < 1 || classes < 1) Rf_error("internal error: no points, or no classes");
  const km_fda_fit fit = {.n = (size_t) n,
                          .classes = (size_t) classes,
                          .of = glue_codes(of, (size_t) n, 1, (int) classes, "of"),
                          .counts = glue_doubles(counts, classes, "counts"),
                          .means = glue_doubles(means, classes * classes, "means"),
                          .inner = glue_doubles(inner, n * classes, "inner"),
                          .square = glue_doubles(square, n, "square"),
                          .at = glue_doubles(at, n * (classes + 1), "at"),
                          .pivot = glue_doubles(pivot, n, "pivot"),
                          .scatter = Rf_asLogical(scatter) == TRUE};
  SEXP distances = PROTECT(glue_new_matrix(fit.n, fit.classes));
  km_fda_left_out(&fit, REAL(distances), glue_scratch(km_fda_left_out_work(&fit)), glue_poll);
  UNPROTECT(1);
  return distances;
}

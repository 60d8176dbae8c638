#include "core/center.h"
#include "core/fold.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* at: n values of a mean, norm2: its squared norm; at = NULL: the mean of the points themselves. */

/* list(k, at, norm2): K^c and its centering. */
SEXP r_centered(SEXP source, SEXP at, SEXP norm2) {
  const char *names[] = {"k", "at", "norm2", ""};
  const km_source from = glue_symmetric(source);
  const size_t n = from.n;
  const int own = Rf_isNull(at);
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SEXP k = glue_new_matrix(n, n);
  SET_VECTOR_ELT(out, 0, k);
  SET_VECTOR_ELT(out, 1, own ? Rf_allocVector(REALSXP, (R_xlen_t) n) : at);
  double *work = glue_scratch(km_fold_store_work(&from));
  km_fold_store(&from, REAL(k), work, glue_poll);
  const km_centering mean = own ? km_row_means(n, REAL(k), REAL(VECTOR_ELT(out, 1)))
                               : glue_centering(at, norm2, n);
  km_center(n, REAL(k), mean, REAL(k));
  SET_VECTOR_ELT(out, 2, Rf_ScalarReal(mean.norm2));
  UNPROTECT(1);
  return out;
}

/* |K^c|_F^2 */
SEXP r_centered_square(SEXP source, SEXP at, SEXP norm2) {
  const km_source from = glue_symmetric(source);
  const km_centering mean = glue_centering(at, norm2, from.n);
  double *work = glue_scratch(km_centered_square_work(&from));
  return Rf_ScalarReal(km_centered_square(&from, mean, work, glue_poll));
}

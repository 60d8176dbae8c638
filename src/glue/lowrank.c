#include "core/lowrank.h"
#include "glue/entries.h"
#include "glue/glue.h"

typedef struct {
  size_t n, most, rank; /* rank > most: as km_lowrank() says */
  const double *f;
  const int *pivots;
  double left;
} pivoted;

static pivoted factor_source(SEXP source, double tolerance, SEXP most) {
  const km_source from = glue_symmetric(source);
  pivoted made = {.n = from.n, .most = (size_t) Rf_asInteger(most)};
  double *work = glue_scratch(km_lowrank_work(&from, made.most));
  int *pivots = glue_int_scratch(made.most);
  made.rank = km_lowrank(&from, tolerance, made.most, pivots, &made.left, work, glue_poll);
  made.f = work;
  made.pivots = pivots;
  return made;
}

/* list(factor, n x rank; pivots, in their order; left, what is left of the trace, not its share).
   If the rank is above most: NULL, or if `partial` the same of the first `most` columns. */
SEXP r_pivoted(SEXP source, SEXP tolerance, SEXP most, SEXP partial) {
  const char *names[] = {"factor", "pivots", "left", ""};
  pivoted made = factor_source(source, Rf_asReal(tolerance), most);
  if (made.rank == made.most + 1 && Rf_asLogical(partial)) made.rank = made.most;
  if (made.rank > made.most) return R_NilValue;
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SEXP factor = glue_new_matrix(made.n, made.rank);
  SET_VECTOR_ELT(out, 0, factor);
  km_lowrank_unpack(made.n, made.f, made.rank, REAL(factor));
  SEXP pivots = Rf_allocVector(INTSXP, (R_xlen_t) made.rank);
  SET_VECTOR_ELT(out, 1, pivots);
  for (size_t j = 0; j < made.rank; j++) INTEGER(pivots)[j] = made.pivots[j] + 1;
  SET_VECTOR_ELT(out, 2, Rf_ScalarReal(made.left));
  UNPROTECT(1);
  return out;
}

/* The centered factor, rank x n, or NULL if the rank is above cap. */
SEXP r_lowrank(SEXP source, SEXP cap) {
  const double tolerance = 1e-13; /* of the trace */
  const pivoted made = factor_source(source, tolerance, cap);
  if (made.rank > made.most) return R_NilValue;
  SEXP factor = PROTECT(glue_new_matrix(made.rank, made.n));
  km_lowrank_center(made.n, made.f, made.rank, REAL(factor));
  UNPROTECT(1);
  return factor;
}

/* list(pivots, in their order; left: the share of the trace that is left). */
SEXP r_random_pivots(SEXP source, SEXP most, SEXP block) {
  const char *names[] = {"pivots", "left", ""};
  const km_source from = glue_symmetric(source);
  const int proposals = Rf_asInteger(block), wanted = Rf_asInteger(most);
  if (proposals < 1 || wanted < 1) Rf_error("internal error: 'block' or 'most' is not positive");
  const size_t cap = (size_t) wanted < from.n ? (size_t) wanted : from.n;
  double left;
  double *work = glue_scratch(km_lowrank_work(&from, cap));
  int *pivots = glue_int_scratch(cap);
  GetRNGstate();
  const size_t rank = km_random_pivots(&from, cap, (size_t) proposals, glue_uniform, pivots, &left,
                                       work, glue_poll);
  PutRNGstate();
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(out, 0, Rf_allocVector(INTSXP, (R_xlen_t) rank));
  for (size_t j = 0; j < rank; j++) INTEGER(VECTOR_ELT(out, 0))[j] = pivots[j] + 1;
  SET_VECTOR_ELT(out, 1, Rf_ScalarReal(left));
  UNPROTECT(1);
  return out;
}

#include "apps/evidence.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* (bettors scores) x starts. ranks: of each score, from 1 to `of`; k: of each start. */
SEXP r_rank_bets(SEXP ranks, SEXP of, SEXP k) {
  const size_t scores = (size_t) XLENGTH(ranks), starts = (size_t) XLENGTH(k);
  const int t = Rf_asInteger(of);
  const int *places = glue_codes(ranks, scores, 1, t, "ranks");
  const int *days = glue_codes(k, starts, 1, t, "k");
  SEXP logs = PROTECT(glue_new_matrix(KM_RANK_BETTORS * scores, starts));
  km_rank_bets(scores, places, t, starts, days, REAL(logs));
  UNPROTECT(1);
  return logs;
}

/* list(log, run, since: the place of a start for each of them, lead). logs: (bettors scores) x
   starts; start: the days that these are, of `count`. */
SEXP r_weigh(SEXP logs, SEXP start, SEXP count, SEXP scores) {
  const char *names[] = {"log", "run", "since", "lead", ""};
  const double *capital = glue_matrix(logs, "logs");
  const size_t starts = (size_t) Rf_ncols(logs), of = (size_t) Rf_asInteger(scores);
  const int days = Rf_asInteger(count);
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(out, 2, Rf_allocVector(INTSXP, 2));
  SET_VECTOR_ELT(out, 3, Rf_allocVector(REALSXP, (R_xlen_t) starts));
  const km_weighed found =
    km_weigh(of, (size_t) Rf_nrows(logs) / of, starts, glue_codes(start, starts, 1, days, "start"),
             days, capital, REAL(VECTOR_ELT(out, 3)), glue_scratch(of * starts));
  SET_VECTOR_ELT(out, 0, Rf_ScalarReal(found.log));
  SET_VECTOR_ELT(out, 1, Rf_ScalarReal(found.run));
  INTEGER(VECTOR_ELT(out, 2))[0] = (int) found.at + 1;
  INTEGER(VECTOR_ELT(out, 2))[1] = (int) found.run_at + 1;
  UNPROTECT(1);
  return out;
}

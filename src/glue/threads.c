#include "core/isa.h"
#include "core/threads.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* NULL asks; a number sets (threads: 0 for the default, -1 in a forked child) and returns what held
   before. */

SEXP r_threads(SEXP limit) {
  SEXP before = PROTECT(Rf_ScalarInteger(km_thread_limit()));
  if (!Rf_isNull(limit)) km_set_thread_limit(Rf_asInteger(limit));
  UNPROTECT(1);
  return before;
}

SEXP r_work_per_thread(SEXP work) {
  SEXP before = PROTECT(Rf_ScalarReal(km_work_per_thread()));
  if (!Rf_isNull(work)) km_set_work_per_thread(Rf_asReal(work));
  UNPROTECT(1);
  return before;
}

/* Are there threads at all in this build? */
SEXP r_openmp(void) {
#ifdef _OPENMP
  return Rf_ScalarLogical(1);
#else
  return Rf_ScalarLogical(0);
#endif
}

SEXP r_isa(SEXP highest) {
  SEXP before = PROTECT(Rf_ScalarInteger((int) km_isa_level()));
  if (!Rf_isNull(highest)) km_set_isa((km_isa) Rf_asInteger(highest));
  UNPROTECT(1);
  return before;
}

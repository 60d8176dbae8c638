#include "core/permute.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* n x count, from 1: a permutation a column, as sample.int() draws it. */
SEXP r_permutations(SEXP order, SEXP count, SEXP blocks) {
  const int n = Rf_asInteger(order), columns = Rf_asInteger(count);
  const km_blocks from = glue_find_blocks(blocks, (size_t) n);
  SEXP out = PROTECT(Rf_allocMatrix(INTSXP, n, columns));
  GetRNGstate();
  km_draw_permutations(&from, (size_t) columns, glue_draw, INTEGER(out), glue_poll);
  PutRNGstate();
  UNPROTECT(1);
  return out;
}

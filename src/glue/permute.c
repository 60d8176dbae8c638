#include "core/permute.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* n x count, from 1: a permutation of points in groups of these sizes a column. */
SEXP r_permutations(SEXP sizes, SEXP count, SEXP blocks) {
  const int columns = Rf_asInteger(count);
  const km_blocks from = glue_find_blocks(blocks, sizes);
  SEXP out = PROTECT(Rf_allocMatrix(INTSXP, (int) from.n, columns));
  GetRNGstate();
  km_draw_permutations(&from, (size_t) columns, glue_draw, INTEGER(out), glue_poll);
  PutRNGstate();
  UNPROTECT(1);
  return out;
}

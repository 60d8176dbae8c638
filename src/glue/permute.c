#include "core/permute.h"
#include "core/sequence.h"
#include "glue/entries.h"
#include "glue/glue.h"

#include <math.h>

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

/* The first n numbers of a fixed sequence, in [0, 1). */
SEXP r_sequence(SEXP n) {
  const R_xlen_t length = (R_xlen_t) Rf_asReal(n);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, length));
  double *numbers = REAL(out);
  uint64_t state = 0;
  for (R_xlen_t i = 0; i < length; i++)
    numbers[i] = ldexp((double) (next_number(&state) >> 11), -53);
  UNPROTECT(1);
  return out;
}

#include "glue/permute.h"
#include "glue/entries.h"
#include "glue/glue.h"

glue_blocks glue_unpack_blocks(SEXP blocks, size_t n) {
  int *members = (int *) R_alloc(n, sizeof(int));
  int *pool = (int *) R_alloc(n, sizeof(int));
  if (Rf_isNull(blocks)) {
    int *end = (int *) R_alloc(1, sizeof(int));
    *end = (int) n;
    for (size_t i = 0; i < n; i++) members[i] = (int) i;
    return (glue_blocks){n, 1, members, end, pool};
  }
  if (TYPEOF(blocks) != INTSXP || XLENGTH(blocks) != (R_xlen_t) n)
    Rf_error("internal error: 'blocks' is not an integer vector of the right length");
  const int *codes = INTEGER_RO(blocks);
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    if (codes[i] < 1 || (size_t) codes[i] > n) Rf_error("internal error: a code of 'blocks'");
    if ((size_t) codes[i] > count) count = (size_t) codes[i];
  }
  /* ends[b] counts block b, then is where it begins, then moves to its end. */
  int *ends = (int *) R_alloc(count, sizeof(int));
  for (size_t block = 0; block < count; block++) ends[block] = 0;
  for (size_t i = 0; i < n; i++) ends[codes[i] - 1]++;
  for (size_t block = 0, at = 0; block < count; block++) {
    const size_t size = (size_t) ends[block];
    ends[block] = (int) at;
    at += size;
  }
  for (size_t i = 0; i < n; i++) members[ends[codes[i] - 1]++] = (int) i;
  return (glue_blocks){n, count, members, ends, pool};
}

void glue_permutation(const glue_blocks *blocks, int *permutation) {
  size_t first = 0;
  for (size_t block = 0; block < blocks->count; block++) {
    const int *members = blocks->members + first;
    size_t left = (size_t) blocks->ends[block] - first;
    const size_t size = left;
    for (size_t i = 0; i < size; i++) blocks->pool[i] = members[i];
    for (size_t i = 0; i < size; i++) {
      const size_t j = (size_t) R_unif_index((double) left);
      permutation[members[i]] = blocks->pool[j];
      blocks->pool[j] = blocks->pool[--left];
    }
    first += size;
  }
}

/* n x count, from 1: a permutation a column. */
SEXP r_permutations(SEXP order, SEXP count, SEXP blocks) {
  const size_t n = (size_t) Rf_asInteger(order), columns = (size_t) Rf_asInteger(count);
  const glue_blocks drawn = glue_unpack_blocks(blocks, n);
  SEXP out = PROTECT(Rf_allocMatrix(INTSXP, (int) n, (int) columns));
  GetRNGstate();
  for (size_t c = 0; c < columns; c++) {
    int *permutation = INTEGER(out) + c * n;
    glue_permutation(&drawn, permutation);
    for (size_t i = 0; i < n; i++) permutation[i]++;
    glue_poll();
  }
  PutRNGstate();
  UNPROTECT(1);
  return out;
}

#ifndef KM_PERMUTE_H
#define KM_PERMUTE_H

/* Permutations drawn by R's generator, as sample.int() draws them. */

#include <Rinternals.h>
#include <stddef.h>

typedef struct {
  size_t n, count;
  const int *members; /* the points, block by block */
  const int *ends;    /* count: where each block ends in members */
  int *pool;          /* n: scratch */
} glue_blocks;

/* blocks: NULL for one block, or n codes 1, 2, ... */
glue_blocks glue_unpack_blocks(SEXP blocks, size_t n);

/* permutation (n, from 0): points of a block change places among themselves. Call GetRNGstate()
   before the first. */
void glue_permutation(const glue_blocks *blocks, int *permutation);

#endif

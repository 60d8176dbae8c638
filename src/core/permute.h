#ifndef KM_PERMUTE_H
#define KM_PERMUTE_H

#include "core/threads.h"

#include <stddef.h>

/* Permutations of points, drawn from a source of random indices. */

/* One of 0, ..., count - 1, each as likely. */
typedef size_t (*km_draw)(size_t count);

/* n points in blocks: those of a block change places among themselves. */
typedef struct {
  size_t n, count;
  const int *members; /* n: the points, block by block */
  const int *ends;    /* count: where each block ends in members */
  const int *drawn;   /* count: places of a block that are drawn, -k: its last k */
  int *pool;          /* n: scratch */
} km_blocks;

/*
 * codes: n of 1, 2, ..., n, or NULL for one block; first: where only two groups count, the points
 * of the first, which stand first, else 0; work: km_blocks_iwork integers, kept.
 */
size_t km_blocks_iwork(size_t n);
km_blocks km_find_blocks(const int *codes, size_t n, size_t first, int *work);

/* permutation: n, from 0; of one block the places drawn are as of sample.int(), the last one of a
   block first if these are its last. */
void km_draw_permutation(const km_blocks *blocks, km_draw draw, int *permutation);

/* permutations: n x count, from 1. */
void km_draw_permutations(const km_blocks *blocks, size_t count, km_draw draw, int *permutations,
                          km_poll poll);

/* Are all codes from lowest to highest? */
int km_codes_within(const int *codes, size_t n, int lowest, int highest);

/* Fills order and inverse (n x count; inverse may be NULL) from permutations of 1, ..., n. */
void km_invert(const int *permutations, size_t n, size_t count, int *order, int *inverse);

#endif

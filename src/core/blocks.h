#ifndef KM_BLOCKS_H
#define KM_BLOCKS_H

#include "core/tile.h"

/* Sums of a Gram matrix over pairs of blocks of points. */

/* Blocks of points that stand one after the other: block b ends before point ends[b]; it may be
   empty. weights: of the points, or NULL: all 1. */
typedef struct {
  size_t count;
  const int *ends;
  const double *weights;
} km_runs;

/* Ends of blocks of these sizes, and the points of all; if they are more than an int can count, the
   ends are of no use. sizes, ends: count. */
size_t km_run_ends(const int *sizes, size_t count, int *ends);

/* The first point of a block. */
static inline size_t km_run_start(const km_runs *runs, size_t block) {
  return block ? (size_t) runs->ends[block - 1] : 0;
}

/* Its points. */
static inline size_t km_run_size(const km_runs *runs, size_t block) {
  return (size_t) runs->ends[block] - km_run_start(runs, block);
}

/* The block of a point. */
static inline size_t km_run_of(const km_runs *runs, size_t point) {
  size_t low = 0, high = runs->count - 1;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if ((size_t) runs->ends[middle] > point)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/*
 * sums_ab = sum of u_i v_j K_ij over i in block a of the rows, j in block b of the columns, and
 * unless moments is NULL (sum |K_ij|, sum K_ij^2) over all i, j. columns: NULL in a symmetric walk,
 * whose sums are symmetric to the bit. In another one a row of sums depends on its own block and
 * on the columns alone. sums: blocks of the rows x blocks of the columns; moments: 2.
 */
size_t km_block_sums_work(const km_source *source, const km_runs *rows, const km_runs *columns);
void km_block_sums(const km_source *source, const km_runs *rows, const km_runs *columns,
                   double *sums, double *moments, double *work, km_poll poll);

/* rows_ib = sum of K_ij over the points j in block b of a symmetric source, whose points stand in
   the blocks; their weights are not looked at. rows: n x blocks. */
size_t km_block_rows_work(const km_source *source);
void km_block_rows(const km_source *source, const km_runs *blocks, double *rows, double *work,
                   km_poll poll);

#endif

#ifndef KM_TALL_H
#define KM_TALL_H

#include <stddef.h>

/* Products of tall matrices: n rows, few columns. */

enum {
  KM_BLOCK = 16,    /* columns of a block */
  KM_TALL_ROWS = 64 /* rows are a multiple of it, zeros below the last point */
};

/* Doubles of scratch for km_tall_inner. */
size_t km_tall_work(size_t rows, size_t k);

/* c = Q'W. q: rows x k, k a multiple of 8; w: rows x KM_BLOCK; c: k x KM_BLOCK, row-major. */
void km_tall_inner(size_t rows, size_t k, const double *q, const double *w, double *c,
                   double *work);

/* W += times Q C, shapes as above. */
void km_tall_add(size_t rows, size_t k, const double *q, const double *c, double times, double *w);

#endif

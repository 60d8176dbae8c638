#ifndef KM_DENSE_H
#define KM_DENSE_H

#include "core/products.h"
#include "core/threads.h"

#include <stddef.h>

/* Products of large matrices. */

/*
 * C += times AB, or C = times AB if fresh. A(i, k) = a.at[i * a.down + k * a.across], m x depth;
 * B(k, j) likewise, depth x n; C: m x n, its columns ldc apart. If lower, nothing is done above
 * the diagonal of C.
 */
typedef struct {
  size_t m, n, depth;
  double times;
  factor a, b;
  double *c;
  size_t ldc;
  int fresh, lower;
} km_product;

size_t km_product_work(size_t m, size_t n, size_t depth);
void km_multiply_add(const km_product *product, double *work, km_poll poll);

/* The same by tasks of the parallel region that it is called in, by one thread, without polls. */
void km_multiply_tasks(const km_product *product, double *work);

double km_product_flops(const km_product *product);

/* What stands below the diagonal of c (n x n) also above it. */
void km_mirror(size_t n, double *c);

/* out_j = a_j'b_j. a, b: n x m. */
void km_column_dots(size_t n, size_t m, const double *a, const double *b, double *out);

enum { KM_DENSE_WORTH = 16 }; /* flops that count as one operation for km_threads */
static const double km_dense_poll = 2e9; /* flops between two polls: 0.02 to 0.05 s */

#endif

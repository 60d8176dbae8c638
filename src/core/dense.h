#ifndef KM_DENSE_H
#define KM_DENSE_H

#include "core/narrow.h"

#include <stddef.h>

/* Products of large matrices. */

size_t km_product_work(size_t m, size_t n, size_t depth);
size_t km_multiply_add_work(const km_product *product);
void km_multiply_add(const km_product *product, double *work, km_poll poll);

/* The same by tasks of the parallel region that it is called in, by one thread, without polls. */
void km_multiply_tasks(const km_product *product, double *work);

/* What stands below the diagonal of c (n x n) also above it. */
void km_mirror(size_t n, double *c);

/* out_j = a_j'b_j. a, b: n x m. */
void km_column_dots(size_t n, size_t m, const double *a, const double *b, double *out);

#endif

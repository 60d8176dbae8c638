#ifndef KM_NARROW_H
#define KM_NARROW_H

#include "core/products.h"
#include "core/threads.h"

/* Products with a narrow side, and small ones: matrices are read where they stand. */

/* Is it such a product? Then C = AB; if lower, something stands above the diagonal of C. */
int km_is_narrow(const km_product *product);
void km_multiply_narrow(const km_product *product, km_poll poll);

enum { KM_DENSE_WORTH = 16 }; /* flops that count as one operation for km_threads */
static const double km_dense_poll = 2e9; /* flops between two polls: 0.02 to 0.05 s */

#endif

#ifndef KM_RANGE_H
#define KM_RANGE_H

#include "core/threads.h"

#include <stddef.h>

/* The eigenpairs of a Gram matrix that are more than rounding, where they are few. */

/*
 * Those above n eps gamma_1 of a positive semi-definite K (n x n, both halves), decreasing and with
 * the signs of km_fix_sign. Returns how many, or 0: where K is 0 or not of that kind to rounding,
 * with *wanted = 0; or where cap columns do not tell all, with *wanted about as many as would, or
 * less. About 6 n r^2 flops and 2 n^2, for r columns. values: cap; vectors, n x cap, stand at the
 * start of work, and r of values and columns may be more than are returned.
 */
size_t km_range_work(size_t n, size_t cap);
size_t km_range_iwork(size_t cap);
size_t km_range(size_t n, const double *k, size_t cap, double *values, size_t *wanted,
                double *work, int *iwork, km_poll poll);

#endif

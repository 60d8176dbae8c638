#ifndef KM_INTERVAL_H
#define KM_INTERVAL_H

#include "core/threads.h"

#include <stddef.h>

/* Intervals for means of bounded values. */

/*
 * For each column of values (n x m, within [0, 1]) the lower end of an interval for their mean that
 * is above it with probability rest / 2 at most, whatever n; left_out: for each column the row that
 * does not count, from 1 on, or 0.
 */
void km_lower_ends(size_t n, size_t m, const double *values, const int *left_out, double rest,
                   double *ends, km_poll poll);

#endif

#ifndef KM_CHANGES_H
#define KM_CHANGES_H

#include "core/threads.h"

#include <stddef.h>

/* Where a sequence of bins, each of them a point, changes its mean. */

/*
 * What one cut gains, for each of `count` orders of n bins: the squared distance of the means
 * before and after it, times the harmonic weight of their sizes, in a metric that is made of the
 * differences of neighbors in that order. x: r x n, a bin a column, of mean 0; orders: n x count,
 * the bins from 1 on; least: bins of a part; gains: (n - 1) x count, 0 where a part is shorter.
 */
typedef struct {
  size_t n, r, count, least;
  const double *x;
  const int *orders;
} km_cuts;

size_t km_cut_gains_work(size_t n, size_t r, size_t count);
void km_cut_gains(const km_cuts *cuts, double *gains, double *work, km_poll poll);

/* costs_ij: the squared distances of bins i .. j from their mean. gram: n x n, inner products of
   bins; costs: n x n, 0 below the diagonal; work: n. */
void km_segment_costs(size_t n, const double *gram, double *costs, double *work);

/*
 * The least total cost of 1, ..., `most` segments of at least `least` bins each, INFINITY where
 * there are none; last: n x most, for so many segments of bins 1 .. j where the last one begins,
 * from 1 on, or 0. totals: most; work: 2 n.
 */
void km_segments(size_t n, const double *costs, size_t least, size_t most, double *totals,
                 int *last, double *work, km_poll poll);

#endif
